//! `onbeat new` makes a system that builds with plain `make`, and keeps all that it promises, also
//! where it was copied to.

use crate::common::{home, onbeat, root, run};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// Each template, the programs that `make` builds, and what its programs say at the end of a run.
const TEMPLATES: [(&str, &[&str], &str); 4] = [
    (
        "control-loop",
        &["actuator", "controller", "sensor"],
        "controller: within 1 % of the target since sample 1",
    ),
    (
        "substation",
        &["breaker", "merging-unit", "relay"],
        "breaker: trip_differential at 401258 µs",
    ),
    ("ring", &["io", "plc"], "io: 2 parts pushed off the belt, 6 passed"),
    ("timed-c", &["lidar", "motor", "robot"], ""),
];

/// Makes a system called `mine` in a directory of its own.
fn new(template: &str) -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("a directory");
    run(&["new", "mine", "--template", template], directory.path(), 0);
    let made = directory.path().join("mine");
    (directory, made)
}

/// Runs `make` as a person does, who has the command under test on the path.
fn make(directory: &Path) {
    let command = Path::new(env!("CARGO_BIN_EXE_onbeat"));
    let mut make = Command::new("make");
    make.current_dir(directory).arg(format!("ONBEAT={}", command.display()));
    make.env_remove("MAKEFLAGS").env_remove("MAKELEVEL").env_remove("MFLAGS");
    let output = make.env("ONBEAT_HOME", home()).output().expect("make");
    assert!(output.status.success(), "{}", said(&output));
    assert!(!said(&output).contains("warning"), "{}", said(&output));
}

fn said(output: &Output) -> String {
    let part = String::from_utf8_lossy;
    format!("{}{}", part(&output.stdout), part(&output.stderr))
}

/// The names of what is in a directory, with the text where it is a file.
fn texts(directory: &Path) -> BTreeMap<String, String> {
    let entries = directory.read_dir().expect("a directory").flatten();
    let text = |path: &Path| std::fs::read_to_string(path).unwrap_or_default();
    entries.map(|e| (e.file_name().into_string().expect("UTF-8"), text(&e.path()))).collect()
}

/// Builds, checks, plans and runs a system, with more arguments; what its programs said.
fn is_kept(directory: &Path, programs: &[&str], more: &[&str]) -> String {
    make(directory);
    let built: Vec<_> = texts(&directory.join("build")).into_keys().collect();
    assert_eq!(built, programs);
    let checked = run(&["check", "."], directory, 0);
    assert_eq!(String::from_utf8_lossy(&checked.stderr), "", "no warning");
    run(&["plan", "."], directory, 0);
    let output = run(&[&["run", ".", "--json"], more].concat(), directory, 0);
    let results: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let of_run = &results["runs"][0];
    assert_eq!(of_run["time"], "virtual");
    for kind in ["channels", "chains"] {
        let all = of_run[kind].as_array().expect("a list");
        assert!(!all.is_empty(), "{kind}");
        for one in all {
            let verdict = one.get("verdict").or(one["listeners"][0].get("verdict"));
            assert_eq!(verdict, Some(&"kept".into()), "{one}");
        }
    }
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn every_template_builds_and_keeps_its_promises_in_virtual_time_also_as_a_copy() {
    for (template, programs, says) in TEMPLATES {
        let (directory, made) = new(template);
        let first = is_kept(&made, programs, &[]);
        assert!(first.contains(says), "{template}: {first}");
        // Without what was built; the other directory has another depth.
        run(&["check", "mine"], directory.path(), 0);
        let copy = directory.path().join("some/where/else");
        std::fs::create_dir_all(&copy).expect("made");
        for (name, text) in texts(&made).iter().filter(|(_, text)| !text.is_empty()) {
            std::fs::write(copy.join(name), text).expect("written");
        }
        is_kept(&copy, programs, &["--duration", "100ms"]);
        let mut clean = Command::new("make");
        assert!(clean.current_dir(&copy).arg("clean").output().expect("make").status.success());
        assert_eq!(
            texts(&copy).len(),
            texts(&root().join("crates/cli/templates").join(template))
                .keys()
                .filter(|name| !name.starts_with("out") && *name != "build")
                .count()
        );
    }
}

#[test]
fn what_is_made_has_its_own_name_and_names_a_schema_that_is_there() {
    for (template, _, _) in TEMPLATES {
        let (_directory, made) = new(template);
        let files = texts(&made);
        let (first, rest) = files["system.toml"].split_once('\n').expect("lines");
        let schema = Path::new(first.strip_prefix("#:schema ").expect("the first line"));
        assert!(schema.is_absolute());
        let schema = std::fs::read(schema).expect("the schema");
        let printed = onbeat().args(["schema", "system"]).output().expect("runs");
        assert!(schema == printed.stdout);
        assert!(rest.contains("\nname = \"mine\"\n"));
        assert!(files["README.md"].starts_with("# mine\n"));
        let home = home().canonicalize().expect("there");
        assert!(files["Makefile"].contains(&format!("\nONBEAT_HOME ?= {}\n", home.display())));
        let json = run(&["check", ".", "--json"], &made, 0).stdout;
        let json: Value = serde_json::from_slice(&json).expect("JSON");
        assert_eq!(json["diagnostics"], Value::Array(Vec::new()), "{json}");
    }
}

#[test]
fn nothing_that_exists_is_replaced_and_no_bad_name_is_taken() {
    let directory = tempfile::tempdir().expect("a directory");
    let place = directory.path();
    std::fs::create_dir(place.join("empty")).expect("made");
    std::fs::write(place.join("file"), "mine").expect("written");
    std::os::unix::fs::symlink("nowhere", place.join("link")).expect("a link");
    for there in ["empty", "file", "link"] {
        let output = run(&["new", there, "--template", "ring"], place, 5);
        assert!(said(&output).contains(&format!("{there} exists: choose another name")));
    }
    let long = "x".repeat(64);
    run(&["new", "", "--template", "ring"], place, 2);
    for name in [".", "..", "a b", "a/..", "ä", "a\"", "$(x)", long.as_str()] {
        let output = run(&["new", name, "--template", "ring"], place, 2);
        assert!(said(&output).contains("letters, digits, `-` and `_`"), "{name}");
    }
    let output = run(&["new", "no/such/place", "--template", "ring"], place, 5);
    assert!(said(&output).contains("No such file"), "{}", said(&output));
    run(&["new", "mine", "--template", "square"], place, 2);
    run(&["new", "mine"], place, 2);
    run(&["new", "--template", "ring"], place, 2);
    let left: Vec<_> = texts(place).into_keys().collect();
    assert_eq!(left, ["empty", "file", "link"]);
    assert_eq!(std::fs::read_link(place.join("link")).expect("a link"), Path::new("nowhere"));
    assert!(texts(&place.join("empty")).is_empty());
}

#[test]
fn the_list_and_the_help_have_all_templates() {
    let list = run(&["new", "--list"], root(), 0).stdout;
    let list = String::from_utf8(list).expect("text");
    let help = run(&["new", "--help"], root(), 0).stdout;
    let help = String::from_utf8(help).expect("text");
    let listed: Vec<_> = list.lines().filter_map(|l| l.split_whitespace().next()).collect();
    assert_eq!(listed, TEMPLATES.map(|(name, _, _)| name));
    for line in list.lines() {
        let (name, what) = line.split_once(' ').expect("two columns");
        assert!(help.contains(&format!("- {name}:")), "{help}");
        assert!(help.contains(&what.trim()[..20]), "{what} in {help}");
    }
    run(&["new", "mine", "--list"], root(), 2);
}
