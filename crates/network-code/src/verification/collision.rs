//! Whether frames of two stations can be at one resource at once.

use super::Proof;
use super::checks::{doubt, doubt_at, violation};
use super::findings::{NetworkProperty, ProofCounterexample};
use super::network::{NetworkModel, Reach};
use super::paths::{RoundEnd, SendEvent};
use super::positions::Positions;
use super::replay::{Replay, ReplayIncident};
use super::rounds::together;
use super::time::{Attoseconds, Span};
use super::values::{Facts, LookedAt};
use super::witness::{ReplayChoices, decisions, witness};
use onbeat_runtime::network_code::timing::{CYCLE_NS, SYNC_RESUME};
use std::collections::{BTreeMap, BTreeSet};

/// Executions that are tried for one pair of instructions.
const TRIES_MAX: usize = 8;
/// Ways in which other stations decide, for the first pair of frames, and for further ones.
const SALTS_MAX: u32 = 48;
const SALTS_FEW: u32 = 8;
/// Steps between the least and the greatest value of a choice, in thousandths.
const TENDENCY_STEPS: [u64; 9] = [0, 125, 250, 375, 500, 625, 750, 875, 1_000];

/// Further apart than delays can bring frames together.
const APART_NS_MAX: i64 = 2 * super::network::DELAY_NS_MAX as i64;

/// Where two frames may meet.
#[derive(Clone, Copy)]
struct Place {
    stations: (usize, usize),
    /// Of the first; the second is so many rounds later.
    round: usize,
    later: u8,
    /// The round's length in the master's cycles, where the second is of the next one.
    length: i64,
    resource: usize,
    reaches: (usize, usize),
}

/// Two frames that may meet.
struct Pair<'a> {
    place: Place,
    events: (&'a SendEvent, &'a SendEvent),
    facts: Facts,
}

/// The value `per_mille` of the way from one end to the other.
fn between(from: u64, to: u64, per_mille: u64) -> u64 {
    from + (to - from) * per_mille / 1_000
}

fn drift(limit: u32, per_mille: u64) -> i64 {
    between(0, 2 * u64::from(limit), per_mille) as i64 - i64::from(limit)
}

/// Has all of a station be early or late: its clock, what it sees of a round's beginning, and how
/// long its frames take.
pub(super) fn tend(
    network: &NetworkModel,
    choices: &mut ReplayChoices,
    station: usize,
    per_mille: u64,
) {
    choices.drift_ppb[station] = drift(network.stations[station].drift_ppb_max, per_mille);
    let phase = between(0, u64::from(CYCLE_NS), per_mille);
    choices.phase_ns[station] = (phase, phase);
    for (index, reach) in network.reaches.iter().enumerate() {
        let resource = &network.resources[reach.resource];
        if reach.sender == station || resource.receiver == Some(station) {
            let delay = between(reach.delay_min_ns, reach.delay_max_ns, per_mille);
            choices.delay_ns[index] = (delay, delay);
        }
        if resource.receiver == Some(station) {
            let drift = drift(resource.drift_ppb_max, per_mille);
            choices.resource_drift_ppb[reach.resource] = drift;
        }
    }
}

