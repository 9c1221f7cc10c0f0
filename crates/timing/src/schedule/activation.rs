//! Activation of tasks by messages (holistic analysis; Tindell and Clark 1994): a
//! message comes as often as its writer's jobs do, and as late as that one and its channel may be.
//!
//! Messages of a channel have *nominal* times, at least a period apart, and come up to a jitter
//! after theirs. Periods are found once; jitters grow with the response times of the writers.

use super::demand::{Demand, Job, Jobs, Releases, Tasks, is_thread, sums};
use super::extraction::{JobSegment, UNBOUNDED};
use super::load::ns;
use onbeat_model::graph::{ChannelKind, Graph, NetworkChannel, NodeKind, Task, TaskNode};

/// The activation of a task by messages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Activation {
    /// Its messages are in each of the task's loops.
    channel: usize,
    arrival: Arrival,
    /// The most that is done for one message.
    work: i128,
    /// How often the task suspends itself meanwhile.
    suspensions: u32,
    /// Whether it does so only for channels whose rates allow all messages in the end.
    is_paced: bool,
    /// By how many periods more a job may be late at the begin.
    late: i128,
}

/// How often messages come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Arrival {
    /// None: once.
    period: Option<i128>,
    /// So many at once.
    messages: i128,
}

impl Arrival {
    /// Whether messages are rarer in the long run.
    fn is_rarer(self, other: Self) -> bool {
        match (self.period, other.period) {
            (None, _) => other.period.is_some(),
            (Some(_), None) => false,
            (Some(mine), Some(its)) => mine * other.messages > its * self.messages,
        }
    }
}

/// What writes a channel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source {
    writer: usize,
    arrival: Arrival,
    /// From the nominal release of the writer's job to the write, at least.
    best: i128,
    /// Whether the writer's response time counts up to the write.
    is_prompt: bool,
    /// The most by which it is late, where something else says that.
    most: Most,
}

/// Why a writer is not later than something.
#[derive(Clone, Copy, Debug)]
enum Most {
    /// Its job is over when the next one comes.
    Thread,
    /// It has left as many messages as its own channel holds.
    Backlog,
    /// Nothing says so.
    Unknown,
}

