//! How far the clocks of machines are apart: what readings over a connection show, and what the
//! machines say themselves. Pure.

use onbeat_model::record::ClockAhead;
use onbeat_model::time::Span;

/// A reading of a machine's clock between two readings of this one's, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reading {
    pub(super) asked: i64,
    pub(super) read: i64,
    pub(super) answered: i64,
}

/// By how much a machine's clock is ahead of this one's, in nanoseconds: at least and at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ahead {
    pub(super) least: i64,
    pub(super) most: i64,
}

impl Ahead {
    /// What all readings allow; if one of the clocks was set between them, perhaps nothing.
    pub(super) fn of(readings: &[Reading]) -> Option<Self> {
        let all = readings.iter().map(|reading| Some(Self::one(*reading)));
        all.reduce(|all, one| all?.and(one?)).flatten()
    }

    /// What one reading allows.
    fn one(reading: Reading) -> Self {
        let Reading { asked, read, answered } = reading;
        Self { least: read.saturating_sub(answered), most: read.saturating_sub(asked) }
    }

    /// What two readings allow, if that is anything.
    fn and(self, other: Self) -> Option<Self> {
        let (least, most) = (self.least.max(other.least), self.most.min(other.most));
        (least <= most).then_some(Self { least, most })
    }

    /// The same as a part's records have it.
    pub(super) fn recorded(self) -> ClockAhead {
        ClockAhead { least: Span::from_ns(self.least), most: Span::from_ns(self.most) }
    }

    /// The same and what it is after the clock was set by so much, at least and at most.
    pub(super) fn and_then(self, set_ns: Option<(i64, i64)>) -> Self {
        let (least, most) = set_ns.unwrap_or_default();
        Self {
            least: self.least.saturating_add(least.min(0)),
            most: self.most.saturating_add(most.max(0)),
        }
    }

    /// By how much it is ahead of another.
    fn of_other(self, other: Self) -> Self {
        Self {
            least: self.least.saturating_sub(other.most),
            most: self.most.saturating_sub(other.least),
        }
    }

    /// How far apart two clocks are at most.
    fn apart_most(self) -> Span {
        Span::from_ns(self.least.saturating_abs().max(self.most.saturating_abs()))
    }

    /// How far apart they are at least.
    fn apart_least(self) -> Span {
        Span::from_ns(self.least.max(self.most.saturating_neg()).max(0))
    }
}

/// By how much a clock is set while it is watched: readings beside one that is never set and runs
/// at the same rate, as CLOCK_MONOTONIC beside CLOCK_TAI, allow one difference until then.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Moved {
    /// The difference at first, and since it was last set.
    first: Option<Ahead>,
    now: Option<Ahead>,
    /// By how much the clock was ahead of what it would have been.
    by: Option<Ahead>,
}

impl Moved {
    /// Takes one more reading.
    pub(super) fn note(&mut self, reading: Reading) {
        let one = Ahead::one(reading);
        let same = self.now.map_or(Some(one), |now| now.and(one));
        if let (None, Some(first)) = (same, self.first) {
            let by = one.of_other(first);
            let all = self.by.unwrap_or(Ahead { least: 0, most: 0 });
            let (least, most) = (all.least.min(by.least), all.most.max(by.most));
            self.by = Some(Ahead { least, most });
        }
        if self.by.is_none() {
            self.first = same;
        }
        self.now = same.or(Some(one));
    }

    /// By how much it was set since the first reading, at least and at most, zero included; nothing
    /// if it was not.
    pub(super) fn by(self) -> Option<(i64, i64)> {
        self.by.map(|by| (by.least, by.most))
    }
}

/// The clock of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Clock {
    /// What the machine is called.
    pub(super) name: String,
    pub(super) ahead: Ahead,
    /// By how much it may be wrong by the machine's own account, or why that is not known.
    pub(super) own: Result<Span, String>,
}

/// Whether all clocks are within `limit` of each other, as readings show or machines say.
///
/// # Errors
/// Which are not, or not certainly, and why.
pub(super) fn are_together(clocks: &[Clock], limit: Span) -> Result<(), String> {
    for (at, clock) in clocks.iter().enumerate() {
        for other in &clocks[..at] {
            let ahead = clock.ahead.of_other(other.ahead);
            if ahead.apart_least() > limit {
                return Err(format!(
                    "the clocks of the {} and the {} are at least {} apart, and clock_error_us \
                     allows {limit}{}",
                    other.name,
                    clock.name,
                    ahead.apart_least(),
                    reasons(&[other, clock])
                ));
            }
            let say_so = match (&clock.own, &other.own) {
                (Ok(own), Ok(others)) => *own + *others <= limit,
                _ => false,
            };
            if ahead.apart_most() > limit && !say_so {
                return Err(format!(
                    "whether the clocks of the {} and the {} are within {limit} of each other, as \
                     clock_error_us asks, is not known: readings over the connections show only \
                     that they are within {}{}",
                    other.name,
                    clock.name,
                    ahead.apart_most(),
                    reasons(&[other, clock])
                ));
            }
        }
    }
    Ok(())
}

