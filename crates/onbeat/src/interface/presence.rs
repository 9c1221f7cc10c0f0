//! Follows an interface that goes down, or vanishes and is made again under its name: a thread of
//! low priority waits for what the kernel says of interfaces, and attaches the sockets of the
//! channel ends again. The sockets stay the same, and so do their descriptors.
//!
//! That an interface has gone is the kernel's word: its number comes back where somebody asks for
//! it, or where it was in another namespace meanwhile.
//!
//! ```text
//! kernel ── rtnetlink ── LinkMonitor ─┬─ attaches ──── socket of an end
//!                                     └─ says so in ── EndLink ── InterfaceIo, of the end's task
//! ```

use crate::coordinator::socket::pair;
use crate::fork::process;
use crate::interface::synchronisation::stay_out_of_the_way;
use crate::interface::xdp::{self, Renewal};
use crate::interface::{Interface, InterfaceOptions, IpVersion, device, packet, socket, udp};
use onbeat_model::record::Role;
use onbeat_model::system::TransportKind;
use onbeat_model::time::Span;
use onbeat_runtime::channel_io::ChannelError;
use onbeat_runtime::talker::ChannelParameters;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, Shutdown, SocketFlags, SocketType};
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::JoinHandle;

/// How often it is tried again to attach an end that was refused for a reason whose end the kernel
/// does not tell.
const TRY_AGAIN: Span = Span::from_s(1);
/// The thread's stack, in octets: it may be locked memory.
const STACK: usize = 128 << 10;
/// RTMGRP_LINK, RTMGRP_TC, RTMGRP_IPV4_IFADDR and RTMGRP_IPV6_IFADDR of `linux/rtnetlink.h`.
const GROUPS: u32 = 1 | 8 | 0x10 | 0x100;

/// The interface carries the end's frames.
const UP: u32 = 0;
/// It is down, has no carrier or address, or is not there.
const AWAY: u32 = 1;
/// It is there, and takes no frame of this length.
const TOO_SHORT: u32 = 2;
/// It is there, and the system refuses to attach the end.
const REFUSED: u32 = 3;

/// What an end knows of its interface. The monitor writes, the end's task reads.
#[derive(Debug, Default)]
pub(crate) struct EndLink {
    state: AtomicU32,
    /// Frames carry no tag of ours.
    untagged: AtomicBool,
    /// The kernel launches frames at their time.
    launches: AtomicBool,
}

impl EndLink {
    /// Of an end that is attached.
    pub(super) fn new(untagged: bool, launches: bool) -> Self {
        let (untagged, launches) = (AtomicBool::new(untagged), AtomicBool::new(launches));
        Self { state: AtomicU32::new(UP), untagged, launches }
    }

    #[inline]
    pub(super) fn is_untagged(&self) -> bool {
        self.untagged.load(Ordering::Relaxed)
    }

    #[inline]
    pub(super) fn launches(&self) -> bool {
        self.launches.load(Ordering::Relaxed)
    }

    /// Whether a frame can be sent now. Real-time: a load.
    #[inline]
    pub(super) fn sends(&self) -> Result<(), ChannelError> {
        match self.state.load(Ordering::Relaxed) {
            UP => Ok(()),
            AWAY => Err(ChannelError::LinkDown),
            TOO_SHORT => Err(ChannelError::TooLong),
            _ => Err(ChannelError::Network),
        }
    }

    /// Whether it makes sense to wait for frames: more may come. Real-time: a load.
    #[inline]
    pub(super) fn may_receive(&self) -> Result<(), ChannelError> {
        self.sends().or_else(|fault| match fault {
            ChannelError::LinkDown => Ok(()),
            other => Err(other),
        })
    }
}

/// Whether the kernel took no frame because the interface is down or not there.
pub(super) fn is_away(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(
            Errno::NETDOWN
                | Errno::NODEV
                | Errno::NXIO
                | Errno::NETUNREACH
                | Errno::ADDRNOTAVAIL
                // While the monitor attaches it.
                | Errno::DESTADDRREQ
        )
    )
}

/// What of an end can be attached to another interface.
#[derive(Debug)]
pub(crate) enum Anchor {
    /// Its socket, which stays.
    Socket(Weak<OwnedFd>),
    /// The place for a socket of AF_XDP, which is another one.
    Renewal(Weak<Renewal>),
}

