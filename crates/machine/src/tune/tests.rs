//! Whole tunes of a fake machine, killed wherever a kill can come.

use super::*;
use onbeat_model::system::Class;
use onbeat_model::time::Span;
use onbeat_model::units::BitRate;
use onbeat_run::machine::{CpuList, Machine};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use tempfile::TempDir;

const FILES: &str = include_str!("machine.txt");
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// A fake machine in a directory of its own; in memory if it can be, since thousands of tunes
/// wait for the disk otherwise.
struct Made {
    directory: TempDir,
}

impl Made {
    fn new() -> Self {
        let memory = Path::new("/dev/shm");
        let directory =
            if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
        let made = Self { directory: directory.unwrap() };
        for file in FILES.split("== ").skip(1) {
            let (path, text) = file.split_once('\n').unwrap();
            made.write(path, text);
        }
        made
    }

    /// With control groups of version 2.
    fn with_version_2() -> Self {
        let made = Self::new();
        std::fs::remove_dir_all(made.machine().path("/sys/fs/cgroup/cpuset")).unwrap();
        made.write("/sys/fs/cgroup/cgroup.controllers", "cpuset cpu memory\n");
        made.write("/sys/fs/cgroup/cgroup.subtree_control", "cpu memory\n");
        made.write("/sys/fs/cgroup/tasks", "");
        made
    }

    fn machine(&self) -> Machine {
        Machine::below(self.directory.path())
    }

    fn edge(&self) -> Edge {
        Edge::of(self.machine(), Vec::new())
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.machine().path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn read(&self, path: &str) -> String {
        self.machine().read(path).unwrap()
    }

    /// All files but those of the journal.
    fn all(&self) -> BTreeMap<String, String> {
        fn walk(root: &Path, at: &Path, all: &mut BTreeMap<String, String>) {
            for entry in std::fs::read_dir(at).unwrap().flatten() {
                let path = entry.path();
                let name = format!("/{}", path.strip_prefix(root).unwrap().display());
                if path.is_dir() {
                    walk(root, &path, all);
                } else if !name.starts_with("/var/lib/onbeat/") {
                    all.insert(name, std::fs::read_to_string(&path).unwrap());
                }
            }
        }
        let mut all = BTreeMap::new();
        walk(self.directory.path(), self.directory.path(), &mut all);
        all
    }

    /// What is not on disk is as it is when a machine starts.
    fn reboot(&self, fresh: &BTreeMap<String, String>, boot: &str) {
        let now = self.all();
        for (path, _) in now.iter().filter(|(path, _)| !fresh.contains_key(*path)) {
            if !path.starts_with("/etc") {
                std::fs::remove_file(self.machine().path(path)).unwrap();
            }
        }
        for (path, text) in fresh.iter().filter(|(path, text)| now.get(*path) != Some(text)) {
            self.write(path, text);
        }
        for set in ["onbeat", "onbeat-everything"] {
            let _ = std::fs::remove_dir_all(
                self.machine().path(&format!("/sys/fs/cgroup/cpuset/{set}")),
            );
        }
        self.write(BOOT_ID, boot);
    }

    fn plan(&self, wish: &Requirement) -> Plan {
        let edge = self.edge();
        let mut plan =
            plan(&snapshot(&edge, wish.interface.as_deref(), &BTreeSet::new(), &[]), wish).unwrap();
        plan.settle(&edge).unwrap();
        plan
    }

    fn apply(&self, wish: &Requirement, interrupt: &mut Interrupt) -> Result<Applied, TuneError> {
        self.make(&self.plan(wish).changes, wish, interrupt)
    }

    fn make(
        &self,
        changes: &[Change],
        wish: &Requirement,
        interrupt: &mut Interrupt,
    ) -> Result<Applied, TuneError> {
        let edge = self.edge();
        let mut journal = Journal::open(&self.machine())?;
        journal.begin(&edge, wish.profile.as_str(), None, interrupt)?;
        super::apply(&edge, journal, changes, interrupt, &mut |_| ())
    }

    fn undo(&self, interrupt: &mut Interrupt) -> Result<(usize, Vec<(String, Ending)>), TuneError> {
        let mut endings = Vec::new();
        let mut tell = |event: Event<'_>| {
            if let Event::Undone(what, how) = event {
                endings.push((what.to_owned(), how));
            }
        };
        let failed =
            super::undo(&self.edge(), Journal::open(&self.machine())?, interrupt, &mut tell)?;
        Ok((failed, endings))
    }
}

