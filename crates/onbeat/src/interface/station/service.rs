//! How programs that no run has started come to the station of their host: through a Unix socket of
//! the service that executes it (`onbeat nc run --table`).
//!
//! A connection is one end of a channel: the program says which, and gets the end's socket, or why
//! not. When the connection is closed, for whatever reason, the end is free. Messages are one
//! packet each, numbers big-endian:
//!
//! ```text
//! program → service:  version (u8), 0 talker or 1 listener (u8), stream identifier (u64),
//!                     octets of a message (u32)
//! service → program:  version (u8), 0 with the socket or a [`StationRefusal`] (u8)
//! ```

use super::channels::StationDoor;
use super::end::StationSocket;
use crate::clock::{MonoTime, pause};
use crate::coordinator::socket;
use crate::interface::service_socket::{self, ServiceConnection, ServiceSocket};
use onbeat_model::record::Role;
use onbeat_model::time::Span;
use onbeat_model::units::{Octets, StreamId};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::AsFd;
use rustix::io::Errno;
use std::io::{self, IoSlice};

/// What a service's name begins with; the interface's follows.
const NAME: &str = "onbeat-station/";
const VERSION: u8 = 1;
const REQUEST: usize = 14;
const ANSWER: usize = 2;
/// How long an answer may take.
const PATIENCE: Span = Span::from_s(2);
/// How long it takes no program when it could not take one.
const TAKE_AGAIN: Span = Span::from_ms(10);
/// The most programs' ends that are served at once.
const CONNECTIONS_MAX: usize = 1_024;

/// Why a program does not get an end of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[repr(u8)]
enum StationRefusal {
    /// The message is none, or of another version.
    #[error("the service of the station is of another version of Onbeat")]
    Version = 1,
    /// The station carries no such channel, or not that end.
    #[error("the station of this host does not carry it: its table and program are of one plan")]
    Unknown = 2,
    /// A program has it already.
    #[error("another program of this host has this end already, or this one has")]
    Taken = 3,
    /// It is another user's.
    #[error("the service of the station is not for this user: `--user` lets others in")]
    User = 4,
    /// The system has no more sockets.
    #[error("the service of the station has no more sockets: see its limit of open files")]
    Resources = 5,
}

impl StationRefusal {
    const ALL: [Self; 5] = [Self::Version, Self::Unknown, Self::Taken, Self::User, Self::Resources];
}

/// An end of a channel that a program asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Wanted {
    role: Role,
    stream: StreamId,
    size: Octets,
}

impl Wanted {
    fn to_octets(self) -> [u8; REQUEST] {
        let mut octets = [0; REQUEST];
        octets[0] = VERSION;
        octets[1] = u8::from(self.role == Role::Listener);
        octets[2..10].copy_from_slice(&self.stream.0.to_be_bytes());
        octets[10..].copy_from_slice(&self.size.get().to_be_bytes());
        octets
    }

    fn parse(octets: &[u8]) -> Option<Self> {
        let [VERSION, role, a, b, c, d, e, f, g, h, i, j, k, l] = *octets else { return None };
        let role = match role {
            0 => Role::Talker,
            1 => Role::Listener,
            _ => return None,
        };
        let stream = StreamId(u64::from_be_bytes([a, b, c, d, e, f, g, h]));
        Some(Self { role, stream, size: Octets::new(u32::from_be_bytes([i, j, k, l])) })
    }
}

/// Asks the service of an interface for an end.
///
/// # Errors
/// There is none ([`io::ErrorKind::ConnectionRefused`]), it is another user's, or it refuses.
pub(in crate::interface) fn connect(
    interface: &str,
    role: Role,
    stream: StreamId,
    size: Octets,
) -> io::Result<StationSocket> {
    let connection = service_socket::connect(&format!("{NAME}{interface}"))?;
    socket::send(&connection, &[IoSlice::new(&Wanted { role, stream, size }.to_octets())])?;
    let until = MonoTime::now() + PATIENCE;
    // A signal cuts a wait short.
    while !socket::readable(&connection, until - MonoTime::now())? {
        if MonoTime::now() >= until {
            return Err(io::Error::other("the service of the station does not answer"));
        }
    }
    let mut octets = [0; ANSWER + 1];
    let got = socket::receive_with(&connection, &mut octets)?;
    let (length, mut descriptors) = got.ok_or(io::ErrorKind::UnexpectedEof)?;
    match (&octets[..length], descriptors.pop()) {
        ([VERSION, 0], Some(end)) => Ok(StationSocket::of_service(end, connection)),
        ([VERSION, why], None) => {
            let why = StationRefusal::ALL.into_iter().find(|refusal| *refusal as u8 == *why);
            Err(io::Error::other(why.unwrap_or(StationRefusal::Version)))
        }
        _ => Err(io::Error::other(StationRefusal::Version)),
    }
}

