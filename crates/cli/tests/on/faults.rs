//! What goes wrong in the middle of runs on machines: their figures are unknown then, with the
//! reason, and what was recorded is kept.

use super::*;

/// How far a recording has to be until a run counts as in its middle.
pub(super) const RECORDED: u64 = 10_000;

/// Starts a run, and waits until a part of what it records has come.
fn in_the_middle(mut command: Command, recording: &Path) -> Child {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("onbeat");
    let until = MonoTime::now() + LONG;
    while !std::fs::metadata(recording).is_ok_and(|of| of.len() > RECORDED) {
        assert!(MonoTime::now() < until, "nothing is told");
        pause(Span::from_ms(5));
    }
    child
}

/// The clocks of machines, as files that say by how much they are ahead.
struct Clocks(tempfile::TempDir);

impl Clocks {
    fn new() -> Self {
        let made = Self(tempfile::tempdir().expect("a directory"));
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/clock_step.c");
        let mut cc = Command::new("cc");
        cc.args(["-shared", "-fPIC", "-O2", "-o"]).arg(made.library()).arg(source);
        assert!(cc.status().expect("cc").success());
        made
    }

    fn library(&self) -> PathBuf {
        self.0.path().join("clock.so")
    }

    /// Sets the clock of a machine, whose programs read it.
    fn set(&self, machines: &Machines, host: &str, ahead_ns: i64) {
        use std::os::unix::fs::FileExt;
        let space = format!("/run/netns/{}", machines.space(host));
        let number = std::fs::metadata(space).expect("a namespace").ino();
        let path = self.0.path().join(number.to_string());
        let mut options = std::fs::OpenOptions::new();
        let file = options.create(true).truncate(false).write(true).open(path).expect("a clock");
        file.write_all_at(&ahead_ns.to_ne_bytes(), 0).expect("set");
    }
}

#[test]
fn what_a_clock_does_that_is_set_during_a_run_counts_in_what_is_known() {
    let Some(machines) = Machines::new("j") else { return };
    let system = counting();
    machines.slow_shells(&system, "");
    let clocks = Clocks::new();
    let step = 200_000_000;
    // It stays set, or is as before in the end: then no reading of the command's shows it.
    for back in [false, true] {
        clocks.set(&machines, "b", 0);
        let mut command = machines.command(&system, "4s", &["--json"]);
        command.env("LD_PRELOAD", clocks.library()).env("CLOCKS", clocks.0.path());
        let recording = system.path().join("out-b.recording");
        let child = in_the_middle(command, &recording);
        clocks.set(&machines, "b", step);
        if back {
            let told = || std::fs::metadata(&recording).map_or(0, |of| of.len());
            let (before, until) = (told(), MonoTime::now() + LONG);
            while told() < before + RECORDED {
                assert!(MonoTime::now() < until, "nothing more is told");
                pause(Span::from_ms(5));
            }
            clocks.set(&machines, "b", 0);
        }
        let output = child.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{said}");
        assert!(said.contains("b: its clock was set during the run, by "), "{said}");
        assert!(!said.contains("a: its clock was set"), "{said}");
        let results: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        // The latencies of messages that came while it was set are in what the results say of it.
        let apart = &results["runs"][0]["clock_differences"][0];
        let (least, most) = (number(apart, "read_least_ns"), number(apart, "read_greatest_ns"));
        assert!(least <= 0 && step <= most, "{back}: {apart}");
        let longest = number(channel(&results, "c"), "latency_ns.max");
        assert!(longest > step, "{longest}: the clock was not set at all");
        machines.are_clean("a clock that was set");
    }
}

/// A small file system, in a directory; gone with this.
pub(super) struct Small(PathBuf);

impl Small {
    pub(super) fn new(place: PathBuf, octets: u64) -> Option<Self> {
        std::fs::create_dir(&place).expect("a directory");
        Self::over(place, octets)
    }

    /// In one that is there.
    pub(super) fn over(place: PathBuf, octets: u64) -> Option<Self> {
        let options = format!("size={octets},mode=0755");
        let mount = format!("mount -t tmpfs -o {options} tmpfs {}", place.display());
        match onbeat_testkit::run(&mount) {
            Ok(()) => Some(Self(place)),
            Err(why) => {
                not_run(Need::Superuser, why);
                None
            }
        }
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = onbeat_testkit::run(&format!("umount -l {}", self.0.display()));
    }
}

#[test]
fn a_scenario_that_machines_cannot_run_takes_no_results_of_those_before_it() {
    let Some(machines) = Machines::new("h") else { return };
    let system = counting();
    common::start_once(&system);
    machines.shells(&system);
    let output = machines.command(&system, "1s", &["--all-scenarios"]).output();
    let output = output.expect("onbeat");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("scenario second was not run"), "{said}");
    let results = common::results(&["report", "."], system.path(), 0);
    let runs = results["runs"].as_array().expect("runs");
    assert_eq!(runs.iter().map(|run| &run["scenario"]).collect::<Vec<_>>(), ["first"], "{said}");
    assert!(number(channel(&results, "c"), "received") > 100, "{said}");
    machines.are_clean("a scenario that cannot be run");
}
