//! Whether one run is better or worse than another of the same system, or cannot be told from it.
//! `docs/compare.md` says what decides, what is assumed and what cannot be seen.
//!
//! ```text
//! messages, samples, repetitions ─→ Subject ─┐
//!                                            ├─ compare ─→ Comparison ─→ JSON
//! messages, samples, repetitions ─→ Subject ─┘
//! ```

mod conclusion;
mod document;
mod evaluate;
mod input;
mod resample;
mod runs;

pub use conclusion::shown_per_mille;
pub use document::{
    Comparison, FORMAT, FigureComparison, LargestMaxima, SeriesComparison, VERSION, Values,
    Verdict, schema,
};
pub use evaluate::compare;
pub use input::{
    Different, Invalid, Kind, Quantity, SERIES_MAX, Series, Subject, VALUES_MAX, messages, samples,
};
