//! Chains: how old a value is when it comes out at the end.
//!
//! Every capture of the first channel is followed along the table's rows: through the tasks that
//! read it, over what they write next, to the last reader. Its age there is an interval. It grows
//! by what each visit takes, and is never more than the two instants leave it, which ties it to the
//! timeline again where a task waits for a release. What a task holds is what it has read last.
//!
//! The pattern continues for so long that everything that can happen has happened once.

use super::state::least;
use super::unroll::{Unrolled, Unroller};
use onbeat_model::graph::{ChannelKind, Graph, Interval, NodeKind, Task};
use onbeat_model::plan::BoundTerm;
use onbeat_model::time::Span;
use onbeat_model::timing::{ChainTime, Row, Timing};
use std::collections::{BTreeMap, BTreeSet};

/// At least so many times the pattern is looked at, and more while a value needs more of it.
const PATTERNS: i64 = 6;
/// At most so many rows are looked at.
const ROWS: usize = 50_000;
/// The first patterns have no more, however far apart the times of slow and fast channels are.
const ROWS_MAX: usize = 1_000_000;
/// At most so many samples are looked at: each row has those of all messages that may have come
/// there, and a chain that goes over a fast channel and a slow one many.
const SAMPLES: usize = 20_000_000;
/// Later than every instant.
pub(super) const FAR: Span = Span::from_ns(i64::MAX / 4);

/// The time of a chain of channels: each is written by what has read the one before it, in the same
/// task, or over fifochannels and lvchannels. Where neither leads from one to the other, a task of
/// the same host writes what was read there: after its last write it has looked at it, and before
/// the reader reads again it was there to be looked at.
pub fn chain(graph: &Graph, timing: &Timing, channels: &[usize]) -> ChainTime {
    let Some((&last, _)) = channels.split_last() else { return ChainTime::default() };
    let Some(unroller) = Unroller::new(graph, timing, &along(graph, channels)) else {
        return at_best(graph, timing, channels);
    };
    let mut patterns = PATTERNS;
    loop {
        let until = match unroller.shift > Span::ZERO {
            true => unroller.steady + unroller.shift * patterns,
            false => FAR,
        };
        if unroller.count(until) > ROWS_MAX {
            return cut_short(graph, timing, channels);
        }
        let mut walk = Propagation::new(graph, &unroller, unroller.until(until));
        let receipts = walk.follow(channels, last);
        let is_last = unroller.count(unroller.steady + unroller.shift * patterns * 2) > ROWS;
        match walk.is_seen(&receipts) {
            _ if !walk.is_ordered => return at_best(graph, timing, channels),
            _ if walk.is_too_much() => return cut_short(graph, timing, channels),
            Some(true) => return walk.judge(channels[0], &receipts),
            None if is_last || unroller.shift == Span::ZERO => {
                return walk.judge(channels[0], &receipts);
            }
            _ if is_last => return cut_short(graph, timing, channels),
            _ => patterns *= 2,
        }
    }
}

/// The tasks that the chain goes over, those that pass something on to them within a program, and
/// those that start them.
fn along(graph: &Graph, channels: &[usize]) -> Vec<bool> {
    let ends = |task: &Task| {
        let ends = task.nodes.iter().filter_map(|node| match node.kind {
            NodeKind::Read { channel, .. } | NodeKind::Write { channel, .. } => Some(channel),
            _ => None,
        });
        ends.collect::<BTreeSet<usize>>()
    };
    let ends: Vec<_> = graph.tasks.iter().map(ends).collect();
    let is_fifo = |c: &usize| matches!(graph.channels[*c].kind, ChannelKind::Fifo { .. });
    let is_joined = |(a, b): (usize, usize)| {
        let (one, other) = (&graph.tasks[a], &graph.tasks[b]);
        let share =
            one.latest.iter().any(|x| other.latest.iter().any(|y| x.variable == y.variable));
        one.program == other.program && (share || ends[a].intersection(&ends[b]).any(is_fifo))
    };
    let starts = |a: usize, b: usize| {
        graph.tasks[a].nodes.iter().any(|node| node.kind == NodeKind::Run { task: b })
    };
    let mut wanted: Vec<bool> =
        ends.iter().map(|ends| channels.iter().any(|c| ends.contains(c))).collect();
    let mut open: Vec<usize> = (0..wanted.len()).filter(|task| wanted[*task]).collect();
    while let Some(task) = open.pop() {
        for (other, is_wanted) in wanted.iter_mut().enumerate() {
            if !*is_wanted && (is_joined((task, other)) || starts(other, task)) {
                *is_wanted = true;
                open.push(other);
            }
        }
    }
    wanted
}

