//! The order of reactions at one tag: levels as the runtime has them, then the order of
//! declaration. A cycle has no order, and is an error.

use super::codes;
use super::reactions::Draft;
use crate::Sink;
use onbeat_model::diagnostic::Diagnostic;

/// How many reactions of a cycle are named.
const NAMED: usize = 16;

/// The new position of each draft: federate by federate, by level and declaration. None if there is
/// a cycle, which is reported.
pub(in crate::lf) fn order(drafts: &[Draft], sink: &mut Sink) -> Option<Vec<usize>> {
    let levels = levels(drafts, sink)?;
    let mut sorted: Vec<usize> = (0..drafts.len()).collect();
    sorted.sort_by_key(|at| (drafts[*at].federate, levels[*at], *at));
    let mut positions = vec![0; drafts.len()];
    for (position, at) in sorted.into_iter().enumerate() {
        positions[at] = position;
    }
    Some(positions)
}

/// The most reactions before each one at its tag.
fn levels(drafts: &[Draft], sink: &mut Sink) -> Option<Vec<usize>> {
    let mut followers: Vec<Vec<usize>> = vec![Vec::new(); drafts.len()];
    let mut waiting: Vec<usize> = drafts.iter().map(|draft| draft.after.len()).collect();
    for (at, draft) in drafts.iter().enumerate() {
        for before in &draft.after {
            followers[*before].push(at);
        }
    }
    let mut levels = vec![0; drafts.len()];
    let mut ready: Vec<usize> = (0..drafts.len()).filter(|at| waiting[*at] == 0).collect();
    let mut done = 0;
    while let Some(at) = ready.pop() {
        done += 1;
        for follower in &followers[at] {
            levels[*follower] = levels[*follower].max(levels[at] + 1);
            waiting[*follower] -= 1;
            if waiting[*follower] == 0 {
                ready.push(*follower);
            }
        }
    }
    if done == drafts.len() {
        return Some(levels);
    }
    report(drafts, &waiting, sink);
    None
}

/// Names one cycle among the reactions that still wait.
fn report(drafts: &[Draft], waiting: &[usize], sink: &mut Sink) {
    let Some(first) = (0..drafts.len()).find(|at| waiting[*at] > 0) else { return };
    let mut path = vec![first];
    let mut seen = vec![false; drafts.len()];
    seen[first] = true;
    // Each waits for one that waits, so going back ends where it has been.
    let mut at = first;
    let cycle = loop {
        let Some(before) = drafts[at].after.iter().copied().find(|at| waiting[*at] > 0) else {
            return;
        };
        if seen[before] {
            let start = path.iter().position(|at| *at == before).unwrap_or(0);
            break &path[start..];
        }
        seen[before] = true;
        path.push(before);
        at = before;
    };
    let mut names: Vec<&str> =
        cycle.iter().rev().take(NAMED).map(|at| drafts[*at].path.as_str()).collect();
    if cycle.len() > NAMED {
        names.push("…");
    }
    names.push(names[0]);
    let message = format!("reactions wait for each other at one tag: {}", names.join(" → "));
    let last = &drafts[cycle[cycle.len() - 1]];
    let mut wrong =
        Diagnostic::error(codes::CYCLE, message, last.origin, "this reaction waits for itself");
    for at in cycle.iter().rev().skip(1).take(NAMED) {
        wrong = wrong.related(drafts[*at].origin, "through this one");
    }
    sink.push(wrong.help("add `after` to a connection between them, or reorder the reactions"));
}
