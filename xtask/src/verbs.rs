//! `hunt verbs`: whole verbs of the command on spoilt directories, in a jail.

use crate::hunt::{Request, on_all_processors};
use anyhow::{Context, Result, ensure};
use onbeat_hunt::verbs::{Case, Corpus, Fault, Jail, VERBS};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Where small cases with a fault are written, below the repository.
const FOUND: &str = "crates/cli/tests/found_verbs";

/// Cases that are tried to make one small.
const REDUCE_TRIES: usize = 300;

/// What was seen of all cases.
#[derive(Default)]
struct Seen {
    /// How often verbs ended with which code.
    ends: BTreeMap<&'static str, BTreeMap<i32, u64>>,
    /// Faults that are told and kept: of many alike the first.
    known: BTreeSet<String>,
    faults: u64,
}

/// Tries verbs, or one of them; how many faults that shows.
pub(crate) fn verbs(
    root: &Path,
    request: &Request,
    onbeat: &Path,
    seed: u64,
    over: &(dyn Fn() -> bool + Sync),
) -> Result<u64> {
    let wanted: Vec<_> = (VERBS.iter())
        .filter(|verb| request.verb.as_ref().is_none_or(|name| name == verb.name))
        .collect();
    ensure!(
        !wanted.is_empty(),
        "verbs: {}",
        VERBS.iter().map(|verb| verb.name).collect::<Vec<_>>().join(", ")
    );
    let corpus = Corpus::make(onbeat, root)?;
    let jail = Jail::new(onbeat, root)?;
    let (next, seen) = (AtomicU64::new(0), Mutex::new(Seen::default()));
    let work = || -> Result<()> {
        while !over() {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= request.count {
                break;
            }
            let verb = wanted[(number % wanted.len() as u64) as usize];
            let case = Case::draw(&corpus, verb, seed + number);
            let (code, faults) = jail.run(&case)?;
            *seen
                .lock()
                .expect("no thread panicked")
                .ends
                .entry(verb.name)
                .or_default()
                .entry(code)
                .or_default() += 1;
            for fault in faults {
                let is_new = {
                    let mut seen = seen.lock().expect("no thread panicked");
                    seen.faults += 1;
                    seen.known.insert(like(&case, &fault))
                };
                if is_new {
                    println!("seed {}, {}: {fault}", seed + number, verb.name);
                    let place = keep(root, &jail, case.clone(), seed + number, &fault, request)?;
                    println!("  written to {}", place.display());
                }
            }
        }
        Ok(())
    };
    on_all_processors(work)?;
    let seen = seen.into_inner().expect("no thread panicked");
    for (verb, ends) in &seen.ends {
        println!("hunt: {verb}: {} cases, by exit code {ends:?}", ends.values().sum::<u64>());
    }
    println!("hunt: from seed {seed} on, {} faults", seen.faults);
    Ok(seen.faults)
}

/// What faults that are alike have in common.
fn like(case: &Case, fault: &Fault) -> String {
    let line = fault.what.lines().next().unwrap_or_default();
    let line: String = line.chars().filter(|c| !c.is_ascii_digit()).take(60).collect();
    format!("{} {} {line}", case.verb, fault.kind)
}

/// Makes a case small as long as it has a fault of the kind, and writes it where tests find it.
fn keep(
    root: &Path,
    jail: &Jail,
    case: Case,
    seed: u64,
    fault: &Fault,
    request: &Request,
) -> Result<PathBuf> {
    let fails = |case: &Case| {
        let faults = jail.run(case).map_or(Vec::new(), |(_, faults)| faults);
        faults.iter().any(|found| like(case, found) == like(case, fault))
    };
    let small = match request.as_drawn || fault.kind == "time" {
        true => case,
        false => case.reduced(REDUCE_TRIES, fails),
    };
    let place = root.join(FOUND);
    std::fs::create_dir_all(&place).with_context(|| place.display().to_string())?;
    let place = place.join(format!("{}-{seed}.json", small.verb));
    std::fs::write(&place, small.to_json())?;
    Ok(place)
}
