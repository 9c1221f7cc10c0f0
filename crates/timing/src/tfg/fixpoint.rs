//! Iterates tasks to a fixed point, each as far as is known what it waits for. A task's visits
//! depend on the messages that it reads and on nothing else (Kahn 1974), so in which order tasks
//! move is free.

use super::Limits;
use super::messages::{Known, WriterMessages, merged};
use super::order::{Key, Order};
use super::state::{Count, NEVER, State, least, plus};
use super::statics::{Endpoint, TaskStatics};
use super::transfer::Visit;
use crate::schedule::Interference;
use onbeat_model::graph::{ChannelKind, Graph, Interval, NodeKind};
use onbeat_model::time::Span;
use onbeat_model::timing::{CauseKind, Course, Hazard, Level, Miss, Row};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Registers that repeat after at most so many rounds are kept in long loops.
pub(super) const PERIOD: u32 = 64;

/// For each row all tasks that are joined are looked at: of more than 200, rows are fewer, so that
/// thousands do not take minutes.
const LOOKS_MAX: usize = 10_000_000;

/// How far a task has come.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// Where executions may be: all of them are at one of these visits, but for those that ended.
    pub(super) frontier: BTreeMap<Key, State>,
    /// Whether some executions may have ended, or wait for ever.
    pub(super) is_lossy: bool,
    /// By end: how many messages those have written or read at least.
    pub(super) ended: Vec<Option<u32>>,
    /// Loops (positions of heads) that a condition on registers may leave.
    pub(super) counted: BTreeSet<u32>,
    /// By head of a loop: its last visit.
    pub(super) heads: HashMap<u32, Head>,
    /// Heads of outermost loops, alone in the frontier.
    pub(super) cuts: Vec<Cut>,
    /// By end: in which round of an outermost loop the least count rose, and to what.
    pub(super) risen: Vec<(u32, u32)>,
    /// By reading end.
    pub(super) taken: Vec<Reads>,
    /// Reading ends of which a message may have got lost.
    pub(super) loses: BTreeSet<usize>,
    /// After how many rounds of an outermost loop all executions are in one that has no end and in
    /// which no time passes.
    pub(super) still: Option<u32>,
}

/// A read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taken {
    /// The count after it.
    pub(super) count: Count,
    pub(super) at: Interval,
    /// Whether it is done in every execution.
    pub(super) is_certain: bool,
    /// Whether it is done in all that continue: others have ended, or left the loop.
    pub(super) is_sole: bool,
}

/// The reads at one end of a channel, in the order in which they were found.
#[derive(Clone, Debug, Default)]
pub(super) struct Reads {
    all: Vec<Taken>,
    /// The greatest least count of those up to each that are done in all executions that continue:
    /// it never falls, so that the first beyond a number is found without looking at all.
    reach: Vec<u32>,
}

impl Reads {
    pub(super) fn push(&mut self, taken: Taken) {
        let before = self.reach.last().copied().unwrap_or(0);
        self.reach.push(if taken.is_sole { before.max(taken.count.lo) } else { before });
        self.all.push(taken);
    }

    pub(super) fn iter(&self) -> std::slice::Iter<'_, Taken> {
        self.all.iter()
    }

    /// The first that is done in all executions that continue and takes the message of this number.
    pub(super) fn of(&self, number: u32) -> Option<&Taken> {
        self.all.get(self.reach.partition_point(|reach| *reach <= number))
    }
}

/// A visit of the head of a loop.
#[derive(Clone, Debug)]
pub(super) struct Head {
    pub(super) rounds: Vec<u32>,
    pub(super) state: State,
    /// Whether it is that of any number of rounds, but for the time.
    pub(super) is_any: bool,
}

/// A visit of the head of an outermost loop through which all executions continue.
#[derive(Clone, Debug)]
pub(super) struct Cut {
    pub(super) head: u32,
    pub(super) round: u32,
    pub(super) state: State,
    /// Whether every execution comes there.
    pub(super) is_certain: bool,
    /// By end: up to which number messages may have been made.
    pub(super) made: Vec<usize>,
}

