//! One federate of a federation, executed without its code: a state machine that begins tags, asks
//! for the execution of reactions, and sends what they set.
//!
//! It knows the order of its reactions, what causes them, its inputs and how long it waits for
//! them; `docs/lingua-franca.md` ("Running a skeleton") has the semantics: reactor-c's, with
//! decentralised coordination and one worker. The caller has the clock, the network and the
//! processor. Times are readings of the federate's clock since the start of the federation.

mod count;
mod plan;
#[cfg(test)]
mod tests;
pub mod wire;

pub use count::{Counts, Extent, InputCount, ReactionCount};

use onbeat_model::federation::{
    ConnectionId, FederateId, Federation, MaxWait, ReactionId, Tag, TagDelay,
};
use onbeat_model::time::Span;
use plan::{Effect, Plan, Shift};
use std::collections::{BTreeMap, BTreeSet};

/// So many tags may wait in a queue; what would add one more is dropped and counted.
pub const TAGS_MAX: usize = 1 << 16;

/// What a federate does that its model does not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How long it waits for its inputs if the model does not say.
    pub maxwait: MaxWait,
    /// The time of the last tag: reactions to shutdown execute there. None: there is no end.
    pub stop: Option<Span>,
    /// Whether a handler of a deadline sets what the body would.
    pub handlers_set: bool,
}

/// What a federate is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happened {
    /// It is the time that was asked for, or any other.
    Time,
    /// A message has come.
    Received {
        /// On which connection.
        connection: ConnectionId,
        /// With which tag, that of `after` included; of no meaning on a physical connection.
        tag: Tag,
        /// Whether it has a value; without one it says that the input is absent at the tag.
        present: bool,
        /// By how much it came after its capture time plus the fixed delay of its channel; zero
        /// or less: it came in time.
        lateness: Span,
    },
    /// What schedules an action that no reaction schedules has happened.
    Event {
        /// The position of the action in [`Federate::actions`].
        action: usize,
    },
    /// The reaction that executes has finished.
    Finished {
        /// Whether it has set its ports and scheduled its actions.
        sets: bool,
    },
}

/// What a federate asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// [`Happened::Time`] when the clock reads this, unless something happens before.
    WakeAt(Span),
    /// Nothing: a tag has begun.
    Begin(Tag),
    /// The execution of a reaction, and then [`Happened::Finished`].
    Execute {
        /// Which.
        reaction: ReactionId,
        /// At which tag.
        tag: Tag,
        /// Whether it is the handler of the deadline that executes.
        handler: bool,
    },
    /// Nothing: a cause of the reaction that executes.
    Because {
        /// Its position in [`onbeat_model::federation::Reaction::causes`].
        cause: usize,
    },
    /// Nothing: a reaction will execute at a tag, by what has just happened.
    Scheduled {
        /// Which.
        reaction: ReactionId,
        /// The position of the cause.
        cause: usize,
        /// When.
        tag: Tag,
    },
    /// A message to another federate.
    Send {
        /// On which connection.
        connection: ConnectionId,
        /// Its tag.
        tag: Tag,
    },
    /// Nothing: the last tag is over.
    End,
}

/// A reaction of this federate, by its position, and one of its causes.
type Trigger = (usize, usize);

/// What the federate does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It waits for the next tag.
    Between,
    /// It waits for an input of the tag, before the reaction at this position.
    At(usize),
    /// The reaction at this position executes, or the handler of its deadline.
    Executing(usize, bool),
    /// The last tag is over.
    Over,
}

/// A federate.
#[derive(Clone, Debug)]
pub struct Federate {
    plan: Plan,
    settings: Settings,
    maxwait: MaxWait,
    queue: BTreeMap<Tag, BTreeSet<Trigger>>,
    state: State,
    /// The tag that was begun last.
    current: Option<Tag>,
    /// What executes at the current tag, and has not.
    triggered: BTreeSet<Trigger>,
    /// Per input: the latest tag of what was received.
    known: Vec<Option<Tag>>,
    /// Per output: whether it was set at the current tag, and not sent.
    set: Vec<bool>,
    counts: Counts,
}

