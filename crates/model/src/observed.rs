//! What a simulation saw: one probe per listener of each stream, and per queue of each port.

use crate::port::QUEUES;
use crate::reservation::ReservationsObserved;
use crate::system::NodeId;
use crate::time::{NetTime, Span};

/// Everything that the probes of one simulation, or of several put together, saw.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    /// How long it was simulated, over all repetitions.
    pub duration: Span,
    /// How many simulations are put together.
    pub repetitions: u32,
    /// Per channel, in the order of the system.
    pub channels: Vec<FlowObserved>,
    /// Per stream, in the order of the system.
    pub streams: Vec<FlowObserved>,
    /// Per port, in the order of the system.
    pub ports: Vec<PortObserved>,
    /// The clocks that a protocol steers, in the order of the nodes.
    pub clocks: Vec<ClockObserved>,
    /// How reservations went that hosts and bridges made by protocol; none if they made none.
    pub reservations: Option<ReservationsObserved>,
    /// Events that the engine processed.
    pub events: u64,
}

/// What became of one channel's or stream's frames.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowObserved {
    /// Frames that its source released.
    pub released: u64,
    /// Frames that a filter or meter dropped on purpose (802.1Qci).
    pub policed: u64,
    /// Copies that were dropped because a queue or a buffer was full.
    pub overflowed: u64,
    /// Copies that a failed or erroneous link, or a failed node, swallowed.
    pub faulted: u64,
    /// Copies that a dedicated path aborted and lost.
    pub aborted: u64,
    /// Copies that were eliminated as duplicates (802.1CB): no loss.
    pub duplicates: u64,
    /// Copies that were eliminated because their sequence number is outside the history (802.1CB's
    /// rogue packets): a frame all of whose copies are is lost.
    pub rogue: u64,
    /// Per listener.
    pub listeners: Vec<LatencyObserved>,
}

/// What took frames away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// A filter or meter, on purpose (802.1Qci).
    Policed,
    /// A full queue or buffer.
    Overflowed,
    /// A described fault.
    Faulted,
    /// A dedicated path that does not send again what it aborts.
    Aborted,
}

/// Copies that were on a way to a listener and are lost. One that was on the way to several is lost
/// to each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LossesObserved {
    /// By a filter or meter, on purpose (802.1Qci).
    pub policed: u64,
    /// Because a queue or a buffer was full.
    pub overflowed: u64,
    /// By a failed or erroneous link, or a failed node.
    pub faulted: u64,
    /// By a dedicated path that aborted it.
    pub aborted: u64,
}

impl LossesObserved {
    /// Counts one.
    pub fn count(&mut self, loss: Loss) {
        *match loss {
            Loss::Policed => &mut self.policed,
            Loss::Overflowed => &mut self.overflowed,
            Loss::Faulted => &mut self.faulted,
            Loss::Aborted => &mut self.aborted,
        } += 1;
    }

    /// All of them.
    pub fn total(&self) -> u64 {
        self.policed + self.overflowed + self.faulted + self.aborted
    }

    /// Adds others.
    pub fn add(&mut self, other: Self) {
        self.policed += other.policed;
        self.overflowed += other.overflowed;
        self.faulted += other.faulted;
        self.aborted += other.aborted;
    }
}

/// Release to receipt in true network time, at one listener.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LatencyObserved {
    /// Frames received.
    pub frames: u64,
    /// The shortest, if any frame came.
    pub min: Option<Span>,
    /// The longest.
    pub max: Option<Span>,
    /// When the longest one's frame was released.
    pub max_released: NetTime,
    /// All latencies added up, for the mean.
    pub sum_ns: i128,
    /// Frames that came after a later one.
    pub reordered: u64,
    /// Copies that were on a way to this listener and are lost.
    pub lost: LossesObserved,
}

/// What one port sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortObserved {
    /// How long the wire was occupied, gaps included.
    pub busy: Span,
    /// Per queue.
    pub queues: [QueueObserved; QUEUES],
    /// What a dedicated path did here; none if its bridge has none.
    pub dedicated: Option<DedicatedObserved>,
}

/// What the dedicated path of a bridge did at one port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DedicatedObserved {
    /// Frames of stations that left here. They count in queue 7, too.
    pub sent: u64,
    /// Times that a frame of best effort was aborted.
    pub aborts: u64,
    /// Times that a frame was sent again that had been aborted.
    pub resent: u64,
    /// Frames that were aborted and lost.
    pub lost: u64,
    /// Frames of stations that came by this port and were dropped, as one that came by another port
    /// was on the path.
    pub collisions: u64,
}

