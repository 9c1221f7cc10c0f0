//! The binary record file: all that one run recorded, version 2 to 7.
//!
//! Integers are little-endian. A text is its length in octets (u32) and that much UTF-8.
//!
//! 1. magic: the eight octets `onbeat\0\n`; version: u32, 2 to 7
//! 2. settings: scenario (text), seed (u64), time (u8: 0 virtual, 1 real), duration (i64 ns),
//!    protected (u8: 0, 1)
//! 3. network: u8: 0 emulated; 1 namespaces, then the transport (u8: 0 packet, 1 xdp, 2 udp4,
//!    3 udp6); 2 an interface, then the transport, the host (u32), the interface's name (text), and
//!    what the network clock read at the run's zero (i64 ns); 3 interfaces of several hosts, whose
//!    parts were joined: how many (u32), transport, host and name of each, and the same of the
//!    clock; 4 the same, of one host or more, with whether each part was cut off (u8: 0, 1) and by
//!    how much its clock was ahead (u8: 0 unknown; 1, then at least and at most, i64 ns each); 5
//!    the same, each part with what was set on its machine (u8: 0 nothing; 1, then a text)
//! 4. ending: u8: 0 complete; 1 early, then when (i64 ns) and why (text)
//! 5. lag: u8: 0 none; 1, then by how much at most (i64 ns)
//! 6. ends: how many (u32); each: channel (u32), role (u8: 0 talker, 1 listener), node (u32),
//!    unrecorded (u64), malformed (u64), how many records (u64), the records
//! 7. load: how many samples (u64); each: noise source (u32), start (i64 ns), bits offered (u64),
//!    bits delivered (u64)
//!
//! 8. from version 3, clocks that gPTP steered: how many (u32); each: node (u32), the error that
//!    the plan counts with (i64 ns), the errors before, during and after faults (each u8: 0 none;
//!    1, then against true time and against the grandmaster's clock, i64 ns each), the first fault
//!    (u8; 1, then i64 ns), when beyond the plan (u8; 1, then the first and the last time, i64 ns
//!    each), whether still (u8), whose time (u8; 1, then u32), how many samples (u32); each: when
//!    (i64 ns), by how much ahead (i64 ns), whose time (u8; 1, then u32)
//!
//! 9. from version 4, messages over TCP: how many flows (u32); each: unrecorded, segments, of these
//!    retransmitted, timeouts, fast retransmits, acknowledgements (u64 each), whether the
//!    connection was given up (u8), how many messages (u64); each: tag, capture, receipt, handling
//!    (i64 ns each, the least if it was not)
//!
//! 10. version 5 only, reservations by protocol: when programs began (u8: 0 never; 1, then i64 ns),
//!     how many channels (u32); each: channel (u32), how it stood at the talker (u8: 0 advertised,
//!     1 ready, 2 ready-failed, 3 asking-failed), the worst case (u8; 1, then i64 ns), how often it
//!     was lost (u32), whether it was complete (u8), how many listeners (u32); each: how it stood
//!     (u8: 0 no talker, 1 advertised, 2 ready; 3 failed, then the code, and the node (u8; 1, then
//!     u32)), when it was ready (u8; 1, then i64 ns)
//!
//! 11. from version 6, stations that carried the channels: collisions and waits (in version 6 u64
//!     each; later each u8: 0 unknown; 1, then u64), how many stations (u32); each: node
//!     (u32), rounds, frames sent and received, messages unsent, timeouts, overruns, beginnings of
//!     rounds discarded (u64 each), whether it has stopped (u8); from version 7, frames missed,
//!     late and refused (u64 each), slot errors (u8: 0 unknown; 1, then p50, p99 and the largest,
//!     i64 ns each)
//!
//! A record is [`Record::SIZE`] octets, see [`Record::to_bytes`]. Nothing follows the last
//! part. A file is of version 7 if stations carried the channels, and has no part 10 then; else of
//! version 5 if it has reservations by protocol, else of version 4 if it has messages over TCP,
//! else of version 3 if a clock was steered, else of version 2.
//!
//! A file of version 1 has no part 3; it is read as one of the emulated network.
//!
//! A *recording* is what a run leaves that is cut off: such files one after the other, each behind
//! its length (u64), each with what the ends recorded, and what was measured of clocks, since the
//! one before.

