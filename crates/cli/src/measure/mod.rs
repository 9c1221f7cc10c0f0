//! The verb `measure`: what segments of programs take, and the five tests of synchronised time.

mod arguments;
mod bar;
mod benchmarks;
mod campaign;
mod collect;
mod node;
mod place;
mod role;
mod setup;
mod wcet;

pub(crate) use arguments::MeasureVerb;

use crate::exit::Exit;
use crate::output::{Kind, MEASUREMENT, MEASUREMENT_REPORT, Output, SAMPLES};
use crate::{run, terminal};
use arguments::{Test, TestArguments};
use bar::Bar;
use benchmarks::{BenchmarkResults, Benchmarks, Part};
use onbeat_report::measurement;
use onbeat_run::process::Reaper;
use std::path::PathBuf;
use std::process::Command;

/// Where all tests together are written by default.
const OUT: &str = "out-measurement";

/// Measures what is asked for.
pub(crate) fn measure(what: &MeasureVerb) -> anyhow::Result<Exit> {
    let with = |test: Test, arguments: &TestArguments| {
        let loaded = arguments.under_load;
        tests(&[Part { test, loaded }], arguments, arguments.out.clone())
    };
    match what {
        MeasureVerb::Wcet(arguments) => wcet::wcet(arguments),
        MeasureVerb::Clock(arguments) => with(Test::Clock, arguments),
        MeasureVerb::Cross(arguments) => with(Test::Cross, arguments),
        MeasureVerb::Latency(arguments) => with(Test::Latency, arguments),
        MeasureVerb::Sync(arguments) => with(Test::Sync, arguments),
        MeasureVerb::All(arguments) => {
            let out = arguments.out.clone().unwrap_or_else(|| PathBuf::from(OUT));
            tests(&Part::all(&Test::ALL, arguments.under_load), arguments, Some(out))
        }
        MeasureVerb::Campaign(arguments) => campaign::campaign(arguments),
        MeasureVerb::Node(arguments) => node::be(arguments),
    }
}

/// The process that clears up when this one cannot.
fn reaper() -> anyhow::Result<Reaper> {
    Ok(Reaper::start(Command::new(std::env::current_exe()?).arg("keeper"))?)
}

/// Measures, writes the output if there is to be one, and shows the figures.
fn tests(parts: &[Part], asked: &TestArguments, out: Option<PathBuf>) -> anyhow::Result<Exit> {
    let interrupted = run::interrupt()?;
    let mut reaper = reaper()?;
    let mut output = None;
    let bar = Bar::new(benchmarks::estimate(parts, &asked.settings()), "measuring");
    let reaper = match &out {
        None => &mut reaper,
        Some(target) => {
            output.insert(Output::begin(target, Kind::Measurement, &mut reaper)?).reaper()
        }
    };
    let done = Benchmarks::begin(&asked.settings(), reaper, &interrupted, &bar)?.run(parts)?;
    bar.finish();
    if let Some(output) = output.filter(|_| !done.interrupted) {
        write(&output, &done)?;
        output.finish()?;
    }
    if asked.json {
        terminal::print(done.document.to_json().trim_end());
    } else {
        terminal::print(measurement::table(&done.document));
    }
    if let Some(target) = out.filter(|_| !asked.json && !done.interrupted) {
        terminal::print(format_args!("\nwritten: {}", target.join(MEASUREMENT_REPORT).display()));
    }
    Ok(if done.interrupted { Exit::Interrupted } else { Exit::Fine })
}

/// Writes what a measurement leaves.
fn write(output: &Output<'_>, done: &BenchmarkResults) -> anyhow::Result<()> {
    output.write(MEASUREMENT, done.document.to_json())?;
    output.write(MEASUREMENT_REPORT, measurement::html(&done.document, &done.values))?;
    for (name, values) in &done.values {
        output.write(&format!("{SAMPLES}/{name}.csv"), measurement::csv(values))?;
    }
    Ok(())
}
