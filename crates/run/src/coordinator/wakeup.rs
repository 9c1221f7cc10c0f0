//! Whom the engine wakes in a run: what the numbers mean that it keeps with its timers.

use crate::coordinator::table::ThreadId;
use onbeat_model::system::{ChannelId, NodeId};

/// Whom a timer of the engine is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wakeup {
    /// A thread of a program. Of its alarms only the one of the latest number still matters.
    Thread { thread: ThreadId, alarm: u32 },
    /// The processors that the threads of a host share.
    Processors(NodeId),
    /// The synthetic talker of a channel.
    Talker(ChannelId),
}

/// Where a token says which of them it is.
const KIND: u32 = 62;
/// How many threads have tokens: far more than a run ever starts.
const THREADS: u32 = 1 << (KIND - 32);

/// The engine's token of a wake-up; equal ones have equal tokens, and no others have.
///
/// # Panics
/// When there are 2³⁰ threads before this one.
impl From<Wakeup> for u64 {
    fn from(wakeup: Wakeup) -> Self {
        match wakeup {
            Wakeup::Thread { thread, alarm } => {
                assert!(thread.0 < THREADS, "a run has fewer threads");
                Self::from(thread.0) << 32 | Self::from(alarm)
            }
            Wakeup::Processors(host) => 1 << KIND | Self::from(host.0),
            Wakeup::Talker(channel) => 2 << KIND | Self::from(channel.0),
        }
    }
}

/// What a token of the engine stands for; every number stands for something.
impl From<u64> for Wakeup {
    fn from(token: u64) -> Self {
        let low = token as u32;
        match token >> KIND {
            0 => Self::Thread { thread: ThreadId((token >> 32) as u32), alarm: low },
            1 => Self::Processors(NodeId(low)),
            _ => Self::Talker(ChannelId(low)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn wakeup() -> impl Strategy<Value = Wakeup> {
        prop_oneof![
            (0..THREADS, any::<u32>())
                .prop_map(|(thread, alarm)| { Wakeup::Thread { thread: ThreadId(thread), alarm } }),
            any::<u32>().prop_map(|host| Wakeup::Processors(NodeId(host))),
            any::<u32>().prop_map(|channel| Wakeup::Talker(ChannelId(channel))),
        ]
    }

    proptest! {
        #[test]
        fn a_wakeup_is_what_its_token_stands_for(wakeup in wakeup()) {
            prop_assert_eq!(Wakeup::from(u64::from(wakeup)), wakeup);
        }

        #[test]
        fn every_token_stands_for_something(token: u64) {
            let wakeup = Wakeup::from(token);
            prop_assert_eq!(Wakeup::from(u64::from(wakeup)), wakeup);
        }
    }
}
