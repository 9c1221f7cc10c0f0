//! Hosts with ends of TCP connections, and the programs that write and read there.

use crate::participant::{Happened, Moment, Outgoing, Participant, Wants};
use crate::random::{Purpose, RandomDelay, Stream};
use onbeat_model::system::{Delay, NodeId, NodeKind};
use onbeat_model::tcp::{TCP_MESSAGES_MAX, TcpFlow};
use onbeat_model::time::{ClockError, NetTime, Span, SyncedTime};
use onbeat_runtime::tcp::{Acknowledge, Direction, Receiver, Sender, TcpSegment};
use std::collections::VecDeque;

/// The number of a connection's first octet.
const INITIAL: u32 = 1;
/// What is drawn for a host.
const STREAMS: usize = 4;
/// So close to the instant of a reading it is not looked at again before: see
/// [`crate::clocks::Clocks::look_at`].
const CERTAIN: Span = Span::from_us(1);

/// A host.
#[derive(Debug)]
pub(super) struct Host {
    stack_tx: RandomDelay,
    stack_rx: RandomDelay,
    wakeup: RandomDelay,
    pub(super) talkers: Vec<Talker>,
    pub(super) listeners: Vec<Listener>,
    /// Frames that have arrived, and when they are through the stack.
    arriving: VecDeque<(NetTime, Vec<u8>)>,
    next: NetTime,
}

/// What both ends of a flow are made of.
#[derive(Debug)]
pub(super) struct FlowEnds<'a> {
    pub(super) number: usize,
    pub(super) flow: &'a TcpFlow,
    pub(super) seed: u64,
    /// From the talker to the listener.
    pub(super) data: Direction,
}

/// The tags of a flow.
#[derive(Clone, Copy, Debug)]
struct Tags {
    phase: Span,
    interval: Span,
}

impl Tags {
    fn new(flow: &TcpFlow) -> Self {
        Self { phase: flow.phase, interval: flow.interval }
    }

    /// The tag of message `number`; the end of time if there is none so late.
    fn get(&self, number: u64) -> SyncedTime {
        let number = i64::try_from(number).unwrap_or(i64::MAX);
        let ns = self.interval.as_ns().checked_mul(number);
        let ns = ns.and_then(|ns| ns.checked_add(self.phase.as_ns()));
        ns.map_or(SyncedTime::MAX, SyncedTime::from_ns)
    }
}

/// The program that writes.
#[derive(Debug)]
pub(super) struct Talker {
    pub(super) number: usize,
    data: Direction,
    pub(super) sender: Sender,
    writes: Vec<usize>,
    tags: Tags,
    lag: RandomDelay,
    /// How many messages it has captured.
    count: u64,
    /// When it captures the next one, if its tag has come.
    capture: Option<NetTime>,
    /// Tags and captures.
    pub(super) captures: Vec<(SyncedTime, SyncedTime)>,
    pub(super) unrecorded: u64,
}

/// The program that reads.
#[derive(Debug)]
pub(super) struct Listener {
    pub(super) number: usize,
    /// From the talker to the listener: the other way round, acknowledgements go.
    data: Direction,
    receiver: Receiver,
    /// Octets of a message.
    size: u64,
    tags: Tags,
    after: Span,
    /// Octets that it has read.
    octets: u64,
    /// Messages that it has read.
    count: u64,
    /// Of those that it has not handled: when it read them, and when it wakes for them.
    pending: VecDeque<(SyncedTime, Option<NetTime>)>,
    pub(super) receipts: Vec<SyncedTime>,
    pub(super) handled: Vec<SyncedTime>,
    pub(super) acknowledgements: u64,
}

impl Host {
    pub(super) fn new(kind: &NodeKind, seed: u64, node: NodeId) -> Self {
        let zero = [&Delay::Zero; 3];
        let [tx, rx, wakeup] = match kind {
            NodeKind::Host(host) => [&host.stack_tx, &host.stack_rx, &host.wakeup],
            NodeKind::Bridge(_) => zero,
        };
        let draw = |delay, number| {
            let stream = Stream::new(seed, Purpose::TcpHost, node.index() * STREAMS + number);
            RandomDelay::new(delay, stream)
        };
        Self {
            stack_tx: draw(tx, 0),
            stack_rx: draw(rx, 1),
            wakeup: draw(wakeup, 2),
            talkers: Vec::new(),
            listeners: Vec::new(),
            arriving: VecDeque::new(),
            next: NetTime::MAX,
        }
    }