mod recorded_clocks;
mod recorded_reservations;
mod recorded_stations;
mod recorded_tcp;

use onbeat_model::name::is_name;
use onbeat_model::record::{
    Carrier, ClockAhead, Ending, EndpointLog, InterfacePart, LoadSample, Record, Role, RunLog,
    TimeErrorSample,
};
use onbeat_model::system::{ChannelId, NodeId, NoiseId, TimeMode, TransportKind};
use onbeat_model::time::{NetTime, Span};
use sha2::{Digest, Sha256};

const MAGIC: &[u8; 8] = b"onbeat\0\n";
const VERSION: u32 = 7;
/// The version without what stations count on networks of the kernel.
const WITHOUT_SLOT_ERRORS: u32 = 6;
/// The version without stations that carried the channels.
const WITHOUT_STATIONS: u32 = 5;
/// The version without reservations by protocol.
const WITHOUT_RESERVATIONS: u32 = 4;
/// The version without messages over TCP.
const WITHOUT_TCP: u32 = 3;
/// The version without clocks that are steered.
const WITHOUT_CLOCKS: u32 = 2;
/// The version before files said which network it was.
const WITHOUT_NETWORK: u32 = 1;
/// The transports in the order of their numbers.
const TRANSPORTS: [TransportKind; 4] =
    [TransportKind::Packet, TransportKind::Xdp, TransportKind::Udp4, TransportKind::Udp6];
/// The fewest octets that one end takes in the file, and what one sample takes: no count that the
/// rest of the file cannot hold is believed.
const END_MIN: usize = 4 + 1 + 4 + 8 + 8 + 8;
const SAMPLE: usize = 4 + 8 + 8 + 8;
/// The fewest octets of a host's interface.
const PART_MIN: usize = 1 + 4 + 4;
/// The octets of what was measured of a clock at an instant, and what stands for nothing there.
const TIME_ERROR: usize = 3 * 8;
const UNMEASURED: i64 = i64::MIN;

/// Why octets are not a record file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// It starts with something else.
    #[error("not an Onbeat record file")]
    Magic,
    /// Another version of Onbeat wrote it.
    #[error("a record file of version {0}; this Onbeat reads {WITHOUT_NETWORK} to {VERSION}")]
    Version(u32),
    /// It ends in the middle, or claims to hold more than there is.
    #[error("the record file is cut off")]
    Truncated,
    /// A field holds a value that it cannot have.
    #[error("the record file is damaged: {0} has an impossible value")]
    Value(&'static str),
    /// Something follows the last sample.
    #[error("the record file is damaged: {0} octets follow its end")]
    Trailing(usize),
}

/// The record file of a run.
pub fn encode(log: &RunLog) -> Vec<u8> {
    let records: usize = log.ends.iter().map(|e| END_MIN + e.records.len() * Record::SIZE).sum();
    let mut out = Vec::with_capacity(128 + records + log.load.len() * SAMPLE);
    out.extend(MAGIC);
    let version = match () {
        () if log.stations.is_some() => VERSION,
        () if log.reservations.is_some() => WITHOUT_STATIONS,
        () if !log.tcp.is_empty() => WITHOUT_RESERVATIONS,
        () if !log.clocks.is_empty() => WITHOUT_TCP,
        () => WITHOUT_CLOCKS,
    };
    out.extend(version.to_le_bytes());
    put_text(&mut out, &log.scenario);
    out.extend(log.seed.to_le_bytes());
    out.push(u8::from(log.time == TimeMode::Real));
    out.extend(log.duration.as_ns().to_le_bytes());
    out.push(u8::from(log.protected));
    put_network(&mut out, &log.network);
    match &log.ending {
        Ending::Complete => out.push(0),
        Ending::Early { at, reason } => {
            out.push(1);
            out.extend(at.as_ns().to_le_bytes());
            put_text(&mut out, reason);
        }
    }
    out.push(u8::from(log.lag_max.is_some()));
    out.extend(log.lag_max.iter().flat_map(|lag| lag.as_ns().to_le_bytes()));
    put_ends(&mut |octets| out.extend_from_slice(octets), &log.ends);
    out.extend((log.load.len() as u64).to_le_bytes());
    for sample in &log.load {
        out.extend(sample.noise.0.to_le_bytes());
        out.extend(sample.at.as_ns().to_le_bytes());
        out.extend(sample.offered_bits.to_le_bytes());
        out.extend(sample.delivered_bits.to_le_bytes());
    }
    if version >= WITHOUT_TCP {
        recorded_clocks::put(&mut out, &log.clocks);
    }
    if version >= WITHOUT_RESERVATIONS {
        recorded_tcp::put(&mut |octets| out.extend_from_slice(octets), &log.tcp);
    }
    if let Some(stations) = &log.stations {
        recorded_stations::put(&mut |octets| out.extend_from_slice(octets), stations);
    } else if let Some(reservations) = &log.reservations {
        recorded_reservations::put(&mut |octets| out.extend_from_slice(octets), reservations);
    }
    out
}

