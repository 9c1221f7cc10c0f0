//! The credit-based shaper (802.1Q-2018 8.6.8.2, Annex L), exact in integers.

use crate::gate::Gate;
use onbeat_model::time::NetTime;
use onbeat_model::units::BitRate;

/// Credit per bit: a rate in bit/s times a time in ns counts 10⁻⁹ bit.
const PER_BIT: i128 = 1_000_000_000;

/// The credit of one queue.
///
/// The standard lets credit fall at sendSlope = idleSlope − port rate while the queue sends. Here
/// the bits of a frame on the wire are taken at its start and idleSlope accrues meanwhile, which
/// is the same at the end of the transmission and never looked at before. It stays exact when the
/// transmission time was rounded up to a whole nanosecond: in the long run the queue gets its
/// idleSlope to the bit.
///
/// Behind a gate, idleSlope accrues only while the gate is open, to the nanosecond, and is greater
/// there by as much as the gate is closed (802.1Q-2022 8.6.8.2: operIdleSlope is what it leaves);
/// while it is closed, credit stands still, but for the positive credit of an empty queue, which is
/// lost as ever. In a guard band, where the gate is open and the head does not fit, credit accrues:
/// the queue waits as it waits for another. A frame that continues beyond the closing of its gate
/// pays for all its bits and gets nothing for that time.
///
/// A frame that is interrupted pays for the overhead of its fragments when it is cut, and gets
/// idleSlope all the while: credit falls only while its own octets are on the wire.
#[derive(Debug)]
pub(crate) struct CreditBased {
    /// operIdleSlope.
    idle_slope: BitRate,
    /// In 10⁻⁹ bit, as of `as_of`.
    credit: i128,
    /// Later than the last call if the credit was negative: then it is when that is over.
    as_of: NetTime,
    sending_until: NetTime,
}

impl CreditBased {
    pub(crate) fn new(idle_slope: BitRate) -> Self {
        assert!(idle_slope.as_bps() > 0, "a shaped queue with no bandwidth never sends");
        let start = NetTime::ZERO;
        Self { idle_slope, credit: 0, as_of: start, sending_until: start }
    }

    /// What it has now.
    pub(crate) fn idle_slope(&self) -> BitRate {
        self.idle_slope
    }

    /// From `now` on the queue has this idleSlope; with none it sends nothing. There is no gate.
    pub(crate) fn set_idle_slope(&mut self, now: NetTime, idle_slope: BitRate) {
        let gate = &mut Gate::always_open();
        match now < self.as_of {
            // Credit that was to come by the old slope is still to come.
            true => {
                self.credit -= gate.credit(self.idle_slope, now, self.as_of, i128::MAX);
                self.as_of = now;
            }
            false => self.settle(now, false, gate),
        }
        self.idle_slope = idle_slope;
    }

    /// Brings the credit up to `now`. `empty`: no frame has been waiting since the last call. A
    /// queue that neither waits nor sends cannot hold positive credit. One that receives a frame
    /// at the very instant at which its transmission ends was not empty.
    pub(crate) fn settle(&mut self, now: NetTime, empty: bool, gate: &mut Gate) {
        if now < self.as_of {
            return;
        }
        let idle = empty && now > self.sending_until;
        // What an idle queue gets beyond zero is lost: no need to count it.
        let enough = if idle { -self.credit.min(0) } else { i128::MAX };
        self.credit += gate.credit(self.idle_slope, self.as_of, now, enough);
        if idle {
            self.credit = self.credit.min(0);
        }
        self.as_of = now;
    }

    /// When the credit is next zero or more, while frames wait; the end of time if the gate never
    /// opens for so long.
    pub(crate) fn eligible_at(&mut self, now: NetTime, gate: &mut Gate) -> NetTime {
        self.settle(now, false, gate);
        if self.idle_slope == BitRate::default() {
            return NetTime::MAX;
        }
        if self.credit < 0 {
            let (at, credit) = gate.after_credit(self.idle_slope, self.as_of, -self.credit);
            if at == NetTime::MAX {
                return at;
            }
            // Nothing but time changes a negative credit.
            self.credit += credit;
            self.as_of = at;
        }
        self.as_of
    }

    /// Takes the bits of a frame whose transmission starts at `now`.
    pub(crate) fn started(&mut self, now: NetTime, wire_bits: u64, until: NetTime) {
        debug_assert!(self.as_of == now && self.credit >= 0);
        self.credit -= i128::from(wire_bits) * PER_BIT;
        self.sending_until = until;
    }

    /// Takes the bits of a cut, after which the frame continues at an unknown time.
    pub(crate) fn interrupted(&mut self, overhead_bits: u64) {
        self.credit -= i128::from(overhead_bits) * PER_BIT;
        self.sending_until = NetTime::MAX;
    }

