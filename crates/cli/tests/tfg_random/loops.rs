//! The loops of a task's graph, and the rounds in which control comes to a node.

use crate::table::Task;

/// Which loops each node is in, and in which order nodes come.
pub(crate) struct Loops {
    /// By node: the heads, the outermost first.
    heads: Vec<Vec<usize>>,
    /// By node: its place in an order in which control comes to nodes but for ways back in loops,
    /// whose nodes stand together.
    places: Vec<u32>,
}

impl Loops {
    pub(crate) fn of(task: &Task) -> Self {
        let next: Vec<Vec<usize>> = task.nodes.iter().map(|node| node.next.clone()).collect();
        let targets: Vec<Vec<usize>> =
            task.nodes.iter().map(|n| n.next.iter().copied().chain(n.guard).collect()).collect();
        let all = vec![true; targets.len()];
        let mut found = vec![usize::MAX; targets.len()];
        for (order, node) in Search::from(&next, &[0], &all).entered.into_iter().enumerate() {
            found[node] = order;
        }
        let (heads, places) = (vec![Vec::new(); targets.len()], vec![u32::MAX; targets.len()]);
        let mut loops = Self { heads, places };
        loops.divide(&Ways { targets, found }, &[0], &all, &mut 0);
        loops
    }

    /// Finds the loops among some nodes: what can be reached from one of its nodes and leads back.
    fn divide(&mut self, ways: &Ways, starts: &[usize], inside: &[bool], place: &mut u32) {
        let targets = &ways.targets;
        let all = Search::from(targets, starts, inside);
        let reach: Vec<Vec<bool>> = (0..targets.len())
            .map(|node| match inside[node] {
                true => Search::from(targets, &targets[node], inside).seen,
                false => vec![false; targets.len()],
            })
            .collect();
        let mut first: Vec<usize> = Vec::new();
        for node in &all.entered {
            if !first.iter().any(|other| reach[*other][*node] && reach[*node][*other]) {
                first.push(*node);
            }
        }
        for node in all.left.iter().rev().filter(|node| first.contains(node)) {
            let is_in = |n: &usize| n == node || reach[*node][*n] && reach[*n][*node];
            let mut members: Vec<usize> = (0..targets.len()).filter(is_in).collect();
            members.sort_by_key(|n| ways.found[*n]);
            let head = members[0];
            self.places[head] = *place;
            *place += 1;
            if !reach[head][head] {
                continue;
            }
            members.iter().for_each(|node| self.heads[*node].push(head));
            let rest =
                (0..targets.len()).map(|n| n != head && members.contains(&n)).collect::<Vec<_>>();
            self.divide(ways, &members[1..], &rest, place);
        }
    }

    /// Counts nodes behind an outermost loop, of which the table has visits for each round in which
    /// it was left, to this loop.
    pub(crate) fn join(&mut self, task: &Task, behind: &[usize]) {
        let mut joined: Vec<Option<usize>> = vec![None; task.nodes.len()];
        let mut is_changed = true;
        while std::mem::take(&mut is_changed) {
            for (from, node) in task.nodes.iter().enumerate() {
                let is_behind = behind.contains(&from);
                let first = self.heads[from].first().copied().filter(|_| !is_behind);
                let Some(head) = joined[from].or(first) else { continue };
                for to in node.next.iter().copied().chain(node.guard) {
                    if behind.contains(&to) && joined[to].is_none() {
                        joined[to] = Some(head);
                        is_changed = true;
                    }
                }
            }
        }
        for (node, head) in joined.into_iter().enumerate() {
            head.into_iter().for_each(|head| self.heads[node].insert(0, head));
        }
    }

    /// Where a visit stands among all: the places and rounds of its loops' heads, then its own.
    pub(crate) fn key(&self, node: usize, rounds: &[u32]) -> Vec<u32> {
        let loops = self.heads[node].iter().zip(rounds);
        let mut key: Vec<u32> = loops.flat_map(|(head, n)| [self.places[*head], *n]).collect();
        key.push(self.places[node]);
        key
    }

    /// The rounds behind an edge.
    pub(crate) fn follow(&self, from: usize, rounds: &[u32], to: usize) -> Vec<u32> {
        let (here, there) = (&self.heads[from], &self.heads[to]);
        let common = here.iter().zip(there).take_while(|(a, b)| a == b).count();
        let mut next = rounds[..common].to_vec();
        if there.last() == Some(&to) && common == there.len() {
            next[common - 1] += 1;
        }
        next.resize(there.len(), 1);
        next
    }

    /// The heads of the loops that a node is in, the outermost first.
    pub(crate) fn heads(&self, node: usize) -> &[usize] {
        &self.heads[node]
    }

    /// The rounds of the first visit of the task's start.
    pub(crate) fn first(&self) -> Vec<u32> {
        vec![1; self.heads[0].len()]
    }
}

/// Where control may go from each node, and when a search comes to it that takes no aborts: the
/// first of a loop is its head, though an abort may lead into its midst.
struct Ways {
    targets: Vec<Vec<usize>>,
    found: Vec<usize>,
}

/// A search that goes deep first.
struct Search {
    seen: Vec<bool>,
    entered: Vec<usize>,
    left: Vec<usize>,
}

impl Search {
    fn from(targets: &[Vec<usize>], starts: &[usize], inside: &[bool]) -> Self {
        let seen = vec![false; targets.len()];
        let mut search = Self { seen, entered: Vec::new(), left: Vec::new() };
        for start in starts {
            search.enter(targets, *start, inside);
        }
        search
    }

    fn enter(&mut self, targets: &[Vec<usize>], node: usize, inside: &[bool]) {
        if inside[node] && !std::mem::replace(&mut self.seen[node], true) {
            self.entered.push(node);
            for to in &targets[node] {
                self.enter(targets, *to, inside);
            }
            self.left.push(node);
        }
    }
}
