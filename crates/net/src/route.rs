//! Forwarding, computed once from the plan: one hop per flow and way into an egress port.

use crate::event::MAX_INDEX;
use crate::learning::ActiveTopology;
use onbeat_model::plan::Plan;
use onbeat_model::system::{
    BEST_EFFORT_QUEUE, Channel, ChannelId, NodeId, NodeKind, NoiseId, PortId, System,
};
use std::collections::HashMap;

/// No bucket, no recovery.
pub(crate) const NONE: u32 = u32::MAX;
/// The VLAN of untagged frames (802.1Q-2022 Table 9-2).
const DEFAULT_VLAN: u16 = 1;

/// What a frame does at one egress port, and after it. A queued frame knows its hop, and by it its
/// flow and its way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hop {
    /// The port that sends the frame.
    pub(crate) port: u32,
    /// Whose frame it is: a place in [`Routes::flows`].
    pub(crate) flow: u32,
    /// Its bucket among those of the port, or [`NONE`].
    pub(crate) bucket: u32,
    /// Where ways meet: who eliminates duplicates before the port, or [`NONE`].
    pub(crate) recovery: u32,
    /// What happens at the other end of the link.
    pub(crate) next: NextHop,
    /// The queue of the port.
    pub(crate) queue: u8,
    /// Its frames need a reservation at the port that they do not have now.
    pub(crate) is_closed: bool,
}

/// What happens to a frame at the other end of a link.
#[derive(Clone, Copy, Debug)]
pub(crate) enum NextHop {
    /// A bridge queues a copy for each of `count` hops from `first` on.
    Forward { first: u32, count: u32 },
    /// The same, if the flow's filter lets it pass.
    Filter { first: u32, count: u32 },
    /// A bridge that learns queues a copy for each hop, or only for the first, which is the way
    /// (if `way`; else for none), when it knows the destination.
    Flood { first: u32, count: u32, way: bool },
    /// A listener gets it; its place in [`Routes::receivers`].
    Listener(u32),
    /// The frame of this noise source has reached its destination.
    Sink(u32),
    /// A protocol's frame has come to the neighbour; the participant there that hears it,
    /// or [`NOBODY`](crate::participant::NOBODY).
    Neighbour(u32),
    /// It has come to a node that does not want it.
    Nowhere,
}

/// What all hops of a flow share. Flows are the channels, then the streams, then the noise
/// sources, then the protocols on their nodes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flow {
    /// Its first hop.
    pub(crate) root: u32,
    pub(crate) talker: NodeId,
    /// The one host that it is for, as far as bridges that learn are concerned.
    pub(crate) destination: NodeId,
    /// Its receiving end on the talker's own host, or [`NONE`].
    pub(crate) own: u32,
}

/// The receiving endpoint of a channel or stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Receiver {
    pub(crate) flow: u32,
    /// The place in the flow's list of listeners.
    pub(crate) listener: usize,
    pub(crate) host: NodeId,
}

/// The forwarding tables of all bridges and hosts.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    /// The hops of one flow that follow the same hop stand together.
    pub(crate) hops: Vec<Hop>,
    pub(crate) flows: Vec<Flow>,
    /// All receiving ends, in the order of the flows and their listeners.
    pub(crate) receivers: Vec<Receiver>,
    /// Per place where ways meet, the length of its history.
    pub(crate) histories: Vec<u32>,
    /// Hops of channels and streams with a regulator, and the scheduler group (802.1Q-2022
    /// 8.6.5.6) of each: one per reception port and queue; at its talker each has its own.
    pub(crate) regulated: Vec<(u32, u32)>,
}

/// One flow, as it is laid out.
struct Layout<'a> {
    flow: u32,
    queue: usize,
    /// Each way, and what happens at its end.
    ways: Vec<(&'a [PortId], NextHop)>,
    /// Where ways meet, how long a history is kept; 0: no two may.
    history: u32,
}

