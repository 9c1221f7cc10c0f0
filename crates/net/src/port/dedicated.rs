//! What the dedicated path of a bridge does at one of its ports: frames of stations are announced,
//! and begin at the announced instant; best effort gives way.

use super::{EgressPort, Waiting, time_for};
use crate::buffer::Buffer;
use crate::frame::Frame;
use onbeat_model::dedicated::{BestEffortPolicy, DedicatedPath};
use onbeat_model::observed::DedicatedObserved;
use onbeat_model::port::QUEUES;
use onbeat_model::system::{BEST_EFFORT_QUEUE, Node};
use onbeat_model::time::{NetTime, Span};
use onbeat_model::units::{Octets, frame};
use std::collections::VecDeque;

/// Where frames of stations count, and wait if best effort may end first.
const STATIONS_QUEUE: u8 = QUEUES as u8 - 1;

/// The dedicated path at a port.
#[derive(Debug)]
pub(super) struct DedicatedPort {
    policy: BestEffortPolicy,
    /// When frames begin that were announced, in order.
    announced: VecDeque<NetTime>,
    /// Whether the head of the queue was aborted.
    is_aborted: bool,
    pub(super) observed: DedicatedObserved,
}

impl DedicatedPort {
    pub(super) fn of(node: &Node) -> Option<Self> {
        Some(Self {
            policy: node.dedicated_path()?.on_best_effort,
            announced: VecDeque::new(),
            is_aborted: false,
            observed: DedicatedObserved::default(),
        })
    }

    /// The queues whose frames may be aborted, as a set: where each transmission ends is certain
    /// only when it has.
    pub(super) fn abortable(&self) -> u8 {
        match self.policy {
            BestEffortPolicy::Retry | BestEffortPolicy::Drop => 1 << BEST_EFFORT_QUEUE,
            BestEffortPolicy::Finish => 0,
        }
    }

    /// When a frame of a queue that lasts so long may start, from `at` on: best effort only if its
    /// gap is over when the next announced frame begins, and else not until that has begun.
    pub(super) fn start(&self, queue: usize, at: NetTime, lasts: impl Fn() -> Span) -> NetTime {
        let next = self.announced.front().filter(|_| queue == BEST_EFFORT_QUEUE);
        match next {
            Some(next) if at + lasts() > *next => NetTime::MAX,
            _ => at,
        }
    }

    /// An announced frame begins, or is dropped.
    fn withdraw(&mut self, start: NetTime) {
        if let Some(at) = self.announced.iter().position(|announced| *announced == start) {
            self.announced.remove(at);
        }
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
        dedicated.announced.push_back(start);
        let fragment = self.preemption.sending.filter(|_| self.free_at > start)?;
        self.preemption.sending = None;
        self.finish_at = NetTime::MAX;
        // The octet that is going out, and the one that aborts.
        let octets = Octets::new(fragment.out(now, self.rate)) + DedicatedPath::ABORT;
        let free_at = fragment.start + time_for(self.rate, octets + frame::GAP);
        self.busy = self.busy - (self.free_at - free_at);
        self.free_at = free_at;
        let rest = fragment.rest;
        let place = &mut self.queues[rest.queue as usize];
        place.seen.sent -= 1;
        place.seen.sent_octets -= u64::from(rest.octets);
        dedicated.observed.aborts += 1;
        if dedicated.policy == BestEffortPolicy::Drop {
            dedicated.observed.lost += 1;
            return Some(rest.frame);
        }
        dedicated.is_aborted = true;
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
        let dedicated = self.dedicated.as_mut().expect("a port with a dedicated path");
        dedicated.withdraw(start);
        if dedicated.policy == BestEffortPolicy::Finish {
            let is_queued = self.offer(start, STATIONS_QUEUE, frame, u32::MAX, buffer);
            return if is_queued { Dedicated::Waits } else { Dedicated::Refused };
        }
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

    /// What was aborted is no longer in its queue.
    pub(super) fn forget_aborted(&mut self) {
        self.dedicated.iter_mut().for_each(|it| it.is_aborted = false);
    }

    /// A frame of a queue starts.
    pub(super) fn count_start(&mut self, queue: u32) {
        let Some(dedicated) = &mut self.dedicated else { return };
        if queue == u32::from(STATIONS_QUEUE) {
            dedicated.observed.sent += 1;
        } else if std::mem::take(&mut dedicated.is_aborted) {
            dedicated.observed.resent += 1;
        }
    }
}
