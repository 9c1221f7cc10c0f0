//! The machine's own clock. The only place that reads or waits for it.

use onbeat_model::time::{ClockError, NetTime, Span, SyncedTime};
use rustix::thread::{ClockId, NanosleepRelativeResult};
use rustix::time::Timespec;

/// An instant of CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MonoTime(i64);

impl MonoTime {
    /// The clock's number in system calls.
    pub const CLOCK: i32 = libc::CLOCK_MONOTONIC;
    /// Now. Real-time: bounded, no system call where the kernel offers a vDSO.
    pub fn now() -> Self {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        Self(now.tv_sec * 1_000_000_000 + now.tv_nsec)
    }
    /// The instant `ns` nanoseconds after the clock's epoch.
    pub const fn from_ns(ns: i64) -> Self {
        Self(ns)
    }
    /// Nanoseconds since the clock's epoch.
    pub const fn as_ns(self) -> i64 {
        self.0
    }
    /// The instant as system calls want it; none is before the clock's epoch.
    pub(crate) fn as_timespec(self) -> Timespec {
        let ns = self.0.max(0);
        Timespec { tv_sec: ns / 1_000_000_000, tv_nsec: ns % 1_000_000_000 }
    }
    /// Sleeps until the clock reads this instant or later, whatever signals come.
    pub fn sleep(self) {
        let at = self.as_timespec();
        // An absolute sleep that a signal interrupts is simply begun again.
        while rustix::thread::clock_nanosleep_absolute(ClockId::Monotonic, &at)
            == Err(rustix::io::Errno::INTR)
        {}
    }
}
impl std::ops::Add<Span> for MonoTime {
    type Output = Self;
    fn add(self, span: Span) -> Self {
        Self(self.0 + span.as_ns())
    }
}
impl std::ops::Sub for MonoTime {
    type Output = Span;
    fn sub(self, other: Self) -> Span {
        Span::from_ns(self.0 - other.0)
    }
}

/// The network clock of an emulated node in real time: the machine's clock from a common start,
/// with the node's declared error.
#[derive(Clone, Copy, Debug)]
pub struct EmulatedClock {
    /// The machine's time at the network's epoch.
    pub start: MonoTime,
    /// The node's clock error.
    pub error: ClockError,
}

impl EmulatedClock {
    /// True network time now.
    pub fn network(&self) -> NetTime {
        NetTime::ZERO + (MonoTime::now() - self.start)
    }
    /// When, on the machine's clock, the node's clock reads `reading` from now on; of a reading
    /// that is past, when it was by the clock as it is now.
    pub fn when(&self, reading: SyncedTime) -> MonoTime {
        self.at(self.error.when_near(self.network(), reading))
    }
    /// When, on the machine's clock, it is `network`.
    pub fn at(&self, network: NetTime) -> MonoTime {
        self.start + (network - NetTime::ZERO)
    }
}

/// The reading nearest to `reading` that is not further than a second beyond the run on either
/// side: what a program asks for may be anything, and arithmetic on it must not overflow.
pub fn clamp_to_run(reading: SyncedTime, clock: &ClockError, stop: NetTime) -> SyncedTime {
    let beyond = Span::from_s(1) + clock.step.by.abs();
    let clock = clock.unstepped();
    reading.clamp(clock.read(NetTime::ZERO) - beyond, clock.read(stop) + beyond)
}

thread_local! {
    static EXACT: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Asks the kernel to wake this thread as exactly as it can; only the first call of a thread does.
/// Real-time: no system call from the second call on.
pub fn want_exact_timers() {
    if EXACT.get() {
        return;
    }
    EXACT.set(true);
    let one = std::num::NonZeroU64::MIN;
    // The slack only makes sleeps longer; a kernel that refuses leaves them at 50 µs.
    let _ = rustix::thread::set_current_timer_slack(Some(one));
}

/// A relative timeout for poll-like calls; `None` when it is negative.
pub fn timeout(span: Span) -> Option<Timespec> {
    let ns = span.as_ns();
    let time = Timespec { tv_sec: ns / 1_000_000_000, tv_nsec: ns % 1_000_000_000 };
    (ns >= 0).then_some(time)
}

/// Sleeps for about `span`; only for the control plane's waiting loops.
pub fn pause(span: Span) {
    if let Some(time) = timeout(span) {
        // Cut short by a signal is as good: the loop around it looks again.
        let _: NanosleepRelativeResult = rustix::thread::nanosleep(&time);
    }
}
