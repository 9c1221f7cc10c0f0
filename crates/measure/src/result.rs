//! The JSON contract, version 3. `docs/results.md` explains it, `schema/results.schema.json` is
//! made from these types.

use crate::breakdown::Breakdown;
use crate::clocks::ClockResult;
use crate::contract::{indented, schema_of};
use crate::parts::ClockDifference;
use crate::reservations::ReservationsResult;
use crate::stations::StationsResult;
use crate::statistics::Statistics;
use crate::tcp::TcpResult;
use crate::time_errors::TimeErrors;
use onbeat_model::outside::ProgramOutside;
use onbeat_model::record::{Carrier, InterfacePart};
use onbeat_model::system::{System, TimeMode, TransportKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The version of the contract that these types are.
pub const VERSION: u32 = 3;

/// The results of one or more runs of one system. All times are whole nanoseconds. Under one
/// version fields may be added; none is removed, renamed or given another meaning.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Results {
    /// Which contract this is: 3.
    pub version: u32,
    /// The system's name.
    pub system: String,
    /// In the order in which the runs took place.
    pub runs: Vec<RunResult>,
}

impl Results {
    /// The results of `runs` under the current version of the contract.
    pub fn new(system: &str, runs: Vec<RunResult>) -> Self {
        Self { version: VERSION, system: system.to_owned(), runs }
    }

    /// The results as indented JSON that ends with a line feed.
    pub fn to_json(&self) -> String {
        indented(self)
    }
}

/// The JSON Schema of [`Results`]. Ends with a line feed.
pub fn schema() -> String {
    schema_of::<Results>()
}

/// What one run measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunResult {
    /// The scenario's name; empty for the plain run settings.
    pub scenario: String,
    /// What carried its frames. Version 1 had only the emulated network and did not say so.
    #[serde(default)]
    pub network: NetworkResult,
    /// In which time it ran; on networks other than the emulated one it is real.
    pub time: TimeMode,
    /// Where its randomness came from.
    pub seed: u64,
    /// Whether the run made reservations.
    pub protected: bool,
    /// How long talkers were allowed to write.
    pub duration_ns: i64,
    /// SHA-256 of all records, in hexadecimal. Two virtual runs of one description and seed have
    /// the same.
    pub record_hash: String,
    /// How it ended.
    pub ended: Ended,
    /// The engine in real time only: the most by which it ran behind the machine's clock.
    pub lag_max_ns: Option<i64>,
    /// In the order of the description.
    pub channels: Vec<ChannelResult>,
    /// In the order of the description.
    pub chains: Vec<ChainResult>,
    /// The clocks that gPTP steered in the run, hosts first, then bridges; absent if it did not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clocks: Vec<ClockResult>,
    /// On interfaces of several hosts: what messages show of the clocks of those that had some of
    /// each other; absent elsewhere.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clock_differences: Vec<ClockDifference>,
    /// Messages over TCP, in the order of the description; absent if there were none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tcp: Vec<TcpResult>,
    /// Reservations that hosts and bridges made by protocol; absent if they made none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reservations: Option<ReservationsResult>,
    /// What stations of Network Code did that carried the channels; absent if bridges kept them
    /// apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stations: Option<StationsResult>,
    /// What `onbeat run --verify` found; absent without it, and once a report was rebuilt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verification: Option<Verification>,
}

/// Whether a second run was the same, and what programs took from elsewhere than the library.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Verification {
    /// Whether all programs made the same calls both times; null if there was no second run.
    pub is_same: Option<bool>,
    /// What the second run did otherwise first, in words; null if nothing, or if it is not known.
    pub difference: Option<String>,
    /// Programs that join the run, in the order of the description, with their calls outside of
    /// the library in either run.
    pub programs: Vec<ProgramOutside>,
}

/// What carried a run's frames.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NetworkResult {
    /// Which kind of network.
    pub kind: NetworkName,
    /// How frames got there; null on the emulated network.
    pub transport: Option<TransportKind>,
    /// On an interface: which of the description's hosts the run was. Only what its ends did is
    /// known.
    pub host: Option<String>,
    /// On an interface: its name.
    pub interface: Option<String>,
    /// On interfaces: what the network clock read at the instant that the run calls zero, since
    /// 1970 (TAI).
    pub epoch_ns: Option<i64>,
    /// On interfaces of several hosts, or where a part was cut off: whose parts there are. Only
    /// what their ends did is known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<PartResult>,
}

/// A host's part of a run over interfaces.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PartResult {
    /// Which of the description's hosts.
    pub host: String,
    /// The interface's name.
    pub interface: String,
    /// How frames got there.
    pub transport: TransportKind,
    /// Whether the part was lost before it was over: what its ends did is only known up to then.
    #[serde(default)]
    pub cut_off: bool,
    /// What was set on the machine for the time of the run, for a person; absent if nothing was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tuned: Option<String>,
    /// What linuxptp measured of the machine's clock during the run; absent if nothing did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_errors: Option<TimeErrors>,
}

