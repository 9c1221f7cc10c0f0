//! Plans and states of settings, for people and for machines.

use onbeat::clock::MonoTime;
use onbeat_machine::tune::{Plan, Record, Requirement, State, Status, Target, Value};
use onbeat_model::time::Span;
use onbeat_report::grid::{grid, ruled};
use serde_json::json;

/// The most characters of a value that are shown.
const SHOWN: usize = 44;

/// Changes as a table, then what the user should know.
pub(super) fn plan(plan: &Plan) -> String {
    let mut text = match plan.changes.is_empty() {
        true => "Nothing is to be changed.".to_owned(),
        false => {
            let mut grid = grid(&["setting", "where", "now", "then"]);
            for change in &plan.changes {
                let reboot = if change.reboot { " (after a reboot)" } else { "" };
                grid.add_row([
                    format!("{}{reboot}", change.what),
                    change.target.place(),
                    value(&change.target, &change.old),
                    value(&change.target, &change.new),
                ]);
            }
            ruled(&grid)
        }
    };
    for note in &plan.notes {
        text.push_str("\nnote: ");
        text.push_str(note);
    }
    if plan.changes.iter().any(|change| change.reboot) {
        text.push_str("\nnote: boot parameters need update-grub and a reboot");
    }
    text
}

/// A value on one line.
fn value(target: &Target, value: &Value) -> String {
    let Some(text) = value else { return "-".to_owned() };
    if matches!(target, Target::Document { .. }) {
        return "a file of ours".to_owned();
    }
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.chars().count() > SHOWN {
        true => line.chars().take(SHOWN - 1).chain(['…']).collect(),
        false => line,
    }
}

/// A plan for machines (docs/cli.md).
pub(super) fn plan_json(wish: &Requirement, plan: &Plan) -> String {
    let changes: Vec<_> = plan
        .changes
        .iter()
        .map(|change| {
            json!({
                "what": change.what,
                "target": change.target.place(),
                "old": change.old,
                "new": change.new,
                "may_refuse": change.may_refuse,
                "reboot": change.reboot,
                "commands": commands(&change.target),
            })
        })
        .collect();
    let document = json!({
        "format": "onbeat-tune-plan",
        "version": 1,
        "profile": wish.profile.as_str(),
        "cores": wish.cores.to_string(),
        "changes": changes,
        "boot": plan.boot,
        "notes": plan.notes,
    });
    format!("{document:#}")
}

/// The commands that make it, where it is made by commands.
fn commands(target: &Target) -> Vec<Vec<String>> {
    match target {
        Target::Qdiscs { interface, made } => made.commands(interface),
        Target::Vlan { interface, vlan } => vlan.setup(interface),
        _ => Vec::new(),
    }
}

fn state(state: &State) -> (&'static str, String) {
    match state {
        State::InForce => ("in-force", "in force".to_owned()),
        State::Drifted => ("drifted", "changed since".to_owned()),
        State::Ineffective(cpus) => ("ineffective", format!("in force, but used: {cpus}")),
        State::Gone => ("gone", "gone with the reboot".to_owned()),
        State::Unknown(why) => ("unknown", why.clone()),
    }
}

/// What is in force as a table.
pub(super) fn status(records: &[Record], all: &[Status], guarded: Option<bool>) -> String {
    let mut grid = grid(&["setting", "wanted", "now", "state"]);
    for one in all {
        grid.add_row([
            one.change.what.clone(),
            value(&one.change.target, &one.change.new),
            value(&one.change.target, &one.now),
            state(&one.state).1,
        ]);
    }
    let mut text = ruled(&grid);
    for (what, why) in refused(records) {
        text.push_str(&format!("\nrefused by the kernel: {what}: {why}"));
    }
    if let Some(left) = time_left(records) {
        text.push_str(&match guarded {
            Some(false) => "\nnot confirmed, and the process that would undo it is gone: \
                            `onbeat tune confirm` or `onbeat tune undo`"
                .to_owned(),
            _ => format!("\nnot confirmed: undone in {left} without `onbeat tune confirm`"),
        });
    }
    text
}

/// What is in force, for machines (docs/cli.md).
pub(super) fn status_json(records: &[Record], all: &[Status], guarded: Option<bool>) -> String {
    let settings: Vec<_> = all
        .iter()
        .map(|one| {
            json!({
                "what": one.change.what,
                "target": one.change.target.place(),
                "old": one.change.old,
                "wanted": one.change.new,
                "now": one.now,
                "state": state(&one.state).0,
            })
        })
        .collect();
    let refused: Vec<_> = refused(records)
        .into_iter()
        .map(|(what, why)| json!({ "what": what, "why": why }))
        .collect();
    let document = json!({
        "format": "onbeat-tune-status",
        "version": 1,
        "profile": last_tune(records).map(|tune| tune.profile),
        "settings": settings,
        "refused": refused,
        "unconfirmed_for_ns": time_left(records).map(Span::as_ns),
        "guarded": guarded,
    });
    format!("{document:#}")
}

/// The last tune of a journal.
struct Last<'a> {
    profile: &'a str,
    started_ns: i64,
    /// By when it is to be confirmed, if it is not.
    confirm_by_ns: Option<i64>,
}

fn last_tune(records: &[Record]) -> Option<Last<'_>> {
    let at = records.iter().rposition(|record| matches!(record, Record::Tune { .. }))?;
    let Record::Tune { profile, started_ns, confirm_by_ns, .. } = &records[at] else { return None };
    let confirmed = records[at..].contains(&Record::Confirmed);
    let confirm_by_ns = confirm_by_ns.filter(|_| !confirmed);
    Some(Last { profile, started_ns: *started_ns, confirm_by_ns })
}

/// When the tune began that waits to be confirmed, if one does: a process is to undo it.
pub(super) fn guarded(records: &[Record]) -> Option<i64> {
    last_tune(records).filter(|tune| tune.confirm_by_ns.is_some()).map(|tune| tune.started_ns)
}

/// Whether a tune waits to be confirmed.
pub(crate) fn waits(records: &[Record]) -> bool {
    guarded(records).is_some()
}

fn time_left(records: &[Record]) -> Option<Span> {
    let until = last_tune(records)?.confirm_by_ns?;
    Some((MonoTime::from_ns(until) - MonoTime::now()).max(Span::ZERO))
}

/// What the kernel refused in the last tune.
fn refused(records: &[Record]) -> Vec<(&str, &str)> {
    let begins = |record: &Record| matches!(record, Record::Tune { .. });
    let from = records.iter().rposition(begins).unwrap_or_default();
    let name = |number: u32| {
        records.iter().find_map(|record| match record {
            Record::Begin { change, what, .. } if *change == number => Some(what.as_str()),
            _ => None,
        })
    };
    records[from..]
        .iter()
        .filter_map(|record| match record {
            Record::Refused { change, why } => Some((name(*change)?, why.as_str())),
            _ => None,
        })
        .collect()
}
