//! Which processors are kept free for real-time threads, by what, and how to measure there.

use super::{CpuPlacement, allowed_cpus};
use onbeat_run::machine::{CpuList, Machine};
use std::collections::BTreeMap;
use std::io;

/// Parameters of the kernel's command line that keep processors free: TuneD's profile
/// cpu-partitioning sets `nohz_full`, its real-time profiles set `isolcpus`, too.
const PARAMETERS: [&str; 2] = ["isolcpus", "nohz_full"];
/// Where version 2 of control groups is mounted, alone or beside version 1.
const VERSION_2: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
/// Where the processor sets of version 1 are.
const VERSION_1: &str = "/sys/fs/cgroup/cpuset";
/// By custom the set of version 1 to which all other tasks were moved.
const HOUSEKEEPING: &str = "system";
/// The set of version 1 that `onbeat tune` makes.
const TUNED: &str = "onbeat";
/// How far down sets are looked for, and the most directories.
const DEPTH_MAX: usize = 4;
const GROUPS_MAX: usize = 10_000;

/// The processors that are kept free, and by what.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Isolated {
    /// By the kernel's command line.
    pub at_boot: CpuList,
    /// By processor sets, made at run time: the set's directory and its processors.
    pub sets: BTreeMap<String, CpuList>,
}

/// This process in a processor set; it goes back to its own when this goes.
#[derive(Debug)]
pub struct Entered {
    /// The processor to measure on.
    pub cpu: u16,
    /// What to write its number to, to be where it was before; `None` where it has stayed there.
    pub outside: Option<std::path::PathBuf>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        if let Some(outside) = &self.outside {
            // Else it ends where it is, soon.
            let _ = std::fs::write(outside, std::process::id().to_string());
        }
    }
}

impl Isolated {
    /// Looks at a machine; changes nothing.
    pub fn of(machine: &Machine) -> Self {
        let online = machine.cpus("/sys/devices/system/cpu/online").unwrap_or_default();
        let mut found = Self { at_boot: at_boot(machine), sets: BTreeMap::new() };
        for root in VERSION_2 {
            // The root itself is no set, and what is mounted below it has none of these files.
            found.below(machine, root, DEPTH_MAX, &|group| partition(machine, group));
        }
        found.below(machine, VERSION_1, DEPTH_MAX, &|group| exclusive(machine, group));
        // A set of all processors keeps none of them free.
        found.sets.retain(|_, cpus| !cpus.is_empty() && !online.without(cpus).is_empty());
        found
    }

    /// All of them.
    pub fn cpus(&self) -> CpuList {
        let sets = self.sets.values().chain([&self.at_boot]);
        CpuList(sets.flat_map(|cpus| cpus.0.iter().copied()).collect())
    }

    fn below(
        &mut self,
        machine: &Machine,
        root: &str,
        depth: usize,
        isolates: &impl Fn(&str) -> Option<CpuList>,
    ) {
        for name in machine.names(root) {
            let group = format!("{root}/{name}");
            let is_group = machine.path(&group).is_dir() && group != VERSION_1;
            if !is_group || VERSION_2.contains(&group.as_str()) || self.sets.len() >= GROUPS_MAX {
                continue;
            }
            match isolates(&group) {
                Some(cpus) => {
                    self.sets.insert(group, cpus);
                }
                None if depth > 1 => self.below(machine, &group, depth - 1, isolates),
                None => {}
            }
        }
    }

