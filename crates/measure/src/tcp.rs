//! What a run measured of messages over TCP. Nothing is promised for them: what a connection does
//! after a loss depends on its timers, which no bound counts with.

use crate::join::ns_between;
use crate::result::Verdict;
use crate::statistics::Statistics;
use onbeat_model::record::RunLog;
use onbeat_model::system::System;
use onbeat_model::tcp::{TcpFlow, TcpMessage, TcpObserved};
use onbeat_model::time::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What one run measured of the messages of one TCP connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TcpResult {
    /// The flow's name.
    pub name: String,
    /// The host that sends.
    pub talker: String,
    /// The host that receives.
    pub listener: String,
    /// Messages that were written.
    pub sent: u64,
    /// Messages whose last octet was read.
    pub received: u64,
    /// Messages that were not, because the connection was given up.
    pub lost: u64,
    /// Messages that were not, because the run ended.
    pub unfinished: u64,
    /// Messages that were read after their tag plus `after_ns`: the federate that reads handles
    /// them at another tag than theirs. By the listener's clock.
    pub late: u64,
    /// Messages beyond those whose times are kept; no other figure holds them.
    pub unrecorded: u64,
    /// Capture (talker's clock) to the reading of the last octet (listener's clock); null when
    /// nothing was received.
    pub latency_ns: Option<Statistics>,
    /// Capture to the instant at which the reader handles the message: its tag plus `after_ns`,
    /// with the wake-up delay, or when it was read, if that is later.
    pub end_to_end_ns: Option<Statistics>,
    /// From the tag to the instant at which a message is to be handled.
    pub after_ns: i64,
    /// Segments with data that were sent, each time.
    pub segments: u64,
    /// Of these, those with octets that had been sent before.
    pub retransmitted: u64,
    /// Times that the retransmission timer expired.
    pub timeouts: u64,
    /// Times that duplicate acknowledgements made the sender send again.
    pub fast_retransmits: u64,
    /// Segments without data that the listener's host sent.
    pub acknowledgements: u64,
    /// Always null: there is no bound.
    pub bound_ns: Option<i64>,
    /// Always `no promise`.
    pub verdict: Verdict,
    /// Why, for a person.
    pub verdict_reason: String,
}

/// Whether what was seen can be of `system`: all its flows, or none where they took no part.
pub(crate) fn fits(system: &System, log: &RunLog) -> bool {
    log.tcp.is_empty() || log.tcp.len() == system.tcp.len()
}

/// The results of all flows.
pub(crate) fn results(system: &System, log: &RunLog) -> Vec<TcpResult> {
    system.tcp.iter().zip(&log.tcp).map(|(flow, seen)| result(system, flow, seen)).collect()
}

fn result(system: &System, flow: &TcpFlow, seen: &TcpObserved) -> TcpResult {
    let sent = seen.messages.len() as u64;
    let of = |value: fn(&TcpMessage) -> Option<i64>| -> Vec<i64> {
        seen.messages.iter().filter_map(value).collect()
    };
    let latencies = of(latency_ns);
    let received = latencies.len() as u64;
    let missing = sent - received;
    let name = |node| system.node(node).name.clone();
    TcpResult {
        name: flow.name.clone(),
        talker: name(flow.talker),
        listener: name(flow.listener),
        sent,
        received,
        lost: if seen.failed { missing } else { 0 },
        unfinished: if seen.failed { 0 } else { missing },
        late: seen.messages.iter().filter(|m| is_late(m, flow.after)).count() as u64,
        unrecorded: seen.unrecorded,
        latency_ns: Statistics::of(latencies),
        end_to_end_ns: Statistics::of(of(end_to_end_ns)),
        after_ns: flow.after.as_ns(),
        segments: seen.segments,
        retransmitted: seen.retransmitted,
        timeouts: seen.timeouts,
        fast_retransmits: seen.fast_retransmits,
        acknowledgements: seen.acknowledgements,
        bound_ns: None,
        verdict: Verdict::NoPromise,
        verdict_reason: "best effort over TCP has no bound".to_owned(),
    }
}

/// Capture to the reading of the last octet.
pub fn latency_ns(message: &TcpMessage) -> Option<i64> {
    Some(ns_between(message.capture, message.receive?))
}

/// Capture to the handling.
pub fn end_to_end_ns(message: &TcpMessage) -> Option<i64> {
    Some(ns_between(message.capture, message.handled?))
}

/// Whether it was read too late to be handled at its tag plus `after`.
pub fn is_late(message: &TcpMessage, after: Span) -> bool {
    let late = |receive| ns_between(message.tag, receive) > after.as_ns();
    message.receive.is_some_and(late)
}

/// Its instant less the handling, of one that was there in time: negative is after it.
pub fn wakeup_ns(message: &TcpMessage, after: Span) -> Option<i64> {
    let handled = message.handled.filter(|_| !is_late(message, after))?;
    Some(after.as_ns().saturating_sub(ns_between(message.tag, handled)))
}
