//! Programs in C whose channels are carried by stations of Network Code: the same programs as over
//! bridges, with what is promised kept.

use crate::common::{
    self, TestSystem, channel, number, programs, results, root, talker_and_listener, two_hosts,
};
use serde_json::Value;

const STATIONS: [&str; 2] = ["--backend", "network-code"];

fn run_over(backend: &str, system: &TestSystem, more: &[&str]) -> Value {
    let arguments = [&["run", ".", "--backend", backend][..], more].concat();
    results(&arguments, system.path(), 0)
}

/// All channels and chains of the first run.
fn promises(results: &Value) -> impl Iterator<Item = &Value> {
    let run = &results["runs"][0];
    ["channels", "chains"].into_iter().flat_map(|kind| run[kind].as_array().expect("a list"))
}

/// Nothing is lost, late or beyond its bound, and each message came once.
fn all_kept(results: &Value) {
    for promise in promises(results) {
        assert_eq!(promise["verdict"], "kept", "{promise}");
        let most = number(promise, "latency_ns.max");
        assert!(most <= number(promise, "bound_ns"), "{promise}");
        if promise["lost"].is_number() {
            let counts = ["lost", "duplicated"].map(|what| number(promise, what));
            assert_eq!(counts, [0; 2], "{promise}");
            assert_eq!(promise["sent"], promise["received"], "{promise}");
            assert!(number(promise, "sent") > 100, "{promise}");
        }
    }
}

#[test]
fn unchanged_examples_keep_their_promises_over_both_backends() {
    for (name, of_run) in [("01-two-hosts", &["--duration", "12s"][..]), ("03-robot-arm", &[])] {
        let system = TestSystem::example(name);
        let bridges = run_over("bridges", &system, of_run);
        all_kept(&bridges);
        assert!(bridges["runs"][0]["stations"].is_null());
        let stations = run_over("network-code", &system, of_run);
        all_kept(&stations);
        for channel in stations["runs"][0]["channels"].as_array().expect("channels") {
            assert_eq!(number(channel, "late"), 0, "slots come as often as fixed delays need");
        }
        let counted = &stations["runs"][0]["stations"];
        assert_eq!(number(counted, "collisions"), 0, "{counted}");
        for station in counted["stations"].as_array().expect("stations") {
            let troubles = ["unsent", "timeouts", "overruns", "discarded"];
            assert_eq!(troubles.map(|what| number(station, what)), [0; 4], "{station}");
            assert_eq!(station["stopped"], false);
        }
        // The same again, also when the report is made again.
        let again = run_over("network-code", &system, of_run);
        assert_eq!(stations, again);
        let report = results(&["report", "."], system.path(), 0);
        assert_eq!(stations, report);
        let text = std::fs::read_to_string(system.path().join("out/report.html")).expect("a page");
        assert!(text.contains("--backend network-code") && text.contains("What stations counted"));
    }
}

#[test]
fn the_robot_arm_runs_over_stations_in_real_time() {
    let system = TestSystem::example("03-robot-arm");
    let seen = run_over("network-code", &system, &["--time", "real", "--duration", "2s"]);
    for channel in seen["runs"][0]["channels"].as_array().expect("channels") {
        // What the machine does to programs is not the network's: none is broken.
        assert_ne!(channel["verdict"], "broken", "{channel}");
        assert!(number(channel, "received") > 1_000, "{channel}");
    }
    assert_eq!(number(&seen["runs"][0]["stations"], "collisions"), 0);
}

