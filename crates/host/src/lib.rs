//! What Onbeat does on Linux: clocks, sockets, shared memory, processes, and the fabric that joins
//! live programs to the network engine. Beside it only `onbeat-machine` has system calls, and, with
//! the C ABI, `unsafe` code.
#![allow(unsafe_code)]

// Times of 64 bits are read and written by single atomic operations in shared memory, and eBPF
// programs are made of the host's own words: neither is so elsewhere, and nothing is tested there.
#[cfg(not(all(target_os = "linux", target_pointer_width = "64", target_endian = "little")))]
compile_error!("Onbeat runs on 64-bit little-endian Linux only (README.md, Status)");

mod bpf;
pub mod cgroup;
pub mod clock;
pub mod context;
pub mod environment;
pub mod fabric;
mod fork;
pub mod inspect;
pub mod instrument;
pub mod link;
pub mod machine;
mod mapping;
pub mod netns;
pub mod process;
pub mod recorder;
pub mod regular;
pub mod shared_log;
pub mod user;
