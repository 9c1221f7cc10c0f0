//! The control group of a run's programs: where no process of theirs gets out of, with what they
//! start, so that all end with the run, and what limits them together.
//!
//! The group is made below this process's own in version 2 of cgroups, whose `cgroup.kill` ends all
//! of its processes at once. On machines where a limit's controller belongs to version 1 there is a
//! group in that controller's hierarchy beside it.

use onbeat::clock::{MonoTime, pause};
use onbeat_model::system::ProgramLimits;
use onbeat_model::time::Span;
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal, kill_process};
use rustix::rand::{GetRandomFlags, getrandom};
use std::fs::{create_dir, read_to_string, remove_dir, write};
use std::io;
use std::path::{Path, PathBuf};

/// How long a group's processes may take to end once they are killed.
const PATIENCE: Span = Span::from_s(2);
/// How often one looks whether they have.
const LOOK_AGAIN: Span = Span::from_ms(2);

/// A controller that limits what programs use together.
#[derive(Debug)]
struct Controller {
    name: &'static str,
    /// The file with the limit, in version 2 and in version 1.
    files: [&'static str; 2],
    /// Where the kernel counts how often the limit was met, and the word before the number.
    counted: [(&'static str, &'static str); 2],
    /// What the description calls it, and what becomes of programs that meet it.
    key: &'static str,
    met: &'static str,
}

const MEMORY: Controller = Controller {
    name: "memory",
    files: ["memory.max", "memory.limit_in_bytes"],
    counted: [("memory.events", "oom_kill"), ("memory.oom_control", "oom_kill")],
    key: "memory_max_octets",
    met: "processes were killed for it",
};
const PIDS: Controller = Controller {
    name: "pids",
    files: ["pids.max", "pids.max"],
    counted: [("pids.events", "max"), ("pids.events", "max")],
    key: "processes_max",
    met: "times one was not started for it",
};

/// A hierarchy of cgroups, and where this process is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Hierarchy {
    top: PathBuf,
    own: PathBuf,
}

/// The control group of a run. Dropping it ends all processes in it.
#[derive(Debug)]
pub struct Cgroup {
    /// In version 2 first, then one for each controller of version 1.
    directories: Vec<PathBuf>,
    /// Who writes 0 there is in it.
    joins: Vec<OwnedFd>,
    /// Who writes 0 there has the processors of another group.
    isolated: Option<OwnedFd>,
    /// Limits with their controllers and the files that count.
    counted: Vec<(Controller, PathBuf, &'static str)>,
}

impl Cgroup {
    /// Makes the group, and says which limits it does not have, and why.
    ///
    /// # Errors
    /// There is no version 2, or this process may make no group in it.
    pub fn new(limits: &ProgramLimits) -> io::Result<(Self, Vec<String>)> {
        let mounts = read_to_string("/proc/self/mountinfo")?;
        let groups = read_to_string("/proc/self/cgroup")?;
        let missing = || io::Error::other("version 2 of cgroups is not mounted");
        let unified = hierarchy(&mounts, &groups, None).ok_or_else(missing)?;
        let mut random = [0; 4];
        getrandom(&mut random, GetRandomFlags::empty())?;
        let name = format!("onbeat-{}-{:08x}", std::process::id(), u32::from_le_bytes(random));
        let wanted = [(MEMORY, limits.memory), (PIDS, limits.processes)];
        let wanted = wanted.into_iter().filter_map(|(one, limit)| Some((one, limit?)));
        let known = read_to_string(unified.top.join("cgroup.controllers")).unwrap_or_default();
        let (new, old): (Vec<_>, Vec<_>) =
            wanted.partition(|(one, _)| known.split_whitespace().any(|word| word == one.name));
        let parent = handing_on(&unified, &new).unwrap_or(&unified.own);
        // Who may not write there may make a group, but bring nothing into it.
        let procs = parent.join("cgroup.procs");
        rustix::fs::open(&procs, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())
            .map_err(|error| at(&procs, &error.into()))?;
        let directory = parent.join(&name);
        create_dir(&directory).map_err(|error| at(&directory, &error))?;
        let mut this = Self {
            directories: vec![directory.clone()],
            joins: Vec::new(),
            isolated: None,
            counted: Vec::new(),
        };
        let mut unmet = Vec::new();
        for (controller, limit) in new {
            this.limit(controller, limit, (&directory, 0), &mut unmet);
        }
        for (controller, limit) in old {
            let key = controller.key;
            let Some(found) = hierarchy(&mounts, &groups, Some(controller.name)) else {
                unmet
                    .push(format!("`{key}` limits nothing: this machine has no controller for it"));
                continue;
            };
            let directory = found.own.join(&name);
            match create_dir(&directory) {
                Ok(()) => {
                    this.directories.push(directory.clone());
                    this.limit(controller, limit, (&directory, 1), &mut unmet);
                }
                Err(error) => unmet.push(unlimited(key, &at(&directory, &error))),
            }
        }
        for directory in &this.directories {
            let procs = directory.join("cgroup.procs");
            let flags = OFlags::WRONLY | OFlags::CLOEXEC;
            this.joins.push(rustix::fs::open(&procs, flags, Mode::empty())?);
        }
        Ok((this, unmet))
    }

