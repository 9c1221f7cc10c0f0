//! All paths of one station through one round. States with the same future are merged: what is left
//! of a guard is its outcome, where a later guard or another station may look at the same word.

use super::code::StationCode;
use super::state::{CreatedBuffer, PathState};
use super::time::{ethertype_octets, octets};
use super::values::{
    Facts, LookedAt, Ranges, RelationCode, SourceWord, WordSource, intersection, ranges,
};
use onbeat_runtime::network_code::instruction::{
    BufferId, BufferWord, Condition, Guard, Instruction, MessageId, Relation,
};
use onbeat_runtime::network_code::program::{BufferRole, StationProgram};
use onbeat_runtime::network_code::timing::{SEND_START, SYNC_RESUME, issue_cycles};
use std::collections::{BTreeMap, BTreeSet};

/// Instructions that are followed for one station, in all its states and rounds together.
pub const STEPS_MAX: usize = 4_000_000;
/// The longest round.
pub const ROUND_CYCLES_MAX: i64 = 1 << 33;

/// The decisions that lead to a state: the last one, and the node of the ones before.
#[derive(Clone, Copy, Debug)]
pub(super) struct PathNode {
    pub(super) before: u32,
    /// From 0; what is before the first round has the same number.
    pub(super) round: u32,
    pub(super) at: u16,
    pub(super) is_taken: bool,
}

/// The node of no decision.
pub(super) const ROOT: u32 = 0;

/// When a frame of a message may become visible to a station, in cycles from its first instruction
/// in the round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ArrivalWindow {
    pub(super) earliest: i64,
    pub(super) latest: i64,
    /// Whether one frame comes for certain, the only one of the message in the round.
    pub(super) is_certain: bool,
    /// A station that sends it, and the decisions that lead there.
    pub(super) sender: (usize, u32),
}

/// For each message that a station looks at; none where nothing is known of its arrivals.
pub(super) type RoundArrivals = Vec<Option<Vec<ArrivalWindow>>>;

/// A frame that a station may send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SendEvent {
    pub(super) at: usize,
    /// Of the first octet of the preamble.
    pub(super) offset: i64,
    /// None is the beginning of a round.
    pub(super) message: Option<MessageId>,
    pub(super) octets: i64,
    pub(super) facts: Facts,
    pub(super) node: u32,
}

/// That a station ends a round: it issues the next `sync`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RoundEnd {
    pub(super) at: usize,
    pub(super) offset: i64,
    /// Of `sync slave`; none of `sync master`.
    pub(super) timeout: Option<u32>,
    /// Until when its last frame occupies its transmitter.
    pub(super) gap_end: i64,
    pub(super) facts: Facts,
    pub(super) node: u32,
}

/// What can go wrong at an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LocalHazard {
    /// `halt` without a countdown.
    NoFuture,
    /// `future` replaces a countdown.
    Replaced,
    /// `sync slave` with a countdown.
    CountdownAtSync,
    /// `send` with nothing in the send buffer.
    NothingCreated,
    /// `send` of a buffer of another length.
    Length,
    /// `create` of an input buffer that no frame was copied into.
    Unwritten,
    /// `create` waits for the wire beyond the end of the countdown.
    Stalled,
    /// `halt` at or after the end of its countdown.
    Overrun,
    /// A `send` before the first round.
    Unsynchronised,
    /// A frame comes while the last one is not copied.
    Overwritten { message: MessageId, by: usize, sender: (usize, u32) },
    /// `receive` finds nothing.
    Empty,
    /// The station executes both `sync master` and `sync slave`.
    TwoRoles,
}

/// A hazard, where it is, and the decisions that lead there.
#[derive(Clone, Debug)]
pub(super) struct HazardAt {
    pub(super) kind: LocalHazard,
    pub(super) at: usize,
    pub(super) node: u32,
}

