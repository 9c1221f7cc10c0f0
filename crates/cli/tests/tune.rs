//! `onbeat tune` on a fake machine, killed for good, left unconfirmed, and watched.

use crate::common::machine::{CPUSET, JOURNAL, Machine, apply};
use crate::common::{executable, number, onbeat};
use onbeat::clock::pause;
use onbeat_machine::tune::{Helper, Kernel, ThisKernel};
use onbeat_model::time::Span;
use onbeat_run::machine;
use onbeat_testkit::{Need, not_run};
use rustix::process::{Pid, Signal, getpid, kill_process, test_kill_process};
use serde_json::Value;
use std::io::Read;
use std::path::Path;
use std::process::Command;

/// How often one looks for what another process does.
const LOOK_AGAIN: Span = Span::from_ms(1);

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
    while machine.is_tuned() {
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
    kill_process(Pid::from_child(&watch), Signal::INT).expect("interrupted");
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
        not_run(Need::Machine, "needs /dev/cpu_dma_latency and the superuser");
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

/// A program at a path of a fake machine.
fn install(machine: &Machine, path: &str, text: &str) {
    executable(&machine.0.path().join(path.trim_start_matches('/')), text);
}

fn process(pid: i32) -> Pid {
    Pid::from_raw(pid).expect("a process")
}

/// The state of a process and its session's number, which is 0 for one outside of this namespace
/// (proc(5)).
fn state_and_session(pid: Pid) -> Option<(String, String)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit(')').next()?.split_whitespace().map(str::to_owned);
    Some((fields.next()?, fields.nth(2)?))
}

#[test]
fn the_process_that_undoes_outlives_the_session_and_its_hang_up() {
    let machine = Machine::new();
    let before = machine.all();
    // A session of its own, of which nothing is left when it is over.
    let mut session = Command::new("setsid");
    session.args(["--wait", "sh", "-c", "\"$@\" & wait $!; kill -HUP 0", "sh"]);
    let apply = machine.command(&apply(&["--confirm-within", "1h"]));
    let output = session.arg(apply.get_program()).args(apply.get_args()).output().expect("sh");
    assert!(machine.is_tuned(), "{}", text(&output.stderr));
    let guard = process(machine.guard());
    let (_, leader) = state_and_session(guard).expect("it lives");
    let (_, ours) = state_and_session(getpid()).expect("this does");
    assert_ne!(leader, guard.to_string(), "not a session's first");
    assert_ne!(leader, ours);
    kill_process(guard, Signal::HUP).expect("hung up");
    pause(Span::from_ms(100));
    test_kill_process(guard).expect("it lives");
    assert_eq!(machine.json(&["status"], 0)["guarded"], true);
    machine.tune(&["undo"], 0);
    assert_eq!(machine.all(), before);
    // Nothing is left for it to do. Whether it is waited for then is its parent's business.
    while state_and_session(guard).is_some_and(|(state, _)| state != "Z") {
        wait();
    }
}

#[test]
fn where_there_is_systemd_the_process_that_undoes_has_a_unit_of_its_own() {
    let machine = Machine::new();
    machine.write("/run/systemd/system/.keep", "");
    let asked = machine.0.path().join("asked");
    let script = format!(
        "#!/bin/sh\necho \"$@\" > {}\nwhile [ \"$1\" != -- ]; do shift; done\nshift\n\
         setsid \"$@\" > /dev/null 2>&1 &\n",
        asked.display()
    );
    install(&machine, "/usr/bin/systemd-run", &script);
    let said = text(&machine.tune(&apply(&["--confirm-within", "1h"]), 0).stderr);
    assert!(!said.contains("systemd-run"), "{said}");
    let asked = machine.read("asked");
    for words in ["--quiet --collect --service-type=exec --unit onbeat-tune-guard-", " -- "] {
        assert!(asked.contains(words), "{asked}");
    }
    let root = machine.0.path().display();
    assert!(asked.contains(&format!("tune --root {root} guard ")), "{asked}");
    assert_eq!(machine.json(&["status"], 0)["guarded"], true);
    kill_process(process(machine.guard()), Signal::KILL).expect("killed");
    while machine.json(&["status"], 0)["guarded"] == true {
        wait();
    }
    let shown = text(&machine.tune(&["status"], 0).stdout);
    assert!(shown.contains("the process that would undo it is gone"), "{shown}");
    machine.tune(&["undo"], 0);
    // One that does not do it is said, and what is left is done.
    install(&machine, "/usr/bin/systemd-run", "#!/bin/sh\necho no bus >&2\nexit 1\n");
    let said = text(&machine.tune(&apply(&["--confirm-within", "1ms"]), 0).stderr);
    assert!(said.contains("may end with your session: systemd-run: no bus"), "{said}");
    while machine.is_tuned() {
        wait();
    }
}

#[test]
fn without_the_process_that_undoes_nothing_is_changed() {
    let machine = Machine::new();
    machine.write("/run/systemd/system/.keep", "");
    install(&machine, "/usr/bin/systemd-run", "#!/bin/sh\nexit 0\n");
    let before = machine.all();
    let said = text(&machine.tune(&apply(&["--confirm-within", "1h"]), 5).stderr);
    assert!(said.contains("nothing is changed") && said.contains("did not start"), "{said}");
    assert!(!machine.is_tuned());
    assert_eq!(machine.all(), before);
}

