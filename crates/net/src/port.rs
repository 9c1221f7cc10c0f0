//! Egress ports: eight queues, their shapers, strict priority among them, and the timing of
//! transmissions.

use crate::frame::Frame;
use crate::lane::Lane;
use crate::shaper::{CreditBased, Shaper};
use onbeat_model::plan::PortPlan;
use onbeat_model::port::{QUEUES, Selection, TokenBucket};
use onbeat_model::system::{NodeKind, PortId, QueueLimits, System};
use onbeat_model::time::{NetTime, Span};
use onbeat_model::units::{BitRate, Octets, frame};
use std::collections::VecDeque;

/// What one port counted, per queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortCounters {
    /// Frames whose transmission has started.
    pub sent: [u64; QUEUES],
    /// Frames that were refused because their queue was full.
    pub dropped: [u64; QUEUES],
    /// Frames that wait now.
    pub waiting: [u32; QUEUES],
    /// The most frames that ever waited.
    pub deepest_frames: [u32; QUEUES],
    /// The most octets of frames that ever waited.
    pub deepest_octets: [u32; QUEUES],
}

/// The sending half of a port.
#[derive(Debug)]
pub(crate) struct EgressPort {
    rate: BitRate,
    /// From the last octet out to the frame being queued by the bridge at the other end, or at the
    /// port of the host there.
    travel: Span,
    limits: QueueLimits,
    queues: [Queue; QUEUES],
    /// Bit q is set while frames wait in queue q.
    occupied: u8,
    /// When the gap after the last frame is over.
    pub(crate) free_at: NetTime,
    /// When the choice of the next frame is scheduled; the end of time when it is not. An event
    /// for another time is out of date.
    pub(crate) select_at: NetTime,
    /// Frames on their way to the queues of the bridge at the other end.
    pub(crate) wire: Lane<Frame>,
}

#[derive(Debug)]
struct Queue {
    frames: VecDeque<Frame>,
    octets: u32,
    shaper: Shaper,
    sent: u64,
    dropped: u64,
    deepest_frames: u32,
    deepest_octets: u32,
}

/// What a port does when it may send.
pub(crate) enum Choice {
    /// The transmission of a frame starts.
    Send {
        frame: Frame,
        /// When the other end has it.
        arrives: NetTime,
    },
    /// No waiting frame may be sent before this time.
    Wait(NetTime),
}

impl EgressPort {
    pub(crate) fn new(system: &System, id: PortId, plan: &PortPlan) -> Self {
        let link = system.link_of(id);
        let peer = system.node(system.port(system.port(id).peer).node);
        let forwarding = match &peer.kind {
            NodeKind::Host(_) => Span::ZERO,
            NodeKind::Bridge(bridge) => bridge.forwarding,
        };
        assert!(link.rate.as_bps() > 0, "{} has no rate", system.port_label(id));
        let shaper = |queue: usize| match plan.settings.selection[queue] {
            Selection::CreditBased { idle_slope } => {
                Shaper::CreditBased(CreditBased::new(idle_slope))
            }
            Selection::StrictPriority | Selection::Asynchronous => Shaper::Priority,
        };
        Self {
            rate: link.rate,
            travel: link.propagation + forwarding,
            limits: system.node(system.port(id).node).queue,
            queues: std::array::from_fn(|queue| Queue::new(shaper(queue))),
            occupied: 0,
            free_at: NetTime::ZERO,
            select_at: NetTime::MAX,
            wire: Lane::new(),
        }
    }

    /// Whether the queue has a credit-based shaper.
    pub(crate) fn is_shaped(&self, queue: usize) -> bool {
        matches!(self.queues[queue].shaper, Shaper::CreditBased(_))
    }

    /// Whether any frame waits.
    pub(crate) fn any_waiting(&self) -> bool {
        self.occupied != 0
    }

