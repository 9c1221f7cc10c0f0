//! Network Code before it runs: assembler, disassembler, reference interpreter and verifier; and
//! programs for the channels of a description.
//!
//! ```text
//! System ──planning──→ text ──assembly──→ StationProgram ──→ verifier ──→ findings
//!                                               └──────────→ interpreter ──→ trace
//! ```
//!
//! `onbeat_runtime::network_code` has the instructions, their times and a station that executes
//! them.

pub mod assembly;
pub mod disassembly;
pub mod format;
pub mod hardware;
pub mod interpreter;
pub mod planning;
pub mod topology;
pub mod verification;
