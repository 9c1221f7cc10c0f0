//! How much work goes into bounds. It is counted, not timed: the same system has the same bounds
//! on every machine.

use std::cell::Cell;

/// How much work goes into the programs of a network, in steps of their solver: a second or so.
/// What is not solved then is left to the other methods.
const WORK_MAX: u64 = 250_000_000;

/// Work that may still be done, and whether some was not done for want of it.
pub(crate) struct Work {
    left: Cell<u64>,
    short: Cell<bool>,
}

impl Default for Work {
    fn default() -> Self {
        Self::new(WORK_MAX)
    }
}

impl Work {
    pub(crate) fn new(left: u64) -> Self {
        Self { left: Cell::new(left), short: Cell::new(false) }
    }

    /// Whether there is so much left, which is then taken.
    pub(crate) fn take(&self, steps: u64) -> bool {
        let left = self.left.get().checked_sub(steps);
        match left {
            Some(left) => self.left.set(left),
            None => self.short.set(true),
        }
        left.is_some()
    }

    /// Whether there is so much left.
    pub(crate) fn allows(&self, steps: u64) -> bool {
        let allows = steps <= self.left.get();
        self.short.set(self.short.get() || !allows);
        allows
    }

    pub(crate) fn left(&self) -> u64 {
        self.left.get()
    }

    /// Whether anything was not done for want of work.
    pub(crate) fn is_short(&self) -> bool {
        self.short.get()
    }
}

/// What a program of so many variables takes.
pub(crate) fn cube(size: usize) -> u64 {
    (size as u64).saturating_pow(3)
}
