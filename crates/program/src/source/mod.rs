//! C source text before and after the preprocessor, and edits that go from the latter to the
//! former.
//!
//! Analysis needs the program as the compiler sees it: macros expanded, headers read. What is
//! compiled, and what a user reads in diagnostics and debuggers, is the user's own text with as
//! little changed as possible, and no line moved.

use onbeat_model::diagnostic::Origin;
use std::ops::Range;

/// A translation unit after the preprocessor, without the text of system headers, and where every
/// token of it was written.
#[derive(Clone, Debug)]
pub struct Expanded {
    /// The text that is analysed.
    pub text: String,
    tokens: Vec<Token>,
}

/// Where a token of the expanded text comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Token {
    /// In the expanded text.
    range: Range<usize>,
    /// Where it was written: itself, or the use of the macro that made it.
    origin: Origin,
    /// Whether it stands at `origin` itself.
    is_own: bool,
}

/// One change of the expanded text, at the bounds of tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Edit {
    /// Puts text before the token that begins at this octet.
    Before(usize, String),
    /// Puts text behind the token that ends at this octet.
    After(usize, String),
    /// Puts text in the place of whole tokens.
    Replace(Range<usize>, String),
}

impl Expanded {
    /// Text without macros and headers: it is its own expansion, as file 0.
    pub fn plain(text: &str) -> Self {
        Self { text: text.to_owned(), tokens: Vec::new() }
    }

    /// Where a range of the expanded text was written.
    pub fn origin(&self, range: Range<usize>) -> Origin {
        let _ = &self.tokens;
        Origin { file: 0, start: range.start as u32, end: range.end as u32 }
    }
}
