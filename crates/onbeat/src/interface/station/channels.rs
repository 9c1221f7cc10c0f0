//! The channels that a station carries on an interface: from sockets of programs into its output
//! buffers, and from its input buffers into sockets of programs.
//!
//! A program that writes sends a frame into its end's socket; the station has it in its buffer
//! before it issues what comes later. What `receive` has copied goes into the sockets of readers,
//! with the instant in front of it. Each program that opens an end has a socket of its own, under
//! the descriptor that the station has from the start: its thread is told nothing, and waits for
//! nothing.

use crate::clock::{MonoTime, pause};
use crate::coordinator::client::STAMP;
use crate::coordinator::protocol::MAX_PACKET;
use crate::coordinator::socket;
use crate::coordinator::socket_queue::PacketUnit;
use onbeat_model::record::Role;
use onbeat_model::time::Span;
use onbeat_runtime::network_code::channel::{
    IncomingMessages, OutgoingMessage, OutgoingMessages, message_words,
};
use onbeat_runtime::network_code::instruction::{BufferId, Instruction};
use onbeat_runtime::network_code::program::{BufferRole, StationProgram};
use onbeat_runtime::network_code::station::Station;
use onbeat_runtime::network_code::trace::{Outcome, TraceEntry};
use onbeat_runtime::talker::ChannelParameters;
use onbeat_runtime::wire::{Frame, Header};
use rustix::event::epoll;
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::net::Shutdown;
use std::io::{self, IoSlice};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// How many talkers' sockets are looked at in one call of the kernel.
const AT_ONCE: usize = 64;
/// How many packets are taken from a talker at one look: more than one that keeps to its rate has
/// sent, and few enough for the others not to be late by it.
const PACKETS_AT_ONCE: usize = 4;

/// A host's end of a channel, in a buffer of its station.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StationEndpoint {
    /// The buffer: an output of a talker, an input of a listener.
    pub buffer: BufferId,
    /// Which end.
    pub role: Role,
    /// What both ends know of the channel.
    pub parameters: ChannelParameters,
}

/// Why a station cannot carry an end of a channel.
#[derive(Debug, thiserror::Error)]
pub enum StationEndpointError {
    /// The program has no such buffer, of that length and for that end, or another end has it.
    #[error("its station's program has no buffer for it alone: both are of one plan")]
    Buffer,
    /// The kernel does not give what is needed.
    #[error("{0}")]
    Socket(#[from] io::Error),
}

/// The program's side of an end, for whoever opens it.
#[derive(Debug)]
pub struct StationDoor {
    shared: Arc<SharedEndpoint>,
    /// Of a talker: what the station looks at, and the end's place there.
    written: Option<(Arc<OwnedFd>, u64)>,
    /// Of a listener: the octets of its packets.
    packets: Option<usize>,
}

/// What a station and the doors to it share.
#[derive(Debug)]
struct SharedEndpoint {
    ours: OwnedFd,
    theirs: OwnedFd,
    is_open: AtomicBool,
}

impl StationDoor {
    /// Opens the end for a program: its socket. Who had the end before has nothing of it any more.
    /// Not for a thread with deadlines.
    ///
    /// # Errors
    /// The kernel's.
    pub fn open(&self) -> io::Result<BorrowedFd<'_>> {
        self.close();
        let SharedEndpoint { ours, theirs, is_open } = &*self.shared;
        let pair = new_pair(self.packets)?;
        let [new_ours, new_theirs] = pair.sockets;
        put_in_place(&new_theirs, theirs)?;
        put_in_place(&new_ours, ours)?;
        if let Some((written, place)) = &self.written {
            let place = epoll::EventData::new_u64(*place);
            epoll::add(written, ours, place, epoll::EventFlags::IN)?;
        }
        is_open.store(true, Ordering::Release);
        Ok(theirs.as_fd())
    }

    /// No program has it any more: what it wrote is still taken, what comes is not kept. Not for a
    /// thread with deadlines.
    pub fn close(&self) {
        let SharedEndpoint { ours, is_open, .. } = &*self.shared;
        if !is_open.swap(false, Ordering::AcqRel) {
            return;
        }
        let Some((written, _)) = &self.written else {
            let _ = rustix::net::shutdown(ours, Shutdown::Both);
            return;
        };
        let _ = rustix::net::shutdown(ours, Shutdown::Read);
        // A station looks after some milliseconds at the latest; one that has ended, never.
        for _ in 0..DRAIN_LOOKS {
            if rustix::io::ioctl_fionread(ours).is_ok_and(|left| left == 0) {
                break;
            }
            pause(DRAIN_LOOK);
        }
        let _ = epoll::delete(written, ours);
    }
}

