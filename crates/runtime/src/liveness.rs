//! What a reading end can tell of its talker: whether it has been silent for longer than a
//! deadline, was started again, is not alone, or has a clock that is not synchronised.
//!
//! The deadline is what DDS calls so: the longest time between two messages of a reader (OMG DDS
//! 1.4, 2.2.3.7). It is counted from one arrival to the next; before the first message, from when
//! the end was opened, in a run from its start. A message exactly at the deadline is in time.

use crate::channel::ListenerEndpoint;
use crate::channel_io::{ChannelError, ChannelIo, Log};
use onbeat_model::time::{Span, SyncedTime};
use std::sync::atomic::{AtomicU32, Ordering};

/// Bits of [`Liveness::state`] and [`Liveness::changed`].
pub mod condition {
    /// A message of the channel's talker has come.
    pub const MATCHED: u32 = 1;
    /// None has come for longer than the deadline.
    pub const DEADLINE_MISSED: u32 = 2;
    /// The talker's clock, by its last message, or this host's is not known to be synchronised.
    pub const OUT_OF_SYNC: u32 = 4;
    /// Only as a change: the talker was started again, or another one has taken its place.
    pub const RESTARTED: u32 = 8;
    /// Only as a change: messages of a second talker were rejected.
    pub const SECOND_TALKER: u32 = 16;
}

/// What an end knows of its talker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Liveness {
    /// What is so now: bits of [`condition`].
    pub state: u32,
    /// What has become so or ended since this was last asked, perhaps both: bits of [`condition`].
    pub changed: u32,
    /// How often no message came for longer than the deadline.
    pub deadline_missed: u64,
    /// How often the talker was started again or replaced.
    pub restarts: u64,
    /// Messages of a second talker, all rejected.
    pub second_talker: u64,
    /// When the last message came; `None` before the first.
    pub last_arrival: Option<SyncedTime>,
}

/// Follows an end's talker by what comes at which time.
#[derive(Clone, Copy, Debug)]
pub struct TalkerWatch {
    deadline: Option<Span>,
    /// Since when the next message is awaited.
    since: SyncedTime,
    instance: Option<u8>,
    /// The clock of the talker is not known to be synchronised.
    uncertain: bool,
    status: Liveness,
}

impl TalkerWatch {
    /// Of an end that awaits its first message since this instant.
    pub fn new(deadline: Option<Span>, since: SyncedTime) -> Self {
        let (instance, uncertain, status) = (None, false, Liveness::default());
        Self { deadline, since, instance, uncertain, status }
    }

    /// From now on this is the deadline, or there is none, and the time until the next message
    /// counts from this instant. A deadline that is being missed is not from now on.
    pub fn set_deadline(&mut self, deadline: Option<Span>, since: SyncedTime) {
        (self.deadline, self.since) = (deadline, since);
        self.turn(condition::DEADLINE_MISSED, false);
    }

    /// From when on the deadline is missed if no message comes before; `None` where there is none
    /// or it is missed already.
    #[inline]
    pub fn missed_from(&self) -> Option<SyncedTime> {
        let deadline = self.deadline.filter(|_| !self.is(condition::DEADLINE_MISSED))?;
        let end = self.since.as_ns().saturating_add(deadline.as_ns());
        Some(SyncedTime::from_ns(end.saturating_add(1)))
    }

    /// At `now` no message waits. Whether the deadline is missed since then.
    pub fn nothing_until(&mut self, now: SyncedTime) -> bool {
        let is_missed = self.missed_from().is_some_and(|from| from <= now);
        if is_missed {
            self.status.deadline_missed += 1;
            self.turn(condition::DEADLINE_MISSED, true);
        }
        is_missed
    }

    /// A message of this start of the talker came; where `by_then` only, it may have come before.
    #[inline]
    pub fn came(&mut self, arrived: SyncedTime, by_then: bool, instance: u8, uncertain: bool) {
        if !by_then {
            // It ends a silence that nobody saw while it lasted.
            self.nothing_until(arrived);
        }
        // A clock that was set back is what counts from now on.
        self.since = arrived;
        self.status.last_arrival = Some(arrived);
        if self.instance.replace(instance).is_some_and(|before| before != instance) {
            self.status.restarts += 1;
            self.status.changed |= condition::RESTARTED;
        }
        self.turn(condition::MATCHED, true);
        self.turn(condition::DEADLINE_MISSED, false);
        self.uncertain = uncertain;
        self.turn(condition::OUT_OF_SYNC, uncertain);
    }

    /// A message of a second talker was rejected.
    pub fn rejected_talker(&mut self) {
        self.status.second_talker += 1;
        self.status.changed |= condition::SECOND_TALKER;
    }

    /// What is known, and what has changed since the last call. This host's clock is `uncertain` or
    /// not.
    pub fn take(&mut self, uncertain: bool) -> Liveness {
        self.turn(condition::OUT_OF_SYNC, uncertain || self.uncertain);
        let status = self.status;
        self.status.changed = 0;
        status
    }

    #[inline]
    fn is(&self, bit: u32) -> bool {
        self.status.state & bit != 0
    }

    /// Makes a condition so or not, and notes it if it was otherwise.
    #[inline]
    fn turn(&mut self, bit: u32, on: bool) {
        if self.is(bit) != on {
            self.status.state ^= bit;
            self.status.changed |= bit;
        }
    }
}

