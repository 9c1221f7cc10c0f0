//! The handshake by which threads join a run.
//!
//! A program is started with a socket of its own, its *door*, on which it says Hello once. It is
//! answered with the socket of its main thread; further threads' sockets come with their tickets.
//! So nothing has a name, and only a process that was handed a socket can say anything to the
//! coordinator.

use crate::coordinator::session::{Failure, Session, State};
use crate::coordinator::table::{ProgramId, ThreadId};
use onbeat::clock::{MonoTime, pause};
use onbeat::coordinator::mailbox::Mailbox;
use onbeat::coordinator::protocol::{Body, MAX_PACKET, OLDEST_VERSION, Reply, Request, VERSION};
use onbeat::coordinator::socket;
use onbeat_model::system::TimeMode;
use onbeat_model::time::{NetTime, Span, SyncedTime};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use std::io;
use std::time::Duration;

/// How often a wait for a program looks whether the run was interrupted.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// The same for a wait for its Hello.
const LOOK_AGAIN_FOR_HELLO: Span = Span::from_ms(20);

/// A socket of a thread, or a program's door: the coordinator's side, which no other process has,
/// and the program's.
pub(super) fn sockets() -> Result<(OwnedFd, OwnedFd), Failure> {
    let (ours, theirs) = socket::pair().map_err(no_descriptor)?;
    set_socket_timeout(&ours, Timeout::Recv, Some(LOOK_AGAIN)).map_err(io::Error::from)?;
    Ok((ours, theirs))
}

fn no_descriptor(error: io::Error) -> Failure {
    match Errno::from_io_error(&error) {
        Some(Errno::MFILE | Errno::NFILE) => Failure(
            "the run has more threads and channel endpoints than this process may have open files: \
             raise the limit (ulimit -n)"
                .to_owned(),
        ),
        _ => error.into(),
    }
}

/// What connects a thread with the coordinator.
pub(super) struct Connection {
    pub(super) socket: OwnedFd,
    /// In virtual time.
    pub(super) memory: Option<Mailbox>,
    /// The program's side of the socket, then of the memory.
    pub(super) theirs: Vec<OwnedFd>,
}

impl Connection {
    pub(super) fn new(time: TimeMode) -> Result<Self, Failure> {
        let (socket, own) = sockets()?;
        if time == TimeMode::Real {
            return Ok(Self { socket, memory: None, theirs: vec![own] });
        }
        let (memory, descriptor) = Mailbox::new().map_err(no_descriptor)?;
        Ok(Self { socket, memory: Some(memory), theirs: vec![own, descriptor] })
    }

    /// What the thread is given.
    pub(super) fn theirs(&self) -> Vec<BorrowedFd<'_>> {
        self.theirs.iter().map(AsFd::as_fd).collect()
    }
}