/// A kind of network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum NetworkName {
    /// The network engine.
    #[default]
    Emulated,
    /// Namespaces, links and bridges of one machine's kernel.
    Netns,
    /// An interface of one host.
    Interface,
    /// Interfaces of several hosts, whose parts were joined.
    Interfaces,
}

impl NetworkResult {
    /// The same in a log of `system`.
    pub(crate) fn of(system: &System, network: &Carrier) -> Self {
        match network {
            Carrier::Emulated => Self::default(),
            Carrier::Namespaces { transport } => {
                Self { kind: NetworkName::Netns, transport: Some(*transport), ..Self::default() }
            }
            Carrier::Interfaces { parts, epoch_ns } => Self::over(system, parts, *epoch_ns),
        }
    }

    /// Over the interfaces of one host, or of several.
    fn over(system: &System, parts: &[InterfacePart], epoch_ns: i64) -> Self {
        let of_part = |part: &InterfacePart| PartResult {
            host: system.node(part.host).name.clone(),
            interface: part.name.clone(),
            transport: part.transport,
            cut_off: part.cut_off,
            tuned: part.tuned.clone(),
            time_errors: TimeErrors::of(&part.time_errors),
        };
        let epoch_ns = Some(epoch_ns);
        let parts: Vec<_> = parts.iter().map(of_part).collect();
        let [
            PartResult {
                host,
                interface,
                transport,
                cut_off: false,
                tuned: None,
                time_errors: None,
            },
        ] = &parts[..]
        else {
            let (kind, first) = (NetworkName::Interfaces, parts.first().map(|part| part.transport));
            let is_same = parts.iter().all(|part| Some(part.transport) == first);
            let transport = first.filter(|_| is_same);
            return Self { kind, transport, epoch_ns, parts, ..Self::default() };
        };
        Self {
            kind: NetworkName::Interface,
            transport: Some(*transport),
            host: Some(host.clone()),
            interface: Some(interface.clone()),
            epoch_ns,
            parts: Vec::new(),
        }
    }
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Ended {
    /// It continued for its whole duration.
    Complete,
    /// It was ended before.
    Early {
        /// Network time of the end.
        at_ns: i64,
        /// Why, for a person.
        reason: String,
    },
}

/// What one run measured of one channel. Where it has several listeners, counts and statistics
/// are over the messages of all of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChannelResult {
    /// The channel's name.
    pub name: String,
    /// Whether it had a reservation.
    pub protected: bool,
    /// Messages that the talker wrote; null where that is not known.
    pub sent: Option<u64>,
    /// Of these, those that the declared rate held: the program waited in its write. Null where
    /// that is not known.
    #[serde(default)]
    pub held: Option<u64>,
    /// Of these, those that came sooner than the declared rate alone allows, after one that was
    /// late: bounds count none of them. Null where `held` is.
    #[serde(default)]
    pub caught_up: Option<u64>,
    /// Messages that listeners received, each counted once per listener; null, as are the next
    /// four, where of no listener it is known what it did.
    pub received: Option<u64>,
    /// Messages that were written and never received, counted per listener. Where only listeners
    /// are known: the gaps that they found.
    pub lost: Option<u64>,
    /// Of the lost messages, those that were there to be read and that a full queue dropped because
    /// the program did not come for them; null where the kernel keeps the queue.
    pub overflowed: Option<u64>,
    /// Messages that were received after their capture time plus the fixed delay.
    pub late: Option<u64>,
    /// Of the received ones, those that were older than the channel's lifespan when their program
    /// came for them, which did not have them; null where it has none or that is not known.
    #[serde(default)]
    pub expired: Option<u64>,
    /// Further copies of messages that had been received before.
    pub duplicated: Option<u64>,
    /// Messages that an end handled after its record memory was full; no statistics hold them.
    pub unrecorded: u64,
    /// Capture (talker's clock) to receipt (listener's clock); null when nothing was received.
    pub latency_ns: Option<Statistics>,
    /// Capture (talker's clock) to the instant at which a timed read continued (listener's clock):
    /// what a value's user sees. Null where no listener read so.
    #[serde(default)]
    pub end_to_end_ns: Option<Statistics>,
    /// How exactly both ends woke.
    pub wakeup_error_ns: WakeupErrors,
    /// The plan's worst case over all listeners; null without a reservation.
    pub bound_ns: Option<i64>,
    /// Capture to wake-up of a timed write or read.
    pub fixed_delay_ns: i64,
    /// Whether the channel kept what was promised.
    pub verdict: Verdict,
    /// Why, for a person.
    pub verdict_reason: String,
    /// One per listener, in the order of the description.
    pub listeners: Vec<ListenerResult>,
}

