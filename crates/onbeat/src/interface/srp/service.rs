//! The sockets of reservation: the service's, a program's to it, and to mrpd.

use super::mrpd::{self, DATAGRAM_MAX, Notice, QUERY};
use super::protocol::{Answer, MESSAGE_MAX, Request, StreamStatus, Summary};
use crate::clock::timeout;
use crate::coordinator::socket;
use crate::interface::service_socket::{self, ServiceConnection};
use onbeat_model::time::Span;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use std::io::{self, IoSlice};
use std::net::{Ipv4Addr, UdpSocket};
use std::time::Duration;

/// What a service's name begins with; the interface's follows.
const NAME: &str = "onbeat-srp/";
/// How long an answer may take.
const PATIENCE: Span = Span::from_s(2);
/// How long mrpd may take to answer.
const MRPD_PATIENCE: Duration = Duration::from_secs(1);
/// The most answers to one question.
const ROWS_MAX: usize = 4_096;

/// The abstract name of an interface's service.
pub fn service_name(interface: &str) -> String {
    format!("{NAME}{interface}")
}

/// The interfaces with a service in this network namespace, from the text of /proc/net/unix.
pub fn services(proc_net_unix: &str) -> Vec<String> {
    let lines = proc_net_unix.lines();
    let mut names: Vec<_> = lines
        .filter_map(|line| line.rsplit(' ').next()?.strip_prefix('@')?.strip_prefix(NAME))
        .map(str::to_owned)
        .collect();
    names.sort();
    names.dedup();
    names
}

/// A program's connection to a service.
#[derive(Debug)]
pub struct SrpConnection(OwnedFd);

impl SrpConnection {
    /// Connects to the service of an interface.
    ///
    /// # Errors
    /// There is none ([`io::ErrorKind::ConnectionRefused`]), or it is another user's.
    pub fn open(interface: &str) -> io::Result<Self> {
        service_socket::connect(&service_name(interface)).map(Self)
    }

    /// Asks.
    ///
    /// # Errors
    /// The service is gone.
    pub fn ask(&self, request: Request) -> io::Result<()> {
        socket::send(&self.0, &[IoSlice::new(&request.to_octets())])
    }

    /// Takes what it says; `None` when it has gone.
    ///
    /// # Errors
    /// It says what is no answer, or the socket's.
    pub fn receive(&self) -> io::Result<Option<Answer>> {
        let mut octets = [0; MESSAGE_MAX + 1];
        let Some(length) = socket::receive(&self.0, &mut octets)? else { return Ok(None) };
        Answer::parse(&octets[..length]).map(Some).map_err(io::Error::other)
    }

    /// Everything that the service knows.
    ///
    /// # Errors
    /// It refuses, is gone, or does not answer in time.
    pub fn show(&self) -> io::Result<(Vec<StreamStatus>, Summary)> {
        self.ask(Request::Show)?;
        let mut rows = Vec::new();
        while rows.len() <= ROWS_MAX {
            if !socket::readable(&self.0, PATIENCE)? {
                return Err(io::ErrorKind::TimedOut.into());
            }
            match self.receive()? {
                Some(Answer::State(row)) => rows.push(row),
                Some(Answer::Summary(summary)) => return Ok((rows, summary)),
                Some(Answer::Refused(why)) => return Err(io::Error::other(why.meaning())),
                None => return Err(io::ErrorKind::UnexpectedEof.into()),
            }
        }
        Err(io::Error::other("the reservation service does not end its answer"))
    }
}

impl AsFd for SrpConnection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Says something to a program; false when that is gone, or does not read.
pub fn say(to: &ServiceConnection, answer: Answer) -> bool {
    to.send(&answer.to_octets())
}

