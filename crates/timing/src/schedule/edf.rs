//! Earliest deadline first, preemptive, on one processor: processor demand and response times.
//!
//! Only the loads under EDF count; fixed priorities come after them and can but block.
//! `docs/schedulability.md` has the formulas.

use super::load::{EDF, Load, Protocol, Share, Transaction, blocking, least, ns, span};
use onbeat_model::time::Span;

/// More instants are not looked at: the answer is then the safe one.
const POINTS_MAX: usize = 200_000;

/// The deadlines of what is under EDF.
struct Demand<'a> {
    loads: &'a [Load],
    protocol: Protocol,
    transactions: Vec<Deadlines>,
}

/// The loads of a transaction and the deadlines of their jobs.
struct Deadlines {
    period: Option<i128>,
    /// The greatest jitter of the transaction, with that of suspensions: each load is given it.
    jitter: i128,
    /// Offset, deadline, execution time.
    frames: Vec<(i128, i128, i128)>,
}

impl Deadlines {
    /// From the begin of a time before which nothing waits, which begins with `frames[begin]`, to
    /// the first deadline of each frame, and what is to be done by it.
    fn first(&self, begin: usize) -> impl Iterator<Item = (i128, i128)> {
        let phase = self.frames[begin].0;
        self.frames.iter().map(move |(offset, deadline, wcet)| {
            let later = self.period.map_or(0, |period| (offset - phase).rem_euclid(period));
            (later + deadline - self.jitter, *wcet)
        })
    }

    /// The most work that is released and to be done in a time of such a length.
    fn demand(&self, time: i128) -> i128 {
        let jobs = |first: i128| match self.period {
            _ if time < first => 0,
            None => 1,
            Some(period) => (time - first) / period + 1,
        };
        let from = |begin| self.first(begin).map(|(first, wcet)| jobs(first) * wcet).sum();
        (0..self.frames.len()).map(from).max().unwrap_or(0)
    }

    /// The last instant before `time` at which there is more to do.
    fn before(&self, time: i128) -> Option<i128> {
        let last = |first: i128| match self.period {
            _ if first >= time => None,
            None => Some(first),
            Some(period) => Some(first + (time - 1 - first) / period * period),
        };
        let from = |begin| self.first(begin).filter_map(|(first, _)| last(first)).max();
        (0..self.frames.len()).filter_map(from).max()
    }
}

impl<'a> Demand<'a> {
    fn new(loads: &'a [Load], protocol: Protocol) -> Self {
        let mut transactions: Vec<(usize, Deadlines)> = Vec::new();
        for load in loads.iter().filter(|load| load.priority == EDF && ns(load.wcet) > 0) {
            let known =
                transactions.iter().position(|(transaction, _)| *transaction == load.transaction);
            let at = known.unwrap_or_else(|| {
                let period = load.period.map(ns);
                transactions
                    .push((load.transaction, Deadlines { period, jitter: 0, frames: Vec::new() }));
                transactions.len() - 1
            });
            let transaction = &mut transactions[at].1;
            transaction.jitter =
                transaction.jitter.max(ns(load.jitter) + ns(load.suspension_jitter));
            transaction.frames.push((ns(load.offset), ns(due(load)), ns(load.wcet)));
        }
        Self {
            loads,
            protocol,
            transactions: transactions.into_iter().map(|(_, transaction)| transaction).collect(),
        }
    }

    fn of(&self, time: i128) -> i128 {
        self.transactions.iter().map(|transaction| transaction.demand(time)).sum()
    }

    fn before(&self, time: i128) -> Option<i128> {
        self.transactions.iter().filter_map(|transaction| transaction.before(time)).max()
    }

    /// What may hold up jobs that are due within such a time.
    fn blocking(&self, time: i128) -> i128 {
        let is_due = |load: &Load| load.priority == EDF && ns(due(load)) <= time;
        let is_urgent = |load: &Load| {
            load.priority == EDF
                && ns(due(load)) - ns(load.jitter) - ns(load.suspension_jitter) <= time
        };
        blocking(self.loads, self.protocol, |load| !is_due(load), is_urgent)
    }

    /// The longest time without rest, from when nothing waits.
    fn busy(&self, blocking: i128) -> Option<i128> {
        let transactions = Transaction::all(self.loads, |at| self.loads[at].priority == EDF);
        let work = |time: i128| {
            transactions.iter().map(|transaction| transaction.work(time)).sum::<i128>()
        };
        least(1.max(blocking), |time| Some(blocking + work(time)))
    }

    /// Deadlines from which on another set of loads may block, in order, from the least on.
    fn steps(&self) -> Vec<i128> {
        let edf = || self.loads.iter().filter(|load| load.priority == EDF);
        let mut steps: Vec<i128> = edf()
            .flat_map(|load| {
                let due = ns(due(load));
                [due, due - ns(load.jitter) - ns(load.suspension_jitter)]
            })
            .collect();
        steps.sort_unstable();
        steps.dedup();
        steps
    }
}

/// What is without a deadline is due as early as the next release; what is released once and has
/// none is due last.
fn due(load: &Load) -> Span {
    load.deadline.or(load.period).unwrap_or(Span::MAX)
}

