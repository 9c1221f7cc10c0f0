//! Chains: how old a value is when it comes out at the end.
//!
//! Every capture of the first channel is followed along the table's rows: through the tasks that
//! read it, over what they write next, to the last reader. Its age there is an interval. It grows
//! by what each visit takes, and is never more than the two instants leave it, which ties it to the
//! timeline again where a task waits for a release.

use onbeat_model::graph::{ChannelKind, Graph, Interval, What};
use onbeat_model::plan::BoundTerm;
use onbeat_model::time::Span;
use onbeat_model::timing::{ChainTime, Row, Timing};
use std::collections::BTreeMap;

/// The time of a chain of channels: each is written by what has read the one before it, in the same
/// task or over fifochannels, or, where no message leads from one to the other, by a task of the
/// same host, which then has what was read there last.
pub fn chain(graph: &Graph, timing: &Timing, channels: &[usize]) -> ChainTime {
    let Some((last, _)) = channels.split_last() else { return ChainTime::default() };
    let mut walk = Walk { graph, timing, order: order(&timing.rows), steps: Vec::new() };
    let mut messages = walk.captures(channels[0]);
    for pair in channels.windows(2) {
        let carried = walk.carry(pair[0], &messages);
        messages = walk.written(pair, &carried);
    }
    let carried = walk.carry(*last, &messages);
    let receipts = walk.receipts(*last, &carried);
    walk.judge(channels[0], &receipts)
}

/// A value on its way: which capture it comes from, and its age.
#[derive(Clone, Copy, Debug)]
struct Sample {
    /// The row of the capture.
    capture: usize,
    age: Interval,
    /// The way that is the longest, in [`Walk::steps`].
    step: usize,
}

type Samples = Vec<Sample>;

/// A step of the longest way of a sample.
#[derive(Clone, Copy, Debug)]
struct Step {
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

struct Walk<'a> {
    graph: &'a Graph,
    timing: &'a Timing,
    /// Rows, causes first.
    order: Vec<usize>,
    steps: Vec<Step>,
}

/// Rows in an order in which those that lead to one stand before it.
fn order(rows: &[Row]) -> Vec<usize> {
    let mut order = Vec::with_capacity(rows.len());
    let mut seen = vec![false; rows.len()];
    let causes = |row: usize| {
        let row = &rows[row];
        row.before.iter().map(|b| b.0).chain(row.messages.iter().copied()).collect::<Vec<_>>()
    };
    for first in 0..rows.len() {
        if std::mem::replace(&mut seen[first], true) {
            continue;
        }
        let mut open = vec![(first, causes(first))];
        while let Some((row, left)) = open.last_mut() {
            match left.pop() {
                Some(cause) if !std::mem::replace(&mut seen[cause], true) => {
                    open.push((cause, causes(cause)));
                }
                Some(_) => {}
                None => {
                    order.push(*row);
                    open.pop();
                }
            }
        }
    }
    order
}

/// What may lie between two instants of one execution.
fn between(from: Interval, to: Interval) -> Interval {
    let lo = from.hi.map_or(Span::ZERO, |hi| (to.lo - hi).max(Span::ZERO));
    Interval { lo, hi: to.hi.map(|hi| hi - from.lo) }
}

/// The times of both; none if there are none.
fn both(a: Interval, b: Interval) -> Option<Interval> {
    let hi = match (a.hi, b.hi) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    };
    let lo = a.lo.max(b.lo);
    hi.is_none_or(|hi| lo <= hi).then_some(Interval { lo, hi })
}

/// Whether a longest age is longer than another one.
fn is_longer(a: Option<Span>, b: Option<Span>) -> bool {
    match (a, b) {
        (_, None) => false,
        (None, Some(_)) => true,
        (Some(a), Some(b)) => a > b,
    }
}

