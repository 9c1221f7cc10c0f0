//! All that is known of a graph.

use super::{Limits, chain, meeting, time};
use crate::schedule;
use onbeat_model::graph::Graph;
use onbeat_model::plan::Plan;
use onbeat_model::system::System;
use onbeat_model::timing::{Chain, Level, Study};

/// Studies a graph: both levels, the chains that are asked for, the hosts' processors. `described`
/// is the system that [`super::system_graph`] made the graph of, if one did, and its plan.
pub fn study(
    name: &str,
    graph: Graph,
    mut chains: Vec<Chain>,
    limits: Limits,
    described: Option<(&System, &Plan)>,
) -> Study {
    let interference = schedule::interference(&graph);
    let program = time(&graph, Level::Program, &[], limits);
    let platform = time(&graph, Level::Platform, &interference, limits);
    let closer = described
        .filter(|_| !chains.is_empty())
        .map(|described| meeting::closer(described, &graph, &platform, &chains));
    for asked in &mut chains {
        asked.time = chain(closer.as_ref().unwrap_or(&graph), &platform, &asked.channels);
    }
    let schedules = schedule::analyse(&graph);
    Study { name: name.to_owned(), graph, program, platform, chains, schedules }
}
