//! What people see of reservations that hosts and bridges made by protocol.

use crate::grid::{grid, ruled};
use comfy_table::CellAlignment;
use onbeat_measure::{ListenerReservationResult, ReservationResult, ReservationsResult};
use onbeat_model::time::Span;
use serde::Serialize;

/// The most rows of a table.
const ROWS_MAX: usize = 200;

/// The reservations of one run or simulation, for a page.
#[derive(Debug, Serialize)]
pub(crate) struct ProtocolReservations {
    title: String,
    begun: String,
    rows: Vec<[String; 7]>,
    more: usize,
}

impl ProtocolReservations {
    /// Of a run with this title.
    pub(crate) fn new(title: &str, results: &ReservationsResult) -> Self {
        let mut rows = rows(results);
        let more = rows.len().saturating_sub(ROWS_MAX);
        rows.truncate(ROWS_MAX);
        Self { title: title.to_owned(), begun: time(results.begun_ns), rows, more }
    }
}

/// The reservations as a table for a terminal, without a line feed at its end. Where there are too
/// many, those that are not ready come first.
pub(crate) fn reservation_table(results: &ReservationsResult) -> String {
    let headings = ["channel", "to", "status", "ready after", "at most", "lost", "why not"];
    let mut table = grid(&headings);
    let rows = rows(results);
    let all = rows.len();
    rows.into_iter().take(ROWS_MAX).for_each(|row| {
        table.add_row(row);
    });
    for column in table.column_iter_mut().take(6).skip(3) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    match all.saturating_sub(ROWS_MAX) {
        0 => ruled(&table),
        more => format!("{}\n{more} more are in the JSON.", ruled(&table)),
    }
}

fn rows(results: &ReservationsResult) -> Vec<[String; 7]> {
    let ends = results.channels.iter().flat_map(|c| c.listeners.iter().map(move |l| (c, l)));
    let mut ends: Vec<_> = ends.collect();
    if ends.len() > ROWS_MAX {
        ends.sort_by_key(|(channel, _)| channel.complete && channel.lost == 0);
    }
    ends.into_iter().map(|(channel, listener)| cells(channel, listener)).collect()
}

fn cells(channel: &ReservationResult, listener: &ListenerReservationResult) -> [String; 7] {
    let failure = listener.failure_code.zip(listener.failure.as_ref());
    let why = failure.map(|(code, text)| {
        let at = listener.failed_at.as_ref().map(|node| format!(" at {node}"));
        format!("{code}: {text}{}", at.unwrap_or_default())
    });
    [
        channel.channel.clone(),
        listener.host.clone(),
        listener.status.clone(),
        time(listener.ready_ns),
        time(channel.worst_case_ns),
        channel.lost.to_string(),
        why.unwrap_or_default(),
    ]
}

fn time(ns: Option<i64>) -> String {
    ns.map_or_else(|| "-".to_owned(), |ns| Span::from_ns(ns).to_string())
}
