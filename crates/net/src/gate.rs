//! Time-aware gates (802.1Qbv, 802.1Q-2022 8.6.8.4): when each queue of a port may start a frame.
//!
//! Gate control lists stand in the node's own time. Nothing happens at a gate's change: a port asks
//! when a frame may start, and gets the answer from the list's windows by arithmetic and a binary
//! search. The last window that was found is kept, so that most questions cost a comparison.
//!
//! A clock that steps takes its gates with it. The port does not know beforehand: whether a frame
//! ends before its gate closes goes by the clock as it is when the frame starts. So each window is
//! looked up by the clock as it is until the next step, and holds no longer. So it is with a clock
//! that a protocol steers: whenever it does, windows are looked up again, and what a credit-based
//! shaper has got meanwhile is reckoned by the clock as it then is.

use onbeat_model::port::{GateControl, PortSettings, QUEUES, Selection};
use onbeat_model::time::{ClockError, NetTime, Span, SyncedTime};
use onbeat_model::units::BitRate;

/// How many windows that are too short a look-up goes over.
const MAX_WINDOWS: u32 = 64;

/// The gates of one port.
///
/// The cycles of a list start at its base plus whole cycles, wherever its base is: at the epoch, a
/// list whose base is past is in the cycle that this gives. Before the first base all gates are
/// open. A list ends at the next one's base, in the middle of a cycle if need be.
#[derive(Debug)]
pub(crate) struct Gates {
    clock: ClockError,
    /// In the order of their bases, never empty.
    lists: Vec<List>,
    /// Per queue: the last window that was looked up.
    windows: [Window; QUEUES],
    /// Per queue: its operIdleSlope, which is its idleSlope until the first list begins.
    idle_slopes: [BitRate; QUEUES],
}

/// One gate control list; times within a cycle in ns from its start.
#[derive(Debug)]
struct List {
    base: SyncedTime,
    /// The base of the next list.
    until: SyncedTime,
    cycle: i64,
    length_aware: bool,
    /// Per queue: when its gate is open, sorted, neither overlapping nor touching.
    open: [Vec<(i64, i64)>; QUEUES],
    /// Per queue: its idleSlope while its gate is open.
    idle_slopes: [BitRate; QUEUES],
}

/// The rest of a time during which a gate is open without a break.
#[derive(Clone, Copy, Debug)]
struct Window {
    /// What it was looked up for: it is the first window that ends after this.
    from: NetTime,
    /// When it opens, not before `from`; the end of time if it never does.
    opens: NetTime,
    /// When it closes; the end of time if it never does.
    closes: NetTime,
    /// When the clock steps, and all may be different.
    steps: NetTime,
    /// Whether the list that closes it lets a frame start only if it ends before.
    length_aware: bool,
}

impl Window {
    /// Until when it holds.
    fn end(&self) -> NetTime {
        self.closes.min(self.steps)
    }
}

/// Valid for no time: the first look-up replaces it.
const NO_WINDOW: Window = Window {
    from: NetTime::MAX,
    opens: NetTime::ZERO,
    closes: NetTime::ZERO,
    steps: NetTime::ZERO,
    length_aware: false,
};

/// The gate of one queue; always open at a port without gates.
#[derive(Debug)]
pub(crate) struct Gate<'a> {
    gates: Option<&'a mut Gates>,
    queue: usize,
}

impl<'a> Gate<'a> {
    /// The gate of `queue`.
    pub(crate) fn of(gates: &'a mut Option<Box<Gates>>, queue: usize) -> Self {
        Self { gates: gates.as_deref_mut(), queue }
    }

    /// A gate that never closes.
    pub(crate) fn always_open() -> Self {
        Self { gates: None, queue: 0 }
    }

    /// The earliest time from `at` on at which a transmission that `lasts` so long, gap included,
    /// may start; the end of time if there is none. If it hangs on how the clock rounds whether any
    /// window is long enough, the answer may be an earlier time at which to ask again.
    pub(crate) fn start(&mut self, at: NetTime, lasts: impl FnOnce() -> Span) -> NetTime {
        match &mut self.gates {
            Some(gates) if at != NetTime::MAX => gates.start(self.queue, at, lasts()),
            _ => at,
        }
    }

