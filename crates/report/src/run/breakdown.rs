//! Where the time of messages went: a row for each listener, and two messages as pictures.

use super::table::scenario_name;
use crate::lanes::{LaneMark, Lanes, TimeLane, in_page};
use crate::text::{grouped, us};
use onbeat_measure::{
    Breakdown, ChannelResult, ExampleMessage, ListenerResult, PartName, RunResult, Statistics,
};
use serde::Serialize;

/// The heading of each column. Times are in microseconds: mean, and greatest in brackets.
pub(super) const HEADINGS: [&str; 9] =
    ["Run", "Channel", "To", "n", "send", "queue", "network", "receive", "latency"];

/// So many columns are texts.
pub(super) const TEXTS: usize = 3;

/// A message of a channel, drawn.
#[derive(Debug, Serialize)]
pub(super) struct DrawnMessage {
    /// A whole picture.
    svg: String,
    caption: String,
}

/// The listeners of a channel of which parts of latencies are known.
fn known(channel: &ChannelResult) -> impl Iterator<Item = (&ListenerResult, &Breakdown)> {
    channel.listeners.iter().filter_map(|it| Some((it, it.breakdown.as_ref()?)))
}

/// A row for each listener.
pub(super) fn rows(result: &RunResult) -> Vec<[String; HEADINGS.len()]> {
    let of_channel = |channel| known(channel).map(move |of| row(result, channel, of));
    result.channels.iter().flat_map(of_channel).collect()
}

/// Whether the kernel noted when frames left.
pub(super) fn is_noted(result: &RunResult) -> bool {
    let mut all = result.channels.iter().flat_map(known);
    all.any(|(_, found)| part(found, PartName::Queue).is_some())
}

fn part(found: &Breakdown, name: PartName) -> Option<&Statistics> {
    found.parts.iter().find(|it| it.part == name).map(|it| &it.ns)
}

fn row(
    result: &RunResult,
    channel: &ChannelResult,
    (listener, found): (&ListenerResult, &Breakdown),
) -> [String; HEADINGS.len()] {
    let cell = |ns: &Statistics| format!("{} ({})", us(ns.avg), us(ns.max));
    let cell_of = |name| part(found, name).map_or(String::new(), cell);
    let network = match part(found, PartName::SendAndNetwork) {
        Some(both) => format!("with send: {}", cell(both)),
        None => cell_of(PartName::Network),
    };
    [
        scenario_name(&result.scenario).to_owned(),
        channel.name.clone(),
        listener.host.clone(),
        grouped(found.messages),
        cell_of(PartName::Call) + &cell_of(PartName::Send),
        cell_of(PartName::Queue),
        network,
        cell_of(PartName::Receive),
        cell(&found.latency_ns),
    ]
}

/// The median and the slowest message of a channel, to the listener with the slowest.
pub(super) fn drawn(channel: &ChannelResult, talker: &str) -> Vec<DrawnMessage> {
    let Some((listener, found)) = known(channel).max_by_key(|(_, found)| found.latency_ns.max)
    else {
        return Vec::new();
    };
    let which = ["median", "greatest"];
    let which = which.into_iter().skip(which.len().saturating_sub(found.examples.len()));
    let hosts = [talker, listener.host.as_str()];
    which.zip(&found.examples).map(|it| message(&channel.name, hosts, found, it)).collect()
}

fn message(
    channel: &str,
    [talker, listener]: [&str; 2],
    found: &Breakdown,
    (which, message): (&str, &ExampleMessage),
) -> DrawnMessage {
    let mut from = 0_i64;
    let mut lanes: Vec<TimeLane> = Vec::new();
    let mut said = Vec::new();
    for (part, took) in found.parts.iter().zip(&message.parts_ns) {
        let (name, what) = match part.part {
            PartName::Call => (talker.to_owned(), "program and system call"),
            PartName::Send => (talker.to_owned(), "sending"),
            PartName::Queue => (format!("{talker}: queue"), "in its queues"),
            PartName::Network => ("network".to_owned(), "on the network"),
            PartName::SendAndNetwork => {
                (format!("{talker}, network"), "sending, and on the network")
            }
            PartName::Receive => (listener.to_owned(), "receiving"),
        };
        let end = from.saturating_add(*took);
        said.push(format!("{what} {} µs", us(*took)));
        let label = format!("{what}, {} µs", us(*took));
        let mark = LaneMark { begin_ns: from.min(end), end_ns: from.max(end), label };
        lanes.push(TimeLane { name, marks: vec![mark] });
        from = end;
    }
    let begins = lanes.iter().flat_map(|lane| &lane.marks).map(|mark| mark.begin_ns);
    let from_ns = begins.fold(0, i64::min);
    let title = format!(
        "{channel} to {listener}: message {}, {which} latency, {} µs",
        message.sequence,
        us(from)
    );
    let mut caption = format!("{}.", said.join(", "));
    if let (Some(target), Some(wake)) = (message.wake_target_ns, message.wake_ns) {
        caption += &format!(
            " The reader continued {} µs after the capture, for {} µs.",
            us(wake),
            us(target)
        );
    }
    let svg = in_page(&Lanes { title, from_ns, to_ns: from.max(from_ns), lanes });
    DrawnMessage { svg, caption }
}
