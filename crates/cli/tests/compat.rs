//! Programs written for the public library net_chan as programs of a run: the sources that
//! `crates/capi/tests/compat.rs` runs on interfaces, unchanged, with the plan's reservation.

use crate::common::{TestSystem, channel, number, results, root};
use std::process::Command;

/// The rows of both manifests.
const FIRST: &[&str] = &["mcast42", "mcast17"];
const LATER: &[&str] = &["mcast42", "mcast17", "mcast18", "load", "unread"];

/// Two hosts and a bridge; channels from the manifest, left to right, and both programs.
fn description(manifest: &str, channels: &[&str], arguments: &str) -> String {
    let channels: String = channels
        .iter()
        .map(|name| {
            format!("[[channel]]\nname = \"{name}\"\ntalker = \"a\"\nlisteners = [\"b\"]\n")
        })
        .collect();
    format!(
        r#"
format = 1
name = "compat"
manifest = "{manifest}"
[run]
duration_s = 5
hang_timeout_s = 20
[[host]]
name = "a"
[[host]]
name = "b"
[[bridge]]
name = "s"
forwarding_ns = 1000
[[link]]
ends = ["a", "s"]
rate_mbps = 1000
propagation_ns = 100
[[link]]
ends = ["s", "b"]
rate_mbps = 1000
propagation_ns = 100
{channels}
[[program]]
name = "left"
host = "a"
command = ["build/left"{arguments}]
[[program]]
name = "right"
host = "b"
command = ["build/right"{arguments}]
"#
    )
}

/// A system with two of `compat/tests` as its programs.
pub(crate) fn system(description: &str, left: &str, right: &str, flags: &[&str]) -> TestSystem {
    let system = TestSystem::new(description);
    let compat = root().join("compat");
    let build = system.path().join("compat");
    let made = Command::new("make")
        .args(["-s", "-C"])
        .arg(&compat)
        .arg(format!("BUILD={}", build.display()))
        .status()
        .expect("make");
    assert!(made.success());
    for manifest in ["manifest.h", "first_manifest.h"] {
        let from = compat.join("tests").join(manifest);
        std::fs::copy(from, system.path().join(manifest)).expect("copied");
    }
    let include = format!("-I{}", compat.join("include").display());
    let archive = build.join("libnetchan.a");
    let more = ["-D_GNU_SOURCE", &include, archive.to_str().expect("UTF-8")];
    for (source, name) in [(left, "left"), (right, "right")] {
        let source = compat.join("tests").join(source);
        system.compile(&source, name, &[flags, &more].concat());
    }
    system
}

#[test]
fn the_papers_programs_run_in_virtual_time_with_the_plans_reservation() {
    let text = description("first_manifest.h", FIRST, "");
    let system = system(&text, "first_talker.c", "first_listener.c", &["-DSRP"]);
    let run = || results(&["run", "."], system.path(), 0);
    let first = run();
    let c = channel(&first, "mcast42");
    assert_eq!((number(c, "sent"), number(c, "received")), (201, 201), "{c}");
    assert_eq!((number(c, "lost"), number(c, "late")), (0, 0), "{c}");
    assert_eq!(c["verdict"], "kept");
    // Both ends wait for capture + D, and nothing delays their waking up.
    assert_eq!(number(c, "wakeup_error_ns.relative.max"), 0, "{c}");
    assert_eq!(first["runs"][0]["record_hash"], run()["runs"][0]["record_hash"]);
    let log = std::fs::read_to_string(system.path().join("first_listener.csv")).expect("a log");
    assert_eq!(log.lines().count(), 202);
}

#[test]
fn the_later_macros_run_in_both_times() {
    let arguments = r#", "--nic", "is-not-used", "--srp", "-v""#;
    let text = description("manifest.h", LATER, arguments);
    let system = system(&text, "talker.c", "listener.c", &[]);
    for time in ["virtual", "real"] {
        let results = results(&["run", ".", "--time", time], system.path(), 0);
        let c = channel(&results, "mcast42");
        assert_eq!((number(c, "sent"), number(c, "lost")), (202, 0), "{c}");
    }
}