/// What a station does in a round.
#[derive(Clone, Debug, Default)]
pub(super) struct RoundPaths {
    pub(super) events: Vec<SendEvent>,
    pub(super) ends: Vec<RoundEnd>,
    pub(super) hazards: Vec<HazardAt>,
    /// Messages that every path sends.
    pub(super) always: BTreeSet<MessageId>,
    /// Messages that a path sends more than once.
    pub(super) twice: BTreeSet<MessageId>,
    /// Where the next round begins.
    pub(super) next: BTreeMap<PathState, u32>,
}

/// What merged states do not tell apart.
#[derive(Clone, Debug, Default)]
struct Merged {
    node: u32,
    always: BTreeSet<MessageId>,
    once: BTreeSet<MessageId>,
    twice: BTreeSet<MessageId>,
}

/// What part of a station's life is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// From its start to its first `sync`.
    Start,
    /// A round.
    Round,
    /// From a `sync slave` that timed out to the next `sync`.
    TimedOut,
}

/// Follows one station.
pub(super) struct PathFinder<'a> {
    pub(super) program: &'a StationProgram,
    pub(super) code: &'a StationCode,
    /// Words of messages that are worth to be remembered.
    pub(super) looked_at: &'a LookedAt,
    /// Messages that exactly one station sends exactly once in each round.
    pub(super) certain: &'a BTreeSet<MessageId>,
    pub(super) nodes: Vec<PathNode>,
    pub(super) visited: Vec<bool>,
    pub(super) steps: usize,
    pub(super) round: u32,
    pub(super) stage: Stage,
    queue: BTreeMap<PathState, Merged>,
    found: RoundPaths,
    seen: BTreeSet<(LocalHazard, usize)>,
}

/// That a limit was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LimitReached;

impl<'a> PathFinder<'a> {
    pub(super) fn new(
        program: &'a StationProgram,
        code: &'a StationCode,
        looked_at: &'a LookedAt,
        certain: &'a BTreeSet<MessageId>,
    ) -> Self {
        let root = PathNode { before: ROOT, round: 0, at: 0, is_taken: false };
        Self {
            program,
            code,
            looked_at,
            certain,
            nodes: vec![root],
            visited: vec![false; code.instructions.len()],
            steps: 0,
            round: 0,
            stage: Stage::Start,
            queue: BTreeMap::new(),
            found: RoundPaths::default(),
            seen: BTreeSet::new(),
        }
    }

    /// The state at power-on.
    pub(super) fn start(&self) -> PathState {
        PathState {
            counters: vec![0; self.code.counters.len()],
            buffers: vec![Default::default(); self.code.buffers.len()],
            messages: vec![Default::default(); self.code.messages.len()],
            ..PathState::default()
        }
    }

    /// Follows all paths from the states to the next `sync`.
    pub(super) fn follow(
        &mut self,
        starts: &BTreeMap<PathState, u32>,
        arrivals: &RoundArrivals,
    ) -> Result<RoundPaths, LimitReached> {
        let of = |(state, node): (&PathState, &u32)| {
            (state.clone(), Merged { node: *node, ..Merged::default() })
        };
        self.queue = starts.iter().map(of).collect();
        self.found = RoundPaths::default();
        self.seen.clear();
        let mut ended = None;
        while let Some((state, merged)) = self.queue.pop_first() {
            self.segment(state, merged, arrivals, &mut ended)?;
        }
        let mut found = std::mem::take(&mut self.found);
        found.always = ended.unwrap_or_default();
        let facts = |event: &SendEvent| (event.offset, event.at, event.facts.clone());
        found.events.sort_by_cached_key(facts);
        found.events.dedup_by(|next, event| facts(next) == facts(event));
        let facts = |end: &RoundEnd| (end.offset, end.at, end.gap_end, end.facts.clone());
        found.ends.sort_by_cached_key(facts);
        found.ends.dedup_by(|next, end| facts(next) == facts(end));
        Ok(found)
    }

    /// The frames that begin a round, of which these are the first states.
    pub(super) fn beginnings(&self, starts: &BTreeMap<PathState, u32>) -> Vec<SendEvent> {
        let mut seen = BTreeSet::new();
        let mut events = Vec::new();
        for (state, node) in starts {
            let Some(at) = state.at.checked_sub(1) else { continue };
            if self.code.instructions[at] == Instruction::SyncMaster && seen.insert(at) {
                events.push(SendEvent {
                    at,
                    offset: Self::master_reference(self.program),
                    message: None,
                    octets: octets(self.program, 1),
                    facts: Facts::default(),
                    node: *node,
                });
            }
        }
        events
    }

