//! Where the diagnostics of one description come together.

use onbeat_model::diagnostic::{Diagnostic, Severity};
use onbeat_model::limits;

/// Collects what is wrong, up to a limit.
pub(crate) struct Sink {
    list: Vec<Diagnostic>,
    /// What documents the file that is read.
    pub(crate) document: &'static str,
}

impl Default for Sink {
    /// For a description.
    fn default() -> Self {
        Self::of("docs/description.md")
    }
}

impl Sink {
    /// For a file that `document` documents.
    pub(crate) const fn of(document: &'static str) -> Self {
        Self { list: Vec::new(), document }
    }
    /// Adds one, unless there are so many already that one more is no help.
    pub(crate) fn push(&mut self, diagnostic: Diagnostic) {
        if self.list.len() < limits::DIAGNOSTICS {
            self.list.push(diagnostic);
        }
    }
    /// Whether one more is dropped.
    pub(crate) fn is_full(&self) -> bool {
        self.list.len() >= limits::DIAGNOSTICS
    }
    /// Whether nothing is wrong.
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
    /// Whether something is wrong, and not only a warning.
    pub(crate) fn has_error(&self) -> bool {
        self.list.iter().any(|diagnostic| diagnostic.severity == Severity::Error)
    }
    /// All, in the order of their places.
    pub(crate) fn into_sorted(mut self) -> Vec<Diagnostic> {
        self.list.sort_by_key(|d| d.at.as_ref().map(|(origin, _)| *origin));
        self.list
    }
}
