//! `--perfetto`: the trace of a run is of the same messages as its other files.

use crate::common::{TestSystem, number, results, run, talker_and_listener};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The events of a trace, and their times in ns as its text has them: a parser would round them.
fn events(path: &Path) -> Vec<(Value, i64)> {
    let text = std::fs::read_to_string(path).expect("the trace");
    let trace: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(trace["displayTimeUnit"], "ns");
    // One event a line, between the first line and the last one.
    let lines = text.lines().skip(1).filter(|line| *line != "]}");
    let event = |line: &str| {
        let event: Value = serde_json::from_str(line.trim_end_matches(',')).expect("JSON");
        let (_, rest) = line.split_once("\"ts\":").expect("a time");
        let at = rest.split([',', '}']).next().expect("a number");
        let (micros, rest) = at.split_once('.').expect("a fraction");
        assert_eq!(rest.len(), 3, "{at}");
        (event, format!("{micros}{rest}").parse().expect("a number"))
    };
    let events: Vec<_> = lines.map(event).collect();
    assert_eq!(trace["traceEvents"].as_array().map(Vec::len), Some(events.len()));
    events
}

/// The events of a category.
fn of<'a>(events: &'a [(Value, i64)], category: &str) -> Vec<&'a (Value, i64)> {
    events.iter().filter(|(event, _)| event["cat"] == category).collect()
}

/// How many lines of `messages.csv` are of received messages, and the capture of each message.
fn messages(directory: &Path) -> (usize, BTreeMap<i64, i64>) {
    let text = std::fs::read_to_string(directory.join("messages.csv")).expect("messages");
    let mut lines = text.lines();
    let names: Vec<_> = lines.next().expect("a header").split(',').collect();
    let column = |name| names.iter().position(|other| *other == name).expect("a column");
    let (sequence, capture) = (column("sequence"), column("capture_ns"));
    let received = column("receive_ns");
    let lines: Vec<Vec<_>> = lines.map(|line| line.split(',').collect()).collect();
    let number = |text: &str| text.parse::<i64>().expect("a number");
    let captures = lines.iter().map(|line| (number(line[sequence]), number(line[capture])));
    let receipts = lines.iter().filter(|line| !line[received].is_empty()).count();
    (receipts, captures.collect())
}

#[test]
fn the_trace_of_a_run_has_each_message_once_at_its_nanosecond() {
    let system = talker_and_listener("wait", "wait");
    let path = system.path().join("trace.json");
    let how = ["run", ".", "--seed", "7", "--perfetto", "trace.json"];
    let found = results(&how, system.path(), 0);
    let first = std::fs::read(&path).expect("the trace");
    let channel = &found["runs"][0]["channels"][0];
    let events = events(&path);
    let (writes, receipts) = (of(&events, "write"), of(&events, "receipt"));
    assert_eq!(writes.len() as i64, number(channel, "sent"));
    assert_eq!(receipts.len() as i64, number(&channel["listeners"][0], "received"));
    assert!(receipts.len() > 100, "as many as the programs wrote: {}", receipts.len());
    let (received, captures) = messages(&system.path().join("out/1-run"));
    assert_eq!(received, receipts.len());
    assert_eq!(captures.len(), writes.len());
    for (write, at) in &writes {
        assert_eq!(captures[&number(write, "args.sequence")], *at, "{write}");
        assert_eq!(number(write, "args.capture_ns"), *at, "both clocks are right");
    }
    for (receipt, at) in &receipts {
        // From the arrival until the program continued, at the capture and D.
        assert_eq!(number(receipt, "args.arrive_ns"), *at, "{receipt}");
        let until = *at + (receipt["dur"].as_f64().expect("a number") * 1_000.0).round() as i64;
        let capture = number(receipt, "args.capture_ns");
        assert_eq!(until, capture + number(receipt, "args.end_to_end_ns"), "{receipt}");
    }
    let ends = |phase: &str| -> BTreeSet<i64> {
        let arrows = of(&events, "message").into_iter().filter(|(event, _)| event["ph"] == phase);
        arrows.map(|(event, _)| number(event, "id")).collect()
    };
    assert_eq!((ends("s").len(), ends("s")), (receipts.len(), ends("f")));
    assert_eq!(of(&events, "message").len(), 2 * receipts.len());
    let name = |what: &str| -> Vec<String> {
        let named = events.iter().filter(|(event, _)| event["name"] == what);
        named.map(|(event, _)| event["args"]["name"].as_str().expect("text").into()).collect()
    };
    assert_eq!(name("process_name"), ["a", "b"]);
    assert_eq!(name("thread_name"), ["c talker", "c listener"]);

    // Another run of the seed, and what is made of this one's records.
    results(&how, system.path(), 0);
    assert!(std::fs::read(&path).expect("the trace") == first, "a seed has one trace");
    run(&["report", ".", "--perfetto", "again.json"], system.path(), 0);
    let again = std::fs::read(system.path().join("again.json")).expect("the trace");
    assert!(again == first, "the records have all of it");
}

#[test]
fn a_trace_replaces_only_traces_and_has_all_scenarios() {
    let scenarios = "[[scenario]]\nname = \"quiet\"\n[[scenario]]\nname = \"short\"\n\
                     duration_ms = 20\n";
    let system = TestSystem::new(&crate::common::two_hosts(scenarios));
    std::fs::write(system.path().join("notes.txt"), "mine").expect("written");
    let how = |file| ["run", ".", "--all-scenarios", "--perfetto", file];
    for (file, why) in [("notes.txt", "something else"), ("none/trace.json", "No such file")] {
        let refused = run(&how(file), system.path(), 5);
        let said = String::from_utf8(refused.stderr).expect("UTF-8");
        assert!(said.contains(file) && said.contains(why), "{said}");
        assert!(!system.path().join("out").exists(), "before anything runs");
    }
    assert_eq!(std::fs::read(system.path().join("notes.txt")).expect("notes"), b"mine");
    run(&how("trace.json"), system.path(), 0);
    run(&how("trace.json"), system.path(), 0);
    let refused = run(&how("out/trace.json"), system.path(), 2);
    let said = String::from_utf8(refused.stderr).expect("UTF-8");
    assert!(said.contains("out/trace.json is in ./out, which is replaced"), "{said}");
    let events = events(&system.path().join("trace.json"));
    let processes = events.iter().filter(|(event, _)| event["name"] == "process_name");
    let names: Vec<_> = processes.map(|(event, _)| event["args"]["name"].clone()).collect();
    assert_eq!(names, ["quiet: a", "quiet: b", "short: a", "short: b"]);
    let left = std::fs::read_dir(system.path()).expect("the directory").flatten();
    let partial = left.filter(|entry| entry.file_name().to_string_lossy().contains("partial"));
    assert_eq!(partial.count(), 0, "nothing is left behind");
}
