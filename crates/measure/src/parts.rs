//! The parts of one run over the interfaces of several hosts, each recorded on its own machine, as
//! one run; and what its messages show of these machines' clocks.

use crate::join::{self, Joined, Message};
use onbeat_model::record::{Carrier, ClockAhead, Ending, LoadSample, RunLog};
use onbeat_model::system::{NodeId, System};
use onbeat_model::time::{NetTime, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Why logs are not the parts of one run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct NotOneRun {
    /// Which of the logs does not go with those before it.
    pub part: usize,
    /// Why, for a person.
    pub why: String,
}

/// Makes one log of the parts of a run over interfaces: each end as its own host recorded it. Ends
/// of hosts without a part have no records.
///
/// # Errors
/// When the logs are not of `system`, or not of one run, or when two of them are of one host.
pub fn merge(system: &System, logs: Vec<RunLog>) -> Result<RunLog, NotOneRun> {
    let mut whole: Option<RunLog> = None;
    for (part, log) in logs.into_iter().enumerate() {
        let added = fits(system, &log).and_then(|()| match whole.take() {
            None => Ok(named(system, log)),
            Some(before) => add(system, before, named(system, log)),
        });
        whole = Some(added.map_err(|why| NotOneRun { part, why })?);
    }
    let nothing = || NotOneRun { part: 0, why: "there are no parts".to_owned() };
    let mut whole = whole.ok_or_else(nothing)?;
    // What one end of noise did says nothing without the other one.
    let RunLog { network, load, .. } = &mut whole;
    load.retain(|sample| {
        let noise = system.noise.get(sample.noise.0 as usize);
        noise.is_some_and(|it| network.includes(it.from) && network.includes(it.to))
    });
    if let Some(stations) = &mut whole.stations {
        stations.stations.sort_by_key(|station| station.node);
    }
    Ok(whole)
}

fn fits(system: &System, log: &RunLog) -> Result<(), String> {
    let Carrier::Interfaces { .. } = log.network else {
        return Err("its run was not over the interface of a host, with --host and --interface; \
                    such runs are whole already"
            .to_owned());
    };
    match join::ends_fit(system, log) {
        true => Ok(()),
        false => Err("its records do not belong to this description: all parts must have the \
                      same one"
            .to_owned()),
    }
}

/// A part whose early end says on which host it was.
fn named(system: &System, mut log: RunLog) -> RunLog {
    if let (Carrier::Interfaces { parts, .. }, Ending::Early { reason, .. }) =
        (&log.network, &mut log.ending)
        && let [part] = &parts[..]
    {
        *reason = format!("host {}: {reason}", system.node(part.host).name);
    }
    log
}

/// Both as one.
fn add(system: &System, mut whole: RunLog, more: RunLog) -> Result<RunLog, String> {
    let settings = |log: &RunLog| {
        let backend = if log.stations.is_some() { "stations" } else { "bridges" };
        [
            ("scenario", log.scenario.clone()),
            ("duration", log.duration.to_string()),
            ("seed", log.seed.to_string()),
            ("reservations", if log.protected { "made" } else { "not made" }.to_owned()),
            ("backend", backend.to_owned()),
        ]
    };
    for ((what, before), (_, this)) in settings(&whole).into_iter().zip(settings(&more)) {
        if before != this {
            return Err(format!(
                "it is of another run than the parts before it: {what} `{this}`, not `{before}`"
            ));
        }
    }
    let (
        Carrier::Interfaces { parts, epoch_ns },
        Carrier::Interfaces { parts: others, epoch_ns: start },
    ) = (&mut whole.network, more.network)
    else {
        return Err("it is of another network".to_owned());
    };
    let apart = start.saturating_sub(*epoch_ns);
    if apart != 0 {
        let (apart, when) =
            (Span::from_ns(apart.saturating_abs()), if apart > 0 { "later" } else { "earlier" });
        return Err(format!(
            "it started {apart} {when} than the parts before it: parts of one run have one \
             start, see --start"
        ));
    }
    let is_there = |host: NodeId| parts.iter().any(|part| part.host == host);
    if let Some(twice) = others.iter().find(|other| is_there(other.host)) {
        let host = &system.node(twice.host).name;
        return Err(format!("it is of host {host}, and so is a part before it"));
    }
    for (end, other) in whole.ends.iter_mut().zip(more.ends) {
        if others.iter().any(|part| part.host == other.node) {
            *end = other;
        }
    }
    parts.extend(others);
    parts.sort_by_key(|part| part.host);
    whole.load.extend(more.load);
    add_load(&mut whole.load);
    whole.tcp.extend(more.tcp);
    whole.lag_max = whole.lag_max.max(more.lag_max);
    whole.ending = sooner(whole.ending, more.ending);
    if let (Some(whole), Some(more)) = (&mut whole.stations, more.stations) {
        whole.stations.extend(more.stations);
        // Ports of one part's network are no others'.
        (whole.collisions, whole.waits) = (None, None);
    }
    Ok(whole)
}

/// Samples of the part that sent noise and of the one that received it, as one each.
fn add_load(load: &mut Vec<LoadSample>) {
    load.sort_by_key(|sample| (sample.at, sample.noise.0));
    load.dedup_by(|more, sample| {
        let is_same = (more.at, more.noise) == (sample.at, sample.noise);
        if is_same {
            sample.offered_bits = sample.offered_bits.saturating_add(more.offered_bits);
            sample.delivered_bits = sample.delivered_bits.saturating_add(more.delivered_bits);
        }
        is_same
    });
}

/// The run has ended when the first part has.
fn sooner(one: Ending, other: Ending) -> Ending {
    let when = |ending: &Ending| match ending {
        Ending::Complete => NetTime::MAX,
        Ending::Early { at, .. } => *at,
    };
    if when(&other) < when(&one) { other } else { one }
}

/// What messages show of the clocks of two hosts, on two machines.
///
/// No message is received before it is written. So what `other` reads less what `host` reads at
/// the same time was, when some message came, at most the least latency to `other`, and at least
/// the least one to `host`, negative. That is so for the whole run as far as the difference stays
/// as it is. If `least_ns` is above `greatest_ns`, it changed by that much at least.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClockDifference {
    /// A host.
    pub host: String,
    /// Another one.
    pub other: String,
    /// The reading of `other` less that of `host`, at least. Null if `host` received nothing of
    /// `other`.
    pub least_ns: Option<i64>,
    /// The same at most. Null if `other` received nothing of `host`.
    pub greatest_ns: Option<i64>,
    /// The same at least, by readings of both clocks before the run and after it; null if none
    /// were taken.
    #[serde(default)]
    pub read_least_ns: Option<i64>,
    /// The same at most.
    #[serde(default)]
    pub read_greatest_ns: Option<i64>,
}

