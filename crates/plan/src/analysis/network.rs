//! The flows of a system on their ways, and what else is on the wires.

use super::arrival::Arrival;
use onbeat_model::plan::Plan;
use onbeat_model::port::{Policing, QUEUES, TokenBucket};
use onbeat_model::stream::FaultKind;
use onbeat_model::system::{
    BEST_EFFORT_QUEUE, ChannelId, NodeId, NodeKind, PortId, StreamIndex, System,
};
use onbeat_model::time::Span;
use onbeat_model::units::{Octets, frame};

/// From the preamble on, what a cut-through bridge waits for: addresses, tag and EtherType.
const CUT_THROUGH: Octets = Octets::new(26);

/// Whose frames a flow is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    Channel(ChannelId),
    Stream(StreamIndex),
}

/// The frames of one channel or stream on their way.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    pub(crate) whose: Whose,
    /// The queue of every port on the way.
    pub(crate) queue: usize,
    /// What its source sends.
    pub(crate) arrival: Arrival,
    /// Its bucket at queues with asynchronous shaping.
    pub(crate) regulator: Option<TokenBucket>,
    /// What its first bridge lets through.
    pub(crate) meter: Option<TokenBucket>,
    /// Its source ignores its limits: only the meter, if there is one, holds it.
    pub(crate) babbles: bool,
    /// From release to the queue of the talker's port.
    pub(crate) stack: [Span; 2],
    /// Each port of its ways once, upstream before downstream; the talker's first.
    pub(crate) hops: Vec<Hop>,
}

impl Flow {
    /// The position of the hop at a port, which must be one of its ways.
    pub(crate) fn hop_at(&self, port: PortId) -> usize {
        self.hops.iter().position(|hop| hop.port == port).expect("a port of its ways")
    }
}

/// One flow at one port.
#[derive(Clone, Debug)]
pub(crate) struct Hop {
    pub(crate) port: PortId,
    /// The hops before it; more than one where ways of a replicated stream meet.
    pub(crate) from: Vec<From>,
}

/// How frames get from one port to the next queue.
#[derive(Clone, Debug)]
pub(crate) struct From {
    /// Position in [`Flow::hops`].
    pub(crate) hop: usize,
    /// From the start of transmission to being queued, at least and at most.
    pub(crate) travel: [Span; 2],
}

/// A system as the analysis sees it.
#[derive(Debug)]
pub(crate) struct Network<'a> {
    pub(crate) system: &'a System,
    pub(crate) plan: &'a Plan,
    pub(crate) flows: Vec<Flow>,
    /// Per port and queue, the longest frame that may be there.
    pub(crate) longest: Vec<[Octets; QUEUES]>,
    /// Per port and queue: whether it may hold traffic without any limit.
    pub(crate) unlimited: Vec<[bool; QUEUES]>,
}

impl<'a> Network<'a> {
    pub(crate) fn new(system: &'a System, plan: &'a Plan) -> Self {
        let ports = system.ports.len();
        let mut network = Self {
            system,
            plan,
            flows: Vec::with_capacity(system.channels.len() + system.streams.len()),
            longest: vec![[Octets::default(); QUEUES]; ports],
            unlimited: vec![[false; QUEUES]; ports],
        };
        for id in (0..system.channels.len() as u32).map(ChannelId) {
            network.add_channel(id);
        }
        for id in (0..system.streams.len() as u32).map(StreamIndex) {
            network.add_stream(id);
        }
        network.add_noise();
        network.mark_lengths();
        network
    }

    fn add_channel(&mut self, id: ChannelId) {
        let (channel, planned) = (self.system.channel(id), self.plan.channel(id));
        let queue = if planned.protected { channel.class.queue() } else { BEST_EFFORT_QUEUE };
        let arrival = Arrival::of_channel(self.system, channel);
        let ways: Vec<_> = planned.paths.iter().map(Vec::as_slice).collect();
        let flow = Flow {
            whose: Whose::Channel(id),
            queue,
            regulator: None,
            meter: None,
            babbles: false,
            stack: self.stack(channel.talker),
            hops: self.hops(&ways, queue, arrival.octets),
            arrival,
        };
        if planned.protected {
            // Reservations are made among traffic that no description knows.
            for port in planned.tree_ports() {
                self.longest[port.index()][BEST_EFFORT_QUEUE] = frame::MAX_TAGGED;
            }
        }
        self.flows.push(flow);
    }