impl Tasks<'_> {
    /// Finds what releases each task, beginning with what nothing but time releases. A task is
    /// decided when all that it reads is, or else when no such one is left.
    pub(super) fn link(&mut self) {
        let mut is_activated: Vec<bool> =
            (0..self.extractions.len()).map(|task| self.is_activated(task)).collect();
        let timed: Vec<usize> =
            (0..is_activated.len()).filter(|task| !is_activated[*task]).collect();
        timed.into_iter().for_each(|task| self.write(task));
        loop {
            let open = (0..is_activated.len()).filter(|task| is_activated[*task]);
            let found: Vec<(usize, bool, Activation)> = open
                .filter_map(|task| {
                    self.activation(task).map(|(all, activation)| (task, all, activation))
                })
                .collect();
            let is_any_whole = found.iter().any(|(_, is_whole, _)| *is_whole);
            let count = if is_any_whole { found.len() } else { found.len().min(1) };
            if count == 0 {
                return;
            }
            for (task, is_whole, activation) in found.into_iter().take(count) {
                if is_whole || !is_any_whole {
                    is_activated[task] = false;
                    self.activations[task] = Some(activation);
                    self.order.push(task);
                    self.write(task);
                }
            }
        }
    }

    /// Whether messages release a task.
    fn is_activated(&self, index: usize) -> bool {
        let extraction = &self.extractions[index];
        let jobs = Jobs::new(extraction, &self.job_segments[index]);
        !extraction.is_lost() && jobs.once().is_none() && !jobs.are_timed()
    }

    /// The channel whose messages are in each of a task's ways round and rarest, of those of which
    /// it is known when they come; and whether that is all of them.
    fn activation(&self, index: usize) -> Option<(bool, Activation)> {
        let (extraction, job_segments) = (&self.extractions[index], &self.job_segments[index]);
        let mut read: Vec<usize> = (0..extraction.stops.len())
            .filter_map(|stop| Some(extraction.reads(stop)?.0))
            .collect();
        read.sort_unstable();
        read.dedup();
        let (mut is_whole, mut rarest) = (true, None::<Activation>);
        for channel in read {
            let is_read =
                |stop: usize| extraction.reads(stop).is_some_and(|(read, _)| read == channel);
            let begins = |stop: usize| is_read(stop) || stop == 0;
            let most =
                |job_segments: &[JobSegment]| sums(job_segments, begins, is_read).into_iter().max();
            let steps: Vec<JobSegment> =
                job_segments.iter().map(|p| JobSegment { amount: 1, ..*p }).collect();
            let steps = most(&steps).unwrap_or(0);
            let Some(suspensions) = u32::try_from(steps - 1).ok().filter(|_| steps < UNBOUNDED)
            else {
                continue;
            };
            // Of a rate alone something is known even before the writer is.
            is_whole &= self.sources[channel].is_some() || !self.is_open(channel);
            let Some(arrival) = self.arrival(channel, index) else {
                is_whole = false;
                continue;
            };
            if rarest.is_some_and(|rarest| !arrival.is_rarer(rarest.arrival)) {
                continue;
            }
            let work = most(job_segments).unwrap_or(0);
            let is_paced = arrival.messages == 1
                && arrival.period.is_some_and(|period| self.is_paced(index, period, is_read));
            // What is done before the first message may come right before it.
            let first =
                sums(job_segments, |stop| stop == 0, is_read).into_iter().max().unwrap_or(0);
            let is_early = first > 0 || self.writes_first(index, channel);
            let waiting = if self.links.starts_at_once(self.graph, index) {
                0
            } else {
                capacity(&self.graph.channels[channel].kind)
            };
            let late = waiting + i128::from(is_early);
            rarest = Some(Activation { channel, arrival, work, suspensions, is_paced, late });
        }
        rarest.map(|activation| (is_whole, activation))
    }

    /// Whether it is not decided yet what releases a channel's only writer.
    fn is_open(&self, channel: usize) -> bool {
        let writer = self.links.writer(channel);
        writer.is_some_and(|writer| self.activations[writer].is_none() && self.is_activated(writer))
    }

    /// Whether a task may write something before it reads a channel first.
    fn writes_first(&self, index: usize, channel: usize) -> bool {
        let extraction = &self.extractions[index];
        let is_read = |stop: usize| extraction.reads(stop).is_some_and(|(read, _)| read == channel);
        let counts = extraction.counts(|kind| matches!(kind, NodeKind::Write { .. }));
        sums(&counts, |stop| stop == 0, is_read).into_iter().any(|writes| writes > 0)
    }

    /// Whether a task waits for nothing but rates of channels between the stops that `begins` says,
    /// and these rates allow one message each period, as it writes them.
    fn is_paced(&self, index: usize, period: i128, begins: impl Fn(usize) -> bool) -> bool {
        let extraction = &self.extractions[index];
        let is_begin = |stop: usize| begins(stop) || stop == 0;
        (0..extraction.stops.len()).filter(|stop| !is_begin(*stop)).all(|stop| {
            let Some(channel) = extraction.writes(stop) else { return false };
            let ChannelKind::Network(network) = &self.graph.channels[channel].kind else {
                return false;
            };
            let counts = extraction.counts(|kind| is_write(kind, channel));
            let each = sums(&counts, is_begin, is_begin).into_iter().max().unwrap_or(0);
            let is_alone = self.links.writer(channel) == Some(index);
            is_alone && each <= 1 && ns(network.interval) <= period
        })
    }

    /// How often messages of a channel come to a task; none if unknown.
    fn arrival(&self, channel: usize, reader: usize) -> Option<Arrival> {
        let source = self.sources[channel];
        let written = source.map(|source| source.arrival);
        match &self.graph.channels[channel].kind {
            ChannelKind::Named => None,
            ChannelKind::Fifo { .. } => written,
            ChannelKind::Network(network) => {
                self.varies(channel, network, reader)?;
                // A rate always has an end.
                let is_bounded = |source: Source| !matches!(source.most, Most::Unknown);
                let written = match paced(network) {
                    Some(_) => source.filter(|s| is_bounded(*s)).map(|s| s.arrival),
                    None => written,
                };
                match (paced(network), written) {
                    (Some(rate), Some(written)) if !written.is_rarer(rate) => Some(rate),
                    (rate, written) => written.or(rate),
                }
            }
        }
    }

    /// By how much the latency of a channel varies; none if it has no bound. Who waits for the
    /// fixed delay sees nothing of what is shorter.
    fn varies(&self, channel: usize, network: &NetworkChannel, reader: usize) -> Option<i128> {
        let host = self.graph.tasks[reader].host;
        let mine = network.latencies.iter().find(|(at, _)| *at == host);
        let latency = mine.map(|(_, latency)| *latency)?;
        let is_read = |node: &&TaskNode| -> bool {
            matches!(node.kind, NodeKind::Read { channel: read, .. } if read == channel)
        };
        let mut reads = self.graph.tasks[reader].nodes.iter().filter(is_read);
        let all_wait = reads.all(|node| matches!(node.kind, NodeKind::Read { waits: true, .. }));
        let least = if all_wait { ns(network.fixed_delay) } else { 0 };
        Some((ns(latency.hi?).max(least) - ns(latency.lo).max(least)).max(0))
    }

    /// By how much the messages that release each task come late, if the tasks' jobs end so.
    pub(super) fn jitters(&self, ends: &[Option<i128>]) -> Vec<i128> {
        let mut jitters = vec![0; self.activations.len()];
        for task in &self.order {
            let activation = self.activations[*task].as_ref();
            jitters[*task] =
                activation.map_or(0, |activation| self.jitter(activation, *task, ends, &jitters));
        }
        jitters
    }

    fn jitter(
        &self,
        activation: &Activation,
        reader: usize,
        ends: &[Option<i128>],
        jitters: &[i128],
    ) -> i128 {
        let written = || self.written(activation.channel, ends, jitters);
        let jitter = match &self.graph.channels[activation.channel].kind {
            ChannelKind::Network(network) => {
                let varies = self.varies(activation.channel, network, reader).unwrap_or(UNBOUNDED);
                let rate = paced(network).filter(|rate| *rate == activation.arrival);
                let rate = rate.map(|_| ns(network.early));
                let is_written = self.sources[activation.channel]
                    .is_some_and(|s| s.arrival == activation.arrival);
                let written = is_written.then(written);
                rate.into_iter().chain(written).min().unwrap_or(UNBOUNDED) + varies
            }
            _ => written(),
        };
        let period = activation.arrival.period.unwrap_or(0);
        (jitter + activation.late.saturating_mul(period)).min(UNBOUNDED)
    }

    /// By how much the messages of a channel are captured late.
    fn written(&self, channel: usize, ends: &[Option<i128>], jitters: &[i128]) -> i128 {
        let Some(source) = &self.sources[channel] else { return UNBOUNDED };
        let Some(period) = source.arrival.period else { return 0 };
        let most = match (source.most, &self.activations[source.writer]) {
            (Most::Thread, _) => period,
            // As many as the channel holds, and the one that it is at.
            (Most::Backlog, Some(activation)) => {
                let left = capacity(&self.graph.channels[activation.channel].kind) + 1;
                (jitters[source.writer] + left.saturating_mul(period)).min(UNBOUNDED)
            }
            _ => UNBOUNDED,
        };
        match ends[source.writer].filter(|_| source.is_prompt) {
            Some(end) => most.min((end - source.best).max(0)),
            None => most,
        }
    }

    /// Notes what a task writes that only it writes.
    fn write(&mut self, task: usize) {
        for node in &self.graph.tasks[task].nodes {
            let NodeKind::Write { channel, .. } = node.kind else { continue };
            if self.links.writer(channel) == Some(task) && self.sources[channel].is_none() {
                self.sources[channel] = self.source(task, channel);
            }
        }
    }

    /// When a task writes a channel; none if unknown.
    fn source(&self, writer: usize, channel: usize) -> Option<Source> {
        let (task, extraction) = (&self.graph.tasks[writer], &self.extractions[writer]);
        let counts = extraction.counts(|kind| is_write(kind, channel));
        let (jobs, written) =
            (Jobs::new(extraction, &self.job_segments[writer]), Jobs::new(extraction, &counts));
        let is_known = |arrival: &Arrival| arrival.messages < UNBOUNDED;
        if extraction.is_lost() {
            return None;
        }
        if let Some(all) = written.once() {
            let arrival = Arrival { period: None, messages: all.work };
            let most = Most::Unknown;
            let source = Source { writer, arrival, best: 0, is_prompt: false, most };
            return Some(source).filter(|source| is_known(&source.arrival));
        }
        let is_point = |stop: usize| stop == 0 || extraction.is_point(stop);
        if jobs.are_timed() {
            let period = jobs.apart().gap.max(task.separation.map_or(0, ns));
            let arrival = Arrival { period: Some(period), messages: written.apart().work };
            let is_first = || counts.iter().all(|p| p.amount <= 0 || is_point(p.from));
            let is_paced = || self.is_paced(writer, period, is_point);
            let is_prompt = jobs.suspensions() == 0 || is_first() || is_paced();
            let is_thread = is_thread(task, extraction.sections().is_empty());
            let most = if is_thread { Most::Thread } else { Most::Unknown };
            let is_known = period > 1 && is_known(&arrival);
            let is_bounded = is_thread || jobs.suspensions() == 0;
            let best = shortest(task, channel, |kind| matches!(kind, NodeKind::Point { .. }));
            let source = Source { writer, arrival, best, is_prompt, most };
            return (is_known && is_bounded).then_some(source);
        }
        let activation = self.activations[writer].as_ref()?;
        let is_activated = |stop: usize| {
            extraction.reads(stop).is_some_and(|(read, _)| read == activation.channel)
        };
        let each = sums(&counts, |stop| is_activated(stop) || stop == 0, is_activated)
            .into_iter()
            .max()?;
        let arrival =
            Arrival { messages: each.max(0) * activation.arrival.messages, ..activation.arrival };
        let is_prompt = activation.suspensions == 0 || activation.is_paced;
        let is_it = |kind: &NodeKind| -> bool {
            matches!(kind, NodeKind::Read { channel, .. } if *channel == activation.channel)
        };
        let best = shortest(task, channel, is_it);
        let source = Source { writer, arrival, best, is_prompt, most: Most::Backlog };
        Some(source).filter(|source| is_known(&source.arrival))
    }

    /// What a task asks for that is released by messages. Where it waits for others between them,
    /// what came meanwhile is then done at once: as much as its channel holds.
    pub(super) fn activated(
        &self,
        index: usize,
        ends: &[Option<i128>],
        jitter: i128,
        demand: &mut Demand,
    ) {
        demand.is_thread = false;
        let Some(activation) = &self.activations[index] else {
            let job_segments = self.job_segments[index].iter();
            let work = job_segments.map(|job_segment| job_segment.amount).max().unwrap_or(0);
            demand.releases = Releases::Apart(Job { work, gap: 1, ..Job::default() });
            return;
        };
        demand.jitter = (demand.jitter + jitter).min(UNBOUNDED);
        demand.suspensions = activation.suspensions;
        let period = activation.arrival.period.unwrap_or(0);
        if activation.suspensions > 0 {
            let backlog =
                capacity(&self.graph.channels[activation.channel].kind).saturating_mul(period);
            let own = ends[index].filter(|_| activation.is_paced).map(|end| end - demand.jitter);
            demand.suspension_jitter = own.map_or(backlog, |own| own.max(0)).min(UNBOUNDED);
        }
        let work = (activation.work * activation.arrival.messages).min(UNBOUNDED);
        let job = Job { work, gap: period, ..Job::default() };
        demand.releases = match activation.arrival.period {
            Some(_) => Releases::Apart(job),
            None => Releases::Once(job),
        };
    }

    /// When a task is done with a job that responds so, if that says anything. After each wait it
    /// may wake up late. If messages release it, a job may wait for the one before unless that is
    /// over when the next one comes.
    pub(super) fn end(&self, index: usize, demand: &Demand, response: i128) -> Option<i128> {
        let wakeup = self.graph.hosts[self.graph.tasks[index].host].wakeup.hi.map_or(UNBOUNDED, ns);
        let end = response + i128::from(demand.suspensions).saturating_mul(wakeup);
        let Some(activation) = &self.activations[index] else { return Some(end) };
        let period = activation.arrival.period.unwrap_or(0);
        let is_over =
            activation.suspensions == 0 || activation.is_paced && end - demand.jitter <= period;
        is_over.then_some(end)
    }
}

