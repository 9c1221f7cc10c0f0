//! Whether an interface's clock is on network time: found out at start and once a second after
//! that, by a thread with nothing else to do, which also follows the hardware clock. Programs only
//! look at the verdict; messages carry it (`tu`, IEEE 1722-2016 4.4.4).

use crate::clock::{MonoTime, pause};
use crate::interface::cross_timestamp::{Estimator, LEAD};
use crate::interface::hardware_clock::{Device, Published};
use crate::interface::ptp_management::{PortState, PtpStatus, ask_ptp4l};
use crate::interface::ptp_sync::{SyncAge, SyncWatch};
use onbeat_model::time::Span;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// How often the hardware clock is compared with the system's.
const COMPARE: Span = Span::from_ms(100);
/// How often everything is looked at.
const LOOK: Span = Span::from_s(1);
/// The comparisons before the first program reads the hardware clock, and between these.
const FIRST_COMPARISONS: u32 = 10;
const FIRST_PAUSE: Span = Span::from_ms(10);
/// After this many comparisons without use the hardware clock is no longer followed.
const MAX_MISSED: u32 = 20;
/// The user is told of a change at most this often.
const TELL_AGAIN: Span = Span::from_s(10);

/// Why a clock counts as not synchronised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Finding {
    /// CLOCK_TAI equals CLOCK_REALTIME.
    #[error(
        "CLOCK_TAI has no leap-second offset: set it (ptp4l and phc2sys do, or adjtimex); times \
         are UTC"
    )]
    NoTaiOffset,
    /// The kernel's clock has STA_UNSYNC or is in the state TIME_ERROR.
    #[error(
        "the kernel counts the system's clock as not synchronised: run phc2sys, or ptp4l or \
         chronyd on this clock"
    )]
    Unsynchronised,
    /// A hardware clock that ptp4l says nothing of.
    #[error("whether the hardware clock is synchronised is not known: ptp4l does not answer")]
    NoPtp4l,
    /// ptp4l runs, and has no master yet.
    #[error("ptp4l's port is {0}, not SLAVE")]
    State(PortState),
    /// ptp4l follows a master, and measures nothing.
    #[error("ptp4l's port is SLAVE and no Sync comes: nothing was measured, or its master is lost")]
    NoSync,
    /// ptp4l leads because it receives no better Announce message.
    #[error(
        "ptp4l's port is MASTER because it hears nobody better, not because it was made \
         grandmaster (`onbeat clock config --role master`)"
    )]
    NotAppointed,
    /// The hardware clock cannot be followed.
    #[error("the hardware clock cannot be followed: it does not answer, or has just been set")]
    NotFollowed,
    /// The error is larger than what the user allows.
    #[error("the clock may be wrong by {error}, more than {limit}")]
    Error {
        /// The bound that is known.
        error: Span,
        /// What is allowed.
        limit: Span,
    },
}

/// Whether a clock is on network time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Synchronisation {
    /// It is.
    Synchronised {
        /// To within this much, as far as this host can know.
        error: Span,
    },
    /// It is not, or this is unknown.
    NotSynchronised {
        /// Everything for which it is not.
        reasons: Vec<Finding>,
    },
}

impl Synchronisation {
    fn of(mut reasons: Vec<Finding>, error: Span, limit: Span) -> Self {
        if error > limit {
            reasons.push(Finding::Error { error, limit });
        }
        if reasons.is_empty() {
            return Self::Synchronised { error };
        }
        Self::NotSynchronised { reasons }
    }

    fn reasons(&self) -> &[Finding] {
        match self {
            Self::Synchronised { .. } => &[],
            Self::NotSynchronised { reasons } => reasons,
        }
    }

    /// Whether it would be told in the same words, but for figures.
    fn is_like(&self, other: &Self) -> bool {
        let kinds = |s: &Self| s.reasons().iter().map(std::mem::discriminant).collect::<Vec<_>>();
        kinds(self) == kinds(other)
    }
}

/// What the kernel knows of its clock (adjtimex(2)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kernel {
    /// CLOCK_TAI less CLOCK_REALTIME.
    tai_offset: Span,
    unsynchronised: bool,
    max_error: Span,
}

impl Kernel {
    fn ask() -> io::Result<Self> {
        // SAFETY: all zeros is a valid request: it changes nothing.
        let mut answer: libc::timex = unsafe { std::mem::zeroed() };
        // SAFETY: the kernel fills in the structure.
        let state = unsafe { libc::adjtimex(&raw mut answer) };
        if state < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self {
            tai_offset: Span::from_s(answer.tai.into()),
            unsynchronised: state == libc::TIME_ERROR || answer.status & libc::STA_UNSYNC != 0,
            max_error: Span::from_us(answer.maxerror),
        })
    }
}

