//! Which streams a port can reserve (802.1Q-2018 34.3.1, 35.2.4.2; importance: 35.2.2.8.5).

use crate::msrp::attribute::Rank;
use crate::msrp::failure::FailureCode;
use onbeat_model::reservation::{DELTA_BANDWIDTH_PERCENT, is_within};
use onbeat_model::units::{BitRate, StreamId};
use std::collections::BTreeSet;

/// SR classes, the more urgent first.
pub const CLASSES: usize = DELTA_BANDWIDTH_PERCENT.len();

/// A stream that would leave by a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The stream.
    pub stream: StreamId,
    /// Its rank.
    pub rank: Rank,
    /// Since when it has a reservation here, in any count that rises.
    pub since: Option<u64>,
    /// Its class: 0 for A, 1 for B.
    pub class: usize,
    /// What it takes.
    pub rate: BitRate,
    /// The port that it comes from.
    pub ingress: usize,
    /// Whether there is a listener that is ready.
    pub is_wanted: bool,
}

/// What a port has for streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortLimits {
    /// Its rate.
    pub rate: BitRate,
    /// From how many ports streams may come, msrpMaxFanInPorts; 0: any number.
    pub fan_in_max: usize,
}

/// What becomes of a stream: whether bandwidth is reserved now, or why it cannot be.
pub type Admission = Result<bool, FailureCode>;

/// The reservations of a port.
#[derive(Clone, Debug, Default)]
struct Reserved {
    by_class: [BitRate; CLASSES],
    ingress: BTreeSet<usize>,
}

impl Reserved {
    fn with(&self, candidate: &Candidate) -> Self {
        let mut all = self.clone();
        let slope = &mut all.by_class[candidate.class];
        *slope = BitRate::from_bps(slope.as_bps().saturating_add(candidate.rate.as_bps()));
        all.ingress.insert(candidate.ingress);
        all
    }

    /// What limit is exceeded: the classes up to each one together may have what they together are
    /// given, so that a class may use what more urgent ones leave (34.3.1).
    fn exceeds(&self, limits: &PortLimits) -> Option<FailureCode> {
        if limits.fan_in_max > 0 && self.ingress.len() > limits.fan_in_max {
            return Some(FailureCode::FAN_IN);
        }
        let (mut sum, mut percent) = (0_u64, 0);
        let mut exceeded = None;
        for (slope, delta) in self.by_class.iter().zip(DELTA_BANDWIDTH_PERCENT) {
            (sum, percent) = (sum.saturating_add(slope.as_bps()), percent + delta);
            if !is_within(BitRate::from_bps(sum), limits.rate, percent) {
                exceeded = Some(percent);
            }
        }
        let all = DELTA_BANDWIDTH_PERCENT.iter().sum::<u32>();
        exceeded.map(|percent| match percent == all {
            true => FailureCode::BANDWIDTH,
            false => FailureCode::CLASS_BANDWIDTH,
        })
    }
}