    /// The rest of an interrupted frame continues until `until`.
    pub(crate) fn resumed(&mut self, until: NetTime) {
        self.sending_until = until;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No gate.
    fn open() -> Gate<'static> {
        Gate::always_open()
    }

    fn at(ns: i64) -> NetTime {
        NetTime::from_ns(ns)
    }

    /// 1 Gb/s port, idleSlope 250 Mb/s: 1000 wire octets = 8000 bits = 8000 ns.
    fn after_one_frame() -> CreditBased {
        let mut shaper = CreditBased::new(BitRate::from_mbps(250));
        shaper.settle(at(0), true, &mut open());
        assert_eq!(shaper.eligible_at(at(0), &mut open()), at(0));
        shaper.started(at(0), 8_000, at(8_000));
        shaper
    }

    #[test]
    fn credit_falls_at_send_slope_and_recovers_at_idle_slope() {
        // Falls (250 − 1000) Mb/s × 8 µs = −6000 bit; recovers 6000 bit / 250 Mb/s = 24 µs.
        let mut shaper = after_one_frame();
        shaper.settle(at(100), true, &mut open());
        shaper.settle(at(8_000), false, &mut open());
        assert_eq!(shaper.credit, -6_000 * PER_BIT);
        assert_eq!(shaper.eligible_at(at(8_000), &mut open()), at(32_000));
        // Earlier calls do not change the answer.
        assert_eq!(shaper.eligible_at(at(31_999), &mut open()), at(32_000));
        assert_eq!(shaper.eligible_at(at(32_000), &mut open()), at(32_000));
    }

    #[test]
    fn an_empty_queue_recovers_to_zero_and_no_further() {
        let mut shaper = after_one_frame();
        shaper.settle(at(1_000_000), true, &mut open());
        assert_eq!(shaper.credit, 0);
    }

    #[test]
    fn a_waiting_queue_gathers_positive_credit_which_empties_with_the_queue() {
        let mut shaper = CreditBased::new(BitRate::from_mbps(250));
        shaper.settle(at(0), true, &mut open());
        // Waits 12 µs for another frame: +3000 bit. Its own 2000 bits take 2 µs at 1 Gb/s:
        // 3000 + 250 Mb/s × 2 µs − 2000 = +1500 bit at 14 µs.
        assert_eq!(shaper.eligible_at(at(12_000), &mut open()), at(12_000));
        assert_eq!(shaper.credit, 3_000 * PER_BIT);
        shaper.started(at(12_000), 2_000, at(14_000));
        // At the end of the transmission it is still there, 1 ns later it is gone.
        shaper.settle(at(14_000), true, &mut open());
        assert_eq!(shaper.credit, 1_500 * PER_BIT);
        shaper.settle(at(14_001), true, &mut open());
        assert_eq!(shaper.credit, 0);
    }

    #[test]
    fn a_new_idle_slope_counts_from_its_instant_on_as_if_asked_or_not() {
        // −6000 bit at 8 µs. At 16 µs, 2000 of them are back; then 500 Mb/s for 4000: 8 µs more.
        for asks in [false, true] {
            let mut shaper = after_one_frame();
            if asks {
                assert_eq!(shaper.eligible_at(at(10_000), &mut open()), at(32_000));
            }
            shaper.set_idle_slope(at(16_000), BitRate::from_mbps(500));
            assert_eq!(shaper.credit, -4_000 * PER_BIT, "{asks}");
            assert_eq!(shaper.eligible_at(at(16_000), &mut open()), at(24_000), "{asks}");
        }
    }

    #[test]
    fn without_an_idle_slope_nothing_is_sent_until_there_is_one() {
        let mut shaper = after_one_frame();
        shaper.set_idle_slope(at(16_000), BitRate::default());
        assert_eq!(shaper.eligible_at(at(50_000), &mut open()), NetTime::MAX);
        shaper.set_idle_slope(at(100_000), BitRate::from_mbps(250));
        assert_eq!(shaper.eligible_at(at(100_000), &mut open()), at(116_000));
    }

    #[test]
    fn waiting_times_round_up_so_that_credit_is_never_overdrawn() {
        // 3 Mb/s: 8000 bit − 3 Mb/s × 8 µs = 7976 bit short; 7976 / 3 Mb/s = 2 658 666.67 ns.
        let mut shaper = CreditBased::new(BitRate::from_mbps(3));
        shaper.settle(at(0), true, &mut open());
        shaper.started(at(0), 8_000, at(8_000));
        assert_eq!(shaper.eligible_at(at(8_000), &mut open()), at(8_000 + 2_658_667));
    }
}