#[test]
fn an_apply_that_is_stopped_is_ended_when_its_time_is_over_and_undone() {
    let machine = Machine::new();
    let before = machine.all();
    let lines = || machine.read(JOURNAL).lines().count();
    let mut apply = loop {
        let mut apply = machine.start(&apply(&["--confirm-within", "1ms"]));
        while lines() < 5 && apply.try_wait().expect("waited").is_none() {}
        kill_process(Pid::from_child(&apply), Signal::STOP).expect("stopped");
        // In the middle, with the lock; it may have been done already, or undone.
        if apply.try_wait().expect("waited").is_none() && (5..15).contains(&lines()) {
            break apply;
        }
        let _ = apply.kill();
        apply.wait().expect("ended");
        while machine.is_tuned() {
            wait();
        }
    };
    while machine.is_tuned() {
        wait();
    }
    assert_eq!(machine.all(), before);
    let ended = apply.wait().expect("ended");
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&ended), Some(9), "{ended}");
}

#[test]
fn the_users_own_session_is_known_when_sudo_has_emptied_the_environment() {
    let machine = Machine::new();
    let routes = "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT\n\
                  eth0 000200C0 00000000 0001 0 0 0 00FFFFFF 0 0 0\n";
    machine.write("/proc/net/route", routes);
    let plan = machine.command(&["plan", "--profile", "none", "--interface", "eth0"]);
    let from = |address: &str| {
        let mut shell = Command::new("sh");
        shell.env("SSH_CONNECTION", format!("{address} 50000 192.0.2.1 22"));
        // As sudo does: nothing of the environment is left. The shell stays.
        shell.args(["-c", "env -i \"$@\"; exit $?", "sh"]);
        shell.arg(plan.get_program()).args(plan.get_args()).output().expect("sh")
    };
    let output = from("192.0.2.7");
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("eth0 carries your own session"));
    let output = from("198.51.100.7");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}

#[test]
fn helpers_are_not_taken_from_where_the_user_happens_to_be() {
    let machine = Machine::new();
    for name in ["tc", "ip", "gzip"] {
        install(&machine, name, "#!/bin/sh\n: > executed\n");
    }
    for path in ["", ".", ":", "./", "no/such:"] {
        let mut plan = onbeat();
        plan.args(["tune", "plan", "--profile", "none", "--interface", "lo"]);
        let output = plan.env("PATH", path).current_dir(machine.0.path()).output().expect("runs");
        assert!(output.status.code().is_some_and(|code| code != 101), "{path:?}");
        assert!(!machine.0.path().join("executed").exists(), "{path:?}");
    }
}

#[test]
fn the_process_that_holds_idle_states_is_known_by_more_than_its_number() {
    let machine = Machine::new();
    let below = machine::Machine::below(machine.0.path());
    let root = machine.0.path().as_os_str().to_owned();
    let command = [env!("CARGO_BIN_EXE_onbeat"), "tune", "--root"].map(Into::into);
    let command = [&command[..], &[root, "hold".into()]].concat();
    Helper::Holder.start(&below, &command, "7").expect("it holds");
    let (living, latency) = Helper::Holder.living(&below).expect("asked").expect("it lives");
    assert_eq!(latency, "7");
    let device = std::fs::read(machine.0.path().join("dev/cpu_dma_latency")).expect("written");
    assert_eq!(device, 7_i32.to_ne_bytes());
    assert!(Helper::Holder.start(&below, &command, "8").is_err(), "one at a time");
    living.signal(Signal::HUP).expect("hung up");
    assert!(!living.ends_within(Span::from_ms(100)).expect("asked"), "it does not mind");
    living.signal(Signal::TERM).expect("ended");
    while !living.ends_within(Span::from_s(1)).expect("asked") {}
    assert!(Helper::Holder.living(&below).expect("asked").is_none());
    // Why it could not begin comes back to who started it.
    std::fs::remove_file(machine.0.path().join("dev/cpu_dma_latency")).expect("removed");
    let error = Helper::Holder.start(&below, &command, "7").expect_err("no device");
    assert!(error.to_string().contains("/dev/cpu_dma_latency"), "{error}");
    // A notice that was left behind names a process that has its number by now.
    let own = onbeat_machine::tune::Identity::own().expect("this one");
    let (pid, boot) = (own.pid, own.boot);
    let stale = format!(
        r#"{{"ready":{{"identity":{{"pid":{pid},"start":1,"boot":"{boot}"}},"word":"0"}}}}"#
    );
    machine.write("/var/lib/onbeat/tune.holder", &stale);
    assert!(Helper::Holder.living(&below).expect("asked").is_none());
}

#[test]
fn a_disk_that_is_full_ends_an_apply_and_not_an_undo() {
    let machine = Machine::new();
    let before = machine.all();
    // No file gets longer than 4 blocks, as if somebody had filled the disk.
    let full = |arguments: &[&str]| {
        let tune = machine.command(arguments);
        let mut shell = Command::new("sh");
        shell.args(["-c", "trap '' XFSZ; ulimit -f 4; exec \"$@\"", "sh"]);
        shell.arg(tune.get_program()).args(tune.get_args()).output().expect("sh")
    };
    let output = full(&apply(&[]));
    assert_eq!(output.status.code(), Some(5));
    assert!(text(&output.stderr).contains("tune.journal: File too large"));
    assert_eq!(machine.all(), before, "what was made is taken back");
    assert!(!machine.is_tuned());
    machine.tune(&apply(&[]), 0);
    assert!(machine.read(JOURNAL).len() > 4_096);
    let output = full(&["undo"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(machine.all(), before);
}