/// Who writes channels and starts tasks.
#[derive(Clone, Debug)]
pub(super) struct Links {
    /// Of each channel, in order.
    writers: Vec<Vec<usize>>,
    /// Of each task.
    starters: Vec<Vec<usize>>,
}

impl Links {
    pub(super) fn new(graph: &Graph) -> Self {
        let mut writers = vec![Vec::new(); graph.channels.len()];
        let mut starters = vec![Vec::new(); graph.tasks.len()];
        for (at, task) in graph.tasks.iter().enumerate() {
            for node in &task.nodes {
                match node.kind {
                    NodeKind::Write { channel, .. } => writers[channel].push(at),
                    NodeKind::Run { task } => starters[task].push(at),
                    _ => {}
                }
            }
        }
        writers.iter_mut().for_each(Vec::dedup);
        starters.iter_mut().for_each(Vec::dedup);
        Self { writers, starters }
    }

    /// The only task that writes a channel.
    fn writer(&self, channel: usize) -> Option<usize> {
        self.writers[channel].first().copied().filter(|_| self.writers[channel].len() == 1)
    }

    /// Whether a task begins at the system's start, before anything takes time.
    fn starts_at_once(&self, graph: &Graph, task: usize) -> bool {
        let mut at = task;
        // Each step goes to who starts it; a circle does not begin at all.
        for _ in 0..=graph.tasks.len() {
            if graph.tasks[at].is_first {
                return true;
            }
            let [starter] = self.starters[at][..] else { return false };
            if !starts_freely(&graph.tasks[starter], at) {
                return false;
            }
            at = starter;
        }
        false
    }
}

