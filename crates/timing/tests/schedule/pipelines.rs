//! Tasks that are released by messages: random pipelines over hosts, fifochannels and network
//! channels, against a simulation.

use crate::dice::{Dice, ns};
use onbeat_model::graph::{
    Channel, ChannelKind, Expression, Graph, Host, Interval, NetworkChannel, NodeKind, PointKind,
    Task, TaskNode,
};
use onbeat_model::time::{NetTime, Span};
use onbeat_runtime::processor::{Processors, Rank};
use onbeat_timing::schedule::analyse;
use std::collections::VecDeque;

/// When the first message of a channel is due: whenever it comes.
const FIRST: i64 = i64::MIN / 2;
/// Late wake-ups of all hosts.
const WAKEUP: i64 = 2;

/// A periodic task, or one that a channel's messages release. It writes at the end of its jobs.
#[derive(Debug)]
struct Step {
    host: usize,
    rank: u8,
    work: (i64, i64),
    /// Of one that nothing releases.
    period: i64,
    reads: Option<usize>,
    writes: Option<usize>,
    /// So many at once.
    messages: usize,
    may_skip: bool,
    /// From the pipeline's release to the step's, at least.
    since: i64,
}

/// Of a channel over the network.
#[derive(Clone, Copy, Debug)]
struct Wire {
    latency: (i64, i64),
    interval: i64,
    tolerance: i64,
    catch_up: i64,
    /// Whether messages are taken to come as the rate lets them: how late they are is then counted
    /// from when they are there.
    is_rated: bool,
}

#[derive(Debug)]
struct Setup {
    steps: Vec<Step>,
    channels: Vec<Option<Wire>>,
}

/// Some pipelines of up to five steps on two hosts.
fn setup(dice: &mut Dice) -> Setup {
    let mut it = Setup { steps: Vec::new(), channels: Vec::new() };
    for _ in 0..dice.between(2, 4) {
        let period = dice.between(60, 300);
        let mut pace = (period, 1);
        let (mut host, mut since, mut reads) = (dice.between(0, 1) as usize, 0, None);
        for left in (0..dice.between(1, 5)).rev() {
            let hi = dice.between(1, period / 12);
            let lo = dice.between(1, hi);
            // Who is held up by a rate for ever has no response that counts it.
            let is_wire = dice.chance(30) && pace.1 == 1;
            let writes = (left > 0).then_some(it.channels.len());
            let messages = if is_wire || dice.chance(80) { 1 } else { 2 };
            let may_skip = dice.chance(20);
            let step = Step {
                host,
                rank: 0,
                work: (lo, hi),
                period,
                reads,
                writes,
                messages,
                may_skip,
                since,
            };
            it.steps.push(step);
            since += lo;
            if left > 0 {
                let best = dice.between(0, 20);
                let interval = if dice.chance(50) { pace.0 } else { dice.between(1, pace.0) };
                pace.1 *= messages as i64;
                let is_rated = is_wire && pace.0 <= interval * pace.1;
                let wire = Wire {
                    is_rated,
                    latency: (best, best + dice.between(0, 20)),
                    interval,
                    tolerance: dice.between(0, 10),
                    catch_up: [0, interval, interval + 10][dice.between(0, 2) as usize],
                };
                it.channels.push(is_wire.then_some(wire));
                since += if is_wire { best } else { 0 };
                if is_rated {
                    (pace, since) = ((interval, 1), 0);
                }
                host = if is_wire { dice.between(0, 1) as usize } else { host };
                reads = writes;
            }
        }
    }
    let mut ranks: Vec<u8> = (1..=it.steps.len() as u8).collect();
    for step in &mut it.steps {
        step.rank = ranks.swap_remove(dice.between(0, ranks.len() as i64 - 1) as usize);
    }
    it
}

fn task(step: &Step) -> Task {
    let execution = Interval::between(ns(step.work.0), ns(step.work.1));
    let mut all = vec![NodeKind::Start];
    all.extend(step.reads.map(|channel| NodeKind::Read { channel, waits: false }));
    all.push(NodeKind::Fragment { execution });
    all.push(NodeKind::Any);
    let write = step.writes.map(|channel| NodeKind::Write { channel, waits: false });
    (0..step.messages).for_each(|_| all.extend(write.clone()));
    let number = Expression::Constant(step.period);
    let (period, deadline) = (number.clone(), Some(number));
    match step.reads {
        None => all.push(NodeKind::Point { kind: PointKind::Soft, period, deadline }),
        Some(_) => all.push(NodeKind::Any),
    }
    let (last, mut nodes) = (all.len() - 1, Vec::new());
    for (at, what) in all.into_iter().enumerate() {
        let mut next = vec![if at == last { 1 } else { at + 1 }];
        if what == NodeKind::Any && at < last && step.may_skip {
            next.push(last);
        }
        nodes.push(TaskNode { kind: what, place: at.to_string(), next, guard: None });
    }
    let (priority, is_first) = (Some(step.rank), true);
    Task { name: "t".into(), host: step.host, nodes, priority, is_first, ..Task::default() }
}

