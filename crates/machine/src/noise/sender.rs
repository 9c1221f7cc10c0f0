//! The generator.

use super::{
    BATCH, GROUP, NoiseError, RATE_MAX, SIZE_MAX, SIZE_MIN, STAMP, THREADS_MAX, failed, guard,
    stamp, wire_octets,
};
use onbeat::clock::{EmulatedClock, MonoTime};
use onbeat::interface::{Interface, set_option};
use onbeat_model::diagnostic::Origin;
use onbeat_model::system::{NodeId, Noise};
use onbeat_model::time::{ClockError, NetTime, Span};
use onbeat_model::units::{BitRate, Octets, frame};
use onbeat_net::NoiseTimes;
use rustix::fd::AsRawFd;
use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

/// The least time between two wake-ups of a thread, and the most: how soon it sees that it is to
/// stop.
const WAKE_UP: Span = Span::from_us(250);
const LOOK_AGAIN: Span = Span::from_ms(10);
/// The most octets of one packet that the kernel cuts.
const PACKET_MAX: usize = 65_000;
/// How long a thread pauses that is behind.
const BREATH: Span = Span::from_us(50);
/// What is overdue by more is left out: a machine or link that cannot keep up carries less, and
/// does not fall ever further behind.
const OVERDUE: Span = Span::from_ms(10);
/// What may wait in the host's own queue, in octets as the kernel counts them: some milliseconds
/// of a gigabit link, so that a late wake-up leaves no hole.
const BUFFER_OCTETS: i32 = 4 << 20;

/// What is to be sent, and where.
#[derive(Clone, Debug)]
pub struct Sending {
    /// By which interface; else by the one that leads to `to`.
    pub interface: Option<String>,
    /// Where to; else to [`GROUP`] on the interface.
    pub to: Option<IpAddr>,
    /// The port there.
    pub port: u16,
    /// Octets of each datagram, without headers; from [`SIZE_MIN`] to [`SIZE_MAX`].
    pub size: Octets,
    /// How much of the wire it takes while on: frames with preamble and gap.
    pub rate: BitRate,
    /// How long it sends in each cycle.
    pub on: Span,
    /// How long it rests in each cycle; zero: never.
    pub off: Span,
    /// How many threads share the work.
    pub threads: u16,
    /// Hand several datagrams to the kernel as one packet, which it or the interface cuts (UDP
    /// segmentation offload, udp(7)): cheaper.
    pub offload: bool,
    /// Send even where a default route suffers.
    pub force: bool,
}

/// What a generator has sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Datagrams that the kernel took.
    pub datagrams: u64,
    /// Datagrams that were due and left out: the machine or the link was more than 10 ms behind.
    pub skipped: u64,
}

/// What a thread tells.
#[derive(Debug, Default)]
struct Board {
    datagrams: AtomicU64,
    skipped: AtomicU64,
}

/// Noise that is being made. Dropping it ends it.
#[derive(Debug)]
pub struct Sender {
    to: SocketAddr,
    interface: Interface,
    stop: Arc<AtomicBool>,
    boards: Vec<Arc<Board>>,
    threads: Vec<JoinHandle<()>>,
}

impl Sender {
    /// Looks at the way out, opens the sockets in the calling thread's network namespace, and
    /// starts.
    ///
    /// # Errors
    /// When the way out carries a default route and `force` is not set, before anything is sent.
    ///
    /// # Panics
    /// When a figure is outside of its range.
    pub fn start(sending: &Sending) -> Result<Self, NoiseError> {
        assert!((SIZE_MIN..=SIZE_MAX).contains(&sending.size.get()), "{:?}", sending.size);
        assert!(sending.rate.as_bps() > 0 && sending.rate <= RATE_MAX, "{:?}", sending.rate);
        assert!((1..=THREADS_MAX).contains(&sending.threads), "{}", sending.threads);
        let (interface, to) = way(sending)?;
        if !sending.force
            && let Some(carrier) =
                guard::carrier_of(interface.index).map_err(failed("looking for default routes"))?
        {
            return Err(NoiseError::DefaultRoute(carrier));
        }
        check_size(&interface, to, sending.size)?;
        let clock = EmulatedClock { start: MonoTime::now(), error: ClockError::default() };
        let mut sender =
            Self { to, interface, stop: Arc::default(), boards: Vec::new(), threads: Vec::new() };
        for number in 0..sending.threads {
            let socket = open(&sender.interface, to).map_err(failed("opening a socket"))?;
            if sending.offload {
                let size = sending.size.get() as i32;
                set_option(&socket, libc::SOL_UDP, libc::UDP_SEGMENT, &size)
                    .map_err(failed("asking for segmentation offload"))?;
            }
            let board = Arc::new(Board::default());
            let worker = Worker::new(socket, sending, number, to, clock, Arc::clone(&board));
            let stop = Arc::clone(&sender.stop);
            let thread = std::thread::Builder::new().name(format!("noise{number}"));
            let thread = thread.spawn(move || worker.run(&stop));
            sender.threads.push(thread.map_err(failed("starting a thread"))?);
            sender.boards.push(board);
        }
        Ok(sender)
    }

