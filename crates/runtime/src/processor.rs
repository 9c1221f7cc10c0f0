//! Processors that pieces of work share: preemptive, by partition, in time that is handed in.
//!
//! Every piece belongs to one processor of a host, a *core*. On each core the piece of the greatest
//! [`Rank`] executes, and among equal ranks the one that was started first; what becomes ready
//! with a greater rank preempts it at once. Who starts a piece at the instant at which its last one
//! was done has not left the processor in between, and keeps its place. Switching takes no time. A
//! core never rests while it has work.
//!
//! The caller tells what starts and when, asks [`Processors::next`] when something will be done,
//! and fetches it with [`Processors::advance`]. All of it is exact: integer nanoseconds.

use onbeat_model::time::{NetTime, Span};
use std::cmp::Reverse;

/// How urgent a piece of work is: the greater the more urgent. Whatever has a deadline comes before
/// all fixed priorities, as SCHED_DEADLINE does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rank {
    /// A fixed priority, the greater the more urgent.
    Fixed(u32),
    /// An absolute deadline, the earlier the more urgent ([`Rank::by_deadline`]).
    Deadline(Reverse<NetTime>),
}

impl Rank {
    /// The least urgent one: of what has no priority.
    pub const LOWEST: Self = Self::Fixed(0);

    /// Of what is to be done by an instant, under earliest deadline first.
    pub const fn by_deadline(at: NetTime) -> Self {
        Self::Deadline(Reverse(at))
    }
}

/// A piece of work that is not done.
#[derive(Clone, Copy, Debug)]
struct Work {
    id: u64,
    rank: Rank,
    /// Of all that was ever started, the how manieth: less is earlier.
    order: u64,
    left: Span,
}

impl Work {
    /// What decides: the greatest executes.
    fn urgency(&self) -> (Rank, Reverse<u64>) {
        (self.rank, Reverse(self.order))
    }
}

/// The processors of a host.
#[derive(Clone, Debug)]
pub struct Processors {
    now: NetTime,
    started: u64,
    /// Per core what is not done, the most urgent last. That one has been executing up to now.
    cores: Vec<Vec<Work>>,
    /// What is done and was not fetched: when, on which core, what.
    done: Vec<(NetTime, usize, u64)>,
    /// What was done at this very instant, and its order.
    just_done: Vec<(u64, u64)>,
}

impl Processors {
    /// So many, with nothing to do; their time begins at the epoch.
    pub fn new(cores: u16) -> Self {
        Self {
            now: NetTime::ZERO,
            started: 0,
            cores: vec![Vec::new(); usize::from(cores)],
            done: Vec::new(),
            just_done: Vec::new(),
        }
    }

    /// A piece of work is ready at `now`. The name `id` is the caller's, and no other piece that is
    /// not fetched may have it. Work of no length waits for its turn: it is done when nothing more
    /// urgent is ready.
    ///
    /// # Panics
    /// When there is no such core, the amount is negative, or `now` is past.
    pub fn start(&mut self, now: NetTime, id: u64, core: u16, rank: Rank, amount: Span) {
        assert!(amount >= Span::ZERO, "work takes no negative time");
        self.go_on(now);
        let same = self.just_done.iter().position(|(done, _)| *done == id);
        let order = same.map_or(self.started, |at| self.just_done.remove(at).1);
        let work = Work { id, rank, order, left: amount };
        self.started += 1;
        insert(&mut self.cores[usize::from(core)], work);
    }

    /// Gives up a piece of work at `now`: what is left of it, nothing if it is done at this very
    /// instant or was before. None if there is no such piece, or it was fetched.
    ///
    /// # Panics
    /// When `now` is past.
    pub fn cancel(&mut self, now: NetTime, id: u64) -> Option<Span> {
        self.go_on(now);
        if let Some(at) = self.done.iter().position(|(_, _, done)| *done == id) {
            self.done.remove(at);
            return Some(Span::ZERO);
        }
        let (core, at) = self.find(id)?;
        Some(self.cores[core].remove(at).left)
    }

    /// Changes how urgent a piece is from `now` on. Among equals it stays as early as it was
    /// started. False if there is no such piece, or it is done.
    ///
    /// # Panics
    /// When `now` is past.
    pub fn set_rank(&mut self, now: NetTime, id: u64, rank: Rank) -> bool {
        self.go_on(now);
        let Some((core, at)) = self.find(id) else { return false };
        let work = self.cores[core].remove(at);
        insert(&mut self.cores[core], Work { rank, ..work });
        true
    }

