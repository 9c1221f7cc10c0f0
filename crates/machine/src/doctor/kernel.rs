//! The kernel and how it was started.

use super::config::Config;
use super::evaluation::Evaluation;
use super::facts::{Fact, chosen, number, text};
use super::finding::{Area, Check, Need, State};
use onbeat_model::time::Span;
use onbeat_run::machine::Machine;
use serde::{Deserialize, Serialize};

/// The kernel and how it was started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kernel {
    /// `6.12.8-rt`.
    pub release: Fact<String>,
    /// Whether it was built with PREEMPT_RT.
    pub realtime: Fact<bool>,
    /// Where it gives way: `none`, `voluntary`, `full`, `lazy`.
    pub preemption: Fact<String>,
    /// What it was built with.
    #[serde(default)]
    pub config: Config,
    /// The mitigations of flaws of the processor that are at work: flaw, what is done.
    #[serde(default)]
    pub mitigations: Fact<Vec<(String, String)>>,
    /// What it was started with.
    pub command_line: Fact<String>,
    /// `none`, `integrity` or `confidentiality`.
    pub lockdown: Fact<String>,
    /// The tracer that is at work; `nop` is none.
    pub tracer: Fact<String>,
    /// When pages become huge by themselves: `always`, `madvise`, `never`.
    pub huge_pages: Fact<String>,
    /// Whether pages move between memories by themselves: 0 is no.
    pub numa_balancing: Fact<i64>,
}

impl Kernel {
    pub(super) fn read(machine: &Machine) -> Self {
        let release = text(machine, "/proc/sys/kernel/osrelease");
        // A kernel without this file says it in its version.
        let realtime = match number(machine, "/sys/kernel/realtime") {
            Fact::Known(value) => Fact::Known(value == 1),
            Fact::Unknown(_) => text(machine, "/proc/version")
                .map(|version| version.replace(' ', "_").contains("PREEMPT_RT")),
        };
        let either = |first: &str, second: &str| match text(machine, first) {
            Fact::Known(text) => Fact::Known(text),
            Fact::Unknown(_) => text(machine, second),
        };
        let config = Config::read(machine, &release);
        let command_line = text(machine, "/proc/cmdline");
        let preemption = preemption_model(machine, &realtime, &config, &command_line);
        // Without the file there is no lockdown, or securityfs is not mounted.
        let lockdown = text(machine, "/sys/kernel/security/lockdown").map(chosen);
        Self {
            release,
            realtime,
            preemption,
            config,
            mitigations: mitigations(machine),
            command_line,
            lockdown,
            tracer: either(
                "/sys/kernel/tracing/current_tracer",
                "/sys/kernel/debug/tracing/current_tracer",
            ),
            huge_pages: text(machine, "/sys/kernel/mm/transparent_hugepage/enabled").map(chosen),
            numa_balancing: number(machine, "/proc/sys/kernel/numa_balancing"),
        }
    }

    /// Whether it is at least this release, if that is known.
    pub(super) fn is_at_least(&self, major: u32, minor: u32) -> Option<bool> {
        let mut parts = self.release.known()?.split(['.', '-', '+']);
        let mut next = || parts.next().and_then(|part| part.parse::<u32>().ok());
        Some((next()?, next()?) >= (major, minor))
    }

    /// The value of a boot parameter, the last one if it is given more than once.
    pub(super) fn parameter(&self, name: &str) -> Option<&str> {
        let words = self.command_line.known()?.split_whitespace();
        words.filter_map(|word| word.split_once('=')).rfind(|(n, _)| *n == name).map(|(_, v)| v)
    }
}

