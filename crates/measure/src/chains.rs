//! End-to-end latency over several channels.
//!
//! The cause of a message is the last message of the channel before that its talker's host had
//! received when it captured the value, both by that host's clock.

use crate::join::{Joined, Message};
use crate::parts::ClockOffsets;
use crate::result::{ChainResult, ChannelResult, Verdict};
use crate::statistics::Statistics;
use crate::verdict::{Excuse, Judgement, stepped};
use onbeat_model::plan::Plan;
use onbeat_model::record::{Ending, RunLog};
use onbeat_model::system::{Chain, NodeId, System, TimeMode};
use onbeat_model::time::{Span, SyncedTime};

/// The results of all chains. `joined`, `channels` and why what would break each is not judged are
/// in the order of the description.
pub(crate) fn all(
    system: &System,
    plan: &Plan,
    (log, clocks): (&RunLog, &ClockOffsets),
    joined: &[Joined],
    channels: &[ChannelResult],
    excuses: &[Option<Excuse>],
) -> Vec<ChainResult> {
    let of_chain = |(chain, bound): (&Chain, &Option<Span>)| {
        let members: Vec<_> = chain.channels.iter().map(|id| &channels[id.index()]).collect();
        let latencies = latencies(system, chain, joined);
        let stepped = || chain.channels.iter().find_map(|id| stepped(system, &joined[id.index()]));
        let mut judgement = match bound.and_then(|_| stepped()) {
            Some(reason) => Judgement::new(Verdict::NotJudged, reason),
            None => {
                let excuse = chain.channels.iter().find_map(|id| excuses[id.index()].as_ref());
                evaluate(log, (chain, *bound), &members, &latencies, excuse)
            }
        };
        if judgement.verdict == Verdict::Kept
            && let Some(reason) = doubtful(system, chain, clocks, joined, &latencies)
        {
            judgement = Judgement::new(Verdict::NotJudged, reason);
        }
        ChainResult {
            name: chain.name.clone(),
            channels: members.iter().map(|c| c.name.clone()).collect(),
            completed: latencies.len() as u64,
            latency_ns: Statistics::of(latencies),
            deadline_ns: chain.deadline.as_ns(),
            bound_ns: bound.map(Span::as_ns),
            verdict: judgement.verdict,
            verdict_reason: judgement.reason,
        }
    };
    system.chains.iter().zip(&plan.chains).map(of_chain).collect()
}

/// One latency per message that the last channel's listeners received and whose cause at the
/// chain's start is known. Where a host writes more often than it receives, one cause has several
/// effects, and each counts: the later ones show how old the data were.
fn latencies(system: &System, chain: &Chain, joined: &[Joined]) -> Vec<i64> {
    let Some((last, before)) = chain.channels.split_last() else {
        return Vec::new();
    };
    // For each step back: when the host received which capture of the channel before.
    let mut steps = Vec::new();
    let mut effect = *last;
    for cause in before.iter().rev() {
        steps.push(receipts(&joined[cause.index()], system.channel(effect).talker));
        effect = *cause;
    }
    let end = joined[last.index()].messages().filter(|m| m.is_receipt());
    let latency = |message: &Message| {
        let mut capture = message.capture()?;
        for receipts in &steps {
            let known = receipts.partition_point(|(receive, _)| *receive <= capture);
            capture = receipts.get(known.checked_sub(1)?)?.1;
        }
        let receive = message.listener?.receive?;
        Some(crate::join::ns_between(capture, receive))
    };
    end.filter_map(latency).collect()
}

/// When `host` received each message of a channel, and that message's capture time.
fn receipts(joined: &Joined, host: NodeId) -> Vec<(SyncedTime, SyncedTime)> {
    let ends = joined.listeners.iter().filter(|l| l.end.node == host);
    let received = ends.flat_map(|l| &l.messages).filter(|m| m.is_receipt());
    let mut receipts: Vec<_> =
        received.filter_map(|m| Some((m.listener?.receive?, m.capture()?))).collect();
    receipts.sort_unstable();
    receipts
}

/// Why it is not known whether a chain from one machine to another was in time.
fn doubtful(
    system: &System,
    chain: &Chain,
    clocks: &ClockOffsets,
    joined: &[Joined],
    latencies: &[i64],
) -> Option<String> {
    let (first, last) = (chain.channels.first()?, chain.channels.last()?);
    let from = system.channel(*first).talker;
    let slowest = *latencies.iter().max()?;
    joined[last.index()].listeners.iter().find_map(|listener| {
        let why = clocks.doubt([from, listener.end.node], slowest, chain.deadline)?;
        let [from, to] = [from, listener.end.node].map(|node| &system.node(node).name);
        Some(format!("it is between the clocks of {from} and {to}: {why}"))
    })
}

fn evaluate(
    log: &RunLog,
    (chain, bound): (&Chain, Option<Span>),
    members: &[&ChannelResult],
    latencies: &[i64],
    excuse: Option<&Excuse>,
) -> Judgement {
    let Some(bound) = bound else {
        let missed = latencies.iter().filter(|ns| **ns > chain.deadline.as_ns()).count();
        let why = if members.iter().all(|c| c.protected) {
            "the plan has no bound for it"
        } else {
            "not all of its channels have a reservation"
        };
        let reason = format!(
            "{why}: nothing was promised; {missed} of {} missed the deadline",
            latencies.len()
        );
        return Judgement::new(Verdict::NoPromise, reason);
    };
    if let Some(broken) = members.iter().find(|c| c.verdict == Verdict::Broken) {
        let reason = format!("channel {} broke its promise", broken.name);
        return Judgement::new(Verdict::Broken, reason);
    }
    let slowest = latencies.iter().max().copied().map(Span::from_ns);
    if let Some(slowest) = slowest.filter(|s| *s > chain.deadline || *s > bound) {
        let limit = chain.deadline.min(bound);
        let name = if limit == bound { "bound" } else { "deadline" };
        let reason = format!("the slowest took {slowest}, more than the {name} of {limit}");
        return match (log.time, excuse) {
            (TimeMode::Virtual, Some(excuse)) => {
                Judgement::new(Verdict::NotJudged, format!("{reason}, {excuse}"))
            }
            (TimeMode::Virtual, None) => Judgement::new(Verdict::Broken, reason),
            (TimeMode::Real, _) => Judgement::new(
                Verdict::NotJudged,
                format!("{reason}, but no channel broke its promise: the machine was slow"),
            ),
        };
    }
    if let Ending::Early { reason, .. } = &log.ending {
        return Judgement::new(Verdict::NotJudged, format!("the run ended early: {reason}"));
    }
    if let Some(unjudged) = members.iter().find(|c| c.verdict == Verdict::NotJudged) {
        let reason = format!("channel {} was not judged", unjudged.name);
        return Judgement::new(Verdict::NotJudged, reason);
    }
    let Some(slowest) = slowest else {
        return Judgement::new(Verdict::NotJudged, "nothing went through the whole chain");
    };
    let reason = format!(
        "all of {} within the deadline, the slowest after {slowest} of {}",
        latencies.len(),
        chain.deadline
    );
    Judgement::new(Verdict::Kept, reason)
}
