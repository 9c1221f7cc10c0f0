//! A receive queue of an interface, as the channel ends of this process share it: one program, one
//! memory for frames, one fill and one completion ring. The kernel allows no second of any.

use super::bpf::Program;
use super::ring::{CHUNK, Frames, Ring};
use crate::bpf::Attachment;
use crate::fork;
use crate::interface::context::MAX_CHANNELS;
use crate::interface::{Interface, InterfaceOptions};
use onbeat_model::time::Span;
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::xdp::{
    SocketAddrXdp, SocketAddrXdpFlags, SocketAddrXdpWithSharedUmem, XDP_UMEM_PGOFF_COMPLETION_RING,
    XDP_UMEM_PGOFF_FILL_RING, XdpMmapOffsets, XdpUmemReg, XdpUmemRegFlags,
};
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, sockopt};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// How many frames wait for a reader when the options do not say it, and at most.
const USUAL_BACKLOG: u32 = 16;
const MAX_BACKLOG: u32 = 1_024;
/// So many of the longest messages wait for a reader, if they have fragments.
const WAITING: u32 = 4;
/// How many frames of a writer may be in flight in the kernel at least. A power of two.
const WRITER_FRAMES: u32 = 8;
/// How many readers, and how many writers, share a queue when the options do not say it; and if
/// messages have fragments, which take more memory.
const USUAL_ENDS: u32 = 64;
const USUAL_ENDS_OF_LONG: u32 = 16;
/// Chunks beside the readers' shares, so that an unread channel takes them from no other: what the
/// kernel has in hand while it copies.
const SPARE_COPIED: u32 = 64;
/// The same for a driver that receives into these chunks: its own ring is full of them.
const SPARE_ZERO_COPY: u32 = 4_096;
/// For how long the kernel may take to let go of a queue that was closed just now.
const LET_GO: u32 = 400;
const PAUSE: Span = Span::from_us(2_500);

/// How frames get from the interface to the process and back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mode {
    /// The program runs in the driver, not behind it.
    pub native: bool,
    /// The device reads and writes the process's memory.
    pub zero_copy: bool,
}

/// The queues that this process has open. Locked only in set-up and when ends are closed.
static OPEN: Mutex<Vec<(QueueKey, Weak<Queue>)>> = Mutex::new(Vec::new());

/// Where a queue is: interfaces have numbers of their own in each network namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct QueueKey {
    namespace: u64,
    interface: u32,
    /// A forked child opens its own.
    process: u32,
}

/// For how much there is memory.
#[derive(Clone, Copy, Debug)]
struct Room {
    ends: u32,
    backlog: u32,
    /// Of a writer: all frames of its longest message may be in flight. A power of two.
    to_send: u32,
}

impl Room {
    fn of(options: &InterfaceOptions) -> Self {
        let or = |value: u32, usual| if value == 0 { usual } else { value };
        let (usual_ends, usual_backlog) = match options.longest {
            0 | 1 => (USUAL_ENDS, USUAL_BACKLOG),
            frames => (USUAL_ENDS_OF_LONG, USUAL_BACKLOG.max(frames * WAITING)),
        };
        Self {
            ends: or(options.ends, usual_ends).min(MAX_CHANNELS as u32),
            backlog: or(options.backlog, usual_backlog).min(MAX_BACKLOG).next_power_of_two(),
            to_send: WRITER_FRAMES.max(options.longest).next_power_of_two(),
        }
    }
}

/// What the ends share.
#[derive(Debug)]
pub(super) struct Queue {
    pub(super) frames: Frames,
    fill: Ring<u64>,
    completion: Ring<u64>,
    /// Which of the writers' chunks are free; these are the first ones.
    free: Box<[AtomicBool]>,
    readers: Slots,
    writers: Slots,
    owner: OwnedFd,
    process: u32,
    pub(super) program: Program,
    _attachment: Attachment,
    pub(super) mode: Mode,
    interface: u32,
    number: u32,
    /// How many frames wait for a reader: the entries of its ring.
    pub(super) backlog: u32,
    /// How many frames of a writer may be in flight: the entries of its ring.
    pub(super) to_send: u32,
}

