//! Random graphs: structured programs with channels between them.

use crate::build::*;
use onbeat_model::graph::{
    Binary, Channel, ChannelKind, Expression, Graph, Host, Interval, NetworkChannel, NodeKind,
    PointKind, Task, TaskNode,
};
use onbeat_model::time::Span;
use onbeat_model::timing::Timing;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// A source of choices.
pub(crate) struct Dice {
    source: Xoshiro256PlusPlus,
    /// Which end of intervals is taken; none: any time.
    pub(crate) end: Option<bool>,
}

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self { source: Xoshiro256PlusPlus::seed_from_u64(seed), end: None }
    }

    /// 0 to `below` - 1.
    pub(crate) fn roll(&mut self, below: usize) -> usize {
        (self.source.next_u64() % below.max(1) as u64) as usize
    }

    pub(crate) fn chance(&mut self, percent: usize) -> bool {
        self.roll(100) < percent
    }

    /// A time of an interval, often an end of it.
    pub(crate) fn pick(&mut self, of: Interval) -> Span {
        let hi = of.hi.unwrap_or(of.lo + ms(40));
        if let Some(is_last) = self.end {
            return if is_last { hi } else { of.lo };
        }
        match self.roll(4) {
            0 => of.lo,
            1 => hi,
            _ => {
                let width = (hi - of.lo).as_ns() as usize;
                of.lo + Span::from_ns(self.roll(width + 1) as i64)
            }
        }
    }
}

/// What may be in a graph.
#[derive(Clone, Copy)]
pub(crate) struct Kind {
    /// Unknown branches and loops, and intervals.
    pub(crate) is_unknown: bool,
    pub(crate) is_endless: bool,
    /// Unknown loops.
    pub(crate) has_unknown_loops: bool,
    /// Endless loops that are left at an unknown time, with counters.
    pub(crate) has_exits: bool,
    pub(crate) tasks: usize,
}

/// A graph, and of each task's nodes the loops that they are in: their heads.
pub(crate) struct Random {
    pub(crate) graph: Graph,
    pub(crate) loops: Vec<Vec<Vec<usize>>>,
    /// Of each task what is behind its endless loop, which it may leave in any round.
    pub(crate) tails: Vec<Option<Tail>>,
}

/// The head of a loop, and the nodes behind it.
pub(crate) type Tail = (usize, std::ops::Range<usize>);

impl Random {
    /// Counts what is behind endless loops to their rounds where the table does.
    pub(crate) fn follow(&mut self, timing: &Timing) {
        for (task, tail) in self.tails.iter().enumerate() {
            let Some((head, nodes)) = tail else { continue };
            let is_counted = timing.rows.iter().any(|row| {
                row.task == task && nodes.contains(&row.node) && !row.iteration.is_empty()
            });
            for node in nodes.clone() {
                self.loops[task][node] = if is_counted { vec![*head] } else { Vec::new() };
            }
        }
    }
}

struct Writer<'a> {
    dice: &'a mut Dice,
    kind: Kind,
    task: usize,
    channels: &'a [(Vec<usize>, Vec<usize>)],
    nodes: Vec<TaskNode>,
    loops: Vec<Vec<usize>>,
    stack: Vec<usize>,
    /// Since the last timing point.
    segment: usize,
}

