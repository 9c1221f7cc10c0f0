//! Studies of time-flow graphs, made by hand: what the analysis would say of them.

use onbeat_model::graph::{
    Binary, Channel, ChannelKind, Expression, Graph, Host, Interval, NetworkChannel, NodeKind,
    PointKind, Policy, Task, TaskNode,
};
use onbeat_model::plan::BoundTerm;
use onbeat_model::time::Span;
use onbeat_model::timing::{
    Cause, CauseKind, Chain, ChainTime, Component, Course, Hazard, Level, Miss, OpenReason,
    PeriodicRegime, Row, Schedule, ScheduledTask, Timing, TimingReport,
};

pub(crate) const fn ms(ms: i64) -> Span {
    Span::from_ms(ms)
}

fn at(time: i64) -> Interval {
    Interval::exactly(ms(time))
}

pub(crate) fn node(what: NodeKind, place: &str, next: &[usize]) -> TaskNode {
    TaskNode { kind: what, place: place.to_owned(), next: next.to_owned(), guard: None }
}

fn point(kind: PointKind, period: i64) -> NodeKind {
    let period = Expression::Constant(ms(period).as_ns());
    let deadline = (kind != PointKind::Soft).then(|| period.clone());
    NodeKind::Point { kind, period, deadline }
}

fn code() -> NodeKind {
    NodeKind::Fragment { execution: Interval::ZERO }
}

fn write(channel: usize) -> NodeKind {
    NodeKind::Write { channel, waits: false }
}

fn read(channel: usize) -> NodeKind {
    NodeKind::Read { channel, waits: false }
}

pub(crate) fn task(name: &str, host: usize, file: &str, nodes: Vec<TaskNode>) -> Task {
    let (name, file) = (name.to_owned(), file.to_owned());
    Task { name, host, file, nodes, is_first: true, ..Task::default() }
}

/// A channel of the description that is reserved if its latency is bounded.
pub(crate) fn network(name: &str, latency: Interval) -> Channel {
    let network = NetworkChannel {
        latencies: vec![(0, latency)],
        fixed_delay: ms(2),
        interval: ms(10),
        tolerance: Span::ZERO,
        catch_up: Span::ZERO,
        early: Span::ZERO,
        capacity: 16,
    };
    Channel { name: name.to_owned(), kind: ChannelKind::Network(network) }
}

pub(crate) fn fifo(name: &str) -> Channel {
    Channel { name: name.to_owned(), kind: ChannelKind::Fifo { capacity: 4 } }
}

fn row(task: usize, node: usize, round: u32, arrival: Interval, release: Interval) -> Row {
    let took = Interval::exactly(release.lo - arrival.lo);
    Row {
        task,
        node,
        iteration: if round == 0 { Vec::new() } else { vec![round] },
        arrival,
        release,
        took,
        is_certain: true,
        before: Vec::new(),
        messages: Vec::new(),
    }
}

/// The program of Listing 3 in the paper, with the places of its lines.
pub(crate) fn listing3_graph(channel: Channel) -> Graph {
    let sensor = vec![
        node(NodeKind::Start, "1", &[1]),
        node(NodeKind::Any, "3", &[2]),
        node(code(), "4", &[3]),
        node(write(0), "5", &[4]),
        node(point(PointKind::Firm, 10), "6", &[1]),
    ];
    let processor = vec![
        node(NodeKind::Start, "10", &[1]),
        node(NodeKind::Any, "11", &[2]),
        node(read(0), "12", &[3]),
        node(code(), "13", &[1]),
    ];
    let tasks = vec![
        task("sensor", 0, "listing-3.c", sensor),
        task("processor", 0, "listing-3.c", processor),
    ];
    let hosts = vec![Host::default()];
    Graph { hosts, channels: vec![channel], tasks, ..Graph::default() }
}

/// Its table over a channel of some latency: with none, Table 1 of the paper.
fn listing3_timing(level: Level, latency: Interval) -> Timing {
    let mut rows = vec![row(0, 0, 0, at(0), at(0))];
    for round in 1..=3 {
        let now = at(i64::from(round - 1) * 10);
        rows.extend([1, 2, 3].map(|node| row(0, node, round, now, now)));
        rows.push(row(0, 4, round, now, now + at(10)));
    }
    rows.push(row(1, 0, 0, at(0), at(0)));
    let mut now = at(0);
    for round in 1..=3 {
        let there = at(i64::from(round - 1) * 10) + latency;
        rows.push(row(1, 1, round, now, now));
        let mut reading = row(1, 2, round, now, now.later(there));
        reading.messages = vec![(4 * round - 1) as usize];
        rows.push(reading);
        now = now.later(there);
        rows.push(row(1, 3, round, now, now));
    }
    let (tasks, parts) = (vec![Some((1, 1)), Some((2, 1))], vec![Some((1, ms(10))); 2]);
    let rounds = vec![Some((1, 1)), Some((2, 1))];
    let course = Course::Repeats { rounds, shift: ms(10) };
    let components = vec![Component { tasks: vec![0, 1], course }];
    let pattern = PeriodicRegime { tasks, parts, shift: ms(10) };
    Timing { level, rows, components, regime: Some(pattern), ..Timing::default() }
}

