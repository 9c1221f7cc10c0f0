//! A channel end on a real interface, as the channel operations see it.

use crate::clock::{MonoTime, want_exact_timers};
use crate::interface::presence::{self, EndLink, LinkMonitor};
use crate::interface::sent_stamp::Numbering;
use crate::interface::srp::{Reservation, StreamStatus};
use crate::interface::{Arrival, HORIZON, InterfaceOptions, LOOK_AGAIN, NetworkClock, Transport};
use crate::keys::EndKeys;
use onbeat_model::time::{NetTime, Span, SyncedTime};
use onbeat_runtime::channel_io::{
    ChannelError, ChannelIo, Grant, Instant, Reason, Received, Timeout, TransmitStamp, Window,
};
use onbeat_runtime::integrity::StreamKeys;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, BorrowedFd};
use rustix::io::Errno;
use rustix::thread::futex;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

/// When a run's channels are over: in network time, or by the clock where that is all there is
/// ([`Instant::order`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Talkers may write before this instant.
    pub write_until: NetTime,
    /// Everything stops at this instant.
    pub stop: NetTime,
}

impl Limits {
    /// No end.
    pub const NONE: Self = Self { write_until: NetTime::MAX, stop: NetTime::MAX };
}

/// What the ends of a program have in common: its clock, and when it is over.
#[derive(Debug)]
pub struct Timebase {
    begun: OnceLock<(NetworkClock, Limits)>,
    stopped: AtomicBool,
    /// The process that the ends belong to.
    owner: u32,
}

impl Default for Timebase {
    fn default() -> Self {
        let owner = crate::fork::process();
        Self { begun: OnceLock::new(), stopped: AtomicBool::new(false), owner }
    }
}

impl Timebase {
    /// Refuses a forked child of the process that made this: it would speak in its parent's name.
    #[inline]
    pub(crate) fn check_owner(&self) -> Result<(), ChannelError> {
        if crate::fork::process() == self.owner { Ok(()) } else { Err(ChannelError::Forked) }
    }

    /// Starts the clock; only the first call does.
    pub fn begin(&self, clock: NetworkClock, limits: Limits) {
        let _ = self.begun.set((clock, limits));
    }

    /// Makes all waiting calls return within [`LOOK_AGAIN`]. May be called by a signal handler.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    #[inline]
    fn get(&self) -> Result<&(NetworkClock, Limits), ChannelError> {
        self.check_owner()?;
        self.begun.get().ok_or(ChannelError::NotStarted)
    }

    /// The clock.
    #[inline]
    pub fn clock(&self) -> Result<&NetworkClock, ChannelError> {
        Ok(&self.get()?.0)
    }

    /// Now, also when it is over.
    pub fn now(&self) -> Result<SyncedTime, ChannelError> {
        self.clock().map(NetworkClock::now)
    }

    /// Now, with true network time where it is known, also when it is over.
    #[inline]
    pub(crate) fn instant(&self) -> Result<Instant, ChannelError> {
        self.clock().map(NetworkClock::instant)
    }

    /// Now, unless it is over.
    pub(crate) fn look(&self) -> Result<Instant, ChannelError> {
        let (clock, limits) = self.get()?;
        let now = clock.instant();
        if self.stopped.load(Ordering::Relaxed) || now.order() >= limits.stop {
            return Err(ChannelError::Stopped);
        }
        Ok(now)
    }

    /// Whether talkers may write at `at`.
    #[inline]
    pub(crate) fn may_write(&self, at: SyncedTime) -> Result<(), ChannelError> {
        let (clock, limits) = self.get()?;
        let stopped = self.stopped.load(Ordering::Relaxed);
        let over = stopped || clock.order_of(at) >= limits.write_until;
        if over { Err(ChannelError::Stopped) } else { Ok(()) }
    }

