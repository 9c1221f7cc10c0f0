//! What time-flow graphs do in time; `docs/time-flow-graphs.md`.

mod chain;

pub use chain::chain;
