//! Messages over TCP.

use super::channels::Channels;
use super::fields::{Fields, NS, US};
use super::names::{Alphabet, Names, check_name};
use super::nodes::{Nodes, delay};
use super::parse::Entry;
use super::rest::host;
use super::{Sink, codes, limits, raw};
use onbeat_model::diagnostic::Diagnostic;
use onbeat_model::system::TcpId;
use onbeat_model::tcp::TcpFlow;
use onbeat_model::time::Span;
use onbeat_model::units::Octets;

/// All flows without errors, and the names of all.
pub(super) struct TcpFlows {
    pub(super) list: Vec<TcpFlow>,
    pub(super) names: Names<TcpId>,
}

/// Checks all flows of messages over TCP.
pub(super) fn check(
    entries: &[Entry<raw::Tcp>],
    nodes: &Nodes,
    channels: &Channels,
    sink: &mut Sink,
) -> TcpFlows {
    let mut flows = TcpFlows { list: Vec::new(), names: Names::new("TCP flow") };
    for (id, entry) in (0..).map(TcpId).zip(entries) {
        let mut fields = Fields::new(entry, "TCP flow", &entry.raw.name, sink);
        let name = name(&mut fields, channels, &mut flows.names, id);
        flows.list.extend(flow(&mut fields, name, nodes));
    }
    flows
}

/// They share their names with channels: figures of both stand in one table.
fn name(
    fields: &mut Fields<'_, raw::Tcp>,
    channels: &Channels,
    names: &mut Names<TcpId>,
    id: TcpId,
) -> String {
    let Some(name) = fields.need("name", &fields.entry.raw.name) else {
        names.incomplete();
        return String::new();
    };
    check_name(&name, "TCP flow", Alphabet::Plain, limits::NAME_OCTETS, fields.sink);
    names.add(&name, id, fields.sink);
    if let Some((_, first)) = channels.names.get(&name.value) {
        let message = format!("a channel and a TCP flow share the name `{}`", name.value);
        let taken = Diagnostic::error(codes::DUPLICATE_NAME, message, name.at, "the TCP flow")
            .help("rename one of them")
            .related(first, "the channel");
        fields.sink.push(taken);
    }
    name.value
}

fn flow(fields: &mut Fields<'_, raw::Tcp>, name: String, nodes: &Nodes) -> Option<TcpFlow> {
    let raw = &fields.entry.raw;
    let talker = host(fields, "talker", &raw.talker, nodes);
    let listener = host(fields, "listener", &raw.listener, nodes);
    if let (Some(from), Some(to), Some(at)) = (talker, listener, raw.listener.as_ref()) {
        if from == to {
            let help = "name two different hosts";
            let text = "talker and listener are the same host";
            fields.error(codes::TALKER_LISTENS, text, at.at, "the same host", help);
        }
        nodes.need_path(&fields.what, from, to, at.at, fields.sink);
    }
    let writes = writes(fields);
    let interval = fields.need("interval_ns", &raw.interval_ns);
    let range = limits::TCP_INTERVAL..=limits::DURATION;
    let interval = fields.time(codes::RATE, ("interval_ns", &interval), NS, range);
    let phase = ("phase_ns", &raw.phase_ns);
    let phase = fields.time(codes::OUT_OF_RANGE, phase, NS, Span::ZERO..=limits::DURATION);
    let after = ("after_us", &raw.after_us);
    let after = fields.time(codes::OUT_OF_RANGE, after, US, Span::ZERO..=limits::DELAY);
    let lag = delay(fields, &raw.lag_ns);
    Some(TcpFlow {
        name,
        talker: talker?,
        listener: listener?,
        writes: writes?,
        interval: interval?,
        phase: phase.unwrap_or_default(),
        after: after.unwrap_or_default(),
        lag,
        nagle: raw.nagle.as_ref().is_none_or(|nagle| nagle.value),
        delayed_ack: raw.delayed_ack.as_ref().is_none_or(|delayed| delayed.value),
        origin: raw.name.as_ref().map_or(fields.entry.at, |name| name.at),
    })
}

fn writes(fields: &mut Fields<'_, raw::Tcp>) -> Option<Vec<Octets>> {
    let written = fields.need("writes_octets", &fields.entry.raw.writes_octets)?;
    if !(1..=limits::TCP_WRITES).contains(&written.value.len()) {
        let help = format!("write 1 to {}, as in [21, 8]", limits::TCP_WRITES);
        let text = format!("a message of {} writes", written.value.len());
        fields.error(codes::PAYLOAD_SIZE, &text, written.at, "this list", &help);
        return None;
    }
    let range = 1..=limits::TCP_WRITE_OCTETS;
    let octets = written.value.into_iter().map(|octets| {
        let octets = ("writes_octets", &Some(octets));
        fields.int(codes::PAYLOAD_SIZE, octets, range.clone()).map(|n| Octets::new(n as u32))
    });
    // All, so that each wrong one is told.
    octets.collect::<Vec<_>>().into_iter().collect()
}
