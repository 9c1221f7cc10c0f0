//! Network Code: the station that executes against the reference interpreter, and both against what
//! is computed by hand. One binary: `cargo test --test network_code vectors::` runs one file's
//! tests.

mod allocations;
mod differential;
mod generator;
mod pair;
mod vectors;
