//! Statements in reactors and modes.

use super::super::lexer::Kind;
use super::super::syntax::{
    Action, Attribute, Connection, Effect, Instantiation, Member, Mode, Port, Reaction, Reference,
    State, Tardy, Timer, Trigger, Watchdog,
};
use super::{Parsed, Parser};

/// Words that follow a reaction's code or references, and are no reference.
const CLAUSES: [&str; 4] = ["STP", "STAA", "maxwait", "tardy"];

impl Parser<'_> {
    /// Up to the closing brace, which is taken.
    pub(super) fn members(&mut self, in_mode: bool) -> Parsed<Vec<Member>> {
        let mut members = Vec::new();
        while !self.take("}") {
            members.push(self.member(in_mode)?);
        }
        Ok(members)
    }

    fn member(&mut self, in_mode: bool) -> Parsed<Member> {
        if !in_mode && self.is_preamble() {
            return Ok(Member::Preamble(self.preamble()?));
        }
        let first = self.at;
        let attributes = self.attributes()?;
        let mut member = match (self.word(0), self.word(1)) {
            ("reset", "state") | ("state", _) => Member::State(self.state(attributes)?),
            ("const", "method") | ("method", _) if !in_mode => self.method()?,
            ("mutable", "input") | ("input", _) if !in_mode => {
                self.take("mutable");
                Member::Input(self.port(attributes)?)
            }
            ("output", _) if !in_mode => Member::Output(self.port(attributes)?),
            ("timer", _) => Member::Timer(self.timer(attributes)?),
            ("logical" | "physical", "action") | ("action", _) => {
                Member::Action(self.action(attributes)?)
            }
            ("watchdog", _) => Member::Watchdog(self.watchdog(attributes)?),
            ("reaction" | "mutation", _) => Member::Reaction(self.reaction(attributes)?),
            ("initial", "mode") | ("mode", _) if !in_mode => Member::Mode(self.mode()?),
            ("(" | "interleaved", _) => Member::Connection(self.connection(attributes)?),
            (_, "=") if self.is_name(0) => Member::Instantiation(self.instantiation(attributes)?),
            _ if self.is_name(0) => Member::Connection(self.connection(attributes)?),
            _ => return self.wrong("a statement or `}`"),
        };
        let comments = self.annotations(first, self.at)?;
        match &mut member {
            Member::State(State { attributes, .. })
            | Member::Input(Port { attributes, .. })
            | Member::Output(Port { attributes, .. })
            | Member::Timer(Timer { attributes, .. })
            | Member::Action(Action { attributes, .. })
            | Member::Watchdog(Watchdog { attributes, .. })
            | Member::Instantiation(Instantiation { attributes, .. })
            | Member::Connection(Connection { attributes, .. })
            | Member::Reaction(Reaction { attributes, .. }) => attributes.extend(comments),
            Member::Preamble(_) | Member::Method(_) | Member::Mode(_) => {}
        }
        Ok(member)
    }

    fn state(&mut self, attributes: Vec<Attribute>) -> Parsed<State> {
        self.take("reset");
        self.expect("state")?;
        let name = self.name("a state variable")?;
        if self.take(":") {
            self.kind()?;
        }
        self.initializer()?;
        self.take(";");
        Ok(State { attributes, name })
    }

    fn method(&mut self) -> Parsed<Member> {
        self.take("const");
        self.expect("method")?;
        let name = self.name("a method")?;
        self.expect("(")?;
        self.until(")", |parser| {
            parser.name("an argument")?;
            if parser.take(":") {
                parser.kind()?;
            }
            Ok(())
        })?;
        if self.take(":") {
            self.kind()?;
        }
        self.code()?;
        self.take(";");
        Ok(Member::Method(name))
    }

    fn port(&mut self, attributes: Vec<Attribute>) -> Parsed<Port> {
        self.next();
        let width = self.width()?;
        let name = self.name("a port")?;
        let kind = if self.take(":") { Some(self.kind()?) } else { None };
        self.take(";");
        Ok(Port { attributes, name, width, kind })
    }

    fn timer(&mut self, attributes: Vec<Attribute>) -> Parsed<Timer> {
        self.expect("timer")?;
        let name = self.name("a timer")?;
        let (mut offset, mut period) = (None, None);
        if self.take("(") {
            offset = Some(self.expression()?);
            if self.take(",") {
                period = Some(self.expression()?);
            }
            self.expect(")")?;
        }
        self.take(";");
        Ok(Timer { attributes, name, offset, period })
    }

    fn action(&mut self, attributes: Vec<Attribute>) -> Parsed<Action> {
        let is_physical = self.take("physical");
        if !is_physical {
            self.take("logical");
        }
        self.expect("action")?;
        let name = self.name("an action")?;
        let (mut min_delay, mut min_spacing) = (None, None);
        if self.take("(") {
            min_delay = Some(self.expression()?);
            if self.take(",") {
                min_spacing = Some(self.expression()?);
                if self.take(",") {
                    self.quoted()?;
                }
            }
            self.expect(")")?;
        }
        if self.take(":") {
            self.kind()?;
        }
        self.take(";");
        Ok(Action { attributes, is_physical, name, min_delay, min_spacing })
    }

    fn watchdog(&mut self, attributes: Vec<Attribute>) -> Parsed<Watchdog> {
        self.expect("watchdog")?;
        let name = self.name("a watchdog")?;
        self.expect("(")?;
        let timeout = self.expression()?;
        self.expect(")")?;
        let effects = self.effects()?;
        self.code()?;
        self.take(";");
        Ok(Watchdog { attributes, name, timeout, effects })
    }

    fn mode(&mut self) -> Parsed<Mode> {
        self.take("initial");
        self.expect("mode")?;
        let name = match self.is("{") {
            true => None,
            false => Some(self.name("a mode")?),
        };
        self.expect("{")?;
        let members = self.members(true)?;
        Ok(Mode { name, members })
    }

    /// `-> a, b.c, reset(M)`, if it is there.
    fn effects(&mut self) -> Parsed<Vec<Effect>> {
        if !self.take("->") {
            return Ok(Vec::new());
        }
        self.list(|parser| {
            if matches!(parser.word(0), "reset" | "history") && parser.word(1) == "(" {
                let keeps_history = parser.is("history");
                parser.next();
                parser.next();
                let mode = parser.name("a mode")?;
                parser.expect(")")?;
                return Ok(Effect::Transition { mode, keeps_history });
            }
            parser.reference().map(Effect::Of)
        })
    }

    fn reaction(&mut self, attributes: Vec<Attribute>) -> Parsed<Reaction> {
        let keyword = self.at;
        self.next();
        let mut at = self.since(keyword);
        let name = match self.is("(") {
            true => None,
            false => Some(self.name("a reaction")?),
        };
        if let Some(name) = &name {
            at = name.at;
        }
        self.expect("(")?;
        let triggers = self.until(")", Self::trigger)?;
        let is_source = self.is_name(0) && !CLAUSES.contains(&self.word(0)) && self.word(1) != "="
            || self.is("interleaved");
        let sources = if is_source { self.list(Self::reference)? } else { Vec::new() };
        let effects = self.effects()?;
        if self.peek(0).kind == Kind::Code {
            self.code()?;
        }
        let tardy = self.tardy()?;
        let mut deadline = None;
        if self.take("deadline") {
            self.expect("(")?;
            deadline = Some(self.expression()?);
            self.expect(")")?;
            self.code()?;
        }
        self.take(";");
        Ok(Reaction { attributes, name, triggers, sources, effects, deadline, tardy, at })
    }

    fn trigger(&mut self) -> Parsed<Trigger> {
        let builtin = match self.word(0) {
            "startup" => Trigger::Startup,
            "shutdown" => Trigger::Shutdown,
            "reset" => Trigger::Reset,
            _ => return self.reference().map(Trigger::Of),
        };
        self.next();
        Ok(builtin)
    }

    /// `tardy {= … =}`, and its older forms with a time.
    fn tardy(&mut self) -> Parsed<Option<Tardy>> {
        if !CLAUSES.contains(&self.word(0)) {
            return Ok(None);
        }
        self.next();
        let mut value = None;
        if self.take("(") {
            value = Some(self.expression()?);
            self.expect(")")?;
        }
        if self.peek(0).kind == Kind::Code {
            self.code()?;
        }
        Ok(Some(Tardy { value }))
    }

    fn instantiation(&mut self, attributes: Vec<Attribute>) -> Parsed<Instantiation> {
        let name = self.name("an instance")?;
        self.expect("=")?;
        self.expect("new")?;
        let width = self.width()?;
        let class = self.name("a reactor")?;
        let type_arguments = self.enclosed(["<", ">"], Self::kind)?;
        self.expect("(")?;
        let arguments = self.until(")", |parser| {
            let name = parser.name("a parameter")?;
            match parser.initializer()? {
                Some(value) => Ok((name, value)),
                None => parser.wrong("`=` and a value"),
            }
        })?;
        let host = if self.take("at") { Some(self.host()?) } else { None };
        self.take(";");
        Ok(Instantiation { attributes, name, width, class, type_arguments, arguments, host })
    }

    fn connection(&mut self, attributes: Vec<Attribute>) -> Parsed<Connection> {
        let first = self.at;
        let mut is_broadcast = false;
        let left = match self.take("(") {
            true => {
                let list = self.list(Self::reference)?;
                self.expect(")")?;
                is_broadcast = self.take("+");
                list
            }
            false => self.list(Self::reference)?,
        };
        let is_physical = self.is("~>");
        if !is_physical && !self.is("->") {
            return self.wrong("`->` or `~>`");
        }
        self.next();
        let right: Vec<Reference> = self.list(Self::reference)?;
        let at = self.since(first);
        let after = if self.take("after") { Some(self.expression()?) } else { None };
        let serializer = match self.take("serializer") {
            true => Some(self.quoted()?),
            false => None,
        };
        self.take(";");
        Ok(Connection { attributes, left, is_broadcast, is_physical, right, after, serializer, at })
    }
}
