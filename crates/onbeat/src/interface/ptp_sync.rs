//! Whether measured Syncs keep coming. ptp4l tells when it stamped the last one that it measured
//! (ingress_time of TIME_STATUS_NP), by the clock that stamps; looked at again and again, that says
//! how old it is at most, whatever clock that is. Everything else that ptp4l says is what it was
//! when that Sync came: a port's state and an offset outlive their master.

use crate::clock::{MonoTime, pause};
use crate::interface::ptp_survey::ClockIdentity;
use onbeat_model::time::Span;

/// 802.1AS-2020 10.7.3.1: a master that has sent no Sync for so many intervals is lost.
pub const SYNC_RECEIPT_TIMEOUT: i64 = 3;
/// Looks in a Sync interval: so much earlier a Sync counts as missing as the next look would come
/// too late to say so in time.
const LOOKS: i64 = 4;
/// The Sync intervals that are believed, as powers of two seconds (10.7.2.3).
const LOG_INTERVALS: std::ops::RangeInclusive<i8> = -7..=3;

/// What ptp4l says of the Syncs that it measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyncSeen {
    /// When it stamped the last one, by the clock that stamps; `None` before the first.
    pub ingress_ns: Option<i64>,
    /// The offset that it last computed, which need not be by that Sync: for that the delay to the
    /// master must be known.
    pub offset: Span,
    /// Whose time it brought.
    pub grandmaster: ClockIdentity,
    /// From one Sync to the next.
    pub interval: Span,
}

impl Default for SyncSeen {
    /// Nothing yet, at gPTP's interval.
    fn default() -> Self {
        let (ingress_ns, interval) = (None, sync_interval(-3));
        let (offset, grandmaster) = (Span::ZERO, ClockIdentity::default());
        Self { ingress_ns, offset, grandmaster, interval }
    }
}

/// An interval by its logarithm; one that is out of use is gPTP's, 125 ms.
pub(crate) fn sync_interval(log: i8) -> Span {
    let log = if LOG_INTERVALS.contains(&log) { log } else { -3 };
    let second = Span::from_s(1).as_ns();
    Span::from_ns(if log < 0 { second >> -log } else { second << log })
}

/// What is known of the last measured Sync.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SyncAge {
    /// Nothing has been measured.
    #[default]
    Never,
    /// One was, at an unknown time before somebody looked: of this master, or of an earlier one.
    Unknown,
    /// It is this old at most.
    AtMost(Span),
}

impl SyncAge {
    /// Whether a master with this interval is still there.
    pub fn is_fresh(self, interval: Span) -> bool {
        matches!(self, Self::AtMost(age) if age <= fresh(interval))
    }
}

/// The age from which on a Sync is missing: three intervals, less the time to the next look.
fn fresh(interval: Span) -> Span {
    interval * SYNC_RECEIPT_TIMEOUT - look_again(interval)
}

/// How long it may be from one look to the next.
pub fn look_again(interval: Span) -> Span {
    Span::from_ns(interval.as_ns() / LOOKS)
}

/// Follows what ptp4l says of its Syncs.
#[derive(Clone, Copy, Debug, Default)]
pub struct SyncWatch {
    last: Option<Last>,
}

#[derive(Clone, Copy, Debug)]
struct Last {
    seen: SyncSeen,
    looked: MonoTime,
    /// The last Sync did not come before.
    came: Option<MonoTime>,
    /// The offset, as long as it is the one from before this master, or from before its Syncs were
    /// missing. Of two Syncs that are measured no two say the same for long.
    stale: Option<Span>,
}

impl SyncWatch {
    /// What was seen at `now`, and what follows from it. To be called at least once in an
    /// interval, or what is said is more than it must be.
    pub fn look(&mut self, now: MonoTime, seen: SyncSeen) -> SyncAge {
        let Some(ingress_ns) = seen.ingress_ns else {
            self.last = None;
            return SyncAge::Never;
        };
        let came = match self.last {
            Some(last) if last.seen.grandmaster != seen.grandmaster => None,
            Some(last) if last.seen.ingress_ns != Some(ingress_ns) => {
                Some(came(&last, ingress_ns, now))
            }
            Some(last) => last.came,
            None => None,
        };
        let stale = match self.last {
            Some(last) if last.seen.grandmaster != seen.grandmaster => Some(seen.offset),
            Some(last) if last.was_missing(came) => Some(last.seen.offset),
            Some(last) => last.stale,
            None => Some(seen.offset),
        };
        let stale = stale.filter(|offset| *offset == seen.offset);
        self.last = Some(Last { seen, looked: now, came, stale });
        came.map_or(SyncAge::Unknown, |came| SyncAge::AtMost(now - came))
    }

    /// Whether the offset is of this master and of the Syncs that come now. ptp4l stamps Syncs as
    /// soon as it follows a master, but computes no offset of them before it knows the delay. A
    /// port that calls itself slave has done so; one of a free-running clock never does.
    pub fn is_measured(&self) -> bool {
        self.last.is_some_and(|last| last.stale.is_none())
    }

    /// No daemon answers: what comes after is another ptp4l's.
    pub fn forget(&mut self) {
        self.last = None;
    }

    /// Looks until it is known how old the last Sync is, and, where `measured` is asked for, that
    /// the offset is of it; but not for longer than after which a Sync would be missing.
    pub fn until_known(
        &mut self,
        measured: bool,
        mut ask: impl FnMut() -> Option<SyncSeen>,
    ) -> SyncAge {
        let begun = MonoTime::now();
        loop {
            let Some(seen) = ask() else {
                self.forget();
                return SyncAge::Never;
            };
            let age = self.look(MonoTime::now(), seen);
            let over = MonoTime::now() - begun >= seen.interval * SYNC_RECEIPT_TIMEOUT;
            let is_known = age != SyncAge::Unknown && (self.is_measured() || !measured);
            if is_known || over {
                return age;
            }
            pause(look_again(seen.interval));
        }
    }
}

