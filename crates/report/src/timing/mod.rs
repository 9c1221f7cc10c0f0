//! What the analysis of a time-flow graph says, for people and machines: the graph in the shapes
//! of Austad et al. 2023 as SVG and for Graphviz, a page, a table for a terminal, JSON.
//! `docs/time-flow-graphs.md` has the semantics.

mod arrivals;
mod chains;
mod composition;
mod document;
mod dot;
mod draw;
#[cfg(test)]
mod geometry;
mod layout;
mod page;
mod schedules;
#[cfg(test)]
#[path = "../../tests/common/studies.rs"]
#[allow(dead_code, reason = "the tests of the whole crate use the rest")]
mod studies;
mod swimlane;
mod table;
mod words;

pub use composition::{composed, composition_json};
pub use document::{Document, FORMAT, VERSION, document, schema};
pub use dot::dot;
pub use page::html;
pub use table::table;

use onbeat_model::timing::{Level, Timing, TimingReport};

/// The graph as a picture that stands alone, with the colours of one level: what has no bound,
/// what may be late, and the way on which the bound is lost.
pub fn svg(study: &TimingReport, level: Level) -> String {
    draw::svg(study, level, draw::STYLE)
}

/// What is known at a level.
const fn timing(study: &TimingReport, level: Level) -> &Timing {
    match level {
        Level::Program => &study.program,
        Level::Platform => &study.platform,
    }
}
