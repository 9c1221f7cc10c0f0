//! Executions of random graphs against the table.

use crate::interpreter::{Outcome, Place, Visit, run};
use crate::random::{Dice, Kind, Random, random};
use onbeat_model::graph::{ChannelKind, Interval, NodeKind};
use onbeat_model::time::Span;
use onbeat_model::timing::{Hazard, Level, Row, Timing};
use onbeat_timing::tfg::{Limits, time};
use std::collections::{BTreeMap, BTreeSet};

const LIMITS: Limits = Limits { rounds: 4, until: None, rows: 2_000 };
const STEPS: usize = 600;
const ANY: Kind = Kind {
    is_unknown: true,
    is_endless: true,
    has_unknown_loops: true,
    has_exits: false,
    tasks: 8,
};

type Table<'a> = BTreeMap<(usize, usize, Vec<u32>), &'a Row>;

fn table(timing: &Timing) -> Table<'_> {
    let place = |row: &Row| (row.task, row.node, row.iteration.clone());
    timing.rows.iter().map(|row| (place(row), row)).collect()
}

/// The row of a visit, and by how much it is later than the row says: by the pattern.
fn row<'a>(
    random: &Random,
    table: &Table<'a>,
    timing: &Timing,
    place: &(usize, usize, Vec<u32>),
) -> Option<(&'a Row, Span)> {
    if let Some(row) = table.get(place) {
        return Some((*row, Span::ZERO));
    }
    // Counted loops that stand before or behind the endless one are none of the pattern's.
    let head = *random.loops[place.0][place.1].first()?;
    if random.graph.tasks[place.0].nodes[head].kind != NodeKind::Any {
        return None;
    }
    let pattern = timing.regime.as_ref()?;
    let (first, again) = pattern.tasks[place.0]?;
    let (task, node, mut rounds) = place.clone();
    let round = rounds.first_mut()?;
    let times = round.checked_sub(first)? / again;
    *round -= times * again;
    Some((*table.get(&(task, node, rounds))?, pattern.shift * i64::from(times)))
}

fn shifted(at: Interval, by: Span) -> Interval {
    Interval { lo: at.lo + by, hi: at.hi.map(|hi| hi + by) }
}

#[derive(Debug, Default)]
struct Seen {
    visits: usize,
    with_row: usize,
    by_pattern: usize,
    patterns: usize,
    graphs: usize,
    rows: usize,
    ends: usize,
    met: usize,
}

/// What is wrong with the table, by an execution.
fn check(random: &Random, timing: &Timing, outcome: &Outcome, seen: &mut Seen) -> Option<String> {
    let table = table(timing);
    let mut last: BTreeMap<(usize, Option<usize>), u32> = BTreeMap::new();
    let head = |place: &Place| (place.0, random.loops[place.0][place.1].first().copied());
    for (place, visit) in &outcome.visits {
        seen.visits += 1;
        let round = place.2.first().copied().unwrap_or(0);
        let last = last.entry(head(place)).or_default();
        *last = (*last).max(round);
        let Some((row, by)) = row(random, &table, timing, place) else { continue };
        seen.with_row += 1;
        seen.by_pattern += usize::from(by > Span::ZERO);
        if !shifted(row.arrival, by).contains(visit.arrival) {
            return Some(format!("arrival {:?} of {place:?} at {:?}", row.arrival, visit.arrival));
        }
        if let Some(release) = visit.release.filter(|r| !shifted(row.release, by).contains(*r)) {
            return Some(format!("release {:?} of {place:?} at {release:?}", row.release));
        }
    }
    let furthest = |task: usize| {
        let rows = timing.rows.iter().filter(|row| row.task == task);
        rows.filter_map(|row| row.iteration.first()).max().copied().unwrap_or(0)
    };
    for place in outcome.visits.keys().filter(|place| place.2.len() <= 1) {
        let Some(round) = place.2.first() else { continue };
        let is_same_loop = random.loops[place.0][place.1].len() == 1;
        if is_same_loop
            && *round <= LIMITS.rounds
            && *round < furthest(place.0)
            && row(random, &table, timing, place).is_none()
        {
            let head = random.loops[place.0][place.1][0];
            let is_there = |row: &&Row| {
                row.task == place.0
                    && random.loops[place.0][row.node].first() == Some(&head)
                    && row.iteration.first().is_some_and(|r| r > round)
            };
            if timing.rows.iter().any(|row| is_there(&row)) {
                return Some(format!("{place:?} has no row"));
            }
        }
    }
    for (place, row) in &table {
        let came = outcome.is_over[place.0]
            || place.2.first().is_some_and(|r| *r < last.get(&head(place)).copied().unwrap_or(0));
        if row.is_certain && came && !outcome.visits.contains_key(place) {
            return Some(format!("{place:?} is not certain"));
        }
    }
    let warns = timing.hazards.iter().any(|t| matches!(t, Hazard::Overflow { .. }));
    if outcome.overflows && !warns && timing.regime.is_some() {
        return Some("a channel overflows".to_owned());
    }
    None
}

