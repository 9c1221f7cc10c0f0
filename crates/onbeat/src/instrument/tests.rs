use super::*;
use crate::clock::{EmulatedClock, MonoTime, pause};
use crate::interface::{
    InterfaceContext, InterfaceOptions, InterfaceSettings, Limits, NetworkClock,
};
use crate::recorder::Recorder;
use crate::shared_log::Board;
use onbeat_model::time::SyncedTime;
use onbeat_model::units::{MacAddress, Octets, StreamId};
use onbeat_runtime::channel_io::Log;
use onbeat_runtime::talker::ChannelParameters;
use std::path::Path;

const EPOCH: i64 = 1_700_000_000_000_000_000;

fn identity(role: Role) -> Identity {
    Identity { channel: "joint_targets".to_owned(), stream_id: StreamId(u64::MAX), role }
}

fn at(ns: i64) -> Option<SyncedTime> {
    Some(SyncedTime::from_ns(ns))
}

fn base() -> Arc<Timebase> {
    let base = Arc::new(Timebase::default());
    base.begin(NetworkClock::Tai { epoch: EPOCH, watch: None }, Limits::NONE);
    base
}

/// A delay log in a directory of its own.
struct Logged {
    directory: tempfile::TempDir,
    instruments: Instruments,
}

impl Logged {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let log = Some(directory.path().join("log.csv"));
        let watch = Watch { log, ..Watch::default() };
        let instruments = Instruments::new(&watch, &base(), EPOCH).expect("a log");
        Self { directory, instruments }
    }

    fn end(&self, board: &Board, role: Role) -> Recorder {
        let mut log = board.end().expect("an end");
        log.introduce(&identity(role));
        Recorder::with(log, self.instruments.probe(&identity(role), 64))
    }

    /// Ends everything and gives the two files' lines after their headings.
    fn finish(self) -> [Vec<String>; 2] {
        drop(self.instruments);
        let log = self.directory.path().join("log.csv");
        [(log.clone(), TIMES_COLUMNS), (waits_path(&log), WAITS_COLUMNS)].map(|(path, columns)| {
            let text = std::fs::read_to_string(path).expect("the log");
            let mut lines = text.lines().map(str::to_owned);
            assert_eq!(lines.next().as_deref(), Some(columns));
            lines.collect()
        })
    }
}

#[test]
fn each_kind_of_record_is_a_line_with_absolute_network_times() {
    let board = Board::new().expect("a board");
    let logged = Logged::new();
    let sent = Record { capture: at(1_000), sequence: 257, ..Record::default() };
    let came = Record { transfer: at(2_000), receive: at(3_000), ..sent };
    let waited = Record { wake_target: at(5_000), wake: at(5_250), ..came };
    let copy = Record { flags: flag::DUPLICATE, ..came };
    let early = Record { capture: at(-EPOCH - 1), receive: at(7), ..Record::default() };
    // Role, the record, what it becomes, its line.
    let timestamp = (EPOCH + 1_000) as u32;
    let times = |sent: i64, arrived: i64, received: i64| {
        let capture = EPOCH + 1_000;
        format!("{},64,1,{timestamp},{capture},{sent},0,{arrived},{received}", u64::MAX)
    };
    let received = times(0, EPOCH + 2_000, EPOCH + 3_000);
    let table = [
        (Role::Talker, sent, None, times(EPOCH + 1_000, 0, 0)),
        (Role::Listener, came, None, received.clone()),
        (Role::Listener, came, Some(waited), received.clone()),
        (Role::Listener, copy, None, received),
        (Role::Listener, early, None, format!("{},64,0,0,0,0,0,0,{}", u64::MAX, EPOCH + 7)),
    ];
    let mut expected = Vec::new();
    for (role, record, amended, line) in table {
        let mut end = logged.end(&board, role);
        end.push(&record);
        if let Some(amended) = amended {
            end.amend(&amended);
        }
        expected.push(line);
        // The thread takes ends in the order in which they were opened.
        drop(end);
    }
    let [lines, waits] = logged.finish();
    assert_eq!(lines, expected);
    let target = EPOCH + 5_000;
    assert_eq!(waits, [format!("{target},{target},{}", EPOCH + 5_250)]);
}

