//! Follows a hardware clock by pairs of readings of it and of the system's clock, so that programs
//! tell its time without asking the hardware. Pure: no clock is read here.
//!
//! The hardware's clock is a line over the system's, fitted to the latest pairs by least squares.
//! What programs read never jumps: a new line is approached with a bounded slope from where the
//! old one is at an instant a little ahead, so that a publication that takes its time tears
//! nothing. Only when the hardware's clock itself has been set does the reading follow at once.

use onbeat_model::time::Span;
use std::collections::VecDeque;

/// The pairs that a line is fitted to.
const WINDOW: usize = 16;
/// A line says little about a pair that is older: the thread that compares was held up.
const MAX_AGE: i64 = 60_000_000_000;
/// The pairs whose brackets say how narrow these can be.
const BRACKETS: usize = 32;
/// A pair with a wider bracket than twice the narrowest and this tells too little.
const BRACKET_SLACK: i64 = 500;
/// The pairs from which the error of a mapping can be told.
const ENOUGH: usize = 8;
/// A clock that is off by more has been set, if the next pair says so too.
const STEP: i64 = 100_000;
/// In how much time a deviation is to be gone; a line is replaced several times in it.
const APPROACH: i64 = 400_000_000;
/// How far ahead a new line begins: longer than its publication takes.
pub(super) const LEAD: Span = Span::from_ms(20);
/// What a [`Rate`] of 1 is.
const ONE: i128 = 1 << 40;
/// The fastest approach: 1,000 parts in a million.
const MAX_APPROACH: i128 = ONE / 1_000;
/// The most by which a hardware clock's rate differs from the system's: an eighth.
const MAX_RATE: i128 = ONE / 8;

/// Both clocks at one instant, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pair {
    /// The system's clock.
    pub(super) system: i64,
    /// The hardware's.
    pub(super) hardware: i64,
    /// Between which two readings of the system's clock the hardware's was taken.
    pub(super) bracket: i64,
}

/// By how much more than a nanosecond the hardware's clock goes in one of the system's, in 2⁻⁴⁰.
type Rate = i64;

/// The hardware's clock over the system's: two half-lines that meet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Mapping {
    /// Where they meet, by the system's clock.
    pub(super) system: i64,
    /// And by the hardware's.
    pub(super) hardware: i64,
    /// The rate until then.
    pub(super) before: Rate,
    /// The rate from then on.
    pub(super) after: Rate,
}

impl Mapping {
    /// What the hardware's clock reads when the system's reads `system`.
    pub(super) fn read(&self, system: i64) -> i64 {
        let passed = i128::from(system) - i128::from(self.system);
        let rate = if passed < 0 { self.before } else { self.after };
        let ahead = (passed * i128::from(rate)).div_euclid(ONE);
        clamp(i128::from(self.hardware) + passed + ahead)
    }

    /// The first instant of the system's clock at which the hardware's reads `hardware` or later.
    pub(super) fn when(&self, hardware: i64) -> i64 {
        let passed = i128::from(hardware) - i128::from(self.hardware);
        let rate = if passed < 0 { self.before } else { self.after };
        let (by, total) = (ONE + i128::from(rate), passed * ONE);
        let up = total.div_euclid(by) + i128::from(total.rem_euclid(by) != 0);
        clamp(i128::from(self.system) + up)
    }
}

fn clamp(value: i128) -> i64 {
    value.clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

/// What became of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It tells too little: its bracket is too wide.
    Rejected,
    /// It is far off; if the next one agrees, the hardware's clock has been set.
    Suspicious,
    /// There is a new mapping.
    Followed,
    /// There is a new mapping, which the readings jump to.
    Stepped,
}

/// Pairs in, mappings out.
#[derive(Debug, Default)]
pub(super) struct Estimator {
    /// The latest that were accepted, oldest first.
    pairs: VecDeque<Pair>,
    brackets: VecDeque<i64>,
    suspect: Option<Pair>,
    mapping: Option<Mapping>,
    error: i64,
}

impl Estimator {
    /// The mapping, once there was a pair.
    pub(super) fn mapping(&self) -> Option<Mapping> {
        self.mapping
    }

    /// By how much the mapping may be wrong; `None` while there is too little to say.
    pub(super) fn error(&self) -> Option<Span> {
        let known = self.pairs.len() >= ENOUGH && self.suspect.is_none();
        known.then(|| Span::from_ns(self.error))
    }

