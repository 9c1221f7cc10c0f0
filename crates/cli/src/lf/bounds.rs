//! The verb `lf bounds`: when a federation's reactions execute, how long its federates must wait,
//! and how long its chains take.

use super::model::{ChosenWaits, Model, ModelArguments};
use super::patch;
use crate::chosen::WrongArgument;
use crate::exit::Exit;
use crate::output::write_files;
use crate::terminal;
use anyhow::bail;
use clap::Args;
use comfy_table::Cell;
use onbeat_model::federation::{ConnectionId, Coordination, Federation, MaxWait, ReactionId};
use onbeat_model::time::Span;
use onbeat_report::grid::{grid, right, ruled};
use onbeat_timing::federation::{
    Analysis, Deadline, Environment, FederateBounds, Figure, HostLoad, ReactionChain, WaitCycle,
    WaitVerdict, Waits, analyse,
};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Version of what `--json` prints.
const VERSION: u32 = 1;

/// Which federation, and what the model does not say of it.
#[derive(Debug, Args)]
pub(crate) struct BoundsArguments {
    #[command(flatten)]
    model: ModelArguments,
    /// Longest time of a message between federates of one station, such as 50us [default: unknown]
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    local: Option<Duration>,
    /// Assumes that handlers of deadlines set ports, as the reactions' bodies do
    #[arg(long)]
    handlers_set: bool,
    /// Waits that sendings, chains and deadlines count with: the smallest that are safe, or the
    /// model's
    #[arg(long, default_value = "computed")]
    maxwait: ChosenWaits,
    /// File for the changes of the model that make all its waits suffice, as a unified diff; `-`
    /// prints it
    #[arg(long, value_name = "FILE")]
    patch: Option<PathBuf>,
    /// Prints JSON for machines (docs/cli.md)
    #[arg(long)]
    json: bool,
}

/// Computes the bounds and shows them.
pub(super) fn bounds(arguments: &BoundsArguments) -> anyhow::Result<Exit> {
    let model = Model::read(&arguments.model)?;
    let is_printed = arguments.patch.as_deref() == Some(Path::new("-"));
    if is_printed && arguments.json {
        let why = "--patch - and --json both want standard output: give the patch a file";
        bail!(WrongArgument(why.to_owned()));
    }
    let (federation, system, plan) = model.planned(arguments.json, |_| ())?;
    if let Some(file) = arguments.patch.as_deref().filter(|_| !is_printed) {
        model.spare(file)?;
    }
    let federation = &federation;
    let local = arguments.local.map(span);
    let environment = Environment::of(federation, &system, &plan, local, arguments.handlers_set);
    let analysis = analyse(federation, &environment, arguments.maxwait.into());
    let others = other_waits(federation, &environment, arguments.maxwait);
    if federation.coordination == Coordination::Centralized {
        terminal::say("onbeat: coordination is centralized: bounds are those without the RTI");
    }
    let patch = arguments.patch.as_deref();
    let patched = patch.map(|file| {
        let computed = analyse(federation, &environment, Waits::Computed);
        (file, patch::patch(&model, federation, &environment, &computed))
    });
    if arguments.json {
        terminal::print_json(&to_json(federation, &analysis, arguments.maxwait))?;
    } else if !is_printed {
        terminal::print(tables(federation, &analysis, arguments.maxwait));
    }
    let Some((file, patched)) = patched else {
        let missed = others.iter().flat_map(|others| missed(federation, others, &analysis));
        let missed: Vec<String> = missed.collect();
        for missed in &missed {
            terminal::say(format_args!("onbeat: {missed}"));
        }
        return Ok(if missed.is_empty() { exit(&analysis) } else { Exit::Broken });
    };
    let endless = analysis.cycles.iter().map(|cycle| endless(federation, cycle));
    let is_explained = !is_printed || patched.notes.is_empty();
    for note in patched.notes.into_iter().chain(endless.filter(|_| !is_explained)) {
        terminal::say(format_args!("onbeat: {note}"));
    }
    if !is_printed {
        write_files(&[(file, patched.text)])?;
        let plural = if patched.changes == 1 { "wait" } else { "waits" };
        terminal::say(format_args!("onbeat: {} {plural}: {}", patched.changes, file.display()));
    } else {
        terminal::hand_on(&patched.text);
    }
    Ok(exit(&patched.analysis))
}

