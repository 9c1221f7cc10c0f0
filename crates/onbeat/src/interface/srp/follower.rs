//! The thread that follows how an end's stream stands.

use super::mrpd::{DATAGRAM_MAX, LEARN, MrpdEnd, QUERY};
use super::protocol::{Answer, Phase, Request, StreamStatus};
use super::service::{SrpConnection, mrpd_say, mrpd_socket};
use super::{grant_of, word_of};
use crate::clock::{MonoTime, timeout};
use crate::coordinator::socket::readable;
use crate::instrument::step_back;
use onbeat_model::record::Role;
use onbeat_model::time::Span;
use onbeat_model::units::StreamId;
use onbeat_runtime::channel_io::Grant;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::thread::futex;
use std::io;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// How long a service may take to answer at first.
const PATIENCE: Span = Span::from_s(2);
/// How often a service that is gone is looked for.
const LOOK_AGAIN: Span = Span::from_s(1);
/// How often mrpd is asked something, so that its end is noticed.
const PROBE: Span = Span::from_s(2);
/// What it is asked: its answer is short, unlike that about streams.
const PROBE_QUERY: &str = "V??";
/// The thread's stack, in octets: it may be locked memory.
const STACK: usize = 128 << 10;

/// What the thread and the end have in common.
#[derive(Debug)]
struct Shared {
    /// See [`word_of`].
    word: AtomicU32,
    status: Mutex<StreamStatus>,
    /// The only VLAN that its frames can have.
    vlan: Option<u16>,
}

impl Shared {
    fn note(&self, mut status: StreamStatus) {
        let is_other = self.vlan.is_some_and(|vlan| status.vid.is_some_and(|vid| vid != vlan));
        if is_other && status.phase.is_reserved() {
            status.phase = Phase::DomainMismatch;
        }
        *self.status.lock().unwrap_or_else(PoisonError::into_inner) = status;
        let word = word_of(&status);
        if self.word.swap(word, Ordering::Release) != word {
            let all = i32::MAX as u32;
            // Who waits looks again by itself: a wake that fails costs a tenth of a second.
            let _ = futex::wake(&self.word, futex::Flags::PRIVATE, all);
        }
    }

    fn lose(&self) {
        let status = *self.status.lock().unwrap_or_else(PoisonError::into_inner);
        self.note(StreamStatus { phase: Phase::NoService, ..status });
    }
}

/// Who knows how the stream stands.
#[derive(Debug)]
enum Way {
    Service(SrpConnection),
    Mrpd { socket: UdpSocket, end: Box<MrpdEnd>, begun: MonoTime, probed: MonoTime },
}

/// An end's reservation: withdrawn when it is dropped.
#[derive(Debug)]
pub(crate) struct Reservation {
    shared: Arc<Shared>,
    /// Closed to end the thread.
    stop: Option<OwnedFd>,
    thread: Option<JoinHandle<()>>,
    /// The process that has the thread: one that it forks has not.
    process: u32,
}

impl Reservation {
    /// Asks the interface's service, or mrpd. Waits until that has answered. With `vlan` its frames
    /// can be in no other VLAN.
    ///
    /// # Errors
    /// There is none, or it refuses: why.
    pub(crate) fn open(
        interface: &str,
        request: Request,
        vlan: Option<u16>,
    ) -> Result<Self, String> {
        let (role, stream) = match request {
            Request::Advertise(offer) => (Role::Talker, offer.stream),
            Request::Listen(stream) => (Role::Listener, stream),
            Request::Show => (Role::Listener, StreamId(0)),
        };
        let first = StreamStatus::new(role, stream);
        let (word, status) = (AtomicU32::new(0), Mutex::new(first));
        let shared = Arc::new(Shared { word, status, vlan });
        let way = begin(interface, request, &shared).map_err(|why| match why {
            Some(why) => why,
            None => format!(
                "interface `{interface}` has no reservation service: start it with `onbeat srp \
                 serve --interface {interface}` (docs/reservation.md)"
            ),
        })?;
        let told = |error: io::Error| format!("a thread for the reservation: {error}");
        let (stop, stopped) = crate::coordinator::socket::pair().map_err(told)?;
        let follower = Follower {
            interface: interface.to_owned(),
            request,
            shared: Arc::clone(&shared),
            stopped,
        };
        let thread = std::thread::Builder::new().name("onbeat-srp".to_owned()).stack_size(STACK);
        let thread = thread.spawn(move || follower.run(Some(way))).map_err(told)?;
        let process = std::process::id();
        Ok(Self { shared, stop: Some(stop), thread: Some(thread), process })
    }

    /// What is reserved now. Real-time: a load.
    #[inline]
    pub(crate) fn grant(&self) -> Grant {
        grant_of(self.shared.word.load(Ordering::Acquire))
    }

    /// Not 0 while something is reserved; woken as a futex after each change.
    pub(crate) fn word(&self) -> &AtomicU32 {
        &self.shared.word
    }

