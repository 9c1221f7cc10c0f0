//! Whether a run kept what its plan promised.
//!
//! In virtual time the engine is the network and the hosts: whatever exceeds a bound breaks it.
//! In real time the programs run on a machine whose stalls are not part of the described system,
//! and the bound covers declared delays only. A latency above the bound is then charged to the
//! machine, and the channel not judged, if the frame itself went from port to port within the
//! bound, so that the rest was waiting on a host. What programs hand over late comes to the engine
//! at once with what was sent after it; the time from port to port is therefore allowed the
//! engine's greatest lag on top. Over a kernel it is the time from station to station. Losses are
//! never charged to the machine. What a full queue dropped the network had delivered: it breaks no
//! promise, but none is then seen to be kept.
//! Between two machines a latency is known as far as the difference of their clocks is: it is too
//! long if it is with every difference that there may be, and within its bound if it is with every
//! one; else nothing is judged.
//! A channel of which one side ran on another machine cannot be judged, nor one of which an end's
//! clock has stepped, because a fault let it: its latencies are by these clocks. Of other channels
//! that such a step may have reached what would be broken is not judged. Nor is a latency above the
//! bound where a talker that was late has caught up, which bounds do not count, and may have kept
//! the channel's messages waiting.

use crate::join::{Joined, Message};
use crate::parts::ClockOffsets;
use crate::result::Verdict;
use crate::stepped::{Reach, clock_of_end};
use onbeat_model::plan::{ChannelPlan, Plan};
use onbeat_model::record::{Carrier, Ending, RunLog};
use onbeat_model::system::{Channel, ChannelId, System, TimeMode};
use onbeat_model::time::{NetTime, Span, SyncedTime};
use std::fmt;

/// A verdict and its reason, for a person.
pub(crate) struct Judgement {
    pub(crate) verdict: Verdict,
    pub(crate) reason: String,
}

impl Judgement {
    pub(crate) fn new(verdict: Verdict, reason: impl Into<String>) -> Self {
        Self { verdict, reason: reason.into() }
    }
}

/// Messages that took longer than they might.
#[derive(Default)]
struct Excess {
    count: u64,
    /// The longest by how much, and how long it took.
    worst: Option<(i64, String)>,
    /// Of these, those that the emulating machine does not explain.
    unexplained: u64,
    /// Those that it does not either, but that a talker which caught up may have kept waiting.
    excused: u64,
    /// The longest that one of them took from port to port.
    in_network: Option<i64>,
}

/// Judges one channel.
pub(crate) fn channel(
    system: &System,
    (described, plan): (&Channel, &ChannelPlan),
    (log, clocks): (&RunLog, &ClockOffsets),
    joined: &Joined,
    excuse: Option<&Excuse>,
) -> Judgement {
    if !plan.protected {
        let nothing = "it has no reservation: nothing was promised";
        let reason = match one_sided(system, log, joined) {
            Some(why) => format!("{nothing}; {why}"),
            None => nothing.to_owned(),
        };
        return Judgement::new(Verdict::NoPromise, reason);
    }
    if plan.bounds.is_empty() {
        let reason = "the plan has no bound: more is asked for than ports can reserve";
        return Judgement::new(Verdict::NotJudged, reason);
    }
    let off_phase = || off_phase(described, plan, joined);
    if let Some(reason) = stepped(system, joined).or_else(off_phase) {
        return Judgement::new(Verdict::NotJudged, reason);
    }
    let broken = |reason: String| match excuse {
        Some(Excuse::Step) => Judgement::new(Verdict::NotJudged, format!("{reason}, {REACHED}")),
        _ => Judgement::new(Verdict::Broken, reason),
    };
    let excess = excess(system, plan, (log, clocks), joined, excuse);
    if excess.unexplained > 0 {
        return broken(excess.describe());
    }
    if let Some(reason) = one_sided(system, log, joined).or_else(|| unjudgeable(log, joined)) {
        return Judgement::new(Verdict::NotJudged, reason);
    }
    let overflowed: u64 = joined.listeners.iter().filter_map(|l| l.overflowed()).sum();
    let lost: u64 = joined.listeners.iter().filter_map(|l| l.lost()).sum();
    let lost = lost.saturating_sub(overflowed);
    if lost > 0 {
        let (messages, were) = if lost == 1 { ("message", "was") } else { ("messages", "were") };
        return broken(format!("{lost} {messages} of a protected channel {were} lost"));
    }
    if overflowed > 0 {
        let were = messages_were(overflowed);
        let reason = format!("{were} lost in the queue of a reader that came too late for them");
        return Judgement::new(Verdict::NotJudged, reason);
    }
    if let Some(Excuse::CaughtUp { why, .. }) = excuse.filter(|_| excess.excused > 0) {
        return Judgement::new(Verdict::NotJudged, format!("{}, {why}", excess.describe()));
    }
    if excess.count > 0 {
        return Judgement::new(Verdict::NotJudged, excess.blame(log));
    }
    if let Some(reason) = doubtful(system, plan, clocks, joined) {
        return Judgement::new(Verdict::NotJudged, reason);
    }
    let slowest = joined.listeners.iter().filter_map(|listener| {
        let least = clocks.between(joined.talker.node, listener.end.node).least?;
        let slowest = listener.messages.iter().filter_map(Message::latency_ns).max()?;
        Some(slowest.saturating_sub(least))
    });
    let slowest = slowest.max();
    let (slowest, bound) = (span(slowest.unwrap_or(0)), plan.bound().unwrap_or(Span::ZERO));
    let sent = joined.sent().unwrap_or(0);
    let reason = format!("all of {sent} arrived, the slowest after {slowest} of {bound}");
    Judgement::new(Verdict::Kept, reason)
}