#[test]
fn callbacks_timers_and_launch_times_are_of_virtual_time() {
    let text = description("manifest.h", LATER, r#", "is-not-used""#);
    let system = system(&text, "handler_talker.c", "handler_listener.c", &[]);
    let results = results(&["run", "."], system.path(), 0);
    for (name, count) in [("mcast42", 50), ("mcast17", 51)] {
        let c = channel(&results, name);
        assert_eq!((number(c, "sent"), number(c, "received")), (count, count), "{c}");
    }
}

#[test]
fn a_reader_that_looks_at_no_result_ends_with_the_run() {
    let text = description("first_manifest.h", FIRST, "");
    let system = system(&text, "first_talker.c", "first_listener.c", &["-DLOOPS=1000000"]);
    let results = results(&["run", "."], system.path(), 0);
    // The run is over when the message of 5 s is due.
    assert_eq!(number(channel(&results, "mcast42"), "sent"), 250);
}

/// Programs of which each sends to all, by channels that have a name in the description only.
fn mesh(others_only: bool) -> String {
    const COUNT: usize = 3;
    let hosts = (0..COUNT).map(|i| {
        let others = if others_only { ", \"-o\"" } else { "" };
        format!(
            r#"
[[host]]
name = "h{i}"
[[link]]
ends = ["h{i}", "s"]
rate_mbps = 1000
[[program]]
name = "p{i}"
host = "h{i}"
command = ["build/left", "-n", "not-used", "-s", "{COUNT}", "-I", "{i}", "-i", "20"{others}]
"#
        )
    });
    let pairs = (0..COUNT).flat_map(|talker| (0..COUNT).map(move |listener| (talker, listener)));
    let pairs = pairs.filter(|(talker, listener)| !others_only || talker != listener);
    let channels = pairs.map(|(talker, listener)| {
        let id = 42 + talker * COUNT + listener;
        format!(
            r#"
[[channel]]
name = "from_{talker}_to_{listener}"
talker = "h{talker}"
listeners = ["h{listener}"]
stream_id = {id}
destination = "01:00:5e:01:01:{id:02x}"
class = "A"
size_octets = 8
interval_ns = 10000000
"#
        )
    });
    let run = "[run]\nduration_s = 1\nhang_timeout_s = 60\n";
    let head = format!("format = 1\nname = \"mesh\"\n{run}[[bridge]]\nname = \"s\"\n");
    hosts.chain(channels).fold(head, |text, part| text + &part)
}

/// Their readers are threads that they create by pthread_create, and find channels by streams.
#[test]
fn threads_of_programs_take_part_in_a_run_and_channels_are_found_by_their_streams() {
    // One line for the channels to themselves, too: `mesh(false)`.
    let system = system(&mesh(false), "mesh.c", "mesh.c", &[]);
    for time in ["virtual", "real"] {
        let run = || results(&["run", ".", "--time", time], system.path(), 0);
        let first = run();
        for (talker, listener) in [(0, 1), (1, 2), (2, 0)] {
            let c = channel(&first, &format!("from_{talker}_to_{listener}"));
            // The first ones and the end are messages, too.
            assert!(number(c, "sent") >= 23, "{c}");
            let counts = [number(c, "received"), number(c, "lost")];
            assert_eq!(counts, [number(c, "sent"), 0], "{c}");
        }
        if time == "virtual" {
            assert_eq!(first["runs"][0]["record_hash"], run()["runs"][0]["record_hash"]);
        }
    }
}

#[test]
fn tasks_of_timed_c_share_ends_wait_until_their_limit_and_clean_up_for_themselves_only() {
    for time in ["virtual", "real"] {
        let exact = if time == "virtual" { "exact" } else { "roughly" };
        let text = description("manifest.h", LATER, "")
            .replace("[\"build/left\"]", &format!("[\"build/left\", \"talk\", \"{exact}\"]"))
            .replace("[\"build/right\"]", &format!("[\"build/right\", \"listen\", \"{exact}\"]"));
        let system = system(&text, "tasks.c", "tasks.c", &[]);
        let results = results(&["run", ".", "--time", time, "--duration", "1s"], system.path(), 0);
        let c = channel(&results, "mcast42");
        assert_eq!((number(c, "sent"), number(c, "received")), (3, 3), "{c}");
        // The program's end completes the logs, whatever its tasks' CLEANUP() does.
        let log = std::fs::read_to_string(system.path().join("tasks_listen.csv")).expect("a log");
        assert!(log.lines().count() > 2, "{log}");
    }
}

#[test]
fn each_header_compiles_alone_in_strict_c99() {
    let include = root().join("compat/include");
    let mut headers = 0;
    for entry in std::fs::read_dir(&include).expect("headers") {
        let header = entry.expect("an entry").path();
        if header.extension().is_none_or(|extension| extension != "h") {
            continue;
        }
        let checked = Command::new("cc")
            .args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-include"])
            .arg(&header)
            .arg(format!("-I{}", include.display()))
            .arg(format!("-I{}", root().join("crates/capi/include").display()))
            .args(["-x", "c", "/dev/null"])
            .output()
            .expect("cc");
        let why = String::from_utf8_lossy(&checked.stderr);
        assert!(checked.status.success(), "{}: {why}", header.display());
        headers += 1;
    }
    assert!(headers > 5);
}
