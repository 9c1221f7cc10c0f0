//! What a terminal shows of runs: what was measured, and published figures beside.

use super::{accuracy, breakdown, end_to_end, time_errors};
use crate::clocks::clock_table;
use crate::grid::{grid, ruled};
use crate::reservations::reservation_table;
use crate::stations::station_table;
use crate::text::{grouped, per_mille, percent, us};
use comfy_table::{Cell, CellAlignment};
use onbeat_measure::{
    ChainResult, ChannelResult, Ended, NetworkName, NetworkResult, Results, RunResult, Statistics,
    TcpResult,
};
use onbeat_model::system::{
    ChannelId, Quantity, Reference, Subject, System, TcpId, TimeMode, TransportKind,
};
use onbeat_model::time::Span;
use std::fmt::Write;

/// What the cells of a [`Row`] are. Latencies are in microseconds.
pub const HEADINGS: [&str; 11] = [
    "scenario",
    "network",
    "channel",
    "sent",
    "lost",
    "max µs",
    "min µs",
    "avg µs",
    "σ µs",
    "bound µs",
    "verdict",
];

/// Where [`HEADINGS`] has the network.
const NETWORK: usize = 1;

/// What a row shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowKind {
    /// Figures of a run.
    Measured,
    /// Published figures; the first cell names the source.
    Reference,
}

/// One row of plain text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// What it shows.
    pub kind: RowKind,
    /// One per heading; empty where there is nothing to show.
    pub cells: [String; HEADINGS.len()],
}

/// One row per run and channel or TCP flow, each followed by the published latencies of the same
/// scenario and channel or flow; then one per chain.
pub fn rows(system: &System, runs: &[RunResult]) -> Vec<Row> {
    let mut rows = Vec::new();
    for run in runs {
        for (id, channel) in (0..).map(ChannelId).zip(&run.channels) {
            rows.push(measured(run, channel));
            let of = Subject::Channel(id);
            let published = references(system, &run.scenario, of, Quantity::Latency);
            rows.extend(published.map(|r| reference(r, &channel.name)));
        }
        for (id, flow) in (0..).map(TcpId).zip(&run.tcp) {
            rows.push(of_tcp(run, flow));
            let of = Subject::Tcp(id);
            let published = references(system, &run.scenario, of, Quantity::Latency);
            rows.extend(published.map(|r| reference(r, &flow.name)));
        }
        rows.extend(run.chains.iter().map(|chain| of_chain(run, chain)));
    }
    rows
}

/// The published figures of one quantity of one thing in one scenario.
pub(crate) fn references<'a>(
    system: &'a System,
    scenario: &'a str,
    of: Subject,
    quantity: Quantity,
) -> impl Iterator<Item = &'a Reference> {
    system
        .references
        .iter()
        .filter(move |r| r.scenario == scenario && r.of == of && r.quantity == quantity)
}

/// What a run without a scenario is called.
pub(crate) fn scenario_name(scenario: &str) -> &str {
    if scenario.is_empty() { "(run settings)" } else { scenario }
}

/// Where a run took place: on the emulated network in which time, else on which network.
pub(crate) fn network_name(run: &RunResult) -> String {
    let NetworkResult { kind, transport, host, interface, .. } = &run.network;
    let name = match kind {
        NetworkName::Emulated => return time_name(run.time).to_owned(),
        NetworkName::Netns => "netns".to_owned(),
        NetworkName::Interface => {
            let unnamed = || "?".to_owned();
            let host = host.clone().unwrap_or_else(unnamed);
            format!("{host} on {}", interface.clone().unwrap_or_else(unnamed))
        }
        NetworkName::Interfaces => {
            let hosts = run.network.parts.iter().map(|part| match part.cut_off {
                true => format!("{} (cut off)", part.host),
                false => part.host.clone(),
            });
            format!("parts of {}", hosts.collect::<Vec<_>>().join(", "))
        }
    };
    match transport {
        None | Some(TransportKind::Packet) => name,
        Some(other) => format!("{name} by {}", other.as_str()),
    }
}

pub(crate) const fn time_name(time: TimeMode) -> &'static str {
    match time {
        TimeMode::Virtual => "virtual",
        TimeMode::Real => "real",
    }
}

