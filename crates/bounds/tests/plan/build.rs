//! Systems for tests, built by name. Hosts come before bridges, as in a checked description.

use onbeat_model::diagnostic::Origin;
use onbeat_model::port::PortSettings;
use onbeat_model::system::{
    Bridge, Chain, Channel, ChannelId, Class, Delay, Host, Link, LinkId, Node, NodeId, NodeKind,
    Noise, Port, PortId, Program, QueueLimits, System,
};
use onbeat_model::time::{ClockError, NetTime, Span};
use onbeat_model::units::{BitRate, MacAddress, Octets, StreamId};

/// Queues that hold whatever the tests send.
const ROOMY: QueueLimits = QueueLimits { frames: 1_000, octets: Octets::new(1_000_000) };

pub(crate) struct Net(pub(crate) System);

impl Net {
    pub(crate) fn new(hosts: &[&str], bridges: &[&str]) -> Self {
        let mut system = System::empty("test", Span::from_s(10));
        let kinds = hosts.iter().map(|name| (name, NodeKind::Host(Host::default())));
        let bridges = bridges.iter().map(|name| (name, NodeKind::Bridge(Bridge::default())));
        for (name, kind) in kinds.chain(bridges) {
            system.nodes.push(Node {
                name: (*name).to_owned(),
                kind,
                clock: ClockError::default(),
                queue: ROOMY,
                ports: Vec::new(),
                origin: Origin::default(),
            });
        }
        Self(system)
    }

    pub(crate) fn id(&self, name: &str) -> NodeId {
        let at = self.0.nodes.iter().position(|n| n.name == name).expect("a node of the test");
        NodeId(at as u32)
    }

    pub(crate) fn node(&mut self, name: &str) -> &mut Node {
        let id = self.id(name);
        &mut self.0.nodes[id.index()]
    }

    pub(crate) fn host(&mut self, name: &str) -> &mut Host {
        match &mut self.node(name).kind {
            NodeKind::Host(host) => host,
            NodeKind::Bridge(_) => panic!("{name} is a bridge"),
        }
    }

    pub(crate) fn link(&mut self, a: &str, b: &str, rate_bps: u64) -> &mut Self {
        let link = LinkId(self.0.links.len() as u32);
        let ports = [PortId(2 * link.0), PortId(2 * link.0 + 1)];
        for (end, name) in [a, b].into_iter().enumerate() {
            let node = self.id(name);
            let name = format!("p{}", self.0.node(node).ports.len() + 1);
            self.0.ports.push(Port {
                name,
                node,
                link,
                peer: ports[1 - end],
                settings: PortSettings::default(),
            });
            self.0.nodes[node.index()].ports.push(ports[end]);
        }
        let (rate, propagation) = (BitRate::from_bps(rate_bps), Span::ZERO);
        self.0.links.push(Link { ports, rate, propagation, origin: Origin::default() });
        self
    }

    /// A class A or B channel; its name's position in the file is its number.
    pub(crate) fn channel(&mut self, name: &str, from: &str, to: &[&str]) -> &mut Channel {
        let number = self.0.channels.len() as u32;
        self.0.channels.push(Channel {
            name: name.to_owned(),
            destination: MacAddress([1, 0, 0x5e, 0, 0, number as u8]),
            stream_id: StreamId(u64::from(number)),
            class: Class::A,
            size: Octets::new(8),
            integrity: Default::default(),
            talker_address: None,
            interval: Span::from_ms(20),
            burst: 1,
            talker: self.id(from),
            listeners: to.iter().map(|name| self.id(name)).collect(),
            fixed_delay: Class::A.fixed_delay(),
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
            origin: Origin { file: 0, start: number, end: number + 1 },
        });
        self.0.channels.last_mut().expect("just added")
    }

    pub(crate) fn noise(&mut self, from: &str, to: &str) {
        let (from, to) = (self.id(from), self.id(to));
        self.0.noise.push(Noise {
            name: "noise".to_owned(),
            from,
            to,
            payload: Octets::new(1470),
            interval: Span::from_us(15),
            jitter: false,
            start: NetTime::ZERO,
            on: Span::from_s(30),
            off: Span::from_s(30),
            origin: Origin::default(),
        });
    }

    pub(crate) fn program(&mut self, name: &str, host: &str, work_max: Span) {
        let host = self.id(host);
        self.0.programs.push(Program {
            name: name.to_owned(),
            host,
            command: vec![name.to_owned()],
            source: None,
            execution_times: None,
            tasks: None,
            joins: true,
            user: None,
            policy: None,
            priority: None,
            cores: Vec::new(),
            budget: None,
            work_max,
            origin: Origin::default(),
        });
    }

    pub(crate) fn chain(&mut self, channels: &[u32], deadline: Span) {
        self.0.chains.push(Chain {
            name: "chain".to_owned(),
            channels: channels.iter().copied().map(ChannelId).collect(),
            deadline,
            age: None,
            reaction: None,
            origin: Origin::default(),
        });
    }

    pub(crate) fn labels(&self, path: &[PortId]) -> Vec<String> {
        path.iter().map(|port| self.0.port_label(*port)).collect()
    }
}

/// The network-channels paper's set-up: two hosts, two bridges, one channel, 1 Gb/s.
pub(crate) fn two_hosts() -> Net {
    let mut net = Net::new(&["h1", "h2"], &["cat1", "cat2"]);
    for (a, b) in [("h1", "cat1"), ("cat1", "cat2"), ("cat2", "h2")] {
        net.link(a, b, 1_000_000_000);
    }
    for link in &mut net.0.links {
        link.propagation = Span::from_ns(50);
    }
    for bridge in ["cat1", "cat2"] {
        net.node(bridge).kind =
            NodeKind::Bridge(Bridge { forwarding: Span::from_us(2), ..Bridge::default() });
    }
    net.host("h1").stack_tx = Delay::Interval { min: Span::from_us(20), max: Span::from_us(60) };
    net.host("h2").stack_rx = Delay::Interval { min: Span::from_us(10), max: Span::from_us(40) };
    net.channel("mcast42", "h1", &["h2"]);
    net
}
