//! Programs that keep their own books on every figure of a channel, in every engine: what the
//! library tells them, and what the records say afterwards, are compared with what the messages
//! themselves say and with the clock before and after each call. Frames are lost, ends are closed
//! and opened again, on interfaces programs are killed and started again, and on the kernel's
//! networks another host talks on the same stream; the talker's clock, or the listener's, steps.
//! `BOOKS_SEED=N` runs one seed, `BOOKS_COUNT` so
//! many from it on; what the default seeds draw together is tested too.

use crate::common::{ENGINES, TestSystem, channel, load, number, permitted, run, two_hosts};
use onbeat_model::system::NodeId;
use onbeat_run::netns::KernelNetwork;
use rustix::process::{Pid, Signal};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Child, Command};
use std::sync::OnceLock;

/// In virtual time with stations of Network Code: another book than those of [`ENGINES`], in which
/// messages are there when their frames are.
const STATIONS: &[&str] = &["run", ".", "--backend", "network-code"];

/// How to run, each with its number.
fn engines() -> impl Iterator<Item = &'static [&'static str]> {
    ENGINES.iter().copied().chain([STATIONS])
}

/// Whether time is virtual.
fn is_virtual(how: &[&str]) -> bool {
    how == ENGINES[0] || how == STATIONS
}

/// Whether the kernel may be asked when frames leave.
fn notes_departures(how: &[&str]) -> bool {
    how.contains(&"netns") && !how.contains(&"xdp")
}

/// Where the program was built, and the one with messages in fragments.
static BUILT: OnceLock<TestSystem> = OnceLock::new();

/// By how much messages in fragments are longer than others, in octets: three frames.
const MORE: u32 = 2_904;

/// The seeds of a run that names none.
const USUAL: std::ops::RangeInclusive<u64> = 1..=3;

fn seeds() -> Vec<u64> {
    let said = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let Some(first) = said("BOOKS_SEED") else { return USUAL.collect() };
    (first..first + said("BOOKS_COUNT").unwrap_or(1)).collect()
}

/// What a seed draws for an engine.
#[derive(Clone, Copy, Debug)]
struct Drawn {
    /// The fixed delay: most messages keep it, or none.
    fixed_delay_us: u64,
    /// One frame of ten is lost.
    lossy: bool,
    /// The talker's, the listener's end is closed and opened again.
    talker_again: bool,
    listener_again: bool,
    /// Another host sends messages of the stream. Whoever opens its end again may hear that one
    /// first, so the listener does not.
    second: bool,
    /// Messages are longer than a frame.
    long: bool,
    /// The kernel notes when frames leave.
    stamps: bool,
    step: Option<Step>,
    /// Messages expire, some intervals after they were in time.
    lifespan_us: Option<u64>,
}

/// A clock that steps, and back or not.
#[derive(Clone, Copy, Debug)]
struct Step {
    /// `a`, the talker's, or `b`.
    host: &'static str,
    by_ns: i64,
    from_ms: i64,
    until_ms: Option<i64>,
}

impl Step {
    /// In every engine some of three seeds in a row steps the talker's clock, the listener's, none.
    fn of(seed: u64, engine: u64, bits: u64) -> Option<Self> {
        let host = *["a", "b"].get(((seed + engine) % 3) as usize)?;
        // Less than clocks may differ, more than D, and more than many intervals.
        let by = [500, 3_000_000, 40_000_000][(bits >> 40) as usize % 3];
        let by_ns = if bits >> 42 & 1 == 0 { by } else { -by };
        let until_ms = (bits >> 43 & 3 > 0).then_some(350);
        Some(Self { host, by_ns, from_ms: 200, until_ms })
    }

    fn table(&self) -> String {
        let Self { host, by_ns, from_ms, until_ms } = self;
        let until = until_ms.map_or(String::new(), |ms| format!("until_ms = {ms}"));
        let fault = format!("[[fault]]\nnode = \"{host}\"\nclock_step_ns = {by_ns}");
        format!("{fault}\nfrom_ms = {from_ms}\n{until}\n")
    }

