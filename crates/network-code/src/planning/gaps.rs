//! Whether best effort has room between frames of stations, where dedicated paths abort it.

use super::codes;
use super::round::{Bus, BusFrame, BusWindow, CYCLE};
use super::slots::BusSchedule;
use onbeat_model::dedicated::BestEffortPolicy;
use onbeat_model::diagnostic::Diagnostic;
use onbeat_model::time::Span;

/// When a link is taken by a frame of a station, in ns since the first round: from its earliest
/// begin, and until its latest end with the gap behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct LinkUse {
    from: i64,
    until: i64,
    /// How long the frame is at least.
    length: i64,
}

/// One warning for each bridge with a dedicated path that has a port where the longest frame of
/// best effort is longer than all gaps between frames of stations: it is aborted whenever they send
/// in all their slots. Frames of one slot are left out where alternatives share it.
pub(super) fn warnings(bus: &Bus<'_>, schedule: &BusSchedule) -> Vec<Diagnostic> {
    let mut warnings: Vec<Diagnostic> = Vec::new();
    let mut warned = None;
    for (link, port) in bus.tree.ports.iter().enumerate() {
        let node = bus.system.port(*port).node;
        let Some(path) = bus.system.node(node).dedicated_path() else { continue };
        let needed = bus.tree.blocks(link);
        let longest = longest_gap(bus, schedule, link);
        if path.on_best_effort == BestEffortPolicy::Finish
            || needed <= longest
            || warned == Some(node)
        {
            continue;
        }
        warned = Some(node);
        let octets = bus.tree.best_effort(link);
        let becomes = match path.on_best_effort {
            BestEffortPolicy::Drop => "is lost",
            _ => "is never sent, nor is what is behind it",
        };
        let message = format!(
            "best effort of {} octets takes {} at {}, where frames of stations leave {} at \
             most: while all of these are sent, it {becomes}",
            octets.get(),
            Span::from_ns(needed),
            bus.system.port_label(*port),
            Span::from_ns(longest.max(0)),
        );
        let origin = bus.system.node(node).origin;
        let warning = Diagnostic::error(codes::GAPS, message, origin, "has this port").warning();
        warnings.push(warning.help(
            "use longer intervals, shorter frames of best effort (`--best-effort` if there are \
             none), or `on_best_effort = \"finish\"`",
        ));
    }
    warnings
}

/// The longest time at a port from the end of a station's frame, and the gap behind it, to the
/// begin of the next one, if the former is as early and the latter as late as they may be, in ns.
fn longest_gap(bus: &Bus<'_>, schedule: &BusSchedule, link: usize) -> i64 {
    let round = schedule.round_ns();
    let mut uses = Vec::new();
    let mut add = |frame, start: i64, first: u32, every: u32| {
        let windows = bus.windows(frame, round);
        let Some(window) = windows.iter().find(|window| window.link == link) else { return };
        let BusWindow { offset, occupies, .. } = *window;
        let [length, _] = bus.tree.frame(bus.words(frame));
        for at in (first..schedule.rounds).step_by(every as usize) {
            let from = i64::from(at) * round + (start + offset) * CYCLE;
            uses.push(LinkUse { from, until: from + occupies * CYCLE, length });
        }
    };
    add(BusFrame::Sync, 0, 0, 1);
    if let Some(start) = schedule.hyper_round {
        add(BusFrame::HyperRound, start, 0, schedule.rounds);
    }
    for (channel, slot) in schedule.slots.iter().enumerate() {
        if bus.shared_by(channel).is_none() {
            add(BusFrame::Channel(channel), slot.start, slot.first_round, slot.every);
        }
    }
    uses.sort_unstable();
    let Some(first) = uses.first().copied() else { return i64::MAX };
    // All repeats, so the last one is before the first.
    let all = i64::from(schedule.rounds) * round;
    uses.push(LinkUse { from: first.from + all, until: first.until + all, ..first });
    let gap = bus.tree.gap();
    let between = |pair: &[LinkUse]| {
        pair[1].until - gap - pair[1].length - (pair[0].from + pair[0].length + gap)
    };
    uses.windows(2).map(between).max().unwrap_or(i64::MAX)
}
