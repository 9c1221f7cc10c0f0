//! The doctor: on machines that were saved, and on this one with real faults.

use crate::common::{self, executable, root, run};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A machine that was saved.
fn saved(name: &str) -> String {
    format!("{}/tests/doctor/{name}.json", env!("CARGO_MANIFEST_DIR"))
}

/// What the talker of the first example finds on it.
fn talker(machine: &str, more: &[&str], expected: i32) -> String {
    let facts = saved(machine);
    let arguments = [
        &["doctor", "examples/01-two-hosts", "--host", "talker", "--interface", "eth0"][..],
        &["--facts", &facts],
        more,
    ];
    let output = run(&arguments.concat(), root(), expected);
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn a_machine_that_is_tuned_well_carries_the_first_example() {
    insta::assert_snapshot!(talker("tuned", &[], 0));
}

#[test]
fn the_table_of_a_weak_machine() {
    insta::assert_snapshot!(talker("weak", &[], 2));
}

#[test]
fn the_json_of_a_weak_machine() {
    insta::assert_snapshot!(talker("weak", &["--json"], 2));
}

#[test]
fn without_a_system_the_same_machine_gets_advice_only() {
    let facts = saved("weak");
    let all = found(&["--facts", &facts], 1);
    assert_eq!((&all["state"], &all["system"]), (&"advice".into(), &Value::Null));
    assert_eq!(all["promises"].as_array().map(Vec::len), Some(0));
}

#[test]
fn wrong_arguments_are_refused_by_name() {
    for (arguments, says) in [
        (&["doctor", "examples/01-two-hosts", "--host", "nobody"][..], "no host `nobody`"),
        (&["doctor", "--host", "talker"], "<SYSTEM>"),
        (&["doctor", "--pid", "4194304"], "--pid: process 4194304"),
        (&["doctor", "--root", "no-such"], "--root: there is no directory no-such"),
    ] {
        let output = run(arguments, root(), 2);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(error.contains(says), "{error}");
    }
    let output = run(&["doctor", "--facts", "Cargo.toml"], root(), 5);
    assert!(String::from_utf8_lossy(&output.stderr).contains("Cargo.toml: these are no facts"));
}

#[test]
fn a_script_is_looked_through_without_looking_at_the_machine() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("setup.sh");
    std::fs::write(&path, "tc qdisc add dev e root mqprio num_tc 2 map 1 0 0\n").expect("written");
    let path = path.to_str().expect("a name");
    let all = found(&["--script", path], 1);
    let checks = names(&all);
    assert_eq!(checks, [format!("script.priority-map {path}:1")]);
}

