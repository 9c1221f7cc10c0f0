//! What only system calls tell. Only this machine can be asked; another one's are in a file.

use super::facts::Fact;
use super::nic::Interface;
use super::qdiscs::{self, Qdisc, Tried};
use super::{stalls, time};
use onbeat::clock::MonoTime;
use onbeat::interface::ask_ptp4l;
use rustix::time::{ClockId, clock_getres};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::Path;

/// Where ptp4l listens unless it is told otherwise.
const PTP4L: &str = "/var/run/ptp4l";
/// Readings of the clock in one batch, and how many batches: the best one counts.
const READINGS: i64 = 1_000;
const BATCHES: usize = 5;

/// What only system calls tell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Calls {
    /// Which parts of the network stack the kernel has.
    pub tried: Tried,
    /// What reading CLOCK_MONOTONIC takes, in ns.
    pub reading_ns: i64,
    /// The resolution of its timers, in ns.
    pub resolution_ns: i64,
    /// The longest time for which no core ran, in ns.
    pub stall_ns: Fact<i64>,
    /// For how long that was watched, in ms.
    pub watched_ms: i64,
    /// What the kernel says of its clock.
    pub kernel_clock: Fact<KernelClock>,
    /// What ptp4l says of its own.
    pub ptp4l: Fact<Ptp4l>,
    /// The network interfaces, but for the loopback.
    pub interfaces: Vec<Interface>,
    /// Their queueing disciplines.
    pub qdiscs: Fact<Vec<Qdisc>>,
}

/// What adjtimex(2) says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelClock {
    /// CLOCK_TAI less CLOCK_REALTIME.
    pub tai_offset_s: i64,
    /// Whether the kernel counts the clock as not synchronised.
    pub unsynchronised: bool,
}

/// What ptp4l says on its management socket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ptp4l {
    /// Its port's state, as `SLAVE`.
    pub state: String,
    /// How far its clock is ahead of its master's.
    pub offset_ns: i64,
    /// Whether another clock is the network's grandmaster.
    pub has_grandmaster: bool,
}

impl Calls {
    /// Asks this machine.
    pub(super) fn ask(daemons: &time::Daemons) -> Self {
        let (stall_ns, watched_ms) = stalls::watch();
        Self {
            tried: qdiscs::tried(),
            reading_ns: reading(),
            resolution_ns: clock_getres(ClockId::Monotonic).tv_nsec,
            stall_ns,
            watched_ms,
            kernel_clock: Fact::of("the kernel's clock", kernel_clock()),
            ptp4l: ptp4l(daemons),
            interfaces: Interface::all(),
            qdiscs: Fact::of("rtnetlink", qdiscs::all()),
        }
    }
}

fn reading() -> i64 {
    let batch = |_| {
        let start = MonoTime::now();
        for _ in 1..READINGS {
            std::hint::black_box(MonoTime::now());
        }
        (MonoTime::now() - start).as_ns() / READINGS
    };
    (0..BATCHES).map(batch).min().unwrap_or(0)
}

fn kernel_clock() -> io::Result<KernelClock> {
    // SAFETY: all zeros is a valid request: it changes nothing.
    let mut answer: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel fills in the structure.
    let state = unsafe { libc::adjtimex(&raw mut answer) };
    if state < 0 {
        return Err(io::Error::last_os_error());
    }
    let unsynchronised = state == libc::TIME_ERROR || answer.status & libc::STA_UNSYNC != 0;
    Ok(KernelClock { tai_offset_s: answer.tai.into(), unsynchronised })
}

fn ptp4l(daemons: &time::Daemons) -> Fact<Ptp4l> {
    let setting = |name| daemons.setting("ptp4l", name);
    let path = setting("uds_address").unwrap_or(PTP4L);
    let domain = setting("domainNumber").and_then(|number| number.parse().ok()).unwrap_or(0);
    let asked = ask_ptp4l(Path::new(path), domain);
    Fact::of(path, asked).map(|status| Ptp4l {
        state: status.state.to_string(),
        offset_ns: status.offset.as_ns(),
        has_grandmaster: status.has_grandmaster,
    })
}
