//! What became of the frames of each channel and stream.

use crate::frame::Frame;
use crate::route::Routes;
use onbeat_model::observed::{FlowObserved, LatencyObserved};
use onbeat_model::time::NetTime;

/// One probe per flow, with one per listener.
#[derive(Debug)]
pub(crate) struct Probes {
    /// Per flow; those of noise have no listeners.
    pub(crate) flows: Vec<FlowObserved>,
    /// Per receiving end: the highest number received.
    newest: Vec<Option<u32>>,
}

impl Probes {
    pub(crate) fn new(routes: &Routes) -> Self {
        let mut flows = vec![FlowObserved::default(); routes.flows.len()];
        for end in &routes.ends {
            flows[end.flow as usize].listeners.push(LatencyObserved::default());
        }
        Self { flows, newest: vec![None; routes.ends.len()] }
    }

    /// A listener has a frame at `at`.
    pub(crate) fn receive(&mut self, routes: &Routes, end: u32, frame: &Frame, at: NetTime) {
        let newest = &mut self.newest[end as usize];
        let end = routes.ends[end as usize];
        let seen = &mut self.flows[end.flow as usize].listeners[end.listener];
        seen.count(frame.released, at - frame.released);
        let later = newest.is_some_and(|newest| (frame.sequence.wrapping_sub(newest) as i32) < 0);
        seen.reordered += u64::from(later);
        if !later {
            *newest = Some(frame.sequence);
        }
    }
}
