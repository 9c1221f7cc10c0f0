//! gPTP that takes part in runs and simulations: what fails in them moves the clocks of those very
//! runs, what programs read, and what is promised.

use crate::common::{self, TestSystem, channel, number, programs, results, root, two_hosts};
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

/// Two hosts with programs, and a third one that is grandmaster and whose link fails.
fn isolated() -> TestSystem {
    let grandmaster = "[[host]]\nname = \"g\"\n[[link]]\nends = [\"g\", \"s\"]\nrate_mbps = 100\n";
    let fault = "[[fault]]\nlink = \"g\"\nfrom_ms = 2000\nuntil_ms = 9000\n";
    let sync =
        "[synchronisation]\ngrandmaster = \"g\"\ntimestamping = \"software\"\nin_run = true\n";
    let text = two_hosts(&format!("{grandmaster}{fault}{sync}{}", programs("", "")));
    let system = TestSystem::new(&text.replace("duration_ms = 500", "duration_ms = 12000"));
    system.program("talker.c", "left").program("listener.c", "right");
    system
}

/// When a clock was looked at, and how far it was ahead.
fn samples(clock: &Value) -> Vec<(i64, i64)> {
    let list = |key: &str| -> Vec<i64> {
        let values = clock[key].as_array().expect("a list").iter();
        values.map(|value| value.as_i64().expect("a number")).collect()
    };
    list("at_ns").into_iter().zip(list("error_ns")).collect()
}

/// How far a clock was ahead at an instant, if it was looked at within a millisecond of that.
fn ahead(samples: &[(i64, i64)], at: i64) -> Option<i64> {
    let near = samples.iter().find(|(then, _)| (then - at).abs() <= 1_000_000)?;
    Some(near.1)
}

#[test]
fn a_program_reads_the_clock_that_gptp_moves() {
    let system = isolated();
    let seen = results(&["run", "."], system.path(), 0);
    let [talker, listener] = ["a", "b"].map(|node| samples(clock(&seen, node)));
    assert!(talker.len() > 100 && listener.len() > 100);
    assert!(error(clock(&seen, "a"), "during") > 1_000, "{}", clock(&seen, "a"));
    // Nothing on the way varies: what a latency by the programs' clocks has more than others is
    // how far the listener's was ahead of the talker's.
    let csv = std::fs::read_to_string(system.path().join("out/1-run/messages.csv"));
    let csv = csv.expect("messages");
    let mut rows = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let head = rows.next().expect("a header");
    let column = |name: &str| head.iter().position(|h| *h == name).expect("a column");
    let [capture, receive] = [column("capture_ns"), column("receive_ns")];
    let (mut apart, mut rest) = (Vec::new(), Vec::new());
    for row in rows {
        let (Ok(capture), Ok(receive)) = (row[capture].parse::<i64>(), row[receive].parse::<i64>())
        else {
            continue;
        };
        // Readings are some microseconds from true time, in which that changes nothing.
        if let Some((of_talker, of_listener)) =
            ahead(&talker, capture).zip(ahead(&listener, receive))
        {
            apart.push(of_listener - of_talker);
            rest.push(receive - capture - (of_listener - of_talker));
        }
    }
    let spread = |of: &[i64]| of.iter().max().expect("some") - of.iter().min().expect("some");
    println!("apart by {} ns, and {} ns are not explained", spread(&apart), spread(&rest));
    assert!(apart.len() > 100, "{}", apart.len());
    assert!(spread(&apart) > 1_000, "{}", spread(&apart));
    assert!(spread(&rest) * 4 < spread(&apart), "{} {}", spread(&rest), spread(&apart));
    assert_eq!(channel(&seen, "c")["lost"], 0);
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

#[test]
fn scheduled_frames_keep_their_windows_while_gptp_steers_the_gates() {
    // Two scheduled channels over two bridges; a window that is missed costs an interval.
    let mut text = "format = 1\nname = \"cell\"\n[run]\nduration_ms = 3000\n\
        [synchronisation]\ngrandmaster = \"c\"\nin_run = true\n"
        .to_owned();
    for host in ["a", "b", "c"] {
        text += &format!("[[host]]\nname = \"{host}\"\n");
    }
    text += "[[bridge]]\nname = \"s\"\nforwarding_ns = 3000\n";
    text += "[[bridge]]\nname = \"t\"\nforwarding_ns = 3000\n";
    for (one, other) in [("a", "s"), ("b", "s"), ("s", "t"), ("t", "c")] {
        text += &format!("[[link]]\nends = [\"{one}\", \"{other}\"]\nrate_mbps = 100\n");
    }
    for (number, talker, interval) in [(1, "a", 1_000_000), (2, "b", 500_000)] {
        text += &format!(
            "[[channel]]\nname = \"x{number}\"\ndestination = \"91:e0:f0:00:fe:0{number}\"\n\
             stream_id = {number}\nclass = \"scheduled\"\nsize_octets = 100\n\
             interval_ns = {interval}\nfixed_delay_us = 300\ntalker = \"{talker}\"\n\
             listeners = [\"c\"]\n"
        );
    }
    let system = TestSystem::new(&text);
    for verb in ["run", "simulate"] {
        let seen = results(&[verb, "."], system.path(), 0);
        assert!(number(clock(&seen, "s"), "before.error_ns") > 0, "{seen:#}");
        let all = seen["runs"][0]["channels"].as_array().or(seen["flows"].as_array());
        for channel in all.expect("channels") {
            assert_eq!(channel["verdict"], "kept", "{channel:#}");
        }
    }
}

/// The error of such a clock does not begin at 0: frames missed their windows by nanoseconds.
#[test]
fn plans_of_short_runs_count_with_the_whole_error_of_clocks() {
    for seed in [3, 6] {
        let system = TestSystem::new(&format!(
            r#"format = 1
name = "short"
run = {{ duration_ms = 100 }}
synchronisation = {{ grandmaster = "s1", in_run = true, seed = {seed} }}
host = [{{ name = "a" }}, {{ name = "b" }}, {{ name = "n" }}]
bridge = [{{ name = "s1" }}, {{ name = "s2" }}]
link = [
    {{ ends = ["a", "s1"], rate_mbps = 1000 }}, {{ ends = ["s1", "s2"], rate_mbps = 100 }},
    {{ ends = ["b", "s2"], rate_mbps = 1000 }}, {{ ends = ["n", "s1"], rate_mbps = 1000 }},
]
[[channel]]
name = "c"
destination = "01:00:5e:03:00:00"
stream_id = 1
class = "scheduled"
size_octets = 64
interval_ns = 1_000_000
talker = "a"
listeners = ["b"]
"#
        ));
        let simulated = results(&["simulate", "."], system.path(), 0);
        assert_eq!(simulated["flows"][0]["verdict"], "kept", "{}", simulated["flows"]);
    }
}
