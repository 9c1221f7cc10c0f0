//! The run coordinator: live programs joined to the network engine.
//!
//! ```text
//! program ── client ── socket ── session ── Engine
//!                                   └ virtual_time or real_time: who goes on, and when
//! ```
//!
//! On a network of the kernel ([`NetworkKind`]) the engine carries nothing: programs use their
//! interfaces, and the coordinator only starts, watches and records.

mod calls;
mod conversation;
mod drain;
mod endpoint;
mod gather;
mod handshake;
mod network;
mod one_processor;
mod processors;
mod real_time;
mod requests;
mod session;
mod station_on_kernel;
mod synthetic;
mod synthetic_on_kernel;
mod table;
mod told;
mod virtual_time;
mod wakeup;

pub use calls::Calls;
pub use endpoint::records_per_endpoint;
pub use network::{NOTICE, NetworkKind, NoNetwork, StartAt, until, utc_of};

use crate::cgroup::Cgroup;
use crate::coordinator::network::Carrier;
use crate::coordinator::session::{Failure, Session};
use crate::notices::{Notices, Preload};
use crate::process::{Kept, Reaper, Running, Scheduling, Start};
use crate::user::User;
use onbeat::coordinator::client::SetupError;
use onbeat::coordinator::protocol::{ENVIRONMENT, OLD_ENVIRONMENT};
use onbeat::instrument;
use onbeat_model::codes::run as codes;
use onbeat_model::diagnostic::Diagnostic;
use onbeat_model::outside::ProgramOutside;
use onbeat_model::plan::Plan;
use onbeat_model::record::{Ending, RunLog};
use onbeat_model::system::{
    Program, ProgramLimits, RunSettings, SchedulingPolicy, System, TimeMode, TransportKind,
};
use onbeat_model::time::{NetTime, Span};
use onbeat_net::network_code::{CarryingStation, SetupError as StationError};
use rustix::fd::{AsFd, AsRawFd};
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// The least number of the descriptor that a program is started with: shells' scripts use those
/// below for their own.
const DOOR_MIN: i32 = 10;

/// The environment variable that names the structs that messages are, if any are known: a line
/// `CHANNEL=FILE:STRUCT` for each such channel of the program's host.
pub const TYPES: &str = "ONBEAT_TYPES";
/// The most octets of its value: the kernel takes 128 KiB.
const TYPES_MAX: usize = 64 << 10;
/// The environment variable that names a program's execution times.
const EXECUTION_TIMES: &str = "ONBEAT_EXECUTION_TIMES";
/// The one that says where a program writes what its tasks do.
const TASK_TRACE: &str = "ONBEAT_TRACE";
/// The one that tells it, in virtual time, the priority that the description gives it; or nothing.
const PRIORITY: &str = "ONBEAT_PRIORITY";
/// The one that tells it the priorities of tasks that ask for none, `task=priority,`; or nothing.
const PRIORITIES: &str = "ONBEAT_PRIORITIES";
/// The one that tells it how many processors its host's programs share; or nothing.
const CORES: &str = "ONBEAT_CORES";

/// The priority that a task which asks for none has in virtual time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProposedPriority {
    /// The program.
    pub program: String,
    /// The task's function.
    pub task: String,
    /// 1 to 99.
    pub priority: u8,
}

/// How to run.
pub struct RunOptions<'a> {
    /// The priorities of tasks that ask for none, in virtual time: those of the analysis.
    pub proposed: Vec<ProposedPriority>,
    /// The scenario's name, for the log.
    pub scenario: String,
    /// What to run and for how long. On networks other than the emulated one, time must be real.
    pub settings: RunSettings,
    /// What carries the frames.
    pub network: NetworkKind,
    /// The stations that carry the channels, where slots do.
    pub stations: Vec<CarryingStation>,
    /// The directory of the description: where programs are found and started.
    pub directory: &'a Path,
    /// Told of network time as it advances.
    pub progress: &'a mut dyn FnMut(NetTime),
    /// Told each second what the ends have recorded since the last time.
    pub recorded: Option<&'a mut dyn FnMut(&RunLog)>,
    /// Set by a signal handler: ends the run early.
    pub interrupted: &'a AtomicBool,
    /// Real time: programs write markers into the kernel's trace.
    pub trace: bool,
    /// Real time: programs freeze the kernel's trace when a latency is longer.
    pub break_at: Option<Span>,
    /// Programs of Timed C write there what their tasks do, each in a file with its name.
    pub task_trace: Option<&'a Path>,
    /// Virtual time: notes what programs ask for, or holds it against what they asked for before.
    /// Then it is also noticed what they take from elsewhere.
    pub calls: Option<&'a mut Calls>,
    /// Watches over the programs should this process be killed.
    pub reaper: Option<&'a mut Reaper>,
    /// A control group whose processors the programs have that join the run.
    pub isolated: Option<PathBuf>,
}

