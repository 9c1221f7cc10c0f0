//! A small network with a hand-made plan: routes over its tree, slopes as asked for.

use onbeat_model::diagnostic::Origin;
use onbeat_model::observed::Observed;
use onbeat_model::plan::{ChannelPlan, Plan, PortPlan, StreamPlan};
use onbeat_model::port::PortSettings;
use onbeat_model::stream::{Fault, FaultKind, Source, Stream};
use onbeat_model::system::{
    Bridge, Channel, ChannelId, Class, Delay, Host, Link, LinkId, Node, NodeId, NodeKind, Noise,
    NoiseId, Port, PortId, QueueLimits, StreamIndex, System,
};
use onbeat_model::time::{ClockError, NetTime, Span};
use onbeat_model::units::{BitRate, MacAddress, Octets, StreamId};
use onbeat_net::{Engine, Options, Output, Phases, Simulation, simulate};

/// A system and its plan, grown call by call.
#[derive(Clone)]
pub(crate) struct Network {
    pub(crate) system: System,
    pub(crate) plan: Plan,
}

/// What a test says of a noise source; times in ns.
#[derive(Clone, Copy)]
pub(crate) struct NoiseSpec {
    pub(crate) payload: u32,
    pub(crate) interval: i64,
    pub(crate) jitter: bool,
    pub(crate) start: i64,
    pub(crate) on: i64,
    pub(crate) off: i64,
}

impl Network {
    pub(crate) fn new() -> Self {
        let system = System::empty("test", Span::from_s(1));
        let plan = Plan { protected: true, ..Plan::default() };
        Self { system, plan }
    }

    fn node(&mut self, kind: NodeKind) -> NodeId {
        let id = NodeId(self.system.nodes.len() as u32);
        self.system.nodes.push(Node {
            name: format!("n{}", id.0),
            kind,
            clock: ClockError::default(),
            queue: QueueLimits { frames: 1_000, octets: Octets::new(10_000_000) },
            ports: Vec::new(),
            origin: Origin::default(),
        });
        id
    }
    pub(crate) fn host(&mut self) -> NodeId {
        self.node(NodeKind::Host(Host::default()))
    }
    pub(crate) fn bridge(&mut self, forwarding_ns: i64) -> NodeId {
        self.node(NodeKind::Bridge(Bridge {
            forwarding: Span::from_ns(forwarding_ns),
            ..Bridge::default()
        }))
    }
    /// Gives all three delays of a host.
    pub(crate) fn delays(&mut self, host: NodeId, tx: Delay, rx: Delay, wakeup: Delay) {
        let NodeKind::Host(host) = &mut self.system.nodes[host.index()].kind else { panic!() };
        (host.stack_tx, host.stack_rx, host.wakeup) = (tx, rx, wakeup);
    }
    pub(crate) fn limits(&mut self, node: NodeId, frames: u32, octets: u32) {
        let queue = QueueLimits { frames, octets: Octets::new(octets) };
        self.system.nodes[node.index()].queue = queue;
    }

    /// Joins two nodes; returns the port at `a`, whose peer is the next one.
    pub(crate) fn link(&mut self, a: NodeId, b: NodeId, mbps: u64, propagation: i64) -> PortId {
        let link = LinkId(self.system.links.len() as u32);
        let ports = [PortId(2 * link.0), PortId(2 * link.0 + 1)];
        for (at, node) in [a, b].into_iter().enumerate() {
            let name = format!("p{}", self.system.nodes[node.index()].ports.len());
            self.system.nodes[node.index()].ports.push(ports[at]);
            self.system.ports.push(Port {
                name,
                node,
                link,
                peer: ports[1 - at],
                settings: PortSettings::default(),
            });
            self.plan.ports.push(PortPlan::default());
        }
        let rate = BitRate::from_mbps(mbps);
        let propagation = Span::from_ns(propagation);
        self.system.links.push(Link { ports, rate, propagation, origin: Origin::default() });
        ports[0]
    }

    /// The egress ports from one node to another; the network is a tree.
    pub(crate) fn path(&self, from: NodeId, to: NodeId) -> Vec<PortId> {
        let mut trail = vec![(from, None, Vec::new())];
        while let Some((node, entry, path)) = trail.pop() {
            if node == to {
                return path;
            }
            for port in &self.system.node(node).ports {
                let peer = self.system.port(*port).peer;
                if Some(*port) != entry {
                    let path = path.iter().copied().chain([*port]).collect();
                    trail.push((self.system.port(peer).node, Some(peer), path));
                }
            }
        }
        panic!("no path");
    }

