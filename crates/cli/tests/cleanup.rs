//! Whatever ends a run, nothing is left of it.

mod common;

use common::{TestSystem, onbeat, programs, talker_and_listener, two_hosts};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// How long to let clean-up take on a busy machine before it counts as not done.
const PATIENCE_STEPS: u32 = 1_000;

fn pause(ms: u64) {
    let status = Command::new("sleep").arg(format!("{}.{:03}", ms / 1_000, ms % 1_000)).status();
    assert!(status.expect("sleep").success());
}

/// What is there of a run: processes in the system's directory, sockets, temporary files.
fn remains(system: &TestSystem, pid: u32) -> Vec<String> {
    let mut found = Vec::new();
    let home = system.path().canonicalize().expect("the directory");
    for process in Path::new("/proc").read_dir().expect("/proc").flatten() {
        let cwd = std::fs::read_link(process.path().join("cwd"));
        if cwd.is_ok_and(|place| place.starts_with(&home)) {
            found.push(format!("process {}", process.path().display()));
        }
    }
    let sockets = std::fs::read_to_string("/proc/net/unix").expect("/proc/net/unix");
    let name = format!("@onbeat-{pid}-");
    found.extend(sockets.lines().filter(|l| l.contains(&name)).map(str::to_owned));
    for entry in home.read_dir().expect("the directory").flatten() {
        let name = entry.file_name();
        if name.to_string_lossy().contains("partial") {
            found.push(format!("{}", entry.path().display()));
        }
    }
    found
}

fn start(system: &TestSystem, time: &str) -> Child {
    onbeat()
        .args(["run", ".", "--duration", "60s", "--time", time])
        .current_dir(system.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("onbeat runs")
}

fn nothing_remains(system: &TestSystem, pid: u32) {
    let mut last = Vec::new();
    for _ in 0..PATIENCE_STEPS {
        last = remains(system, pid);
        if last.is_empty() {
            return;
        }
        pause(10);
    }
    panic!("left behind: {last:?}");
}

#[test]
fn a_run_that_is_killed_at_any_moment_leaves_no_process_socket_or_file() {
    let system = talker_and_listener("", "hangs");
    for time in ["virtual", "real"] {
        for after_ms in [0, 1, 2, 5, 10, 20, 50, 100, 300] {
            let mut run = start(&system, time);
            pause(after_ms);
            run.kill().expect("killed");
            run.wait().expect("gone");
            nothing_remains(&system, run.id());
            assert!(!system.path().join("out").exists());
        }
    }
}

#[test]
fn a_run_that_is_killed_while_it_writes_leaves_all_or_nothing() {
    let text = two_hosts(&programs("", "")).replace("duration_ms = 500", "duration_s = 20");
    let system = TestSystem::new(&text);
    system.program("talker.c", "left").program("listener.c", "right");
    let whole = ["report.html", "results.json", "1-run/records.onb", "1-run/messages.csv"];
    // Watches for the directory that is being written and kills at that moment.
    for _ in 0..5 {
        let mut run = onbeat()
            .args(["run", "."])
            .current_dir(system.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("onbeat runs");
        let writing = |system: &TestSystem| {
            let entries = system.path().read_dir().expect("the directory").flatten();
            let mut partial =
                entries.map(|e| e.path()).filter(|p| p.display().to_string().contains("partial"));
            partial.any(|p| p.join("1-run").exists())
        };
        while !writing(&system) && run.try_wait().expect("a state").is_none() {
            std::thread::yield_now();
        }
        run.kill().expect("killed");
        run.wait().expect("gone");
        nothing_remains(&system, run.id());
        let out = system.path().join("out");
        assert!(!out.exists() || whole.iter().all(|file| out.join(file).is_file()));
    }
}

#[test]
fn an_interrupted_run_keeps_what_it_recorded_and_leaves_nothing_else() {
    let system = talker_and_listener("", "");
    let mut run = start(&system, "real");
    pause(1_500);
    let pid = run.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().expect("kill").success());
    assert_eq!(run.wait().expect("gone").code(), Some(130));
    nothing_remains(&system, run.id());
    let text = std::fs::read_to_string(system.path().join("out/results.json")).expect("results");
    let results: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert!(common::number(common::channel(&results, "c"), "received") > 0);
    let reason = results["runs"][0]["ended"]["early"]["reason"].as_str().expect("a reason");
    assert!(reason.contains("interrupted"), "{reason}");
}
