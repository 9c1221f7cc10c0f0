//! Random systems: what is proven holds in executions, and what is violated replays.

use super::plan::{Dice, SystemPlan};
use onbeat_network_code::verification::replay::{
    GuardPlace, ReplayFrame, ReplayIncident, ReplayLimits, ReplayWorld, replay,
};
use onbeat_network_code::verification::{
    FindingWeight, NetworkModel, NetworkProperty, ProofVerdict, Verification, verify,
};
use onbeat_runtime::network_code::instruction::{Condition, Instruction, MessageId};
use std::collections::{BTreeMap, BTreeSet};

/// Executions of each system.
const EXECUTIONS: u64 = 6;
/// Rounds of each execution.
const ROUNDS: u32 = 9;
/// What applications write: what guards compare with, and what is beside it.
const WORDS: [u32; 14] =
    [0, 1, 2, 3, 4, 5, 6, 10, 11, 1 << 20, u32::MAX, u32::MAX - 4, 1 << 31, (1 << 31) - 1];

/// A world that does anything within the model.
struct RandomWorld<'a> {
    network: &'a NetworkModel,
    dice: Dice,
    /// Always at a limit of everything, or anywhere within.
    is_extreme: bool,
    drift: BTreeMap<usize, i64>,
    loses: bool,
}

impl<'a> RandomWorld<'a> {
    fn new(network: &'a NetworkModel, seed: u64, is_extreme: bool, loses: bool) -> Self {
        Self { network, dice: Dice::new(seed), is_extreme, drift: BTreeMap::new(), loses }
    }

    fn choose(&mut self, from: i64, to: i64) -> i64 {
        if self.is_extreme || self.dice.one_in(3) {
            return if self.dice.one_in(2) { from } else { to };
        }
        from + self.dice.below((to - from + 1) as u64) as i64
    }
}

impl ReplayWorld for RandomWorld<'_> {
    fn drift_ppb(&mut self, station: usize, _: u32) -> i64 {
        let limit = i64::from(self.network.stations[station].drift_ppb_max);
        let drift = self.choose(-limit, limit);
        // An oscillator keeps its error, or, here, has another one in each round.
        if self.is_extreme { *self.drift.entry(station).or_insert(drift) } else { drift }
    }

    fn resource_drift_ppb(&mut self, resource: usize) -> i64 {
        let limit = i64::from(self.network.resources[resource].drift_ppb_max);
        self.choose(-limit, limit)
    }

    fn delay_ns(&mut self, reach: usize, _: u32) -> u64 {
        let reach = &self.network.reaches[reach];
        self.choose(reach.delay_min_ns as i64, reach.delay_max_ns as i64) as u64
    }

    fn phase_ns(&mut self, _: usize, _: u32) -> u64 {
        self.choose(0, 8) as u64
    }

    fn guard(&mut self, _: GuardPlace, evaluated: Option<bool>) -> bool {
        evaluated.unwrap_or_else(|| self.dice.one_in(2))
    }

    fn written(&mut self, _: usize, _: u8, _: usize) -> Option<u32> {
        Some(WORDS[self.dice.below(WORDS.len() as u64) as usize])
    }

    fn sent(&mut self, _: MessageId, _: u32, _: usize) -> Option<u32> {
        None
    }

    fn pick(&mut self, _: usize) -> usize {
        0
    }

    fn loses(&mut self, _: usize, round: u32) -> bool {
        self.loses && round > 0 && self.dice.one_in(4)
    }
}

/// The property that an incident violates.
fn property(incident: &ReplayIncident) -> Option<NetworkProperty> {
    Some(match incident {
        ReplayIncident::Overlap { .. } => NetworkProperty::CollisionFree,
        ReplayIncident::Overrun { .. } => NetworkProperty::Schedulability,
        ReplayIncident::Replaced { .. } => NetworkProperty::WellFormed,
        ReplayIncident::Trapped { .. }
        | ReplayIncident::Unwritten { .. }
        | ReplayIncident::Stalled { .. } => NetworkProperty::BufferValidity,
        ReplayIncident::Missed { .. }
        | ReplayIncident::TimedOut { .. }
        | ReplayIncident::Unsynchronised { .. }
        | ReplayIncident::SecondMaster { .. } => NetworkProperty::Synchronisation,
        ReplayIncident::Lost { .. } => NetworkProperty::Reception,
        ReplayIncident::Empty { .. } => return None,
    })
}