    /// Now, and whether the clock is uncertain, unless talkers may not write now.
    #[inline]
    fn begin_write(&self) -> Result<(Instant, bool), ChannelError> {
        let (clock, limits) = self.get()?;
        let now = clock.instant();
        if self.stopped.load(Ordering::Relaxed) || now.order() >= limits.write_until {
            return Err(ChannelError::Stopped);
        }
        Ok((now, clock.is_uncertain()))
    }

    /// Sleeps until the clock reads `target` or later. Real-time: wakes up in between only when
    /// the target is further off than [`LOOK_AGAIN`].
    pub fn sleep_until(&self, target: SyncedTime) -> Result<Instant, ChannelError> {
        want_exact_timers();
        loop {
            let now = self.look()?;
            if now.local >= target {
                return Ok(now);
            }
            self.look_again(now, target)?.sleep();
        }
    }

    /// When who waits for `target` since `now` looks again.
    fn look_again(&self, now: Instant, target: SyncedTime) -> Result<MonoTime, ChannelError> {
        let stop = self.get()?.1.stop.as_ns().saturating_sub(now.order().as_ns());
        let again = MonoTime::now() + LOOK_AGAIN.min(Span::from_ns(stop));
        Ok(self.machine_time(target)?.min(again))
    }

    /// How long it takes until the clock reads `until`; nothing if it does.
    pub(crate) fn left(&self, until: SyncedTime) -> Result<Span, ChannelError> {
        if self.now()? >= until {
            return Ok(Span::ZERO);
        }
        Ok((self.machine_time(until)? - MonoTime::now()).max(Span::from_ns(1)))
    }

    /// Waits while `word` is `value`, until it is woken or the clock reads `until`: whether
    /// something else than the latter happened. Real-time: looks whether all is over every
    /// [`LOOK_AGAIN`].
    pub(crate) fn wait(
        &self,
        word: &AtomicU32,
        value: u32,
        until: Timeout,
    ) -> Result<bool, ChannelError> {
        want_exact_timers();
        let target = match until {
            Timeout::None => SyncedTime::from_ns(i64::MIN),
            Timeout::Until(target) => target,
            Timeout::Endless => SyncedTime::MAX,
        };
        loop {
            let now = self.look()?;
            if word.load(Ordering::Acquire) != value {
                return Ok(true);
            }
            if now.local >= target {
                return Ok(false);
            }
            let at = self.look_again(now, target)?.as_timespec();
            let every = NonZeroU32::MAX;
            match futex::wait_bitset(word, futex::Flags::PRIVATE, value, Some(&at), every) {
                Ok(()) | Err(Errno::AGAIN) => return Ok(true),
                // The time is looked at again; a signal may have come.
                Err(Errno::TIMEDOUT | Errno::INTR) => {}
                Err(_) => return Err(ChannelError::Network),
            }
        }
    }

    /// What the machine's clock reads when this one reads `reading`.
    pub(crate) fn machine_time(&self, reading: SyncedTime) -> Result<MonoTime, ChannelError> {
        let clock = self.clock()?;
        let now = clock.now();
        Ok(clock.machine_time(reading.clamp(now - HORIZON, now + HORIZON)))
    }
}

/// The most by which a timed sleep is begun sooner because earlier ones ended late.
const MAX_OVERSLEEP: Span = Span::from_us(200);
/// A sleep that ends late counts in full, and is forgotten by this part each time.
const FORGET: i64 = 16;

/// No stamp is believed that is older. A message that waits longer has lost its capture time.
const MAX_WAIT: Span = Span::from_s(3_600);

/// What an end has as long as it is open.
pub(crate) type Claim = Box<dyn std::fmt::Debug + Send + Sync>;

