//! From how a machine is and what is wanted to a list of changes: a pure function.

use super::boot;
use super::edge::Edge;
use super::snapshot::{Cgroups, InterfaceFacts, Irq, Snapshot};
use super::target::{Form, Target, Value};
use crate::coalescing::Coalescing;
use onbeat_configuration::Traffic;
use onbeat_run::machine::CpuList;
use std::io;

/// How processors are isolated (Pérez et al. 2024, section 3.2.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// Not at all.
    #[default]
    None,
    /// At run time, by a set of processors of their own.
    Cpuset,
    /// By boot parameters, as the profile cpu-partitioning of TuneD does.
    TunedLike,
}

impl Profile {
    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Cpuset => "cpuset",
            Self::TunedLike => "tuned-like",
        }
    }
}

/// What is wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requirement {
    /// How processors are isolated.
    pub profile: Profile,
    /// Which.
    pub cores: CpuList,
    /// The interface that carries the system's messages.
    pub interface: Option<String>,
    /// Whether it is set also if it carries the user's own session or a default route.
    pub force: bool,
    /// Whether its packets are handled in threads of their own.
    pub napi_threads: bool,
    /// Whether boot parameters are written.
    pub write_boot: bool,
    /// The lowest and the highest priority of the application's tasks.
    pub priorities: Option<(u8, u8)>,
    /// What the system's plan asks of the interface.
    pub traffic: Option<Traffic>,
}

/// One setting to be changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// What it is, for a person.
    pub what: String,
    /// What is set.
    pub target: Target,
    /// Its value in the snapshot.
    pub old: Value,
    /// The value that is wanted.
    pub new: Value,
    /// Whether the tune continues if the kernel refuses it.
    pub may_refuse: bool,
    /// Whether it takes effect after a reboot only.
    pub reboot: bool,
}

/// What is to be done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// In the order in which they are made. Undone in reverse: sets of processors go first, then
    /// what else there is, so that no task loses its budget before it has left its set.
    pub changes: Vec<Change>,
    /// Boot parameters that the running kernel does not have.
    pub boot: Vec<String>,
    /// What the user should know.
    pub notes: Vec<String>,
}

impl Plan {
    /// Gives each change the value that its target has now, and leaves out those that are so
    /// already: a snapshot does not look at what only a tune makes.
    ///
    /// # Errors
    ///
    /// A target that is there cannot be read.
    pub fn settle(&mut self, edge: &Edge) -> io::Result<()> {
        for change in &mut self.changes {
            let named = |e| io::Error::other(format!("{}: {e}", change.target.place()));
            change.old = edge.get(&change.target).map_err(named)?;
        }
        self.changes.retain(|change| !change.target.same(&change.old, &change.new));
        Ok(())
    }
}

/// A requirement that cannot be met.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WishError {
    /// A profile that isolates, without processors.
    #[error("profile {0} needs --cores: the processors to isolate, as in --cores 2-3")]
    NoCores(&'static str),
    /// Processors for a profile that isolates none.
    #[error("profile none isolates no processors: leave --cores out, or choose --profile cpuset")]
    Cores,
    /// There are no such processors.
    #[error("there are no processors {0}: this machine has {1}")]
    NoSuchCores(CpuList, CpuList),
    /// None is left.
    #[error("at least one processor must stay for everything else: this machine has {0}")]
    NoneLeft(CpuList),
    /// There are no control groups.
    #[error("no control groups for processors are mounted below /sys/fs/cgroup")]
    NoCgroups,
    /// There is no such interface.
    #[error("there is no interface `{0}`")]
    NoInterface(String),
    /// It is the user's own.
    #[error("{0} carries {1}, and is not touched without --force")]
    Carries(String, &'static str),
    /// There is no place for boot parameters.
    #[error(
        "--write-boot needs /etc/default/grub.d, which is not there: leave it out, and add the \
         parameters that are printed to your boot loader's settings"
    )]
    NoBootDirectory,
}

/// The changes that lead from the one to the other.
///
/// # Errors
///
/// All that is wrong with the requirement, on this machine.
pub fn plan(snapshot: &Snapshot, wish: &Requirement) -> Result<Plan, Vec<WishError>> {
    let errors = wrong(snapshot, wish);
    if !errors.is_empty() {
        return Err(errors);
    }
    let rest = snapshot.online.without(&wish.cores);
    let mut planner = Planner { snapshot, wish, rest, plan: Plan::default() };
    planner.boot();
    planner.settings();
    planner.governors();
    if wish.profile != Profile::None {
        planner.work_queues();
        planner.interrupts();
    }
    if let Some(facts) = &snapshot.interface {
        planner.interface(facts);
    }
    planner.threads();
    if snapshot.latency {
        let what = "the processors stay out of idle states".to_owned();
        planner.add(what, Target::Latency, None, "0".to_owned());
    } else {
        planner.note("there is no /dev/cpu_dma_latency: idle states stay as they are");
    }
    if wish.profile == Profile::Cpuset {
        planner.sets();
    }
    planner.notes();
    Ok(planner.plan)
}

