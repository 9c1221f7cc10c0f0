//! Egress ports: eight queues, their shapers, strict priority among them, and the timing of
//! transmissions.

pub(crate) use self::dedicated::Dedicated;
use self::dedicated::{DedicatedPort, Fabric};
use crate::buffer::Buffer;
use crate::delay_line::DelayLine;
use crate::frame::Frame;
use crate::gate::{Gate, Gates};
use crate::preemption::{CUT_OVERHEAD, Fragment, Preemption, Rest};
use crate::shaper::{Buckets, Joining, Shaper};
use onbeat_model::observed::{PortObserved, QueueObserved};
use onbeat_model::plan::PortPlan;
use onbeat_model::port::{QUEUES, TokenBucket};
use onbeat_model::system::{BEST_EFFORT_QUEUE, NodeId, NodeKind, PortId, QueueLimits, System};
use onbeat_model::time::{ClockError, NetTime, Span};
use onbeat_model::units::{BitRate, Octets, frame};
use std::collections::VecDeque;

/// What a cut-through bridge must have of a frame: addresses, tag and EtherType.
const CUT_THROUGH: Octets = Octets::new(frame::HEADER.get() + frame::TAG.get());

/// A frame that waits.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    since: NetTime,
    frame: Frame,
}

/// What one queued frame takes of memory, in octets, without its payload; 8 more in a queue with
/// asynchronous shaping.
pub const QUEUED_FRAME_SIZE: usize = size_of::<Waiting>();
const _: () = assert!(QUEUED_FRAME_SIZE <= 32, "a deep queue should stay in the cache");

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
    /// Where it is.
    pub(crate) node: NodeId,
    pub(crate) rate: BitRate,
    /// From the last octet out to the frame being queued by the bridge at the other end, or at the
    /// port of the host there.
    travel: Span,
    /// Whether a bridge at the other end cuts through.
    pub(crate) feeds_cut_through: bool,
    limits: QueueLimits,
    queues: [Queue; QUEUES],
    /// Bit q is set while frames wait in queue q.
    occupied: u8,
    /// When the gap after the last frame is over.
    pub(crate) free_at: NetTime,
    /// When the choice of the next frame is scheduled; the end of time when it is not. An event
    /// for another time is out of date.
    pub(crate) select_at: NetTime,
    /// When the last octet of a preemptable frame is out; the end of time when none is on the
    /// wire. An event for another time is out of date.
    pub(crate) finish_at: NetTime,
    gates: Option<Box<Gates>>,
    preemption: Preemption,
    buckets: Buckets,
    /// Whether channels are reserved here, among best effort that no description knows.
    reserves: bool,
    /// The dedicated path, if its bridge has one.
    dedicated: Option<Box<DedicatedPort>>,
    /// What is behind the link, if the bridge there has one.
    fabric: Option<Box<Fabric>>,
    /// Whether that blocks whatever it may be.
    meets_best_effort: bool,
    busy: Span,
    /// Frames on their way to the queues of the bridge at the other end.
    pub(crate) wire: DelayLine<Frame>,
}

#[derive(Debug)]
struct Queue {
    frames: VecDeque<Waiting>,
    octets: u32,
    shaper: Shaper,
    seen: QueueObserved,
}

/// What a port does when it may send.
pub(crate) enum Choice {
    /// The transmission of a frame starts.
    Send {
        frame: Frame,
        /// When the other end has it.
        arrives: NetTime,
    },
    /// The transmission of a preemptable frame starts or continues. It ends at
    /// [`EgressPort::finish_at`] unless it is interrupted.
    Begin {
        /// The frame, if it starts.
        first: Option<Frame>,
    },
    /// No waiting frame may be sent before this time.
    Wait(NetTime),
}

