//! Published figures.

use super::channels::Channels;
use super::fields::{Fields, NS, presence};
use super::names::Names;
use super::nodes::Nodes;
use super::parse::Entry;
use super::rest::Scenarios;
use super::{At, Sink, codes, limits, raw};
use onbeat_model::system::{Quantity, Reference, Subject, TcpId};
use onbeat_model::time::Span;

/// What published figures may be of.
pub(super) struct Subjects<'a> {
    pub(super) channels: &'a Channels,
    pub(super) tcp: &'a Names<TcpId>,
    pub(super) nodes: &'a Nodes,
    pub(super) scenarios: &'a Scenarios,
}

/// Checks all references.
pub(super) fn check(
    entries: &[Entry<raw::Reference>],
    subjects: &Subjects<'_>,
    sink: &mut Sink,
) -> Vec<Reference> {
    entries.iter().filter_map(|entry| reference(entry, subjects, sink)).collect()
}

fn reference(
    entry: &Entry<raw::Reference>,
    subjects: &Subjects<'_>,
    sink: &mut Sink,
) -> Option<Reference> {
    let raw = &entry.raw;
    let mut fields = Fields::new(entry, "reference", &raw.source, sink);
    let source = fields.need("source", &raw.source);
    let scenario = fields.need("scenario", &raw.scenario);
    if let Some(scenario) = &scenario {
        subjects.scenarios.names.find(codes::UNKNOWN_SCENARIO, scenario, fields.sink);
    }
    let of = subject(&mut fields, subjects);
    let quantity = fields.need("quantity", &raw.quantity);
    if let (Some(of), Some(quantity)) = (of, &quantity) {
        check_quantity(&mut fields, of, quantity);
    }
    let figures = [
        ("max_ns", &raw.max_ns),
        ("min_ns", &raw.min_ns),
        ("avg_ns", &raw.avg_ns),
        ("stddev_ns", &raw.stddev_ns),
        ("lost_per_mille", &raw.lost_per_mille),
    ];
    if figures.iter().all(|(key, value)| value.is_none() && !entry.is_broken(key)) {
        let help = "give at least one of max_ns, min_ns, avg_ns, stddev_ns, lost_per_mille";
        fields.error(codes::NO_FIGURES, "no figures", entry.at, "this table", help);
    }
    // Wake-up errors are signed: negative is late (Austad et al. 2023, Table 8).
    let signed = -limits::DURATION..=limits::DURATION;
    let mut time = |at: usize, range| fields.time(codes::OUT_OF_RANGE, figures[at], NS, range);
    let max = time(0, signed.clone());
    let min = time(1, signed.clone());
    let avg = time(2, signed);
    let stddev = time(3, Span::ZERO..=limits::DURATION);
    let lost = fields.int(codes::OUT_OF_RANGE, figures[4], 0..=1_000);
    let note = raw.note.as_ref().filter(|note| {
        let is_short = note.value.len() <= limits::NOTE_OCTETS;
        if !is_short {
            let help = format!("use at most {} octets", limits::NOTE_OCTETS);
            fields.error(codes::OUT_OF_RANGE, "`note` is too long", note.at, "this note", &help);
        }
        is_short
    });
    Some(Reference {
        source: source?.value,
        scenario: scenario?.value,
        of: of?,
        quantity: quantity?.value,
        max,
        min,
        avg,
        stddev,
        lost_per_mille: lost.map(|l| l as u32),
        note: note.map(|note| note.value.clone()),
    })
}

/// The one thing that the figures are of.
fn subject(fields: &mut Fields<'_, raw::Reference>, subjects: &Subjects<'_>) -> Option<Subject> {
    let raw = &fields.entry.raw;
    let [channel, tcp, clock] = [&raw.channel, &raw.tcp, &raw.clock].map(presence);
    let keys = [("channel", &channel), ("tcp", &tcp), ("clock", &clock)];
    if keys.iter().all(|(key, value)| value.is_none() && !fields.entry.is_broken(key)) {
        let help = "add `channel`, `tcp` or `clock`";
        fields.error(codes::MISSING_KEY, "`channel` is missing", fields.entry.at, "here", help);
    }
    fields.either(keys[0], keys[1]);
    fields.either(keys[0], keys[2]);
    fields.either(keys[1], keys[2]);
    if let Some(name) = &raw.channel {
        let found = subjects.channels.names.find(codes::UNKNOWN_CHANNEL, name, fields.sink);
        return found.map(Subject::Channel);
    }
    if let Some(name) = &raw.tcp {
        let found = subjects.tcp.find(codes::UNKNOWN_TCP, name, fields.sink);
        return found.map(Subject::Tcp);
    }
    let name = raw.clock.as_ref()?;
    subjects.nodes.names.find(codes::UNKNOWN_NODE, name, fields.sink).map(Subject::Clock)
}

/// Not everything is measured of everything.
fn check_quantity(fields: &mut Fields<'_, raw::Reference>, of: Subject, quantity: &At<Quantity>) {
    use Quantity::{ClockError, EndToEnd, Latency, ListenerWakeup, RelativeWakeup, TalkerWakeup};
    let (what, all): (_, &[Quantity]) = match of {
        Subject::Channel(_) => {
            ("a channel", &[Latency, EndToEnd, TalkerWakeup, ListenerWakeup, RelativeWakeup])
        }
        Subject::Tcp(_) => ("messages over TCP", &[Latency, EndToEnd]),
        Subject::Clock(_) => ("a clock", &[ClockError]),
    };
    if !all.contains(&quantity.value) {
        let help = match of {
            Subject::Channel(_) => "use another quantity, or `clock` in place of `channel`",
            Subject::Tcp(_) => "use `latency` or `end-to-end`",
            Subject::Clock(_) => "use `clock-error`",
        };
        let text = format!("this quantity is not measured of {what}");
        fields.error(codes::QUANTITY, &text, quantity.at, "this quantity", help);
    }
}
