//! Programs in Timed C: read, checked, drawn as graphs, translated. One binary:
//! `cargo test --test program graph::` runs one file's tests.

mod graph;
mod source;
mod timedc;