impl Anchor {
    fn is_gone(&self) -> bool {
        match self {
            Self::Socket(socket) => socket.strong_count() == 0,
            Self::Renewal(renewal) => renewal.strong_count() == 0,
        }
    }
}

/// Whether a message was not sent at all, so that the next one has its number.
pub(super) fn is_kept(error: &io::Error) -> bool {
    is_away(error) || Errno::from_io_error(error) == Some(Errno::MSGSIZE)
}

/// An end that is followed, and what was set when it was made.
#[derive(Debug)]
pub(crate) struct Followed {
    pub(crate) anchor: Anchor,
    pub(crate) link: Arc<EndLink>,
    pub(crate) transport: TransportKind,
    pub(crate) role: Role,
    pub(crate) channel: ChannelParameters,
    pub(crate) options: InterfaceOptions,
    /// The number of the interface that it is attached to; 0 when that has gone.
    pub(crate) attached: u32,
}

impl Followed {
    /// Attaches the socket if that is necessary; what is wrong if it cannot be. Whether something
    /// is yet to be done.
    fn look(&mut self, interface: &Interface) -> io::Result<bool> {
        let version = match self.transport {
            TransportKind::Udp4 => Some(IpVersion::V4),
            TransportKind::Udp6 => Some(IpVersion::V6),
            _ => None,
        };
        match version {
            None => packet::fits(interface, &self.channel)?,
            Some(version) => drop(udp::group_of(interface, &self.channel, version)?),
        }
        let is_other = self.attached != interface.index;
        let options = self.options_on(interface);
        let socket = match &self.anchor {
            Anchor::Renewal(renewal) => {
                if let Some(renewal) = renewal.upgrade().filter(|_| is_other) {
                    renewal.renew(interface, &self.channel, &options, self.role)?;
                }
                self.attached = interface.index;
                return Ok(renewal.upgrade().is_some_and(|renewal| renewal.clear()));
            }
            Anchor::Socket(socket) => socket.upgrade(),
        };
        let Some(socket) = socket else { return Ok(false) };
        // IPv6 ends, with its memberships, on an interface whose MTU is too small for it.
        let is_new = is_other || self.link.state.load(Ordering::Relaxed) != UP;
        match (version, self.role) {
            (None, role) if is_other => {
                packet::attach(&socket, interface, &self.channel, &options, role)?;
            }
            (Some(version), Role::Listener) if is_new => {
                udp::attach_listener(&socket, interface, &self.channel, version, self.attached)?;
            }
            (Some(version), Role::Talker) if is_other || !udp::has_source(&socket) => {
                udp::attach_talker(&socket, interface, &self.channel, version)?;
            }
            _ => {}
        }
        self.attached = interface.index;
        if self.role == Role::Talker {
            self.link.untagged.store(options.untagged, Ordering::Relaxed);
            if options.launch_time {
                let launches = socket::let_launch(&socket, interface, &options);
                self.link.launches.store(launches, Ordering::Relaxed);
            }
        }
        Ok(false)
    }

    /// Its interface has gone.
    fn detach(&mut self) {
        if matches!(self.anchor, Anchor::Renewal(_)) && self.attached != 0 {
            xdp::forget(self.attached);
        }
        self.attached = 0;
    }

    fn options_on(&self, interface: &Interface) -> InterfaceOptions {
        InterfaceOptions { untagged: self.options.untagged || interface.tags, ..self.options }
    }
}

/// What the thread and the ends' set-up have in common.
#[derive(Debug)]
struct Watched {
    ends: Vec<Followed>,
    /// What was told of the interface last.
    told: String,
}

/// Follows the interface of a context, in the network namespace of the thread that opened it.
/// Ends with the last context and end that has it.
#[derive(Debug)]
pub(crate) struct LinkMonitor {
    name: String,
    watched: Arc<Mutex<Watched>>,
    /// Shut down to end the thread; a packet wakes it.
    stop: OwnedFd,
    thread: Option<JoinHandle<()>>,
    /// The process that has the thread: one that it forks has not.
    process: u32,
}