/// A talker whose clock is fast writes more often than a slow master would begin rounds.
#[test]
fn no_message_is_lost_in_the_slips_of_two_clocks() {
    let clocks = |text: String, ppb: [i64; 2]| {
        let mut text = text;
        for (host, ppb) in ["a", "b"].into_iter().zip(ppb) {
            let plain = format!("[[host]]\nname = \"{host}\"\n");
            text = text.replace(&plain, &format!("{plain}clock = {{ drift_ppb = {ppb} }}\n"));
        }
        text
    };
    for ppb in [[100_000, -100_000], [-100_000, 100_000]] {
        let description = clocks(two_hosts(&programs("20000", "20000")), ppb);
        let system = TestSystem::new(&description);
        system.program("talker.c", "left").program("listener.c", "right");
        let seen = run_over("network-code", &system, &["--duration", "22s"]);
        all_kept(&seen);
    }
}

#[test]
fn a_host_that_fails_costs_what_is_written_meanwhile_and_no_more() {
    let fault = "\n[[fault]]\nnode = \"a\"\nfrom_ms = 200\nuntil_ms = 300\n";
    let description = format!("{}{fault}", two_hosts(&programs("400", "400")));
    let system = TestSystem::new(&description);
    system.program("talker.c", "left").program("listener.c", "right");
    let arguments = [&["run", "."][..], &STATIONS].concat();
    let seen = results(&arguments, system.path(), 3);
    let c = channel(&seen, "c");
    let (sent, received) = (number(c, "sent"), number(c, "received"));
    assert_eq!(number(c, "lost"), sent - received, "{c}");
    // One each millisecond; what was in a buffer when the host failed, and what came back.
    assert!((100..=104).contains(&number(c, "lost")), "{c}");
    let station = &seen["runs"][0]["stations"]["stations"][0];
    assert_eq!(station["host"], "a");
    assert!((number(c, "lost") - number(station, "unsent")).abs() <= 2, "{station}");
}

/// Hosts around a bridge, of which two share a slot in the modes of a third.
fn hands() -> TestSystem {
    let hosts = ["panel", "left", "right", "arm"];
    let mut text = "format = 1\nname = \"hands\"\n[run]\nduration_ms = 1000\n".to_owned();
    text += "backend = \"network-code\"\n[[bridge]]\nname = \"s\"\n";
    for host in hosts {
        text += &format!("[[host]]\nname = \"{host}\"\n");
        text += &format!("[[link]]\nends = [\"{host}\", \"s\"]\nrate_mbps = 1000\n");
    }
    let channels = [
        ("mode", "panel", "\"left\", \"right\""),
        ("force", "left", "\"arm\""),
        ("position", "right", "\"arm\""),
    ];
    for (number, (name, talker, listeners)) in channels.into_iter().enumerate() {
        text += &format!(
            "[[channel]]\nname = \"{name}\"\ndestination = \"01:00:5e:00:00:0{number}\"\n\
             stream_id = {}\nclass = \"A\"\nsize_octets = 8\nrate_hz = 1000\n\
             talker = \"{talker}\"\nlisteners = [{listeners}]\n",
            number + 1
        );
    }
    text += "[[alternatives]]\nname = \"hands\"\nmode = \"mode\"\noffset_octets = 0\n\
             channels = [\"force\", \"position\"]\nvalues = [1, 2]\n";
    let roles =
        [("panel", "\"panel\""), ("left", "\"force\", \"1\""), ("right", "\"position\", \"2\"")];
    for (host, role) in roles.into_iter().chain([("arm", "\"arm\"")]) {
        text += &format!(
            "[[program]]\nname = \"{host}\"\nhost = \"{host}\"\n\
             command = [\"build/modes\", {role}]\n"
        );
    }
    let system = TestSystem::new(&text);
    system.program("modes.c", "modes");
    system
}