/// Where the table does not show everything: the least latencies of all channels, if there is
/// something at the end.
fn at_best(graph: &Graph, timing: &Timing, channels: &[usize]) -> ChainTime {
    let reads = |row: &Row| {
        let what = &graph.tasks[row.task].nodes[row.node].kind;
        matches!(what, NodeKind::Read { channel, .. } if Some(channel) == channels.last())
    };
    let shortest = |channel: &usize| match &graph.channels[*channel].kind {
        ChannelKind::Network(network) => network.latencies.iter().map(|(_, l)| l.lo).min(),
        _ => None,
    };
    let comes = timing.rows.iter().any(|row| reads(row) && !row.messages.is_empty());
    let best = channels.iter().filter_map(shortest).sum();
    ChainTime { latency: comes.then_some(Interval::from(best)), ..ChainTime::default() }
}

/// The same for a chain that takes more work than there may be.
fn cut_short(graph: &Graph, timing: &Timing, channels: &[usize]) -> ChainTime {
    ChainTime { is_cut_short: true, ..at_best(graph, timing, channels) }
}

/// A value on its way: which capture it comes from, and its age.
#[derive(Clone, Copy, Debug)]
struct Sample {
    /// The row of the capture.
    capture: usize,
    age: Interval,
    /// The row of the chain's message that brought it, how old it was in that at the most, and how
    /// long ago that was at the most.
    message: usize,
    age_then: Option<Span>,
    since: Option<Span>,
    /// The way that is the longest, in [`Propagation::steps`].
    step: usize,
}

type Samples = Vec<Sample>;

/// A step of the longest way of a sample.
#[derive(Clone, Copy, Debug)]
struct PathStep {
    row: usize,
    /// The longest age behind it.
    age: Option<Span>,
    before: Option<usize>,
}

/// The last reading end's visits, with what they get.
struct Receipt {
    row: usize,
    samples: Samples,
}

struct Propagation<'a> {
    graph: &'a Graph,
    rows: Vec<Row>,
    /// Nothing is missing until then.
    until: Span,
    steady: Span,
    shift: Span,
    /// Of each row that reads an lvchannel: the rows that may have written what is there, and when
    /// it is over at the latest.
    stored: BTreeMap<usize, Vec<(usize, Option<Span>)>>,
    /// Rows, causes first.
    order: Vec<usize>,
    /// Whether there is such an order.
    is_ordered: bool,
    steps: Vec<PathStep>,
    /// Samples that were looked at.
    work: usize,
}

/// What may lie between two instants of one execution, less than nothing for those of two clocks.
fn between(from: Interval, to: Interval) -> Interval {
    let lo = from.hi.map_or(-FAR, |hi| to.lo - hi);
    Interval { lo, hi: to.hi.map(|hi| hi - from.lo) }
}

/// The same on one clock, of which the second instant is not the first.
fn waited(from: Interval, to: Interval) -> Interval {
    let Interval { lo, hi } = between(from, to);
    Interval { lo: lo.max(Span::ZERO), hi }
}

/// The times of both; none if there are none.
fn both(a: Interval, b: Interval) -> Option<Interval> {
    let (lo, hi) = (a.lo.max(b.lo), least(a.hi, b.hi));
    hi.is_none_or(|hi| lo <= hi).then_some(Interval { lo, hi })
}

/// Of what one task writes, in order: what may be there at an instant, and until when at most.
fn latest(rows: &[Row], writes: &[usize], at: Interval) -> Vec<(usize, Option<Span>)> {
    let surely =
        |row: &usize| rows[*row].is_certain && rows[*row].release.hi.is_some_and(|hi| hi < at.lo);
    let from = writes.iter().rposition(surely).unwrap_or(0);
    let over = |next: usize| {
        let next = writes[next + 1..].iter().filter(|row| rows[**row].is_certain);
        next.map(|row| rows[*row].release.hi).next().flatten()
    };
    let possible = (from..writes.len())
        .filter(|index| at.hi.is_none_or(|hi| rows[writes[*index]].release.lo <= hi));
    possible.map(|index| (writes[index], over(index))).collect()
}

/// Whether a longest age is longer than another one.
fn is_longer(a: Option<Span>, b: Option<Span>) -> bool {
    match (a, b) {
        (_, None) => false,
        (None, Some(_)) => true,
        (Some(a), Some(b)) => a > b,
    }
}