/// What is known of how far the clocks of hosts were apart, by messages and by readings.
#[derive(Debug, Default)]
pub(crate) struct ClockOffsets {
    /// The least latency from one host to another.
    latencies: BTreeMap<[NodeId; 2], i64>,
    /// By how much each host's clock was ahead of one and the same.
    ahead: BTreeMap<NodeId, ClockAhead>,
    /// Whether hosts have clocks of their own.
    are_several: bool,
}

/// What one clock reads less what another does, at least and at most, in nanoseconds, as far as it
/// is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Apart {
    pub(crate) least: Option<i64>,
    pub(crate) most: Option<i64>,
}

impl Apart {
    /// What one clock reads less itself.
    const NOTHING: Self = Self { least: Some(0), most: Some(0) };
    const UNKNOWN: Self = Self { least: None, most: None };

    /// The middle, and how far the ends are from it at most.
    pub(crate) fn middle(self) -> Option<(i64, i64)> {
        let (least, most) = (self.least?, self.most?);
        let middle = least.midpoint(most);
        Some((middle, most.saturating_sub(middle).max(middle.saturating_sub(least))))
    }
}

impl ClockOffsets {
    /// What a log shows of them.
    pub(crate) fn of(log: &RunLog, joined: &[Joined]) -> Self {
        let Carrier::Interfaces { parts, .. } = &log.network else { return Self::default() };
        if parts.len() < 2 {
            return Self::default();
        }
        let mut latencies: BTreeMap<[NodeId; 2], i64> = BTreeMap::new();
        for channel in joined {
            for listener in &channel.listeners {
                let ends = [channel.talker.node, listener.end.node];
                // Capture times of a talker whose records are missing are rebuilt from frames.
                let known = listener.messages.iter().filter(|message| message.talker.is_some());
                let Some(found) = known.filter_map(Message::latency_ns).min() else { continue };
                let least = latencies.entry(ends).or_insert(found);
                *least = found.min(*least);
            }
        }
        let ahead = parts.iter().filter_map(|part| Some((part.host, part.ahead?))).collect();
        Self { latencies, ahead, are_several: true }
    }

