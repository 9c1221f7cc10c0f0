//! The verb `join`: the parts of a run that several machines recorded, as one.

use crate::arguments::JoinArguments;
use crate::chosen::WrongArgument;
use crate::exit::Exit;
use crate::output;
use crate::run::{evaluated, finish, recorded};
use crate::source::Source;
use crate::terminal;
use crate::trust::Trust;
use onbeat_measure::RunResult;
use onbeat_model::record::RunLog;
use onbeat_model::system::System;
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
    let parts = arguments.parts.iter().map(|part| recorded(part));
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
    finish(&source, &joined, (&target, arguments.sync), arguments.json)
}

fn wrong(part: &Path, why: &str) -> anyhow::Error {
    WrongArgument(format!("{}: {why}", part.display())).into()
}

/// Says which hosts have channel ends and no part.
fn missing(system: &System, log: &RunLog) {
    let hosts = log.ends.iter().map(|end| end.node).filter(|node| !log.network.includes(*node));
    let names: BTreeSet<_> = hosts.map(|node| system.node(node).name.as_str()).collect();
    if !names.is_empty() {
        let names: Vec<_> = names.into_iter().collect();
        terminal::say(format_args!(
            "onbeat: no part is of {}: what their ends did is not known",
            names.join(", ")
        ));
    }
}

/// Says what messages show of the machines' clocks.
fn apart(result: &RunResult) {
    for difference in &result.clock_differences {
        let text = onbeat_report::clock_difference(difference);
        terminal::say(format_args!("onbeat: clocks, as messages show: {text}"));
    }
}
