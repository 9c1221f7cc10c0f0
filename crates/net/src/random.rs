//! Randomness: one stream per source of it.

use onbeat_model::system::Delay;
use onbeat_model::time::Span;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use rand_xoshiro::{SplitMix64, Xoshiro256PlusPlus};

/// What a stream is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum Purpose {
    /// The time between the frames of a noise source.
    Noise = 1,
    /// A host's stack, sending.
    StackTx = 2,
    /// A host's stack, receiving.
    StackRx = 3,
    /// A host's wake-up delay.
    Wakeup = 4,
    /// The times and lengths of a stream's frames.
    Source = 5,
    /// Which frames a link damages, per sending port.
    Errors = 6,
    /// The seed and the phases of one repetition of a simulation.
    Repetition = 7,
    /// What gPTP's nodes are like, when they start and how long messages stay in them.
    Synchronisation = 8,
    /// The wander of a node's own clock.
    Oscillator = 9,
    /// The jitter of a node's time stamps.
    TimeStamp = 10,
    /// A host's delays, as its TCP meets them.
    TcpHost = 11,
    /// What passes between the tags and the captures of messages over TCP.
    TcpLag = 12,
    /// The seed and the start of one run of a federation.
    Federation = 13,
    /// A federate's executions.
    Federate = 14,
    /// When a federate's actions happen.
    FederateAction = 15,
    /// A federate's wake-ups.
    FederateWakeup = 16,
    /// How long a connection's messages take without a channel.
    FederateMessage = 17,
    /// The error of a node's clock in a run of a federation.
    FederationClock = 18,
    /// The timers of a node's reservation protocol.
    Reservation = 19,
    /// When a station of Network Code starts.
    NetworkCodeStart = 20,
    /// What the generated application of such a station writes.
    NetworkCodeValues = 21,
}

/// One stream of random numbers, independent of all others of the same seed: a source that is
/// added or draws more often never shifts what another draws.
#[derive(Debug)]
pub(crate) struct Stream(Xoshiro256PlusPlus);

impl Stream {
    /// The stream of one source.
    pub(crate) fn new(seed: u64, purpose: Purpose, index: usize) -> Self {
        let mut state = seed;
        for word in [purpose as u64, index as u64] {
            state = SplitMix64::seed_from_u64(state).next_u64() ^ word;
        }
        Self(Xoshiro256PlusPlus::seed_from_u64(state))
    }

    /// Uniform in `0..count` by multiplication and shift. A value is off its fair share by less
    /// than `count` in 2⁶⁴. Written out here so that results do not hang on the version of a
    /// library of distributions.
    pub(crate) fn below(&mut self, count: u64) -> u64 {
        ((u128::from(self.0.next_u64()) * u128::from(count)) >> 64) as u64
    }
}

/// A [`Delay`] with the stream that it is drawn from.
#[derive(Debug)]
pub(crate) struct RandomDelay {
    shape: Distribution,
    stream: Stream,
}

#[derive(Debug)]
enum Distribution {
    /// Always the same; nothing is drawn.
    Fixed(Span),
    /// `min` plus a number of nanoseconds below `count`.
    Interval { min: Span, count: u64 },
    /// The weights up to and with each value, and the value.
    Histogram { values: Vec<(u64, Span)>, total: u64 },
}

impl RandomDelay {
    pub(crate) fn new(delay: &Delay, stream: Stream) -> Self {
        let shape = if delay.min() == delay.max() {
            Distribution::Fixed(delay.min())
        } else {
            match delay {
                Delay::Zero => Distribution::Fixed(Span::ZERO),
                Delay::Interval { min, max } => {
                    Distribution::Interval { min: *min, count: (*max - *min).as_ns() as u64 + 1 }
                }
                Delay::Histogram(weighted) => {
                    let mut total = 0;
                    let sum = |(value, weight): &(Span, u32)| {
                        total += u64::from(*weight);
                        (total, *value)
                    };
                    let values = weighted.iter().map(sum).collect();
                    Distribution::Histogram { values, total }
                }
            }
        };
        Self { shape, stream }
    }

    /// The next delay.
    pub(crate) fn draw(&mut self) -> Span {
        match &self.shape {
            Distribution::Fixed(span) => *span,
            Distribution::Interval { min, count } => {
                *min + Span::from_ns(self.stream.below(*count) as i64)
            }
            Distribution::Histogram { values, total } => {
                let at = self.stream.below(*total);
                values[values.partition_point(|(up_to, _)| *up_to <= at)].1
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draws(delay: &Delay, count: usize) -> Vec<i64> {
        let mut random = RandomDelay::new(delay, Stream::new(1, Purpose::StackRx, 0));
        (0..count).map(|_| random.draw().as_ns()).collect()
    }

    #[test]
    fn streams_differ_by_seed_purpose_and_index_and_repeat_by_all_three() {
        let first = |seed, purpose, index| Stream::new(seed, purpose, index).below(u64::MAX);
        let mut seen = Vec::new();
        for seed in 0..8 {
            for purpose in [Purpose::Noise, Purpose::StackTx, Purpose::StackRx, Purpose::Wakeup] {
                for index in 0..8 {
                    let value = first(seed, purpose, index);
                    assert_eq!(value, first(seed, purpose, index));
                    assert!(!seen.contains(&value), "{seed} {purpose:?} {index}");
                    seen.push(value);
                }
            }
        }
    }

    #[test]
    fn the_numbers_of_a_stream_never_change_from_version_to_version() {
        // From the published definitions of SplitMix64 and xoshiro256++, computed apart.
        let mut stream = Stream::new(1, Purpose::Noise, 0);
        assert_eq!([(); 5].map(|()| stream.below(1_000)), [775, 711, 686, 75, 50]);
    }

    #[test]
    fn an_interval_is_drawn_evenly_with_both_ends() {
        let delay = Delay::Interval { min: Span::from_ns(10), max: Span::from_ns(13) };
        let values = draws(&delay, 40_000);
        for value in 10..=13 {
            let count = values.iter().filter(|v| **v == value).count();
            assert!((9_500..10_500).contains(&count), "{value}: {count}");
        }
        assert!(values.iter().all(|v| (10..=13).contains(v)));
    }

    #[test]
    fn a_histogram_is_drawn_by_its_weights() {
        let weighted = [(5, 1), (6, 3), (900, 6)];
        let delay = Delay::Histogram(weighted.map(|(v, w)| (Span::from_ns(v), w)).to_vec());
        let values = draws(&delay, 50_000);
        for (value, weight) in weighted {
            let count = values.iter().filter(|v| **v == value).count() as i64;
            assert!((count - 5_000 * i64::from(weight)).abs() < 500, "{value}: {count}");
        }
    }

    #[test]
    fn a_delay_without_spread_is_exact() {
        let five = Span::from_ns(5);
        assert_eq!(draws(&Delay::Zero, 2), [0, 0]);
        assert_eq!(draws(&Delay::Interval { min: five, max: five }, 2), [5, 5]);
        assert_eq!(draws(&Delay::Histogram(vec![(five, 9)]), 2), [5, 5]);
    }
}