impl EgressPort {
    pub(crate) fn new(system: &System, id: PortId, plan: &PortPlan) -> Self {
        let link = system.link_of(id);
        let node = system.port(id).node;
        let peer = system.node(system.port(system.port(id).peer).node);
        let (forwarding, feeds_cut_through) = match &peer.kind {
            NodeKind::Host(_) => (Span::ZERO, false),
            NodeKind::Bridge(bridge) => (bridge.forwarding, bridge.cut_through),
        };
        assert!(link.rate.as_bps() > 0, "{} has no rate", system.port_label(id));
        let settings = &plan.settings;
        let mut port = Self {
            node,
            rate: link.rate,
            travel: link.propagation + forwarding,
            feeds_cut_through,
            limits: system.node(node).queue,
            queues: settings.selection.map(|selection| Queue::new(Shaper::new(selection))),
            occupied: 0,
            free_at: NetTime::ZERO,
            select_at: NetTime::MAX,
            finish_at: NetTime::MAX,
            gates: Gates::new(settings, link.rate, system.clock_of(node)),
            preemption: Preemption { queues: settings.preemptable, ..Preemption::default() },
            buckets: Buckets::new(system.node(node).clock),
            reserves: plan.class_a_streams + plan.class_b_streams + plan.asynchronous_streams > 0,
            meets_best_effort: false,
            dedicated: DedicatedPort::of(system.node(node)).map(Box::new),
            fabric: Fabric::behind(system, id).map(Box::new),
            busy: Span::ZERO,
            wire: DelayLine::new(),
        };
        port.preemption.queues |= port.dedicated.as_ref().map_or(0, |it| it.abortable());
        port
    }

    /// Adds the bucket of a stream for the queues with asynchronous shaping; returns what
    /// [`EgressPort::offer`] wants for it. Streams that come in by the same port for the same
    /// queue share a group; groups are counted from 0.
    pub(crate) fn add_bucket(&mut self, bucket: TokenBucket, group: u32) -> u32 {
        self.buckets.add(bucket, group)
    }

    /// From now on the node's clock is this one. Returns whether what waits here may have to be
    /// chosen from again: whether there are gates.
    pub(crate) fn set_clock(&mut self, clock: ClockError) -> bool {
        self.buckets.set_clock(clock);
        if let Some(gates) = &mut self.gates {
            gates.set_clock(clock);
        }
        self.gates.is_some() && self.any_waiting()
    }

    /// How long a frame's wire is, without forwarding at its other end.
    pub(crate) fn time_for(&self, octets: Octets) -> Span {
        time_for(self.rate, octets)
    }

    /// Whether the queue has a credit-based shaper.
    pub(crate) fn is_shaped(&self, queue: usize) -> bool {
        matches!(self.queues[queue].shaper, Shaper::CreditBased(_))
    }

    /// From now on best effort that no description knows is in the way wherever it may be, if
    /// anything is reserved here: one of its longest frames has started a nanosecond before each
    /// frame of a higher queue that could start on an idle wire.
    pub(crate) fn meet_best_effort(&mut self) {
        self.meets_best_effort = self.reserves && self.preemption.queues == 0;
    }

    /// Lets best effort go first, if it could have started just before `now`.
    fn meets_best_effort(&mut self, now: NetTime, queue: u32) -> bool {
        let before = now - Span::from_ns(1);
        let may = self.meets_best_effort && queue as usize > BEST_EFFORT_QUEUE;
        if !may || self.free_at > before {
            return false;
        }
        let octets = frame::MAX_TAGGED;
        let lasts = time_for(self.rate, frame::on_wire(octets));
        if Gate::of(&mut self.gates, BEST_EFFORT_QUEUE).start(before, || lasts) != before {
            return false;
        }
        let seen = &mut self.queues[BEST_EFFORT_QUEUE].seen;
        seen.sent += 1;
        seen.sent_octets += u64::from(octets.get());
        self.busy += lasts;
        self.free_at = before + lasts;
        true
    }

    /// Whether any frame waits, or the rest of an interrupted one.
    pub(crate) fn any_waiting(&self) -> bool {
        self.occupied != 0 || self.preemption.rest.is_some()
    }

    /// How many frames wait, or are in flight to the next node.
    pub(crate) fn waiting(&self) -> usize {
        self.queues.iter().map(|queue| queue.frames.len()).sum::<usize>() + self.wire.len()
    }

