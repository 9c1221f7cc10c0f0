//! Record files of messages: what `onbeat record` writes and `onbeat replay` reads. A file is
//! pcapng, so Wireshark opens it: one interface per channel, named as the channel; one packet per
//! message, with the frame that carried it, and its capture time in nanoseconds since the start of
//! the run as time stamp. The option `epb_dropcount` counts the messages lost before it.
//!
//! A message that is longer than a frame has a packet for each fragment, a nanosecond apart as the
//! frames are. Their interface's description (`if_description`) says how many octets a message has.
//!
//! A frame is made again from what its reader was given: without the trailer of a channel with
//! integrity, and without the tag of a replicated channel. Both are the network's.

mod read;
mod write;

pub use read::{DamagedRecord, MessageReader, RecordedChannel, RecordedMessage};
pub use write::MessageWriter;

/// The most channels of a file.
pub const CHANNELS_MAX: usize = 256;
/// The most octets of a block: a frame of 1,518 octets with its options needs few more.
const BLOCK_OCTETS: usize = 1 << 16;
/// Before and after the number of octets in the description of a channel in fragments.
const DESCRIPTION: [&str; 2] = ["messages of ", " octets in fragments"];
/// Time stamps are in 10⁻⁹ s (the interface option `if_tsresol`).
const NANOSECONDS: u8 = 9;

#[cfg(test)]
mod tests;
