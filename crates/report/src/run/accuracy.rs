//! How exact clocks were, beside published figures: those that gPTP kept in runs, and those of
//! machines, as ptp4l measured them.

use super::end_to_end::noted;
use super::table::{references, scenario_name};
use onbeat_measure::{ClockErrors, ClockResult, PartResult, RunResult, Statistics};
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
        for (name, cells) in clocks(run) {
            let node = system.nodes.iter().position(|node| node.name == name);
            let Some(of) = node.map(|at| Subject::Clock(NodeId(at as u32))) else { continue };
            let found = || references(system, &run.scenario, of, Quantity::ClockError);
            if found().next().is_none() {
                continue;
            }
            rows.push((false, cells));
            for reference in found() {
                let figure = |span: Option<Span>| match span {
                    Some(span) => span.as_ns().to_string(),
                    None => "–".to_owned(),
                };
                let mut cells = vec![noted(system, reference), name.to_owned()];
                cells.extend([reference.max, reference.avg, reference.stddev].map(figure));
                rows.push((true, cells));
            }
        }
    }
    rows
}

/// The clocks of a run by the names of their nodes, each with its row.
fn clocks(run: &RunResult) -> Vec<(&str, Vec<String>)> {
    let kept = run.clocks.iter().map(|clock| (&*clock.node, of_clock(run, clock)));
    let of_part = |part: &'_ PartResult| {
        let errors = part.time_errors.as_ref()?;
        let most = errors.ptp4l?.largest_ns;
        Some(cells(run, &part.host, Some(most), errors.ptp4l_ns.iter().flatten()))
    };
    let parts = run.network.parts.iter();
    let measured = parts.filter_map(|part| Some((&*part.host, of_part(part)?)));
    kept.chain(measured).collect()
}

fn of_clock(run: &RunResult, clock: &ClockResult) -> Vec<String> {
    let phases = [clock.before, clock.during, clock.after];
    let max = phases.iter().flatten().map(|errors: &ClockErrors| errors.error_ns).max();
    cells(run, &clock.node, max, clock.error_ns.iter())
}

/// A row of a clock, with its largest error and some errors with their signs.
fn cells<'a>(
    run: &RunResult,
    name: &str,
    max: Option<i64>,
    errors: impl Iterator<Item = &'a i64>,
) -> Vec<String> {
    let figures = Statistics::of(errors.map(|ns| ns.saturating_abs()).collect());
    let figure = |ns: Option<i64>| ns.map_or("–".to_owned(), |ns| ns.to_string());
    vec![
        scenario_name(&run.scenario).to_owned(),
        name.to_owned(),
        figure(max),
        figure(figures.map(|f| f.avg)),
        figure(figures.map(|f| f.stddev)),
    ]
}
