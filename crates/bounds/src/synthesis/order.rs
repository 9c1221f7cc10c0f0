//! In which order flows are placed.

use super::{Network, PeriodicFlow};
use std::cmp::Reverse;

/// One way to place all flows.
pub(super) struct Order {
    /// One after the other.
    pub(super) flows: Vec<usize>,
    /// Whether each is placed, if possible, where its window follows another one without a gap at
    /// the busiest port of its tree; else each is placed as early as possible.
    pub(super) is_close: bool,
}

/// The orders that are tried, the most promising first: who comes most often has the least choice;
/// who crosses the busiest port; who takes most time on wires; who has the least slack.
pub(super) fn orders(network: &Network, flows: &[PeriodicFlow]) -> Vec<Order> {
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
    let loads = loads(network, flows);
    let by_port = sorted(flows, |flow| {
        let busiest = flow.hops.iter().map(|hop| loads[hop.port]).max();
        (flow.release.is_none(), flow.period, Reverse(busiest), slack(flow))
    });
    let mut early = vec![by_window, by_slack, by_length];
    early.retain(|order| *order != by_period);
    early.dedup();
    let early = early.into_iter().map(|flows| Order { flows, is_close: false });
    let first = Order { flows: by_period, is_close: false };
    [first, Order { flows: by_port, is_close: true }].into_iter().chain(early).collect()
}

/// How much of each port's time all flows take, as [`load`] counts it.
pub(super) fn loads(network: &Network, flows: &[PeriodicFlow]) -> Vec<u64> {
    let mut loads = vec![0; network.ports.len()];
    for flow in flows {
        flow.hops.iter().for_each(|hop| loads[hop.port] += load(flow));
    }
    loads
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