/// Which message was written at another time than the description says of a scheduled channel: its
/// bound counts with that.
pub(crate) fn off_phase(
    described: &Channel,
    plan: &ChannelPlan,
    joined: &Joined,
) -> Option<String> {
    let jitter = described.phase_jitter.filter(|_| plan.launch.is_some())?;
    let late = |message: &Message| {
        let since = (message.talker?.capture? - SyncedTime::ZERO - described.phase).as_ns();
        let after = Span::from_ns(since.rem_euclid(described.interval.as_ns()));
        (after > jitter).then_some(after)
    };
    let after = joined.messages().find_map(late)?;
    Some(format!("a message was written {after} after its phase, and its jitter is {jitter}"))
}

/// Why what would break a promise is not judged.
pub(crate) const REACHED: &str = "but a clock steps that it may depend on, as the description says";

/// Why the clocks of a channel's ends do not measure its latencies.
pub(crate) fn stepped(system: &System, joined: &Joined) -> Option<String> {
    let host = &system.node(clock_of_end(system, joined)?).name;
    Some(format!("the clock of host {host} stepped, as the description says"))
}

/// Why what would break a promise is not judged.
pub(crate) enum Excuse {
    /// A step of some clock may have reached it while the log was made.
    Step,
    /// A talker may have caught up since then, which makes latencies longer.
    CaughtUp { since: NetTime, why: String },
}

impl fmt::Display for Excuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Step => REACHED,
            Self::CaughtUp { why, .. } => why,
        })
    }
}

/// The excuse of each channel, if it has one.
pub(crate) fn excuses(
    system: &System,
    plan: &Plan,
    log: &RunLog,
    joined: &[Joined],
) -> Vec<Option<Excuse>> {
    let reach = Reach::of(system, plan);
    let records = log.ends.iter().flat_map(|end| &end.records);
    let is_after = |at: Option<NetTime>| at.is_none_or(|at| at >= reach.first);
    let any = records.map(|record| record.network).any(is_after);
    let ids = || (0..system.channels.len() as u32).map(ChannelId);
    // Who may have caught up, since when, and whom that may have reached.
    let since = |id: &ChannelId| joined[id.index()].catches_up_since(system.channel(*id));
    let late = ids().filter_map(|id| Some((since(&id)?, id)));
    let late: Vec<_> =
        late.map(|(since, id)| (since, id, Reach::of_talker(system, plan, id))).collect();
    let excuse = |id| {
        if any && reach.first < NetTime::MAX && reach.channel(id) {
            return Some(Excuse::Step);
        }
        let reached = late.iter().filter(|(.., reach)| reach.channel(id));
        let (since, talker, _) =
            reached.min_by_key(|(since, talker, _)| (*since, *talker != id))?;
        let name = &system.channel(*talker).name;
        let why = match joined[talker.index()].caught_up(system.channel(*talker)) {
            Some(_) => {
                format!(
                    "but the talker of {name} was late and caught up, which bounds do not count"
                )
            }
            None => format!("but it is not known whether the talker of {name} caught up"),
        };
        Some(Excuse::CaughtUp { since: *since, why })
    };
    ids().map(excuse).collect()
}

