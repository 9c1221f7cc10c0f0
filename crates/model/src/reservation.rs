//! What a stream reservation takes of a port: one arithmetic for the plan and for MSRP. And how
//! reservations went in a run whose hosts and bridges made them by protocol.

use crate::system::{ChannelId, NodeId};
use crate::time::{NetTime, Span};
use crate::units::{BitRate, Octets, frame};
use std::fmt;

/// The recommended delta bandwidths of classes A and B, in percent of a port's rate
/// (802.1Q-2018 34.3.1): what A does not use is B's.
pub const DELTA_BANDWIDTH_PERCENT: [u32; 2] = [75, 0];

/// What MSRP counts beside each frame, because a talker's clock may be faster than the port's.
pub const MSRP_MARGIN: Octets = Octets::new(1);

/// The tagged frame of a stream, from the MaxFrameSize of its TSpec: MAC client data without any
/// header (802.1Q-2018 35.2.2.8.4).
pub const fn tagged_frame(max_frame_size: u16) -> Octets {
    let octets = max_frame_size as u32 + frame::HEADER.get() + frame::TAG.get() + frame::FCS.get();
    if octets < frame::MIN_TAGGED.get() { frame::MIN_TAGGED } else { Octets::new(octets) }
}

/// What so many frames in each class measurement interval take of the wire, rounded up
/// (802.1Q-2018 34.4): with preamble and gap, and with a `margin` for each.
///
/// # Panics
/// When the interval is not positive, or the rate does not fit in 64 bits.
pub fn tspec_rate(frame: Octets, frames: u64, interval: Span, margin: Octets) -> BitRate {
    assert!(Span::ZERO < interval, "an interval of {interval}");
    let octets = u128::from(frame::on_wire(frame).get() + margin.get());
    let interval = u128::from(interval.as_ns().unsigned_abs());
    let bps = (u128::from(frames) * octets * 8 * 1_000_000_000).div_ceil(interval);
    BitRate::from_bps(u64::try_from(bps).expect("frames of a port fit in its rate"))
}

/// How many frames in each class measurement interval a rate is, if [`tspec_rate`] gave it: the
/// MaxIntervalFrames of its TSpec.
pub fn interval_frames(rate: BitRate, frame: Octets, interval: Span, margin: Octets) -> u64 {
    let bits = u128::from(frame::on_wire(frame).get() + margin.get()) * 8 * 1_000_000_000;
    let frames = u128::from(rate.as_bps()) * u128::from(interval.as_ns().unsigned_abs()) / bits;
    u64::try_from(frames).unwrap_or(u64::MAX)
}

/// The most talkers, and the most listeners, of a station.
pub const STATION_STREAMS_MAX: usize = 1_024;
/// The most streams that a bridge looks at.
pub const BRIDGE_STREAMS_MAX: usize = 4_096;
/// The most ports of a bridge.
pub const BRIDGE_PORTS_MAX: usize = 1_024;

/// How long programs, and the sources of modelled channels, wait for reservations by protocol at
/// most.
pub const RESERVATION_WAIT: Span = Span::from_s(5);

/// How a talker's stream stands (802.1Q-2018 35.2.4.4.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ReservationStatus {
    /// Declared; no listener has answered.
    #[default]
    Advertised,
    /// All listeners can get it.
    Ready,
    /// Some listeners can get it, some cannot.
    ReadyFailed,
    /// There are listeners, and none can get it.
    AskingFailed,
}

impl ReservationStatus {
    /// All of them.
    pub const ALL: [Self; 4] =
        [Self::Advertised, Self::Ready, Self::ReadyFailed, Self::AskingFailed];

    /// The status as it is in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Advertised => "advertised",
            Self::Ready => "ready",
            Self::ReadyFailed => "ready-failed",
            Self::AskingFailed => "asking-failed",
        }
    }
}