    fn argument(&self) -> String {
        let until_ns = self.until_ms.map_or(1_000_000_000_000, |ms| ms * 1_000_000);
        format!(", \"step:{}:{until_ns}:{}\"", self.from_ms * 1_000_000, self.by_ns)
    }

    /// By how much more a latency is while it lasts.
    fn longer(&self) -> i64 {
        if self.host == "b" { self.by_ns } else { -self.by_ns }
    }
}

impl Drawn {
    fn of(seed: u64, how: &[&str]) -> Self {
        // The finaliser of MurmurHash3, so that neighbours have nothing in common; with this number
        // the usual seeds draw everything in every engine.
        let engine = engines().position(|other| other == how).expect("an engine") as u64;
        let mut bits = (seed + 34) ^ engine << 32;
        for factor in [0xff51_afd7_ed55_8ccd, 0xc4ce_b9fe_1a85_ec53] {
            bits = (bits ^ bits >> 33).wrapping_mul(factor);
        }
        let coin = |at: u32| bits >> (20 + at) & 1 == 1;
        let second = how.contains(&"netns") && coin(0);
        let fixed_delay_us = if seed.is_multiple_of(2) { 2_000 } else { 1 };
        Self {
            fixed_delay_us,
            // What an emulated run without losses says of its promise is other tests' business.
            lossy: !how.contains(&"netns") || coin(1),
            talker_again: coin(2),
            listener_again: !second && coin(3),
            second,
            // Frames of stations carry whole messages, and so do those of the other talker.
            long: !second && how != STATIONS && coin(16),
            stamps: notes_departures(how) && !seed.is_multiple_of(2),
            step: Step::of(seed, engine, bits),
            // In every engine some of three seeds in a row have one.
            lifespan_us: (!(seed + 2 * engine).is_multiple_of(3)).then_some(fixed_delay_us + 4_000),
        }
    }
}

/// A third host, on which somebody else talks, and a channel that it may talk on.
const SECOND: &str = r#"
[[host]]
name = "x"
[[link]]
ends = ["x", "s"]
rate_mbps = 100
[[channel]]
name = "d"
destination = "01:00:5e:00:00:02"
stream_id = 2
class = "A"
size_octets = 8
rate_hz = 1000
talker = "x"
listeners = ["b"]
"#;

