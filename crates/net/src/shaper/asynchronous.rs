//! Asynchronous traffic shaping (802.1Qcr; 802.1Q-2022 8.6.5.6, 8.6.8.5, 8.6.11), exact in
//! integers.

use onbeat_model::port::TokenBucket;
use onbeat_model::time::{ClockError, NetTime, SyncedTime};
use std::collections::VecDeque;

/// The place of a bucket's frame that has none.
pub(crate) const NO_BUCKET: u32 = u32::MAX;

/// Tokens per bit: a rate in bit/s times a time in ns counts 10⁻⁹ bit.
const PER_BIT: i128 = 1_000_000_000;

/// The transmission selection of one queue (8.6.8.5): frames leave in the order of their
/// eligibility times, those of the same time in the order in which they came.
#[derive(Debug, Default)]
pub(crate) struct Asynchronous {
    /// Of each frame in the queue, in its order.
    eligible: VecDeque<NetTime>,
}

impl Asynchronous {
    /// Where in the queue a frame that is eligible from `at` on belongs.
    pub(crate) fn insert(&mut self, at: NetTime) -> usize {
        let place = self.eligible.partition_point(|other| *other <= at);
        self.eligible.insert(place, at);
        place
    }

    /// When the head may be sent.
    pub(crate) fn eligible_at(&self) -> NetTime {
        *self.eligible.front().expect("a frame in the queue")
    }

    /// The head is being sent.
    pub(crate) fn started(&mut self) {
        self.eligible.pop_front();
    }
}

/// The schedulers of the streams that leave one port. They run by the node's clock, and their
/// rates with it; not by what it is set to, so that it never goes backwards.
#[derive(Debug)]
pub(crate) struct Buckets {
    clock: ClockError,
    buckets: Vec<Bucket>,
    /// Per group: the last eligibility time that was given in it (groupEligibilityTime).
    groups: Vec<SyncedTime>,
}

/// One scheduler; times are the clock's reading in ns times the rate in bit/s.
#[derive(Debug)]
struct Bucket {
    rate: i128,
    /// From empty to full: the burst in 10⁻⁹ bit (emptyToFullDuration).
    burst: i128,
    /// When the bucket was empty (bucketEmptyTime); it is full at the epoch.
    empty_at: i128,
    group: u32,
}

impl Buckets {
    pub(crate) fn new(clock: ClockError) -> Self {
        assert_eq!(clock, clock.unstepped(), "a clock that is set");
        Self { clock, buckets: Vec::new(), groups: Vec::new() }
    }

    /// From now on the node's clock is this one, whatever it is set to. Frames that wait keep the
    /// instants at which they are eligible.
    pub(crate) fn set_clock(&mut self, clock: ClockError) {
        self.clock = clock.unstepped();
    }

    /// Adds a stream's bucket; returns its place. Streams that come in by the same port for the
    /// same queue share a group; groups are counted from 0.
    ///
    /// # Panics
    /// When the rate is zero.
    pub(crate) fn add(&mut self, parameters: TokenBucket, group: u32) -> u32 {
        assert!(parameters.rate.as_bps() > 0, "a bucket that never fills");
        if self.groups.len() <= group as usize {
            self.groups.resize(group as usize + 1, self.clock.read(NetTime::ZERO));
        }
        let rate = i128::from(parameters.rate.as_bps());
        let burst = i128::from(parameters.burst.get()) * 8 * PER_BIT;
        let start = i128::from(self.clock.read(NetTime::ZERO).as_ns()) * rate;
        self.buckets.push(Bucket { rate, burst, empty_at: start - burst, group });
        self.buckets.len() as u32 - 1
    }

