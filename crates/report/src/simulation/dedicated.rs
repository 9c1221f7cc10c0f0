//! What bridges with a dedicated path did to best effort.

use crate::grid::{grid, ruled};
use crate::text::grouped;
use comfy_table::CellAlignment;
use onbeat_measure::simulation::{DedicatedResult, Results};

/// The most rows of a table.
const ROWS_MAX: usize = 200;

/// The heading of each column.
const HEADINGS: [&str; 6] =
    ["port", "stations' frames", "dropped for others", "aborts", "sent again", "aborted and lost"];

/// A row for each port of a dedicated path, those with the most aborts first where there are more
/// than a table has.
pub(super) fn rows(results: &Results) -> Vec<[String; HEADINGS.len()]> {
    let ports = results.ports.iter();
    let mut ports: Vec<_> = ports.filter_map(|port| Some((&port.port, port.dedicated?))).collect();
    if ports.len() > ROWS_MAX {
        ports.sort_by_key(|(_, seen)| std::cmp::Reverse(seen.aborts));
        ports.truncate(ROWS_MAX);
    }
    let row = |(port, seen): (&String, DedicatedResult)| {
        let DedicatedResult { sent, aborts, resent, lost, collisions } = seen;
        let [sent, collisions, aborts, resent, lost] =
            [sent, collisions, aborts, resent, lost].map(grouped);
        [port.clone(), sent, collisions, aborts, resent, lost]
    };
    ports.into_iter().map(row).collect()
}

/// The same for a terminal, without a line feed at its end; none if there is no dedicated path.
pub(super) fn dedicated_table(results: &Results) -> Option<String> {
    let rows = rows(results);
    if rows.is_empty() {
        return None;
    }
    let mut table = grid(&HEADINGS);
    rows.into_iter().for_each(|row| {
        table.add_row(row);
    });
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    Some(ruled(&table))
}
