//! Adding a component that has nothing to do with the others changes nothing of them, and how many
//! rounds are asked for changes no verdict.

use crate::build::ms;
use crate::random::{Dice, Kind, random};
use onbeat_model::graph::{Graph, Host, Interval, NodeKind, PointKind};
use onbeat_model::time::Span;
use onbeat_model::timing::{Composability, Composition, Joint, Kept, Level, Row, Timing};
use onbeat_timing::tfg::{Limits, compose, time};

const LIMITS: Limits = Limits { rounds: 4, until: None, rows: 800 };

/// A random graph; what is in it depends on the seed.
fn draw(seed: u64) -> Graph {
    let mut dice = Dice::new(seed);
    let kind = Kind {
        is_unknown: seed.is_multiple_of(2),
        is_endless: true,
        has_unknown_loops: seed.is_multiple_of(4),
        has_exits: seed.is_multiple_of(3),
        tasks: 4,
    };
    let mut graph = random(&mut dice, kind).graph;
    for (at, channel) in graph.channels.iter_mut().enumerate() {
        channel.name = format!("{seed}.{at}");
    }
    for (at, host) in graph.hosts.iter_mut().enumerate() {
        host.name = format!("{seed}.{at}");
    }
    // One of three starts another task.
    if seed.is_multiple_of(3) && graph.tasks.len() > 1 {
        let last = graph.tasks.len() - 1;
        graph.tasks[last].is_first = false;
        let first = &mut graph.tasks[0].nodes;
        let (at, next) = (first.len(), std::mem::take(&mut first[0].next));
        first[0].next = vec![at];
        first.push(crate::build::node("run", NodeKind::Run { task: last }, &next));
    }
    graph
}

/// Both, with the second behind or before the first.
fn both(a: &Graph, b: &Graph) -> Graph {
    let mut all = a.clone();
    let (hosts, channels, tasks) = (a.hosts.len(), a.channels.len(), a.tasks.len());
    all.hosts.extend(b.hosts.iter().cloned());
    all.channels.extend(b.channels.iter().cloned());
    for channel in &mut all.channels[channels..] {
        if let onbeat_model::graph::ChannelKind::Network(network) = &mut channel.kind {
            network.latencies.iter_mut().for_each(|(host, _)| *host += hosts);
        }
    }
    for task in &b.tasks {
        let mut task = task.clone();
        task.host += hosts;
        for node in &mut task.nodes {
            match &mut node.kind {
                NodeKind::Read { channel, .. } | NodeKind::Write { channel, .. } => {
                    *channel += channels
                }
                NodeKind::Run { task } => *task += tasks,
                _ => {}
            }
        }
        all.tasks.push(task);
    }
    all
}

/// A task's rows as they are wherever it stands: what they refer to is named by place and round.
fn rows(timing: &Timing, tasks: std::ops::Range<usize>) -> Vec<(usize, Row)> {
    let named = |at: &usize| {
        let row = &timing.rows[*at];
        row.node * 1_000 + row.iteration.first().map_or(0, |round| *round as usize % 1_000)
    };
    let of = timing.rows.iter().filter(|row| tasks.contains(&row.task));
    of.map(|row| {
        let mut same = Row { task: 0, ..row.clone() };
        same.before.iter_mut().for_each(|(at, _)| *at = named(at));
        same.before.sort_unstable_by_key(|(at, passed)| (*at, passed.lo, passed.hi));
        same.messages.iter_mut().for_each(|at| *at = named(at));
        same.messages.sort_unstable();
        (row.task - tasks.start, same)
    })
    .collect()
}

