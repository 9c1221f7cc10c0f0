//! What a federate counts.

use super::plan::Plan;
use onbeat_model::federation::{ConnectionId, ReactionId};
use onbeat_model::time::Span;

/// How many values there were, and the extremes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// How many.
    pub count: u64,
    /// The least; none without values.
    pub min: Option<Span>,
    /// The greatest.
    pub max: Option<Span>,
}

impl Extent {
    /// Counts one more.
    pub fn add(&mut self, value: Span) {
        self.count += 1;
        self.min = Some(self.min.map_or(value, |min| min.min(value)));
        self.max = self.max.max(Some(value));
    }

    /// Counts those of another one, too.
    pub fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.min =
            self.min.map_or(other.min, |own| Some(other.min.map_or(own, |min| min.min(own))));
        self.max = self.max.max(other.max);
    }
}

/// All that a federate counts. Times are by its clock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Tags that have begun.
    pub tags: u64,
    /// By how much the clock was ahead of the tag when it began.
    pub lag: Extent,
    /// What was dropped because [`super::TAGS_MAX`] tags waited.
    pub overflows: u64,
    /// Per reaction, in their order.
    pub reactions: Vec<ReactionCount>,
    /// Per connection to the federate, in their order.
    pub inputs: Vec<InputCount>,
}

/// What a reaction did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReactionCount {
    /// Which.
    pub reaction: ReactionId,
    /// From the tag to when it, or the handler of its deadline, began.
    pub release: Extent,
    /// From the tag to when it finished.
    pub finish: Extent,
    /// How often it would have begun after its deadline, so that the handler executed.
    pub misses: u64,
}

/// What came on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InputCount {
    /// Which.
    pub connection: ConnectionId,
    /// Messages, with values or without.
    pub received: u64,
    /// Messages that came when the tag, or the part of it that needs them, had begun; and by how
    /// much the clock was ahead of their tags.
    pub tardy: Extent,
    /// Messages that came after their capture time plus the fixed delay, whatever their tags; and
    /// by how much.
    pub late: Extent,
}

impl Counts {
    pub(super) fn new(plan: &Plan) -> Self {
        let reaction = |reaction| ReactionCount {
            reaction,
            release: Extent::default(),
            finish: Extent::default(),
            misses: 0,
        };
        let input = |connection| InputCount {
            connection,
            received: 0,
            tardy: Extent::default(),
            late: Extent::default(),
        };
        Self {
            reactions: plan.reactions.iter().map(|one| reaction(one.id)).collect(),
            inputs: plan.inputs.iter().map(|one| input(one.connection)).collect(),
            ..Self::default()
        }
    }

    /// Messages that were tardy, on all connections.
    pub fn tardy(&self) -> u64 {
        self.inputs.iter().map(|input| input.tardy.count).sum()
    }

    /// Messages that were late by their fixed delays, on all connections.
    pub fn late(&self) -> u64 {
        self.inputs.iter().map(|input| input.late.count).sum()
    }
}

impl InputCount {
    pub(super) fn receive(&mut self, lateness: Span) {
        self.received += 1;
        if lateness > Span::ZERO {
            self.late.add(lateness);
        }
    }

    pub(super) fn be_tardy(&mut self, behind: Span) {
        self.tardy.add(behind);
    }
}
