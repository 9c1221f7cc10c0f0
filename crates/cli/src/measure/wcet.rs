//! The verb `measure wcet`: what the segments of a Timed C program take on this machine.

use super::arguments::WcetArguments;
use super::bar::Bar;
use super::place::Directory;
use crate::build;
use crate::chosen::WrongArgument;
use crate::exit::Exit;
use crate::input;
use crate::output::write_files;
use crate::run;
use crate::source::Wrong;
use crate::terminal;
use anyhow::{Context, bail};
use onbeat::clock::MonoTime;
use onbeat_measure::segments::{Measured, Samples, WARNING};
use onbeat_model::system::Program;
use onbeat_model::time::Span;
use onbeat_report::segments;
use onbeat_run::process::{Reaper, Running, Start};
use rustix::process::{Pid, Signal, kill_process};
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};

/// How often it is looked whether the program has ended.
const LOOK: Span = Span::from_ms(20);
/// How long a program that is asked to end may take to write what it has measured.
const PATIENCE: Span = Span::from_s(10);

/// Builds the program if need be, runs it, and shows what its segments took.
pub(crate) fn wcet(arguments: &WcetArguments) -> anyhow::Result<Exit> {
    let interrupted = run::interrupt()?;
    let mut reaper = Reaper::start(Command::new(std::env::current_exe()?).arg("keeper"))?;
    let directory = Directory::make(&mut reaper)?;
    let program = program(arguments, &directory.path)?;
    let mut samples = Samples::default();
    let mut exit = Exit::Fine;
    let mut runs = 0;
    let message = match arguments.repetitions {
        1 => format!("measuring, {}", arguments.duration),
        runs => format!("{runs} runs, {} each", arguments.duration),
    };
    let bar = Bar::new(arguments.duration * i64::from(arguments.repetitions), message);
    while runs < arguments.repetitions && exit == Exit::Fine {
        let file = directory.path.join(format!("samples-{runs}"));
        exit = once(&program, arguments, &file, &reaper, &interrupted, &bar)?;
        add(&mut samples, &file, &program.name)?;
        std::fs::remove_file(&file)?;
        runs += 1;
    }
    bar.finish();
    let measured = samples.measured(runs, arguments.margin);
    if measured.segments.is_empty() {
        bail!("{}: no segment came to its end; measure for longer with --duration", program.name);
    }
    write(&measured, arguments, &program.name)?;
    Ok(exit)
}

/// The program to run: what it is built from, or itself.
fn program(arguments: &WcetArguments, directory: &Path) -> anyhow::Result<Program> {
    let is_source = |path: &Path| path.extension().is_some_and(|end| end == "c");
    let (sources, others): (Vec<_>, Vec<_>) =
        arguments.program.iter().partition(|path| is_source(path));
    let executable = match (sources.as_slice(), others.as_slice()) {
        ([], [one]) => one.canonicalize().with_context(|| one.display().to_string())?,
        (sources, []) => {
            let built = directory.join("program");
            let mut compiler = Command::new(std::env::current_exe()?);
            compiler.arg("cc").args(sources).arg("-o").arg(&built);
            if !compiler.status()?.success() {
                bail!(Wrong); // the compiler has said why
            }
            built
        }
        _ => bail!(WrongArgument("either C files, or one program that is built".into())),
    };
    let executable = executable.to_str().context("the program's path is no UTF-8")?;
    let command = [executable.to_owned()].into_iter().chain(arguments.arguments.clone());
    Ok(build::alone(arguments.program[0].display().to_string(), command.collect()))
}

/// One run; the exit code that it asks for.
fn once(
    program: &Program,
    arguments: &WcetArguments,
    file: &Path,
    reaper: &Reaper,
    interrupted: &AtomicBool,
    bar: &Bar,
) -> anyhow::Result<Exit> {
    let environment = [("ONBEAT_MEASURE", file.as_os_str())];
    let start = Start { environment: &environment, reaper: Some(reaper), ..Start::default() };
    let mut running = Running::start(program, Path::new("."), start)?;
    let until = MonoTime::now() + arguments.duration;
    let mut before = MonoTime::now();
    loop {
        if let Some(status) = running.ended_within(LOOK) {
            return Ok(ended(&program.name, status));
        }
        let now = MonoTime::now();
        bar.advance(now.min(until) - before);
        before = now.min(until);
        let is_interrupted = interrupted.load(Ordering::Relaxed);
        if now >= until || is_interrupted {
            stop(&mut running, &program.name)?;
            return Ok(if is_interrupted { Exit::Interrupted } else { Exit::Fine });
        }
    }
}

/// Asks a program to end, which then writes what it has measured.
fn stop(running: &mut Running, name: &str) -> anyhow::Result<()> {
    let pid = i32::try_from(running.group()).ok().and_then(Pid::from_raw);
    // If it has ended meanwhile, it is still waited for: the number is nobody else's.
    let _ = kill_process(pid.context("a process has a number")?, Signal::TERM);
    if running.ended_within(PATIENCE).is_none() {
        bail!("{name} did not end when it was asked to");
    }
    Ok(())
}

/// What the way in which a program ended by itself says.
fn ended(name: &str, status: ExitStatus) -> Exit {
    if status.success() {
        return Exit::Fine;
    }
    terminal::say(format_args!("onbeat: {name}: {status}"));
    Exit::Early
}

/// Adds what a run has left.
fn add(samples: &mut Samples, file: &Path, name: &str) -> anyhow::Result<()> {
    let of_program = || format!("the measurements of {name}");
    let text = input::text_if_there(file, input::VALUES_OCTETS).map_err(anyhow::Error::msg);
    let text = text.with_context(of_program)?.with_context(|| {
        format!("{name} wrote no measurements: only programs that onbeat cc has made do")
    })?;
    samples.add(&text).with_context(of_program)
}

fn write(measured: &Measured, arguments: &WcetArguments, name: &str) -> anyhow::Result<()> {
    let mut files = Vec::new();
    files.extend(arguments.csv.as_deref().map(|path| (path, measured.to_csv())));
    files.extend(arguments.html.as_deref().map(|path| (path, segments::html(name, measured))));
    write_files(&files)?;
    if arguments.json {
        terminal::print(measured.to_json().trim_end());
        terminal::say(format_args!("onbeat: {}", WARNING));
    } else {
        terminal::print(segments::table(measured));
    }
    Ok(())
}
