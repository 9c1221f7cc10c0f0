//! Runs as a trace for Perfetto and `trace_processor`: the JSON Trace Event Format.

use onbeat_measure::Mismatch;
use onbeat_measure::join::{self, Joined, JoinedListener, Message};
use onbeat_measure::tcp;
use onbeat_model::record::{Record, RunLog, flag};
use onbeat_model::system::{ChannelId, NodeId, NodeKind, System};
use onbeat_model::tcp::{TcpFlow, TcpMessage};
use onbeat_model::time::SyncedTime;
use serde::Serialize;
use std::collections::HashMap;
use std::fmt;
use std::io::{self, Write};

/// What a trace begins with.
pub const TRACE_START: &str = r#"{"displayTimeUnit":"ns","traceEvents":["#;

/// The category of events that name tracks.
const METADATA: &str = "__metadata";

/// The most tracks of an end. Slices of one track do not overlap, so an end has as many as it has
/// messages at a time. What finds no track is shown as an instant.
const TRACKS_MAX: usize = 64;

/// Writes the messages of runs as a trace. Each host is a process, each end of a channel a thread
/// of it. An arrow leads from each write to each receipt. Messages over TCP have ends of their own,
/// and noise has counters. The runs are beside each other, and each begins at zero.
///
/// A record of which the network time is known is shown at that time, others by the clock of their
/// end. Of a record, the log knows the network time of the last instant. The others are as long
/// before it as they are by the clock of the end. A time that is not known is left out.
///
/// # Errors
/// [`io::ErrorKind::InvalidData`] around [`Mismatch`] when a log is of another system; whatever
/// `out` reports.
pub fn perfetto<'a>(
    system: &System,
    logs: impl IntoIterator<Item = &'a RunLog>,
    out: &mut impl Write,
) -> io::Result<()> {
    let mut trace = Trace { out, events: 0, tracks: 0, arrows: 0 };
    trace.out.write_all(TRACE_START.as_bytes())?;
    for log in logs {
        if !join::ends_fit(system, log) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, Mismatch));
        }
        let hosts = trace.hosts(system, log)?;
        for (id, channel) in (0..).map(ChannelId).zip(&system.channels) {
            trace.channel(system, &hosts, &channel.name, &join::channel(log, id))?;
        }
        for (flow, seen) in system.tcp.iter().zip(&log.tcp) {
            trace.tcp(&hosts, flow, &seen.messages)?;
        }
        for sample in &log.load {
            let Some(noise) = system.noise.get(sample.noise.index()) else { continue };
            let track = Track::of_process(hosts[noise.from.index()]);
            let load =
                Load { offered_bits: sample.offered_bits, delivered_bits: sample.delivered_bits };
            trace.event("C", ("noise", &noise.name), track, sample.at.as_ns(), "", &load)?;
        }
    }
    trace.out.write_all(b"\n]}\n")
}

/// Nanoseconds as the microseconds of the format, with all digits.
struct Micros(i64);

impl fmt::Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sign, ns) = (if self.0 < 0 { "-" } else { "" }, self.0.unsigned_abs());
        write!(f, "{sign}{}.{:03}", ns / 1_000, ns % 1_000)
    }
}

/// Where an event is shown. No two processes or threads of a trace have the same number.
#[derive(Clone, Copy)]
struct Track {
    process: u64,
    thread: u64,
}

impl Track {
    /// Where events of a process as a whole are.
    const fn of_process(process: u64) -> Self {
        Self { process, thread: process }
    }
}

/// The name of a process or a thread.
#[derive(Serialize)]
struct Name<'a> {
    name: &'a str,
}

/// Where a process or a thread is among others.
#[derive(Serialize)]
struct SortIndex {
    sort_index: u64,
}

/// The traffic of a noise source in an interval: bits on the wire.
#[derive(Serialize)]
struct Load {
    offered_bits: u64,
    delivered_bits: u64,
}