    /// Throws away what waits, in the order of the queues, and the rest of an interrupted frame,
    /// and gives it to `lost`.
    pub(crate) fn flush(&mut self, buffer: &mut Buffer, lost: &mut impl FnMut(Frame)) {
        for queue in &mut self.queues {
            for Waiting { frame, .. } in queue.frames.drain(..) {
                buffer.release(frame.octets);
                lost(frame);
            }
            queue.octets = 0;
            queue.shaper.flushed();
        }
        self.preemption.rest.take().into_iter().for_each(|rest| lost(rest.frame));
        self.occupied = 0;
        self.dedicated.iter_mut().for_each(|dedicated| dedicated.flush());
    }

    /// What a queue's credit-based shaper has now; nothing if there is none.
    pub(crate) fn idle_slope(&self, queue: usize) -> BitRate {
        match &self.queues[queue].shaper {
            Shaper::CreditBased(credit) => credit.idle_slope(),
            _ => BitRate::default(),
        }
    }

    /// From now on a queue's credit-based shaper has this idleSlope. Without any, what waits in the
    /// queue is thrown away, and given to `lost`. Returns whether anything waits at the port.
    pub(crate) fn set_idle_slope(
        &mut self,
        now: NetTime,
        queue: usize,
        idle_slope: BitRate,
        (buffer, lost): (&mut Buffer, &mut Vec<Frame>),
    ) -> bool {
        let place = &mut self.queues[queue];
        if let Shaper::CreditBased(credit) = &mut place.shaper {
            credit.set_idle_slope(now, idle_slope);
        }
        if idle_slope == BitRate::default() {
            for Waiting { frame, .. } in place.frames.drain(..) {
                buffer.release(frame.octets);
                lost.push(frame);
            }
            place.octets = 0;
            self.occupied &= !(1 << queue);
        }
        self.any_waiting()
    }

    /// Queues a frame, or refuses it when the queue or the node's buffer is full; a refused frame
    /// takes nothing out of its bucket. `bucket` is what [`EgressPort::add_bucket`] gave, or
    /// `u32::MAX`; it only matters in a queue with asynchronous shaping.
    pub(crate) fn offer(
        &mut self,
        now: NetTime,
        queue: u8,
        frame: Frame,
        bucket: u32,
        buffer: &mut Buffer,
    ) -> bool {
        let added = Octets::new(frame.octets.into());
        let full = self.is_full(now, queue, added);
        let since = self.whole_at(now, queue, added);
        let place = &mut self.queues[usize::from(queue)];
        if full || !buffer.fits(frame.octets) {
            place.seen.dropped += 1;
            return false;
        }
        let frames = place.frames.len() as u32 + 1;
        let octets = place.octets + u32::from(frame.octets);
        buffer.take(frame.octets);
        if let Some(dedicated) = &mut self.dedicated {
            dedicated.take(queue, added);
        }
        let joining = Joining { waiting: place.frames.len(), wire_bits: wire_bits(frame), bucket };
        let mut gate = Gate::of(&mut self.gates, queue.into());
        let at = place.shaper.queueing(now, &joining, &mut gate, &mut self.buckets);
        place.frames.insert(at, Waiting { since, frame });
        place.octets = octets;
        place.seen.deepest_frames = place.seen.deepest_frames.max(frames);
        place.seen.deepest_octets = place.seen.deepest_octets.max(octets);
        self.occupied |= 1 << queue;
        true
    }

    /// When a port that is sending must choose because of a frame that was just queued: at the end,
    /// or now if it may interrupt what is being sent.
    pub(crate) fn choice_while_busy(&self, now: NetTime, queue: u8) -> NetTime {
        let express = self.preemption.queues >> queue & 1 == 0;
        if express && self.preemption.sending.is_some() {
            return now;
        }
        self.free_at.min(self.select_at)
    }

