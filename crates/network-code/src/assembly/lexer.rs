//! The words, numbers and signs of a program's text, line by line. Nothing spans lines.

use super::findings::Findings;
use onbeat_model::codes::network_code as codes;
use onbeat_model::diagnostic::{Diagnostic, Origin};
use std::ops::Range;

/// Words, numbers and signs of one statement.
pub(crate) const LEXEMES_MAX: usize = 256;

/// Where in the text something is.
pub(crate) type Span = Range<u32>;

/// The place of a span in the only file.
pub(crate) fn origin(span: &Span) -> Origin {
    Origin { file: 0, start: span.start, end: span.end }
}

/// A word, number or sign.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lexeme {
    /// What it is.
    pub(crate) kind: LexemeKind,
    /// Where it is.
    pub(crate) span: Span,
}

/// What a part of a statement is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LexemeKind {
    /// Letters, digits and `_`, no digit first: a name or a word of the language.
    Word,
    /// A number, with its value.
    Number(i64),
    /// A text in quotes.
    Text,
    /// One of `: , ( ) [ ] = + - * /`.
    Sign(u8),
    /// How words are compared.
    Comparison(WordComparison),
    /// What has been said to be wrong.
    Wrong,
}

/// An operator of a guard: `==`, `<` and so on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WordComparison {
    /// Without what makes it unsigned.
    pub(crate) order: Order,
    /// With a `u` behind.
    pub(crate) is_unsigned: bool,
}

/// What a comparison asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// `==`
    Equal,
    /// `!=`
    Unequal,
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `>`
    Greater,
    /// `>=`
    AtLeast,
}

/// Longer ones first.
const ORDERS: [(&str, Order); 6] = [
    ("==", Order::Equal),
    ("!=", Order::Unequal),
    ("<=", Order::AtMost),
    (">=", Order::AtLeast),
    ("<", Order::Less),
    (">", Order::Greater),
];

/// One line of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TextLine {
    /// What is before a comment.
    pub(crate) lexemes: Vec<Lexeme>,
    /// The comment, with its `#`.
    pub(crate) comment: Option<Span>,
    /// Where the line ends, without its end of line.
    pub(crate) end: u32,
}

impl TextLine {
    /// Whether nothing of it could be read.
    pub(crate) fn is_wrong(&self) -> bool {
        self.lexemes.iter().any(|lexeme| lexeme.kind == LexemeKind::Wrong)
    }
}

/// The lines of a text, with what is wrong in them.
pub(crate) fn lines(text: &str, findings: &mut Findings) -> Vec<TextLine> {
    let mut start = 0;
    let mut lines = Vec::new();
    for line in text.split('\n') {
        lines.push(Lexer { line, start, at: 0, findings }.line());
        start += line.len() + 1;
    }
    lines
}

struct Lexer<'t, 'f> {
    line: &'t str,
    /// Of the line in the text.
    start: usize,
    /// In the line.
    at: usize,
    findings: &'f mut Findings,
}

impl Lexer<'_, '_> {
    fn line(mut self) -> TextLine {
        let mut lexemes = Vec::new();
        let mut comment = None;
        let end = self.line.trim_end_matches('\r').len();
        while let Some(letter) = self.line[self.at..end].chars().next() {
            let from = self.at;
            if letter == '#' {
                comment = Some(self.span(from, end));
                break;
            }
            if letter == ' ' || letter == '\t' {
                self.at += 1;
                continue;
            }
            let kind = self.next(letter, end);
            lexemes.push(Lexeme { kind, span: self.span(from, self.at) });
        }
        if let [.., last] = &lexemes[..]
            && lexemes.len() > LEXEMES_MAX
        {
            let span = lexemes[0].span.start..last.span.end;
            let wrong = format!("a statement has {} words and signs", lexemes.len());
            let found = Diagnostic::error(codes::STATEMENT_LENGTH, wrong, origin(&span), "here");
            let help = format!("{LEXEMES_MAX} are allowed: name parts of expressions by `const`");
            self.findings.push(found.help(help));
            lexemes.truncate(LEXEMES_MAX);
            lexemes[0].kind = LexemeKind::Wrong;
        }
        TextLine { lexemes, comment, end: self.span(end, end).end }
    }