/// A socket that is connected to mrpd, if that answers.
pub(super) fn mrpd_socket() -> io::Result<Option<UdpSocket>> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    let mut octets = [0; DATAGRAM_MAX];
    let mut asked = || -> io::Result<()> {
        socket.connect((Ipv4Addr::LOCALHOST, mrpd::PORT))?;
        socket.set_read_timeout(Some(MRPD_PATIENCE))?;
        mrpd_say(&socket, QUERY)?;
        socket.recv(&mut octets).map(|_| ())
    };
    // Refused, or no answer in time: there is none.
    if asked().is_err() {
        return Ok(None);
    }
    socket.set_read_timeout(None)?;
    socket.set_nonblocking(true)?;
    Ok(Some(socket))
}

/// Gives mrpd a command: a text with a zero behind it.
pub(super) fn mrpd_say(socket: &UdpSocket, command: &str) -> io::Result<()> {
    let octets = [command.as_bytes(), &[0]].concat();
    socket.send(&octets).map(|_| ())
}

/// Whether mrpd runs in this network namespace. Waits up to a second.
pub fn mrpd_answers() -> bool {
    matches!(mrpd_socket(), Ok(Some(_)))
}

/// What mrpd says of all streams, if it runs. Waits up to two seconds.
pub fn mrpd_says() -> Option<Vec<Notice>> {
    let socket = mrpd_socket().ok().flatten()?;
    mrpd_say(&socket, QUERY).ok()?;
    let mut all = Vec::new();
    let mut octets = [0; DATAGRAM_MAX];
    for _ in 0..ROWS_MAX {
        let mut set = [PollFd::new(&socket, PollFlags::IN)];
        let wait = Span::from_ms(i64::try_from(MRPD_PATIENCE.as_millis()).unwrap_or(300));
        match poll(&mut set, timeout(wait).as_ref()) {
            Ok(0) => break,
            Err(Errno::INTR) => continue,
            Err(_) => return None,
            Ok(_) => {}
        }
        let Ok(length) = socket.recv(&mut octets) else { break };
        all.extend(mrpd::notices(&octets[..length]));
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interface::ServiceSocket;
    use crate::interface::srp::Refusal;

    #[test]
    fn services_are_found_by_their_names() {
        let text = "Num       RefCount Protocol Flags    Type St Inode Path\n\
            0000000000000000: 00000002 00000000 00010000 0005 01 12345 @onbeat-srp/eth1\n\
            0000000000000000: 00000003 00000000 00000000 0005 03 12346 @onbeat-srp/eth0\n\
            0000000000000000: 00000003 00000000 00000000 0005 03 12347 @onbeat-srp/eth0\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 12348 /run/onbeat-srp/eth2\n\
            0000000000000000: 00000003 00000000 00000000 0005 03 12349\n";
        assert_eq!(services(text), ["eth0", "eth1"]);
    }

    #[test]
    fn a_service_and_a_program_hear_each_other_and_that_the_other_is_gone() {
        let name = format!("test-{}", std::process::id());
        let missing = SrpConnection::open(&name).expect_err("no service yet");
        assert_eq!(missing.kind(), io::ErrorKind::ConnectionRefused);
        let service = ServiceSocket::open(&service_name(&name)).expect("a name of its own");
        let second = ServiceSocket::open(&service_name(&name)).expect_err("the name is taken");
        assert_eq!(second.kind(), io::ErrorKind::AddrInUse);
        assert!(service.take().expect("nothing wrong").is_none());
        let program = SrpConnection::open(&name).expect("the service");
        let taken = service.take().expect("nothing wrong").expect("a program");
        assert_eq!(taken.process, std::process::id());
        program.ask(Request::Show).expect("the service is there");
        let mut octets = [0; MESSAGE_MAX + 1];
        let length = taken.receive(&mut octets).expect("a message").expect("a program");
        assert_eq!(Request::parse(&octets[..length]), Ok(Request::Show));
        assert!(say(&taken, Answer::Refused(Refusal::Full)));
        let answer = program.receive().expect("an answer");
        assert_eq!(answer, Some(Answer::Refused(Refusal::Full)));
        drop(program);
        assert_eq!(taken.receive(&mut octets).expect("no error"), None);
        let program = SrpConnection::open(&name).expect("the service");
        drop((service, taken));
        assert!(program.receive().is_ok_and(|answer| answer.is_none()));
    }
}
