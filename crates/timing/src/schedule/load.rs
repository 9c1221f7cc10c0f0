//! The load of a processor, in numbers only: jobs that are released again and again.

use onbeat_model::time::Span;
use std::collections::BTreeSet;

/// Beyond this no bound is looked for: about 36 years.
const FAR_NS: i128 = 1 << 60;

/// The search for a fixed point ends without a bound after so many iterations.
const ITERATIONS_MAX: usize = 100_000;

/// The priority of whatever has a deadline to be scheduled by (EDF): before all fixed ones.
pub const EDF: u32 = 1_000;

/// Jobs of one kind. Every job is released once, has a priority and, if there is one, a deadline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Load {
    /// The transaction that it is part of (Tindell 1994): loads of one transaction are released in
    /// fixed phases with each other and have the same period. The numbers mean nothing.
    pub transaction: usize,
    /// Loads of one thread: each job is released when the one before it is done, at the earliest,
    /// and what comes after it is as much later. None: jobs may come before others are done.
    pub thread: Option<usize>,
    /// The phase in the transaction.
    pub offset: Span,
    /// The least time between two nominal releases, more than 0; none: it is released once.
    pub period: Option<Span>,
    /// By how much a release may come after the nominal one.
    pub jitter: Span,
    /// By how much more its work may come late, as others see it, because it suspends itself.
    pub suspension_jitter: Span,
    /// How often a job may suspend itself: wait for something else than the processor. That is not
    /// counted in its response time.
    pub suspensions: u32,
    /// The longest execution time.
    pub wcet: Span,
    /// From the nominal release to the deadline.
    pub deadline: Option<Span>,
    /// Where jobs of this load have several deadlines, the latest one; `deadline` is the earliest.
    pub latest_deadline: Option<Span>,
    /// The greater the more urgent; [`EDF`] for all under EDF.
    pub priority: u32,
    /// Its critical sections, the outermost of those within each other.
    pub sections: Vec<Section>,
    /// Its longest non-preemptive region.
    pub non_preemptive: Span,
}

impl Load {
    /// A load of its own: no jitter, nothing locked, always preempted.
    pub fn new(
        transaction: usize,
        priority: u32,
        wcet: Span,
        period: Span,
        deadline: Span,
    ) -> Self {
        Self {
            transaction,
            thread: None,
            offset: Span::ZERO,
            period: Some(period),
            jitter: Span::ZERO,
            suspension_jitter: Span::ZERO,
            suspensions: 0,
            wcet,
            deadline: Some(deadline),
            latest_deadline: None,
            priority,
            sections: Vec::new(),
            non_preemptive: Span::ZERO,
        }
    }

    /// Whether both are parts of the same thread, which does not wait for itself.
    pub(super) fn is_same_thread(&self, other: &Self) -> bool {
        self.thread.is_some() && self.thread == other.thread
    }
}

/// A critical section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// What is locked in it: one resource, or more where sections are within each other.
    pub resources: Vec<usize>,
    /// Its longest execution time.
    pub length: Span,
}

/// What happens to the priority of who holds a resource that a more urgent one waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// It is the ceiling's from the lock on (`PTHREAD_PRIO_PROTECT`), or, what blocks no longer,
    /// the original priority ceiling protocol; under EDF the stack resource policy.
    Ceiling,
    /// It is inherited from who waits (`PTHREAD_PRIO_INHERIT`).
    #[default]
    Inheritance,
}

/// An exact share, or one rounded up where the exact one is too long a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    above: u128,
    below: u128,
}

impl Share {
    /// None of it.
    pub const ZERO: Self = Self { above: 0, below: 1 };

