//! The one event heap.

use onbeat_model::time::NetTime;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// What happens. The order of the variants is the order of simultaneous events: first what
/// programs see, then frames that enter queues, last the choice of what each port sends, so that
/// every frame that is there at an instant takes part in the choice of that instant. The end of a
/// preemptable frame comes before all: it may be any of these at the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// A node fails; index: the node.
    Fail,
    /// The last octet of a preemptable frame is out; index: the port.
    Finish,
    /// A neighbour has the header of a frame of a protocol; index: the port that sends it.
    Header,
    /// A neighbour has a frame of a protocol; index: the port that sent it.
    Hear,
    /// A frame of a protocol has left; index: the port.
    Sent,
    /// A protocol's timer goes off; index: the participant.
    Timer,
    /// A frame leaves the stack of a listener's host; index: the channel end.
    Deliver,
    /// A program continues; index: its node.
    Wake,
    /// An alarm goes off; index: 0.
    Alarm,
    /// A stream or modelled channel releases a frame; index: the source.
    Source,
    /// A frame leaves the stack of a talker's host for the port; index: the channel or stream.
    Stack,
    /// A noise source queues a frame; index: the source.
    Noise,
    /// A protocol's frame is queued; index: the port.
    Emit,
    /// A bridge queues what it received from a port; index: the port that sent it.
    Arrive,
    /// A port chooses what to send; index: the port.
    Select,
}

const KINDS: [Kind; 15] = [
    Kind::Fail,
    Kind::Finish,
    Kind::Header,
    Kind::Hear,
    Kind::Sent,
    Kind::Timer,
    Kind::Deliver,
    Kind::Wake,
    Kind::Alarm,
    Kind::Source,
    Kind::Stack,
    Kind::Noise,
    Kind::Emit,
    Kind::Arrive,
    Kind::Select,
];

/// The most nodes, ports, channels with streams, receiving ends, sources or noise sources: 2²⁴.
pub(crate) const MAX_INDEX: usize = 1 << INDEX_BITS;
/// The most wakes and alarms of one run: 2³⁶, at 1 MHz enough for 19 hours.
const MAX_SEQUENCE: u64 = 1 << SEQUENCE_BITS;
const INDEX_BITS: u32 = 24;
const SEQUENCE_BITS: u32 = 36;

/// A pending event. Ordered by time, then by (kind, index, sequence), all in one number; the
/// sequence number counts wakes and alarms only, since of each other kind and index no more than
/// one is ever due at one instant (or equal ones, of which the first does the work).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Event(u128);

impl Event {
    fn new(at: NetTime, kind: Kind, index: u32, sequence: u64) -> Self {
        debug_assert!(at >= NetTime::ZERO, "time begins at the epoch");
        let key = u64::from(kind as u8) << (INDEX_BITS + SEQUENCE_BITS)
            | u64::from(index) << SEQUENCE_BITS
            | sequence;
        Self((at.as_ns() as u128) << 64 | u128::from(key))
    }
    pub(crate) fn at(self) -> NetTime {
        NetTime::from_ns((self.0 >> 64) as i64)
    }
    pub(crate) fn kind(self) -> Kind {
        KINDS[(self.0 as u64 >> (INDEX_BITS + SEQUENCE_BITS)) as usize]
    }
    pub(crate) fn index(self) -> u32 {
        (self.0 as u64 >> SEQUENCE_BITS) as u32 & (MAX_INDEX as u32 - 1)
    }
    fn sequence(self) -> u64 {
        self.0 as u64 & (MAX_SEQUENCE - 1)
    }
    fn is_timer(self) -> bool {
        matches!(self.kind(), Kind::Wake | Kind::Alarm)
    }
}

/// All pending events.
#[derive(Debug, Default)]
pub(crate) struct EventHeap {
    heap: BinaryHeap<Reverse<Event>>,
    sequence: u64,
    /// What the callers of pending wakes and alarms get back, by sequence number.
    tokens: BTreeMap<u64, u64>,
}

