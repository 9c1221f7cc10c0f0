//! Schedules of graphs: what tasks ask for is what their ways through loops, phases, channels and
//! locks are.

use onbeat_model::graph::{
    Binary, Channel, ChannelKind, Expression, Graph, Host, Interval, NetworkChannel, NodeKind,
    PointKind, Policy, Segment, Task, TaskNode,
};
use onbeat_model::time::Span;
use onbeat_model::timing::{LockCycle, LockWait, Schedule};
use onbeat_timing::schedule::{analyse, interference, lock_cycles};

pub(crate) fn ms(ms: i64) -> Span {
    Span::from_ms(ms)
}

fn number(value: i64) -> Expression {
    Expression::Constant(value)
}

pub(crate) fn work(length: i64) -> NodeKind {
    NodeKind::Fragment { execution: Interval::between(Span::ZERO, ms(length)) }
}

fn point(kind: PointKind, period: i64, deadline: i64) -> NodeKind {
    let ms = |ms: i64| number(ms * 1_000_000);
    NodeKind::Point { kind, period: ms(period), deadline: Some(ms(deadline)) }
}

pub(crate) fn soft(period: i64) -> NodeKind {
    point(PointKind::Soft, period, period)
}

fn add(left: Expression, right: i64) -> Expression {
    Expression::Binary(Binary::Add, left.into(), number(right).into())
}

fn less(left: Expression, right: i64) -> Expression {
    Expression::Binary(Binary::Less, left.into(), number(right).into())
}

/// A task of nodes with those that come next; node 0 is added.
pub(crate) fn task(name: &str, nodes: Vec<(NodeKind, &[usize])>) -> Task {
    let start: (NodeKind, &[usize]) = (NodeKind::Start, &[1]);
    let nodes = std::iter::once(start).chain(nodes).enumerate();
    let node = |(at, (what, next)): (usize, (NodeKind, &[usize]))| TaskNode {
        kind: what,
        place: at.to_string(),
        next: next.to_vec(),
        guard: None,
    };
    Task {
        name: name.into(),
        program: "p".into(),
        nodes: nodes.map(node).collect(),
        registers: 1,
        is_first: true,
        ..Task::default()
    }
}

/// Works, then comes to a point, again and again.
pub(crate) fn periodic(name: &str, length: i64, point: NodeKind) -> Task {
    task(name, vec![(work(length), &[2]), (point, &[1])])
}

pub(crate) fn graph(cores: Option<u16>, tasks: Vec<Task>) -> Graph {
    let host = Host { name: "h".into(), wakeup: Interval::ZERO, cores, ..Host::default() };
    Graph { hosts: vec![host], tasks, resources: vec!["m".into()], ..Graph::default() }
}

pub(crate) fn responses(schedule: &Schedule) -> Vec<(usize, Option<Span>)> {
    schedule.tasks.iter().map(|task| (task.task, task.response)).collect()
}

fn one(graph: &Graph) -> Schedule {
    let all = analyse(graph);
    assert_eq!(all.len(), 1, "{all:?}");
    all.into_iter().next().expect("there is one")
}

#[test]
fn open_priorities_are_proposed_and_the_responses_are_the_published_ones() {
    // Burns and Wellings, as in textbook.rs.
    let tasks = [("a", 12, 50), ("b", 10, 40), ("c", 10, 30)];
    let tasks = tasks.map(|(name, c, t)| periodic(name, c, soft(t)));
    let schedule = one(&graph(Some(1), tasks.to_vec()));
    let expected = [(2, Some(ms(10))), (1, Some(ms(20))), (0, Some(ms(52)))];
    assert_eq!(responses(&schedule), expected);
    let proposed: Vec<_> = schedule.tasks.iter().map(|t| (t.priority, t.is_assigned)).collect();
    assert_eq!(proposed, [(Some(80), true), (Some(79), true), (Some(78), true)]);
    assert_eq!(schedule.scaling_ppm, Some(961_538));
    assert_eq!(schedule.utilisation_ppm, Some(823_334));
    assert_eq!(
        schedule.tasks.iter().map(|task| task.is_met()).collect::<Vec<_>>(),
        [true, true, false]
    );
}

