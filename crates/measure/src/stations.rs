//! Stations of Network Code that carried the channels of a run.

use crate::result::{ChannelResult, Verdict};
use onbeat_model::plan::Plan;
use onbeat_model::stations::{StationCounts, StationsObserved};
use onbeat_model::system::System;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the stations of a run did that carried its channels (docs/network-code.md).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StationsResult {
    /// Frames that had to wait at a port for a frame of another station, or its gap: slots exclude
    /// that, and it breaks what channels were promised.
    pub collisions: u64,
    /// Frames that something else than stations held up at a port, such as best effort.
    pub waits: u64,
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
    /// How often it waited for a round in vain.
    pub timeouts: u64,
    /// How often a deadline of its program had passed.
    pub overruns: u64,
    /// Beginnings of rounds that came when it waited for none.
    pub discarded: u64,
    /// Whether a trap has stopped it.
    pub stopped: bool,
}

/// What was seen of the stations of a system.
pub(crate) fn results(system: &System, observed: &StationsObserved) -> StationsResult {
    let station = |counts: &StationCounts| StationResult {
        host: system.node(counts.node).name.clone(),
        rounds: counts.rounds,
        sent: counts.sent,
        received: counts.received,
        unsent: counts.unsent,
        timeouts: counts.timeouts,
        overruns: counts.overruns,
        discarded: counts.discarded,
        stopped: counts.has_stopped,
    };
    StationsResult {
        collisions: observed.collisions,
        waits: observed.waits,
        stations: observed.stations.iter().map(station).collect(),
    }
}

/// Collisions break what every slot promises, whether or not a message was late by them.
pub(crate) fn judge(plan: &Plan, observed: &StationsObserved, channels: &mut [ChannelResult]) {
    let collisions = observed.collisions;
    if collisions == 0 {
        return;
    }
    let (frames, have) = if collisions == 1 { ("frame", "has") } else { ("frames", "have") };
    for (planned, channel) in plan.channels.iter().zip(channels) {
        if planned.slot.is_some() && channel.verdict == Verdict::Kept {
            channel.verdict = Verdict::Broken;
            channel.verdict_reason = format!(
                "{collisions} {frames} of stations {have} collided; {}",
                channel.verdict_reason
            );
        }
    }
}

/// Whether it is of a system.
pub(crate) fn fit(system: &System, observed: &StationsObserved) -> bool {
    observed.stations.iter().all(|station| station.node.index() < system.nodes.len())
}
