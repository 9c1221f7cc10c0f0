//! Whether a simulation kept what the plan promised.
//!
//! A bound holds whatever is lost on the way: failed links and nodes and damaged frames take
//! frames away and delay none. It holds for all others when a stream babbles: the plan counts that.
//! For the babbler itself it is computed from what it should do: what exceeds it then is no fault
//! of the plan, and is not judged. Neither is what exceeds a bound once a clock has stepped that it
//! may depend on ([`crate::stepped`]).

use super::results::Described;
use crate::result::Verdict;
use crate::stepped::Reach;
use crate::verdict::{Judgement, REACHED};
use onbeat_model::observed::{FlowObserved, LatencyObserved, LossesObserved, QueueObserved};
use onbeat_model::plan::{Backlog, Bound};
use onbeat_model::system::{ChannelId, StreamIndex, System};
use onbeat_model::time::{NetTime, Span};

/// A simulation waits at least so long for what was released last.
const WAITED: Span = Span::from_s(60);

/// Why a flow is not held to its bound at a listener.
fn excuse(
    reach: &Reach<'_>,
    system: &System,
    flow: &Described<'_>,
    seen: &LatencyObserved,
) -> Option<&'static str> {
    if flow.stream.is_some_and(|number| system.babbles(StreamIndex(number))) {
        return Some("but it babbles, as the description says");
    }
    let is_reached = match (flow.channel, flow.stream) {
        (Some(id), _) => reach.channel(ChannelId(id)),
        (None, id) => id.is_some_and(|id| reach.stream(StreamIndex(id))),
    };
    // What was over before the first step had nothing to do with it.
    let over = seen.max.map_or(NetTime::MAX, |max| seen.max_released + max);
    (is_reached && over >= reach.first).then_some(REACHED)
}

/// Why a listener's latencies are not as promised.
fn excess(bound: Option<&Bound>, deadline: Option<Span>, seen: &LatencyObserved) -> Option<String> {
    let (min, max) = (seen.min?, seen.max?);
    let released = seen.max_released;
    if let Some(bound) = bound.map(Bound::total).filter(|bound| max > *bound) {
        let late = format!("the bound of {bound}, released at {}", Span::from_ns(released.as_ns()));
        return Some(format!("{max} exceeds {late}"));
    }
    if let Some(deadline) = deadline.filter(|deadline| max > *deadline) {
        return Some(format!("{max} exceeds the deadline of {deadline}"));
    }
    let best = bound?.best;
    (min < best).then(|| format!("{min} is less than the best case of {best}"))
}

/// The verdict on each listener.
pub(super) fn listeners(
    reach: &Reach<'_>,
    system: &System,
    flow: &Described<'_>,
    seen: &FlowObserved,
) -> Vec<Verdict> {
    let verdict = |(bound, seen_here): (&Option<&Bound>, &LatencyObserved)| {
        let overflowed = overflowed(*bound, seen_here) > 0;
        let excused = excuse(reach, system, flow, seen_here).is_some();
        match excess(*bound, flow.deadline, seen_here) {
            _ if bound.is_none() && flow.deadline.is_none() => Verdict::NoPromise,
            Some(_) if excused => Verdict::NotJudged,
            Some(_) => Verdict::Broken,
            None if overflowed && excused => Verdict::NotJudged,
            None if overflowed => Verdict::Broken,
            None if seen_here.frames == 0 && excused => Verdict::NotJudged,
            None if missed(flow, seen, seen_here) > 0 && excused => Verdict::NotJudged,
            None if missed(flow, seen, seen_here) > 0 => Verdict::Broken,
            None if seen_here.frames == 0 => Verdict::NotJudged,
            None => Verdict::Kept,
        }
    };
    assert_eq!(flow.bounds.len(), seen.listeners.len(), "the probes are of another system");
    flow.bounds.iter().zip(&seen.listeners).map(verdict).collect()
}

/// How many frames full queues cost a listener to which a bound promises that they cost none.
fn overflowed(bound: Option<&Bound>, seen: &LatencyObserved) -> u64 {
    bound.map_or(0, |_| seen.lost.overflowed)
}