/// Why a bound is lost, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Lost {
    pub(super) why: CauseKind,
    pub(super) row: usize,
}

/// The fixpoint iteration over the states of a graph.
pub(super) struct Fixpoint<'a> {
    pub(super) graph: &'a Graph,
    pub(super) level: Level,
    pub(super) interference: &'a [Interference],
    pub(super) limits: Limits,
    /// So many rows the tasks that are looked at may have together.
    rows_max: usize,
    pub(super) statics: Vec<TaskStatics<'a>>,
    pub(super) tasks: Vec<Progress>,
    /// By channel: its writers.
    pub(super) writers: Vec<Vec<(usize, WriterMessages)>>,
    /// By channel: its readers.
    pub(super) readers: Vec<Vec<usize>>,
    pub(super) rows: Vec<Row>,
    /// Of rows that stand for all further rounds of a loop.
    pub(super) is_wide: Vec<bool>,
    pub(super) lost: Vec<Lost>,
    pub(super) misses: Vec<Miss>,
    pub(super) hazards: Vec<Hazard>,
    /// Whether something was taken as unknown because no task could continue.
    pub(super) is_forced: bool,
    /// The row of which executions were last aborted.
    pub(super) aborted: Option<usize>,
    /// By task: branches that registers turned out not to decide.
    pub(super) open: Vec<BTreeSet<usize>>,
    /// By task: outermost loops that registers decide, but not within the rows that there may be.
    pub(super) long: Vec<BTreeSet<usize>>,
    /// Channels that several tasks write and that may be full: until then they are taken to have
    /// room.
    pub(super) crowded: BTreeSet<usize>,
    /// Whether tasks have to be looked at again.
    pub(super) is_reopened: bool,
}

/// What a task waits for.
pub(super) enum Wait {
    /// For nothing: it may be moved.
    Ready,
    /// For the message with one of these numbers.
    Message(usize, Count),
    /// For what a reader does: it may make room.
    Space(usize),
}

impl<'a> Fixpoint<'a> {
    pub(super) fn new(
        graph: &'a Graph,
        level: Level,
        interference: &'a [Interference],
        limits: Limits,
    ) -> Self {
        let statics: Vec<TaskStatics<'a>> =
            (0..graph.tasks.len()).map(|t| TaskStatics::of(graph, t)).collect();
        let channels = graph.channels.len() + graph.tasks.len();
        let mut writers: Vec<Vec<(usize, WriterMessages)>> = Vec::new();
        let mut readers = Vec::new();
        for channel in 0..channels {
            let has = |writes: bool| {
                let uses = |t: &usize| statics[*t].number(Endpoint { channel, writes }).is_some();
                (0..statics.len()).filter(uses).collect::<Vec<usize>>()
            };
            writers.push(has(true).into_iter().map(|t| (t, WriterMessages::default())).collect());
            readers.push(has(false));
        }
        let tasks = statics.iter().map(|statics| begin(graph, statics)).collect();
        Self {
            graph,
            level,
            interference,
            limits,
            rows_max: limits.rows,
            statics,
            tasks,
            writers,
            readers,
            rows: Vec::new(),
            is_wide: Vec::new(),
            lost: Vec::new(),
            misses: Vec::new(),
            hazards: Vec::new(),
            is_forced: false,
            aborted: None,
            open: vec![BTreeSet::new(); graph.tasks.len()],
            long: vec![BTreeSet::new(); graph.tasks.len()],
            crowded: BTreeSet::new(),
            is_reopened: false,
        }
    }

