//! The verb `simulate`: modelled traffic in virtual time, beside what the plan promises.

use crate::arguments::{Phases, SimulateArguments};
use crate::capture::Capture;
use crate::chosen::{self, WrongArgument};
use crate::exit::Exit;
use crate::output::{
    self, FileKind, Kind, Output, OutputFile, REPETITIONS, SIMULATION, SIMULATION_REPORT,
};
use crate::run;
use crate::source::Source;
use crate::terminal;
use crate::trust::Trust;
use anyhow::{Context, anyhow, bail};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use onbeat_measure::simulation::{Results, SimulationSettings};
use onbeat_model::observed::Observed;
use onbeat_model::plan::Plan;
use onbeat_model::system::{IdleSlopes, PortId, RunSettings, System};
use onbeat_model::time::{NetTime, Span};
use onbeat_net::network_code::CarryingStation;
use onbeat_net::{Simulation, Transmission, simulate_over};
use onbeat_report::simulation::{self, Repetitions};
use onbeat_run::process::Reaper;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, Once, mpsc};
use std::time::Duration;

/// A shorter simulation needs no bar.
const BAR_AFTER: Duration = Duration::from_secs(2);

/// Simulates a system and sets what was seen beside the plan's bounds.
pub(crate) fn simulate(arguments: &SimulateArguments) -> anyhow::Result<Exit> {
    let kept = arguments.keep.read()?;
    let source = Source::load(&arguments.system, arguments.json, Trust::AsKnown)?;
    let source = source.keeping(kept.as_ref());
    let mut system = source.system.clone();
    system.run = settings(&system, arguments)?;
    let stations = source.stations(&system)?;
    let plan = match arguments.no_bounds && stations.is_empty() {
        false => source.plan(&system, system.run.protected)?,
        true => source.plan_without_bounds(&system, system.run.protected)?,
    };
    if arguments.no_bounds && system.idle_slopes == IdleSlopes::Deadline {
        terminal::say("onbeat: without bounds no idleSlope is raised for a deadline");
    }
    if !system.programs.is_empty() {
        terminal::say(format_args!(
            "onbeat: no program is started: channels are modelled, one message an interval"
        ));
    }
    if !system.tcp.is_empty() {
        terminal::say("onbeat: messages over TCP take part; `onbeat run` shows what they meet");
    }
    let interrupted = run::interrupt()?;
    let mut reaper = Reaper::start(Command::new(std::env::current_exe()?).arg("keeper"))?;
    // First, so that nobody waits for a simulation whose results have no place.
    let capture = Captured::begin(&system, arguments, &mut reaper)?;
    let target = output::place(&source.directory, "out-simulation", arguments.out.as_deref())?;
    let mut output = Output::begin(&target, Kind::Simulation, &mut reaper)?.durable(arguments.sync);
    let wanted = Wanted::new((&system, &plan, &stations), arguments, &interrupted);
    let (observed, repetitions, capture) = wanted.repeat(capture)?;
    let results = Results::new(&system, &plan, &observed, wanted.settings(&observed));
    output.write(SIMULATION, results.to_json())?;
    let report = simulation::html(&system, &plan, &results);
    output.write(SIMULATION_REPORT, report)?;
    output::write_reservations(&output, "", results.reservations.as_ref())?;
    if arguments.repetitions > 1 {
        output.write(REPETITIONS, repetitions.to_csv())?;
    }
    if let Some(capture) = capture {
        capture.finish(output.reaper())?;
    }
    output.finish()?;
    let report = target.join(SIMULATION_REPORT);
    if arguments.json {
        terminal::print(results.to_json().trim_end());
        terminal::say(format_args!("onbeat: the report is {}", report.display()));
    } else {
        terminal::print(simulation::table(&results));
        terminal::print(format_args!("The report: {}", report.display()));
    }
    Ok(exit_of(&results, interrupted.load(Ordering::Relaxed)))
}

/// The run settings that the arguments ask for.
fn settings(system: &System, arguments: &SimulateArguments) -> anyhow::Result<RunSettings> {
    let mut settings = match &arguments.scenario {
        None => system.run,
        Some(name) => chosen::scenario(system, name)?.run,
    };
    settings.duration = arguments.duration.unwrap_or(settings.duration);
    settings.seed = arguments.seed.unwrap_or(settings.seed);
    settings.protected &= !arguments.unprotected;
    Ok(settings)
}

