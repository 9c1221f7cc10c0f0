//! Reading and writing one target.

use super::kernel::{self, Kernel};
use super::resume;
use super::target::{Bound, PTP4L, Target, Value};
use super::threads;
use onbeat::interface::{ptp4l_priority1, set_ptp4l_priority1};
use onbeat_run::machine::Machine;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

/// How often the tasks of a set are gone through: those that start meanwhile are caught by the next
/// round.
const ROUNDS: u32 = 4;

/// A machine, and the kernel that is asked about it.
pub struct Edge {
    machine: Machine,
    kernel: Box<dyn Kernel>,
}

impl Edge {
    /// The edge of a machine: this one's kernel, or a fake one if its files are below a root.
    /// `holder` is the command that runs [`super::hold`].
    pub fn of(machine: Machine, holder: Vec<OsString>) -> Self {
        let kernel = kernel::of(&machine, holder);
        Self { machine, kernel }
    }

    /// The machine.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// What the kernel is asked by otherwise.
    pub fn kernel(&self) -> &dyn Kernel {
        self.kernel.as_ref()
    }

    /// A target's value.
    ///
    /// # Errors
    ///
    /// It is there and cannot be read.
    pub fn get(&self, target: &Target) -> io::Result<Value> {
        match target {
            Target::File { path, .. } => self.text(path),
            Target::Document { path } => absent(self.machine.document(path)),
            Target::Controller { group, name } => {
                let on = self.text(&format!("{group}/cgroup.subtree_control"))?;
                let on = on.is_some_and(|on| on.split_whitespace().any(|word| word == name));
                Ok(on.then(|| "on".to_owned()))
            }
            Target::Group { path } => self.group(path),
            Target::Tasks { to, .. } => {
                let tasks = self.text(&format!("{to}/tasks"))?.unwrap_or_default();
                Ok((!tasks.is_empty()).then(|| "moved".to_owned()))
            }
            Target::Coalescing { interface } => gone(self.kernel.coalescing(interface)),
            Target::Threads { prefix } => {
                let mut all: Vec<String> = threads::kernel_threads(&self.machine, prefix)
                    .into_iter()
                    .map(|thread| thread.scheduling)
                    .collect();
                if all.iter().all(|one| *one == all[0]) {
                    all.truncate(1);
                }
                Ok((!all.is_empty()).then(|| all.join(",")))
            }
            Target::Latency => self.kernel.held(),
            Target::Priority1 => {
                let value = ptp4l_priority1(&self.machine.path(PTP4L.0), PTP4L.1)?;
                Ok(value.map(|value| value.to_string()))
            }
            Target::Qdiscs { interface, .. } => gone(self.kernel.qdiscs(interface)),
            Target::Vlan { interface, vlan } => self.kernel.vlan(&vlan.name(interface)),
        }
    }

    /// Gives a target a value.
    ///
    /// # Errors
    ///
    /// The kernel refuses it; then it may be set in part.
    pub fn set(&self, target: &Target, value: &Value) -> io::Result<()> {
        let given = || value.as_deref().ok_or_else(|| io::Error::other("it cannot be taken away"));
        match target {
            Target::File { path, .. } => self.write(path, given()?),
            Target::Document { path } => {
                self.tidy(target);
                self.write_document(path, value)
            }
            Target::Controller { group, name } => {
                let sign = if value.is_some() { '+' } else { '-' };
                self.write(&format!("{group}/cgroup.subtree_control"), &format!("{sign}{name}"))
            }
            Target::Group { path } => match value {
                Some(settings) => self.make_group(path, settings),
                None => self.remove_group(path),
            },
            Target::Tasks { from, to, bound } => match value {
                Some(_) => self.move_tasks(from, to),
                None => {
                    self.move_tasks(to, from)?;
                    self.bind(bound);
                    Ok(())
                }
            },
            Target::Coalescing { interface } => self.kernel.set_coalescing(interface, given()?),
            Target::Threads { prefix } => self.schedule(prefix, value),
            Target::Latency => self.kernel.set_held(value),
            Target::Priority1 => {
                let value = given()?.parse().map_err(io::Error::other)?;
                set_ptp4l_priority1(&self.machine.path(PTP4L.0), PTP4L.1, value)
            }
            Target::Qdiscs { interface, made } => {
                self.kernel.set_qdiscs(interface, value.is_some().then_some(made))
            }
            Target::Vlan { interface, vlan } => {
                self.kernel.set_vlan(interface, vlan, value.is_some())
            }
        }
    }

    /// Takes away what a kill in the middle of [`Edge::set`] may leave beside the target.
    pub(super) fn tidy(&self, target: &Target) {
        if let Target::Document { path } = target {
            let _ = std::fs::remove_file(self.half(path));
            self.tidy_directory(path);
        }
    }

    /// A directory that a document has to itself goes when nothing else is there.
    fn tidy_directory(&self, path: &str) {
        if let Some((directory, _)) = path.rsplit_once('/').filter(|_| resume::has_directory(path))
        {
            let _ = std::fs::remove_dir(self.machine.path(directory));
        }
    }