    /// Moves the tasks of a component: again with what turns out about their loops, and about
    /// channels that several of them write.
    pub(super) fn iterate(&mut self, tasks: &[usize]) -> Course {
        self.rows_max = self.limits.rows.min(LOOKS_MAX / tasks.len().max(1));
        let first = self.rows.len();
        let known = (self.lost.len(), self.misses.len(), self.hazards.len());
        loop {
            self.is_forced = false;
            self.advance(tasks, first, None);
            let rows = self.rows.len();
            let found = self.search(tasks, first);
            let is_full = self.rows.len() - first >= self.most();
            if found.is_none() && is_full && !self.is_reopened {
                self.is_reopened = self.lengthen(tasks);
            }
            if !self.is_reopened {
                let is_crowded = self.is_crowded(tasks, first);
                self.is_reopened |= is_crowded;
            }
            let course = match &found {
                Some(found) => found.course(tasks),
                None => self.course(tasks),
            };
            if !self.is_reopened {
                if found.is_none() {
                    self.hide(rows);
                }
                let rows = self.rows.len();
                self.widen_all(tasks, first);
                let is_crowded = self.rows.len() > rows && self.is_crowded(tasks, first);
                self.is_reopened |= is_crowded;
            }
            if !self.is_reopened {
                found.iter().for_each(|found| self.unread(found));
                return course;
            }
            self.rows.truncate(first);
            self.is_wide.truncate(first);
            self.lost.truncate(known.0);
            self.misses.truncate(known.1);
            self.hazards.truncate(known.2);
            self.restart(tasks);
        }
    }

    /// What is written for ever and never read fills its channel, sooner or later.
    fn unread(&mut self, found: &super::regime::FoundRegime) {
        for channel in 0..self.graph.channels.len() {
            let is_fifo = matches!(self.graph.channels[channel].kind, ChannelKind::Fifo { .. });
            if !is_fifo || !self.readers[channel].is_empty() {
                continue;
            }
            let writes = self.writers[channel].iter().flat_map(|(_, messages)| &messages.all);
            let again = writes.map(|capture| capture.row).find(|row| {
                let row = &self.rows[*row];
                let first = found.rounds.get(&row.task).map(|(first, _)| first);
                !self.statics[row.task].order.is_tail(row.node)
                    && first.is_some_and(|first| row.iteration.first() >= Some(first))
            });
            if let Some(row) = again {
                self.overflow(row, channel);
            }
        }
    }

    /// Continues behind outermost loops that may have been left.
    fn widen_all(&mut self, tasks: &[usize], first: usize) {
        let mut widened = true;
        while widened {
            widened = false;
            for task in tasks {
                widened |= self.widen_outermost(*task);
            }
            self.advance(tasks, first, None);
        }
    }

    /// In so many rows everything has to repeat.
    fn most(&self) -> usize {
        const MOST: usize = 8_192;
        self.rows_max.min(MOST)
    }

    fn restart(&mut self, tasks: &[usize]) {
        self.is_reopened = false;
        self.aborted = None;
        for task in tasks {
            let statics = &mut self.statics[*task];
            statics.order = Order::of(statics.task, &self.open[*task]);
            self.tasks[*task] = begin(self.graph, statics);
        }
        let writers =
            self.writers.iter_mut().flatten().filter(|(writer, _)| tasks.contains(writer));
        writers.for_each(|(_, messages)| *messages = WriterMessages::default());
    }

    /// Whether there are loops of which nothing repeats but for registers: those are forgotten
    /// there, and the loops may end in any round.
    fn lengthen(&mut self, tasks: &[usize]) -> bool {
        if self.is_forced {
            return false;
        }
        let mut is_any = false;
        for task in tasks.iter().copied() {
            let cuts = &self.tasks[task].cuts;
            let is_over = self.front(task).is_none();
            let Some(last) = cuts.last().filter(|last| !is_over && last.is_but_for_registers(cuts))
            else {
                continue;
            };
            let statics = &self.statics[task];
            let head = statics.order.node(&vec![last.head]);
            let is_in = |node: &usize| statics.order.loops(*node).first() == Some(&last.head);
            let mut open = self.open[task].clone();
            open.extend((0..statics.task.nodes.len()).filter(is_in));
            let order = Order::of(statics.task, &open);
            let Some(position) = order.loops(head).first() else { continue };
            if order.is_closed(statics.task, *position) && self.long[task].insert(head) {
                self.open[task] = open;
                is_any = true;
            }
        }
        is_any
    }

