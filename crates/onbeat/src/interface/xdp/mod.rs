//! AF_XDP: frames pass between the driver and the process without the kernel's network stack. A
//! program in the kernel ([`bpf`]) gives a stream's frames to the ring of its reader; everything
//! else passes to the kernel as ever.
//!
//! ```text
//! interface ── program ─┬─ stream 1 ── ring ── XdpSocket     chunks: Frames, shared by all
//!                       ├─ stream 2 ── ring ── XdpSocket
//!                       └─ the rest ── kernel
//! ```
//!
//! The ends of a process share one [`queue`]. What they share among threads, the fill and the
//! completion ring, is used without locks: an end that the scheduler stops amid an operation holds
//! up no other.

mod bpf;
mod queue;
mod renewal;
mod ring;

pub use queue::Mode;
pub(in crate::interface) use queue::forget;
pub(crate) use renewal::Renewal;

use crate::interface::presence::{self, EndLink};
use crate::interface::{
    Arrival, Interface, InterfaceOptions, LOOK_AGAIN, Stamp, option, packet, socket,
};
use bpf::Key;
use onbeat_runtime::channel_io::{Framing, Reason};
use onbeat_runtime::talker::ChannelParameters;
use onbeat_runtime::wire::{ADDRESSES, TAGGED};
use queue::Lease;
use ring::Ring;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::SendFlags;
use rustix::net::xdp::{XDP_PGOFF_RX_RING, XDP_PGOFF_TX_RING, XdpDesc, XdpDescOptions};
use std::fmt;
use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

/// How often the kernel is asked to send a frame that it could not take at once.
const KICKS: u32 = 3;

/// A channel end's socket.
#[derive(Debug)]
pub struct XdpSocket {
    side: Side,
    link: Arc<EndLink>,
    /// Where another side comes from, when the interface was replaced.
    renewal: Arc<Renewal>,
    queues: u32,
}

#[derive(Debug)]
enum Side {
    Talker(Talker),
    Listener(Listener),
}

/// The fields are dropped in this order: the queue must be last.
#[derive(Debug)]
struct Talker {
    ring: Ring<XdpDesc>,
    socket: OwnedFd,
    slot: u32,
    /// Which of its chunks is likely to be free.
    next: u32,
    untagged: bool,
    queue: Lease,
}

/// The fields are dropped in this order: the queue must be last.
#[derive(Debug)]
struct Listener {
    ring: Ring<XdpDesc>,
    socket: OwnedFd,
    slot: u32,
    key: Key,
    /// Says when frames came.
    stamped: bool,
    /// How many dropped frames have been counted already, of each reason.
    dropped: [u64; Reason::COUNT],
    /// Keeps the membership in the channel's group.
    _member: Option<OwnedFd>,
    queue: Lease,
}

impl XdpSocket {
    /// A socket that only sends. The frames do not pass queueing disciplines.
    ///
    /// # Errors
    /// When the process may not, when another has the interface, or too many ends share it.
    pub fn talker(
        interface: &Interface,
        channel: &ChannelParameters,
        options: &InterfaceOptions,
    ) -> io::Result<Self> {
        let side = Side::talker(interface, channel, options)?;
        Ok(Self {
            side,
            link: Arc::default(),
            renewal: Arc::default(),
            queues: queue::receive_queues(interface),
        })
    }

    /// A socket that receives the channel's frames and no others. No other socket on this host
    /// receives them any more.
    ///
    /// # Errors
    /// As [`XdpSocket::talker`], and when this process reads the channel already.
    pub fn listener(
        interface: &Interface,
        channel: &ChannelParameters,
        options: &InterfaceOptions,
    ) -> io::Result<Self> {
        let side = Side::listener(interface, channel, options)?;
        let renewal = Renewal::waited_for(side.socket())?;
        Ok(Self {
            side,
            link: Arc::default(),
            renewal: Arc::new(renewal),
            queues: queue::receive_queues(interface),
        })
    }

