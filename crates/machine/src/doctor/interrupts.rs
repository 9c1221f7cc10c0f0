//! Interrupts: where they were sent, where they go, and what is done about it meanwhile.

use super::evaluation::Evaluation;
use super::facts::{Fact, text};
use super::finding::{Area, Check, Need, State};
use super::isolation::parsed;
use onbeat_run::machine::{CpuList, Machine};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Interrupts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interrupts {
    /// Those that devices have.
    pub lines: Vec<InterruptLine>,
    /// Where new ones go, as a list of processors.
    pub default: Fact<String>,
}

/// One interrupt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterruptLine {
    /// Its number.
    pub number: u32,
    /// The devices that have it.
    pub name: String,
    /// Where it was sent.
    pub asked: String,
    /// Where it goes; empty where the kernel does not say.
    pub effective: String,
    /// How often it came.
    pub count: u64,
}

impl Interrupts {
    pub(super) fn read(machine: &Machine) -> Self {
        let table = machine.read("/proc/interrupts").unwrap_or_default();
        let counted = counts(&table);
        let numbers = machine.names("/proc/irq").into_iter().filter_map(|n| n.parse().ok());
        let of_one = |number: u32| {
            let list = |file: &str| {
                machine.cpus(&format!("/proc/irq/{number}/{file}")).map(|cpus| cpus.to_string())
            };
            let (count, name) = counted.get(&number).cloned().unwrap_or_default();
            Some(InterruptLine {
                number,
                name,
                asked: list("smp_affinity_list").ok()?,
                effective: list("effective_affinity_list").unwrap_or_default(),
                count,
            })
        };
        let default = text(machine, "/proc/irq/default_smp_affinity")
            .map(|mask| CpuList::from_mask(&mask).map(|cpus| cpus.to_string()).unwrap_or_default());
        Self { lines: numbers.filter_map(of_one).collect(), default }
    }
}

/// Count and name of each numbered line of `/proc/interrupts`.
fn counts(table: &str) -> BTreeMap<u32, (u64, String)> {
    let columns = table.lines().next().unwrap_or_default().split_whitespace().count();
    let of_line = |line: &str| {
        let (number, rest) = line.split_once(':')?;
        let words: Vec<&str> = rest.split_whitespace().collect();
        let counts = words.iter().take(columns).filter_map(|word| word.parse::<u64>().ok());
        let count = counts.fold(0, u64::saturating_add);
        // Controller, number and kind stand between the counts and the names.
        let name = words.iter().skip(columns + 2).copied().collect::<Vec<_>>().join(" ");
        Some((number.trim().parse().ok()?, (count, name)))
    };
    table.lines().skip(1).filter_map(of_line).collect()
}

static EFFECTIVE: Check = Check {
    id: "interrupts.isolated",
    area: Area::Interrupts,
    what: "interrupts on isolated CPUs",
    against: &[Need::Wakeup],
    why: "An interrupt delays any running task, whatever its priority.",
    fix: "Write the housekeeping CPUs to /proc/irq/N/smp_affinity_list; for queues of disks and \
          other interrupts that the kernel places itself, boot with `isolcpus=managed_irq,…`.",
    reboot: false,
};
static REFUSED: Check = Check {
    id: "interrupts.effective",
    area: Area::Interrupts,
    what: "effective affinity of interrupts",
    against: &[Need::Wakeup],
    why: "An interrupt goes to another CPU than it is bound to: the controller does not support \
          it, no interrupt has occurred since, or its interface came up again.",
    fix: "Write smp_affinity_list again after each change of the link, and compare \
          effective_affinity_list.",
    reboot: false,
};
static DEFAULT: Check = Check {
    id: "interrupts.default",
    area: Area::Interrupts,
    what: "affinity of new interrupts",
    against: &[Need::Wakeup],
    why: "An interface that comes up, or a new device, requests new interrupts: they go to these \
          CPUs.",
    fix: "Write the mask of the housekeeping CPUs to /proc/irq/default_smp_affinity, or boot with \
          `irqaffinity=`.",
    reboot: false,
};
static BALANCER: Check = Check {
    id: "interrupts.irqbalance",
    area: Area::Interrupts,
    what: "irqbalance",
    against: &[Need::Wakeup],
    why: "It moves interrupts every ten seconds and reverts manual settings.",
    fix: "systemctl disable --now irqbalance",
    reboot: false,
};
static THREADS: Check = Check {
    id: "interrupts.threads",
    area: Area::Interrupts,
    what: "priority of interrupt threads",
    against: &[Need::Wakeup],
    why: "With threaded interrupts, a handler of at least the program's priority delays the \
          program on the same CPU, even for unrelated devices.",
    fix: "Give the programs a priority above 50, the kernel's default for these threads, or lower \
          those of other devices with chrt.",
    reboot: false,
};
static NAPI: Check = Check {
    id: "interrupts.napi",
    area: Area::Interrupts,
    what: "NAPI threads",
    against: &[Need::Wakeup, Need::Network],
    why: "With threaded NAPI a thread of normal priority receives the interface's frames: they \
          wait whenever the machine is busy.",
    fix: "chrt -f -p 60 PID for the threads napi/INTERFACE-N.",
    reboot: false,
};

