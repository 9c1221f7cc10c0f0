//! What attributes, and comments in their form, say of times.

use super::codes;
use super::syntax::{Attribute, Literal, Time, Value};
use super::values::span;
use crate::{At, Sink, did_you_mean};
use onbeat_model::diagnostic::{Diagnostic, Origin};
use onbeat_model::federation::MaxWait;
use onbeat_model::graph::Interval;
use onbeat_model::time::Span;

/// Attributes that the language's versions know, and ours.
const KNOWN: [&str; 31] = [
    "label",
    "sparse",
    "icon",
    "side",
    "layout",
    "enclave",
    "property",
    "maxwait",
    "absent_after",
    "link",
    "joining_policy",
    "clock_sync",
    "timeout",
    "fast",
    "keepalive",
    "generate_main",
    "interface_tcp",
    "interface_uart",
    "interface_coap",
    "interface_s4noc",
    "interface_custom",
    "platform_riot",
    "platform_zephyr",
    "platform_patmos",
    "platform_native",
    "platform_freertos",
    "buffer",
    "transient",
    "max_pending_event",
    "wcet",
    "channel",
];

/// What `@channel(…)` says of a connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::lf) struct ChannelNote {
    /// `class`: the word, and where it is.
    pub(in crate::lf) class: Option<At<String>>,
    /// `fixed_delay`.
    pub(in crate::lf) fixed_delay: Option<Span>,
    /// `size`: the most octets of a value.
    pub(in crate::lf) size: Option<At<i64>>,
    /// `interval`: the least mean time between two messages.
    pub(in crate::lf) interval: Option<Span>,
    /// `burst`: the most messages at once.
    pub(in crate::lf) burst: Option<At<i64>>,
    /// `reserve`.
    pub(in crate::lf) reserve: Option<bool>,
}

fn wrong(at: Origin, message: String, help: &str, sink: &mut Sink) {
    let wrong = Diagnostic::error(codes::ATTRIBUTE, message, at, "this attribute");
    sink.push(wrong.help(help));
}

/// Warns of one of our attributes that belongs to nothing it could say something of.
pub(in crate::lf) fn misplaced(at: Origin, sink: &mut Sink) {
    let message = "this says nothing here".to_owned();
    let unused = Diagnostic::error(codes::ATTRIBUTE, message, at, "ignored");
    let help = "write `@wcet(…)` before a reaction, and `@channel(…)` before a connection";
    sink.push(unused.help(help).warning());
}

/// Warns of attributes that nothing knows, and of ours that are for other statements. Other
/// comments may say anything.
pub(in crate::lf) fn check(attributes: &[Attribute], not_here: &[&str], sink: &mut Sink) {
    for attribute in attributes {
        let name = attribute.name.value.as_str();
        if not_here.contains(&name) && !attribute.values.is_empty() {
            misplaced(attribute.at, sink);
        }
        if attribute.is_comment || name.starts_with('_') || KNOWN.contains(&name) {
            continue;
        }
        let message = format!("unknown attribute `@{}`", crate::shorten(name));
        let help = match did_you_mean(name, KNOWN.into_iter()) {
            Some(close) => format!("did you mean `@{close}`?"),
            None => "it says nothing to Onbeat".to_owned(),
        };
        let unknown = Diagnostic::error(codes::ATTRIBUTE, message, attribute.name.at, "ignored");
        sink.push(unknown.help(help).warning());
    }
}

/// The last attribute of a name: of several that say the same, the one closest to the statement.
pub(in crate::lf) fn last<'a>(attributes: &'a [Attribute], name: &str) -> Option<&'a Attribute> {
    attributes.iter().rev().find(|attribute| attribute.name.value == name)
}

fn time(value: &Value) -> Option<Time> {
    match value {
        Value::Time(time) => Some(*time),
        Value::Literal(Literal::Integer(0)) => Some(Time::Ns(0)),
        Value::Literal(_) | Value::Word(_) | Value::Range => None,
    }
}

