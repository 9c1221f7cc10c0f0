//! From one run's records to its result.

use crate::breakdown;
use crate::chains;
use crate::clocks;
use crate::join::{self, Joined, JoinedListener, Message};
use crate::parts;
use crate::records::record_hash;
use crate::reservations;
use crate::result::{
    ChannelResult, Ended, ListenerResult, NetworkResult, RelativeBasis, RunResult, WakeupErrors,
    WakeupOffset,
};
use crate::silence;
use crate::stations;
use crate::statistics::Statistics;
use crate::tcp;
use crate::verdict;
use onbeat_model::plan::Plan;
use onbeat_model::record::{Ending, RunLog};
use onbeat_model::system::{ChannelId, System};
use onbeat_model::time::Span;

/// The records or the plan are of another system, or of this one before it was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the records do not belong to this description: their channels, hosts or noise differ")]
pub struct Mismatch;

/// The statistics and verdicts of one run.
///
/// Latency is the listener's reading at receipt less the capture time, which is the talker's
/// reading, as in Austad et al. 2023, section 6.3: the error between the two clocks is in it.
///
/// # Errors
/// When `plan` or `log` is of another system.
pub fn analyse(system: &System, plan: &Plan, log: &RunLog) -> Result<RunResult, Mismatch> {
    if !join::fits(system, plan, log) {
        return Err(Mismatch);
    }
    let joined: Vec<_> =
        (0..).zip(&system.channels).map(|(id, _)| join::channel(log, ChannelId(id))).collect();
    let excuses = verdict::excuses(system, plan, log, &joined);
    let apart = parts::ClockOffsets::of(log, &joined);
    let premise = clocks::premise_of_run_broken(system, log)
        .or_else(|| reservations::premise_broken(system, log.reservations.as_ref()));
    let mut channels: Vec<_> = (0..)
        .map(ChannelId)
        .zip(joined.iter().zip(&excuses))
        .map(|(id, (joined, excuse))| {
            channel(system, plan, (log, &apart), id, joined, excuse.as_ref())
        })
        .collect();
    for channel in &mut channels {
        clocks::withhold(premise.as_deref(), &mut channel.verdict, &mut channel.verdict_reason);
    }
    if let Some(observed) = &log.stations {
        stations::judge(system, plan, (log, observed), &mut channels);
    }
    let mut chains = chains::all(system, plan, (log, &apart), &joined, &channels, &excuses);
    for (described, chain) in system.chains.iter().zip(&mut chains) {
        // A channel that is written to at another time than described is not judged, nor is this.
        let off_phase = described.channels.iter().find_map(|id| {
            verdict::off_phase(system.channel(*id), plan.channel(*id), &joined[id.index()])
        });
        let premise = premise.as_ref().or(off_phase.as_ref());
        clocks::withhold(
            premise.map(String::as_str),
            &mut chain.verdict,
            &mut chain.verdict_reason,
        );
    }
    Ok(RunResult {
        scenario: log.scenario.clone(),
        network: NetworkResult::of(system, &log.network),
        time: log.time,
        seed: log.seed,
        protected: log.protected,
        duration_ns: log.duration.as_ns(),
        record_hash: record_hash(log),
        ended: match &log.ending {
            Ending::Complete => Ended::Complete,
            Ending::Early { at, reason } => {
                Ended::Early { at_ns: at.as_ns(), reason: reason.clone() }
            }
        },
        lag_max_ns: log.lag_max.map(Span::as_ns),
        channels,
        chains,
        clocks: clocks::results(system, &log.clocks),
        clock_differences: apart.differences(system),
        tcp: tcp::results(system, log),
        reservations: log.reservations.as_ref().map(|seen| reservations::results(system, seen)),
        verification: None,
        stations: log.stations.as_ref().map(|seen| stations::results(system, seen)),
    })
}