    pub(super) fn add_talker(&mut self, ends: &FlowEnds<'_>) {
        let lag = Stream::new(ends.seed, Purpose::TcpLag, ends.number);
        self.talkers.push(Talker {
            number: ends.number,
            data: ends.data,
            sender: Sender::new(ends.flow.nagle, INITIAL),
            writes: ends.flow.writes.iter().map(|octets| octets.get() as usize).collect(),
            tags: Tags::new(ends.flow),
            lag: RandomDelay::new(&ends.flow.lag, lag),
            count: 0,
            capture: None,
            captures: Vec::new(),
            unrecorded: 0,
        });
    }

    pub(super) fn add_listener(&mut self, ends: &FlowEnds<'_>) {
        let acknowledge =
            if ends.flow.delayed_ack { Acknowledge::Delayed } else { Acknowledge::AtOnce };
        self.listeners.push(Listener {
            number: ends.number,
            data: ends.data,
            receiver: Receiver::new(acknowledge, INITIAL),
            size: ends.flow.writes.iter().map(|octets| u64::from(octets.get())).sum(),
            tags: Tags::new(ends.flow),
            after: ends.flow.after,
            octets: 0,
            count: 0,
            pending: VecDeque::new(),
            receipts: Vec::new(),
            handled: Vec::new(),
            acknowledgements: 0,
        });
    }

    /// Gives frames that are through the stack to their connections.
    fn take_arrived(&mut self, moment: &Moment, wants: &mut Wants) {
        while let Some((_, frame)) = self.arriving.pop_front_if(|(at, _)| *at <= moment.now) {
            let Some((ports, segment)) = TcpSegment::decode(&frame) else { continue };
            let mut out = Vec::new();
            let back = [ports[1], ports[0]];
            if let Some(talker) = self.talkers.iter_mut().find(|end| end.data.ports == back) {
                talker.sender.acknowledge(moment.now, &segment, &mut out);
                let data = talker.data;
                self.send(&data, &out, wants);
            } else if let Some(at) = self.listeners.iter().position(|end| end.data.ports == ports) {
                self.listeners[at].receive(moment, &segment, &mut out);
                let back = self.listeners[at].back();
                self.send(&back, &out, wants);
            }
        }
    }

    fn send(&mut self, direction: &Direction, segments: &[TcpSegment], wants: &mut Wants) {
        for segment in segments {
            let after = self.stack_tx.draw();
            let octets = segment.encode(direction);
            wants.send(Outgoing { port: 0, octets, after, token: None });
        }
    }
}

impl Participant for Host {
    fn handle(&mut self, moment: &Moment, happened: Happened<'_>, wants: &mut Wants) {
        if let Happened::Received { octets, .. } = happened {
            let last = self.arriving.back().map_or(NetTime::ZERO, |(at, _)| *at);
            let through = (moment.now + self.stack_rx.draw()).max(last);
            self.arriving.push_back((through, octets.to_vec()));
        }
        self.take_arrived(moment, wants);
        let mut next = self.arriving.front().map_or(NetTime::MAX, |(at, _)| *at);
        for at in 0..self.talkers.len() {
            let mut out = Vec::new();
            let talker = &mut self.talkers[at];
            next = next.min(talker.act(moment, &mut out));
            let data = talker.data;
            self.send(&data, &out, wants);
        }
        for at in 0..self.listeners.len() {
            let mut out = Vec::new();
            let listener = &mut self.listeners[at];
            next = next.min(listener.act(moment, &mut self.wakeup, &mut out));
            let back = listener.back();
            self.send(&back, &out, wants);
        }
        self.next = next;
    }

