//! `system.toml` as it is written: every key optional, so that one wrong key hides no other. What
//! must be there is said to the schema (`required`) and enforced by the check.

mod class;

pub(super) use class::ClassName;

use super::at::At;
use onbeat_model::binding::ValueType;
use onbeat_model::dedicated::BestEffortPolicy;
use onbeat_model::device::BuiltInDevice;
use onbeat_model::fragment;
use onbeat_model::integrity::Integrity;
use onbeat_model::limits;
use onbeat_model::system::{
    Backend, IdleSlopes, Quantity, ReservationMode, Routing, SchedulingPolicy, StampKind, TimeMode,
    TuneProfile,
};
use onbeat_model::time::ClockError;
use onbeat_model::units::frame;
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;

// The ends of ranges that the schema states, in the keys' units.
const MONTH_NS: i64 = limits::DURATION.as_ns();
const MONTH_US: i64 = MONTH_NS / 1_000;
const MONTH_MS: i64 = MONTH_US / 1_000;
const MONTH_S: i64 = MONTH_MS / 1_000;
const DELAY_NS: i64 = limits::DELAY.as_ns();
const TICK_NS: i64 = limits::TICK.as_ns();
const SLOT_ERROR_US: i64 = limits::SLOT_ERROR.as_ns() / 1_000;
const DEDICATED_WAIT_NS: i64 = limits::DEDICATED_WAIT.as_ns();
const BUDGET_US: i64 = limits::BUDGET_PERIOD.as_ns() / 1_000;
const HANG_S: i64 = limits::HANG_TIMEOUT.as_ns() / 1_000_000_000;
const OFFSET_NS: i64 = limits::CLOCK_OFFSET.as_ns();
const STEP_NS: i64 = limits::CLOCK_STEP.as_ns();
const WANDER_NS: i64 = limits::WANDER.as_ns();
const DRIFT_PPB: i64 = ClockError::MAX_DRIFT_PPB as i64;
const LINK_MBPS: i64 = limits::LINK_BPS / 1_000_000;
const HZ: i64 = 1_000_000_000;
const FRAME_LEAST: i64 = frame::MIN_TAGGED.get() as i64;
const FRAME_MOST: i64 = frame::MAX_TAGGED.get() as i64;
/// A bucket holds a frame as it is on the wire.
const BUCKET_LEAST: i64 = frame::on_wire(frame::MIN_TAGGED).get() as i64;
const MESSAGE_MOST: i64 = fragment::MESSAGE_MAX.get() as i64;
const UDP_MOST: i64 = frame::MAX_UDP_PAYLOAD.get() as i64;

/// One distributed real-time system, as Onbeat reads it from `system.toml`.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Onbeat system description")]
#[expect(dead_code, reason = "for schema and key list; tables are read one by one")]
pub(super) struct File {
    /// Version of this format: 1.
    #[schemars(required)]
    #[schemars(range(min = 1, max = 1))]
    pub(super) format: Option<At<i64>>,
    /// The system's name: letters, digits, `-`, `_`.
    #[schemars(required)]
    pub(super) name: Option<At<String>>,
    /// A C manifest, relative to this file, that gives the channels' attributes.
    pub(super) manifest: Option<At<String>>,
    /// Which paths channels take: `shortest`, or `load-aware` where these overload a port;
    /// `shortest` by default.
    pub(super) routing: Option<At<Routing>>,
    /// What idleSlopes are chosen for: `rate`, or also `deadline` where fixed delays need more;
    /// `rate` by default.
    pub(super) idle_slopes: Option<At<IdleSlopes>>,
    /// Tables that are there several times.
    group: Option<Vec<Group>>,
    /// How to run when nothing else is asked for.
    run: Option<Run>,
    /// Named variations of `[run]`.
    scenario: Option<Vec<Scenario>>,
    /// Clocks that gPTP keeps together.
    synchronisation: Option<Synchronisation>,
    /// What hosts and bridges can do at most.
    device: Option<Vec<Device>>,
    /// End stations.
    host: Option<Vec<Host>>,
    /// Bridges.
    bridge: Option<Vec<Bridge>>,
    /// Links.
    link: Option<Vec<Link>>,
    /// How ports send.
    port: Option<Vec<Port>>,
    /// Modelled traffic.
    stream: Option<Vec<Stream>>,
    /// Injected faults.
    fault: Option<Vec<Fault>>,
    /// Network channels.
    channel: Option<Vec<Channel>>,
    /// Programs that a run starts.
    program: Option<Vec<Program>>,
    /// Best-effort traffic sources.
    noise: Option<Vec<Noise>>,
    /// Messages over TCP.
    tcp: Option<Vec<Tcp>>,
    /// Deadlines over several channels.
    chain: Option<Vec<Chain>>,
    /// Channels that share slots of stations.
    alternatives: Option<Vec<Alternatives>>,
    /// Published figures.
    reference: Option<Vec<Reference>>,
}

/// Tables that are there several times. Texts of theirs may have expressions in braces, such as
/// `io{rack}-{io:02}`, and numbers may be texts such as `=1 + 32*rack + io`.
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "for schema and key list; tables are read one by one")]
pub(super) struct Group {
    /// The name of its index, which counts from 0: letters, digits, `_`.
    #[schemars(required)]
    pub(super) name: Option<At<String>>,
    /// How many times its tables are there.
    #[schemars(required)]
    #[schemars(range(min = 1, max = limits::GROUP_COUNT))]
    pub(super) count: Option<At<i64>>,
    /// End stations.
    host: Option<Vec<Host>>,
    /// Bridges.
    bridge: Option<Vec<Bridge>>,
    /// Links.
    link: Option<Vec<Link>>,
    /// How ports send.
    port: Option<Vec<Port>>,
    /// Modelled traffic.
    stream: Option<Vec<Stream>>,
    /// Injected faults.
    fault: Option<Vec<Fault>>,
    /// Network channels.
    channel: Option<Vec<Channel>>,
    /// Programs that a run starts.
    program: Option<Vec<Program>>,
    /// Best-effort traffic sources.
    noise: Option<Vec<Noise>>,
    /// Messages over TCP.
    tcp: Option<Vec<Tcp>>,
    /// Deadlines over several channels.
    chain: Option<Vec<Chain>>,
    /// Groups of which each copy of this one has all copies.
    group: Option<Vec<Group>>,
}