fn graph(setup: &Setup) -> Graph {
    let host = |name: &str| Host {
        name: name.into(),
        wakeup: Interval::between(Span::ZERO, ns(WAKEUP)),
        cores: Some(1),
        ..Host::default()
    };
    let kind = |wire: &Option<Wire>| match wire {
        None => ChannelKind::Fifo { capacity: 64 },
        Some(wire) => {
            let latency = Interval::between(ns(wire.latency.0), ns(wire.latency.1));
            ChannelKind::Network(NetworkChannel {
                latencies: vec![(0, latency), (1, latency)],
                fixed_delay: Span::ZERO,
                interval: ns(wire.interval),
                tolerance: ns(wire.tolerance),
                catch_up: ns(wire.catch_up),
                early: ns(wire.tolerance + wire.catch_up),
                capacity: 64,
            })
        }
    };
    let channel = |wire| Channel { name: "c".into(), kind: kind(wire) };
    Graph {
        hosts: vec![host("a"), host("b")],
        channels: setup.channels.iter().map(channel).collect(),
        tasks: setup.steps.iter().map(task).collect(),
        ..Graph::default()
    }
}

/// What a step does.
#[derive(Clone, Copy, PartialEq)]
enum State {
    /// It has waited for a message since.
    Waits(i64),
    /// It begins then, for what its pipeline released at the second instant.
    Starts(i64, i64),
    Works(i64),
    /// It writes when the channel's rate allows that.
    Writes(i64, i64),
}

struct Run<'a> {
    setup: &'a Setup,
    states: Vec<State>,
    /// When messages are there, and when their pipelines were released.
    queues: Vec<VecDeque<(i64, i64)>>,
    /// When the next message may come in theory, and when the last one was there.
    paces: Vec<(i64, i64, usize)>,
    worst: Vec<i64>,
}

impl Run<'_> {
    fn late(dice: &mut Dice) -> i64 {
        if dice.chance(50) { WAKEUP } else { dice.between(0, WAKEUP) }
    }

    /// A step has done its work, or may write at last.
    fn done(&mut self, dice: &mut Dice, at: usize, root: i64, now: i64, has_waited: bool) {
        let step = &self.setup.steps[at];
        let skips = !has_waited && step.may_skip && dice.chance(30);
        if let Some(channel) = step.writes.filter(|_| !skips) {
            match self.setup.channels[channel] {
                None => {
                    let all = std::iter::repeat_n((now, root), step.messages);
                    self.queues[channel].extend(all);
                }
                Some(wire) => {
                    let (next, last, before) = self.paces[channel];
                    let is_second = wire.catch_up > 0 && before == 1;
                    let early = if is_second { wire.interval / 2 } else { 0 };
                    if next - wire.tolerance.max(early) > now {
                        let until = if wire.catch_up > 0 { next } else { next - wire.tolerance };
                        self.states[at] = State::Writes(until, root);
                        return;
                    }
                    let (lo, hi) = wire.latency;
                    let latency = if dice.chance(50) { hi } else { dice.between(lo, hi) };
                    let there = last.max(now + latency);
                    let next = match wire.catch_up {
                        0 => next.max(now) + wire.interval,
                        catch_up => {
                            // The first two set the phase.
                            let next =
                                if next == FIRST || is_second && now < next { now } else { next };
                            let beyond = (now - next - catch_up).max(0);
                            let missed = (beyond + wire.interval - 1) / wire.interval;
                            next + wire.interval * (1 + missed)
                        }
                    };
                    self.paces[channel] = (next, there, before + 1);
                    let root = if wire.is_rated { there } else { root };
                    self.queues[channel].push_back((there, root));
                }
            }
        }
        self.worst[at] = self.worst[at].max(now - root - step.since);
        let now = if has_waited { now + Self::late(dice) } else { now };
        self.states[at] = match step.reads {
            Some(_) => State::Waits(now),
            None => {
                let more = if dice.chance(80) { 0 } else { dice.between(0, step.period) };
                let release = now.max(root + step.period + more);
                State::Starts(release + Self::late(dice), release)
            }
        };
    }

    /// When a step continues, if the processor is not what it waits for.
    fn next(&self, at: usize) -> Option<i64> {
        match self.states[at] {
            State::Starts(when, _) | State::Writes(when, _) => Some(when),
            State::Works(_) | State::Waits(_) => None,
        }
    }

    fn take(&mut self, dice: &mut Dice, at: usize) {
        let State::Waits(since) = self.states[at] else { return };
        let Some(channel) = self.setup.steps[at].reads else { return };
        if let Some((there, root)) = self.queues[channel].pop_front() {
            let when = if there > since { there + Self::late(dice) } else { since };
            self.states[at] = State::Starts(when, root);
        }
    }
}