    /// Follows a state to where paths may part or meet.
    fn segment(
        &mut self,
        mut state: PathState,
        mut merged: Merged,
        arrivals: &RoundArrivals,
        ended: &mut Option<BTreeSet<MessageId>>,
    ) -> Result<(), LimitReached> {
        loop {
            self.steps += 1;
            if self.steps > STEPS_MAX || state.offset > ROUND_CYCLES_MAX {
                return Err(LimitReached);
            }
            self.visited[state.at] = true;
            let instruction = self.code.instructions[state.at];
            match instruction {
                Instruction::Nop => {}
                Instruction::Create { buffer } => self.create(&mut state, buffer, &merged),
                Instruction::Send { message } => {
                    if !self.send(&mut state, message, &mut merged) {
                        return Ok(());
                    }
                }
                Instruction::Receive { message, buffer } => {
                    self.receive(&state, message, buffer, &merged, arrivals);
                    return Ok(());
                }
                Instruction::Future { target, delay } => {
                    if state.countdown.is_some() {
                        self.hazard(LocalHazard::Replaced, state.at, merged.node);
                        state.overrun = true;
                    }
                    let end = state.offset + i64::from(delay);
                    state.countdown = Some((end, target.index()));
                }
                Instruction::Halt => {
                    self.halt(state, merged);
                    return Ok(());
                }
                Instruction::SyncMaster | Instruction::SyncSlave { .. } => {
                    self.end(state, merged, instruction, arrivals, ended);
                    return Ok(());
                }
                Instruction::Branch { guard, target } => {
                    self.branch(&state, guard, target.index(), &merged, arrivals);
                    return Ok(());
                }
            }
            state.offset += issue_cycles(instruction, 0).0 as i64;
            state.at += 1;
        }
    }

    pub(super) fn hazard(&mut self, kind: LocalHazard, at: usize, node: u32) {
        if self.seen.insert((kind, at)) {
            self.found.hazards.push(HazardAt { kind, at, node });
        }
    }

    /// Merges a state with an equal one, or adds it.
    fn put(&mut self, mut state: PathState, merged: Merged) {
        if state.gap_end <= state.offset {
            state.gap_end = 0;
        }
        if state.data_end <= state.offset {
            state.data_end = 0;
        }
        if let Some(other) = self.queue.get_mut(&state) {
            other.always.retain(|message| merged.always.contains(message));
            other.twice.extend(&merged.twice);
            other.once.extend(&merged.once);
        } else {
            self.queue.insert(state, merged);
        }
    }

    fn tracked(&self, buffer: BufferId) -> Option<usize> {
        self.code.buffers.binary_search(&buffer.0).ok()
    }

    fn create(&mut self, state: &mut PathState, buffer: BufferId, merged: &Merged) {
        let wait = state.data_end > state.offset;
        state.offset = state.offset.max(state.data_end);
        if wait && state.countdown.is_some_and(|(end, _)| end <= state.offset) {
            self.hazard(LocalHazard::Stalled, state.at, merged.node);
        }
        let tracked = self.tracked(buffer);
        if tracked.is_some_and(|tracked| !state.buffers[tracked].written) {
            self.hazard(LocalHazard::Unwritten, state.at, merged.node);
        }
        let words = self.program.buffer(buffer).map_or(0, |buffer| buffer.words);
        let from = tracked.map(|_| buffer.0);
        state.created = Some(CreatedBuffer { words, from });
    }

