//! Expressions, times, types, widths, references and hosts.

use super::super::codes;
use super::super::lexer::Kind;
use super::super::syntax::{
    Array, Expression, Host, Literal, Name, Parameter, Reference, Term, Time, Type, Width,
};
use super::{KEYWORDS, Parsed, Parser};
use crate::At;
use onbeat_model::diagnostic::Diagnostic;
use std::net::{Ipv4Addr, Ipv6Addr};

/// The units of time, in nanoseconds.
const UNITS: [(&[&str], i64); 8] = [
    (&["nsec", "ns", "nsecs"], 1),
    (&["usec", "us", "usecs"], 1_000),
    (&["msec", "ms", "msecs"], 1_000_000),
    (&["sec", "s", "secs", "second", "seconds"], 1_000_000_000),
    (&["minute", "min", "mins", "minutes"], 60_000_000_000),
    (&["hour", "h", "hours"], 3_600_000_000_000),
    (&["day", "d", "days"], 86_400_000_000_000),
    (&["week", "weeks"], 604_800_000_000_000),
];

impl Parser<'_> {
    /// A time with its unit, which stands on the same line.
    pub(super) fn time(&mut self) -> Parsed<Option<Time>> {
        if self.take("forever") {
            return Ok(Some(Time::Forever));
        }
        if self.take("never") {
            return Ok(Some(Time::Never));
        }
        let number = self.peek(0);
        let unit = self.peek(1);
        let is_time = number.kind == Kind::Number
            && unit.kind == Kind::Word
            && !KEYWORDS.contains(&self.slice(unit))
            && !self.text[number.end..unit.start].contains('\n')
            && !matches!(self.word(2), "=" | ".");
        let digits = self.slice(number);
        // `12 at host` and the like are no times.
        if !is_time || matches!(self.slice(unit), "at" | "serializer" | "realtime" | "reset") {
            return Ok(None);
        }
        let found = UNITS.iter().find(|(names, _)| names.contains(&self.slice(unit)));
        let Some((_, ns)) = found else {
            let message = format!("unknown unit of time `{}`", self.slice(unit));
            let at = self.place(unit.start, unit.end);
            let unknown = Diagnostic::error(codes::VALUE, message, at, "this unit");
            return Err(Box::new(unknown.help("use ns, us, ms, s, min, h, day or week")));
        };
        let Some(value) = digits.parse::<i64>().ok().and_then(|n| n.checked_mul(*ns)) else {
            let message = format!("the time {digits} {} is too long", self.slice(unit));
            let at = self.place(number.start, unit.end);
            let long = Diagnostic::error(codes::VALUE, message, at, "this time");
            return Err(Box::new(long.help("use at most 292 years")));
        };
        self.next();
        self.next();
        Ok(Some(Time::Ns(value)))
    }

    /// A literal, if one begins here.
    pub(super) fn literal(&mut self) -> Parsed<Option<Literal>> {
        let token = self.peek(0);
        match (token.kind, self.slice(token)) {
            (Kind::Text | Kind::Character, text) => {
                self.next();
                Ok(Some(Literal::Text(text.to_owned())))
            }
            (Kind::Word, "true" | "True") => {
                self.next();
                Ok(Some(Literal::Boolean(true)))
            }
            (Kind::Word, "false" | "False") => {
                self.next();
                Ok(Some(Literal::Boolean(false)))
            }
            (Kind::Number, _) => self.number().map(Some),
            (Kind::Mark, "-" | ".") => self.number().map(Some),
            _ => Ok(None),
        }
    }

    /// An integer, or a number with a point or an exponent.
    fn number(&mut self) -> Parsed<Literal> {
        let first = self.at;
        self.take("-");
        let whole = self.peek(0).kind == Kind::Number;
        if whole {
            self.next();
        }
        let mut is_real = false;
        if self.is(".") && self.peek(1).kind == Kind::Number {
            self.next();
            self.next();
            is_real = true;
        }
        if !whole && !is_real {
            return self.wrong("a number");
        }
        let at = self.since(first);
        let text = &self.text[at.start as usize..at.end as usize];
        let text: String = text.chars().filter(|c| !c.is_whitespace()).collect();
        Ok(match text.parse() {
            Ok(integer) => Literal::Integer(integer),
            Err(_) => Literal::Real(text),
        })
    }

    pub(super) fn expression(&mut self) -> Parsed<At<Expression>> {
        let first = self.at;
        let value = if self.peek(0).kind == Kind::Code {
            Expression::Code(self.code()?.value)
        } else if let Some(time) = self.time()? {
            Expression::Time(time)
        } else if let Some(literal) = self.literal()? {
            Expression::Literal(literal)
        } else if matches!(self.word(0), "(" | "{" | "[") {
            self.bracketed()?
        } else if self.is_name(0) {
            Expression::Parameter(self.name("a parameter")?.value)
        } else {
            return self.wrong("an expression");
        };
        Ok(At { value, at: self.since(first) })
    }

    /// A list in any brackets.
    fn bracketed(&mut self) -> Parsed<Expression> {
        let close = match self.word(0) {
            "(" => ")",
            "{" => "}",
            _ => "]",
        };
        self.next();
        let list = self.nested(|parser| parser.until(close, Self::expression))?;
        Ok(Expression::List(list))
    }

    /// `= expression`, or a list in parentheses or braces.
    pub(super) fn initializer(&mut self) -> Parsed<Option<At<Expression>>> {
        if self.take("=") {
            return self.expression().map(Some);
        }
        if !matches!(self.word(0), "(" | "{") {
            return Ok(None);
        }
        let first = self.at;
        let mut value = self.bracketed()?;
        // `x(1)` initializes as `x = 1` does.
        if let Expression::List(list) = &mut value
            && list.len() == 1
        {
            return Ok(Some(list.remove(0)));
        }
        Ok(Some(At { value, at: self.since(first) }))
    }

    pub(super) fn parameter(&mut self) -> Parsed<Parameter> {
        self.attributes()?;
        let name = self.name("a parameter")?;
        if self.take(":") {
            self.kind()?;
        }
        let default = self.initializer()?;
        Ok(Parameter { name, default })
    }

    /// A type.
    pub(super) fn kind(&mut self) -> Parsed<At<Type>> {
        let first = self.at;
        let value = self.nested(|parser| {
            if parser.peek(0).kind == Kind::Code {
                return Ok(Type::Code(parser.code()?.value));
            }
            // A list of times was a type of its own once.
            if parser.is("time") && parser.word(1) != "[" {
                parser.next();
                return Ok(Type::Time);
            }
            parser.named()
        })?;
        Ok(At { value, at: self.since(first) })
    }

    fn named(&mut self) -> Parsed<Type> {
        let mut name = self.name("a type")?.value;
        while matches!(self.word(0), "." | "::") {
            name.push_str(self.word(0));
            self.next();
            name.push_str(&self.name("a type")?.value);
        }
        let arguments = self.enclosed(["<", ">"], Self::kind)?;
        let mut stars = 0;
        while self.take("*") {
            stars += 1;
        }
        let array = match self.take("[") {
            true if self.take("]") => Some(Array::Variable),
            true => {
                let length = self.integer("the length of an array")?;
                self.expect("]")?;
                Some(Array::Of(length))
            }
            false => None,
        };
        Ok(Type::Named { name, arguments, stars, array })
    }

    /// Digits.
    fn integer(&mut self, of: &str) -> Parsed<i64> {
        let parsed = self.slice(self.peek(0)).parse();
        match (self.peek(0).kind, parsed) {
            (Kind::Number, Ok(value)) => {
                self.next();
                Ok(value)
            }
            _ => self.wrong(of),
        }
    }

    /// `[ … ]`, if there is one.
    pub(super) fn width(&mut self) -> Parsed<Option<At<Width>>> {
        let first = self.at;
        if !self.take("[") {
            return Ok(None);
        }
        if self.take("]") {
            return Ok(Some(At { value: Width::Variable, at: self.since(first) }));
        }
        let mut terms = vec![self.term()?];
        while self.take("+") {
            terms.push(self.term()?);
        }
        self.expect("]")?;
        Ok(Some(At { value: Width::Sum(terms), at: self.since(first) }))
    }

    fn term(&mut self) -> Parsed<At<Term>> {
        let first = self.at;
        let value = if self.peek(0).kind == Kind::Code {
            Term::Code(self.code()?.value)
        } else if self.peek(0).kind == Kind::Number {
            Term::Number(self.integer("a width")?)
        } else if self.take("widthof") {
            self.expect("(")?;
            let of = self.reference()?;
            self.expect(")")?;
            Term::WidthOf(of)
        } else if self.is_name(0) {
            Term::Parameter(self.name("a parameter")?.value)
        } else {
            return self.wrong("a width");
        };
        Ok(At { value, at: self.since(first) })
    }

    /// `port`, `instance.port` or `interleaved(…)` of one of them.
    pub(super) fn reference(&mut self) -> Parsed<Reference> {
        let first = self.at;
        let is_interleaved = self.take("interleaved");
        if is_interleaved {
            self.expect("(")?;
        }
        let mut name = self.name("a port, action, timer or instance")?;
        let mut instance = None;
        if self.take(".") {
            instance = Some(name);
            name = self.name("a port")?;
        }
        if is_interleaved {
            self.expect(")")?;
        }
        let at = self.since(first);
        if self.take("as") {
            self.name("an alias")?;
        }
        Ok(Reference { instance, name, is_interleaved, at })
    }

    /// `user@host:port`: tokens without blanks between them.
    pub(super) fn host(&mut self) -> Parsed<At<Host>> {
        let first = self.at;
        if self.peek(0).kind == Kind::Text {
            let name = self.quoted()?;
            return self.host_of(&name);
        }
        loop {
            let token = self.peek(0);
            let is_part = matches!(token.kind, Kind::Word | Kind::Number)
                || matches!(self.word(0), "." | ".." | "-" | "@" | ":" | "::" | "[" | "]" | "%");
            if !is_part || self.at > first && !self.is_adjacent() {
                break;
            }
            self.next();
        }
        if self.at == first {
            return self.wrong("a host");
        }
        let at = self.since(first);
        let value = self.text[at.start as usize..at.end as usize].to_owned();
        self.host_of(&At { value, at })
    }

    fn host_of(&self, text: &Name) -> Parsed<At<Host>> {
        match host_name(&text.value) {
            Some(name) => Ok(text.with(Host { name: name.to_owned() })),
            None => {
                let message = format!("`{}` is no host", crate::shorten(&text.value));
                let wrong = Diagnostic::error(codes::SYNTAX, message, text.at, "this host");
                let help =
                    "write user@name:port, with a name, an IPv4 address or one of IPv6 in []";
                Err(Box::new(wrong.help(help)))
            }
        }
    }
}

