//! The program's side of the fabric: what the C library calls.
//!
//! Every thread has a connection of its own, kept with the thread. In virtual time each call that
//! blocks is a question to the fabric, which answers when its time has come; the time of the last
//! answer is the time until the next question, since work between calls takes none. In real time
//! only set-up goes that way: an end has a socket of its own, sleeps are the thread's own, and so
//! nobody stands between a thread and its frames.

use crate::clock::{EmulatedClock, MonoTime, clamp_to_run, want_exact_timers};
use crate::fabric::protocol::{
    Body, ENVIRONMENT, MAX_PACKET, Reply, Request, Start, Token, VERSION,
};
use crate::fabric::socket;
use crate::shared_log::SharedLog;
use onbeat_model::record::Role;
use onbeat_model::time::{LocalTime, Span};
use onbeat_model::units::Octets;
use onbeat_runtime::channel::{ListenerEnd, TalkerEnd};
use onbeat_runtime::listener::Listener;
use onbeat_runtime::port::{Fault, Instant, Patience, Port, Received};
use onbeat_runtime::talker::{ChannelParameters, Talker};
use rustix::fd::OwnedFd;
use rustix::mm::MlockAllFlags;
use std::cell::RefCell;
use std::io::{self, IoSlice};
use std::sync::{Arc, OnceLock};

/// The talker's end of a channel in a program on a fabric.
pub type FabricTalker = TalkerEnd<EndPort, SharedLog>;
/// A listener's end of a channel in a program on a fabric.
pub type FabricListener = ListenerEnd<EndPort, SharedLog>;

/// Octets before a frame on an end's own socket: when it was sent or had arrived.
pub const STAMP: usize = 8;