fn traffic() -> Traffic {
    let class = |class: Class, pcp, mbps| Queue {
        queue: class.queue() as u8,
        pcps: BTreeSet::from([pcp]),
        idle_slope: BitRate::from_mbps(mbps),
        octets: 100,
        launches: false,
    };
    Traffic {
        rate: BitRate::from_mbps(1_000),
        classes: vec![class(Class::A, 3, 20), class(Class::B, 2, 10)],
        vlans: vec![Vlan { number: 2, pcps: BTreeSet::from([2, 3]) }],
        ..Traffic::default()
    }
}

/// Everything there is.
fn wish(profile: Profile) -> Requirement {
    let cores = if profile == Profile::None { "" } else { "2-3" };
    Requirement {
        profile,
        cores: cores.parse().unwrap(),
        interface: Some("eth0".to_owned()),
        write_boot: true,
        napi_threads: true,
        priorities: Some((40, 80)),
        traffic: Some(traffic()),
        ..Requirement::default()
    }
}

const PROFILES: [Profile; 3] = [Profile::None, Profile::Cpuset, Profile::TunedLike];
const MACHINES: [fn() -> Made; 2] = [Made::new, Made::with_version_2];

#[test]
fn a_tune_makes_all_settings_and_undo_takes_them_all_back() {
    for profile in PROFILES {
        for make in MACHINES {
            let made = make();
            let before = made.all();
            let applied = made.apply(&wish(profile), &mut Interrupt::never()).unwrap();
            assert!(applied.made > 10, "{profile:?} {applied:?}");
            assert_eq!(applied.refused, usize::from(profile != Profile::None));
            let records = read(&made.machine()).unwrap();
            let all = verify(&made.edge(), &records).unwrap();
            assert_eq!(all.len(), applied.made);
            assert!(all.iter().all(|one| one.state == State::InForce), "{all:?}");
            assert!(made.plan(&wish(profile)).changes.len() <= 1, "only what is refused is left");
            let (failed, endings) = made.undo(&mut Interrupt::never()).unwrap();
            assert_eq!(failed, 0);
            assert!(endings.iter().all(|(_, how)| *how == Ending::Restored), "{endings:?}");
            assert_eq!(made.all(), before);
            assert!(read(&made.machine()).unwrap().is_empty());
        }
    }
}

#[test]
fn the_settings_are_those_of_the_profile() {
    let made = Made::new();
    made.apply(&wish(Profile::Cpuset), &mut Interrupt::never()).unwrap();
    for (path, text) in [
        ("/proc/irq/24/smp_affinity_list", "0-1"),
        ("/proc/irq/25/smp_affinity_list", "0-1"),
        ("/proc/irq/26/smp_affinity_list", "0-3"), // refuses
        ("/proc/irq/default_smp_affinity", "3"),
        ("/sys/devices/virtual/workqueue/cpumask", "3"),
        ("/sys/devices/system/cpu/cpufreq/policy0/scaling_governor", "powersave"),
        ("/sys/devices/system/cpu/cpufreq/policy2/scaling_governor", "performance"),
        ("/proc/sys/kernel/sched_rt_runtime_us", "950000"), // never switched off
        ("/proc/sys/vm/stat_interval", "10"),
        ("/sys/class/net/eth0/threaded", "1"),
        ("/sys/fs/cgroup/cpuset/onbeat/cpuset.cpus", "2-3"),
        ("/sys/fs/cgroup/cpuset/onbeat-everything/cpuset.cpus", "0-1"),
        ("/sys/fs/cgroup/cpuset/onbeat-everything/tasks", "1\n2\n50\n51\n52\n700"),
        ("/sys/fs/cgroup/cpuset/tasks", "15"), // stays on its processor
        ("/sys/fs/cgroup/cpuset/cpuset.sched_load_balance", "0"),
        ("/pretended/held", "0"),
        ("/pretended/qdiscs-eth0", "mqprio 8b0:,cbs 8b1:,cbs 8b2:"),
        ("/pretended/vlan-eth0.2", "vlan"),
    ] {
        assert_eq!(made.read(path), text, "{path}");
    }
    let coalescing = "rx-usecs 0 rx-frames 0 tx-usecs 0 tx-frames 1 adaptive-rx 0 adaptive-tx 0";
    assert_eq!(made.read("/pretended/coalescing-eth0"), coalescing);
    // Threads that bring messages in go before the tasks, others after them.
    for (task, end) in [(50, "81 1"), (51, "81 1"), (52, "39 1")] {
        let stat = made.read(&format!("/proc/{task}/stat"));
        let fields: Vec<_> = stat.split(' ').collect();
        assert_eq!(fields[39..41].join(" "), end, "{task}");
    }
    let made = Made::with_version_2();
    made.apply(&wish(Profile::Cpuset), &mut Interrupt::never()).unwrap();
    assert_eq!(made.read("/sys/fs/cgroup/onbeat/cpuset.cpus.partition"), "isolated");
    assert_eq!(made.read("/sys/fs/cgroup/cgroup.subtree_control"), "cpu cpuset memory");
    let made = Made::new();
    made.apply(&wish(Profile::TunedLike), &mut Interrupt::never()).unwrap();
    let boot = made.read("/etc/default/grub.d/onbeat.cfg");
    let parameters = "threadirqs irqaffinity=0-1 isolcpus=managed_irq,domain,2-3 nohz_full=2-3 \
                      rcu_nocbs=2-3 nosoftlockup\"";
    assert!(boot.ends_with(parameters), "{boot}");
    assert!(!made.machine().has("/sys/fs/cgroup/cpuset/onbeat"));
}