/// Whether all under EDF meet their deadlines: in no time is there more to do than fits (Baruah,
/// Rosier and Howell 1990; blocking: Baker 1991; in the order of Zhang and Burns 2009). Exact where
/// each load is a line of its own, without blocking; self-suspension is not covered.
pub fn is_feasible(loads: &[Load], protocol: Protocol) -> bool {
    let all = Demand::new(loads, protocol);
    let mut edf = loads.iter().filter(|load| load.priority == EDF);
    if Share::of(edf.clone()).is_over() || edf.any(|load| load.suspensions > 0) {
        return false;
    }
    let steps = all.steps();
    let most = steps.iter().map(|step| all.blocking(*step)).max().unwrap_or(0);
    // Where all of the time is used, and something blocks or jitters, it has no end.
    let Some(busy) = all.busy(most) else { return false };
    let mut end = busy + 1;
    let mut points = 0;
    for from in steps.iter().rev() {
        let blocking = all.blocking(*from);
        let mut at = all.before(end);
        while let Some(time) = at.filter(|time| time >= from) {
            let needed = all.of(time) + blocking;
            points += 1;
            if needed > time || points > POINTS_MAX {
                return false;
            }
            at = if needed < time { Some(needed) } else { all.before(time) };
        }
        end = end.min(*from);
    }
    true
}

/// From the nominal release of any job of `loads[index]` to its end at most, under EDF (Spuri 1996,
/// with loads of one transaction taken as if they had no phase). None if there is no bound, or none
/// was found.
///
/// # Panics
/// When there is no such load.
pub fn response(loads: &[Load], index: usize, protocol: Protocol) -> Option<Span> {
    let me = &loads[index];
    // The later a job is due, the more others come before it.
    let latest = me.latest_deadline.map_or(due(me), |latest| latest.max(due(me)));
    response_by(loads, index, latest, protocol)
}

/// The same of its jobs that have the earliest deadline. If one may still be there when the next is
/// released, that one waits for whatever its forerunner does.
pub fn response_of_urgent(loads: &[Load], index: usize, protocol: Protocol) -> Option<Span> {
    let (me, all) = (&loads[index], response(loads, index, protocol));
    let in_turn = |all: &Span| me.period.is_none_or(|period| *all <= period);
    if me.latest_deadline.is_none() || !all.as_ref().is_some_and(in_turn) {
        return all;
    }
    response_by(loads, index, due(me), protocol)
}

fn response_by(loads: &[Load], index: usize, due: Span, protocol: Protocol) -> Option<Span> {
    let me = &loads[index];
    if ns(me.wcet) == 0 || me.jitter == Span::MAX {
        return Some(me.jitter).filter(|jitter| *jitter < Span::MAX);
    }
    let all = Demand::new(loads, protocol);
    if Share::of(loads.iter().filter(|load| load.priority == EDF)).is_over() || me.suspensions > 0 {
        return None;
    }
    let steps = all.steps();
    let most = steps.iter().map(|step| all.blocking(*step)).max().unwrap_or(0);
    let busy = all.busy(most)?;
    let others: Vec<Rival> = loads
        .iter()
        .enumerate()
        .filter(|(at, load)| *at != index && load.priority == EDF)
        .map(|(_, load)| Rival::new(load))
        .collect();
    let mine = Rival { due: ns(due), ..Rival::new(me) };
    let mut worst = mine.jitter + mine.wcet;
    for begin in begins(&others, &mine, busy, &steps)? {
        let due = begin + mine.due;
        let own = mine.period.map_or(1, |period| (begin + mine.jitter).div_euclid(period) + 1);
        let own = own * mine.wcet + all.blocking(due);
        let end = least(own, |time| {
            Some(own + others.iter().map(|other| other.work(time, due)).sum::<i128>())
        })?;
        worst = worst.max(end - begin);
    }
    Some(span(worst))
}

/// A load as another one sees it.
struct Rival {
    period: Option<i128>,
    jitter: i128,
    wcet: i128,
    due: i128,
}

impl Rival {
    fn new(load: &Load) -> Self {
        Self {
            period: load.period.map(ns),
            jitter: ns(load.jitter) + ns(load.suspension_jitter),
            wcet: ns(load.wcet),
            due: ns(due(load)),
        }
    }

    /// What it does of what is released in `time`, and due not after `due`, both since a begin.
    fn work(&self, time: i128, due: i128) -> i128 {
        let first = self.due - self.jitter;
        if due < first || time <= 0 {
            return 0;
        }
        let Some(period) = self.period else { return self.wcet };
        let released = (time + self.jitter + period - 1).div_euclid(period);
        released.min((due - first) / period + 1) * self.wcet
    }
}

/// When a job may begin for it to be late: so that its deadline is another's, or one from which on
/// another set blocks. None if these are too many.
fn begins(others: &[Rival], mine: &Rival, busy: i128, steps: &[i128]) -> Option<Vec<i128>> {
    let mut begins = vec![-mine.jitter];
    begins.extend(steps.iter().map(|step| step - mine.due));
    for load in others.iter().chain([mine]) {
        let first = load.due - load.jitter - mine.due;
        let Some(period) = load.period else {
            begins.push(first);
            continue;
        };
        let skipped = (-mine.jitter - first).div_euclid(period).max(0);
        let count = usize::try_from((busy - first).div_euclid(period) - skipped + 1).unwrap_or(0);
        if begins.len() + count > POINTS_MAX {
            return None;
        }
        begins.extend((0..).map(|job| first + (skipped + job) * period).take(count));
    }
    begins.retain(|begin| -mine.jitter <= *begin && *begin < busy);
    begins.sort_unstable();
    begins.dedup();
    Some(begins)
}