/// Whether nothing takes time on any way through `task` to where it starts another one.
fn starts_freely(task: &Task, other: usize) -> bool {
    let mut seen = vec![false; task.nodes.len()];
    let mut stack: Vec<usize> =
        (0..task.nodes.len()).filter(|at| starts(&task.nodes[*at], other)).collect();
    // Backwards, from there to the start: all that may come before it.
    let mut before = vec![Vec::new(); task.nodes.len()];
    for (at, node) in task.nodes.iter().enumerate() {
        node.next.iter().chain(&node.guard).for_each(|to| before[*to].push(at));
    }
    while let Some(at) = stack.pop() {
        if !std::mem::replace(&mut seen[at], true) {
            stack.extend(&before[at]);
        }
    }
    let is_free = |node: &TaskNode| match &node.kind {
        NodeKind::Fragment { execution } => execution.hi.is_some_and(|hi| ns(hi) == 0),
        NodeKind::Point { .. }
        | NodeKind::Read { .. }
        | NodeKind::Write { .. }
        | NodeKind::Lock(_) => false,
        _ => true,
    };
    task.nodes.iter().zip(&seen).all(|(node, is_before)| !is_before || is_free(node))
}

fn starts(node: &TaskNode, other: usize) -> bool {
    matches!(node.kind, NodeKind::Run { task } if task == other)
}

