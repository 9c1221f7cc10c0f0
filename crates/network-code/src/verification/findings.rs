//! What the verifier says.

use super::replay::{ReplayFrame, ReplayIncident, ReplayStep};
use super::witness::ReplayChoices;
use onbeat_model::codes::verification as codes;
use onbeat_model::diagnostic::Code;

/// What is proven, or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NetworkProperty {
    /// Each instruction is one, no path leaves the program, all loops wait, one countdown runs.
    WellFormed,
    /// No two stations' frames are at one resource at once.
    CollisionFree,
    /// `create` and `send` find what they need.
    BufferValidity,
    /// No countdown ends before its `halt`.
    Schedulability,
    /// Each frame that a station receives is copied before the next one of its message.
    Reception,
    /// One master; every slave waits for each round, and long enough.
    Synchronisation,
    /// A station that has lost the beginning of a round sends nothing until the next one.
    Silence,
    /// Each instruction is on a path.
    Reachability,
    /// Best-effort frames fit between real-time frames.
    BestEffort,
}

impl NetworkProperty {
    /// All, in the order in which they are reported.
    pub const ALL: [Self; 9] = [
        Self::WellFormed,
        Self::CollisionFree,
        Self::BufferValidity,
        Self::Schedulability,
        Self::Reception,
        Self::Synchronisation,
        Self::Silence,
        Self::Reachability,
        Self::BestEffort,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::WellFormed => "well-formed",
            Self::CollisionFree => "collision-free",
            Self::BufferValidity => "buffer validity",
            Self::Schedulability => "schedulability",
            Self::Reception => "reception",
            Self::Synchronisation => "synchronisation",
            Self::Silence => "silence after a lost synchronisation",
            Self::Reachability => "reachability",
            Self::BestEffort => "best effort",
        }
    }
}

/// The answer for a property.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProofVerdict {
    /// It holds, under the assumptions of the model.
    Proven,
    /// It does not.
    Violated,
    /// Neither was shown: the findings say what remains.
    Unknown,
}

/// What a finding says of its property.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FindingWeight {
    /// It is violated.
    Violation,
    /// It is not proven.
    Doubt,
    /// Nothing: it is only said.
    Note,
}

/// Something that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProofFinding {
    /// Which kind: a section of `docs/errors.md`.
    pub code: Code,
    /// Of which property.
    pub property: NetworkProperty,
    /// What it says of that.
    pub weight: FindingWeight,
    /// The station, if it is about one: an index.
    pub station: Option<usize>,
    /// The instruction, if it is about one.
    pub address: Option<usize>,
    /// The line of the source, from 1; 0 where there is none.
    pub line: u32,
    /// What is so, in a sentence.
    pub message: String,
    /// An execution that shows it.
    pub counterexample: Option<Box<ProofCounterexample>>,
}

/// An execution that violates a property.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProofCounterexample {
    /// With these, [`super::replay::replay`] shows it again.
    pub choices: ReplayChoices,
    /// The rounds that have to be replayed.
    pub rounds: u32,
    /// What is seen then.
    pub incident: ReplayIncident,
    /// What stations do in the rounds at hand.
    pub steps: Vec<ReplayStep>,
    /// The frames there, of which an overlap names two.
    pub frames: Vec<ReplayFrame>,
}

/// A property, decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecidedProperty {
    /// Which.
    pub property: NetworkProperty,
    /// How.
    pub verdict: ProofVerdict,
    /// Why.
    pub findings: Vec<ProofFinding>,
}

/// What real-time frames leave of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BestEffortShare {
    /// The resource: an index.
    pub resource: usize,
    /// What is left at least, in parts of 10⁶.
    pub share_ppm: u32,
    /// The longest time without any real-time frame that is left in each repetition of the rounds.
    pub longest_gap_ns: u64,
    /// The longest frame that fits there, with header and check sequence; 0 if none does.
    pub longest_frame_octets: u32,
}

/// What was verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verification {
    /// Every property.
    pub properties: Vec<DecidedProperty>,
    /// For each resource what is left; empty where rounds are unknown.
    pub shares: Vec<BestEffortShare>,
    /// The shortest and the longest round, in nanoseconds of network time.
    pub round_ns: Option<(u64, u64)>,
    /// Rounds until everything repeats; none where that is unknown.
    pub hyper_round: Option<usize>,
    /// Instructions that were followed.
    pub steps: usize,
    /// Pairs of frames that were compared.
    pub pairs: usize,
}

impl Verification {
    /// The answer for a property.
    pub fn of(&self, property: NetworkProperty) -> &DecidedProperty {
        let is_it = |decided: &&DecidedProperty| decided.property == property;
        self.properties.iter().find(is_it).expect("every property is decided")
    }

    /// Whether nothing but notes was found.
    pub fn is_proven(&self) -> bool {
        self.properties.iter().all(|property| property.verdict == ProofVerdict::Proven)
    }
}

/// The code of what violates a property.
pub(super) fn code(property: NetworkProperty) -> Code {
    match property {
        NetworkProperty::WellFormed => codes::WELL_FORMED,
        NetworkProperty::CollisionFree => codes::COLLISION,
        NetworkProperty::BufferValidity => codes::BUFFER,
        NetworkProperty::Schedulability => codes::OVERRUN,
        NetworkProperty::Reception => codes::LOST,
        NetworkProperty::Synchronisation => codes::SYNCHRONISATION,
        NetworkProperty::Silence => codes::NOT_SILENT,
        NetworkProperty::Reachability => codes::UNREACHABLE,
        NetworkProperty::BestEffort => codes::BEST_EFFORT,
    }
}
