//! Benchmarks of synchronised time, five tests (Pérez et al. 2024, section 4): what reading a clock
//! costs, how late a thread wakes up, how far apart two nodes act at one instant; the load under
//! which they are repeated, and what holds the machine as it is meanwhile. Here is only what
//! touches the machine; figures, tables and pages are made elsewhere.

mod facts;
mod gpio;
mod hold;
mod isolated;
mod node;
mod overhead;
mod scenario;
mod tools;
mod wake;

pub use facts::Facts;
pub use gpio::{GpioLine, GpioOutput, NoLine};
pub use hold::{CpuLatencyHeld, lock_memory};
pub use isolated::{Entered, Isolated};
pub use node::{NodeClock, NodeSample, NodeTask, decode, encode, first_instant, wake_node};
pub use overhead::{clock_overhead, cross_overhead};
pub use scenario::{Isolation, Mode, Role, Unmet, clock_unmet, unmet};
pub use tools::{CyclicTest, Load, cyclictest, missing_tool, stress_ng};
pub use wake::{Wakes, wake, wake_on_all};

use onbeat_run::machine::CpuList;
use rustix::thread::CpuSet;
use std::io;

/// A clock that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// The local clock, LC: CLOCK_MONOTONIC.
    Local,
    /// The global clock, GC: CLOCK_REALTIME, which phc2sys makes follow network time.
    Global,
    /// CLOCK_TAI, which etf and taprio use; equal to CLOCK_REALTIME until somebody sets the offset.
    Tai,
}

impl Clock {
    /// Its number in system calls.
    const fn number(self) -> libc::clockid_t {
        match self {
            Self::Local => libc::CLOCK_MONOTONIC,
            Self::Global => libc::CLOCK_REALTIME,
            Self::Tai => libc::CLOCK_TAI,
        }
    }

    /// Its name in series: `lc`, `gc`, `tai`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Local => "lc",
            Self::Global => "gc",
            Self::Tai => "tai",
        }
    }

    /// What it reads, in nanoseconds. Real-time: bounded, no system call where the kernel offers a
    /// vDSO and the clock source allows it.
    pub fn now_ns(self) -> i64 {
        ns(read(self.number()))
    }

    /// Sleeps until it reads `at` or later, or a signal comes; then it is looked again.
    fn sleep_until(self, at: i64) {
        let at = at.max(0);
        let at = libc::timespec { tv_sec: at / 1_000_000_000, tv_nsec: at % 1_000_000_000 };
        // SAFETY: `at` is a valid time, and of an absolute sleep nothing is written back.
        unsafe {
            libc::clock_nanosleep(self.number(), libc::TIMER_ABSTIME, &at, std::ptr::null_mut())
        };
    }
}

/// What the clock of that number, one of [`Clock::number`], reads, as the system says it.
#[inline(always)]
fn read(number: libc::clockid_t) -> libc::timespec {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a valid place for the answer. The three clocks exist on every kernel that
    // Onbeat runs on (CLOCK_TAI since 3.10), so the call does not fail.
    unsafe { libc::clock_gettime(number, &mut now) };
    now
}

fn ns(time: libc::timespec) -> i64 {
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// Where and how urgently a measuring thread runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuPlacement {
    /// The processor.
    pub cpu: u16,
    /// SCHED_FIFO priority, 1 to 99; 0: as every other thread.
    pub priority: u8,
}

impl CpuPlacement {
    /// Puts the calling thread there.
    ///
    /// # Errors
    /// What the system says: there is no such processor for it, or the priority is not allowed.
    pub fn take(self) -> io::Result<()> {
        let mut set = CpuSet::new();
        if usize::from(self.cpu) >= CpuSet::MAX_CPU {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        set.set(usize::from(self.cpu));
        rustix::thread::sched_setaffinity(None, &set)?;
        if self.priority == 0 {
            return Ok(());
        }
        let parameters = libc::sched_param { sched_priority: i32::from(self.priority) };
        // SAFETY: the parameters are valid for the call; zero means the calling thread.
        match unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameters) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Does `work` on a thread of its own at this place.
    ///
    /// # Errors
    /// When the thread cannot be made or put there; then nothing was done.
    pub fn run<T: Send>(self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name("measure".into());
            let done = thread.spawn_scoped(scope, || self.take().map(|()| work()))?;
            done.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }
}

/// The processors that this process may use.
///
/// # Errors
/// What the system says.
pub fn allowed_cpus() -> io::Result<CpuList> {
    let set = rustix::thread::sched_getaffinity(None)?;
    let most = u16::try_from(CpuSet::MAX_CPU).unwrap_or(u16::MAX);
    Ok(CpuList((0..most).filter(|cpu| set.is_set(usize::from(*cpu))).collect()))
}

/// Which processor is measured on by default: an isolated one, else the last one, which has
/// the least to do on most machines.
pub fn default_cpu(allowed: &CpuList, isolated: &CpuList) -> Option<u16> {
    allowed.and(isolated).0.first().or(allowed.0.last()).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_isolated_processor_is_preferred_and_the_last_one_otherwise() {
        let list = |text: &str| text.parse::<CpuList>().unwrap();
        assert_eq!(default_cpu(&list("0-3"), &list("2-3")), Some(2));
        assert_eq!(default_cpu(&list("0-3"), &list("")), Some(3));
        assert_eq!(default_cpu(&list("0-1"), &list("2-3")), Some(1));
        assert_eq!(default_cpu(&list(""), &list("2")), None);
    }

    #[test]
    fn work_is_done_on_the_processor_that_was_asked_for() {
        let cpu = *allowed_cpus().unwrap().0.last().unwrap();
        let place = CpuPlacement { cpu, priority: 0 };
        assert_eq!(place.run(rustix::thread::sched_getcpu).unwrap(), usize::from(cpu));
        let nowhere = CpuPlacement { cpu: 1023, priority: 0 };
        assert!(nowhere.run(|| ()).is_err());
    }
}