/// Why a program could not join its fabric or open a channel.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The environment names no fabric.
    #[error(
        "{ENVIRONMENT} is not set: start this program through `onbeat run` (channels on real \
         interfaces are not available yet)"
    )]
    NoFabric,
    /// The thread has joined already.
    #[error("this thread has joined the run already")]
    Twice,
    /// The environment variable is not of its form.
    #[error("{ENVIRONMENT} is not of the form NAME:TOKEN")]
    BadEnvironment,
    /// The fabric cannot be reached, or went away.
    #[error("the fabric cannot be reached: {0}")]
    Unreachable(#[from] io::Error),
    /// The fabric will not have it.
    #[error("{0}")]
    Refused(String),
    /// The fabric answered something else than what was asked.
    #[error("the fabric does not speak this library's protocol")]
    Nonsense,
    /// The call came from a thread that the fabric does not know, or at the wrong moment.
    #[error(transparent)]
    Fault(#[from] Fault),
}

/// A thread's own connection to the fabric.
#[derive(Debug)]
struct Control {
    socket: OwnedFd,
    /// The time of the last answer.
    now: Instant,
    stopped: bool,
    packet: [u8; MAX_PACKET],
}

thread_local! {
    static CONTROL: RefCell<Option<Control>> = const { RefCell::new(None) };
}

impl Control {
    fn connect(shared: &Shared, ticket: Option<u32>) -> Result<Self, SetupError> {
        let socket = socket::connect(&shared.name)?;
        let now = Instant::default();
        let mut control = Self { socket, now, stopped: false, packet: [0; MAX_PACKET] };
        let hello = Request::Hello { version: VERSION, token: shared.token, ticket };
        match control.ask(&hello)? {
            Body::Done => Ok(control),
            Body::Refused(why) => Err(SetupError::Refused(why.to_owned())),
            _ => Err(SetupError::Nonsense),
        }
    }

    /// Sends a request that is not answered.
    fn tell(&mut self, request: &Request<'_>) -> Result<(), Fault> {
        let length = request.encode(&mut self.packet);
        let parts = [IoSlice::new(&self.packet[..length])];
        socket::send(&self.socket, &parts).map_err(|_| Fault::Disconnected)
    }

    /// Sends a request and waits for its answer. Real-time: allocates nothing.
    fn ask(&mut self, request: &Request<'_>) -> Result<Body<'_>, Fault> {
        if self.stopped {
            return Err(Fault::Stopped);
        }
        self.tell(request)?;
        let got = socket::receive(&self.socket, &mut self.packet);
        let length = got.map_err(|_| Fault::Disconnected)?.ok_or(Fault::Disconnected)?;
        let reply = Reply::decode(&self.packet[..length]).map_err(|_| Fault::Disconnected)?;
        self.now = Instant { local: reply.local, network: Some(reply.network) };
        if reply.body == Body::Stopped {
            self.stopped = true;
            return Err(Fault::Stopped);
        }
        Ok(reply.body)
    }
}

/// Uses the calling thread's connection.
fn with_control<T>(use_it: impl FnOnce(&mut Control) -> Result<T, Fault>) -> Result<T, Fault> {
    // The thread's connection is gone when its thread-local values have been destroyed.
    CONTROL
        .try_with(|control| use_it(control.borrow_mut().as_mut().ok_or(Fault::UnknownThread)?))
        .unwrap_or(Err(Fault::UnknownThread))
}

#[derive(Debug)]
struct Shared {
    name: String,
    token: Token,
    start: OnceLock<Start>,
}

impl Shared {
    fn start(&self) -> Result<&Start, Fault> {
        self.start.get().ok_or(Fault::NotStarted)
    }

    /// The node's clock in a real-time run.
    fn real_clock(&self) -> Result<Option<EmulatedClock>, Fault> {
        let start = self.start()?;
        let begin = |ns| EmulatedClock { start: MonoTime::from_ns(ns), error: start.clock };
        Ok(start.real.map(begin))
    }

    fn now(&self) -> Result<Instant, Fault> {
        let Some(clock) = self.real_clock()? else {
            return with_control(|control| Ok(control.now));
        };
        let network = clock.network();
        Ok(Instant { local: clock.error.read(network), network: Some(network) })
    }

    /// In real time, waits until there is something to receive or `patience` is at its end.
    fn is_readable(&self, socket: &OwnedFd, patience: Patience) -> Result<bool, Fault> {
        let until = match patience {
            Patience::Endless => return Ok(true),
            Patience::None => return Ok(false),
            Patience::Until(until) => until,
        };
        let clock = self.real_clock()?.ok_or(Fault::Disconnected)?;
        let at = self.when(&clock, until)?;
        loop {
            let left = at - MonoTime::now();
            let look = socket::readable(socket, left.max(Span::ZERO));
            if look.map_err(|_| Fault::Disconnected)? {
                return Ok(true);
            }
            if left <= Span::ZERO {
                return Ok(false);
            }
        }
    }

    /// When, on the machine's clock, a real-time run's node's clock reads `reading`.
    fn when(&self, clock: &EmulatedClock, reading: LocalTime) -> Result<MonoTime, Fault> {
        Ok(clock.when(clamp_to_run(reading, &clock.error, self.start()?.stop)))
    }

    fn sleep_until(&self, target: LocalTime) -> Result<Instant, Fault> {
        let Some(clock) = self.real_clock()? else {
            return with_control(|control| {
                let _ = control.ask(&Request::Sleep(target))?;
                Ok(control.now)
            });
        };
        let stop = clock.at(self.start()?.stop);
        let until = self.when(&clock, target)?;
        if until > stop {
            stop.sleep();
            return Err(Fault::Stopped);
        }
        until.sleep();
        self.now()
    }
}

/// A program's membership in a fabric.
#[derive(Clone, Debug)]
pub struct Context {
    shared: Arc<Shared>,
}

/// What one thread hands to another that it creates.
#[derive(Debug)]
pub struct ThreadTicket {
    shared: Arc<Shared>,
    ticket: u32,
}

impl Context {
    /// Joins the fabric that the environment names. The calling thread is the program's main one.
    pub fn join() -> Result<Self, SetupError> {
        if CONTROL.with_borrow(Option::is_some) {
            return Err(SetupError::Twice);
        }
        let value = std::env::var(ENVIRONMENT).map_err(|_| SetupError::NoFabric)?;
        let (name, token) = value.rsplit_once(':').ok_or(SetupError::BadEnvironment)?;
        let token = parse_token(token).ok_or(SetupError::BadEnvironment)?;
        let shared = Shared { name: name.to_owned(), token, start: OnceLock::new() };
        let control = Control::connect(&shared, None)?;
        CONTROL.set(Some(control));
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Opens the writing end of a channel for messages of `size` octets.
    pub fn open_talker(&self, name: &str, size: Octets) -> Result<FabricTalker, SetupError> {
        let (parameters, port, log) = self.open(Role::Talker, name, size)?;
        Ok(TalkerEnd::new(Talker::new(parameters), port, log))
    }

    /// Opens a reading end of a channel for messages of `size` octets.
    pub fn open_listener(&self, name: &str, size: Octets) -> Result<FabricListener, SetupError> {
        let (parameters, port, log) = self.open(Role::Listener, name, size)?;
        Ok(ListenerEnd::new(Listener::new(parameters), port, log))
    }

    fn open(
        &self,
        role: Role,
        name: &str,
        size: Octets,
    ) -> Result<(ChannelParameters, EndPort, SharedLog), SetupError> {
        CONTROL.with_borrow_mut(|control| {
            let control = control.as_mut().ok_or(Fault::UnknownThread)?;
            control.tell(&Request::Open { role, size, name })?;
            let got = socket::receive_with(&control.socket, &mut control.packet)?;
            let (length, descriptors) = got.ok_or(Fault::Disconnected)?;
            let reply = Reply::decode(&control.packet[..length]);
            let (end, capacity, parameters) = match reply.map_err(|_| SetupError::Nonsense)?.body {
                Body::Opened { end, capacity, parameters } => (end, capacity, parameters),
                Body::Refused(why) => return Err(SetupError::Refused(why.to_owned())),
                Body::Stopped => return Err(Fault::Stopped.into()),
                _ => return Err(SetupError::Nonsense),
            };
            let mut descriptors = descriptors.into_iter();
            let memory = descriptors.next().ok_or(SetupError::Nonsense)?;
            let log = SharedLog::map(memory, capacity)?;
            let shared = Arc::clone(&self.shared);
            let own = descriptors.next();
            Ok((parameters, EndPort { shared, end, own, packet: [0; MAX_PACKET] }, log))
        })
    }

    /// Ends set-up: waits until every program of the system has come this far, and returns at the
    /// common start, the epoch of network time.
    pub fn start(&self) -> Result<(), SetupError> {
        if self.shared.start.get().is_some() {
            return Ok(());
        }
        want_exact_timers();
        let start = CONTROL.with_borrow_mut(|control| {
            let control = control.as_mut().ok_or(Fault::UnknownThread)?;
            match control.ask(&Request::Start)? {
                Body::Started(start) => Ok(start),
                Body::Refused(why) => Err(SetupError::Refused(why.to_owned())),
                _ => Err(SetupError::Nonsense),
            }
        })?;
        if let Some(begin) = start.real {
            if let Err(error) = rustix::mm::mlockall(MlockAllFlags::CURRENT) {
                // The run goes on: only its worst case gets worse.
                eprintln!(
                    "onbeat: memory is not locked ({error}): page faults may delay this program"
                );
            }
            MonoTime::from_ns(begin).sleep();
        }
        // Only the main thread comes here, and only once.
        let _ = self.shared.start.set(start);
        Ok(())
    }

    /// What the host's copy of the network clock reads.
    pub fn now(&self) -> Result<Instant, Fault> {
        self.shared.now()
    }

    /// Sleeps until the host's copy of the network clock reads `target`; returns when it did.
    pub fn sleep_until(&self, target: LocalTime) -> Result<Instant, Fault> {
        self.shared.sleep_until(target)
    }

    /// Declares that the work just done takes `span`. In virtual time it passes now; in real time
    /// it has passed by itself.
    pub fn work(&self, span: Span) -> Result<(), Fault> {
        match self.shared.real_clock()? {
            Some(_) => Ok(()),
            None => with_control(|control| control.ask(&Request::Work(span)).map(|_| ())),
        }
    }

    /// Announces a thread that is about to be created.
    pub fn announce(&self) -> Result<ThreadTicket, Fault> {
        self.shared.start()?;
        let ticket = with_control(|control| match control.ask(&Request::Announce)? {
            Body::Ticket(ticket) => Ok(ticket),
            _ => Err(Fault::Disconnected),
        })?;
        Ok(ThreadTicket { shared: Arc::clone(&self.shared), ticket })
    }

    /// Waits, in the time of the run, until an announced thread has ended.
    pub fn wait_for(&self, ticket: u32) -> Result<(), Fault> {
        match self.shared.real_clock()? {
            Some(_) => Ok(()),
            None => with_control(|control| control.ask(&Request::Join(ticket)).map(|_| ())),
        }
    }
}

impl ThreadTicket {
    /// Names the thread for [`Context::wait_for`].
    pub fn number(&self) -> u32 {
        self.ticket
    }

    /// Makes the calling thread the announced one; returns when the run lets it go on.
    pub fn begin(&self) -> Result<(), SetupError> {
        want_exact_timers();
        let control = Control::connect(&self.shared, Some(self.ticket))?;
        CONTROL.set(Some(control));
        Ok(())
    }
}

/// Ends the calling thread's membership. The main thread's end is the program's.
pub fn leave() {
    // Without the thread-local value there is no connection left to take leave on.
    let _ = CONTROL.try_with(|control| {
        if let Some(mut control) = control.take() {
            // A fabric that is gone needs no farewell.
            let _ = control.tell(&Request::Bye);
        }
    });
}

fn parse_token(text: &str) -> Option<Token> {
    if text.len() != 32 || !text.is_ascii() {
        return None;
    }
    let mut token = [0; 16];
    for (octet, at) in token.iter_mut().zip((0..32).step_by(2)) {
        *octet = u8::from_str_radix(&text[at..at + 2], 16).ok()?;
    }
    Some(Token(token))
}

/// An end's way to clock and network.
#[derive(Debug)]
pub struct EndPort {
    shared: Arc<Shared>,
    end: u32,
    /// In real time, the end's own socket.
    own: Option<OwnedFd>,
    packet: [u8; MAX_PACKET],
}

impl EndPort {
    /// In real time, waits on the end's own socket for as long as `patience` says.
    fn receive_own(
        &mut self,
        into: &mut [u8],
        patience: Patience,
    ) -> Result<Option<Received>, Fault> {
        let own = self.own.as_ref().ok_or(Fault::Disconnected)?;
        let mut waited = true;
        let mut got = socket::try_receive(own, &mut self.packet);
        if is_empty(&got) {
            waited = false;
            if !self.shared.is_readable(own, patience)? {
                return Ok(None);
            }
            got = socket::receive(own, &mut self.packet);
        }
        let Some(length) = got.map_err(|_| Fault::Disconnected)? else {
            // The fabric closes an end when the run is over; before, it is gone.
            let over = self.shared.now()?.network >= Some(self.shared.start()?.stop);
            return Err(if over { Fault::Stopped } else { Fault::Disconnected });
        };
        let (stamp, frame) =
            self.packet[..length].split_first_chunk::<STAMP>().ok_or(Fault::Disconnected)?;
        let arrived = LocalTime::from_ns(i64::from_le_bytes(*stamp));
        let length = copy_frame(frame, into)?;
        let ready = if waited {
            let network = self.shared.start()?.clock.when(arrived);
            Instant { local: arrived, network: Some(network) }
        } else {
            self.shared.now()?
        };
        Ok(Some(Received { length, arrived, ready, waited }))
    }
}

fn is_empty(got: &io::Result<Option<usize>>) -> bool {
    got.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
}

/// Copies a frame that is no longer than a frame may be.
fn copy_frame(frame: &[u8], into: &mut [u8]) -> Result<usize, Fault> {
    into.get_mut(..frame.len()).ok_or(Fault::Disconnected)?.copy_from_slice(frame);
    Ok(frame.len())
}

impl Port for EndPort {
    fn now(&mut self) -> Result<Instant, Fault> {
        self.shared.now()
    }

    /// The emulated network's clocks are as good as the description says they are.
    fn uncertain(&self) -> bool {
        false
    }

    fn sleep_until(&mut self, target: LocalTime) -> Result<Instant, Fault> {
        self.shared.sleep_until(target)
    }

    fn send(&mut self, frame: &[u8]) -> Result<(), Fault> {
        let now = self.shared.now()?.network.unwrap_or_default();
        if now >= self.shared.start()?.write_until {
            return Err(Fault::Stopped);
        }
        match &self.own {
            None => with_control(|control| control.tell(&Request::Send(self.end, frame))),
            Some(own) => {
                let stamp = now.as_ns().to_le_bytes();
                let parts = [IoSlice::new(&stamp), IoSlice::new(frame)];
                socket::send(own, &parts).map_err(|_| Fault::Disconnected)
            }
        }
    }

    fn receive(&mut self, into: &mut [u8], patience: Patience) -> Result<Option<Received>, Fault> {
        let clock = self.shared.start()?.clock;
        if self.own.is_some() {
            return self.receive_own(into, patience);
        }
        with_control(|control| {
            let body = control.ask(&Request::Receive(self.end, patience))?;
            let (arrived, ready, length) = match body {
                Body::Empty => return Ok(None),
                Body::Frame { arrived, ready, octets } => {
                    (arrived, ready, copy_frame(octets, into)?)
                }
                _ => return Err(Fault::Disconnected),
            };
            let waited = Some(ready) != control.now.network;
            let ready = Instant { local: clock.read(ready), network: Some(ready) };
            Ok(Some(Received { length, arrived, ready, waited }))
        })
    }
}