    /// Starts a transmission: the head of the highest express queue that may send, else the rest of
    /// an interrupted frame, else the head of the highest preemptable queue.
    ///
    /// # Panics
    /// When the port is still sending, or nothing waits.
    pub(crate) fn choose(&mut self, now: NetTime, buffer: &mut Buffer) -> Choice {
        assert!(self.free_at <= now && self.any_waiting());
        let preemptable = self.preemption.queues;
        let express = match self.first_ready(now, self.occupied & !preemptable) {
            Ok(queue) if self.meets_best_effort(now, queue) => return Choice::Wait(self.free_at),
            Ok(queue) => return self.send(now, queue, buffer),
            Err(earliest) => earliest,
        };
        if let Some(rest) = self.preemption.rest {
            let mut gate = Gate::of(&mut self.gates, rest.queue as usize);
            let at = gate.start(now, || rest.lasts(self.rate));
            if at > now {
                return Choice::Wait(at.min(express));
            }
            self.preemption.rest = None;
            self.begin(now, rest);
            self.queues[rest.queue as usize].shaper.resumed(self.free_at);
            return Choice::Begin { first: None };
        }
        match self.first_ready(now, self.occupied & preemptable) {
            Ok(queue) => self.send(now, queue, buffer),
            Err(earliest) => Choice::Wait(earliest.min(express)),
        }
    }

    /// The highest of these queues whose head may be sent, or the earliest time for any.
    fn first_ready(&mut self, now: NetTime, mut candidates: u8) -> Result<u32, NetTime> {
        let mut earliest = NetTime::MAX;
        while candidates != 0 {
            let queue = candidates.ilog2();
            let at = self.ready_at(now, queue);
            if at <= now {
                return Ok(queue);
            }
            earliest = earliest.min(at);
            candidates &= !(1 << queue);
        }
        Err(earliest)
    }

    /// When the head of a queue may be sent by its shaper and its gate.
    fn ready_at(&mut self, now: NetTime, queue: u32) -> NetTime {
        let place = &mut self.queues[queue as usize];
        let mut gate = Gate::of(&mut self.gates, queue as usize);
        let at = place.shaper.eligible_at(now, &mut gate);
        let (rate, octets) = (self.rate, frame::on_wire(place.head_octets()));
        let lasts = || time_for(rate, octets);
        let at = gate.start(at, lasts);
        self.dedicated_start(queue as usize, at.max(now), lasts)
    }

    fn send(&mut self, now: NetTime, queue: u32, buffer: &mut Buffer) -> Choice {
        let place = &mut self.queues[queue as usize];
        let Waiting { since, frame } = place.frames.pop_front().expect("an occupied queue");
        buffer.release(frame.octets);
        let octets = Octets::new(frame.octets.into());
        place.octets -= octets.get();
        place.seen.sent += 1;
        place.seen.sent_octets += u64::from(octets.get());
        place.seen.wait_max = place.seen.wait_max.max(now - since);
        let free_at = now + time_for(self.rate, frame::on_wire(octets));
        place.shaper.started(now, wire_bits(frame), free_at);
        if place.frames.is_empty() {
            self.occupied &= !(1 << queue);
        }
        let last_octet = now + time_for(self.rate, frame::PREAMBLE + octets);
        self.count_start(queue, octets, last_octet);
        if self.preemption.queues >> queue & 1 == 1 {
            self.begin(now, Rest { frame, queue, octets: octets.get(), begun: now, since });
            return Choice::Begin { first: Some(frame) };
        }
        self.busy += free_at - now;
        self.free_at = free_at;
        Choice::Send { frame, arrives: last_octet + self.travel }
    }

    /// A preemptable frame, or the rest of it, starts.
    fn begin(&mut self, now: NetTime, rest: Rest) {
        let fragment = Fragment::new(rest, now, self.rate);
        self.free_at = now + rest.lasts(self.rate);
        self.finish_at = fragment.ends;
        self.busy += self.free_at - now;
        self.preemption.sending = Some(fragment);
    }