impl EventHeap {
    /// The time of the earliest event.
    pub(crate) fn next(&self) -> Option<NetTime> {
        self.heap.peek().map(|e| e.0.at())
    }

    /// Adds an event of the network.
    pub(crate) fn push(&mut self, at: NetTime, kind: Kind, index: u32) {
        self.heap.push(Reverse(Event::new(at, kind, index, 0)));
    }

    /// Adds a wake or an alarm.
    pub(crate) fn push_timer(&mut self, at: NetTime, kind: Kind, index: u32, token: u64) {
        assert!(self.sequence < MAX_SEQUENCE, "too many wakes and alarms in one run");
        self.heap.push(Reverse(Event::new(at, kind, index, self.sequence)));
        self.tokens.insert(self.sequence, token);
        self.sequence += 1;
    }

    /// Takes the earliest event, if it is due by `limit`.
    pub(crate) fn pop_until(&mut self, limit: NetTime) -> Option<Event> {
        if self.next()? > limit {
            return None;
        }
        self.heap.pop().map(|e| e.0)
    }

    /// What the caller of a wake or alarm that was taken gets back.
    pub(crate) fn take_token(&mut self, timer: Event) -> u64 {
        self.tokens.remove(&timer.sequence()).expect("a timer whose time has come")
    }

    /// Whether some event comes before every choice of a port at `now`.
    pub(crate) fn any_before_select(&self, now: NetTime) -> bool {
        self.heap.peek().is_some_and(|e| e.0 < Event::new(now, Kind::Select, 0, 0))
    }

    /// Removes the wakes and alarms with this token at once, so that forgotten ones take no memory.
    /// Takes time in proportion to the number of pending events: a few per port and program.
    pub(crate) fn cancel(&mut self, token: u64) {
        let pending = self.tokens.len();
        self.tokens.retain(|_, held| *held != token);
        if self.tokens.len() < pending {
            let tokens = &self.tokens;
            self.heap.retain(|e| !e.0.is_timer() || tokens.contains_key(&e.0.sequence()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simultaneous_events_come_by_kind_then_index_then_sequence() {
        let mut events = EventHeap::default();
        let at = NetTime::from_ns(5);
        for kind in KINDS.iter().rev() {
            for index in [MAX_INDEX as u32 - 1, 0] {
                match kind {
                    Kind::Wake | Kind::Alarm => {
                        events.push_timer(at, *kind, index, 70);
                        events.push_timer(at, *kind, index, 60);
                    }
                    _ => events.push(at, *kind, index),
                }
            }
        }
        events.push(NetTime::from_ns(4), Kind::Select, 3);
        let mut seen = Vec::new();
        while let Some(event) = events.pop_until(at) {
            let token = if event.is_timer() { events.take_token(event) } else { 0 };
            seen.push((event.at().as_ns(), event.kind(), event.index(), token));
        }
        let mut expected = vec![(4, Kind::Select, 3, 0)];
        for kind in KINDS {
            for index in [0, MAX_INDEX as u32 - 1] {
                match kind {
                    Kind::Wake | Kind::Alarm => {
                        expected.extend([(5, kind, index, 70), (5, kind, index, 60)]);
                    }
                    _ => expected.push((5, kind, index, 0)),
                }
            }
        }
        assert_eq!(seen, expected);
    }

    #[test]
    fn a_cancelled_token_removes_its_timers_and_nothing_else() {
        let mut events = EventHeap::default();
        for (ns, token) in [(1, 7), (2, 8), (3, 7)] {
            events.push_timer(NetTime::from_ns(ns), Kind::Alarm, 0, token);
        }
        events.push(NetTime::from_ns(4), Kind::Select, 0);
        events.cancel(7);
        events.cancel(0);
        let timer = events.pop_until(NetTime::MAX).unwrap();
        assert_eq!((timer.at().as_ns(), events.take_token(timer)), (2, 8));
        let other = events.pop_until(NetTime::MAX).unwrap();
        assert_eq!((other.at().as_ns(), other.kind()), (4, Kind::Select));
        assert_eq!(events.pop_until(NetTime::MAX), None);
    }
}