/// How many frames missed their deadline because they never came, and were not removed by what is
/// described: a full queue lost them, or something holds them for ever.
fn missed(flow: &Described<'_>, seen: &FlowObserved, seen_here: &LatencyObserved) -> u64 {
    let LossesObserved { policed, faulted, aborted, .. } = seen_here.lost;
    let gone = seen_here.frames + policed + faulted + aborted;
    match flow.deadline {
        Some(deadline) if flow.is_whole && deadline < WAITED => seen.released.saturating_sub(gone),
        _ => 0,
    }
}

/// The worst verdict of a flow's listeners, and its reason.
pub(super) fn flow(
    reach: &Reach<'_>,
    system: &System,
    flow: &Described<'_>,
    seen: &FlowObserved,
    verdicts: &[Verdict],
) -> Judgement {
    let order = [Verdict::Broken, Verdict::NotJudged, Verdict::Kept];
    let worst = order.into_iter().find(|v| verdicts.contains(v)).unwrap_or(Verdict::NoPromise);
    let first = |(at, bound): (usize, &Option<&Bound>)| {
        let why = excess(*bound, flow.deadline, &seen.listeners[at])?;
        Some(format!("to {}: {why}", system.node(flow.listeners[at]).name))
    };
    let exceeded = || flow.bounds.iter().enumerate().find_map(first);
    let overflows = || {
        let ends = flow.listeners.iter().zip(flow.bounds.iter().zip(&seen.listeners));
        let lost = ends.map(|(host, (bound, seen))| (host, overflowed(*bound, seen)));
        let (host, lost) = lost.max_by_key(|(_, lost)| *lost).filter(|(_, lost)| *lost > 0)?;
        Some(format!("to {}: {lost} frames were lost to a full queue", system.node(*host).name))
    };
    let never = || {
        let ends = flow.listeners.iter().zip(&seen.listeners);
        let missed = ends.map(|(host, here)| (host, missed(flow, seen, here)));
        let (host, missed) = missed.max_by_key(|(_, n)| *n).filter(|(_, n)| *n > 0)?;
        let host = &system.node(*host).name;
        let of = seen.released;
        Some(format!("to {host}: {missed} of {of} frames missed the deadline: they never came"))
    };
    let wrong = exceeded().or_else(overflows).or_else(never);
    let mut reason = match worst {
        Verdict::NoPromise => "it has neither bound nor deadline: nothing was promised".to_owned(),
        Verdict::Kept => kept(system, flow, seen),
        Verdict::Broken => wrong.unwrap_or_default(),
        Verdict::NotJudged if wrong.is_some() => {
            let mut excuses = seen.listeners.iter().filter_map(|l| excuse(reach, system, flow, l));
            let excuse = excuses.next().unwrap_or("which is not judged");
            format!("{}, {excuse}", wrong.unwrap_or_default())
        }
        Verdict::NotJudged if seen.released == 0 => "nothing was sent".to_owned(),
        Verdict::NotJudged => "a listener received nothing".to_owned(),
    };
    let losses = [
        (seen.policed, "policed"),
        (seen.faulted, "lost to described faults"),
        (seen.aborted, "aborted for frames of stations"),
        (seen.rogue, "copies eliminated outside the history"),
    ];
    for (count, what) in losses.into_iter().filter(|(count, _)| *count > 0) {
        reason += &format!("; {count} {what}");
    }
    Judgement::new(worst, reason)
}

/// How near a flow came to what it may take.
fn kept(system: &System, flow: &Described<'_>, seen: &FlowObserved) -> String {
    let ends = flow.listeners.iter().zip(&flow.bounds).zip(&seen.listeners);
    let taken = ends.filter_map(|((host, bound), seen)| {
        let limit = [bound.map(Bound::total), flow.deadline].into_iter().flatten().min()?;
        Some((seen.max?, limit, *host))
    });
    let nearest = taken.min_by_key(|(max, limit, _)| *limit - *max);
    nearest.map_or_else(String::new, |(max, limit, host)| {
        format!("to {}: at most {max} of {limit}", system.node(host).name)
    })
}

/// The verdict on one queue, of a port that a step of a clock may have reached or not.
pub(super) fn queue(seen: &QueueObserved, bound: Option<Backlog>, is_reached: bool) -> Verdict {
    let Some(bound) = bound else { return Verdict::NoPromise };
    let over = u64::from(seen.deepest_frames) > bound.frames
        || u64::from(seen.deepest_octets) > bound.octets;
    match over {
        true if is_reached => Verdict::NotJudged,
        true => Verdict::Broken,
        false => Verdict::Kept,
    }
}
