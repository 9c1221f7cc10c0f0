//! What `onbeat plan` says of descriptions that are wrong or cannot be planned: for each kind the
//! code, the reason with its names, and the exit code.

use crate::common::{TestSystem, number, results, run, two_hosts};
use serde_json::Value;
use std::fmt::Write;

/// Hosts `a` and `b` at bridge `s`, `c` at bridge `t`.
const NETWORK: &str = r#"
format = 1
name = "cell"
routing = "shortest"
[run]
duration_ms = 40
[[bridge]]
name = "s"
[[bridge]]
name = "t"
[[host]]
name = "a"
[[host]]
name = "b"
[[host]]
name = "c"
[[link]]
ends = ["a", "s"]
rate_mbps = 100
[[link]]
ends = ["b", "s"]
rate_mbps = 100
[[link]]
ends = ["s.t", "t.s"]
rate_mbps = 100
[[link]]
ends = ["t", "c"]
rate_mbps = 100
"#;

/// Channels `x1`, `x2`, … from `a` to `c`, each of a class, octets, and µs of interval and of fixed
/// delay.
fn channels(each: &[(&str, u32, u32, u32)]) -> String {
    let mut text = String::new();
    for (at, (class, octets, interval_us, delay_us)) in (1..).zip(each) {
        let _ = write!(
            text,
            "[[channel]]\nname = \"x{at}\"\nclass = \"{class}\"\nstream_id = {at}\n\
             destination = \"91:e0:f0:00:fe:{at:02x}\"\nsize_octets = {octets}\n\
             interval_ns = {interval_us}_000\nfixed_delay_us = {delay_us}\n\
             talker = \"a\"\nlisteners = [\"c\"]\n"
        );
    }
    text
}

fn scheduled() -> String {
    channels(&[("scheduled", 64, 1_000, 900)])
}

fn class_a() -> String {
    channels(&[("A", 64, 1_000, 900)])
}

/// A stream from `b` to `c` in a queue.
fn stream(queue: u8) -> String {
    format!(
        "[[stream]]\nname = \"q\"\ntalker = \"b\"\nlisteners = [\"c\"]\nframe_octets = 200\n\
         interval_ns = 1_000_000\ntraffic_class = {queue}\n"
    )
}

/// The port from `s` to `t`, with a setting.
fn port(setting: &str) -> String {
    format!("[[port]]\nname = \"s.t\"\n{setting}\n")
}

/// One kind of wrong or infeasible input: what is in it, and what must be said of it.
struct Kind {
    text: String,
    says: &'static str,
}

/// Something beside the network.
fn with(more: String, says: &'static str) -> Kind {
    Kind { text: format!("{NETWORK}{more}"), says }
}

/// The same with something else in the network, or in what is beside it.
fn but(more: String, [from, to]: [&str; 2], says: &'static str) -> Kind {
    let text = format!("{NETWORK}{more}");
    assert!(text.contains(from), "{from}");
    Kind { text: text.replace(from, to), says }
}

fn without_windows() -> Vec<Kind> {
    let fast = ["rate_mbps = 100\n", "rate_mbps = 10_000\n"];
    let odd = [1_000_003, 1_000_007, 1_000_009, 1_000_033].map(|us| ("scheduled", 8, us, 100));
    let at_once = ["talker", "phase_ns = 1_000\ntalker"];
    vec![
        with(
            channels(&[("scheduled", 64, 1_000, 20)]),
            "[OB2002]: scheduled channel `x1` has no place: alone it takes 28.32 µs from its \
             launch time behind port t.p1, and its stacks leave 20 µs",
        ),
        with(
            channels(&[("scheduled", 1_400, 125, 900); 2]),
            "[OB2002]: scheduled channel `x2` has no place: the windows at port a.p1 take more \
             than all of its time: `x1`, `x2`",
        ),
        with(
            channels(&[("scheduled", 1_400, 100, 2_000)]),
            "[OB2002]: scheduled channel `x1` has no place: its window at port a.p1 is as long as",
        ),
        with(
            channels(&[("scheduled", 64, 1_000, 900), ("scheduled", 64, 1_001, 900)]),
            "[OB2002]: scheduled channel `x2` has no place: at port a.p1 its window and that of \
             `x1` overlap in every phase",
        ),
        but(
            channels(&[("scheduled", 64, 1_000, 900); 2]),
            at_once,
            "[OB2002]: scheduled channel `x2` found no place: port a.p1 has no room for it beside \
             `x1`",
        ),
        but(
            channels(&[("scheduled", 8, 1_000, 900), ("scheduled", 8, 999, 900)]),
            fast,
            "[OB2002]: scheduled channel `x2` found no place: the gate control list of port a.p1 \
             would have 3996 entries, of at most 1024",
        ),
        but(channels(&odd), fast, "port a.p1 would have too many entries, of at most 1024"),
        with(
            scheduled() + &port("gates = [{ entries = [{ open = [0], interval_ns = 100_000 }] }]"),
            "[OB2002]: scheduled channel `x1`: port s.t has gates of its own",
        ),
        with(
            scheduled() + &stream(5),
            "[OB2002]: scheduled channel `x1`: stream `q` is in queue 5",
        ),
        with(
            scheduled() + &port("idle_slope_mbps = { 5 = 10 }"),
            "[OB2002]: scheduled channel `x1`: queue 5 of port s.t has a shaper",
        ),
        with(scheduled() + &port("asynchronous = [5]"), "queue 5 of port s.t has a shaper"),
        with(scheduled() + &port("preemptable = [5]"), "queue 5 of port s.t is preemptable"),
        but(
            scheduled(),
            ["duration_ms = 40", "duration_ms = 40\nreservation = \"srp\""],
            "[OB2002]: scheduled channel `x1`: MSRP reserves no windows of gates",
        ),
    ]
}

