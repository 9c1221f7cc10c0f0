//! What Onbeat does on Linux: clocks, sockets, shared memory, processes, and the fabric that joins
//! live programs to the network engine. The only crate with system calls, and, beside the C ABI,
//! the only one with `unsafe` code.
#![allow(unsafe_code)]

mod bpf;
pub mod cgroup;
pub mod clock;
pub mod context;
pub mod doctor;
pub mod environment;
pub mod fabric;
pub mod five_tests;
mod fork;
pub mod inspect;
pub mod instrument;
pub mod link;
pub mod machine;
mod mapping;
pub mod netns;
pub mod noise;
pub mod process;
pub mod recorder;
pub mod shared_log;
pub mod timekeeping;
pub mod tune;
pub mod user;