/// Writes entries to a log and ends it: how many were counted as lost, and the log's capture times.
fn capture_times(entries: u64, before_each: impl Fn(&Probe)) -> (u64, Vec<i64>) {
    let board = Board::new().expect("a board");
    let logged = Logged::new();
    let identity = identity(Role::Listener);
    let mut shared = board.end().expect("an end");
    shared.introduce(&identity);
    let mut probe = logged.instruments.probe(&identity, 64).expect("a probe");
    for sequence in 0..entries {
        before_each(&probe);
        let record = Record { capture: at(sequence as i64), sequence, ..Record::default() };
        probe.push(&record, &mut shared);
        probe.amend(&Record { receive: at(0), ..record });
    }
    drop(probe);
    let [lines, _] = logged.finish();
    let captures = lines.iter().map(|line| {
        assert!(line.ends_with(&format!(",{EPOCH}")), "whole and amended: {line}");
        let capture = line.split(',').nth(4).expect("a capture time");
        capture.parse::<i64>().expect("a number") - EPOCH
    });
    (shared.counters().unrecorded, captures.collect())
}

#[test]
fn more_than_a_million_entries_are_all_in_the_log() {
    const ENTRIES: u64 = 1_200_000;
    let (lost, captures) = capture_times(ENTRIES, |probe| {
        while probe.tap.as_ref().is_some_and(|tap| tap.ring.slots() == 0) {
            pause(Span::from_us(100));
        }
    });
    assert_eq!(lost, 0);
    assert!(captures.into_iter().eq(0..ENTRIES as i64));
}

#[test]
fn entries_that_find_no_room_are_counted_and_the_others_stay_in_order() {
    let entries = 10 * scribe::RING as u64;
    let (lost, captures) = capture_times(entries, |_| {});
    assert_eq!(captures.len() as u64 + lost, entries);
    assert!(captures.is_sorted_by(|a, b| a < b));
    assert_eq!(captures.last(), Some(&(entries as i64 - 1)), "the last waits for room");
}

#[test]
fn a_log_that_takes_no_more_costs_records_and_nothing_else() {
    let board = Board::new().expect("a board");
    let watch = Watch { log: Some("/dev/full".into()), ..Watch::default() };
    let refused = Instruments::new(&watch, &base(), 0).expect_err("a full device");
    assert!(refused.to_string().starts_with("the delay log /dev/full: "), "{refused}");

    // The columns fit and then no more: the end continues, counts, and closes at once.
    let directory = tempfile::tempdir().expect("a directory");
    let log = directory.path().join("log.csv");
    let base = Arc::new(Timebase::default()); // no clock: the first timed wait cannot be written
    let watch = Watch { log: Some(log), ..Watch::default() };
    let instruments = Instruments::new(&watch, &base, 0).expect("a log");
    let mut shared = board.end().expect("an end");
    shared.introduce(&identity(Role::Listener));
    let mut end = Recorder::with(shared, instruments.probe(&identity(Role::Listener), 64));
    for sequence in 0..10_000 {
        end.push(&Record { sequence, wake_target: at(0), wake: at(0), ..Record::default() });
    }
    assert_eq!(end.shared().counters().received, 10_000);
    assert!(end.shared().counters().unrecorded > 0);
    drop((end, instruments));
}

#[test]
fn a_log_that_cannot_be_written_is_refused_by_its_name() {
    let watch = Watch { log: Some("/nowhere/log.csv".into()), ..Watch::default() };
    let refused = Instruments::new(&watch, &base(), 0).expect_err("no such directory");
    assert!(refused.to_string().starts_with("the delay log /nowhere/log.csv: "), "{refused}");
}

#[test]
fn without_anything_to_watch_there_is_no_probe_and_no_thread() {
    let instruments = Instruments::new(&Watch::default(), &base(), 0).expect("nothing");
    assert!(instruments.probe(&identity(Role::Talker), 64).is_none());
    assert!(instruments.scribe.is_none());
}

/// Instead of the kernel's files: what is written to them can be read.
fn trace_files() -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    for name in ["trace_marker", "tracing_on"] {
        std::fs::write(directory.path().join(name), "").expect("a file");
    }
    directory
}

