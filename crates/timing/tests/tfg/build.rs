//! Graphs for tests.

use onbeat_model::graph::{
    Channel, ChannelKind, Expression, Graph, Host, Interval, NetworkChannel, NodeKind, PointKind,
    Task, TaskNode,
};
use onbeat_model::time::Span;
use onbeat_model::timing::{Row, Timing};

pub(crate) const MS: i64 = 1_000_000;

pub(crate) fn ms(ms: i64) -> Span {
    Span::from_ms(ms)
}

pub(crate) fn constant(value: i64) -> Expression {
    Expression::Constant(value)
}

pub(crate) fn node(place: &str, kind: NodeKind, next: &[usize]) -> TaskNode {
    TaskNode { kind, place: place.to_owned(), next: next.to_vec(), guard: None }
}

pub(crate) fn guarded(place: &str, kind: NodeKind, next: &[usize], guard: usize) -> TaskNode {
    TaskNode { guard: Some(guard), ..node(place, kind, next) }
}

/// A point with the deadline at the release, in milliseconds.
pub(crate) fn point(kind: PointKind, period: i64) -> NodeKind {
    let period = constant(period * MS);
    NodeKind::Point { kind, period: period.clone(), deadline: Some(period) }
}

pub(crate) fn write(channel: usize) -> NodeKind {
    NodeKind::Write { channel, waits: false }
}

pub(crate) fn read(channel: usize) -> NodeKind {
    NodeKind::Read { channel, waits: false }
}

pub(crate) fn code(lo: i64, hi: i64) -> NodeKind {
    NodeKind::Fragment { execution: Interval::between(ms(lo), ms(hi)) }
}

pub(crate) fn task(name: &str, host: usize, nodes: Vec<TaskNode>) -> Task {
    Task { name: name.to_owned(), host, nodes, is_first: true, ..Task::default() }
}

pub(crate) fn fifo(capacity: u32) -> Channel {
    Channel { name: "fifo".to_owned(), kind: ChannelKind::Fifo { capacity } }
}

/// A network channel to host 1.
pub(crate) fn network(latency: Interval) -> Channel {
    let network = NetworkChannel {
        latencies: vec![(1, latency)],
        fixed_delay: ms(3),
        interval: ms(1),
        tolerance: Span::ZERO,
        catch_up: Span::ZERO,
        early: Span::ZERO,
        capacity: 16,
    };
    Channel { name: "net".to_owned(), kind: ChannelKind::Network(network) }
}

pub(crate) fn graph(channels: Vec<Channel>, tasks: Vec<Task>) -> Graph {
    let hosts = 1 + tasks.iter().map(|task| task.host).max().unwrap_or(0);
    let host =
        |index| Host { name: format!("h{index}"), wakeup: Interval::ZERO, ..Host::default() };
    let hosts = (0..hosts).map(host).collect();
    Graph { hosts, channels, tasks, ..Graph::default() }
}

/// Listing 3 of Austad et al. 2023.
pub(crate) fn listing_3(channel: Channel, waits: bool) -> Graph {
    let sensor = vec![
        node("1", NodeKind::Start, &[1]),
        node("3", NodeKind::Any, &[2]),
        guarded("4", code(0, 0), &[3], 4),
        guarded("5", write(0), &[4], 4),
        node("6", point(PointKind::Firm, 10), &[1]),
    ];
    let processor = vec![
        node("10", NodeKind::Start, &[1]),
        node("11", NodeKind::Any, &[2]),
        node("12", NodeKind::Read { channel: 0, waits }, &[3]),
        node("13", code(0, 0), &[1]),
    ];
    let tasks = vec![task("sensor", 0, sensor), task("processor", 1, processor)];
    graph(vec![channel], tasks)
}

/// The visits of a place.
pub(crate) fn visits<'a>(graph: &Graph, timing: &'a Timing, place: &str) -> Vec<&'a Row> {
    let is_it = |row: &&Row| graph.tasks[row.task].nodes[row.node].place == place;
    timing.rows.iter().filter(is_it).collect()
}

/// The arrivals at a place, in milliseconds, where they are exact.
pub(crate) fn arrivals(graph: &Graph, timing: &Timing, place: &str) -> Vec<i64> {
    let rows = visits(graph, timing, place);
    rows.iter().filter(|row| row.arrival.is_exact()).map(|r| r.arrival.lo.as_ns() / MS).collect()
}

/// The releases, likewise.
pub(crate) fn releases(graph: &Graph, timing: &Timing, place: &str) -> Vec<i64> {
    let rows = visits(graph, timing, place);
    rows.iter().filter(|row| row.release.is_exact()).map(|r| r.release.lo.as_ns() / MS).collect()
}
