//! The machine that programs run on: what affects a system's guarantees (`doctor`), the
//! settings that change it (`tune`), its clock (`timekeeping`), load on its network (`noise`),
//! reservations there (`srp`), what it can do (`benchmarks`), and record files of
//! messages (`messages`). Programs need nothing of this.

#![allow(unsafe_code)] // system calls

pub mod benchmarks;
mod coalescing;
pub mod doctor;
pub mod ethtool;
pub mod messages;
pub mod noise;
pub mod srp;
pub mod timekeeping;
pub mod tune;
