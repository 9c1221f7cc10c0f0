//! Brings together what the ends of a channel recorded of the same message.

use crate::reservations;
use crate::stations;
use crate::tcp;
use onbeat_model::observed::ClockObserved;
use onbeat_model::plan::Plan;
use onbeat_model::rate::{Pace, Rate};
use onbeat_model::record::{Carrier, EndpointLog, Record, Role, RunLog, flag};
use onbeat_model::system::{Channel, ChannelId, System};
use onbeat_model::time::{NetTime, Span, SyncedTime};
use std::collections::{BTreeMap, BTreeSet};

/// All ends of one channel in one run.
pub struct Joined<'a> {
    /// What the talker recorded.
    pub talker: &'a EndpointLog,
    /// Whether the talker took part in the run, so that what it did is known.
    pub talker_known: bool,
    /// In the order of the channel's listeners.
    pub listeners: Vec<JoinedListener<'a>>,
}

/// The messages of a channel as seen by one of its listeners.
pub struct JoinedListener<'a> {
    /// What it recorded.
    pub end: &'a EndpointLog,
    /// Whether it took part in the run, and whether the talker did.
    known: bool,
    talker_known: bool,
    /// Whether it is known what its queue dropped.
    knows_queue: bool,
    /// In order of capture; every message that either end recorded, and every copy of it.
    pub messages: Vec<Message<'a>>,
}

/// What the two ends recorded of one message. One of them is always there.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// The talker's record of it.
    pub talker: Option<&'a Record>,
    /// The listener's record of it, or of this copy.
    pub listener: Option<&'a Record>,
    /// Whether the listener had received the message before.
    pub duplicate: bool,
    /// Whether the listener took part in the run, so that it is known whether it had the message.
    pub listener_known: bool,
}

impl Message<'_> {
    /// When the value was captured, by the talker's clock.
    pub fn capture(&self) -> Option<SyncedTime> {
        self.talker.and_then(|r| r.capture).or_else(|| self.listener?.capture)
    }
    /// Whether the listener's program had the message, for the first time.
    pub fn is_receipt(&self) -> bool {
        !self.duplicate && self.listener.is_some_and(|r| r.receive.is_some())
    }
    /// Whether it was written and this listener never had it.
    pub fn is_lost(&self) -> bool {
        let written = !self.duplicate && self.talker.is_some();
        written && self.listener_known && !self.is_receipt()
    }
    /// Whether it is lost because its reader's queue was full.
    pub fn is_overflowed(&self) -> bool {
        self.is_lost() && self.listener.is_some_and(|r| r.flags & flag::OVERFLOWED != 0)
    }
    /// Whether its receipt was after the capture plus the channel's fixed delay.
    pub fn is_late(&self) -> bool {
        self.is_receipt() && self.listener.is_some_and(|r| r.flags & flag::LATE != 0)
    }
    /// Whether it had expired when its program came for it, which did not have it.
    pub fn is_expired(&self) -> bool {
        self.is_receipt() && self.listener.is_some_and(|r| r.flags & flag::EXPIRED != 0)
    }
    /// Capture to receipt in nanoseconds, of a first receipt.
    pub fn latency_ns(&self) -> Option<i64> {
        let receive = self.listener.filter(|_| self.is_receipt())?.receive?;
        Some(ns_between(self.capture()?, receive))
    }
    /// Capture to the continuation after a timed read in nanoseconds, of a first receipt.
    pub fn end_to_end_ns(&self) -> Option<i64> {
        let wake = self.listener.filter(|_| self.is_receipt())?.wake?;
        Some(ns_between(self.capture()?, wake))
    }
    /// When the kernel's queues got its frame, if that was noted.
    pub fn queued(&self) -> Option<SyncedTime> {
        self.talker?.receive
    }
    /// When its frame left the talker: was handed to the emulated network or the host's station, or
    /// as the kernel noted it.
    pub fn departed(&self) -> Option<SyncedTime> {
        self.talker?.transfer
    }
    /// When it arrived at the listener's port, or when that one's station had it for the listener.
    pub fn arrived(&self) -> Option<SyncedTime> {
        self.listener?.transfer
    }
    /// From the talker's handing the frame to the network, or to its station on a kernel, to its
    /// arrival at the listener's port, or to when that one's station had it for the listener.
    pub(crate) fn in_network_ns(&self) -> Option<i64> {
        Some(ns_between(self.departed()?, self.arrived()?))
    }
    /// Target minus wake-up at the talker: negative is after the target.
    pub fn talker_wakeup_ns(&self) -> Option<i64> {
        self.talker.and_then(wakeup_error_ns)
    }
    /// Target minus wake-up at the listener: negative is after the target.
    pub fn listener_wakeup_ns(&self) -> Option<i64> {
        self.listener.filter(|_| !self.duplicate).and_then(wakeup_error_ns)
    }
    /// When both ends woke, by their own clocks.
    fn wake_readings(&self) -> Option<(SyncedTime, SyncedTime)> {
        let listener = self.listener.filter(|_| !self.duplicate)?;
        Some((self.talker?.wake?, listener.wake?))
    }
    /// When both ends woke in network time. A record's network time is that of its last instant,
    /// which is the wake-up if there is one.
    fn wake_instants(&self) -> Option<(NetTime, NetTime)> {
        self.wake_readings()?;
        Some((self.talker?.network?, self.listener?.network?))
    }
    /// By how much the listener woke after the talker, from network time or else from their clocks'
    /// readings.
    pub fn wakeup_offset_ns(&self, network_time: bool) -> Option<i64> {
        if network_time {
            let (talker, listener) = self.wake_instants()?;
            return Some(listener.as_ns().saturating_sub(talker.as_ns()));
        }
        let (talker, listener) = self.wake_readings()?;
        Some(ns_between(talker, listener))
    }
    /// How far apart the two ends woke, from the same.
    pub fn relative_wakeup_ns(&self, network_time: bool) -> Option<i64> {
        self.wakeup_offset_ns(network_time).map(i64::saturating_abs)
    }
}

