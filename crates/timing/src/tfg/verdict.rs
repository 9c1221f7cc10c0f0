//! The table, and what it says about the program.

use super::fixpoint::{Fixpoint, Lost};
use onbeat_model::graph::{Interval, NodeKind};
use onbeat_model::time::Span;
use onbeat_model::timing::{Cause, CauseKind, Component, Hazard, Row, Timing};
use std::collections::{BTreeMap, BTreeSet};

/// Puts all that was found together.
pub(super) fn timing(mut fixpoint: Fixpoint<'_>, components: Vec<Component>) -> Timing {
    let lost = std::mem::take(&mut fixpoint.lost);
    let culprits: Vec<Cause> = lost.iter().filter_map(|lost| fixpoint.culprit(lost)).collect();
    let mut misses = std::mem::take(&mut fixpoint.misses);
    for miss in &mut misses {
        miss.path = fixpoint.segment(miss.path[0], miss.row);
    }
    let mut table = Table::of(&fixpoint);
    let mut timing = Timing {
        level: fixpoint.level,
        open: table.open(&fixpoint),
        rows: std::mem::take(&mut table.rows),
        regime: super::regime::together(fixpoint.graph.tasks.len(), &components),
        components,
        causes: culprits,
        misses,
        hazards: fixpoint.hazards,
    };
    timing.causes.retain_mut(|culprit| {
        table.renumber(&mut culprit.path);
        table.of_row(culprit.row).map(|row| culprit.row = row).is_some()
    });
    timing.misses.retain_mut(|miss| {
        table.renumber(&mut miss.path);
        table.of_row(miss.row).map(|row| miss.row = row).is_some()
    });
    timing.hazards.retain_mut(|trouble| match trouble {
        Hazard::Overflow { row, .. } => table.of_row(*row).map(|new| *row = new).is_some(),
        Hazard::Deadlock { rows } => {
            table.renumber(rows);
            !rows.is_empty()
        }
    });
    timing
}

/// The rows by task, and where each went.
struct Table {
    rows: Vec<Row>,
    place: Vec<Option<usize>>,
}

impl Table {
    fn of(fixpoint: &Fixpoint<'_>) -> Self {
        let mut order: Vec<usize> =
            (0..fixpoint.rows.len()).filter(|row| !fixpoint.is_wide[*row]).collect();
        order.sort_by_key(|row| fixpoint.rows[*row].task);
        let mut place = vec![None; fixpoint.rows.len()];
        order.iter().enumerate().for_each(|(new, old)| place[*old] = Some(new));
        let mut table = Self { rows: Vec::new(), place };
        for old in order {
            let mut row = fixpoint.rows[old].clone();
            row.before = table.before(fixpoint, old);
            row.before.sort_unstable_by_key(|(before, passed)| (*before, passed.lo));
            row.before.dedup();
            table.renumber(&mut row.messages);
            table.rows.push(row);
        }
        table
    }

    /// Rows that lead to what is not in the table, or to where the exploration stopped.
    fn open(&self, fixpoint: &Fixpoint<'_>) -> Vec<usize> {
        let rows = fixpoint.rows.iter().zip(&self.place);
        let hidden = rows.filter(|(_, place)| place.is_none()).map(|(row, _)| &row.before);
        let ahead = fixpoint.tasks.iter().flat_map(|task| task.frontier.values());
        let before = hidden.chain(ahead.map(|state| &state.before)).flatten();
        let open: BTreeSet<usize> = before.filter_map(|(row, _)| self.place[*row]).collect();
        open.into_iter().collect()
    }

    /// What leads to a row: rows of the table, also over those that are not in it.
    fn before(&self, fixpoint: &Fixpoint<'_>, row: usize) -> Vec<(usize, Interval)> {
        let arrival = fixpoint.rows[row].arrival;
        let mut found = Vec::new();
        let mut open = fixpoint.rows[row].before.clone();
        let mut seen = BTreeSet::new();
        while let Some((before, passed)) = open.pop() {
            match self.place[before] {
                Some(place) => found.push((place, passed)),
                None if seen.insert(before) => {
                    let further = fixpoint.rows[before].before.iter().map(|(before, _)| {
                        let from = fixpoint.rows[*before].release.lo;
                        let hi = arrival.hi.map(|hi| hi - from);
                        (*before, Interval { lo: Span::ZERO, hi })
                    });
                    open.extend(further);
                }
                None => {}
            }
        }
        found
    }

    fn of_row(&self, row: usize) -> Option<usize> {
        self.place[row]
    }

    fn renumber(&self, rows: &mut Vec<usize>) {
        let renumbered = rows.iter().filter_map(|row| self.of_row(*row));
        *rows = renumbered.collect();
    }
}

impl Fixpoint<'_> {
    /// The path from the last timing point, or the start, to a row, and the row.
    fn segment(&self, from: usize, to: usize) -> Vec<usize> {
        let mut path = if from == to { vec![to] } else { vec![to, from] };
        let mut row = from;
        loop {
            let latest = |(row, _): &&(usize, _)| {
                let release = self.rows[*row].release.hi;
                (release.is_none(), release)
            };
            let Some((before, _)) = self.rows[row].before.iter().max_by_key(latest) else { break };
            if self.rows[*before].task != self.rows[to].task {
                break;
            }
            row = *before;
            path.push(row);
            let kind = &self.graph.tasks[self.rows[row].task].nodes[self.rows[row].node].kind;
            if matches!(kind, NodeKind::Point { .. }) {
                break;
            }
        }
        path.reverse();
        path
    }

    /// The cause with its path. A loop is none if after it nothing happens that others see.
    fn culprit(&self, lost: &Lost) -> Option<Cause> {
        let first = &self.rows[lost.row];
        let round = first.iteration.first();
        let mut path = Vec::new();
        path.extend(first.messages.last());
        let mut parents = BTreeMap::from([(lost.row, None)]);
        let (mut last, mut is_seen) = (lost.row, false);
        for (index, row) in self.rows.iter().enumerate().skip(lost.row + 1) {
            if row.task != first.task || row.release.hi.is_some() {
                continue;
            }
            let from = row.before.iter().find(|(before, _)| parents.contains_key(before));
            let Some((from, _)) = from else { continue };
            let is_loop = lost.why == CauseKind::Loop;
            if !is_loop && row.iteration.first() != round {
                continue;
            }
            parents.insert(index, Some(*from));
            let kind = &self.graph.tasks[row.task].nodes[row.node].kind;
            let is_wide = self.is_wide[index];
            is_seen |= matches!(
                kind,
                NodeKind::Point { .. } | NodeKind::Write { .. } | NodeKind::Read { .. }
            ) && !is_wide;
            if !is_wide {
                last = index;
            }
        }
        if lost.why == CauseKind::Loop && !is_seen {
            return None;
        }
        let mut back = Vec::new();
        let mut at = Some(last);
        while let Some(row) = at {
            back.push(row);
            at = parents[&row];
        }
        path.extend(back.into_iter().rev());
        Some(Cause { kind: lost.why.clone(), row: lost.row, path })
    }
}
