//! The C ABI lasts: what programs that were compiled earlier, or for a later library, rely on.

mod common;

use common::TestSystem;
use std::path::Path;
use std::process::Command;

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
