//! Schedules by search over all of them, where first fit finds none: with a solver for constraints
//! over integers that learns from conflicts (lazy clause generation), Pumpkin.
//!
//! Two intervals that repeat with periods *T* and *U* do not overlap if and only if the one begins
//! after the other has ended and ends before that begins again, modulo the greatest common divisor
//! of *T* and *U*. So each pair of windows at a port is two linear inequalities with a whole number
//! of its own: how many divisors the one is behind the other.

use super::place::{Leg, Route};
use super::timeline::gcd;
use super::{Network, PeriodicFlow, Placed, Synthesizer, Waiting, gates, proof};
use onbeat_model::time::Span;
use pumpkin_conflict_resolvers::resolvers::ResolutionResolver;
use pumpkin_constraints::less_than_or_equals;
use pumpkin_core::constraints::NegatableConstraint;
use pumpkin_core::options::SolverOptions;
use pumpkin_core::results::{ProblemSolution, SatisfactionResult};
use pumpkin_core::termination::TerminationCondition;
use pumpkin_core::variables::{AffineView, DomainId, Literal, TransformableVariable};
use pumpkin_core::{Solver, predicate};
use std::collections::{BTreeMap, BTreeSet};

/// The latest instant that the solver counts with, in nanoseconds: sums of four are within 32 bits.
const LATEST: i64 = 1 << 28;
/// The most pairs of windows.
const PAIRS_MAX: usize = 200_000;
/// How often it is tried whether fewer flows have no schedule, either.
const SHRINK_MAX: usize = 64;

/// What the exact method says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A schedule that keeps all rules at [`Placed`].
    Solved(Vec<Placed>),
    /// There is none.
    Infeasible(Contradiction),
    /// Neither was found.
    Unknown(Unknown),
}

/// Flows that have no schedule, whatever becomes of the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contradiction {
    /// In order. It was tried to leave out each; so the set is small, but perhaps not the smallest.
    pub flows: Vec<usize>,
    /// The ports at which they meet, in order; where there is one flow, all of its ports.
    pub ports: Vec<usize>,
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// The search took as many steps as were allowed.
    Limit,
    /// Copies of a replicated frame come together, of which the search knows nothing.
    Joins,
    /// There are more than 200,000 pairs of windows, or instants from 2²⁸ ns on.
    Large,
    /// The schedule that was found needs a gate control list that is too long.
    Entries,
}

/// Searches all schedules. `limit` is the most steps of a search, each a decision of the solver or
/// a conflict; equal inputs have equal answers. A proof takes some more searches, which leave out
/// flows that are no part of it, each with at most as many steps.
///
/// # Panics
/// As [`Synthesizer::add`]; and if the solver's schedule breaks a rule.
pub fn exact(network: &Network, flows: &[PeriodicFlow], waiting: Waiting, limit: u64) -> Answer {
    if let Some(refusal) = proof::impossible(network, flows) {
        let others = match refusal.why {
            super::Obstacle::Overload { flows, .. } => flows,
            super::Obstacle::Pair { other, .. } => vec![other, refusal.flow],
            _ => vec![refusal.flow],
        };
        return Answer::Infeasible(Contradiction::new(flows, &others));
    }
    let all: Vec<usize> = (0..flows.len()).collect();
    match search(network, flows, &all, waiting, limit) {
        Found::Solved(placed) => {
            let mut synthesizer = Synthesizer::new(network, waiting);
            for (id, placed) in placed.iter().enumerate() {
                let is_right = synthesizer.put_back(id, &flows[id], placed);
                assert!(is_right, "the solver's place for flow {id} breaks a rule");
            }
            match gates::within(network, flows, placed) {
                Ok(placed) => Answer::Solved(placed),
                Err(_) => Answer::Unknown(Unknown::Entries),
            }
        }
        Found::Infeasible => {
            let fewest = shrink(network, flows, all, waiting, limit);
            Answer::Infeasible(Contradiction::new(flows, &fewest))
        }
        Found::Unknown(why) => Answer::Unknown(why),
    }
}

