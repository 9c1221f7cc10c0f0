//! Programs as children, and the reaper that leaves nothing behind.
//!
//! A run must leave no process and no temporary file, however it ends. Children die with their
//! parent by the kernel's parent-death signal, and what they started dies with their process group,
//! and with their control group where there is one. For the day when the run itself is killed there
//! is the *reaper*: a second process that holds the read end of a pipe, is told of all groups and
//! temporary files, and clears up when the pipe closes without their having been released.

use onbeat_model::system::{CpuBudget, Program, RunSettings, SchedulingPolicy, TimeMode};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use rustix::process::{
    Pid, Resource, Rlimit, Signal, WaitId, WaitIdOptions, getrlimit, setrlimit, waitid,
};
use std::ffi::OsStr;
use std::io::{self, BufRead, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};

use crate::cgroup::{self, Cgroup};
use crate::user::User;
use onbeat::clock::{MonoTime, pause};
use onbeat_model::time::Span;

/// How often waiting loops look again.
const LOOK_AGAIN: Span = Span::from_ms(2);

/// How long processes that are killed are waited for. Some may not be killed: those of other users,
/// and those that the kernel holds.
const PATIENCE: Span = Span::from_s(2);

/// The process that clears up when this one cannot.
#[derive(Debug)]
pub struct Reaper {
    child: Child,
    pipe: Option<ChildStdin>,
}

/// What the reaper watches over.
#[derive(Clone, Copy, Debug)]
pub enum Kept<'a> {
    /// A process group.
    Group(u32),
    /// A control group.
    Cgroup(&'a Path),
    /// A file or a directory with all that is in it.
    Path(&'a Path),
}

impl Reaper {
    /// Starts the reaper; `command` must come to [`keep`].
    pub fn start(command: &mut Command) -> io::Result<Self> {
        // Its own group: a signal from the terminal must not reach it.
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::null()).process_group(0).spawn()?;
        let pipe = child.stdin.take();
        Ok(Self { child, pipe })
    }

    /// Its process number.
    pub fn number(&self) -> u32 {
        self.child.id()
    }

    /// Where a program that is about to be executed reports its own group, so that there is no
    /// instant at which it runs and the reaper does not know of it.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.pipe.as_ref().map(AsFd::as_fd)
    }

    /// Watches over something from now on.
    pub fn guard(&mut self, what: Kept<'_>) -> io::Result<()> {
        self.tell(b'+', what)
    }

    /// No longer watches over it.
    pub fn release(&mut self, what: Kept<'_>) -> io::Result<()> {
        self.tell(b'-', what)
    }

    fn tell(&mut self, sign: u8, what: Kept<'_>) -> io::Result<()> {
        let mut line = vec![sign];
        match what {
            Kept::Group(group) => line.extend(format!("g{group}").bytes()),
            Kept::Path(path) | Kept::Cgroup(path) => {
                line.push(if matches!(what, Kept::Path(_)) { b'f' } else { b'c' });
                line.extend(path.as_os_str().as_encoded_bytes());
            }
        }
        line.push(0);
        self.pipe.as_mut().ok_or(io::ErrorKind::BrokenPipe)?.write_all(&line)
    }
}

impl Drop for Reaper {
    fn drop(&mut self) {
        self.pipe = None; // the reaper sees the end of its input, clears up and exits
        let _ = self.child.wait();
    }
}