impl<'a> Joined<'a> {
    /// How many messages came sooner than the declared rate alone allows, after one that was late;
    /// `None` if the talker did not record all.
    pub fn caught_up(&self, channel: &Channel) -> Option<u64> {
        let all = self.ahead_of_rate(channel).len() as u64;
        (self.talker_known && self.talker.unrecorded == 0).then_some(all)
    }

    /// From when on messages may have been closer to each other than the declared rate alone
    /// allows: since the first that was recorded so, or ever, if not all is known.
    pub(crate) fn catches_up_since(&self, channel: &Channel) -> Option<NetTime> {
        let ever = NetTime::ZERO;
        let first =
            self.ahead_of_rate(channel).first().map(|record| record.network.unwrap_or(ever));
        let is_known = self.talker_known && self.talker.unrecorded == 0;
        let unknown = (!is_known && channel.catch_up() > Span::ZERO).then_some(ever);
        unknown.or(first)
    }

    /// The records of messages that caught up.
    fn ahead_of_rate(&self, channel: &Channel) -> Vec<&'a Record> {
        let allowed = channel.rate();
        let alone = Rate { catch_up: Span::ZERO, ..allowed };
        // By the declared rate alone, and by the talker.
        let (mut plain, mut pace, mut last) = (Pace::default(), Pace::default(), None);
        let mut ahead = Vec::new();
        for record in &self.talker.records {
            let Some(capture) = record.capture else { continue };
            match last {
                // The clock was set back.
                Some(last) if capture < last => (plain, pace) = Default::default(),
                Some(last) if record.sequence == 0 => pace = Pace::after_restart(last, &allowed),
                _ => {}
            }
            last = Some(capture);
            if pace.held_until(capture, &allowed).is_some() {
                // No talker writes that: it is none that was late.
                continue;
            }
            if plain.held_until(capture, &alone).is_some() {
                ahead.push(record);
                // The next one counts from one that caught up.
                plain = Pace::default();
            }
            plain.sent(capture, &alone);
            pace.sent(capture, &allowed);
        }
        ahead
    }

    /// How many messages the declared rate held, if the talker recorded all.
    pub fn held(&self) -> Option<u64> {
        let held = self.talker.records.iter().filter(|record| record.flags & flag::HELD != 0);
        (self.talker_known && self.talker.unrecorded == 0).then(|| held.count() as u64)
    }

    /// How many messages the talker wrote, if that is known.
    pub fn sent(&self) -> Option<u64> {
        let recorded = self.talker.records.len() as u64;
        self.talker_known.then(|| recorded.saturating_add(self.talker.unrecorded))
    }
    /// Whether what each of the ends did is known.
    pub(crate) fn is_whole(&self) -> bool {
        self.talker_known && self.listeners.iter().all(|l| l.known)
    }
    /// Every message of every listener.
    pub fn messages(&self) -> impl Iterator<Item = &Message<'a>> {
        self.listeners.iter().flat_map(|l| &l.messages)
    }
    /// Whether the network time of every pair of wake-ups is known, so that all relative errors
    /// can be computed from it: a mixture of two kinds would mean nothing.
    pub fn knows_network_time(&self) -> bool {
        self.messages().all(|m| m.wake_readings().is_none() || m.wake_instants().is_some())
    }
    /// Messages that some end handled after its record memory was full.
    pub fn unrecorded(&self) -> u64 {
        let listeners = self.listeners.iter().map(|l| l.end.unrecorded);
        listeners.fold(self.talker.unrecorded, u64::saturating_add)
    }
}