#[test]
fn a_task_alone_on_its_processor_is_not_delayed() {
    let tasks = [periodic("a", 12, soft(50)), periodic("b", 0, soft(40))];
    let graph = graph(None, tasks.to_vec());
    assert_eq!(responses(&one(&graph)), [(0, Some(ms(12)))]);
    let all = interference(&graph);
    assert!(all.iter().all(|task| task.completion(ms(7)) == Some(ms(7))));
}

/// Two phases of 10 ms with 1 ms of work, then one of 20 ms with 5 ms.
fn phases() -> Task {
    let counter = || Expression::Register(0);
    let mut phases = task(
        "phases",
        vec![
            (NodeKind::Set { register: 0, value: number(0) }, &[2]),
            (NodeKind::Branch(less(counter(), 2)), &[3, 6]),
            (work(1), &[4]),
            (soft(10), &[5]),
            (NodeKind::Set { register: 0, value: add(counter(), 1) }, &[2]),
            (work(5), &[7]),
            (soft(20), &[1]),
        ],
    );
    phases.priority = Some(9);
    phases
}

#[test]
fn phases_with_known_counters_are_told_apart() {
    let mut low = periodic("low", 8, soft(40));
    low.priority = Some(5);
    let graph = graph(Some(1), vec![phases(), low]);
    let schedule = one(&graph);
    // As any of them at any time it would be 8 + 2·5. The longest phase is the most up to 10 ms,
    // and with the one before it the most up to 20 ms.
    assert_eq!(schedule.tasks[1].response, Some(ms(8 + 5 + 1)));
    assert_eq!(schedule.tasks[0].period, Some(ms(10)));
    assert_eq!(schedule.tasks[0].wcet, ms(5));
    assert_eq!(schedule.utilisation_ppm, Some(375_000));
    let all = interference(&graph);
    assert_eq!(all[0].completion(ms(5)), Some(ms(5)));
    assert_eq!([1, 8, 16].map(|w| all[1].completion(ms(w))), [6, 14, 23].map(|w| Some(ms(w))));
}

#[test]
fn the_response_is_the_longest_and_the_slack_that_of_the_job_with_the_least() {
    let nodes: Vec<(NodeKind, &[usize])> =
        vec![(work(5), &[2]), (soft(10), &[3]), (work(4), &[4]), (soft(5), &[1])];
    let schedule = one(&graph(Some(1), vec![task("t", nodes)]));
    let it = &schedule.tasks[0];
    let found = (it.response, it.deadline, it.slack);
    assert_eq!(found, (Some(ms(5)), Some(ms(5)), Some(ms(5 - 4))));
}

#[test]
fn loops_count_as_often_as_their_counters_say() {
    let counter = || Expression::Register(0);
    let inner = |limit: Expression| {
        let nodes: Vec<(NodeKind, &[usize])> = vec![
            (NodeKind::Set { register: 0, value: number(0) }, &[2]),
            (NodeKind::Branch(limit), &[3, 5]),
            (work(2), &[4]),
            (NodeKind::Set { register: 0, value: add(counter(), 1) }, &[2]),
            (point(PointKind::Firm, 30, 20), &[1]),
        ];
        task("loop", nodes)
    };
    let mut known = inner(less(counter(), 3));
    let schedule = one(&graph(Some(1), vec![known.clone()]));
    assert_eq!((schedule.tasks[0].wcet, schedule.tasks[0].response), (ms(6), Some(ms(6))));
    let mut unknown = inner(Expression::Unknown);
    let schedule = one(&graph(Some(1), vec![unknown.clone()]));
    assert_eq!((schedule.tasks[0].wcet, schedule.tasks[0].response), (Span::MAX, None));
    // Given up at the deadline, it is as long as misses it, and a shorter one is as long as it was.
    for task in [&mut known, &mut unknown] {
        (1..5).for_each(|at| task.nodes[at].guard = Some(5));
    }
    let low = Task { priority: Some(1), ..periodic("low", 5, soft(60)) };
    let missed = ms(20) + Span::from_ns(1);
    for (task, wcet) in [(known, ms(6)), (unknown, missed)] {
        let task = Task { priority: Some(2), ..task };
        let schedule = one(&graph(Some(1), vec![task, low.clone()]));
        assert_eq!(schedule.tasks[0].wcet, wcet);
        assert_eq!(schedule.tasks[0].is_met(), wcet < missed);
        assert_eq!(schedule.tasks[1].response, Some(ms(5) + wcet));
    }
}

