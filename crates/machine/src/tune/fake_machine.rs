//! A fake kernel: what the real one has in files is in files below a root, and what it
//! has not is in files of its own below `/pretended` there. Tests use it, and who wants to see what
//! would be done to another machine, of whose files there is a copy.

use super::kernel::Kernel;
use super::target::Value;
use super::threads;
use onbeat_configuration::{Disciplines, Vlan};
use onbeat_run::machine::{CpuList, Machine};
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

/// Below this are values that are not in files of `/proc` or `/sys`.
const DIRECTORY: &str = "/pretended";
/// What is being written, beside the journal; left behind by who is killed.
const NEXT: &str = "/var/lib/onbeat/pretended";
/// A control group before it is there, and after it was.
const NEXT_GROUP: &str = "/var/lib/onbeat/pretended-group";
/// A file with the paths that refuse to be written, one a line.
const REFUSES: &str = "/pretended/refuses";
/// Where control groups are.
const GROUPS: &str = "/sys/fs/cgroup";
/// `PF_NO_SETAFFINITY` of linux/sched.h: a thread that stays on its processor.
const STAYS: u64 = 0x0400_0000;

/// The fake kernel of a machine below a root.
#[derive(Debug)]
pub struct FakeMachine {
    machine: Machine,
}

impl FakeMachine {
    /// That of this machine.
    pub fn of(machine: &Machine) -> Self {
        Self { machine: machine.clone() }
    }

    /// Writes a file as the kernel does, all of it or nothing: who writes may be killed.
    fn put(&self, path: &Path, text: &str) -> io::Result<()> {
        let next = self.machine.path(NEXT);
        for path in [&next, path] {
            std::fs::create_dir_all(path.parent().unwrap_or(path))?;
        }
        std::fs::write(&next, text)?;
        std::fs::rename(next, path)
    }

    /// Where a group is before it is there and after it was; nothing is there yet.
    fn next_group(&self) -> io::Result<PathBuf> {
        let next = self.machine.path(NEXT_GROUP);
        std::fs::create_dir_all(next.parent().unwrap_or(&next))?;
        match std::fs::remove_dir_all(&next) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(next),
        }
    }

    fn value(&self, name: &str) -> io::Result<Value> {
        match self.machine.read(&format!("{DIRECTORY}/{name}")) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            text => text.map(Some),
        }
    }

    fn set_value(&self, name: &str, value: &Value) -> io::Result<()> {
        let path = self.machine.path(&format!("{DIRECTORY}/{name}"));
        match value {
            Some(text) => self.put(&path, &format!("{text}\n")),
            None => std::fs::remove_file(path),
        }
    }

    /// The thread that handles an interface's packets; `path` is its file `threaded`.
    fn thread_of(&self, path: &Path, begins: bool) -> io::Result<()> {
        let directory = self.machine.path("/proc/9001");
        if !begins {
            return match std::fs::remove_dir_all(directory) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            };
        }
        let interface = path.parent().and_then(Path::file_name).unwrap_or_default();
        std::fs::create_dir_all(&directory)?;
        let line = format!("9001 (napi/{}-1) {THREAD}\n", interface.display());
        std::fs::write(directory.join("stat"), line)
    }

    /// Moves a task into a set: it is in one set of the hierarchy at a time.
    fn move_task(&self, into: &Path, task: &str) -> io::Result<()> {
        let task = task.trim();
        let stat = self.machine.read(&format!("/proc/{task}/stat"))?;
        let flags = stat.rsplit(") ").next().and_then(|rest| rest.split(' ').nth(6)?.parse().ok());
        if flags.is_some_and(|flags: u64| flags & STAYS != 0) {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        let mut lists = Vec::new();
        find(&self.machine.path(GROUPS), "tasks", &mut lists);
        for list in lists {
            let text = std::fs::read_to_string(&list)?;
            let mut tasks: BTreeSet<u32> =
                text.lines().filter_map(|line| line.parse().ok()).collect();
            let number = task.parse().map_err(io::Error::other)?;
            let changed = if list == into { tasks.insert(number) } else { tasks.remove(&number) };
            if changed {
                let lines: String = tasks.iter().map(|task| format!("{task}\n")).collect();
                self.put(&list, &lines)?;
            }
        }
        Ok(())
    }
}

/// What `/proc/PID/stat` has of a thread of the kernel from its third field on.
const THREAD: &str = "S 2 0 0 0 -1 2097152 0 0 0 0 0 0 0 0 0 0 0 0 9 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 \
                      0 0 0 0 0 0 0 0 0 0 0 0 0 0 0";

