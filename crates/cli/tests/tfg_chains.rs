//! Chains: what is computed of random systems is held against what they do in virtual time, capture
//! by capture. Which capture comes out is followed: messages carry its number.
//!
//! What is not known of a system differs from run to run: how long code takes, the stacks of hosts,
//! what is on the links, when chains begin relative to each other.
//!
//! `CHAINS_SYSTEMS=1000` tests more, `CHAINS_SEED=N` those from the N-th on, `CHAINS_RUNS=N` runs
//! each so often, `CHAINS_MORE=N` those of which a bound is not close so often more.

mod generate;

use crate::common::{self, channel, number};
use generate::{Chain, Delays, System, Variant};
use onbeat_testkit::Random;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// So many systems lie side by side in a run.
const SIDE_BY_SIDE: usize = 12;
/// Everything repeats more than ten times.
const DURATION_MS: u64 = 400;
/// How often each system runs.
const RUNS: u64 = 6;
/// How often more those of which a bound is not close.
const MORE: u64 = 12;
/// A bound is close that is no more above the most that was seen, in parts of a thousand.
const CLOSE: i64 = 1_200;

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

/// What is computed of each chain.
fn study(directory: &Path) -> Vec<Value> {
    let output = common::tfg(&["system.toml", "--json"], directory);
    let study: Value = serde_json::from_slice(&output).expect("JSON");
    study["chains"].as_array().expect("chains").clone()
}

/// A run's results, when messages were captured, and what each chain did. No promise is broken.
struct Execution {
    results: Value,
    captures: BTreeMap<String, Vec<i64>>,
    /// By system.
    measured: Vec<Vec<Measured>>,
}

fn execute(systems: &[&System], directory: &Path) -> Execution {
    let _ = std::fs::remove_dir_all(directory.join("traces"));
    let _ = std::fs::remove_dir_all(directory.join("out"));
    std::fs::create_dir_all(directory.join("traces")).expect("a directory");
    let arguments = ["run", "run.toml", "--json", "--out", "out", "--task-trace", "traces"];
    let output = common::run(&arguments, directory, 0);
    let results = serde_json::from_slice(&output.stdout).expect("JSON");
    let shown = shown(&String::from_utf8_lossy(&output.stderr));
    let (captures, traces) = (captures(&directory.join("out/1-run")), directory.join("traces"));
    let of_chain = |chain: &Chain| {
        let captures = captures.get(&chain.channels[0]).cloned().unwrap_or_default();
        let shown = shown.get(&chain.name).cloned().unwrap_or_default();
        measured(&captures, &reads(&traces, &chain.end), &shown)
    };
    let of_system = |system: &&System| system.chains.iter().map(of_chain).collect();
    let measured = systems.iter().map(of_system).collect();
    Execution { results, captures, measured }
}

/// What is seen and computed of a chain, the most of all runs.
#[derive(Debug, Default)]
struct Tight {
    seed: u64,
    chain: String,
    most: Option<i64>,
    bound: Option<i64>,
    /// By channel, what its messages took, and what the chain counts for it.
    network: Vec<(Option<i64>, Option<i64>)>,
}

impl Tight {
    fn new(seed: u64, chain: &Chain) -> Self {
        let network = vec![(None, None); chain.channels.len()];
        Self { seed, chain: chain.name.clone(), network, ..Self::default() }
    }

    /// How far the bound is from what was seen, in parts of a thousand.
    fn ratio(&self) -> i64 {
        let (bound, most) = (self.bound.expect("a bound"), self.most.expect("something came out"));
        bound * 1_000 / most.max(1)
    }

    /// Notes what the network did in a run, and what the chain counts for it.
    fn note(&mut self, chain: &Chain, results: &Value, computed: &Value) {
        let terms = computed["terms"].as_array().expect("terms");
        for (name, (took, bound)) in chain.channels.iter().zip(&mut self.network) {
            most(took, number(channel(results, name), "latency_ns.max"));
            let what = format!("channel {name}");
            let mut terms = terms.iter().filter(|term| term["what"] == what.as_str());
            if let Some(term) = terms.next() {
                most(bound, number(term, "span_ns"));
            }
        }
    }

