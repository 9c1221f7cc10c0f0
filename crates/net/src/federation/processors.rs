//! Processors that several federates share.

use onbeat_model::time::{NetTime, Span};
use std::cmp::Reverse;

/// The processors of a host. Those of the greatest rank execute, of equals who came first, and no
/// processor is idle while there is work.
#[derive(Debug)]
pub(super) struct Processors {
    cores: usize,
    now: NetTime,
    /// The greatest rank first.
    ready: Vec<Work>,
    /// Of the timer that still matters.
    pub(super) version: u64,
}

/// What a federate executes.
#[derive(Clone, Copy, Debug)]
struct Work {
    federate: usize,
    rank: u64,
    left: Span,
}

impl Processors {
    pub(super) fn new(cores: u16) -> Self {
        Self { cores: usize::from(cores.max(1)), now: NetTime::ZERO, ready: Vec::new(), version: 0 }
    }

    /// A federate has work.
    pub(super) fn start(&mut self, now: NetTime, federate: usize, rank: u64, left: Span) {
        self.pass(now);
        self.ready.push(Work { federate, rank, left });
        self.ready.sort_by_key(|work| Reverse(work.rank));
    }

    /// Lets time pass, of which the caller is told by [`Processors::next`].
    fn pass(&mut self, now: NetTime) {
        let passed = now - self.now;
        self.now = now;
        for work in self.ready.iter_mut().take(self.cores) {
            debug_assert!(work.left >= passed, "somebody looks when work is done");
            work.left = (work.left - passed).max(Span::ZERO);
        }
    }

    /// How long until some work is done.
    pub(super) fn next(&self) -> Option<Span> {
        self.ready.iter().take(self.cores).map(|work| work.left).min()
    }

    /// Those whose work is done now.
    pub(super) fn take_done(&mut self, now: NetTime) -> Vec<usize> {
        self.pass(now);
        let mut done = Vec::new();
        for at in (0..self.ready.len().min(self.cores)).rev() {
            if self.ready[at].left == Span::ZERO {
                done.push(self.ready.remove(at).federate);
            }
        }
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: i64) -> Span {
        Span::from_ms(ms)
    }

    #[test]
    fn the_greater_rank_executes_and_the_other_one_continues() {
        let mut processors = Processors::new(1);
        processors.start(NetTime::ZERO, 0, 1, ms(4));
        processors.start(NetTime::ZERO + ms(1), 1, 2, ms(2));
        assert_eq!(processors.next(), Some(ms(2)));
        assert_eq!(processors.take_done(NetTime::ZERO + ms(3)), [1]);
        assert_eq!(processors.next(), Some(ms(3)));
        assert_eq!(processors.take_done(NetTime::ZERO + ms(6)), [0]);
        assert_eq!(processors.next(), None);
    }

    #[test]
    fn no_processor_is_idle_while_there_is_work() {
        let mut processors = Processors::new(2);
        for (federate, length) in [(0, 5), (1, 2), (2, 3)] {
            processors.start(NetTime::ZERO, federate, 7, ms(length));
        }
        assert_eq!(processors.take_done(NetTime::ZERO + ms(2)), [1]);
        assert_eq!(processors.next(), Some(ms(3)));
        assert_eq!(processors.take_done(NetTime::ZERO + ms(5)), [2, 0]);
    }
}
