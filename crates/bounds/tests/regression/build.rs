//! Small systems by hand, and what the engine does with them against what is promised.

use onbeat_bounds::plan;
use onbeat_model::diagnostic::Origin;
use onbeat_model::port::{GateControl, GateEntry, PortSettings};
use onbeat_model::stream::{Source, Stream};
use onbeat_model::system::{
    Bridge, Delay, Host, Link, LinkId, Node, NodeId, NodeKind, Port, PortId, QueueLimits, System,
};
use onbeat_model::time::{ClockError, NetTime, Span};
use onbeat_model::units::{BitRate, MacAddress, Octets};
use onbeat_net::{Engine, Options};

/// Streams release frames for as long.
const RUN: Span = Span::from_ms(30);

pub(crate) struct Net(pub(crate) System);

impl Net {
    pub(crate) fn new() -> Self {
        Self(System::empty("regression", Span::from_ms(100)))
    }

    fn node(&mut self, name: String, kind: NodeKind) -> NodeId {
        let queue = QueueLimits { frames: 100_000, octets: Octets::new(1 << 27) };
        let (ports, origin) = (Vec::new(), Origin::default());
        let clock = ClockError::default();
        self.0.nodes.push(Node { name, kind, clock, queue, ports, origin });
        NodeId(self.0.nodes.len() as u32 - 1)
    }

    pub(crate) fn host(&mut self) -> NodeId {
        let at = self.0.nodes.len();
        let mac = MacAddress([2, 0, 0, 0, 0, at as u8 + 1]);
        let zero = Delay::Zero;
        let host = Host { mac, stack_tx: zero.clone(), stack_rx: zero, ..Host::default() };
        self.node(format!("h{at}"), NodeKind::Host(host))
    }

    pub(crate) fn bridge(&mut self) -> NodeId {
        let at = self.0.nodes.len();
        let bridge = Bridge { forwarding: Span::ZERO, ..Bridge::default() };
        self.node(format!("b{at}"), NodeKind::Bridge(bridge))
    }

    /// Links two nodes; the port of the first.
    pub(crate) fn link(&mut self, a: NodeId, b: NodeId, bps: u64) -> PortId {
        let link = LinkId(self.0.links.len() as u32);
        let ports = [PortId(2 * link.0), PortId(2 * link.0 + 1)];
        for (end, node) in [a, b].into_iter().enumerate() {
            let name = format!("p{}", self.0.node(node).ports.len() + 1);
            let settings = PortSettings::default();
            self.0.ports.push(Port { name, node, link, peer: ports[1 - end], settings });
            self.0.nodes[node.index()].ports.push(ports[end]);
        }
        let (rate, propagation) = (BitRate::from_bps(bps), Span::ZERO);
        self.0.links.push(Link { ports, rate, propagation, origin: Origin::default() });
        ports[0]
    }

    pub(crate) fn settings(&mut self, port: PortId) -> &mut PortSettings {
        &mut self.0.ports[port.index()].settings
    }

    /// Frames of one length, of any number at any instants.
    pub(crate) fn trace(
        &mut self,
        (talker, listener): (NodeId, NodeId),
        traffic_class: u8,
        octets: u32,
        instants: &[i64],
    ) -> usize {
        let octets = Octets::new(octets);
        let frames = instants.iter().map(|at| (Span::from_ns(*at), octets)).collect();
        self.stream((talker, listener), traffic_class, octets, Source::Trace(frames))
    }

    pub(crate) fn stream(
        &mut self,
        (talker, listener): (NodeId, NodeId),
        traffic_class: u8,
        octets: Octets,
        source: Source,
    ) -> usize {
        self.0.streams.push(Stream {
            name: format!("s{}", self.0.streams.len()),
            talker,
            paths: Default::default(),
            listeners: vec![listener],
            traffic_class,
            vlan: 2,
            pcp: 3,
            frame: [octets, octets],
            source,
            phase: Span::ZERO,
            regulator: None,
            policing: None,
            deadline: None,
            origin: Origin::default(),
        });
        self.0.streams.len() - 1
    }

    /// Per stream, the longest latency seen and the bound, in nanoseconds.
    pub(crate) fn run(&self) -> Vec<(i64, Option<i64>)> {
        let plan = plan(&self.0, true).unwrap_or_else(|e| panic!("{e:?}"));
        let end = NetTime::ZERO + RUN;
        let options = Options {
            seed: 1,
            host_delays: true,
            load_bin: Span::from_s(1),
            noise_until: end,
            traffic_until: end,
            model_channels: true,
        };
        let mut engine = Engine::new(&self.0, &plan, options);
        engine.advance(end + Span::from_ms(10));
        let seen = engine.observed();
        for (queues, bounds) in seen.ports.iter().zip(&plan.backlogs) {
            for (seen, bound) in queues.queues.iter().zip(bounds) {
                let Some(bound) = bound else { continue };
                let seen = (u64::from(seen.deepest_frames), u64::from(seen.deepest_octets));
                let kept = seen.0 <= bound.frames && seen.1 <= bound.octets;
                assert!(kept, "{seen:?} frames and octets of {bound:?}");
            }
        }
        let both = plan.streams.iter().zip(&seen.streams);
        both.map(|(planned, flow)| {
            if let (Some(bound), Some(min)) = (&planned.bounds[0], flow.listeners[0].min) {
                assert!(min >= bound.best, "took {min}, best {}", bound.best);
            }
            let max = flow.listeners[0].max.map_or(0, |max| max.as_ns());
            (max, planned.bounds[0].as_ref().map(|bound| bound.total().as_ns()))
        })
        .collect()
    }

    /// Nothing takes longer than promised, and everything has a bound.
    pub(crate) fn keeps(&self) {
        let seen = self.run();
        println!("{seen:?}");
        for (stream, (max, bound)) in seen.iter().enumerate() {
            let bound = bound.expect("a bound");
            assert!(*max <= bound, "stream {stream} took {max} of {bound}");
        }
    }
}

/// A gate control list from `(open, span)`.
pub(crate) fn list(
    base: i64,
    cycle: i64,
    length_aware: bool,
    entries: &[(u8, i64)],
) -> GateControl {
    let entry = |&(open, span): &(u8, i64)| GateEntry { open, span: Span::from_ns(span) };
    GateControl {
        base: NetTime::from_ns(base),
        cycle: Span::from_ns(cycle),
        entries: entries.iter().map(entry).collect(),
        length_aware,
    }
}