fn of_chain(run: &RunResult, chain: &ChainResult) -> Row {
    let latency = |of| figure_of(chain.latency_ns.as_ref(), of);
    let cells = [
        scenario_name(&run.scenario).to_owned(),
        network_name(run),
        format!("{} (chain)", chain.name),
        grouped(chain.completed),
        String::new(),
        latency(|s| s.max),
        latency(|s| s.min),
        latency(|s| s.avg),
        latency(|s| s.stddev),
        chain.bound_ns.map_or(String::new(), us),
        chain.verdict.as_str().to_owned(),
    ];
    Row { kind: RowKind::Measured, cells }
}

fn of_tcp(run: &RunResult, flow: &TcpResult) -> Row {
    let latency = |of| figure_of(flow.latency_ns.as_ref(), of);
    let lost = match flow.lost.saturating_add(flow.unfinished) {
        0 => "0".to_owned(),
        lost => format!("{} ({})", grouped(lost), percent(lost, flow.sent)),
    };
    let cells = [
        scenario_name(&run.scenario).to_owned(),
        network_name(run),
        format!("{} (TCP)", flow.name),
        grouped(flow.sent),
        lost,
        latency(|s| s.max),
        latency(|s| s.min),
        latency(|s| s.avg),
        latency(|s| s.stddev),
        String::new(),
        flow.verdict.as_str().to_owned(),
    ];
    Row { kind: RowKind::Measured, cells }
}

fn figure_of(figures: Option<&Statistics>, of: fn(&Statistics) -> i64) -> String {
    figures.map_or(String::new(), |figures| us(of(figures)))
}

fn measured(run: &RunResult, channel: &ChannelResult) -> Row {
    let latency = |of| figure_of(channel.latency_ns.as_ref(), of);
    let cells = [
        scenario_name(&run.scenario).to_owned(),
        network_name(run),
        channel.name.clone(),
        channel.sent.map_or(UNKNOWN.into(), grouped),
        lost(channel),
        latency(|s| s.max),
        latency(|s| s.min),
        latency(|s| s.avg),
        latency(|s| s.stddev),
        channel.bound_ns.map_or(String::new(), us),
        channel.verdict.as_str().to_owned(),
    ];
    Row { kind: RowKind::Measured, cells }
}

/// Stands for a number that only another host's run knows.
pub(crate) const UNKNOWN: &str = "–";

/// How many messages were lost and what share that is.
fn lost(channel: &ChannelResult) -> String {
    match channel.lost {
        None => UNKNOWN.into(),
        Some(0) => "0".into(),
        Some(lost) => format!("{} ({})", grouped(lost), loss_share(channel.lost, channel.received)),
    }
}

/// The share of what was written that did not arrive.
pub(crate) fn loss_share(lost: Option<u64>, received: Option<u64>) -> String {
    match (lost, received) {
        (Some(lost), Some(received)) => percent(lost, lost.saturating_add(received)),
        _ => UNKNOWN.into(),
    }
}

fn reference(reference: &Reference, channel: &str) -> Row {
    let figure = |span: Option<Span>| span.map_or(String::new(), |span| us(span.as_ns()));
    let cells = [
        format!("↳ {}", reference.source),
        String::new(),
        channel.to_owned(),
        String::new(),
        reference.lost_per_mille.map_or(String::new(), per_mille),
        figure(reference.max),
        figure(reference.min),
        figure(reference.avg),
        figure(reference.stddev),
        String::new(),
        String::new(),
    ];
    Row { kind: RowKind::Reference, cells }
}

/// What the runs of a system without channels were, where there is nothing to measure.
pub fn programs(system: &System, results: &Results) -> String {
    let names: Vec<_> = system.programs.iter().map(|p| format!("`{}`", p.name)).collect();
    let names = if names.is_empty() { "no program".to_owned() } else { names.join(", ") };
    let of_run = |run: &RunResult| {
        let scenario = match run.scenario.is_empty() {
            true => String::new(),
            false => format!("{}, ", run.scenario),
        };
        let time = time_name(run.time);
        let (ran, how) = match &run.ended {
            Ended::Complete => (Span::from_ns(run.duration_ns), "to the end, all ended well"),
            Ended::Early { at_ns, .. } => (Span::from_ns(*at_ns), "ended early"),
        };
        format!("{scenario}{names}: {ran} of {time} time, {how}")
    };
    results.runs.iter().map(of_run).collect::<Vec<_>>().join("\n")
}

