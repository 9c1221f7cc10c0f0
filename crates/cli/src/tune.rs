//! The verb `tune`: settings of this machine, and back (docs/tune.md).

mod held;
mod show;

pub(crate) use held::{Prepared, Tuned};
pub(crate) use show::waits;

use crate::arguments::KeepArguments;
use crate::chosen::{WrongArgument, host_named};
use crate::exit::Exit;
use crate::source::Source;
use crate::terminal;
use crate::trust::Trust;
use anyhow::{Context, bail};
use clap::{Args, Subcommand, ValueEnum};
use onbeat::clock::{MonoTime, pause};
use onbeat_machine::tune::{
    self, Applied, Ending, Event, Helper, Identity, Interrupt, Journal, Plan, Profile, Requirement,
    State, Traffic,
};
use onbeat_model::system::{NodeId, System};
use onbeat_model::time::Span;
use onbeat_run::machine::{CpuList, Machine};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// How often `--watch` looks at the settings.
const REFRESH: Span = Span::from_s(1);
/// Where the group with the isolated processors may be, in either version of cgroups.
pub(crate) const GROUPS: [&str; 2] = ["/sys/fs/cgroup/cpuset/onbeat", "/sys/fs/cgroup/onbeat"];
/// How often it looks whether it is interrupted.
const LOOK_AGAIN: Span = Span::from_ms(50);

#[derive(Debug, Args)]
pub(crate) struct TuneArguments {
    #[command(subcommand)]
    what: TuneVerb,
    /// The files of another machine, with a fake kernel: nothing of this one is changed
    #[arg(long, value_name = "DIRECTORY", global = true, hide = true, default_value = "/")]
    root: PathBuf,
}

#[derive(Debug, Subcommand)]
enum TuneVerb {
    /// Shows what `apply` would change; changes nothing
    #[command(after_help = "Examples:
  onbeat tune plan --profile cpuset --cores 2-3
  onbeat tune plan --profile tuned-like --cores 2-3 --interface eth1 --json
  onbeat tune plan robot-arm --host controller --profile cpuset --cores 2-3 --interface eth1")]
    Plan(WishArguments),
    /// Changes the settings; records and verifies each of them
    #[command(after_help = "Examples:
  onbeat tune apply --profile cpuset --cores 2-3 --confirm-within 60s
  onbeat tune apply --profile cpuset --cores 2-3 --watch
  onbeat tune apply --profile tuned-like --cores 2-3 --write-boot

Settings last until `onbeat tune undo` or the next boot; those of --write-boot last until
`onbeat tune undo`.")]
    Apply(ApplyArguments),
    /// Shows which settings have changed since; exits with 1 if any
    #[command(visible_alias = "verify")]
    Status {
        /// Prints JSON for machines (docs/cli.md)
        #[arg(long)]
        json: bool,
    },
    /// Keeps the settings of `apply --confirm-within`
    Confirm,
    /// Reverts all settings; keeps what others have changed since
    Undo,
    /// Holds the CPUs' idle states
    #[command(hide = true)]
    Hold { latency: i32 },
    /// Undoes an unconfirmed tune
    #[command(hide = true)]
    Guard {
        started_ns: i64,
        /// The process that it is for, as JSON
        #[arg(long)]
        process: Option<String>,
    },
}

#[derive(Debug, Args)]
struct WishArguments {
    /// Description, or directory of a system.toml: for priorities, shapers and VLANs
    #[arg(requires = "host")]
    system: Option<PathBuf>,
    /// Host of the description that this machine is
    #[arg(long, value_name = "NAME", requires = "system")]
    host: Option<String>,
    #[command(flatten)]
    keep: KeepArguments,
    /// Isolation of CPUs
    #[arg(long)]
    profile: ProfileName,
    /// CPUs to isolate, as in 2-3
    #[arg(long, value_name = "LIST")]
    cores: Option<CpuList>,
    /// Interface that carries the system's messages
    #[arg(long, value_name = "NAME")]
    interface: Option<String>,
    /// Changes the interface even if it carries your own session or a default route
    #[arg(long, requires = "interface")]
    force: bool,
    /// Handles the interface's packets in dedicated threads
    #[arg(long, requires = "interface")]
    napi_threads: bool,
    /// Lets the interface's hardware shape what it sends
    #[arg(long, requires_all = ["interface", "system"])]
    offload: bool,
    /// Writes boot parameters to /etc/default/grub.d/onbeat.cfg instead of printing them
    #[arg(long)]
    write_boot: bool,
    /// Prints JSON for machines (docs/cli.md)
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct ApplyArguments {
    #[command(flatten)]
    wish: WishArguments,
    /// Time after which everything is undone without `onbeat tune confirm`
    #[arg(long, value_name = "TIME", value_parser = crate::arguments::duration)]
    confirm_within: Option<Span>,
    /// Checks each second and restores changed settings, until interrupted
    #[arg(long)]
    watch: bool,
}

/// As the user writes it.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum ProfileName {
    /// No isolation
    None,
    /// At run time, by a cpuset
    Cpuset,
    /// By boot parameters, as TuneD's cpu-partitioning does
    TunedLike,
}

