//! Tokens to a syntax tree, by recursive descent with a limited depth. The grammar is the union of
//! what the language's versions of 2024 to 2026 document. The first error of a file ends it.

mod attributes;
mod members;
mod pieces;
mod target;

use super::codes;
use super::lexer::{Comment, Kind, Token, Tokens, lex};
use super::syntax::{File, Import, Name, Preamble, Reactor, Role, Time};
use crate::{At, did_you_mean, origin, shorten};
use onbeat_model::diagnostic::{Diagnostic, Origin};
use std::collections::BTreeSet;

/// How deep lists, types and target properties may be nested.
const DEPTH: usize = 64;

/// What was read, or the first thing that is wrong.
type Parsed<T> = Result<T, Box<Diagnostic>>;

/// Words that begin something and name nothing.
const KEYWORDS: [&str; 31] = [
    "action",
    "after",
    "const",
    "deadline",
    "extends",
    "federated",
    "forever",
    "import",
    "initial",
    "input",
    "interleaved",
    "logical",
    "main",
    "method",
    "mode",
    "mutable",
    "mutation",
    "never",
    "new",
    "output",
    "physical",
    "preamble",
    "private",
    "public",
    "reaction",
    "reactor",
    "state",
    "target",
    "timer",
    "watchdog",
    "widthof",
];

/// Reads a file, which is number `file` of the sources.
///
/// # Errors
/// The first piece that the grammar does not allow.
pub(in crate::lf) fn parse(text: &str, file: u16) -> Parsed<File> {
    let tokens = lex(text, file)?;
    let mut parser = Parser::new(text, file, &tokens);
    let meant = tokens.comments.iter().enumerate().filter(|(_, comment)| {
        let comment = &text[comment.text.clone()];
        let ours = ["@wcet", "@channel"].iter().find_map(|name| comment.strip_prefix(name));
        ours.is_some_and(|values| values.trim_start().starts_with('('))
    });
    parser.unused = meant.map(|(number, _)| number).collect();
    let mut read = parser.file()?;
    let unused = parser.unused.iter().map(|number| tokens.comments[*number].text.clone());
    read.unused = unused.map(|range| origin(file, range)).collect();
    Ok(read)
}

/// Reads a time, and nothing else.
pub(in crate::lf) fn time(text: &str) -> Option<Time> {
    let tokens = lex(text, 0).ok()?;
    let mut parser = Parser::new(text, 0, &tokens);
    let time = parser.time().ok()??;
    (parser.peek(0).kind == Kind::End).then_some(time)
}

/// Where the parser is.
struct Parser<'t> {
    text: &'t str,
    file: u16,
    list: &'t [Token],
    comments: &'t [Comment],
    /// Comments in the form of our attributes whose statement has not been read yet, by their
    /// position. What others say is nothing: the program does not have it.
    unused: BTreeSet<usize>,
    /// The next token.
    at: usize,
    depth: usize,
}

impl<'t> Parser<'t> {
    fn new(text: &'t str, file: u16, tokens: &'t Tokens) -> Self {
        let Tokens { list, comments } = tokens;
        Self { text, file, list, comments, unused: BTreeSet::new(), at: 0, depth: 0 }
    }

    /// The token `ahead` of the next one.
    fn peek(&self, ahead: usize) -> Token {
        let last = self.list.len().saturating_sub(1);
        let end = Token { kind: Kind::End, start: self.text.len(), end: self.text.len() };
        self.list.get((self.at + ahead).min(last)).copied().unwrap_or(end)
    }

