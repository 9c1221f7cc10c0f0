//! The C ABI lasts: what programs that were compiled earlier, or for a later library, rely on.

mod common;

use common::{TestSystem, root};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

/// The header.
fn header() -> String {
    std::fs::read_to_string(root().join("crates/capi/include/onbeat.h")).expect("onbeat.h")
}

/// Builds one of `tests/programs/abi` as `build/NAME` and runs it, outside of a run; what it says.
fn says(name: &str) -> String {
    let system = TestSystem::new("");
    system.program(&format!("abi/{name}.c"), name);
    said(&system.path().join("build").join(name))
}

fn said(program: &Path) -> String {
    let mut command = Command::new(program);
    for name in ["ONBEAT_FABRIC", "ONBEAT_INTERFACE", "ONBEAT_SYSTEM"] {
        command.env_remove(name);
    }
    let output = command.output().expect("the program runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {}\n{errors}", program.display(), output.status);
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[test]
fn header_and_library_say_cargos_version() {
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(says("version"), format!("{version} {version}\n"));
}

/// The numbers of the header's `onbeat_status`.
fn statuses() -> BTreeSet<i32> {
    let header = header();
    let (_, text) = header.split_once("typedef enum onbeat_status {").expect("onbeat_status");
    let (text, _) = text.split_once('}').expect("its end");
    let named = text.lines().filter_map(|line| line.trim().strip_suffix(',')?.split_once(" = "));
    named.map(|(_, number)| number.parse().expect("a number")).collect()
}

#[test]
fn strerror_has_a_text_of_its_own_for_every_status_and_one_for_all_other_numbers() {
    let said = says("strerror");
    let texts: BTreeMap<i32, &str> = said
        .lines()
        .map(|line| line.split_once(' ').expect("a number and a text"))
        .map(|(number, text)| (number.parse().expect("a number"), text))
        .collect();
    assert_eq!(texts.keys().copied().collect::<BTreeSet<_>>(), statuses(), "{said}");
    let different: BTreeSet<_> = texts.values().collect();
    assert_eq!(different.len(), texts.len(), "{said}");
}
