//! Stations of Network Code that carried the channels of a run.

use crate::clocks;
use crate::result::{ChannelResult, Verdict};
use onbeat_model::plan::Plan;
use onbeat_model::record::{Carrier, RunLog};
use onbeat_model::stations::{StationCounts, StationsObserved};
use onbeat_model::system::{ChannelId, System};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the stations of a run did that carried its channels (docs/network-code.md).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StationsResult {
    /// Frames that had to wait at a port for a frame of another station, or its gap: slots exclude
    /// that, and it breaks what channels were promised. Null: unknown, on networks of the kernel,
    /// whose ports are not seen.
    pub collisions: Option<u64>,
    /// Frames that something else than stations held up at a port, such as best effort; null:
    /// unknown.
    pub waits: Option<u64>,
    /// In the order of the plan.
    pub stations: Vec<StationResult>,
}

/// What one station counted, over all its starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StationResult {
    /// The host.
    pub host: String,
    /// Rounds that it has begun, or has seen begin.
    pub rounds: u64,
    /// Data frames sent, also those that carry a message again.
    pub sent: u64,
    /// Data frames received of messages that its program knows.
    pub received: u64,
    /// Messages that programs wrote and no frame carried.
    pub unsent: u64,
    /// On networks of the kernel, frames that were not sent because they would have been later than
    /// the plan counts with. This and the next two count from when the station began, before the
    /// run.
    #[serde(default)]
    pub missed: u64,
    /// There, frames that were sent later than that all the same, or taken later.
    #[serde(default)]
    pub late: u64,
    /// There, frames that the kernel did not take.
    #[serde(default)]
    pub refused: u64,
    /// How often it waited for a round in vain.
    pub timeouts: u64,
    /// How often a deadline of its program had passed.
    pub overruns: u64,
    /// Beginnings of rounds that came when it waited for none.
    pub discarded: u64,
    /// Whether a trap has stopped it.
    pub stopped: bool,
    /// How late its frames were handed to the kernel; null where no kernel was.
    #[serde(default)]
    pub slot_error_ns: Option<SlotErrorResult>,
}

/// From the instant at which the first octet of a frame should have left to that at which the
/// kernel had the frame, of all frames of a station that were sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SlotErrorResult {
    /// The median: the smallest value that at least 50 % of the values do not exceed.
    pub p50: i64,
    /// The smallest value that at least 99 % of the values do not exceed.
    pub p99: i64,
    /// The largest value.
    pub max: i64,
}

/// What was seen of the stations of a system.
pub(crate) fn results(system: &System, observed: &StationsObserved) -> StationsResult {
    let station = |counts: &StationCounts| StationResult {
        host: system.node(counts.node).name.clone(),
        rounds: counts.rounds,
        sent: counts.sent,
        received: counts.received,
        unsent: counts.unsent,
        missed: counts.missed,
        late: counts.late,
        refused: counts.refused,
        timeouts: counts.timeouts,
        overruns: counts.overruns,
        discarded: counts.discarded,
        stopped: counts.has_stopped,
        slot_error_ns: counts.slot_error.map(|of| SlotErrorResult {
            p50: of.p50.as_ns(),
            p99: of.p99.as_ns(),
            max: of.max.as_ns(),
        }),
    };
    StationsResult {
        collisions: observed.collisions,
        waits: observed.waits,
        stations: observed.stations.iter().map(station).collect(),
    }
}

/// Why what a channel of alternatives promises may not have held.
const OTHER_MODE: &str = "in another mode its slot is another channel's";

/// Why what slots promise may not have held over a kernel: stations that were later than plans
/// count with, that could not send, or that stopped.
fn not_on_time(system: &System, log: &RunLog, observed: &StationsObserved) -> Option<String> {
    if log.network == Carrier::Emulated {
        return None;
    }
    if observed.stations.is_empty() {
        return Some("it is not known whether its stations were on time".to_owned());
    }
    if let Some(stopped) = observed.stations.iter().find(|station| station.has_stopped) {
        return Some(format!("the station of {} stopped", system.node(stopped.node).name));
    }
    let sum = |count: fn(&StationCounts) -> u64| observed.stations.iter().map(count).sum::<u64>();
    let often = |count: u64| if count == 1 { "once".to_owned() } else { format!("{count} times") };
    match (sum(|it| it.missed + it.late), sum(|it| it.refused)) {
        (0, 0) => None,
        (0, refused) => Some(format!("the kernel did not take a frame, {}", often(refused))),
        (late, _) => Some(format!(
            "stations were later than the plan counts with (`slot_error_us`), {}",
            often(late)
        )),
    }
}

/// Collisions break what every slot promises, whether or not a message was late by them. What one
/// of alternatives promises holds while the mode gives it the slot, which no record says; and all
/// of it holds while stations are no later than the plan counts with.
pub(crate) fn judge(
    system: &System,
    plan: &Plan,
    (log, observed): (&RunLog, &StationsObserved),
    channels: &mut [ChannelResult],
) {
    let late = not_on_time(system, log, observed);
    let slots = plan.channels.iter().map(|planned| planned.slot.is_some());
    let slots = (0..).map(ChannelId).zip(slots).zip(channels).filter(|((_, has), _)| *has);
    for ((id, _), channel) in slots {
        let shares = system.is_alternative(id).then_some(OTHER_MODE);
        if channel.verdict == Verdict::Broken {
            let premise = shares.or(late.as_deref());
            clocks::withhold(premise, &mut channel.verdict, &mut channel.verdict_reason);
        }
        let collisions = observed.collisions.unwrap_or_default();
        if collisions > 0 && channel.verdict == Verdict::Kept {
            let frames = if collisions == 1 { "frame" } else { "frames" };
            let reason = &channel.verdict_reason;
            channel.verdict_reason =
                format!("{collisions} {frames} of stations collided; {reason}");
            channel.verdict = Verdict::Broken;
        }
    }
}

/// The same of a simulation, in which no mode is written.
pub(crate) fn premise_open(system: &System, plan: &Plan, id: ChannelId) -> Option<&'static str> {
    let shares = plan.channel(id).slot.is_some() && system.is_alternative(id);
    shares.then_some(OTHER_MODE)
}

/// Whether it is of a system.
pub(crate) fn fit(system: &System, observed: &StationsObserved) -> bool {
    observed.stations.iter().all(|station| station.node.index() < system.nodes.len())
}
