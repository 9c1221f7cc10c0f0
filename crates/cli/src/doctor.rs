//! The verb `doctor`: what affects a system's guarantees on this machine.

use crate::chosen::WrongArgument;
use crate::exit::Exit;
use crate::output;
use crate::source::{self, Source};
use crate::terminal;
use crate::trust::Trust;
use anyhow::Context;
use clap::Args;
use onbeat_machine::doctor::{
    Fact, Facts, Finding, GuaranteeKind, Requirements, State, Verdict, evaluate, lint, verdicts,
    worst,
};
use onbeat_report::grid::{grid, ruled};
use onbeat_run::machine::Machine;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
pub(crate) struct DoctorArguments {
    /// Description whose guarantees are checked, or directory of a system.toml [default: general
    /// advice]
    system: Option<PathBuf>,
    /// Host of the description that this machine is [default: all of them, on the emulated network]
    #[arg(long, value_name = "NAME", requires = "system")]
    host: Option<String>,
    /// Interface that channels use [default: all that are up]
    #[arg(long, value_name = "NAME")]
    interface: Option<String>,
    /// Process to check as well
    #[arg(long, value_name = "PID")]
    pid: Option<u32>,
    /// Directory with a copy of a machine's /proc, /sys and /etc to check
    #[arg(long, value_name = "DIRECTORY", conflicts_with = "facts")]
    root: Option<PathBuf>,
    /// File of --save to check, perhaps of another machine
    #[arg(long, value_name = "FILE", conflicts_with = "pid")]
    facts: Option<PathBuf>,
    /// File for the facts about the machine
    #[arg(long, value_name = "FILE", conflicts_with = "facts")]
    save: Option<PathBuf>,
    /// Tuning script, or configuration of ptp4l, to check instead of the machine; may be repeated
    #[arg(long, value_name = "FILE", conflicts_with_all = ["pid", "root", "facts", "save"])]
    script: Vec<PathBuf>,
    /// Also shows checks without a finding
    #[arg(long)]
    all: bool,
    /// Prints JSON
    #[arg(long)]
    json: bool,
}

/// Looks at a machine, or at scripts, and says what it found.
pub(crate) fn doctor(arguments: &DoctorArguments) -> anyhow::Result<Exit> {
    let wanted = wanted(arguments)?;
    let findings = match arguments.script.is_empty() {
        true => evaluate(&facts(arguments)?, Some(&wanted)),
        false => scripts(&arguments.script, &wanted)?,
    };
    // Scripts alone do not say whether a machine carries anything.
    let verdicts = match arguments.script.is_empty() {
        true => verdicts(&findings, &wanted),
        false => Vec::new(),
    };
    if arguments.json {
        terminal::print_json(&to_json(&wanted, &findings, &verdicts))?;
    } else {
        terminal::print(text(&wanted, &findings, &verdicts, arguments.all));
    }
    Ok(match worst(&findings) {
        State::Ok | State::Unknown => Exit::Fine,
        State::Advice => Exit::ADVICE,
        State::Blocks => Exit::BLOCKS,
    })
}

/// What the description asks of the machine.
fn wanted(arguments: &DoctorArguments) -> anyhow::Result<Requirements> {
    let mut wanted = match &arguments.system {
        None => Requirements::default(),
        Some(path) => {
            let source = Source::load(path, arguments.json, Trust::AsKnown)?;
            let protected = source.system.run.protected;
            let plan = source.plan(&source.system, protected)?;
            match &arguments.host {
                None => Requirements::of_all(&source.system, &plan),
                Some(host) => Requirements::of_host(&source.system, &plan, host)
                    .map_err(|error| WrongArgument(format!("--host: {error}")))?,
            }
        }
    };
    wanted.interface.clone_from(&arguments.interface);
    Ok(wanted)
}

fn facts(arguments: &DoctorArguments) -> anyhow::Result<Facts> {
    if let Some(path) = &arguments.facts {
        return Facts::from_json(&read(path)?).with_context(|| path.display().to_string());
    }
    let machine = match &arguments.root {
        None => Machine::this(),
        Some(root) if root.is_dir() => Machine::below(root),
        Some(root) => {
            let why = format!("--root: there is no directory {}", root.display());
            return Err(WrongArgument(why).into());
        }
    };
    let facts = Facts::collect(&machine, arguments.pid);
    if let Some(Fact::Unknown(why)) = &facts.process {
        return Err(WrongArgument(format!("--pid: {why}")).into());
    }
    if let Some(path) = &arguments.save {
        let text = facts.to_json() + "\n";
        output::write_files(&[(path, text)])?;
    }
    Ok(facts)
}

fn read(path: &Path) -> anyhow::Result<String> {
    source::read(path).map_err(anyhow::Error::msg)
}

fn scripts(paths: &[PathBuf], wanted: &Requirements) -> anyhow::Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for path in paths {
        findings.extend(lint(&path.display().to_string(), &read(path)?, Some(wanted)));
    }
    Ok(findings)
}

/// How many columns explanations take.
const WIDTH: usize = 96;
/// And how far they are indented.
const INDENT: &str = "        ";

