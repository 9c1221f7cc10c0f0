//! The weakenings of the bounds are still of the analysis as it is. Whether tests notice them takes
//! long: `cargo run -p xtask -- weaken`.

use xtask::{WEAKENINGS, repository_root, weaken};

#[test]
fn every_expression_that_is_weakened_is_in_its_file_exactly_once() {
    let root = repository_root();
    let lost: Vec<_> = WEAKENINGS.iter().filter_map(|w| weaken::source(&root, w).err()).collect();
    assert!(lost.is_empty(), "{lost:#?}");
    assert!(WEAKENINGS.iter().all(|w| w.expression != w.weaker));
}

#[test]
fn every_file_with_formulas_is_weakened() {
    let directory = repository_root().join("crates/bounds/src/analysis");
    let files = directory.read_dir().expect("the analysis").map(|entry| entry.unwrap().file_name());
    // That one only words warnings.
    for file in files.filter(|file| file != "mod.rs" && file != "limits.rs") {
        assert!(WEAKENINGS.iter().any(|w| file == w.file), "{file:?} has no weakening");
    }
}
