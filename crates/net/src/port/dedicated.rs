//! What the dedicated path of a bridge does at one of its ports: frames of stations are announced,
//! and begin at the announced instant; best effort gives way.

use super::{EgressPort, Waiting, time_for};
use crate::buffer::Buffer;
use crate::frame::Frame;
use onbeat_model::dedicated::{BestEffortPolicy, DedicatedPath};
use onbeat_model::observed::DedicatedObserved;
use onbeat_model::port::QUEUES;
use onbeat_model::system::{BEST_EFFORT_QUEUE, Node, PortId, System};
use onbeat_model::time::{NetTime, Span};
use onbeat_model::units::{BitRate, Octets, frame};
use std::collections::VecDeque;

/// Where frames of stations count, and wait if best effort may end first.
const STATIONS_QUEUE: u8 = QUEUES as u8 - 1;

/// The dedicated path at a port.
#[derive(Debug)]
pub(super) struct DedicatedPort {
    policy: BestEffortPolicy,
    /// Those that were announced and have not begun, in order.
    announced: VecDeque<Announced>,
    /// Whether the head of the queue was aborted.
    is_aborted: bool,
    /// Whether the last frame is a station's that did not wait.
    is_after_direct: bool,
    /// What best effort that waits takes of the memory.
    waiting: Octets,
    /// What the last of it takes that has begun, until an octet after its last one is out.
    leaving: (Octets, NetTime),
    pub(super) observed: DedicatedObserved,
}

#[derive(Clone, Copy, Debug)]
struct Announced {
    warned: NetTime,
    start: NetTime,
    /// Whether no other one was announced and had not begun. How long it is to the begin of others
    /// is not known until it comes.
    is_known: bool,
}

impl DedicatedPort {
    pub(super) fn of(node: &Node) -> Option<Self> {
        node.dedicated_path().map(|path| Self::new(path.on_best_effort))
    }

    fn new(policy: BestEffortPolicy) -> Self {
        Self {
            policy,
            announced: VecDeque::new(),
            is_aborted: false,
            is_after_direct: false,
            waiting: Octets::new(0),
            leaving: (Octets::new(0), NetTime::ZERO),
            observed: DedicatedObserved::default(),
        }
    }

    /// The queues whose frames may be aborted, as a set: where each transmission ends is certain
    /// only when it has.
    pub(super) fn abortable(&self) -> u8 {
        match self.policy {
            BestEffortPolicy::Retry | BestEffortPolicy::Drop => 1 << BEST_EFFORT_QUEUE,
            BestEffortPolicy::Finish => 0,
        }
    }

    /// When best effort of this duration may start, from `at` on: not in the octet behind a
    /// warning, and only if its gap is over when the next announced frame begins. Else not until
    /// that has begun.
    pub(super) fn start(&self, at: NetTime, octet: Span, lasts: impl Fn() -> Span) -> NetTime {
        let Some(next) = self.announced.front() else { return at };
        let is_warned = self.announced.iter().any(|announced| announced.warned == at);
        let at = if is_warned { at + octet } else { at };
        if next.is_known && at + lasts() <= next.start { at } else { NetTime::MAX }
    }

    fn announce(&mut self, now: NetTime, start: NetTime) {
        let is_known = self.announced.iter().all(|announced| announced.start <= now);
        self.announced.push_back(Announced { warned: now, start, is_known });
    }

    /// An announced frame begins, or does not come.
    fn withdraw(&mut self, start: NetTime) {
        if let Some(at) = self.announced.iter().position(|announced| announced.start == start) {
            self.announced.remove(at);
        }
    }

    /// What the memory holds at an instant, and whether a frame of it is in transmission.
    pub(super) fn held(&self, now: NetTime) -> (Octets, bool) {
        match self.leaving {
            (octets, until) if octets.get() > 0 && now <= until => (self.waiting + octets, true),
            _ => (self.waiting, false),
        }
    }

    /// A frame is queued.
    pub(super) fn take(&mut self, queue: u8, octets: Octets) {
        if queue != STATIONS_QUEUE {
            self.waiting = self.waiting + DedicatedPath::in_words(octets);
        }
    }

    /// Best effort starts, and its last octet is out at `until`. Its place is free an octet later.
    pub(super) fn leave(&mut self, octets: Octets, until: NetTime) {
        let octets = DedicatedPath::in_words(octets);
        self.waiting = Octets::new(self.waiting.get() - octets.get());
        self.leaving = (octets, until);
    }

    /// All that waited is thrown away.
    pub(super) fn flush(&mut self) {
        self.waiting = Octets::new(0);
        self.is_aborted = false;
    }

    /// The frame in transmission is aborted, with an octet that is out at `until`, and lost or not.
    fn abort(&mut self, until: NetTime) -> bool {
        self.observed.aborts += 1;
        let is_lost = self.policy == BestEffortPolicy::Drop;
        if is_lost {
            self.observed.lost += 1;
            self.leaving.1 = until;
        } else {
            self.waiting = self.waiting + std::mem::replace(&mut self.leaving.0, Octets::new(0));
        }
        self.is_aborted = !is_lost;
        is_lost
    }
}

