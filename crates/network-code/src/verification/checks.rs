//! What is decided station by station.

use super::Proof;
use super::findings::{FindingWeight, NetworkProperty, ProofCounterexample, ProofFinding, code};
use super::network::NetworkModel;
use super::paths::{HazardAt, LocalHazard, RoundPaths};
use super::positions::Positions;
use super::replay::{Replay, ReplayIncident, TrapKind};
use super::rounds::StationRole;
use super::witness::{ReplayChoices, decisions, witness};
use onbeat_model::codes::verification as codes;
use std::collections::BTreeMap;

/// Rounds of which the loss is replayed.
const LOST_ROUNDS_MAX: u32 = 4;

/// That a property is not decided.
pub(super) fn doubt(property: NetworkProperty, message: String) -> ProofFinding {
    ProofFinding {
        code: codes::UNDECIDED,
        property,
        weight: FindingWeight::Doubt,
        station: None,
        address: None,
        line: 0,
        message,
        counterexample: None,
    }
}

/// The same of an instruction.
pub(super) fn doubt_at(
    network: &NetworkModel,
    property: NetworkProperty,
    station: usize,
    address: usize,
    message: String,
) -> ProofFinding {
    let program = &network.stations[station].program;
    let line = program.lines.get(address).copied().unwrap_or(0);
    let place = (Some(station), Some(address));
    ProofFinding { station: place.0, address: place.1, line, ..doubt(property, message) }
}

/// That a property is violated at an instruction.
pub(super) fn violation(
    network: &NetworkModel,
    property: NetworkProperty,
    station: usize,
    address: usize,
    message: String,
    counterexample: Option<Box<ProofCounterexample>>,
) -> ProofFinding {
    ProofFinding {
        code: code(property),
        weight: FindingWeight::Violation,
        counterexample,
        ..doubt_at(network, property, station, address, message)
    }
}

/// That a program cannot be followed.
pub(super) fn well_formed(
    network: &NetworkModel,
    station: usize,
    address: usize,
    message: &str,
) -> ProofFinding {
    let name = &network.stations[station].program.station;
    let message = format!("`{name}`, address {address}: {message}");
    violation(network, NetworkProperty::WellFormed, station, address, message, None)
}

/// What a hazard violates, and in words.
fn described(
    network: &NetworkModel,
    station: usize,
    kind: LocalHazard,
) -> (NetworkProperty, String) {
    use NetworkProperty as P;
    let name = |message| {
        let format = network.stations[station].program.message(message);
        format.map_or(String::new(), |format| format.name.clone())
    };
    match kind {
        LocalHazard::NoFuture => (P::WellFormed, "`halt` without a countdown".into()),
        LocalHazard::Replaced => (P::WellFormed, "`future` replaces a countdown".into()),
        LocalHazard::CountdownAtSync => {
            (P::WellFormed, "a countdown runs while `sync slave` waits".into())
        }
        LocalHazard::NothingCreated => (P::BufferValidity, "`send` of an empty send buffer".into()),
        LocalHazard::Length => {
            (P::BufferValidity, "the send buffer has another length than the message".into())
        }
        LocalHazard::Unwritten => {
            (P::BufferValidity, "`create` of a buffer that no frame was copied into".into())
        }
        LocalHazard::Stalled => {
            (P::BufferValidity, "`create` waits for the wire beyond its countdown".into())
        }
        LocalHazard::Overrun => (P::Schedulability, "the countdown has ended before `halt`".into()),
        LocalHazard::Unsynchronised => (P::Synchronisation, "`send` before the first round".into()),
        LocalHazard::Overwritten { message, .. } => {
            let name = name(message);
            (P::Reception, format!("a frame of `{name}` is overwritten before it is received"))
        }
        LocalHazard::Empty => (P::Reception, "`receive` may find no frame".into()),
        LocalHazard::TwoRoles => {
            (P::Synchronisation, "the station executes both kinds of `sync`".into())
        }
    }
}

/// Whether a replay shows a hazard.
fn shows(kind: LocalHazard, station: usize, address: usize, seen: &ReplayIncident) -> bool {
    let place = (station, address);
    match (kind, *seen) {
        (LocalHazard::NoFuture, ReplayIncident::Trapped { station, address, trap }) => {
            (station, address) == place && trap == TrapKind::NoFuture
        }
        (LocalHazard::NothingCreated, ReplayIncident::Trapped { station, address, trap }) => {
            (station, address) == place && trap == TrapKind::NothingCreated
        }
        (LocalHazard::Length, ReplayIncident::Trapped { station, address, trap }) => {
            (station, address) == place && trap == TrapKind::Length
        }
        (LocalHazard::Replaced, ReplayIncident::Replaced { station, address })
        | (LocalHazard::Unwritten, ReplayIncident::Unwritten { station, address })
        | (LocalHazard::Stalled, ReplayIncident::Stalled { station, address })
        | (LocalHazard::Overrun, ReplayIncident::Overrun { station, address })
        | (LocalHazard::Unsynchronised, ReplayIncident::Unsynchronised { station, address }) => {
            (station, address) == place
        }
        (
            LocalHazard::Overwritten { message, .. },
            ReplayIncident::Lost { station: at, message: of },
        ) => (at, of) == (station, message),
        _ => false,
    }
}

