//! Values of parameters, and the arithmetic in target code that decides widths and times.

use super::syntax::{Expression, Literal, Time};
use onbeat_model::time::Span;
use std::collections::BTreeMap;

/// The value of a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::lf) enum Value {
    Integer(i64),
    Time(Time),
    List(Vec<Value>),
    /// What no width and no time needs: text, real numbers, code that is no arithmetic.
    Other,
}

/// The parameters of an instance.
pub(in crate::lf) type Parameters = BTreeMap<String, Value>;

/// How deep parentheses in code may be nested.
const DEPTH: usize = 32;

/// The value of an expression; none if it names a parameter that is not there.
pub(in crate::lf) fn evaluate(expression: &Expression, of: &Parameters) -> Option<Value> {
    Some(match expression {
        Expression::Literal(Literal::Integer(value)) => Value::Integer(*value),
        Expression::Literal(Literal::Boolean(value)) => Value::Integer(i64::from(*value)),
        Expression::Literal(Literal::Text(_) | Literal::Real(_)) => Value::Other,
        Expression::Time(time) => Value::Time(*time),
        Expression::Parameter(name) => of.get(name)?.clone(),
        Expression::Code(code) => arithmetic(code, of).unwrap_or(Value::Other),
        Expression::List(list) => {
            let values = list.iter().map(|item| evaluate(&item.value, of));
            Value::List(values.collect::<Option<_>>()?)
        }
    })
}

impl Value {
    /// As a time: only 0 has no unit.
    pub(in crate::lf) fn as_time(&self) -> Option<Time> {
        match self {
            Self::Time(time) => Some(*time),
            Self::Integer(0) => Some(Time::Ns(0)),
            // C++ and Rust initialize in braces and parentheses.
            Self::List(list) if list.len() == 1 => list[0].as_time(),
            Self::Integer(_) | Self::List(_) | Self::Other => None,
        }
    }

    /// As a number.
    pub(in crate::lf) fn as_integer(&self) -> Option<i64> {
        match self {
            Self::Integer(value) => Some(*value),
            Self::List(list) if list.len() == 1 => list[0].as_integer(),
            Self::Time(_) | Self::List(_) | Self::Other => None,
        }
    }
}

/// The value of code that is integer arithmetic or a time: `+ - * / %`, parentheses, parameters,
/// an entry of a list, and the runtime's `MSEC(10)` and the like.
pub(in crate::lf) fn arithmetic(code: &str, of: &Parameters) -> Option<Value> {
    let mut reader = Reader { rest: code.trim(), of, depth: 0 };
    let value = reader.sum()?;
    reader.rest.trim_start().is_empty().then_some(value)
}

/// The runtime's macros for times, and the suffixes of C++.
const UNITS: [(&str, &str, i64); 7] = [
    ("NSEC", "ns", 1),
    ("USEC", "us", 1_000),
    ("MSEC", "ms", 1_000_000),
    ("SEC", "s", 1_000_000_000),
    ("MINUTE", "min", 60_000_000_000),
    ("HOUR", "h", 3_600_000_000_000),
    ("DAY", "d", 86_400_000_000_000),
];

struct Reader<'c> {
    rest: &'c str,
    of: &'c Parameters,
    depth: usize,
}

