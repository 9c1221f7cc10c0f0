//! Cases: a system, a stream of it, the terms of its bound, and what the engine is to do.

use crate::build::Net;
use onbeat_bounds::plan;
use onbeat_model::diagnostic::Origin;
use onbeat_model::observed::Observed;
use onbeat_model::plan::Plan;
use onbeat_model::port::{GateControl, GateEntry, PortSettings, Selection, TokenBucket};
use onbeat_model::stream::{Source, Stream};
use onbeat_model::system::{Bridge, NodeKind, PortId};
use onbeat_model::time::{NetTime, Span};
use onbeat_model::units::{BitRate, Octets};
use onbeat_net::{Phases, Simulation, simulate_one};

/// 100 Mb/s.
pub(crate) const FAST: u64 = 100_000_000;
/// 1 Gb/s.
pub(crate) const GIGABIT: u64 = 1_000_000_000;

/// How long so many octets occupy a wire of 100 Mb/s.
pub(crate) const fn wire(octets: i64) -> i64 {
    octets * 80
}

/// From the start of a frame that occupies so many octets to its last one: all but the gap.
pub(crate) const fn sent(octets: i64) -> i64 {
    (octets - 12) * 80
}

/// `hosts`, each with a link of 100 Mb/s to `b`.
pub(crate) fn star(hosts: &[&str]) -> Net {
    let mut net = Net::new(hosts, &["b"]);
    for host in hosts {
        net.link(host, "b", FAST);
    }
    net
}

/// `h1` and `h2` with a link of 100 Mb/s.
pub(crate) fn pair() -> Net {
    let mut net = Net::new(&["h1", "h2"], &[]);
    net.link("h1", "h2", FAST);
    net
}

/// `hosts` at the bridge `b` and `sinks` at the bridge `c`, which `b` has a link to.
pub(crate) fn tandem(hosts: &[&str], sinks: &[&str]) -> Net {
    let mut net = Net::new(&[hosts, sinks].concat(), &["b", "c"]);
    for host in hosts {
        net.link(host, "b", FAST);
    }
    net.link("b", "c", FAST);
    for host in sinks {
        net.link("c", host, FAST);
    }
    net
}

impl Net {
    /// A stream of one frame only, of so many octets of the wire, released at the epoch.
    pub(crate) fn stream(
        &mut self,
        from: &str,
        to: &[&str],
        queue: u8,
        octets: u32,
    ) -> &mut Stream {
        let (talker, listeners) = (self.id(from), to.iter().map(|name| self.id(name)).collect());
        let frame = Octets::new(octets - 20);
        self.0.streams.push(Stream {
            name: format!("s{}", self.0.streams.len()),
            talker,
            listeners,
            traffic_class: queue,
            vlan: 2,
            pcp: 3,
            frame: [frame; 2],
            source: Source::Trace(vec![(Span::ZERO, frame)]),
            phase: Span::ZERO,
            regulator: None,
            policing: None,
            paths: Default::default(),
            deadline: None,
            origin: Origin::default(),
        });
        self.0.streams.last_mut().expect("just added")
    }

    /// The port of `node` towards `peer`.
    pub(crate) fn port(&self, node: &str, peer: &str) -> PortId {
        let (node, peer) = (self.id(node), self.id(peer));
        let leads = |port: &&PortId| self.0.port(self.0.port(**port).peer).node == peer;
        *self.0.node(node).ports.iter().find(leads).expect("a link")
    }

    /// How the port of `node` towards `peer` sends.
    pub(crate) fn settings(&mut self, node: &str, peer: &str) -> &mut PortSettings {
        let port = self.port(node, peer);
        &mut self.0.ports[port.index()].settings
    }

    /// Credit-based shaping of a queue.
    pub(crate) fn credit(&mut self, node: &str, peer: &str, queue: usize, mbps: u64) {
        let idle_slope = BitRate::from_mbps(mbps);
        self.settings(node, peer).selection[queue] = Selection::CreditBased { idle_slope };
    }

    /// Gates: a cycle, and what is open for how long, in nanoseconds.
    pub(crate) fn gates(
        &mut self,
        node: &str,
        peer: &str,
        entries: &[(u8, i64)],
        length_aware: bool,
    ) {
        let entry = |&(open, ns): &(u8, i64)| GateEntry { open, span: Span::from_ns(ns) };
        self.settings(node, peer).gates = vec![GateControl {
            base: NetTime::ZERO,
            cycle: entries.iter().map(|entry| Span::from_ns(entry.1)).sum(),
            entries: entries.iter().map(entry).collect(),
            length_aware,
        }];
    }

    pub(crate) fn bridge(&mut self, name: &str) -> &mut Bridge {
        match &mut self.node(name).kind {
            NodeKind::Bridge(bridge) => bridge,
            NodeKind::Host(_) => panic!("{name} is a host"),
        }
    }
}

/// What makes streams of one frame into others.
pub(crate) trait Shape {
    /// Released so many nanoseconds after the epoch.
    fn at(&mut self, ns: i64) -> &mut Self;
    /// So many frames at once.
    fn frames(&mut self, count: usize) -> &mut Self;
    /// One frame each so many nanoseconds.
    fn every(&mut self, ns: i64) -> &mut Self;
    /// A bucket at asynchronous queues: bit/s and octets of the wire.
    fn bucket(&mut self, bps: u64, octets: u32) -> &mut Self;
}

