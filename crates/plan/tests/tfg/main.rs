//! What time-flow graphs do in time.

mod build;
mod interpreter;
mod random;
mod rules;
mod sound;
