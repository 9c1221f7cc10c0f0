//! The verb `lf import`: the description of a federation's channels from its model.

use super::model::{Model, ModelArguments};
use crate::chosen::WrongArgument;
use crate::exit::Exit;
use crate::output::write_files;
use crate::terminal;
use anyhow::bail;
use clap::Args;
use onbeat_description::lf::Table;
use std::path::{Path, PathBuf};

/// The file of a table in a directory.
const TABLE: &str = "lf-channels.txt";

/// What is to be imported, and where to.
#[derive(Debug, Args)]
pub(crate) struct ImportArguments {
    #[command(flatten)]
    model: ModelArguments,
    /// File for the description, or directory for its system.toml [default: standard output]
    #[arg(short, long, value_name = "FILE|DIRECTORY")]
    out: Option<PathBuf>,
    /// File for the table of channels, which ONBEAT_LF_TABLE names, or directory for its
    /// lf-channels.txt
    #[arg(long, value_name = "FILE|DIRECTORY")]
    table: Option<PathBuf>,
    /// Prints JSON for machines (docs/cli.md)
    #[arg(long)]
    json: bool,
}

/// Writes the description, or all that is wrong or not known.
pub(super) fn import(arguments: &ImportArguments) -> anyhow::Result<Exit> {
    let model = Model::read(&arguments.model)?;
    let description = model.describe(arguments.json)?;
    let mut files: Vec<(PathBuf, String)> = Vec::new();
    let mut said = Vec::new();
    if let Some(out) = &arguments.out {
        let file = in_directory(out, "system.toml");
        said.push(channels(description.document.channels.len(), &file));
        files.push((file, description.text.clone()));
    }
    if let Some(table) = &arguments.table {
        let file = in_directory(table, TABLE);
        let Table { text, rows, physical } = model.table(&description, arguments.json)?;
        said.push(channels(rows, &file));
        if physical > 0 {
            said.push(format!("onbeat: physical connections stay on TCP: {physical}"));
        }
        files.push((file, text));
    }
    for (file, _) in &files {
        model.spare(file)?;
    }
    if let [(first, _), (second, _)] = &files[..]
        && first == second
    {
        let why = format!("{} cannot be description and table", first.display());
        bail!(WrongArgument(why));
    }
    let files: Vec<_> = files.iter().map(|(file, text)| (file.as_path(), text.clone())).collect();
    write_files(&files)?;
    said.iter().for_each(terminal::say);
    if arguments.json {
        terminal::print_json(&description.document)?;
    } else if arguments.out.is_none() {
        terminal::print(description.text.trim_end());
    }
    Ok(Exit::Fine)
}

fn in_directory(path: &Path, name: &str) -> PathBuf {
    if path.is_dir() { path.join(name) } else { path.to_owned() }
}

fn channels(count: usize, file: &Path) -> String {
    let plural = if count == 1 { "channel" } else { "channels" };
    format!("onbeat: {count} {plural}: {}", file.display())
}
