//! Where the time of messages went: the parts of their latency (Austad et al. 2023, section 6.3,
//! measures their sum: "the network stack at both ends" and the network).

use crate::join::{JoinedListener, Message, ns_between};
use crate::statistics::{Statistics, nearest_rank};
use onbeat_model::time::SyncedTime;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The parts of the latency of a listener's messages, as far as instants between capture and
/// receipt are known. Of each message the parts add up to its latency.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Breakdown {
    /// How many messages it is of: those received of which all its instants are known.
    pub messages: u64,
    /// In the order of time.
    pub parts: Vec<LatencyPart>,
    /// The latency of these messages.
    pub latency_ns: Statistics,
    /// The message of median latency, and the one of the greatest: the same if there is but one.
    pub examples: Vec<ExampleMessage>,
}

/// A part of latencies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LatencyPart {
    /// Which.
    pub part: PartName,
    /// How long it took. Between hosts of joined parts of a run, `network` has the difference of
    /// their clocks in it.
    pub ns: Statistics,
}

/// What happens in a part of a latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PartName {
    /// From capture until the kernel's queues get the frame: library and system call.
    Call,
    /// From then until the driver of the interface takes it: the queueing discipline.
    Queue,
    /// From capture until the frame is handed to the emulated network, or to the host's station.
    Send,
    /// From capture until the frame arrives: its departure was not noted.
    SendAndNetwork,
    /// From departure until it arrives at the listener's port.
    Network,
    /// From then until the listening program has the message.
    Receive,
}

/// A message, with the instants between its parts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExampleMessage {
    /// Its number, as the talker counts.
    pub sequence: u64,
    /// When it was captured, by the talker's clock.
    pub capture_ns: i64,
    /// How long each part took, in their order.
    pub parts_ns: Vec<i64>,
    /// What a timed read slept until, after the capture; null without.
    pub wake_target_ns: Option<i64>,
    /// When it continued, after the capture.
    pub wake_ns: Option<i64>,
}

/// The most parts that a latency has.
const PARTS_MAX: usize = 4;
/// The instants between parts.
type Instants = fn(&Message) -> [Option<SyncedTime>; PARTS_MAX - 1];
/// The most detailed parts first; where there are fewer, the first instants count.
const KINDS: [(&[PartName], Instants); 3] = [
    (&[PartName::Call, PartName::Queue, PartName::Network, PartName::Receive], |message| {
        [message.queued(), message.departed(), message.arrived()]
    }),
    (&[PartName::Send, PartName::Network, PartName::Receive], |message| {
        [message.departed(), message.arrived(), None]
    }),
    (&[PartName::SendAndNetwork, PartName::Receive], |message| [message.arrived(), None, None]),
];

/// How long each part of a received message took; 0 beyond so many.
fn parts_of(message: &Message, count: usize, instants: Instants) -> Option<[i64; PARTS_MAX]> {
    message.latency_ns()?;
    let ends = instants(message).into_iter().take(count - 1).chain([message.listener?.receive]);
    let mut from = message.capture()?;
    let mut parts = [0; PARTS_MAX];
    for (part, end) in parts.iter_mut().zip(ends) {
        *part = ns_between(from, end?);
        from = end?;
    }
    Some(parts)
}

/// The breakdown of a listener's latencies; `None` if too little is known of all messages. It has
/// as many parts as are known of half of the messages at least.
pub(crate) fn of_listener(listener: &JoinedListener) -> Option<Breakdown> {
    let received = listener.messages.iter().filter(|m| m.latency_ns().is_some()).count();
    let of_kind = |(names, instants): &(&'static [PartName], Instants)| {
        let known = listener
            .messages
            .iter()
            .filter_map(|message| Some((message, parts_of(message, names.len(), *instants)?)));
        let known: Vec<_> = known.collect();
        (2 * known.len() >= received && !known.is_empty()).then_some((*names, known))
    };
    let (names, mut known) = KINDS.iter().find_map(of_kind)?;
    let parts = names.iter().enumerate().map(|(at, part)| {
        let ns = Statistics::of(known.iter().map(|(_, parts)| parts[at]).collect())?;
        Some(LatencyPart { part: *part, ns })
    });
    let parts = parts.collect::<Option<Vec<_>>>()?;
    // Of equal ones the earlier comes first.
    known.sort_by_key(|(message, _)| message.latency_ns());
    let latencies: Vec<_> = known.iter().filter_map(|(message, _)| message.latency_ns()).collect();
    let mut places = vec![nearest_rank(known.len(), 50, 100), known.len() - 1];
    places.dedup();
    Some(Breakdown {
        messages: known.len() as u64,
        parts,
        latency_ns: Statistics::of_sorted(&latencies)?,
        examples: places.into_iter().filter_map(|at| example(&known[at], names.len())).collect(),
    })
}

fn example(
    (message, parts): &(&Message, [i64; PARTS_MAX]),
    count: usize,
) -> Option<ExampleMessage> {
    let capture = message.capture()?;
    let since = |at: Option<SyncedTime>| at.map(|at| ns_between(capture, at));
    let listener = message.listener?;
    Some(ExampleMessage {
        sequence: message.talker.map_or(listener.sequence, |talker| talker.sequence),
        capture_ns: capture.as_ns(),
        parts_ns: parts[..count].to_vec(),
        wake_target_ns: since(listener.wake_target),
        wake_ns: since(listener.wake),
    })
}
