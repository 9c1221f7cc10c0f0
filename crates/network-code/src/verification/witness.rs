//! Choices of clocks, delays and guards that make an execution, and whether it shows a violation.

use super::findings::ProofCounterexample;
use super::network::NetworkModel;
use super::paths::{PathNode, ROOT};
use super::replay::{GuardPlace, Replay, ReplayIncident, ReplayLimits, ReplayWorld, replay};
use super::values::Facts;
use onbeat_runtime::network_code::instruction::{Instruction, MessageId};

/// A round that is replayed has at least about so many cycles: its first frame.
const SHORTEST_ROUND: u32 = 64;
/// Rounds that are replayed until a timeout at most.
const WAITING_MAX: u32 = 1_000;

/// A guard's outcome in an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuardOutcome {
    /// The station's round.
    pub round: u32,
    /// Of the branch.
    pub address: usize,
    /// Whether it was taken.
    pub is_taken: bool,
}

/// A word of a frame in an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentWord {
    /// What is sent.
    pub message: MessageId,
    /// The sender's round.
    pub round: u32,
    /// Which word.
    pub index: u8,
    /// Its value.
    pub value: u32,
}

/// All that the definition leaves open, for one execution. Pairs are values before the round
/// [`ReplayChoices::turn`] and from it on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayChoices {
    /// The drift of each station, in ppb.
    pub drift_ppb: Vec<i64>,
    /// The drift of each resource, in ppb.
    pub resource_drift_ppb: Vec<i64>,
    /// How much later than it comes each station sees what comes, in ns.
    pub phase_ns: Vec<(u64, u64)>,
    /// The delay of each reach of the model, in ns.
    pub delay_ns: Vec<(u64, u64)>,
    /// From which round on the second values of pairs hold.
    pub turn: u32,
    /// The outcomes of the guards of each station, in order.
    pub guards: Vec<Vec<GuardOutcome>>,
    /// Words of frames that guards of several stations look at. Others are decided by the first
    /// guard that does.
    pub words: Vec<SentWord>,
    /// What open conditions are besides: all false for 0, all true for 1, else either.
    pub salt: u32,
    /// A station to which the beginnings of rounds do not come, and from which one on.
    pub lost: Option<(usize, u32)>,
}

impl ReplayChoices {
    /// Exact clocks, least delays, no decisions.
    pub(super) fn nominal(network: &NetworkModel) -> Self {
        let least = |reach: &super::network::Reach| (reach.delay_min_ns, reach.delay_min_ns);
        Self {
            drift_ppb: vec![0; network.stations.len()],
            resource_drift_ppb: vec![0; network.resources.len()],
            phase_ns: vec![(0, 0); network.stations.len()],
            delay_ns: network.reaches.iter().map(least).collect(),
            turn: u32::MAX,
            guards: vec![Vec::new(); network.stations.len()],
            words: Vec::new(),
            salt: 0,
            lost: None,
        }
    }

    /// Chooses words by which facts are true in a round.
    pub(super) fn choose_words(&mut self, facts: &Facts, round: u32) {
        let word = |(message, age, index, value): (MessageId, u8, u8, u32)| {
            let round = round.checked_sub(u32::from(age))?;
            Some(SentWord { message, round, index, value })
        };
        self.words = facts.values().into_iter().filter_map(word).collect();
    }

    /// The same with the phases and delays of another one from a round on.
    pub(super) fn turning(&self, other: &Self, turn: u32) -> Self {
        let pairs = |of: &[(u64, u64)], then: &[(u64, u64)]| {
            of.iter().zip(then).map(|(of, then)| (of.0, then.1)).collect()
        };
        Self {
            phase_ns: pairs(&self.phase_ns, &other.phase_ns),
            delay_ns: pairs(&self.delay_ns, &other.delay_ns),
            turn,
            ..self.clone()
        }
    }

    /// Executes the programs so.
    pub fn replay(&self, network: &NetworkModel, rounds: u32) -> Replay {
        let mut world = Scripted { choices: self, next: vec![0; network.stations.len()] };
        replay(network, &mut world, ReplayLimits { rounds, keeps_steps: true })
    }

    /// An open condition.
    fn salted(&self, at: GuardPlace) -> bool {
        if self.salt < 2 {
            return self.salt == 1;
        }
        let parts = [self.salt, at.station as u32, at.round, at.address as u32];
        let mixed = parts.into_iter().fold(0_u32, |mixed, part| {
            let mixed = (mixed ^ part).wrapping_mul(0x9e37_79b1);
            mixed ^ mixed >> 15
        });
        mixed & 1 == 1
    }

