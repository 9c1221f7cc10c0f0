//! What people see of stations of Network Code that carried the channels of a run.

use crate::grid::{grid, right, ruled};
use crate::text::grouped;
use comfy_table::Cell;
use onbeat_measure::{StationResult, StationsResult};
use onbeat_model::plan::{ChannelPlan, Plan};
use onbeat_model::system::{Channel, System};
use onbeat_model::time::Span;
use serde::Serialize;

/// What is shown of each station.
const HEADINGS: [&str; 9] = [
    "station",
    "rounds",
    "sent",
    "received",
    "unsent",
    "timeouts",
    "overruns",
    "discarded",
    "stopped",
];
/// What is shown in addition where stations sent over a kernel.
const ON_KERNEL: [&str; 6] = ["missed", "late", "refused", "slot error p50", "p99", "max"];

/// The slots and the stations of one run, for a page.
#[derive(Debug, Serialize)]
pub(crate) struct StationsView {
    title: String,
    ports: String,
    slots: Vec<Cells>,
    headings: Vec<String>,
    stations: Vec<Cells>,
}

/// A row of a table of a page.
#[derive(Debug, Serialize)]
struct Cells {
    reference: bool,
    cells: Vec<String>,
}

impl StationsView {
    /// Of a run with this title.
    pub(crate) fn new(title: &str, system: &System, plan: &Plan, results: &StationsResult) -> Self {
        let row = |cells: Vec<String>| Cells { reference: false, cells };
        let slots = system.channels.iter().zip(&plan.channels);
        Self {
            title: title.to_owned(),
            ports: at_ports(results),
            slots: slots
                .filter_map(|(channel, plan)| slot(system, channel, plan))
                .map(row)
                .collect(),
            headings: headings(results).into_iter().map(capitalised).collect(),
            stations: results.stations.iter().map(|it| cells(results, it)).map(row).collect(),
        }
    }
}

/// Whether stations sent over a kernel.
fn on_kernel(results: &StationsResult) -> bool {
    results.collisions.is_none() && !results.stations.is_empty()
}

fn headings(results: &StationsResult) -> Vec<&'static str> {
    let more: &[&str] = if on_kernel(results) { &ON_KERNEL } else { &[] };
    HEADINGS.iter().chain(more).copied().collect()
}

fn capitalised(text: &str) -> String {
    let (first, rest) = text.split_at(1);
    first.to_uppercase() + rest
}

/// The stations as a table for a terminal, without a line feed at its end.
pub(crate) fn station_table(results: &StationsResult) -> String {
    let mut table = grid(&headings(results));
    for station in &results.stations {
        let mut cells = cells(results, station).into_iter();
        let host = cells.next().map(Cell::new);
        table.add_row(host.into_iter().chain(cells.map(right)));
    }
    format!("{}\n{}", ruled(&table), at_ports(results))
}

fn at_ports(results: &StationsResult) -> String {
    let (Some(collisions), Some(waits)) = (results.collisions, results.waits) else {
        let why = if on_kernel(results) { ", those of the kernel are not seen" } else { "" };
        return format!("Collisions at ports: unknown{why}.");
    };
    let counted = |count: u64, one: &str, many: &str| {
        format!("{} {}", grouped(count), if count == 1 { one } else { many })
    };
    format!(
        "{} at ports; something else held up {}.",
        counted(collisions, "collision", "collisions"),
        counted(waits, "frame", "frames"),
    )
}

fn cells(results: &StationsResult, station: &StationResult) -> Vec<String> {
    let StationResult { rounds, sent, received, unsent, timeouts, .. } = *station;
    let counts = [rounds, sent, received, unsent, timeouts, station.overruns, station.discarded];
    let mut cells = vec![station.host.clone()];
    cells.extend(counts.map(grouped));
    cells.push(if station.stopped { "yes" } else { "no" }.to_owned());
    if on_kernel(results) {
        cells.extend([station.missed, station.late, station.refused].map(grouped));
        let errors = station.slot_error_ns.map(|it| [it.p50, it.p99, it.max]);
        let shown =
            |ns: Option<i64>| ns.map_or("–".to_owned(), |ns| Span::from_ns(ns).to_string());
        cells.extend((0..3).map(|at| shown(errors.map(|errors| errors[at]))));
    }
    cells
}

/// Channel, talker, message, words, round, rounds, begin and end.
fn slot(system: &System, channel: &Channel, plan: &ChannelPlan) -> Option<Vec<String>> {
    let slot = plan.slot?;
    let rounds = match slot.every {
        1 => "all".to_owned(),
        every => format!("{}, {}, …", slot.first_round, slot.first_round + every),
    };
    Some(vec![
        channel.name.clone(),
        system.node(channel.talker).name.clone(),
        slot.message.to_string(),
        slot.words.to_string(),
        slot.round.to_string(),
        rounds,
        slot.start.to_string(),
        slot.end.to_string(),
    ])
}
