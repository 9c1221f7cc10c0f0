//! The verifier against systems made by hand, and against executions of random ones.

mod builder;
mod by_hand;
mod mutants;
mod plan;
mod random;
mod size;
