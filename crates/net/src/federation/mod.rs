//! A federation of Lingua Franca in virtual time: each federate is the state machine of
//! `onbeat_runtime::federate`, on a host whose clock errs and whose processors it may share, and
//! its messages are frames of the engine, beside all other traffic of the description.
//!
//! # Model
//! A reaction executes without its code: it takes a time and sets its ports. A federate that waits
//! until its clock reads something continues after the host's wake-up delay. On a host with fewer
//! processors than federates those of the greatest rank execute. Messages that come at an instant
//! come before whatever ends at that instant.
//!
//! What a federate sends on a channel is the channel's message: the header of `federate::wire`, the
//! value, and zeros up to its size. Before the channel's declared rate allows it, it waits at the
//! sender, as in `onbeat_write`, and counts as *held*; the federate continues. The reader has it as
//! its [`Receipt`] says, in order. A message whose frame does not come is *lost*.
//!
//! Sporadic actions happen at their least intervals or at random ones. [`Behaviour`] says which of
//! all this is at its extreme. Each source of randomness has its own stream of the seed.
//!
//! # Times
//! Extents of reactions, of sendings and of chains are in true time, relative to tags: a tag's time
//! is that since the start of the federation. Arrivals are relative to the tag of the message and
//! by the reader's clock. [`observed`] has one definition of each figure.

mod chain;
pub mod observed;
mod outgoing;
mod processors;
mod run;

pub use observed::FederationObserved;
pub use run::run;

use onbeat_model::federation::{ConnectionId, FederateId, Federation, ReactionId, Tag};
use onbeat_model::plan::Plan;
use onbeat_model::system::{ChannelId, System};
use onbeat_model::time::{NetTime, Span};

/// What is executed, and where.
#[derive(Clone, Copy, Debug)]
pub struct Skeleton<'a> {
    /// The federation, with the waits that it is to have. A federate without one waits for ever.
    pub federation: &'a Federation,
    /// The system whose hosts are its stations.
    pub system: &'a System,
    /// Its plan.
    pub plan: &'a Plan,
    /// Per connection.
    pub transfers: &'a [Transfer],
}

/// How a connection's messages come to the reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Over which channel, which no other connection has, between the hosts of both federates;
    /// none: they are at the reader's host at once.
    pub channel: Option<ChannelId>,
    /// When the reader has those that are there.
    pub receipt: Receipt,
}

/// When a reader has a message that is at its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receipt {
    /// At once.
    AtOnce,
    /// A wake-up delay after its clock reads the capture time and this; at once if that is past.
    Fixed(Span),
    /// When so much has passed since the sending; at once if that is past.
    Within {
        /// At least.
        min: Span,
        /// At most.
        max: Span,
    },
}

/// How a federation is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Where all randomness comes from, together with the number of the run.
    pub seed: u64,
    /// The time of the last tag.
    pub duration: Span,
    /// From the network's epoch to the start of the federation, at least.
    pub start: Span,
    /// How much later it may start.
    pub start_spread: Span,
    /// By how much clocks err.
    pub clocks: Clocks,
    /// What is at its extreme.
    pub behaviour: Behaviour,
    /// Whether handlers of deadlines set what the bodies would.
    pub handlers_set: bool,
    /// When it ends at the latest.
    pub limits: RunLimits,
}

/// By how much the clocks of all nodes err, unless a protocol steers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clocks {
    /// As the description says.
    Described,
    /// Each for the whole run by as much as the description's may up to this instant, ahead or
    /// behind.
    Greatest(NetTime),
    /// Each for the whole run by no more than that.
    Drawn(NetTime),
}

/// What chance decides in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Behaviour {
    /// Whether reactions and wake-ups take as long as they can, and processors are given to the
    /// same federates first; if not, each time is drawn.
    pub is_worst: bool,
    /// Whether messages that need no channel take as long as they can.
    pub is_slow: bool,
    /// Whether sporadic actions come as often as they can; if not, at up to twice the intervals.
    pub is_dense: bool,
    /// How often a reaction sets its ports, in per cent.
    pub sets_percent: u8,
    /// The longest execution of a reaction whose longest one is not known.
    pub unknown_execution: Span,
    /// The least interval of an action of which none is known.
    pub unknown_interval: Span,
}

/// How often an action happens at most whose interval is not known.
const UNKNOWN_INTERVAL: Span = Span::from_ms(10);
/// How often reactions set their ports in runs in which they need not.
const SETS_PERCENT: u8 = 70;

impl Behaviour {
    /// That of a run among several: all at its extreme in those of even numbers, and all drawn in
    /// the others, where reactions set nothing in three of ten executions.
    pub fn of(number: u32) -> Self {
        let is_worst = number.is_multiple_of(2);
        Self {
            is_worst,
            is_slow: is_worst,
            is_dense: is_worst,
            sets_percent: if is_worst { 100 } else { SETS_PERCENT },
            unknown_execution: Span::ZERO,
            unknown_interval: UNKNOWN_INTERVAL,
        }
    }
}

/// When a run ends that would continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunLimits {
    /// How long after the last tag federates may still execute.
    pub drain: Span,
    /// How much may happen, in all.
    pub events: u64,
    /// How much may happen at one instant: some federations repeat at one time without end.
    pub at_once: u64,
}

impl Default for RunLimits {
    fn default() -> Self {
        Self { drain: Span::from_s(10), events: 1 << 28, at_once: 1 << 20 }
    }
}

/// Something that happens in a run, for who counts by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A federate begins a tag.
    Began {
        /// Which.
        federate: FederateId,
        /// The tag.
        tag: Tag,
    },
    /// A reaction begins to execute.
    Executes {
        /// Which.
        reaction: ReactionId,
        /// At which tag.
        tag: Tag,
        /// Whether it is the handler of its deadline.
        handler: bool,
    },
    /// A reaction is done.
    Executed {
        /// Which.
        reaction: ReactionId,
        /// At which tag.
        tag: Tag,
    },
    /// A federate sends a message.
    Sent {
        /// On which connection.
        connection: ConnectionId,
        /// The tag at which it executes.
        at: Tag,
        /// The tag of the message.
        tag: Tag,
    },
    /// A federate has a message.
    Received {
        /// On which connection.
        connection: ConnectionId,
        /// The tag of the message.
        tag: Tag,
        /// What its clock reads, since the start.
        reading: Span,
    },
}

/// Looks on.
pub trait Watch {
    /// Told the time now and then; whether to continue.
    fn progress(&mut self, _now: NetTime) -> bool {
        true
    }

    /// Told all that happens.
    fn event(&mut self, _now: NetTime, _event: Event) {}
}

/// Watches nothing.
impl Watch for () {}
