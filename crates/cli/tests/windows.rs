//! Gates through the command: windows with too little room, just enough and more, and what a plan
//! takes.

use crate::common::{TestSystem, number, results, run};
use serde_json::Value;

/// Hosts `a` and `b` at the ends of a row of bridges, at 100 Mb/s, a stream `x` from `a` to `b`,
/// and how `a` and ports are.
fn row(bridges: &[&str], host: &str, stream: &str, ports: &str) -> TestSystem {
    let bridge = |name: &&str| format!("[[bridge]]\nname = \"{name}\"\n");
    let link = |ends: [String; 2]| format!("[[link]]\nends = {ends:?}\nrate_mbps = 100\n");
    let ends = ["a".to_owned(), bridges[0].to_owned()];
    let between = bridges.windows(2).map(|pair| [0, 1].map(|at| format!("{}.x", pair[at])));
    let last = ["b".to_owned(), format!("{}.b", bridges[bridges.len() - 1])];
    let links = [ends].into_iter().chain(between).chain([last]).map(link);
    let network = bridges.iter().map(bridge).chain(links).collect::<String>();
    TestSystem::new(&format!(
        "format = 1\nname = \"row\"\nrun = {{ duration_ms = 50 }}\n\
         [[host]]\nname = \"a\"\n{host}\n[[host]]\nname = \"b\"\n{network}\
         [[stream]]\nname = \"x\"\ntalker = \"a\"\nlisteners = [\"b\"]\n{stream}\n{ports}\n"
    ))
}

/// A stream of long frames over two bridges, and ports with windows of 157.49 of 400 µs: room for
/// one frame of 123.36 µs.
fn tandem(stream: &str, ports: &str) -> TestSystem {
    let stream = format!("traffic_class = 5\nframe_octets = 1522\n{stream}");
    let gates = "{ entries = [{ open = [5], interval_ns = 157_490 }, \
           { open = [7], interval_ns = 242_510 }] }";
    row(&["s", "t"], "", &stream, &format!("[[port]]\nnames = {ports}\ngates = [{gates}]"))
}

fn bounds(system: &TestSystem) -> Value {
    results(&["bounds", "system.toml"], system.path(), 0)
}

/// The longest latency of the only stream in several repetitions with other phases.
fn longest(system: &TestSystem, phases: &str) -> i64 {
    let repeated = ["--repetitions", "20", "--phases", phases];
    let arguments = [&["simulate", "system.toml", "--duration", "50ms"][..], &repeated].concat();
    let json = results(&arguments, system.path(), 0);
    number(&json["flows"][0]["listeners"][0], "latency_ns.max")
}

#[test]
fn windows_that_carry_less_than_comes_give_no_bound_however_clocks_drift() {
    let fastest = [-200_000, -9_000, 0, 5_000, 5_001, 6_500, 8_000, 9_000, 200_000];
    for drift in fastest {
        let stream =
            "traffic_class = 6\nframe_octets = 300\ninterval_ns = 400_000\nburst_frames = 3";
        let gates = "{ entries = [{ open = [7], interval_ns = 100_000 }, \
                     { open = [6], interval_ns = 60_000 }, \
                     { open = [0], interval_ns = 240_000 }] }";
        let ports = format!("[[port]]\nnames = [\"a\"]\ngates = [{gates}]");
        let system = row(&["s"], &format!("clock = {{ drift_ppb = {drift} }}"), stream, &ports);
        let json = bounds(&system);
        assert!(json["flows"][0]["bound_ns"].is_null(), "{drift} ppb: {json}");
        // Two of three frames go out in each cycle: in 50 ms the last ones wait for half of them.
        let json = results(&["simulate", "system.toml"], system.path(), 0);
        let longest = number(&json["flows"][0]["listeners"][0], "latency_ns.max");
        assert!(longest > 20_000_000, "{drift} ppb: {longest}");
    }
}