/// The longest response of each step, since the earliest that its pipeline may come there.
fn run(dice: &mut Dice, setup: &Setup, until: i64) -> Vec<i64> {
    let count = setup.steps.len();
    let mut run = Run {
        setup,
        states: vec![State::Waits(0); count],
        queues: vec![VecDeque::new(); setup.channels.len()],
        paces: vec![(FIRST, 0, 0); setup.channels.len()],
        worst: vec![0; count],
    };
    for at in (0..count).filter(|at| setup.steps[*at].reads.is_none()) {
        let begin = dice.between(0, setup.steps[at].period);
        run.states[at] = State::Starts(begin, begin);
    }
    let mut hosts = [Processors::new(1), Processors::new(1)];
    loop {
        let ready = (0..count).filter_map(|at| run.next(at)).min();
        let ends = hosts.iter().filter_map(|host| host.next().map(NetTime::as_ns));
        let Some(now) = ends.chain(ready).min().filter(|now| *now < until) else {
            return run.worst;
        };
        for host in &mut hosts {
            for id in host.advance(NetTime::from_ns(now)) {
                let State::Works(root) = run.states[id as usize] else { panic!("it works") };
                run.done(dice, id as usize, root, now, false);
            }
        }
        for at in 0..count {
            if let State::Writes(when, root) = run.states[at]
                && when <= now
            {
                run.done(dice, at, root, now, true);
            }
        }
        for at in 0..count {
            run.take(dice, at);
            if let State::Starts(when, root) = run.states[at]
                && when <= now
            {
                let step = &setup.steps[at];
                let (lo, hi) = step.work;
                let work = if dice.chance(70) { hi } else { dice.between(lo, hi) };
                let rank = Rank::Fixed(step.rank.into());
                let (now, work) = (NetTime::from_ns(now), Span::from_ns(work));
                hosts[step.host].start(now, at as u64, 0, rank, work);
                run.states[at] = State::Works(root);
            }
        }
    }
}

#[test]
fn pipelines_are_never_above_their_bounds() {
    let (mut ratios, mut none, mut late) = (Vec::new(), 0, 0);
    for seed in 90_000..90_600 {
        let mut dice = Dice::new(seed);
        let setup = setup(&mut dice);
        let mut bounds = vec![None; setup.steps.len()];
        for task in analyse(&graph(&setup)).iter().flat_map(|schedule| &schedule.tasks) {
            bounds[task.task] = task.response;
        }
        let mut seen = vec![0; setup.steps.len()];
        for _ in 0..4 {
            let more = run(&mut dice, &setup, 12_000);
            seen.iter_mut().zip(more).for_each(|(seen, more)| *seen = more.max(*seen));
        }
        // Whose writer is not over when its next job comes, is late from when that writes at last,
        // not from its release.
        let mut is_late = false;
        for (at, seen) in seen.iter().enumerate() {
            let step = &setup.steps[at];
            let was_late = is_late && step.reads.is_some();
            is_late = was_late || bounds[at].is_none_or(|bound| bound.as_ns() > step.period);
            if was_late {
                late += 1;
                continue;
            }
            let Some(bound) = bounds[at].map(Span::as_ns) else {
                none += 1;
                continue;
            };
            assert!(*seen <= bound, "seed {seed}: step {at} took {seen} of {bound}: {setup:?}");
            if setup.steps[at].reads.is_some() && *seen > 0 {
                ratios.push(bound * 100 / seen);
            }
        }
    }
    ratios.sort_unstable();
    let (median, most) = (ratios[ratios.len() / 2], ratios[ratios.len() - 1]);
    let high = ratios[ratios.len() * 95 / 100];
    let count = ratios.len();
    println!(
        "{count} bounds, {none} none, {late} late: {median}, {high}, {most} % of what is seen"
    );
    assert!(count > 1_500 && none + late < count, "{count}, {none}, {late}");
    assert!(median < 300, "{median} per cent of what was seen");
}