/// A writer every 10 ms, and a reader that works for each message.
fn reading(kind: ChannelKind) -> Graph {
    let read = NodeKind::Read { channel: 0, waits: false };
    let write = NodeKind::Write { channel: 0, waits: false };
    let reader = task("reader", vec![(read, &[2]), (work(2), &[1])]);
    let nodes: Vec<(NodeKind, &[usize])> = vec![(work(1), &[2]), (write, &[3]), (soft(10), &[1])];
    let writer = task("writer", nodes);
    let low = periodic("low", 3, soft(40));
    let ranked = [(reader, 9), (writer, 8), (low, 7)];
    let tasks = ranked.map(|(task, priority)| Task { priority: Some(priority), ..task });
    let mut graph = graph(Some(1), tasks.to_vec());
    graph.channels = vec![Channel { name: "c".into(), kind }];
    graph
}

#[test]
fn a_reader_comes_as_often_as_messages_do() {
    let schedule = one(&reading(ChannelKind::Fifo { capacity: 4 }));
    assert_eq!(schedule.tasks[0].period, Some(ms(10)));
    // A write is anywhere in its job, which is over 3 ms after its release: the reader is late by
    // that, and works 2 ms.
    assert_eq!(schedule.tasks[0].response, Some(ms(3 + 2)));
    assert_eq!(schedule.tasks[1].response, Some(ms(1 + 2)));
    assert_eq!(schedule.tasks[2].response, Some(ms(3 + 1 + 2)));
    // A channel that nothing is known of may bring any number of messages.
    let schedule = one(&reading(ChannelKind::Named));
    assert!(schedule.tasks.iter().skip(1).all(|task| task.response.is_none()));
}

#[test]
fn a_channel_of_the_network_brings_messages_at_its_rate() {
    let latency = Interval::between(ms(1), ms(3));
    let network = |latency| NetworkChannel {
        latencies: vec![(0, latency)],
        fixed_delay: ms(5),
        interval: ms(20),
        tolerance: Span::from_us(125),
        catch_up: Span::ZERO,
        early: Span::from_us(125),
        capacity: 8,
    };
    let with = |latency| one(&reading(ChannelKind::Network(network(latency))));
    let schedule = with(latency);
    assert_eq!(schedule.tasks[0].period, Some(ms(20)));
    assert_eq!(schedule.tasks[0].response, Some(ms(2 + 2) + Span::from_us(125)));
    let schedule = with(Interval::from(ms(1)));
    assert_eq!(schedule.tasks[2].response, None);
}

#[test]
fn waits_for_messages_are_not_counted_but_what_comes_late_is() {
    let read = NodeKind::Read { channel: 0, waits: false };
    let nodes: Vec<(NodeKind, &[usize])> =
        vec![(work(1), &[2]), (read, &[3]), (work(1), &[4]), (soft(10), &[1])];
    let high = Task { priority: Some(9), ..task("high", nodes) };
    let low = Task { priority: Some(5), ..periodic("low", 2, soft(20)) };
    let mut graph = graph(Some(1), vec![high, low]);
    graph.channels = vec![Channel { name: "c".into(), kind: ChannelKind::Named }];
    let schedule = one(&graph);
    assert_eq!(responses(&schedule), [(0, Some(ms(2))), (1, Some(ms(2 + 2 * 2)))]);
}

#[test]
fn a_section_of_a_less_urgent_task_blocks() {
    let locking = |name: &str, held: i64, priority| {
        let nodes: Vec<(NodeKind, &[usize])> = vec![
            (work(1), &[2]),
            (NodeKind::Lock(0), &[3]),
            (work(held), &[4]),
            (NodeKind::Unlock(0), &[5]),
            (soft(50), &[1]),
        ];
        Task { priority: Some(priority), ..task(name, nodes) }
    };
    let middle = Task { priority: Some(5), ..periodic("middle", 6, soft(50)) };
    let tasks = vec![locking("high", 1, 9), locking("low", 3, 1), middle];
    let schedule = one(&graph(Some(1), tasks.clone()));
    let expected = [(0, Some(ms(2 + 3))), (2, Some(ms(6 + 2 + 3))), (1, Some(ms(4 + 6 + 2)))];
    assert_eq!(responses(&schedule), expected);
    // Each on a processor of its own, a lock waits for the other task.
    let schedules = analyse(&graph(None, tasks));
    let all: Vec<_> = schedules.iter().map(|schedule| schedule.tasks[0].response).collect();
    assert_eq!(all, [ms(2 + 3), ms(4 + 1), ms(6)].map(Some));
}

