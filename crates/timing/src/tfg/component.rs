//! Which tasks have to be looked at together: those that are joined by channels. That one starts
//! another joins them in one direction only, so that is looked at first.

use super::fixpoint::Fixpoint;
use super::state::Count;
use onbeat_model::timing::{Course, Hazard, OpenReason};
use std::collections::{BTreeMap, BTreeSet};

/// The components, each behind those that start its tasks. Who starts the tasks in `joined` is of
/// their component.
pub(super) fn components(fixpoint: &Fixpoint<'_>, joined: &BTreeSet<usize>) -> Vec<Vec<usize>> {
    let channels = fixpoint.graph.channels.len();
    let mut group: Vec<usize> = (0..fixpoint.statics.len()).collect();
    let mut starts = BTreeSet::new();
    for (channel, (writers, readers)) in fixpoint.writers.iter().zip(&fixpoint.readers).enumerate()
    {
        let writers = writers.iter().map(|(task, _)| *task);
        let is_start = channel.checked_sub(channels).is_some_and(|task| !joined.contains(&task));
        if let (true, 0..=1) = (is_start, writers.len()) {
            starts.extend(writers.flat_map(|w| readers.iter().map(move |reader| (w, *reader))));
            continue;
        }
        let mut both = writers.chain(readers.iter().copied());
        let Some(first) = both.next() else { continue };
        for other in both {
            let (a, b) = (group[first], group[other]);
            group.iter_mut().filter(|g| **g == b).for_each(|g| *g = a);
        }
    }
    let mut left: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (task, group) in group.iter().enumerate() {
        left.entry(*group).or_default().push(task);
    }
    let mut ordered = Vec::new();
    while !left.is_empty() {
        let waits = |of: &usize| {
            let mut starters = starts.iter().filter(|(_, task)| group[*task] == *of);
            starters.any(|(by, _)| group[*by] != *of && left.contains_key(&group[*by]))
        };
        let next = left.keys().find(|of| !waits(of)).copied();
        ordered.extend(match next.and_then(|next| left.remove(&next)) {
            Some(tasks) => Some(tasks),
            // They start each other.
            None => {
                let mut all: Vec<usize> =
                    std::mem::take(&mut left).into_values().flatten().collect();
                all.sort_unstable();
                Some(all)
            }
        });
    }
    ordered
}

/// Those of some tasks of which others do not say when they start them.
pub(super) fn unsettled(fixpoint: &Fixpoint<'_>, tasks: &[usize]) -> Vec<usize> {
    let is_open = |task: &&usize| {
        let channel = fixpoint.graph.channels.len() + **task;
        let mut writers = fixpoint.writers[channel].iter();
        writers.any(|(by, _)| !tasks.contains(by))
            && !fixpoint.is_final(channel, Count { lo: 0, hi: Some(0) })
    };
    tasks.iter().filter(is_open).copied().collect()
}

impl Fixpoint<'_> {
    /// What is known of tasks without a pattern.
    pub(super) fn course(&self, tasks: &[usize]) -> Course {
        let endless = tasks.iter().filter_map(|task| Some((*task, self.front(*task)?.0)));
        let done = endless.map(|(_, key)| if key.len() > 1 { key[1] - 1 } else { 0 });
        let done = done.chain(tasks.iter().filter_map(|task| self.tasks[*task].still));
        match done.min() {
            None => Course::Ends,
            Some(done) => {
                Course::Open { rounds: done.min(self.limits.rounds), why: self.why(tasks) }
            }
        }
    }

    fn why(&self, tasks: &[usize]) -> OpenReason {
        let full = self.hazards.iter().find_map(|trouble| match trouble {
            Hazard::Overflow { row, channel } if tasks.contains(&self.rows[*row].task) => {
                Some(OpenReason::Full { channel: *channel })
            }
            _ => None,
        });
        let width = |at: Option<&super::fixpoint::Cut>| {
            let now = at?.state.now;
            Some(now.hi? - now.lo)
        };
        let grows = |task: &&usize| {
            let cuts = &self.tasks[**task].cuts;
            let half = width(cuts.get(cuts.len() / 2));
            width(cuts.last()).zip(half).is_some_and(|(last, half)| last > half)
        };
        let is_still = |task: &&usize| self.tasks[**task].still.is_some();
        let still = tasks.iter().find(is_still).map(|task| OpenReason::Still { task: *task });
        still
            .or(full)
            .or_else(|| self.is_forced.then_some(OpenReason::Guessed))
            .or_else(|| tasks.iter().find(grows).map(|task| OpenReason::Grows { task: *task }))
            .unwrap_or(OpenReason::Long)
    }
}