/// A channel end on an interface.
#[derive(Debug)]
pub struct InterfaceIo {
    base: Arc<Timebase>,
    wire: Transport,
    link: Arc<EndLink>,
    /// Keeps the interface followed.
    _monitor: Option<Arc<LinkMonitor>>,
    /// When a station had what was sent last.
    handed_over: Option<SyncedTime>,
    /// Which messages the kernel's notes are of.
    numbering: Numbering,
    /// By how much timed sleeps end late.
    oversleep: Span,
    reserved: Option<Reserved>,
    /// Of an authenticated channel.
    keys: Option<EndKeys>,
    /// Goes with the endpoint: a talker's right to be the only one, word that the end is closed.
    _claim: Option<Claim>,
}

/// What an end has whose stream is reserved.
#[derive(Debug)]
struct Reserved {
    reservation: Reservation,
    options: InterfaceOptions,
    /// The priority code point that the kernel knows of what is sent.
    pcp: u8,
    /// What it did not take last, and why: told when the end is closed, not on the way of a write.
    refused: Option<(u8, std::io::Error)>,
}

impl InterfaceIo {
    /// Builds the I/O of an endpoint.
    pub fn new(base: Arc<Timebase>, wire: Transport) -> Self {
        Self::claiming(base, wire, None)
    }

    /// The same for messages of so many frames.
    pub(crate) fn in_frames(self, frames: u32) -> Self {
        Self { numbering: Numbering::new(frames), ..self }
    }

    /// The same for a talker that is the only one of its program.
    pub(crate) fn claiming(base: Arc<Timebase>, wire: Transport, claim: Option<Claim>) -> Self {
        Self {
            base,
            link: wire.link(),
            wire,
            _monitor: None,
            handed_over: None,
            numbering: Numbering::new(1),
            oversleep: Span::ZERO,
            reserved: None,
            keys: None,
            _claim: claim,
        }
    }

    /// From now on the end's stream is reserved, and a talker sends only while it is.
    pub(crate) fn reserve(&mut self, reservation: Reservation, pcp: u8, options: InterfaceOptions) {
        self.reserved = Some(Reserved { reservation, options, pcp, refused: None });
    }

    /// How its stream stands; `None` if it is not reserved by SRP. Takes a lock.
    pub fn reservation(&self) -> Option<StreamStatus> {
        self.reserved.as_ref().map(|reserved| reserved.reservation.status())
    }

    /// The same of an authenticated channel.
    pub(crate) fn keyed(self, keys: Option<EndKeys>) -> Self {
        Self { keys, ..self }
    }

    /// The same of an end whose interface is followed.
    pub(crate) fn followed_by(self, monitor: Option<Arc<LinkMonitor>>) -> Self {
        Self { _monitor: monitor, ..self }
    }

