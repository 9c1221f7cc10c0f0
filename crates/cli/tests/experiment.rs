//! The experiment of Austad et al. 2023, section 6, and what its runs must show.

use crate::common::{self, TestSystem, channel, number, results, run};
use serde_json::Value;
use std::path::Path;

/// One message of messages.csv.
struct Message {
    capture_ns: i64,
    latency_ns: Option<i64>,
    relative_wake_error_ns: Option<i64>,
}

fn messages(directory: &Path, run: &str) -> Vec<Message> {
    let path = directory.join("out").join(run).join("messages.csv");
    let text = std::fs::read_to_string(path).expect("messages.csv");
    let mut lines = text.lines();
    let columns: Vec<&str> = lines.next().expect("a heading").split(',').collect();
    let column = |name| columns.iter().position(|c| *c == name).expect("the column");
    let (capture, latency) = (column("capture_ns"), column("latency_ns"));
    let relative = column("relative_wake_error_ns");
    let message = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        Message {
            capture_ns: cells[capture].parse().expect("a capture time"),
            latency_ns: cells[latency].parse().ok(),
            relative_wake_error_ns: cells[relative].parse().ok(),
        }
    };
    lines.map(message).collect()
}

/// Whether the noise of the example is on, with room for the queue to drain after it.
fn noise_is_on(at_ns: i64) -> bool {
    let (second, start, on, off) = (1_000_000_000, 10, 30, 30);
    let since = at_ns - start * second;
    since >= 0 && since % ((on + off) * second) < on * second + second / 100
}

#[test]
fn without_protection_latency_climbs_to_the_full_queue_and_messages_are_lost_only_under_noise() {
    let system = TestSystem::example("01-two-hosts");
    let arguments = ["run", ".", "--scenario", "unprotected"];
    let results = results(&arguments, system.path(), 0);
    let mcast42 = channel(&results, "mcast42");
    assert_eq!(mcast42["protected"], false);
    assert_eq!(mcast42["bound_ns"], serde_json::Value::Null);
    assert_eq!(number(mcast42, "sent"), 15_000);
    assert_eq!(number(mcast42, "received") + number(mcast42, "lost"), 15_000);
    assert!(number(mcast42, "lost") > 1_000);

    let messages = messages(system.path(), "1-unprotected");
    assert_eq!(messages.len(), 15_000);
    for message in &messages {
        let lost_or_slow = message.latency_ns.is_none_or(|latency| latency > 100_000);
        assert!(!lost_or_slow || noise_is_on(message.capture_ns), "at {}", message.capture_ns);
    }
    // 338 frames of the noise, 1536 octets on a 1 Gb/s link each, are before a message that gets
    // the last place; the path without noise and the frame in flight are on top.
    let full_queue = 337 * 12_288;
    let slowest = number(mcast42, "latency_ns.max");
    assert!(slowest > full_queue, "{slowest}");
    assert!(slowest < full_queue + 12_288 + 150_000, "{slowest}");
    // It climbs: in each of the five cycles some messages find the queue on its way up.
    let climbing = |m: &&Message| m.latency_ns.is_some_and(|l| l > 200_000 && l < 3_900_000);
    assert!(messages.iter().filter(climbing).count() >= 5 * 10);
}

#[test]
fn with_protection_nothing_is_lost_and_everything_stays_below_the_bound() {
    let system = TestSystem::example("01-two-hosts");
    let results = results(&["run", ".", "--scenario", "protected"], system.path(), 0);
    let mcast42 = channel(&results, "mcast42");
    assert_eq!(mcast42["protected"], true);
    assert_eq!(mcast42["verdict"], "kept");
    assert_eq!(number(mcast42, "sent"), 15_000);
    assert_eq!(number(mcast42, "received"), 15_000);
    for nothing in ["lost", "late", "duplicated"] {
        assert_eq!(number(mcast42, nothing), 0, "{nothing}");
    }
    assert!(number(mcast42, "latency_ns.max") <= number(mcast42, "bound_ns"));
    assert!(number(mcast42, "bound_ns") <= 2_000_000);
    // Table 5's wake-up delays are drawn: never early, 16 µs at most.
    for end in ["talker", "listener"] {
        let errors = &mcast42["wakeup_error_ns"][end];
        assert!(number(errors, "signed.max") <= 0 && number(errors, "max") <= 16_000, "{errors}");
    }
    assert!(number(mcast42, "wakeup_error_ns.relative.max") <= 16_000);
}

