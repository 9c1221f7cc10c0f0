//! The verbs `run` and `report`.

use crate::arguments::{PerfettoArgument, ReportArguments, RunArguments};
use crate::build;
use crate::chosen::{self, WrongArgument};
use crate::exit::Exit;
use crate::input;
use crate::on;
use crate::output::{self, Kind, MESSAGES, Output, RECORDS, REPORT, RESULTS};
use crate::perfetto::TraceFile;
use crate::recording::{self, Recording};
use crate::source::Source;
use crate::terminal;
use crate::trust::Trust;
use crate::verify;
use anyhow::{Context, bail, ensure};
use indicatif::{ProgressBar, ProgressStyle};
use onbeat::clock::MonoTime;
use onbeat::instrument::{Trace, Watch};
use onbeat_measure::{Ended, Results, RunResult, Verdict, records};
use onbeat_model::outside::ProgramOutside;
use onbeat_model::plan::Plan;
use onbeat_model::record::{Carrier, RunLog};
use onbeat_model::system::{Backend, ReservationMode, RunSettings, Scenario, System, TimeMode};
use onbeat_model::time::{NetTime, Span};
use onbeat_model::timing::{ScheduledTask, TimingReport};
use onbeat_net::network_code::CarryingStation;
use onbeat_run::coordinator::{
    self, Calls, NetworkKind, NoRun, Outcome, ProposedPriority, RunOptions,
};
use onbeat_run::process::{Reaper, adopt_orphans, end_orphans};
use onbeat_timing::tfg::Limits;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::iterator::Signals;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// One run that is asked for.
pub(crate) struct Wanted {
    pub(crate) scenario: String,
    /// The system with this run's settings.
    pub(crate) system: System,
    plan: Plan,
    pub(crate) network: NetworkKind,
    /// Those that carry channels, if they do.
    stations: Vec<CarryingStation>,
    /// The priorities that the analysis proposes.
    proposed: Vec<ProposedPriority>,
}

/// Runs a system, measures it and writes the report.
pub(crate) fn run(arguments: &RunArguments) -> anyhow::Result<Exit> {
    if let Some(file) = &arguments.on {
        return on::run(arguments, file);
    }
    let source = load(arguments)?;
    let network = chosen::network(&source.system, arguments)?;
    let mut wanted = wanted(&source, arguments, &network)?;
    let is_real = |wanted: &Wanted| wanted.system.run.time == TimeMode::Real;
    if arguments.verify && wanted.iter().any(is_real) {
        bail!(WrongArgument("--verify is for virtual time: real time repeats nothing".to_owned()));
    }
    let watch = watch(&wanted, arguments)?;
    let target = out(&source, arguments.out.as_deref())?;
    let host = match &wanted[0].network {
        NetworkKind::Interface { host, .. } => Some(*host),
        _ => None,
    };
    let built = build::compile(&source, host, &target)?;
    for wanted in &mut wanted {
        build::place(&mut wanted.system, &built);
    }
    let task_trace = arguments.task_trace.as_deref().map(task_trace).transpose()?;
    let interrupted = interrupt()?;
    let mut reaper = Reaper::start(Command::new(std::env::current_exe()?).arg("keeper"))?;
    adopt_orphans(true);
    // First, so that nobody waits for a run whose results have no place.
    let trace = arguments.perfetto.file();
    let trace = TraceFile::begin(trace, &target, arguments.sync, &mut reaper)?;
    let mut output = Output::begin(&target, Kind::Run, &mut reaper)?.durable(arguments.sync);
    recording::announce(wanted.iter().map(|wanted| &wanted.system), &target);
    let mut recording = Recording::begin(&target)?;
    let (mut runs, mut is_same, mut failed) = (Vec::new(), true, None);
    let scenarios: Vec<String> = wanted.iter().map(|wanted| wanted.scenario.clone()).collect();
    for wanted in wanted {
        let watch = (&watch, task_trace.as_deref());
        let mut calls = arguments.verify.then(Calls::default);
        let noted = (&mut calls, Some(&mut recording));
        let log = execute(&source, &wanted, watch, noted, output.reaper(), &interrupted);
        end_left_behind(output.reaper());
        let (log, outside) = match log {
            Err(error) if !runs.is_empty() => {
                failed = Some((wanted.scenario, error));
                break;
            }
            log => log?,
        };
        let again = again(&source, &wanted, watch, &mut calls, output.reaper(), &interrupted);
        let both = (&log, outside, again);
        let verification =
            calls.map(|calls| verify::verified(&wanted.scenario, both, &calls, &source.directory));
        is_same &= verification.as_ref().is_none_or(|it| it.is_same != Some(false));
        let mut run = measured(wanted.plan, &wanted.system, log)?;
        run.2.verification = verification;
        runs.push(run);
        if interrupted.load(Ordering::Relaxed) {
            break;
        }
    }
    let results = write(&source, &runs, output, trace)?;
    recording.done();
    if let Some((scenario, error)) = failed {
        return not_run(&scenario, error, &target);
    }
    name_left_out(&scenarios[runs.len()..]);
    show(&source.system, &results, &target, arguments.json);
    match exit_of(&results, interrupted.load(Ordering::Relaxed)) {
        Exit::Fine if !is_same => Ok(Exit::Broken),
        exit => Ok(exit),
    }
}

