//! Waiting for many ends at once, for a price that does not grow with their number.
//!
//! [`Context::select`] shows the kernel every end in every call, and looks at the deadline of each.
//! A [`Selector`] has shown them once (epoll, edge-triggered): the kernel tells of each that gets
//! something to read. Those are kept, so that the first of them is found without asking for all; it
//! is looked at before it is returned, because the program may have read it in the meantime.
//! Deadlines are looked at when the earliest one that is known is over, or one became earlier.

use crate::context::{Context, Listener};
use crate::coordinator::client::SetupError;
use crate::coordinator::protocol;
use crate::interface::{LOOK_AGAIN, MAX_CHANNELS, Timebase};
use arrayvec::ArrayVec;
use onbeat_model::time::{Span, SyncedTime};
use onbeat_runtime::channel_io::{ChannelError, Timeout};
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU32, Ordering};

/// Counts how often a deadline of any end of this program became earlier than it was.
pub(crate) static SOONER: AtomicU32 = AtomicU32::new(0);

/// As many events are taken from the kernel in one call.
const EVENTS: usize = 64;

/// A fixed number of a program's listeners, to be waited for.
#[derive(Debug)]
pub struct Selector {
    context: Context,
    count: usize,
    /// None in virtual time, where the coordinator knows what comes.
    watch: Option<Watch>,
    /// No deadline is missed before this instant,
    due: SyncedTime,
    /// as [`SOONER`] was then.
    sooner: u32,
}

/// What the kernel has told of the ends.
#[derive(Debug)]
struct Watch {
    epoll: OwnedFd,
    /// A bit for each end that had something to read since it was last seen to have nothing.
    told: Box<[u64]>,
}

impl Selector {
    /// Of these ends, all of `context`. Allocates. In virtual time there may be 256, else 4,096.
    ///
    /// # Errors
    /// When there are more, or none, or the system refuses a descriptor.
    pub fn new<'a>(
        context: &Context,
        ends: impl ExactSizeIterator<Item = &'a Listener>,
    ) -> Result<Self, SetupError> {
        context.check_owner()?;
        let count = ends.len();
        let watch = if (1..=MAX_CHANNELS).contains(&count) { Watch::new(ends)? } else { None };
        let most = if watch.is_some() { MAX_CHANNELS } else { protocol::MAX_SELECT };
        if !(1..=most).contains(&count) {
            let why = format!("{count} ends to wait for: there may be 1 to {most}");
            return Err(SetupError::Refused(why));
        }
        // The first wait looks at all deadlines.
        let (due, sooner) = (SyncedTime::from_ns(i64::MIN), SOONER.load(Ordering::Relaxed));
        Ok(Self { context: context.clone(), count, watch, due, sooner })
    }

    /// As [`Context::select`]: waits until one of the ends has something to read, or has missed its
    /// deadline, and returns its position; `None` when none has in time. `end` gives the ends in
    /// the order in which the selector was given them. Real-time: blocks, allocates nothing; looks
    /// at all ends only when one has missed its deadline, or its deadline became earlier.
    pub fn wait<'a>(
        &mut self,
        end: impl Fn(usize) -> &'a Listener,
        patience: Timeout,
    ) -> Result<Option<usize>, ChannelError> {
        let Some(watch) = &mut self.watch else {
            let ends = (0..self.count).map(end);
            let ends: ArrayVec<&Listener, { protocol::MAX_SELECT }> = ends.collect();
            return self.context.select(&ends, patience);
        };
        let base = match &self.context {
            Context::Run(context) => context.base(),
            Context::Interface(context) => context.base(),
        };
        loop {
            let now = base.look()?.local;
            let sooner = SOONER.load(Ordering::Acquire);
            if self.due <= now || self.sooner != sooner {
                self.sooner = sooner;
                if let Some(missed) = missed(&self.context, self.count, &end, now)? {
                    return Ok(Some(missed));
                }
                self.due = (0..self.count)
                    .filter_map(|at| end(at).missed_from())
                    .min()
                    .unwrap_or(SyncedTime::MAX);
            }
            let until = match patience {
                Timeout::None => Timeout::None,
                Timeout::Until(until) => Timeout::Until(until.min(self.due)),
                Timeout::Endless if self.due == SyncedTime::MAX => Timeout::Endless,
                Timeout::Endless => Timeout::Until(self.due),
            };
            let found = watch.wait(base, &end, now, until)?;
            if found.is_some() || until == patience {
                return Ok(found);
            }
        }
    }
}

