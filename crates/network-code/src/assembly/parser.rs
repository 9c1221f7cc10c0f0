//! Statements from lines. A line with an error is left out, and the next one is read.

use super::findings::Findings;
use super::lexer::{Lexeme, LexemeKind, Span, TextLine, shorten};
use super::syntax::{
    Arithmetic, BufferLength, Compared, DeclarationKind, Formula, FormulaKind, Named,
    NamedCondition, NamedGuard, NamedWord, Operation, Statement,
};
use onbeat_model::codes::network_code as codes;
use onbeat_model::limits::NAME_OCTETS;
use onbeat_model::name::did_you_mean;
use onbeat_runtime::network_code::program::{BufferRole, RESERVED};
use onbeat_runtime::network_code::timing::CYCLE_NS;

/// Words that a statement begins with.
const BEGINNINGS: [&str; 15] = [
    "branch", "const", "create", "future", "goto", "halt", "input", "medium", "message", "nop",
    "output", "receive", "send", "station", "sync",
];

/// Units of time, in nanoseconds.
pub(crate) const UNITS: [(&str, i64); 5] = [
    ("cycles", CYCLE_NS as i64),
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
];

/// The statement of a line is not formed right, and this has been said.
#[derive(Debug)]
struct Malformed;

type Parsed<T> = Result<T, Malformed>;

/// The statements of all lines.
pub(crate) fn statements(
    text: &str,
    lines: &[TextLine],
    findings: &mut Findings,
) -> Vec<Statement> {
    let mut statements = Vec::new();
    for line in lines {
        let mut parser = Parser { text, line, at: 0, findings, statements: &mut statements };
        // What is wrong has been said, and the next line begins a statement of its own.
        let _ = parser.line();
    }
    statements
}

struct Parser<'t, 'f> {
    text: &'t str,
    line: &'t TextLine,
    at: usize,
    findings: &'f mut Findings,
    statements: &'f mut Vec<Statement>,
}