    /// Queues a frame, or refuses it when the queue is full.
    pub(crate) fn offer(&mut self, now: NetTime, queue: u8, frame: Frame, _bucket: u32) -> bool {
        let place = &mut self.queues[usize::from(queue)];
        let frames = place.frames.len() as u32 + 1;
        let octets = place.octets + u32::from(frame.octets);
        if frames > self.limits.frames || octets > self.limits.octets.get() {
            place.dropped += 1;
            return false;
        }
        place.shaper.queueing(now, frames == 1);
        place.frames.push_back(frame);
        place.octets = octets;
        place.deepest_frames = place.deepest_frames.max(frames);
        place.deepest_octets = place.deepest_octets.max(octets);
        self.occupied |= 1 << queue;
        true
    }

    /// Throws away what waits, in the order of the queues, and gives it to `lost`.
    pub(crate) fn flush(&mut self, lost: &mut impl FnMut(Frame)) {
        for queue in &mut self.queues {
            queue.frames.drain(..).for_each(&mut *lost);
            queue.octets = 0;
        }
        self.occupied = 0;
    }

    /// Gives a stream a bucket at a queue with asynchronous shaping; its place among the port's.
    pub(crate) fn add_bucket(&mut self, _bucket: TokenBucket, _group: u32) -> u32 {
        u32::MAX
    }

    /// Starts the transmission of the head of the highest queue that may send.
    ///
    /// # Panics
    /// When the port is still sending, or nothing waits.
    pub(crate) fn choose(&mut self, now: NetTime) -> Choice {
        assert!(self.free_at <= now && self.any_waiting());
        let mut candidates = self.occupied;
        let mut earliest = NetTime::MAX;
        while candidates != 0 {
            let queue = candidates.ilog2();
            let eligible_at = self.queues[queue as usize].shaper.eligible_at(now);
            if eligible_at <= now {
                return self.send(now, queue);
            }
            earliest = earliest.min(eligible_at);
            candidates &= !(1 << queue);
        }
        Choice::Wait(earliest)
    }

    fn send(&mut self, now: NetTime, queue: u32) -> Choice {
        let place = &mut self.queues[queue as usize];
        let frame = place.frames.pop_front().expect("a frame in an occupied queue");
        let octets = Octets::new(frame.octets.into());
        let wire = frame::on_wire(octets);
        self.free_at = now + time_for(self.rate, wire);
        place.octets -= octets.get();
        place.sent += 1;
        place.shaper.started(now, u64::from(wire.get()) * 8, self.free_at);
        if place.frames.is_empty() {
            self.occupied &= !(1 << queue);
        }
        let last_octet = now + time_for(self.rate, frame::PREAMBLE + octets);
        Choice::Send { frame, arrives: last_octet + self.travel }
    }

    pub(crate) fn counters(&self) -> PortCounters {
        PortCounters {
            sent: self.queues.each_ref().map(|q| q.sent),
            dropped: self.queues.each_ref().map(|q| q.dropped),
            waiting: self.queues.each_ref().map(|q| q.frames.len() as u32),
            deepest_frames: self.queues.each_ref().map(|q| q.deepest_frames),
            deepest_octets: self.queues.each_ref().map(|q| q.deepest_octets),
        }
    }
}

impl Queue {
    fn new(shaper: Shaper) -> Self {
        Self {
            frames: VecDeque::new(),
            octets: 0,
            shaper,
            sent: 0,
            dropped: 0,
            deepest_frames: 0,
            deepest_octets: 0,
        }
    }
}

/// [`BitRate::time_for`] for what fits a frame, where 64 bits suffice and a division is quick.
fn time_for(rate: BitRate, octets: Octets) -> Span {
    let bit_ns = u64::from(octets.get()) * 8_000_000_000;
    Span::from_ns(bit_ns.div_ceil(rate.as_bps()) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transmission_times_are_those_of_the_model() {
        for bps in [1, 3, 10_000_000, 100_000_000, 999_999_937, 1_000_000_000, 2_500_000_000] {
            let rate = BitRate::from_bps(bps);
            for octets in [1, 76, 88, 1_536, 1_542, u32::from(u16::MAX) + 20].map(Octets::new) {
                assert_eq!(time_for(rate, octets), rate.time_for(octets), "{octets:?} at {rate}");
            }
        }
    }
}
