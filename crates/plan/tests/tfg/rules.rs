//! Each rule of `docs/time-flow-graphs.md` by hand.

use crate::build::*;
use onbeat_model::graph::{Expression, Graph, Interval, Node, PointKind, What};
use onbeat_model::time::Span;
use onbeat_model::timing::{Level, Pattern, Timing, Trouble, Why};
use onbeat_plan::tfg::{Limits, time};

#[test]
fn listing_3_with_a_fifochannel_gives_table_1() {
    let graph = listing_3(fifo(1024), false);
    let timing = time(&graph, Level::Program, &[], Limits::default());
    assert_eq!(arrivals(&graph, &timing, "5")[..3], [0, 10, 20]);
    assert_eq!(releases(&graph, &timing, "6")[..3], [10, 20, 30]);
    assert_eq!(arrivals(&graph, &timing, "12")[..3], [0, 0, 10]);
    assert_eq!(releases(&graph, &timing, "12")[..3], [0, 10, 20]);
    assert!(timing.rows.iter().all(|row| row.is_certain));
    assert!(timing.culprits.is_empty() && timing.misses.is_empty());
    let tasks = vec![Some((1, 1)), Some((2, 1))];
    let parts = vec![Some((1, ms(10))); 2];
    assert_eq!(timing.pattern, Some(Pattern { tasks, shift: ms(10), parts }));
}

#[test]
fn a_network_channel_makes_intervals() {
    let latency = Interval::between(Span::from_us(100), ms(2));
    let graph = listing_3(network(latency), false);
    let timing = time(&graph, Level::Program, &[], Limits::default());
    let reads = visits(&graph, &timing, "12");
    for (round, row) in reads.iter().take(8).enumerate() {
        let capture = Interval::exactly(ms(10 * round as i64));
        assert_eq!(row.release, capture + latency);
    }
    assert!(timing.culprits.is_empty());
    assert_eq!(timing.pattern.map(|pattern| pattern.shift), Some(ms(10)));
}

#[test]
fn an_ip_channel_is_not_composable_and_is_named_with_the_path() {
    let graph = listing_3(network(Interval::from(Span::from_us(50))), false);
    let timing = time(&graph, Level::Program, &[], Limits::default());
    let [culprit] = &timing.culprits[..] else { panic!("{:?}", timing.culprits) };
    assert_eq!(culprit.why, Why::BestEffort { channel: 0 });
    let places = culprit.path.iter().map(|row| {
        let row = &timing.rows[*row];
        (graph.tasks[row.task].nodes[row.node].place.as_str(), row.iteration[0])
    });
    assert_eq!(places.collect::<Vec<_>>(), [("5", 1), ("12", 1), ("13", 1)]);
    let reads = visits(&graph, &timing, "12");
    assert_eq!(reads[1].release, Interval::from(ms(10) + Span::from_us(50)));
}

#[test]
fn read_wait_collapses_the_interval() {
    let graph = listing_3(network(Interval::between(Span::from_us(100), ms(2))), true);
    let timing = time(&graph, Level::Program, &[], Limits::default());
    assert_eq!(releases(&graph, &timing, "12")[..3], [3, 13, 23]);
}

fn single(nodes: Vec<Node>) -> (Graph, Timing) {
    let graph = graph(vec![], vec![task("t", 0, nodes)]);
    let timing = time(&graph, Level::Platform, &[], Limits::default());
    (graph, timing)
}

fn after_code(lo: i64, hi: i64, kind: PointKind, period: i64) -> (Graph, Timing) {
    let end = Node { next: vec![], ..node("3", What::End, &[]) };
    let mut nodes = vec![
        node("0", What::Start, &[1]),
        node("1", code(lo, hi), &[2]),
        node("2", point(kind, period), &[3]),
        end,
    ];
    if kind != PointKind::Soft {
        nodes[1].guard = Some(2);
    }
    single(nodes)
}

#[test]
fn points_release_at_origin_and_period_or_late() {
    let soft = |lo, hi| {
        let (graph, timing) = after_code(lo, hi, PointKind::Soft, 10);
        (visits(&graph, &timing, "2")[0].release, timing.misses.first().and_then(|m| m.by))
    };
    assert_eq!(soft(1, 9), (Interval::exactly(ms(10)), None));
    assert_eq!(soft(1, 10), (Interval::exactly(ms(10)), None));
    assert_eq!(soft(1, 12), (Interval::between(ms(10), ms(12)), Some(ms(2))));
    assert_eq!(soft(11, 12), (Interval::between(ms(11), ms(12)), Some(ms(2))));
}

#[test]
fn firm_points_are_reached_at_the_deadline_at_the_latest() {
    for (kind, lo, hi, arrival, certain) in [
        (PointKind::Firm, 1, 10, Interval::between(ms(1), ms(10)), None),
        (PointKind::Firm, 1, 12, Interval::between(ms(1), ms(10)), Some(false)),
        (PointKind::Hard, 11, 12, Interval::exactly(ms(10)), Some(true)),
    ] {
        let (graph, timing) = after_code(lo, hi, kind, 10);
        let row = visits(&graph, &timing, "2")[0];
        assert_eq!((row.arrival, row.release), (arrival, Interval::exactly(ms(10))));
        assert_eq!(timing.misses.first().map(|miss| miss.is_certain), certain);
    }
}