/// Listing 3 over a channel.
pub(crate) fn listing3(channel: Channel) -> TimingReport {
    let latency = match &channel.kind {
        ChannelKind::Network(network) => network.latencies[0].1,
        _ => Interval::ZERO,
    };
    TimingReport {
        name: "listing-3".to_owned(),
        graph: listing3_graph(channel),
        program: listing3_timing(Level::Program, latency),
        platform: listing3_timing(Level::Platform, latency),
        ..TimingReport::default()
    }
}

/// Listing 3 over a channel that promises nothing.
pub(crate) fn best_effort() -> TimingReport {
    let mut study = listing3(network("status", Interval::from(Span::from_us(20))));
    for timing in [&mut study.program, &mut study.platform] {
        // Writing end, reading end and process() of each round.
        let culprit = |round: usize| Cause {
            kind: CauseKind::BestEffort { channel: 0 },
            row: 15 + 3 * (round - 1),
            path: vec![3 + 4 * (round - 1), 15 + 3 * (round - 1), 16 + 3 * (round - 1)],
        };
        timing.causes = (1..=3).map(culprit).collect();
    }
    study
}

/// A fork of ways, a loop in a loop, a lock, and points that may be late.
pub(crate) fn late() -> TimingReport {
    let condition = Expression::Binary(
        Binary::Less,
        Box::new(Expression::Register(0)),
        Box::new(Expression::Constant(3)),
    );
    let add = Expression::Binary(
        Binary::Add,
        Box::new(Expression::Register(0)),
        Box::new(Expression::Constant(1)),
    );
    let between = |lo, hi| NodeKind::Fragment { execution: Interval::between(ms(lo), ms(hi)) };
    let mut nodes = vec![
        node(NodeKind::Start, "1", &[1]),
        node(NodeKind::Any, "3", &[2]),
        node(between(1, 4), "4", &[3]),
        node(NodeKind::Branch(condition), "5", &[4, 6]),
        node(NodeKind::Set { register: 0, value: add }, "6", &[5]),
        node(between(2, 7), "7", &[3]),
        node(NodeKind::Any, "9", &[7, 8]),
        node(NodeKind::Lock(0), "10", &[9]),
        node(write(0), "helper.h:12", &[10]),
        node(NodeKind::Unlock(0), "11", &[10]),
        node(point(PointKind::Firm, 10), "14", &[1]),
    ];
    for guarded in &mut nodes[2..10] {
        guarded.guard = Some(10);
    }
    let graph = Graph {
        hosts: vec![Host { name: "arm".to_owned(), ..Host::default() }],
        channels: vec![fifo("log")],
        resources: vec!["bus".to_owned()],
        aliases: Vec::new(),
        tasks: vec![task("control", 0, "control.c", nodes)],
    };
    let mut timing = Timing { level: Level::Platform, ..Timing::default() };
    for round in 1..=2 {
        let from = i64::from(round - 1) * 10;
        let code = Interval::between(ms(from + 1), ms(from + 4));
        timing.rows.push(row(0, 2, round, at(from), code));
        let mut writing = row(0, 8, round, code, code);
        writing.is_certain = false;
        timing.rows.push(writing);
        let arrival = Interval::between(ms(from + 1), ms(from + 12));
        timing.rows.push(row(0, 10, round, arrival, arrival.later(at(from + 10))));
        let last = timing.rows.len() - 1;
        timing.misses.push(Miss {
            row: last,
            kind: PointKind::Firm,
            by: Some(ms(i64::from(round))),
            is_certain: false,
            path: vec![last - 2, last - 1, last],
        });
        timing.hazards.push(Hazard::Overflow { row: last - 1, channel: 0 });
    }
    let schedules = vec![fixed_priorities(), edf()];
    timing.open = vec![timing.rows.len() - 1];
    let course = Course::Open { rounds: 2, why: OpenReason::Full { channel: 0 } };
    timing.components = vec![Component { tasks: vec![0], course }];
    let program = Timing { misses: Vec::new(), ..timing.clone() };
    TimingReport {
        name: "late".to_owned(),
        graph,
        program,
        platform: timing,
        schedules,
        ..TimingReport::default()
    }
}