/// The system of a seed: clocks that differ, and what it draws.
fn system(seed: u64, how: &[&str], drawn: Drawn) -> TestSystem {
    let Drawn { fixed_delay_us, lossy, talker_again, listener_again, .. } = drawn;
    let Drawn { second, long, step, lifespan_us, .. } = drawn;
    let built = if long { "books-long" } else { "books" };
    let program = |name: &str, host: &str, more: &str| {
        format!(
            "[[program]]\nname = \"{name}\"\nhost = \"{host}\"\n\
             command = [\"build/{built}\", {more}]\n"
        )
    };
    let again = |is: bool| if is { ", \"again\"" } else { "" };
    let steps = step.map_or(String::new(), |step| step.argument());
    let talks = format!("\"talk\", \"{seed}\"{steps}{}", again(talker_again));
    let listens = format!("\"listen\", \"{seed}\", \"{}\"{steps}", fixed_delay_us * 1_000);
    let expires = lifespan_us.map(|us| format!(", \"lifespan:{}\"", us * 1_000));
    let listens = listens + &expires.unwrap_or_default();
    // A listener beside a second talker is not begun again.
    let beside = if second { ", \"beside\"" } else { again(listener_again) };
    let listens = format!("{listens}{beside}");
    let mut more = program("left", "a", &talks) + &program("right", "b", &listens);
    let size = 32 + if long { MORE } else { 0 };
    let mut c = format!("size_octets = {size}\nfixed_delay_us = {fixed_delay_us}");
    c += &lifespan_us.map_or(String::new(), |us| format!("\nlifespan_us = {us}"));
    if second {
        let transport = how.last().expect("an argument");
        more += &program("other", "x", &format!("\"second\", \"{transport}\""));
        more += SECOND;
        // A talker gives way to another one when it has been silent for longer than its burst. One
        // that opens its end again on AF_XDP may be, for most of a second, on a busy machine.
        c += "\nburst_messages = 950";
    }
    if lossy {
        more += "[[fault]]\nlink = \"b\"\nerrors_ppb = 100_000_000\n";
    }
    more += &step.map_or(String::new(), |step| step.table());
    let text = two_hosts(&more)
        .replacen("size_octets = 8", &c, 1)
        .replacen(
            "name = \"b\"\n",
            "name = \"b\"\nclock = { offset_ns = 700, drift_ppb = 9000 }\n",
            1,
        )
        .replace("duration_ms = 500\nhang_timeout_s = 2", "duration_ms = 600\nhang_timeout_s = 9");
    let system = TestSystem::new(&text);
    let built = BUILT.get_or_init(|| {
        let first = TestSystem::new(&text);
        first.program("books.c", "books");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/books.c");
        first.compile(&source, "books-long", &[&format!("-DMORE={MORE}")]);
        first
    });
    std::os::unix::fs::symlink(built.path().join("build"), system.path().join("build"))
        .expect("the program");
    system
}

/// A message that the listener's program had.
struct Read {
    way: String,
    receipt: i64,
    arrived: i64,
    late: bool,
    gap: i64,
    waited: bool,
}

/// What a program wrote down.
fn log(system: &TestSystem, name: &str) -> String {
    std::fs::read_to_string(system.path().join(name)).expect("a log")
}

/// What names a message: its capture time, and its number, because a clock that was set back reads
/// the same again.
type Name = (i64, i64);

/// What the listener's program had.
fn read(text: &str) -> BTreeMap<Name, Read> {
    let mut all = BTreeMap::new();
    let is_message = |line: &&str| line.split(' ').count() > 2;
    for line in text.lines().filter(is_message) {
        let (way, figures) = line.split_once(' ').expect("a way of reading");
        let figures: Vec<i64> = figures.split(' ').map(|f| f.parse().expect("a number")).collect();
        let [number, capture, receipt, arrived, gap, flags, waited] = figures[..] else {
            panic!("{line}")
        };
        let (late, waited) = (flags & 1 != 0, waited == 1);
        let read = Read { way: way.to_owned(), receipt, arrived, late, gap, waited };
        assert!(all.insert((capture, number), read).is_none(), "{capture} was read twice");
    }
    all
}

/// How many messages had expired at the listener's ends.
fn expired(listener: &str) -> u64 {
    let counts = listener.lines().filter_map(|line| line.strip_prefix("expired "));
    counts.map(|count| count.parse::<u64>().expect("a number")).sum()
}

/// A line of `messages.csv`: arrival, receipt, late, lost.
type Row = (Option<i64>, Option<i64>, bool, bool);

/// Those of channel `c`, without those that the listener took for copies.
fn rows(system: &TestSystem) -> BTreeMap<Name, Row> {
    let text = log(system, "out/1-run/messages.csv");
    let row = |line: &str| {
        let fields: Vec<_> = line.split(',').collect();
        let at = |n: usize| fields[n].parse::<i64>().ok();
        let row = (at(5), at(6), fields[11] == "1", fields[13] == "1");
        ((at(3).expect("a capture"), at(2).expect("a number")), row)
    };
    let is_copy = |line: &&str| line.split(',').nth(12) == Some("1");
    let lines = text.lines().skip(1).filter(|line| line.starts_with("c,") && !is_copy(line));
    lines.map(row).collect()
}