/// How often it is looked whether a station has taken all that a program wrote, and when again.
const DRAIN_LOOKS: u32 = 50;
const DRAIN_LOOK: Span = Span::from_ms(1);

/// A station's socket and a program's, and of a listener what its packets count.
struct EndpointPair {
    sockets: [OwnedFd; 2],
    unit: Option<PacketUnit>,
}

fn new_pair(packets: Option<usize>) -> io::Result<EndpointPair> {
    let (theirs, ours) = socket::pair()?;
    let unit = packets.map(|octets| PacketUnit::new(&ours, theirs.as_fd(), octets)).transpose()?;
    Ok(EndpointPair { sockets: [ours, theirs], unit })
}

/// Makes the number of one descriptor mean another socket, at once for all threads that use it.
fn put_in_place(new: &OwnedFd, place: &OwnedFd) -> io::Result<()> {
    // SAFETY: both are open, and stay so; no memory is involved.
    let put = unsafe { libc::dup3(new.as_raw_fd(), place.as_raw_fd(), libc::O_CLOEXEC) };
    if put < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The channels of a station.
#[derive(Debug)]
pub(super) struct StationChannels {
    ends: Vec<CarriedEndpoint>,
    /// Of the talkers' sockets, each with its place in `ends`.
    written: Arc<OwnedFd>,
    counters: ChannelCounters,
}

/// What became of messages between programs and their station.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChannelCounters {
    /// Messages that another one replaced before the station could send them.
    pub replaced: u64,
    /// Packets of programs that were no messages of their channels.
    pub malformed: u64,
    /// Messages that had come and were dropped, because their reader's queue was full.
    pub overflowed: u64,
}

/// A message that has come to a reader's queue, or that was dropped there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StationDelivery {
    /// When.
    pub at: MonoTime,
    /// The lower 32 bits of its capture time (avtp_timestamp, IEEE 1722-2016 4.4.4.8).
    pub timestamp: u32,
    /// Its number (sequence_num, there 4.4.4.6, with the octet of a channel).
    pub number: u16,
}

/// What was delivered to a listener, and what of it dropped from its queue, in their order.
#[derive(Debug, Default)]
pub struct StationDeliveries {
    /// To the queue, or for a program that was not there.
    pub delivered: Vec<StationDelivery>,
    /// From the queue.
    pub dropped: Vec<StationDelivery>,
    /// How many there was no room for in these lists.
    pub more: u64,
}

#[derive(Debug)]
struct CarriedEndpoint {
    of: StationEndpoint,
    shared: Arc<SharedEndpoint>,
    messages: Messages,
}

#[derive(Debug)]
enum Messages {
    Out(OutgoingMessages<()>),
    In(Box<Incoming>),
}

#[derive(Debug)]
struct Incoming {
    messages: IncomingMessages,
    unit: PacketUnit,
    deliveries: StationDeliveries,
}

impl StationChannels {
    /// None.
    pub(super) fn new() -> io::Result<Self> {
        let written = Arc::new(epoll::create(epoll::CreateFlags::CLOEXEC)?);
        Ok(Self { ends: Vec::new(), written, counters: ChannelCounters::default() })
    }

    /// Of a program, in addition to those that there are. Keeps so many deliveries of each.
    pub(super) fn carry(
        &mut self,
        program: &StationProgram,
        ends: &[StationEndpoint],
        deliveries: usize,
    ) -> Result<Vec<StationDoor>, (usize, StationEndpointError)> {
        let mut carry = |of: &StationEndpoint| -> Result<StationDoor, StationEndpointError> {
            if self.ends.iter().any(|end| end.of.buffer == of.buffer) {
                return Err(StationEndpointError::Buffer);
            }
            let (end, packets) = endpoint(program, *of, deliveries)?;
            let place = self.ends.len() as u64;
            let is_talker = of.role == Role::Talker;
            let written = is_talker.then(|| (Arc::clone(&self.written), place));
            let door = StationDoor { shared: Arc::clone(&end.shared), written, packets };
            self.ends.push(end);
            Ok(door)
        };
        let doors = ends.iter().enumerate();
        doors.map(|(at, of)| carry(of).map_err(|error| (at, error))).collect()
    }