impl<'a> Propagation<'a> {
    fn new(graph: &'a Graph, unroller: &Unroller<'_>, unrolled: Unrolled) -> Self {
        let Unrolled { rows, until } = unrolled;
        let (steady, shift) = (unroller.steady, unroller.shift);
        let mut walk = Self {
            graph,
            rows,
            until,
            steady,
            shift,
            stored: BTreeMap::new(),
            order: Vec::new(),
            is_ordered: true,
            steps: Vec::new(),
            work: 0,
        };
        walk.store();
        walk.sort();
        walk
    }

    /// Finds what readers of lvchannels find there.
    fn store(&mut self) {
        let rows = &self.rows;
        let mut writes: BTreeMap<(&str, &str), BTreeMap<usize, Vec<usize>>> = BTreeMap::new();
        let mut reads = Vec::new();
        for (at, row) in rows.iter().enumerate() {
            let task = &self.graph.tasks[row.task];
            for access in task.latest.iter().filter(|access| access.node == row.node) {
                let name = (task.program.as_str(), access.variable.as_str());
                match access.is_write {
                    true => writes.entry(name).or_default().entry(row.task).or_default().push(at),
                    false => reads.push((at, name)),
                }
            }
        }
        for (read, name) in reads {
            let by_task = writes.get(&name).into_iter().flat_map(BTreeMap::values);
            let found = by_task.flat_map(|writes| latest(rows, writes, rows[read].arrival));
            self.stored.insert(read, found.collect());
        }
    }

    /// Rows in an order in which those that lead to one stand before it.
    fn sort(&mut self) {
        #[derive(Clone, Copy, PartialEq)]
        enum Seen {
            No,
            Open,
            Done,
        }
        let causes = |row: usize| {
            let Row { before, messages, .. } = &self.rows[row];
            let stored = self.stored.get(&row).into_iter().flatten().map(|(write, _)| *write);
            before.iter().map(|b| b.0).chain(messages.iter().copied()).chain(stored).collect()
        };
        let mut order = Vec::with_capacity(self.rows.len());
        let mut seen = vec![Seen::No; self.rows.len()];
        let mut is_ordered = true;
        for first in 0..self.rows.len() {
            if seen[first] != Seen::No {
                continue;
            }
            seen[first] = Seen::Open;
            let mut open: Vec<(usize, Vec<usize>)> = vec![(first, causes(first))];
            while let Some((row, left)) = open.last_mut() {
                match left.pop() {
                    Some(cause) if seen[cause] == Seen::No => {
                        seen[cause] = Seen::Open;
                        open.push((cause, causes(cause)));
                    }
                    Some(cause) => is_ordered &= seen[cause] == Seen::Done,
                    None => {
                        seen[*row] = Seen::Done;
                        order.push(*row);
                        open.pop();
                    }
                }
            }
        }
        (self.order, self.is_ordered) = (order, is_ordered);
    }

    /// The receipts at the end of the chain.
    fn follow(&mut self, channels: &[usize], last: usize) -> Vec<Receipt> {
        let mut messages = self.captures(channels[0]);
        for pair in channels.windows(2) {
            let carried = self.carry(pair[0], &messages);
            messages = self.written(pair, &carried);
        }
        let carried = self.carry(last, &messages);
        self.receipts(last, &carried)
    }

    /// Whether all receipts of one pattern, and those after them, come of what repeats itself: then
    /// there are no others. None if there are none.
    fn is_seen(&self, receipts: &[Receipt]) -> Option<bool> {
        let (from, to) = (self.until - self.shift * 3, self.until - self.shift * 2);
        let is_steady = |s: &Sample| self.captured(s.capture).lo >= self.steady;
        let within = |r: &&Receipt| {
            self.shift == Span::ZERO
                || self.rows[r.row].release.hi.is_none_or(|hi| from < hi && hi <= to)
        };
        let seen = receipts.iter().filter(within).map(|r| {
            self.shift == Span::ZERO
                || self.rows[r.row].release.hi.is_none()
                || r.samples.iter().all(is_steady)
        });
        seen.reduce(|a, b| a && b)
    }

    /// Whether more samples were looked at than there may be: then what is found is not all.
    fn is_too_much(&self) -> bool {
        self.work > SAMPLES
    }