    /// The next part, which begins with `letter`.
    fn next(&mut self, letter: char, end: usize) -> LexemeKind {
        let from = self.at;
        let rest = &self.line[from..end];
        if letter.is_ascii_digit() {
            return self.number(rest);
        }
        if is_of_word(letter) {
            self.at += length_of_word(rest);
            return LexemeKind::Word;
        }
        if letter == '"' {
            return self.text(rest);
        }
        for (sign, order) in ORDERS {
            let Some(behind) = rest.strip_prefix(sign) else { continue };
            let is_unsigned = behind.starts_with('u') && length_of_word(behind) == 1;
            self.at += sign.len() + usize::from(is_unsigned);
            return LexemeKind::Comparison(WordComparison { order, is_unsigned });
        }
        self.at += letter.len_utf8();
        if ":,()[]=+-*/".contains(letter) {
            return LexemeKind::Sign(letter as u8);
        }
        let shown = letter.escape_debug();
        let help = "names have letters, digits and `_`; comments begin with `#`";
        self.wrong(codes::CHARACTER, format!("`{shown}` is in no statement"), from, help)
    }

    fn number(&mut self, rest: &str) -> LexemeKind {
        let from = self.at;
        let length = length_of_word(rest);
        self.at += length;
        let word = &rest[..length];
        if let Some(value) = value_of(word) {
            return LexemeKind::Number(value);
        }
        let digits = word.bytes().take_while(u8::is_ascii_digit).count();
        let help = match &word[digits..] {
            unit @ ("ns" | "us" | "ms" | "s" | "cycles") => {
                format!("write `{} {unit}`", &word[..digits])
            }
            _ => "numbers are decimal, or hexadecimal with `0x`, and below 2^63".to_owned(),
        };
        self.wrong(codes::NUMBER, format!("`{}` is no number", shorten(word)), from, &help)
    }

    fn text(&mut self, rest: &str) -> LexemeKind {
        let from = self.at;
        let Some(length) = rest[1..].find('"') else {
            self.at += rest.len();
            let help = "close it with `\"` on the same line";
            return self.wrong(codes::TEXT, "a text has no end".to_owned(), from, help);
        };
        self.at += length + 2;
        LexemeKind::Text
    }

    fn wrong(
        &mut self,
        code: onbeat_model::diagnostic::Code,
        message: String,
        from: usize,
        help: &str,
    ) -> LexemeKind {
        let at = origin(&self.span(from, self.at));
        self.findings.push(Diagnostic::error(code, message, at, "here").help(help));
        LexemeKind::Wrong
    }

    fn span(&self, from: usize, to: usize) -> Span {
        // A text has fewer octets than 2^32: it is of limited size.
        (self.start + from) as u32..(self.start + to) as u32
    }
}

fn is_of_word(letter: char) -> bool {
    letter == '_' || letter.is_ascii_alphanumeric()
}

/// The octets of the word that a text begins with.
fn length_of_word(text: &str) -> usize {
    text.find(|letter| !is_of_word(letter)).unwrap_or(text.len())
}

/// The value of a number, if it is one: `_` is between digits.
fn value_of(word: &str) -> Option<i64> {
    let (digits, radix) = match word.strip_prefix("0x").or(word.strip_prefix("0X")) {
        Some(digits) => (digits, 16),
        None => (word, 10),
    };
    let is_grouped = digits.split('_').all(|group| !group.is_empty());
    if !is_grouped {
        return None;
    }
    i64::from_str_radix(&digits.replace('_', ""), radix).ok()
}

/// The beginning of a word, as messages show it.
pub(crate) fn shorten(word: &str) -> String {
    const SHOWN: usize = 40;
    match word.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}…", &word[..at]),
        None => word.to_owned(),
    }
}
