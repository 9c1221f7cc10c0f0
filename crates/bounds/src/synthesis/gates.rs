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
fn multiple(mut periods: impl Iterator<Item = i64>) -> Option<i64> {
    periods.try_fold(1i64, |all, period| (all / gcd(all, period)).checked_mul(period))
}

/// A window: when it begins in its period, how long it is, the period, the queue.
type Window = (i64, i64, i64, u8);

fn window(network: &Network, flow: &PeriodicFlow, placed: &Placed, hop: usize) -> Window {
    let FlowHop { port, occupies, .. } = flow.hops[hop];
    let length = up_to_tick(occupies.as_ns(), network.ports[port].tick.as_ns());
    (placed.starts[hop].as_ns(), length, flow.period.as_ns(), placed.queue)
}

/// The gate control list of a port for flows that are placed; none if none leaves there, or if the
/// periods there have no common multiple below 2⁶³ ns.
///
/// # Panics
/// When windows overlap, which those of [`super::synthesize`] do not.
pub fn gate_list(
    network: &Network,
    flows: &[PeriodicFlow],
    placed: &[Placed],
    port: usize,
) -> Option<GateList> {
    let mut windows = Vec::new();
    for (flow, placed) in flows.iter().zip(placed) {
        let here = (0..flow.hops.len()).filter(|hop| flow.hops[*hop].port == port);
        windows.extend(here.map(|hop| window(network, flow, placed, hop)));
    }
    listed(&windows)
}

fn listed(windows: &[Window]) -> Option<GateList> {
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
    let mut by_port: Vec<Vec<Window>> = vec![Vec::new(); network.ports.len()];
    let mut last = vec![0; network.ports.len()];
    for (number, (flow, placed)) in flows.iter().zip(&placed).enumerate() {
        for (hop, FlowHop { port, .. }) in flow.hops.iter().enumerate() {
            by_port[*port].push(window(network, flow, placed, hop));
            last[*port] = number;
        }
    }
    for (port, windows) in by_port.iter().enumerate() {
        let most = network.ports[port].entries_max;
        let Some(cycle) = multiple(windows.iter().map(|(_, _, period, _)| *period)) else {
            let why = Obstacle::Entries { port, entries: usize::MAX };
            return Err(Refusal { flow: last[port], why, is_proven: false });
        };
        // Each window has an entry of its own and one behind it, if nothing is merged.
        let count =
            windows.iter().map(|(_, _, period, _)| cycle / period).fold(0, i64::saturating_add);
        let estimate = usize::try_from(count.saturating_mul(2).saturating_add(2));
        if estimate.is_ok_and(|estimate| estimate <= most) {
            continue;
        }
        // Windows that follow one another share at least each second entry.
        let least = usize::try_from(count).unwrap_or(usize::MAX);
        let entries = match least > most.saturating_mul(64) {
            true => least,
            false => listed(windows).map_or(usize::MAX, |list| list.entries.len()),
        };
        if entries > most {
            let why = Obstacle::Entries { port, entries };
            return Err(Refusal { flow: last[port], why, is_proven: false });
        }
    }
    Ok(placed)
}
