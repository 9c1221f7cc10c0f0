//! An interface's PTP hardware clock: how it is read (a thin layer of ioctls), and its time for
//! programs, which do not read it: a thread compares it with the system's clock all the time
//! ([`super::synchronisation`]) and publishes what follows from that.

use crate::clock::MonoTime;
use crate::interface::Interface;
use crate::interface::cross_timestamp::{Mapping, Pair};
use crate::interface::network_clock::{NS_PER_S, realtime};
use onbeat_model::time::Span;
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use std::io;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering, fence};

/// Readings per comparison, of which the one with the narrowest bracket counts.
const READINGS: u32 = 8;
/// How far the bracketing readings of CLOCK_REALTIME and CLOCK_MONOTONIC may disagree about the
/// distance of these two before it is believed that CLOCK_REALTIME was set in between.
const SET: i64 = 2_000;

/// The device of a PTP hardware clock.
#[derive(Debug)]
pub(super) struct Device {
    descriptor: OwnedFd,
    method: Method,
}

/// How far the hardware clock of an interface is ahead of CLOCK_REALTIME; `None` if it has none, or
/// that does not answer.
pub fn hardware_apart(name: &str) -> Option<Span> {
    let mut device = Device::of(&Interface::named(name).ok()?).ok()??;
    device.ahead_of_realtime().ok()
}

/// How hardware and system are compared, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    /// PTP_SYS_OFFSET_PRECISE: by the hardware itself, at one instant.
    Precise,
    /// PTP_SYS_OFFSET_EXTENDED: system readings right around the register access.
    Extended,
    /// PTP_SYS_OFFSET: system readings around the driver's call.
    Plain,
}