    pub(super) fn counters(&self) -> ChannelCounters {
        self.counters
    }

    /// What was delivered through a buffer; it is kept no longer.
    pub(super) fn deliveries(&mut self, buffer: BufferId) -> StationDeliveries {
        let end = self.ends.iter_mut().find(|end| end.of.buffer == buffer);
        match end.map(|end| &mut end.messages) {
            Some(Messages::In(incoming)) => std::mem::take(&mut incoming.deliveries),
            _ => StationDeliveries::default(),
        }
    }

    /// Takes what programs have written up to now. Real-time: a system call, and two for each
    /// program that has written; allocates nothing.
    pub(super) fn take_written(&mut self, station: &mut Station) -> io::Result<()> {
        if self.ends.is_empty() {
            return Ok(());
        }
        let mut events = [std::mem::MaybeUninit::uninit(); AT_ONCE];
        let at_once = rustix::time::Timespec { tv_sec: 0, tv_nsec: 0 };
        // What has not been looked at comes first the next time.
        for _ in 0..self.ends.len().div_ceil(AT_ONCE) {
            let ready = match epoll::wait(&*self.written, &mut events, Some(&at_once)) {
                Ok((ready, _)) => ready,
                Err(rustix::io::Errno::INTR) => return Ok(()),
                Err(error) => return Err(error.into()),
            };
            for event in &*ready {
                if let Some(end) = self.ends.get_mut(event.data.u64() as usize) {
                    end.take_written(station, &mut self.counters);
                }
            }
            if ready.len() < AT_ONCE {
                return Ok(());
            }
        }
        Ok(())
    }

    /// The station has carried out an instruction. Real-time: at most some system calls; allocates
    /// nothing.
    pub(super) fn done(&mut self, entry: TraceEntry, station: &mut Station) {
        let word = station.program().word(entry.address).map(Instruction::decode);
        match (word, entry.outcome) {
            (Some(Ok(Instruction::Create { buffer })), Outcome::Done) => {
                let Some(end) = self.ends.iter_mut().find(|end| end.of.buffer == buffer) else {
                    return;
                };
                if let Messages::Out(messages) = &mut end.messages
                    && messages.created().is_some_and(|created| created.has_next)
                {
                    write(station, buffer, messages.words());
                }
            }
            (Some(Ok(Instruction::Receive { buffer, .. })), Outcome::Received(true)) => {
                let words = station.read(buffer).unwrap_or_default();
                if let Some(end) = self.ends.iter_mut().find(|end| end.of.buffer == buffer) {
                    end.deliver(words, &mut self.counters);
                }
            }
            _ => {}
        }
    }
}

/// An end, and the octets of a listener's packets.
fn endpoint(
    program: &StationProgram,
    of: StationEndpoint,
    deliveries: usize,
) -> Result<(CarriedEndpoint, Option<usize>), StationEndpointError> {
    let role = match of.role {
        Role::Talker => BufferRole::Output,
        Role::Listener => BufferRole::Input,
    };
    let words = message_words(&of.parameters);
    let buffer = program.buffer(of.buffer);
    if !buffer.is_some_and(|buffer| buffer.role == role && buffer.words == words) {
        return Err(StationEndpointError::Buffer);
    }
    let packets = (of.role == Role::Listener).then(|| STAMP + of.parameters.frame_octets());
    let EndpointPair { sockets: [ours, theirs], unit } = new_pair(packets)?;
    let messages = match unit {
        None => Messages::Out(OutgoingMessages::new(&of.parameters)),
        Some(unit) => {
            let messages = IncomingMessages::new(of.parameters);
            let deliveries = StationDeliveries::with_room(deliveries);
            Messages::In(Box::new(Incoming { messages, unit, deliveries }))
        }
    };
    let shared = Arc::new(SharedEndpoint { ours, theirs, is_open: AtomicBool::new(false) });
    Ok((CarriedEndpoint { of, shared, messages }, packets))
}

