//! A case in the engine: stations whose programs send in given cycles, streams, switches.

use super::case::{Case, Kind, LINK};
use super::outcome::{Outcome, Passage, What};
use crate::network::Network;
use crate::network_code::program;
use onbeat_model::dedicated::DedicatedPath;
use onbeat_model::stream::Source;
use onbeat_model::system::{NodeId, NodeKind, PortId};
use onbeat_model::time::Span;
use onbeat_model::units::{MacAddress, Octets, frame};
use onbeat_net::network_code::{
    Application, ApplicationBuffers, NetworkCode, NetworkCodeSettings, StationSetup,
};
use onbeat_net::{FlowRef, Transmission};
use std::fmt::Write;

/// Of best effort, without what a frame takes to move: see `docs/hardware.md`.
const FORWARDING: i64 = 17 * 8;
/// An output's memory.
const RING_FRAMES: u32 = 256;
const RING_OCTETS: u32 = 1 << 14;
/// All that was sent has arrived then, or is lost.
pub(super) const END: u64 = 120_000;
const CYCLE: i64 = 8;

/// Which frames of hosts the frames of each stream are.
type Flows = Vec<Vec<(usize, usize)>>;

#[derive(Debug)]
struct Still;

impl Application for Still {
    fn act(
        &mut self,
        _: onbeat_model::time::NetTime,
        _: &mut ApplicationBuffers<'_>,
    ) -> onbeat_model::time::NetTime {
        onbeat_model::time::NetTime::MAX
    }
}

pub(super) fn run(case: &Case) -> Outcome {
    let (network, flows) = network(case);
    let settings = NetworkCodeSettings {
        seed: 1,
        start_within: Span::ZERO,
        rounds: None,
        duration: Span::from_ns(END as i64 * CYCLE),
        logs: false,
    };
    let mut engine = network.engine(1, settings.duration.as_ns());
    engine.tap(&(0..network.system.ports.len() as u32).map(PortId).collect::<Vec<_>>());
    let setups = (0..case.hosts()).filter_map(|host| station(case, host)).collect();
    let joined = NetworkCode::join(&mut engine, &network.system, &network.plan, setups, &settings);
    let joined = joined.unwrap_or_else(|errors| panic!("{errors:?}"));
    joined.run(&mut engine, &mut |_| true).expect("room");
    let stations = joined.observed(&engine);
    assert!(stations.stations.iter().all(|station| station.trap.is_none()), "no program ends");
    let mut outcome = Outcome::default();
    let sent = engine.take_transmissions();
    for (index, port) in network.system.ports.iter().enumerate() {
        let node = port.node.index();
        let number = network.system.nodes[node].ports.iter().position(|it| it.index() == index);
        let place = (node, number.expect("a port of its node"));
        let own: Vec<&Transmission> = sent.iter().filter(|it| it.port.index() == index).collect();
        let passages = passages(case, &flows, &own);
        if !passages.is_empty() {
            outcome.wires.insert(place, passages);
        }
        let seen = engine.port_observed(PortId(index as u32));
        if let Some(dedicated) = seen.dedicated {
            let dropped = seen.queues.iter().map(|queue| queue.dropped).sum();
            let counts = [
                dedicated.sent,
                dedicated.collisions,
                dropped,
                dedicated.aborts,
                dedicated.resent,
                dedicated.lost,
            ];
            if counts != [0; 6] {
                outcome.counts.insert(place, counts);
            }
        }
    }
    outcome
}

fn network(case: &Case) -> (Network, Flows) {
    let mut network = Network::new();
    for at in 0..case.hosts() {
        let host = network.host();
        let NodeKind::Host(host) = &mut network.system.nodes[host.index()].kind else { panic!() };
        host.mac = MacAddress([2, 0, 0, 0, 0, at as u8]);
    }
    for _ in 0..case.switches {
        let switch = network.bridge(FORWARDING);
        network.limits(switch, RING_FRAMES, RING_OCTETS);
        let NodeKind::Bridge(bridge) = &mut network.system.nodes[switch.index()].kind else {
            panic!()
        };
        let wait = Span::from_ns(case.wait() as i64 * CYCLE);
        bridge.dedicated_path = Some(DedicatedPath { on_best_effort: case.policy, wait });
    }
    for [a, b] in &case.links {
        network.link(NodeId(*a as u32), NodeId(*b as u32), 1_000, LINK as i64 * CYCLE);
    }
    let mut flows = Flows::new();
    for host in 0..case.hosts() {
        for to in (0..case.hosts()).map(Some).chain([None]) {
            streams(case, (host, to), &mut network, &mut flows);
        }
    }
    (network, flows)
}

