//! The program's side of the coordinator: what the C library calls.
//!
//! Every thread has a connection of its own, kept with the thread. In virtual time each call that
//! blocks is a question to the coordinator, which answers when its time has come; the time of the
//! last answer is the time until the next question, since work between calls takes none. Questions
//! and answers are in memory that both share. In real time only set-up goes that way, by a socket:
//! an end has one of its own, sleeps are the thread's own, and so no process is between a thread
//! and its frames.

use crate::clock::{EmulatedClock, MonoTime, clamp_to_run, want_exact_timers};
use crate::context::{EndpointIo, Listener, Talker};
use crate::coordinator::control::{Connection, Control, OnProcessor};
use crate::coordinator::protocol::{
    Attachment, Base, Body, ENVIRONMENT, EndpointNumbers, MAX_PACKET, MAX_SELECT, OLD_ENVIRONMENT,
    Request, Start, VERSION, Work,
};
use crate::coordinator::socket;
use crate::instrument::{Instruments, Watch, WatchError};
use crate::interface::context::{attach, follow_schedule};
use crate::interface::precautions::lock_memory;
use crate::interface::{
    self, ClockKind, Interface, InterfaceIo, InterfaceSettings, Limits, NetworkClock,
    StationSocket, Timebase, Transport,
};
use crate::keys::{EndKeys, KeyStore};
use crate::recorder::Recorder;
use crate::selector::SOONER;
use crate::shared_log::SharedLog;
use onbeat_model::integrity::Integrity;
use onbeat_model::record::Role;
use onbeat_model::time::{NetTime, Span, SyncedTime};
use onbeat_model::units::Octets;
use onbeat_runtime::channel::{ListenerEndpoint, TalkerEndpoint};
use onbeat_runtime::channel_io::{
    ChannelError, ChannelIo, Framing, Instant, Limited, Received, Timeout, Window,
};
use onbeat_runtime::integrity::{Guard, Seal};
use onbeat_runtime::listener;
use onbeat_runtime::talker::{self, ChannelParameters};
use rustix::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use rustix::fs::FileType;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::cell::RefCell;
use std::ffi::c_void;
use std::io::{self, IoSlice};
use std::sync::{Arc, OnceLock};

/// Octets before a frame on an end's own socket: when it was sent or had arrived.
pub const STAMP: usize = 8;