/// An end that a service gives.
#[derive(Debug)]
pub struct ServedEndpoint {
    /// Which end of which channel.
    pub role: Role,
    /// The channel's stream.
    pub stream: StreamId,
    /// The octets of its messages.
    pub size: Octets,
    /// The door to it.
    pub door: StationDoor,
}

/// The service of an interface: gives ends of channels to programs.
#[derive(Debug)]
pub struct StationService {
    socket: ServiceSocket,
    /// Who may ask, beside root and the service's own user.
    users: Vec<u32>,
    ends: Vec<ServedEndpoint>,
    connections: Vec<Connection>,
}

/// A program's connection.
#[derive(Debug)]
struct Connection {
    taken: ServiceConnection,
    /// The place of the end that it has.
    end: Option<usize>,
    /// When it is closed if it has asked for none.
    until: MonoTime,
}

impl StationService {
    /// Takes the name of an interface's service.
    ///
    /// # Errors
    /// There is one already ([`io::ErrorKind::AddrInUse`]).
    pub fn open(interface: &str, ends: Vec<ServedEndpoint>, users: Vec<u32>) -> io::Result<Self> {
        let socket = ServiceSocket::open(&format!("{NAME}{interface}"))?;
        Ok(Self { socket, users, ends, connections: Vec::new() })
    }

