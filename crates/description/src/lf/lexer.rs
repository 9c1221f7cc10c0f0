//! Text to tokens. Total: whatever is no token is reported with its place.

use super::codes;
use crate::origin;
use onbeat_model::diagnostic::Diagnostic;
use std::ops::Range;

/// What kind of token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::lf) enum Kind {
    /// A name or a keyword.
    Word,
    /// Digits, perhaps with an exponent: `12`, `5e3`.
    Number,
    /// Text in double quotes, or in three of them.
    Text,
    /// A character in single quotes.
    Character,
    /// `{= … =}` with its delimiters. What is between them is the target language's.
    Code,
    /// Punctuation.
    Mark,
    /// The end of the file.
    End,
}

/// A token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::lf) struct Token {
    pub(in crate::lf) kind: Kind,
    /// First octet.
    pub(in crate::lf) start: usize,
    /// One past the last octet.
    pub(in crate::lf) end: usize,
}

/// A comment that begins with `@`: it may carry what the language has no words for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::lf) struct Comment {
    /// Where its text is, from the `@` on.
    pub(in crate::lf) text: Range<usize>,
    /// The token that follows it.
    pub(in crate::lf) next: usize,
}

/// The tokens of a file.
#[derive(Clone, Debug, Default)]
pub(in crate::lf) struct Tokens {
    /// All of them; the last one is the end of the file.
    pub(in crate::lf) list: Vec<Token>,
    /// Comments that begin with `@`.
    pub(in crate::lf) comments: Vec<Comment>,
}

/// Marks of two characters; all others have one.
const PAIRS: [&str; 4] = ["->", "~>", "::", ".."];
/// Marks of one character.
const MARKS: &str = "{}()[]<>:;,.=+-*/%@\\'";

/// Splits a file into tokens.
///
/// # Errors
/// The first piece that is no token.
pub(in crate::lf) fn lex(text: &str, file: u16) -> Result<Tokens, Box<Diagnostic>> {
    let mut lexer = Lexer { text, at: 0, tokens: Tokens::default() };
    match lexer.all() {
        Ok(()) => Ok(lexer.tokens),
        Err((range, message, help)) => {
            let at = origin(file, range);
            Err(Box::new(Diagnostic::error(codes::SYNTAX, message, at, "here").help(help)))
        }
    }
}

/// Where, what is wrong, what to do.
type Wrong = (Range<usize>, String, &'static str);

struct Lexer<'t> {
    text: &'t str,
    at: usize,
    tokens: Tokens,
}

