//! One line of text per message.

use onbeat_measure::Mismatch;
use onbeat_measure::join::{self, Message};
use onbeat_measure::tcp;
use onbeat_model::record::RunLog;
use onbeat_model::system::{ChannelId, System};
use onbeat_model::tcp::TcpObserved;
use onbeat_model::time::Span;
use std::fmt::Display;
use std::io::{self, Write};

const HEADER: &str = "channel,listener,sequence,capture_ns,send_ns,arrive_ns,receive_ns,latency_ns,\
    talker_wake_error_ns,listener_wake_error_ns,relative_wake_error_ns,late,duplicate,lost,\
    end_to_end_ns,queue_ns";

/// Writes one line per message and listener (RFC 4180, with a header line), in the order of the
/// description and of the capture times. Times are in nanoseconds: `capture_ns`, `send_ns` by the
/// talker's clock, `arrive_ns` and `receive_ns` by the listener's; what was not recorded is empty.
/// `late`, `duplicate` and `lost` are 0 or 1, or empty where it is not known what the listener did.
/// A further copy of a message has its own line, with the listener's times only. Messages over TCP
/// follow those of channels.
///
/// # Errors
/// [`io::ErrorKind::InvalidData`] around [`Mismatch`] when the log is of another system; whatever
/// `out` reports.
pub fn csv(system: &System, log: &RunLog, out: &mut impl Write) -> io::Result<()> {
    if !join::ends_fit(system, log) {
        return Err(io::Error::new(io::ErrorKind::InvalidData, Mismatch));
    }
    writeln!(out, "{HEADER}")?;
    for (id, channel) in (0..).map(ChannelId).zip(&system.channels) {
        let joined = join::channel(log, id);
        let network_time = joined.knows_network_time();
        for listener in &joined.listeners {
            let host = &system.node(listener.end.node).name;
            let prefix = format!("{},{}", quoted(&channel.name), quoted(host));
            for message in &listener.messages {
                line(out, &prefix, message, network_time)?;
            }
        }
    }
    for (flow, seen) in system.tcp.iter().zip(&log.tcp) {
        let host = &system.node(flow.listener).name;
        let prefix = format!("{},{}", quoted(&flow.name), quoted(host));
        tcp_lines(out, &prefix, flow.after, seen)?;
    }
    Ok(())
}

fn line(
    out: &mut impl Write,
    prefix: &str,
    message: &Message,
    network_time: bool,
) -> io::Result<()> {
    let sequence = message.talker.or(message.listener).map_or(0, |r| r.sequence);
    write!(out, "{prefix},{sequence}")?;
    let columns = [
        message.capture(),
        message.departed(),
        message.arrived(),
        message.listener.and_then(|r| r.receive),
    ]
    .map(|instant| instant.map(|t| t.as_ns()));
    let computed = [
        message.latency_ns(),
        message.talker_wakeup_ns(),
        message.listener_wakeup_ns(),
        message.relative_wakeup_ns(network_time),
    ];
    for value in columns.into_iter().chain(computed) {
        cell(out, value)?;
    }
    if !message.listener_known {
        write!(out, ",,,")?;
    } else {
        let flags = [message.is_late(), message.duplicate, message.is_lost()].map(u8::from);
        write!(out, ",{},{},{}", flags[0], flags[1], flags[2])?;
    }
    cell(out, message.end_to_end_ns())?;
    cell(out, message.queued().map(|at| at.as_ns()))?;
    writeln!(out)
}

/// A comma, and the value if there is one.
pub(crate) fn cell(out: &mut impl Write, value: Option<impl Display>) -> io::Result<()> {
    match value {
        Some(value) => write!(out, ",{value}"),
        None => write!(out, ","),
    }
}

/// The messages of a TCP flow in the same columns. They have no other ends than their programs, and
/// no copies.
fn tcp_lines(
    out: &mut impl Write,
    prefix: &str,
    after: Span,
    seen: &TcpObserved,
) -> io::Result<()> {
    for (number, message) in seen.messages.iter().enumerate() {
        write!(out, "{prefix},{number},{},,", message.capture.as_ns())?;
        cell(out, message.receive.map(|at| at.as_ns()))?;
        cell(out, tcp::latency_ns(message))?;
        write!(out, ",")?;
        cell(out, tcp::wakeup_ns(message, after))?;
        let late = u8::from(tcp::is_late(message, after));
        let lost = u8::from(seen.failed && message.receive.is_none());
        write!(out, ",,{late},0,{lost}")?;
        cell(out, tcp::end_to_end_ns(message))?;
        writeln!(out, ",")?;
    }
    Ok(())
}

/// A field as RFC 4180 wants it.
pub(crate) fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        return format!("\"{}\"", text.replace('"', "\"\""));
    }
    text.to_owned()
}