    /// Adds a sample; of the same capture and message there is one.
    fn merge(&mut self, samples: &mut Samples, new: Sample) {
        self.work += 1 + samples.len();
        merge(samples, new);
    }

    fn what(&self, row: usize) -> &NodeKind {
        let row = &self.rows[row];
        &self.graph.tasks[row.task].nodes[row.node].kind
    }

    /// From the begin of a writing end's visit to the capture.
    fn held_back(&self, row: usize) -> Interval {
        let visit = &self.rows[row];
        let NodeKind::Write { channel, waits: true } = *self.what(row) else { return visit.took };
        let ChannelKind::Network(network) = &self.graph.channels[channel].kind else {
            return visit.took;
        };
        let Interval { lo, hi } = self.wait(visit.task, network.fixed_delay);
        Interval {
            lo: hi.map_or(Span::ZERO, |hi| (visit.took.lo - hi).max(Span::ZERO)),
            hi: visit.took.hi.map(|most| (most - lo).max(Span::ZERO)),
        }
    }

    /// How long a task that waits so long waits.
    fn wait(&self, task: usize, delay: Span) -> Interval {
        Interval::exactly(delay) + self.graph.hosts[self.graph.tasks[task].host].wakeup
    }

    /// When the message of a writing end's visit was captured.
    fn captured(&self, row: usize) -> Interval {
        let visit = &self.rows[row];
        let NodeKind::Write { channel, waits: true } = *self.what(row) else {
            return visit.release;
        };
        let ChannelKind::Network(network) = &self.graph.channels[channel].kind else {
            return visit.release;
        };
        let after = visit.arrival + self.held_back(row);
        let wait = self.wait(visit.task, network.fixed_delay);
        let before = Interval {
            lo: wait.hi.map_or(-FAR, |hi| visit.release.lo - hi),
            hi: visit.release.hi.map(|hi| hi - wait.lo),
        };
        both(after, before).unwrap_or(after)
    }

    /// A sample behind one more step, tied to the timeline: at `at` it is no older than the time
    /// since its capture.
    fn step(
        &mut self,
        sample: &Sample,
        row: usize,
        grown: Interval,
        at: Interval,
    ) -> Option<Sample> {
        let sample = self.moved(sample, grown, at)?;
        self.steps.push(PathStep { row, age: sample.age.hi, before: Some(sample.step) });
        Some(Sample { step: self.steps.len() - 1, ..sample })
    }

    /// A sample that has become older, at an instant.
    fn moved(&self, sample: &Sample, grown: Interval, at: Interval) -> Option<Sample> {
        let age = both(sample.age + grown, between(self.captured(sample.capture), at))?;
        let apart = between(self.captured(sample.message), at).hi;
        let since = sample.since.zip(grown.hi).map(|(since, more)| since + more);
        Some(Sample { age, since: least(since, apart), ..*sample })
    }

    fn is_write(&self, row: usize, to: usize) -> bool {
        matches!(self.what(row), NodeKind::Write { channel, .. } if *channel == to)
    }

    /// Each write of the first channel is a capture.
    fn captures(&mut self, channel: usize) -> BTreeMap<usize, Samples> {
        let rows = (0..self.rows.len()).filter(|row| self.is_write(*row, channel));
        let rows: Vec<usize> = rows.collect();
        let capture = |row| {
            self.steps.push(PathStep { row, age: Some(Span::ZERO), before: None });
            let step = self.steps.len() - 1;
            let (age, since) = (Interval::ZERO, Some(Span::ZERO));
            let sample = Sample { capture: row, age, message: row, age_then: since, since, step };
            (row, vec![sample])
        };
        rows.into_iter().map(capture).collect()
    }