impl<'n> Proof<'n> {
    pub(super) fn name(&self, station: usize) -> &str {
        &self.network.stations[station].program.station
    }

    /// Countdowns, buffers and receptions.
    pub(super) fn local(&mut self) {
        let mut found = Vec::new();
        for station in 0..self.rounds.stations.len() {
            // The same hazard in many rounds is told once.
            let mut seen: BTreeMap<(LocalHazard, usize), ()> = BTreeMap::new();
            let of = &self.rounds.stations[station];
            let rounds = std::iter::once((0, &of.start)).chain(of.rounds.items.iter().enumerate());
            for (round, paths) in rounds {
                for hazard in &paths.hazards {
                    let kind = match hazard.kind {
                        LocalHazard::Overwritten { message, .. } => {
                            LocalHazard::Overwritten { message, by: 0, sender: (0, 0) }
                        }
                        kind => kind,
                    };
                    let at = if kind == hazard.kind { hazard.at } else { 0 };
                    if seen.insert((kind, at), ()).is_none() {
                        found.push(self.hazard(station, round as u32, hazard));
                    }
                }
            }
        }
        self.findings.extend(found);
        for (station, message) in self.rounds.unknown.clone() {
            let format = self.network.stations[station].program.message(message);
            let name = format.map_or("?", |format| &format.name);
            let station = self.name(station);
            let message = format!("when frames of `{name}` come to `{station}` is not known");
            self.findings.push(doubt(NetworkProperty::Reception, message));
        }
    }

    fn hazard(&self, station: usize, round: u32, hazard: &HazardAt) -> ProofFinding {
        let (property, text) = described(self.network, station, hazard.kind);
        let (name, at) = (self.name(station), hazard.at);
        let message = format!("`{name}`, address {at}, round {round}: {text}");
        if hazard.kind == LocalHazard::Empty {
            let (code, weight) = (codes::EMPTY, FindingWeight::Note);
            let doubt = doubt_at(self.network, property, station, at, message);
            return ProofFinding { code, weight, ..doubt };
        }
        let is_shown =
            |_: &Replay, incident: &ReplayIncident| shows(hazard.kind, station, at, incident);
        for choices in self.attempts(station, round, hazard) {
            if let Some(shown) = witness(self.network, choices, round, is_shown) {
                return violation(self.network, property, station, at, message, Some(shown));
            }
        }
        let message = format!("{message}, perhaps: no execution shows it");
        doubt_at(self.network, property, station, at, message)
    }

    /// Executions in which a hazard may show: with the decisions that lead there, and frames early
    /// or late.
    fn attempts(&self, station: usize, round: u32, hazard: &HazardAt) -> Vec<ReplayChoices> {
        let mut choices = ReplayChoices::nominal(self.network);
        let of = |station: usize, node| decisions(&self.rounds.stations[station].nodes, node);
        choices.guards[station] = of(station, hazard.node);
        let mut sender = None;
        if let LocalHazard::Overwritten { sender: (by, node), .. } = hazard.kind {
            // Windows are of the pass before: its nodes are those of the same decisions.
            sender = Some(by);
            if (node as usize) < self.rounds.stations[by].nodes.len() {
                choices.guards[by] = of(by, node);
            }
        }
        let tending = |own: u64, others: u64| {
            let mut choices = choices.clone();
            for other in 0..self.network.stations.len() {
                let is_own = other == station && sender != Some(other);
                let per_mille = if is_own { own } else { others };
                super::collision::tend(self.network, &mut choices, other, per_mille);
            }
            choices
        };
        let (late, early) = (tending(0, 1_000), tending(1_000, 0));
        // From the round of the hazard on it may be the other way round.
        let (late_first, early_first) = (late.turning(&early, round), early.turning(&late, round));
        let all = [choices, late_first, early_first, late, early];
        let both = |choices: ReplayChoices| {
            [0, 1, 2, 3].map(|salt| ReplayChoices { salt, ..choices.clone() })
        };
        all.into_iter().flat_map(both).collect()
    }

