//! A case that shows a difference, made smaller as long as it shows one.

use super::case::Case;
use super::compare::{Coverage, compare};
use super::simulator::Simulator;

/// The smallest case that is found, and its difference.
pub(super) fn shrink(
    mut case: Case,
    mut difference: String,
    simulator: &mut Simulator,
) -> (Case, String) {
    let mut tries = |smaller: &Case| {
        let run = simulator.run(smaller);
        compare(smaller, &run, &mut Coverage::default()).err()
    };
    loop {
        let mut shrunk = false;
        for smaller in smaller(&case) {
            if let Some(found) = tries(&smaller) {
                (case, difference, shrunk) = (smaller, found, true);
                break;
            }
        }
        if !shrunk {
            return (case, difference);
        }
    }
}

/// Cases that are smaller in one thing each, the largest steps first.
fn smaller(case: &Case) -> Vec<Case> {
    let mut cases = Vec::new();
    let mut with = |change: &dyn Fn(&mut Case)| {
        let mut smaller = case.clone();
        change(&mut smaller);
        cases.push(smaller);
    };
    for cycles in [case.cycles / 2, case.cycles * 9 / 10] {
        if cycles > 20 {
            with(&|case| case.cycles = cycles);
        }
    }
    for parts in [2, 4, 8] {
        for part in 0..parts {
            let of = |length: usize| part * length / parts..(part + 1) * length / parts;
            with(&|case| drop(case.bursts.drain(of(case.bursts.len()))));
            with(&|case| drop(case.actions.drain(of(case.actions.len()))));
        }
    }
    for index in 0..case.bursts.len() {
        with(&|case| drop(case.bursts.remove(index)));
    }
    for index in 0..case.actions.len() {
        with(&|case| drop(case.actions.remove(index)));
    }
    for index in 0..case.program.words.len() {
        if case.program.words[index] != 0 {
            with(&|case| case.program.words[index] = 0);
        }
    }
    // What is removed has to make it smaller.
    let size = |case: &Case| {
        let nops = case.program.words.iter().filter(|word| **word == 0).count() as u64;
        case.cycles + (case.bursts.len() + case.actions.len()) as u64 * 1_000 + 1_000 - nops
    };
    cases.retain(|smaller| size(smaller) < size(case));
    cases
}