#[test]
fn of_two_channels_that_share_a_slot_the_mode_says_which_sends() {
    let system = hands();
    let seen = results(&["run", "."], system.path(), 0);
    assert_eq!(number(&seen["runs"][0]["stations"], "collisions"), 0);
    assert_eq!(channel(&seen, "mode")["verdict"], "kept");
    for name in ["force", "position"] {
        let c = channel(&seen, name);
        // The last message of a mode waits for it to come again, or is replaced then.
        assert!(number(c, "lost") <= 3 && number(c, "received") > 390, "{c}");
        assert_eq!(number(c, "sent") - number(c, "received"), number(c, "lost"), "{c}");
        assert_ne!(c["verdict"], "broken", "{c}");
        assert!(number(c, "latency_ns.p99") < number(c, "bound_ns"), "{c}");
    }
    // Records say when: in each mode only one of them has come.
    let text = std::fs::read_to_string(system.path().join("out/1-run/messages.csv"));
    let text = text.expect("messages");
    let arrivals = |name: &str| -> Vec<i64> {
        let rows = text.lines().filter(|row| row.starts_with(&format!("{name},")));
        rows.filter_map(|row| row.split(',').nth(5)?.parse().ok()).collect()
    };
    let in_mode = |at: &i64| (at / 1_000_000 / 200 % 2, at / 1_000_000 % 200);
    for (name, mode) in [("force", 0), ("position", 1)] {
        // A mode takes a few rounds to be known everywhere.
        let strays =
            arrivals(name).iter().map(in_mode).filter(|at| at.0 != mode && at.1 > 3).count();
        assert_eq!(strays, 0, "{name}");
    }
}

#[test]
fn what_has_no_stations_says_so() {
    let system = talker_and_listener("100", "100");
    let refusals: [(&[&str], &str); 4] = [
        (&["run", ".", "--unprotected"], "`--unprotected` is for"),
        (&["plan", ".", "--unprotected"], "`--unprotected` is for `--backend bridges`"),
        (&["plan", ".", "--admit"], "`--admit` is for `--backend bridges`"),
        (&["run", ".", "--backend", "nothing"], "invalid value 'nothing'"),
    ];
    let plan = common::run(&["plan", ".", "--json"], system.path(), 0).stdout;
    std::fs::write(system.path().join("earlier.json"), plan).expect("written");
    let keeps: (&[&str], &str) = (&["run", ".", "--keep", "earlier.json"], "`--keep` is for");
    for (arguments, says) in refusals.into_iter().chain([keeps]) {
        let backend = if arguments.contains(&"--backend") { &[][..] } else { &STATIONS };
        let arguments = [arguments, backend].concat();
        let output = common::run(&arguments, system.path(), 2);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains(says), "{arguments:?}: {said}");
    }
}

#[test]
fn a_described_backend_is_that_of_all_verbs() {
    let text = std::fs::read_to_string(root().join("examples/03-robot-arm/system.toml"));
    let text = text.expect("the example").replace("[run]\n", "[run]\nbackend = \"network-code\"\n");
    let text = text.replace("protected = false", "protected = true");
    let system = TestSystem::new(&text);
    common::run(&["check", "."], system.path(), 0);
    let [plan, bounds] = ["plan", "bounds"].map(|verb| results(&[verb, "."], system.path(), 0));
    let planned = number(&plan["channels"][0]["listeners"][0], "bound_ns");
    assert_eq!(number(&bounds["flows"][0], "bound_ns"), planned);
    let bridges = results(&["plan", ".", "--backend", "bridges"], system.path(), 0);
    assert_ne!(number(&bridges["channels"][0]["listeners"][0], "bound_ns"), planned);
    // A simulation has stations, too: modelled messages keep the bounds, and none is lost.
    let simulate = ["simulate", ".", "--duration", "3s", "--repetitions", "3"];
    let simulated = results(&simulate, system.path(), 0);
    for flow in simulated["flows"].as_array().expect("flows") {
        let listener = &flow["listeners"][0];
        assert_eq!(listener["verdict"], "kept", "{flow}");
        assert_eq!(flow["released"], listener["frames"], "{flow}");
        let most = number(listener, "latency_ns.max");
        let least = number(listener, "latency_ns.min");
        assert!(least >= number(listener, "best_ns") && most <= number(listener, "bound_ns"));
        assert!(most > 450_000, "a message waits for its slot: {flow}");
    }
}
