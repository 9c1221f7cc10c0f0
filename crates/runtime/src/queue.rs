//! The receive queue of a channel end: one rule for every engine.
//!
//! A queue holds [`CAPACITY`] messages. When one more comes, the oldest is dropped: so a reader
//! that was away finds the newest value, in `read_latest` as well as by reading on. What was
//! dropped is lost: the reader finds a gap, and whoever keeps the queue counts it.

use std::collections::VecDeque;

/// How many messages wait for their reader before the oldest is dropped.
pub const CAPACITY: usize = 1_024;

/// Messages that wait for their reader, oldest first.
#[derive(Clone, Debug)]
pub struct ReceiveQueue<T> {
    waiting: VecDeque<T>,
}

impl<T> Default for ReceiveQueue<T> {
    fn default() -> Self {
        Self { waiting: VecDeque::new() }
    }
}

impl<T> ReceiveQueue<T> {
    /// Adds a message. When the queue was full: the oldest one, which is lost.
    #[must_use = "what is dropped must be counted"]
    pub fn push(&mut self, message: T) -> Option<T> {
        let dropped = if self.waiting.len() >= CAPACITY { self.waiting.pop_front() } else { None };
        self.waiting.push_back(message);
        dropped
    }

    /// Takes the oldest message.
    pub fn pop(&mut self) -> Option<T> {
        self.waiting.pop_front()
    }

    /// Those that wait, the oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.waiting.iter()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_queue_drops_the_oldest_and_keeps_the_order() {
        let mut queue = ReceiveQueue::default();
        let more = 3;
        let dropped: Vec<_> = (0..CAPACITY + more).filter_map(|n| queue.push(n)).collect();
        assert_eq!(dropped, (0..more).collect::<Vec<_>>());
        let left: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
        assert_eq!(left, (more..CAPACITY + more).collect::<Vec<_>>());
        assert!(queue.is_empty());
    }
}
