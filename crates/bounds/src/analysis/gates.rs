//! How much of the time a queue behind gates can be served (802.1Q-2022 8.6.8.4).

use super::arrival::clock_rate;
use super::{BILLION, div_ceil};
use onbeat_model::port::{GateControl, PortSettings};
use onbeat_model::time::ClockError;

/// In any time of x nanoseconds a queue can be served in at least
/// `open · (x − latency) / cycle` of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Availability {
    /// Nanoseconds that can be used in each cycle.
    pub(crate) open: i128,
    /// Nanoseconds of a cycle.
    pub(crate) cycle: i128,
    /// The longest time for which no more is there than what the mean rate makes up for.
    pub(crate) latency: i128,
}

/// What is lost of each window of a queue, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Losses {
    /// At its start: a frame of another queue that began before may still be on the wire.
    pub(crate) start: i128,
    /// At its end: a frame that does not fit any more has to wait.
    pub(crate) end: i128,
    /// Where another list takes over: it may cut a window, and find any frame on the wire.
    pub(crate) change: i128,
    /// Where the first list begins.
    pub(crate) begin: i128,
    /// If nothing else is in the windows, all frames take whole numbers of parts of so many true
    /// nanoseconds, which the node's clock makes so many (per 10⁹) of its own.
    pub(crate) part: Option<(i128, i128)>,
}

impl Losses {
    /// How much of a window is used in which a longest frame may start in the first `room`
    /// nanoseconds: what has started is over before it closes.
    fn used(&self, room: i128) -> i128 {
        match self.part {
            _ if room < 0 => 0,
            Some((part, clock)) => (room * BILLION / (part * clock) + 1) * part * clock / BILLION,
            None => room,
        }
    }
}

impl Availability {
    const ALWAYS: Self = Self { open: 1, cycle: 1, latency: 0 };

    /// The worst over all gate control lists of a port, and over the changes between them.
    /// `losses` says what a queue's windows lose under one list. None: never.
    pub(crate) fn new(
        lists: &[GateControl],
        queue: usize,
        clock: &ClockError,
        losses: impl Fn(&GateControl) -> Losses,
    ) -> Option<Self> {
        let mut lists = lists.iter().enumerate();
        lists
            .try_fold(Self::ALWAYS, |worst, (at, list)| {
                let losses = losses(list);
                let change = if at > 0 { losses.change } else { losses.begin };
                let list = of_list(list, queue, losses)?;
                let slower = list.open * worst.cycle < worst.open * list.cycle;
                let slowest = if slower { list } else { worst };
                // A time that spans a change loses both latencies at most, and what it costs.
                Some(Self { latency: worst.latency + list.latency + change, ..slowest })
            })
            .map(|local| local.in_true_time(clock))
    }

    /// Windows are kept by the node's clock: a slow one makes all of them longer, and its wander
    /// and rounding each closed time.
    fn in_true_time(self, clock: &ClockError) -> Self {
        if self == Self::ALWAYS {
            return self;
        }
        let (rate, apart) = clock_rate(clock);
        Self { latency: div_ceil((self.latency + apart) * BILLION, rate), ..self }
    }
}

/// What idleSlope gives to a queue behind gates. While its gate is open its credit rises at
/// operIdleSlope × OperCycleTime / GateOpenTime (802.1Q-2022 8.6.8.2), the wire's rate at most, and
/// else it stands still: in the long run at operIdleSlope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Accrual {
    /// Bit/s while the gate is open, under the list that gives the most.
    pub(crate) open: i128,
    /// Bit/s in the long run at least, and the nanoseconds without it.
    pub(crate) least: (i128, i128),
    /// Bit/s in the long run at most, and the nanobits on top of it in any time.
    pub(crate) most: (i128, i128),
}