    fn slice(&self, token: Token) -> &'t str {
        &self.text[token.start..token.end]
    }

    /// The text of the token `ahead` of the next one, if it is a word or mark.
    fn word(&self, ahead: usize) -> &'t str {
        let token = self.peek(ahead);
        match token.kind {
            Kind::Word | Kind::Mark => self.slice(token),
            Kind::Number | Kind::Text | Kind::Character | Kind::Code | Kind::End => "",
        }
    }

    fn is(&self, word: &str) -> bool {
        self.word(0) == word
    }

    /// Takes the next token.
    fn next(&mut self) -> Token {
        let token = self.peek(0);
        self.at = (self.at + 1).min(self.list.len());
        token
    }

    /// Takes the next token if it is this word or mark.
    fn take(&mut self, word: &str) -> bool {
        let is = self.is(word);
        if is {
            self.next();
        }
        is
    }

    fn expect(&mut self, word: &str) -> Parsed<Origin> {
        if self.is(word) {
            let token = self.next();
            return Ok(self.place(token.start, token.end));
        }
        self.wrong(&format!("`{word}`"))
    }

    /// Whether the next token follows the last one immediately.
    fn is_adjacent(&self) -> bool {
        self.at > 0 && self.list[self.at - 1].end == self.peek(0).start
    }

    fn place(&self, start: usize, end: usize) -> Origin {
        origin(self.file, start..end)
    }

    /// From the token with the number `from` to the last one taken.
    fn since(&self, from: usize) -> Origin {
        let first = self.list.get(from).map_or(self.text.len(), |token| token.start);
        let last = self.at.checked_sub(1).map_or(first, |at| self.list[at].end);
        self.place(first, last.max(first))
    }

    /// An error at the next token.
    fn wrong<T>(&self, wanted: &str) -> Parsed<T> {
        let token = self.peek(0);
        let found = match token.kind {
            Kind::End => "the end of the file".to_owned(),
            Kind::Code => "target code".to_owned(),
            _ => format!("`{}`", shorten(self.slice(token))),
        };
        let message = format!("expected {wanted}, found {found}");
        let at = self.place(token.start, token.end);
        let close = did_you_mean(self.word(0), KEYWORDS.into_iter())
            .filter(|close| *close != self.word(0) && token.kind == Kind::Word);
        let help = match close {
            Some(close) => format!("did you mean `{close}`?"),
            None => format!("write {wanted} here"),
        };
        Err(Box::new(Diagnostic::error(codes::SYNTAX, message, at, "unexpected").help(help)))
    }

    /// Goes one level deeper for as long as `read` takes.
    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth == DEPTH {
            let token = self.peek(0);
            let at = self.place(token.start, token.end);
            let message = format!("more than {DEPTH} levels are nested");
            let deep = Diagnostic::error(codes::TOO_LARGE, message, at, "one level too many");
            return Err(Box::new(deep.help("nest less")));
        }
        self.depth += 1;
        let read = read(self);
        self.depth -= 1;
        read
    }

    /// One or more, with commas between them.
    fn list<T>(&mut self, mut one: impl FnMut(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        let mut list = vec![one(self)?];
        while self.take(",") {
            list.push(one(self)?);
        }
        Ok(list)
    }

    /// A list between two marks; none if the first mark is not there.
    fn enclosed<T>(
        &mut self,
        [open, close]: [&str; 2],
        one: impl FnMut(&mut Self) -> Parsed<T>,
    ) -> Parsed<Vec<T>> {
        if !self.take(open) {
            return Ok(Vec::new());
        }
        let list = self.list(one)?;
        self.expect(close)?;
        Ok(list)
    }

    /// Any number up to `close`, with commas between them and perhaps one at the end.
    fn until<T>(
        &mut self,
        close: &str,
        mut one: impl FnMut(&mut Self) -> Parsed<T>,
    ) -> Parsed<Vec<T>> {
        let mut list = Vec::new();
        while !self.take(close) {
            list.push(one(self)?);
            if !self.take(",") {
                self.expect(close)?;
                break;
            }
        }
        Ok(list)
    }

    /// Whether the next token can be a name.
    fn is_name(&self, ahead: usize) -> bool {
        self.peek(ahead).kind == Kind::Word && !KEYWORDS.contains(&self.word(ahead))
    }

    fn name(&mut self, of: &str) -> Parsed<Name> {
        if !self.is_name(0) {
            return self.wrong(&format!("the name of {of}"));
        }
        let token = self.next();
        let at = self.place(token.start, token.end);
        Ok(At { value: self.slice(token).to_owned(), at })
    }

    /// Target code without its delimiters.
    fn code(&mut self) -> Parsed<At<String>> {
        if self.peek(0).kind != Kind::Code {
            return self.wrong("target code, `{= … =}`");
        }
        let token = self.next();
        let at = self.place(token.start, token.end);
        Ok(At { value: self.text[token.start + 2..token.end - 2].to_owned(), at })
    }

    /// Text in quotes, without them.
    fn quoted(&mut self) -> Parsed<Name> {
        if self.peek(0).kind != Kind::Text {
            return self.wrong("a text in double quotes");
        }
        let token = self.next();
        let at = self.place(token.start, token.end);
        Ok(At { value: self.slice(token).trim_matches('"').to_owned(), at })
    }

    fn file(&mut self) -> Parsed<File> {
        let mut file = File::default();
        if self.is("target") {
            file.target = Some(self.target()?);
        }
        while self.is("import") {
            file.imports.push(self.import()?);
        }
        while self.is_preamble() {
            file.preambles.push(self.preamble()?);
        }
        while self.peek(0).kind != Kind::End {
            file.reactors.push(self.reactor()?);
        }
        if file.reactors.is_empty() {
            return self.wrong("a reactor");
        }
        Ok(file)
    }

    fn import(&mut self) -> Parsed<Import> {
        self.expect("import")?;
        let reactors = self.list(|parser| {
            let there = parser.name("a reactor")?;
            let here = match parser.take("as") {
                true => parser.name("the reactor in this file")?,
                false => there.clone(),
            };
            Ok((there, here))
        })?;
        self.expect("from")?;
        let is_package = self.is("<");
        let from = match is_package {
            true => {
                self.next();
                let path = self.path()?;
                self.expect(">")?;
                path
            }
            false => self.quoted()?,
        };
        self.take(";");
        Ok(Import { reactors, from, is_package })
    }

    fn is_preamble(&self) -> bool {
        self.is("preamble")
            || matches!(self.word(0), "private" | "public") && self.word(1) == "preamble"
    }

    fn preamble(&mut self) -> Parsed<Preamble> {
        if !self.take("private") {
            self.take("public");
        }
        self.expect("preamble")?;
        Ok(Preamble { code: self.code()? })
    }

    fn reactor(&mut self) -> Parsed<Reactor> {
        self.attributes()?;
        let mut role = Role::Class;
        let mut keyword = self.at;
        let mut is_realtime = false;
        while !self.is("reactor") {
            keyword = self.at;
            match self.word(0) {
                "main" if role == Role::Class => role = Role::Main,
                "federated" if role == Role::Class => role = Role::Federated,
                "realtime" if !is_realtime => is_realtime = true,
                _ => return self.wrong("`reactor`"),
            }
            self.next();
        }
        self.expect("reactor")?;
        let mut at = self.since(keyword);
        let name = if self.is_name(0) && self.word(0) != "at" {
            let name = self.name("the reactor")?;
            at = name.at;
            Some(name)
        } else {
            None
        };
        let type_parameters = self.enclosed(["<", ">"], Self::type_parameter)?;
        let parameters = self.enclosed(["(", ")"], Self::parameter)?;
        if self.take("at") {
            self.host()?;
        }
        let extends = match self.take("extends") {
            true => self.list(|parser| parser.name("a reactor"))?,
            false => Vec::new(),
        };
        self.expect("{")?;
        let members = self.members(false)?;
        Ok(Reactor { role, name, type_parameters, parameters, extends, members, at })
    }

    /// `T`, `A extends B` or code. Its name is the first word.
    fn type_parameter(&mut self) -> Parsed<Name> {
        if self.peek(0).kind == Kind::Code {
            return self.code();
        }
        let name = self.name("a type parameter")?;
        while self.peek(0).kind == Kind::Word {
            self.next();
        }
        Ok(name)
    }
}
