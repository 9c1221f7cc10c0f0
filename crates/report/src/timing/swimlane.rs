//! One task's control flow: a row for each node, from top to bottom, and columns for what runs
//! beside it. The places are those within the lane.

use onbeat_model::graph::{NodeKind, Task};
use std::collections::{BTreeMap, BTreeSet};

/// The height of the row of a node with a name, and of the others'.
const ROW: [i32; 2] = [54, 30];
/// From one column to the next.
const COLUMN: i32 = 46;
/// From one back edge to the next.
const BACK: i32 = 14;
/// Above the first row, for the task's name.
const HEAD: i32 = 34;
/// From the last column in a row to the label.
const BESIDE: i32 = 28;
/// Half of what a node with a name takes, and half of what the others take.
pub(super) const HALF: [i32; 2] = [18, 6];

/// From one node to another.
#[derive(Clone, Debug)]
pub(super) struct Edge {
    pub(super) from: usize,
    pub(super) to: usize,
    /// The corners on its way; the last is where the arrow's head is.
    pub(super) way: Vec<(i32, i32)>,
}

/// Places of one task's nodes and the edges between them.
#[derive(Debug)]
pub(super) struct Swimlane {
    /// Of each node: the middle of its shape.
    pub(super) nodes: Vec<(i32, i32)>,
    /// Its edges.
    pub(super) edges: Vec<Edge>,
    /// Of each node: where its label begins, beside all that runs through its row.
    pub(super) labels: Vec<i32>,
    /// Where its last row ends.
    pub(super) height: i32,
}

/// Whether a node has a row of the great height.
pub(super) fn is_great(kind: &NodeKind) -> bool {
    super::words::letter(kind).is_some()
}

/// Half of the extent of a node's shape.
pub(super) fn half(kind: &NodeKind) -> i32 {
    HALF[usize::from(!is_great(kind))]
}

/// Lays out a task.
pub(super) fn lane(task: &Task) -> Swimlane {
    let order = order(task);
    let mut row_of = vec![0; task.nodes.len()];
    for (row, node) in order.iter().enumerate() {
        row_of[*node] = row;
    }
    let columns = columns(task, &order, &row_of);
    let backs = backs(task, &row_of);
    let depth = backs.values().map(|depth| depth + 1).max().unwrap_or(0) as i32;
    let x = |column: usize| depth * BACK + 30 + column as i32 * COLUMN;
    let mut nodes = vec![(0, 0); task.nodes.len()];
    let mut height = HEAD;
    for node in &order {
        let row = ROW[usize::from(!is_great(&task.nodes[*node].kind))];
        nodes[*node] = (x(columns.of[*node]), height + row / 2);
        height += row;
    }
    let mut edges = Vec::new();
    for (from, to) in pairs(task) {
        let (a, b) = (nodes[from], nodes[to]);
        let [out, into] = [from, to].map(|node| half(&task.nodes[node].kind));
        let way = match columns.edges.get(&(from, to)) {
            Some(column) => forward(a, b, x(*column), [out, into]),
            None => {
                let side = (depth - backs[&to] as i32) * BACK - 4;
                back(a, b, side, [out, into])
            }
        };
        edges.push(Edge { from, to, way });
    }
    let mut rightmost = columns.of.clone();
    for ((from, to), column) in &columns.edges {
        for node in &order[row_of[*from]..=row_of[*to]] {
            rightmost[*node] = rightmost[*node].max(*column);
        }
    }
    let labels = rightmost.into_iter().map(|column| x(column) + BESIDE).collect();
    Swimlane { nodes, edges, labels, height: height + 8 }
}

/// All edges, each once.
fn pairs(task: &Task) -> BTreeSet<(usize, usize)> {
    let nodes = task.nodes.iter().enumerate();
    nodes.flat_map(|(from, node)| node.next.iter().map(move |to| (from, *to))).collect()
}

/// The nodes such that all edges but those of loops lead down, what comes first in a branch first.
/// What control does not come to stands at the end.
fn order(task: &Task) -> Vec<usize> {
    let mut is_seen = vec![false; task.nodes.len()];
    let mut order = Vec::with_capacity(task.nodes.len());
    for root in (0..task.nodes.len()).rev() {
        // From node 0 last, because the whole is turned round; others only if no edge leads there.
        let is_led_to = root != 0 && task.nodes.iter().any(|node| node.next.contains(&root));
        if !is_led_to {
            visit(task, root, &mut is_seen, &mut order);
        }
    }
    order.reverse();
    let rest = (0..task.nodes.len()).filter(|node| !is_seen[*node]);
    order.extend(rest);
    order
}