/// Best effort of a host to another one, or to all.
fn streams(
    case: &Case,
    (host, to): (usize, Option<usize>),
    network: &mut Network,
    flows: &mut Flows,
) {
    let mut numbers = Vec::new();
    let mut frames = Vec::new();
    for (number, sent) in case.sent[host].iter().enumerate() {
        match sent.kind {
            Kind::BestEffort(octets, of) if of == to => {
                numbers.push((host, number));
                frames.push((Span::from_ns(sent.at as i64 * CYCLE), Octets::new(octets)));
            }
            _ => {}
        }
    }
    let lengths = frames.iter().map(|(_, octets)| octets.get());
    let (Some(least), Some(most)) = (lengths.clone().min(), lengths.max()) else { return };
    let all = (0..case.hosts()).filter(|other| *other != host && to.is_none_or(|to| to == *other));
    let listeners: Vec<NodeId> = all.map(|other| NodeId(other as u32)).collect();
    network.stream(NodeId(host as u32), &listeners, [least, most], Source::Trace(frames));
    flows.push(numbers);
}

/// `create` is issued 8 cycles before the first octet, and a countdown begins 4 cycles later.
fn station(case: &Case, host: usize) -> Option<StationSetup> {
    let frames = case.sent[host].iter().filter_map(|sent| match sent.kind {
        Kind::Station(words) => Some((sent.at - 8, words)),
        Kind::BestEffort(..) => None,
    });
    let mut head = format!("station n{host}\n");
    let mut text = String::from("begin:\n");
    let mut issued = 0;
    let mut count = 0;
    for (at, words) in frames {
        let delay = at - issued;
        write!(text, "future f{count}, {delay} cycles\nhalt\nf{count}: create b{count}\n").ok()?;
        writeln!(text, "send m{count}").ok()?;
        write!(head, "output b{count}[{words}]\nmessage m{count} = {count}[{words}]\n").ok()?;
        issued = at + 4;
        count += 1;
    }
    text.push_str("future rest, 1 s\nhalt\nrest: future rest, 1 s\nhalt\n");
    (count > 0).then(|| StationSetup::new(program(&(head + &text)), Still))
}

fn passages(case: &Case, flows: &Flows, sent: &[&Transmission]) -> Vec<Passage> {
    let number_of = |host: usize, nth: usize| {
        let stations = case.sent[host].iter().enumerate();
        let mut own = stations.filter(|(_, sent)| matches!(sent.kind, Kind::Station(_)));
        own.nth(nth).expect("a frame of a station").0
    };
    let mut passages = Vec::with_capacity(sent.len());
    for (index, it) in sent.iter().enumerate() {
        let ns = it.at.as_ns();
        assert_eq!(ns % CYCLE, 0, "a transmission at {ns} ns");
        let at = (ns / CYCLE) as u64;
        let wire = u64::from(frame::on_wire(Octets::new(it.octets.into())).get());
        let next = sent.get(index + 1).map(|next| (next.at.as_ns() / CYCLE) as u64);
        let what = match it.flow {
            FlowRef::Stream(_) if next.is_some_and(|next| next < at + wire) => {
                What::Cut(aborted(case, &sent[index..]) - at + 1)
            }
            FlowRef::Stream(stream) => {
                let (host, number) = flows[stream.index()][it.sequence as usize];
                What::Whole(host, number)
            }
            _ => {
                let (host, id) = (usize::from(it.data[11]), usize::from(it.data[15]));
                What::Whole(host, number_of(host, id))
            }
        };
        passages.push(Passage { at, what });
    }
    passages
}

/// When the first of these is aborted: at the warning of the first frame of a station behind it.
fn aborted(case: &Case, sent: &[&Transmission]) -> u64 {
    let before = DedicatedPath::START.get() - DedicatedPath::WARNING.get();
    let before = u64::from(before) + case.wait();
    let warnings = sent.iter().filter(|it| it.flow == FlowRef::Protocol);
    let mut warnings = warnings.map(|it| (it.at.as_ns() / CYCLE) as u64 - before);
    let begins = (sent[0].at.as_ns() / CYCLE) as u64;
    warnings.find(|at| *at >= begins).expect("a frame of a station")
}
