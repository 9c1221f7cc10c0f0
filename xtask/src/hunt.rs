//! `cargo run -p xtask -- hunt [KIND] [--minutes N] [--count N] [--seed S] …`: random
//! systems with fresh seeds, `slowest`: the plan that takes longest, `verbs`: whole verbs on
//! spoilt directories, or `system`: runs with programs that misbehave, by `onbeat-sim`. A network
//! in which a guarantee is violated is made small and written below `crates/cli/tests/found`, where
//! the command's test `hunt` picks it up. Programs are, by the generators' own tests, below
//! `crates/cli/tests/found_programs`, verbs with their directory below
//! `crates/cli/tests/found_verbs`.

use crate::verbs;
use anyhow::{Context, Result, bail, ensure};
use onbeat_hunt::checker::{Checker, Finding, Kind, Report, Settings};
use onbeat_hunt::draw::description;
use onbeat_hunt::mutate::mutated;
use onbeat_hunt::schema::Schema;
use onbeat_hunt::shrink::shrink;
use onbeat_hunt::{Description, Dice};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Where small systems with a fault are written, below the repository.
pub const FOUND: &str = "crates/cli/tests/found";

/// Descriptions that are tried to make one small.
const SHRINK_TRIES: usize = 600;

/// Repetitions with random phases, and with aligned ones, of each network.
const REPETITIONS: u64 = 4;

/// Generators that are tests of the command: their file, and the variables that say how many
/// systems to draw and from which seed on.
const TESTS: [(&str, &str, &str, &str, u64); 4] = [
    ("graphs", "tfg_random", "TFG_GRAPHS", "TFG_SEED", 250),
    ("schedules", "tfg_schedule", "SCHEDULE_HOSTS", "SCHEDULE_SEED", 300),
    ("books", "books", "BOOKS_COUNT", "BOOKS_SEED", 8),
    ("chains", "tfg_chains", "CHAINS_SYSTEMS", "CHAINS_SEED", 24),
];

/// What is hunted otherwise.
const KINDS: [&str; 4] = ["networks", "slowest", "verbs", "system"];

/// What to hunt, and how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// `networks`, `slowest`, `verbs`, `system`, or a generator among the command's tests.
    pub kind: String,
    /// The longest that it may take.
    pub minutes: u64,
    /// How many systems at most.
    pub count: u64,
    /// The first seed; from the clock where none is given.
    pub seed: Option<u64>,
    /// Whether what is found is written as it was drawn, not made small.
    pub as_drawn: bool,
    /// Of `verbs`, the only one; all where none is given.
    pub verb: Option<String>,
    /// The command; built where none is given.
    pub onbeat: Option<PathBuf>,
}

impl Request {
    /// Reads the arguments behind `hunt`.
    ///
    /// # Errors
    /// For words that it does not know.
    pub fn read(words: &[&str]) -> Result<Self> {
        let mut request = Self {
            kind: "networks".into(),
            minutes: 30,
            count: u64::MAX,
            seed: None,
            as_drawn: false,
            verb: None,
            onbeat: None,
        };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut number = || -> Result<u64> {
                let text = words.next().with_context(|| format!("{word} needs a number"))?;
                text.parse().with_context(|| format!("{word} {text}: no number"))
            };
            match *word {
                "--minutes" => request.minutes = number()?,
                "--count" => request.count = number()?,
                "--seed" => request.seed = Some(number()?),
                "--as-drawn" => request.as_drawn = true,
                "--verb" => request.verb = words.next().map(|word| (*word).to_owned()),
                "--onbeat" => request.onbeat = words.next().map(PathBuf::from),
                kind if KINDS.contains(&kind) || TESTS.iter().any(|test| test.0 == kind) => {
                    request.kind = kind.into();
                }
                _ => {
                    let kinds: Vec<_> = TESTS.iter().map(|test| test.0).collect();
                    bail!(
                        "usage: cargo run -p xtask -- hunt [{}|{}] \
                         [--minutes N] [--count N] [--seed S] [--as-drawn] [--verb VERB] \
                         [--onbeat FILE]",
                        KINDS.join("|"),
                        kinds.join("|")
                    )
                }
            }
        }
        Ok(request)
    }
}