    /// Readable when there may be a message.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.wire.descriptor()
    }

    /// The program's clock.
    pub fn base(&self) -> &Timebase {
        &self.base
    }

    fn try_take(&mut self, into: &mut [u8]) -> Result<Option<Arrival>, ChannelError> {
        unless_away(self.wire.try_receive(into))
    }

    /// Waits to shortly before the window opens, then polls until it closes: what comes in it needs
    /// no wake-up. What comes before is there at once.
    fn meet(
        &mut self,
        into: &mut [u8],
        until: SyncedTime,
        window: Window,
    ) -> Result<Option<Arrival>, ChannelError> {
        let wake = window.open - self.oversleep;
        if until <= wake {
            return Ok(None);
        }
        let mut now = self.base.look()?.local;
        if now < wake {
            while now < wake {
                if self.wait_readable(wake)?
                    && let Some(arrival) = self.try_take(into)?
                {
                    return Ok(Some(arrival));
                }
                now = self.base.look()?.local;
            }
            let forgotten = self.oversleep - Span::from_ns(self.oversleep.as_ns() / FORGET);
            self.oversleep = (now - wake).max(forgotten).min(MAX_OVERSLEEP);
        }
        let close = window.close.min(until);
        loop {
            if let Some(arrival) = self.try_take(into)? {
                return Ok(Some(arrival));
            }
            if self.base.look()?.local >= close {
                return Ok(None);
            }
            std::hint::spin_loop();
        }
    }

    /// Waits until there may be a frame, `until`, a signal or [`LOOK_AGAIN`].
    fn wait_readable(&self, until: SyncedTime) -> Result<bool, ChannelError> {
        want_exact_timers();
        let left = self.base.left(until)?.min(LOOK_AGAIN);
        let Some(timeout) = crate::clock::timeout(left) else {
            return Ok(false);
        };
        let mut set = [PollFd::from_borrowed_fd(self.wire.waits_at(), PollFlags::IN)];
        match poll(&mut set, Some(&timeout)) {
            Ok(ready) => Ok(ready > 0),
            // A signal is a reason to look whether the message is still wanted.
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(_) => Err(ChannelError::Network),
        }
    }

    /// Waits for a frame as long as `patience` says and [`LOOK_AGAIN`] allows.
    fn take(
        &mut self,
        into: &mut [u8],
        patience: Timeout,
    ) -> Result<Option<Arrival>, ChannelError> {
        match patience {
            Timeout::None => self.try_take(into),
            Timeout::Endless => unless_away(self.wire.receive(into)),
            Timeout::Until(until) => {
                if let Some(arrival) = self.try_take(into)? {
                    return Ok(Some(arrival));
                }
                self.wait_readable(until)?;
                self.try_take(into)
            }
        }
    }

    /// `there`: the frame was there when the program asked.
    fn received(
        &self,
        arrival: Arrival,
        asked: Instant,
        there: bool,
    ) -> Result<Received, ChannelError> {
        let clock = self.base.clock()?;
        let now = clock.instant();
        let stamp = arrival.stamp.and_then(|stamp| clock.at_stamp(stamp));
        // A stamp from long ago is one of a clock that was set since.
        let ago = |at: &Instant| now.order() - at.order();
        let plausible = stamp.filter(|at| (Span::ZERO..=MAX_WAIT).contains(&ago(at)));
        let came = plausible.unwrap_or(now);
        let waited = there || came.order() < asked.order();
        let ready = if waited { came } else { now };
        let Arrival { length, framing, .. } = arrival;
        let stamped = plausible.is_some();
        Ok(Received { length, framing, arrived: came.local, stamped, ready, waited })
    }
}

impl Reserved {
    /// Gives what is sent the priority that the neighbour has for the class.
    #[cold]
    fn change_priority(&mut self, wire: &Transport, pcp: u8) {
        self.pcp = pcp;
        self.refused = wire.prioritise(pcp, &self.options).err().map(|error| (pcp, error));
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        if let Some((pcp, error)) = &self.refused {
            eprintln!("onbeat: frames had priority {pcp}, their queue had not: {error}");
        }
    }
}

/// What a receive gave: the kernel says once that the interface went down, which may come up again.
fn unless_away(got: std::io::Result<Option<Arrival>>) -> Result<Option<Arrival>, ChannelError> {
    got.or_else(|error| if presence::is_away(&error) { Ok(None) } else { Err(fault_of(error)) })
}

/// Why the kernel did not take or give a frame.
#[cold]
fn fault_of(error: std::io::Error) -> ChannelError {
    match Errno::from_io_error(&error) {
        Some(Errno::MSGSIZE) => ChannelError::TooLong,
        Some(Errno::NOBUFS | Errno::AGAIN) => ChannelError::QueueFull,
        _ if error.kind() == std::io::ErrorKind::WouldBlock => ChannelError::QueueFull,
        _ if presence::is_away(&error) => ChannelError::LinkDown,
        _ => ChannelError::Network,
    }
}

impl AsFd for InterfaceIo {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wire.descriptor()
    }
}

impl ChannelIo for InterfaceIo {
    #[inline]
    fn now(&mut self) -> Result<Instant, ChannelError> {
        self.base.instant()
    }

    #[inline]
    fn uncertain(&self) -> bool {
        self.base.clock().is_ok_and(NetworkClock::is_uncertain)
    }