impl From<ProfileName> for Profile {
    fn from(name: ProfileName) -> Self {
        match name {
            ProfileName::None => Self::None,
            ProfileName::Cpuset => Self::Cpuset,
            ProfileName::TunedLike => Self::TunedLike,
        }
    }
}

/// Plans, applies, reads back, confirms or undoes.
pub(crate) fn tune(arguments: &TuneArguments) -> anyhow::Result<Exit> {
    let root = std::path::absolute(&arguments.root)?;
    let itself = std::env::current_exe().context("this program's own file")?;
    let edge = edge(&root, &itself);
    match &arguments.what {
        TuneVerb::Plan(wish) => {
            let (wished, plan) = planned(&edge, wish)?;
            terminal::print(match wish.json {
                true => show::plan_json(&wished, &plan),
                false => show::plan(&plan),
            });
            Ok(Exit::Fine)
        }
        TuneVerb::Apply(apply) => self::apply(&edge, apply, &[itself.into(), root.into()]),
        TuneVerb::Status { json } => status(&edge, *json),
        TuneVerb::Confirm => confirm(&edge),
        TuneVerb::Undo => undo(&edge),
        TuneVerb::Hold { latency } => {
            tune::hold(edge.machine(), *latency)?;
            Ok(Exit::Fine)
        }
        TuneVerb::Guard { started_ns, process } => {
            let mut tell = |text: &str| terminal::say(format_args!("onbeat: {text}"));
            let process = process.as_deref().map(serde_json::from_str).transpose()?;
            tune::guard(&edge, *started_ns, process.as_ref(), &mut tell)?;
            Ok(Exit::Fine)
        }
    }
}

/// The machine whose files are below a root: this one, or another with a fake kernel.
pub(crate) fn edge(root: &Path, itself: &Path) -> tune::Edge {
    let machine = if root == Path::new("/") { Machine::this() } else { Machine::below(root) };
    let holder = [itself.as_os_str().to_owned(), "tune".into(), "hold".into()];
    tune::Edge::of(machine, holder.to_vec())
}

/// What is wanted, and what that takes on this machine.
fn planned(edge: &tune::Edge, arguments: &WishArguments) -> anyhow::Result<(Requirement, Plan)> {
    let mut wish = Requirement {
        profile: arguments.profile.into(),
        cores: arguments.cores.clone().unwrap_or_default(),
        interface: arguments.interface.clone(),
        force: arguments.force,
        napi_threads: arguments.napi_threads,
        write_boot: arguments.write_boot,
        ..Requirement::default()
    };
    let kept = arguments.keep.read()?;
    if kept.is_some() && arguments.system.is_none() {
        bail!(WrongArgument("--keep needs the description of the plan, and the host".to_owned()));
    }
    if let (Some(path), Some(name)) = (&arguments.system, &arguments.host) {
        let source = Source::load(path, arguments.json, Trust::AsKnown)?;
        let source = source.keeping(kept.as_ref());
        let system = &source.system;
        let host = host_named(system, name)?;
        let plan = source.plan(system, system.run.protected)?;
        wish.priorities = priorities(system, host);
        wish.traffic = Some(Traffic::of(system, &plan, host, arguments.offload));
    }
    let interface = wish.interface.as_deref();
    let vlans: Vec<String> = match (interface, &wish.traffic) {
        (Some(name), Some(traffic)) => traffic.vlans.iter().map(|vlan| vlan.name(name)).collect(),
        _ => Vec::new(),
    };
    let snapshot = tune::snapshot(edge, interface, &tune::sessions(), &vlans);
    let mut plan = match tune::plan(&snapshot, &wish) {
        Ok(plan) => plan,
        Err(errors) => {
            let lines: Vec<_> = errors.iter().map(ToString::to_string).collect();
            bail!(WrongArgument(lines.join("\nonbeat: ")));
        }
    };
    plan.settle(edge)?;
    Ok((wish, plan))
}