#[test]
fn a_tune_that_is_killed_at_any_step_is_undone_as_a_whole() {
    for make in MACHINES {
        let (made, wish) = (make(), wish(Profile::Cpuset));
        let (before, changes) = (made.all(), made.plan(&wish).changes);
        let mut steps = 0;
        loop {
            steps += 1;
            let mut interrupt = Interrupt::after(steps);
            let result = made.make(&changes, &wish, &mut interrupt);
            if !interrupt.is_over() {
                assert!(result.is_ok());
                break;
            }
            assert!(result.is_err_and(|error| error.is_interruption()));
            let (failed, _) = made.undo(&mut Interrupt::never()).unwrap();
            assert_eq!((failed, &made.all()), (0, &before), "killed at step {steps}");
        }
        assert!(steps > 150, "{steps}: each change has several");
    }
}

#[test]
fn an_undo_that_is_killed_at_any_step_is_finished_by_the_next() {
    for make in MACHINES {
        let (made, wish) = (make(), wish(Profile::Cpuset));
        let (before, changes) = (made.all(), made.plan(&wish).changes);
        let mut steps = 0;
        loop {
            steps += 1;
            made.make(&changes, &wish, &mut Interrupt::never()).unwrap();
            let mut interrupt = Interrupt::after(steps);
            let result = made.undo(&mut interrupt);
            if !interrupt.is_over() {
                assert!(result.is_ok());
                break;
            }
            assert!(result.is_err_and(|error| error.is_interruption()));
            let (failed, _) = made.undo(&mut Interrupt::never()).unwrap();
            assert_eq!((failed, &made.all()), (0, &before), "killed at step {steps}");
        }
        assert!(steps > 100, "{steps}");
    }
}

#[test]
fn after_a_reboot_undo_takes_back_what_is_on_disk_and_touches_nothing_else() {
    let (made, wish) = (Made::new(), wish(Profile::Cpuset));
    let (before, changes) = (made.all(), made.plan(&wish).changes);
    let mut fresh = before.clone();
    fresh.insert(BOOT_ID.to_owned(), "another-boot".to_owned());
    // What the tune sets may be so by itself after the reboot: it is not ours.
    fresh.insert("/proc/sys/vm/stat_interval".to_owned(), "10\n".to_owned());
    let mut steps = 0;
    loop {
        steps += 1;
        let mut interrupt = Interrupt::after(steps);
        let done = made.make(&changes, &wish, &mut interrupt).is_ok();
        assert_ne!(done, interrupt.is_over());
        made.reboot(&fresh, "another-boot");
        let (failed, endings) = made.undo(&mut Interrupt::never()).unwrap();
        assert_eq!((failed, &made.all()), (0, &fresh), "killed at step {steps}");
        let restored = endings.iter().filter(|(_, how)| *how != Ending::Gone).count();
        assert!(restored <= 1, "{endings:?}");
        if done {
            break;
        }
        made.reboot(&before, before[BOOT_ID].as_str());
    }
    assert!(steps > 150, "{steps}");
}

