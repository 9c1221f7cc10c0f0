//! `onbeat measure campaign` continues where it was killed, and with `--apply` leaves the machine,
//! here a fake one, as it was.

use crate::common::executable;
use crate::common::machine::{BOOT_ID, JOURNAL, LINE, Machine};
use crate::common::ptp4l::Ptp4l;
use onbeat::clock::pause;
use onbeat_measure::measurement::{Campaign, State};
use onbeat_model::time::Span;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
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

const UNIT: &str = "etc/systemd/system/onbeat-campaign.service";
const WANTS: &str = "etc/systemd/system/multi-user.target.d/onbeat-campaign.conf";
/// What the boot loader of the fake machine reads.
const LOADER: &str = "boot/grub.cfg";
/// How often it was told to reboot, in its state directory.
const REBOOTS: &str = "var/lib/onbeat/reboots";

/// A fake machine with systemd and a boot loader, and campaigns on it.
struct Fake {
    machine: Machine,
    out: tempfile::TempDir,
    before: BTreeMap<String, String>,
}

impl Fake {
    fn new() -> Self {
        let machine = Machine::new();
        machine.write("/run/systemd/system/.keep", "");
        machine.write("/etc/systemd/system/.keep", "");
        let root = machine.0.path();
        let here = "root=$(dirname \"$0\")/../..\n";
        let update =
            format!("#!/bin/sh\n{here}cat $root/etc/default/grub.d/*.cfg > $root/{LOADER}\n");
        executable(&root.join("usr/sbin/update-grub"), update);
        let reboot = format!("#!/bin/sh\n{here}echo \"$@\" >> $root/{REBOOTS}\n");
        executable(&root.join("usr/bin/systemctl"), reboot);
        machine.write(LOADER, "");
        let this = Self {
            before: BTreeMap::new(),
            machine,
            out: tempfile::tempdir().expect("a directory"),
        };
        this.update();
        Self { before: this.machine.all(), ..this }
    }

    /// Another one that is as this one is.
    fn copy(&self) -> Self {
        let (root, out) = (tempfile::tempdir(), tempfile::tempdir());
        let (root, out) = (root.expect("a directory"), out.expect("a directory"));
        for (from, to) in [(&self.machine.0, &root), (&self.out, &out)] {
            let copied = Command::new("cp").arg("-aT").arg(from.path()).arg(to.path()).status();
            assert!(copied.expect("cp").success());
        }
        Self { machine: Machine(root), out, before: self.before.clone() }
    }

    fn update(&self) {
        let update = Command::new(self.machine.0.path().join("usr/sbin/update-grub")).status();
        assert!(update.expect("a script").success());
    }

    fn campaign(&self, samples: &str, more: &[&str]) -> Command {
        let mut command = campaign(self.out.path(), samples);
        command.args(["--apply", "--cores", "2-3", "--tune-root"]).arg(self.machine.0.path());
        command.args(more).stderr(Stdio::piped());
        command
    }

    /// Runs one to its end; what it left.
    fn whole(&self, more: &[&str]) -> Campaign {
        let output = self.campaign("20", more).output().expect("onbeat");
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        self.found()
    }

    fn found(&self) -> Campaign {
        let text = std::fs::read_to_string(self.out.path().join("campaign.json"));
        serde_json::from_str(&text.expect("the campaign")).expect("a campaign")
    }

    fn reboots(&self) -> usize {
        self.machine.read(REBOOTS).lines().count()
    }

    /// What a boot does: the kernel has the boot loader's parameters, or none.
    fn boot(&self, with_parameters: bool) {
        let loader = if with_parameters { self.machine.read(LOADER) } else { String::new() };
        let id = format!("boot-{}", self.machine.read(REBOOTS).len());
        self.machine.boot(&self.before, &loader, &id);
    }

    /// What systemd does after a boot, if it was told to.
    fn start_unit(&self) -> bool {
        if self.machine.read(WANTS).is_empty() {
            return false;
        }
        let unit = self.machine.read(UNIT);
        let value =
            |key: &str| unit.lines().find_map(|line| line.strip_prefix(key)).expect("a line");
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(value("ExecStart=")).current_dir(value("WorkingDirectory="));
        let output = shell.output().expect("sh");
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        true
    }