/// How to run when nothing else is asked for.
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Run {
    /// How long talkers may write, in seconds. Give this or `duration_ms`.
    #[schemars(range(min = 1, max = MONTH_S))]
    pub(super) duration_s: Option<At<i64>>,
    /// How long talkers may write, in milliseconds.
    #[schemars(range(min = 1, max = MONTH_MS))]
    pub(super) duration_ms: Option<At<i64>>,
    /// Seed of all random numbers; 0 by default.
    pub(super) seed: Option<At<u64>>,
    /// Which engine; `virtual` by default.
    pub(super) time: Option<At<TimeMode>>,
    /// Whether reservations are made; true by default.
    pub(super) protected: Option<At<bool>>,
    /// Who makes them: `plan` before the run, `srp` in the run by protocol; `plan` by default.
    pub(super) reservation: Option<At<ReservationMode>>,
    /// What keeps channels apart: reservations, shapers and gates of `bridges`, or slots of hosts
    /// that run `network-code`; `bridges` by default.
    pub(super) backend: Option<At<Backend>>,
    /// By how many microseconds stations may hand over frames, and take what has come, later than
    /// their programs say; 0 by default on the emulated network, 100 on others.
    #[schemars(range(min = 0, max = SLOT_ERROR_US))]
    pub(super) slot_error_us: Option<At<i64>>,
    /// Whether noise sources send; true by default.
    pub(super) noise: Option<At<bool>>,
    /// Whether programs run that do not join, such as loads; true by default.
    pub(super) companions: Option<At<bool>>,
    /// How the system schedules programs with a priority, in real-time runs: `fifo`, `rr`,
    /// `deadline` by their budgets, or `other`, without their priorities and CPUs; `fifo` by
    /// default.
    pub(super) policy: Option<At<SchedulingPolicy>>,
    /// What runs on several machines set there for their time: a profile of `onbeat tune`, or
    /// `off`, by default.
    pub(super) tune: Option<At<TuneProfile>>,
    /// Seconds on the machine's clock that a program may compute without calling Onbeat before
    /// it counts as hung; 30 by default.
    #[schemars(range(min = 1, max = HANG_S))]
    pub(super) hang_timeout_s: Option<At<i64>>,
    /// The most memory that all programs together may use, in octets; any by default.
    #[schemars(range(min = limits::MEMORY_MIN, max = limits::MEMORY_MAX))]
    pub(super) memory_max_octets: Option<At<i64>>,
    /// The most processes and threads that all programs together may have; any by default.
    #[schemars(range(min = 1, max = limits::PROCESSES))]
    pub(super) processes_max: Option<At<i64>>,
}

/// A named variation of `[run]`: what it leaves out is taken from there.
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Scenario {
    /// Unique among scenarios.
    #[schemars(required)]
    pub(super) name: Option<At<String>>,
    /// As in `[run]`.
    #[schemars(range(min = 1, max = MONTH_S))]
    pub(super) duration_s: Option<At<i64>>,
    /// As in `[run]`.
    #[schemars(range(min = 1, max = MONTH_MS))]
    pub(super) duration_ms: Option<At<i64>>,
    /// As in `[run]`.
    pub(super) seed: Option<At<u64>>,
    /// As in `[run]`.
    pub(super) time: Option<At<TimeMode>>,
    /// As in `[run]`.
    pub(super) protected: Option<At<bool>>,
    /// As in `[run]`.
    pub(super) reservation: Option<At<ReservationMode>>,
    /// As in `[run]`.
    pub(super) backend: Option<At<Backend>>,
    /// As in `[run]`.
    #[schemars(range(min = 0, max = SLOT_ERROR_US))]
    pub(super) slot_error_us: Option<At<i64>>,
    /// As in `[run]`.
    pub(super) noise: Option<At<bool>>,
    /// As in `[run]`.
    pub(super) companions: Option<At<bool>>,
    /// As in `[run]`.
    pub(super) policy: Option<At<SchedulingPolicy>>,
    /// As in `[run]`.
    pub(super) tune: Option<At<TuneProfile>>,
    /// As in `[run]`.
    #[schemars(range(min = 1, max = HANG_S))]
    pub(super) hang_timeout_s: Option<At<i64>>,
    /// Programs that are scheduled otherwise.
    pub(super) program: Option<Vec<At<ScenarioProgram>>>,
}

/// How a scenario schedules a program: what it leaves out is as in the program's own table.
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ScenarioProgram {
    /// The program.
    #[schemars(required)]
    pub(super) name: Option<At<String>>,
    /// As in `[[program]]`.
    pub(super) policy: Option<At<SchedulingPolicy>>,
    /// As in `[[program]]`.
    #[schemars(range(min = 1, max = 99))]
    pub(super) priority: Option<At<i64>>,
    /// As in `[[program]]`.
    #[schemars(inner(range(min = 0, max = limits::CORE)))]
    pub(super) cores: Option<At<Vec<At<i64>>>>,
    /// As in `[[program]]`.
    #[schemars(range(min = 2, max = BUDGET_US))]
    pub(super) budget_us: Option<At<i64>>,
    /// As in `[[program]]`.
    #[schemars(range(min = 2, max = BUDGET_US))]
    pub(super) budget_deadline_us: Option<At<i64>>,
    /// As in `[[program]]`.
    #[schemars(range(min = 100, max = BUDGET_US))]
    pub(super) budget_period_us: Option<At<i64>>,
}

