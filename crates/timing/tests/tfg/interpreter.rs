//! One execution of a graph, event by event. It shares nothing with the analysis.

use crate::random::{Dice, Random};
use onbeat_model::graph::{
    ChannelKind, Expression, Graph, Interval, NetworkChannel, NodeKind, PointKind,
};
use onbeat_model::time::Span;
use onbeat_model::timing::Level;
use std::collections::BTreeMap;

/// A visit: task, node, rounds.
pub(crate) type Place = (usize, usize, Vec<u32>);

/// When it began, and when it was done, unless it was aborted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Visit {
    pub(crate) arrival: Span,
    pub(crate) release: Option<Span>,
}

#[derive(Clone, Debug)]
struct Runner {
    at: usize,
    rounds: Vec<u32>,
    now: Span,
    origin: Span,
    registers: Vec<Option<i64>>,
    skips: bool,
    has_ended: bool,
    steps: usize,
}

#[derive(Clone, Debug, Default)]
struct Queue {
    captures: Vec<Span>,
    /// By task.
    taken: BTreeMap<usize, usize>,
    due: Option<Span>,
    there: BTreeMap<usize, Span>,
}

/// An execution.
pub(crate) struct Execution<'a> {
    random: &'a Random,
    graph: &'a Graph,
    level: Level,
    dice: &'a mut Dice,
    runners: Vec<Runner>,
    queues: Vec<Queue>,
    pub(crate) visits: BTreeMap<Place, Visit>,
    /// Whether a value found its channel full.
    pub(crate) overflows: bool,
}

/// Of each task: whether it came to its end, or waits for ever; otherwise it was left alone.
pub(crate) struct Outcome {
    pub(crate) visits: BTreeMap<Place, Visit>,
    pub(crate) is_over: Vec<bool>,
    pub(crate) overflows: bool,
}

/// Runs a graph for so many steps of each task.
pub(crate) fn run(random: &Random, level: Level, dice: &mut Dice, steps: usize) -> Outcome {
    let graph = &random.graph;
    let runner = |task: usize| Runner {
        at: 0,
        rounds: vec![],
        now: graph.hosts[graph.tasks[task].host].start,
        origin: graph.hosts[graph.tasks[task].host].start,
        registers: vec![None; usize::from(graph.tasks[task].registers)],
        skips: false,
        has_ended: false,
        steps: 0,
    };
    let runners = (0..graph.tasks.len()).map(runner).collect();
    let queues = vec![Queue::default(); graph.channels.len()];
    let visits = BTreeMap::new();
    let mut run =
        Execution { random, graph, level, dice, runners, queues, visits, overflows: false };
    while let Some(task) = run.choose(steps) {
        run.step(task);
    }
    let is_cut = run.runners.iter().any(|r| !r.has_ended && r.steps >= steps);
    let is_over = run.runners.iter().map(|r| r.has_ended || !is_cut).collect();
    Outcome { visits: run.visits, is_over, overflows: run.overflows }
}

