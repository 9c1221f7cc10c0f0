//! The paper's programs in Timed C on two hosts, `examples/02-federated-timed-c`: in virtual time,
//! in real time, and over the kernel's own network.

use crate::common::{self, channel, number, onbeat, results};
use onbeat_testkit::{Need, not_run};
use serde_json::Value;
use std::path::Path;
use tempfile::TempDir;

const FULL: &str = "system.toml";
const SHORT: &str = "short.toml";

/// A copy of the example: a run writes beside the description.
fn example() -> TempDir {
    let copy = tempfile::tempdir().expect("a directory");
    copy_directory(&common::root().join("examples/02-federated-timed-c"), copy.path());
    copy
}

pub(crate) fn copy_directory(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a directory");
    for entry in from.read_dir().expect("the example").flatten() {
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        match path.is_dir() {
            true => copy_directory(&path, &target),
            false => drop(std::fs::copy(&path, &target).expect("copied")),
        }
    }
}

/// Everything that was sent came once; what did not come was sent when the run ended.
fn all_came(results: &Value) -> i64 {
    let c = channel(results, "mcast42");
    let sent = number(c, "sent");
    assert!(number(c, "received") > 0, "{c}");
    assert_eq!(number(c, "received") + number(c, "lost"), sent, "{c}");
    assert_eq!(number(c, "duplicated"), 0, "{c}");
    sent
}

/// Both forms send every 20 ms, and both sides continue at the same instant.
fn exact_in_virtual_time(system: &str) -> Value {
    let example = example();
    let results = results(&["run", system, "--duration", "20s"], example.path(), 0);
    assert_eq!(all_came(&results), 1_000);
    let c = channel(&results, "mcast42");
    assert_eq!(number(c, "lost"), 0);
    for end in ["talker", "listener"] {
        assert_eq!(number(&c["wakeup_error_ns"][end], "min"), 0, "{c}");
        assert_eq!(number(&c["wakeup_error_ns"][end], "max"), 0, "{c}");
    }
    results
}

/// `ONBEAT_UPDATE=1` rewrites the hash.
#[test]
fn listings_11_to_13_give_the_record_that_is_written_down() {
    let results = exact_in_virtual_time(FULL);
    let found = format!("{}\n", results["runs"][0]["record_hash"].as_str().expect("a hash"));
    let path = common::root().join("examples/02-federated-timed-c/expected-20s.sha256");
    if std::env::var_os("ONBEAT_UPDATE").is_some() {
        std::fs::write(&path, &found).expect("written");
    }
    assert_eq!(std::fs::read_to_string(&path).expect("a hash"), found);
}

#[test]
fn listings_5_and_6_run_in_virtual_time() {
    exact_in_virtual_time(SHORT);
}

#[test]
fn the_listings_are_compiled_with_the_warnings_that_they_deserve() {
    for (system, codes) in [(FULL, &["OB4105"][..]), (SHORT, &["OB4101", "OB4104", "OB4105"])] {
        let example = example();
        let arguments = ["run", system, "--duration", "100ms"];
        let output = onbeat().args(arguments).current_dir(example.path()).output().expect("runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        for code in codes {
            assert!(said.contains(&format!("warning[{code}]")), "{code} in {said}");
        }
        assert!(!said.contains("error["), "{said}");
    }
}

#[test]
fn the_listings_print_what_they_say() {
    let example = example();
    let arguments = ["run", FULL, "--duration", "5s"];
    let output = onbeat().args(arguments).current_dir(example.path()).output().expect("onbeat");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    let expected = [
        "Run for 900000, using enp2s0.2",
        "Using SRP",
        "writer(): getting ready",
        "Using enp2s0.2",
        "0: written",
        "200: written",
        "Counter received! -> 0",
        "Counter received! -> 200",
    ];
    for line in expected {
        assert!(said.lines().any(|l| l.ends_with(line)), "`{line}` in {said}");
    }
}

#[test]
fn the_listings_run_in_real_time() {
    for system in [FULL, SHORT] {
        let example = example();
        let arguments = ["run", system, "--time", "real", "--duration", "1s"];
        let sent = all_came(&results(&arguments, example.path(), 0));
        // Every 20 ms; a machine that is late sends fewer.
        assert!((1..=50).contains(&sent), "{sent}");
    }
}

#[test]
fn the_listings_run_between_two_network_namespaces() {
    for system in [FULL, SHORT] {
        let example = example();
        let arguments = ["run", system, "--network", "netns", "--duration", "1s", "--json"];
        let output = onbeat().args(arguments).current_dir(example.path()).output().expect("onbeat");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.code() == Some(5) && said.contains("unshare -Ur onbeat") {
            not_run(Need::Namespaces, said);
            return;
        }
        assert!(output.status.success(), "{said}");
        let results: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let sent = all_came(&results);
        assert!((1..=50).contains(&sent), "{sent}");
        assert_eq!(results["runs"][0]["network"]["kind"], "netns");
    }
}
