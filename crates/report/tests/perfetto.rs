//! What the trace of runs for Perfetto shows of their records.

use crate::common::small::{log_of, one_channel, only_on, two_listeners, woken};
use crate::common::{got, log, sent, us};
use onbeat_model::record::{LoadSample, Record, RunLog, flag};
use onbeat_model::system::{Delay, NodeId, Noise, NoiseId, System};
use onbeat_model::tcp::{TcpFlow, TcpMessage, TcpObserved};
use onbeat_model::time::{NetTime, Span, SyncedTime};
use onbeat_model::units::Octets;
use onbeat_report::{TRACE_START, perfetto};
use proptest::prelude::*;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

fn text(system: &System, logs: &[RunLog]) -> String {
    let mut text = Vec::new();
    perfetto(system, logs, &mut text).expect("memory takes it");
    String::from_utf8(text).expect("UTF-8")
}

fn events(system: &System, logs: &[RunLog]) -> Vec<Value> {
    let mut trace: Value = serde_json::from_str(&text(system, logs)).expect("JSON");
    match trace["traceEvents"].take() {
        Value::Array(events) => events,
        other => panic!("no events: {other}"),
    }
}

/// The events of a category, each with its phase, name and the text of its time and duration.
fn of(system: &System, log: RunLog, category: &str) -> Vec<String> {
    let events = events(system, &[log]);
    let events = events.iter().filter(|event| event["cat"] == category);
    let shown = |event: &Value| {
        let [phase, name] = ["ph", "name"].map(|key| event[key].as_str().expect("text"));
        format!("{phase} {name} {} {}", event["ts"], event["dur"])
    };
    events.map(shown).collect()
}

/// A time in ns, of the decimal number in µs.
fn ns(micros: &Value) -> i128 {
    (micros.as_f64().expect("a number") * 1_000.0).round() as i128
}

#[test]
fn a_trace_has_tracks_messages_and_arrows() {
    let (system, _, log) = two_listeners();
    let text = text(&system, &[log]);
    assert!(text.starts_with(TRACE_START), "by this the command knows it");
    insta::assert_snapshot!("small_perfetto", text);
}

#[test]
fn a_time_has_all_digits_of_its_nanoseconds() {
    let (system, _) = one_channel();
    let mut log = log(&system);
    let day = 86_400_000_000_000;
    for at in [-1_001, -7, 0, 7, day + 1, i64::MAX] {
        let capture = Some(SyncedTime::from_ns(at));
        log.ends[0].records.push(Record { capture, ..Record::default() });
    }
    let text = text(&system, &[log]);
    for at in ["-1.001", "-0.007", "0.007", "86400000000.001", "9223372036854775.807"] {
        assert!(text.contains(&format!("\"ts\":{at},\"s\"")), "{at} in {text}");
    }
}

#[test]
fn network_time_is_shown_where_the_log_has_it() {
    let (system, _) = one_channel();
    let mut log = log_of(&system, &[Some(100)]);
    // The talker's clock is 1 ms ahead, the listener's 2 ms; this one wakes at 4 ms.
    let network = |us| Some(NetTime::ZERO + Span::from_us(us));
    log.ends[0].records[0].network = network(-1_000);
    let read = &mut log.ends[1].records[0];
    (read.wake, read.network) = (us(4_000), network(2_000));
    let begins = ["X c 0 -1000.0 10.0", "X c 0 -1905.0 3905.0"];
    assert_eq!(of(&system, log.clone(), "write"), begins[..1]);
    assert_eq!(of(&system, log.clone(), "receipt"), begins[1..]);
    assert_eq!(of(&system, log, "part"), ["X receive -1905.0 5.0", "X wait -1900.0 3900.0"]);
}