/// Clocks that gPTP keeps together: those of all nodes that have no `clock`.
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Synchronisation {
    /// The host or bridge whose clock the others follow.
    #[schemars(required)]
    pub(super) grandmaster: Option<At<String>>,
    /// How nodes note the times of messages; `hardware` by default.
    pub(super) timestamping: Option<At<StampKind>>,
    /// Seed of oscillators, delays and jitter; 0 by default.
    pub(super) seed: Option<At<u64>>,
    /// Whether gPTP takes part in runs and simulations, so that faults of theirs change clocks;
    /// false by default.
    pub(super) in_run: Option<At<bool>>,
}

/// How a node's copy of the network clock differs from true network time.
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Clock {
    /// Error at the start, in nanoseconds; positive is ahead; 0 by default.
    #[schemars(range(min = -OFFSET_NS, max = OFFSET_NS))]
    pub(super) offset_ns: Option<At<i64>>,
    /// Rate error in parts per 10⁹; positive is fast; 0 by default.
    #[schemars(range(min = -DRIFT_PPB, max = DRIFT_PPB))]
    pub(super) drift_ppb: Option<At<i64>>,
    /// How far its error swings either way, in nanoseconds; 0 by default. Needs
    /// `wander_period_ms`.
    #[schemars(range(min = 0, max = WANDER_NS))]
    pub(super) wander_ns: Option<At<i64>>,
    /// How long one swing takes, there and back, in milliseconds.
    #[schemars(range(min = 1, max = MONTH_MS))]
    pub(super) wander_period_ms: Option<At<i64>>,
}

/// A delay: `min` and `max` for a uniform one, or a `histogram`.
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Delay {
    /// The shortest, in nanoseconds.
    #[schemars(range(min = 0, max = DELAY_NS))]
    pub(super) min: Option<At<i64>>,
    /// The longest, in nanoseconds.
    #[schemars(range(min = 0, max = DELAY_NS))]
    pub(super) max: Option<At<i64>>,
    /// Pairs of a value in nanoseconds and its weight.
    pub(super) histogram: Option<At<Histogram>>,
}

/// What a device can do at most, at each of its ports: what is left out is unknown, and so not
/// limited.
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Device {
    /// Unique among devices, and not that of a built-in one: letters, digits, `-`, `_`.
    #[schemars(required)]
    pub(super) name: Option<At<String>>,
    /// A built-in device, whose limits hold where this table has none.
    pub(super) base: Option<At<BuiltInDevice>>,
    /// Queues of a port, each for one traffic class.
    #[schemars(range(min = 1, max = 8))]
    pub(super) traffic_classes: Option<At<i64>>,
    /// Queues of a port that may have a credit-based shaper.
    #[schemars(range(min = 0, max = 8))]
    pub(super) credit_based_shapers: Option<At<i64>>,
    /// Whether there are gates.
    pub(super) gates: Option<At<bool>>,
    /// Entries of a gate control list.
    #[schemars(range(min = 1, max = limits::DEVICE_ENTRIES))]
    pub(super) supported_list_max: Option<At<i64>>,
    /// Entries of the gate control lists of all ports together.
    #[schemars(range(min = 1, max = limits::DEVICE_ENTRIES))]
    pub(super) shared_list_max: Option<At<i64>>,
    /// How often a gate may open in a cycle.
    #[schemars(range(min = 1, max = limits::DEVICE_ENTRIES))]
    pub(super) openings_max: Option<At<i64>>,
    /// How long a cycle may take, in nanoseconds.
    #[schemars(range(min = 1, max = MONTH_NS))]
    pub(super) supported_cycle_max_ns: Option<At<i64>>,
    /// How long an entry may take, in nanoseconds.
    #[schemars(range(min = 1, max = MONTH_NS))]
    pub(super) supported_interval_max_ns: Option<At<i64>>,
    /// How long an entry has to take at least, in nanoseconds.
    #[schemars(range(min = 1, max = TICK_NS))]
    pub(super) interval_min_ns: Option<At<i64>>,
    /// Base time, cycle and entries are multiples of it, in nanoseconds.
    #[schemars(range(min = 1, max = TICK_NS))]
    pub(super) tick_granularity_ns: Option<At<i64>>,
    /// Whether a frame starts only if it ends before its gate closes.
    pub(super) length_aware: Option<At<bool>>,
    /// Whether a bridge may forward a frame before it has all of it.
    pub(super) cut_through: Option<At<bool>>,
    /// Whether queues may be preemptable.
    pub(super) preemption: Option<At<bool>>,
    /// Whether there is asynchronous traffic shaping.
    pub(super) asynchronous: Option<At<bool>>,
    /// Whether a bridge eliminates duplicates of replicated frames (802.1CB).
    pub(super) elimination: Option<At<bool>>,
}

/// An end station. It has exactly one link.
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Host {
    /// Unique among hosts and bridges: letters, digits, `-`, `_`.
    #[schemars(required)]
    pub(super) name: Option<At<String>>,
    /// What it is: a `[[device]]`, or `i210`, `i225`, `lan9662`, `veth`; without, nothing is
    /// known of its limits.
    pub(super) device: Option<At<String>>,
    /// Its address; 02:00:00:00 and its number among the hosts by default.
    pub(super) mac: Option<At<String>>,
    /// Error of its clock; none by default.
    pub(super) clock: Option<Clock>,
    /// From a program's write to the frame being queued at the port; zero by default.
    pub(super) stack_tx_ns: Option<At<Delay>>,
    /// From a frame's last octet at the port to the reader continuing; zero by default.
    pub(super) stack_rx_ns: Option<At<Delay>>,
    /// From the target of a timed sleep to the program continuing; zero by default.
    pub(super) wakeup_ns: Option<At<Delay>>,
    /// Processors that the tasks of its programs share, in the analysis and in virtual time;
    /// without, each task has one to itself.
    #[schemars(range(min = 1, max = limits::CORE + 1))]
    pub(super) cores: Option<At<i64>>,
    /// Frames that each queue of the port holds; 1000 by default.
    #[schemars(range(min = 1, max = limits::QUEUE_FRAMES))]
    pub(super) queue_frames: Option<At<i64>>,
    /// Octets of frames that each queue of the port holds; 16 MiB by default.
    #[schemars(range(min = limits::QUEUE_OCTETS_LEAST, max = limits::QUEUE_OCTETS))]
    pub(super) queue_octets: Option<At<i64>>,
}

