//! In which order the nodes of a task are visited: a weak topological order (Bourdoncle 1993), and
//! what it becomes when loops are unrolled.

use onbeat_model::graph::{NodeKind, Task};
use std::collections::BTreeSet;

/// Where a visit stands in the unrolled order: for each loop that the node is in, the outermost
/// first, the position of its head and the round; then the node's own position. The unrolled graph
/// has an edge from one visit to another only if the one's key is less.
pub(super) type Key = Vec<u32>;

const UNREACHABLE: u32 = u32::MAX;

/// The order of a task's nodes.
#[derive(Debug)]
pub(super) struct Order {
    /// By node.
    position: Vec<u32>,
    /// By position.
    nodes: Vec<usize>,
    /// By node: the positions of the heads of the loops that it is in, the outermost first.
    loops: Vec<Vec<u32>>,
    /// By node: when a search comes to it that takes no aborts. The first of a loop is its head,
    /// though an abort may lead into its midst.
    found: Vec<usize>,
    /// By node: whether it is behind an outermost loop that may be left in any round. Its visits
    /// are those of the round in which the loop was left.
    tail: Vec<bool>,
}

/// Where control may go from a node, aborts included.
pub(super) fn targets(task: &Task, node: usize) -> impl Iterator<Item = usize> + '_ {
    let node = &task.nodes[node];
    node.next.iter().copied().chain(node.guard)
}

impl Order {
    /// `open` are branches that registers do not decide.
    pub(super) fn of(task: &Task, open: &BTreeSet<usize>) -> Self {
        let count = task.nodes.len();
        let mut order = Self {
            position: vec![UNREACHABLE; count],
            nodes: Vec::new(),
            loops: vec![Vec::new(); count],
            found: search(task),
            tail: vec![false; count],
        };
        let mut all = components(task, &[0], &vec![true; count]);
        order.join_tails(task, open, &mut all);
        order.arrange_all(task, all, &[]);
        order
    }

    /// Puts in order what can be reached from `starts` within `inside`.
    fn arrange(&mut self, task: &Task, starts: &[usize], inside: &[bool], heads: &[u32]) {
        self.arrange_all(task, components(task, starts, inside), heads);
    }

    fn arrange_all(&mut self, task: &Task, components: Vec<Vec<usize>>, heads: &[u32]) {
        for component in components {
            let Some(head) = component.iter().copied().min_by_key(|n| self.found[*n]) else {
                continue;
            };
            let position = self.nodes.len() as u32;
            self.position[head] = position;
            self.nodes.push(head);
            self.loops[head] = heads.to_vec();
            if component.len() == 1 && targets(task, head).all(|to| to != head) {
                continue;
            }
            let mut heads = heads.to_vec();
            heads.push(position);
            self.loops[head].clone_from(&heads);
            let mut rest = vec![false; task.nodes.len()];
            component.iter().for_each(|node| rest[*node] = *node != head);
            let mut starts: Vec<usize> = component.into_iter().filter(|n| *n != head).collect();
            starts.sort_by_key(|node| self.found[*node]);
            self.arrange(task, &starts, &rest, &heads);
        }
    }

    /// Makes what is behind outermost loops that may be left in any round part of them.
    fn join_tails(
        &mut self,
        task: &Task,
        open: &BTreeSet<usize>,
        components: &mut Vec<Vec<usize>>,
    ) {
        let mut joined = Vec::new();
        for component in components.iter() {
            if component.iter().any(|node| self.tail[*node]) {
                continue;
            }
            let tail = tail(task, component, open, components);
            tail.iter().for_each(|node| self.tail[*node] = true);
            joined.push(component.iter().copied().chain(tail).collect());
        }
        *components = joined;
    }

    /// Whether a node is behind an outermost loop and counted to its rounds.
    pub(super) fn is_tail(&self, node: usize) -> bool {
        self.tail[node]
    }

    /// Whether control cannot go from an outermost loop to what is not counted to its rounds.
    pub(super) fn is_closed(&self, task: &Task, head: u32) -> bool {
        let is_in = |node: usize| self.loops[node].first() == Some(&head);
        (0..task.nodes.len()).filter(|node| is_in(*node)).all(|n| targets(task, n).all(is_in))
    }

    /// The key of a visit.
    pub(super) fn key(&self, node: usize, rounds: &[u32]) -> Key {
        let loops = self.loops[node].iter().zip(rounds);
        let mut key: Key = loops.flat_map(|(head, round)| [*head, *round]).collect();
        key.push(self.position[node]);
        key
    }

    /// The node of a visit.
    pub(super) fn node(&self, key: &Key) -> usize {
        self.nodes[key[key.len() - 1] as usize]
    }

    /// The rounds of the loops that a visit is in.
    pub(super) fn rounds(key: &Key) -> Vec<u32> {
        key.chunks_exact(2).map(|pair| pair[1]).collect()
    }

    /// In how many loops a node is.
    pub(super) fn depth(&self, node: usize) -> usize {
        self.loops[node].len()
    }

    /// Whether a node is the head of the innermost loop that it is in.
    pub(super) fn is_head(&self, node: usize) -> bool {
        self.loops[node].last() == Some(&self.position[node])
    }

    /// The loops that a node is in: the positions of their heads.
    pub(super) fn loops(&self, node: usize) -> &[u32] {
        &self.loops[node]
    }

    /// Whether an edge goes back to the head of a loop.
    pub(super) fn is_back(&self, from: usize, to: usize) -> bool {
        let depth = self.depth(to);
        self.is_head(to) && self.loops[from].get(depth - 1) == self.loops[to].last()
    }