#[test]
fn after_a_reboot_a_machine_can_be_tuned_again_and_undone_as_a_whole() {
    let made = Made::new();
    let mut fresh = made.all();
    fresh.insert(BOOT_ID.to_owned(), "another-boot".to_owned());
    made.apply(&wish(Profile::Cpuset), &mut Interrupt::never()).unwrap();
    made.reboot(&fresh, "another-boot");
    let all = verify(&made.edge(), &read(&made.machine()).unwrap()).unwrap();
    let gone = all.iter().filter(|one| one.state == State::Gone).count();
    assert_eq!(gone, all.len() - 1, "the boot parameters are in force");
    made.apply(&wish(Profile::Cpuset), &mut Interrupt::never()).unwrap();
    assert!(made.machine().has("/etc/default/grub.d/onbeat.cfg"));
    assert_eq!(made.undo(&mut Interrupt::never()).unwrap().0, 0);
    assert_eq!(made.all(), fresh);
}

#[test]
fn undo_leaves_what_others_changed_since_and_says_so() {
    let made = Made::new();
    let mut before = made.all();
    made.apply(&wish(Profile::Cpuset), &mut Interrupt::never()).unwrap();
    let theirs = [
        ("/proc/irq/24/smp_affinity_list", "1\n"),
        ("/proc/sys/vm/stat_interval", "7\n"),
        ("/etc/default/grub.d/onbeat.cfg", "MINE=1\n"),
        ("/pretended/qdiscs-eth0", "fq 1:\n"),
    ];
    for (path, text) in theirs {
        made.write(path, text);
        before.insert(path.to_owned(), text.to_owned());
    }
    let (failed, endings) = made.undo(&mut Interrupt::never()).unwrap();
    let left = endings.iter().filter(|(_, how)| *how == Ending::Left).count();
    assert_eq!((failed, left), (0, theirs.len()), "{endings:?}");
    assert_eq!(made.all(), before);
}

#[test]
fn tasks_that_were_started_in_the_sets_go_on_in_the_set_above() {
    let made = Made::new();
    made.apply(&wish(Profile::Cpuset), &mut Interrupt::never()).unwrap();
    let stat = made.read("/proc/700/stat").replace("700 (logger)", "800 (arm)");
    made.write("/proc/800/stat", &stat);
    made.write("/sys/fs/cgroup/cpuset/onbeat/tasks", "800\n");
    assert_eq!(made.undo(&mut Interrupt::never()).unwrap().0, 0);
    assert!(made.read("/sys/fs/cgroup/cpuset/tasks").ends_with("700\n800"));
    assert!(!made.machine().has("/sys/fs/cgroup/cpuset/onbeat"));
}

#[test]
fn a_change_that_fails_takes_all_before_it_back() {
    let made = Made::new();
    made.write("/pretended/refuses", "/sys/fs/cgroup/cpuset/cpuset.sched_load_balance\n");
    let before = made.all();
    let error = made.apply(&wish(Profile::Cpuset), &mut Interrupt::never()).unwrap_err();
    assert!(matches!(error, TuneError::Change { undone: true, .. }), "{error}");
    assert!(error.to_string().contains("cpuset.sched_load_balance"), "{error}");
    assert!(error.to_string().ends_with("nothing is changed"), "{error}");
    assert_eq!(made.all(), before);
}

#[test]
fn a_machine_is_tuned_once_at_a_time() {
    let made = Made::new();
    made.apply(&wish(Profile::None), &mut Interrupt::never()).unwrap();
    let again = made.apply(&wish(Profile::None), &mut Interrupt::never()).unwrap_err();
    assert!(matches!(again, TuneError::Tuned(n) if n > 5), "{again}");
    let held = Journal::open(&made.machine()).unwrap();
    let other = made.undo(&mut Interrupt::never()).unwrap_err();
    assert!(matches!(other, TuneError::Journal(JournalError::Locked(_))));
    drop(held);
    assert_eq!(made.undo(&mut Interrupt::never()).unwrap().0, 0);
}

