//! Cycles of a station's own oscillator, and true time.

use onbeat_model::time::{ClockError, NetTime, Span, SyncedTime};
use onbeat_runtime::network_code::timing::{CYCLE_NS, Cycles};

/// The cycles of a station that has been started once. They count what its oscillator says from
/// then on: its clock's rate, with drift and wander; neither its offset nor its steps.
#[derive(Clone, Copy, Debug)]
pub(super) struct CycleClock {
    oscillator: ClockError,
    start: NetTime,
    /// What the oscillator reads then.
    reading: SyncedTime,
}

impl CycleClock {
    pub(super) fn new(clock: ClockError, start: NetTime) -> Self {
        let oscillator = clock.unstepped();
        Self { oscillator, start, reading: oscillator.read(start) }
    }

    /// When a cycle begins: the first nanosecond of true time at which it has begun, so rounded up.
    /// The end of time if the cycle is too late for a run.
    pub(super) fn begins(&self, cycle: Cycles) -> NetTime {
        let ns = cycle.0.checked_mul(CYCLE_NS.into()).and_then(|ns| i64::try_from(ns).ok());
        // Half of all that there is leaves room for any clock.
        match ns.filter(|ns| *ns < i64::MAX / 2) {
            Some(ns) => self.oscillator.when(self.reading + Span::from_ns(ns)).max(self.start),
            None => NetTime::MAX,
        }
    }

    /// The first cycle that begins at an instant or later: what comes then is an input of it.
    pub(super) fn next_from(&self, at: NetTime) -> Cycles {
        if at <= self.start {
            return Cycles(0);
        }
        let before = self.oscillator.read(at - Span::from_ns(1)) - self.reading;
        Cycles(before.as_ns().div_euclid(CYCLE_NS.into()) as u64 + 1)
    }

    /// The last cycle that begins at an instant, which is not before the start, or earlier.
    pub(super) fn current(&self, at: NetTime) -> Cycles {
        let passed = self.oscillator.read(at) - self.reading;
        Cycles(passed.as_ns().div_euclid(CYCLE_NS.into()) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn without_an_error_a_cycle_begins_each_8_ns() {
        let clock = ClockError { offset: Span::from_ms(70), ..ClockError::default() };
        let cycles = CycleClock::new(clock, NetTime::from_ns(103));
        let begins = [0, 1, 1_000].map(|cycle| cycles.begins(Cycles(cycle)).as_ns());
        assert_eq!(begins, [103, 111, 8_103]);
        let inputs = [0, 103, 104, 111, 112].map(|ns| cycles.next_from(NetTime::from_ns(ns)).0);
        assert_eq!(inputs, [0, 0, 1, 1, 2]);
        let current = [103, 110, 111].map(|ns| cycles.current(NetTime::from_ns(ns)).0);
        assert_eq!(current, [0, 0, 1]);
        assert_eq!(cycles.begins(Cycles::NEVER), NetTime::MAX);
    }

    #[test]
    fn a_fast_oscillator_has_more_cycles_and_each_instant_is_rounded_up() {
        let clock = ClockError { drift_ppb: 100_000, ..ClockError::default() };
        let cycles = CycleClock::new(clock, NetTime::ZERO);
        // 8 ms of its own: 800,000 / 100.01 ns of true time, and its reading is rounded down.
        assert_eq!(cycles.begins(Cycles(1_000_000)).as_ns(), 7_999_201);
        assert_eq!(cycles.current(NetTime::ZERO + Span::from_ms(8)), Cycles(1_000_100));
    }

    proptest! {
        /// Both ways round, for all that a description may say of a clock.
        #[test]
        fn a_cycle_begins_at_the_first_nanosecond_that_is_in_it(
            offset in -1_000_000i64..1_000_000,
            drift_ppb in -400_000..400_000,
            wander in 0i64..1_000,
            step in -5_000i64..5_000,
            start in 0i64..1_000_000_000_000,
            cycle in 0u64..1_000_000_000,
        ) {
            let mut clock = ClockError { drift_ppb, ..ClockError::default() };
            clock.offset = Span::from_ns(offset);
            clock.wander = Span::from_ns(wander);
            clock.wander_period = Span::from_ms(10);
            clock.step.by = Span::from_ns(step);
            clock.step.until = NetTime::MAX;
            let start = NetTime::from_ns(start);
            let cycles = CycleClock::new(clock, start);
            let (begins, cycle) = (cycles.begins(Cycles(cycle)), Cycles(cycle));
            prop_assert_eq!(cycles.current(begins), cycle);
            prop_assert_eq!(cycles.next_from(begins), cycle);
            prop_assert_eq!(cycles.next_from(begins + Span::from_ns(1)), cycle + Cycles(1));
            if cycle > Cycles(0) {
                prop_assert!(cycles.current(begins - Span::from_ns(1)) < cycle);
            }
        }
    }
}