impl Contradiction {
    fn new(flows: &[PeriodicFlow], these: &[usize]) -> Self {
        let these: BTreeSet<usize> = these.iter().copied().collect();
        let mut times: BTreeMap<usize, usize> = BTreeMap::new();
        for hop in these.iter().flat_map(|flow| &flows[*flow].hops) {
            *times.entry(hop.port).or_default() += 1;
        }
        let least = if these.len() > 1 { 2 } else { 1 };
        let ports = times.into_iter().filter(|(_, times)| *times >= least);
        Self { flows: these.into_iter().collect(), ports: ports.map(|(port, _)| port).collect() }
    }
}

/// Leaves out flows without which there is no schedule, either: first many at once, at last each.
fn shrink(
    network: &Network,
    flows: &[PeriodicFlow],
    mut these: Vec<usize>,
    waiting: Waiting,
    limit: u64,
) -> Vec<usize> {
    let (mut tries, mut many) = (0, these.len().div_ceil(2));
    loop {
        let mut at = 0;
        while at < these.len() && these.len() > 1 {
            if tries == SHRINK_MAX {
                return these;
            }
            tries += 1;
            let end = (at + many).min(these.len());
            let fewer: Vec<usize> = [&these[..at], &these[end..]].concat();
            let is_enough = !fewer.is_empty()
                && search(network, flows, &fewer, waiting, limit) == Found::Infeasible;
            if is_enough {
                these = fewer;
            } else {
                at = end;
            }
        }
        if many == 1 {
            return these;
        }
        many = many.div_ceil(2);
    }
}

/// What a search finds.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    Solved(Vec<Placed>),
    Infeasible,
    Unknown(Unknown),
}

/// Polled once in each step.
struct Steps(u64);

impl TerminationCondition for Steps {
    fn should_stop(&mut self) -> bool {
        let is_over = self.0 == 0;
        self.0 = self.0.saturating_sub(1);
        is_over
    }
}

type Var = AffineView<DomainId>;

/// A hop of a flow, as the solver knows it.
#[derive(Clone, Copy)]
struct Stay {
    flow: usize,
    period: i64,
    window: i64,
    /// From when on it may be queued.
    early: Var,
    start: Var,
    /// The least and the most of the start.
    range: [i64; 2],
    /// Whether the frame is queued as long as its window is, always: nothing else can be meant by
    /// its queue.
    is_brief: bool,
}

struct Model {
    solver: Solver,
    releases: Vec<Var>,
    queues: Vec<DomainId>,
    starts: Vec<Vec<Var>>,
    /// By port.
    stays: BTreeMap<usize, Vec<Stay>>,
    /// By pair of flows: whether they have the same queue.
    same: BTreeMap<(usize, usize), Literal>,
}

/// A number that is known to be below [`LATEST`].
fn small(ns: i64) -> i32 {
    i32::try_from(ns).expect("it is below the latest")
}

fn search(
    network: &Network,
    flows: &[PeriodicFlow],
    these: &[usize],
    waiting: Waiting,
    limit: u64,
) -> Found {
    if these.iter().any(|flow| !flows[*flow].joins.is_empty()) {
        return Found::Unknown(Unknown::Joins);
    }
    let routes: Vec<Route> = these.iter().map(|flow| Route::new(network, &flows[*flow])).collect();
    if !routes.iter().all(is_small) {
        return Found::Unknown(Unknown::Large);
    }
    // If all releases are free, all may be moved by what ticks have in common: the first is in the
    // first such time. If all flows may use equally many queues, their names mean nothing.
    let is_free = routes.iter().all(|route| route.release.is_none());
    let ticks = routes.iter().flat_map(|route| &route.legs).map(|leg| leg.tick);
    let ticks = gates::multiple(ticks).filter(|_| is_free);
    let are_even = routes.iter().all(|route| route.queues == routes[0].queues);
    let mut model = Model::new();
    for (number, route) in routes.iter().enumerate() {
        let within = ticks.filter(|_| number == 0).unwrap_or(i64::MAX);
        let named = if are_even { number + 1 } else { usize::MAX };
        model.add(route, waiting, within, named.min(route.queues.into()));
    }
    if model.stays.values().flatten().any(|stay| stay.range[1] >= LATEST) {
        return Found::Unknown(Unknown::Large);
    }
    if model.solver.is_inconsistent() {
        return Found::Infeasible;
    }
    let stays = std::mem::take(&mut model.stays);
    let pairs = stays.values().map(|stays| stays.len() * (stays.len() - 1) / 2);
    if pairs.sum::<usize>() > PAIRS_MAX {
        return Found::Unknown(Unknown::Large);
    }
    for stays in stays.values() {
        for (at, one) in stays.iter().enumerate() {
            for two in &stays[at + 1..] {
                model.part(one, two, &routes);
                if model.solver.is_inconsistent() {
                    return Found::Infeasible;
                }
            }
        }
    }
    model.solve(limit)
}

