//! What a C program carries that is linked with the static library: no more than it needs.

use onbeat_testkit::{library, root};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The most octets of a stripped program: 1 MB.
const OCTETS_MAX: u64 = 1_000_000;

/// Crates that the library may not even contain: languages, the engine, the run's side, the
/// kernel's configuration.
const CRATES: [&str; 11] = [
    "netlink_packet_core",
    "netlink_packet_route",
    "onbeat_bounds",
    "onbeat_description",
    "onbeat_machine",
    "onbeat_measure",
    "onbeat_net",
    "onbeat_run",
    "onbeat_timing",
    "toml",
    "tree_sitter",
];

/// Crates that types of the library are prepared for, and no program has anything of.
const UNUSED: [&str; 3] = ["schemars", "serde", "serde_json"];

/// The parsers in C that come with one of them.
const FUNCTIONS: [&str; 2] = ["ts_parser_new", "tree_sitter_c"];

fn checked(command: &mut Command) -> Vec<u8> {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}");
    output.stdout
}

/// A program of the first example, which the README runs.
fn program(name: &str, directory: &Path, flags: &[&str]) -> PathBuf {
    let to = directory.join(name);
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-O2", "-I"]).arg(root().join("crates/capi/include")).args(flags);
    cc.arg(root().join(format!("examples/01-two-hosts/programs/{name}.c"))).arg(library());
    checked(cc.args(["-lpthread", "-ldl", "-lm", "-o"]).arg(&to));
    to
}

/// Those of these crates, and of `FUNCTIONS`, that symbols are of. Rust's have the crate's name
/// with its length before it.
fn foreign(symbols: &str, crates: &[&'static str]) -> Vec<&'static str> {
    let has = |part: &str| symbols.lines().any(|symbol| symbol.contains(part));
    let crates = crates.iter().filter(|name| has(&format!("{}{name}", name.len())));
    crates.chain(FUNCTIONS.iter().filter(|name| has(name))).copied().collect()
}

fn symbols(file: &Path) -> String {
    let listed = checked(Command::new("nm").args(["--defined-only"]).arg(file));
    String::from_utf8(listed).expect("names")
}

#[test]
fn a_program_has_nothing_of_languages_the_engine_or_the_runs_side() {
    let directory = tempfile::tempdir().expect("a directory");
    for name in ["talker", "listener"] {
        let found = symbols(&program(name, directory.path(), &["-Wl,--gc-sections"]));
        assert!(found.contains(" onbeat_start") && found.contains("14onbeat_runtime"), "{name}");
        assert_eq!(foreign(&found, &[&CRATES[..], &UNUSED].concat()), [""; 0], "{name}");
    }
    // Nor can any other program have: this is all that the library has.
    let all = symbols(&library());
    assert!(all.contains(" onbeat_open_interface"));
    assert_eq!(foreign(&all, &CRATES), [""; 0], "the library");
}

#[test]
fn symbols_of_what_no_program_needs_are_found() {
    let engine = "_ZN10onbeat_net6engine6Engine7advance17h0123456789abcdefE";
    for (symbol, found) in [
        (engine, &["onbeat_net"][..]),
        ("_RNvNtCs1234_4toml2de5parse", &["toml"]),
        ("0000000000001234 T ts_parser_new", &["ts_parser_new"]),
        ("_RNvNtCs1234_14onbeat_runtime4wire5write", &[]),
        ("_ZN4core4sync6atomic9AtomicU3210atomloader", &[]),
    ] {
        assert_eq!(foreign(symbol, &CRATES), found, "{symbol}");
    }
}

#[test]
fn a_stripped_program_has_at_most_a_megabyte() {
    let directory = tempfile::tempdir().expect("a directory");
    for name in ["talker", "listener"] {
        let program = program(name, directory.path(), &["-Wl,--gc-sections", "-s"]);
        let octets = program.metadata().expect("the program").len();
        println!("{name}: {octets} octets");
        assert!(octets <= OCTETS_MAX, "{name} has {octets} octets, {OCTETS_MAX} at most");
    }
}
