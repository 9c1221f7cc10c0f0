//! The transfer function of a visit: the states behind a node of those before it;
//! `docs/time-flow-graphs.md`, "Rules".

use super::buffer_space::BufferSpace;
use super::fixpoint::{Fixpoint, Lost, Taken};
use super::order::{Key, Order};
use super::state::{Busy, Count, Holds, Late, NEVER, Second, State, least, plus, sum};
use super::statics::Endpoint;
use onbeat_model::graph::{ChannelKind, Expression, Interval, NetworkChannel, NodeKind, PointKind};
use onbeat_model::limits;
use onbeat_model::rate::Pace;
use onbeat_model::time::Span;
use onbeat_model::timing::{CauseKind, Level, Miss, Row};

/// Any time.
const ANY: Interval = Interval::from(Span::ZERO);

/// A visit.
pub(super) struct Visit {
    pub(super) task: usize,
    pub(super) node: usize,
    pub(super) rounds: Vec<u32>,
    pub(super) row: usize,
    pub(super) is_certain: bool,
    /// Whether all executions that continue come here: others have ended, or left the loop.
    is_sole: bool,
    /// The point to which an abort leads, and its deadline.
    pub(super) guard: Option<(usize, Option<Span>)>,
    /// How long had elapsed when control came.
    arrived: Interval,
}

/// None if it is unknown: a longer one than there may be has no bound either.
fn delay(expression: &Expression, registers: &[Option<i64>]) -> Option<Span> {
    let delay = Span::from_ns(expression.value(registers)?.max(-limits::PROGRAM_DELAY.as_ns()));
    (delay <= limits::PROGRAM_DELAY).then_some(delay)
}

