//! Isolated CPUs: those asked for, those there are, and what runs there all the same.

use super::evaluation::Evaluation;
use super::facts::{Fact, cpus, number, text};
use super::finding::{Area, Check, Need, State};
use onbeat_run::machine::{CpuList, Machine};
use serde::{Deserialize, Serialize};

/// The isolated CPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Isolation {
    /// The processors that run.
    pub online: Fact<String>,
    /// Those that the kernel balances no load to, since the boot.
    pub isolated: Fact<String>,
    /// Those in isolated partitions of cgroup v2, at run time.
    pub partitions: Fact<String>,
    /// Exclusive cpusets of cgroup v1 below the root: group, processors.
    pub cpusets: Vec<(String, String)>,
    /// The controllers of cgroup v2.
    #[serde(default)]
    pub controllers: Fact<String>,
    /// Whether there are processor sets of cgroup v1.
    #[serde(default)]
    pub version_1: bool,
    /// Where work queues that are bound to no processor may run.
    pub workqueues: Fact<String>,
    /// Whether the watchdog of hanging processors is on: 1 is yes.
    pub watchdog: Fact<i64>,
    /// The processors that it watches.
    pub watchdog_cpus: Fact<String>,
}

impl Isolation {
    pub(super) fn read(machine: &Machine) -> Self {
        let mask = |path: &str| {
            let read = machine.read(path).and_then(|text| {
                CpuList::from_mask(&text).map_err(|e| std::io::Error::other(e.to_string()))
            });
            Fact::of(path, read).map(|cpus| cpus.to_string())
        };
        Self {
            online: cpus(machine, "/sys/devices/system/cpu/online"),
            isolated: cpus(machine, "/sys/devices/system/cpu/isolated"),
            partitions: cpus(machine, "/sys/fs/cgroup/cpuset.cpus.isolated"),
            cpusets: cpusets(machine),
            controllers: match text(machine, "/sys/fs/cgroup/cgroup.controllers") {
                Fact::Unknown(_) => text(machine, "/sys/fs/cgroup/unified/cgroup.controllers"),
                known => known,
            },
            version_1: machine.has("/sys/fs/cgroup/cpuset/cpuset.cpus"),
            workqueues: mask("/sys/devices/virtual/workqueue/cpumask"),
            watchdog: number(machine, "/proc/sys/kernel/watchdog"),
            watchdog_cpus: cpus(machine, "/proc/sys/kernel/watchdog_cpumask"),
        }
    }

    /// All that are isolated, by whichever means.
    pub(super) fn apart(&self) -> CpuList {
        let lists = [&self.isolated, &self.partitions].into_iter().filter_map(Fact::known);
        let exclusive = self.cpusets.iter().map(|(_, cpus)| cpus);
        CpuList(lists.chain(exclusive).flat_map(|list| parsed(list).0).collect())
    }
}

/// A list that was written by [`CpuList`] itself; of a file that somebody changed, nothing.
pub(super) fn parsed(list: &str) -> CpuList {
    list.parse().unwrap_or_default()
}

/// As `cset shield` makes them: groups of the first level that are exclusive, except for the one
/// that all other tasks were moved to, which by custom is called `system`.
fn cpusets(machine: &Machine) -> Vec<(String, String)> {
    const PLACE: &str = "/sys/fs/cgroup/cpuset";
    let groups = machine.names(PLACE).into_iter().filter(|name| name != "system");
    let of_one = |group: String| {
        let exclusive = ["cpuset.cpu_exclusive", "cpu_exclusive"]
            .iter()
            .any(|file| machine.number(&format!("{PLACE}/{group}/{file}")).is_ok_and(|n| n == 1));
        let list = ["cpuset.cpus", "cpus"]
            .iter()
            .find_map(|file| machine.cpus(&format!("{PLACE}/{group}/{file}")).ok())?;
        (exclusive && !list.is_empty()).then(|| (group, list.to_string()))
    };
    groups.filter_map(of_one).collect()
}

static CORES: Check = Check {
    id: "isolation.cores",
    area: Area::Isolation,
    what: "isolated CPUs",
    against: &[Need::Wakeup],
    why: "On isolated CPUs real-time tasks find warm caches and do not wait for other threads; \
          elsewhere the kernel places other work at will.",
    fix: "Make an isolated partition of cgroup v2, or boot with `isolcpus=managed_irq,domain,…`.",
    reboot: false,
};
static ASKED: Check = Check {
    id: "isolation.asked",
    area: Area::Isolation,
    what: "isolation requested at boot",
    against: &[Need::Wakeup],
    why: "CPUs in `isolcpus=` that are not isolated: the kernel did not understand the parameter, \
          or the CPUs do not exist.",
    fix: "Correct the boot parameter; `dmesg` shows the kernel's complaint.",
    reboot: true,
};
static ONLINE: Check = Check {
    id: "isolation.online",
    area: Area::Isolation,
    what: "CPUs of the programs",
    against: &[Need::Wakeup],
    why: "A program cannot be bound to a CPU that does not exist or is offline: it is refused at \
          its start.",
    fix: "Name other CPUs in the description, or switch the CPU on: echo 1 > \
          /sys/devices/system/cpu/cpuN/online",
    reboot: false,
};
static HOUSEKEEPING: Check = Check {
    id: "isolation.housekeeping",
    area: Area::Isolation,
    what: "a housekeeping CPU",
    against: &[Need::Wakeup],
    why: "Interrupts, kernel threads and all other programs also need a CPU: without a \
          housekeeping CPU they run on the isolated ones.",
    fix: "Exclude at least one CPU from the isolation.",
    reboot: true,
};
static OTHERS: Check = Check {
    id: "isolation.others",
    area: Area::Isolation,
    what: "other programs on these CPUs",
    against: &[Need::Wakeup],
    why: "Programs that are bound to these CPUs, or were started there, share their caches and \
          time.",
    fix: "taskset -cp HOUSEKEEPING PID, for each of them.",
    reboot: false,
};
static WORKQUEUES: Check = Check {
    id: "isolation.workqueues",
    area: Area::Isolation,
    what: "work queues",
    against: &[Need::Wakeup],
    why: "Unbound deferred work of the kernel runs on the isolated CPUs as well.",
    fix: "Write the mask of the housekeeping CPUs to /sys/devices/virtual/workqueue/cpumask.",
    reboot: false,
};
static WATCHDOG: Check = Check {
    id: "isolation.watchdog",
    area: Area::Isolation,
    what: "watchdog",
    against: &[Need::Wakeup],
    why: "On each watched CPU a timer and a thread of highest priority check for lockups.",
    fix: "Write the housekeeping CPUs to /proc/sys/kernel/watchdog_cpumask.",
    reboot: false,
};

