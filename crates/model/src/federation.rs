//! A federation of Lingua Franca after elaboration: what decides when its reactions execute and
//! what its federates send. Banks and widths are expanded, parameters have values, and connections
//! within a federate have become causes of reactions. `docs/lingua-franca.md` has the semantics.

use crate::diagnostic::Origin;
use crate::graph::Interval;
use crate::time::Span;

/// Position in [`Federation::federates`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FederateId(pub u32);

/// Position in [`Federation::reactions`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReactionId(pub u32);

/// Position in [`Federation::connections`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u32);

impl FederateId {
    /// The same as a position.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl ReactionId {
    /// The same as a position.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl ConnectionId {
    /// The same as a position.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// An elaborated federation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Federation {
    /// Name of the main reactor.
    pub name: String,
    /// Who advances tags.
    pub coordination: Coordination,
    /// Its federates, in the order of their instantiation; members of a bank one by one.
    pub federates: Vec<Federate>,
    /// All reactions, federate by federate. Within a federate each comes after all that must
    /// execute before it at the same tag (levels of the runtime, then order of declaration).
    pub reactions: Vec<Reaction>,
    /// From federate to federate: one for each connected pair of ports.
    pub connections: Vec<Connection>,
}

/// Who advances tags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Coordination {
    /// The run-time infrastructure (RTI) grants them.
    #[default]
    Centralized,
    /// Each federate itself, when its clock has passed the tag by its `@maxwait`.
    Decentralized,
}

/// A federate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Federate {
    /// Its name: that of the instance, with `_` and the index for members of a bank.
    pub name: String,
    /// The station that executes it, if one is known.
    pub station: Option<String>,
    /// How long it waits for inputs at a tag; none: the model does not say.
    pub maxwait: Option<MaxWait>,
    /// Where the instance is, in the model.
    pub origin: Origin,
}

/// How long a federate waits, after its clock reads a tag, until it takes inputs that it does not
/// know as absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MaxWait {
    /// That long.
    For(Span),
    /// Until they are known.
    Forever,
}

/// A reaction of one instance of a reactor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reaction {
    /// Its federate.
    pub federate: FederateId,
    /// The instance's path below the federate and the reaction's name or number, from 1:
    /// `pid.filter.reaction_2`.
    pub name: String,
    /// How long it executes; none: not known.
    pub execution: Option<Interval>,
    /// Its deadline: from the tag to the latest start of the body.
    pub deadline: Option<Span>,
    /// What it executes after.
    pub causes: Vec<Trigger>,
    /// Where it is, in the model.
    pub origin: Origin,
}

/// What makes a reaction execute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// The start of the federation.
    Startup,
    /// Its end.
    Shutdown,
    /// A timer, from the start of the federation.
    Timer {
        /// The first tag.
        offset: Span,
        /// Between two; none: there is one only.
        period: Option<Span>,
    },
    /// Another reaction of the federate, through a port or an action.
    Reaction {
        /// Which.
        from: ReactionId,
        /// By how much its tag is later.
        delay: TagDelay,
        /// Whether the tag is that of the clock when the other schedules it, and `delay` after
        /// that: a physical action, or a physical connection.
        physical: bool,
    },
    /// A physical action that no reaction of the model schedules.
    Sporadic {
        /// Its name, qualified.
        action: String,
        /// At least that long between two; none: not known.
        interval: Option<Span>,
    },
    /// A message of another federate.
    Message(ConnectionId),
}

/// By how much a tag is later than the one that caused it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TagDelay {
    /// The same tag.
    None,
    /// The next microstep, at the same time: `after 0`, or a logical action without delay.
    Microstep,
    /// Later by this time, which is more than zero.
    Time(Span),
}

impl TagDelay {
    /// The difference of the tags' times.
    pub const fn time(self) -> Span {
        match self {
            Self::None | Self::Microstep => Span::ZERO,
            Self::Time(span) => span,
        }
    }
}

/// A tag: logical time, and the microstep there. Tags are ordered by time, then microstep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag {
    /// Since the start of the federation.
    pub time: Span,
    /// How manieth tag of that time it is, from 0.
    pub microstep: u32,
}

impl Tag {
    /// The first tag of a time.
    pub const fn at(time: Span) -> Self {
        Self { time, microstep: 0 }
    }

    /// The tag that is later by `delay`. Sums beyond the range of times stay at its end, and so do
    /// microsteps.
    pub const fn after(self, delay: TagDelay) -> Self {
        match delay {
            TagDelay::None => self,
            TagDelay::Microstep => {
                Self { time: self.time, microstep: self.microstep.saturating_add(1) }
            }
            TagDelay::Time(span) => {
                Self::at(Span::from_ns(self.time.as_ns().saturating_add(span.as_ns())))
            }
        }
    }
}

/// A connection from a port of one federate to a port of another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connection {
    /// Name of its channel: unique, of the characters that names of channels have.
    pub name: String,
    /// The writer.
    pub from: FederateId,
    /// Its port below the federate, with the index of a multiport: `out[1]`.
    pub from_port: String,
    /// The reader, another federate.
    pub to: FederateId,
    /// Its port.
    pub to_port: String,
    /// Reactions that set the port: each by itself, or through ports that forward it.
    pub writers: Vec<ReactionId>,
    /// The delay in tags of `after`.
    pub after: TagDelay,
    /// Whether it is physical (`~>`): the tag is that of the reader's clock at arrival.
    pub physical: bool,
    /// `@absent_after`: how long the reader waits, after its clock reads a tag, until it takes
    /// this input as absent.
    pub absent_after: Option<MaxWait>,
    /// Type of the values, as the model writes it.
    pub payload: String,
    /// Octets of a value; none: not known.
    pub octets: Option<u32>,
    /// The least mean time between two messages; none: not known.
    pub interval: Option<Span>,
    /// Where the connection is, in the model.
    pub origin: Origin,
}
