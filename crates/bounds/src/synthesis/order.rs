//! In which order flows are placed.

use super::Flow;
use std::cmp::Reverse;

/// The orders that are tried, the most promising first: who comes most often has the least choice;
/// who has the least slack; who takes most time on wires.
pub(super) fn orders(flows: &[Flow]) -> Vec<Vec<usize>> {
    let by_period = sorted(flows, |flow| {
        (flow.release.is_none(), flow.period, slack(flow), Reverse(flow.hops.len()))
    });
    let by_slack = sorted(flows, |flow| {
        (flow.release.is_none(), slack(flow), Reverse(flow.hops.len()), flow.period)
    });
    let by_length = sorted(flows, |flow| (Reverse(flow.hops.len()), flow.period, slack(flow)));
    let mut all = vec![by_period, by_slack, by_length];
    all.dedup();
    all
}

fn sorted<K: Ord>(flows: &[Flow], key: impl Fn(&Flow) -> K) -> Vec<usize> {
    let mut order: Vec<usize> = (0..flows.len()).collect();
    order.sort_by_key(|flow| (key(&flows[*flow]), *flow));
    order
}

/// What the deadline leaves beside the time on wires, in nanoseconds; where it is little, a flow is
/// hard to place.
fn slack(flow: &Flow) -> i64 {
    let sent: i64 = flow.hops.iter().map(|hop| hop.sent.as_ns()).sum();
    flow.deadline.as_ns() - sent
}

/// How often an order is mended: of many flows, one round takes long.
pub(super) fn rounds(flows: usize) -> usize {
    (20_000 / flows.max(1)).clamp(3, 60)
}