/// Runs it once more, if its calls were noted. Of a run that was cut off nothing can be said.
fn again(
    source: &Source,
    wanted: &Wanted,
    watch: (&Watch, Option<&Path>),
    calls: &mut Option<Calls>,
    reaper: &mut Reaper,
    interrupted: &AtomicBool,
) -> Option<anyhow::Result<Executed>> {
    let is_over = || interrupted.load(Ordering::Relaxed);
    calls.as_mut().filter(|_| !is_over()).map(Calls::repeat)?;
    let again = execute(source, wanted, watch, (calls, None), reaper, interrupted);
    end_left_behind(reaper);
    Some(again).filter(|_| !is_over())
}

/// Says that a scenario was not run, after others, of which the report is. As with any error,
/// standard output has no results.
pub(crate) fn not_run(scenario: &str, error: anyhow::Error, target: &Path) -> anyhow::Result<Exit> {
    terminal::say(format_args!(
        "onbeat: scenario {scenario} was not run; {} has those before it",
        target.join(REPORT).display()
    ));
    Err(error)
}

/// Says which scenarios were not run, of those that were asked for: the run was interrupted, or
/// ended early on a machine.
pub(crate) fn name_left_out(scenarios: &[String]) {
    if !scenarios.is_empty() {
        terminal::say(format_args!("onbeat: not run: scenarios {}", scenarios.join(", ")));
    }
}

/// Ends what programs have left behind.
fn end_left_behind(reaper: &Reaper) {
    let left = end_orphans(reaper.number());
    if !left.is_empty() {
        terminal::say(format_args!(
            "onbeat: processes {left:?}, which the programs left behind, could not be ended"
        ));
    }
}

/// The description, or the system of one program.
pub(crate) fn load(arguments: &RunArguments) -> anyhow::Result<Source> {
    if build::are_sources(&arguments.system) {
        let system = build::system_of(&arguments.system, arguments.origin, &arguments.bind)?;
        return Ok(Source::without_description(system, arguments.json));
    }
    match &arguments.system[..] {
        _ if arguments.origin.is_some() => bail!(WrongArgument(build::ORIGIN.to_owned())),
        _ if !arguments.bind.is_empty() => bail!(WrongArgument(build::BIND.to_owned())),
        [system] => {
            let kept = arguments.keep.read()?;
            let source = Source::load(system, arguments.json, Trust::Runs)?;
            Ok(source.keeping(kept.as_ref()).kept_from(arguments.keep.file()))
        }
        _ => bail!(WrongArgument("a run is of one description, or of C files".to_owned())),
    }
}

/// The directory for what tasks do, made if it is not there.
fn task_trace(directory: &Path) -> anyhow::Result<PathBuf> {
    std::fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
    directory.canonicalize().with_context(|| directory.display().to_string())
}

/// Signals to end that come so close together are one.
const ONE_SIGNAL: Span = Span::from_ms(500);

