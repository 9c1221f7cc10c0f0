//! Frame preemption (802.1Qbu: 802.1Q-2022 6.7.2; 802.3br: 802.3-2018 clause 99): a preemptable
//! frame may be cut in two for the sake of express ones.

use crate::frame::Frame;
use crate::port::time_for;
use onbeat_model::time::{NetTime, Span};
use onbeat_model::units::{BitRate, Octets, frame};

/// What ends a fragment that is not the last (mCRC).
const FRAGMENT_CHECK: Octets = Octets::new(4);
/// The fewest octets of a frame in a fragment that is not the last: 64 with its check.
const FRAGMENT_MIN: u32 = 60;
/// The fewest octets that a cut leaves, with the FCS.
const REST_MIN: u32 = 64;
/// What one cut adds on the wire: check and gap of the fragment, preamble of the rest.
pub(crate) const CUT_OVERHEAD: u32 =
    FRAGMENT_CHECK.get() + frame::GAP.get() + frame::PREAMBLE.get();

/// The preemptable frame of a port, of which there is one at most.
#[derive(Debug, Default)]
pub(crate) struct Preemption {
    /// Bit q is set if frames of queue q may be interrupted.
    pub(crate) queues: u8,
    /// What is on the wire.
    pub(crate) sending: Option<Fragment>,
    /// What was interrupted and is yet to continue.
    pub(crate) rest: Option<Rest>,
}

/// A preemptable frame, or what was left of it, in transmission.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fragment {
    pub(crate) rest: Rest,
    pub(crate) start: NetTime,
    /// When its last octet is out, if nothing interrupts it.
    pub(crate) ends: NetTime,
}

/// What is left to send of a preemptable frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rest {
    pub(crate) frame: Frame,
    pub(crate) queue: u32,
    /// With the FCS.
    pub(crate) octets: u32,
    /// When its first fragment started.
    pub(crate) begun: NetTime,
    /// When it was queued.
    pub(crate) since: NetTime,
}

impl Rest {
    /// How long it occupies the port, if nothing interrupts it.
    pub(crate) fn lasts(&self, rate: BitRate) -> Span {
        time_for(rate, frame::on_wire(Octets::new(self.octets)))
    }
}

impl Fragment {
    pub(crate) fn new(rest: Rest, start: NetTime, rate: BitRate) -> Self {
        let ends = start + time_for(rate, frame::PREAMBLE + Octets::new(rest.octets));
        Self { rest, start, ends }
    }

    /// How many octets have left at `at`, with the one that is on the wire then.
    pub(crate) fn out(&self, at: NetTime, rate: BitRate) -> u32 {
        let bits = (at - self.start).as_ns() as u64 * rate.as_bps();
        bits.div_ceil(8_000_000_000) as u32
    }

    /// How many octets have left at `at`, without the one that is on the wire then.
    pub(crate) fn whole_octets(&self, at: NetTime, rate: BitRate) -> u32 {
        let bits = (at - self.start).as_ns() as u64 * rate.as_bps();
        (bits / 8_000_000_000) as u32
    }

    /// The cut that an express frame gets that may be sent at `at`: after the octet that is on the
    /// wire then, or as many as a fragment needs. When the express frame can start, and what is
    /// left; `None` if too little would be left.
    pub(crate) fn cut(&self, at: NetTime, rate: BitRate) -> Option<(NetTime, Rest)> {
        if at >= self.ends {
            return None;
        }
        let wire = self.out(at, rate);
        let octets = wire.saturating_sub(frame::PREAMBLE.get()).max(FRAGMENT_MIN);
        let left = self.rest.octets.checked_sub(octets).filter(|left| *left >= REST_MIN)?;
        let wire = frame::on_wire(Octets::new(octets) + FRAGMENT_CHECK);
        Some((self.start + time_for(rate, wire), Rest { octets: left, ..self.rest }))
    }
}
