//! Whole verbs on spoilt directories, in a jail: what was found once, and some of what seeds draw.
//! `cargo run -p xtask -- hunt verbs` looks on with fresh seeds and writes what it finds below
//! `tests/found_verbs`.

use crate::common::root;
use onbeat_hunt::verbs::{Case, Corpus, Jail, VERBS};
use onbeat_testkit::{Need, not_run};
use std::collections::BTreeSet;
use std::path::Path;

/// Cases of each verb, from a fixed seed on.
const CASES: u64 = 12;
const SEED: u64 = 16_000;

/// The command, and a jail if this machine allows one.
fn jail() -> Option<(&'static Path, Jail)> {
    let onbeat = Path::new(env!("CARGO_BIN_EXE_onbeat"));
    match Jail::new(onbeat, root()) {
        Ok(jail) => Some((onbeat, jail)),
        Err(error) => {
            not_run(Need::Machine, error);
            None
        }
    }
}

#[test]
fn what_was_found_once_is_gone() {
    let Some((_, jail)) = jail() else { return };
    let found = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/found_verbs");
    let mut faults = Vec::new();
    for entry in found.read_dir().into_iter().flatten().flatten() {
        let text = std::fs::read_to_string(entry.path()).expect("a case");
        let case = Case::from_json(&text).expect("a case");
        let (_, of_this) = jail.run(&case).expect("the machine works");
        faults.extend(of_this.iter().map(|f| format!("{}: {f}", entry.path().display())));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn no_verb_touches_a_canary() {
    let Some((onbeat, jail)) = jail() else { return };
    let corpus = Corpus::make(onbeat, root()).expect("a corpus");
    let mut ends = BTreeSet::new();
    for verb in VERBS {
        for seed in SEED..SEED + CASES {
            let case = Case::draw(&corpus, verb, seed);
            let (code, faults) = jail.run(&case).expect("the machine works");
            let faults: Vec<_> = faults.iter().map(ToString::to_string).collect();
            assert!(faults.is_empty(), "{}, seed {seed}: {}", verb.name, faults.join("\n"));
            ends.insert((verb.name, code));
        }
    }
    // What is refused at once tests little: most verbs take some, and refuse some.
    let fine = VERBS.iter().filter(|verb| ends.contains(&(verb.name, 0))).count();
    assert!(fine * 2 > VERBS.len() && ends.len() > VERBS.len() + 5, "{ends:?}");
}
