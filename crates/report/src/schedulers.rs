//! The ATS schedulers of a plan, and what channels of class asynchronous reserve of each port.

use crate::grid::{grid, ruled};
use onbeat_model::plan::Plan;
use onbeat_model::system::{PortId, System};
use serde::Serialize;

/// How many rows of each are shown; the JSON of the plan has all.
const ROWS_MAX: usize = 200;

/// Tables for a page.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Schedulers {
    rows: Vec<Row>,
    more: usize,
}

#[derive(Debug, Serialize)]
struct Row {
    reference: bool,
    cells: Vec<String>,
}

impl Schedulers {
    /// Those of a plan; none if it has none.
    pub(crate) fn of(system: &System, plan: &Plan) -> Option<Self> {
        let mut all = schedulers(system, plan);
        let more = all.len().saturating_sub(ROWS_MAX);
        all.truncate(ROWS_MAX);
        let row = |cells: [String; 5]| Row { reference: false, cells: cells.to_vec() };
        let rows: Vec<_> = all.into_iter().map(row).collect();
        (!rows.is_empty()).then_some(Self { rows, more })
    }
}

/// Per scheduler its channel, egress port, reception port, rate and burst.
fn schedulers(system: &System, plan: &Plan) -> Vec<[String; 5]> {
    let both = system.channels.iter().zip(&plan.channels);
    let rows = both.flat_map(|(channel, planned)| {
        planned.schedulers.iter().map(|scheduler| {
            let [port, group] = [scheduler.port, scheduler.group].map(|id| system.port_label(id));
            let bucket = scheduler.bucket;
            let burst = format!("{} octets", bucket.burst.get());
            [channel.name.clone(), port, group, bucket.rate.to_string(), burst]
        })
    });
    rows.collect()
}

/// The paragraphs for a terminal: what is reserved of each port, and the schedulers.
pub(crate) fn text(system: &System, plan: &Plan) -> Vec<String> {
    let mut ports = grid(&["port", "rate", "asynchronous", "streams"]);
    for (id, port) in (0..).map(PortId).zip(&plan.ports) {
        if port.asynchronous_streams > 0 && ports.row_count() < ROWS_MAX {
            ports.add_row([
                system.port_label(id),
                system.link_of(id).rate.to_string(),
                port.asynchronous_rate.to_string(),
                port.asynchronous_streams.to_string(),
            ]);
        }
    }
    if ports.row_count() == 0 {
        return Vec::new();
    }
    let mut parts = vec![format!("Reserved for asynchronous shaping\n{}", ruled(&ports))];
    let all = schedulers(system, plan);
    let more = match all.len().saturating_sub(ROWS_MAX) {
        0 => String::new(),
        more => format!("\n{more} more are in the JSON."),
    };
    let mut rows = grid(&["channel", "port", "from", "committed rate", "committed burst"]);
    all.into_iter().take(ROWS_MAX).for_each(|cells| {
        rows.add_row(cells);
    });
    if rows.row_count() > 0 {
        parts.push(format!("ATS schedulers\n{}{more}", ruled(&rows)));
    }
    parts
}
