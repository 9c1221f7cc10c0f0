//! The verb `lf simulate`: a federation's skeleton in virtual time, beside its bounds.

use super::bounds::span;
use super::compared::{self, Executed};
use super::model::{ChosenWaits, Model, ModelArguments};
use crate::arguments::{REPETITIONS_MAX, duration};
use crate::exit::Exit;
use crate::output::{FEDERATION, FEDERATION_RANGES, FEDERATION_REPORT, Kind, Output};
use crate::simulate::Bar;
use crate::{run, terminal};
use anyhow::anyhow;
use clap::Args;
use onbeat_measure::federation::{
    FederationResults, FederationSettings, Judgement, WaitSource, Waits,
};
use onbeat_model::codes::federation as codes;
use onbeat_model::diagnostic::{Diagnostic, Origin};
use onbeat_model::federation::{Coordination, Federation, MaxWait};
use onbeat_model::plan::Plan;
use onbeat_model::system::{ChannelId, System};
use onbeat_model::time::{NetTime, Span};
use onbeat_net::federation::{
    self, Behaviour, Clocks, FederationObserved, Receipt, RunLimits, Settings, Skeleton, Transfer,
    Watch,
};
use onbeat_report::federation as report;
use onbeat_run::process::Reaper;
use onbeat_timing::federation::{Analysis, Delivery, Environment, analyse};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How many runs there are if it is not said.
const RUNS: u32 = 10;
/// A federation starts so long after all clocks read more than zero, and up to so much later.
const START: Span = Span::from_ms(1);
const START_SPREAD: Span = Span::from_ms(10);
/// No wait makes a run longer than that.
const WAIT_MAX: Span = Span::from_s(3_600);

/// Which federation, how it is executed, and what the model does not say of it.
#[derive(Debug, Args)]
pub(crate) struct SkeletonArguments {
    #[command(flatten)]
    model: ModelArguments,
    /// Time of the last tag, as in 20s, 500ms or 5min; a bare number is seconds [default: the
    /// model's timeout]
    #[arg(long, value_parser = duration)]
    duration: Option<Span>,
    /// Seed of all random numbers
    #[arg(long)]
    seed: Option<u64>,
    /// Number of runs, each with its own random numbers
    #[arg(long, value_name = "N", default_value_t = RUNS,
          value_parser = clap::value_parser!(u32).range(1..=REPETITIONS_MAX))]
    runs: u32,
    /// Waits of federates: the model's, or the smallest that are safe
    #[arg(long, default_value = "model")]
    maxwait: ChosenWaits,
    /// Longest time of a message between federates of one station, such as 50us [default: unknown]
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    local: Option<Duration>,
    /// Assumes that handlers of deadlines set ports, as the reactions' bodies do
    #[arg(long)]
    handlers_set: bool,
    /// Directory for the report, the JSON and the CSV [default: none is written]
    #[arg(long, value_name = "DIRECTORY")]
    out: Option<PathBuf>,
    /// Prints JSON for machines (docs/lingua-franca.md)
    #[arg(long)]
    json: bool,
}

impl From<ChosenWaits> for Waits {
    fn from(chosen: ChosenWaits) -> Self {
        match chosen {
            ChosenWaits::Model => Self::Model,
            ChosenWaits::Computed => Self::Computed,
        }
    }
}

/// Executes a federation and sets what was seen beside its bounds.
pub(super) fn simulate(arguments: &SkeletonArguments) -> anyhow::Result<Exit> {
    let model = Model::read(&arguments.model)?;
    let federation = model.federation(arguments.json)?;
    if federation.reactions.is_empty() {
        return Err(nothing(&model, federation, arguments.json).into());
    }
    let (federation, system, plan) = model.planned(arguments.json, |system| {
        system.run.duration = arguments.duration.unwrap_or(system.run.duration);
        system.run.seed = arguments.seed.unwrap_or(system.run.seed);
    })?;
    let federation = &federation;
    note(federation, &system);
    let local = arguments.local.map(span);
    let environment = Environment::of(federation, &system, &plan, local, arguments.handlers_set);
    let analysis = analyse(federation, &environment, arguments.maxwait.into());
    let (waiting, sources) = waiting(federation, &analysis, arguments.maxwait);
    let interrupted = run::interrupt()?;
    let executed = Execution { arguments, system: &system, plan: &plan, waiting: &waiting };
    let observed = executed.all(&environment, &interrupted)?;
    let settings = FederationSettings {
        duration_ns: system.run.duration.as_ns(),
        seed: system.run.seed,
        runs: observed.runs,
        maxwait: arguments.maxwait.into(),
        local_ns: local.map(Span::as_ns),
        handlers_set: arguments.handlers_set,
    };
    let results = compared::results(&Executed {
        federation: &waiting,
        system: &system,
        plan: &plan,
        environment: &environment,
        analysis: &analysis,
        observed: &observed,
        sources: &sources,
        settings,
    });
    if let Some(target) = &arguments.out {
        write(target, &results)?;
    }
    show(arguments, &results);
    Ok(exit(&results))
}