    /// Where it goes.
    pub fn to(&self) -> SocketAddr {
        self.to
    }

    /// The name of the interface by which it goes.
    pub fn interface(&self) -> &str {
        &self.interface.name
    }

    /// What has been sent up to now.
    pub fn sent(&self) -> Sent {
        let sum = |of: fn(&Board) -> &AtomicU64| {
            self.boards.iter().map(|board| of(board).load(Ordering::Relaxed)).sum()
        };
        Sent { datagrams: sum(|b| &b.datagrams), skipped: sum(|b| &b.skipped) }
    }

    /// Ends it, and tells what has been sent in all.
    pub fn finish(mut self) -> Sent {
        self.end();
        self.sent()
    }

    fn end(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join(); // what it told stands on its board
        }
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.end();
    }
}

/// The interface and the address that noise is for.
fn way(sending: &Sending) -> Result<(Interface, SocketAddr), NoiseError> {
    let to = sending.to.unwrap_or(IpAddr::V4(GROUP));
    let name = match &sending.interface {
        Some(name) => name.clone(),
        None => {
            guard::way_to(to).and_then(name_of).map_err(|error| NoiseError::NoWay { to, error })?
        }
    };
    let refuse = |error| NoiseError::Interface { name: name.clone(), error };
    let interface = Interface::named(&name).map_err(refuse)?;
    if !interface.up {
        return Err(refuse(io::Error::new(io::ErrorKind::NetworkDown, "it is down")));
    }
    if !interface.running {
        let why = "it has no link: whatever is sent would be dropped";
        return Err(refuse(io::Error::new(io::ErrorKind::NetworkDown, why)));
    }
    let to = match to {
        IpAddr::V6(v6) if v6.is_unicast_link_local() || v6.is_multicast() => {
            SocketAddrV6::new(v6, sending.port, 0, interface.index).into()
        }
        other => SocketAddr::new(other, sending.port),
    };
    Ok((interface, to))
}

fn name_of(index: u32) -> io::Result<String> {
    let mut name = [0_u8; libc::IF_NAMESIZE];
    // SAFETY: the buffer has the size that the call asks for; it writes a string that ends with 0.
    if unsafe { libc::if_indextoname(index, name.as_mut_ptr().cast()) }.is_null() {
        return Err(io::Error::last_os_error());
    }
    let end = name.iter().position(|octet| *octet == 0).unwrap_or(name.len());
    Ok(String::from_utf8_lossy(&name[..end]).into_owned())
}

/// No datagram is cut into fragments: what one takes of the wire would not be known.
fn check_size(interface: &Interface, to: SocketAddr, size: Octets) -> Result<(), NoiseError> {
    let headers = frame::UDP_IPV4.get() + if to.is_ipv6() { super::IPV6_MORE } else { 0 };
    let most = interface.mtu.saturating_sub(headers);
    let size = size.get();
    if size > most { Err(NoiseError::TooLong { size, most }) } else { Ok(()) }
}

fn open(interface: &Interface, to: SocketAddr) -> io::Result<UdpSocket> {
    let any: IpAddr = match to {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0))?;
    super::sink::bind_to(&socket, &interface.name)?;
    // By itself a group's datagram has a time to live of 1, with both versions. A group's
    // datagrams need not come back to this host.
    if to.ip().is_multicast() && to.is_ipv4() {
        socket.set_multicast_loop_v4(false)?;
    }
    // What the host's own queue has no room for is told, and tried again.
    let (level, told) = match to {
        SocketAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_RECVERR),
        SocketAddr::V6(_) => (libc::IPPROTO_IPV6, libc::IPV6_RECVERR),
    };
    set_option(&socket, level, told, &1_i32)?;
    let _ = set_option(&socket, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, &BUFFER_OCTETS)
        .or_else(|_| set_option(&socket, libc::SOL_SOCKET, libc::SO_SNDBUF, &BUFFER_OCTETS));
    socket.set_nonblocking(true)?;
    socket.connect(to)?;
    Ok(socket)
}

/// One thread's part.
struct Worker {
    socket: UdpSocket,
    size: usize,
    /// How many datagrams are one packet for the kernel.
    together: usize,
    /// [`BATCH`] datagrams, one behind the other.
    payloads: Vec<u8>,
    stream: u32,
    number: u64,
    times: NoiseTimes,
    /// When the next datagram that is not in `ready` is due.
    next: Option<NetTime>,
    /// When those were due that are to be sent now.
    ready: VecDeque<NetTime>,
    clock: EmulatedClock,
    board: Arc<Board>,
}

