//! What real-time frames leave of each resource.

use super::Proof;
use super::checks::doubt;
use super::findings::{BestEffortShare, FindingWeight, NetworkProperty, ProofFinding, code};
use super::positions::Positions;
use super::rounds::together;
use super::time::{Attoseconds, Span, gap_octets};
use onbeat_model::units::frame;

const PROPERTY: NetworkProperty = NetworkProperty::BestEffort;
const MILLION: i128 = 1_000_000;

impl Proof<'_> {
    /// The share of each resource and its longest gap, and the rounds until all repeats.
    ///
    /// A resource counts as occupied wherever a real-time frame may be: whatever the phases and
    /// guards, the rest is left. Frames of a round's end that come after the next one has begun
    /// count at their own round.
    pub(super) fn best_effort(
        &mut self,
        positions: &Positions,
    ) -> (Vec<BestEffortShare>, Option<usize>) {
        let shapes: Vec<_> = self.rounds.stations.iter().map(|it| it.shape()).collect();
        let Some((first, rounds)) = together(&shapes) else {
            self.findings.push(doubt(PROPERTY, "rounds repeat too late".into()));
            return (Vec::new(), None);
        };
        let mut shares = Vec::new();
        for resource in 0..self.network.resources.len() {
            let all: Vec<_> =
                (first..rounds).map(|round| self.left(positions, resource, round)).collect();
            let left: i128 = all.iter().map(|round| round.left).sum();
            let whole: i128 = all.iter().map(|round| round.whole).sum();
            let gap = all.iter().map(|round| round.gap).max().unwrap_or(0);
            shares.push(self.share(resource, left * MILLION / whole.max(1), gap));
        }
        (shares, Some(rounds - first))
    }

    fn share(&mut self, index: usize, share_ppm: i128, gap: i128) -> BestEffortShare {
        let resource = &self.network.resources[index];
        let drift = i64::from(resource.drift_ppb_max);
        let octet = Attoseconds::of(1, resource.octet_ns, drift).0;
        let around = i128::from(frame::PREAMBLE.get()) + i128::from(gap_octets());
        let longest = (gap / octet - around).clamp(0, i128::from(u32::MAX)) as u32;
        let share = BestEffortShare {
            resource: index,
            share_ppm: share_ppm as u32,
            longest_gap_ns: Attoseconds(gap).floor_ns() as u64,
            longest_frame_octets: longest,
        };
        if let Some(octets) = resource.best_effort_octets
            && octets > longest
        {
            let message = format!(
                "`{}`: a best-effort frame has up to {octets} octets, gaps hold {longest}",
                resource.name
            );
            let of = doubt(PROPERTY, message);
            let (code, weight) = (code(PROPERTY), FindingWeight::Violation);
            self.findings.push(ProofFinding { code, weight, ..of });
        }
        share
    }

    fn left(&self, positions: &Positions, resource: usize, round: usize) -> RoundLeft {
        let mut occupied = self.occupied(positions, resource, round, 0);
        // What the last round leaves behind, and what the next one begins with.
        let length = positions.lengths(round).0;
        if let Some(before) = round.checked_sub(1) {
            let shift = -positions.lengths(before).0;
            occupied.extend(self.occupied(positions, resource, before, shift));
        }
        occupied.extend(self.occupied(positions, resource, round + 1, length));
        occupied.sort_by_key(|span| span.min);
        let drift = self.network.stations[positions.master].drift_ppb_max;
        let whole = Span::cycles(length, drift).min;
        let mut result = RoundLeft { left: 0, whole: whole.0, gap: 0 };
        let mut free_from = Attoseconds(0);
        for span in occupied {
            let until = span.min.min(whole);
            if until > free_from {
                result.left += (until - free_from).0;
                result.gap = result.gap.max((until - free_from).0);
            }
            free_from = free_from.max(span.max);
        }
        if whole > free_from {
            result.left += (whole - free_from).0;
            result.gap = result.gap.max((whole - free_from).0);
        }
        result
    }

    /// When frames of a round may be at a resource.
    fn occupied(
        &self,
        positions: &Positions,
        resource: usize,
        round: usize,
        shift: i64,
    ) -> Vec<Span> {
        let mut all = Vec::new();
        for (index, reach) in self.network.reaches.iter().enumerate() {
            let rounds = &self.rounds.stations[reach.sender].rounds;
            if reach.resource != resource || rounds.items.is_empty() {
                continue;
            }
            for event in &rounds.get(round).events {
                if let Some(begin) = positions.begin(event, index, shift) {
                    let occupied = positions.occupied(event.octets, resource);
                    all.push(Span { min: begin.min, max: begin.max + occupied });
                }
            }
        }
        all
    }
}

/// What is left of a resource in a round, in attoseconds.
struct RoundLeft {
    left: i128,
    whole: i128,
    gap: i128,
}