    /// Leaves out rows that were made in search of a pattern in vain.
    fn hide(&mut self, from: usize) {
        let overflows = self.hazards.iter().filter_map(|trouble| match trouble {
            Hazard::Overflow { row, .. } => Some(*row),
            Hazard::Deadlock { .. } => None,
        });
        let lost = self.lost.iter().map(|lost| lost.row);
        let kept: BTreeSet<usize> = overflows.chain(lost).collect();
        for row in (from..self.rows.len()).filter(|row| !kept.contains(row)) {
            let is_early =
                self.rows[row].iteration.first().is_none_or(|r| *r <= self.limits.rounds);
            self.is_wide[row] |= !is_early && self.front(self.rows[row].task).is_some();
        }
    }

    /// Continues until everything repeats.
    fn search(&mut self, tasks: &[usize], first: usize) -> Option<super::regime::FoundRegime> {
        let most = self.most();
        let begins = tasks.iter().filter_map(|t| Some(self.front(*t)?.1.now.lo));
        let mut horizon = begins.min()?;
        loop {
            let is_still = tasks.iter().any(|task| self.tasks[*task].still.is_some());
            if self.is_forced || self.is_reopened || is_still {
                return None;
            }
            if let Some(found) = self.repeats(tasks) {
                return Some(found);
            }
            if self.rows.len() - first > most {
                return None;
            }
            let rows = self.rows.len();
            let step = Span::from_ns((horizon.as_ns() / 4).max(1));
            let waiting = tasks.iter().filter(|t| self.is_ready(**t));
            let next = waiting.filter_map(|t| Some(self.front(*t)?.1.now.lo)).min()?;
            horizon = horizon.max(next) + step;
            self.advance(tasks, first, Some(horizon));
            if self.rows.len() == rows {
                return None;
            }
        }
    }

    /// Moves tasks until they have had their rounds, or up to a horizon.
    pub(super) fn advance(&mut self, tasks: &[usize], first: usize, horizon: Option<Span>) {
        loop {
            if self.rows.len() - first >= self.rows_max || self.is_reopened {
                return;
            }
            if let Some(task) = self.next(tasks, horizon) {
                self.transfer(task, None);
                continue;
            }
            if horizon.is_some() || !self.force(tasks) {
                return;
            }
        }
    }

    /// The task that is to be moved next: the earliest of those that can and should.
    fn next(&self, tasks: &[usize], horizon: Option<Span>) -> Option<usize> {
        let needed = self.needed(tasks, horizon);
        let may = |t: &&usize| {
            self.front(**t).is_some_and(|(_, state)| {
                needed.contains(t) || horizon.map_or(self.lacks_rounds(**t), |h| state.now.lo < h)
            }) && self.is_ready(**t)
        };
        let ready = tasks.iter().filter(may);
        ready.min_by_key(|t| self.front(**t).map(|(_, state)| state.now.lo)).copied()
    }

    /// Writers for which somebody waits and that may be expected to write.
    fn needed(&self, tasks: &[usize], horizon: Option<Span>) -> BTreeSet<usize> {
        let mut needed = BTreeSet::new();
        for task in tasks {
            let wanted = match (horizon, self.front(*task)) {
                (_, None) => false,
                (None, Some(_)) => self.lacks_rounds(*task),
                (Some(horizon), Some((_, state))) => state.now.lo < horizon,
            };
            if wanted {
                self.need(*task, &mut needed);
            }
        }
        needed
    }

