//! Chains over tables written by hand. Times are in microseconds, and each test derives what it
//! expects.

use super::chain;
use onbeat_model::graph::{
    Channel, ChannelKind, Graph, Host, Interval, Latest, NetworkChannel, NodeKind, Task, TaskNode,
};
use onbeat_model::time::Span;
use onbeat_model::timing::{
    ChainTime, Component, Course, Level, OpenReason, PeriodicRegime, Row, Timing,
};

type Us = (i64, i64);

fn span((lo, hi): Us) -> Interval {
    Interval::between(Span::from_us(lo), Span::from_us(hi))
}

/// A graph and its table in the making.
#[derive(Default)]
struct Made {
    graph: Graph,
    timing: Timing,
}

const PERIOD: i64 = 10_000;

impl Made {
    /// Network channels with latencies to each host, and a fixed delay of 2,000.
    fn new(hosts: usize, channels: &[&[(usize, Us)]]) -> Self {
        let mut made = Self::default();
        made.graph.hosts = vec![Host::default(); hosts];
        let channel = |latencies: &&[(usize, Us)]| {
            let latencies = latencies.iter().map(|(host, latency)| (*host, span(*latency)));
            let kind = ChannelKind::Network(NetworkChannel {
                latencies: latencies.collect(),
                fixed_delay: Span::from_us(2_000),
                interval: Span::from_us(1),
                tolerance: Span::ZERO,
                catch_up: Span::ZERO,
                early: Span::ZERO,
                capacity: 1_024,
            });
            Channel { name: "c".to_owned(), kind }
        };
        made.graph.channels = channels.iter().map(channel).collect();
        made.timing.level = Level::Platform;
        made
    }

    /// A task that does these in an endless loop, again from a round on after some rounds.
    fn task(&mut self, host: usize, whats: &[NodeKind], again: Option<(u32, u32)>) -> usize {
        let node = |(at, what): (usize, &NodeKind)| TaskNode {
            kind: what.clone(),
            place: at.to_string(),
            next: vec![(at + 1) % whats.len()],
            guard: None,
        };
        let nodes = whats.iter().enumerate().map(node).collect();
        self.graph.tasks.push(Task { host, nodes, ..Task::default() });
        let pattern = self.timing.regime.get_or_insert_with(|| PeriodicRegime {
            tasks: Vec::new(),
            shift: Span::from_us(PERIOD),
            parts: Vec::new(),
        });
        pattern.tasks.push(again);
        let part = again.map(|(_, rounds)| (rounds, Span::from_us(PERIOD)));
        pattern.parts.push(part);
        self.graph.tasks.len() - 1
    }

    fn is_lvchannel(&mut self, (task, node): (usize, usize), is_write: bool) {
        let variable = "x".to_owned();
        self.graph.tasks[task].latest.push(Latest { node, variable, is_write });
    }

    /// A visit that is reached from the task's last one; `messages` are the rows that it may read.
    fn row(
        &mut self,
        (task, node, round): (usize, usize, u32),
        (arrival, release, took): (Us, Us, Us),
        messages: &[usize],
    ) -> usize {
        let before = self.timing.rows.iter().rposition(|row| row.task == task);
        self.timing.rows.push(Row {
            task,
            node,
            iteration: vec![round],
            arrival: span(arrival),
            release: span(release),
            took: span(took),
            is_certain: true,
            before: before.map(|row| (row, Interval::ZERO)).into_iter().collect(),
            messages: messages.to_vec(),
        });
        self.timing.rows.len() - 1
    }

    /// A visit that takes no time.
    fn instant(&mut self, visit: (usize, usize, u32), at: Us) -> usize {
        self.row(visit, (at, at, (0, 0)), &[])
    }

