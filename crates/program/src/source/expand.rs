//! Reading what the preprocessor made of a marked unit.

use super::lexer::{Kind, Piece, lex};
use super::mark::{MARKER, Marked, Span, mark};
use super::output::{Change, OutputLine, lines, token};
use super::unit::Unit;
use super::{Expanded, Group, Pragma, Token};
use onbeat_model::diagnostic::Origin;
use std::collections::HashSet;

/// How often markers that the preprocessor stumbled over are removed.
const ATTEMPTS_MAX: u32 = 16;

/// Markers or macros that cannot be told apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotFollowed {
    /// Near which place of the user's files.
    pub origin: Origin,
}

/// A group as it was read: its number, and tokens with whether a blank stood before them.
#[derive(Debug, Default)]
struct Read {
    /// The marker, and how many tokens had been read at it.
    groups: Vec<(usize, usize)>,
    tokens: Vec<(Kind, String, bool)>,
    /// In groups by their places in `groups`.
    pragmas: Vec<Pragma>,
}

impl Unit {
    /// The unit behind the preprocessor. `preprocess` is `cc -E` of the text that it is given, run
    /// where and as it was for [`Unit::read`]; whether it failed does not matter.
    ///
    /// # Errors
    /// `preprocess`'s, and when it cannot be told which token was made by what.
    pub fn expand<E: From<NotFollowed>>(
        &self,
        preprocess: &mut dyn FnMut(&str) -> Result<String, E>,
    ) -> Result<Expanded, E> {
        let mut joined = HashSet::new();
        let mut attempt = 0;
        loop {
            let marked = mark(self, &joined);
            let read = read(&preprocess(&marked.text)?);
            let Err(group) = self.verify(&read, marked.spans.len()) else {
                return Ok(self.expanded(&marked, read));
            };
            attempt += 1;
            let span = marked.spans.get(group).or(marked.spans.last());
            let origin = span.map_or(Origin::default(), |span| self.origin_of(span));
            if attempt > ATTEMPTS_MAX || !join(&mut joined, &marked.spans, group, attempt) {
                return Err(NotFollowed { origin }.into());
            }
        }
    }

    /// Whether the markers changed nothing: the tokens are those that the user's text makes, and
    /// the markers are in their order. Otherwise, at which of them it went wrong.
    fn verify(&self, read: &Read, count: usize) -> Result<(), usize> {
        let mut last = 0;
        for (at, (marker, _)) in read.groups.iter().enumerate() {
            if *marker >= count || (at > 0 && *marker <= last) {
                return Err((*marker).min(count.saturating_sub(1)));
            }
            last = *marker;
        }
        let is_same = |((kind, text), (read_kind, read, _)): (&(Kind, String), &(_, String, _))| {
            // Names of files and the time of day need not be the same.
            let is_literal = *kind == Kind::Literal && *read_kind == Kind::Literal;
            (is_literal && !read.contains(MARKER)) || text == read
        };
        let wrong = self.tokens.iter().zip(&read.tokens).position(|pair| !is_same(pair));
        let shorter = self.tokens.len().min(read.tokens.len());
        let wrong = wrong.or((self.tokens.len() != read.tokens.len()).then_some(shorter));
        match wrong {
            None => Ok(()),
            Some(token) => {
                let group = read.groups.partition_point(|(_, first)| *first <= token);
                Err(group.checked_sub(1).map_or(0, |group| read.groups[group].0))
            }
        }
    }

    fn origin_of(&self, span: &Span) -> Origin {
        let file = self.file_of(span.inclusion);
        let pieces = &file.pieces[span.pieces.clone()];
        let start = pieces.first().map_or(0, |p| p.range.start);
        let end = pieces.last().map_or(start, |p| p.range.end);
        Origin {
            file: self.inclusions[span.inclusion].file as u16,
            start: start as u32,
            end: end as u32,
        }
    }

    fn expanded(&self, marked: &Marked, read: Read) -> Expanded {
        let mut expanded = Expanded::default();
        // Which group it is now that was read as which; those without tokens are none.
        let mut numbers = Vec::new();
        for (at, (marker, first)) in read.groups.iter().enumerate() {
            numbers.push(expanded.groups.len());
            let end = read.groups.get(at + 1).map_or(read.tokens.len(), |(_, next)| *next);
            if end > *first {
                self.group(&mut expanded, &marked.spans[*marker], &read.tokens, *first..end);
            }
        }
        expanded.pragmas = read.pragmas;
        for pragma in &mut expanded.pragmas {
            pragma.group = numbers[pragma.group];
        }
        expanded
    }