/// The reaper's whole life: learns what to watch over until `input` ends, then clears it up.
pub fn keep(input: impl Read) {
    let mut groups: Vec<u32> = Vec::new();
    let (mut paths, mut cgroups): (Vec<PathBuf>, Vec<PathBuf>) = Default::default();
    for message in io::BufReader::new(input).split(0) {
        let Ok(message) = message else { break };
        let Some((&[sign, kind], name)) = message.split_first_chunk::<2>() else { continue };
        match kind {
            b'g' => {
                let Ok(Ok(group)) = std::str::from_utf8(name).map(str::parse::<u32>) else {
                    continue;
                };
                groups.retain(|g| *g != group);
                groups.extend((sign == b'+').then_some(group));
            }
            b'f' | b'c' => {
                let path = PathBuf::from(OsStr::from_bytes(name));
                let kept = if kind == b'f' { &mut paths } else { &mut cgroups };
                kept.retain(|p| *p != path);
                kept.extend((sign == b'+').then_some(path));
            }
            _ => {}
        }
    }
    for group in groups {
        kill_group(group);
    }
    for directory in cgroups {
        let _ = cgroup::clear(&directory); // nobody is there any more who could be told
    }
    for path in paths {
        // It is gone already, or a directory, or not ours to remove: nothing more can be done.
        if std::fs::remove_file(&path).is_err() {
            let _ = std::fs::remove_dir_all(&path);
        }
    }
}

fn kill_group(group: u32) {
    if let Some(group) = i32::try_from(group).ok().and_then(Pid::from_raw) {
        // No such group: all of it has ended.
        let _ = rustix::process::kill_process_group(group, Signal::KILL);
    }
}

/// A program that runs. Dropping it kills its whole process group.
#[derive(Debug)]
pub struct Running {
    child: Child,
    status: Option<ExitStatus>,
}

/// Why a program could not be started.
#[derive(Debug, thiserror::Error)]
#[error("`{}` cannot be started: {error}", path.display())]
pub struct StartError {
    /// The file that was to be executed.
    pub path: PathBuf,
    /// What the system said.
    pub error: io::Error,
}

/// Limits the memory that a command, and each process that it starts, may ask for, in octets, and
/// the processor time that each may take, in seconds.
pub fn limit(command: &mut Command, memory: u64, seconds: u64) {
    let lower = |resource, limit: u64| {
        // Not above what this process has: only the superuser may.
        let least = getrlimit(resource).maximum.map_or(limit, |most| most.min(limit));
        Ok(setrlimit(resource, Rlimit { current: Some(least), maximum: Some(least) })?)
    };
    // SAFETY: between fork and exec the closure only makes system calls; it takes no lock and
    // allocates nothing.
    unsafe {
        command.pre_exec(move || {
            lower(Resource::As, memory)?;
            lower(Resource::Cpu, seconds)?;
            lower(Resource::Core, 0)
        });
    }
}

/// A real-time policy of the system's scheduler with priorities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RealTimePolicy {
    /// `SCHED_FIFO`.
    Fifo,
    /// `SCHED_RR`.
    Rr,
}

/// How a program is scheduled, in real time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduling {
    /// By its priority, if it has one, on its cores.
    Priority(RealTimePolicy),
    /// `SCHED_DEADLINE`: on all cores, as the kernel demands it.
    Deadline(CpuBudget),
    /// `SCHED_OTHER`, whatever this process has, on any core.
    Other,
}

impl Scheduling {
    /// That of a program in a run; none in virtual time.
    pub fn of(settings: &RunSettings, program: &Program) -> Option<Self> {
        match (program.policy.unwrap_or(settings.policy), program.budget) {
            _ if settings.time == TimeMode::Virtual => None,
            (SchedulingPolicy::Deadline, Some(budget)) => Some(Self::Deadline(budget)),
            (SchedulingPolicy::Fifo | SchedulingPolicy::Deadline, _) => {
                Some(Self::Priority(RealTimePolicy::Fifo))
            }
            (SchedulingPolicy::Rr, _) => Some(Self::Priority(RealTimePolicy::Rr)),
            (SchedulingPolicy::Other, _) => Some(Self::Other),
        }
    }
}