/// A flag that the first signal to end sets.
pub(crate) fn interrupt() -> anyhow::Result<Arc<AtomicBool>> {
    let interrupted = Arc::new(AtomicBool::new(false));
    let signals = [SIGINT, SIGTERM, SIGHUP];
    for signal in signals {
        flag::register(signal, Arc::clone(&interrupted))?;
    }
    let mut signals = Signals::new(signals)?;
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        let mut all = signals.forever();
        all.next();
        let first = MonoTime::now();
        // Who sends one to a command and to its group means one: timeout(1) does.
        if all.any(|_| MonoTime::now() - first > ONE_SIGNAL) {
            // Ends this process at once; the reaper clears up.
            signal_hook::low_level::exit(i32::from(Exit::Interrupted as u8));
        }
    })?;
    Ok(interrupted)
}

/// Rebuilds the report of the last run.
pub(crate) fn report(arguments: &ReportArguments) -> anyhow::Result<Exit> {
    let kept = arguments.keep.read()?;
    let source = Source::load(&arguments.system, arguments.json, Trust::by(arguments.trust))?;
    let source = source.keeping(kept.as_ref()).kept_from(arguments.keep.file());
    let target = out(&source, arguments.out.as_deref())?;
    let logs = match arguments.recovered {
        true => recording::recovered(&target)?,
        false => recorded(&target)?,
    };
    let runs =
        logs.into_iter().map(|log| evaluated(&source, log)).collect::<Result<Vec<_>, _>>()?;
    let into = (&*target, &arguments.perfetto, arguments.sync);
    let exit = finish(&source, &runs, into, arguments.json)?;
    if arguments.recovered {
        // The output has it now.
        let _ = std::fs::remove_file(recording::place(&target));
    }
    Ok(exit)
}

/// A run that was recorded, planned and measured again.
pub(crate) fn evaluated(source: &Source, log: RunLog) -> anyhow::Result<Measured> {
    let mut system = source.system.clone();
    let reservation = match log.reservations {
        Some(_) => ReservationMode::Srp,
        None => ReservationMode::Plan,
    };
    let backend = match log.stations {
        Some(_) => Backend::NetworkCode,
        None => Backend::Bridges,
    };
    let own = system.run;
    if let Some(described) = system.scenarios.iter().find(|one| one.name == log.scenario).cloned() {
        system = system.in_scenario(&described);
    }
    let (duration, slot_error) = (log.duration, system.run.slot_error);
    system.run = RunSettings { duration, reservation, backend, slot_error, ..own };
    if log.network != Carrier::Emulated {
        system.run = chosen::with_slot_errors(system.run);
    }
    let (plan, _) = source.plan_and_study(&system, log.protected, Limits::default())?;
    measured(plan, &system, log)
}

/// Writes the output of runs that were recorded, and shows it.
pub(crate) fn finish(
    source: &Source,
    runs: &[Measured],
    (target, trace, sync): (&Path, &PerfettoArgument, bool),
    json: bool,
) -> anyhow::Result<Exit> {
    let mut reaper = Reaper::start(Command::new(std::env::current_exe()?).arg("keeper"))?;
    let trace = TraceFile::begin(trace.file(), target, sync, &mut reaper)?;
    let output = Output::begin(target, Kind::Run, &mut reaper)?.durable(sync);
    let results = write(source, runs, output, trace)?;
    show(&source.system, &results, target, json);
    Ok(exit_of(&results, false))
}

