//! The verb `compare`: whether the second of two runs is better or worse than the first.

use crate::chosen::WrongArgument;
use crate::exit::Exit;
use crate::input;
use crate::output::{self, MESSAGES, REPETITIONS, RESULTS, SIMULATION};
use crate::run::run_directory;
use crate::terminal;
use anyhow::{Context, anyhow, bail};
use clap::Args;
use onbeat_measure::compare::{self, Comparison, Subject, Verdict};
use onbeat_measure::{Results, simulation};
use onbeat_report::comparison;
use std::path::{Path, PathBuf};

/// The document of a measurement's directory.
const MEASUREMENT: &str = "measurement.json";
/// The most runs of one side.
const RUNS_MAX: usize = 1_000;
/// The largest effect, in thousandths: a hundred times as much.
const EFFECT_MAX: u32 = 100_000;

#[derive(Debug, Args)]
pub(crate) struct CompareArguments {
    /// Output directory of the first run, simulation or measurement, or a directory of several
    pub(crate) first: PathBuf,
    /// The same of the second, which is evaluated
    pub(crate) second: PathBuf,
    /// Smallest change to report, relative to the smaller of both
    #[arg(long, value_name = "PERCENT", default_value = "5%", value_parser = effect)]
    pub(crate) effect: u32,
    /// HTML file with all verdicts and both distributions of each series
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Prints JSON for machines (docs/compare.md)
    #[arg(long)]
    pub(crate) json: bool,
}

/// A share in per cent with one decimal at most, in thousandths.
fn effect(text: &str) -> Result<u32, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim();
    let (whole, tenths) = number.split_once('.').unwrap_or((number, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
    let value = (digits(whole) && digits(tenths) && tenths.len() == 1)
        .then(|| whole.parse::<u32>().ok()?.checked_mul(10)?.checked_add(tenths.parse().ok()?));
    value.flatten().filter(|per_mille| *per_mille <= EFFECT_MAX).ok_or_else(|| {
        format!("expected per cent with one decimal at most, up to {} %", EFFECT_MAX / 10)
    })
}

/// Compares two output directories and says which way the second differs.
pub(crate) fn compare(arguments: &CompareArguments) -> anyhow::Result<Exit> {
    let first = subjects(&arguments.first)?;
    let second = subjects(&arguments.second)?;
    let comparison = compare::compare(&first, &second, arguments.effect)
        .map_err(|different| WrongArgument(different.to_string()))?;
    if let Some(file) = &arguments.html {
        let names = [&arguments.first, &arguments.second].map(|path| path.display().to_string());
        let names = names.each_ref().map(String::as_str);
        let page = comparison::html(&comparison, [&first, &second], names);
        output::write_files(&[(file, page)])?;
    }
    if arguments.json {
        terminal::print(comparison.to_json().trim_end());
    } else {
        terminal::print(comparison::table(&comparison));
        if let Some(file) = &arguments.html {
            terminal::print(format_args!("The page: {}", file.display()));
        }
    }
    Ok(exit(&comparison))
}

fn exit(comparison: &Comparison) -> Exit {
    match comparison.verdict {
        Verdict::Worse | Verdict::Mixed => Exit::Description,
        Verdict::Better | Verdict::NotDistinguishable | Verdict::NotJudged => Exit::Fine,
    }
}

/// The outputs in a directory, or the one that it is.
fn subjects(directory: &Path) -> anyhow::Result<Subject> {
    if is_output(directory) {
        return subject(directory);
    }
    let mut places: Vec<PathBuf> = match std::fs::read_dir(directory) {
        Ok(entries) => entries.flatten().map(|entry| entry.path()).collect(),
        Err(_) => Vec::new(),
    };
    places.retain(|place| is_output(place));
    places.sort();
    if places.len() > RUNS_MAX {
        bail!(WrongArgument(format!(
            "{} has more than {RUNS_MAX} output directories",
            directory.display()
        )));
    }
    if places.is_empty() {
        return subject(directory);
    }
    let runs = places.iter().map(|place| subject(place)).collect::<anyhow::Result<Vec<_>>>()?;
    Subject::joined(runs).map_err(|different| {
        WrongArgument(format!("in {}: {different}", directory.display())).into()
    })
}

fn is_output(directory: &Path) -> bool {
    [RESULTS, SIMULATION, MEASUREMENT].iter().any(|name| directory.join(name).is_file())
}

/// What an output directory holds.
fn subject(directory: &Path) -> anyhow::Result<Subject> {
    let has = |name: &str| directory.join(name).is_file();
    if has(RESULTS) {
        return runs(directory);
    }
    if has(SIMULATION) {
        return simulated(directory);
    }
    if has(MEASUREMENT) {
        let samples = |name: &str| -> anyhow::Result<Vec<i64>> {
            let file = directory.join("samples").join(format!("{name}.csv"));
            compare::samples(&values(&file)?).with_context(|| file.display().to_string())
        };
        let file = directory.join(MEASUREMENT);
        let document = document(&file)?;
        return Subject::of_measurement(&document, samples)
            .with_context(|| file.display().to_string());
    }
    bail!(WrongArgument(format!(
        "{} is no output directory, nor has it any: it has none of {RESULTS}, {SIMULATION} and \
         {MEASUREMENT}; `onbeat run --out`, `onbeat simulate --out` and `onbeat measure` write \
         such",
        directory.display()
    )));
}

fn runs(directory: &Path) -> anyhow::Result<Subject> {
    let file = directory.join(RESULTS);
    let results: Results =
        serde_json::from_str(&document(&file)?).with_context(|| file.display().to_string())?;
    let mut series = Vec::new();
    for (at, run) in results.runs.iter().enumerate() {
        let file = directory.join(run_directory(at, &run.scenario)).join(MESSAGES);
        let read = compare::messages(&run.scenario, &values(&file)?);
        series.push(read.with_context(|| file.display().to_string())?);
    }
    Ok(Subject::of_runs(&results, series))
}

fn simulated(directory: &Path) -> anyhow::Result<Subject> {
    let file = directory.join(SIMULATION);
    let results: simulation::Results =
        serde_json::from_str(&document(&file)?).with_context(|| file.display().to_string())?;
    let file = directory.join(REPETITIONS);
    if !file.is_file() {
        return Err(anyhow!(WrongArgument(format!(
            "{} has no {REPETITIONS}: one simulation says nothing of the next; make many with \
             `onbeat simulate --repetitions 100`",
            directory.display()
        ))));
    }
    Subject::of_simulation(&results, &values(&file)?).with_context(|| file.display().to_string())
}

fn document(file: &Path) -> anyhow::Result<String> {
    input::text(file, input::RESULTS_OCTETS).map_err(anyhow::Error::msg)
}

fn values(file: &Path) -> anyhow::Result<String> {
    input::text(file, input::VALUES_OCTETS).map_err(anyhow::Error::msg)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_effect_is_per_cent_with_one_decimal() {
        for (text, per_mille) in
            [("5%", 50), ("5", 50), ("0.5 %", 5), ("0", 0), ("10000%", 100_000)]
        {
            assert_eq!(effect(text), Ok(per_mille), "{text}");
        }
        for bad in ["", "%", "-1", "1.25", "1.", ".5", "five", "10001", "99999999999"] {
            assert!(effect(bad).is_err(), "{bad}");
        }
    }
}
