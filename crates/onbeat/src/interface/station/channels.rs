//! The channels that a station carries on an interface: from sockets of programs into its output
//! buffers, and from its input buffers into sockets of programs.
//!
//! A program that writes sends a frame into its end's socket; the station has it in its buffer
//! before it issues what comes later. What `receive` has copied goes into the sockets of readers,
//! in front of it when that was. The sockets are there from the start, whoever has the other side.

use crate::clock::MonoTime;
use crate::coordinator::client::STAMP;
use crate::coordinator::protocol::MAX_PACKET;
use crate::coordinator::socket;
use crate::coordinator::socket_queue::SocketQueue;
use onbeat_model::record::Role;
use onbeat_runtime::network_code::channel::{
    IncomingMessages, OutgoingMessage, OutgoingMessages, message_words,
};
use onbeat_runtime::network_code::instruction::{BufferId, Instruction};
use onbeat_runtime::network_code::program::{BufferRole, StationProgram};
use onbeat_runtime::network_code::station::Station;
use onbeat_runtime::network_code::trace::{Outcome, TraceEntry};
use onbeat_runtime::talker::ChannelParameters;
use onbeat_runtime::wire::Frame;
use rustix::event::epoll;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::io::{self, IoSlice};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// How many talkers' sockets are looked at in one call of the kernel.
const AT_ONCE: usize = 64;
/// How many frames are taken from a talker before the program continues: more than any that keeps
/// to its rate has sent, and fewer than would make the station late.
const FRAMES_AT_ONCE: usize = 16;

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
    socket: OwnedFd,
    is_open: Arc<AtomicBool>,
}

impl StationDoor {
    /// Opens the end for a program: nothing is in its socket that came before. Allocates nothing.
    pub fn open(&self) -> BorrowedFd<'_> {
        let mut packet = [0; MAX_PACKET];
        while let Ok(Some(_)) = socket::try_receive(&self.socket, &mut packet) {}
        self.is_open.store(true, Ordering::Release);
        self.socket.as_fd()
    }

    /// No program has it any more: what comes is not kept.
    pub fn close(&self) {
        self.is_open.store(false, Ordering::Release);
    }
}

/// The channels of a station.
#[derive(Debug)]
pub(super) struct StationChannels {
    ends: Vec<CarriedEndpoint>,
    /// Of the talkers' sockets, each with its place in `ends`.
    written: OwnedFd,
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

#[derive(Debug)]
struct CarriedEndpoint {
    of: StationEndpoint,
    ours: OwnedFd,
    is_open: Arc<AtomicBool>,
    messages: Messages,
}

#[derive(Debug)]
enum Messages {
    Out(OutgoingMessages<()>),
    In(Box<IncomingMessages>, SocketQueue),
}

impl StationChannels {
    /// None.
    pub(super) fn new() -> io::Result<Self> {
        let written = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        Ok(Self { ends: Vec::new(), written, counters: ChannelCounters::default() })
    }

    /// Of a program, in addition to those that there are.
    pub(super) fn carry(
        &mut self,
        program: &StationProgram,
        ends: &[StationEndpoint],
    ) -> Result<Vec<StationDoor>, (usize, StationEndpointError)> {
        let mut carry = |of: &StationEndpoint| -> Result<StationDoor, StationEndpointError> {
            if self.ends.iter().any(|end| end.of.buffer == of.buffer) {
                return Err(StationEndpointError::Buffer);
            }
            let (end, door) = endpoint(program, *of)?;
            if of.role == Role::Talker {
                let place = epoll::EventData::new_u64(self.ends.len() as u64);
                epoll::add(&self.written, &end.ours, place, epoll::EventFlags::IN)
                    .map_err(io::Error::from)?;
            }
            self.ends.push(end);
            Ok(door)
        };
        let doors = ends.iter().enumerate();
        doors.map(|(at, of)| carry(of).map_err(|error| (at, error))).collect()
    }

    pub(super) fn counters(&self) -> ChannelCounters {
        self.counters
    }

    /// Takes what programs have written up to now. Real-time: a system call, and one for each
    /// message; allocates nothing.
    pub(super) fn take_written(&mut self, station: &mut Station) -> io::Result<()> {
        if self.ends.is_empty() {
            return Ok(());
        }
        let mut events = [std::mem::MaybeUninit::uninit(); AT_ONCE];
        let at_once = rustix::time::Timespec { tv_sec: 0, tv_nsec: 0 };
        let ready = match epoll::wait(&self.written, &mut events, Some(&at_once)) {
            Ok((ready, _)) => ready,
            Err(rustix::io::Errno::INTR) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        for event in ready {
            if let Some(end) = self.ends.get_mut(event.data.u64() as usize) {
                end.take_written(station, &mut self.counters);
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

fn endpoint(
    program: &StationProgram,
    of: StationEndpoint,
) -> Result<(CarriedEndpoint, StationDoor), StationEndpointError> {
    let role = match of.role {
        Role::Talker => BufferRole::Output,
        Role::Listener => BufferRole::Input,
    };
    let words = message_words(&of.parameters);
    let buffer = program.buffer(of.buffer);
    if !buffer.is_some_and(|buffer| buffer.role == role && buffer.words == words) {
        return Err(StationEndpointError::Buffer);
    }
    let (theirs, ours) = socket::pair()?;
    let messages = match of.role {
        Role::Talker => Messages::Out(OutgoingMessages::new(&of.parameters)),
        Role::Listener => {
            // A station's frame says by its message whose it is.
            let source = of.parameters.talker_address.unwrap_or(of.parameters.source);
            let parameters = ChannelParameters { source, ..of.parameters };
            let octets = STAMP + parameters.frame_octets();
            let queue = SocketQueue::new(&ours, theirs.as_fd(), octets)?;
            Messages::In(Box::new(IncomingMessages::new(parameters)), queue)
        }
    };
    let is_open = Arc::new(AtomicBool::new(false));
    let door = StationDoor { socket: theirs, is_open: Arc::clone(&is_open) };
    Ok((CarriedEndpoint { of, ours, is_open, messages }, door))
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
        for _ in 0..FRAMES_AT_ONCE {
            // It is never closed: its other side is kept for programs to come.
            let Ok(Some(length)) = socket::try_receive(&self.ours, &mut packet) else { return };
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
        let Messages::In(messages, queue) = &mut self.messages else { return };
        // Whether or not somebody reads: what comes again is no message to who opens the end next.
        let Some(frame) = messages.receive(words) else { return };
        if !self.is_open.load(Ordering::Acquire) {
            return;
        }
        let stamp = MonoTime::now().as_ns().to_le_bytes();
        let parts = [IoSlice::new(&stamp), IoSlice::new(frame)];
        let mut overflowed = 0;
        let pushed = queue.push(&self.ours, &parts, |_| overflowed += 1);
        counters.overflowed += overflowed + u64::from(pushed.is_err());
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

    /// A door, and what is behind it.
    pub(in crate::interface::station) fn door() -> (StationDoor, OwnedFd) {
        let (socket, ours) = socket::pair().expect("a pair");
        (StationDoor { socket, is_open: Arc::default() }, ours)
    }
}