    fn chain(&self, channels: &[usize]) -> ChainTime {
        let mut timing = self.timing.clone();
        let pattern = timing.regime.as_ref();
        let course = |task: usize| {
            let Some(pattern) = pattern else {
                return Course::Open { rounds: 0, why: OpenReason::Long };
            };
            let Some((rounds, shift)) = pattern.parts[task] else { return Course::Ends };
            let first = pattern.tasks[task].map(|(first, _)| (first, rounds));
            Course::Repeats { rounds: vec![first], shift }
        };
        let tasks = 0..self.graph.tasks.len();
        let one = |task| Component { tasks: vec![task], course: course(task) };
        timing.components = tasks.map(one).collect();
        chain(&self.graph, &timing, channels)
    }
}

const fn read(channel: usize) -> NodeKind {
    NodeKind::Read { channel, waits: false }
}

const fn write(channel: usize) -> NodeKind {
    NodeKind::Write { channel, waits: false }
}

const fn code() -> NodeKind {
    NodeKind::Fragment { execution: Interval::ZERO }
}

fn us(span: Option<Span>) -> Option<i64> {
    span.map(|span| span.as_ns() / 1_000)
}

fn latency(time: &ChainTime) -> (i64, Option<i64>) {
    let latency = time.latency.expect("something comes");
    (latency.lo.as_ns() / 1_000, us(latency.hi))
}

/// A task writes channel 0 at the beginning of each of so many periods.
fn periodic(made: &mut Made, rounds: u32) -> Vec<usize> {
    let task = made.task(0, &[write(0)], Some((2, 1)));
    let at = |round| i64::from(round - 1) * PERIOD;
    (1..=rounds).map(|r| made.instant((task, 0, r), (at(r), at(r)))).collect()
}

/// [`periodic`]; a task that reads it, works for 200 to 500 and writes channel 1; a task that
/// reads that. The channels take 100 to 300.
fn triggered() -> Made {
    let mut made = Made::new(3, &[&[(1, (100, 300))], &[(2, (100, 300))]]);
    let sent = periodic(&mut made, 3);
    let middle = made.task(1, &[read(0), code(), write(1)], Some((2, 1)));
    let end = made.task(2, &[read(1)], Some((2, 1)));
    let mut commands = Vec::new();
    for round in 1..=3 {
        let t = i64::from(round - 1) * PERIOD;
        let free = if round == 1 { (0, 0) } else { (t - PERIOD + 300, t - PERIOD + 800) };
        let there = (t + 100, t + 300);
        let took = (there.0 - free.1, there.1 - free.0);
        let message = [sent[round as usize - 1]];
        made.row((middle, 0, round), (free, there, took), &message);
        let done = (t + 300, t + 800);
        made.row((middle, 1, round), (there, done, (200, 500)), &[]);
        commands.push(made.instant((middle, 2, round), done));
    }
    for round in 1..=3 {
        let t = i64::from(round - 1) * PERIOD;
        let free = if round == 1 { (0, 0) } else { (t - PERIOD + 400, t - PERIOD + 1_100) };
        let there = (t + 400, t + 1_100);
        let took = (there.0 - free.1, there.1 - free.0);
        made.row((end, 0, round), (free, there, took), &[commands[round as usize - 1]]);
    }
    made
}

#[test]
fn a_chain_of_tasks_that_wait_for_each_other_is_the_sum_of_its_terms() {
    let time = triggered().chain(&[0, 1]);
    // 100 + 200 + 100 and 300 + 500 + 300.
    assert_eq!(latency(&time), (400, Some(1_100)));
    let terms: Vec<_> = time.terms.iter().map(|t| us(Some(t.span))).collect();
    assert_eq!(terms, [Some(300), Some(500), Some(300)], "{:?}", time.terms);
    // Until the next one comes, a period later and as late as can be.
    assert_eq!(us(time.age), Some(PERIOD + 1_100));
    assert_eq!(us(time.reaction), Some(PERIOD + 1_100));
}