/// The records of all runs of an output.
pub(crate) fn recorded(target: &Path) -> anyhow::Result<Vec<RunLog>> {
    let path = target.join(RESULTS);
    if !path.exists() {
        let cut_off = match recording::place(target).exists() {
            true => "the run was cut off; try `onbeat report --recovered`",
            false => "there is no run yet; try `onbeat run`",
        };
        bail!("{}: {cut_off}", path.display());
    }
    let text = input::read(&path, input::RESULTS_OCTETS).map_err(anyhow::Error::msg)?;
    let before: Results =
        serde_json::from_slice(&text).with_context(|| path.display().to_string())?;
    let of_run = |(at, run): (usize, &RunResult)| {
        let is_name = run.scenario.is_empty() || onbeat_model::name::is_name(&run.scenario);
        ensure!(is_name, "{}: a scenario has a name that none can have", path.display());
        let path = target.join(run_directory(at, &run.scenario)).join(RECORDS);
        let octets = input::read(&path, input::RECORDS_OCTETS).map_err(anyhow::Error::msg)?;
        let log = records::decode(&octets).with_context(|| path.display().to_string())?;
        // A figure from damaged records would be believed like any other.
        ensure!(
            records::record_hash(&log) == run.record_hash,
            "{}: damaged, or of another run: record_hash in {RESULTS} is not theirs",
            path.display()
        );
        Ok(log)
    };
    before.runs.iter().enumerate().map(of_run).collect()
}

/// What is asked for, planned: if one plan has errors, nothing is run.
pub(crate) fn wanted(
    source: &Source,
    arguments: &RunArguments,
    network: &NetworkKind,
) -> anyhow::Result<Vec<Wanted>> {
    let system = &source.system;
    let in_scenario = |scenario: &Scenario| (scenario.name.clone(), system.in_scenario(scenario));
    let named: Vec<(String, System)> = match &arguments.scenario {
        None if arguments.all_scenarios => system.scenarios.iter().map(in_scenario).collect(),
        None => vec![(String::new(), system.clone())],
        Some(name) => vec![in_scenario(chosen::scenario(system, name)?)],
    };
    if named.is_empty() {
        bail!(WrongArgument("the description has no scenarios".to_owned()));
    }
    let plans = named.into_iter().map(|(scenario, mut system)| {
        let mut settings = system.run;
        settings.time = arguments.time.map_or(settings.time, TimeMode::from);
        settings.duration = arguments.duration.unwrap_or(settings.duration);
        settings.seed = arguments.seed.unwrap_or(settings.seed);
        settings.protected &= !arguments.unprotected;
        settings.backend = arguments.backend.or(settings.backend);
        if !matches!(network, NetworkKind::Emulated) {
            settings.time = TimeMode::Real;
            if settings.backend == Backend::NetworkCode {
                settings = chosen::with_slot_errors(settings);
                chosen::by_stations(network)?;
            } else {
                chosen::without_reservations(&scenario, &settings)?;
                settings.protected = false;
            }
        }
        system.run = settings;
        let (plan, study) =
            source.plan_and_study(&system, settings.protected, Limits::default())?;
        let proposed = study.as_ref().map(proposed).unwrap_or_default();
        let stations = source.stations(&system)?;
        Ok(Wanted { scenario, system, plan, network: network.clone(), stations, proposed })
    });
    plans.collect()
}

/// What programs shall write into the kernel's trace. If it cannot be written, nothing is run.
fn watch(wanted: &[Wanted], arguments: &RunArguments) -> anyhow::Result<Watch> {
    let (trace, break_at) = (arguments.trace, arguments.break_us);
    if trace || break_at.is_some() {
        if wanted.iter().any(|wanted| wanted.system.run.time == TimeMode::Real) {
            Trace::open(trace, break_at)?;
        }
        if wanted.iter().any(|wanted| wanted.system.run.time == TimeMode::Virtual) {
            terminal::say(format_args!(
                "onbeat: --trace and --break-us have no effect in virtual time"
            ));
        }
    }
    Ok(Watch { trace, break_at, log: None })
}

/// Says what becomes of streams and faults: no table of a run shows them.
pub(crate) fn modelled(wanted: &Wanted) {
    let Wanted { system, network, .. } = wanted;
    let emulated = matches!(network, NetworkKind::Emulated);
    let models_tcp = emulated && system.run.time == TimeMode::Virtual;
    if !system.tcp.is_empty() && !models_tcp {
        terminal::say("onbeat: messages over TCP are modelled in virtual time only: left out");
    }
    if system.streams.is_empty() && system.faults.is_empty() {
        return;
    }
    terminal::say(match network {
        NetworkKind::Emulated => {
            "onbeat: streams and faults take part; `onbeat simulate` shows what streams meet"
        }
        NetworkKind::Namespaces { .. } => {
            "onbeat: faults of links and nodes take part, and clocks step; streams are left out"
        }
        NetworkKind::Interface { .. } => {
            "onbeat: streams and faults of the description are left out of real networks"
        }
    });
}

