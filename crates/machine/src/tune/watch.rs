//! Keeping a tune in force: drivers spread their interrupts again when an interface comes up, and
//! other programs have settings of their own.

use super::edge::Edge;
use super::journal::{Journal, JournalError};
use super::plan::{Requirement, irq_changes};
use super::run::{Event, State, TuneError, one_more, verify};
use super::snapshot::{ONLINE, irqs};
use std::collections::BTreeSet;

/// Looks once, and makes again what has changed; interrupts that are new get their processors.
/// `failed` has what could not be made again, which is told once. Gives whether a tune is in force.
///
/// # Errors
///
/// The journal cannot be read or written.
pub fn watch_once(
    edge: &Edge,
    wish: &Requirement,
    failed: &mut BTreeSet<u32>,
    tell: &mut dyn FnMut(Event<'_>),
) -> Result<bool, TuneError> {
    let mut journal = match Journal::open(edge.machine()) {
        // Somebody else is at work: the next look will show.
        Err(JournalError::Locked(_)) => return Ok(true),
        journal => journal?,
    };
    let all = verify(edge, journal.records())?;
    if all.is_empty() {
        return Ok(false);
    }
    for status in all.iter().filter(|status| status.state == State::Drifted) {
        let change = &status.change;
        // What went with its interface or its driver may come back.
        if status.now.is_none() && change.old.is_some() {
            continue;
        }
        let set = edge.set(&change.target, &change.new);
        let now = edge.get(&change.target);
        let again = now.is_ok_and(|now| change.target.same(&now, &change.new));
        match (again, set) {
            (true, _) => {
                failed.remove(&change.change);
                tell(Event::Again(&change.what));
            }
            (false, set) if failed.insert(change.change) => {
                let why = set.err().map_or("it changes back at once".to_owned(), |e| e.to_string());
                tell(Event::Failed(&change.what, &why));
            }
            _ => {}
        }
    }
    let online = edge.machine().cpus(ONLINE).unwrap_or_default();
    for change in irq_changes(&irqs(edge.machine()), &online.without(&wish.cores)) {
        one_more(edge, &mut journal, &change, tell)?;
    }
    Ok(true)
}