#[test]
fn an_independent_component_changes_no_row_and_no_verdict_of_another() {
    for seed in 0..80_u64 {
        let (a, b) = (draw(seed), draw(seed + 10_000));
        for level in [Level::Program, Level::Platform] {
            let of = |graph: &Graph| time(graph, level, &[], LIMITS);
            let (alone, other) = (of(&a), of(&b));
            let (behind, before) = (of(&both(&a, &b)), of(&both(&b, &a)));
            let tasks = a.tasks.len();
            let expected = rows(&alone, 0..tasks);
            let start = b.tasks.len();
            assert!(rows(&behind, 0..tasks) == expected, "seed {seed}, {level:?}");
            assert!(rows(&before, start..start + tasks) == expected, "seed {seed}, {level:?}");
            let courses = |timing: &Timing, from: usize| {
                (from..from + tasks).map(|task| format!("{:?}", named(timing, task))).collect()
            };
            let expected: Vec<String> = courses(&alone, 0);
            assert_eq!(courses(&behind, 0), expected, "seed {seed}, {level:?}");
            assert_eq!(courses(&before, start), expected, "seed {seed}, {level:?}");
            let least = worst(alone.verdict(), other.verdict());
            assert_eq!(behind.verdict(), least, "seed {seed}, {level:?}");
            assert_eq!(before.verdict(), least, "seed {seed}, {level:?}");
        }
    }
}

/// How a task continues, without the numbers of tasks and channels.
fn named(timing: &Timing, task: usize) -> impl std::fmt::Debug {
    let one = timing.components.iter().find(|one| one.tasks.contains(&task));
    let place = one.and_then(|one| one.tasks.iter().position(|of| *of == task));
    one.zip(place)
        .map(|(one, place)| (one.course.again(place), std::mem::discriminant(&one.course)))
}

fn worst(a: Composability, b: Composability) -> Composability {
    match (a, b) {
        (Composability::NotComposable, _) | (_, Composability::NotComposable) => {
            Composability::NotComposable
        }
        (Composability::Unproven { rounds: a }, Composability::Unproven { rounds: b }) => {
            Composability::Unproven { rounds: a.min(b) }
        }
        (Composability::Composable, other) | (other, Composability::Composable) => other,
    }
}

#[test]
fn no_verdict_depends_on_how_many_rounds_are_asked_for() {
    let mut seen = [0; 3];
    for seed in 20_000..20_060_u64 {
        let graph = draw(seed);
        let verdict =
            |rounds| time(&graph, Level::Program, &[], Limits { rounds, ..LIMITS }).verdict();
        let all = [20, 60, 200, 1_000].map(verdict);
        let is = |wanted: Composability| all.contains(&wanted);
        let flips = is(Composability::Composable)
            && all.iter().any(|one| *one != Composability::Composable);
        assert!(!flips, "seed {seed}: {all:?}");
        seen[0] += usize::from(is(Composability::Composable));
        seen[1] += usize::from(is(Composability::NotComposable));
        seen[2] += usize::from(all.iter().any(|v| matches!(v, Composability::Unproven { .. })));
    }
    println!("composable, not, unproven: {seen:?}");
    assert!(seen.iter().all(|count| *count > 3), "{seen:?}");
}

#[test]
fn composable_systems_without_a_channel_in_common_keep_their_times() {
    let mut kept = 0;
    for seed in 0..60_u64 {
        let systems = [seed + 30_000, seed + 40_000].map(|seed| (seed.to_string(), draw(seed)));
        let Composition { parts, .. } =
            compose(systems.to_vec(), &[], LIMITS).expect("no names in common");
        for part in parts {
            let wanted = match part.alone.program.verdict() {
                Composability::NotComposable => Kept::NothingPromised,
                Composability::Unproven { .. } => Kept::Unproven,
                Composability::Composable => part.kept,
            };
            assert_eq!(part.kept, wanted, "seed {seed}");
            assert_ne!(part.kept, Kept::Broken, "seed {seed}");
            assert!(part.spoilt.is_empty() && part.joints.is_empty(), "seed {seed}");
            kept += usize::from(part.kept == Kept::Kept);
        }
    }
    println!("{kept} kept");
    assert!(kept > 10, "{kept}");
}

