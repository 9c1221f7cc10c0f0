//! Aborts that wait: while a segment holds a lock, memory or a stream that it has obtained, no
//! deadline aborts it (`docs/timed-c.md`, "What is not aborted at once").
//!
//! Each step is taken together with what is held there, so that ways on which something else is
//! held stay apart up to the next timing point. If it is unknown whether something is released,
//! both cases are followed.

use super::inline::{Does, Held, Raw};
use super::unit::{Effect, Thing};
use onbeat_model::diagnostic::Origin;
use onbeat_model::graph::PointKind;
use std::collections::{HashMap, HashSet};

/// The most steps of a task with all that may be held at each.
const STEPS_MAX: usize = 100_000;

/// As many of one thing, or more.
const MANY: usize = 3;

/// Things by number, in order; one that is held twice stands there twice.
type Holds = Vec<usize>;

/// What became of a task's steps.
pub(super) struct Deferred {
    pub steps: Vec<Raw>,
    /// Where it is unknown whether something is released, or obtained.
    pub unknown: Vec<Origin>,
}

/// Takes the guards off where the abort waits. None if that is too much to follow.
pub(super) fn defer(steps: Vec<Raw>) -> Option<Deferred> {
    let mut product = Product::new(&steps);
    let is_followed = product.run();
    if !product.matters() {
        return Some(Deferred { steps: plain(steps), unknown: Vec::new() });
    }
    is_followed.then(|| {
        let mut unknown = std::mem::take(&mut product.unknown);
        unknown.sort_unstable();
        unknown.dedup();
        Deferred { steps: plain(product.made()), unknown }
    })
}

/// What is obtained and given back is code from here on.
fn plain(mut steps: Vec<Raw>) -> Vec<Raw> {
    for step in &mut steps {
        if let Does::Hold(held) = &step.does {
            let is_code = held.iter().any(|held| held.thing != Thing::Any);
            step.does = if is_code { Does::Code } else { Does::Nothing };
        }
    }
    steps
}

struct Product<'s> {
    steps: &'s [Raw],
    things: Vec<(Thing, Option<(u32, String)>)>,
    known: HashMap<(usize, Holds), usize>,
    /// Each a step with what is held when it begins; behind all steps, what stands before them
    /// where they are points and something is held.
    states: Vec<(usize, Holds)>,
    next: Vec<Vec<usize>>,
    unknown: Vec<Origin>,
}

impl<'s> Product<'s> {
    fn new(steps: &'s [Raw]) -> Self {
        // Every step once with nothing held, so that those that nothing leads to stay.
        let states: Vec<_> = (0..steps.len()).map(|at| (at, Holds::new())).collect();
        let known = states.iter().cloned().zip(0..).collect();
        Self { steps, things: Vec::new(), known, states, next: Vec::new(), unknown: Vec::new() }
    }

    /// Follows all steps; whether that was not too much.
    fn run(&mut self) -> bool {
        while let Some((at, holds)) = self.states.get(self.next.len()).cloned() {
            let Some(step) = self.steps.get(at) else {
                let point = self.state(at - self.steps.len(), Holds::new());
                self.next.push(vec![point]);
                continue;
            };
            let after = self.after(step, holds);
            let mut next = Vec::new();
            // A branch holds nothing more: its ways keep their order.
            for to in &step.next {
                for holds in &after {
                    next.push(self.state(*to, holds.clone()));
                }
            }
            self.next.push(next);
            if self.states.len() > STEPS_MAX {
                return false;
            }
        }
        true
    }

    fn state(&mut self, at: usize, holds: Holds) -> usize {
        // What a segment holds is forgotten at its point.
        let key = match self.steps.get(at).map(|step| &step.does) {
            Some(Does::Point { kind, .. }) if *kind != PointKind::Soft && !holds.is_empty() => {
                (self.steps.len() + at, Holds::new())
            }
            Some(Does::Point { .. } | Does::End) | None => (at, Holds::new()),
            Some(_) => (at, holds),
        };
        let count = self.states.len();
        let found = *self.known.entry(key.clone()).or_insert(count);
        if found == count {
            self.states.push(key);
        }
        found
    }

