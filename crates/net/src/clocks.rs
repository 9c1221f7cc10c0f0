//! The nodes' copies of the network clock during a run: as described, or as a protocol steers them.

use crate::participant::ClockAdjustment;
use onbeat_model::observed::{ClockObserved, ClockSample};
use onbeat_model::stream::FaultKind;
use onbeat_model::system::{NodeId, System};
use onbeat_model::time::{ClockError, NetTime, Span, SyncedTime};

/// The most pieces of clocks that are kept for readings of instants that are past, of all nodes
/// together, below 200 MB. A clock has about a hundred in a second: with ten nodes these are of
/// half an hour. What is before the oldest piece is read by that one.
const PIECES_MAX: usize = 1 << 21;

/// The most samples of a clock that are kept.
const SAMPLES_MAX: usize = 250;

/// So close to an instant of a steered clock it is not looked at again whether that has come: no
/// clock is steered by more than that changes in a nanosecond.
const CERTAIN: Span = Span::from_us(1);

/// All nodes' clocks.
#[derive(Debug)]
pub(crate) struct Clocks {
    now: Vec<ClockError>,
    /// Per node; none at all if no protocol steers any.
    steered: Vec<Option<Box<History>>>,
    /// The most pieces of one clock.
    pieces_max: usize,
}

/// A clock that a protocol steers.
#[derive(Debug)]
struct History {
    /// Since when the clock is as it is, and before, in order of time.
    pieces: Vec<(NetTime, ClockError)>,
    observed: ClockObserved,
    /// When the first fault begins, and when the last one is over.
    faults: [NetTime; 2],
    sample_every: Span,
    next_sample: NetTime,
}

impl Clocks {
    /// The clocks as they are described.
    pub(crate) fn new(system: &System) -> Self {
        let nodes = 0..system.nodes.len() as u32;
        Self {
            now: nodes.map(|n| system.clock_of(NodeId(n))).collect(),
            steered: Vec::new(),
            pieces_max: PIECES_MAX / system.nodes.len().max(1),
        }
    }

    /// From now on a protocol steers the clock of a node, in a run of so long.
    pub(crate) fn follow(&mut self, system: &System, node: NodeId, duration: Span) {
        self.steered.resize_with(self.now.len(), || None);
        let end = NetTime::ZERO + duration;
        let mut faults = [NetTime::MAX, NetTime::ZERO];
        for fault in &system.faults {
            let concerns = matches!(
                fault.kind,
                FaultKind::LinkDown(_) | FaultKind::NodeDown(_) | FaultKind::FrameErrors { .. }
            );
            if concerns && fault.from < end {
                faults = [faults[0].min(fault.from), faults[1].max(fault.until)];
            }
        }
        let clock = self.now[node.index()];
        let assumed = system.clock_wrong(node, end);
        let sample_every = Span::from_ns(duration.as_ns() / SAMPLES_MAX as i64 + 1);
        self.steered[node.index()] = Some(Box::new(History {
            pieces: vec![(NetTime::ZERO, clock)],
            observed: ClockObserved::new(node, assumed),
            faults,
            sample_every: sample_every.max(Span::from_ms(10)),
            next_sample: NetTime::ZERO,
        }));
    }

    /// Whether a protocol steers the clock of a node.
    pub(crate) fn is_steered(&self, node: NodeId) -> bool {
        self.steered.get(node.index()).is_some_and(Option::is_some)
    }

    /// What a node's clock is now.
    pub(crate) fn get(&self, node: NodeId) -> ClockError {
        self.now[node.index()]
    }

    /// What a node's clock reads, or read.
    pub(crate) fn read(&self, node: NodeId, at: NetTime) -> SyncedTime {
        let Some(Some(history)) = self.steered.get(node.index()) else {
            return self.now[node.index()].read(at);
        };
        let piece = history.pieces.partition_point(|piece| piece.0 <= at).saturating_sub(1);
        history.pieces[piece].1.read(at)
    }

    /// When to look whether a clock reads enough that, as it is, does so at `at`: then, or before,
    /// as it may be steered meanwhile. Rates differ by much less than a part in 512.
    pub(crate) fn look_at(&self, node: NodeId, now: NetTime, at: NetTime) -> NetTime {
        let left = at - now;
        if !self.is_steered(node) || left <= CERTAIN {
            return at;
        }
        at - Span::from_ns(left.as_ns() / 512)
    }

    /// A protocol steers the clock of a node; returns what it then is.
    pub(crate) fn adjust(
        &mut self,
        now: NetTime,
        node: NodeId,
        adjustment: ClockAdjustment,
    ) -> ClockError {
        let before = self.now[node.index()];
        let clock = ClockError { step: before.step, ..adjustment.clock };
        let ahead = |of: &ClockError| (of.unstepped().read(now) - SyncedTime::ZERO).as_ns();
        let of_source = adjustment.source.map(|source| self.now[source.index()]);
        let own = Span::from_ns(ahead(&clock) - now.as_ns());
        let apart = of_source.map(|of| Span::from_ns(ahead(&clock) - ahead(&of)));
        let apart = if adjustment.source == Some(node) { Some(Span::ZERO) } else { apart };
        if let Some(Some(history)) = self.steered.get_mut(node.index()) {
            // Straight lines: the error is greatest at an end of each.
            history.see(now, Span::from_ns(ahead(&before) - now.as_ns()), None);
            history.observed.source = adjustment.source;
            history.see(now, own, apart);
            if history.pieces.len() >= self.pieces_max {
                history.pieces.drain(..self.pieces_max / 2);
            }
            history.pieces.push((now, clock));
        }
        self.now[node.index()] = clock;
        clock
    }

    /// What was seen of the clocks that protocols steer, up to `now`.
    pub(crate) fn observed(&self, now: NetTime) -> Vec<ClockObserved> {
        let of = |history: &History| {
            let clock = history.pieces.last().map(|piece| piece.1).unwrap_or_default();
            let ahead = clock.unstepped().read(now) - SyncedTime::ZERO;
            let mut seen = history.observed.clone();
            let error = Span::from_ns(ahead.as_ns() - now.as_ns());
            seen.see(history.faults, now, error, None);
            seen
        };
        self.steered.iter().flatten().map(|history| of(history)).collect()
    }
}

impl History {
    fn see(&mut self, now: NetTime, error: Span, apart: Option<Span>) {
        self.observed.see(self.faults, now, error, apart);
        let has_room = self.observed.samples.len() < SAMPLES_MAX;
        if now >= self.next_sample && has_room && apart.is_some() {
            let source = self.observed.source;
            self.observed.samples.push(ClockSample { at: now, error, source });
            self.next_sample = now + self.sample_every;
        }
    }
}
