//! The unit as one text with markers, for the C preprocessor to expand.
//!
//! A marker is a word before the first token of a line and before and behind each use of a macro:
//! tokens between two markers, a *group*, are either all as the user wrote them or what one use
//! made. No marker may come between the preprocessor and its own: none in directives, in a macro's
//! arguments, before an opening parenthesis that could begin them.

use super::lexer::Kind;
use super::unit::{Included, Unit};
use std::collections::HashSet;
use std::fmt::Write;
use std::ops::Range;

/// What markers begin with.
pub(super) const MARKER: &str = "__timedc_at_";

/// Pieces of a file that were marked as one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) inclusion: usize,
    pub(super) pieces: Range<usize>,
}

/// A marked text.
#[derive(Clone, Debug, Default)]
pub(super) struct Marked {
    pub(super) text: String,
    /// By the markers' numbers.
    pub(super) spans: Vec<Span>,
}

/// Marks a unit. Where a span would begin at one of the `joined` pieces of an inclusion, it is a
/// part of the one before.
pub(super) fn mark(unit: &Unit, joined: &HashSet<(usize, usize)>) -> Marked {
    let mut marker = Marker { unit, joined, marked: Marked::default() };
    marker.inclusion(0);
    marker.marked
}

struct Marker<'a> {
    unit: &'a Unit,
    joined: &'a HashSet<(usize, usize)>,
    marked: Marked,
}

impl Marker<'_> {
    fn inclusion(&mut self, inclusion: usize) {
        let file = self.unit.file_of(inclusion);
        let _ = writeln!(self.marked.text, "#line 1 \"{}\"", self.unit.inclusions[inclusion].name);
        let mut at = 0;
        while at < file.pieces.len() {
            if file.pieces[at].kind == Kind::Directive {
                self.piece(inclusion, at);
                at += 1;
                continue;
            }
            let mut end = self.end(inclusion, at);
            while self.joined.contains(&(inclusion, end)) && end < file.pieces.len() {
                end = self.end(inclusion, end);
            }
            self.span(inclusion, at..end);
            at = end;
        }
        self.marked.text.push_str(&blank(file.gap(at)));
    }

    /// Writes a span. One that begins in one of two `#if` and `#else` groups begins in the other
    /// too: only one of them is compiled.
    fn span(&mut self, inclusion: usize, pieces: Range<usize>) {
        let file = self.unit.file_of(inclusion);
        let mut depth = 0_usize;
        let mut begins = true;
        for piece in pieces.clone() {
            if file.pieces[piece].kind == Kind::Directive {
                match condition(&file.spelling(piece)) {
                    Condition::If => depth += 1,
                    Condition::Else => begins |= depth == 0,
                    Condition::End => depth = depth.saturating_sub(1),
                    Condition::None => {}
                }
            } else if begins {
                begins = false;
                let number = self.marked.spans.len();
                self.marked.spans.push(Span { inclusion, pieces: piece..pieces.end });
                self.marked.text.push_str(&blank(file.gap(piece)));
                // A word directly before would run into the marker.
                let _ = write!(self.marked.text, " {MARKER}{number} {}", file.raw(piece));
                continue;
            }
            self.piece(inclusion, piece);
        }
    }

    /// Writes a piece and what stands before it.
    fn piece(&mut self, inclusion: usize, piece: usize) {
        let file = self.unit.file_of(inclusion);
        self.marked.text.push_str(&blank(file.gap(piece)));
        match file.pieces[piece].kind {
            Kind::Directive => match directive_text(self.unit, inclusion, piece) {
                Directive::Text(text) => self.marked.text.push_str(&text),
                Directive::Inclusion(included) => {
                    self.inclusion(included);
                    let back = self.unit.line_behind(inclusion, piece);
                    self.marked.text.push_str(&back);
                }
            },
            _ => self.marked.text.push_str(file.raw(piece)),
        }
    }

    /// One past the last piece of the span that begins at `at`.
    fn end(&self, inclusion: usize, at: usize) -> usize {
        let file = self.unit.file_of(inclusion);
        if file.pieces[at].kind == Kind::Directive {
            return at + 1;
        }
        if self.is_macro(inclusion, at) {
            return self.end_of_use(inclusion, at);
        }
        let ends = |piece: &usize| {
            let it = &file.pieces[*piece];
            it.is_first || it.kind == Kind::Directive || self.is_macro(inclusion, *piece)
        };
        (at + 1..file.pieces.len()).find(ends).unwrap_or(file.pieces.len())
    }

    fn is_macro(&self, inclusion: usize, piece: usize) -> bool {
        let file = self.unit.file_of(inclusion);
        let is_word = file.pieces[piece].kind == Kind::Word;
        is_word && self.unit.macros.get(&file.spelling(piece)).is_some()
    }

    /// One past the last piece of a macro's use: its name, and what may be its arguments, and those
    /// of the macro whose name it makes.
    fn end_of_use(&self, inclusion: usize, name: usize) -> usize {
        let file = self.unit.file_of(inclusion);
        let used = self.unit.macros.get(&file.spelling(name)).unwrap_or_default();
        let mut end = name + 1;
        if used.open > 0 {
            end = self.closed(inclusion, end, used.open).unwrap_or(end);
        }
        let mut may_go_on = used.is_function || used.may_go_on;
        while may_go_on {
            let is_token = |piece: &usize| file.pieces[*piece].kind != Kind::Directive;
            let next = (end..file.pieces.len()).find(is_token);
            let Some(next) = next.filter(|next| file.raw(*next) == "(") else { break };
            let Some(closed) = self.closed(inclusion, next + 1, 1) else { break };
            end = closed;
            may_go_on = used.may_go_on;
        }
        end
    }

    /// One past the piece that closes so many open parentheses. Of `#if` and `#else` groups, each
    /// is counted as if it were the only one.
    fn closed(&self, inclusion: usize, from: usize, open: usize) -> Option<usize> {
        let file = self.unit.file_of(inclusion);
        let mut open = open;
        // How many were open at each #if, and whether it has an #else.
        let mut conditions: Vec<(usize, bool)> = Vec::new();
        for piece in from..file.pieces.len() {
            match file.pieces[piece].kind {
                Kind::Sign if file.raw(piece) == "(" => open += 1,
                Kind::Sign if file.raw(piece) == ")" => {
                    open -= 1;
                    if open == 0 {
                        return Some(piece + 1);
                    }
                }
                Kind::Directive => match condition(&file.spelling(piece)) {
                    Condition::If => conditions.push((open, false)),
                    Condition::Else => match conditions.last_mut() {
                        Some((before, has_else)) => (open, *has_else) = (*before, true),
                        None => return self.closed_behind(inclusion, piece),
                    },
                    // Text in a group that is not compiled, or that is not C at all.
                    Condition::End if conditions.pop().is_none() => return None,
                    Condition::End | Condition::None => {}
                },
                _ => {}
            }
        }
        None
    }

    /// The same where the name stands in the first of two groups, at whose `#else` this is asked:
    /// the arguments continue in both, or behind both.
    fn closed_behind(&self, inclusion: usize, other: usize) -> Option<usize> {
        let file = self.unit.file_of(inclusion);
        let mut depth = 0;
        let end = (other + 1..file.pieces.len()).find(|piece| {
            if file.pieces[*piece].kind == Kind::Directive {
                match condition(&file.spelling(*piece)) {
                    Condition::If => depth += 1,
                    Condition::End if depth == 0 => return true,
                    Condition::End => depth -= 1,
                    Condition::Else | Condition::None => {}
                }
            }
            false
        })?;
        self.closed(inclusion, end + 1, 1)
    }
}

