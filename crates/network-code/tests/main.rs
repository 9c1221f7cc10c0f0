//! Network Code: the language, the verifier, and the station that executes against the reference
//! interpreter and what is computed by hand. One binary: `cargo test --test network_code vectors::`
//! runs one file's tests.

mod allocations;
mod assembly;
mod differential;
mod generator;
mod hardware;
mod inputs;
mod pair;
mod planning;
mod programs;
mod texts;
mod topology;
mod vectors;
mod verification;