fn without_reservation() -> Vec<Kind> {
    let too_much = channels(&[("A", 1_000, 125, 900); 2]);
    let far_away = ["t.s\"]\nrate_mbps = 100", "t.s\"]\nrate_mbps = 100\npropagation_ns = 900_000"];
    vec![
        with(
            too_much.clone(),
            "[OB2001]: port s.t would reserve 136.448 Mb/s of its 100 Mb/s, more than the limit \
             of 75 Mb/s (75 %): `x1` 68.224 Mb/s, `x2` 68.224 Mb/s",
        ),
        but(too_much, ["\"shortest\"", "\"load-aware\""], "no other paths were found"),
        but(
            channels(&[("A", 100, 1_000, 900)]).replace("size", "burst_messages = 50\nsize"),
            ["name = \"s\"\n", "name = \"s\"\nqueue_frames = 1\n"],
            "[OB2003]: the backlog of port s.t may reach",
        ),
        with(
            channels(&[("B", 64, 1_000, 900)]) + &stream(7).replace("1_000_000", "10_000"),
            "[OB2004]: protected channel `x1` has no useful bound: ",
        ),
        but(
            class_a(),
            ["name = \"a\"\n", "name = \"a\"\nclock = { offset_ns = 2_000_000_000 }\n"],
            "[OB2007]: channel `x1`: the clocks of `a` and `c` differ by up to 2 s, more than 1 s",
        ),
        but(
            class_a().replace("1000_000", "9_000_000_000"),
            ["name = \"a\"\n", "name = \"a\"\nstack_tx_ns = { min = 0, max = 4_000_000_000 }\n"],
            "[OB2009]: a message of `x1` may take 4",
        ),
        with(
            scheduled() + &port("vlans = [7]"),
            "[OB2010]: channel `x1`: no path from `a` to `c` within VLAN 2",
        ),
        with(class_a() + &stream(7), "[OB2011]: stream `q`: queue 7 of port s.t is reserved"),
        with(
            class_a() + &port("idle_slope_mbps = { 7 = 1 }"),
            "[OB2012]: queue 7 of port s.t has an idleSlope of 1 Mb/s, and the channels of class A \
             need 8.32 Mb/s",
        ),
        with(
            class_a() + &port("asynchronous = [7]"),
            "[OB2012]: queue 7 of port s.t has asynchronous shaping",
        ),
        but(
            class_a() + "[synchronisation]\ngrandmaster = \"a\"\n",
            [far_away[0], &far_away[1].replace("900_000", "900_000_000")],
            "[OB2016]: link s.t–t.s: gPTP keeps clocks together over up to 10 ms, not over 900 ms",
        ),
    ]
}