pub(super) static CHECKS: [&Check; 7] =
    [&CORES, &ASKED, &ONLINE, &HOUSEKEEPING, &OTHERS, &WORKQUEUES, &WATCHDOG];

pub(super) fn evaluate(evaluation: &mut Evaluation<'_>) {
    let isolation = &evaluation.facts.isolation;
    let apart = isolation.apart();
    let online = isolation.online.known().map(|list| parsed(list));
    let needed = evaluation.requirements.cores();
    asked(evaluation);
    if let Some(online) = &online {
        let missing = needed.without(online);
        let state = if missing.is_empty() { State::Ok } else { State::Blocks };
        let value = match missing.is_empty() {
            true => format!("{online} run"),
            false => format!("{missing} not running"),
        };
        evaluation.say(&ONLINE, state, value, or_any(&needed));
        let rest = online.without(&apart);
        evaluation.require(&HOUSEKEEPING, !rest.is_empty(), or_none(&rest), "one at least");
    }
    let bare = needed.without(&apart);
    let wanted = if needed.is_empty() { "some".to_owned() } else { needed.to_string() };
    let right = bare.is_empty() && !apart.is_empty();
    // Programs that ask for no cores are happy anywhere.
    let content = !evaluation.requirements.is_general() && needed.is_empty();
    evaluation.require(&CORES, right || content, or_none(&apart), wanted);
    if !apart.is_empty() {
        others(evaluation, &apart);
        housekeeping(evaluation, &apart);
    }
}

fn or_none(cpus: &CpuList) -> String {
    if cpus.is_empty() { "none".to_owned() } else { cpus.to_string() }
}

fn or_any(cpus: &CpuList) -> String {
    if cpus.is_empty() { "any".to_owned() } else { format!("{cpus} run") }
}

fn asked(evaluation: &mut Evaluation<'_>) {
    let Some(parameter) = evaluation.facts.kernel.parameter("isolcpus") else { return };
    // Flags such as `managed_irq,domain` stand before the list.
    let is_list = |part: &&str| part.starts_with(|c: char| c.is_ascii_digit());
    let list = parameter.split(',').filter(is_list).collect::<Vec<_>>().join(",");
    let asked: CpuList = list.parse().unwrap_or_default();
    let missing = asked.without(&evaluation.facts.isolation.apart());
    let value = match missing.is_empty() {
        true => format!("{asked} isolated"),
        false => format!("{missing} not isolated"),
    };
    evaluation.require(&ASKED, missing.is_empty() && !asked.is_empty(), value, parameter);
}

/// How many programs are named.
const NAMED: usize = 3;

fn others(evaluation: &mut Evaluation<'_>, apart: &CpuList) {
    let ours = |name: &str| {
        // The kernel keeps 15 octets of a name.
        evaluation.requirements.programs.iter().any(|p| p.name.get(..15).unwrap_or(&p.name) == name)
    };
    let watched = evaluation.facts.process.as_ref().and_then(|process| process.known());
    let found: Vec<_> = evaluation
        .facts
        .tasks
        .iter()
        .filter(|task| !task.kernel && apart.0.contains(&task.cpu) && !ours(&task.name))
        .filter(|task| watched.is_none_or(|process| process.pid != task.pid))
        .filter(|task| !task.is_real_time())
        .collect();
    let names = found.iter().take(NAMED).map(|t| format!("{} ({})", t.name, t.tid));
    let value = match found.len() {
        0 => "none".to_owned(),
        n => format!("{n}: {}", names.collect::<Vec<_>>().join(", ")),
    };
    evaluation.require(&OTHERS, found.is_empty(), value, "none");
}

fn housekeeping(evaluation: &mut Evaluation<'_>, apart: &CpuList) {
    let Isolation { workqueues, watchdog, watchdog_cpus, .. } = &evaluation.facts.isolation;
    match workqueues {
        Fact::Known(list) => {
            let right = parsed(list).and(apart).is_empty();
            evaluation.require(&WORKQUEUES, right, list, format!("none of {apart}"));
        }
        Fact::Unknown(why) => evaluation.unknown(&WORKQUEUES, why, format!("none of {apart}")),
    }
    if let (Fact::Known(1), Fact::Known(list)) = (watchdog, watchdog_cpus) {
        let right = parsed(list).and(apart).is_empty();
        evaluation.require(&WATCHDOG, right, list, format!("none of {apart}"));
    }
}
