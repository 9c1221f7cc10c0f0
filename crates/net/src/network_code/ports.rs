//! Who waits for whom at an egress port.

use super::books::{EgressObserved, sender};
use crate::port::time_for;
use onbeat_model::system::{PortId, System};
use onbeat_model::time::{NetTime, Span};
use onbeat_model::units::{BitRate, Octets, frame};
use std::collections::VecDeque;

/// The frames of stations at one port. They leave in the order in which they are queued, for all
/// are of one traffic class.
#[derive(Debug)]
pub(super) struct PortBook {
    pub(super) observed: EgressObserved,
    rate: BitRate,
    queued: VecDeque<QueuedFrame>,
    /// Whose frame was the last one, and when the gap behind it is over.
    last: Option<(usize, NetTime)>,
    /// When the gap behind the last frame of any other station is over.
    last_of_others: NetTime,
}

#[derive(Debug)]
struct QueuedFrame {
    token: u64,
    since: NetTime,
    /// From the destination address to the check sequence.
    octets: Octets,
}

impl PortBook {
    pub(super) fn new(system: &System, port: PortId) -> Self {
        let wait_max = Span::ZERO;
        Self {
            observed: EgressObserved {
                port,
                frames: 0,
                collisions: 0,
                waits: 0,
                wait_max,
                dropped: 0,
            },
            rate: system.link_of(port).rate,
            queued: VecDeque::new(),
            last: None,
            last_of_others: NetTime::ZERO,
        }
    }

    /// A frame, without its check sequence, will be queued.
    pub(super) fn queue(&mut self, token: u64, since: NetTime, octets: usize) {
        let octets = Octets::new(octets as u32) + frame::FCS;
        let octets = octets.max(frame::MIN_UNTAGGED);
        self.queued.push_back(QueuedFrame { token, since, octets });
    }

    /// The frame's first octet behind the preamble left at `at`.
    pub(super) fn leave(&mut self, token: u64, at: NetTime) {
        let starts = at - time_for(self.rate, frame::PREAMBLE);
        // What is before it in the queue was lost there.
        while let Some(QueuedFrame { token: found, since, octets }) = self.queued.pop_front() {
            if found != token {
                continue;
            }
            let station = sender(token);
            let (last, last_end) = self.last.unwrap_or((station, NetTime::ZERO));
            if last != station {
                self.last_of_others = last_end;
            }
            self.observed.frames += 1;
            self.observed.collisions += u64::from(self.last_of_others > since);
            self.observed.waits += u64::from(starts > since.max(last_end));
            self.observed.wait_max = self.observed.wait_max.max(starts - since);
            let end = starts + time_for(self.rate, frame::on_wire(octets));
            self.last = Some((station, end));
            return;
        }
    }
}