    fn need(&self, task: usize, needed: &mut BTreeSet<usize>) {
        let channel = match self.wait(task) {
            Wait::Ready => return,
            Wait::Message(channel, _) => channel,
            Wait::Space(reader) => {
                if needed.insert(reader) {
                    self.need(reader, needed);
                }
                return;
            }
        };
        for (writer, _) in &self.writers[channel] {
            if self.is_promising(*writer, channel) && needed.insert(*writer) {
                self.need(*writer, needed);
            }
        }
    }

    /// Whether a writer has lately written for certain.
    fn is_promising(&self, task: usize, channel: usize) -> bool {
        let Some(end) = self.statics[task].number(Endpoint { channel, writes: true }) else {
            return false;
        };
        let risen = self.tasks[task].risen[end].0;
        self.front(task).is_some_and(|(key, _)| {
            key.len() == 1 || key[1] <= risen.saturating_add(self.limits.rounds)
        })
    }

    fn lacks_rounds(&self, task: usize) -> bool {
        const COUNTED: u32 = 256;
        self.front(task).is_some_and(|(key, state)| {
            let is_long = self.is_long(task, key[0]);
            let is_counted = self.tasks[task].counted.contains(&key[0]) && !is_long;
            let most = if is_counted { COUNTED } else { self.limits.rounds };
            let is_wanted =
                key.len() == 1 || key[1] <= most && (key[1] == 1 || self.is_early(task));
            is_wanted || state.wide != 0
        })
    }

    /// Whether some execution of a task may not be past the instant up to which times are wanted.
    fn is_early(&self, task: usize) -> bool {
        let until = self.limits.until;
        let is_within = |state: &State| until.is_none_or(|until| state.now.lo <= until);
        self.tasks[task].frontier.values().any(is_within)
    }

    /// Whether a loop, by the position of its head, is longer than there may be rows.
    pub(super) fn is_long(&self, task: usize, head: u32) -> bool {
        self.long[task].contains(&self.statics[task].order.node(&vec![head]))
    }

    /// The visit of a task that is next.
    pub(super) fn front(&self, task: usize) -> Option<(&Key, &State)> {
        self.tasks[task].frontier.first_key_value()
    }

    pub(super) fn is_ready(&self, task: usize) -> bool {
        self.front(task).is_some() && matches!(self.wait(task), Wait::Ready)
    }

    /// What the next visit of a task waits for.
    pub(super) fn wait(&self, task: usize) -> Wait {
        let Some((key, state)) = self.front(task) else { return Wait::Ready };
        let statics = &self.statics[task];
        let node = statics.order.node(key);
        let Some(end) = statics.end[node] else { return Wait::Ready };
        let Endpoint { channel, writes } = statics.ends[end];
        let number = state.counts[end];
        if writes {
            return match self.buffer_space(task, channel, number, state.now) {
                Err(reader) => Wait::Space(reader),
                Ok(_) => Wait::Ready,
            };
        }
        if self.is_final(channel, number) {
            return Wait::Ready;
        }
        Wait::Message(channel, number)
    }

    /// Whether all is known that will ever be known of a message.
    pub(super) fn is_final(&self, channel: usize, number: Count) -> bool {
        let writers = &self.writers[channel];
        let bound = match writers.len() {
            0 | 1 => None,
            _ => self.captures(channel, number).at.and_then(|at| at.hi),
        };
        writers.iter().all(|(writer, _)| {
            let statics = &self.statics[*writer];
            let Some(end) = statics.number(Endpoint { channel, writes: true }) else { return true };
            self.tasks[*writer].frontier.iter().all(|(key, state)| {
                !statics.uses[statics.order.node(key)][end]
                    || match (writers.len(), number.hi) {
                        (1, Some(hi)) => state.counts[end].lo > hi,
                        (1, None) => false,
                        _ => bound.is_some_and(|bound| state.now.lo >= bound),
                    }
            })
        })
    }

