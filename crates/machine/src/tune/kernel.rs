//! What is set otherwise than by writing a file: system calls, and `tc` and `ip`.

use super::helper::{self, Helper};
use super::target::Value;
use super::threads;
use crate::coalescing;
use onbeat_configuration::{Disciplines, Vlan};
use onbeat_run::environment;
use onbeat_run::machine::{CpuList, Machine};
use rustix::process::Pid;
use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;
use std::process::Stdio;

/// The edge to a kernel. [`ThisKernel`] is the real one, [`super::FakeMachine`] keeps its values in
/// files, for tests and for trying out.
pub trait Kernel {
    /// Writes a file of `/proc` or `/sys` in one go.
    fn write(&self, path: &Path, text: &str) -> io::Result<()>;
    /// Makes a control group.
    fn make_group(&self, path: &Path) -> io::Result<()>;
    /// Removes one that has no tasks and no groups.
    fn remove_group(&self, path: &Path) -> io::Result<()>;
    /// Sets a task's scheduling, `fifo:50`.
    fn set_scheduling(&self, task: u32, scheduling: &str) -> io::Result<()>;
    /// Binds a task to processors.
    fn set_affinity(&self, task: u32, cpus: &CpuList) -> io::Result<()>;
    /// Interrupt coalescing of an interface.
    fn coalescing(&self, interface: &str) -> io::Result<Value>;
    /// Sets that.
    fn set_coalescing(&self, interface: &str, value: &str) -> io::Result<()>;
    /// The latency that a process of ours holds.
    fn held(&self) -> io::Result<Value>;
    /// Starts such a process, or ends it.
    fn set_held(&self, value: &Value) -> io::Result<()>;
    /// An interface's queueing disciplines, as [`super::Target::Qdiscs`] has them.
    fn qdiscs(&self, interface: &str) -> io::Result<Value>;
    /// Makes these; none: removes them.
    fn set_qdiscs(&self, interface: &str, made: Option<&Disciplines>) -> io::Result<()>;
    /// Whether there is an interface of that name, as [`super::Target::Vlan`] has it.
    fn vlan(&self, name: &str) -> io::Result<Value>;
    /// Makes a VLAN on an interface, or removes it.
    fn set_vlan(&self, interface: &str, vlan: &Vlan, there: bool) -> io::Result<()>;
}

/// The kernel that runs this.
#[derive(Debug)]
pub struct ThisKernel {
    /// The command that runs [`super::hold`], to which the latency is appended.
    pub holder: Vec<OsString>,
}

impl Kernel for ThisKernel {
    fn write(&self, path: &Path, text: &str) -> io::Result<()> {
        // Not created: what is not there is no setting.
        let mut file = OpenOptions::new().write(true).open(path)?;
        file.write_all(text.as_bytes())
    }

    fn make_group(&self, path: &Path) -> io::Result<()> {
        std::fs::create_dir(path)
    }

    fn remove_group(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_dir(path)
    }

    fn set_scheduling(&self, task: u32, scheduling: &str) -> io::Result<()> {
        let (policy, priority) = threads::policy(scheduling)
            .ok_or_else(|| io::Error::other(format!("`{scheduling}` cannot be set")))?;
        let parameters = libc::sched_param { sched_priority: priority };
        // SAFETY: the parameters outlive the call, which reads them.
        let set = unsafe { libc::sched_setscheduler(task as i32, policy, &raw const parameters) };
        if set == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    fn set_affinity(&self, task: u32, cpus: &CpuList) -> io::Result<()> {
        let mut set = rustix::thread::CpuSet::new();
        for cpu in cpus.0.iter().filter(|cpu| usize::from(**cpu) < rustix::thread::CpuSet::MAX_CPU)
        {
            set.set(usize::from(*cpu));
        }
        Ok(rustix::thread::sched_setaffinity(Pid::from_raw(task as i32), &set)?)
    }

    fn coalescing(&self, interface: &str) -> io::Result<Value> {
        Ok(coalescing::get(interface)?.map(|now| now.to_string()))
    }

    fn set_coalescing(&self, interface: &str, value: &str) -> io::Result<()> {
        let wanted = value.parse().map_err(io::Error::other)?;
        coalescing::set(interface, &wanted)
    }

    fn held(&self) -> io::Result<Value> {
        helper::held(&Machine::this())
    }

    fn set_held(&self, value: &Value) -> io::Result<()> {
        match value {
            // What is in the way of its outliving the session is said of the guard.
            Some(latency) => {
                Helper::Holder.start(&Machine::this(), &self.holder, latency).map(drop)
            }
            None => helper::end_holder(&Machine::this()),
        }
    }

    fn qdiscs(&self, interface: &str) -> io::Result<Value> {
        onbeat::interface::Interface::named(interface)?; // says which error it is if there is none
        let shown = run(&words(&["tc", "qdisc", "show", "dev", interface]))?;
        Ok(disciplines(&shown))
    }

    fn set_qdiscs(&self, interface: &str, made: Option<&Disciplines>) -> io::Result<()> {
        match made {
            Some(made) => run_all(&made.commands(interface)),
            None => run(&words(&["tc", "qdisc", "del", "dev", interface, "root"])).map(drop),
        }
    }

    fn vlan(&self, name: &str) -> io::Result<Value> {
        match onbeat::interface::Interface::named(name) {
            Ok(found) if found.tags => Ok(Some("vlan".to_owned())),
            Ok(_) => Ok(Some("interface".to_owned())),
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn set_vlan(&self, interface: &str, vlan: &Vlan, there: bool) -> io::Result<()> {
        match there {
            true => run_all(&vlan.setup(interface)),
            false => run(&words(&["ip", "link", "del", "dev", &vlan.name(interface)])).map(drop),
        }
    }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// Runs commands until one fails.
fn run_all(commands: &[Vec<String>]) -> io::Result<()> {
    commands.iter().try_for_each(|command| run(command).map(drop))
}

/// Runs a command and gives what it printed.
fn run(command: &[String]) -> io::Result<String> {
    let (program, arguments) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let failed = |why: String| io::Error::other(format!("{}: {why}", command.join(" ")));
    let output = environment::program(program)
        .args(arguments)
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| failed(error.to_string()))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()))
}

/// The disciplines that somebody set, `kind handle`, out of what `tc qdisc show` prints: those of
/// the kernel's own choice have handle 0.
pub(super) fn disciplines(shown: &str) -> Value {
    let set = shown.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let ("qdisc", kind, handle) = (words.next()?, words.next()?, words.next()?) else {
            return None;
        };
        (handle != "0:").then(|| format!("{kind} {handle}"))
    });
    let set: Vec<_> = set.collect();
    (!set.is_empty()).then(|| set.join(","))
}

/// Whether this machine is the one that runs this, as a kernel of it.
pub(super) fn of(machine: &Machine, holder: Vec<OsString>) -> Box<dyn Kernel> {
    match machine.is_this() {
        true => Box::new(ThisKernel { holder }),
        false => Box::new(super::FakeMachine::of(machine)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disciplines_of_the_kernels_own_choice_count_as_none() {
        assert_eq!(disciplines("qdisc noqueue 0: root refcnt 2 \n"), None);
        let shown = "qdisc mqprio 8b0: root refcnt 9 tc 3\nqdisc pfifo_fast 0: parent 8b0:3\n\
                     qdisc cbs 8b1: parent 8b0:1 hicredit 30\n";
        assert_eq!(disciplines(shown).as_deref(), Some("mqprio 8b0:,cbs 8b1:"));
        assert_eq!(disciplines(""), None);
    }
}
