//! `onbeat measure campaign` continues where it was killed.

use onbeat_measure::measurement::{Campaign, State};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// How often it is looked for something that will come, and how many times at most.
const LOOK: Duration = Duration::from_millis(20);
const LOOKS: usize = 3_000;

/// A campaign of test 1 only, with so many samples.
fn campaign(out: &Path, samples: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_onbeat"));
    command.args(["measure", "campaign", "--tests", "clock", "--priority", "0", "--samples"]);
    command.arg(samples).arg("--out").arg(out).stdout(Stdio::null());
    command
}

/// Runs one to its end; what it left.
fn whole(out: &Path) -> Campaign {
    let done = campaign(out, "20").output().expect("onbeat");
    assert_eq!(done.status.code(), Some(0), "{}", String::from_utf8_lossy(&done.stderr));
    let text = std::fs::read_to_string(out.join("campaign.json")).expect("the campaign");
    serde_json::from_str(&text).expect("a campaign")
}

/// Waits until something is so.
fn until(what: &str, is: impl Fn() -> bool) {
    for _ in 0..LOOKS {
        if is() {
            return;
        }
        std::process::Command::new("sleep")
            .arg(LOOK.as_secs_f64().to_string())
            .status()
            .expect("sleep");
    }
    panic!("{what} does not come");
}

fn names(out: &Path) -> Vec<String> {
    let entries = out.read_dir().expect("the output").flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

fn is_under_way(out: &Path, id: &str) -> bool {
    names(out).iter().any(|name| name.starts_with(&format!("{id}.partial-")))
}

#[test]
fn a_campaign_that_is_killed_in_any_scenario_keeps_what_was_done_and_does_the_rest() {
    let place = tempfile::tempdir().expect("a directory");
    let out: PathBuf = place.path().join("campaign");
    let first = whole(&out);
    assert_eq!(first.scenarios.len(), 9);
    let mut ids = Vec::new();
    for scenario in &first.scenarios {
        let is_measured = scenario.scenario.state != State::Cannot;
        let id = scenario.scenario.name.id.clone();
        assert_eq!(out.join(&id).join("measurement.json").exists(), is_measured, "{id}");
        assert_eq!(scenario.measurement.is_some(), is_measured, "{id}");
        // No output was named: something is always missing, and said.
        assert!(!scenario.scenario.why.is_empty(), "{id}");
        ids.extend(is_measured.then_some(id));
    }
    assert!(!ids.is_empty(), "each machine fits one kind of isolation");
    for (at, id) in ids.iter().enumerate() {
        let figures = |id: &String| std::fs::read(out.join(id).join("measurement.json")).unwrap();
        let before: Vec<_> = ids[..at].iter().map(figures).collect();
        for id in &ids[at..] {
            std::fs::remove_dir_all(out.join(id)).expect("removed");
        }
        // Seconds of samples: it is killed before it can be done.
        let mut running = campaign(&out, "10000000").spawn().expect("onbeat");
        until(id, || is_under_way(&out, id));
        running.kill().expect("killed");
        running.wait().expect("its end");
        assert!(!out.join(id).exists(), "{id} is not complete");
        until("the end of what is left over", || !is_under_way(&out, id));
        let again = whole(&out);
        let after: Vec<_> = ids[..at].iter().map(figures).collect();
        assert!(before == after, "what was done before {id} is kept");
        let states = |campaign: &Campaign| -> Vec<State> {
            campaign.scenarios.iter().map(|of| of.scenario.state).collect()
        };
        assert_eq!(states(&again), states(&first), "{id}");
    }
    // A file that is no measurement is named, not replaced.
    std::fs::write(out.join(&ids[0]).join("measurement.json"), "{").expect("written");
    let refused = campaign(&out, "20").output().expect("onbeat");
    assert_eq!(refused.status.code(), Some(5));
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("measurement.json: remove the directory to measure again"), "{said}");
}