    /// Adds a channel; without a class it is unprotected.
    pub(crate) fn channel(
        &mut self,
        talker: NodeId,
        listeners: &[NodeId],
        class: Option<Class>,
    ) -> ChannelId {
        let id = ChannelId(self.system.channels.len() as u32);
        let paths = listeners.iter().map(|to| self.path(talker, *to)).collect();
        self.system.channels.push(Channel {
            name: format!("c{}", id.0),
            destination: MacAddress([1, 0, 0x5e, 0, 0, id.0 as u8]),
            stream_id: StreamId(id.0.into()),
            class: class.unwrap_or(Class::A),
            size: Octets::new(8),
            integrity: Default::default(),
            talker_address: None,
            interval: Span::from_ms(1),
            burst: 1,
            talker,
            listeners: listeners.to_vec(),
            fixed_delay: Span::from_ms(2),
            deadline: None,
            lifespan: None,
            reserve: class.is_some(),
            vlan: 2,
            pcp: 3,
            paths: Default::default(),
            message_type: None,
            phase_jitter: None,
            class_is_open: false,
            phase: Span::ZERO,
            origin: Origin::default(),
        });
        self.plan.channels.push(ChannelPlan {
            protected: class.is_some(),
            paths,
            true_rate: BitRate::default(),
            reserved_rate: BitRate::default(),
            launch: None,
            schedulers: Vec::new(),
            slot: None,
            bounds: Vec::new(),
        });
        id
    }

    /// Reserves bandwidth for both classes at every port.
    pub(crate) fn shape_all(&mut self, a_mbps: u64, b_mbps: u64) {
        for port in &mut self.plan.ports {
            port.set_idle_slope(Class::A, BitRate::from_mbps(a_mbps));
            port.set_idle_slope(Class::B, BitRate::from_mbps(b_mbps));
        }
    }

    pub(crate) fn noise(&mut self, from: NodeId, to: NodeId, spec: NoiseSpec) -> NoiseId {
        let id = NoiseId(self.system.noise.len() as u32);
        self.plan.noise.push(self.path(from, to));
        self.system.noise.push(Noise {
            name: format!("noise{}", id.0),
            from,
            to,
            payload: Octets::new(spec.payload),
            interval: Span::from_ns(spec.interval),
            jitter: spec.jitter,
            start: NetTime::from_ns(spec.start),
            on: Span::from_ns(spec.on),
            off: Span::from_ns(spec.off),
            origin: Origin::default(),
        });
        id
    }

    /// Adds a stream of class 4 in VLAN 2, with the ways over the tree.
    pub(crate) fn stream(
        &mut self,
        talker: NodeId,
        listeners: &[NodeId],
        frame: [u32; 2],
        source: Source,
    ) -> StreamIndex {
        let id = StreamIndex(self.system.streams.len() as u32);
        let paths = listeners.iter().map(|to| vec![self.path(talker, *to)]).collect();
        self.plan.streams.push(StreamPlan {
            paths,
            bounds: vec![None; listeners.len()],
            ..Default::default()
        });
        self.system.streams.push(Stream {
            name: format!("s{}", id.0),
            talker,
            listeners: listeners.to_vec(),
            traffic_class: 4,
            vlan: 2,
            pcp: 4,
            frame: frame.map(Octets::new),
            source,
            phase: Span::ZERO,
            regulator: None,
            policing: None,
            paths: Default::default(),
            deadline: None,
            origin: Origin::default(),
        });
        id
    }

    /// Adds a fault from one time to another, in ns.
    pub(crate) fn fault(&mut self, kind: FaultKind, from: i64, until: i64) {
        let (from, until) = (NetTime::from_ns(from), NetTime::from_ns(until));
        self.system.faults.push(Fault { kind, from, until, origin: Origin::default() });
    }

    /// What the probes saw of `ns` of traffic, with all that was in flight.
    pub(crate) fn observed(&self, ns: i64) -> Observed {
        let simulation = Simulation {
            duration: Span::from_ns(ns),
            seed: 1,
            repetitions: 1,
            phases: Phases::Described,
        };
        simulate(&self.system, &self.plan, &simulation, &mut |_, _| true).expect("room")
    }