    fn is_close(&self) -> bool {
        self.bound.is_some() && self.ratio() <= CLOSE
    }

    /// Without what the network's own bounds are above what its messages took: no analysis of the
    /// programs can know less. A reader that waits for the fixed delay does not see it.
    fn but_network(&self, chain: &Chain) -> i64 {
        let reads = self.network.iter().zip(&chain.waits).filter(|(_, waits)| !**waits);
        let slack = reads.map(|((took, bound), _)| bound.zip(*took).map_or(0, |(b, t)| b - t));
        let bound = self.bound.expect("a bound") - slack.sum::<i64>();
        bound * 1_000 / self.most.expect("something came out").max(1)
    }
}

/// Holds what a run did against what is computed of it.
fn compare(
    (system, chain): (&System, &Chain),
    measured: &Measured,
    computed: &Value,
    tight: &mut Tight,
) {
    let context = format!("seed {} {}: {measured:?} {computed:#}", tight.seed, chain.name);
    let (Some(least), Some(longest)) = (measured.least, measured.most) else {
        panic!("nothing came out: {context}");
    };
    let bound = computed["latency_ns"]["hi"].as_i64();
    let bound = bound.unwrap_or_else(|| panic!("without a bound: {context}"));
    assert!(number(computed, "latency_ns.lo") <= least && longest <= bound, "{context}");
    assert!(measured.age.is_none_or(|age| age <= number(computed, "age_ns")), "{context}");
    let is_kept = |reaction| reaction <= number(computed, "reaction_ns");
    assert!(measured.reaction.is_none_or(is_kept), "{context}");
    let terms = computed["terms"].as_array().expect("terms");
    let sum: i64 = terms.iter().map(|term| number(term, "span_ns")).sum();
    assert_eq!(sum, bound, "{context}");
    // Between two clocks a time is no measure until they are compared.
    let offset = |host: Option<&usize>| system.hosts[*host.expect("a host")].offset;
    let apart = offset(chain.hosts.last()) - offset(chain.hosts.first());
    most(&mut tight.most, longest - apart);
    // The network's bounds hold in true time too, unless a reader waits for the fixed delay.
    let is_true = !chain.waits.iter().any(|waits| *waits);
    most(&mut tight.bound, if is_true { bound - apart.max(0) } else { bound - apart });
}

/// How code, stacks and wake-ups are in a run.
fn delays(round: u64) -> Delays {
    match round {
        0 | 2 | 6 => Delays::Described,
        _ if round % 8 == 4 => Delays::Extreme,
        _ => Delays::Longest,
    }
}

/// How chances come in it: always what takes longest, or mixed.
fn coins(round: u64) -> u64 {
    match delays(round) {
        Delays::Described => 1_001 + 2 * round,
        // What takes short after what took long twice is held the longest.
        Delays::Extreme => 1_003 + round,
        Delays::Longest => 0,
    }
}

/// The search for the longest latency of each chain of a system: other chains are shifted so that
/// their messages meet its messages, and what made it longer is kept and changed again.
struct Search<'a> {
    system: &'a System,
    /// When messages of each channel are captured where nothing is shifted.
    captures: BTreeMap<String, Vec<i64>>,
    random: Random,
    /// Of each chain the longest latency that was seen, and by how much all were shifted then.
    best: Vec<(Option<i64>, Vec<i64>)>,
    /// Which chain is met now, and the shifts.
    target: usize,
    shifts: Vec<i64>,
}

impl<'a> Search<'a> {
    fn new(system: &'a System, seed: u64) -> Self {
        let none = vec![0; system.chains.len()];
        Self {
            system,
            captures: BTreeMap::new(),
            random: Random(seed * 1_000),
            best: vec![(None, Vec::new()); none.len()],
            target: 0,
            shifts: none,
        }
    }

