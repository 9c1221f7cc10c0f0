//! How an end of AF_XDP gets to an interface that replaced its own: its rings are those of a
//! socket, so that it needs another one. The monitor makes it, and the end's task takes it at its
//! next call.

use super::Side;
use crate::interface::{Interface, InterfaceOptions};
use onbeat_model::record::Role;
use onbeat_runtime::talker::ChannelParameters;
use rustix::event::epoll;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError, TryLockError};

/// The place where the monitor and the end's task exchange sides.
#[derive(Debug, Default)]
pub(crate) struct Renewal {
    /// Whether there is one that the task has not taken.
    pub(super) is_there: AtomicBool,
    sides: Mutex<Sides>,
    /// Readable while the socket of a listener's side is.
    waited_at: Option<OwnedFd>,
}

#[derive(Debug, Default)]
struct Sides {
    fresh: Option<Side>,
    /// Closed by the monitor: that takes some tens of milliseconds.
    used: Option<Side>,
}

impl Renewal {
    /// Of a listener with this socket.
    pub(super) fn waited_for(socket: BorrowedFd<'_>) -> io::Result<Self> {
        let waited_at = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        watch(&waited_at, socket)?;
        Ok(Self { waited_at: Some(waited_at), ..Self::default() })
    }

    /// What is readable while a listener's socket is, whichever it has.
    pub(super) fn waited_at(&self) -> Option<BorrowedFd<'_>> {
        self.waited_at.as_ref().map(OwnedFd::as_fd)
    }

    /// Makes a side for an interface. Not for real-time paths.
    pub(in crate::interface) fn renew(
        &self,
        interface: &Interface,
        channel: &ChannelParameters,
        options: &InterfaceOptions,
        role: Role,
    ) -> io::Result<()> {
        // One that was not taken is of an interface that has gone, too.
        let old = std::mem::take(&mut *self.sides.lock().unwrap_or_else(PoisonError::into_inner));
        drop(old);
        let fresh = match role {
            Role::Talker => Side::talker(interface, channel, options)?,
            Role::Listener => Side::listener(interface, channel, options)?,
        };
        if let Some(waited_at) = &self.waited_at {
            watch(waited_at, fresh.socket())?;
        }
        self.sides.lock().unwrap_or_else(PoisonError::into_inner).fresh = Some(fresh);
        self.is_there.store(true, Ordering::Release);
        Ok(())
    }

    /// Closes the side that the task has given back; whether it has yet to take one. Not for
    /// real-time paths.
    pub(in crate::interface) fn clear(&self) -> bool {
        let used = self.sides.lock().unwrap_or_else(PoisonError::into_inner).used.take();
        drop(used);
        self.is_there.load(Ordering::Acquire)
    }

    /// Exchanges the side of the task for the one that is there. Real-time: does not wait.
    #[cold]
    pub(super) fn exchange(&self, side: &mut Side) {
        let mut sides = match self.sides.try_lock() {
            Ok(sides) => sides,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        if let Some(fresh) = sides.fresh.take() {
            sides.used = Some(std::mem::replace(side, fresh));
        }
        self.is_there.store(false, Ordering::Relaxed);
    }
}

fn watch(waited_at: &OwnedFd, socket: BorrowedFd<'_>) -> io::Result<()> {
    let data = epoll::EventData::new_u64(0);
    Ok(epoll::add(waited_at, socket, data, epoll::EventFlags::IN)?)
}
