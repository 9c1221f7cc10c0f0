//! `onbeat measure wcet` on programs that are built already. Here they are scripts: what a run time
//! writes is known then to the nanosecond.

use crate::common::executable;
use std::path::PathBuf;
use std::process::{Command, Output};

/// A directory with an executable script.
struct Place(tempfile::TempDir);

impl Place {
    fn with(script: &str) -> Self {
        let place = Self(tempfile::tempdir().expect("a directory"));
        executable(&place.path("program"), format!("#!/bin/sh\n{script}"));
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn measure(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_onbeat"));
        command.args(["measure", "wcet"]).arg(self.path("program")).args(arguments);
        command.current_dir(self.0.path()).output().expect("onbeat")
    }
}

fn text(octets: &[u8]) -> String {
    String::from_utf8_lossy(octets).into_owned()
}

/// Writes one segment of `$1` ns, and prints.
const ONE: &str = "echo src,dst,cpu_ns,elapsed_ns,release_jitter_ns,abort_ns > $ONBEAT_MEASURE\n\
    echo control:start,control:7,$1,2000,5, >> $ONBEAT_MEASURE\necho hello\n";

#[test]
fn runs_are_put_together_and_written_with_the_margin_and_the_warning() {
    let place =
        Place::with(&format!("{ONE}echo control:start,control:7,99,1,9,3 >> $ONBEAT_MEASURE"));
    let asked = ["--repetitions", "3", "--margin", "10", "--csv", "t.csv", "--html", "t.html"];
    let output = place.measure(&[&asked[..], &["--", "1001"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let csv = std::fs::read_to_string(place.path("t.csv")).expect("t.csv");
    let expected = "SRC,BCET,WCET,JITTER,ABORT,DST\ncontrol:start,1001,1102,9,3,control:7\n";
    assert_eq!(csv, expected);
    let table = text(&output.stdout);
    assert!(table.contains("control: start → 7        6        3  1.001 µs"), "{table}");
    assert!(table.contains("the worst case may not have occurred"), "{table}");
    assert!(!table.contains("hello") && text(&output.stderr).contains("hello"));
    let page = std::fs::read_to_string(place.path("t.html")).expect("t.html");
    assert!(page.contains("the worst case may not have occurred"));
}

#[test]
fn a_program_without_end_is_asked_to_end_after_the_duration_and_json_has_its_figures() {
    let place =
        Place::with(&format!("trap '{ONE}exit' TERM\nset -- 500\nwhile :; do sleep 0.01; done"));
    let output = place.measure(&["--duration", "1s", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let segment = &json["segments"][0];
    assert_eq!(segment["source"], "control:start");
    assert_eq!(segment["cpu_ns"]["p99"], 500);
    assert_eq!(segment["histogram"][0]["count"], 1);
    assert!(json["warning"].as_str().expect("text").contains("the worst case may not"));
    assert!(text(&output.stderr).contains("the worst case may not have occurred"));
}

#[test]
fn what_a_program_does_not_deliver_is_said_in_a_line() {
    let place = Place::with("exit 0\n");
    let said = text(&place.measure(&[]).stderr);
    assert!(
        said.contains("wrote no measurements: only programs that onbeat cc has made"),
        "{said}"
    );
    let place = Place::with("echo nonsense > $ONBEAT_MEASURE\n");
    let output = place.measure(&[]);
    assert_eq!(output.status.code(), Some(5));
    assert!(text(&output.stderr).contains("line 1 is not a sample"), "{}", text(&output.stderr));
    let place = Place::with("> $ONBEAT_MEASURE\n");
    assert!(text(&place.measure(&[]).stderr).contains("no segment came to its end"));
    let place = Place::with(&format!("{ONE}exit 3\n"));
    let output = place.measure(&["--", "7"]);
    assert_eq!(output.status.code(), Some(4));
    assert!(text(&output.stderr).contains("exit status: 3"));
    assert!(text(&output.stdout).contains("control: start → 7"));
    let output = place.measure(&["other"]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
}
