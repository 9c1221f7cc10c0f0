//! Front ends: programs in languages that know time, read, checked and translated. Pure: running
//! the C preprocessor and compiler is the command's work.
//!
//! ```text
//! user's files ──mark──→ marked files ──(cc -E)──→ Expanded ──timedc::translate──→ edits, tasks,
//!                                                                                  diagnostics
//! user's files + Expanded + edits ──apply──→ the user's files, edited in place
//! ```

pub mod source;
pub mod timedc;
