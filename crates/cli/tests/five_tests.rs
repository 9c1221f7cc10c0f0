//! The five tests of synchronised time on the machine that runs this, as short as they go. No
//! figure is judged: what is looked at is that everything is there, and that it fits together.

use onbeat_measure::measurement::{Measurement, read};
use onbeat_testkit::{Need, not_run};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn measure(place: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_onbeat"));
    command.arg("measure").args(arguments).current_dir(place).output().expect("onbeat")
}

fn text(octets: &[u8]) -> String {
    String::from_utf8_lossy(octets).into_owned()
}

fn document(directory: &Path) -> Measurement {
    let text = std::fs::read_to_string(directory.join("measurement.json")).expect("the figures");
    read(&text).expect("a measurement")
}

fn samples(directory: &Path, series: &str) -> Vec<i64> {
    let file: PathBuf = directory.join("samples").join(format!("{series}.csv"));
    let text = std::fs::read_to_string(file).expect("the samples");
    let (header, values) = text.split_once('\n').expect("a header");
    assert_eq!(header, "value_ns");
    values.lines().map(|line| line.parse().expect("a number")).collect()
}

/// Whether a tool is there; says it if not.
fn has(tool: &str) -> bool {
    let there = Command::new(tool).arg("--help").output().is_ok();
    if !there {
        not_run(Need::Tools, format_args!("{tool} is not installed"));
    }
    there
}

#[test]
fn all_five_tests_leave_their_figures_samples_and_a_report() {
    let place = tempfile::tempdir().expect("a directory");
    let asked = ["all", "--samples", "3000", "--wakes", "12", "--period", "1ms"];
    let output = measure(place.path(), &asked);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let directory = place.path().join("out-measurement");
    let measured = document(&directory);
    let mut expected =
        vec!["clock.lc", "clock.gc", "clock.tai", "cross.lc_by_gc", "cross.gc_by_lc"];
    let (cyclictest, load) = (has("cyclictest"), has("stress-ng"));
    let one = measured.settings.witnesses.is_empty();
    let mut further = Vec::new();
    for clock in ["latency.lc", "latency.gc"] {
        further.push(clock.to_owned());
        further.extend((!one).then(|| format!("{clock}.relative")));
        further.extend(cyclictest.then(|| format!("{clock}.cyclictest")));
    }
    further.extend(["sync.offset", "sync.first", "sync.second"].map(str::to_owned));
    let loaded: Vec<_> = further.iter().map(|name| format!("load.{name}")).collect();
    expected.extend(further.iter().map(String::as_str));
    expected.extend(loaded.iter().filter(|_| load).map(String::as_str));
    let names: Vec<_> = measured.series.iter().map(|series| series.name.as_str()).collect();
    assert_eq!(names, expected);
    for series in &measured.series {
        let values = samples(&directory, &series.name);
        assert_eq!(values.len() as u64, series.figures.count, "{}", series.name);
        let again = onbeat_measure::measurement::Figures::of(&values);
        assert_eq!(again.as_ref(), Some(&series.figures), "{}", series.name);
        let most = if series.test < 3 { 3_000 } else { 12 };
        assert!(series.figures.count <= most, "{}", series.name);
        assert_eq!(series.under_load, series.name.starts_with("load."));
    }
    assert_eq!(measured.comparisons.len(), 2 * usize::from(cyclictest) * (1 + usize::from(load)));
    let report = std::fs::read_to_string(directory.join("report.html")).expect("the report");
    assert!(report.contains("clock.lc") && report.contains("fig. 3"));
    let table = text(&output.stdout);
    assert!(table.contains("clock.tai") && table.contains("report.html"), "{table}");
    // The directory is a measurement's: it is replaced by another, and by nothing else.
    let again = measure(place.path(), &["clock", "--samples", "9", "--out", "out-measurement"]);
    assert_eq!(again.status.code(), Some(0), "{}", text(&again.stderr));
    assert_eq!(document(&directory).series.len(), 3);
    std::fs::write(directory.join("mine"), "").expect("a file");
    let refused = measure(place.path(), &["clock", "--samples", "9", "--out", "out-measurement"]);
    assert_eq!(refused.status.code(), Some(5));
    assert!(text(&refused.stderr).contains("something else than the output of a measurement"));
}

#[test]
fn a_node_with_an_emulated_clock_acts_as_much_earlier_as_its_clock_is_ahead() {
    let place = tempfile::tempdir().expect("a directory");
    let asked = ["sync", "--wakes", "15", "--period", "1ms", "--node-offset-ns", "3000000"];
    let output = measure(place.path(), &[&asked[..], &["--out", "sync", "--json"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let printed: Measurement = read(&text(&output.stdout)).expect("a measurement");
    let directory = place.path().join("sync");
    assert_eq!(printed, document(&directory));
    assert_eq!(printed.settings.node_error.map(|error| error.offset_ns), Some(3_000_000));
    let [offset, first, second] =
        ["sync.offset", "sync.first", "sync.second"].map(|name| samples(&directory, name));
    assert_eq!(offset.len(), 15);
    for instant in 0..15 {
        let apart = second[instant] - first[instant] - 3_000_000;
        assert_eq!(offset[instant], apart, "instant {instant}");
    }
}

#[test]
fn what_cannot_be_is_said_with_its_option() {
    let place = tempfile::tempdir().expect("a directory");
    for (asked, code, said) in [
        (&["clock", "--cpu", "60000"][..], 2, "--cpu 60000: this process may use processors"),
        (&["clock", "--priority", "100"], 2, "--priority"),
        (&["latency", "--period", "99us"], 2, "whole microseconds between 100us and 1s"),
        (&["sync", "--gpio", "17"], 2, "is not a line such as /dev/gpiochip0:17"),
        (&["sync", "--gpio", "/dev/null:0", "--samples", "9"], 5, "output /dev/null:0"),
        (&["clock", "--out", "no/where"], 5, "no/where"),
    ] {
        let output = measure(place.path(), asked);
        assert_eq!(output.status.code(), Some(code), "{asked:?}: {}", text(&output.stderr));
        assert!(text(&output.stderr).contains(said), "{asked:?}: {}", text(&output.stderr));
    }
    assert_eq!(place.path().read_dir().expect("a directory").count(), 0, "nothing is left");
}
