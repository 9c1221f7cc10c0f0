//! Systems, plans and logs for the tests.
#![allow(dead_code, reason = "each test file uses its own part")]

pub(crate) mod measured;
pub(crate) mod simulated;
pub(crate) mod small;
pub(crate) mod synthetic;

use onbeat_model::diagnostic::Origin;
use onbeat_model::plan::{Bound, BoundTerm, ChannelPlan, Plan, PortPlan};
use onbeat_model::port::PortSettings;
use onbeat_model::record::{Carrier, Ending, EndpointLog, Record, Role, RunLog};
use onbeat_model::system::{
    Bridge, Channel, ChannelId, Class, Host, Link, LinkId, Node, NodeId, NodeKind, Port, PortId,
    QueueLimits, System, TimeMode,
};
use onbeat_model::time::{ClockError, Span, SyncedTime};
use onbeat_model::units::{BitRate, MacAddress, Octets, StreamId};

/// A system of hosts and bridges (whose names begin with `b`), joined by links of 1 Gb/s.
pub(crate) fn system(nodes: &[&str], links: &[(&str, &str)], channels: Vec<Channel>) -> System {
    let mut system = System {
        nodes: nodes.iter().map(|name| node(name)).collect(),
        channels,
        ..System::empty("test", Span::from_s(1))
    };
    for (number, (a, b)) in (0..).zip(links) {
        let ports = [PortId(2 * number), PortId(2 * number + 1)];
        for (end, name) in [a, b].into_iter().enumerate() {
            let at = nodes.iter().position(|n| n == name).expect("a link joins nodes");
            let count = system.nodes[at].ports.len() + 1;
            system.nodes[at].ports.push(ports[end]);
            system.ports.push(Port {
                name: format!("p{count}"),
                node: NodeId(at as u32),
                link: LinkId(number),
                peer: ports[1 - end],
                settings: PortSettings::default(),
            });
        }
        system.links.push(Link {
            ports,
            rate: BitRate::from_mbps(1000),
            propagation: Span::from_ns(50),
            origin: Origin::default(),
        });
    }
    system
}

fn node(name: &str) -> Node {
    let bridge = NodeKind::Bridge(Bridge::default());
    let host = NodeKind::Host(Host::default());
    Node {
        name: name.into(),
        kind: if name.starts_with('b') { bridge } else { host },
        clock: ClockError::default(),
        queue: QueueLimits { frames: 338, octets: Octets::new(1 << 20) },
        ports: Vec::new(),
        origin: Origin::default(),
    }
}

/// A class A channel of 8 octets.
pub(crate) fn channel(name: &str, talker: u32, listeners: &[u32]) -> Channel {
    Channel {
        name: name.into(),
        destination: MacAddress([1, 0, 0x5e, 1, 0x11, 0x42]),
        stream_id: StreamId(42),
        class: Class::A,
        size: Octets::new(8),
        integrity: Default::default(),
        talker_address: None,
        interval: Span::from_ms(20),
        burst: 1,
        talker: NodeId(talker),
        listeners: listeners.iter().copied().map(NodeId).collect(),
        fixed_delay: Span::from_ms(2),
        deadline: None,
        lifespan: None,
        reserve: true,
        vlan: 2,
        pcp: 3,
        paths: Default::default(),
        message_type: None,
        phase_jitter: None,
        class_is_open: false,
        phase: Span::ZERO,
        origin: Origin::default(),
    }
}

/// A plan whose channels have these bounds to each listener, and no paths: `None` is unprotected.
pub(crate) fn plan(system: &System, bounds_us: &[Option<i64>]) -> Plan {
    let bound = |us: i64| Bound {
        terms: vec![
            BoundTerm { what: "stack at the talker".into(), span: Span::from_us(us / 4) },
            BoundTerm { what: "class A queues and links".into(), span: Span::from_us(us - us / 4) },
        ],
        best: Span::ZERO,
    };
    let channels = system.channels.iter().zip(bounds_us).map(|(channel, us)| ChannelPlan {
        protected: us.is_some(),
        paths: vec![Vec::new(); channel.listeners.len()],
        true_rate: BitRate::from_bps(35_200),
        reserved_rate: BitRate::from_bps(5_632_000),
        launch: None,
        schedulers: Vec::new(),
        slot: None,
        bounds: us.map_or(Vec::new(), |us| vec![bound(us); channel.listeners.len()]),
    });
    Plan {
        protected: bounds_us.iter().any(Option::is_some),
        channels: channels.collect(),
        noise: vec![Vec::new(); system.noise.len()],
        ports: vec![PortPlan::default(); system.ports.len()],
        chains: vec![None; system.chains.len()],
        ..Plan::default()
    }
}

/// An empty log with all ends of the system.
pub(crate) fn log(system: &System) -> RunLog {
    let mut ends = Vec::new();
    for (id, channel) in (0..).map(ChannelId).zip(&system.channels) {
        let end = |role, node| EndpointLog {
            channel: id,
            role,
            node,
            records: Vec::new(),
            unrecorded: 0,
            malformed: 0,
        };
        ends.push(end(Role::Talker, channel.talker));
        ends.extend(channel.listeners.iter().map(|host| end(Role::Listener, *host)));
    }
    RunLog {
        scenario: String::new(),
        seed: 1,
        network: Carrier::Emulated,
        time: TimeMode::Virtual,
        duration: Span::from_s(1),
        protected: true,
        ends,
        load: Vec::new(),
        ending: Ending::Complete,
        lag_max: None,
        clocks: Vec::new(),
        tcp: Vec::new(),
        reservations: None,
        stations: None,
    }
}

/// A reading in microseconds.
pub(crate) fn us(us: i64) -> Option<SyncedTime> {
    Some(SyncedTime::ZERO + Span::from_us(us))
}

/// What a talker records of an untimed write.
pub(crate) fn sent(sequence: u64, capture_us: i64) -> Record {
    let capture = us(capture_us);
    Record { capture, transfer: us(capture_us + 10), sequence, ..Record::default() }
}

/// What a listener records of a read, `latency_us` after the capture.
pub(crate) fn got(sequence: u64, capture_us: i64, latency_us: i64) -> Record {
    Record {
        capture: us(capture_us),
        transfer: us(capture_us + latency_us - 5),
        receive: us(capture_us + latency_us),
        sequence,
        ..Record::default()
    }
}