/// CLOCK_TAI less CLOCK_REALTIME.
///
/// # Errors
/// The kernel's.
pub fn tai_offset() -> io::Result<Span> {
    Ok(Kernel::ask()?.tai_offset)
}

/// What ptp4l says, and how old the last Sync is that it measured.
type Ptp = (PtpStatus, SyncAge);

/// What ptp4l's word is worth: how far its clock may be off, or why it follows no grandmaster. A
/// clock that was made the network's grandmaster is right by definition.
fn judge_ptp((ptp, sync): Ptp) -> Result<Span, Finding> {
    match ptp.state {
        PortState::Slave if sync.is_fresh(ptp.sync.interval) => Ok(ptp.offset.abs()),
        PortState::Slave => Err(Finding::NoSync),
        PortState::Master if !ptp.has_grandmaster && ptp.appointed => Ok(Span::ZERO),
        PortState::Master if !ptp.has_grandmaster => Err(Finding::NotAppointed),
        state => Err(Finding::State(state)),
    }
}

/// The verdict on CLOCK_TAI. `apart` is how far it is from the interface's hardware clock, which
/// ptp4l then keeps. Where ptp4l does not answer, the kernel's own bound counts, which chronyd and
/// phc2sys keep.
fn judge_tai(
    kernel: Kernel,
    ptp: Option<Ptp>,
    apart: Option<Span>,
    limit: Span,
) -> Synchronisation {
    let mut reasons = Vec::new();
    if kernel.tai_offset == Span::ZERO {
        reasons.push(Finding::NoTaiOffset);
    }
    if kernel.unsynchronised {
        reasons.push(Finding::Unsynchronised);
    }
    let error = match ptp.map(judge_ptp) {
        Some(Ok(error)) => error + apart.unwrap_or_default().abs(),
        Some(Err(finding)) => {
            reasons.push(finding);
            Span::ZERO
        }
        // The kernel's bound means nothing once it says so itself.
        None if kernel.unsynchronised => Span::ZERO,
        None => kernel.max_error,
    };
    Synchronisation::of(reasons, error, limit)
}

/// The verdict on a hardware clock that programs follow to within `following`.
fn judge_hardware(ptp: Option<Ptp>, following: Option<Span>, limit: Span) -> Synchronisation {
    let mut reasons = Vec::new();
    let offset = match ptp.map(judge_ptp) {
        Some(Ok(offset)) => offset,
        Some(Err(finding)) => {
            reasons.push(finding);
            Span::ZERO
        }
        None => {
            reasons.push(Finding::NoPtp4l);
            Span::ZERO
        }
    };
    if following.is_none() {
        reasons.push(Finding::NotFollowed);
    }
    Synchronisation::of(reasons, offset + following.unwrap_or_default(), limit)
}

/// What the watching thread and the programs share.
#[derive(Debug)]
pub(super) struct Watch {
    uncertain: AtomicBool,
    latest: Mutex<Synchronisation>,
    /// The hardware clock's time, if that is the clock.
    pub(super) published: Published,
}

impl Watch {
    /// Before anybody has looked.
    pub(super) fn new() -> Self {
        Self {
            uncertain: AtomicBool::new(true),
            latest: Mutex::new(Synchronisation::NotSynchronised { reasons: Vec::new() }),
            published: Published::default(),
        }
    }

    /// Whether the clock is not known to be synchronised. Real-time: one load.
    #[inline]
    pub(super) fn is_uncertain(&self) -> bool {
        self.uncertain.load(Ordering::Relaxed)
    }

