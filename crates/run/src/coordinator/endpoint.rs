//! The ends of channels that programs have opened, and what was delivered to them.

use crate::coordinator::table::{EndpointId, ProgramId};
use onbeat::coordinator::socket_queue::SocketQueue;
use onbeat::interface::StationDoor;
use onbeat::shared_log::{self, SharedLog};
use onbeat_model::record::{Record, Role, flag};
use onbeat_model::system::{ChannelId, NodeId};
use onbeat_model::time::{NetTime, Span, SyncedTime};
use onbeat_runtime::fragment::Fragment;
use onbeat_runtime::listener::rebuild;
use onbeat_runtime::queue::ReceiveQueue;
use onbeat_runtime::talker::ChannelParameters;
use onbeat_runtime::wire::{Frame, Header};
use rustix::fd::{AsRawFd, OwnedFd};
use std::borrow::Cow;
use std::cell::Cell;
use std::collections::HashSet;
use std::sync::Arc;

/// The most records that a run keeps, of all its ends.
const RECORDS_MAX: u32 = shared_log::MAX_CAPACITY;

/// So often frames are offered that are not taken: the program does not read this end.
const OFFERS_IGNORED: u8 = 8;

/// For so many messages of an end there is room from the start.
const RESERVED: u32 = 1 << 16;

/// A channel end that a program has opened.
#[derive(Debug)]
pub(super) struct Endpoint {
    pub(super) channel: ChannelId,
    pub(super) role: Role,
    pub(super) node: NodeId,
    pub(super) program: ProgramId,
    pub(super) log: SharedLog,
    /// Its memory, kept open for others to look at (`onbeat stat`).
    pub(super) _memory: Option<OwnedFd>,
    pub(super) parameters: ChannelParameters,
    /// Talker: when the first frame of each message was queued at the port.
    pub(super) transfers: Vec<NetTime>,
    /// Talker: the frames of the last message that are still to come.
    behind: u32,
    /// Listener: what was delivered, also before it was opened.
    pub(super) delivered: Deliveries,
    /// Listener, virtual time: delivered frames that are not read yet.
    pub(super) inbox: ReceiveQueue<Arrival>,
    /// How often these were offered to the program since it read here last.
    ignored: Cell<u8>,
    /// Real time: the end's own socket.
    pub(super) own: Option<OwnedFd>,
    /// Listener, real time: what keeps that one's queue.
    pub(super) queue: Option<SocketQueue>,
    /// Where a station carries the channel: the end's door to it.
    pub(super) door: Option<Arc<StationDoor>>,
    /// Whether the program has closed it or is gone. A closed end has no queue.
    pub(super) closed: bool,
    /// When the program went, if it had not closed it.
    pub(super) left: Option<NetTime>,
    /// Whether the run had started when it was opened.
    pub(super) late: bool,
    /// How often this end of the channel was opened, with this time.
    pub(super) start: u32,
    /// `Session::endpoints` at this position: the same end, as it was opened before.
    pub(super) before: Option<EndpointId>,
}

/// A frame on its way from the engine to a program.
#[derive(Debug)]
pub(super) struct Arrival {
    /// When it arrived at the host's port.
    pub(super) arrived: NetTime,
    /// When it was there to be read.
    pub(super) ready: NetTime,
    pub(super) octets: Vec<u8>,
}

/// What the coordinator remembers of the frames that it delivered to a listener, opened or not.
#[derive(Debug, Default)]
pub(super) struct Deliveries {
    /// One entry a frame.
    frames: Vec<Delivered>,
    /// The first of these that may overflow next.
    oldest: usize,
}

#[derive(Clone, Copy, Debug)]
struct Delivered {
    arrived: NetTime,
    ready: NetTime,
    /// Lower 32 bits of the capture time.
    timestamp: u32,
    number: u16,
    /// Which fragment of its message it is, where messages have several.
    index: u16,
    /// The queue was full before the program came for it.
    overflowed: bool,
}

