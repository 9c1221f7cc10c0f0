//! `onbeat plan`: the plan of a system, what of it has changed, and its deployment.

use crate::arguments::PlanArguments;
use crate::chosen::WrongArgument;
use crate::exit::Exit;
use crate::nc::stations;
use crate::source::Source;
use crate::trust::Trust;
use crate::{admit, deploy, input, output, terminal};
use onbeat_bounds::{PlanDifference, PlanDocument};
use onbeat_model::system::Backend;
use onbeat_timing::tfg::Limits;
use std::fmt::Write;
use std::path::Path;

pub(crate) fn plan(arguments: &PlanArguments) -> anyhow::Result<Exit> {
    let mut source = Source::load(&arguments.system, arguments.json, Trust::by(arguments.trust))?;
    source.system.run.backend = arguments.backend.or(source.system.run.backend);
    if source.system.run.backend == Backend::NetworkCode {
        return stations::plan(arguments, &source);
    }
    stations::are_asked_for_nothing(&arguments.stations)?;
    // Before the plan is made, which may take long.
    let earlier = arguments.diff.as_deref().map(earlier).transpose()?;
    let kept = arguments.keep.read()?;
    let protected = source.system.run.protected && !arguments.unprotected;
    let mut refused = Vec::new();
    let source = match arguments.admit {
        true if !protected => {
            let why = "`--admit` makes reservations, and `protected` of [run] is false";
            return Err(WrongArgument(why.to_owned()).into());
        }
        true => {
            let admitted = admit::admit(&source, kept.as_ref())?;
            refused = admitted.refused;
            let mut source = source;
            source.system = admitted.system;
            source.keeping(Some(&admitted.plan))
        }
        false => {
            let source = source.keeping(kept.as_ref());
            if arguments.exact && protected { source.with_exact_schedule()? } else { source }
        }
    };
    let source = source.only_planned();
    let (plan, _) = source.plan_and_study(&source.system, protected, Limits::default())?;
    if kept.is_some() && !arguments.admit && !arguments.exact {
        let [held, all] = source.held(&plan);
        terminal::say(format_args!("onbeat: {held} of {all} channels stay where they were"));
    }
    let exit = if refused.is_empty() { Exit::Fine } else { Exit::Description };
    match &earlier {
        Some(earlier) => {
            let plan = onbeat_bounds::document(&source.system, &plan);
            let difference = onbeat_bounds::difference(earlier, &plan);
            match arguments.json {
                true => terminal::print_json(&difference)?,
                false => terminal::print(lines(&difference)),
            }
        }
        None if arguments.json => {
            let plan = onbeat_bounds::document(&source.system, &plan);
            terminal::print_json(&PlanDocument { refused, ..plan })?;
        }
        None => terminal::print(onbeat_report::plan::table(&source.system, &plan)),
    }
    if let Some(file) = &arguments.html {
        output::write_files(&[(file, onbeat_report::gates::html(&source.system, &plan))])?;
        terminal::say(format_args!("onbeat: the page: {}", file.display()));
    }
    if let Some(directory) = &arguments.deploy {
        let tables = deploy::deploy(&source, &plan, directory)?;
        let shown = directory.display();
        let tables = match tables {
            0 => String::new(),
            1 => "table of the channels of 1 host, ".to_owned(),
            _ => format!("tables of the channels of {tables} hosts, "),
        };
        terminal::say(format_args!("onbeat: {tables}configurations of nodes: {shown}"));
    }
    Ok(exit)
}

/// The plan in a file that `plan --json` wrote.
pub(crate) fn earlier(path: &Path) -> anyhow::Result<PlanDocument> {
    let octets = input::read(path, input::PLAN_OCTETS).map_err(anyhow::Error::msg)?;
    let plan = PlanDocument::read(&octets);
    plan.map_err(|why| WrongArgument(format!("{}: {why}", path.display())).into())
}

/// For a terminal.
fn lines(difference: &PlanDifference) -> String {
    let mut text = String::new();
    let mut line = |line: std::fmt::Arguments<'_>| {
        let _ = writeln!(text, "{line}");
    };
    for item in &difference.items {
        let (kind, name) = (item.kind, &item.name);
        if item.change != "changed" {
            line(format_args!("{kind} {name}: {}", item.change));
            continue;
        }
        line(format_args!("{kind} {name}"));
        for field in &item.fields {
            let [before, after] =
                [&field.before, &field.after].map(|value| value.as_deref().unwrap_or("none"));
            line(format_args!("  {}: {before} → {after}", field.what));
        }
    }
    let count = |change| difference.items.iter().filter(|item| item.change == change).count();
    let [changed, added, removed] = ["changed", "added", "removed"].map(count);
    let same = difference.unchanged;
    line(format_args!("{changed} changed, {added} added, {removed} removed, {same} the same"));
    match difference.nodes.is_empty() {
        true => line(format_args!("no node has another configuration")),
        false => line(format_args!("another configuration: {}", difference.nodes.join(", "))),
    }
    text.truncate(text.trim_end().len());
    text
}