impl Accrual {
    /// `slope` is the queue's operIdleSlope, `wire` the rate of its port. None: its gate is never
    /// open under one of the lists.
    pub(crate) fn new(
        settings: &PortSettings,
        queue: usize,
        clock: &ClockError,
        slope: i128,
        wire: i128,
    ) -> Option<Self> {
        let mut all = Self { open: slope, least: (slope, 0), most: (slope, 0) };
        let losses = |_: &GateControl| rounding(clock);
        all.least.1 = Availability::new(&settings.gates, queue, clock, losses)?.latency;
        for list in &settings.gates {
            let Windows::At(windows) = windows(list, queue) else { continue };
            let cycle = i128::from(list.cycle.as_ns());
            let time: i128 = windows.iter().map(|(from, to)| to - from).sum();
            let while_open = div_ceil(slope * cycle, time).min(wire);
            let usable = of_list(list, queue, losses(list))?.open;
            // As much of each cycle it is closed for certain: no more than that is missing.
            let closed = Availability::new(&[inverted(list)], queue, clock, losses);
            let (closed, latency) = closed.map_or((0, 0), |closed| (closed.open, closed.latency));
            let mean = div_ceil(while_open * (cycle - closed), cycle);
            all.open = all.open.max(while_open);
            all.least.0 = all.least.0.min(while_open * usable / cycle);
            all.most.0 = all.most.0.max(mean);
            // Of cycles of days the product may be too long a number: rounded up before then.
            let exact = (while_open * closed).checked_mul(latency);
            all.most.1 += match exact {
                Some(product) => div_ceil(product, cycle),
                None => div_ceil(while_open * closed, cycle) * latency,
            };
        }
        Some(all).filter(|all| all.least.0 > 0)
    }
}

/// What idleSlope must be so that no less than `need` of it is left of windows that an erring clock
/// makes shorter.
pub(crate) fn slope_for(
    settings: &PortSettings,
    queue: usize,
    clock: &ClockError,
    need: i128,
) -> i128 {
    let of = |list: &GateControl| match windows(list, queue) {
        Windows::Always => need,
        Windows::At(windows) => {
            let time: i128 = windows.iter().map(|(from, to)| to - from).sum();
            let left = of_list(list, queue, rounding(clock)).map_or(0, |usable| usable.open);
            if left == 0 { need } else { div_ceil(need * time, left) }
        }
    };
    settings.gates.iter().map(of).max().unwrap_or(need)
}

/// By how much each window may be shorter in true time: its ends are whole nanoseconds there.
fn rounding(clock: &ClockError) -> Losses {
    Losses { end: i128::from(clock_rate(clock).1 > 0), ..Losses::default() }
}

/// The same list with gates open where they are closed.
fn inverted(list: &GateControl) -> GateControl {
    let mut list = list.clone();
    list.entries.iter_mut().for_each(|entry| entry.open = !entry.open);
    list
}

/// Whether a queue's gate is open all the time under every list.
pub(crate) fn always_open(settings: &PortSettings, queue: usize) -> bool {
    settings.gates.iter().all(|list| matches!(windows(list, queue), Windows::Always))
}

/// When a gate is open.
enum Windows {
    Always,
    /// In each cycle, `[from, to)`; the last may end in the next cycle.
    At(Vec<(i128, i128)>),
}

/// The states of one cycle with their ends: the list cut to the cycle, or its last state kept.
fn states(list: &GateControl) -> Vec<(u8, i128)> {
    let cycle = i128::from(list.cycle.as_ns());
    let mut states = Vec::with_capacity(list.entries.len());
    let mut end = 0;
    for (at, entry) in list.entries.iter().enumerate() {
        end += i128::from(entry.span.as_ns());
        let last = at + 1 == list.entries.len() || end >= cycle;
        states.push((entry.open, if last { cycle } else { end }));
        if last {
            break;
        }
    }
    states
}

