//! What linuxptp measures of machines' clocks during a run: real ptp4l in the machines' namespaces.

use super::*;
use onbeat_model::record::Carrier;
use onbeat_testkit::Need;

/// How often a run is tried in which ptp4l is to measure something.
const TRIES: u32 = 10;

/// ptp4l of a machine, which measures and sets nothing. Ends with this value.
struct Ptp(Child, PathBuf);

impl Ptp {
    fn start(machines: &Machines, host: &str, role: &str) -> Self {
        let out = machines.files.path().join(format!("clock-{host}"));
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &machines.space(host)]).arg(onbeat().get_program());
        command.args(["clock", "run", "--scenario", "mbs", "--interface", "eth0", "--software"]);
        command.args(["--within", "1s", "--duration", "300s", "--role", role, "--out"]).arg(&out);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        Self(command.spawn().expect("ip"), out.join("ptp4l"))
    }

    /// A line of a file of machines.
    fn line(&self) -> String {
        format!("ptp4l = \"{}\"\n", self.1.display())
    }

    /// Waits until it has measured a Sync of its master.
    fn measures(&self, machines: &Machines, host: &str) {
        let until = MonoTime::now() + LONG;
        loop {
            let mut command = Command::new("ip");
            command.args(["netns", "exec", &machines.space(host)]).arg(onbeat().get_program());
            command.args(["clock", "status", "--within", "1s", "--free-running", "--socket"]);
            let output = command.arg(&self.1).output().expect("ip");
            if output.status.success() {
                return;
            }
            let said = String::from_utf8_lossy(&output.stdout);
            assert!(MonoTime::now() < until, "{host} follows nobody: {said}");
            pause(Span::from_ms(100));
        }
    }
}

impl Drop for Ptp {
    fn drop(&mut self) {
        // It ends ptp4l, too.
        let _ = Command::new("kill").arg(self.0.id().to_string()).status();
        let _ = self.0.wait();
    }
}

/// The results of a run in which ptp4l of the second machine has measured something twice. On a
/// busy machine it may miss Syncs for seconds: then there is another run.
fn measured(machines: &Machines, system: &TestSystem) -> Value {
    let words = ["--json", "--scenario", "base"];
    for _ in 0..TRIES {
        let output = machines.command(system, "4s", &words).output().expect("onbeat");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{said}");
        let results: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let errors = &results["runs"][0]["network"]["parts"][1]["time_errors"];
        if errors["ptp4l"]["samples"].as_i64() >= Some(2) {
            return results;
        }
    }
    panic!("ptp4l measures nothing in {TRIES} runs");
}

#[test]
fn what_ptp4l_measures_during_a_run_is_in_results_and_report() {
    if !Path::new("/usr/sbin/ptp4l").exists() {
        return not_run(Need::Tools, "ptp4l (linuxptp) is not installed");
    }
    let Some(machines) = Machines::new("e") else { return };
    let master = Ptp::start(&machines, "a", "master");
    let slave = Ptp::start(&machines, "b", "slave");
    slave.measures(&machines, "b");
    let reference = "[[reference]]\nsource = \"a paper\"\nscenario = \"base\"\nclock = \"b\"\n\
                     quantity = \"clock-error\"\nmax_ns = 29\n[[scenario]]\nname = \"base\"\n";
    let system = TestSystem::new(&two_hosts(&(programs("talk", "listen") + reference)));
    system.program("counts.c", "left").program("counts.c", "right");
    machines.slow_shells(&system, &slave.line());
    let file = system.path().join("machines.toml");
    let text = std::fs::read_to_string(&file).expect("the file");
    let first = "[[machine]]\nhost = \"a\"\n";
    std::fs::write(&file, text.replace(first, &format!("{first}{}", master.line()))).expect("it");
    let results = measured(&machines, &system);
    let parts = &results["runs"][0]["network"]["parts"];
    // The grandmaster measures nothing, and nobody has a hardware clock here.
    assert!(parts[0].get("time_errors").is_none(), "{parts}");
    let errors = &parts[1]["time_errors"];
    assert!(errors["phc2sys"].is_null() && errors["phc2sys_ns"][0].is_null(), "{errors}");
    let values = |key: &str| -> Vec<i64> {
        let all = errors[key].as_array().expect("values");
        all.iter().filter_map(Value::as_i64).collect()
    };
    let (at, measured) = (values("at_ns"), values("ptp4l_ns"));
    assert!(at.len() >= 2 && at.is_sorted(), "{errors}");
    assert!(at.iter().all(|at| (0..4_000_000_000).contains(at)), "{errors}");
    assert_eq!(number(errors, "ptp4l.samples"), measured.len() as i64);
    let largest = measured.iter().map(|ns| ns.abs()).max().expect("some");
    assert_eq!(number(errors, "ptp4l.largest_ns"), largest);
    let squares = measured.iter().map(|ns| (*ns as f64).powi(2)).sum::<f64>();
    let rms = (squares / measured.len() as f64).sqrt();
    assert!((number(errors, "ptp4l.rms_ns") as f64 - rms).abs() <= 1.0, "{errors}");
    // Both read one clock: what is measured is the noise of stamps.
    assert!(largest > 0 && largest < 1_000_000_000, "{errors}");
    assert_eq!(common::results(&["report", "."], system.path(), 0), results);
    let page = std::fs::read_to_string(system.path().join("out/report.html")).expect("a page");
    for part in ["b: time error by ptp4l", "Time errors of machines", "a paper"] {
        assert!(page.contains(part), "{part} is on the page");
    }
    let shown = run(&["report", "."], system.path(), 0);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    let table = shown.split("Time errors that linuxptp measured:").nth(1).expect("a table");
    assert!(table.contains("ptp4l") && !table.contains("hardware clock"), "{table}");
    let published = shown.split("Errors of clocks, in ns:").nth(1).expect("a table");
    assert!(published.contains("a paper") && published.contains(" 29"), "{published}");
    what_was_measured_until_the_command_was_killed_is_recovered(&machines, &system);
}

fn what_was_measured_until_the_command_was_killed_is_recovered(
    machines: &Machines,
    system: &TestSystem,
) {
    let mut command = machines.command(system, "300s", &["--scenario", "base"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("onbeat");
    let recording = system.path().join("out-b.recording");
    let recorded = || -> usize {
        let octets = std::fs::read(&recording).unwrap_or_default();
        let runs = onbeat_measure::records::recover(&octets).unwrap_or_default();
        let Some(Carrier::Interfaces { parts, .. }) = runs.first().map(|run| &run.network) else {
            return 0;
        };
        parts[0].time_errors.len()
    };
    let until = MonoTime::now() + LONG;
    while recorded() < 2 {
        assert!(MonoTime::now() < until, "nothing of it is in the recording");
        pause(Span::from_ms(100));
    }
    child.kill().expect("it is a child");
    child.wait().expect("it ends");
    let recorded = recorded();
    let words = ["join", ".", "--recovered", "out-a", "out-b", "--out", "recovered"];
    let results = common::results(&words, system.path(), 4);
    let errors = &results["runs"][0]["network"]["parts"][1]["time_errors"];
    assert_eq!(errors["at_ns"].as_array().map(Vec::len), Some(recorded), "{errors}");
    assert!(number(errors, "ptp4l.samples") >= 1, "{errors}");
}
