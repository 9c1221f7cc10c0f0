//! The JSON contract of a comparison, version 2. `docs/compare.md` explains it,
//! `schema/comparison.schema.json` is made from these types.

use super::input::{Kind, Quantity};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The name of the contract that these types are.
pub const FORMAT: &str = "onbeat-comparison";
/// The version of the contract that these types are.
pub const VERSION: u32 = 2;

/// Whether the second of two runs is worse than the first, and by what. Under one version fields
/// may be added; none is removed, renamed or given another meaning.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// Always `onbeat-comparison`.
    pub format: String,
    /// Which contract this is: 2.
    pub version: u32,
    /// What both are.
    pub kind: Kind,
    /// The system's name; empty for measurements, which are of a machine.
    pub system: String,
    /// By how much a figure has to change to be of interest, in thousandths of the smaller of both.
    pub effect_per_mille: u32,
    /// How often, at most, equal runs get another verdict than `not distinguishable`, in
    /// thousandths: of whole comparisons, not of figures.
    pub error_per_mille: u32,
    /// How many runs the first and the second are.
    pub runs: [u32; 2],
    /// How many figures were judged, all of them at once.
    pub judged: u32,
    /// Of how many random draws the judgement is: resamples of each run, or ways to deal all runs
    /// to both sides.
    pub resamples: u32,
    /// Of the second.
    pub verdict: Verdict,
    /// What differs between the two beside figures, for a person.
    pub notes: Vec<String>,
    /// Those that both have, in the order of the first.
    pub series: Vec<SeriesComparison>,
}

/// What is said of the second run.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum Verdict {
    /// It cannot be told: there are too few values, or too few runs.
    #[serde(rename = "not judged")]
    NotJudged,
    /// No change beyond the effect is shown. That is no proof of equality.
    #[serde(rename = "not distinguishable")]
    NotDistinguishable,
    /// A figure is smaller by more than the effect, and none is larger.
    #[serde(rename = "better")]
    Better,
    /// A figure is larger by more than the effect, and none is smaller.
    #[serde(rename = "worse")]
    Worse,
    /// A figure is larger by more than the effect, and another one smaller.
    #[serde(rename = "mixed")]
    Mixed,
}

impl Verdict {
    /// The verdict as it is in the JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotJudged => "not judged",
            Self::NotDistinguishable => "not distinguishable",
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Mixed => "mixed",
        }
    }

    /// The verdict on the first, compared with the second.
    pub(super) const fn mirrored(self) -> Self {
        match self {
            Self::Better => Self::Worse,
            Self::Worse => Self::Better,
            same => same,
        }
    }

    /// The verdict on what has figures with these.
    pub(super) fn of_all(verdicts: impl Iterator<Item = Self>) -> Self {
        verdicts.fold(Self::NotJudged, |all, next| match (all, next) {
            (Self::Better, Self::Worse) | (Self::Worse, Self::Better) => Self::Mixed,
            (all, next) => all.max(next),
        })
    }
}

/// What became of one series.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SeriesComparison {
    /// The scenario; empty for the plain run settings, simulations and measurements.
    pub run: String,
    /// As `channel to listener`, or the measurement's own name.
    pub name: String,
    /// What its values are.
    pub quantity: Quantity,
    /// How many values the first and the second run have.
    pub values: [u64; 2],
    /// Of its figures together.
    pub verdict: Verdict,
    /// In order: smaller quantiles first, the maximum last.
    pub figures: Vec<FigureComparison>,
}

/// A figure of both runs. Larger is worse for all of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FigureComparison {
    /// `p10`, `p50`, `p90`, `p99`, `p999`, `p9999`, `max`, or `share`.
    pub figure: String,
    /// Times, in nanoseconds; null for shares.
    pub values_ns: Option<Values>,
    /// Shares, in parts per million; null for times.
    pub values_ppm: Option<Values>,
    /// The blocks of successive values that were drawn from, of the first and the second; null if
    /// nothing was drawn.
    pub blocks: Option<[u32; 2]>,
    /// Of `max` only: how many of the largest block maxima are the second run's.
    pub largest: Option<LargestMaxima>,
    /// How many of 1,000 ways to deal the runs to both sides would show as much in some figure;
    /// null where runs were not dealt.
    pub chance_per_mille: Option<u32>,
    /// Of the second.
    pub verdict: Verdict,
    /// Why, for a person.
    pub verdict_reason: String,
}

/// A figure of both runs in one unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Values {
    /// The first run's.
    pub first: i64,
    /// The second run's.
    pub second: i64,
    /// The second's less the first's.
    pub change: i64,
    /// The change is at least so much; null where there is no interval. Of several runs of a
    /// machine: of any of the second against any of the first.
    pub change_low: Option<i64>,
    /// The change is at most so much.
    pub change_high: Option<i64>,
    /// What a change has to exceed: the effect, of the smaller of both, and the clock's step.
    pub limit: i64,
    /// From about which change on these two runs would have shown that it is worse.
    pub seen_from: Option<i64>,
}

/// Block maxima of both runs, put in one order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LargestMaxima {
    /// How many of the largest were looked at.
    pub of: u32,
    /// How many of these are the second run's, when the first's are increased by the effect.
    pub in_second: u32,
    /// How many are the first run's, when the second's are increased by the effect.
    pub in_first: u32,
}

impl FigureComparison {
    /// Its values, in whatever unit.
    pub fn amounts(&self) -> Option<&Values> {
        self.values_ns.as_ref().or(self.values_ppm.as_ref())
    }
}

impl Comparison {
    /// The comparison as indented JSON that ends with a line feed.
    pub fn to_json(&self) -> String {
        crate::contract::indented(self)
    }
}

/// The JSON Schema of [`Comparison`]. Ends with a line feed.
pub fn schema() -> String {
    crate::contract::schema_of::<Comparison>()
}
