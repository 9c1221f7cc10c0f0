//! The verifier: whether programs of a network keep apart, keep their times, and receive what is
//! sent, whatever clocks, delays and applications do within the model.
//!
//! ```text
//! StationCode ──→ PathFinder ──→ NetworkRounds ──→ checks ──→ ReplayChoices ──→ replay
//! instructions    one round      until they repeat            a violation?      it is one
//! ```
//!
//! Each station is followed by itself: a frame of the master begins its rounds, so what it does is
//! a matter of its own clock and of what it receives. Only then are stations compared, in pairs.
//! What a check holds possible is a violation only if [`mod@replay`] shows it; else it is a doubt.

mod best_effort;
mod checks;
mod code;
mod collision;
mod findings;
mod network;
mod paths;
mod positions;
pub mod replay;
mod rounds;
mod state;
mod synchronisation;
mod time;
pub mod timeline;
mod values;
mod witness;

pub use findings::{
    BestEffortShare, DecidedProperty, FindingWeight, NetworkProperty, ProofCounterexample,
    ProofFinding, ProofVerdict, Verification,
};
pub use network::{
    DELAY_NS_MAX, DRIFT_PPB_MAX, NetworkModel, RESOURCES_MAX, Reach, STATIONS_MAX, SharedResource,
    StationModel,
};
pub use paths::{ROUND_CYCLES_MAX, STEPS_MAX};
pub use rounds::ROUNDS_MAX;
pub use time::Attoseconds;
pub use witness::{GuardOutcome, ReplayChoices, SentWord};

use code::StationCode;
use onbeat_model::codes::verification as codes;
use rounds::NetworkRounds;
use time::Span;

/// Findings of a property at most; the verdict does not depend on it.
pub const FINDINGS_MAX: usize = 64;

/// A verification in progress.
struct Proof<'a> {
    network: &'a NetworkModel,
    rounds: NetworkRounds,
    findings: Vec<ProofFinding>,
    pairs: usize,
}

/// Decides every property of a network. The same model always gives the same answer.
pub fn verify(network: &NetworkModel) -> Verification {
    let errors = network.errors();
    if !errors.is_empty() {
        let finding = |message| ProofFinding {
            code: codes::MODEL,
            property: NetworkProperty::WellFormed,
            weight: FindingWeight::Doubt,
            station: None,
            address: None,
            line: 0,
            message,
            counterexample: None,
        };
        return undecided(errors.into_iter().map(finding).collect(), "the model is inconsistent");
    }
    let codes: Vec<_> =
        network.stations.iter().map(|station| StationCode::new(&station.program)).collect();
    let mut findings = Vec::new();
    for (station, code) in codes.iter().enumerate() {
        for (address, message) in code.as_ref().err().into_iter().flatten() {
            findings.push(checks::well_formed(network, station, *address, message));
        }
    }
    let Ok(codes) = codes.into_iter().collect::<Result<Vec<_>, _>>() else {
        return undecided(findings, "a program is not well-formed");
    };
    let rounds = rounds::follow(network, &codes);
    let mut proof = Proof { network, rounds, findings, pairs: 0 };
    proof.local();
    proof.silence();
    proof.reachability();
    proof.cuts();
    let mut shares = Vec::new();
    let mut round_ns = None;
    let mut hyper_round = None;
    if let Some(positions) = proof.roles() {
        proof.synchronisation(&positions);
        proof.collisions(&positions);
        (shares, hyper_round) = proof.best_effort(&positions);
        let count = proof.rounds.stations[positions.master].rounds.items.len();
        let lengths = || (0..count).map(|round| positions.lengths(round));
        let drift = network.stations[positions.master].drift_ppb_max;
        let span = |cycles| Span::cycles(cycles, drift);
        let least = lengths().map(|(min, _)| span(min).min.floor_ns()).min();
        let most = lengths().map(|(_, max)| span(max).max.ceil_ns()).max();
        round_ns = least.zip(most).map(|(least, most)| (least as u64, most as u64));
    } else {
        proof.no_rounds();
    }
    let steps = proof.rounds.stations.iter().map(|station| station.steps).sum();
    let Proof { findings, pairs, .. } = proof;
    Verification { properties: decide(findings), shares, round_ns, hyper_round, steps, pairs }
}

/// Every property with its findings.
fn decide(findings: Vec<ProofFinding>) -> Vec<DecidedProperty> {
    let decided = |property: NetworkProperty| {
        let of = |finding: &&ProofFinding| finding.property == property;
        let mut all: Vec<ProofFinding> = findings.iter().filter(of).cloned().collect();
        all.sort_by_key(|finding| finding.weight);
        let verdict = match all.first().map(|finding| finding.weight) {
            Some(FindingWeight::Violation) => ProofVerdict::Violated,
            Some(FindingWeight::Doubt) => ProofVerdict::Unknown,
            Some(FindingWeight::Note) | None => ProofVerdict::Proven,
        };
        all.truncate(FINDINGS_MAX);
        DecidedProperty { property, verdict, findings: all }
    };
    NetworkProperty::ALL.into_iter().map(decided).collect()
}

/// The answer where nothing could be followed.
fn undecided(mut findings: Vec<ProofFinding>, why: &str) -> Verification {
    for property in NetworkProperty::ALL {
        if property != NetworkProperty::WellFormed {
            findings.push(checks::doubt(property, format!("not decided, because {why}")));
        }
    }
    let properties = decide(findings);
    Verification {
        properties,
        shares: Vec::new(),
        round_ns: None,
        hyper_round: None,
        steps: 0,
        pairs: 0,
    }
}