/// A queue, for as long as an end uses it.
#[derive(Debug)]
pub(super) struct Lease(Option<Arc<Queue>>);

impl std::ops::Deref for Lease {
    type Target = Queue;

    fn deref(&self) -> &Queue {
        self.0.as_deref().expect("there until it is dropped")
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // Whoever opens this queue next finds it either open or closed.
        let mut open = locked(&OPEN);
        self.0 = None;
        open.retain(|(_, queue)| queue.strong_count() > 0);
    }
}

/// Which of a number of places are taken.
#[derive(Debug)]
struct Slots(Mutex<Vec<bool>>);

impl Slots {
    fn new(count: u32) -> Self {
        Self(Mutex::new(vec![false; count as usize]))
    }

    fn take(&self) -> io::Result<u32> {
        let mut taken = locked(&self.0);
        let Some(slot) = taken.iter().position(|taken| !taken) else {
            return Err(io::Error::other(format!(
                "{} channel ends share its queue already; set more in the options",
                taken.len()
            )));
        };
        taken[slot] = true;
        Ok(slot as u32)
    }

    fn give_back(&self, slot: u32) {
        locked(&self.0)[slot as usize] = false;
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Opens a queue of an interface, or joins in if this process has it open.
pub(super) fn open(interface: &Interface, options: &InterfaceOptions) -> io::Result<Lease> {
    let probe = rustix::net::socket_with(
        AddressFamily::INET,
        SocketType::DGRAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    let (namespace, process) = (namespace_of(probe.as_fd())?, fork::process());
    let place = QueueKey { namespace, interface: interface.index, process };
    let mut open = locked(&OPEN);
    let found = open.iter().find(|(other, _)| *other == place);
    if let Some(queue) = found.and_then(|(_, queue)| queue.upgrade()) {
        if queue.number == options.queue {
            return Ok(Lease(Some(queue)));
        }
        drop(open);
        return Err(io::Error::other(format!(
            "this program uses its queue {} already, and AF_XDP can use one of an interface",
            Lease(Some(queue)).number
        )));
    }
    let queue = Arc::new(Queue::new(interface, options)?);
    open.push((place, Arc::downgrade(&queue)));
    Ok(Lease(Some(queue)))
}

/// An interface of this number has gone: what was open there is nothing that others may join.
pub(in crate::interface) fn forget(index: u32) {
    let flags = SocketFlags::CLOEXEC;
    let probe = rustix::net::socket_with(AddressFamily::INET, SocketType::DGRAM, flags, None);
    let namespace = probe.map_err(io::Error::from).and_then(|probe| namespace_of(probe.as_fd()));
    let Ok(namespace) = namespace else { return };
    let place = QueueKey { namespace, interface: index, process: fork::process() };
    locked(&OPEN).retain(|(other, _)| *other != place);
}

/// What tells network namespaces apart.
fn namespace_of(socket: BorrowedFd<'_>) -> io::Result<u64> {
    let mut cookie = 0_u64;
    let mut size = size_of::<u64>() as libc::socklen_t;
    // SAFETY: both pointers are valid for writing, and `size` says for how much.
    let got = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_NETNS_COOKIE,
            (&raw mut cookie).cast(),
            &raw mut size,
        )
    };
    if got == 0 { Ok(cookie) } else { Err(io::Error::last_os_error()) }
}

/// Says more about what the kernel refused.
fn explain(error: io::Error) -> io::Error {
    let errno = Errno::from_io_error(&error);
    let why = match errno {
        // The second when the other one's program is of the other mode.
        Some(Errno::BUSY | Errno::EXIST) => {
            "another program has an XDP program on it, or AF_XDP on this queue: one process can; \
             end that one (`ip link` shows the program), or use the transport `packet`"
        }
        Some(Errno::PERM | Errno::ACCESS) => {
            "AF_XDP needs CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF, or root"
        }
        Some(Errno::INVAL) => "it has no such queue, or its driver refuses XDP",
        Some(Errno::NOBUFS | Errno::NOMEM) => {
            "no memory for its frames that may be locked; see `ulimit -l`"
        }
        _ => return error,
    };
    io::Error::new(error.kind(), format!("{why} ({error})"))
}

impl Queue {
    fn new(interface: &Interface, options: &InterfaceOptions) -> io::Result<Self> {
        let room = Room::of(options);
        let ends = room.ends;
        let program = Program::new(options.queue, ends).map_err(explain)?;
        let (attachment, native) = match program.attach(interface.index, true) {
            Ok(attachment) => (attachment, true),
            Err(error) if Errno::from_io_error(&error) == Some(Errno::BUSY) => {
                return Err(explain(error));
            }
            Err(_) => (program.attach(interface.index, false).map_err(explain)?, false),
        };
        let number = options.queue;
        let zero_copy = native.then(|| Shared::new(interface.index, number, room, true));
        let shared = match zero_copy {
            Some(Ok(shared)) => shared,
            _ => Shared::new(interface.index, number, room, false).map_err(explain)?,
        };
        Ok(Self {
            frames: shared.frames,
            fill: shared.fill,
            completion: shared.completion,
            free: (0..ends * room.to_send).map(|_| AtomicBool::new(true)).collect(),
            readers: Slots::new(ends),
            writers: Slots::new(ends),
            owner: shared.owner,
            process: fork::process(),
            program,
            _attachment: attachment,
            mode: Mode { native, zero_copy: shared.zero_copy },
            interface: interface.index,
            number,
            backlog: room.backlog,
            to_send: room.to_send,
        })
    }