#[test]
fn of_a_firm_task_it_is_said_how_many_miss() {
    let rare = Task { priority: Some(9), ..periodic("rare", 6, soft(2_000)) };
    let often = Task { priority: Some(8), ..periodic("often", 2, soft(10)) };
    let mut firm = periodic("firm", 3, point(PointKind::Firm, 10, 10));
    firm.priority = Some(7);
    firm.nodes[1].guard = Some(2);
    let schedule = one(&graph(Some(1), vec![rare, often, firm]));
    assert_eq!(schedule.tasks[2].misses, [(1, 5), (1, 10), (1, 20), (1, 100)]);
    assert!(!schedule.tasks[2].is_met() && schedule.tasks[1].is_met());
}

#[test]
fn tasks_are_spread_over_processors_and_stated_ones_stay() {
    let mut tasks: Vec<Task> =
        ["a", "b", "c", "d"].iter().map(|name| periodic(name, 5, soft(10))).collect();
    tasks[1].cores = vec![1];
    tasks[1].priority = Some(30);
    let schedules = analyse(&graph(Some(2), tasks));
    assert_eq!(schedules.len(), 2);
    for schedule in &schedules {
        assert_eq!((schedule.tasks.len(), schedule.utilisation_ppm), (2, Some(1_000_000)));
        assert_eq!(schedule.scaling_ppm, Some(1_000_000));
        assert!(
            schedule.tasks.iter().all(|task| task.is_met() && task.is_assigned == (task.task != 1))
        );
    }
    assert!(schedules[1].tasks.iter().any(|task| task.task == 1 && task.priority == Some(30)));
}

#[test]
fn policies_rank_tasks_as_the_run_time_does() {
    let mut tasks: Vec<Task> = [20, 10, 10].iter().map(|t| periodic("t", 2, soft(*t))).collect();
    tasks.iter_mut().for_each(|task| task.policy = Policy::RateMonotonic);
    let schedule = one(&graph(Some(1), tasks.clone()));
    let ranks: Vec<_> = schedule.tasks.iter().map(|t| (t.task, t.priority)).collect();
    assert_eq!(ranks, [(1, Some(80)), (2, Some(80)), (0, Some(79))]);
    // Equal ones delay each other.
    assert_eq!(schedule.tasks[0].response, Some(ms(4)));
    assert!(schedule.tasks.iter().all(|task| !task.is_assigned));
}

#[test]
fn under_edf_all_of_the_processor_may_be_used() {
    let edf = |c, t| Task { policy: Policy::Edf, ..periodic("t", c, soft(t)) };
    let tasks = vec![edf(5, 10), edf(7, 14)];
    let one_of = one(&graph(Some(1), tasks.clone()));
    assert!(one_of.tasks.iter().all(|task| task.is_met() && task.priority.is_none()));
    assert_eq!(one_of.scaling_ppm, Some(1_000_000));
    let all = interference(&graph(Some(1), tasks));
    let response = one_of.tasks.iter().find(|t| t.task == 1).and_then(|t| t.response);
    assert_eq!(response, Some(ms(14)));
    assert_eq!(all[1].completion(ms(7)), response);
    // The last one of the seven is still to be done then.
    assert_eq!(all[1].completion(ms(6)), Some(ms(14 - 1)));
    // If the other one were more urgent, it would come once until then.
    assert_eq!(all[1].completion(ms(2)), Some(ms(2 + 5)));
}