    /// Whether a transmission that lasts so long may start at `at`, by the clock as it is `now`: if
    /// not, when to ask again.
    pub(crate) fn lets(
        &mut self,
        now: NetTime,
        at: NetTime,
        lasts: impl FnOnce() -> Span,
    ) -> Result<(), NetTime> {
        let Some(gates) = &mut self.gates else { return Ok(()) };
        let steps = gates.clock.step.next(now);
        let lasts = lasts();
        let from = if steps > at {
            gates.start(self.queue, at, lasts)
        } else {
            let window = gates.find_by(&gates.clock.as_of(now), self.queue, at);
            let fits = !window.length_aware || window.closes - at >= lasts;
            if window.opens <= at && fits { at } else { steps }
        };
        if from == at { Ok(()) } else { Err(from) }
    }

    /// The credit that the queue gets between `from` and `to` if its operIdleSlope is `slope`;
    /// at least `enough` if it is more than that.
    pub(crate) fn credit(
        &mut self,
        slope: BitRate,
        from: NetTime,
        to: NetTime,
        enough: i128,
    ) -> i128 {
        match &mut self.gates {
            None => paid(slope, to - from),
            Some(gates) => gates.credit(self.queue, from, to, enough),
        }
    }

    /// When the queue will have got so much credit since `from`, to the next nanosecond, and how
    /// much it is then; the end of time if never.
    pub(crate) fn after_credit(
        &mut self,
        slope: BitRate,
        from: NetTime,
        credit: i128,
    ) -> (NetTime, i128) {
        match &mut self.gates {
            None => {
                let wait = time_to_pay(slope, credit);
                (from + wait, paid(slope, wait))
            }
            Some(gates) => gates.after_credit(self.queue, from, credit),
        }
    }
}

/// What `slope` pays in a time, in 10⁻⁹ bit.
fn paid(slope: BitRate, span: Span) -> i128 {
    i128::from(slope.as_bps()) * i128::from(span.as_ns())
}

/// How long `slope` takes to pay for so many 10⁻⁹ bit.
fn time_to_pay(slope: BitRate, credit: i128) -> Span {
    let wait = credit.unsigned_abs().div_ceil(slope.as_bps().into());
    Span::from_ns(i64::try_from(wait).expect("credit recovers within 292 years"))
}

impl Gates {
    /// The gates of a port of a node with this clock, whose link has this rate; `None` without any
    /// list.
    pub(crate) fn new(
        settings: &PortSettings,
        rate: BitRate,
        clock: ClockError,
    ) -> Option<Box<Self>> {
        let controls = &settings.gates;
        let last = [NetTime::MAX];
        let ends = controls.iter().map(|control| control.base).skip(1).chain(last);
        let idle_slopes = settings.selection.map(|selection| match selection {
            Selection::CreditBased { idle_slope } => idle_slope,
            _ => BitRate::default(),
        });
        let list = |(control, end)| List::new(control, end, idle_slopes, rate);
        let lists: Vec<_> = controls.iter().zip(ends).map(list).collect();
        let windows = [NO_WINDOW; QUEUES];
        (!lists.is_empty()).then(|| Box::new(Self { clock, lists, windows, idle_slopes }))
    }

    /// From now on the node's clock is this one: windows are looked up again.
    pub(crate) fn set_clock(&mut self, clock: ClockError) {
        self.clock = clock;
        self.windows = [NO_WINDOW; QUEUES];
    }

    fn start(&mut self, queue: usize, mut at: NetTime, lasts: Span) -> NetTime {
        let mut window = self.window(queue, at);
        for _ in 0..MAX_WINDOWS {
            let start = at.max(window.opens);
            if !window.length_aware || window.closes - start >= lasts {
                return start;
            }
            at = match self.skip(queue, window.end(), lasts) {
                Some(at) => at,
                None => return NetTime::MAX,
            };
            window = self.find(queue, at);
        }
        at
    }