/// Where the kernel gives way: as it says itself; else as it was started, if it can be told so;
/// else as it was built.
fn preemption_model(
    machine: &Machine,
    realtime: &Fact<bool>,
    config: &Config,
    command_line: &Fact<String>,
) -> Fact<String> {
    const PLACE: &str = "/sys/kernel/debug/sched/preempt";
    let said = match text(machine, PLACE) {
        Fact::Known(text) => {
            let chosen = text.split_once('(').and_then(|(_, rest)| rest.split_once(')'));
            return Fact::Known(chosen.map_or(text.clone(), |(mode, _)| mode.to_owned()));
        }
        Fact::Unknown(why) => why,
    };
    if realtime.known() == Some(&true) {
        return Fact::Known("full".to_owned());
    }
    let version = machine.read("/proc/version").unwrap_or_default();
    let words: Vec<&str> = version.split_whitespace().collect();
    let dynamic = config
        .has("PREEMPT_DYNAMIC")
        .or_else(|| (!version.is_empty()).then(|| words.contains(&"PREEMPT_DYNAMIC")));
    let line = command_line.known().map_or("", String::as_str);
    let asked =
        line.split_whitespace().filter_map(|word| word.strip_prefix("preempt=")).next_back();
    let known = ["none", "voluntary", "full", "lazy"];
    if dynamic == Some(true)
        && let Some(asked) = asked.filter(|asked| known.contains(asked))
    {
        return Fact::Known(asked.to_owned());
    }
    let models = [
        ("PREEMPT_LAZY", "lazy"),
        ("PREEMPT", "full"),
        ("PREEMPT_VOLUNTARY", "voluntary"),
        ("PREEMPT_NONE", "none"),
    ];
    let built = models.iter().find(|(option, _)| config.has(option) == Some(true));
    if let Some((_, mode)) = built {
        return Fact::Known((*mode).to_owned());
    }
    match dynamic {
        Some(false) if words.contains(&"PREEMPT_LAZY") => Fact::Known("lazy".to_owned()),
        Some(false) if words.contains(&"PREEMPT") => Fact::Known("full".to_owned()),
        Some(false) => Fact::Known("none or voluntary".to_owned()),
        _ => {
            let why = match &config.0 {
                Fact::Unknown(why) => why.as_str(),
                Fact::Known(_) => "its configuration does not say it",
            };
            Fact::Unknown(format!("{said} (mount debugfs), and {why}"))
        }
    }
}

/// What the kernel does about flaws of the processor.
fn mitigations(machine: &Machine) -> Fact<Vec<(String, String)>> {
    const PLACE: &str = "/sys/devices/system/cpu/vulnerabilities";
    let names = machine.names(PLACE);
    if names.is_empty() {
        return Fact::Unknown(format!("there is no {PLACE}"));
    }
    let of_one = |name: &String| {
        let text = machine.read(&format!("{PLACE}/{name}")).ok()?;
        Some((name.clone(), text.strip_prefix("Mitigation: ")?.to_owned()))
    };
    Fact::Known(names.iter().filter_map(of_one).collect())
}

/// The most that a task woke late on a kernel without PREEMPT_RT in an hour of load (Austad et al.
/// 2023, Table 5: 3092 µs).
const WITHOUT_RT: Span = Span::from_us(3_092);

