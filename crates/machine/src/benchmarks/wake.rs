//! Test 3: how late a thread wakes up from an absolute sleep, as cyclictest does it.

use super::{Clock, CpuPlacement};
use onbeat::clock::pause;
use onbeat_model::time::Span;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};

/// From when all threads are in their places to when they are first to wake up.
const LEAD: Span = Span::from_ms(5);
/// How often threads look whether all others are there.
const LOOK: Span = Span::from_us(200);

/// What a thread that wakes up at instants of a fixed period saw, instant by instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wakes {
    /// How much later than the instant it was awake, in ns.
    pub late_ns: Vec<i64>,
    /// Whether it was woken for this instant; not for one that it had slept through already.
    pub woken: Vec<bool>,
}

impl Wakes {
    /// Room for `count` instants, all of it in memory.
    pub fn room_for(count: usize) -> Self {
        Self { late_ns: vec![0; count], woken: vec![true; count] }
    }

    /// The lateness at instants that the thread was woken for: what cyclictest reports.
    pub fn latencies(&self) -> impl Iterator<Item = i64> {
        self.late_ns.iter().zip(&self.woken).filter_map(|(late, woken)| woken.then_some(*late))
    }
}

/// Wakes up at the instants that `target_ns` says by `clock`, which come one after the other; calls
/// `at` with the instant's number and the clock's reading right after each wake-up. An instant that
/// has passed before the thread could sleep for it is not slept for, as cyclictest does; its
/// lateness is how long ago it was. Ends early if `stop` is set; returns how many instants it saw.
/// Real-time: nothing is allocated.
pub fn wake(
    clock: Clock,
    target_ns: impl Fn(usize) -> i64,
    wakes: &mut Wakes,
    stop: &AtomicBool,
    mut at: impl FnMut(usize, i64),
) -> usize {
    let count = wakes.late_ns.len();
    let mut now = clock.now_ns();
    for instant in 0..count {
        let target = target_ns(instant);
        // The first is always slept for, and be it in vain: so does cyclictest.
        let woken = instant == 0 || now < target;
        loop {
            if stop.load(Ordering::Relaxed) {
                return instant;
            }
            if now >= target {
                break;
            }
            clock.sleep_until(target);
            now = clock.now_ns();
        }
        at(instant, now);
        wakes.late_ns[instant] = now - target;
        wakes.woken[instant] = woken;
    }
    count
}

/// Wakes up `count` times at `place`, and on each of the processors `witnesses` at the same
/// instants with the same priority. The first of the answers is the place's, the others are the
/// witnesses'; all have the same length, shorter than `count` if `stop` was set.
///
/// # Errors
/// When a thread cannot be made or put in its place.
pub fn wake_on_all(
    clock: Clock,
    place: CpuPlacement,
    witnesses: &[u16],
    period: Span,
    count: usize,
    stop: &AtomicBool,
) -> io::Result<Vec<Wakes>> {
    let start = Start::default();
    let side = |cpu| {
        let mut wakes = Wakes::room_for(count);
        let placed = CpuPlacement { cpu, ..place }.take();
        let start_ns = start.wait();
        placed?;
        let target = |instant| start_ns + period.as_ns() * instant as i64;
        let done = wake(clock, target, &mut wakes, stop, |_, _| ());
        wakes.late_ns.truncate(done);
        wakes.woken.truncate(done);
        io::Result::Ok(wakes)
    };
    let cpus = || std::iter::once(place.cpu).chain(witnesses.iter().copied());
    let sides: io::Result<Vec<Wakes>> = std::thread::scope(|scope| {
        let thread = |cpu| {
            let side = &side;
            std::thread::Builder::new()
                .name("measure".into())
                .spawn_scoped(scope, move || side(cpu))
        };
        let threads: Vec<_> = cpus().map(thread).collect();
        // Who could not be made is not waited for.
        let made = threads.iter().filter(|thread| thread.is_ok()).count();
        start.give(made, || clock.now_ns() + LEAD.as_ns());
        let join = |thread: io::Result<std::thread::ScopedJoinHandle<'_, _>>| {
            thread?.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        // All are waited for before the first error is looked at.
        threads.into_iter().map(join).collect::<Vec<_>>().into_iter().collect()
    });
    let mut sides = sides?;
    let common = sides.iter().map(|side| side.late_ns.len()).min().unwrap_or(0);
    for side in &mut sides {
        side.late_ns.truncate(common);
        side.woken.truncate(common);
    }
    Ok(sides)
}

/// The first instant of threads that start together: it comes when all are in their places.
#[derive(Default)]
struct Start {
    ready: AtomicUsize,
    /// 0: not known yet.
    at_ns: AtomicI64,
}

impl Start {
    /// Says that this thread is ready, and waits until the instant is known.
    fn wait(&self) -> i64 {
        self.ready.fetch_add(1, Ordering::AcqRel);
        loop {
            match self.at_ns.load(Ordering::Acquire) {
                0 => pause(LOOK),
                at_ns => return at_ns,
            }
        }
    }

    /// Waits until so many are ready, and lets them go.
    fn give(&self, threads: usize, at_ns: impl Fn() -> i64) {
        while self.ready.load(Ordering::Acquire) < threads {
            pause(LOOK);
        }
        self.at_ns.store(at_ns(), Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_wakes_up_early_and_what_was_slept_through_is_late_by_as_much() {
        let mut wakes = Wakes::room_for(6);
        let period = Span::from_ms(1);
        let start = Clock::Local.now_ns() + 1_000_000;
        let go_on = AtomicBool::new(false);
        // Work at the second instant that lasts beyond the next two.
        let target = |instant| start + period.as_ns() * instant as i64;
        let done = wake(Clock::Local, target, &mut wakes, &go_on, |instant, _| {
            if instant == 1 {
                pause(Span::from_us(2_500));
            }
        });
        assert_eq!(done, 6);
        assert!(wakes.late_ns.iter().all(|late| *late >= 0), "{wakes:?}");
        // Whoever was late by a period did not sleep for the next instant, and nobody else did not.
        for at in 1..6 {
            let before = wakes.late_ns[at - 1];
            assert_eq!(wakes.woken[at], before < 1_000_000, "{at}: {wakes:?}");
            if !wakes.woken[at] {
                assert_eq!(wakes.late_ns[at], before - 1_000_000, "{at}: {wakes:?}");
            }
        }
        assert!(wakes.woken.contains(&false), "{wakes:?}");
        let woken = wakes.woken.iter().filter(|woken| **woken).count();
        assert_eq!(wakes.latencies().count(), woken);
    }

    #[test]
    fn witnesses_see_the_same_instants() {
        let cpus: Vec<u16> = super::super::allowed_cpus().unwrap().0.into_iter().collect();
        let place = CpuPlacement { cpu: cpus[0], priority: 0 };
        let go_on = AtomicBool::new(false);
        let sides =
            wake_on_all(Clock::Global, place, &cpus[1..], Span::from_ms(1), 20, &go_on).unwrap();
        assert_eq!(sides.len(), cpus.len());
        assert!(sides.iter().all(|side| side.late_ns.len() == 20));
        let nowhere = CpuPlacement { cpu: 1023, priority: 0 };
        let one = &cpus[..1];
        assert!(wake_on_all(Clock::Local, nowhere, one, Span::from_ms(1), 2, &go_on).is_err());
        let stop = AtomicBool::new(true);
        let sides = wake_on_all(Clock::Local, place, &[], Span::from_ms(1), 20, &stop).unwrap();
        assert!(sides[0].late_ns.is_empty());
    }
}
