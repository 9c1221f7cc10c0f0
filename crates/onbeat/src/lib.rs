//! What a program of an Onbeat system is linked with, on Linux: clock, channels on interfaces, the
//! program's side of a run's fabric, and what ends record.
#![allow(unsafe_code)]

// Times of 64 bits are read and written by single atomic operations in shared memory, and eBPF
// programs are made of the host's own words: neither is so elsewhere, and nothing is tested there.
#[cfg(not(all(target_os = "linux", target_pointer_width = "64", target_endian = "little")))]
compile_error!("Onbeat runs on 64-bit little-endian Linux only (README.md, Status)");

pub mod bpf;
pub mod clock;
pub mod context;
pub mod environment;
pub mod fabric;
mod fork;
pub mod instrument;
pub mod link;
mod mapping;
pub mod recorder;
pub mod regular;
pub mod shared_log;
