//! The fuzz targets of `fuzz/`: each compiles with the workspace, and holds for files of the
//! repository, whole, cut off and edited. (`cargo fuzz` searches much further.)

#![allow(unused_attributes)] // targets are programs of their own: no_main

use onbeat_hunt::Dice;
use onbeat_testkit::root;
use std::path::Path;

#[path = "../../../fuzz/fuzz_targets/channels.rs"]
mod channels;
#[path = "../../../fuzz/fuzz_targets/description.rs"]
mod description;
#[path = "../../../fuzz/fuzz_targets/execution_times.rs"]
mod execution_times;
#[path = "../../../fuzz/fuzz_targets/federate.rs"]
mod federate;
#[path = "../../../fuzz/fuzz_targets/frame.rs"]
mod frame;
#[path = "../../../fuzz/fuzz_targets/gptp.rs"]
mod gptp;
#[path = "../../../fuzz/fuzz_targets/import.rs"]
mod import;
#[path = "../../../fuzz/fuzz_targets/integrity.rs"]
mod integrity;
#[path = "../../../fuzz/fuzz_targets/keys.rs"]
mod keys;
#[path = "../../../fuzz/fuzz_targets/lf.rs"]
mod lf;
#[path = "../../../fuzz/fuzz_targets/machines.rs"]
mod machines;
#[path = "../../../fuzz/fuzz_targets/manifest.rs"]
mod manifest;
#[path = "../../../fuzz/fuzz_targets/messages.rs"]
mod messages;
#[path = "../../../fuzz/fuzz_targets/mrp.rs"]
mod mrp;
#[path = "../../../fuzz/fuzz_targets/mrpd.rs"]
mod mrpd;
#[path = "../../../fuzz/fuzz_targets/netconf.rs"]
mod netconf;
#[path = "../../../fuzz/fuzz_targets/network.rs"]
mod network;
#[path = "../../../fuzz/fuzz_targets/network_code.rs"]
mod network_code;
#[path = "../../../fuzz/fuzz_targets/plan.rs"]
mod plan;
#[path = "../../../fuzz/fuzz_targets/protocol.rs"]
mod protocol;
#[path = "../../../fuzz/fuzz_targets/records.rs"]
mod records;
#[path = "../../../fuzz/fuzz_targets/segments.rs"]
mod segments;
#[path = "../../../fuzz/fuzz_targets/simulate.rs"]
mod simulate;
#[path = "../../../fuzz/fuzz_targets/source.rs"]
mod source;
#[path = "../../../fuzz/fuzz_targets/srp.rs"]
mod srp;
#[path = "../../../fuzz/fuzz_targets/station.rs"]
mod station;
#[path = "../../../fuzz/fuzz_targets/structs.rs"]
mod structs;
#[path = "../../../fuzz/fuzz_targets/tasks.rs"]
mod tasks;
#[path = "../../../fuzz/fuzz_targets/tcp.rs"]
mod tcp;
#[path = "../../../fuzz/fuzz_targets/timedc.rs"]
mod timedc;
#[path = "../../../fuzz/fuzz_targets/tune.rs"]
mod tune;

/// What `libfuzzer-sys` makes a program of is a function here. (Behind them: it is known by the
/// path that they use.)
#[macro_export]
macro_rules! fuzz_target {
    (|$input:ident: $type:ty| $body:block) => {
        pub(super) fn fuzz($input: $type) $body
    };
}

/// One target, on octets.
type Target = fn(&[u8]);

/// What a target wants, made of octets.
trait Input<'a> {
    fn of(octets: &'a [u8]) -> Self;
}

impl<'a> Input<'a> for &'a [u8] {
    fn of(octets: &'a [u8]) -> Self {
        octets
    }
}

impl<'a> Input<'a> for &'a str {
    fn of(octets: &'a [u8]) -> Self {
        let valid = std::str::from_utf8(octets).map_or_else(|wrong| wrong.valid_up_to(), str::len);
        std::str::from_utf8(&octets[..valid]).expect("valid so far")
    }
}

impl<'a> Input<'a> for (&'a str, &'a str) {
    fn of(octets: &'a [u8]) -> Self {
        let text = <&str>::of(octets);
        text.split_once('\0').unwrap_or((text, ""))
    }
}

