//! The description's noise on networks of the kernel: UDP datagrams from host to host at the
//! instants that the engine would send them at.
//!
//! One thread per source, of normal priority. It wakes at most once in [`BATCH`] and sends what has
//! become due since. No program receives: the socket at the other end has a filter that refuses
//! every datagram, and the kernel counts what a filter refuses. So counting what comes through
//! costs one system call per batch, and no thread, no copy and no full buffer stands between the
//! network and the count.

use crate::netns::{KernelNetwork, ipv4_of};
use onbeat::clock::{EmulatedClock, MonoTime, pause};
use onbeat::interface::set_option;
use onbeat_model::record::LoadSample;
use onbeat_model::system::{NodeId, Noise, NoiseId, System};
use onbeat_model::time::{ClockError, NetTime, Span};
use onbeat_model::units::frame;
use onbeat_net::NoiseTimes;
use rustix::fd::AsRawFd;
use std::collections::BTreeMap;
use std::io;
use std::mem::size_of;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// The least time between two wake-ups of a sending thread: 34 frames of the noise of Austad et
/// al. 2023, section 5.2.2.
const BATCH: Span = Span::from_us(500);
/// The most time between two wake-ups: how soon a thread sees that it is to stop, and how far from
/// its time an arrival may be counted.
const LOOK_AGAIN: Span = Span::from_ms(10);
/// What is overdue by more is left out: a machine that cannot keep up sends less, and does not
/// fall ever further behind.
const OVERDUE: Span = Span::from_ms(10);
/// How long frames that were sent last may be in flight.
const DRAIN: Span = Span::from_s(1);

/// The ports that sources send to on interfaces: the first, and how many.
const PORTS: [u16; 2] = [20_000, 10_000];
/// asm-generic/socket.h.
const SO_BINDTOIFINDEX: i32 = 62;
/// By how much a datagram's headers are longer over IPv6.
const IPV6_LONGER: usize = 20;

/// Where the ends of sources are.
#[derive(Clone, Copy, Debug)]
pub enum NoiseNetwork<'a> {
    /// All of them, in namespaces.
    Namespaces(&'a KernelNetwork),
    /// Those of a host that this machine is.
    Interface {
        /// Which host.
        host: NodeId,
        /// The number of its interface.
        index: u32,
        /// The link-local addresses of the hosts that take part.
        addresses: &'a BTreeMap<NodeId, Ipv6Addr>,
    },
}

/// Noise cannot be made.
#[derive(Debug, thiserror::Error)]
#[error("noise `{name}`: {step}: {error}")]
pub struct NoNoise {
    /// Which source.
    pub name: String,
    /// What was being done.
    pub step: &'static str,
    /// What the system said.
    pub error: io::Error,
}

/// How noise is made.
#[derive(Clone, Copy, Debug)]
pub struct NoiseOptions {
    /// Where the jitter comes from: as for the engine, the same seed means the same instants.
    pub seed: u64,
    /// The machine's time at the network's epoch.
    pub start: MonoTime,
    /// Nothing is sent from here on.
    pub until: NetTime,
    /// The width of a load sample.
    pub load_bin: Span,
}

/// What noise did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NoiseLoad {
    /// In order of time, then source; equally spaced. A sample's bits may have been sent up to
    /// half a millisecond, and have come through up to 10 ms, before the interval that they count
    /// in.
    pub samples: Vec<LoadSample>,
    /// Frames that were sent.
    pub offered: u64,
    /// Frames that reached their host.
    pub delivered: u64,
    /// Frames that were due and not sent, because the machine was more than 10 ms behind.
    pub skipped: u64,
}

/// Noise that is being made. Dropping it ends it.
#[derive(Debug)]
pub struct NoiseTraffic {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Source>>,
    options: NoiseOptions,
}

impl NoiseTraffic {
    /// Starts the ends of sources of `system` that are here; they wait for their time by
    /// themselves.
    pub fn start(
        network: NoiseNetwork<'_>,
        system: &System,
        options: NoiseOptions,
    ) -> Result<Self, NoNoise> {
        assert!(options.load_bin > Span::ZERO, "a load sample covers some time");
        let stop = Arc::new(AtomicBool::new(false));
        let mut traffic = Self { stop, threads: Vec::new(), options };
        for (index, noise) in system.noise.iter().enumerate() {
            let attempt = |step, error| NoNoise { name: noise.name.clone(), step, error };
            let ends =
                ends(network, noise, index).map_err(|e| attempt("opening the sockets", e))?;
            if ends.sender.is_none() && ends.receiver.is_none() {
                continue;
            }
            let source = Source::new(ends, noise, index, options);
            let stop = Arc::clone(&traffic.stop);
            let thread = std::thread::Builder::new().name(format!("noise{index}"));
            let thread = thread.spawn(move || source.run(&stop));
            traffic.threads.push(thread.map_err(|e| attempt("starting the thread", e))?);
        }
        Ok(traffic)
    }