fn channel(
    system: &System,
    plan: &Plan,
    (log, apart): (&RunLog, &parts::ClockOffsets),
    id: ChannelId,
    joined: &Joined,
    excuse: Option<&verdict::Excuse>,
) -> ChannelResult {
    let (described, planned) = (system.channel(id), plan.channel(id));
    let bounds = planned.bounds.iter().map(|b| Some(b.total().as_ns()));
    let bounds = bounds.chain(std::iter::repeat(None));
    let network_time = joined.knows_network_time();
    let listeners: Vec<_> = (joined.listeners.iter().zip(bounds))
        .map(|(listener, bound_ns)| {
            let between = apart.between(described.talker, listener.end.node);
            ListenerResult {
                silence: silence::of_listener(log, listener, described.deadline),
                expired: described.lifespan.and_then(|_| listener.count(Message::is_expired)),
                ..one_listener(system, listener, bound_ns, (network_time, between))
            }
        })
        .collect();
    let sum = |of: fn(&ListenerResult) -> Option<u64>| {
        listeners.iter().filter_map(of).reduce(u64::saturating_add)
    };
    let judgement = verdict::channel(system, (described, planned), (log, apart), joined, excuse);
    let verdict::Judgement { verdict, mut reason } = judgement;
    if let (Some(held @ 1..), Some(sent)) = (joined.held(), joined.sent()) {
        // What a promise counts from is the capture, so it says nothing of what was before that.
        reason += &format!("; {held} of {sent} writes were held by the declared rate");
    }
    if let Some(caught_up @ 1..) = joined.caught_up(described) {
        reason += &format!("; {caught_up} caught up after one that was late");
    }
    for listener in &listeners {
        let silence = listener.silence.as_ref();
        reason += &silence.and_then(|it| silence::said(&listener.host, it)).unwrap_or_default();
    }
    if let Some(expired @ 1..) = sum(|l| l.expired) {
        let (had, them) = if expired == 1 { (" had", "it") } else { ("s had", "them") };
        reason += &format!("; {expired} message{had} expired before a program came for {them}");
    }
    ChannelResult {
        name: described.name.clone(),
        protected: planned.protected,
        sent: joined.sent(),
        held: joined.held(),
        caught_up: joined.caught_up(described),
        received: sum(|l| l.received),
        lost: sum(|l| l.lost),
        overflowed: sum(|l| l.overflowed),
        late: sum(|l| l.late),
        expired: sum(|l| l.expired),
        duplicated: sum(|l| l.duplicated),
        unrecorded: joined.unrecorded(),
        latency_ns: statistics(joined.messages(), Message::latency_ns),
        end_to_end_ns: statistics(joined.messages(), Message::end_to_end_ns),
        wakeup_error_ns: wakeup_errors(joined, network_time),
        bound_ns: planned.bound().map(Span::as_ns),
        fixed_delay_ns: described.fixed_delay.as_ns(),
        verdict,
        verdict_reason: reason,
        listeners,
    }
}

fn wakeup_errors(joined: &Joined, network_time: bool) -> WakeupErrors {
    let relative = statistics(joined.messages(), |m| m.relative_wakeup_ns(network_time));
    let basis = match network_time {
        true => RelativeBasis::NetworkTime,
        false => RelativeBasis::ClockReadings,
    };
    // Every listener's join holds all of the talker's records: one is enough.
    let of_talker = joined.listeners.iter().take(1).flat_map(|l| &l.messages);
    WakeupErrors {
        talker: errors(of_talker, Message::talker_wakeup_ns),
        listener: errors(joined.messages(), Message::listener_wakeup_ns),
        relative_basis: relative.map(|_| basis),
        relative,
    }
}

fn one_listener(
    system: &System,
    listener: &JoinedListener,
    bound_ns: Option<i64>,
    (network_time, between): (bool, parts::Apart),
) -> ListenerResult {
    ListenerResult {
        host: system.node(listener.end.node).name.clone(),
        received: listener.received(),
        lost: listener.lost(),
        overflowed: listener.overflowed(),
        late: listener.count(Message::is_late),
        expired: None,
        duplicated: listener.count(|m| m.duplicate),
        latency_ns: statistics(&listener.messages, Message::latency_ns),
        breakdown: breakdown::of_listener(listener),
        wakeup_error_ns: errors(&listener.messages, Message::listener_wakeup_ns),
        relative_wakeup_error_ns: statistics(&listener.messages, |m| {
            m.relative_wakeup_ns(network_time)
        }),
        wakeup_offset: wakeup_offset(listener, network_time, between),
        bound_ns,
        silence: None,
    }
}

/// By how much a listener woke after the talker, where it is known how far their clocks are apart.
fn wakeup_offset(
    listener: &JoinedListener,
    network_time: bool,
    between: parts::Apart,
) -> Option<WakeupOffset> {
    let (middle, uncertainty_ns) = if network_time { (0, 0) } else { between.middle()? };
    let ns = errors(&listener.messages, |message| {
        Some(message.wakeup_offset_ns(network_time)?.saturating_sub(middle))
    });
    Some(WakeupOffset { ns: ns?, uncertainty_ns })
}

fn statistics<'a, 'b: 'a>(
    messages: impl IntoIterator<Item = &'a Message<'b>>,
    value: impl Fn(&Message<'b>) -> Option<i64>,
) -> Option<Statistics> {
    Statistics::of(messages.into_iter().filter_map(value).collect())
}

/// The same of errors, which have signs.
fn errors<'a, 'b: 'a>(
    messages: impl IntoIterator<Item = &'a Message<'b>>,
    value: impl Fn(&Message<'b>) -> Option<i64>,
) -> Option<Statistics> {
    Statistics::of_errors(messages.into_iter().filter_map(value).collect())
}