    fn sleep_until(&mut self, target: SyncedTime) -> Result<Instant, ChannelError> {
        self.base.sleep_until(target)
    }

    fn may_write(&self, at: SyncedTime) -> Result<(), ChannelError> {
        self.base.may_write(at)
    }

    #[inline]
    fn begin_write(&mut self) -> Result<(Instant, bool), ChannelError> {
        self.base.begin_write()
    }

    #[inline]
    fn grant(&mut self) -> Grant {
        let Some(reserved) = &mut self.reserved else { return Grant::Unneeded };
        let grant = reserved.reservation.grant();
        if let Grant::Held { pcp, .. } = grant
            && pcp != reserved.pcp
        {
            reserved.change_priority(&self.wire, pcp);
        }
        grant
    }

    fn await_grant(&mut self, until: SyncedTime) -> Result<(), ChannelError> {
        let Some(reserved) = &self.reserved else { return Ok(()) };
        // The word is 0 while nothing is reserved.
        self.base.wait(reserved.reservation.word(), 0, Timeout::Until(until)).map(|_| ())
    }

    #[inline]
    fn send(&mut self, frame: &[u8]) -> Result<(), ChannelError> {
        self.link.sends()?;
        self.wire.send(frame, None).map_err(fault_of)?;
        // A station has it from now on; the kernel's queues say nothing.
        if matches!(self.wire, Transport::Station(_)) {
            self.handed_over = Some(self.base.instant()?.local);
        }
        Ok(())
    }

    fn at_once(&self) -> usize {
        self.wire.at_once()
    }

    fn send_many(&mut self, frames: &[u8], length: usize) -> (usize, Result<(), ChannelError>) {
        if let Err(fault) = self.link.sends() {
            return (0, Err(fault));
        }
        let (taken, sent) = self.wire.send_many(frames, length);
        (taken, sent.map_err(fault_of))
    }

    #[inline]
    fn handed_over(&self) -> Option<SyncedTime> {
        self.handed_over
    }

    fn launch(&mut self, frame: &[u8], at: SyncedTime) -> Result<(), ChannelError> {
        if !self.wire.launches() {
            self.base.sleep_until(at)?;
            return self.send(frame);
        }
        self.link.sends()?;
        let tai = self.base.clock()?.tai(at);
        self.wire.send(frame, Some(tai)).map_err(fault_of)
    }

    #[inline]
    fn transmitted(&mut self, last: u64) -> Option<TransmitStamp> {
        if !self.wire.notes() {
            return None;
        }
        // A forked child takes nothing that is its parent's.
        let clock = self.base.clock().ok()?;
        loop {
            let note = self.wire.sent_stamp()?;
            let sequence = self.numbering.sequence(&note, last);
            if let Some((sequence, at)) = sequence.zip(clock.at_stamp(note.at)) {
                return Some(TransmitStamp { sequence, point: note.point, at: at.local });
            }
        }
    }

    #[inline]
    fn dropped(&mut self, reason: Reason) -> u64 {
        self.wire.dropped(reason)
    }

    #[inline]
    fn new_keys(&mut self) -> Option<StreamKeys> {
        self.keys.as_mut().and_then(EndKeys::new_keys)
    }

    fn receive(
        &mut self,
        into: &mut [u8],
        patience: Timeout,
        window: Option<Window>,
    ) -> Result<Option<Received>, ChannelError> {
        let asked = self.base.look()?;
        if let Some(window) = window {
            // What is there already is not waited for: a reader that was held up catches up.
            if let Some(arrival) = self.try_take(into)? {
                return self.received(arrival, asked, true).map(Some);
            }
            let until = match patience {
                Timeout::None => return Ok(None),
                Timeout::Until(until) => until,
                Timeout::Endless => SyncedTime::MAX,
            };
            if let Some(arrival) = self.meet(into, until, window)? {
                return self.received(arrival, asked, false).map(Some);
            }
        }
        loop {
            if let Some(arrival) = self.take(into, patience)? {
                return self.received(arrival, asked, false).map(Some);
            }
            let now = self.base.look()?.local;
            match patience {
                Timeout::None => return Ok(None),
                Timeout::Until(until) if now >= until => return Ok(None),
                // Nothing will come; who looks only, is told when it waits.
                _ if self.link.may_receive().is_err() => self.link.may_receive()?,
                // They are to be counted while nothing else comes.
                _ if self.wire.has_dropped() => return Ok(None),
                _ => {}
            }
        }
    }
}