    /// Exactly one master: its rounds, if so.
    pub(super) fn roles(&mut self) -> Option<Positions<'n>> {
        let network = self.network;
        let roles: Vec<_> = self.rounds.stations.iter().map(|station| station.role).collect();
        let is_master =
            |role: &StationRole| matches!(role, StationRole::Master | StationRole::Both);
        let masters: Vec<usize> = (0..roles.len()).filter(|at| is_master(&roles[*at])).collect();
        let property = NetworkProperty::Synchronisation;
        if masters.is_empty() {
            let message = "no station begins rounds".to_owned();
            let weight = FindingWeight::Violation;
            let of = doubt(property, message);
            self.findings.push(ProofFinding { code: code(property), weight, ..of });
        }
        for station in (0..roles.len()).filter(|at| roles[*at] == StationRole::Both) {
            let (_, text) = described(network, station, LocalHazard::TwoRoles);
            let message = format!("`{}`: {text}", self.name(station));
            self.findings.push(doubt_at(network, property, station, 0, message));
        }
        if let [first, second, ..] = masters[..] {
            let mut choices = ReplayChoices::nominal(network);
            for station in [first, second] {
                let of = &self.rounds.stations[station];
                let begins = |round: &&RoundPaths| round.ends.iter().any(|it| it.timeout.is_none());
                let mut rounds = std::iter::once(&of.start).chain(&of.rounds.items);
                let end = rounds.find(begins).and_then(|round| round.ends.first());
                let node = end.map_or(super::paths::ROOT, |end| end.node);
                choices.guards[station] = decisions(&of.nodes, node);
            }
            let shown = witness(network, choices, 0, |_, incident| {
                matches!(incident, ReplayIncident::SecondMaster { .. })
            });
            let (one, other) = (self.name(first), self.name(second));
            let message = format!("both `{one}` and `{other}` begin rounds");
            self.findings.push(match shown {
                Some(shown) => violation(network, property, second, 0, message, Some(shown)),
                None => doubt_at(network, property, second, 0, message),
            });
        }
        Positions::new(network, &self.rounds)
    }

    /// What cannot be said without rounds.
    pub(super) fn no_rounds(&mut self) {
        for property in [
            NetworkProperty::CollisionFree,
            NetworkProperty::Reception,
            NetworkProperty::BestEffort,
        ] {
            let message = "not decided, because not exactly one station begins rounds";
            self.findings.push(doubt(property, message.into()));
        }
    }

    /// What limits leave open.
    pub(super) fn cuts(&mut self) {
        for station in 0..self.rounds.stations.len() {
            let of = &self.rounds.stations[station];
            let name = self.name(station);
            let reason = match of.is_cut {
                true => format!(
                    "`{name}` has more states than are followed: its rounds from {} on are open",
                    of.rounds.items.len()
                ),
                false => continue,
            };
            for property in NetworkProperty::ALL {
                self.findings.push(doubt(property, reason.clone()));
            }
        }
    }

    /// What a station sends after it has lost the beginning of a round.
    pub(super) fn silence(&mut self) {
        let property = NetworkProperty::Silence;
        let mut found = Vec::new();
        for (station, of) in self.rounds.stations.iter().enumerate() {
            if of.is_timed_out_cut {
                let message =
                    format!("`{}` has too many states without a round", self.name(station));
                found.push(doubt(property, message));
            }
            let mut seen = std::collections::BTreeSet::new();
            for paths in &of.timed_out {
                let masters = paths.ends.iter().filter(|end| end.timeout.is_none());
                let sends = paths.events.iter().map(|event| (event.at, event.node));
                let all = sends.chain(masters.map(|end| (end.at, end.node)));
                for (at, node) in all.filter(|(at, _)| seen.insert(*at)).collect::<Vec<_>>() {
                    found.push(self.noise(station, at, node));
                }
            }
        }
        self.findings.extend(found);
    }

    fn noise(&self, station: usize, at: usize, node: u32) -> ProofFinding {
        let property = NetworkProperty::Silence;
        let name = self.name(station);
        let message = format!("`{name}`, address {at}: sends after a lost beginning of a round");
        for round in 1..=LOST_ROUNDS_MAX {
            let mut choices = ReplayChoices::nominal(self.network);
            choices.guards[station] = decisions(&self.rounds.stations[station].nodes, node);
            choices.lost = Some((station, round));
            let shown = witness(self.network, choices, round, |_, incident| match *incident {
                ReplayIncident::Unsynchronised { station: of, address }
                | ReplayIncident::SecondMaster { station: of, address } => {
                    (of, address) == (station, at)
                }
                _ => false,
            });
            if shown.is_some() {
                return violation(self.network, property, station, at, message, shown);
            }
        }
        doubt_at(self.network, property, station, at, format!("{message}, perhaps"))
    }

    /// Instructions without a path.
    pub(super) fn reachability(&mut self) {
        let property = NetworkProperty::Reachability;
        let mut found = Vec::new();
        for (station, of) in self.rounds.stations.iter().enumerate() {
            for at in (0..of.visited.len()).filter(|at| !of.visited[*at]) {
                let message = format!("`{}`, address {at}: is never reached", self.name(station));
                found.push(match of.is_cut || of.is_timed_out_cut {
                    true => doubt_at(self.network, property, station, at, message),
                    false => violation(self.network, property, station, at, message, None),
                });
            }
        }
        self.findings.extend(found);
    }
}
