//! The verb `cc`: a C compiler driver that knows Timed C.

mod arguments;
mod build;
mod foreign;
mod freertos;
mod graph;
pub(crate) mod places;
mod unit;
mod watched;

use crate::arguments::{Arguments, CcArguments};
use crate::chosen::WrongArgument;
use crate::exit::Exit;
use crate::run::interrupt;
use crate::source::{Wrong, show, to_json};
use crate::terminal;
use anyhow::bail;
use arguments::{Part, Stage, Wanted};
use clap::CommandFactory;
use freertos::Recipe;
use onbeat_model::diagnostic::{Diagnostic, Origin, Severity, SourceFile};
use onbeat_program::timedc::Target;
use places::Places;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tempfile::TempDir;
use unit::{Read, Stop};

pub(crate) use arguments::compiler;
pub(crate) use graph::{Found, graph};
pub(crate) use watched::output as watched_output;

/// What is asked for, and what it is done with.
struct Driver {
    wanted: Wanted,
    places: Places,
    /// Where the compiler runs, if not where this does.
    base: PathBuf,
    /// For FreeRTOS.
    recipe: Recipe,
    /// For files that are not kept.
    directory: TempDir,
    interrupted: Arc<AtomicBool>,
    /// Whether files may be read that are outside of `base` and are no headers of the system.
    is_trusted: bool,
}

/// An interrupt came.
#[derive(Debug)]
struct Interrupted;

impl std::fmt::Display for Interrupted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("interrupted")
    }
}
impl std::error::Error for Interrupted {}

/// Compiles, and links.
pub(crate) fn cc(arguments: &CcArguments) -> anyhow::Result<Exit> {
    let wanted = Wanted::parse(&arguments.arguments)?;
    if wanted.help {
        let mut command = Arguments::command();
        command.build();
        let help = command.find_subcommand_mut("cc").map(|cc| cc.render_long_help());
        terminal::print(help.map(|help| help.to_string()).unwrap_or_default().trim_end());
        return Ok(Exit::Fine);
    }
    let places = Places::find()?;
    let recipe = match wanted.options.target {
        Target::FreeRtos => Recipe::read(places.freertos()?)?,
        Target::Posix => {
            // Before a file is compiled in vain.
            if wanted.stage == Stage::Program {
                places.libraries()?;
                places.wrapped()?;
            }
            Recipe::default()
        }
    };
    let directory = tempfile::Builder::new().prefix("onbeat-cc-").tempdir()?;
    let interrupted = interrupt()?;
    let base = PathBuf::new();
    let is_trusted = true;
    let driver = Driver { wanted, places, base, recipe, directory, interrupted, is_trusted };
    match driver.drive() {
        Err(error) if error.is::<Interrupted>() => Ok(Exit::Interrupted),
        done => done,
    }
}

impl Driver {
    fn drive(&self) -> anyhow::Result<Exit> {
        if self.wanted.stage == Stage::Compilers {
            return self.passed_on();
        }
        let mut read = Vec::new();
        let mut is_right = true;
        for (number, path) in self.wanted.sources().into_iter().enumerate() {
            match self.read(path, number) {
                Ok(unit) => read.push(unit),
                Err(Stop::Compiler) => is_right = false,
                Err(Stop::Other(error)) => return Err(error),
            }
        }
        let (files, all) = Self::joined(&read);
        show(&files, &all);
        is_right &= all.iter().all(|found| found.severity != Severity::Error);
        let done = match is_right {
            true => self.check_deployment(&read).and_then(|()| self.build(&read)),
            false => Err(Wrong.into()),
        };
        if self.wanted.json {
            let mut found = to_json(None, &files, &all);
            found["ok"] = matches!(done, Ok(Exit::Fine)).into();
            terminal::print(format_args!("{found:#}"));
        }
        done
    }

    /// The files of all units, and what is wrong in them.
    fn joined(read: &[Read]) -> (Vec<SourceFile>, Vec<Diagnostic>) {
        let mut files: Vec<SourceFile> = Vec::new();
        let mut all: Vec<Diagnostic> = Vec::new();
        for unit in read {
            let first = files.len() as u16;
            files.extend(unit.files.iter().cloned());
            let moved = |origin: &mut Origin| origin.file += first;
            for mut diagnostic in unit.diagnostics.iter().cloned() {
                diagnostic.at.iter_mut().for_each(|(origin, _)| moved(origin));
                diagnostic.related.iter_mut().for_each(|(origin, _)| moved(origin));
                all.push(diagnostic);
            }
        }
        (files, all)
    }

    /// Names of abstract channels and tasks that the whole program does not have are mistakes.
    fn check_deployment(&self, read: &[Read]) -> anyhow::Result<()> {
        let is_whole = self.wanted.parts.iter().all(|part| !matches!(part, Part::File(..)));
        if self.wanted.stage != Stage::Program || !is_whole {
            return Ok(());
        }
        let bound = |name: &String| read.iter().any(|unit| unit.bound.contains(name));
        let mut names = self.wanted.options.bindings.iter().map(|binding| &binding.name);
        if let Some(name) = names.find(|name| !bound(name)) {
            let text = format!(
                "the abstract channel `{name}` is bound, but nothing calls {name}_write or \
                 {name}_read"
            );
            bail!(WrongArgument(text));
        }
        let task = |name: &String| read.iter().any(|unit| unit.tasks.contains(name));
        let starting = self.wanted.options.starts.iter().flatten();
        if let Some(name) = starting.into_iter().find(|name| !task(name)) {
            bail!(WrongArgument(format!("there is no task `{name}` to start")));
        }
        Ok(())
    }

    /// What the C compiler does by itself.
    fn passed_on(&self) -> anyhow::Result<Exit> {
        let mut command = self.compiler();
        command.args(&self.wanted.dependencies);
        if let Some(file) = &self.wanted.dependency_file {
            command.arg("-MF").arg(file);
        }
        if let Some(output) = &self.wanted.output {
            command.arg("-o").arg(output);
        }
        for part in &self.wanted.parts {
            if let Part::Source(file) | Part::File(file, _) = part {
                command.arg(file);
            }
        }
        self.run(&mut command)
    }

    /// Runs the C compiler, which says itself what is wrong.
    fn run(&self, command: &mut Command) -> anyhow::Result<Exit> {
        // What compilers and linkers leave when they are interrupted goes with ours.
        command.env("TMPDIR", self.directory.path());
        let status = match command.status() {
            Ok(status) => status,
            Err(error) => bail!("{}: {error}", unit::name_of(command)),
        };
        self.go_on()?;
        Ok(if status.success() { Exit::Fine } else { Exit::Description })
    }

    /// Stops after an interrupt.
    fn go_on(&self) -> anyhow::Result<()> {
        if self.interrupted.load(Ordering::Relaxed) { Err(Interrupted.into()) } else { Ok(()) }
    }

    fn temporary(&self, name: &str) -> std::path::PathBuf {
        self.directory.path().join(name)
    }
}

/// A path with the end of its name replaced, in the current directory.
fn beside(path: &Path, end: &str) -> std::path::PathBuf {
    Path::new(path.file_name().unwrap_or_default()).with_extension(end)
}
