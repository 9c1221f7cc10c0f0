//! What time-flow graphs do in time; `docs/time-flow-graphs.md`.

mod chain;
mod findings;
mod unroll;

pub use chain::chain;
pub use findings::findings;