impl Proof<'_> {
    /// All pairs of stations, in all rounds until they repeat, and from a round to the next.
    pub(super) fn collisions(&mut self, positions: &Positions) {
        let stations = self.rounds.stations.len();
        let mut found = Vec::new();
        let mut pairs = 0;
        self.findings.extend(self.flights(positions));
        for one in 0..stations {
            for other in one + 1..stations {
                let shapes =
                    [one, other, positions.master].map(|it| self.rounds.stations[it].shape());
                let Some((_, rounds)) = together(&shapes) else {
                    let (one, other) = (self.name(one), self.name(other));
                    let message = format!("`{one}` and `{other}` repeat together too late");
                    found.push(doubt(NetworkProperty::CollisionFree, message));
                    continue;
                };
                let mut possible = Candidates::default();
                let mut seen = BTreeSet::new();
                for round in 0..rounds {
                    let index = |of: usize, round| self.rounds.stations[of].rounds.index(round);
                    let empty = |of: usize| self.rounds.stations[of].rounds.items.is_empty();
                    if empty(one) || empty(other) {
                        continue;
                    }
                    let ends = &self.rounds.stations[positions.master].rounds.get(round).ends;
                    let lengths: BTreeSet<i64> =
                        ends.iter().map(|end| positions.length(end)).collect();
                    let mut all = vec![((one, other), 0, 0)];
                    for length in lengths {
                        all.extend([((one, other), 1, length), ((other, one), 1, length)]);
                    }
                    for (pair, later, length) in all {
                        let next = round + usize::from(later);
                        let of = (index(pair.0, round), index(pair.1, next));
                        let key = (pair, later, length, of, index(positions.master, round));
                        if seen.insert(key) {
                            let rounds = (round, later);
                            pairs += self.compare(positions, pair, rounds, length, &mut possible);
                        }
                    }
                }
                found.extend(self.decide_pairs(positions, possible));
            }
        }
        self.pairs += pairs;
        self.findings.extend(found);
    }

    /// Frames that are still on their way when the round after the next one begins.
    fn flights(&self, positions: &Positions) -> Vec<super::ProofFinding> {
        let mut found = Vec::new();
        let drift = self.network.stations[positions.master].drift_ppb_max;
        for (station, of) in self.rounds.stations.iter().enumerate() {
            for (round, paths) in of.rounds.items.iter().enumerate() {
                let two = positions.lengths(round).0 + positions.lengths(round + 1).0;
                let next = Span::cycles(two, drift).min;
                let is_late = |event: &&SendEvent| {
                    self.reaches(station).any(|(index, reach)| {
                        let begin = positions.begin(event, index, 0);
                        let occupied = positions.occupied(event.octets, reach.resource);
                        begin.is_some_and(|begin| begin.max + occupied > next)
                    })
                };
                if let Some(event) = paths.events.iter().find(is_late) {
                    let message = format!(
                        "`{}`, address {}: its frame may be in flight two rounds later",
                        self.name(station),
                        event.at
                    );
                    let property = NetworkProperty::CollisionFree;
                    let doubt = doubt_at(self.network, property, station, event.at, message);
                    found.push(doubt);
                    break;
                }
            }
        }
        found
    }

    fn reaches(&self, station: usize) -> impl Iterator<Item = (usize, &Reach)> {
        let all = self.network.reaches.iter().enumerate();
        all.filter(move |(_, reach)| reach.sender == station)
    }

    /// Compares all frames of two stations in two rounds: how many pairs.
    fn compare<'a>(
        &'a self,
        positions: &Positions,
        (one, other): (usize, usize),
        (round, later): (usize, u8),
        length: i64,
        possible: &mut Candidates<'a>,
    ) -> usize {
        // The master's own clock is exact with respect to its own next round.
        let shifts = if one == positions.master { (-length, 0) } else { (0, length) };
        let spans = |station: usize, round: usize, shift: i64| {
            let events = &self.rounds.stations[station].rounds.get(round).events;
            // One instruction at one instant, in all the ways that lead there.
            let same = |a: &SendEvent, b: &SendEvent| (a.at, a.offset) == (b.at, b.offset);
            let spans = events.chunk_by(same).filter_map(|group| {
                Some((group, self.window(positions, &group[0], station, shift)?))
            });
            spans.collect::<Vec<_>>()
        };
        let first = spans(one, round, shifts.0);
        let mut second = spans(other, round + usize::from(later), shifts.1);
        second.sort_by_key(|(_, span)| span.min);
        let longest = second.iter().map(|(_, span)| span.max - span.min).max();
        let longest = longest.unwrap_or_default();
        let mut pairs = 0;
        for (a, near) in &first {
            let from = second.partition_point(|(_, far)| far.min + longest <= near.min);
            for (b, far) in &second[from..] {
                if near.max <= far.min {
                    break;
                }
                pairs += 1;
                if far.max <= near.min {
                    continue;
                }
                let stations = (one, other);
                let resources = self.meeting(positions, (one, &a[0]), (other, &b[0]), shifts);
                if let Some((resource, reaches)) = resources {
                    let place = Place { stations, round, later, length, resource, reaches };
                    pairs += self.join(positions, place, (a, b), possible);
                }
            }
        }
        pairs
    }

    /// Adds all ways in which two instructions send at once: how many were compared.
    fn join<'a>(
        &self,
        positions: &Positions,
        place: Place,
        (first, second): (&'a [SendEvent], &'a [SendEvent]),
        possible: &mut Candidates<'a>,
    ) -> usize {
        let known = |events: &[SendEvent]| -> LookedAt {
            events.iter().flat_map(|event| event.facts.keys()).collect()
        };
        let common: LookedAt = known(first).intersection(&known(second)).copied().collect();
        // Frames that differ only in what the other station does not know are one.
        let different = |events: &'a [SendEvent]| {
            let mut seen = BTreeSet::new();
            let facts = events.iter().map(|event| (event, event.facts.within(&common)));
            facts.filter(|(_, facts)| seen.insert(facts.clone())).collect::<Vec<_>>()
        };
        let (first, second) = (different(first), different(second));
        for (a, a_facts) in &first {
            for (b, b_facts) in &second {
                if a_facts.excludes(place.later, b_facts) {
                    continue;
                }
                let Some(facts) = a.facts.joined(place.later, &b.facts) else { continue };
                let pair = Pair { place, events: (a, b), facts };
                if possible.has_room(&pair) && self.end(positions, &pair).is_some() {
                    possible.add(pair);
                }
            }
        }
        first.len() * second.len()
    }

    /// An end of the master's round with which a pair may be, if the round has one.
    fn end(&self, positions: &Positions, pair: &Pair) -> Option<&RoundEnd> {
        let ends = &self.rounds.stations[positions.master].rounds.get(pair.place.round).ends;
        ends.iter().find(|end| fits(positions, pair, end))
    }

    /// When a frame may be anywhere.
    fn window(
        &self,
        positions: &Positions,
        event: &SendEvent,
        station: usize,
        shift: i64,
    ) -> Option<Span> {
        let instant = positions.instant(station, event.offset, shift)?;
        let mut all = None::<Span>;
        for (_, reach) in self.reaches(station) {
            let min = instant.min + Attoseconds::ns(reach.delay_min_ns);
            let max = instant.max
                + Attoseconds::ns(reach.delay_max_ns)
                + positions.occupied(event.octets, reach.resource);
            let known = all.unwrap_or(Span { min, max });
            all = Some(Span { min: known.min.min(min), max: known.max.max(max) });
        }
        all
    }

    /// A resource where two frames may meet, with their reaches.
    fn meeting(
        &self,
        positions: &Positions,
        (one, a): (usize, &SendEvent),
        (other, b): (usize, &SendEvent),
        shifts: (i64, i64),
    ) -> Option<(usize, (usize, usize))> {
        for (left, reach) in self.reaches(one) {
            let resource = reach.resource;
            let right = self.reaches(other).find(|(_, reach)| reach.resource == resource);
            let Some((right, _)) = right else { continue };
            let near = positions.begin(a, left, shifts.0)?;
            let far = positions.begin(b, right, shifts.1)?;
            let is_apart = near.max + positions.occupied(a.octets, resource) <= far.min
                || far.max + positions.occupied(b.octets, resource) <= near.min;
            if !is_apart {
                return Some((resource, (left, right)));
            }
        }
        None
    }

    fn decide_pairs(&self, positions: &Positions, all: Candidates) -> Vec<super::ProofFinding> {
        let property = NetworkProperty::CollisionFree;
        let mut found = Vec::new();
        for (_, pairs) in all.pairs.into_iter().take(super::FINDINGS_MAX) {
            let mut salts = [SALTS_MAX].into_iter().chain(std::iter::repeat(SALTS_FEW));
            let mut show = |pair| self.show(positions, pair, salts.next().unwrap_or(SALTS_FEW));
            let shown = pairs.iter().find_map(&mut show);
            let pair = &pairs[0];
            let (one, other) = pair.place.stations;
            let place = (self.name(one), pair.events.0.at, self.name(other), pair.events.1.at);
            let at = &self.network.resources[pair.place.resource].name;
            let when = if pair.place.later == 0 { "" } else { " of the next round" };
            let message = format!(
                "frames of `{}` (address {}) and `{}` (address {}{when}) meet at `{at}`",
                place.0, place.1, place.2, place.3
            );
            let station = if one == positions.master { other } else { one };
            let address = if station == one { place.1 } else { place.3 };
            found.push(match shown {
                Some(shown) => {
                    violation(self.network, property, station, address, message, Some(shown))
                }
                None => {
                    let message = format!("{message}, perhaps: no execution shows it");
                    doubt_at(self.network, property, station, address, message)
                }
            });
        }
        found
    }

    /// An execution in which a pair meets.
    fn show(
        &self,
        positions: &Positions,
        pair: &Pair,
        salts: u32,
    ) -> Option<Box<ProofCounterexample>> {
        let is_met = |replay: &Replay, incident: &ReplayIncident| {
            let ReplayIncident::Overlap { first, second, .. } = *incident else { return false };
            let of = |index: usize| (replay.frames[index].station, replay.frames[index].address);
            let pairs = (
                (pair.place.stations.0, pair.events.0.at),
                (pair.place.stations.1, pair.events.1.at),
            );
            (of(first), of(second)) == pairs || (of(second), of(first)) == pairs
        };
        let tendencies = || {
            let both = |one| TENDENCY_STEPS.into_iter().map(move |other| (one, other));
            TENDENCY_STEPS.into_iter().flat_map(both)
        };
        let meets = tendencies().filter(|tendency| self.meets(positions, pair, *tendency));
        // What is in the middle of all that meets is the least likely to miss.
        let meets: Vec<(u64, u64)> = meets.collect();
        let middle = meets.get(meets.len() / 2).copied()?;
        let extremes = [meets[0], meets[meets.len() - 1]];
        let attempts = (0..salts).map(|salt| (middle, salt));
        let attempts = attempts.chain(extremes.into_iter().flat_map(|it| [(it, 0), (it, 1)]));
        let round = pair.place.round as u32 + u32::from(pair.place.later);
        attempts.into_iter().find_map(|(tendency, salt)| {
            let choices = self.choices(positions, pair, tendency);
            witness(self.network, ReplayChoices { salt, ..choices }, round, is_met)
        })
    }

    fn choices(&self, positions: &Positions, pair: &Pair, tendency: (u64, u64)) -> ReplayChoices {
        let mut choices = self.clocks(positions, pair, tendency);
        let master = positions.master;
        let limit = self.network.resources[pair.place.resource].drift_ppb_max;
        choices.resource_drift_ppb[pair.place.resource] = i64::from(limit);
        choices.choose_words(&pair.facts, pair.place.round as u32 + u32::from(pair.place.later));
        let of = |station: usize, node: u32| decisions(&self.rounds.stations[station].nodes, node);
        // The master's round may not contradict what the others have seen.
        let ends = &self.rounds.stations[master].rounds.get(pair.place.round).ends;
        if let Some(end) = self.end(positions, pair) {
            choices.guards[master] = of(master, end.node);
        }
        choices.guards[pair.place.stations.0] = of(pair.place.stations.0, pair.events.0.node);
        choices.guards[pair.place.stations.1] = of(pair.place.stations.1, pair.events.1.node);
        if pair.place.later > 0 && pair.place.stations.0 == master {
            let own = of(master, pair.events.0.node);
            let fitting = ends.iter().filter(|end| fits(positions, pair, end));
            let whole = fitting.map(|end| of(master, end.node));
            let mut whole = whole.filter(|decisions| decisions.starts_with(&own));
            choices.guards[master] = whole.next().unwrap_or(own);
        }
        choices
    }

    /// Whether a pair meets with choices that tend so, as far as positions say.
    fn meets(&self, positions: &Positions, pair: &Pair, tendency: (u64, u64)) -> bool {
        let choices = self.clocks(positions, pair, tendency);
        let length = |event: &SendEvent| {
            let resource = &self.network.resources[pair.place.resource];
            let octets = event.octets + super::time::gap_octets();
            Attoseconds::of(octets, resource.octet_ns, i64::from(resource.drift_ppb_max))
        };
        let (near, far) = begins(positions, &choices, pair);
        near < far + length(pair.events.1) && far < near + length(pair.events.0)
    }

    fn clocks(&self, positions: &Positions, pair: &Pair, tendency: (u64, u64)) -> ReplayChoices {
        let mut choices = ReplayChoices::nominal(self.network);
        let mut both = [(pair.place.stations.0, tendency.0), (pair.place.stations.1, tendency.1)];
        // The delay of the beginning of a round is a matter of the slave, so it is set last.
        both.sort_by_key(|(station, _)| *station != positions.master);
        for (station, per_mille) in both {
            tend(self.network, &mut choices, station, per_mille);
        }
        if pair.place.later > 0 {
            let master = positions.master;
            choices.drift_ppb[master] = -i64::from(self.network.stations[master].drift_ppb_max);
        }
        self.aim(positions, pair, &mut choices);
        choices
    }

    /// Has the frames of a pair begin at once, as far as their own delays allow it: a frame may be
    /// much shorter than what delays differ by.
    fn aim(&self, positions: &Positions, pair: &Pair, choices: &mut ReplayChoices) {
        let (near, far) = begins(positions, choices, pair);
        let mut apart = (far.floor_ns() - near.floor_ns()).clamp(-APART_NS_MAX, APART_NS_MAX);
        let (one, other) = pair.place.reaches;
        for (index, sign) in [(one, 1), (other, -1)] {
            let Reach { delay_min_ns, delay_max_ns, .. } = self.network.reaches[index];
            let delay = choices.delay_ns[index].0 as i64;
            let aimed = delay + sign * apart;
            let aimed = aimed.clamp(delay_min_ns as i64, delay_max_ns as i64);
            choices.delay_ns[index] = (aimed as u64, aimed as u64);
            apart -= sign * (aimed - delay);
        }
    }
}

