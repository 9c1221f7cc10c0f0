//! The graphs of a description's programs.

use onbeat_model::graph::Graph;
use onbeat_model::system::System;

/// The graphs of the programs with a file of tasks, each with its position in the system's
/// programs.
pub(crate) fn program_graphs(system: &System) -> Vec<(usize, Graph)> {
    let programs = system.programs.iter().enumerate();
    programs.filter_map(|(at, program)| Some((at, program.tasks.clone()?))).collect()
}
