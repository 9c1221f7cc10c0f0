//! One seed from the drawing to the findings: the verbs of the command on the same description, and
//! its run, twice.

use crate::judge::{Evidence, Finding, judge, violations};
use crate::system::{DrawnSystem, STARTER};
use anyhow::{Context, Result};
use onbeat_hunt::checker::{Checker, Settings};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Is set for a run whose programs are actors.
pub const ACTOR: &str = "ONBEAT_SIM_ACTOR";

/// The longest that one command may take, by the clock: many times what it needs on a busy machine.
const PATIENCE: Duration = Duration::from_secs(240);
/// How long what a command leaves may take to end.
const CLEAN_UP: Duration = Duration::from_secs(5);
/// The most memory that a command and its programs may ask for each, in octets.
const MEMORY: u64 = 8 << 30;
const LOOK_AGAIN: Duration = Duration::from_millis(2);

/// Repetitions of the simulations with random phases, and with aligned ones.
const REPETITIONS: u64 = 1;

/// What is tried, and with what.
#[derive(Clone, Debug)]
pub struct Harness {
    /// The command `onbeat`.
    pub onbeat: PathBuf,
    /// What starts an actor: a program and its arguments, behind which its name comes.
    pub actor: Vec<String>,
    /// Where the files go, each seed in a directory of its own; nowhere that stays, if none.
    pub keep: Option<PathBuf>,
}

/// What came of a seed.
#[derive(Clone, Debug, Default)]
pub struct TrialOutcome {
    /// What is wrong.
    pub findings: Vec<Finding>,
    /// How the run ended: its exit code, or the code with which the description was refused.
    pub ended: String,
    /// How many messages were received.
    pub received: u64,
    /// How many lines the programs wrote down.
    pub steps: u64,
}

/// How a command ended, and what it said.
struct Ran {
    status: Option<ExitStatus>,
    printed: Vec<u8>,
    said: String,
}

impl Harness {
    /// Tries a system: all that is wrong.
    ///
    /// # Errors
    /// If the machine fails, not the command.
    pub fn try_out(&self, system: &DrawnSystem) -> Result<TrialOutcome> {
        let outcome = self.tried(system)?;
        if let Some(keep) = &self.keep {
            let why = outcome.findings.first().map(ToString::to_string).unwrap_or_default();
            let path = keep.join(format!("seed-{}.json", system.seed));
            std::fs::write(&path, system.to_json(&why))
                .with_context(|| path.display().to_string())?;
        }
        Ok(outcome)
    }

    fn tried(&self, system: &DrawnSystem) -> Result<TrialOutcome> {
        let own = tempfile::tempdir().context("no temporary directory")?;
        let place = match &self.keep {
            Some(keep) => keep.join(format!("seed-{}", system.seed)),
            None => own.path().to_owned(),
        };
        let mut outcome = TrialOutcome::default();
        let once = self.prepare(system, &place.join("once"))?;
        let codes = self.verbs(&once, &mut outcome)?;
        self.figures(system, &mut outcome)?;
        let first = self.run(system, &once, &mut outcome)?;
        let Some(first) = self.answered(codes, first, &mut outcome) else { return Ok(outcome) };
        outcome.findings.extend(judge(system, &first));
        schema_of(&first.results, &mut outcome);
        let again = self.prepare(system, &place.join("again"))?;
        if let Some(second) = self.run(system, &again, &mut outcome)? {
            compare([&once, &again], [&first, &second], &mut outcome);
        }
        outcome.ended = first.code.to_string();
        outcome.received = received(&first.results);
        outcome.steps = first.logs.values().map(|log| log.lines().count() as u64).sum();
        Ok(outcome)
    }

    /// Runs a system once, and judges nothing; none if the command refuses it.
    ///
    /// # Errors
    /// If the machine fails, not the command.
    pub fn evidence(&self, system: &DrawnSystem) -> Result<Option<Evidence>> {
        let own = tempfile::tempdir().context("no temporary directory")?;
        let place = self.prepare(system, &own.path().join("once"))?;
        self.run(system, &place, &mut TrialOutcome::default())
    }

