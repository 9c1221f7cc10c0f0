//! How well machines' clocks were synchronised, as linuxptp measured it there: Figure 9 of Austad
//! et al. 2023 for each machine of a run, and a table.

use super::end_to_end::{Chart, Plotted};
use onbeat_measure::{PartResult, RunResult, TimeErrorFigures, TimeErrors};
use onbeat_model::time::Span;

/// What the cells of a row are.
pub(super) const HEADINGS: [&str; 7] =
    ["run", "machine", "measured by", "n", "RMS", "largest", "mean"];
/// How many of them are no numbers.
pub(super) const TEXTS: usize = 3;

/// What measured, with its figures and values.
type Source<'a> = (&'static str, Option<TimeErrorFigures>, &'a [Option<i64>]);

fn sources(errors: &TimeErrors) -> [Source<'_>; 2] {
    [
        ("ptp4l", errors.ptp4l, &errors.ptp4l_ns),
        ("hardware clock", errors.phc2sys, &errors.phc2sys_ns),
    ]
}

fn measured(run: &RunResult) -> impl Iterator<Item = (&PartResult, &TimeErrors)> {
    run.network.parts.iter().filter_map(|part| Some((part, part.time_errors.as_ref()?)))
}

/// One row per machine and what measured there.
pub(super) fn rows(run: &RunResult, name: &str) -> Vec<Vec<String>> {
    let of_part = |(part, errors): (&PartResult, &TimeErrors)| {
        let row = |(source, figures, _): Source<'_>| {
            let TimeErrorFigures { samples, rms_ns, largest_ns, mean_ns } = figures?;
            let span = |ns: i64| Span::from_ns(ns).to_string();
            let texts = [name, &part.host, source].map(str::to_owned);
            let numbers = [samples.to_string(), span(rms_ns), span(largest_ns), span(mean_ns)];
            Some([&texts[..], &numbers[..]].concat())
        };
        sources(errors).into_iter().filter_map(row).collect::<Vec<_>>()
    };
    measured(run).flat_map(of_part).collect()
}

/// One per machine and what measured there: the errors without their signs, over the time.
pub(super) fn charts(run: &RunResult) -> Vec<Chart> {
    let duration = Span::from_ns(run.duration_ns);
    let of_part = |(part, errors): (&PartResult, &TimeErrors)| {
        let chart = |(source, _, values): Source<'_>| {
            let points = errors.at_ns.iter().zip(values);
            let points: Vec<_> =
                points.filter_map(|(at, ns)| Some((*at, ns.as_ref()?.saturating_abs()))).collect();
            // Ten minutes, as in the paper, of long runs.
            let averaged = (points.len() / 10).clamp(5, 600);
            let plotted = Plotted { of: "measurements", averaged };
            let title = format!("{}: time error by {source}", part.host);
            Chart::new(title, plotted, &points, duration)
        };
        sources(errors).into_iter().filter_map(chart).collect::<Vec<_>>()
    };
    measured(run).flat_map(of_part).collect()
}
