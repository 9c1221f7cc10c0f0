//! What becomes of the times of systems that are put together, for a terminal and as JSON.

use super::words;
use onbeat_model::graph::Interval;
use onbeat_model::time::Span;
use onbeat_model::timing::{
    Composability, Composition, Joint, Kept, Level, Part, Spoilt, TimingReport,
};
use serde_json::{Value, json};

/// The name of the contract.
const FORMAT: &str = "onbeat-tfg-composition";
/// Its version.
const VERSION: u32 = 1;

/// Each system's verdict alone and among the others, and what spoils it.
pub fn composed(composition: &Composition) -> String {
    let parts = composition.parts.iter().map(part);
    let together = sentence(&composition.together);
    parts.chain([format!("together: {together}")]).collect::<Vec<_>>().join("\n")
}

/// A verdict in lower case.
fn sentence(study: &TimingReport) -> String {
    let (verdict, how) = words::verdict(study);
    format!("{verdict} {how}")
}

fn part(part: &Part) -> String {
    let common: Vec<String> = part.joints.iter().map(joint).collect();
    let common = match &common[..] {
        [] => "nothing in common with the others".to_owned(),
        some => format!("in common with others: {}", words::listed(some)),
    };
    let kept = match part.kept {
        Kept::Kept => "kept: together it has no other times than alone, for ever".to_owned(),
        Kept::Broken => "broken: together it has other times than alone".to_owned(),
        Kept::NothingPromised => format!("nothing promised: alone it is {}", sentence(&part.alone)),
        Kept::Unproven => "not proven".to_owned(),
    };
    let head = format!("{}: {kept}; {common}", part.alone.name);
    let spoilt = part.spoilt.iter().map(|one| format!("  {}", self::spoilt(part, one)));
    [head].into_iter().chain(spoilt).collect::<Vec<_>>().join("\n")
}

fn joint(joint: &Joint) -> String {
    match joint {
        Joint::Channel(name) => format!("channel {name}"),
        Joint::Resource(name) => format!("lock {name}"),
        Joint::Processors(host) => format!("the processors of {host}"),
        Joint::Network(node) => format!("the network at {node}, planned for each alone"),
    }
}

const fn level(level: Level) -> &'static str {
    match level {
        Level::Program => "program",
        Level::Platform => "platform",
    }
}

fn spoilt(part: &Part, spoilt: &Spoilt) -> String {
    let timing = super::timing(&part.alone, spoilt.level);
    let row = &timing.rows[spoilt.row];
    let round = match words::iteration(&row.iteration).as_str() {
        "" => String::new(),
        round => format!(", iteration {round}"),
    };
    let by: Vec<String> = spoilt.by.iter().map(joint).collect();
    let by = if by.is_empty() { String::new() } else { format!(": {}", words::listed(&by)) };
    let of = |(begin, end): (Interval, Interval)| {
        format!("begins {}, done {}", words::times(begin), words::times(end))
    };
    format!(
        "{}{round}, {} level: {}; alone: {}{by}",
        words::place_of(&part.alone.graph, row),
        level(spoilt.level),
        of(spoilt.now),
        of((row.arrival, row.release)),
    )
}

/// The same for machines; docs/cli.md has the fields.
pub fn composition_json(composition: &Composition) -> Value {
    let kept = |kept: Kept| match kept {
        Kept::Kept => "kept",
        Kept::Broken => "broken",
        Kept::NothingPromised => "nothing-promised",
        Kept::Unproven => "unproven",
    };
    let parts = composition.parts.iter().map(|part| {
        json!({
            "system": part.alone.name,
            "alone": verdict(&part.alone),
            "kept": kept(part.kept),
            "in_common": part.joints.iter().map(joint_json).collect::<Vec<_>>(),
            "spoilt": part.spoilt.iter().map(|one| spoilt_json(part, one)).collect::<Vec<_>>(),
        })
    });
    json!({
        "format": FORMAT,
        "version": VERSION,
        "kept": kept(composition.kept()),
        "together": verdict(&composition.together),
        "parts": parts.collect::<Vec<_>>(),
    })
}

/// What a study says of its system, as a word.
pub(super) fn verdict(study: &TimingReport) -> &'static str {
    match study.program.verdict() {
        Composability::Composable => "composable",
        Composability::NotComposable => "not-composable",
        Composability::Unproven { .. } => "unproven",
    }
}

fn joint_json(joint: &Joint) -> Value {
    let (what, name) = match joint {
        Joint::Channel(name) => ("channel", name),
        Joint::Resource(name) => ("resource", name),
        Joint::Processors(name) => ("processors", name),
        Joint::Network(name) => ("network", name),
    };
    json!({ "what": what, "name": name })
}

fn spoilt_json(part: &Part, spoilt: &Spoilt) -> Value {
    let row = &super::timing(&part.alone, spoilt.level).rows[spoilt.row];
    let interval = |of: Interval| json!({ "lo": of.lo.as_ns(), "hi": of.hi.map(Span::as_ns) });
    let times = |(arrival, release): (Interval, Interval)| -> Value {
        json!({ "arrival_ns": interval(arrival), "release_ns": interval(release) })
    };
    json!({
        "level": level(spoilt.level),
        "task": part.alone.graph.tasks[row.task].name,
        "place": words::place_of(&part.alone.graph, row),
        "iteration": row.iteration,
        "alone": times((row.arrival, row.release)),
        "together": times(spoilt.now),
        "by": spoilt.by.iter().map(joint_json).collect::<Vec<_>>(),
    })
}
