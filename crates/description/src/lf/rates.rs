//! How often reactions execute and connections carry messages, by propagation from timers.
//!
//! What triggers a reaction is a set of tags. Each set is covered by progressions with a known
//! phase (a timer's tags, later by delays) and by bounds on the time between two (what is sporadic
//! or physical). Sets that a reaction has from several causes are united; equal ones count once.

use super::reactions::{Draft, Why};
use onbeat_model::federation::{TagDelay, Trigger};
use onbeat_model::limits;
use onbeat_model::time::Span;
use std::collections::{BTreeMap, BTreeSet};

/// The most sets that cover the tags of one reaction.
const SETS: usize = 128;

/// The tag at which the federation ends, of which no more is known.
const END_NS: i64 = i64::MAX;

/// A set of tags, or what bounds it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Tags {
    /// One tag, or one each period. The phase is that of the first tag.
    Progression { first_ns: i64, microstep: u32, period_ns: Option<i64> },
    /// At least that long between two. `of` and the shift say when two such sets are one.
    Sporadic { interval_ns: i64, of: usize, shift_ns: i64, microstep: u32 },
    /// In the mean, as often as that; so many may come at once.
    Jittered { interval_ns: i64, burst: u32, of: usize },
}

/// How often something happens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::lf) enum Rate {
    /// So long between two in the mean, and so many at once.
    Known { interval: Option<Span>, burst: u32 },
    /// What decides it and is not known: actions, or reactions that cause each other.
    Unknown(BTreeSet<Doubt>),
}

/// Why a rate is not known.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::lf) enum Doubt {
    /// Of an action, by its qualified name and a draft that it triggers.
    Action(String, usize),
    /// Drafts cause each other; one of them.
    Cycle(usize),
}

/// The tags of a draft as far as they are known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Set {
    tags: BTreeSet<Tags>,
    doubts: BTreeSet<Doubt>,
}

/// A connection's delay, and whether it is physical.
pub(in crate::lf) type Delays = (TagDelay, bool);

/// The rate of each connection.
pub(in crate::lf) fn rates(
    drafts: &[Draft],
    writers: &[Vec<usize>],
    connections: &[Delays],
) -> Vec<Rate> {
    let mut causes = Causes { drafts, writers, connections, cut: BTreeSet::new() };
    // An action with a bound of its own ends the circles that it is on.
    for component in components(&causes) {
        causes.cut_in(&component);
    }
    let mut sets: Vec<Set> = vec![Set::default(); drafts.len()];
    for component in components(&causes) {
        let found = causes.component(&component, &sets);
        for (at, set) in component.iter().zip(found) {
            sets[*at] = set;
        }
    }
    let of = |writers: &Vec<usize>| {
        let mut all = Set::default();
        for writer in writers {
            all.unite(&sets[*writer]);
        }
        all.rate()
    };
    writers.iter().map(of).collect()
}

struct Causes<'c> {
    drafts: &'c [Draft],
    writers: &'c [Vec<usize>],
    connections: &'c [Delays],
    /// Causes, by draft and number, that are bounded by their action alone.
    cut: BTreeSet<(usize, usize)>,
}

/// A way within a component: from where to where, and what it takes.
type Step = (usize, usize, Delays);

