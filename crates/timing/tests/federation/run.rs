//! A federation in virtual time, as `onbeat lf simulate` executes it, on a network where each
//! connection's delivery is given: hosts at one bridge.

use crate::random::{Case, START};
use onbeat_bounds::plan;
use onbeat_model::diagnostic::Origin;
use onbeat_model::port::PortSettings;
use onbeat_model::system::{
    Bridge, Channel, ChannelId, Class, Delay, Host, Link, LinkId, Node, NodeId, NodeKind, Port,
    PortId, QueueLimits, System,
};
use onbeat_model::time::{ClockError, Span};
use onbeat_model::units::{BitRate, MacAddress, Octets, StreamId};
use onbeat_net::federation::{
    Behaviour, Clocks, FederationObserved, Receipt, RunLimits, Settings, Skeleton, Transfer, Watch,
};
use onbeat_timing::federation::Delivery;

/// So many events has a run at most: some federations repeat at one time without end.
const EVENTS_MAX: u64 = 60_000;
/// An action without a known interval happens so often.
const UNKNOWN_INTERVAL: Span = Span::from_us(700);
/// The most that a reaction takes of which that is not known.
const UNKNOWN_EXECUTION: Span = Span::from_ms(1);
/// Of an unknown delivery.
const UNKNOWN_DELIVERY: Span = Span::from_ms(3);

/// Executes a federation.
pub(crate) fn run(case: &Case) -> FederationObserved {
    watched(case, &mut ())
}

/// The same, for who looks on.
pub(crate) fn watched(case: &Case, watch: &mut dyn Watch) -> FederationObserved {
    let system = system(case);
    let plan = plan(&system, true).expect("best effort needs no admission");
    let transfers: Vec<_> =
        (0..case.federation.connections.len()).map(|at| transfer(case, at)).collect();
    let subject = Skeleton {
        federation: &case.federation,
        system: &system,
        plan: &plan,
        transfers: &transfers,
    };
    let behaviour = case.behaviour;
    let settings = Settings {
        seed: behaviour.seed,
        duration: behaviour.duration,
        start: START,
        start_spread: Span::ZERO,
        clocks: Clocks::Described,
        behaviour: Behaviour {
            is_worst: behaviour.is_worst,
            is_slow: behaviour.is_slow,
            is_dense: behaviour.is_dense,
            sets_percent: behaviour.sets_per_cent as u8,
            unknown_execution: UNKNOWN_EXECUTION,
            unknown_interval: UNKNOWN_INTERVAL,
        },
        handlers_set: case.environment.handlers_set,
        limits: RunLimits { drain: Span::from_ms(10), events: EVENTS_MAX, at_once: EVENTS_MAX },
    };
    let seen = onbeat_net::federation::run(subject, &settings, 0, watch);
    let seen = seen.expect("a network that is not full");
    for (at, connection) in seen.connections.iter().enumerate() {
        // What is assumed of a delivery must be true of the engine.
        let most = match case.environment.deliveries[at] {
            Some(Delivery::Between { max, .. }) => Some(max),
            Some(Delivery::Fixed(_)) | None => None,
        };
        let is_in_time = |most| connection.latency.max.is_none_or(|seen| seen <= most);
        assert!(most.is_none_or(is_in_time), "the engine took longer than was assumed");
        assert_eq!((connection.lost, connection.held), (0, 0));
    }
    seen
}

fn transfer(case: &Case, at: usize) -> Transfer {
    let receipt = match case.environment.deliveries[at] {
        None => Receipt::Within { min: Span::ZERO, max: UNKNOWN_DELIVERY },
        Some(Delivery::Between { min, max }) => Receipt::Within { min, max },
        Some(Delivery::Fixed(delay)) => Receipt::Fixed(delay),
    };
    let channel = stations(case, at).map(|_| ChannelId(at as u32));
    Transfer { channel, receipt }
}

/// A host for each station, at one bridge, and a channel for each connection between two.
fn system(case: &Case) -> System {
    let mut system = System::empty("federation", Span::from_s(1));
    let mut node = |name: String, kind: NodeKind, clock: ClockError| {
        let queue = QueueLimits { frames: 100_000, octets: Octets::new(1 << 27) };
        let (ports, origin) = (Vec::new(), Origin::default());
        system.nodes.push(Node { name, kind, clock, queue, ports, origin });
    };
    for (at, clock) in case.clocks.iter().enumerate() {
        let mac = MacAddress([2, 0, 0, 0, 0, at as u8 + 1]);
        let max = case.environment.stations[at].wakeup;
        let wakeup = Delay::Interval { min: Span::ZERO, max };
        let cores = case.environment.stations[at].cores;
        let host = NodeKind::Host(Host { mac, wakeup, cores, ..Host::default() });
        node(format!("s{at}"), host, *clock);
    }
    node("bridge".to_owned(), NodeKind::Bridge(Bridge::default()), ClockError::default());
    let bridge = NodeId(case.clocks.len() as u32);
    for at in 0..case.clocks.len() {
        let link = LinkId(at as u32);
        let ports = [PortId(2 * link.0), PortId(2 * link.0 + 1)];
        for (end, node) in [NodeId(at as u32), bridge].into_iter().enumerate() {
            let name = format!("p{at}");
            let settings = PortSettings::default();
            system.ports.push(Port { name, node, link, peer: ports[1 - end], settings });
            system.nodes[node.index()].ports.push(ports[end]);
        }
        let rate = BitRate::from_bps(1_000_000_000);
        let propagation = Span::from_ns(50);
        system.links.push(Link { ports, rate, propagation, origin: Origin::default() });
    }
    for at in 0..case.federation.connections.len() {
        let ends = stations(case, at);
        // A connection within a station has a channel that nobody uses.
        let (talker, listener) = ends.unwrap_or((0, 1));
        system.channels.push(channel(at, talker, listener));
    }
    if case.clocks.len() < 2 {
        system.channels.clear();
    }
    system
}

fn channel(at: usize, talker: usize, listener: usize) -> Channel {
    Channel {
        name: format!("c{at}"),
        destination: MacAddress([1, 0, 0x5e, 0, 1, at as u8]),
        stream_id: StreamId(at as u64 + 1),
        class: Class::A,
        size: Octets::new(460),
        integrity: Default::default(),
        talker_address: None,
        interval: Span::from_ms(1),
        // The rate is not what these tests are about: nothing waits for it.
        burst: 1 << 20,
        talker: NodeId(talker as u32),
        listeners: vec![NodeId(listener as u32)],
        fixed_delay: Span::from_ms(2),
        deadline: None,
        lifespan: None,
        reserve: false,
        vlan: 2,
        pcp: 0,
        paths: Default::default(),
        message_type: None,
        phase_jitter: None,
        class_is_open: false,
        phase: Span::ZERO,
        origin: Origin::default(),
    }
}

/// The stations of the ends of a connection, if these are two.
fn stations(case: &Case, connection: usize) -> Option<(usize, usize)> {
    let connection = &case.federation.connections[connection];
    let from = station(case, connection.from.index())?;
    let to = station(case, connection.to.index())?;
    (from != to).then_some((from, to))
}

fn station(case: &Case, federate: usize) -> Option<usize> {
    let name = case.federation.federates[federate].station.as_ref()?;
    case.environment.stations.iter().position(|station| station.name == *name)
}
