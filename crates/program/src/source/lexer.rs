//! Pieces of C text as the preprocessor sees them: tokens and directives, and between them blanks,
//! comments and line ends. Every octet of a text is in one piece or between two; nothing is an
//! error.

use std::borrow::Cow;
use std::ops::Range;

/// What a piece is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// An identifier or a keyword.
    Word,
    /// A preprocessing number.
    Number,
    /// A string or character, with its prefix; without an end it ends with the line.
    Literal,
    /// One character of an operator or anything else.
    Sign,
    /// From the `#` to the end of the line, comments included.
    Directive,
}

/// A token or a directive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) kind: Kind,
    pub(super) range: Range<usize>,
    /// Whether it is the first of its line.
    pub(super) is_first: bool,
}

/// Takes `text` apart.
pub(super) fn lex(text: &str) -> Vec<Piece> {
    let mut lexer = Lexer { text: text.as_bytes(), at: 0 };
    let mut pieces = Vec::new();
    let mut is_first = true;
    loop {
        is_first |= lexer.skip_blanks();
        let start = lexer.at;
        let Some(kind) = lexer.piece(is_first) else { return pieces };
        pieces.push(Piece { kind, range: start..lexer.at, is_first });
        is_first = false;
    }
}

/// A piece's text without the line ends that are spliced into it.
pub(super) fn spelling(text: &str) -> Cow<'_, str> {
    if !text.contains('\\') {
        return Cow::Borrowed(text);
    }
    let mut spelled = String::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        let next = spliced(text.as_bytes(), at);
        if next == at {
            let end = at + text[at..].chars().next().map_or(1, char::len_utf8);
            spelled.push_str(&text[at..end]);
            at = end;
        } else {
            at = next;
        }
    }
    Cow::Owned(spelled)
}

/// Where the text continues behind splices at `at`: a backslash at the end of a line, blanks
/// between the two allowed as compilers do.
pub(super) fn spliced(text: &[u8], mut at: usize) -> usize {
    while text.get(at) == Some(&b'\\') {
        let rest = &text[at + 1..];
        let blanks = rest.iter().take_while(|b| matches!(b, b' ' | b'\t' | b'\r')).count();
        if rest.get(blanks) != Some(&b'\n') {
            break;
        }
        at += blanks + 2;
    }
    at
}

/// Whether an octet can be part of a word.
pub(super) fn is_word(octet: u8) -> bool {
    octet.is_ascii_alphanumeric() || octet == b'_' || octet == b'$' || octet >= 0x80
}

struct Lexer<'a> {
    text: &'a [u8],
    at: usize,
}

impl Lexer<'_> {
    /// The next octet but for splices, 0 at the end, and where the text continues behind it.
    fn peek(&self, from: usize) -> (u8, usize) {
        let at = spliced(self.text, from);
        self.text.get(at).map_or((0, at), |octet| (*octet, at + 1))
    }

    /// Whether nothing but splices is left.
    fn is_end(&self) -> bool {
        spliced(self.text, self.at) >= self.text.len()
    }

    /// Takes the next octet if it is `wanted`.
    fn take(&mut self, wanted: u8) -> bool {
        let (octet, next) = self.peek(self.at);
        let is_it = octet == wanted && !self.is_end();
        if is_it {
            self.at = next;
        }
        is_it
    }

    /// Skips blanks and comments; whether a line ended.
    fn skip_blanks(&mut self) -> bool {
        let mut is_new_line = false;
        loop {
            let start = spliced(self.text, self.at);
            let (octet, next) = self.peek(start);
            self.at = match octet {
                b'\n' => {
                    is_new_line = true;
                    next
                }
                b' ' | b'\t' | b'\r' | 0x0b | 0x0c => next,
                0xef if self.text[start..].starts_with("\u{feff}".as_bytes()) => start + 3,
                b'/' => match self.comment(next) {
                    Some(end) => end,
                    None => return self.stop(start, is_new_line),
                },
                _ => return self.stop(start, is_new_line),
            };
        }
    }

    fn stop(&mut self, at: usize, is_new_line: bool) -> bool {
        self.at = at;
        is_new_line
    }

    /// The end of the comment whose first stroke ends at `from`; nothing if there is none.
    fn comment(&self, from: usize) -> Option<usize> {
        let (octet, mut at) = self.peek(from);
        if octet == b'/' {
            loop {
                let (octet, next) = self.peek(at);
                if octet == b'\n' || spliced(self.text, at) >= self.text.len() {
                    return Some(spliced(self.text, at));
                }
                at = next;
            }
        }
        if octet != b'*' {
            return None;
        }
        let mut before = 0;
        loop {
            let (octet, next) = self.peek(at);
            if spliced(self.text, at) >= self.text.len() || (before == b'*' && octet == b'/') {
                return Some(next);
            }
            (before, at) = (octet, next);
        }
    }

    /// Takes one piece.
    fn piece(&mut self, is_first: bool) -> Option<Kind> {
        let (octet, next) = self.peek(self.at);
        if self.is_end() {
            return None;
        }
        let second = self.peek(next).0;
        self.at = next;
        if is_first && (octet == b'#' || (octet == b'%' && second == b':')) {
            self.directive();
            return Some(Kind::Directive);
        }
        Some(match octet {
            b'"' | b'\'' => self.literal(octet),
            b'0'..=b'9' => self.number(),
            b'.' if second.is_ascii_digit() => self.number(),
            b'\\' if matches!(second, b'u' | b'U') => self.word(octet),
            _ if is_word(octet) => self.word(octet),
            _ => Kind::Sign,
        })
    }

    fn directive(&mut self) {
        loop {
            let end = self.at;
            if self.skip_blanks_of_line() {
                self.at = end;
                return;
            }
            let _ = self.piece(false);
        }
    }

    /// Skips blanks and comments up to the end of the line; whether it was reached.
    fn skip_blanks_of_line(&mut self) -> bool {
        loop {
            let start = spliced(self.text, self.at);
            let (octet, next) = self.peek(start);
            self.at = match octet {
                _ if start >= self.text.len() => return true,
                b'\n' => return true,
                b' ' | b'\t' | b'\r' | 0x0b | 0x0c => next,
                b'/' => match self.comment(next) {
                    Some(end) => end,
                    None => return false,
                },
                _ => return false,
            };
        }
    }

    fn literal(&mut self, quote: u8) -> Kind {
        loop {
            let (octet, next) = self.peek(self.at);
            if octet == b'\n' || self.is_end() {
                return Kind::Literal;
            }
            self.at = next;
            if octet == quote {
                return Kind::Literal;
            }
            if octet == b'\\' && self.peek(next).0 != b'\n' && !self.is_end() {
                self.at = self.peek(next).1;
            }
        }
    }

    fn number(&mut self) -> Kind {
        loop {
            let (octet, next) = self.peek(self.at);
            let second = self.peek(next).0;
            match octet {
                b'e' | b'E' | b'p' | b'P' if matches!(second, b'+' | b'-') => {
                    self.at = self.peek(next).1;
                }
                b'.' => self.at = next,
                b'\'' if is_word(second) => self.at = self.peek(next).1,
                _ if is_word(octet) => self.at = next,
                _ => return Kind::Number,
            }
        }
    }

    /// The rest of a word that begins with `first`, or the literal that it is the prefix of.
    fn word(&mut self, first: u8) -> Kind {
        let mut word = vec![first];
        loop {
            let (octet, next) = self.peek(self.at);
            let is_escape = octet == b'\\' && matches!(self.peek(next).0, b'u' | b'U');
            if !is_word(octet) && !is_escape {
                break;
            }
            word.push(octet);
            self.at = next;
        }
        if matches!(word.as_slice(), b"L" | b"u" | b"U" | b"u8") {
            for quote in [b'"', b'\''] {
                if self.take(quote) {
                    return self.literal(quote);
                }
            }
        }
        Kind::Word
    }
}