fn is_write(kind: &NodeKind, channel: usize) -> bool {
    matches!(kind, NodeKind::Write { channel: c, .. } if *c == channel)
}

/// How often a channel's rate lets messages come.
fn paced(network: &NetworkChannel) -> Option<Arrival> {
    let interval = ns(network.interval);
    (interval > 0).then_some(Arrival { period: Some(interval), messages: 1 })
}

fn capacity(kind: &ChannelKind) -> i128 {
    match kind {
        ChannelKind::Fifo { capacity } => i128::from(*capacity),
        ChannelKind::Network(network) => i128::from(network.capacity),
        ChannelKind::Named => UNBOUNDED,
    }
}

/// The least work on any way to where a channel is written, from the start or nodes that `begins`
/// says. What may be aborted takes nothing.
fn shortest(task: &Task, channel: usize, begins: impl Fn(&NodeKind) -> bool) -> i128 {
    let is_begin = |at: &usize| *at == 0 || begins(&task.nodes[*at].kind);
    let mut least = vec![i128::MAX; task.nodes.len()];
    let mut open: Vec<usize> = (0..task.nodes.len()).filter(is_begin).collect();
    open.iter().for_each(|at| least[*at] = 0);
    while let Some(at) = open.pop() {
        let node = &task.nodes[at];
        let work = match node.kind {
            NodeKind::Fragment { execution } if node.guard.is_none() => ns(execution.lo).max(0),
            _ => 0,
        };
        for to in node.next.iter().chain(&node.guard) {
            if least[at] + work < least[*to] {
                least[*to] = least[at] + work;
                open.push(*to);
            }
        }
    }
    let writes = (0..task.nodes.len()).filter(|at| is_write(&task.nodes[*at].kind, channel));
    writes.map(|at| least[at]).min().filter(|least| *least < i128::MAX).unwrap_or(0)
}