    /// Ends all sources and tells what they did. Waits up to a second for frames that
    /// are still in flight.
    pub fn finish(mut self) -> NoiseLoad {
        self.stop.store(true, Ordering::Relaxed);
        let join = |thread: JoinHandle<Source>| match thread.join() {
            Ok(source) => source,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        let sources: Vec<Source> = self.threads.drain(..).map(join).collect();
        load(&sources, self.options)
    }
}

impl Drop for NoiseTraffic {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join(); // it has nothing to tell that anyone still wants
        }
    }
}

/// Frames in one interval of time.
#[derive(Clone, Copy, Debug, Default)]
struct Bin {
    offered: u64,
    delivered: u64,
}

/// The sockets of a source that are here.
#[derive(Debug)]
struct NoiseEnds {
    sender: Option<UdpSocket>,
    /// What the sender is still to be connected with.
    to: Option<SocketAddr>,
    receiver: Option<UdpSocket>,
    /// By how much its datagrams are shorter than described, so that frames are as long.
    shorter: usize,
}

/// The UDP port that the noise of that place in a description comes to on interfaces.
pub fn port(index: usize) -> u16 {
    let [first, count] = PORTS;
    first + (index % usize::from(count)) as u16
}

fn ends(network: NoiseNetwork<'_>, noise: &Noise, index: usize) -> io::Result<NoiseEnds> {
    let nobody = |address: SocketAddr| {
        let socket = UdpSocket::bind(address)?;
        refuse_all(&socket)?;
        Ok::<_, io::Error>(socket)
    };
    let sends = |from: SocketAddr| {
        let socket = UdpSocket::bind(from)?;
        socket.set_nonblocking(true)?;
        Ok::<_, io::Error>(socket)
    };
    match network {
        NoiseNetwork::Namespaces(network) => {
            let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
            let receiver = network.inside(noise.to, || nobody(any))?;
            let to = SocketAddr::from((ipv4_of(noise.to), receiver.local_addr()?.port()));
            let sender = Some(network.inside(noise.from, || sends(any))?);
            Ok(NoiseEnds { sender, to: Some(to), receiver: Some(receiver), shorter: 0 })
        }
        NoiseNetwork::Interface { host, index: interface, addresses } => {
            let port = port(index);
            let on = |ip, port| SocketAddr::from(SocketAddrV6::new(ip, port, 0, interface));
            let to = addresses.get(&noise.to).filter(|_| addresses.contains_key(&noise.from));
            let to = to.map(|to| on(*to, port));
            // Its own address may not be ready yet.
            let any = Ipv6Addr::UNSPECIFIED;
            let sender = to.filter(|_| noise.from == host).map(|_| sends(on(any, 0)));
            let receiver = to.filter(|_| noise.to == host).map(|_| nobody(on(any, port)));
            let (sender, receiver) = (sender.transpose()?, receiver.transpose()?);
            // What comes by another interface is no noise.
            for socket in sender.iter().chain(&receiver) {
                set_option(socket, libc::SOL_SOCKET, SO_BINDTOIFINDEX, &(interface as i32))?;
            }
            Ok(NoiseEnds { sender, to, receiver, shorter: IPV6_LONGER })
        }
    }
}

/// One source of noise and its far end, as far as they are here.
#[derive(Debug)]
struct Source {
    noise: NoiseId,
    sender: Option<UdpSocket>,
    to: Option<SocketAddr>,
    receiver: Option<UdpSocket>,
    payload: Vec<u8>,
    frame_bits: u64,
    times: NoiseTimes,
    clock: EmulatedClock,
    load_bin: Span,
    bins: Vec<Bin>,
    /// The receiver's count when it was last looked at; it wraps around.
    refused: u32,
    total: Bin,
    skipped: u64,
}

impl Source {
    fn new(ends: NoiseEnds, noise: &Noise, index: usize, options: NoiseOptions) -> Self {
        let octets = frame::on_wire(frame::of_udp(noise.payload));
        let payload = (noise.payload.get() as usize).saturating_sub(ends.shorter);
        Self {
            noise: NoiseId(index as u32),
            sender: ends.sender,
            to: ends.to,
            receiver: ends.receiver,
            payload: vec![0; payload],
            frame_bits: u64::from(octets.get()) * 8,
            times: NoiseTimes::new(noise, index, options.seed, options.until),
            clock: EmulatedClock { start: options.start, error: ClockError::default() },
            load_bin: options.load_bin,
            bins: Vec::new(),
            refused: 0,
            total: Bin::default(),
            skipped: 0,
        }
    }

