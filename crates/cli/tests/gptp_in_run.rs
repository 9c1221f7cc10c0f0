//! gPTP that takes part in runs and simulations: what fails in them moves the clocks of those very
//! runs, what programs read, and what is promised.

mod common;

use common::{TestSystem, channel, number, programs, results, root, two_hosts};
use serde_json::Value;

const SECOND: i64 = 1_000_000_000;

/// The results of the ring's variant, in which the grandmaster fails.
fn ring(change: impl Fn(String) -> String, verb: &str) -> Value {
    let path = root().join("examples/04-tsn-ring/gptp.toml");
    let text = std::fs::read_to_string(path).expect("the variant");
    let system = TestSystem::new(&change(text));
    results(&[verb, "."], system.path(), 0)
}

fn clock<'a>(results: &'a Value, node: &str) -> &'a Value {
    let clocks = results["clocks"].as_array().or(results["runs"][0]["clocks"].as_array());
    let named = |clock: &&Value| clock["node"] == node;
    clocks.expect("clocks").iter().find(named).unwrap_or_else(|| panic!("no clock of {node}"))
}

fn error(clock: &Value, phase: &str) -> i64 {
    number(clock, &format!("{phase}.error_ns"))
}

#[test]
fn a_grandmaster_that_dies_moves_the_clocks_of_the_ring_and_they_come_back() {
    let seen = ring(|text| text, "run");
    let nodes = ["plc", "drive", "camera", "north", "east", "south"];
    let clocks = nodes.map(|node| clock(&seen, node));
    for clock in clocks {
        assert_eq!(number(clock, "fault_ns"), 5 * SECOND, "{clock}");
        assert!(error(clock, "before") > 0, "{clock}");
        assert!(error(clock, "before") <= number(clock, "assumed_ns"), "{clock}");
        assert_eq!(clock["grandmaster"], "west", "{clock}");
    }
    let worst =
        |phase: &str| clocks.map(|clock| error(clock, phase)).into_iter().max().expect("all");
    let [before, during, after] = ["before", "during", "after"].map(worst);
    println!("before {before} ns, during {during} ns, after {after} ns");
    // Nobody has true time any more: oscillators go their way, and slew back. No clock steps.
    assert!(during > before * 2 && during < 2_000, "{before} {during}");
    assert!(after < during, "{during} {after}");
    let beyond = clocks.into_iter().filter(|clock| !clock["beyond_ns"].is_null());
    for clock in beyond {
        let back = number(clock, "back_after_ns");
        assert!((3 * SECOND..10 * SECOND).contains(&back), "{clock}");
    }
    let dead = clock(&seen, "west");
    assert_eq!(
        [error(dead, "before"), error(dead, "during")],
        [0, 0],
        "its own clock is true time"
    );
    assert!(dead["beyond_ns"].is_null());
    // The same seed gives the same, octet for octet; other oscillators give other records.
    let again = ring(|text| text, "run");
    assert_eq!(seen, again);
    let seeded = ring(|text| text.replace("in_run = true", "in_run = true\nseed = 6"), "run");
    assert_ne!(seen["runs"][0]["record_hash"], seeded["runs"][0]["record_hash"]);
}

#[test]
fn what_counts_with_better_clocks_is_not_judged() {
    let beyond = |seen: &Value| {
        let clocks = seen["clocks"].as_array().expect("clocks");
        clocks.iter().any(|clock| !clock["beyond_ns"].is_null())
    };
    let quiet = |text: String| text.split("[[fault]]").next().expect("a text").to_owned();
    let kept = ring(quiet, "simulate");
    assert!(!beyond(&kept), "{:#}", kept["clocks"]);
    let verdict = |seen: &Value| seen["flows"][1]["verdict"].clone();
    assert_eq!(verdict(&kept), "kept", "{:#}", kept["flows"][1]);
    let failed = ring(|text| text, "simulate");
    assert!(beyond(&failed), "{:#}", failed["clocks"]);
    assert_eq!(verdict(&failed), "not judged", "{:#}", failed["flows"][1]);
    let why = failed["flows"][1]["verdict_reason"].as_str().expect("a reason");
    assert!(why.contains("the clock of `") && why.contains("the plan counts with"), "{why}");
}

