//! `onbeat tune` on a made-up machine, killed for good, left unconfirmed, and watched.

mod common;

use common::{number, onbeat, root};
use onbeat_host::clock::pause;
use onbeat_host::tune::{Kernel, ThisKernel};
use onbeat_model::time::Span;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use tempfile::TempDir;

const CPUSET: [&str; 7] =
    ["--profile", "cpuset", "--cores", "2-3", "--interface", "eth0", "--write-boot"];
const JOURNAL: &str = "var/lib/onbeat/tune.journal";
/// How often one looks for what another process does.
const LOOK_AGAIN: Span = Span::from_ms(1);

/// A made-up machine below a root.
struct Machine(TempDir);

impl Machine {
    fn new() -> Self {
        let made = Self(tempfile::tempdir().expect("a directory"));
        let files = root().join("crates/host/src/tune/machine.txt");
        let files = std::fs::read_to_string(files).expect("the files");
        for file in files.split("== ").skip(1) {
            let (path, text) = file.split_once('\n').expect("a path");
            made.write(path, text);
        }
        made
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.0.path().join(path.trim_start_matches('/'));
        std::fs::create_dir_all(path.parent().expect("above")).expect("made");
        std::fs::write(path, text).expect("written");
    }

    fn read(&self, path: &str) -> String {
        let text = std::fs::read_to_string(self.0.path().join(path)).unwrap_or_default();
        text.trim().to_owned()
    }

    /// All files but those of the journal.
    fn all(&self) -> BTreeMap<String, String> {
        fn walk(root: &Path, at: &Path, all: &mut BTreeMap<String, String>) {
            for entry in std::fs::read_dir(at).expect("a directory").flatten() {
                let path = entry.path();
                if path.is_dir() {
                    walk(root, &path, all);
                } else if !path.starts_with(root.join("var/lib/onbeat")) {
                    let name = path.strip_prefix(root).expect("below").display().to_string();
                    all.insert(name, std::fs::read_to_string(&path).expect("text"));
                }
            }
        }
        let mut all = BTreeMap::new();
        walk(self.0.path(), self.0.path(), &mut all);
        all
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = onbeat();
        command.arg("tune").arg("--root").arg(self.0.path()).args(arguments);
        command.env_remove("SSH_CONNECTION").current_dir(root());
        command
    }

    fn tune(&self, arguments: &[&str], expected: i32) -> Output {
        let output = self.command(arguments).output().expect("onbeat runs");
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(expected), "{arguments:?}\n{text}");
        output
    }

    fn json(&self, arguments: &[&str], expected: i32) -> Value {
        let output = self.tune(&[arguments, &["--json"]].concat(), expected);
        serde_json::from_slice(&output.stdout).expect("JSON, and nothing else")
    }

    fn start(&self, arguments: &[&str]) -> Child {
        let mut command = self.command(arguments);
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        command.spawn().expect("onbeat runs")
    }
}

fn apply<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["apply"], &CPUSET[..], more].concat()
}

fn wait() {
    pause(LOOK_AGAIN);
}

fn text(octets: &[u8]) -> String {
    String::from_utf8_lossy(octets).into_owned()
}