/// What a directive means for the nesting of `#if`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Condition {
    If,
    Else,
    End,
    None,
}

fn condition(text: &str) -> Condition {
    let words = super::lexer::directive(text);
    match words.first().map(|(_, name)| &**name) {
        Some("if" | "ifdef" | "ifndef") => Condition::If,
        Some("else" | "elif" | "elifdef" | "elifndef") => Condition::Else,
        Some("endif") => Condition::End,
        _ => Condition::None,
    }
}

/// What becomes of a directive in a text that has the headers in it.
pub(super) enum Directive {
    Text(String),
    /// The text of this inclusion.
    Inclusion(usize),
}

/// Decides it. A header that was not read the first time, being guarded or in a group that is not
/// compiled, is not read the second time either, when the preprocessor has forgotten its name.
pub(super) fn directive_text(unit: &Unit, inclusion: usize, piece: usize) -> Directive {
    let file = unit.file_of(inclusion);
    let raw = file.raw(piece);
    let line_ends = || Directive::Text("\n".repeat(raw.matches('\n').count()));
    let words = super::lexer::directive(raw);
    let word = |at: usize| words.get(at).map_or("", |(_, word)| &**word);
    match word(0) {
        "include" | "include_next" | "import" => {}
        "pragma" if word(1) == "once" => return line_ends(),
        _ => return Directive::Text(raw.to_owned()),
    }
    match unit.inclusions[inclusion].includes.get(&piece) {
        Some(Included::User(included)) => Directive::Inclusion(*included),
        Some(Included::System(_)) if word(0) == "include" && word(1) == "<" => {
            Directive::Text(raw.to_owned())
        }
        // Found from the file's own place.
        Some(Included::System(name)) => {
            let line_ends = "\\\n".repeat(raw.matches('\n').count());
            Directive::Text(format!("#include {line_ends}\"{name}\""))
        }
        None => line_ends(),
    }
}

/// Blanks and comments without a byte order mark.
fn blank(gap: &str) -> String {
    gap.replace('\u{feff}', "")
}