    /// What tasks hold when each row is done, if `messages` are those of `channel`.
    fn carry(&mut self, channel: usize, messages: &BTreeMap<usize, Samples>) -> Vec<Samples> {
        let mut held: Vec<Samples> = vec![Samples::new(); self.rows.len()];
        let mut inner: BTreeMap<usize, Samples> = BTreeMap::new();
        for row in self.order.clone() {
            if self.is_too_much() {
                break;
            }
            let visit = self.rows[row].clone();
            let mut arriving = Samples::new();
            for (before, gap) in &visit.before {
                for sample in held[*before].clone() {
                    if let Some(moved) = self.moved(&sample, *gap, visit.arrival) {
                        self.merge(&mut arriving, moved);
                    }
                }
            }
            held[row] = match *self.what(row) {
                _ if self.stored.contains_key(&row) => {
                    let got = self.load(row, &inner);
                    if got.is_empty() { self.pass(row, &arriving) } else { got }
                }
                NodeKind::Read { channel: from, waits } => {
                    let source = if from == channel { messages } else { &inner };
                    let got = self.read(row, (from, waits), source);
                    match got.is_empty() && from != channel {
                        true => self.pass(row, &arriving),
                        false => got,
                    }
                }
                NodeKind::Write { channel: to, .. } => {
                    let is_fifo = matches!(self.graph.channels[to].kind, ChannelKind::Fifo { .. });
                    if to != channel && is_fifo && !arriving.is_empty() {
                        inner.insert(row, arriving.clone());
                    }
                    self.pass(row, &arriving)
                }
                _ => {
                    if !arriving.is_empty() && self.is_store(row) {
                        inner.insert(row, arriving.clone());
                    }
                    self.pass(row, &arriving)
                }
            };
        }
        held
    }

    /// Whether a row writes an lvchannel.
    fn is_store(&self, row: usize) -> bool {
        let visit = &self.rows[row];
        let latest = &self.graph.tasks[visit.task].latest;
        latest.iter().any(|access| access.is_write && access.node == visit.node)
    }

    /// What a reader of an lvchannel finds there.
    fn load(&mut self, row: usize, stores: &BTreeMap<usize, Samples>) -> Samples {
        let release = self.rows[row].release;
        let mut got = Samples::new();
        for (write, over) in self.stored[&row].clone() {
            let at = both(release, Interval { lo: release.lo, hi: over }).unwrap_or(release);
            let waited = waited(self.rows[write].release, at);
            for sample in stores.get(&write).cloned().unwrap_or_default() {
                if let Some(sample) = self.step(&sample, row, waited, at) {
                    self.merge(&mut got, sample);
                }
            }
        }
        got
    }

    /// What a visit lets pass, older by what it took.
    fn pass(&mut self, row: usize, arriving: &Samples) -> Samples {
        let visit = &self.rows[row];
        let (took, release) = (visit.took, visit.release);
        arriving.iter().filter_map(|s| self.step(s, row, took, release)).collect()
    }

    /// What a reading end gets.
    fn read(
        &mut self,
        row: usize,
        (channel, waits): (usize, bool),
        messages: &BTreeMap<usize, Samples>,
    ) -> Samples {
        let visit = self.rows[row].clone();
        let (latency, wait) = self.latency(channel, visit.task, waits);
        let mut got = Samples::new();
        for write in &visit.messages {
            let Some(samples) = messages.get(write) else { continue };
            let captured = self.captured(*write);
            // The reader waits for the message, or the message for the reader.
            let queued = between(captured, visit.arrival);
            let there = queued.later(latency);
            let grown = wait.map_or(there, |wait| there.later(wait));
            for sample in samples.clone() {
                if let Some(sample) = self.step(&sample, row, grown, visit.release) {
                    self.merge(&mut got, sample);
                }
            }
        }
        got
    }

    /// From capture to receipt, and to when a reader that waits for the fixed delay continues.
    fn latency(&self, channel: usize, task: usize, waits: bool) -> (Interval, Option<Interval>) {
        let ChannelKind::Network(network) = &self.graph.channels[channel].kind else {
            return (Interval::ZERO, None);
        };
        let host = self.graph.tasks[task].host;
        let found = network.latencies.iter().find(|(at, _)| *at == host);
        let latency = found.map_or(Interval::from(-FAR), |(_, latency)| *latency);
        (latency, waits.then(|| self.wait(task, network.fixed_delay)))
    }

    /// The messages of the second channel, made of what was read of the first.
    fn written(&mut self, pair: &[usize], held: &[Samples]) -> BTreeMap<usize, Samples> {
        let rows = 0..self.rows.len();
        let writes: Vec<usize> = rows.filter(|row| self.is_write(*row, pair[1])).collect();
        let flows = (0..held.len()).filter(|row| !held[*row].is_empty());
        let flows: BTreeSet<usize> = flows.map(|row| self.rows[row].task).collect();
        let spaced = self.spaced(pair, &writes, held);
        let mut made = BTreeMap::new();
        for row in writes {
            if self.is_too_much() {
                break;
            }
            let visit = self.rows[row].clone();
            let before = visit
                .before
                .iter()
                .flat_map(|(before, gap)| held[*before].iter().map(move |sample| (*sample, *gap)));
            let before: Vec<_> = before.collect();
            let (captured, held_back) = (self.captured(row), self.held_back(row));
            let mut samples = Samples::new();
            for (sample, gap) in before {
                if let Some(sample) = self.step(&sample, row, gap + held_back, captured) {
                    self.merge(&mut samples, sample);
                }
            }
            if !flows.contains(&visit.task) {
                samples = self.sampled(row, pair[0], held);
            }
            for sample in &mut samples {
                let most = spaced.zip(sample.age_then).map(|(most, then)| then + most);
                sample.age.hi = least(sample.age.hi, most);
                self.steps[sample.step].age = sample.age.hi;
                *sample = message(row, sample);
            }
            made.insert(row, samples);
        }
        made
    }