impl<'a> JoinedListener<'a> {
    /// How many of its messages are such; `None` where what it did is not known.
    pub fn count(&self, what: impl Fn(&Message<'a>) -> bool) -> Option<u64> {
        self.known.then(|| self.messages.iter().filter(|m| what(m)).count() as u64)
    }
    /// First receipts, with those after the record memory was full.
    pub fn received(&self) -> Option<u64> {
        Some(self.count(Message::is_receipt)?.saturating_add(self.end.unrecorded))
    }
    /// Those of its losses that its queue was too full for; `None` where the kernel keeps the queue
    /// and does not tell them from others.
    pub fn overflowed(&self) -> Option<u64> {
        self.count(Message::is_overflowed).filter(|_| self.knows_queue)
    }
    /// Losses, less as many as may have come after the record memory was full. Where the talker's
    /// records are elsewhere, the gaps that the listener found.
    pub fn lost(&self) -> Option<u64> {
        if self.talker_known {
            return Some(self.count(Message::is_lost)?.saturating_sub(self.end.unrecorded));
        }
        let gaps = self.messages.iter().filter(|m| m.is_receipt()).filter_map(|m| m.listener);
        self.known.then(|| gaps.map(|record| u64::from(record.gap)).sum())
    }
}

/// A difference that saturates: records may come from a file that anyone wrote.
pub fn ns_between(from: SyncedTime, to: SyncedTime) -> i64 {
    to.as_ns().saturating_sub(from.as_ns())
}

fn wakeup_error_ns(record: &Record) -> Option<i64> {
    Some(ns_between(record.wake?, record.wake_target?))
}

/// Joins the ends of `channel`. The log is of the channel's system: see [`ends_fit`].
///
/// # Panics
/// When the log has no end of the channel.
pub fn channel<'a>(log: &'a RunLog, channel: ChannelId) -> Joined<'a> {
    let mut ends = log.ends.iter().filter(|end| end.channel == channel);
    let talker = ends.next().expect("a log that fits has the talker's end");
    let listeners = ends.map(|end| listener(log, talker, end)).collect();
    Joined { talker, talker_known: log.network.includes(talker.node), listeners }
}

/// Finds the talker's record of each of the listener's by the capture time, which the frame
/// carries unchanged. The sequence number would not do: it may be rebuilt from eight bits, wrongly
/// so after a gap of 256 messages or more. Only of messages that were captured at the same reading,
/// as a talker does whose clock was set back, it tells which is which.
fn listener<'a>(log: &RunLog, talker: &'a EndpointLog, end: &'a EndpointLog) -> JoinedListener<'a> {
    let [known, talker_known] = [end.node, talker.node].map(|node| log.network.includes(node));
    let mut written: Vec<_> = talker.records.iter().collect();
    written.sort_by_key(|r| r.capture);
    let twins: BTreeSet<_> = written
        .windows(2)
        .filter(|two| two[0].capture == two[1].capture)
        .map(|two| two[0].capture)
        .collect();
    let name = |r: &Record| {
        let number = twins.contains(&r.capture).then_some(r.sequence as u16);
        (r.capture, number)
    };
    written.sort_by_key(|r| name(r));
    let mut received: Vec<_> = end.records.iter().enumerate().collect();
    received.sort_by_key(|(at, r)| (name(r), r.flags & flag::DUPLICATE, *at));

    let message = |talker, listener, duplicate| Message {
        talker,
        listener,
        duplicate,
        listener_known: known,
    };
    let mut messages = Vec::with_capacity(written.len());
    let mut received = received.into_iter().map(|(_, r)| r).peekable();
    for record in written {
        while let Some(other) = received.next_if(|r| name(r) < name(record)) {
            messages.push(message(None, Some(other), false));
        }
        let same = |r: &&Record| r.capture.is_some() && name(r) == name(record);
        let first = received.next_if(|r| same(r) && !flagged_duplicate(r));
        messages.push(message(Some(record), first, false));
        while let Some(other) = received.next_if(same) {
            messages.push(message(None, Some(other), true));
        }
    }
    messages.extend(received.map(|r| message(None, Some(r), false)));
    join_turned(&mut messages);
    mark_copies(&mut messages);
    let knows_queue = matches!(log.network, Carrier::Emulated) || log.stations.is_some();
    JoinedListener { end, known, talker_known, knows_queue, messages }
}

