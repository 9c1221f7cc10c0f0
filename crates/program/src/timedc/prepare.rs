//! What is not C is made C of the same length before the grammar sees it, in a copy of the text.

use std::ops::Range;

/// A `fifochannel` or `lvchannel` in a declaration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ChannelWord {
    /// The keyword.
    pub word: Range<usize>,
    /// The `(` behind it, if there is one.
    pub open: Option<usize>,
    /// The channel's name.
    pub name: Range<usize>,
    /// How many values it has room for, if that is stated.
    pub count: Option<Range<usize>>,
    /// One past its last token.
    pub end: usize,
    /// Whether it is an `lvchannel`.
    pub is_latest: bool,
}

/// An `exectime` attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Exectime {
    /// `__attribute__((…))` altogether.
    pub whole: Range<usize>,
    /// `exectime(…)`.
    pub word: Range<usize>,
    /// Its arguments.
    pub arguments: Vec<Range<usize>>,
    /// What comes behind the attribute.
    pub next: usize,
}

/// The copy, and what was found on the way.
#[derive(Debug, Default)]
pub(super) struct Prepared {
    pub text: String,
    pub channels: Vec<ChannelWord>,
    pub exectimes: Vec<Exectime>,
    /// Where `while(9)` stands for `critical`.
    pub criticals: Vec<usize>,
    /// `__attribute__((cleanup…))`: where such variables are declared.
    pub cleanups: Vec<usize>,
    /// Where the `;` of `__attribute__((fallthrough));` or `[[fallthrough]];` is, in their order.
    pub attributed: Vec<usize>,
}

/// What `critical` is replaced with: a statement that takes a block and has its length.
const CRITICAL_STANDIN: &str = "while(9)";

/// The deepest nesting of what an attribute or a channel's declaration has in parentheses.
const NESTED_MAX: usize = 64;

/// Extensions that mean nothing to the analysis and that the grammar does not know everywhere.
const NOISE: [&str; 11] = [
    "_Complex",
    "__complex__",
    "__extension__",
    "__restrict",
    "__restrict__",
    "__const",
    "__volatile__",
    "__inline__",
    "__signed__",
    "__real__",
    "__imag__",
];

/// Cuts C text into tokens, without comments and preprocessor lines.
pub(super) fn tokens(text: &str) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let (mut found, mut at, mut line_begins) = (Vec::new(), 0, true);
    while at < bytes.len() {
        let start = at;
        match bytes[at] {
            b'\n' => {
                line_begins = true;
                at += 1;
                continue;
            }
            b if b.is_ascii_whitespace() => {
                at += 1;
                continue;
            }
            b'#' if line_begins => {
                at = end_of_directive(bytes, at);
                continue;
            }
            b'/' if bytes[at..].starts_with(b"//") => {
                at += bytes[at..].iter().take_while(|b| **b != b'\n').count();
                continue;
            }
            b'/' if bytes[at..].starts_with(b"/*") => {
                at = text[at + 2..].find("*/").map_or(bytes.len(), |n| at + n + 4);
                continue;
            }
            quote @ (b'"' | b'\'') => at = end_of_quoted(bytes, at, quote),
            b if is_word(b) => at += bytes[at..].iter().take_while(|b| is_word(**b)).count(),
            _ => at += 1,
        }
        line_begins = false;
        found.push(start..at);
    }
    found
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}

fn end_of_directive(bytes: &[u8], mut at: usize) -> usize {
    while at < bytes.len() && (bytes[at] != b'\n' || bytes[at - 1] == b'\\') {
        at += 1;
    }
    at
}

fn end_of_quoted(bytes: &[u8], start: usize, quote: u8) -> usize {
    let mut at = start + 1;
    while at < bytes.len() && bytes[at] != quote && bytes[at] != b'\n' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(bytes.len())
}

