//! The launch times of a scheduled channel: in each interval one instant at which a frame leaves
//! its talker (802.1Q-2022 8.6.8.4 opens the windows behind it).

use onbeat_model::time::Span;

/// When the frames of a channel leave, by the network's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchTimes {
    /// From the begin of each interval, counted from time zero, to the launch time; less than an
    /// interval.
    pub at: Span,
    /// How long before a launch time a message has to be written to leave at it: as long as the
    /// talker's stack may take; less than an interval.
    pub lead: Span,
}

impl LaunchTimes {
    /// The launch time of a message that is written at `now` and is the first, or follows one that
    /// left at `last`; all in nanoseconds. Times beyond the ends of `i64` are those ends.
    pub fn next(self, interval: Span, now: i64, last: Option<i64>) -> i64 {
        let (interval, at) = (interval.as_ns(), self.at.as_ns());
        let ready = now.saturating_add(self.lead.as_ns());
        let least = last.map_or(ready, |last| ready.max(last.saturating_add(1)));
        let wait = (i128::from(at) - i128::from(least)).rem_euclid(interval.into());
        least.saturating_add(i64::try_from(wait).expect("less than an interval"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TIMES: LaunchTimes = LaunchTimes { at: Span::from_us(250), lead: Span::from_us(60) };
    const INTERVAL: Span = Span::from_ms(1);

    #[test]
    fn a_message_leaves_at_the_next_launch_time_for_which_it_is_early_enough() {
        let next = |now_us: i64, last_us: Option<i64>| {
            let last = last_us.map(|last| last * 1_000);
            TIMES.next(INTERVAL, now_us * 1_000, last) / 1_000
        };
        assert_eq!([next(0, None), next(190, None), next(191, None)], [250, 250, 1_250]);
        assert_eq!(next(-900, None), -750, "before the epoch");
        assert_eq!([next(0, Some(250)), next(3_191, Some(250))], [1_250, 4_250]);
    }

    proptest! {
        #[test]
        fn each_launch_time_is_one_of_the_grid_the_first_that_is_free(
            interval in 1i64..1_000_000_000, at: u32, lead: u32, now: i64, last: Option<i64>,
        ) {
            let [at, lead] = [at, lead].map(|part| Span::from_ns(i64::from(part) % interval));
            let times = LaunchTimes { at, lead };
            let next = times.next(Span::from_ns(interval), now, last);
            prop_assume!(next < i64::MAX - 1);
            let least = now.saturating_add(lead.as_ns());
            prop_assert!(next >= least && last.is_none_or(|last| next > last));
            let phase = (i128::from(next) - i128::from(at.as_ns())).rem_euclid(interval.into());
            prop_assert_eq!(phase, 0);
            let before = next.checked_sub(interval);
            let free = |at: i64| at >= least && last.is_none_or(|last| at > last);
            prop_assert!(!before.is_some_and(free), "an earlier one was free");
        }
    }
}
