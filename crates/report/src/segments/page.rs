//! The page on measured segments.

use super::table::{name, shown};
use crate::page::Page;
use crate::text::{counted, grouped};
use onbeat_measure::segments::{Measured, Segment, WARNING};
use serde::Serialize;

const PAGE: Page = Page {
    kicker: "measured execution times",
    body: include_str!("../../assets/segments.html"),
    notes: "The JSON has whole nanoseconds.",
    styles: &[],
    script: "",
    has_charts: false,
};

#[derive(Serialize)]
struct View {
    warning: &'static str,
    about: Vec<(&'static str, String)>,
    segments: Vec<SegmentView>,
}

#[derive(Serialize)]
struct SegmentView {
    name: String,
    /// Samples, aborted, min, p50, p99, p99.9, max, with margin, elapsed max, jitter, abort.
    figures: Vec<String>,
    bars: Vec<Bar>,
}

#[derive(Serialize)]
struct Bar {
    label: String,
    count: String,
    /// Of the highest bar, in per cent: so many units of the style sheet.
    height: u64,
}

/// The page on what was measured of `program`.
pub fn html(program: &str, measured: &Measured) -> String {
    let samples: usize = measured.segments.iter().map(|segment| segment.samples).sum();
    let view = View {
        warning: WARNING,
        about: vec![
            ("Runs", grouped(measured.runs.into())),
            ("Segments", counted(measured.segments.len(), "segment", "segments")),
            ("Samples", grouped(samples as u64)),
            ("Margin on worst cases", format!("{} %", measured.margin_percent)),
        ],
        segments: measured.segments.iter().map(segment_view).collect(),
    };
    PAGE.render(program, &view, &())
}

fn segment_view(segment: &Segment) -> SegmentView {
    let cpu = segment.cpu_ns;
    let figure = |ns: Option<i64>| ns.map_or("–".to_owned(), shown);
    let most = segment.histogram.iter().map(|bin| bin.count).max().unwrap_or(1).max(1);
    let bars = segment.histogram.iter().map(|bin| Bar {
        label: shown(bin.from_ns),
        count: grouped(bin.count),
        height: (u128::from(bin.count) * 100).div_ceil(u128::from(most)) as u64,
    });
    SegmentView {
        name: name(segment),
        figures: vec![
            grouped(segment.samples as u64),
            grouped(segment.aborted as u64),
            figure(cpu.map(|c| c.min)),
            figure(cpu.map(|c| c.p50)),
            figure(cpu.map(|c| c.p99)),
            figure(segment.cpu_p999_ns),
            shown(segment.cpu_max_ns),
            shown(segment.wcet_ns),
            shown(segment.elapsed_ns.max),
            shown(segment.release_jitter_max_ns),
            figure((segment.aborted > 0).then_some(segment.abort_max_ns)),
        ],
        bars: bars.collect(),
    }
}
