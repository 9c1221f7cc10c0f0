//! The table of some tasks, continued by its pattern.

use super::order::Order;
use super::regime::gcd;
use onbeat_model::graph::{Graph, Interval, Task};
use onbeat_model::time::Span;
use onbeat_model::timing::{Component, Course, Row, Timing};
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
    graph: &'a Graph,
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
    again: Option<Again>,
    /// When that round begins at the earliest.
    begin: Span,
}

/// The endless loop of a task.
struct Again {
    nodes: BTreeSet<usize>,
    /// The first round that repeats, after how many rounds, and after what.
    first: u32,
    rounds: u32,
    shift: Span,
}

/// A visit, apart from its table.
type Key = (usize, usize, Vec<u32>);

fn key(row: &Row) -> Key {
    (row.task, row.node, row.iteration.clone())
}

/// The shortest time after which both repeat.
fn common(a: Span, b: Span) -> Span {
    if a == Span::ZERO || b == Span::ZERO {
        return a.max(b);
    }
    let (a, b) = (a.as_ns(), b.as_ns());
    Span::from_ns((a / gcd(a, b)).checked_mul(b).unwrap_or(i64::MAX / 8))
}

/// The outermost loop that a node is in, with what may be counted to its rounds.
fn around(task: &Task, node: usize) -> BTreeSet<usize> {
    let all: BTreeSet<usize> = (0..task.nodes.len()).collect();
    let order = Order::of(task, &all);
    let head = order.loops(node).first();
    all.into_iter().filter(|node| order.loops(*node).first() == head).collect()
}

impl<'a> Unroller<'a> {
    /// Of the tasks that are wanted. None if nothing is proven of all rounds of one.
    pub(super) fn new(graph: &'a Graph, timing: &'a Timing, wanted: &[bool]) -> Option<Self> {
        let rows = |task| timing.rows.iter().filter(move |row| row.task == task);
        let (mut tasks, mut steady, mut shift) = (Vec::new(), Span::ZERO, Span::ZERO);
        for (task, &is_wanted) in wanted.iter().enumerate() {
            let inner = rows(task).rev().find(|row| !row.iteration.is_empty());
            let component = timing.components.iter().find(|one| one.tasks.contains(&task));
            if is_wanted && component.is_none_or(|one| matches!(one.course, Course::Open { .. })) {
                return None;
            }
            let place = |one: &Component| one.tasks.iter().position(|of| *of == task);
            let found = component.and_then(|one| one.course.again(place(one)?)).zip(inner);
            let again = found.map(|((first, rounds, shift), row)| Again {
                nodes: around(&graph.tasks[task], row.node),
                first,
                rounds,
                shift,
            });
            let mut found = Repeated { is_wanted, again, begin: Span::ZERO };
            if is_wanted {
                shift = found.again.as_ref().map_or(shift, |again| common(shift, again.shift));
                let begins = rows(task).filter(|row| found.round(row) == Some(0));
                found.begin = begins.map(|row| row.arrival.lo).min().unwrap_or_default();
                let ends = rows(task).filter(|row| found.round(row).is_none());
                let end = ends.filter_map(|row| row.release.hi).max().unwrap_or_default();
                steady = steady.max(found.begin).max(end);
            }
            tasks.push(found);
        }
        Some(Self { graph, timing, tasks, steady, shift })
    }

    /// How often the table repeats until an instant.
    fn copies(&self, task: usize, until: Span) -> i64 {
        let Repeated { begin, again, .. } = &self.tasks[task];
        match again {
            Some(Again { shift, .. }) if *begin <= until => {
                (until - *begin).as_ns() / shift.as_ns().max(1)
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
        // What is after the loop repeats never.
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
        if let (Some(again), Some(round)) = (&self.tasks[row.task].again, key.2.first_mut())
            && again.nodes.contains(&row.node)
        {
            *round += copy * again.rounds;
        }
        key
    }

    fn row(&self, row: &Row, copy: u32, keys: &BTreeMap<Key, usize>) -> Row {
        let shift = self.tasks[row.task].again.as_ref().map_or(Span::ZERO, |again| again.shift);
        let by = shift * i64::from(copy);
        let link = |to: &usize| {
            // Of those that are joined by channels all repeat after the same time.
            keys.get(&self.later(&self.timing.rows[*to], copy)).copied()
        };
        let arrival = row.arrival + Interval::exactly(by);
        let mut before = row.before.clone();
        if copy > 0 {
            before.retain(|(from, _)| self.tasks[row.task].is_in_loop(&self.timing.rows[*from]));
        }
        let mut before: Vec<_> =
            before.iter().filter_map(|(from, gap)| Some((link(from)?, *gap))).collect();
        if before.len() < row.before.len() {
            before.extend(self.around_again(row, copy, keys));
        }
        Row {
            iteration: self.later(row, copy).2,
            arrival,
            release: row.release + Interval::exactly(by),
            before,
            messages: row.messages.iter().filter_map(link).collect(),
            ..row.clone()
        }
    }

    /// What leads to the head of a loop in the first round of a copy: the table has what leads into
    /// the loop.
    fn around_again(
        &self,
        head: &Row,
        copy: u32,
        keys: &BTreeMap<Key, usize>,
    ) -> Vec<(usize, Interval)> {
        let Some(again) = self.tasks[head.task].again.as_ref().filter(|_| copy > 0) else {
            return Vec::new();
        };
        let last = again.first + again.rounds - 1;
        let rows = self.timing.rows.iter().filter(|row| {
            row.task == head.task
                && again.nodes.contains(&row.node)
                && row.iteration.first() == Some(&last)
        });
        let leads = rows.filter_map(|row| {
            let node = &self.graph.tasks[row.task].nodes[row.node];
            let at = *keys.get(&self.later(row, copy - 1))?;
            if node.next.contains(&head.node) {
                return Some((at, Interval::ZERO));
            }
            let arrival = head.arrival + Interval::exactly(again.shift);
            let passes = Interval {
                lo: row.release.hi.map_or(Span::ZERO, |hi| arrival.lo - hi),
                hi: arrival.hi.map(|hi| hi - row.arrival.lo),
            };
            (node.guard == Some(head.node)).then_some((at, passes))
        });
        leads.collect()
    }
}

impl Repeated {
    fn is_in_loop(&self, row: &Row) -> bool {
        self.again.as_ref().is_some_and(|again| again.nodes.contains(&row.node))
    }

    /// In which copy a row is, 0 the first; none before them.
    fn round(&self, row: &Row) -> Option<u32> {
        let again = self.again.as_ref().filter(|again| again.nodes.contains(&row.node))?;
        Some(row.iteration.first()?.checked_sub(again.first)? / again.rounds.max(1))
    }
}