/// What holds with the model's waits, if the figures are not those and deadlines depend on them.
fn other_waits(
    federation: &Federation,
    environment: &Environment,
    chosen: ChosenWaits,
) -> Option<Analysis> {
    let has_deadline = federation.reactions.iter().any(|reaction| reaction.deadline.is_some());
    (has_deadline && chosen == ChosenWaits::Computed && states_waits(federation))
        .then(|| analyse(federation, environment, Waits::Model))
}

/// Whether the model says how long anything waits.
fn states_waits(federation: &Federation) -> bool {
    federation.federates.iter().any(|federate| federate.maxwait.is_some())
        || federation.connections.iter().any(|connection| connection.absent_after.is_some())
}

/// Deadlines that are met with the computed waits and missed with the model's.
fn missed(federation: &Federation, model: &Analysis, computed: &Analysis) -> Vec<String> {
    let both = model.reactions.iter().zip(&computed.reactions);
    let both = (0..).map(ReactionId).zip(both);
    let missed = both.filter_map(|(at, (model, computed))| {
        match (model.deadline.as_ref()?, computed.deadline.as_ref()?) {
            (Deadline::Missed { by }, Deadline::Met { .. }) => Some(format!(
                "with the model's waits, {} may start {by} after its deadline: --maxwait model \
                 has all figures",
                reaction_name(federation, at)
            )),
            _ => None,
        }
    });
    missed.collect()
}

/// Whether waits, deadlines and processors suffice.
fn exit(analysis: &Analysis) -> Exit {
    let waits = || analysis.federates.iter().map(|federate| &federate.verdict);
    let deadlines = || analysis.reactions.iter().filter_map(|reaction| reaction.deadline.as_ref());
    let hosts = || analysis.hosts.iter().map(|host| &host.is_schedulable);
    let is_unsafe = waits().any(|wait| matches!(wait, WaitVerdict::Unsafe { .. }));
    let is_late = deadlines().any(|deadline| matches!(deadline, Deadline::Missed { .. }));
    if is_unsafe || is_late || hosts().any(|host| host == &Ok(false)) {
        return Exit::Broken;
    }
    let is_unknown = analysis.federates.iter().any(|federate| federate.maxwait.is_err())
        || waits().any(|wait| matches!(wait, WaitVerdict::Unknown(_)))
        || deadlines().any(|deadline| matches!(deadline, Deadline::Unknown(_)))
        || hosts().any(Result::is_err);
    if is_unknown { Exit::Unproven } else { Exit::Fine }
}

/// A time from the command line.
pub(super) fn span(time: Duration) -> Span {
    Span::from_ns(i64::try_from(time.as_nanos()).unwrap_or(i64::MAX))
}

/// `federate.reaction`.
pub(super) fn reaction_name(federation: &Federation, reaction: ReactionId) -> String {
    let reaction = &federation.reactions[reaction.index()];
    let federate = &federation.federates[reaction.federate.index()].name;
    format!("{federate}.{}", reaction.name)
}

pub(super) fn chain_names(federation: &Federation, chain: &ReactionChain) -> Vec<String> {
    chain.links.iter().map(|(reaction, _)| reaction_name(federation, *reaction)).collect()
}

fn cycle_names<'a>(federation: &'a Federation, cycle: &WaitCycle) -> Vec<&'a str> {
    let name = |at: &ConnectionId| federation.connections[at.index()].name.as_str();
    cycle.connections.iter().map(name).collect()
}

/// What is wrong with a cycle, and what breaks it.
fn endless(federation: &Federation, cycle: &WaitCycle) -> String {
    let names = cycle_names(federation, cycle);
    let least = names.iter().zip(&cycle.after).min_by_key(|(_, after)| **after);
    let breaks = least.map_or_else(String::new, |(name, after)| {
        format!(" `after {}` at {name} breaks it.", literal(*after))
    });
    format!(
        "No @maxwait is long enough on the cycle {}: each round wants {} more.{breaks}",
        names.join(" → "),
        cycle.excess
    )
}