impl LinkMonitor {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system gives no socket of rtnetlink, or no thread.
    pub(crate) fn start(name: &str) -> io::Result<Self> {
        let notices = notices()?;
        let (stop, stopped) = pair()?;
        let watched = Watched { ends: Vec::new(), told: String::new() };
        let watched = Arc::new(Mutex::new(watched));
        let (all, known) = (Arc::clone(&watched), name.to_owned());
        let thread = std::thread::Builder::new().name("onbeat-link".to_owned()).stack_size(STACK);
        let thread = thread.spawn(move || run(&known, &all, &notices, &stopped))?;
        let (name, thread) = (name.to_owned(), Some(thread));
        Ok(Self { name, watched, stop, thread, process: process() })
    }

    /// Follows the interface for an end from now on, until its socket is closed. Not for real-time
    /// paths.
    pub(crate) fn follow(&self, end: Followed) {
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        watched.ends.push(end);
        // It may have gone since the end was attached.
        let newest = watched.ends.len() - 1;
        let found = look(&self.name, &mut watched.ends[newest..]);
        drop(watched);
        if !found.is_some_and(|found| found.is_settled()) {
            // The thread says so, and looks again.
            let _ = rustix::net::send(&self.stop, &[1], SendFlags::DONTWAIT);
        }
    }
}

impl Drop for LinkMonitor {
    fn drop(&mut self) {
        let Some(thread) = self.thread.take().filter(|_| self.process == process()) else { return };
        // Closing would not do: a child that was forked has the socket, too.
        let _ = rustix::net::shutdown(&self.stop, Shutdown::Both);
        // A panic of its own has been reported by the thread.
        let _ = thread.join();
    }
}

/// A socket of rtnetlink that the kernel tells what becomes of interfaces, addresses and queueing
/// disciplines.
fn notices() -> io::Result<OwnedFd> {
    let (kind, flags) = (SocketType::RAW, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK);
    // No protocol is protocol 0, NETLINK_ROUTE.
    let socket = rustix::net::socket_with(AddressFamily::NETLINK, kind, flags, None)?;
    // SAFETY: all zeros is a valid `sockaddr_nl`.
    let mut address: libc::sockaddr_nl = unsafe { std::mem::zeroed() };
    address.nl_family = libc::AF_NETLINK as u16;
    address.nl_groups = GROUPS;
    let size = size_of_val(&address) as libc::socklen_t;
    // SAFETY: `address` is valid for reading its own size.
    let got = unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), size) };
    if got == 0 { Ok(socket) } else { Err(io::Error::last_os_error()) }
}

/// The thread.
fn run(name: &str, watched: &Mutex<Watched>, notices: &OwnedFd, stopped: &OwnedFd) {
    stay_out_of_the_way();
    let mut again = None;
    loop {
        let mut set = [notices, stopped].map(|fd| PollFd::new(fd, PollFlags::IN));
        match poll(&mut set, again.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return,
        }
        if !set[1].revents().is_empty() {
            match rustix::net::recv(stopped, &mut [0_u8; 1][..], RecvFlags::DONTWAIT) {
                Ok((0, _)) => return,
                Ok(_) | Err(Errno::AGAIN | Errno::INTR) => {}
                Err(_) => return,
            }
        }
        let Ok(gone) = hear(notices) else { return };
        let mut known = watched.lock().unwrap_or_else(PoisonError::into_inner);
        known.ends.retain(|end| !end.anchor.is_gone());
        for end in &mut known.ends {
            if gone.as_ref().is_none_or(|gone| gone.contains(&end.attached)) {
                end.detach();
            }
        }
        again = crate::clock::timeout(TRY_AGAIN);
        let Some(found) = look(name, &mut known.ends) else { continue };
        let is_news = found.told != known.told;
        known.told.clone_from(&found.told);
        // Whoever opens an end does not wait for a pipe that nobody reads.
        drop(known);
        if is_news {
            let told = if found.told.is_empty() { "it is there again" } else { &found.told };
            let _ = writeln!(io::stderr(), "onbeat: {name}: {told}");
        }
        again = again.filter(|_| !found.is_settled());
    }
}

