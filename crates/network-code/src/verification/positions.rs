//! Where in time a station's actions are, seen from the beginning of a round: the instant when the
//! first octet of the master's frame leaves.

use super::network::NetworkModel;
use super::paths::{PathFinder, ROUND_CYCLES_MAX, RoundEnd, SendEvent};
use super::rounds::{NetworkRounds, StationRole};
use super::time::{Attoseconds, Span, ethertype_octets, gap_octets};
use onbeat_runtime::network_code::timing::{RECEIVE_STORE, SEND_START, SYNC_RESUME};

/// What a station sees of an instant is up to a cycle later: its clock ticks when it does.
pub(super) const PHASE_CYCLES: i64 = 1;

/// Positions of one network.
pub(super) struct Positions<'a> {
    pub(super) network: &'a NetworkModel,
    pub(super) master: usize,
    /// Of the master's first instruction in a round, negated.
    pub(super) lead: i64,
    /// The first instruction of each station in a round; none of those that no round begins for.
    resume: Vec<Option<Span>>,
    /// When the last octet of the EtherType has come to each slave.
    reference: Vec<Option<Span>>,
    /// The shortest and the longest round, of those of the master that repeat.
    lengths: Vec<(i64, i64)>,
    repeats: usize,
}

impl<'a> Positions<'a> {
    /// The positions, if exactly one station begins rounds.
    pub(super) fn new(network: &'a NetworkModel, rounds: &NetworkRounds) -> Option<Self> {
        let is_master = |role| matches!(role, StationRole::Master | StationRole::Both);
        let mut masters =
            (0..rounds.stations.len()).filter(|index| is_master(rounds.stations[*index].role));
        let (master, None) = (masters.next()?, masters.next()) else { return None };
        let of = &rounds.stations[master].rounds;
        if of.items.is_empty() || rounds.stations[master].role == StationRole::Both {
            return None;
        }
        let lead = -PathFinder::master_reference(&network.stations[master].program);
        let mut positions = Self {
            network,
            master,
            lead,
            resume: Vec::new(),
            reference: Vec::new(),
            lengths: Vec::new(),
            repeats: of.repeats,
        };
        for round in &of.items {
            let lengths = || round.ends.iter().map(|end| length(end, lead));
            let shortest = lengths().min().unwrap_or(ROUND_CYCLES_MAX);
            let longest = lengths().max().unwrap_or(shortest);
            positions.lengths.push((shortest, longest));
        }
        for index in 0..network.stations.len() {
            positions.reference.push(positions.sync(index));
            let drift = network.stations[index].drift_ppb_max;
            let resume = Span::cycles(SYNC_RESUME.0 as i64, drift)
                + Span { min: Attoseconds(0), max: Span::cycles(PHASE_CYCLES, drift).max };
            let resume = positions.reference[index].map(|reference| reference + resume);
            let own = Span::cycles(lead, drift);
            positions.resume.push(if index == master { Some(own) } else { resume });
        }
        Some(positions)
    }

    /// From one beginning of a round to the next, in the master's cycles.
    pub(super) fn length(&self, end: &RoundEnd) -> i64 {
        length(end, self.lead)
    }

    pub(super) fn lengths(&self, round: usize) -> (i64, i64) {
        let count = self.lengths.len();
        let index = match round < count {
            true => round,
            false => self.repeats + (round - self.repeats) % (count - self.repeats),
        };
        self.lengths[index]
    }

    fn sync(&self, station: usize) -> Option<Span> {
        let reach = &self.network.reaches[self.network.reach_to(self.master, station)?];
        let resource = &self.network.resources[reach.resource];
        let octets = ethertype_octets(&self.network.stations[self.master].program);
        let delay = Span::ns(reach.delay_min_ns, reach.delay_max_ns);
        Some(delay + Span::of(octets, resource.octet_ns, resource.drift_ppb_max))
    }

    /// Whether rounds begin for a station.
    pub(super) fn is_reached(&self, station: usize) -> bool {
        self.resume[station].is_some()
    }

    fn drift(&self, station: usize) -> u32 {
        self.network.stations[station].drift_ppb_max
    }

    /// An offset of a station in a round that begins `shift` cycles of the master later.
    pub(super) fn instant(&self, station: usize, offset: i64, shift: i64) -> Option<Span> {
        if station == self.master {
            return Some(Span::cycles(offset + self.lead + shift, self.drift(station)));
        }
        let begin = Span::cycles(shift, self.drift(self.master));
        Some(begin + self.resume[station]? + Span::cycles(offset, self.drift(station)))
    }

    /// When a round that begins `shift` cycles later can be seen to begin at a slave.
    pub(super) fn reference(&self, station: usize, shift: i64) -> Option<Span> {
        Some(Span::cycles(shift, self.drift(self.master)) + self.reference[station]?)
    }

    /// When the first octet of a frame's preamble is at a resource.
    pub(super) fn begin(&self, event: &SendEvent, reach: usize, shift: i64) -> Option<Span> {
        let reach = &self.network.reaches[reach];
        let delay = Span::ns(reach.delay_min_ns, reach.delay_max_ns);
        Some(self.instant(reach.sender, event.offset, shift)? + delay)
    }

    /// How long a frame occupies a resource at most, with the gap behind it.
    pub(super) fn occupied(&self, octets: i64, resource: usize) -> Attoseconds {
        let resource = &self.network.resources[resource];
        Span::of(octets + gap_octets(), resource.octet_ns, resource.drift_ppb_max).max
    }

    /// In cycles from a station's first instruction: not before, not after.
    fn cycles(&self, station: usize, at: Span) -> Option<(i64, i64)> {
        let after = at - self.resume[station]?;
        let drift = i64::from(self.drift(station));
        let sign = |at: Attoseconds| if at.0 < 0 { -1 } else { 1 };
        let min = after.min.floor_cycles(sign(after.min) * drift);
        let max = after.max.floor_cycles(-sign(after.max) * drift) + 1;
        Some((min, max))
    }

    /// When a frame becomes visible to a station, in its cycles; none if it does not get there.
    pub(super) fn arrival(
        &self,
        sender: usize,
        event: &SendEvent,
        station: usize,
    ) -> Option<(i64, i64)> {
        let reach = self.network.reach_to(sender, station)?;
        let resource = &self.network.resources[self.network.reaches[reach].resource];
        let length = Span::of(event.octets, resource.octet_ns, resource.drift_ppb_max);
        let (min, max) = self.cycles(station, self.begin(event, reach, 0)? + length)?;
        let store = RECEIVE_STORE.0 as i64;
        Some((min + store, max + store + PHASE_CYCLES))
    }

    /// An offset before which a station's round does not end.
    pub(super) fn earliest_end(&self, station: usize, round: usize) -> i64 {
        let (shortest, _) = self.lengths(round);
        if station == self.master {
            return shortest - self.lead - SEND_START.0 as i64;
        }
        let end = self.reference(station, shortest).and_then(|at| self.cycles(station, at));
        end.map_or(i64::MAX, |(min, _)| min)
    }
}

fn length(end: &RoundEnd, lead: i64) -> i64 {
    end.offset + SEND_START.0 as i64 + lead
}