/// Reads back what [`encode`] wrote.
///
/// # Errors
/// When `file` is anything else. It may be anything: memory is only taken for what is there.
pub fn decode(file: &[u8]) -> Result<RunLog, Error> {
    let mut input = Input(file);
    if input.octets().ok() != Some(*MAGIC) {
        return Err(Error::Magic);
    }
    let version = input.u32()?;
    if !(WITHOUT_NETWORK..=VERSION).contains(&version) {
        return Err(Error::Version(version));
    }
    // Fields are read in the order of the file.
    let log = RunLog {
        scenario: input.scenario()?,
        seed: input.u64()?,
        time: if input.flag("the time")? { TimeMode::Real } else { TimeMode::Virtual },
        duration: Span::from_ns(input.i64()?),
        protected: input.flag("the protection")?,
        network: match version {
            WITHOUT_NETWORK => Carrier::Emulated,
            _ => input.network()?,
        },
        ending: if input.flag("the ending")? {
            let at = NetTime::from_ns(input.i64()?);
            Ending::Early { at, reason: input.text("the ending")? }
        } else {
            Ending::Complete
        },
        lag_max: match input.flag("the lag")? {
            true => Some(Span::from_ns(input.i64()?)),
            false => None,
        },
        ends: input.ends()?,
        load: input.load()?,
        clocks: match version {
            WITHOUT_RESERVATIONS..=VERSION => input.clocks(true)?,
            WITHOUT_TCP => input.clocks(false)?,
            _ => Vec::new(),
        },
        tcp: match version {
            WITHOUT_STATIONS..=VERSION => input.tcp(true)?,
            WITHOUT_RESERVATIONS => input.tcp(false)?,
            _ => Vec::new(),
        },
        reservations: match version {
            WITHOUT_STATIONS => Some(input.reservations()?),
            _ => None,
        },
        stations: match version {
            WITHOUT_SLOT_ERRORS | VERSION => Some(input.stations(version == VERSION)?),
            _ => None,
        },
    };
    if input.0.is_empty() { Ok(log) } else { Err(Error::Trailing(input.0.len())) }
}

/// A part of a recording.
pub fn recording_part(log: &RunLog) -> Vec<u8> {
    let file = encode(log);
    let mut part = (file.len() as u64).to_le_bytes().to_vec();
    part.extend(file);
    part
}

/// The runs of a recording, as far as it goes: a last part that is cut off is left out.
///
/// # Errors
/// When it has no part, or one is no record file.
pub fn recover(recording: &[u8]) -> Result<Vec<RunLog>, Error> {
    let mut runs: Vec<RunLog> = Vec::new();
    let mut input = Input(recording);
    while let Ok(length) = input.u64()
        && let Ok(length) = usize::try_from(length)
        && let Ok(part) = input.take(length)
    {
        let next = decode(part)?;
        match runs.last_mut().filter(|run| is_continued(run, &next)) {
            None => runs.push(next),
            Some(run) => {
                run.ending = next.ending;
                run.stations = next.stations;
                add_time_errors(&mut run.network, next.network);
                for (end, more) in run.ends.iter_mut().zip(next.ends) {
                    end.records.extend(more.records);
                }
            }
        }
    }
    if runs.is_empty() { Err(Error::Truncated) } else { Ok(runs) }
}