/// What becomes of a station's frame at a port.
pub(crate) enum Dedicated {
    /// Its transmission starts.
    Starts,
    /// It waits for best effort to end.
    Waits,
    /// Its queue has no room.
    Refused,
}

impl EgressPort {
    /// The queue of a frame that no station sent: where there is a dedicated path all others share
    /// one.
    pub(crate) fn queue_of(&self, queue: u8) -> u8 {
        if self.dedicated.is_some() { BEST_EFFORT_QUEUE as u8 } else { queue }
    }

    /// A frame of a station will begin at `start`. Aborts what would not be over then, gap
    /// included. Gives the frame that is lost by it, if one is.
    pub(crate) fn announce(
        &mut self,
        now: NetTime,
        start: NetTime,
        buffer: &mut Buffer,
    ) -> Option<Frame> {
        let dedicated = self.dedicated.as_mut()?;
        dedicated.announce(now, start);
        let fragment = self.preemption.sending.filter(|_| self.free_at > start)?;
        self.preemption.sending = None;
        self.finish_at = NetTime::MAX;
        // The octet that goes out, or the next one, is the one that aborts.
        let octets = Octets::new(fragment.whole_octets(now, self.rate)) + DedicatedPath::ABORT;
        let until = fragment.start + time_for(self.rate, octets);
        let free_at = fragment.start + time_for(self.rate, octets + frame::GAP);
        self.busy = self.busy - (self.free_at - free_at);
        self.free_at = free_at;
        let rest = fragment.rest;
        let place = &mut self.queues[rest.queue as usize];
        place.seen.sent -= 1;
        place.seen.sent_octets -= u64::from(rest.octets);
        if dedicated.abort(until) {
            return Some(rest.frame);
        }
        buffer.take(rest.frame.octets);
        place.octets += rest.octets;
        place.frames.push_front(Waiting { since: rest.since, frame: rest.frame });
        self.occupied |= 1 << rest.queue;
        None
    }

    /// The announced frame does not come.
    pub(crate) fn withdraw(&mut self, start: NetTime) {
        if let Some(dedicated) = &mut self.dedicated {
            dedicated.withdraw(start);
        }
    }

    /// A station's frame came by this port and was dropped.
    pub(crate) fn count_collision(&mut self) {
        if let Some(dedicated) = &mut self.dedicated {
            dedicated.observed.collisions += 1;
        }
    }

    /// The frame begins that was announced for `start`, which is now.
    ///
    /// # Panics
    /// When the port has no dedicated path.
    pub(crate) fn dedicate(
        &mut self,
        start: NetTime,
        frame: Frame,
        buffer: &mut Buffer,
    ) -> Dedicated {
        let is_waited = self.occupied >> STATIONS_QUEUE & 1 == 1;
        let dedicated = self.dedicated.as_mut().expect("a port with a dedicated path");
        dedicated.withdraw(start);
        let is_free = start >= self.free_at || dedicated.is_after_direct;
        let goes = dedicated.policy != BestEffortPolicy::Finish || (is_free && !is_waited);
        if !goes {
            let is_queued = self.offer(start, STATIONS_QUEUE, frame, u32::MAX, buffer);
            return if is_queued { Dedicated::Waits } else { Dedicated::Refused };
        }
        dedicated.is_after_direct = true;
        dedicated.observed.sent += 1;
        let octets = Octets::new(frame.octets.into());
        let seen = &mut self.queues[usize::from(STATIONS_QUEUE)].seen;
        seen.sent += 1;
        seen.sent_octets += u64::from(octets.get());
        // The gap of the frame before it need not be over: its sender keeps it.
        let free_at = start + time_for(self.rate, frame::on_wire(octets));
        self.busy += free_at - self.free_at.max(start);
        self.free_at = free_at;
        Dedicated::Starts
    }

    /// When a frame that is queued now at a dedicated path may leave: best effort when its last
    /// word is there, and a station's a little later.
    pub(super) fn whole_at(&self, now: NetTime, queue: u8, octets: Octets) -> NetTime {
        match (&self.dedicated, queue) {
            (None, _) => now,
            (Some(_), STATIONS_QUEUE) => now + self.time_for(DedicatedPath::QUEUED),
            (Some(_), _) => now + self.time_for(DedicatedPath::in_words(octets)),
        }
    }

    /// Whether a queue's limits have no room for one more frame of so many octets.
    pub(super) fn is_full(&self, now: NetTime, queue: u8, added: Octets) -> bool {
        let place = &self.queues[usize::from(queue)];
        let frames = place.frames.len() as u32 + 1;
        let (frames, octets) = match &self.dedicated {
            Some(dedicated) if queue != STATIONS_QUEUE => {
                let (held, is_leaving) = dedicated.held(now);
                let added = DedicatedPath::in_words(added);
                (frames + u32::from(is_leaving), held + added)
            }
            _ => (frames, Octets::new(place.octets) + added),
        };
        frames > self.limits.frames || octets > self.limits.octets
    }