    /// Whether the station continues.
    fn send(&mut self, state: &mut PathState, message: MessageId, merged: &mut Merged) -> bool {
        let start = SEND_START.0 as i64;
        state.offset = state.offset.max(state.gap_end - start);
        let words = self.program.message(message).map_or(0, |format| format.words);
        let Some(created) = state.created.take() else {
            self.hazard(LocalHazard::NothingCreated, state.at, merged.node);
            return false;
        };
        if created.words != words {
            self.hazard(LocalHazard::Length, state.at, merged.node);
            return false;
        }
        if self.stage == Stage::Start {
            self.hazard(LocalHazard::Unsynchronised, state.at, merged.node);
        }
        let begin = state.offset + start;
        state.data_end = begin + self.program.medium.frame_cycles(words).0 as i64;
        state.gap_end = state.data_end + self.program.medium.gap_cycles().0 as i64;
        self.found.events.push(SendEvent {
            at: state.at,
            offset: begin,
            message: Some(message),
            octets: octets(self.program, words),
            facts: state.facts.shared(),
            node: merged.node,
        });
        merged.always.insert(message);
        if !merged.once.insert(message) {
            merged.twice.insert(message);
            self.found.twice.insert(message);
        }
        if let Some(from) = created.from
            && let Some(tracked) = self.tracked(BufferId(from))
            && state.buffers[tracked].value.is_none()
            && state.buffers[tracked].written
            && self.certain.contains(&message)
        {
            // All receivers of the frame have these words, and so has this buffer.
            state.buffers[tracked].value = Some((message, 0));
            state.facts.rename(from, WordSource::Value { message, age: 0 });
        }
        true
    }

    fn halt(&mut self, mut state: PathState, merged: Merged) {
        let Some((end, label)) = state.countdown.take() else {
            self.hazard(LocalHazard::NoFuture, state.at, merged.node);
            return;
        };
        if end <= state.offset {
            self.hazard(LocalHazard::Overrun, state.at, merged.node);
            state.overrun = true;
        }
        state.offset = end.max(state.offset + 1);
        state.at = label;
        self.put(state, merged);
    }

    fn end(
        &mut self,
        mut state: PathState,
        merged: Merged,
        sync: Instruction,
        arrivals: &RoundArrivals,
        ended: &mut Option<BTreeSet<MessageId>>,
    ) {
        let mut shift = 0;
        let mut timeout = None;
        if let Instruction::SyncSlave { timeout: cycles } = sync {
            timeout = Some(cycles);
            if state.countdown.is_some() {
                self.hazard(LocalHazard::CountdownAtSync, state.at, merged.node);
                state.countdown = None;
            }
        } else {
            state.offset = state.offset.max(state.gap_end - SEND_START.0 as i64);
            let begin = state.offset + SEND_START.0 as i64;
            state.gap_end = begin
                + self.program.medium.frame_cycles(1).0 as i64
                + self.program.medium.gap_cycles().0 as i64;
            let ethertype = self.program.medium.ethertype_cycles();
            shift = begin + (ethertype + SYNC_RESUME).0 as i64;
        }
        self.found.ends.push(RoundEnd {
            at: state.at,
            offset: state.offset,
            timeout,
            gap_end: state.gap_end,
            facts: state.facts.shared(),
            node: merged.node,
        });
        let ended = ended.get_or_insert_with(|| merged.always.clone());
        ended.retain(|message| merged.always.contains(message));
        state.at += 1;
        state.timeout = false;
        for mut state in self.arrive_all(state, arrivals, merged.node) {
            if timeout.is_some() {
                (state.gap_end, state.data_end) = (0, 0);
            }
            state.next_round(shift);
            self.found.next.entry(state).or_insert(merged.node);
        }
    }

    /// The states after all that may come in the rest of the round.
    fn arrive_all(
        &mut self,
        state: PathState,
        arrivals: &RoundArrivals,
        node: u32,
    ) -> Vec<PathState> {
        let mut states = vec![state];
        for tracked in 0..self.code.messages.len() {
            let all = std::mem::take(&mut states);
            for state in all {
                states.extend(self.arrive(state, tracked, i64::MAX, arrivals, node));
            }
            states.sort();
            states.dedup();
        }
        states
    }