/// Whether a part is of the same run.
fn is_continued(run: &RunLog, next: &RunLog) -> bool {
    let ends = |log: &RunLog| -> Vec<_> {
        log.ends.iter().map(|end| (end.channel, end.role, end.node)).collect()
    };
    let settings = |log: &RunLog| (log.scenario.clone(), log.seed, log.time, log.duration);
    settings(run) == settings(next)
        && is_same_network(&run.network, &next.network)
        && ends(run) == ends(next)
}

/// The same but for what was measured of clocks meanwhile.
fn is_same_network(one: &Carrier, other: &Carrier) -> bool {
    let (
        Carrier::Interfaces { parts, epoch_ns },
        Carrier::Interfaces { parts: others, epoch_ns: start },
    ) = (one, other)
    else {
        return one == other;
    };
    let key = |part: &InterfacePart| {
        let InterfacePart { transport, host, name, cut_off, ahead, tuned, .. } = part;
        (*transport, *host, name.clone(), *cut_off, *ahead, tuned.clone())
    };
    epoch_ns == start && parts.iter().map(key).eq(others.iter().map(key))
}

/// Adds what was measured of clocks since; what is not later was measured before.
fn add_time_errors(network: &mut Carrier, more: Carrier) {
    if let (Carrier::Interfaces { parts, .. }, Carrier::Interfaces { parts: more, .. }) =
        (network, more)
    {
        for (part, more) in parts.iter_mut().zip(more) {
            let last = part.time_errors.last().map(|sample| sample.at);
            let new = more.time_errors.into_iter().filter(|new| last.is_none_or(|at| new.at > at));
            part.time_errors.extend(new);
        }
    }
}

/// SHA-256, in hexadecimal, over what the run's ends recorded, messages over TCP, reservations,
/// what stations counted, and when it ended, in the order and form of the record file. Settings,
/// load samples, the reason of an early end and everything of the machine that ran it are left out.
pub fn record_hash(log: &RunLog) -> String {
    let mut hash = Sha256::new();
    put_ends(&mut |octets| hash.update(octets), &log.ends);
    if !log.tcp.is_empty() {
        recorded_tcp::put(&mut |octets| hash.update(octets), &log.tcp);
    }
    if let Some(reservations) = &log.reservations {
        recorded_reservations::put(&mut |octets| hash.update(octets), reservations);
    }
    if let Some(stations) = &log.stations {
        recorded_stations::put(&mut |octets| hash.update(octets), stations);
    }
    match &log.ending {
        Ending::Complete => hash.update([0]),
        Ending::Early { at, .. } => {
            hash.update([1]);
            hash.update(at.as_ns().to_le_bytes());
        }
    }
    hash.finalize().iter().map(|octet| format!("{octet:02x}")).collect()
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    let length = u32::try_from(text.len()).expect("a name or a reason is shorter than 4 GiB");
    out.extend(length.to_le_bytes());
    out.extend(text.as_bytes());
}

fn put_network(out: &mut Vec<u8>, network: &Carrier) {
    let number = |kind: &TransportKind| {
        TRANSPORTS.iter().position(|t| t == kind).expect("all are in the list") as u8
    };
    match network {
        Carrier::Emulated => out.push(0),
        Carrier::Namespaces { transport } => out.extend([1, number(transport)]),
        Carrier::Interfaces { parts, epoch_ns } => {
            let has_errors = parts.iter().any(|part| !part.time_errors.is_empty());
            let is_tuned = has_errors || parts.iter().any(|part| part.tuned.is_some());
            let has_more = parts.iter().any(|part| part.cut_off || part.ahead.is_some());
            let count = u32::try_from(parts.len()).expect("a system has fewer");
            match (is_tuned, has_more, count) {
                (false, false, 1) => out.push(2),
                _ => {
                    out.push(match (has_errors, is_tuned) {
                        (true, _) => 6,
                        (false, true) => 5,
                        (false, false) => 3 + u8::from(has_more),
                    });
                    out.extend(count.to_le_bytes());
                }
            }
            for part in parts {
                let InterfacePart { transport, host, name, cut_off, ahead, tuned, .. } = part;
                out.push(number(transport));
                out.extend(host.0.to_le_bytes());
                put_text(out, name);
                if has_more || is_tuned {
                    out.extend([u8::from(*cut_off), u8::from(ahead.is_some())]);
                    for span in ahead.iter().flat_map(|ahead| [ahead.least, ahead.most]) {
                        out.extend(span.as_ns().to_le_bytes());
                    }
                }
                if is_tuned {
                    out.push(u8::from(tuned.is_some()));
                    tuned.iter().for_each(|tuned| put_text(out, tuned));
                }
                if has_errors {
                    put_time_errors(out, &part.time_errors);
                }
            }
            out.extend(epoch_ns.to_le_bytes());
        }
    }
}