/// There is nothing to execute.
fn nothing(model: &Model, federation: &Federation, json: bool) -> crate::source::Wrong {
    let first = federation.federates.first();
    let at = first.map_or_else(Origin::default, |federate| federate.origin);
    let message = format!("the federation `{}` has no reactions", federation.name);
    let none = Diagnostic::error(codes::NO_REACTIONS, message, at, "the first federate");
    model.wrong(&[none.help("give a reactor a reaction: without one nothing executes")], json)
}

/// What the runs leave out.
fn note(federation: &Federation, system: &System) {
    if federation.coordination == Coordination::Centralized {
        terminal::say(
            "onbeat: coordination is centralized: runs and bounds are those without the RTI",
        );
    }
    if !system.programs.is_empty() {
        terminal::say("onbeat: no program is started: reactions only take their execution times");
    }
}

/// The federation with the waits that it is to have, and where these come from.
fn waiting(
    federation: &Federation,
    analysis: &Analysis,
    chosen: ChosenWaits,
) -> (Federation, Vec<WaitSource>) {
    let mut waiting = federation.clone();
    let both = waiting.federates.iter_mut().zip(&analysis.federates);
    let sources = both.map(|(federate, bounds)| {
        let stated = federate.maxwait.map(|wait| (wait, WaitSource::Model));
        let computed = bounds.maxwait.as_ref().ok();
        let computed = computed.map(|wait| (MaxWait::For(*wait), WaitSource::Computed));
        let (first, second) = match chosen {
            ChosenWaits::Model => (stated, computed),
            ChosenWaits::Computed => (computed, stated),
        };
        let (wait, source) = first.or(second).unwrap_or((MaxWait::Forever, WaitSource::Runtime));
        federate.maxwait = Some(wait);
        source
    });
    let sources = sources.collect();
    if chosen == ChosenWaits::Computed {
        // They are as long as they must be without it.
        waiting.connections.iter_mut().for_each(|connection| connection.absent_after = None);
    }
    (waiting, sources)
}

/// What is executed.
struct Execution<'a> {
    arguments: &'a SkeletonArguments,
    system: &'a System,
    plan: &'a Plan,
    waiting: &'a Federation,
}