/// Decides for all streams of a port at once, by importance: rank, then age, then StreamID. One
/// that is not wanted takes nothing, and is told whether it could be reserved now. The result has
/// the order of `candidates`, which are sorted.
pub fn admit(candidates: &mut [Candidate], limits: &PortLimits) -> Vec<Admission> {
    candidates.sort_by_key(|candidate| {
        (candidate.rank, candidate.since.unwrap_or(u64::MAX), candidate.stream)
    });
    let mut reserved = Reserved::default();
    // The same without emergency streams: what fits there was displaced by them.
    let mut normal = Reserved::default();
    let mut decided = Vec::with_capacity(candidates.len());
    for candidate in candidates.iter() {
        let with = reserved.with(candidate);
        let without_emergency = normal.with(candidate);
        let refused = with.exceeds(limits).map(|code| match candidate.rank {
            Rank::Normal if without_emergency.exceeds(limits).is_none() => FailureCode::PREEMPTED,
            _ => code,
        });
        if candidate.is_wanted && refused.is_none() {
            reserved = with;
            if candidate.rank == Rank::Normal {
                normal = without_emergency;
            }
        }
        decided.push(refused.map_or(Ok(candidate.is_wanted), Err));
    }
    decided
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::msrp::{TSpec, stream_rate};
    use onbeat_model::system::Class;

    const LIMITS: PortLimits = PortLimits { rate: BitRate::from_mbps(100), fan_in_max: 0 };

    fn candidate(stream: u64, bps: u64) -> Candidate {
        Candidate {
            stream: StreamId(stream),
            rank: Rank::Normal,
            since: None,
            class: 0,
            rate: BitRate::from_bps(bps),
            ingress: 0,
            is_wanted: true,
        }
    }

    fn decide(candidates: &[Candidate], limits: &PortLimits) -> Vec<(u64, Admission)> {
        let mut candidates = candidates.to_vec();
        let decided = admit(&mut candidates, limits);
        let mut all: Vec<_> = candidates.iter().map(|c| c.stream.0).zip(decided).collect();
        all.sort_by_key(|(stream, _)| *stream);
        all
    }

    #[test]
    fn exactly_three_quarters_are_admitted_and_one_octet_more_is_not() {
        // 100 Mb/s, class A: 75 Mb/s are 9,375,000 octets a second, 1,171.875 in 125 µs. With 42
        // octets of overhead and the margin: MaxFrameSize 1,128 gives 1,171 octets.
        let rate = |size| {
            stream_rate(Class::A, TSpec { max_frame_size: size, max_interval_frames: 1 }).as_bps()
        };
        assert_eq!(rate(1_128), 1_171 * 8 * 8_000);
        assert_eq!(decide(&[candidate(1, rate(1_128))], &LIMITS), [(1, Ok(true))]);
        let refused = Err(FailureCode::BANDWIDTH);
        assert_eq!(decide(&[candidate(1, rate(1_129))], &LIMITS), [(1, refused)]);
        let exact = [candidate(1, 75_000_000)];
        assert_eq!(decide(&exact, &LIMITS), [(1, Ok(true))]);
    }

    #[test]
    fn the_older_stays_and_an_emergency_displaces_it() {
        let old = Candidate { since: Some(3), ..candidate(9, 50_000_000) };
        let young = candidate(1, 50_000_000);
        let decided = decide(&[young, old], &LIMITS);
        assert_eq!(decided, [(1, Err(FailureCode::BANDWIDTH)), (9, Ok(true))]);
        let emergency = Candidate { rank: Rank::Emergency, ..young };
        let decided = decide(&[emergency, old], &LIMITS);
        assert_eq!(decided, [(1, Ok(true)), (9, Err(FailureCode::PREEMPTED))]);
        // An emergency stream without a listener displaces nothing.
        let unwanted = Candidate { is_wanted: false, ..emergency };
        assert_eq!(decide(&[unwanted, old], &LIMITS), [(1, Ok(false)), (9, Ok(true))]);
    }

    #[test]
    fn class_b_has_what_class_a_leaves() {
        let a = Candidate { since: Some(1), ..candidate(1, 40_000_000) };
        let b = |bps| Candidate { class: 1, ..candidate(2, bps) };
        assert_eq!(decide(&[a, b(35_000_000)], &LIMITS)[1].1, Ok(true));
        assert_eq!(decide(&[a, b(35_000_001)], &LIMITS)[1].1, Err(FailureCode::BANDWIDTH));
        // What B has, A cannot have either.
        let b = Candidate { since: Some(0), ..b(40_000_000) };
        assert_eq!(decide(&[a, b], &LIMITS)[0].1, Err(FailureCode::BANDWIDTH));
    }

    #[test]
    fn streams_of_one_port_too_many_are_refused() {
        let limits = PortLimits { fan_in_max: 2, ..LIMITS };
        let from = |stream, ingress| Candidate { ingress, ..candidate(stream, 1_000) };
        let decided = decide(&[from(1, 4), from(2, 5), from(3, 6), from(4, 5)], &limits);
        let refused = Err(FailureCode::FAN_IN);
        assert_eq!(decided, [(1, Ok(true)), (2, Ok(true)), (3, refused), (4, Ok(true))]);
    }
}
