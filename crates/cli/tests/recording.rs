//! What is left of a run that is cut off, or whose disk is full, and of two at one place.

use crate::common::{TestSystem, onbeat, programs, run, two_hosts};
use onbeat_testkit::{Need, not_run};
use serde_json::Value;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// How often something is looked for, 50 times a second.
const LOOKS: usize = 3_000;

fn until(what: &str, mut is: impl FnMut() -> bool) {
    for _ in 0..LOOKS {
        if is() {
            return;
        }
        Command::new("sleep").arg("0.02").status().expect("sleep");
    }
    panic!("{what} does not come");
}

/// A long run in real time of the ends that the description models.
fn begin(system: &TestSystem) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_onbeat"));
    command.args(["run", ".", "--time", "real", "--duration", "10min"]);
    command.current_dir(system.path()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().expect("onbeat")
}

fn size(path: &Path) -> u64 {
    path.metadata().map_or(0, |metadata| metadata.len())
}

#[test]
fn a_run_that_is_killed_keeps_what_it_recorded_until_then() {
    let system = TestSystem::new(&two_hosts(""));
    let recording = system.path().join("out.recording");
    let mut child = begin(&system);
    until("a part", || size(&recording) > 0);
    // What comes first is about the run: messages are some hundred kilobytes each second.
    let first = size(&recording);
    until("messages", || size(&recording) > first + 100_000);
    child.kill().expect("ours");
    child.wait().expect("it ends");
    let refused = run(&["report", "."], system.path(), 5);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("--recovered"), "{said}");
    // The run's last second may be half written.
    let output = run(&["report", ".", "--recovered", "--json"], system.path(), 4);
    let results: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let channel = &results["runs"][0]["channels"][0];
    assert!(channel["sent"].as_u64().is_some_and(|sent| sent > 0), "{channel}");
    assert!(channel["received"].as_u64().is_some_and(|got| got > 0), "{channel}");
    let ended = &results["runs"][0]["ended"]["early"]["reason"];
    assert!(ended.as_str().is_some_and(|why| why.contains("cut off")), "{results}");
    assert!(!recording.exists(), "the output has it");
    assert!(system.path().join("out/results.json").exists());
}

#[test]
fn two_runs_into_one_directory_at_once_are_refused() {
    let system = TestSystem::new(&two_hosts(""));
    let mut child = begin(&system);
    until("the first", || size(&system.path().join("out.recording")) > 0);
    let second = run(&["run", ".", "--duration", "100ms"], system.path(), 5);
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(said.contains(&format!("process {} is writing", child.id())), "{said}");
    // Elsewhere it may run meanwhile.
    run(&["run", ".", "--duration", "100ms", "--out", "other"], system.path(), 0);
    child.kill().expect("ours");
    child.wait().expect("it ends");
    // Whoever is killed refuses nobody.
    run(&["run", ".", "--duration", "100ms"], system.path(), 0);
    let left = system.path().join("out.recording");
    assert!(!left.exists(), "a complete run leaves no recording");
}

#[test]
fn a_disk_that_fills_keeps_what_was_recorded_until_then() {
    let system = TestSystem::new(&two_hosts(""));
    let onbeat = env!("CARGO_BIN_EXE_onbeat");
    // Of a minute with a message each millisecond little more than the beginning fits.
    let script = format!(
        "mount -t tmpfs -o size=256k none full && echo ready >&2 || exit 9\n\
         {onbeat} run . --duration 10min --out full/out; echo code $? >&2\n\
         ls -l full >&2\n\
         cp full/out.recording . && {onbeat} report . --recovered --json > recovered.json; true"
    );
    std::fs::create_dir(system.path().join("full")).expect("a directory");
    let mut output = Command::new("unshare");
    output.args(["--mount", "sh", "-c", &script]);
    let output = output.current_dir(system.path()).output().expect("unshare");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if !said.contains("ready") {
        not_run(Need::Machine, said);
        return;
    }
    assert!(said.contains("code 5") && said.contains("No space left on device"), "{said}");
    assert!(said.contains("this will record about"), "{said}");
    let recovered = std::fs::read(system.path().join("recovered.json")).expect("a report");
    let results: Value = serde_json::from_slice(&recovered).expect("JSON");
    assert!(results["runs"][0]["ended"]["early"].is_object(), "{results}");
}

/// How much memory a process has had at most, in kibibytes: its own, and what it shares.
fn peak_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("a process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

#[test]
fn a_run_of_a_month_keeps_to_its_budget_of_records_and_says_so() {
    let description =
        two_hosts(&programs("talk", "listen")).replace("rate_hz = 1000", "rate_hz = 50");
    let system = TestSystem::new(&description);
    system.program("talker.c", "left").program("listener.c", "right");
    let child = onbeat()
        .args(["run", ".", "--duration", "720h"])
        .current_dir(system.path())
        .stderr(Stdio::piped())
        .spawn()
        .expect("onbeat runs");
    // Once something is recorded, all memory for records is there.
    let recording = system.path().join("out.recording");
    until("a recording", || std::fs::metadata(&recording).is_ok_and(|about| about.len() > 0));
    let peak = peak_kib(child.id());
    assert!(peak < 1_500_000, "{peak} KiB");
    let interrupt = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(interrupt.expect("kill runs").success());
    let output = child.wait_with_output().expect("its end");
    let said = String::from_utf8_lossy(&output.stderr);
    let expected = "records 8388608 messages at each end, and channel `c` sends about 129600000";
    assert!(said.contains(expected), "{said}");
}