    /// Where to look for a window of this length after one that closes at `at`: there, unless the
    /// list in force heeds the length and has none, then shortly before its end, or nowhere if it
    /// never ends.
    fn skip(&self, queue: usize, at: NetTime, lasts: Span) -> Option<NetTime> {
        let Some(list) = self.in_force(self.clock.read(at)) else { return Some(at) };
        if !list.length_aware {
            return Some(at);
        }
        let steps = self.clock.step.next(at);
        let longest = list.longest(queue);
        // What a window lasts in true time differs by the clock's rate (1000 ppm at most) and
        // rounding.
        let more = if self.clock.drift_ppb == 0 { 0 } else { longest / 512 + 2 };
        if longest.saturating_add(more) >= lasts.as_ns() {
            return Some(at);
        }
        // A window at the end may continue in the next list.
        let end = || self.clock.when_from(at, list.until - Span::from_ns(2 * list.cycle));
        let end = if list.until == SyncedTime::MAX { NetTime::MAX } else { end() };
        Some(end.min(steps)).filter(|end| *end != NetTime::MAX)
    }

    fn credit(&mut self, queue: usize, from: NetTime, to: NetTime, enough: i128) -> i128 {
        let (mut at, mut credit) = (from, 0);
        while at < to && credit < enough {
            let (start, slope, end) = self.paying(queue, at);
            let end = end.min(to);
            credit += paid(slope, (end - start).max(Span::ZERO));
            at = end;
        }
        credit
    }

    fn after_credit(&mut self, queue: usize, from: NetTime, credit: i128) -> (NetTime, i128) {
        let (mut at, mut got) = (from, 0);
        loop {
            let (start, slope, end) = self.paying(queue, at);
            if start == NetTime::MAX {
                return (start, got);
            }
            let wait = time_to_pay(slope, credit - got);
            if end - start >= wait {
                return (start + wait, got + paid(slope, wait));
            }
            got += paid(slope, end - start);
            at = end;
        }
    }

    /// From when on, from `at` on, the gate is open with which idleSlope, and until when.
    fn paying(&mut self, queue: usize, at: NetTime) -> (NetTime, BitRate, NetTime) {
        let window = self.window(queue, at);
        let start = at.max(window.opens);
        if start == NetTime::MAX {
            return (start, BitRate::default(), start);
        }
        let (slope, until) = match self.in_force(self.clock.read(start)) {
            None => (self.idle_slopes[queue], self.lists[0].base),
            Some(list) => (list.idle_slopes[queue], list.until),
        };
        let until = match until {
            SyncedTime::MAX => NetTime::MAX,
            until => self.clock.when_from(start, until),
        };
        (start, slope, window.end().min(until))
    }

    /// The first window that ends after `at`.
    fn window(&mut self, queue: usize, at: NetTime) -> Window {
        let known = self.windows[queue];
        if known.from <= at && at < known.end() {
            return known;
        }
        self.windows[queue] = self.find(queue, at);
        self.windows[queue]
    }

    /// As [`Gates::window`], by the clock as it is at that time.
    fn find(&self, queue: usize, at: NetTime) -> Window {
        let mut from = at;
        loop {
            let window = self.find_unstepped(queue, from);
            if window.opens < window.steps || window.steps == NetTime::MAX {
                return Window { from: at, ..window };
            }
            from = window.steps;
        }
    }

    /// As [`Gates::find`], as if the clock did not step any more.
    fn find_unstepped(&self, queue: usize, at: NetTime) -> Window {
        let steps = self.clock.step.next(at);
        Window { steps, ..self.find_by(&self.clock.as_of(at), queue, at) }
    }

    /// As [`Gates::find`], by a clock that does not step.
    fn find_by(&self, clock: &ClockError, queue: usize, at: NetTime) -> Window {
        let now = clock.read(at);
        let mut local = now;
        let end = NetTime::MAX;
        loop {
            let mut window =
                Window { from: at, opens: end, closes: end, steps: end, length_aware: false };
            let Some((opens, _)) = self.first(queue, local, true) else { return window };
            window.opens = if opens == now { at } else { clock.when(opens) };
            let Some((closes, list)) = self.first(queue, opens, false) else { return window };
            window.closes = clock.when(closes);
            window.length_aware = self.lists[list].length_aware;
            // By a fast clock, a nanosecond may be none in true time.
            if window.closes > window.opens {
                return window;
            }
            local = closes;
        }
    }

