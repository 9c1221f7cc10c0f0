//! What runs set on machines: profiles of `tune`, on the files of fake ones.

use super::*;
use crate::common::machine::{self, BOOT_ID, LINE};

/// What a scenario sets, and which CPUs there are for it.
const SCENARIOS: &str = "[[scenario]]\nname = \"tuned\"\ntune = \"cpuset\"\n\
                         program = [{ name = \"right\", priority = 7 }]\n\
                         [[scenario]]\nname = \"reboot\"\ntune = \"tuned-like\"\n";
/// Set on each machine: the interrupt is bound to 0-3 before.
const INTERRUPT: &str = "proc/irq/24/smp_affinity_list";
/// The last thing that is set.
const LAST: &str = "sys/fs/cgroup/cpuset/cpuset.sched_load_balance";

/// Two hosts with scenarios, and the fake files of their machines.
struct Tuned {
    machines: Machines,
    system: TestSystem,
    files: [machine::Machine; 2],
}

impl Tuned {
    fn new(name: &str) -> Option<Self> {
        let machines = Machines::new(name)?;
        let system = TestSystem::new(&two_hosts(&(programs("talk", "listen") + SCENARIOS)));
        system.program("counts.c", "left").program("counts.c", "right");
        let this =
            Self { machines, system, files: [machine::Machine::new(), machine::Machine::new()] };
        this.write("tune_cores = [2, 3]\n");
        Some(this)
    }

    /// The file of machines, with more of each.
    fn write(&self, more: &str) {
        self.machines.slow_shells(&self.system, "");
        let file = self.system.path().join("machines.toml");
        let text = std::fs::read_to_string(&file).expect("the file");
        let mut tables = text.split("[[machine]]");
        let mut text = tables.next().expect("the head").to_owned();
        for (table, files) in tables.zip(&self.files) {
            let root = files.0.path().display();
            text += &format!("[[machine]]{table}tune_root = \"{root}\"\n{more}");
        }
        std::fs::write(&file, text).expect("written");
    }

    fn before(&self) -> [BTreeMap<String, String>; 2] {
        self.files.each_ref().map(machine::Machine::all)
    }

    /// Waits until nothing is tuned any more, and all is as before.
    fn are_as_before(&self, before: &[BTreeMap<String, String>; 2], what: &str) {
        self.machines.are_clean(what);
        let until = MonoTime::now() + LONG;
        while self.files.iter().any(machine::Machine::is_tuned_for_now) {
            assert!(MonoTime::now() < until, "{what}: {:?} are tuned", self.files[0].all());
            pause(Span::from_ms(5));
        }
        assert_eq!(&self.before(), before, "{what}");
    }

    /// What is said of a run that is refused; nothing is left of it.
    fn refused(&self, scenario: &str, wanted: &[&str]) {
        let before = self.before();
        let output = self.machines.run(&self.system, &["--scenario", scenario], 5);
        let said = String::from_utf8_lossy(&output.stderr);
        for wanted in wanted {
            assert!(said.contains(wanted), "{wanted}: {said}");
        }
        assert!(!self.system.path().join("out").exists(), "nothing was run");
        self.are_as_before(&before, wanted[0]);
    }
}

