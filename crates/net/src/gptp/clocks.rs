//! The clocks of a description's nodes as gPTP keeps them.

use super::{Scenario, ScenarioError, Stamping, Trace, simulate};
use onbeat_model::system::{NodeId, StampKind, Synchronisation, System};
use onbeat_model::time::{ClockError, NetTime, Span};

/// From when on clocks count as in sync.
const SETTLED: NetTime = NetTime::from_ns(40_000_000_000);

/// Gives nodes without a described clock error one that is as large and as quick as what gPTP left
/// in a simulation of the description's network: a triangle from the least to the largest error of
/// the settled clock, with a swing for every two times that the error went through the middle. The
/// grandmaster's clock is true time.
///
/// # Errors
/// The network cannot be simulated: it has too many nodes, or one without a link.
pub fn synchronise(system: &mut System) -> Result<(), ScenarioError> {
    let Some(Synchronisation { grandmaster, stamps, seed, .. }) = system.synchronisation else {
        return Ok(());
    };
    let stamps = match stamps {
        StampKind::Hardware => Stamping::HARDWARE,
        StampKind::Coarse => Stamping::COARSE,
        StampKind::Software => Stamping::SOFTWARE,
    };
    let mut scenario = Scenario::of(system, grandmaster, stamps, seed);
    // What goes wrong in a run goes wrong at its instants, not at those of this simulation.
    scenario.faults.clear();
    let trace = simulate(&scenario)?;
    let described = ClockError::default();
    for (index, node) in system.nodes.iter_mut().enumerate() {
        if NodeId(index as u32) != grandmaster && node.clock == described {
            node.clock = settled(&trace, index);
        }
    }
    Ok(())
}

/// A clock error that spans all of a node's.
fn settled(trace: &Trace, node: usize) -> ClockError {
    let samples = trace.samples.iter().filter(|sample| sample.at >= SETTLED);
    let errors: Vec<i64> = samples.filter_map(|s| Some(s.error(node)?.as_ns())).collect();
    let (Some(least), Some(most)) = (errors.iter().min(), errors.iter().max()) else {
        return ClockError::default();
    };
    let offset = (least + most).div_euclid(2);
    let wander = (most - offset).max(offset - least);
    let sides = errors.iter().map(|error| *error > offset).collect::<Vec<bool>>();
    let crossings = sides.windows(2).filter(|pair| pair[0] != pair[1]).count().max(1);
    let lasted = (trace.samples.last().map_or(SETTLED, |last| last.at) - SETTLED).as_ns();
    // No description may ask for a steeper one.
    let least = wander * 4 * 1_100_000_000 / i64::from(ClockError::MAX_DRIFT_PPB);
    let period = (2 * lasted / i64::try_from(crossings).unwrap_or(i64::MAX)).max(least);
    ClockError {
        offset: Span::from_ns(offset),
        drift_ppb: 0,
        wander: Span::from_ns(wander),
        wander_period: Span::from_ns(if wander == 0 { 0 } else { period }),
    }
}
