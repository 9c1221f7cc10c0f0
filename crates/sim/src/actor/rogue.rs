//! An actor that speaks the protocol of the run wrongly: octet by octet, past the library.

use super::log::ActorLog;
use super::{hang, process};
use crate::script::{Misdeed, ProtocolState, name};
use onbeat::coordinator::protocol::ENVIRONMENT;
use onbeat::coordinator::socket;
use rustix::fd::{AsFd, OwnedFd};
use rustix::net::Shutdown;
use std::fs::File;
use std::io::IoSlice;

/// The version of the protocol that a rogue means to speak.
const VERSION: u16 = onbeat::coordinator::protocol::VERSION;
/// Longer than any answer.
const ANSWER: usize = 4_096;
/// What an answer begins with: two times.
const TIMES: usize = 16;
/// The number of the answer with which a run says that it is over.
const STOPPED: u8 = 8;

/// An end that a rogue has opened.
struct Opened {
    end: u32,
    talker: bool,
    size: usize,
    memory: Option<OwnedFd>,
    /// As the answer has them: destination, source, stream.
    addresses: Vec<u8>,
}

struct Rogue<'a> {
    log: &'a ActorLog,
    socket: OwnedFd,
    ends: Vec<Opened>,
    /// Whether the run has said that it is over, or is gone.
    over: bool,
}

/// Acts until it exits with 0, or is killed.
pub(super) fn act(log: &ActorLog, at: ProtocolState, how: &Misdeed) {
    let value = std::env::var(ENVIRONMENT).unwrap_or_default();
    let Some(number) = value.split(':').next().and_then(|number| number.parse().ok()) else {
        return;
    };
    let socket = process::inherited(number);
    let mut rogue = Rogue { log, socket, ends: Vec::new(), over: false };
    if rogue.come_to(at).is_none() {
        log.say(0, None, format_args!("error rogue it did not come to {}", name(&at)));
        return;
    }
    log.say(0, None, format_args!("misdeed {}", name(how)));
    rogue.misdeed(how);
    log.say(0, None, format_args!("end 0"));
}