fn targets() -> Vec<(&'static str, Target)> {
    vec![
        ("channels", |input| channels::fuzz(Input::of(input))),
        ("description", |input| description::fuzz(Input::of(input))),
        ("execution_times", |input| execution_times::fuzz(Input::of(input))),
        ("federate", |input| federate::fuzz(Input::of(input))),
        ("frame", |input| frame::fuzz(Input::of(input))),
        ("gptp", |input| gptp::fuzz(Input::of(input))),
        ("import", |input| import::fuzz(Input::of(input))),
        ("integrity", |input| integrity::fuzz(Input::of(input))),
        ("keys", |input| keys::fuzz(Input::of(input))),
        ("lf", |input| lf::fuzz(Input::of(input))),
        ("machines", |input| machines::fuzz(Input::of(input))),
        ("manifest", |input| manifest::fuzz(Input::of(input))),
        ("messages", |input| messages::fuzz(Input::of(input))),
        ("mrp", |input| mrp::fuzz(Input::of(input))),
        ("mrpd", |input| mrpd::fuzz(Input::of(input))),
        ("netconf", |input| netconf::fuzz(Input::of(input))),
        ("network", |input| network::fuzz(Input::of(input))),
        ("network_code", |input| network_code::fuzz(Input::of(input))),
        ("plan", |input| plan::fuzz(Input::of(input))),
        ("protocol", |input| protocol::fuzz(Input::of(input))),
        ("records", |input| records::fuzz(Input::of(input))),
        ("segments", |input| segments::fuzz(Input::of(input))),
        ("simulate", |input| simulate::fuzz(Input::of(input))),
        ("source", |input| source::fuzz(Input::of(input))),
        ("srp", |input| srp::fuzz(Input::of(input))),
        ("station", |input| station::fuzz(Input::of(input))),
        ("structs", |input| structs::fuzz(Input::of(input))),
        ("tasks", |input| tasks::fuzz(Input::of(input))),
        ("tcp", |input| tcp::fuzz(Input::of(input))),
        ("timedc", |input| timedc::fuzz(Input::of(input))),
        ("tune", |input| tune::fuzz(Input::of(input))),
    ]
}

/// Every so many files are taken, and each is edited so often.
const EVERY: usize = 9;
const EDITS: usize = 3;
/// The longest input: some targets take time that grows with its square.
const OCTETS_MAX: usize = 4096;

/// Descriptions, sources and models of the repository, in an order that is always the same.
fn files() -> Vec<Vec<u8>> {
    let mut paths = Vec::new();
    for directory in
        ["examples", "conformance", "crates/description/tests", "crates/network-code/tests"]
    {
        collect(&root().join(directory), &mut paths);
    }
    paths.sort();
    paths.iter().step_by(EVERY).map(|path| std::fs::read(path).expect("a file")).collect()
}

fn collect(directory: &Path, paths: &mut Vec<std::path::PathBuf>) {
    for entry in directory.read_dir().expect("a directory").flatten() {
        let path = entry.path();
        let ending = path.extension().and_then(|ending| ending.to_str());
        match path.is_dir() {
            true => collect(&path, paths),
            false
                if ending.is_some_and(|it| {
                    ["c", "csv", "graphml", "h", "lf", "nc", "toml"].contains(&it)
                }) =>
            {
                paths.push(path);
            }
            false => {}
        }
    }
}

/// Cut off, with some octets replaced and a part of it in another place.
fn edited(dice: &mut Dice, octets: &[u8]) -> Vec<u8> {
    let length = octets.len() as u64;
    let mut octets = octets[..dice.below(length + 1) as usize].to_vec();
    if octets.is_empty() {
        return octets;
    }
    for _ in 0..dice.below(4) {
        let at = dice.below(octets.len() as u64) as usize;
        octets[at] = dice.one(b"\0 \"'=[]{}();#09-\n\xff");
    }
    let from = dice.below(octets.len() as u64) as usize;
    let part = octets[from..].iter().copied().take(dice.below(64) as usize).collect::<Vec<_>>();
    let to = dice.below(octets.len() as u64) as usize;
    octets.splice(to..to, part);
    octets
}

fn inputs() -> Vec<Vec<u8>> {
    let mut dice = Dice::new(1);
    let mut inputs = Vec::new();
    for mut file in files() {
        file.truncate(OCTETS_MAX);
        inputs.extend((0..EDITS).map(|_| edited(&mut dice, &file)));
        inputs.push(file);
    }
    inputs.extend((0..64).map(|length| (0..length * 4).map(|_| dice.bits() as u8).collect()));
    inputs
}

#[test]
fn every_fuzz_target_holds_for_the_files_of_the_repository() {
    let inputs = inputs();
    assert!(inputs.len() > 100, "{} inputs", inputs.len());
    for (name, target) in targets() {
        for input in &inputs {
            let held = std::panic::catch_unwind(|| target(input));
            assert!(held.is_ok(), "{name}: {}", String::from_utf8_lossy(input));
        }
    }
}

#[test]
fn every_fuzz_target_is_here_and_a_program_of_its_package() {
    let package = root().join("fuzz");
    let manifest = std::fs::read_to_string(package.join("Cargo.toml")).expect("a manifest");
    let mut names: Vec<String> = package
        .join("fuzz_targets")
        .read_dir()
        .expect("a directory")
        .map(|entry| entry.expect("an entry").path())
        .map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned())
        .collect();
    names.sort();
    assert_eq!(targets().iter().map(|(name, _)| *name).collect::<Vec<_>>(), names);
    for name in names {
        let path = format!("fuzz_targets/{name}.rs");
        assert!(manifest.contains(&format!("path = \"{path}\"")), "{path} is no program");
        let text = std::fs::read_to_string(package.join(&path)).expect("a target");
        for word in text.split(|letter: char| !letter.is_alphanumeric() && letter != '_') {
            let is_listed = || manifest.contains(&format!("\n{} = ", word.replace('_', "-")));
            assert!(!word.starts_with("onbeat") || is_listed(), "{path} uses {word}");
        }
    }
}
