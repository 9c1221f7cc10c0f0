//! The binary `onbeat-sim`.

use anyhow::{Context, Result, bail, ensure};
use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};
use onbeat_hunt::schema::Schema;
use onbeat_sim::judge::INVARIANTS;
use onbeat_sim::trial::ACTOR;
use onbeat_sim::{DrawnSystem, Harness};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const EXAMPLES: &str = "\
Examples:
  onbeat-sim 17                 one seed, with all that is drawn of it
  onbeat-sim 17 --keep found    the same, and keeps its files below found/
  onbeat-sim                    fresh seeds, for ever
  onbeat-sim --case found/seed-17.json
                                what was kept of a seed, whatever is drawn of it now
  onbeat-sim --from 1 --count 100
  onbeat-sim --for 10m --jobs 2

Exit codes: 0 nothing found, 1 something found, 2 wrong arguments or a machine that fails";

/// Runs whole systems that are drawn from seeds, and checks every invariant.
#[derive(Debug, Parser)]
#[command(name = "onbeat-sim", version, after_help = EXAMPLES)]
struct Arguments {
    /// Runs this seed alone, and prints everything
    #[arg(conflicts_with_all = ["from", "count", "duration", "jobs"])]
    seed: Option<u64>,
    /// Runs a kept system
    #[arg(long, value_name = "FILE", conflicts_with = "seed")]
    case: Option<PathBuf>,
    /// First of the seeds; by the clock if not given
    #[arg(long, value_name = "SEED")]
    from: Option<u64>,
    /// Number of seeds; without end if not given
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// How long to continue, such as 10m
    #[arg(long = "for", value_name = "DURATION", value_parser = humantime::parse_duration)]
    duration: Option<Duration>,
    /// Seeds at one time
    #[arg(long, value_name = "N", default_value_t = 1)]
    jobs: u64,
    /// Keeps the files of each seed, or of each that fails, below this directory
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// The command under test; without it the one beside this program
    #[arg(long, value_name = "FILE")]
    onbeat: Option<PathBuf>,
    /// Lists the invariants
    #[arg(long)]
    invariants: bool,
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().collect();
    if let ([_, word, name], Some(_)) = (&words[..], std::env::var_os(ACTOR))
        && word == "actor"
    {
        return onbeat_sim::actor::act(name).unwrap_or_else(|error| {
            eprintln!("actor {name}: {error:#}");
            ExitCode::FAILURE
        });
    }
    match run(&Arguments::parse()) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::from(1),
        Err(error) => {
            eprintln!("onbeat-sim: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// How many seeds failed.
fn run(arguments: &Arguments) -> Result<u64> {
    if arguments.invariants {
        INVARIANTS.iter().for_each(|(name, what)| print(&format!("{name:<10} {what}")));
        return Ok(0);
    }
    let own = std::env::current_exe()?;
    let beside = own.parent().context("a directory")?.join("onbeat");
    let onbeat = arguments.onbeat.clone().unwrap_or(beside);
    let onbeat = onbeat.canonicalize().with_context(|| {
        format!("{}: build the command, or name it with --onbeat", onbeat.display())
    })?;
    let actor = vec![own.to_str().context("a path that is text")?.to_owned(), "actor".to_owned()];
    let keep = match &arguments.keep {
        Some(keep) => {
            std::fs::create_dir_all(keep).with_context(|| keep.display().to_string())?;
            Some(keep.canonicalize()?)
        }
        None => None,
    };
    let stage = Harness { onbeat, actor, keep };
    match (arguments.seed, &arguments.case) {
        (Some(seed), _) => one(&stage, &DrawnSystem::draw(&Schema::committed(), seed)),
        (None, Some(path)) => {
            let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
            let system =
                DrawnSystem::from_json(&text).with_context(|| path.display().to_string())?;
            one(&stage, &system)
        }
        (None, None) => many(&stage, arguments),
    }
}

/// One system, and everything about it.
fn one(stage: &Harness, system: &DrawnSystem) -> Result<u64> {
    let seed = system.seed;
    print(&system.text());
    let outcome = stage.try_out(system)?;
    print(&format!(
        "# ended with {}; {} messages received, {} lines of programs",
        outcome.ended, outcome.received, outcome.steps
    ));
    for finding in &outcome.findings {
        print(&format!("seed {seed}: {finding}"));
    }
    if outcome.findings.is_empty() {
        print(&format!("seed {seed}: all invariants hold"));
    }
    Ok(outcome.findings.len() as u64)
}

/// Prints a line. Whoever closes the other end, such as `head`, has read enough.
fn print(text: &str) {
    let _ = writeln!(std::io::stdout(), "{text}");
}

/// What came of all seeds.
#[derive(Default)]
struct Seen {
    failed: u64,
    received: u64,
    ended: BTreeMap<String, u64>,
}

/// Seeds one after the other; prints those that fail.
#[expect(clippy::disallowed_methods, reason = "how long to continue is said in time of the clock")]
fn many(stage: &Harness, arguments: &Arguments) -> Result<u64> {
    ensure!(arguments.jobs > 0, "--jobs 0 tries nothing");
    let by_clock = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs() * 1_000;
    let first = arguments.from.unwrap_or(by_clock);
    let end = arguments.duration.map(|duration| Instant::now() + duration);
    let (next, seen) = (AtomicU64::new(0), Mutex::new(Seen::default()));
    let bar = progress(arguments.count);
    let schema = Schema::committed();
    let work = || -> Result<()> {
        while end.is_none_or(|end| Instant::now() < end) {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if arguments.count.is_some_and(|count| number >= count) {
                break;
            }
            let seed = first + number;
            let outcome = stage.try_out(&DrawnSystem::draw(&schema, seed))?;
            let mut seen = seen.lock().expect("no thread panicked");
            seen.received = seen.received.saturating_add(outcome.received);
            *seen.ended.entry(outcome.ended.clone()).or_default() += 1;
            if let Some(finding) = outcome.findings.first() {
                seen.failed += 1;
                bar.suspend(|| {
                    print(&format!("seed {seed}: {finding}\n  again: onbeat-sim {seed}"));
                });
            } else if let Some(keep) = &stage.keep {
                // Only what fails is worth keeping.
                let _ = std::fs::remove_dir_all(keep.join(format!("seed-{seed}")));
                let _ = std::fs::remove_file(keep.join(format!("seed-{seed}.json")));
            }
            bar.inc(1);
            bar.set_message(format!("{} failed", seen.failed));
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..arguments.jobs).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| match worker.join() {
            Ok(result) => result,
            Err(_) => bail!("a worker panicked"),
        })
    })?;
    bar.finish_and_clear();
    let Seen { failed, received, ended } = seen.into_inner().expect("no thread panicked");
    let done: u64 = ended.values().sum();
    print(&format!(
        "onbeat-sim: {done} seeds from {first} on, {failed} failed; {received} messages received; \
         runs ended with {ended:?}"
    ));
    Ok(failed)
}

fn progress(count: Option<u64>) -> ProgressBar {
    let bar = count.map_or_else(ProgressBar::new_spinner, ProgressBar::new);
    let template = match count {
        Some(_) => "[{wide_bar}] {pos}/{len} seeds, {msg}, {eta} left",
        None => "{spinner} {pos} seeds in {elapsed}, {msg}",
    };
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
    bar
}