/// Of a part of a message's time there is nothing more to say.
#[derive(Serialize)]
struct Nothing {}

/// What is said of a message at an end, named as in the CSV; nothing of what is not known.
#[derive(Default, Serialize)]
struct Details<'a> {
    sequence: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    capture_ns: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    queue_ns: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    send_ns: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    arrive_ns: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    receive_ns: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    latency_ns: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    end_to_end_ns: Option<i64>,
    /// Target minus wake-up: negative is after the target.
    #[serde(skip_serializing_if = "Option::is_none")]
    wake_error_ns: Option<i64>,
    /// Of a write: whether the declared rate held it.
    #[serde(skip_serializing_if = "Option::is_none")]
    held: Option<bool>,
    /// Of a write: the listeners that never had it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    lost_at: Vec<&'a str>,
    /// Of a receipt: whether it was after the capture plus the fixed delay.
    #[serde(skip_serializing_if = "Option::is_none")]
    late: Option<bool>,
    /// Of a receipt: messages missing between the one before and this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    lost_before: Option<u32>,
    /// Of a receipt: whether the run ended before the program asked for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    unread: Option<bool>,
    /// Of a loss: whether the queue overflowed.
    #[serde(skip_serializing_if = "Option::is_none")]
    overflowed: Option<bool>,
}

/// What is shown of a message at an end, in ns of the trace.
struct Shown<'a> {
    category: &'static str,
    name: String,
    begin: i64,
    /// Not after `begin`: an instant.
    end: i64,
    /// Slices within it or after it, in order, none of which overlaps another one.
    parts: Vec<(&'static str, i64, i64)>,
    /// Those that begin at a write, or end at a receipt.
    arrows: Vec<u64>,
    details: Details<'a>,
}

impl Shown<'_> {
    /// From when on its track is free again.
    fn until(&self) -> i64 {
        let ends = self.parts.iter().map(|(_, _, end)| *end);
        ends.fold(self.end.max(self.begin), i64::max)
    }

    /// Adds a part if there is one: both times are known, and the clock was not set back between.
    fn part(&mut self, name: &'static str, begin: Option<i64>, end: Option<i64>) {
        let free = self.parts.last().map_or(self.begin, |(_, _, end)| *end);
        let Some((begin, end)) = begin.zip(end) else { return };
        let is_within = end <= self.end || self.end <= begin;
        if free <= begin && begin < end && is_within {
            self.parts.push((name, begin, end));
        }
    }
}

/// From the readings of an end's clock to the time of the trace.
#[derive(Clone, Copy)]
struct Shift(i64);

impl Shift {
    /// That of a record with `last` as its last instant.
    fn of(record: &Record, last: Option<SyncedTime>) -> Self {
        let known = record.network.zip(last);
        Self(known.map_or(0, |(at, last)| at.as_ns().saturating_sub(last.as_ns())))
    }
    fn at(self, reading: SyncedTime) -> i64 {
        reading.as_ns().saturating_add(self.0)
    }
}

/// The messages of a talker, in the order of its records.
struct Writes<'a> {
    shown: Vec<Option<Shown<'a>>>,
    /// Which of them a record is. The join gives the records themselves.
    numbers: HashMap<*const Record, usize>,
}

impl<'a> Writes<'a> {
    fn of(channel: &str, records: &[Record]) -> Self {
        let shown = records.iter().map(|record| write(channel, record)).collect();
        let numbers = records.iter().zip(0..).map(|(record, at)| (std::ptr::from_ref(record), at));
        Self { shown, numbers: numbers.collect() }
    }

    fn get(&mut self, record: &Record) -> Option<&mut Shown<'a>> {
        let at = *self.numbers.get(&std::ptr::from_ref(record))?;
        self.shown[at].as_mut()
    }
}