    /// Sends a tagged frame; `launch` must be `None`. Real-time: one system call in most cases,
    /// never blocks, allocates nothing.
    ///
    /// # Errors
    /// `WouldBlock` when the kernel has not sent the frames before: this one is lost. When the
    /// kernel takes a frame but cannot send it yet, its error; that frame may leave later.
    pub fn send(&mut self, frame: &[u8], launch: Option<i64>) -> io::Result<()> {
        debug_assert_eq!(launch, None, "nothing here launches frames");
        self.renew();
        match &mut self.side {
            Side::Talker(talker) => talker.send(frame),
            Side::Listener(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Takes a frame if there is one. Real-time: no system call, allocates nothing.
    pub fn try_receive(&mut self, into: &mut [u8]) -> io::Result<Option<Arrival>> {
        self.renew();
        match &mut self.side {
            Side::Listener(listener) => Ok(listener.take(into)),
            Side::Talker(_) => Ok(None),
        }
    }

    /// Waits for a frame, for [`LOOK_AGAIN`] or until a signal comes. Real-time: two system calls
    /// at most; blocks, allocates nothing.
    ///
    /// # Errors
    /// When the interface has gone.
    pub fn receive(&mut self, into: &mut [u8]) -> io::Result<Option<Arrival>> {
        if let Some(arrival) = self.try_receive(into)? {
            return Ok(Some(arrival));
        }
        let mut set = [PollFd::from_borrowed_fd(self.socket(), PollFlags::IN)];
        match poll(&mut set, crate::clock::timeout(LOOK_AGAIN).as_ref()) {
            Ok(0) => {
                // The only sign that the interface has gone.
                rustix::net::sockopt::socket_error(self.socket())??;
                self.try_receive(into)
            }
            Ok(_) => self.try_receive(into),
            Err(Errno::INTR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// How many frames of the stream were dropped for `reason` since the last call. Real-time: a
    /// load.
    #[inline]
    pub fn dropped(&mut self, reason: Reason) -> u64 {
        let Side::Listener(listener) = &mut self.side else { return 0 };
        let all = listener.queue.program.dropped(listener.slot, reason);
        all.wrapping_sub(std::mem::replace(&mut listener.dropped[reason as usize], all))
    }

    /// Whether there are some that were not asked for yet. Real-time: loads.
    pub fn has_dropped(&self) -> bool {
        let Side::Listener(listener) = &self.side else { return false };
        let told = Reason::ALL.iter().zip(&listener.dropped);
        let all = |reason| listener.queue.program.dropped(listener.slot, reason);
        told.into_iter().any(|(reason, told)| all(*reason) != *told)
    }

    /// What the end knows of its interface.
    pub(super) fn link(&self) -> &Arc<EndLink> {
        &self.link
    }

    /// What gets another side when the interface was replaced.
    pub(super) fn renewal(&self) -> Weak<Renewal> {
        Arc::downgrade(&self.renewal)
    }

    /// What frames come by now. [`XdpSocket::as_fd`] stays the same when the interface is
    /// replaced.
    pub(super) fn socket(&self) -> BorrowedFd<'_> {
        self.side.socket()
    }

    /// Takes the side of an interface that replaced the one before, if there is one. Real-time: a
    /// load.
    #[inline]
    fn renew(&mut self) {
        if self.renewal.is_there.load(Ordering::Acquire) {
            self.renewal.exchange(&mut self.side);
        }
    }

    /// Whether the kernel launches frames at their time: it does not.
    pub fn launches(&self) -> bool {
        false
    }

    /// How frames get to the process and back.
    pub fn mode(&self) -> Mode {
        match &self.side {
            Side::Talker(talker) => talker.queue.mode,
            Side::Listener(listener) => listener.queue.mode,
        }
    }

    /// What the user should know: how frames get here, and what to do when the interface spreads
    /// them over several queues.
    pub fn note(&self) -> String {
        let mode = self.mode();
        if self.queues < 2 {
            return format!("AF_XDP: {mode}");
        }
        format!(
            "AF_XDP: {mode}; the interface has {} receive queues, and only frames of the one in \
             the options are received: set that number, steer the streams to it (`ethtool -N`), \
             or let the interface have one (`ethtool -L`)",
            self.queues
        )
    }
}

impl Side {
    fn talker(
        interface: &Interface,
        channel: &ChannelParameters,
        options: &InterfaceOptions,
    ) -> io::Result<Self> {
        let queue = queue::open(interface, options)?;
        let (socket, offsets) = queue.socket(false)?;
        let pcp = channel.pcp & 7;
        let priority = options.priorities[usize::from(pcp)].unwrap_or(u32::from(pcp));
        option::set(&socket, libc::SOL_SOCKET, libc::SO_PRIORITY, &priority)?;
        let ring = Ring::new(socket.as_fd(), &offsets.tx, queue.to_send, XDP_PGOFF_TX_RING)?;
        let slot = queue.writer()?;
        let untagged = options.untagged;
        Ok(Self::Talker(Talker { ring, socket, slot, next: 0, untagged, queue }))
    }

    fn listener(
        interface: &Interface,
        channel: &ChannelParameters,
        options: &InterfaceOptions,
    ) -> io::Result<Self> {
        let queue = queue::open(interface, options)?;
        let (socket, offsets) = queue.socket(true)?;
        if options.busy_poll {
            socket::busy_poll(&socket)?;
        }
        let member = if channel.destination.0[0] & 1 == 1 {
            let member = packet::open()?;
            packet::join(&member, interface, channel.destination)?;
            Some(member)
        } else {
            None
        };
        let ring = Ring::new(socket.as_fd(), &offsets.rx, queue.backlog, XDP_PGOFF_RX_RING)?;
        let slot = queue.reader()?;
        if let Err(error) = queue.program.add(slot, socket.as_fd(), channel) {
            queue.reader_gone(slot);
            let known = Errno::from_io_error(&error) == Some(Errno::EXIST);
            return Err(if known { one_reader(channel) } else { error });
        }
        let key = Key::of(channel);
        let dropped = Reason::ALL.map(|reason| queue.program.dropped(slot, reason));
        let (stamped, _member) = (options.timestamps, member);
        let listener = Listener { ring, socket, slot, key, stamped, dropped, _member, queue };
        Ok(Self::Listener(listener))
    }

    fn socket(&self) -> BorrowedFd<'_> {
        match self {
            Self::Talker(talker) => talker.socket.as_fd(),
            Self::Listener(listener) => listener.socket.as_fd(),
        }
    }
}

fn one_reader(channel: &ChannelParameters) -> io::Error {
    io::Error::new(
        io::ErrorKind::AlreadyExists,
        format!(
            "this program reads stream {:#018x} already, and AF_XDP gives a frame to one reader; \
             use the transport `packet` for several",
            channel.stream_id.0
        ),
    )
}

impl AsFd for XdpSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.renewal.waited_at().unwrap_or_else(|| self.side.socket())
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let program = if self.native { "in the driver" } else { "behind the driver (generic)" };
        let copies = if self.zero_copy { "zero-copy" } else { "copied" };
        write!(f, "program {program}, frames {copies}")
    }
}

impl Talker {
    fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        self.queue.collect();
        let chunk = match self.queue.take(self.slot, self.next) {
            Some(chunk) => chunk,
            None => {
                // Those before may wait for a call since the interface was down.
                self.kick()?;
                self.queue.collect();
                self.queue.take(self.slot, self.next).ok_or(io::ErrorKind::WouldBlock)?
            }
        };
        self.next = (self.next + 1) % self.queue.to_send;
        let rest = if self.untagged { TAGGED - 2 } else { ADDRESSES };
        // SAFETY: the chunk is this writer's, and was free.
        let length =
            unsafe { self.queue.frames.write(chunk, [&frame[..ADDRESSES], &frame[rest..]]) };
        let options = XdpDescOptions::empty();
        if !self.ring.push(XdpDesc { addr: chunk, len: length as u32, options }) {
            self.queue.release(chunk);
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.kick().map_err(|error| self.unless_left(error, chunk))
    }

    /// Why a frame did not leave. One that is told to be not sent must not leave later.
    #[cold]
    fn unless_left(&mut self, error: io::Error, chunk: u64) -> io::Error {
        if !presence::is_away(&error) {
            return error;
        }
        if self.queue.mode.zero_copy || !self.ring.take_back() {
            return io::ErrorKind::WouldBlock.into();
        }
        self.queue.release(chunk);
        error
    }

    /// Lets the kernel send what is in the ring.
    fn kick(&self) -> io::Result<()> {
        let mut outcome = Ok(());
        for _ in 0..KICKS {
            outcome = rustix::net::send(&self.socket, &[], SendFlags::DONTWAIT).map(drop);
            match outcome {
                Ok(()) => return Ok(()),
                Err(Errno::AGAIN | Errno::BUSY | Errno::NOBUFS | Errno::INTR) => {
                    // It says so also when a frame was dropped, or is only one of many.
                    if self.ring.waiting().next().is_none() {
                        return Ok(());
                    }
                }
                Err(_) => break,
            }
        }
        Ok(outcome?)
    }
}

impl Drop for Talker {
    fn drop(&mut self) {
        if !self.queue.is_ours() {
            return;
        }
        let _ = self.kick();
        self.queue.collect();
        // What copies, copies in `kick` only: frames that are still there never leave. A device
        // may still take them: then it says so in the completion ring.
        if !self.queue.mode.zero_copy {
            self.ring.waiting().for_each(|left| self.queue.release(left.addr));
        }
        self.queue.writer_gone(self.slot);
    }
}

impl Listener {
    fn take(&mut self, into: &mut [u8]) -> Option<Arrival> {
        let XdpDesc { addr, len, .. } = self.ring.pop()?;
        // A frame that is longer than the buffer is not taken for a shorter one.
        let length = if len as usize <= into.len() { len as usize } else { 0 };
        // SAFETY: the kernel gave the chunk to this reader, which has not given it back.
        let stamp = unsafe {
            self.queue.frames.read(addr, &mut into[..length]);
            self.queue.frames.take_stamp(addr)
        };
        self.queue.give_back(addr);
        let stamp = stamp.filter(|_| self.stamped);
        let stamp = stamp.map(|ns| Stamp { monotonic: Some(ns), ..Stamp::default() });
        Some(Arrival { length, framing: Framing::Ethernet, stamp })
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if !self.queue.is_ours() {
            return;
        }
        self.queue.program.remove(self.slot, &self.key);
        while let Some(unread) = self.ring.pop() {
            self.queue.give_back(unread.addr);
        }
        self.queue.reader_gone(self.slot);
    }
}