    /// The eligibility time of a frame of so many bits on the wire that arrives now (8.6.11.3),
    /// rounded up to the next instant of the clock: not before an earlier frame of the group, nor
    /// before the bucket has as many tokens. There is no maximum residence time. Without a bucket
    /// a frame is eligible at once, whatever waits.
    pub(crate) fn eligible_at(&mut self, now: NetTime, bucket: u32, wire_bits: u64) -> NetTime {
        if bucket == NO_BUCKET {
            return now;
        }
        let arrival = self.clock.read(now);
        let bucket = &mut self.buckets[bucket as usize];
        let group = &mut self.groups[bucket.group as usize];
        let scheduled = bucket.empty_at + i128::from(wire_bits) * PER_BIT;
        let filled = -(-scheduled).div_euclid(bucket.rate);
        let filled = i64::try_from(filled).expect("a bucket fills within 292 years");
        let eligible = arrival.max(*group).max(SyncedTime::from_ns(filled));
        *group = eligible;
        let full_at = bucket.empty_at + bucket.burst;
        let late = (i128::from(eligible.as_ns()) * bucket.rate - full_at).max(0);
        bucket.empty_at = scheduled + late;
        if eligible == arrival { now } else { self.clock.when(eligible).max(now) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onbeat_model::units::{BitRate, Octets};
    use proptest::prelude::*;

    fn at(ns: i64) -> NetTime {
        NetTime::from_ns(ns)
    }
    fn bucket(mbps: u64, burst: u32) -> TokenBucket {
        TokenBucket { rate: BitRate::from_mbps(mbps), burst: Octets::new(burst) }
    }

    #[test]
    fn a_burst_is_eligible_at_once_and_what_follows_at_the_rate() {
        // 2,000 octets at 8 Mb/s, 1 octet per µs; frames of 1,000.
        let mut buckets = Buckets::new(ClockError::default());
        let one = buckets.add(bucket(8, 2_000), 0);
        let times = [0, 0, 0, 0].map(|now| buckets.eligible_at(at(now), one, 8_000).as_ns());
        assert_eq!(times, [0, 0, 1_000_000, 2_000_000]);
        // Empty at 2 ms, 1,500 octets at 3.5 ms: 1,000 of these at once, the next 500 µs later.
        let times = [3_500_000; 2].map(|now| buckets.eligible_at(at(now), one, 8_000).as_ns());
        assert_eq!(times, [3_500_000, 4_000_000]);
        // Full again after 2 ms, and no more than full after 10 s.
        let times = [10_000_000_000; 3].map(|now| buckets.eligible_at(at(now), one, 8_000));
        assert_eq!(times.map(|t| t.as_ns() - 10_000_000_000), [0, 0, 1_000_000]);
    }

    #[test]
    fn a_frame_is_not_eligible_before_an_earlier_one_of_its_group() {
        let mut buckets = Buckets::new(ClockError::default());
        let slow = buckets.add(bucket(8, 1_000), 0);
        let fast = buckets.add(bucket(800, 1_000), 0);
        let other = buckets.add(bucket(800, 1_000), 1);
        assert_eq!(buckets.eligible_at(at(0), slow, 8_000), at(0));
        assert_eq!(buckets.eligible_at(at(0), slow, 8_000), at(1_000_000));
        // Held back by its group though its own bucket is full; full at 0, so that it is full
        // again 10 µs after it was used at 1 ms.
        assert_eq!(buckets.eligible_at(at(10), fast, 8_000), at(1_000_000));
        assert_eq!(buckets.eligible_at(at(1_000_001), fast, 8_000), at(1_010_000));
        assert_eq!(buckets.eligible_at(at(10), other, 8_000), at(10));
        assert_eq!(buckets.eligible_at(at(20), NO_BUCKET, 8_000), at(20));
    }

    #[test]
    fn a_slow_clock_makes_the_rate_slow() {
        // −100 ppm, 5 ns ahead: 1 ms of the clock takes 1,000,100.01 ns. The arrival at 0 reads 5;
        // 1,000,005 is read first at 1,000,101 (1,000,101 + 5 − 100.01, rounded down).
        let clock = ClockError {
            offset: onbeat_model::time::Span::from_ns(5),
            drift_ppb: -100_000,
            ..ClockError::default()
        };
        let mut buckets = Buckets::new(clock);
        let one = buckets.add(bucket(8, 1_000), 0);
        assert_eq!(buckets.eligible_at(at(0), one, 8_000), at(0));
        let next = buckets.eligible_at(at(0), one, 8_000);
        assert_eq!(next, at(1_000_101));
        assert_eq!(
            (clock.read(next).as_ns(), clock.read(at(1_000_100)).as_ns()),
            (1_000_005, 1_000_004)
        );
    }

    #[test]
    fn the_queue_is_in_the_order_of_eligibility_then_arrival() {
        let mut queue = Asynchronous::default();
        let places = [5, 9, 7, 5, 9, 1].map(|ns| queue.insert(at(ns)));
        assert_eq!(places, [0, 1, 1, 1, 4, 0]);
        let order: Vec<_> = (0..6)
            .map(|_| {
                let head = queue.eligible_at().as_ns();
                queue.started();
                head
            })
            .collect();
        assert_eq!(order, [1, 5, 5, 7, 9, 9]);
    }

    proptest! {
        /// Between any two frames of a stream no more passes than burst + rate × time.
        #[test]
        fn what_is_eligible_conforms_to_the_bucket(
            mbps in 1..2_000u64,
            burst in 1_542..20_000u32,
            frames in prop::collection::vec((0..100_000i64, 84..1_543u64, any::<bool>()), 1..100),
        ) {
            let mut buckets = Buckets::new(ClockError::default());
            let places = [buckets.add(bucket(mbps, burst), 0), buckets.add(bucket(7, 1_542), 0)];
            let mut now = 0;
            let mut seen = Vec::new();
            let mut last = at(0);
            for (pause, octets, first) in frames {
                now += pause;
                let eligible = buckets.eligible_at(at(now), places[usize::from(first)], octets * 8);
                prop_assert!(eligible >= at(now) && eligible >= last);
                last = eligible;
                if !first {
                    seen.push((eligible, octets));
                }
            }
            for (i, (start, _)) in seen.iter().enumerate() {
                let mut octets = 0;
                for (end, size) in &seen[i..] {
                    octets += size;
                    let span = i128::from((*end - *start).as_ns());
                    let allowed = i128::from(burst) * 8_000 + i128::from(mbps) * span;
                    prop_assert!(i128::from(octets) * 8_000 <= allowed);
                }
            }
        }
    }
}
