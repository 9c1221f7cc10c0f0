//! Chains: what is computed of random systems is held against what they do in virtual time, capture
//! by capture. Which capture comes out is followed: messages carry its number.
//!
//! `CHAINS_SYSTEMS=1000` tests more, `CHAINS_SEED=N` those of one run.

mod common;

#[path = "tfg_chains/generate.rs"]
mod generate;

use common::{channel, number};
use generate::{Chain, System};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// So many chains lie side by side in a run, each a system of its own.
const SIDE_BY_SIDE: usize = 12;
const DURATION_MS: u64 = 1_500;

/// What one chain did, in nanoseconds.
#[derive(Debug, Default)]
struct Measured {
    least: Option<i64>,
    most: Option<i64>,
    age: Option<i64>,
    reaction: Option<i64>,
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

/// What is computed.
fn study(directory: &Path) -> Value {
    let arguments = ["tfg", "system.toml", "--json"];
    let output = common::run(&arguments, directory, 0);
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// A run's results, and what each chain did in it. No promise is broken.
fn execute(system: &System, directory: &Path) -> (Value, Vec<Measured>) {
    std::fs::create_dir_all(directory.join("traces")).expect("a directory");
    let arguments = ["run", "system.toml", "--json", "--out", "out", "--task-trace", "traces"];
    let output = common::run(&arguments, directory, 0);
    let results = serde_json::from_slice(&output.stdout).expect("JSON");
    let shown = shown(&String::from_utf8_lossy(&output.stderr));
    let (captures, traces) = (captures(&directory.join("out/1-run")), directory.join("traces"));
    let of_chain = |chain: &Chain| {
        let captures = captures.get(&chain.channels[0]).cloned().unwrap_or_default();
        let shown = shown.get(&chain.name).cloned().unwrap_or_default();
        measured(&captures, &reads(&traces, &chain.end), &shown)
    };
    (results, system.chains.iter().map(of_chain).collect())
}

/// How far the bound of a chain is from what was seen, in parts of a thousand.
#[derive(Debug)]
struct Tight {
    seed: u64,
    chain: String,
    all: i64,
    /// Without what the network's own bounds are above what its messages took: no analysis of the
    /// programs can know less.
    but_network: i64,
}

/// By how much the network's bounds for a chain's messages are above what they took. A reader that
/// waits for the fixed delay does not see it.
fn network_slack(results: &Value, chain: &Chain) -> i64 {
    let reads = chain.channels.iter().zip(&chain.waits).filter(|(_, waits)| !**waits);
    let slack = |(name, _): (&String, &bool)| {
        let channel = channel(results, name);
        number(channel, "bound_ns") - number(channel, "latency_ns.max")
    };
    reads.map(slack).sum()
}

/// Runs the systems of a seed, side by side.
fn compare(seed: u64, chains: usize) -> Vec<Tight> {
    let directory = tempfile::tempdir().expect("a directory");
    let system = generate::system(seed, chains, DURATION_MS);
    system.write(directory.path());
    let study = study(directory.path());
    let (results, all) = execute(&system, directory.path());
    let computed = study["chains"].as_array().expect("chains");
    let mut tight = Vec::new();
    for ((chain, measured), computed) in system.chains.iter().zip(&all).zip(computed) {
        let context = format!("seed {seed} {}: {measured:?} {computed:#}", chain.name);
        let (Some(least), Some(most)) = (measured.least, measured.most) else {
            panic!("nothing came out: {context}");
        };
        let bound = computed["latency_ns"]["hi"].as_i64();
        let bound = bound.unwrap_or_else(|| panic!("without a bound: {context}"));
        assert!(number(computed, "latency_ns.lo") <= least && most <= bound, "{context}");
        assert!(measured.age.is_none_or(|age| age <= number(computed, "age_ns")), "{context}");
        let is_kept = |reaction| reaction <= number(computed, "reaction_ns");
        assert!(measured.reaction.is_none_or(is_kept), "{context}");
        let terms = computed["terms"].as_array().expect("terms");
        let sum: i64 = terms.iter().map(|term| number(term, "span_ns")).sum();
        assert_eq!(sum, bound, "{context}");
        // Between two clocks that differ, a time is no measure.
        if system.has_clocks && most < 1_000_000 {
            continue;
        }
        let ratio = |bound: i64| bound * 1_000 / most.max(1);
        tight.push(Tight {
            seed,
            chain: chain.name.clone(),
            all: ratio(bound),
            but_network: ratio(bound - network_slack(&results, chain)),
        });
    }
    tight
}

/// At which quantiles ratios are, and the one that is furthest off.
fn tell(what: &str, mut all: Vec<(i64, u64, String)>) {
    all.sort();
    let at = |percent: usize| all[(all.len() - 1) * percent / 100].0;
    let within = all.iter().filter(|(ratio, ..)| *ratio <= 1_200).count();
    println!(
        "{what}: {within} of {} within 1.2; in thousandths p50 {}, p90 {}, p99 {}, most {:?}",
        all.len(),
        at(50),
        at(90),
        at(99),
        all.last()
    );
}

fn environment(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|value| value.parse().ok())
}

#[test]
fn no_chain_is_above_its_bound_and_the_bounds_are_close() {
    let count = environment("CHAINS_SYSTEMS").unwrap_or(60) as usize;
    let seeds = match environment("CHAINS_SEED") {
        Some(seed) => seed..seed + 1,
        None => 1..1 + count.div_ceil(SIDE_BY_SIDE) as u64,
    };
    let all: Vec<Tight> = seeds.flat_map(|seed| compare(seed, SIDE_BY_SIDE)).collect();
    let of = |ratio: fn(&Tight) -> i64| {
        all.iter().map(|t| (ratio(t), t.seed, t.chain.clone())).collect::<Vec<_>>()
    };
    tell("bound to most", of(|t| t.all));
    tell("but for the network's share", of(|t| t.but_network));
    for tight in all.iter().filter(|t| t.but_network > 1_200) {
        println!("{tight:?}");
    }
}