impl Fixpoint<'_> {
    /// The deadline of a point.
    pub(super) fn deadline(&self, task: usize, point: usize, state: &State) -> Option<Span> {
        match &self.graph.tasks[task].nodes[point].kind {
            NodeKind::Point { deadline: Some(deadline), .. } => delay(deadline, &state.registers),
            _ => Some(limits::PROGRAM_DELAY),
        }
    }

    pub(super) fn is_platform(&self) -> bool {
        self.level == Level::Platform
    }

    /// By how much a task continues late that has slept.
    fn wakeup(&self, task: usize) -> Interval {
        let host = self.graph.hosts.get(self.graph.tasks[task].host);
        match host {
            Some(host) if self.is_platform() => host.wakeup,
            _ => Interval::ZERO,
        }
    }

    /// How long work takes at most, from the begin of a busy period.
    fn complete(&self, task: usize, work: Span) -> Option<Span> {
        match self.interference.get(task) {
            Some(interference) => interference.completion(work),
            None => Some(work),
        }
    }

    /// By how much a task may continue late whose wait for an instant is aborted.
    fn woken(&self, task: usize) -> Interval {
        Interval { lo: Span::ZERO, hi: self.wakeup(task).hi }
    }

    /// Whether a task may have to wait for its processor: locks need one, though they take no time.
    fn has_rivals(&self, task: usize) -> bool {
        let turn = Span::from_ns(1);
        self.is_platform() && self.complete(task, turn) != Some(turn)
    }

    /// Executes.
    fn execute(&self, task: usize, mut state: State, time: Interval) -> State {
        if time == Interval::ZERO {
            return state;
        }
        let complete = |work: Span| self.complete(task, work);
        let total = sum(time.hi, Some(state.busy.work));
        let (alone, all) = (time.hi.and_then(complete), total.and_then(complete));
        let most = |now, begin| match all {
            Some(_) => least(sum(now, alone), sum(begin, all)),
            None => None,
        };
        let now = most(state.now.hi, state.busy.now);
        let elapsed = most(state.elapsed.hi, state.busy.elapsed);
        let busy = Busy { work: total.unwrap_or_default(), ..state.busy };
        state = state.after(time);
        (state.now.hi, state.elapsed.hi, state.busy) = (now, elapsed, busy);
        state
    }

    /// By how much a segment that begins at a node may begin late, as its times say.
    fn jitter(&self, task: usize, node: usize) -> Interval {
        let segments = self.graph.tasks[task].segments.iter().filter(|s| s.from == node);
        let all = segments.filter(|_| self.is_platform()).map(|segment| segment.jitter);
        all.reduce(Interval::or).unwrap_or_default()
    }

    /// What an abort takes before control is at the point, in executions that are aborted.
    fn aborting(&self, task: usize, node: usize, state: State) -> State {
        let segments = self.graph.tasks[task].segments.iter();
        let mine = segments.filter(|s| s.to == node && state.points.contains(&s.from));
        let all = mine.filter(|_| self.is_platform()).map(|segment| segment.abort);
        match all.reduce(Interval::or).filter(|_| state.late.may) {
            Some(time) => self.execute(task, state, Interval { lo: Span::ZERO, ..time }),
            None => state,
        }
    }

    /// Whole segments' execution times pass on arrival at the point or the end.
    fn segments(&self, task: usize, node: usize, state: State) -> State {
        let segments = &self.graph.tasks[task].segments;
        let is_here = |from: &usize| segments.iter().any(|s| s.to == node && s.from == *from);
        if !self.is_platform() || !state.points.iter().any(is_here) {
            return state;
        }
        let mut all: Option<State> = None;
        for from in &state.points {
            let segment = segments.iter().find(|s| s.to == node && s.from == *from);
            let execution = segment.map_or(Interval::ZERO, |segment| segment.execution);
            let one = self.execute(task, state.clone(), execution);
            all = Some(match all {
                Some(all) => all.or(one),
                None => one,
            });
        }
        let mut after = all.unwrap_or(state);
        after.before.sort_unstable_by_key(|(row, _)| *row);
        after.before.dedup_by_key(|(row, _)| *row);
        after
    }

    /// Moves a task on by one visit. What it waits for, if unknown, comes, where it is
    /// forced, not before an instant, or never.
    pub(super) fn transfer(&mut self, task: usize, forced: Option<Option<Span>>) {
        let Some((key, state)) = self.tasks[task].frontier.pop_first() else { return };
        let node = self.statics[task].order.node(&key);
        let Some(mut state) = self.enter_loop(task, node, &key, state) else { return };
        if node == 0 && !self.graph.tasks[task].is_first {
            let Some(begun) = self.started(task, state) else { return };
            state = begun;
        }
        let progress = &self.tasks[task];
        let is_certain = progress.frontier.is_empty() && !progress.is_lossy && state.wide == 0;
        let is_sole = is_certain || state.wide == 0 && self.goes_on(task, &key);
        let guard = self.graph.tasks[task].nodes[node].guard;
        let guard = guard.map(|point| (point, self.deadline(task, point, &state)));
        let mut visit = Visit {
            task,
            node,
            rounds: Order::rounds(&key),
            row: self.rows.len(),
            is_certain,
            is_sole,
            guard,
            arrived: state.elapsed,
        };
        let before = state.now;
        let is_point = matches!(self.graph.tasks[task].nodes[node].kind, NodeKind::Point { .. });
        let mut state = if is_point { state } else { self.segments(task, node, state) };
        if is_point {
            state = self.arrive(&mut visit, state);
            state = self.aborting(task, node, state);
        }
        visit.arrived = state.elapsed;
        self.rows.push(Row {
            task,
            node,
            iteration: visit.rounds.clone(),
            arrival: state.now,
            release: state.now,
            took: Interval::ZERO,
            is_certain,
            before: std::mem::take(&mut state.before),
            messages: Vec::new(),
        });
        self.is_wide.push(state.wide != 0);
        if before.hi.is_some() && state.now.hi.is_none() {
            self.lose(CauseKind::Processor, visit.row);
        }
        if let Some(state) = self.on_time(&mut visit, state) {
            self.happen(&visit, state, forced);
        }
    }

    /// Whether all other executions have ended or left the loop.
    fn goes_on(&self, task: usize, key: &Key) -> bool {
        let order = &self.statics[task].order;
        let is_behind = |other: &Key| order.is_tail(order.node(other)) && other[0] == key[0];
        !order.is_tail(order.node(key)) && self.tasks[task].frontier.keys().all(is_behind)
    }

    pub(super) fn lose(&mut self, why: CauseKind, row: usize) {
        let is_same = |lost: &Lost| {
            let (a, b) = (&self.rows[lost.row], &self.rows[row]);
            lost.why == why && (a.task, a.node) == (b.task, b.node)
        };
        if !self.lost.iter().any(is_same) {
            self.lost.push(Lost { why, row });
        }
    }

    /// Aborts the executions in which the deadline passed before control came here: it never does.
    fn on_time(&mut self, visit: &mut Visit, state: State) -> Option<State> {
        let Some((point, Some(deadline))) = visit.guard else { return Some(state) };
        let after = deadline + Span::from_ns(1);
        if state.elapsed.hi.is_some_and(|hi| hi < after) {
            return Some(state);
        }
        if let Some(late) = state.clone().from(after) {
            let by = late.elapsed.hi.map(|hi| hi - deadline);
            self.abort(visit, point, late, by, Interval::ZERO);
            (visit.is_certain, visit.is_sole) = (false, false);
            self.rows[visit.row].is_certain = false;
        }
        state.until(deadline)
    }

    /// Sends executions to the point that guards the node.
    fn abort(
        &mut self,
        visit: &Visit,
        point: usize,
        mut state: State,
        by: Option<Span>,
        took: Interval,
    ) {
        self.aborted = Some(visit.row);
        state.late = Late { may: true, must: true, by, row: visit.row };
        let before = self.rows[visit.row].before.iter();
        state.before = before.map(|(row, passed)| (*row, plus(*passed, took))).collect();
        self.go(visit, point, state);
    }

    /// Aborts the executions that would pass the deadline in the node: `before` is how they began
    /// it, `after` how it would be done, `late` by how much an abort is late.
    fn guarded(
        &mut self,
        visit: &Visit,
        before: &State,
        after: Option<State>,
        late: Interval,
    ) -> Option<State> {
        let Some((point, deadline)) = visit.guard else { return after };
        let last = after.as_ref().and_then(|after| after.elapsed.hi);
        if let (Some(deadline), Some(last)) = (deadline, last)
            && last <= deadline
        {
            return after;
        }
        if deadline.is_none() && after.as_ref().is_some_and(|a| a.elapsed == before.elapsed) {
            return after;
        }
        let mut cut = before.clone();
        match deadline {
            Some(deadline) => {
                cut.elapsed = Interval::exactly(deadline);
                let at = plus(cut.origin, cut.elapsed);
                cut.now = Interval { lo: at.lo.max(before.now.lo), hi: at.hi };
            }
            None => {
                cut.elapsed.hi = last;
                cut.now.hi = after.as_ref().and_then(|after| after.now.hi);
            }
        }
        if let Some(mut cut) = cut.agree() {
            cut = cut.after(late);
            cut.rest();
            self.rows[visit.row].release = cut.now;
            let took = Interval {
                lo: visit.arrived.hi.map_or(Span::ZERO, |hi| (cut.elapsed.lo - hi).max(Span::ZERO)),
                hi: cut.elapsed.hi.map(|hi| hi - visit.arrived.lo),
            };
            let by = deadline.zip(last).map(|(deadline, last)| last - deadline);
            self.abort(visit, point, cut, by, took);
        }
        match deadline {
            Some(deadline) => after.and_then(|after| after.until(deadline)),
            None => after,
        }
    }

    /// Notes when the node is done. What it took is known by the ends of the visit, and where the
    /// origin stays by what has elapsed.
    fn done(&mut self, visit: &Visit, state: &State, took: Interval) {
        let row = &mut self.rows[visit.row];
        row.release = state.now;
        let mut hi = least(took.hi, state.now.hi.map(|hi| hi - row.arrival.lo));
        let mut lo = took.lo.max(row.arrival.hi.map_or(took.lo, |last| state.now.lo - last));
        let kind = &self.graph.tasks[visit.task].nodes[visit.node].kind;
        if !matches!(kind, NodeKind::Point { .. } | NodeKind::Gettime) {
            hi = least(hi, state.elapsed.hi.map(|hi| hi - visit.arrived.lo));
            lo = lo.max(visit.arrived.hi.map_or(lo, |last| state.elapsed.lo - last));
        }
        row.took = Interval { lo, hi };
    }

    /// To all that may be next.
    fn leave(&mut self, visit: &Visit, state: Option<State>, took: Interval) {
        let Some(state) = state else {
            let guard = visit.guard;
            if guard.is_none() {
                self.tasks[visit.task].is_lossy = true;
            }
            return;
        };
        self.done(visit, &state, took);
        let task = &self.graph.tasks[visit.task];
        let node = &task.nodes[visit.node];
        let next: Vec<usize> = match &node.kind {
            NodeKind::Branch(condition) => match condition.value(&state.registers) {
                Some(value) => {
                    if condition.registers().next().is_some() {
                        self.count(visit);
                    }
                    node.next.get(usize::from(value == 0)).copied().into_iter().collect()
                }
                None => {
                    self.reopen(visit);
                    node.next.clone()
                }
            },
            _ => node.next.clone(),
        };
        for to in next {
            let mut state = state.clone();
            state.before = vec![(visit.row, Interval::ZERO)];
            self.go(visit, to, state);
        }
    }

    /// A condition is unknown: an outermost loop may be left in any round.
    fn reopen(&mut self, visit: &Visit) {
        let (task, node) = (visit.task, visit.node);
        let order = &self.statics[task].order;
        let leaves = |to: &usize| order.common(node, *to) == 0;
        let is_left =
            order.depth(node) > 0 && self.graph.tasks[task].nodes[node].next.iter().any(leaves);
        if !is_left || self.open[task].contains(&node) {
            return;
        }
        self.open[task].insert(node);
        let after = Order::of(&self.graph.tasks[task], &self.open[task]);
        self.is_reopened |=
            self.graph.tasks[task].nodes[node].next.iter().any(|to| after.is_tail(*to));
    }

    /// A condition is known: the loops that it may leave have a known number of rounds.
    fn count(&mut self, visit: &Visit) {
        let statics = &self.statics[visit.task];
        for to in &statics.task.nodes[visit.node].next {
            let is_behind = statics.order.is_tail(*to) && !statics.order.is_tail(visit.node);
            let stays = if is_behind { 0 } else { statics.order.common(visit.node, *to) };
            let left = &statics.order.loops(visit.node)[stays..];
            self.tasks[visit.task].counted.extend(left);
        }
    }

    /// Along an edge.
    fn go(&mut self, visit: &Visit, to: usize, mut state: State) {
        let statics = &self.statics[visit.task];
        let order = &statics.order;
        let rounds = order.follow(visit.node, &visit.rounds, to);
        if order.is_back(visit.node, to) && state.wide >> order.depth(to) & 1 == 1 {
            self.end(visit.task, &state);
            return;
        }
        let common = order.common(visit.node, to).min(62);
        state.wide &= (2 << common) - 1;
        let key = order.key(to, &rounds);
        let progress = &mut self.tasks[visit.task];
        let state = match progress.frontier.remove(&key) {
            Some(other) => other.or(state),
            None => state,
        };
        progress.frontier.insert(key, state);
    }

    /// Executions that write and read no more.
    pub(super) fn end(&mut self, task: usize, state: &State) {
        let progress = &mut self.tasks[task];
        progress.is_lossy = true;
        for (ended, count) in progress.ended.iter_mut().zip(&state.counts) {
            *ended = Some(ended.map_or(count.lo, |ended| ended.min(count.lo)));
        }
    }

    fn happen(&mut self, visit: &Visit, mut state: State, forced: Option<Option<Span>>) {
        let graph = self.graph;
        match &graph.tasks[visit.task].nodes[visit.node].kind {
            NodeKind::End => self.end(visit.task, &state),
            NodeKind::Point { kind, period, deadline } => {
                let deadline = deadline.as_ref().map(|d| delay(d, &state.registers));
                let period = delay(period, &state.registers);
                self.point(visit, state, *kind, period, deadline);
            }
            NodeKind::Gettime => {
                state.origin = state.now;
                state.elapsed = Interval::ZERO;
                state.rest();
                self.leave(visit, Some(state), Interval::ZERO);
            }
            NodeKind::Skip => {
                (state.may_skip, state.may_wait) = (true, false);
                self.leave(visit, Some(state), Interval::ZERO);
            }
            NodeKind::Lock(_) | NodeKind::Take(_) if self.has_rivals(visit.task) => {
                let turn = Interval::between(Span::ZERO, Span::from_ns(1));
                // No deadline aborts who waits for a lock.
                let after = self.execute(visit.task, state.clone(), turn);
                if state.now.hi.is_some() && after.now.hi.is_none() {
                    self.lose(CauseKind::Processor, visit.row);
                }
                let longest = self.complete(visit.task, Span::from_ns(1));
                self.leave(visit, Some(after), Interval { lo: Span::ZERO, hi: longest });
            }
            NodeKind::Fragment { execution } if self.is_platform() || execution.hi.is_none() => {
                let after = self.execute(visit.task, state.clone(), *execution);
                let late = self.wakeup(visit.task);
                let after = self.guarded(visit, &state, Some(after), late);
                if state.now.hi.is_some() && after.as_ref().is_some_and(|a| a.now.hi.is_none()) {
                    self.lose(CauseKind::Processor, visit.row);
                }
                let longest = execution.hi.and_then(|hi| self.complete(visit.task, hi));
                self.leave(visit, after, Interval { lo: execution.lo, hi: longest });
            }
            NodeKind::Write { channel, waits } => self.write(visit, state, *channel, *waits),
            NodeKind::Read { channel, waits } => self.read(visit, state, *channel, *waits, forced),
            NodeKind::Run { task } => self.write(visit, state, graph.channels.len() + task, false),
            NodeKind::Set { register, value } => {
                let value = value.value(&state.registers);
                state.registers[usize::from(*register)] = value;
                self.leave(visit, Some(state), Interval::ZERO);
            }
            NodeKind::Held => {
                state.holds = Holds { may: true, must: true };
                self.leave(visit, Some(state), Interval::ZERO);
            }
            NodeKind::Start => {
                let mut late = self.jitter(visit.task, visit.node);
                if late != Interval::ZERO {
                    // It sleeps for it.
                    late = plus(late, self.woken(visit.task));
                    state = state.after(late);
                    state.rest();
                }
                self.leave(visit, Some(state), late);
            }
            NodeKind::Fragment { .. }
            | NodeKind::Lock(_)
            | NodeKind::Take(_)
            | NodeKind::Unlock(_)
            | NodeKind::Branch(_)
            | NodeKind::Any => self.leave(visit, Some(state), Interval::ZERO),
        }
    }

    /// Control comes to a point: what the segment takes as a whole passes, up to the deadline.
    fn arrive(&mut self, visit: &mut Visit, state: State) -> State {
        let NodeKind::Point { kind, deadline, .. } =
            &self.graph.tasks[visit.task].nodes[visit.node].kind
        else {
            return state;
        };
        let after = self.segments(visit.task, visit.node, state.clone());
        let deadline = deadline.as_ref().and_then(|d| delay(d, &state.registers));
        let (Some(deadline), true) = (deadline, *kind != PointKind::Soft) else { return after };
        let is_in_time = after.elapsed.hi.is_some_and(|hi| hi <= deadline);
        // The abort waits for what is held until the segment is over.
        if state.holds.must || is_in_time || after.elapsed == state.elapsed {
            return after;
        }
        let by = after.elapsed.hi.map(|hi| hi - deadline);
        let mut cut = after.clone();
        // What is cut short is so late.
        let Some(wakeup) = self.wakeup(visit.task).hi else { return after };
        let limit = Interval {
            lo: state.elapsed.lo.max(after.elapsed.lo.min(deadline)),
            hi: state.elapsed.hi.map_or(after.elapsed.hi, |hi| Some(hi.max(deadline + wakeup))),
        };
        let now = Interval {
            lo: state.now.lo.max(after.now.lo.min(state.origin.lo + deadline)),
            hi: match (state.now.hi, state.origin.hi) {
                (Some(now), Some(origin)) => Some(now.max(origin + deadline + wakeup)),
                _ => after.now.hi,
            },
        };
        (cut.elapsed, cut.now) = (limit, now);
        let mut cut = cut.agree().unwrap_or(after.clone());
        let must = after.elapsed.lo > deadline && (!state.late.may || state.late.must);
        let by = if state.late.may { state.late.by.zip(by).map(|(a, b)| a.max(b)) } else { by };
        cut.late = Late { may: true, must, by, row: visit.row };
        cut.rest();
        if state.holds.may {
            return cut.or(State { before: Vec::new(), ..after });
        }
        cut
    }

    fn point(
        &mut self,
        visit: &Visit,
        state: State,
        kind: PointKind,
        period: Option<Span>,
        deadline: Option<Option<Span>>,
    ) {
        if state.may_wait {
            self.missed(visit, &state, kind, deadline);
        }
        let mut all: Option<State> = None;
        let is_bounded = state.now.hi.is_some();
        let wakeup = plus(self.wakeup(visit.task), self.jitter(visit.task, visit.node));
        let took = sleeps(&state, period, wakeup);
        if state.may_skip {
            let mut state = state.clone();
            state.origin = state.now;
            state.elapsed = Interval::ZERO;
            all = Some(state);
        }
        if state.may_wait {
            if period.is_none() && state.now.hi.is_some() {
                self.lose(CauseKind::Delay, visit.row);
            }
            let parts = match period {
                Some(period) => self.release(visit.task, &state, period, wakeup),
                None => vec![self.released_some_time(visit.task, state, wakeup)],
            };
            for part in parts {
                all = Some(match all {
                    Some(all) => all.or(part),
                    None => part,
                });
            }
        }
        let is_lost = is_bounded && all.as_ref().is_some_and(|after| after.now.hi.is_none());
        if is_lost && period.is_some() {
            self.lose(CauseKind::Processor, visit.row);
        }
        let after = all.map(|mut after| {
            after.points = vec![visit.node];
            (after.may_skip, after.may_wait) = (false, true);
            (after.late, after.holds) = (Late::default(), Holds::default());
            after.rest();
            after
        });
        self.leave(visit, after, took);
    }

    /// Those that sleep until their release, and those that come too late for it.
    fn release(&self, task: usize, state: &State, period: Span, wakeup: Interval) -> Vec<State> {
        let mut parts = Vec::new();
        if let Some(mut early) = state.clone().until(period - Span::from_ns(1)) {
            early.origin = plus(early.origin, Interval::exactly(period));
            early.elapsed = wakeup;
            early.now = plus(early.origin, early.elapsed);
            parts.push(early);
        }
        if let Some(mut late) = state.clone().from(period) {
            if self.graph.tasks[task].keeps_phase {
                late.origin = plus(late.origin, Interval::exactly(period));
                late.elapsed = plus(late.elapsed, Interval::exactly(-period));
            } else {
                late.origin = late.now;
                late.elapsed = Interval::ZERO;
            }
            parts.push(late);
        }
        parts
    }

    /// After an unknown delay.
    fn released_some_time(&self, task: usize, mut state: State, wakeup: Interval) -> State {
        state.now.hi = None;
        state.origin = if self.graph.tasks[task].keeps_phase {
            Interval::from(state.origin.lo)
        } else {
            state.now
        };
        let kept = self.graph.tasks[task].keeps_phase.then_some(state.elapsed.hi);
        let late = kept.map_or(Some(Span::ZERO), |hi| hi);
        let hi = late.zip(wakeup.hi).map(|(a, b)| a.max(b));
        state.elapsed = Interval { lo: Span::ZERO, hi };
        state
    }

    fn missed(
        &mut self,
        visit: &Visit,
        state: &State,
        kind: PointKind,
        deadline: Option<Option<Span>>,
    ) {
        let Some(deadline) = deadline else { return };
        let late = match deadline {
            Some(deadline) => {
                let over = state.elapsed.hi.map(|hi| hi - deadline);
                over.is_none_or(|over| over > Span::ZERO).then_some(over)
            }
            None => None,
        };
        if late.is_none() && !state.late.may {
            return;
        }
        let aborted = state.late.may.then_some(state.late.by);
        let by = match (late, aborted) {
            (Some(a), Some(b)) => a.zip(b).map(|(a, b)| a.max(b)),
            (a, b) => a.or(b).flatten(),
        };
        let is_late = deadline.is_some_and(|deadline| state.elapsed.lo > deadline);
        let from = if state.late.may { state.late.row } else { visit.row };
        self.misses.push(Miss {
            row: visit.row,
            kind,
            by,
            is_certain: visit.is_certain && !state.may_skip && (state.late.must || is_late),
            path: vec![from],
        });
    }

    /// A channel over a network, its latencies included.
    fn network(&self, channel: usize) -> Option<&NetworkChannel> {
        match &self.graph.channels.get(channel)?.kind {
            ChannelKind::Network(network) => Some(network),
            _ => None,
        }
    }

    fn write(&mut self, visit: &Visit, state: State, channel: usize, waits: bool) {
        let Some(end) = self.statics[visit.task].end[visit.node] else { return };
        let mut after = state.clone();
        let wakeup = self.wakeup(visit.task);
        let network = self.network(channel).cloned();
        let mut took = Interval::ZERO;
        if let Some(network) = &network {
            let allowed = allowed(network, &state, state.due[end], state.second[end]);
            after = self.sleep(&after, allowed, wakeup);
            took = slept(&state, allowed, wakeup);
        }
        let late = self.woken(visit.task);
        let Some(mut captured) = self.guarded(visit, &state, Some(after), late) else {
            self.leave(visit, None, ANY);
            return;
        };
        if let Some(network) = &network {
            let is_punctual = wakeup.hi.is_some_and(|late| late <= network.catch_up);
            let late = if is_punctual { state.now } else { captured.now };
            let was = captured.due[end];
            let due = settled(was, captured.now, captured.second[end]);
            captured.due[end] = due_after(network, due, captured.now, late.hi);
            if network.catch_up > Span::ZERO {
                captured.second[end] = Second::after(was);
            }
        }
        let number = captured.counts[end];
        let room = self
            .buffer_space(visit.task, channel, number, captured.now)
            .unwrap_or(BufferSpace::Perhaps);
        if room != BufferSpace::Yes {
            self.overflow(visit.row, channel);
        }
        let has_room = matches!(room, BufferSpace::Yes | BufferSpace::WhileRead);
        if room == BufferSpace::No {
            self.leave(visit, Some(captured), took);
            return;
        }
        let is_certain = visit.is_certain && self.aborted != Some(visit.row) && has_room;
        let capture = super::messages::Capture { row: visit.row, at: captured.now, is_certain };
        let after = match has_room {
            true => number.more(true),
            false => self.filled(channel, number, captured.now),
        };
        // As many as it has had by then, this one is the last of.
        let last = after.hi.map(|hi| hi.saturating_sub(1).max(number.lo));
        let number = Count { lo: number.lo, hi: last };
        let messages = self.writers[channel].iter_mut().find(|(task, _)| *task == visit.task);
        if let Some((_, messages)) = messages {
            messages.add(number, capture);
        }
        captured.counts[end] = after;
        self.rise(visit, end, captured.counts[end].lo);
        let mut done = Some(captured.clone());
        if let (true, Some(network)) = (waits, &network) {
            let until = plus(captured.now, Interval::exactly(network.fixed_delay));
            let mut after = captured.clone();
            if network.fixed_delay > Span::ZERO {
                after = after.after(Interval::exactly(until.lo - captured.now.lo));
                after = after.after(wakeup);
                after.rest();
                took = plus(plus(took, Interval::exactly(network.fixed_delay)), wakeup);
            }
            done = self.guarded(visit, &captured, Some(after), late);
        }
        self.leave(visit, done, took);
    }

    fn rise(&mut self, visit: &Visit, end: usize, count: u32) {
        if self.statics[visit.task].order.is_tail(visit.node) {
            return;
        }
        let round = visit.rounds.first().copied().unwrap_or(0);
        let risen = &mut self.tasks[visit.task].risen[end];
        if count > risen.1 {
            *risen = (round, count);
        }
    }

    /// Sleeps until an instant, if it has not passed.
    fn sleep(&self, state: &State, until: Interval, wakeup: Interval) -> State {
        let may = until.hi.is_none_or(|hi| hi > state.now.lo);
        let must = state.now.hi.is_some_and(|now| until.lo > now);
        if !may {
            return state.clone();
        }
        let woken = plus(until, wakeup);
        let lo = if must { woken.lo } else { until.lo };
        state.clone().not_before(Interval { lo, hi: woken.hi })
    }

    /// A task begins when it is started.
    fn started(&mut self, task: usize, mut state: State) -> Option<State> {
        let channel = self.graph.channels.len() + task;
        let first = Count { lo: 0, hi: Some(0) };
        let known = self.captures(channel, first);
        let Some(at) = known.at else {
            self.tasks[task].is_lossy = true;
            return None;
        };
        self.tasks[task].is_lossy |= !self.is_sure(channel, first);
        (state.now, state.origin) = (at, at);
        state.rest();
        state.before = known.rows.into_iter().map(|row| (row, Interval::ZERO)).collect();
        Some(state)
    }

    fn read(
        &mut self,
        visit: &Visit,
        state: State,
        channel: usize,
        waits: bool,
        forced: Option<Option<Span>>,
    ) {
        let Some(end) = self.statics[visit.task].end[visit.node] else { return };
        let number = state.counts[end];
        let known = self.captures(channel, number);
        let mut capture = known.at;
        let is_unknown =
            matches!(self.graph.channels.get(channel).map(|c| &c.kind), Some(ChannelKind::Named))
                && self.writers[channel].is_empty();
        let is_shared = self.is_shared(visit.task, channel);
        let loses = self.loses(visit.task, channel, end, number, capture, &known.rows);
        if is_unknown || is_shared || loses {
            capture = Some(Interval::from(capture.map_or(state.now.lo, |at| at.lo)));
        }
        if let Some(Some(first)) = forced {
            capture = Some(Interval::from(capture.map_or(first, |at| at.lo.min(first))));
        }
        let own = self.statics[visit.task].number(Endpoint { channel, writes: true });
        let is_own = own.is_none_or(|own| number.hi.is_some_and(|hi| state.counts[own].lo > hi));
        let is_sure = !is_shared
            && !loses
            && (is_unknown || forced.is_none() && is_own && self.is_sure(channel, number));
        let after = capture.map(|capture| {
            let mut after = self.receive(visit.task, &state, channel, capture, waits);
            after.counts[end] = number.more(true);
            after
        });
        self.rows[visit.row].messages = known.rows;
        let never = (!is_sure && visit.guard.is_some()).then(|| {
            let mut never = after.clone().unwrap_or_else(|| state.clone());
            (never.now.hi, never.elapsed.hi) = (None, None);
            never
        });
        // Who waits for a message is not asleep.
        let late = if waits { self.woken(visit.task) } else { Interval::ZERO };
        let left = match waits {
            true => self.taken_by_abort(visit, &state, channel, capture, is_sure),
            false if is_shared || loses => number,
            false => self.missed_by_abort(visit, &state, channel, number),
        };
        let mut cut = state.clone();
        cut.counts[end] = left;
        let done = match never {
            Some(never) => {
                let _ = self.guarded(visit, &cut, Some(never), late);
                let deadline = visit.guard.and_then(|(_, deadline)| deadline);
                after.and_then(|after| match deadline {
                    Some(deadline) => after.until(deadline),
                    None => Some(after),
                })
            }
            None => self.guarded(visit, &cut, after, late),
        };
        self.taken(visit, end, (done.as_ref(), left), is_sure);
        self.unbounded(visit, done.as_ref(), channel, is_sure, is_unknown);
        if done.is_none() && visit.guard.is_none() {
            self.rows[visit.row].release.hi = None;
            self.rows[visit.row].took = ANY;
        }
        if !is_sure && visit.guard.is_none() {
            self.end(visit.task, &state);
        }
        self.leave(visit, done, ANY);
    }

    /// Notes a read for who asks how full the channel is: how many messages were taken when it was
    /// done, or aborted.
    fn taken(
        &mut self,
        visit: &Visit,
        end: usize,
        (done, cut): (Option<&State>, Count),
        is_sure: bool,
    ) {
        let done = done.map(|done| (done.counts[end], done.now));
        let is_aborted = self.aborted == Some(visit.row);
        let cut = is_aborted.then(|| (cut, self.rows[visit.row].release));
        let both = done.into_iter().chain(cut).reduce(|a, b| (a.0.or(b.0), a.1.or(b.1)));
        let Some((count, at)) = both else { return };
        let is_certain = visit.is_certain && (is_sure || visit.guard.is_some());
        let taken = Taken { count, at, is_certain, is_sole: visit.is_sole };
        self.tasks[visit.task].taken[end].push(taken);
    }

    /// Whether several readers take each other's messages.
    fn is_shared(&self, task: usize, channel: usize) -> bool {
        let readers = self.readers[channel].iter().filter(|reader| **reader != task);
        match self.graph.channels.get(channel).map(|c| &c.kind) {
            Some(ChannelKind::Fifo { .. }) => readers.count() > 0,
            Some(_) => {
                let host = self.graph.tasks[task].host;
                readers.filter(|reader| self.graph.tasks[**reader].host == host).count() > 0
            }
            None => false,
        }
    }

    /// Waits for a message that is captured then.
    fn receive(
        &self,
        task: usize,
        state: &State,
        channel: usize,
        capture: Interval,
        waits: bool,
    ) -> State {
        let there = plus(capture, self.latency(channel, task));
        let after = state.clone().not_before(there);
        let Some(network) = self.network(channel).filter(|_| waits) else { return after };
        let until = plus(capture, Interval::exactly(network.fixed_delay));
        let latency = self.latency(channel, task);
        if latency.lo >= network.fixed_delay {
            return after;
        }
        let wakeup = self.wakeup(task);
        if latency.hi.is_none_or(|hi| hi > network.fixed_delay) {
            return self.sleep(&after, until, wakeup);
        }
        self.sleep(state, until, wakeup)
    }

    /// Says why a bound is lost.
    fn unbounded(
        &mut self,
        visit: &Visit,
        after: Option<&State>,
        channel: usize,
        is_sure: bool,
        is_unknown: bool,
    ) {
        let is_lost = after.is_some_and(|after| after.now.hi.is_none());
        let stops = visit.guard.is_none() && !is_sure;
        // Whoever waits for ever has no time; those that continue do so in time.
        let stops = stops && (is_lost || after.is_none());
        if !is_lost && !stops {
            return;
        }
        if is_unknown || self.latency(channel, visit.task).hi.is_none() {
            self.lose(CauseKind::BestEffort { channel }, visit.row);
        }
        if self.is_shared(visit.task, channel) {
            self.lose(CauseKind::Shared { channel }, visit.row);
        } else if stops && !self.is_told(visit.row) {
            self.lose(CauseKind::Unsent { channel }, visit.row);
        }
    }

    /// Whether a message that may be read has no bound for a reason of its writer's.
    fn is_told(&self, read: usize) -> bool {
        let late = |write: &usize| self.rows[*write].release.hi.is_none() && !self.is_wide[*write];
        self.rows[read].messages.iter().any(late)
    }
}

