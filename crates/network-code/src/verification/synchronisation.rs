//! Whether every slave waits for each round: it has come back to its `sync slave` before the round
//! can begin, and still waits when it begins at the latest.

use super::checks::{doubt, doubt_at, violation};
use super::findings::NetworkProperty;
use super::paths::RoundEnd;
use super::positions::{PHASE_CYCLES, Positions};
use super::replay::ReplayIncident;
use super::rounds::{StationRole, together};
use super::time::Span;
use super::values::Facts;
use super::witness::{ReplayChoices, decisions, witness};
use super::{Proof, ProofFinding};
use onbeat_runtime::network_code::timing::CYCLE_NS;
use std::collections::BTreeSet;

const PROPERTY: NetworkProperty = NetworkProperty::Synchronisation;

/// What may go wrong at the end of a slave's round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum EndHazard {
    /// The next round begins before it waits.
    Missed,
    /// It does not wait long enough.
    TimedOut,
    /// Its last frame is still on the wire.
    Sends,
}

impl Proof<'_> {
    /// All slaves, in all rounds.
    pub(super) fn synchronisation(&mut self, positions: &Positions) {
        let mut found = Vec::new();
        for (station, of) in self.rounds.stations.iter().enumerate() {
            if of.role != StationRole::Slave {
                continue;
            }
            if !positions.is_reached(station) {
                let name = self.name(station);
                let message = format!("no frame of the master comes to `{name}`");
                let weight = super::FindingWeight::Violation;
                let code = super::findings::code(PROPERTY);
                let doubt = doubt(PROPERTY, message);
                found.push(ProofFinding { station: Some(station), weight, code, ..doubt });
                continue;
            }
            let shapes = [station, positions.master].map(|it| self.rounds.stations[it].shape());
            let Some((_, rounds)) = together(&shapes) else {
                let message = format!("the rounds of `{}` repeat too late", self.name(station));
                found.push(doubt(PROPERTY, message));
                continue;
            };
            let mut seen = BTreeSet::new();
            for round in 0..rounds {
                self.ends(positions, station, round, &mut seen, &mut found);
            }
        }
        self.findings.extend(found);
    }

    fn ends(
        &self,
        positions: &Positions,
        station: usize,
        round: usize,
        seen: &mut BTreeSet<(usize, EndHazard)>,
        found: &mut Vec<ProofFinding>,
    ) {
        let master = &self.rounds.stations[positions.master].rounds;
        let own = &self.rounds.stations[station].rounds;
        if master.items.is_empty() || own.items.is_empty() {
            return;
        }
        for end in &own.get(round).ends {
            for next in &master.get(round).ends {
                let length = positions.length(next);
                for hazard in self.hazards(positions, station, end, length) {
                    if end.facts.joined(0, &next.facts).is_none() {
                        continue;
                    }
                    if seen.insert((end.at, hazard)) {
                        let ends = (end, next);
                        found.push(self.end_finding(positions, station, round, ends, hazard));
                    }
                }
            }
        }
    }

    fn hazards(
        &self,
        positions: &Positions,
        station: usize,
        end: &RoundEnd,
        length: i64,
    ) -> Vec<EndHazard> {
        let drift = self.network.stations[station].drift_ppb_max;
        let instant = |offset| positions.instant(station, offset, 0);
        let all = (instant(end.offset), positions.reference(station, length));
        let (Some(waits), Some(next)) = all else { return Vec::new() };
        let mut hazards = Vec::new();
        if waits.max > next.min {
            hazards.push(EndHazard::Missed);
        } else if instant(end.gap_end).is_some_and(|idle| idle.max > next.min) {
            hazards.push(EndHazard::Sends);
        }
        let timeout = i64::from(end.timeout.unwrap_or(0));
        let seen = next.max + Span::cycles(PHASE_CYCLES, drift).max;
        if instant(end.offset + timeout).is_some_and(|until| seen > until.min) {
            hazards.push(EndHazard::TimedOut);
        }
        hazards
    }

    fn end_finding(
        &self,
        positions: &Positions,
        station: usize,
        round: usize,
        (end, next): (&RoundEnd, &RoundEnd),
        hazard: EndHazard,
    ) -> ProofFinding {
        let text = match hazard {
            EndHazard::Missed => "the next round may begin before it waits",
            EndHazard::TimedOut => "its timeout may end before the next round begins",
            EndHazard::Sends => "its frame may be on the wire when the next round begins",
        };
        let (name, at) = (self.name(station), end.at);
        let message = format!("`{name}`, address {at}, round {round}: {text}");
        if hazard == EndHazard::Sends {
            return doubt_at(self.network, PROPERTY, station, at, message);
        }
        let choices = self.extremes(positions, station, round as u32, (end, next), hazard);
        let round = round as u32;
        let shown = witness(self.network, choices, round, |_, incident| match *incident {
            ReplayIncident::Missed { station: of, .. } => {
                of == station && hazard == EndHazard::Missed
            }
            ReplayIncident::TimedOut { station: of, .. } => {
                of == station && hazard == EndHazard::TimedOut
            }
            _ => false,
        });
        match shown {
            Some(_) => violation(self.network, PROPERTY, station, at, message, shown),
            None => {
                let message = format!("{message}, perhaps: no execution shows it");
                doubt_at(self.network, PROPERTY, station, at, message)
            }
        }
    }

    /// The slave early and the next round late, or the other way round.
    fn extremes(
        &self,
        positions: &Positions,
        station: usize,
        round: u32,
        (end, next): (&RoundEnd, &RoundEnd),
        hazard: EndHazard,
    ) -> ReplayChoices {
        let network = self.network;
        let mut choices = ReplayChoices::nominal(network);
        let master = positions.master;
        let sign = if hazard == EndHazard::Missed { 1 } else { -1 };
        let limit = |station: usize| i64::from(network.stations[station].drift_ppb_max);
        choices.drift_ppb[station] = sign * limit(station);
        choices.drift_ppb[master] = -sign * limit(master);
        choices.turn = round + 1;
        let cycle = u64::from(CYCLE_NS);
        // What is seen late in one round is seen early in the next one, or the other way round. A
        // timeout is judged with the phase of the round in which it waits.
        let is_missed = hazard == EndHazard::Missed;
        choices.phase_ns[station] = if is_missed { (cycle, 0) } else { (0, cycle) };
        if let Some(index) = network.reach_to(master, station) {
            let reach = &network.reaches[index];
            let (min, max) = (reach.delay_min_ns, reach.delay_max_ns);
            choices.delay_ns[index] = if is_missed { (max, min) } else { (min, max) };
        }
        let facts: Facts = end.facts.joined(0, &next.facts).unwrap_or_default();
        choices.choose_words(&facts, round);
        for (of, node) in [(station, end.node), (master, next.node)] {
            choices.guards[of] = decisions(&self.rounds.stations[of].nodes, node);
        }
        choices
    }
}
