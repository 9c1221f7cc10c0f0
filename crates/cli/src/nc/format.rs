//! The verb `nc fmt`: one layout for all texts.

use crate::exit::Exit;
use crate::output::rewrite_files;
use crate::{source, terminal, trust};
use clap::Args;
use onbeat_model::diagnostic::SourceFile;
use onbeat_network_code::format::format as laid_out;
use std::path::PathBuf;

/// What is to be laid out.
#[derive(Debug, Args)]
pub(crate) struct FormatArguments {
    /// Texts of programs
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Writes nothing and names the files that have another layout
    #[arg(long)]
    check: bool,
}

/// Rewrites the files whose layout is another one.
pub(super) fn format(arguments: &FormatArguments) -> anyhow::Result<Exit> {
    let mut changed = Vec::new();
    let mut is_wrong = false;
    for path in &arguments.files {
        trust::may_read(path)?;
        let text = source::read(path).map_err(anyhow::Error::msg)?;
        match laid_out(&text) {
            Ok(formatted) if formatted == text => {}
            Ok(formatted) => changed.push((path, formatted)),
            Err(found) => {
                is_wrong = true;
                let file = SourceFile { path: path.display().to_string(), text };
                source::show(&[file], &found);
            }
        }
    }
    for (path, _) in &changed {
        let what = if arguments.check { "has another layout" } else { "is laid out" };
        terminal::say(format_args!("onbeat: {} {what}", path.display()));
    }
    if arguments.check {
        let is_fine = changed.is_empty() && !is_wrong;
        return Ok(if is_fine { Exit::Fine } else { Exit::Description });
    }
    for (path, formatted) in changed {
        // A link stays one.
        let path = path.canonicalize()?;
        rewrite_files(&[(&path, formatted)])?;
    }
    Ok(if is_wrong { Exit::Description } else { Exit::Fine })
}