#[test]
fn two_hundred_tasks_are_analysed() {
    let mut tasks = Vec::new();
    for host in 0..20 {
        for at in 0..10 {
            let mut task = periodic("t", 1, soft(11 + at));
            (task.host, task.program) = (host, format!("p{host}"));
            tasks.push(task);
        }
    }
    let mut graph = graph(Some(2), tasks);
    graph.hosts = vec![graph.hosts[0].clone(); 20];
    let schedules = analyse(&graph);
    assert_eq!(schedules.iter().map(|schedule| schedule.tasks.len()).sum::<usize>(), 200);
    assert!(schedules.iter().flat_map(|schedule| &schedule.tasks).all(|task| task.is_met()));
}

#[test]
fn what_has_no_bound_bounds_nothing_and_breaks_nothing() {
    let high = Task { priority: Some(9), ..periodic("high", 1, soft(10)) };
    let low = Task { priority: Some(5), ..periodic("low", 1, soft(10)) };
    let endless = NodeKind::Fragment { execution: Interval::from(Span::ZERO) };
    let mut long = graph(Some(1), vec![high.clone(), low.clone()]);
    long.tasks[0].nodes[1].kind = endless;
    let mut sleepy = graph(Some(1), vec![high.clone(), low.clone()]);
    sleepy.hosts[0].wakeup = Interval::from(Span::ZERO);
    let mut unknown = graph(Some(1), vec![high.clone(), low.clone()]);
    let what =
        NodeKind::Point { kind: PointKind::Soft, period: Expression::Unknown, deadline: None };
    unknown.tasks[0].nodes[2].kind = what;
    for policy in [Policy::Fixed, Policy::Edf] {
        for mut graph in [long.clone(), sleepy.clone(), unknown.clone()] {
            graph.tasks.iter_mut().for_each(|task| task.policy = policy);
            if policy == Policy::Edf {
                graph.tasks.iter_mut().for_each(|task| task.priority = None);
            }
            let schedule = one(&graph);
            assert_eq!(schedule.tasks.iter().find(|t| t.task == 1).and_then(|t| t.response), None);
            let low = &interference(&graph)[1];
            assert!(graph.hosts[0].wakeup.hi.is_none() || low.completion(ms(1)).is_none());
        }
    }
}

#[test]
fn what_is_never_unlocked_blocks_without_bound() {
    let locking = |last: NodeKind| {
        let nodes: Vec<(NodeKind, &[usize])> =
            vec![(NodeKind::Lock(0), &[2]), (work(1), &[3]), (last, &[4]), (soft(10), &[1])];
        task("t", nodes)
    };
    let high = Task { priority: Some(9), ..locking(NodeKind::Unlock(0)) };
    let low = Task { priority: Some(5), ..locking(NodeKind::Any) };
    // In its second round it wants what it holds itself, and waits for ever.
    let graph = graph(Some(1), vec![high, low]);
    assert_eq!(responses(&one(&graph)), [(0, None), (1, None)]);
    let waits = |task, node, wants| LockWait { task, node, wants };
    assert_eq!(lock_cycles(&graph), [LockCycle { waits: vec![waits(1, 1, 0)] }]);
}

#[test]
fn what_is_held_over_a_point_blocks_without_bound() {
    let held: Vec<(NodeKind, &[usize])> = vec![
        (NodeKind::Lock(0), &[2]),
        (work(1), &[3]),
        (soft(10), &[4]),
        (NodeKind::Unlock(0), &[5]),
        (soft(10), &[1]),
    ];
    let low = Task { priority: Some(5), ..task("low", held) };
    let graph = graph(Some(1), vec![nested("high", 9, &[(0, 1)], 100), low]);
    assert_eq!(responses(&one(&graph))[0], (0, None));
}

/// Works, then so long in the sections of resources within each other, again and again.
fn nested(name: &str, priority: u8, held: &[(usize, i64)], period: i64) -> Task {
    let locks = held.iter().flat_map(|(resource, ms)| [NodeKind::Lock(*resource), work(*ms)]);
    let unlocks = held.iter().rev().map(|(resource, _)| NodeKind::Unlock(*resource));
    let whats: Vec<NodeKind> = [work(1)].into_iter().chain(locks).chain(unlocks).collect();
    let nexts: Vec<[usize; 1]> = (0..=whats.len()).map(|at| [at + 2]).collect();
    let last = whats.len();
    let nodes = whats.into_iter().chain([soft(period)]).enumerate();
    let nodes = nodes.map(|(at, what)| (what, if at == last { &[1][..] } else { &nexts[at][..] }));
    Task { priority: Some(priority), ..task(name, nodes.collect()) }
}

