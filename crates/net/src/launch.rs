//! Launch times: what is written to a scheduled channel leaves its talker's stack at the instants
//! that the plan says, one frame at each.

use onbeat_model::plan::{ChannelPlan, Plan};
use onbeat_model::system::{Channel, System};
use onbeat_model::time::{ClockError, NetTime, Span, SyncedTime};

/// The launch times of one channel.
#[derive(Debug)]
pub(crate) struct LaunchTimes {
    /// The first, by the talker's clock.
    first: Span,
    /// From each to the next one.
    period: Span,
    /// How many have passed or are taken.
    taken: i64,
}

impl LaunchTimes {
    /// Of each channel that has some.
    pub(crate) fn of_channels(system: &System, plan: &Plan) -> Vec<Option<Self>> {
        let of_channel = |(channel, planned): (&Channel, &ChannelPlan)| {
            let first = planned.launch.as_ref()?.at;
            Some(Self { first, period: channel.interval, taken: 0 })
        };
        system.channels.iter().zip(&plan.channels).map(of_channel).collect()
    }

    /// Takes the first launch time that is free, no earlier than `at`.
    pub(crate) fn next(&mut self, clock: &ClockError, at: NetTime) -> NetTime {
        let since = (clock.read(at) - SyncedTime::ZERO - self.first).as_ns();
        let period = self.period.as_ns();
        let number = self.taken.max((since + period - 1).div_euclid(period));
        self.taken = number + 1;
        clock.when_from(at, SyncedTime::ZERO + self.first + self.period * number)
    }
}
