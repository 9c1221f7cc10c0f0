//! What `cc -E` writes, line by line.

use super::lexer::{Kind, Piece, directive, lex, spelling};
use std::borrow::Cow;
use std::collections::HashMap;

/// A line of the preprocessor's output.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum OutputLine<'a> {
    /// `# 12 "x.h" 1 3`: what follows is from there. The name is as written, escapes included.
    From { next_line: usize, name: &'a str, change: Change, is_system: bool },
    /// `#define`, as `-dD` lets it through.
    Define(&'a str),
    /// `#pragma`: a line of the text, or made by the operator `_Pragma`.
    Pragma(&'a str),
    /// Tokens.
    Text(&'a str),
}

/// Whether another file begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// It does.
    Enter,
    /// One has ended.
    Return,
    /// Neither.
    None,
}

/// The lines of an output that matter.
pub(super) fn lines(output: &str) -> impl Iterator<Item = OutputLine<'_>> {
    output.lines().filter_map(|line| {
        let Some(rest) = line.strip_prefix('#') else { return Some(OutputLine::Text(line)) };
        if rest.starts_with("define ") {
            return Some(OutputLine::Define(line));
        }
        if let Some(pragma) = rest.strip_prefix("pragma ") {
            return Some(OutputLine::Pragma(pragma));
        }
        let rest = rest.strip_prefix("line").unwrap_or(rest).trim_start();
        let (number, rest) = rest.split_once(' ')?;
        let next_line = number.parse().ok()?;
        let (name, flags) = rest.strip_prefix('"')?.rsplit_once('"')?;
        let has = |flag: &str| flags.split(' ').any(|f| f == flag);
        let change = match () {
            () if has("1") => Change::Enter,
            () if has("2") => Change::Return,
            () => Change::None,
        };
        Some(OutputLine::From { next_line, name, change, is_system: has("3") })
    })
}

/// A name in a line marker without its escapes.
pub(super) fn unescape(name: &str) -> String {
    let mut plain = Vec::with_capacity(name.len());
    let mut octets = name.bytes().peekable();
    while let Some(octet) = octets.next() {
        if octet != b'\\' {
            plain.push(octet);
            continue;
        }
        let mut value = 0_u32;
        let mut digits = 0;
        while let Some(digit @ b'0'..=b'7') = octets.peek().copied().filter(|_| digits < 3) {
            value = value * 8 + u32::from(digit - b'0');
            digits += 1;
            octets.next();
        }
        plain.push(if digits > 0 { value as u8 } else { octets.next().unwrap_or(b'\\') });
    }
    String::from_utf8_lossy(&plain).into_owned()
}

/// A token as the user would have written it: some preprocessors write letters beyond ASCII as
/// `\u` escapes.
pub(super) fn token(kind: Kind, text: &str) -> Cow<'_, str> {
    if kind != Kind::Word || !text.contains('\\') {
        return Cow::Borrowed(text);
    }
    let mut plain = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        plain.push_str(&rest[..at]);
        let digits = if rest[at..].starts_with("\\U") { 8 } else { 4 };
        let end = at + 2 + digits;
        let code = rest.get(at + 2..end).and_then(|code| u32::from_str_radix(code, 16).ok());
        let Some(letter) = code.and_then(char::from_u32) else {
            plain.push_str(&rest[at..]);
            return Cow::Owned(plain);
        };
        plain.push(letter);
        rest = &rest[end..];
    }
    plain.push_str(rest);
    Cow::Owned(plain)
}

/// What must be known of a macro to tell how far a use of it goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Macro {
    /// It takes arguments.
    pub(super) is_function: bool,
    /// Its expansion may end in the name of a macro that takes arguments.
    pub(super) may_go_on: bool,
    /// How many parentheses it leaves open.
    pub(super) open: usize,
    /// It makes numbers that are other ones each time.
    pub(super) counts: bool,
}

/// All names that were ever macros; the words that are none but must be treated so are among them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Macros(HashMap<String, Macro>);

/// Names that the preprocessor replaces without a definition.
const BUILT_IN: [&str; 8] = [
    "__FILE__",
    "__LINE__",
    "__DATE__",
    "__TIME__",
    "__TIMESTAMP__",
    "__INCLUDE_LEVEL__",
    "__BASE_FILE__",
    "__FILE_NAME__",
];

