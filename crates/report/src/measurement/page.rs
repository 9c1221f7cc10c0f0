//! The page on a measurement.

use super::published::{IN_WORDS, published};
use super::table::{HEADINGS, compared, rows, shown, signs, stalled};
use crate::page::Page;
use crate::text::grouped;
use onbeat_measure::measurement::{Bin, MachineDescription, Measurement, Series};
use serde::Serialize;
use std::collections::BTreeMap;

const PAGE: Page = Page {
    kicker: "the five tests of synchronised time",
    body: include_str!("../../assets/measurement.html"),
    notes: "The chart over time shows the smallest and the largest value of each stretch. \
        The JSON has whole nanoseconds.",
    styles: &[],
    script: include_str!("../../assets/measurement.js"),
    has_charts: true,
};

/// The most ranges that a series is cut into for its chart over time, each shown by its smallest
/// and its largest value: nothing that sticks out is lost.
const RANGES_MAX: usize = 1_000;

#[derive(Serialize)]
struct View {
    about: Vec<(&'static str, String)>,
    headings: [&'static str; 9],
    rows: Vec<RowView>,
    in_words: &'static str,
    compared: Vec<String>,
    stalled: Vec<String>,
    notes: Vec<String>,
    tests: Vec<TestView>,
}

#[derive(Serialize)]
struct RowView {
    /// Whether it is published, and not measured here.
    reference: bool,
    cells: Vec<String>,
}

#[derive(Serialize)]
struct TestView {
    title: &'static str,
    series: Vec<SeriesView>,
}

#[derive(Serialize)]
struct SeriesView {
    /// The identifier of its charts.
    id: String,
    name: String,
    what: String,
    summary: String,
    has_order: bool,
}

/// What the script draws.
#[derive(Serialize)]
struct Data<'a> {
    /// By identifier: from, to and count of each bin.
    histograms: BTreeMap<String, Vec<[i64; 3]>>,
    /// By identifier: places and values in turn, and the largest published value.
    courses: BTreeMap<String, Course<'a>>,
}

#[derive(Serialize)]
struct Course<'a> {
    at: Vec<usize>,
    values_ns: Vec<i64>,
    published_max_ns: Option<i64>,
    published: Option<&'a str>,
}

/// The page: the figures beside the paper's, and of each series a histogram and its course. The
/// values of a series are what `values` has under its name; without them it has no course.
pub fn html(measurement: &Measurement, values: &BTreeMap<String, Vec<i64>>) -> String {
    let mut data = Data { histograms: BTreeMap::new(), courses: BTreeMap::new() };
    for (place, series) in measurement.series.iter().enumerate() {
        let id = format!("s{place}");
        let bin = |bin: &Bin| [bin.from_ns, bin.to_ns, bin.count as i64];
        data.histograms
            .insert(format!("{id}h"), series.figures.histogram.iter().map(bin).collect());
        if let Some(values) = values.get(&series.name).filter(|_| series.ordered) {
            data.courses.insert(format!("{id}c"), course(series, values));
        }
    }
    let rows = rows(measurement);
    let row = |row: super::table::Row| RowView { reference: row.is_published, cells: row.cells };
    let view = View {
        about: about(measurement),
        headings: HEADINGS,
        rows: rows.into_iter().map(row).collect(),
        in_words: IN_WORDS,
        compared: measurement.comparisons.iter().map(compared).collect(),
        stalled: measurement.stalls.iter().map(stalled).collect(),
        notes: signs(measurement).into_iter().chain(measurement.notes.clone()).collect(),
        tests: tests(measurement, &data),
    };
    let title = measurement.scenario.as_ref().map_or("This machine", |of| of.name.id.as_str());
    PAGE.render(title, &view, &data)
}

fn tests(measurement: &Measurement, data: &Data<'_>) -> Vec<TestView> {
    const TITLES: [&str; 5] = [
        "Test 1: what reading a clock costs",
        "Test 2: the same by the other clock",
        "Test 3: how late a thread wakes up",
        "Test 4: how far apart two nodes act",
        "Test 5: tests 3 and 4 under load",
    ];
    let of_test = |(number, title): (u8, &'static str)| {
        let all = measurement.series.iter().enumerate();
        let of_it = all.filter(|(_, series)| series.test == number);
        let series: Vec<_> = of_it.map(|(place, series)| view(place, series, data)).collect();
        (!series.is_empty()).then_some(TestView { title, series })
    };
    (1..).zip(TITLES).filter_map(of_test).collect()
}

