//! Each rule of `docs/time-flow-graphs.md` by hand.

use crate::build::*;
use onbeat_model::graph::Interval;
use onbeat_model::time::Span;
use onbeat_model::timing::{Level, Pattern, Why};
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