/// What one listener of a channel measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ListenerResult {
    /// The host.
    pub host: String,
    /// Messages that it received; null, as are the next four, where that is not known.
    pub received: Option<u64>,
    /// Messages that were written and that it never received. Where what the talker did is not
    /// known: the gaps that it found.
    pub lost: Option<u64>,
    /// Of the lost messages, those that its full queue dropped; null where the kernel keeps it.
    pub overflowed: Option<u64>,
    /// Messages that it received after their capture time plus the fixed delay.
    pub late: Option<u64>,
    /// Of those received, the messages that had expired and that its program did not have; null
    /// where the channel has no `lifespan_us`, or that is not known.
    #[serde(default)]
    pub expired: Option<u64>,
    /// Further copies of messages that it had received before.
    pub duplicated: Option<u64>,
    /// Capture to receipt.
    pub latency_ns: Option<Statistics>,
    /// The parts of this latency; null where no instant between capture and receipt is known.
    #[serde(default)]
    pub breakdown: Option<Breakdown>,
    /// Target minus wake-up at this listener: negative is after the target.
    pub wakeup_error_ns: Option<Statistics>,
    /// How far apart the talker and this listener woke.
    pub relative_wakeup_error_ns: Option<Statistics>,
    /// By how much this listener woke after the talker; null where that is not known.
    #[serde(default)]
    pub wakeup_offset: Option<WakeupOffset>,
    /// The plan's worst case; null without a reservation.
    pub bound_ns: Option<i64>,
    /// For how long it had no message; null where the channel has no `deadline_us`, or not all that
    /// it did is known.
    #[serde(default)]
    pub silence: Option<Silence>,
}

/// The times between a listener's messages, by its clock and their arrivals: from the run's start
/// to the first one, and from the last one to the end of the run's duration, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Silence {
    /// The longest that the description allows.
    pub deadline_ns: i64,
    /// How many of them were longer.
    pub missed: u64,
    /// The longest.
    pub longest_ns: i64,
    /// When that began.
    pub longest_from_ns: i64,
}

/// Errors of timed wake-ups; null where an end never slept until a message's target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WakeupErrors {
    /// Target minus wake-up at the talker, by its clock: negative is after the target.
    pub talker: Option<Statistics>,
    /// Target minus wake-up at the listeners, by their clocks: negative is after the target.
    pub listener: Option<Statistics>,
    /// How far apart talker and listener woke for the same message, never negative.
    pub relative: Option<Statistics>,
    /// What `relative` was computed from.
    pub relative_basis: Option<RelativeBasis>,
}

/// By how much a listener woke after the talker, for the same message (test 4 of Pérez et al. 2024,
/// section 4, with a channel instead of an oscilloscope).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WakeupOffset {
    /// The offset; negative is before the talker. Between machines it is what both ends' clocks
    /// read, less the middle of what is known of the difference of these clocks.
    pub ns: Statistics,
    /// Each offset may be greater or less by that much, because of the clocks; 0 where the time of
    /// the network is known.
    pub uncertainty_ns: i64,
}

/// From what a relative wake-up error was computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RelativeBasis {
    /// True network time, which an emulation knows: clock errors count as errors.
    NetworkTime,
    /// Both ends' readings of their own clocks: blind to the difference between the clocks.
    ClockReadings,
}

/// Whether what the plan promised was kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The run is complete, every latency is within the bound, and nothing was lost.
    Kept,
    /// A latency exceeded the bound, or a message of a protected channel was lost.
    Broken,
    /// There was no reservation, so nothing was promised.
    #[serde(rename = "no promise")]
    NoPromise,
    /// The run cannot tell: it ended early, nothing was sent, records are missing, a reader's queue
    /// overflowed, or the machine that emulated in real time stalled.
    #[serde(rename = "not judged")]
    NotJudged,
}

impl Verdict {
    /// The verdict as it is in the JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::Broken => "broken",
            Self::NoPromise => "no promise",
            Self::NotJudged => "not judged",
        }
    }
}

/// What one run measured of one chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChainResult {
    /// The chain's name.
    pub name: String,
    /// The names of its channels, in order.
    pub channels: Vec<String>,
    /// Messages received at the end of the chain whose cause at its start is known.
    pub completed: u64,
    /// Capture at the first channel's talker to receipt at the last channel's listeners.
    pub latency_ns: Option<Statistics>,
    /// What the description asks for.
    pub deadline_ns: i64,
    /// The plan's worst case; null if the plan has no bound for the chain.
    pub bound_ns: Option<i64>,
    /// Whether the deadline and the bound were kept.
    pub verdict: Verdict,
    /// Why, for a person.
    pub verdict_reason: String,
}
