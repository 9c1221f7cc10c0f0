//! What the figures mean: for waits of the model, deadlines, and hosts.

use super::solve::Solved;
use super::{
    ConnectionBounds, Environment, FederateBounds, Figure, Ns, ReactionBounds, Unknown, ns, span,
};
use onbeat_model::federation::{FederateId, Federation, MaxWait};
use onbeat_model::time::Span;

/// What to think of a wait of the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WaitVerdict {
    /// The federate has no logical connection to wait for.
    NoInputs,
    /// The model states none.
    Unstated,
    /// No message is tardy.
    Safe {
        /// How much shorter it might be.
        spare: Span,
    },
    /// Messages may be tardy.
    Unsafe {
        /// How much longer it must be.
        by: Span,
    },
    /// No message is ever tardy, but what never comes is waited for without end.
    Forever,
    /// How long it must be is not known.
    Unknown(Unknown),
}

/// Whether a reaction begins by its deadline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deadline {
    /// Always.
    Met {
        /// How much shorter it might be.
        spare: Span,
    },
    /// Perhaps not.
    Missed {
        /// By how much.
        by: Span,
    },
    /// It is not known.
    Unknown(Unknown),
}

/// What the federates of a station need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostLoad {
    /// Its name; none: of the federates without one.
    pub station: Option<String>,
    /// Its processors; none: one for each federate.
    pub cores: Option<u16>,
    /// Its federates.
    pub federates: Vec<FederateId>,
    /// What they need of one processor, in parts per million, rounded up.
    pub utilisation_ppm: Figure<u64>,
    /// Whether all its reactions have a latest end and begin by their deadlines; false: some may
    /// not.
    pub is_schedulable: Figure<bool>,
}

fn clone<T: Clone>(bound: &Figure<T>) -> Figure<T> {
    bound.clone()
}

fn spanned(bound: &Figure<Ns>) -> Figure<Span> {
    span(clone(bound)?)
}

fn ppm(parts: Ns) -> u64 {
    u64::try_from(parts).unwrap_or(u64::MAX)
}

pub(super) fn federates(
    federation: &Federation,
    solved: &Solved,
    stated: &Solved,
) -> Vec<FederateBounds> {
    let bounds = |at: usize| {
        let federate = &federation.federates[at];
        FederateBounds {
            maxwait: spanned(&solved.needs[at]),
            stated: federate.maxwait,
            verdict: verdict(federation, stated, at),
            utilisation_ppm: solved.works[at].as_ref().map_err(Clone::clone).map(|w| ppm(w.ppm())),
        }
    };
    (0..federation.federates.len()).map(bounds).collect()
}

fn verdict(federation: &Federation, stated: &Solved, at: usize) -> WaitVerdict {
    let mut inputs = federation.connections.iter();
    if !inputs.any(|connection| connection.to.index() == at && !connection.physical) {
        return WaitVerdict::NoInputs;
    }
    let wait = match federation.federates[at].maxwait {
        None => return WaitVerdict::Unstated,
        Some(MaxWait::Forever) => return WaitVerdict::Forever,
        Some(MaxWait::For(wait)) => ns(wait),
    };
    let need = match spanned(&stated.needs[at]) {
        Ok(need) => ns(need),
        Err(unknown) => return WaitVerdict::Unknown(unknown),
    };
    // Both are within the range of times, of which none is negative.
    let difference = span((wait - need).abs()).unwrap_or(Span::MAX);
    match stated.is_unsafe[at] {
        true => WaitVerdict::Unsafe { by: difference },
        false if wait < need => WaitVerdict::Safe { spare: Span::ZERO },
        false => WaitVerdict::Safe { spare: difference },
    }
}

pub(super) fn reactions(federation: &Federation, solved: &Solved) -> Vec<ReactionBounds> {
    let bounds = |at: usize| {
        let times = &solved.reactions[at];
        let reaction = &federation.reactions[at];
        let latest = || Ok(clone(&times.finish_max)? - clone(&times.worst)?);
        let error = &solved.errors[reaction.federate.index()];
        let deadline = |deadline: Span| {
            // What its clock reads at its latest start.
            let late = || Ok(latest()? + clone(error)? - ns(deadline));
            match late().and_then(|late: Ns| Ok((late, span(late.abs())?))) {
                Ok((late, by)) if late > 0 => Deadline::Missed { by },
                Ok((_, spare)) => Deadline::Met { spare },
                Err(unknown) => Deadline::Unknown(unknown),
            }
        };
        ReactionBounds {
            release_min: spanned(&times.start_min),
            release_max: spanned(&latest()),
            finish_min: spanned(&clone(&times.start_min).map(|start| start + times.best)),
            finish_max: spanned(&times.finish_max),
            deadline: reaction.deadline.map(deadline),
        }
    };
    (0..federation.reactions.len()).map(bounds).collect()
}

