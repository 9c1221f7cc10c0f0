//! Two programs that keep their own books on every figure of a channel, in every engine: what the
//! library tells them, and what the records say afterwards, are compared with what the messages
//! themselves say and with the clock before and after each call. `BOOKS_SEED=N` runs one seed; what
//! the default seeds draw together is tested too.

mod common;

use common::{TestSystem, channel, number, permitted, results, two_hosts};
use std::collections::{BTreeMap, BTreeSet};

/// How to run in each engine, and whether frames can be lost on purpose there.
const ENGINES: &[(&[&str], bool)] = &[
    (&["run", "."], true),
    (&["run", ".", "--time", "real"], true),
    (&["run", ".", "--network", "netns"], false),
    (&["run", ".", "--network", "netns", "--transport", "udp4"], false),
];

fn seeds() -> Vec<u64> {
    let one = std::env::var("BOOKS_SEED").ok().and_then(|text| text.parse().ok());
    one.map_or_else(|| (1..=4).collect(), |seed| vec![seed])
}

/// The system of a seed: clocks that differ, a fixed delay that most or no messages keep, and one
/// frame of ten lost.
fn system(seed: u64, lossy: bool) -> TestSystem {
    let fixed_delay_us = if seed.is_multiple_of(2) { 2_000 } else { 1 };
    let program = |name: &str, host: &str, more: &str| {
        format!(
            "[[program]]\nname = \"{name}\"\nhost = \"{host}\"\n\
             command = [\"build/books\", {more}]\n"
        )
    };
    let fault = if lossy { "[[fault]]\nlink = \"b\"\nerrors_ppb = 100_000_000\n" } else { "" };
    let talker = program("left", "a", &format!("\"talk\", \"{seed}\""));
    let listens = format!("\"listen\", \"{seed}\", \"{}\"", fixed_delay_us * 1_000);
    let listener = program("right", "b", &listens);
    let text = two_hosts(&format!("{talker}{listener}{fault}"))
        .replacen(
            "size_octets = 8",
            &format!("size_octets = 24\nfixed_delay_us = {fixed_delay_us}"),
            1,
        )
        .replacen(
            "name = \"b\"\n",
            "name = \"b\"\nclock = { offset_ns = 700, drift_ppb = 9000 }\n",
            1,
        )
        .replace("duration_ms = 500\nhang_timeout_s = 2", "duration_ms = 600\nhang_timeout_s = 9");
    let system = TestSystem::new(&text);
    system.program("books.c", "books");
    system
}

/// A message that the listener's program had.
struct Read {
    way: String,
    number: i64,
    receipt: i64,
    arrived: i64,
    late: bool,
    gap: i64,
    waited: bool,
}

/// What the listener's program wrote down, by capture time; and whether it was given one again.
fn read(system: &TestSystem) -> (BTreeMap<i64, Read>, bool) {
    let text = std::fs::read_to_string(system.path().join("listener.log")).expect("a log");
    let mut all = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with("lost") && *line != "repeated") {
        let (way, figures) = line.split_once(' ').expect("a way of reading");
        let figures: Vec<i64> = figures.split(' ').map(|f| f.parse().expect("a number")).collect();
        let [number, capture, receipt, arrived, gap, flags, waited] = figures[..] else {
            panic!("{line}")
        };
        let (late, waited) = (flags & 1 != 0, waited == 1);
        let read = Read { way: way.to_owned(), number, receipt, arrived, late, gap, waited };
        assert!(all.insert(capture, read).is_none(), "{capture} was read twice");
    }
    (all, text.lines().any(|line| line == "repeated"))
}

/// A line of `messages.csv`: sequence, arrival, receipt, late, lost.
type Row = (i64, Option<i64>, Option<i64>, bool, bool);

fn rows(system: &TestSystem) -> BTreeMap<i64, Row> {
    let text = std::fs::read_to_string(system.path().join("out/1-run/messages.csv"));
    let text = text.expect("messages");
    let row = |line: &str| {
        let fields: Vec<_> = line.split(',').collect();
        let at = |n: usize| fields[n].parse::<i64>().ok();
        assert_eq!(fields[12], "0", "a duplicate: {line}");
        let row = (at(2).expect("a number"), at(5), at(6), fields[11] == "1", fields[13] == "1");
        (at(3).expect("a capture"), row)
    };
    text.lines().skip(1).map(row).collect()
}