impl Causes<'_> {
    /// The drafts that a cause comes from, with the delay.
    fn from(&self, at: usize, number: usize) -> (Vec<usize>, Delays) {
        let none = (Vec::new(), (TagDelay::None, false));
        if self.cut.contains(&(at, number)) {
            return none;
        }
        match &self.drafts[at].causes[number].cause {
            Trigger::Reaction { from, delay, physical } => {
                (vec![from.index()], (*delay, *physical))
            }
            Trigger::Message(connection) => {
                let connection = connection.index();
                (self.writers[connection].clone(), self.connections[connection])
            }
            Trigger::Startup
            | Trigger::Shutdown
            | Trigger::Timer { .. }
            | Trigger::Sporadic { .. } => none,
        }
    }

    /// Cuts the causes of actions with a bound that come from the component itself.
    fn cut_in(&mut self, component: &[usize]) {
        let within: BTreeSet<usize> = component.iter().copied().collect();
        for at in component {
            for number in 0..self.drafts[*at].causes.len() {
                let why = &self.drafts[*at].causes[number];
                let is_bounded = why.action.as_ref().is_some_and(|(_, least)| least.is_some());
                let comes_back = self.from(*at, number).0.iter().any(|from| within.contains(from));
                if is_bounded && comes_back {
                    self.cut.insert((*at, number));
                }
            }
        }
    }

    /// The sets of the drafts of a component, whose causes outside of it are known.
    fn component(&self, component: &[usize], known: &[Set]) -> Vec<Set> {
        let within: BTreeSet<usize> = component.iter().copied().collect();
        let mut steps: Vec<Step> = Vec::new();
        let mut entering = Vec::new();
        for at in component {
            let mut set = Set::default();
            for (number, why) in self.drafts[*at].causes.iter().enumerate() {
                let (from, delays) = self.from(*at, number);
                let mut new = self.root(*at, number, why);
                for from in from {
                    match within.contains(&from) {
                        true => steps.push((from, *at, delays)),
                        false => new.unite(&known[from].shifted(delays, key(*at, number))),
                    }
                }
                if let Some((_, Some(least))) = &why.action {
                    new.limit(*least, key(*at, number));
                }
                set.unite(&new);
            }
            entering.push(set);
        }
        if steps.is_empty() {
            return entering;
        }
        match Circle::of(component, &steps) {
            Some(circle) => circle.sets(component, &entering),
            None => doubtful(component, &entering),
        }
    }

    /// What a cause begins by itself.
    fn root(&self, at: usize, number: usize, why: &Why) -> Set {
        let mut set = Set::default();
        match &why.cause {
            Trigger::Startup => set.progression(0, None),
            Trigger::Shutdown => set.progression(END_NS, None),
            Trigger::Timer { period: Some(period), .. } if why.is_modal => {
                set.sporadic(*period, key(at, number));
            }
            Trigger::Timer { offset, period } => {
                set.progression(offset.as_ns(), period.map(Span::as_ns));
            }
            Trigger::Sporadic { action, interval: None } => {
                set.doubts.insert(Doubt::Action(action.clone(), at));
            }
            // All reactions to an action share its tags.
            Trigger::Sporadic { action, interval: Some(least) } => {
                set.sporadic(*least, self.first_of(action));
            }
            Trigger::Reaction { .. } | Trigger::Message(_) => {
                if let (true, Some((_, Some(least)))) =
                    (self.cut.contains(&(at, number)), &why.action)
                {
                    set.sporadic(*least, key(at, number));
                }
            }
        }
        set
    }

    /// A number that is the same for all reactions to an action.
    fn first_of(&self, action: &str) -> usize {
        let has = |draft: &Draft| draft.causes.iter().any(|why| why.is_of(action));
        self.drafts.iter().position(has).map_or(0, |at| key(at, 0))
    }
}

/// A number for a cause of a draft.
fn key(draft: usize, number: usize) -> usize {
    draft.saturating_mul(SETS).saturating_add(number.min(SETS - 1))
}

/// The sets of drafts that cause each other in a way whose rate is not known.
fn doubtful(component: &[usize], entering: &[Set]) -> Vec<Set> {
    let mut all = Set::default();
    for set in entering {
        all.unite(set);
    }
    // What nothing enters has no tags.
    if !all.tags.is_empty() || !all.doubts.is_empty() {
        all.tags.clear();
        all.doubts.insert(Doubt::Cycle(component[0]));
    }
    vec![all; component.len()]
}

/// Drafts that cause each other: a tag comes back later by a multiple of `step_ns`.
struct Circle {
    step_ns: i64,
    /// How much later a tag is at each draft than at the first one, up to multiples of the step.
    potentials: BTreeMap<usize, i64>,
    /// Delays of one microstep within it.
    microsteps: u32,
}

/// The most sets times drafts of a circle that are followed.
const EFFORT: usize = 1_000_000;

/// The most microsteps of one instant that count as known.
const MICROSTEPS: u32 = 16;

