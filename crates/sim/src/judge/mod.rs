//! Holds one run to everything that must be true of it, whatever its programs did. What the
//! programs wrote down themselves is set beside what the command reports.

mod books;
mod conduct;
mod guarantees;
mod log;
mod schema;

use crate::system::DrawnSystem;
use log::Account;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;

pub use schema::violations;

/// What of a run is not as it must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Which invariant: the name of one of [`INVARIANTS`].
    pub invariant: &'static str,
    /// For a person.
    pub what: String,
}

/// What must be true of every system, by name.
pub const INVARIANTS: [(&str, &str); 12] = [
    ("ends", "every command ends, within its limits of time"),
    ("sound", "no command panics or dies by a signal"),
    ("exit", "the exit code is one that fits what the programs did"),
    ("blame", "a run that ends early names a program that misbehaved"),
    ("left", "no process, control group or file is left over"),
    ("books", "each message is somewhere, and every figure counts the same messages"),
    ("order", "messages of a channel arrive in order"),
    ("time", "time goes forward, and no call returns before its time"),
    ("rate", "no talker exceeds its declared rate"),
    ("guarantee", "no latency is below physics, or above a bound where nothing broke its premises"),
    ("again", "the same seed gives the same results, to the octet"),
    ("agree", "the verbs agree about a description, and JSON is of its schema"),
];

impl Finding {
    pub(crate) fn new(invariant: &'static str, what: impl Into<String>) -> Self {
        let known = INVARIANTS.iter().any(|(name, _)| *name == invariant);
        assert!(known, "{invariant} is an invariant");
        Self { invariant, what: what.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.invariant, self.what)
    }
}

/// What a run of a system left.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// Its exit code.
    pub code: i32,
    /// What it printed as JSON.
    pub results: Value,
    /// What it wrote on standard error.
    pub said: String,
    /// `messages.csv`.
    pub messages: String,
    /// What each program wrote down.
    pub logs: BTreeMap<String, String>,
}

/// A line of `messages.csv`. Times are in nanoseconds, by the clocks that the file says.
#[derive(Clone, Debug)]
struct Row {
    channel: String,
    listener: String,
    capture: i64,
    send: Option<i64>,
    arrive: Option<i64>,
    receive: Option<i64>,
    latency: Option<i64>,
    late: bool,
    duplicate: bool,
    lost: bool,
}

/// What is being judged.
struct Case<'a> {
    system: &'a DrawnSystem,
    evidence: &'a Evidence,
    /// The one run of the results.
    run: &'a Value,
    rows: Vec<Row>,
    logs: BTreeMap<&'a str, Account>,
    findings: Vec<Finding>,
}

/// All that is wrong with a run.
pub fn judge(system: &DrawnSystem, evidence: &Evidence) -> Vec<Finding> {
    let runs = list(&evidence.results["runs"]);
    let [run] = runs else {
        return vec![Finding::new("agree", format!("{} runs in the results", runs.len()))];
    };
    let rows: Option<Vec<Row>> = evidence.messages.lines().skip(1).map(row).collect();
    let Some(rows) = rows else {
        return vec![Finding::new("agree", "a line of messages.csv is not of its form")];
    };
    let logs = evidence.logs.iter().map(|(name, text)| (name.as_str(), Account::read(text)));
    let logs = logs.collect();
    let mut case = Case { system, evidence, run, rows, logs, findings: Vec::new() };
    case.conduct();
    case.books();
    case.guarantees();
    case.findings
}

fn row(line: &str) -> Option<Row> {
    let fields: Vec<&str> = line.split(',').collect();
    let at = |n: usize| fields.get(n)?.parse::<i64>().ok();
    let flag = |n: usize| fields.get(n).is_some_and(|field| *field == "1");
    Some(Row {
        channel: (*fields.first()?).to_owned(),
        listener: (*fields.get(1)?).to_owned(),
        capture: at(3)?,
        send: at(4),
        arrive: at(5),
        receive: at(6),
        latency: at(7),
        late: flag(11),
        duplicate: flag(12),
        lost: flag(13),
    })
}

impl Case<'_> {
    fn find(&mut self, invariant: &'static str, what: impl Into<String>) {
        self.findings.push(Finding::new(invariant, what));
    }

    /// Whether the run lasted as long as it was to.
    fn is_complete(&self) -> bool {
        self.run["ended"] == "complete"
    }

    /// The actors on a host.
    fn actors_on(&self, host: &str) -> impl Iterator<Item = &str> {
        self.system.actors.iter().filter(move |a| a.host == host).map(|a| a.name.as_str())
    }

    /// Whether any of the actors on a host speaks the protocol as it likes.
    fn is_rogue(&self, host: &str) -> bool {
        let rogue = |name: &str| self.logs.get(name).is_none_or(|log| log.misdeed.is_some());
        let mut actors = self.system.actors.iter().filter(|a| a.host == host);
        actors.any(|actor| rogue(&actor.name) || conduct::rogue(actor).is_some())
    }

    /// Whether some clock is set, or may be: then readings of a clock need not go forward.
    fn clocks_jump(&self) -> bool {
        crate::system::clocks_jump(&self.system.description)
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
