//! The verb `tfg`: what the time-flow graph of programs says of their timing.

use crate::arguments::TfgArguments;
use crate::exit::Exit;
use crate::output::write_files;
use crate::terminal;
use onbeat_measure::timing;
use onbeat_model::timing::Study;
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