/// Hunts; prints what it finds and returns how many faults that is.
///
/// # Errors
/// When the machine fails: nothing can be built, written or started.
#[expect(clippy::disallowed_methods, reason = "how long to hunt is said in minutes of the clock")]
pub fn hunt(root: &Path, request: &Request) -> Result<u64> {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
    let seed = request.seed.unwrap_or(now.as_secs() * 1_000_000);
    let end = Instant::now() + Duration::from_secs(request.minutes * 60);
    let over = || Instant::now() >= end;
    match TESTS.iter().find(|test| test.0 == request.kind) {
        None if request.kind == "system" => system(root, request, seed),
        None if request.kind == "slowest" => slowest(root, request, seed, &over),
        None if request.kind == "verbs" => {
            verbs::verbs(root, request, &command(root, request)?, seed, &over)
        }
        None => networks(root, request, seed, &over),
        Some((_, test, count, first, portion)) => {
            let (mut found, mut done) = (0, 0);
            while !over() && done < request.count {
                let portion = (*portion).min(request.count - done);
                let at = seed % 1_000_000_000 + done;
                let output = cargo(root)
                    .args(["test", "--quiet", "-p", "onbeat-cli", "--test", "cli"])
                    .arg(format!("{test}::"))
                    .env(count, portion.to_string())
                    .env(first, at.to_string())
                    .env("HUNT_KEEP", if request.as_drawn { "drawn" } else { "small" })
                    .output()?;
                if !output.status.success() {
                    found += 1;
                    println!("{first}={at} {count}={portion} cargo test --test cli {test}::");
                    println!("{}", String::from_utf8_lossy(&output.stdout));
                }
                done += portion;
            }
            println!(
                "hunt: {done} systems of `{test}` from seed {seed} on, {found} portions failed"
            );
            Ok(found)
        }
    }
}

/// Whole systems with their programs: `onbeat-sim` runs for as long. Returns 1 if it found
/// something: each seed that fails is printed.
fn system(root: &Path, request: &Request, seed: u64) -> Result<u64> {
    let mut command = cargo(root);
    command.args(["build", "--quiet", "-p", "onbeat-cli", "-p", "onbeat-sim"]);
    ensure!(command.status()?.success(), "onbeat and onbeat-sim could not be built");
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), PathBuf::from);
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let mut sim = Command::new(target.join("debug/onbeat-sim"));
    sim.arg(format!("--from={seed}")).arg(format!("--for={}m", request.minutes));
    sim.arg(format!("--jobs={jobs}"));
    if request.count < u64::MAX {
        sim.arg(format!("--count={}", request.count));
    }
    if let Some(onbeat) = &request.onbeat {
        sim.arg("--onbeat").arg(onbeat);
    }
    match sim.status()?.code() {
        Some(0) => Ok(0),
        Some(1) => Ok(1),
        code => bail!("onbeat-sim ended with {code:?}"),
    }
}

fn cargo(root: &Path) -> Command {
    let mut command = Command::new(std::env::var("CARGO").unwrap_or("cargo".into()));
    command.current_dir(root);
    command
}

/// The command, built with checks; of whole verbs as it is delivered.
fn command(root: &Path, request: &Request) -> Result<PathBuf> {
    if let Some(path) = &request.onbeat {
        return path.canonicalize().with_context(|| path.display().to_string());
    }
    let (options, place): (&[&str], _) = match request.kind.as_str() {
        "verbs" => (&["--release"], "release/onbeat"),
        _ => (&[], "debug/onbeat"),
    };
    let mut build = cargo(root);
    let built = build.args(["build", "--quiet", "-p", "onbeat-cli"]).args(options).status()?;
    ensure!(built.success(), "onbeat could not be built");
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), PathBuf::from);
    Ok(target.join(place))
}

/// What was seen of all networks.
#[derive(Default)]
struct Seen {
    report: Report,
    /// Networks that the plan refused, by the first code.
    refused: BTreeMap<String, u64>,
    slowest: (u64, u64),
    faults: u64,
}

