//! A program's membership in a run, whatever the network is: the Rust interface of the channels.
//!
//! The environment decides: with [`crate::coordinator::protocol::ENVIRONMENT`] a program joins the
//! coordinator that started it; without, it uses a real interface.
//!
//! A message is the octets that the program makes of it. Times are [`SyncedTime`]: the network
//! clock as this host reads it, from the start of the run. Real-time: after [`Context::start`]
//! reading, writing and sleeping allocate nothing; [`TalkerEndpoint`] and [`ListenerEndpoint`] say
//! what each call waits for. When the run is over, every call returns [`ChannelError::Stopped`].

use crate::clock::MonoTime;
use crate::coordinator::client::{self, AnnouncedThread, SetupError};
use crate::coordinator::protocol::{self, ENVIRONMENT, OLD_ENVIRONMENT, Work};
use crate::interface::closer;
use crate::interface::context::INTERFACE;
use crate::interface::srp::StreamStatus;
use crate::interface::{self, InterfaceContext, InterfaceIo, Precautions};
use crate::recorder::Recorder;
use onbeat_model::time::{Span, SyncedTime};
use onbeat_model::units::Octets;
use onbeat_runtime::channel::{ListenerEndpoint, TalkerEndpoint};
use onbeat_runtime::channel_io::{
    ChannelError, ChannelIo, Grant, Instant, Limited, Reason, Received, Timeout, TransmitStamp,
    Window,
};
use onbeat_runtime::integrity::StreamKeys;
use onbeat_runtime::liveness::Liveness;
use rustix::fd::BorrowedFd;
use rustix::thread::futex;
use std::sync::atomic::{AtomicU32, Ordering};

/// What a program passes for the size of messages to open a channel whatever its size is; the end's
/// parameters then say it. For tools: a program that knows its messages names their size, so that
/// another one is refused.
pub const ANY_SIZE: Octets = Octets::new(u32::MAX);

/// The talker's end of a channel.
pub type Talker = TalkerEndpoint<Limited<EndpointIo>, Recorder>;
/// A listener's end of a channel.
pub type Listener = ListenerEndpoint<Limited<EndpointIo>, Recorder>;

/// A program's membership in a run, or its interface.
#[derive(Clone, Debug)]
pub enum Context {
    /// Started by `onbeat run`.
    Run(client::RunContext),
    /// On an interface.
    Interface(InterfaceContext),
}

/// An end's way to clock and network.
#[derive(Debug)]
pub enum EndpointIo {
    /// Through the coordinator.
    Run(Box<client::CoordinatorIo>),
    /// Through an interface.
    Interface(Box<InterfaceIo>),
}

impl Context {
    /// Joins the coordinator that the environment names, or opens the interface that it names.
    pub fn join() -> Result<Self, SetupError> {
        Self::join_with(Precautions::default())
    }

    /// The same with other precautions, where it opens an interface: a run takes its own.
    pub fn join_with(precautions: Precautions) -> Result<Self, SetupError> {
        let coordinator = [ENVIRONMENT, OLD_ENVIRONMENT].map(crate::environment::var_os);
        if coordinator.iter().all(Option::is_none)
            && let Some(interface) = crate::environment::var_os(INTERFACE)
        {
            let context = InterfaceContext::from_environment(&interface, precautions);
            return context.map(Self::Interface);
        }
        client::RunContext::join().map(Self::Run)
    }

    /// Opens the writing end of a channel for messages of `size` octets, or of [`ANY_SIZE`]; `name`
    /// is its name, or [`StreamId::called`](onbeat_model::units::StreamId::called)'s.
    pub fn open_talker(&self, name: &str, size: Octets) -> Result<Talker, SetupError> {
        match self {
            Self::Run(context) => context.open_talker(name, size),
            Self::Interface(context) => context.open_talker(name, size),
        }
    }

    /// Opens a reading end of a channel for messages of `size` octets, or of [`ANY_SIZE`]. `name`
    /// may also be `#` and the number of its stream.
    pub fn open_listener(&self, name: &str, size: Octets) -> Result<Listener, SetupError> {
        match self {
            Self::Run(context) => context.open_listener(name, size),
            Self::Interface(context) => context.open_listener(name, size),
        }
    }

    /// Ends set-up: on a coordinator, waits for the common start; on an interface, for its epoch.
    pub fn start(&self) -> Result<(), SetupError> {
        match self {
            Self::Run(context) => context.start(),
            Self::Interface(context) => {
                context.lock_memory();
                context.base().sleep_until(SyncedTime::ZERO)?;
                Ok(())
            }
        }
    }

