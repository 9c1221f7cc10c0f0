//! The end that sends: cuts what is written into segments, and sends again what is lost.

use super::estimator::RtoEstimator;
use super::receiver::WINDOW;
use super::{MSS, TcpSegment};
use onbeat_model::time::NetTime;
use std::collections::VecDeque;

/// The congestion window of a new connection, in octets (RFC 6928: 10 segments).
pub const INITIAL_WINDOW: u64 = 10 * MSS as u64;
/// Times that the timer expires without progress before the connection counts as failed (Linux
/// `tcp_retries2`).
pub const RETRIES_MAX: u32 = 15;
/// Octets that may be written and not acknowledged (Linux `tcp_wmem`, 4 MiB at most).
pub const SEND_BUFFER: usize = 4 << 20;
/// Duplicate acknowledgements that mean a loss (RFC 5681 3.2).
const DUPLICATES: u32 = 3;

/// What a sender has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Segments that it sent, each time.
    pub segments: u64,
    /// Of these, those with octets that it had sent before.
    pub retransmitted: u64,
    /// Times that its retransmission timer expired.
    pub timeouts: u64,
    /// Times that duplicate acknowledgements made it send again.
    pub fast_retransmits: u64,
}

/// The sending end of a connection. Octets are counted from the first one.
#[derive(Debug)]
pub struct Sender {
    nagle: bool,
    initial: u32,
    /// The first octet that is not acknowledged (SND.UNA).
    acknowledged: u64,
    /// The next one to send (SND.NXT).
    next: u64,
    /// Behind the last one that was ever sent.
    highest: u64,
    /// What is written and not acknowledged.
    buffer: VecDeque<u8>,
    /// Behind the last short segment.
    short: u64,
    /// What the other end takes.
    window: u64,
    congestion: u64,
    /// Slow start is below it.
    threshold: u64,
    duplicates: u32,
    /// Up to where all must be acknowledged before the next recovery (RFC 6582).
    recover: u64,
    recovers: bool,
    flight: VecDeque<Sent>,
    estimator: RtoEstimator,
    timer: Option<NetTime>,
    retries: u32,
    failed: bool,
    counts: Counts,
}

/// A segment in flight.
#[derive(Clone, Copy, Debug)]
struct Sent {
    start: u64,
    end: u64,
    at: NetTime,
    again: bool,
}

impl Sender {
    /// The end of a connection whose first octet has the number `initial`.
    pub fn new(nagle: bool, initial: u32) -> Self {
        Self {
            nagle,
            initial,
            acknowledged: 0,
            next: 0,
            highest: 0,
            buffer: VecDeque::new(),
            short: 0,
            window: WINDOW.into(),
            congestion: INITIAL_WINDOW,
            threshold: u64::MAX,
            duplicates: 0,
            recover: 0,
            recovers: false,
            flight: VecDeque::new(),
            estimator: RtoEstimator::default(),
            timer: None,
            retries: 0,
            failed: false,
            counts: Counts::default(),
        }
    }

    /// How many octets may be written now; none when the connection has failed.
    pub fn room(&self) -> usize {
        if self.failed { 0 } else { SEND_BUFFER.saturating_sub(self.buffer.len()) }
    }

    /// Writes octets and sends what may be sent. What [`Sender::room`] has no place for is cut off.
    pub fn write(&mut self, now: NetTime, octets: &[u8], out: &mut Vec<TcpSegment>) {
        let octets = &octets[..octets.len().min(self.room())];
        self.buffer.extend(octets);
        self.transmit(now, out);
    }

    /// Takes an acknowledgement and sends what may be sent then. Total: it may be any.
    pub fn acknowledge(&mut self, now: NetTime, segment: &TcpSegment, out: &mut Vec<TcpSegment>) {
        let expected = self.initial.wrapping_add(self.acknowledged as u32);
        let more = u64::from(segment.acknowledgement.wrapping_sub(expected));
        if self.failed || more > self.in_flight() {
            return;
        }
        let same_window = self.window == u64::from(segment.window);
        self.window = segment.window.into();
        if more > 0 {
            self.advance(now, more, out);
        } else if self.in_flight() > 0 && same_window && segment.data.is_empty() {
            self.duplicate(now, out);
        }
        self.transmit(now, out);
    }

    /// What was sent and is not acknowledged (FlightSize of RFC 5681).
    fn in_flight(&self) -> u64 {
        self.highest - self.acknowledged
    }

    /// New octets are acknowledged.
    fn advance(&mut self, now: NetTime, more: u64, out: &mut Vec<TcpSegment>) {
        // Before the acknowledgement there was no room for another segment.
        let limited = self.next - self.acknowledged + MSS as u64 > self.congestion;
        self.acknowledged += more;
        self.next = self.next.max(self.acknowledged);
        self.buffer.drain(..more as usize);
        self.retries = 0;
        let mut oldest = None;
        let mut again = false;
        while let Some(sent) = self.flight.pop_front_if(|sent| sent.end <= self.acknowledged) {
            oldest = oldest.or(Some(sent.at));
            again |= sent.again;
        }
        if let Some(at) = oldest.filter(|_| !again) {
            self.estimator.sample(now - at);
        }
        let pending = self.in_flight() > 0;
        self.timer = pending.then(|| now + self.estimator.rto());
        if !self.recovers {
            self.duplicates = 0;
            if limited {
                self.grow(more);
            }
        } else if self.acknowledged >= self.recover {
            self.recovers = false;
            self.duplicates = 0;
            self.congestion = self.threshold;
        } else {
            // RFC 6582 3.2, step 3: a partial acknowledgement.
            let back = if more >= MSS as u64 { MSS as u64 } else { 0 };
            self.congestion = (self.congestion.saturating_sub(more) + back).max(MSS as u64);
            self.send_first_again(now, out);
        }
    }

