//! The clock that the kernel reads, and what reading it costs.

use super::evaluation::Evaluation;
use super::facts::{Fact, text};
use super::finding::{Area, Check, Need, State};
use onbeat_run::machine::Machine;
use serde::{Deserialize, Serialize};

/// The clock that the kernel reads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clocksource {
    /// The one in use.
    pub current: Fact<String>,
    /// Those there are.
    pub available: Fact<String>,
}

impl Clocksource {
    pub(super) fn read(machine: &Machine) -> Self {
        let of = |name: &str| {
            text(machine, &format!("/sys/devices/system/clocksource/clocksource0/{name}"))
        };
        Self { current: of("current_clocksource"), available: of("available_clocksource") }
    }
}

/// Clocks of slow hardware, which programs read through a system call, and of the tick.
const SLOW: [&str; 3] = ["hpet", "acpi_pm", "pit"];
const TICK: [&str; 2] = ["jiffies", "refined-jiffies"];
/// Through the vDSO a reading takes tens of nanoseconds; Pérez et al. 2024 have 71 at least for
/// two. A system call, or slow hardware, takes more than this.
const COST_NS: i64 = 300;

static SOURCE: Check = Check {
    id: "clocksource.source",
    area: Area::Clocksource,
    what: "clock source",
    against: &[Need::Wakeup, Need::Time],
    why: "Slow hardware makes each reading of the clock take a microsecond or more, and delays \
          every kernel timer. A kernel falls back to it if it distrusts the CPU's counter.",
    fix: "Find the reason in `dmesg` (`clocksource: … unstable`); if the counter is correct after \
          all, boot with `tsc=reliable`.",
    reboot: true,
};
static COST: Check = Check {
    id: "clocksource.cost",
    area: Area::Clocksource,
    what: "reading the clock",
    against: &[Need::Time],
    why: "Each timestamp costs this. More than some tens of nanoseconds means that every reading \
          is a system call and not one of the vDSO.",
    fix: "Use a clock source that programs can read directly: tsc, arch_sys_counter, kvm-clock.",
    reboot: false,
};
static RESOLUTION: Check = Check {
    id: "clocksource.resolution",
    area: Area::Clocksource,
    what: "high-resolution timers",
    against: &[Need::Wakeup],
    why: "Without them sleeps end only at ticks: 1 to 10 ms late.",
    fix: "Boot without `highres=off` and `nohz=off`, on a kernel with CONFIG_HIGH_RES_TIMERS.",
    reboot: true,
};

pub(super) static CHECKS: [&Check; 3] = [&SOURCE, &COST, &RESOLUTION];

pub(super) fn evaluate(evaluation: &mut Evaluation<'_>) {
    let Clocksource { current, available } = &evaluation.facts.clocksource;
    let wanted = "tsc, or another one that programs read by themselves";
    match current {
        Fact::Known(name) => {
            let state = match name.as_str() {
                name if TICK.contains(&name) => State::Blocks,
                name if SLOW.contains(&name) => State::Advice,
                _ => State::Ok,
            };
            let available = available.known().map_or("", String::as_str);
            evaluation.say(&SOURCE, state, format!("{name} of {available}"), wanted);
        }
        Fact::Unknown(why) => evaluation.unknown(&SOURCE, why, wanted),
    }
    let Fact::Known(calls) = &evaluation.facts.calls else { return };
    let cost = calls.reading_ns;
    evaluation.require(
        &COST,
        cost <= COST_NS,
        format!("{cost} ns"),
        format!("at most {COST_NS} ns"),
    );
    let (one, resolution) = (calls.resolution_ns == 1, calls.resolution_ns);
    let state = if one { State::Ok } else { State::Blocks };
    evaluation.say(&RESOLUTION, state, format!("{resolution} ns"), "1 ns");
}