/// When the frames of a pair begin where they may meet.
fn begins(
    positions: &Positions,
    choices: &ReplayChoices,
    pair: &Pair,
) -> (Attoseconds, Attoseconds) {
    let (a, b) = pair.events;
    let Place { reaches, length, .. } = pair.place;
    let near = begin(positions, choices, a.offset, reaches.0, 0);
    (near, begin(positions, choices, b.offset, reaches.1, length))
}

/// Whether the master's round may end so while a pair meets.
fn fits(positions: &Positions, pair: &Pair, end: &RoundEnd) -> bool {
    (pair.place.later == 0 || positions.length(end) == pair.place.length)
        && end.facts.joined(pair.place.later, &pair.facts).is_some()
}

/// Pairs that may meet, by what sends them.
#[derive(Default)]
struct Candidates<'a> {
    pairs: BTreeMap<(usize, usize, usize, usize, u8), Vec<Pair<'a>>>,
}

impl<'a> Candidates<'a> {
    fn key(pair: &Pair) -> (usize, usize, usize, usize, u8) {
        let (one, other) = pair.place.stations;
        (one, pair.events.0.at, other, pair.events.1.at, pair.place.later)
    }

    fn has_room(&self, pair: &Pair) -> bool {
        self.pairs.get(&Self::key(pair)).is_none_or(|pairs| pairs.len() < TRIES_MAX)
    }

