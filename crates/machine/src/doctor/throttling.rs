//! The three limits of real-time work, and what programs may do at all.

use super::evaluation::Evaluation;
use super::facts::{Fact, number, text};
use super::finding::{Area, Check, Need, State};
use onbeat_run::machine::Machine;
use serde::{Deserialize, Serialize};

/// Limits of real-time work, and what programs may do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Throttling {
    /// sched_rt_runtime_us: what all real-time tasks may use of each period; -1: all.
    pub rt_runtime_us: Fact<i64>,
    /// sched_rt_period_us.
    pub rt_period_us: Fact<i64>,
    /// What the fair server gives normal tasks in each second, in ns: the most of any core.
    pub fair_server_ns: Fact<i64>,
    /// The process' group of the controller `cpu` of cgroup v1: its cpu.rt_runtime_us. None where
    /// there is no such group, or the kernel has no budgets of groups.
    pub group_runtime_us: Option<(String, Fact<i64>)>,
    /// The groups of the process that have a quota of processor time, with that quota.
    pub quotas: Vec<(String, String)>,
    /// Its effective capabilities, as a mask.
    pub capabilities: Fact<u64>,
    /// RLIMIT_RTPRIO.
    pub rtprio: Fact<u64>,
    /// RLIMIT_MEMLOCK in octets.
    pub memlock: Fact<u64>,
    /// RLIMIT_RTTIME in µs.
    pub rttime_us: Fact<u64>,
}

impl Throttling {
    /// Of the process that looks, or of another one.
    pub(super) fn read(machine: &Machine, pid: Option<u32>) -> Self {
        let process = pid.map_or("/proc/self".to_owned(), |pid| format!("/proc/{pid}"));
        let limits = text(machine, &format!("{process}/limits"));
        let limit = |name: &str| match &limits {
            Fact::Known(text) => Fact::Known(soft_limit(text, name).unwrap_or(u64::MAX)),
            Fact::Unknown(why) => Fact::Unknown(why.clone()),
        };
        let groups = machine.read(&format!("{process}/cgroup")).unwrap_or_default();
        let mounts = machine.read("/proc/self/mounts").unwrap_or_default();
        let capabilities = text(machine, &format!("{process}/status")).map(|status| {
            let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
            line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
        });
        Self {
            rt_runtime_us: number(machine, "/proc/sys/kernel/sched_rt_runtime_us"),
            rt_period_us: number(machine, "/proc/sys/kernel/sched_rt_period_us"),
            fair_server_ns: fair_server(machine),
            group_runtime_us: group_runtime(machine, &groups, &mounts),
            quotas: quotas(machine, &groups, &mounts),
            capabilities,
            rtprio: limit("Max realtime priority"),
            memlock: limit("Max locked memory"),
            rttime_us: limit("Max realtime timeout"),
        }
    }

    fn may(&self, capability: u32) -> Option<bool> {
        self.capabilities.known().map(|mask| mask >> capability & 1 == 1)
    }
}

/// The soft limit in `/proc/PID/limits`; unlimited is the largest number.
fn soft_limit(limits: &str, name: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix(name))?;
    match line.split_whitespace().next()? {
        "unlimited" => Some(u64::MAX),
        number => number.parse().ok(),
    }
}

/// The most that any core's fair server may use, scaled to a period of one second.
fn fair_server(machine: &Machine) -> Fact<i64> {
    const PLACE: &str = "/sys/kernel/debug/sched/fair_server";
    if let Err(error) = std::fs::read_dir(machine.path("/sys/kernel/debug/sched")) {
        let hint = "mount debugfs, and ask as the superuser";
        return match error.kind() {
            std::io::ErrorKind::NotFound => {
                Fact::Unknown(format!("there is no /sys/kernel/debug/sched: {hint}"))
            }
            _ => Fact::Unknown(format!("/sys/kernel/debug/sched: {error}: {hint}")),
        };
    }
    let cores = machine.names(PLACE);
    let of_one = |core: &String| {
        let runtime = machine.number(&format!("{PLACE}/{core}/runtime")).ok()?;
        let period = machine.number(&format!("{PLACE}/{core}/period")).ok()?;
        runtime.checked_mul(1_000)?.checked_div(period / 1_000_000)
    };
    match cores.iter().filter_map(of_one).max() {
        Some(most) => Fact::Known(most),
        // A kernel before 6.12 has none.
        None if cores.is_empty() => Fact::Known(0),
        None => Fact::Unknown(format!("{PLACE} is not readable")),
    }
}

