//! First in, first out, each item with the time at which it leaves.

use onbeat_model::time::NetTime;
use std::collections::VecDeque;

/// A delay line: items leave in the order in which they came, none before an earlier one. Only its
/// head has an event in the heap.
#[derive(Debug)]
pub(crate) struct DelayLine<T> {
    items: VecDeque<(NetTime, T)>,
    last: NetTime,
}

impl<T> DelayLine<T> {
    pub(crate) const fn new() -> Self {
        Self { items: VecDeque::new(), last: NetTime::ZERO }
    }

    /// Adds an item that leaves at `at`, or with the one before if that leaves later. Returns when
    /// it leaves, and whether it is the head, whose event the caller must now schedule.
    pub(crate) fn push(&mut self, at: NetTime, item: T) -> (NetTime, bool) {
        let head = self.items.is_empty();
        self.pass(at);
        self.items.push_back((self.last, item));
        (self.last, head)
    }

    /// Whether nothing is in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// How many items are in it.
    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    /// When an item that would leave at `at` does leave.
    pub(crate) fn leaves(&self, at: NetTime) -> NetTime {
        self.last.max(at)
    }

    /// Something that needs no place in it leaves at `at`, and nothing after it leaves earlier.
    pub(crate) fn pass(&mut self, at: NetTime) {
        self.last = self.leaves(at);
    }

    /// Takes the head, whose event has come, and the time of the new head, whose event the caller
    /// must now schedule.
    ///
    /// # Panics
    /// When the lane is empty.
    pub(crate) fn pop(&mut self) -> (T, Option<NetTime>) {
        let (_, item) = self.items.pop_front().expect("a lane whose event has come");
        (item, self.items.front().map(|head| head.0))
    }
}
