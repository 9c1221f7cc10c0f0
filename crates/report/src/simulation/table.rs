//! What a terminal shows of a simulation.

use super::dedicated::dedicated_table;
use crate::clocks::clock_table;
use crate::grid::{grid, ruled};
use crate::reservations::reservation_table;
use crate::text::{grouped, per_mille, us};
use comfy_table::CellAlignment;
use onbeat_measure::Verdict;
use onbeat_measure::simulation::{FlowResult, Latency, ListenerResult, PortResult, Results};

/// The most rows of the table of flows.
const ROWS_MAX: usize = 40;
/// The most rows of the table of ports.
const PORTS_MAX: usize = 10;

/// The flows, the busiest ports and the sums as text without a line feed at its end. Where
/// there are more than 40 rows, those that matter most come first and the rest is left to the
/// JSON, and a line says so.
pub fn table(results: &Results) -> String {
    let reserved = results.reservations.as_ref().map(reservation_table);
    let clocks = clock_table(&results.clocks);
    let dedicated = dedicated_table(results);
    let tables =
        [Some(flow_table(results)), Some(port_table(results)), dedicated, reserved, clocks];
    let tables = tables.into_iter().flatten().chain([summary(results)]);
    tables.collect::<Vec<_>>().join("\n\n")
}

fn flow_table(results: &Results) -> String {
    let ends = results.flows.iter().flat_map(|f| f.listeners.iter().map(move |l| (f, l)));
    let mut rows: Vec<_> = ends.collect();
    let all = rows.len();
    if all > ROWS_MAX {
        rows.sort_by_key(|(_, end)| urgency(end));
        rows.truncate(ROWS_MAX);
    }
    let headings = [
        "flow",
        "to",
        "queue",
        "frames",
        "lost",
        "min µs",
        "mean µs",
        "max µs",
        "bound µs",
        "bound/max",
        "verdict",
    ];
    let mut table = grid(&headings);
    rows.iter().for_each(|(flow, end)| {
        table.add_row(flow_row(flow, end));
    });
    for column in table.column_iter_mut().take(10).skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let mut text = ruled(&table);
    if all > ROWS_MAX {
        text += &format!(
            "\n{ROWS_MAX} of {}: broken ones first, then those nearest to their bound",
            grouped(all as u64)
        );
    }
    text
}

fn port_table(results: &Results) -> String {
    // Where frames wait before a gate that never opens, nothing is sent.
    let used = |port: &&PortResult| {
        port.queues.iter().any(|queue| queue.sent > 0 || queue.deepest_frames > 0)
    };
    let mut ports: Vec<_> = results.ports.iter().filter(used).collect();
    ports.sort_by_key(|port| (!is_broken(port), std::cmp::Reverse(port.busy_per_mille)));
    let all = ports.len();
    ports.truncate(PORTS_MAX);
    let headings = ["port", "to", "busy", "queue", "frames", "dropped", "deepest", "bound"];
    let mut table = grid(&headings);
    for port in ports {
        for (at, queue) in port.queues.iter().rev().enumerate() {
            let once = |text: &str| if at == 0 { text.to_owned() } else { String::new() };
            let bound = queue.bound_octets.map_or(String::new(), grouped);
            table.add_row([
                once(&port.port),
                once(&port.to),
                once(&per_mille(port.busy_per_mille)),
                queue.queue.to_string(),
                grouped(queue.sent),
                grouped(queue.dropped),
                grouped(queue.deepest_octets.into()),
                if queue.verdict == Verdict::Broken { format!("{bound} ✕") } else { bound },
            ]);
        }
    }
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let mut text = ruled(&table);
    if all > PORTS_MAX {
        text += &format!("\nthe {PORTS_MAX} busiest of {} ports", grouped(all as u64));
    }
    text + "\ndeepest and bound: octets that waited at once"
}

fn summary(results: &Results) -> String {
    let totals = &results.totals;
    let times = match results.settings.repetitions {
        1 => "once".to_owned(),
        many => format!("{} times", grouped(many.into())),
    };
    format!(
        "{} simulated {times}: {} frames released, {} received; {} events. {}",
        onbeat_model::time::Span::from_ns(results.settings.duration_ns),
        grouped(totals.released),
        grouped(totals.received),
        grouped(totals.events),
        match (totals.kept, totals.broken) {
            (0, 0) => "Nothing was promised or judged.".to_owned(),
            (kept, 0) => format!("All {} judged promises kept.", grouped(kept)),
            (kept, broken) => {
                let all = grouped(kept + broken);
                format!("{} of {all} judged promises broken.", grouped(broken))
            }
        }
    )
}

fn is_broken(port: &PortResult) -> bool {
    port.queues.iter().any(|queue| queue.verdict == Verdict::Broken)
}

/// Sorts broken promises before kept ones, and those that were nearly broken before the others.
pub(super) fn urgency(end: &ListenerResult) -> (u8, u64) {
    let rank = match end.verdict {
        Verdict::Broken => 0,
        Verdict::NotJudged => 1,
        Verdict::Kept => 2,
        Verdict::NoPromise => 3,
    };
    (rank, end.bound_by_max_per_mille.unwrap_or(u64::MAX))
}

fn flow_row(flow: &FlowResult, end: &ListenerResult) -> [String; 11] {
    let latency = |of: fn(&Latency) -> i64| {
        end.latency_ns.as_ref().map_or(String::new(), |latency| us(of(latency)))
    };
    [
        flow.name.clone(),
        end.host.clone(),
        flow.queue.to_string(),
        grouped(end.frames),
        // Of a replicated frame a copy may be lost, and another one arrive.
        grouped(end.lost().min(flow.released.saturating_sub(end.frames))),
        latency(|l| l.min),
        latency(|l| l.mean),
        latency(|l| l.max),
        end.bound_ns.map_or(String::new(), us),
        end.bound_by_max_per_mille.map_or(String::new(), ratio),
        end.verdict.as_str().to_owned(),
    ]
}

/// Thousandths as a factor with two decimals, rounded down so that what is below 1 reads so.
pub(super) fn ratio(per_mille: u64) -> String {
    format!("{}.{:02}", per_mille / 1000, per_mille % 1000 / 10)
}