#[test]
fn a_second_reader_spoils_what_the_first_one_was_promised() {
    use crate::build::{fifo, graph, listing_3, node, read, task};
    let first = listing_3(fifo(4), false);
    let mut second = graph(vec![fifo(4)], vec![]);
    second.hosts = first.hosts.clone();
    let nodes = vec![node("1", NodeKind::Start, &[1]), node("2", read(0), &[1])];
    second.tasks.push(task("spy", 1, nodes));
    let systems = vec![("first".to_owned(), first), ("second".to_owned(), second)];
    let Composition { parts, .. } = compose(systems, &[], LIMITS).expect("the same");
    assert_eq!(parts[0].kept, Kept::Broken);
    let row = &parts[0].alone.program.rows[parts[0].spoilt[0].row];
    assert_eq!((row.task, parts[0].spoilt[0].now.1.hi), (1, None));
    assert!(row.release.hi <= Some(ms(0)));
}

#[test]
fn systems_whose_networks_were_planned_apart_keep_nothing_for_certain() {
    use crate::build::{listing_3, network};
    let latency = Interval::between(Span::from_us(100), ms(2));
    let mut systems = Vec::new();
    for name in ["first", "second"] {
        let mut graph = listing_3(network(latency), false);
        graph.channels[0].name = name.to_owned();
        for (at, host) in graph.hosts.iter_mut().enumerate() {
            host.name = format!("{name}{at}");
        }
        systems.push((name.to_owned(), graph));
    }
    let kept = |networks: &[String]| {
        let Composition { parts, .. } =
            compose(systems.clone(), networks, LIMITS).expect("nothing in common");
        parts.into_iter().map(|part| part.kept).collect::<Vec<_>>()
    };
    assert_eq!(kept(&[]), [Kept::Kept; 2]);
    assert_eq!(kept(&["bridge".to_owned()]), [Kept::Unproven; 2]);
}

#[test]
fn who_writes_another_ones_channel_behind_the_table_does_not_keep_it() {
    use crate::build::{fifo, graph, listing_3, node, point, task, write};
    let first = listing_3(fifo(1_024), false);
    let mut second = graph(vec![fifo(1_024)], vec![]);
    second.hosts = first.hosts.clone();
    let nodes = vec![
        node("1", NodeKind::Start, &[1]),
        node("2", point(PointKind::Soft, 100_000), &[2]),
        node("3", write(0), &[1]),
    ];
    second.tasks.push(task("late", 0, nodes));
    let systems = vec![("first".to_owned(), first), ("second".to_owned(), second)];
    let Composition { parts, .. } = compose(systems, &[], LIMITS).expect("the same");
    assert_ne!(parts[0].kept, Kept::Kept);
}

#[test]
fn a_mutex_that_is_tried_stays_its_own_and_is_shared_by_its_name() {
    let system = |mutex: &str, lock: fn(usize) -> NodeKind| {
        let nodes = vec![
            crate::build::node("start", NodeKind::Start, &[1]),
            crate::build::node("lock", lock(0), &[2]),
            crate::build::node("unlock", NodeKind::Unlock(0), &[3]),
            crate::build::node("point", crate::build::point(PointKind::Soft, 10), &[1]),
        ];
        let task = crate::build::task(mutex, 0, nodes);
        let host = Host { name: mutex.to_owned(), ..Host::default() };
        let graph = Graph { hosts: vec![host], tasks: vec![task], ..Graph::default() };
        (mutex.to_owned(), Graph { resources: vec![mutex.to_owned()], ..graph })
    };
    let apart = vec![system("a", NodeKind::Lock), system("b", NodeKind::Take)];
    let Composition { parts, together } = compose(apart, &[], LIMITS).expect("nothing in common");
    let NodeKind::Take(resource) = together.graph.tasks[1].nodes[1].kind else {
        panic!("it is tried")
    };
    assert_eq!(together.graph.resources[resource], "b");
    assert!(parts.iter().all(|part| part.joints.is_empty()), "{parts:?}");
    let (name, mut other) = system("b", NodeKind::Take);
    other.hosts[0].name = "c".to_owned();
    let shared = vec![system("b", NodeKind::Lock), (name, other)];
    let Composition { parts, .. } = compose(shared, &[], LIMITS).expect("the same mutex");
    let joint = Joint::Resource("b".to_owned());
    assert!(parts.iter().all(|part| part.joints.contains(&joint)), "{parts:?}");
}