    /// How many loops an edge stays in.
    pub(super) fn common(&self, from: usize, to: usize) -> usize {
        let both = self.loops[from].iter().zip(&self.loops[to]);
        both.take_while(|(a, b)| a == b).count()
    }

    /// The rounds after an edge.
    pub(super) fn follow(&self, from: usize, rounds: &[u32], to: usize) -> Vec<u32> {
        let depth = self.depth(to);
        if self.is_back(from, to) {
            let mut rounds = rounds[..depth].to_vec();
            rounds[depth - 1] += 1;
            return rounds;
        }
        let mut rounds = rounds[..self.common(from, to)].to_vec();
        rounds.resize(depth, 1);
        rounds
    }
}

/// Whether control may leave a loop at a node whatever the registers are.
fn is_open(task: &Task, node: usize, open: &BTreeSet<usize>) -> bool {
    match &task.nodes[node].kind {
        NodeKind::Branch(condition) => {
            open.contains(&node)
                || condition.registers().next().is_none() && condition.value(&[]).is_none()
        }
        _ => true,
    }
}

/// What is behind a loop in which time passes and that may be left in any round: nothing if it can
/// be reached on other ways, if time passes in loops there, or if an abort may lead to it.
fn tail(
    task: &Task,
    component: &[usize],
    open: &BTreeSet<usize>,
    components: &[Vec<usize>],
) -> Vec<usize> {
    let is_in = |node: &usize| component.contains(node);
    let leaves = |node: usize| task.nodes[node].next.iter().any(|to| !is_in(to));
    let passes = |node: &usize| {
        let kind = &task.nodes[*node].kind;
        matches!(kind, NodeKind::Point { .. } | NodeKind::Write { .. } | NodeKind::Read { .. })
    };
    let is_loop = component.len() > 1 || targets(task, component[0]).any(|to| is_in(&to));
    let is_left = component.iter().any(|node| leaves(*node) && is_open(task, *node, open));
    let is_aborted = component.iter().any(|n| task.nodes[*n].guard.is_some_and(|g| !is_in(&g)));
    if !is_loop || !is_left || is_aborted || !component.iter().any(passes) {
        return Vec::new();
    }
    let reached = |starts: Vec<usize>| {
        let (mut reached, mut open) = (BTreeSet::new(), starts);
        while let Some(node) = open.pop() {
            if !is_in(&node) && reached.insert(node) {
                open.extend(targets(task, node));
            }
        }
        reached
    };
    let exits = component.iter().flat_map(|node| task.nodes[*node].next.iter().copied());
    let tail = reached(exits.collect());
    let is_quiet = |node: &usize| {
        matches!(
            task.nodes[*node].kind,
            NodeKind::Any | NodeKind::Branch(_) | NodeKind::Fragment { .. }
        )
    };
    let may_be = |other: &Vec<usize>| {
        let is_loop = other.len() > 1 || targets(task, other[0]).any(|to| to == other[0]);
        !is_loop || !tail.contains(&other[0]) || other.iter().all(is_quiet)
    };
    if !components.iter().all(may_be) || !reached(vec![0]).is_disjoint(&tail) {
        return Vec::new();
    }
    tail.into_iter().collect()
}

/// Numbers the nodes in the order in which a search by depth comes to them; the others last.
fn search(task: &Task) -> Vec<usize> {
    let mut found = vec![usize::MAX; task.nodes.len()];
    let (mut open, mut count) = (vec![0], 0);
    while let Some(node) = open.pop() {
        if found[node] == usize::MAX {
            found[node] = count;
            count += 1;
            open.extend(task.nodes[node].next.iter().rev());
        }
    }
    found
}

/// Where the search for components is in a node.
struct Frame {
    node: usize,
    next: Vec<usize>,
}

/// The strongly connected components that can be reached, in topological order (Tarjan 1972,
/// without recursion).
fn components(task: &Task, starts: &[usize], inside: &[bool]) -> Vec<Vec<usize>> {
    let count = task.nodes.len();
    let (mut number, mut low) = (vec![0_usize; count], vec![0_usize; count]);
    let mut is_open = vec![false; count];
    let (mut counter, mut open, mut found) = (0, Vec::new(), Vec::new());
    for start in starts {
        let mut frames = Vec::new();
        let mut entering = (number[*start] == 0).then_some(*start);
        loop {
            if let Some(node) = entering.take() {
                counter += 1;
                (number[node], low[node]) = (counter, counter);
                open.push(node);
                is_open[node] = true;
                let mut next: Vec<usize> = targets(task, node).filter(|to| inside[*to]).collect();
                next.reverse();
                frames.push(Frame { node, next });
            }
            let Some(frame) = frames.last_mut() else { break };
            let node = frame.node;
            match frame.next.pop() {
                Some(to) if number[to] == 0 => entering = Some(to),
                Some(to) if is_open[to] => low[node] = low[node].min(number[to]),
                Some(_) => {}
                None => {
                    frames.pop();
                    if let Some(above) = frames.last() {
                        low[above.node] = low[above.node].min(low[node]);
                    }
                    if low[node] == number[node] {
                        let at = open.iter().rposition(|n| *n == node).unwrap_or(0);
                        let component = open.split_off(at);
                        component.iter().for_each(|n| is_open[*n] = false);
                        found.push(component);
                    }
                }
            }
        }
    }
    found.reverse();
    found
}
