//! Texts in a group's tables: what is in braces, or after `=`, is computed from the indices of the
//! groups around the table.

use crate::did_you_mean;
use crate::shorten;

/// Parentheses and signs in each other.
const DEPTH: u32 = 16;
/// Digits that a number may be padded to.
const WIDTH: usize = 20;

/// Per group around a table, from the outermost: its name, which is the name of its index, and the
/// index.
pub(super) type Indices<'a> = [(&'a str, u64)];

/// What a text means in one copy of a table.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Computed {
    /// Another text.
    Text(String),
    /// A number, as TOML writes it.
    Number(String),
}

/// Why a text means nothing.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Problem {
    pub(super) message: String,
    pub(super) help: String,
}

/// Whether there is something to compute in a text.
pub(super) fn is_computed(text: &str) -> bool {
    text.starts_with('=') || text.contains(['{', '}'])
}

/// What `text` means where the indices are these.
pub(super) fn compute(text: &str, indices: &Indices<'_>) -> Result<Computed, Problem> {
    match text.strip_prefix('=') {
        Some(rest) if rest.starts_with('=') => replace(rest, indices).map(Computed::Text),
        Some(expression) => number(expression, indices).map(Computed::Number),
        None => replace(text, indices).map(Computed::Text),
    }
}

fn number(expression: &str, indices: &Indices<'_>) -> Result<String, Problem> {
    let value = evaluate(expression, indices)?;
    // No key takes another one.
    if value < i128::from(i64::MIN) || value > i128::from(u64::MAX) {
        return Err(problem(expression, "is too large"));
    }
    Ok(value.to_string())
}

fn replace(text: &str, indices: &Indices<'_>) -> Result<String, Problem> {
    let mut made = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        made.push_str(&rest[..at]);
        let brace = &rest[at..=at];
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix(brace) {
            made.push_str(brace);
            rest = after;
            continue;
        }
        let end = if brace == "{" { rest.find('}') } else { None };
        let Some(end) = end else {
            let message = format!("`{brace}` in `{}` has no other one", shorten(text));
            let help = "write `{{` or `}}` for a brace that stands for itself".to_owned();
            return Err(Problem { message, help });
        };
        place(&rest[..end], indices, &mut made)?;
        rest = &rest[end + 1..];
    }
    made.push_str(rest);
    Ok(made)
}

/// Writes what is in one pair of braces: an expression, and after `:` how it is written.
fn place(inside: &str, indices: &Indices<'_>, made: &mut String) -> Result<(), Problem> {
    use std::fmt::Write;
    let (expression, format) = match inside.split_once(':') {
        Some((expression, format)) => (expression, Some(format)),
        None => (inside, None),
    };
    let value = evaluate(expression, indices)?;
    if value < 0 {
        return Err(problem(expression, "is negative in a text"));
    }
    let written = match format.map(str::trim).map(layout) {
        None => write!(made, "{value}"),
        Some(Some((width, false))) => write!(made, "{value:0width$}"),
        Some(Some((width, true))) => write!(made, "{value:0width$x}"),
        Some(None) => {
            let message = format!("`{{{}}}` has an unknown format", shorten(inside));
            let help = "write `{io:03}` for three digits, `{io:02x}` for two hexadecimal ones";
            return Err(Problem { message, help: help.to_owned() });
        }
    };
    written.expect("a String takes all");
    Ok(())
}

/// How many digits at least, and whether they are hexadecimal: of `02x`, `03` or `x`.
fn layout(format: &str) -> Option<(usize, bool)> {
    let (digits, is_hexadecimal) = match format.strip_suffix('x') {
        Some("") => return Some((1, true)),
        Some(digits) => (digits, true),
        None => (format, false),
    };
    let width = digits.strip_prefix('0')?;
    let is_plain = !width.is_empty() && width.bytes().all(|b| b.is_ascii_digit());
    let width = width.parse().ok().filter(|width| is_plain && (1..=WIDTH).contains(width))?;
    Some((width, is_hexadecimal))
}

fn problem(expression: &str, what: &str) -> Problem {
    let message = format!("`{}` {what}", shorten(expression.trim()));
    let help = "write sums such as `io + 1`, `32*rack + io`, `(io + 1) % 8`".to_owned();
    Problem { message, help }
}

fn evaluate(expression: &str, indices: &Indices<'_>) -> Result<i128, Problem> {
    let mut reader = Reader { all: expression, rest: expression, indices, depth: 0 };
    let value = reader.sum()?;
    match reader.next() {
        None => Ok(value),
        Some(_) => Err(problem(expression, "is not a sum")),
    }
}

/// Computes while it reads.
struct Reader<'a> {
    all: &'a str,
    rest: &'a str,
    indices: &'a Indices<'a>,
    depth: u32,
}

