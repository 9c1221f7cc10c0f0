//! Settings of the kernel that runs this, changed and taken back: only such as no other program
//! uses.
#![allow(unsafe_code)]

use onbeat_machine::tune::{
    Bound, Change, Disciplines, Edge, Ending, Event, Form, Interrupt, Journal, Shaper, Target,
    Value, apply, snapshot, undo,
};
use onbeat_run::machine::{CpuList, Machine};
use onbeat_testkit::{Need, not_run};
use rustix::thread::UnshareFlags;
use std::collections::BTreeSet;
use std::process::{Child, Command};
use tempfile::TempDir;

const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
const SETS: &str = "/sys/fs/cgroup/cpuset";

/// This machine, with a journal of the test's own.
struct Here {
    edge: Edge,
    journal: TempDir,
}

impl Here {
    /// None without the superuser's rights, which is said.
    fn new() -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            not_run(Need::Superuser, "only the superuser may change settings");
            return None;
        }
        let journal = tempfile::tempdir().expect("a directory");
        let boot = Machine::this().read(BOOT_ID).expect("the boot identifier");
        let path = Machine::below(journal.path()).path(BOOT_ID);
        std::fs::create_dir_all(path.parent().expect("above")).expect("made");
        std::fs::write(path, boot).expect("written");
        Some(Self { edge: Edge::of(Machine::this(), Vec::new()), journal })
    }

    fn open(&self) -> Journal {
        Journal::open(&Machine::below(self.journal.path())).expect("a journal")
    }

    fn get(&self, target: &Target) -> Value {
        self.edge.get(target).expect("it can be read")
    }

    /// Whether it came to the end.
    fn apply(&self, changes: &[Change], interrupt: &mut Interrupt) -> bool {
        let mut journal = self.open();
        let begun = journal.begin(&self.edge, "test", None, interrupt);
        let made = begun.and_then(|_| {
            let tell = &mut |event: Event<'_>| println!("{event:?}");
            apply(&self.edge, journal, changes, interrupt, tell)
        });
        assert!(made.as_ref().is_ok() || made.as_ref().is_err_and(|e| e.is_interruption()));
        made.is_ok()
    }

    fn undo(&self) -> Vec<Ending> {
        let mut endings = Vec::new();
        let mut tell = |event: Event<'_>| match event {
            Event::Undone(_, how) => endings.push(how),
            event => panic!("{event:?}"),
        };
        let failed = undo(&self.edge, self.open(), &mut Interrupt::never(), &mut tell);
        assert_eq!(failed.expect("undone"), 0);
        endings
    }
}

fn change(what: &str, target: Target, new: &str) -> Change {
    let (what, new) = (what.to_owned(), Some(new.to_owned()));
    Change { what, target, old: None, new, may_refuse: false, reboot: false }
}

/// A program that does nothing, and ends with the test.
struct Idle(Child);

impl Drop for Idle {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// An empty set, removed at the end.
struct Set(String);

impl Drop for Set {
    fn drop(&mut self) {
        for part in ["/onbeat", "/onbeat-everything", ""] {
            let _ = std::fs::remove_dir(format!("{}{part}", self.0));
        }
    }
}

fn status(pid: u32, key: &str) -> String {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = text.lines().find_map(|line| line.strip_prefix(key)).expect("the key");
    line.trim().to_owned()
}

fn set_of(pid: u32) -> String {
    let text = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).expect("it runs");
    let line = text.lines().find_map(|line| line.split_once(":cpuset:")).expect("a set");
    line.1.to_owned()
}