/// The lowest and the highest priority that the host's programs and their tasks ask for.
pub(crate) fn priorities(system: &System, host: NodeId) -> Option<(u8, u8)> {
    let programs = system.programs_on(host);
    let all = programs.flat_map(|program| {
        let tasks = program.tasks.iter().flat_map(|graph| &graph.tasks);
        program.priority.into_iter().chain(tasks.filter_map(|task| task.priority))
    });
    let all: BTreeSet<u8> = all.collect();
    all.first().copied().zip(all.last().copied())
}

fn apply(
    edge: &tune::Edge,
    arguments: &ApplyArguments,
    itself: &[OsString; 2],
) -> anyhow::Result<Exit> {
    let (wish, plan) = planned(edge, &arguments.wish)?;
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&interrupted))?;
    }
    let json = arguments.wish.json;
    if plan.changes.is_empty() && tune::read(edge.machine())?.is_empty() {
        terminal::print(match json {
            true => show::plan_json(&wish, &plan),
            false => show::plan(&plan),
        });
        return Ok(Exit::Fine);
    }
    let mut journal = Journal::open(edge.machine())?;
    let profile = wish.profile.as_str();
    let never = &mut Interrupt::never();
    let started = journal.begin(edge, profile, arguments.confirm_within, never)?;
    if arguments.confirm_within.is_some()
        && let Err(error) = start_guard(edge, itself, started, None)
    {
        tune::undo(edge, journal, never, &mut tell)?; // puts away what has only begun
        return Err(error.context("the timer of --confirm-within; nothing is changed"));
    }
    let applied = tune::apply(edge, journal, &plan.changes, never, &mut tell)?;
    if interrupted.load(Ordering::Relaxed) {
        terminal::say("onbeat: interrupted: the settings are taken back");
        undo(edge)?;
        return Ok(Exit::Interrupted);
    }
    terminal::print(match json {
        true => show::plan_json(&wish, &plan),
        false => show::plan(&plan),
    });
    say_what_is_next(edge, arguments, applied);
    match arguments.watch {
        true => watch(edge, &wish, &interrupted),
        false => Ok(Exit::Fine),
    }
}

fn say_what_is_next(edge: &tune::Edge, arguments: &ApplyArguments, applied: Applied) {
    let Applied { made, refused, .. } = applied;
    let refused = match refused {
        0 => String::new(),
        n => format!(", {n} refused by the kernel"),
    };
    terminal::say(format_args!("onbeat: {made} settings made{refused}; `onbeat tune undo` undoes"));
    for group in GROUPS {
        if edge.machine().has(group) {
            terminal::say(format_args!(
                "onbeat: programs run on the isolated processors in the group {group}:\n  \
                 sh -c 'echo $$ > {group}/cgroup.procs && exec onbeat run SYSTEM'"
            ));
        }
    }
    if let Some(within) = arguments.confirm_within {
        terminal::say(format_args!(
            "onbeat: all is undone in {within} unless you say `onbeat tune confirm`"
        ));
    }
}

/// Starts the process that undoes the tune if it is not confirmed in time, or if the process ends
/// that it is for.
pub(crate) fn start_guard(
    edge: &tune::Edge,
    itself: &[OsString; 2],
    started: i64,
    process: Option<&Identity>,
) -> anyhow::Result<()> {
    let [program, root] = itself;
    let words = [program.clone(), "tune".into(), "--root".into(), root.clone(), "guard".into()];
    let mut command = Vec::from(words);
    if let Some(process) = process {
        command.extend(["--process".into(), serde_json::to_string(process)?.into()]);
    }
    if let Some(doubt) = Helper::Guard.start(edge.machine(), &command, &started.to_string())? {
        terminal::say(format_args!("onbeat: {doubt}"));
    }
    Ok(())
}