/// A time as the language writes it.
pub(super) fn literal(time: Span) -> String {
    match time.as_ns() {
        0 => "0".to_owned(),
        ns if ns % 1_000_000 == 0 => format!("{} ms", ns / 1_000_000),
        ns if ns % 1_000 == 0 => format!("{} us", ns / 1_000),
        ns => format!("{ns} ns"),
    }
}

fn stated(wait: Option<MaxWait>) -> String {
    match wait {
        None => "–".to_owned(),
        Some(MaxWait::For(wait)) => format!("@maxwait({})", literal(wait)),
        Some(MaxWait::Forever) => "@maxwait(forever)".to_owned(),
    }
}

fn judged(verdict: &WaitVerdict) -> String {
    match verdict {
        WaitVerdict::NoInputs => "no inputs".to_owned(),
        WaitVerdict::Unstated => "not in the model".to_owned(),
        WaitVerdict::Safe { spare: Span::ZERO } => "safe".to_owned(),
        WaitVerdict::Safe { spare } => format!("safe, {spare} to spare"),
        WaitVerdict::Unsafe { by } => format!("UNSAFE: {by} too short"),
        WaitVerdict::Forever => "safe, without end if a message is missing".to_owned(),
        WaitVerdict::Unknown(_) => "unknown".to_owned(),
    }
}

/// A figure in a table; the reason of an unknown one is noted.
struct Reasons(BTreeSet<String>);

impl Reasons {
    fn shown<T>(&mut self, figure: &Figure<T>, show: impl FnOnce(&T) -> String) -> String {
        match figure {
            Ok(known) => show(known),
            Err(unknown) => {
                self.0.insert(unknown.to_string());
                "unknown".to_owned()
            }
        }
    }

    fn time(&mut self, figure: &Figure<Span>) -> Cell {
        right(self.shown(figure, ToString::to_string))
    }
}

fn tables(federation: &Federation, analysis: &Analysis, waits_are: ChosenWaits) -> String {
    let mut reasons = Reasons(BTreeSet::new());
    let mut parts = vec![waits(federation, analysis, &mut reasons)];
    if !federation.connections.is_empty() {
        parts.push(connections(federation, analysis, &mut reasons));
    }
    parts.push(chains(federation, analysis, &mut reasons));
    if federation.reactions.iter().any(|reaction| reaction.deadline.is_some()) {
        parts.push(deadlines(federation, analysis, &mut reasons));
    }
    parts.push(hosts(federation, analysis, &mut reasons));
    if states_waits(federation) {
        parts.push(match waits_are {
            ChosenWaits::Computed => "Federates wait as long as they need: --maxwait model shows \
                                      what the model's waits make of it."
                .to_owned(),
            ChosenWaits::Model => "Federates wait as the model says.".to_owned(),
        });
    }
    parts.extend(analysis.cycles.iter().map(|cycle| endless(federation, cycle)));
    parts.extend(reasons.0.iter().map(|reason| format!("unknown: {reason}")));
    parts.join("\n\n")
}

fn waits(federation: &Federation, analysis: &Analysis, reasons: &mut Reasons) -> String {
    let mut table = grid(&["federate", "station", "needs", "model", "verdict"]);
    for (federate, bounds) in federation.federates.iter().zip(&analysis.federates) {
        let FederateBounds { maxwait, stated: model, verdict, .. } = bounds;
        if let WaitVerdict::Unknown(unknown) = verdict {
            reasons.0.insert(unknown.to_string());
        }
        let needs = match verdict {
            WaitVerdict::NoInputs => "–".to_owned(),
            _ => reasons.shown(maxwait, |wait| format!("@maxwait({})", literal(*wait))),
        };
        let station = federate.station.as_deref().unwrap_or("–");
        table.add_row([&federate.name, station, &needs, &stated(*model), &judged(verdict)]);
    }
    ruled(&table)
}

fn connections(federation: &Federation, analysis: &Analysis, reasons: &mut Reasons) -> String {
    let headings = ["connection", "sent from", "sent by", "arrives by", "needs beyond @maxwait"];
    let mut table = grid(&headings);
    for (connection, bounds) in federation.connections.iter().zip(&analysis.connections) {
        let absent = match &bounds.absent_after {
            None => "–".to_owned(),
            Some(wait) => reasons.shown(wait, |wait| format!("@absent_after({})", literal(*wait))),
        };
        table.add_row([
            Cell::new(&connection.name),
            reasons.time(&bounds.sent_min),
            reasons.time(&bounds.sent_max),
            reasons.time(&bounds.arrival_max),
            Cell::new(absent),
        ]);
    }
    format!("{}\nTimes after the tag.", ruled(&table))
}