fn flagged_duplicate(record: &Record) -> bool {
    record.flags & flag::DUPLICATE != 0
}

/// A frame carries so much of its capture time (IEEE 1722-2016 4.4.4.8).
const TURN_NS: i64 = 1 << 32;

/// Joins receipts of which the capture was rebuilt a turn of its 32 bits, or several, too late: the
/// message had waited for longer than the bits can tell. Its number has 8 bits at least.
fn join_turned(messages: &mut Vec<Message>) {
    let turned =
        |capture: SyncedTime, r: &Record| (capture.as_ns().rem_euclid(TURN_NS), r.sequence as u8);
    let mut waiting: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    for (at, message) in messages.iter().enumerate().rev() {
        let (Some(talker), None) = (message.talker, message.listener) else { continue };
        let Some(capture) = talker.capture else { continue };
        waiting.entry(turned(capture, talker)).or_default().push(at);
    }
    for at in 0..messages.len() {
        let Message { talker: None, listener: Some(record), duplicate: false, .. } = messages[at]
        else {
            continue;
        };
        let Some(capture) = record.capture.filter(|_| !flagged_duplicate(record)) else { continue };
        let Some(of) = waiting.get_mut(&turned(capture, record)) else { continue };
        let is_earlier = |of: &mut usize| messages[*of].capture() < Some(capture);
        if let Some(of) = of.pop_if(is_earlier) {
            messages[of].listener = messages[at].listener.take();
        }
    }
    messages.retain(|m| m.talker.is_some() || m.listener.is_some());
}

/// Marks copies among the messages of which the talker's record is missing.
fn mark_copies(messages: &mut [Message]) {
    let mut before = None;
    for message in messages.iter_mut().filter(|m| m.talker.is_none()) {
        let record = message.listener.expect("one end recorded it");
        let again = record.capture.is_some() && record.capture == before;
        message.duplicate |= flagged_duplicate(record) || again;
        before = record.capture;
    }
}

/// Whether the ends in `log` are those of `system`: the same channels with the same hosts in the
/// same order; and its network one that `system` can have.
pub fn ends_fit(system: &System, log: &RunLog) -> bool {
    let expected = (0..).map(ChannelId).zip(&system.channels).flat_map(|(id, channel)| {
        let talker = std::iter::once((id, Role::Talker, channel.talker));
        talker.chain(channel.listeners.iter().map(move |host| (id, Role::Listener, *host)))
    });
    let hosts_fit = match &log.network {
        Carrier::Interfaces { parts, .. } => {
            parts.iter().all(|part| part.host.index() < system.nodes.len())
        }
        Carrier::Emulated | Carrier::Namespaces { .. } => true,
    };
    hosts_fit && expected.eq(log.ends.iter().map(|end| (end.channel, end.role, end.node)))
}

/// Whether a clock is one of a system's nodes, and has the time of others.
fn clock_fits(system: &System, clock: &ClockObserved) -> bool {
    let sources = clock.samples.iter().map(|sample| sample.source).chain([clock.source]);
    let mut nodes = sources.flatten().chain([clock.node]);
    nodes.all(|node| node.index() < system.nodes.len())
}

/// Whether `log` and `plan` can be of `system`, so that every id is in range.
pub(crate) fn fits(system: &System, plan: &Plan, log: &RunLog) -> bool {
    let bounds_fit = plan.channels.iter().zip(&system.channels).all(|(planned, channel)| {
        let bounds = if planned.protected { channel.listeners.len() } else { 0 };
        // Where a protocol decides who gets too little, no channel has a bound.
        let is_open = planned.bounds.is_empty() && log.reservations.is_some();
        let bounds_fit = planned.bounds.len() == bounds || is_open;
        let least = channel.listeners.len();
        let paths_fit = match channel.paths.is_replicated() {
            true => planned.paths.len() > least,
            false => planned.paths.len() == least,
        };
        paths_fit && bounds_fit
    });
    ends_fit(system, log)
        && bounds_fit
        && log.clocks.iter().all(|clock| clock_fits(system, clock))
        && log.reservations.iter().all(|seen| reservations::fit(system, seen))
        && log.stations.iter().all(|seen| stations::fit(system, seen))
        && log.load.iter().all(|sample| sample.noise.index() < system.noise.len())
        && plan.channels.len() == system.channels.len()
        && plan.noise.len() == system.noise.len()
        && tcp::fits(system, log)
        && plan.ports.len() == system.ports.len()
        && plan.chains.len() == system.chains.len()
}
