//! When a periodic channel's next message is due at its reader, learnt from those that came.
//!
//! A reader that knows it can sleep to shortly before, and wait there without giving up its core:
//! the message then needs no wake-up, which is most of what it takes through a kernel.

use crate::channel_io::Window;
use onbeat_model::time::{Span, SyncedTime};

/// What a reader expects.
#[derive(Clone, Copy, Debug)]
pub struct Expectation {
    interval: Span,
    early: Span,
    late: Span,
    /// When the last message came, freed of part of its jitter.
    last: Option<SyncedTime>,
}

/// How much of a delay beyond the expected instant is taken for a shift of the schedule.
const FOLLOW: i64 = 8;
/// A window takes at most one part in so many of the interval.
const SPARSE: i64 = 4;
/// More silence than this many intervals, and nothing is expected any more.
const SILENCE: i64 = 16;

impl Expectation {
    /// For a channel with a message every `interval`, of which one may come by `early` before
    /// and by `late` after the instant at which it is due.
    pub fn new(interval: Span, early: Span, late: Span) -> Self {
        Self { interval, early, late, last: None }
    }

    /// Learns that a message came at `at`. Earlier than expected is the better estimate: jitter
    /// only delays.
    pub fn came(&mut self, at: SyncedTime) {
        let Some(due) = self.due(at) else {
            self.last = Some(at);
            return;
        };
        let beyond = at - due;
        // Outside of any window the schedule is another one.
        let follows = -self.early <= beyond && beyond <= self.late;
        let estimate = if follows && beyond > Span::ZERO {
            due + Span::from_ns(beyond.as_ns() / FOLLOW)
        } else {
            at
        };
        self.last = Some(estimate);
    }

    /// The due instant that is nearest to `at`.
    fn due(&self, at: SyncedTime) -> Option<SyncedTime> {
        let last = self.last?;
        let since = (at - last).as_ns();
        let intervals = (since + self.interval.as_ns() / 2).div_euclid(self.interval.as_ns());
        (intervals <= SILENCE).then(|| last + self.interval * intervals.max(1))
    }

    /// Where the next message after `now` is expected.
    pub fn window(&self, now: SyncedTime) -> Option<Window> {
        let last = self.last?;
        // Where windows fill the time, polling would take the core.
        if self.interval < (self.early + self.late) * SPARSE {
            return None;
        }
        // The first due instant whose window is not over.
        let since = (now - self.late - last).as_ns();
        let intervals = since.div_euclid(self.interval.as_ns()) + 1;
        if intervals > SILENCE {
            return None;
        }
        let due = last + self.interval * intervals.max(1);
        // Further off only when the clock was set back.
        (due - now <= self.interval + self.late)
            .then(|| Window { open: due - self.early, close: due + self.late })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const INTERVAL: Span = Span::from_ms(1);
    const EARLY: Span = Span::from_us(40);
    const LATE: Span = Span::from_us(100);

    proptest! {
        #[test]
        fn a_message_that_keeps_its_jitter_within_the_margin_comes_within_its_window(
            jitter in proptest::collection::vec(0i64..40_000, 2..300),
            drift_ns in -20i64..20,
        ) {
            let mut expectation = Expectation::new(INTERVAL, EARLY, LATE);
            for (k, jitter) in jitter.iter().enumerate() {
                let k = k as i64;
                let at = SyncedTime::from_ns(k * 1_000_000 + k * drift_ns + jitter);
                if k > 0 {
                    let asked = at - Span::from_us(500);
                    let window = expectation.window(asked).expect("a window");
                    prop_assert!(window.open <= at && at <= window.close, "{window:?} {at:?}");
                }
                expectation.came(at);
            }
        }

        #[test]
        fn a_window_is_never_over_when_it_is_given(now in 0i64..20_000_000) {
            let mut expectation = Expectation::new(INTERVAL, EARLY, LATE);
            expectation.came(SyncedTime::from_ns(123));
            let now = SyncedTime::from_ns(now);
            if let Some(window) = expectation.window(now) {
                prop_assert!(window.close >= now);
                prop_assert!(window.open - now <= INTERVAL);
            }
        }
    }

    #[test]
    fn nothing_is_expected_before_the_first_message_and_after_a_long_silence() {
        let mut expectation = Expectation::new(INTERVAL, EARLY, LATE);
        assert_eq!(expectation.window(SyncedTime::ZERO), None);
        expectation.came(SyncedTime::ZERO);
        assert!(expectation.window(SyncedTime::from_ns(3_000_000)).is_some());
        assert_eq!(expectation.window(SyncedTime::from_ns(100_000_000)), None);
        assert_eq!(expectation.window(SyncedTime::from_ns(-100_000_000)), None, "set back");
        let mut dense = Expectation::new(Span::from_us(125), EARLY, LATE);
        dense.came(SyncedTime::ZERO);
        assert_eq!(dense.window(SyncedTime::ZERO), None);
    }

    #[test]
    fn a_lost_message_moves_the_window_by_an_interval() {
        let mut expectation = Expectation::new(INTERVAL, EARLY, LATE);
        expectation.came(SyncedTime::ZERO);
        let due = SyncedTime::from_ns(2_000_000);
        let window = expectation.window(SyncedTime::from_ns(1_100_001));
        assert_eq!(window, Some(Window { open: due - EARLY, close: due + LATE }));
    }
}