pub(super) static CHECKS: [&Check; 6] =
    [&EFFECTIVE, &REFUSED, &DEFAULT, &BALANCER, &THREADS, &NAPI];

/// How many interrupts are named.
const NAMED: usize = 3;

fn named(lines: &[&InterruptLine]) -> String {
    let names = lines.iter().take(NAMED).map(|l| format!("{} {} on {}", l.number, l.name, at(l)));
    match lines.len() {
        0 => "none".to_owned(),
        n => format!("{n}: {}", names.collect::<Vec<_>>().join(", ")),
    }
}

/// Where a line goes, as far as that is known.
fn at(line: &InterruptLine) -> &str {
    if line.effective.is_empty() { &line.asked } else { &line.effective }
}

pub(super) fn evaluate(evaluation: &mut Evaluation<'_>) {
    let Interrupts { lines, default } = &evaluation.facts.interrupts;
    let apart = evaluation.facts.isolation.apart();
    let wanted = format!("none of {apart}");
    if !apart.is_empty() {
        let there =
            |line: &&InterruptLine| line.count > 0 && !parsed(at(line)).and(&apart).is_empty();
        let found: Vec<&InterruptLine> = lines.iter().filter(there).collect();
        evaluation.require(&EFFECTIVE, found.is_empty(), named(&found), "none");
        match default {
            Fact::Known(list) => {
                let right = parsed(list).and(&apart).is_empty();
                evaluation.require(&DEFAULT, right, list, wanted);
            }
            Fact::Unknown(why) => evaluation.unknown(&DEFAULT, why, wanted),
        }
    }
    let strays = |line: &&InterruptLine| {
        line.count > 0 && !parsed(&line.effective).without(&parsed(&line.asked)).is_empty()
    };
    let found: Vec<&InterruptLine> = lines.iter().filter(strays).collect();
    evaluation.require(&REFUSED, found.is_empty(), named(&found), "all where they were sent");
    let tasks = &evaluation.facts.tasks;
    let balancer = tasks.iter().find(|task| task.name == "irqbalance");
    let value = balancer.map_or("not running".to_owned(), |task| format!("pid {}", task.pid));
    evaluation.require(&BALANCER, balancer.is_none(), value, "not running");
    threads(evaluation);
}

fn threads(evaluation: &mut Evaluation<'_>) {
    let tasks = &evaluation.facts.tasks;
    if let Some(priority) = evaluation.requirements.priority() {
        let interface = evaluation.requirements.interface.as_deref();
        // The interface's own handler brings what the program waits for.
        let other = |name: &str| interface.is_none_or(|interface| !name.contains(interface));
        let above = tasks.iter().filter(|task| {
            task.kernel
                && task.name.starts_with("irq/")
                && task.priority >= priority
                && other(&task.name)
        });
        let found: Vec<_> = above.collect();
        let names = found.iter().take(NAMED).map(|t| format!("{} at {}", t.name, t.priority));
        let value = match found.len() {
            0 => "all below".to_owned(),
            n => format!("{n}: {}", names.collect::<Vec<_>>().join(", ")),
        };
        evaluation.say(
            &THREADS,
            if found.is_empty() { State::Ok } else { State::Advice },
            value,
            format!("below {priority}, the programs' highest"),
        );
    }
    let threads = tasks.iter().filter(|task| task.kernel && task.name.starts_with("napi/"));
    let slow: Vec<_> = threads.clone().filter(|task| !task.is_real_time()).collect();
    let value = match (slow.first(), threads.count()) {
        (Some(task), _) => format!("{} ({}): normal", task.name, task.tid),
        (None, 0) => "no such threads".to_owned(),
        (None, n) => format!("{n}, all real-time"),
    };
    evaluation.require(&NAPI, slow.is_empty(), value, "real-time, if there are any");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interrupts_are_counted_over_all_processors() {
        let table = "     CPU0  CPU1\n  9:  3  4  IO-APIC  9-fasteoi  acpi\n\
                     120: 1 0 PCI-MSI 1572864-edge eth0-TxRx-0, other\nNMI: 0 0 Non-maskable";
        let counted = counts(table);
        assert_eq!(counted.len(), 2);
        assert_eq!(counted[&9], (7, "acpi".to_owned()));
        assert_eq!(counted[&120], (1, "eth0-TxRx-0, other".to_owned()));
    }
}