#[test]
fn by_protocol_the_papers_channel_is_ready_over_two_bridges_and_measures_what_it_does_by_plan() {
    let system = TestSystem::example("01-two-hosts");
    let run = |scenario| {
        let arguments = ["run", ".", "--scenario", scenario, "--duration", "20s"];
        results(&arguments, system.path(), 0)
    };
    let (by_plan, by_protocol) = (run("protected"), run("srp"));
    let mcast42 = [&by_plan, &by_protocol].map(|results| channel(results, "mcast42"));
    for of_both in mcast42 {
        assert_eq!(of_both["verdict"], "kept");
        assert_eq!(number(of_both, "sent"), 1_000);
        assert_eq!(number(of_both, "lost") + number(of_both, "late"), 0);
    }
    // Programs begin some microseconds later, so the same messages meet other frames of the noise.
    let [plan, srp] = mcast42;
    for equal in ["bound_ns", "latency_ns.min"] {
        assert_eq!(number(plan, equal), number(srp, equal), "{equal}");
    }
    for (figure, apart) in [("avg", 100), ("stddev", 100), ("p99", 500), ("max", 12_288)] {
        let figure = format!("latency_ns.{figure}");
        let [plan, srp] = [plan, srp].map(|channel| number(channel, &figure));
        assert!((plan - srp).abs() <= apart, "{figure}: {plan} {srp}");
    }
    assert!(by_plan["runs"][0].get("reservations").is_none());
    let reservations = &by_protocol["runs"][0]["reservations"];
    let reservation = &reservations["channels"][0];
    assert_eq!((&reservation["status"], &reservation["complete"]), (&"ready".into(), &true.into()));
    assert_eq!(reservation["listeners"][0]["status"], "ready");
    // Three links there and back: PDUs of 64 to 68 octets, preamble and 50 ns each.
    let ready = number(reservation, "ready_ns");
    assert!((6 * (576 + 50)..6 * (720 + 50)).contains(&ready), "{ready}");
    assert_eq!(number(reservations, "begun_ns"), ready);
    let worst = number(reservation, "worst_case_ns");
    assert!(worst >= 7 * 300_000_000);
    let table = std::fs::read_to_string(system.path().join("out/1-srp/reservations.csv"));
    let table = table.expect("reservations.csv");
    let line = format!("mcast42,ready,1,0,{worst},listener,ready,{ready},,,");
    assert_eq!(table.lines().skip(1).collect::<Vec<_>>(), [line]);
    // A directory with it is an output: it is replaced.
    run("srp");
}

#[test]
fn in_real_time_over_the_emulated_network_every_message_arrives_in_order() {
    let system = TestSystem::example("01-two-hosts");
    let arguments = ["run", ".", "--scenario", "real-time", "--duration", "2s"];
    let results = results(&arguments, system.path(), 0);
    let mcast42 = channel(&results, "mcast42");
    assert_eq!(results["runs"][0]["time"], "real");
    assert!(number(mcast42, "sent") > 0);
    assert_eq!(number(mcast42, "received"), number(mcast42, "sent"));
    // Propagation and transmission are the emulation's floor, whatever the machine adds.
    assert!(number(mcast42, "latency_ns.min") >= 3 * 50 + 3 * 608 + 2 * 3_000);
}

