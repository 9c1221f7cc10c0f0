//! What is refused, and as what.

use super::descriptions::{BEGIN, bridge, channel, hosts, link, system};
use onbeat_model::codes::network_code as codes;
use onbeat_model::diagnostic::{Code, Diagnostic};
use onbeat_model::system::NodeId;
use onbeat_model::time::Span;
use onbeat_model::units::Octets;
use onbeat_network_code::planning::{BusOptions, DRIFT_PPB, plan_bus};

/// No best effort but what is described.
const QUIET: BusOptions = BusOptions {
    master: None,
    drift_ppb: DRIFT_PPB,
    best_effort: Octets::new(0),
    slot_error: None,
};

/// Hosts `a`, `b` and `c` at a bridge of so many Mbit/s.
fn star(mbps: i64) -> String {
    let mut text = BEGIN.to_owned();
    hosts(&mut text, &["a", "b", "c"]);
    bridge(&mut text, "s", 1_000);
    for host in ["a", "b", "c"] {
        link(&mut text, [host, "s"], mbps, 100);
    }
    text
}

fn with_channel(mbps: i64) -> String {
    let mut text = star(mbps);
    channel(&mut text, 0, "x", 8, 1_000_000, "a", &["b"]);
    text
}

fn errors(text: &str, options: BusOptions) -> Vec<Diagnostic> {
    plan_bus(&system(text), &options).expect_err("it is refused")
}

/// The only error, which says all of this.
#[track_caller]
fn refused(text: &str, code: Code, says: &[&str]) {
    let errors = errors(text, QUIET);
    let [error] = &errors[..] else { panic!("{errors:?}") };
    assert_eq!(error.code, code, "{}", error.message);
    for part in says {
        assert!(error.message.contains(part), "{}", error.message);
    }
    assert!(!error.help.is_empty());
}

#[test]
fn traffic_that_stations_do_not_carry() {
    let plain = with_channel(1_000);
    let in_channel = |line: &str| plain.replace("class = \"A\"", &format!("class = \"A\"\n{line}"));
    refused(&in_channel("burst_messages = 3"), codes::UNCARRIED, &["`x`", "3 messages"]);
    let mut ring = BEGIN.to_owned();
    hosts(&mut ring, &["a", "b"]);
    for name in ["s", "t", "u", "v"] {
        bridge(&mut ring, name, 1_000);
    }
    for ends in [["a", "s"], ["s", "t"], ["t", "v"], ["v", "u"], ["u", "s"], ["v", "b"]] {
        link(&mut ring, ends, 1_000, 100);
    }
    channel(&mut ring, 0, "x", 8, 1_000_000, "a", &["b"]);
    let replicated = ring.replace("class = \"A\"", "class = \"A\"\ndisjoint_paths = 2");
    refused(&replicated, codes::UNCARRIED, &["`x`", "replicated"]);
    refused(&ring, codes::TOPOLOGY, &["loop"]);
    let srp = plain.replace("[run]", "[run]\nreservation = \"srp\"");
    refused(&srp, codes::UNCARRIED, &["srp"]);
    let stream = format!("{plain}{STREAM}");
    refused(&stream, codes::UNCARRIED, &["[[stream]]", "`video`"]);
    let tcp = format!("{plain}{TCP}");
    refused(&tcp, codes::UNCARRIED, &["[[tcp]]", "`log`"]);
}

const STREAM: &str = "[[stream]]\nname = \"video\"\ntraffic_class = 4\ntalker = \"a\"\n\
                      listeners = [\"b\"]\nframe_octets = 200\ninterval_ns = 1000000\n";
const TCP: &str = "[[tcp]]\nname = \"log\"\ntalker = \"a\"\nlistener = \"b\"\n\
                   writes_octets = [100]\ninterval_ns = 1000000\n";

#[test]
fn channels_that_are_too_many_or_too_long() {
    refused(&star(1_000), codes::NOTHING, &[]);
    let mut many = star(1_000);
    for number in 0..256 {
        channel(&mut many, number, &format!("x{number}"), 8, 10_000_000, "a", &["b"]);
    }
    refused(&many, codes::MESSAGES, &["256", "255"]);
    // 24 + 1,472 octets are 374 words.
    let sized = |octets: usize| {
        let mut text = star(1_000);
        channel(&mut text, 0, "x", octets, 1_000_000, "a", &["b"]);
        text
    };
    refused(&sized(1_473), codes::PAYLOAD, &["`x`", "375", "374"]);
    assert!(plan_bus(&system(&sized(1_472)), &QUIET).is_ok());
}

#[test]
fn where_late_stations_have_no_room_help_says_how_late_they_are() {
    let late = |slot_error| BusOptions { slot_error: Some(Span::from_us(slot_error)), ..QUIET };
    let text = with_channel(1_000);
    assert!(plan_bus(&system(&text), &late(20)).is_ok());
    for error in errors(&text, late(700)) {
        assert!(error.help.ends_with("with less `slot_error_us`: it is 700 µs"), "{error:?}");
    }
}

