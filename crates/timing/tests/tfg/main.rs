//! What time-flow graphs do in time.

mod build;
mod compose;
mod interpreter;
mod meeting;
mod random;
mod rules;
mod sound;