impl StationDeliveries {
    /// Written to, so that the memory is there when it is needed.
    fn with_room(count: usize) -> Self {
        let none = StationDelivery { at: MonoTime::from_ns(1), timestamp: 1, number: 1 };
        let list = || {
            let mut list = vec![none; count];
            list.clear();
            list
        };
        Self { delivered: list(), dropped: list(), more: 0 }
    }

    /// Notes a frame in one of the lists.
    fn note(list: &mut Vec<StationDelivery>, more: &mut u64, at: MonoTime, frame: &[u8]) {
        let Ok(frame) = Frame::parse(frame) else { return };
        if list.len() == list.capacity() {
            *more += 1;
            return;
        }
        let Header { timestamp, number, .. } = frame.header;
        list.push(StationDelivery { at, timestamp, number });
    }
}

/// Writes a buffer, whose length was looked at when the end was made.
fn write(station: &mut Station, buffer: BufferId, words: &[u32]) {
    let written = station.write(buffer, words);
    debug_assert_eq!(written, Ok(()));
}

impl CarriedEndpoint {
    fn take_written(&mut self, station: &mut Station, counters: &mut ChannelCounters) {
        let Messages::Out(messages) = &mut self.messages else { return };
        let mut packet = [0; MAX_PACKET];
        for _ in 0..PACKETS_AT_ONCE {
            // None also when the end is being closed, and all is taken.
            let Ok(Some(length)) = socket::try_receive(&self.shared.ours, &mut packet) else {
                return;
            };
            let frame = packet.get(..length).unwrap_or_default();
            let is_its = is_of(&self.of.parameters, frame);
            match is_its.then(|| messages.write(frame, ())).flatten() {
                Some(OutgoingMessage::InBuffer) => {
                    write(station, self.of.buffer, messages.words());
                }
                Some(OutgoingMessage::Waits) => {}
                Some(OutgoingMessage::Replaces) => counters.replaced += 1,
                None => counters.malformed += 1,
            }
        }
    }

    fn deliver(&mut self, words: &[u32], counters: &mut ChannelCounters) {
        let Messages::In(incoming) = &mut self.messages else { return };
        let Incoming { messages, unit, deliveries } = &mut **incoming;
        // Whether or not a program reads: what comes again is no message to one that opens the end
        // next.
        let Some(frame) = messages.receive(words) else { return };
        let now = MonoTime::now();
        let StationDeliveries { delivered, dropped, more } = deliveries;
        StationDeliveries::note(delivered, more, now, frame);
        let SharedEndpoint { ours, theirs, is_open } = &*self.shared;
        if !is_open.load(Ordering::Acquire) {
            return;
        }
        let stamp = now.as_ns().to_le_bytes();
        let parts = [IoSlice::new(&stamp), IoSlice::new(frame)];
        // A reader that is gone has what is left unread, as one that does not come for it.
        let _ = unit.push([ours, theirs], &parts, |packet| {
            counters.overflowed += 1;
            let frame = packet.get(STAMP..).unwrap_or_default();
            StationDeliveries::note(dropped, more, now, frame);
        });
    }
}

/// Whether octets are a frame of a channel.
fn is_of(parameters: &ChannelParameters, octets: &[u8]) -> bool {
    let is_its = |frame: Frame<'_>| {
        frame.header.stream_id == parameters.stream_id
            && frame.payload.len() == parameters.stream_data_length().get() as usize
            && frame.header.r_tag.is_some() == parameters.replicated
    };
    octets.len() == parameters.frame_octets() && Frame::parse(octets).is_ok_and(is_its)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A listener's door, with which a station would send packets of 84 octets.
    pub(in crate::interface::station) fn door() -> StationDoor {
        let packets = Some(84);
        let EndpointPair { sockets: [ours, theirs], .. } = new_pair(packets).expect("a pair");
        let shared = Arc::new(SharedEndpoint { ours, theirs, is_open: AtomicBool::new(false) });
        StationDoor { shared, written: None, packets }
    }

    impl StationDoor {
        /// What its station does with a message.
        pub(in crate::interface::station) fn push(&self, packet: &[u8]) -> io::Result<bool> {
            socket::try_send(&self.shared.ours, &[IoSlice::new(packet)])
        }
    }
}