/// Adds what is reached from `root`, each node after all that follow it.
fn visit(task: &Task, root: usize, is_seen: &mut [bool], order: &mut Vec<usize>) {
    if std::mem::replace(&mut is_seen[root], true) {
        return;
    }
    // Not by recursion: a task may have many nodes in a row.
    let mut open = vec![(root, task.nodes[root].next.len())];
    while let Some((node, left)) = open.last_mut() {
        if *left == 0 {
            order.push(*node);
            open.pop();
            continue;
        }
        *left -= 1;
        let next = task.nodes[*node].next[*left];
        if !std::mem::replace(&mut is_seen[next], true) {
            open.push((next, task.nodes[next].next.len()));
        }
    }
}

/// The columns of nodes and of the edges that lead down.
struct Columns {
    of: Vec<usize>,
    edges: BTreeMap<(usize, usize), usize>,
}

/// An edge keeps a column to itself, or shares it with others to the same node, until it is there.
fn columns(task: &Task, order: &[usize], row_of: &[usize]) -> Columns {
    let mut taken: Vec<Option<usize>> = Vec::new();
    let mut of = vec![0; task.nodes.len()];
    let mut edges = BTreeMap::new();
    for node in order {
        let here = (0..taken.len()).find(|column| taken[*column] == Some(*node));
        for column in taken.iter_mut().filter(|column| **column == Some(*node)) {
            *column = None;
        }
        let own = here.unwrap_or_else(|| free(&mut taken));
        of[*node] = own;
        for next in &task.nodes[*node].next {
            if row_of[*next] <= row_of[*node] || edges.contains_key(&(*node, *next)) {
                continue;
            }
            let shared = (0..taken.len()).find(|column| taken[*column] == Some(*next));
            let column = match shared {
                Some(shared) if shared < own || taken[own].is_some() => shared,
                _ if taken[own].is_none() => own,
                _ => free(&mut taken),
            };
            taken[column] = Some(*next);
            edges.insert((*node, *next), column);
        }
    }
    Columns { of, edges }
}

/// The first column that nothing is in.
fn free(taken: &mut Vec<Option<usize>>) -> usize {
    taken.iter().position(Option::is_none).unwrap_or_else(|| {
        taken.push(None);
        taken.len() - 1
    })
}

/// How far out the edges back to each head of a loop run: those of inner loops further in.
fn backs(task: &Task, row_of: &[usize]) -> BTreeMap<usize, usize> {
    let mut last: BTreeMap<usize, usize> = BTreeMap::new();
    for (from, to) in pairs(task).into_iter().filter(|(from, to)| row_of[*to] <= row_of[*from]) {
        let row = last.entry(to).or_default();
        *row = row_of[from].max(*row);
    }
    let mut loops: Vec<_> = last.into_iter().map(|(to, last)| (row_of[to], last, to)).collect();
    loops.sort_by_key(|(first, last, _)| (last - first, *first));
    let mut depths: BTreeMap<usize, usize> = BTreeMap::new();
    for (at, (first, last, to)) in loops.iter().enumerate() {
        let beside = loops[..at].iter().filter(|(a, b, _)| a <= last && first <= b);
        let taken: BTreeSet<_> = beside.map(|(.., to)| depths[to]).collect();
        let depth = (0..).find(|depth| !taken.contains(depth)).unwrap_or_default();
        depths.insert(*to, depth);
    }
    depths
}

/// The corners of an edge down, in a column at `x`.
fn forward(a: (i32, i32), b: (i32, i32), x: i32, [out, into]: [i32; 2]) -> Vec<(i32, i32)> {
    let mut way = match x == a.0 {
        true => vec![(a.0, a.1 + out)],
        false => vec![(a.0 + out * (x - a.0).signum(), a.1), (x, a.1)],
    };
    match x == b.0 {
        true => way.push((x, b.1 - into)),
        false => way.extend([(x, b.1), (b.0 + into * (x - b.0).signum(), b.1)]),
    }
    way
}

/// The corners of an edge back up, at the left side.
fn back(a: (i32, i32), b: (i32, i32), x: i32, [out, into]: [i32; 2]) -> Vec<(i32, i32)> {
    // Of a node that leads to itself the two ends stand apart.
    let apart = if a == b { into / 2 } else { 0 };
    vec![(a.0 - out, a.1 + apart), (x, a.1 + apart), (x, b.1 - apart), (b.0 - into, b.1 - apart)]
}
