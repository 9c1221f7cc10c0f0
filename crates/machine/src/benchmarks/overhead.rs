//! Tests 1 and 2: what reading a clock costs.

use super::{Clock, ns, read};
use onbeat::clock::pause;
use onbeat_model::time::Span;
use std::sync::atomic::{AtomicBool, Ordering};

/// Readings between rests.
const BLOCK: usize = 20_000;
/// How long a rest is: with it, a thread of the highest priority leaves the machine enough not to
/// be throttled (sched_rt_runtime_us), also where a reading takes a microsecond.
const REST: Span = Span::from_ms(5);

/// Test 1: of each sample, what a clock reads the second time minus what it reads the first.
/// Returns how many samples there are: fewer than there is room for if `stop` was set.
/// Real-time: nothing is allocated, and nothing stands between the two readings.
pub fn clock_overhead(clock: Clock, samples: &mut [i64], stop: &AtomicBool) -> usize {
    let clock = clock.number();
    in_blocks(samples, stop, |sample| {
        let first = read(clock);
        let second = read(clock);
        *sample = ns(second) - ns(first);
    })
}

/// Test 2: the same of a reading of `of` between two of `by`; so it has one reading of `by` in it.
pub fn cross_overhead(of: Clock, by: Clock, samples: &mut [i64], stop: &AtomicBool) -> usize {
    let (of, by) = (of.number(), by.number());
    in_blocks(samples, stop, |sample| {
        let first = read(by);
        read(of);
        let second = read(by);
        *sample = ns(second) - ns(first);
    })
}

#[inline(always)]
fn in_blocks(samples: &mut [i64], stop: &AtomicBool, take: impl Fn(&mut i64)) -> usize {
    let mut done = 0;
    for block in samples.chunks_mut(BLOCK) {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        block.iter_mut().for_each(&take);
        done += block.len();
        pause(REST);
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sample_is_taken_and_a_monotonic_clock_never_runs_backwards() {
        let go_on = AtomicBool::new(false);
        let mut samples = vec![-1; 2 * BLOCK + 7];
        let count = clock_overhead(Clock::Local, &mut samples, &go_on);
        assert_eq!(count, samples.len());
        assert!(samples.iter().all(|ns| *ns >= 0) && samples.iter().any(|ns| *ns > 0));
        samples.fill(-1);
        let count = cross_overhead(Clock::Global, Clock::Local, &mut samples, &go_on);
        assert_eq!(count, samples.len());
        assert!(samples.iter().all(|ns| *ns >= 0));
    }

    #[test]
    fn who_is_stopped_takes_no_more_samples() {
        let stop = AtomicBool::new(true);
        let mut samples = vec![-1; 10];
        assert_eq!(clock_overhead(Clock::Tai, &mut samples, &stop), 0);
        assert_eq!(samples, [-1; 10]);
    }
}
