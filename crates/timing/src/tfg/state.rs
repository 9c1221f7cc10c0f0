//! What is known of all executions that come to a node.

use onbeat_model::graph::Interval;
use onbeat_model::time::Span;

/// Times above are as good as none: sums of them must not overflow.
const FAR: i64 = 1 << 61;
/// Before everything.
pub(super) const NEVER: Span = Span::from_ns(-(1 << 61));

/// How many messages have been written or read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) lo: u32,
    pub(super) hi: Option<u32>,
}

impl Count {
    pub(super) const NONE: Self = Self { lo: 0, hi: Some(0) };

    pub(super) fn or(self, other: Self) -> Self {
        let hi = self.hi.zip(other.hi).map(|(a, b)| a.max(b));
        Self { lo: self.lo.min(other.lo), hi }
    }

    /// One more for certain, or perhaps.
    pub(super) fn more(self, is_certain: bool) -> Self {
        Self { lo: self.lo + u32::from(is_certain), hi: self.hi.map(|hi| hi.saturating_add(1)) }
    }
}

/// Whether the next message of an end is the second one, which may set the phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Second {
    No,
    Perhaps,
    Yes,
}

impl Second {
    /// After a message that was due then.
    pub(super) fn after(due: Interval) -> Self {
        match due.lo == NEVER {
            true if due.hi == Some(NEVER) => Self::Yes,
            true => Self::Perhaps,
            false => Self::No,
        }
    }

    fn or(self, other: Self) -> Self {
        if self == other { self } else { Self::Perhaps }
    }
}

/// That a point is reached by an abort.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Late {
    /// In some executions.
    pub(super) may: bool,
    /// In all.
    pub(super) must: bool,
    /// By how much the deadline would have been missed.
    pub(super) by: Option<Span>,
    /// The row in which it was.
    pub(super) row: usize,
}

/// That something is held when a point is reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Holds {
    /// In some executions.
    pub(super) may: bool,
    /// In all.
    pub(super) must: bool,
}

/// Where a busy period began, and what was executed in it: `begin` plus the time to complete `work`
/// is an upper bound, for the time and for what has elapsed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Busy {
    pub(super) now: Option<Span>,
    pub(super) elapsed: Option<Span>,
    pub(super) work: Span,
}

/// All executions that come to a node in one round of its loops.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct State {
    /// By the host's clock.
    pub(super) now: Interval,
    pub(super) origin: Interval,
    /// From the origin to now: what decides about releases and aborts, and is known better than
    /// the difference of the two.
    pub(super) elapsed: Interval,
    pub(super) registers: Vec<Option<i64>>,
    /// By the task's channel ends.
    pub(super) counts: Vec<Count>,
    /// By the task's channel ends: when the rate would have the next message.
    pub(super) due: Vec<Interval>,
    /// By the task's channel ends, of those that catch up.
    pub(super) second: Vec<Second>,
    /// Which timing points may have been the last, or node 0.
    pub(super) points: Vec<usize>,
    /// Whether the next point may be skipped, and whether it may not be.
    pub(super) may_skip: bool,
    pub(super) may_wait: bool,
    pub(super) busy: Busy,
    pub(super) late: Late,
    pub(super) holds: Holds,
    /// Of which loops (bit: depth) this stands for all further rounds.
    pub(super) wide: u64,
    pub(super) before: Vec<(usize, Interval)>,
}

pub(super) fn sum(a: Option<Span>, b: Option<Span>) -> Option<Span> {
    a.zip(b).map(|(a, b)| a + b).filter(|sum| sum.as_ns() < FAR)
}

/// The lesser of two upper bounds.
pub(super) fn least(a: Option<Span>, b: Option<Span>) -> Option<Span> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

fn most(a: Option<Span>, b: Option<Span>) -> Option<Span> {
    a.zip(b).map(|(a, b)| a.max(b))
}

/// A time of the one after a time of the other; far away there is no bound.
pub(super) fn plus(a: Interval, b: Interval) -> Interval {
    let lo = Span::from_ns((a.lo + b.lo).as_ns().min(FAR));
    Interval { lo, hi: sum(a.hi, b.hi) }
}

impl State {
    pub(super) fn start(registers: u16, ends: usize) -> Self {
        Self {
            now: Interval::ZERO,
            origin: Interval::ZERO,
            elapsed: Interval::ZERO,
            registers: vec![None; usize::from(registers)],
            counts: vec![Count::NONE; ends],
            due: vec![Interval::exactly(NEVER); ends],
            second: vec![Second::No; ends],
            points: vec![0],
            may_skip: false,
            may_wait: true,
            busy: Busy::default(),
            late: Late::default(),
            holds: Holds::default(),
            wide: 0,
            before: Vec::new(),
        }
    }

    /// Forgets what nothing depends on: registers, and the origin behind them, without a use.
    pub(super) fn forget(&mut self, lives: &[bool]) {
        self.before.clear();
        let registers = self.registers.iter_mut().zip(lives);
        registers.filter(|(_, lives)| !**lives).for_each(|(register, _)| *register = None);
        if lives.last() == Some(&false) {
            (self.origin, self.elapsed) = (self.now, Interval::ZERO);
            self.busy.elapsed = None;
        }
    }