/// One queue of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueObserved {
    /// Frames whose transmission was completed or has started; without those that were aborted.
    pub sent: u64,
    /// Octets of these frames, destination address to FCS.
    pub sent_octets: u64,
    /// Frames refused because the queue or the buffer was full.
    pub dropped: u64,
    /// The most frames that waited at once; what is being sent does not wait.
    pub deepest_frames: u32,
    /// The most octets of frames that waited at once.
    pub deepest_octets: u32,
    /// The longest from being queued to the start of transmission.
    pub wait_max: Span,
    /// Times that a frame was interrupted by an express one.
    pub preempted: u64,
}

impl Observed {
    /// Adds what another simulation of the same system and plan saw.
    ///
    /// # Panics
    /// When the two are not of the same system.
    pub fn merge(&mut self, other: &Self) {
        if self.repetitions == 0 {
            *self = other.clone();
            return;
        }
        let shape = |o: &Self| (o.channels.len(), o.streams.len(), o.ports.len());
        assert_eq!(shape(self), shape(other), "of another system");
        self.duration += other.duration;
        self.repetitions += other.repetitions;
        self.events += other.events;
        self.channels.iter_mut().zip(&other.channels).for_each(|(a, b)| a.merge(b));
        self.streams.iter_mut().zip(&other.streams).for_each(|(a, b)| a.merge(b));
        self.ports.iter_mut().zip(&other.ports).for_each(|(a, b)| a.merge(b));
        self.clocks.iter_mut().zip(&other.clocks).for_each(|(a, b)| a.merge(b));
        if let (Some(a), Some(b)) = (&mut self.reservations, &other.reservations) {
            a.merge(b);
        }
    }
}

/// A clock that a protocol steers during a run. Errors are of its readings against true time,
/// without what a fault lets it step by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClockObserved {
    /// Whose.
    pub node: NodeId,
    /// The largest error that the plan counts with.
    pub assumed: Span,
    /// Before the first fault of a link or node.
    pub before: Option<ClockPhase>,
    /// From the beginning of the first to the end of the last one.
    pub during: Option<ClockPhase>,
    /// After the last one.
    pub after: Option<ClockPhase>,
    /// When the first fault began.
    pub fault: Option<NetTime>,
    /// When the error was larger than assumed for the first and for the last time.
    pub beyond: Option<[NetTime; 2]>,
    /// Whether it still is.
    pub is_beyond: bool,
    /// Whose time it had at last.
    pub source: Option<NodeId>,
    /// At about equal intervals, of the first repetition only.
    pub samples: Vec<ClockSample>,
}

/// How wrong a clock was for some time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockPhase {
    /// The largest error, without its sign.
    pub error: Span,
    /// The largest difference from the clock of the node whose time it had, without its sign.
    pub from_source: Span,
}

/// A clock at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockSample {
    /// True time.
    pub at: NetTime,
    /// How far it is ahead.
    pub error: Span,
    /// Whose time it has.
    pub source: Option<NodeId>,
}

impl ClockObserved {
    /// Nothing yet.
    pub fn new(node: NodeId, assumed: Span) -> Self {
        Self {
            node,
            assumed,
            before: None,
            during: None,
            after: None,
            fault: None,
            beyond: None,
            is_beyond: false,
            source: None,
            samples: Vec::new(),
        }
    }

    /// Counts that the clock is ahead by `error`, and `apart` from that of the node whose time it
    /// has, while faults are from one instant until another.
    pub fn see(&mut self, faults: [NetTime; 2], now: NetTime, error: Span, apart: Option<Span>) {
        let [from, until] = faults;
        let phase = match now {
            _ if now < from => &mut self.before,
            _ if now < until => &mut self.during,
            _ => &mut self.after,
        };
        let phase = phase.get_or_insert_default();
        phase.error = phase.error.max(error.abs());
        phase.from_source = phase.from_source.max(apart.unwrap_or_default().abs());
        self.fault = Some(from).filter(|from| now >= *from);
        self.is_beyond = error.abs() > self.assumed;
        if self.is_beyond {
            self.beyond.get_or_insert([now, now])[1] = now;
        }
    }