    /// The latest verdict. Not for real-time paths.
    pub(super) fn latest(&self) -> Synchronisation {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// What is watched, and how.
#[derive(Debug)]
pub(super) struct Watcher {
    /// The interface, for the user.
    pub(super) name: String,
    /// Its hardware clock.
    pub(super) device: Option<Device>,
    /// Whether programs use that clock, rather than CLOCK_TAI.
    pub(super) follows: bool,
    /// By how much the clock may be wrong.
    pub(super) limit: Span,
    /// Where ptp4l listens.
    pub(super) ptp4l: PathBuf,
    /// Its domain.
    pub(super) domain: u8,
}

/// The thread's state.
struct Rounds {
    watcher: Watcher,
    estimator: Estimator,
    syncs: SyncWatch,
    missed: u32,
    told: Option<(MonoTime, Synchronisation)>,
}

impl Watcher {
    /// Looks for the first time, tells the user what is wrong, and starts the thread; it ends soon
    /// after the last owner of what this returns.
    pub(super) fn start(self) -> io::Result<Arc<Watch>> {
        let watch = Arc::new(Watch::new());
        let mut rounds = Rounds {
            watcher: self,
            estimator: Estimator::default(),
            syncs: SyncWatch::default(),
            missed: 0,
            told: None,
        };
        if rounds.watcher.follows {
            for _ in 0..FIRST_COMPARISONS {
                rounds.compare(&watch)?;
                pause(FIRST_PAUSE);
            }
        }
        rounds.look(&watch);
        let weak = Arc::downgrade(&watch);
        std::thread::Builder::new().name("onbeat-clock".to_owned()).spawn(move || {
            stay_out_of_the_way();
            rounds.run(&weak);
        })?;
        Ok(watch)
    }
}

/// No signal handler runs on the calling thread, and no real-time priority is inherited.
pub(super) fn stay_out_of_the_way() {
    // SAFETY: all zeros is a valid signal set and a valid priority; both calls only read them, and
    // change this thread only. What is refused stays as it was.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const all, std::ptr::null_mut());
        let none: libc::sched_param = std::mem::zeroed();
        libc::sched_setscheduler(0, libc::SCHED_OTHER, &raw const none);
    }
}

impl Rounds {
    fn run(mut self, weak: &Weak<Watch>) {
        let mut looked = MonoTime::now();
        loop {
            pause(if self.watcher.follows { COMPARE } else { LOOK });
            let Some(watch) = weak.upgrade() else { return };
            if self.watcher.follows {
                // A clock that does not answer shows in the verdict.
                let _ = self.compare(&watch);
            }
            if MonoTime::now() - looked >= LOOK || self.missed == MAX_MISSED {
                looked = MonoTime::now();
                self.look(&watch);
            }
        }
    }