static REALTIME: Check = Check {
    id: "kernel.realtime",
    area: Area::Kernel,
    what: "real-time kernel",
    against: &[Need::Wakeup],
    why: "Without PREEMPT_RT, interrupt handlers and locks of the kernel delay any task: by up to \
          3.1 ms under load, compared with 16 µs with it (Austad et al. 2023, Table 5).",
    fix: "Boot a kernel with CONFIG_PREEMPT_RT; distributions call it `rt` or `realtime`.",
    reboot: true,
};
static PREEMPTION: Check = Check {
    id: "kernel.preemption",
    area: Area::Kernel,
    what: "preemption",
    against: &[Need::Wakeup],
    why: "With `none` and `voluntary` a task of highest priority waits until a system call of \
          another task completes or yields.",
    fix: "Boot with `preempt=full`, or better with a real-time kernel.",
    reboot: true,
};
static LOCKDOWN: Check = Check {
    id: "kernel.lockdown",
    area: Area::Kernel,
    what: "lockdown",
    against: &[],
    why: "A locked-down kernel refuses debugfs: the fair server and the preemption model cannot be \
          read or set there.",
    fix: "Boot without `lockdown=`; some distributions lock down automatically with secure boot.",
    reboot: true,
};
static TRACER: Check = Check {
    id: "kernel.tracer",
    area: Area::Kernel,
    what: "tracer",
    against: &[Need::Wakeup],
    why: "A tracer lengthens every function or section that it traces, in all programs.",
    fix: "echo nop > /sys/kernel/tracing/current_tracer",
    reboot: false,
};
static HUGE_PAGES: Check = Check {
    id: "kernel.huge-pages",
    area: Area::Kernel,
    what: "transparent huge pages",
    against: &[Need::Wakeup],
    why: "A kernel thread joins pages and blocks a program's accesses meanwhile, even to locked \
          memory.",
    fix: "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
    reboot: false,
};
static NUMA_BALANCING: Check = Check {
    id: "kernel.numa-balancing",
    area: Area::Kernel,
    what: "NUMA balancing",
    against: &[Need::Wakeup],
    why: "The kernel unmaps pages periodically to detect which CPUs use them. This causes page \
          faults within tasks, even in locked memory.",
    fix: "sysctl kernel.numa_balancing=0",
    reboot: false,
};
static VLAN: Check = Check {
    id: "kernel.vlan",
    area: Area::Kernel,
    what: "VLAN interfaces",
    against: &[],
    why: "Some programs leave the tag to a VLAN interface. Onbeat's own endpoints write the tag \
          themselves and need none.",
    fix: "Load the module 8021q, or use a kernel with CONFIG_VLAN_8021Q.",
    reboot: false,
};
static MQPRIO: Check = Check {
    id: "kernel.mqprio",
    area: Area::Kernel,
    what: "qdisc mqprio",
    against: &[Need::Network],
    why: "It assigns each traffic class to its own queue; without it reserved frames wait behind \
          all others.",
    fix: "Load the module sch_mqprio, or use a kernel with CONFIG_NET_SCH_MQPRIO.",
    reboot: false,
};
static CBS: Check = Check {
    id: "kernel.cbs",
    area: Area::Kernel,
    what: "qdisc cbs",
    against: &[Need::Network],
    why: "It shapes classes A and B (802.1Q 8.6.8.2); the plan's bounds assume it at the talker as \
          in every bridge.",
    fix: "Load the module sch_cbs, or use a kernel with CONFIG_NET_SCH_CBS.",
    reboot: false,
};
static ETF: Check = Check {
    id: "kernel.etf",
    area: Area::Kernel,
    what: "qdisc etf",
    against: &[Need::Network],
    why: "It launches each frame at its launch time, which keeps scheduled frames within their \
          windows.",
    fix: "Load the module sch_etf, or use a kernel with CONFIG_NET_SCH_ETF.",
    reboot: false,
};
static TAPRIO: Check = Check {
    id: "kernel.taprio",
    area: Area::Kernel,
    what: "qdisc taprio",
    against: &[Need::Network],
    why: "It opens and closes the gates of scheduled traffic (802.1Qbv).",
    fix: "Load the module sch_taprio, or use a kernel with CONFIG_NET_SCH_TAPRIO.",
    reboot: false,
};

static MITIGATIONS: Check = Check {
    id: "kernel.mitigations",
    area: Area::Kernel,
    what: "mitigations of CPU vulnerabilities",
    against: &[],
    why: "They lengthen each system call, interrupt and context switch by an amount that depends \
          on CPU and kernel: execution times measured with other mitigations do not apply.",
    fix: "Measure with the mitigations that will be in use. Only if no untrusted code ever runs: \
          boot with `mitigations=off`.",
    reboot: true,
};

