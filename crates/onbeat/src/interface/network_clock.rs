//! The network clock of a host: what it reads, and how to sleep until it reads something.

use crate::clock::{EmulatedClock, MonoTime};
use crate::interface::hardware_clock::Device;
use crate::interface::synchronisation::{Synchronisation, Watch, Watcher};
use crate::interface::{Interface, InterfaceSettings, Stamp};
use onbeat_model::time::{ClockError, NetTime, Span, SyncedTime};
use onbeat_runtime::channel_io::Instant;
use rustix::time::ClockId;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Which clock of a host is its copy of the network clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClockKind {
    /// The interface's hardware clock if it has one, else CLOCK_TAI.
    #[default]
    Auto,
    /// CLOCK_TAI.
    Tai,
    /// The interface's hardware clock.
    Hardware,
}

/// A host's copy of the network clock.
#[derive(Clone, Debug)]
pub enum NetworkClock {
    /// The machine's clock from a common start: hosts that are emulated on one machine.
    Emulated(EmulatedClock),
    /// CLOCK_TAI, which phc2sys or the like keeps on network time.
    Tai {
        /// Network time, in nanoseconds, that programs call zero.
        epoch: i64,
        /// Whether it is; unknown if no thread looks.
        watch: Option<ClockWatch>,
    },
    /// The interface's PTP hardware clock, which ptp4l keeps on network time. A thread follows it;
    /// reading it is reading CLOCK_MONOTONIC.
    Hardware {
        /// Network time, in nanoseconds, that programs call zero.
        epoch: i64,
        /// Its time, and whether it is that of the network.
        watch: ClockWatch,
    },
}

/// What the thread that watches a clock tells programs. The thread ends soon after the last copy.
#[derive(Clone, Debug)]
pub struct ClockWatch(Arc<Watch>);

pub(super) const NS_PER_S: i64 = 1_000_000_000;

pub(super) fn realtime() -> i64 {
    let now = rustix::time::clock_gettime(ClockId::Realtime);
    now.tv_sec * NS_PER_S + now.tv_nsec
}

/// Two clocks are compared so often, until they are read so close together, in nanoseconds.
const LOOKS: usize = 4;
const CLOSE_NS: i64 = 2_000;

/// What one clock read when another, `by`, read `ns`, which is not long ago. A thread may lose its
/// processor between two readings, so the first is taken twice, and the closest are believed.
fn reading_at(ns: i64, by: impl Fn() -> i64, reading: impl Fn() -> i64) -> i64 {
    let look = || {
        let before = reading();
        let ago = by().saturating_sub(ns);
        let width = reading().saturating_sub(before);
        (width.saturating_abs(), before.saturating_add(width / 2).saturating_sub(ago))
    };
    let mut best = look();
    for _ in 1..LOOKS {
        if best.0 > CLOSE_NS {
            best = best.min(look());
        }
    }
    best.1
}

/// What CLOCK_TAI reads, in nanoseconds since 1970.
#[inline]
fn tai() -> i64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a valid place for the answer; every kernel has this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_TAI, &raw mut now) };
    now.tv_sec * NS_PER_S + now.tv_nsec
}

/// What makes one watch do for several contexts of a program.
#[derive(Debug, PartialEq)]
struct Key {
    interface: Interface,
    clock: ClockKind,
    limit: Span,
    ptp4l: PathBuf,
    domain: u8,
}

impl Key {
    fn of(interface: &Interface, settings: &InterfaceSettings) -> Self {
        Self {
            interface: interface.clone(),
            clock: settings.clock,
            limit: settings.clock_error,
            ptp4l: settings.ptp4l.clone(),
            domain: settings.ptp_domain,
        }
    }
}

/// A clock that this program watches, and whether the hardware clock is the clock.
type Watched = (Key, bool, Weak<Watch>);

/// The clocks that this program watches.
static WATCHED: Mutex<Vec<Watched>> = Mutex::new(Vec::new());

/// An instant by an emulated clock.
#[inline]
fn instant(clock: &EmulatedClock, network: NetTime) -> Instant {
    Instant { local: clock.error.read(network), network: Some(network) }
}

impl NetworkClock {
    /// The clock of an interface. Tells the user, on standard error, what is wrong with it; a
    /// thread keeps looking, and tells when that changes. Blocks for some tenths of a second.
    ///
    /// # Errors
    /// When the hardware clock is asked for and the interface has none, or it does not answer.
    pub fn open(interface: &Interface, settings: &InterfaceSettings) -> io::Result<Self> {
        // A program with many contexts looks, and is told, once.
        let mut watched = WATCHED.lock().unwrap_or_else(PoisonError::into_inner);
        let key = Key::of(interface, settings);
        let known = watched.iter().find(|(other, ..)| *other == key);
        let (follows, watch) = match known.and_then(|(_, f, watch)| Some((*f, watch.upgrade()?))) {
            Some(known) => known,
            None => {
                let (follows, watch) = Self::watch(interface, settings)?;
                watched.retain(|(other, _, watch)| *other != key && watch.strong_count() > 0);
                watched.push((key, follows, Arc::downgrade(&watch)));
                (follows, watch)
            }
        };
        let (epoch, watch) = (settings.epoch, ClockWatch(watch));
        if follows {
            return Ok(Self::Hardware { epoch, watch });
        }
        Ok(Self::Tai { epoch, watch: Some(watch) })
    }

