//! The transmitter: a countdown to the preamble, an octet counter, a gap counter.

use super::{SendBuffer, SentContent, SentFrame};
use onbeat_runtime::network_code::instruction::MessageId;
use onbeat_runtime::network_code::timing::{Cycles, Medium, SEND_START};

/// Octets of preamble and start delimiter.
const PREAMBLE: u32 = 8;
/// Octets of both addresses.
const ADDRESSES: u32 = 12;
const TAG: u32 = 4;
const ETHERTYPE: u32 = 2;
/// Flags, identifier and length.
const HEADER: u32 = 4;
const CHECK_SEQUENCE: u32 = 4;
/// Octets from the EtherType to the check sequence that a frame has at least.
const PAYLOAD_MIN: u32 = 46;
const GAP: u32 = 12;

#[derive(Clone, Debug)]
pub(super) struct Transmitter {
    medium: Medium,
    /// A frame whose preamble has not begun, and cycles until it does.
    ahead: Option<(u64, Frame)>,
    wire: Option<Wire>,
    /// Cycles of the gap that are left.
    gap: u64,
}

#[derive(Clone, Debug)]
struct Frame {
    content: SentContent,
    /// In words.
    length: u32,
}

/// A frame on the wire.
#[derive(Clone, Debug)]
struct Wire {
    frame: Frame,
    begun: u64,
    /// Octets that have left, and cycles that are left of the next one.
    octets: u32,
    left: u32,
}

impl Transmitter {
    pub(super) fn new(medium: Medium) -> Self {
        Self { medium, ahead: None, wire: None, gap: 0 }
    }

    /// Whether a frame is on the wire or will be, or the gap is not over.
    pub(super) fn is_busy(&self) -> bool {
        self.ahead.is_some() || self.wire.is_some() || self.gap > 0
    }

    /// Whether words of the send buffer are still to leave.
    pub(super) fn has_data(&self) -> bool {
        let ahead = self.ahead.as_ref().map(|(_, frame)| frame);
        let frames = [ahead, self.wire.as_ref().map(|wire| &wire.frame)];
        frames.iter().flatten().any(|frame| matches!(frame.content, SentContent::Data { .. }))
    }

    /// Whether a preamble may begin [`SEND_START`] from now.
    pub(super) fn may_send(&self) -> bool {
        self.ahead.is_none() && self.wire.is_none() && self.gap <= SEND_START.0
    }

    /// Whether the EtherType of the frame that was issued last has left.
    pub(super) fn has_sent_ethertype(&self) -> bool {
        let end = PREAMBLE + self.header();
        self.ahead.is_none() && self.wire.as_ref().is_some_and(|wire| wire.octets >= end)
    }

    pub(super) fn send_data(&mut self, message: MessageId, length: usize) {
        let words = Vec::with_capacity(length);
        let content = SentContent::Data { message, words };
        self.ahead = Some((SEND_START.0, Frame { content, length: length as u32 }));
    }

    pub(super) fn send_sync(&mut self, round: u32) {
        let content = SentContent::Sync { round };
        self.ahead = Some((SEND_START.0, Frame { content, length: 1 }));
    }

    fn header(&self) -> u32 {
        ADDRESSES + if self.medium.tagged { TAG } else { 0 } + ETHERTYPE
    }

    /// One cycle: a frame that has left by its beginning.
    pub(super) fn cycle(&mut self, now: u64, buffer: &SendBuffer) -> Option<SentFrame> {
        let sent = self.count_octets(buffer);
        if sent.is_none() {
            self.gap = self.gap.saturating_sub(1);
        }
        if let Some((left, _)) = &mut self.ahead {
            *left -= 1;
        }
        if let Some((_, frame)) = self.ahead.take_if(|(left, _)| *left == 0) {
            assert!(self.wire.is_none() && self.gap == 0, "a frame begins within another");
            let left = self.medium.octet_cycles;
            self.wire = Some(Wire { frame, begun: now, octets: 0, left });
        }
        sent
    }

    fn count_octets(&mut self, buffer: &SendBuffer) -> Option<SentFrame> {
        let words_at = PREAMBLE + self.header() + HEADER;
        let wire = self.wire.as_mut()?;
        wire.left -= 1;
        if wire.left > 0 {
            return None;
        }
        wire.left = self.medium.octet_cycles;
        wire.octets += 1;
        let length = wire.frame.length;
        if let SentContent::Data { words, .. } = &mut wire.frame.content {
            // A word is taken when its first octet begins.
            let next = words.len() as u32;
            if next < length && wire.octets == words_at + 4 * next {
                words.push(buffer.drain(words.len()));
            }
        }
        let payload = (HEADER + 4 * length).max(PAYLOAD_MIN);
        if wire.octets < words_at - HEADER + payload + CHECK_SEQUENCE {
            return None;
        }
        self.gap = u64::from(GAP) * u64::from(self.medium.octet_cycles);
        let Wire { frame, begun, .. } = self.wire.take()?;
        Some(SentFrame { at: Cycles(begun), content: frame.content })
    }

    /// In how many cycles from now on only counters count.
    pub(super) fn quiet_cycles(&self) -> u64 {
        let ahead = self.ahead.as_ref().map_or(u64::MAX, |(left, _)| left - 1);
        let wire = self.wire.as_ref().map_or(u64::MAX, |wire| u64::from(wire.left) - 1);
        ahead.min(wire)
    }

    pub(super) fn skip(&mut self, cycles: u64) {
        self.gap = self.gap.saturating_sub(cycles);
        if let Some((left, _)) = &mut self.ahead {
            *left -= cycles;
        }
        if let Some(wire) = &mut self.wire {
            // Not more than are left of the octet.
            wire.left -= cycles as u32;
        }
    }
}