impl Session<'_> {
    /// Waits until a thread has come, or its program has ended well without needing it.
    pub(super) fn await_thread(&mut self, thread: ThreadId) -> Result<(), Failure> {
        let until = MonoTime::now() + self.options.settings.hang_timeout;
        while self.threads[thread].state == State::Expected {
            self.check_interrupt()?;
            let program = self.threads[thread].program;
            let ended = self.members[program].running.ended();
            // Its messages come before its exit, even if it exited at once after them.
            if self.advance_handshake(thread)? {
                continue;
            }
            if let Some(status) = ended {
                if status.success() && self.started {
                    self.all_done(program);
                    return Ok(());
                }
                return Err(
                    self.program_error(program, format!("ended ({status}) before it began"))
                );
            }
            if MonoTime::now() > until {
                return Err(self.hung(program, self.missing(thread)));
            }
        }
        Ok(())
    }

    /// What a thread that does not come has not done.
    fn missing(&self, thread: ThreadId) -> &'static str {
        match self.threads[thread].socket {
            None if self.members[self.threads[thread].program].door.is_none() => {
                "has closed the descriptor of ONBEAT_COORDINATOR and has not called onbeat_open"
            }
            _ => "has not called onbeat_open",
        }
    }

    /// Waits a little for the first message of an expected thread, or of its program; whether
    /// there was one.
    fn advance_handshake(&mut self, thread: ThreadId) -> Result<bool, Failure> {
        let program = self.threads[thread].program;
        let mut packet = [0; MAX_PACKET];
        if let Some(door) = &self.members[program].door {
            match first_message(door, &mut packet)? {
                FirstMessage::Nothing => {}
                FirstMessage::Gone => self.members[program].door = None,
                FirstMessage::Packet(length) => {
                    self.answer_hello(program, &packet[..length])?;
                    return Ok(true);
                }
            }
            return Ok(false);
        }
        let Some(own) = &self.threads[thread].socket else {
            pause(LOOK_AGAIN_FOR_HELLO);
            return Ok(false);
        };
        match first_message(own, &mut packet)? {
            FirstMessage::Nothing => Ok(false),
            FirstMessage::Packet(length) => self.begun(thread, &packet[..length]).map(|()| true),
            FirstMessage::Gone if self.members[program].main == thread => {
                self.threads[thread].socket = None;
                Ok(false)
            }
            // It could not be created; or the program has ended.
            FirstMessage::Gone => self.departed(thread, LOOK_AGAIN_FOR_HELLO).map(|()| false),
        }
    }

    /// Answers a program's greeting: the socket of its main thread, or why not.
    fn answer_hello(&mut self, program: ProgramId, packet: &[u8]) -> Result<(), Failure> {
        let refused = match Request::decode(packet) {
            Ok(Request::Hello(OLDEST_VERSION..=VERSION)) => None,
            Ok(Request::Hello(_)) => {
                Some("the program was built against another version of Onbeat: rebuild it")
            }
            _ => Some("the first message must be a greeting"),
        };
        let connection = Connection::new(self.options.settings.time)?;
        let main = self.members[program].main;
        let body = refused.map_or(Body::Ticket(main.0), Body::Refused);
        let (local, network) = (SyncedTime::ZERO, NetTime::ZERO);
        let mut packet = [0; MAX_PACKET];
        let length = Reply { local, network, body }.encode(&mut packet);
        if let Some(door) = self.members[program].door.take() {
            let with = if refused.is_none() { connection.theirs() } else { Vec::new() };
            // One that is gone is found out when it is waited for.
            let _ = socket::try_send_with(&door, &packet[..length], &with);
        }
        if refused.is_none() {
            let main = &mut self.threads[main];
            (main.socket, main.memory) = (Some(connection.socket), connection.memory);
        }
        Ok(())
    }

    /// Takes a thread's first message on its own socket.
    pub(super) fn begun(&mut self, thread: ThreadId, packet: &[u8]) -> Result<(), Failure> {
        let tid = match self.decode(thread, packet)? {
            Request::BeginInMemory(tid) if self.threads[thread].memory.is_some() => tid,
            Request::Begin(tid) => {
                self.threads[thread].memory = None;
                tid
            }
            _ => {
                return Err(self.protocol_violation(thread, "sends a request before its greeting"));
            }
        };
        self.threads[thread].state = State::Connected;
        self.threads[thread].tid = tid;
        let member = &mut self.members[self.threads[thread].program];
        if let Some(notices) = member.notices.as_mut().filter(|_| member.main == thread) {
            notices.joined(tid);
        }
        Ok(())
    }
}

impl Session<'_> {
    /// Virtual time: a thread continues now. From when nothing more is written, what its program
    /// takes from elsewhere reaches no other.
    pub(super) fn date_notices(&self, thread: ThreadId) {
        let program = self.threads[thread].program;
        let Some(notices) = self.members[program].notices.as_ref().filter(|_| self.started) else {
            return;
        };
        match self.engine.now() {
            now if now < self.write_until => notices.at(now),
            _ => notices.over(),
        }
    }
}

/// The first message on a socket.
enum FirstMessage {
    Nothing,
    /// The other side is closed.
    Gone,
    /// So many octets.
    Packet(usize),
}

fn first_message(socket: &OwnedFd, packet: &mut [u8]) -> Result<FirstMessage, Failure> {
    if !socket::readable(socket, LOOK_AGAIN_FOR_HELLO)? {
        return Ok(FirstMessage::Nothing);
    }
    match socket::try_receive(socket, packet) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(FirstMessage::Nothing),
        Ok(Some(length)) => Ok(FirstMessage::Packet(length)),
        Ok(None) | Err(_) => Ok(FirstMessage::Gone),
    }
}