    /// The share of all time that loads use; those that are released once use none.
    pub fn of<'a>(loads: impl IntoIterator<Item = &'a Load>) -> Self {
        let used = loads.into_iter().filter_map(|l| Some((l.wcet.as_ns(), l.period?.as_ns())));
        let share = |(c, t): (i64, i64)| Self {
            above: u128::from(c.max(0).unsigned_abs()),
            below: u128::from(t.max(1).unsigned_abs()),
        };
        used.map(share).fold(Self::ZERO, Self::plus)
    }

    fn plus(self, other: Self) -> Self {
        let exact = || {
            let divisor = gcd(self.below, other.below);
            let below = (self.below / divisor).checked_mul(other.below)?;
            let left = self.above.checked_mul(below / self.below)?;
            let right = other.above.checked_mul(below / other.below)?;
            let above = left.checked_add(right)?;
            let divisor = gcd(above, below).max(1);
            Some(Self { above: above / divisor, below: below / divisor })
        };
        exact().unwrap_or_else(|| {
            let (left, right) = (self.coarse(), other.coarse());
            Self { above: left.above + right.above, below: left.below }
        })
    }

    /// In parts of a fixed size, rounded up.
    fn coarse(self) -> Self {
        const PARTS: u128 = 1 << 40;
        let whole = (self.above / self.below).saturating_mul(PARTS);
        let rest = self.above % self.below;
        let rest = match rest.checked_mul(PARTS) {
            Some(product) => product.div_ceil(self.below),
            None => rest.div_ceil(self.below / PARTS),
        };
        Self { above: whole.saturating_add(rest).min(1 << 100), below: PARTS }
    }

    /// Whether it is more than all.
    pub fn is_over(self) -> bool {
        self.above > self.below
    }

    /// Whether it is all, or more.
    pub fn is_full(self) -> bool {
        self.above >= self.below
    }

    /// In parts per million, rounded up.
    pub fn ppm(self) -> u64 {
        let parts = self.above.checked_mul(1_000_000).map(|product| product.div_ceil(self.below));
        let parts = parts.unwrap_or_else(|| self.coarse().above.saturating_mul(1_000_000) >> 40);
        u64::try_from(parts).unwrap_or(u64::MAX)
    }
}

fn gcd(mut a: u128, mut b: u128) -> u128 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// The least time, in nanoseconds, that is not less than what `needed` says is needed up to it, at
/// least `start`. `needed` must not decrease. None if there is none, or none was found.
pub(super) fn least(start: i128, needed: impl Fn(i128) -> Option<i128>) -> Option<i128> {
    let mut at = start;
    for _ in 0..ITERATIONS_MAX {
        if at > FAR_NS {
            return None;
        }
        let next = needed(at)?;
        if next <= at {
            return Some(at);
        }
        at = next;
    }
    None
}

pub(super) fn ns(span: Span) -> i128 {
    i128::from(span.as_ns())
}

pub(super) fn span(ns: i128) -> Span {
    Span::from_ns(i64::try_from(ns).unwrap_or(i64::MAX))
}

/// `a / b` rounded up, for b > 0 and any a.
pub(super) fn up(a: i128, b: i128) -> i128 {
    -(-a).div_euclid(b)
}

/// A transaction as a load sees it that it delays: loads in fixed phases with each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Transaction {
    period: Option<i128>,
    frames: Vec<Frame>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Frame {
    offset: i128,
    /// With that of suspensions.
    jitter: i128,
    wcet: i128,
}

impl Transaction {
    /// Those of `loads` that are chosen, by transaction.
    pub(super) fn all(loads: &[Load], is_chosen: impl Fn(usize) -> bool) -> Vec<Self> {
        let mut transactions: Vec<(usize, Self)> = Vec::new();
        for (_, load) in loads.iter().enumerate().filter(|(i, l)| is_chosen(*i) && ns(l.wcet) > 0) {
            let known =
                transactions.iter().position(|(transaction, _)| *transaction == load.transaction);
            let at = known.unwrap_or_else(|| {
                transactions.push((
                    load.transaction,
                    Self { period: load.period.map(ns), frames: Vec::new() },
                ));
                transactions.len() - 1
            });
            transactions[at].1.frames.push(Frame {
                offset: ns(load.offset),
                jitter: ns(load.jitter) + ns(load.suspension_jitter),
                wcet: ns(load.wcet),
            });
        }
        transactions.into_iter().map(|(_, transaction)| transaction).collect()
    }

    /// The most work that is released in a time of such a length (Palencia and González Harbour
    /// 1998: over all releases that the time may begin with).
    pub(super) fn work(&self, time: i128) -> i128 {
        if self.period.is_none() {
            return self.frames.iter().map(|f| self.work_once(f, time)).max().unwrap_or(0);
        }
        self.frames.iter().map(|f| self.work_from(f.offset + f.jitter, time)).max().unwrap_or(0)
    }

