//! What is wrong with a text, as it is found.

use super::lexer::{Span, origin, shorten};
use onbeat_model::codes::network_code as codes;
use onbeat_model::diagnostic::{Code, Diagnostic, Severity};
use onbeat_model::name::did_you_mean;

/// Errors and warnings that are kept; of more it is said that there are.
pub(crate) const FINDINGS_MAX: usize = 1_000;

/// Unknown names for which the meant one is searched: it takes time for each known name.
const SUGGESTIONS_MAX: usize = 32;

/// All findings, in the order in which they were found.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    all: Vec<Diagnostic>,
    more: bool,
    suggestions: usize,
}

impl Findings {
    /// One more.
    pub(crate) fn push(&mut self, finding: Diagnostic) {
        if self.all.len() < FINDINGS_MAX {
            self.all.push(finding);
            return;
        }
        // Warnings are found last, so no error is left out behind them.
        if !self.more {
            self.more = true;
            let mut last = finding;
            last.code = codes::TOO_MANY_ERRORS;
            last.message = format!("the text has more than {FINDINGS_MAX} errors and warnings");
            last.related.clear();
            self.all.push(last.help("correct the first ones"));
        }
    }

    /// An error at a place.
    pub(crate) fn error(&mut self, code: Code, message: String, at: &Span, help: &str) {
        self.push(Diagnostic::error(code, message, origin(at), "here").help(help));
    }

    /// A warning at a place.
    pub(crate) fn warning(&mut self, code: Code, message: String, at: &Span, help: &str) {
        self.push(Diagnostic::error(code, message, origin(at), "here").help(help).warning());
    }

    /// Something that is there twice.
    pub(crate) fn duplicate(&mut self, code: Code, message: String, at: &Span, first: &Span) {
        let finding = Diagnostic::error(code, message, origin(at), "the second one");
        let finding = finding.related(origin(first), "the first one");
        self.push(finding.help("remove one, or give it another name or number"));
    }

    /// A loop, with the instruction that it continues with.
    pub(crate) fn loops(&mut self, message: String, at: &Span, first: &Span, help: &str) {
        let finding = Diagnostic::error(codes::ENDLESS, message, origin(at), "continues above");
        self.push(finding.related(origin(first), "here").help(help));
    }

    /// A name that there is not, with the known one that was meant, or what to do.
    pub(crate) fn unknown<'a>(
        &mut self,
        (code, what): (Code, &str),
        name: &str,
        at: &Span,
        known: impl Iterator<Item = &'a str>,
        otherwise: &str,
    ) {
        let is_searched = self.suggestions < SUGGESTIONS_MAX;
        self.suggestions += 1;
        let help = match did_you_mean(name, known).filter(|_| is_searched) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => otherwise.to_owned(),
        };
        self.error(code, format!("no {what} is called `{}`", shorten(name)), at, &help);
    }

    /// Whether anything is an error.
    pub(crate) fn has_errors(&self) -> bool {
        self.all.iter().any(|finding| finding.severity == Severity::Error)
    }

    /// All, in the order of the text; what has no place is first.
    pub(crate) fn sorted(mut self) -> Vec<Diagnostic> {
        self.all.sort_by_key(|finding| finding.at.as_ref().map(|(at, _)| at.start));
        self.all
    }
}