/// Gives a process SCHED_DEADLINE; 0 is the calling thread. Neither allocates nor locks.
fn set_deadline(pid: i32, budget: CpuBudget) -> io::Result<()> {
    let ns = |span: Span| span.as_ns().unsigned_abs();
    let attributes = libc::sched_attr {
        size: size_of::<libc::sched_attr>() as u32,
        sched_policy: libc::SCHED_DEADLINE as u32,
        // Else it could start no thread.
        sched_flags: libc::SCHED_FLAG_RESET_ON_FORK as u64,
        sched_nice: 0,
        sched_priority: 0,
        sched_runtime: ns(budget.runtime),
        sched_deadline: ns(budget.deadline),
        sched_period: ns(budget.period),
    };
    // SAFETY: the attributes are as long as they say, and outlive the call, which reads them.
    let set = unsafe { libc::syscall(libc::SYS_sched_setattr, pid, &raw const attributes, 0) };
    if set == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// What the kernel asks for SCHED_DEADLINE, by the error that it returned.
fn refusal(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EPERM) => {
            "CAP_SYS_NICE is needed, and the right to use all CPUs of a root domain"
        }
        Some(libc::EBUSY) => "the budgets exceed what kernel.sched_rt_runtime_us leaves",
        Some(libc::EINVAL) => {
            "the period is outside of kernel.sched_deadline_period_min_us, …_max_us"
        }
        _ => "the kernel has it not",
    }
}

impl RealTimePolicy {
    fn number(self) -> i32 {
        match self {
            Self::Fifo => libc::SCHED_FIFO,
            Self::Rr => libc::SCHED_RR,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Fifo => "SCHED_FIFO",
            Self::Rr => "SCHED_RR",
        }
    }
}

/// How a program is started.
#[derive(Clone, Copy, Debug, Default)]
pub struct Start<'a> {
    /// What is added to its environment.
    pub environment: &'a [(&'a str, &'a OsStr)],
    /// What is asked for it, if anything; whether that was granted, [`Running::shortfall`] tells.
    pub scheduling: Option<Scheduling>,
    /// Watches over its group from before it is executed.
    pub reaper: Option<&'a Reaper>,
    /// What it is handed, under the same number.
    pub with: Option<BorrowedFd<'a>>,
    /// As whom it runs, if that is another one.
    pub user: Option<&'a User>,
    /// Where it runs.
    pub cgroup: Option<&'a Cgroup>,
}

impl Running {
    /// Starts `program`, with `directory` as its working directory. What it prints goes to this
    /// process's standard error.
    pub fn start(
        program: &Program,
        directory: &Path,
        start: Start<'_>,
    ) -> Result<Self, StartError> {
        let path = executable(program, directory);
        let failed = |error| StartError { path: path.clone(), error };
        let output = io::stderr().as_fd().try_clone_to_owned();
        let mut command = Command::new(&path);
        command
            .args(&program.command[1..])
            .current_dir(directory)
            .stdin(Stdio::null())
            .stdout(output.map_err(failed)?);
        match start.user {
            // Its group comes with its session.
            Some(user) => user.introduce(&mut command),
            None => _ = command.process_group(0),
        }
        command.envs(start.environment.iter().copied());
        let before = Before::new(program, &start).map_err(failed)?;
        // SAFETY: between fork and exec the closure only makes system calls; it takes no lock and
        // allocates nothing.
        unsafe {
            command.pre_exec(move || before.exec());
        }
        let child = command.spawn().map_err(failed)?;
        Ok(Self { child, status: None })
    }

    /// The process group, for the reaper.
    pub fn group(&self) -> u32 {
        self.child.id()
    }

