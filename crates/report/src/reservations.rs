//! What people see of reservations that hosts and bridges made by protocol.

use crate::csv::{cell, quoted};
use crate::grid::{grid, ruled};
use comfy_table::CellAlignment;
use onbeat_measure::{ListenerReservationResult, ReservationResult, ReservationsResult};
use onbeat_model::time::Span;
use serde::Serialize;
use std::io::{self, Write};

/// The most rows of a table.
const ROWS_MAX: usize = 200;

/// Writes one line per channel and listener (RFC 4180, with a header line) of reservations by
/// protocol, in the order of the description. Times are in nanoseconds from the Talker Advertise;
/// what is not known is empty. `complete` is 0 or 1, `lost` a count: both of the channel.
///
/// # Errors
/// Whatever `out` reports.
pub fn reservations_csv(results: &ReservationsResult, out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "channel,talker_status,complete,lost,worst_case_ns,listener,status,ready_ns,failure_code,\
         failure,failed_at"
    )?;
    for channel in &results.channels {
        for listener in &channel.listeners {
            let (complete, lost) = (u8::from(channel.complete), channel.lost);
            let name = quoted(&channel.channel);
            write!(out, "{name},{},{complete},{lost}", channel.status)?;
            cell(out, channel.worst_case_ns)?;
            write!(out, ",{},{}", quoted(&listener.host), listener.status)?;
            cell(out, listener.ready_ns)?;
            cell(out, listener.failure_code)?;
            for text in [&listener.failure, &listener.failed_at] {
                write!(out, ",{}", quoted(text.as_deref().unwrap_or_default()))?;
            }
            writeln!(out)?;
        }
    }
    Ok(())
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_has_its_code_its_meaning_and_who_says_so_in_a_line_of_csv() {
        let listener = |host: &str, status: &str| ListenerReservationResult {
            host: host.to_owned(),
            status: status.to_owned(),
            failure_code: None,
            failure: None,
            failed_at: None,
            ready_ns: None,
        };
        let failed = ListenerReservationResult {
            failure_code: Some(1),
            failure: Some("insufficient bandwidth".to_owned()),
            failed_at: Some("switch".to_owned()),
            ..listener("c", "failed")
        };
        let ready = ListenerReservationResult { ready_ns: Some(4_538), ..listener("b", "ready") };
        let results = ReservationsResult {
            begun_ns: None,
            channels: vec![ReservationResult {
                channel: "camera".to_owned(),
                status: "ready-failed".to_owned(),
                ready_ns: None,
                worst_case_ns: Some(2_114_000_000),
                complete: false,
                lost: 2,
                listeners: vec![ready, failed],
            }],
        };
        let mut table = Vec::new();
        reservations_csv(&results, &mut table).expect("memory takes it");
        let lines = "camera,ready-failed,0,2,2114000000,b,ready,4538,,,\n\
            camera,ready-failed,0,2,2114000000,c,failed,,1,insufficient bandwidth,switch\n";
        let text = String::from_utf8(table).expect("UTF-8");
        assert_eq!(text.split_once('\n').expect("a header").1, lines);
    }
}