/// As many channels as there are messages have room, and a program.
#[test]
fn a_station_sends_as_many_channels_as_there_are_messages() {
    let mut text = star(1_000);
    for number in 0..255 {
        let interval = if number % 2 == 0 { 10_000_000 } else { 20_000_000 };
        channel(&mut text, number, &format!("x{number}"), 8, interval, "a", &["b"]);
        text += "fixed_delay_us = 30000\n";
    }
    let plan = plan_bus(&system(&text), &QUIET).expect("there is room");
    assert_eq!(plan.stations[1].program.buffers.len(), 256, "with that of hyper-rounds");
}

#[test]
fn networks_that_are_no_bus() {
    let plain = with_channel(1_000);
    let mixed = plain.replacen("rate_mbps = 1000", "rate_mbps = 100", 1);
    refused(&mixed, codes::RATE, &["1 Gb/s", "100 Mb/s"]);
    refused(&with_channel(2_500), codes::RATE, &["2.5 Gb/s"]);
    let port = |line: &str| format!("{plain}[[port]]\nname = \"s.p1\"\n{line}\n");
    let gates = "gates = [{ entries = [{ open = [0], interval_ns = 1000 }] }]";
    refused(&port(gates), codes::PORT, &["gates"]);
    refused(&port("asynchronous = [7]"), codes::PORT, &["shapes"]);
    refused(&port("preemptable = [7]"), codes::PORT, &["interrupt"]);
    refused(&port("vlans = [2]"), codes::PORT, &["VLANs"]);
}

#[test]
fn a_bridge_is_no_master() {
    let options = BusOptions { master: Some(NodeId(3)), ..QUIET };
    let errors = errors(&with_channel(1_000), options);
    assert_eq!(errors[0].code, codes::MASTER, "{errors:?}");
    assert!(errors[0].message.contains("`s`"));
}

#[test]
fn stations_that_no_bridge_joins() {
    let mut text = with_channel(1_000);
    hosts(&mut text, &["d"]);
    bridge(&mut text, "t", 0);
    link(&mut text, ["d", "t"], 1_000, 100);
    let system = system(&text);
    let options = BusOptions { master: Some(NodeId(3)), ..QUIET };
    assert_eq!(system.node(NodeId(3)).name, "d");
    let errors = plan_bus(&system, &options).expect_err("it is alone");
    assert_eq!(errors[0].code, codes::TOPOLOGY, "{errors:?}");
}

#[test]
fn rounds_without_room() {
    // A frame at 1 Gbit/s takes 608 ns, and so does the beginning of a round.
    let short = with_channel(1_000).replace("interval_ns = 1000000", "interval_ns = 1000");
    refused(&short, codes::ROUND, &["`x`", "1 µs"]);
    // 20 frames of 6.8 µs at 100 Mbit/s each 100 µs.
    let mut full = star(100);
    for number in 0..20 {
        channel(&mut full, number, &format!("x{number}"), 8, 100_000, "a", &["b"]);
    }
    refused(&full, codes::LOAD, &["% too much", "`x0`", "15 more"]);
    // Each second and each third round of 240 µs: in one of six both are there, of which each needs
    // 99 µs; the last of it has to be received in the round, 100 µs later.
    let mut pair = star(100);
    channel(&mut pair, 0, "x", 1_200, 480_000, "a", &["b"]);
    channel(&mut pair, 1, "y", 1_200, 720_000, "a", &["b"]);
    refused(&pair, codes::PLACE, &["no room", "`x`", "`y`"]);
}

#[test]
fn programs_that_are_too_long() {
    // 7 × 11 × 13 × 17 rounds of 1 ms, of which no two that follow each other are alike.
    let mut odd = star(1_000);
    for (number, ms) in [7, 11, 13, 17].into_iter().enumerate() {
        let name = format!("x{number}");
        channel(&mut odd, number, &name, 8, ms * 1_000_000, "a", &["b", "c"]);
        odd += "fixed_delay_us = 30000\n";
    }
    let errors = errors(&odd, QUIET);
    assert_eq!(errors.len(), 3, "each station's: {errors:?}");
    assert!(errors.iter().all(|error| error.code == codes::PROGRAM));
    assert!(errors[0].message.contains("instructions"));
    // 19 times as many are not even counted.
    channel(&mut odd, 4, "more", 8, 19_000_000, "a", &["b"]);
    odd += "fixed_delay_us = 30000\n";
    refused(&odd, codes::PROGRAM, &["65536 rounds"]);
}

#[test]
fn several_reasons_are_told_at_once() {
    let mut text = with_channel(1_000);
    channel(&mut text, 1, "y", 1_476, 1_000_000, "a", &["b"]);
    let text = text.replacen("class = \"A\"", "class = \"A\"\nburst_messages = 2", 1);
    let found: Vec<_> = errors(&text, QUIET).iter().map(|error| error.code).collect();
    assert_eq!(found, [codes::UNCARRIED, codes::PAYLOAD]);
}
