//! What a clock that steps, because a fault lets it, or a talker that catches up may have to do
//! with.
//!
//! Bounds suppose clocks that do not step and talkers that are not late. When a clock steps, its
//! host's flows come earlier or later than they may, and gates that go by it open at other times.
//! A message that was written late has the next one closer behind it than the plan counts. Whoever
//! shares a port with such a flow may wait for it, and whoever shares one with those. What is then
//! beyond a bound is no fault of the plan. What no such flow can have reached is judged as ever.

use crate::join::Joined;
use onbeat_model::plan::Plan;
use onbeat_model::stream::FaultKind;
use onbeat_model::system::{ChannelId, NodeId, NodeKind, PortId, StreamIndex, System};
use onbeat_model::time::NetTime;

/// The ports and talkers that some step, or a channel that caught up, may reach.
pub(crate) struct Reach<'a> {
    system: &'a System,
    plan: &'a Plan,
    ports: Vec<bool>,
    /// The channel whose talker caught up.
    caught_up: Option<ChannelId>,
    /// When the first clock steps; the end of time if none does.
    pub(crate) first: NetTime,
}

/// When each clock steps that does.
fn steps(system: &System) -> impl Iterator<Item = (NodeId, NetTime)> {
    system.faults.iter().filter_map(|fault| match fault.kind {
        FaultKind::ClockStep { node, by } if by.as_ns() != 0 => Some((node, fault.from)),
        _ => None,
    })
}

/// The first of these hosts whose clock has stepped when some end of the channel recorded
/// something: what the ends' clocks make of the channel's latencies is then no measure.
pub(crate) fn clock_of_end(system: &System, joined: &Joined) -> Option<NodeId> {
    let listeners = joined.listeners.iter().map(|listener| listener.end);
    let ends: Vec<_> = std::iter::once(joined.talker).chain(listeners).collect();
    let is_after = |from: NetTime| {
        let mut records = ends.iter().flat_map(|end| &end.records);
        records.any(|record| record.network.is_none_or(|at| at >= from))
    };
    let mut stepped = steps(system).filter(|(node, _)| ends.iter().any(|end| end.node == *node));
    stepped.find(|(_, from)| is_after(*from)).map(|(node, _)| node)
}

impl<'a> Reach<'a> {
    pub(crate) fn of(system: &'a System, plan: &'a Plan) -> Self {
        let first = steps(system).map(|(_, from)| from).min().unwrap_or(NetTime::MAX);
        Self { system, plan, ports: vec![false; system.ports.len()], caught_up: None, first }
            .spread()
    }

    /// Of a talker that caught up alone.
    pub(crate) fn of_talker(system: &'a System, plan: &'a Plan, channel: ChannelId) -> Self {
        let ports = vec![false; system.ports.len()];
        Self { system, plan, ports, caught_up: Some(channel), first: NetTime::MAX }.spread()
    }

    /// Marks all ports that may be reached.
    fn spread(mut self) -> Self {
        if self.first == NetTime::MAX && self.caught_up.is_none() {
            return self;
        }
        let learns = |kind: &NodeKind| matches!(kind, NodeKind::Bridge(b) if b.learning);
        if self.system.nodes.iter().any(|node| learns(&node.kind)) {
            // Who learns may send anything anywhere.
            self.ports.fill(true);
            return self;
        }
        let stepped: Vec<_> = self.steps().map(|(node, _)| node).collect();
        for node in stepped {
            for port in &self.system.node(node).ports {
                let gated = |plan: &onbeat_model::plan::PortPlan| !plan.settings.gates.is_empty();
                self.ports[port.index()] |= self.plan.ports.get(port.index()).is_some_and(gated);
            }
        }
        let flows = self.flows();
        // Each round but the last one marks a port.
        loop {
            let before = self.ports.iter().filter(|reached| **reached).count();
            for (at, (talker, ports)) in flows.iter().enumerate() {
                let is_source = self.talks(*talker) || self.catches_up(at);
                if is_source || ports.iter().any(|port| self.ports[port.index()]) {
                    ports.iter().for_each(|port| self.ports[port.index()] = true);
                }
            }
            if self.ports.iter().filter(|reached| **reached).count() == before {
                return self;
            }
        }
    }

    /// The talker of each flow, if it goes by its clock, and the ports that the flow passes:
    /// channels first.
    fn flows(&self) -> Vec<(Option<NodeId>, Vec<PortId>)> {
        let (system, plan) = (self.system, self.plan);
        let channels = system.channels.iter().zip(&plan.channels);
        let channels = channels.map(|(c, plan)| (Some(c.talker), plan.paths.concat()));
        let streams = system.streams.iter().zip(&plan.streams);
        let streams = streams.map(|(s, plan)| (Some(s.talker), plan.paths.concat().concat()));
        let noise = plan.noise.iter().map(|ports| (None, ports.clone()));
        let tcp = system.tcp.iter().zip(&plan.tcp);
        let tcp = tcp.map(|(flow, paths)| (Some(flow.talker), paths.concat()));
        channels.chain(streams).chain(noise).chain(tcp).collect()
    }

    /// The clocks that this is about, if any.
    fn steps(&self) -> impl Iterator<Item = (NodeId, NetTime)> {
        steps(self.system).filter(|_| self.first < NetTime::MAX)
    }

    /// Whether a talker goes by a clock that steps.
    fn talks(&self, talker: Option<NodeId>) -> bool {
        self.steps().any(|(node, _)| Some(node) == talker)
    }

    /// Whether a flow is that of a channel whose talker caught up.
    fn catches_up(&self, flow: usize) -> bool {
        self.caught_up.is_some_and(|id| id.index() == flow)
    }

    /// Whether a port may have been reached.
    pub(crate) fn port(&self, port: PortId) -> bool {
        self.ports[port.index()]
    }

    /// Whether a channel may have been reached.
    pub(crate) fn channel(&self, id: ChannelId) -> bool {
        let paths = &self.plan.channel(id).paths;
        self.talks(Some(self.system.channel(id).talker))
            || self.catches_up(id.index())
            || paths.iter().flatten().any(|port| self.port(*port))
    }

    /// Whether a stream may have been reached.
    pub(crate) fn stream(&self, id: StreamIndex) -> bool {
        let paths = &self.plan.streams[id.index()].paths;
        self.talks(Some(self.system.streams[id.index()].talker))
            || paths.iter().flatten().flatten().any(|port| self.port(*port))
    }
}
