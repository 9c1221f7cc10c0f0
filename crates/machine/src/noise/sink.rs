//! The sink.

use super::{BATCH, GROUP, NoiseError, STAMP, failed, read_stamp, wire_octets};
use onbeat::clock::MonoTime;
use onbeat::interface::{Interface, set_option};
use onbeat_model::time::Span;
use onbeat_model::units::Octets;
use onbeat_run::noise::refused;
use rustix::fd::AsRawFd;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

/// How long the thread waits before it looks whether it is to stop.
const LOOK_AGAIN: libc::timeval = libc::timeval { tv_sec: 0, tv_usec: 50_000 };
/// How long it counts what was waiting when it is to stop.
const DRAIN: Span = Span::from_s(1);
/// What may wait for the thread, in octets as the kernel counts them.
const BUFFER_OCTETS: i32 = 32 << 20;
/// The most generator threads whose losses are told apart; those beyond are counted only.
const STREAMS_MAX: usize = 256;

/// What is to be received.
#[derive(Clone, Debug)]
pub struct Receiving {
    /// What comes in here only; the sink also joins [`GROUP`].
    pub interface: Option<String>,
    /// The address of this host that it comes to; any if none.
    pub address: Option<IpAddr>,
    /// The port.
    pub port: u16,
}

/// What a sink has received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// Datagrams.
    pub datagrams: u64,
    /// Their octets, without headers.
    pub payload_octets: u64,
    /// What they took of the wire.
    pub wire_octets: u64,
    /// Datagrams that are missing by their numbers, but for those after the last that came.
    pub lost: u64,
    /// Of these, so many reached this host, and the sink was too slow for them.
    pub overrun: u64,
}

/// What the thread tells.
#[derive(Debug, Default)]
struct Board {
    datagrams: AtomicU64,
    payload: AtomicU64,
    wire: AtomicU64,
    lost: AtomicU64,
    overrun: AtomicU64,
    broken: OnceLock<String>,
}

/// A sink that receives. Dropping it ends it.
#[derive(Debug)]
pub struct Sink {
    at: SocketAddr,
    stop: Arc<AtomicBool>,
    board: Arc<Board>,
    thread: Option<JoinHandle<()>>,
}

/// Lets a socket send and receive by one interface only.
pub(super) fn bind_to(socket: &UdpSocket, interface: &str) -> io::Result<()> {
    let mut name = [0_u8; libc::IF_NAMESIZE];
    for (to, from) in name.iter_mut().zip(interface.bytes().take(libc::IF_NAMESIZE - 1)) {
        *to = from;
    }
    set_option(socket, libc::SOL_SOCKET, libc::SO_BINDTODEVICE, &name)
}

impl Sink {
    /// Opens the socket in the calling thread's network namespace, and starts.
    pub fn start(receiving: &Receiving) -> Result<Self, NoiseError> {
        let Receiving { interface, address, port } = receiving;
        let any = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        let socket =
            UdpSocket::bind((address.unwrap_or(any), *port)).map_err(failed("opening the port"))?;
        if let Some(name) = interface {
            let refuse = |error| NoiseError::Interface { name: name.clone(), error };
            let found = Interface::named(name).map_err(refuse)?;
            bind_to(&socket, name).map_err(refuse)?;
            if address.is_none() {
                join(&socket, &found).map_err(refuse)?;
            }
        }
        let system = failed("preparing the socket");
        let _ = set_option(&socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &BUFFER_OCTETS)
            .or_else(|_| set_option(&socket, libc::SOL_SOCKET, libc::SO_RCVBUF, &BUFFER_OCTETS));
        set_option(&socket, libc::SOL_SOCKET, libc::SO_RCVTIMEO, &LOOK_AGAIN).map_err(&system)?;
        let at = socket.local_addr().map_err(&system)?;
        let (stop, board) = (Arc::new(AtomicBool::new(false)), Arc::new(Board::default()));
        let reader = Reader {
            v6: at.is_ipv6(),
            socket,
            streams: Vec::new(),
            total: Received::default(),
            board: Arc::clone(&board),
        };
        let told = Arc::clone(&stop);
        let thread = std::thread::Builder::new().name("noise-sink".to_owned());
        let thread =
            thread.spawn(move || reader.run(&told)).map_err(failed("starting a thread"))?;
        Ok(Self { at, stop, board, thread: Some(thread) })
    }

    /// Where it listens.
    pub fn at(&self) -> SocketAddr {
        self.at
    }

    /// What has been received up to now.
    pub fn received(&self) -> Received {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let board = &self.board;
        Received {
            datagrams: of(&board.datagrams),
            payload_octets: of(&board.payload),
            wire_octets: of(&board.wire),
            lost: of(&board.lost),
            overrun: of(&board.overrun),
        }
    }

    /// Why it does not receive any more, if it does not.
    pub fn broken(&self) -> Option<&str> {
        self.board.broken.get().map(String::as_str)
    }

    /// Ends it, and tells what has been received in all.
    pub fn finish(mut self) -> Received {
        self.end();
        self.received()
    }

    fn end(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join(); // what it told stands on its board
        }
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.end();
    }
}