fn networks(
    root: &Path,
    request: &Request,
    seed: u64,
    over: &(dyn Fn() -> bool + Sync),
) -> Result<u64> {
    let checker = Checker::new(&command(root, request)?)?;
    let schema = Schema::committed();
    let (next, seen) = (AtomicU64::new(0), Mutex::new(Seen::default()));
    let work = || -> Result<()> {
        while !over() {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= request.count {
                break;
            }
            let seed = seed + number;
            let drawn = description(&schema, seed);
            let report = checker.check(&drawn, Settings::of(&drawn, seed, REPETITIONS))?;
            if let Some(first) = report.findings.first() {
                println!("seed {seed}: {first}");
                let place = keep(root, &checker, drawn, seed, first, request)?;
                println!("  written to {}", place.display());
            }
            let mut seen = seen.lock().expect("no thread panicked");
            seen.faults += u64::from(!report.findings.is_empty());
            if let Some(code) = report.refused.first() {
                *seen.refused.entry(code.clone()).or_default() += 1;
            }
            seen.slowest = seen.slowest.max((report.plan_ns, seed));
            seen.report.add(report);
            if number % 1_000 == 999 {
                println!("hunt: {} networks", number + 1);
            }
        }
        Ok(())
    };
    on_all_processors(work)?;
    let seen = seen.into_inner().expect("no thread panicked");
    let count = next.into_inner().min(request.count);
    println!("hunt: {count} networks from seed {seed} on; refused: {:?}", seen.refused);
    let Report { listeners, bounded, judged, frames, runs, .. } = seen.report;
    println!(
        "hunt: {listeners} listeners, {bounded} with a bound, {judged} of these received; \
         {frames} frames; {runs} with programs were run"
    );
    println!(
        "hunt: the slowest plan took {} ms (seed {})",
        seen.slowest.0 / 1_000_000,
        seen.slowest.1
    );
    println!("hunt: {} networks with a fault", seen.faults);
    Ok(seen.faults)
}

/// Does the same on each processor.
pub(crate) fn on_all_processors(work: impl Fn() -> Result<()> + Copy + Send) -> Result<()> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("it does not panic"))
    })
}

/// Plans of so many descriptions are changed on: the slowest that were seen.
const KEPT: usize = 12;

/// No plan of so few flows as are drawn here may take longer, in seconds of the processor.
const SLOW_S: u64 = 1;

/// Looks for the slowest plan: draws descriptions and changes the slowest of them on and on. Writes
/// what is too slow, and returns how many that are. The command is to be one of a release.
fn slowest(root: &Path, request: &Request, seed: u64, over: &dyn Fn() -> bool) -> Result<u64> {
    let checker = Checker::new(&command(root, request)?)?.patience(SLOW_S);
    let (schema, mut dice) = (Schema::committed(), Dice::new(seed));
    let mut kept: Vec<(u64, Description)> = Vec::new();
    let (mut tried, mut found) = (0, 0);
    while !over() && tried < request.count {
        let fresh = kept.len() < KEPT || dice.chance(20);
        let next = match fresh {
            true => description(&schema, dice.bits()),
            false => mutated(&dice.one(&kept).1, &mut dice),
        };
        // A simulation of gPTP is no plan.
        if next.root.contains_key("synchronisation") {
            continue;
        }
        tried += 1;
        let report = checker.plan(&next)?;
        if report.findings.iter().any(|finding| finding.kind == Kind::Hang) {
            // It is not kept: it would be all that is looked at from then on.
            found += 1;
            let place = root.join(FOUND).join(format!("slow-{seed}-{found}"));
            std::fs::create_dir_all(&place).with_context(|| place.display().to_string())?;
            next.write(&place)?;
            println!("over {SLOW_S} s: {}", place.display());
            continue;
        }
        if kept.first().is_none_or(|slowest| report.plan_ns > slowest.0) {
            println!("hunt: plan {tried} took {} us", report.plan_ns / 1_000);
        }
        let place = kept.partition_point(|other| other.0 >= report.plan_ns);
        kept.insert(place, (report.plan_ns, next));
        kept.truncate(KEPT);
    }
    let slowest = kept.first().map_or(0, |slowest| slowest.0 / 1_000);
    println!("hunt: {tried} plans from seed {seed} on, the slowest {slowest} us, {found} too slow");
    Ok(found)
}

/// Makes a description small as long as a fault of the same kind is there, and writes it where
/// tests find it.
fn keep(
    root: &Path,
    checker: &Checker,
    drawn: Description,
    seed: u64,
    first: &Finding,
    request: &Request,
) -> Result<PathBuf> {
    let settings = Settings::of(&drawn, seed, REPETITIONS);
    let narrow = Settings { only: first.phases, ..settings };
    let fails = |candidate: &Description| {
        let report = checker.check(candidate, narrow);
        report.is_ok_and(|report| report.findings.iter().any(|found| found.is_like(first)))
    };
    let tries = match first.kind {
        _ if request.as_drawn => 0,
        Kind::Hang => SHRINK_TRIES / 30,
        _ => SHRINK_TRIES,
    };
    let small = shrink(drawn, tries, fails);
    let place = root.join(FOUND).join(format!("seed-{seed}"));
    std::fs::create_dir_all(&place).with_context(|| place.display().to_string())?;
    small.write(&place)?;
    let head = settings.line();
    std::fs::write(place.join("system.toml"), format!("{head}\n{}", small.toml()))?;
    Ok(place)
}
