//! Loops: their rounds, one by one or any number of them.

use super::fixpoint::{Cut, Fixpoint, Head, PERIOD};
use super::order::{Key, Order};
use super::state::{NEVER, Second, State};
use onbeat_model::graph::NodeKind;
use onbeat_model::time::Span;
use onbeat_model::timing::{CauseKind, Level};

impl Fixpoint<'_> {
    /// What the head of a loop needs: notes the cut, stands still where nothing changes any more,
    /// and stands for all further rounds where there are too many.
    pub(super) fn enter_loop(
        &mut self,
        task: usize,
        node: usize,
        key: &Key,
        state: State,
    ) -> Option<State> {
        let order = &self.statics[task].order;
        if !order.is_head(node) {
            return Some(state);
        }
        let (head, depth) = (key[key.len() - 1], order.depth(node));
        let rounds = Order::rounds(key);
        let round = rounds[depth - 1];
        let last = self.tasks[task].heads.remove(&head);
        let last = last.filter(|last| last.rounds[..depth - 1] == rounds[..depth - 1]);
        let last = last.filter(|_| round > 1);
        let is_same = |last: &Head| {
            let all = last.state.clone().or(state.clone());
            all.is_shifted(Span::ZERO, &last.state) && all.counts == last.state.counts
        };
        if last.as_ref().is_some_and(is_same) {
            // Where time passes in it, it may continue for ever.
            self.tasks[task].is_lossy |= state.now.hi.is_none();
            if state.now.hi.is_some() && self.is_zeno(task, node, head) {
                self.tasks[task].still = Some(rounds[0] - 1);
            }
            if self.statics[task].order.is_tail(node) {
                self.end(task, &state);
            }
            return None;
        }
        let is_long = depth > 1 && round > self.most_rounds(task, key, head);
        let (state, is_any) = match last.is_some_and(|last| last.is_any) {
            true => (self.widen(task, head, depth, state), true),
            false if is_long => (self.any_number(task, head, state), true),
            false => (state, false),
        };
        let state = match depth == 1 && round > PERIOD && self.is_long(task, head) {
            true => self.forget(task, head, state),
            false => state,
        };
        if depth == 1 {
            self.cut(task, key, &state, round);
        }
        self.tasks[task].heads.insert(head, Head { rounds, state: state.clone(), is_any });
        Some(state)
    }

    /// Whether all executions are in a loop that has timing points, `gettime` or writes, and no
    /// deadline or end. One of other code only waits for something, or works.
    fn is_zeno(&self, task: usize, node: usize, head: u32) -> bool {
        let statics = &self.statics[task];
        let is_timed = |kind: &NodeKind| {
            matches!(kind, NodeKind::Point { .. } | NodeKind::Gettime | NodeKind::Write { .. })
        };
        let mut nodes = statics.task.nodes.iter().enumerate();
        self.tasks[task].frontier.is_empty()
            && statics.task.nodes[node].guard.is_none()
            && nodes.any(|(at, n)| is_timed(&n.kind) && statics.order.loops(at).contains(&head))
    }

    pub(super) fn most_rounds(&self, task: usize, key: &Key, head: u32) -> u32 {
        const UNKNOWN: u32 = 32;
        const COUNTED: u32 = 4_096;
        let progress = &self.tasks[task];
        let around = &key[..key.len() - 2];
        let may_leave = progress.frontier.keys().any(|k| k[..k.len() - 1].starts_with(around));
        match (progress.counted.contains(&head), may_leave) {
            (true, false) => u32::MAX,
            (true, true) => COUNTED,
            _ => UNKNOWN,
        }
    }

    /// Forgets registers that do not repeat.
    pub(super) fn forget(&self, task: usize, head: u32, mut state: State) -> State {
        let cuts = &self.tasks[task].cuts;
        for (register, value) in state.registers.iter_mut().enumerate() {
            let is_it = |cut: &Cut| cut.head == head && cut.state.registers[register] == *value;
            if !cuts.iter().any(is_it) {
                *value = None;
            }
        }
        state
    }

    pub(super) fn cut(&mut self, task: usize, key: &Key, state: &State, round: u32) {
        let made = self.statics[task].ends.iter().map(|end| {
            let messages = self.writers[end.channel].iter().find(|(writer, _)| *writer == task);
            messages.filter(|_| end.writes).map_or(0, |(_, messages)| messages.made())
        });
        let made = made.collect();
        let statics = &self.statics[task];
        let progress = &mut self.tasks[task];
        let is_certain = progress.frontier.is_empty() && !progress.is_lossy;
        let is_quiet = |key: &Key| !statics.uses[statics.order.node(key)].iter().any(|uses| *uses);
        if progress.frontier.keys().all(is_quiet) {
            let mut state = state.clone();
            let lives = &statics.lives[statics.order.node(key)];
            state.forget(lives);
            if self.level == Level::Program || statics.task.segments.is_empty() {
                state.points.clear();
            }
            progress.cuts.push(Cut { head: key[0], round, state, is_certain, made });
        }
    }

    /// Takes nothing for known that a loop changes, but for the time.
    pub(super) fn any_number(&self, task: usize, head: u32, mut state: State) -> State {
        let body = self.statics[task].body(head);
        for register in body.registers {
            state.registers[register] = None;
        }
        for end in body.ends {
            state.counts[end].hi = None;
            // After another round.
            if state.due[end].lo == NEVER || state.second[end] == Second::Yes {
                state.second[end] = Second::Perhaps;
            }
            state.due[end].hi = None;
        }
        state.points.extend(body.points);
        state.points.sort_unstable();
        state.points.dedup();
        state.may_skip |= body.skips;
        state.may_wait = true;
        state
    }

    /// Takes a state for those of all further rounds of a loop.
    pub(super) fn widen(&mut self, task: usize, head: u32, depth: usize, state: State) -> State {
        let mut state = self.any_number(task, head, state);
        let body = self.statics[task].body(head);
        if state.now.hi.is_some()
            && let Some((row, _)) = state.before.first()
        {
            self.lose(CauseKind::Loop, *row);
        }
        state.now.hi = None;
        state.elapsed.hi = None;
        if body.moves_origin {
            state.origin.hi = None;
            state.elapsed.lo = Span::ZERO;
        }
        state.rest();
        state.wide |= 1 << depth.min(62);
        state
    }

    /// Where an outermost loop may have been left, it is taken to have any number of rounds.
    pub(super) fn widen_outermost(&mut self, task: usize) -> bool {
        let frontier = &self.tasks[task].frontier;
        let Some((key, state)) = frontier.first_key_value() else { return false };
        if frontier.len() < 2 || state.wide != 0 || key.len() != 3 || key[0] != key[2] {
            return false;
        }
        let key = key.clone();
        let Some(state) = self.tasks[task].frontier.remove(&key) else { return false };
        let state = self.widen(task, key[0], 1, state);
        self.tasks[task].frontier.insert(key, state);
        true
    }
}
