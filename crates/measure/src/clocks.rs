//! The clocks that a protocol steered in a run or a simulation, and what becomes of promises that
//! count with better ones.
//!
//! The plan counts with clocks that are right to within some error (`docs/gptp.md`). Where one was
//! further off, at any time, nothing that was promised is called kept or broken: whatever goes by
//! that clock, or meets what does, may be early or late, and the plan's premise did not hold.

use crate::result::Verdict;
use onbeat_model::observed::{ClockObserved, ClockPhase};
use onbeat_model::record::{Carrier, RunLog};
use onbeat_model::system::{NodeId, System, TimeMode};
use onbeat_model::time::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A clock that gPTP steered. Errors are against true time, which is that of the described
/// grandmaster, without their signs, and without what a fault lets the clock step by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClockResult {
    /// The host or bridge.
    pub node: String,
    /// The largest error that the plan counts with.
    pub assumed_ns: i64,
    /// Before the first fault of a link or node.
    pub before: Option<ClockErrors>,
    /// From the beginning of the first such fault to the end of the last one.
    pub during: Option<ClockErrors>,
    /// After the last one.
    pub after: Option<ClockErrors>,
    /// When the first fault began; null if there was none.
    pub fault_ns: Option<i64>,
    /// How long after that the error was within what the plan counts with for good; null if it was
    /// not at the end, or there was no fault.
    pub back_after_ns: Option<i64>,
    /// When the error was for the first and for the last time larger than the plan counts with;
    /// null if it never was.
    pub beyond_ns: Option<[i64; 2]>,
    /// Whose time it had at the end, as far as it knew.
    pub grandmaster: Option<String>,
    /// When the clock was looked at, at about equal intervals; in a simulation in the first
    /// repetition.
    pub at_ns: Vec<i64>,
    /// How far it was ahead then, with the sign.
    pub error_ns: Vec<i64>,
}

/// The largest errors of a clock for some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClockErrors {
    /// Against true time.
    pub error_ns: i64,
    /// Against the clock of the grandmaster that it followed then.
    pub from_grandmaster_ns: i64,
}

/// What was seen of the clocks of a system.
pub(crate) fn results(system: &System, clocks: &[ClockObserved]) -> Vec<ClockResult> {
    let name = |node: NodeId| system.node(node).name.clone();
    let errors = |phase: ClockPhase| ClockErrors {
        error_ns: phase.error.as_ns(),
        from_grandmaster_ns: phase.from_source.as_ns(),
    };
    let of = |clock: &ClockObserved| ClockResult {
        node: name(clock.node),
        assumed_ns: clock.assumed.as_ns(),
        before: clock.before.map(errors),
        during: clock.during.map(errors),
        after: clock.after.map(errors),
        fault_ns: clock.fault.map(|at| at.as_ns()),
        back_after_ns: clock.back_after().map(Span::as_ns),
        beyond_ns: clock.beyond.map(|ends| ends.map(|at| at.as_ns())),
        grandmaster: clock.source.map(name),
        at_ns: clock.samples.iter().map(|sample| sample.at.as_ns()).collect(),
        error_ns: clock.samples.iter().map(|sample| sample.error.as_ns()).collect(),
    };
    clocks.iter().map(of).collect()
}

/// Why nothing is judged, if that is so: the clock that was the furthest beyond what the plan
/// counts with.
pub(crate) fn premise_broken(system: &System, clocks: &[ClockObserved]) -> Option<String> {
    let beyond = clocks.iter().filter(|clock| clock.beyond.is_some());
    let worst = beyond.max_by_key(|clock| clock.error() - clock.assumed)?;
    Some(format!(
        "the clock of `{}` was wrong by up to {}, and the plan counts with {}",
        system.node(worst.node).name,
        worst.error(),
        worst.assumed
    ))
}

/// The same of a run, whose file may not have the clocks that it should.
pub(crate) fn premise_of_run_broken(system: &System, log: &RunLog) -> Option<String> {
    let in_run = system.synchronisation.is_some_and(|it| it.in_run)
        && log.network == Carrier::Emulated
        && log.time == TimeMode::Virtual;
    if in_run && log.clocks.is_empty() {
        return Some("it is not known how wrong the clocks were that gPTP kept".to_owned());
    }
    premise_broken(system, &log.clocks)
}

/// Takes back what was judged, if the premise of what was promised did not hold.
pub(crate) fn withhold(premise: Option<&str>, verdict: &mut Verdict, reason: &mut String) {
    if let (Some(why), Verdict::Kept | Verdict::Broken) = (premise, *verdict) {
        (*verdict, *reason) = (Verdict::NotJudged, format!("{why} ({reason})"));
    }
}