fn chains(federation: &Federation, analysis: &Analysis, reasons: &mut Reasons) -> String {
    let mut table = grid(&["chain", "best", "worst"]);
    for chain in &analysis.chains {
        table.add_row([
            Cell::new(chain_names(federation, chain).join(" → ")),
            reasons.time(&chain.best),
            reasons.time(&chain.worst),
        ]);
    }
    let more = if analysis.is_cut { "\nThere are more chains than these." } else { "" };
    format!("{}{more}", ruled(&table))
}

fn deadlines(federation: &Federation, analysis: &Analysis, reasons: &mut Reasons) -> String {
    let mut table = grid(&["reaction", "starts by", "deadline", "verdict"]);
    let all = (0..).map(ReactionId).zip(federation.reactions.iter().zip(&analysis.reactions));
    for (at, (reaction, bounds)) in all {
        let (Some(deadline), Some(verdict)) = (reaction.deadline, &bounds.deadline) else {
            continue;
        };
        let verdict = match verdict {
            Deadline::Met { spare } => format!("met, {spare} to spare"),
            Deadline::Missed { by } => format!("MISSED by up to {by}"),
            Deadline::Unknown(unknown) => {
                reasons.0.insert(unknown.to_string());
                "unknown".to_owned()
            }
        };
        table.add_row([
            Cell::new(reaction_name(federation, at)),
            reasons.time(&bounds.release_max),
            right(deadline.to_string()),
            Cell::new(verdict),
        ]);
    }
    ruled(&table)
}

fn hosts(federation: &Federation, analysis: &Analysis, reasons: &mut Reasons) -> String {
    let mut table = grid(&["station", "processors", "federates", "utilisation", "schedulable"]);
    for host in &analysis.hosts {
        let HostLoad { station, cores, federates, utilisation_ppm, is_schedulable } = host;
        let names = federates.iter().map(|at| federation.federates[at.index()].name.as_str());
        let percent = |ppm: &u64| format!("{}.{:02} %", ppm / 10_000, ppm / 100 % 100);
        let verdict = |yes: &bool| if *yes { "yes" } else { "NO" }.to_owned();
        table.add_row([
            Cell::new(station.as_deref().unwrap_or("–")),
            right(cores.map_or("one each".to_owned(), |cores| cores.to_string())),
            Cell::new(names.collect::<Vec<_>>().join(", ")),
            right(reasons.shown(utilisation_ppm, percent)),
            Cell::new(reasons.shown(is_schedulable, verdict)),
        ]);
    }
    ruled(&table)
}

/// A figure for machines: null if it is not known, with the reason beside it.
fn figure(entry: &mut Value, key: &str, figure: &Figure<Span>) {
    entry[key] = json!(figure.as_ref().ok().map(|time| time.as_ns()));
    if let Err(unknown) = figure {
        entry["unknown"][key] = json!(unknown.to_string());
    }
}

fn federates_json(federation: &Federation, analysis: &Analysis) -> Vec<Value> {
    let federates =
        federation.federates.iter().zip(&analysis.federates).map(|(federate, bounds)| {
            let (verdict, by) = match &bounds.verdict {
                WaitVerdict::NoInputs => ("no inputs", None),
                WaitVerdict::Unstated => ("not in the model", None),
                WaitVerdict::Safe { spare } => ("safe", Some(*spare)),
                WaitVerdict::Unsafe { by } => ("unsafe", Some(Span::ZERO - *by)),
                WaitVerdict::Forever => ("forever", None),
                WaitVerdict::Unknown(_) => ("unknown", None),
            };
            let stated = match bounds.stated {
                Some(MaxWait::For(wait)) => json!(wait.as_ns()),
                Some(MaxWait::Forever) => json!("forever"),
                None => Value::Null,
            };
            let mut entry = json!({
                "name": federate.name,
                "station": federate.station,
                "stated_maxwait_ns": stated,
                "verdict": verdict,
                "margin_ns": by.map(Span::as_ns),
                "utilisation_ppm": bounds.utilisation_ppm.as_ref().ok(),
            });
            figure(&mut entry, "maxwait_ns", &bounds.maxwait);
            if let WaitVerdict::Unknown(unknown) = &bounds.verdict {
                entry["unknown"]["verdict"] = json!(unknown.to_string());
            }
            entry
        });
    federates.collect()
}

