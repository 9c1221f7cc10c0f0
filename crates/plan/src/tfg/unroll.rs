//! The table of some tasks, continued by its pattern.

use onbeat_model::graph::{Graph, Interval, Task};
use onbeat_model::time::Span;
use onbeat_model::timing::{Row, Timing};
use std::collections::{BTreeMap, BTreeSet};

/// Rows up to an instant, and those that begin before it.
pub(super) struct Unrolled {
    /// As in the table, but `before` and `messages` lead into this.
    pub(super) rows: Vec<Row>,
    /// Up to when nothing is missing.
    pub(super) until: Span,
}

/// Unrolls a table that has a pattern.
pub(super) struct Unroller<'a> {
    timing: &'a Timing,
    tasks: Vec<Repeated>,
    /// From when on everything repeats itself.
    pub(super) steady: Span,
    /// After what.
    pub(super) shift: Span,
}

/// A task's part of the table.
struct Repeated {
    is_wanted: bool,
    /// The nodes of its endless loop, the first round that comes again, after how many rounds.
    again: Option<(BTreeSet<usize>, u32, u32)>,
    /// When that round begins at the earliest.
    begin: Span,
}

/// A visit, apart from its table.
type Key = (usize, usize, Vec<u32>);

fn key(row: &Row) -> Key {
    (row.task, row.node, row.iteration.clone())
}

fn shifted(interval: Interval, by: Span) -> Interval {
    Interval { lo: interval.lo + by, hi: interval.hi.map(|hi| hi + by) }
}

/// Nodes that can be reached.
fn reached(from: usize, next: &dyn Fn(usize) -> Vec<usize>) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    let mut open = next(from);
    while let Some(node) = open.pop() {
        if found.insert(node) {
            open.extend(next(node));
        }
    }
    found
}

/// The outermost loop that a node is in.
fn around(task: &Task, node: usize) -> BTreeSet<usize> {
    let next = |n: usize| task.nodes[n].next.iter().copied().chain(task.nodes[n].guard).collect();
    let ahead = reached(node, &next);
    let behind =
        reached(node, &|to| (0..task.nodes.len()).filter(|n| next(*n).contains(&to)).collect());
    ahead.intersection(&behind).copied().collect()
}

impl<'a> Unroller<'a> {
    /// Of the tasks that are wanted. None if the table has no pattern.
    pub(super) fn new(graph: &Graph, timing: &'a Timing, wanted: &[bool]) -> Option<Self> {
        let pattern = timing.pattern.as_ref()?;
        let rows = |task| timing.rows.iter().filter(move |row| row.task == task);
        let mut tasks = Vec::new();
        let mut steady = Span::ZERO;
        for (task, again) in pattern.tasks.iter().enumerate() {
            let inner = rows(task).rev().find(|row| !row.iteration.is_empty());
            let again = again.zip(inner).map(|((first, count), row)| {
                (around(&graph.tasks[task], row.node), first, count)
            });
            let mut found = Repeated { is_wanted: wanted[task], again, begin: Span::ZERO };
            if found.is_wanted {
                let begins = rows(task).filter(|row| found.round(row) == Some(0));
                found.begin = begins.map(|row| row.arrival.lo).min().unwrap_or_default();
                let ends = rows(task).filter(|row| found.round(row).is_none());
                let end = ends.filter_map(|row| row.release.hi).max().unwrap_or_default();
                steady = steady.max(found.begin).max(end);
            }
            tasks.push(found);
        }
        Some(Self { timing, tasks, steady, shift: pattern.shift })
    }

    /// How often the table comes again until an instant.
    fn copies(&self, task: usize, until: Span) -> i64 {
        let Repeated { begin, again, .. } = &self.tasks[task];
        match again {
            Some(_) if self.shift > Span::ZERO && *begin <= until => {
                (until - *begin).as_ns() / self.shift.as_ns()
            }
            _ => 0,
        }
    }

    /// How many rows there are until an instant.
    pub(super) fn count(&self, until: Span) -> usize {
        let count = |row: &Row| match self.tasks[row.task].round(row) {
            _ if !self.tasks[row.task].is_wanted => 0,
            None => 1,
            Some(0) => 1 + usize::try_from(self.copies(row.task, until)).unwrap_or(usize::MAX),
            Some(_) => 0,
        };
        self.timing.rows.iter().map(count).fold(0, usize::saturating_add)
    }

    /// The rows until an instant.
    pub(super) fn until(&self, until: Span) -> Unrolled {
        // What is after the loop comes again never.
        let mut made: Vec<(usize, u32)> = Vec::new();
        let mut at = 0;
        let table = &self.timing.rows;
        while at < table.len() {
            let task = &self.tasks[table[at].task];
            let end = at + table[at..].iter().take_while(|r| r.task == table[at].task).count();
            let of = |wanted: Option<u32>| {
                (at..end).filter(move |row| task.round(&table[*row]) == wanted)
            };
            if task.is_wanted {
                made.extend(of(None).map(|row| (row, 0)));
                for copy in 0..=self.copies(table[at].task, until) {
                    let copy = u32::try_from(copy).unwrap_or(u32::MAX);
                    made.extend(of(Some(0)).map(|row| (row, copy)));
                }
            }
            at = end;
        }
        let keys = made.iter().map(|(row, copy)| self.later(&table[*row], *copy));
        let keys: BTreeMap<Key, usize> = keys.enumerate().map(|(at, key)| (key, at)).collect();
        let rows = made.iter().map(|(row, copy)| self.row(&table[*row], *copy, &keys)).collect();
        Unrolled { rows, until }
    }

    /// What a row is so many copies later.
    fn later(&self, row: &Row, copy: u32) -> Key {
        let mut key = key(row);
        if let (Some((nodes, ..)), Some(first)) =
            (&self.tasks[row.task].again, key.2.first_mut())
            && nodes.contains(&row.node)
        {
            *first += copy * self.tasks[row.task].rounds();
        }
        key
    }

    fn row(&self, row: &Row, copy: u32, keys: &BTreeMap<Key, usize>) -> Row {
        let by = self.shift * i64::from(copy);
        let link = |to: &usize| keys.get(&self.later(&self.timing.rows[*to], copy)).copied();
        Row {
            iteration: self.later(row, copy).2,
            arrival: shifted(row.arrival, by),
            release: shifted(row.release, by),
            before: row.before.iter().filter_map(|(to, gap)| Some((link(to)?, *gap))).collect(),
            messages: row.messages.iter().filter_map(link).collect(),
            ..row.clone()
        }
    }
}

impl Repeated {
    fn rounds(&self) -> u32 {
        self.again.as_ref().map_or(0, |(_, _, count)| *count)
    }

    /// In which copy a row is, 0 the first; none before them.
    fn round(&self, row: &Row) -> Option<u32> {
        let (nodes, first, count) = self.again.as_ref()?;
        let round = row.iteration.first().filter(|_| nodes.contains(&row.node))?;
        Some(round.checked_sub(*first)? / (*count).max(1))
    }
}