#[test]
fn who_blocks_may_be_blocked() {
    let high = nested("high", 9, &[(0, 1)], 100);
    let chain = [
        nested("a", 8, &[(3, 16)], 100),
        nested("b", 7, &[(2, 8)], 100),
        nested("c", 6, &[(1, 4), (2, 1)], 100),
        nested("d", 5, &[(0, 2), (1, 1)], 100),
    ];
    let tasks: Vec<Task> = [high].into_iter().chain(chain).collect();
    let all = graph(Some(1), tasks.clone());
    let of = |graph: &Graph| responses(&one(graph))[0].1;
    // d has what it wants; c what d wants; b what c wants. Nobody of them wants what a has.
    assert_eq!(of(&all), Some(ms(2 + 3 + 5 + 8)));
    // Of each resource once, where none is locked within another.
    let mut flat = all.clone();
    flat.tasks[3] = nested("c", 6, &[(0, 4)], 100);
    flat.tasks[4] = nested("d", 5, &[(0, 2)], 100);
    assert_eq!(of(&flat), Some(ms(2 + 4)));
    // What may be any of them blocks like each.
    let mut vague = all;
    vague.resources = ["m0", "m1", "m2", "m3"].map(str::to_owned).to_vec();
    vague.aliases = vec![(3, vec![0, 1, 2])];
    assert_eq!(of(&vague), Some(ms(2 + 3 + 5 + 8 + 16)));
    // Each on a processor of its own: who waits meanwhile is not followed.
    let schedules = analyse(&graph(None, tasks));
    let all: Vec<_> = schedules.iter().map(|s| s.tasks[0].response.is_some()).collect();
    assert_eq!(all, [false, true, false, false, false]);
}

#[test]
fn who_is_blocked_may_also_wait_for_what_it_held_itself() {
    let tasks = vec![
        nested("high", 9, &[(0, 1), (1, 1)], 100),
        nested("middle", 5, &[(0, 2)], 100),
        nested("low", 1, &[(1, 3)], 100),
    ];
    let all = interference(&graph(Some(1), tasks));
    assert_eq!(all[1].completion(ms(4)), Some(ms(4 + (3 + 2) + 3)));
}

#[test]
fn a_circle_needs_different_tasks_that_can_hold_all_of_it_at_once() {
    let two = |a: &[(usize, i64)], b: &[(usize, i64)]| {
        let tasks = vec![nested("a", 9, a, 100), nested("b", 8, b, 100)];
        let mut graph = graph(Some(1), tasks);
        graph.tasks.push(Task { priority: Some(7), ..periodic("c", 1, soft(100)) });
        graph
    };
    let opposite = two(&[(0, 1), (1, 1)], &[(1, 1), (0, 1)]);
    let waits = |task, node, wants| LockWait { task, node, wants };
    assert_eq!(lock_cycles(&opposite), [LockCycle { waits: vec![waits(0, 4, 1), waits(1, 4, 0)] }]);
    assert_eq!(responses(&one(&opposite)), [(0, None), (1, None), (2, Some(ms(1 + 6)))]);
    assert_eq!(lock_cycles(&two(&[(0, 1), (1, 1)], &[(0, 1), (1, 1)])), []);
    assert_eq!(lock_cycles(&two(&[(2, 1), (0, 1), (1, 1)], &[(2, 1), (1, 1), (0, 1)])), []);
    // Who wants what one of them holds waits for ever as well.
    let mut behind = opposite.clone();
    behind.tasks[2] = nested("c", 7, &[(0, 1)], 100);
    assert_eq!(responses(&one(&behind)), [(0, None), (1, None), (2, None)]);
    // A lock of which nobody can say which one it is may be the first.
    let mut vague = two(&[(0, 1), (1, 1)], &[(1, 1), (2, 1)]);
    assert_eq!(lock_cycles(&vague), []);
    vague.resources = ["m0", "m1", "m2"].map(str::to_owned).to_vec();
    vague.aliases = vec![(2, vec![0])];
    assert_eq!(lock_cycles(&vague), [LockCycle { waits: vec![waits(0, 4, 1), waits(1, 4, 2)] }]);
    let mut tried = opposite.clone();
    tried.tasks[1].nodes[4].kind = NodeKind::Take(0);
    assert_eq!(lock_cycles(&tried), []);
    let mut alone = opposite;
    alone.tasks.remove(1);
    assert_eq!(lock_cycles(&alone), []);
    // Three in a ring.
    let ring = [(0, 1), (1, 2), (2, 0)].map(|(a, b)| nested("t", 9, &[(a, 1), (b, 1)], 100));
    let found = lock_cycles(&graph(Some(1), ring.to_vec()));
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].waits.iter().map(|w| w.task).collect::<Vec<_>>(), [0, 1, 2]);
}

