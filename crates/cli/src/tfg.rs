//! The verb `tfg`: what the time-flow graph of programs says of their timing.

use crate::arguments::TfgArguments;
use crate::build;
use crate::chosen::WrongArgument;
use crate::exit::Exit;
use crate::output::write_files;
use crate::source::{self, Source};
use crate::terminal;
use anyhow::bail;
use onbeat_measure::timing;
use onbeat_model::diagnostic::SourceFile;
use onbeat_model::timing::Study;
use onbeat_plan::tfg::{Limits, study};
use std::path::Path;

/// Makes the graph, computes its times and shows them.
pub(crate) fn tfg(arguments: &TfgArguments) -> anyhow::Result<Exit> {
    run(&study_of(arguments)?, arguments)
}

/// Writes what is asked for and shows the rest.
fn run(study: &Study, arguments: &TfgArguments) -> anyhow::Result<Exit> {
    let level = arguments.level.into();
    let is_printed = arguments.dot.as_deref() == Some(Path::new("-"));
    let mut files = Vec::new();
    if let Some(path) = &arguments.html {
        files.push((path.as_path(), timing::html(study)));
    }
    if let Some(path) = &arguments.svg {
        files.push((path.as_path(), timing::svg(study, level)));
    }
    if let Some(path) = arguments.dot.as_deref().filter(|_| !is_printed) {
        files.push((path, timing::dot(study)));
    }
    write_files(&files)?;
    if arguments.json {
        terminal::print(serde_json::to_string_pretty(&timing::json(study))?);
    } else if is_printed {
        terminal::print(timing::dot(study).trim_end());
    } else {
        terminal::print(timing::table(study, level, arguments.iterations));
    }
    Ok(Exit::Fine)
}

/// Studies what is asked for.
fn study_of(arguments: &TfgArguments) -> anyhow::Result<Study> {
    let limits = Limits { rounds: arguments.iterations, ..Limits::default() };
    if build::are_sources(&arguments.subject) {
        let system = build::system_of(&arguments.subject)?;
        return of_system(&Source::without_description(system, arguments.json), arguments, limits);
    }
    let [subject] = &arguments.subject[..] else {
        let message = "a graph is of one description, one file of tasks, or C files";
        bail!(WrongArgument(message.to_owned()));
    };
    match tasks_file(subject)? {
        Some(text) => of_tasks(subject, text, arguments.json, limits),
        None => of_system(&Source::load(subject, arguments.json)?, arguments, limits),
    }
}

/// The text of a file of tasks; none if it is something else. Such a file has tasks and no run.
fn tasks_file(subject: &Path) -> anyhow::Result<Option<String>> {
    if subject.is_dir() {
        return Ok(None);
    }
    let text = source::read(subject).map_err(anyhow::Error::msg)?;
    let has = |heading: &str| text.lines().any(|line| line.trim() == heading);
    let is_tasks = has("[[task]]") && !has("[run]");
    Ok(is_tasks.then_some(text))
}

fn of_tasks(subject: &Path, text: String, json: bool, limits: Limits) -> anyhow::Result<Study> {
    let path = subject.display().to_string();
    match onbeat_model::tasks::read(&text, &path) {
        Ok(file) => Ok(study(&file.name, file.graph, file.chains, limits)),
        Err(errors) => {
            let files = [SourceFile { path, text }];
            source::show(&files, &errors);
            if json {
                let found = source::to_json(None, &files, &errors);
                terminal::print(format_args!("{found:#}"));
            }
            bail!(source::Wrong)
        }
    }
}

fn of_system(source: &Source, arguments: &TfgArguments, limits: Limits) -> anyhow::Result<Study> {
    let system = &source.system;
    let protected = system.run.protected && !arguments.unprotected;
    let (_, study) = source.plan_and_study(system, protected, limits)?;
    let graphs = source.graphs();
    source::show(&graphs.files, &graphs.diagnostics);
    if let Some(study) = study {
        return Ok(study);
    }
    if graphs.diagnostics.is_empty() {
        bail!("{}: no program has sources or a file of tasks: there is no graph", system.name);
    }
    if arguments.json {
        let found = source::to_json(Some(&system.name), &graphs.files, &graphs.diagnostics);
        terminal::print(format_args!("{found:#}"));
    }
    bail!(source::Wrong)
}
