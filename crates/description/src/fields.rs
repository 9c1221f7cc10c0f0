//! Reading the keys of one table, with the same words for the same mistakes everywhere.

use super::parse::Entry;
use super::{At, Sink, codes, limits};
use onbeat_model::diagnostic::{Code, Diagnostic, Origin};
use onbeat_model::time::Span;
use onbeat_model::units::BitRate;
use std::ops::RangeInclusive;

/// Nanoseconds of the units that keys end in.
pub(crate) const NS: i64 = 1;
pub(crate) const US: i64 = 1_000;
pub(crate) const MS: i64 = 1_000_000;
pub(crate) const S: i64 = 1_000_000_000;

/// A key and its value in the table.
pub(crate) type Key<'a> = (&'static str, &'a Option<At<i64>>);

/// One table and where to complain about it.
pub(crate) struct Fields<'a, R> {
    pub(crate) entry: &'a Entry<R>,
    /// What the table describes: "host `talker`".
    pub(crate) what: String,
    pub(crate) sink: &'a mut Sink,
}

impl<'a, R> Fields<'a, R> {
    /// For the table of a thing of some kind and, if it has one, name.
    pub(crate) fn new(
        entry: &'a Entry<R>,
        kind: &str,
        name: &Option<At<String>>,
        sink: &'a mut Sink,
    ) -> Self {
        let what = match name {
            Some(name) => format!("{kind} `{}`", super::names::shorten(&name.value)),
            None => format!("this {kind}"),
        };
        Self { entry, what, sink }
    }

    /// Reports an error at a place.
    pub(crate) fn error(&mut self, code: Code, text: &str, at: Origin, label: &str, help: &str) {
        let message = format!("{}: {text}", self.what);
        self.sink.push(Diagnostic::error(code, message, at, label).help(help));
    }

    /// The value of a key that must be there.
    pub(crate) fn need<T: Clone>(&mut self, key: &str, value: &Option<At<T>>) -> Option<At<T>> {
        if value.is_none() && !self.entry.is_broken(key) {
            let help = format!("add `{key}`; {} has an example", self.sink.document);
            let text = format!("`{key}` is missing");
            self.error(codes::MISSING_KEY, &text, self.entry.at, "in this table", &help);
        }
        value.clone()
    }

    /// A number that must lie in a range.
    pub(crate) fn int(
        &mut self,
        code: Code,
        (key, value): Key<'_>,
        range: RangeInclusive<i64>,
    ) -> Option<i64> {
        let At { value, at } = (*value)?;
        if range.contains(&value) {
            return Some(value);
        }
        let text = format!("`{key}` is {value}");
        let help = format!("use {} to {}", range.start(), range.end());
        self.error(code, &text, at, "out of range", &help);
        None
    }

    /// A duration in units of `unit_ns` nanoseconds that must lie in a range.
    pub(crate) fn time(
        &mut self,
        code: Code,
        key: Key<'_>,
        unit_ns: i64,
        range: RangeInclusive<Span>,
    ) -> Option<Span> {
        let least = range.start().as_ns().div_euclid(unit_ns);
        let most = range.end().as_ns() / unit_ns;
        // A positive least is one of the smallest unit: one of any other unit is above it.
        let least = if range.start().as_ns() > 0 { least.max(1) } else { least };
        let value = self.int(code, key, least..=most)?;
        Some(Span::from_ns(value * unit_ns))
    }

    /// Which of two keys that exclude each other is there: its position.
    pub(crate) fn either(&mut self, first: Key<'_>, second: Key<'_>) -> Option<usize> {
        if let (Some(a), Some(b)) = (first.1, second.1) {
            let text = format!("both `{}` and `{}` are given", first.0, second.0);
            let message = format!("{}: {text}", self.what);
            let both = Diagnostic::error(codes::BOTH_KEYS, message, b.at, "this key")
                .help("keep one of them")
                .related(a.at, "and this one");
            self.sink.push(both);
        }
        if first.1.is_some() { Some(0) } else { second.1.as_ref().map(|_| 1) }
    }

    /// Reports that neither of two keys is there of which one must be.
    pub(crate) fn need_one(&mut self, first: Key<'_>, second: Key<'_>) {
        let given = |key: Key<'_>| key.1.is_some() || self.entry.is_broken(key.0);
        if !given(first) && !given(second) {
            let text = format!("`{}` is missing", first.0);
            let help = format!("add `{}` or `{}`", first.0, second.0);
            self.error(codes::MISSING_KEY, &text, self.entry.at, "in this table", &help);
        }
    }

    /// A duration that is given in seconds or in milliseconds.
    pub(crate) fn seconds(
        &mut self,
        code: Code,
        in_s: Key<'_>,
        in_ms: Key<'_>,
        range: RangeInclusive<Span>,
    ) -> Option<Span> {
        match self.either(in_s, in_ms)? {
            0 => self.time(code, in_s, S, range),
            _ => self.time(code, in_ms, MS, range),
        }
    }

    /// A positive rate that is given in 10⁶ bits per second or in bits per second.
    pub(crate) fn bit_rate(&mut self, mbps: Key<'_>, bps: Key<'_>) -> Option<BitRate> {
        const MEGA: i64 = 1_000_000;
        let value = match self.either(mbps, bps)? {
            0 => self.int(codes::RATE, mbps, 1..=limits::LINK_BPS / MEGA)? * MEGA,
            _ => self.int(codes::RATE, bps, 1..=limits::LINK_BPS)?,
        };
        Some(BitRate::from_bps(value.unsigned_abs()))
    }

    /// A set of queues: bit q is set if q is in the list.
    pub(crate) fn queues(&mut self, key: &'static str, list: &[At<i64>]) -> u8 {
        let queues =
            list.iter().filter_map(|q| self.int(codes::OUT_OF_RANGE, (key, &Some(*q)), 0..=7));
        queues.fold(0, |set, queue| set | 1 << queue)
    }
}

/// Stands for a key of another type where only its presence and place matter.
pub(crate) fn presence<T>(value: &Option<At<T>>) -> Option<At<i64>> {
    value.as_ref().map(|value| value.with(0))
}