    /// Of what comes once, in its order and never sooner: the most that is released in a time that
    /// begins when a frame comes as late as it may.
    fn work_once(&self, begin: &Frame, time: i128) -> i128 {
        let from = begin.offset + begin.jitter;
        let is_in = |f: &&Frame| f.offset + f.jitter >= from && f.offset < from + time;
        if time > 0 { self.frames.iter().filter(is_in).map(|f| f.wcet).sum() } else { 0 }
    }

    /// The most work that is done in so many times of such a length together.
    pub(super) fn work_in(&self, times: i128, time: i128) -> i128 {
        if times <= 1 {
            return self.work(time);
        }
        let Some(period) = self.period else { return self.frames.iter().map(|f| f.wcet).sum() };
        let jobs = |frame: &Frame| up(time + times * frame.jitter, period) + times - 1;
        self.frames.iter().map(|frame| jobs(frame) * frame.wcet).sum()
    }

    /// The most work that is released in a time that begins at such a phase of the transaction.
    pub(super) fn work_from(&self, phase: i128, time: i128) -> i128 {
        let Some(period) = self.period else { return self.work(time) };
        let jobs = |frame: &Frame| {
            let first = (frame.offset - phase).rem_euclid(period);
            (frame.jitter + first).div_euclid(period) + up(time - first, period).max(0)
        };
        self.frames.iter().map(|frame| jobs(frame) * frame.wcet).sum()
    }
}

/// What loads may have to wait for that `is_above` says, directly or not: who holds something that
/// they use may want, while it holds it, what another one holds.
fn wanted(loads: &[Load], is_above: impl Fn(&Load) -> bool) -> BTreeSet<usize> {
    let above = loads.iter().filter(|load| is_above(load));
    let resources = |section: &Section| section.resources.clone();
    let mut wanted: BTreeSet<usize> =
        above.flat_map(|load| &load.sections).flat_map(resources).collect();
    loop {
        let before = wanted.len();
        for section in loads.iter().flat_map(|load| &load.sections) {
            if section.resources.iter().any(|resource| wanted.contains(resource)) {
                wanted.extend(&section.resources);
            }
        }
        if wanted.len() == before {
            return wanted;
        }
    }
}

/// How long something may be blocked: by sections of loads that are less urgent, `is_below`, which
/// lock what `is_above`, all others, may have to wait for, and by non-preemptive regions of
/// such loads. What begins before can block only, so each thread blocks with one section, the
/// outermost of those within each other, and under the ceiling protocols one thread does (Sha,
/// Rajkumar and Lehoczky 1990; Baker 1991).
pub(super) fn blocking(
    loads: &[Load],
    protocol: Protocol,
    is_below: impl Fn(&Load) -> bool,
    is_above: impl Fn(&Load) -> bool,
) -> i128 {
    if loads.iter().all(|load| load.sections.is_empty() && load.non_preemptive == Span::ZERO) {
        return 0;
    }
    let wanted = wanted(loads, is_above);
    let used = |resource: &usize| wanted.contains(resource);
    let below: Vec<&Load> = loads.iter().filter(|load| is_below(load)).collect();
    let non_preemptive = below.iter().map(|load| ns(load.non_preemptive)).max().unwrap_or(0);
    let mut sections: Vec<(usize, &Section)> = Vec::new();
    for (at, load) in below.iter().enumerate() {
        let thread = load.thread.unwrap_or(usize::MAX - at);
        let relevant = load.sections.iter().filter(|s| s.resources.iter().any(used));
        sections.extend(relevant.map(|section| (thread, section)));
    }
    let longest = sections.iter().map(|(_, s)| ns(s.length)).max().unwrap_or(0);
    if protocol == Protocol::Ceiling {
        return longest.max(non_preemptive);
    }
    let by_thread = sum_of_longest(sections.iter().map(|(t, s)| (*t, ns(s.length))).collect());
    let is_flat = sections.iter().all(|(_, s)| s.resources.len() == 1);
    let by_resource = sections.iter().map(|(_, s)| (s.resources[0], ns(s.length))).collect();
    let by_resource = if is_flat { sum_of_longest(by_resource) } else { i128::MAX };
    by_thread.min(by_resource) + non_preemptive
}

/// Of each key the greatest value, all together.
fn sum_of_longest(mut all: Vec<(usize, i128)>) -> i128 {
    all.sort_unstable_by_key(|(key, value)| (*key, -*value));
    all.dedup_by_key(|(key, _)| *key);
    all.iter().map(|(_, value)| value).sum()
}