fn wrong(snapshot: &Snapshot, wish: &Requirement) -> Vec<WishError> {
    let mut errors = Vec::new();
    let isolates = wish.profile != Profile::None;
    let (online, cores) = (&snapshot.online, &wish.cores);
    if isolates && cores.is_empty() {
        errors.push(WishError::NoCores(wish.profile.as_str()));
    }
    if !isolates && !cores.is_empty() {
        errors.push(WishError::Cores);
    }
    let missing = cores.without(online);
    if !missing.is_empty() {
        errors.push(WishError::NoSuchCores(missing, online.clone()));
    } else if isolates && online.without(cores).is_empty() {
        errors.push(WishError::NoneLeft(online.clone()));
    }
    if wish.profile == Profile::Cpuset && snapshot.cgroups == Cgroups::None {
        errors.push(WishError::NoCgroups);
    }
    if wish.write_boot && !snapshot.boot_directory {
        errors.push(WishError::NoBootDirectory);
    }
    match (&wish.interface, &snapshot.interface) {
        (Some(name), None) => errors.push(WishError::NoInterface(name.clone())),
        (Some(name), Some(InterfaceFacts { carries: Some(what), .. })) if !wish.force => {
            errors.push(WishError::Carries(name.clone(), what));
        }
        _ => {}
    }
    errors
}

/// Interrupts away from processors that are not `rest`.
pub(super) fn irq_changes(irqs: &[Irq], rest: &CpuList) -> Vec<Change> {
    let elsewhere = irqs.iter().filter(|irq| !irq.affinity.without(rest).is_empty());
    let change = |irq: &Irq| {
        let name =
            if irq.actions.is_empty() { String::new() } else { format!(" ({})", irq.actions) };
        // Where some of its processors stay, it keeps those.
        let left = irq.affinity.and(rest);
        let new = if left.is_empty() { rest } else { &left };
        Change {
            what: format!("interrupt {}{name} on {new}", irq.number),
            target: Target::File {
                path: format!("/proc/irq/{}/smp_affinity_list", irq.number),
                form: Form::List,
            },
            old: Some(irq.affinity.to_string()),
            new: Some(new.to_string()),
            // The kernel manages some itself, and some belong to one processor.
            may_refuse: true,
            reboot: false,
        }
    };
    elsewhere.map(change).collect()
}

struct Planner<'a> {
    snapshot: &'a Snapshot,
    wish: &'a Requirement,
    /// The processors for everything else.
    rest: CpuList,
    plan: Plan,
}