/// As [`triggered`], but channel 0 is written up to 1,000 late, and the table knows no more than
/// that the writes of channel 1, which are up to 1,500 apart from where they were a period before,
/// are held back by their rate for up to 900. By channel: interval, tolerance; and the wake-up.
fn held_back(rates: [(i64, i64); 2], wakeup: i64) -> Made {
    let mut made = Made::new(3, &[&[(1, (100, 300))], &[(2, (100, 300))]]);
    for (channel, (interval, tolerance)) in made.graph.channels.iter_mut().zip(rates) {
        let ChannelKind::Network(network) = &mut channel.kind else { unreachable!() };
        network.interval = Span::from_us(interval);
        network.tolerance = Span::from_us(tolerance);
        network.early = network.tolerance;
    }
    made.graph.hosts[1].wakeup = span((0, wakeup));
    let source = made.task(0, &[write(0)], Some((2, 1)));
    let middle = made.task(1, &[read(0), code(), write(1)], Some((2, 1)));
    let end = made.task(2, &[read(1)], Some((2, 1)));
    let at = |round: u32| i64::from(round - 1) * PERIOD;
    let later = |round: u32, (lo, hi): Us| (at(round) + lo, at(round) + hi);
    let sent: Vec<_> =
        (1..=3).map(|r| made.instant((source, 0, r), later(r, (0, 1_000)))).collect();
    let mut commands = Vec::new();
    for r in 1..=3 {
        let free = if r == 1 { (0, 0) } else { later(r - 1, (300, 2_700)) };
        let there = later(r, (100, 1_300));
        let took = (there.0 - free.1, there.1 - free.0);
        made.row((middle, 0, r), (free, there, took), &[sent[r as usize - 1]]);
        let done = later(r, (300, 1_800));
        made.row((middle, 1, r), (there, done, (200, 500)), &[]);
        let gone = later(r, (300, 2_700));
        commands.push(made.row((middle, 2, r), (done, gone, (0, 900)), &[]));
    }
    for r in 1..=3 {
        let free = if r == 1 { (0, 0) } else { later(r - 1, (400, 3_000)) };
        let there = later(r, (400, 3_000));
        let took = (there.0 - free.1, there.1 - free.0);
        made.row((end, 0, r), (free, there, took), &[commands[r as usize - 1]]);
    }
    made
}

#[test]
fn a_rate_that_was_kept_once_holds_nothing_back_again() {
    let worst = |rates, wakeup| latency(&held_back(rates, wakeup).chain(&[0, 1])).1;
    // 300 + 500 + 300: messages come to the second channel as far apart as it wants them, and those
    // that come sooner have come to the first one later.
    assert_eq!(worst([(9_900, 100), (9_900, 100)], 0), Some(1_100));
    assert_eq!(worst([(9_900, 100), (9_000, 200)], 0), Some(1_100));
    // Who waits for the rate continues late once, by the wake-up.
    assert_eq!(worst([(9_900, 100), (9_900, 100)], 100), Some(1_200));
    // A second channel that is slower, or tolerates less, or less than the wake-up: 900 more.
    assert_eq!(worst([(9_900, 100), (9_901, 100)], 0), Some(2_000));
    assert_eq!(worst([(9_900, 100), (9_900, 99)], 0), Some(2_000));
    assert_eq!(worst([(9_900, 100), (9_900, 100)], 101), Some(2_000));
}

#[test]
fn what_comes_early_to_a_channel_that_catches_up_is_held_until_it_is_due() {
    let worst = |catch_up: [i64; 2]| {
        let mut made = held_back([(9_900, 100), (9_900, 100)], 100);
        for (channel, catch_up) in made.graph.channels.iter_mut().zip(catch_up) {
            let ChannelKind::Network(network) = &mut channel.kind else { unreachable!() };
            network.catch_up = Span::from_us(catch_up);
            network.early = network.tolerance + network.catch_up;
        }
        latency(&made.chain(&[0, 1])).1
    };
    assert_eq!(worst([0, 0]), Some(1_200));
    assert_eq!(worst([0, 9_900]), Some(1_300));
    // No more than the table knows: 900 for the rate.
    assert_eq!(worst([9_900, 9_900]), Some(2_000));
    assert_eq!(worst([9_900, 0]), Some(2_000));
}