/// Waits until one of the ends has something to read; `None` when none has by `until`. `went_on`
/// is told of each end that had nothing at first and has something when the wait is over.
/// Real-time: blocks; allocates nothing for up to [`MAX_SELECT`] ends.
pub fn select<'a>(
    base: &Timebase,
    ends: impl Iterator<Item = BorrowedFd<'a>>,
    patience: Timeout,
    went_on: impl Fn(usize, Instant),
) -> Result<Option<usize>, ChannelError> {
    let mut set = arrayvec::ArrayVec::<PollFd<'_>, MAX_SELECT>::new();
    for end in ends.take(MAX_SELECT) {
        set.push(PollFd::from_borrowed_fd(end, PollFlags::IN));
    }
    // Without waiting at first: what is there already was not waited for.
    let mut left = Span::ZERO;
    let mut waited = false;
    loop {
        let now = base.look()?.local;
        let ready = match poll(&mut set, crate::clock::timeout(left).as_ref()) {
            Ok(ready) => ready,
            Err(rustix::io::Errno::INTR) => 0,
            Err(_) => return Err(ChannelError::Network),
        };
        if ready > 0 {
            let has = |fd: &PollFd<'_>| !fd.revents().is_empty();
            if waited {
                // The run closes its ends when it is over: that is no message.
                let now = base.look()?;
                let found = set.iter().enumerate().filter(|(_, fd)| has(fd));
                found.for_each(|(at, _)| went_on(at, now));
            }
            return Ok(set.iter().position(has));
        }
        left = match patience {
            Timeout::None => return Ok(None),
            Timeout::Until(until) if now >= until => return Ok(None),
            Timeout::Until(until) => base.left(until)?.min(LOOK_AGAIN),
            Timeout::Endless => LOOK_AGAIN,
        };
        waited = true;
    }
}

/// The most ends that one call of [`select`] waits for.
pub const MAX_SELECT: usize = 1_024;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{EmulatedClock, MonoTime};

    #[test]
    fn each_refusal_of_the_kernel_has_its_own_words() {
        let said = |errno: Errno| fault_of(errno.into()).to_string();
        assert!(said(Errno::MSGSIZE).contains("too long for the interface's MTU"));
        assert!(said(Errno::NOBUFS).contains("queue is full"));
        assert!(said(Errno::AGAIN).contains("queue is full"));
        assert!(said(Errno::NETDOWN).contains("is down"));
        let full = std::io::Error::from(std::io::ErrorKind::WouldBlock);
        assert_eq!(fault_of(full), ChannelError::QueueFull);
    }

    #[test]
    fn a_stop_ends_a_long_sleep_soon() {
        let base = Arc::new(Timebase::default());
        assert_eq!(base.sleep_until(SyncedTime::ZERO), Err(ChannelError::NotStarted));
        let clock = EmulatedClock { start: MonoTime::now(), error: Default::default() };
        base.begin(NetworkClock::Emulated(clock), Limits::NONE);
        let sleeper = Arc::clone(&base);
        let thread =
            std::thread::spawn(move || sleeper.sleep_until(SyncedTime::ZERO + Span::from_s(3_600)));
        base.stop();
        assert_eq!(thread.join().expect("no panic"), Err(ChannelError::Stopped));
    }
}