fn fixed_priorities() -> Schedule {
    Schedule {
        host: 0,
        core: 0,
        tasks: vec![ScheduledTask {
            task: 0,
            priority: Some(40),
            is_assigned: true,
            period: Some(ms(10)),
            deadline: Some(ms(10)),
            wcet: ms(4),
            response: Some(ms(12)),
            slack: Some(ms(-2)),
            misses: vec![(1, 3), (2, 10)],
        }],
        utilisation_ppm: Some(400_001),
        scaling_ppm: Some(833_333),
    }
}

fn edf() -> Schedule {
    let task = ScheduledTask {
        task: 0,
        priority: None,
        is_assigned: false,
        period: None,
        deadline: None,
        wcet: Span::from_us(1_500),
        response: None,
        slack: None,
        misses: Vec::new(),
    };
    Schedule { core: 1, tasks: vec![task], utilisation_ppm: Some(0), ..Schedule::default() }
}

/// A task that starts another one, on its right and on its left.
pub(crate) fn starting() -> TimingReport {
    let main = |task: usize| {
        vec![
            node(NodeKind::Start, "1", &[1]),
            node(NodeKind::Run { task }, "2", &[2]),
            node(NodeKind::End, "3", &[]),
        ]
    };
    let mut tasks = vec![task("right", 0, "a.c", main(1)), cycle("step", 0, &[], false)];
    tasks[1].is_first = false;
    tasks.extend([cycle("other", 1, &[], true), task("left", 1, "b.c", main(2))]);
    let hosts = ["a", "b"].map(|name| Host { name: name.to_owned(), ..Host::default() });
    let graph = Graph { hosts: hosts.to_vec(), tasks, ..Graph::default() };
    TimingReport { name: "starting".to_owned(), graph, ..TimingReport::default() }
}

/// Eight tasks on four hosts with 54 nodes: sensors, filters, a controller and actuators, joined
/// over the network and within hosts, with two chains.
pub(crate) fn fifty() -> TimingReport {
    let hosts = ["camera", "arm", "gateway", "base"].map(|name| Host {
        name: name.to_owned(),
        cores: Some(1),
        ..Host::default()
    });
    let bounded = Interval::between(Span::from_us(20), Span::from_us(640));
    let channels = vec![
        network("camera_image", bounded),
        network("joint_state", bounded),
        network("joint_targets", bounded),
        network("diagnostics", Interval::from(Span::from_us(20))),
        fifo("camera.raw"),
        fifo("gateway.plan"),
        network("base_speed", bounded),
    ];
    let tasks = vec![
        cycle("grab", 0, &[write(4)], false),
        cycle("compress", 0, &[read(4), write(0)], true),
        cycle("encoders", 1, &[write(1), write(3)], false),
        cycle("servo", 1, &[read(2)], true),
        cycle("plan", 2, &[read(0), read(1), write(5)], true),
        cycle("command", 2, &[read(5), write(2), write(6)], false),
        cycle("drive", 3, &[read(6)], true),
        cycle("monitor", 3, &[read(3)], false),
    ];
    let graph = Graph { hosts: hosts.to_vec(), channels, tasks, ..Graph::default() };
    let mut study = TimingReport { name: "robot".to_owned(), graph, ..TimingReport::default() };
    study.program = all_rows(&study.graph, Level::Program);
    study.platform = all_rows(&study.graph, Level::Platform);
    open_diagnostics(&mut study.program);
    study.chains = vec![chain("see_and_move", &[0, 2], 12), chain("feel_and_move", &[1, 2], 2)];
    study.schedules = (0..4).map(|host| rates(&study.graph, host)).collect();
    study
}

/// A task that does something again and again, on one of two ways if it chooses.
fn cycle(name: &str, host: usize, ends: &[NodeKind], chooses: bool) -> Task {
    let mut nodes = vec![node(NodeKind::Start, "1", &[1]), node(NodeKind::Any, "3", &[2])];
    let mut line = 3;
    let mut add = |nodes: &mut Vec<TaskNode>, what: NodeKind, next: &[usize]| {
        line += 1;
        nodes.push(node(what, &line.to_string(), next));
    };
    for end in ends {
        let next = nodes.len() + 1;
        add(&mut nodes, end.clone(), &[next]);
    }
    let here = nodes.len();
    if chooses {
        add(&mut nodes, NodeKind::Branch(Expression::Unknown), &[here + 1, here + 2]);
        add(&mut nodes, code(), &[here + 3]);
        add(&mut nodes, code(), &[here + 3]);
    } else {
        add(&mut nodes, code(), &[here + 1]);
    }
    let kind = if chooses { PointKind::Firm } else { PointKind::Soft };
    add(&mut nodes, point(kind, 10), &[1]);
    task(name, host, &format!("{name}.c"), nodes)
}