/// Compares what one run's programs wrote down with its records and results; what was drawn.
fn compare(how: &[&str], drawn: Drawn, system: &TestSystem, context: &str) -> BTreeSet<String> {
    // A busy machine lets programs do less.
    let longer = if is_virtual(how) { &[][..] } else { &["--duration", "1s"] };
    let stamps = if drawn.stamps { &["--stamps"][..] } else { &[] };
    let arguments = [how, longer, stamps, &["--json"]].concat();
    // Of a channel by whose clocks nothing can be told no promise is broken.
    let breaks = !how.contains(&"netns") && drawn.step.is_none();
    let output = run(&arguments, system.path(), if breaks { 3 } else { 0 });
    let results = serde_json::from_slice(&output.stdout).expect("JSON");
    let c = channel(&results, "c");
    let (talker, listener) = (log(system, "talker.log"), log(system, "listener.log"));
    let (read, rows) = (read(&listener), rows(system));
    let written: BTreeSet<Name> = talker
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(n, capture)| (capture.parse().expect("a time"), n.parse().expect("a number")))
        .collect();
    assert!(written.len() > 10 && read.len() > 5, "{context} {c}");
    assert!(rows.keys().copied().eq(written), "{context}: what was written");
    for (name, own) in &read {
        let wanted = (Some(own.arrived), Some(own.receipt), own.late, false);
        assert_eq!(rows[name], wanted, "{context}: {name:?}");
        if is_virtual(how) {
            let at_once = own.receipt == own.arrived;
            assert_eq!(at_once, how != STATIONS, "{context}: only `receive` delays a message");
        }
    }
    if !is_virtual(how) {
        wake_ups_are_in(&read, context);
    }
    let lost = rows.values().filter(|row| row.3).count() as i64;
    let latencies = || rows.iter().filter_map(|(name, row)| Some(row.1? - name.0));
    assert_eq!(number(c, "sent"), rows.len() as i64, "{context}");
    assert_eq!(number(c, "lost"), lost, "{context}");
    assert_eq!(number(c, "received"), latencies().count() as i64, "{context}");
    assert_eq!(number(c, "late"), rows.values().filter(|row| row.2).count() as i64, "{context}");
    assert_eq!(Some(number(c, "latency_ns.min")), latencies().min(), "{context}");
    assert_eq!(Some(number(c, "latency_ns.max")), latencies().max(), "{context}");
    parts_add_up(drawn, &c["listeners"][0], system, context);
    let expired = expired(&listener);
    let counted = drawn.lifespan_us.map(|_| expired);
    assert_eq!(c["expired"].as_u64(), counted, "{context}: {c}");
    let copies = number(c, "duplicated");
    assert!(copies == 0 || drawn.step.is_some() && copies < 12, "{context}: {copies} copies");
    // Over stations a message waits for its slot.
    if how == ENGINES[0] {
        let latencies: Vec<i64> = latencies().collect();
        by_the_clocks(drawn, &latencies, &listener, context);
    }
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    if drawn.second {
        second(system, &listener, &said, context);
    } else {
        assert!(!said.contains("another talker"), "{context}: {said}");
    }
    situations(drawn, &[talker, listener], &read)
}

/// The instants that parts of a latency lie between: columns of `messages.csv`.
const PARTS: [(&[&str], &[usize]); 3] = [
    (&["call", "queue", "network", "receive"], &[3, 15, 4, 5, 6]),
    (&["send", "network", "receive"], &[3, 4, 5, 6]),
    (&["send-and-network", "receive"], &[3, 5, 6]),
];