    /// Nothing of a campaign is left on the machine.
    fn is_as_before(&self, what: &str) {
        let mut now = self.machine.all();
        for path in [BOOT_ID, "proc/cmdline"] {
            now.insert(path.to_owned(), self.before[path].clone());
        }
        assert_eq!(now, self.before, "{what}");
        assert!(!self.machine.is_tuned(), "{what}");
    }

    /// How many lines of a kind the journal has since its last tune, whose profile it gives.
    fn journal(&self) -> (String, Vec<Value>) {
        let text = self.machine.read(JOURNAL);
        let mut records: Vec<Value> =
            text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let at = records.iter().rposition(|record| record.get("tune").is_some());
        let last = records.split_off(at.unwrap_or_default());
        let profile = last.first().and_then(|tune| tune["tune"]["profile"].as_str());
        (profile.unwrap_or_default().to_owned(), last)
    }

    /// Waits until who must take back has done so: but for the files for a reboot, which no guard
    /// watches, nothing is set.
    fn settles(&self, what: &str) {
        until(what, || {
            let (_, last) = self.journal();
            let unguarded = last.first().is_none_or(|tune| tune["tune"]["confirm_by_ns"].is_null());
            unguarded || last.iter().all(|record| record.get("begin").is_none())
        });
    }

    /// `onbeat tune undo`, as soon as no other process is at the journal, and what it says is next.
    fn undo(&self) {
        let undo = || self.machine.command(&["undo"]).output().expect("onbeat");
        until("undo", || undo().status.success());
        self.update();
    }

