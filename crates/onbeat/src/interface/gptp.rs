//! A gPTP node on the machine's interfaces, with the kernel's time stamps: the protocol of
//! `onbeat_runtime::gptp`, AF_PACKET sockets and CLOCK_REALTIME as the node's own clock. It reads
//! the machine's clock and never sets it: the synchronised time is a line over it.
//!
//! CLOCK_REALTIME must not be stepped meanwhile; a clock daemon that slews it looks like wander.

use crate::interface::network_clock::realtime;
use crate::interface::{Interface, packet, sent_stamp, socket};
use onbeat_model::time::Span;
use onbeat_model::units::MacAddress;
use onbeat_runtime::gptp::{
    Action, ClockIdentity, DESTINATION, ETHERTYPE, Event, LocalClockTime, PtpInstance, PtpTime,
    ScaledNs, Settings, SystemIdentity, TimestampId,
};
use onbeat_runtime::wire::{ETHERNET, Ethernet};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::OwnedFd;
use std::collections::VecDeque;
use std::io::{self, IoSliceMut};

/// The longest frame that is received.
const FRAME_MAX: usize = ETHERNET + onbeat_runtime::gptp::message::MAX_MESSAGE;
/// Frames whose departure may be unknown yet, per port. The kernel notes each when it has left.
const UNDER_WAY: usize = 32;
/// Frames and notes that are taken from a socket before the node's timers get their turn.
const AT_ONCE: usize = 64;

/// Why a node does not start, or does not continue.
#[derive(Debug, thiserror::Error)]
pub enum GptpError {
    /// An interface cannot be used.
    #[error("interface `{interface}`: {step}: {error}")]
    Interface {
        /// Its name.
        interface: String,
        /// What was being done.
        step: &'static str,
        /// What the system said.
        error: io::Error,
    },
    /// There is no interface, or there are too many.
    #[error("a gPTP node has 1 to 1,024 interfaces, not {0}")]
    Interfaces(usize),
}

/// One interface.
#[derive(Debug)]
struct GptpPort {
    interface: Interface,
    socket: OwnedFd,
    /// The number that the kernel gives to the next frame.
    number: u32,
    under_way: VecDeque<(u32, TimestampId)>,
}

/// A node on interfaces. Not for real-time paths: allocates.
#[derive(Debug)]
pub struct GptpNode {
    node: PtpInstance,
    ports: Vec<GptpPort>,
}

impl GptpNode {
    /// A node on these interfaces; its identity is the first one's address. `adapt` may change the
    /// settings that a clock of unknown quality has.
    ///
    /// # Errors
    /// When an interface is not there, or this process may not open packet sockets.
    pub fn open(
        interfaces: &[&str],
        priority1: u8,
        adapt: impl FnOnce(&mut Settings),
    ) -> Result<Self, GptpError> {
        let ports: Vec<_> =
            interfaces.iter().map(|name| GptpPort::open(name)).collect::<Result<_, _>>()?;
        let count = ports.len();
        let first = ports.first().filter(|_| count <= onbeat_runtime::gptp::instance::MAX_PORTS);
        let identity = first.ok_or(GptpError::Interfaces(count))?.interface.address;
        let system = SystemIdentity::unknown(priority1, ClockIdentity::from(identity));
        let mut settings = Settings::new(system);
        // This clock shows UTC, gPTP distributes TAI.
        settings.ahead = Span::from_s(onbeat_runtime::gptp::UTC_OFFSET_S.into());
        adapt(&mut settings);
        Ok(Self { node: PtpInstance::new(settings, count, now()), ports })
    }

    /// The protocol's state.
    pub fn node(&self) -> &PtpInstance {
        &self.node
    }

    /// What the synchronised clock reads, and CLOCK_REALTIME at that instant, if it was ever set.
    pub fn read(&self) -> Option<(PtpTime, LocalClockTime)> {
        let now = now();
        self.node.read(now).map(|reading| (reading, now))
    }

    /// Waits until something happens, at most for `patience`, and does what it asks for.
    ///
    /// # Errors
    /// When an interface does not receive any more, for another reason than that it is down.
    pub fn step(&mut self, patience: Span) -> Result<(), GptpError> {
        let due = (self.node.next_timeout() - now()).span() + Span::from_ns(1);
        let wait = patience.min(due);
        if wait > Span::ZERO {
            self.wait(wait);
        }
        for port in 0..self.ports.len() {
            for _ in 0..AT_ONCE {
                if !self.take_note(port)? && !self.take_frame(port)? {
                    break;
                }
            }
        }
        let actions = self.node.handle(now(), Event::Timeout);
        self.act(actions);
        Ok(())
    }

    fn wait(&self, wait: Span) {
        // Notes in an error queue are reported without being asked for.
        let mut set: Vec<_> =
            self.ports.iter().map(|p| PollFd::new(&p.socket, PollFlags::IN)).collect();
        // Interrupted is as good: the caller's loop looks again.
        let _ = poll(&mut set, crate::clock::timeout(wait).as_ref());
    }