/// The parts of latencies are what the instants in `messages.csv` say.
fn parts_add_up(drawn: Drawn, listener: &Value, system: &TestSystem, context: &str) {
    let text = log(system, "out/1-run/messages.csv");
    let all = text.lines().filter(|line| line.starts_with("c,"));
    let all: Vec<Vec<&str>> = all.map(|line| line.split(',').collect()).collect();
    let received: Vec<_> = all.iter().filter(|row| !row[7].is_empty()).collect();
    let instants = |row: &Vec<&str>, columns: &[usize]| {
        columns.iter().map(|at| row[*at].parse().ok()).collect::<Option<Vec<i64>>>()
    };
    let known = |(names, columns): &(&'static [&'static str], &[usize])| {
        let known: Vec<_> = received.iter().filter_map(|row| instants(row, columns)).collect();
        (!known.is_empty() && 2 * known.len() >= received.len()).then_some((*names, known))
    };
    let (names, known) = PARTS.iter().find_map(known).expect("an arrival is always known");
    assert_eq!(names.len() == 4, drawn.stamps, "{context}: {names:?}");
    let found = &listener["breakdown"];
    assert_eq!(number(found, "messages"), known.len() as i64, "{context}");
    let check = |ns: &Value, values: Vec<i64>, what: &str| {
        let sum: i64 = values.iter().sum();
        let extremes = [values.iter().min(), values.iter().max()].map(|value| value.copied());
        let said = [number(ns, "min"), number(ns, "max")].map(Some);
        assert_eq!(said, extremes, "{context}: {what}");
        let off = number(ns, "avg") * values.len() as i64 - sum;
        assert!(2 * off.abs() <= values.len() as i64, "{context}: {what} {ns}, not {sum}");
    };
    for (at, name) in names.iter().enumerate() {
        let part = &found["parts"][at];
        assert_eq!(part["part"], *name, "{context}");
        check(&part["ns"], known.iter().map(|times| times[at + 1] - times[at]).collect(), name);
    }
    let whole = |times: &Vec<i64>| times[times.len() - 1] - times[0];
    check(&found["latency_ns"], known.iter().map(whole).collect(), "latency");
    let is_one = |example: &Value| {
        let parts = example["parts_ns"].as_array().expect("a list").iter();
        let parts: Vec<i64> = parts.map(|ns| ns.as_i64().expect("a number")).collect();
        let fits = |times: &&Vec<i64>| {
            let own = times.windows(2).map(|two| two[1] - two[0]);
            times[0] == number(example, "capture_ns") && own.eq(parts.iter().copied())
        };
        known.iter().find(fits).map(whole)
    };
    let examples = found["examples"].as_array().expect("a list");
    let latencies: Vec<_> = examples.iter().map(is_one).collect();
    let [.., greatest] = latencies[..] else { panic!("{context}: no example") };
    assert_eq!(greatest, known.iter().map(whole).max(), "{context}");
    assert!(latencies.iter().all(Option::is_some), "{context}: {found}");
    if drawn.stamps && drawn.step.is_none() {
        // What the kernel notes is in order, but for what converting it to the host's clock costs.
        let ordered = |times: &&Vec<i64>| times[..3].windows(2).all(|two| two[0] < two[1] + 5_000);
        let count = known.iter().filter(ordered).count();
        assert!(10 * count >= 9 * known.len(), "{context}: {count} of {} {known:?}", known.len());
    }
}