#[test]
fn an_abort_keeps_what_passes_from_the_release_before() {
    let (graph, timing) = after_code(11, 12, PointKind::Firm, 10);
    let row = visits(&graph, &timing, "2")[0];
    assert_eq!(row.before, [(0, Interval::exactly(ms(10)))]);
    let miss = &timing.misses[0];
    assert_eq!((miss.by, &miss.path[..]), (Some(ms(2)), &[0, 1, 2][..]));
}

#[test]
fn a_loop_of_unknown_rounds_in_which_time_passes_has_no_bound() {
    let (graph, timing) = single(vec![
        node("0", What::Start, &[1]),
        node("1", What::Any, &[2, 3]),
        node("2", point(PointKind::Soft, 1), &[1]),
        node("3", point(PointKind::Soft, 5), &[4]),
        node("4", What::End, &[]),
    ]);
    assert_eq!(visits(&graph, &timing, "3")[0].arrival, Interval::from(Span::ZERO));
    assert_eq!(timing.culprits[0].why, Why::Loop);
    let (graph, timing) = single(vec![
        node("0", What::Start, &[1]),
        node("1", What::Any, &[2, 3]),
        node("2", code(0, 0), &[1]),
        node("3", point(PointKind::Soft, 5), &[4]),
        node("4", What::End, &[]),
    ]);
    assert_eq!(visits(&graph, &timing, "3")[0].release, Interval::exactly(ms(5)));
    assert!(timing.culprits.is_empty());
}

#[test]
fn an_unknown_delay_has_no_bound() {
    let what = What::Point { kind: PointKind::Soft, period: Expression::Unknown, deadline: None };
    let nodes =
        vec![node("0", What::Start, &[1]), node("1", what, &[2]), node("2", What::End, &[])];
    let (graph, timing) = single(nodes);
    assert_eq!(visits(&graph, &timing, "1")[0].release, Interval::from(Span::ZERO));
    assert_eq!(timing.culprits[0].why, Why::Delay);
}

/// `period` and one message per round, against a reader that takes one in `takes` milliseconds.
fn rates(capacity: u32, takes: i64) -> Timing {
    let writer = vec![
        node("0", What::Start, &[1]),
        node("1", write(0), &[2]),
        node("2", point(PointKind::Soft, 1), &[1]),
    ];
    let reader = vec![
        node("3", What::Start, &[1]),
        node("4", read(0), &[2]),
        node("5", point(PointKind::Soft, takes), &[1]),
    ];
    let graph = graph(vec![fifo(capacity)], vec![task("w", 0, writer), task("r", 0, reader)]);
    time(&graph, Level::Program, &[], Limits::default())
}

#[test]
fn a_channel_that_is_read_too_slowly_overflows() {
    assert!(rates(1, 1).troubles.iter().all(|t| matches!(t, Trouble::Overflow { .. })));
    assert!(rates(8, 1).troubles.is_empty());
    assert!(matches!(rates(8, 2).troubles[..], [Trouble::Overflow { .. }]));
    assert!(matches!(rates(500, 2).troubles[..], [Trouble::Overflow { .. }]));
}

#[test]
fn tasks_that_wait_for_each_other_are_named() {
    let side = |reads: usize, places: [&str; 3]| {
        vec![
            node(places[0], What::Start, &[1]),
            node(places[1], read(reads), &[2]),
            node(places[2], write(1 - reads), &[1]),
        ]
    };
    let tasks =
        vec![task("a", 0, side(0, ["1", "2", "3"])), task("b", 0, side(1, ["4", "5", "6"]))];
    let graph = graph(vec![fifo(4), fifo(4)], tasks);
    let timing = time(&graph, Level::Program, &[], Limits::default());
    let [Trouble::Deadlock { rows }] = &timing.troubles[..] else { panic!("{timing:?}") };
    assert_eq!(rows.len(), 2);
}

#[test]
fn a_deadline_ends_a_circle_of_waiting() {
    let first = vec![
        node("1", What::Start, &[1]),
        guarded("2", read(0), &[2], 2),
        node("3", point(PointKind::Firm, 10), &[3]),
        node("4", write(1), &[1]),
    ];
    let second =
        vec![node("5", What::Start, &[1]), node("6", read(1), &[2]), node("7", write(0), &[1])];
    let graph = graph(vec![fifo(4), fifo(4)], vec![task("a", 0, first), task("b", 0, second)]);
    let timing = time(&graph, Level::Program, &[], Limits::default());
    assert_eq!(releases(&graph, &timing, "6")[..2], [10, 20]);
    assert!(timing.troubles.is_empty());
}