impl<'a> Reader<'a> {
    /// The next character but spaces, without taking it.
    fn next(&mut self) -> Option<char> {
        self.rest = self.rest.trim_start_matches(' ');
        self.rest.chars().next()
    }

    /// Takes the next character if it is one of these.
    fn take(&mut self, these: &[char]) -> Option<char> {
        let next = self.next().filter(|next| these.contains(next))?;
        self.rest = &self.rest[next.len_utf8()..];
        Some(next)
    }

    fn wrong<T>(&self, what: &str) -> Result<T, Problem> {
        Err(problem(self.all, what))
    }

    /// What `is` allows, from the front.
    fn word(&mut self, is: impl Fn(char) -> bool) -> &'a str {
        let end = self.rest.find(|c| !is(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }

    fn sum(&mut self) -> Result<i128, Problem> {
        let mut value = self.product()?;
        while let Some(sign) = self.take(&['+', '-']) {
            let other = self.product()?;
            let result = match sign {
                '+' => value.checked_add(other),
                _ => value.checked_sub(other),
            };
            value = result.map_or_else(|| self.wrong("is too large"), Ok)?;
        }
        Ok(value)
    }

    fn product(&mut self) -> Result<i128, Problem> {
        let mut value = self.factor()?;
        while let Some(sign) = self.take(&['*', '/', '%']) {
            let other = self.factor()?;
            if sign != '*' && other <= 0 {
                return self.wrong("divides by a number that is not positive");
            }
            // Down, and never negative: so `(io - 1) % 8` is the one before in a ring of eight.
            let result = match sign {
                '*' => value.checked_mul(other),
                '/' => value.checked_div_euclid(other),
                _ => value.checked_rem_euclid(other),
            };
            value = result.map_or_else(|| self.wrong("is too large"), Ok)?;
        }
        Ok(value)
    }

    fn factor(&mut self) -> Result<i128, Problem> {
        match self.next() {
            Some('(' | '-') if self.depth == DEPTH => self.wrong("is nested too deep"),
            Some('(' | '-') => {
                self.depth += 1;
                let value = match self.take(&['(', '-']) {
                    Some('-') => {
                        let value = self.factor()?.checked_neg();
                        value.map_or_else(|| self.wrong("is too large"), Ok)?
                    }
                    _ => {
                        let value = self.sum()?;
                        if self.take(&[')']).is_none() {
                            return self.wrong("lacks a `)`");
                        }
                        value
                    }
                };
                self.depth -= 1;
                Ok(value)
            }
            Some('0'..='9') => {
                let digits = self.word(|c| c.is_ascii_digit() || c == '_');
                // Of `u64`: so no sign of it overflows, nor does a sum of a few.
                let value = digits.replace('_', "").parse::<u64>();
                value.map(i128::from).or_else(|_| self.wrong("has a number that is too large"))
            }
            Some(c) if c.is_ascii_alphabetic() || c == '_' => self.index(),
            _ => self.wrong("lacks a number or the name of a group"),
        }
    }

    fn index(&mut self) -> Result<i128, Problem> {
        let indices = self.indices;
        let name = self.word(|c| c.is_ascii_alphanumeric() || c == '_');
        if let Some((_, index)) = indices.iter().find(|(known, _)| *known == name) {
            return Ok(i128::from(*index));
        }
        let message = format!("`{}` is the name of no group around this table", shorten(name));
        let known = || indices.iter().map(|(known, _)| *known);
        let help = match did_you_mean(name, known()) {
            Some(close) => format!("did you mean `{close}`?"),
            None => format!("known here: {}", known().collect::<Vec<_>>().join(", ")),
        };
        Err(Problem { message, help })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const AT: [(&str, u64); 2] = [("rack", 3), ("io", 17)];

    fn text(text: &str) -> String {
        match compute(text, &AT) {
            Ok(Computed::Text(text)) => text,
            other => panic!("{text}: {other:?}"),
        }
    }

    fn number(text: &str) -> String {
        match compute(text, &AT) {
            Ok(Computed::Number(number)) => number,
            other => panic!("{text}: {other:?}"),
        }
    }

    fn wrong(text: &str) -> String {
        let found = compute(text, &AT).expect_err(text);
        assert!(!found.help.is_empty(), "{text}");
        found.message
    }

    #[test]
    fn braces_are_replaced_and_doubled_ones_stand_for_themselves() {
        assert_eq!(text("io{rack}-{io}.p{io+1}"), "io3-17.p18");
        assert_eq!(text("{{io}} {{{io}}}"), "{io} {17}");
        assert_eq!(text("01:00:5e:00:{rack:02x}:{ io : 02x }"), "01:00:5e:00:03:11");
        assert_eq!([text("{io:x}"), text("{io:05}"), text("{io*100:02}")], ["11", "00017", "1700"]);
        assert_eq!([text("ö{io}ö"), text("==1"), text("==={io}")], ["ö17ö", "=1", "==17"]);
    }

    #[test]
    fn products_come_before_sums_and_remainders_are_never_negative() {
        assert_eq!(number("=1000 + 32*rack + io"), "1113");
        assert_eq!(number("= (io + 1) % 9 - 20"), "-20");
        assert_eq!(number("=(rack - 4) % 8"), "7");
        assert_eq!(number("=-io / 4"), "-5");
        assert_eq!(number("=2 * -(1_000 - io) / 2"), "-983");
        assert_eq!(number("=10 - 3 - 2"), "5");
        assert_eq!(number("=18446744073709551615"), u64::MAX.to_string());
        assert_eq!(number("=0 - 9223372036854775807 - 1"), i64::MIN.to_string());
    }

    #[test]
    fn what_cannot_be_computed_says_why() {
        assert_eq!(wrong("x{ioo}"), "`ioo` is the name of no group around this table");
        assert_eq!(
            compute("={ioo", &AT).expect_err("").message,
            "`{ioo` lacks a number or the name of a group"
        );
        assert_eq!(compute("=ioo", &AT).expect_err("").help, "did you mean `io`?");
        assert_eq!(compute("=x", &AT).expect_err("").help, "known here: rack, io");
        assert_eq!(wrong("{io+}"), "`io+` lacks a number or the name of a group");
        assert_eq!(wrong("{}"), "`` lacks a number or the name of a group");
        assert_eq!(wrong("{io io}"), "`io io` is not a sum");
        assert_eq!(wrong("{io - 18}"), "`io - 18` is negative in a text");
        assert_eq!(
            wrong("=io / (rack - 3)"),
            "`io / (rack - 3)` divides by a number that is not positive"
        );
        assert_eq!(wrong("{io"), "`{` in `{io` has no other one");
        assert_eq!(wrong("io}"), "`}` in `io}` has no other one");
        assert_eq!(wrong("{io:2x}"), "`{io:2x}` has an unknown format");
        assert_eq!(wrong("{io:021}"), "`{io:021}` has an unknown format");
        assert_eq!(
            wrong("=18446744073709551616"),
            "`18446744073709551616` has a number that is too large"
        );
        assert_eq!(wrong("=18446744073709551615 + 1"), "`18446744073709551615 + 1` is too large");
        let power = format!("={}", ["18446744073709551615"; 3].join("*"));
        assert!(wrong(&power).ends_with("is too large"));
        assert!(wrong(&format!("={}1", "(".repeat(17))).ends_with("is nested too deep"));
        assert!(wrong(&format!("={}1", "-".repeat(17))).ends_with("is nested too deep"));
        assert_eq!(number(&format!("={}1", "-".repeat(16))), "1");
    }

    /// An expression as it is written, and what it is by other means.
    fn written() -> impl Strategy<Value = (String, i128)> {
        let leaf = prop_oneof![
            (0i128..1_000).prop_map(|n| (n.to_string(), n)),
            Just(("rack".to_owned(), 3)),
            Just(("io".to_owned(), 17)),
        ];
        leaf.prop_recursive(4, 24, 2, |inner| {
            (inner.clone(), inner, 0usize..6, any::<bool>()).prop_map(
                |((a, x), (b, y), sign, wide)| {
                    let space = if wide { " " } else { "" };
                    let both = |sign: char| format!("({a}){space}{sign}{space}({b})");
                    match sign {
                        0 => (both('+'), x + y),
                        1 => (both('-'), x - y),
                        2 if x.abs().max(y.abs()) < 1 << 29 => (both('*'), x * y),
                        3 if y > 0 => (both('/'), (x - (x % y + y) % y) / y),
                        4 if y > 0 => (both('%'), (x % y + y) % y),
                        _ => (format!("-({a})"), -x),
                    }
                },
            )
        })
    }

    proptest! {
        #[test]
        fn expressions_are_what_arithmetic_says((written, value) in written()) {
            let computed = compute(&format!("={written}"), &AT);
            prop_assert_eq!(computed, Ok(Computed::Number(value.to_string())));
            let text = compute(&format!("{{{written}}}"), &AT);
            prop_assert_eq!(text.ok(), (value >= 0).then(|| Computed::Text(value.to_string())));
        }

        #[test]
        fn any_text_is_computed_without_a_panic(text in "[={}()*/%+0-9:xio -]{0,40}") {
            let _ = compute(&text, &AT);
        }
    }
}