    /// A busy period begins here.
    pub(super) fn rest(&mut self) {
        self.busy = Busy { now: self.now.hi, elapsed: self.elapsed.hi, work: Span::ZERO };
    }

    /// Makes now, origin and elapsed agree. None if nothing is left.
    pub(super) fn agree(mut self) -> Option<Self> {
        let (now, origin, elapsed) = (self.now, self.origin, self.elapsed);
        self.now.hi = least(now.hi, sum(origin.hi, elapsed.hi));
        self.now.lo = now.lo.max(origin.lo + elapsed.lo);
        self.elapsed.hi = least(elapsed.hi, self.now.hi.map(|hi| hi - origin.lo));
        self.origin.hi = least(origin.hi, self.now.hi.map(|hi| hi - elapsed.lo));
        if let Some(most) = self.elapsed.hi {
            self.origin.lo = origin.lo.max(self.now.lo - most);
        }
        if let Some(last) = self.origin.hi {
            self.elapsed.lo = elapsed.lo.max(self.now.lo - last);
        }
        let fits = |i: Interval| i.hi.is_none_or(|hi| i.lo <= hi);
        (fits(self.now) && fits(self.origin) && fits(self.elapsed)).then_some(self)
    }

    /// Nothing continues before `until`, which does not depend on now or origin.
    #[must_use]
    pub(super) fn not_before(mut self, until: Interval) -> Self {
        let waits = until.hi.is_none_or(|hi| hi > self.now.lo);
        if !waits {
            return self;
        }
        let elapsed = Interval {
            lo: self.origin.hi.map_or(NEVER, |last| until.lo - last),
            hi: until.hi.map(|hi| hi - self.origin.lo),
        };
        self.now = self.now.later(until);
        self.elapsed = self.elapsed.later(elapsed);
        self.rest();
        self
    }

    /// Time passes.
    #[must_use]
    pub(super) fn after(mut self, time: Interval) -> Self {
        self.now = plus(self.now, time);
        self.elapsed = plus(self.elapsed, time);
        self
    }

    /// Those executions in which at most so much has elapsed.
    pub(super) fn until(mut self, most: Span) -> Option<Self> {
        self.elapsed.hi = least(self.elapsed.hi, Some(most));
        self.agree()
    }

    /// Those in which at least so much has elapsed.
    pub(super) fn from(mut self, least: Span) -> Option<Self> {
        self.elapsed.lo = self.elapsed.lo.max(least);
        self.agree()
    }

    /// All executions of both.
    #[must_use]
    pub(super) fn or(mut self, other: Self) -> Self {
        self.busy = match (self.busy, other.busy) {
            (a, b) if (a.now, a.elapsed) == (b.now, b.elapsed) => {
                Busy { work: a.work.max(b.work), ..a }
            }
            _ => Busy {
                now: most(self.now.hi, other.now.hi),
                elapsed: most(self.elapsed.hi, other.elapsed.hi),
                work: Span::ZERO,
            },
        };
        self.now = self.now.or(other.now);
        self.origin = self.origin.or(other.origin);
        self.elapsed = self.elapsed.or(other.elapsed);
        let registers = self.registers.iter_mut().zip(other.registers);
        registers.filter(|(a, b)| **a != *b).for_each(|(a, _)| *a = None);
        self.counts.iter_mut().zip(other.counts).for_each(|(a, b)| *a = a.or(b));
        self.due.iter_mut().zip(other.due).for_each(|(a, b)| *a = a.or(b));
        self.second.iter_mut().zip(other.second).for_each(|(a, b)| *a = a.or(b));
        self.points.extend(other.points);
        self.points.sort_unstable();
        self.points.dedup();
        self.may_skip |= other.may_skip;
        self.may_wait |= other.may_wait;
        self.late = match (self.late, other.late) {
            (a, b) if a.may && b.may => Late { must: a.must && b.must, by: most(a.by, b.by), ..a },
            (a, b) => Late { must: false, ..if a.may { a } else { b } },
        };
        self.holds.may |= other.holds.may;
        self.holds.must &= other.holds.must;
        self.wide |= other.wide;
        self.before.extend(other.before);
        self
    }

    /// The same, so much later, but for what only tells where it came from.
    pub(super) fn is_shifted(&self, by: Span, later: &Self) -> bool {
        let shift = |i: Interval| i + Interval::exactly(by);
        let due = |(a, b): (&Interval, &Interval)| {
            shift(*a) == *b || a.hi == Some(NEVER) && b.hi == Some(NEVER)
        };
        shift(self.now) == later.now
            && shift(self.origin) == later.origin
            && self.elapsed == later.elapsed
            && self.registers == later.registers
            && self.due.iter().zip(&later.due).all(due)
            && self.second == later.second
            && self.points == later.points
            && (self.may_skip, self.may_wait, self.late.may, self.late.must)
                == (later.may_skip, later.may_wait, later.late.may, later.late.must)
            && self.holds == later.holds
            && self.busy.now.map(|now| now + by) == later.busy.now
            && (self.busy.elapsed, self.busy.work) == (later.busy.elapsed, later.busy.work)
    }
}