/// A message at the end that wrote it; nothing if it is not known when that was.
fn write<'a>(channel: &str, record: &Record) -> Option<Shown<'a>> {
    let shift = Shift::of(record, record.wake.or(record.capture));
    let at = |reading: Option<SyncedTime>| reading.map(|reading| shift.at(reading));
    let begin = at(record.capture)?;
    let left = at(record.transfer).filter(|left| *left > begin);
    let end = left.unwrap_or(begin);
    let details = Details {
        sequence: record.sequence,
        capture_ns: record.capture.map(SyncedTime::as_ns),
        queue_ns: record.receive.map(SyncedTime::as_ns),
        send_ns: record.transfer.map(SyncedTime::as_ns),
        wake_error_ns: wake_error_ns(record),
        held: Some(record.flags & flag::HELD != 0),
        ..Details::default()
    };
    let name = format!("{channel} {}", record.sequence);
    let (parts, arrows) = (Vec::new(), Vec::new());
    let mut shown = Shown { category: "write", name, begin, end, parts, arrows, details };
    shown.part("queue", at(record.receive), left);
    shown.part("wait", Some(end), at(record.wake));
    Some(shown)
}

/// A message at an end that read it, or could have; nothing if it is not known when that was.
fn receipt<'a>(channel: &str, message: &Message<'_>) -> Option<Shown<'a>> {
    let record = message.listener?;
    let number = message.talker.unwrap_or(record).sequence;
    let mut details = Details {
        sequence: number,
        capture_ns: message.capture().map(SyncedTime::as_ns),
        arrive_ns: message.arrived().map(SyncedTime::as_ns),
        receive_ns: record.receive.map(SyncedTime::as_ns),
        latency_ns: message.latency_ns(),
        end_to_end_ns: message.end_to_end_ns(),
        wake_error_ns: message.listener_wakeup_ns(),
        ..Details::default()
    };
    let (parts, arrows) = (Vec::new(), Vec::new());
    let Some(receive) = record.receive else {
        // The log has the network time at which the program could have had it.
        let network = record.network.map(|at| at.as_ns());
        let begin = network.or(record.transfer.map(SyncedTime::as_ns))?;
        details.overflowed = Some(record.flags & flag::OVERFLOWED != 0);
        let name = format!("{channel} {number} lost");
        return Some(Shown { category: "loss", name, begin, end: begin, parts, arrows, details });
    };
    let shift = Shift::of(record, record.wake.or(Some(receive)));
    let at = |reading: Option<SyncedTime>| reading.map(|reading| shift.at(reading));
    let end = shift.at(record.wake.unwrap_or(receive));
    let begin = at(record.transfer).unwrap_or(shift.at(receive)).min(end);
    if message.duplicate {
        let name = format!("{channel} {number} copy");
        return Some(Shown { category: "copy", name, begin, end, parts, arrows, details });
    }
    details.late = Some(message.is_late());
    details.lost_before = Some(record.gap);
    details.unread = Some(record.flags & flag::UNREAD != 0);
    let name = format!("{channel} {number}");
    let mut shown = Shown { category: "receipt", name, begin, end, parts, arrows, details };
    if record.wake.is_some() {
        shown.part("receive", at(record.transfer), at(record.receive));
        shown.part("wait", at(record.receive), at(record.wake));
    }
    Some(shown)
}

/// A message over TCP at both ends, by their clocks. It is not known when its segments left.
fn over_tcp<'a>(
    flow: &TcpFlow,
    number: usize,
    message: &TcpMessage,
) -> (Shown<'a>, Option<Shown<'a>>) {
    let details = || Details {
        sequence: number as u64,
        capture_ns: Some(message.capture.as_ns()),
        ..Details::default()
    };
    let shown = |category, [begin, end]: [SyncedTime; 2], details| Shown {
        category,
        name: format!("{} {number}", flow.name),
        begin: begin.as_ns().min(end.as_ns()),
        end: end.as_ns(),
        parts: Vec::new(),
        arrows: Vec::new(),
        details,
    };
    let received = message.receive.map(|receive| {
        let details = Details {
            receive_ns: Some(receive.as_ns()),
            latency_ns: tcp::latency_ns(message),
            end_to_end_ns: tcp::end_to_end_ns(message),
            wake_error_ns: tcp::wakeup_ns(message, flow.after),
            late: Some(tcp::is_late(message, flow.after)),
            ..details()
        };
        shown("receipt", [receive, message.handled.unwrap_or(receive)], details)
    });
    (shown("write", [message.capture; 2], details()), received)
}

