//! What formulas are worth. Everything is exact: what is not is an error.

use super::findings::Findings;
use super::lexer::Span;
use super::syntax::{Arithmetic, Formula, FormulaKind};
use onbeat_model::codes::network_code as codes;
use onbeat_model::diagnostic::Code;
use onbeat_runtime::network_code::timing::{CYCLE_NS, FRAME_WORDS, Medium};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::RangeInclusive;

/// Nanoseconds of a cycle.
const CYCLE: i64 = CYCLE_NS as i64;

/// A number or a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FormulaValue {
    /// A number.
    Number(i64),
    /// Nanoseconds.
    Time(i64),
}

impl fmt::Display for FormulaValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Time(ns) => write!(f, "{ns} ns"),
        }
    }
}

/// Constants, and how formulas become values.
#[derive(Debug)]
pub(crate) struct Formulas {
    medium: Medium,
    /// Those that are known so far; without a value where this is an error.
    constants: BTreeMap<String, Option<FormulaValue>>,
    used: BTreeSet<String>,
}

/// A value is wrong, and this has been said.
pub(crate) type Known<T> = Option<T>;

impl Formulas {
    /// Without constants.
    pub(crate) fn new(medium: Medium) -> Self {
        Self { medium, constants: BTreeMap::new(), used: BTreeSet::new() }
    }

    /// Adds a constant.
    pub(crate) fn define(&mut self, name: &str, value: Option<FormulaValue>) {
        self.constants.insert(name.to_owned(), value);
    }

    /// Whether a formula has named a constant.
    pub(crate) fn is_used(&self, name: &str) -> bool {
        self.used.contains(name)
    }

    /// The value of a formula.
    pub(crate) fn value(
        &mut self,
        formula: &Formula,
        findings: &mut Findings,
    ) -> Known<FormulaValue> {
        match &formula.kind {
            FormulaKind::Number(number) => Some(FormulaValue::Number(*number)),
            FormulaKind::Time(number, unit_ns) => {
                let ns = number.checked_mul(*unit_ns).map(FormulaValue::Time);
                or_overflow(ns, &formula.span, findings)
            }
            FormulaKind::Name(name) => self.constant(name, &formula.span, findings),
            FormulaKind::Gap => {
                // A gap has at most 1,200 cycles, a frame at most 154,200.
                Some(FormulaValue::Time(self.medium.gap_cycles().0 as i64 * CYCLE))
            }
            FormulaKind::Frame(words) => {
                let words = self.in_range(words, 1..=FRAME_WORDS.into(), &WORDS, findings)?;
                let cycles = self.medium.frame_cycles(words as u16).0;
                Some(FormulaValue::Time(cycles as i64 * CYCLE))
            }
            FormulaKind::Negative(of) => {
                let negative = match self.value(of, findings)? {
                    FormulaValue::Number(number) => number.checked_neg().map(FormulaValue::Number),
                    FormulaValue::Time(ns) => ns.checked_neg().map(FormulaValue::Time),
                };
                or_overflow(negative, &formula.span, findings)
            }
            FormulaKind::Binary(left, operator, right) => {
                // Both, so that what is wrong in the right one is said too.
                let left = self.value(left, findings);
                let right = self.value(right, findings);
                computed(left?, *operator, right?, &formula.span, findings)
            }
        }
    }

    fn constant(&mut self, name: &str, at: &Span, findings: &mut Findings) -> Known<FormulaValue> {
        if let Some(value) = self.constants.get(name) {
            self.used.insert(name.to_owned());
            return *value;
        }
        let known = self.constants.keys().map(String::as_str);
        let otherwise = "declare it before this line: `const NAME = VALUE`";
        findings.unknown((codes::UNKNOWN_CONSTANT, "constant"), name, at, known, otherwise);
        None
    }

    /// A number in a range.
    pub(crate) fn in_range(
        &mut self,
        formula: &Formula,
        range: RangeInclusive<i64>,
        expected: &Expected,
        findings: &mut Findings,
    ) -> Known<i64> {
        let number = match self.value(formula, findings)? {
            FormulaValue::Number(number) => number,
            FormulaValue::Time(ns) => {
                let message = format!("{} is a number, and {ns} ns is a time", expected.what);
                let help = "write a number without a unit, or divide by a time";
                findings.error(codes::TYPE, message, &formula.span, help);
                return None;
            }
        };
        if range.contains(&number) {
            return Some(number);
        }
        let message = format!("{} of {number} is out of range", expected.what);
        let help = format!("{} is {} to {}", expected.what, range.start(), range.end());
        findings.error(expected.code, message, &formula.span, &help);
        None
    }

