//! What must be drawn, sooner or later, and what a system has of it.

use crate::script::{ActorStep, MISDEEDS, ProtocolState, STEPS, each, name};
use crate::system::DrawnSystem;
use serde_json::Value;
use std::collections::BTreeSet;

/// Faults of a description, by the key that tells them apart.
const FAULTS: [&str; 5] = ["link", "errors_ppb", "node", "clock_step_ns", "babble"];

/// Mechanisms of a description: a table and a key of it, or the table alone.
const MECHANISMS: [(&str, &str); 26] = [
    ("bridge", ""),
    ("bridge", "cut_through"),
    ("bridge", "learning"),
    ("bridge", "shared_buffer_octets"),
    ("channel", ""),
    ("channel", "burst_messages"),
    ("channel", "vlan"),
    ("chain", ""),
    ("host", "clock"),
    ("host", "cores"),
    ("host", "stack_tx_ns"),
    ("host", "wakeup_ns"),
    ("noise", ""),
    ("port", "asynchronous"),
    ("port", "gates"),
    ("port", "idle_slope_bps"),
    ("port", "preemptable"),
    ("port", "vlans"),
    ("program", "cores"),
    ("program", "priority"),
    ("scenario", ""),
    ("stream", ""),
    ("stream", "policing"),
    ("stream", "regulator"),
    ("stream", "history"),
    ("stream", "trace"),
];

/// Tables of a description that there is one of, and a key.
const ONCE: [(&str, &str); 2] = [("synchronisation", "grandmaster"), ("synchronisation", "in_run")];

/// All that must be drawn, by name.
pub fn everything() -> BTreeSet<String> {
    let steps = STEPS.iter().map(|step| format!("step {step}"));
    let misdeeds = MISDEEDS.iter().map(|misdeed| format!("misdeed {misdeed}"));
    let stages = ProtocolState::ALL.iter().map(|stage| format!("stage {}", name(stage)));
    let faults = FAULTS.iter().map(|fault| format!("fault {fault}"));
    let mechanisms = MECHANISMS.iter().chain(&ONCE).map(|(table, key)| format!("{table} {key}"));
    let words =
        ["a scenario", "unprotected", "stations", "two programs on a host", "several threads"];
    let words = words.into_iter().map(str::to_owned);
    steps.chain(misdeeds).chain(stages).chain(faults).chain(mechanisms).chain(words).collect()
}

/// What of that a system has.
pub fn drawn(system: &DrawnSystem) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for actor in &system.actors {
        for steps in &actor.scripts {
            each(steps, &mut |step| {
                found.insert(format!("step {}", name(step)));
                if let ActorStep::Rogue { at, how } = step {
                    found.insert(format!("misdeed {}", name(how)));
                    found.insert(format!("stage {}", name(at)));
                }
            });
        }
        if actor.scripts.len() > 1 {
            found.insert("several threads".to_owned());
        }
        if system.actors.iter().any(|other| other.host == actor.host && other.name != actor.name) {
            found.insert("two programs on a host".to_owned());
        }
    }
    found.extend(system.scenario.iter().map(|_| "a scenario".to_owned()));
    found.extend(system.unprotected.then(|| "unprotected".to_owned()));
    let backend = system.description.root.get("run").map(|run| &run["backend"]);
    found.extend(backend.is_some_and(|it| it == "network-code").then(|| "stations".to_owned()));
    let tables = |key: &str| system.description.list(key);
    let faults = FAULTS.iter().filter(|key| tables("fault").iter().any(|f| !f[**key].is_null()));
    found.extend(faults.map(|fault| format!("fault {fault}")));
    for (table, key) in MECHANISMS {
        let has = |one: &Value| key.is_empty() || !one[key].is_null();
        if tables(table).iter().any(has) {
            found.insert(format!("{table} {key}"));
        }
    }
    for (table, key) in ONCE {
        let value = system.description.root.get(table).map(|one| &one[key]);
        if value.is_some_and(|value| !value.is_null() && *value != false) {
            found.insert(format!("{table} {key}"));
        }
    }
    found
}
