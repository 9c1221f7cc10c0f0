//! Idle states, frequencies, and processors that share a core.

use super::evaluation::Evaluation;
use super::facts::{Fact, number};
use super::finding::{Area, Check, Need, State};
use onbeat_model::time::Span;
use onbeat_run::machine::Machine;
use serde::{Deserialize, Serialize};
use std::io::Read;

/// Idle states, frequencies, processors that share a core.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Power {
    /// Of each processor that is there.
    pub cpus: Vec<Cpu>,
    /// Whether processors share cores: 1 is yes.
    pub smt: Fact<i64>,
    /// The longest wake-up from idle that somebody allows now, in µs (`/dev/cpu_dma_latency`).
    pub latency_us: Fact<i64>,
}

/// One processor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cpu {
    /// Its number.
    pub number: u16,
    /// The frequency governor, if frequencies change.
    pub governor: Option<String>,
    /// The states that an idle processor may enter: name, µs to leave it.
    pub idle: Vec<(String, i64)>,
    /// Whether the kernel lists idle states of it at all.
    #[serde(default)]
    pub lists_idle: bool,
    /// How often it was slowed down because it was hot, if it counts that.
    #[serde(default)]
    pub hot: Option<u64>,
}

impl Power {
    pub(super) fn read(machine: &Machine) -> Self {
        const PLACE: &str = "/sys/devices/system/cpu";
        let names = machine.names(PLACE).into_iter();
        let mut numbers: Vec<u16> =
            names.filter_map(|name| name.strip_prefix("cpu")?.parse().ok()).collect();
        numbers.sort_unstable();
        let of_one = |number: &u16| {
            let cpu = format!("{PLACE}/cpu{number}");
            let states = machine.names(&format!("{cpu}/cpuidle"));
            let idle = states.iter().filter_map(|state| {
                let state = format!("{cpu}/cpuidle/{state}");
                let is_off = machine.number(&format!("{state}/disable")).ok()? != 0;
                let name = machine.read(&format!("{state}/name")).ok()?;
                let latency = machine.number(&format!("{state}/latency")).ok()?;
                (!is_off).then_some((name, latency))
            });
            let hot = machine.number(&format!("{cpu}/thermal_throttle/core_throttle_count"));
            Cpu {
                number: *number,
                governor: machine.read(&format!("{cpu}/cpufreq/scaling_governor")).ok(),
                idle: idle.collect(),
                lists_idle: !states.is_empty(),
                hot: hot.ok().and_then(|count| count.try_into().ok()),
            }
        };
        Self {
            cpus: numbers.iter().map(of_one).collect(),
            smt: siblings(machine, &numbers),
            latency_us: latency(machine),
        }
    }
}

/// Whether processors share cores: as the kernel says, else as their topology has it.
fn siblings(machine: &Machine, numbers: &[u16]) -> Fact<i64> {
    let said = number(machine, "/sys/devices/system/cpu/smt/active");
    let siblings = |number: &u16| {
        let topology = format!("/sys/devices/system/cpu/cpu{number}/topology");
        machine.cpus(&format!("{topology}/thread_siblings_list")).ok().map(|cpus| cpus.0.len())
    };
    let all: Option<Vec<_>> = numbers.iter().map(siblings).collect();
    match (said, all.filter(|all| !all.is_empty())) {
        (Fact::Unknown(_), Some(all)) => Fact::Known(all.iter().any(|count| *count > 1).into()),
        (said, _) => said,
    }
}

/// Reading the device tells the limit that is in force, as a number of four octets; asking for
/// nothing while it is open changes nothing.
fn latency(machine: &Machine) -> Fact<i64> {
    const DEVICE: &str = "/dev/cpu_dma_latency";
    let mut octets = [0; 4];
    // Of a machine that is a directory, this is a file.
    let opened = match machine.is_this() {
        true => std::fs::File::open(DEVICE),
        false => machine.open(DEVICE),
    };
    let read = opened.and_then(|mut device| device.read_exact(&mut octets));
    Fact::of(DEVICE, read).map(|()| i32::from_ne_bytes(octets).into())
}

/// Leaving an idle state may take this long where the description says nothing: what the papers'
/// machines needed to wake at all, Austad et al. 2023, Table 5.
const LATENCY: Span = Span::from_us(16);