/// An end whose messages take 10 µs, 90 µs and 95 µs where 50 µs is too long; how often it broke.
fn three_latencies(directory: &Path, markers: bool) -> u64 {
    let most = Some(Span::from_us(50));
    let trace = Arc::new(Trace::open_in(directory, markers, most).expect("the files"));
    let watch = Watch { trace: markers, break_at: most, log: None };
    let made = Instruments::with_trace(&watch, Some(trace), &base(), 0);
    let instruments = made.expect("a thread");
    let board = Board::new().expect("a board");
    let mut counts = Vec::new();
    for role in [Role::Talker, Role::Listener] {
        let mut shared = board.end().expect("an end");
        shared.introduce(&identity(role));
        let mut end = Recorder::with(shared, instruments.probe(&identity(role), 64));
        for (sequence, latency) in [(0, 10_000), (1, 90_000), (2, 95_000)] {
            let receive = at(1_000 + latency).filter(|_| role == Role::Listener);
            end.push(&Record { sequence, capture: at(1_000), receive, ..Record::default() });
        }
        // A copy that comes late is no message that took long.
        let copy = Record {
            flags: flag::DUPLICATE,
            capture: at(0),
            receive: at(1 << 40),
            ..Record::default()
        };
        if role == Role::Listener {
            end.push(&copy);
        }
        counts.push(end.shared().counters().breaks);
    }
    assert_eq!(counts[0], 0, "a talker has no latency");
    counts[1]
}

const MARKERS: [&str; 8] = [
    "onbeat tx joint_targets seq=0 cap=1000",
    "onbeat tx joint_targets seq=1 cap=1000",
    "onbeat tx joint_targets seq=2 cap=1000",
    "onbeat rx joint_targets seq=0 cap=1000 latency=10000",
    "onbeat rx joint_targets seq=1 cap=1000 latency=90000",
    "onbeat break joint_targets seq=1 latency=90000 break=50000",
    "onbeat rx joint_targets seq=2 cap=1000 latency=95000",
    "onbeat rx joint_targets seq=0 cap=0",
];

#[test]
fn markers_say_what_happened_and_the_trace_is_frozen_once() {
    let files = trace_files();
    assert_eq!(three_latencies(files.path(), true), 2);
    let read = |name| std::fs::read_to_string(files.path().join(name)).expect("a file");
    assert_eq!(read("trace_marker"), MARKERS.concat());
    assert_eq!(read("tracing_on"), "0");
}

#[test]
fn without_markers_only_the_break_is_marked() {
    let files = trace_files();
    assert_eq!(three_latencies(files.path(), false), 2);
    let text = std::fs::read_to_string(files.path().join("trace_marker")).expect("a file");
    assert_eq!(text, MARKERS[5]);
}

#[test]
fn a_trace_that_is_not_there_is_refused_in_one_line() {
    let nowhere = Path::new("/nowhere/tracing");
    let refused = Trace::open_in(nowhere, true, None).expect_err("not there").to_string();
    assert!(
        refused.starts_with("the kernel's trace: /nowhere/tracing/trace_marker: "),
        "{refused}"
    );
    assert!(!refused.contains('\n'));
}

/// An instance of the kernel's trace, so that no other one is touched; gone with the value.
struct Instance(std::path::PathBuf);