/// Three rounds of all nodes.
fn all_rows(graph: &Graph, level: Level) -> Timing {
    let mut rows = Vec::new();
    for (number, task) in graph.tasks.iter().enumerate() {
        rows.push(row(number, 0, 0, at(0), at(0)));
        for round in 1..=3 {
            let now = at(i64::from(round - 1) * 10);
            for (at_node, it) in task.nodes.iter().enumerate().skip(1) {
                let release = match it.kind {
                    NodeKind::Point { .. } => at(i64::from(round) * 10),
                    NodeKind::Read { .. } => {
                        now + Interval::between(Span::ZERO, Span::from_us(640))
                    }
                    _ => now,
                };
                rows.push(row(number, at_node, round, now, release));
            }
        }
    }
    // All repeats after two rounds: what is alone, after each.
    let tasks = vec![Some((1, 2)); graph.tasks.len()];
    let parts = vec![Some((1, ms(10))); graph.tasks.len()];
    let course = || Course::Repeats { rounds: vec![Some((1, 1))], shift: ms(10) };
    let alone = |task| Component { tasks: vec![task], course: course() };
    let components = (0..graph.tasks.len()).map(alone).collect();
    let pattern = PeriodicRegime { tasks, parts, shift: ms(20) };
    Timing { level, rows, components, regime: Some(pattern), ..Timing::default() }
}

/// What is read from the best-effort channel has no bound.
fn open_diagnostics(timing: &mut Timing) {
    let place = |task, node| move |row: &Row| (row.task, row.node) == (task, node);
    let rows = &mut timing.rows;
    let written = rows.iter().position(place(2, 3)).expect("encoders write");
    let read = rows.iter().position(place(7, 2)).expect("monitor reads");
    rows[read].release.hi = None;
    rows[read + 1].arrival.hi = None;
    rows[read + 1].release.hi = None;
    let path = vec![written, read, read + 1];
    timing.causes.push(Cause { kind: CauseKind::BestEffort { channel: 3 }, row: read, path });
}

fn chain(name: &str, channels: &[usize], deadline: i64) -> Chain {
    let term = |what: &str, us| BoundTerm { what: what.to_owned(), span: Span::from_us(us) };
    let time = ChainTime {
        latency: Some(Interval::between(Span::from_us(40), Span::from_us(11_280))),
        terms: vec![
            term("channel to gateway", 640),
            term("waiting for plan's release", 9_000),
            term("plan, execution and interference", 1_000),
            term("channel to arm", 640),
        ],
        age: Some(ms(21)),
        reaction: None,
        is_cut_short: false,
    };
    let (age, reaction) = (Some(ms(25)), (deadline < 10).then(|| ms(30)));
    let (name, channels) = (name.to_owned(), channels.to_owned());
    Chain { name, channels, deadline: Some(ms(deadline)), age, reaction, time }
}

fn rates(graph: &Graph, host: usize) -> Schedule {
    let tasks = graph.tasks.iter().enumerate().filter(|(_, task)| task.host == host);
    let scheduled = |(at, (task, of)): (usize, (usize, &Task))| ScheduledTask {
        task,
        priority: (of.policy == Policy::Fixed).then_some(50 - at as u8),
        is_assigned: host == 0,
        period: Some(ms(10)),
        deadline: Some(ms(10)),
        wcet: ms(2),
        response: Some(ms(2 + 2 * at as i64)),
        slack: Some(ms(8 - 2 * at as i64)),
        misses: Vec::new(),
    };
    let tasks = tasks.enumerate().map(scheduled).collect();
    Schedule { host, core: 0, tasks, utilisation_ppm: Some(400_000), scaling_ppm: Some(2_500_000) }
}

/// Names that would be something else if they were not escaped.
pub(crate) fn hostile() -> TimingReport {
    let mut study = best_effort();
    let name = "<img src=x onerror=alert(1)></script>\"{{ 7*7 }}";
    study.name = name.to_owned();
    study.graph.hosts[0].name = name.to_owned();
    study.graph.channels[0].name = name.to_owned();
    study.graph.tasks[0].name = name.to_owned();
    study.graph.tasks[0].file = name.to_owned();
    study.graph.tasks[1].nodes[2].place = name.to_owned();
    study.chains = vec![chain(name, &[0], 1)];
    study.chains[0].time.terms[0].what = name.to_owned();
    study.schedules = vec![rates(&study.graph, 0)];
    study
}
