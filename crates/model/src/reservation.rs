//! What a stream reservation takes of a port: one arithmetic for the plan and for MSRP.

use crate::time::Span;
use crate::units::{BitRate, Octets, frame};

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
