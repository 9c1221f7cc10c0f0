//! Timed C: constructs, control flow, guards, checks, translation (`docs/timed-c.md`).

use crate::source::{Edit, Expanded};
use onbeat_model::diagnostic::{Diagnostic, SourceFile};
use onbeat_model::time::Span;

/// What to make.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Tasks keep their phase unless they say otherwise.
    pub keep_phase: bool,
    /// Which system the C is for.
    pub target: Target,
}

/// Which system the C is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Target {
    /// POSIX threads on Linux: aborts come from a timer's signal.
    #[default]
    Posix,
    /// FreeRTOS: aborts are looked for at every statement and in every round of a loop.
    FreeRtos,
}

/// A translation unit, translated.
#[derive(Clone, Debug, Default)]
pub struct Translation {
    /// What is wrong; with errors, the rest is of no use.
    pub diagnostics: Vec<Diagnostic>,
    /// Changes of the user's text.
    pub edits: Vec<Edit>,
    /// What stands before the first line of the main file, without a line end.
    pub before: String,
    /// What stands behind its last line.
    pub after: String,
    /// What the unit is made of.
    pub tasks: Vec<Task>,
}

/// A task, or `main` if it has timing points.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Its function's name.
    pub name: String,
    /// In the order of the text.
    pub points: Vec<Point>,
}

/// A timing point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Point {
    /// As measurements and traces name it: `task:line`.
    pub name: String,
    /// Soft, firm or hard.
    pub kind: Kind,
    /// From the origin to the release, if it is constant.
    pub period: Option<Span>,
    /// From the origin to the deadline, if it is constant.
    pub deadline: Option<Span>,
}

/// What a missed deadline means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The overshoot is returned.
    Soft,
    /// The segment is aborted.
    Firm,
    /// The error handler runs.
    Hard,
}

/// Translates one unit. `files` are those that `expanded` was made of, the main one first.
pub fn translate(expanded: &Expanded, files: &[SourceFile], options: Options) -> Translation {
    let _ = (expanded, files, options);
    Translation::default()
}