#[test]
fn sets_of_processors_are_made_at_every_kill_and_taken_back() {
    let Some(here) = Here::new() else { return };
    let machine = Machine::this();
    let (Ok(memory), Ok(cpus)) = (
        machine.read(&format!("{SETS}/cpuset.mems")),
        machine.cpus(&format!("{SETS}/cpuset.cpus")),
    ) else {
        not_run(Need::Machine, "no cpuset of cgroup version 1 is mounted");
        return;
    };
    let upper = Set(format!("{SETS}/onbeat-test-{}", std::process::id()));
    std::fs::create_dir(&upper.0).expect("a set");
    for (file, text) in [("cpuset.cpus", cpus.to_string()), ("cpuset.mems", memory.clone())] {
        std::fs::write(format!("{}/{file}", upper.0), text).expect("set");
    }
    let idle = Idle(Command::new("sleep").arg("600").spawn().expect("sleep"));
    let pid = idle.0.id();
    std::fs::write(format!("{}/tasks", upper.0), pid.to_string()).expect("moved");
    let one = CpuList(cpus.0.iter().copied().take(1).collect());
    here.edge.kernel().set_affinity(pid, &one).expect("bound");
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("stat");
    let start = stat.rsplit(") ").next().and_then(|rest| rest.split(' ').nth(19)).expect("start");
    let bound = vec![Bound { task: pid, start: start.parse().unwrap(), cpus: one.to_string() }];
    let settings = |balance| {
        format!("cpuset.cpus={cpus}\ncpuset.mems={memory}\ncpuset.sched_load_balance={balance}")
    };
    let group = |name: &str| Target::Group { path: format!("{}/{name}", upper.0) };
    let everything = format!("{}/onbeat-everything", upper.0);
    let changes = [
        change("isolated", group("onbeat"), &settings(0)),
        change("everything", group("onbeat-everything"), &settings(1)),
        change("tasks", Target::Tasks { from: upper.0.clone(), to: everything, bound }, "moved"),
        change("balance", Target::text(format!("{}/cpuset.sched_load_balance", upper.0)), "0"),
    ];
    let snapshot = || {
        let values: Vec<Value> = changes.iter().map(|change| here.get(&change.target)).collect();
        (values, set_of(pid), status(pid, "Cpus_allowed_list:"))
    };
    let before = snapshot();
    assert!(before.1.contains("onbeat-test") && before.2 == one.to_string(), "{before:?}");
    for steps in 1.. {
        let done = here.apply(&changes, &mut Interrupt::after(steps));
        if done {
            assert!(set_of(pid).ends_with("/onbeat-everything"));
            assert!(changes.iter().all(|change| here.get(&change.target) == change.new));
        }
        here.undo();
        assert_eq!(snapshot(), before, "killed at step {steps}");
        if done {
            assert!(steps > 20);
            break;
        }
    }
}

#[test]
fn an_interrupt_that_nobody_uses_is_moved_and_moved_back() {
    let Some(here) = Here::new() else { return };
    let machine = Machine::this();
    let counts = machine.read("/proc/interrupts").expect("interrupts");
    let silent = |number: &String| {
        let line = counts.lines().find_map(|l| l.trim().strip_prefix(&format!("{number}:")));
        line.is_some_and(|line| {
            let mut counts = line.split_whitespace().map_while(|word| word.parse::<u64>().ok());
            counts.all(|count| count == 0)
        })
    };
    let all = || -> Vec<(String, String)> {
        let numbers = machine.names("/proc/irq").into_iter().filter(|n| n.parse::<u32>().is_ok());
        let text = |n: &String| machine.read(&format!("/proc/irq/{n}/smp_affinity_list"));
        numbers.filter_map(|number| text(&number).ok().map(|text| (number, text))).collect()
    };
    let before = all();
    let several = |text: &str| text.parse::<CpuList>().is_ok_and(|cpus| cpus.0.len() > 1);
    let Some((number, text)) = before.iter().find(|(n, text)| silent(n) && several(text)) else {
        not_run(Need::Machine, "no interrupt is silent and may go to several CPUs");
        return;
    };
    let first = text.parse::<CpuList>().unwrap().0.first().unwrap().to_string();
    let path = format!("/proc/irq/{number}/smp_affinity_list");
    let target = Target::File { path, form: Form::List };
    let mut moved = change("moved", target.clone(), &first);
    moved.may_refuse = true;
    if !here.apply(&[moved], &mut Interrupt::never()) || here.get(&target) != Some(first) {
        not_run(Need::Machine, format_args!("interrupt {number} cannot be moved"));
    }
    here.undo();
    assert_eq!(all(), before);
}