    fn next(&self) -> NetTime {
        self.next
    }
}

impl Talker {
    /// Does what is due, and says when it is to be called again.
    fn act(&mut self, moment: &Moment, out: &mut Vec<TcpSegment>) -> NetTime {
        let Moment { now, clock } = *moment;
        self.sender.timeout(now, out);
        let size = self.writes.iter().sum();
        let look = loop {
            let tag = self.tags.get(self.count);
            match self.capture {
                None if clock.read(now) < tag => break look_at(now, &clock, tag),
                None => self.capture = Some(now + self.lag.draw()),
                Some(at) if at > now => break at,
                // An acknowledgement makes room.
                Some(_) if self.sender.room() < size && !self.sender.has_failed() => {
                    break NetTime::MAX;
                }
                Some(_) => self.write(tag, moment, out),
            }
        };
        self.sender.next().map_or(look, |timer| look.min(timer))
    }

    fn write(&mut self, tag: SyncedTime, moment: &Moment, out: &mut Vec<TcpSegment>) {
        if self.captures.len() < TCP_MESSAGES_MAX {
            self.captures.push((tag, moment.clock.read(moment.now)));
        } else {
            self.unrecorded += 1;
        }
        let mut octets = self.count.to_le_bytes().to_vec();
        octets.resize(self.writes.iter().sum::<usize>().max(octets.len()), 0);
        let mut from = 0;
        for size in &self.writes {
            self.sender.write(moment.now, &octets[from..from + size], out);
            from += size;
        }
        self.count += 1;
        self.capture = None;
    }
}

impl Listener {
    /// From the listener to the talker.
    fn back(&self) -> Direction {
        let Direction { source, destination, mut addresses, mut ports } = self.data;
        addresses.reverse();
        ports.reverse();
        Direction { source: destination, destination: source, addresses, ports }
    }

    fn receive(&mut self, moment: &Moment, segment: &TcpSegment, out: &mut Vec<TcpSegment>) {
        let (mut read, before) = (Vec::new(), out.len());
        self.receiver.receive(moment.now, segment, &mut read, out);
        self.acknowledgements += (out.len() - before) as u64;
        self.octets += read.len() as u64;
        let reading = moment.clock.read(moment.now);
        for _ in self.count..self.octets / self.size {
            self.pending.push_back((reading, None));
            if self.receipts.len() < TCP_MESSAGES_MAX {
                self.receipts.push(reading);
            }
            self.count += 1;
        }
    }

    /// Does what is due, and says when it is to be called again.
    fn act(
        &mut self,
        moment: &Moment,
        wakeup: &mut RandomDelay,
        out: &mut Vec<TcpSegment>,
    ) -> NetTime {
        let Moment { now, clock } = *moment;
        let before = out.len();
        self.receiver.timeout(now, out);
        self.acknowledgements += (out.len() - before) as u64;
        let mut look = NetTime::MAX;
        loop {
            let first = self.count - self.pending.len() as u64;
            let Some((receive, wake)) = self.pending.front_mut() else { break };
            let target = self.tags.get(first) + self.after;
            let reading = clock.read(now);
            look = match *wake {
                // It is late: nobody waits any more.
                None if *receive > target => now,
                None if reading < target => look_at(now, &clock, target),
                None => *wake.insert(now + wakeup.draw()),
                Some(at) => at,
            };
            if look > now {
                break;
            }
            if self.handled.len() < TCP_MESSAGES_MAX {
                self.handled.push(reading);
            }
            self.pending.pop_front();
            look = NetTime::MAX;
        }
        self.receiver.next().map_or(look, |timer| look.min(timer))
    }
}

/// When to look whether a clock reads so much: when it does as it is, or before, as it may be
/// steered meanwhile.
fn look_at(now: NetTime, clock: &ClockError, reading: SyncedTime) -> NetTime {
    if reading == SyncedTime::MAX {
        return NetTime::MAX;
    }
    let at = clock.when_from(now, reading).max(now);
    let left = at - now;
    if left <= CERTAIN { at } else { at - Span::from_ns(left.as_ns() / 512) }
}