/// What the network makes of a latency, it makes of all: they differ by the step alone. What comes
/// from further in the future than clocks may differ is dropped, and counted.
fn by_the_clocks(drawn: Drawn, latencies: &[i64], listener: &str, context: &str) {
    let future = listener.lines().filter_map(|line| line.strip_prefix("future "));
    let future: i64 = future.map(|n| n.parse::<i64>().expect("a number")).sum();
    let is_usual = |ns: &i64| (0..1_000_000).contains(ns);
    let usual = latencies.iter().filter(|ns| is_usual(ns)).count();
    assert!(usual > 20, "{context}: {usual} of {}", latencies.len());
    let Some(step) = drawn.step.filter(|step| step.by_ns.abs() > 1_000_000) else {
        assert_eq!((usual, future), (latencies.len(), 0), "{context}");
        return;
    };
    let longer = latencies.iter().filter(|ns| is_usual(&(**ns - step.longer()))).count();
    // One that was to be written at an instant which the clock stepped over left at the step.
    let between = step.longer().min(0)..=step.longer().max(0);
    let between = latencies.iter().filter(|ns| !is_usual(ns) && between.contains(ns)).count();
    let strays = latencies.len() - usual - longer;
    assert!(strays == 0 || strays == 1 && between >= 1, "{context}: {strays} latencies");
    // What a reader finds who slept for as long as the step is not of the future when it looks.
    let fits = match step.longer() < 0 {
        true => future > 0 && future + longer as i64 > 40,
        false => future == 0 && longer > 0,
    };
    assert!(fits, "{context}: {future} from the future, {longer} longer");
}

/// A reader that waited received its messages when it continued, not when they came. One may have
/// come between the program's look at the clock and the library's: it was not waited for.
fn wake_ups_are_in(read: &BTreeMap<Name, Read>, context: &str) {
    for way in ["read", "select"] {
        let waited = || read.values().filter(|own| own.waited && own.way == way);
        let without = waited().filter(|own| own.receipt == own.arrived).count();
        let all = waited().count();
        let times =
            || waited().map(|own| (own.arrived, own.receipt - own.arrived)).collect::<Vec<_>>();
        assert!(
            4 * without <= all + 4,
            "{context}: {way} leaves out {without} of {all} wake-ups, arrival and wake-up: {:?}",
            times()
        );
    }
}

/// The other talker is named by its address, and what it sent is counted apart.
fn second(system: &TestSystem, listener: &str, said: &str, context: &str) {
    let text = log(system, "second.log");
    let (address, sent) = text.trim().split_once('\n').expect("an address and a number");
    let sent: u64 = sent.parse().expect("a number");
    let counted = listener.lines().filter_map(|line| line.strip_prefix("others "));
    let counted: u64 = counted.map(|n| n.parse::<u64>().expect("a number")).sum();
    assert!(counted > 0 && counted <= sent, "{context}: {counted} of {sent}");
    let note = format!(
        "channel `c` has another talker, {address}: host `b` dropped {counted} of its messages"
    );
    assert!(said.contains(&note), "{context}: {note} in {said}");
}

/// A program on a host's interface, from its next start on.
fn start(
    system: &TestSystem,
    (network, node): (&KernelNetwork, u32),
    [transport, number]: [u32; 2],
    what: &str,
) -> Child {
    let first = (u64::from(number) * 1_000_000).to_string();
    let program = system.path().join("build/books");
    let log = format!("{what}{number}.log");
    let (transport, seed) = (transport.to_string(), (10 * transport + number).to_string());
    let started = network.inside(NodeId(node), || {
        Command::new(program)
            .args(["interface", &transport, &first, &log, what, &seed, "2000000"])
            .current_dir(system.path())
            .spawn()
    });
    started.expect("a program")
}

/// Ends a program: with SIGTERM it must say that its books are right.
fn end(mut program: Child, signal: Signal) {
    let pid = Pid::from_child(&program);
    rustix::process::kill_process(pid, signal).expect("it is there");
    let status = program.wait().expect("its end");
    assert!(signal == Signal::KILL || status.success(), "{status}");
}