/// Makes the copy.
pub(super) fn prepare(text: &str) -> Prepared {
    let tokens = tokens(text);
    let mut made = Prepared::default();
    let mut copy = text.as_bytes().to_vec();
    let mut index = 0;
    let scan = Scan { text, tokens: &tokens };
    while index < tokens.len() {
        index = match scan.word(index) {
            "critical" if scan.word(index + 1) == "{" && !scan.is_tag(index) => {
                let at = tokens[index].start;
                copy[at..at + 8].copy_from_slice(CRITICAL_STANDIN.as_bytes());
                made.criticals.push(at);
                index + 1
            }
            "__attribute__" | "__attribute" => {
                scan.attribute(index, &mut copy, &mut made).unwrap_or(index + 1)
            }
            "[" if scan.word(index + 1) == "[" => {
                scan.standard_attribute(index, &mut copy, &mut made).unwrap_or(index + 1)
            }
            "fifochannel" | "lvchannel" => {
                scan.channel(index, &mut copy, &mut made).unwrap_or(index + 1)
            }
            "typeof" | "__typeof" | "__typeof__" if scan.word(index + 1) == "(" => {
                scan.type_of(index, &mut copy).unwrap_or(index + 1)
            }
            word if NOISE.contains(&word) => {
                blank(&mut copy, tokens[index].clone());
                index + 1
            }
            _ => index + 1,
        };
    }
    // Whole tokens were replaced with ASCII.
    made.text = String::from_utf8(copy).unwrap_or_else(|_| text.to_owned());
    made
}

/// Spaces instead of tokens; line ends stay.
fn blank(copy: &mut [u8], range: Range<usize>) {
    for byte in &mut copy[range] {
        if *byte != b'\n' {
            *byte = b' ';
        }
    }
}

struct Scan<'a> {
    text: &'a str,
    tokens: &'a [Range<usize>],
}

