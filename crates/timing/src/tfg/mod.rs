//! What time-flow graphs do in time; `docs/time-flow-graphs.md`.

mod assumptions;
mod buffer_space;
mod chain;
mod coincidence;
mod component;
mod compose;
mod findings;
mod fixpoint;
mod loops;
mod messages;
mod order;
mod regime;
mod report;
mod state;
mod statics;
mod system;
mod transfer;
mod unroll;
mod verdict;

pub use chain::chain;
pub use compose::compose;
pub use findings::findings;
pub use report::analyse;
pub use system::system_graph;

use crate::schedule::Interference;
use onbeat_model::graph::Graph;
use onbeat_model::time::Span;
use onbeat_model::timing::{Component, Level, Timing};

/// How far the analysis goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// So many rounds of each outermost loop have rows at least, where they fit.
    pub rounds: u32,
    /// Fewer suffice, down to one, if the next would be after this.
    pub until: Option<Span>,
    /// So many rows tasks that are joined by channels may have together.
    pub rows: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { rounds: 8, until: None, rows: 50_000 }
    }
}

/// When each node of a graph begins and ends. `interference` is what each task may have to wait for
/// on its processor, by task; it may be empty.
pub fn time(graph: &Graph, level: Level, interference: &[Interference], limits: Limits) -> Timing {
    let mut joined = std::collections::BTreeSet::new();
    loop {
        let mut fixpoint = fixpoint::Fixpoint::new(graph, level, interference, limits);
        let mut found = Vec::new();
        let is_done = component::components(&fixpoint, &joined).into_iter().all(|tasks| {
            let open = component::unsettled(&fixpoint, &tasks);
            if open.is_empty() {
                let course = fixpoint.iterate(&tasks);
                found.push(Component { tasks, course });
            }
            joined.extend(&open);
            open.is_empty()
        });
        if is_done {
            return verdict::timing(fixpoint, found);
        }
    }
}