/// The first end whose deadline is over at `now` without anything to read.
fn missed<'a>(
    context: &Context,
    count: usize,
    end: &impl Fn(usize) -> &'a Listener,
    now: SyncedTime,
) -> Result<Option<usize>, ChannelError> {
    for at in 0..count {
        if context.has_missed(end(at), now)? {
            return Ok(Some(at));
        }
    }
    Ok(None)
}

impl Watch {
    /// Of these ends; `None` if one has no descriptor, as none has in virtual time.
    fn new<'a>(
        ends: impl ExactSizeIterator<Item = &'a Listener>,
    ) -> Result<Option<Self>, SetupError> {
        let refused = |error: Errno| SetupError::Refused(format!("epoll: {error}"));
        let epoll = epoll::create(CreateFlags::CLOEXEC).map_err(refused)?;
        let told = vec![0; ends.len().div_ceil(64)].into_boxed_slice();
        for (at, end) in ends.enumerate() {
            let data = EventData::new_u64(at as u64);
            let flags = EventFlags::IN | EventFlags::ET;
            let Some(there) = end.io().inner().descriptor() else { return Ok(None) };
            match epoll::add(&epoll, there, data, flags) {
                // An end that is there twice has something to read at its first place.
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(refused(error)),
            }
        }
        Ok(Some(Self { epoll, told }))
    }

    /// [`crate::interface::select`] of the ends.
    fn wait<'a>(
        &mut self,
        base: &Timebase,
        end: &impl Fn(usize) -> &'a Listener,
        mut now: SyncedTime,
        patience: Timeout,
    ) -> Result<Option<usize>, ChannelError> {
        // What is there before it waits was not waited for.
        let mut waited = false;
        loop {
            self.collect(|at| {
                if waited {
                    end(at).went_on(base.instant()?);
                }
                Ok(())
            })?;
            if let Some(found) = self.first(end)? {
                return Ok(Some(found));
            }
            let left = match patience {
                Timeout::None => return Ok(None),
                Timeout::Until(until) if now >= until => return Ok(None),
                Timeout::Until(until) => base.left(until)?.min(LOOK_AGAIN),
                Timeout::Endless => LOOK_AGAIN,
            };
            is_readable(self.epoll.as_fd(), left)?;
            now = base.look()?.local;
            waited = true;
        }
    }

    /// Takes what the kernel has to tell, and tells `news` of each end.
    fn collect(
        &mut self,
        mut news: impl FnMut(usize) -> Result<(), ChannelError>,
    ) -> Result<(), ChannelError> {
        loop {
            let mut room = [const { MaybeUninit::<Event>::uninit() }; EVENTS];
            let none = crate::clock::timeout(Span::ZERO);
            let events = match epoll::wait(&self.epoll, &mut room, none.as_ref()) {
                Ok((events, _)) => events,
                Err(Errno::INTR) => continue,
                Err(_) => return Err(ChannelError::Network),
            };
            for event in &*events {
                let at = event.data.u64() as usize;
                self.told[at / 64] |= 1 << (at % 64);
                news(at)?;
            }
            if events.len() < EVENTS {
                return Ok(());
            }
        }
    }

    /// The first end that has something to read; those before it are forgotten.
    fn first<'a>(
        &mut self,
        end: &impl Fn(usize) -> &'a Listener,
    ) -> Result<Option<usize>, ChannelError> {
        for (word, told) in self.told.iter_mut().enumerate() {
            while *told != 0 {
                let bit = told.trailing_zeros() as usize;
                let at = word * 64 + bit;
                let there = end(at).io().inner().descriptor().ok_or(ChannelError::Disconnected)?;
                if is_readable(there, Span::ZERO)? {
                    return Ok(Some(at));
                }
                *told &= !(1 << bit);
            }
        }
        Ok(None)
    }
}

/// Whether there may be something to read within `left`.
fn is_readable(descriptor: BorrowedFd<'_>, left: Span) -> Result<bool, ChannelError> {
    let mut set = [PollFd::from_borrowed_fd(descriptor, PollFlags::IN)];
    match poll(&mut set, crate::clock::timeout(left).as_ref()) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::INTR) => Ok(false),
        Err(_) => Err(ChannelError::Network),
    }
}
