//! What Onbeat does on Linux: clocks, sockets, shared memory, processes, and the fabric that joins
//! live programs to the network engine. The only crate with system calls, and, beside the C ABI,
//! the only one with `unsafe` code.
#![allow(unsafe_code)]

pub mod clock;
pub mod fabric;
pub mod netns;
pub mod process;
pub mod shared_log;
