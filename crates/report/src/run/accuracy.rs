//! How exact clocks were that gPTP kept in runs, beside published figures.

use super::end_to_end::noted;
use super::table::{references, scenario_name};
use onbeat_measure::{ClockErrors, ClockResult, RunResult, Statistics};
use onbeat_model::system::{NodeId, Quantity, Subject, System};
use onbeat_model::time::Span;

/// What the cells of a row are; errors in nanoseconds, without their signs.
pub(super) const HEADINGS: [&str; 5] = ["run", "clock", "max", "avg", "σ"];
/// How many of them are no numbers.
pub(super) const TEXTS: usize = 2;

/// Rows of the clocks of which there are published figures, each followed by these: whether they
/// are published, and the cells. The maximum is of the whole run; mean and σ are of the samples.
pub(super) fn rows(system: &System, runs: &[&RunResult]) -> Vec<(bool, Vec<String>)> {
    let mut rows = Vec::new();
    for run in runs {
        for clock in &run.clocks {
            let node = system.nodes.iter().position(|node| node.name == clock.node);
            let Some(of) = node.map(|at| Subject::Clock(NodeId(at as u32))) else { continue };
            let found = || references(system, &run.scenario, of, Quantity::ClockError);
            if found().next().is_none() {
                continue;
            }
            rows.push((false, measured(run, clock)));
            for reference in found() {
                let figure = |span: Option<Span>| match span {
                    Some(span) => span.as_ns().to_string(),
                    None => "–".to_owned(),
                };
                let mut cells = vec![noted(system, reference), clock.node.clone()];
                cells.extend([reference.max, reference.avg, reference.stddev].map(figure));
                rows.push((true, cells));
            }
        }
    }
    rows
}

fn measured(run: &RunResult, clock: &ClockResult) -> Vec<String> {
    let sizes = clock.error_ns.iter().map(|ns| ns.saturating_abs()).collect();
    let figures = Statistics::of(sizes);
    let phases = [clock.before, clock.during, clock.after];
    let max = phases.iter().flatten().map(|errors: &ClockErrors| errors.error_ns).max();
    let figure = |ns: Option<i64>| ns.map_or("–".to_owned(), |ns| ns.to_string());
    vec![
        scenario_name(&run.scenario).to_owned(),
        clock.node.clone(),
        figure(max),
        figure(figures.map(|f| f.avg)),
        figure(figures.map(|f| f.stddev)),
    ]
}