/// What a person reads: a table, what to do about each finding, the verdicts.
fn text(
    wanted: &Requirements,
    findings: &[Finding],
    verdicts: &[Verdict<'_>],
    all: bool,
) -> String {
    let mut grid = grid(&["area", "what", "", "state", "value", "wanted"]);
    for finding in findings.iter().filter(|finding| all || finding.state != State::Ok) {
        grid.add_row([
            finding.check.area.to_string(),
            finding.check.what.to_owned(),
            finding.subject.clone().unwrap_or_default(),
            finding.state.to_string(),
            finding.value.clone(),
            finding.wanted.clone(),
        ]);
    }
    let mut parts = Vec::new();
    if grid.row_count() > 0 {
        parts.push(ruled(&grid));
    }
    for state in [State::Blocks, State::Advice] {
        let those = findings.iter().filter(|finding| finding.state == state);
        parts.extend(those.map(explained));
    }
    let unseen = findings.iter().filter(|finding| finding.state == State::Unknown);
    parts.extend(unseen.map(|finding| {
        let because = wrapped(&format!("because: {}", finding.value));
        format!("{:<8}{}\n{because}", finding.state.to_string(), finding.name())
    }));
    let fine = findings.iter().filter(|finding| finding.state == State::Ok).count();
    let shown = if all || fine == 0 { "" } else { "; --all shows them" };
    parts.push(format!("{fine} of {} are as they should be{shown}.", findings.len()));
    if !verdicts.is_empty() {
        parts.push(guarantees(wanted, verdicts));
    }
    parts.join("\n\n")
}

fn explained(finding: &Finding) -> String {
    let check = finding.check;
    let reboot = if check.reboot { " (needs a reboot)" } else { "" };
    let why = wrapped(&format!("why: {}", check.why));
    let fix = wrapped(&format!("fix: {}{reboot}", finding.fix));
    format!("{:<8}{}\n{why}\n{fix}", finding.state.to_string(), finding.name())
}

/// Lines of at most [`WIDTH`] columns, indented.
fn wrapped(text: &str) -> String {
    let mut lines = vec![String::from(INDENT)];
    for word in text.split_whitespace() {
        let columns = lines.last().map_or(0, |line| line.chars().count());
        let is_first = columns == INDENT.len();
        match lines.last_mut().filter(|_| is_first || columns + 1 + word.chars().count() <= WIDTH) {
            Some(line) => {
                line.push_str(if is_first { "" } else { " " });
                line.push_str(word);
            }
            None => lines.push(format!("{INDENT}{word}")),
        }
    }
    lines.join("\n")
}

const fn kind(kind: GuaranteeKind) -> &'static str {
    match kind {
        GuaranteeKind::Channel => "channel",
        GuaranteeKind::Chain => "chain",
        GuaranteeKind::Program => "program",
    }
}

/// What the state of a finding means for the guarantee that it affects.
const fn verdict(state: State) -> &'static str {
    match state {
        State::Ok => "carried",
        State::Unknown => "not known",
        State::Advice => "weak",
        State::Blocks => "not carried",
    }
}

/// How many findings of one state a verdict names.
const NAMED: usize = 4;

fn guarantees(wanted: &Requirements, verdicts: &[Verdict<'_>]) -> String {
    let mut grid = grid(&["guarantee", "", "of", "verdict", "because of"]);
    for one in verdicts {
        let worst: Vec<_> = one.against.iter().filter(|f| f.state == one.state).collect();
        let mut names: Vec<String> = worst.iter().take(NAMED).map(|f| f.name()).collect();
        if worst.len() > NAMED {
            names.push(format!("{} more", worst.len() - NAMED));
        }
        grid.add_row([
            kind(one.guarantee.kind).to_owned(),
            one.guarantee.name.clone(),
            one.guarantee.what.clone(),
            verdict(one.state).to_owned(),
            names.join(", "),
        ]);
    }
    format!("Can this machine keep the guarantees of {}?\n{}", wanted.system, ruled(&grid))
}

fn to_json(wanted: &Requirements, findings: &[Finding], verdicts: &[Verdict<'_>]) -> Value {
    let of_finding = |finding: &Finding| {
        let check = finding.check;
        let seen = finding.state != State::Unknown;
        json!({
            "check": check.id,
            "area": check.area,
            "what": check.what,
            "subject": finding.subject,
            "state": finding.state,
            "value": seen.then_some(&finding.value),
            "unknown_because": (!seen).then_some(&finding.value),
            "wanted": finding.wanted,
            "why": check.why,
            "fix": finding.fix,
            "reboot": check.reboot,
            "affects": check.against,
            // The old name of `affects`, which version 1 keeps.
            "against": check.against,
        })
    };
    let of_verdict = |one: &Verdict<'_>| {
        let affects: Vec<_> = one.against.iter().map(|finding| finding.name()).collect();
        json!({
            "kind": kind(one.guarantee.kind),
            "name": one.guarantee.name,
            "promise": one.guarantee.what,
            "verdict": verdict(one.state),
            "rests_on": one.guarantee.rests_on,
            "affected_by": affects,
            "against": affects,
        })
    };
    json!({
        "format": "onbeat-doctor",
        "version": 1,
        "system": (!wanted.is_general()).then_some(&wanted.system),
        "state": worst(findings),
        "findings": findings.iter().map(of_finding).collect::<Vec<_>>(),
        "promises": verdicts.iter().map(of_verdict).collect::<Vec<_>>(),
    })
}
