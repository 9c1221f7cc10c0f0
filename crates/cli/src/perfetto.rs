//! `--perfetto`: the trace of runs.

use crate::chosen::WrongArgument;
use crate::output::{self, FileKind, OutputFile};
use anyhow::{Context, bail};
use onbeat_model::record::RunLog;
use onbeat_model::system::System;
use onbeat_run::process::Reaper;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// A trace that has a place, and no content yet.
pub(crate) struct TraceFile {
    target: PathBuf,
    output: OutputFile,
    file: File,
}

impl TraceFile {
    /// Begins the file that is asked for, if one is. It cannot be in the directory of the output,
    /// which is replaced as a whole.
    pub(crate) fn begin(
        target: Option<&Path>,
        output: &Path,
        durable: bool,
        reaper: &mut Reaper,
    ) -> anyhow::Result<Option<Self>> {
        let Some(target) = target else { return Ok(None) };
        let whole = |path: &Path| Some(output::parent(path).ok()?.join(path.file_name()?));
        // The directory may be a link, or not there yet.
        let place = output.canonicalize().ok().or_else(|| whole(output));
        if whole(target).zip(place).is_some_and(|(target, output)| target.starts_with(output)) {
            let (target, output) = (target.display(), output.display());
            let why = format!("{target} is in {output}, which is replaced: choose another place");
            bail!(WrongArgument(why));
        }
        let begun = OutputFile::begin(target, FileKind::Trace, durable, reaper);
        let (output, file) = begun.with_context(|| format!("the trace {}", target.display()))?;
        Ok(Some(Self { target: target.to_owned(), output, file }))
    }

    /// Writes the runs and gives the file its name.
    pub(crate) fn finish<'a>(
        self,
        system: &System,
        runs: impl Iterator<Item = &'a RunLog>,
        reaper: &mut Reaper,
    ) -> anyhow::Result<()> {
        let mut out = BufWriter::new(&self.file);
        let written = onbeat_report::perfetto(system, runs, &mut out).and_then(|()| out.flush());
        written.with_context(|| self.target.display().to_string())?;
        drop(out);
        self.output.finish(reaper)
    }
}
