//! What time-flow graphs do in time; `docs/time-flow-graphs.md`.

mod assumptions;
mod chain;
mod explore;
mod findings;
mod loops;
mod meeting;
mod messages;
mod order;
mod pattern;
mod room;
mod shape;
mod state;
mod step;
mod study;
mod system;
mod unroll;
mod verdict;

pub use chain::chain;
pub use findings::findings;
pub use study::study;
pub use system::system_graph;

use crate::schedule::Interference;
use onbeat_model::graph::Graph;
use onbeat_model::timing::{Level, Timing};

/// How far the analysis goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// So many rounds of each outermost loop have rows at least, where they fit.
    pub rounds: u32,
    /// So many rows tasks that are joined by channels may have together.
    pub rows: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { rounds: 8, rows: 50_000 }
    }
}

/// When each node of a graph begins and ends. `interference` is what each task may have to wait for
/// on its processor, by task; it may be empty.
pub fn time(graph: &Graph, level: Level, interference: &[Interference], limits: Limits) -> Timing {
    let mut explorer = explore::Explorer::new(graph, level, interference, limits);
    let (mut found, mut is_complete) = (Vec::new(), true);
    for tasks in explorer.components() {
        let one = explorer.explore(&tasks);
        let is_endless = tasks.iter().any(|task| explorer.front(*task).is_some());
        is_complete &= one.is_some() || !is_endless;
        found.extend(one);
    }
    let pattern = is_complete.then(|| pattern::together(graph.tasks.len(), &found)).flatten();
    verdict::timing(explorer, pattern)
}