impl Last {
    /// Whether Syncs were missing, as far as is known, before the one that came now.
    fn was_missing(&self, came: Option<MonoTime>) -> bool {
        let limit = self.seen.interval * SYNC_RECEIPT_TIMEOUT;
        self.came.zip(came).is_some_and(|(before, now)| now - before > limit)
    }
}

/// Not before what instant a Sync came that is there now and was not at the last look: the stamps
/// tell how long after the one before, as long as the clock that stamps is not set.
fn came(last: &Last, ingress_ns: i64, now: MonoTime) -> MonoTime {
    let between = last.seen.ingress_ns.and_then(|before| ingress_ns.checked_sub(before));
    let by_stamps = last.came.zip(between.filter(|between| *between > 0));
    by_stamps
        .and_then(|(came, between)| came.as_ns().checked_add(between))
        .map(MonoTime::from_ns)
        .filter(|came| *came <= now)
        .map_or(last.looked, |came| came.max(last.looked))
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Span = Span::from_ms(125);

    fn at(ms: i64) -> MonoTime {
        MonoTime::from_ns(ms * 1_000_000)
    }

    fn seen(ingress_ms: i64, grandmaster: u8) -> SyncSeen {
        let grandmaster = ClockIdentity([grandmaster; 8]);
        let ingress_ns = Some(ingress_ms * 1_000_000);
        SyncSeen { ingress_ns, grandmaster, ..SyncSeen::default() }
    }

    #[test]
    fn a_sync_is_fresh_only_if_it_was_seen_to_come_and_for_three_intervals_at_most() {
        let mut watch = SyncWatch::default();
        assert_eq!(watch.look(at(0), SyncSeen::default()), SyncAge::Never);
        let first = watch.look(at(30), seen(9_000, 1));
        assert!(first == SyncAge::Unknown && !first.is_fresh(INTERVAL), "it may be old");
        assert_eq!(watch.look(at(60), seen(9_000, 1)), SyncAge::Unknown);
        assert_eq!(watch.look(at(90), seen(9_125, 1)), SyncAge::AtMost(Span::from_ms(30)));
        // The master is lost right after. All looks in time say so before three intervals are over.
        let mut now = 90;
        while watch.look(at(now), seen(9_125, 1)).is_fresh(INTERVAL) {
            now += 31;
        }
        assert!((60 + 3 * 125 - 31..=60 + 3 * 125).contains(&now), "{now}");
    }

    #[test]
    fn a_late_look_counts_by_the_stamps_unless_the_clock_was_set_between() {
        let looked = |ingress_ms| {
            let mut watch = SyncWatch::default();
            watch.look(at(0), seen(1_000, 1));
            watch.look(at(31), seen(1_125, 1));
            watch.look(at(1_031), seen(ingress_ms, 1))
        };
        assert_eq!(looked(2_000), SyncAge::AtMost(Span::from_ms(1_031 - 875)));
        // Stamps that go back, or on too far, say nothing.
        for set in [900, 90_000] {
            assert_eq!(looked(set), SyncAge::AtMost(Span::from_s(1)), "{set}");
        }
    }

    #[test]
    fn the_sync_of_an_earlier_master_is_none_of_this_one() {
        let mut watch = SyncWatch::default();
        watch.look(at(0), seen(1_000, 1));
        assert!(watch.look(at(31), seen(1_125, 1)).is_fresh(INTERVAL));
        assert_eq!(watch.look(at(62), seen(1_125, 2)), SyncAge::Unknown);
        assert!(watch.look(at(93), seen(1_250, 2)).is_fresh(INTERVAL));
        watch.forget();
        assert_eq!(watch.look(at(124), seen(1_375, 2)), SyncAge::Unknown);
    }

    #[test]
    fn an_offset_is_measured_once_it_is_another_one_than_before_this_master_or_a_gap() {
        let mut watch = SyncWatch::default();
        let mut measured = |at_ms, ingress_ms, grandmaster, offset_ns| {
            let offset = Span::from_ns(offset_ns);
            watch.look(at(at_ms), SyncSeen { offset, ..seen(ingress_ms, grandmaster) });
            watch.is_measured()
        };
        // ptp4l stamps Syncs before it knows the delay. What it says then is that it began with.
        assert!(!measured(0, 1_000, 1, 0) && !measured(125, 1_125, 1, 0));
        assert!(measured(250, 1_250, 1, 421), "the delay is known");
        assert!(measured(281, 1_250, 1, 421) && measured(375, 1_375, 1, 421));
        // Another grandmaster: the offset is of the one before, at first.
        assert!(!measured(500, 1_500, 2, 421) && !measured(625, 1_625, 2, 421));
        assert!(measured(750, 1_750, 2, 300));
        // Its Syncs were missing, and come again.
        assert!(measured(1_750, 1_750, 2, 300));
        assert!(!measured(1_760, 2_760, 2, 300) && !measured(1_885, 2_885, 2, 300));
        assert!(measured(2_010, 3_010, 2, 299));
    }

    #[test]
    fn an_interval_that_no_profile_has_is_gptps() {
        assert_eq!(sync_interval(-3), INTERVAL);
        assert_eq!(sync_interval(0), Span::from_s(1));
        assert_eq!([sync_interval(127), sync_interval(-128)], [INTERVAL; 2]);
    }
}