#[test]
fn a_frame_that_is_on_the_wire_when_its_successor_comes_is_not_in_its_way() {
    let system = tandem("interval_ns = 400_000", r#"["s.x"]"#);
    let json = results(&["simulate", "system.toml"], system.path(), 0);
    assert_eq!(number(&json["flows"][0]["listeners"][0], "latency_ns.max"), 644_800);
    assert_eq!(number(&bounds(&system)["flows"][0], "bound_ns"), 644_800);
}

#[test]
fn sporadic_frames_have_a_bound_in_windows_that_carry_them_and_none_in_others() {
    let sporadic = |interval: i64, ports| {
        let mean = interval * 3 / 2;
        tandem(&format!("interval_ns = {interval}\nmean_interval_ns = {mean}"), ports)
    };
    let system = sporadic(1_000_000, r#"["s.x", "t.b"]"#);
    let bound = number(&bounds(&system)["flows"][0], "bound_ns");
    // Two waits from when a frame no longer fits to the next window, and three transmissions.
    let [wait, sent] = [400_000 - (157_490 - 123_360), (8 + 1_522) * 80];
    assert!((0..10).contains(&(bound - 2 * wait - 3 * sent)), "{bound}");
    for phases in ["aligned", "random"] {
        let longest = longest(&system, phases);
        assert!(longest <= bound && longest * 100 > bound * 80, "{longest} of {bound}");
    }
    // One frame in 399 µs is more than one in a cycle of 400.
    let system = sporadic(399_000, r#"["s.x"]"#);
    assert!(bounds(&system)["flows"][0]["bound_ns"].is_null());
}

#[test]
fn intervals_beside_the_cycle_have_bounds_if_the_windows_carry_them() {
    for (interval, carried) in [(400_080, true), (400_100, true), (370_080, false)] {
        let system = tandem(&format!("interval_ns = {interval}"), r#"["s.x", "t.b"]"#);
        let json = bounds(&system);
        let bound = json["flows"][0]["bound_ns"].as_i64();
        assert_eq!(bound.is_some(), carried, "{interval}: {json}");
        let Some(bound) = bound else { continue };
        for phases in ["aligned", "random"] {
            let longest = longest(&system, phases);
            assert!(longest <= bound, "{interval}: {longest} of {bound}");
        }
    }
}

#[test]
fn a_pattern_that_is_too_long_to_be_followed_has_the_bound_of_any_phase_and_a_warning() {
    let system = tandem("interval_ns = 400_001", r#"["s.x", "t.b"]"#);
    let json = bounds(&system);
    assert!(number(&json["flows"][0], "bound_ns") > 0);
    assert_eq!(json["flows"][0]["scheduled"], false);
    let json = results(&["check", "system.toml"], system.path(), 0);
    let found = json["diagnostics"].as_array().expect("diagnostics");
    assert!(found.iter().any(|d| d["code"] == "OB2015" && d["severity"] == "warning"), "{json}");
}

#[test]
fn without_bounds_nothing_is_bounded_and_nothing_that_follows_is_found() {
    // Its deadline is below its bound, and its pattern too long.
    let system = tandem("interval_ns = 400_001\ndeadline_us = 500", r#"["s.x", "t.b"]"#);
    let json = results(&["check", "system.toml"], system.path(), 0);
    assert_eq!(json["diagnostics"].as_array().map(Vec::len), Some(2), "{json}");
    let json = results(&["check", "system.toml", "--no-bounds"], system.path(), 0);
    assert_eq!(json["diagnostics"].as_array().map(Vec::len), Some(0), "{json}");
    let system = tandem("interval_ns = 400_001", r#"["s.x", "t.b"]"#);
    let with = results(&["simulate", "system.toml"], system.path(), 0);
    let without = results(&["simulate", "system.toml", "--no-bounds"], system.path(), 0);
    let [with, without] = [&with, &without].map(|json| &json["flows"][0]["listeners"][0]);
    assert_eq!(with["latency_ns"], without["latency_ns"]);
    assert!(with["bound_ns"].is_i64() && without["bound_ns"].is_null(), "{with} {without}");
    // What needs no bound is found all the same.
    let text = std::fs::read_to_string(system.path().join("system.toml")).expect("a description");
    let filtered = text
        .replace("name = \"x\"", "name = \"x\"\nvlan = 9")
        .replace("gates = ", "vlans = [2]\ngates = ");
    let system = TestSystem::new(&filtered);
    let output = run(&["check", "system.toml", "--no-bounds"], system.path(), 1);
    assert!(String::from_utf8_lossy(&output.stderr).contains("OB2010"), "{output:?}");
}
