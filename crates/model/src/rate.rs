//! The declared rate of a channel: how early a message may come, and when the next one is due.

use crate::system::Class;
use crate::time::{Span, SyncedTime};

/// By how much a message may come before it would at one message each `interval`: as many intervals
/// as `burst` allows messages beyond the first, and an eighth of the interval, at most one class A
/// measurement interval. The burst makes the generic cell rate algorithm (ITU-T I.371) a token
/// bucket; the eighth lets a program that sleeps to absolute times wake late once without being
/// late ever after. The plan's arrival curves count both.
pub fn rate_tolerance(interval: Span, burst: u32) -> Span {
    let late = Span::from_ns(interval.as_ns() / 8).min(Span::from_us(125));
    let burst = interval.as_ns().saturating_mul(i64::from(burst.max(1) - 1));
    Span::from_ns(burst.saturating_add(late.as_ns()))
}

/// By how much less than an interval may be between a message that came late and the next one, so
/// that a program that sleeps to absolute times is in phase again after it stalled: an interval and
/// an eighth, as for [`rate_tolerance`], unless a declared burst allows more anyway. Where messages
/// have slots, a late one has missed its own; and what exceeds its rate waits in asynchronous
/// shapers, now and ever after.
///
/// The plan does not count it: where a run saw it, nothing that it may have delayed is judged to
/// break a bound.
pub fn catch_up(class: Class, interval: Span, burst: u32) -> Span {
    match (class, burst) {
        (Class::A | Class::B, 0..=1) => {
            Span::from_ns(interval.as_ns().saturating_add(rate_tolerance(interval, 1).as_ns()))
        }
        _ => Span::ZERO,
    }
}

/// What a talker keeps to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// The least mean time between two messages.
    pub interval: Span,
    /// By how much a message may come before it is due ([`rate_tolerance`]).
    pub tolerance: Span,
    /// How late one may be without the next one being due later ([`catch_up`]).
    pub catch_up: Span,
}

/// When a talker's next message is due: the theoretical arrival time of the generic cell rate
/// algorithm (ITU-T I.371). Where messages may catch up it stays in phase with the first two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pace {
    /// `None` before the first.
    due: Option<SyncedTime>,
    /// Whether the next message is the second one since a start.
    is_second: bool,
    /// Whether the last message was one of a start before.
    is_restarted: bool,
}

impl Pace {
    /// That of a talker that is started again, whose last message was captured at `last`: the rate
    /// holds across its starts. The one before may have had no credit left.
    pub fn after_restart(last: SyncedTime, rate: &Rate) -> Self {
        let spent = if rate.catch_up > Span::ZERO { Span::ZERO } else { rate.tolerance };
        Self { due: Some(last + spent + rate.interval), is_second: false, is_restarted: true }
    }

    /// Until when a message at `at` is held, if the rate does not allow it then: in phase where
    /// messages may catch up.
    #[inline]
    pub fn held_until(&self, at: SyncedTime, rate: &Rate) -> Option<SyncedTime> {
        let catches_up = rate.catch_up > Span::ZERO;
        let early = if self.is_second { Self::second_early(rate) } else { rate.tolerance };
        let due = self.due.filter(|due| at < *due - early)?;
        Some(if catches_up { due } else { due - rate.tolerance })
    }

    /// By how much the second message of a talker may come before it is due. A program's first
    /// message often is late, as what it does for the first time takes longer; the second one then
    /// has the phase. That of one that writes as fast as it may does not come so late.
    #[inline]
    pub fn second_early(rate: &Rate) -> Span {
        match rate.catch_up {
            Span::ZERO => rate.tolerance,
            _ => rate.tolerance.max(Span::from_ns(rate.interval.as_ns() / 2)),
        }
    }