impl Endpoint {
    /// An end that is open.
    pub(super) fn new(
        (channel, role, node, program): (ChannelId, Role, NodeId, ProgramId),
        parameters: ChannelParameters,
        (log, memory): (SharedLog, OwnedFd),
        capacity: u32,
        own: Option<OwnedFd>,
        queue: Option<SocketQueue>,
    ) -> Self {
        // Of a long run the engine finds room as it continues.
        let reserve = capacity.min(RESERVED) as usize;
        Self {
            channel,
            role,
            node,
            program,
            log,
            _memory: keep_open(memory),
            parameters,
            transfers: Vec::with_capacity(if role == Role::Talker { reserve } else { 0 }),
            behind: 0,
            delivered: Deliveries::default(),
            inbox: ReceiveQueue::default(),
            ignored: Cell::new(0),
            own,
            queue,
            door: None,
            closed: false,
            left: None,
            late: false,
            start: 1,
            before: None,
        }
    }

    /// A frame that the program sent is queued at the port.
    pub(super) fn queued(&mut self, at: NetTime) {
        if self.behind > 0 {
            self.behind -= 1;
            return;
        }
        self.behind = self.parameters.fragments().count - 1;
        self.transfers.push(at);
    }

    /// When the last message was captured of which there is a record.
    pub(super) fn last_capture(&self) -> Option<SyncedTime> {
        self.log.last().and_then(|record| record.capture)
    }

    /// The program reads no more here. What it wrote before is still taken.
    pub(super) fn close(&mut self) {
        self.closed = true;
        self.queue = None;
        if let Some(door) = self.door.take() {
            door.close();
        }
        if self.role == Role::Listener {
            self.own = None;
        }
    }

    /// Its program is gone.
    pub(super) fn leave(&mut self, now: NetTime) {
        if !self.closed {
            self.left = Some(now);
        }
        self.close();
    }

    /// Keeps a frame for a reader to come.
    pub(super) fn keep(&mut self, arrival: Arrival) {
        self.delivered.add(arrival.arrived, arrival.ready, &arrival.octets);
        if !self.closed
            && let Some(dropped) = self.inbox.push(arrival)
        {
            self.delivered.overflow(&dropped.octets);
        }
    }

    /// The frames that wait, the oldest first, for a program that reads them.
    pub(super) fn offered(&self) -> impl Iterator<Item = &Arrival> {
        let ignored = self.ignored.get();
        self.ignored.set(ignored.saturating_add(1));
        self.inbox.iter().filter(move |_| ignored < OFFERS_IGNORED)
    }

    /// The program reads here: the oldest frame that waits.
    pub(super) fn take(&mut self) -> Option<Arrival> {
        self.ignored.set(0);
        self.inbox.pop()
    }
}

impl Deliveries {
    /// Remembers that a frame was delivered.
    pub(super) fn add(&mut self, arrived: NetTime, ready: NetTime, octets: &[u8]) {
        if let Ok(frame) = Frame::parse(octets) {
            let Header { timestamp, number, .. } = frame.header;
            let index = Fragment::parse(frame.payload).map_or(0, |(fragment, _)| fragment.index);
            let overflowed = false;
            self.frames.push(Delivered { arrived, ready, timestamp, number, index, overflowed });
        }
    }

    /// The same of a message that a station has delivered.
    pub(super) fn add_message(&mut self, at: NetTime, timestamp: u32, number: u16) {
        let (arrived, ready, index, overflowed) = (at, at, 0, false);
        self.frames.push(Delivered { arrived, ready, timestamp, number, index, overflowed });
    }

    /// Remembers that a frame was dropped from the queue, in the order of their coming.
    pub(super) fn overflow(&mut self, octets: &[u8]) {
        if let Ok(Frame { header: Header { timestamp, number, .. }, .. }) = Frame::parse(octets) {
            self.overflow_message(timestamp, number);
        }
    }

    /// The same of a message that a station has dropped.
    pub(super) fn overflow_message(&mut self, timestamp: u32, number: u16) {
        let rest = &mut self.frames[self.oldest..];
        let is_it = |d: &Delivered| (d.timestamp, d.number) == (timestamp, number);
        if let Some(at) = rest.iter().position(is_it) {
            rest[at].overflowed = true;
            self.oldest += at + 1;
        }
    }