    fn thing(&mut self, thing: Thing, name: Option<(u32, String)>) -> usize {
        let wanted = (thing, name);
        if let Some(known) = self.things.iter().position(|t| *t == wanted) {
            return known;
        }
        self.things.push(wanted);
        self.things.len() - 1
    }

    /// What may be held behind a step.
    fn after(&mut self, step: &Raw, holds: Holds) -> Vec<Holds> {
        let lock = |r: usize| Some((0, format!("#{r}")));
        match &step.does {
            Does::Lock(resource) | Does::Take(resource) => {
                let thing = self.thing(Thing::Lock, lock(*resource));
                vec![taken(holds, thing)]
            }
            Does::Unlock(resource) => {
                let name = lock(*resource);
                self.given(holds, Thing::Lock, name, step.origin)
            }
            Does::Hold(all) => {
                let mut after = vec![holds];
                for Held { thing, effect, name } in all {
                    let mut then = Vec::new();
                    for holds in after {
                        let more = match effect {
                            Effect::Give => self.given(holds, *thing, name.clone(), step.origin),
                            Effect::Take | Effect::May => {
                                let thing = self.thing(*thing, name.clone());
                                let mut ways = vec![taken(holds.clone(), thing)];
                                if *effect == Effect::May {
                                    self.unknown.push(step.origin);
                                    ways.push(holds);
                                }
                                ways
                            }
                        };
                        then.extend(more);
                    }
                    then.sort_unstable();
                    then.dedup();
                    after = then;
                }
                after
            }
            _ => vec![holds],
        }
    }

    /// What may be held when something of a kind is given back: of what is not known to be held, it
    /// is unknown which it is, or whether it is any.
    fn given(
        &mut self,
        holds: Holds,
        thing: Thing,
        name: Option<(u32, String)>,
        origin: Origin,
    ) -> Vec<Holds> {
        let is_it = |held: &usize| {
            let (kind, known) = &self.things[*held];
            (*kind == thing || thing == Thing::Any) && name.is_some() && *known == name
        };
        if let Some(at) = holds.iter().position(is_it) {
            let which = holds[at];
            let is_many = holds.iter().filter(|held| **held == which).count() >= MANY;
            let mut less = holds.clone();
            less.remove(at);
            if is_many {
                self.unknown.push(origin);
                return vec![less, holds];
            }
            return vec![less];
        }
        let mut ways = vec![holds.clone()];
        for at in 0..holds.len() {
            let kind = self.things[holds[at]].0;
            if kind == thing || thing == Thing::Any {
                let mut less = holds.clone();
                less.remove(at);
                ways.push(less);
            }
        }
        if ways.len() > 1 {
            self.unknown.push(origin);
        }
        ways.sort_unstable();
        ways.dedup();
        ways
    }

    /// Whether an abort waits anywhere where time may pass.
    fn matters(&self) -> bool {
        self.states.iter().any(|(at, holds)| {
            let Some(step) = self.steps.get(*at) else { return true };
            let takes_time = matches!(
                step.does,
                Does::Work(_)
                    | Does::Read { .. }
                    | Does::Write { .. }
                    | Does::Lock(_)
                    | Does::Run(_)
                    | Does::Gettime
            );
            !holds.is_empty() && step.guard.is_some() && takes_time
        })
    }

    fn made(self) -> Vec<Raw> {
        let mut made = Vec::with_capacity(self.states.len());
        for ((at, holds), mut next) in self.states.iter().zip(self.next) {
            let Some(step) = self.steps.get(*at) else {
                let point = self.steps[*at - self.steps.len()].clone();
                made.push(Raw { does: Does::Held, next, guard: None, ..point });
                continue;
            };
            if next.len() > step.next.len() {
                let mut seen = HashSet::new();
                next.retain(|to| seen.insert(*to));
            }
            // The points' steps with nothing held are where they were.
            let guard = step.guard.filter(|_| holds.is_empty());
            made.push(Raw { next, guard, ..step.clone() });
        }
        made
    }
}

/// Holds with one more.
fn taken(mut holds: Holds, thing: usize) -> Holds {
    if holds.iter().filter(|held| **held == thing).count() < MANY {
        holds.push(thing);
        holds.sort_unstable();
    }
    holds
}