/// Whether its numbers are few enough digits for the solver.
fn is_small(route: &Route) -> bool {
    let legs = |leg: &Leg| {
        let numbers = [leg.queued[0], leg.queued[1], leg.window, leg.tick];
        let hops = route.legs.len() as i64 + 1;
        numbers.iter().all(|ns| ns.abs() < LATEST / hops) && route.period < LATEST / hops
    };
    route.legs.iter().all(legs) && route.deadline < LATEST
}

impl Model {
    fn new() -> Self {
        // It takes more as it needs more.
        let options = SolverOptions { memory_preallocated: 1, ..SolverOptions::default() };
        Self {
            solver: Solver::with_options(options),
            releases: Vec::new(),
            queues: Vec::new(),
            starts: Vec::new(),
            stays: BTreeMap::new(),
            same: BTreeMap::new(),
        }
    }

    /// The sum of these is at most so much, always or if so.
    fn at_most(&mut self, terms: Vec<Var>, most: i64, when: Option<Literal>) {
        let tag = self.solver.new_constraint_tag();
        let constraint = less_than_or_equals(terms, small(most), tag);
        post(&mut self.solver, constraint, when);
    }

    /// The second is at least so much later than the first.
    fn later(&mut self, first: Var, second: Var, by: i64) {
        self.at_most(vec![first, second.scaled(-1)], -by, None);
    }

    /// Rules 1, 2, 3 and 6 of one flow; its release is below `within`, its queue below `queues`.
    fn add(&mut self, route: &Route, waiting: Waiting, within: i64, queues: usize) {
        let flow = self.releases.len();
        let [least, most] = match route.release {
            Some(fixed) => [fixed; 2],
            None => [0, (route.period - 1).min(within - 1)],
        };
        let release = self.solver.new_bounded_integer(small(least), small(most));
        let release: Var = release.scaled(1);
        self.queues.push(self.solver.new_bounded_integer(0, small(queues as i64) - 1));
        let (mut starts, mut ranges): (Vec<Var>, Vec<[i64; 2]>) = (Vec::new(), Vec::new());
        for leg in &route.legs {
            let from = leg.after.map_or(release, |before| starts[before]);
            let bounds = leg.after.map_or([least, most], |before| ranges[before]);
            let early = from.offset(small(leg.queued[0]));
            let (start, range) = self.start(route, leg, from, bounds, waiting);
            if let Some([receipt, _]) = leg.leaf {
                self.at_most(vec![start, release.scaled(-1)], route.deadline - receipt, None);
            }
            // Rule 5 for the flow itself.
            let is_tight = waiting == Waiting::None && leg.tick == 1;
            if !is_tight {
                self.at_most(vec![start, early.scaled(-1)], route.period - leg.window, None);
            }
            let stay = Stay {
                flow,
                period: route.period,
                window: leg.window,
                early,
                start,
                range,
                is_brief: is_tight && leg.queued[0] == leg.queued[1],
            };
            self.stays.entry(leg.port).or_default().push(stay);
            starts.push(start);
            ranges.push(range);
        }
        self.releases.push(release);
        self.starts.push(starts);
    }