    /// Compares the hardware clock with the system's, and publishes what follows from it.
    fn compare(&mut self, watch: &Watch) -> io::Result<()> {
        self.missed = self.missed.saturating_add(1);
        let Some(device) = &mut self.watcher.device else { return Ok(()) };
        let Some(pair) = device.sample()? else { return Ok(()) };
        let from = (MonoTime::now() + LEAD).as_ns();
        let before = self.estimator.mapping();
        self.estimator.take(pair, from);
        let mapping = self.estimator.mapping();
        if mapping != before
            && let Some(mapping) = mapping
        {
            watch.published.publish(mapping);
            self.missed = 0;
        }
        if self.estimator.error().is_none() {
            watch.uncertain.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    fn judge(&mut self) -> Synchronisation {
        let Watcher { device, limit, ptp4l, domain, follows, .. } = &mut self.watcher;
        let mut status = None;
        // In sync is a slave only: it has measured.
        let sync = self.syncs.until_known(false, || {
            status = ask_ptp4l(ptp4l, *domain).ok();
            status.map(|status| status.sync)
        });
        let ptp = status.map(|status| (status, sync));
        if *follows {
            let following = self.estimator.error().filter(|_| self.missed < MAX_MISSED);
            return judge_hardware(ptp, following, *limit);
        }
        let Ok(kernel) = Kernel::ask() else {
            return Synchronisation::NotSynchronised { reasons: vec![Finding::Unsynchronised] };
        };
        let apart = device.as_mut().and_then(|d| d.ahead_of_realtime().ok());
        judge_tai(kernel, ptp, apart.map(|ahead| ahead - kernel.tai_offset), *limit)
    }

    fn look(&mut self, watch: &Watch) {
        let verdict = self.judge();
        let uncertain = matches!(verdict, Synchronisation::NotSynchronised { .. });
        watch.uncertain.store(uncertain, Ordering::Relaxed);
        self.tell(&verdict);
        *watch.latest.lock().unwrap_or_else(PoisonError::into_inner) = verdict;
    }

    /// Tells the user what is wrong at first, and later what has changed.
    fn tell(&mut self, verdict: &Synchronisation) {
        let now = MonoTime::now();
        let first = self.told.is_none();
        if let Some((when, before)) = &self.told
            && (verdict.is_like(before) || now - *when < TELL_AGAIN)
        {
            return;
        }
        self.told = Some((now, verdict.clone()));
        let name = &self.watcher.name;
        match verdict {
            Synchronisation::Synchronised { .. } if first => {}
            Synchronisation::Synchronised { error } => {
                eprintln!("onbeat: {name}: the clock is synchronised to within {error}");
            }
            Synchronisation::NotSynchronised { reasons } => {
                for reason in reasons {
                    eprintln!("onbeat: {name}: {reason}");
                }
                eprintln!("onbeat: {name}: messages are marked uncertain (tu)");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interface::ptp_survey::ClockIdentity;
    use crate::interface::ptp_sync::SyncSeen;

    const LIMIT: Span = Span::from_us(1);
    const GOOD: Kernel =
        Kernel { tai_offset: Span::from_s(37), unsynchronised: false, max_error: Span::from_ms(3) };
    const STATUS: PtpStatus = PtpStatus {
        state: PortState::Slave,
        offset: Span::from_ns(-300),
        has_grandmaster: true,
        appointed: false,
        sync: SyncSeen {
            ingress_ns: Some(1),
            offset: Span::from_ns(-300),
            grandmaster: ClockIdentity([1; 8]),
            interval: Span::from_ms(125),
        },
    };
    const SLAVE: Ptp = (STATUS, SyncAge::AtMost(Span::from_ms(100)));

    fn not(reasons: impl Into<Vec<Finding>>) -> Synchronisation {
        Synchronisation::NotSynchronised { reasons: reasons.into() }
    }

    #[test]
    fn clock_tai_is_synchronised_when_kernel_and_ptp4l_say_so_within_the_limit() {
        let judge = |kernel, ptp, apart| judge_tai(kernel, ptp, apart, LIMIT);
        let error = Span::from_ns(300);
        assert_eq!(judge(GOOD, Some(SLAVE), None), Synchronisation::Synchronised { error });
        let apart = Some(Span::from_ns(-700));
        assert_eq!(judge(GOOD, Some(SLAVE), apart), Synchronisation::Synchronised { error: LIMIT });
        let error = Span::from_ns(1_001);
        let too_far = not([Finding::Error { error, limit: LIMIT }]);
        assert_eq!(judge(GOOD, Some(SLAVE), Some(Span::from_ns(701))), too_far);
        let utc = Kernel { tai_offset: Span::ZERO, ..GOOD };
        assert_eq!(judge(utc, Some(SLAVE), None), not([Finding::NoTaiOffset]));
        let neither = Kernel { unsynchronised: true, ..utc };
        let reasons = [Finding::NoTaiOffset, Finding::Unsynchronised];
        assert_eq!(judge(neither, None, None), not(reasons));
    }

    #[test]
    fn without_ptp4l_the_kernels_bound_counts() {
        let error = GOOD.max_error;
        let limit = Span::from_us(1);
        assert_eq!(judge_tai(GOOD, None, None, limit), not([Finding::Error { error, limit }]));
        let limit = Span::from_ms(5);
        let synchronised = Synchronisation::Synchronised { error };
        assert_eq!(judge_tai(GOOD, None, None, limit), synchronised);
    }

    #[test]
    fn a_hardware_clock_needs_a_master_or_to_be_the_grandmaster_and_to_be_followed() {
        let following = Some(Span::from_ns(200));
        let judge = |ptp, following| judge_hardware(ptp, following, LIMIT);
        let error = Span::from_ns(500);
        assert_eq!(judge(Some(SLAVE), following), Synchronisation::Synchronised { error });
        let stand_in = PtpStatus { state: PortState::Master, has_grandmaster: false, ..STATUS };
        let master = PtpStatus { appointed: true, ..stand_in };
        let error = Span::from_ns(200);
        let of = |status| Some((status, SyncAge::Never));
        assert_eq!(judge(of(master), following), Synchronisation::Synchronised { error });
        assert_eq!(judge(of(stand_in), following), not([Finding::NotAppointed]));
        for old in [SyncAge::Never, SyncAge::Unknown, SyncAge::AtMost(Span::from_ms(375))] {
            assert_eq!(judge(Some((STATUS, old)), following), not([Finding::NoSync]), "{old:?}");
        }
        for state in [PortState::Uncalibrated, PortState::Listening, PortState::Other(7)] {
            let lost = PtpStatus { state, ..STATUS };
            assert_eq!(judge(Some((lost, SLAVE.1)), following), not([Finding::State(state)]));
        }
        assert_eq!(judge(None, None), not([Finding::NoPtp4l, Finding::NotFollowed]));
    }

    #[test]
    fn the_kernel_answers_and_nothing_is_changed() {
        let (first, second) = (Kernel::ask().expect("adjtimex"), Kernel::ask().expect("adjtimex"));
        assert_eq!(first.tai_offset, second.tai_offset);
        assert_eq!(first.unsynchronised, second.unsynchronised);
    }
}