    /// Sets a limit, of version 2 or version 1.
    fn limit(
        &mut self,
        controller: Controller,
        limit: u64,
        (directory, version): (&Path, usize),
        unmet: &mut Vec<String>,
    ) {
        let file = directory.join(controller.files[version]);
        if let Err(error) = write(&file, limit.to_string()) {
            return unmet.push(unlimited(controller.key, &at(&file, &error)));
        }
        if controller.name == MEMORY.name {
            // What is in swap counts too, where it is counted at all.
            let _ = write(directory.join("memory.swap.max"), "0");
            let _ = write(directory.join("memory.memsw.limit_in_bytes"), limit.to_string());
        }
        let (file, word) = controller.counted[version];
        self.counted.push((controller, directory.join(file), word));
    }

    /// Gives the programs that join the run the processors of another group, such as the one that
    /// `onbeat tune` makes. In version 2 they are in a group below that one instead of this one,
    /// and without its limits, which is said; it ends with this one.
    ///
    /// # Errors
    /// There is no such group, or this process may bring nothing into it.
    pub fn isolate(&mut self, group: &Path) -> io::Result<Vec<String>> {
        let mut unmet = Vec::new();
        let mut directory = group.to_owned();
        if group.join("cgroup.controllers").exists()
            && let Some(name) = self.directories.first().and_then(|own| own.file_name())
        {
            directory = group.join(name);
            create_dir(&directory).map_err(|error| at(&directory, &error))?;
            self.directories.push(directory.clone());
            let own = &self.directories[0];
            let left = self.counted.iter().filter(|(_, file, _)| file.starts_with(own));
            let note = |key| format!("`{key}` does not limit programs on isolated processors");
            unmet.extend(left.map(|(one, ..)| note(one.key)));
        }
        let procs = directory.join("cgroup.procs");
        let flags = OFlags::WRONLY | OFlags::CLOEXEC;
        let opened = rustix::fs::open(&procs, flags, Mode::empty());
        self.isolated = Some(opened.map_err(|error| at(&procs, &error.into()))?);
        Ok(unmet)
    }

    /// Where it is, for the reaper.
    pub fn directories(&self) -> &[PathBuf] {
        &self.directories
    }

    /// Files at which the calling process comes into the group by [`join`]; with the processors of
    /// another one if it joins the run: a load gets none of these.
    pub(crate) fn joins(&self, joins_run: bool) -> impl Iterator<Item = &OwnedFd> {
        self.joins.iter().chain(self.isolated.iter().filter(move |_| joins_run))
    }