#[test]
fn a_rate_that_another_task_uses_too_holds_back() {
    let mut made = held_back([(9_900, 100), (9_900, 100)], 0);
    let other = made.task(1, &[write(1)], Some((2, 1)));
    for (round, at) in (1..=3).zip([5_000, 15_000, 25_000]) {
        made.instant((other, 0, round), (at, at));
    }
    assert_eq!(latency(&made.chain(&[0, 1])).1, Some(2_000));
}

#[test]
fn one_channel_is_a_chain() {
    let mut made = triggered();
    made.graph.channels.truncate(2);
    let time = made.chain(&[0]);
    assert_eq!(latency(&time), (100, Some(300)));
    // Captures are exact: one is replaced after a period and the next one's latency.
    assert_eq!(us(time.age), Some(PERIOD + 300));
}

#[test]
fn without_a_pattern_nobody_knows_the_worst() {
    let mut made = triggered();
    made.timing.regime = None;
    let time = made.chain(&[0, 1]);
    assert_eq!(latency(&time), (200, None));
    assert_eq!((time.age, time.reaction), (None, None));
}

#[test]
fn what_never_comes_to_the_end_has_no_time() {
    let mut made = triggered();
    made.timing.rows.iter_mut().filter(|row| row.task == 2).for_each(|row| row.messages.clear());
    assert_eq!(made.chain(&[0, 1]), ChainTime::default());
}

#[test]
fn ages_between_clocks_may_be_negative() {
    // The reader's clock is 1,000 behind.
    let mut made = Made::new(2, &[&[(1, (-900, -700))]]);
    let sent = periodic(&mut made, 3);
    let end = made.task(1, &[read(0)], Some((2, 1)));
    for round in 1..=3 {
        let t = i64::from(round - 1) * PERIOD;
        let free = if round == 1 { (-1_000, -1_000) } else { (t - PERIOD - 900, t - PERIOD - 700) };
        let there = (t - 900, t - 700);
        let took = (there.0 - free.1, there.1 - free.0);
        made.row((end, 0, round), (free, there, took), &[sent[round as usize - 1]]);
    }
    let time = made.chain(&[0]);
    assert_eq!(latency(&time), (-900, Some(-700)));
    assert_eq!(us(time.age), Some(PERIOD - 700));
}

#[test]
fn a_way_over_a_fifochannel_takes_no_time_of_its_own() {
    // As the chain of three, the middle one split in two, the second busy 400 with each value.
    let mut made = Made::new(3, &[&[(1, (100, 300))], &[(2, (100, 300))], &[]]);
    made.graph.channels[2].kind = ChannelKind::Fifo { capacity: 4 };
    let sent = periodic(&mut made, 3);
    let first = made.task(1, &[read(0), write(2)], Some((2, 1)));
    let second = made.task(1, &[read(2), code(), write(1)], Some((2, 1)));
    let end = made.task(2, &[read(1)], Some((2, 1)));
    let at = |round: u32, (lo, hi): Us| {
        let t = i64::from(round - 1) * PERIOD;
        (t + lo, t + hi)
    };
    let idle = |round: u32, then: Us| if round == 1 { (0, 0) } else { at(round - 1, then) };
    let far = (0, PERIOD);
    let rounds = 1..=3;
    let values: Vec<_> = rounds
        .clone()
        .map(|r| {
            let message = [sent[r as usize - 1]];
            made.row((first, 0, r), (idle(r, (100, 300)), at(r, (100, 300)), far), &message);
            made.instant((first, 1, r), at(r, (100, 300)))
        })
        .collect();
    let commands: Vec<_> = rounds
        .clone()
        .map(|r| {
            let message = [values[r as usize - 1]];
            made.row((second, 0, r), (idle(r, (500, 700)), at(r, (100, 300)), far), &message);
            made.row((second, 1, r), (at(r, (100, 300)), at(r, (500, 700)), (400, 400)), &[]);
            made.instant((second, 2, r), at(r, (500, 700)))
        })
        .collect();
    for r in rounds {
        let message = [commands[r as usize - 1]];
        made.row((end, 0, r), (idle(r, (600, 1_000)), at(r, (600, 1_000)), far), &message);
    }
    // 100 + 400 + 100 and 300 + 400 + 300.
    assert_eq!(latency(&made.chain(&[0, 1])), (600, Some(1_000)));
}