/// Which side of a channel is known, if it is not both.
fn one_sided(system: &System, log: &RunLog, joined: &Joined) -> Option<String> {
    let Carrier::Interfaces { parts, .. } = &log.network else { return None };
    let side = match (joined.is_whole(), joined.talker_known) {
        (true, _) => return None,
        (false, true) => "talker",
        (false, false) if joined.listeners.iter().any(|l| l.received().is_some()) => "listener",
        (false, false) => return Some("it does not come to this host".to_owned()),
    };
    let [host] = &parts[..] else {
        return Some(format!(
            "known is only its {side}'s side: the other one has no whole part here"
        ));
    };
    let host = &system.node(host.host).name;
    Some(format!("known is only its {side}'s side, host {host}"))
}

/// Why a run without a broken bound still proves nothing.
fn unjudgeable(log: &RunLog, joined: &Joined) -> Option<String> {
    if let Ending::Early { at, reason } = &log.ending {
        let after = span(at.as_ns());
        return Some(format!("the run ended early, after {after}: {reason}"));
    }
    if joined.sent() == Some(0) {
        return Some("nothing was sent".into());
    }
    let unrecorded = joined.unrecorded();
    if unrecorded > 0 {
        return Some(format!(
            "{} not recorded: the record memory was full",
            messages_were(unrecorded)
        ));
    }
    let strangers = joined.messages().filter(|m| m.talker.is_none() && m.is_receipt()).count();
    (strangers > 0).then(|| {
        format!("{} received that the talker did not record", messages_were(strangers as u64))
    })
}

/// What took longer than it might, whatever the clocks were.
fn excess(
    system: &System,
    plan: &ChannelPlan,
    (log, clocks): (&RunLog, &ClockOffsets),
    joined: &Joined,
    excuse: Option<&Excuse>,
) -> Excess {
    let is_excused = |message: &Message| match excuse {
        Some(Excuse::CaughtUp { since, .. }) => {
            let at = message.listener.and_then(|record| record.network);
            at.is_none_or(|at| at >= *since)
        }
        _ => false,
    };
    let lag_ns = log.lag_max.map_or(0, Span::as_ns);
    let mut excess = Excess::default();
    for (listener, bound) in joined.listeners.iter().zip(&plan.bounds) {
        let bound = bound.total();
        let apart = clocks.between(joined.talker.node, listener.end.node);
        let Some(most) = apart.most else { continue };
        for message in &listener.messages {
            let latency = message.latency_ns().map(|ns| ns.saturating_sub(most));
            let Some(latency) = latency.filter(|ns| *ns > bound.as_ns()) else { continue };
            let over = latency.saturating_sub(bound.as_ns());
            let in_network = message.in_network_ns().map(|ns| ns.saturating_sub(most));
            let explained = log.time == TimeMode::Real
                && in_network.unwrap_or(latency) <= bound.as_ns().saturating_add(lag_ns);
            excess.in_network = excess.in_network.max(in_network);
            excess.count += 1;
            let is_excused = !explained && is_excused(message);
            excess.excused += u64::from(is_excused);
            excess.unexplained += u64::from(!explained && !is_excused);
            if excess.worst.as_ref().is_none_or(|(worst, _)| over > *worst) {
                let host = &system.node(listener.end.node).name;
                let took = span(latency);
                excess.worst = Some((over, format!("{took} of {bound} to {host}")));
            }
        }
    }
    excess
}

/// Why it is not known whether latencies between two machines are within their bounds.
fn doubtful(
    system: &System,
    plan: &ChannelPlan,
    clocks: &ClockOffsets,
    joined: &Joined,
) -> Option<String> {
    joined.listeners.iter().zip(&plan.bounds).find_map(|(listener, bound)| {
        let ends = [joined.talker.node, listener.end.node];
        let slowest = listener.messages.iter().filter_map(Message::latency_ns).max()?;
        let why = clocks.doubt(ends, slowest, bound.total())?;
        let [talker, listener] = ends.map(|node| &system.node(node).name);
        Some(format!("its latencies are between the clocks of {talker} and {listener}: {why}"))
    })
}

impl Excess {
    fn describe(&self) -> String {
        let worst = self.worst.as_ref().map_or("", |(_, text)| text);
        format!("{} slower than the bound, the slowest took {worst}", messages_were(self.count))
    }
    fn blame(&self, log: &RunLog) -> String {
        let in_network = span(self.in_network.unwrap_or(0));
        let slower = format!("{}, but not because of the network", self.describe());
        match log.lag_max {
            Some(lag) => format!(
                "{slower}: from port to port none took more than {in_network}, and the engine was \
                 up to {lag} behind the machine's clock"
            ),
            None => format!(
                "{slower}: none took more than {in_network} until its reader could have had it"
            ),
        }
    }
}

fn messages_were(count: u64) -> String {
    if count == 1 { "1 message was".into() } else { format!("{count} messages were") }
}

fn span(ns: i64) -> Span {
    Span::from_ns(ns)
}
