//! Bounds of channels' latencies where it is known which messages never coincide in a queue.
//!
//! A message waits in a queue for what came there since the queue was last empty with its credit
//! restored. A channel without arrivals since then causes no interference. Only what comes to
//! the message's own queues is chosen: how much later it comes there, because of all others, stays.

use super::bound::{at_listener, fixed_delays, slowest_path, span};
use super::flow::Analysis;
use super::multi_hop::MultiHop;
use super::network::{FlowNetwork, Owner};
use onbeat_model::plan::Plan;
use onbeat_model::system::{ChannelId, NodeId, NodeKind, PortId, System};
use onbeat_model::time::Span;
use onbeat_model::units::Octets;
use std::collections::BTreeSet;

/// The longest busy period that is analysed, in nanoseconds.
const LONGEST: i128 = 1_000_000_000;

/// Channels whose messages may interfere with one message of a channel.
pub type ChannelSet = BTreeSet<ChannelId>;

/// The analysis of a network in which all messages may coincide.
pub struct Coincidence<'a> {
    analysis: Analysis<'a>,
    multi_hop: MultiHop,
}

/// Calls `look` with the coincidence analysis of a plan.
pub fn coincidence<T>(system: &System, plan: &Plan, look: impl FnOnce(&Coincidence<'_>) -> T) -> T {
    let network = FlowNetwork::new(system, plan, true);
    let analysis = Analysis::new(&network);
    let multi_hop = MultiHop::new(&analysis);
    look(&Coincidence { analysis, multi_hop })
}

impl Coincidence<'_> {
    /// The port on the path to a listener that is the last one.
    fn last(&self, id: ChannelId, listener: NodeId) -> Option<PortId> {
        let FlowNetwork { system, plan, .. } = *self.analysis.network;
        let to = system.channel(id).listeners.iter().position(|at| *at == listener)?;
        plan.channel(id).paths.get(to)?.last().copied()
    }

    /// The plan's bound, in true time.
    fn latency(&self, id: ChannelId, listener: NodeId) -> Option<Span> {
        let last = self.last(id, listener)?;
        let bound = at_listener(&self.analysis, &self.multi_hop, id.index(), listener, last, "")?;
        Some(bound.total())
    }

    /// By how much the true latency of a channel's messages at a listener is less than the plan's
    /// bound. `sets` says which of the channels that share queues with it may all have captured
    /// messages within a time in which it has captured one; none if it does not know.
    pub fn saved(
        &self,
        id: ChannelId,
        listener: NodeId,
        sets: impl Fn(Span, &ChannelSet) -> Option<Vec<ChannelSet>>,
    ) -> Option<Span> {
        let (analysis, f) = (&self.analysis, id.index());
        let FlowNetwork { system, plan, ref flows, .. } = *analysis.network;
        if !plan.channel(id).protected {
            return None;
        }
        let last = flows[f].hop_at(self.last(id, listener)?);
        let path = slowest_path(analysis, f, last);
        let place = |h: &usize| (flows[f].hops[*h].port.index(), flows[f].queue);
        if path.iter().any(|h| analysis.is_asynchronous(place(h))) {
            return None;
        }
        let others = path.iter().flat_map(|h| &analysis.members[&place(h)]);
        let near: ChannelSet = others
            .filter_map(|(other, _)| match flows[*other].owner {
                Owner::Channel(other) if other != id => Some(other),
                _ => None,
            })
            .collect();
        let full = self.latency(id, listener)?;
        let mut longest = full;
        for other in &near {
            for at in &system.channel(*other).listeners {
                longest = longest.max(self.latency(*other, *at)?);
            }
        }
        let mut busy = 0;
        for h in &path {
            busy = busy.max(self.busy(place(h))?);
        }
        let sets = sets(full + longest + span(busy), &near)?;
        let mut waits = Span::ZERO;
        for set in sets {
            let wait = |h: &usize| self.wait(f, *h, &set);
            waits = waits.max(path.iter().map(wait).sum::<Option<Span>>()?);
        }
        let fixed = fixed_delays(analysis, f, &path);
        let fixed: Span = fixed.iter().flatten().map(|(_, delay)| *delay).sum();
        let NodeKind::Host(host) = &system.node(listener).kind else { return None };
        let stack = host.stack_rx.max();
        Some((full - waits - fixed - stack).max(Span::ZERO))
    }

    /// The longest time in which a queue always has frames or too little credit.
    fn busy(&self, place: (usize, usize)) -> Option<i128> {
        let service = self.analysis.service(place)?;
        let arrivals = self.analysis.arrivals(place, 0, Octets::default())?;
        let mut busy = 0;
        loop {
            let longer = service.time_for(arrivals.at(busy))?;
            if longer <= busy || longer > LONGEST {
                return (longer <= busy).then_some(busy);
            }
            busy = longer;
        }
    }

    /// The wait at a queue where of the channels only those of a set come.
    fn wait(&self, f: usize, h: usize, set: &ChannelSet) -> Option<Span> {
        let analysis = &self.analysis;
        let flow = &analysis.network.flows[f];
        let place = (flow.hops[h].port.index(), flow.queue);
        let comes = |(other, _): &&(usize, usize)| match analysis.network.flows[*other].owner {
            Owner::Channel(id) => id.index() == f || set.contains(&id),
            Owner::Stream(_) => true,
        };
        let members: Vec<_> = analysis.members[&place].iter().filter(comes).copied().collect();
        let arrivals = analysis.arrivals_of(&members, place, 0, Octets::default())?;
        let own = analysis.frame_at(f, place.0, 0, Octets::default());
        let wait = analysis.service(place)?.wait(&arrivals, own)?;
        let wait = wait + i128::from(analysis.cyclic.contains(&place));
        Some(span(wait.min(analysis.states[f][h].wait?)))
    }
}