/// A VLAN bridge.
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Bridge {
    /// Unique among hosts and bridges: letters, digits, `-`, `_`.
    #[schemars(required)]
    pub(super) name: Option<At<String>>,
    /// What it is: a `[[device]]`, or `i210`, `i225`, `lan9662`, `veth`; without, nothing is
    /// known of its limits.
    pub(super) device: Option<At<String>>,
    /// Error of its clock; none by default.
    pub(super) clock: Option<Clock>,
    /// From a frame's last octet in to its being queued at the port out; 0 by default.
    #[schemars(range(min = 0, max = DELAY_NS))]
    pub(super) forwarding_ns: Option<At<i64>>,
    /// Frames that each queue of a port holds; 1000 by default.
    #[schemars(range(min = 1, max = limits::QUEUE_FRAMES))]
    pub(super) queue_frames: Option<At<i64>>,
    /// Octets of frames that each queue of a port holds; 512 KiB by default.
    #[schemars(range(min = limits::QUEUE_OCTETS_LEAST, max = limits::QUEUE_OCTETS))]
    pub(super) queue_octets: Option<At<i64>>,
    /// Octets of frames that the queues of all ports hold together; no such limit by default.
    #[schemars(range(min = limits::QUEUE_OCTETS_LEAST, max = limits::QUEUE_OCTETS))]
    pub(super) shared_buffer_octets: Option<At<i64>>,
    /// Whether a frame continues as soon as its addresses, tag and EtherType are in; false by
    /// default.
    pub(super) cut_through: Option<At<bool>>,
    /// Whether it learns where hosts are from best-effort frames, and floods those to hosts that
    /// it does not know; false by default.
    pub(super) learning: Option<At<bool>>,
    /// A path of its own for frames of stations of Network Code, beside which all else is best
    /// effort; none by default.
    pub(super) dedicated_path: Option<At<DedicatedPath>>,
}

/// What frames of stations pass beside best effort.
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DedicatedPath {
    /// What happens to best effort in transmission that is in the way: it is aborted and sent again
    /// (`retry`), aborted and lost (`drop`), or ends first (`finish`); `retry` by default.
    pub(super) on_best_effort: Option<At<BestEffortPolicy>>,
    /// How much later frames leave than the hardware needs, in nanoseconds; 0 by default.
    #[schemars(range(min = 0, max = DEDICATED_WAIT_NS))]
    pub(super) wait_ns: Option<At<i64>>,
}

/// A full-duplex point-to-point link.
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Link {
    /// Two ends, each `node` or `node.port`; ports without a name become p1, p2, …
    #[schemars(required)]
    pub(super) ends: Option<At<[At<String>; 2]>>,
    /// Rate in each direction in 10⁶ bits per second. Give this or `rate_bps`.
    #[schemars(range(min = 1, max = LINK_MBPS))]
    pub(super) rate_mbps: Option<At<i64>>,
    /// Rate in each direction in bits per second.
    #[schemars(range(min = 1, max = limits::LINK_BPS))]
    pub(super) rate_bps: Option<At<i64>>,
    /// Propagation delay in nanoseconds; 0 by default.
    #[schemars(range(min = 0, max = DELAY_NS))]
    pub(super) propagation_ns: Option<At<i64>>,
}

/// How one or more ports send. A port without one has eight queues in strict priority.
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Port {
    /// `node.port`, or a host. Give this or `names`.
    pub(super) name: Option<At<String>>,
    /// Several ports that send alike.
    pub(super) names: Option<At<Vec<At<String>>>>,
    /// Per queue with a credit-based shaper, its idleSlope in 10⁶ bits per second. Give this or
    /// `idle_slope_bps`.
    pub(super) idle_slope_mbps: Option<At<Slopes>>,
    /// The same in bits per second.
    pub(super) idle_slope_bps: Option<At<Slopes>>,
    /// Queues with asynchronous traffic shaping; none by default.
    #[schemars(inner(range(min = 0, max = 7)))]
    pub(super) asynchronous: Option<At<Vec<At<i64>>>>,
    /// Gate control lists in the order of their base times; none by default.
    pub(super) gates: Option<At<Vec<At<Gates>>>>,
    /// Queues whose frames those of all others may interrupt; none by default.
    #[schemars(inner(range(min = 0, max = 7)))]
    pub(super) preemptable: Option<At<Vec<At<i64>>>>,
    /// VLANs whose frames leave here; all by default.
    #[schemars(inner(range(min = 1, max = 4_094)))]
    pub(super) vlans: Option<At<Vec<At<i64>>>>,
}

/// Queues, 0 to 7, and their rates.
pub(super) type Slopes = BTreeMap<String, At<i64>>;

/// One gate control list.
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Gates {
    /// When its first cycle starts, by the node's clock; 0 by default. AdminBaseTime of 802.1Q
    /// 12.29.1.
    #[schemars(range(min = 0, max = MONTH_NS))]
    pub(super) base_time_ns: Option<At<i64>>,
    /// How long a cycle takes; all entries together by default. AdminCycleTime.
    #[schemars(range(min = 1, max = MONTH_NS))]
    pub(super) cycle_time_ns: Option<At<i64>>,
    /// Whether a frame starts only if it ends before its gate closes; true by default.
    pub(super) length_aware: Option<At<bool>>,
    /// The states of the gates, in order.
    #[schemars(required)]
    pub(super) entries: Option<At<Vec<At<GateEntry>>>>,
}