fn explain(random: &Random, timing: &Timing, outcome: &Outcome) {
    for channel in &random.graph.channels {
        println!("{channel:?}");
    }
    for (task, graph) in random.graph.tasks.iter().enumerate() {
        println!("task {task} on {} keeps {}", graph.host, graph.keeps_phase);
        for (index, node) in graph.nodes.iter().enumerate() {
            let loops = &random.loops[task][index];
            println!(
                "  {index} {:?} -> {:?} guard {:?} {loops:?}",
                node.kind, node.next, node.guard
            );
        }
    }
    for row in timing.rows.iter().take(400) {
        let place = (row.task, row.node, row.iteration.clone());
        let visit: Option<&Visit> = outcome.visits.get(&place);
        println!("{place:?} {:?} {:?} {} | {visit:?}", row.arrival, row.release, row.is_certain);
    }
    println!("{:?}\n{:?}", timing.regime, timing.hazards);
}

fn hold(kind: Kind, first: u64, graphs: u64, runs: usize, steps: usize) -> Seen {
    let mut seen = Seen::default();
    for seed in first..first + graphs {
        let mut dice = Dice::new(seed);
        let mut random = random(&mut dice, kind);
        for level in [Level::Program, Level::Platform] {
            let timing = time(&random.graph, level, &[], LIMITS);
            random.follow(&timing);
            seen.graphs += 1;
            seen.rows += timing.rows.len();
            seen.patterns += usize::from(timing.regime.is_some());
            for _ in 0..runs {
                let outcome = run(&random, level, &mut dice, steps);
                if let Some(wrong) = check(&random, &timing, &outcome, &mut seen) {
                    explain(&random, &timing, &outcome);
                    panic!("seed {seed} {level:?}: {wrong}");
                }
            }
        }
    }
    seen
}

#[test]
fn every_execution_of_a_random_graph_is_in_the_table() {
    let small = Kind { tasks: 2, ..ANY };
    println!("{:?}", hold(small, 0, 400, 8, STEPS));
    let large = ANY;
    println!("{:?}", hold(large, 100_000, 200, 6, STEPS));
}

#[test]
fn loops_that_may_be_left_in_any_round_and_long_counters_are_in_the_table() {
    let count = |name: &str, default: u64| {
        let given = std::env::var(name).ok().and_then(|text| text.parse().ok());
        given.unwrap_or(default)
    };
    let (first, graphs) = (count("ONBEAT_SEED", 200_000), count("ONBEAT_GRAPHS", 150));
    let small = Kind { has_exits: true, tasks: 3, ..ANY };
    let seen = hold(small, first, graphs, 6, 3_000);
    println!("{seen:?}");
    assert!(seen.patterns * 10 >= seen.graphs, "{seen:?}");
}

#[test]
fn what_is_known_is_exact() {
    let kind = Kind { is_unknown: false, has_unknown_loops: false, ..ANY };
    println!("{:?}", hold(kind, 0, 400, 1, STEPS));
    let (mut exact, mut rows) = (0, 0);
    for seed in 0..400 {
        let random = random(&mut Dice::new(seed), kind);
        let timing = time(&random.graph, Level::Platform, &[], LIMITS);
        rows += timing.rows.len();
        exact += timing.rows.iter().filter(|row| row.arrival.is_exact()).count();
    }
    // The others wait for themselves, or write to a full channel at the instant of a read.
    assert!(exact * 100 >= rows * 95, "{exact} of {rows}");
}

#[test]
fn a_table_up_to_an_instant_lacks_nothing_before_it() {
    let (mut shorter, mut early) = (0, 0);
    for seed in 0..100 {
        let mut dice = Dice::new(seed);
        let random = random(&mut dice, ANY);
        let all = time(&random.graph, Level::Platform, &[], LIMITS);
        let mut begins: Vec<Span> = all.rows.iter().map(|row| row.arrival.lo).collect();
        begins.sort_unstable();
        let until = begins[begins.len() / 4];
        let limits = Limits { until: Some(until), ..LIMITS };
        let some = time(&random.graph, Level::Platform, &[], limits);
        shorter += usize::from(some.rows.len() < all.rows.len());
        for _ in 0..4 {
            let outcome = run(&random, Level::Platform, &mut dice, STEPS);
            if let Some(wrong) = check(&random, &some, &outcome, &mut Seen::default()) {
                explain(&random, &some, &outcome);
                panic!("seed {seed}: {wrong}");
            }
            let (all, some) = (table(&all), table(&some));
            let is_early = |(place, visit): &(&Place, &Visit)| {
                visit.arrival <= until && all.contains_key(*place)
            };
            for (place, _) in outcome.visits.iter().filter(is_early) {
                assert!(some.contains_key(place), "seed {seed}: {place:?}");
                early += 1;
            }
        }
    }
    assert!(shorter > 25 && early > 500, "{shorter} shorter, {early} visits before the instant");
}