fn wake_error_ns(record: &Record) -> Option<i64> {
    Some(join::ns_between(record.wake?, record.wake_target?))
}

/// A trace that is being written.
struct Trace<'o, W> {
    out: &'o mut W,
    events: u64,
    /// Processes and threads so far.
    tracks: u64,
    arrows: u64,
}

impl<W: Write> Trace<'_, W> {
    /// Writes an event at an instant in ns; `more` are members of it, each with a comma before.
    fn event(
        &mut self,
        phase: &str,
        (category, name): (&str, &str),
        track: Track,
        at: i64,
        more: &str,
        details: &impl Serialize,
    ) -> io::Result<()> {
        let comma = if self.events == 0 { "" } else { "," };
        self.events += 1;
        let Track { process, thread } = track;
        write!(self.out, "{comma}\n{{\"ph\":\"{phase}\",\"cat\":\"{category}\",\"name\":")?;
        serde_json::to_writer(&mut *self.out, name)?;
        let at = Micros(at);
        write!(self.out, ",\"pid\":{process},\"tid\":{thread},\"ts\":{at}{more},\"args\":")?;
        serde_json::to_writer(&mut *self.out, details)?;
        self.out.write_all(b"}")
    }

    /// A slice, or an instant if it does not end after its begin.
    fn slice(
        &mut self,
        names: (&str, &str),
        track: Track,
        [begin, end]: [i64; 2],
        details: &impl Serialize,
    ) -> io::Result<()> {
        if end <= begin {
            return self.event("i", names, track, begin, ",\"s\":\"t\"", details);
        }
        let more = format!(",\"dur\":{}", Micros(end.saturating_sub(begin)));
        self.event("X", names, track, begin, &more, details)
    }

    /// Names a process, or a thread of it, and puts it behind those before.
    fn name(&mut self, what: &str, track: Track, name: &str) -> io::Result<()> {
        let [named, sorted] = ["name", "sort_index"].map(|of| format!("{what}_{of}"));
        self.event("M", (METADATA, &named), track, 0, "", &Name { name })?;
        let index = SortIndex { sort_index: track.thread };
        self.event("M", (METADATA, &sorted), track, 0, "", &index)
    }

    /// Makes a process for each host, in the order of the nodes; returns a number for each node.
    fn hosts(&mut self, system: &System, log: &RunLog) -> io::Result<Vec<u64>> {
        let mut numbers = Vec::new();
        for (id, node) in (0..).map(NodeId).zip(&system.nodes) {
            self.tracks += 1;
            numbers.push(self.tracks);
            let name = match &*log.scenario {
                "" => node.name.clone(),
                scenario => format!("{scenario}: {}", node.name),
            };
            let has_end = log.ends.iter().any(|end| end.node == id);
            if has_end || matches!(node.kind, NodeKind::Host(_)) {
                self.name("process", Track::of_process(self.tracks), &name)?;
            }
        }
        Ok(numbers)
    }

    fn channel(
        &mut self,
        system: &System,
        hosts: &[u64],
        name: &str,
        joined: &Joined<'_>,
    ) -> io::Result<()> {
        let mut writes = Writes::of(name, &joined.talker.records);
        let mut ends = Vec::new();
        for listener in &joined.listeners {
            let host = &system.node(listener.end.node).name;
            let received = self.receipts((name, host), listener, &mut writes);
            ends.push((hosts[listener.end.node.index()], received));
        }
        let talker = hosts[joined.talker.node.index()];
        let writes = writes.shown.into_iter().flatten().collect();
        self.end(talker, &format!("{name} talker"), writes)?;
        for (host, received) in ends {
            self.end(host, &format!("{name} listener"), received)?;
        }
        Ok(())
    }

    /// What a listener on `host` received. Writes get the arrows to it, and their losses there.
    fn receipts<'a>(
        &mut self,
        (channel, host): (&str, &'a str),
        listener: &JoinedListener<'_>,
        writes: &mut Writes<'a>,
    ) -> Vec<Shown<'a>> {
        let mut all = Vec::new();
        for message in &listener.messages {
            let mut received = receipt(channel, message);
            if let Some(write) = message.talker.and_then(|record| writes.get(record)) {
                if message.is_lost() {
                    write.details.lost_at.push(host);
                }
                if let Some(received) = received.as_mut().filter(|_| message.is_receipt()) {
                    self.connect(write, received);
                }
            }
            all.extend(received);
        }
        all
    }

    /// Draws an arrow from a write to a receipt.
    fn connect(&mut self, write: &mut Shown<'_>, receipt: &mut Shown<'_>) {
        self.arrows += 1;
        write.arrows.push(self.arrows);
        receipt.arrows.push(self.arrows);
    }

    fn tcp(&mut self, hosts: &[u64], flow: &TcpFlow, messages: &[TcpMessage]) -> io::Result<()> {
        let (mut writes, mut receipts) = (Vec::new(), Vec::new());
        for (number, message) in messages.iter().enumerate() {
            let (mut write, mut received) = over_tcp(flow, number, message);
            if let Some(received) = &mut received {
                self.connect(&mut write, received);
            }
            writes.push(write);
            receipts.extend(received);
        }
        self.end(hosts[flow.talker.index()], &format!("{} talker", flow.name), writes)?;
        self.end(hosts[flow.listener.index()], &format!("{} listener", flow.name), receipts)
    }

    /// Writes all of an end, on as many tracks as it needs.
    fn end(&mut self, process: u64, name: &str, mut all: Vec<Shown<'_>>) -> io::Result<()> {
        all.sort_by_key(|shown| shown.begin);
        // Each with the instant from which it is free.
        let mut tracks: Vec<(Track, i64)> = Vec::new();
        for mut shown in all {
            let free = tracks.iter().position(|(_, free)| *free <= shown.begin);
            let on = match free {
                Some(on) => on,
                None if tracks.len() < TRACKS_MAX => {
                    self.tracks += 1;
                    let track = Track { process, thread: self.tracks };
                    let name = match tracks.len() {
                        0 => name.to_owned(),
                        before => format!("{name} ({})", before + 1),
                    };
                    self.name("thread", track, &name)?;
                    tracks.push((track, i64::MIN));
                    tracks.len() - 1
                }
                None => {
                    shown.end = shown.begin;
                    shown.parts.clear();
                    0
                }
            };
            tracks[on].1 = tracks[on].1.max(shown.until());
            self.shown(tracks[on].0, &shown)?;
        }
        Ok(())
    }

    /// Writes a message at an end. Its arrows follow at once: one belongs to the slice before it.
    fn shown(&mut self, track: Track, shown: &Shown<'_>) -> io::Result<()> {
        let Shown { category, name, begin, end, parts, arrows, details } = shown;
        self.slice((category, name), track, [*begin, *end], details)?;
        for arrow in arrows {
            let (phase, more) = match *category {
                "write" => ("s", format!(",\"id\":{arrow}")),
                _ => ("f", format!(",\"id\":{arrow},\"bp\":\"e\"")),
            };
            self.event(phase, ("message", "message"), track, *begin, &more, &Nothing {})?;
        }
        for (part, begin, end) in parts {
            self.slice(("part", part), track, [*begin, *end], &Nothing {})?;
        }
        Ok(())
    }
}
