//! Programs that a run compiles: those of a description, and C files that are run by themselves.

use crate::arguments::CountFrom;
use crate::source::Source;
use onbeat_model::binding::Binding;
use onbeat_model::codes::run as codes;
use onbeat_model::diagnostic::{Diagnostic, Origin};
use onbeat_model::system::{NodeId, Program, ProgramSource, System};
use onbeat_model::time::Span;
use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where `--origin` cannot stand.
pub(crate) const ORIGIN: &str =
    "--origin is for C files; a program of a description has it in its `cflags`";

/// Where `--bind` cannot stand.
pub(crate) const BIND: &str =
    "--bind is for C files; a program of a description has `channels` for it";

/// The smallest system: a host, and a bridge because every host has a link.
const ONE_HOST: &str = r#"
format = 1
name = "program"
[run]
duration_s = 1
[[host]]
name = "host"
[[bridge]]
name = "bridge"
[[link]]
ends = ["host", "bridge"]
rate_mbps = 1000
"#;

/// Whether C files are to be run, not a description.
pub(crate) fn are_sources(paths: &[PathBuf]) -> bool {
    paths.iter().any(|path| path.extension().is_some_and(|end| end == "c"))
}

/// The system of one host that runs one program, compiled with an `--origin` if one is given, and
/// with what its abstract channels are.
pub(crate) fn system_of(
    files: &[PathBuf],
    origin: Option<CountFrom>,
    bindings: &[Binding],
) -> anyhow::Result<System> {
    let loaded = onbeat_description::load("program", ONE_HOST, &mut |_| Err(String::new()));
    let mut system = loaded.system.expect("it is right");
    let mut texts = Vec::new();
    for file in files {
        let text = file.to_str().ok_or_else(|| anyhow::anyhow!("{file:?} is not UTF-8"))?;
        texts.push(text.to_owned());
    }
    system.name = name(&files[0]);
    let origin = origin.map(|origin| format!("--origin={}", origin.word()));
    let bindings = bindings.iter().map(|binding| format!("--bind={binding}"));
    let flags = origin.into_iter().chain(bindings).collect();
    let source = ProgramSource { files: texts, flags };
    let program =
        Program { source: Some(source), ..alone(system.name.clone(), vec![String::new()]) };
    system.programs.push(program);
    Ok(system)
}

/// A program that no description has.
pub(crate) fn alone(name: String, command: Vec<String>) -> Program {
    Program {
        name,
        host: NodeId(0),
        command,
        source: None,
        execution_times: None,
        tasks: None,
        joins: true,
        user: None,
        policy: None,
        priority: None,
        cores: Vec::new(),
        budget: None,
        work_max: Span::ZERO,
        origin: Origin::default(),
    }
}

/// What a program is called whose first file is this one.
fn name(file: &Path) -> String {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let name: String = stem.chars().map(plain).take(onbeat_model::limits::NAME_OCTETS).collect();
    if name.is_empty() { "program".to_owned() } else { name }
}

/// Compiles the programs of `host`, or all, into a directory beside the output `out`, and says
/// where each is.
pub(crate) fn compile(
    source: &Source,
    host: Option<NodeId>,
    out: &Path,
) -> anyhow::Result<Vec<Option<String>>> {
    let mut wrong = Vec::new();
    let mut built = Vec::new();
    for program in &source.system.programs {
        let sources = program.source.as_ref().filter(|_| host.is_none_or(|h| h == program.host));
        let Some(sources) = sources else {
            built.push(None);
            continue;
        };
        let to = directory(out)?.join(&program.name);
        if !cc(sources, &source.directory, &to)? {
            let message = format!("program `{}` does not compile", program.name);
            let at = program.origin;
            let found = Diagnostic::error(codes::NOT_COMPILED, message, at, "this program");
            wrong.push(found.help("correct the errors that the compiler lists above"));
        }
        built.push(Some(text(&to)?));
    }
    if wrong.is_empty() { Ok(built) } else { Err(source.wrong(&wrong).into()) }
}

/// Puts into a system where its programs have been compiled to.
pub(crate) fn place(system: &mut System, built: &[Option<String>]) {
    for (program, file) in system.programs.iter_mut().zip(built) {
        if let Some(file) = file {
            program.command[0].clone_from(file);
        }
    }
}

/// Where programs are compiled to, beside the output, which only ever appears complete.
fn directory(out: &Path) -> anyhow::Result<PathBuf> {
    let mut name = out.file_name().map_or_else(|| OsString::from("out"), OsString::from);
    name.push("-build");
    let directory = std::path::absolute(out.with_file_name(name))?;
    std::fs::create_dir_all(&directory)?;
    Ok(directory)
}

fn text(path: &Path) -> anyhow::Result<String> {
    let text = path.to_str().ok_or_else(|| anyhow::anyhow!("{} is not UTF-8", path.display()))?;
    Ok(text.to_owned())
}

/// Runs `onbeat cc` in `directory`; whether it found nothing wrong.
fn cc(sources: &ProgramSource, directory: &Path, to: &Path) -> anyhow::Result<bool> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("cc").args(&sources.files).arg("-o").arg(to).args(&sources.flags);
    // Standard output is for results.
    let output = io::stderr().as_fd().try_clone_to_owned()?;
    Ok(command.current_dir(directory).stdout(output).status()?.success())
}
