//! YANG instance data as JSON (RFC 7951): a tree of named values with their places.

use super::NETWORK;
use crate::{origin, shorten};
use onbeat_model::diagnostic::Origin;
use std::borrow::Cow;

/// Values in each other.
const DEPTH: usize = 32;
/// Values of a file.
const VALUES: usize = 2_000_000;

/// A leaf, a container, or an entry of a list or leaf-list.
#[derive(Debug)]
pub(super) struct Data<'t> {
    /// The module that it is of; that of its parent if the file says none.
    pub(super) module: Cow<'t, str>,
    pub(super) name: Cow<'t, str>,
    pub(super) content: Content<'t>,
    pub(super) at: Origin,
}

/// What a node of the tree holds.
#[derive(Debug)]
pub(super) enum Content<'t> {
    /// Text, or a number or word as it is written.
    Leaf(Cow<'t, str>),
    Inner(Vec<Data<'t>>),
}

impl<'t> Data<'t> {
    /// The children of a module with a name.
    pub(super) fn all(&self, module: &str, name: &str) -> impl Iterator<Item = &Data<'t>> {
        let children = match &self.content {
            Content::Inner(children) => children.as_slice(),
            Content::Leaf(_) => &[],
        };
        children.iter().filter(move |it| it.module == module && it.name == name)
    }

    /// The value of the leaf of a module with a name, and its place.
    pub(super) fn leaf(&self, module: &str, name: &str) -> Option<(&str, Origin)> {
        self.all(module, name).find_map(|it| match &it.content {
            Content::Leaf(text) => Some((text.as_ref(), it.at)),
            Content::Inner(_) => None,
        })
    }
}

/// Why reading ends.
pub(super) enum Wrong {
    Syntax(String, Origin),
    TooLarge(String, Origin),
}

/// Reads a text; the tree's root has no name.
pub(super) fn read(text: &str) -> Result<Data<'_>, Wrong> {
    let mut reader = Reader { text, at: 0, depth: 0, values: 0 };
    reader.space();
    if reader.peek() != Some(b'{') {
        return reader.wrong("an object must begin here");
    }
    let (content, at) = reader.content("")?;
    reader.space();
    match reader.peek() {
        None => Ok(Data { module: "".into(), name: "".into(), content, at }),
        Some(_) => reader.wrong("nothing may follow the object"),
    }
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
    depth: usize,
    values: usize,
}