    /// When a window begins, and between which instants that is.
    fn start(
        &mut self,
        route: &Route,
        leg: &Leg,
        from: Var,
        [least, most]: [i64; 2],
        waiting: Waiting,
    ) -> (Var, [i64; 2]) {
        let range = [least, most].map(|at| at + leg.queued[1]);
        // Where a frame starts at once. At the talker it does so in any case, if all of its release
        // is free: a later one is better.
        let roots = route.legs.iter().filter(|leg| leg.after.is_none());
        let is_root = leg.after.is_none() && route.release.is_none() && roots.count() == 1;
        if leg.tick == 1 && (waiting == Waiting::None || is_root) {
            return (from.offset(small(leg.queued[1])), range);
        }
        let up = |at: i64| -(-at).div_euclid(leg.tick);
        let last = match waiting {
            Waiting::None => range[1] + leg.tick - 1,
            Waiting::Allowed => range[1] + route.period,
        };
        let counts = [up(range[0]), last.div_euclid(leg.tick)];
        let count = self.solver.new_bounded_integer(small(counts[0]), small(counts[1]));
        let start: Var = count.scaled(small(leg.tick));
        self.later(from, start, leg.queued[1]);
        if waiting == Waiting::None {
            let most = leg.queued[1] + leg.tick - 1;
            self.at_most(vec![start, from.scaled(-1)], most, None);
        }
        (start, counts.map(|count| count * leg.tick))
    }

    /// Rules 4 and 5 for two frames at one port.
    fn part(&mut self, one: &Stay, two: &Stay, routes: &[Route]) {
        let common = gcd(one.period, two.period);
        // How many divisors of both periods the second is behind the first.
        let least = (two.range[0] - one.range[1] + two.window).div_euclid(common) - 1;
        let most = (two.range[1] - one.range[0] - one.window).div_euclid(common) + 1;
        let times = self.solver.new_bounded_integer(small(least), small(most));
        let behind: Var = times.scaled(small(common));
        let ahead: Var = times.scaled(small(-common));
        let (own, is_brief) = (one.flow == two.flow, one.is_brief && two.is_brief);
        let is_one = own || (routes[one.flow].queues == 1 && routes[two.flow].queues == 1);
        let when = (!is_one && !is_brief).then(|| self.same(one.flow, two.flow, routes));
        if !is_one || is_brief {
            self.at_most(vec![one.start, behind, two.start.scaled(-1)], -one.window, None);
            let room = common - two.window;
            self.at_most(vec![two.start, ahead, one.start.scaled(-1)], room, None);
        }
        if !is_brief {
            self.at_most(vec![one.start, behind, two.early.scaled(-1)], -one.window, when);
            let room = common - two.window;
            self.at_most(vec![two.start, ahead, one.early.scaled(-1)], room, when);
        }
    }

    /// Whether two flows have the same queue.
    fn same(&mut self, one: usize, two: usize, routes: &[Route]) -> Literal {
        if let Some(same) = self.same.get(&(one, two)) {
            return *same;
        }
        let same = self.solver.new_literal();
        let (a, b) = (self.queues[one], self.queues[two]);
        for queue in 0..i32::from(routes[one].queues.min(routes[two].queues)) {
            let tag = self.solver.new_constraint_tag();
            let clause =
                [predicate![a != queue], predicate![b != queue], same.get_true_predicate()];
            self.solver.add_clause(clause, tag);
        }
        self.same.insert((one, two), same);
        same
    }

    fn solve(mut self, limit: u64) -> Found {
        let mut brancher = self.solver.default_brancher();
        let mut resolver = ResolutionResolver::default();
        let result = self.solver.satisfy(&mut brancher, &mut Steps(limit), &mut resolver);
        let satisfiable = match result {
            SatisfactionResult::Satisfiable(satisfiable) => satisfiable,
            SatisfactionResult::Unsatisfiable(..) => return Found::Infeasible,
            SatisfactionResult::Unknown(..) => return Found::Unknown(Unknown::Limit),
        };
        let solution = satisfiable.solution();
        let ns = |var: &Var| Span::from_ns(solution.get_integer_value(*var).into());
        let placed = self.releases.iter().zip(&self.queues).zip(&self.starts);
        let placed = placed.map(|((release, queue), starts)| Placed {
            release: ns(release),
            queue: u8::try_from(solution.get_integer_value(*queue)).expect("few queues"),
            starts: starts.iter().map(ns).collect(),
        });
        Found::Solved(placed.collect())
    }
}

fn post(solver: &mut Solver, constraint: impl NegatableConstraint, when: Option<Literal>) {
    let poster = solver.add_constraint(constraint);
    match when {
        Some(when) => poster.implied_by(when),
        None => poster.post(),
    }
}
