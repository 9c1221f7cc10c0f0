//! In which order flows are placed.

use super::PeriodicFlow;
use std::cmp::Reverse;

/// The orders that are tried, the most promising first: who comes most often has the least choice;
/// who has the least slack; who takes most time on wires.
pub(super) fn orders(flows: &[PeriodicFlow]) -> Vec<Vec<usize>> {
    let by_period = sorted(flows, |flow| {
        (flow.release.is_none(), flow.period, slack(flow), Reverse(flow.hops.len()))
    });
    let by_slack = sorted(flows, |flow| {
        (flow.release.is_none(), slack(flow), Reverse(flow.hops.len()), flow.period)
    });
    let by_length = sorted(flows, |flow| (Reverse(flow.hops.len()), flow.period, slack(flow)));
    let by_window = sorted(flows, |flow| {
        (flow.release.is_none(), flow.period, Reverse(longest(flow)), Reverse(flow.hops.len()))
    });
    let mut all = vec![by_period, by_window, by_slack, by_length];
    all.dedup();
    all
}

/// The longest window, in nanoseconds: where little room is left, it has the least choice.
fn longest(flow: &PeriodicFlow) -> i64 {
    flow.hops.iter().map(|hop| hop.occupies.as_ns()).max().unwrap_or(0)
}

fn sorted<K: Ord>(flows: &[PeriodicFlow], key: impl Fn(&PeriodicFlow) -> K) -> Vec<usize> {
    let mut order: Vec<usize> = (0..flows.len()).collect();
    order.sort_by_key(|flow| (key(&flows[*flow]), *flow));
    order
}

/// What the deadline leaves beside the time on wires, in nanoseconds; where it is little, a flow is
/// hard to place.
fn slack(flow: &PeriodicFlow) -> i64 {
    let sent: i64 = flow.hops.iter().map(|hop| hop.sent.as_ns()).sum();
    flow.deadline.as_ns() - sent
}

/// What a flow takes of the time of its busiest port, in 2⁻²⁰ of it, at least one.
pub(super) fn load(flow: &PeriodicFlow) -> u64 {
    let parts = (i128::from(longest(flow)) << 20) / i128::from(flow.period.as_ns().max(1));
    u64::try_from(parts).unwrap_or(u64::MAX).max(1)
}

/// How many places are tried for one flow among others, of which it takes the one that displaces
/// the least.
pub(super) const GUESSES: usize = 24;

/// How often a flow is placed where others are.
pub(super) fn moves(flows: usize) -> usize {
    (100_000 / flows.max(1)).clamp(50, 1_000)
}