/// Where the controller of a group is mounted: of v1 by its name, of v2 without one.
fn mounted(mounts: &str, controller: Option<&str>) -> Option<String> {
    let fields = mounts.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let found = fields.filter(|fields| fields.len() > 3).find(|fields| match controller {
        Some(name) => fields[2] == "cgroup" && fields[3].split(',').any(|option| option == name),
        None => fields[2] == "cgroup2",
    })?;
    Some(found[1].to_owned())
}

/// The group of a process in `/proc/PID/cgroup`.
fn group_of<'a>(groups: &'a str, controller: Option<&str>) -> Option<&'a str> {
    groups.lines().find_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, group) = rest.split_once(':')?;
        let is_it = match controller {
            Some(name) => controllers.split(',').any(|c| c == name),
            None => controllers.is_empty(),
        };
        is_it.then_some(group)
    })
}

fn group_runtime(machine: &Machine, groups: &str, mounts: &str) -> Option<(String, Fact<i64>)> {
    let group = group_of(groups, Some("cpu"))?;
    let mount = mounted(mounts, Some("cpu"))?;
    let path = format!("{mount}{}/cpu.rt_runtime_us", group.trim_end_matches('/'));
    // A kernel without CONFIG_RT_GROUP_SCHED has no such file, and no such limit.
    machine.has(&path).then(|| (group.to_owned(), number(machine, &path)))
}

/// Quotas of the process' group and of those above it.
fn quotas(machine: &Machine, groups: &str, mounts: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for controller in [None, Some("cpu")] {
        let (Some(group), Some(mount)) =
            (group_of(groups, controller), mounted(mounts, controller))
        else {
            continue;
        };
        let mut group = group.trim_end_matches('/');
        while !group.is_empty() {
            let file = if controller.is_none() { "cpu.max" } else { "cpu.cfs_quota_us" };
            let quota = machine.read(&format!("{mount}{group}/{file}")).unwrap_or_default();
            if !quota.is_empty() && !quota.starts_with("max") && !quota.starts_with('-') {
                found.push((group.to_owned(), format!("{file} = {quota}")));
            }
            group = group.rsplit_once('/').map_or("", |(above, _)| above);
        }
    }
    found
}

/// Numbers of capabilities (capabilities(7)).
const CAP_NET_RAW: u32 = 13;
const CAP_IPC_LOCK: u32 = 14;
const CAP_SYS_NICE: u32 = 23;
/// What a program of some threads locks at least.
const MEMLOCK: u64 = 64 << 20;

static RUNTIME: Check = Check {
    id: "throttling.rt-runtime",
    area: Area::Throttling,
    what: "time for real-time tasks",
    against: &[Need::Wakeup],
    why: "Once real-time tasks have used this share of a period, all of them stop until the next \
          one. The default of 95 % suits tasks that sleep, and protects the machine from a task \
          that never does.",
    fix: "sysctl kernel.sched_rt_runtime_us=950000",
    reboot: false,
};
static FAIR_SERVER: Check = Check {
    id: "throttling.fair-server",
    area: Area::Throttling,
    what: "fair server",
    against: &[Need::Wakeup],
    why: "Since Linux 6.12 the fair server gives normal tasks 50 ms of each second if FIFO tasks \
          never sleep, regardless of sched_rt_runtime_us: setting that to -1 no longer has its \
          former effect.",
    fix: "Keep sched_rt_runtime_us at 950000 and let tasks sleep; if a task must poll endlessly, \
          echo 0 > /sys/kernel/debug/sched/fair_server/cpuN/runtime for its CPU only.",
    reboot: false,
};
static GROUP: Check = Check {
    id: "throttling.group",
    area: Area::Throttling,
    what: "real-time budget of the cgroup",
    against: &[Need::Wakeup],
    why: "With cgroup v1 and CONFIG_RT_GROUP_SCHED, tasks of a group without a budget cannot \
          become real-time: SCHED_FIFO is refused.",
    fix: "Give the group and its ancestors a budget (cpu.rt_runtime_us), or start the programs in \
          the root group.",
    reboot: false,
};
static QUOTA: Check = Check {
    id: "throttling.quota",
    area: Area::Throttling,
    what: "quota of the cgroup",
    against: &[Need::Wakeup],
    why: "Once the group has used its quota of a period, its threads without a real-time priority \
          stop until the next one, including the helper threads of a real-time program.",
    fix: "Remove the quota (`cpu.max` = max; for a container: no --cpus), or start the programs \
          elsewhere.",
    reboot: false,
};
static PRIORITY: Check = Check {
    id: "throttling.priority",
    area: Area::Throttling,
    what: "permission for real-time priority",
    against: &[Need::Wakeup],
    why: "Without it SCHED_FIFO is refused, and the program competes with all others.",
    fix: "Add `@GROUP - rtprio 90` to /etc/security/limits.conf, or give the program \
          CAP_SYS_NICE.",
    reboot: false,
};
static LOCKED: Check = Check {
    id: "throttling.memlock",
    area: Area::Throttling,
    what: "permission to lock memory",
    against: &[Need::Wakeup],
    why: "Memory that is not locked may be on disk when it is needed. If the limit is lower than \
          the program's memory, mlockall fails, and so does AF_XDP.",
    fix: "Add `@GROUP - memlock unlimited` to /etc/security/limits.conf, or give the program \
          CAP_IPC_LOCK.",
    reboot: false,
};
static RTTIME: Check = Check {
    id: "throttling.rttime",
    area: Area::Throttling,
    what: "limit of uninterrupted real-time execution",
    against: &[Need::Wakeup],
    why: "A real-time task that computes for longer without sleeping gets SIGXCPU, which ends it; \
          desktop sessions set this limit.",
    fix: "ulimit -R unlimited, or start the programs outside the desktop session.",
    reboot: false,
};
static RAW: Check = Check {
    id: "throttling.raw-sockets",
    area: Area::Throttling,
    what: "permission for raw frames",
    against: &[Need::Network],
    why: "Channels send frames through AF_PACKET sockets, which need CAP_NET_RAW.",
    fix: "setcap cap_net_raw,cap_sys_nice,cap_ipc_lock+ep PROGRAM, or run it as the superuser.",
    reboot: false,
};