    /// Shifts the others against one of the chains: all of them the first time and now and then,
    /// else one, a little or to where it meets another message, from where it was longest.
    fn shift(&mut self, targets: &[usize]) {
        self.target = targets[self.random.below(targets.len() as u64) as usize];
        let others = (0..self.system.chains.len()).filter(|chain| *chain != self.target);
        let mut others: Vec<usize> = others.collect();
        let best = &self.best[self.target].1;
        if best.is_empty() || self.random.below(4) == 0 {
            self.shifts = vec![0; self.system.chains.len()];
        } else {
            self.shifts.clone_from(best);
            others = match others.len() {
                0 => others,
                count => vec![others[self.random.below(count as u64) as usize]],
            };
        }
        let is_nudge = others.len() == 1 && self.random.below(2) == 0;
        for other in others {
            self.shifts[other] = match is_nudge {
                true => {
                    let most = 500_u64 << self.random.below(8);
                    let nudge = self.random.below(2 * most).cast_signed() - most.cast_signed();
                    (self.shifts[other] + nudge).max(0)
                }
                false => self.meeting(other),
            };
        }
    }

    /// By how much another chain is later whose message is sent when the target's is: by the same
    /// talker just before it, or so that it is on its way to the same listener then.
    fn meeting(&mut self, other: usize) -> i64 {
        let (target, chain) = (&self.system.chains[self.target], &self.system.chains[other]);
        let meets = |(a, b): &(usize, usize)| {
            let talks = target.hosts[*a] == chain.hosts[*b];
            talks || target.hosts[a + 1] == chain.hosts[b + 1]
        };
        let hops = |chain: &Chain| 0..chain.channels.len();
        let all = hops(target).flat_map(|a| hops(chain).map(move |b| (a, b)));
        let (near, far): (Vec<_>, Vec<_>) = all.partition(meets);
        let all = if near.is_empty() { far } else { near };
        let (a, b) = all[self.random.below(all.len() as u64) as usize];
        let early = match target.hosts[a] == chain.hosts[b] {
            true => 10,
            // Their stacks differ, and the target's may have waited behind others of its talker.
            false => {
                let queued = self.random.below(2) * self.random.below(110_000);
                self.random.below(30_000).cast_signed() - 5_000 - queued.cast_signed()
            }
        };
        let (when, theirs) = (self.times(target, a), self.times(chain, b));
        let Some(when) = when.get(when.len() / 2) else { return 0 };
        let last = theirs.iter().rfind(|time| **time <= when - early);
        last.map_or(0, |time| when - early - time)
    }

    /// When messages of one of a chain's channels are captured, by no host's clock.
    fn times(&self, chain: &Chain, at: usize) -> Vec<i64> {
        let offset = self.system.hosts[chain.hosts[at]].offset;
        let all = self.captures.get(&chain.channels[at]).into_iter().flatten();
        all.map(|time| time - offset).collect()
    }

    /// Notes what the chains did.
    fn note(&mut self, measured: &[Measured]) {
        let longest = measured[self.target].most;
        let (known, shifts) = &mut self.best[self.target];
        if longest > *known {
            *known = longest;
            shifts.clone_from(&self.shifts);
        }
    }
}