impl Worker {
    fn new(
        socket: UdpSocket,
        sending: &Sending,
        number: u16,
        to: SocketAddr,
        clock: EmulatedClock,
        board: Arc<Board>,
    ) -> Self {
        let wire = wire_octets(sending.size, to.is_ipv6());
        let gap = sending.rate.time_for(wire);
        let noise = Noise {
            name: "noise".to_owned(),
            from: NodeId(0),
            to: NodeId(0),
            payload: sending.size,
            interval: gap * i64::from(sending.threads),
            jitter: false,
            start: NetTime::ZERO + gap * i64::from(number),
            on: sending.on,
            off: sending.off,
            origin: Origin::default(),
        };
        let times = NoiseTimes::new(&noise, usize::from(number), 0, NetTime::MAX);
        let size = sending.size.get() as usize;
        // Runs that follow each other are other streams to the sink.
        let stream = ((clock.start.as_ns() / 1_000) as u32).wrapping_mul(u32::from(THREADS_MAX));
        Self {
            socket,
            size,
            together: if sending.offload { (PACKET_MAX / size).clamp(1, BATCH) } else { 1 },
            payloads: vec![0; BATCH * size],
            stream: stream.wrapping_add(u32::from(number)),
            number: 0,
            next: times.first(),
            times,
            ready: VecDeque::with_capacity(BATCH),
            clock,
            board,
        }
    }

    fn run(mut self, stop: &AtomicBool) {
        while !stop.load(Ordering::Relaxed) {
            let now = self.clock.network();
            self.send_due(now, stop);
            let next = self.ready.front().copied().or(self.next).unwrap_or(now);
            let next = next.max(self.clock.network() + WAKE_UP).min(now + LOOK_AGAIN);
            // One that cannot keep up still lets other threads of its priority have the core.
            let next = next.max(self.clock.network() + BREATH);
            self.clock.at(next).sleep();
        }
    }

    /// Sends what is due at `now`, as far as the host's queue takes it.
    fn send_due(&mut self, now: NetTime, stop: &AtomicBool) {
        while !stop.load(Ordering::Relaxed) {
            self.gather(now);
            if self.ready.is_empty() {
                return;
            }
            let sent = self.send();
            self.number += sent as u64;
            self.ready.drain(..sent);
            self.board.datagrams.fetch_add(sent as u64, Ordering::Relaxed);
            if !self.ready.is_empty() {
                return; // no room: the rest is tried again soon
            }
        }
    }

    /// Fills `ready` with what is due and not overdue.
    fn gather(&mut self, now: NetTime) {
        let mut skipped = 0;
        while self.ready.front().is_some_and(|at| now - *at > OVERDUE) {
            self.ready.pop_front();
            skipped += 1;
        }
        while self.ready.len() < BATCH
            && let Some(at) = self.next.filter(|at| *at <= now)
        {
            if now - at > OVERDUE {
                skipped += 1;
            } else {
                self.ready.push_back(at);
            }
            self.next = self.times.next_after(at);
        }
        self.board.skipped.fetch_add(skipped, Ordering::Relaxed);
    }

    /// Hands the datagrams that are ready to the kernel in one call; how many it took.
    fn send(&mut self) -> usize {
        let count = self.ready.len();
        // SAFETY: all zeros is a valid `mmsghdr` and `iovec`.
        let (mut headers, mut parts): ([libc::mmsghdr; BATCH], [libc::iovec; BATCH]) =
            unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
        let payloads = &mut self.payloads[..count * self.size];
        for (place, payload) in payloads.chunks_exact_mut(self.size).enumerate() {
            payload[..STAMP].copy_from_slice(&stamp(self.stream, self.number + place as u64));
        }
        let packets = payloads.chunks_mut(self.together * self.size);
        let number = packets.len();
        for ((packet, part), header) in packets.zip(&mut parts).zip(&mut headers) {
            part.iov_base = packet.as_mut_ptr().cast();
            part.iov_len = packet.len();
            header.msg_hdr.msg_iov = part;
            header.msg_hdr.msg_iovlen = 1;
        }
        let (fd, flags) = (self.socket.as_raw_fd(), libc::MSG_DONTWAIT);
        // SAFETY: the first `number` headers point to parts and payloads that outlive the call.
        let sent = unsafe { libc::sendmmsg(fd, headers.as_mut_ptr(), number as u32, flags) };
        // A full queue, or a host that says nobody listens there: nothing was taken now.
        usize::try_from(sent).map_or(0, |sent| (sent * self.together).min(count))
    }
}