/// How a stream stands at a listener.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ListenerReservation {
    /// No talker is known.
    #[default]
    NoTalker,
    /// The talker is known, and the VLAN being joined.
    Advertised,
    /// Bandwidth is reserved from the talker to here.
    Ready,
    /// It cannot be had: why, and which node says so, if it is one of the system.
    Failed(FailureCode, Option<NodeId>),
}

impl ListenerReservation {
    /// The status as it is in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NoTalker => "no-talker",
            Self::Advertised => "advertised",
            Self::Ready => "ready",
            Self::Failed(..) => "failed",
        }
    }
}

/// How the reservation of a channel went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReservationObserved {
    /// Whose.
    pub channel: ChannelId,
    /// How it stood at the end, at its talker.
    pub status: ReservationStatus,
    /// How it stood at the end at each listener, in their order; and how long after the talker's
    /// Talker Advertise its frames could first get there: it was ready, and so was every port.
    pub listeners: Vec<(ListenerReservation, Option<Span>)>,
    /// The longest that this may take by the protocol's timers, if no frame is lost and everything
    /// fits; none if that is not known.
    pub worst_case: Option<Span>,
    /// How often it was no longer complete after it had been: some port gave it up.
    pub lost: u32,
    /// Whether every port of its paths has it at the end.
    pub is_complete: bool,
}

impl ReservationObserved {
    /// How long after the Talker Advertise all listeners could first get its frames.
    pub fn ready(&self) -> Option<Span> {
        self.listeners
            .iter()
            .map(|(_, ready)| *ready)
            .collect::<Option<Vec<_>>>()?
            .into_iter()
            .max()
    }

    /// Adds what another simulation saw: how it stood is that of the first in which it was not
    /// complete, times are the longest.
    fn merge(&mut self, other: &Self) {
        let both = self.listeners.iter_mut().zip(&other.listeners);
        let takes = self.is_complete && !other.is_complete;
        for ((status, ready), (other_status, other_ready)) in both {
            *ready = ready.zip(*other_ready).map(|(a, b)| a.max(b));
            *status = if takes { *other_status } else { *status };
        }
        self.status = if takes { other.status } else { self.status };
        self.lost += other.lost;
        self.is_complete &= other.is_complete;
    }

    /// Whether all listeners had it when programs began, at `begun`, and ever after.
    pub fn held_since(&self, begun: NetTime) -> bool {
        let at = self.ready().map(|ready| NetTime::ZERO + ready);
        self.is_complete && self.lost == 0 && at.is_some_and(|at| at <= begun)
    }
}

/// All reservations of a run that were made by protocol.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReservationsObserved {
    /// When programs, and the sources of modelled channels, began: when all was decided, or the
    /// wait was over. None: not before the end.
    pub begun: Option<NetTime>,
    /// The protected channels, in their order.
    pub channels: Vec<ReservationObserved>,
}

impl ReservationsObserved {
    /// Adds what another simulation of the same system and plan saw.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.begun = self.begun.zip(other.begun).map(|(a, b)| a.max(b));
        self.channels.iter_mut().zip(&other.channels).for_each(|(a, b)| a.merge(b));
    }

    /// Whether each channel had all of its reservation when programs began, and kept it: the plan's
    /// bounds need that, as what one channel lacks of a shaper's rate slows others down.
    pub fn are_complete(&self) -> bool {
        let holds = |begun| self.channels.iter().all(|channel| channel.held_since(begun));
        self.begun.is_some_and(holds)
    }
}

/// A failure code (802.1Q-2018 Table 46-15, formerly 35-6). Numbers without a meaning here are
/// passed on as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FailureCode(pub u8);

