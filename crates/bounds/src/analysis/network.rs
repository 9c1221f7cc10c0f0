//! The flows of a system on their paths, and what else is on the wires.

use super::arrival::Arrival;
use crate::srp;
use onbeat_model::plan::Plan;
use onbeat_model::port::{Policing, QUEUES, TokenBucket};
use onbeat_model::system::{
    BEST_EFFORT_QUEUE, CONTROL_QUEUE, ChannelId, NodeId, NodeKind, PortId, StreamIndex, System,
};
use onbeat_model::time::Span;
use onbeat_model::units::{Octets, frame};
use std::collections::{BTreeMap, BTreeSet};

/// From the preamble on, what a cut-through bridge waits for: addresses, tag and EtherType.
const CUT_THROUGH: Octets = Octets::new(26);

/// The channel or stream whose frames a flow is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    Channel(ChannelId),
    Stream(StreamIndex),
}

/// The frames of one channel or stream on their path.
#[derive(Clone, Debug)]
pub(crate) struct SystemFlow {
    pub(crate) owner: Owner,
    /// The queue of every port on the path.
    pub(crate) queue: usize,
    /// What its source sends.
    pub(crate) arrival: Arrival,
    /// What its first bridge lets through.
    pub(crate) meter: Option<TokenBucket>,
    /// Its source ignores its limits: only the meter, if there is one, holds it.
    pub(crate) babbles: bool,
    /// From release to the queue of the talker's port.
    pub(crate) stack: [Span; 2],
    /// Each port of its paths once, upstream before downstream; the talker's first.
    pub(crate) hops: Vec<PortHop>,
}

impl SystemFlow {
    /// The position of the hop at a port, which must be one of its paths.
    pub(crate) fn hop_at(&self, port: PortId) -> usize {
        self.hops.iter().position(|hop| hop.port == port).expect("a port of its ways")
    }
}

/// One flow at one port.
#[derive(Clone, Debug)]
pub(crate) struct PortHop {
    pub(crate) port: PortId,
    /// Whether the next bridge forwards its frames before it has all of them.
    pub(crate) cut_through: bool,
    /// Its bucket there, if the queue has asynchronous shaping.
    pub(crate) regulator: Option<TokenBucket>,
    /// The hops before it; more than one where paths of a replicated stream join.
    pub(crate) from: Vec<Upstream>,
}

/// The hop before one, and how long frames take from there to the queue.
#[derive(Clone, Debug)]
pub(crate) struct Upstream {
    /// Position in [`SystemFlow::hops`].
    pub(crate) hop: usize,
    /// From the start of transmission to being queued, at least and at most.
    pub(crate) travel: [Span; 2],
}

/// A system as the analysis sees it.
#[derive(Debug)]
pub(crate) struct FlowNetwork<'a> {
    pub(crate) system: &'a System,
    pub(crate) plan: &'a Plan,
    pub(crate) flows: Vec<SystemFlow>,
    /// Per port and queue, the longest frame that may be there.
    pub(crate) longest: Vec<[Octets; QUEUES]>,
    /// Per port and queue: whether it may hold traffic without any limit.
    pub(crate) unlimited: Vec<[bool; QUEUES]>,
}

impl<'a> FlowNetwork<'a> {
    /// Whether a flow's frames have windows of gates to themselves at every port.
    pub(crate) fn has_windows(&self, flow: &SystemFlow) -> bool {
        matches!(flow.owner, Owner::Channel(id) if self.plan.channel(id).launch.is_some())
    }

