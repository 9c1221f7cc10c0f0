//! What time-flow graphs do in time.

mod build;
mod rules;