/// The words of a directive, without its `#`: name first.
pub(super) fn directive(text: &str) -> Vec<(Kind, Cow<'_, str>)> {
    let text = text.strip_prefix('#').or_else(|| text.strip_prefix("%:")).unwrap_or(text);
    // Text that begins with a sign is no directive.
    let mut pieces = Vec::new();
    let mut lexer = Lexer { text: text.as_bytes(), at: 0 };
    while !lexer.skip_blanks_of_line() {
        let start = lexer.at;
        let Some(kind) = lexer.piece(false) else { break };
        pieces.push((kind, spelling(&text[start..lexer.at])));
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn texts(text: &str) -> Vec<String> {
        lex(text).iter().map(|p| spelling(&text[p.range.clone()]).into_owned()).collect()
    }

    #[test]
    fn comments_strings_and_splices_are_what_c_says() {
        for (text, expected) in [
            ("a/* b */c// d\ne", vec!["a", "c", "e"]),
            ("\"/*\" '\\'' L\"x\\\"y\" u8'z'", vec!["\"/*\"", "'\\''", "L\"x\\\"y\"", "u8'z'"]),
            ("fo\\\no + 1\\ \t\r\n2", vec!["foo", "+", "12"]),
            ("// a \\\n b\nc", vec!["c"]),
            ("/\\\n* a *\\\n/ b", vec!["b"]),
            ("0x1p-3 1e+5 .5f 1'000 1..2", vec!["0x1p-3", "1e+5", ".5f", "1'000", "1..2"]),
            ("don't\nx", vec!["don", "'t", "x"]),
            ("\u{feff}größe \\u00e4x", vec!["größe", "\\u00e4x"]),
            ("a /", vec!["a", "/"]),
            ("\"a\\", vec!["\"a\\"]),
        ] {
            assert_eq!(texts(text), expected, "{text}");
        }
    }

    #[test]
    fn directives_go_to_the_end_of_their_line_and_over_comments_and_splices() {
        let text = "/* a\n*/ #define A /* b\n */ 1 \\\n + 2 // c\nx # y\n%: if 0\r\nz";
        let kinds: Vec<_> = lex(text).into_iter().map(|p| (p.kind, p.is_first)).collect();
        let (d, w, s) = (Kind::Directive, Kind::Word, Kind::Sign);
        assert_eq!(kinds, [(d, true), (w, true), (s, false), (w, false), (d, true), (w, true)]);
        assert_eq!(texts(text)[0], "#define A /* b\n */ 1  + 2");
        let words = directive("#  include/**/<a.h>");
        assert_eq!(words[0], (Kind::Word, "include".into()));
        assert_eq!(words.len(), 6);
    }

    proptest! {
        #[test]
        fn pieces_follow_each_other_and_are_never_empty(
            text in "([a-z0-9#/*\"'\\\\\n\r \t.(),é%:]|/\\*|\\*/|\\\\\n){0,60}"
        ) {
            let mut end = 0;
            for piece in lex(&text) {
                prop_assert!(piece.range.start >= end && piece.range.end > piece.range.start);
                prop_assert!(text.is_char_boundary(piece.range.start));
                prop_assert!(text.is_char_boundary(piece.range.end));
                end = piece.range.end;
            }
            prop_assert!(end <= text.len());
        }
    }
}