/// All files of this name below a directory.
fn find(directory: &Path, name: &str, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => find(&entry.path(), name, found),
            Ok(_) if entry.file_name() == name => found.push(entry.path()),
            _ => {}
        }
    }
}

impl Kernel for FakeMachine {
    fn write(&self, path: &Path, text: &str) -> io::Result<()> {
        let refuses = self.machine.read(REFUSES).unwrap_or_default();
        if refuses.lines().any(|line| self.machine.path(line) == path) {
            return Err(io::Error::from_raw_os_error(libc::EIO));
        }
        if !path.exists() {
            return Err(io::ErrorKind::NotFound.into());
        }
        match path.file_name().and_then(|name| name.to_str()) {
            Some("tasks") if path.starts_with(self.machine.path(GROUPS)) => {
                self.move_task(path, text)
            }
            Some("cgroup.subtree_control") => {
                let now = std::fs::read_to_string(path)?;
                let mut words: BTreeSet<&str> = now.split_whitespace().collect();
                match text.split_at_checked(1) {
                    Some(("+", name)) => words.insert(name),
                    Some(("-", name)) => words.remove(name),
                    _ => return Err(io::ErrorKind::InvalidInput.into()),
                };
                let words: Vec<_> = words.into_iter().collect();
                self.put(path, &(words.join(" ") + "\n"))
            }
            Some("threaded") => {
                self.thread_of(path, text.trim() == "1")?;
                self.put(path, &format!("{text}\n"))
            }
            _ => self.put(path, &format!("{}\n", text.trim_end())),
        }
    }

    /// With all of its files at once, as the kernel does: a kill leaves no half of a group.
    fn make_group(&self, path: &Path) -> io::Result<()> {
        let made = self.next_group()?;
        std::fs::create_dir_all(&made)?;
        for file in [
            "cpuset.cpus",
            "cpuset.mems",
            "cpuset.cpus.partition",
            "cpuset.sched_load_balance",
            "tasks",
        ] {
            std::fs::write(made.join(file), "")?;
        }
        if path.exists() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        std::fs::rename(made, path)
    }

    fn remove_group(&self, path: &Path) -> io::Result<()> {
        match std::fs::read_to_string(path.join("tasks"))?.is_empty() {
            true => std::fs::rename(path, self.next_group()?),
            false => Err(io::ErrorKind::ResourceBusy.into()),
        }
    }

    fn set_scheduling(&self, task: u32, scheduling: &str) -> io::Result<()> {
        let (policy, priority) = threads::policy(scheduling)
            .ok_or_else(|| io::Error::other(format!("`{scheduling}` cannot be set")))?;
        let path = self.machine.path(&format!("/proc/{task}/stat"));
        let stat = std::fs::read_to_string(&path)?;
        let (name, rest) = stat.rsplit_once(") ").ok_or(io::ErrorKind::InvalidData)?;
        let mut fields: Vec<String> = rest.trim_end().split(' ').map(str::to_owned).collect();
        // The first of these is field 3 (proc_pid_stat(5)).
        for (number, value) in [(40, priority), (41, policy)] {
            *fields.get_mut(number - 3).ok_or(io::ErrorKind::InvalidData)? = value.to_string();
        }
        self.put(&path, &format!("{name}) {}\n", fields.join(" ")))
    }

    fn set_affinity(&self, task: u32, cpus: &CpuList) -> io::Result<()> {
        let path = self.machine.path(&format!("/proc/{task}/status"));
        self.put(&path, &format!("Cpus_allowed_list:\t{cpus}\n"))
    }

    fn coalescing(&self, interface: &str) -> io::Result<Value> {
        self.value(&format!("coalescing-{interface}"))
    }

    fn set_coalescing(&self, interface: &str, value: &str) -> io::Result<()> {
        self.set_value(&format!("coalescing-{interface}"), &Some(value.to_owned()))
    }

    fn held(&self) -> io::Result<Value> {
        self.value("held")
    }

    fn set_held(&self, value: &Value) -> io::Result<()> {
        self.set_value("held", value)
    }

    fn qdiscs(&self, interface: &str) -> io::Result<Value> {
        self.value(&format!("qdiscs-{interface}"))
    }

    fn set_qdiscs(&self, interface: &str, made: Option<&Disciplines>) -> io::Result<()> {
        self.set_value(&format!("qdiscs-{interface}"), &made.map(Disciplines::value))
    }

    fn vlan(&self, name: &str) -> io::Result<Value> {
        self.value(&format!("vlan-{name}"))
    }

    fn set_vlan(&self, interface: &str, vlan: &Vlan, there: bool) -> io::Result<()> {
        let value = there.then(|| "vlan".to_owned());
        self.set_value(&format!("vlan-{}", vlan.name(interface)), &value)
    }
}