/// Why a program could not join its coordinator or open a channel.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The environment names no coordinator.
    #[error(
        "neither {ENVIRONMENT} nor ONBEAT_INTERFACE is set: start this program through \
         `onbeat run`, or name an interface and, in ONBEAT_SYSTEM, the table of its channels"
    )]
    NotInRun,
    /// The interface cannot be used.
    #[error("interface `{name}`: {error}")]
    Interface {
        /// Its name.
        name: String,
        /// What the system said.
        error: io::Error,
    },
    /// The thread has joined already.
    #[error("this thread has joined the run already")]
    Twice,
    /// The environment variable is not of its form.
    #[error("{ENVIRONMENT} is not of the form DESCRIPTOR:INODE: another version of Onbeat set it")]
    BadEnvironment,
    /// The socket that the program was started with is not there.
    #[error(
        "descriptor {0}, which the run started this program with, is not open: the program has \
         joined the run before, or what started it did not hand the descriptor on"
    )]
    Closed(RawFd),
    /// The coordinator went away.
    #[error("the run coordinator cannot be reached: {0}")]
    Unreachable(#[from] io::Error),
    /// The coordinator will not have it.
    #[error("{0}")]
    Refused(String),
    /// The coordinator answered something else than what was asked.
    #[error("the run coordinator uses another protocol than this library")]
    ProtocolViolation,
    /// Something that was to be watched cannot be.
    #[error(transparent)]
    Watch(#[from] WatchError),
    /// The call came from a thread that the coordinator does not know, or at the wrong moment.
    #[error(transparent)]
    ChannelError(#[from] ChannelError),
}

thread_local! {
    static CONTROL: RefCell<Option<Control>> = const { RefCell::new(None) };
}

/// Uses the calling thread's connection.
fn with_control<T>(
    use_it: impl FnOnce(&mut Control) -> Result<T, ChannelError>,
) -> Result<T, ChannelError> {
    // The thread's connection is gone when its thread-local values have been destroyed.
    CONTROL
        .try_with(|control| {
            use_it(control.borrow_mut().as_mut().ok_or(ChannelError::UnknownThread)?)
        })
        .unwrap_or(Err(ChannelError::UnknownThread))
}

#[derive(Debug)]
struct Shared {
    start: OnceLock<Start>,
    /// The clock of real time.
    base: Arc<Timebase>,
    /// What is switched on in real time.
    instruments: Instruments,
    /// The interface that its ends use.
    interface: OnceLock<String>,
    /// The keys of ends on an interface that other systems may share.
    keys: OnceLock<Arc<KeyStore>>,
}

impl Shared {
    fn start(&self) -> Result<&Start, ChannelError> {
        self.start.get().ok_or(ChannelError::NotStarted)
    }

    fn is_virtual(&self) -> Result<bool, ChannelError> {
        Ok(self.start()?.base == Base::Virtual)
    }

    fn now(&self) -> Result<Instant, ChannelError> {
        if self.is_virtual()? {
            self.base.check_owner()?;
            return with_control(|control| Ok(control.now));
        }
        self.base.instant()
    }

    /// In real time, waits until there is something to receive or `patience` is at its end.
    fn is_readable(&self, socket: &OwnedFd, patience: Timeout) -> Result<bool, ChannelError> {
        let until = match patience {
            Timeout::Endless => return Ok(true),
            Timeout::None => return Ok(false),
            Timeout::Until(until) => until,
        };
        let start = self.start()?;
        let until = clamp_to_run(until, &start.clock, start.stop);
        loop {
            let left = self.base.left(until)?;
            let look = socket::readable(socket, left.max(Span::ZERO));
            if look.map_err(|_| ChannelError::Disconnected)? {
                return Ok(true);
            }
            if left <= Span::ZERO {
                return Ok(false);
            }
        }
    }

    fn sleep_until(&self, target: SyncedTime) -> Result<Instant, ChannelError> {
        if self.is_virtual()? {
            return with_control(|control| {
                let _ = control.ask(&Request::Sleep(target))?;
                Ok(control.now)
            });
        }
        self.base.sleep_until(target)
    }
}

/// A program's membership in a coordinator.
#[derive(Clone, Debug)]
pub struct RunContext {
    shared: Arc<Shared>,
}

/// What one thread hands to another that it creates. Dropped, there is no such thread.
#[derive(Debug)]
pub struct AnnouncedThread {
    ticket: u32,
    connection: Connection,
    /// That of the thread that creates it.
    processor: OnProcessor,
}

impl RunContext {
    /// Joins the coordinator that the environment names. The calling thread is the program's main
    /// one.
    pub fn join() -> Result<Self, SetupError> {
        if CONTROL.with_borrow(Option::is_some) {
            return Err(SetupError::Twice);
        }
        let value = crate::environment::var(ENVIRONMENT)
            .or_else(|_| crate::environment::var(OLD_ENVIRONMENT))
            .map_err(|_| SetupError::NotInRun)?;
        let (start, base) = (OnceLock::new(), Arc::default());
        let instruments = Instruments::new(&Watch::from_environment()?, &base, 0)?;
        let (interface, keys) = (OnceLock::new(), OnceLock::new());
        let shared = Shared { start, base, instruments, interface, keys };
        let door = Connection { socket: Arc::new(inherited(&value)?), memory: None };
        let (_, own) = Control::over(door).ask_for_ticket(&Request::Hello(VERSION))?;
        CONTROL.set(Some(Control::begin(own, OnProcessor::default())?));
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Opens the writing end of a channel for messages of `size` octets.
    pub fn open_talker(&self, name: &str, size: Octets) -> Result<Talker, SetupError> {
        let opened = self.open(Role::Talker, name, size)?;
        let mut talker = talker::Talker::of_instance(opened.parameters, opened.instance);
        if let Some((seal, _)) = opened.protected {
            talker = talker.sealed(seal);
        }
        if let Some(last) = opened.last {
            talker.go_on(last);
        }
        Ok(TalkerEndpoint::new(talker, Limited::new(opened.io), opened.recorder))
    }

    /// Opens a reading end of a channel for messages of `size` octets.
    pub fn open_listener(&self, name: &str, size: Octets) -> Result<Listener, SetupError> {
        let opened = self.open(Role::Listener, name, size)?;
        // What came while the end was not open is not lost.
        let is_there_from_the_start = opened.start == 1 && self.shared.start.get().is_none();
        let mut listener = match is_there_from_the_start {
            true => listener::Listener::new(opened.parameters),
            false => listener::Listener::joining(opened.parameters),
        };
        if let Some((_, guard)) = opened.protected {
            listener = listener.guarded(guard);
        }
        let mut end = ListenerEndpoint::new(listener, Limited::new(opened.io), opened.recorder);
        end.count_sooner(&SOONER);
        end.set_deadline(opened.deadline)?;
        end.set_lifespan(opened.lifespan).map_err(|_| SetupError::ProtocolViolation)?;
        if opened.follows_schedule {
            follow_schedule(&mut end);
        }
        Ok(end)
    }

    fn open(&self, role: Role, name: &str, size: Octets) -> Result<Opened, SetupError> {
        self.shared.base.check_owner()?;
        CONTROL.with_borrow_mut(|control| {
            let control = control.as_mut().ok_or(ChannelError::UnknownThread)?;
            let request = Request::Open { role, size, name };
            let (body, descriptors) = control.ask_for_descriptors(&request)?;
            let Body::Opened {
                end,
                start,
                last,
                deadline,
                lifespan,
                capacity,
                parameters,
                attachment,
            } = body
            else {
                return Err(SetupError::ProtocolViolation);
            };
            let mut descriptors = descriptors.into_iter();
            let memory = descriptors.next().ok_or(SetupError::ProtocolViolation)?;
            let mut log = SharedLog::map(memory, capacity)?;
            // The program may have called it by its number.
            let identity = log.identity();
            log.declare(parameters.interval);
            let own = descriptors.next();
            // Others may have talked on an interface before; namespaces and the emulated network
            // are new in every run, and the latter's frames are the same.
            let is_shared = attachment.is_some_and(|attachment| attachment.is_shared);
            let instance =
                if is_shared { interface::instance() } else { (start - 1) as u8 % 255 + 1 };
            let keys = if is_shared { self.keys_of(name, &parameters)? } else { None };
            // Before the run's start there was another run.
            let protected = keys.as_ref().map(|keys| keys.both(SyncedTime::ZERO)).transpose();
            let protected = protected.map_err(SetupError::Refused)?;
            let mut probe = None;
            if own.is_some() || attachment.is_some() {
                probe = self.shared.instruments.probe(&identity, parameters.size.get());
            }
            let io = match &attachment {
                None => {
                    let (shared, packet) = (Arc::clone(&self.shared), [0; MAX_PACKET]);
                    EndpointIo::Run(Box::new(CoordinatorIo { shared, end, own, packet }))
                }
                Some(attachment) => {
                    let io = self.attach(attachment, own, (&parameters, role), end)?;
                    EndpointIo::Interface(Box::new(io.keyed(keys)))
                }
            };
            let follows_schedule = attachment.is_some_and(|a| a.options.follow_schedule);
            let recorder = Recorder::with(log, probe);
            let opened = Opened {
                parameters,
                start,
                last,
                deadline,
                lifespan,
                instance,
                io,
                recorder,
                follows_schedule,
                protected,
            };
            Ok(opened)
        })
    }

    /// An end on an interface, in a namespace, or at the host's station.
    fn attach(
        &self,
        attachment: &Attachment<'_>,
        own: Option<OwnedFd>,
        (parameters, role): (&ChannelParameters, Role),
        end: u32,
    ) -> Result<InterfaceIo, SetupError> {
        let settings = InterfaceSettings {
            name: attachment.interface.to_owned(),
            transport: attachment.transport,
            options: attachment.options,
            ..InterfaceSettings::default()
        };
        let wire = match attachment.by_station {
            true => station_end(own)?,
            false => attach_in(own, &settings, parameters, role)?,
        };
        let _ = self.shared.interface.set(settings.name);
        let base = Arc::clone(&self.shared.base);
        let open = Open { base: Arc::clone(&base), end };
        Ok(InterfaceIo::claiming(base, wire, Some(Box::new(open))))
    }

    /// Waits until one of the ends, all of the emulated network in virtual time, has a frame.
    pub fn select(
        &self,
        ends: &[&Listener],
        patience: Timeout,
    ) -> Result<Option<usize>, ChannelError> {
        let mut octets = [0; 4 * MAX_SELECT];
        let wanted = ends.iter().take(MAX_SELECT);
        for (slot, listener) in octets.as_chunks_mut::<4>().0.iter_mut().zip(wanted.clone()) {
            let EndpointIo::Run(io) = listener.io().inner() else {
                return Err(ChannelError::Disconnected);
            };
            *slot = io.end.to_le_bytes();
        }
        let ends =
            EndpointNumbers::new(&octets[..4 * wanted.len()]).ok_or(ChannelError::Disconnected)?;
        with_control(|control| match control.ask(&Request::Select(ends, patience))? {
            Body::Ready(position) => Ok(Some(position as usize)),
            Body::Empty => Ok(None),
            _ => Err(ChannelError::Disconnected),
        })
    }

    /// Whether time is virtual.
    pub fn is_virtual(&self) -> Result<bool, ChannelError> {
        self.shared.is_virtual()
    }

    /// The keys that were needed.
    pub(crate) fn keys(&self) -> Option<&KeyStore> {
        self.shared.keys.get().map(Arc::as_ref)
    }

    fn keys_of(
        &self,
        name: &str,
        parameters: &ChannelParameters,
    ) -> Result<Option<EndKeys>, SetupError> {
        let refuse = |why| SetupError::Refused(format!("channel `{name}`: {why}"));
        if parameters.integrity != Integrity::Authenticated {
            return Ok(None);
        }
        if self.shared.keys.get().is_none() {
            let _ = self.shared.keys.set(KeyStore::open(None).map_err(refuse)?);
        }
        self.shared.keys.get().map_or(Ok(None), |keys| keys.of_end(parameters)).map_err(refuse)
    }

    /// The clock of real time.
    pub fn base(&self) -> &Timebase {
        &self.shared.base
    }

    /// Ends set-up: waits until every program of the system has come this far, and returns at the
    /// common start, the epoch of network time.
    pub fn start(&self) -> Result<(), SetupError> {
        self.shared.base.check_owner()?;
        if self.shared.start.get().is_some() {
            return Ok(());
        }
        want_exact_timers();
        let start = CONTROL.with_borrow_mut(|control| {
            let control = control.as_mut().ok_or(ChannelError::UnknownThread)?;
            match control.ask(&Request::Start)? {
                Body::Started(start) => Ok(start),
                Body::Refused(why) => Err(SetupError::Refused(why.to_owned())),
                _ => Err(SetupError::ProtocolViolation),
            }
        })?;
        if start.base != Base::Virtual {
            // Without it the run continues: only its worst case gets worse.
            lock_memory(false);
        }
        let clock = match start.base {
            Base::Virtual => None,
            Base::Machine(at) => {
                let begin = MonoTime::from_ns(at);
                Some(NetworkClock::Emulated(EmulatedClock { start: begin, error: start.clock }))
            }
            Base::Network(epoch) => Some(self.network_clock(epoch)?),
        };
        if let Some(clock) = clock {
            let limits = Limits { write_until: start.write_until, stop: start.stop };
            clock.sleep_until_network(NetTime::ZERO);
            self.shared.base.begin(clock, limits);
        }
        // Only the main thread comes here, and only once.
        let _ = self.shared.start.set(start);
        Ok(())
    }

    /// The clock of a run on an interface, watched.
    fn network_clock(&self, epoch: i64) -> Result<NetworkClock, SetupError> {
        let Some(name) = self.shared.interface.get() else {
            return Ok(NetworkClock::Tai { epoch, watch: None });
        };
        let failed = |error| SetupError::Interface { name: name.clone(), error };
        let clock = ClockKind::Tai;
        let settings =
            InterfaceSettings { name: name.clone(), epoch, clock, ..InterfaceSettings::default() };
        NetworkClock::open(&Interface::named(name).map_err(failed)?, &settings).map_err(failed)
    }

    /// What the host's copy of the network clock reads.
    pub fn now(&self) -> Result<Instant, ChannelError> {
        self.shared.now()
    }

    /// Sleeps until the host's copy of the network clock reads `target`; returns when it did.
    pub fn sleep_until(&self, target: SyncedTime) -> Result<Instant, ChannelError> {
        self.shared.sleep_until(target)
    }

    /// Declares the work just done. In virtual time it passes now; in real time it has passed by
    /// itself. False: it was cut short.
    pub fn work(&self, work: Work) -> Result<bool, ChannelError> {
        if !self.shared.is_virtual()? {
            return self.shared.base.look().map(|_| true);
        }
        with_control(|control| match control.ask(&Request::Work(work))? {
            Body::Done => Ok(true),
            Body::Empty => Ok(false),
            _ => Err(ChannelError::Disconnected),
        })
    }

    /// In virtual time, waits until a thread of this program wakes those that wait for `key`;
    /// whether one did in time. The one that holds what is waited for is as urgent meanwhile.
    pub(crate) fn park(
        &self,
        key: u64,
        patience: Timeout,
        holder: u32,
    ) -> Result<bool, ChannelError> {
        with_control(|control| match control.ask(&Request::Park { key, patience, holder })? {
            Body::Done => Ok(true),
            Body::Empty => Ok(false),
            _ => Err(ChannelError::Disconnected),
        })
    }

    /// In virtual time, wakes the threads of this program that wait for `key`.
    pub(crate) fn unpark(&self, key: u64) -> Result<(), ChannelError> {
        with_control(|control| match control.stopped {
            true => Err(ChannelError::Stopped),
            false => control.tell(&Request::Unpark(key)),
        })
    }

    /// Announces a thread that is about to be created.
    pub fn announce(&self) -> Result<AnnouncedThread, ChannelError> {
        self.shared.base.check_owner()?;
        self.shared.start()?;
        with_control(|control| {
            let asked = control.ask_for_ticket(&Request::Announce);
            let (ticket, connection) = asked.map_err(|error| match error {
                SetupError::ChannelError(fault) => fault,
                _ => ChannelError::Disconnected,
            })?;
            Ok(AnnouncedThread { ticket, connection, processor: control.processor })
        })
    }

    /// Waits, in the time of the run, until an announced thread has ended.
    pub fn wait_for(&self, ticket: u32) -> Result<(), ChannelError> {
        if !self.shared.is_virtual()? {
            return Ok(());
        }
        with_control(|control| control.ask(&Request::Join(ticket)).map(|_| ()))
    }
}

impl AnnouncedThread {
    /// Names the thread for [`Context::wait_for`].
    pub fn number(&self) -> u32 {
        self.ticket
    }

    /// Makes the calling thread the announced one; returns when the run lets it continue.
    pub fn begin(self) -> Result<(), SetupError> {
        want_exact_timers();
        let farewell = self.connection.clone();
        CONTROL.set(Some(Control::begin(self.connection, self.processor)?));
        Farewell::at_the_end(farewell);
        Ok(())
    }
}

/// Takes leave when a thread ends: by its return, by pthread_exit() or cancelled, but not when it
/// ends the process by exit(), which runs the destructors of thread-local values, too. So it is
/// thread-specific data of POSIX, and has the connection for itself.
struct Farewell {
    connection: Connection,
    /// The process whose it is.
    owner: u32,
}

impl Farewell {
    fn at_the_end(connection: Connection) {
        static KEY: OnceLock<libc::pthread_key_t> = OnceLock::new();
        let key = KEY.get_or_init(|| {
            let mut key = 0;
            // SAFETY: the place for the key is valid; the function is called with what is set.
            unsafe { libc::pthread_key_create(&raw mut key, Some(Self::say)) };
            key
        });
        let farewell = Box::new(Self { connection, owner: crate::fork::process() });
        // SAFETY: the key was made; what it gets is the destructor's from now on.
        unsafe { libc::pthread_setspecific(*key, Box::into_raw(farewell).cast()) };
    }

    unsafe extern "C" fn say(farewell: *mut c_void) {
        // SAFETY: `at_the_end` made it for this thread.
        let Self { connection, owner } = *unsafe { Box::from_raw(farewell.cast::<Self>()) };
        if crate::fork::process() == owner {
            // One that has left already, or a coordinator that is gone, needs no farewell.
            let _ = connection.send(&Request::Bye, &mut [0; MAX_PACKET]);
        }
    }
}

/// Ends the calling thread's membership. The main thread's end is the program's.
pub fn leave() {
    // Without the thread-local value there is no connection left to take leave on.
    let _ = CONTROL.try_with(|control| {
        if let Some(mut control) = control.take() {
            // A coordinator that is gone needs no farewell.
            let _ = control.tell(&Request::Bye);
            control.processor.follow(None);
        }
    });
}

/// The socket that the run started this program with. It is used once, and by this process only.
fn inherited(value: &str) -> Result<OwnedFd, SetupError> {
    let (number, inode) = value.split_once(':').ok_or(SetupError::BadEnvironment)?;
    let number: RawFd = number.parse().map_err(|_| SetupError::BadEnvironment)?;
    let inode: u64 = inode.parse().map_err(|_| SetupError::BadEnvironment)?;
    if number < 0 {
        return Err(SetupError::BadEnvironment);
    }
    // SAFETY: only asked what it is; that it may not be open is what is found out.
    let there = rustix::fs::fstat(unsafe { BorrowedFd::borrow_raw(number) });
    if there.is_ok_and(|is| is.st_ino == inode && FileType::from_raw_mode(is.st_mode).is_socket()) {
        // SAFETY: it is what the run opened for this and nothing else, so nobody else closes it.
        return Ok(unsafe { OwnedFd::from_raw_fd(number) });
    }
    Err(SetupError::Closed(number))
}

/// What is opened for a program.
struct Opened {
    parameters: ChannelParameters,
    /// Of a talker.
    /// How often the end was opened, with this time.
    start: u32,
    /// When it last captured a message before.
    last: Option<SyncedTime>,
    /// Of a listener.
    deadline: Option<Span>,
    lifespan: Option<Span>,
    instance: u8,
    io: EndpointIo,
    recorder: Recorder,
    follows_schedule: bool,
    /// Where others may be on the network: what an authenticated channel is checked by.
    protected: Option<(Seal, Guard)>,
}

/// An end's way to the station of its host, over the socket that came for it.
pub fn station_end(socket: Option<OwnedFd>) -> Result<Transport, SetupError> {
    let socket = socket.ok_or(SetupError::ProtocolViolation)?;
    Ok(Transport::Station(StationSocket::new(socket)))
}

/// Makes an end's way to an interface in a network namespace, or in the program's own.
pub fn attach_in(
    namespace: Option<OwnedFd>,
    settings: &InterfaceSettings,
    parameters: &ChannelParameters,
    role: Role,
) -> Result<Transport, SetupError> {
    let make = || {
        let failed = |error| SetupError::Interface { name: settings.name.clone(), error };
        if let Some(namespace) = &namespace {
            let kind = Some(LinkNameSpaceType::Network);
            move_into_link_name_space(namespace.as_fd(), kind)
                .map_err(|errno| failed(errno.into()))?;
        }
        attach(&Interface::named(&settings.name).map_err(failed)?, settings, parameters, role)
    };
    // A thread of its own: the program's stay in their namespace. A socket keeps to the one that
    // it was made in.
    std::thread::scope(|scope| scope.spawn(make).join())
        .map_err(|_| SetupError::ProtocolViolation)?
}

/// An end's way to clock and network through the coordinator.
#[derive(Debug)]
pub struct CoordinatorIo {
    shared: Arc<Shared>,
    end: u32,
    /// In real time, the end's own socket.
    own: Option<OwnedFd>,
    packet: [u8; MAX_PACKET],
}

impl CoordinatorIo {
    /// Refuses a forked child of the process whose end this is.
    pub(crate) fn check_owner(&self) -> Result<(), ChannelError> {
        self.shared.base.check_owner()
    }

    /// A descriptor that is readable when there may be a message; none in virtual time.
    pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.own.as_ref().map(AsFd::as_fd)
    }

    /// In real time, waits on the end's own socket for as long as `patience` says.
    fn receive_own(
        &mut self,
        into: &mut [u8],
        patience: Timeout,
    ) -> Result<Option<Received>, ChannelError> {
        let own = self.own.as_ref().ok_or(ChannelError::Disconnected)?;
        self.shared.base.look()?;
        let mut waited = true;
        let mut got = socket::try_receive(own, &mut self.packet);
        if is_empty(&got) {
            waited = false;
            if !self.shared.is_readable(own, patience)? {
                return Ok(None);
            }
            got = socket::receive(own, &mut self.packet);
        }
        let Some(length) = got.map_err(|_| ChannelError::Disconnected)? else {
            // The coordinator closes an end when the run is over; before, it is gone.
            let over = self.shared.now()?.network >= Some(self.shared.start()?.stop);
            return Err(if over { ChannelError::Stopped } else { ChannelError::Disconnected });
        };
        let (stamp, frame) =
            self.packet[..length].split_first_chunk::<STAMP>().ok_or(ChannelError::Disconnected)?;
        let network = NetTime::from_ns(i64::from_le_bytes(*stamp));
        let arrived = self.shared.start()?.clock.read(network);
        let length = copy_frame(frame, into)?;
        let ready = match waited {
            true => Instant { local: arrived, network: Some(network) },
            false => self.shared.now()?,
        };
        let framing = Framing::Ethernet;
        Ok(Some(Received { length, framing, arrived, stamped: true, ready, waited }))
    }
}

fn is_empty(got: &io::Result<Option<usize>>) -> bool {
    got.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
}

/// Copies a frame that is no longer than a frame may be.
fn copy_frame(frame: &[u8], into: &mut [u8]) -> Result<usize, ChannelError> {
    into.get_mut(..frame.len()).ok_or(ChannelError::Disconnected)?.copy_from_slice(frame);
    Ok(frame.len())
}

impl Drop for CoordinatorIo {
    /// A closed end has no queue. A forked child has only a copy: its parent's stays open.
    fn drop(&mut self) {
        if self.check_owner().is_err() {
            return;
        }
        match &self.own {
            None => {
                // A coordinator that is gone need not know.
                let _ = with_control(|control| control.tell(&Request::Close(self.end)));
            }
            Some(own) => {
                socket::end(own);
                tell_closed(self.end);
            }
        }
    }
}

/// An end on an interface of the run is open.
#[derive(Debug)]
struct Open {
    base: Arc<Timebase>,
    end: u32,
}

impl Drop for Open {
    fn drop(&mut self) {
        if self.base.check_owner().is_ok() {
            tell_closed(self.end);
        }
    }
}

/// Lets a coordinator in real time know that an end is closed, so that it may be opened again.
/// After the end there is no listener any more, and it does not matter.
fn tell_closed(end: u32) {
    let _ = with_control(|control| {
        let length = Request::Close(end).encode(&mut control.packet);
        let parts = [IoSlice::new(&control.packet[..length])];
        socket::try_send(&control.connection.socket, &parts).map_err(|_| ChannelError::Disconnected)
    });
}

impl ChannelIo for CoordinatorIo {
    fn now(&mut self) -> Result<Instant, ChannelError> {
        self.shared.now()
    }

    /// The emulated network's clocks are as good as the description says they are.
    fn uncertain(&self) -> bool {
        false
    }

    fn sleep_until(&mut self, target: SyncedTime) -> Result<Instant, ChannelError> {
        self.shared.sleep_until(target)
    }

    fn may_write(&self, at: SyncedTime) -> Result<(), ChannelError> {
        let start = self.shared.start()?;
        let read = self.shared.now()?;
        let now = read.order();
        // A clock that a protocol steers is not any more what it was at the start.
        let ahead = match start.base {
            Base::Virtual => read.local - start.clock.read(now),
            _ => Span::ZERO,
        };
        let over = start.clock.when_near(now, at - ahead) >= start.write_until;
        if over { Err(ChannelError::Stopped) } else { Ok(()) }
    }

    fn send(&mut self, frame: &[u8]) -> Result<(), ChannelError> {
        match &self.own {
            None => with_control(|control| control.tell(&Request::Send(self.end, frame))),
            Some(own) => {
                let now = self.shared.now()?.network.unwrap_or_default();
                let stamp = now.as_ns().to_le_bytes();
                let parts = [IoSlice::new(&stamp), IoSlice::new(frame)];
                socket::send(own, &parts).map_err(|_| ChannelError::Disconnected)
            }
        }
    }

    fn launch(&mut self, frame: &[u8], at: SyncedTime) -> Result<(), ChannelError> {
        if self.own.is_some() {
            self.sleep_until(at)?;
            return self.send(frame);
        }
        with_control(|control| control.ask(&Request::Launch(self.end, at, frame)).map(|_| ()))
    }

    fn receive(
        &mut self,
        into: &mut [u8],
        patience: Timeout,
        _: Option<Window>,
    ) -> Result<Option<Received>, ChannelError> {
        if self.own.is_some() {
            return self.receive_own(into, patience);
        }
        self.shared.start()?;
        with_control(|control| {
            let body = control.receive(self.end, patience)?;
            let (arrived, ready, length) = match body {
                Body::Empty => return Ok(None),
                Body::Frame { arrived, ready_local, ready, octets } => {
                    let ready = Instant { local: ready_local, network: Some(ready) };
                    (arrived, ready, copy_frame(octets, into)?)
                }
                _ => return Err(ChannelError::Disconnected),
            };
            let waited = ready.network != control.now.network;
            let framing = Framing::Ethernet;
            Ok(Some(Received { length, framing, arrived, stamped: true, ready, waited }))
        })
    }
}
