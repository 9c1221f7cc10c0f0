//! Reservations that hosts and bridges made by protocol in a run or a simulation, and what becomes
//! of promises when not all were there.

use onbeat_model::reservation::{ListenerReservation, ReservationObserved, ReservationsObserved};
use onbeat_model::system::{NodeId, System};
use onbeat_model::time::{NetTime, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the reservations of a run went that hosts and bridges made by protocol (MSRP).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReservationsResult {
    /// Network time at which programs, and the sources of modelled channels, began: all was
    /// decided, or the wait was over. Null: not before the end.
    pub begun_ns: Option<i64>,
    /// The channels that ask for a reservation, in the order of the description.
    pub channels: Vec<ReservationResult>,
}

/// How the reservation of one channel went. It was announced at network time zero.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReservationResult {
    /// The channel's name.
    pub channel: String,
    /// How it stood at its talker at the end: `advertised`, `ready`, `ready-failed` or
    /// `asking-failed`.
    pub status: String,
    /// From the Talker Advertise until all listeners could first get its frames; null if they never
    /// could at once.
    pub ready_ns: Option<i64>,
    /// The longest that this may take by the protocol's timers, if no frame is lost and everything
    /// fits; null where that is not known.
    pub worst_case_ns: Option<i64>,
    /// Whether all listeners had it at the end.
    pub complete: bool,
    /// How often some port gave it up after all listeners had it.
    pub lost: u32,
    /// In the order of the description.
    pub listeners: Vec<ListenerReservationResult>,
}

/// How a channel's reservation went at one listener.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ListenerReservationResult {
    /// The host.
    pub host: String,
    /// How it stood at the end: `no-talker`, `advertised`, `ready` or `failed`.
    pub status: String,
    /// Why it failed: the code of 802.1Q-2018 Table 46-15.
    pub failure_code: Option<u8>,
    /// The same for a person.
    pub failure: Option<String>,
    /// The bridge, or the host, that says so.
    pub failed_at: Option<String>,
    /// From the Talker Advertise until the channel's frames could first get there.
    pub ready_ns: Option<i64>,
}

/// What was seen of the reservations of a system.
pub(crate) fn results(system: &System, observed: &ReservationsObserved) -> ReservationsResult {
    ReservationsResult {
        begun_ns: observed.begun.map(|at| at.as_ns()),
        channels: observed.channels.iter().map(|one| result(system, one)).collect(),
    }
}

fn result(system: &System, observed: &ReservationObserved) -> ReservationResult {
    let channel = system.channel(observed.channel);
    let listener = |(host, (status, ready)): (&NodeId, &(ListenerReservation, Option<Span>))| {
        let failed = match status {
            ListenerReservation::Failed(code, node) => Some((*code, *node)),
            _ => None,
        };
        ListenerReservationResult {
            host: system.node(*host).name.clone(),
            status: status.as_str().to_owned(),
            failure_code: failed.map(|(code, _)| code.0),
            failure: failed.map(|(code, _)| code.meaning().to_owned()),
            failed_at: failed.and_then(|(_, node)| Some(system.node(node?).name.clone())),
            ready_ns: ready.map(Span::as_ns),
        }
    };
    ReservationResult {
        channel: channel.name.clone(),
        status: observed.status.as_str().to_owned(),
        ready_ns: observed.ready().map(Span::as_ns),
        worst_case_ns: observed.worst_case.map(Span::as_ns),
        complete: observed.is_complete,
        lost: observed.lost,
        listeners: channel.listeners.iter().zip(&observed.listeners).map(listener).collect(),
    }
}

/// Why nothing is judged, if that is so: the plan counts with the reservations of all channels from
/// the beginning of programs on.
pub(crate) fn premise_broken(
    system: &System,
    observed: Option<&ReservationsObserved>,
) -> Option<String> {
    let observed = observed.filter(|observed| !observed.are_complete())?;
    let begun = observed.begun.unwrap_or(NetTime::MAX);
    let lacking = observed.channels.iter().find(|channel| !channel.held_since(begun));
    let name = lacking.map_or("", |lacking| &system.channel(lacking.channel).name);
    Some(format!("channel `{name}` did not have its reservation all the time"))
}

/// Whether it is of a system.
pub(crate) fn fit(system: &System, observed: &ReservationsObserved) -> bool {
    observed.channels.iter().all(|one| {
        let channel = system.channels.get(one.channel.index());
        let nodes = one.listeners.iter().filter_map(|(status, _)| match status {
            ListenerReservation::Failed(_, node) => *node,
            _ => None,
        });
        channel.is_some_and(|channel| channel.listeners.len() == one.listeners.len())
            && nodes.into_iter().all(|node| node.index() < system.nodes.len())
    })
}