pub(super) static CHECKS: [&Check; 12] = [
    &REALTIME,
    &PREEMPTION,
    &MITIGATIONS,
    &LOCKDOWN,
    &TRACER,
    &HUGE_PAGES,
    &NUMA_BALANCING,
    &VLAN,
    &MQPRIO,
    &CBS,
    &ETF,
    &TAPRIO,
];

pub(super) fn evaluate(evaluation: &mut Evaluation<'_>) {
    preemption(evaluation);
    let Kernel { lockdown, tracer, huge_pages, numa_balancing, mitigations, .. } =
        &evaluation.facts.kernel;
    match mitigations {
        Fact::Known(all) => {
            let names: Vec<_> = all.iter().map(|(name, _)| name.as_str()).collect();
            let value = if all.is_empty() { "none".to_owned() } else { names.join(", ") };
            evaluation.require(&MITIGATIONS, all.is_empty(), value, "none, or measured with them");
        }
        Fact::Unknown(why) => evaluation.unknown(&MITIGATIONS, why, "none, or measured with them"),
    }
    // Not having any of these is as good.
    if let Fact::Known(lockdown) = lockdown {
        evaluation.require(&LOCKDOWN, lockdown == "none", lockdown, "none");
    }
    evaluation.fact(&TRACER, tracer, "nop", |tracer| tracer == "nop");
    if let Fact::Known(when) = huge_pages {
        evaluation.require(&HUGE_PAGES, when != "always", when, "madvise or never");
    }
    if let Fact::Known(balancing) = numa_balancing {
        evaluation.require(&NUMA_BALANCING, *balancing == 0, balancing, "0");
    }
    tried(evaluation);
}

fn preemption(evaluation: &mut Evaluation<'_>) {
    let Kernel { realtime, preemption, .. } = &evaluation.facts.kernel;
    let release = evaluation.facts.kernel.release.known().map_or("", String::as_str);
    match realtime {
        Fact::Known(true) => evaluation.say(&REALTIME, State::Ok, format!("yes, {release}"), "yes"),
        Fact::Known(false) => {
            // Where nothing is said of wake-ups, nobody can say that this is too slow.
            let tight = evaluation.requirements.wakeup_max.filter(|most| *most < WITHOUT_RT);
            let state = if tight.is_some() { State::Blocks } else { State::Advice };
            let wanted = match tight {
                Some(most) => format!("yes: the description has tasks wake within {most}"),
                None => "yes".to_owned(),
            };
            evaluation.say(&REALTIME, state, format!("no, {release}"), wanted);
            evaluation
                .fact(&PREEMPTION, preemption, "full", |mode| mode == "full" || mode == "lazy");
        }
        Fact::Unknown(why) => evaluation.unknown(&REALTIME, why, "yes"),
    }
}

fn tried(evaluation: &mut Evaluation<'_>) {
    let requirements = evaluation.requirements;
    let needed = [
        (&VLAN, false),
        (&MQPRIO, requirements.shaped || requirements.gated),
        (&CBS, requirements.shaped),
        (&ETF, requirements.gated),
        (&TAPRIO, requirements.gated),
    ];
    let calls = match &evaluation.facts.calls {
        Fact::Known(calls) => calls,
        Fact::Unknown(why) => {
            return evaluation.unknown(&MQPRIO, why, "there, with cbs, etf, taprio and VLANs");
        }
    };
    let tried = &calls.tried;
    let found = [&tried.vlan, &tried.mqprio, &tried.cbs, &tried.etf, &tried.taprio];
    for ((check, needed), found) in needed.into_iter().zip(found) {
        match found {
            Fact::Known(true) => evaluation.say(check, State::Ok, "there", "there"),
            Fact::Known(false) if needed => {
                evaluation.say(check, State::Blocks, "missing", "there")
            }
            Fact::Known(false) if requirements.is_general() => {
                evaluation.say(check, State::Advice, "missing", "there");
            }
            Fact::Known(false) => evaluation.say(check, State::Ok, "missing", "not needed"),
            Fact::Unknown(why) => evaluation.unknown(check, why, "there"),
        }
    }
}