    /// When the next piece is done, if nothing else happens before.
    pub fn next(&self) -> Option<NetTime> {
        if let Some((at, ..)) = self.done.first() {
            return Some(*at);
        }
        let running = self.cores.iter().filter_map(|ready| ready.last());
        running.map(|work| self.now + work.left).min()
    }

    /// Lets time pass up to `now`: what is done and was not fetched, in the order in which it was
    /// done; at one instant, in the order of cores. If that is nothing, one piece of work of no
    /// length of each core: what is done may lead to more that is urgent, at the same instant.
    ///
    /// # Panics
    /// When `now` is past.
    pub fn advance(&mut self, now: NetTime) -> Vec<u64> {
        self.go_on(now);
        if self.done.is_empty() {
            for (core, ready) in self.cores.iter_mut().enumerate() {
                let turn = ready.pop_if(|work| work.left == Span::ZERO);
                self.done.extend(turn.iter().map(|work| (now, core, work.id)));
                self.just_done.extend(turn.iter().map(|work| (work.id, work.order)));
            }
        }
        self.done.drain(..).map(|(_, _, id)| id).collect()
    }

    /// What executes at a core.
    ///
    /// # Panics
    /// When there is no such core.
    pub fn running(&self, core: u16) -> Option<u64> {
        self.cores[usize::from(core)].last().map(|work| work.id)
    }

    fn find(&self, id: u64) -> Option<(usize, usize)> {
        let ready = self.cores.iter().enumerate();
        ready
            .filter_map(|(core, ready)| Some((core, ready.iter().position(|w| w.id == id)?)))
            .next()
    }

    /// Lets time pass. Work of no length is not done at this instant: more may start.
    fn go_on(&mut self, now: NetTime) {
        assert!(now >= self.now, "time does not run backwards");
        if now > self.now {
            self.just_done.clear();
        }
        let before = self.done.len();
        for (core, ready) in self.cores.iter_mut().enumerate() {
            let mut at = self.now;
            while let Some(work) = ready.last_mut() {
                let waits = at == now && work.left == Span::ZERO;
                if work.left > now - at || waits {
                    work.left = work.left - (now - at);
                    break;
                }
                at += work.left;
                self.done.push((at, core, work.id));
                if at == now {
                    self.just_done.push((work.id, work.order));
                }
                ready.pop();
            }
        }
        // Stable: what one core did at one instant stays in order.
        self.done[before..].sort_by_key(|(at, core, _)| (*at, *core));
        self.now = now;
    }
}

