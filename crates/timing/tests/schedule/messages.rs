//! Tasks that are released by messages, by hand.

use crate::graphs::{graph, ms, periodic, responses, soft, task, work};
use onbeat_model::graph::{
    Channel, ChannelKind, Graph, Host, Interval, NetworkChannel, NodeKind, Task, TaskNode,
};
use onbeat_model::time::Span;
use onbeat_timing::schedule::{analyse, interference};

fn write(channel: usize) -> NodeKind {
    NodeKind::Write { channel, waits: false }
}

fn read(channel: usize) -> NodeKind {
    NodeKind::Read { channel, waits: false }
}

fn fifo() -> Channel {
    Channel { name: "c".into(), kind: ChannelKind::Fifo { capacity: 64 } }
}

/// Reads each message of a channel, works 1 ms, writes another one.
fn stage(from: usize, to: usize) -> Task {
    task("stage", vec![(read(from), &[2]), (work(1), &[3]), (write(to), &[1])])
}

/// A task of 1 ms every 10 ms, and two stages behind it.
fn pipeline(priorities: [u8; 3]) -> Graph {
    let first = task("first", vec![(work(1), &[2]), (write(0), &[3]), (soft(10), &[1])]);
    let tasks = [first, stage(0, 1), stage(1, 2)].into_iter().zip(priorities);
    let tasks = tasks.map(|(task, priority)| Task { priority: Some(priority), ..task });
    let mut graph = graph(Some(1), tasks.collect());
    graph.channels = vec![fifo(), fifo(), fifo()];
    graph
}

fn all(graph: &Graph) -> Vec<Option<Span>> {
    let mut all = vec![None; graph.tasks.len()];
    let schedules = analyse(graph);
    for (task, response) in schedules.iter().flat_map(responses) {
        all[task] = response;
    }
    all
}

#[test]
fn in_a_pipeline_each_task_is_as_late_as_the_one_before_it() {
    // 1; late by 1, and 1 + 1 with the first one; late by 3, and 1 + 1 + 1 with both.
    assert_eq!(all(&pipeline([9, 8, 7])), [1, 3, 6].map(|r| Some(ms(r))));
    // The first one is delayed by what it releases, which is late because of that: 1 + 1 + 1;
    // late by 3, and 1 + 1; late by 5, and 1. None comes twice: 3 + 5 is not 10.
    assert_eq!(all(&pipeline([7, 8, 9])), [3, 5, 6].map(|r| Some(ms(r))));
    let interference = interference(&pipeline([7, 8, 9]));
    assert_eq!(interference[0].completion(ms(1)), Some(ms(3)));
    // 5 ms more, and the last one's next message may come within it.
    assert_eq!(interference[0].completion(ms(4)), Some(ms(4 + 1 + 2)));
}

#[test]
fn two_tasks_that_wait_for_each_other_come_as_often_as_the_one_that_time_releases() {
    // The first one writes, then waits for what the other one answers.
    let first = vec![(work(1), &[2][..]), (write(0), &[3]), (read(1), &[4]), (soft(10), &[1])];
    let first = Task { priority: Some(5), ..task("first", first) };
    let answer = Task { priority: Some(9), ..stage(0, 1) };
    let mut graph = graph(Some(1), vec![first, answer]);
    graph.channels = vec![fifo(), fifo()];
    // 1 + 2 · 1: after its wait it may find the other one again. That is late by 3.
    assert_eq!(all(&graph), [3, 4].map(|r| Some(ms(r))));
}

#[test]
fn without_a_bound_of_the_writer_the_reader_may_find_what_its_channel_holds() {
    let mut graph = pipeline([9, 8, 7]);
    // The stage has no end beside what uses all of the processor.
    let busy = Task { priority: Some(10), ..periodic("busy", 5, soft(5)) };
    graph.tasks.push(busy);
    let other = Host { name: "other".into(), cores: Some(1), ..Host::default() };
    graph.hosts.push(other);
    graph.tasks[2].host = 1;
    graph.hosts[1].wakeup = Interval::ZERO;
    let all = all(&graph);
    assert_eq!(&all[..2], [None, None]);
    // A job of the first task is over within its period, 64 are left, and there is one more.
    assert_eq!(all[2], Some(ms(10 + 65 * 10 + 1)));
}

/// 4 ms every 20 ms, delayed by 2 ms every 10 ms, write a channel to another host, on which 3 ms
/// are done for each message, before a long job.
fn chain(interval: i64, tolerance: i64, waits: bool, long: i64) -> Graph {
    let exactly = NodeKind::Fragment { execution: Interval::exactly(ms(4)) };
    let nodes: Vec<(NodeKind, &[usize])> =
        vec![(exactly, &[2]), (write(0), &[3]), (soft(20), &[1])];
    let read = NodeKind::Read { channel: 0, waits };
    let tasks = [
        (periodic("often", 2, soft(10)), 9, 0),
        (task("sender", nodes), 8, 0),
        (task("receiver", vec![(read, &[2]), (work(3), &[1])]), 9, 1),
        (periodic("long", long, soft(40)), 8, 1),
    ];
    let place = |(task, priority, host)| Task { priority: Some(priority), host, ..task };
    let mut graph = graph(Some(1), tasks.map(place).to_vec());
    graph.hosts.push(Host { name: "other".into(), ..graph.hosts[0].clone() });
    let network = NetworkChannel {
        latencies: vec![(1, Interval::between(ms(1), ms(3)))],
        fixed_delay: ms(5),
        interval: ms(interval),
        tolerance: ms(tolerance),
        catch_up: Span::ZERO,
        early: ms(tolerance),
        capacity: 64,
    };
    graph.channels = vec![Channel { name: "c".into(), kind: ChannelKind::Network(network) }];
    graph
}

