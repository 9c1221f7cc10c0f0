//! The verb `join`: the parts of a run that several machines recorded, as one.

use crate::arguments::JoinArguments;
use crate::chosen::WrongArgument;
use crate::exit::Exit;
use crate::output;
use crate::recording;
use crate::run::{evaluated, finish, recorded};
use crate::source::Source;
use crate::terminal;
use crate::trust::Trust;
use onbeat_measure::RunResult;
use onbeat_model::record::{Carrier, Ending, RunLog};
use onbeat_model::system::{NodeId, System};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Joins the outputs of `onbeat run --host H --interface I` and reports them as one run.
pub(crate) fn join(arguments: &JoinArguments) -> anyhow::Result<Exit> {
    let kept = arguments.keep.read()?;
    let source = Source::load(&arguments.system, arguments.json, Trust::by(arguments.trust))?;
    let source = source.keeping(kept.as_ref());
    let target = output::place(&source.directory, "joined", arguments.out.as_deref())?;
    let real = |path: &Path| path.canonicalize().ok();
    let is_target = |part: &&PathBuf| real(part).is_some() && real(part) == real(&target);
    if let Some(part) = arguments.parts.iter().find(is_target) {
        return Err(wrong(part, "a part is not written over: say with --out where to write"));
    }
    let part = |part: &PathBuf| match arguments.recovered {
        true => recovered(part),
        false => recorded(part),
    };
    let parts = arguments.parts.iter().map(part);
    let mut parts = parts.collect::<anyhow::Result<Vec<_>>>()?;
    let runs = parts.first().map_or(0, Vec::len);
    if let Some((part, path)) = parts.iter().zip(&arguments.parts).find(|(p, _)| p.len() != runs) {
        let first = arguments.parts[0].display();
        return Err(wrong(path, &format!("it has {} runs, and {first} has {runs}", part.len())));
    }
    let mut joined = Vec::new();
    for _ in 0..runs {
        let of_run = parts.iter_mut().map(|part| part.remove(0)).collect();
        let log = match onbeat_measure::merge(&source.system, of_run) {
            Ok(log) => log,
            Err(error) => return Err(wrong(&arguments.parts[error.part], &error.why)),
        };
        missing(&source.system, &log);
        let run = evaluated(&source, log)?;
        apart(&run.2);
        joined.push(run);
    }
    let into = (&*target, &arguments.perfetto, arguments.sync);
    finish(&source, &joined, into, arguments.json)
}

/// The runs of a part that was cut off. Those before the last one are whole.
fn recovered(part: &Path) -> anyhow::Result<Vec<RunLog>> {
    let mut runs = recording::recovered(part)?;
    for run in runs.iter_mut().filter(|run| run.ending != Ending::Complete) {
        cut_off(run);
    }
    Ok(runs)
}

fn wrong(part: &Path, why: &str) -> anyhow::Error {
    WrongArgument(format!("{}: {why}", part.display())).into()
}

/// Says which hosts have channel ends and no part, or one that was cut off.
pub(crate) fn missing(system: &System, log: &RunLog) {
    let is_cut = |node: NodeId| match &log.network {
        Carrier::Interfaces { parts, .. } => parts.iter().any(|it| it.host == node && it.cut_off),
        Carrier::Emulated | Carrier::Namespaces { .. } => false,
    };
    let hosts = log.ends.iter().map(|end| end.node).filter(|node| !log.network.includes(*node));
    let (cut, none): (BTreeSet<_>, BTreeSet<_>) = hosts.partition(|node| is_cut(*node));
    let names = |nodes: BTreeSet<NodeId>| {
        nodes.into_iter().map(|it| system.node(it).name.as_str()).collect::<Vec<_>>().join(", ")
    };
    if !none.is_empty() {
        let none = names(none);
        terminal::say(format_args!(
            "onbeat: no part is of {none}: what their ends did is not known"
        ));
    }
    if !cut.is_empty() {
        let cut = names(cut);
        terminal::say(format_args!(
            "onbeat: cut off is the part of {cut}: what it did after its last record is not known"
        ));
    }
}

/// Marks the parts of a log as cut off.
pub(crate) fn cut_off(log: &mut RunLog) {
    if let Carrier::Interfaces { parts, .. } = &mut log.network {
        parts.iter_mut().for_each(|part| part.cut_off = true);
    }
}

/// Says what messages and readings show of the machines' clocks, and by how much listeners woke
/// after talkers.
pub(crate) fn apart(result: &RunResult) {
    for channel in &result.channels {
        for listener in &channel.listeners {
            if let Some(offset) = &listener.wakeup_offset {
                let text = onbeat_report::wakeup_offset(offset);
                let (host, name) = (&listener.host, &channel.name);
                terminal::say(format_args!("onbeat: `{name}`: {host} woke {text}"));
            }
        }
    }
    for difference in &result.clock_differences {
        if difference.least_ns.is_some() || difference.greatest_ns.is_some() {
            let text = onbeat_report::clock_difference(difference);
            terminal::say(format_args!("onbeat: clocks, as messages show: {text}"));
        }
        if let Some(text) = onbeat_report::clock_readings(difference) {
            terminal::say(format_args!("onbeat: clocks, as readings show: {text}"));
        }
    }
}