impl Routes {
    /// # Panics
    /// When a path of the plan is not a walk from talker to listener, leaves its VLAN, or the
    /// paths of one flow without replication are no tree: the plan is wrong, not the user's input.
    pub(crate) fn new(system: &System, plan: &Plan, topology: Option<&ActiveTopology>) -> Self {
        assert_eq!(plan.channels.len(), system.channels.len());
        assert_eq!(plan.streams.len(), system.streams.len());
        assert_eq!(plan.noise.len(), system.noise.len());
        let mut routes = Self::default();
        for at in 0..system.channels.len() {
            routes.add_channel(system, plan, topology, at);
        }
        for at in 0..system.streams.len() {
            routes.add_stream(system, plan, at);
        }
        for (at, noise) in system.noise.iter().enumerate() {
            let path = plan.noise(NoiseId(at as u32));
            assert_walk(system, path, noise.from, noise.to);
            let last = NextHop::Sink(at as u32);
            let ends = [noise.from, noise.to];
            match topology {
                Some(topology) => {
                    routes.add_flood(system, plan, topology, DEFAULT_VLAN, ends, last);
                }
                None => {
                    let ways = vec![(path, last)];
                    routes.add_flow(ends, BEST_EFFORT_QUEUE, ways, 0);
                }
            }
        }
        assert!(routes.receivers.len() < MAX_INDEX && routes.hops.len() < NONE as usize);
        routes
    }

    fn add_channel(
        &mut self,
        system: &System,
        plan: &Plan,
        topology: Option<&ActiveTopology>,
        at: usize,
    ) {
        let channel: &Channel = &system.channels[at];
        let planned = plan.channel(ChannelId(at as u32));
        let listeners = channel.listeners.iter().enumerate();
        let ends: Vec<NextHop> = listeners.map(|(at, host)| self.add_end(at, *host)).collect();
        let mut ways = Vec::with_capacity(planned.paths.len());
        let mut own = NONE;
        for (listener, path) in planned.paths_to_listeners(ends.len()) {
            if let (true, NextHop::Listener(end)) =
                (channel.listeners[listener] == channel.talker, ends[listener])
            {
                own = end;
                continue;
            }
            assert_walk(system, path, channel.talker, channel.listeners[listener]);
            assert_members(system, plan, path, channel.vlan);
            ways.push((path, ends[listener]));
        }
        let history = channel.paths.history;
        let others = ends.len() - usize::from(own != NONE);
        if others == 0 {
            ways.push((&planned.paths[0][..], NextHop::Nowhere));
        }
        assert!(ways.len() == others.max(1) || history > 0, "a path for each listener");
        let ends = [channel.talker, channel.listeners[0]];
        let unicast = ways.len() == 1 && !channel.destination.is_multicast();
        match topology {
            Some(topology) if unicast && !planned.is_reserved() => {
                self.add_flood(system, plan, topology, channel.vlan, ends, ways[0].1);
            }
            _ => {
                let class = channel.class.queue();
                let queue = if planned.is_reserved() { class } else { BEST_EFFORT_QUEUE };
                let first_hop = self.hops.len();
                let comes_by = self.add_flow(ends, queue, ways, history);
                if !planned.schedulers.is_empty() {
                    self.regulate(system, first_hop, queue, &comes_by);
                }
            }
        }
        self.flows[at].own = own;
    }

    fn add_stream(&mut self, system: &System, plan: &Plan, at: usize) {
        let stream = &system.streams[at];
        let planned = &plan.streams[at];
        assert_eq!(planned.paths.len(), stream.listeners.len());
        let mut ways = Vec::new();
        let mut history = 0;
        for (listener, (host, paths)) in stream.listeners.iter().zip(&planned.paths).enumerate() {
            let end = self.add_end(listener, *host);
            for path in paths {
                assert_walk(system, path, stream.talker, *host);
                assert_members(system, plan, path, stream.vlan);
                ways.push((&path[..], end));
            }
            if paths.len() > 1 {
                history = stream.paths.history;
            }
        }
        let queue = usize::from(stream.traffic_class);
        let first_hop = self.hops.len();
        let ends = [stream.talker, stream.listeners[0]];
        let comes_by = self.add_flow(ends, queue, ways, history);
        if stream.regulator.is_some() {
            self.regulate(system, first_hop, queue, &comes_by);
        }
        if stream.policing.is_some() {
            let root = &mut self.hops[first_hop];
            if let NextHop::Forward { first, count } = root.next {
                root.next = NextHop::Filter { first, count };
            }
        }
    }

