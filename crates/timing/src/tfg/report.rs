//! The report of a graph: both levels, chains and schedules.

use super::assumptions::assumptions;
use super::{Limits, chain, coincidence, time};
use crate::schedule;
use onbeat_model::graph::Graph;
use onbeat_model::plan::Plan;
use onbeat_model::system::System;
use onbeat_model::timing::{
    Cause, CauseKind, Chain, Level, LockCycle, LockWait, Row, Timing, TimingReport,
};

/// Analyses a graph: both levels, the chains that are asked for, the hosts' processors. `described`
/// is the system that [`super::system_graph`] made the graph of, if one did, and its plan.
pub fn analyse(
    name: &str,
    graph: Graph,
    mut chains: Vec<Chain>,
    limits: Limits,
    described: Option<(&System, &Plan)>,
) -> TimingReport {
    let interference = schedule::interference(&graph);
    let lock_cycles = schedule::lock_cycles(&graph);
    let mut program = time(&graph, Level::Program, &[], limits);
    let mut platform = time(&graph, Level::Platform, &interference, limits);
    let closer = described
        .filter(|_| !chains.is_empty())
        .map(|described| coincidence::closer(described, &graph, &platform, &chains));
    for asked in &mut chains {
        asked.time = chain(closer.as_ref().unwrap_or(&graph), &platform, &asked.channels);
    }
    let schedules = schedule::analyse(&graph);
    for timing in [&mut program, &mut platform] {
        timing.causes.extend(stuck(&lock_cycles, timing));
    }
    let system = described.map(|(system, _)| system);
    let mut assumptions = assumptions(&graph, &schedules, system);
    assumptions.extend(chains.iter().filter(|chain| chain.time.is_cut_short).map(|chain| {
        let name = &chain.name;
        format!("chain {name} was not followed to its end: it has more values than are looked at")
    }));
    let name = name.to_owned();
    TimingReport { name, graph, program, platform, chains, schedules, lock_cycles, assumptions }
}

/// Where tasks may wait for each other's locks for ever.
fn stuck(cycles: &[LockCycle], timing: &Timing) -> Vec<Cause> {
    let first = |cycle: &LockCycle| {
        let is_it = |row: &Row, wait: &LockWait| (row.task, row.node) == (wait.task, wait.node);
        cycle.waits.iter().find_map(|w| timing.rows.iter().position(|row| is_it(row, w)))
    };
    let found = cycles.iter().enumerate();
    found
        .filter_map(|(cycle, of)| {
            let why = CauseKind::Locks { cycle };
            Some(Cause { kind: why, row: first(of)?, path: Vec::new() })
        })
        .collect()
}