    /// A socket of this queue, with a ring for what comes or for what goes.
    pub(super) fn socket(&self, receives: bool) -> io::Result<(OwnedFd, XdpMmapOffsets)> {
        let socket = socket()?;
        if receives {
            sockopt::set_xdp_rx_ring_size(&socket, self.backlog)?;
        } else {
            sockopt::set_xdp_tx_ring_size(&socket, self.to_send)?;
        }
        let flags = SocketAddrXdpFlags::XDP_SHARED_UMEM;
        let addr = SocketAddrXdp::new(flags, self.interface, self.number);
        let shared_umem_fd = self.owner.as_fd();
        rustix::net::bind(&socket, &SocketAddrXdpWithSharedUmem { addr, shared_umem_fd })?;
        let offsets = sockopt::xdp_mmap_offsets(&socket)?;
        Ok((socket, offsets))
    }

    /// Whether this process opened it; a forked child must leave the kernel's part alone.
    pub(super) fn is_ours(&self) -> bool {
        self.process == fork::process()
    }

    /// A place among the readers.
    pub(super) fn reader(&self) -> io::Result<u32> {
        self.readers.take()
    }

    /// A place among the writers: it has the chunks from that number times `to_send`.
    pub(super) fn writer(&self) -> io::Result<u32> {
        self.writers.take()
    }

    /// A reader has gone.
    pub(super) fn reader_gone(&self, slot: u32) {
        self.readers.give_back(slot);
    }

    /// A writer has gone.
    pub(super) fn writer_gone(&self, slot: u32) {
        self.writers.give_back(slot);
    }

    /// Notes which frames have left, whoever sent them. Real-time: bounded.
    pub(super) fn collect(&self) {
        for _ in 0..self.free.len() {
            let Some(chunk) = self.completion.pop_shared() else { return };
            self.release(chunk);
        }
    }

    /// Marks a writer's chunk as free.
    pub(super) fn release(&self, address: u64) {
        if let Some(free) = self.free.get((address / CHUNK) as usize) {
            free.store(true, Ordering::Release);
        }
    }

    /// Takes a free chunk of a writer, looking from its `next`-th on. Real-time: bounded.
    pub(super) fn take(&self, writer: u32, next: u32) -> Option<u64> {
        (0..self.to_send).find_map(|n| {
            let chunk = writer * self.to_send + (next + n) % self.to_send;
            let was = self.free[chunk as usize].swap(false, Ordering::Acquire);
            was.then_some(u64::from(chunk) * CHUNK)
        })
    }