impl<'t> Reader<'t> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn space(&mut self) {
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.peek() {
            self.at += 1;
        }
    }

    /// The place of the next character.
    fn here(&self) -> Origin {
        let next = self.text[self.at..].chars().next().map_or(0, char::len_utf8);
        origin(NETWORK, self.at..self.at + next)
    }

    fn wrong<T>(&self, why: &str) -> Result<T, Wrong> {
        Err(Wrong::Syntax(why.to_owned(), self.here()))
    }

    fn take(&mut self, octet: u8, why: &str) -> Result<(), Wrong> {
        self.space();
        if self.peek() != Some(octet) {
            return self.wrong(why);
        }
        self.at += 1;
        Ok(())
    }

    /// Takes a `,` and says so, or takes the end.
    fn goes_on(&mut self, end: u8) -> Result<bool, Wrong> {
        self.space();
        let next = self.peek();
        if next != Some(b',') && next != Some(end) {
            return self.wrong(&format!("`,` or `{}` must follow", char::from(end)));
        }
        self.at += 1;
        Ok(next == Some(b','))
    }

    /// An object or a scalar, and where it begins.
    fn content(&mut self, module: &str) -> Result<(Content<'t>, Origin), Wrong> {
        self.space();
        let from = self.at;
        self.values += 1;
        if self.values > VALUES {
            let why = format!("there are more than {VALUES} values");
            return Err(Wrong::TooLarge(why, self.here()));
        }
        let content = match self.peek() {
            Some(b'{') => {
                let at = self.here();
                return Ok((Content::Inner(self.object(module)?), at));
            }
            Some(b'"') => Content::Leaf(self.string()?),
            _ => {
                let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
                let rest = &self.text[from..];
                let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
                if end == 0 {
                    return self.wrong("a value must follow");
                }
                let word = &rest[..end];
                let is_number = word.starts_with(|c: char| c == '-' || c.is_ascii_digit());
                if !is_number && !matches!(word, "true" | "false" | "null") {
                    return self.wrong(&format!("`{}` is no value", shorten(word)));
                }
                self.at += end;
                Content::Leaf(word.into())
            }
        };
        Ok((content, origin(NETWORK, from..self.at)))
    }

    fn object(&mut self, module: &str) -> Result<Vec<Data<'t>>, Wrong> {
        if self.depth == DEPTH {
            let why = format!("more than {DEPTH} values are in each other");
            return Err(Wrong::TooLarge(why, self.here()));
        }
        self.depth += 1;
        self.take(b'{', "`{` must follow")?;
        let mut children = Vec::new();
        self.space();
        if self.peek() == Some(b'}') {
            self.at += 1;
        } else {
            loop {
                self.member(module, &mut children)?;
                if !self.goes_on(b'}')? {
                    break;
                }
            }
        }
        self.depth -= 1;
        Ok(children)
    }

    /// A name and its value; of an array each element is a child of that name.
    fn member(&mut self, parent: &str, children: &mut Vec<Data<'t>>) -> Result<(), Wrong> {
        self.space();
        if self.peek() != Some(b'"') {
            return self.wrong("a name in quotation marks must follow");
        }
        let name = self.string()?;
        let (module, name) = match name {
            Cow::Borrowed(name) => match name.split_once(':') {
                Some((module, name)) => (module.into(), name.into()),
                None => (Cow::Owned(parent.to_owned()), name.into()),
            },
            // Names of YANG have nothing to be escaped: this is none that means something.
            Cow::Owned(name) => (Cow::Owned(parent.to_owned()), Cow::Owned(name)),
        };
        self.take(b':', "`:` must follow")?;
        self.space();
        let mut add = |(content, at)| {
            children.push(Data { module: module.clone(), name: name.clone(), content, at });
        };
        if self.peek() != Some(b'[') {
            add(self.content(&module)?);
            return Ok(());
        }
        self.at += 1;
        self.space();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(());
        }
        loop {
            add(self.content(&module)?);
            if !self.goes_on(b']')? {
                return Ok(());
            }
        }
    }

    /// A text in quotation marks.
    fn string(&mut self) -> Result<Cow<'t, str>, Wrong> {
        self.at += 1;
        let mut made: Option<String> = None;
        loop {
            let rest = &self.text[self.at..];
            let Some(end) = rest.find(|c: char| c == '"' || c == '\\' || c < ' ') else {
                return self.wrong("a text does not end");
            };
            let plain = &rest[..end];
            self.at += end;
            match (self.peek(), &mut made) {
                (Some(b'"'), None) => {
                    self.at += 1;
                    return Ok(plain.into());
                }
                (Some(b'"'), Some(made)) => {
                    self.at += 1;
                    made.push_str(plain);
                    return Ok(std::mem::take(made).into());
                }
                (Some(b'\\'), made) => {
                    let made = made.get_or_insert_default();
                    made.push_str(plain);
                    self.at += 1;
                    made.push(self.escaped()?);
                }
                _ => return self.wrong("a text has a control character"),
            }
        }
    }

    /// What follows a `\`.
    fn escaped(&mut self) -> Result<char, Wrong> {
        let letter = match self.peek() {
            Some(letter @ (b'"' | b'\\' | b'/')) => char::from(letter),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                self.at += 1;
                return self.unit();
            }
            _ => return self.wrong("this is no escape"),
        };
        self.at += 1;
        Ok(letter)
    }

    /// Four hexadecimal digits, or eight in two parts (a surrogate pair).
    fn unit(&mut self) -> Result<char, Wrong> {
        let high = self.digits()?;
        let pair = (0xd800..0xdc00).contains(&high);
        let code = if pair && self.text[self.at..].starts_with("\\u") {
            self.at += 2;
            let low = self.digits()?;
            let low = low.checked_sub(0xdc00).filter(|low| *low < 0x400);
            low.map(|low| 0x1_0000 + ((high - 0xd800) << 10) + low)
        } else {
            Some(high)
        };
        match code.and_then(char::from_u32) {
            Some(letter) => Ok(letter),
            None => self.wrong("this escape is no character"),
        }
    }

    fn digits(&mut self) -> Result<u32, Wrong> {
        let digits = self.text.get(self.at..self.at + 4);
        let digits = digits.filter(|it| it.bytes().all(|octet| octet.is_ascii_hexdigit()));
        match digits.and_then(|digits| u32::from_str_radix(digits, 16).ok()) {
            Some(code) => {
                self.at += 4;
                Ok(code)
            }
            None => self.wrong("four hexadecimal digits must follow"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The tree as plain JSON, in which every name has a list.
    fn shown(data: &Data<'_>) -> String {
        match &data.content {
            Content::Leaf(text) => format!("{text:?}"),
            Content::Inner(children) => {
                let children =
                    children.iter().map(|it| format!("{}:{}={}", it.module, it.name, shown(it)));
                format!("{{{}}}", children.collect::<Vec<_>>().join(" "))
            }
        }
    }

    fn tree(text: &str) -> String {
        match read(text) {
            Ok(data) => shown(&data),
            Err(Wrong::Syntax(why, at) | Wrong::TooLarge(why, at)) => {
                format!("{why} at {}", at.start)
            }
        }
    }

    #[test]
    fn names_without_a_module_have_that_of_the_value_around_them() {
        let text = r#" { "m:a" : [ {"b": 1, "n:c": {"d": true}} , {} ], "e": [] } "#;
        assert_eq!(tree(text), r#"{m:a={m:b="1" n:c={n:d="true"}} m:a={}}"#);
    }

    #[test]
    fn escapes_are_what_json_says() {
        let text = r#"{"a": "\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00é"}"#;
        assert_eq!(tree(text), "{:a=\"\\\"\\\\/\\u{8}\\u{c}\\n\\r\\té😀é\"}");
    }

    #[test]
    fn what_is_no_json_is_told_at_its_place() {
        for (text, said) in [
            ("", "an object must begin here at 0"),
            ("[]", "an object must begin here at 0"),
            ("{} x", "nothing may follow the object at 3"),
            ("{\"a\" 1}", "`:` must follow at 5"),
            ("{\"a\": }", "a value must follow at 6"),
            ("{\"a\": yes}", "`yes` is no value at 6"),
            ("{\"a\": 1", "`,` or `}` must follow at 7"),
            ("{\"a\": [1}", "`,` or `]` must follow at 8"),
            ("{a: 1}", "a name in quotation marks must follow at 1"),
            ("{\"a", "a text does not end at 2"),
            ("{\"a\nb\": 1}", "a text has a control character at 3"),
            ("{\"\\x\": 1}", "this is no escape at 3"),
            ("{\"\\ud83d\": 1}", "this escape is no character at 8"),
            ("{\"\\u12é\": 1}", "four hexadecimal digits must follow at 4"),
        ] {
            assert_eq!(tree(text), said, "{text}");
        }
        let deep = "{\"a\":".repeat(33) + "1" + &"}".repeat(33);
        assert!(tree(&deep).starts_with("more than 32 values are in each other"));
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in "[{}\\[\\]\":,\\\\u0-9a-f é\n-]{0,60}") {
            let _ = read(&text);
        }
    }
}