#[test]
fn a_plan_shows_the_difference_and_changes_nothing() {
    let machine = Machine::new();
    let before = machine.all();
    let shown = text(&machine.tune(&[&["plan"], &CPUSET[..]].concat(), 0).stdout);
    for words in ["interrupt 24 (eth0-rx-0) on 0-1", "0-3", "after a reboot", "throttling stays on"]
    {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    let plan = machine.json(&[&["plan"], &CPUSET[..]].concat(), 0);
    assert_eq!(plan["format"], "onbeat-tune-plan");
    assert!(plan["changes"].as_array().expect("changes").len() > 15);
    assert_eq!(plan["boot"][0], "threadirqs");
    for (arguments, words) in [
        (["--profile", "cpuset", "--cores", "0-3"], "at least one processor must stay"),
        (["--profile", "cpuset", "--cores", "7-9"], "no processors 7-9"),
        (["--profile", "none", "--cores", "2"], "isolates no processors"),
        (["--profile", "none", "--interface", "eth1"], "not touched without --force"),
    ] {
        let output = machine.tune(&[&["apply"], &arguments[..]].concat(), 2);
        assert!(text(&output.stderr).contains(words), "{words}");
    }
    assert_eq!(machine.all(), before);
    assert_eq!(machine.read(JOURNAL), "");
}

#[test]
fn settings_are_made_read_back_and_undone() {
    let machine = Machine::new();
    let before = machine.all();
    let output = machine.tune(&apply(&[]), 0);
    assert!(text(&output.stderr).contains("refused by the kernel: interrupt 26"));
    assert!(text(&output.stderr).contains("cgroup.procs"), "how to start programs is said");
    assert_eq!(machine.read("proc/irq/24/smp_affinity_list"), "0-1");
    let again = machine.tune(&apply(&[]), 5);
    assert!(text(&again.stderr).contains("`onbeat tune undo` first"));
    let status = machine.json(&["status"], 0);
    assert_eq!(
        (&status["profile"], &status["unconfirmed_for_ns"]),
        (&"cpuset".into(), &Value::Null)
    );
    assert_eq!(status["refused"][0]["what"], "interrupt 26 (nvme0q1) on 0-1");
    machine.write("/proc/irq/24/smp_affinity_list", "0-3\n");
    let shown = text(&machine.tune(&["verify"], 1).stdout);
    assert!(shown.contains("changed since"), "{shown}");
    let undone = text(&machine.tune(&["undo"], 0).stderr);
    assert!(undone.contains("update-grub"), "{undone}");
    assert_eq!(machine.all(), before);
    assert!(text(&machine.tune(&["status"], 0).stdout).contains("Nothing is tuned."));
}

#[test]
fn a_process_that_is_killed_for_good_leaves_what_undo_takes_back() {
    let machine = Machine::new();
    let before = machine.all();
    let lines = || {
        let octets = std::fs::read(machine.0.path().join(JOURNAL)).unwrap_or_default();
        octets.iter().filter(|octet| **octet == b'\n').count()
    };
    let mut seen = Vec::new();
    for after in [1, 2, 3, 5, 8, 13, 21, 34] {
        let mut apply = machine.start(&apply(&[]));
        while lines() < after && apply.try_wait().expect("waited").is_none() {}
        let _ = apply.kill(); // SIGKILL; it may have ended
        apply.wait().expect("ended");
        seen.push(lines());
        machine.tune(&["undo"], 0);
        assert_eq!(machine.all(), before, "killed after line {after}");
    }
    assert!(seen.iter().zip([1, 2, 3, 5, 8, 13, 21, 34]).all(|(seen, after)| *seen >= after));
    machine.tune(&apply(&[]), 0);
    let whole = lines();
    assert!(seen.iter().any(|lines| *lines < whole), "none was killed: {seen:?} of {whole}");
    machine.tune(&["undo"], 0);
}

#[test]
fn without_a_word_from_the_user_everything_is_undone_and_with_one_it_stays() {
    let machine = Machine::new();
    let before = machine.all();
    machine.tune(&apply(&["--confirm-within", "1ms"]), 0);
    while machine.0.path().join(JOURNAL).exists() {
        wait();
    }
    assert_eq!(machine.all(), before);
    let shown = text(&machine.tune(&["status"], 0).stdout);
    assert!(shown.contains("without having been confirmed"), "{shown}");
    machine.tune(&["confirm"], 5);

    machine.tune(&apply(&["--confirm-within", "1h"]), 0);
    assert!(number(&machine.json(&["status"], 0), "unconfirmed_for_ns") > 0);
    machine.tune(&["confirm"], 0);
    assert_eq!(machine.json(&["status"], 0)["unconfirmed_for_ns"], Value::Null);
    machine.tune(&["undo"], 0);
    assert_eq!(machine.all(), before);
}

#[test]
fn what_drifts_while_it_is_watched_is_made_again_and_said() {
    let machine = Machine::new();
    let before = machine.all();
    let mut watch = machine.start(&apply(&["--watch"]));
    let path = "proc/irq/24/smp_affinity_list";
    // The set's file is the last setting.
    while machine.read("sys/fs/cgroup/cpuset/cpuset.sched_load_balance") != "0" {
        wait();
    }
    machine.write(path, "0-3\n");
    while machine.read(path) != "0-1" {
        wait();
    }
    let pid = rustix::process::Pid::from_child(&watch);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("interrupted");
    let mut said = String::new();
    watch.stderr.take().expect("piped").read_to_string(&mut said).expect("text");
    assert!(watch.wait().expect("ended").success(), "{said}");
    assert!(said.contains("made again: interrupt 24"), "{said}");
    assert!(said.contains("the settings stay"), "{said}");
    machine.tune(&["undo"], 0);
    assert_eq!(machine.all(), before);
}

#[test]
fn a_description_adds_shapers_vlans_and_priorities() {
    let machine = Machine::new();
    let arguments = ["examples/03-robot-arm", "--host", "controller", "--interface", "eth0"];
    let profile = ["--profile", "none"];
    let plan = machine.json(&[&["plan"], &arguments[..], &profile].concat(), 0);
    let commands: Vec<String> = plan["changes"]
        .as_array()
        .expect("changes")
        .iter()
        .flat_map(|change| change["commands"].as_array().expect("commands").clone())
        .map(|command| {
            let words = command.as_array().expect("words").iter();
            words.map(|word| word.as_str().expect("text")).collect::<Vec<_>>().join(" ")
        })
        .collect();
    let begins = |start: &str| commands.iter().any(|command| command.starts_with(start));
    assert!(begins("tc qdisc replace dev eth0 root handle 8b0: mqprio num_tc"), "{commands:?}");
    assert!(begins("tc qdisc replace dev eth0 parent 8b0:1 handle 8b1: cbs idleslope"));
    assert!(begins("ip link add link eth0 name eth0.2 type vlan id 2 egress-qos-map"));
    let nobody = ["examples/03-robot-arm", "--host", "nobody"];
    let output = machine.tune(&[&["plan"], &nobody[..], &profile].concat(), 2);
    assert!(text(&output.stderr).contains("no host `nobody`"));
}

#[test]
fn idle_states_are_held_by_a_process_until_it_is_ended() {
    if !rustix::process::geteuid().is_root() || !Path::new("/dev/cpu_dma_latency").exists() {
        println!("idle states: did not run: needs /dev/cpu_dma_latency and the superuser");
        return;
    }
    let holder = [env!("CARGO_BIN_EXE_onbeat"), "tune", "hold"].map(Into::into).to_vec();
    let kernel = ThisKernel { holder };
    // The kernel's own default, so that nothing changes for others.
    let latency = Some("2000000000".to_owned());
    kernel.set_held(&latency).expect("held");
    assert_eq!(kernel.held().expect("asked"), latency);
    assert!(kernel.set_held(&latency).is_err(), "one at a time");
    kernel.set_held(&None).expect("ended");
    assert_eq!(kernel.held().expect("asked"), None);
}