    /// Gives the chunk around an address back for receiving. Real-time: without locks.
    pub(super) fn give_back(&self, address: u64) {
        // There is always room: the ring has as many entries as there are chunks.
        self.fill.push_shared(address / CHUNK * CHUNK);
        if self.mode.zero_copy && self.fill.wants_wakeup() {
            wake_receiver(self.owner.as_fd());
        }
    }
}

/// Lets a driver that ran out of chunks look at the fill ring.
fn wake_receiver(socket: BorrowedFd<'_>) {
    // Nothing is received.
    let _ = rustix::net::recv(socket, &mut [0; 0][..], RecvFlags::DONTWAIT);
}

fn socket() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC;
    Ok(rustix::net::socket_with(AddressFamily::XDP, SocketType::RAW, flags, None)?)
}

/// What belongs to the first socket of a queue; it carries no frames itself.
struct Shared {
    owner: OwnedFd,
    fill: Ring<u64>,
    completion: Ring<u64>,
    frames: Frames,
    zero_copy: bool,
}

impl Shared {
    fn new(interface: u32, queue: u32, room: Room, zero_copy: bool) -> io::Result<Self> {
        let spare = if zero_copy { SPARE_ZERO_COPY } else { SPARE_COPIED };
        let to_send = room.ends * room.to_send;
        let to_receive = room.ends * room.backlog + spare;
        let frames = Frames::new(u64::from(to_send + to_receive))?;
        let owner = socket()?;
        let (addr, len) = frames.range();
        let memory = XdpUmemReg {
            addr,
            len,
            chunk_size: CHUNK as u32,
            headroom: 0,
            flags: XdpUmemRegFlags::empty(),
            tx_metadata_len: 0,
        };
        sockopt::set_xdp_umem_reg(&owner, memory)?;
        // Every chunk fits in either ring, so that neither is ever full.
        let (fill_size, completion_size) =
            (to_receive.next_power_of_two(), to_send.next_power_of_two());
        sockopt::set_xdp_umem_fill_ring_size(&owner, fill_size)?;
        sockopt::set_xdp_umem_completion_ring_size(&owner, completion_size)?;
        // The kernel wants a ring for frames too; nothing is ever sent to it.
        sockopt::set_xdp_rx_ring_size(&owner, 1)?;
        let offsets = sockopt::xdp_mmap_offsets(&owner)?;
        let fill = Ring::new(owner.as_fd(), &offsets.fr, fill_size, XDP_UMEM_PGOFF_FILL_RING)?;
        let page = XDP_UMEM_PGOFF_COMPLETION_RING;
        let completion = Ring::new(owner.as_fd(), &offsets.cr, completion_size, page)?;
        for chunk in to_send..to_send + to_receive {
            fill.push_shared(u64::from(chunk) * CHUNK);
        }
        let copy = if zero_copy { SocketAddrXdpFlags::XDP_ZEROCOPY } else { XDP_COPY };
        let flags = copy | SocketAddrXdpFlags::XDP_USE_NEED_WAKEUP;
        bind(&owner, &SocketAddrXdp::new(flags, interface, queue))?;
        Ok(Self { owner, fill, completion, frames, zero_copy })
    }
}

const XDP_COPY: SocketAddrXdpFlags = SocketAddrXdpFlags::XDP_COPY;

/// Binds, waiting while the kernel still tidies up after an earlier user: it does so later.
fn bind(socket: &OwnedFd, address: &SocketAddrXdp) -> io::Result<()> {
    for _ in 0..LET_GO {
        match rustix::net::bind(socket, address) {
            Err(Errno::BUSY) => crate::clock::pause(PAUSE),
            other => return Ok(other?),
        }
    }
    Err(Errno::BUSY.into())
}

/// How many receive queues an interface has.
pub(super) fn receive_queues(interface: &Interface) -> u32 {
    crate::interface::device::receive_queues(&interface.name).unwrap_or(1)
}
