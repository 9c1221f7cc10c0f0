//! Holds the command to its promises about one description: bounds against simulations, figures
//! against each other, exit codes against verdicts.

mod run;
mod simulation;

use crate::Description;
use anyhow::{Context, Result};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The most processor time that one command may take, in seconds: what else the machine does must
/// not count.
const PATIENCE_S: u64 = 20;

/// The most memory that one command may ask for, in octets.
const MEMORY: u64 = 4 << 30;

/// So many frames and gate changes of one simulation are worth waiting for.
const EVENTS: i128 = 150_000;

/// What kind of fault was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The command panicked or was killed.
    Crash,
    /// The command did not end.
    Hang,
    /// A description that the format should allow was refused as wrong.
    Invalid,
    /// Something happened that a bound excludes.
    Broken,
    /// Two figures that must agree do not.
    Books,
}

/// One fault.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Its kind: shrinking keeps to it.
    pub kind: Kind,
    /// With which phases it was simulated; none where it was before.
    pub phases: Option<&'static str>,
    /// For a person.
    pub what: String,
}

impl Finding {
    /// Whether it is a fault of the same kind; of two refusals, for the same reason.
    pub fn is_like(&self, other: &Self) -> bool {
        let reason = |what: &str| {
            let line = what.lines().next().unwrap_or_default();
            line.chars().filter(|c| !c.is_ascii_digit()).collect::<String>()
        };
        self.kind == other.kind
            && (self.kind != Kind::Invalid || reason(&self.what) == reason(&other.what))
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.kind, self.what)
    }
}

/// What came of one description.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// All faults.
    pub findings: Vec<Finding>,
    /// The codes with which the plan refused it, if it did: that is an answer, too.
    pub refused: Vec<String>,
    /// Listeners that were looked at, with a bound, and that received something.
    pub listeners: u64,
    /// Of these, those with a bound.
    pub bounded: u64,
    /// Of these, those that received something.
    pub judged: u64,
    /// Frames that came to listeners.
    pub frames: u64,
    /// Descriptions with programs that were run.
    pub runs: u64,
    /// Processor time of the plan, in nanoseconds.
    pub plan_ns: u64,
    /// What is being looked at.
    phases: Option<&'static str>,
}

impl Report {
    fn find(&mut self, kind: Kind, what: impl Into<String>) {
        self.findings.push(Finding { kind, phases: self.phases, what: what.into() });
    }

    /// Adds another report's figures.
    pub fn add(&mut self, other: Report) {
        self.findings.extend(other.findings);
        self.refused.extend(other.refused);
        self.listeners += other.listeners;
        self.bounded += other.bounded;
        self.judged += other.judged;
        self.frames += other.frames;
        self.runs += other.runs;
        self.plan_ns = self.plan_ns.max(other.plan_ns);
    }
}

/// How a description is simulated.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// How long sources release frames, in nanoseconds.
    pub duration_ns: i64,
    /// Of the simulations.
    pub seed: u64,
    /// Repetitions with random phases, and with aligned ones.
    pub repetitions: u64,
    /// Only these phases are simulated; all where none is given.
    pub only: Option<&'static str>,
}

impl Settings {
    /// So long that a simulation of the description is worth its time.
    pub fn of(description: &Description, seed: u64, repetitions: u64) -> Self {
        let rate = events_per_s(description).max(1);
        let duration_ns = (EVENTS * 1_000_000_000 / rate).clamp(1_000, 100_000_000) as i64;
        Self { duration_ns, seed, repetitions, only: None }
    }

    /// As the first line of a `system.toml`.
    pub fn line(&self) -> String {
        let Self { duration_ns, seed, repetitions, .. } = self;
        format!("# duration_ns {duration_ns} seed {seed} repetitions {repetitions}")
    }

    /// Reads such a line; none if it is none.
    pub fn read(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let ["#", "duration_ns", duration, "seed", seed, "repetitions", repetitions] = words[..]
        else {
            return None;
        };
        let duration_ns = duration.parse().ok()?;
        let (seed, repetitions) = (seed.parse().ok()?, repetitions.parse().ok()?);
        Some(Self { duration_ns, seed, repetitions, only: None })
    }
}