impl Shape for Stream {
    fn at(&mut self, ns: i64) -> &mut Self {
        self.phase = Span::from_ns(ns);
        self
    }
    fn frames(&mut self, count: usize) -> &mut Self {
        self.source = Source::Trace(vec![(Span::ZERO, self.frame[1]); count]);
        self
    }
    fn every(&mut self, ns: i64) -> &mut Self {
        self.source = Source::Periodic { interval: Span::from_ns(ns), jitter: Span::ZERO };
        self
    }
    fn bucket(&mut self, bps: u64, octets: u32) -> &mut Self {
        self.regulator = Some(bucket(bps, octets));
        self
    }
}

pub(crate) fn bucket(bps: u64, octets: u32) -> TokenBucket {
    TokenBucket { rate: BitRate::from_bps(bps), burst: Octets::new(octets) }
}

/// A system with its plan, and what the engine did.
pub(crate) struct Case {
    pub(crate) net: Net,
    pub(crate) plan: Plan,
    pub(crate) seen: Observed,
}

impl Case {
    pub(crate) fn new(net: Net) -> Self {
        let plan = plan(&net.0, true).unwrap();
        let simulation = Simulation {
            duration: Span::from_ms(50),
            seed: 1,
            repetitions: 1,
            phases: Phases::Described,
        };
        let seen = simulate_one(&net.0, &plan, &simulation, 0, None, &mut |_| true).expect("room");
        Self { net, plan, seen }
    }

    /// The terms of a stream's bound at its first listener are `terms`, and the longest latency
    /// that the engine sees is `longest`: no more than the bound.
    #[track_caller]
    pub(crate) fn has(&self, stream: usize, terms: &[i64], longest: i64) -> &Self {
        self.has_at(stream, 0, terms, longest)
    }

    /// The same at one of several listeners.
    #[track_caller]
    pub(crate) fn has_at(
        &self,
        stream: usize,
        listener: usize,
        terms: &[i64],
        longest: i64,
    ) -> &Self {
        let bound = self.plan.streams[stream].bounds[listener].as_ref().expect("a bound");
        let planned: Vec<_> = bound.terms.iter().map(|t| (&t.what, t.span.as_ns())).collect();
        let found: Vec<_> = planned.iter().map(|term| term.1).collect();
        let latency = &self.seen.streams[stream].listeners[listener];
        let seen = latency.max.map(Span::as_ns);
        assert_eq!(found, terms, "bound {planned:?}, seen {seen:?}");
        assert_eq!(seen, Some(longest), "of {}", bound.total());
        assert!(longest <= bound.total().as_ns(), "{longest} is beyond {}", bound.total());
        assert!(latency.min.is_some_and(|min| min >= bound.best), "{:?}", latency.min);
        self
    }

    /// The shortest possible latency of a stream is `best`, and the engine sees it.
    #[track_caller]
    pub(crate) fn best(&self, stream: usize, best: i64) -> &Self {
        let bound = self.plan.streams[stream].bounds[0].as_ref().expect("a bound");
        let seen = self.seen.streams[stream].listeners[0].min.map(Span::as_ns);
        assert_eq!((bound.best.as_ns(), seen), (best, Some(best)));
        self
    }

    /// What the engine sees is at least so many thousandths of the bound, but not one more.
    #[track_caller]
    pub(crate) fn near(&self, stream: usize, per_mille: i64) -> &Self {
        let bound = self.plan.streams[stream].bounds[0].as_ref().expect("a bound").total();
        let seen = self.seen.streams[stream].listeners[0].max.expect("a frame");
        assert_eq!(seen.as_ns() * 1_000 / bound.as_ns(), per_mille, "{seen} of {bound}");
        self
    }

    /// The bound of a stream has these terms; the engine, whose source is random, stays within it
    /// and comes at least to so many thousandths of it.
    #[track_caller]
    pub(crate) fn within(&self, stream: usize, terms: &[i64], per_mille: i64) -> &Self {
        let bound = self.plan.streams[stream].bounds[0].as_ref().expect("a bound");
        let found: Vec<_> = bound.terms.iter().map(|t| t.span.as_ns()).collect();
        let seen = self.seen.streams[stream].listeners[0].max.expect("a frame");
        assert_eq!(found, terms, "bound {:?}, seen {seen}", bound.terms);
        assert!(seen <= bound.total(), "{seen} is beyond {}", bound.total());
        assert!(seen.as_ns() * 1_000 >= bound.total().as_ns() * per_mille, "{seen}");
        self
    }

    /// At most so many frames and octets wait in a queue, and the engine sees so many.
    #[track_caller]
    pub(crate) fn backlog(
        &self,
        (node, peer, queue): (&str, &str, usize),
        bound: [u64; 2],
        deepest: [u64; 2],
    ) -> &Self {
        let port = self.net.port(node, peer).index();
        let planned = self.plan.backlogs[port][queue].expect("a bound of the backlog");
        let seen = &self.seen.ports[port].queues[queue];
        let seen = [seen.deepest_frames.into(), seen.deepest_octets.into()];
        assert_eq!(([planned.frames, planned.octets], seen), (bound, deepest));
        assert!(deepest[0] <= bound[0] && deepest[1] <= bound[1]);
        self
    }
}