    /// Takes a pair that is later than all before. A new mapping begins at `from`, by the system's
    /// clock.
    pub(super) fn take(&mut self, pair: Pair, from: i64) -> Outcome {
        self.brackets.push_back(pair.bracket);
        if self.brackets.len() > BRACKETS {
            self.brackets.pop_front();
        }
        let narrowest = self.brackets.iter().copied().min().unwrap_or(0);
        if pair.bracket > 2 * narrowest + BRACKET_SLACK {
            return Outcome::Rejected;
        }
        let Some(mapping) = self.mapping else { return self.restart(pair) };
        let off = pair.hardware.saturating_sub(mapping.read(pair.system));
        if off.saturating_abs() > STEP {
            let Some(first) = self.suspect.replace(pair) else { return Outcome::Suspicious };
            let then = first.hardware.saturating_sub(mapping.read(first.system));
            if off.saturating_sub(then).saturating_abs() > STEP {
                return Outcome::Suspicious;
            }
            return self.restart(pair);
        }
        self.suspect = None;
        self.pairs.push_back(pair);
        let oldest = pair.system.saturating_sub(MAX_AGE);
        while self.pairs.len() > WINDOW || self.pairs.front().is_some_and(|p| p.system < oldest) {
            self.pairs.pop_front();
        }
        self.follow(mapping, pair, from);
        Outcome::Followed
    }

    fn restart(&mut self, pair: Pair) -> Outcome {
        let Pair { system, hardware, .. } = pair;
        let rate = self.mapping.map_or(0, |m| m.after);
        self.mapping = Some(Mapping { system, hardware, before: rate, after: rate });
        self.pairs = VecDeque::from([pair]);
        self.suspect = None;
        Outcome::Stepped
    }

    fn follow(&mut self, old: Mapping, newest: Pair, from: i64) {
        let (rate, ahead) = self.fit(newest);
        let passed = i128::from(from) - i128::from(newest.system);
        let line = i128::from(newest.hardware) + ahead + passed + passed * rate / ONE;
        let start = old.read(from);
        let off = line - i128::from(start);
        let approach = (off * ONE / i128::from(APPROACH)).clamp(-MAX_APPROACH, MAX_APPROACH);
        let after = (rate + approach) as Rate;
        self.mapping = Some(Mapping { system: from, hardware: start, before: old.after, after });
        self.error = clamp(off.abs()).saturating_add(newest.bracket / 2 + 1);
    }