    /// An engine with everything drawn from `seed`, and noise until `noise_until` ns.
    pub(crate) fn engine(&self, seed: u64, noise_until: i64) -> Engine {
        let options = Options {
            seed,
            host_delays: true,
            load_bin: Span::from_ms(1),
            noise_until: NetTime::from_ns(noise_until),
            traffic_until: NetTime::from_ns(noise_until),
            model_channels: false,
        };
        Engine::new(&self.system, &self.plan, options)
    }
}

/// talker host – bridge – bridge – listener host, with two more hosts at the first bridge that
/// send noise to one at the second: the link between the bridges carries 1.66 times its rate.
pub(crate) fn two_bridges(mbps: u64, interval: i64, on_ms: i64, off_ms: i64) -> Network {
    let mut network = Network::new();
    let [talker, listener, first, second, sink] = [(); 5].map(|()| network.host());
    let [left, right] = [(); 2].map(|()| network.bridge(1_000));
    network.link(left, right, mbps, 50);
    for host in [talker, first, second] {
        network.link(host, left, mbps, 50);
    }
    for host in [listener, sink] {
        network.link(host, right, mbps, 50);
    }
    for bridge in [left, right] {
        network.limits(bridge, 340, u32::MAX);
    }
    for source in [first, second] {
        let (on, off) = (on_ms * 1_000_000, off_ms * 1_000_000);
        let spec = NoiseSpec { payload: 1_470, interval, jitter: true, start: 0, on, off };
        network.noise(source, sink, spec);
    }
    network
}

/// One delivered frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Delivery {
    pub(crate) channel: ChannelId,
    pub(crate) listener: usize,
    /// When the program had it, in ns.
    pub(crate) at: i64,
    /// When it arrived at the port, in ns.
    pub(crate) arrived: i64,
    pub(crate) octets: Vec<u8>,
}

/// Advances to `limit` ns and collects what is delivered; there are no wakes.
pub(crate) fn deliveries(engine: &mut Engine, limit: i64) -> Vec<Delivery> {
    let mut seen = Vec::new();
    while let Some(output) = engine.advance(NetTime::from_ns(limit)) {
        let Output::Delivered { channel, listener, arrived } = output else { panic!("{output:?}") };
        seen.push(Delivery {
            channel,
            listener,
            at: engine.now().as_ns(),
            arrived: arrived.as_ns(),
            octets: engine.delivered_frame().to_vec(),
        });
    }
    seen
}

/// The arrival times of one channel's frames.
pub(crate) fn arrivals(seen: &[Delivery], channel: ChannelId) -> Vec<i64> {
    seen.iter().filter(|d| d.channel == channel).map(|d| d.arrived).collect()
}

/// A periodic source without jitter, in ns.
pub(crate) fn every(interval: i64) -> Source {
    Source::Periodic { interval: Span::from_ns(interval), jitter: Span::ZERO }
}

/// Frames of so many octets at these times.
pub(crate) fn trace(octets: u32, times: &[i64]) -> Source {
    Source::Trace(times.iter().map(|at| (Span::from_ns(*at), Octets::new(octets))).collect())
}

/// Hosts around one bridge with 1 µs, all links of 1 Gb/s and 50 ns; the bridge is the last node.
pub(crate) fn star(hosts: usize) -> (Network, Vec<NodeId>, NodeId) {
    let mut network = Network::new();
    let hosts: Vec<NodeId> = (0..hosts).map(|_| network.host()).collect();
    let bridge = network.bridge(1_000);
    for host in &hosts {
        network.link(*host, bridge, 1_000, 50);
    }
    (network, hosts, bridge)
}

/// When a channel's talker sends a frame, in ns, and how many octets of it without the FCS.
pub(crate) type Send = (i64, ChannelId, usize);

/// Sends these frames, in the order of their times (those of one instant together), and collects
/// what is delivered at any time.
pub(crate) fn run(network: &Network, sends: &[Send]) -> Vec<Delivery> {
    run_on(&mut network.engine(1, 0), sends)
}

/// [`run`] on an engine.
pub(crate) fn run_on(engine: &mut Engine, sends: &[Send]) -> Vec<Delivery> {
    let mut seen = Vec::new();
    for (at, channel, octets) in sends {
        if engine.now().as_ns() < *at {
            seen.extend(deliveries(engine, *at));
        }
        engine.send(*channel, &vec![0; *octets]);
    }
    seen.extend(deliveries(engine, i64::MAX));
    seen
}