/// The one time of an attribute.
pub(in crate::lf) fn max_wait(
    attributes: &[Attribute],
    name: &str,
    sink: &mut Sink,
) -> Option<MaxWait> {
    let attribute = last(attributes, name)?;
    let found = match &attribute.values[..] {
        [(key, value)] if key.as_ref().is_none_or(|key| key.value == "value") => time(&value.value),
        _ => None,
    };
    let found = found.and_then(wait);
    if found.is_none() {
        let message = format!("`@{name}` has no time");
        wrong(attribute.at, message, &format!("write @{name}(10 ms) or @{name}(forever)"), sink);
    }
    found
}

/// A time as how long is waited.
pub(in crate::lf) fn wait(time: Time) -> Option<MaxWait> {
    match time {
        Time::Forever => Some(MaxWait::Forever),
        Time::Never => None,
        Time::Ns(_) => span(time).map(MaxWait::For),
    }
}

/// `@wcet(100 us)`, or with `min` and `max`.
pub(in crate::lf) fn execution(attributes: &[Attribute], sink: &mut Sink) -> Option<Interval> {
    let attribute = last(attributes, "wcet")?;
    let (mut lo, mut hi) = (None, None);
    let mut is_right = !attribute.values.is_empty();
    for (key, value) in &attribute.values {
        let value = time(&value.value).and_then(span);
        let end = match key.as_ref().map(|key| key.value.as_str()) {
            None | Some("max" | "value") => &mut hi,
            Some("min") => &mut lo,
            Some(_) => {
                is_right = false;
                continue;
            }
        };
        // Of two values, neither is believed.
        is_right &= value.is_some() && end.is_none();
        *end = value;
    }
    match (lo.unwrap_or(Span::ZERO), hi) {
        (lo, Some(hi)) if is_right && lo <= hi => Some(Interval::between(lo, hi)),
        _ => {
            let message = "`@wcet` has no execution time".to_owned();
            wrong(
                attribute.at,
                message,
                "write @wcet(100 us) or @wcet(min = 10 us, max = 1 ms)",
                sink,
            );
            None
        }
    }
}

/// `@channel(class = A, fixed_delay = 2 ms, size = 64, interval = 10 ms, burst = 2)`.
pub(in crate::lf) fn channel(attributes: &[Attribute], sink: &mut Sink) -> ChannelNote {
    let mut note = ChannelNote::default();
    let Some(attribute) = last(attributes, "channel") else { return note };
    for (key, At { value, at }) in &attribute.values {
        let key = key.as_ref().map_or("", |key| key.value.as_str());
        let span = time(value).and_then(span);
        let integer = match value {
            Value::Literal(Literal::Integer(n)) => Some(At { value: *n, at: *at }),
            _ => None,
        };
        let is_right = match (key, value) {
            ("class", Value::Word(word)) => {
                note.class = Some(At { value: word.clone(), at: *at });
                true
            }
            ("class", Value::Literal(Literal::Text(text))) => {
                note.class = Some(At { value: text.trim_matches('"').to_owned(), at: *at });
                true
            }
            ("fixed_delay", _) => {
                note.fixed_delay = span;
                span.is_some()
            }
            ("interval", _) => {
                note.interval = span.filter(|span| *span > Span::ZERO);
                note.interval.is_some()
            }
            ("size", _) => {
                note.size = integer;
                integer.is_some()
            }
            ("burst", _) => {
                note.burst = integer;
                integer.is_some()
            }
            ("reserve", Value::Literal(Literal::Boolean(reserve))) => {
                note.reserve = Some(*reserve);
                true
            }
            _ => false,
        };
        if !is_right {
            let message = match key {
                "" => "a value of `@channel` has no name".to_owned(),
                key => format!("`{}` of `@channel` cannot be used", crate::shorten(key)),
            };
            let help = "write class = A, fixed_delay = 2 ms, size = 64, interval = 10 ms, \
                        burst = 2 or reserve = false";
            wrong(*at, message, help, sink);
        }
    }
    note
}