    /// Finds a processor among these that this process may run on, and enters the set that has it
    /// if it must. Until what is returned goes, threads can be placed there.
    ///
    /// # Errors
    /// When there is none: what the system says of the last one, or that nothing is isolated.
    pub fn enter(&self, machine: &Machine) -> io::Result<Entered> {
        let placed = |cpu: u16| CpuPlacement { cpu, priority: 0 }.run(|| ());
        let mut failed = io::Error::other("no processor is isolated");
        for cpu in self.cpus().0 {
            // The affinity may be narrower than what is allowed: TuneD has systemd do that.
            match placed(cpu) {
                Ok(()) => return Ok(Entered { cpu, outside: None }),
                Err(error) => failed = error,
            }
        }
        for (group, cpus) in &self.sets {
            let Some(outside) = outside(machine, group) else { continue };
            let inside = machine.path(&format!("{group}/cgroup.procs"));
            match std::fs::write(inside, std::process::id().to_string()) {
                Ok(()) => {
                    let mut entered = Entered { cpu: 0, outside: Some(outside) };
                    let here = allowed_cpus()?.and(cpus);
                    if let Some(cpu) = here.0.into_iter().find(|cpu| placed(*cpu).is_ok()) {
                        entered.cpu = cpu;
                        return Ok(entered);
                    }
                }
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }
}

/// Where this process is put back to from a group: its own one of the same version.
fn outside(machine: &Machine, group: &str) -> Option<std::path::PathBuf> {
    let groups = machine.read("/proc/self/cgroup").ok()?;
    let is_version_1 = group.starts_with(VERSION_1);
    let own = groups.lines().find_map(|line| {
        let (controllers, own) = line.split_once(':')?.1.split_once(':')?;
        let fits = match is_version_1 {
            true => controllers.split(',').any(|one| one == "cpuset"),
            false => controllers.is_empty(),
        };
        fits.then_some(own)
    })?;
    let roots = if is_version_1 { &[VERSION_1][..] } else { &VERSION_2 };
    let file = |root: &&str| machine.path(&format!("{root}{own}/cgroup.procs"));
    roots.iter().map(file).find(|file| file.exists())
}

/// The processors that the kernel's command line keeps free.
fn at_boot(machine: &Machine) -> CpuList {
    let command_line = machine.read("/proc/cmdline").unwrap_or_default();
    let parameter = |word: &str| {
        let (name, value) = word.split_once('=')?;
        // Flags such as `managed_irq,domain` stand before the list.
        let is_list = |part: &&str| part.starts_with(|c: char| c.is_ascii_digit());
        let list = value.split(',').filter(is_list).collect::<Vec<_>>().join(",");
        PARAMETERS.contains(&name).then(|| list.parse::<CpuList>().unwrap_or_default())
    };
    let all = command_line.split_whitespace().filter_map(parameter);
    CpuList(all.flat_map(|cpus| cpus.0).collect())
}

/// The processors of a group of version 2, if it is a partition that is valid.
fn partition(machine: &Machine, group: &str) -> Option<CpuList> {
    let kind = machine.read(&format!("{group}/cpuset.cpus.partition")).ok()?;
    if kind != "isolated" && kind != "root" {
        return None; // such as `isolated invalid (…)`
    }
    let cpus = ["cpuset.cpus.effective", "cpuset.cpus"];
    cpus.iter().find_map(|file| machine.cpus(&format!("{group}/{file}")).ok())
}

/// The processors of a set of version 1, if no other may have them, or if it is that of
/// `onbeat tune`, which has moved all others away.
fn exclusive(machine: &Machine, group: &str) -> Option<CpuList> {
    let name = group.rsplit('/').next();
    if name == Some(HOUSEKEEPING) {
        return None;
    }
    let is = |name: &str, value: i64| {
        let either = [format!("{group}/cpuset.{name}"), format!("{group}/{name}")];
        either.iter().any(|file| machine.number(file).is_ok_and(|n| n == value))
    };
    let isolates = is("cpu_exclusive", 1) || (name == Some(TUNED) && is("sched_load_balance", 0));
    let files = [format!("{group}/cpuset.cpus"), format!("{group}/cpus")];
    files.iter().find_map(|file| machine.cpus(file).ok()).filter(|_| isolates)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(files: &[(&str, &str)]) -> (tempfile::TempDir, Machine) {
        let directory = tempfile::tempdir().unwrap();
        let machine = Machine::below(directory.path());
        for (path, text) in files {
            let path = machine.path(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        (directory, machine)
    }

    #[test]
    fn what_keeps_processors_free_is_found_and_nothing_else() {
        let online = ("/sys/devices/system/cpu/online", "0-3\n");
        let found = |files: &[(&str, &str)]| {
            let (_kept, machine) = machine(&[&[online], files].concat());
            let isolated = Isolated::of(&machine);
            let sets: Vec<_> =
                isolated.sets.iter().map(|(name, cpus)| format!("{name} {cpus}")).collect();
            (isolated.at_boot.to_string(), sets.join(", "))
        };
        let v1 = |name: &str| format!("/sys/fs/cgroup/cpuset{name}");
        // The root of version 1 is always exclusive and has all processors.
        let (root, cpus) = (v1("/cpuset.cpu_exclusive"), v1("/cpuset.cpus"));
        let plain = [(root.as_str(), "1\n"), (cpus.as_str(), "0-3\n")];
        assert_eq!(found(&plain), (String::new(), String::new()));
        let own = [v1("/rt/cpuset.cpu_exclusive"), v1("/rt/cpuset.cpus")];
        let rest = [v1("/system/cpuset.cpu_exclusive"), v1("/system/cpuset.cpus")];
        let all = [v1("/all/cpuset.cpu_exclusive"), v1("/all/cpuset.cpus")];
        let mut shield = plain.to_vec();
        for (files, cpus) in [(&own, "2-3\n"), (&rest, "0-1\n"), (&all, "0-3\n")] {
            shield.extend([(files[0].as_str(), "1\n"), (files[1].as_str(), cpus)]);
        }
        assert_eq!(found(&shield), (String::new(), "/sys/fs/cgroup/cpuset/rt 2-3".into()));
        // The sets that `onbeat tune` makes.
        let tuned = [v1("/onbeat"), v1("/onbeat-everything")].map(|set| {
            let balance = format!("{set}/cpuset.sched_load_balance");
            (format!("{set}/cpuset.cpus"), balance)
        });
        let mut files = plain.to_vec();
        for ((cpus, balance), (list, on)) in tuned.iter().zip([("2-3\n", "0\n"), ("0-1\n", "1\n")])
        {
            files.extend([(cpus.as_str(), list), (balance.as_str(), on)]);
        }
        assert_eq!(found(&files), (String::new(), "/sys/fs/cgroup/cpuset/onbeat 2-3".into()));
        let v2 = [
            ("/sys/fs/cgroup/a.slice/rt/cpuset.cpus.partition", "isolated\n"),
            ("/sys/fs/cgroup/a.slice/rt/cpuset.cpus.effective", "3\n"),
            ("/sys/fs/cgroup/a.slice/cpuset.cpus.partition", "member\n"),
            ("/sys/fs/cgroup/bad/cpuset.cpus.partition", "isolated invalid (Cpu list empty)\n"),
            ("/sys/fs/cgroup/bad/cpuset.cpus.effective", "2\n"),
        ];
        assert_eq!(found(&v2), (String::new(), "/sys/fs/cgroup/a.slice/rt 3".into()));
        // TuneD's cpu-partitioning, and what sets isolcpus.
        let tuned = "root=/dev/sda1 nohz=on nohz_full=2-3 rcu_nocbs=2-3 tuned.non_isolcpus=3\n";
        assert_eq!(found(&[("/proc/cmdline", tuned)]).0, "2-3");
        let isolcpus = "isolcpus=managed_irq,domain,1,3 quiet\n";
        assert_eq!(found(&[("/proc/cmdline", isolcpus)]).0, "1,3");
    }

    #[test]
    fn a_set_is_entered_for_its_processors_and_left_again() {
        let cpu = *allowed_cpus().unwrap().0.last().unwrap();
        let cpus = CpuList([cpu].into());
        let (_kept, nowhere) = machine(&[]);
        assert!(Isolated::default().enter(&nowhere).is_err(), "nothing is isolated");
        // Where the affinity may be had, nothing is entered.
        let free = Isolated { at_boot: cpus.clone(), sets: BTreeMap::new() };
        let entered = free.enter(&nowhere).unwrap();
        assert_eq!((entered.cpu, &entered.outside), (cpu, &None));
        // A processor that is nobody's, so that only the set may have it; in either version.
        let own = std::process::id().to_string();
        for (mount, home, foreign) in
            [("/sys/fs/cgroup", "/user.slice", "/all"), ("/sys/fs/cgroup/cpuset", "/all", "")]
        {
            let of = |group: &str| format!("{mount}{group}/cgroup.procs");
            let (_kept, machine) = machine(&[
                ("/proc/self/cgroup", "4:cpu,cpuset:/all\n1:name=systemd:/\n0::/user.slice\n"),
                (&of(home), ""),
                (&of(foreign), ""),
                (&of("/rt"), ""),
            ]);
            let sets = [(format!("{mount}/rt"), CpuList([1_000].into()))].into();
            assert!(Isolated { at_boot: CpuList::default(), sets }.enter(&machine).is_err());
            let read = |group: &str| machine.read(&of(group)).unwrap();
            assert_eq!(read("/rt"), own, "it was entered");
            assert_eq!((read(home), read(foreign)), (own.clone(), String::new()), "and left");
        }
    }
}