    /// The last octet of the preemptable frame is out now. When its first one was, and when the
    /// other end has it.
    pub(crate) fn finish(&mut self, now: NetTime) -> (Frame, NetTime, NetTime) {
        self.finish_at = NetTime::MAX;
        let fragment = self.preemption.sending.take().expect("a frame that ends");
        (fragment.rest.frame, fragment.rest.begun, now + self.travel)
    }

    /// When a cut-through bridge at the other end forwards an express frame that starts now.
    pub(crate) fn cut_through(&self, now: NetTime) -> NetTime {
        now + time_for(self.rate, frame::PREAMBLE + CUT_THROUGH) + self.travel
    }

    /// Interrupts the preemptable frame on the wire if an express frame may be sent now. Returns
    /// when to look again: when the port is free, or when an express frame may interrupt before.
    pub(crate) fn interrupt(&mut self, now: NetTime) -> NetTime {
        let Some(fragment) = self.preemption.sending else { return self.free_at };
        let mut next = self.free_at;
        let mut express = self.occupied & !self.preemption.queues;
        while express != 0 {
            let queue = express.ilog2();
            express &= !(1 << queue);
            let mut at = self.ready_at(now, queue);
            if at <= now {
                let Some((free_at, rest)) = fragment.cut(now, self.rate) else { break };
                let octets = self.queues[queue as usize].head_octets();
                let mut gate = Gate::of(&mut self.gates, queue as usize);
                // A frame that would not fit after the cut does not cut.
                let lasts = || time_for(self.rate, frame::on_wire(octets));
                match gate.lets(now, free_at, lasts) {
                    Err(again) => at = again,
                    Ok(()) => {
                        self.cut(rest, free_at);
                        return free_at;
                    }
                }
            }
            if fragment.cut(at, self.rate).is_some() {
                next = next.min(at);
            }
        }
        next
    }

    fn cut(&mut self, rest: Rest, free_at: NetTime) {
        let place = &mut self.queues[rest.queue as usize];
        place.shaper.interrupted(u64::from(CUT_OVERHEAD) * 8);
        place.seen.preempted += 1;
        self.busy = self.busy - (self.free_at - free_at);
        self.free_at = free_at;
        self.finish_at = NetTime::MAX;
        self.preemption.sending = None;
        self.preemption.rest = Some(rest);
    }

    pub(crate) fn counters(&self) -> PortCounters {
        PortCounters {
            sent: self.queues.each_ref().map(|q| q.seen.sent),
            dropped: self.queues.each_ref().map(|q| q.seen.dropped),
            waiting: self.queues.each_ref().map(|q| q.frames.len() as u32),
            deepest_frames: self.queues.each_ref().map(|q| q.seen.deepest_frames),
            deepest_octets: self.queues.each_ref().map(|q| q.seen.deepest_octets),
        }
    }

    pub(crate) fn observed(&self) -> PortObserved {
        PortObserved {
            busy: self.busy,
            queues: self.queues.each_ref().map(|q| q.seen),
            dedicated: self.dedicated.as_ref().map(|it| it.observed),
        }
    }
}

impl Queue {
    fn new(shaper: Shaper) -> Self {
        let seen = QueueObserved::default();
        Self { frames: VecDeque::new(), octets: 0, shaper, seen }
    }

    /// Of the head, which there is.
    fn head_octets(&self) -> Octets {
        Octets::new(self.frames[0].frame.octets.into())
    }
}

/// What a frame occupies of the wire, gap included.
fn wire_bits(frame: Frame) -> u64 {
    u64::from(frame::on_wire(Octets::new(frame.octets.into())).get()) * 8
}

/// [`BitRate::time_for`] for what fits a frame, where 64 bits suffice and a division is quick.
pub(crate) fn time_for(rate: BitRate, octets: Octets) -> Span {
    let bit_ns = u64::from(octets.get()) * 8_000_000_000;
    Span::from_ns(bit_ns.div_ceil(rate.as_bps()) as i64)
}

mod dedicated;
#[cfg(test)]
mod oracle;
#[cfg(test)]
mod tests;