/// About how many events a second of the description takes, in any engine.
fn events_per_s(description: &Description) -> i128 {
    let hops = 2 + description.list("bridge").len() as i128;
    let int = |table: &Value, key: &str| table[key].as_i64().map(i128::from);
    let per_s = |table: &Value| {
        int(table, "interval_ns").map(|ns| 1_000_000_000 / ns.max(1)).or(int(table, "rate_hz"))
    };
    let flows = description.list("stream").iter().chain(description.list("channel"));
    let flows: i128 = flows
        .map(|flow| {
            let copies = flow["listeners"].as_array().map_or(1, Vec::len) as i128
                * flow["paths"].as_array().map_or(1, Vec::len) as i128;
            per_s(flow).unwrap_or(1_000) * int(flow, "burst_frames").unwrap_or(1) * copies
        })
        .sum();
    let manifest =
        description.files.values().flat_map(|text| text.split(".interval_ns = ").skip(1));
    let interval = |text: &str| text.split(',').next()?.parse::<i128>().ok();
    let manifest: i128 = manifest.filter_map(interval).map(|ns| 1_000_000_000 / ns.max(1)).sum();
    let noise = description.list("noise").iter().map(|noise| {
        let octets = int(noise, "size_octets").unwrap_or(1) + 66;
        let rate = int(noise, "rate_mbps").map(|mbps| mbps * 1_000_000 / (8 * octets.max(84)));
        rate.or(int(noise, "frames_per_s")).unwrap_or(1)
    });
    let noise: i128 = noise.sum();
    // Each write is a segment or several, each acknowledged.
    let tcp = description.list("tcp").iter().map(|flow| {
        let writes = flow["writes_octets"].as_array().into_iter().flatten();
        let segments: i128 = writes.map(|w| 1 + i128::from(w.as_i64().unwrap_or(1)) / 1_460).sum();
        2 * segments * per_s(flow).unwrap_or(1)
    });
    let tcp: i128 = tcp.sum();
    let fastest = description.list("link").iter().map(|link| {
        int(link, "rate_mbps").map(|mbps| mbps * 1_000_000).or(int(link, "rate_bps")).unwrap_or(1)
    });
    let fastest = fastest.max().unwrap_or(1);
    let babblers = description.list("fault").iter().filter(|f| !f["babble"].is_null()).count();
    let gates = description.list("port").iter().flat_map(|port| {
        let ports = port["names"].as_array().map_or(1, Vec::len) as i128;
        port["gates"].as_array().into_iter().flatten().map(move |list| {
            let entries = list["entries"].as_array().map_or(&[][..], Vec::as_slice);
            let sum: i128 = entries.iter().filter_map(|e| int(e, "interval_ns")).sum();
            let cycle = int(list, "cycle_time_ns").unwrap_or(sum).max(1);
            ports * (1 + entries.len() as i128) * 1_000_000_000 / cycle
        })
    });
    let gates: i128 = gates.sum();
    hops * (flows + manifest + noise + tcp + babblers as i128 * fastest / 672) + gates
}

/// The command and a place to work in.
#[derive(Debug)]
pub struct Checker {
    onbeat: PathBuf,
    home: PathBuf,
    directory: tempfile::TempDir,
    patience_s: u64,
}

impl Checker {
    /// With the command at a path.
    ///
    /// # Errors
    /// If there is no place for temporary files.
    pub fn new(onbeat: &Path) -> Result<Self> {
        let directory = tempfile::tempdir().context("no temporary directory")?;
        let home = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the workspace");
        let (onbeat, home) = (onbeat.to_owned(), home.to_owned());
        Ok(Self { onbeat, home, directory, patience_s: PATIENCE_S })
    }

    /// With headers and libraries for programs from another tree than this workspace.
    pub fn home(self, home: &Path) -> Self {
        Self { home: home.to_owned(), ..self }
    }

    /// With so many seconds of processor time for each command.
    pub fn patience(self, patience_s: u64) -> Self {
        Self { patience_s, ..self }
    }

    /// Writes the description down and looks at all that the command says of it.
    ///
    /// # Errors
    /// If the machine fails, not the command.
    pub fn check(&self, description: &Description, settings: Settings) -> Result<Report> {
        let place = tempfile::tempdir_in(self.directory.path())?;
        description.write(place.path())?;
        self.directory(place.path(), settings)
    }

    /// Only the plan of the description, with its processor time.
    ///
    /// # Errors
    /// If the machine fails, not the command.
    pub fn plan(&self, description: &Description) -> Result<Report> {
        let place = tempfile::tempdir_in(self.directory.path())?;
        description.write(place.path())?;
        let mut report = Report::default();
        self.bounds(place.path(), &mut report)?;
        Ok(report)
    }

    /// All that the command says of a directory with a `system.toml`.
    ///
    /// # Errors
    /// If the machine fails, not the command.
    pub fn directory(&self, directory: &Path, settings: Settings) -> Result<Report> {
        let mut report = Report::default();
        let Some(bounds) = self.bounds(directory, &mut report)? else { return Ok(report) };
        let repetitions = settings.repetitions;
        let text = std::fs::read_to_string(directory.join("system.toml"))?;
        if settings.only.is_none() && run::has_programs(&text) {
            self.execute(directory, settings, &text, &mut report)?;
        }
        for (phases, count) in [("described", 1), ("random", repetitions), ("aligned", repetitions)]
        {
            if count > 0 && settings.only.is_none_or(|only| only == phases) {
                report.phases = Some(phases);
                self.simulate(directory, settings, count, &bounds, &mut report)?;
            }
        }
        Ok(report)
    }

