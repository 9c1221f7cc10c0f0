//! Response times under fixed priorities, preemptive, on one processor.
//!
//! Equal priorities delay each other. `docs/schedulability.md` has the formulas.

use super::load::{EDF, Load, Protocol, Share, Transaction, blocking, least, ns, span, up};
use onbeat_model::time::Span;

/// More jobs of one busy period are not looked at: there is no bound then.
const JOBS_MAX: i128 = 100_000;

/// From the nominal release of a job of `loads[index]` to its end at most; none if there is no
/// bound, or none was found.
///
/// Sound for any release times that the loads allow. Exact where each load is a transaction of its
/// own without jitter, suspensions or blocking (Lehoczky 1990), with jitter as well (Tindell, Burns
/// and Wellings 1994).
///
/// # Panics
/// When there is no such load.
pub fn response(loads: &[Load], index: usize, protocol: Protocol) -> Option<Span> {
    let me = &loads[index];
    if ns(me.wcet) == 0 || me.jitter == Span::MAX {
        return Some(me.jitter).filter(|jitter| *jitter < Span::MAX);
    }
    let is_rival = |at: usize| {
        let other = &loads[at];
        at != index && other.priority >= me.priority && !other.is_same_thread(me)
    };
    let far = |at: usize| is_rival(at) && loads[at].transaction != me.transaction;
    let is_near = |at: usize| is_rival(at) && loads[at].transaction == me.transaction;
    let own_rivals = (0..loads.len()).filter(|at| is_near(*at));
    let mut sight = Sight {
        blocking: blocked(loads, index, protocol),
        far: Transaction::all(loads, far),
        near: Transaction::all(loads, is_near).pop().unwrap_or_default(),
        both: Transaction::all(loads, |at| at == index || is_near(at)).pop().unwrap_or_default(),
        me,
    };
    let rivals = loads.iter().enumerate().filter(|(at, _)| far(*at) || is_near(*at));
    let rivals = Share::of(rivals.map(|(_, load)| load));
    if rivals.is_full() {
        return None;
    }
    let Some(period) = me.period.map(ns) else {
        // Without a thread, what came before it in its transaction may be left.
        let left = if me.thread.is_none() { sight.near.work_in(2, 1) } else { 0 };
        sight.blocking += left;
        return sight.first();
    };
    if me.thread.is_some() || me.suspensions > 0 {
        let response = sight.first()?;
        let is_alone = loads.iter().filter(|load| load.is_same_thread(me)).count() == 1;
        if is_alone && me.suspensions == 0 && ns(response) <= period {
            return Some(response);
        }
        // A job that comes late finds what waited for a section, or a piece, of the one before it;
        // that may be blocked as well, by sections that were begun before.
        sight.blocking += own(loads, index);
        return sight.first();
    }
    let mine = loads.iter().enumerate().filter(|(at, _)| is_rival(*at) || *at == index);
    if Share::of(mine.map(|(_, load)| load)).is_over() {
        return None;
    }
    let begins = own_rivals.chain([index]).map(|at| &loads[at]);
    let phase = |l: &Load| ns(l.offset) + ns(l.jitter) + ns(l.suspension_jitter);
    let each = begins.map(|load| sight.worst(period, phase(load)));
    let all: Option<Vec<i128>> = each.collect();
    all?.into_iter().max().map(span)
}

/// What less urgent loads hold when a job of `loads[index]` comes.
pub(super) fn blocked(loads: &[Load], index: usize, protocol: Protocol) -> i128 {
    let me = &loads[index];
    let is_below = |load: &Load| load.priority < me.priority && !load.is_same_thread(me);
    blocking(loads, protocol, is_below, |load| load.priority >= me.priority)
}

/// What the thread of `loads[index]` itself may hold of what others, as urgent at least, want.
pub(super) fn own(loads: &[Load], index: usize) -> i128 {
    let me = &loads[index];
    let is_other = |l: &Load| l.priority >= me.priority && !l.is_same_thread(me);
    blocking(loads, Protocol::Ceiling, |load| load.is_same_thread(me), is_other)
}