    /// Finds the clock, tells what is wrong with it, and starts the thread that watches it.
    fn watch(
        interface: &Interface,
        settings: &InterfaceSettings,
    ) -> io::Result<(bool, Arc<Watch>)> {
        let device = match (Device::of(interface), settings.clock) {
            (Err(error), ClockKind::Hardware) => return Err(error),
            (Err(error), _) => {
                eprintln!("onbeat: {}: {error}: CLOCK_TAI is used", interface.name);
                None
            }
            (Ok(None), ClockKind::Hardware) => {
                let why = "it has no PTP hardware clock: use CLOCK_TAI";
                return Err(io::Error::new(io::ErrorKind::NotFound, why));
            }
            (Ok(None), ClockKind::Auto) => {
                let name = &interface.name;
                eprintln!("onbeat: {name}: it has no PTP hardware clock: CLOCK_TAI is used");
                None
            }
            (Ok(device), _) => device,
        };
        let follows = device.is_some() && settings.clock != ClockKind::Tai;
        let watcher = Watcher {
            name: interface.name.clone(),
            device,
            follows,
            limit: settings.clock_error,
            ptp4l: settings.ptp4l.clone(),
            domain: settings.ptp_domain,
        };
        Ok((follows, watcher.start()?))
    }

    /// The latest verdict on whether it is on network time; `None` where no thread looks. Not for
    /// real-time paths.
    pub fn synchronisation(&self) -> Option<Synchronisation> {
        match self {
            Self::Emulated(_) => None,
            Self::Tai { watch, .. } => watch.as_ref().map(|watch| watch.0.latest()),
            Self::Hardware { watch, .. } => Some(watch.0.latest()),
        }
    }

    /// The clock of a host whose copy has this error; only an emulation knows errors.
    pub fn with_error(&self, error: ClockError) -> Self {
        match self {
            Self::Emulated(clock) => Self::Emulated(EmulatedClock { error, ..*clock }),
            Self::Tai { .. } | Self::Hardware { .. } => self.clone(),
        }
    }

    /// What it reads now. Real-time: bounded; no system call where the kernel offers a vDSO.
    #[inline]
    pub fn now(&self) -> SyncedTime {
        self.instant().local
    }

    /// The same with true network time, which only an emulation knows.
    #[inline]
    pub fn instant(&self) -> Instant {
        let local = match self {
            Self::Emulated(clock) => return instant(clock, clock.network()),
            Self::Tai { epoch, .. } => SyncedTime::from_ns(tai() - epoch),
            Self::Hardware { epoch, watch } => {
                SyncedTime::from_ns(watch.0.published.now().saturating_sub(*epoch))
            }
        };
        Instant { local, network: None }
    }

    /// The place of a reading in the order of [`Instant::order`], from now on or as it was last.
    pub(super) fn order_of(&self, reading: SyncedTime) -> NetTime {
        match self {
            Self::Emulated(clock) => clock.error.when_near(clock.network(), reading),
            Self::Tai { .. } | Self::Hardware { .. } => NetTime::from_ns(reading.as_ns()),
        }
    }

    /// Sleeps until it reads `target` or later, or a signal comes. Real-time: blocks.
    pub fn sleep_until(&self, target: SyncedTime) {
        self.machine_time(target).sleep();
    }

    /// Sleeps until the network's epoch and `at`, by the clock where that is all there is.
    pub(crate) fn sleep_until_network(&self, at: NetTime) {
        while self.instant().order() < at {
            match self {
                Self::Emulated(clock) => clock.at(at).sleep(),
                _ => self.sleep_until(SyncedTime::from_ns(at.as_ns())),
            }
        }
    }

    /// What the machine's clock reads when this one reads `reading`, as far as is known now.
    pub(super) fn machine_time(&self, reading: SyncedTime) -> MonoTime {
        match self {
            Self::Emulated(clock) => clock.when(reading),
            // CLOCK_MONOTONIC goes at CLOCK_TAI's rate and is never set: a clock that is set
            // back must not make a sleep last for ever.
            Self::Tai { .. } => MonoTime::now() + (reading - self.now()),
            Self::Hardware { epoch, watch } => {
                watch.0.published.when(reading.as_ns().saturating_add(*epoch))
            }
        }
    }