/// What happens, as lines on standard error.
pub(crate) fn tell(event: Event<'_>) {
    match event {
        Event::Made(_) | Event::Undone(_, Ending::Restored | Ending::Already) => {}
        Event::Refused(what, why) => {
            terminal::say(format_args!("onbeat: refused by the kernel: {what}: {why}"));
        }
        Event::Undone(what, Ending::Left) => terminal::say(format_args!(
            "onbeat: left as it is, because it was changed meanwhile: {what}"
        )),
        Event::Undone(what, Ending::Gone) => {
            terminal::say(format_args!("onbeat: already gone: {what}"));
        }
        Event::Failed(what, why) => {
            terminal::say(format_args!("onbeat: failed: {what}: {why}"));
        }
        Event::Again(what) => terminal::say(format_args!("onbeat: made again: {what}")),
    }
}

/// Keeps the settings in force until interrupted, or until somebody undoes them.
fn watch(edge: &tune::Edge, wish: &Requirement, interrupted: &AtomicBool) -> anyhow::Result<Exit> {
    let mut failed = BTreeSet::new();
    let mut tell = |event: Event<'_>| match event {
        Event::Made(what) => terminal::say(format_args!("onbeat: made: {what}")),
        event => tell(event),
    };
    terminal::say("onbeat: watching the settings until interrupted");
    while !interrupted.load(Ordering::Relaxed) {
        if !tune::watch_once(edge, wish, &mut failed, &mut tell)? {
            terminal::say("onbeat: the settings have been undone");
            return Ok(Exit::Fine);
        }
        let next = MonoTime::now() + REFRESH;
        while MonoTime::now() < next && !interrupted.load(Ordering::Relaxed) {
            pause(LOOK_AGAIN);
        }
    }
    terminal::say("onbeat: the settings stay; `onbeat tune undo` undoes them");
    Ok(Exit::Fine)
}

fn status(edge: &tune::Edge, json: bool) -> anyhow::Result<Exit> {
    let records = tune::read(edge.machine())?;
    let all = tune::verify(edge, &records)?;
    let guarded = match show::guarded(&records) {
        Some(started) => Some(is_guarded(edge, started)?),
        None => None,
    };
    if json {
        terminal::print(show::status_json(&records, &all, guarded));
    } else if all.is_empty() {
        let last = tune::last(edge.machine()).unwrap_or_default();
        terminal::print(match show::waits(&last) {
            true => "Nothing is tuned: the last tune was undone without having been confirmed.",
            false => "Nothing is tuned.",
        });
    } else {
        terminal::print(show::status(&records, &all, guarded));
    }
    let fine = all.iter().all(|one| matches!(one.state, State::InForce | State::Gone));
    // 1 is a finding; nothing is wrong with a description here.
    Ok(if fine { Exit::Fine } else { Exit::Description })
}

/// Whether the process lives that undoes the tune that began then.
fn is_guarded(edge: &tune::Edge, started_ns: i64) -> anyhow::Result<bool> {
    let living = Helper::Guard.living(edge.machine())?;
    Ok(living.is_some_and(|(_, word)| word == started_ns.to_string()))
}

fn confirm(edge: &tune::Edge) -> anyhow::Result<Exit> {
    let mut journal = Journal::open(edge.machine())?;
    if !show::waits(journal.records()) {
        bail!("no tune waits to be confirmed: `onbeat tune status` shows what is in force");
    }
    journal.confirm()?;
    terminal::say("onbeat: confirmed: the settings stay until `onbeat tune undo` or the next boot");
    Ok(Exit::Fine)
}

fn undo(edge: &tune::Edge) -> anyhow::Result<Exit> {
    let journal = Journal::open(edge.machine())?;
    let all = journal.outstanding().len();
    if all == 0 && journal.records().is_empty() {
        terminal::print("Nothing is tuned.");
        return Ok(Exit::Fine);
    }
    let boot_files = journal.outstanding().iter().any(|one| one.target.survives_reboot());
    let failed = tune::undo(edge, journal, &mut Interrupt::never(), &mut tell)?;
    if boot_files {
        terminal::say("onbeat: run update-grub so that the next boot is without the parameters");
    }
    if failed > 0 {
        bail!("{failed} of {all} settings could not be taken back; `onbeat tune undo` tries again");
    }
    terminal::say(format_args!("onbeat: {all} settings undone"));
    Ok(Exit::Fine)
}
