//! What the engine keeps of a frame.

use crate::payload::PayloadId;
use onbeat_model::time::NetTime;

/// A frame in a queue, in a stack or on a link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    /// When its program or source released it, in true time.
    pub(crate) released: NetTime,
    /// Where it is on its way, and whose it is.
    pub(crate) hop: u32,
    /// Its octets, if somebody reads them.
    pub(crate) payload: PayloadId,
    /// Its number among the frames of its flow, from 0, modulo 2³².
    pub(crate) sequence: u32,
    /// Destination address to FCS.
    pub(crate) octets: u16,
}

/// What one queued frame takes of memory, in octets, without its payload.
pub const QUEUED_FRAME_SIZE: usize = size_of::<Frame>();
const _: () = assert!(QUEUED_FRAME_SIZE <= 24, "a deep queue should stay in the cache");