#[test]
fn of_more_circles_than_are_told_nobody_has_a_bound() {
    let pair = |n: usize| [[(2 * n, 1), (2 * n + 1, 1)], [(2 * n + 1, 1), (2 * n, 1)]];
    let tasks: Vec<Task> = (0..18).flat_map(pair).map(|of| nested("t", 9, &of, 900)).collect();
    let graph = graph(Some(1), tasks);
    assert_eq!(lock_cycles(&graph).len(), 16);
    assert!(responses(&one(&graph)).iter().all(|(_, response)| response.is_none()));
}

#[test]
fn a_task_that_ends_delays_others_once() {
    let once: Vec<(NodeKind, &[usize])> =
        vec![(work(3), &[2]), (soft(5), &[3]), (work(2), &[4]), (NodeKind::End, &[])];
    let once = Task { priority: Some(9), ..task("once", once) };
    let low = Task { priority: Some(5), ..periodic("low", 4, soft(10)) };
    let schedule = one(&graph(Some(1), vec![once, low]));
    // Its second job is released at the point, 5 ms behind the first; both delay one other job.
    assert_eq!(responses(&schedule), [(0, Some(ms(3))), (1, Some(ms(4 + 5)))]);
    assert_eq!((schedule.tasks[0].period, schedule.tasks[0].slack), (Some(ms(5)), Some(ms(2))));
    // What ends uses nothing in the long run.
    assert_eq!(schedule.utilisation_ppm, Some(400_000));
}

#[test]
fn late_wake_ups_come_before_work_and_bring_jobs_together() {
    let high = Task { priority: Some(9), ..periodic("high", 2, soft(10)) };
    let low = Task { priority: Some(5), ..periodic("low", 7, soft(20)) };
    let mut graph = graph(Some(1), vec![high, low]);
    graph.hosts[0].wakeup = Interval::between(Span::ZERO, ms(1));
    // 7 + 2 comes to the second release of the more urgent one if its first was late.
    assert_eq!(responses(&one(&graph)), [(0, Some(ms(1 + 2))), (1, Some(ms(1 + 7 + 2)))]);
    graph.tasks[1].nodes[1].kind = work(8);
    assert_eq!(responses(&one(&graph)), [(0, Some(ms(1 + 2))), (1, Some(ms(1 + 8 + 2 * 2)))]);
}

#[test]
fn segments_come_late_and_take_what_their_aborts_take_too() {
    let up_to = |hi| Interval::between(Span::ZERO, ms(hi));
    let firm = periodic("high", 0, point(PointKind::Firm, 10, 10));
    let mut high = Task { priority: Some(9), ..firm };
    high.nodes[1].guard = Some(2);
    let (execution, jitter, abort) = (up_to(3), up_to(1), up_to(2));
    let segment = |from| Segment { from, to: 2, execution, jitter, abort };
    high.segments = vec![segment(0), segment(2)];
    let low = Task { priority: Some(5), ..periodic("low", 4, soft(20)) };
    let mut graph = graph(Some(1), vec![high, low]);
    graph.hosts[0].wakeup = up_to(1);
    // Late by the wake-up and by its jitter; the less urgent one meets it twice for that.
    let expected = [(0, Some(ms(1 + 1 + 3 + 2))), (1, Some(ms(1 + 4 + 2 * (3 + 2))))];
    assert_eq!(responses(&one(&graph)), expected);
}