impl Execution<'_> {
    /// All runs, one after another; up to now, when it is interrupted.
    fn all(
        &self,
        environment: &Environment,
        interrupted: &AtomicBool,
    ) -> anyhow::Result<FederationObserved> {
        let transfers = self.transfers(environment);
        let subject = Skeleton {
            federation: self.waiting,
            system: self.system,
            plan: self.plan,
            transfers: &transfers,
        };
        let settings = self.settings();
        let runs = self.arguments.runs;
        let whole = settings.start + settings.duration;
        let name = &self.waiting.name;
        let bar = Bar::new(whole, runs, format!("{runs} runs of {name}"));
        let mut all = FederationObserved::default();
        for number in 0..runs {
            // The first one begins all the same: what it saw is then little, but not nothing.
            if number > 0 && interrupted.load(Ordering::Relaxed) {
                all.is_interrupted = true;
                break;
            }
            let behaviour = Behaviour::of(number);
            let clocks = if behaviour.is_worst { Clocks::Greatest } else { Clocks::Drawn };
            let clocks = clocks(Environment::clocks_until(self.system));
            let settings = Settings { behaviour, clocks, ..settings };
            let end = NetTime::ZERO + whole;
            let mut progress = Progress { bar: &bar, interrupted, before: NetTime::ZERO, end };
            let seen = federation::run(subject, &settings, number, &mut progress);
            all.merge(&seen.map_err(|overfull| anyhow!(overfull.explain(self.system)))?);
            progress.progress(end);
        }
        bar.finish();
        Ok(all)
    }

    fn settings(&self) -> Settings {
        let until = Environment::clocks_until(self.system);
        let errors = self.system.nodes.iter().map(|node| node.clock.max_abs(until));
        let error = errors.max().unwrap_or(Span::ZERO);
        let finite = |wait: Option<MaxWait>| match wait {
            Some(MaxWait::For(wait)) => wait,
            Some(MaxWait::Forever) | None => Span::ZERO,
        };
        let waits = self.waiting.federates.iter().map(|federate| finite(federate.maxwait));
        let absent = self.waiting.connections.iter().map(|one| finite(one.absent_after));
        let longest = [waits.max(), absent.max()].into_iter().flatten();
        let longest: Span = longest.map(|wait| wait.min(WAIT_MAX)).sum();
        let limits = RunLimits::default();
        Settings {
            seed: self.system.run.seed,
            duration: self.system.run.duration,
            start: START + error,
            start_spread: START_SPREAD,
            clocks: Clocks::Described,
            behaviour: Behaviour::of(0),
            handlers_set: self.arguments.handlers_set,
            limits: RunLimits { drain: limits.drain + longest + error, ..limits },
        }
    }

    /// How messages come to their readers: over their channels, whose fixed delays readers keep, or
    /// within a station.
    fn transfers(&self, environment: &Environment) -> Vec<Transfer> {
        let connections = self.waiting.connections.iter().zip(&environment.deliveries);
        let transfers = connections.map(|(connection, delivery)| {
            let channels = &self.system.channels;
            match channels.iter().position(|channel| channel.name == connection.name) {
                Some(at) => Transfer {
                    channel: Some(ChannelId(at as u32)),
                    receipt: Receipt::Fixed(channels[at].fixed_delay),
                },
                None => {
                    let receipt = match *delivery {
                        Some(Delivery::Between { min, max }) => Receipt::Within { min, max },
                        Some(Delivery::Fixed(_)) | None => Receipt::AtOnce,
                    };
                    Transfer { channel: None, receipt }
                }
            }
        });
        transfers.collect()
    }
}

/// Shows how far a run is.
struct Progress<'a> {
    bar: &'a Bar,
    interrupted: &'a AtomicBool,
    before: NetTime,
    end: NetTime,
}

impl Watch for Progress<'_> {
    fn progress(&mut self, now: NetTime) -> bool {
        let now = now.min(self.end);
        self.bar.advance(self.before, now);
        self.before = now;
        !self.interrupted.load(Ordering::Relaxed)
    }
}

/// Writes the report, the JSON and the CSV.
fn write(target: &Path, results: &FederationResults) -> anyhow::Result<()> {
    let mut reaper = Reaper::start(Command::new(std::env::current_exe()?).arg("keeper"))?;
    let output = Output::begin(target, Kind::Federation, &mut reaper)?;
    output.write(FEDERATION, results.to_json())?;
    output.write(FEDERATION_REPORT, report::html(results))?;
    output.write(FEDERATION_RANGES, report::csv(results))?;
    output.finish()
}

fn show(arguments: &SkeletonArguments, results: &FederationResults) {
    let page = arguments.out.as_ref().map(|target| target.join(FEDERATION_REPORT));
    if arguments.json {
        terminal::print(results.to_json().trim_end());
        if let Some(page) = page {
            terminal::say(format_args!("onbeat: the report is {}", page.display()));
        }
        return;
    }
    terminal::print(report::table(results));
    if let Some(page) = page {
        terminal::print(format_args!("The report: {}", page.display()));
    }
}

/// The exit code, and on standard error what is behind a bad one.
fn exit(results: &FederationResults) -> Exit {
    for broken in results.broken() {
        terminal::say(format_args!("onbeat: {broken}"));
    }
    match results.verdict {
        _ if results.interrupted => Exit::Interrupted,
        Judgement::Exceeded => Exit::Broken,
        Judgement::Unknown => Exit::Unproven,
        Judgement::Within | Judgement::NotSeen => Exit::Fine,
    }
}