    /// Bounds by flow and listener, as `onbeat bounds` has them; none where it has none to give.
    fn bounds(&self, directory: &Path, report: &mut Report) -> Result<Option<Bounds>> {
        let output = self.run(directory, &["bounds", ".", "--json"])?;
        if !sound(&output, "bounds", report) {
            return Ok(None);
        }
        if !output.status.success() {
            let codes = codes(&output);
            if codes.is_empty() || codes.iter().any(|code| code.starts_with("OB1")) {
                report.find(Kind::Invalid, text(&output.stderr));
            }
            report.refused = codes;
            return Ok(None);
        }
        let Some(document) = json(&output, "bounds", report) else { return Ok(None) };
        report.plan_ns = document["cpu_ns"].as_u64().unwrap_or(0);
        let flows = document["flows"].as_array().map_or(&[][..], Vec::as_slice);
        let key = |flow: &Value| Some((name(&flow["name"])?, name(&flow["listener"])?));
        let bounds = flows.iter().filter_map(|flow| Some((key(flow)?, flow["bound_ns"].as_i64())));
        Ok(Some(bounds.collect()))
    }

    fn simulate(
        &self,
        directory: &Path,
        settings: Settings,
        repetitions: u64,
        bounds: &Bounds,
        report: &mut Report,
    ) -> Result<()> {
        let phases = report.phases.unwrap_or("described");
        let (duration, seed) = (format!("{}ns", settings.duration_ns), settings.seed.to_string());
        let repetitions = repetitions.to_string();
        let arguments = [
            "simulate",
            ".",
            "--json",
            "--out",
            "out",
            "--jobs",
            "1",
            "--duration",
            &duration,
            "--seed",
            &seed,
            "--repetitions",
            &repetitions,
            "--phases",
            phases,
        ];
        let output = self.run(directory, &arguments)?;
        let what = format!("simulate --phases {phases}");
        if !sound(&output, &what, report) {
            return Ok(());
        }
        let code = output.status.code().unwrap_or(-1);
        if code != 0 && code != 3 {
            report.find(
                Kind::Books,
                format!(
                    "{what}: exit code {code} after bounds succeeded: {}",
                    text(&output.stderr)
                ),
            );
            return Ok(());
        }
        if let Some(document) = json(&output, &what, report) {
            let description = std::fs::read_to_string(directory.join("system.toml"))?;
            let check =
                simulation::Check { document: &document, what: &what, description: &description };
            check.all(bounds, code, report);
        }
        Ok(())
    }

    fn run(&self, directory: &Path, arguments: &[&str]) -> Result<Output> {
        Command::new("prlimit")
            .args([format!("--cpu={}", self.patience_s), format!("--as={MEMORY}")])
            .arg(&self.onbeat)
            .args(arguments)
            .current_dir(directory)
            .env("NO_COLOR", "1")
            .env("ONBEAT_HOME", &self.home)
            .output()
            .context("`prlimit` of util-linux starts the command")
    }
}

/// Bounds in nanoseconds by flow and listener; none where the plan has none.
type Bounds = BTreeMap<(String, String), Option<i64>>;

fn name(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn text(octets: &[u8]) -> String {
    let text = String::from_utf8_lossy(octets);
    text.lines().take(12).collect::<Vec<_>>().join("\n")
}

/// Whether the command ended by itself and without a panic.
fn sound(output: &Output, what: &str, report: &mut Report) -> bool {
    match output.status.code() {
        None if over_time(output) => {
            report.find(Kind::Hang, format!("{what}: too much processor time"));
        }
        None | Some(101) => report.find(Kind::Crash, format!("{what}: {}", text(&output.stderr))),
        _ if text(&output.stderr).contains("panicked at") => {
            report.find(Kind::Crash, format!("{what}: {}", text(&output.stderr)));
        }
        _ => return true,
    }
    false
}

/// Whether the kernel ended the command for its processor time.
fn over_time(output: &Output) -> bool {
    use std::os::unix::process::ExitStatusExt;
    // SIGXCPU, or SIGKILL at the hard limit.
    matches!(output.status.signal(), Some(24 | 9))
}

fn json(output: &Output, what: &str, report: &mut Report) -> Option<Value> {
    let document = serde_json::from_slice(&output.stdout);
    if document.is_err() {
        report.find(Kind::Books, format!("{what}: what it prints is not JSON"));
    }
    document.ok()
}

/// The codes of errors on standard error.
fn codes(output: &Output) -> Vec<String> {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let found = text.lines().filter_map(|line| line.strip_prefix("error[")?.split(']').next());
    found.map(str::to_owned).collect()
}