    /// Sends until there is no more to send, or until it is to stop.
    fn run(mut self, stop: &AtomicBool) -> Self {
        let mut due = self.times.first();
        while let Some(at) = due
            && !stop.load(Ordering::Relaxed)
        {
            let now = self.clock.network();
            self.count_delivered(now);
            due = self.send_due(at, now);
            let next = due.unwrap_or(now).max(now + BATCH).min(now + LOOK_AGAIN);
            self.clock.at(next).sleep();
        }
        let drained = MonoTime::now() + DRAIN;
        loop {
            self.count_delivered(self.clock.network());
            // Where the other end is elsewhere, it is not known how much is in flight.
            let is_whole = self.sender.is_some() && self.receiver.is_some();
            let is_all = is_whole && self.total.delivered >= self.total.offered;
            if is_all || self.receiver.is_none() || MonoTime::now() > drained {
                return self;
            }
            pause(BATCH);
        }
    }

    /// Sends all that is due from `at` to `now`; returns when there is more to send.
    fn send_due(&mut self, at: NetTime, now: NetTime) -> Option<NetTime> {
        let mut due = Some(at);
        while let Some(at) = due.filter(|at| *at <= now) {
            let Some(sender) = &self.sender else {
                due = self.times.next_after(at);
                continue;
            };
            if now - at > OVERDUE {
                self.skipped += 1;
            } else {
                if self.to.is_some_and(|to| sender.connect(to).is_ok()) {
                    self.to = None;
                }
                // What the host's own stack has no room for is offered and does not come through.
                let _ = sender.send(&self.payload);
                self.total.offered += 1;
                self.bin(now).offered += 1;
            }
            due = self.times.next_after(at);
        }
        due
    }

    fn count_delivered(&mut self, now: NetTime) {
        let Some(receiver) = &self.receiver else { return };
        let refused = refused(receiver).unwrap_or(self.refused);
        let new = u64::from(refused.wrapping_sub(self.refused));
        self.refused = refused;
        if new > 0 {
            self.total.delivered += new;
            self.bin(now).delivered += new;
        }
    }

    /// The interval that `now` falls into; what was before the epoch counts in the first.
    fn bin(&mut self, now: NetTime) -> &mut Bin {
        let index = ((now - NetTime::ZERO).as_ns().max(0) / self.load_bin.as_ns()) as usize;
        if self.bins.len() <= index {
            self.bins.resize(index + 1, Bin::default());
        }
        &mut self.bins[index]
    }
}

/// What all sources did, as samples; silent intervals have theirs too.
fn load(sources: &[Source], options: NoiseOptions) -> NoiseLoad {
    let mut load = NoiseLoad::default();
    for source in sources {
        load.offered += source.total.offered;
        load.delivered += source.total.delivered;
        load.skipped += source.skipped;
    }
    let width = options.load_bin;
    let lasted = (MonoTime::now() - options.start).min(options.until - NetTime::ZERO).as_ns();
    let covered = lasted.max(0) as u64 / width.as_ns() as u64 + 1;
    let used = sources.iter().map(|s| s.bins.len()).max().unwrap_or(0);
    for bin in 0..used.max(covered as usize) {
        for source in sources {
            let frames = source.bins.get(bin).copied().unwrap_or_default();
            load.samples.push(LoadSample {
                noise: source.noise,
                at: NetTime::ZERO + width * bin as i64,
                offered_bits: frames.offered * source.frame_bits,
                delivered_bits: frames.delivered * source.frame_bits,
            });
        }
    }
    load
}

/// Attaches a filter that accepts no octet of any datagram.
fn refuse_all(socket: &UdpSocket) -> io::Result<()> {
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    let mut refuse = libc::sock_filter { code: RETURN, jt: 0, jf: 0, k: 0 };
    let program = libc::sock_fprog { len: 1, filter: &mut refuse };
    // SAFETY: the program and its one instruction are valid for the call, which copies them.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            (&raw const program).cast(),
            size_of::<libc::sock_fprog>() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// How many datagrams the kernel has dropped at a socket: SK_MEMINFO_DROPS of SO_MEMINFO.
///
/// # Errors
/// The kernel's.
pub fn refused(socket: &UdpSocket) -> io::Result<u32> {
    const DROPS: usize = 8;
    let mut figures = [0_u32; DROPS + 1];
    let mut octets = size_of_val(&figures) as libc::socklen_t;
    // SAFETY: the kernel writes at most `octets` octets to `figures`.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MEMINFO,
            figures.as_mut_ptr().cast(),
            &mut octets,
        )
    };
    if result == 0 { Ok(figures[DROPS]) } else { Err(io::Error::last_os_error()) }
}