/// Joins the group on an interface, which needs no address for that.
fn join(socket: &UdpSocket, interface: &Interface) -> io::Result<()> {
    let request = libc::ip_mreqn {
        imr_multiaddr: libc::in_addr { s_addr: u32::from_ne_bytes(GROUP.octets()) },
        imr_address: libc::in_addr { s_addr: 0 },
        imr_ifindex: interface.index as i32,
    };
    set_option(socket, libc::IPPROTO_IP, libc::IP_ADD_MEMBERSHIP, &request)
}

/// What came of one generator thread.
#[derive(Clone, Copy, Debug)]
struct Stream {
    name: u32,
    /// The number of the datagram that should come next.
    next: u64,
}

struct Reader {
    v6: bool,
    socket: UdpSocket,
    streams: Vec<Stream>,
    total: Received,
    board: Arc<Board>,
}

impl Reader {
    fn run(mut self, stop: &AtomicBool) {
        let mut end = None;
        loop {
            // What is there when it is to stop is counted; who continues sending is not waited for.
            if stop.load(Ordering::Relaxed) && end.is_none() {
                end = Some(MonoTime::now() + DRAIN);
            }
            let flags = if end.is_some() { libc::MSG_DONTWAIT } else { libc::MSG_WAITFORONE };
            let got = self.receive(flags);
            self.tell();
            match (got, end) {
                (Ok(0), Some(_)) => return,
                (Ok(_), Some(end)) if MonoTime::now() > end => return,
                (Ok(_), _) => {}
                (Err(error), _) => {
                    let _ = self.board.broken.set(error.to_string());
                    return;
                }
            }
        }
    }

    fn tell(&mut self) {
        let overrun = refused(&self.socket).unwrap_or(self.total.overrun as u32);
        // The kernel's count wraps around.
        let new = overrun.wrapping_sub(self.total.overrun as u32);
        self.total.overrun += u64::from(new);
        let (board, total) = (&self.board, &self.total);
        for (to, from) in [
            (&board.datagrams, total.datagrams),
            (&board.payload, total.payload_octets),
            (&board.wire, total.wire_octets),
            (&board.lost, total.lost),
            (&board.overrun, total.overrun),
        ] {
            to.store(from, Ordering::Relaxed);
        }
    }

    /// Takes what is there and, unless the flags say otherwise, waits for something; only the
    /// stamps are copied. How many there were.
    fn receive(&mut self, flags: i32) -> io::Result<usize> {
        let mut stamps = [[0_u8; STAMP]; BATCH];
        // SAFETY: all zeros is a valid `mmsghdr` and `iovec`.
        let (mut headers, mut parts): ([libc::mmsghdr; BATCH], [libc::iovec; BATCH]) =
            unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
        for (place, stamp) in stamps.iter_mut().enumerate() {
            parts[place].iov_base = stamp.as_mut_ptr().cast();
            parts[place].iov_len = STAMP;
            headers[place].msg_hdr.msg_iov = &raw mut parts[place];
            headers[place].msg_hdr.msg_iovlen = 1;
        }
        // A datagram's full length is told although it is cut off.
        let flags = libc::MSG_TRUNC | flags;
        let (fd, none) = (self.socket.as_raw_fd(), std::ptr::null_mut());
        // SAFETY: the headers point to parts and stamps that outlive the call.
        let got = unsafe { libc::recvmmsg(fd, headers.as_mut_ptr(), BATCH as u32, flags, none) };
        let Ok(got) = usize::try_from(got) else {
            let error = io::Error::last_os_error();
            return match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(0),
                _ => Err(error),
            };
        };
        for (header, stamp) in headers.iter().zip(&stamps).take(got) {
            let whole = header.msg_len as usize >= STAMP;
            self.count(header.msg_len, read_stamp(stamp).filter(|_| whole));
        }
        Ok(got)
    }

    fn count(&mut self, octets: u32, stamp: Option<(u32, u64)>) {
        self.total.datagrams += 1;
        self.total.payload_octets += u64::from(octets);
        self.total.wire_octets += u64::from(wire_octets(Octets::new(octets), self.v6).get());
        if let Some((name, number)) = stamp {
            account(&mut self.streams, &mut self.total.lost, name, number);
        }
    }
}

/// Counts what is missing before a datagram; one that comes late after all is not lost.
fn account(streams: &mut Vec<Stream>, lost: &mut u64, name: u32, number: u64) {
    let Some(stream) = streams.iter_mut().find(|stream| stream.name == name) else {
        if streams.len() < STREAMS_MAX {
            streams.push(Stream { name, next: number.saturating_add(1) });
        }
        return;
    };
    if number >= stream.next {
        *lost = lost.saturating_add(number - stream.next);
        stream.next = number.saturating_add(1);
    } else {
        *lost = lost.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_losses_until_what_is_missing_comes_after_all() {
        let (mut streams, mut lost) = (Vec::new(), 0);
        let mut after = |name, number| {
            account(&mut streams, &mut lost, name, number);
            lost
        };
        assert_eq!(after(1, 5), 0, "the sink may begin in the middle");
        assert_eq!(after(1, 6), 0);
        assert_eq!(after(2, 0), 0, "another generator thread");
        assert_eq!(after(1, 10), 3);
        assert_eq!(after(1, 8), 2, "late, not lost");
        assert_eq!(after(2, u64::MAX), u64::MAX, "nonsense does not wrap around");
    }
}