    /// `babbling`: streams that a fault lets babble do so.
    pub(crate) fn new(system: &'a System, plan: &'a Plan, babbling: bool) -> Self {
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
            network.add_stream(id, babbling);
        }
        network.add_noise();
        network.add_tcp();
        network.add_flooded();
        network.add_gptp();
        network.add_reservation_protocol();
        network.add_dedicated();
        network.mark_lengths();
        network
    }

    fn add_channel(&mut self, id: ChannelId) {
        let (channel, planned) = (self.system.channel(id), self.plan.channel(id));
        let queue = if planned.protected { channel.class.queue() } else { BEST_EFFORT_QUEUE };
        let arrival = Arrival::of_channel(self.system, channel);
        let paths: Vec<_> = planned.paths.iter().map(Vec::as_slice).collect();
        let mut hops = self.hops(&paths, queue, arrival.octets, false);
        for hop in &mut hops {
            hop.regulator = planned.scheduler(hop.port).map(|scheduler| scheduler.bucket);
        }
        let flow = SystemFlow {
            owner: Owner::Channel(id),
            queue,
            meter: None,
            babbles: false,
            stack: self.stack(channel.talker),
            hops,
            arrival,
        };
        if planned.protected {
            // Reservations are made among best effort that no description knows.
            for port in planned.tree_ports() {
                self.longest[port.index()][BEST_EFFORT_QUEUE] = frame::MAX_TAGGED;
                self.unlimited[port.index()][BEST_EFFORT_QUEUE] = true;
            }
        }
        self.flows.push(flow);
    }

    fn add_stream(&mut self, id: StreamIndex, babbling: bool) {
        let stream = &self.system.streams[id.index()];
        let queue = usize::from(stream.traffic_class);
        let babbles = babbling && self.system.babbles(id);
        let arrival = match babbles {
            true => Arrival::unlimited(stream.frame),
            false => Arrival::of_stream(self.system, stream),
        };
        let paths: Vec<_> =
            self.plan.stream(id).paths.iter().flatten().map(Vec::as_slice).collect();
        let meter = stream.policing.as_ref().and_then(|Policing { meter, .. }| *meter);
        let mut hops = self.hops(&paths, queue, arrival.octets, stream.policing.is_some());
        hops.iter_mut().for_each(|hop| hop.regulator = stream.regulator);
        let flow = SystemFlow {
            owner: Owner::Stream(id),
            queue,
            meter,
            babbles,
            stack: self.stack(stream.talker),
            hops,
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

    fn hops(
        &self,
        paths: &[&[PortId]],
        queue: usize,
        octets: [Octets; 2],
        metered: bool,
    ) -> Vec<PortHop> {
        let mut hops: Vec<PortHop> = Vec::new();
        // Paths that part and join again: a hop comes after all that lead to it.
        let mut depth: BTreeMap<PortId, usize> = BTreeMap::new();
        let mut edges: BTreeSet<(PortId, PortId)> = BTreeSet::new();
        for path in paths {
            for (at, port) in path.iter().enumerate() {
                let deepest = depth.entry(*port).or_default();
                *deepest = at.max(*deepest);
            }
        }
        let deepest = depth.values().max().map_or(0, |deepest| deepest + 1);
        let mut levels: Vec<Vec<PortId>> = vec![Vec::new(); deepest];
        let mut seen = BTreeSet::new();
        for port in paths.iter().copied().flatten().filter(|port| seen.insert(**port)) {
            levels[depth[port]].push(*port);
        }
        let mut place: BTreeMap<PortId, usize> = BTreeMap::new();
        for port in levels.into_iter().flatten() {
            place.insert(port, hops.len());
            hops.push(PortHop { port, cut_through: false, regulator: None, from: Vec::new() });
        }
        let mut after: BTreeMap<PortId, Vec<PortId>> = BTreeMap::new();
        let pairs = paths.iter().flat_map(|path| path.windows(2)).map(|pair| (pair[0], pair[1]));
        let pairs: Vec<_> = pairs.filter(|pair| edges.insert(*pair)).collect();
        pairs.iter().for_each(|(before, next)| after.entry(*before).or_default().push(*next));
        for (at, hop) in hops.iter_mut().enumerate() {
            let after = after.get(&hop.port).into_iter().flatten().copied();
            let whole = metered && at == 0;
            hop.cut_through = !whole && self.cuts_through(hop.port, queue, after);
        }
        for (before, next) in pairs {
            let before = place[&before];
            let travel = self.travel(&hops[before], octets);
            hops[place[&next]].from.push(Upstream { hop: before, travel });
        }
        hops
    }

    /// Whether the bridge at the other end forwards what is in before it has all of it: none of
    /// the ports to which it goes may be faster, and what may be interrupted is stored.
    fn cuts_through(
        &self,
        port: PortId,
        queue: usize,
        mut after: impl Iterator<Item = PortId>,
    ) -> bool {
        let peer = self.system.node(self.system.port(self.system.port(port).peer).node);
        let bridge = matches!(&peer.kind, NodeKind::Bridge(bridge) if bridge.cut_through);
        let whole = self.plan.ports[port.index()].settings.preemptable >> queue & 1 == 0;
        let rate = |port| self.system.link_of(port).rate;
        bridge && whole && after.all(|next| rate(next) <= rate(port))
    }

    /// From the start of a transmission at a hop to being queued at the next, or to the arrival at
    /// the host at the other end.
    pub(crate) fn travel(&self, hop: &PortHop, octets: [Octets; 2]) -> [Span; 2] {
        let link = self.system.link_of(hop.port);
        let peer = self.system.node(self.system.port(self.system.port(hop.port).peer).node);
        let (forwarding, cut) = match &peer.kind {
            NodeKind::Bridge(bridge) => (bridge.forwarding, hop.cut_through),
            NodeKind::Host(_) => (Span::ZERO, false),
        };
        let sent =
            |octets| link.rate.time_for(if cut { CUT_THROUGH } else { frame::PREAMBLE + octets });
        octets.map(|octets| sent(octets) + link.propagation + forwarding)
    }

    /// The queues of a port whose frames go before those of one queue: the higher ones; but express
    /// frames go before all that may be interrupted, whatever their classes.
    pub(crate) fn goes_first(&self, port: usize, queue: usize) -> u8 {
        let preemptable = self.plan.ports[port].settings.preemptable;
        let higher = (0xfeu16 << queue) as u8;
        match preemptable >> queue & 1 {
            0 => higher & !preemptable,
            _ => higher | !preemptable,
        }
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

    /// What a connection sends is limited by nothing that a bound could count with: each loss adds
    /// to it.
    fn add_tcp(&mut self) {
        for [data, acknowledgements] in &self.plan.tcp {
            for port in data.iter().chain(acknowledgements) {
                let longest = &mut self.longest[port.index()][BEST_EFFORT_QUEUE];
                *longest = frame::MAX_UNTAGGED.max(*longest);
                self.unlimited[port.index()][BEST_EFFORT_QUEUE] = true;
            }
        }
    }

    /// Bridges that learn send what goes to one host without a reservation along a spanning tree,
    /// or everywhere, whatever its planned path is.
    fn add_flooded(&mut self) {
        let learns = |kind: &NodeKind| matches!(kind, NodeKind::Bridge(b) if b.learning);
        if !self.system.nodes.iter().any(|node| learns(&node.kind)) {
            return;
        }
        let both = self.system.channels.iter().zip(&self.plan.channels);
        let loose = both.filter(|(c, planned)| !planned.protected && !c.destination.is_multicast());
        let Some(octets) = loose.map(|(channel, _)| channel.frame()).max() else {
            return;
        };
        for (longest, unlimited) in self.longest.iter_mut().zip(&mut self.unlimited) {
            longest[BEST_EFFORT_QUEUE] = octets.max(longest[BEST_EFFORT_QUEUE]);
            unlimited[BEST_EFFORT_QUEUE] = true;
        }
    }

    /// gPTP that takes part in runs sends best effort at every port, how much is not counted.
    fn add_gptp(&mut self) {
        if !self.system.synchronisation.is_some_and(|it| it.in_run) {
            return;
        }
        let octets = frame::of_gptp(self.system.nodes.len());
        for (longest, unlimited) in self.longest.iter_mut().zip(&mut self.unlimited) {
            longest[BEST_EFFORT_QUEUE] = octets.max(longest[BEST_EFFORT_QUEUE]);
            unlimited[BEST_EFFORT_QUEUE] = true;
        }
    }

    /// A protocol that reserves sends network control at every port, how much is not counted.
    fn add_reservation_protocol(&mut self) {
        if !self.plan.protected || !srp::is_used(self.system) {
            return;
        }
        for (longest, unlimited) in self.longest.iter_mut().zip(&mut self.unlimited) {
            longest[CONTROL_QUEUE] = frame::MAX_UNTAGGED.max(longest[CONTROL_QUEUE]);
            unlimited[CONTROL_QUEUE] = true;
        }
    }

    /// To a bridge with a dedicated path all is best effort of one queue, behind frames of stations
    /// that no description knows.
    fn add_dedicated(&mut self) {
        for (at, port) in self.system.ports.iter().enumerate() {
            if self.system.node(port.node).dedicated_path().is_some() {
                self.unlimited[at] = [true; QUEUES];
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
