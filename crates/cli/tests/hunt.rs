//! Random descriptions against the command, from outside: what was found once, and some of what
//! the generator draws. `cargo run -p xtask -- hunt` looks on with fresh seeds and writes what it
//! finds below `tests/found`. `HUNT_NETWORKS=20000` draws so many, `HUNT_SEED=N` from this seed on.

use onbeat_hunt::checker::{Checker, Report, Settings};
use onbeat_hunt::draw::description;
use onbeat_hunt::schema::Schema;
use std::path::Path;

/// Networks of one run, from a fixed seed on: the same on every machine.
const NETWORKS: u64 = 150;

/// Repetitions with random phases, and with aligned ones.
const REPETITIONS: u64 = 2;

fn checker() -> Checker {
    let checker = Checker::new(Path::new(env!("CARGO_BIN_EXE_onbeat")));
    checker.expect("a place to work in").home(onbeat_testkit::home())
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn what_was_found_once_holds() {
    let found = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/found");
    let checker = checker();
    let mut faults = Vec::new();
    for entry in found.read_dir().expect("tests/found") {
        let path = entry.expect("an entry").path();
        let text = std::fs::read_to_string(path.join("system.toml")).expect("a description");
        let settings = text.lines().next().and_then(Settings::read).expect("settings in line 1");
        let copy = tempfile::tempdir().expect("a directory");
        for file in path.read_dir().expect("its files") {
            let file = file.expect("a file");
            std::fs::copy(file.path(), copy.path().join(file.file_name())).expect("copied");
        }
        let report = checker.directory(copy.path(), settings).expect("the machine works");
        faults.extend(report.findings.iter().map(|f| format!("{}: {f}", path.display())));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn no_promise_about_a_drawn_network_breaks() {
    let (schema, checker) = (Schema::committed(), checker());
    let (first, count) = (number("HUNT_SEED", 1_000_000), number("HUNT_NETWORKS", NETWORKS));
    let (mut all, mut refused) = (Report::default(), 0);
    for seed in first..first + count {
        let drawn = description(&schema, seed);
        let report =
            checker.check(&drawn, Settings::of(&drawn, seed, REPETITIONS)).expect("it runs");
        let faults: Vec<_> = report.findings.iter().map(ToString::to_string).collect();
        assert!(faults.is_empty(), "seed {seed}: {}\n{}", faults.join("\n"), drawn.toml());
        refused += u64::from(!report.refused.is_empty());
        all.add(report);
    }
    // What is refused or has no bound tests little.
    assert!(refused * 2 < count, "{refused} of {count} refused");
    assert!(all.runs > 0, "none of the {count} had a program that could be run");
    assert!(all.judged * 4 > all.listeners, "{} of {} listeners judged", all.judged, all.listeners);
}