/// The ports of those names; all when none is named.
fn captured_ports(system: &System, names: &[String]) -> anyhow::Result<Vec<PortId>> {
    let all = || (0..system.ports.len() as u32).map(PortId);
    if names.is_empty() {
        return Ok(all().collect());
    }
    let mut ports = Vec::new();
    for name in names {
        let Some(port) = all().find(|port| system.port_label(*port) == *name) else {
            let near = all().map(|port| system.port_label(port));
            let node = name.split('.').next().unwrap_or_default();
            let near: Vec<_> = near.filter(|l| l.split('.').next() == Some(node)).collect();
            let hint = match near.is_empty() {
                true => "ports are named as in cat1.p2".to_owned(),
                false => format!("there are: {}", near.join(", ")),
            };
            bail!(WrongArgument(format!("there is no port `{name}`; {hint}")));
        };
        if !ports.contains(&port) {
            ports.push(port);
        }
    }
    Ok(ports)
}

/// A capture in progress.
struct Captured<'a> {
    ports: Vec<PortId>,
    capture: Capture<'a, BufWriter<File>>,
    output: OutputFile,
}

impl<'a> Captured<'a> {
    fn begin(
        system: &'a System,
        arguments: &SimulateArguments,
        reaper: &mut Reaper,
    ) -> anyhow::Result<Option<Self>> {
        let Some(file) = &arguments.capture else { return Ok(None) };
        let ports = captured_ports(system, &arguments.capture_port)?;
        let (output, into) = OutputFile::begin(file, FileKind::Capture, arguments.sync, reaper)?;
        let capture = Capture::new(system, &ports, BufWriter::new(into))?;
        Ok(Some(Self { ports, capture, output }))
    }

    fn finish(self, reaper: &mut Reaper) -> anyhow::Result<()> {
        self.capture.finish().flush().context("the capture")?;
        self.output.finish(reaper)
    }
}

/// What is to be simulated.
struct Wanted<'a> {
    system: &'a System,
    plan: &'a Plan,
    /// Those that carry the channels, if they do.
    stations: &'a [CarryingStation],
    repetitions: u32,
    phases: Phases,
    jobs: u32,
    interrupted: &'a AtomicBool,
}

impl<'a> Wanted<'a> {
    fn new(
        (system, plan, stations): (&'a System, &'a Plan, &'a [CarryingStation]),
        arguments: &SimulateArguments,
        interrupted: &'a AtomicBool,
    ) -> Self {
        let usual = if arguments.repetitions == 1 { Phases::Described } else { Phases::Random };
        let cores = || std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
        let jobs = arguments.jobs.map_or_else(cores, u32::from);
        Self {
            system,
            plan,
            stations,
            repetitions: arguments.repetitions,
            phases: arguments.phases.unwrap_or(usual),
            jobs: jobs.min(arguments.repetitions),
            interrupted,
        }
    }

    /// What was done, for the results.
    fn settings(&self, observed: &Observed) -> SimulationSettings {
        SimulationSettings {
            duration_ns: self.system.run.duration.as_ns(),
            seed: self.system.run.seed,
            repetitions: observed.repetitions,
            phases: self.phases.into(),
        }
    }

    /// Simulates as often as wanted, on several threads. What each repetition sees depends on its
    /// number alone, and all are put together in the order of their numbers, so that the number of
    /// threads changes nothing. The first one is captured.
    fn repeat<'c>(
        &self,
        mut capture: Option<Captured<'c>>,
    ) -> anyhow::Result<(Observed, Repetitions, Option<Captured<'c>>)> {
        let duration = self.system.run.duration;
        let bar = Bar::new(
            duration,
            self.repetitions,
            match self.repetitions {
                1 => format!("simulation, {duration}"),
                many => format!("{many} simulations, {duration} each"),
            },
        );
        let next = AtomicU32::new(0);
        let first = Mutex::new(capture.as_mut());
        let (done, results) = mpsc::channel();
        let work = |done: mpsc::Sender<(u32, anyhow::Result<Observed>)>| {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                // The first one begins all the same: what it saw is then little, but not nothing.
                let interrupted = number > 0 && self.interrupted.load(Ordering::Relaxed);
                if interrupted || number >= self.repetitions {
                    return;
                }
                // Whoever takes it first has repetition 0: later numbers find nothing.
                let capture =
                    if number == 0 { first.lock().ok().and_then(|mut f| f.take()) } else { None };
                let seen = self.once(number, capture, &bar);
                let failed = seen.is_err();
                if done.send((number, seen)).is_err() || failed {
                    return;
                }
            }
        };
        let mut repetitions = Repetitions::new(self.system);
        let observed = std::thread::scope(|scope| {
            for _ in 0..self.jobs {
                let done = done.clone();
                scope.spawn(|| work(done));
            }
            drop(done);
            in_order(results, |seen| repetitions.add(seen))
        });
        bar.finish();
        Ok((observed?, repetitions, capture))
    }

    /// One repetition; up to now, when it is interrupted.
    fn once(
        &self,
        number: u32,
        mut capture: Option<&mut Captured<'_>>,
        bar: &Bar,
    ) -> anyhow::Result<Observed> {
        let settings = Simulation {
            duration: self.system.run.duration,
            seed: self.system.run.seed,
            repetitions: self.repetitions,
            phases: self.phases.into(),
        };
        let ports = capture.as_ref().map_or(Vec::new(), |capture| capture.ports.clone());
        let failed = Cell::new(None);
        let mut sink = |sent: &Transmission| {
            if let Some(Err(error)) = capture.as_mut().map(|capture| capture.capture.frame(sent)) {
                failed.set(Some(error));
            }
        };
        let captured = onbeat_net::Capture { ports: &ports, sink: &mut sink };
        let mut before = NetTime::ZERO;
        let mut progress = |now| {
            bar.advance(before, now);
            before = now;
            let error = failed.take();
            let go_on = error.is_none() && !self.interrupted.load(Ordering::Relaxed);
            failed.set(error);
            go_on
        };
        let (of, capture) = ((self.system, self.plan), Some(captured));
        let seen = simulate_over(self.stations, of, &settings, number, capture, &mut progress);
        match failed.take() {
            Some(error) => Err(error).context("the capture"),
            None => seen.map_err(|error| anyhow!(error.explain(self.system))),
        }
    }
}