    /// A new directory with everything of a system.
    fn prepare(&self, system: &DrawnSystem, place: &Path) -> Result<PathBuf> {
        // Of a seed that was tried before.
        let _ = std::fs::remove_dir_all(place);
        std::fs::create_dir_all(place.join("tmp")).with_context(|| place.display().to_string())?;
        let quoted = self.actor.iter().map(|word| format!("'{}'", word.replace('\'', "'\\''")));
        let words = quoted.collect::<Vec<_>>().join(" ");
        system.write(place, &format!("#!/bin/sh\nexec {words} \"$@\"\n"))?;
        Ok(place.to_owned())
    }

    /// Runs a command in a directory. Its output goes to files: whoever is left over and holds a
    /// pipe open would be waited for.
    fn command(&self, place: &Path, arguments: &[&str], found: &mut Vec<Finding>) -> Result<Ran> {
        let beside = |what: &str| place.with_extension(what);
        let (out, err) = (beside("stdout"), beside("stderr"));
        let mut command = Command::new("prlimit");
        command.arg(format!("--as={MEMORY}")).arg("--core=0").arg(&self.onbeat).args(arguments);
        let mut child = command
            .current_dir(place)
            .env("NO_COLOR", "1")
            .env(ACTOR, "1")
            .env("TMPDIR", place.join("tmp"))
            .stdin(Stdio::null())
            .stdout(File::create(&out)?)
            .stderr(File::create(&err)?)
            .spawn()
            .context("`prlimit` of util-linux starts the command")?;
        let pid = child.id();
        let status = awaited(&mut child)?;
        let ran = Ran {
            status,
            printed: std::fs::read(&out)?,
            said: String::from_utf8_lossy(&std::fs::read(&err)?).into_owned(),
        };
        let verb = arguments.first().copied().unwrap_or_default();
        found.extend(ran.unsound(verb));
        found.extend(
            left_over(place, pid)
                .into_iter()
                .map(|what| Finding::new("left", format!("{verb}: {what}"))),
        );
        Ok(ran)
    }

    /// `check` and `plan`: the codes with which they refuse the description.
    fn verbs(&self, place: &Path, outcome: &mut TrialOutcome) -> Result<[Vec<String>; 2]> {
        let check = self.command(place, &["check", "."], &mut outcome.findings)?;
        let plan = self.command(place, &["plan", "."], &mut outcome.findings)?;
        let codes = [check.codes(), plan.codes()];
        for (ran, (verb, codes)) in
            [&check, &plan].into_iter().zip(["check", "plan"].iter().zip(&codes))
        {
            let code = ran.code();
            if (code == 0) == codes.is_empty() && [0, 1].contains(&code) {
                continue;
            }
            let what = format!("{verb}: exit code {code} with the codes {codes:?}");
            outcome.findings.push(Finding::new("exit", what));
        }
        Ok(codes)
    }

    /// `bounds` and `simulate`: what random descriptions are held to.
    fn figures(&self, system: &DrawnSystem, outcome: &mut TrialOutcome) -> Result<()> {
        let checker = Checker::new(&self.onbeat)?;
        let settings = Settings::of(&system.description, system.seed, REPETITIONS);
        let report = checker.check(&system.description, settings)?;
        for finding in report.findings {
            let invariant = match finding.kind {
                onbeat_hunt::checker::Kind::Crash => "sound",
                onbeat_hunt::checker::Kind::Hang => "ends",
                onbeat_hunt::checker::Kind::Invalid => "agree",
                onbeat_hunt::checker::Kind::Broken => "guarantee",
                onbeat_hunt::checker::Kind::Books => "books",
            };
            outcome.findings.push(Finding::new(invariant, finding.what));
        }
        Ok(())
    }