    /// The reading of `other` less that of `host`, by messages.
    fn by_messages(&self, host: NodeId, other: NodeId) -> Apart {
        Apart {
            least: self.latencies.get(&[other, host]).map(|ns| ns.saturating_neg()),
            most: self.latencies.get(&[host, other]).copied(),
        }
    }

    /// The same by readings over the connections of who ordered the run.
    fn by_readings(&self, host: NodeId, other: NodeId) -> Option<ClockAhead> {
        let (host, other) = (self.ahead.get(&host)?, self.ahead.get(&other)?);
        let less = |a: Span, b: Span| Span::from_ns(a.as_ns().saturating_sub(b.as_ns()));
        Some(ClockAhead { least: less(other.least, host.most), most: less(other.most, host.least) })
    }

    /// The same during the run, if both clocks were read before it and after it: what lies between
    /// the readings, and what messages show if that contradicts them, as it does if a clock was
    /// set. Messages alone do not tell: they show the difference of clocks that keep it.
    pub(crate) fn between(&self, host: NodeId, other: NodeId) -> Apart {
        if !self.are_several || host == other {
            return Apart::NOTHING;
        }
        let Some(readings) = self.by_readings(host, other) else { return Apart::UNKNOWN };
        let (least, most) = (readings.least.as_ns(), readings.most.as_ns());
        let messages = self.by_messages(host, other);
        let (from, to) = (messages.least.unwrap_or(i64::MIN), messages.most.unwrap_or(i64::MAX));
        if from.max(least) <= to.min(most) {
            return Apart { least: Some(least), most: Some(most) };
        }
        let all = || [Some(least), Some(most), messages.least, messages.most].into_iter().flatten();
        Apart { least: all().min(), most: all().max() }
    }

    /// Why it is not known whether what took `latency_ns` from the first of two hosts to the second
    /// was within `limit`; nothing if it is, whatever the clocks were.
    pub(crate) fn doubt(
        &self,
        [from, to]: [NodeId; 2],
        latency_ns: i64,
        limit: Span,
    ) -> Option<String> {
        let span = |ns: i64| Span::from_ns(latency_ns.saturating_sub(ns));
        match self.between(from, to) {
            Apart { least: Some(least), .. } if span(least) <= limit => None,
            Apart { least: Some(least), most: Some(most) } => {
                let (least, most) = (span(most).max(Span::ZERO), span(least));
                Some(format!(
                    "as far as these are known, the slowest took {least} to {most}, and \
                              the limit is {limit}"
                ))
            }
            Apart { .. } => {
                Some("how far these are apart is only known as far as messages show it".to_owned())
            }
        }
    }

    /// What is told of all pairs of hosts that had messages of each other, or whose clocks were
    /// read.
    pub(crate) fn differences(&self, system: &System) -> Vec<ClockDifference> {
        let read = || self.ahead.keys();
        let by_readings = read().flat_map(|a| read().map(move |b| [*a.min(b), *a.max(b)]));
        let by_messages = self.latencies.keys().map(|[a, b]| [*a.min(b), *a.max(b)]);
        let pairs: BTreeSet<_> = by_messages.chain(by_readings).filter(|[a, b]| a != b).collect();
        let name = |node: NodeId| system.node(node).name.clone();
        let difference = |[host, other]: [NodeId; 2]| {
            let messages = self.by_messages(host, other);
            let readings = self.by_readings(host, other);
            ClockDifference {
                host: name(host),
                other: name(other),
                least_ns: messages.least,
                greatest_ns: messages.most,
                read_least_ns: readings.map(|it| it.least.as_ns()),
                read_greatest_ns: readings.map(|it| it.most.as_ns()),
            }
        };
        pairs.into_iter().map(difference).collect()
    }
}