/// One state of a port's gates.
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct GateEntry {
    /// Queues that may send; all others may not.
    #[schemars(required)]
    #[schemars(inner(range(min = 0, max = 7)))]
    pub(super) open: Option<At<Vec<At<i64>>>>,
    /// For how long, in nanoseconds. TimeInterval.
    #[schemars(required)]
    #[schemars(range(min = 1, max = MONTH_NS))]
    pub(super) interval_ns: Option<At<i64>>,
}

/// A stream of frames that the engine makes itself.
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Stream {
    /// Unique among streams and channels: letters, digits, `-`, `_`.
    #[schemars(required)]
    pub(super) name: Option<At<String>>,
    /// The host that sends.
    #[schemars(required)]
    pub(super) talker: Option<At<String>>,
    /// The hosts that receive.
    #[schemars(required)]
    pub(super) listeners: Option<At<Vec<At<String>>>>,
    /// Its queue at every port, 0 to 7.
    #[schemars(required)]
    #[schemars(range(min = 0, max = 7))]
    pub(super) traffic_class: Option<At<i64>>,
    /// VLAN identifier; 2 by default.
    #[schemars(range(min = 1, max = 4_094))]
    pub(super) vlan: Option<At<i64>>,
    /// Priority code point; the one that 802.1Q gives the traffic class by default.
    #[schemars(range(min = 0, max = 7))]
    pub(super) pcp: Option<At<i64>>,
    /// Its longest frame, destination address to FCS, tagged: 68 to 1522. Not with a trace.
    #[schemars(range(min = FRAME_LEAST, max = FRAME_MOST))]
    pub(super) frame_octets: Option<At<i64>>,
    /// Its shortest frame; the longest by default.
    #[schemars(range(min = FRAME_LEAST, max = FRAME_MOST))]
    pub(super) frame_octets_min: Option<At<i64>>,
    /// From one frame or burst to the next, in nanoseconds. Give this, `rate_hz`, `trace` or
    /// `trace_file`.
    #[schemars(range(min = 1, max = MONTH_NS))]
    pub(super) interval_ns: Option<At<i64>>,
    /// Frames or bursts per second.
    #[schemars(range(min = 1, max = HZ))]
    pub(super) rate_hz: Option<At<i64>>,
    /// By how much a frame may be later than its instant; 0 by default.
    #[schemars(range(min = 0, max = DELAY_NS))]
    pub(super) jitter_ns: Option<At<i64>>,
    /// Makes it sporadic: the mean time between two frames, of which the interval is the least.
    #[schemars(range(min = 1, max = MONTH_NS))]
    pub(super) mean_interval_ns: Option<At<i64>>,
    /// Makes it bursty: frames at once, each interval.
    #[schemars(range(min = 1, max = limits::BURST_FRAMES))]
    pub(super) burst_frames: Option<At<i64>>,
    /// Exactly these frames: pairs of a time in nanoseconds and octets, by time.
    pub(super) trace: Option<At<Trace>>,
    /// A file, relative to this one, with such a pair in each line: `1500,68`.
    pub(super) trace_file: Option<At<String>>,
    /// When its source starts, by the talker's clock; 0 by default.
    #[schemars(range(min = 0, max = MONTH_NS))]
    pub(super) phase_ns: Option<At<i64>>,
    /// Its token bucket at queues with asynchronous shaping.
    pub(super) regulator: Option<At<Bucket>>,
    /// What its first bridge drops.
    pub(super) policing: Option<At<Policing>>,
    /// Paths that it must take, each the bridges between talker and listener; with two or more its
    /// frames are replicated. The shortest path by default.
    pub(super) paths: Option<At<Paths>>,
    /// Its frames are replicated over so many paths that the plan finds, without a common bridge
    /// in between. Give this or `paths`.
    #[schemars(range(min = 2, max = limits::DISJOINT_PATHS))]
    pub(super) disjoint_paths: Option<At<i64>>,
    /// With two or more paths, how many sequence numbers back a duplicate is recognised; 64 by
    /// default.
    #[schemars(range(min = 2, max = limits::HISTORY))]
    pub(super) history: Option<At<i64>>,
    /// Release to receipt in microseconds; none by default.
    #[schemars(range(min = 1, max = MONTH_US))]
    pub(super) deadline_us: Option<At<i64>>,
}

/// Pairs of a time in nanoseconds and the octets of a frame.
pub(super) type Trace = Vec<At<(i64, i64)>>;

/// Per path its bridges.
pub(super) type Paths = Vec<At<Vec<At<String>>>>;

/// A token bucket. What it counts is the frame on the wire, with preamble and gap.
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Bucket {
    /// By how much it fills, in 10⁶ bits per second. Give this or `rate_bps`.
    #[schemars(range(min = 1, max = LINK_MBPS))]
    pub(super) rate_mbps: Option<At<i64>>,
    /// The same in bits per second.
    #[schemars(range(min = 1, max = limits::LINK_BPS))]
    pub(super) rate_bps: Option<At<i64>>,
    /// What it holds.
    #[schemars(required)]
    #[schemars(range(min = BUCKET_LEAST, max = limits::BUCKET_OCTETS))]
    pub(super) burst_octets: Option<At<i64>>,
}