/// The priorities of tasks that state none, as the analysis has judged them.
fn proposed(study: &TimingReport) -> Vec<ProposedPriority> {
    let scheduled = study.schedules.iter().flat_map(|schedule| &schedule.tasks);
    let one = |found: &ScheduledTask| {
        let task = &study.graph.tasks[found.task];
        let function = task.name.split('#').next().unwrap_or_default();
        let priority = found.priority.filter(|_| found.is_assigned && task.priority.is_none())?;
        Some(ProposedPriority {
            program: task.program.clone(),
            task: function.to_owned(),
            priority,
        })
    };
    scheduled.filter_map(one).collect()
}

/// Says that real time knows nothing of the priorities that the analysis proposes.
pub(crate) fn unapplied(wanted: &Wanted) {
    if wanted.system.run.time == TimeMode::Virtual || wanted.proposed.is_empty() {
        return;
    }
    let tasks = wanted.proposed.iter().map(|one| format!("{} {}", one.task, one.priority));
    terminal::say(format_args!(
        "onbeat: the analysis supposes priorities that no program states, and this run in real \
         time does not apply: {}",
        tasks.collect::<Vec<_>>().join(", ")
    ));
}

/// What was recorded in a run, and what was noticed of its programs.
pub(crate) type Executed = (RunLog, Vec<ProgramOutside>);

/// Runs the coordinator once.
fn execute(
    source: &Source,
    wanted: &Wanted,
    (watch, task_trace): (&Watch, Option<&Path>),
    (calls, recording): (&mut Option<Calls>, Option<&mut Recording>),
    reaper: &mut Reaper,
    interrupted: &AtomicBool,
) -> anyhow::Result<Executed> {
    let settings = wanted.system.run;
    if let NetworkKind::Interface { epoch_ns, .. } = wanted.network {
        chosen::announce(epoch_ns);
    }
    modelled(wanted);
    unapplied(wanted);
    let bar = progress_bar(&wanted.scenario, settings);
    let mut progress = |now: NetTime| bar.set_position((now.as_ns() / 1_000_000).max(0) as u64);
    let is_first = recording.is_some();
    let mut recorded = recording.map(|recording| |log: &RunLog| recording.add(log));
    let options = RunOptions {
        proposed: wanted.proposed.clone(),
        scenario: wanted.scenario.clone(),
        settings,
        network: wanted.network.clone(),
        stations: wanted.stations.clone(),
        directory: &source.directory,
        progress: &mut progress,
        recorded: recorded.as_mut().map(|it| it as &mut dyn FnMut(&RunLog)),
        interrupted,
        trace: watch.trace,
        break_at: watch.break_at,
        task_trace,
        calls: calls.as_mut(),
        reaper: Some(reaper),
        isolated: None,
    };
    let outcome = coordinator::run(&wanted.system, &wanted.plan, options);
    bar.finish_and_clear();
    match outcome {
        Ok(Outcome { log, notes, outside }) => {
            for note in notes.iter().filter(|_| is_first) {
                terminal::say(format_args!("onbeat: {note}"));
            }
            Ok((log, outside))
        }
        Err(NoRun::Description(diagnostic)) => Err(source.wrong(&[*diagnostic]).into()),
        Err(error) => Err(error.into()),
    }
}

pub(crate) fn progress_bar(scenario: &str, settings: RunSettings) -> ProgressBar {
    let bar = ProgressBar::new((settings.duration.as_ns() / 1_000_000) as u64);
    let time = match settings.time {
        TimeMode::Virtual => "virtual",
        TimeMode::Real => "real",
    };
    let style = ProgressStyle::with_template("{msg} [{wide_bar}] {percent:>3} %  {eta} left");
    if let Ok(style) = style {
        bar.set_style(style.progress_chars("=> "));
    }
    let name = if scenario.is_empty() { "run" } else { scenario };
    bar.set_message(format!("{name}, {} of {time} time", settings.duration));
    bar
}