    /// The longest from a message of the first channel to the one that is written for it, if each
    /// that is written is for another one. The rate that the first ones have kept then holds the
    /// second ones back no longer than whichever comes to its write the latest, and by how much the
    /// first ones may come too early. A wake-up that is late by no more than the tolerance delays
    /// none after it.
    fn spaced(&self, pair: &[usize], writes: &[usize], held: &[Samples]) -> Option<Span> {
        let network = |channel: usize| match &self.graph.channels[channel].kind {
            ChannelKind::Network(network) => Some(network),
            _ => None,
        };
        let (from, to) = network(pair[0]).zip(network(pair[1]))?;
        let task = self.rows[*writes.first()?].task;
        let late = self.graph.hosts[self.graph.tasks[task].host].wakeup.hi?;
        let (early, most_late) = match to.catch_up {
            Span::ZERO if from.early > to.tolerance => return None,
            Span::ZERO => (Span::ZERO, to.tolerance),
            // What is held is held until it is due, so that no tolerance is left.
            catch_up => (from.early, catch_up),
        };
        if from.interval < to.interval || late > most_late {
            return None;
        }
        let (mut most, mut last) = (Span::ZERO, None);
        for visit in writes.iter().map(|row| &self.rows[*row]) {
            let before = visit.before.iter();
            let all = before.flat_map(|(before, gap)| held[*before].iter().map(move |s| (s, gap)));
            let mut message = None;
            for (sample, gap) in all {
                let Some(sample) = self.moved(sample, *gap, visit.arrival) else { continue };
                if message.is_some_and(|known| known != sample.message) {
                    return None;
                }
                message = Some(sample.message);
                most = most.max(sample.since?);
            }
            let is_beyond = visit.arrival.hi.is_none_or(|hi| hi > self.until);
            let follows =
                |last: usize, new: usize| last < new && self.rows[last].task == self.rows[new].task;
            match (last, message) {
                (_, None) if is_beyond => {}
                (Some(last), Some(new)) if !follows(last, new) => return None,
                (_, Some(new)) if visit.task == task => last = Some(new),
                _ => return None,
            }
        }
        Some(most + late + early)
    }

    /// What a host's tasks had read when one of them writes: nothing leads there, but they share
    /// their memory.
    fn sampled(&mut self, write: usize, channel: usize, held: &[Samples]) -> Samples {
        let captured = self.captured(write);
        let mut samples = Samples::new();
        self.work += self.rows.len();
        for read in self.looked_at(write, channel) {
            let waited = waited(self.rows[read].release, captured);
            for sample in held[read].clone() {
                if let Some(sample) = self.step(&sample, write, waited, captured) {
                    self.merge(&mut samples, sample);
                }
            }
        }
        samples
    }

    /// The reads whose value a write may be of: it was looked at after the write before, and each
    /// was there before the next read.
    fn looked_at(&self, write: usize, channel: usize) -> Vec<usize> {
        let rows = &self.rows;
        let (task, captured) = (rows[write].task, self.captured(write));
        let place = |row: usize| (rows[row].task, rows[row].node);
        let before = rows[..write].iter().enumerate().rev();
        let before = before.filter(|(row, r)| place(*row) == place(write) && r.is_certain);
        let first = rows.iter().find(|row| row.task == task).map(|row| row.arrival.lo);
        let since = before.map(|(_, row)| row.arrival.lo).next().or(first).unwrap_or_default();
        let is_read = |row: &usize| {
            self.graph.tasks[rows[*row].task].host == self.graph.tasks[task].host
                && matches!(self.what(*row), NodeKind::Read { channel: c, .. } if *c == channel)
        };
        let reads: Vec<usize> = (0..rows.len()).filter(is_read).collect();
        let of_a_task = reads.chunk_by(|a, b| rows[*a].task == rows[*b].task);
        let possible = |reads: &[usize]| {
            // Is the one after this there, and this one over, before the write looks?
            let over = |at: &usize| {
                let next = reads[at + 1..].iter().find(|row| rows[**row].is_certain);
                next.is_some_and(|row| rows[*row].arrival.hi.is_some_and(|hi| hi < since))
            };
            let from = (0..reads.len()).rev().find(|at| rows[reads[*at]].is_certain && over(at));
            let comes = |row: &usize| captured.hi.is_none_or(|hi| rows[*row].release.lo <= hi);
            reads[from.unwrap_or(0)..].iter().copied().filter(comes).collect::<Vec<_>>()
        };
        of_a_task.flat_map(possible).collect()
    }

