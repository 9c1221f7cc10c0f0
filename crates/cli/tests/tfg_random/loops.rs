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
        let targets: Vec<Vec<usize>> =
            task.nodes.iter().map(|n| n.next.iter().copied().chain(n.guard).collect()).collect();
        let count = targets.len();
        let mut loops = Self { heads: vec![Vec::new(); count], places: vec![u32::MAX; count] };
        loops.divide(&targets, &[0], &vec![true; count], &mut 0);
        loops
    }

    /// Finds the loops among some nodes: what can be reached from one of its nodes and leads back.
    /// Its head is where a search from `starts` comes in first.
    fn divide(
        &mut self,
        targets: &[Vec<usize>],
        starts: &[usize],
        inside: &[bool],
        place: &mut u32,
    ) {
        let all = Search::from(targets, starts, inside);
        let reach: Vec<Vec<bool>> = (0..targets.len())
            .map(|node| match inside[node] {
                true => Search::from(targets, &targets[node], inside).seen,
                false => vec![false; targets.len()],
            })
            .collect();
        let mut heads: Vec<usize> = Vec::new();
        for node in &all.entered {
            let is_with = |head: &usize| reach[*head][*node] && reach[*node][*head];
            if !heads.iter().any(is_with) {
                heads.push(*node);
            }
        }
        for head in all.left.iter().rev().filter(|node| heads.contains(node)) {
            self.places[*head] = *place;
            *place += 1;
            if !reach[*head][*head] {
                continue;
            }
            let mut rest: Vec<bool> =
                (0..targets.len()).map(|n| reach[*head][n] && reach[n][*head]).collect();
            for node in (0..targets.len()).filter(|n| rest[*n]) {
                self.heads[node].push(*head);
            }
            rest[*head] = false;
            self.divide(targets, &targets[*head], &rest, place);
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