/// A run with its plan, its records and its figures.
pub(crate) type Measured = (Plan, RunLog, RunResult);

fn measured(plan: Plan, system: &System, log: RunLog) -> anyhow::Result<Measured> {
    let result = onbeat_measure::analyse(system, &plan, &log)
        .context("the records are not of this description")?;
    Ok((plan, log, result))
}

fn out(source: &Source, asked: Option<&Path>) -> anyhow::Result<PathBuf> {
    output::place(&source.directory, "out", asked)
}

/// The name of a run's directory in an output.
pub(crate) fn run_directory(at: usize, scenario: &str) -> String {
    let name = if scenario.is_empty() { "run" } else { scenario };
    format!("{}-{name}", at + 1)
}

/// Writes everything, all or nothing.
pub(crate) fn write(
    source: &Source,
    runs: &[Measured],
    mut output: Output<'_>,
    trace: Option<TraceFile>,
) -> anyhow::Result<Results> {
    let system = &source.system;
    for (at, (_, log, result)) in runs.iter().enumerate() {
        let directory = run_directory(at, &result.scenario);
        let records = onbeat_measure::records::encode(log);
        output.write(&format!("{directory}/{RECORDS}"), records)?;
        let mut messages = Vec::new();
        onbeat_report::csv(system, log, &mut messages)?;
        output.write(&format!("{directory}/{MESSAGES}"), messages)?;
        let reservations = result.reservations.as_ref();
        output::write_reservations(&output, &format!("{directory}/"), reservations)?;
    }
    let results =
        Results::new(&system.name, runs.iter().map(|(_, _, result)| result.clone()).collect());
    output.write(RESULTS, results.to_json())?;
    output.write(REPORT, onbeat_report::run::html(system, &source.subject(), runs))?;
    let logs = runs.iter().map(|(_, log, _)| log);
    let traced = trace.map(|trace| trace.finish(system, logs, output.reaper()));
    // Results are kept whatever becomes of the trace.
    output.finish()?;
    traced.transpose()?;
    Ok(results)
}

pub(crate) fn show(system: &System, results: &Results, target: &Path, json: bool) {
    let report = target.join(REPORT);
    if json {
        terminal::print(results.to_json().trim_end());
        terminal::say(format_args!("onbeat: the report is {}", report.display()));
    } else {
        match system.channels.is_empty() {
            true => terminal::print(onbeat_report::run::programs(system, results)),
            false => terminal::print(onbeat_report::run::table(system, results)),
        }
        terminal::print(format_args!("The report: {}", report.display()));
    }
}

/// Begins what is said of a run; nothing if it was of no scenario.
fn of_scenario(run: &RunResult) -> String {
    match run.scenario.as_str() {
        "" => String::new(),
        name => format!("scenario {name}: "),
    }
}

/// The exit code, and on standard error what is behind a bad one.
pub(crate) fn exit_of(results: &Results, interrupted: bool) -> Exit {
    let mut exit = Exit::Fine;
    for run in &results.runs {
        let of = of_scenario(run);
        for channel in run.channels.iter().filter(|c| c.verdict == Verdict::Broken) {
            let why = &channel.verdict_reason;
            terminal::say(format_args!(
                "onbeat: {of}the guarantee of channel `{}` is broken: {why}",
                channel.name
            ));
            exit = Exit::Broken;
        }
        for chain in run.chains.iter().filter(|c| c.verdict == Verdict::Broken) {
            let why = &chain.verdict_reason;
            terminal::say(format_args!(
                "onbeat: {of}the deadline of chain `{}` is missed: {why}",
                chain.name
            ));
            exit = Exit::Broken;
        }
    }
    for run in &results.runs {
        if let Ended::Early { reason, .. } = &run.ended {
            let of = of_scenario(run);
            terminal::say(format_args!("onbeat: {of}the run ended before its time: {reason}"));
            exit = Exit::Early;
        }
    }
    if interrupted { Exit::Interrupted } else { exit }
}