    fn add_stream(&mut self, id: StreamIndex) {
        let stream = &self.system.streams[id.index()];
        let queue = usize::from(stream.traffic_class);
        let babbles = self.system.faults.iter().any(|fault| fault.kind == FaultKind::Babble(id.0));
        let arrival = match babbles {
            true => Arrival::unlimited(stream.frame),
            false => Arrival::of_stream(self.system, stream),
        };
        let ways: Vec<_> = self.plan.stream(id).paths.iter().flatten().map(Vec::as_slice).collect();
        let meter = stream.policing.as_ref().and_then(|Policing { meter, .. }| *meter);
        let flow = Flow {
            whose: Whose::Stream(id),
            queue,
            regulator: stream.regulator,
            meter,
            babbles,
            stack: self.stack(stream.talker),
            hops: self.hops(&ways, queue, arrival.octets),
            arrival,
        };
        self.flows.push(flow);
    }

    fn stack(&self, talker: NodeId) -> [Span; 2] {
        match &self.system.node(talker).kind {
            NodeKind::Host(host) => [host.stack_tx.min(), host.stack_tx.max()],
            NodeKind::Bridge(_) => unreachable!("a talker is a host"),
        }
    }

    fn hops(&self, ways: &[&[PortId]], queue: usize, octets: [Octets; 2]) -> Vec<Hop> {
        let mut hops: Vec<Hop> = Vec::new();
        // Ways that part and meet again: a hop comes after all that lead to it.
        let longest = ways.iter().map(|way| way.len()).max().unwrap_or(0);
        let depth = |port: PortId| {
            let depths = ways.iter().filter_map(|way| way.iter().position(|p| *p == port));
            depths.max().unwrap_or(0)
        };
        for level in 0..longest {
            for way in ways {
                let here = way.iter().filter(|port| depth(**port) == level);
                for &port in here {
                    if hops.iter().all(|hop| hop.port != port) {
                        hops.push(Hop { port, from: Vec::new() });
                    }
                }
            }
        }
        for way in ways {
            for pair in way.windows(2) {
                let [before, at] = [pair[0], pair[1]].map(|port| {
                    hops.iter().position(|hop| hop.port == port).expect("a port of a way")
                });
                let travel = self.travel(pair[0], queue, octets, Some(pair[1]));
                if hops[at].from.iter().all(|from| from.hop != before) {
                    hops[at].from.push(From { hop: before, travel });
                }
            }
        }
        hops
    }

    /// From the start of a transmission at `port` to being queued at `next`, or to the arrival at
    /// the host at the other end.
    pub(crate) fn travel(
        &self,
        port: PortId,
        queue: usize,
        octets: [Octets; 2],
        next: Option<PortId>,
    ) -> [Span; 2] {
        let link = self.system.link_of(port);
        let peer = self.system.node(self.system.port(self.system.port(port).peer).node);
        let mut sent = octets.map(|octets| link.rate.time_for(frame::PREAMBLE + octets));
        let mut forwarding = Span::ZERO;
        if let NodeKind::Bridge(bridge) = &peer.kind {
            forwarding = bridge.forwarding;
            let whole = self.plan.ports[port.index()].settings.preemptable >> queue & 1 == 0;
            let slower = next.is_some_and(|next| self.system.link_of(next).rate <= link.rate);
            if bridge.cut_through && whole && slower {
                sent = [link.rate.time_for(CUT_THROUGH); 2];
            }
        }
        sent.map(|sent| sent + link.propagation + forwarding)
    }

    fn add_noise(&mut self) {
        let learns = |kind: &NodeKind| matches!(kind, NodeKind::Bridge(b) if b.learning);
        let floods = self.system.nodes.iter().any(|node| learns(&node.kind));
        let all: Vec<PortId> = (0..self.system.ports.len() as u32).map(PortId).collect();
        for (noise, path) in self.system.noise.iter().zip(&self.plan.noise) {
            let octets = frame::of_udp(noise.payload);
            for port in if floods { &all } else { path } {
                let longest = &mut self.longest[port.index()][BEST_EFFORT_QUEUE];
                *longest = octets.max(*longest);
                self.unlimited[port.index()][BEST_EFFORT_QUEUE] = true;
            }
        }
    }

    fn mark_lengths(&mut self) {
        for flow in &self.flows {
            for hop in &flow.hops {
                let longest = &mut self.longest[hop.port.index()][flow.queue];
                *longest = flow.arrival.octets[1].max(*longest);
            }
        }
    }
}
