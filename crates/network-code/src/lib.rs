//! Network Code before it runs: assembler, disassembler, reference interpreter and verifier.
//!
//! ```text
//! text ──assembly──→ StationProgram ──→ verifier ──→ findings
//!                          └──────────→ interpreter ──→ trace
//! ```
//!
//! `onbeat_runtime::network_code` has the instructions, their times and a station that executes
//! them.

pub mod assembly;
pub mod disassembly;
pub mod format;
pub mod interpreter;
pub mod topology;
pub mod verification;