/// Puts work among what is ready, the most urgent last.
fn insert(ready: &mut Vec<Work>, work: Work) {
    let at = ready.partition_point(|other| other.urgency() < work.urgency());
    ready.insert(at, work);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(ns: i64) -> NetTime {
        NetTime::from_ns(ns)
    }

    fn ns(ns: i64) -> Span {
        Span::from_ns(ns)
    }

    /// What is done, and when, from now on.
    fn rest(processors: &mut Processors) -> Vec<(i64, u64)> {
        let mut all = Vec::new();
        while let Some(next) = processors.next() {
            all.extend(processors.advance(next).into_iter().map(|id| (next.as_ns(), id)));
        }
        all
    }

    #[test]
    fn the_more_urgent_preempts_and_the_preempted_goes_on_where_it_was() {
        let mut one = Processors::new(1);
        one.start(at(0), 1, 0, Rank::Fixed(1), ns(10));
        one.start(at(3), 2, 0, Rank::Fixed(2), ns(5));
        one.start(at(4), 3, 0, Rank::by_deadline(at(100)), ns(1));
        assert_eq!(one.running(0), Some(3));
        assert_eq!(rest(&mut one), [(5, 3), (9, 2), (16, 1)]);
    }

    #[test]
    fn equals_go_on_in_the_order_in_which_they_were_started() {
        let mut one = Processors::new(1);
        for id in [7, 3, 5] {
            one.start(at(0), id, 0, Rank::Fixed(4), ns(2));
        }
        // It takes the processor from 7, and 7 comes before 3 and 5 then.
        one.start(at(1), 9, 0, Rank::Fixed(5), ns(2));
        assert_eq!(rest(&mut one), [(3, 9), (4, 7), (6, 3), (8, 5)]);
    }

    #[test]
    fn who_has_more_to_do_keeps_its_place() {
        let mut one = Processors::new(1);
        one.start(at(0), 7, 0, Rank::Fixed(4), ns(2));
        one.start(at(0), 3, 0, Rank::Fixed(4), ns(2));
        assert_eq!(one.advance(at(2)), [7]);
        one.start(at(2), 7, 0, Rank::Fixed(4), ns(1));
        assert_eq!(one.advance(at(3)), [7]);
        // It has left the processor in between.
        assert!(one.advance(at(4)).is_empty());
        one.start(at(4), 7, 0, Rank::Fixed(4), ns(2));
        assert_eq!(rest(&mut one), [(5, 3), (7, 7)]);
    }

    #[test]
    fn the_earlier_deadline_comes_first() {
        let mut one = Processors::new(1);
        one.start(at(0), 1, 0, Rank::by_deadline(at(20)), ns(5));
        one.start(at(1), 2, 0, Rank::by_deadline(at(10)), ns(5));
        one.start(at(2), 3, 0, Rank::by_deadline(at(20)), ns(5));
        assert_eq!(rest(&mut one), [(6, 2), (10, 1), (15, 3)]);
    }

    #[test]
    fn work_of_no_length_waits_for_its_turn() {
        let mut one = Processors::new(1);
        one.start(at(0), 1, 0, Rank::Fixed(3), ns(5));
        one.start(at(2), 2, 0, Rank::Fixed(1), ns(0));
        // Who is done may continue at the same instant, before the others have their turn.
        assert_eq!(one.advance(at(5)), [1]);
        one.start(at(5), 1, 0, Rank::Fixed(3), ns(1));
        assert_eq!(one.advance(at(6)), [1]);
        assert_eq!(one.advance(at(6)), [2]);
    }

    #[test]
    fn turns_of_one_instant_go_by_urgency() {
        let mut one = Processors::new(1);
        one.start(at(0), 1, 0, Rank::Fixed(3), ns(5));
        one.start(at(2), 2, 0, Rank::Fixed(1), ns(0));
        one.start(at(5), 3, 0, Rank::Fixed(2), ns(0));
        one.start(at(5), 4, 0, Rank::Fixed(4), ns(1));
        assert_eq!(rest(&mut one), [(5, 1), (6, 4), (6, 3), (6, 2)]);
    }

    #[test]
    fn cores_do_not_wait_for_each_other() {
        let mut two = Processors::new(2);
        two.start(at(0), 1, 0, Rank::Fixed(9), ns(10));
        two.start(at(0), 2, 1, Rank::LOWEST, ns(10));
        assert_eq!((two.running(0), two.running(1)), (Some(1), Some(2)));
        assert_eq!(rest(&mut two), [(10, 1), (10, 2)]);
    }

    #[test]
    fn what_is_given_up_says_what_is_left() {
        let mut one = Processors::new(1);
        one.start(at(0), 1, 0, Rank::Fixed(1), ns(10));
        one.start(at(0), 2, 0, Rank::Fixed(2), ns(4));
        assert_eq!(one.cancel(at(7), 1), Some(ns(7)));
        assert_eq!(one.cancel(at(7), 2), Some(ns(0)), "it is done, and not fetched");
        assert_eq!((one.cancel(at(7), 1), one.next()), (None, None));
    }

    #[test]
    fn work_that_inherits_a_rank_goes_on_with_it() {
        let mut one = Processors::new(1);
        one.start(at(0), 1, 0, Rank::Fixed(1), ns(4));
        one.start(at(1), 2, 0, Rank::Fixed(2), ns(4));
        assert!(one.set_rank(at(2), 1, Rank::Fixed(3)));
        assert!(!one.set_rank(at(2), 5, Rank::Fixed(3)));
        assert_eq!(rest(&mut one), [(5, 1), (8, 2)]);
    }

    #[test]
    fn many_that_are_done_meanwhile_are_fetched_in_the_order_of_time() {
        let mut two = Processors::new(2);
        two.start(at(0), 1, 1, Rank::LOWEST, ns(2));
        two.start(at(0), 2, 0, Rank::LOWEST, ns(3));
        two.start(at(0), 3, 1, Rank::LOWEST, ns(1));
        two.start(at(0), 4, 1, Rank::Fixed(1), ns(0));
        assert_eq!(two.advance(at(9)), [4, 1, 2, 3]);
    }

    #[derive(Clone, Copy, Debug)]
    struct Job {
        release: i64,
        core: u16,
        rank: Rank,
        amount: i64,
        /// When it is given up.
        limit: i64,
    }

    fn rank() -> impl Strategy<Value = Rank> {
        prop_oneof![
            (0_u32..4).prop_map(Rank::Fixed),
            (0_i64..60).prop_map(|d| Rank::by_deadline(at(d))),
        ]
    }

    fn job() -> impl Strategy<Value = Job> {
        (0_i64..40, 0_u16..3, rank(), 1_i64..12, 1_i64..60).prop_map(
            |(release, core, rank, amount, patience)| {
                let limit = release + patience;
                Job { release, core, rank, amount, limit }
            },
        )
    }

    /// Nanosecond by nanosecond: per job when it was done, or what was left when it was given up.
    fn naive(jobs: &[Job]) -> Vec<Result<i64, i64>> {
        let mut left: Vec<i64> = jobs.iter().map(|job| job.amount).collect();
        let mut ends: Vec<Option<Result<i64, i64>>> = vec![None; jobs.len()];
        for now in 0.. {
            for (index, job) in jobs.iter().enumerate() {
                if ends[index].is_none() && job.limit == now {
                    ends[index] = Some(Err(left[index]));
                }
            }
            if let Some(ends) = ends.iter().copied().collect() {
                return ends;
            }
            for core in 0..3 {
                let ready = |i: &usize| jobs[*i].core == core && jobs[*i].release <= now;
                let ready = (0..jobs.len()).filter(|i| ready(i) && ends[*i].is_none());
                let first = ready.max_by_key(|i| (jobs[*i].rank, Reverse((jobs[*i].release, *i))));
                let Some(index) = first else { continue };
                left[index] -= 1;
                if left[index] == 0 {
                    ends[index] = Some(Ok(now + 1));
                }
            }
        }
        unreachable!("every job is given up some time")
    }

    /// The same with the processors.
    fn exact(jobs: &[Job]) -> Vec<Result<i64, i64>> {
        let mut three = Processors::new(3);
        let mut ends = vec![None; jobs.len()];
        // What is done at its limit is done: ends before starts.
        let mut events: Vec<(i64, bool, usize)> = Vec::new();
        for (index, job) in jobs.iter().enumerate() {
            events.extend([(job.release, true, index), (job.limit, false, index)]);
        }
        events.sort_unstable();
        for (now, starts, index) in events {
            while let Some(next) = three.next().filter(|next| *next <= at(now)) {
                for id in three.advance(next) {
                    ends[id as usize] = Some(Ok(next.as_ns()));
                }
            }
            let job = &jobs[index];
            if starts {
                three.start(at(now), index as u64, job.core, job.rank, ns(job.amount));
            } else if let Some(left) = three.cancel(at(now), index as u64) {
                ends[index] = Some(Err(left.as_ns()));
            }
        }
        ends.into_iter().map(|end| end.expect("all are over")).collect()
    }

    proptest! {
        #[test]
        fn time_passes_as_if_nanosecond_by_nanosecond(
            jobs in proptest::collection::vec(job(), 1..14),
        ) {
            prop_assert_eq!(exact(&jobs), naive(&jobs));
        }

        #[test]
        fn at_any_instant_the_most_urgent_goes_on_and_no_core_with_work_rests(
            jobs in proptest::collection::vec(job(), 1..14),
            steps in proptest::collection::vec(0_i64..5, 1..40),
        ) {
            let mut three = Processors::new(3);
            let mut now = 0;
            let mut waiting = jobs.iter().enumerate();
            let mut open: Vec<(usize, Job)> = Vec::new();
            let mut busy = [0; 3];
            let mut given = [0; 3];
            for step in steps {
                // Up to the next step, completion by completion.
                let end = now + step;
                loop {
                    let next = three.next().map_or(end, |next| next.as_ns().min(end));
                    for (core, busy) in busy.iter_mut().enumerate() {
                        let running = three.running(core as u16).map(|id| id as usize);
                        let here = open.iter().filter(|(_, job)| usize::from(job.core) == core);
                        let first = here.max_by_key(|(i, job)| (job.rank, Reverse(*i)));
                        prop_assert_eq!(running, first.map(|(index, _)| *index));
                        *busy += if running.is_some() { next - now } else { 0 };
                    }
                    let done = three.advance(at(next));
                    now = next;
                    open.retain(|(index, _)| !done.contains(&(*index as u64)));
                    if done.is_empty() && now == end {
                        break;
                    }
                }
                if let Some((index, job)) = waiting.next() {
                    three.start(at(now), index as u64, job.core, job.rank, ns(job.amount));
                    open.push((index, *job));
                    given[usize::from(job.core)] += job.amount;
                }
            }
            for (index, job) in open {
                let left = three.cancel(at(now), index as u64).expect("it is open");
                given[usize::from(job.core)] -= left.as_ns();
            }
            prop_assert_eq!(busy, given, "all progress is time that a core was busy");
        }
    }
}