#[test]
fn what_drifts_is_seen_and_made_again_and_undo_still_knows_the_first_value() {
    let made = Made::new();
    let mut before = made.all();
    let wish = wish(Profile::Cpuset);
    made.apply(&wish, &mut Interrupt::never()).unwrap();
    // The interface came up: its driver spread the interrupts again, and has one more.
    made.write("/proc/irq/24/smp_affinity_list", "0-3\n");
    made.write("/proc/irq/28/smp_affinity_list", "3\n");
    made.write("/proc/irq/25/effective_affinity_list", "3\n");
    let states = verify(&made.edge(), &read(&made.machine()).unwrap()).unwrap();
    let of = |end: &str| {
        let found = states.iter().find(|one| one.change.target.place().contains(end)).unwrap();
        found.state.clone()
    };
    assert_eq!(of("irq/24/"), State::Drifted);
    assert_eq!(of("irq/25/"), State::Ineffective("3".to_owned()));
    let mut told = Vec::new();
    let mut failed = BTreeSet::new();
    for _ in 0..2 {
        let mut tell = |event: Event<'_>| told.push(format!("{event:?}"));
        assert!(watch_once(&made.edge(), &wish, &mut failed, &mut tell).unwrap());
    }
    let expected = ["Again(\"interrupt 24 (eth0-rx-0) on 0-1\")", "Made(\"interrupt 28 on 0-1\")"];
    assert_eq!(told, expected, "once each");
    assert_eq!(made.read("/proc/irq/24/smp_affinity_list"), "0-1");
    assert_eq!(made.undo(&mut Interrupt::never()).unwrap().0, 0);
    before.insert("/proc/irq/28/smp_affinity_list".to_owned(), "3\n".to_owned());
    before.insert("/proc/irq/25/effective_affinity_list".to_owned(), "3\n".to_owned());
    assert_eq!(made.all(), before);
    assert!(!watch_once(&made.edge(), &wish, &mut failed, &mut |_| ()).unwrap(), "it is over");
}

#[test]
fn a_tune_that_nobody_confirms_undoes_itself_and_one_that_is_confirmed_stays() {
    for confirmed in [false, true] {
        let made = Made::new();
        let before = made.all();
        let edge = made.edge();
        let wish = wish(Profile::Cpuset);
        let changes = made.plan(&wish).changes;
        let mut journal = Journal::open(&made.machine()).unwrap();
        let within = Some(Span::from_ms(1));
        let started = journal.begin(&edge, "cpuset", within, &mut Interrupt::never()).unwrap();
        // Killed in the middle: the timer works without the one that set it.
        let _ = super::apply(&edge, journal, &changes, &mut Interrupt::after(40), &mut |_| ());
        if confirmed {
            Journal::open(&made.machine()).unwrap().confirm().unwrap();
        }
        assert!(
            !guard(&edge, started + 1, None, &mut |_| ()).unwrap(),
            "another tune is not its business"
        );
        assert_eq!(guard(&edge, started, None, &mut |_| ()).unwrap(), !confirmed);
        assert_eq!(made.all() == before, !confirmed);
        assert_eq!(made.undo(&mut Interrupt::never()).unwrap().0, 0);
        assert_eq!(made.all(), before);
    }
}

#[test]
fn what_cannot_be_undone_at_first_is_tried_again_until_it_is() {
    let made = Made::new();
    let before = made.all();
    let edge = made.edge();
    let changes = made.plan(&wish(Profile::Cpuset)).changes;
    let mut journal = Journal::open(&made.machine()).unwrap();
    let within = Some(Span::from_ms(1));
    let started = journal.begin(&edge, "cpuset", within, &mut Interrupt::never()).unwrap();
    super::apply(&edge, journal, &changes, &mut Interrupt::never(), &mut |_| ()).unwrap();
    let refuses = made.read("/pretended/refuses");
    made.write("/pretended/refuses", "/proc/sys/vm/stat_interval\n");
    let mut told = Vec::new();
    let mut tell = |text: &str| {
        told.push(text.to_owned());
        // Whatever was in the way has gone.
        made.write("/pretended/refuses", &format!("{refuses}\n"));
    };
    assert!(guard(&edge, started, None, &mut tell).unwrap());
    assert_eq!(told, ["settings that could not be taken back yet: 1; tried again"]);
    assert_eq!(made.all(), before);
}

