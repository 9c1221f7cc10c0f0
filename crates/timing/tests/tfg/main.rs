//! What time-flow graphs do in time.

mod build;
mod coincidence;
mod compose;
mod interpreter;
mod random;
mod rules;
mod sound;