impl Writer<'_> {
    fn add(&mut self, what: NodeKind) -> usize {
        let index = self.nodes.len();
        self.nodes.push(node(&format!("{index}"), what, &[index + 1]));
        self.loops.push(self.stack.clone());
        index
    }

    fn interval(&mut self, most: usize) -> Interval {
        let lo = self.dice.roll(most) as i64 * MS;
        let more = if self.kind.is_unknown { self.dice.roll(most) as i64 * MS } else { 0 };
        Interval::between(Span::from_ns(lo), Span::from_ns(lo + more))
    }

    fn point(&mut self) {
        let kind = [PointKind::Soft, PointKind::Firm, PointKind::Hard][self.dice.roll(3)];
        let period = 1 + self.dice.roll(10) as i64;
        let mut what = point(kind, period);
        if let (true, NodeKind::Point { deadline, .. }) = (self.dice.chance(30), &mut what) {
            *deadline = Some(constant((1 + self.dice.roll(period as usize) as i64) * MS));
        }
        if self.dice.chance(5) {
            self.add(NodeKind::Skip);
        }
        let at = self.add(what);
        if kind != PointKind::Soft {
            for index in self.segment..at {
                let is_code = !matches!(self.nodes[index].kind, NodeKind::Start);
                let is_inside = self.loops[index].starts_with(&self.stack);
                if is_code && is_inside && self.nodes[index].guard.is_none() && self.dice.chance(90)
                {
                    self.nodes[index].guard = Some(at);
                }
            }
        }
        self.segment = self.nodes.len();
    }

    fn channel(&mut self, writes: bool) {
        let mine = |(_, ends): &(usize, &(Vec<usize>, Vec<usize>))| {
            if writes { ends.0.contains(&self.task) } else { ends.1.contains(&self.task) }
        };
        let all: Vec<usize> = self.channels.iter().enumerate().filter(mine).map(|c| c.0).collect();
        if all.is_empty() {
            return;
        }
        let channel = all[self.dice.roll(all.len())];
        let waits = self.dice.chance(25);
        self.add(if writes {
            NodeKind::Write { channel, waits }
        } else {
            NodeKind::Read { channel, waits }
        });
    }

    fn branch(&mut self, depth: usize) {
        let condition = match self.kind.is_unknown && self.dice.chance(60) {
            true => Expression::Unknown,
            false => Expression::Binary(
                Binary::Remainder,
                Box::new(Expression::Register(self.dice.roll(3) as u16)),
                Box::new(constant(2)),
            ),
        };
        let is_any = self.kind.is_unknown && self.dice.chance(20);
        let at = self.add(if is_any { NodeKind::Any } else { NodeKind::Branch(condition) });
        self.block(depth + 1, 2);
        let end = self.add(NodeKind::Any);
        self.nodes[at].next = vec![at + 1, end + 1];
        self.block(depth + 1, 2);
        let join = self.add(NodeKind::Any);
        self.nodes[end].next = vec![join];
    }

    /// `for (r = 0; r < n; r++)`, or an unknown number of times.
    fn repeat(&mut self, depth: usize) {
        let register = 3 + depth as u16;
        let is_unknown = self.kind.has_unknown_loops && self.dice.chance(40);
        self.add(NodeKind::Set { register, value: constant(0) });
        let head = self.nodes.len();
        self.stack.push(head);
        let rounds = Box::new(constant(1 + self.dice.roll(3) as i64));
        let condition =
            Expression::Binary(Binary::Less, Box::new(Expression::Register(register)), rounds);
        self.add(NodeKind::Branch(if is_unknown { Expression::Unknown } else { condition }));
        self.block(depth + 1, 2);
        let one = Box::new(constant(1));
        let value = Expression::Binary(Binary::Add, Box::new(Expression::Register(register)), one);
        let last = self.add(NodeKind::Set { register, value });
        self.nodes[last].next = vec![head];
        self.stack.pop();
        self.nodes[head].next = vec![head + 1, last + 1];
    }

    /// `if (…) break;`, after so many rounds, or at an unknown time; where it leads is open.
    fn exit(&mut self) -> Option<usize> {
        if self.dice.chance(30) {
            return None;
        }
        if self.dice.chance(40) {
            return Some(self.add(NodeKind::Branch(Expression::Unknown)));
        }
        let counter = || Box::new(Expression::Register(COUNTER));
        let value = Expression::Binary(Binary::Add, counter(), Box::new(constant(1)));
        self.add(NodeKind::Set { register: COUNTER, value });
        let rounds = [3, 90, 100_000][self.dice.roll(3)];
        let goes_on = Expression::Binary(Binary::Less, counter(), Box::new(constant(rounds)));
        Some(self.add(NodeKind::Branch(goes_on)))
    }

    fn statement(&mut self, depth: usize) {
        match self.dice.roll(14) {
            0..=2 => {
                let execution = self.interval(4);
                self.add(NodeKind::Fragment { execution });
            }
            3 | 4 => self.channel(true),
            5 | 6 => self.channel(false),
            7..=9 => self.point(),
            10 if depth < 2 => self.branch(depth),
            11 if depth < 2 => self.repeat(depth),
            12 => {
                let register = self.dice.roll(3) as u16;
                let value = Expression::Binary(
                    Binary::Add,
                    Box::new(Expression::Register(register)),
                    Box::new(constant(self.dice.roll(3) as i64)),
                );
                let value = if self.dice.chance(40) { constant(1) } else { value };
                self.add(NodeKind::Set { register, value });
            }
            13 if self.dice.chance(30) => {
                self.add(NodeKind::Gettime);
            }
            _ => {}
        }
    }

    fn block(&mut self, depth: usize, most: usize) {
        let count = self.dice.roll(most + 1);
        (0..count).for_each(|_| self.statement(depth));
    }
}