    fn pair<T: Copy>(&self, pair: (T, T), round: u32) -> T {
        if round < self.turn { pair.0 } else { pair.1 }
    }
}

/// The decisions that lead to a node.
pub(super) fn decisions(nodes: &[PathNode], node: u32) -> Vec<GuardOutcome> {
    let mut outcomes = Vec::new();
    let mut at = node;
    while at != ROOT {
        let PathNode { before, round, at: address, is_taken } = nodes[at as usize];
        outcomes.push(GuardOutcome { round, address: usize::from(address), is_taken });
        at = before;
    }
    outcomes.reverse();
    outcomes
}

/// A world that does as chosen.
struct Scripted<'a> {
    choices: &'a ReplayChoices,
    next: Vec<usize>,
}

impl ReplayWorld for Scripted<'_> {
    fn drift_ppb(&mut self, station: usize, _: u32) -> i64 {
        self.choices.drift_ppb[station]
    }

    fn resource_drift_ppb(&mut self, resource: usize) -> i64 {
        self.choices.resource_drift_ppb[resource]
    }

    fn delay_ns(&mut self, reach: usize, round: u32) -> u64 {
        self.choices.pair(self.choices.delay_ns[reach], round)
    }

    fn phase_ns(&mut self, station: usize, round: u32) -> u64 {
        self.choices.pair(self.choices.phase_ns[station], round)
    }

    fn guard(&mut self, at: GuardPlace, evaluated: Option<bool>) -> bool {
        let next = self.next[at.station];
        self.next[at.station] += 1;
        let chosen = self.choices.guards[at.station].get(next);
        let chosen = chosen.filter(|chosen| chosen.address == at.address);
        let chosen = chosen.map(|chosen| chosen.is_taken != at.negated);
        evaluated.or(chosen).unwrap_or_else(|| self.choices.salted(at))
    }

    fn written(&mut self, _: usize, _: u8, _: usize) -> Option<u32> {
        None
    }

    fn sent(&mut self, message: MessageId, round: u32, index: usize) -> Option<u32> {
        let is_it = |word: &&SentWord| {
            (word.message, word.round, usize::from(word.index)) == (message, round, index)
        };
        self.choices.words.iter().find(is_it).map(|word| word.value)
    }

    fn pick(&mut self, of: usize) -> usize {
        self.choices.salt as usize % of
    }

    fn loses(&mut self, station: usize, round: u32) -> bool {
        self.choices.lost.is_some_and(|(of, from)| of == station && round >= from)
    }
}

/// The execution as a counterexample, if it shows what is expected.
pub(super) fn witness(
    network: &NetworkModel,
    choices: ReplayChoices,
    round: u32,
    is_expected: impl Fn(&Replay, &ReplayIncident) -> bool,
) -> Option<Box<ProofCounterexample>> {
    // The rounds up to the next one are complete then, or the rounds that a station waits for.
    let waits = choices.lost.map_or(0, |(station, _)| waiting(network, station));
    let rounds = round + 3 + waits;
    let replay = choices.replay(network, rounds);
    let incident = *replay.incidents.iter().find(|incident| is_expected(&replay, incident))?;
    let first = round.saturating_sub(1);
    let is_near = |of: u32| (first..=round + 1).contains(&of);
    let mut frames = Vec::new();
    let mut renamed = incident;
    for (index, frame) in replay.frames.iter().enumerate() {
        let is_named = match &mut renamed {
            ReplayIncident::Overlap { first, second, .. } => {
                let (old, new) = (index, frames.len());
                let ReplayIncident::Overlap { first: one, second: other, .. } = incident else {
                    continue;
                };
                if one == old {
                    *first = new;
                }
                if other == old {
                    *second = new;
                }
                one == old || other == old
            }
            _ => false,
        };
        if is_named || is_near(frame.round) {
            frames.push(*frame);
        }
    }
    let steps = replay.steps.iter().filter(|step| is_near(step.round)).copied().collect();
    Some(Box::new(ProofCounterexample { choices, rounds, incident: renamed, steps, frames }))
}

/// More rounds than the longest `sync slave` of a station waits.
fn waiting(network: &NetworkModel, station: usize) -> u32 {
    let words = network.stations[station].program.words.iter();
    let timeouts = words.filter_map(|word| match Instruction::decode(*word) {
        Ok(Instruction::SyncSlave { timeout }) => Some(timeout),
        _ => None,
    });
    timeouts.max().map_or(0, |timeout| timeout / SHORTEST_ROUND).min(WAITING_MAX)
}
