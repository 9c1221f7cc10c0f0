//! The verifier against systems made by hand, and against executions of random ones.

mod builder;
mod by_hand;