/// What `--stamps` cannot tell apart: clocks that are not synchronised by their own account. Only
/// readings over the connections say how far they are apart then.
pub(super) fn stamps_apart(clocks: &[Clock]) -> Option<String> {
    let free: Vec<&Clock> = clocks.iter().filter(|clock| clock.own.is_err()).collect();
    let pairs = free.iter().flat_map(|one| {
        let others = clocks.iter().filter(|other| other.name != one.name);
        others.map(|other| one.ahead.of_other(other.ahead).apart_most())
    });
    let most = pairs.max()?;
    let names: Vec<&str> = free.iter().map(|clock| clock.name.as_str()).collect();
    Some(format!(
        "--stamps: not synchronised by its own account is the clock of the {}: stamps of two \
         machines may be up to {most} apart, by readings over the connections, and so may the part \
         `network` of each latency",
        names.join(" and of the ")
    ))
}

/// What machines say of their clocks that do not know.
fn reasons(clocks: &[&Clock]) -> String {
    let of = |clock: &&Clock| match &clock.own {
        Ok(own) => format!("; the {} says that its clock is right within {own}", clock.name),
        Err(why) => format!("; the {} says: {why}", clock.name),
    };
    clocks.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(name: &str, least: i64, most: i64, own: Option<i64>) -> Clock {
        let own = own.map(Span::from_ns).ok_or_else(|| "it is free".to_owned());
        Clock { name: name.to_owned(), ahead: Ahead { least, most }, own }
    }

    #[test]
    fn readings_enclose_every_difference_that_was_planted() {
        for planted in [-1_000_000_000, -7, 0, 3, 999] {
            let reading = |asked: i64, there: i64, back: i64| Reading {
                asked,
                read: asked + there + planted,
                answered: asked + there + back,
            };
            let readings = [reading(0, 10, 300), reading(1_000, 250, 20), reading(9_000, 90, 80)];
            let ahead = Ahead::of(&readings).expect("nobody set a clock");
            assert!((ahead.least..=ahead.most).contains(&planted), "{planted}: {ahead:?}");
            assert_eq!(ahead, Ahead { least: planted - 20, most: planted + 10 });
        }
        // A clock that is set by more than the readings take.
        let set = [
            Reading { asked: 0, read: 5, answered: 10 },
            Reading { asked: 20, read: 525, answered: 30 },
        ];
        assert_eq!(Ahead::of(&set), None);
        assert_eq!(Ahead::of(&[]), None);
    }

    #[test]
    fn a_clock_that_is_set_while_it_is_watched_is_found_and_by_how_much() {
        let mut moved = Moved::default();
        let mut note = |at: i64, ahead: i64, takes: i64| {
            let read = at + takes / 2 + ahead;
            moved.note(Reading { asked: at, read, answered: at + takes });
            moved.by()
        };
        // One reading was interrupted.
        for (at, takes) in [(0, 40), (100, 9_000), (9_500, 20)] {
            assert_eq!(note(at, 1_000_000, takes), None);
        }
        assert_eq!(note(20_000, 1_000_500, 30), Some((0, 525)));
        assert_eq!(note(21_000, 1_000_500, 30), Some((0, 525)));
        // Back, and there for ever: the most it was away stays.
        assert_eq!(note(30_000, 1_000_000, 40), Some((-30, 525)));
        assert_eq!(note(31_000, 300_000, 20), Some((-700_020, 525)));
    }

    #[test]
    fn stamps_of_clocks_that_are_free_are_as_far_apart_as_readings_show() {
        let right = [clock("a", -20, 30, Some(1)), clock("b", 0, 60, Some(1))];
        assert_eq!(stamps_apart(&right), None);
        let one = [clock("a", -20, 30, Some(1)), clock("b", 0, 60, None)];
        let said = stamps_apart(&one).expect("one is free");
        assert!(said.contains("the clock of the b: ") && said.contains("up to 80 ns"), "{said}");
        let both = [clock("a", -20, 30, None), clock("b", 0, 60, None)];
        assert!(stamps_apart(&both).expect("both are").contains("of the a and of the b: "));
        assert_eq!(stamps_apart(&both[..1]), None, "there is no other one");
    }

    #[test]
    fn clocks_are_together_when_it_is_shown_or_said_and_else_not() {
        let limit = Span::from_ns(100);
        let near = [clock("a", -20, 30, None), clock("b", 0, 60, None)];
        are_together(&near, limit).expect("at most 80 apart");
        let far = [clock("a", -20, 30, Some(1)), clock("b", 200, 260, Some(1))];
        let why = are_together(&far, limit).expect_err("at least 170 apart");
        assert!(why.contains("the a and the b are at least 170 ns apart"), "{why}");
        let coarse = [clock("a", -20, 30, None), clock("b", -500, 500, Some(10))];
        let why = are_together(&coarse, limit).expect_err("it is not known");
        assert!(why.contains("is not known") && why.contains("it is free"), "{why}");
        let said = [clock("a", -20, 30, Some(60)), clock("b", -500, 500, Some(40))];
        are_together(&said, limit).expect("both say so");
        let said = [clock("a", -20, 30, Some(60)), clock("b", -500, 500, Some(41))];
        are_together(&said, limit).expect_err("together they may be further apart");
    }
}