impl<'c> Reader<'c> {
    fn take(&mut self, mark: char) -> bool {
        match self.rest.trim_start().strip_prefix(mark) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn word(&mut self) -> &'c str {
        self.rest = self.rest.trim_start();
        let is_inner = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let end = self.rest.find(|c| !is_inner(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }

    fn sum(&mut self) -> Option<Value> {
        self.depth += 1;
        if self.depth > DEPTH {
            return None;
        }
        let mut value = self.product()?;
        loop {
            if self.take('+') {
                value = combine(&value, &self.product()?, i64::checked_add)?;
            } else if self.take('-') {
                value = combine(&value, &self.product()?, i64::checked_sub)?;
            } else {
                self.depth -= 1;
                return Some(value);
            }
        }
    }

    fn product(&mut self) -> Option<Value> {
        let mut value = self.atom()?;
        loop {
            if self.take('*') {
                value = scale(&value, &self.atom()?)?;
            } else if self.take('/') {
                let by = self.atom()?.as_integer()?;
                value = map(&value, |n| n.checked_div(by))?;
            } else if self.take('%') {
                let by = self.atom()?.as_integer()?;
                value = Value::Integer(value.as_integer()?.checked_rem(by)?);
            } else {
                return Some(value);
            }
        }
    }

    fn atom(&mut self) -> Option<Value> {
        if self.take('(') {
            let value = self.sum()?;
            return self.take(')').then_some(value);
        }
        if self.take('-') {
            self.depth += 1;
            let value = (self.depth <= DEPTH).then(|| self.atom())??;
            self.depth -= 1;
            return map(&value, i64::checked_neg);
        }
        let word = self.word();
        if word == "self" {
            // `self->n` and `self.n` are the parameter.
            let rest = self.rest.strip_prefix("->").or(self.rest.strip_prefix('.'))?;
            self.rest = rest;
            return self.parameter();
        }
        let digits = word.bytes().take_while(u8::is_ascii_digit).count();
        if digits > 0 {
            let number: i64 = word[..digits].parse().ok()?;
            let suffix = &word[digits..];
            if matches!(suffix, "" | "u" | "U" | "l" | "L" | "ul" | "UL" | "ll" | "LL" | "ULL") {
                return Some(Value::Integer(number));
            }
            let (_, _, ns) = UNITS.iter().find(|(_, unit, _)| *unit == suffix)?;
            return number.checked_mul(*ns).map(|ns| Value::Time(Time::Ns(ns)));
        }
        let macro_name = word.strip_suffix('S').filter(|_| word != "S").unwrap_or(word);
        if let Some((_, _, ns)) =
            UNITS.iter().find(|(name, ..)| *name == word || *name == macro_name)
            && self.take('(')
        {
            let number = self.sum()?.as_integer()?;
            let time = number.checked_mul(*ns).map(|ns| Value::Time(Time::Ns(ns)));
            return time.filter(|_| self.take(')'));
        }
        self.named(word)
    }

    fn parameter(&mut self) -> Option<Value> {
        let word = self.word();
        self.named(word)
    }

    fn named(&mut self, word: &str) -> Option<Value> {
        let value = self.of.get(word)?.clone();
        if !self.take('[') {
            return Some(value);
        }
        let at = usize::try_from(self.sum()?.as_integer()?).ok()?;
        let Value::List(list) = value else { return None };
        let entry = list.into_iter().nth(at);
        if self.take(']') { entry } else { None }
    }
}

fn map(value: &Value, with: impl Fn(i64) -> Option<i64>) -> Option<Value> {
    match value {
        Value::Integer(value) => with(*value).map(Value::Integer),
        Value::Time(Time::Ns(ns)) => with(*ns).map(|ns| Value::Time(Time::Ns(ns))),
        Value::Time(_) | Value::List(_) | Value::Other => None,
    }
}

fn combine(a: &Value, b: &Value, with: fn(i64, i64) -> Option<i64>) -> Option<Value> {
    match (a, b) {
        (Value::Integer(a), Value::Integer(b)) => with(*a, *b).map(Value::Integer),
        (Value::Time(Time::Ns(a)), Value::Time(Time::Ns(b))) => {
            with(*a, *b).map(|ns| Value::Time(Time::Ns(ns)))
        }
        _ => None,
    }
}

fn scale(a: &Value, b: &Value) -> Option<Value> {
    match (a, b) {
        (value, Value::Integer(by)) | (Value::Integer(by), value) => {
            map(value, |n| n.checked_mul(*by))
        }
        _ => None,
    }
}

/// A time as a span; none for *forever* and *never*, and for what is negative.
pub(in crate::lf) fn span(time: Time) -> Option<Span> {
    match time {
        Time::Ns(ns) if ns >= 0 => Some(Span::from_ns(ns)),
        Time::Ns(_) | Time::Forever | Time::Never => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_that_is_arithmetic_has_a_value_and_other_code_has_none() {
        let list = Value::List(vec![Value::Integer(5), Value::Integer(7)]);
        let of: Parameters =
            [("n".to_owned(), Value::Integer(3)), ("table".to_owned(), list)].into();
        let time = |ns| Some(Value::Time(Time::Ns(ns)));
        for (code, value) in [
            ("n", Some(Value::Integer(3))),
            (" 2 * (n + 1) - 10 / 5 ", Some(Value::Integer(6))),
            ("self->n % 2", Some(Value::Integer(1))),
            ("table[n - 2]", Some(Value::Integer(7))),
            ("-n", Some(Value::Integer(-3))),
            ("MSEC(10) + USEC(n)", time(10_003_000)),
            ("2 * SECS(1)", time(2_000_000_000)),
            ("10ms", time(10_000_000)),
            ("4UL", Some(Value::Integer(4))),
            ("", None),
            ("m", None),
            ("n +", None),
            ("n / 0", None),
            ("table[2]", None),
            ("f(n)", None),
            ("9223372036854775807 + 1", None),
        ] {
            assert_eq!(arithmetic(code, &of), value, "{code}");
        }
        assert_eq!(arithmetic(&"(".repeat(100_000), &of), None);
        assert_eq!(arithmetic(&"-".repeat(100_000), &of), None);
    }
}
