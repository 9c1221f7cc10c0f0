//! Stations of Network Code: against hand calculation, against the interpreter, and against counts
//! that are made otherwise.

mod channels;
mod counts;
mod dedicated;
mod faults;
mod interpreter;
mod proofs;
mod rounds;
mod setup;

use crate::network::Network;
use onbeat_model::system::{NodeId, NodeKind, PortId};
use onbeat_model::time::{ClockError, NetTime, Span};
use onbeat_model::units::{MacAddress, Octets, frame};
use onbeat_net::network_code::{
    Application, ApplicationBuffers, GeneratedValues, MessageListener, NetworkCode,
    NetworkCodeObserved, NetworkCodeSettings, StationLog, StationSetup,
};
use onbeat_net::{FlowRef, Transmission};
use onbeat_network_code::assembly::{AssemblyOptions, assemble};
use onbeat_runtime::network_code::instruction::MessageId;
use onbeat_runtime::network_code::program::StationProgram;

/// An application that does nothing.
#[derive(Debug)]
struct Idle;

impl Application for Idle {
    fn act(&mut self, _: NetTime, _: &mut ApplicationBuffers<'_>) -> NetTime {
        NetTime::MAX
    }
}

/// Hosts `n0`, `n1` … around a row of bridges that take 1 µs, over links of 50 ns.
fn network(hosts: usize, bridges: usize, mbps: u64) -> Network {
    let mut network = Network::new();
    let hosts: Vec<NodeId> = (0..hosts).map(|_| network.host()).collect();
    let bridges: Vec<NodeId> = (0..bridges).map(|_| network.bridge(1_000)).collect();
    for (at, host) in hosts.iter().enumerate() {
        network.link(*host, bridges[at % bridges.len()], mbps, 50);
    }
    for pair in bridges.windows(2) {
        network.link(pair[0], pair[1], mbps, 50);
    }
    addresses(&mut network);
    network
}

/// Hosts have their numbers as addresses.
fn addresses(network: &mut Network) {
    for (at, node) in network.system.nodes.iter_mut().enumerate() {
        if let NodeKind::Host(host) = &mut node.kind {
            host.mac = MacAddress([2, 0, 0, 0, 0, at as u8]);
        }
    }
}

fn drift(network: &mut Network, host: usize, ppm: i32) {
    let clock = ClockError { drift_ppb: ppm * 1_000, ..ClockError::default() };
    network.system.nodes[host].clock = clock;
}

pub(crate) fn program(text: &str) -> StationProgram {
    let assembly = assemble("test.nc", text, AssemblyOptions::default());
    assembly.program.unwrap_or_else(|| panic!("{:?}\n{text}", assembly.diagnostics))
}

fn setup(text: &str, application: impl Application + 'static) -> StationSetup {
    StationSetup::new(program(text), application)
}

/// With generated values, each 10 µs.
fn generated(network: &Network, texts: &[String], seed: u64) -> Vec<StationSetup> {
    let of = |text: &String| {
        let program = program(text);
        let node = network.system.nodes.iter().position(|node| node.name == program.station);
        let node = NodeId(node.expect("a host") as u32);
        setup(text, GeneratedValues::new(seed, node, Span::from_us(10)))
    };
    texts.iter().map(of).collect()
}

/// A run of so long, all stations starting at once.
fn settings(seed: u64, duration: Span) -> NetworkCodeSettings {
    NetworkCodeSettings { seed, start_within: Span::ZERO, rounds: None, duration, logs: true }
}

/// All that can be seen of a run.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    observed: NetworkCodeObserved,
    logs: Vec<(usize, StationLog)>,
    /// What all ports sent.
    sent: Vec<Transmission>,
}

fn run(network: &Network, stations: Vec<StationSetup>, settings: NetworkCodeSettings) -> Seen {
    let mut engine = network.engine(settings.seed, settings.duration.as_ns());
    engine.tap(&(0..network.system.ports.len() as u32).map(PortId).collect::<Vec<_>>());
    let joined =
        NetworkCode::join(&mut engine, &network.system, &network.plan, stations, &settings);
    let stations = joined.unwrap_or_else(|errors| panic!("{errors:?}"));
    stations.run(&mut engine, &mut |_| true).expect("room");
    let (observed, logs) = (stations.observed(&engine), stations.take_logs());
    for station in &observed.stations {
        let counters = &station.counters;
        let late = [counters.transmissions_late, counters.inputs_late, counters.inputs_early];
        assert_eq!(late, [0; 3], "an engine is never late");
    }
    Seen { observed, logs, sent: engine.take_transmissions() }
}

fn listener(observed: &NetworkCodeObserved, id: u8, node: usize) -> MessageListener {
    let message = observed.messages.iter().find(|message| message.id == MessageId(id));
    let listeners = message.map(|message| message.listeners.iter());
    let mut found = listeners.expect("a message").filter(|it| it.node == NodeId(node as u32));
    found.next().expect("a listener").clone()
}

/// How long a frame without its check sequence occupies a wire, in octets, with preamble and gap.
fn on_wire(octets: usize) -> Octets {
    frame::on_wire((Octets::new(octets as u32) + frame::FCS).max(frame::MIN_UNTAGGED))
}

/// Whose frame of a station it is, if it is one.
fn station_of(sent: &Transmission) -> Option<u8> {
    let is_group = sent.data.starts_with(&[3, 0x4f, 0x42, 0x4e, 0x43, 0]);
    (sent.flow == FlowRef::Protocol && is_group).then(|| sent.data[11])
}

/// A master that begins a round each so many µs and takes what its slaves send, each in its slot.
fn master(slaves: usize, medium: &str, round_us: u64) -> String {
    let ids = 1..=slaves;
    let inputs: String = ids.clone().map(|id| format!("input b{id}[3]\n")).collect();
    let messages: String = ids.clone().map(|id| format!("message m{id} = {id}[3]\n")).collect();
    let receives: String = ids.map(|id| format!("    receive m{id}, b{id}\n")).collect();
    format!(
        "station n0\nmedium {medium}\n{inputs}{messages}\
         output setpoint[2]\nmessage setpoint = 0[2]\n\
         begin:\n    future answers, {rest} us\n    sync master\n    create setpoint\n    \
         send setpoint\n    halt\n\
         answers:\n    future begin, 20 us\n{receives}    halt\n",
        rest = round_us - 20,
    )
}

/// The slave with a number, which sends so long after each beginning of a round.
fn slave(number: usize, medium: &str, after_us: u64) -> String {
    format!(
        "station n{number}\nmedium {medium}\noutput value[3]\ninput setpoint[2]\n\
         message setpoint = 0[2]\nmessage m{number} = {number}[3]\n\
         begin:\n    sync slave, 10 ms\n    branch sync_timeout, begin\n    \
         future slot, {after_us} us\n    halt\n\
         slot:\n    receive setpoint, setpoint\n    create value\n    send m{number}\n    \
         goto begin\n",
    )
}

/// A master and so many slaves, with slots of 20 µs at 1 Gbit/s and a round of 200 µs, in which
/// nothing collides.
fn team(slaves: usize) -> Vec<String> {
    let of = |number| slave(number, "1 Gbit/s", 20 * number as u64);
    let master = master(slaves, "1 Gbit/s", 200);
    [master].into_iter().chain((1..=slaves).map(of)).collect()
}