/// How long executions stay at a point.
fn sleeps(state: &State, period: Option<Span>, wakeup: Interval) -> Interval {
    let Some(period) = period.filter(|_| state.may_wait) else {
        return if state.may_wait { ANY } else { Interval::ZERO };
    };
    let longest = period - state.elapsed.lo;
    let shortest = state.elapsed.hi.map(|hi| period - hi).filter(|_| !state.may_skip);
    let lo = shortest.filter(|s| *s > Span::ZERO).map_or(Span::ZERO, |s| s + wakeup.lo);
    let hi = wakeup.hi.map(|late| longest + late);
    Interval { lo, hi: if longest > Span::ZERO { hi } else { Some(Span::ZERO) } }
}

/// Until when a write waits, of which the message is due then: not if it is not too early.
fn allowed(network: &NetworkChannel, state: &State, due: Interval, second: Second) -> Interval {
    let rate = network.rate();
    let [sets, tolerance] = [Pace::second_early(&rate), rate.tolerance];
    let (most, least) = match second {
        Second::No => (tolerance, tolerance),
        Second::Perhaps => (sets, tolerance),
        Second::Yes => (sets, sets),
    };
    let early = Interval { lo: due.lo - most, hi: due.hi.map(|hi| hi - least) };
    if network.catch_up == Span::ZERO {
        return early;
    }
    let must = state.now.hi.is_some_and(|now| now < early.lo);
    let may = early.hi.is_none_or(|hi| state.now.lo < hi);
    Interval { lo: if must { due.lo } else { early.lo }, hi: if may { due.hi } else { early.hi } }
}

