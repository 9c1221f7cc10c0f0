//! The verb `clock` with the real ptp4l, in a network namespace of its own. Where that is not
//! permitted, each test says so.

use onbeat_testkit::{Need, not_run};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

fn onbeat(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_onbeat")).args(words).output().expect("onbeat runs")
}

fn code(output: &Output, expected: i32) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(expected), "{said}");
    said.into_owned()
}

#[test]
fn the_configuration_is_written_for_ptp4l_phc2sys_and_systemd() {
    let directory = tempfile::tempdir().expect("a directory");
    let out = directory.path().join("clock");
    let path = out.to_str().expect("UTF-8");
    let words = ["clock", "config", "--scenario", "sms", "--role", "slave", "--interface", "eth0"];
    code(&onbeat(&[&words[..], &["--out", path]].concat()), 0);
    let read = |name: &str| std::fs::read_to_string(out.join(name)).expect("a file");
    assert!(read("ptp4l.cfg").contains("time_stamping            hardware"));
    let unit = read("onbeat-phc2sys.service");
    assert!(unit.contains("phc2sys -a -r ") && unit.contains("CPUSchedulingPolicy=fifo"), "{unit}");
    assert!(read("commands.txt").contains(&format!("ptp4l -f {path}/ptp4l.cfg")));
    let two = ["--interface", "a/b", "--out", path];
    let said = code(&onbeat(&[&words[..], &two].concat()), 2);
    assert!(said.contains("`a/b` is no name of an interface"), "{said}");
    let again = ["--interface", "eth0", "--out", path];
    assert!(code(&onbeat(&[&words[..], &again].concat()), 2).contains("named twice"));
    code(&onbeat(&[&words[..], &["--out", path]].concat()), 0);
    std::fs::write(out.join("ptp4l.cfg"), "# mine\n").expect("written");
    let said = code(&onbeat(&[&words[..], &["--out", path]].concat()), 5);
    assert!(said.contains("it is not replaced") && read("ptp4l.cfg") == "# mine\n", "{said}");
}

#[test]
fn a_clock_that_nobody_keeps_is_not_in_sync_and_the_reason_is_said() {
    let words = ["clock", "status", "--socket", "/nobody/listens/here", "--within", "1us"];
    let output = onbeat(&words);
    code(&output, 1);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.starts_with("not in sync\n  ptp4l does not answer"), "{text}");
    let output = onbeat(&[&words[..], &["--json"]].concat());
    code(&output, 1);
    let value: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert!(value["in_sync"] == false && value["ptp4l"].is_null(), "{value}");
    code(&onbeat(&["clock", "status", "--within", "soon"]), 2);
}