impl Instance {
    fn new() -> Result<Self, std::io::Error> {
        if !Path::new("/sys/kernel/tracing/trace_marker").exists() {
            // SAFETY: the mount namespace becomes this test's thread's own and ends with it.
            unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::NEWNS)? };
            for arguments in ["--make-rprivate /", "-t tracefs nodev /sys/kernel/tracing"] {
                let mount = std::process::Command::new("mount").args(arguments.split(' ')).status();
                if !mount?.success() {
                    return Err(std::io::ErrorKind::Unsupported.into());
                }
            }
        }
        let name = format!("onbeat-test-{}", std::process::id());
        let path = Path::new("/sys/kernel/tracing/instances").join(name);
        std::fs::create_dir(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

#[test]
fn the_kernels_own_trace_takes_the_markers_until_it_is_frozen() {
    let instance = match Instance::new() {
        Ok(instance) => instance,
        Err(error) => {
            println!("not tested: the kernel's trace cannot be used here ({error})");
            return;
        }
    };
    assert_eq!(three_latencies(&instance.0, true), 2);
    let read = |name| std::fs::read_to_string(instance.0.join(name)).expect("a file");
    let trace = read("trace");
    // Nothing is taken after the break.
    for (marker, there) in MARKERS.iter().zip([true, true, true, true, true, true, false, false]) {
        assert_eq!(trace.contains(marker), there, "{marker} in {trace}");
    }
    assert_eq!(read("tracing_on"), "0\n");
}

#[test]
fn emulated_time_is_logged_as_it_is() {
    let clock = EmulatedClock { start: MonoTime::now(), error: Default::default() };
    let base = Arc::new(Timebase::default());
    base.begin(NetworkClock::Emulated(clock), Limits::NONE);
    let mut line = Vec::new();
    let stream = Stream { id: StreamId(3), size: 8, role: Role::Talker };
    let record = Record { capture: at(20_000_000), sequence: 1, ..Record::default() };
    delay_log::times_line(&mut line, stream, &record, 0).expect("memory");
    assert_eq!(line, b"3,8,1,20000000,20000000,20000000,0,0,0\n");
}

fn ip(arguments: &str) -> bool {
    let words = arguments.split(' ');
    std::process::Command::new("ip").args(words).status().is_ok_and(|status| status.success())
}

/// A context on an interface, with its log, and the channel `c` declared.
fn context_on(name: &str, log: &Path) -> InterfaceContext {
    let options = InterfaceOptions { untagged: true, ..Default::default() };
    let log = Some(log.to_owned());
    let settings = InterfaceSettings { name: name.to_owned(), options, log, ..Default::default() };
    let context = InterfaceContext::open(settings).expect("a context");
    let parameters = ChannelParameters {
        destination: MacAddress([1, 0, 0x5e, 1, 0x11, 0x42]),
        source: MacAddress::default(),
        stream_id: StreamId(77),
        vlan: 2,
        pcp: 3,
        size: Octets::new(8),
        integrity: Default::default(),
        replicated: false,
        launch: None,
        talker_address: None,
        interval: Span::from_us(1),
        tolerance: Span::ZERO,
        catch_up: Span::ZERO,
        fixed_delay: Span::from_ms(2),
        clock_error: Span::ZERO,
        epoch: 0,
    };
    context.declare("c", parameters).expect("a channel");
    context
}

#[test]
fn programs_on_interfaces_have_their_messages_and_waits_logged_when_they_close() {
    // SAFETY: the network namespace becomes this test's thread's own and ends with it.
    let alone =
        unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::NEWNET) }.is_ok();
    let made = alone && ip("link add wa type veth peer name wb");
    if !(made && ip("link set wa up") && ip("link set wb up")) {
        println!("not tested: no network namespace or veth pair here");
        return;
    }
    // Until the kernel has seen the carrier it drops what is sent.
    for name in ["wa", "wb"] {
        let up = || {
            let shown = std::process::Command::new("ip").args(["link", "show", name]).output();
            String::from_utf8_lossy(&shown.expect("ip").stdout).contains("state UP")
        };
        while !up() {
            pause(Span::from_ms(5));
        }
    }
    let directory = tempfile::tempdir().expect("a directory");
    let [sent, came] = ["sent.csv", "came.csv"].map(|name| directory.path().join(name));
    let (writer, reader) = (context_on("wa", &sent), context_on("wb", &came));
    let mut listener = reader.open_listener("c", Octets::new(8)).expect("a listener");
    let mut talker = writer.open_talker("c", Octets::new(8)).expect("a talker");
    let mut captures = Vec::new();
    for value in 0_u64..20 {
        talker.write(&value.to_ne_bytes()).expect("written");
        let mut got = [0; 8];
        let info = listener.read_wait(&mut got).expect("read");
        assert_eq!(got, value.to_ne_bytes());
        captures.push(info.capture.as_ns());
    }
    drop((talker, listener, writer, reader));
    let columns = |path: &Path| -> Vec<Vec<i64>> {
        let text = std::fs::read_to_string(path).expect("a log");
        let numbers = |line: &str| line.split(',').map(|n| n.parse().expect("a number")).collect();
        text.lines().skip(1).map(numbers).collect()
    };
    let (sent, received) = (columns(&sent), columns(&came));
    assert_eq!((sent.len(), received.len()), (20, 20));
    for (capture, (sent, received)) in captures.iter().zip(sent.iter().zip(&received)) {
        // Stream, size, number, timestamp and capture time are the same at both ends.
        assert_eq!((sent[..5].to_vec(), sent[4]), (received[..5].to_vec(), *capture));
        assert_eq!((sent[0], sent[1], sent[3]), (77, 8, capture & 0xffff_ffff));
        assert!(received[7] >= *capture && received[8] >= received[7], "{received:?}");
    }
    let waits = columns(&waits_path(&came));
    assert_eq!(waits.len(), 20);
    for (capture, wait) in captures.iter().zip(waits) {
        assert_eq!((wait[0], wait[1]), (capture + 2_000_000, capture + 2_000_000));
        assert!(wait[2] >= wait[1], "{wait:?}");
    }
}