    /// Takes a note of a frame's departure, if there is one.
    fn take_note(&mut self, index: usize) -> Result<bool, GptpError> {
        let port = &mut self.ports[index];
        let taken = sent_stamp::take(&port.socket);
        let Some(note) = taken.or_else(unless_down).map_err(|error| port.failed(error))? else {
            return Ok(false);
        };
        let Some(note) = note else { return Ok(true) };
        // Notes come in order; frames without one were lost.
        while let Some((number, timestamp_id)) = port.under_way.pop_front() {
            if number == note.number {
                let Some(at) = note.at.software else { break };
                let stamp = LocalClockTime::from_ns(at);
                let actions =
                    self.node.handle(now(), Event::Sent { port: index, timestamp_id, stamp });
                self.act(actions);
                break;
            }
            if number.wrapping_sub(note.number) < 1 << 31 {
                port.under_way.push_front((number, timestamp_id));
                break;
            }
        }
        Ok(true)
    }

    /// Takes a frame, if there is one.
    fn take_frame(&mut self, index: usize) -> Result<bool, GptpError> {
        let port = &mut self.ports[index];
        let mut frame = [0; FRAME_MAX];
        let parts = &mut [IoSliceMut::new(&mut frame)];
        let (got, stamp) = socket::receive(&port.socket, parts, libc::MSG_DONTWAIT, None);
        let got = socket::unless_none(got).or_else(unless_down);
        let Some(length) = got.map_err(|error| port.failed(error))? else { return Ok(false) };
        let stamp = stamp.and_then(|stamp| stamp.software).map(LocalClockTime::from_ns);
        if let Ok((_, octets)) = Ethernet::parse(&frame[..length]) {
            let event = Event::Received { port: index, octets, stamp };
            let actions = self.node.handle(now(), event);
            self.act(actions);
        }
        Ok(true)
    }

    fn act(&mut self, actions: Vec<Action>) {
        for action in actions {
            if let Action::Send { port, octets, timestamp_id } = action {
                self.ports[port].send(&octets, timestamp_id);
            }
        }
    }
}

impl GptpPort {
    fn open(name: &str) -> Result<Self, GptpError> {
        let failed =
            |step| move |error| GptpError::Interface { interface: name.to_owned(), step, error };
        let interface = Interface::named(name).map_err(failed("looking it up"))?;
        let socket = packet::open().map_err(failed("opening a packet socket"))?;
        sent_stamp::note_both_ways(&socket).map_err(failed("asking for time stamps"))?;
        let one: i32 = 1;
        crate::interface::option::set(
            &socket,
            libc::SOL_PACKET,
            libc::PACKET_IGNORE_OUTGOING,
            &one,
        )
        .map_err(failed("leaving out what it sends itself"))?;
        packet::join(&socket, &interface, MacAddress(DESTINATION))
            .map_err(failed("joining gPTP's group"))?;
        packet::bind(&socket, &interface, ETHERTYPE).map_err(failed("binding a socket to it"))?;
        Ok(Self { interface, socket, number: 0, under_way: VecDeque::with_capacity(UNDER_WAY) })
    }

    fn failed(&self, error: io::Error) -> GptpError {
        let interface = self.interface.name.clone();
        GptpError::Interface { interface, step: "receiving", error }
    }

    /// Sends; what an interface does not take is lost, as on a wire, and the protocol asks again.
    fn send(&mut self, octets: &[u8], timestamp_id: Option<TimestampId>) {
        let mut frame = vec![0; ETHERNET + octets.len()];
        let (destination, source) = (MacAddress(DESTINATION), self.interface.address);
        let ethernet = Ethernet { destination, source, ethertype: ETHERTYPE };
        ethernet.emit(&mut frame).copy_from_slice(octets);
        if rustix::net::send(&self.socket, &frame, rustix::net::SendFlags::DONTWAIT).is_err() {
            // Whether the kernel has counted it is not known: count from 0 again.
            self.under_way.clear();
            self.number = 0;
            let _ = sent_stamp::note_both_ways(&self.socket);
            return;
        }
        if let Some(timestamp_id) = timestamp_id {
            if self.under_way.len() == UNDER_WAY {
                self.under_way.pop_front();
            }
            self.under_way.push_back((self.number, timestamp_id));
        }
        self.number = self.number.wrapping_add(1);
    }
}

/// A socket tells once that its interface went down; what comes next may be better.
fn unless_down<T>(error: io::Error) -> io::Result<Option<T>> {
    if error.raw_os_error() == Some(libc::ENETDOWN) { Ok(None) } else { Err(error) }
}

/// Now, by the clock of the time stamps.
fn now() -> LocalClockTime {
    LocalClockTime::from_epoch(ScaledNs::from_ns(realtime()))
}
