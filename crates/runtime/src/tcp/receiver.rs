//! The end that receives: puts octets in order and acknowledges them.

use super::{MSS, TcpSegment};
use onbeat_model::time::{NetTime, Span};
use std::collections::BTreeMap;

/// What it takes beyond the octets that are in order; it reads at once, so this stays the same.
pub const WINDOW: u16 = u16::MAX;
/// How long an acknowledgement is delayed at most (Linux `TCP_DELACK_MIN`, `TCP_ATO_MIN`; RFC 9293
/// 3.8.6.3 allows 500 ms).
pub const DELAYED_ACK: Span = Span::from_ms(40);
/// Segments that are acknowledged at once when a connection begins, and after anything out of order
/// (Linux `TCP_MAX_QUICKACKS`).
pub const QUICK_ACKS: u32 = 16;
/// Segments that came too early and are kept; further ones are dropped.
const EARLY_MAX: usize = 64;
/// What counts as a full segment before a longer one has come (Linux `TCP_MSS_DEFAULT`, from which
/// `tcp_measure_rcv_mss` starts).
const FULL_AT_FIRST: u64 = 536;

/// When data that come in order are acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acknowledge {
    /// With each segment: as Linux does when a program has read all that there is and does not
    /// answer on the connection (`tcp_cleanup_rbuf`), or with TCP_QUICKACK.
    AtOnce,
    /// As Linux does on a connection on which its program answers (`tcp_send_delayed_ack`): the
    /// first [`QUICK_ACKS`] segments at once, then when more than one full segment is not
    /// acknowledged (RFC 9293 3.8.6.3), at the latest after [`DELAYED_ACK`], which stays as it is.
    Delayed,
}

/// The receiving end of a connection.
#[derive(Debug)]
pub struct Receiver {
    acknowledge: Acknowledge,
    initial: u32,
    /// The octet that is expected, counted from the first one.
    next: u64,
    /// Up to where it is acknowledged.
    acknowledged: u64,
    /// What came too early, by where it starts.
    early: BTreeMap<u64, Vec<u8>>,
    quick: u32,
    full: u64,
    timer: Option<NetTime>,
}

impl Receiver {
    /// The end of a connection whose first octet has the number `initial`.
    pub fn new(acknowledge: Acknowledge, initial: u32) -> Self {
        Self {
            acknowledge,
            initial,
            next: 0,
            acknowledged: 0,
            early: BTreeMap::new(),
            quick: QUICK_ACKS,
            full: FULL_AT_FIRST,
            timer: None,
        }
    }

    /// Takes a segment; what is in order with it goes to `read`, and acknowledgements that are due
    /// to `out`. Total: a segment may be any. Keeps a bounded number of
    /// segments.
    pub fn receive(
        &mut self,
        now: NetTime,
        segment: &TcpSegment,
        read: &mut Vec<u8>,
        out: &mut Vec<TcpSegment>,
    ) {
        if segment.data.is_empty() {
            return;
        }
        let expected = self.initial.wrapping_add(self.next as u32);
        // Numbers are modulo 2³²: the nearest octet of that number is meant.
        let ahead = i64::from(segment.sequence.wrapping_sub(expected) as i32);
        let start = self.next as i64 + ahead;
        let end = start + segment.data.len() as i64;
        let next = self.next as i64;
        if end <= next || start < 0 || end > next + i64::from(WINDOW) {
            self.quick = QUICK_ACKS;
            return self.acknowledge(out);
        }
        self.full = self.full.max(segment.data.len().min(MSS) as u64);
        if start > next {
            let is_known = self.early.contains_key(&(start as u64));
            if is_known || self.early.len() < EARLY_MAX {
                let kept = self.early.entry(start as u64).or_default();
                if kept.len() < segment.data.len() {
                    kept.clone_from(&segment.data);
                }
            }
            self.quick = QUICK_ACKS;
            return self.acknowledge(out);
        }
        let has_gap = !self.early.is_empty();
        self.take(&segment.data[(next - start) as usize..], read);
        while let Some(entry) = self.early.first_entry().filter(|entry| *entry.key() <= self.next) {
            let (start, data) = entry.remove_entry();
            let known = (self.next - start) as usize;
            self.take(data.get(known..).unwrap_or_default(), read);
        }
        if has_gap || self.is_due_at_once() {
            return self.acknowledge(out);
        }
        self.timer.get_or_insert(now + DELAYED_ACK);
    }

    fn take(&mut self, data: &[u8], read: &mut Vec<u8>) {
        read.extend_from_slice(data);
        self.next += data.len() as u64;
    }

    fn is_due_at_once(&mut self) -> bool {
        if self.acknowledge == Acknowledge::AtOnce {
            return true;
        }
        if self.quick > 0 {
            self.quick -= 1;
            return true;
        }
        self.next - self.acknowledged > self.full
    }

    fn acknowledge(&mut self, out: &mut Vec<TcpSegment>) {
        self.timer = None;
        self.acknowledged = self.next;
        out.push(TcpSegment {
            sequence: 0,
            acknowledgement: self.initial.wrapping_add(self.next as u32),
            window: WINDOW,
            push: false,
            data: Vec::new(),
        });
    }

    /// Acknowledges if the delay of an acknowledgement is over.
    pub fn timeout(&mut self, now: NetTime, out: &mut Vec<TcpSegment>) {
        if self.timer.is_some_and(|at| at <= now) {
            self.acknowledge(out);
        }
    }

    /// When it wants [`Receiver::timeout`], if ever.
    pub fn next(&self) -> Option<NetTime> {
        self.timer
    }
}