    /// A time as cycles of an instruction; none fewer than `least` are suggested.
    pub(crate) fn cycles(
        &mut self,
        formula: &Formula,
        what: &str,
        least: i64,
        findings: &mut Findings,
    ) -> Known<u32> {
        let at = &formula.span;
        let ns = match self.value(formula, findings)? {
            FormulaValue::Time(ns) => ns,
            FormulaValue::Number(number) => {
                let message = format!("{what} is a time, and {number} is a number");
                let help = format!("write a unit: `{number} cycles`, or ns, us, ms, s");
                findings.error(codes::TYPE, message, at, &help);
                return None;
            }
        };
        if ns < 0 {
            let message = format!("{what} of {ns} ns is negative");
            findings.error(codes::NEGATIVE_TIME, message, at, "write a time of 0 or more");
            return None;
        }
        if ns % CYCLE != 0 {
            let below = ns / CYCLE;
            let message = format!("{what} of {ns} ns is no whole number of cycles of {CYCLE} ns");
            let above = format!("{} ns", (below + 1).saturating_mul(CYCLE));
            let nearest = match below >= least {
                true => format!("{} ns or {above}", below * CYCLE),
                false => above,
            };
            findings.error(codes::FRACTION, message, at, &format!("write {nearest}"));
            return None;
        }
        let cycles = u32::try_from(ns / CYCLE).ok();
        if cycles.is_none() {
            let message = format!("{what} of {ns} ns has more than {} cycles", u32::MAX);
            let help = format!("write at most {} ns", i64::from(u32::MAX) * CYCLE);
            findings.error(codes::LONG_TIME, message, at, &help);
        }
        cycles
    }
}

/// What a number is for, and the code of one that is out of range.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expected {
    /// The code.
    pub(crate) code: Code,
    /// What, with its article.
    pub(crate) what: &'static str,
}

/// Words of a buffer, message or frame.
pub(crate) const WORDS: Expected = Expected { code: codes::LENGTH, what: "a length in words" };

fn or_overflow<T>(value: Option<T>, at: &Span, findings: &mut Findings) -> Known<T> {
    if value.is_none() {
        let message = "the value leaves the range of 64 bits".to_owned();
        findings.error(codes::OVERFLOW, message, at, "compute with smaller values");
    }
    value
}

fn computed(
    left: FormulaValue,
    operator: Arithmetic,
    right: FormulaValue,
    at: &Span,
    findings: &mut Findings,
) -> Known<FormulaValue> {
    use FormulaValue::{Number, Time};
    let (a, b, of): (i64, i64, fn(i64) -> FormulaValue) = match (left, operator, right) {
        (Number(a), _, Number(b)) => (a, b, Number),
        (Time(a), Arithmetic::Over, Time(b)) => (a, b, Number),
        (Time(a), Arithmetic::Plus | Arithmetic::Minus, Time(b)) => (a, b, Time),
        (Time(a), Arithmetic::Times | Arithmetic::Over, Number(b)) => (a, b, Time),
        (Number(a), Arithmetic::Times, Time(b)) => (a, b, Time),
        _ => {
            let (verb, between) = match operator {
                Arithmetic::Plus => ("added", "and"),
                Arithmetic::Minus => ("subtracted", "and"),
                Arithmetic::Times => ("multiplied", "and"),
                Arithmetic::Over => ("divided", "by"),
            };
            let message = format!("{left} {between} {right} cannot be {verb}");
            let help = "times are added to times, multiplied by numbers, divided by either";
            findings.error(codes::TYPE, message, at, help);
            return None;
        }
    };
    let value = match operator {
        Arithmetic::Plus => a.checked_add(b),
        Arithmetic::Minus => a.checked_sub(b),
        Arithmetic::Times => a.checked_mul(b),
        Arithmetic::Over => return divided(a, b, of, at, findings),
    };
    or_overflow(value, at, findings).map(of)
}

fn divided(
    a: i64,
    b: i64,
    of: fn(i64) -> FormulaValue,
    at: &Span,
    findings: &mut Findings,
) -> Known<FormulaValue> {
    if b == 0 {
        let message = format!("{a} is divided by 0");
        findings.error(codes::ZERO_DIVISOR, message, at, "divide by something else");
        return None;
    }
    let quotient = or_overflow(a.checked_div(b), at, findings)?;
    if a % b == 0 {
        return Some(of(quotient));
    }
    // The quotient is rounded towards 0: its neighbour is on the other side.
    let other = if (a < 0) == (b < 0) { quotient + 1 } else { quotient - 1 };
    let message = format!("{a} divided by {b} leaves {}", a % b);
    let help = format!("write {} or {}", of(quotient.min(other)), of(quotient.max(other)));
    findings.error(codes::REMAINDER, message, at, &help);
    None
}
