//! What of the C preprocessor a manifest needs: comments, conditional groups and object-like
//! macros. Everything that it takes out becomes spaces, so that every place stays what it is.

use crate::{codes, origin};
use onbeat_model::diagnostic::Diagnostic;
use std::collections::BTreeMap;

/// C text without comments, directives and groups that are left out.
pub(super) struct Source {
    /// As long as the original, with the same lines.
    pub(super) text: String,
    /// Object-like macros and what they stand for.
    pub(super) macros: BTreeMap<String, String>,
    /// The line of the first `#pragma pack`, which changes layouts.
    pub(super) packing: Option<usize>,
}

/// One open `#if`: whether its text counts, and whether a branch of it has counted already.
struct Group {
    active: bool,
    taken: bool,
}

struct State<'a> {
    file: u16,
    macros: BTreeMap<String, String>,
    groups: Vec<Group>,
    diagnostics: &'a mut Vec<Diagnostic>,
}

pub(super) fn preprocess(text: &str, file: u16, diagnostics: &mut Vec<Diagnostic>) -> Source {
    let mut octets = text.as_bytes().to_vec();
    blank_comments(&mut octets);
    let mut state = State { file, macros: BTreeMap::new(), groups: Vec::new(), diagnostics };
    let (mut start, mut packing) = (0, None);
    while start < octets.len() {
        let end = logical_line_end(&octets, start);
        let line = String::from_utf8_lossy(&octets[start..end]).into_owned();
        let trimmed = line.trim_start();
        if let Some(directive) = trimmed.strip_prefix('#') {
            if packing.is_none() && state.active() && is_packing(directive) {
                packing = Some(1 + octets[..start].iter().filter(|b| **b == b'\n').count());
            }
            state.directive(&directive.replace("\\\r\n", " ").replace("\\\n", " "), start..end);
            blank(&mut octets[start..end]);
        } else if !state.active() {
            blank(&mut octets[start..end]);
        }
        start = end;
    }
    // Only whole characters were replaced, so this changes nothing.
    let text = String::from_utf8_lossy(&octets).into_owned();
    let operator = text.find("_Pragma").map(|at| 1 + text[..at].matches('\n').count());
    let packing = packing.or(operator);
    Source { text, macros: state.macros, packing }
}

fn is_packing(directive: &str) -> bool {
    let words = directive.trim_start().strip_prefix("pragma").map(str::trim_start);
    words.is_some_and(|words| words.starts_with("pack"))
}

/// One past the line feed that ends the line; a backslash before it joins the next line.
fn logical_line_end(octets: &[u8], start: usize) -> usize {
    let mut at = start;
    while let Some(length) = octets[at..].iter().position(|b| *b == b'\n') {
        let line = &octets[at..at + length];
        at += length + 1;
        if !line.strip_suffix(b"\r").unwrap_or(line).ends_with(b"\\") {
            return at;
        }
    }
    octets.len()
}

fn blank(octets: &mut [u8]) {
    octets.iter_mut().filter(|b| **b != b'\n').for_each(|b| *b = b' ');
}

/// Replaces comments by spaces; knows strings and character constants.
fn blank_comments(octets: &mut [u8]) {
    let mut at = 0;
    while at < octets.len() {
        let rest = &octets[at..];
        let length = if rest.starts_with(b"//") {
            rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len())
        } else if rest.starts_with(b"/*") {
            let close = rest[2..].windows(2).position(|w| w == b"*/");
            close.map_or(rest.len(), |n| n + 4)
        } else {
            at += match rest[0] {
                quote @ (b'"' | b'\'') => quoted_length(rest, quote),
                _ => 1,
            };
            continue;
        };
        blank(&mut octets[at..at + length]);
        at += length;
    }
}

/// The octets up to and with the closing quote, or the end of the line if there is none.
fn quoted_length(rest: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < rest.len() && rest[at] != b'\n' {
        match rest[at] {
            b'\\' => at += 2,
            b if b == quote => return at + 1,
            _ => at += 1,
        }
    }
    at.min(rest.len())
}