#[test]
#[expect(clippy::disallowed_methods, reason = "programs run for a while, which is not measured")]
fn programs_that_are_killed_and_started_again_on_interfaces_invent_no_loss() {
    if !permitted() {
        return;
    }
    let system = TestSystem::new(&two_hosts(""));
    system.program("books.c", "books");
    let loaded = load(&system);
    let network = KernelNetwork::build(&loaded).expect("a network");
    let wait = || std::thread::sleep(std::time::Duration::from_millis(300));
    // AF_PACKET, AF_XDP, UDP.
    for transport in 0..3 {
        let talk = |n| start(&system, (&network, 0), [transport, n], "talk");
        let listen = |n| start(&system, (&network, 1), [transport, n], "listen");
        let (listener, talker) = (listen(1), talk(1));
        wait();
        end(talker, Signal::KILL);
        let talker = talk(2);
        wait();
        end(listener, Signal::TERM);
        let listener = listen(2);
        wait();
        end(talker, Signal::TERM);
        let talker = talk(3);
        wait();
        end(talker, Signal::TERM);
        end(listener, Signal::TERM);
        for n in [1, 2] {
            let text = log(&system, &format!("listen{n}.log"));
            let count = |name: &str| text.lines().find_map(|line| line.strip_prefix(name));
            assert!(read(&text).len() > 5, "transport {transport}: {text}");
            // AF_XDP keeps 16 messages for a reader, who may be away for 20 intervals.
            assert!(transport == 1 || count("lost ") == Some("0"), "{transport}: {text}");
            assert_eq!(count("others "), Some("0"), "{transport}: {text}");
        }
    }
}

/// What a run has shown.
fn situations(drawn: Drawn, logs: &[String; 2], read: &BTreeMap<Name, Read>) -> BTreeSet<String> {
    let when = |drawn: bool, what: &str| drawn.then(|| what.to_owned());
    let all = || read.values();
    let has = |at: usize, what: &str| logs[at].lines().any(|line| line == what);
    let situations = [
        when(has(1, "repeated"), "repeated"),
        when(expired(&logs[1]) > 0, "expired"),
        when(has(0, "again"), "talker again"),
        when(has(1, "again"), "listener again"),
        when(drawn.second, "second talker"),
        when(drawn.long, "long messages"),
        when(drawn.stamps, "stamps"),
        when(drawn.step.is_some_and(|step| step.host == "a"), "talker's clock steps"),
        when(drawn.step.is_some_and(|step| step.host == "b"), "listener's clock steps"),
        when(drawn.lossy && all().any(|r| r.gap > 0), "losses"),
        when(all().any(|r| r.late), "late"),
        when(all().any(|r| !r.late), "in time"),
        when(all().any(|r| r.waited), "waited"),
        when(all().any(|r| !r.waited), "came later"),
    ];
    situations.into_iter().flatten().chain(all().map(|r| r.way.clone())).collect()
}

#[test]
fn every_figure_is_what_the_programs_own_books_say() {
    let kernel = permitted();
    let usual = seeds().iter().copied().eq(USUAL);
    for how in engines().filter(|how| kernel || !how.contains(&"netns")) {
        let mut seen = BTreeSet::new();
        for seed in seeds() {
            let drawn = Drawn::of(seed, how);
            let system = system(seed, how, drawn);
            let context = format!("BOOKS_SEED={seed} {how:?} {drawn:?}");
            println!("{context}");
            seen.extend(compare(how, drawn, &system, &context));
        }
        if usual {
            covers(how, &seen);
        }
    }
}

/// The default seeds draw every way of reading and every situation.
fn covers(how: &[&str], seen: &BTreeSet<String>) {
    let mut wanted = vec!["read", "read_wait", "read_timeout", "try_read", "read_latest", "select"];
    wanted.extend(["late", "in time", "repeated", "waited", "came later"]);
    wanted.extend(["losses", "talker again", "listener again", "expired"]);
    wanted.extend(["talker's clock steps", "listener's clock steps"]);
    wanted.extend((!is_virtual(how)).then_some("poll"));
    wanted.extend(how.contains(&"netns").then_some("second talker"));
    wanted.extend(notes_departures(how).then_some("stamps"));
    wanted.extend((how != STATIONS).then_some("long messages"));
    let missing: Vec<_> = wanted.iter().filter(|what| !seen.contains(**what)).collect();
    assert!(missing.is_empty(), "{how:?} never draws {missing:?}");
}
