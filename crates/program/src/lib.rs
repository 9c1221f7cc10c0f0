//! Front ends: programs in languages that know time, read, checked and translated. Pure: running
//! the C preprocessor and compiler is the command's work.
//!
//! ```text
//! user's files ──(cc -E -dD)──→ Unit ──mark──→ one text ──(cc -E)──→ Expanded
//! Expanded ──timedc::translate──→ edits, tasks, diagnostics
//! Unit + Expanded + edits ──apply──→ the user's main file, edited in place
//! ```

pub mod source;
pub mod timedc;