    /// Waits for programs, at most for so long, and serves them.
    ///
    /// # Errors
    /// Those of poll(2).
    pub fn step(&mut self, patience: Span) -> io::Result<()> {
        let is_full = self.connections.len() >= CONNECTIONS_MAX;
        let door = [self.socket.as_fd()].into_iter().filter(|_| !is_full);
        let all = self.connections.iter().map(|connection| connection.taken.as_fd()).chain(door);
        let mut set: Vec<_> = all.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        match poll(&mut set, crate::clock::timeout(patience).as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        let ready: Vec<bool> = set.iter().map(|fd| !fd.revents().is_empty()).collect();
        let now = MonoTime::now();
        for at in (0..self.connections.len()).rev() {
            let Connection { end, until, .. } = self.connections[at];
            let is_idle = end.is_none() && now > until;
            if (ready[at] && !self.serve(at)) || is_idle {
                self.close(at);
            }
        }
        if !is_full && ready.last() == Some(&true) {
            self.take();
        }
        Ok(())
    }

    /// Takes a program that waits. One that cannot be taken waits on, as one behind many others.
    fn take(&mut self) {
        let Ok(taken) = self.socket.take() else {
            // Too many descriptors are open, for one: that passes.
            return pause(TAKE_AGAIN);
        };
        let Some(taken) = taken else { return };
        let own = rustix::process::geteuid().as_raw();
        let user = taken.user;
        if user != 0 && user != own && !self.users.contains(&user) {
            taken.send(&[VERSION, StationRefusal::User as u8]);
            return;
        }
        let until = MonoTime::now() + PATIENCE;
        self.connections.push(Connection { taken, end: None, until });
    }

    fn close(&mut self, at: usize) {
        if let Some(end) = self.connections.swap_remove(at).end {
            self.ends[end].door.close();
        }
    }

    /// Hears a connection; false when it is over.
    fn serve(&mut self, at: usize) -> bool {
        let mut octets = [0; REQUEST + 1];
        let Connection { taken, end, .. } = &self.connections[at];
        let length = match taken.receive(&mut octets) {
            Ok(Some(length)) => length,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return true,
            Ok(None) | Err(_) => return false,
        };
        // One that has its end has nothing more to say.
        if end.is_some() {
            return false;
        }
        match self.give(at, &octets[..length]) {
            Ok(()) => true,
            Err(why) => {
                self.connections[at].taken.send(&[VERSION, why as u8]);
                false
            }
        }
    }

    fn give(&mut self, at: usize, request: &[u8]) -> Result<(), StationRefusal> {
        let Wanted { role, stream, size } =
            Wanted::parse(request).ok_or(StationRefusal::Version)?;
        let is_it = |end: &ServedEndpoint| (end.role, end.stream, end.size) == (role, stream, size);
        let place = self.ends.iter().position(is_it).ok_or(StationRefusal::Unknown)?;
        if self.connections.iter().any(|connection| connection.end == Some(place)) {
            return Err(StationRefusal::Taken);
        }
        let Connection { taken, end, .. } = &mut self.connections[at];
        let theirs = self.ends[place].door.open().map_err(|_| StationRefusal::Resources)?;
        match socket::try_send_with(taken.as_fd(), &[VERSION, 0], &[theirs]) {
            Ok(true) => *end = Some(place),
            // It is gone: its connection says so next.
            Ok(false) | Err(_) => self.ends[place].door.close(),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interface::station::channels::tests::door;
    use proptest::prelude::*;

    fn service() -> (String, StationService) {
        let name = format!("test-{}", std::process::id());
        let (role, stream, size) = (Role::Listener, StreamId(7), Octets::new(8));
        let ends = vec![ServedEndpoint { role, stream, size, door: door() }];
        let service = StationService::open(&name, ends, Vec::new()).expect("a name of its own");
        (name, service)
    }

    /// Serves a program that asks for an end.
    fn ask(name: &str, service: &mut StationService, role: Role) -> io::Result<StationSocket> {
        let name = name.to_owned();
        let asking = std::thread::spawn(move || connect(&name, role, StreamId(7), Octets::new(8)));
        while !asking.is_finished() {
            service.step(Span::from_ms(1)).expect("served");
        }
        asking.join().expect("no panic")
    }

    #[test]
    fn a_program_gets_an_end_that_no_other_one_has_and_gives_it_back() {
        let (name, mut service) = service();
        let unknown = ask(&name, &mut service, Role::Talker).expect_err("no such end");
        assert!(unknown.to_string().contains("does not carry it"), "{unknown}");
        let mut first = ask(&name, &mut service, Role::Listener).expect("the end");
        assert!(service.ends[0].door.push(b"12345678 it").expect("room"));
        let second = ask(&name, &mut service, Role::Listener).expect_err("the first one has it");
        assert!(second.to_string().contains("another program"), "{second}");
        let mut kept = StationSocket::new(first.as_fd().try_clone_to_owned().expect("a copy"));
        let length = |got: Option<crate::interface::Arrival>| got.map(|arrival| arrival.length);
        assert_eq!(length(first.try_receive(&mut [0; 64]).expect("no error")), Some(3));
        drop(first);
        service.step(Span::from_ms(50)).expect("heard");
        let mut next = ask(&name, &mut service, Role::Listener).expect("it is free");
        // A copy that was kept leads nowhere.
        assert!(service.ends[0].door.push(b"12345678 more").expect("room"));
        assert!(kept.try_receive(&mut [0; 64]).is_err());
        assert_eq!(length(next.try_receive(&mut [0; 64]).expect("no error")), Some(5));
        // One that asks for nothing is not waited for.
        let idle = service_socket::connect(&format!("{NAME}{name}")).expect("the service");
        service.step(Span::from_ms(50)).expect("taken");
        assert_eq!(service.connections.len(), 2);
        service.connections[1].until = MonoTime::from_ns(0);
        service.step(Span::ZERO).expect("closed");
        assert_eq!(service.connections.len(), 1);
        drop(idle);
        let none = connect("test-none", Role::Listener, StreamId(7), Octets::new(8));
        assert_eq!(none.expect_err("no service").kind(), io::ErrorKind::ConnectionRefused);
    }

    proptest! {
        #[test]
        fn any_octets_are_a_request_or_none(
            octets in proptest::collection::vec(any::<u8>(), 0..20),
        ) {
            if let Some(wanted) = Wanted::parse(&octets) {
                prop_assert_eq!(&wanted.to_octets()[..], &octets[..]);
            }
        }
    }
}
