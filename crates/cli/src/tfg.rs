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
use onbeat_model::tasks;
use onbeat_model::timing::Study;
use onbeat_plan::tfg::{self, Limits};
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

/// The study of what is asked for: a description, a file of tasks, or the C files of a program.
fn study_of(arguments: &TfgArguments) -> anyhow::Result<Study> {
    let limits = Limits { rounds: arguments.iterations, ..Limits::default() };
    let source = match &arguments.subject[..] {
        files if build::are_sources(files) => {
            Source::without_description(build::system_of(files, arguments.origin)?, arguments.json)
        }
        _ if arguments.origin.is_some() => bail!(WrongArgument(build::ORIGIN.to_owned())),
        [subject] => match file_of_tasks(subject, arguments.json)? {
            Some(tasks) => {
                return Ok(tfg::study(&tasks.name, tasks.graph, tasks.chains, limits, None));
            }
            None => Source::load(subject, arguments.json)?,
        },
        _ => {
            let text = "a graph is of one description, of one file of tasks, or of C files";
            bail!(WrongArgument(text.to_owned()))
        }
    };
    let protected = source.system.run.protected && !arguments.unprotected;
    let (_, study) = source.plan_and_study(&source.system, protected, limits)?;
    source.show_programs()?;
    match study {
        Some(study) => Ok(study),
        None => bail!(
            "{}: nothing is known of what its programs do: give them `source` or `tasks`",
            source.system.name
        ),
    }
}

/// A file of tasks, if it is one: it has tasks, and no run.
fn file_of_tasks(path: &Path, json: bool) -> anyhow::Result<Option<tasks::TasksFile>> {
    if path.is_dir() {
        return Ok(None);
    }
    let text = source::read(path).map_err(anyhow::Error::msg)?;
    if !tasks::is_tasks(&text) {
        return Ok(None);
    }
    let shown = path.display().to_string();
    match tasks::read(&text, &shown) {
        Ok(tasks) => Ok(Some(tasks)),
        Err(errors) => {
            let file = SourceFile { path: shown, text };
            Err(source::wrong(None, &[file], &errors, json).into())
        }
    }
}
