//! Execution times of segments from a file.

use super::Places;
use onbeat_model::execution_times::{SegmentEnd, SegmentTimes};
use onbeat_model::graph::{Graph, Interval, NodeKind, Segment, Task};
use onbeat_model::time::Span;

/// Adds the segments of a file to the tasks that have them. What is wrong: the row's line, and a
/// node that the program does not have.
pub fn apply_times(
    graph: &mut Graph,
    places: &Places,
    rows: &[SegmentTimes],
) -> Vec<(usize, String)> {
    let mut problems = Vec::new();
    for row in rows {
        let segment = |from, to| Segment {
            from,
            to,
            execution: Interval::between(row.best, row.worst),
            jitter: Interval::between(Span::ZERO, row.release_jitter),
            abort: Interval::between(Span::ZERO, row.abort),
        };
        for node in [&row.source, &row.destination] {
            if !places.have(node) {
                problems.push((row.line, format!("the program has no {node}")));
            }
        }
        for task in &mut graph.tasks {
            let (from, to) =
                (nodes(task, places, &row.source), nodes(task, places, &row.destination));
            for from in from.into_iter().filter(|n| !matches!(task.nodes[*n].kind, NodeKind::End)) {
                for to in &to {
                    let to = *to;
                    let is_known = |s: &Segment| s.from == from && s.to == to;
                    // The first row that fits holds.
                    if to != 0 && !task.segments.iter().any(is_known) {
                        task.segments.push(segment(from, to));
                    }
                }
            }
        }
    }
    problems
}

impl Places {
    fn have(&self, node: &SegmentEnd) -> bool {
        match node {
            SegmentEnd::Named { task, place } => {
                let is_end = place == "start" || place == "end";
                self.tasks.contains(task) && (is_end || self.points.contains(place))
            }
            SegmentEnd::Number(number) => *number as usize <= self.points.len(),
        }
    }
}

/// The nodes of a task that a row names. All that are started of a function are meant.
fn nodes(task: &Task, places: &Places, node: &SegmentEnd) -> Vec<usize> {
    let function = task.name.split('#').next().unwrap_or(&task.name);
    let place = match node {
        SegmentEnd::Named { task, place } if task == function => place,
        SegmentEnd::Named { .. } => return Vec::new(),
        SegmentEnd::Number(0) => return vec![0],
        SegmentEnd::Number(number) => match places.points.get(*number as usize - 1) {
            Some(place) => place,
            None => return Vec::new(),
        },
    };
    let is_it = |n: &onbeat_model::graph::TaskNode| match n.kind {
        NodeKind::Start => place == "start",
        NodeKind::End => place == "end",
        NodeKind::Point { .. } => n.place == *place,
        _ => false,
    };
    (0..task.nodes.len()).filter(|n| is_it(&task.nodes[*n])).collect()
}
