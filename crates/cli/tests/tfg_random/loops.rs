//! The loops of a task's graph, and the rounds in which control comes to a node.

use onbeat_measure::timing::TaskEntry;

/// Which loops each node is in.
pub(crate) struct Loops {
    /// By node: the heads, the outermost first.
    heads: Vec<Vec<usize>>,
}

impl Loops {
    pub(crate) fn of(task: &TaskEntry) -> Self {
        let targets: Vec<Vec<usize>> =
            task.nodes.iter().map(|n| n.next.iter().copied().chain(n.guard).collect()).collect();
        let mut loops = Self { heads: vec![Vec::new(); targets.len()] };
        loops.divide(&targets, &[0], &vec![true; targets.len()]);
        loops
    }

    /// Finds the loops among some nodes: what can be reached from one of its nodes and leads back.
    /// Its head is where a search from `starts` comes in first.
    fn divide(&mut self, targets: &[Vec<usize>], starts: &[usize], inside: &[bool]) {
        let order = search(targets, starts, inside);
        let reach: Vec<Vec<bool>> = (0..targets.len())
            .map(|node| {
                let mut found = vec![false; targets.len()];
                if inside[node] {
                    let next: Vec<usize> =
                        targets[node].iter().copied().filter(|t| inside[*t]).collect();
                    search(targets, &next, inside).iter().for_each(|n| found[*n] = true);
                }
                found
            })
            .collect();
        let mut done = vec![false; targets.len()];
        for head in order {
            if done[head] || !reach[head][head] {
                continue;
            }
            let mut rest: Vec<bool> =
                (0..targets.len()).map(|n| reach[head][n] && reach[n][head]).collect();
            for node in (0..targets.len()).filter(|n| rest[*n]) {
                self.heads[node].push(head);
                done[node] = true;
            }
            rest[head] = false;
            let starts: Vec<usize> = targets[head].iter().copied().filter(|t| rest[*t]).collect();
            self.divide(targets, &starts, &rest);
        }
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

    /// The head of the outermost loop that a node is in.
    pub(crate) fn outermost(&self, node: usize) -> Option<usize> {
        self.heads[node].first().copied()
    }

    /// The rounds of the first visit of the task's start.
    pub(crate) fn first(&self) -> Vec<u32> {
        vec![1; self.heads[0].len()]
    }
}

/// What can be reached, in the order of a search that goes deep first.
fn search(targets: &[Vec<usize>], starts: &[usize], inside: &[bool]) -> Vec<usize> {
    let (mut seen, mut found) = (vec![false; targets.len()], Vec::new());
    let mut open: Vec<usize> = starts.iter().rev().copied().collect();
    while let Some(node) = open.pop() {
        if inside[node] && !std::mem::replace(&mut seen[node], true) {
            found.push(node);
            open.extend(targets[node].iter().rev());
        }
    }
    found
}