impl Rogue<'_> {
    fn tell(&self, packet: &[u8]) -> bool {
        socket::send(&self.socket, &[IoSlice::new(packet)]).is_ok()
    }

    /// An answer without its times, and what came with it.
    fn hear(&mut self) -> Option<(Vec<u8>, Vec<OwnedFd>)> {
        let mut packet = vec![0; ANSWER];
        let got = socket::receive_with(&self.socket, &mut packet).ok().flatten();
        let Some((length, with)) = got.filter(|(length, _)| *length > TIMES) else {
            self.over = true;
            return None;
        };
        self.over |= packet[TIMES] == STOPPED;
        Some((packet[TIMES..length].to_vec(), with))
    }

    fn ask(&mut self, packet: &[u8]) -> Option<(Vec<u8>, Vec<OwnedFd>)> {
        self.tell(packet).then(|| self.hear()).flatten()
    }

    fn come_to(&mut self, at: ProtocolState) -> Option<()> {
        if at == ProtocolState::Door {
            return Some(());
        }
        let (_, with) = self.ask(&hello(VERSION))?;
        // Its socket; in virtual time, memory comes behind it.
        self.socket = with.into_iter().next()?;
        if at == ProtocolState::Greeted {
            return Some(());
        }
        self.ask(&with_u32(15, std::process::id()))?;
        if at == ProtocolState::Begun {
            return Some(());
        }
        self.open_all();
        if at == ProtocolState::Opened {
            return Some(());
        }
        self.ask(&[3])?;
        self.ask(&with_i64(4, 3_000_000))?;
        Some(())
    }

    /// Opens what the file beside its script names: a role, a size and a channel a line.
    fn open_all(&mut self) {
        let own = std::env::args().next_back().unwrap_or_default();
        let wanted = std::fs::read_to_string(format!("{own}.ends")).unwrap_or_default();
        for line in wanted.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let [role, size, channel] = words[..] else { continue };
            let (talker, size) = (role == "talker", size.parse().unwrap_or(0));
            let mut packet = vec![2, u8::from(talker)];
            packet.extend(u32::to_le_bytes(size));
            packet.extend(channel.bytes());
            let Some((answer, with)) = self.ask(&packet) else { return };
            // The end, its starts, last capture, deadline, lifespan and capacity; then the channel.
            if answer.first() == Some(&3) && answer.len() > 57 {
                let end = u32::from_le_bytes([answer[1], answer[2], answer[3], answer[4]]);
                let addresses = answer[37..57].to_vec();
                let (memory, size) = (with.into_iter().next(), size as usize);
                self.ends.push(Opened { end, talker, size, memory, addresses });
            }
        }
    }

    fn misdeed(&mut self, how: &Misdeed) {
        let more = match how {
            Misdeed::Silent => hang(),
            Misdeed::Vanish => return,
            Misdeed::Stay => {
                // Closes its socket by putting another in its place.
                self.socket = File::open("/dev/null").map_or_else(|_| unreachable!(), Into::into);
                hang()
            }
            Misdeed::HalfClose { write } => {
                let how = if *write { Shutdown::Write } else { Shutdown::Read };
                let _ = rustix::net::shutdown(&self.socket, how);
                return;
            }
            Misdeed::Scribble { octets } => self.scribble(*octets),
            Misdeed::Shrink => self.shrink(),
            Misdeed::Descriptors { count } => self.descriptors(*count),
            Misdeed::Threads { count } => self.threads(*count),
            Misdeed::Deaf { count } => (0..*count).all(|_| self.tell(&patience(11, 0, 0))),
            Misdeed::Flood { count } => (0..*count).all(|_| self.tell(&with_i64(13, 7))),
            Misdeed::Excess { count } => self.excess(*count),
            Misdeed::SpeakAfterBye => {
                let _ = self.tell(&[10]) && self.tell(&with_i64(4, 5)) && self.tell(&[10]);
                return;
            }
            Misdeed::StartTwice => self.tell(&[3]) && self.tell(&[3]),
            other => self.tell(&packet(other, self.ends.first().map_or(0, |own| own.end))),
        };
        // It hears what the run says, and stays until the run is over.
        while more && !self.over {
            if self.ask(&with_i64(4, i64::MAX)).is_none() {
                return;
            }
        }
    }

    fn scribble(&self, octets: usize) -> bool {
        let nonsense: Vec<u8> = (0..octets).map(|at| (at * 167 + 13) as u8).collect();
        for own in &self.ends {
            let Some(memory) = &own.memory else { continue };
            let _ = rustix::io::pwrite(memory, &nonsense, 0);
        }
        true
    }

    fn shrink(&self) -> bool {
        for own in &self.ends {
            let Some(memory) = &own.memory else { continue };
            let shrunk = rustix::fs::ftruncate(memory, 0);
            self.log.say(0, None, format_args!("shrunk {}", shrunk.is_ok()));
        }
        true
    }

    fn descriptors(&self, count: usize) -> bool {
        let own = self.socket.as_fd();
        let with = vec![own; count.min(2)];
        socket::try_send_with(&self.socket, &with_i64(13, 7), &with).unwrap_or(false)
    }

    fn threads(&mut self, count: u32) -> bool {
        (0..count).all(|_| self.ask(&[8]).is_some())
    }

    /// Frames of its channel, one after the other, all at one instant.
    fn excess(&mut self, count: u32) -> bool {
        let talkers = self.ends.iter().filter(|own| own.talker);
        let frames: Vec<Vec<u8>> = talkers.map(|own| own.frame()).collect();
        for number in 0..count {
            for frame in &frames {
                let mut frame = frame.clone();
                // The lower part of its number and of its capture time.
                (frame[5 + 20], frame[5 + 33]) = (number as u8, number as u8);
                if !self.tell(&frame) {
                    return false;
                }
            }
        }
        true
    }
}