    /// Ends all its processes, and the group. What the user should know of it, a line each.
    pub fn end(mut self) -> Vec<String> {
        let mut notes = Vec::new();
        for (controller, file, word) in &self.counted {
            let text = read_to_string(file).unwrap_or_default();
            let mut words = text.lines().filter_map(|line| line.split_once(' '));
            let count = words.find(|(name, _)| name == word).map_or("0", |(_, count)| count);
            if count != "0" {
                let Controller { key, met, .. } = controller;
                notes.push(format!("the programs reached `{key}`: {count} {met}"));
            }
        }
        let left = clear_all(&std::mem::take(&mut self.directories));
        if !left.is_empty() {
            notes.push(format!("processes {left:?} of the programs could not be ended"));
        }
        notes
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        clear_all(&std::mem::take(&mut self.directories));
    }
}

fn clear_all(directories: &[PathBuf]) -> Vec<i32> {
    let mut left: Vec<i32> = directories.iter().flat_map(|one| clear(one)).collect();
    left.sort_unstable();
    left.dedup();
    left
}

/// Puts the calling process into the group with these files. Between fork and exec: neither
/// allocates nor locks.
pub(crate) fn join(files: &[OwnedFd]) -> io::Result<()> {
    for file in files {
        rustix::io::write(file, b"0")?;
    }
    Ok(())
}

/// Kills what is in a group, and removes it. Waits for a while only; who is still there then.
pub(crate) fn clear(directory: &Path) -> Vec<i32> {
    let until = MonoTime::now() + PATIENCE;
    loop {
        // The kernel's way ends those too that start others all the time. Version 1 has none.
        if write(directory.join("cgroup.kill"), "1").is_err() {
            for process in processes(directory) {
                if let Some(process) = Pid::from_raw(process) {
                    let _ = kill_process(process, Signal::KILL);
                }
            }
        }
        match remove_dir(directory) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {}
            _ => return Vec::new(),
        }
        if MonoTime::now() > until {
            return processes(directory);
        }
        pause(LOOK_AGAIN);
    }
}

fn processes(directory: &Path) -> Vec<i32> {
    let text = read_to_string(directory.join("cgroup.procs")).unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok()).collect()
}

/// The nearest group, from this process's own upwards, that hands on all these controllers.
fn handing_on<'a>(found: &'a Hierarchy, wanted: &[(Controller, u64)]) -> Option<&'a Path> {
    let has_all = |group: &&Path| {
        let handed = read_to_string(group.join("cgroup.subtree_control")).unwrap_or_default();
        wanted.iter().all(|(one, _)| handed.split_whitespace().any(|word| word == one.name))
    };
    let inside = |group: &&Path| group.starts_with(&found.top);
    found.own.ancestors().take_while(inside).find(has_all)
}

/// The hierarchy of version 2, or that of a controller of version 1, if this process's group can be
/// seen in it.
fn hierarchy(mounts: &str, groups: &str, controller: Option<&str>) -> Option<Hierarchy> {
    let is_mine = |list: &str| match controller {
        None => list.is_empty(),
        Some(name) => list.split(',').any(|one| one == name),
    };
    let mine = |line: &str| {
        let mut parts = line.splitn(3, ':').skip(1);
        parts.next().filter(|list| is_mine(list)).and_then(|_| parts.next().map(str::to_owned))
    };
    let own = groups.lines().find_map(mine)?;
    mounts.lines().find_map(|line| {
        let (place, kind) = line.split_once(" - ")?;
        let mut kind = kind.split(' ');
        let (name, options) = (kind.next()?, kind.nth(1)?);
        let is_it = match controller {
            None => name == "cgroup2",
            Some(controller) => name == "cgroup" && options.split(',').any(|one| one == controller),
        };
        let mut place = place.split(' ').skip(3);
        let (root, top) = (place.next()?, PathBuf::from(place.next()?));
        let below = Path::new(&own).strip_prefix(root).ok()?;
        let is_below = below.components().all(|c| matches!(c, std::path::Component::Normal(_)));
        let own = if below.as_os_str().is_empty() { top.clone() } else { top.join(below) };
        (is_it && is_below).then_some(Hierarchy { top, own })
    })
}

