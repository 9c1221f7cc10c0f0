//! C source text before and after the preprocessor, and edits that go from the latter to the
//! former.
//!
//! Analysis needs the program as the compiler sees it: macros expanded, headers read. What is
//! compiled, and what a user reads in diagnostics and debuggers, is the user's own text with as
//! little changed as possible, and no line moved.

mod apply;
mod expand;
mod lexer;
mod mark;
mod output;
mod unit;

pub use apply::apply;
pub use expand::NotFollowed;
pub use unit::{Unit, normal};

use onbeat_model::diagnostic::Origin;
use std::ops::Range;

/// A translation unit after the preprocessor, without the text of system headers, and where every
/// token of it was written.
#[derive(Clone, Debug, Default)]
pub struct Expanded {
    /// The text that is analysed.
    pub text: String,
    tokens: Vec<Token>,
    groups: Vec<Group>,
    pragmas: Vec<Pragma>,
}

/// What an operator `_Pragma` said, or a line `#pragma` behind a group.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Pragma {
    group: usize,
    /// The token that it stands before.
    token: usize,
    text: String,
}

/// A token of the expanded text.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Token {
    range: Range<usize>,
    /// Where it was written: itself, or the use of the macro that made it.
    origin: Origin,
    /// The group that it is in.
    group: usize,
    /// The piece of the file that it is, in a group that is the user's own.
    piece: usize,
}

/// Tokens that are all as the user wrote them, or what one use of a macro made.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Group {
    inclusion: usize,
    /// Of the file.
    pieces: Range<usize>,
    tokens: Range<usize>,
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
    /// Where a range of the expanded text was written: from its first token to its last, or the
    /// first one only if the last is not behind it in the same file.
    pub fn origin(&self, range: Range<usize>) -> Origin {
        let first = self.tokens.partition_point(|token| token.range.end <= range.start);
        let behind = self.tokens.partition_point(|token| token.range.start < range.end);
        let Some(first) = self.tokens.get(first).or(self.tokens.last()) else {
            return Origin::default();
        };
        let last = behind.checked_sub(1).map_or(first, |last| &self.tokens[last]);
        let inclusion = |token: &Token| self.groups[token.group].inclusion;
        if inclusion(first) == inclusion(last) && last.origin.end >= first.origin.end {
            Origin { end: last.origin.end, ..first.origin }
        } else {
            first.origin
        }
    }
}
