//! How much work a window of tags may bring, where clocks decide on some of them.
//!
//! Tags that keep their distances are a *pattern*: an event and what it causes later, or all timers
//! of one period. If a pattern is shorter than the least time between two events, then of all
//! windows that begin (or end) at a certain tag of it, those with the events as close as they may
//! be have the most: no tag of an event is on the other side of one of another event.

use super::Ns;
use super::stream::Phase;
use super::window::Work;
use std::collections::{BTreeMap, BTreeSet};

/// So many tags has a pattern at most; those of longer ones count each by itself.
const TAGS_MAX: usize = 24;

/// One tag of each event of a pattern, and a reaction that executes there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Item {
    offset: Ns,
    microstep: u32,
    task: usize,
}

/// Tags that keep their distances.
#[derive(Clone, Debug)]
struct Pattern {
    items: Vec<Item>,
    phase: Phase,
    /// From any of its items to any other, each once.
    distances: Vec<Ns>,
}

/// Where a window ends: at an item of a pattern, with what is in order up to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct End {
    pattern: usize,
    at: Item,
    last: usize,
}

/// The patterns of a federate.
#[derive(Clone, Debug)]
pub(super) struct Demand {
    patterns: Vec<Pattern>,
    /// Per reaction: its longest execution.
    worst: Vec<Ns>,
}

impl Demand {
    pub(super) fn new(work: &Work) -> Self {
        let mut phases: BTreeMap<Phase, BTreeSet<Item>> = BTreeMap::new();
        for (task, what) in work.tasks.iter().enumerate() {
            for stream in &what.streams {
                let (phase, offset) = stream.phase();
                let item = Item { offset, microstep: stream.microstep(), task };
                phases.entry(phase).or_default().insert(item);
            }
        }
        let mut patterns = Vec::new();
        for (phase, items) in phases {
            let items: Vec<Item> = items.into_iter().collect();
            let length = items.last().map_or(0, |item| item.offset)
                - items.first().map_or(0, |item| item.offset);
            let is_short = phase.spacing.is_none_or(|spacing| length < spacing - phase.jitter);
            if is_short && items.len() <= TAGS_MAX {
                patterns.push(Pattern::new(items, phase));
                continue;
            }
            // What is at one tag stays together.
            for same in items.chunk_by(|a, b| a.offset == b.offset) {
                patterns.push(Pattern::new(same.to_vec(), phase));
            }
        }
        Self { patterns, worst: work.tasks.iter().map(|task| task.worst).collect() }
    }

    /// Where windows may end at which one of these reactions executes, and what is up to `last` is
    /// to be done.
    pub(super) fn ends(&self, last: usize, tasks: &[usize]) -> Vec<End> {
        let mut ends = Vec::new();
        for (pattern, what) in self.patterns.iter().enumerate() {
            let own = what.items.iter().filter(|item| tasks.contains(&item.task));
            ends.extend(own.map(|at| End { pattern, at: *at, last }));
        }
        ends
    }

    /// The work of all tags in a window of this length, the ends included, at most.
    pub(super) fn most(&self, window: Ns) -> Ns {
        self.patterns.iter().map(|pattern| self.of(pattern, window)).sum()
    }

    /// The most work that a pattern has in a window: it begins at one of its tags.
    fn of(&self, pattern: &Pattern, window: Ns) -> Ns {
        let from = |begin: &Item| {
            let work = |item: &Item| {
                self.worst[item.task] * pattern.count(item.offset - begin.offset, window)
            };
            pattern.items.iter().map(work).sum::<Ns>()
        };
        pattern.items.iter().map(from).max().unwrap_or(0)
    }

    /// The same of a window that ends there, without what comes after it at the very same time.
    pub(super) fn until(&self, end: End, window: Ns) -> Ns {
        let mut total = 0;
        for (at, pattern) in self.patterns.iter().enumerate() {
            if at != end.pattern {
                total += self.of(pattern, window);
                continue;
            }
            for item in &pattern.items {
                let later = (item.microstep, item.task) > (end.at.microstep, end.last);
                let is_behind = item.offset == end.at.offset && later;
                let count = pattern.count(end.at.offset - item.offset, window);
                total += self.worst[item.task] * (count - Ns::from(is_behind)).max(0);
            }
        }
        total
    }

    /// The least longer window that may have more tags.
    pub(super) fn next(&self, window: Ns) -> Option<Ns> {
        let next = self.patterns.iter().flat_map(|pattern| {
            pattern.distances.iter().filter_map(|distance| pattern.next(*distance, window))
        });
        next.min()
    }
}

impl Pattern {
    fn new(items: Vec<Item>, phase: Phase) -> Self {
        let from = |a: &Item| items.iter().map(|b| a.offset - b.offset).collect::<Vec<_>>();
        let distances: BTreeSet<Ns> = items.iter().flat_map(from).collect();
        Self { distances: distances.into_iter().collect(), items, phase }
    }

    /// How often a tag at this distance, of the same event or of later ones, is in a window of this
    /// length.
    fn count(&self, distance: Ns, window: Ns) -> Ns {
        let Phase { spacing, jitter, .. } = self.phase;
        let Some(spacing) = spacing else {
            return Ns::from((0..=window).contains(&distance));
        };
        let first = self.first(distance, spacing);
        match (first > window, distance >= 0) {
            (true, _) => 0,
            (false, true) => (window - distance + jitter) / spacing + 1,
            (false, false) => (window - first) / spacing + 1,
        }
    }

    /// When such a tag is there first: that of the same event, or of the next one.
    fn first(&self, distance: Ns, spacing: Ns) -> Ns {
        if distance >= 0 { distance } else { distance + spacing - self.phase.jitter }
    }

    /// The least longer window in which a tag at this distance is once more.
    fn next(&self, distance: Ns, window: Ns) -> Option<Ns> {
        let Phase { spacing, jitter, .. } = self.phase;
        let Some(spacing) = spacing else {
            return (distance > window).then_some(distance);
        };
        let first = self.first(distance, spacing);
        if first > window {
            return Some(first);
        }
        let count = self.count(distance, window);
        Some(if distance >= 0 {
            distance + count * spacing - jitter
        } else {
            first + count * spacing
        })
    }
}