/// What a run leaves.
#[derive(Debug)]
pub struct Outcome {
    /// Everything recorded.
    pub log: RunLog,
    /// What the user should know of it, a line each.
    pub notes: Vec<String>,
    /// What was noticed of the programs that join it, in their order; nothing unless
    /// [`RunOptions::calls`] were noted.
    pub outside: Vec<ProgramOutside>,
}

/// Why there was no run.
#[derive(Debug, thiserror::Error)]
pub enum NoRun {
    /// Something is wrong with the description.
    #[error("{}", .0.message)]
    Description(Box<Diagnostic>),
    /// Something is wrong with the machine.
    #[error("the run coordinator cannot start: {0}")]
    Machine(#[from] io::Error),
    /// The network is not to be had.
    #[error(transparent)]
    Network(#[from] NoNetwork),
    /// The network cannot have the stations.
    #[error("{}", onbeat_net::network_code::explain(.0))]
    Stations(Vec<StationError>),
    /// A host's station cannot be opened.
    #[error("the station of host `{host}`: {error}")]
    Station {
        /// The host.
        host: String,
        /// What the system said.
        error: io::Error,
    },
    /// An end on a host without programs cannot be played.
    #[error("an endpoint on host `{host}`, which has no programs: {error}")]
    SyntheticOnKernel {
        /// The host.
        host: String,
        /// Why not.
        error: SetupError,
    },
}

/// Runs a system: starts its programs, joins them to the engine, and gathers what they recorded.
/// When this returns, no program runs any more.
pub fn run<'a>(
    system: &'a System,
    plan: &'a Plan,
    mut options: RunOptions<'a>,
) -> Result<Outcome, NoRun> {
    let (reaper, limits) = (options.reaper.take(), options.settings.limits);
    let isolated = options.isolated.take();
    let real = options.settings.time == TimeMode::Real;
    if let Some(it) = system.synchronisation.filter(|it| it.in_run && real) {
        let message = "gPTP takes part in runs in virtual time only".to_owned();
        let help = "run with `--time virtual`, or remove `in_run` from [synchronisation]";
        let wrong = Diagnostic::error(codes::NOT_VIRTUAL, message, it.origin, "asked for here");
        return Err(NoRun::Description(Box::new(wrong.help(help))));
    }
    let directory = options.directory.canonicalize()?;
    let watch = watch_environment(&options);
    assert!(
        real || matches!(options.network, NetworkKind::Emulated),
        "only the emulated network has virtual time"
    );
    let by_stations = !options.stations.is_empty();
    let carrier = Carrier::new(options.network.clone(), system, by_stations)?;
    let task_trace = options.task_trace;
    let proposed = options.proposed.clone();
    let settings = options.settings;
    let preload = options.calls.as_ref().filter(|_| !real).map(|_| Preload::new()).transpose()?;
    let scheduling_of = move |program: &Program| Scheduling::of(&settings, program);
    let mut session = Session::new(system, plan, options, carrier)?;
    session.open_stations_on_kernel()?;
    session.open_synthetic_on_kernel()?;
    let (mut started, mut notes) = Started::new(&limits, isolated.as_deref(), reaper)?;
    notes.extend(unscheduled(&settings));
    let users = users(session.programs.iter().copied(), &session.carrier.kind, by_stations)?;
    for (position, user) in session.programs.positions().zip(&users) {
        let program = session.programs[position];
        let (door, theirs) = handshake::sockets().map_err(|Failure(why)| io::Error::other(why))?;
        let theirs = rustix::io::fcntl_dupfd_cloexec(theirs, DOOR_MIN).map_err(io::Error::from)?;
        let inode = rustix::fs::fstat(&theirs).map_err(io::Error::from)?.st_ino;
        let value = format!("{}:{inode}", theirs.as_raw_fd());
        let cores = processors::cores_of(system, program.host);
        if let (Some(user), Some(to)) = (user, task_trace) {
            user.own(&task_trace_of(program, to))?;
        }
        let mut settings = settings_of(program, cores, &directory, task_trace);
        settings.push((PRIORITIES, priorities_of(program, &proposed).into()));
        settings.extend(types_of(system, program).map(|types| (TYPES, types.into())));
        let names = [ENVIRONMENT, OLD_ENVIRONMENT];
        let mut environment: Vec<_> = names.map(|name| (name, OsStr::new(&value))).into();
        environment.extend(watch.iter().map(|(name, value)| (*name, OsStr::new(value))));
        environment.extend(settings.iter().map(|(name, value)| (*name, value.as_os_str())));
        let (notices, noticing) = notices_of(preload.as_ref(), program, user.as_ref())?;
        environment.extend(noticing.iter().map(|(name, value)| (*name, value.as_os_str())));
        let scheduling = scheduling_of(program);
        let start = Start {
            environment: &environment,
            scheduling,
            reaper: started.reaper.as_deref(),
            with: Some(theirs.as_fd()).filter(|_| program.joins),
            user: user.as_ref(),
            cgroup: started.cgroup.as_ref(),
        };
        let running = Running::start(program, &directory, start)
            .map_err(|error| NoRun::Description(Box::new(cannot_start(program, &error))))?;
        started.groups.push(running.group());
        notes.extend(scheduling.into_iter().flat_map(|it| running.shortfall(program, it)));
        session.admit(running, door, notices);
    }
    let result = if real { real_time::run(&mut session) } else { virtual_time::run(&mut session) };
    let ending = match result {
        Ok(()) => Ending::Complete,
        Err(Failure(reason)) => Ending::Early { at: session.engine.now(), reason },
    };
    notes.extend(started.end());
    Ok(session.finish(ending, notes))
}

/// Says that programs are scheduled as the description has it, whatever the policy.
fn unscheduled(settings: &RunSettings) -> Option<String> {
    let has_none = settings.time == TimeMode::Virtual && settings.policy != SchedulingPolicy::Fifo;
    let why = "the scheduling policy has no effect in virtual time: wake-ups and stacks are as \
               late as the description says";
    has_none.then(|| why.to_owned())
}

/// As whom programs run, where that is not who runs this.
fn users<'a>(
    programs: impl Iterator<Item = &'a Program>,
    network: &NetworkKind,
    by_stations: bool,
) -> Result<Vec<Option<User>>, NoRun> {
    let own = rustix::process::geteuid();
    let of = |program: &Program| {
        let Some(asked) = &program.user else { return Ok(None) };
        let wrong = |what: String, help: &str| {
            let message =
                format!("program `{}` cannot run as user `{}`: {what}", program.name, asked.name);
            let found =
                Diagnostic::error(codes::CANNOT_BE, message, asked.origin, "this user").help(help);
            NoRun::Description(Box::new(found))
        };
        let user = User::find(&asked.name).map_err(|error| {
            wrong(error.to_string(), "give the name or the number of a user of this machine")
        })?;
        if user.uid() == own {
            return Ok(None);
        }
        if !own.is_root() {
            let help = "run as that user or as the superuser, or remove the key";
            return Err(wrong("only the superuser can start programs as other users".into(), help));
        }
        // What a station carries passes sockets that the program is given.
        if by_stations {
            return Ok(Some(user));
        }
        if matches!(network, NetworkKind::Namespaces { .. }) {
            let help = "remove the key, or run on the emulated network";
            return Err(wrong(
                "only the superuser's programs can enter network namespaces".into(),
                help,
            ));
        }
        let is_udp = |kind| [TransportKind::Udp4, TransportKind::Udp6].contains(&kind);
        if matches!(network, NetworkKind::Interface { transport, .. } if !is_udp(*transport)) {
            let help = "remove the key, or run with --transport udp4 or udp6";
            return Err(wrong(
                "only the superuser's programs can send frames on interfaces".into(),
                help,
            ));
        }
        Ok(Some(user))
    };
    programs.map(of).collect()
}