    /// Runs the system, in virtual time; none if there was no run, and why not is in the outcome.
    fn run(
        &self,
        system: &DrawnSystem,
        place: &Path,
        outcome: &mut TrialOutcome,
    ) -> Result<Option<Evidence>> {
        let (duration, seed) = (format!("{}ns", system.duration_ns), system.seed.to_string());
        let mut arguments = vec!["run", ".", "--json", "--time", "virtual", "--out", "out"];
        arguments.extend(["--duration", &duration, "--seed", &seed]);
        if let Some(scenario) = &system.scenario {
            arguments.extend(["--scenario", scenario]);
        }
        if system.unprotected {
            arguments.push("--unprotected");
        }
        let ran = self.command(place, &arguments, &mut outcome.findings)?;
        let code = ran.code();
        if code == 1 {
            outcome.ended = ran.codes().first().cloned().unwrap_or_default();
            return Ok(None);
        }
        let Ok(results) = serde_json::from_slice::<Value>(&ran.printed) else {
            let said: Vec<&str> = ran.said.lines().take(4).collect();
            let what = format!("run: exit code {code}, and no JSON: {}", said.join(" | "));
            outcome.findings.push(Finding::new("exit", what));
            return Ok(None);
        };
        let directory = format!("out/1-{}", system.scenario.as_deref().unwrap_or("run"));
        let text = |name: String| std::fs::read_to_string(place.join(name)).unwrap_or_default();
        let log = |name: &str| text(format!("{name}.{}", crate::actor::LOG));
        let logs: BTreeMap<String, String> =
            system.actors.iter().map(|actor| (actor.name.clone(), log(&actor.name))).collect();
        let messages = text(format!("{directory}/messages.csv"));
        Ok(Some(Evidence { code, results, said: ran.said, messages, logs }))
    }

    /// Either all verbs refuse the description, or none does.
    fn answered(
        &self,
        codes: [Vec<String>; 2],
        run: Option<Evidence>,
        outcome: &mut TrialOutcome,
    ) -> Option<Evidence> {
        let refused = codes.iter().any(|codes| !codes.is_empty());
        if refused == run.is_some() && !(refused && outcome.ended.is_empty()) {
            let what = format!("check and plan say {codes:?}, run ended with {}", outcome.ended);
            outcome.findings.push(Finding::new("agree", what));
        }
        run
    }
}

impl Ran {
    fn code(&self) -> i32 {
        self.status.and_then(|status| status.code()).unwrap_or(-1)
    }

    /// The codes of its errors.
    fn codes(&self) -> Vec<String> {
        let lines =
            self.said.lines().filter_map(|line| line.strip_prefix("error[")?.split(']').next());
        lines.map(str::to_owned).collect()
    }

    /// What is wrong with how it ended.
    fn unsound(&self, verb: &str) -> Option<Finding> {
        let panicked = self.said.lines().find(|line| line.contains("panicked at"));
        match self.status {
            None => Some(Finding::new("ends", format!("{verb}: not within {PATIENCE:?}"))),
            Some(status) if status.code().is_none() => {
                let what = format!("{verb}: died by signal {:?}", status.signal());
                Some(Finding::new("sound", what))
            }
            _ => panicked.map(|line| Finding::new("sound", format!("{verb}: {line}"))),
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "how long a command takes is measured by the clock")]
fn awaited(child: &mut Child) -> Result<Option<ExitStatus>> {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() > end {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(LOOK_AGAIN);
    }
}

/// What a command has left: processes in its directory, control groups, files.
#[expect(clippy::disallowed_methods, reason = "what ends takes its time to")]
fn left_over(place: &Path, pid: u32) -> Vec<String> {
    let end = Instant::now() + CLEAN_UP;
    loop {
        let left: Vec<String> =
            [processes(place), cgroups(pid), files(place)].into_iter().flatten().collect();
        if left.is_empty() || Instant::now() > end {
            return left;
        }
        std::thread::sleep(LOOK_AGAIN);
    }
}

fn processes(place: &Path) -> Vec<String> {
    let Ok(place) = place.canonicalize() else { return Vec::new() };
    let all = Path::new("/proc").read_dir().into_iter().flatten().flatten();
    let inside = all.filter(|process| {
        std::fs::read_link(process.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(&place))
    });
    let name = |process: std::fs::DirEntry| {
        let command = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
        let command = String::from_utf8_lossy(&command).replace('\0', " ");
        format!("process {} {command}", process.file_name().to_string_lossy())
    };
    inside.map(name).collect()
}

fn cgroups(pid: u32) -> Vec<String> {
    let name = format!("onbeat-{pid}-");
    let (mut found, mut todo) = (Vec::new(), vec![PathBuf::from("/sys/fs/cgroup")]);
    while let Some(directory) = todo.pop() {
        for entry in directory.read_dir().into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                if entry.file_name().to_string_lossy().starts_with(&name) {
                    found.push(format!("control group {}", entry.path().display()));
                }
                todo.push(entry.path());
            }
        }
    }
    found
}