fn windows(list: &GateControl, queue: usize) -> Windows {
    let mut windows: Vec<(i128, i128)> = Vec::new();
    let mut start = 0;
    let cycle = i128::from(list.cycle.as_ns());
    for (open, end) in states(list) {
        if open >> queue & 1 == 1 {
            match windows.last_mut() {
                Some(last) if last.1 == start => last.1 = end,
                _ => windows.push((start, end)),
            }
        }
        start = end;
    }
    match windows[..] {
        [(0, end)] if end == cycle => return Windows::Always,
        [(0, end), .., (from, to)] if to == cycle => {
            windows.remove(0);
            let last = windows.len() - 1;
            windows[last] = (from, cycle + end);
        }
        _ => {}
    }
    Windows::At(windows)
}

/// When a queue's gate is open, with cycles that begin at `phase`, if the clock may be wrong by
/// `error`; windows that are then never sure to be open are left out.
pub(super) fn open_between(
    list: &GateControl,
    queue: usize,
    phase: i128,
    error: i128,
) -> super::windows::Open {
    let cycle = i128::from(list.cycle.as_ns());
    let windows = match windows(list, queue) {
        Windows::At(windows) => windows,
        // No start ever waits for a gate that never closes: one window, as long as may be.
        Windows::Always => vec![(0, cycle)],
    };
    let at = |(open, close): &(i128, i128)| (open + phase, close + phase);
    let sure = windows.iter().map(at).map(|(open, close)| (open + error, close - error));
    let perhaps = windows.iter().map(at).map(|(open, close)| (open - error, close + error));
    super::windows::Open {
        sure: sure.filter(|(open, close)| open < close).collect(),
        perhaps: perhaps.collect(),
    }
}

/// The queues whose gates are open at some time when that of `queue` is.
pub(super) fn open_with(list: &GateControl, queue: usize) -> u8 {
    let open = states(list).into_iter().map(|(open, _)| open);
    open.filter(|open| open >> queue & 1 == 1).fold(0, |all, open| all | open)
}

/// Whether a frame of one of `others` that started before a window of `queue` opens may still be
/// on the wire then: always if frames may overrun, else if its own gate stays open meanwhile.
pub(crate) fn overhangs(list: &GateControl, queue: usize, others: u8) -> bool {
    if !list.length_aware {
        return others != 0;
    }
    let states = states(list);
    let before = states.iter().cycle().skip(states.len() - 1);
    before.zip(&states).any(|(before, now)| {
        let opens = now.0 >> queue & 1 == 1 && before.0 >> queue & 1 == 0;
        opens && before.0 & now.0 & others != 0
    })
}

fn of_list(list: &GateControl, queue: usize, losses: Losses) -> Option<Availability> {
    let Windows::At(windows) = windows(list, queue) else { return Some(Availability::ALWAYS) };
    let cycle = i128::from(list.cycle.as_ns());
    // Each with how much of it is used.
    let usable: Vec<(i128, i128, i128)> = (windows.iter())
        .map(|(from, to)| (from + losses.start, to - losses.end))
        .map(|(from, to)| (from, to, losses.used(to - from)))
        .filter(|(.., used)| *used > 0)
        .collect();
    let open: i128 = usable.iter().map(|(.., used)| used).sum();
    if open == 0 {
        return None;
    }
    // Worst from the end of a window to the start of another one: the time between them, less what
    // those between them make up for. A start is worth the same in every cycle, as a cycle makes up
    // for itself; so each start may follow each end.
    let (mut before, mut starts, mut ends) = (0, None, None);
    for (from, to, used) in usable {
        starts = starts.max(Some(from * open - before * cycle));
        before += used;
        let end = to * open - before * cycle;
        ends = Some(ends.map_or(end, |least: i128| least.min(end)));
    }
    let latency = starts.zip(ends).map_or(0, |(start, end)| div_ceil((start - end).max(0), open));
    Some(Availability { open, cycle, latency })
}

#[cfg(test)]
mod tests {
    use super::*;
    use onbeat_model::port::GateEntry;
    use onbeat_model::time::{NetTime, Span};
    use proptest::prelude::*;