impl Circle {
    /// None if a way is physical, or leads round without time: then the rate is not known.
    fn of(component: &[usize], steps: &[Step]) -> Option<Self> {
        let mut from: BTreeMap<usize, Vec<(usize, i64)>> = BTreeMap::new();
        let mut at_once = BTreeSet::new();
        let mut microsteps = 0;
        for (start, end, (delay, physical)) in steps {
            let ns = (!physical).then(|| delay.time().as_ns())?;
            if ns == 0 {
                at_once.insert((*start, *end));
            }
            microsteps += u32::from(*delay == TagDelay::Microstep);
            from.entry(*start).or_default().push((*end, ns));
        }
        if has_cycle(&at_once) {
            return None;
        }
        let mut potentials = BTreeMap::from([(component[0], 0_i64)]);
        let mut ahead = vec![component[0]];
        let mut step_ns = 0;
        while let Some(start) = ahead.pop() {
            for (end, ns) in from.get(&start).into_iter().flatten() {
                let there = potentials[&start].checked_add(*ns)?;
                match potentials.get(end) {
                    // Two ways differ by multiples of the step.
                    Some(known) => step_ns = gcd(step_ns, there.checked_sub(*known)?.abs()),
                    None => {
                        potentials.insert(*end, there);
                        ahead.push(*end);
                    }
                }
            }
        }
        (step_ns > 0).then_some(Self { step_ns, potentials, microsteps })
    }

    /// The sets of all drafts, by what enters each.
    fn sets(&self, component: &[usize], entering: &[Set]) -> Vec<Set> {
        let entered: usize = entering.iter().map(|set| set.tags.len()).sum();
        if entered.saturating_mul(component.len()) > EFFORT {
            return doubtful(component, entering);
        }
        let mut sets: Vec<Set> = entering.to_vec();
        for (source, set) in component.iter().zip(entering) {
            for tags in &set.tags {
                if matches!(tags, Tags::Progression { first_ns: END_NS, .. }) {
                    continue;
                }
                let Some((first_ns, period_ns, microsteps)) = self.period(tags) else {
                    return doubtful(component, entering);
                };
                for (target, found) in component.iter().zip(&mut sets) {
                    let shift = self.potentials[target].saturating_sub(self.potentials[source]);
                    let first_ns = first_ns.saturating_add(shift).rem_euclid(period_ns);
                    let period_ns = Some(period_ns);
                    found.tags.extend((0..=microsteps).map(|microstep| Tags::Progression {
                        first_ns,
                        microstep,
                        period_ns,
                    }));
                }
            }
        }
        let mut doubts = BTreeSet::new();
        for set in entering {
            doubts.extend(set.doubts.iter().cloned());
        }
        for set in &mut sets {
            set.doubts.extend(doubts.iter().cloned());
            set.unite(&Set::default());
        }
        sets
    }

    /// The first tag, the period with which such tags return, and the last microstep: what comes
    /// back must meet what comes next, or the rate would grow beyond both.
    fn period(&self, tags: &Tags) -> Option<(i64, i64, u32)> {
        let Tags::Progression { first_ns, microstep, period_ns } = tags else { return None };
        let microsteps = microstep.checked_add(self.microsteps)?;
        let period_ns = match *period_ns {
            None => self.step_ns,
            Some(period) if self.step_ns % period == 0 => period,
            Some(period) if period % self.step_ns == 0 => self.step_ns,
            Some(_) => return None,
        };
        (microsteps <= MICROSTEPS).then_some((*first_ns, period_ns, microsteps))
    }
}

impl Set {
    fn progression(&mut self, first_ns: i64, period_ns: Option<i64>) {
        self.tags.insert(Tags::Progression { first_ns, microstep: 0, period_ns });
    }

    fn sporadic(&mut self, least: Span, of: usize) {
        let interval_ns = least.as_ns().max(1);
        self.tags.insert(Tags::Sporadic { interval_ns, of, shift_ns: 0, microstep: 0 });
    }

    fn unite(&mut self, other: &Self) {
        self.tags.extend(other.tags.iter().cloned());
        self.doubts.extend(other.doubts.iter().cloned());
        if self.tags.len() > SETS {
            // More is no help: the mean of all is.
            let (interval, burst) = rate(&self.tags);
            let interval_ns = interval.map_or(i64::MAX, Span::as_ns);
            self.tags = BTreeSet::from([Tags::Jittered { interval_ns, burst, of: usize::MAX }]);
        }
    }