impl Federate {
    /// A federate before the start.
    ///
    /// # Panics
    /// When the federation has no such federate, or refers to what it does not have.
    pub fn new(federation: &Federation, which: FederateId, settings: Settings) -> Self {
        let plan = Plan::new(federation, which);
        let maxwait = federation.federates[which.index()].maxwait.unwrap_or(settings.maxwait);
        let mut federate = Self {
            settings,
            maxwait,
            queue: BTreeMap::new(),
            state: State::Between,
            current: None,
            triggered: BTreeSet::new(),
            known: vec![None; plan.inputs.len()],
            set: vec![false; plan.outputs.len()],
            counts: Counts::new(&plan),
            plan,
        };
        federate.start();
        federate
    }

    /// The names of the actions that no reaction schedules, in the order of their first use.
    pub fn actions(&self) -> &[String] {
        &self.plan.actions
    }

    /// What has been counted so far.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Takes note of what has happened when the clock reads `now`, and adds what it asks for to
    /// `actions`. `now` must not decrease; what happened last decides when to wake.
    ///
    /// What does not fit (a message of another federate's connection, an action that is not there,
    /// an end without an execution) is ignored.
    pub fn handle(&mut self, now: Span, happened: Happened, actions: &mut Vec<Action>) {
        match happened {
            Happened::Time => {}
            Happened::Received { connection, tag, present, lateness } => {
                let Some(input) = self.plan.input(connection) else { return };
                self.receive(now, input, tag, present, lateness, actions);
            }
            Happened::Event { action } => {
                let Some(triggers) = self.plan.events.get(action).cloned() else { return };
                self.schedule_physically(Tag::at(now), &triggers, actions);
            }
            Happened::Finished { sets } => self.finish(now, sets, actions),
        }
        self.proceed(now, actions);
    }

    /// What is due without any event.
    fn start(&mut self) {
        for at in 0..self.plan.startups.len() {
            let (tag, trigger) = self.plan.startups[at];
            self.push(tag, trigger);
        }
        let Some(stop) = self.settings.stop else { return };
        for at in 0..self.plan.shutdowns.len() {
            self.push(Tag::at(stop), self.plan.shutdowns[at]);
        }
        self.queue.entry(Tag::at(stop)).or_default();
    }

    /// Schedules a cause. False if the queue is full.
    fn push(&mut self, tag: Tag, trigger: Trigger) -> bool {
        if self.queue.len() >= TAGS_MAX && !self.queue.contains_key(&tag) {
            self.counts.overflows += 1;
            return false;
        }
        self.queue.entry(tag).or_default().insert(trigger);
        true
    }

    /// Schedules causes at the first tag from `tag` on that is later than the current one and at
    /// which none of them is scheduled already.
    fn schedule_physically(&mut self, tag: Tag, triggers: &[Trigger], actions: &mut Vec<Action>) {
        let next = self.current.map(|current| current.after(TagDelay::Microstep));
        let mut tag = next.map_or(tag, |next| next.max(tag));
        let is_taken = |at: &BTreeSet<Trigger>| triggers.iter().any(|one| at.contains(one));
        while self.queue.get(&tag).is_some_and(is_taken) && tag.microstep < u32::MAX {
            tag = tag.after(TagDelay::Microstep);
        }
        for (reaction, cause) in triggers.iter().copied() {
            if self.push(tag, (reaction, cause)) {
                let reaction = self.plan.reactions[reaction].id;
                actions.push(Action::Scheduled { reaction, cause, tag });
            }
        }
    }