impl<'t> Parser<'t, '_> {
    fn line(&mut self) -> Parsed<()> {
        while let [Lexeme { kind: LexemeKind::Word, .. }, behind, ..] =
            &self.line.lexemes[self.at..]
            && behind.kind == LexemeKind::Sign(b':')
        {
            let label = self.name("a label")?;
            self.at += 1;
            self.statements.push(Statement::Label(label));
        }
        let Some(first) = self.peek() else { return Ok(()) };
        if self.line.is_wrong() {
            self.keep_name();
            return Err(Malformed);
        }
        let first = first.span.clone();
        let before = self.at;
        let Ok(statement) = self.statement() else {
            self.at = before;
            self.keep_name();
            return Err(Malformed);
        };
        if let Some(more) = self.peek() {
            let message = format!("`{}` is behind the end of the statement", self.shown(more));
            let help = "each statement has a line of its own";
            self.findings.error(codes::SYNTAX, message, &more.span.clone(), help);
        }
        self.statements.push(match statement {
            Statement::Instruction(operation, _) => {
                Statement::Instruction(operation, first.start..self.last_end())
            }
            other => other,
        });
        Ok(())
    }

    /// Of a declaration that is wrong, the name: what uses it is right.
    fn keep_name(&mut self) {
        let [first, second, ..] = &self.line.lexemes[self.at..] else { return };
        let kind = match self.word_of(first) {
            "const" => DeclarationKind::Constant,
            "output" | "input" => DeclarationKind::Buffer,
            "message" => DeclarationKind::Message,
            "station" => DeclarationKind::Station,
            _ => return,
        };
        let name = Named { text: self.shown(second), span: second.span.clone() };
        self.statements.push(Statement::Wrong(kind, name));
    }

    fn statement(&mut self) -> Parsed<Statement> {
        let first = self.next("an instruction or a declaration")?;
        let span = first.span.clone();
        let operation = match self.word_of(first) {
            "station" => return self.station(),
            "medium" => return self.medium(span.start),
            "const" => {
                let name = self.name("a constant")?;
                self.sign(b'=')?;
                return Ok(Statement::Constant(name, self.formula()?));
            }
            "output" => return self.buffer(BufferRole::Output),
            "input" => return self.buffer(BufferRole::Input),
            "message" => return self.message(),
            "nop" => Operation::Nop,
            "halt" => Operation::Halt,
            "create" => Operation::Create(self.name("a buffer")?),
            "send" => Operation::Send(self.name("a message")?),
            "receive" => {
                let message = self.name("a message")?;
                self.sign(b',')?;
                Operation::Receive(message, self.name("a buffer")?)
            }
            "future" => {
                let label = self.name("a label")?;
                self.sign(b',')?;
                Operation::Future(label, self.formula()?)
            }
            "sync" => self.sync()?,
            "goto" => {
                let guard = NamedGuard { negated: false, condition: NamedCondition::Always };
                Operation::Branch(guard, self.name("a label")?)
            }
            "branch" => {
                let guard = self.guard()?;
                self.sign(b',')?;
                Operation::Branch(guard, self.name("a label")?)
            }
            _ => return self.unknown(first),
        };
        Ok(Statement::Instruction(operation, span))
    }

    fn unknown(&mut self, first: &Lexeme) -> Parsed<Statement> {
        let word = self.shown(first);
        let help = match did_you_mean(&word, BEGINNINGS.into_iter()) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("a statement begins with a label and `:`, {}", BEGINNINGS.join(", ")),
        };
        let message = format!("no statement begins with `{word}`");
        self.findings.error(codes::STATEMENT, message, &first.span, &help);
        Err(Malformed)
    }

    fn station(&mut self) -> Parsed<Statement> {
        let name = self.next("the name of a station")?;
        let text = match name.kind {
            LexemeKind::Text => self.quoted(name),
            // As `name` does, but that a node may be called as a word of the language.
            LexemeKind::Word => self.shown_whole(name),
            _ => return self.expected("the name of a station", Some(name)),
        };
        Ok(Statement::Station(Named { text, span: name.span.clone() }))
    }

    fn medium(&mut self, start: u32) -> Parsed<Statement> {
        let number = self.next("a rate such as `1 Gbit/s`")?;
        let LexemeKind::Number(value) = number.kind else {
            return self.expected("a rate such as `1 Gbit/s`", Some(number));
        };
        let unit = self.next("`Gbit/s` or `Mbit/s`")?;
        let unit = self.word_of(unit);
        self.sign(b'/')?;
        self.word("s")?;
        let tagged = self.peek().is_some_and(|lexeme| self.word_of(lexeme) == "tagged");
        self.at += usize::from(tagged);
        let octet_cycles = match (value, unit) {
            (1, "Gbit") => Some(1),
            (100, "Mbit") => Some(10),
            (10, "Mbit") => Some(100),
            _ => None,
        };
        Ok(Statement::Medium { octet_cycles, tagged, span: start..self.last_end() })
    }

    fn buffer(&mut self, role: BufferRole) -> Parsed<Statement> {
        let name = self.name("a buffer")?;
        let behind = self.next("`[` or `=`")?;
        let length = match behind.kind {
            LexemeKind::Sign(b'[') => BufferLength::Words(self.index()?),
            LexemeKind::Sign(b'=') => {
                self.word("channel")?;
                let channel = self.next("the name of a channel in quotes")?;
                if channel.kind != LexemeKind::Text {
                    return self.expected("the name of a channel in quotes", Some(channel));
                }
                let text = self.quoted(channel);
                BufferLength::Channel(Named { text, span: channel.span.clone() })
            }
            _ => return self.expected("`[` or `=`", Some(behind)),
        };
        Ok(Statement::Buffer(role, name, length))
    }

    fn message(&mut self) -> Parsed<Statement> {
        let name = self.name("a message")?;
        self.sign(b'=')?;
        let id = self.formula()?;
        self.sign(b'[')?;
        Ok(Statement::Message(name, id, self.index()?))
    }

    fn sync(&mut self) -> Parsed<Operation> {
        let role = self.next("`master` or `slave`")?;
        match self.word_of(role) {
            "master" => Ok(Operation::SyncMaster),
            "slave" => {
                self.sign(b',')?;
                Ok(Operation::SyncSlave(self.formula()?))
            }
            _ => self.expected("`master` or `slave`", Some(role)),
        }
    }

    fn guard(&mut self) -> Parsed<NamedGuard> {
        let negated = self.peek().is_some_and(|lexeme| self.word_of(lexeme) == "not");
        self.at += usize::from(negated);
        Ok(NamedGuard { negated, condition: self.condition()? })
    }

    fn condition(&mut self) -> Parsed<NamedCondition> {
        let first = self.next("a guard")?;
        Ok(match self.word_of(first) {
            "always" => NamedCondition::Always,
            "received" => NamedCondition::Received,
            "sync_timeout" => NamedCondition::SyncTimeout,
            "overrun" => NamedCondition::Overrun,
            "transmitting" => NamedCondition::Transmitting,
            "link_up" => NamedCondition::LinkUp,
            "count" => {
                self.sign(b'(')?;
                let counter = self.formula()?;
                self.sign(b',')?;
                let every = self.formula()?;
                self.sign(b')')?;
                NamedCondition::Count(counter, every)
            }
            "fresh" => {
                self.sign(b'(')?;
                let message = self.name("a message")?;
                self.sign(b')')?;
                NamedCondition::Fresh(message)
            }
            "flag" => {
                self.sign(b'(')?;
                let flag = self.formula()?;
                self.sign(b')')?;
                NamedCondition::Flag(flag)
            }
            "" => return self.expected("a guard", Some(first)),
            _ => {
                self.at -= 1;
                return self.comparison();
            }
        })
    }

    fn comparison(&mut self) -> Parsed<NamedCondition> {
        let left = self.buffer_word()?;
        let operator = self.next("a comparison")?;
        let LexemeKind::Comparison(comparison) = operator.kind else {
            return self.expected("a comparison", Some(operator));
        };
        let is_word = matches!(
            &self.line.lexemes[self.at..],
            [
                Lexeme { kind: LexemeKind::Word, .. },
                Lexeme { kind: LexemeKind::Sign(b'['), .. },
                ..
            ]
        );
        let right = match is_word {
            true => Compared::Word(self.buffer_word()?),
            false => Compared::Constant(self.formula()?),
        };
        Ok(NamedCondition::Compare(left, comparison, right))
    }

    fn buffer_word(&mut self) -> Parsed<NamedWord> {
        let buffer = self.name("a buffer")?;
        self.sign(b'[')?;
        Ok(NamedWord { buffer, index: self.index()? })
    }

    /// A formula and the `]` behind it.
    fn index(&mut self) -> Parsed<Formula> {
        let formula = self.formula()?;
        self.sign(b']')?;
        Ok(formula)
    }

    /// Terms, added up. A statement has few lexemes, so this is not deep.
    fn formula(&mut self) -> Parsed<Formula> {
        let mut left = self.term()?;
        while let Some(operator) =
            self.operator([(b'+', Arithmetic::Plus), (b'-', Arithmetic::Minus)])
        {
            let right = self.term()?;
            left = joined(left, operator, right);
        }
        Ok(left)
    }

    fn term(&mut self) -> Parsed<Formula> {
        let mut left = self.factor()?;
        while let Some(operator) =
            self.operator([(b'*', Arithmetic::Times), (b'/', Arithmetic::Over)])
        {
            let right = self.factor()?;
            left = joined(left, operator, right);
        }
        Ok(left)
    }

    fn operator(&mut self, of: [(u8, Arithmetic); 2]) -> Option<Arithmetic> {
        let LexemeKind::Sign(sign) = self.peek()?.kind else { return None };
        let (_, operator) = of.into_iter().find(|(known, _)| *known == sign)?;
        self.at += 1;
        Some(operator)
    }

    fn factor(&mut self) -> Parsed<Formula> {
        let first = self.next("a number, a time or a constant")?;
        let start = first.span.start;
        let kind = match first.kind {
            LexemeKind::Number(number) => self.quantity(number),
            LexemeKind::Sign(b'-') => FormulaKind::Negative(Box::new(self.factor()?)),
            LexemeKind::Sign(b'(') => {
                let inner = self.formula()?;
                self.sign(b')')?;
                return Ok(Formula { kind: inner.kind, span: start..self.last_end() });
            }
            LexemeKind::Word => match self.word_of(first) {
                "frame" => {
                    self.sign(b'(')?;
                    let words = self.formula()?;
                    self.sign(b')')?;
                    FormulaKind::Frame(Box::new(words))
                }
                "gap" => {
                    self.sign(b'(')?;
                    self.sign(b')')?;
                    FormulaKind::Gap
                }
                _ => {
                    self.at -= 1;
                    FormulaKind::Name(self.name("a constant")?.text)
                }
            },
            _ => return self.expected("a number, a time or a constant", Some(first)),
        };
        Ok(Formula { kind, span: start..self.last_end() })
    }

    /// A number, with its unit if there is one.
    fn quantity(&mut self, number: i64) -> FormulaKind {
        let unit = self.peek().map_or("", |lexeme| self.word_of(lexeme));
        match UNITS.iter().find(|(name, _)| *name == unit) {
            Some((_, ns)) => {
                self.at += 1;
                FormulaKind::Time(number, *ns)
            }
            None => FormulaKind::Number(number),
        }
    }

    /// A name that the program gives.
    fn name(&mut self, what: &str) -> Parsed<Named> {
        let wanted = format!("the name of {what}");
        let name = self.next(&wanted)?;
        if name.kind != LexemeKind::Word {
            return self.expected(&wanted, Some(name));
        }
        let text = self.shown_whole(name);
        if RESERVED.binary_search(&text.as_str()).is_ok() {
            let message = format!("`{text}` is a word of the language");
            let help = format!("choose another name for {what}");
            self.findings.error(codes::RESERVED, message, &name.span, &help);
            return Err(Malformed);
        }
        if text.len() > NAME_OCTETS {
            let message = format!("the name `{}` has {} characters", shorten(&text), text.len());
            let help = format!("a name has at most {NAME_OCTETS}");
            self.findings.error(codes::NAME_LENGTH, message, &name.span, &help);
            return Err(Malformed);
        }
        Ok(Named { text, span: name.span.clone() })
    }

    fn sign(&mut self, sign: u8) -> Parsed<()> {
        let wanted = format!("`{}`", char::from(sign));
        match self.next(&wanted)? {
            lexeme if lexeme.kind == LexemeKind::Sign(sign) => Ok(()),
            other => self.expected(&wanted, Some(other)),
        }
    }

    fn word(&mut self, word: &str) -> Parsed<()> {
        let wanted = format!("`{word}`");
        match self.next(&wanted)? {
            lexeme if self.word_of(lexeme) == word => Ok(()),
            other => self.expected(&wanted, Some(other)),
        }
    }

    fn expected<T>(&mut self, wanted: &str, found: Option<&Lexeme>) -> Parsed<T> {
        let (what, at) = match found {
            Some(lexeme) => (format!("`{}`", self.shown(lexeme)), lexeme.span.clone()),
            None => ("the end of the line".to_owned(), self.line.end..self.line.end),
        };
        let message = format!("expected {wanted}, found {what}");
        let help = "docs/network-code.md has the form of each statement";
        self.findings.error(codes::SYNTAX, message, &at, help);
        Err(Malformed)
    }

    fn peek(&self) -> Option<&'t Lexeme> {
        self.line.lexemes.get(self.at)
    }

    fn next(&mut self, wanted: &str) -> Parsed<&'t Lexeme> {
        let Some(lexeme) = self.peek() else { return self.expected(wanted, None) };
        self.at += 1;
        Ok(lexeme)
    }

    /// Where the last lexeme that was taken ends.
    fn last_end(&self) -> u32 {
        self.line.lexemes[self.at - 1].span.end
    }

    /// The text of a word; of anything else nothing.
    fn word_of(&self, lexeme: &Lexeme) -> &'t str {
        match lexeme.kind {
            LexemeKind::Word => &self.text[range(&lexeme.span)],
            _ => "",
        }
    }

    fn shown_whole(&self, lexeme: &Lexeme) -> String {
        self.text[range(&lexeme.span)].to_owned()
    }

    fn shown(&self, lexeme: &Lexeme) -> String {
        shorten(&self.text[range(&lexeme.span)])
    }

    fn quoted(&self, lexeme: &Lexeme) -> String {
        self.shown_whole(lexeme).trim_matches('"').to_owned()
    }
}

fn joined(left: Formula, operator: Arithmetic, right: Formula) -> Formula {
    let span = left.span.start..right.span.end;
    Formula { kind: FormulaKind::Binary(Box::new(left), operator, Box::new(right)), span }
}

fn range(span: &Span) -> std::ops::Range<usize> {
    span.start as usize..span.end as usize
}