    /// What the system did not grant of what `program` asks for, for a person.
    pub fn shortfall(&self, program: &Program, scheduling: Scheduling) -> Vec<String> {
        let Some(pid) = self.pid() else { return Vec::new() };
        let mut missing = Vec::new();
        let policy = match scheduling {
            Scheduling::Other => return missing,
            Scheduling::Priority(policy) => policy,
            Scheduling::Deadline(budget) => {
                // What it did not get before it began, it does not get now either, and why.
                let number = pid.as_raw_nonzero().get();
                // SAFETY: the call takes no memory of ours.
                let has_it = unsafe { libc::sched_getscheduler(number) }
                    & !libc::SCHED_RESET_ON_FORK
                    == libc::SCHED_DEADLINE;
                if !has_it && let Err(error) = set_deadline(number, budget) {
                    missing.push(format!(
                        "program `{}` runs without its SCHED_DEADLINE budget: {error}: {}",
                        program.name,
                        refusal(&error)
                    ));
                }
                return missing;
            }
        };
        if let Some(priority) = program.priority
            && !has_priority(pid, policy, i32::from(priority))
        {
            missing.push(format!(
                "program `{}` runs without its {} priority {priority}: the system did not grant \
                 it (CAP_SYS_NICE or an rtprio limit is needed)",
                program.name,
                policy.name()
            ));
        }
        let granted = rustix::thread::sched_getaffinity(Some(pid));
        let has = |core: &u16| granted.as_ref().is_ok_and(|set| set.is_set(usize::from(*core)));
        if !program.cores.iter().all(has) {
            missing.push(format!(
                "program `{}` does not run on all of its cores {:?}: the machine lacks some",
                program.name, program.cores
            ));
        }
        missing
    }

    fn pid(&self) -> Option<Pid> {
        i32::try_from(self.child.id()).ok().and_then(Pid::from_raw)
    }