fn reactions_json(federation: &Federation, analysis: &Analysis) -> Vec<Value> {
    let reactions = (0..).map(ReactionId).zip(&analysis.reactions).map(|(at, bounds)| {
        let (deadline, margin) = match &bounds.deadline {
            None => (None, None),
            Some(Deadline::Met { spare }) => (Some("met"), Some(*spare)),
            Some(Deadline::Missed { by }) => (Some("missed"), Some(Span::ZERO - *by)),
            Some(Deadline::Unknown(_)) => (Some("unknown"), None),
        };
        let mut entry = json!({
            "name": reaction_name(federation, at),
            "deadline": deadline,
            "deadline_margin_ns": margin.map(Span::as_ns),
        });
        figure(&mut entry, "release_min_ns", &bounds.release_min);
        figure(&mut entry, "release_max_ns", &bounds.release_max);
        figure(&mut entry, "finish_min_ns", &bounds.finish_min);
        figure(&mut entry, "finish_max_ns", &bounds.finish_max);
        entry
    });
    reactions.collect()
}

fn connections_json(federation: &Federation, analysis: &Analysis) -> Vec<Value> {
    let both = federation.connections.iter().zip(&analysis.connections);
    let connections = both.map(|(connection, bounds)| {
        let mut entry = json!({ "name": connection.name });
        figure(&mut entry, "sent_min_ns", &bounds.sent_min);
        figure(&mut entry, "sent_max_ns", &bounds.sent_max);
        figure(&mut entry, "arrival_max_ns", &bounds.arrival_max);
        if let Some(wait) = &bounds.absent_after {
            figure(&mut entry, "absent_after_ns", wait);
        }
        entry
    });
    connections.collect()
}

fn chains_json(federation: &Federation, analysis: &Analysis) -> Vec<Value> {
    let chains = analysis.chains.iter().map(|chain| {
        let mut entry = json!({ "reactions": chain_names(federation, chain) });
        figure(&mut entry, "best_ns", &chain.best);
        figure(&mut entry, "worst_ns", &chain.worst);
        entry
    });
    chains.collect()
}

fn hosts_json(federation: &Federation, analysis: &Analysis) -> Vec<Value> {
    let hosts = analysis.hosts.iter().map(|host| {
        json!({
            "station": host.station,
            "processors": host.cores,
            "federates": host.federates.iter()
                .map(|at| federation.federates[at.index()].name.as_str()).collect::<Vec<_>>(),
            "utilisation_ppm": host.utilisation_ppm.as_ref().ok(),
            "is_schedulable": host.is_schedulable.as_ref().ok(),
        })
    });
    hosts.collect()
}

fn cycles_json(federation: &Federation, analysis: &Analysis) -> Vec<Value> {
    let cycles = analysis.cycles.iter().map(|cycle| {
        let after: Vec<i64> = cycle.after.iter().map(|after| after.as_ns()).collect();
        json!({
            "connections": cycle_names(federation, cycle),
            "excess_ns": cycle.excess.as_ns(),
            "after_ns": after,
        })
    });
    cycles.collect()
}

fn to_json(federation: &Federation, analysis: &Analysis, waits_are: ChosenWaits) -> Value {
    json!({
        "version": VERSION,
        "name": federation.name,
        "maxwait": match waits_are {
            ChosenWaits::Model => "model",
            ChosenWaits::Computed => "computed",
        },
        "federates": federates_json(federation, analysis),
        "reactions": reactions_json(federation, analysis),
        "connections": connections_json(federation, analysis),
        "chains": chains_json(federation, analysis),
        "more_chains": analysis.is_cut,
        "cycles": cycles_json(federation, analysis),
        "hosts": hosts_json(federation, analysis),
    })
}