#[test]
fn a_supervised_ptp4l_in_a_namespace_is_free_running_and_ends_with_the_command() {
    if !Path::new("/usr/sbin/ptp4l").exists() {
        not_run(Need::Tools, "ptp4l (linuxptp) is not installed");
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let out = directory.path().join("clock").display().to_string();
    let onbeat = env!("CARGO_BIN_EXE_onbeat");
    let script = format!(
        "ip link add eth0 type veth peer name eth1 && ip link set eth0 up && ip link set eth1 up \
         && echo ready >&2 && exec {onbeat} clock run --scenario mbs --role slave --interface eth0 \
         --software --out {out} --duration 1500ms --json"
    );
    let output = Command::new("unshare").args(["--net", "sh", "-c", &script]).output();
    let output = output.expect("unshare");
    let said = String::from_utf8_lossy(&output.stderr);
    if !said.contains("ready") {
        not_run(Need::Namespaces, said);
        return;
    }
    assert_eq!(output.status.code(), Some(1), "nobody is master: {said}");
    assert!(said.contains("no clock is set, ptp4l only measures"), "{said}");
    let text = String::from_utf8_lossy(&output.stdout);
    let last: Value = serde_json::from_str(text.lines().last().expect("a line")).expect("JSON");
    assert!(last["steered"] == false && last["in_sync"] == false, "{last}");
    assert_eq!(last["ptp4l"]["ports"][0]["threshold_ns"], 20_000_000, "{last}");
    let configured = std::fs::read_to_string(format!("{out}/ptp4l.cfg")).expect("a file");
    assert!(configured.contains("free_running             1"));
    assert!(!Path::new(&format!("{out}/ptp4l")).exists(), "its socket is gone");
    let wanted = format!("{out}/ptp4l.cfg");
    let processes = std::fs::read_dir("/proc").expect("/proc").flatten();
    let mut lines = processes.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    let with = |line: Vec<u8>| String::from_utf8_lossy(&line).contains(&wanted);
    assert!(!lines.any(with), "ptp4l has ended");
}

/// The lines of JSON that `clock run` prints of the slave `eth0`, in a namespace in which `other`
/// is run before; `None`, after one line that says why, where there is no such thing.
fn lines_of_a_slave(out: &Path, other: &str, seconds: u32) -> Option<Vec<Value>> {
    if !Path::new("/usr/sbin/ptp4l").exists() {
        not_run(Need::Tools, "ptp4l (linuxptp) is not installed");
        return None;
    }
    let (out, onbeat) = (out.display(), env!("CARGO_BIN_EXE_onbeat"));
    let script = format!(
        "ip link add eth0 type veth peer name eth1 && ip link set eth0 up && ip link set eth1 up \
         && echo ready >&2 || exit 9\n\
         run() {{ {onbeat} clock run --scenario mbs --interface $1 --software --within 1s \
         --role $2 --out {out}/$1 --json --duration $3; }}\n\
         {other}\nrun eth0 slave {seconds}s\nwait"
    );
    let output = Command::new("unshare").args(["--net", "sh", "-c", &script]).output();
    let output = output.expect("unshare");
    let said = String::from_utf8_lossy(&output.stderr);
    if !said.contains("ready") {
        not_run(Need::Namespaces, said);
        return None;
    }
    let text = String::from_utf8_lossy(&output.stdout);
    Some(text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect())
}

#[test]
fn two_slaves_without_a_grandmaster_are_never_in_sync() {
    let directory = tempfile::tempdir().expect("a directory");
    // Twice as long as a clock that may lead waits before it does.
    let other = format!("run eth1 slave 9s > {}/other.json &", directory.path().display());
    let Some(lines) = lines_of_a_slave(directory.path(), &other, 9) else { return };
    let other = std::fs::read_to_string(directory.path().join("other.json")).expect("lines");
    let other = other.lines().map(|line| serde_json::from_str(line).expect("JSON"));
    let all: Vec<Value> = lines.into_iter().chain(other).collect();
    assert!(all.len() >= 4, "{all:?}");
    for line in all {
        assert_eq!(line["in_sync"], false, "{line}");
        assert!(line["error_ns"].is_null() && line["sync_age_ns"].is_null(), "{line}");
        assert_ne!(line["ptp4l"]["ports"][0]["state"], "MASTER", "a slave leads: {line}");
    }
}

#[test]
fn a_slave_is_in_sync_by_a_measured_sync_only_and_no_more_when_its_master_is_gone() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().display();
    let other = format!("run eth1 master 12s > {path}/other.json &");
    let Some(lines) = lines_of_a_slave(directory.path(), &other, 18) else { return };
    let in_sync = |line: &&Value| line["in_sync"] == true;
    assert!(lines.iter().any(|line| in_sync(&line)), "{lines:?}");
    for line in lines.iter().filter(in_sync) {
        let age = line["sync_age_ns"].as_i64().expect("a Sync was measured");
        assert!(age <= 375_000_000 && line["error_ns"].is_i64(), "{line}");
    }
    let last = lines.last().expect("a line");
    assert!(last["in_sync"] == false && last["error_ns"].is_null(), "{last}");
    assert_eq!(last["ptp4l"]["ports"][0]["state"], "LISTENING", "{last}");
}

#[test]
fn simulated_clocks_are_within_a_microsecond_over_a_few_hops_with_hardware_stamps() {
    let words = ["clock", "simulate", "--hops", "3", "--duration", "40s", "--json"];
    let output = onbeat(&words);
    code(&output, 0);
    let value: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let nodes = value["nodes"].as_array().expect("nodes");
    assert_eq!(nodes.len(), 3);
    for node in nodes {
        let max = node["error_ns"]["max"].as_i64().expect("a figure");
        assert!((1..1_000).contains(&max), "{node}");
    }
    assert_eq!(onbeat(&words).stdout, output.stdout, "the same seed");
    code(&onbeat(&["clock", "simulate", "--hops", "0"]), 2);
}
