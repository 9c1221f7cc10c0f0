//! The target declaration with its properties, and paths.

use super::super::lexer::Kind;
use super::super::syntax::{Element, Name, Property, Target};
use super::{Parsed, Parser};
use crate::At;

impl Parser<'_> {
    pub(super) fn target(&mut self) -> Parsed<Target> {
        self.expect("target")?;
        let name = self.name("a target language")?;
        let properties = match self.take("{") {
            true => self.nested(|parser| parser.until("}", Self::property))?,
            false => Vec::new(),
        };
        self.take(";");
        Ok(Target { name, properties })
    }

    fn property(&mut self) -> Parsed<Property> {
        let key = match self.peek(0).kind {
            Kind::Text => self.quoted()?,
            _ => self.kebab("a target property")?,
        };
        self.expect(":")?;
        Ok(Property { key, value: self.nested(Self::element)? })
    }

    fn element(&mut self) -> Parsed<Element> {
        if self.take("{") {
            self.until("}", Self::property)?;
            return Ok(Element::Nested);
        }
        if self.take("[") {
            self.until("]", |parser| parser.nested(Self::element))?;
            return Ok(Element::Nested);
        }
        let first = self.at;
        if let Some(time) = self.time()? {
            return Ok(Element::Time(At { value: time, at: self.since(first) }));
        }
        // A path may begin with what looks like a number or a sign.
        let is_path = matches!(self.word(0), "." | ".." | "/" | "\\")
            || self.is("-") && self.peek(1).kind == Kind::Word;
        if !is_path && let Some(literal) = self.literal()? {
            return Ok(Element::Literal(At { value: literal, at: self.since(first) }));
        }
        Ok(Element::Path(self.path()?))
    }

    /// Words joined by `-`.
    pub(super) fn kebab(&mut self, of: &str) -> Parsed<Name> {
        let first = self.at;
        if self.peek(0).kind != Kind::Word {
            return self.wrong(&format!("the name of {of}"));
        }
        self.next();
        while self.is("-") && self.is_adjacent() {
            self.next();
            if self.peek(0).kind != Kind::Word || !self.is_adjacent() {
                return self.wrong(&format!("the rest of the name of {of}"));
            }
            self.next();
        }
        Ok(self.joined(first))
    }

    /// Words, points, signs and slashes without blanks between them.
    pub(super) fn path(&mut self) -> Parsed<Name> {
        let first = self.at;
        while matches!(self.peek(0).kind, Kind::Word | Kind::Number)
            || matches!(self.word(0), "." | ".." | "-" | "/" | "\\")
            || self.is(":") && self.slice(self.peek(1)) == "\\"
        {
            if self.at > first && !self.is_adjacent() {
                break;
            }
            self.next();
        }
        if self.at == first { self.wrong("a value or a path") } else { Ok(self.joined(first)) }
    }

    /// The text of the tokens since `first`.
    fn joined(&self, first: usize) -> Name {
        let at = self.since(first);
        At { value: self.text[at.start as usize..at.end as usize].to_owned(), at }
    }
}