    /// The line through the pairs: its rate, and how far it is ahead of the newest one there.
    fn fit(&self, newest: Pair) -> (i128, i128) {
        // Relative to the newest pair, and the hardware's clock to the system's, numbers are small.
        let points = self.pairs.iter().map(|pair| {
            let x = i128::from(pair.system) - i128::from(newest.system);
            (x, i128::from(pair.hardware) - i128::from(newest.hardware) - x)
        });
        let count = self.pairs.len() as i128;
        let mut sums = (0, 0, 0, 0);
        for (x, y) in points {
            sums = (sums.0 + x, sums.1 + y, sums.2 + x * x, sums.3 + x * y);
        }
        let (x, y, xx, xy) = sums;
        let spread = count * xx - x * x;
        let rate = if spread == 0 {
            i128::from(self.mapping.map_or(0, |m| m.after))
        } else {
            (count * xy - x * y) * ONE / spread
        };
        let rate = rate.clamp(-MAX_RATE, MAX_RATE);
        (rate, (y - rate * x / ONE) / count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PERIOD: i64 = 100_000_000;

    /// A hardware clock that is `offset` ahead and goes `ppb` too fast.
    fn hardware(system: i64, offset: i64, ppb: i64) -> i64 {
        let drift = i128::from(system) * i128::from(ppb) / 1_000_000_000;
        system + offset + drift as i64
    }

    fn pair(system: i64, offset: i64, ppb: i64, jitter: i64) -> Pair {
        let bracket = 2 * jitter.abs();
        Pair { system, hardware: hardware(system, offset, ppb) + jitter, bracket }
    }

    /// Takes a pair at each instant, and checks that no reading is before one that came earlier.
    fn run(estimator: &mut Estimator, pairs: impl IntoIterator<Item = Pair>) -> Vec<Outcome> {
        let mut outcomes = Vec::new();
        for pair in pairs {
            let before = estimator.mapping();
            let from = pair.system + LEAD.as_ns();
            let outcome = estimator.take(pair, from);
            if let (Some(old), Some(new), Outcome::Followed) =
                (before, estimator.mapping(), outcome)
            {
                for at in [from - LEAD.as_ns(), from - 1, from] {
                    let (was, is) = (old.read(at), new.read(at));
                    assert!((was - is).abs() <= 1, "a jump from {was} to {is} at {at}");
                }
                assert!(new.read(from + 1_000) > new.read(from));
            }
            outcomes.push(outcome);
        }
        outcomes
    }

    proptest! {
        #[test]
        fn a_drifting_clock_is_followed_to_within_its_jitter_without_a_jump(
            offset in -1_000_000_000_000_i64..2_000_000_000_000_000_000,
            ppb in -400_000..400_000_i64,
            jitter in prop::collection::vec(-200..200_i64, 100),
        ) {
            let mut estimator = Estimator::default();
            let at = |n: usize| 1_000_000_000_000 + n as i64 * PERIOD;
            let pairs = jitter.iter().enumerate().map(|(n, j)| pair(at(n), offset, ppb, *j));
            let outcomes = run(&mut estimator, pairs);
            prop_assert!(outcomes[1..].iter().all(|o| *o == Outcome::Followed));
            let mapping = estimator.mapping().expect("pairs were given");
            for later in [LEAD.as_ns(), PERIOD] {
                let system = at(99) + later;
                let off = mapping.read(system) - hardware(system, offset, ppb);
                prop_assert!(off.abs() < 400, "off by {off}");
            }
            prop_assert!(estimator.error().expect("enough pairs") < Span::from_ns(800));
        }

        #[test]
        fn a_clock_that_was_set_is_followed_at_the_second_pair_and_one_wild_pair_is_not(
            step in prop_oneof![-10_000_000_000..-1_000_000_i64, 1_000_000..10_000_000_000_i64],
            ppb in -100_000..100_000_i64, wild in any::<bool>(),
        ) {
            let mut estimator = Estimator::default();
            let at = |n: i64| 5_000_000_000 + n * PERIOD;
            run(&mut estimator, (0..30).map(|n| pair(at(n), 7, ppb, 10)));
            let stepped = |n| pair(at(n), 7 + step, ppb, 10);
            prop_assert_eq!(run(&mut estimator, [stepped(30)]), [Outcome::Suspicious]);
            prop_assert_eq!(estimator.error(), None);
            if wild {
                let next = run(&mut estimator, [pair(at(31), 7, ppb, 10)]);
                prop_assert_eq!(next, [Outcome::Followed]);
                prop_assert!(estimator.error().is_some());
            } else {
                prop_assert_eq!(run(&mut estimator, [stepped(31)]), [Outcome::Stepped]);
                prop_assert_eq!(estimator.error(), None);
                run(&mut estimator, (32..60).map(stepped));
                let system = at(60);
                let off = estimator.mapping().expect("pairs").read(system)
                    - hardware(system, 7 + step, ppb);
                prop_assert!(off.abs() < 100, "off by {off}");
            }
        }

        #[test]
        fn a_slept_until_instant_is_the_first_at_which_the_clock_reads_it(
            system: i64, hardware: i64, before in -(1_i64 << 37)..1 << 37,
            after in -(1_i64 << 37)..1 << 37, apart in -1_000_000_000_000..1_000_000_000_000_i64,
        ) {
            let (system, hardware) = (system / 4, hardware / 4);
            let mapping = Mapping { system, hardware, before, after };
            let when = mapping.when(hardware + apart);
            prop_assert!(mapping.read(when) >= hardware + apart);
            prop_assert!(mapping.read(when - 1) < hardware + apart);
        }

        #[test]
        fn no_pairs_make_the_arithmetic_overflow(
            pairs in prop::collection::vec((any::<i64>(), any::<i64>(), 0..10_000_000_i64), 1..40),
        ) {
            let mut estimator = Estimator::default();
            for (system, hardware, bracket) in pairs {
                let pair = Pair { system, hardware, bracket };
                estimator.take(pair, system.saturating_add(LEAD.as_ns()));
                let mapping = estimator.mapping();
                if let Some(mapping) = mapping {
                    let _ = (mapping.read(hardware), mapping.when(system));
                }
            }
        }
    }

    #[test]
    fn a_pair_whose_bracket_is_wide_moves_nothing_unless_all_become_so() {
        let mut estimator = Estimator::default();
        run(&mut estimator, (0..20).map(|n| pair(n * PERIOD, 0, 0, 100)));
        let wide = |n: i64| Pair { bracket: 90_000, ..pair(n * PERIOD, 50_000, 0, 100) };
        let before = estimator.mapping();
        assert_eq!(run(&mut estimator, [wide(20)]), [Outcome::Rejected]);
        assert_eq!(estimator.mapping(), before);
        let outcomes = run(&mut estimator, (21..21 + BRACKETS as i64).map(wide));
        assert_eq!(outcomes.last(), Some(&Outcome::Followed));
    }
}