    /// How it ended, if it has. Then all of its process group ends.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        if self.status.is_none() && self.is_zombie() {
            // Before it is waited for: afterwards the number may be another's.
            kill_group(self.child.id());
            self.status = self.child.try_wait().ok().flatten();
        }
        self.status
    }

    fn is_zombie(&self) -> bool {
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        self.pid().is_some_and(|pid| matches!(waitid(WaitId::Pid(pid), look), Ok(Some(_))))
    }

    /// Kills its whole process group, and waits a little for its end; whether that came.
    pub fn end(&mut self) -> bool {
        if self.status.is_none() {
            kill_group(self.child.id());
        }
        self.ended_within(PATIENCE).is_some()
    }

    /// How it ended, if it does within `patience`.
    pub fn ended_within(&mut self, patience: Span) -> Option<ExitStatus> {
        let until = MonoTime::now() + patience;
        loop {
            let status = self.ended();
            if status.is_some() || MonoTime::now() >= until {
                return status;
            }
            pause(LOOK_AGAIN);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

/// What a new process does before it executes its program.
struct Before {
    parent: Pid,
    report_to: Option<RawFd>,
    scheduling: Option<Scheduling>,
    cores: Vec<u16>,
    priority: Option<u8>,
    cgroup: Vec<OwnedFd>,
    user: Option<User>,
    with: Option<RawFd>,
}

impl Before {
    fn new(program: &Program, start: &Start<'_>) -> io::Result<Self> {
        let cgroup = start.cgroup.into_iter().flat_map(|cgroup| cgroup.joins(program.joins));
        let by_priority = matches!(start.scheduling, Some(Scheduling::Priority(_)));
        let cgroup: io::Result<Vec<OwnedFd>> = cgroup.map(OwnedFd::try_clone).collect();
        Ok(Self {
            parent: rustix::process::getpid(),
            report_to: start.reaper.and_then(Reaper::descriptor).map(|fd| fd.as_raw_fd()),
            scheduling: start.scheduling,
            cores: if by_priority { program.cores.clone() } else { Vec::new() },
            priority: program.priority.filter(|_| by_priority),
            cgroup: cgroup?,
            user: start.user.cloned(),
            with: start.with.map(|fd| fd.as_raw_fd()),
        })
    }

    /// Neither allocates nor locks.
    fn exec(&self) -> io::Result<()> {
        cgroup::join(&self.cgroup)?;
        match self.scheduling {
            Some(Scheduling::Priority(policy)) => {
                ask_for(&self.cores, self.priority.map(|priority| (policy, priority)));
            }
            Some(Scheduling::Deadline(budget)) => _ = set_deadline(0, budget),
            Some(Scheduling::Other) => _ = ask_for_other(),
            None => {}
        }
        if let Some(user) = &self.user {
            user.become_it(self.priority)?;
        }
        // Forgotten by who becomes another.
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        if rustix::process::getppid() != Some(self.parent) {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        if let Some(reaper) = self.report_to {
            report_group(reaper)?;
        }
        if let Some(with) = self.with {
            // SAFETY: it is open in the parent, of which this process is a copy.
            let with = unsafe { BorrowedFd::borrow_raw(with) };
            rustix::io::fcntl_setfd(with, rustix::io::FdFlags::empty())?;
        }
        Ok(())
    }
}

/// Becomes the parent of processes whose own parents end, so that [`end_orphans`] finds them, or is
/// it no longer.
pub fn adopt_orphans(adopt: bool) {
    // Without it only the programs' own process groups are ended.
    let _ = rustix::process::set_child_subreaper(adopt.then(rustix::process::getpid));
}

/// Ends all children of this process but `spared`: what programs started and left behind, even if
/// it has made itself a session of its own. Waits for a while only; who is still there then.
pub fn end_orphans(spared: u32) -> Vec<i32> {
    let until = MonoTime::now() + PATIENCE;
    loop {
        // An end of one may make its children ours.
        let orphans = children_but(spared);
        if orphans.is_empty() || MonoTime::now() > until {
            return orphans.iter().map(|orphan| orphan.as_raw_nonzero().get()).collect();
        }
        for orphan in orphans {
            let _ = rustix::process::kill_process(orphan, Signal::KILL);
            let _ = waitid(WaitId::Pid(orphan), WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
        }
        pause(LOOK_AGAIN);
    }
}

fn children_but(spared: u32) -> Vec<Pid> {
    let own = std::process::id().to_string();
    let Ok(processes) = Path::new("/proc").read_dir() else { return Vec::new() };
    let numbers = processes.flatten().filter_map(|p| p.file_name().to_str()?.parse::<i32>().ok());
    let is_child = |pid: &i32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // After the name in parentheses: state, parent.
        let parent = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(1));
        parent == Some(&own) && *pid != spared as i32
    };
    numbers.filter(is_child).filter_map(Pid::from_raw).collect()
}

fn has_priority(pid: Pid, wanted_policy: RealTimePolicy, wanted: i32) -> bool {
    let pid = pid.as_raw_nonzero().get();
    let mut got = libc::sched_param { sched_priority: 0 };
    // SAFETY: `got` is a valid place for the answer.
    let policy = unsafe {
        libc::sched_getparam(pid, &mut got);
        libc::sched_getscheduler(pid)
    };
    policy == wanted_policy.number() && got.sched_priority == wanted
}

/// Tells the reaper, from a process that is about to be executed, its group. Neither allocates nor
/// locks.
fn report_group(reaper: RawFd) -> io::Result<()> {
    let mut message = *b"+g0000000000\0";
    let mut left = std::process::id();
    for digit in message[2..12].iter_mut().rev() {
        *digit = b'0' + (left % 10) as u8;
        left /= 10;
    }
    // SAFETY: the reaper's pipe is open in the parent, of which this process is a copy.
    let reaper = unsafe { BorrowedFd::borrow_raw(reaper) };
    rustix::io::write(reaper, &message)?;
    Ok(())
}

/// The file that a program's command names.
fn executable(program: &Program, directory: &Path) -> PathBuf {
    let name = Path::new(&program.command[0]);
    if program.command[0].contains('/') { directory.join(name) } else { name.to_owned() }
}

/// Asks for cores and a real-time priority for the calling thread; whether it has the latter. Of a
/// program, the parent looks at what was granted. Neither allocates nor locks.
pub(crate) fn ask_for(cores: &[u16], priority: Option<(RealTimePolicy, u8)>) -> bool {
    if !cores.is_empty() {
        let mut set = rustix::thread::CpuSet::new();
        for core in cores {
            let core = usize::from(*core);
            if core < rustix::thread::CpuSet::MAX_CPU {
                set.set(core);
            }
        }
        let _ = rustix::thread::sched_setaffinity(None, &set);
    }
    if let Some((policy, priority)) = priority {
        let parameters = libc::sched_param { sched_priority: i32::from(priority) };
        // SAFETY: the parameters are valid for the call; zero means the calling thread.
        return unsafe { libc::sched_setscheduler(0, policy.number(), &parameters) } == 0;
    }
    false
}

/// Gives the calling thread SCHED_OTHER, which anyone may. Neither allocates nor locks.
fn ask_for_other() -> bool {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: the parameters are valid for the call; zero means the calling thread.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_OTHER, &parameters) == 0 }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use onbeat_model::system::NodeId;
    use onbeat_testkit::{Need, not_run};

    /// A program that sleeps.
    pub(crate) fn sleeper(joins: bool, budget: Option<CpuBudget>) -> Program {
        Program {
            name: "program".to_owned(),
            host: NodeId(0),
            command: vec!["sleep".to_owned(), "1000".to_owned()],
            source: None,
            execution_times: None,
            tasks: None,
            joins,
            user: None,
            policy: None,
            priority: None,
            cores: Vec::new(),
            budget,
            work_max: Span::ZERO,
            origin: onbeat_model::diagnostic::Origin::default(),
        }
    }

    #[test]
    fn a_program_is_scheduled_as_asked_whatever_its_parent_has_or_the_limit_is_named() {
        if !ask_for(&[], Some((RealTimePolicy::Fifo, 1))) {
            return not_run(Need::Superuser, "no real-time priorities are granted");
        }
        let budget = |runtime, period| {
            let period = Span::from_us(period);
            CpuBudget { runtime: Span::from_us(runtime), deadline: period, period }
        };
        let started = |scheduling| {
            let program = sleeper(true, None);
            let start = Start { scheduling, ..Start::default() };
            let running = Running::start(&program, Path::new("/"), start).expect("sleep");
            let missing = scheduling.map(|it| running.shortfall(&program, it)).unwrap_or_default();
            let pid = running.pid().expect("a number").as_raw_nonzero().get();
            // SAFETY: the call takes no memory of ours.
            (unsafe { libc::sched_getscheduler(pid) } & !libc::SCHED_RESET_ON_FORK, missing)
        };
        let none = Vec::<String>::new();
        assert_eq!(started(None), (libc::SCHED_FIFO, none.clone()), "that of its parent");
        assert_eq!(started(Some(Scheduling::Other)), (libc::SCHED_OTHER, none.clone()));
        let (got, missing) = started(Some(Scheduling::Deadline(budget(10, 100_000))));
        match got == libc::SCHED_DEADLINE {
            true => assert_eq!(missing, none),
            false => not_run(Need::Machine, missing.join("; ")),
        }
        // No kernel takes so short a period unless it is told to.
        let (got, missing) = started(Some(Scheduling::Deadline(budget(2, 3))));
        assert_ne!(got, libc::SCHED_DEADLINE, "{missing:?}");
        let start = "program `program` runs without its SCHED_DEADLINE budget: ";
        let limits = ["kernel.sched_deadline_period_min_us", "CAP_SYS_NICE"];
        let is_named = limits.iter().any(|limit| missing[0].contains(limit));
        assert!(missing[0].starts_with(start) && is_named, "{missing:?}");
    }

    #[test]
    fn the_reaper_clears_up_what_was_not_released() {
        let directory = std::env::temp_dir().join(format!("onbeat-reaper-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory");
        let (kept, released) = (directory.join("kept"), directory.join("released"));
        std::fs::write(&kept, "").expect("a file");
        std::fs::write(&released, "").expect("a file");
        let mut sleeper =
            Command::new("sleep").arg("1000").process_group(0).spawn().expect("sleep");
        let text = format!(
            "+g{0:010}\0+f{1}\0+f{2}\0-f{2}\0nonsense\0",
            sleeper.id(),
            kept.display(),
            released.display()
        );
        keep(text.as_bytes());
        let status = sleeper.wait().expect("an end");
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(9));
        assert!(!kept.exists() && released.exists());
        std::fs::remove_dir_all(directory).expect("removed");
    }
}
