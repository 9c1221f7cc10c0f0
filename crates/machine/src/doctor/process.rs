//! One running process: whether it runs as real-time programs should.

use super::evaluation::Evaluation;
use super::facts::Fact;
use super::finding::{Area, Check, Need, State};
use super::tasks::{self, Task};
use onbeat_run::machine::{CpuList, Machine};
use serde::{Deserialize, Serialize};

/// One running process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// Its name, at most 15 octets.
    pub name: String,
    /// Its threads.
    pub threads: Vec<Thread>,
    /// Memory that stays in memory, in KiB.
    pub locked_kib: u64,
    /// Memory that it has now, in KiB.
    pub resident_kib: u64,
}

/// One of its threads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thread {
    /// How it is scheduled.
    pub task: Task,
    /// Where it may run, as a list of processors.
    pub allowed: String,
    /// How often it gave its processor away.
    pub voluntary: u64,
    /// How often its processor was taken from it.
    pub involuntary: u64,
}

/// A figure of `/proc/PID/status`.
fn figure(status: &str, name: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let word = line.and_then(|line| line.split_whitespace().next());
    word.and_then(|word| word.parse().ok()).unwrap_or(0)
}

impl Process {
    pub(super) fn read(machine: &Machine, pid: u32) -> Fact<Self> {
        let status = match machine.read(&format!("/proc/{pid}/status")) {
            Ok(status) => status,
            Err(error) => return Fact::Unknown(format!("process {pid}: {error}")),
        };
        let of_one = |task: Task| {
            let place = format!("/proc/{pid}/task/{}/status", task.tid);
            let status = machine.read(&place).ok()?;
            let allowed = status.lines().find_map(|l| l.strip_prefix("Cpus_allowed_list:"))?;
            let allowed: CpuList = allowed.trim().parse().ok()?;
            Some(Thread {
                allowed: allowed.to_string(),
                voluntary: figure(&status, "voluntary_ctxt_switches"),
                involuntary: figure(&status, "nonvoluntary_ctxt_switches"),
                task,
            })
        };
        let name = status.lines().find_map(|line| line.strip_prefix("Name:")).unwrap_or_default();
        Fact::Known(Self {
            pid,
            name: name.trim().to_owned(),
            threads: tasks::of(machine, pid).into_iter().filter_map(of_one).collect(),
            locked_kib: figure(&status, "VmLck"),
            resident_kib: figure(&status, "VmRSS"),
        })
    }

    fn real_time(&self) -> impl Iterator<Item = &Thread> {
        self.threads.iter().filter(|thread| thread.task.is_real_time())
    }
}

static POLICY: Check = Check {
    id: "process.policy",
    area: Area::Process,
    what: "real-time threads",
    against: &[Need::Wakeup],
    why: "A thread without a real-time policy competes with all programs.",
    fix: "Give the program a priority in the description, or chrt -f -p PRIORITY PID.",
    reboot: false,
};
static AFFINITY: Check = Check {
    id: "process.affinity",
    area: Area::Process,
    what: "CPUs of its real-time threads",
    against: &[Need::Wakeup],
    why: "Interrupts and other programs delay a real-time thread that may run outside the isolated \
          CPUs.",
    fix: "taskset -apc CPUS PID, or `cores` in the description.",
    reboot: false,
};
static LOCKED: Check = Check {
    id: "process.locked",
    area: Area::Process,
    what: "locked memory",
    against: &[Need::Wakeup],
    why: "Memory that is not locked may be paged out, and is then read from disk at the next \
          access.",
    fix: "Call mlockall(MCL_CURRENT | MCL_FUTURE) before the first task starts, and touch all \
          memory.",
    reboot: false,
};
static FAULTS: Check = Check {
    id: "process.faults",
    area: Area::Process,
    what: "major page faults",
    against: &[Need::Wakeup],
    why: "Each one delayed a real-time thread until the disk had answered.",
    fix: "Lock memory, and touch all of it and of the program's code before the first task starts.",
    reboot: false,
};
static SWITCHES: Check = Check {
    id: "process.switches",
    area: Area::Process,
    what: "involuntary context switches",
    against: &[Need::Wakeup],
    why: "A thread of higher priority runs on the same CPU as the real-time thread.",
    fix: "Find it with `perf sched` or the tracer sched_switch; move it, or raise the priority.",
    reboot: false,
};

pub(super) static CHECKS: [&Check; 5] = [&POLICY, &AFFINITY, &LOCKED, &FAULTS, &SWITCHES];

/// One switch in so many may be involuntary: start-up, and migration threads.
const SWITCHES_IN: u64 = 100;

pub(super) fn evaluate(evaluation: &mut Evaluation<'_>) {
    let process = match &evaluation.facts.process {
        None => return,
        Some(Fact::Unknown(why)) => return evaluation.unknown(&POLICY, why, "running"),
        Some(Fact::Known(process)) => process,
    };
    let count = process.real_time().count();
    let state = if count > 0 { State::Ok } else { State::Blocks };
    let highest = process.real_time().map(|thread| thread.task.priority).max().unwrap_or(0);
    let value = match count {
        0 => format!("none of {}", process.threads.len()),
        n => format!("{n} of {}, priority {highest} at most", process.threads.len()),
    };
    evaluation.say(&POLICY, state, value, "one at least");
    if count == 0 {
        return;
    }
    affinity(evaluation, process);
    let value = format!("{} of {} KiB", process.locked_kib, process.resident_kib);
    evaluation.require(&LOCKED, process.locked_kib > 0, value, "all of it");
    let faults = process.real_time().map(|thread| thread.task.major_faults);
    let faults = faults.fold(0, u64::saturating_add);
    evaluation.require(&FAULTS, faults == 0, faults, "0");
    let (voluntary, involuntary) = process
        .real_time()
        .fold((0, 0), |(v, i), thread| (v + thread.voluntary, i + thread.involuntary));
    let value = format!("{involuntary} times, given away {voluntary} times");
    evaluation.require(&SWITCHES, involuntary * SWITCHES_IN <= voluntary, value, "hardly ever");
}

fn affinity(evaluation: &mut Evaluation<'_>, process: &Process) {
    let program = evaluation.requirements.programs.iter().find(|program| {
        // The kernel keeps 15 octets of a name.
        program.name.get(..15).unwrap_or(&program.name) == process.name
    });
    let asked = program.map(|program| program.cores.clone()).filter(|cores| !cores.is_empty());
    let Some(wanted) = asked
        .or_else(|| Some(evaluation.facts.isolation.apart()).filter(|apart| !apart.is_empty()))
    else {
        return;
    };
    let allowed = process.real_time().flat_map(|t| super::isolation::parsed(&t.allowed).0);
    let allowed = CpuList(allowed.collect());
    let right = allowed.without(&wanted).is_empty();
    evaluation.require(&AFFINITY, right, allowed, format!("within {wanted}"));
}