    fn receipts(&self, channel: usize, held: &[Samples]) -> Vec<Receipt> {
        let is_end = |row: &usize| {
            matches!(self.what(*row), NodeKind::Read { channel: c, .. } if *c == channel)
                && self.rows[*row].release.hi.is_none_or(|hi| hi <= self.until)
                && !held[*row].is_empty()
        };
        let rows = (0..held.len()).filter(is_end);
        rows.map(|row| Receipt { row, samples: held[row].clone() }).collect()
    }

    fn judge(&self, first: usize, receipts: &[Receipt]) -> ChainTime {
        let all = || receipts.iter().flat_map(|r| &r.samples);
        let latency = all().map(|s| s.age).reduce(Interval::or);
        let worst = all().reduce(|a, b| if is_longer(b.age.hi, a.age.hi) { b } else { a });
        let terms = worst.filter(|s| s.age.hi.is_some()).map(|s| self.terms(s.step));
        let certain = self.certain();
        let is_cut_short = self.rows.len().saturating_mul(all().count()) > SAMPLES * 50;
        let not_cut = |how: fn(&Self, usize, &[Receipt], &[bool]) -> Option<Span>| {
            if is_cut_short { None } else { how(self, first, receipts, &certain) }
        };
        ChainTime {
            latency,
            terms: terms.unwrap_or_default(),
            age: not_cut(|walk, _, receipts, certain| walk.age(receipts, certain)),
            reaction: not_cut(Self::reaction),
            is_cut_short,
        }
    }

    /// Of each row, whether it is done in every execution: no abort leads away from it.
    fn certain(&self) -> Vec<bool> {
        let mut certain: Vec<bool> = self.rows.iter().map(|row| row.is_certain).collect();
        for row in &self.rows {
            for (before, gap) in &row.before {
                let from = &self.rows[*before];
                let node = &self.graph.tasks[from.task].nodes[from.node];
                let is_next = node.next.contains(&row.node) && *gap == Interval::ZERO;
                if node.guard == Some(row.node) && !is_next {
                    certain[*before] = false;
                }
            }
        }
        certain
    }

    /// From a capture to a later receipt, of which it is known how old its own data are.
    fn spread(&self, capture: usize, receipt: &Receipt) -> Option<Span> {
        let from = self.captured(capture);
        let apart = self.rows[receipt.row].release.hi.map(|hi| hi - from.lo);
        let over = receipt.samples.iter().map(|sample| {
            if sample.capture == capture {
                return sample.age.hi;
            }
            let later = self.captured(sample.capture).hi?;
            Some(sample.age.hi? + (later - from.lo))
        });
        let over = over.collect::<Option<Vec<_>>>().and_then(|all| all.into_iter().max());
        least(apart, over)
    }

    /// The longest from a capture to the receipt after the last that still has it.
    fn age(&self, receipts: &[Receipt], certain: &[bool]) -> Option<Span> {
        let mut most = None;
        for (at, receipt) in receipts.iter().enumerate() {
            let task = self.rows[receipt.row].task;
            let later = receipts[at + 1..].iter();
            let later = later.filter(|r| self.rows[r.row].task == task);
            let Some(next) = up_to_certain(later, certain) else {
                let end = self.rows[receipt.row].release.hi?;
                if end <= self.until - self.shift * 2 && self.shift > Span::ZERO {
                    return None;
                }
                continue;
            };
            for sample in &receipt.samples {
                for next in &next {
                    most = most.max(Some(self.spread(sample.capture, next)?));
                }
            }
        }
        most
    }

