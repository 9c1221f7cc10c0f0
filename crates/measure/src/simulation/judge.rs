//! Whether a simulation kept what the plan promised.
//!
//! A bound holds whatever is lost on the way: failed links and nodes and damaged frames take
//! frames away and delay none. It does not hold for a stream that babbles, since it is computed
//! from the stream's description. It does not hold for others either, unless a meter drops what
//! the babbler sends too much before it meets them. What exceeds a bound then is no fault of the
//! plan: it is not judged.

use super::results::Described;
use crate::result::Verdict;
use crate::verdict::Judgement;
use onbeat_model::observed::{FlowObserved, LatencyObserved, QueueObserved};
use onbeat_model::plan::{Backlog, Bound};
use onbeat_model::stream::{FaultKind, Stream};
use onbeat_model::system::{NodeId, PortId, System};
use onbeat_model::time::Span;

/// What a described fault does to promises.
pub(super) struct Excuses<'a> {
    /// A stream whose babble reaches the frames of others.
    loose: Option<&'a Stream>,
    /// Streams that babble, by their place in the system's list.
    babblers: Vec<u32>,
    /// The hosts of those whose babble ends at a meter.
    talkers: Vec<NodeId>,
}

impl<'a> Excuses<'a> {
    pub(super) fn of(system: &'a System) -> Self {
        let mut excuses = Self { loose: None, babblers: Vec::new(), talkers: Vec::new() };
        for fault in &system.faults {
            let FaultKind::Babble(number) = fault.kind else { continue };
            let stream = &system.streams[number as usize];
            excuses.babblers.push(number);
            if is_contained(system, stream) {
                excuses.talkers.push(stream.talker);
            } else {
                excuses.loose = Some(stream);
            }
        }
        excuses
    }

    /// Why a flow is not held to its bound.
    fn flow(&self, flow: &Described<'_>) -> Option<String> {
        if flow.stream.is_some_and(|number| self.babblers.contains(&number)) {
            return Some("it babbles, as the description says".into());
        }
        let loose = self.loose?;
        Some(format!("stream {} babbles, and no meter keeps it from others", loose.name))
    }

    /// Whether the queues of a port are not held to their bounds.
    pub(super) fn port(&self, system: &System, port: PortId) -> bool {
        self.loose.is_some() || self.talkers.contains(&system.port(port).node)
    }
}

/// Whether a stream is metered before its frames meet those of any other flow.
fn is_contained(system: &System, stream: &Stream) -> bool {
    let metered = stream.policing.is_some_and(|policing| policing.meter.is_some());
    let streams = system.streams.iter().filter(|other| other.talker == stream.talker).count();
    metered && streams == 1 && system.channels.iter().all(|c| c.talker != stream.talker)
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
    flow: &Described<'_>,
    seen: &FlowObserved,
    excuses: &Excuses<'_>,
) -> Vec<Verdict> {
    let excused = excuses.flow(flow).is_some();
    let verdict = |(bound, seen_here): (&Option<&Bound>, &LatencyObserved)| {
        let overflowed = bound.is_some() && seen.overflowed > 0;
        match excess(*bound, flow.deadline, seen_here) {
            _ if bound.is_none() && flow.deadline.is_none() => Verdict::NoPromise,
            Some(_) if excused => Verdict::NotJudged,
            Some(_) => Verdict::Broken,
            None if overflowed && excused => Verdict::NotJudged,
            None if overflowed => Verdict::Broken,
            None if seen_here.frames == 0 => Verdict::NotJudged,
            None => Verdict::Kept,
        }
    };
    assert_eq!(flow.bounds.len(), seen.listeners.len(), "the probes are of another system");
    flow.bounds.iter().zip(&seen.listeners).map(verdict).collect()
}

/// The worst verdict of a flow's listeners, and its reason.
pub(super) fn flow(
    system: &System,
    flow: &Described<'_>,
    seen: &FlowObserved,
    verdicts: &[Verdict],
    excuses: &Excuses<'_>,
) -> Judgement {
    let order = [Verdict::Broken, Verdict::NotJudged, Verdict::Kept];
    let worst = order.into_iter().find(|v| verdicts.contains(v)).unwrap_or(Verdict::NoPromise);
    let first = |(at, bound): (usize, &Option<&Bound>)| {
        let why = excess(*bound, flow.deadline, &seen.listeners[at])?;
        Some(format!("to {}: {why}", system.node(flow.listeners[at]).name))
    };
    let exceeded = || flow.bounds.iter().enumerate().find_map(first);
    let overflowed = || format!("{} frames were lost to a full queue", seen.overflowed);
    let mut reason = match worst {
        Verdict::NoPromise => "it has neither bound nor deadline: nothing was promised".to_owned(),
        Verdict::Kept => kept(system, flow, seen),
        Verdict::Broken => exceeded().unwrap_or_else(overflowed),
        Verdict::NotJudged => match excuses.flow(flow) {
            Some(excuse) if seen.overflowed > 0 || exceeded().is_some() => {
                format!("{}, but {excuse}", exceeded().unwrap_or_else(overflowed))
            }
            _ if seen.released == 0 => "nothing was sent".to_owned(),
            _ => "a listener received nothing".to_owned(),
        },
    };
    let losses = [(seen.policed, "policed"), (seen.faulted, "lost to described faults")];
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

/// The verdict on one queue.
pub(super) fn queue(seen: &QueueObserved, bound: Option<Backlog>, excused: bool) -> Verdict {
    let Some(bound) = bound else { return Verdict::NoPromise };
    let over = u64::from(seen.deepest_frames) > bound.frames
        || u64::from(seen.deepest_octets) > bound.octets;
    match (over, excused) {
        (false, _) => Verdict::Kept,
        (true, true) => Verdict::NotJudged,
        (true, false) => Verdict::Broken,
    }
}
