//! Where the diagnostics of one description come together.

use super::limits;
use crate::diagnostic::Diagnostic;

/// Collects what is wrong, up to a limit.
#[derive(Default)]
pub(crate) struct Sink {
    list: Vec<Diagnostic>,
}

impl Sink {
    /// Adds one, unless there are so many already that one more would help nobody.
    pub(crate) fn push(&mut self, diagnostic: Diagnostic) {
        if self.list.len() < limits::DIAGNOSTICS {
            self.list.push(diagnostic);
        }
    }
    /// All, in the order of their places.
    pub(crate) fn into_sorted(mut self) -> Vec<Diagnostic> {
        self.list.sort_by_key(|d| d.at.as_ref().map(|(origin, _)| *origin));
        self.list
    }
}