    /// Runs a campaign, and kills it as soon as something is so; whether that caught it.
    fn killed(&self, more: &[&str], samples: &str, is: &dyn Fn() -> bool) -> bool {
        let mut running =
            self.campaign(samples, more).stderr(Stdio::null()).spawn().expect("onbeat");
        while !is() && running.try_wait().expect("waited").is_none() {
            pause(Span::from_us(200));
        }
        let _ = running.kill(); // it may have ended
        running.wait().expect("its end").signal() == Some(9)
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The states, and the profile that was set, in the order of Table 2.
fn shape(campaign: &Campaign) -> Vec<(State, Option<String>)> {
    let profile = |line: &String| line.split([' ', ':']).next().unwrap_or_default().to_owned();
    let scenarios = campaign.scenarios.iter().map(|of| &of.scenario);
    scenarios.map(|of| (of.state, of.tuned.as_ref().map(profile))).collect()
}

/// The shape where the boot-time profile could be had, or not.
fn wanted(tuned: bool) -> Vec<(State, Option<String>)> {
    let set = |profile: &str| (State::Partly, Some(profile.to_owned()));
    let boot = if tuned { set("tuned-like") } else { (State::Cannot, None) };
    [set("none"), boot, set("cpuset")].iter().flat_map(|one| vec![one.clone(); 3]).collect()
}

fn why(campaign: &Campaign, id: &str) -> String {
    let one = campaign.scenarios.iter().find(|of| of.scenario.name.id == id).expect("a scenario");
    one.scenario.why.join("\n")
}

#[test]
fn a_campaign_sets_a_machine_up_for_each_scenario_and_reboots_there_and_back() {
    let fake = Fake::new();
    let first = fake.whole(&["--reboot"]);
    assert_eq!(shape(&first), wanted(false));
    assert!(why(&first, "TUNED-MBS-SLAVE").contains("the campaign continues after a reboot"));
    let line = first.scenarios[8].scenario.tuned.clone().expect("a line");
    assert!(line.starts_with("cpuset on processors 2-3: 13 set: "), "{line}");
    let measured = first.scenarios[8].measurement.as_ref().and_then(|of| of.scenario.as_ref());
    assert_eq!(measured.and_then(|of| of.tuned.as_ref()), Some(&line), "its own file has it, too");
    assert_eq!((fake.reboots(), fake.machine.read(REBOOTS)), (1, "reboot".to_owned()));
    // But for what the next boot needs, the machine is as before.
    let mut now = fake.machine.all();
    for path in [UNIT, WANTS, LINE] {
        assert!(now.remove(path).is_some(), "{path}");
    }
    assert!(now.insert(LOADER.to_owned(), fake.before[LOADER].clone()).is_some());
    assert_eq!(now, fake.before);
    fake.boot(true);
    assert!(fake.start_unit());
    let second = fake.found();
    assert_eq!(shape(&second), wanted(true));
    let kept = |campaign: &Campaign| campaign.scenarios[..3].to_vec();
    assert_eq!(kept(&second), kept(&first), "what was done is not measured again");
    fake.is_as_before("the campaign is over");
    assert_eq!(fake.reboots(), 2, "so that the kernel is without the parameters");
    fake.boot(true);
    assert!(!fake.start_unit());
    assert_eq!(fake.machine.read("proc/cmdline"), fake.before["proc/cmdline"].trim());
    let last = fake.machine.read("var/lib/onbeat/tune.last");
    assert_eq!(shape(&fake.whole(&["--reboot"])), wanted(true));
    assert_eq!(fake.machine.read("var/lib/onbeat/tune.last"), last, "nothing was set");
    assert_eq!(fake.reboots(), 2);
}

#[test]
fn a_kernel_that_does_not_get_its_parameters_is_not_booted_again_for_them() {
    let first = Fake::new();
    first.whole(&["--reboot"]);
    let no_other = |fake: &Fake, campaign: &Campaign, what: &str| {
        assert_eq!(shape(campaign), wanted(false), "{what}");
        let why = why(campaign, "TUNED-SMS-SLAVE");
        assert!(
            why.contains("without threadirqs") && why.contains("no other is tried"),
            "{what}: {why}"
        );
        fake.is_as_before(what);
        assert_eq!(fake.reboots(), 1, "{what}");
    };
    // By the unit, also if it is there for ever, and by hand.
    let fake = first.copy();
    fake.boot(false);
    no_other(&fake, &fake.whole(&["--reboot", "--resumed"]), "the unit");
    fake.boot(false);
    no_other(&fake, &fake.whole(&["--reboot", "--resumed"]), "the unit, again");
    let fake = first.copy();
    fake.boot(false);
    no_other(&fake, &fake.whole(&["--reboot"]), "by hand");
    // Where the machine cannot tell one boot from another.
    let fake = first.copy();
    no_other(&fake, &fake.whole(&["--reboot", "--resumed"]), "the same boot");
}

/// Something that a killed campaign has come to, and a scenario that has it come to that again.
type Step = (String, String, Box<dyn Fn(&Fake) -> bool>);

/// So many lines of the journal of a profile.
fn line(profile: &'static str, again: &str, after: usize) -> Step {
    let is = move |fake: &Fake| {
        let (is, lines) = fake.journal();
        is == profile && lines.len() >= after
    };
    (format!("line {after} of {profile}"), again.to_owned(), Box::new(is))
}

/// The steps of a profile: so many lines of its journal, and one of its scenarios.
fn steps(profile: &'static str, id: &'static str, lines: &[usize]) -> Vec<Step> {
    let begun = move |fake: &Fake| is_under_way(fake.out.path(), id);
    let done = move |fake: &Fake| fake.out.path().join(id).join("measurement.json").exists();
    let mut steps: Vec<Step> = lines.iter().map(|after| line(profile, id, *after)).collect();
    steps.push((format!("{id} is measured"), id.to_owned(), Box::new(begun)));
    steps.push((format!("{id} is done"), id.to_owned(), Box::new(done)));
    steps
}

/// Kills a campaign at one step after the other; what is set is taken back each time, and the same
/// command, started again, does the rest. How many steps were come to in time.
fn kill_at(
    steps: Vec<Step>,
    fake: &Fake,
    more: &[&str],
    whole: &[(State, Option<String>)],
) -> usize {
    let mut caught = 0;
    for (at, (what, again, is)) in steps.into_iter().enumerate() {
        // So that the step is come to.
        let _ = std::fs::remove_dir_all(fake.out.path().join(again));
        caught += usize::from(fake.killed(more, "20", &|| is(fake)));
        fake.settles(&what);
        let (profile, last) = fake.journal();
        // By the guard; who writes for the next boot has none, and continues by itself.
        if last.first().is_none_or(|tune| !tune["tune"]["confirm_by_ns"].is_null()) || at % 2 == 0 {
            fake.undo();
            fake.is_as_before(&format!("{what} ({profile})"));
        }
    }
    // There or back: a machine that was told to reboot, and has not, is told again.
    let reboots = fake.reboots();
    assert_eq!(shape(&fake.whole(more)), whole);
    assert_eq!(fake.reboots(), reboots + 1);
    caught
}

#[test]
fn a_campaign_that_is_killed_at_any_step_leaves_nothing_and_does_the_rest() {
    let fake = Fake::new();
    let mut all = steps("none", "RT-MBS-MASTER", &[1, 2, 4, 7, 8, 9]);
    all.extend(steps("cpuset", "CPUSET-MBS-SLAVE", &[1, 3, 10, 20, 28, 32, 40]));
    all.extend((1..=7).map(|after| line("tuned-like", "", after)));
    let updated = |fake: &Fake| fake.machine.read(LOADER).contains("isolcpus");
    all.push(("the boot loader".to_owned(), String::new(), Box::new(updated)));
    all.push(("the reboot".to_owned(), String::new(), Box::new(|fake| fake.reboots() > 0)));
    let count = all.len();
    let caught = kill_at(all, &fake, &["--reboot"], &wanted(false));
    assert!(caught > 0, "none of {count} was killed");
    assert!(fake.machine.is_tuned(), "what the next boot needs");
}

#[test]
fn a_campaign_that_is_killed_after_its_reboot_leaves_nothing_and_does_the_rest() {
    let first = Fake::new();
    first.whole(&["--reboot"]);
    first.boot(true);
    let is_back = |fake: &Fake| !fake.machine.read(LOADER).contains("isolcpus");
    let mut all = steps("tuned-like", "TUNED-MBS-SLAVE", &[2, 9, 16, 22, 27, 31]);
    all.push(("the boot loader".to_owned(), "TUNED-SMS-SLAVE".to_owned(), Box::new(is_back)));
    let (mut caught, count) = (0, all.len());
    for (what, again, is) in all {
        // Each from where the boot line and what continues are in force.
        let fake = first.copy();
        caught +=
            kill_at(vec![(what, again, is)], &fake, &["--reboot", "--resumed"], &wanted(true));
        fake.is_as_before("the campaign is over");
    }
    assert!(caught > 0, "none of {count} was killed");
}

#[test]
fn an_interrupted_campaign_takes_back_what_it_set() {
    let fake = Fake::new();
    fake.whole(&["--reboot"]);
    let wait = |fake: &Fake, more: &[&str], id: &str| {
        let mut running =
            fake.campaign("10000000", more).stderr(Stdio::null()).spawn().expect("onbeat");
        until(id, || is_under_way(fake.out.path(), id));
        kill_process(Pid::from_child(&running), Signal::TERM).expect("a signal");
        let ended: std::process::ExitStatus = Child::wait(&mut running).expect("its end");
        assert_eq!(ended.code(), Some(130), "{id}");
        fake.is_as_before(id);
        let left = why(&fake.found(), id);
        assert!(left.contains("interrupted before: start it again"), "{left}");
    };
    // After the reboot, with the boot line still to be put back.
    let booted = fake.copy();
    booted.boot(true);
    wait(&booted, &["--reboot", "--resumed"], "TUNED-SMS-SLAVE");
    assert_eq!(booted.reboots(), 1, "who interrupts it wants the machine");
    fake.undo();
    for id in ["CPUSET-MBS-SLAVE", "RT-SMS-SLAVE"] {
        std::fs::remove_dir_all(fake.out.path().join(id)).expect("removed");
    }
    wait(&fake, &[], "RT-SMS-SLAVE");
    let done = fake.campaign("20", &[]).arg("--json").output().expect("onbeat");
    assert_eq!(done.status.code(), Some(0), "{}", said(&done));
    assert_eq!(shape(&fake.found()), wanted(false));
}

#[test]
fn what_is_changed_or_taken_back_during_a_measurement_is_said_in_its_result() {
    let fake = Fake::new();
    let irq = "proc/irq/24/smp_affinity_list";
    for (words, change) in [
        (
            "1 changed meanwhile: interrupt 24 (eth0-rx-0) on 0-1",
            &(|| fake.machine.write(irq, "0-3\n")) as &dyn Fn(),
        ),
        ("what was set was taken back meanwhile", &|| drop(fake.machine.tune(&["undo"], 0))),
    ] {
        // It is stopped while it measures; one that was quicker is measured again.
        let mut caught = false;
        while !caught {
            let _ = std::fs::remove_dir_all(fake.out.path().join("CPUSET-SMS-SLAVE"));
            let mut running =
                fake.campaign("100000", &[]).stderr(Stdio::null()).spawn().expect("onbeat");
            let measures = || is_under_way(fake.out.path(), "CPUSET-SMS-SLAVE");
            while !measures() && running.try_wait().expect("waited").is_none() {}
            kill_process(Pid::from_child(&running), Signal::STOP).expect("stopped");
            caught = measures() && fake.machine.read(irq) == "0-1";
            if caught {
                change();
            }
            kill_process(Pid::from_child(&running), Signal::CONT).expect("continued");
            assert!(running.wait().expect("its end").success());
        }
        let campaign = fake.found();
        let why = |id: &str| why(&campaign, id);
        assert!(why("CPUSET-SMS-SLAVE").contains(words), "{}", why("CPUSET-SMS-SLAVE"));
        assert!(!why("RT-SMS-SLAVE").contains(words), "{words}");
        fake.machine.write(irq, "0-3\n");
        fake.is_as_before(words);
    }
}

#[test]
fn a_clock_leads_and_follows_for_scenarios_and_has_its_priority_back_after_each() {
    let line = |campaign: &Campaign, id: &str| {
        let one = campaign.scenarios.iter().find(|of| of.scenario.name.id == id);
        one.and_then(|of| of.scenario.tuned.clone()).unwrap_or_default()
    };
    // It follows the other node.
    let fake = Fake::new();
    let ptp4l = Ptp4l::start(fake.machine.0.path(), 248, 246, false);
    let found = fake.whole(&["--sync", "mbs"]);
    assert_eq!(ptp4l.all(), [248, 245, 248, 245, 248]);
    for kind in ["RT", "CPUSET"] {
        let of = |end: &str| line(&found, &format!("{kind}-{end}"));
        assert!(
            of("MBS-MASTER").ends_with("; ptp4l leads by priority1 245"),
            "{}",
            of("MBS-MASTER")
        );
        assert!(!of("MBS-SLAVE").is_empty() && !of("MBS-SLAVE").contains("ptp4l"));
        let why = why(&found, &format!("{kind}-MBS-SLAVE"));
        assert!(!why.contains("meanwhile"), "roles come and go: {why}");
        assert_eq!(of("SMS-SLAVE"), "", "the bridge is no grandmaster");
    }
    assert!(why(&found, "RT-SMS-SLAVE").contains("as --sync says"));
    fake.is_as_before("its roles are as before");
    // Killed while it leads.
    let id = "CPUSET-MBS-MASTER";
    std::fs::remove_dir_all(fake.out.path().join(id)).expect("removed");
    let leads = || is_under_way(fake.out.path(), id);
    assert!(fake.killed(&["--sync", "mbs"], "10000000", &leads));
    fake.settles(id);
    assert_eq!(ptp4l.all().last(), Some(&248), "{:?}", ptp4l.all());
    drop(ptp4l);
    // It leads, and the node follows it.
    let fake = Fake::new();
    let ptp4l = Ptp4l::start(fake.machine.0.path(), 100, 246, false);
    let found = fake.whole(&["--sync", "mbs"]);
    assert_eq!(ptp4l.all(), [100, 255, 100, 255, 100]);
    assert!(line(&found, "RT-MBS-SLAVE").ends_with("; ptp4l follows by priority1 255"));
    assert!(!line(&found, "RT-MBS-MASTER").is_empty());
    assert_eq!(line(&found, "RT-SMS-SLAVE"), "");
    drop(ptp4l);
    // It may not lead at all.
    let fake = Fake::new();
    let ptp4l = Ptp4l::start(fake.machine.0.path(), 248, 246, true);
    let why = why(&fake.whole(&["--sync", "mbs"]), "CPUSET-MBS-MASTER");
    assert!(why.contains("ptp4l may not lead: it has slaveOnly 1 or gmCapable 0"), "{why}");
    assert_eq!(ptp4l.all(), [248]);
}

#[test]
fn what_keeps_a_machine_from_being_set_up_is_said_and_nothing_is_changed() {
    let fake = Fake::new();
    let refused = |more: &[&str], code: i32, words: &str| {
        let output = fake.campaign("20", more).output().expect("onbeat");
        assert_eq!(output.status.code(), Some(code), "{}", said(&output));
        assert!(said(&output).contains(words), "{words}: {}", said(&output));
    };
    let cannot = |more: &[&str], words: &str| {
        let campaign = fake.whole(more);
        assert_eq!(shape(&campaign), wanted(false), "{words}");
        let why = why(&campaign, "TUNED-SMS-SLAVE");
        assert!(why.contains(words), "{words}: {why}");
        assert_eq!(fake.reboots(), 0);
        assert!(!fake.machine.is_tuned(), "{words}");
    };
    fake.machine.tune(&["apply", "--profile", "none"], 0);
    refused(&[], 5, "settings of an earlier tune are in force: `onbeat tune undo` first");
    fake.machine.tune(&["undo"], 0);
    let mut command = campaign(fake.out.path(), "20");
    let output = command.args(["--apply", "--cores", "7"]).arg("--tune-root");
    let output = output.arg(fake.machine.0.path()).stderr(Stdio::piped()).output().expect("onbeat");
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("there are no processors 7: this machine has 0-3"));
    let output = campaign(fake.out.path(), "20").arg("--reboot").stderr(Stdio::piped()).output();
    assert_eq!(output.expect("onbeat").status.code(), Some(2), "--reboot is for --apply");
    cannot(
        &[],
        "`onbeat tune apply --profile tuned-like --cores 2-3 --write-boot`, `update-grub`, \
         `reboot`, then this command again",
    );
    fake.is_as_before("nothing is asked of a boot");
    // A boot line of somebody else's stays.
    fake.machine.write(LINE, "MINE=1\n");
    cannot(&["--reboot"], "another program's is there");
    assert_eq!(fake.machine.read(LINE), "MINE=1");
    std::fs::remove_file(fake.machine.0.path().join(LINE)).expect("removed");
    fake.is_as_before("a boot line of another program");
    let update = fake.machine.0.path().join("usr/sbin/update-grub");
    let text = std::fs::read(&update).expect("a script");
    executable(&update, "#!/bin/sh\necho no space left >&2\nexit 1\n");
    let output = fake.campaign("20", &["--reboot"]).output().expect("onbeat");
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(why(&fake.found(), "TUNED-SMS-SLAVE").contains("no space left"));
    std::fs::remove_file(&update).expect("removed");
    cannot(&["--reboot"], "--reboot needs update-grub");
    executable(&update, text);
    fake.is_as_before("no boot loader");
    std::fs::remove_dir_all(fake.machine.0.path().join("run/systemd")).expect("removed");
    cannot(&["--reboot"], "--reboot needs systemd");
}

#[test]
fn an_error_leaves_nothing_for_a_boot() {
    let ends = |fake: &Fake, more: &[&str], code: i32, words: &str| {
        let output = fake.campaign("20", more).output().expect("onbeat");
        assert_eq!(output.status.code(), Some(code), "{}", said(&output));
        assert!(said(&output).contains(words), "{words}: {}", said(&output));
    };
    // After the boot line was written.
    let fake = Fake::new();
    std::fs::create_dir(fake.out.path().join("campaign.json")).expect("made");
    ends(&fake, &["--reboot"], 5, "campaign.json");
    fake.is_as_before("no campaign can be written");
    assert_eq!(fake.reboots(), 0);
    // After the reboot, before anything is measured.
    let first = Fake::new();
    first.whole(&["--reboot"]);
    first.boot(true);
    let back = "the boot line is as before: a reboot puts it in force";
    let fake = first.copy();
    let online = "sys/devices/system/cpu/online";
    fake.machine.write(online, "0-1\n");
    ends(&fake, &["--reboot", "--resumed"], 2, back);
    fake.machine.write(online, &fake.before[online]);
    fake.is_as_before("processors are gone");
    assert_eq!(fake.reboots(), 1, "there may be the same error after another boot");
    let fake = first.copy();
    std::fs::remove_dir_all(fake.out.path()).expect("removed");
    std::fs::write(fake.out.path(), "").expect("written");
    ends(&fake, &["--reboot", "--resumed"], 5, back);
    fake.is_as_before("the output directory is gone");
    std::fs::remove_file(fake.out.path()).expect("removed");
    // What another tune has set since stays.
    let fake = first.copy();
    fake.machine.tune(&["apply", "--profile", "none"], 0);
    ends(&fake, &["--reboot", "--resumed"], 5, back);
    for path in [UNIT, WANTS, LINE] {
        assert_eq!(fake.machine.read(path), "", "{path}");
    }
    assert_eq!(fake.machine.read(LOADER), fake.before[LOADER].trim());
    assert!(fake.machine.is_tuned());
    fake.machine.tune(&["undo"], 0);
    fake.is_as_before("another tune is over");
}

#[test]
fn a_machine_that_a_measurement_brings_down_is_not_measured_again_by_itself() {
    let fake = Fake::new();
    fake.whole(&["--reboot"]);
    fake.boot(true);
    let mut running = fake
        .campaign("10000000", &["--reboot", "--resumed"])
        .stderr(Stdio::null())
        .spawn()
        .expect("onbeat");
    until("a measurement", || is_under_way(fake.out.path(), "TUNED-SMS-SLAVE"));
    kill_process(Pid::from_child(&running), Signal::STOP).expect("stopped");
    // As a crash leaves it; the guard of this one takes back what is in force here.
    let crashed = fake.copy();
    running.kill().expect("killed");
    running.wait().expect("its end");
    fake.settles("a guard");
    crashed.boot(true);
    crashed.machine.write(BOOT_ID, "boot-after-a-crash\n");
    let found = crashed.whole(&["--reboot", "--resumed"]);
    assert_eq!(shape(&found), wanted(false));
    for id in ["TUNED-SMS-SLAVE", "TUNED-MBS-MASTER", "TUNED-MBS-SLAVE"] {
        let why = why(&found, id);
        assert!(why.contains("the machine restarted while it was measured"), "{why}");
    }
    crashed.is_as_before("a crash");
    assert_eq!(crashed.reboots(), 2, "so that the kernel is without the parameters");
    crashed.boot(true);
    assert!(!crashed.start_unit());
}

#[test]
fn a_campaign_takes_a_boot_line_over_for_its_own_processors_only() {
    for (cores, is_taken) in [("1", false), ("1-3", false), ("2-3", true)] {
        let fake = Fake::new();
        let apply = ["apply", "--profile", "tuned-like", "--cores", cores, "--write-boot"];
        fake.machine.tune(&apply, 0);
        fake.update();
        fake.boot(true);
        fake.machine.write(BOOT_ID, "boot-by-hand\n");
        let before = fake.machine.all();
        let output = fake.campaign("20", &[]).output().expect("onbeat");
        let words = match is_taken {
            true => "the boot line is as before: a reboot puts it in force",
            false => "settings of an earlier tune are in force: `onbeat tune undo` first",
        };
        assert!(said(&output).contains(words), "{cores}: {}", said(&output));
        assert_eq!(output.status.code(), Some(if is_taken { 0 } else { 5 }), "{cores}");
        if is_taken {
            assert_eq!(shape(&fake.found())[3..6], wanted(true)[3..6]);
            fake.is_as_before(cores);
        } else {
            assert_eq!(fake.machine.all(), before, "{cores}");
            // Nor does one that a unit has started.
            let output = fake.campaign("20", &["--reboot", "--resumed"]).output().expect("onbeat");
            assert_eq!(output.status.code(), Some(5), "{cores}: {}", said(&output));
            assert_eq!(fake.machine.all(), before, "{cores}");
        }
    }
}

#[test]
fn a_campaign_waits_after_its_reboot_for_the_clock_that_was_there_before() {
    let fake = Fake::new();
    let ptp4l = Ptp4l::start(fake.machine.0.path(), 248, 246, false);
    fake.whole(&["--reboot", "--sync", "mbs"]);
    drop(ptp4l);
    std::fs::remove_file(fake.machine.0.path().join("var/run/ptp4l")).expect("removed");
    assert!(fake.machine.read(UNIT).contains("\"--resumed\" \"--resumed-ptp\""));
    fake.boot(true);
    let begun = || fake.journal().0 == "campaign";
    std::thread::scope(|scope| {
        let unit = scope.spawn(|| fake.start_unit());
        until("the campaign", || begun() || unit.is_finished());
        pause(Span::from_ms(300)); // one that does not wait measures meanwhile
        let ptp4l = Ptp4l::start(fake.machine.0.path(), 248, 246, false);
        assert!(unit.join().expect("a unit"));
        assert_eq!(ptp4l.all(), [248, 245, 248]);
    });
    let why = why(&fake.found(), "TUNED-MBS-SLAVE");
    assert!(!why.contains("does not answer"), "{why}");
}
