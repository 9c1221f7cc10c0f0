//! The network clock of a host: what it reads, and how to sleep until it reads something.

use crate::clock::{EmulatedClock, MonoTime};
use onbeat_model::time::{ClockError, LocalTime, NetTime, Span};
use rustix::time::ClockId;

/// A host's copy of the network clock.
#[derive(Clone, Debug)]
pub enum NetworkClock {
    /// The machine's clock from a common start: hosts that are emulated on one machine.
    Emulated(EmulatedClock),
    /// CLOCK_TAI, which phc2sys or the like keeps on network time.
    Tai {
        /// Network time, in nanoseconds, that programs call zero.
        epoch: i64,
    },
}

const NS_PER_S: i64 = 1_000_000_000;

fn realtime() -> i64 {
    let now = rustix::time::clock_gettime(ClockId::Realtime);
    now.tv_sec * NS_PER_S + now.tv_nsec
}

/// What CLOCK_TAI reads, in nanoseconds since 1970.
fn tai() -> i64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a valid place for the answer; every kernel has this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_TAI, &raw mut now) };
    now.tv_sec * NS_PER_S + now.tv_nsec
}

/// Sleeps until CLOCK_TAI reads `ns` or later, or a signal comes: a reason to look whether the
/// sleep is still wanted.
fn sleep_until_tai(ns: i64) {
    let at = libc::timespec { tv_sec: ns / NS_PER_S, tv_nsec: ns % NS_PER_S };
    let absolute = libc::TIMER_ABSTIME;
    // SAFETY: `at` is valid for reading; an absolute sleep has no remainder to write.
    unsafe {
        libc::clock_nanosleep(libc::CLOCK_TAI, absolute, &raw const at, std::ptr::null_mut())
    };
}

impl NetworkClock {
    /// The clock of a host whose copy has this error; only an emulation knows errors.
    pub(crate) fn with_error(&self, error: ClockError) -> Self {
        match self {
            Self::Emulated(clock) => Self::Emulated(EmulatedClock { error, ..*clock }),
            Self::Tai { epoch } => Self::Tai { epoch: *epoch },
        }
    }

    /// What it reads now. Real-time: bounded; no system call where the kernel offers a vDSO.
    pub fn now(&self) -> LocalTime {
        match self {
            Self::Emulated(clock) => clock.error.read(clock.network()),
            Self::Tai { epoch } => LocalTime::from_ns(tai() - epoch),
        }
    }

    /// True network time at a reading; only an emulation knows it.
    pub fn network(&self, reading: LocalTime) -> Option<NetTime> {
        match self {
            Self::Emulated(clock) => Some(clock.error.when(reading)),
            Self::Tai { .. } => None,
        }
    }

    /// Sleeps until it reads `target` or later, or a signal comes. Real-time: blocks.
    pub fn sleep_until(&self, target: LocalTime) {
        match self {
            Self::Emulated(clock) => clock.when(target).sleep(),
            Self::Tai { epoch } => sleep_until_tai(target.as_ns().saturating_add(*epoch).max(0)),
        }
    }

    /// Whether it is not known to be synchronised.
    pub fn is_uncertain(&self) -> bool {
        match self {
            // The emulated network's clocks are as good as the description says they are.
            Self::Emulated(_) => false,
            Self::Tai { .. } => true,
        }
    }

    /// What it read when CLOCK_REALTIME read `ns`.
    pub fn at_realtime(&self, ns: i64) -> LocalTime {
        let ago = realtime() - ns;
        self.now() - Span::from_ns(ago)
    }

    /// What it read when the interface's own clock read `ns`.
    pub fn at_hardware(&self, ns: i64) -> LocalTime {
        match self {
            // That clock and CLOCK_TAI are kept together by phc2sys.
            Self::Tai { epoch } => LocalTime::from_ns(ns - epoch),
            Self::Emulated(_) => self.now(),
        }
    }

    /// What CLOCK_TAI reads, in nanoseconds, when this clock reads `reading`.
    pub fn tai(&self, reading: LocalTime) -> i64 {
        match self {
            Self::Tai { epoch } => reading.as_ns().saturating_add(*epoch),
            Self::Emulated(clock) => {
                let ahead = clock.when(reading) - MonoTime::now();
                tai().saturating_add(ahead.as_ns())
            }
        }
    }
}