/// A task reads what is written every 10,000, exactly 100 later; another one of its host writes
/// channel 1 every 7,000, which takes 100. Everything is exact. `is_known`: over an lvchannel.
fn sampled(is_known: bool) -> Made {
    let mut made = Made::new(3, &[&[(1, (100, 100))], &[(2, (100, 100))]]);
    let source = made.task(0, &[write(0)], Some((8, 7)));
    let reader = made.task(1, &[read(0), code()], Some((8, 7)));
    let writer = made.task(1, &[code(), write(1)], Some((11, 10)));
    let end = made.task(2, &[read(1)], Some((11, 10)));
    if is_known {
        made.is_lvchannel((reader, 1), true);
        made.is_lvchannel((writer, 0), false);
    }
    let pattern = made.timing.regime.as_mut().expect("one");
    pattern.shift = Span::from_us(70_000);
    for (part, rounds) in pattern.parts.iter_mut().zip([1, 1, 10, 10]) {
        let shift = Span::from_us(if rounds == 1 { PERIOD } else { 70_000 });
        *part = Some((rounds, shift));
    }
    let at = |round: u32, period: i64| i64::from(round - 1) * period;
    let exactly = |t: i64| (t, t);
    let sent: Vec<_> =
        (1..=14).map(|r| made.instant((source, 0, r), exactly(at(r, 10_000)))).collect();
    for r in 1..=14 {
        let there = at(r, 10_000) + 100;
        let free = if r == 1 { 0 } else { there - 10_000 };
        let took = exactly(there - free);
        let message = [sent[r as usize - 1]];
        made.row((reader, 0, r), (exactly(free), exactly(there), took), &message);
        made.instant((reader, 1, r), exactly(there));
    }
    let mut commands = Vec::new();
    for r in 1..=20 {
        made.instant((writer, 0, r), exactly(at(r, 7_000)));
        commands.push(made.instant((writer, 1, r), exactly(at(r, 7_000))));
    }
    for r in 1..=20 {
        let there = at(r, 7_000) + 100;
        let free = if r == 1 { 0 } else { there - 7_000 };
        let took = exactly(there - free);
        let message = [commands[r as usize - 1]];
        made.row((end, 0, r), (exactly(free), exactly(there), took), &message);
    }
    made
}

#[test]
fn what_is_sampled_has_waited_for_the_next_write() {
    let time = sampled(true).chain(&[0, 1]);
    // At 7,000 k the last value is as old as 7,000 k mod 10,000, which is 1,000 to 9,000, or 10,000
    // where that is 0, because the value of that instant is there 100 later; and the channel.
    assert_eq!(latency(&time), (1_100, Some(10_100)));
    // The one that is 10,000 old stays until the next receipt.
    assert_eq!(us(time.age), Some(17_100));
    // Just missed by a capture, then just missed by the writer 10,000 later.
    assert_eq!(us(time.reaction), Some(17_100));
}

#[test]
fn of_shared_memory_it_is_only_known_when_it_was_looked_at_last() {
    // The value of a write may have been looked at since the write before, 7,000 earlier: what was
    // at most 10,000 old then.
    let time = sampled(false).chain(&[0, 1]);
    assert_eq!(latency(&time), (1_100, Some(17_100)));
}