    /// What the host's copy of the network clock reads.
    pub fn now(&self) -> Result<Instant, ChannelError> {
        match self {
            Self::Run(context) => context.now(),
            Self::Interface(context) => context.base().instant(),
        }
    }

    /// Sleeps until the host's copy of the network clock reads `target`; returns when it did.
    pub fn sleep_until(&self, target: SyncedTime) -> Result<Instant, ChannelError> {
        match self {
            Self::Run(context) => context.sleep_until(target),
            Self::Interface(context) => context.base().sleep_until(target),
        }
    }

    /// Declares that the work just done takes `span`: it passes now in virtual time, and has
    /// passed by itself elsewhere.
    pub fn work(&self, span: Span) -> Result<(), ChannelError> {
        self.work_until(Work::of(span)).map(|_| ())
    }

    /// The same with a limit and an urgency of its own. False: the limit came first.
    pub fn work_until(&self, work: Work) -> Result<bool, ChannelError> {
        match self {
            Self::Run(context) => context.work(work),
            Self::Interface(context) => context.base().look().map(|_| true),
        }
    }

    /// Waits until `word` is not `value` any more, or a thread of this program has called
    /// [`Context::wake`] for it, or the host's copy of the network clock reads `until`, which
    /// [`Timeout::None`] is at once. False: nothing of the first two happened in time. As with
    /// any futex, whoever waits looks at the word again. Real-time: allocates nothing.
    pub fn wait(&self, word: &AtomicU32, value: u32, until: Timeout) -> Result<bool, ChannelError> {
        self.wait_for_holder(word, value, until, 0)
    }

    /// The same for what a thread of this program holds, as `gettid` numbers it, 0 if unknown.
    /// In virtual time it inherits the urgency of those that wait for it.
    pub fn wait_for_holder(
        &self,
        word: &AtomicU32,
        value: u32,
        until: Timeout,
        holder: u32,
    ) -> Result<bool, ChannelError> {
        if word.load(Ordering::Acquire) != value {
            return Ok(true);
        }
        match self {
            Self::Run(context) if context.is_virtual()? => context.park(key(word), until, holder),
            Self::Run(context) => context.base().wait(word, value, until),
            Self::Interface(context) => context.base().wait(word, value, until),
        }
    }

    /// Wakes all threads of this program that wait for `word`. Real-time: allocates nothing.
    pub fn wake(&self, word: &AtomicU32) -> Result<(), ChannelError> {
        match self {
            Self::Run(context) if context.is_virtual()? => return context.unpark(key(word)),
            Self::Run(context) => context.base().look()?.local,
            Self::Interface(context) => context.base().look()?.local,
        };
        futex::wake(word, futex::Flags::PRIVATE, i32::MAX as u32)
            .map_err(|_| ChannelError::Network)?;
        Ok(())
    }

    /// What CLOCK_MONOTONIC reads, or will read, when the host's copy of the network clock reads
    /// `reading`; `None` in virtual time. A reading more than [`interface::HORIZON`] from now is
    /// taken as one so far off.
    pub fn machine_time(&self, reading: SyncedTime) -> Result<Option<MonoTime>, ChannelError> {
        match self {
            Self::Run(context) if context.is_virtual()? => Ok(None),
            Self::Run(context) => context.base().machine_time(reading).map(Some),
            Self::Interface(context) => context.base().machine_time(reading).map(Some),
        }
    }

    /// Announces a thread that is about to be created; on an interface this has no effect.
    pub fn announce(&self) -> Result<Option<AnnouncedThread>, ChannelError> {
        match self {
            Self::Run(context) => context.announce().map(Some),
            Self::Interface(context) => context.base().check_owner().map(|()| None),
        }
    }

    /// Waits, in the time of the run, until an announced thread has ended.
    pub fn wait_for(&self, ticket: u32) -> Result<(), ChannelError> {
        match self {
            Self::Run(context) => context.wait_for(ticket),
            Self::Interface(_) => Ok(()),
        }
    }

    /// Reads the keys of authenticated channels again, from where they were read; each end takes
    /// them before its next message, so that none is lost while talkers and readers have one in
    /// common. On the emulated networks of a run this has no effect. Reads a file; not for a
    /// thread with deadlines.
    pub fn reload_keys(&self) -> Result<(), SetupError> {
        self.check_owner()?;
        let keys = match self {
            Self::Run(context) => match context.keys() {
                Some(keys) => keys,
                None => return Ok(()),
            },
            Self::Interface(context) => context.keys(),
        };
        keys.reload().map_err(SetupError::Refused)
    }