impl Planner<'_> {
    fn note(&mut self, text: impl Into<String>) {
        self.plan.notes.push(text.into());
    }

    /// A change, unless it is so already.
    fn add(&mut self, what: String, target: Target, old: Value, new: String) {
        let new = Some(new);
        if !target.same(&old, &new) {
            // Threads come and go with their interface, and not every driver and kernel has all
            // that a network needs: what is refused is said.
            let may_refuse = matches!(
                target,
                Target::Threads { .. }
                    | Target::Coalescing { .. }
                    | Target::Qdiscs { .. }
                    | Target::Vlan { .. }
            );
            let reboot = false;
            self.plan.changes.push(Change { what, target, old, new, may_refuse, reboot });
        }
    }

    /// A change of a file, if the machine has it.
    fn file(&mut self, what: &str, path: &str, form: Form, new: &str) {
        let Some(old) = self.snapshot.files.get(path).cloned() else { return };
        let target = Target::File { path: path.to_owned(), form };
        self.add(what.to_owned(), target, Some(old), new.to_owned());
    }

    fn boot(&mut self) {
        let Self { snapshot, wish, .. } = self;
        let all = boot::parameters(wish.profile, &wish.cores, &self.rest, snapshot.realtime);
        let has = |wanted: &String| snapshot.command_line.split(' ').any(|word| word == wanted);
        self.plan.boot = all.iter().filter(|parameter| !has(parameter)).cloned().collect();
        if wish.write_boot && !all.is_empty() {
            self.plan.changes.push(Change {
                what: format!("boot parameters {}", all.join(" ")),
                target: Target::Document { path: boot::DOCUMENT.to_owned() },
                old: None,
                new: Some(boot::document(&all)),
                may_refuse: false,
                reboot: true,
            });
        }
    }

    fn settings(&mut self) {
        let numa = "/proc/sys/kernel/numa_balancing";
        self.file("pages stay on their memory nodes", numa, Form::Text, "0");
        if self.wish.profile != Profile::None {
            let watchdog = "/proc/sys/kernel/nmi_watchdog";
            self.file("no watchdog interrupt on each processor", watchdog, Form::Text, "0");
            let statistics = "/proc/sys/vm/stat_interval";
            self.file("memory statistics each 10 s", statistics, Form::Text, "10");
        }
        if let Some(limit) = self.snapshot.files.get("/proc/sys/kernel/sched_rt_runtime_us") {
            let text = match limit.as_str() {
                "-1" => "real-time throttling is off (sched_rt_runtime_us is -1): a program that \
                         never waits takes its processor for ever"
                    .to_owned(),
                _ => format!("real-time throttling stays on ({limit} µs): docs/tune.md says why"),
            };
            self.plan.notes.push(text);
        }
    }

    fn governors(&mut self) {
        let suffix = "/scaling_governor";
        let files = self.snapshot.files.keys().filter_map(|path| path.strip_suffix(suffix));
        for directory in files.map(str::to_owned).collect::<Vec<_>>() {
            let other = |file: &str| self.snapshot.files.get(&format!("{directory}/{file}"));
            let available = other("scaling_available_governors").cloned().unwrap_or_default();
            let cpus = other("related_cpus").map(|text| text.replace(' ', ","));
            let cpus: CpuList = cpus.and_then(|text| text.parse().ok()).unwrap_or_default();
            let concerned = self.wish.cores.is_empty() || !cpus.and(&self.wish.cores).is_empty();
            if concerned && available.split_whitespace().any(|name| name == "performance") {
                let what = format!("the highest clock rate of processors {cpus}");
                self.file(&what, &format!("{directory}{suffix}"), Form::Text, "performance");
            }
        }
    }

    fn work_queues(&mut self) {
        let mask = self.rest.mask();
        let all = "/sys/devices/virtual/workqueue/cpumask";
        let writeback = "/sys/bus/workqueue/devices/writeback/cpumask";
        self.file("unbound kernel work elsewhere", all, Form::Mask, &mask);
        self.file("writing to disks elsewhere", writeback, Form::Mask, &mask);
        let new = "/proc/irq/default_smp_affinity";
        self.file("new interrupts elsewhere", new, Form::Mask, &mask);
    }

    fn interrupts(&mut self) {
        self.plan.changes.extend(irq_changes(&self.snapshot.irqs, &self.rest));
        if self.snapshot.irqbalance {
            self.note(
                "irqbalance runs, and moves interrupts back: stop it (systemctl disable --now \
                 irqbalance), or keep `onbeat tune apply --watch` running",
            );
        }
    }

    fn interface(&mut self, facts: &InterfaceFacts) {
        let name = &facts.name;
        if let Some(old) = facts.coalescing.as_deref().and_then(|t| t.parse::<Coalescing>().ok()) {
            let target = Target::Coalescing { interface: name.clone() };
            let what = format!("{name} gives each frame its interrupt at once");
            self.add(what, target, facts.coalescing.clone(), old.at_once().to_string());
        }
        let path = |file: &str| format!("/sys/class/net/{name}/{file}");
        let deferred = format!("{name} defers no interrupts while it is polled");
        self.file(&deferred, &path("napi_defer_hard_irqs"), Form::Text, "0");
        let flushed = format!("{name} gathers no frames");
        self.file(&flushed, &path("gro_flush_timeout"), Form::Text, "0");
        if self.wish.napi_threads {
            let threads = format!("{name} handles its packets in threads");
            self.file(&threads, &path("threaded"), Form::Text, "1");
        }
        let Some(traffic) = &self.wish.traffic else { return };
        match (traffic.disciplines(facts.queues), &facts.qdiscs) {
            (Ok(None), _) => {}
            (Err(why), _) => self.note(format!("{name}: {why}")),
            (Ok(Some(made)), Some(has)) if *has != made.value() => self.note(format!(
                "{name} has queueing disciplines of somebody else ({has}), which stay: nothing of \
                 the plan is shaped"
            )),
            (Ok(Some(made)), has) => {
                let what = format!("{name} sends as the plan says");
                let value = made.value();
                let target = Target::Qdiscs { interface: name.clone(), made };
                self.add(what, target, has.clone(), value);
            }
        }
        for vlan in traffic.vlans.iter().filter(|vlan| !facts.vlans.contains(&vlan.name(name))) {
            let what = format!("VLAN {} on {name}", vlan.number);
            let target = Target::Vlan { interface: name.clone(), vlan: vlan.clone() };
            self.add(what, target, None, "vlan".to_owned());
        }
    }

    /// The threads that bring messages in go before the tasks that wait for them, all other
    /// interrupts after these. Without the application's priorities, or its interface, nothing is
    /// known, and nothing is done.
    fn threads(&mut self) {
        let Some((lowest, highest)) = self.wish.priorities else { return };
        let Some(facts) = &self.snapshot.interface else { return };
        if highest == 99 {
            self.note("a task has priority 99: no thread of the kernel can go before it");
        }
        let (above, below) = ((highest + 1).min(99), lowest.saturating_sub(1).max(1));
        let napi = format!("napi/{}-", facts.name);
        let known = self.snapshot.threads.iter().any(|thread| thread.prefix == napi);
        for thread in &self.snapshot.threads {
            let number = thread.prefix.trim_start_matches("irq/").trim_end_matches('-');
            let number = number.parse().unwrap_or(u32::MAX);
            let ours = thread.prefix == napi || facts.irqs.contains(&number);
            let now: u8 =
                thread.scheduling.split_once(':').map_or(0, |(_, p)| p.parse().unwrap_or(0));
            let (new, side) = match ours {
                true => (above, "before"),
                false if now < lowest => continue,
                false => (below, "after"),
            };
            let what = format!("{} goes {side} the application's tasks", thread.name);
            let target = Target::Threads { prefix: thread.prefix.clone() };
            self.add(what, target, Some(thread.scheduling.clone()), format!("fifo:{new}"));
        }
        // Their threads begin with the change that asks for them.
        if self.wish.napi_threads && !known {
            let what = format!("{napi}* go before the application's tasks");
            self.add(what, Target::Threads { prefix: napi }, None, format!("fifo:{above}"));
        }
    }

    fn sets(&mut self) {
        let cores = self.wish.cores.clone();
        match self.snapshot.cgroups.clone() {
            Cgroups::None => {}
            Cgroups::V2 { mount } => {
                let target = Target::Controller { group: mount.clone(), name: "cpuset".to_owned() };
                let what = "groups may have processors of their own".to_owned();
                self.add(what, target, None, "on".to_owned());
                let settings = format!("cpuset.cpus={cores}\ncpuset.cpus.partition=isolated");
                let what = format!("an isolated partition of processors {cores}");
                self.add(what, Target::Group { path: format!("{mount}/onbeat") }, None, settings);
            }
            Cgroups::V1 { mount, memory } => self.sets_of_version_1(&mount, &memory, &cores),
        }
    }

    /// Two sets (Pérez et al. 2024, section 3.2.2), and no balancing between them.
    fn sets_of_version_1(&mut self, mount: &str, memory: &str, cores: &CpuList) {
        let settings = |cpus: &CpuList, balance: u8| {
            let memory = format!("cpuset.cpus={cpus}\ncpuset.mems={memory}");
            format!("{memory}\ncpuset.sched_load_balance={balance}")
        };
        let rest = self.rest.clone();
        let everything = format!("{mount}/onbeat-everything");
        for (path, cpus, what, balance) in [
            (format!("{mount}/onbeat"), cores, "a set of isolated processors", 0),
            (everything.clone(), &rest, "a set for everything else, processors", 1),
        ] {
            let target = Target::Group { path };
            self.add(format!("{what} {cpus}"), target, None, settings(cpus, balance));
        }
        let bound = self.snapshot.bound.clone();
        let tasks = Target::Tasks { from: mount.to_owned(), to: everything, bound };
        self.add(format!("all tasks that can be moved on {rest}"), tasks, None, "moved".to_owned());
        let balance = format!("{mount}/cpuset.sched_load_balance");
        self.file("no balancing between the sets", &balance, Form::Text, "0");
    }

    fn notes(&mut self) {
        let cores = &self.wish.cores;
        let torn = |set: &&CpuList| !set.and(cores).is_empty() && !set.without(cores).is_empty();
        let torn: Vec<_> =
            self.snapshot.siblings.iter().filter(torn).map(ToString::to_string).collect();
        if !torn.is_empty() {
            self.note(format!(
                "processors {} share a core, of which only a part is isolated: isolate both, or \
                 boot with nosmt",
                torn.join(" and ")
            ));
        }
        if !self.plan.boot.is_empty() && !self.wish.write_boot {
            let parameters = self.plan.boot.join(" ");
            self.note(format!("boot parameters for more, after a reboot: {parameters}"));
        }
    }
}