#[test]
fn what_is_not_known_is_left_out_and_what_runs_backwards_is_an_instant() {
    let (system, _) = one_channel();
    let mut log = log(&system);
    let capture = us(0);
    let unseen = Record { transfer: None, ..sent(0, 0) };
    log.ends[0].records = vec![unseen, Record { capture: None, ..sent(1, 0) }];
    let nothing = Record { capture, ..Record::default() };
    let back = Record { wake: us(40), ..got(2, 0, 100) };
    let overflowed = Record { flags: flag::OVERFLOWED, receive: None, ..got(3, 0, 70) };
    log.ends[1].records = vec![nothing, back, overflowed];
    assert_eq!(of(&system, log.clone(), "write"), ["i c 0 0.0 null"]);
    assert_eq!(of(&system, log.clone(), "receipt"), Vec::<String>::new());
    assert_eq!(of(&system, log.clone(), "copy"), ["i c 2 copy 40.0 null"]);
    assert_eq!(of(&system, log.clone(), "loss"), ["i c 3 lost 65.0 null"]);
    assert_eq!(of(&system, log, "message"), Vec::<String>::new());
    let log = only_on(1, log_of(&system, &[Some(100), None]));
    assert_eq!(of(&system, log.clone(), "receipt"), ["X c 0 95.0 5.0"]);
    assert_eq!(of(&system, log, "message"), Vec::<String>::new());
}

#[test]
fn messages_at_a_time_have_tracks_of_their_own() {
    let (system, _) = one_channel();
    let mut log = log_of(&system, &[Some(100); 3]);
    // What the second waits for ends when the third has come, and with it the first track is free.
    for (read, until) in log.ends[1].records.iter_mut().zip([30_000, 50_000, 60_000]) {
        read.wake = us(until);
    }
    let mut tracks: BTreeMap<_, Vec<_>> = BTreeMap::new();
    let events = events(&system, &[log]);
    for event in events.iter().filter(|event| event["cat"] == "receipt") {
        let track = event["tid"].as_u64().expect("a number");
        tracks.entry(track).or_default().push(event["name"].as_str().expect("text"));
    }
    assert_eq!(tracks.into_values().collect::<Vec<_>>(), [vec!["c 0", "c 2"], vec!["c 1"]]);
    let named = |name: &str| events.iter().filter(|event| event["args"]["name"] == name).count();
    assert_eq!((named("c listener"), named("c listener (2)"), named("c listener (3)")), (1, 1, 0));
}

#[test]
fn each_run_has_processes_with_its_scenarios_name() {
    let (system, _) = one_channel();
    let mut logs = [log_of(&system, &[Some(100)]), log_of(&system, &[Some(100)])];
    logs[1].scenario = "noise \"x\"".into();
    let events = events(&system, &logs);
    let names: Vec<_> = events.iter().filter(|event| event["name"] == "process_name").collect();
    let shown: Vec<_> = names.iter().map(|event| event["args"]["name"].as_str()).collect();
    let expected = ["a", "b", "noise \"x\": a", "noise \"x\": b"];
    assert_eq!(shown, expected.map(Some));
    let numbers: BTreeSet<_> = names.iter().map(|event| event["pid"].as_u64()).collect();
    assert_eq!(numbers.len(), 4);
    let mut other = log_of(&system, &[Some(100)]);
    other.ends[1].node.0 = 7;
    assert!(perfetto(&system, [&other], &mut Vec::new()).is_err());
}

#[test]
fn messages_over_tcp_and_noise_are_shown_too() {
    let (mut system, _) = one_channel();
    system.tcp = vec![TcpFlow {
        name: "flow".into(),
        talker: NodeId(1),
        listener: NodeId(0),
        writes: vec![Octets::new(8)],
        interval: Span::from_ms(10),
        phase: Span::ZERO,
        after: Span::from_ms(1),
        lag: Delay::default(),
        nagle: false,
        delayed_ack: false,
        origin: Default::default(),
    }];
    system.noise = vec![Noise {
        name: "load".into(),
        from: NodeId(0),
        to: NodeId(1),
        payload: Octets::new(100),
        interval: Span::from_us(10),
        jitter: false,
        start: NetTime::ZERO,
        on: Span::from_ms(1),
        off: Span::ZERO,
        origin: Default::default(),
    }];
    let mut log = log(&system);
    let at = |us: i64| SyncedTime::ZERO + Span::from_us(us);
    let message = TcpMessage { tag: at(0), capture: at(1), receive: Some(at(300)), handled: None };
    let handled = TcpMessage { handled: Some(at(1_000)), ..message };
    let unfinished = TcpMessage { receive: None, ..message };
    let messages = vec![message, handled, unfinished];
    log.tcp = vec![TcpObserved { messages, ..TcpObserved::default() }];
    let (noise, at) = (NoiseId(0), NetTime::ZERO + Span::from_ms(5));
    log.load = vec![LoadSample { noise, at, offered_bits: 7, delivered_bits: 5 }];
    assert_eq!(of(&system, log.clone(), "write").len(), 3);
    let receipts = ["i flow 0 300.0 null", "X flow 1 300.0 700.0"];
    assert_eq!(of(&system, log.clone(), "receipt"), receipts);
    assert_eq!(of(&system, log.clone(), "message").len(), 4);
    assert_eq!(of(&system, log, "noise"), ["C load 5000.0 null"]);
}