pub(super) fn connections(federation: &Federation, solved: &Solved) -> Vec<ConnectionBounds> {
    let bounds = |at: usize| {
        let times = &solved.connections[at];
        let connection = &federation.connections[at];
        ConnectionBounds {
            sent_min: spanned(&times.sent_min),
            sent_max: spanned(&times.sent_max),
            arrival_max: spanned(&times.arrival),
            absent_after: (!connection.physical).then(|| absent_after(federation, solved, at)),
            is_met: times.is_met,
        }
    };
    (0..federation.connections.len()).map(bounds).collect()
}

fn absent_after(federation: &Federation, solved: &Solved, at: usize) -> Figure<Span> {
    let times = &solved.connections[at];
    let reader = federation.connections[at].to.index();
    // A longer wait than it needs would make what the reader sends later than was counted.
    let stated = match federation.federates[reader].maxwait {
        Some(MaxWait::For(wait)) => ns(wait).min(clone(&solved.needs[reader])?),
        _ => 0,
    };
    let more = (clone(&times.arrival)? - stated).max(0);
    if more > 0 && !times.is_met {
        let name = &federation.federates[reader].name;
        let why = format!("`{name}` has no timer at each tag of its messages");
        return Err(Unknown(why));
    }
    span(more)
}

pub(super) fn hosts(
    federation: &Federation,
    environment: &Environment,
    solved: &Solved,
) -> Vec<HostLoad> {
    let stations = environment.stations.iter().map(|station| (Some(&station.name), station.cores));
    let is_known = |name: &str| environment.stations.iter().any(|station| station.name == name);
    let hosts = stations.chain([(None, None)]).filter_map(|(name, cores)| {
        let is_there = |at: &usize| {
            let station = federation.federates[*at].station.as_ref();
            station.filter(|station| is_known(station)) == name
        };
        let federates: Vec<usize> = (0..federation.federates.len()).filter(is_there).collect();
        (!federates.is_empty()).then(|| host(federation, solved, name, cores, &federates))
    });
    hosts.collect()
}

fn host(
    federation: &Federation,
    solved: &Solved,
    name: Option<&String>,
    cores: Option<u16>,
    federates: &[usize],
) -> HostLoad {
    let mut total = Ok(0);
    let mut is_overloaded = false;
    for at in federates {
        let own = solved.works[*at].as_ref().map(|work| work.ppm());
        is_overloaded |= own.as_ref().is_ok_and(|own| *own > 1_000_000);
        total = match (total, own) {
            (Ok(total), Ok(own)) => Ok(total + own),
            (Err(unknown), _) => Err(unknown),
            (Ok(_), Err(unknown)) => Err(unknown.clone()),
        };
    }
    let limit = cores.map(|cores| Ns::from(cores) * 1_000_000);
    is_overloaded |= total.as_ref().is_ok_and(|total| limit.is_some_and(|limit| *total > limit));
    let bounds = reactions(federation, solved);
    let own = federation.reactions.iter().zip(&bounds);
    let own = own.filter(|(reaction, _)| federates.contains(&reaction.federate.index()));
    let mut is_schedulable = Ok(!is_overloaded);
    for (_, bounds) in own {
        let verdict = match (&bounds.finish_max, &bounds.deadline) {
            (_, Some(Deadline::Missed { .. })) => Ok(false),
            (Err(unknown), _) | (_, Some(Deadline::Unknown(unknown))) => Err(unknown.clone()),
            _ => Ok(true),
        };
        // What is certainly not schedulable stays so, whatever else is not known.
        is_schedulable = match (is_schedulable, verdict) {
            (Ok(false), _) | (_, Ok(false)) => Ok(false),
            (Err(unknown), _) | (Ok(true), Err(unknown)) => Err(unknown),
            (Ok(true), Ok(true)) => Ok(true),
        };
    }
    HostLoad {
        station: name.cloned(),
        cores,
        federates: federates.iter().map(|at| FederateId(*at as u32)).collect(),
        utilisation_ppm: total.map(ppm),
        is_schedulable,
    }
}
