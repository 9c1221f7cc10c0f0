//! The ends of channels that programs have opened, and what was delivered to them.

use crate::shared_log::{self, SharedLog};
use onbeat_model::record::{Record, Role, flag};
use onbeat_model::system::{ChannelId, NodeId};
use onbeat_model::time::{ClockError, NetTime, Span};
use onbeat_runtime::listener::rebuild;
use onbeat_runtime::talker::ChannelParameters;
use onbeat_runtime::wire::{Frame, Header};
use rustix::fd::{AsRawFd, OwnedFd};
use std::collections::{HashSet, VecDeque};

/// The most frames that wait at an end for their reader.
const MAX_INBOX: usize = 1_024;

/// A channel end that a program has opened.
#[derive(Debug)]
pub(super) struct End {
    pub(super) channel: ChannelId,
    pub(super) role: Role,
    pub(super) node: NodeId,
    pub(super) program: usize,
    pub(super) log: SharedLog,
    /// Its memory, kept open for others to look at (`onbeat stat`).
    pub(super) _memory: Option<OwnedFd>,
    pub(super) parameters: ChannelParameters,
    /// Talker: when each frame was queued at the port.
    pub(super) transfers: Vec<NetTime>,
    /// Listener: what was delivered, one entry a frame.
    pub(super) delivered: Vec<Delivered>,
    /// Listener, virtual time: delivered frames that nobody has read yet.
    pub(super) inbox: VecDeque<Arrival>,
    /// Real time: the end's own socket.
    pub(super) own: Option<OwnedFd>,
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

/// What the fabric remembers of a frame that it delivered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delivered {
    arrived: NetTime,
    ready: NetTime,
    /// Lower 32 bits of the capture time.
    timestamp: u32,
    number: u16,
}

impl End {
    /// Remembers that a frame was delivered.
    pub(super) fn note(&mut self, arrived: NetTime, ready: NetTime, octets: &[u8]) {
        if let Ok(frame) = Frame::parse(octets) {
            let Header { timestamp, number, .. } = frame.header;
            self.delivered.push(Delivered { arrived, ready, timestamp, number });
        }
    }

    /// Remembers that a frame was delivered.
    pub(super) fn deliver(&mut self, arrival: &Arrival) {
        self.note(arrival.arrived, arrival.ready, &arrival.octets);
    }

    /// Keeps a frame for a reader to come.
    pub(super) fn keep(&mut self, arrival: Arrival) {
        self.deliver(&arrival);
        if self.inbox.len() < MAX_INBOX {
            self.inbox.push_back(arrival);
        }
    }

    /// Records of the frames that were delivered and of which the program left no record: it did
    /// not come to read them.
    pub(super) fn unread(&self, records: &[Record], clock: ClockError) -> Vec<Record> {
        let read: HashSet<_> = records.iter().map(|r| r.capture).collect();
        let all = self.delivered.iter().map(|frame| {
            let ready = clock.read(frame.ready);
            let capture = rebuild(frame.timestamp, ready);
            let late = ready > capture + self.parameters.fixed_delay;
            Record {
                capture: Some(capture),
                transfer: Some(clock.read(frame.arrived)),
                receive: Some(ready),
                network: Some(frame.ready),
                sequence: u64::from(frame.number),
                flags: flag::UNREAD | if late { flag::LATE } else { 0 },
                ..Record::default()
            }
        });
        all.filter(|record| !read.contains(&record.capture)).collect()
    }
}

/// Keeps memory open for others to look at, unless half of what this process may open is open.
pub(super) fn keep_open(memory: OwnedFd) -> Option<OwnedFd> {
    let most = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let number = u64::from(memory.as_raw_fd().unsigned_abs());
    Some(memory).filter(|_| most.is_none_or(|most| number < most / 2))
}

/// How many records an end needs for a run: twice what the declared rate and burst allow, and some.
pub(super) fn capacity(parameters: &ChannelParameters, duration: Span) -> u32 {
    let messages = (duration + parameters.tolerance).as_ns() / parameters.interval.as_ns().max(1);
    let wanted = messages.saturating_mul(2).saturating_add(1_024);
    u32::try_from(wanted).unwrap_or(u32::MAX).min(shared_log::MAX_CAPACITY)
}