fn wrong() -> Vec<Kind> {
    let x1 = "stream_id = 1\n";
    vec![
        but(scheduled(), ["\"scheduled\"", "\"sheduled\""], "[OB1005]: unknown word `sheduled`"),
        but(scheduled(), ["\"shortest\"", "\"loadaware\""], "[OB1005]: unknown word `loadaware`"),
        but(scheduled(), ["[\"c\"]", "[\"d\"]"], "[OB1021]: unknown node `d`"),
        but(
            scheduled(),
            ["[\"c\"]", "[\"c\", \"c\"]"],
            "[OB1047]: channel `x1`: duplicate listener",
        ),
        but(scheduled(), ["talker = \"a\"", "talker = \"s\""], "[OB1022]: channel `x1`: `s` is a"),
        but(scheduled(), ["interval_ns = 1000_000", "interval_ns = 0"], "[OB1012]: channel `x1`"),
        but(scheduled(), ["size_octets = 64", "size_octets = 1500"], "[OB1011]: channel `x1`"),
        but(scheduled(), [x1, "stream_id = 1\nrate_hz = 9\n"], "[OB1009]: channel `x1`: both"),
        but(scheduled(), [x1, "stream_id = 1\nshape = 9\n"], "[OB1003]: unknown key `shape`"),
        but(
            channels(&[("scheduled", 64, 1_000, 900); 2]),
            ["stream_id = 2", "stream_id = 1"],
            "[OB1042]: channel `x2`: duplicate stream identifier 1",
        ),
        but(
            scheduled(),
            ["[[link]]\nends = [\"s.t\", \"t.s\"]\nrate_mbps = 100\n", ""],
            "[OB1034]: channel `x1`: no path from `a` to `c`",
        ),
    ]
}

#[test]
fn each_kind_of_infeasible_or_wrong_description_is_refused_with_its_reason_and_place() {
    let kinds: Vec<Kind> =
        [without_windows(), without_reservation(), wrong()].into_iter().flatten().collect();
    assert!(kinds.len() >= 30, "{}", kinds.len());
    let mut unlike = String::new();
    for Kind { text, says } in &kinds {
        let system = TestSystem::new(text);
        let output = run(&["plan", ".", "--deploy", "deployed"], system.path(), 1);
        let said = String::from_utf8(output.stderr).expect("UTF-8");
        // Where it is, and what to do.
        let is_told = said.contains("system.toml:") && said.contains("help: ");
        let is_clean = output.stdout.is_empty() && !system.path().join("deployed").exists();
        if !said.contains(says) || !is_told || !is_clean {
            let _ = writeln!(unlike, "wanted {says}\nsaid {said}");
        }
    }
    assert!(unlike.is_empty(), "{unlike}");
}

#[test]
fn what_cannot_be_read_or_written_is_named_and_nothing_is_lost() {
    let system = TestSystem::new(&format!("{NETWORK}{}", scheduled()));
    std::fs::write(system.path().join("plan.json"), "{").expect("written");
    std::fs::write(system.path().join("taken"), "mine").expect("written");
    for (arguments, says, code) in [
        (&["plan", "elsewhere"][..], "elsewhere", 5),
        (&["plan", ".", "--diff", "plan.json"], "plan.json: it is no plan", 2),
        (&["plan", ".", "--keep", "plan.json"], "plan.json: it is no plan", 2),
        (&["plan", ".", "--keep", "missing.json"], "missing.json: No such file", 5),
        (&["plan", ".", "--html", "no/such/place.html"], "place.html", 5),
        (&["plan", ".", "--deploy", "taken"], "taken", 5),
        (&["plan", ".", "--shape"], "--shape", 2),
    ] {
        let output = run(arguments, system.path(), code);
        let said = String::from_utf8(output.stderr).expect("UTF-8");
        assert!(said.contains(says), "{arguments:?}: {said}");
    }
    let taken = std::fs::read_to_string(system.path().join("taken")).expect("it is there");
    assert_eq!(taken, "mine");
}

/// Four hosts at a line of bridges, with scheduled channels: octets, µs of interval, of fixed delay
/// and of phase, from where and to where.
fn line(channels: &[(u32, u32, u32, u32, &str, &str)]) -> TestSystem {
    let mut text = "format = 1\nname = \"line\"\n[run]\nduration_ms = 40\n".to_owned();
    for bridge in ["s", "t"] {
        let _ = write!(text, "[[bridge]]\nname = \"{bridge}\"\nforwarding_ns = 0\n");
    }
    for (host, bridge) in [("a", "s"), ("b", "s"), ("c", "t"), ("d", "t")] {
        let _ = write!(
            text,
            "[[host]]\nname = \"{host}\"\n[[link]]\nends = [\"{host}\", \"{bridge}\"]\n\
             rate_mbps = 100\n"
        );
    }
    text += "[[link]]\nends = [\"s.t\", \"t.s\"]\nrate_mbps = 100\n";
    for (at, (octets, interval_us, delay_us, phase_us, talker, listener)) in (1..).zip(channels) {
        let _ = write!(
            text,
            "[[channel]]\nname = \"x{at}\"\nclass = \"scheduled\"\nstream_id = {at}\n\
             destination = \"91:e0:f0:00:fe:{at:02x}\"\nsize_octets = {octets}\n\
             interval_ns = {interval_us}_000\nfixed_delay_us = {delay_us}\n\
             phase_ns = {}\ntalker = \"{talker}\"\nlisteners = [\"{listener}\"]\n",
            phase_us * 1_000
        );
    }
    TestSystem::new(&text)
}

