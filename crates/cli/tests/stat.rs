//! What can be seen of programs while they run: counters, and markers in the kernel's trace.

use crate::common::{TestSystem, number, onbeat, run, talker_and_listener};
use onbeat::shared_log::{Board, Identity};
use onbeat_model::record::{Record, Role, flag};
use onbeat_model::units::StreamId;
use onbeat_runtime::channel_io::{Log, Reason};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// How often to look for what must come on a busy machine before it counts as not coming.
const LOOKS: u32 = 600;

fn pause() {
    assert!(Command::new("sleep").arg("0.1").status().expect("sleep").success());
}

/// A child that ends with the test, however that ends.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let pid = self.0.id().to_string();
        // Not killed: it clears up after itself.
        let _ = Command::new("kill").args(["-INT", &pid]).status();
        let _ = self.0.wait();
    }
}

fn ends(arguments: &[&str]) -> Vec<Value> {
    let output = run(&[&["stat", "--json"], arguments].concat(), Path::new("/"), 0);
    let all: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((&all["format"], &all["version"]), (&"onbeat-stat".into(), &1.into()));
    all["endpoints"].as_array().expect("endpoints").clone()
}

/// The ends of the programs that run in the system's directory: other tests run too.
fn ends_of(system: &TestSystem) -> Vec<Value> {
    let home = system.path().canonicalize().expect("the directory");
    let mut ends = ends(&["--channel", "c"]);
    ends.retain(|end| {
        let place = std::fs::read_link(format!("/proc/{}/cwd", end["pid"]));
        place.is_ok_and(|place| place.starts_with(&home))
    });
    ends
}

/// Waits until both programs have counted more than this; their ends.
fn both(system: &TestSystem, more_than: i64) -> [Value; 2] {
    for _ in 0..LOOKS {
        let found = ends_of(system);
        let of = |program: &str| found.iter().find(|e| e["program"] == program).cloned();
        if let (Some(left), Some(right)) = (of("left"), of("right"))
            && number(&left, "sent") > more_than
            && number(&right, "received") > more_than
        {
            return [left, right];
        }
        pause();
    }
    panic!("no counts above {more_than}: {:?}", ends_of(system));
}

#[test]
fn the_counters_of_a_run_can_be_read_while_it_goes_on() {
    let system = talker_and_listener("", "");
    let child = onbeat()
        .args(["run", ".", "--duration", "600s", "--time", "real"])
        .current_dir(system.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let running = Running(child.expect("onbeat runs"));
    let [left, right] = both(&system, 0);
    assert_eq!((left["end"].as_str(), right["end"].as_str()), (Some("talker"), Some("listener")));
    assert_eq!((number(&left, "stream_id"), number(&right, "rejected.shape")), (1, 0));
    assert_eq!(ends_of(&system).len(), 2, "each end is there once");
    let [later, _] = both(&system, number(&left, "sent"));
    assert_eq!(later["pid"], left["pid"]);
    // One program's ends only, and for a person.
    let pid = left["pid"].to_string();
    assert_eq!(ends(&["--pid", &pid]).len(), 1);
    let output = run(&["stat", "--pid", &pid], Path::new("/"), 0);
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert_eq!(text.lines().count(), 3, "{text}");
    assert!(text.lines().nth(2).is_some_and(|line| line.starts_with("left ")), "{text}");
    drop(running);
    assert_eq!(ends_of(&system), Vec::<Value>::new(), "nothing is left of it");
}

/// An end that this test's process has on an interface, as far as can be seen from outside.
fn end_of_a_board(board: &Board, channel: &str) -> impl Log + use<> {
    let mut end = board.end().expect("an end");
    let identity =
        Identity { channel: channel.to_owned(), stream_id: StreamId(9), role: Role::Listener };
    end.introduce(&identity);
    end
}

#[test]
fn the_counters_of_a_program_on_an_interface_can_be_read_with_their_reasons() {
    let board = Board::new().expect("a board");
    let mut end = end_of_a_board(&board, "on-an-interface");
    end.push(&Record { gap: 2, flags: flag::LATE, ..Record::default() });
    end.push(&Record { flags: flag::DUPLICATE, ..Record::default() });
    end.reject(Reason::Stream, 1);
    let pid = std::process::id().to_string();
    let filters = ["--pid", &pid, "--channel", "on-an-interface"];
    let [got] = ends(&filters).try_into().expect("one end");
    for (name, count) in [
        ("received", 1),
        ("lost", 2),
        ("late", 1),
        ("duplicate", 1),
        ("rejected.stream", 1),
        ("rejected.size", 0),
        ("unrecorded", 0),
        ("breaks", 0),
    ] {
        assert_eq!(number(&got, name), count, "{name}");
    }
    drop((end, board));
    assert_eq!(ends(&filters), Vec::<Value>::new());
    let output = run(&["stat", "--channel", "on-an-interface"], Path::new("/"), 0);
    assert_eq!(output.stdout, b"No running program with channels.\n");
}

#[test]
fn watching_shows_rates_from_the_second_look_on_until_it_is_interrupted() {
    let board = Board::new().expect("a board");
    let mut end = end_of_a_board(&board, "watched");
    let child = onbeat()
        .args(["stat", "--watch", "--json", "--channel", "watched"])
        .stdout(Stdio::piped())
        .spawn();
    let mut child = child.expect("onbeat runs");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let mut next = || -> Value {
        let line = lines.next().expect("a line").expect("text");
        serde_json::from_str(&line).expect("JSON")
    };
    assert_eq!(next()["endpoints"][0].get("received_per_s"), None, "nothing to compare with");
    for _ in 0..1_000 {
        end.push(&Record::default());
    }
    let seen = (0..3).map(|_| next()["endpoints"][0]["received_per_s"].as_i64());
    let most = seen.map(|rate| rate.expect("a rate")).max();
    assert!(most.is_some_and(|rate| rate > 0), "{most:?}");
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().expect("kill").success());
    assert_eq!(child.wait().expect("an end").code(), Some(0));
}

