//! Bounds of a federation: when its reactions execute and what its federates send, relative to
//! tags; how long each federate must wait for its inputs; how long each chain takes.
//! `docs/lingua-franca.md` ("Bounds and maxwait") has the formulas and their assumptions.
//!
//! ```text
//! sources → streams of tags → backlog of each federate → when it sends → how long others wait
//!             ↑                                             │
//!             └── tags that clocks decide (physical) ───────┘
//! ```
//!
//! What is not known is [`Unknown`], with the reason, and so is all that depends on it.

mod chain;
mod demand;
mod environment;
mod solve;
mod stream;
mod verdict;
mod wait;
mod window;

use onbeat_model::federation::{ConnectionId, FederateId, Federation, MaxWait, ReactionId};
use onbeat_model::time::Span;
use std::fmt;

pub use chain::{CHAINS_MAX, ReactionChain};
pub use verdict::{Deadline, HostLoad, WaitVerdict};
pub use wait::WaitCycle;

/// Nanoseconds where sums may exceed the range of [`Span`].
type Ns = i128;

/// A figure, or why it is not known.
pub type Figure<T> = Result<T, Unknown>;

/// Why a figure is not known, as a clause: `client.r has no execution time`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown(pub String);

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a federation executes on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    /// The stations that federates name.
    pub stations: Vec<Station>,
    /// Per connection: what its channel takes; none: not known.
    pub deliveries: Vec<Option<Delivery>>,
    /// Whether the handler of a deadline sets what the body would. If not, nothing is sent later
    /// than deadline and execution time.
    pub handlers_set: bool,
}

/// A station.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Station {
    /// Its name.
    pub name: String,
    /// How far its clock is from true time at most; none: not known.
    pub clock_error: Option<Span>,
    /// Its processors; none: as many as it has federates.
    pub cores: Option<u16>,
    /// From when a federate's wait ends until it continues, at most.
    pub wakeup: Span,
}

/// From when a message is sent until it is at the reader's station, whose wake-up may follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// It takes between these, in true time.
    Between {
        /// At least.
        min: Span,
        /// At most.
        max: Span,
    },
    /// It is read when the reader's clock reads what the writer's read, and this.
    Fixed(Span),
}

/// How long federates wait for their inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waits {
    /// As long as they must, and not longer: [`FederateBounds::maxwait`]. No connection has an
    /// `@absent_after` then.
    Computed,
    /// As the model says; where it does not, as long as they must.
    Model,
}

/// What holds for a federation. Times of federates and reactions are in true time, relative to
/// the tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Analysis {
    /// Per federate.
    pub federates: Vec<FederateBounds>,
    /// Per reaction.
    pub reactions: Vec<ReactionBounds>,
    /// Per connection.
    pub connections: Vec<ConnectionBounds>,
    /// The chains.
    pub chains: Vec<ReactionChain>,
    /// Whether there are more chains than [`CHAINS_MAX`], or than were looked for.
    pub is_cut: bool,
    /// Cycles of federates that wait for each other, for ever longer.
    pub cycles: Vec<WaitCycle>,
    /// Stations with federates, in order, and last the federates without a station.
    pub hosts: Vec<HostLoad>,
}

/// What holds for a federate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FederateBounds {
    /// The smallest `@maxwait` without tardy messages: the latest arrival at any of its logical
    /// connections relative to the tag, by its clock, or zero.
    pub maxwait: Figure<Span>,
    /// That the model says; none: it says nothing.
    pub stated: Option<MaxWait>,
    /// What to think of that.
    pub verdict: WaitVerdict,
    /// The share of a processor that it needs at most, in parts per million, rounded up.
    pub utilisation_ppm: Figure<u64>,
}

/// What holds for a reaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReactionBounds {
    /// Its earliest start.
    pub release_min: Figure<Span>,
    /// Its latest start.
    pub release_max: Figure<Span>,
    /// Its earliest end.
    pub finish_min: Figure<Span>,
    /// Its latest end.
    pub finish_max: Figure<Span>,
    /// Whether it meets its deadline, if it has one.
    pub deadline: Option<Deadline>,
}

/// What holds for a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionBounds {
    /// The earliest sending, relative to the tag at which the writers execute.
    pub sent_min: Figure<Span>,
    /// The latest.
    pub sent_max: Figure<Span>,
    /// The latest arrival by the reader's clock, relative to the tag of the message. Of no meaning
    /// on a physical connection, whose messages have the tag of their arrival.
    pub arrival_max: Figure<Span>,
    /// The smallest `@absent_after` that does for this connection what its reader's `@maxwait` in
    /// the model (zero without one) does not; none on a physical connection.
    pub absent_after: Option<Figure<Span>>,
    /// Whether its reader has an event of its own at each tag of its messages, so that an
    /// `@absent_after` makes it wait for them.
    pub is_met: bool,
}

/// The bounds of a federation in its environment.
///
/// They assume that no message is lost or overtakes another on its connection, that execution
/// times and the least intervals of sporadic actions are as said, and that clocks never err by
/// more. What a federate with a shorter wait than it needs receives may be tardy: from there on
/// nothing is known.
///
/// # Panics
/// When the federation refers to what it does not have.
pub fn analyse(federation: &Federation, environment: &Environment, waits: Waits) -> Analysis {
    let solved = solve::solve(federation, environment, waits);
    let stated = match waits {
        Waits::Computed => solve::solve(federation, environment, Waits::Model),
        Waits::Model => solved.clone(),
    };
    let (chains, is_cut) = chain::chains(federation, &solved);
    Analysis {
        federates: verdict::federates(federation, &solved, &stated),
        reactions: verdict::reactions(federation, &solved),
        connections: verdict::connections(federation, &solved),
        chains,
        is_cut,
        cycles: solved.cycles.clone(),
        hosts: verdict::hosts(federation, environment, &solved),
    }
}

/// `federate.reaction`, for messages.
pub(crate) fn name(federation: &Federation, reaction: ReactionId) -> String {
    let reaction = &federation.reactions[reaction.index()];
    let federate = &federation.federates[reaction.federate.index()].name;
    format!("`{federate}.{}`", reaction.name)
}

fn federate_name(federation: &Federation, federate: FederateId) -> &str {
    &federation.federates[federate.index()].name
}

fn connection_name(federation: &Federation, connection: ConnectionId) -> &str {
    &federation.connections[connection.index()].name
}

fn ns(span: Span) -> Ns {
    span.as_ns().into()
}

/// # Errors
/// When it is out of range.
fn span(time: Ns) -> Figure<Span> {
    let time = i64::try_from(time).map_err(|_| Unknown("it exceeds 292 years".to_owned()))?;
    Ok(Span::from_ns(time))
}