impl Execution<'_> {
    /// The task with the earliest event; messages before deadlines, otherwise by chance. No task
    /// goes ahead of one that has had all its steps.
    fn choose(&mut self, steps: usize) -> Option<usize> {
        let mut best: Option<((Span, bool), Vec<usize>)> = None;
        for task in 0..self.runners.len() {
            let runner = &self.runners[task];
            if runner.has_ended {
                continue;
            }
            let key = if self.is_blocked(task) {
                match self.deadline(task) {
                    Some(deadline) => (runner.now.max(deadline), true),
                    None => continue,
                }
            } else {
                (runner.now, false)
            };
            match &mut best {
                Some((least, tasks)) if *least == key => tasks.push(task),
                Some((least, _)) if *least < key => {}
                _ => best = Some((key, vec![task])),
            }
        }
        let ((_, aborts), mut tasks) = best?;
        if aborts {
            let last: Vec<usize> =
                tasks.iter().copied().filter(|t| self.hangs_on(*t, &tasks)).collect();
            if last.len() < tasks.len() {
                tasks.retain(|task| !last.contains(task));
            }
        }
        let task = tasks[self.dice.roll(tasks.len())];
        (self.runners[task].steps < steps).then_some(task)
    }

    /// Whether one of `others`, which are aborted at the same instant, may make the message that
    /// `task` waits for: at the very instant of the deadline it is on time.
    fn hangs_on(&self, task: usize, others: &[usize]) -> bool {
        let (mut open, mut seen) = (vec![task], vec![task]);
        while let Some(waiting) = open.pop() {
            let NodeKind::Read { channel, .. } =
                self.graph.tasks[waiting].nodes[self.runners[waiting].at].kind
            else {
                continue;
            };
            for (writer, graph) in self.graph.tasks.iter().enumerate() {
                let is_it = |kind: &NodeKind| -> bool {
                    matches!(kind, NodeKind::Write { channel: written, .. } if *written == channel)
                };
                if !graph.nodes.iter().any(|node| is_it(&node.kind)) || seen.contains(&writer) {
                    continue;
                }
                if others.contains(&writer) {
                    return true;
                }
                seen.push(writer);
                open.push(writer);
            }
        }
        false
    }

    fn is_blocked(&self, task: usize) -> bool {
        let runner = &self.runners[task];
        let NodeKind::Read { channel, .. } = self.graph.tasks[task].nodes[runner.at].kind else {
            return false;
        };
        let taken = self.queues[channel].taken.get(&task).copied().unwrap_or(0);
        // Who is late already does not even begin to wait.
        let is_late = self.deadline(task).is_some_and(|deadline| runner.now > deadline);
        !is_late && taken >= self.queues[channel].captures.len()
    }

    fn value(&self, task: usize, expression: &Expression) -> Option<i64> {
        expression.value(&self.runners[task].registers)
    }

    /// When the guard of the node at which a task is aborts it.
    fn deadline(&self, task: usize) -> Option<Span> {
        let runner = &self.runners[task];
        let point = self.graph.tasks[task].nodes[runner.at].guard?;
        match &self.graph.tasks[task].nodes[point].kind {
            NodeKind::Point { deadline: Some(deadline), .. } => {
                Some(runner.origin + Span::from_ns(self.value(task, deadline)?))
            }
            _ => None,
        }
    }

    fn wakeup(&mut self, task: usize) -> Span {
        let wakeup = self.graph.hosts[self.graph.tasks[task].host].wakeup;
        match self.level {
            Level::Program => Span::ZERO,
            Level::Platform => self.dice.pick(wakeup),
        }
    }

    /// Sleeps until an instant; how long, with the wake-up.
    fn sleep(&mut self, task: usize, from: Span, until: Span) -> Span {
        if until > from { until + self.wakeup(task) } else { from }
    }

    fn step(&mut self, task: usize) {
        let node = &self.graph.tasks[task].nodes[self.runners[task].at];
        let now = self.runners[task].now;
        let deadline = self.deadline(task);
        let place = (task, self.runners[task].at, self.runners[task].rounds.clone());
        self.runners[task].steps += 1;
        // Who is late does not come there.
        if deadline.is_some_and(|deadline| now > deadline) {
            return self.go(task, node.guard.unwrap_or(0), now);
        }
        self.visits.insert(place.clone(), Visit { arrival: now, release: None });
        // The end of what is done, and whether an abort of it is late.
        let (end, sleeps) = match &node.kind {
            NodeKind::Fragment { execution } if self.level == Level::Platform => {
                (Some(now + self.dice.pick(*execution)), true)
            }
            NodeKind::Write { channel, waits } => return self.write(task, *channel, *waits, place),
            NodeKind::Read { channel, waits } => (self.read(task, *channel, *waits), *waits),
            _ => (Some(now), false),
        };
        let is_aborted = match (end, deadline) {
            (None, _) => true,
            (Some(end), Some(deadline)) => end > deadline,
            _ => false,
        };
        if is_aborted {
            self.keep(task, deadline);
            return self.abort(task, deadline.unwrap_or(now), sleeps);
        }
        let end = end.unwrap_or(now);
        if let NodeKind::Read { channel, .. } = node.kind {
            *self.queues[channel].taken.entry(task).or_default() += 1;
        }
        self.runners[task].now = end;
        self.happen(task, place);
    }

    /// A message that was there when a wait for capture + D is aborted stays taken.
    fn keep(&mut self, task: usize, deadline: Option<Span>) {
        let node = &self.graph.tasks[task].nodes[self.runners[task].at];
        let NodeKind::Read { channel, waits: true } = node.kind else { return };
        let queue = &mut self.queues[channel];
        let number = queue.taken.get(&task).copied().unwrap_or(0);
        let is_made = number < queue.captures.len();
        let there = queue.there.get(&task).copied().filter(|_| is_made);
        if there.zip(deadline).is_some_and(|(there, deadline)| there <= deadline) {
            *queue.taken.entry(task).or_default() += 1;
        }
    }

    fn abort(&mut self, task: usize, deadline: Span, sleeps: bool) {
        let wakeup = if sleeps { self.wakeup(task) } else { Span::ZERO };
        let node = &self.graph.tasks[task].nodes[self.runners[task].at];
        self.go(task, node.guard.unwrap_or(0), deadline + wakeup);
    }

    fn done(&mut self, task: usize, place: &Place) {
        let now = self.runners[task].now;
        if let Some(visit) = self.visits.get_mut(place) {
            visit.release = Some(now);
        }
    }

    fn happen(&mut self, task: usize, place: Place) {
        let node = &self.graph.tasks[task].nodes[self.runners[task].at];
        let mut next = node.next.first().copied();
        match &node.kind {
            NodeKind::End => self.runners[task].has_ended = true,
            NodeKind::Point { kind, period, .. } => self.point(task, *kind, period),
            NodeKind::Gettime => self.runners[task].origin = self.runners[task].now,
            NodeKind::Skip => self.runners[task].skips = true,
            NodeKind::Set { register, value } => {
                let value = self.value(task, value);
                self.runners[task].registers[usize::from(*register)] = value;
            }
            NodeKind::Branch(condition) => {
                let choice = match self.value(task, condition) {
                    Some(value) => usize::from(value == 0),
                    None => self.dice.roll(2),
                };
                next = Some(node.next[choice]);
            }
            NodeKind::Any => next = Some(node.next[self.dice.roll(node.next.len())]),
            _ => {}
        }
        self.done(task, &place);
        if let Some(next) = next {
            let now = self.runners[task].now;
            self.go(task, next, now);
        }
    }

    fn point(&mut self, task: usize, _kind: PointKind, period: &Expression) {
        let period = Span::from_ns(self.value(task, period).unwrap_or(0));
        let runner = self.runners[task].clone();
        let release = runner.origin + period;
        if runner.skips {
            self.runners[task].origin = runner.now;
        } else if runner.now < release {
            let woken = self.sleep(task, runner.now, release);
            self.runners[task].now = woken;
            self.runners[task].origin = release;
        } else {
            let keeps = self.graph.tasks[task].keeps_phase;
            self.runners[task].origin = if keeps { release } else { runner.now };
        }
        self.runners[task].skips = false;
    }

    /// When the message is there; none: never.
    fn read(&mut self, task: usize, channel: usize, waits: bool) -> Option<Span> {
        let now = self.runners[task].now;
        let host = self.graph.tasks[task].host;
        let queue = &self.queues[channel];
        let number = queue.taken.get(&task).copied().unwrap_or(0);
        let capture = *self.sorted(channel).get(number)?;
        let ChannelKind::Network(network) = &self.graph.channels[channel].kind else {
            return Some(now.max(capture));
        };
        let latency = network.latencies.iter().find(|(h, _)| *h == host);
        let latency = latency.map_or(Interval::from(Span::ZERO), |(_, latency)| *latency);
        let before = self.queues[channel].there.get(&task).copied().unwrap_or(capture);
        let there = before.max(capture + self.dice.pick(latency));
        self.queues[channel].there.insert(task, there);
        let taken = now.max(there);
        if !waits {
            return Some(taken);
        }
        Some(self.sleep(task, taken, capture + network.fixed_delay))
    }

    fn sorted(&self, channel: usize) -> Vec<Span> {
        let mut captures = self.queues[channel].captures.clone();
        captures.sort_unstable();
        captures
    }

    fn write(&mut self, task: usize, channel: usize, waits: bool, place: Place) {
        let now = self.runners[task].now;
        let deadline = self.deadline(task);
        let is_late = |at: Span| deadline.is_some_and(|deadline| at > deadline);
        match &self.graph.channels[channel].kind {
            ChannelKind::Fifo { capacity } => {
                let queue = &mut self.queues[channel];
                let taken: usize = queue.taken.values().sum();
                if queue.captures.len() - taken >= *capacity as usize {
                    self.overflows = true;
                } else {
                    queue.captures.push(now);
                }
            }
            ChannelKind::Network(network) => {
                let due = self.queues[channel].due;
                let NetworkChannel { interval, catch_up, .. } = *network;
                let is_second = catch_up > Span::ZERO && self.queues[channel].captures.len() == 1;
                let early = if is_second { interval.as_ns() / 2 } else { 0 };
                let early = network.tolerance.max(Span::from_ns(early));
                let is_held = due.is_some_and(|due| now < due - early);
                let allowed = due.filter(|_| is_held).map_or(now, |due| match catch_up {
                    Span::ZERO => due - network.tolerance,
                    _ => due,
                });
                let capture = self.sleep(task, now, allowed);
                if is_late(capture) {
                    return self.abort(task, deadline.unwrap_or(now), true);
                }
                let mut next = due.map_or(capture, |due| match catch_up {
                    Span::ZERO => due.max(capture),
                    // The first two set the phase.
                    _ if is_second => due.min(capture),
                    _ => due,
                });
                next += interval;
                // As far ahead as late ones catch up.
                let first = capture + interval - catch_up;
                while catch_up > Span::ZERO && interval > Span::ZERO && next < first {
                    next += interval;
                }
                self.queues[channel].due = Some(next);
                self.queues[channel].captures.push(capture);
                self.runners[task].now = capture;
                if waits && network.fixed_delay > Span::ZERO {
                    let woken = self.sleep(task, capture, capture + network.fixed_delay);
                    if is_late(woken) {
                        return self.abort(task, deadline.unwrap_or(now), true);
                    }
                    self.runners[task].now = woken;
                }
            }
            ChannelKind::Named => {}
        }
        self.happen(task, place);
    }

    fn go(&mut self, task: usize, to: usize, now: Span) {
        let loops = &self.random.loops[task];
        let runner = &mut self.runners[task];
        let common = loops[runner.at].iter().zip(&loops[to]).take_while(|(a, b)| a == b).count();
        let is_back = loops[to].last() == Some(&to) && common == loops[to].len();
        runner.rounds.truncate(common);
        if is_back {
            runner.rounds[common - 1] += 1;
        }
        runner.rounds.resize(loops[to].len(), 1);
        (runner.at, runner.now) = (to, now);
        let place = (task, to, runner.rounds.clone());
        self.visits.insert(place, Visit { arrival: now, release: None });
    }
}