    /// Refuses a forked child of the process that made this.
    pub(crate) fn check_owner(&self) -> Result<(), ChannelError> {
        match self {
            Self::Run(context) => context.base().check_owner(),
            Self::Interface(context) => context.base().check_owner(),
        }
    }

    /// Makes all waiting calls return [`ChannelError::Stopped`] within [`interface::LOOK_AGAIN`];
    /// in a run, the coordinator says when it is over. May be called by a signal handler.
    pub fn stop(&self) {
        if let Self::Interface(context) = self {
            context.base().stop();
        }
    }

    /// The most ends that [`Context::select`] waits for at once.
    pub fn max_select(&self) -> Result<usize, ChannelError> {
        match self {
            Self::Run(context) if context.is_virtual()? => Ok(protocol::MAX_SELECT),
            _ => Ok(interface::MAX_SELECT),
        }
    }

    /// Leaves the run; the main thread's end is the program's. On an interface there is none. The
    /// sockets of ends that were closed are then closed.
    pub fn leave(&self) {
        closer::finish();
        if let Self::Run(_) = self {
            client::leave();
        }
    }

    /// Waits until one of the ends has something to read, or has missed its deadline, and returns
    /// its position; `None` when none has in time. Of several that have, the first; a deadline that
    /// was missed before the call comes first, and each is told once.
    pub fn select(
        &self,
        ends: &[&Listener],
        patience: Timeout,
    ) -> Result<Option<usize>, ChannelError> {
        loop {
            let Some(missed) = ends.iter().filter_map(|end| end.missed_from()).min() else {
                return self.select_readable(ends, patience);
            };
            let now = self.now()?.local;
            if missed <= now
                && let Some(at) = self.first_that_missed(ends, now)?
            {
                return Ok(Some(at));
            }
            // One that missed its deadline, as far as it has looked, has something to read.
            let until = match patience {
                Timeout::Endless => Timeout::Until(missed),
                Timeout::Until(until) => Timeout::Until(until.min(missed)),
                Timeout::None => Timeout::None,
            };
            let found = self.select_readable(ends, until)?;
            if found.is_some() || until == patience {
                return Ok(found);
            }
        }
    }

    /// The first of the ends whose deadline is over at `now` without anything to read.
    fn first_that_missed(
        &self,
        ends: &[&Listener],
        now: SyncedTime,
    ) -> Result<Option<usize>, ChannelError> {
        for (at, end) in ends.iter().enumerate() {
            if self.has_missed(end, now)? {
                return Ok(Some(at));
            }
        }
        Ok(None)
    }

    /// Whether the end's deadline is over at `now` without anything to read; notes that.
    pub(crate) fn has_missed(&self, end: &Listener, now: SyncedTime) -> Result<bool, ChannelError> {
        let is_over = end.missed_from().is_some_and(|missed| missed <= now);
        Ok(is_over
            && self.select_readable(&[end], Timeout::None)?.is_none()
            && end.nothing_until(now))
    }

    /// What is known of an end's talker, and what of it has changed since the last call. A message
    /// counts once it is read. Not for a thread with deadlines: it may look for one that waits.
    pub fn liveness(&self, end: &mut Listener) -> Result<Liveness, ChannelError> {
        let now = self.now()?.local;
        if end.missed_from().is_some_and(|missed| missed <= now) {
            match self.select_readable(&[end], Timeout::None) {
                // After the end nothing comes any more.
                Ok(None) | Err(ChannelError::Stopped) => drop(end.nothing_until(now)),
                Ok(Some(_)) => {}
                Err(fault) => return Err(fault),
            }
        }
        Ok(end.take_liveness())
    }

    /// [`Context::select`] without regard to deadlines.
    fn select_readable(
        &self,
        ends: &[&Listener],
        patience: Timeout,
    ) -> Result<Option<usize>, ChannelError> {
        let base = match self {
            Self::Run(context) if context.is_virtual()? => {
                return context.select(ends, patience);
            }
            Self::Run(context) => context.base(),
            Self::Interface(context) => context.base(),
        };
        let descriptors = ends.iter().filter_map(|end| end.io().inner().descriptor());
        interface::select(base, descriptors, patience, |at, now| ends[at].went_on(now))
    }
}

