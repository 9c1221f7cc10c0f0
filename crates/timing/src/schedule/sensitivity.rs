//! How much more would fit, and how often a deadline is missed at most.

use super::load::{Load, Protocol, Share, Transaction, ns, span};
use super::{fixed, is_feasible, response};
use onbeat_model::time::Span;

/// As much as now, in parts per million.
const WHOLE: u64 = 1_000_000;

/// No growth beyond this is looked for.
const SCALING_MAX: u64 = 1 << 50;

/// To how many parts per million of what they are the execution times, critical sections and pieces
/// of the loads that are `chosen` may grow together: one part more, and a deadline is missed, or
/// there is more to do than fits. None if they may grow for ever. Times are rounded up.
pub fn scaling(loads: &[Load], protocol: Protocol, chosen: impl Fn(usize) -> bool) -> Option<u64> {
    let fits = |ppm: u64| {
        let mut grown = loads.to_vec();
        for (_, load) in grown.iter_mut().enumerate().filter(|(at, _)| chosen(*at)) {
            load.wcet = scaled(load.wcet, ppm);
            load.non_preemptive = scaled(load.non_preemptive, ppm);
            load.sections.iter_mut().for_each(|s| s.length = scaled(s.length, ppm));
        }
        // Who has no deadline and comes at unknown times may come as often as it likes.
        let known = grown.iter().filter(|load| load.period.is_some_and(|p| p > Span::from_ns(1)));
        !Share::of(known).is_over() && is_feasible(&grown, protocol)
    };
    let mut high = WHOLE;
    while fits(high) {
        if high >= SCALING_MAX {
            return None;
        }
        high *= 2;
    }
    let mut low = 0;
    while low < high {
        let middle = low + (high - low) / 2;
        if fits(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    Some(low.saturating_sub(1))
}

/// So many parts per million of a time, rounded up.
pub fn scaled(time: Span, ppm: u64) -> Span {
    let product = ns(time) * i128::from(ppm);
    let whole = i128::from(WHOLE);
    Span::from_ns(i64::try_from((product + whole - 1) / whole).unwrap_or(i64::MAX / 4))
}

/// Of any `jobs` consecutive jobs of `loads[index]`, how many may miss their deadlines at most. It
/// is released strictly every period, but for its jitter, and each job is given up at its
/// deadline, not after the next release.
///
/// A job that misses had to leave the processor to others for longer than its deadline leaves.
/// So many times over, the others have no such work: neither each time, nor altogether.
///
/// # Panics
/// When there is no such load, or it has no period or no deadline within it.
pub fn misses(loads: &[Load], index: usize, jobs: u32, protocol: Protocol) -> u32 {
    let me = &loads[index];
    let period = me.period.expect("a job comes every period");
    let deadline = me.deadline.expect("a job has a deadline");
    assert!(deadline <= period, "a job is over when the next one comes");
    let is_rival = |at: usize| {
        let other = &loads[at];
        at != index && other.priority >= me.priority && !other.is_same_thread(me)
    };
    // What was released before may be left. Of a job whose last work is done so late, none is
    // done before: it counts from its end less its work.
    let mut late = loads.to_vec();
    for at in (0..late.len()).filter(|at| is_rival(*at)) {
        let Some(end) = longest(loads, at, protocol) else { return jobs };
        let load = &mut late[at];
        let is_alone =
            loads.iter().filter(|other| other.transaction == load.transaction).count() == 1;
        let is_short = is_alone && load.period.is_none_or(|period| load.wcet <= period);
        let late_by = ns(end) - if is_short { ns(load.wcet) } else { 0 };
        load.suspension_jitter = span((late_by - ns(load.jitter)).max(0));
    }
    let transactions = Transaction::all(&late, is_rival);
    let blocked = fixed::blocked(loads, index, protocol) + fixed::own(loads, index);
    let left = ns(deadline) - ns(me.jitter) - ns(me.wcet) - blocked;
    if left < 0 {
        return jobs;
    }
    let all = ns(period) * i128::from(jobs.saturating_sub(1)) + ns(deadline);
    let may_miss = |jobs: u32| {
        let times = i128::from(jobs);
        let each = |transaction: &Transaction| {
            (times * transaction.work(ns(deadline))).min(transaction.work(all))
        };
        transactions.iter().map(each).sum::<i128>() >= times * (left + 1)
    };
    // What others do grows ever slower, so the first that does not fit is the end.
    (1..=jobs).find(|many| !may_miss(*many)).map_or(jobs, |many| many - 1)
}

/// From nominal release to when nothing of a job is left.
fn longest(loads: &[Load], index: usize, protocol: Protocol) -> Option<Span> {
    let load = &loads[index];
    let response = response(loads, index, protocol);
    let response = response.map(|response| span(ns(response) + ns(load.suspension_jitter)));
    match load.period {
        Some(period) if load.thread.is_some() => Some(response.map_or(period, |r| r.min(period))),
        _ => response,
    }
}