/// When the message was due that is captured then: the second one sets the phase, if it comes
/// before it is due.
fn settled(due: Interval, captured: Interval, second: Second) -> Interval {
    let (lo, hi) = (due.lo.min(captured.lo), least(due.hi, captured.hi));
    match second {
        Second::No => due,
        Second::Perhaps => Interval { lo, ..due },
        Second::Yes => Interval { lo, hi },
    }
}

/// When the message is due after one that was due and captured then, and is late if it is so at
/// `late`: that is when the task came to the write, if who wakes up there is late by so little
/// that this delays no message.
fn due_after(
    network: &NetworkChannel,
    due: Interval,
    captured: Interval,
    late: Option<Span>,
) -> Interval {
    let NetworkChannel { interval, catch_up, .. } = *network;
    let next = |due| plus(due, Interval::exactly(interval));
    if catch_up == Span::ZERO || due == Interval::exactly(NEVER) {
        return next(due.later(captured));
    }
    let may_be_first = due.lo == NEVER;
    if !may_be_first && due.hi.is_some_and(|hi| hi < captured.lo) {
        // Who is slower than the rate is always late, by more each time, until the phase moves:
        // what is due is told by the capture, so that rounds are equal.
        let slack = Interval { lo: captured.lo - catch_up, hi: captured.hi };
        return next(slack);
    }
    if !may_be_first && late.is_some_and(|late| late <= due.lo + catch_up) {
        return next(due);
    }
    let beyond =
        if may_be_first { Span::ZERO.max(interval - catch_up) } else { interval - catch_up };
    let latest = if may_be_first { captured.hi } else { late };
    let hi = latest.map(|latest| latest + beyond);
    next(due.later(Interval { lo: captured.lo - catch_up, hi }))
}

/// How long it takes to sleep until an instant, if it has not passed.
fn slept(state: &State, until: Interval, wakeup: Interval) -> Interval {
    let hi = match until.hi {
        Some(until) if until <= state.now.lo => Some(Span::ZERO),
        Some(until) => wakeup.hi.map(|late| until - state.now.lo + late),
        None => None,
    };
    let must = state.now.hi.filter(|now| until.lo > *now);
    Interval { lo: must.map_or(Span::ZERO, |now| until.lo - now + wakeup.lo), hi }
}