static GOVERNOR: Check = Check {
    id: "power.governor",
    area: Area::Power,
    what: "frequency governor",
    against: &[Need::Wakeup],
    why: "A CPU that runs slowly under low load slows every periodic task, and worst-case \
          execution times measured at full speed do not apply.",
    fix: "cpupower frequency-set -g performance",
    reboot: false,
};
static IDLE: Check = Check {
    id: "power.idle-states",
    area: Area::Power,
    what: "idle states",
    against: &[Need::Wakeup],
    why: "A CPU in a deep idle state wakes late. Measuring tools hold /dev/cpu_dma_latency open, \
          so a machine looks better while it is measured.",
    fix: "Let a program hold /dev/cpu_dma_latency at 0 while the system runs, or boot with \
          `processor.max_cstate=1 intel_idle.max_cstate=1`.",
    reboot: false,
};
static SMT: Check = Check {
    id: "power.smt",
    area: Area::Power,
    what: "CPUs that share a physical core",
    against: &[Need::Wakeup],
    why: "The load of the sibling changes how long a task takes, and no priority helps.",
    fix: "echo off > /sys/devices/system/cpu/smt/control, or boot with `nosmt`.",
    reboot: false,
};
static HOT: Check = Check {
    id: "power.heat",
    area: Area::Power,
    what: "thermal throttling",
    against: &[Need::Wakeup],
    why: "A CPU that became too hot ran slower than its frequency indicates.",
    fix: "Improve the cooling, or limit the frequency to one that the CPU can sustain.",
    reboot: false,
};

pub(super) static CHECKS: [&Check; 4] = [&GOVERNOR, &IDLE, &SMT, &HOT];

pub(super) fn evaluate(evaluation: &mut Evaluation<'_>) {
    let Power { cpus, smt, .. } = &evaluation.facts.power;
    let first = cpus.iter().find(|c| c.governor.as_deref().is_some_and(|g| g != "performance"));
    match first.and_then(|cpu| cpu.governor.as_ref().map(|governor| (cpu.number, governor))) {
        Some((number, governor)) => {
            let value = format!("{governor} on CPU {number}");
            evaluation.say(&GOVERNOR, State::Advice, value, "performance on all CPUs");
        }
        None if cpus.iter().any(|cpu| cpu.governor.is_some()) => {
            evaluation.say(&GOVERNOR, State::Ok, "performance", "performance on all CPUs");
        }
        None => evaluation.say(&GOVERNOR, State::Ok, "none", "performance, if there is any"),
    }
    idle(evaluation);
    match smt {
        Fact::Known(active) => {
            let value = if *active == 1 { "yes" } else { "no" };
            evaluation.require(&SMT, *active != 1, value, "no");
        }
        Fact::Unknown(why) => evaluation.unknown(&SMT, why, "no"),
    }
    let counts: Vec<u64> = cpus.iter().filter_map(|cpu| cpu.hot).collect();
    match counts.iter().copied().fold(0, u64::saturating_add) {
        _ if counts.is_empty() => {
            evaluation.unknown(
                &HOT,
                "no CPU counts it (thermal_throttle/core_throttle_count)",
                "never",
            );
        }
        times => {
            let value = format!("{times} times on {} of {} CPUs", counts.len(), cpus.len());
            evaluation.require(&HOT, times == 0, value, "never");
        }
    }
}

/// Why idle states are not known.
const NO_IDLE: &str = "the kernel lists none (no cpuidle driver): what an idle CPU does is \
                       up to firmware or hypervisor";

fn idle(evaluation: &mut Evaluation<'_>) {
    let Power { cpus, latency_us, .. } = &evaluation.facts.power;
    let limit = evaluation.requirements.wakeup_max.unwrap_or(LATENCY);
    let held = latency_us.known().copied();
    let allowed = |(_, latency): &&(String, i64)| held.is_none_or(|held| *latency <= held);
    let states = cpus.iter().flat_map(|cpu| cpu.idle.iter().filter(allowed));
    let wanted = format!("left within {limit}");
    let Some((name, latency)) = states.max_by_key(|(_, latency)| *latency) else {
        let polls = evaluation.facts.kernel.parameter("idle") == Some("poll");
        return match polls || cpus.iter().any(|cpu| cpu.lists_idle) {
            true => evaluation.say(&IDLE, State::Ok, "none", wanted),
            false => evaluation.unknown(&IDLE, NO_IDLE, wanted),
        };
    };
    let latency = Span::from_us(*latency);
    let state = match latency <= limit {
        true => State::Ok,
        false if evaluation.requirements.wakeup_max.is_some() => State::Blocks,
        false => State::Advice,
    };
    evaluation.say(&IDLE, state, format!("{name}, {latency} to leave it"), wanted);
}