#[test]
fn what_was_captured_once_gets_old_for_ever() {
    let mut made = sampled(true);
    // One write and one read, and the writer continues for ever.
    made.timing.rows.retain(|row| row.task >= 2 || row.iteration == [1]);
    for row in &mut made.timing.rows {
        let moved = |at: usize| if at < 14 { 0 } else { at - 39 };
        row.before.iter_mut().for_each(|(at, _)| *at = if *at < 16 { 1 } else { *at - 39 });
        row.messages.iter_mut().for_each(|at| *at = moved(*at));
    }
    let pattern = made.timing.regime.as_mut().expect("one");
    (pattern.tasks[0], pattern.tasks[1]) = (None, None);
    (pattern.parts[0], pattern.parts[1]) = (None, None);
    assert_eq!(latency(&made.chain(&[0, 1])), (200, None));
}

#[test]
fn both_ends_that_wait_go_on_at_the_same_distance() {
    // The middle one writes with WRITE_WAIT, the last one reads with READ_WAIT and wakes up to 5
    // late: 100 to 300, then 2,000.
    let mut made = triggered();
    made.graph.hosts[2].wakeup = span((0, 5));
    made.graph.tasks[1].nodes[2].kind = NodeKind::Write { channel: 1, waits: true };
    made.graph.tasks[2].nodes[0].kind = NodeKind::Read { channel: 1, waits: true };
    for row in &mut made.timing.rows {
        let t = i64::from(row.iteration[0] - 1) * PERIOD;
        match (row.task, row.node) {
            (1, 2) => {
                (row.release, row.took) = (span((t + 2_300, t + 2_800)), span((2_000, 2_000)))
            }
            (2, 0) => row.release = span((t + 2_300, t + 2_805)),
            _ => {}
        }
    }
    // 100 + 200 + 2,000 and 300 + 500 + 2,000 + 5.
    assert_eq!(latency(&made.chain(&[0, 1])), (2_300, Some(2_805)));
}

#[test]
fn of_two_ways_the_longer_one_counts() {
    // Around the work of 200 to 500 leads a way that takes none.
    let mut made = triggered();
    for at in 0..made.timing.rows.len() {
        if (made.timing.rows[at].task, made.timing.rows[at].node) == (1, 2) {
            made.timing.rows[at].before.push((at - 2, Interval::ZERO));
            made.timing.rows[at].arrival.lo = made.timing.rows[at - 2].release.lo;
            made.timing.rows[at].release.lo = made.timing.rows[at - 2].release.lo;
        }
    }
    let last = made.timing.rows.iter_mut().filter(|row| row.task == 2);
    last.for_each(|row| row.release.lo = row.release.lo - Span::from_us(200));
    // 100 + 100 and 300 + 500 + 300.
    assert_eq!(latency(&made.chain(&[0, 1])), (200, Some(1_100)));
}

#[test]
fn who_may_not_read_may_show_old_data_for_ever() {
    let mut made = triggered();
    made.timing.rows.iter_mut().filter(|r| r.task == 2).for_each(|r| r.is_certain = false);
    let time = made.chain(&[0, 1]);
    assert_eq!(latency(&time), (400, Some(1_100)));
    assert_eq!((time.age, time.reaction), (None, None));
}

#[test]
fn a_channel_that_nobody_reserves_has_no_bound() {
    let mut made = triggered();
    let ChannelKind::Network(network) = &mut made.graph.channels[1].kind else { unreachable!() };
    network.latencies[0].1.hi = None;
    made.timing.rows.iter_mut().filter(|r| r.task == 2).for_each(|r| r.release.hi = None);
    let time = made.chain(&[0, 1]);
    assert_eq!(latency(&time), (400, None));
    assert_eq!((time.age, time.terms.len()), (None, 0));
}