    /// The first instant from `from` on at which the gate is as asked for, and the list in force.
    fn first(&self, queue: usize, from: SyncedTime, open: bool) -> Option<(SyncedTime, usize)> {
        let lists = &self.lists;
        let begun = lists.partition_point(|list| list.base <= from);
        if begun == 0 && open {
            return Some((from, 0));
        }
        (begun.saturating_sub(1)..lists.len()).find_map(|at| {
            let list = &lists[at];
            let found = list.first(queue, from.max(list.base), open)?;
            (found < list.until).then_some((found, at))
        })
    }

    fn in_force(&self, at: SyncedTime) -> Option<&List> {
        self.lists.iter().rfind(|list| list.base <= at)
    }
}

/// operIdleSlope × OperCycleTime / GateOpenTime (802.1Q-2022 8.6.8.2), rounded up: so much credit
/// while the gate is open leaves operIdleSlope in the long run.
fn while_open(slope: BitRate, cycle_ns: i64, open_ns: i64) -> BitRate {
    if open_ns == 0 {
        return slope;
    }
    let bps = i128::from(slope.as_bps()) * i128::from(cycle_ns);
    let bps = (bps + i128::from(open_ns) - 1) / i128::from(open_ns);
    BitRate::from_bps(u64::try_from(bps).unwrap_or(u64::MAX))
}

impl List {
    fn new(
        control: &GateControl,
        until: NetTime,
        idle_slopes: [BitRate; QUEUES],
        rate: BitRate,
    ) -> Self {
        let cycle = control.cycle.as_ns();
        assert!(cycle > 0 && !control.entries.is_empty(), "a gate control list without a cycle");
        let mut open: [Vec<(i64, i64)>; QUEUES] = Default::default();
        let mut start = 0;
        for (at, entry) in control.entries.iter().enumerate() {
            // The last state is kept to the end of the cycle.
            let is_last = at + 1 == control.entries.len();
            let end = if is_last { cycle } else { cycle.min(start + entry.span.as_ns()) };
            for (queue, windows) in open.iter_mut().enumerate() {
                if start >= end || entry.open >> queue & 1 == 0 {
                    continue;
                }
                match windows.last_mut() {
                    Some(window) if window.1 == start => window.1 = end,
                    _ => windows.push((start, end)),
                }
            }
            start = end;
        }
        let base = SyncedTime::from_ns(control.base.as_ns());
        let until = SyncedTime::from_ns(until.as_ns());
        let mut slopes = idle_slopes;
        for (slope, windows) in slopes.iter_mut().zip(&open) {
            let open_ns: i64 = windows.iter().map(|(from, to)| to - from).sum();
            *slope = while_open(*slope, cycle, open_ns).min(rate);
        }
        let length_aware = control.length_aware;
        Self { base, until, cycle, length_aware, open, idle_slopes: slopes }
    }

    /// As [`Gates::first`], as if the list were in force for ever; `from` is not before its base.
    fn first(&self, queue: usize, from: SyncedTime, open: bool) -> Option<SyncedTime> {
        let windows = &self.open[queue];
        let phase = (from - self.base).as_ns() % self.cycle;
        let next = windows.partition_point(|window| window.1 <= phase);
        let after = |ns: i64| Some(from + Span::from_ns(ns - phase));
        let first = windows.first();
        match (windows.get(next), open) {
            (Some(window), true) => after(window.0.max(phase)),
            (None, true) => after(self.cycle + first?.0),
            (Some(window), false) if window.0 <= phase => match first {
                // Open over the end of the cycle.
                Some((0, end)) if window.1 == self.cycle => {
                    (*end < self.cycle).then(|| after(self.cycle + end))?
                }
                _ => after(window.1),
            },
            (_, false) => Some(from),
        }
    }

    /// The longest time that the gate is open without a break, in ns.
    fn longest(&self, queue: usize) -> i64 {
        let windows = &self.open[queue];
        let longest = windows.iter().map(|window| window.1 - window.0).max().unwrap_or(0);
        match (windows.first(), windows.last()) {
            (Some((0, end)), Some(_)) if *end == self.cycle => i64::MAX,
            (Some((0, end)), Some((start, last))) if *last == self.cycle => {
                longest.max(end + self.cycle - start)
            }
            _ => longest,
        }
    }
}