#[test]
fn a_journal_that_others_may_have_written_is_not_acted_on() {
    use std::os::unix::fs::PermissionsExt;
    let made = Made::new();
    made.apply(&wish(Profile::Cpuset), &mut Interrupt::never()).unwrap();
    let tuned = made.all();
    let journal = made.machine().path("/var/lib/onbeat/tune.journal");
    let set_mode = |mode| {
        std::fs::set_permissions(&journal, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    set_mode(0o622);
    let error = made.undo(&mut Interrupt::never()).unwrap_err();
    assert!(matches!(error, TuneError::Journal(JournalError::Untrusted { .. })), "{error}");
    assert!(read(&made.machine()).is_err());
    assert_eq!(made.all(), tuned, "nothing was done");
    set_mode(0o600);
    assert_eq!(made.undo(&mut Interrupt::never()).unwrap().0, 0);
}

#[test]
fn boot_parameters_that_somebody_else_wrote_stay() {
    let made = Made::new();
    made.write("/etc/default/grub.d/onbeat.cfg", "MINE=1\n");
    let before = made.all();
    let error = made.apply(&wish(Profile::Cpuset), &mut Interrupt::never()).unwrap_err();
    assert!(error.to_string().contains("another program's is there"), "{error}");
    assert_eq!(made.all(), before);
}

#[test]
fn wishes_that_endanger_the_machine_are_refused() {
    let made = Made::new();
    let errors = |wish: &Requirement| {
        let snapshot = snapshot(&made.edge(), wish.interface.as_deref(), &BTreeSet::new(), &[]);
        plan(&snapshot, wish).err().unwrap_or_default()
    };
    let cores = |text: &str| text.parse::<CpuList>().unwrap();
    let isolating = |text: &str| Requirement { cores: cores(text), ..wish(Profile::Cpuset) };
    assert_eq!(errors(&isolating("1-3")), []);
    assert_eq!(errors(&isolating("0-3")), [WishError::NoneLeft(cores("0-3"))]);
    assert_eq!(errors(&isolating("")), [WishError::NoCores("cpuset")]);
    let none = [WishError::NoSuchCores(cores("4-5"), cores("0-3"))];
    assert_eq!(errors(&isolating("3-5")), none);
    let of = |name: &str, force| Requirement {
        interface: Some(name.to_owned()),
        force,
        ..wish(Profile::Cpuset)
    };
    let carries = |name: &str| WishError::Carries(name.to_owned(), "a default route");
    assert_eq!(errors(&of("eth1", false)), [carries("eth1")]);
    assert_eq!(errors(&of("eth1", true)), []);
    assert_eq!(errors(&of("eth7", true)), [WishError::NoInterface("eth7".to_owned())]);
    assert_eq!(errors(&of("../net/eth0", true)).len(), 1);
    let all = Requirement { cores: cores("9"), profile: Profile::None, ..of("eth7", false) };
    assert_eq!(errors(&all).len(), 3, "all that is wrong at once");
    // What is made of it carries something.
    assert_eq!(errors(&of("eth0", false)), []);
    made.write("/sys/class/net/eth0/upper_bond0/ifindex", "7\n");
    made.write("/sys/class/net/bond0/upper_eth1/ifindex", "3\n");
    assert_eq!(errors(&of("eth0", false)), [carries("eth0")]);
}

#[test]
fn what_is_as_wanted_is_no_change_and_what_cannot_be_is_said() {
    let made = Made::new();
    made.write("/pretended/qdiscs-eth0", "fq 1:\n");
    made.write(
        "/proc/900/stat",
        &made.read("/proc/1/stat").replace("1 (init)", "900 (irqbalance)"),
    );
    std::fs::remove_file(made.machine().path("/dev/cpu_dma_latency")).unwrap();
    let plan = made.plan(&wish(Profile::Cpuset));
    let places: Vec<_> = plan.changes.iter().map(|change| change.target.place()).collect();
    assert!(!places.iter().any(|place| place.contains("numa") || place.contains("irq/27/")));
    assert!(!places.iter().any(|place| place.contains("queueing")), "{places:?}");
    let notes = plan.notes.join("\n");
    for words in
        ["irqbalance runs", "fq 1:", "throttling stays on (950000", "0,2 and 1,3 share a core"]
    {
        assert!(notes.contains(words), "{words}: {notes}");
    }
    assert!(notes.contains("no /dev/cpu_dma_latency"), "{notes}");
}