fn put_time_errors(out: &mut Vec<u8>, samples: &[TimeErrorSample]) {
    out.extend((samples.len() as u64).to_le_bytes());
    for TimeErrorSample { at, ptp4l, phc2sys } in samples {
        out.extend(at.as_ns().to_le_bytes());
        for span in [ptp4l, phc2sys] {
            out.extend(span.map_or(UNMEASURED, Span::as_ns).to_le_bytes());
        }
    }
}

fn put_ends(put: &mut impl FnMut(&[u8]), ends: &[EndpointLog]) {
    put(&u32::try_from(ends.len()).expect("a system has fewer ends").to_le_bytes());
    for end in ends {
        put(&end.channel.0.to_le_bytes());
        put(&[u8::from(end.role == Role::Listener)]);
        put(&end.node.0.to_le_bytes());
        put(&end.unrecorded.to_le_bytes());
        put(&end.malformed.to_le_bytes());
        put(&(end.records.len() as u64).to_le_bytes());
        for record in &end.records {
            put(&record.to_bytes());
        }
    }
}

/// What is left of a file.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], Error> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(Error::Truncated)?;
        self.0 = rest;
        Ok(taken)
    }
    fn octets<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(Error::Truncated)?;
        self.0 = rest;
        Ok(*taken)
    }
    fn u32(&mut self) -> Result<u32, Error> {
        self.octets().map(u32::from_le_bytes)
    }
    fn u64(&mut self) -> Result<u64, Error> {
        self.octets().map(u64::from_le_bytes)
    }
    fn i64(&mut self) -> Result<i64, Error> {
        self.octets().map(i64::from_le_bytes)
    }
    fn flag(&mut self, what: &'static str) -> Result<bool, Error> {
        match self.octets()? {
            [0] => Ok(false),
            [1] => Ok(true),
            _ => Err(Error::Value(what)),
        }
    }
    fn text(&mut self, what: &'static str) -> Result<String, Error> {
        let length = self.u32()? as usize;
        let text = std::str::from_utf8(self.take(length)?).map_err(|_| Error::Value(what))?;
        Ok(text.to_owned())
    }
    /// A name, or nothing: it becomes a part of paths.
    fn scenario(&mut self) -> Result<String, Error> {
        let what = "the scenario";
        let name = self.text(what)?;
        if name.is_empty() || is_name(&name) { Ok(name) } else { Err(Error::Value(what)) }
    }
    /// The name of an interface, as the kernel allows it (`dev_valid_name`), in letters that show.
    fn interface(&mut self) -> Result<String, Error> {
        let what = "the interface";
        let name = self.text(what)?;
        let is_fine = |c: char| c.is_ascii_graphic() && c != '/' && c != ':';
        let is_known = name.chars().all(is_fine) && !name.is_empty() && name.len() < 16;
        if is_known && name != "." && name != ".." { Ok(name) } else { Err(Error::Value(what)) }
    }
    fn transport(&mut self) -> Result<TransportKind, Error> {
        let [number] = self.octets()?;
        TRANSPORTS.get(usize::from(number)).copied().ok_or(Error::Value("the transport"))
    }
    fn network(&mut self) -> Result<Carrier, Error> {
        match self.octets()? {
            [0] => Ok(Carrier::Emulated),
            [1] => Ok(Carrier::Namespaces { transport: self.transport()? }),
            [2] => Ok(Carrier::Interfaces { parts: vec![self.part()?], epoch_ns: self.i64()? }),
            [kind @ 3..=6] => {
                let count = self.u32()?;
                let count = self.count(count.into(), PART_MIN)?;
                let part = |_| match kind {
                    3 => self.part(),
                    4 => self.whole_part(),
                    5 => self.tuned_part(),
                    _ => self.measured_part(),
                };
                let parts = (0..count).map(part).collect::<Result<Vec<_>, _>>()?;
                let is_sorted = parts.is_sorted_by(|a, b| a.host < b.host);
                if count < 2 && kind == 3 || count == 0 || !is_sorted {
                    return Err(Error::Value("the hosts of the network"));
                }
                Ok(Carrier::Interfaces { parts, epoch_ns: self.i64()? })
            }
            _ => Err(Error::Value("the network")),
        }
    }
    fn part(&mut self) -> Result<InterfacePart, Error> {
        Ok(InterfacePart {
            transport: self.transport()?,
            host: NodeId(self.u32()?),
            name: self.interface()?,
            cut_off: false,
            ahead: None,
            tuned: None,
            time_errors: Vec::new(),
        })
    }
    fn measured_part(&mut self) -> Result<InterfacePart, Error> {
        let part = self.tuned_part()?;
        let count = self.u64()?;
        let mut time_errors = Vec::with_capacity(self.count(count, TIME_ERROR)?);
        for _ in 0..count {
            let at = NetTime::from_ns(self.i64()?);
            let [ptp4l, phc2sys] = [self.i64()?, self.i64()?]
                .map(|ns| Some(Span::from_ns(ns)).filter(|_| ns != UNMEASURED));
            time_errors.push(TimeErrorSample { at, ptp4l, phc2sys });
        }
        match time_errors.is_sorted_by_key(|sample| sample.at) {
            true => Ok(InterfacePart { time_errors, ..part }),
            false => Err(Error::Value("the order of what was measured of a clock")),
        }
    }
    fn tuned_part(&mut self) -> Result<InterfacePart, Error> {
        let part = self.whole_part()?;
        let what = "what was set on a machine";
        let tuned = match self.flag(what)? {
            false => None,
            true => Some(self.text(what)?),
        };
        if tuned.as_ref().is_some_and(|tuned| tuned.contains(char::is_control)) {
            return Err(Error::Value(what));
        }
        Ok(InterfacePart { tuned, ..part })
    }
    fn whole_part(&mut self) -> Result<InterfacePart, Error> {
        let part = self.part()?;
        let cut_off = self.flag("whether a part was cut off")?;
        let ahead = match self.flag("whether a clock is known")? {
            false => None,
            true => {
                let (least, most) = (Span::from_ns(self.i64()?), Span::from_ns(self.i64()?));
                if least > most {
                    return Err(Error::Value("by how much a clock was ahead"));
                }
                Some(ClockAhead { least, most })
            }
        };
        Ok(InterfacePart { cut_off, ahead, ..part })
    }
    /// A count of things that each take `size` octets or more, all of which must be there.
    fn count(&self, count: u64, size: usize) -> Result<usize, Error> {
        let count = usize::try_from(count).map_err(|_| Error::Truncated)?;
        let needed = count.checked_mul(size).ok_or(Error::Truncated)?;
        if needed <= self.0.len() { Ok(count) } else { Err(Error::Truncated) }
    }
    fn ends(&mut self) -> Result<Vec<EndpointLog>, Error> {
        let count = self.u32()?;
        let count = self.count(count.into(), END_MIN)?;
        (0..count).map(|_| self.end()).collect()
    }
    fn end(&mut self) -> Result<EndpointLog, Error> {
        let channel = ChannelId(self.u32()?);
        let role = if self.flag("the role of an end")? { Role::Listener } else { Role::Talker };
        let node = NodeId(self.u32()?);
        let (unrecorded, malformed, count) = (self.u64()?, self.u64()?, self.u64()?);
        let count = self.count(count, Record::SIZE)?;
        let (chunks, _) = self.take(count * Record::SIZE)?.as_chunks();
        let records = chunks.iter().map(Record::from_bytes).collect();
        Ok(EndpointLog { channel, role, node, records, unrecorded, malformed })
    }
    fn load(&mut self) -> Result<Vec<LoadSample>, Error> {
        let count = self.u64()?;
        let count = self.count(count, SAMPLE)?;
        let mut sample = || {
            Ok(LoadSample {
                noise: NoiseId(self.u32()?),
                at: NetTime::from_ns(self.i64()?),
                offered_bits: self.u64()?,
                delivered_bits: self.u64()?,
            })
        };
        (0..count).map(|_| sample()).collect()
    }
}
