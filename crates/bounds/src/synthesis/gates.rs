//! From windows to gate control lists.

use super::place::up_to_tick;
use super::timeline::gcd;
use super::{FlowHop, Network, Obstacle, PeriodicFlow, Placed, Refusal};
use onbeat_model::time::Span;

/// What one port's gates do, again and again, from the schedule's begin on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GateList {
    /// How long all entries take together: the least common multiple of the periods of the flows
    /// that leave there.
    pub cycle: Span,
    /// In order; neighbours differ.
    pub entries: Vec<GateState>,
}

/// A state of a port's gates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GateState {
    /// The only queue for scheduled flows that is open, by its number among these; none: all other
    /// queues of the port are.
    pub queue: Option<u8>,
    /// For how long.
    pub span: Span,
}

/// The least common multiple of periods, if it fits in 64 bits.
pub(crate) fn multiple(mut periods: impl Iterator<Item = i64>) -> Option<i64> {
    periods.try_fold(1i64, |all, period| (all / gcd(all, period)).checked_mul(period))
}

/// The most windows of a cycle that are laid down to count entries.
const LAID_MAX: usize = 1_000_000;

/// A window: when it begins in its period, how long it is, the period, the queue.
pub(super) type Window = (i64, i64, i64, u8);

fn window(network: &Network, flow: &PeriodicFlow, placed: &Placed, hop: usize) -> Window {
    let FlowHop { port, occupies, .. } = flow.hops[hop];
    let length = up_to_tick(occupies.as_ns(), network.ports[port].tick.as_ns());
    (placed.starts[hop].as_ns(), length, flow.period.as_ns(), placed.queue)
}

/// By port its windows.
fn windows(network: &Network, flows: &[PeriodicFlow], placed: &[Placed]) -> Vec<Vec<Window>> {
    let mut by_port = vec![Vec::new(); network.ports.len()];
    for (flow, placed) in flows.iter().zip(placed) {
        for (hop, FlowHop { port, .. }) in flow.hops.iter().enumerate() {
            by_port[*port].push(window(network, flow, placed, hop));
        }
    }
    by_port
}

/// By port its gate control list for flows that are placed; none where none of them leaves, or
/// where the periods have no common multiple below 2⁶³ ns.
///
/// # Panics
/// When windows overlap, which those of [`super::synthesize`] do not.
pub fn gate_lists(
    network: &Network,
    flows: &[PeriodicFlow],
    placed: &[Placed],
) -> Vec<Option<GateList>> {
    windows(network, flows, placed).iter().map(|windows| listed(windows)).collect()
}

pub(super) fn listed(windows: &[Window]) -> Option<GateList> {
    if windows.is_empty() {
        return None;
    }
    let cycle = multiple(windows.iter().map(|(_, _, period, _)| *period))?;
    // Each window in each period of the cycle; what reaches beyond its end is cut in two.
    let mut open = Vec::new();
    for &(start, length, period, queue) in windows {
        let first = start.rem_euclid(period);
        for begin in (0..cycle / period).map(|again| first + again * period) {
            let end = begin + length;
            open.push((begin, end.min(cycle), queue));
            if end > cycle {
                open.push((0, end - cycle, queue));
            }
        }
    }
    open.sort_unstable();
    let mut entries: Vec<(Option<u8>, i64)> = Vec::new();
    let mut add = |queue, span| match entries.last_mut() {
        Some((last, so_far)) if *last == queue => *so_far += span,
        _ => entries.push((queue, span)),
    };
    let mut at = 0;
    for (begin, end, queue) in open {
        assert!(begin >= at, "windows overlap at {begin} ns");
        if begin > at {
            add(None, begin - at);
        }
        add(Some(queue), end - begin);
        at = end;
    }
    if at < cycle {
        add(None, cycle - at);
    }
    let entry = |(queue, span)| GateState { queue, span: Span::from_ns(span) };
    Some(GateList {
        cycle: Span::from_ns(cycle),
        entries: entries.into_iter().map(entry).collect(),
    })
}

/// What is placed, if its gate control lists are short enough.
pub(super) fn within(
    network: &Network,
    flows: &[PeriodicFlow],
    placed: Vec<Placed>,
) -> Result<Vec<Placed>, Refusal> {
    for (port, windows) in windows(network, flows, &placed).iter().enumerate() {
        let most = network.ports[port].entries_max;
        let entries = count(windows, most);
        if entries.is_none_or(|entries| entries > most) {
            let leaves = |flow: &PeriodicFlow| flow.hops.iter().any(|hop| hop.port == port);
            let flow = flows.iter().rposition(leaves).expect("a flow has a window there");
            let why = Obstacle::Entries { port, entries };
            return Err(Refusal { flow, why, is_proven: false });
        }
    }
    Ok(placed)
}

/// How many entries the gate control list of a port has, or an upper estimate that is at most
/// `most`; none if they are too many to lay down.
pub(super) fn count(windows: &[Window], most: usize) -> Option<usize> {
    if windows.is_empty() {
        return Some(0);
    }
    let cycle = multiple(windows.iter().map(|(_, _, period, _)| *period))?;
    let counts = windows.iter().map(|(_, _, period, _)| cycle / period);
    let count = usize::try_from(counts.fold(0, i64::saturating_add)).ok()?;
    // Each window has an entry of its own and one behind it, if nothing is merged.
    let estimate = count.saturating_mul(2).saturating_add(2);
    match estimate <= most {
        true => Some(estimate),
        false if count <= LAID_MAX => Some(listed(windows)?.entries.len()),
        false => None,
    }
}