    /// A message was captured at `at`. The next one is due an interval after this one was, or, if
    /// it was later than messages may catch up, so many intervals after that it no longer is. Where
    /// none may, an interval after the message, if that was late.
    #[inline]
    pub fn sent(&mut self, at: SyncedTime, rate: &Rate) {
        let Rate { interval, catch_up, .. } = *rate;
        // Who was away for so long that all may be sent that the rate allows has a phase anew.
        let is_first = self.due.is_none_or(|due| self.is_restarted && at - due > catch_up);
        let due = self.due.filter(|_| !is_first).unwrap_or(at);
        let next = if catch_up == Span::ZERO {
            due.max(at) + interval
        } else {
            let due = if self.is_second { due.min(at) } else { due };
            let beyond = (at - due - catch_up).as_ns().max(0);
            let missed = (beyond + interval.as_ns() - 1) / interval.as_ns().max(1);
            due + interval * (1 + missed)
        };
        *self = Self { due: Some(next), is_second: is_first, is_restarted: false };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: i64 = 1_000_000;

    fn rate(interval: i64, class: Class) -> Rate {
        let interval = Span::from_ns(interval);
        Rate {
            interval,
            tolerance: rate_tolerance(interval, 1),
            catch_up: catch_up(class, interval, 1),
        }
    }

    /// When messages are captured that are written then, or when the one before has been.
    fn captured(writes: &[i64], pace: &mut Pace, rate: &Rate) -> Vec<i64> {
        let mut captures: Vec<i64> = Vec::new();
        for at in writes {
            let at = SyncedTime::from_ns(captures.last().map_or(*at, |last| *last.max(at)));
            let at = pace.held_until(at, rate).unwrap_or(at);
            pace.sent(at, rate);
            captures.push(at.as_ns());
        }
        captures
    }

    #[test]
    fn a_first_message_that_is_late_delays_none_after_it() {
        for class in [Class::A, Class::B] {
            for late in [0, 126_000, 300_000, 500_000] {
                let writes: Vec<i64> =
                    (0..9).map(|n| n * MS + if n == 0 { late } else { 0 }).collect();
                assert_eq!(captured(&writes, &mut Pace::default(), &rate(MS, class)), writes);
            }
        }
        // Where none catches up, it does; and where it is late by more than half an interval.
        let writes = [300_000, MS, 2 * MS];
        let held = captured(&writes, &mut Pace::default(), &rate(MS, Class::Scheduled));
        assert_eq!(held, [300_000, 1_175_000, 2_175_000]);
        let held = captured(&[500_001, MS, 2 * MS], &mut Pace::default(), &rate(MS, Class::A));
        assert_eq!(held, [500_001, 1_500_001, 2_500_001]);
    }

    #[test]
    fn who_writes_as_fast_as_it_may_sends_one_message_each_interval() {
        let held = captured(&[7; 4], &mut Pace::default(), &rate(MS, Class::A));
        assert_eq!(held, [7, MS + 7, 2 * MS + 7, 3 * MS + 7]);
    }

    #[test]
    fn a_start_anew_has_a_phase_of_its_own_once_the_rate_allows_all() {
        let rate = rate(MS, Class::A);
        let again = |writes: &[i64]| {
            captured(writes, &mut Pace::after_restart(SyncedTime::ZERO, &rate), &rate)
        };
        let writes = [5_700_000, 6_400_000, 7_400_000, 9_400_000, 10_400_000];
        assert_eq!(again(&writes), writes);
        // Sooner it has that of the last message before.
        assert_eq!(again(&[700_000, 1_700_000, 2_700_000]), [MS, 2 * MS, 3 * MS]);
    }

    proptest! {
        /// In no window is more than one message beyond the rate and what is tolerated at each end
        /// of it, and again by each start in it, whenever programs write, stall and start again.
        #[test]
        fn no_window_has_more_than_one_message_beyond_the_rate(
            steps in proptest::collection::vec((0i64..4, 0i64..1_500_000, 0..10), 1..40),
            class in prop_oneof![Just(Class::A), Just(Class::B), Just(Class::Scheduled)],
            interval in prop_oneof![Just(MS), Just(MS / 2), Just(7 * MS)],
        ) {
            let rate = rate(interval, class);
            let (mut pace, mut at) = (Pace::default(), 0);
            // Each with whether it is the first of a start.
            let mut all = Vec::<(i64, bool)>::new();
            for (scale, gap, event) in steps {
                at += gap * scale;
                let last = all.last().filter(|_| event == 0);
                if let Some((last, _)) = last {
                    pace = Pace::after_restart(SyncedTime::from_ns(*last), &rate);
                }
                let is_start = last.is_some();
                at = captured(&[at], &mut pace, &rate)[0];
                all.push((at, is_start));
            }
            for (i, (first, _)) in all.iter().enumerate() {
                let mut most = (rate.catch_up + rate.tolerance).as_ns();
                for (n, (last, is_start)) in (0..).zip(&all[i..]) {
                    most += if *is_start { rate.tolerance.as_ns() } else { 0 };
                    let beyond = n * interval - (last - first);
                    prop_assert!(beyond <= most, "{beyond} of {most} ns: {all:?}");
                }
            }
        }
    }
}
