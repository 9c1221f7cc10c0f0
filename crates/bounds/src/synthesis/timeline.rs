//! What is taken of a port, or of one of its queues: intervals that repeat, each with a period of
//! its own.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound::Excluded;

/// Within one period of whoever looks, another's interval is laid down at most so often; of one
/// that comes more often pairs are compared instead.
const COPIES_MAX: i64 = 64;

/// An interval that repeats, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Taken {
    /// Any begin of it.
    pub(super) begin: i64,
    /// Positive, at most the period.
    pub(super) length: i64,
    pub(super) period: i64,
}

/// Whose: the flow.
pub(super) type Owner = usize;

/// All that is taken, as those see it that have a certain period.
#[derive(Clone, Debug, Default)]
struct View {
    /// By begin, in the viewer's period, and owner: the length.
    laid: BTreeMap<(i64, Owner), i64>,
    /// The longest of them, ever.
    longest: i64,
    /// Intervals that would be laid down too often.
    apart: HashMap<Owner, Taken>,
}

/// Intervals by owner, of which no owner has two.
#[derive(Clone, Debug, Default)]
pub(super) struct Timeline {
    all: HashMap<Owner, Taken>,
    /// With the viewer's period; these are few.
    views: Vec<(i64, View)>,
}

pub(super) fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

impl View {
    fn lay(&mut self, period: i64, owner: Owner, taken: Taken) {
        let common = gcd(period, taken.period);
        if period / common > COPIES_MAX {
            self.apart.insert(owner, taken);
            return;
        }
        self.longest = self.longest.max(taken.length);
        let first = taken.begin.rem_euclid(common);
        for copy in 0..period / common {
            self.laid.insert((first + copy * common, owner), taken.length);
        }
    }

    fn lift(&mut self, period: i64, owner: Owner, taken: Taken) {
        if self.apart.remove(&owner).is_some() {
            return;
        }
        let common = gcd(period, taken.period);
        let first = taken.begin.rem_euclid(common);
        for copy in 0..period / common {
            self.laid.remove(&(first + copy * common, owner));
        }
    }

    /// What an interval overlaps: by how much it has to be moved to be behind that, and whose it
    /// is.
    fn overlaps(&self, wanted: Taken, mut note: impl FnMut(i64, Owner)) {
        let begin = wanted.begin.rem_euclid(wanted.period);
        let end = begin + wanted.length;
        // What begins in an earlier or later period may reach into this one.
        for shift in [-wanted.period, 0, wanted.period] {
            let (until, last) = (end - shift, begin - self.longest - shift);
            if until <= last || until < 0 || last >= wanted.period {
                continue;
            }
            let range = (Excluded((last, Owner::MAX)), Excluded((until, 0)));
            for ((at, owner), length) in self.laid.range(range) {
                let behind = at + shift + length;
                if behind > begin {
                    note(behind - begin, *owner);
                }
            }
        }
        for (owner, taken) in &self.apart {
            let common = gcd(wanted.period, taken.period);
            // How long after the begin of the other one this one begins.
            let after = (wanted.begin - taken.begin).rem_euclid(common);
            if after < taken.length {
                note(taken.length - after, *owner);
            } else if after + wanted.length > common {
                note(common - after + taken.length, *owner);
            }
        }
    }
}

impl Timeline {
    pub(super) fn insert(&mut self, owner: Owner, taken: Taken) {
        for (period, view) in &mut self.views {
            view.lay(*period, owner, taken);
        }
        let before = self.all.insert(owner, taken);
        debug_assert!(before.is_none(), "owner {owner} has two intervals");
    }

    pub(super) fn remove(&mut self, owner: Owner) {
        let Some(taken) = self.all.remove(&owner) else { return };
        for (period, view) in &mut self.views {
            view.lift(*period, owner, taken);
        }
    }

    /// Whose and what, in any order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Owner, Taken)> + '_ {
        self.all.iter().map(|(owner, taken)| (*owner, *taken))
    }

    fn view(&mut self, period: i64) -> &View {
        let known = self.views.iter().position(|(of, _)| *of == period);
        let at = known.unwrap_or_else(|| {
            let mut view = View::default();
            self.all.iter().for_each(|(owner, taken)| view.lay(period, *owner, *taken));
            self.views.push((period, view));
            self.views.len() - 1
        });
        &self.views[at].1
    }

    /// By how much an interval has to be moved at least to be behind all that it overlaps now, and
    /// whose the last of that is.
    pub(super) fn conflict(&mut self, wanted: Taken) -> Option<(i64, Owner)> {
        let mut farthest: Option<(i64, Owner)> = None;
        self.view(wanted.period).overlaps(wanted, |by, owner| {
            // Of equals the first owner, in whatever order they are looked at.
            if farthest.is_none_or(|(most, first)| (by, first) > (most, owner)) {
                farthest = Some((by, owner));
            }
        });
        farthest
    }

    /// Whose an interval overlaps.
    pub(super) fn owners(&mut self, wanted: Taken, into: &mut BTreeSet<Owner>) {
        self.view(wanted.period).overlaps(wanted, |_, owner| {
            into.insert(owner);
        });
    }
}