#[test]
fn the_thread_of_an_interrupt_gets_another_priority_and_its_own_again() {
    let Some(here) = Here::new() else { return };
    let threads = snapshot(&here.edge, None, &BTreeSet::new(), &[]).threads;
    let Some(thread) = threads.iter().find(|thread| thread.scheduling == "fifo:50") else {
        not_run(Need::Machine, "this kernel has no threads of interrupts");
        return;
    };
    let target = Target::Threads { prefix: thread.prefix.clone() };
    let before = here.get(&target);
    assert!(here.apply(&[change("lower", target.clone(), "fifo:49")], &mut Interrupt::never()));
    assert_eq!(here.get(&target).as_deref(), Some("fifo:49"));
    assert_eq!(here.undo(), [Ending::Restored]);
    assert_eq!(here.get(&target), before);
}

#[test]
fn queueing_disciplines_are_made_by_commands_and_removed_in_a_namespace() {
    let Some(here) = Here::new() else { return };
    // SAFETY: only the network namespace of this thread is unshared, no file descriptor.
    let unshared = unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET) };
    if unshared.is_err() || Command::new("tc").arg("-V").output().is_err() {
        not_run(Need::Namespaces, "needs namespaces and tc");
        return;
    }
    let run = |line: &str| {
        let (program, words) = line.split_once(' ').expect("words");
        let status = Command::new(program).args(words.split(' ')).status();
        assert!(status.expect("it runs").success(), "{line}");
    };
    run("ip link add name v1 numtxqueues 4 type veth peer name v2 numtxqueues 4");
    let disciplines = |shapers| Disciplines {
        map: [vec![2, 2, 1, 0], vec![2; 12]].concat(),
        queues: 4,
        shapers,
        ..Disciplines::default()
    };
    let on = |interface: &str, made: &Disciplines| {
        let target = Target::Qdiscs { interface: interface.to_owned(), made: made.clone() };
        Change { may_refuse: true, ..change("queues", target, &made.value()) }
    };
    let shaper = Shaper {
        class: 0,
        idle_slope_kbps: 20_000,
        send_slope_kbps: 980_000,
        high_octets: 31,
        low_octets: 89,
    };
    let good = on("v1", &disciplines(vec![shaper.clone()]));
    assert_eq!(here.get(&good.target), None);
    assert!(here.apply(std::slice::from_ref(&good), &mut Interrupt::never()));
    let made = here.get(&good.target);
    match &made {
        Some(_) => assert_eq!(made, good.new),
        None => println!("queueing disciplines: were not made: this kernel has no mqprio, or cbs"),
    }
    assert_eq!(here.undo(), made.map(|_| Ending::Restored).into_iter().collect::<Vec<_>>());
    assert_eq!(here.get(&good.target), None);
    // What fails halfway leaves nothing.
    let bad = on("v1", &disciplines(vec![Shaper { idle_slope_kbps: u64::MAX, ..shaper }]));
    assert!(here.apply(std::slice::from_ref(&bad), &mut Interrupt::never()));
    assert_eq!(here.get(&bad.target), None);
    assert_eq!(here.undo(), []);
    // What somebody else has made stays, and ours is removed.
    run("tc qdisc replace dev lo root handle 8b0: pfifo limit 7");
    let theirs = on("lo", &disciplines(Vec::new()));
    assert!(here.apply(std::slice::from_ref(&theirs), &mut Interrupt::never()));
    assert_eq!(here.get(&theirs.target).as_deref(), Some("pfifo 8b0:"));
    assert_eq!(here.undo(), []);
    here.edge.kernel().set_qdiscs("lo", None).expect("removed");
    assert_eq!(here.get(&theirs.target), None);
}