    /// The states that a receive buffer may be in at an offset.
    fn arrive(
        &mut self,
        state: PathState,
        tracked: usize,
        until: i64,
        arrivals: &RoundArrivals,
        node: u32,
    ) -> Vec<PathState> {
        let Some(windows) = &arrivals[tracked] else {
            // Anything may have come.
            let mut none = state;
            none.messages[tracked] = Default::default();
            let mut some = none.clone();
            some.messages[tracked].pending = true;
            return if until == i64::MAX { vec![none] } else { vec![none, some] };
        };
        let mut done = Vec::new();
        let mut open = vec![state];
        while let Some(mut state) = open.pop() {
            let past = state.messages[tracked].past;
            let Some(window) = windows.get(past).filter(|window| window.earliest <= until) else {
                done.push(state);
                continue;
            };
            if until < window.latest {
                done.push(state.clone());
            } else if !window.is_certain {
                let mut none = state.clone();
                none.messages[tracked].past += 1;
                open.push(none);
            }
            if state.messages[tracked].pending {
                let message = self.code.messages[tracked];
                let (at, sender) = (state.at, window.sender);
                let kind = LocalHazard::Overwritten { message, by: past, sender };
                self.hazard(kind, at, node);
            }
            let message = &mut state.messages[tracked];
            message.past += 1;
            message.pending = true;
            message.age = window.is_certain.then_some(0);
            open.push(state);
        }
        done
    }

    fn receive(
        &mut self,
        state: &PathState,
        message: MessageId,
        buffer: BufferId,
        merged: &Merged,
        arrivals: &RoundArrivals,
    ) {
        let words = self.program.buffer(buffer).map_or(0, |buffer| buffer.words);
        let cycles = issue_cycles(self.code.instructions[state.at], words).0 as i64;
        let Ok(tracked) = self.code.messages.binary_search(&message) else { return };
        let into = self.tracked(buffer);
        for mut state in self.arrive(state.clone(), tracked, state.offset, arrivals, merged.node) {
            let found = std::mem::take(&mut state.messages[tracked].pending);
            let age = state.messages[tracked].age.take();
            if !found {
                self.hazard(LocalHazard::Empty, state.at, merged.node);
            } else if let Some(into) = into {
                state.facts.forget(buffer.0);
                state.buffers[into].written = true;
                state.buffers[into].value = age.map(|age| (message, age));
            }
            if found && let Some(created) = &mut state.created {
                created.from = created.from.filter(|from| *from != buffer.0);
            }
            state.received = found && self.code.has_received;
            state.offset += cycles;
            state.at += 1;
            self.put(state, merged.clone());
        }
    }

    fn branch(
        &mut self,
        state: &PathState,
        guard: Guard,
        target: usize,
        merged: &Merged,
        arrivals: &RoundArrivals,
    ) {
        for (is_true, mut state) in self.outcomes(state, guard.condition, arrivals, merged.node) {
            let is_taken = is_true != guard.negated;
            let node = self.nodes.len() as u32;
            self.nodes.push(PathNode {
                before: merged.node,
                round: self.round,
                at: state.at as u16,
                is_taken,
            });
            state.offset += issue_cycles(self.code.instructions[state.at], 0).0 as i64;
            state.at = if is_taken { target } else { state.at + 1 };
            self.put(state, Merged { node, ..merged.clone() });
        }
    }

    /// What a condition may be, with the state afterwards.
    fn outcomes(
        &mut self,
        state: &PathState,
        condition: Condition,
        arrivals: &RoundArrivals,
        node: u32,
    ) -> Vec<(bool, PathState)> {
        let known = |is_true: bool| vec![(is_true, state.clone())];
        match condition {
            Condition::Always => known(true),
            Condition::Count { counter, every } => {
                let mut state = state.clone();
                let at = self.code.counters.binary_search(&counter).unwrap_or(0);
                let count = state.counters[at].saturating_add(1);
                let is_true = count >= every;
                state.counters[at] = if is_true { 0 } else { count };
                vec![(is_true, state)]
            }
            Condition::Fresh(message) => {
                let Ok(tracked) = self.code.messages.binary_search(&message) else {
                    return known(false);
                };
                let states = self.arrive(state.clone(), tracked, state.offset, arrivals, node);
                states.into_iter().map(|state| (state.messages[tracked].pending, state)).collect()
            }
            Condition::Received => known(state.received),
            Condition::SyncTimeout => known(state.timeout),
            Condition::Overrun => {
                vec![(state.overrun, PathState { overrun: false, ..state.clone() })]
            }
            Condition::Transmitting => known(state.offset < state.gap_end),
            Condition::Flag(_) | Condition::LinkUp => {
                vec![(false, state.clone()), (true, state.clone())]
            }
            Condition::Immediate { word, relation, value } => {
                self.compared(state, word, relation, value as u32)
            }
            Condition::Words { left, relation, right } => {
                self.compared_words(state, left, relation, right)
            }
        }
    }

