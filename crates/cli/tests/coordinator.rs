//! Programs of a run: what they may rely on, and what becomes of those that misbehave.

use crate::common::{
    self, TestSystem, channel, number, programs, results, run, talker_and_listener, two_hosts,
};
use onbeat_testkit::{Need, not_run};
use std::path::Path;

/// Runs a system whose program misbehaves; what is said of it.
fn misbehaving(how: &str, time: &str) -> String {
    let system = talker_and_listener("", how);
    let output = run(&["run", ".", "--time", time], system.path(), 4);
    // What was recorded until then is kept.
    assert!(system.path().join("out/1-run/records.onb").is_file());
    assert_eq!(survivors(system.path()), Vec::<String>::new());
    String::from_utf8(output.stderr).expect("UTF-8")
}

/// Processes that run a program of this system, or were started by one.
fn survivors(directory: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for process in Path::new("/proc").read_dir().expect("/proc").flatten() {
        let Ok(place) = std::fs::read_link(process.path().join("cwd")) else { continue };
        if place.starts_with(directory.canonicalize().expect("the directory")) {
            let command = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
            found.push(String::from_utf8_lossy(&command).replace('\0', " "));
        }
    }
    found
}

#[test]
fn every_kind_of_read_does_what_the_header_says() {
    let system = TestSystem::new(&two_hosts(&programs("", "")));
    system.program("talker.c", "left").program("reads.c", "right");
    let results = results(&["run", "."], system.path(), 0);
    assert_eq!(number(channel(&results, "c"), "lost"), 0);
}

/// Programs that were built with an older library know the old name only, and may meet a newer one.
#[test]
fn programs_find_their_run_by_either_name_of_the_variable() {
    let without = |name: &str, program: &str| {
        format!("command = [\"env\", \"-u\", \"{name}\", \"build/{program}\"")
    };
    let text = two_hosts(&programs("", ""))
        .replace("command = [\"build/left\"", &without("ONBEAT_COORDINATOR", "left"))
        .replace("command = [\"build/right\"", &without("ONBEAT_FABRIC", "right"));
    let system = TestSystem::new(&text);
    system.program("talker.c", "left").program("listener.c", "right");
    let results = results(&["run", "."], system.path(), 0);
    assert_eq!(number(channel(&results, "c"), "received"), 500);
}

#[test]
fn threads_without_locks_do_the_same_in_every_run() {
    let text = two_hosts(&programs("", "")).replace(
        "[[host]]\nname = \"a\"\n",
        "[[host]]\nname = \"a\"\nwakeup_ns = { min = 0, max = 5000 }\n",
    );
    let system = TestSystem::new(&text);
    system.program("threads.c", "left").program("listener.c", "right");
    let hash = || {
        let results = results(&["run", "."], system.path(), 0);
        assert_eq!(number(channel(&results, "c"), "received"), 2);
        results["runs"][0]["record_hash"].as_str().expect("a hash").to_owned()
    };
    let first = hash();
    for _ in 0..5 {
        assert_eq!(hash(), first);
    }
}

#[test]
fn threads_end_as_posix_lets_them_and_one_that_is_not_made_is_not_expected() {
    for time in ["virtual", "real"] {
        // Nothing is promised: a busy machine may be late.
        let text = two_hosts(&programs("", "")).replace("rate_hz", "reserve = false\nrate_hz");
        let system = TestSystem::new(&text);
        system.program("ends.c", "left").program("listener.c", "right");
        // Real time continues while other tests have the processors.
        let arguments = ["run", ".", "--time", time, "--duration", "5s"];
        let results = results(&arguments, system.path(), 0);
        assert_eq!(number(channel(&results, "c"), "received"), 50, "{time}");
    }
}

#[test]
fn threads_hand_values_to_each_other_through_words_in_either_time() {
    for time in ["virtual", "real"] {
        let system = TestSystem::new(&two_hosts(&programs(time, "")));
        system.program("words.c", "left").program("listener.c", "right");
        // Real time continues while other tests have the processors.
        let arguments = ["run", ".", "--time", time, "--duration", "5s"];
        let results = results(&arguments, system.path(), 0);
        assert_eq!(number(channel(&results, "c"), "received"), 1);
    }
}