    fn receive(
        &mut self,
        now: Span,
        input: usize,
        tag: Tag,
        present: bool,
        lateness: Span,
        actions: &mut Vec<Action>,
    ) {
        let physical = self.plan.inputs[input].physical;
        let triggers = self.plan.inputs[input].triggers.clone();
        self.counts.inputs[input].receive(lateness);
        if let Some(after) = physical {
            return self.schedule_physically(Tag::at(now).after(after), &triggers, actions);
        }
        self.known[input] = self.known[input].max(Some(tag));
        if !present {
            return;
        }
        let current = self.current.filter(|current| *current >= tag);
        let Some(current) = current else {
            for (reaction, cause) in triggers {
                if self.push(tag, (reaction, cause)) {
                    let reaction = self.plan.reactions[reaction].id;
                    actions.push(Action::Scheduled { reaction, cause, tag });
                }
            }
            return;
        };
        let first = self.plan.inputs[input].first;
        if current == tag && first.is_none_or(|first| self.has_not_begun(first)) {
            for (reaction, cause) in triggers {
                self.triggered.insert((reaction, cause));
                let reaction = self.plan.reactions[reaction].id;
                actions.push(Action::Scheduled { reaction, cause, tag });
            }
            return;
        }
        self.counts.inputs[input].be_tardy(since(now, tag));
        self.schedule_physically(tag, &triggers, actions);
    }

    /// Whether, at the current tag, neither a reaction nor any after it has begun.
    fn has_not_begun(&self, reaction: usize) -> bool {
        match self.state {
            State::At(position) => reaction >= position,
            State::Executing(position, _) => reaction > position,
            State::Between | State::Over => false,
        }
    }

    fn finish(&mut self, now: Span, sets: bool, actions: &mut Vec<Action>) {
        let (State::Executing(at, handler), Some(tag)) = (self.state, self.current) else {
            return;
        };
        self.counts.reactions[at].finish.add(since(now, tag));
        self.state = State::At(at + 1);
        if !sets || handler && !self.settings.handlers_set {
            return;
        }
        let effects = std::mem::take(&mut self.plan.reactions[at].effects);
        for Effect { trigger, shift } in &effects {
            match *shift {
                Shift::Physical(delay) => {
                    self.schedule_physically(Tag::at(now).after(delay), &[*trigger], actions);
                    continue;
                }
                Shift::Logical(TagDelay::None) => {
                    self.triggered.insert(*trigger);
                }
                Shift::Logical(delay) if !self.push(tag.after(delay), *trigger) => continue,
                Shift::Logical(_) => {}
            }
            let Shift::Logical(delay) = *shift else { continue };
            let reaction = self.plan.reactions[trigger.0].id;
            let scheduled = Action::Scheduled { reaction, cause: trigger.1, tag: tag.after(delay) };
            actions.push(scheduled);
        }
        self.plan.reactions[at].effects = effects;
        for output in &self.plan.reactions[at].outputs {
            self.set[*output] = true;
        }
    }

    /// Does all that can be done now.
    fn proceed(&mut self, now: Span, actions: &mut Vec<Action>) {
        loop {
            match self.state {
                State::Executing(..) | State::Over => return,
                State::At(position) => {
                    let Some(tag) = self.current else { return };
                    if !self.go_on(now, tag, position, actions) {
                        return;
                    }
                }
                State::Between => {
                    if !self.begin(now, actions) {
                        return;
                    }
                }
            }
        }
    }

    /// Begins the next tag. False if it is not yet time, or there is none.
    fn begin(&mut self, now: Span, actions: &mut Vec<Action>) -> bool {
        let Some((&tag, _)) = self.queue.first_key_value() else { return false };
        if now < tag.time {
            actions.push(Action::WakeAt(tag.time));
            return false;
        }
        let is_known = (0..self.known.len()).all(|input| self.is_known(input, tag));
        match self.maxwait {
            _ if is_known => {}
            MaxWait::Forever => return false,
            MaxWait::For(wait) => {
                let until = add(tag.time, wait);
                if now < until {
                    actions.push(Action::WakeAt(until));
                    return false;
                }
            }
        }
        self.triggered = self.queue.remove(&tag).unwrap_or_default();
        for (reaction, cause) in &self.triggered {
            let period = self.plan.reactions[*reaction].periods.get(cause).copied();
            let next = period.map(|period| Tag::at(add(tag.time, period)));
            if let Some(next) = next.filter(|next| *next > tag) {
                // A timer's next tag takes the place of this one in the queue.
                self.queue.entry(next).or_default().insert((*reaction, *cause));
            }
        }
        self.current = Some(tag);
        self.state = State::At(0);
        self.counts.tags += 1;
        self.counts.lag.add(since(now, tag));
        actions.push(Action::Begin(tag));
        true
    }

