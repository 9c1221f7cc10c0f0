//! Connections of which it is not known yet whose they are.

use crate::clock::{MonoTime, timeout};
use crate::fabric::protocol::{Body, MAX_PACKET, Reply, Request, Token, VERSION};
use crate::fabric::session::{Failure, Session, State};
use crate::fabric::socket;
use onbeat_model::time::{LocalTime, NetTime, Span};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use std::io;
use std::time::Duration;

/// How often a wait for a program looks whether the run was interrupted.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// The same for a wait for a connection.
const LOOK_AGAIN_FOR_NEWCOMERS: Span = Span::from_ms(20);
/// The most connections that have not greeted yet; the oldest gives way.
const MAX_NEWCOMERS: usize = 64;

impl Session<'_> {
    /// Waits until a thread has connected, or its program has ended well without needing it.
    pub(super) fn await_thread(&mut self, thread: usize) -> Result<(), Failure> {
        let until = MonoTime::now() + self.options.settings.hang_timeout;
        while self.threads[thread].state == State::Expected {
            self.check_interrupt()?;
            let program = self.threads[thread].program;
            if let Some(status) = self.members[program].running.ended() {
                if status.success() && self.started {
                    self.all_done(program);
                    return Ok(());
                }
                return Err(self.blame(program, format!("ended ({status}) before it began")));
            }
            if MonoTime::now() > until {
                return Err(self.hung(program, "has not called onbeat_open"));
            }
            self.hear_newcomers(LOOK_AGAIN_FOR_NEWCOMERS)?;
        }
        Ok(())
    }

    /// Waits for at most `patience` for connections and greetings; the threads that have come.
    pub(super) fn hear_newcomers(&mut self, patience: Span) -> Result<Vec<usize>, Failure> {
        let mut set = vec![PollFd::new(&self.listener, PollFlags::IN)];
        set.extend(self.newcomers.iter().map(|s| PollFd::new(s, PollFlags::IN)));
        match poll(&mut set, timeout(patience).as_ref()) {
            Ok(0) | Err(Errno::INTR) => return Ok(Vec::new()),
            Ok(_) => {}
            Err(error) => return Err(io::Error::from(error).into()),
        }
        if !set[0].revents().is_empty() {
            drop(set);
            self.accept()?;
        }
        let mut come = Vec::new();
        let mut waiting = Vec::new();
        for connection in std::mem::take(&mut self.newcomers) {
            let mut packet = [0; MAX_PACKET];
            match socket::try_receive(&connection, &mut packet) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => waiting.push(connection),
                Ok(Some(length)) => come.extend(self.greet(connection, &packet[..length])),
                // It is gone, or not one to talk to.
                Ok(None) | Err(_) => {}
            }
        }
        self.newcomers = waiting;
        Ok(come)
    }

    fn accept(&mut self) -> Result<(), Failure> {
        match socket::accept(&self.listener) {
            Ok(connection) => {
                set_socket_timeout(&connection, Timeout::Recv, Some(LOOK_AGAIN))
                    .map_err(io::Error::from)?;
                if self.newcomers.len() >= MAX_NEWCOMERS {
                    self.newcomers.remove(0);
                }
                self.newcomers.push(connection);
                Ok(())
            }
            Err(error) => match Errno::from_io_error(&error) {
                Some(Errno::MFILE | Errno::NFILE) => Err(Failure(
                    "the run has more threads and channel ends than this process may have open \
                     files: raise the limit (ulimit -n)"
                        .to_owned(),
                )),
                // It went away again, or is another user's.
                _ => Ok(()),
            },
        }
    }

    /// Takes a connection that proves that it belongs to the run; refuses another.
    fn greet(&mut self, connection: OwnedFd, packet: &[u8]) -> Option<usize> {
        let refused = match Request::decode(packet) {
            Ok(Request::Hello { version, .. }) if version != VERSION => {
                "this program was built against another version of Onbeat: build it again"
            }
            Ok(Request::Hello { token, ticket, tid, .. }) => match self.thread_for(token, ticket) {
                Some(thread) => {
                    self.threads[thread].socket = Some(connection);
                    self.threads[thread].state = State::Connected;
                    self.threads[thread].tid = tid;
                    return Some(thread);
                }
                None => "the fabric expects no such program or thread",
            },
            _ => "the first message must be a greeting",
        };
        let (local, network, body) = (LocalTime::ZERO, NetTime::ZERO, Body::Refused(refused));
        let mut packet = [0; MAX_PACKET];
        let length = Reply { local, network, body }.encode(&mut packet);
        // A stranger that does not wait for its refusal does not need it.
        let _ = socket::try_send(&connection, &[io::IoSlice::new(&packet[..length])]);
        None
    }

    fn thread_for(&self, token: Token, ticket: Option<u32>) -> Option<usize> {
        let program = self.members.iter().position(|m| m.token == token)?;
        let thread = match ticket {
            None => self.members[program].main,
            Some(ticket) => ticket as usize,
        };
        let found = self.threads.get(thread)?;
        (found.program == program && found.state == State::Expected).then_some(thread)
    }
}
