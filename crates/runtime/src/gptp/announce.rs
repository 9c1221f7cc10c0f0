//! Announce messages, received and sent (802.1AS-2020 10.3.10 to 10.3.16).

use crate::gptp::best_master::PriorityVector;
use crate::gptp::instance::{Action, PtpInstance, RECEIPT_TIMEOUT, next};
use crate::gptp::message::{Announce, Body, Header, MAX_PATH};
use crate::gptp::time::{LocalClockTime, ScaledNs, log_interval};

/// flagField of a grandmaster that knows nothing of leap seconds: ptpTimescale (10.6.2.2.8).
const FLAGS: u8 = 0x08;
/// currentUtcOffset: by how many seconds TAI is ahead of UTC, since 2017. It is not called valid:
/// nothing tells this node of leap seconds.
pub const UTC_OFFSET_S: i16 = 37;
/// timeSource: an internal oscillator (8.6.2.7).
const INTERNAL_OSCILLATOR: u8 = 0xa0;
/// An Announce message from further away than this is discarded (10.3.11.2.1).
const STEPS_MAX: u16 = 254;

/// The best Announce message that a port has received.
#[derive(Clone, Debug)]
pub(super) struct ReceivedAnnounce {
    pub(super) vector: PriorityVector,
    announce: Announce,
    pub(super) expires: LocalClockTime,
}

impl PtpInstance {
    /// Takes a received Announce message (10.3.11, 10.3.12).
    pub(super) fn receive_announce(
        &mut self,
        now: LocalClockTime,
        port: usize,
        header: &Header,
        announce: Announce,
    ) -> Option<()> {
        let own = self.settings.system.identity;
        let interval = log_interval(header.log_interval)?;
        let to = &mut self.ports[port];
        let comes_back = announce.path.contains(&own);
        if comes_back || announce.steps_removed > STEPS_MAX || !to.peer.capable() {
            return None;
        }
        let vector = PriorityVector {
            root: announce.root,
            steps_removed: announce.steps_removed,
            source: header.source,
            port: to.identity.port,
        };
        let before = to.announced.as_ref();
        if before.is_some_and(|b| b.vector.source != vector.source && b.vector < vector) {
            return None;
        }
        let same = before.is_some_and(|b| b.vector == vector && b.announce.path == announce.path);
        let expires = now + ScaledNs::from(interval * RECEIPT_TIMEOUT);
        to.announced = Some(ReceivedAnnounce { vector, announce, expires });
        if !same {
            self.update_port_states(now, true);
        }
        Some(())
    }

    /// Sends an Announce message (10.3.16).
    pub(super) fn announce(&mut self, now: LocalClockTime, index: usize, out: &mut Vec<Action>) {
        let log = self.settings.log_announce_interval;
        let interval = self.interval(log);
        let port = &mut self.ports[index];
        port.announce_due = next(port.announce_due, interval, now);
        port.announce_sequence = port.announce_sequence.wrapping_add(1);
        let sequence = port.announce_sequence;
        let body = Body::Announce(self.own_announce());
        out.push(self.message(index, sequence, log, ScaledNs::ZERO, body, None));
    }

    fn own_announce(&self) -> Announce {
        let announced = self.decision.slave.and_then(|port| self.ports[port].announced.as_ref());
        let mut announce = match announced {
            Some(announced) => announced.announce.clone(),
            None => Announce {
                flags: FLAGS,
                utc_offset: UTC_OFFSET_S,
                root: self.settings.system,
                steps_removed: 0,
                time_source: INTERNAL_OSCILLATOR,
                path: Vec::new(),
            },
        };
        announce.steps_removed = self.decision.steps_removed;
        // Without a place for us, the trace ends where it cannot be kept (10.3.9.23).
        let was_kept = announced.is_none() || !announce.path.is_empty();
        if was_kept && announce.path.len() < MAX_PATH {
            announce.path.push(self.settings.system.identity);
        } else {
            announce.path.clear();
        }
        announce
    }
}