    /// The messages that were delivered whole.
    fn messages(&self, frames: u32) -> Cow<'_, [Delivered]> {
        if frames == 1 {
            return Cow::Borrowed(&self.frames);
        }
        let mut whole: Vec<Delivered> = Vec::new();
        let mut begun: Option<Delivered> = None;
        for frame in &self.frames {
            let of = frame.timestamp.wrapping_sub(frame.index.into());
            let before = begun.filter(|begun| begun.timestamp == of);
            if before.is_some_and(|before| frame.index <= before.index) {
                // A copy.
                continue;
            }
            let before = before.filter(|before| before.index + 1 == frame.index);
            let overflowed = frame.overflowed || before.is_some_and(|before| before.overflowed);
            let so_far = Delivered { timestamp: of, overflowed, ..*frame };
            begun = (before.is_some() || frame.index == 0).then_some(so_far);
            whole.extend(begun.filter(|b| u32::from(b.index) + 1 == frames));
        }
        Cow::Owned(whole)
    }

    /// Records of the messages that were delivered and of which the program left no record: it did
    /// not come to read them, or not in time, or had not opened the end. `reading` is what its
    /// host's clock read at an instant.
    pub(super) fn unread(
        &self,
        parameters: &ChannelParameters,
        records: &[Record],
        reading: impl Fn(NetTime) -> SyncedTime,
    ) -> Vec<Record> {
        let frames = parameters.fragments().count;
        // A talker whose clock was set back may capture at the same reading again. The number of a
        // message in fragments is not in its frames.
        let name = |r: &Record| (r.capture, if frames == 1 { r.sequence as u16 } else { 0 });
        let read: HashSet<_> = records.iter().map(name).collect();
        let messages = self.messages(frames);
        let all = messages.iter().map(|frame| {
            let ready = reading(frame.ready);
            // Frames carry network time, records the run's.
            let timestamp = frame.timestamp.wrapping_sub(parameters.epoch as u32);
            let capture = rebuild(timestamp, ready);
            let late = ready > capture + parameters.fixed_delay;
            let is_future = capture > ready + parameters.clock_error;
            let (receive, flags) = match frame.overflowed {
                true => (None, flag::OVERFLOWED),
                // Whoever came for it dropped it.
                false if is_future => (None, 0),
                false => (Some(ready), flag::UNREAD | if late { flag::LATE } else { 0 }),
            };
            Record {
                capture: Some(capture),
                transfer: Some(reading(frame.arrived)),
                receive,
                network: Some(frame.ready),
                sequence: u64::from(frame.number),
                flags,
                ..Record::default()
            }
        });
        all.filter(|record| !read.contains(&name(record))).collect()
    }
}

/// Keeps memory open for others to look at, unless half of what this process may open is open.
pub(super) fn keep_open(memory: OwnedFd) -> Option<OwnedFd> {
    let most = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let number = u64::from(memory.as_raw_fd().unsigned_abs());
    Some(memory).filter(|_| most.is_none_or(|most| number < most / 2))
}

/// How many records an end needs for a run: twice what the declared rate and burst allow, and some;
/// at most an equal part of those that a run of so many ends keeps.
pub(super) fn capacity(parameters: &ChannelParameters, duration: Span, ends: usize) -> u32 {
    let messages = (duration + parameters.tolerance).as_ns() / parameters.interval.as_ns().max(1);
    let wanted = messages.saturating_mul(2).saturating_add(1_024);
    u32::try_from(wanted).unwrap_or(u32::MAX).min(records_per_endpoint(ends))
}

/// The most records that a run of so many ends keeps of each. What is beyond them is counted.
pub fn records_per_endpoint(ends: usize) -> u32 {
    let ends = u32::try_from(ends).unwrap_or(u32::MAX).max(1);
    (RECORDS_MAX / ends).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_ends_of_a_run_together_keep_no_more_records_than_the_budget() {
        for ends in [0, 1, 2, 3, 1_000, 200_000] {
            let of_one = records_per_endpoint(ends);
            assert!((1..=shared_log::MAX_CAPACITY).contains(&of_one));
            assert!(u64::from(of_one) * ends as u64 <= u64::from(RECORDS_MAX));
        }
    }
}