    /// The tags after a delay.
    fn shifted(&self, (delay, physical): Delays, of: usize) -> Self {
        if physical {
            let (interval, burst) = rate(&self.tags);
            let mut set = Self { tags: BTreeSet::new(), doubts: self.doubts.clone() };
            if !self.tags.is_empty() {
                let interval_ns = interval.map_or(i64::MAX, Span::as_ns);
                // Late by less than an interval, one more comes with those that come at once.
                let burst = burst.saturating_add(u32::from(interval.is_some()));
                set.tags.insert(Tags::Jittered { interval_ns, burst, of });
            }
            return set;
        }
        let ns = delay.time().as_ns();
        let step = |microstep: u32| match delay {
            TagDelay::None => microstep,
            TagDelay::Microstep => microstep.saturating_add(1),
            TagDelay::Time(_) => 0,
        };
        // Nothing comes after the end.
        let ends = |tags: &&Tags| {
            !matches!(tags, Tags::Progression { first_ns: END_NS, .. }) || delay == TagDelay::None
        };
        let tags = self.tags.iter().filter(ends).map(|tags| match tags {
            Tags::Progression { first_ns, microstep, period_ns } => Tags::Progression {
                first_ns: first_ns.saturating_add(ns),
                microstep: step(*microstep),
                period_ns: *period_ns,
            },
            Tags::Sporadic { interval_ns, of, shift_ns, microstep } => Tags::Sporadic {
                interval_ns: *interval_ns,
                of: *of,
                shift_ns: shift_ns.saturating_add(ns),
                microstep: step(*microstep),
            },
            jittered @ Tags::Jittered { .. } => jittered.clone(),
        });
        Self { tags: tags.collect(), doubts: self.doubts.clone() }
    }

    /// Holds for what is never closer together than `least`: the action's own bound, if it is
    /// tighter than what comes.
    fn limit(&mut self, least: Span, of: usize) {
        let (interval, _) = rate(&self.tags);
        if !self.doubts.is_empty() || interval.is_some_and(|interval| interval < least) {
            *self = Self::default();
            self.sporadic(least, of);
        }
    }

    fn rate(self) -> Rate {
        if !self.doubts.is_empty() {
            return Rate::Unknown(self.doubts);
        }
        let (interval, burst) = rate(&self.tags);
        Rate::Known { interval, burst }
    }
}

/// The mean time between two tags of all sets together, rounded down, and how many may come at
/// once.
fn rate(tags: &BTreeSet<Tags>) -> (Option<Span>, u32) {
    let kept: Vec<&Tags> = tags.iter().filter(|one| !is_covered(one, tags)).collect();
    let burst: usize = kept.iter().map(|one| one.burst()).sum();
    let periods: Vec<i64> = kept.iter().filter_map(|one| one.interval_ns()).collect();
    let burst = burst.clamp(1, limits::BURST as usize);
    (mean(&periods), u32::try_from(burst).unwrap_or(1))
}

/// Whether another progression of the sets has all tags of this one.
fn is_covered(one: &Tags, all: &BTreeSet<Tags>) -> bool {
    let Tags::Progression { first_ns, microstep, period_ns } = one else { return false };
    all.iter().any(|other| match other {
        Tags::Progression {
            first_ns: first,
            microstep: other_microstep,
            period_ns: Some(period),
        } if other != one => {
            let later = first_ns.saturating_sub(*first);
            microstep == other_microstep
                && later >= 0
                && later % period == 0
                && period_ns.is_none_or(|own| own % period == 0)
        }
        _ => false,
    })
}

impl Tags {
    fn interval_ns(&self) -> Option<i64> {
        match self {
            Self::Progression { period_ns, .. } => *period_ns,
            Self::Sporadic { interval_ns, .. } | Self::Jittered { interval_ns, .. } => {
                Some(*interval_ns).filter(|ns| *ns < i64::MAX)
            }
        }
    }

    /// How many of its tags may come together.
    fn burst(&self) -> usize {
        match self {
            Self::Progression { .. } | Self::Sporadic { .. } => 1,
            Self::Jittered { burst, .. } => *burst as usize,
        }
    }
}

/// One in the sum of the rates, rounded down.
fn mean(periods: &[i64]) -> Option<Span> {
    let periods: Vec<u128> =
        periods.iter().map(|period| u128::from(period.unsigned_abs().max(1))).collect();
    if periods.is_empty() {
        return None;
    }
    let multiple = periods.iter().try_fold(1_u128, |all, period| {
        (all / gcd_u128(all, *period)).checked_mul(*period).filter(|all| *all < 1 << 100)
    });
    let interval = match multiple {
        Some(all) => all / periods.iter().map(|period| all / period).sum::<u128>(),
        // The common multiple is too large: rates in parts of 2⁹⁶, each rounded up.
        None => {
            (1 << 96) / periods.iter().map(|period| (1_u128 << 96).div_ceil(*period)).sum::<u128>()
        }
    };
    Some(Span::from_ns(i64::try_from(interval).unwrap_or(i64::MAX).max(1)))
}