    /// Whether it is not known to be synchronised.
    #[inline]
    pub fn is_uncertain(&self) -> bool {
        match self {
            // The emulated network's clocks are as good as the description says they are.
            Self::Emulated(_) => false,
            Self::Tai { watch, .. } => watch.as_ref().is_none_or(|watch| watch.0.is_uncertain()),
            Self::Hardware { watch, .. } => watch.0.is_uncertain(),
        }
    }

    /// When a frame was stamped; `None` when no clock that is known to it did.
    pub fn at_stamp(&self, stamp: Stamp) -> Option<Instant> {
        let known = |local| Instant { local, network: None };
        let stamped = match (stamp.monotonic, stamp.software) {
            (Some(ns), _) => Some((ns, false)),
            (None, software) => software.map(|ns| (ns, true)),
        };
        let when = |reading: &dyn Fn() -> i64| {
            let (ns, is_real) = stamped?;
            let by = || if is_real { realtime() } else { MonoTime::now().as_ns() };
            Some(reading_at(ns, by, reading))
        };
        match (self, stamp.hardware) {
            (Self::Hardware { epoch, .. }, Some(ns)) => {
                Some(known(SyncedTime::from_ns(ns.saturating_sub(*epoch))))
            }
            // Nobody knows how another clock of the interface's stands to this one.
            (Self::Emulated(clock), _) => {
                let at = when(&|| clock.network().as_ns())?;
                Some(instant(clock, NetTime::from_ns(at)))
            }
            _ => when(&|| self.now().as_ns()).map(|ns| known(SyncedTime::from_ns(ns))),
        }
    }

    /// What CLOCK_TAI reads, in nanoseconds, when this clock reads `reading`.
    pub fn tai(&self, reading: SyncedTime) -> i64 {
        match self {
            Self::Tai { epoch, .. } => reading.as_ns().saturating_add(*epoch),
            Self::Hardware { epoch, watch } => {
                let at = watch.0.published.when(reading.as_ns().saturating_add(*epoch));
                tai().saturating_add((at - MonoTime::now()).as_ns())
            }
            Self::Emulated(clock) => {
                let ahead = clock.when(reading) - MonoTime::now();
                tai().saturating_add(ahead.as_ns())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interface::cross_timestamp::Mapping;

    #[test]
    fn a_thread_that_loses_its_processor_between_two_readings_stamps_no_later() {
        // Each reading of either clock takes 50 ns, and after the second the thread is away.
        let (now, count) = (std::cell::Cell::new(1_000_000), std::cell::Cell::new(0));
        let read = || {
            count.set(count.get() + 1);
            now.set(now.get() + 50 + if count.get() == 2 { 3_000_000 } else { 0 });
            now.get()
        };
        let at = reading_at(900_000, read, || read() + 7);
        assert!((at - 900_007).abs() <= 50, "{at}");
        // If it is away each time, it is wrong by half the time between its readings.
        let now = std::cell::Cell::new(1_000_000);
        let read = || {
            now.set(now.get() + 10_000);
            now.get()
        };
        assert_eq!(reading_at(900_000, read, read), 900_000);
    }

    /// A clock that is followed as a hardware clock would be, ten seconds after its epoch and 3
    /// parts in 1,000 too fast.
    #[test]
    fn a_followed_clock_is_read_slept_for_and_converted_by_its_mapping() {
        let epoch = 1_800_000_000 * NS_PER_S;
        let (begun, rate) = (MonoTime::now(), (1 << 40) / 1_000 * 3);
        let hardware = epoch + 10 * NS_PER_S;
        let watch = Arc::new(Watch::new());
        let mapping = Mapping { system: begun.as_ns(), hardware, before: rate, after: rate };
        watch.published.publish(mapping);
        let clock = NetworkClock::Hardware { epoch, watch: ClockWatch(watch) };
        let target = SyncedTime::from_ns(10 * NS_PER_S + 50_000_000);
        let early = clock.now();
        assert!(early >= SyncedTime::from_ns(10 * NS_PER_S));
        // 50 ms of this clock are a little less of the machine's.
        let wanted = clock.tai(target) - tai();
        assert!(wanted < 50_000_000, "{wanted}");
        clock.sleep_until(target);
        assert!(clock.now() >= target);
        assert!((MonoTime::now() - begun).as_ns() >= 49_840_000);
        let stamp = Stamp { hardware: Some(epoch + 5), ..Stamp::default() };
        let at = clock.at_stamp(stamp).map(|at| at.local);
        assert_eq!(at, Some(SyncedTime::from_ns(5)));
        assert!(clock.is_uncertain(), "nobody has looked");
        assert_eq!(clock.instant().network, None);
    }
}