#[test]
fn in_real_time_programs_begin_when_the_emulated_network_has_reserved() {
    let system = TestSystem::example("01-two-hosts");
    let arguments = ["run", ".", "--scenario", "srp", "--time", "real", "--duration", "2s"];
    let results = results(&arguments, system.path(), 0);
    let mcast42 = channel(&results, "mcast42");
    assert_eq!(results["runs"][0]["time"], "real");
    assert!(number(mcast42, "sent") > 0);
    assert_eq!(number(mcast42, "received"), number(mcast42, "sent"));
    let reservations = &results["runs"][0]["reservations"];
    let reservation = &reservations["channels"][0];
    assert_eq!((&reservation["status"], &reservation["complete"]), (&"ready".into(), &true.into()));
    // The network takes the time that it takes in virtual time.
    let ready = number(reservation, "ready_ns");
    assert!((6 * (576 + 50)..6 * (720 + 50)).contains(&ready), "{ready}");
    assert_eq!(number(reservations, "begun_ns"), ready);
}

#[test]
fn the_robot_arm_runs_by_the_same_commands_and_keeps_its_chains_deadline() {
    let system = TestSystem::example("03-robot-arm");
    let results = results(&["run", "."], system.path(), 0);
    for name in ["pose", "command", "status"] {
        let channel = channel(&results, name);
        assert_eq!(channel["verdict"], "kept", "{channel}");
        assert_eq!(number(channel, "sent"), 10_000);
    }
    let reflex = &results["runs"][0]["chains"][0];
    assert_eq!(reflex["name"], "reflex");
    assert_eq!(reflex["verdict"], "kept");
    assert_eq!(number(reflex, "completed"), 10_000);
    // The controller's declared work is on the way.
    assert!(number(reflex, "latency_ns.min") >= 80_000);
    assert!(number(reflex, "latency_ns.max") <= number(reflex, "deadline_ns"));
}

/// The robot arm with scheduled channels, whose programs write so many nanoseconds after their
/// phases at most.
fn scheduled_arm(jitter: [i64; 3]) -> (TestSystem, Value) {
    let system = TestSystem::example("03-robot-arm");
    let path = system.path().join("system.toml");
    let mut text = std::fs::read_to_string(&path).expect("a description");
    text = text.replace("class = \"A\"", "class = \"scheduled\"");
    // A command answers a pose, and a status a command.
    let channels = [("pose", 0), ("command", 110_000), ("status", 150_000)];
    for ((name, phase), jitter) in channels.into_iter().zip(jitter) {
        let keys = format!("phase_ns = {phase}\nphase_jitter_ns = {jitter}\n");
        let line = format!("name = \"{name}\"");
        text = text.replacen(&line, &format!("{keys}{line}"), 1);
    }
    std::fs::write(&path, text).expect("written");
    let results = results(&["run", ".", "--duration", "2s"], system.path(), 0);
    (system, results)
}

#[test]
fn the_robot_arm_whose_tasks_have_offsets_is_scheduled_to_the_microsecond() {
    let (system, results) = scheduled_arm([5_000, 30_000, 60_000]);
    for name in ["pose", "command", "status"] {
        let channel = channel(&results, name);
        assert_eq!(channel["verdict"], "kept", "{channel}");
        assert_eq!(number(channel, "sent"), 2_000);
        // Writes are late by their jitter at most, stacks vary by 12 µs at the listener, and the
        // network by nothing.
        let varies = number(channel, "latency_ns.max") - number(channel, "latency_ns.min");
        assert!(varies <= 12_000 + 12_000 + 1, "{varies}");
    }
    let reflex = &results["runs"][0]["chains"][0];
    assert_eq!(reflex["verdict"], "kept");
    assert!(number(reflex, "latency_ns.max") < 200_000, "{reflex}");
    let plan = run(&["plan", ".", "--json"], system.path(), 0);
    let plan: Value = serde_json::from_slice(&plan.stdout).expect("JSON");
    let launch = &plan["channels"][0]["launch"];
    // The sensor's stack takes 12 µs at most.
    assert_eq!((number(launch, "write_ns"), number(launch, "at_ns")), (5_000, 17_000));
    assert_eq!(launch["windows"][0]["port"], "sensor.p1");
    assert_eq!(number(&launch["windows"][0], "start_ns"), 17_000);
    let port = plan["ports"].as_array().expect("ports").iter().find(|p| p["port"] == "sensor.p1");
    let gates = &port.expect("the port")["gates"][0];
    assert_eq!(number(gates, "cycle_ns"), 1_000_000);
}

