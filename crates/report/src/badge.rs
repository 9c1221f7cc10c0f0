//! Verdicts as badges of a page.

use onbeat_measure::Verdict;
use serde::Serialize;

/// How often there is a verdict.
#[derive(Debug, Serialize)]
pub(crate) struct VerdictCount {
    class: &'static str,
    name: &'static str,
    count: usize,
}

/// The verdicts that there are, the worst first.
pub(crate) fn verdict_counts(verdicts: &[Verdict]) -> Vec<VerdictCount> {
    [Verdict::Broken, Verdict::Kept, Verdict::NotJudged, Verdict::NoPromise]
        .into_iter()
        .map(|v| VerdictCount {
            class: class(v),
            name: v.as_str(),
            count: verdicts.iter().filter(|other| **other == v).count(),
        })
        .filter(|v| v.count > 0)
        .collect()
}

/// What style sheets call a verdict.
pub(crate) const fn class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Kept => "kept",
        Verdict::Broken => "broken",
        Verdict::NoPromise => "no-promise",
        Verdict::NotJudged => "not-judged",
    }
}