impl State<'_> {
    fn active(&self) -> bool {
        self.groups.iter().all(|g| g.active)
    }

    fn directive(&mut self, text: &str, range: std::ops::Range<usize>) {
        let text = text.trim();
        let split = text.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(text.len());
        let (word, rest) = (&text[..split], text[split..].trim());
        match word {
            "ifdef" => self.open(self.macros.contains_key(rest)),
            "ifndef" => self.open(!self.macros.contains_key(rest)),
            "if" => {
                let value = self.condition(rest, range);
                self.open(value);
            }
            "elif" => {
                let taken = self.groups.last().is_some_and(|g| g.taken);
                let value = !taken && self.condition(rest, range);
                self.branch(value);
            }
            "else" => self.branch(true),
            "endif" => {
                self.groups.pop();
            }
            "define" if self.active() => self.define(rest),
            "undef" if self.active() => {
                self.macros.remove(rest);
            }
            _ => {}
        }
    }

    fn open(&mut self, value: bool) {
        self.groups.push(Group { active: value, taken: value });
    }

    fn branch(&mut self, value: bool) {
        if let Some(group) = self.groups.last_mut() {
            group.active = value && !group.taken;
            group.taken |= value;
        }
    }

    /// A macro with parameters is left out: its use is an error at the place of the use.
    fn define(&mut self, rest: &str) {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let split = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        let (name, body) = rest.split_at(split);
        if !body.starts_with('(') {
            self.macros.insert(name.to_owned(), body.trim().to_owned());
        }
    }

    /// `0`, `1`, `defined X`, `defined(X)` and their negation; anything else needs a compiler.
    fn condition(&mut self, text: &str, range: std::ops::Range<usize>) -> bool {
        let (negated, plain) = match text.strip_prefix('!') {
            Some(plain) => (true, plain.trim()),
            None => (false, text),
        };
        let name = plain.strip_prefix("defined").map(|n| n.trim_matches(['(', ')', ' ', '\t']));
        let is_word = |n: &str| n.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        let value = match (plain, name) {
            ("0", _) => false,
            ("1", _) => true,
            (_, Some(name)) if is_word(name) => self.macros.contains_key(name),
            _ => {
                if self.active() {
                    let message = "Onbeat cannot decide this condition".to_owned();
                    let at = origin(self.file, range);
                    let error = Diagnostic::error(codes::MANIFEST_VALUE, message, at, "here")
                        .help("use #ifdef, #ifndef, #if 0, #if 1 or #if defined(NAME)");
                    self.diagnostics.push(error);
                }
                return false;
            }
        };
        value != negated
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let mut diagnostics = Vec::new();
        let source = preprocess(text, 0, &mut diagnostics);
        assert_eq!(source.text.len(), text.len());
        let words: Vec<&str> = source.text.split_whitespace().collect();
        assert_eq!(words.join(" "), expected, "{text}");
        assert_eq!(diagnostics, []);
    }

    #[test]
    fn comments_go_and_strings_stay() {
        check("a /* b \" */ c // d\n\"/* e */\" '\"' f", "a c \"/* e */\" '\"' f");
        check("a /* never closed", "a");
    }

    #[test]
    fn conditional_groups_are_decided_as_a_compiler_would() {
        check("#ifdef __cplusplus\nextern \"C\" {\n#endif\nx", "x");
        check("#ifndef H\n#define H\nx\n#endif", "x");
        check("#if 0\na\n#elif defined(B)\nb\n#else\nc\n#endif", "c");
        check("#define B\n#if 0\na\n#elif defined(B)\nb\n#else\nc\n#endif", "b");
        check("#if 0\n#if 1\na\n#else\nb\n#endif\n#else\nc\n#endif", "c");
        check("#if !defined X\na\n#endif", "a");
    }

    #[test]
    fn a_macro_may_go_on_over_several_lines() {
        let source = preprocess("#define A 1 + \\\n 2\nx", 0, &mut Vec::new());
        assert_eq!(source.macros["A"], "1 +   2");
        assert_eq!(source.text.trim(), "x");
    }
}