/// What others rely on: where it does not hold, nothing is said of the rest.
const BASE: [NetworkProperty; 4] = [
    NetworkProperty::WellFormed,
    NetworkProperty::CollisionFree,
    NetworkProperty::Synchronisation,
    NetworkProperty::Schedulability,
];

pub(super) fn is_proven(verification: &Verification, property: NetworkProperty) -> bool {
    verification.of(property).verdict == ProofVerdict::Proven
}

/// Whether a system is accepted: only unreachable instructions are allowed.
pub(super) fn is_accepted(verification: &Verification) -> bool {
    let others = NetworkProperty::ALL.into_iter().filter(|it| *it != NetworkProperty::Reachability);
    others.into_iter().all(|it| is_proven(verification, it))
}

/// Executes a system: nothing happens that was proven not to.
pub(super) fn execute(seed: u64, network: &NetworkModel, verification: &Verification) -> u64 {
    if !BASE.iter().all(|it| is_proven(verification, *it)) {
        return 0;
    }
    let mut frames = 0;
    for number in 0..EXECUTIONS {
        let loses = number + 1 == EXECUTIONS;
        let mut world = RandomWorld::new(network, seed ^ number << 48, number % 2 == 0, loses);
        let limits = ReplayLimits { rounds: ROUNDS, keeps_steps: false };
        let replay = replay(network, &mut world, limits);
        assert!(replay.rounds >= ROUNDS, "seed {seed}: {} rounds", replay.rounds);
        frames += replay.frames.len() as u64;
        for incident in &replay.incidents {
            let is_refuted = match incident {
                ReplayIncident::Unsynchronised { .. } => {
                    is_proven(verification, NetworkProperty::Silence)
                }
                _ if loses => false,
                _ => property(incident).is_some_and(|it| is_proven(verification, it)),
            };
            assert!(!is_refuted, "seed {seed}, execution {number}: {incident:?}");
        }
    }
    frames
}

/// Whether frames overlap in an execution, of some.
pub(super) fn collides(seed: u64, network: &NetworkModel) -> bool {
    (0..3 * EXECUTIONS).any(|number| {
        let mut world = RandomWorld::new(network, seed ^ number << 48, number % 2 == 0, false);
        let limits = ReplayLimits { rounds: ROUNDS, keeps_steps: false };
        let replay = replay(network, &mut world, limits);
        replay.incidents.iter().any(|it| matches!(it, ReplayIncident::Overlap { .. }))
    })
}

/// When the frames of each message begin at each resource in a round, with exact clocks and the
/// least delays: by message and resource, in ns.
pub(super) fn begins(network: &NetworkModel) -> BTreeMap<(u8, usize), i64> {
    let mut world = ExactWorld(network);
    let replay = replay(network, &mut world, ReplayLimits { rounds: 3, keeps_steps: false });
    let frames = replay.frames.iter().filter(|frame| frame.round == 1);
    let of =
        |frame: &ReplayFrame| Some(((frame.message?.0, frame.resource), frame.begin.floor_ns()));
    frames.filter_map(of).collect()
}

/// A world in which all is nominal.
struct ExactWorld<'a>(&'a NetworkModel);

impl ReplayWorld for ExactWorld<'_> {
    fn drift_ppb(&mut self, _: usize, _: u32) -> i64 {
        0
    }

    fn resource_drift_ppb(&mut self, _: usize) -> i64 {
        0
    }

    fn delay_ns(&mut self, reach: usize, _: u32) -> u64 {
        self.0.reaches[reach].delay_min_ns
    }

    fn phase_ns(&mut self, _: usize, _: u32) -> u64 {
        0
    }

    fn guard(&mut self, _: GuardPlace, evaluated: Option<bool>) -> bool {
        evaluated.unwrap_or(false)
    }

    fn written(&mut self, _: usize, _: u8, _: usize) -> Option<u32> {
        Some(0)
    }

    fn sent(&mut self, _: MessageId, _: u32, _: usize) -> Option<u32> {
        None
    }

    fn pick(&mut self, _: usize) -> usize {
        0
    }

    fn loses(&mut self, _: usize, _: u32) -> bool {
        false
    }
}

