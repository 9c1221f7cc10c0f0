//! How the machine is, as far as a plan needs to know.

use super::boot::DOCUMENT;
use super::edge::Edge;
use super::interface::carriers;
use super::target::{Bound, Target, Value};
use super::threads;
use onbeat_configuration::Disciplines;
use onbeat_run::machine::{CpuList, Machine};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

pub(super) const ONLINE: &str = "/sys/devices/system/cpu/online";
const GROUPS: &str = "/sys/fs/cgroup";
/// The most interfaces on top of one that are looked at.
const UPPERS_MAX: usize = 256;

/// What a plan needs to know of a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// The processors that there are.
    pub online: CpuList,
    /// Those that share a core with others, each set once.
    pub siblings: BTreeSet<CpuList>,
    /// Which control groups there are.
    pub cgroups: Cgroups,
    /// Tasks that are bound to some processors only, of the set that others are moved out of.
    pub bound: Vec<Bound>,
    /// Files of `/proc` and `/sys` that a plan may change, as they are.
    pub files: BTreeMap<String, String>,
    /// The interrupts that can be moved, by their numbers.
    pub irqs: Vec<Irq>,
    /// The kernel's threads that serve interrupts and interfaces.
    pub threads: Vec<KernelThread>,
    /// The interface that is asked about, if it is there.
    pub interface: Option<InterfaceFacts>,
    /// The kernel's command line.
    pub command_line: String,
    /// Whether the kernel is PREEMPT_RT.
    pub realtime: bool,
    /// Whether a program runs that moves interrupts.
    pub irqbalance: bool,
    /// Whether there is a directory for additions to the boot loader's settings.
    pub boot_directory: bool,
    /// Whether idle states can be held.
    pub latency: bool,
}

/// The control groups for processors.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Cgroups {
    /// None.
    #[default]
    None,
    /// Version 1.
    V1 {
        /// Where the sets are mounted.
        mount: String,
        /// The memory nodes that there are: a set must have some.
        memory: String,
    },
    /// Version 2.
    V2 {
        /// Where the groups are mounted.
        mount: String,
    },
}

/// An interrupt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Irq {
    /// Its number.
    pub number: u32,
    /// Who handles it, if anyone.
    pub actions: String,
    /// The processors that it may go to.
    pub affinity: CpuList,
}

/// A thread of the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelThread {
    /// Its name up to what tells it from others of its kind: `irq/24-`.
    pub prefix: String,
    /// Its whole name.
    pub name: String,
    /// Its scheduling: `fifo:50`.
    pub scheduling: String,
}

/// An interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InterfaceFacts {
    /// Its name.
    pub name: String,
    /// What of the user's it carries.
    pub carries: Option<&'static str>,
    /// Its interrupts.
    pub irqs: BTreeSet<u32>,
    /// How it puts them off.
    pub coalescing: Value,
    /// Its queueing disciplines.
    pub qdiscs: Value,
    /// How many queues it sends from.
    pub queues: usize,
    /// The interfaces for VLANs on it that a plan may want and that are there.
    pub vlans: BTreeSet<String>,
}

/// Looks at a machine. `interface` is the one that is to be set, `sessions` the addresses that the
/// user works from, `vlans` the names that a plan may make. Reads only.
pub fn snapshot(
    edge: &Edge,
    interface: Option<&str>,
    sessions: &BTreeSet<IpAddr>,
    vlans: &[String],
) -> Snapshot {
    let machine = edge.machine();
    let online = machine.cpus(ONLINE).unwrap_or_default();
    let cgroups = cgroups(machine);
    let bound = match &cgroups {
        Cgroups::V1 { mount, .. } => bound(machine, mount, &online),
        _ => Vec::new(),
    };
    Snapshot {
        siblings: siblings(machine, &online),
        bound,
        files: files(machine, &cgroups, interface),
        irqs: irqs(machine),
        threads: kernel_threads(machine),
        interface: interface.and_then(|name| facts(edge, name, sessions, vlans)),
        command_line: machine.read("/proc/cmdline").unwrap_or_default(),
        realtime: machine.number("/sys/kernel/realtime").is_ok_and(|on| on == 1),
        irqbalance: threads::all(machine).iter().any(|t| !t.kernel && t.name == "irqbalance"),
        boot_directory: machine.has(DOCUMENT.rsplit_once('/').map_or("", |(path, _)| path)),
        latency: machine.has("/dev/cpu_dma_latency"),
        cgroups,
        online,
    }
}

/// A controller is of version 1 or of version 2, on machines that have both, too.
fn cgroups(machine: &Machine) -> Cgroups {
    let controllers = machine.read(&format!("{GROUPS}/cgroup.controllers")).unwrap_or_default();
    let mount = format!("{GROUPS}/cpuset");
    if controllers.split_whitespace().any(|name| name == "cpuset") {
        return Cgroups::V2 { mount: GROUPS.to_owned() };
    }
    match machine.read(&format!("{mount}/cpuset.mems")) {
        Ok(memory) => Cgroups::V1 { mount, memory },
        Err(_) => Cgroups::None,
    }
}

/// The tasks of the upper set that may use some of its processors only.
fn bound(machine: &Machine, mount: &str, online: &CpuList) -> Vec<Bound> {
    let tasks = machine.read(&format!("{mount}/tasks")).unwrap_or_default();
    let of_one = |number: u32| {
        let cpus = threads::allowed(machine, number)?;
        let start = threads::task(machine, number)?.start;
        let some = !online.without(&cpus).is_empty();
        some.then(|| Bound { task: number, start, cpus: cpus.to_string() })
    };
    tasks.lines().filter_map(|line| line.parse().ok()).filter_map(of_one).collect()
}