/// What the coordinator calls a word: threads of one program mean the same by it.
fn key(word: &AtomicU32) -> u64 {
    std::ptr::from_ref(word).addr() as u64
}

impl EndpointIo {
    /// Refuses a forked child of the process that opened the end, for calls that need neither
    /// clock nor network: those refuse it anyway.
    pub fn check_owner(&self) -> Result<(), ChannelError> {
        match self {
            Self::Run(io) => io.check_owner(),
            Self::Interface(io) => io.base().check_owner(),
        }
    }

    /// How the end's stream stands, where it is reserved by SRP on an interface. Takes a lock.
    pub fn reservation(&self) -> Option<StreamStatus> {
        match self {
            Self::Run(_) => None,
            Self::Interface(io) => io.reservation(),
        }
    }

    /// A descriptor that is readable when there may be a message; none in virtual time.
    pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Run(io) => io.descriptor(),
            Self::Interface(io) => Some(io.descriptor()),
        }
    }
}

impl ChannelIo for EndpointIo {
    #[inline]
    fn now(&mut self) -> Result<Instant, ChannelError> {
        match self {
            Self::Run(io) => io.now(),
            Self::Interface(io) => io.now(),
        }
    }

    #[inline]
    fn uncertain(&self) -> bool {
        match self {
            Self::Run(io) => io.uncertain(),
            Self::Interface(io) => io.uncertain(),
        }
    }

    fn sleep_until(&mut self, target: SyncedTime) -> Result<Instant, ChannelError> {
        match self {
            Self::Run(io) => io.sleep_until(target),
            Self::Interface(io) => io.sleep_until(target),
        }
    }

    #[inline]
    fn may_write(&self, at: SyncedTime) -> Result<(), ChannelError> {
        match self {
            Self::Run(io) => io.may_write(at),
            Self::Interface(io) => io.may_write(at),
        }
    }

    #[inline]
    fn begin_write(&mut self) -> Result<(Instant, bool), ChannelError> {
        match self {
            Self::Run(io) => io.begin_write(),
            Self::Interface(io) => io.begin_write(),
        }
    }

    #[inline]
    fn grant(&mut self) -> Grant {
        match self {
            Self::Run(io) => io.grant(),
            Self::Interface(io) => io.grant(),
        }
    }

    fn await_grant(&mut self, until: SyncedTime) -> Result<(), ChannelError> {
        match self {
            Self::Run(io) => io.await_grant(until),
            Self::Interface(io) => io.await_grant(until),
        }
    }

    #[inline]
    fn send(&mut self, frame: &[u8]) -> Result<(), ChannelError> {
        match self {
            Self::Run(io) => io.send(frame),
            Self::Interface(io) => io.send(frame),
        }
    }

    fn at_once(&self) -> usize {
        match self {
            Self::Run(io) => io.at_once(),
            Self::Interface(io) => io.at_once(),
        }
    }

    fn send_many(&mut self, frames: &[u8], length: usize) -> (usize, Result<(), ChannelError>) {
        match self {
            Self::Run(io) => io.send_many(frames, length),
            Self::Interface(io) => io.send_many(frames, length),
        }
    }

    fn launch(&mut self, frame: &[u8], at: SyncedTime) -> Result<(), ChannelError> {
        match self {
            Self::Run(io) => io.launch(frame, at),
            Self::Interface(io) => io.launch(frame, at),
        }
    }

    #[inline]
    fn handed_over(&self) -> Option<SyncedTime> {
        match self {
            Self::Run(io) => io.handed_over(),
            Self::Interface(io) => io.handed_over(),
        }
    }

    #[inline]
    fn transmitted(&mut self, last: u64) -> Option<TransmitStamp> {
        match self {
            Self::Run(_) => None,
            Self::Interface(io) => io.transmitted(last),
        }
    }

    #[inline]
    fn dropped(&mut self, reason: Reason) -> u64 {
        match self {
            Self::Run(io) => io.dropped(reason),
            Self::Interface(io) => io.dropped(reason),
        }
    }

    #[inline]
    fn new_keys(&mut self) -> Option<StreamKeys> {
        match self {
            Self::Run(io) => io.new_keys(),
            Self::Interface(io) => io.new_keys(),
        }
    }

    fn receive(
        &mut self,
        into: &mut [u8],
        patience: Timeout,
        window: Option<Window>,
    ) -> Result<Option<Received>, ChannelError> {
        match self {
            Self::Run(io) => io.receive(into, patience, window),
            Self::Interface(io) => io.receive(into, patience, window),
        }
    }
}