    /// The scheduler groups at the hops of the last flow.
    fn regulate(
        &mut self,
        system: &System,
        first_hop: usize,
        queue: usize,
        comes_by: &[Option<u32>],
    ) {
        let own = system.ports.len() + self.flows.len() - 1;
        let group = |(at_hop, from): (usize, &Option<u32>)| {
            let source = from.map_or(own, |port| system.ports[port as usize].peer.index());
            ((first_hop + at_hop) as u32, (source * 8 + queue) as u32)
        };
        self.regulated.extend(comes_by.iter().enumerate().map(group));
    }

    /// The receiving end on the talker's own host, for frames at its port.
    pub(crate) fn own_end(&self, hop: u32) -> Option<u32> {
        let flow = self.flows[self.hops[hop as usize].flow as usize];
        (flow.own != NONE && flow.root == hop).then_some(flow.own)
    }

    fn add_end(&mut self, listener: usize, host: NodeId) -> NextHop {
        self.receivers.push(Receiver { flow: self.flows.len() as u32, listener, host });
        NextHop::Listener((self.receivers.len() - 1) as u32)
    }

    /// Adds the flow of a protocol on a node, with a hop for each port of the node, and what
    /// happens at the other end of each; returns the first of these hops.
    pub(crate) fn add_protocol(
        &mut self,
        talker: NodeId,
        queue: usize,
        ports: impl Iterator<Item = (PortId, NextHop)>,
    ) -> u32 {
        let (root, flow) = (self.hops.len() as u32, self.flows.len() as u32);
        self.flows.push(Flow { root, talker, destination: talker, own: NONE });
        let layout = Layout { flow, queue, ways: Vec::new(), history: 0 };
        let hops = ports.map(|(port, next)| Hop { next, ..Hop::new(&layout, port.0) });
        self.hops.extend(hops);
        root
    }

    /// Adds the hops of the next flow. Returns per hop the port before it.
    fn add_flow(
        &mut self,
        [talker, destination]: [NodeId; 2],
        queue: usize,
        ways: Vec<(&[PortId], NextHop)>,
        history: u32,
    ) -> Vec<Option<u32>> {
        let root = self.hops.len() as u32;
        let flow = self.flows.len() as u32;
        self.flows.push(Flow { root, talker, destination, own: NONE });
        self.lay_out(&Layout { flow, queue, ways, history })
    }

    /// Adds a hop for each way into each port, those that follow the same port together, and
    /// returns per hop the port before it.
    fn lay_out(&mut self, layout: &Layout<'_>) -> Vec<Option<u32>> {
        let steps = Steps::of(layout);
        let root = self.hops.len();
        let mut comes_by = vec![None];
        let first = layout.ways[0].0[0].0;
        assert!(layout.ways.iter().all(|way| way.0[0].0 == first), "a talker has one port");
        self.hops.push(Hop::new(layout, first));
        let mut after: HashMap<u32, NextHop> = HashMap::new();
        let mut recoveries: HashMap<u32, u32> = HashMap::new();
        let mut at = root;
        while at < self.hops.len() {
            let port = self.hops[at].port;
            self.hops[at].next = match (after.get(&port), steps.last.get(&port)) {
                (Some(next), _) => *next,
                (None, Some(last)) => *last,
                (None, None) => {
                    let next = &steps.next[&port];
                    let then = NextHop::Forward {
                        first: self.hops.len() as u32,
                        count: next.len() as u32,
                    };
                    after.insert(port, then);
                    for next in next {
                        let mut hop = Hop::new(layout, *next);
                        if steps.before[next].len() > 1 {
                            assert!(layout.history > 0, "the paths of a flow are no tree");
                            hop.recovery = *recoveries.entry(*next).or_insert_with(|| {
                                self.histories.push(layout.history);
                                (self.histories.len() - 1) as u32
                            });
                        }
                        self.hops.push(hop);
                        comes_by.push(Some(port));
                    }
                    then
                }
            };
            at += 1;
        }
        comes_by
    }