    /// When the head of a queue may start as far as a dedicated path is concerned.
    pub(super) fn dedicated_start(
        &self,
        queue: usize,
        at: NetTime,
        lasts: impl Fn() -> Span,
    ) -> NetTime {
        let Some(dedicated) = &self.dedicated else { return at };
        let at = at.max(self.queues[queue].frames[0].since);
        let is_waited = self.occupied >> STATIONS_QUEUE & 1 == 1;
        match queue != usize::from(STATIONS_QUEUE) {
            true if is_waited => NetTime::MAX,
            true => dedicated.start(at, self.time_for(Octets::new(1)), lasts),
            false => at,
        }
    }

    /// A frame of a queue starts, and its last octet is out at `until`.
    pub(super) fn count_start(&mut self, queue: u32, octets: Octets, until: NetTime) {
        let Some(dedicated) = &mut self.dedicated else { return };
        dedicated.is_after_direct = false;
        if queue == u32::from(STATIONS_QUEUE) {
            dedicated.observed.sent += 1;
            return;
        }
        dedicated.leave(octets, until);
        if std::mem::take(&mut dedicated.is_aborted) {
            dedicated.observed.resent += 1;
        }
    }
}

/// The way from the end of a link into the ports of a bridge with a dedicated path: words of four
/// octets, one in each turn.
#[derive(Debug)]
pub(super) struct Fabric {
    /// Of the port that receives, in octets at the rate of the link.
    turn: i128,
    rate: BitRate,
    /// When what came by the link has moved, and the turn behind it is.
    free: NetTime,
}

impl Fabric {
    /// Of the bridge at the other end of a port, if it has a dedicated path.
    pub(super) fn behind(system: &System, id: PortId) -> Option<Self> {
        let entry = system.port(id).peer;
        let bridge = system.node(system.port(entry).node);
        bridge.dedicated_path()?;
        let number = bridge.ports.iter().position(|port| *port == entry)?;
        let turn = number as i128 % i128::from(DedicatedPath::WORD.get());
        Some(Self { turn, rate: system.link_of(id).rate, free: NetTime::ZERO })
    }

    /// When a frame begins to move that could at `at`.
    fn enter(&mut self, at: NetTime, octets: Octets) -> NetTime {
        let word = i128::from(DedicatedPath::WORD.get());
        let (second, bits) = (8_000_000_000, i128::from(self.rate.as_bps()));
        let ns = i128::from((at.max(self.free) - NetTime::ZERO).as_ns());
        let octet = (ns * bits + second - 1).div_euclid(second);
        let turn = octet + (self.turn - octet).rem_euclid(word);
        let begins = (turn * second + bits - 1).div_euclid(bits);
        let begins = NetTime::ZERO + Span::from_ns(begins as i64);
        let moves = DedicatedPath::in_words(octets) + DedicatedPath::WORD;
        self.free = begins + time_for(self.rate, moves);
        begins
    }
}

impl EgressPort {
    /// When a frame is queued that a bridge at the other end could queue at `at`: at its turn.
    pub(crate) fn queued_behind(&mut self, at: NetTime, frame: &Frame) -> NetTime {
        match &mut self.fabric {
            Some(fabric) => fabric.enter(at, Octets::new(frame.octets.into())),
            None => at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the switch in Verilog does it: what ends in the cycle in which another frame asks for
    /// room has not given its own back.
    #[test]
    fn a_place_is_free_an_octet_after_the_last_one_is_out_or_the_one_that_aborts() {
        let at = |ns| NetTime::ZERO + Span::from_ns(ns);
        for policy in [BestEffortPolicy::Retry, BestEffortPolicy::Drop, BestEffortPolicy::Finish] {
            let mut port = DedicatedPort::new(policy);
            assert_eq!(port.held(at(0)), (Octets::new(0), false));
            port.take(BEST_EFFORT_QUEUE as u8, Octets::new(101));
            port.take(BEST_EFFORT_QUEUE as u8, Octets::new(64));
            port.leave(Octets::new(101), at(800));
            assert_eq!(port.held(at(800)), (Octets::new(104 + 64), true));
            assert_eq!(port.held(at(808)), (Octets::new(64), false));
            if policy == BestEffortPolicy::Finish {
                continue;
            }
            let is_lost = port.abort(at(400));
            assert_eq!(is_lost, policy == BestEffortPolicy::Drop);
            assert_eq!(port.held(at(400)), (Octets::new(104 + 64), is_lost));
            let kept = if is_lost { 64 } else { 104 + 64 };
            assert_eq!(port.held(at(408)), (Octets::new(kept), false));
        }
    }
}