/// The tables of which the description has published figures: end to end, and clocks.
fn further(system: &System, results: &Results) -> String {
    let runs: Vec<_> = results.runs.iter().collect();
    let mut text = String::new();
    let mut add = |title: &str, headings: &[&str], texts: usize, rows: Vec<Vec<String>>| {
        if rows.is_empty() {
            return;
        }
        let mut grid = grid(headings);
        for cells in rows {
            let cells = cells.into_iter().enumerate().map(|(column, text)| {
                let side = if column < texts { CellAlignment::Left } else { CellAlignment::Right };
                Cell::new(text).set_alignment(side)
            });
            grid.add_row(cells);
        }
        let _ = write!(text, "\n\n{title}:\n{}", ruled(&grid));
    };
    let name = |is_published, mut cells: Vec<String>| {
        if is_published {
            cells[0] = format!("↳ {}", cells[0]);
        }
        cells
    };
    let rows = end_to_end::rows(system, &runs);
    let rows = rows.into_iter().map(|row| name(row.is_published, row.cells)).collect();
    add("End to end, in µs", &end_to_end::HEADINGS, end_to_end::TEXTS, rows);
    let rows = accuracy::rows(system, &runs).into_iter();
    let rows = rows.map(|(is_published, cells)| name(is_published, cells)).collect();
    add("Errors of clocks, in ns", &accuracy::HEADINGS, accuracy::TEXTS, rows);
    let rows = runs.iter().flat_map(|run| time_errors::rows(run, scenario_name(&run.scenario)));
    let title = "Time errors that linuxptp measured";
    add(title, &time_errors::HEADINGS, time_errors::TEXTS, rows.collect());
    // Asked for with --stamps; the page has the parts of all runs.
    let noted = results.runs.iter().filter(|run| breakdown::is_noted(run));
    let rows = noted.flat_map(breakdown::rows).map(Vec::from).collect();
    let title = "Parts of latencies, in µs: mean (greatest)";
    add(title, &breakdown::HEADINGS, breakdown::TEXTS, rows);
    for (number, note) in end_to_end::notes(system).iter().enumerate() {
        let _ = write!(text, "\n[{}] {note}", number + 1);
    }
    text
}

/// What the runs measured, beside what was promised and what others published. The sources of the
/// published figures stand below the table, which keeps it narrow.
pub fn table(system: &System, results: &Results) -> String {
    let mut headings = HEADINGS.to_vec();
    headings.remove(NETWORK);
    let mut grid = grid(&headings);
    let mut sources = String::new();
    let mut published = 0;
    for row in rows(system, &results.runs) {
        let mut cells = row.cells.to_vec();
        let network = cells.remove(NETWORK);
        match row.kind {
            RowKind::Measured => cells[0] = format!("{}, {network}", cells[0]),
            RowKind::Reference => {
                published += 1;
                let source = cells[0].trim_start_matches(['↳', ' ']);
                let _ = writeln!(sources, "[{published}] {source}");
                cells[0] = format!("  published [{published}]");
            }
        }
        let cells = cells.into_iter().enumerate().map(|(column, text)| {
            let side =
                if (2..=8).contains(&column) { CellAlignment::Right } else { CellAlignment::Left };
            Cell::new(text).set_alignment(side)
        });
        grid.add_row(cells);
    }
    let mut text = format!("{}\n{sources}", ruled(&grid)).trim_end().to_owned();
    text += &further(system, results);
    for run in &results.runs {
        if let Some(reservations) = &run.reservations {
            let (name, table) = (scenario_name(&run.scenario), reservation_table(reservations));
            let _ = write!(text, "\n\nReservations by protocol in {name}:\n{table}");
        }
        if let Some(stations) = &run.stations {
            let (name, table) = (scenario_name(&run.scenario), station_table(stations));
            let _ = write!(text, "\n\nStations in {name}:\n{table}");
        }
        if let Some(clocks) = clock_table(&run.clocks) {
            let name = scenario_name(&run.scenario);
            let _ = write!(text, "\n\nClocks that gPTP kept in {name}:\n{clocks}");
        }
    }
    text
}
