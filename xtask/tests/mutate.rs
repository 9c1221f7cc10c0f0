//! The mutants of the bounds are still of the analysis as it is. Whether tests notice them takes
//! long: `cargo run -p xtask -- mutate`.

use xtask::{MUTANTS, mutate, repository_root};

#[test]
fn every_expression_that_is_mutated_is_in_its_file_exactly_once() {
    let root = repository_root();
    let lost: Vec<_> = MUTANTS.iter().filter_map(|w| mutate::source(&root, w).err()).collect();
    assert!(lost.is_empty(), "{lost:#?}");
    assert!(MUTANTS.iter().all(|w| w.expression != w.mutated));
}

#[test]
fn every_file_with_formulas_has_a_mutant() {
    let directory = repository_root().join("crates/bounds/src/analysis");
    let files = directory.read_dir().expect("the analysis").map(|entry| entry.unwrap().file_name());
    // That one only words warnings.
    for file in files.filter(|file| file != "mod.rs" && file != "limits.rs") {
        assert!(MUTANTS.iter().any(|mutant| file == mutant.file), "{file:?} has no mutant");
    }
}