/// A time near others, or far from all, or none.
fn any_time() -> impl Strategy<Value = Option<SyncedTime>> {
    let near = (0_i64..40).prop_map(SyncedTime::from_ns);
    let any = any::<i64>().prop_map(SyncedTime::from_ns);
    prop_oneof![8 => near.prop_map(Some), 1 => any.prop_map(Some), 2 => Just(None)]
}

fn any_record() -> impl Strategy<Value = Record> {
    let times = [(); 5].map(|()| any_time());
    let rest = (any::<Option<i16>>(), 0..4_u64, 0..512_u32, 0..3_u32);
    (times, rest).prop_map(|([capture, transfer, receive, wake_target, wake], rest)| {
        let (network, sequence, flags, gap) = rest;
        let network = network.map(|ns| NetTime::from_ns(ns.into()));
        Record { capture, transfer, receive, wake_target, wake, network, sequence, flags, gap }
    })
}

proptest! {
    #[test]
    fn slices_of_a_track_never_overlap_and_arrows_have_two_ends(
        sent in prop::collection::vec(any_record(), 0..90),
        received in prop::collection::vec(any_record(), 0..90),
    ) {
        let (system, _) = one_channel();
        let mut log = log(&system);
        (log.ends[0].records, log.ends[1].records) = (sent, received);
        let events = events(&system, &[log]);
        let mut open: BTreeMap<u64, Vec<i128>> = BTreeMap::new();
        for event in events.iter().filter(|event| event["ph"] == "X") {
            let [begin, took] = ["ts", "dur"].map(|key| ns(&event[key]));
            // Times of years lose digits in this test.
            if begin.abs() > 1 << 40 || took > 1 << 40 {
                continue;
            }
            let open = open.entry(event["tid"].as_u64().expect("a number")).or_default();
            open.retain(|end| *end > begin);
            prop_assert!(open.iter().all(|end| begin + took <= *end), "{event}");
            open.push(begin + took);
        }
        let mut arrows: BTreeMap<u64, Vec<(&str, &Value)>> = BTreeMap::new();
        for pair in events.windows(2).filter(|pair| pair[1]["cat"] == "message") {
            let id = pair[1]["id"].as_u64().expect("a number");
            let phase = pair[1]["ph"].as_str().expect("text");
            prop_assert_eq!(&pair[0]["tid"], &pair[1]["tid"]);
            prop_assert_eq!(&pair[0]["ts"], &pair[1]["ts"]);
            let expected = if phase == "s" { "write" } else { "receipt" };
            prop_assert_eq!(&pair[0]["cat"], expected);
            arrows.entry(id).or_default().push((phase, &pair[0]["name"]));
        }
        for ends in arrows.values() {
            let &[("s", write), ("f", receipt)] = &ends[..] else { panic!("{ends:?}") };
            prop_assert_eq!(write, receipt);
        }
    }
}

#[test]
fn a_program_that_waits_after_its_write_is_shown_waiting() {
    let (system, _) = one_channel();
    let mut log = log_of(&system, &[None]);
    let written = Record { receive: us(4), ..woken(sent(0, 0), 500) };
    log.ends[0].records[0] = written;
    assert_eq!(of(&system, log.clone(), "write"), ["X c 0 0.0 10.0"]);
    assert_eq!(of(&system, log.clone(), "part"), ["X queue 4.0 6.0", "X wait 10.0 1990.5"]);
    let events = events(&system, &[log]);
    let write = events.iter().find(|event| event["cat"] == "write").expect("a write");
    assert_eq!(write["args"]["lost_at"], serde_json::json!(["b"]));
    assert_eq!(write["args"]["wake_error_ns"], -500);
}