fn view(place: usize, series: &Series, data: &Data<'_>) -> SeriesView {
    let of = &series.figures;
    let id = format!("s{place}");
    SeriesView {
        has_order: data.courses.contains_key(&format!("{id}c")),
        id,
        name: series.name.clone(),
        what: series.what.clone(),
        summary: format!(
            "{} samples, median {}, p99 {}, at most {}",
            grouped(of.count),
            shown(of.p50),
            shown(of.p99),
            shown(of.max)
        ),
    }
}

/// A series over time, thinned to what a screen can show.
fn course(series: &Series, values: &[i64]) -> Course<'static> {
    let mut shown =
        Course { at: Vec::new(), values_ns: Vec::new(), published_max_ns: None, published: None };
    let largest = published(series).filter_map(|of| Some((of.max?, of.place))).max();
    (shown.published_max_ns, shown.published) = largest.unzip();
    let size = values.len().div_ceil(RANGES_MAX).max(1);
    for (number, range) in values.chunks(size).enumerate() {
        let least = (0..range.len()).min_by_key(|at| range[*at]);
        let most = (0..range.len()).max_by_key(|at| range[*at]);
        let (Some(least), Some(most)) = (least, most) else { continue };
        let mut places = vec![least.min(most), least.max(most)];
        places.dedup();
        for place in places {
            shown.at.push(number * size + place);
            shown.values_ns.push(range[place]);
        }
    }
    shown
}

fn about(measurement: &Measurement) -> Vec<(&'static str, String)> {
    let settings = &measurement.settings;
    let mut about = machine(&measurement.machine);
    let priority = match settings.priority {
        0 => "none".to_owned(),
        priority => format!("SCHED_FIFO {priority}"),
    };
    let yes = |is: bool| if is { "yes" } else { "no" }.to_owned();
    about.extend([
        ("Measured on processor", settings.cpu.to_string()),
        ("Priority", priority),
        ("Period of wake-ups", shown(settings.period_ns)),
        ("Memory locked", yes(settings.memory_locked)),
        ("Idle states held shallow", yes(settings.cpu_latency_held)),
    ]);
    if let Some(error) = settings.node_error {
        let error = format!("{}, {} ppb", shown(error.offset_ns), error.drift_ppb);
        about.push(("Second node's emulated clock error", error));
    }
    about.extend(settings.gpio.clone().map(|line| ("Output", line)));
    about.extend(settings.load.as_ref().map(|words| ("Load", words.join(" "))));
    about
}

/// The machine, for a person.
pub(super) fn machine(machine: &MachineDescription) -> Vec<(&'static str, String)> {
    let or = |text: &Option<String>, none: &str| text.clone().unwrap_or_else(|| none.to_owned());
    let or_none = |text: &str| if text.is_empty() { "none".to_owned() } else { text.to_owned() };
    let yes = |is: bool| if is { "yes" } else { "no" }.to_owned();
    let throttled = match machine.throttle_us {
        None => "not said".to_owned(),
        Some(..0) => "no".to_owned(),
        Some(us) => format!("to {us} µs of each second"),
    };
    vec![
        ("Kernel", or(&machine.kernel, "not said")),
        ("PREEMPT_RT", yes(machine.real_time)),
        ("Processor", or(&machine.cpu, "not said")),
        ("Processors", machine.processors.clone()),
        ("Isolated", or_none(&machine.isolated)),
        ("Without tick", or_none(&machine.no_tick)),
        ("Virtual machine", yes(machine.virtualised)),
        ("Clock source", or(&machine.clock_source, "not said")),
        ("Governor", or(&machine.governor, "none")),
        ("Idle driver", or(&machine.idle_driver, "none")),
        ("Real-time threads throttled", throttled),
    ]
}
