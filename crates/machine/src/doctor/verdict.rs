//! Whether what was found carries what is guaranteed.

use super::finding::{Finding, State};
use super::requirements::{Guarantee, Requirements};

/// What is found for one guarantee.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict<'a> {
    /// What is guaranteed.
    pub guarantee: &'a Guarantee,
    /// The worst of what affects it; `Ok` if nothing does.
    pub state: State,
    /// The findings that do, the worst first.
    pub against: Vec<&'a Finding>,
}

/// A verdict per guarantee of the system, in its order.
pub fn verdicts<'a>(findings: &'a [Finding], requirements: &'a Requirements) -> Vec<Verdict<'a>> {
    let of_one = |guarantee: &'a Guarantee| {
        let touches = |finding: &&Finding| {
            finding.check.against.iter().any(|need| guarantee.rests_on.contains(need))
        };
        let mut against: Vec<&Finding> =
            findings.iter().filter(|f| f.state != State::Ok).filter(touches).collect();
        against.sort_by_key(|finding| std::cmp::Reverse(finding.state));
        let state = against.first().map_or(State::Ok, |finding| finding.state);
        Verdict { guarantee, state, against }
    };
    requirements.guarantees.iter().map(of_one).collect()
}

/// The worst of all that was found. What could not be seen counts as fine: it is said, and
/// verdicts show it.
pub fn worst(findings: &[Finding]) -> State {
    let states = findings.iter().map(|finding| finding.state);
    states.filter(|state| *state != State::Unknown).max().unwrap_or(State::Ok)
}