/// Files that neither the system nor a complete output has.
fn files(place: &Path) -> Vec<String> {
    let own = ["toml", "h", "csv", "script", "ends", "log"];
    let known = |name: &str| {
        let kind = name.rsplit_once('.').map_or("", |(_, kind)| kind);
        [STARTER, "out", "tmp"].contains(&name) || own.contains(&kind)
    };
    let names = |place: &Path| {
        let entries = place.read_dir().into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect::<Vec<_>>()
    };
    let beside = names(place).into_iter().filter(|name| !known(name));
    let temporary = names(&place.join("tmp")).into_iter().map(|name| format!("tmp/{name}"));
    beside.chain(temporary).map(|name| format!("file {name}")).collect()
}

/// The same seed gives the same, to the octet.
fn compare(places: [&Path; 2], runs: [&Evidence; 2], outcome: &mut TrialOutcome) {
    let mut differ = |what: String| outcome.findings.push(Finding::new("again", what));
    if runs[0].code != runs[1].code {
        differ(format!("exit codes {} and {}", runs[0].code, runs[1].code));
    }
    if runs[0].results != runs[1].results {
        let hash = |run: &Evidence| run.results["runs"][0]["record_hash"].to_string();
        differ(format!("results with the records {} and {}", hash(runs[0]), hash(runs[1])));
    }
    if runs[0].messages != runs[1].messages {
        differ("messages.csv".to_owned());
    }
    for (name, log) in &runs[0].logs {
        let other = runs[1].logs.get(name).map_or("", String::as_str);
        // One that is killed may have got further or less far.
        if runs[0].code != 4 && in_run(log) != in_run(other) {
            differ(format!("the log of program {name}"));
        }
    }
    let records = places.map(|place| {
        let outputs = place.join("out").read_dir().into_iter().flatten().flatten();
        let mut found: Vec<_> = outputs
            .filter_map(|entry| std::fs::read(entry.path().join("records.onb")).ok())
            .collect();
        found.sort();
        found
    });
    if records[0] != records[1] {
        differ("records.onb".to_owned());
    }
}

/// What of a log was written during the run: after it, and once their program exits, threads do
/// what they do side by side.
fn in_run(log: &str) -> Vec<&str> {
    let after = ["stopped", "end", "ended", "unread", "leaves", "error"];
    let mut over: Vec<&str> = Vec::new();
    let mut kept = Vec::new();
    for line in log.lines() {
        let mut words = line.split(' ');
        let (thread, word) = (words.next().unwrap_or(""), words.nth(2).unwrap_or(""));
        if after.contains(&word) {
            over.push(thread);
        }
        if !over.contains(&thread) {
            kept.push(line);
        }
    }
    kept
}

fn schema_of(results: &Value, outcome: &mut TrialOutcome) {
    let text = include_str!("../../../schema/results.schema.json");
    let schema: Value = serde_json::from_str(text).expect("the committed schema is JSON");
    for line in violations(&schema, results) {
        outcome.findings.push(Finding::new("agree", format!("results.schema.json: {line}")));
    }
}

fn received(results: &Value) -> u64 {
    let channels = results["runs"][0]["channels"].as_array().into_iter().flatten();
    // A program may have written into the memory of its counts what it likes.
    let counts = channels.filter_map(|channel| channel["received"].as_u64());
    counts.fold(0, u64::saturating_add)
}
