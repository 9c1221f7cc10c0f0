//! All that is known of a graph.

use super::{Limits, chain, time};
use crate::schedule;
use onbeat_model::graph::Graph;
use onbeat_model::timing::{Chain, Level, Study};

/// Studies a system's graph: both levels, the chains that are asked for, the hosts' processors.
pub fn study(name: &str, graph: Graph, mut chains: Vec<Chain>, limits: Limits) -> Study {
    let interference = schedule::interference(&graph);
    let program = time(&graph, Level::Program, &[], limits);
    let platform = time(&graph, Level::Platform, &interference, limits);
    for asked in &mut chains {
        asked.time = chain(&graph, &platform, &asked.channels);
    }
    let schedules = schedule::analyse(&graph);
    Study { name: name.to_owned(), graph, program, platform, chains, schedules }
}