pub(super) static CHECKS: [&Check; 8] =
    [&RUNTIME, &FAIR_SERVER, &GROUP, &QUOTA, &PRIORITY, &LOCKED, &RTTIME, &RAW];

pub(super) fn evaluate(evaluation: &mut Evaluation<'_>) {
    runtime(evaluation);
    let Throttling { group_runtime_us, quotas, .. } = &evaluation.facts.throttling;
    match group_runtime_us {
        None => evaluation.say(&GROUP, State::Ok, "no such limit", "none, or a budget"),
        Some((group, Fact::Known(runtime))) => {
            // -1 is no limit of its own.
            let state = if *runtime == 0 { State::Blocks } else { State::Ok };
            evaluation.say(&GROUP, state, format!("{runtime} µs for {group}"), "a budget");
        }
        Some((_, Fact::Unknown(why))) => evaluation.unknown(&GROUP, why, "a budget"),
    }
    match quotas.first() {
        None => evaluation.say(&QUOTA, State::Ok, "none", "none"),
        Some((group, quota)) => {
            evaluation.say(&QUOTA, State::Advice, format!("{quota} for {group}"), "none");
        }
    }
    permissions(evaluation);
}

fn runtime(evaluation: &mut Evaluation<'_>) {
    let Throttling { rt_runtime_us, rt_period_us, fair_server_ns, .. } =
        &evaluation.facts.throttling;
    let period = rt_period_us.known().copied().unwrap_or(1_000_000).max(1);
    match rt_runtime_us {
        Fact::Known(runtime) => {
            let share = runtime.saturating_mul(100) / period;
            let state = match *runtime {
                0 => State::Blocks,
                runtime if runtime < 0 || share >= 90 => State::Ok,
                _ => State::Advice,
            };
            let value = match *runtime {
                runtime if runtime < 0 => "all of it".to_owned(),
                runtime => format!("{runtime} of {period} µs"),
            };
            evaluation.say(&RUNTIME, state, value, "95 %");
        }
        Fact::Unknown(why) => evaluation.unknown(&RUNTIME, why, "95 %"),
    }
    let unlimited = rt_runtime_us.known().is_some_and(|runtime| *runtime < 0);
    let wanted = if unlimited { "off, or throttling on" } else { "any, with throttling on" };
    let has_one = evaluation.facts.kernel.is_at_least(6, 12);
    match fair_server_ns {
        _ if has_one == Some(false) => evaluation.say(&FAIR_SERVER, State::Ok, "none", wanted),
        Fact::Known(ns) => {
            let value = format!("{} µs of each second", ns / 1_000);
            evaluation.require(&FAIR_SERVER, !unlimited || *ns == 0, value, wanted);
        }
        // Its default stands unless somebody took the trouble.
        Fact::Unknown(why) if unlimited => evaluation.say(
            &FAIR_SERVER,
            State::Advice,
            format!("50 ms of each second, unless it was changed ({why})"),
            wanted,
        ),
        Fact::Unknown(why) => evaluation.unknown(&FAIR_SERVER, why, wanted),
    }
}