impl Lexer<'_> {
    fn all(&mut self) -> Result<(), Wrong> {
        while let Some(first) = self.rest().chars().next() {
            if first.is_whitespace() || (self.at == 0 && first == '\u{feff}') {
                self.at += first.len_utf8();
            } else if !self.comment()? {
                self.token(first)?;
            }
        }
        self.push(Kind::End, 0);
        Ok(())
    }

    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn push(&mut self, kind: Kind, octets: usize) {
        let end = self.at + octets;
        self.tokens.list.push(Token { kind, start: self.at, end });
        self.at = end;
    }

    /// Skips a comment; notes what follows an `@` at its beginning.
    fn comment(&mut self) -> Result<bool, Wrong> {
        let rest = self.rest();
        let long = [("/*", "*/"), ("'''", "'''")];
        if let Some((open, close)) = long.into_iter().find(|(open, _)| rest.starts_with(open)) {
            let Some(found) = rest[open.len()..].find(close) else {
                let text = "a comment does not end".to_owned();
                return Err((self.at..self.at + open.len(), text, "end it with `*/` or `'''`"));
            };
            let inner = self.at + open.len()..self.at + open.len() + found;
            self.note(inner.clone());
            self.at = inner.end + close.len();
            return Ok(true);
        }
        let Some(open) = ["//", "#"].into_iter().find(|open| rest.starts_with(open)) else {
            return Ok(false);
        };
        let end = self.at + rest.find(['\n', '\r']).unwrap_or(rest.len());
        self.note(self.at + open.len()..end);
        self.at = end;
        Ok(true)
    }

    fn note(&mut self, inner: Range<usize>) {
        let text = &self.text[inner.clone()];
        let trimmed = text.trim_start();
        if trimmed.starts_with('@') {
            let start = inner.start + text.len() - trimmed.len();
            let text = start..start + trimmed.trim_end().len();
            self.tokens.comments.push(Comment { text, next: self.tokens.list.len() });
        }
    }

    fn token(&mut self, first: char) -> Result<(), Wrong> {
        let rest = self.rest();
        if let Some(code) = rest.strip_prefix("{=") {
            let octets = code_octets(code).map_err(|wrong| self.wrong_code(wrong))?;
            self.push(Kind::Code, octets + 4);
        } else if first.is_ascii_alphabetic() || first == '_' {
            let is_inner = |c: char| c.is_ascii_alphanumeric() || c == '_';
            self.push(Kind::Word, rest.find(|c| !is_inner(c)).unwrap_or(rest.len()));
        } else if first.is_ascii_digit() {
            self.push(Kind::Number, number(rest));
        } else if first == '"' {
            self.quoted()?;
        } else if let Some(octets) = character(rest) {
            self.push(Kind::Character, octets);
        } else if PAIRS.iter().any(|pair| rest.starts_with(pair)) {
            self.push(Kind::Mark, 2);
        } else if MARKS.contains(first) {
            self.push(Kind::Mark, 1);
        } else {
            let end = self.at + first.len_utf8();
            let text = format!("a character that the language does not have: {first:?}");
            let help = "target code stands between `{=` and `=}`";
            return Err((self.at..end, text, help));
        }
        Ok(())
    }

    fn wrong_code(&self, wrong: WrongCode) -> Wrong {
        match wrong {
            WrongCode::Endless => {
                let text = "target code does not end".to_owned();
                (self.at..self.at + 2, text, "end it with `=}`")
            }
            WrongCode::InComment(end) => {
                let end = self.at + 2 + end;
                let text = "the end of target code is in a comment".to_owned();
                let help = "write `=}` on a line of its own: `lfc` skips it with the comment";
                (end - 2..end, text, help)
            }
        }
    }

    /// Text in one or three double quotes.
    fn quoted(&mut self) -> Result<(), Wrong> {
        let rest = self.rest();
        let open = self.at..self.at + 1;
        let wrong = |text: &str| Err((open, text.to_owned(), "end it with a double quote"));
        if let Some(inner) = rest.strip_prefix("\"\"\"") {
            return match inner.find("\"\"\"") {
                Some(found) => {
                    self.push(Kind::Text, found + 6);
                    Ok(())
                }
                None => wrong("a text in three quotes does not end"),
            };
        }
        let mut escaped = false;
        for (at, c) in rest.char_indices().skip(1) {
            match c {
                '\n' | '\r' => break,
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '"' => {
                    self.push(Kind::Text, at + 1);
                    return Ok(());
                }
                _ => {}
            }
        }
        wrong("a text does not end on its line")
    }
}

/// Why target code has no end.
enum WrongCode {
    Endless,
    /// A comment takes what looks like the end; one past it.
    InComment(usize),
}

/// Octets of target code up to its `=}`. Texts, characters and comments may contain `=}`; what they
/// are is the same for all target languages, and an odd quote is none.
fn code_octets(code: &str) -> Result<usize, WrongCode> {
    let mut at = 0;
    let mut is_after_word = false;
    while let Some(first) = code[at..].chars().next() {
        let rest = &code[at..];
        if rest.starts_with("=}") {
            return Ok(at);
        }
        let octets = match first {
            '/' | '#' => code_comment(rest).map_err(|end| WrongCode::InComment(at + end))?,
            'R' if is_after_word => None,
            _ => code_text(rest),
        };
        is_after_word = octets.is_none() && (first.is_ascii_alphanumeric() || first == '_');
        at += octets.unwrap_or(first.len_utf8());
    }
    Err(WrongCode::Endless)
}

/// Octets of a comment at the beginning of target code, if there is one.
///
/// # Errors
/// It seems that the code was to end with the line: one past its `=}`.
fn code_comment(rest: &str) -> Result<Option<usize>, usize> {
    if let Some(inner) = rest.strip_prefix("/*") {
        return Ok(inner.find("*/").map(|found| found + 4));
    }
    if !rest.starts_with("//") && !rest.starts_with('#') {
        return Ok(None);
    }
    let line = &rest[..rest.find(['\n', '\r']).unwrap_or(rest.len())];
    let text = line.trim_end().trim_end_matches(';').trim_end();
    let is_end = text.ends_with("=}") && text.matches("{=").count() < text.matches("=}").count();
    if is_end { Err(text.len()) } else { Ok(Some(line.len())) }
}