impl Opened {
    /// A request to send a message of the channel: as docs/channels.md has the frame.
    fn frame(&self) -> Vec<u8> {
        let mut packet = with_u32(6, self.end);
        let (destination, rest) = self.addresses.split_at(6);
        let (source, stream) = rest.split_at(6);
        packet.extend_from_slice(destination);
        packet.extend_from_slice(source);
        packet.extend([0x81, 0, 0x60, 2, 0x22, 0xf0, 0x7f, 0x81, 0, 0]);
        // The protocol is little endian, a frame is not.
        packet.extend(stream.iter().rev());
        packet.extend([0; 8]);
        packet.extend((self.size as u16).to_be_bytes());
        packet.extend([1, 0]);
        packet.extend(std::iter::repeat_n(0xa5, self.size));
        packet.resize(packet.len().max(5 + 64), 0);
        packet
    }
}

/// What a rogue says that needs no more than saying.
fn packet(how: &Misdeed, own: u32) -> Vec<u8> {
    match *how {
        Misdeed::Garbage { octets } => (0..octets).map(|at| (at * 89 + octets) as u8).collect(),
        Misdeed::Oversized { octets } => vec![0xee; octets],
        Misdeed::Truncated { request } => {
            let mut packet = plain(request);
            packet.pop();
            packet
        }
        Misdeed::Trailing { request } => {
            let mut packet = plain(request);
            packet.push(0);
            packet
        }
        Misdeed::Unknown { request } => vec![request, 1, 2, 3],
        Misdeed::Version { version } => hello(version),
        Misdeed::HelloAgain => hello(VERSION),
        Misdeed::BeginAgain => with_u32(15, 1),
        Misdeed::Premature => with_i64(4, 1_000),
        Misdeed::ForeignEnd { request, end } => match request {
            7 => patience_of(with_u32(7, end)),
            11 => [patience(11, 0, 0), end.to_le_bytes().to_vec()].concat(),
            _ => with_u32(request, end),
        },
        Misdeed::WrongFrame { octets } => [with_u32(6, own), vec![0x22; octets]].concat(),
        Misdeed::Extreme { request: 5, value } => work(value),
        Misdeed::Extreme { request: 7, value } => {
            [with_u32(7, own), patience(1, 1, value)[1..].to_vec()].concat()
        }
        Misdeed::Extreme { request: 12, value } => {
            [with_i64(12, value), patience(1, 1, value)[1..].to_vec(), vec![0xff; 4]].concat()
        }
        Misdeed::Extreme { request: 11, value } => patience(11, 1, value),
        Misdeed::Extreme { request, value } => with_i64(request, value),
        Misdeed::JoinNobody { ticket } => with_u32(9, ticket),
        Misdeed::SelectMany { count } => {
            let ends = (0..count).flat_map(|_| own.to_le_bytes());
            patience(11, 0, 0).into_iter().chain(ends).collect()
        }
        _ => Vec::new(),
    }
}

/// A request of a length of its own, by its number.
fn plain(request: u8) -> Vec<u8> {
    match request {
        1 => hello(VERSION),
        4 | 13 => with_i64(request, 1),
        5 => work(1),
        7 => patience_of(with_u32(7, 0)),
        9 | 14 | 15 => with_u32(request, 0),
        12 => [patience_of(with_i64(12, 1)), vec![0; 4]].concat(),
        other => vec![other],
    }
}

fn hello(version: u16) -> Vec<u8> {
    [&[1][..], &version.to_le_bytes()].concat()
}

fn with_u32(request: u8, value: u32) -> Vec<u8> {
    [&[request][..], &value.to_le_bytes()].concat()
}

fn with_i64(request: u8, value: i64) -> Vec<u8> {
    [&[request][..], &value.to_le_bytes()].concat()
}

/// A request that ends with how long it waits.
fn patience(request: u8, kind: u8, until: i64) -> Vec<u8> {
    [&[request, kind][..], &until.to_le_bytes()].concat()
}

fn patience_of(mut request: Vec<u8>) -> Vec<u8> {
    request.extend([0; 9]);
    request
}

fn work(value: i64) -> Vec<u8> {
    let mut packet = with_i64(5, value);
    packet.extend(value.to_le_bytes());
    packet.push(value as u8);
    packet.extend(value.to_le_bytes());
    packet
}
