//! What a comparison comes to, in a sentence or two.

use super::document::{Comparison, Verdict};
use super::runs::RUNS_ENOUGH;

impl Comparison {
    /// Whether its runs were dealt to both sides, or would have been, were there enough.
    fn of_machine(&self) -> bool {
        let figures = || self.series.iter().flat_map(|series| &series.figures);
        self.too_few_runs() || figures().any(|figure| figure.chance_per_mille.is_some())
    }

    /// Whether there are too few runs to evaluate anything by dealing them to both sides.
    pub fn too_few_runs(&self) -> bool {
        self.resamples == 0
    }

    /// How many figures have this verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        let figures = self.series.iter().flat_map(|series| &series.figures);
        figures.filter(|figure| figure.verdict == verdict).count()
    }

    /// The verdict in a sentence or two.
    pub fn conclusion(&self) -> String {
        let (worse, better) = (self.count(Verdict::Worse), self.count(Verdict::Better));
        let effect = shown_per_mille(self.effect_per_mille);
        let error = shown_per_mille(self.error_per_mille);
        let judged = self.judged;
        let within = match self.of_machine() {
            true => ", if the runs of both took turns",
            false => "",
        };
        let changed = match (worse, better) {
            (0, 0) => format!("no figure changed by more than {effect} for sure"),
            (worse, 0) => format!("{worse} larger by more than {effect}"),
            (0, better) => format!("{better} smaller by more than {effect}"),
            (worse, better) => format!("{worse} larger by more than {effect}, {better} smaller"),
        };
        match self.verdict {
            Verdict::NotJudged => format!(
                "Whether they differ cannot be told: {}.",
                match self.too_few_runs() {
                    true => format!(
                        "{} and {} runs are too few to know how far runs of one setting are apart; \
                         {RUNS_ENOUGH} of each, in turns, can be told apart",
                        self.runs[0], self.runs[1]
                    ),
                    false => "no series has enough values in both".to_owned(),
                }
            ),
            verdict => format!(
                "The second is {}: of {judged} figures judged {changed}. Equal ones are called \
                 different in at most {error} of such comparisons{within}.",
                match verdict {
                    Verdict::NotDistinguishable => "not distinguishable from the first",
                    other => other.as_str(),
                }
            ),
        }
    }
}

/// Thousandths as per cent: `5 %`, `0.5 %`.
pub fn shown_per_mille(per_mille: u32) -> String {
    match per_mille % 10 {
        0 => format!("{} %", per_mille / 10),
        tenths => format!("{}.{tenths} %", per_mille / 10),
    }
}