#[test]
fn after_the_start_the_channel_path_neither_allocates_nor_faults_in_either_time() {
    let system = TestSystem::new(&two_hosts(&programs("wait", "wait")));
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let counter = sources.join("count_allocations.c");
    let more = [
        counter.to_str().expect("UTF-8"),
        "-Wl,--wrap=onbeat_write_wait",
        "-Wl,--wrap=onbeat_read_wait",
    ];
    system.compile(&sources.join("talker.c"), "left", &more);
    system.compile(&sources.join("listener.c"), "right", &more);
    for time in ["virtual", "real"] {
        let arguments = ["run", ".", "--time", time, "--duration", "2s"];
        let results = results(&arguments, system.path(), 0);
        assert!(number(channel(&results, "c"), "received") >= 50, "{results}");
    }
}

#[test]
fn a_program_that_dies_is_named_and_the_run_ends() {
    for time in ["virtual", "real"] {
        let said = misbehaving("dies", time);
        assert!(said.contains("program `right` ended before the run did"), "{said}");
        assert!(said.contains("SIGABRT"), "{said}");
    }
}

#[test]
fn a_program_that_hangs_is_named_and_the_run_ends_with_what_it_started() {
    let said = misbehaving("hangs", "virtual");
    assert!(said.contains("program `right` hangs"), "{said}");
    assert!(said.contains("`right` computes)"), "{said}");
}

#[test]
fn a_program_that_never_lets_time_pass_is_named() {
    let said = misbehaving("livelock", "virtual");
    assert!(said.contains("program `right`") && said.contains("without letting time"), "{said}");
}

#[test]
fn a_program_that_ignores_the_end_is_named() {
    let said = misbehaving("ignores the end", "virtual");
    assert!(said.contains("program `right` hangs"), "{said}");
}

#[test]
fn a_program_that_talks_nonsense_is_named_and_the_run_ends() {
    for time in ["virtual", "real"] {
        let said = misbehaving("nonsense", time);
        assert!(said.contains("program `right` violates the protocol"), "{said}");
    }
}

#[test]
fn a_program_that_disagrees_with_the_description_is_told_both_sizes() {
    for time in ["virtual", "real"] {
        let said = misbehaving("wrong size", time);
        let expected = "channel `c` carries messages of 8 octets, program `right` opens it for 4";
        assert!(said.contains(expected), "{said}");
    }
}

#[test]
fn ends_on_hosts_without_programs_are_modelled_in_either_time() {
    let system = TestSystem::new(&two_hosts(""));
    for time in ["virtual", "real"] {
        let results = results(&["run", ".", "--time", time], system.path(), 0);
        let c = channel(&results, "c");
        assert_eq!(number(c, "sent"), 500);
        assert_eq!(number(c, "received"), 500);
        // Two hops of 100 Mb/s: 76 octets to the last one, 100 ns of cable, 1 µs in the bridge.
        let hand = 2 * (76 * 80 + 100) + 1_000;
        if time == "virtual" {
            assert_eq!(number(c, "latency_ns.min"), hand);
            assert_eq!(number(c, "latency_ns.max"), hand);
        }
    }
}

#[test]
fn a_live_program_hears_a_modelled_talker() {
    let text =
        two_hosts("[[program]]\nname = \"right\"\nhost = \"b\"\ncommand = [\"build/right\"]\n");
    let system = TestSystem::new(&text);
    system.program("listener.c", "right");
    let results = results(&["run", "."], system.path(), 0);
    assert_eq!(number(channel(&results, "c"), "received"), 500);
}

/// A talker and an odd listener, whose clock drifts.
fn odd(how: &str) -> TestSystem {
    let text = two_hosts(&programs("", how))
        .replace("name = \"b\"\n", "name = \"b\"\nclock = { drift_ppb = -1000 }\n");
    let system = TestSystem::new(&text);
    system.program("talker.c", "left").program("listener.c", "right");
    system
}