    /// The longest from a capture to the first receipt of a later one.
    fn reaction(&self, first: usize, receipts: &[Receipt], certain: &[bool]) -> Option<Span> {
        let captures = (0..self.rows.len()).filter(|row| self.is_write(*row, first));
        let mut tasks: Vec<usize> = receipts.iter().map(|r| self.rows[r.row].task).collect();
        tasks.sort_unstable();
        tasks.dedup();
        let mut most = None;
        for capture in captures {
            let since = self.captured(capture);
            for task in &tasks {
                let fresh = |r: &&Receipt| {
                    let newer = |s: &Sample| {
                        s.capture != capture && self.captured(s.capture).lo >= since.lo
                    };
                    self.rows[r.row].task == *task && r.samples.iter().all(newer)
                };
                let fresh = receipts.iter().filter(fresh);
                let Some(shown) = up_to_certain(fresh, certain) else {
                    if since.hi? <= self.steady + self.shift && self.shift > Span::ZERO {
                        return None;
                    }
                    continue;
                };
                for receipt in shown {
                    most = most.max(Some(self.spread(capture, receipt)?));
                }
            }
        }
        most
    }

    /// The longest way as a sum.
    fn terms(&self, last: usize) -> Vec<BoundTerm> {
        let mut way = vec![self.steps[last]];
        while let Some(before) = way.last().and_then(|step| step.before) {
            way.push(self.steps[before]);
        }
        way.reverse();
        let mut terms: Vec<BoundTerm> = Vec::new();
        for pair in way.windows(2) {
            let [from, to] = [pair[0].age, pair[1].age].map(Option::unwrap_or_default);
            self.add_terms(&mut terms, pair[1].row, to - from);
        }
        // What the timeline takes back of an earlier term was not waited there.
        let mut at = 0;
        while at < terms.len() {
            if terms[at].span < Span::ZERO && at > 0 {
                let back = terms.remove(at).span;
                terms[at - 1].span += back;
                at -= 1;
            } else {
                at += 1;
            }
        }
        terms.retain(|term| term.span != Span::ZERO);
        terms
    }

    fn add_terms(&self, terms: &mut Vec<BoundTerm>, row: usize, span: Span) {
        let visit = &self.rows[row];
        let task = &self.graph.tasks[visit.task];
        let place = format!("{}:{}", task.name, task.nodes[visit.node].place);
        let mut add = |what: String, span: Span| match terms.last_mut() {
            Some(last) if last.what == what => last.span += span,
            _ => terms.push(BoundTerm { what, span }),
        };
        match *self.what(row) {
            NodeKind::Read { channel, waits } => {
                let (latency, wait) = self.latency(channel, visit.task, waits);
                let there = wait.map_or(latency, |wait| latency.later(wait));
                let most = there.hi.unwrap_or(span).min(span);
                add(format!("channel {}", self.graph.channels[channel].name), most);
                add(format!("waiting to be read at {place}"), span - most);
            }
            _ if self.stored.contains_key(&row) => {
                add(format!("waiting to be taken at {place}"), span);
            }
            NodeKind::Point { .. } => add(format!("waiting for the release of {place}"), span),
            NodeKind::Write { channel, .. } => {
                let name = &self.graph.channels[channel].name;
                add(format!("waiting to be written to {name} at {place}"), span);
            }
            _ => add(format!("code at {place}"), span),
        }
    }
}

/// The first receipts, up to one that every execution has.
fn up_to_certain<'r>(
    receipts: impl Iterator<Item = &'r Receipt>,
    certain: &[bool],
) -> Option<Vec<&'r Receipt>> {
    let mut found = Vec::new();
    for receipt in receipts {
        found.push(receipt);
        if certain[receipt.row] {
            return Some(found);
        }
    }
    None
}

/// A sample that is on its way in a message now.
fn message(row: usize, sample: &Sample) -> Sample {
    Sample { message: row, age_then: sample.age.hi, since: Some(Span::ZERO), ..*sample }
}

/// Adds a sample; of the same capture and message there is one.
fn merge(samples: &mut Samples, new: Sample) {
    match samples.iter_mut().find(|s| (s.capture, s.message) == (new.capture, new.message)) {
        None => samples.push(new),
        Some(known) => {
            if is_longer(new.age.hi, known.age.hi) {
                known.step = new.step;
            }
            known.age = known.age.or(new.age);
            known.since = known.since.zip(new.since).map(|(a, b)| a.max(b));
            known.age_then = known.age_then.zip(new.age_then).map(|(a, b)| a.max(b));
        }
    }
}

#[cfg(test)]
mod tests;
