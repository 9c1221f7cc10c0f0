//! Network Code: programs that say when a station sends and receives, and what a station does with
//! them. `docs/network-code.md` defines language, words and times.
//!
//! After Fischmeister, Sokolsky and Lee ("A Verifiable Language for Programming Communication
//! Schedules", 2007) and the Atacama hardware (Carvajal and Fischmeister 2013, section II). What
//! these leave open is fixed here: operation codes, words, frames and guards are not theirs.
//!
//! - [`instruction`]: the instructions and their words
//! - [`program`]: a station's program; [`check`]: what a loaded one keeps; [`image`]: its file
//! - [`timing`]: what takes how many cycles
//! - [`trace`]: what a station did, and [`counters`]: what it counted
//! - [`station`]: a station that executes its program
//! - [`wire`]: its frames
//! - [`channel`]: messages of channels in its buffers

pub mod channel;
pub mod check;
pub mod counters;
pub mod image;
pub mod instruction;
pub mod program;
pub mod station;
pub mod timing;
pub mod trace;
pub mod wire;