    /// A word of an input buffer: its tracked index, or none of a buffer of the application.
    fn input(&self, word: BufferWord) -> Option<usize> {
        let buffer = self.program.buffer(word.buffer)?;
        (buffer.role == BufferRole::Input).then(|| self.tracked(word.buffer))?
    }

    fn compared(
        &self,
        state: &PathState,
        word: BufferWord,
        relation: Relation,
        value: u32,
    ) -> Vec<(bool, PathState)> {
        let free = || vec![(false, state.clone()), (true, state.clone())];
        let Some(tracked) = self.input(word) else { return free() };
        if !state.buffers[tracked].written {
            return vec![(relation.holds(0, value), state.clone())];
        }
        let source = state.source(word.buffer, tracked);
        let key = SourceWord { source, index: word.index };
        if !self.is_kept(key, word) {
            return free();
        }
        let outcome = |is_true: bool| {
            let ranges = ranges(relation, value, is_true);
            Some((is_true, self.with(state, key, &ranges)?))
        };
        [false, true].into_iter().filter_map(outcome).collect()
    }

    /// The state with a fact, which is not added where it says nothing new.
    fn with(&self, state: &PathState, key: SourceWord, ranges: &Ranges) -> Option<PathState> {
        if state.facts.of(key).is_some_and(|known| intersection(known, ranges) == *known) {
            return Some(state.clone());
        }
        Some(PathState { facts: state.facts.with(key, ranges)?, ..state.clone() })
    }

    /// Whether the outcome of a guard on a word may matter later.
    fn is_kept(&self, key: SourceWord, word: BufferWord) -> bool {
        let shared = match key.source {
            WordSource::Value { message, .. } => self.looked_at.contains(&(message, key.index)),
            WordSource::Local { .. } => false,
        };
        shared || self.code.is_repeated(word)
    }

    fn compared_words(
        &self,
        state: &PathState,
        left: BufferWord,
        relation: Relation,
        right: BufferWord,
    ) -> Vec<(bool, PathState)> {
        let free = || vec![(false, state.clone()), (true, state.clone())];
        let (Some(one), Some(other)) = (self.input(left), self.input(right)) else {
            return free();
        };
        let written = (state.buffers[one].written, state.buffers[other].written);
        let keys = [(left, one), (right, other)].map(|(word, tracked)| SourceWord {
            source: state.source(word.buffer, tracked),
            index: word.index,
        });
        match written {
            (false, false) => return vec![(relation.holds(0, 0), state.clone())],
            (true, true) if keys[0] == keys[1] => {
                return vec![(relation.holds(0, 0), state.clone())];
            }
            (true, true) if self.is_kept(keys[0], left) && self.is_kept(keys[1], right) => {}
            _ => return free(),
        }
        let outcome = |is_true: bool| {
            let key = (keys[0], RelationCode::of(relation), keys[1]);
            let facts = state.facts.with_pair(key, is_true)?;
            Some((is_true, PathState { facts, ..state.clone() }))
        };
        [false, true].into_iter().filter_map(outcome).collect()
    }

    /// The offset of a round's beginning, its preamble, from the master's first instruction.
    pub(super) fn master_reference(program: &StationProgram) -> i64 {
        let octets = ethertype_octets(program) * i64::from(program.medium.octet_cycles);
        -(octets + SYNC_RESUME.0 as i64)
    }
}