    /// How the stream stands. Takes a lock.
    pub(crate) fn status(&self) -> StreamStatus {
        *self.shared.status.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take()
            && self.process == std::process::id()
        {
            // A panic of its own has been reported by the thread.
            let _ = thread.join();
        }
    }
}

/// Finds who knows, asks, and notes the first answer; `Err(None)` if there is neither a service nor
/// mrpd.
fn begin(interface: &str, request: Request, shared: &Shared) -> Result<Way, Option<String>> {
    let why = |error: io::Error| {
        Some(format!("the reservation service of interface `{interface}`: {error}"))
    };
    let connection = match SrpConnection::open(interface) {
        Ok(connection) => connection,
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            return begin_mrpd(request, shared).map_err(why)?.ok_or(None);
        }
        Err(error) => return Err(why(error)),
    };
    connection.ask(request).map_err(why)?;
    if !readable(&connection, PATIENCE).map_err(why)? {
        return Err(why(io::ErrorKind::TimedOut.into()));
    }
    match connection.receive().map_err(why)? {
        Some(Answer::State(status)) => {
            shared.note(status);
            Ok(Way::Service(connection))
        }
        Some(Answer::Refused(refusal)) => Err(why(io::Error::other(refusal.meaning()))),
        Some(Answer::Summary(_)) | None => Err(why(io::ErrorKind::UnexpectedEof.into())),
    }
}

fn begin_mrpd(request: Request, shared: &Shared) -> io::Result<Option<Way>> {
    let Some((socket, end)) = mrpd_socket()?.zip(MrpdEnd::new(request)) else {
        return Ok(None);
    };
    mrpd_say(&socket, QUERY)?;
    shared.note(*end.status());
    let now = MonoTime::now();
    Ok(Some(Way::Mrpd { socket, end: Box::new(end), begun: now, probed: now }))
}

/// The thread.
struct Follower {
    interface: String,
    request: Request,
    shared: Arc<Shared>,
    stopped: OwnedFd,
}

impl Follower {
    fn run(self, mut way: Option<Way>) {
        step_back();
        loop {
            let wait = match &way {
                None => Some(LOOK_AGAIN),
                Some(Way::Service(_)) => None,
                Some(Way::Mrpd { end, begun, probed, .. }) => {
                    let due = if end.is_learning() { *begun + LEARN } else { *probed + PROBE };
                    Some((due - MonoTime::now()).max(Span::ZERO))
                }
            };
            if self.wait(way.as_ref(), wait) {
                break;
            }
            way = match way {
                None => begin(&self.interface, self.request, &self.shared).ok(),
                Some(known) => match self.follow(known) {
                    Ok(known) => Some(known),
                    Err(_) => {
                        self.shared.lose();
                        None
                    }
                },
            };
        }
        if let Some(Way::Mrpd { socket, mut end, .. }) = way {
            for command in end.end() {
                // mrpd may have gone: then nothing is declared any more.
                let _ = mrpd_say(&socket, &command);
            }
        }
    }

    /// Waits for something to be said; whether the end is closed.
    fn wait(&self, way: Option<&Way>, wait: Option<Span>) -> bool {
        let mut set = vec![PollFd::new(&self.stopped, PollFlags::IN)];
        match way {
            Some(Way::Service(connection)) => set.push(PollFd::new(connection, PollFlags::IN)),
            Some(Way::Mrpd { socket, .. }) => {
                set.push(PollFd::from_borrowed_fd(socket.as_fd(), PollFlags::IN));
            }
            None => {}
        }
        // Interrupted is as good: the loop looks again.
        let _ = poll(&mut set, wait.and_then(timeout).as_ref());
        !set[0].revents().is_empty()
    }

    /// Takes one thing that was said, if there is any.
    fn follow(&self, way: Way) -> io::Result<Way> {
        match way {
            Way::Service(connection) => {
                if readable(&connection, Span::ZERO)? {
                    match connection.receive()? {
                        Some(Answer::State(status)) => self.shared.note(status),
                        _ => return Err(io::ErrorKind::UnexpectedEof.into()),
                    }
                }
                Ok(Way::Service(connection))
            }
            Way::Mrpd { socket, mut end, begun, mut probed } => {
                let now = MonoTime::now();
                let mut commands = Vec::new();
                let mut octets = [0; DATAGRAM_MAX];
                match socket.recv(&mut octets) {
                    Ok(length) => commands.extend(end.receive(&octets[..length])),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(error) => return Err(error),
                }
                if end.is_learning() && now - begun >= LEARN {
                    commands.extend(end.announce());
                }
                if now - probed >= PROBE {
                    probed = now;
                    commands.push(PROBE_QUERY.to_owned());
                }
                for command in &commands {
                    mrpd_say(&socket, command)?;
                }
                self.shared.note(*end.status());
                Ok(Way::Mrpd { socket, end, begun, probed })
            }
        }
    }
}