impl FailureCode {
    /// Not enough bandwidth.
    pub const BANDWIDTH: Self = Self(1);
    /// Not enough resources of the bridge.
    pub const BRIDGE_RESOURCES: Self = Self(2);
    /// Not enough bandwidth for the traffic class.
    pub const CLASS_BANDWIDTH: Self = Self(3);
    /// The StreamID is another talker's.
    pub const STREAM_ID_IN_USE: Self = Self(4);
    /// The destination address is another stream's.
    pub const DESTINATION_IN_USE: Self = Self(5);
    /// A stream of a higher rank has the bandwidth.
    pub const PREEMPTED: Self = Self(6);
    /// The accumulated latency is larger than first reported.
    pub const LATENCY_CHANGED: Self = Self(7);
    /// The egress port is not one of the SRP domain.
    pub const EGRESS_NOT_CAPABLE: Self = Self(8);
    /// Not enough resources of MSRP.
    pub const MSRP_RESOURCES: Self = Self(10);
    /// The priority is not that of an SR class.
    pub const NOT_AN_SR_PRIORITY: Self = Self(13);
    /// MaxFrameSize is more than the medium carries.
    pub const MAX_FRAME_SIZE: Self = Self(14);
    /// More ports than msrpMaxFanInPorts would send to one.
    pub const FAN_IN: Self = Self(15);
    /// The FirstValue of a registered StreamID changed.
    pub const FIRST_VALUE_CHANGED: Self = Self(16);

    /// What it means, in a few words.
    pub const fn meaning(self) -> &'static str {
        match self.0 {
            1 => "insufficient bandwidth",
            2 => "insufficient bridge resources",
            3 => "insufficient bandwidth for the traffic class",
            4 => "StreamID in use by another talker",
            5 => "stream destination address in use",
            6 => "preempted by a stream of higher rank",
            7 => "reported latency has changed",
            8 => "egress port is not AVB capable",
            9 => "use another destination address",
            10 => "out of MSRP resources",
            11 => "out of MMRP resources",
            12 => "cannot store the destination address",
            13 => "priority is not that of an SR class",
            14 => "MaxFrameSize is too large for the medium",
            15 => "msrpMaxFanInPorts limit reached",
            16 => "FirstValue changed for a registered StreamID",
            17 => "VLAN is blocked on the egress port",
            18 => "VLAN tagging is disabled on the egress port",
            19 => "SR class priority mismatch",
            20 => "enhanced attribute cannot be passed on",
            21 => "MaxLatency exceeded",
            22 => "no network identification",
            23 => "stream transformation not supported",
            24 => "stream identification not supported for transformation",
            25 => "needs a central network controller",
            _ => "unknown failure",
        }
    }
}

impl fmt::Display for FailureCode {
    /// `1 (insufficient bandwidth)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.0, self.meaning())
    }
}

/// Whether `reserved` is at most `percent` of a port's rate; exactly as much is admitted.
pub fn is_within(reserved: BitRate, rate: BitRate, percent: u32) -> bool {
    u128::from(reserved.as_bps()) * 100 <= u128::from(rate.as_bps()) * u128::from(percent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_of_56_octets_in_each_125_us_takes_6_272_mb_and_with_the_margin_8_bits_more() {
        // 56 + 22 = 78, on the wire 98 octets, 8,000 times a second: 98 · 8 · 8,000.
        let (frame, interval) = (tagged_frame(56), Span::from_us(125));
        assert_eq!(frame, Octets::new(78));
        let bare = tspec_rate(frame, 1, interval, Octets::new(0));
        assert_eq!(bare, BitRate::from_bps(6_272_000));
        let counted = tspec_rate(frame, 1, interval, MSRP_MARGIN);
        assert_eq!(counted, BitRate::from_bps(6_272_000 + 64_000));
    }

    #[test]
    fn what_msrp_counts_is_a_channels_frame() {
        for payload in [0, 1, 8, 22, 23, 100, 1_476] {
            let tspec = tagged_frame((payload + frame::AVTP_HEADER.get()) as u16);
            assert_eq!(tspec, frame::of_channel(Octets::new(payload)), "{payload}");
        }
    }

    #[test]
    fn three_quarters_are_admitted_and_not_a_bit_more() {
        let rate = BitRate::from_mbps(100);
        assert!(is_within(BitRate::from_bps(75_000_000), rate, 75));
        assert!(!is_within(BitRate::from_bps(75_000_001), rate, 75));
        assert!(!is_within(BitRate::from_bps(u64::MAX), rate, 75));
    }
}