#[test]
fn a_filter_that_is_no_number_is_a_wrong_argument() {
    run(&["stat", "--pid", "left"], Path::new("/"), 2);
    run(&["run", ".", "--break-us", "0"], Path::new("/"), 2);
}

#[test]
fn in_virtual_time_a_trace_is_refused_its_effect_in_one_line() {
    let system = talker_and_listener("", "");
    let output = run(&["run", ".", "--trace", "--break-us", "1"], system.path(), 0);
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(said.contains("--trace and --break-us have no effect in virtual time"), "{said}");
}

/// Runs the command with an instance of the kernel's trace in the place of the trace itself, in a
/// mount namespace of its own, so that nothing outside changes. Prints that trace at the end.
const WITH_A_TRACE: &str = r#"
grep -q ' /sys/kernel/tracing tracefs ' /proc/mounts ||
	mount -t tracefs nodev /sys/kernel/tracing || exit 77
instance=/sys/kernel/tracing/instances/onbeat-stat-test-$$
mkdir "$instance" || exit 77
mount --bind "$instance" /sys/kernel/tracing
"$@"
status=$?
cat /sys/kernel/tracing/tracing_on /sys/kernel/tracing/trace
umount /sys/kernel/tracing
rmdir "$instance"
exit $status
"#;

/// What a run with these words prints, with the kernel's trace, and says; nothing where there is no
/// such trace.
fn traced(words: &[&str]) -> Option<(String, String)> {
    let system = talker_and_listener("", "");
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", WITH_A_TRACE, "sh", env!("CARGO_BIN_EXE_onbeat")])
        .args(["run", ".", "--time", "real", "--trace", "--duration", "1s"])
        .args(words)
        .current_dir(system.path())
        .output()
        .expect("unshare");
    let [text, said] =
        [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
    if !output.status.success() && !said.contains("onbeat: ") {
        println!("not tested: no mount namespace or no kernel trace here ({said})");
        return None;
    }
    Some((text, said))
}

#[test]
fn a_run_marks_its_messages_in_the_kernels_trace_and_freezes_it_at_a_long_latency() {
    let Some((text, said)) = traced(&[]) else { return };
    assert!(text.contains("\n1\n"), "the trace goes on: {text}");
    for marker in ["onbeat tx c seq=0 cap=", "onbeat rx c seq=0 cap="] {
        assert!(text.contains(marker), "{marker} in {text}\n{said}");
    }
    // The listener may freeze it before the talker comes to its mark.
    let Some((text, said)) = traced(&["--break-us", "1"]) else { return };
    assert!(text.contains("\n0\n"), "the trace is frozen: {text}");
    for marker in ["onbeat rx c seq=0 cap=", "onbeat break c seq=0 "] {
        assert!(text.contains(marker), "{marker} in {text}\n{said}");
    }
    assert!(said.contains("the kernel's trace is frozen: message 0 of channel `c` took"), "{said}");
}

#[test]
fn a_run_without_a_kernel_trace_is_refused_before_it_starts() {
    let system = talker_and_listener("", "");
    let without = "mount -t tmpfs nodev /sys/kernel/tracing && exec \"$@\"";
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", without, "sh", env!("CARGO_BIN_EXE_onbeat")])
        .args(["run", ".", "--time", "real", "--trace"])
        .current_dir(system.path())
        .output()
        .expect("unshare");
    let said = String::from_utf8_lossy(&output.stderr);
    if !said.contains("onbeat: ") {
        println!("not tested: no mount namespace here ({said})");
        return;
    }
    assert_eq!(output.status.code(), Some(5), "{said}");
    assert!(said.contains("tracing/trace_marker: ") && said.lines().count() == 1, "{said}");
    assert!(!system.path().join("out").exists());
}