    /// Whether a message is made in every execution.
    pub(super) fn is_sure(&self, channel: usize, number: Count) -> bool {
        let Some(hi) = number.hi else { return false };
        match &self.writers[channel][..] {
            [] => false,
            [(writer, _)] => {
                let statics = &self.statics[*writer];
                let Some(end) = statics.number(Endpoint { channel, writes: true }) else {
                    return false;
                };
                let progress = &self.tasks[*writer];
                progress.ended[end].is_none_or(|count| count > hi)
                    && progress.frontier.values().all(|state| state.counts[end].lo > hi)
            }
            _ => self.captures(channel, number).at.is_some_and(|at| at.hi.is_some()),
        }
    }

    /// What is known of the captures of a message.
    pub(super) fn captures(&self, channel: usize, number: Count) -> Known {
        match &self.writers[channel][..] {
            [(_, messages)] => {
                let mut known = Known::default();
                for capture in messages.captures(number.lo, number.hi.unwrap_or(number.lo)) {
                    known.or(capture);
                }
                if let (None, Some(at)) = (number.hi, &mut known.at) {
                    at.hi = None;
                }
                known
            }
            writers => {
                merged(&writers.iter().map(|(_, messages)| messages).collect::<Vec<_>>(), number)
            }
        }
    }

    /// How many messages have been read when a wait for capture + D is aborted: one that was there
    /// stays taken.
    pub(super) fn taken_by_abort(
        &self,
        visit: &Visit,
        state: &State,
        channel: usize,
        capture: Option<Interval>,
        is_sure: bool,
    ) -> Count {
        let end = self.statics[visit.task].end[visit.node].unwrap_or(0);
        let number = state.counts[end];
        let Some((capture, (_, deadline))) = capture.zip(visit.guard) else { return number };
        let there = plus(capture, self.latency(channel, visit.task));
        let abort = deadline.map(|deadline| plus(state.origin, Interval::exactly(deadline)));
        let last = abort.and_then(|abort| abort.hi);
        if last.is_some_and(|last| there.lo > last) {
            return number;
        }
        let first = abort.map_or(state.now.lo, |abort| abort.lo.max(state.now.lo));
        number.more(is_sure && there.hi.is_some_and(|hi| hi < first))
    }

    /// How many messages have been read when a wait for one is aborted: all that must have been
    /// there before.
    pub(super) fn missed_by_abort(
        &self,
        visit: &Visit,
        state: &State,
        channel: usize,
        number: Count,
    ) -> Count {
        let Some((_, Some(deadline))) = visit.guard else { return number };
        let Some(last) = number.hi else { return number };
        let first = state.now.lo.max(state.origin.lo + deadline);
        let latency = self.latency(channel, visit.task);
        let is_there = |number: &u32| {
            let count = Count { lo: *number, hi: Some(*number) };
            let there = self.captures(channel, count).at.and_then(|at| plus(at, latency).hi);
            self.is_final(channel, count)
                && self.is_sure(channel, count)
                && there.is_some_and(|there| there < first)
        };
        let gone = (number.lo..last).take_while(is_there).count() as u32;
        Count { lo: number.lo + gone, hi: Some(last) }
    }

    /// The latency of a channel to a task.
    pub(super) fn latency(&self, channel: usize, task: usize) -> Interval {
        match self.graph.channels.get(channel).map(|c| &c.kind) {
            None | Some(ChannelKind::Fifo { .. }) => Interval::ZERO,
            Some(ChannelKind::Named) => Interval::from(Span::ZERO),
            Some(ChannelKind::Network(network)) => {
                let host = self.graph.tasks[task].host;
                let latency = network.latencies.iter().find(|(h, _)| *h == host);
                latency.map_or(Interval::from(Span::ZERO), |(_, latency)| *latency)
            }
        }
    }