    fn group(
        &self,
        expanded: &mut Expanded,
        span: &Span,
        tokens: &[(Kind, String, bool)],
        range: std::ops::Range<usize>,
    ) {
        let file = self.file_of(span.inclusion);
        let is_token = |piece: &usize| file.pieces[*piece].kind != Kind::Directive;
        let pieces: Vec<usize> = span.pieces.clone().filter(is_token).collect();
        let is_own = pieces.len() == range.len()
            && pieces
                .iter()
                .zip(&tokens[range.clone()])
                .all(|(piece, read)| *token(read.0, &file.spelling(*piece)) == *read.1);
        let whole = self.origin_of(span);
        for (at, number) in range.clone().enumerate() {
            let (_, text, has_blank) = &tokens[number];
            let is_line = at == 0 && file.pieces[span.pieces.start].is_first;
            let has_blank =
                if at == 0 { !file.gap(span.pieces.start).is_empty() } else { *has_blank };
            if expanded.text.is_empty() {
            } else if is_line {
                expanded.text.push('\n');
            } else if has_blank || (at == 0 && would_join(&expanded.text, text)) {
                expanded.text.push(' ');
            }
            let start = expanded.text.len();
            // As verified, but for what differs from one run of the preprocessor to the next.
            expanded.text.push_str(self.tokens.get(number).map_or(text, |(_, text)| text));
            let origin = match is_own {
                true => {
                    let Piece { range, .. } = &file.pieces[pieces[at]];
                    Origin { start: range.start as u32, end: range.end as u32, ..whole }
                }
                false => whole,
            };
            let group = expanded.groups.len();
            let piece = if is_own { pieces[at] } else { span.pieces.start };
            expanded.tokens.push(Token { range: start..expanded.text.len(), origin, group, piece });
        }
        let first = expanded.tokens.len() - range.len();
        expanded.groups.push(Group {
            inclusion: span.inclusion,
            pieces: span.pieces.clone(),
            tokens: first..expanded.tokens.len(),
            is_own,
        });
    }
}

impl Expanded {
    /// Text without macros and headers: it is its own expansion, as file 0.
    pub fn plain(text: &str) -> Self {
        let unit = Unit::plain("", text);
        let spans = mark(&unit, &HashSet::new()).spans;
        let mut expanded = Self { text: text.to_owned(), ..Self::default() };
        for Span { inclusion, pieces } in spans {
            let first = expanded.tokens.len();
            let group = expanded.groups.len();
            for piece in pieces.clone() {
                let range = unit.files[0].pieces[piece].range.clone();
                let origin = Origin { file: 0, start: range.start as u32, end: range.end as u32 };
                expanded.tokens.push(Token { range, origin, group, piece });
            }
            let tokens = first..expanded.tokens.len();
            expanded.groups.push(Group { inclusion, pieces, tokens, is_own: true });
        }
        expanded
    }
}

/// Takes away markers near the one of `group`: more of them with every attempt. Whether there was
/// any.
fn join(joined: &mut HashSet<(usize, usize)>, spans: &[Span], group: usize, attempt: u32) -> bool {
    let near = 1_usize << attempt.min(ATTEMPTS_MAX);
    let first = (group + 1).saturating_sub(near / 2);
    let before = joined.len();
    for span in spans.iter().skip(first).take(near) {
        joined.insert((span.inclusion, span.pieces.start));
    }
    joined.len() > before
}

/// Reads the user's tokens and the markers between them.
fn read(output: &str) -> Read {
    let mut read = Read::default();
    let mut depth = 0_usize;
    for line in lines(output) {
        match line {
            OutputLine::From { change: Change::Enter, .. } => depth += 1,
            OutputLine::From { change: Change::Return, .. } => depth = depth.saturating_sub(1),
            OutputLine::Text(text) if depth == 0 => {
                let mut end = 0;
                for piece in lex(text) {
                    let word = &text[piece.range.clone()];
                    let has_blank = piece.range.start > end || end == 0;
                    end = piece.range.end;
                    match word.strip_prefix(MARKER).and_then(|number| number.parse().ok()) {
                        Some(marker) => read.groups.push((marker, read.tokens.len())),
                        None => {
                            let word = token(piece.kind, word).into_owned();
                            read.tokens.push((piece.kind, word, has_blank));
                        }
                    }
                }
            }
            OutputLine::Pragma(text) if depth == 0 && !read.groups.is_empty() => {
                let (group, token) = (read.groups.len() - 1, read.tokens.len());
                read.pragmas.push(Pragma { group, token, text: text.to_owned() });
            }
            OutputLine::From { .. }
            | OutputLine::Define(_)
            | OutputLine::Text(_)
            | OutputLine::Pragma(_) => {}
        }
    }
    read
}

/// Whether two tokens would be read as another one if nothing stood between them.
pub(super) fn would_join(before: &str, after: &str) -> bool {
    let is_word = super::lexer::is_word;
    let sign = |octet: u8| b"+-<>=&|.#:/%*^!".contains(&octet);
    let (Some(last), Some(first)) = (before.bytes().last(), after.bytes().next()) else {
        return false;
    };
    let both = |is: &dyn Fn(u8) -> bool| is(last) && is(first);
    both(&is_word)
        || both(&sign)
        || (is_word(last) && b"\"'.".contains(&first))
        || (last == b'.' && is_word(first))
}