    fn list(cycle: i64, entries: &[(u8, i64)]) -> GateControl {
        let entry = |&(open, ns): &(u8, i64)| GateEntry { open, span: Span::from_ns(ns) };
        GateControl {
            base: NetTime::ZERO,
            cycle: Span::from_ns(cycle),
            entries: entries.iter().map(entry).collect(),
            length_aware: true,
        }
    }

    #[test]
    fn one_window_of_a_quarter_of_the_cycle_is_missed_for_three_quarters_and_what_is_lost_of_it() {
        let list = list(1_000, &[(0b10, 250), (0b01, 750)]);
        let of = |queue, losses| of_list(&list, queue, losses).unwrap();
        let expected = Availability { open: 250, cycle: 1_000, latency: 750 };
        assert_eq!(of(1, Losses::default()), expected);
        let expected = Availability { open: 100, cycle: 1_000, latency: 900 };
        assert_eq!(of(1, Losses { start: 50, end: 100, ..Losses::default() }), expected);
        assert_eq!(of_list(&list, 1, Losses { start: 150, end: 100, ..Losses::default() }), None);
        assert_eq!(of_list(&list, 5, Losses::default()), None);
    }

    #[test]
    fn credit_rises_by_as_much_more_as_the_gate_is_closed() {
        let settings = PortSettings {
            gates: vec![list(1_000, &[(0b10, 250), (0b01, 750)])],
            ..PortSettings::default()
        };
        let of = |clock: &ClockError, wire| Accrual::new(&settings, 1, clock, 101, wire).unwrap();
        let right = ClockError::default();
        // 404 in a quarter of the time; 750 of 1000 ns are closed but for 250 at most.
        let expected = Accrual { open: 404, least: (101, 750), most: (101, 404 * 750 / 4) };
        assert_eq!(of(&right, 1_000), expected);
        // The wire carries no more than 300.
        let expected = Accrual { open: 300, least: (75, 750), most: (101, 300 * 750 / 4) };
        assert_eq!(of(&right, 300), expected);
        // By a clock that errs, windows are a nanosecond shorter, open and closed ones: 249 and
        // 749; ⌈404 · 251 / 1000⌉; latencies of 751 and 251 ns, and one more for the rounding.
        let clock = ClockError { drift_ppb: 1, ..ClockError::default() };
        let more = div_ceil(404 * 749 * 252, 1_000);
        let expected = Accrual { open: 404, least: (404 * 249 / 1_000, 752), most: (102, more) };
        assert_eq!(of(&clock, 1_000), expected);
        assert_eq!(slope_for(&settings, 1, &clock, 100), 101);
        assert_eq!(slope_for(&settings, 1, &right, 100), 100);
        assert_eq!(Accrual::new(&settings, 2, &right, 100, 1_000), None);
    }

    #[test]
    fn windows_of_two_states_and_over_the_end_of_the_cycle_are_one() {
        let list = list(100, &[(0b01, 20), (0b11, 30), (0b10, 10), (0b01, 90)]);
        let Windows::At(windows) = windows(&list, 0) else { panic!("not always open") };
        assert_eq!(windows, [(60, 150)]);
        assert!(overhangs(&list, 1, 0b01));
        assert!(!overhangs(&list, 0, 0b10));
    }

    proptest! {
        #[test]
        fn no_time_has_less_than_the_availability_says(
            entries in proptest::collection::vec((0u8..2, 1i64..30), 1..6),
            cycle in 20i64..80,
            from in 0i128..80,
            span in 0i128..300,
        ) {
            let list = list(cycle, &entries);
            let Some(available) = of_list(&list, 0, Losses::default()) else { return Ok(()) };
            let states = states(&list);
            let open = (from..from + span).filter(|t| {
                let t = t % i128::from(cycle);
                states.iter().find(|s| t < s.1).unwrap().0 == 1
            });
            let promised = available.open * (span - available.latency);
            prop_assert!(open.count() as i128 * available.cycle >= promised);
        }
    }
}