    /// When a task may continue at the earliest without another task; none: never.
    pub(super) fn wake(&self, task: usize) -> Option<Span> {
        let mut frontier = self.tasks[task].frontier.iter();
        let (key, state) = frontier.next()?;
        let others = frontier.map(|(_, state)| state.now.lo).min();
        let Wait::Message(channel, number) = self.wait(task) else {
            return least(Some(state.now.lo), others);
        };
        let known = self.captures(channel, number).at;
        let there = known.map(|at| plus(at, self.latency(channel, task)).lo);
        let node = &self.statics[task].task.nodes[self.statics[task].order.node(key)];
        let abort = node.guard.map(|point| match self.deadline(task, point, state) {
            Some(deadline) => state.origin.lo + deadline,
            None => state.now.lo,
        });
        let own = least(there, abort).map(|at| at.max(state.now.lo));
        least(own, others)
    }

    /// If no task can continue, the one that may continue first does: what it waits for comes then
    /// at the earliest when another one may continue.
    fn force(&mut self, tasks: &[usize]) -> bool {
        let mut wakes: Vec<(Option<Span>, usize)> = Vec::new();
        for task in tasks.iter().filter(|t| self.front(**t).is_some()) {
            wakes.push((self.wake(*task), *task));
        }
        let may = |(_, task): &&(Option<Span>, usize)| {
            !matches!(self.wait(*task), Wait::Ready) && self.lacks_rounds(*task)
        };
        let late = |at: Option<Span>| at.unwrap_or(Span::MAX);
        let Some((_, task)) = wakes.iter().filter(may).min_by_key(|(at, _)| late(*at)).copied()
        else {
            return false;
        };
        let others = wakes.iter().filter(|(_, t)| *t != task).filter_map(|(at, _)| *at).min();
        if wakes.iter().all(|(at, _)| at.is_none()) {
            self.deadlock(&wakes.iter().map(|(_, t)| *t).collect::<Vec<_>>());
            return true;
        }
        self.is_forced = true;
        self.transfer(task, Some(others));
        true
    }

    /// No task will ever continue.
    fn deadlock(&mut self, tasks: &[usize]) {
        let mut rows = Vec::new();
        for task in tasks {
            let is_read = self.front(*task).is_some_and(|(key, _)| {
                let statics = &self.statics[*task];
                matches!(statics.task.nodes[statics.order.node(key)].kind, NodeKind::Read { .. })
            });
            let row = self.rows.len();
            self.transfer(*task, Some(None));
            if is_read && row < self.rows.len() {
                rows.push(row);
            }
        }
        if !rows.is_empty() {
            self.hazards.push(Hazard::Deadlock { rows });
        }
    }
}

impl Cut {
    /// Whether an earlier one is the same but for time and registers.
    fn is_but_for_registers(&self, cuts: &[Self]) -> bool {
        let known = |state: &State| state.registers.iter().map(Option::is_some).collect::<Vec<_>>();
        cuts.iter().rev().skip(1).take(PERIOD as usize).any(|cut| {
            let mut state = cut.state.clone();
            let is_same = known(&state) == known(&self.state);
            state.registers.clone_from(&self.state.registers);
            let shift = self.state.now.lo - state.now.lo;
            let is_again = cut.head == self.head && state.is_shifted(shift, &self.state);
            is_same && is_again && shift > Span::ZERO && cut.state != self.state
        })
    }
}

/// A task before it begins.
fn begin(graph: &Graph, statics: &TaskStatics<'_>) -> Progress {
    let ends = statics.ends.len();
    let mut state = State::start(statics.task.registers, ends);
    let start = graph.hosts.get(statics.task.host).map_or(Span::ZERO, |host| host.start);
    if statics.task.is_first {
        state.now = Interval::exactly(start);
        state.origin = state.now;
        state.rest();
    } else {
        state.now = Interval::exactly(NEVER);
        state.origin = state.now;
    }
    let key = statics.order.key(0, &vec![1; statics.order.depth(0)]);
    Progress {
        frontier: BTreeMap::from([(key, state)]),
        ended: vec![None; ends],
        risen: vec![(0, 0); ends],
        taken: vec![Reads::default(); ends],
        ..Progress::default()
    }
}
