//! What is set otherwise than by writing a file: system calls, and `tc` and `ip`.

use super::target::Value;
use super::threads;
use crate::clock::pause;
use crate::link::coalescing;
use crate::machine::{CpuList, Machine};
use onbeat_model::time::Span;
use rustix::fs::FlockOperation;
use rustix::process::{Pid, Signal};
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// The edge to a kernel. [`ThisKernel`] is the real one, [`super::Pretended`] keeps its values in
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
    /// How an interface puts off interrupts.
    fn coalescing(&self, interface: &str) -> io::Result<Value>;
    /// Sets that.
    fn set_coalescing(&self, interface: &str, value: &str) -> io::Result<()>;
    /// The latency that a process of ours holds.
    fn held(&self) -> io::Result<Value>;
    /// Starts such a process, or ends it.
    fn set_held(&self, value: &Value) -> io::Result<()>;
    /// An interface's queueing disciplines, as [`super::Target::Qdiscs`] has them.
    fn qdiscs(&self, interface: &str) -> io::Result<Value>;
    /// Makes them by these commands; none: removes them.
    fn set_qdiscs(&self, interface: &str, value: &Value, setup: &[Vec<String>]) -> io::Result<()>;
    /// Whether there is an interface of that name, as [`super::Target::Vlan`] has it.
    fn vlan(&self, name: &str) -> io::Result<Value>;
    /// Makes it by these commands; none: removes it.
    fn set_vlan(&self, name: &str, value: &Value, setup: &[Vec<String>]) -> io::Result<()>;
}

/// Where the process that holds the idle states says which it is. Locked while it lives.
const HOLDER: &str = "/run/onbeat-cpu-dma-latency";
const DEVICE: &str = "/dev/cpu_dma_latency";
/// How long a holder may take to end.
const ENDS_WITHIN: u32 = 100;
const LOOK_AGAIN: Span = Span::from_ms(20);

/// The kernel that runs this.
#[derive(Debug)]
pub struct ThisKernel {
    /// The command that runs [`hold`], to which the latency is appended.
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
        Ok(holder()?.map(|(_, latency)| latency))
    }

    fn set_held(&self, value: &Value) -> io::Result<()> {
        match value {
            Some(latency) => self.start_holder(latency),
            None => end_holder(),
        }
    }

    fn qdiscs(&self, interface: &str) -> io::Result<Value> {
        crate::link::Interface::named(interface)?; // says which error it is if there is none
        let shown = run(&words(&["tc", "qdisc", "show", "dev", interface]))?;
        Ok(disciplines(&shown))
    }

    fn set_qdiscs(&self, interface: &str, value: &Value, setup: &[Vec<String>]) -> io::Result<()> {
        match value {
            Some(_) => setup.iter().try_for_each(|command| run(command).map(drop)),
            None => run(&words(&["tc", "qdisc", "del", "dev", interface, "root"])).map(drop),
        }
    }

    fn vlan(&self, name: &str) -> io::Result<Value> {
        match crate::link::Interface::named(name) {
            Ok(found) if found.tags => Ok(Some("vlan".to_owned())),
            Ok(_) => Ok(Some("interface".to_owned())),
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn set_vlan(&self, name: &str, value: &Value, setup: &[Vec<String>]) -> io::Result<()> {
        match value {
            Some(_) => setup.iter().try_for_each(|command| run(command).map(drop)),
            None => run(&words(&["ip", "link", "del", "dev", name])).map(drop),
        }
    }
}

impl ThisKernel {
    /// Starts a process that holds the latency, in a session of its own so that the end of the
    /// user's does not end it.
    fn start_holder(&self, latency: &str) -> io::Result<()> {
        let (program, arguments) =
            self.holder.split_first().ok_or_else(|| io::Error::other("no command to hold it"))?;
        let mut command = Command::new(program);
        command.args(arguments).arg(latency);
        detach(&mut command);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let mut said = String::new();
        let output = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
        io::BufReader::new(output).read_line(&mut said)?;
        if said.trim() == "holding" {
            return Ok(());
        }
        let ended = child.wait_with_output()?;
        Err(io::Error::other(String::from_utf8_lossy(&ended.stderr).trim().to_owned()))
    }
}

/// Has a process go on when the user's session ends: in a session of its own, without the
/// terminal.
pub fn detach(command: &mut Command) {
    command.current_dir("/").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // SAFETY: between fork and exec there is one system call; it takes no lock and allocates
    // nothing.
    unsafe { command.pre_exec(|| Ok(rustix::process::setsid().map(drop)?)) };
}

/// The process that holds the idle states, and the latency.
fn holder() -> io::Result<Option<(Pid, String)>> {
    let file = match File::open(HOLDER) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared) {
        // Nobody holds it: its process has ended.
        Ok(()) => return Ok(None),
        Err(rustix::io::Errno::AGAIN) => {}
        Err(error) => return Err(error.into()),
    }
    let text = io::read_to_string(file)?;
    let mut words = text.split_whitespace();
    let pid = words.next().and_then(|word| word.parse().ok()).and_then(Pid::from_raw);
    Ok(pid.zip(words.next().map(str::to_owned)))
}

fn end_holder() -> io::Result<()> {
    let Some((pid, _)) = holder()? else { return Ok(()) };
    rustix::process::kill_process(pid, Signal::TERM)?;
    for _ in 0..ENDS_WITHIN {
        if holder()?.is_none() {
            return Ok(());
        }
        pause(LOOK_AGAIN);
    }
    Err(io::Error::other(format!("process {pid:?} does not end")))
}

/// Holds the processors' idle states to a latency in microseconds until the process is ended: the
/// kernel keeps the request for as long as the device is open (its documentation of PM QoS).
///
/// # Errors
///
/// Another process of ours holds it, the device cannot be opened, or standard output is closed.
pub fn hold(latency: i32) -> io::Result<()> {
    let named = |path: &str, error: io::Error| io::Error::other(format!("{path}: {error}"));
    let open = OpenOptions::new().create(true).truncate(false).write(true).open(HOLDER);
    let mut file = open.map_err(|error| named(HOLDER, error))?;
    rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive)
        .map_err(|_| io::Error::other("another process holds the idle states already"))?;
    let device = OpenOptions::new().write(true).open(DEVICE);
    let mut device = device.map_err(|error| named(DEVICE, error))?;
    device.write_all(&latency.to_ne_bytes()).map_err(|error| named(DEVICE, error))?;
    file.set_len(0)?;
    file.write_all(format!("{} {latency}\n", std::process::id()).as_bytes())?;
    writeln!(io::stdout(), "holding")?;
    loop {
        pause(Span::from_s(3_600)); // a signal ends the process, and that the request
    }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// Runs a command and gives what it printed.
fn run(command: &[String]) -> io::Result<String> {
    let (program, arguments) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let failed = |why: String| io::Error::other(format!("{}: {why}", command.join(" ")));
    let output = Command::new(program)
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
        false => Box::new(super::Pretended::of(machine)),
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
