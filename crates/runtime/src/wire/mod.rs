//! What is on the wire, a layer in each file: its fields, a reader and a writer that are each
//! other's inverse, and a line to print. [`ethernet`], [`vlan`] and [`rtag`] are before everything;
//! [`avtp`] is the data unit of a channel, [`trailer`] what it is checked by, and [`frame`] all of
//! them together. gPTP's messages, which are right behind Ethernet, are in [`crate::gptp`].
//!
//! All parsing is total: any octets give a layer or a [`WireError`], never a panic.

pub mod avtp;
pub mod ethernet;
pub mod frame;
pub mod rtag;
pub mod trailer;
pub mod vlan;

pub use avtp::{ETHERTYPE_AVTP, Pdu, STREAM_HEADER, SUBTYPE_EF_STREAM};
pub use ethernet::{ADDRESSES, ETHERNET, Ethernet};
pub use frame::{
    Frame, HEADERS, Header, MAX_FRAME, MIN_FRAME, TAGGED, emit, emit_with, renew, unwrap,
};
pub use rtag::{ETHERTYPE_R_TAG, R_TAG, RTag};
pub use vlan::{ETHERTYPE_VLAN, TAG, Tag};

use std::ops::Range;

/// Why octets are not what they were read as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// Too short for the headers, or longer than a frame may be.
    #[error("the frame's length is not that of a channel's frame")]
    Size,
    /// Not IEEE 1722, or tagged where it may not be or not where it must be.
    #[error("the frame is not IEEE 1722")]
    EtherType,
    /// Another subtype, another version, or no valid stream id or timestamp.
    #[error("the stream header is not one of ours")]
    Header,
    /// `stream_data_length` is more than what follows it.
    #[error("the payload is shorter than its header says")]
    Length,
}

fn array<const N: usize>(octets: &[u8], at: Range<usize>) -> Result<[u8; N], WireError> {
    octets.get(at).and_then(|part| part.try_into().ok()).ok_or(WireError::Size)
}

fn u16_at(octets: &[u8], at: Range<usize>) -> Result<u16, WireError> {
    array(octets, at).map(u16::from_be_bytes)
}