    /// Adds the hops of a flow that bridges flood until they know where its destination is.
    fn add_flood(
        &mut self,
        system: &System,
        plan: &Plan,
        topology: &ActiveTopology,
        vlan: u16,
        [talker, destination]: [NodeId; 2],
        last: NextHop,
    ) {
        let root = self.hops.len();
        let flow = self.flows.len() as u32;
        self.flows.push(Flow { root: root as u32, talker, destination, own: NONE });
        let toward = topology.toward(system, destination);
        let layout = Layout { flow, queue: BEST_EFFORT_QUEUE, ways: Vec::new(), history: 0 };
        self.hops.push(Hop::new(&layout, system.node(talker).ports[0].0));
        let mut at = root;
        while at < self.hops.len() {
            let entry = system.ports[self.hops[at].port as usize].peer;
            let node = system.port(entry).node;
            let bridge = match &system.node(node).kind {
                NodeKind::Host(_) => {
                    self.hops[at].next = if node == destination { last } else { NextHop::Nowhere };
                    at += 1;
                    continue;
                }
                NodeKind::Bridge(bridge) => bridge,
            };
            let way = toward[node.index()].filter(|port| *port != entry);
            let floods = |port: &PortId| {
                let member = &plan.ports[port.index()].settings.vlans;
                let member = member.as_ref().is_none_or(|vlans| vlans.contains(&vlan));
                let usable = topology.is_active(*port) && *port != entry && Some(*port) != way;
                bridge.learning && usable && member
            };
            let others = system.node(node).ports.iter().copied().filter(floods);
            let ports: Vec<PortId> = way.into_iter().chain(others).collect();
            let (first, count) = (self.hops.len() as u32, ports.len() as u32);
            self.hops[at].next = match bridge.learning {
                true => NextHop::Flood { first, count, way: way.is_some() },
                false if way.is_some() => NextHop::Forward { first, count },
                false => NextHop::Nowhere,
            };
            self.hops.extend(ports.iter().map(|port| Hop::new(&layout, port.0)));
            at += 1;
        }
    }
}

impl Hop {
    fn new(layout: &Layout<'_>, port: u32) -> Self {
        let (flow, queue) = (layout.flow, layout.queue as u8);
        let (next, is_closed) = (NextHop::Nowhere, false);
        Self { port, flow, bucket: NONE, recovery: NONE, next, queue, is_closed }
    }
}

/// The ways of one flow, port by port; each list in the order of the ways.
#[derive(Default)]
struct Steps {
    next: HashMap<u32, Vec<u32>>,
    before: HashMap<u32, Vec<u32>>,
    last: HashMap<u32, NextHop>,
}

impl Steps {
    fn of(layout: &Layout<'_>) -> Self {
        let mut steps = Self::default();
        for (way, then) in &layout.ways {
            for pair in way.windows(2) {
                let [from, to] = [pair[0].0, pair[1].0];
                for (list, port) in [
                    (steps.next.entry(from).or_default(), to),
                    (steps.before.entry(to).or_default(), from),
                ] {
                    if !list.contains(&port) {
                        list.push(port);
                    }
                }
            }
            steps.last.insert(way[way.len() - 1].0, *then);
        }
        steps
    }
}

/// Asserts that a path leads from port to port along the links.
fn assert_walk(system: &System, path: &[PortId], from: NodeId, to: NodeId) {
    let mut node = from;
    for port in path {
        assert_eq!(system.port(*port).node, node, "{} is not on the way", system.port_label(*port));
        node = system.port(system.port(*port).peer).node;
    }
    assert!(!path.is_empty() && node == to, "a path ends at {}", system.node(node).name);
}

/// Asserts that every port of a path is a member of a VLAN.
fn assert_members(system: &System, plan: &Plan, path: &[PortId], vlan: u16) {
    for port in path {
        let vlans = &plan.ports[port.index()].settings.vlans;
        let member = vlans.as_ref().is_none_or(|vlans| vlans.contains(&vlan));
        assert!(member, "{} is not in VLAN {vlan}", system.port_label(*port));
    }
}