    /// Whether what an input has at a tag is known. Physical ones have no tags to wait for.
    fn is_known(&self, input: usize, tag: Tag) -> bool {
        self.plan.inputs[input].physical.is_some() || self.known[input] >= Some(tag)
    }

    /// Continues with the current tag from a position on. False if there is something to wait for.
    fn go_on(&mut self, now: Span, tag: Tag, from: usize, actions: &mut Vec<Action>) -> bool {
        let next = self.triggered.first().map(|(reaction, _)| *reaction);
        if let Some((position, until)) = self.unknown(now, tag, from)
            && next.is_none_or(|next| position <= next)
        {
            self.send(position, tag, actions);
            self.state = State::At(position);
            actions.extend(until.map(Action::WakeAt));
            return false;
        }
        self.send(next.unwrap_or(usize::MAX), tag, actions);
        match next {
            Some(next) => self.execute(now, tag, next, actions),
            None => {
                let is_last = self.settings.stop.is_some_and(|stop| tag >= Tag::at(stop));
                self.state = if is_last { State::Over } else { State::Between };
                actions.extend(is_last.then_some(Action::End));
            }
        }
        true
    }

    /// The first reaction from a position on that needs an input that is not known, and may be
    /// received still; and until when, if not for ever.
    fn unknown(&self, now: Span, tag: Tag, from: usize) -> Option<(usize, Option<Span>)> {
        let waiting = self.plan.inputs.iter().enumerate().filter_map(|(at, input)| {
            let first = input.first.filter(|first| *first >= from)?;
            if self.is_known(at, tag) {
                return None;
            }
            let until = match (self.maxwait, input.absent_after) {
                (MaxWait::For(wait), MaxWait::For(more)) => Some(add(add(tag.time, wait), more)),
                _ => None,
            };
            until.is_none_or(|until| now < until).then_some((first, until))
        });
        // With several at one position, the one that is waited for longest.
        waiting.min_by_key(|(first, until)| (*first, std::cmp::Reverse(until.unwrap_or(Span::MAX))))
    }

    fn execute(&mut self, now: Span, tag: Tag, at: usize, actions: &mut Vec<Action>) {
        let reaction = &self.plan.reactions[at];
        let handler = reaction.deadline.is_some_and(|deadline| now > add(tag.time, deadline));
        let count = &mut self.counts.reactions[at];
        count.release.add(since(now, tag));
        count.misses += u64::from(handler);
        actions.push(Action::Execute { reaction: reaction.id, tag, handler });
        while let Some((reaction, cause)) = self.triggered.first().copied()
            && reaction == at
        {
            self.triggered.pop_first();
            actions.push(Action::Because { cause });
        }
        self.state = State::Executing(at, handler);
    }

    /// Sends what was set, on connections all of whose writers are before `position`.
    fn send(&mut self, position: usize, tag: Tag, actions: &mut Vec<Action>) {
        for (output, set) in self.plan.outputs.iter().zip(&mut self.set) {
            if *set && output.last < position {
                *set = false;
                let tag = tag.after(output.after);
                actions.push(Action::Send { connection: output.connection, tag });
            }
        }
    }
}

/// The sum, or the end of all time.
fn add(time: Span, span: Span) -> Span {
    Span::from_ns(time.as_ns().saturating_add(span.as_ns()))
}

/// From a tag to what the clock reads, or the end of all time: tags come from others.
fn since(now: Span, tag: Tag) -> Span {
    Span::from_ns(now.as_ns().saturating_sub(tag.time.as_ns()))
}