fn task_of(dice: &mut Dice, kind: Kind, index: usize, ends: &[(Vec<usize>, Vec<usize>)]) -> Made {
    let (nodes, loops, stack) = (Vec::new(), Vec::new(), Vec::new());
    let mut writer =
        Writer { dice, kind, task: index, channels: ends, nodes, loops, stack, segment: 0 };
    writer.add(NodeKind::Start);
    for register in 0..3 {
        writer.add(NodeKind::Set { register, value: constant(0) });
    }
    writer.segment = writer.nodes.len();
    writer.block(0, 3);
    let mut tail = None;
    if kind.has_exits {
        writer.add(NodeKind::Set { register: COUNTER, value: constant(0) });
    }
    if kind.is_endless && writer.dice.chance(80) {
        let head = writer.nodes.len();
        writer.stack.push(head);
        writer.add(NodeKind::Any);
        writer.block(0, 4);
        let mut exits = Vec::new();
        if kind.has_exits {
            exits.extend(writer.exit());
            writer.block(0, 2);
            exits.extend(writer.exit());
        }
        writer.channel(true);
        writer.point();
        let last = writer.add(NodeKind::Any);
        writer.nodes[last].next = vec![head];
        writer.stack.pop();
        if kind.has_unknown_loops && writer.dice.chance(15) {
            exits.push(head);
        }
        if !exits.is_empty() {
            exits.iter().for_each(|exit| writer.nodes[*exit].next = vec![exit + 1, last + 1]);
            writer.block(0, 2);
            let end = writer.add(NodeKind::End);
            writer.nodes[end].next = vec![];
            let is_straight = writer.loops[last + 1..].iter().all(Vec::is_empty);
            let is_aborted = writer.nodes[head..=last].iter().any(|n| n.guard > Some(last));
            tail = (is_straight && !is_aborted).then_some((head, last + 1..end + 1));
        }
    } else {
        writer.block(0, 6);
        let end = writer.add(NodeKind::End);
        writer.nodes[end].next = vec![];
    }
    let keeps_phase = writer.dice.chance(20);
    (writer.nodes, writer.loops, tail, keeps_phase)
}

type Made = (Vec<TaskNode>, Vec<Vec<usize>>, Option<Tail>, bool);

/// The register that counts the rounds of endless loops.
const COUNTER: u16 = 7;

fn channel(dice: &mut Dice, kind: Kind, hosts: usize) -> Channel {
    if dice.chance(50) {
        let capacity = if dice.chance(20) { 1 + dice.roll(3) as u32 } else { 1_024 };
        return fifo(capacity);
    }
    let latency = |dice: &mut Dice| {
        let lo = ms(dice.roll(3) as i64);
        match (kind.is_unknown, dice.chance(10)) {
            (true, true) => Interval::from(lo),
            (true, false) => Interval::between(lo, lo + ms(dice.roll(3) as i64)),
            (false, _) => Interval::exactly(lo),
        }
    };
    let interval = ms(dice.roll(6) as i64);
    let tolerance = ms(dice.roll(2) as i64);
    let catch_up = [Span::ZERO, interval, interval + tolerance][dice.roll(3)];
    let network = NetworkChannel {
        latencies: (0..hosts).map(|host| (host, latency(dice))).collect(),
        fixed_delay: ms(dice.roll(5) as i64),
        interval,
        tolerance,
        catch_up,
        early: tolerance + catch_up,
        capacity: 1_024,
    };
    Channel { name: "net".to_owned(), kind: ChannelKind::Network(network) }
}

/// A random graph.
pub(crate) fn random(dice: &mut Dice, kind: Kind) -> Random {
    let hosts = 1 + dice.roll(4);
    let tasks = 1 + dice.roll(kind.tasks);
    let channels: Vec<Channel> =
        (0..dice.roll(tasks + 1)).map(|_| channel(dice, kind, hosts)).collect();
    let ends: Vec<(Vec<usize>, Vec<usize>)> = channels
        .iter()
        .map(|channel| {
            let is_fifo = matches!(channel.kind, ChannelKind::Fifo { .. });
            let several = is_fifo && kind.is_unknown && dice.chance(10);
            let mut writers = vec![dice.roll(tasks)];
            let readers = vec![dice.roll(tasks)];
            if several {
                writers.push(dice.roll(tasks));
            }
            (writers, readers)
        })
        .collect();
    let mut random = Random { graph: Graph::default(), loops: Vec::new(), tails: Vec::new() };
    for index in 0..tasks {
        let (nodes, loops, tail, keeps_phase) = task_of(dice, kind, index, &ends);
        let task = Task {
            keeps_phase,
            registers: 8,
            ..task(&format!("t{index}"), dice.roll(hosts), nodes)
        };
        random.graph.tasks.push(task);
        random.loops.push(loops);
        random.tails.push(tail);
    }
    for index in 0..hosts {
        let most = if kind.is_unknown { dice.roll(300) as i64 } else { 0 };
        let wakeup = Interval::between(Span::ZERO, Span::from_us(most));
        random.graph.hosts.push(Host { name: format!("h{index}"), wakeup, ..Host::default() });
    }
    random.graph.channels = channels;
    random
}