/// The files that a plan may change.
fn files(
    machine: &Machine,
    cgroups: &Cgroups,
    interface: Option<&str>,
) -> BTreeMap<String, String> {
    let mut paths: Vec<String> = [
        "/proc/irq/default_smp_affinity",
        "/sys/devices/virtual/workqueue/cpumask",
        "/sys/bus/workqueue/devices/writeback/cpumask",
        "/proc/sys/kernel/nmi_watchdog",
        "/proc/sys/kernel/numa_balancing",
        "/proc/sys/kernel/sched_rt_runtime_us",
        "/proc/sys/vm/stat_interval",
    ]
    .map(str::to_owned)
    .to_vec();
    for policy in machine.names("/sys/devices/system/cpu/cpufreq") {
        let path = |file| format!("/sys/devices/system/cpu/cpufreq/{policy}/{file}");
        paths.extend(["scaling_governor", "scaling_available_governors", "related_cpus"].map(path));
    }
    if let Cgroups::V1 { mount, .. } = cgroups {
        paths.push(format!("{mount}/cpuset.sched_load_balance"));
    }
    if let Some(name) = interface {
        let path = |file| format!("/sys/class/net/{name}/{file}");
        paths.extend(["napi_defer_hard_irqs", "gro_flush_timeout", "threaded"].map(path));
    }
    paths.into_iter().filter_map(|path| machine.read(&path).ok().map(|text| (path, text))).collect()
}

/// The interrupts that say where they go.
pub(super) fn irqs(machine: &Machine) -> Vec<Irq> {
    let of_one = |name: String| {
        let number = name.parse().ok()?;
        let affinity = machine.cpus(&format!("/proc/irq/{name}/smp_affinity_list")).ok()?;
        let actions = machine.read(&format!("/sys/kernel/irq/{name}/actions")).unwrap_or_default();
        Some(Irq { number, actions, affinity })
    };
    machine.names("/proc/irq").into_iter().filter_map(of_one).collect()
}

fn siblings(machine: &Machine, online: &CpuList) -> BTreeSet<CpuList> {
    let path =
        |cpu: &u16| format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
    let sets = online.0.iter().filter_map(|cpu| machine.cpus(&path(cpu)).ok());
    sets.filter(|set| set.0.len() > 1).collect()
}

/// Threads of interrupts, `irq/24-eth0`, and of interfaces, `napi/eth0-8193`. Those of several
/// handlers of one interrupt count as one.
fn kernel_threads(machine: &Machine) -> Vec<KernelThread> {
    let of_one = |task: threads::Task| {
        let (kind, rest) = task.name.split_once('/').filter(|_| task.kernel)?;
        let end = match kind {
            "irq" => rest.find('-')?,
            "napi" => rest.rfind('-')?,
            _ => return None,
        };
        let prefix = format!("{kind}/{}", &rest[..=end]);
        Some(KernelThread { prefix, name: task.name.clone(), scheduling: task.scheduling })
    };
    let mut threads: Vec<KernelThread> =
        threads::all(machine).into_iter().filter_map(of_one).collect();
    threads.sort_by(|a, b| a.prefix.cmp(&b.prefix));
    threads.dedup_by(|a, b| a.prefix == b.prefix);
    threads
}

/// An interface and those that are made of it: a bridge, a bond, a VLAN.
fn uppers(machine: &Machine, name: &str) -> BTreeSet<String> {
    let mut all = BTreeSet::from([name.to_owned()]);
    let mut new = vec![name.to_owned()];
    while let Some(one) = new.pop().filter(|_| all.len() < UPPERS_MAX) {
        let links = machine.names(&format!("/sys/class/net/{one}"));
        for upper in links.iter().filter_map(|link| link.strip_prefix("upper_")) {
            if all.insert(upper.to_owned()) {
                new.push(upper.to_owned());
            }
        }
    }
    all
}

fn facts(
    edge: &Edge,
    name: &str,
    sessions: &BTreeSet<IpAddr>,
    vlans: &[String],
) -> Option<InterfaceFacts> {
    let machine = edge.machine();
    let directory = format!("/sys/class/net/{name}");
    if name.contains('/') || !machine.has(&directory) {
        return None;
    }
    let route = |file: &str| machine.read(&format!("/proc/net/{file}")).unwrap_or_default();
    let carriers = carriers(&route("route"), &route("ipv6_route"), sessions);
    let get = |target: &Target| edge.get(target).unwrap_or_default();
    // Those of its device, or of the device that this is a part of, and those of its name.
    let mut irqs: BTreeSet<u32> = ["device", "device/.."]
        .iter()
        .flat_map(|device| machine.names(&format!("{directory}/{device}/msi_irqs")))
        .filter_map(|number| number.parse().ok())
        .collect();
    let named = super::snapshot::irqs(machine).into_iter().filter(|irq| {
        let mut actions = irq.actions.split(',');
        actions.any(|action| action == name || action.starts_with(&format!("{name}-")))
    });
    irqs.extend(named.map(|irq| irq.number));
    let queues = machine.names(&format!("{directory}/queues"));
    Some(InterfaceFacts {
        name: name.to_owned(),
        carries: uppers(machine, name).iter().find_map(|name| carriers.get(name).copied()),
        irqs,
        coalescing: get(&Target::Coalescing { interface: name.to_owned() }),
        qdiscs: get(&Target::Qdiscs { interface: name.to_owned(), made: Disciplines::default() }),
        queues: queues.iter().filter(|queue| queue.starts_with("tx-")).count(),
        vlans: vlans
            .iter()
            .filter(|vlan| edge.kernel().vlan(vlan).is_ok_and(|there| there.is_some()))
            .cloned()
            .collect(),
    })
}
