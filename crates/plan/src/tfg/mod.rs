//! What time-flow graphs do in time; `docs/time-flow-graphs.md`.

mod system;

pub use system::system_graph;