impl Device {
    /// Opens the clock of an interface; `None` if it has none.
    pub(super) fn of(interface: &Interface) -> io::Result<Option<Self>> {
        let Some(number) = interface.hardware_clock()? else { return Ok(None) };
        let path = format!("/dev/ptp{number}");
        let descriptor =
            rustix::fs::open(&path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
                .map_err(|error| io::Error::new(error.kind(), format!("{path}: {error}")))?;
        Ok(Some(Self { descriptor, method: Method::Precise }))
    }

    /// Compares it with CLOCK_MONOTONIC; `None` when the system's clock was set meanwhile.
    pub(super) fn sample(&mut self) -> io::Result<Option<Pair>> {
        let (before, _) = realtime_ahead();
        let pair = self.sample_realtime()?;
        let (after, width) = realtime_ahead();
        if (after - before).abs() > SET {
            return Ok(None);
        }
        let bracket = pair.bracket + width;
        Ok(Some(Pair { system: pair.system - after, bracket, ..pair }))
    }

    /// How far it is ahead of CLOCK_REALTIME.
    pub(super) fn ahead_of_realtime(&mut self) -> io::Result<Span> {
        let pair = self.sample_realtime()?;
        Ok(Span::from_ns(pair.hardware - pair.system))
    }

    /// Compares it with CLOCK_REALTIME.
    fn sample_realtime(&mut self) -> io::Result<Pair> {
        loop {
            let tried = match self.method {
                Method::Precise => self.precise(),
                Method::Extended => self.extended(),
                Method::Plain => self.plain(),
            };
            let next = match self.method {
                Method::Precise => Method::Extended,
                Method::Extended => Method::Plain,
                Method::Plain => return tried,
            };
            match tried.as_ref().map_err(io::Error::raw_os_error) {
                Err(Some(libc::EOPNOTSUPP | libc::ENOTTY | libc::EINVAL)) => self.method = next,
                _ => return tried,
            }
        }
    }

    fn precise(&self) -> io::Result<Pair> {
        // SAFETY: all zeros is a valid request.
        let mut request: libc::ptp_sys_offset_precise = unsafe { std::mem::zeroed() };
        self.ask(libc::PTP_SYS_OFFSET_PRECISE, &mut request)?;
        let (system, hardware) = (ns(&request.sys_realtime), ns(&request.device));
        Ok(Pair { system, hardware, bracket: 0 })
    }

    fn extended(&self) -> io::Result<Pair> {
        // SAFETY: all zeros is a valid request: the samples are of CLOCK_REALTIME, number 0.
        let mut request: libc::ptp_sys_offset_extended = unsafe { std::mem::zeroed() };
        request.n_samples = READINGS;
        self.ask(libc::PTP_SYS_OFFSET_EXTENDED, &mut request)?;
        let triples = request.ts.iter().take(READINGS as usize);
        narrowest(triples.map(|[before, device, after]| (ns(before), ns(device), ns(after))))
    }

    fn plain(&self) -> io::Result<Pair> {
        // SAFETY: all zeros is a valid request.
        let mut request: libc::ptp_sys_offset = unsafe { std::mem::zeroed() };
        request.n_samples = READINGS;
        self.ask(libc::PTP_SYS_OFFSET, &mut request)?;
        // System, device, system, device, …, system.
        let readings = &request.ts[..2 * READINGS as usize + 1];
        let triples = readings.windows(3).step_by(2);
        narrowest(triples.map(|t| (ns(&t[0]), ns(&t[1]), ns(&t[2]))))
    }

    fn ask<T>(&self, what: libc::Ioctl, request: &mut T) -> io::Result<()> {
        let fd = self.descriptor.as_raw_fd();
        // SAFETY: each of the calls above names the structure that its request reads and fills.
        let got = unsafe { libc::ioctl(fd, what, std::ptr::from_mut(request)) };
        if got < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

fn ns(time: &libc::ptp_clock_time) -> i64 {
    time.sec.saturating_mul(NS_PER_S).saturating_add(time.nsec.into())
}

/// Of readings of the system's clock, the hardware's and the system's again, those that are
/// closest together.
fn narrowest(triples: impl Iterator<Item = (i64, i64, i64)>) -> io::Result<Pair> {
    let pairs =
        triples.filter(|(before, _, after)| before <= after).map(|(before, device, after)| {
            let bracket = after - before;
            Pair { system: before + bracket / 2, hardware: device, bracket }
        });
    pairs.min_by_key(|pair| pair.bracket).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// How far CLOCK_REALTIME is ahead of CLOCK_MONOTONIC, and between how distant readings that was
/// found. Both go at the same rate; only setting the clock changes it.
fn realtime_ahead() -> (i64, i64) {
    let look = |_| {
        let before = MonoTime::now();
        let real = realtime();
        let width = (MonoTime::now() - before).as_ns();
        (real - before.as_ns() - width / 2, width)
    };
    (0..READINGS).map(look).min_by_key(|(_, width)| *width).unwrap_or((0, i64::MAX))
}

/// The hardware's time without asking it.
#[derive(Debug, Default)]
pub(super) struct Published {
    /// How many mappings were published; the latest is in the slot with its parity.
    count: AtomicU64,
    slots: [[AtomicI64; 4]; 2],
}

impl Published {
    /// Replaces the mapping. Only one thread may call this.
    pub(super) fn publish(&self, mapping: Mapping) {
        let next = self.count.load(Ordering::Relaxed).wrapping_add(1);
        // Whoever sees one of the words below sees that the slot's last mapping is outdated.
        fence(Ordering::Release);
        let Mapping { system, hardware, before, after } = mapping;
        for (to, word) in self.slot(next).iter().zip([system, hardware, before, after]) {
            to.store(word, Ordering::Relaxed);
        }
        self.count.store(next, Ordering::Release);
    }

    fn slot(&self, count: u64) -> &[AtomicI64; 4] {
        &self.slots[usize::from(count & 1 == 1)]
    }

    /// What the hardware's clock reads now.
    pub(super) fn now(&self) -> i64 {
        self.look(|mapping| mapping.read(MonoTime::now().as_ns()))
    }

    /// When, on the system's clock, the hardware's reads `reading`.
    pub(super) fn when(&self, reading: i64) -> MonoTime {
        self.look(|mapping| MonoTime::from_ns(mapping.when(reading)))
    }

    /// Looks at the latest mapping. Real-time: bounded, as mappings come ten times a second and a
    /// writer that is held up holds up no reader; no lock, allocates nothing.
    fn look<T>(&self, look: impl Fn(&Mapping) -> T) -> T {
        loop {
            let count = self.count.load(Ordering::Acquire);
            let [system, hardware, before, after] =
                self.slot(count).each_ref().map(|word| word.load(Ordering::Relaxed));
            let seen = look(&Mapping { system, hardware, before, after });
            fence(Ordering::Acquire);
            if self.count.load(Ordering::Relaxed) == count {
                return seen;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_never_sees_parts_of_two_mappings() {
        let published = Published::default();
        let mapping = |n: i64| Mapping { system: n, hardware: n, before: n, after: n };
        std::thread::scope(|scope| {
            scope.spawn(|| (1..=20_000).for_each(|n| published.publish(mapping(n))));
            let mut last = 0;
            while last < 20_000 {
                let seen = published.look(|mapping| *mapping);
                assert_eq!(seen, mapping(seen.system));
                assert!(seen.system >= last, "an older one");
                last = seen.system;
            }
        });
    }

    #[test]
    fn of_several_readings_the_one_with_the_narrowest_bracket_counts() {
        let triples = [(0, 1_000, 900), (1_000, 2_051, 1_100), (5_000, 7_000, 4_000)];
        let pair = narrowest(triples.into_iter()).expect("two good ones");
        assert_eq!(pair, Pair { system: 1_050, hardware: 2_051, bracket: 100 });
        assert!(narrowest([(2, 2, 1)].into_iter()).is_err(), "the clock was set back");
    }

    #[test]
    fn the_system_clocks_distance_is_stable_to_within_its_brackets() {
        let ((first, width), (second, other)) = (realtime_ahead(), realtime_ahead());
        assert!((first - second).abs() <= width + other + SET, "{first} {second}");
    }

    #[test]
    fn an_interface_without_a_hardware_clock_has_no_device() {
        let loopback = Interface::named("lo").expect("every namespace has it");
        assert!(Device::of(&loopback).expect("an answer").is_none());
    }
}
