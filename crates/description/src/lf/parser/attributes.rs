//! Attributes, and comments that stand for some.

use super::super::lexer::{Comment, Kind};
use super::super::syntax::{Attribute, Value};
use super::{Parsed, Parser};
use crate::At;
use onbeat_model::diagnostic::{Diagnostic, Origin};

impl Parser<'_> {
    pub(super) fn attributes(&mut self) -> Parsed<Vec<Attribute>> {
        let mut list = Vec::new();
        while self.is("@") {
            list.push(self.attribute()?);
        }
        Ok(list)
    }

    /// `@name(…)`.
    fn attribute(&mut self) -> Parsed<Attribute> {
        let first = self.at;
        self.expect("@")?;
        let name = self.name("an attribute")?;
        let values = match self.take("(") {
            true => self.until(")", Self::attribute_value)?,
            false => Vec::new(),
        };
        Ok(Attribute { name, values, is_comment: false, at: self.since(first) })
    }

    fn attribute_value(&mut self) -> Parsed<(Option<At<String>>, At<Value>)> {
        let mut name = None;
        if self.peek(0).kind == Kind::Word && self.word(1) == "=" {
            let token = self.next();
            let at = self.place(token.start, token.end);
            name = Some(At { value: self.slice(token).to_owned(), at });
            self.next();
        }
        let first = self.at;
        let value = if self.peek(0).kind == Kind::Number && self.word(1) == ".." {
            self.next();
            self.next();
            if self.peek(0).kind != Kind::Number {
                return self.wrong("the end of the range");
            }
            self.next();
            Value::Range
        } else if let Some(time) = self.time()? {
            Value::Time(time)
        } else if let Some(literal) = self.literal()? {
            Value::Literal(literal)
        } else if self.peek(0).kind == Kind::Word {
            let token = self.next();
            Value::Word(self.slice(token).to_owned())
        } else {
            return self.wrong("the value of an attribute");
        };
        Ok((name, At { value, at: self.since(first) }))
    }

    /// What comments say of the statement that consists of these tokens: those that stand before
    /// it, in it, and behind it on its last line.
    pub(super) fn annotations(&mut self, first: usize, end: usize) -> Parsed<Vec<Attribute>> {
        let line_of = |token: usize, at: usize| {
            let before = token.checked_sub(1).map_or(0, |token| self.list[token].end);
            !self.text[before..at].contains('\n')
        };
        let from = self.comments.partition_point(|comment| comment.next < first);
        let near = self.comments.iter().enumerate().skip(from);
        let near = near.take_while(|(_, comment)| comment.next <= end);
        let ours = near.filter(|(_, comment)| {
            // On the line of what stands before it, a comment belongs to that.
            let is_trailing = line_of(comment.next, comment.text.start);
            match comment.next {
                next if next == first => !is_trailing || first == 0,
                next if next == end => is_trailing,
                _ => true,
            }
        });
        let mut ours: Vec<usize> = ours.map(|(number, _)| number).collect();
        ours.retain(|number| self.unused.remove(number));
        ours.into_iter().map(|number| self.annotation(&self.comments[number])).collect()
    }

    /// A comment as an attribute. What follows the attribute is a comment.
    fn annotation(&self, comment: &Comment) -> Parsed<Attribute> {
        let (start, end) = (comment.text.start, comment.text.end);
        let start = u32::try_from(start).unwrap_or(u32::MAX);
        let shift = |at: &mut Origin| {
            at.start = at.start.saturating_add(start);
            at.end = at.end.saturating_add(start);
        };
        let shifted = |mut wrong: Box<Diagnostic>| {
            wrong.at.iter_mut().for_each(|(at, _)| shift(at));
            wrong
        };
        let text = &self.text[comment.text.start..end];
        let text = text.split_inclusive(')').next().unwrap_or(text);
        let tokens = super::lex(text, self.file).map_err(shifted)?;
        let mut inner = Parser::new(text, self.file, &tokens);
        let mut attribute = inner.attribute().map_err(shifted)?;
        shift(&mut attribute.at);
        shift(&mut attribute.name.at);
        for (name, value) in &mut attribute.values {
            name.iter_mut().for_each(|name| shift(&mut name.at));
            shift(&mut value.at);
        }
        Ok(Attribute { is_comment: true, ..attribute })
    }
}