#[test]
fn the_exact_search_finds_a_schedule_that_the_plan_missed_and_a_run_keeps_it() {
    let system = line(&[
        (1_145, 600, 600, 0, "a", "d"),
        (1_145, 600, 600, 0, "c", "a"),
        (520, 400, 800, 50, "b", "c"),
        (1_145, 600, 600, 50, "c", "d"),
        (520, 1_200, 800, 0, "c", "d"),
        (1_145, 400, 400, 100, "b", "d"),
    ]);
    let missed = run(&["plan", "."], system.path(), 1);
    assert!(String::from_utf8_lossy(&missed.stderr).contains("found no place"));
    let found = run(&["plan", ".", "--exact", "--json"], system.path(), 0);
    let said = String::from_utf8(found.stderr).expect("UTF-8");
    assert!(said.contains("the windows are those of the exact search"), "{said}");
    std::fs::write(system.path().join("plan.json"), &found.stdout).expect("written");
    let kept = run(&["plan", ".", "--keep", "plan.json", "--json"], system.path(), 0);
    assert_eq!(kept.stdout, found.stdout);
    let seen = results(&["simulate", ".", "--keep", "plan.json"], system.path(), 0);
    for flow in seen["flows"].as_array().expect("flows") {
        let listener = &flow["listeners"][0];
        assert!(number(listener, "latency_ns.max") <= number(listener, "bound_ns"), "{flow}");
    }
    // Where the plan has a schedule, the search changes nothing.
    let easy = line(&[(100, 600, 600, 0, "a", "d")]);
    let [with, without] = [&["plan", ".", "--exact", "--json"][..], &["plan", ".", "--json"]]
        .map(|arguments| run(arguments, easy.path(), 0).stdout);
    assert_eq!(with, without);
}

#[test]
fn the_exact_search_names_the_channels_of_which_it_is_proven_that_they_have_no_schedule() {
    // Those of 400 µs have two places beside the one of 600 µs, of 95 µs of each 200.
    let frame = 95 * 100 / 8 - 42;
    let system = line(&[
        (60, 1_200, 1_200, 0, "a", "d"),
        (frame, 400, 1_000, 0, "a", "c"),
        (frame, 400, 1_000, 0, "b", "c"),
        (frame, 600, 1_000, 0, "d", "c"),
        (frame, 400, 1_000, 0, "a", "c"),
    ]);
    let missed = run(&["plan", "."], system.path(), 1);
    assert!(String::from_utf8_lossy(&missed.stderr).contains("found no place"));
    let proven = run(&["plan", ".", "--exact"], system.path(), 1);
    let said = String::from_utf8(proven.stderr).expect("UTF-8");
    assert!(said.contains("OB2002") && said.contains("have no schedule on their paths"), "{said}");
    assert!(said.contains("`x2`, `x3`, `x4`, `x5`") && said.contains("t.p1"), "{said}");
    assert!(!said.contains("`x1`"), "{said}");
}

#[test]
fn a_burst_of_a_channel_with_the_longest_interval_has_a_bound() {
    let rare = "interval_ns = 2_592_000_000_000_000\nburst_messages = 200";
    for class in ["A", "B", "asynchronous"] {
        let text = two_hosts("").replace("rate_hz = 1000", rare);
        let text = text.replace("class = \"A\"", &format!("class = \"{class}\""));
        let system = TestSystem::new(&text);
        let output = run(&["plan", ".", "--json"], system.path(), 0);
        let plan: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let bound = plan["channels"][0]["bound_ns"].as_i64().expect("a bound");
        // 200 frames of 88 octets on the wire at 100 Mb/s, at most at what class B reserves.
        assert!((1_408_000..1_000_000_000).contains(&bound), "{class}: {bound}");
    }
}