/// Compares what one run's programs wrote down with its records and results; what was drawn.
fn compare((how, lossy): (&[&str], bool), system: &TestSystem, context: &str) -> BTreeSet<String> {
    // A busy machine lets programs do less.
    let longer = if how.len() > 2 { &["--duration", "2s"][..] } else { &[] };
    let results = results(&[how, longer].concat(), system.path(), if lossy { 3 } else { 0 });
    let c = channel(&results, "c");
    let written = std::fs::read_to_string(system.path().join("talker.log")).expect("a log");
    let (read, repeated) = read(system);
    let rows = rows(system);
    let written: BTreeMap<i64, i64> = written
        .lines()
        .map(|line| line.split_once(' ').expect("two figures"))
        .map(|(n, capture)| (capture.parse().expect("a time"), n.parse().expect("a number")))
        .collect();
    assert!(written.len() > 10 && read.len() > 5, "{context} {c}");
    assert!(rows.iter().map(|(at, row)| (*at, row.0)).eq(written), "{context}: what was written");
    for (capture, own) in &read {
        let (sequence, arrived, receipt, late, lost) = rows[capture];
        let recorded = (sequence, arrived, receipt, late, lost);
        let wanted = (own.number, Some(own.arrived), Some(own.receipt), own.late, false);
        assert_eq!(recorded, wanted, "{context}: {capture}");
        if how.len() == 2 {
            assert_eq!(own.receipt, own.arrived, "{context}: no host delays its messages");
        } else if own.waited && ["read", "select"].contains(&own.way.as_str()) {
            assert!(own.receipt > own.arrived, "{context}: {} leaves out the wake-up", own.way);
        }
    }
    let lost = rows.values().filter(|row| row.4).count() as i64;
    let latencies = || rows.iter().filter_map(|(at, row)| Some(row.2? - at));
    assert_eq!(number(c, "sent"), rows.len() as i64, "{context}");
    assert_eq!(number(c, "lost"), lost, "{context}");
    assert_eq!(number(c, "received"), latencies().count() as i64, "{context}");
    assert_eq!(number(c, "late"), rows.values().filter(|row| row.3).count() as i64, "{context}");
    assert_eq!(Some(number(c, "latency_ns.min")), latencies().min(), "{context}");
    assert_eq!(Some(number(c, "latency_ns.max")), latencies().max(), "{context}");
    let when = |drawn: bool, what: &str| drawn.then(|| what.to_owned());
    let all = || read.values();
    let situations = [
        when(repeated, "repeated"),
        when(all().any(|r| r.late), "late"),
        when(all().any(|r| !r.late), "in time"),
        when(all().any(|r| r.gap > 0), "gap"),
        when(all().any(|r| r.waited), "waited"),
        when(all().any(|r| !r.waited), "came later"),
    ];
    situations.into_iter().flatten().chain(all().map(|r| r.way.clone())).collect()
}

#[test]
fn every_figure_is_what_the_programs_own_books_say() {
    let kernel = permitted();
    for (how, lossy) in ENGINES {
        if how.contains(&"netns") && !kernel {
            continue;
        }
        let mut drawn = BTreeSet::new();
        for seed in seeds() {
            let system = system(seed, *lossy);
            drawn.extend(compare((how, *lossy), &system, &format!("BOOKS_SEED={seed} {how:?}")));
        }
        if seeds().len() > 1 {
            covers(how, *lossy, &drawn);
        }
    }
}

/// The default seeds draw every way of reading and every situation.
fn covers(how: &[&str], lossy: bool, drawn: &BTreeSet<String>) {
    let mut wanted = vec!["read", "read_wait", "read_timeout", "try_read", "read_latest", "select"];
    wanted.extend(["late", "in time", "repeated", "waited", "came later"]);
    wanted.extend(lossy.then_some("gap"));
    wanted.extend((how.len() > 2).then_some("poll"));
    let missing: Vec<_> = wanted.iter().filter(|what| !drawn.contains(**what)).collect();
    assert!(missing.is_empty(), "{how:?} never draws {missing:?}");
}