impl Macros {
    /// Only what exists without a definition.
    pub(super) fn built_in() -> Self {
        let mut macros: HashMap<_, _> =
            BUILT_IN.iter().map(|name| ((*name).to_owned(), Macro::default())).collect();
        for operator in ["_Pragma", "__pragma"] {
            let function = Macro { is_function: true, ..Macro::default() };
            macros.insert(operator.to_owned(), function);
        }
        let counter = Macro { counts: true, ..Macro::default() };
        macros.insert("__COUNTER__".to_owned(), counter);
        Self(macros)
    }

    pub(super) fn get(&self, name: &str) -> Option<Macro> {
        self.0.get(name).copied()
    }

    /// Adds a definition; of several of one name, each counts.
    pub(super) fn define(&mut self, line: &str) {
        let text = line.split_once("define ").map_or("", |(_, rest)| rest);
        let pieces = lex(text);
        let Some(name) = pieces.first() else { return };
        let word = spelling(&text[name.range.clone()]).into_owned();
        let of = |at: usize| pieces.get(at).map_or("", |p| &text[p.range.clone()]);
        let is_function = of(1) == "(" && pieces[1].range.start == name.range.end;
        let parameters_end = if is_function {
            1 + (1..).take_while(|at| !matches!(of(*at), ")" | "")).count()
        } else {
            0
        };
        let body = pieces.get(parameters_end + 1..).unwrap_or_default();
        let mut open = 0_usize;
        for piece in body {
            match &text[piece.range.clone()] {
                "(" => open += 1,
                ")" => open = open.saturating_sub(1),
                _ => {}
            }
        }
        let last = body.last().map(|p| (p.kind, &text[p.range.clone()]));
        let counts = |piece: &Piece| self.get(&text[piece.range.clone()]).is_some_and(|m| m.counts);
        let counts = body.iter().any(counts);
        let known = self.0.entry(word).or_default();
        known.is_function |= is_function;
        known.may_go_on |= matches!(last, Some((Kind::Word, _) | (_, ")")));
        known.counts |= counts;
        known.open = known.open.max(open);
    }
}

/// The file that an `#include` of any spelling names in single quotes: where the quotes are in the
/// directive's text.
pub(super) fn single_quoted(text: &str) -> Option<(usize, usize)> {
    let words = directive(text);
    let [(_, name), (Kind::Literal, file)] = words.as_slice() else { return None };
    if name != "include" || !file.starts_with('\'') || !file.ends_with('\'') || file.len() < 3 {
        return None;
    }
    Some((text.find('\'')?, text.rfind('\'')?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_output_are_told_apart() {
        let output = "# 1 \"a \\\"b\\\".h\" 1 3 4\n#define A 1\n#pragma once\nint x;\n\
                      # 7 \"x.c\" 2\n#line 9 \"y.c\"\n#ident \"z\"\n";
        let from = |next_line, name, change, is_system| OutputLine::From {
            next_line,
            name,
            change,
            is_system,
        };
        assert_eq!(
            lines(output).collect::<Vec<_>>(),
            [
                from(1, "a \\\"b\\\".h", Change::Enter, true),
                OutputLine::Define("#define A 1"),
                OutputLine::Pragma("once"),
                OutputLine::Text("int x;"),
                from(7, "x.c", Change::Return, false),
                from(9, "y.c", Change::None, false),
            ]
        );
        assert_eq!(unescape("a \\\"b\\\"\\\\ \\303\\244"), "a \"b\"\\ ä");
        assert_eq!(token(Kind::Word, "gr\\U000000f6\\u00dfe"), "größe");
        assert_eq!(token(Kind::Word, "\\u00"), "\\u00");
    }

    #[test]
    fn definitions_tell_how_far_uses_go() {
        let mut macros = Macros::built_in();
        let mut of = |line: &str, name: &str| {
            macros.define(line);
            let found = macros.get(name).expect("defined");
            (found.is_function, found.may_go_on, found.open)
        };
        assert_eq!(of("#define A 1", "A"), (false, false, 0));
        assert_eq!(of("#define B (x)", "B"), (false, true, 0));
        assert_eq!(of("#define C(x, ...) x \"y\"", "C"), (true, false, 0));
        assert_eq!(of("#define D f(1, (", "D"), (false, false, 2));
        assert_eq!(of("#define E() E()", "E"), (true, true, 0));
        assert_eq!(of("#define F", "F"), (false, false, 0));
    }
}