fn permissions(evaluation: &mut Evaluation<'_>) {
    let throttling = &evaluation.facts.throttling;
    let Throttling { capabilities, rtprio, memlock, rttime_us, .. } = throttling;
    let highest = evaluation.requirements.priority();
    let least = u64::from(highest.unwrap_or(1));
    let wanted = format!("{least} at least");
    match (throttling.may(CAP_SYS_NICE), rtprio) {
        (Some(true), _) => evaluation.say(&PRIORITY, State::Ok, "any (CAP_SYS_NICE)", wanted),
        (_, Fact::Known(limit)) => {
            let lacks = if highest.is_some() { State::Blocks } else { State::Advice };
            let state = if *limit >= least { State::Ok } else { lacks };
            evaluation.say(&PRIORITY, state, format!("up to {}", limit.min(&99)), wanted);
        }
        (_, Fact::Unknown(why)) => evaluation.unknown(&PRIORITY, why, wanted),
    }
    let wanted = format!("{} MiB at least", MEMLOCK >> 20);
    match (throttling.may(CAP_IPC_LOCK), memlock) {
        (Some(true), _) => evaluation.say(&LOCKED, State::Ok, "any (CAP_IPC_LOCK)", wanted),
        (_, Fact::Known(u64::MAX)) => evaluation.say(&LOCKED, State::Ok, "unlimited", wanted),
        (_, Fact::Known(limit)) => {
            evaluation.require(&LOCKED, *limit >= MEMLOCK, format!("{} KiB", limit >> 10), wanted);
        }
        (_, Fact::Unknown(why)) => evaluation.unknown(&LOCKED, why, wanted),
    }
    match rttime_us {
        Fact::Known(u64::MAX) => evaluation.say(&RTTIME, State::Ok, "none", "none"),
        Fact::Known(us) => evaluation.require(&RTTIME, false, format!("{us} µs"), "none"),
        Fact::Unknown(why) => evaluation.unknown(&RTTIME, why, "none"),
    }
    match capabilities {
        Fact::Known(_) => {
            let state = match throttling.may(CAP_NET_RAW) {
                Some(true) => State::Ok,
                _ => State::Blocks,
            };
            let value = if state == State::Ok { "yes" } else { "no" };
            evaluation.say(&RAW, state, value, "yes");
        }
        Fact::Unknown(why) => evaluation.unknown(&RAW, why, "yes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROUPS: &str = "4:memory:/a\n1:cpu,cpuacct:/rt/arm\n0::/user.slice/x";
    const MOUNTS: &str = "cgroup /cg/memory cgroup rw,memory 0 0\n\
                          cgroup /cg/cpu cgroup rw,cpu,cpuacct 0 0\n\
                          cgroup2 /cg/unified cgroup2 rw 0 0";

    #[test]
    fn groups_and_their_mounts_are_found_in_both_versions() {
        assert_eq!(group_of(GROUPS, Some("cpu")), Some("/rt/arm"));
        assert_eq!(group_of(GROUPS, None), Some("/user.slice/x"));
        assert_eq!(group_of(GROUPS, Some("cpuset")), None);
        assert_eq!(mounted(MOUNTS, Some("cpu")).as_deref(), Some("/cg/cpu"));
        assert_eq!(mounted(MOUNTS, None).as_deref(), Some("/cg/unified"));
        assert_eq!(mounted("", None), None);
    }

    #[test]
    fn a_quota_of_any_group_above_counts() {
        let directory = tempfile::tempdir().unwrap();
        let machine = Machine::below(directory.path());
        std::fs::create_dir_all(machine.path("/cg/unified/user.slice/x")).unwrap();
        std::fs::write(machine.path("/cg/unified/user.slice/x/cpu.max"), "max 100000").unwrap();
        assert!(quotas(&machine, GROUPS, MOUNTS).is_empty());
        std::fs::write(machine.path("/cg/unified/user.slice/cpu.max"), "50000 100000").unwrap();
        let expected = ("/user.slice".to_owned(), "cpu.max = 50000 100000".to_owned());
        assert_eq!(quotas(&machine, GROUPS, MOUNTS), [expected]);
    }

    #[test]
    fn limits_may_be_unlimited() {
        let limits = "Limit  Soft  Hard  Units\nMax locked memory  8388608  8388608  bytes\n\
                      Max realtime timeout  unlimited  unlimited  us";
        assert_eq!(soft_limit(limits, "Max locked memory"), Some(8_388_608));
        assert_eq!(soft_limit(limits, "Max realtime timeout"), Some(u64::MAX));
        assert_eq!(soft_limit(limits, "Max cpu time"), None);
    }
}
