//! Chains: what is computed of random systems is held against what they do in virtual time, capture
//! by capture. Which capture comes out is followed: messages carry its number.
//!
//! `CHAINS_SYSTEMS=1000` tests more, `CHAINS_SEED=N` those of one run.

mod common;

#[path = "tfg_chains/generate.rs"]
mod generate;

use common::{number, onbeat};
use generate::{Chain, System};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// So many chains lie side by side in a run, each a system of its own.
const SIDE_BY_SIDE: usize = 12;
const DURATION_MS: u64 = 500;

/// What one chain did, in nanoseconds.
#[derive(Debug, Default)]
struct Measured {
    least: Option<i64>,
    most: Option<i64>,
    age: Option<i64>,
    reaction: Option<i64>,
    receipts: usize,
}

fn most(known: &mut Option<i64>, new: i64) {
    *known = Some(known.map_or(new, |known| known.max(new)));
}

/// When messages of each channel were captured, in order.
fn captures(directory: &Path) -> BTreeMap<String, Vec<i64>> {
    let text = std::fs::read_to_string(directory.join("messages.csv")).expect("messages.csv");
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().expect("a header").split(',').collect();
    let column = |name: &str| names.iter().position(|n| *n == name).expect("the column");
    let (channel, capture) = (column("channel"), column("capture_ns"));
    let mut found: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    for line in lines {
        let fields: Vec<&str> = line.split(',').collect();
        let at = fields[capture].parse().expect("a time");
        found.entry(fields[channel].to_owned()).or_default().push(at);
    }
    found
}

/// When a task's reads returned.
fn reads(directory: &Path, (program, task): &(String, String)) -> Vec<i64> {
    let path = directory.join(format!("{program}.csv"));
    let text = std::fs::read_to_string(path).expect("a trace");
    let fields = text.lines().skip(1).map(|line| line.split(',').collect::<Vec<_>>());
    let reads = fields.filter(|f| f[1] == task && f[2] == "read");
    reads.map(|f| f[0].parse().expect("a time")).collect()
}

/// Which captures came out, by chain, in order; 0 is none.
fn shown(said: &str) -> BTreeMap<String, Vec<usize>> {
    let mut found: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for line in said.lines() {
        let mut words = line.split_whitespace().rev();
        if let (Some(number), Some(name)) = (words.next(), words.next())
            && let Ok(number) = number.parse()
        {
            found.entry(name.to_owned()).or_default().push(number);
        }
    }
    found
}

/// Latency: from a capture to a read that gives it. Age: from a capture to the read after one that
/// gave it. Reaction: from a capture to the first read that gives a later one.
fn measured(captures: &[i64], reads: &[i64], shown: &[usize]) -> Measured {
    let mut found = Measured::default();
    let all: Vec<(usize, i64)> = shown.iter().copied().zip(reads.iter().copied()).collect();
    let all: Vec<(usize, i64)> = all.into_iter().filter(|(number, _)| *number > 0).collect();
    found.receipts = all.len();
    for (number, at) in &all {
        let latency = at - captures[number - 1];
        found.least = Some(found.least.map_or(latency, |known| known.min(latency)));
        most(&mut found.most, latency);
    }
    for pair in all.windows(2) {
        most(&mut found.age, pair[1].1 - captures[pair[0].0 - 1]);
    }
    for (index, capture) in captures.iter().enumerate() {
        if let Some((_, at)) = all.iter().find(|(number, _)| *number > index + 1) {
            most(&mut found.reaction, at - capture);
        }
    }
    found
}

/// A run's results, and what each chain did in it.
fn execute(system: &System, directory: &Path, execution: &str) -> (Value, Vec<Measured>) {
    let traces = directory.join("traces");
    std::fs::create_dir_all(&traces).expect("a directory");
    let output = onbeat()
        .args(["run", "system.toml", "--json", "--out", "out", "--task-trace", "traces"])
        .current_dir(directory)
        .env("ONBEAT_EXECUTION", execution)
        .output()
        .expect("onbeat runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let results = serde_json::from_slice(&output.stdout).expect("JSON");
    let (captures, shown) = (captures(&directory.join("out/1-run")), shown(&said));
    let of_chain = |chain: &Chain| {
        let captures = captures.get(&chain.channels[0]).cloned().unwrap_or_default();
        let shown = shown.get(&chain.name).cloned().unwrap_or_default();
        measured(&captures, &reads(&traces, &chain.end), &shown)
    };
    (results, system.chains.iter().map(of_chain).collect())
}

/// What is computed.
fn study(directory: &Path) -> Value {
    let output = onbeat()
        .args(["plan", "system.toml", "--json"])
        .env("ONBEAT_TFG_DEV", "1")
        .current_dir(directory)
        .output()
        .expect("onbeat runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");

    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn debug_one() {
    let seeds = std::env::var("CHAINS_SEED").unwrap_or("1".into());
    for seed in seeds.split(',') { debug(seed.parse().unwrap()); }
}
fn debug(seed: u64) {
    let directory = std::path::PathBuf::from(format!("/tmp/chains-one-{seed}"));
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir_all(&directory).expect("made");
    let system = generate::system(seed, SIDE_BY_SIDE, DURATION_MS);
    system.write(&directory);
    let begin = std::time::Instant::now();
    let study = study(&directory);
    println!("study {:?}", begin.elapsed());
    let begin = std::time::Instant::now();
    let (_, all) = execute(&system, &directory, "worst");
    println!("run {:?}", begin.elapsed());
    for ((chain, measured), said) in system.chains.iter().zip(all).zip(study["chains"].as_array().expect("chains")) {
        let ratio = said["latency_ns"]["hi"].as_f64().unwrap_or(f64::NAN) / measured.most.unwrap_or(0) as f64;
        let lo = said["latency_ns"]["lo"].as_i64().unwrap_or(i64::MAX);
        let within = |what: Option<i64>, most: &Value| what.is_none_or(|w| most.as_i64().is_none_or(|m| w <= m));
        let bad = measured.least.is_some_and(|l| l < lo) || !within(measured.most, &said["latency_ns"]["hi"]) || !within(measured.age, &said["age_ns"]) || !within(measured.reaction, &said["reaction_ns"]);
        println!("{seed} {} {:?} {} {measured:?} {} {} {} {} {ratio:.4}", chain.name, chain.channels.len(), chain.is_sampled, if bad { "BAD" } else { "ok" }, said["latency_ns"], said["age_ns"], said["reaction_ns"]);
    }
    let _ = number;
}