/// Takes what the kernel says: the numbers of the interfaces that have gone, `None` if there was
/// too much to keep. How everything else is now is asked for.
fn hear(notices: &OwnedFd) -> Result<Option<Vec<u32>>, Errno> {
    let mut octets = [0_u8; 8 << 10];
    let mut gone = Some(Vec::new());
    loop {
        match rustix::net::recv(notices, &mut octets[..], RecvFlags::DONTWAIT) {
            Ok((length, _)) => {
                if let Some(gone) = &mut gone {
                    gone.extend(deleted(&octets[..length.min(octets.len())]));
                }
            }
            Err(Errno::NOBUFS) => gone = None,
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return Ok(gone),
            Err(error) => return Err(error),
        }
    }
}

/// The numbers of the interfaces that messages of rtnetlink say have gone.
fn deleted(mut octets: &[u8]) -> Vec<u32> {
    let mut gone = Vec::new();
    // `struct nlmsghdr` has 16 octets, and of `struct ifinfomsg` the first is the family.
    while let Some((length, rest)) = octets.split_first_chunk::<4>() {
        let length = u32::from_ne_bytes(*length) as usize;
        let (Some(kind), Some(body)) = (rest.first_chunk::<2>(), octets.get(16..length)) else {
            return gone;
        };
        if u16::from_ne_bytes(*kind) == libc::RTM_DELLINK
            && body.first() == Some(&(libc::AF_UNSPEC as u8))
            && let Some(index) = body.get(4..8).and_then(|index| index.first_chunk::<4>())
        {
            gone.push(u32::from_ne_bytes(*index));
        }
        octets = octets.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    gone
}

/// What a look at ends found.
#[derive(Debug)]
struct Found {
    /// The worst of their states.
    worst: u32,
    /// What is to be said of the interface.
    told: String,
    /// A side of an end is yet to be closed.
    unsettled: bool,
}

impl Found {
    /// Whether the kernel will tell of everything that may change.
    fn is_settled(&self) -> bool {
        self.worst == UP && !self.unsettled
    }
}

/// Looks how the interface is, and attaches ends to it; `None` if the system does not tell.
fn look(name: &str, ends: &mut [Followed]) -> Option<Found> {
    let mut found = Found { worst: UP, told: String::new(), unsettled: false };
    let interface = match Interface::named(name) {
        Ok(interface) => Some(interface).filter(|interface| interface.up),
        Err(error) if Errno::from_io_error(&error) == Some(Errno::NODEV) => {
            ends.iter_mut().for_each(Followed::detach);
            None
        }
        // No descriptor is left, for instance: that says nothing of the interface.
        Err(_) => return None,
    };
    let carries = interface.as_ref().is_some_and(device::has_carrier);
    for end in ends {
        let looked = match &interface {
            None => Err(Errno::NETDOWN.into()),
            Some(interface) => end.look(interface),
        };
        let state = match &looked {
            Ok(_) if carries => UP,
            Ok(_) => AWAY,
            Err(error) if is_away(error) => AWAY,
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => TOO_SHORT,
            Err(_) => REFUSED,
        };
        found.unsettled |= matches!(looked, Ok(true));
        if let (TOO_SHORT | REFUSED, Err(error)) = (state, &looked) {
            found.told = format!("stream {:#018x}: {error}", end.channel.stream_id.0);
        }
        end.link.state.store(state, Ordering::Relaxed);
        found.worst = found.worst.max(state);
    }
    if found.worst == AWAY {
        found.told = "it is down or not there: writes say so, reads wait".to_owned();
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_interfaces_that_have_gone_are_taken_from_notices() {
        let message = |kind: u16, family: u8, index: u32| {
            let mut octets = 32_u32.to_ne_bytes().to_vec();
            octets.extend(kind.to_ne_bytes());
            octets.resize(16, 0);
            octets.extend([family, 0, 0, 0]);
            octets.extend(index.to_ne_bytes());
            octets.resize(32, 0);
            octets
        };
        let all = [
            message(libc::RTM_NEWLINK, 0, 1),
            message(libc::RTM_DELLINK, 0, 2),
            // One that leaves a bridge.
            message(libc::RTM_DELLINK, libc::AF_BRIDGE as u8, 3),
            message(libc::RTM_DELLINK, 0, 4),
        ]
        .concat();
        assert_eq!(deleted(&all), [2, 4]);
        for length in 0..all.len() {
            assert!([2, 4].starts_with(&deleted(&all[..length])));
        }
        assert!(deleted(&[0; 64]).is_empty() && deleted(&[255; 64]).is_empty());
    }
}