/// The name or address of a host without user and port.
fn host_name(text: &str) -> Option<&str> {
    let is_kebab = |text: &str| {
        let is_word = |word: &str| {
            !word.is_empty() && word.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        };
        text.split('-').all(is_word) && !text.starts_with(|c: char| c.is_ascii_digit())
    };
    let is_port = |text: &str| text.parse::<u16>().is_ok();
    if let Some(inner) = text.strip_prefix('[') {
        let (inner, port) = inner.split_once(']')?;
        let (user, address) = inner.split_once('@').unwrap_or(("user", inner));
        let (plain, zone) = address.split_once('%').unwrap_or((address, "zone"));
        let is_right = is_kebab(user)
            && plain.parse::<Ipv6Addr>().is_ok()
            && !zone.is_empty()
            && (port.is_empty() || port.strip_prefix(':').is_some_and(is_port));
        return is_right.then_some(address);
    }
    let (user, rest) = text.split_once('@').unwrap_or(("user", text));
    let (name, port) = rest.split_once(':').map_or((rest, None), |(name, port)| (name, Some(port)));
    let is_right = is_kebab(user)
        && (name.split('.').all(is_kebab) || name.parse::<Ipv4Addr>().is_ok())
        && port.is_none_or(is_port);
    is_right.then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_names_and_addresses_with_users_and_ports() {
        for (text, name) in [
            ("localhost", "localhost"),
            ("user@rpi-4.local:15045", "rpi-4.local"),
            ("127.0.0.1", "127.0.0.1"),
            ("me@10.0.0.7:80", "10.0.0.7"),
            ("[::1]:15045", "::1"),
            ("[me@fe80::7:8%1]", "fe80::7:8%1"),
        ] {
            assert_eq!(host_name(text), Some(name), "{text}");
        }
        for bad in ["", "a..b", "1.2.3", "a:99999", "@a", "[::1", "a-", "[zz::1]"] {
            assert_eq!(host_name(bad), None, "{bad}");
        }
    }
}