/// What notices of a program, and what that adds to its environment; nothing if none is watched.
fn notices_of(
    preload: Option<&Preload>,
    program: &Program,
    user: Option<&User>,
) -> io::Result<Noticing> {
    let Some(preload) = preload.filter(|_| program.joins) else { return Ok((None, Vec::new())) };
    let notices = match user {
        // It may not open what this process has.
        Some(_) => Notices::unknown("it runs as another user: nothing is preloaded"),
        None => Notices::new()?,
    };
    let environment = notices.environment(preload);
    Ok((Some(notices), environment))
}

/// The same, as a type.
type Noticing = (Option<Notices>, Vec<(&'static str, OsString)>);

/// What tells programs what to switch on. In virtual time there is nothing for the kernel's trace
/// to show.
fn watch_environment(options: &RunOptions<'_>) -> Vec<(&'static str, String)> {
    let mut environment = Vec::new();
    if options.settings.time == TimeMode::Real {
        environment.extend(options.trace.then(|| (instrument::TRACE, "1".to_owned())));
        let micros = options.break_at.map(|span| (span.as_ns() / 1_000).to_string());
        environment.extend(micros.map(|micros| (instrument::BREAK_US, micros)));
    }
    environment
}

/// The priorities of a program's tasks that ask for none, as it is told them.
fn priorities_of(program: &Program, proposed: &[ProposedPriority]) -> String {
    let own = proposed.iter().filter(|one| one.program == program.name);
    own.map(|one| format!("{}={},", one.task, one.priority)).collect()
}

/// The structs that messages of a program's host are; those that have no room are left out.
fn types_of(system: &System, program: &Program) -> Option<String> {
    let mut lines = String::new();
    for channel in &system.channels {
        let is_here = channel.talker == program.host || channel.listeners.contains(&program.host);
        let Some(named) = channel.message_type.as_ref().filter(|_| is_here) else { continue };
        let line = format!("{}={named}\n", channel.name);
        let has_room = lines.len() + line.len() <= TYPES_MAX;
        if has_room && !named.contains(['\n', '\0']) {
            lines.push_str(&line);
        }
    }
    Some(lines).filter(|lines| !lines.is_empty())
}

/// Where a program writes what its tasks do.
fn task_trace_of(program: &Program, to: &Path) -> PathBuf {
    to.join(format!("{}.csv", program.name))
}

/// What a program of Timed C is told: how it shares processors, and which files it reads and
/// writes.
fn settings_of(
    program: &Program,
    cores: Option<u16>,
    directory: &Path,
    task_trace: Option<&Path>,
) -> Vec<(&'static str, OsString)> {
    let priority = program.priority.map(|own| own.to_string()).unwrap_or_default();
    let cores = cores.map(|cores| cores.to_string()).unwrap_or_default();
    let times = program.execution_times.as_ref();
    let times = times.map(|path| (EXECUTION_TIMES, directory.join(path).into()));
    let trace = task_trace.map(|to| (TASK_TRACE, task_trace_of(program, to).into()));
    let shares = [(PRIORITY, priority.into()), (CORES, cores.into())];
    shares.into_iter().chain(times).chain(trace).collect()
}

/// What of programs the reaper watches over for the time of a run.
struct Started<'a> {
    groups: Vec<u32>,
    cgroup: Option<Cgroup>,
    directories: Vec<PathBuf>,
    reaper: Option<&'a mut Reaper>,
}

impl<'a> Started<'a> {
    /// Makes the programs' control group, and says what it does not do for them, and why.
    fn new(
        limits: &ProgramLimits,
        isolated: Option<&Path>,
        mut reaper: Option<&'a mut Reaper>,
    ) -> io::Result<(Self, Vec<String>)> {
        let (mut cgroup, mut notes) = match Cgroup::new(limits) {
            Ok((cgroup, notes)) => (Some(cgroup), notes),
            Err(error) => (None, without_cgroup(limits, &error)),
        };
        if let Some(group) = isolated {
            let isolated = match &mut cgroup {
                Some(cgroup) => cgroup.isolate(group),
                None => Err(io::Error::other("there is no group for the run")),
            };
            let note = |error| format!("the programs do not run on isolated processors: {error}");
            notes.extend(isolated.unwrap_or_else(|error| vec![note(error)]));
        }
        let directories = cgroup.as_ref().map(|one| one.directories().to_vec()).unwrap_or_default();
        if let Some(reaper) = &mut reaper {
            for directory in &directories {
                reaper.guard(Kept::Cgroup(directory))?;
            }
        }
        Ok((Self { groups: Vec::new(), cgroup, directories, reaper }, notes))
    }

    /// Ends all processes of the control group; what the user should know of it.
    fn end(&mut self) -> Vec<String> {
        self.cgroup.take().map(Cgroup::end).unwrap_or_default()
    }
}

/// What the user should know of a run without a control group.
fn without_cgroup(limits: &ProgramLimits, why: &io::Error) -> Vec<String> {
    let keys = [("memory_max_octets", limits.memory), ("processes_max", limits.processes)];
    let unlimited = keys.iter().filter(|(_, limit)| limit.is_some());
    let unlimited = unlimited.map(|(key, _)| format!("`{key}` limits nothing: there is no cgroup"));
    let note = format!(
        "the programs run without a cgroup ({why}): should this run be killed, processes that have \
         left their program's process group stay"
    );
    std::iter::once(note).chain(unlimited).collect()
}

impl Drop for Started<'_> {
    fn drop(&mut self) {
        self.end();
        if let Some(reaper) = &mut self.reaper {
            for directory in &self.directories {
                let _ = reaper.release(Kept::Cgroup(directory));
            }
            for group in &self.groups {
                // A reaper that is gone watches over nothing.
                let _ = reaper.release(Kept::Group(*group));
            }
        }
    }
}

fn cannot_start(program: &Program, error: &crate::process::StartError) -> Diagnostic {
    let help = match error.error.kind() {
        io::ErrorKind::PermissionDenied if program.user.is_some() => {
            "let the program's `user` execute the file and enter the directories above it"
        }
        io::ErrorKind::NotFound => "build the system's programs first, or correct `command`",
        io::ErrorKind::PermissionDenied => "make the file executable, or correct `command`",
        _ => "correct `command`",
    };
    let message = format!("program `{}`: {error}", program.name);
    Diagnostic::error(codes::CANNOT_START, message, program.origin, "this program").help(help)
}