#[test]
fn over_a_network_the_jitters_of_writer_and_latency_add_up() {
    // The sender: 4 + 2 · 2, as the channel's rate may let it wait once, so its message is late by
    // 8 - 4; the latency varies by 3 - 1. The long job is met twice from 20 - 6 ms on.
    let with = |long| all(&chain(5, 0, false, long));
    assert_eq!(with(11), [2, 8, 6 + 3, 11 + 3].map(|r| Some(ms(r))));
    assert_eq!(with(12)[3], Some(ms(12 + 2 * 3)));
    // A rate lets no message come later than its tolerance after the one before it.
    assert_eq!(all(&chain(20, 1, false, 11))[2], Some(ms(1 + 2 + 3)));
    // Who waits for the fixed delay does not see the latency.
    assert_eq!(all(&chain(20, 1, true, 11))[2], Some(ms(1 + 3)));
    // A rate that is too low for the sender holds it up, and its messages come as the rate says.
    let slow = analyse(&chain(30, 0, false, 11));
    assert_eq!((slow[1].tasks[0].period, slow[1].tasks[0].response), (Some(ms(30)), Some(ms(5))));
}

#[test]
fn what_is_done_before_the_first_message_may_come_right_before_it() {
    let mut graph = pipeline([9, 8, 7]);
    // The second one works before it reads for the first time.
    let stage = &mut graph.tasks[1];
    stage.nodes.push(TaskNode { next: vec![1], ..stage.nodes[2].clone() });
    stage.nodes[0].next = vec![4];
    let all = all(&graph);
    assert_eq!(all[1], Some(ms(3 + 10)));
    // So the last one may find two of its jobs, and the first task's.
    assert_eq!(all[2], Some(ms(13 + 1 + 2 + 1)));
}

#[test]
fn who_starts_late_finds_messages() {
    let mut graph = pipeline([9, 8, 7]);
    graph.tasks[2].is_first = false;
    let starter = |length| {
        let run = NodeKind::Run { task: 2 };
        let nodes: Vec<(NodeKind, &[usize])> =
            vec![(work(length), &[2]), (run, &[3]), (NodeKind::End, &[])];
        Task { priority: Some(1), ..task("main", nodes) }
    };
    graph.tasks.push(starter(0));
    assert_eq!(all(&graph)[2], Some(ms(6)));
    graph.tasks[3] = starter(1);
    // As many as its channel holds; each is done before the next one could come.
    assert_eq!(all(&graph)[2], Some(ms(3 + 64 * 10 + 1 + 1 + 1)));
}

/// A host's pipeline of six tasks that work up to 100 µs, the last of which writes to the next
/// host, and four periodic tasks.
fn host(graph: &mut Graph, host: usize) {
    let us = Span::from_us;
    let work = || NodeKind::Fragment { execution: Interval::between(us(50), us(100)) };
    let first = graph.channels.len();
    graph.channels.extend((0..5).map(|_| fifo()));
    let network = NetworkChannel {
        latencies: vec![(host + 1, Interval::between(us(20), us(300)))],
        fixed_delay: Span::ZERO,
        interval: ms(10),
        tolerance: us(125),
        catch_up: Span::ZERO,
        early: us(125),
        capacity: 64,
    };
    graph.channels.push(Channel { name: "c".into(), kind: ChannelKind::Network(network) });
    let begin: Vec<(NodeKind, &[usize])> =
        vec![(work(), &[2]), (write(first), &[3]), (soft(10), &[1])];
    let mut tasks = vec![task("t", begin)];
    tasks.extend(
        (first..first + 5)
            .map(|at| task("t", vec![(read(at), &[2]), (work(), &[3]), (write(at + 1), &[1])])),
    );
    let periods = [5, 10, 20, 50].into_iter();
    tasks.extend(periods.map(|t| task("t", vec![(work(), &[2]), (soft(t), &[1])])));
    if host > 0 {
        tasks.push(task("in", vec![(read(first - 1), &[2]), (work(), &[1])]));
    }
    graph.tasks.extend(tasks.into_iter().map(|task| Task { host, ..task }));
    let wakeup = Interval::between(Span::from_ns(500), us(5));
    let name = host.to_string();
    graph.hosts.push(Host { name, wakeup, cores: Some(2), ..Host::default() });
}

#[test]
fn pipelines_on_twenty_hosts_are_as_late_as_they_are() {
    let mut graph = Graph::default();
    (0..20).for_each(|at| host(&mut graph, at));
    let all = all(&graph);
    // Taken as independent, each of six stages may meet all others again, but none comes twice.
    assert!(all.iter().all(|response| response.is_some_and(|response| response < ms(10))));
}