/// What a program's rows say, whatever their numbers.
fn said(timing: &Timing, tasks: usize) -> Vec<String> {
    let rows = timing.rows.iter().filter(|row| row.task < tasks);
    rows.map(|row| {
        let before: Vec<_> = row.before.iter().map(|b| (timing.rows[b.0].node, b.1)).collect();
        let (a, b) = (row.arrival, row.release);
        format!("{} {} {:?} {a:?} {b:?} {before:?}", row.task, row.node, row.iteration)
    })
    .collect()
}

#[test]
fn an_independent_program_beside_it_changes_no_row() {
    for seed in 0..200 {
        let one = random(&mut Dice::new(seed), ANY).graph;
        let mut other = random(&mut Dice::new(seed + 1_000_000), ANY).graph;
        let (hosts, channels) = (one.hosts.len(), one.channels.len());
        for task in &mut other.tasks {
            task.host += hosts;
            for node in &mut task.nodes {
                if let NodeKind::Write { channel, .. } | NodeKind::Read { channel, .. } =
                    &mut node.kind
                {
                    *channel += channels;
                }
            }
        }
        for channel in &mut other.channels {
            if let ChannelKind::Network(network) = &mut channel.kind {
                network.latencies.iter_mut().for_each(|(host, _)| *host += hosts);
            }
        }
        let mut both = one.clone();
        both.hosts.extend(other.hosts);
        both.channels.extend(other.channels);
        both.tasks.extend(other.tasks);
        for level in [Level::Program, Level::Platform] {
            let alone = time(&one, level, &[], LIMITS);
            let beside = time(&both, level, &[], LIMITS);
            assert_eq!(said(&alone, one.tasks.len()), said(&beside, one.tasks.len()), "{seed}");
        }
    }
}

/// How often the ends of arrivals are reached in small graphs.
#[test]
fn small_graphs_reach_the_ends_of_their_intervals() {
    let kind = Kind { is_endless: false, has_unknown_loops: false, tasks: 2, ..ANY };
    let mut seen = Seen::default();
    for seed in 0..200 {
        let mut dice = Dice::new(seed);
        let random = random(&mut dice, kind);
        let timing = time(&random.graph, Level::Platform, &[], LIMITS);
        dice.end = None;
        let mut reached: BTreeSet<(usize, usize, Vec<u32>, Span)> = BTreeSet::new();
        for number in 0..300 {
            dice.end = [None, Some(false), Some(true)][number % 3];
            for (place, visit) in run(&random, Level::Platform, &mut dice, STEPS).visits {
                reached.insert((place.0, place.1, place.2, visit.arrival));
            }
        }
        for row in timing.rows.iter().filter(|row| row.arrival.hi.is_some()) {
            for end in [row.arrival.lo, row.arrival.hi.unwrap_or_default()] {
                seen.ends += 1;
                let place = (row.task, row.node, row.iteration.clone(), end);
                seen.met += usize::from(reached.contains(&place));
            }
        }
    }
    println!("{} of {} ends are met", seen.met, seen.ends);
    assert!(seen.met * 100 >= seen.ends * 70, "{} of {}", seen.met, seen.ends);
}

/// A system of 200 tasks on 20 hosts, in chains of ten over network channels.
#[test]
fn two_hundred_tasks_on_twenty_hosts_are_timed() {
    use crate::build::*;
    use onbeat_model::graph::PointKind;
    let (mut channels, mut tasks) = (Vec::new(), Vec::new());
    for index in 0..200 {
        let host = index % 20;
        let period = [1, 2, 5, 10, 20][index / 10 % 5];
        let mut nodes = vec![node("0", NodeKind::Start, &[1]), node("1", NodeKind::Any, &[2])];
        let mut add = |what: NodeKind| {
            let next = nodes.len() + 1;
            nodes.push(node(&format!("{}", next - 1), what, &[next]));
        };
        if index % 10 > 0 {
            add(read(channels.len() - 1));
        }
        add(code(0, 0));
        if index % 10 < 9 {
            let mut channel = network(Interval::between(Span::from_us(50), Span::from_us(400)));
            if let ChannelKind::Network(network) = &mut channel.kind {
                network.latencies = (0..20).map(|h| (h, network.latencies[0].1)).collect();
            }
            channels.push(channel);
            add(write(channels.len() - 1));
        }
        add(point(PointKind::Soft, period));
        let last = nodes.len() - 1;
        nodes[last].next = vec![1];
        tasks.push(task(&format!("t{index}"), host, nodes));
    }
    let graph = graph(channels, tasks);
    for level in [Level::Program, Level::Platform] {
        let timing = time(&graph, level, &[], Limits::default());
        assert!(timing.causes.is_empty());
        assert_eq!(timing.regime.map(|pattern| pattern.shift), Some(ms(20)));
    }
}