#[test]
fn what_a_program_writes_at_another_time_than_described_is_not_judged() {
    let (_, results) = scheduled_arm([4_000, 30_000, 60_000]);
    let pose = channel(&results, "pose");
    assert_eq!(pose["verdict"], "not judged");
    let reason = pose["verdict_reason"].as_str().expect("a reason");
    assert!(reason.contains("after its phase, and its jitter is 4 µs"), "{reason}");
    assert_eq!(channel(&results, "command")["verdict"], "kept");
}

/// Two hosts once with class A and once scheduled, beside the same noise. The listener's stack
/// always takes the same, and the bridges' clocks wander by so many nanoseconds either way.
fn demo_with_wander(wander: i64, class: &str) -> (Value, Vec<Message>) {
    let system = TestSystem::example("01-two-hosts");
    let edit = |name: &str, edits: &[(&str, &str)]| {
        let path = system.path().join(name);
        let mut text = std::fs::read_to_string(&path).expect("a file of the example");
        for (old, new) in edits {
            assert!(text.contains(old), "{name}: {old}");
            text = text.replace(old, new);
        }
        std::fs::write(path, text).expect("written");
    };
    edit("manifest.h", &[("CLASS_A", class)]);
    let stack = "stack_rx_ns = { min = 28_500, max = 28_500 }\nunused = { histogram = [";
    let clock = format!("clock = {{ wander_ns = {wander}, wander_period_ms = 3_001 }}\n");
    edit(
        "system.toml",
        &[
            ("stack_rx_ns = { histogram = [", stack),
            ("forwarding_ns = 3000\n", &format!("forwarding_ns = 3000\n{clock}")),
            (
                "listeners = [\"listener\"]\n",
                "listeners = [\"listener\"]\nphase_jitter_ns = 16_000\n",
            ),
        ],
    );
    // The histogram of the stack is left out: its lines, up to the bracket.
    let path = system.path().join("system.toml");
    let text = std::fs::read_to_string(&path).expect("a description");
    let (before, histogram) = text.split_once("unused = ").expect("the histogram");
    let (_, after) = histogram.split_once("] }\n").expect("its end");
    std::fs::write(path, format!("{before}{after}")).expect("written");
    let results = results(&[&SHORT[..], &["--scenario", "protected"]].concat(), system.path(), 0);
    (channel(&results, "mcast42").clone(), messages(system.path(), "1-protected"))
}

#[test]
fn the_papers_channel_varies_less_than_the_gates_clocks_and_a_guard_when_it_is_scheduled() {
    const WANDER: i64 = 300;
    // A message each 20 ms: by how much the time of receipt varies within that.
    let varies = |(channel, messages): &(Value, Vec<Message>)| {
        assert_eq!(channel["verdict"], "kept", "{channel}");
        assert_eq!((number(channel, "sent"), number(channel, "received")), (1_000, 1_000));
        assert!(number(channel, "latency_ns.max") <= number(channel, "bound_ns"));
        let receipt =
            |message: &Message| message.capture_ns + message.latency_ns.expect("received");
        let receipts = (0..).zip(messages).map(|(at, m): (i64, _)| receipt(m) - at * 20_000_000);
        receipts.clone().max().expect("messages") - receipts.min().expect("messages")
    };
    let shaped = varies(&demo_with_wander(WANDER, "CLASS_A"));
    let scheduled = varies(&demo_with_wander(WANDER, "SC_TAS"));
    // The listener hears the gate of the last bridge, whose clock is up to the wander off, either
    // way. The guard is what a window is longer than its frame: the drift and 2 ns of rounding.
    assert!(scheduled <= 2 * WANDER + 2, "{scheduled}");
    assert!(scheduled >= WANDER, "the clock of the gates has no effect: {scheduled}");
    // The wake-up of the program, its stack and a frame of noise at each bridge.
    assert!(shaped > 10 * scheduled, "{shaped}");
}