/// All that the doctor says.
fn found(arguments: &[&str], expected: i32) -> Value {
    let output = run(&[&["doctor", "--json"], arguments].concat(), root(), expected);
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// The names of what is not as it should be.
fn names(all: &Value) -> Vec<String> {
    let findings = all["findings"].as_array().expect("findings");
    let wrong = findings.iter().filter(|f| f["state"] != "ok" && f["state"] != "unknown");
    let name = |finding: &Value| {
        let check = finding["check"].as_str().expect("a name");
        match finding["subject"].as_str() {
            Some(subject) => format!("{check} {subject}"),
            None => check.to_owned(),
        }
    };
    wrong.map(name).collect()
}

/// What is found on this machine, whatever else is wrong with it.
fn found_here(arguments: &[&str]) -> Vec<String> {
    let mut command = common::onbeat();
    command.args(["doctor", "--json"]).args(arguments);
    let output = command.output().expect("onbeat runs");
    let code = output.status.code();
    assert!(code == Some(0) || code == Some(1), "without a system nothing blocks: {code:?}");
    let all: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    names(&all)
}

/// A child that goes with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A process of this name that does nothing, started in a directory.
fn idle(directory: &Path, name: &str, arguments: &[&str]) -> Running {
    let program = directory.join(name);
    executable(&program, std::fs::read("/bin/sleep").expect("sleep"));
    let child = Command::new(&program).args(arguments).stdin(Stdio::null()).spawn();
    Running(child.expect("started"))
}

#[test]
fn daemons_that_run_here_are_found_by_their_names() {
    let directory = tempfile::tempdir().expect("a directory");
    let _balancer = idle(directory.path(), "irqbalance", &["60"]);
    let _phc = idle(directory.path(), "phc2sys", &["60"]);
    let _chrony = idle(directory.path(), "chronyd", &["60"]);
    let names = found_here(&[]);
    for wanted in ["interrupts.irqbalance", "time.rival"] {
        assert!(names.iter().any(|name| name == wanted), "{wanted} in {names:?}");
    }
}

#[test]
fn a_process_without_real_time_is_found() {
    let directory = tempfile::tempdir().expect("a directory");
    let idle = idle(directory.path(), "arm", &["60"]);
    let names = found_here(&["--pid", &idle.0.id().to_string()]);
    assert!(names.iter().any(|name| name == "process.policy"), "{names:?}");
}

/// A group of cgroup v1 that goes with the test.
struct Group(PathBuf);

impl Drop for Group {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

#[test]
fn a_real_group_without_a_real_time_budget_is_found() {
    let path = PathBuf::from(format!("/sys/fs/cgroup/cpu/onbeat-doctor-{}", std::process::id()));
    let made = std::fs::create_dir(&path);
    let group = Group(path);
    if made.is_err() || !group.0.join("cpu.rt_runtime_us").exists() {
        eprintln!("not tested here: there are no budgets of groups, or they are not permitted");
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let mut idle = idle(directory.path(), "arm", &["60"]);
    let pid = idle.0.id().to_string();
    std::fs::write(group.0.join("cgroup.procs"), &pid).expect("moved");
    let names = found_here(&["--pid", &pid]);
    let _ = idle.0.kill();
    let _ = idle.0.wait();
    assert!(names.iter().any(|name| name == "throttling.group"), "{names:?}");
}

/// Runs a script in a network namespace of its own; `None` if there is none to be had.
fn apart(script: &str) -> Option<Vec<String>> {
    let onbeat = common::onbeat();
    let output = Command::new("unshare")
        .args(["--net", "sh", "-ec", script])
        .env("ONBEAT", onbeat.get_program())
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .output()
        .expect("unshare runs");
    if output.stdout.is_empty() {
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(error.contains("not permitted"), "{error}");
        eprintln!("not tested here: {}", error.trim());
        return None;
    }
    Some(names(&serde_json::from_slice(&output.stdout).expect("JSON")))
}

#[test]
fn a_real_interface_that_is_down_is_found_and_one_that_is_up_is_not() {
    let look = "\"$ONBEAT\" doctor --json --interface v0 || true";
    let make = "ip link add v0 type veth peer name v1; ip link set v1 up";
    let Some(names) = apart(&format!("{make}; {look}")) else { return };
    assert!(names.iter().any(|name| name == "nic.interface v0"), "{names:?}");
    let Some(names) = apart(&format!("{make}; ip link set v0 up; {look}")) else { return };
    assert!(!names.iter().any(|name| name == "nic.interface v0"), "{names:?}");
    assert!(names.iter().any(|name| name == "nic.stamps v0"), "{names:?}");
}

#[test]
fn a_threshold_too_low_for_software_stamps_is_found_in_a_ptp4l_that_runs() {
    if !["/usr/sbin/ptp4l", "/usr/local/sbin/ptp4l"].iter().any(|path| Path::new(path).exists()) {
        eprintln!("not tested here: there is no ptp4l");
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("gPTP.cfg");
    let uds = directory.path().join("ptp4l");
    let text = format!(
        "[global]\ntransportSpecific 1\nnetwork_transport L2\ndelay_mechanism P2P\n\
         neighborPropDelayThresh 800\nfree_running 1\nuds_address {}\n",
        uds.display()
    );
    std::fs::write(&path, text).expect("written");
    let script = format!(
        "ip link add v0 type veth peer name v1; ip link set v0 up; ip link set v1 up\n\
         setpriv --bounding-set -sys_time ptp4l -S -i v0 -f {} > {1}/log 2>&1 & pid=$!\n\
         trap 'kill $pid' EXIT\n\
         for i in $(seq 100); do [ -S {1}/ptp4l ] && break; sleep 0.1; done\n\
         \"$ONBEAT\" doctor --json || true",
        path.display(),
        directory.path().display()
    );
    let Some(names) = apart(&script) else { return };
    assert!(names.iter().any(|n| n.starts_with("time.path-threshold ptp4l")), "{names:?}");
}
