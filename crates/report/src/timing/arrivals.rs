//! The table of arrivals and releases of one task, as the paper's Table 1: a row for each
//! iteration, columns for its timing points and channel ends.

use super::words::{self, letter};
use onbeat_model::graph::{Interval, NodeKind, Task, TaskNode};
use onbeat_model::timing::{Course, Level, OpenReason, Row, Timing, TimingReport};
use std::collections::{BTreeMap, BTreeSet};

/// The table of one task.
#[derive(Debug)]
pub(super) struct Arrivals {
    /// What is in the columns.
    pub(super) columns: Vec<Column>,
    /// Iterations and their cells.
    pub(super) rows: Vec<(String, Vec<Cell>)>,
    /// How many more rows there are.
    pub(super) left_out: usize,
    /// How it continues, as a sentence.
    pub(super) closed: String,
}

/// The arrivals or releases of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Column {
    /// In the task's nodes.
    pub(super) node: usize,
    /// Whether it is t_R.
    pub(super) is_release: bool,
}

/// A time in the table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Cell {
    /// In milliseconds; empty where control does not come.
    pub(super) text: String,
    /// Whether there is no bound.
    pub(super) is_open: bool,
    /// Whether the deadline may be missed.
    pub(super) is_late: bool,
    /// Whether control comes there in some executions only.
    pub(super) is_uncertain: bool,
}

/// What a node is called in tables: `p6`, `c12`; `c loop.h:12`, `c write`.
pub(super) fn symbol(node: &TaskNode) -> String {
    let Some(letter) = letter(&node.kind) else { return String::new() };
    let space = if words::is_line(node) { "" } else { " " };
    format!("{letter}{space}{}", node.place)
}

/// One visit, or what several of one iteration have in common.
#[derive(Clone, Copy)]
struct Visit {
    arrival: Interval,
    release: Interval,
    is_late: bool,
    is_certain: bool,
}

/// The table of a task up to a round of its outermost loops, of at most so many rows.
pub(super) fn arrivals(
    study: &TimingReport,
    level: Level,
    task: usize,
    most: (u32, usize),
) -> Arrivals {
    let timing = super::timing(study, level);
    let of = &study.graph.tasks[task];
    let visits = visits(timing, task);
    let columns = columns(of, level, &visits);
    let shown = |iteration: &[u32]| iteration.first().is_none_or(|round| *round <= most.0);
    let mut iterations: Vec<&[u32]> = Vec::new();
    for row in timing.rows.iter().filter(|row| row.task == task) {
        let is_in = columns.iter().any(|column| column.node == row.node);
        if is_in && !iterations.contains(&row.iteration.as_slice()) {
            iterations.push(&row.iteration);
        }
    }
    let all = iterations.len();
    iterations.retain(|iteration| shown(iteration));
    iterations.truncate(most.1);
    let cells = |iteration: &[u32]| {
        let cell = |column: &Column| cell(visits.get(&(column.node, iteration)), column.is_release);
        columns.iter().map(cell).collect()
    };
    let rows = iterations.iter().map(|it| (words::iteration(it), cells(it)));
    Arrivals {
        rows: rows.collect(),
        left_out: all - iterations.len(),
        closed: closed(timing, task),
        columns,
    }
}

/// The visits of a task's nodes by node and iteration.
fn visits(timing: &Timing, task: usize) -> BTreeMap<(usize, &[u32]), Visit> {
    let mut visits: BTreeMap<(usize, &[u32]), Visit> = BTreeMap::new();
    let of_task = |(_, row): &(usize, &Row)| row.task == task;
    let late: BTreeSet<usize> = timing.misses.iter().map(|miss| miss.row).collect();
    for (number, row) in timing.rows.iter().enumerate().filter(of_task) {
        let is_late = late.contains(&number);
        let (arrival, release) = (row.arrival, row.release);
        let visit = Visit { arrival, release, is_late, is_certain: row.is_certain };
        let together = |other: &mut Visit| {
            other.arrival = other.arrival.or(arrival);
            other.release = other.release.or(release);
            other.is_late |= is_late;
            other.is_certain |= row.is_certain;
        };
        visits.entry((row.node, &row.iteration)).and_modify(together).or_insert(visit);
    }
    visits
}

/// As in the paper: arrivals of channel ends, releases of timing points and of what may wait. At
/// platform level also arrivals of timing points and code, which has ends there.
fn columns(task: &Task, level: Level, visits: &BTreeMap<(usize, &[u32]), Visit>) -> Vec<Column> {
    let is_platform = level == Level::Platform;
    let mut columns = Vec::new();
    for (node, it) in task.nodes.iter().enumerate() {
        let of_node = || visits.iter().filter(|((at, _), _)| *at == node).map(|(_, visit)| visit);
        if of_node().next().is_none() {
            continue;
        }
        let takes = of_node().any(|visit| visit.arrival != visit.release);
        let (arrival, release) = match it.kind {
            NodeKind::Point { .. } => (is_platform, true),
            NodeKind::Fragment { .. } => (is_platform && takes, is_platform && takes),
            NodeKind::Read { .. } => (true, true),
            NodeKind::Write { .. } => (true, takes),
            _ => (false, false),
        };
        let of = |is_release| Column { node, is_release };
        columns.extend(arrival.then_some(of(false)));
        columns.extend(release.then_some(of(true)));
    }
    columns
}

fn cell(visit: Option<&Visit>, is_release: bool) -> Cell {
    let Some(visit) = visit else { return Cell::default() };
    let time = if is_release { visit.release } else { visit.arrival };
    Cell {
        text: words::interval(time),
        is_open: time.hi.is_none(),
        is_late: visit.is_late && !is_release,
        is_uncertain: !visit.is_certain,
    }
}

/// How a task's times continue after the table, as a sentence.
fn closed(timing: &Timing, task: usize) -> String {
    let rounds = timing.rows.iter().filter(|row| row.task == task);
    let rounds = rounds.filter_map(|row| row.iteration.first()).max().copied();
    let Some(rounds) = rounds else { return String::new() };
    let component = timing.components.iter().find(|one| one.tasks.contains(&task));
    let place = component.and_then(|one| one.tasks.iter().position(|of| *of == task));
    let again = component.zip(place).and_then(|(one, place)| one.course.again(place));
    let Some((from, every, shift)) = again else {
        let why = component.and_then(|one| match one.course {
            Course::Open { why, .. } => Some(why),
            _ => None,
        });
        if why == Some(OpenReason::Still { task }) {
            return format!("No time passes any more from iteration {rounds} on.");
        }
        let mut open = timing.open.iter().map(|row| timing.rows[*row].task);
        return match why.is_some() && open.any(|of| of == task) {
            true => format!("Not found to repeat itself in {rounds} iterations."),
            false => "The task ends.".to_owned(),
        };
    };
    let shift = words::time(shift);
    match every {
        1 => format!("From iteration {from} on: + {shift} each iteration."),
        _ => format!("From iteration {from} on: + {shift} every {every} iterations."),
    }
}

/// What a column is called in a terminal: `t_A(c5)`.
pub(super) fn heading(task: &Task, column: Column) -> String {
    let which = if column.is_release { 'R' } else { 'A' };
    format!("t_{which}({})", symbol(&task.nodes[column.node]))
}