/// Runs the systems of some seeds, side by side: all of them so many times, then those of which a
/// bound is not close yet.
fn hold(seeds: &[u64], runs: u64, more: u64) -> Vec<(Tight, i64)> {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path();
    let systems: Vec<System> =
        seeds.iter().enumerate().map(|(number, seed)| generate::system(*seed, number)).collect();
    let write = |name: &str, text: String| std::fs::write(path.join(name), text).expect("written");
    let every: Vec<&System> = systems.iter().collect();
    write("manifest.h", generate::manifest(&every));
    write("all.c", generate::program(&systems));
    common::run(&["cc", "all.c", "-o", "all"], path, 0);
    let mut searches: Vec<Search<'_>> =
        systems.iter().zip(seeds).map(|(system, seed)| Search::new(system, *seed)).collect();
    let of_system = |(system, seed): (&System, &u64)| {
        system.chains.iter().map(|chain| Tight::new(*seed, chain)).collect()
    };
    let mut all: Vec<Vec<Tight>> = systems.iter().zip(seeds).map(of_system).collect();
    let variant = |round, shifts| Variant {
        delays: delays(round),
        is_full: round > 0,
        shifts,
        seed: seeds[0] * 1_000 + round,
        duration_ms: DURATION_MS,
    };
    let none = searches.iter().map(|search| search.shifts.clone()).collect();
    generate::describe(&every, &variant(0, none), None, path, "system.toml");
    let computed = study(path);
    for round in 0..runs + more {
        let loose = |tight: &[Tight]| {
            let chains = 0..tight.len();
            chains.filter(|chain| !tight[*chain].is_close()).collect::<Vec<usize>>()
        };
        let is_in = |at: &usize| round < runs || !loose(&all[*at]).is_empty();
        let present: Vec<usize> = (0..systems.len()).filter(is_in).collect();
        if present.is_empty() {
            break;
        }
        for at in present.iter().filter(|_| round > 2) {
            let loose = loose(&all[*at]);
            let any: Vec<usize> = (0..all[*at].len()).collect();
            searches[*at].shift(if loose.is_empty() { &any } else { &loose });
        }
        let some: Vec<&System> = present.iter().map(|at| &systems[*at]).collect();
        write("manifest.h", generate::manifest(&some));
        let shifts = present.iter().map(|at| searches[*at].shifts.clone()).collect();
        generate::describe(&some, &variant(round, shifts), Some(coins(round)), path, "run.toml");
        let Execution { results, captures, measured } = execute(&some, path);
        for (at, measured) in present.iter().zip(&measured) {
            let first: usize = systems[..*at].iter().map(|system| system.chains.len()).sum();
            for (chain, tight) in all[*at].iter_mut().enumerate() {
                let pair = (&systems[*at], &systems[*at].chains[chain]);
                compare(pair, &measured[chain], &computed[first + chain], tight);
                tight.note(pair.1, &results, &computed[first + chain]);
            }
            if round == 1 {
                searches[*at].captures = captures.clone();
            }
            if round > 2 {
                searches[*at].note(measured);
            }
        }
    }
    let of_system = all.into_iter().zip(&systems);
    let found = of_system.flat_map(|(all, system)| all.into_iter().zip(&system.chains));
    found
        .map(|(tight, chain)| {
            let but = tight.but_network(chain);
            (tight, but)
        })
        .collect()
}

/// At which quantiles ratios are, and the one that is furthest off.
fn tell(what: &str, mut all: Vec<(i64, u64, String)>) {
    all.sort();
    let at = |percent: usize| all[(all.len() - 1) * percent / 100].0;
    let within = all.iter().filter(|(ratio, ..)| *ratio <= CLOSE).count();
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
    let count = environment("CHAINS_SYSTEMS").unwrap_or(12);
    let runs = environment("CHAINS_RUNS").unwrap_or(RUNS);
    let more = environment("CHAINS_MORE").unwrap_or(MORE);
    let first = environment("CHAINS_SEED").unwrap_or(1);
    let seeds: Vec<u64> = (first..first + count).collect();
    let mut all: Vec<(Tight, i64)> = Vec::new();
    for seeds in seeds.chunks(SIDE_BY_SIDE) {
        all.extend(hold(seeds, runs, more));
    }
    let of = |ratio: fn(&(Tight, i64)) -> i64| {
        all.iter().map(|t| (ratio(t), t.0.seed, t.0.chain.clone())).collect::<Vec<_>>()
    };
    tell("bound to most", of(|t| t.0.ratio()));
    tell("but for the network's share", of(|t| t.1));
    for (tight, but) in all.iter().filter(|t| t.0.ratio() > CLOSE) {
        println!("{} {but} {tight:?}", tight.ratio());
    }
    let share = |ratio: fn(&(Tight, i64)) -> i64| {
        all.iter().filter(|t| ratio(t) <= CLOSE).count() * 100 / all.len()
    };
    // The rest is the network's: what its bounds count and no order of messages does to them all.
    assert!(share(|t| t.0.ratio()) >= 80);
    assert!(share(|t| t.1) >= 95);
}
