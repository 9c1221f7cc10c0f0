//! Why some flows cannot be scheduled at all, whatever the order.

use super::place::{Route, up_to_tick};
use super::timeline::gcd;
use super::{Network, Obstacle, PeriodicFlow, Refusal};
use std::collections::BTreeMap;

/// Parts of a port's time are counted in 2⁻⁴⁰ of it.
const WHOLE: i128 = 1 << 40;

/// A flow that no schedule has room for, if there is one that shows at first sight.
pub(super) fn impossible(network: &Network, flows: &[PeriodicFlow]) -> Option<Refusal> {
    let proven = |flow, why| Refusal { flow, why, is_proven: true };
    for (number, flow) in flows.iter().enumerate() {
        if let Some(why) = Route::new(network, flow).impossible(flow) {
            return Some(proven(number, why));
        }
    }
    // By port: the windows there, with their periods and flows.
    let mut windows: BTreeMap<usize, Vec<(i64, i64, usize)>> = BTreeMap::new();
    for (number, flow) in flows.iter().enumerate() {
        for hop in &flow.hops {
            let tick = network.ports[hop.port].tick.as_ns();
            let window = up_to_tick(hop.occupies.as_ns(), tick);
            windows.entry(hop.port).or_default().push((window, flow.period.as_ns(), number));
        }
    }
    windows.into_iter().find_map(|(port, windows)| {
        let part = |(window, period, _): &(i64, i64, usize)| {
            i128::from(*window) * WHOLE / i128::from(*period)
        };
        if windows.iter().map(part).sum::<i128>() > WHOLE {
            let flows: Vec<usize> = windows.iter().map(|(_, _, flow)| *flow).collect();
            let last = *flows.last()?;
            return Some(proven(last, Obstacle::Overload { port, flows }));
        }
        let (flow, other) = pair(windows)?;
        Some(proven(flow, Obstacle::Pair { port, other }))
    })
}

/// Two flows whose windows overlap in every phase. Only the longest windows of each period are
/// looked at: if any two overlap always, those do.
fn pair(windows: Vec<(i64, i64, usize)>) -> Option<(usize, usize)> {
    let mut longest: BTreeMap<i64, Vec<(i64, usize)>> = BTreeMap::new();
    for (window, period, flow) in windows {
        let of_period = longest.entry(period).or_default();
        of_period.push((window, flow));
        of_period.sort_unstable_by(|a, b| b.cmp(a));
        of_period.truncate(2);
    }
    for (period, windows) in &longest {
        if let [(one, a), (two, b)] = windows[..]
            && one + two > *period
        {
            return Some((a, b));
        }
        for (other, others) in longest.range(..period) {
            let ((one, a), (two, b)) = (windows[0], others[0]);
            if one + two > gcd(*period, *other) {
                return Some((a, b));
            }
        }
    }
    None
}