#[test]
fn odd_programs_within_the_rules_do_no_harm() {
    let kinds = [
        ("virtual", "far"),
        ("real", "far"),
        ("virtual", "work"),
        ("virtual", "early"),
        ("real", "early"),
        ("virtual", "sleepy"),
        ("real", "sleepy"),
        ("virtual", "leaves a thread"),
        ("virtual", "many threads"),
        ("virtual", "atexit"),
        ("real", "atexit"),
        ("virtual", "daemon"),
        ("real", "daemon"),
    ];
    for (time, how) in kinds {
        let system = odd(how);
        let results = results(&["run", ".", "--time", time], system.path(), 0);
        let c = channel(&results, "c");
        // The network brought every message, whether the program came for it or not.
        assert_eq!(number(c, "lost"), 0, "{time} {how}: {c}");
        // In real time a busy machine may not let the talker write as often as it wants.
        let least = if time == "virtual" && how != "early" { 500 } else { 1 };
        assert!(number(c, "sent") >= least, "{time} {how}: {c}");
        assert_eq!(survivors(system.path()), Vec::<String>::new(), "{time} {how}");
    }
}

#[test]
fn a_listener_that_comes_for_nothing_costs_the_network_no_promise() {
    for time in ["virtual", "real"] {
        let system = odd("sleepy");
        let arguments = ["run", ".", "--time", time, "--duration", "3s"];
        let output = run(&[&arguments[..], &["--json"]].concat(), system.path(), 0);
        let results: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        // It comes for nothing of 3 s, and 1 s of them waits.
        let c = channel(&results, "c");
        assert_eq!((&c["lost"], c["verdict"].as_str()), (&c["overflowed"], Some("not judged")));
        assert!(number(c, "lost") > 0, "{c}");
        assert_eq!(number(c, "received") + number(c, "lost"), number(c, "sent"), "{c}");
        let said = String::from_utf8(output.stderr).expect("UTF-8");
        assert!(said.contains("`right` did not come for them"), "{said}");
    }
}

#[test]
fn a_program_that_forks_and_dies_is_named_by_its_death() {
    for time in ["virtual", "real"] {
        let system = odd("forks and dies");
        let output = run(&["run", ".", "--time", time], system.path(), 4);
        let said = String::from_utf8(output.stderr).expect("UTF-8");
        assert!(said.contains("`right`") && said.contains("SIGABRT"), "{said}");
        assert_eq!(survivors(system.path()), Vec::<String>::new());
    }
}

#[test]
fn a_program_that_never_listens_is_named() {
    for time in ["virtual", "real"] {
        let system = odd("deaf");
        let output = run(&["run", ".", "--time", time], system.path(), 4);
        let said = String::from_utf8(output.stderr).expect("UTF-8");
        assert!(said.contains("`right`") && said.contains("does not read"), "{said}");
    }
}

#[test]
fn a_modelled_talker_whose_clock_is_ahead_keeps_its_rate() {
    let text = two_hosts("")
        .replace("name = \"a\"\n", "name = \"a\"\nclock = { offset_ns = 5_200_000 }\n");
    let system = TestSystem::new(&text);
    let results = results(&["run", "."], system.path(), 0);
    let c = channel(&results, "c");
    assert_eq!(number(c, "sent"), 500);
    assert_eq!(number(c, "received"), 500);
    assert_eq!(number(c, "duplicated"), 0);
}

#[test]
fn a_program_in_another_language_takes_part_through_the_c_abi() {
    let python = std::process::Command::new("python3").arg("--version").output();
    if !python.is_ok_and(|output| output.status.success()) {
        not_run(Need::Tools, "python3 is not installed");
        return;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/listener.py");
    let library = common::library().with_extension("so");
    let command = format!("\"python3\", \"{}\", \"{}\"", script.display(), library.display());
    let text = two_hosts(&programs("", ""))
        .replace("\"build/right\", \"\"", &command)
        // An interpreter takes its time to start.
        .replace("hang_timeout_s = 2", "hang_timeout_s = 20");
    let system = TestSystem::new(&text);
    system.program("talker.c", "left");
    let hash = || {
        let results = results(&["run", "."], system.path(), 0);
        assert_eq!(number(channel(&results, "c"), "received"), 500);
        results["runs"][0]["record_hash"].as_str().expect("a hash").to_owned()
    };
    assert_eq!(hash(), hash());
}

#[test]
fn a_message_that_is_long_under_way_is_waited_for() {
    let text = two_hosts("").replace("propagation_ns = 100\n", "propagation_ns = 900_000_000\n");
    let system = TestSystem::new(&text);
    let results = results(&["run", "."], system.path(), 0);
    assert_eq!(number(channel(&results, "c"), "received"), 500);
    assert_eq!(number(channel(&results, "c"), "late"), 500);
}
