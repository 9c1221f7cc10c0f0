//! Front ends: programs in languages that know time, read, checked and translated. Pure: running
//! the C preprocessor and compiler is the command's work.
//!
//! ```text
//! user's files ──(cc -E -dD)──→ Unit ──mark──→ one text ──(cc -E)──→ Expanded
//! Expanded ──timedc::translate──→ edits, tasks, diagnostics
//! translations' graphs ──graph::link──→ the program's time-flow graph
//! Unit + Expanded + edits ──apply──→ the user's main file, edited in place
//! ```

pub mod graph;
pub mod source;
pub mod timedc;