impl<P: ChannelIo, L: Log> ListenerEndpoint<P, L> {
    /// From now on `sooner` is counted up whenever this end's deadline becomes earlier: who knows
    /// the earliest of many need not look at all again before.
    pub fn count_sooner(&mut self, sooner: &'static AtomicU32) {
        self.sooner = Some(sooner);
    }

    /// Changes what is known of the talker, and counts a deadline that becomes earlier by that.
    #[inline]
    pub(crate) fn notice(&mut self, change: impl FnOnce(&mut TalkerWatch)) {
        let watch = self.watch.get_mut();
        let before = watch.missed_from();
        change(watch);
        let earlier = watch.missed_from().is_some_and(|now| before.is_none_or(|was| now < was));
        if let Some(sooner) = self.sooner.filter(|_| earlier) {
            sooner.fetch_add(1, Ordering::Release);
        }
    }

    /// From now on no more than `deadline`, if there is one, is to pass between two messages:
    /// counted from now until the next one, before the run's start from that.
    pub fn set_deadline(&mut self, deadline: Option<Span>) -> Result<(), ChannelError> {
        let since = match self.io.now() {
            Ok(now) => now.local,
            Err(ChannelError::NotStarted) => SyncedTime::ZERO,
            Err(fault) => return Err(fault),
        };
        self.notice(|watch| watch.set_deadline(deadline, since));
        Ok(())
    }

    /// When the deadline is missed if no message comes before; `None` where there is none or that
    /// is noted already.
    #[inline]
    pub fn missed_from(&self) -> Option<SyncedTime> {
        self.watch.get().missed_from()
    }

    /// At `now` no message waits here. Whether the deadline is missed since then.
    pub fn nothing_until(&self, now: SyncedTime) -> bool {
        let mut watch = self.watch.get();
        let is_missed = watch.nothing_until(now);
        self.watch.set(watch);
        is_missed
    }

    /// What is known of the talker by what was read, and what has changed since the last call.
    pub fn take_liveness(&mut self) -> Liveness {
        self.watch.get_mut().take(self.io.uncertain())
    }
}

#[cfg(test)]
mod tests {
    use super::condition::*;
    use super::*;
    use proptest::prelude::*;

    const fn at(ns: i64) -> SyncedTime {
        SyncedTime::from_ns(ns)
    }

    #[test]
    fn each_condition_is_told_once_when_it_begins_and_once_when_it_ends() {
        let mut watch = TalkerWatch::new(Some(Span::from_ns(10)), at(0));
        assert_eq!(watch.missed_from(), Some(at(11)));
        assert!(!watch.nothing_until(at(10)));
        assert!(watch.nothing_until(at(11)) && !watch.nothing_until(at(500)));
        let status = watch.take(false);
        assert_eq!((status.state, status.changed), (DEADLINE_MISSED, DEADLINE_MISSED));
        assert_eq!((status.deadline_missed, status.last_arrival), (1, None));
        watch.came(at(600), false, 7, false);
        let status = watch.take(false);
        assert_eq!((status.state, status.changed), (MATCHED, MATCHED | DEADLINE_MISSED));
        // Nobody looked meanwhile.
        watch.came(at(611), false, 8, true);
        watch.rejected_talker();
        let status = watch.take(false);
        let changed = DEADLINE_MISSED | OUT_OF_SYNC | RESTARTED | SECOND_TALKER;
        assert_eq!((status.state, status.changed), (MATCHED | OUT_OF_SYNC, changed));
        assert_eq!((status.deadline_missed, status.restarts, status.second_talker), (2, 1, 1));
        watch.came(at(621), false, 8, false);
        assert_eq!(watch.take(false).changed, OUT_OF_SYNC);
        assert_eq!(watch.take(true).changed, OUT_OF_SYNC);
        assert_eq!(watch.take(false).state, MATCHED);
        assert_eq!(watch.missed_from(), Some(at(632)));
        watch.set_deadline(None, at(700));
        assert!(watch.missed_from().is_none() && !watch.nothing_until(at(i64::MAX)));
        watch.set_deadline(Some(Span::from_ns(i64::MAX)), at(700));
        assert_eq!(watch.missed_from(), Some(at(i64::MAX)));
        // It waited for who knows how long; and a clock that was set back counts from then on.
        watch.set_deadline(Some(Span::from_ns(10)), at(700));
        watch.came(at(900), true, 8, false);
        watch.came(at(100), false, 8, false);
        assert_eq!((watch.take(false).deadline_missed, watch.missed_from()), (2, Some(at(111))));
    }

    proptest! {
        /// However often it is looked at in between, every silence counts once.
        #[test]
        fn silences_count_as_their_lengths_say(
            gaps in prop::collection::vec(0..30i64, 1..40),
            looks in prop::collection::vec(0..900i64, 0..40),
        ) {
            let mut watch = TalkerWatch::new(Some(Span::from_ns(10)), at(0));
            let mut looks = looks;
            looks.sort_unstable();
            let mut looks = looks.into_iter().peekable();
            let mut now = 0;
            for gap in &gaps {
                now += gap;
                while let Some(look) = looks.next_if(|look| *look < now) {
                    watch.nothing_until(at(look));
                }
                watch.came(at(now), false, 1, false);
            }
            let missed = gaps.iter().filter(|gap| **gap > 10).count() as u64;
            prop_assert_eq!(watch.take(false).deadline_missed, missed);
        }
    }
}
