//! The gates of a plan over time, and the windows of scheduled channels in them: one self-contained
//! HTML page.

use crate::page::Page;
use crate::schedulers::Schedulers;
use onbeat_model::plan::{Bound, Plan, StreamPlan};
use onbeat_model::port::GateControl;
use onbeat_model::stream::Stream;
use onbeat_model::system::{Channel, ChannelId, PortId, System};
use onbeat_model::time::Span;
use serde::Serialize;
use std::collections::BTreeMap;

const PAGE: Page = Page {
    kicker: "plan",
    body: include_str!("../assets/gates.html"),
    notes: "The JSON of the plan has all times in whole nanoseconds.",
    styles: &[include_str!("../assets/gates.css")],
    script: include_str!("../assets/gates.js"),
    has_charts: false,
};

/// The most rows of the table.
const ROWS_MAX: usize = 2_000;
/// How many cycles of the shortest list are shown at first, if there are more.
const CYCLES: i64 = 40;

#[derive(Serialize)]
struct View {
    about: Vec<(&'static str, String)>,
    lanes: bool,
    rows: Vec<Row>,
    more: usize,
    schedulers: Option<Schedulers>,
}

#[derive(Serialize)]
struct Row {
    cells: [String; 8],
    reference: bool,
}

/// What the script draws. Times are in nanoseconds.
#[derive(Serialize)]
struct Data {
    /// From when on all lists are in operation: the whole view shows a cycle from then.
    begin: i64,
    cycle: i64,
    /// What is shown of it at first.
    first: i64,
    channels: Vec<Repeating>,
    ports: Vec<GatedPort>,
}

#[derive(Serialize)]
struct Repeating {
    name: String,
    interval: i64,
}

#[derive(Serialize)]
struct GatedPort {
    label: String,
    gates: List,
    /// Channel, start in its interval, length.
    windows: Vec<(usize, i64, i64)>,
}

#[derive(Serialize)]
struct List {
    base: i64,
    cycle: i64,
    /// A bit for each open queue, and for how long.
    entries: Vec<(u8, i64)>,
}

/// The page on a plan: a lane for each port with gates, with the windows of its frames, and the
/// channels and streams with their paths, launch times and bounds. It asks nothing of the network.
///
/// # Panics
/// When `plan` is not of `system`.
pub fn html(system: &System, plan: &Plan) -> String {
    let mut windows: BTreeMap<PortId, Vec<(usize, i64, i64)>> = BTreeMap::new();
    let mut channels = Vec::new();
    for (channel, planned) in system.channels.iter().zip(&plan.channels) {
        let Some(launch) = &planned.launch else { continue };
        for window in &launch.windows {
            let all = windows.entry(window.port).or_default();
            all.push((channels.len(), window.start.as_ns(), window.span.as_ns()));
        }
        channels.push(Repeating { name: channel.name.clone(), interval: channel.interval.as_ns() });
    }
    let lane = |(id, gates): (PortId, &Vec<GateControl>)| {
        let windows = windows.remove(&id).unwrap_or_default();
        // The last one stays in operation.
        let last = gates.iter().max_by_key(|list| list.base)?;
        Some(GatedPort { label: system.port_label(id), gates: list(last), windows })
    };
    let gates = plan.ports.iter().map(|port| &port.settings.gates);
    let lanes: Vec<GatedPort> = (0..).map(PortId).zip(gates).filter_map(lane).collect();
    let begin = lanes.iter().map(|lane| lane.gates.base).max().unwrap_or(0);
    let cycles = || lanes.iter().map(|lane| lane.gates.cycle);
    let cycle = cycles().max().unwrap_or(1);
    let first = cycles().min().unwrap_or(1).saturating_mul(CYCLES).min(cycle);
    let ids = (0..).map(ChannelId).zip(&system.channels);
    let of_channels = ids.flat_map(|(id, channel)| rows(system, plan, id, channel));
    let streams = system.streams.iter().zip(&plan.streams);
    let of_streams = streams.flat_map(|(stream, planned)| stream_rows(system, stream, planned));
    let mut rows: Vec<Row> = of_channels.chain(of_streams).collect();
    let more = rows.len().saturating_sub(ROWS_MAX);
    rows.truncate(ROWS_MAX);
    let windows: usize = lanes.iter().map(|lane| lane.windows.len()).sum();
    let mut about = vec![
        ("channels", system.channels.len().to_string()),
        ("streams", system.streams.len().to_string()),
        ("scheduled", channels.len().to_string()),
        ("windows", windows.to_string()),
        ("ports with gates", lanes.len().to_string()),
    ];
    if !lanes.is_empty() {
        about.push(("longest cycle", Span::from_ns(cycle).to_string()));
    }
    let schedulers = Schedulers::of(system, plan);
    let view = View { about, lanes: !lanes.is_empty(), rows, more, schedulers };
    PAGE.render(&system.name, &view, &Data { begin, cycle, first, channels, ports: lanes })
}

/// A list that is shorter than its cycle keeps its last state, one that is longer is cut.
fn list(list: &GateControl) -> List {
    let cycle = list.cycle.as_ns();
    let (mut entries, mut at): (Vec<(u8, i64)>, _) = (Vec::new(), 0);
    for entry in &list.entries {
        let span = entry.span.as_ns().min(cycle - at);
        if span > 0 {
            entries.push((entry.open, span));
        }
        at += span;
    }
    if let Some((_, span)) = entries.last_mut() {
        *span += cycle - at;
    }
    List { base: list.base.as_ns(), cycle, entries }
}

/// A row for each path.
fn rows(system: &System, plan: &Plan, id: ChannelId, channel: &Channel) -> Vec<Row> {
    let planned = plan.channel(id);
    let launch = planned.launch.as_ref();
    let class = if planned.protected { channel.class.as_str() } else { "none" };
    let none = || "–".to_owned();
    let row = |(at, path): (usize, &[PortId])| {
        let to = &channel.listeners[at];
        let bound = planned.bounds.get(at);
        let cells = [
            channel.name.clone(),
            class.to_owned(),
            system.node(*to).name.clone(),
            labels(system, path),
            launch.map_or_else(none, |launch| launch.at.to_string()),
            launch.map_or_else(none, |_| plan.phase(system, id).to_string()),
            bound.map_or_else(none, |bound| bound.best.to_string()),
            bound.map_or_else(none, |bound| bound.total().to_string()),
        ];
        Row { cells, reference: false }
    };
    planned.paths_to_listeners(channel.listeners.len()).map(row).collect()
}

/// A row for each path.
fn stream_rows(system: &System, stream: &Stream, planned: &StreamPlan) -> Vec<Row> {
    let none = || "–".to_owned();
    let mut rows = Vec::new();
    for (at, (to, paths)) in stream.listeners.iter().zip(&planned.paths).enumerate() {
        let bound = planned.bounds.get(at).and_then(Option::as_ref);
        let shown = |of: fn(&Bound) -> Span| bound.map_or_else(none, |it| of(it).to_string());
        rows.extend(paths.iter().map(|path| Row {
            cells: [
                stream.name.clone(),
                format!("queue {}", stream.traffic_class),
                system.node(*to).name.clone(),
                labels(system, path),
                none(),
                none(),
                shown(|bound| bound.best),
                shown(Bound::total),
            ],
            reference: false,
        }));
    }
    rows
}

fn labels(system: &System, path: &[PortId]) -> String {
    path.iter().map(|port| system.port_label(*port)).collect::<Vec<_>>().join(" ")
}