    fn text(&self, path: &str) -> io::Result<Value> {
        absent(self.machine.read(path))
    }

    fn write(&self, path: &str, text: &str) -> io::Result<()> {
        self.kernel.write(&self.machine.path(path), text)
    }

    /// Where a document is until it is whole.
    fn half(&self, path: &str) -> PathBuf {
        self.machine.path(&format!("{path}.half"))
    }

    /// The file is there as a whole or not at all, and on disk.
    fn write_document(&self, path: &str, value: &Value) -> io::Result<()> {
        let (whole, half) = (self.machine.path(path), self.half(path));
        let mut directory = whole.parent().ok_or(io::ErrorKind::InvalidInput)?;
        match value {
            Some(text) => {
                if resume::has_directory(path) && !directory.exists() {
                    std::fs::create_dir(directory)?;
                    let above = directory.parent().ok_or(io::ErrorKind::NotFound)?;
                    File::open(above)?.sync_all()?; // or a power failure takes all of it
                }
                // A boot loader executes it: nobody else may write it, whatever the umask is.
                let mut file =
                    OpenOptions::new().write(true).create_new(true).mode(0o644).open(&half)?;
                file.write_all(text.as_bytes())?;
                file.sync_all()?;
                std::fs::rename(&half, &whole)?;
            }
            None => {
                std::fs::remove_file(&whole)?;
                self.tidy_directory(path);
                while !directory.exists() {
                    directory = directory.parent().ok_or(io::ErrorKind::NotFound)?;
                }
            }
        }
        File::open(directory)?.sync_all()
    }

    fn group(&self, path: &str) -> io::Result<Value> {
        if !self.machine.has(path) {
            return Ok(None);
        }
        let mut settings = Vec::new();
        for file in GROUP_FILES {
            let text = self.text(&format!("{path}/{file}"))?.unwrap_or_default();
            if !text.is_empty() {
                settings.push(format!("{file}={text}"));
            }
        }
        Ok(Some(settings.join("\n")))
    }

    fn make_group(&self, path: &str, settings: &str) -> io::Result<()> {
        match self.kernel.make_group(&self.machine.path(path)) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => made?,
        }
        for setting in settings.lines() {
            let (file, text) = setting.split_once('=').ok_or(io::ErrorKind::InvalidInput)?;
            self.write(&format!("{path}/{file}"), text)?;
        }
        Ok(())
    }

    /// What still runs in it continues in the group above.
    fn remove_group(&self, path: &str) -> io::Result<()> {
        let above = path.rsplit_once('/').map_or("", |(above, _)| above);
        self.move_tasks(path, above)?;
        self.kernel.remove_group(&self.machine.path(path))
    }

    /// Moves all tasks that can be moved. Threads of the kernel that are tied to a processor
    /// cannot; tasks end meanwhile.
    fn move_tasks(&self, from: &str, to: &str) -> io::Result<()> {
        // Version 2 has processes only.
        let list = match self.machine.has(&format!("{from}/tasks")) {
            true => "tasks",
            false => "cgroup.procs",
        };
        let mut refused: Vec<String> = Vec::new();
        for _ in 0..ROUNDS {
            let tasks = self.text(&format!("{from}/{list}"))?.unwrap_or_default();
            let new: Vec<&str> =
                tasks.lines().filter(|task| !refused.iter().any(|one| one == task)).collect();
            if new.is_empty() {
                break;
            }
            for task in new {
                if self.write(&format!("{to}/{list}"), task).is_err() {
                    refused.push(task.to_owned());
                }
            }
        }
        Ok(())
    }

    /// Gives tasks their processors back, those that are still the same tasks.
    fn bind(&self, bound: &[Bound]) {
        for one in bound {
            let same = threads::task(&self.machine, one.task).is_some_and(|t| t.start == one.start);
            if let (true, Ok(cpus)) = (same, one.cpus.parse()) {
                let _ = self.kernel.set_affinity(one.task, &cpus); // it may have ended
            }
        }
    }

    /// Several values are for as many threads, one is for all. Threads that were not there before
    /// need no old value: they go with what made them.
    fn schedule(&self, prefix: &str, value: &Value) -> io::Result<()> {
        let Some(value) = value else { return Ok(()) };
        let values: Vec<&str> = value.split(',').collect();
        let threads = threads::kernel_threads(&self.machine, prefix);
        for (at, thread) in threads.iter().enumerate() {
            let wanted = values.get(at).or(values.last()).copied().unwrap_or_default();
            self.kernel.set_scheduling(thread.number, wanted)?;
        }
        Ok(())
    }
}

/// The settings of a group that are read, in the order in which they are written.
const GROUP_FILES: [&str; 4] =
    ["cpuset.cpus", "cpuset.mems", "cpuset.cpus.partition", "cpuset.sched_load_balance"];

/// What is not there is none.
fn absent(text: io::Result<String>) -> io::Result<Value> {
    match text {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        text => text.map(Some),
    }
}

/// An interface that is not there has no value.
fn gone(value: io::Result<Value>) -> io::Result<Value> {
    match value {
        Err(error) if error.raw_os_error() == Some(libc::ENODEV) => Ok(None),
        value => value,
    }
}
