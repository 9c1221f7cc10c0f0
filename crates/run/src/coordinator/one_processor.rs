//! In virtual time one thread of the run executes at a time. On one processor a hand-over is two
//! switches of the kernel; across processors it wakes a sleeping one, which takes several times as
//! long. So coordinator and programs stay on one, and change it together when others use it, too.

use onbeat::clock::MonoTime;
use onbeat_model::time::Span;
use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

/// A hand-over does not take that long: the program computes, or somebody else has the processor.
const LONG: Span = Span::from_us(300);
/// How often it is decided whether to stay.
const LEAST_WINDOW: Span = Span::from_ms(20);
/// The same where changing did not help.
const MOST_WINDOW: Span = Span::from_s(1);

/// The processor that a run's threads take turns on.
#[derive(Debug)]
pub(super) struct OneProcessor {
    /// Where the coordinator may be, before and after.
    before: Option<CpuSet>,
    at: Option<usize>,
    window: Span,
    since: MonoTime,
    /// Long waits since then.
    waited: Span,
}

impl OneProcessor {
    /// Any processor.
    pub(super) fn any() -> Self {
        let (since, waited) = (MonoTime::now(), Span::ZERO);
        Self { before: None, at: None, window: LEAST_WINDOW, since, waited }
    }

    /// The one that the calling thread, the coordinator's, is on now. It stays there.
    pub(super) fn stay(&mut self) {
        // Who may not ask is slower, no more.
        let Ok(before) = sched_getaffinity(None) else { return };
        if before.count() > 1 {
            self.before = Some(before);
            self.go_to(sched_getcpu());
        }
    }

    fn go_to(&mut self, at: usize) {
        let mut one = CpuSet::new();
        if at < CpuSet::MAX_CPU {
            one.set(at);
        }
        match sched_setaffinity(None, &one) {
            Ok(()) => self.at = Some(at),
            // It may be there no more.
            Err(_) => self.leave(),
        }
    }

    /// Where programs are to continue.
    pub(super) fn number(&self) -> Option<usize> {
        self.at
    }

    /// The coordinator has waited for a program. Where this takes long too often, another
    /// processor may be free.
    pub(super) fn waited(&mut self, from: MonoTime, to: MonoTime) {
        let Some(at) = self.at else { return };
        if to - from > LONG {
            self.waited += to - from;
        }
        let past = to - self.since;
        if past < self.window {
            return;
        }
        let is_crowded = self.waited * 4 > past;
        self.window = if is_crowded { (self.window * 2).min(MOST_WINDOW) } else { LEAST_WINDOW };
        (self.since, self.waited) = (to, Span::ZERO);
        // Two runs in each other's way must not change in step: a coin decides.
        if is_crowded && to.as_ns() & 1 << 6 != 0 {
            self.go_to(self.next(at));
        }
    }

    /// The next one that the coordinator may be on.
    fn next(&self, at: usize) -> usize {
        let Some(before) = self.before else { return at };
        let may = |other: &usize| before.is_set(*other);
        (at + 1..CpuSet::MAX_CPU).chain(0..at).find(may).unwrap_or(at)
    }

    /// All may be where they were before.
    pub(super) fn leave(&mut self) {
        if let Some(before) = self.before.take() {
            // It was so before.
            let _ = sched_setaffinity(None, &before);
        }
        self.at = None;
    }
}

impl Drop for OneProcessor {
    fn drop(&mut self) {
        self.leave();
    }
}