    /// RFC 5681 3.1: slow start, then congestion avoidance.
    fn grow(&mut self, more: u64) {
        let mss = MSS as u64;
        self.congestion += match self.congestion < self.threshold {
            true => more.min(mss),
            false => (mss * mss / self.congestion).max(1),
        };
    }

    fn duplicate(&mut self, now: NetTime, out: &mut Vec<TcpSegment>) {
        self.duplicates = self.duplicates.saturating_add(1);
        if self.recovers {
            self.congestion += MSS as u64;
        } else if self.duplicates == DUPLICATES && self.acknowledged >= self.recover {
            self.counts.fast_retransmits += 1;
            self.threshold = self.half_the_flight();
            self.congestion = self.threshold + u64::from(DUPLICATES) * MSS as u64;
            (self.recover, self.recovers) = (self.highest, true);
            self.send_first_again(now, out);
        }
    }

    fn half_the_flight(&self) -> u64 {
        (self.in_flight() / 2).max(2 * MSS as u64)
    }

    /// Sends the first segment again that is not acknowledged, whatever the window.
    fn send_first_again(&mut self, now: NetTime, out: &mut Vec<TcpSegment>) {
        let length = self.in_flight().min(MSS as u64) as usize;
        let next = self.next;
        self.next = self.acknowledged;
        self.send(now, length, out);
        self.next = self.next.max(next);
    }

    /// Sends all that may be sent.
    fn transmit(&mut self, now: NetTime, out: &mut Vec<TcpSegment>) {
        while !self.failed {
            let unsent = self.acknowledged + self.buffer.len() as u64 - self.next;
            let length = unsent.min(MSS as u64);
            let window = self.congestion.min(self.window);
            let room = window.saturating_sub(self.next - self.acknowledged);
            // Rather whole segments than silly windows (RFC 9293 3.8.6.2).
            let fits = length > 0 && length <= room;
            let is_new = self.next >= self.highest;
            let waits = self.nagle && is_new && self.short > self.acknowledged;
            if !fits || (waits && length < MSS as u64) {
                return;
            }
            self.send(now, length as usize, out);
        }
    }

    /// Sends so many octets from [`Sender::next`] on.
    fn send(&mut self, now: NetTime, length: usize, out: &mut Vec<TcpSegment>) {
        let first = (self.next - self.acknowledged) as usize;
        let data: Vec<_> = self.buffer.range(first..first + length).copied().collect();
        let (start, end) = (self.next, self.next + length as u64);
        self.counts.segments += 1;
        if start < self.highest {
            self.counts.retransmitted += 1;
            let overlaps = |sent: &&mut Sent| sent.start < end && sent.end > start;
            self.flight.iter_mut().filter(overlaps).for_each(|sent| sent.again = true);
        }
        if end > self.highest {
            let again = start < self.highest;
            self.flight.push_back(Sent { start: self.highest, end, at: now, again });
            self.highest = end;
        }
        if length < MSS {
            self.short = self.short.max(end);
        }
        self.next = end;
        self.timer.get_or_insert(now + self.estimator.rto());
        out.push(TcpSegment {
            sequence: self.initial.wrapping_add(start as u32),
            acknowledgement: 0,
            window: WINDOW,
            push: first + length == self.buffer.len(),
            data,
        });
    }

    /// Sends again if the retransmission timer has expired (RFC 6298 5.4 to 5.6).
    pub fn timeout(&mut self, now: NetTime, out: &mut Vec<TcpSegment>) {
        if self.timer.is_none_or(|at| at > now) {
            return;
        }
        self.timer = None;
        if self.retries >= RETRIES_MAX {
            self.failed = true;
            self.buffer.clear();
            return;
        }
        // What was sent again and is lost again is no new sign of congestion (RFC 5681 3.1).
        if self.retries == 0 {
            self.threshold = self.half_the_flight();
        }
        self.retries += 1;
        self.counts.timeouts += 1;
        self.congestion = MSS as u64;
        self.estimator.back_off();
        (self.recover, self.recovers, self.duplicates) = (self.highest, false, 0);
        self.next = self.acknowledged;
        self.transmit(now, out);
    }

    /// When it wants [`Sender::timeout`], if ever.
    pub fn next(&self) -> Option<NetTime> {
        self.timer
    }

    /// Whether it has given up: what is not acknowledged is lost.
    pub fn has_failed(&self) -> bool {
        self.failed
    }

    /// What it has done.
    pub fn counts(&self) -> Counts {
        self.counts
    }
}