#[test]
fn a_link_that_fails_costs_the_ring_less_than_its_grandmaster() {
    let link = |text: String| {
        let node = "node = \"west\"";
        assert!(text.contains(node));
        text.replace(node, "link = \"west.south\"")
    };
    let [by_link, by_node] = [ring(link, "run"), ring(|text| text, "run")];
    // South has the time from the other side, with a path that is two links longer.
    for node in ["south", "east", "plc"] {
        let clock = clock(&by_link, node);
        assert_eq!(clock["grandmaster"], "west");
        assert!(number(clock, "during.from_grandmaster_ns") < 1_000, "{clock}");
    }
    let worst = |seen: &Value| {
        let clocks = seen["runs"][0]["clocks"].as_array().expect("clocks").clone();
        clocks.iter().map(|clock| error(clock, "during")).max().expect("clocks")
    };
    assert!(worst(&by_link) < worst(&by_node), "{} {}", worst(&by_link), worst(&by_node));
}

/// A host whose link fails for some seconds, with a program on it; the other one is grandmaster.
fn isolated() -> TestSystem {
    let fault = "[[fault]]\nlink = \"a\"\nfrom_ms = 2000\nuntil_ms = 9000\n";
    let sync = "[synchronisation]\ngrandmaster = \"b\"\nstamps = \"software\"\nin_run = true\n";
    let text = two_hosts(&format!("{fault}{sync}{}", programs("", "")));
    let text = text.replace("duration_ms = 500", "duration_ms = 12000");
    let system = TestSystem::new(&text);
    system.program("talker.c", "left").program("listener.c", "right");
    system
}

#[test]
fn a_program_reads_the_clock_that_gptp_moves() {
    let system = isolated();
    let seen = results(&["run", "."], system.path(), 0);
    let moved = clock(&seen, "a");
    assert!(error(moved, "during") > 1_000, "{moved}");
    let list = |key: &str| -> Vec<i64> {
        let values = moved[key].as_array().expect("a list").iter();
        values.map(|value| value.as_i64().expect("a number")).collect()
    };
    let samples: Vec<(i64, i64)> = list("at_ns").into_iter().zip(list("error_ns")).collect();
    assert!(samples.len() > 100, "{}", samples.len());
    // The listener's clock is true time, and nothing on the way varies: what a latency by both
    // clocks lacks of the true one is how far the talker's was ahead.
    let csv =
        std::fs::read_to_string(system.path().join("out/1-run/messages.csv")).expect("messages");
    let mut rows = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let head = rows.next().expect("a header");
    let column = |name: &str| head.iter().position(|h| *h == name).expect("a column");
    let [capture, receive] = [column("capture_ns"), column("receive_ns")];
    let times = rows.filter_map(|row| {
        Some((row[capture].parse::<i64>().ok()?, row[receive].parse::<i64>().ok()?))
    });
    let times: Vec<(i64, i64)> = times.collect();
    assert!(times.len() > 4_000, "{}", times.len());
    let mut compared = 0;
    let mut ahead = Vec::new();
    let mut latency = None;
    for (at, error) in &samples {
        let next = times.iter().find(|(_, receive)| (0..10_000_000).contains(&(receive - at)));
        let Some((capture, receive)) = next else { continue };
        // 100 ppm for at most 10 ms: a microsecond.
        let true_latency = receive - capture + error;
        let first = *latency.get_or_insert(true_latency);
        assert!((true_latency - first).abs() <= 1_500, "at {at}: {true_latency} {first}");
        ahead.push(*error);
        compared += 1;
    }
    let spread = ahead.iter().max().expect("some") - ahead.iter().min().expect("some");
    assert!(compared > 50 && spread > 3_000, "{compared} {spread}");
    assert_eq!(channel(&seen, "c")["verdict"], "not judged", "{}", channel(&seen, "c"));
}

#[test]
fn equal_seeds_give_equal_records_and_real_time_is_refused() {
    let [one, other] = [(); 2].map(|()| results(&["run", "."], isolated().path(), 0));
    assert_eq!(one, other);
    let system = isolated();
    let refused = common::run(&["run", ".", "--time", "real"], system.path(), 1);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("OB3005"), "{said}");
}
