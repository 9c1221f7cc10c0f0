//! What is taken of a port, or of one of its queues: intervals that repeat, each with a period of
//! its own.

use std::collections::BTreeSet;

/// Within one period of whoever looks, another's interval is laid down at most so often; of one
/// that comes more often pairs are compared instead.
const COPIES_MAX: i64 = 64;
/// Up to so many new intervals are put in their places one by one.
const FEW: usize = 4;

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

/// An interval that is laid down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Laid {
    /// In the viewer's period.
    begin: i64,
    length: i64,
    owner: Owner,
}

/// All that is taken, as those see it that have a certain period.
#[derive(Clone, Debug)]
struct View {
    /// The viewer's period.
    period: i64,
    /// How many of [`Timeline::all`] it has, from the first on. It gets the others when somebody
    /// looks: flows are placed by period, so who comes more often seldom looks again.
    known: usize,
    /// In order of their begins.
    laid: Vec<Laid>,
    /// The longest of them, ever.
    longest: i64,
    /// Intervals that would be laid down too often.
    apart: Vec<(Owner, Taken)>,
}

/// Intervals by owner, of which no owner has two.
#[derive(Clone, Debug, Default)]
pub(super) struct Timeline {
    /// In the order in which they came.
    all: Vec<(Owner, Taken)>,
    /// One for each period of a viewer; these are few.
    views: Vec<View>,
}

pub(super) fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Where an interval is laid down for a viewer, if that is not too often.
fn copies(period: i64, owner: Owner, taken: Taken) -> Option<impl Iterator<Item = Laid>> {
    let common = gcd(period, taken.period);
    let count = period / common;
    let first = taken.begin.rem_euclid(common);
    let copy = move |copy| Laid { begin: first + copy * common, length: taken.length, owner };
    (count <= COPIES_MAX).then(|| (0..count).map(copy))
}

impl View {
    const fn new(period: i64) -> Self {
        Self { period, known: 0, laid: Vec::new(), longest: 0, apart: Vec::new() }
    }

    /// Lays down what has come since it was last looked at.
    fn learn(&mut self, all: &[(Owner, Taken)]) {
        let new = &all[self.known..];
        self.known = all.len();
        for (owner, taken) in new {
            let Some(copies) = copies(self.period, *owner, *taken) else {
                self.apart.push((*owner, *taken));
                continue;
            };
            self.longest = self.longest.max(taken.length);
            // To sort many at once is cheaper than to make room for each.
            if new.len() > FEW {
                self.laid.extend(copies);
                continue;
            }
            for copy in copies {
                let at = self.laid.partition_point(|other| other.begin < copy.begin);
                self.laid.insert(at, copy);
            }
        }
        if new.len() > FEW {
            self.laid.sort_by_key(|laid| laid.begin);
        }
    }

    /// Forgets one of [`Timeline::all`], which was at this place.
    fn forget(&mut self, place: usize, (owner, taken): (Owner, Taken)) {
        if place >= self.known {
            return;
        }
        self.known -= 1;
        let Some(copies) = copies(self.period, owner, taken) else {
            self.apart.retain(|(other, _)| *other != owner);
            return;
        };
        for copy in copies {
            let first = self.laid.partition_point(|other| other.begin < copy.begin);
            let after = self.laid[first..].iter().position(|other| *other == copy);
            self.laid.remove(first + after.expect("it was laid down"));
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
            let from = self.laid.partition_point(|laid| laid.begin <= last);
            for laid in self.laid[from..].iter().take_while(|laid| laid.begin < until) {
                let behind = laid.begin + shift + laid.length;
                if behind > begin {
                    note(behind - begin, laid.owner);
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
        debug_assert!(self.all.iter().all(|(other, _)| *other != owner), "{owner} has two");
        self.all.push((owner, taken));
    }

    pub(super) fn remove(&mut self, owner: Owner) {
        let Some(place) = self.all.iter().position(|(other, _)| *other == owner) else { return };
        let taken = self.all.remove(place);
        self.views.iter_mut().for_each(|view| view.forget(place, taken));
    }

    /// Whose and what, in any order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Owner, Taken)> + '_ {
        self.all.iter().map(|(owner, taken)| (*owner, *taken))
    }

    /// When they end, in a viewer's period, in order; without those that come too often for that.
    pub(super) fn ends(&mut self, period: i64) -> Vec<i64> {
        let end = |laid: &Laid| (laid.begin + laid.length) % period;
        let mut ends: Vec<i64> = self.view(period).laid.iter().map(end).collect();
        ends.sort_unstable();
        ends.dedup();
        ends
    }

    fn view(&mut self, period: i64) -> &View {
        let known = self.views.iter().position(|view| view.period == period);
        let at = known.unwrap_or_else(|| {
            self.views.push(View::new(period));
            self.views.len() - 1
        });
        self.views[at].learn(&self.all);
        &self.views[at]
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