/// Octets of a text, or of a character or comment in single quotes, if one begins here and ends.
fn code_text(rest: &str) -> Option<usize> {
    for (open, close) in [("\"\"\"", "\"\"\""), ("'''", "'''"), ("R\"", "\"")] {
        let found = rest.strip_prefix(open).and_then(|inner| inner.find(close));
        if let Some(found) = found {
            return Some(open.len() + found + close.len());
        }
    }
    if rest.starts_with('\'') {
        return character(rest);
    }
    let inner = rest.strip_prefix('"')?;
    let mut escaped = false;
    for (at, c) in inner.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return Some(at + 2),
            '\t' | '\r' | '\n' => return None,
            _ => {}
        }
    }
    None
}

/// Octets of a number at the beginning of the text, with its exponent.
fn number(text: &str) -> usize {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let mantissa = digits(text);
    let Some(rest) = text[mantissa..].strip_prefix(['e', 'E']) else { return mantissa };
    let sign = usize::from(rest.starts_with(['+', '-']));
    match digits(&rest[sign..]) {
        0 => mantissa,
        exponent => mantissa + 1 + sign + exponent,
    }
}

/// Octets of a character in single quotes at the beginning of the text.
fn character(text: &str) -> Option<usize> {
    let mut inner = text.strip_prefix('\'')?.chars();
    let first = inner.next().filter(|c| !matches!(c, '\'' | '\t' | '\r' | '\n'))?;
    let octets = match first {
        '\\' => 1 + inner.next()?.len_utf8(),
        other => other.len_utf8(),
    };
    text[1 + octets..].starts_with('\'').then_some(octets + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(text: &str) -> Vec<&str> {
        let tokens = lex(text, 0).expect("tokens").list;
        tokens.iter().map(|token| &text[token.start..token.end]).collect()
    }

    #[test]
    fn tokens_are_split_as_the_grammar_has_them() {
        assert_eq!(pieces("a->b"), ["a", "->", "b", ""]);
        assert_eq!(
            pieces("a.b~>c::d 1..2"),
            ["a", ".", "b", "~>", "c", "::", "d", "1", "..", "2", ""]
        );
        assert_eq!(pieces("{= {x} \" =} }"), ["{= {x} \" =}", "}", ""]);
        assert_eq!(pieces("5e-3 5e 10ms"), ["5e-3", "5", "e", "10", "ms", ""]);
        assert_eq!(
            pieces(r#""a\"b" 'x' '\n' """q"q""""#),
            [r#""a\"b""#, "'x'", r"'\n'", r#""""q"q""""#, ""]
        );
        assert_eq!(pieces("a // b\n# c\n/* d */ e ''' f ''' g"), ["a", "e", "g", ""]);
    }

    #[test]
    fn code_ends_outside_of_its_texts_and_comments() {
        for code in [
            r#"{= print(f"{x=}") =}"#,
            r#"{= "\" =}" =}"#,
            r#"{= R"(a \ =} )" =}"#,
            "{= \"\"\" \n =} \" \"\"\" =}",
            "{= /* =} \n */ =}",
            "{= ''' =} \n ''' =}",
            "{= // {= a =}\n =}",
            "{= # print(f\"{x=}\")\n =}",
            // Odd quotes are none, and lifetimes of Rust no characters.
            "{= \" =}",
            "{= it's =}",
            "{= '\"' =}",
            "{= &'a str, '\\'' =}",
            "{= /* =}",
            "{= \"\"\" =}",
            "{= HR\" =}",
            "{==}",
        ] {
            let text = format!("{code} x\n\"y\"");
            assert_eq!(pieces(&text), [code, "x", "\"y\"", ""], "{code}");
        }
    }

    #[test]
    fn an_end_that_a_comment_takes_is_reported_and_not_skipped() {
        for text in ["{= a // b =}\n y =}", "{= #include <x>  =} ; \n", "{=// =}"] {
            let wrong = lex(text, 0).expect_err(text);
            let (at, _) = wrong.at.expect("a place");
            assert_eq!(&text[at.start as usize..at.end as usize], "=}", "{text}");
        }
    }

    #[test]
    fn what_does_not_end_is_reported_where_it_begins() {
        for text in ["x {= y", "x \"y\n\"", "x /* y", "x '''", "x \"\"\" y \"\"", "x €"] {
            let wrong = lex(text, 3).expect_err(text);
            let (at, _) = wrong.at.expect("a place");
            assert_eq!((at.file, at.start), (3, 2), "{text}");
        }
    }
}
