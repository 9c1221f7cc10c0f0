//! Virtual machines and containers.

use super::evaluation::Evaluation;
use super::facts::{Fact, text};
use super::finding::{Area, Check, Need, State};
use onbeat_run::machine::Machine;
use serde::{Deserialize, Serialize};

/// Virtual machines and containers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Virtualisation {
    /// The hypervisor below the kernel, if there is one; with its name if it has one.
    pub hypervisor: Fact<Option<String>>,
    /// The container that this is looked at from.
    pub container: Option<String>,
    /// How much of the processors' time since the start others had, in millionths.
    pub steal_ppm: Fact<u64>,
}

impl Virtualisation {
    pub(super) fn read(machine: &Machine) -> Self {
        let hypervisor = text(machine, "/proc/cpuinfo").map(|info| {
            let flags = info.lines().find(|l| l.starts_with("flags") || l.starts_with("Features"));
            let is_guest = flags.is_some_and(|f| f.split_whitespace().any(|f| f == "hypervisor"));
            let (xen, tree) = ("/sys/hypervisor/type", "/proc/device-tree/hypervisor/compatible");
            let named = [xen, tree, "/sys/class/dmi/id/product_name"];
            let name = named.iter().find_map(|path| machine.read(path).ok());
            let says_so = machine.has(xen) || machine.has(tree);
            (is_guest || says_so).then(|| name.unwrap_or_else(|| "one without a name".to_owned()))
        });
        let marks = [("/run/.containerenv", "podman"), ("/.dockerenv", "docker")];
        let mark = marks.iter().find(|(path, _)| machine.has(path)).map(|(_, n)| (*n).to_owned());
        // systemd leaves the container's kind here, for all users.
        let container = mark.or_else(|| machine.read("/run/systemd/container").ok());
        let steal_ppm = match text(machine, "/proc/stat") {
            Fact::Known(stat) => match steal(&stat) {
                Some(ppm) => Fact::Known(ppm),
                None => Fact::Unknown("/proc/stat does not say it".to_owned()),
            },
            Fact::Unknown(why) => Fact::Unknown(why),
        };
        Self { hypervisor, container, steal_ppm }
    }
}

/// The eighth of the first line's figures, of their sum without the last two, which are counted
/// in the first two as well (proc_stat(5)).
fn steal(stat: &str) -> Option<u64> {
    let figures: Vec<u64> =
        stat.lines().next()?.split_whitespace().skip(1).map_while(|f| f.parse().ok()).collect();
    let all = figures.iter().take(8).copied().fold(0, u64::saturating_add);
    figures.get(7)?.checked_mul(1_000_000)?.checked_div(all)
}

/// More than this much stolen time is a finding: a thousandth.
const STEAL_PPM: u64 = 1_000;

static HYPERVISOR: Check = Check {
    id: "virtualisation.hypervisor",
    area: Area::Virtualisation,
    what: "hypervisor",
    against: &[Need::Wakeup],
    why: "A hypervisor may stop the whole virtual machine at any time. All tasks are then late \
          together, which figures relative to each other hide: check lateness and relative error.",
    fix: "Measure on the real machine; or pin virtual CPUs to isolated CPUs of the host.",
    reboot: false,
};
static CONTAINER: Check = Check {
    id: "virtualisation.container",
    area: Area::Virtualisation,
    what: "container",
    against: &[],
    why: "A container shares its kernel: machine settings are made outside, and other processes of \
          the machine are not visible here.",
    fix: "Run `onbeat doctor` on the machine itself as well.",
    reboot: false,
};
static STEAL: Check = Check {
    id: "virtualisation.steal",
    area: Area::Virtualisation,
    what: "stolen time",
    against: &[Need::Wakeup],
    why: "The hypervisor ran other machines while this one had work: tasks were late by that time.",
    fix: "Give the virtual machine dedicated CPUs on the host.",
    reboot: false,
};
static STALLS: Check = Check {
    id: "virtualisation.stalls",
    area: Area::Virtualisation,
    what: "stalls of all CPUs at once",
    against: &[Need::Wakeup],
    why: "For a while no CPU ran: a hypervisor, or firmware in system management mode, stopped the \
          machine. No priority helps against that.",
    fix: "On real hardware search for system management interrupts (tracer hwlat); in a virtual \
          machine examine the hypervisor.",
    reboot: false,
};

pub(super) static CHECKS: [&Check; 4] = [&HYPERVISOR, &CONTAINER, &STEAL, &STALLS];

/// A stall of all cores that is longer is a finding. Sleepers on an idle kernel without PREEMPT_RT
/// wake within a millisecond.
const STALL_NS: i64 = 2_000_000;

pub(super) fn evaluate(evaluation: &mut Evaluation<'_>) {
    let Virtualisation { hypervisor, container, steal_ppm } = &evaluation.facts.virtualisation;
    match hypervisor {
        Fact::Known(None) => evaluation.say(&HYPERVISOR, State::Ok, "none", "none"),
        Fact::Known(Some(name)) => evaluation.say(&HYPERVISOR, State::Advice, name, "none"),
        Fact::Unknown(why) => evaluation.unknown(&HYPERVISOR, why, "none"),
    }
    match container {
        None => evaluation.say(&CONTAINER, State::Ok, "none", "none"),
        Some(kind) => evaluation.say(&CONTAINER, State::Advice, kind, "none"),
    }
    let share = |ppm: &u64| format!("{}.{:04} %", ppm / 10_000, ppm % 10_000);
    let limit = format!("at most {}", share(&STEAL_PPM));
    match steal_ppm {
        Fact::Known(ppm) => evaluation.require(&STEAL, *ppm <= STEAL_PPM, share(ppm), limit),
        Fact::Unknown(why) => evaluation.unknown(&STEAL, why, limit),
    }
    let Fact::Known(calls) = &evaluation.facts.calls else { return };
    let wanted = format!("below {} ms", STALL_NS / 1_000_000);
    match &calls.stall_ns {
        Fact::Known(ns) => {
            let value = format!("{} µs at most in {} ms", ns / 1_000, calls.watched_ms);
            evaluation.require(&STALLS, *ns < STALL_NS, value, wanted);
        }
        Fact::Unknown(why) => evaluation.unknown(&STALLS, why, wanted),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stolen_time_is_a_share_of_all_time() {
        assert_eq!(steal("cpu  10 0 10 60 0 0 0 20 5 5\ncpu0 1"), Some(200_000));
        for none in ["", "cpu 1 2 3", "cpu 0 0 0 0 0 0 0 0"] {
            assert_eq!(steal(none), None);
        }
    }
}