fn gcd_u128(mut a: u128, mut b: u128) -> u128 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

fn gcd(mut a: i64, mut b: i64) -> i64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Whether the pairs lead round.
fn has_cycle(pairs: &BTreeSet<(usize, usize)>) -> bool {
    let mut left = pairs.clone();
    loop {
        let targets: BTreeSet<usize> = left.iter().map(|(_, to)| *to).collect();
        let before = left.len();
        left.retain(|(from, _)| targets.contains(from));
        if left.len() == before {
            return !left.is_empty();
        }
    }
}

/// Strongly connected components, causes before effects (Tarjan's algorithm without recursion).
fn components(causes: &Causes<'_>) -> Vec<Vec<usize>> {
    let of = |at: usize| {
        let numbers = 0..causes.drafts[at].causes.len();
        numbers.flat_map(|number| causes.from(at, number).0).collect()
    };
    let before: Vec<Vec<usize>> = (0..causes.drafts.len()).map(of).collect();
    let mut search = Search { before: &before, ..Search::default() };
    search.index = vec![usize::MAX; before.len()];
    search.low = vec![0; before.len()];
    search.on_stack = vec![false; before.len()];
    for at in 0..before.len() {
        if search.index[at] == usize::MAX {
            search.from(at);
        }
    }
    search.found
}

#[derive(Default)]
struct Search<'s> {
    before: &'s [Vec<usize>],
    index: Vec<usize>,
    low: Vec<usize>,
    on_stack: Vec<bool>,
    stack: Vec<usize>,
    next: usize,
    found: Vec<Vec<usize>>,
}

impl Search<'_> {
    fn enter(&mut self, at: usize) {
        self.index[at] = self.next;
        self.low[at] = self.next;
        self.next += 1;
        self.stack.push(at);
        self.on_stack[at] = true;
    }

    fn from(&mut self, first: usize) {
        let mut calls = vec![(first, 0)];
        self.enter(first);
        while let Some((at, next)) = calls.pop() {
            if let Some(to) = self.before[at].get(next).copied() {
                calls.push((at, next + 1));
                if self.index[to] == usize::MAX {
                    self.enter(to);
                    calls.push((to, 0));
                } else if self.on_stack[to] {
                    self.low[at] = self.low[at].min(self.index[to]);
                }
                continue;
            }
            if self.low[at] == self.index[at] {
                let mut component = Vec::new();
                while let Some(top) = self.stack.pop() {
                    self.on_stack[top] = false;
                    component.push(top);
                    if top == at {
                        break;
                    }
                }
                component.sort_unstable();
                self.found.push(component);
            }
            if let Some((caller, _)) = calls.last() {
                self.low[*caller] = self.low[*caller].min(self.low[at]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_of_rates_is_their_sum_rounded_down() {
        let ms = |n: i64| n * 1_000_000;
        assert_eq!(mean(&[]), None);
        assert_eq!(mean(&[ms(10)]), Some(Span::from_ms(10)));
        assert_eq!(mean(&[ms(10), ms(10)]), Some(Span::from_ms(5)));
        assert_eq!(mean(&[ms(10), ms(15)]), Some(Span::from_ms(6)));
        assert_eq!(mean(&[3, 3]), Some(Span::from_ns(1)));
        // Primes whose product exceeds 100 bits: rounded, never above the exact value.
        let primes = [999_999_937, 999_999_929, 999_999_893, 999_999_883, 999_999_797, 999_999_761];
        let found = mean(&primes).expect("a rate").as_ns();
        assert!((166_666_600..=166_666_644).contains(&found), "{found}");
    }

    #[test]
    fn a_progression_within_another_one_adds_nothing() {
        let p =
            |first, period| Tags::Progression { first_ns: first, microstep: 0, period_ns: period };
        let found = |tags: &[Tags]| rate(&tags.iter().cloned().collect());
        assert_eq!(found(&[p(0, Some(10)), p(20, Some(30))]), (Some(Span::from_ns(10)), 1));
        assert_eq!(found(&[p(0, Some(10)), p(5, Some(10))]), (Some(Span::from_ns(5)), 2));
        assert_eq!(found(&[p(0, Some(10)), p(0, None)]), (Some(Span::from_ns(10)), 1));
        assert_eq!(found(&[p(0, None), p(7, None)]), (None, 2));
    }
}