/// What the first bridge on a stream's way drops.
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Policing {
    /// Frames beyond a token bucket: by how much that fills, in 10⁶ bits per second. Give this or
    /// `rate_bps`.
    #[schemars(range(min = 1, max = LINK_MBPS))]
    pub(super) rate_mbps: Option<At<i64>>,
    /// The same in bits per second.
    #[schemars(range(min = 1, max = limits::LINK_BPS))]
    pub(super) rate_bps: Option<At<i64>>,
    /// What the bucket holds; frames count as on the wire, with preamble and gap.
    #[schemars(range(min = BUCKET_LEAST, max = limits::BUCKET_OCTETS))]
    pub(super) burst_octets: Option<At<i64>>,
    /// Frames that are longer, destination address to FCS.
    #[schemars(range(min = FRAME_LEAST, max = FRAME_MOST))]
    pub(super) frame_octets_max: Option<At<i64>>,
    /// Whether, once it has dropped a frame, it drops all later ones; false by default.
    pub(super) block: Option<At<bool>>,
}

/// Something that goes wrong for a while: exactly one of `link`, `node` and `babble`.
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Fault {
    /// The link of this port fails, or damages frames if `errors_ppb` is given.
    pub(super) link: Option<At<String>>,
    /// Of the frames on the link, either way, so many parts per 10⁹ are damaged and thus lost.
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub(super) errors_ppb: Option<At<i64>>,
    /// This host or bridge fails, or its clock steps if `clock_step_ns` is given.
    pub(super) node: Option<At<String>>,
    /// The node works, but its clock reads so many nanoseconds more, or less if it is negative.
    #[schemars(range(min = -STEP_NS, max = STEP_NS))]
    pub(super) clock_step_ns: Option<At<i64>>,
    /// This stream sends its longest frame back to back.
    pub(super) babble: Option<At<String>>,
    /// From when on, in milliseconds; 0 by default.
    #[schemars(range(min = 0, max = MONTH_MS))]
    pub(super) from_ms: Option<At<i64>>,
    /// Until when, without it; for ever by default.
    #[schemars(range(min = 1, max = MONTH_MS))]
    pub(super) until_ms: Option<At<i64>>,
}

/// A network channel. With a manifest, what the manifest says need not be repeated.
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Channel {
    /// Unique, a C identifier of at most 31 octets.
    #[schemars(required)]
    pub(super) name: Option<At<String>>,
    /// A group address or a host's.
    pub(super) destination: Option<At<String>>,
    /// IEEE 1722 stream identifier, unique, not 0.
    #[schemars(range(min = 1, max = u64::MAX))]
    pub(super) stream_id: Option<At<u64>>,
    /// Stream class.
    pub(super) class: Option<At<ClassName>>,
    /// Octets of each message; those of `type` by default. Above 1476 it is sent in several frames.
    #[schemars(range(min = 1, max = MESSAGE_MOST))]
    pub(super) size_octets: Option<At<i64>>,
    /// The C struct that each message is: a file, relative to this one, and a struct or typedef
    /// in it, as in "messages.h:sample".
    #[serde(rename = "type")]
    pub(super) message_type: Option<At<String>>,
    /// Messages per second at most. Give this or `interval_ns`.
    #[schemars(range(min = 1, max = HZ))]
    pub(super) rate_hz: Option<At<i64>>,
    /// Least mean time between two messages in nanoseconds.
    #[schemars(range(min = 1, max = MONTH_NS))]
    pub(super) interval_ns: Option<At<i64>>,
    /// Messages that may come at once after a pause: a token bucket of so many, filled by one each
    /// interval; 1 by default.
    #[schemars(range(min = 1, max = limits::BURST))]
    pub(super) burst_messages: Option<At<i64>>,
    /// What frames carry behind the message, and readers check; "none" by default. A CRC takes 8
    /// octets of the payload's room, a tag 32.
    pub(super) integrity: Option<At<Integrity>>,
    /// The host that writes.
    #[schemars(required)]
    pub(super) talker: Option<At<String>>,
    /// Readers accept frames of this station only: the address of the talker's interface.
    pub(super) talker_address: Option<At<String>>,
    /// The hosts that read.
    #[schemars(required)]
    pub(super) listeners: Option<At<Vec<At<String>>>>,
    /// Paths that it must take, each the bridges between talker and listener; with two or more its
    /// frames are replicated. The plan's choice by default.
    pub(super) paths: Option<At<Paths>>,
    /// Its frames are replicated over so many paths that the plan finds, without a common bridge
    /// in between. Give this or `paths`.
    #[schemars(range(min = 2, max = limits::DISJOINT_PATHS))]
    pub(super) disjoint_paths: Option<At<i64>>,
    /// With two or more paths, how many sequence numbers back a duplicate is recognised; 64 by
    /// default.
    #[schemars(range(min = 2, max = limits::HISTORY))]
    pub(super) history: Option<At<i64>>,
    /// Capture to wake-up of `write_wait` and `read_wait`, in microseconds; the class's by
    /// default: A 2000, B 50000, scheduled 100.
    #[schemars(range(min = 1, max = DELAY_NS / 1_000))]
    pub(super) fixed_delay_us: Option<At<i64>>,
    /// The longest time between two messages at a listener, in microseconds, before it counts as
    /// a deadline missed; none by default.
    #[schemars(range(min = 1, max = MONTH_NS / 1_000))]
    pub(super) deadline_us: Option<At<i64>>,
    /// The age above which listeners do not get a message, in microseconds; none by default.
    #[schemars(range(min = 1, max = MONTH_NS / 1_000))]
    pub(super) lifespan_us: Option<At<i64>>,
    /// Whether it is reserved for when the run is protected; true by default.
    pub(super) reserve: Option<At<bool>>,
    /// VLAN identifier; 2 by default.
    #[schemars(range(min = 1, max = 4_094))]
    pub(super) vlan: Option<At<i64>>,
    /// Priority code point; the class's by default: A 3, B 2, scheduled 5.
    #[schemars(range(min = 0, max = 7))]
    pub(super) pcp: Option<At<i64>>,
    /// When a modelled talker sends its first message; 0 by default.
    #[schemars(range(min = 0, max = MONTH_NS))]
    pub(super) phase_ns: Option<At<i64>>,
    /// Of a program that writes in each interval at the phase: by how much later at most. The plan
    /// then puts its launch time behind that.
    #[schemars(range(min = 0, max = DELAY_NS))]
    pub(super) phase_jitter_ns: Option<At<i64>>,
}

