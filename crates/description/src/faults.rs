//! What goes wrong on purpose.

use super::fields::{Fields, MS, NS, presence};
use super::parse::Entry;
use super::ports::PortNames;
use super::streams::{Infrastructure, Streams};
use super::{Sink, codes, limits, raw};
use onbeat_model::diagnostic::Diagnostic;
use onbeat_model::stream::{Fault, FaultKind};
use onbeat_model::time::{NetTime, Span};
use std::collections::BTreeMap;

/// Checks all faults.
pub(super) fn check(
    entries: &[Entry<raw::Fault>],
    network: &Infrastructure<'_>,
    ports: &PortNames,
    streams: &Streams,
    sink: &mut Sink,
) -> Vec<Fault> {
    let fault = |entry| {
        let mut fields = Fields::new(entry, "fault", &None, sink);
        let kind = kind(&mut fields, network, ports, streams);
        let (from, until) = when(&mut fields);
        Some(Fault { kind: kind?, from, until, origin: entry.at })
    };
    let faults: Vec<Fault> = entries.iter().filter_map(fault).collect();
    one_step_each(&faults, network, sink);
    faults
}

/// A clock steps, and back, once: what it reads is the sum of no more.
fn one_step_each(faults: &[Fault], network: &Infrastructure<'_>, sink: &mut Sink) {
    let mut stepped = BTreeMap::new();
    for fault in faults {
        let FaultKind::ClockStep { node, .. } = fault.kind else { continue };
        let Some(first) = stepped.insert(node, fault.origin) else { continue };
        let name = &network.nodes.list[node.index()].name;
        let message = format!("the clock of `{name}` steps twice");
        let second = Diagnostic::error(codes::CLOCK_STEPS, message, fault.origin, "this step")
            .related(first, "the first one")
            .help("keep one of the two faults: a clock may step once, and back once");
        sink.push(second);
    }
}

fn kind(
    fields: &mut Fields<'_, raw::Fault>,
    network: &Infrastructure<'_>,
    ports: &PortNames,
    streams: &Streams,
) -> Option<FaultKind> {
    let raw = &fields.entry.raw;
    let [link, node, babble] = [&raw.link, &raw.node, &raw.babble].map(presence);
    let keys = [("link", &link), ("node", &node), ("babble", &babble)];
    let given: Vec<_> = keys.into_iter().filter(|key| key.1.is_some()).collect();
    for other in given.iter().skip(1) {
        fields.either(given[0], *other);
    }
    if raw.link.is_none()
        && let Some(errors) = raw.errors_ppb
    {
        let help = "add `link`, or remove `errors_ppb`: only links damage frames";
        fields.error(codes::MISSING_KEY, "`link` is missing", errors.at, "needs a link", help);
    }
    if raw.node.is_none()
        && let Some(step) = raw.clock_step_ns
    {
        let help = "add `node`, or remove `clock_step_ns`: only nodes have clocks";
        fields.error(codes::MISSING_KEY, "`node` is missing", step.at, "needs a node", help);
    }
    if let Some(port) = &raw.link {
        let errors =
            fields.int(codes::OUT_OF_RANGE, ("errors_ppb", &raw.errors_ppb), 1..=1_000_000_000);
        let link = network.ports[ports.find(port, network.nodes, fields.sink)?.index()].link;
        return Some(match errors {
            Some(errors) => FaultKind::FrameErrors { link, per_billion: errors as u32 },
            None => FaultKind::LinkDown(link),
        });
    }
    if let Some(node) = &raw.node {
        let most = limits::CLOCK_STEP;
        let step = ("clock_step_ns", &raw.clock_step_ns);
        let step = fields.time(codes::OUT_OF_RANGE, step, NS, -most..=most);
        let id = network.nodes.names.find(codes::UNKNOWN_NODE, node, fields.sink)?;
        return Some(match step {
            Some(by) => FaultKind::ClockStep { node: id, by },
            None => FaultKind::NodeDown(id),
        });
    }
    if let Some(stream) = &raw.babble {
        let index = streams.names.find(codes::UNKNOWN_STREAM, stream, fields.sink)?;
        return Some(FaultKind::Babble(index.0));
    }
    let keys = ["link", "node", "babble", "errors_ppb", "clock_step_ns"];
    if !keys.iter().any(|key| fields.entry.is_broken(key)) {
        let help = "add one of `link`, `node` and `babble`";
        let text = "`link`, `node` or `babble` is missing";
        fields.error(codes::MISSING_KEY, text, fields.entry.at, "in this table", help);
    }
    None
}

fn when(fields: &mut Fields<'_, raw::Fault>) -> (NetTime, NetTime) {
    let raw = &fields.entry.raw;
    let from = ("from_ms", &raw.from_ms);
    let from = fields.time(codes::DURATION, from, MS, Span::ZERO..=limits::DURATION);
    let from = from.unwrap_or_default();
    let until = ("until_ms", &raw.until_ms);
    let until = fields.time(codes::DURATION, until, MS, Span::from_ns(1)..=limits::DURATION);
    if let (Some(until), Some(written)) = (until, &raw.until_ms)
        && until <= from
    {
        let text = format!("it ends at {until}, but starts at {from}");
        let help = "set `until_ms` after `from_ms`, or remove it for a fault without end";
        fields.error(codes::MIN_ABOVE_MAX, &text, written.at, "this end", help);
    }
    let until = until.map_or(NetTime::MAX, |until| NetTime::ZERO + until);
    (NetTime::ZERO + from, until)
}