#[test]
fn a_profile_of_a_scenario_is_in_force_for_its_run_and_then_all_is_as_before() {
    let Some(tuned) = Tuned::new("t") else { return };
    let before = tuned.before();
    let mut command =
        tuned.machines.command(&tuned.system, "1s", &["--scenario", "tuned", "--json"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("onbeat");
    let right = tuned.machines.process("b", "build/right");
    let stat = std::fs::read_to_string(format!("/proc/{right}/stat")).expect("it runs");
    let is = tuned.files.each_ref().map(|files| [files.read(INTERRUPT), files.read(LAST)]);
    let output = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert_eq!(is, [["0-1", "0"]; 2], "programs run, and all is set: {said}");
    let priority = stat.split(' ').nth(39).expect("rt_priority of proc(5)");
    assert!(priority == "7" || said.contains("the system did not grant it"), "{stat}: {said}");
    tuned.are_as_before(&before, "a run");
    let results: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    for (at, host) in ["a", "b"].into_iter().enumerate() {
        let what = results["runs"][0]["network"]["parts"][at]["tuned"].as_str().expect("a text");
        assert!(what.starts_with("cpuset on processors 2-3: "), "{what}");
        assert!(what.contains("interrupt 24 (eth0-rx-0) on 0-1"), "{what}");
        assert!(what.contains("1 refused by the kernel: interrupt 26"), "{what}");
        assert!(said.contains(&format!("{host}: tuned: {what}")), "{said}");
        // Threads of interrupts are above the priority that a program has in this scenario.
        assert_eq!(what.contains("irq/24-eth0-rx goes before"), host == "b", "{what}");
        let page = std::fs::read_to_string(tuned.system.path().join("out/report.html"));
        let page = page.expect("a page").replace("&#x2f;", "/").replace("&#x27;", "'");
        assert!(page.contains(&format!("{host}: {what}")), "it is in the report: {what}");
    }
    // The report is made again from the records.
    assert_eq!(common::results(&["report", "."], tuned.system.path(), 0), results);
    let output = tuned.machines.run(&tuned.system, &["--json"], 0);
    let results: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(results["runs"][0]["network"]["parts"][0].get("tuned"), None, "nothing is set");
    assert_eq!(tuned.before(), before);
}

/// The same profile as the scenario `reboot` has, with what it needs of a boot.
const WITH_BOOT_LINE: [&str; 6] =
    ["apply", "--profile", "tuned-like", "--cores", "2-3", "--write-boot"];

#[test]
fn a_profile_that_needs_a_boot_line_is_set_after_the_boot_and_the_line_stays() {
    let Some(tuned) = Tuned::new("b") else { return };
    let before = tuned.before();
    tuned.refused("reboot", &["(namespace", "tuned-like needs a reboot", "rcu_nocbs=2-3"]);
    tuned.files.iter().for_each(|files| _ = files.tune(&WITH_BOOT_LINE, 0));
    tuned.refused("reboot", &["the boot line is written: `update-grub`, `reboot`, then"]);
    for (files, before) in tuned.files.iter().zip(&before) {
        files.boot(before, &files.read(LINE), "the next boot");
    }
    let booted = tuned.before();
    let output = tuned.machines.run(&tuned.system, &["--all-scenarios", "--json"], 0);
    let results: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    for (run, profile) in [(0, "cpuset"), (1, "tuned-like")] {
        for part in results["runs"][run]["network"]["parts"].as_array().expect("parts") {
            let what = part["tuned"].as_str().expect("a text");
            assert!(what.starts_with(&format!("{profile} on processors 2-3: ")), "{what}");
            assert!(what.contains("interrupt 24 (eth0-rx-0) on 0-1"), "{what}");
        }
    }
    tuned.are_as_before(&booted, "runs after the boot");
    // What is left when one is killed is taken back, and the line still stays.
    let mut command = tuned.machines.command(&tuned.system, "30s", &["--scenario", "reboot"]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().expect("onbeat");
    tuned.machines.process("a", "build/left");
    assert_eq!(tuned.files[0].read(INTERRUPT), "0-1");
    kill(tuned.machines.process("a", "onbeat part"));
    child.wait().expect("it ends");
    tuned.are_as_before(&booted, "a part killed after the boot");
    for (files, before) in tuned.files.iter().zip(&before) {
        let status = files.json(&["status"], 0);
        let settings = status["settings"].as_array().expect("settings");
        let states: Vec<_> = settings.iter().map(|one| (&one["target"], &one["state"])).collect();
        assert!(states.contains(&(&format!("/{LINE}").into(), &"in-force".into())), "{status}");
        let lasts = |state: &Value| state != "gone";
        assert_eq!(states.iter().filter(|(_, state)| lasts(state)).count(), 1, "{status}");
        files.tune(&["undo"], 0);
        let mut all = files.all();
        for path in [BOOT_ID, "proc/cmdline"] {
            all.insert(path.to_owned(), before[path].clone());
        }
        assert_eq!(&all, before, "it is the user's to take back");
    }
}
