//! What a federate needs of its federation, by positions of its own.

use onbeat_model::federation::{
    Connection, ConnectionId, FederateId, Federation, MaxWait, ReactionId, Tag, TagDelay, Trigger,
};
use onbeat_model::time::Span;
use std::collections::BTreeMap;

/// A federate's part of a federation.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// Its reactions, in their order.
    pub(super) reactions: Vec<Reaction>,
    pub(super) inputs: Vec<Input>,
    pub(super) outputs: Vec<Output>,
    /// Actions that no reaction schedules: their names, and per action what it causes.
    pub(super) actions: Vec<String>,
    pub(super) events: Vec<Vec<(usize, usize)>>,
    /// What is scheduled before the start: startup, and the first tags of timers.
    pub(super) startups: Vec<(Tag, (usize, usize))>,
    pub(super) shutdowns: Vec<(usize, usize)>,
}

#[derive(Clone, Debug)]
pub(super) struct Reaction {
    pub(super) id: ReactionId,
    pub(super) deadline: Option<Span>,
    /// Per cause that is a timer with a period.
    pub(super) periods: BTreeMap<usize, Span>,
    pub(super) effects: Vec<Effect>,
    /// Positions of the outputs that it sets.
    pub(super) outputs: Vec<usize>,
}

/// A reaction, by its position, and one of its causes that another reaction brings about.
#[derive(Clone, Copy, Debug)]
pub(super) struct Effect {
    pub(super) trigger: (usize, usize),
    pub(super) shift: Shift,
}

/// What the tag of an effect is later than.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shift {
    /// The tag of its cause.
    Logical(TagDelay),
    /// What the clock reads.
    Physical(TagDelay),
}

#[derive(Clone, Debug)]
pub(super) struct Input {
    pub(super) connection: ConnectionId,
    /// Of a physical connection: the delay from arrival to tag.
    pub(super) physical: Option<TagDelay>,
    pub(super) absent_after: MaxWait,
    pub(super) triggers: Vec<(usize, usize)>,
    /// The first reaction that it causes.
    pub(super) first: Option<usize>,
}

#[derive(Clone, Debug)]
pub(super) struct Output {
    pub(super) connection: ConnectionId,
    pub(super) after: TagDelay,
    /// The last of its writers.
    pub(super) last: usize,
}

impl Plan {
    pub(super) fn new(federation: &Federation, which: FederateId) -> Self {
        let ids = federation.reactions.iter().enumerate();
        let ids = ids.filter(|(_, reaction)| reaction.federate == which);
        let ids: Vec<ReactionId> = ids.map(|(at, _)| ReactionId(at as u32)).collect();
        let of = |id: &ReactionId| &federation.reactions[id.index()];
        let reaction = |id: &ReactionId| Reaction {
            id: *id,
            deadline: of(id).deadline,
            periods: BTreeMap::new(),
            effects: Vec::new(),
            outputs: Vec::new(),
        };
        let mut plan = Self {
            reactions: ids.iter().map(reaction).collect(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            actions: Vec::new(),
            events: Vec::new(),
            startups: Vec::new(),
            shutdowns: Vec::new(),
        };
        for (at, connection) in federation.connections.iter().enumerate() {
            plan.connect(ConnectionId(at as u32), connection, which, &ids);
        }
        for (at, id) in ids.iter().enumerate() {
            for (cause, what) in of(id).causes.iter().enumerate() {
                plan.cause((at, cause), what, &ids);
            }
        }
        plan
    }

    /// The position of an input.
    pub(super) fn input(&self, connection: ConnectionId) -> Option<usize> {
        self.inputs.iter().position(|input| input.connection == connection)
    }

    fn connect(
        &mut self,
        id: ConnectionId,
        connection: &Connection,
        which: FederateId,
        ids: &[ReactionId],
    ) {
        if connection.to == which {
            self.inputs.push(Input {
                connection: id,
                physical: connection.physical.then_some(connection.after),
                absent_after: connection.absent_after.unwrap_or(MaxWait::For(Span::ZERO)),
                triggers: Vec::new(),
                first: None,
            });
        }
        if connection.from != which {
            return;
        }
        let after = if connection.physical { TagDelay::None } else { connection.after };
        let writers = connection.writers.iter();
        let writers = writers.filter_map(|writer| ids.iter().position(|id| id == writer));
        let writers: Vec<usize> = writers.collect();
        for writer in &writers {
            self.reactions[*writer].outputs.push(self.outputs.len());
        }
        let last = writers.into_iter().max().unwrap_or(0);
        self.outputs.push(Output { connection: id, after, last });
    }

    fn cause(&mut self, trigger: (usize, usize), cause: &Trigger, ids: &[ReactionId]) {
        match cause {
            Trigger::Startup => self.startups.push((Tag::default(), trigger)),
            Trigger::Shutdown => self.shutdowns.push(trigger),
            Trigger::Timer { offset, period } => {
                self.startups.push((Tag::at(*offset), trigger));
                if let Some(period) = period {
                    self.reactions[trigger.0].periods.insert(trigger.1, *period);
                }
            }
            Trigger::Reaction { from, delay, physical } => {
                let Some(from) = ids.iter().position(|id| id == from) else { return };
                let shift =
                    if *physical { Shift::Physical(*delay) } else { Shift::Logical(*delay) };
                self.reactions[from].effects.push(Effect { trigger, shift });
            }
            Trigger::Sporadic { action, .. } => {
                let known = self.actions.iter().position(|name| name == action);
                let at = known.unwrap_or(self.actions.len());
                if known.is_none() {
                    self.actions.push(action.clone());
                    self.events.push(Vec::new());
                }
                self.events[at].push(trigger);
            }
            Trigger::Message(connection) => {
                let Some(input) = self.input(*connection) else { return };
                let input = &mut self.inputs[input];
                input.triggers.push(trigger);
                input.first = Some(input.first.map_or(trigger.0, |first| first.min(trigger.0)));
            }
        }
    }
}