/// The example's first 20 s, with 10 s of noise, in a second or so.
const SHORT: [&str; 4] = ["run", ".", "--duration", "20s"];

fn hash(system: &TestSystem, more: &[&str]) -> String {
    let results = results(&[&SHORT, more].concat(), system.path(), 0);
    results["runs"][0]["record_hash"].as_str().expect("a hash").to_owned()
}

#[test]
fn one_seed_gives_one_record_and_another_seed_another_even_on_a_loaded_machine() {
    let system = TestSystem::example("01-two-hosts");
    let first = hash(&system, &[]);
    assert_eq!(hash(&system, &[]), first);
    assert_ne!(hash(&system, &["--seed", "43"]), first);

    let spin = || std::process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn();
    let mut load: Vec<_> = (0..8).map(|_| spin().expect("sh")).collect();
    let loaded = hash(&system, &[]);
    for process in &mut load {
        process.kill().expect("killed");
        process.wait().expect("gone");
    }
    assert_eq!(loaded, first);
}

/// The examples' records are the same on every machine. `ONBEAT_UPDATE=1` rewrites them.
#[test]
fn the_examples_give_the_records_that_are_written_down() {
    for name in ["01-two-hosts", "03-robot-arm"] {
        let system = TestSystem::example(name);
        let results = results(&["run", ".", "--duration", "20s"], system.path(), 0);
        let found = format!("{}\n", results["runs"][0]["record_hash"].as_str().expect("a hash"));
        let path = common::root().join("examples").join(name).join("expected-20s.sha256");
        if std::env::var_os("ONBEAT_UPDATE").is_some() {
            std::fs::write(&path, &found).expect("written");
        }
        assert_eq!(std::fs::read_to_string(&path).expect("a hash"), found, "{name}");
    }
}

#[test]
fn with_perfect_clocks_both_sides_wake_at_the_same_instant() {
    let text = common::two_hosts(&common::programs("wait", "wait"))
        .replace("duration_ms = 500", "duration_s = 10");
    let system = TestSystem::new(&text);
    system.program("talker.c", "left").program("listener.c", "right");
    let results = results(&["run", "."], system.path(), 0);
    let c = channel(&results, "c");
    assert_eq!(number(c, "sent"), 2_500);
    assert_eq!(c["wakeup_error_ns"]["relative_basis"], "network-time");
    for message in messages(system.path(), "1-run") {
        assert_eq!(message.relative_wake_error_ns, Some(0));
    }
    for end in ["talker", "listener"] {
        assert_eq!(number(&c["wakeup_error_ns"][end], "min"), 0);
        assert_eq!(number(&c["wakeup_error_ns"][end], "max"), 0);
    }
}

#[test]
fn with_clock_errors_both_sides_wake_within_them() {
    let text = common::two_hosts(&common::programs("wait", "wait"))
        .replace("duration_ms = 500", "duration_s = 10")
        .replace("name = \"a\"\n", "name = \"a\"\nclock = { offset_ns = 400, drift_ppb = 20 }\n")
        .replace("name = \"b\"\n", "name = \"b\"\nclock = { offset_ns = -300, drift_ppb = -10 }\n");
    let system = TestSystem::new(&text);
    system.program("talker.c", "left").program("listener.c", "right");
    results(&["run", "."], system.path(), 0);
    // Offsets 400 and 300 ns apart on both sides, drifting 30 ns a second apart, rounded to ns.
    for message in messages(system.path(), "1-run") {
        let at_s = message.capture_ns / 1_000_000_000;
        let apart = message.relative_wake_error_ns.expect("both woke");
        let expected = 700 + 30 * at_s;
        assert!((expected - 2..=expected + 32).contains(&apart), "{apart} at {at_s} s");
    }
}