fn at(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

fn unlimited(key: &str, error: &io::Error) -> String {
    format!("`{key}` limits nothing: {error}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine with both versions, as systemd's hybrid one, and a container's mount of part of
    /// one.
    const MOUNTS: &str = "\
30 24 0:26 / /sys/fs/cgroup ro,nosuid - tmpfs tmpfs ro,mode=755
31 30 0:27 / /sys/fs/cgroup/unified rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate
32 30 0:28 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct
33 30 0:29 /docker/7 /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
34 30 0:30 /other /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids
";
    const GROUPS: &str = "3:pids:/mine\n2:memory:/docker/7/a:b\n1:cpu,cpuacct:/\n0::/user/0\n";

    fn found(controller: Option<&str>) -> Option<(String, String)> {
        let Hierarchy { top, own } = hierarchy(MOUNTS, GROUPS, controller)?;
        Some((top.display().to_string(), own.display().to_string()))
    }

    #[test]
    fn a_process_finds_its_groups_where_they_are_mounted() {
        let pair = |a: &str, b: &str| Some((a.to_owned(), b.to_owned()));
        let unified = "/sys/fs/cgroup/unified";
        assert_eq!(found(None), pair(unified, "/sys/fs/cgroup/unified/user/0"));
        let memory = "/sys/fs/cgroup/memory";
        assert_eq!(found(Some("memory")), pair(memory, "/sys/fs/cgroup/memory/a:b"));
        let cpu = "/sys/fs/cgroup/cpu,cpuacct";
        assert_eq!(found(Some("cpuacct")), pair(cpu, cpu));
        assert_eq!(found(Some("pids")), None, "its group is not in what is mounted");
        assert_eq!(found(Some("rdma")), None);
        assert_eq!(hierarchy(MOUNTS, "0::/../x\n", None), None, "outside of the namespace");
    }

    /// A group with processors, of either version, that is gone with this.
    struct Processors(PathBuf);

    impl Processors {
        fn new() -> Option<Self> {
            let name = format!("onbeat-test-{}", std::process::id());
            let tops = ["/sys/fs/cgroup/cpuset", "/sys/fs/cgroup"].map(Path::new);
            let top = tops.into_iter().find(|top| top.join("cgroup.procs").exists())?;
            let made = Self(top.join(name));
            create_dir(&made.0).ok()?;
            for file in ["cpuset.cpus", "cpuset.mems"] {
                // Version 2 has its parent's unless it is told otherwise.
                if let Ok(text) = read_to_string(top.join(file)) {
                    write(made.0.join(file), text).ok()?;
                }
            }
            Some(made)
        }
    }

    impl Drop for Processors {
        fn drop(&mut self) {
            clear(&self.0);
        }
    }

    #[test]
    fn programs_of_a_run_have_the_processors_of_another_group_and_loads_have_not() {
        use crate::process::{Running, Start, tests::sleeper};
        use onbeat_testkit::{Need, not_run};
        let Some(processors) = Processors::new() else {
            return not_run(Need::Superuser, "no group with processors can be made");
        };
        let mut cgroup = match Cgroup::new(&ProgramLimits::default()) {
            Ok((cgroup, _)) => cgroup,
            Err(error) => return not_run(Need::Superuser, error),
        };
        cgroup.isolate(&processors.0).expect("it may be joined");
        for joins in [true, false] {
            let start = Start { cgroup: Some(&cgroup), ..Start::default() };
            let running =
                Running::start(&sleeper(joins, None), Path::new("/"), start).expect("sleep");
            let groups = read_to_string(format!("/proc/{}/cgroup", running.group()));
            let name = processors.0.file_name().expect("a name").to_string_lossy().into_owned();
            let groups = groups.expect("it runs");
            assert_eq!(groups.contains(&name), joins, "{groups}");
        }
        assert_eq!(cgroup.end(), Vec::<String>::new());
        let below = processors.0.read_dir().expect("a group").flatten();
        assert!(!below.into_iter().any(|entry| entry.path().is_dir()), "nothing is left below it");
        let mut wrong = Cgroup::new(&ProgramLimits::default()).expect("as before").0;
        wrong.isolate(Path::new("/sys/fs/cgroup/nowhere")).expect_err("there is none");
    }
}