/// What one load sees of the others.
struct Sight<'a> {
    blocking: i128,
    /// Those of other transactions that delay it.
    far: Vec<Transaction>,
    /// Those of its own transaction.
    near: Transaction,
    /// Those and itself.
    both: Transaction,
    me: &'a Load,
}

impl Sight<'_> {
    fn far(&self, time: i128) -> i128 {
        self.far.iter().map(|transaction| transaction.work(time)).sum()
    }

    /// Of a job before which no other one of the load is left. After each time that it waits, the
    /// others interfere again.
    fn first(&self) -> Option<Span> {
        let times = i128::from(self.me.suspensions) + 1;
        let alone = times * self.blocking + ns(self.me.wcet);
        let others = |time| {
            self.far.iter().map(|transaction| transaction.work_in(times, time)).sum::<i128>()
        };
        let end = least(alone, |time| Some(alone + others(time)))?;
        Some(span(end + ns(self.me.jitter)))
    }

    /// Over all jobs of a busy period that begins at such a phase of its transaction.
    fn worst(&self, period: i128, phase: i128) -> Option<i128> {
        let jitter = ns(self.me.jitter) + ns(self.me.suspension_jitter);
        let all = |time: i128| self.blocking + self.both.work_from(phase, time) + self.far(time);
        let length = least(1.max(self.blocking), |time| Some(all(time)))?;
        let first = (ns(self.me.offset) - phase).rem_euclid(period);
        let jobs = (jitter + first).div_euclid(period) + up(length - first, period).max(0);
        if jobs > JOBS_MAX {
            return None;
        }
        let earliest = 1 - (jitter + first).div_euclid(period);
        let (mut worst, mut end) = (0, 0);
        for job in 1..=jobs {
            let mine = self.blocking + job * ns(self.me.wcet);
            let others = |time| self.near.work_from(phase, time) + self.far(time);
            end = least(mine.max(end), |time| Some(mine + others(time)))?;
            let release = first + (earliest + job - 2) * period;
            worst = worst.max(end - release);
        }
        Some(worst)
    }
}

/// From the release of a job of `loads[index]`, which takes `shortest[index]` at least, to its end
/// at least, where all loads are strictly periodic and preemptive (Redell and Sanfridson 2002;
/// Bril, Steffens and Verhaegh 2004). Equal priorities count as none here.
///
/// # Panics
/// When there is no such load.
pub fn best_response(loads: &[Load], shortest: &[Span], index: usize) -> Span {
    let me = &loads[index];
    let more_urgent = || loads.iter().zip(shortest).filter(|(l, _)| l.priority > me.priority);
    let others = |time: i128| {
        let preempted = more_urgent().filter_map(|(load, c)| {
            let jobs = up(time - ns(load.jitter), ns(load.period?)) - 1;
            Some(jobs.max(0) * ns(*c))
        });
        preempted.sum::<i128>()
    };
    // From above: any response time is a beginning that is long enough.
    let Some(worst) = response(loads, index, Protocol::Ceiling) else { return shortest[index] };
    let mut at = ns(worst);
    loop {
        let next = ns(shortest[index]) + others(at);
        if next >= at {
            return span(at);
        }
        at = next;
    }
}

/// Whether all that have deadlines meet them; those under EDF aside.
pub fn is_feasible(loads: &[Load], protocol: Protocol) -> bool {
    let fixed = (0..loads.len()).filter(|at| loads[*at].priority != EDF);
    fixed.into_iter().all(|at| is_met(loads, at, protocol))
}

/// Whether one meets its deadline.
pub(super) fn is_met(loads: &[Load], index: usize, protocol: Protocol) -> bool {
    let Some(deadline) = loads[index].deadline else { return true };
    response(loads, index, protocol).is_some_and(|response| response <= deadline)
}