/// Puts repetitions together in the order of their numbers, whatever the order in which they come,
/// and shows them one by one.
fn in_order(
    results: mpsc::Receiver<(u32, anyhow::Result<Observed>)>,
    mut each: impl FnMut(&Observed),
) -> anyhow::Result<Observed> {
    let mut all = Observed::default();
    let mut waiting = BTreeMap::new();
    let mut next = 0;
    for (number, seen) in results {
        waiting.insert(number, seen?);
        while let Some(seen) = waiting.remove(&next) {
            all.merge(&seen);
            each(&seen);
            next += 1;
        }
    }
    Ok(all)
}

/// The progress of all repetitions together, in microseconds of simulated time; drawn where
/// somebody looks, and only when it takes long.
pub(crate) struct Bar {
    bar: ProgressBar,
    shown: Once,
}

impl Bar {
    /// Of so many repetitions that each take so long.
    pub(crate) fn new(duration: Span, repetitions: u32, message: String) -> Self {
        let length = (duration.as_ns() / 1_000) as u64 * u64::from(repetitions);
        let bar = ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::hidden());
        let style = ProgressStyle::with_template("{msg} [{wide_bar}] {percent:>3} %  {eta} left");
        if let Ok(style) = style {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_message(message);
        Self { bar, shown: Once::new() }
    }

    /// A repetition has come from one instant to another.
    pub(crate) fn advance(&self, from: NetTime, to: NetTime) {
        self.bar.inc((to.as_ns() / 1_000 - from.as_ns() / 1_000).max(0) as u64);
        if self.bar.elapsed() > BAR_AFTER {
            self.shown.call_once(|| self.bar.set_draw_target(ProgressDrawTarget::stderr()));
        }
    }

    /// Takes it away.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// The exit code, and on standard error what is behind a bad one.
fn exit_of(results: &Results, interrupted: bool) -> Exit {
    let mut exit = Exit::Fine;
    for broken in results.broken() {
        terminal::say(format_args!("onbeat: {broken}"));
        exit = Exit::Broken;
    }
    if interrupted { Exit::Interrupted } else { exit }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onbeat_model::observed::{FlowObserved, LatencyObserved};

    #[test]
    fn repetitions_are_put_together_by_number_whatever_comes_first() {
        // The same longest latency in each, released at other times: the first one's is kept.
        let seen = |number: u32| {
            let mut end = LatencyObserved::default();
            end.count(NetTime::from_ns(i64::from(number)), Span::from_ns(7));
            let flow = FlowObserved { released: 1, listeners: vec![end], ..Default::default() };
            Observed { repetitions: 1, streams: vec![flow], ..Observed::default() }
        };
        for order in [[0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1]] {
            let (done, results) = mpsc::channel();
            for number in order {
                done.send((number, Ok(seen(number)))).expect("received below");
            }
            drop(done);
            let all = in_order(results, |_| ()).expect("no failures");
            assert_eq!((all.repetitions, all.streams[0].released), (4, 4));
            assert_eq!(all.streams[0].listeners[0].max_released, NetTime::ZERO, "{order:?}");
        }
    }
}