impl<'a> Scan<'a> {
    fn word(&self, index: usize) -> &'a str {
        self.tokens.get(index).and_then(|t| self.text.get(t.clone())).unwrap_or("")
    }

    /// Whether the token is the tag of a struct or the like.
    fn is_tag(&self, index: usize) -> bool {
        index > 0
            && matches!(self.word(index - 1), "struct" | "union" | "enum" | "goto" | "." | ">")
    }

    /// The index of the `)` that belongs to the `(` at `open`, if that is not nested deep: what is
    /// not closed is looked through again and again.
    fn close(&self, open: usize) -> Option<usize> {
        let mut depth = 0_usize;
        for index in open..self.tokens.len() {
            match self.word(index) {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth -= 1,
                _ => {}
            }
            match depth {
                0 => return Some(index),
                1..=NESTED_MAX => {}
                _ => return None,
            }
        }
        None
    }

    /// The name of a type that nothing is known of.
    fn type_of(&self, index: usize, copy: &mut [u8]) -> Option<usize> {
        let close = self.close(index + 1)?;
        let operand = self.tokens[index].end..self.tokens[close].end;
        (!copy[operand.clone()].contains(&b'\n')).then(|| copy[operand].fill(b'_'))?;
        Some(close + 1)
    }

    /// What stands between the commas of a list in parentheses.
    fn arguments(&self, open: usize, close: usize) -> Vec<Range<usize>> {
        let (mut found, mut depth, mut from) = (Vec::new(), 0_usize, open + 1);
        for index in open + 1..=close {
            match self.word(index) {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" if index < close => depth = depth.saturating_sub(1),
                "," if depth == 0 => {}
                _ if index < close => {}
                _ => {}
            }
            let ends = index == close || (depth == 0 && self.word(index) == ",");
            if ends && from < index {
                found.push(self.tokens[from].start..self.tokens[index - 1].end);
            }
            if ends {
                from = index + 1;
            }
        }
        found
    }

    fn attribute(&self, index: usize, copy: &mut [u8], made: &mut Prepared) -> Option<usize> {
        if self.word(index + 1) != "(" {
            return None;
        }
        let close = self.close(index + 1)?;
        let whole = self.tokens[index].start..self.tokens[close].end;
        blank(copy, whole.clone());
        // An execution time does not stay where it is.
        let is_time = (index + 2..close).any(|inner| self.word(inner) == "exectime");
        if self.word(close + 1) == ";" && !is_time {
            made.attributed.push(self.tokens[close + 1].start);
        }
        for inner in index + 2..close {
            match self.word(inner) {
                "exectime" if self.word(inner + 1) == "(" => {
                    let end = self.close(inner + 1)?;
                    made.exectimes.push(Exectime {
                        whole: whole.clone(),
                        word: self.tokens[inner].start..self.tokens[end].end,
                        arguments: self.arguments(inner + 1, end),
                        next: self.tokens.get(close + 1).map_or(self.text.len(), |t| t.start),
                    });
                }
                "cleanup" | "__cleanup__" => made.cleanups.push(whole.start),
                _ => {}
            }
        }
        Some(close + 1)
    }

    /// C23's `[[…]]`, which the grammar reads the slower the more there are.
    fn standard_attribute(
        &self,
        index: usize,
        copy: &mut [u8],
        made: &mut Prepared,
    ) -> Option<usize> {
        let close = self.close(index)?;
        blank(copy, self.tokens[index].start..self.tokens[close].end);
        if self.word(close + 1) == ";" {
            made.attributed.push(self.tokens[close + 1].start);
        }
        Some(close + 1)
    }

    /// `int fifochannel(c, 64);`, `int lvchannel c;`
    fn channel(&self, index: usize, copy: &mut [u8], made: &mut Prepared) -> Option<usize> {
        let before = if index > 0 { self.word(index - 1) } else { "" };
        let is_type = before.bytes().last().is_some_and(|b| is_word(b) || b == b'*' || b == b'}');
        let is_list = before == ","
            && made.channels.last().is_some_and(|c| c.end == self.tokens[index - 2].end);
        if !(is_type && before != "return" || is_list) {
            return None;
        }
        let is_latest = self.word(index) == "lvchannel";
        let word = self.tokens[index].clone();
        if self.word(index + 1) != "(" {
            let name = self.tokens.get(index + 1)?.clone();
            let is_name = self.word(index + 1).bytes().next().is_some_and(is_word);
            if !is_name {
                return None;
            }
            blank(copy, word.clone());
            let end = name.end;
            made.channels.push(ChannelWord { word, open: None, name, count: None, end, is_latest });
            return Some(index + 2);
        }
        let close = self.close(index + 1)?;
        if !matches!(self.word(close + 1), ";" | ",") {
            return None;
        }
        let name = self.tokens.get(index + 2).filter(|_| close > index + 2)?.clone();
        let count = self.arguments(index + 1, close).get(1).cloned();
        blank(copy, word.start..name.start);
        blank(copy, name.end..self.tokens[close].end);
        let (open, end) = (Some(self.tokens[index + 1].start), self.tokens[close].end);
        made.channels.push(ChannelWord { word, open, name, count, end, is_latest });
        Some(close + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_copy_has_the_length_of_the_text_and_no_more_constructs() {
        let text = "int fifochannel(c, 64); int lvchannel d;\n\
                    __attribute__((exectime(1,\n 2, ms))) void f(void) { critical { g(); } }\n";
        let made = prepare(text);
        assert_eq!(made.text.len(), text.len());
        assert_eq!(
            made.text.split_whitespace().collect::<Vec<_>>().join(" "),
            "int c ; int d; void f(void) { while(9) { g(); } }"
        );
        assert_eq!(&text[made.channels[0].count.clone().unwrap()], "64");
        assert!(made.channels[1].is_latest);
        assert_eq!(made.exectimes[0].arguments.len(), 3);
    }

    #[test]
    fn attributes_are_no_part_of_the_copy_and_their_semicolons_are_known() {
        let text = "void f(int a [[maybe_unused]]) { a[b[0]] = 1; [[fallthrough]]; \
                    __attribute__((fallthrough)); [[likely]] f(a); }";
        let made = prepare(text);
        assert_eq!(
            made.text.split_whitespace().collect::<Vec<_>>().join(" "),
            "void f(int a ) { a[b[0]] = 1; ; ; f(a); }"
        );
        let at = |words: &str| text.find(words).unwrap() + words.len() - 1;
        assert_eq!(made.attributed, [at("[[fallthrough]];"), at("((fallthrough));")]);
    }

    #[test]
    fn names_of_users_are_left_alone() {
        for text in [
            "struct critical { int x; } c;",
            "/* critical { */ int critical = 1; char *s = \"critical {\";",
            "int fifochannel = 3; void f(void) { lvchannel(c); }",
        ] {
            assert_eq!(prepare(text).text, text);
        }
    }
}