/// A program that a run starts. A channel end on a host without one is modelled.
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Program {
    /// Unique among programs: letters, digits, `-`, `_`.
    #[schemars(required)]
    pub(super) name: Option<At<String>>,
    /// The host that it runs on.
    #[schemars(required)]
    pub(super) host: Option<At<String>>,
    /// The file to execute and its arguments; a relative path with a `/` is relative to this
    /// file. Give this or `source`.
    pub(super) command: Option<At<Vec<At<String>>>>,
    /// The program's C sources, Timed C or plain, which a run compiles with `onbeat cc`; relative
    /// to this file.
    pub(super) source: Option<At<Vec<At<String>>>>,
    /// With `source`: further arguments of the compiler.
    pub(super) cflags: Option<At<Vec<At<String>>>>,
    /// With `source`: the program's arguments.
    pub(super) arguments: Option<At<Vec<At<String>>>>,
    /// With `source`: what realises its abstract channels.
    pub(super) channels: Option<At<Vec<At<Bound>>>>,
    /// With `source`: the tasks that start on this host; starts of all others do nothing. All by
    /// default.
    pub(super) starts: Option<At<Vec<At<String>>>>,
    /// A file with execution times of its tasks' segments, for virtual time; relative to this
    /// file.
    pub(super) execution_times: Option<At<String>>,
    /// With `command`: a task model that says what the program does; relative to this file.
    pub(super) tasks: Option<At<String>>,
    /// Whether it joins the run; one that does not, as a load beside it, uses nothing of Onbeat's
    /// and is ended with the run. True by default.
    pub(super) joins: Option<At<bool>>,
    /// The user as whom it runs, by name or number, in runs that the superuser starts; who starts
    /// the run by default.
    pub(super) user: Option<At<String>>,
    /// How the system schedules it, in real-time runs; by default as the run's `policy` says.
    pub(super) policy: Option<At<SchedulingPolicy>>,
    /// Real-time priority, 1 to 99, in real-time runs; none by default.
    #[schemars(range(min = 1, max = 99))]
    pub(super) priority: Option<At<i64>>,
    /// Cores that it may use in real-time runs; any by default.
    #[schemars(inner(range(min = 0, max = limits::CORE)))]
    pub(super) cores: Option<At<Vec<At<i64>>>>,
    /// The most that it computes in each of its periods, in microseconds, in real-time runs of
    /// policy `deadline`; goes with `budget_period_us`.
    #[schemars(range(min = 2, max = BUDGET_US))]
    pub(super) budget_us: Option<At<i64>>,
    /// By when after a period began it has to have that, in microseconds; the period by default.
    #[schemars(range(min = 2, max = BUDGET_US))]
    pub(super) budget_deadline_us: Option<At<i64>>,
    /// The period, in microseconds.
    #[schemars(range(min = 100, max = BUDGET_US))]
    pub(super) budget_period_us: Option<At<i64>>,
    /// The most that its work from reading one message to writing the next takes, in
    /// nanoseconds; 0 by default.
    #[schemars(range(min = 0, max = DELAY_NS))]
    pub(super) work_max_ns: Option<At<i64>>,
}

/// What an abstract channel of a program is.
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Bound {
    /// What stands before `_write` and `_read` in the source: `chan` of `chan_write(val)`.
    #[schemars(required)]
    pub(super) name: Option<At<String>>,
    /// A fifochannel of the program with room for so many values. Give this or `channel`.
    #[schemars(range(min = 1, max = limits::FIFO_VALUES))]
    pub(super) fifo: Option<At<i64>>,
    /// A channel of this description, of which the program's host is an end.
    pub(super) channel: Option<At<String>>,
    /// The type of its values; `int` by default.
    #[serde(rename = "type")]
    pub(super) kind: Option<At<ValueType>>,
}

/// A source of best-effort UDP frames in on/off cycles.
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Noise {
    /// Unique among noise sources: letters, digits, `-`, `_`.
    #[schemars(required)]
    pub(super) name: Option<At<String>>,
    /// The sending host.
    #[schemars(required)]
    pub(super) from: Option<At<String>>,
    /// The receiving host.
    #[schemars(required)]
    pub(super) to: Option<At<String>>,
    /// UDP payload of each frame: 1 to 1472 octets.
    #[schemars(required)]
    #[schemars(range(min = 1, max = UDP_MOST))]
    pub(super) size_octets: Option<At<i64>>,
    /// Mean rate while on, of the wire with preamble and gap, in 10⁶ bits per second. Give this
    /// or `frames_per_s`.
    #[schemars(range(min = 1, max = LINK_MBPS))]
    pub(super) rate_mbps: Option<At<i64>>,
    /// Mean frames per second while on.
    #[schemars(range(min = 1, max = HZ))]
    pub(super) frames_per_s: Option<At<i64>>,
    /// Whether the time between frames varies uniformly by half either way; false by default.
    pub(super) jitter: Option<At<bool>>,
    /// When the first on-period starts, in seconds; 0 by default.
    #[schemars(range(min = 0, max = MONTH_S))]
    pub(super) start_s: Option<At<i64>>,
    /// The same in milliseconds.
    #[schemars(range(min = 0, max = MONTH_MS))]
    pub(super) start_ms: Option<At<i64>>,
    /// How long it sends in each cycle, in seconds; without `off_s`, for ever by default.
    #[schemars(range(min = 1, max = MONTH_S))]
    pub(super) on_s: Option<At<i64>>,
    /// The same in milliseconds.
    #[schemars(range(min = 1, max = MONTH_MS))]
    pub(super) on_ms: Option<At<i64>>,
    /// How long it rests in each cycle, in seconds; 0 by default.
    #[schemars(range(min = 0, max = MONTH_S))]
    pub(super) off_s: Option<At<i64>>,
    /// The same in milliseconds.
    #[schemars(range(min = 0, max = MONTH_MS))]
    pub(super) off_ms: Option<At<i64>>,
}

