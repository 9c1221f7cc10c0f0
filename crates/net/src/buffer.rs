//! The memory that the queues of one node share.

use onbeat_model::system::{Node, NodeKind};

/// What is left of a node's memory for frames that wait at its ports.
#[derive(Debug)]
pub(crate) struct Buffer {
    /// In octets of frames, destination address to FCS. What is queued again needs no room, so it
    /// may be below 0.
    free: i64,
}

impl Buffer {
    /// The empty memory of a node; without a limit it never fills.
    pub(crate) fn new(node: &Node) -> Self {
        let limit = match &node.kind {
            NodeKind::Host(_) => None,
            NodeKind::Bridge(bridge) => bridge.shared_buffer,
        };
        Self { free: limit.map_or(i64::MAX, |limit| limit.get().into()) }
    }

    /// Whether a frame of so many octets has room.
    pub(crate) fn fits(&self, octets: u16) -> bool {
        i64::from(octets) <= self.free
    }

    /// A frame joins a queue.
    pub(crate) fn take(&mut self, octets: u16) {
        self.free -= i64::from(octets);
    }

    /// A frame has left its queue.
    pub(crate) fn release(&mut self, octets: u16) {
        self.free += i64::from(octets);
    }
}
