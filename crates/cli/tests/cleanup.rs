//! Whatever ends a run, nothing is left of it.

use crate::common::{self, TestSystem, onbeat, programs, talker_and_listener, two_hosts};
use onbeat_run::netns::{self, KernelNetwork, NetnsError};
use onbeat_testkit::{Need, not_run};
use rustix::fd::AsFd;
use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
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

fn start(system: &TestSystem, how: [&str; 2]) -> Child {
    onbeat()
        .args(["run", ".", "--duration", "60s"])
        .args(how)
        .current_dir(system.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("onbeat runs")
}

/// Waits until nothing of it is there.
fn gone<T: std::fmt::Debug>(what: &str, look: impl Fn() -> Vec<T>) {
    let mut last = Vec::new();
    for _ in 0..PATIENCE_STEPS {
        last = look();
        if last.is_empty() {
            return;
        }
        pause(10);
    }
    panic!("{what} left behind: {last:?}");
}

fn nothing_remains(system: &TestSystem, pid: u32) {
    gone("processes, sockets or files", || remains(system, pid));
}

/// Waits as long as this is so, of a run that does not end meanwhile.
fn while_running(run: &mut Child, is_so: impl Fn() -> bool) {
    while is_so() {
        assert_eq!(run.try_wait().expect("a state"), None);
        pause(10);
    }
}

#[test]
fn a_run_that_is_killed_at_any_moment_leaves_no_process_socket_or_file() {
    let system = talker_and_listener("", "hangs");
    for time in ["virtual", "real"] {
        for after_ms in [0, 1, 2, 5, 10, 20, 50, 100, 300] {
            let mut run = start(&system, ["--time", time]);
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
    let mut run = start(&system, ["--time", "real"]);
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

/// Whether this machine lets the test make namespaces.
fn namespaces_are_permitted(system: &TestSystem) -> bool {
    let text = std::fs::read_to_string(system.path().join("system.toml")).expect("system.toml");
    let loaded = onbeat_description::load("system.toml", &text, &mut |name| Err(name.to_owned()));
    match KernelNetwork::build(&loaded.system.expect("right")) {
        Ok(_) => true,
        Err(error @ NetnsError::NotPermitted { .. }) => {
            not_run(Need::Namespaces, &error);
            assert!(error.to_string().contains("unshare -Ur onbeat"));
            false
        }
        Err(error) => panic!("{error}"),
    }
}

/// The network namespaces that a process, its threads and its descriptors hold, by where they are.
fn namespaces_of(process: &Path) -> Vec<PathBuf> {
    let list = |part: &str| {
        let entries = process.join(part).read_dir().into_iter().flatten().flatten();
        entries.map(|e| e.path()).collect::<Vec<_>>()
    };
    let threads = list("task").into_iter().map(|thread| thread.join("ns/net"));
    let holds = |path: &PathBuf| {
        let what = std::fs::read_link(path).unwrap_or_default();
        what.to_string_lossy().starts_with("net:[")
    };
    threads.chain(list("fd")).filter(holds).collect()
}

/// What names the namespaces at these places.
fn names(places: &[PathBuf]) -> BTreeSet<PathBuf> {
    places.iter().filter_map(|place| std::fs::read_link(place).ok()).collect()
}

/// The namespaces of `made` that some process still holds.
fn still_held(made: &BTreeSet<PathBuf>) -> Vec<PathBuf> {
    let processes = Path::new("/proc").read_dir().expect("/proc").flatten();
    let held = processes.flat_map(|process| namespaces_of(&process.path()));
    let held: Vec<_> = held.collect();
    names(&held).intersection(made).cloned().collect()
}

/// The virtual links in a namespace.
fn links_in(namespace: &File) -> Vec<String> {
    let look = || {
        netns::enter(namespace.as_fd()).expect("a namespace");
        let devices = std::fs::read_to_string("/proc/thread-self/net/dev").expect("devices");
        let devices = devices.lines().skip(2).filter_map(|line| line.split(':').next());
        // A bridge is no link: it goes with its namespace.
        let links = devices.map(str::trim).filter(|d| !["lo", "br0"].contains(d));
        links.map(str::to_owned).collect()
    };
    std::thread::scope(|scope| scope.spawn(look).join().expect("no panic"))
}

#[test]
fn a_run_in_namespaces_that_is_killed_at_any_moment_leaves_no_namespace_and_no_link() {
    let system = talker_and_listener("", "hangs");
    if !namespaces_are_permitted(&system) {
        return;
    }
    let own = || names(&namespaces_of(Path::new("/proc/self")));
    // Last at a moment at which its network is there, however busy the machine.
    let moments = [0, 1, 2, 5, 10, 20, 50, 100, 300, 1_000].map(Some).into_iter().chain([None]);
    for after_ms in moments {
        // Other tests' namespaces are here too, and until the command is executed in its process.
        let before = own();
        let mut run = start(&system, ["--network", "netns"]);
        let process = PathBuf::from(format!("/proc/{}", run.id()));
        match after_ms {
            Some(after_ms) => pause(after_ms),
            None => while_running(&mut run, || namespaces_of(&process).len() < 4),
        }
        let places = namespaces_of(&process);
        let others = &before | &own();
        let made: BTreeSet<_> = names(&places).difference(&others).cloned().collect();
        assert!(after_ms.is_some() || !made.is_empty(), "no namespace was seen");
        // Held from here one of them cannot go; its links must, whose other ends are elsewhere.
        let foreign = |place: &&PathBuf| names(&[(*place).clone()]).is_subset(&made);
        let kept = places.iter().filter(foreign).find_map(|place| File::open(place).ok());
        run.kill().expect("killed");
        run.wait().expect("gone");
        nothing_remains(&system, run.id());
        assert!(!system.path().join("out").exists());
        gone("links", || kept.as_ref().map(links_in).unwrap_or_default());
        drop(kept);
        // A process that another test is about to start still has what was open here.
        gone("namespaces", || still_held(&made));
    }
}

#[test]
fn an_interrupted_run_in_namespaces_keeps_what_it_recorded() {
    let system = talker_and_listener("", "");
    if !namespaces_are_permitted(&system) {
        return;
    }
    let mut run = start(&system, ["--network", "netns"]);
    // Until its programs have been there for a while.
    let process = PathBuf::from(format!("/proc/{}", run.id()));
    while_running(&mut run, || namespaces_of(&process).len() < 4);
    pause(1_500);
    let pid = run.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().expect("kill").success());
    assert_eq!(run.wait().expect("gone").code(), Some(130));
    nothing_remains(&system, run.id());
    let text = std::fs::read_to_string(system.path().join("out/results.json")).expect("results");
    let results: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert!(common::number(common::channel(&results, "c"), "received") > 0);
}

#[test]
fn a_scenario_that_cannot_be_run_takes_no_results_of_those_before_it() {
    let system = talker_and_listener("1", "1");
    common::start_once(&system);
    let words = ["run", ".", "--all-scenarios", "--duration", "100ms", "--json"];
    let output = common::run(&words, system.path(), 1);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("scenario second was not run"), "{said}");
    assert!(
        !said.contains("--recovered") && !system.path().join("out.recording").exists(),
        "{said}"
    );
    let error: serde_json::Value = serde_json::from_slice(&output.stdout).expect("one document");
    assert_eq!(error["diagnostics"][0]["code"], "OB3001", "{error}");
    let results = common::results(&["report", "."], system.path(), 0);
    let runs = results["runs"].as_array().expect("runs");
    assert_eq!(runs.iter().map(|run| &run["scenario"]).collect::<Vec<_>>(), ["first"], "{said}");
}