    /// The largest error of all.
    pub fn error(&self) -> Span {
        let phases = [self.before, self.during, self.after];
        phases.iter().flatten().map(|phase| phase.error).max().unwrap_or_default()
    }

    /// How long after the first fault began the error was at last within what is assumed; `None`
    /// while it is not, and without a fault.
    pub fn back_after(&self) -> Option<Span> {
        let fault = self.fault.filter(|_| !self.is_beyond)?;
        let last = self.beyond.map_or(fault, |[_, last]| last.max(fault));
        Some(last - fault)
    }

    fn merge(&mut self, other: &Self) {
        let both = |a: Option<ClockPhase>, b: Option<ClockPhase>| match (a, b) {
            (Some(a), Some(b)) => Some(ClockPhase {
                error: a.error.max(b.error),
                from_source: a.from_source.max(b.from_source),
            }),
            (a, b) => a.or(b),
        };
        self.before = both(self.before, other.before);
        self.during = both(self.during, other.during);
        self.after = both(self.after, other.after);
        self.fault = self.fault.or(other.fault);
        self.beyond = match (self.beyond, other.beyond) {
            (Some(a), Some(b)) => Some([a[0].min(b[0]), a[1].max(b[1])]),
            (a, b) => a.or(b),
        };
        self.is_beyond |= other.is_beyond;
    }
}

impl FlowObserved {
    fn merge(&mut self, other: &Self) {
        self.released += other.released;
        self.policed += other.policed;
        self.overflowed += other.overflowed;
        self.faulted += other.faulted;
        self.aborted += other.aborted;
        self.duplicates += other.duplicates;
        self.rogue += other.rogue;
        self.listeners.iter_mut().zip(&other.listeners).for_each(|(a, b)| a.merge(b));
    }
}

impl LatencyObserved {
    /// Counts a frame that was released at `released` and took `latency`.
    pub fn count(&mut self, released: NetTime, latency: Span) {
        self.frames += 1;
        self.sum_ns += i128::from(latency.as_ns());
        self.min = Some(self.min.map_or(latency, |min| min.min(latency)));
        if self.max.is_none_or(|max| latency > max) {
            self.max = Some(latency);
            self.max_released = released;
        }
    }

    fn merge(&mut self, other: &Self) {
        self.frames += other.frames;
        self.sum_ns += other.sum_ns;
        self.reordered += other.reordered;
        self.lost.add(other.lost);
        self.min = [self.min, other.min].into_iter().flatten().min();
        if other.max > self.max {
            (self.max, self.max_released) = (other.max, other.max_released);
        }
    }
}

impl PortObserved {
    fn merge(&mut self, other: &Self) {
        self.busy += other.busy;
        self.queues.iter_mut().zip(&other.queues).for_each(|(a, b)| a.merge(b));
        if let (Some(a), Some(b)) = (&mut self.dedicated, &other.dedicated) {
            a.merge(b);
        }
    }
}

impl DedicatedObserved {
    fn merge(&mut self, other: &Self) {
        self.sent += other.sent;
        self.aborts += other.aborts;
        self.resent += other.resent;
        self.lost += other.lost;
        self.collisions += other.collisions;
    }
}

impl QueueObserved {
    fn merge(&mut self, other: &Self) {
        self.sent += other.sent;
        self.sent_octets += other.sent_octets;
        self.dropped += other.dropped;
        self.deepest_frames = self.deepest_frames.max(other.deepest_frames);
        self.deepest_octets = self.deepest_octets.max(other.deepest_octets);
        self.wait_max = self.wait_max.max(other.wait_max);
        self.preempted += other.preempted;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn putting_simulations_together_adds_counts_and_keeps_extremes() {
        let seen = |latency: i64| {
            let mut end = LatencyObserved::default();
            end.count(NetTime::from_ns(latency * 10), Span::from_ns(latency));
            let flow = FlowObserved { released: 1, listeners: vec![end], ..Default::default() };
            Observed { repetitions: 1, streams: vec![flow], ..Default::default() }
        };
        let mut all = Observed::default();
        for latency in [5, 9, 7] {
            all.merge(&seen(latency));
        }
        let end = &all.streams[0].listeners[0];
        assert_eq!((all.repetitions, all.streams[0].released, end.frames), (3, 3, 3));
        assert_eq!((end.min, end.max), (Some(Span::from_ns(5)), Some(Span::from_ns(9))));
        assert_eq!((end.max_released.as_ns(), end.sum_ns), (90, 21));
    }
}
