//! What became of the frames of each channel and stream.

use crate::frame::Frame;
use crate::route::{NextHop, Routes};
use onbeat_model::observed::{FlowObserved, LatencyObserved, Loss, LossesObserved};
use onbeat_model::time::NetTime;
use std::collections::BTreeSet;

/// One probe per flow, with one per listener.
#[derive(Debug)]
pub(crate) struct Probes {
    /// Per flow; those of noise have no listeners.
    pub(crate) flows: Vec<FlowObserved>,
    /// Per receiving end: the highest number received.
    newest: Vec<Option<u32>>,
    /// Per hop: the copies that were lost at it or behind it, before the next one.
    lost: Vec<LossesObserved>,
}

impl Probes {
    pub(crate) fn new(routes: &Routes) -> Self {
        let mut flows = vec![FlowObserved::default(); routes.flows.len()];
        for end in &routes.receivers {
            flows[end.flow as usize].listeners.push(LatencyObserved::default());
        }
        let lost = vec![LossesObserved::default(); routes.hops.len()];
        Self { flows, newest: vec![None; routes.receivers.len()], lost }
    }

    /// Flows without listeners were added to the routes.
    pub(crate) fn extend(&mut self, routes: &Routes) {
        self.flows.resize_with(routes.flows.len(), FlowObserved::default);
        self.lost.resize_with(routes.hops.len(), LossesObserved::default);
    }

    /// A copy is lost at its hop before its transmission starts: also for the talker's own host.
    pub(crate) fn lose_unsent(&mut self, routes: &Routes, hop: u32, loss: Loss) {
        self.lose(routes, hop, loss);
        if let Some(end) = routes.own_end(hop) {
            self.lose_own(routes, end, loss);
        }
    }

    /// The talker's own host does not have a frame.
    pub(crate) fn lose_own(&mut self, routes: &Routes, end: u32, loss: Loss) {
        let end = routes.receivers[end as usize];
        self.flows[end.flow as usize].listeners[end.listener].lost.count(loss);
    }

    /// A copy is lost at its hop.
    pub(crate) fn lose(&mut self, routes: &Routes, hop: u32, loss: Loss) {
        let flow = &mut self.flows[routes.hops[hop as usize].flow as usize];
        *match loss {
            Loss::Policed => &mut flow.policed,
            Loss::Overflowed => &mut flow.overflowed,
            Loss::Faulted => &mut flow.faulted,
            Loss::Aborted => &mut flow.aborted,
        } += 1;
        self.lost[hop as usize].count(loss);
    }

    /// What became of the frames of each flow, each listener with what was lost on its way.
    pub(crate) fn observed(&self, routes: &Routes) -> Vec<FlowObserved> {
        let mut flows = self.flows.clone();
        for (hop, lost) in self.lost.iter().enumerate().filter(|(_, lost)| lost.total() > 0) {
            for end in ends_behind(routes, hop) {
                let end = routes.receivers[end as usize];
                flows[end.flow as usize].listeners[end.listener].lost.add(*lost);
            }
        }
        flows
    }

    /// A listener has a frame at `at`.
    pub(crate) fn receive(&mut self, routes: &Routes, end: u32, frame: &Frame, at: NetTime) {
        let newest = &mut self.newest[end as usize];
        let end = routes.receivers[end as usize];
        let seen = &mut self.flows[end.flow as usize].listeners[end.listener];
        seen.count(frame.released, at - frame.released);
        let later = newest.is_some_and(|newest| (frame.sequence.wrapping_sub(newest) as i32) < 0);
        seen.reordered += u64::from(later);
        if !later {
            *newest = Some(frame.sequence);
        }
    }
}

/// The receiving ends to which a copy at a hop is on its way, each once.
fn ends_behind(routes: &Routes, hop: usize) -> BTreeSet<u32> {
    let mut ends = BTreeSet::new();
    // Where ways meet again, several hops have the same behind them.
    let mut seen = BTreeSet::from([hop]);
    let mut next = vec![hop];
    while let Some(hop) = next.pop() {
        match routes.hops[hop].next {
            NextHop::Forward { first, count }
            | NextHop::Filter { first, count }
            | NextHop::Flood { first, count, .. } => {
                let behind = (first..first + count).map(|hop| hop as usize);
                next.extend(behind.filter(|hop| seen.insert(*hop)));
            }
            NextHop::Listener(end) => {
                ends.insert(end);
            }
            NextHop::Sink(_) | NextHop::Neighbour(_) | NextHop::Nowhere => {}
        }
    }
    ends
}