    fn add(&mut self, pair: Pair<'a>) {
        self.pairs.entry(Self::key(&pair)).or_default().push(pair);
    }
}

/// When a frame begins at a resource, with these choices.
fn begin(
    positions: &Positions,
    choices: &ReplayChoices,
    offset: i64,
    reach: usize,
    shift: i64,
) -> Attoseconds {
    let network = positions.network;
    let station = network.reaches[reach].sender;
    let master = positions.master;
    let delay = |reach: usize| Attoseconds::ns(choices.delay_ns[reach].0);
    let cycles = |count, station: usize| Attoseconds::cycles(count, choices.drift_ppb[station]);
    if station == master {
        return cycles(offset + positions.lead + shift, master) + delay(reach);
    }
    let Some(sync) = network.reach_to(master, station) else { return Attoseconds(0) };
    let resource = network.reaches[sync].resource;
    let octets = super::time::ethertype_octets(&network.stations[master].program);
    let drift = choices.resource_drift_ppb[resource];
    let reference =
        delay(sync) + Attoseconds::of(octets, network.resources[resource].octet_ns, drift);
    let resume =
        cycles(SYNC_RESUME.0 as i64, station) + Attoseconds::ns(choices.phase_ns[station].0);
    cycles(shift, master) + reference + resume + cycles(offset, station) + delay(reach)
}
