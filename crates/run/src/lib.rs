//! The run's side on Linux: processes and what they may do, namespaces, the coordinator that joins
//! live programs to the network engine, and the counters of running programs, read from outside.
//!
//! Programs are linked with the crate `onbeat`, and need nothing of this one.
#![allow(unsafe_code)]

pub mod cgroup;
pub mod coordinator;
pub mod environment;
pub mod inspect;
pub mod machine;
pub mod netns;
pub mod noise;
mod notices;
pub mod process;
mod standing;
pub mod user;