/// Each counterexample shows what it says.
pub(super) fn replays(seed: u64, network: &NetworkModel, verification: &Verification) -> usize {
    let mut shown = 0;
    for of in &verification.properties {
        let examples = of.findings.iter().filter_map(|finding| finding.counterexample.as_ref());
        for example in examples {
            let replay = example.choices.replay(network, example.rounds);
            let seen =
                replay.incidents.iter().any(|incident| match (incident, &example.incident) {
                    (
                        ReplayIncident::Overlap { first, second, .. },
                        ReplayIncident::Overlap { first: one, second: other, .. },
                    ) => {
                        let frames = [replay.frames[*first], replay.frames[*second]];
                        frames == [example.frames[*one], example.frames[*other]]
                    }
                    (one, other) => one == other,
                });
            assert!(seen, "seed {seed}: {:?}", example.incident);
            shown += 1;
        }
    }
    shown
}

/// How many systems, at first: `NETWORK_CODE_SYSTEMS` has another number.
pub(super) fn systems() -> u64 {
    std::env::var("NETWORK_CODE_SYSTEMS").map_or(150, |count| count.parse().unwrap())
}

/// What was drawn.
#[derive(Default)]
struct Drawn {
    verdicts: BTreeMap<(NetworkProperty, ProofVerdict), u64>,
    instructions: BTreeSet<String>,
    accepted: u64,
    shown: usize,
    frames: u64,
}

fn kind(instruction: Instruction) -> String {
    match instruction {
        Instruction::Branch { guard, .. } => {
            let condition = match guard.condition {
                Condition::Immediate { relation, .. } => format!("Immediate {relation:?}"),
                Condition::Words { relation, .. } => format!("Words {relation:?}"),
                other => format!("{other:?}"),
            };
            condition.split(['(', '{']).next().unwrap().trim().to_owned()
        }
        other => format!("{other:?}").split(' ').next().unwrap().to_owned(),
    }
}

#[test]
fn random_systems_do_what_is_proven() {
    let mut drawn = Drawn::default();
    for seed in 0..systems() {
        let plan = SystemPlan::random(seed);
        let network = plan.network();
        let verification = verify(&network);
        for word in network.stations.iter().flat_map(|station| &station.program.words) {
            drawn.instructions.insert(kind(Instruction::decode(*word).unwrap()));
        }
        for of in &verification.properties {
            *drawn.verdicts.entry((of.property, of.verdict)).or_default() += 1;
            let violations =
                of.findings.iter().filter(|it| it.weight == FindingWeight::Violation).count();
            assert_eq!(violations > 0, of.verdict == ProofVerdict::Violated, "seed {seed}");
        }
        drawn.accepted += u64::from(is_accepted(&verification));
        drawn.frames += execute(seed, &network, &verification);
        drawn.shown += replays(seed, &network, &verification);
    }
    let Drawn { verdicts, instructions, accepted, shown, frames } = drawn;
    println!("{} systems, {accepted} accepted, {shown} shown, {frames} frames", systems());
    println!("{verdicts:#?}");
    let kinds = [
        "Nop",
        "Create",
        "Send",
        "Receive",
        "Future",
        "Halt",
        "SyncMaster",
        "SyncSlave",
        "Always",
        "Count",
        "Fresh",
        "Received",
        "SyncTimeout",
        "Overrun",
        "Flag",
        "Transmitting",
        "LinkUp",
        "Immediate Equal",
        "Immediate Less",
        "Immediate AtMost",
        "Immediate Below",
        "Immediate NotAbove",
        "Words Equal",
        "Words Less",
        "Words Below",
    ];
    let all: BTreeSet<String> = kinds.map(String::from).into();
    assert_eq!(instructions, all);
    assert!(accepted * 2 > systems(), "{accepted}");
    assert!(shown > 0);
    assert!(verdicts.contains_key(&(NetworkProperty::CollisionFree, ProofVerdict::Violated)));
}