/// Periodic messages over one TCP connection, as federates of Lingua Franca send them: best effort,
/// in virtual time on the emulated network.
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Tcp {
    /// Unique among these and channels: letters, digits, `-`, `_`.
    #[schemars(required)]
    pub(super) name: Option<At<String>>,
    /// The sending host.
    #[schemars(required)]
    pub(super) talker: Option<At<String>>,
    /// The receiving host.
    #[schemars(required)]
    pub(super) listener: Option<At<String>>,
    /// Octets of each write of a message, in order, such as a header and a body.
    #[schemars(required)]
    #[schemars(inner(range(min = 1, max = limits::TCP_WRITE_OCTETS)))]
    pub(super) writes_octets: Option<At<Vec<At<i64>>>>,
    /// From the tag of a message to that of the next one, in nanoseconds.
    #[schemars(required)]
    #[schemars(range(min = limits::TCP_INTERVAL.as_ns(), max = MONTH_NS))]
    pub(super) interval_ns: Option<At<i64>>,
    /// The first tag; 0 by default.
    #[schemars(range(min = 0, max = MONTH_NS))]
    pub(super) phase_ns: Option<At<i64>>,
    /// How much later than its tag a message is handled, in microseconds; 0 by default. One that
    /// comes later than that is handled when it comes.
    #[schemars(range(min = 0, max = DELAY_NS / 1_000))]
    pub(super) after_us: Option<At<i64>>,
    /// From the tag to the capture, on the talker's host; zero by default.
    pub(super) lag_ns: Option<At<Delay>>,
    /// Whether Nagle's algorithm is on; true by default, as on sockets without TCP_NODELAY.
    pub(super) nagle: Option<At<bool>>,
    /// Whether acknowledgements are delayed by up to 40 ms; true by default, as where programs
    /// answer on the connection.
    pub(super) delayed_ack: Option<At<bool>>,
}

/// A deadline over several channels, from the first capture to the last receipt.
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Chain {
    /// Unique among chains: letters, digits, `-`, `_`.
    #[schemars(required)]
    pub(super) name: Option<At<String>>,
    /// Channels in order; each one's talker listens to the one before it.
    #[schemars(required)]
    pub(super) channels: Option<At<Vec<At<String>>>>,
    /// Deadline in microseconds.
    #[schemars(required)]
    #[schemars(range(min = 1, max = MONTH_US))]
    pub(super) deadline_us: Option<At<i64>>,
    /// The most that the data of the last receipt may be old when the next ones come, in
    /// microseconds.
    #[schemars(range(min = 1, max = MONTH_US))]
    pub(super) age_us: Option<At<i64>>,
    /// The most from something that happens right after a capture to the first receipt that can
    /// show it, in microseconds.
    #[schemars(range(min = 1, max = MONTH_US))]
    pub(super) reaction_us: Option<At<i64>>,
}

/// Channels that share one slot of stations of Network Code: a word of a message says which of them
/// sends. Other backends ignore the table.
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Alternatives {
    /// Unique among alternatives: letters, digits, `-`, `_`.
    #[schemars(required)]
    pub(super) name: Option<At<String>>,
    /// The channel whose message decides. The talkers of all alternatives listen to it.
    #[schemars(required)]
    pub(super) mode: Option<At<String>>,
    /// Where in that message an unsigned 32-bit word begins, its most significant octet first: a
    /// multiple of 4.
    #[schemars(required)]
    #[schemars(range(min = 0, max = limits::ALTERNATIVES_OFFSET))]
    pub(super) offset_octets: Option<At<i64>>,
    /// Channels that share the slot, at least two.
    #[schemars(required)]
    pub(super) channels: Option<At<Vec<At<String>>>>,
    /// For each channel the value of the word with which it sends, 0 to 8,388,607; none twice.
    #[schemars(required)]
    pub(super) values: Option<At<Vec<At<i64>>>>,
}

/// Published figures to stand beside the measured ones.
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Reference {
    /// Where they are published.
    #[schemars(required)]
    pub(super) source: Option<At<String>>,
    /// The scenario that they belong to.
    #[schemars(required)]
    pub(super) scenario: Option<At<String>>,
    /// The channel that they belong to. Give this, `tcp` or `clock`.
    pub(super) channel: Option<At<String>>,
    /// The messages over TCP that they belong to.
    pub(super) tcp: Option<At<String>>,
    /// The host or bridge to whose clock they belong.
    pub(super) clock: Option<At<String>>,
    /// What was measured.
    #[schemars(required)]
    pub(super) quantity: Option<At<Quantity>>,
    /// The largest, in nanoseconds.
    #[schemars(range(min = -MONTH_NS, max = MONTH_NS))]
    pub(super) max_ns: Option<At<i64>>,
    /// The smallest, in nanoseconds.
    #[schemars(range(min = -MONTH_NS, max = MONTH_NS))]
    pub(super) min_ns: Option<At<i64>>,
    /// The mean, in nanoseconds.
    #[schemars(range(min = -MONTH_NS, max = MONTH_NS))]
    pub(super) avg_ns: Option<At<i64>>,
    /// The standard deviation, in nanoseconds.
    #[schemars(range(min = 0, max = MONTH_NS))]
    pub(super) stddev_ns: Option<At<i64>>,
    /// Lost messages per thousand.
    #[schemars(range(min = 0, max = 1_000))]
    pub(super) lost_per_mille: Option<At<i64>>,
    /// What is to be known of them, such as what they leave out.
    pub(super) note: Option<At<String>>,
}

/// Pairs of a value in nanoseconds and its weight.
pub(super) type Histogram = Vec<At<(i64, i64)>>;