impl Walk<'_> {
    fn what(&self, row: usize) -> &What {
        let row = &self.timing.rows[row];
        &self.graph.tasks[row.task].nodes[row.node].what
    }

    /// When the message of a writing end's visit was captured.
    fn captured(&self, row: usize) -> Interval {
        let visit = &self.timing.rows[row];
        let What::Write { channel, waits: true } = *self.what(row) else { return visit.release };
        let ChannelKind::Network(network) = &self.graph.channels[channel].kind else {
            return visit.release;
        };
        let wakeup = self.graph.hosts[self.graph.tasks[visit.task].host].wakeup;
        let hi = visit.release.hi.map(|hi| hi - network.fixed_delay - wakeup.lo);
        Interval { lo: visit.arrival.lo, hi }
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
        let age = both(sample.age + grown, between(self.captured(sample.capture), at))?;
        self.steps.push(Step { row, age: age.hi, before: Some(sample.step) });
        Some(Sample { capture: sample.capture, age, step: self.steps.len() - 1 })
    }

    fn is_write(&self, row: usize, to: usize) -> bool {
        matches!(self.what(row), What::Write { channel, .. } if *channel == to)
    }

    /// Each write of the first channel is a capture.
    fn captures(&mut self, channel: usize) -> BTreeMap<usize, Samples> {
        let rows = (0..self.timing.rows.len()).filter(|row| self.is_write(*row, channel));
        let rows: Vec<usize> = rows.collect();
        let capture = |row| {
            self.steps.push(Step { row, age: Some(Span::ZERO), before: None });
            let step = self.steps.len() - 1;
            (row, vec![Sample { capture: row, age: Interval::ZERO, step }])
        };
        rows.into_iter().map(capture).collect()
    }

    /// What tasks hold when each row is done, if `messages` are those of `channel`.
    fn carry(&mut self, channel: usize, messages: &BTreeMap<usize, Samples>) -> Vec<Samples> {
        let mut held: Vec<Samples> = vec![Samples::new(); self.timing.rows.len()];
        let mut inner: BTreeMap<usize, Samples> = BTreeMap::new();
        for row in self.order.clone() {
            let visit = self.timing.rows[row].clone();
            let mut arriving = Samples::new();
            for (before, gap) in &visit.before {
                for sample in held[*before].clone() {
                    let Some(moved) = both(
                        sample.age + *gap,
                        between(self.captured(sample.capture), visit.arrival),
                    ) else {
                        continue;
                    };
                    merge(&mut arriving, Sample { age: moved, ..sample });
                }
            }
            held[row] = match *self.what(row) {
                What::Read { channel: from, waits } => {
                    let source = if from == channel { messages } else { &inner };
                    let got = self.read(row, (from, waits), source);
                    match got.is_empty() && from != channel {
                        true => self.pass(row, &arriving),
                        false => got,
                    }
                }
                What::Write { channel: to, .. } => {
                    let is_fifo = matches!(self.graph.channels[to].kind, ChannelKind::Fifo { .. });
                    if to != channel && is_fifo && !arriving.is_empty() {
                        inner.insert(row, arriving.clone());
                    }
                    self.pass(row, &arriving)
                }
                _ => self.pass(row, &arriving),
            };
        }
        held
    }

    /// What a visit lets pass, older by what it took.
    fn pass(&mut self, row: usize, arriving: &Samples) -> Samples {
        let visit = &self.timing.rows[row];
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
        let visit = self.timing.rows[row].clone();
        let (latency, wait) = self.latency(channel, visit.task, waits);
        let mut got = Samples::new();
        for write in &visit.messages {
            let Some(samples) = messages.get(write) else { continue };
            let captured = self.captured(*write);
            // The reader waits for the message, or the message for the reader.
            let queued = between(captured, visit.arrival);
            let grown = queued.later(latency).later(wait);
            for sample in samples.clone() {
                if let Some(sample) = self.step(&sample, row, grown, visit.release) {
                    merge(&mut got, sample);
                }
            }
        }
        got
    }

    /// From capture to receipt, and to when a reader that waits for the fixed delay goes on.
    fn latency(&self, channel: usize, task: usize, waits: bool) -> (Interval, Interval) {
        let ChannelKind::Network(network) = &self.graph.channels[channel].kind else {
            return (Interval::ZERO, Interval::ZERO);
        };
        let host = self.graph.tasks[task].host;
        let found = network.latencies.iter().find(|(at, _)| *at == host);
        let latency = found.map_or(Interval::from(Span::ZERO), |(_, latency)| *latency);
        let wait = match waits {
            true => Interval::exactly(network.fixed_delay) + self.graph.hosts[host].wakeup,
            false => Interval::ZERO,
        };
        (latency, wait)
    }

    /// The messages of the second channel, made of what was read of the first.
    fn written(&mut self, pair: &[usize], held: &[Samples]) -> BTreeMap<usize, Samples> {
        let rows = 0..self.timing.rows.len();
        let writes: Vec<usize> = rows.filter(|row| self.is_write(*row, pair[1])).collect();
        let task = |row: usize| self.timing.rows[row].task;
        let mut made = BTreeMap::new();
        for row in writes {
            let visit = self.timing.rows[row].clone();
            let before = visit
                .before
                .iter()
                .flat_map(|(before, gap)| held[*before].iter().map(move |sample| (*sample, *gap)));
            let before: Vec<_> = before.collect();
            let captured = self.captured(row);
            let mut samples = Samples::new();
            for (sample, gap) in before {
                let waited = between(visit.arrival, captured);
                if let Some(sample) = self.step(&sample, row, gap + waited, captured) {
                    merge(&mut samples, sample);
                }
            }
            let flows = (0..held.len()).any(|r| task(r) == visit.task && !held[r].is_empty());
            if !flows {
                samples = self.sampled(row, pair[0], held);
            }
            made.insert(row, samples);
        }
        made
    }

    /// What a host's tasks had read last when one of them writes: no message leads there, but they
    /// share their memory.
    fn sampled(&mut self, write: usize, channel: usize, held: &[Samples]) -> Samples {
        let rows = &self.timing.rows;
        let host = |row: usize| self.graph.tasks[rows[row].task].host;
        let captured = self.captured(write);
        let is_read = |row: &usize| {
            host(*row) == host(write)
                && matches!(self.what(*row), What::Read { channel: c, .. } if *c == channel)
        };
        let reads: Vec<usize> = (0..rows.len()).filter(is_read).collect();
        let surely = |row: &&usize| {
            rows[**row].is_certain && rows[**row].release.hi.is_some_and(|hi| hi <= captured.lo)
        };
        let newest = reads.iter().filter(surely).map(|row| rows[*row].release.lo).max();
        let possible = |row: &usize| {
            let visit = &rows[*row];
            captured.hi.is_none_or(|hi| visit.release.lo <= hi)
                && newest.is_none_or(|at| visit.release.hi.is_none_or(|hi| hi >= at))
        };
        let possible: Vec<usize> = reads.iter().copied().filter(possible).collect();
        let mut samples = Samples::new();
        for row in possible {
            let waited = between(self.timing.rows[row].release, captured);
            for sample in held[row].clone() {
                if let Some(sample) = self.step(&sample, write, waited, captured) {
                    merge(&mut samples, sample);
                }
            }
        }
        samples
    }

    fn receipts(&self, channel: usize, held: &[Samples]) -> Vec<Receipt> {
        let is_end = |row: &usize| {
            matches!(self.what(*row), What::Read { channel: c, .. } if *c == channel)
                && !held[*row].is_empty()
        };
        let rows = (0..held.len()).filter(is_end);
        rows.map(|row| Receipt { row, samples: held[row].clone() }).collect()
    }

    fn judge(&self, first: usize, receipts: &[Receipt]) -> ChainTime {
        let all = || receipts.iter().flat_map(|r| &r.samples);
        let Some(latency) = all().map(|s| s.age).reduce(Interval::or) else {
            return ChainTime::default();
        };
        // What the table does not show may be worse.
        if self.timing.pattern.is_none() {
            return ChainTime { latency: Some(Interval::from(latency.lo)), ..ChainTime::default() };
        }
        let worst = all().reduce(|a, b| if is_longer(b.age.hi, a.age.hi) { b } else { a });
        let terms = worst.filter(|s| s.age.hi.is_some()).map(|s| self.terms(s.step));
        ChainTime {
            latency: Some(latency),
            terms: terms.unwrap_or_default(),
            age: self.age(receipts),
            reaction: self.reaction(first, receipts),
        }
    }

    /// From a capture to a later receipt, of which it is known how old its own data are.
    fn spread(&self, capture: usize, receipt: &Receipt) -> Option<Span> {
        let (rows, from) = (&self.timing.rows, self.captured(capture));
        let apart = rows[receipt.row].release.hi.map(|hi| hi - from.lo);
        let over = receipt.samples.iter().map(|sample| {
            let later = self.captured(sample.capture).hi?;
            Some(sample.age.hi? + (later - from.lo))
        });
        let over = over.collect::<Option<Vec<_>>>().and_then(|all| all.into_iter().max());
        match (apart, over) {
            (Some(apart), Some(over)) => Some(apart.min(over)),
            (apart, over) => apart.or(over),
        }
    }

    /// The longest from a capture to the receipt after the last that still has it.
    fn age(&self, receipts: &[Receipt]) -> Option<Span> {
        let mut most = None;
        for (at, receipt) in receipts.iter().enumerate() {
            let task = self.timing.rows[receipt.row].task;
            let later = receipts[at + 1..].iter();
            let later = later.filter(|r| self.timing.rows[r.row].task == task);
            let Some(next) = self.up_to_certain(later) else { continue };
            for sample in &receipt.samples {
                for next in &next {
                    most = most.max(Some(self.spread(sample.capture, next)?));
                }
            }
        }
        most
    }

    /// The longest from a capture to the first receipt of a later one.
    fn reaction(&self, first: usize, receipts: &[Receipt]) -> Option<Span> {
        let rows = &self.timing.rows;
        let captures = (0..rows.len()).filter(|row| self.is_write(*row, first));
        let mut tasks: Vec<usize> = receipts.iter().map(|r| rows[r.row].task).collect();
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
                    rows[r.row].task == *task && r.samples.iter().all(newer)
                };
                let Some(shown) = self.up_to_certain(receipts.iter().filter(fresh)) else {
                    continue;
                };
                for receipt in shown {
                    most = most.max(Some(self.spread(capture, receipt)?));
                }
            }
        }
        most
    }

    /// The first receipts, up to one that every execution has.
    fn up_to_certain<'r>(
        &self,
        receipts: impl Iterator<Item = &'r Receipt>,
    ) -> Option<Vec<&'r Receipt>> {
        let mut found = Vec::new();
        for receipt in receipts {
            found.push(receipt);
            if self.timing.rows[receipt.row].is_certain {
                return Some(found);
            }
        }
        None
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
        let visit = &self.timing.rows[row];
        let task = &self.graph.tasks[visit.task];
        let place = format!("{}:{}", task.name, task.nodes[visit.node].place);
        let mut add = |what: String, span: Span| match terms.last_mut() {
            Some(last) if last.what == what => last.span += span,
            _ => terms.push(BoundTerm { what, span }),
        };
        match *self.what(row) {
            What::Read { channel, waits } => {
                let (latency, wait) = self.latency(channel, visit.task, waits);
                let most = latency.later(wait).hi.unwrap_or(span).min(span);
                add(format!("channel {}", self.graph.channels[channel].name), most);
                add(format!("waiting to be read at {place}"), span - most);
            }
            What::Point { .. } => add(format!("waiting for the release of {place}"), span),
            What::Write { channel, .. } => {
                let name = &self.graph.channels[channel].name;
                add(format!("waiting to be written to {name} at {place}"), span);
            }
            _ => add(format!("code at {place}"), span),
        }
    }
}

/// Adds a sample; of the same capture there is one.
fn merge(samples: &mut Samples, new: Sample) {
    match samples.iter_mut().find(|s| s.capture == new.capture) {
        None => samples.push(new),
        Some(known) => {
            if is_longer(new.age.hi, known.age.hi) {
                known.step = new.step;
            }
            known.age = known.age.or(new.age);
        }
    }
}
