//! The verb `clock simulate`: gPTP over bridges in a row, in virtual time.

use crate::chosen::WrongArgument;
use crate::exit::Exit;
use crate::terminal;
use clap::{Args, ValueEnum};
use comfy_table::{Cell, CellAlignment};
use onbeat_model::time::{NetTime, Span};
use onbeat_net::gptp::{ErrorFigures, GptpScenario, NODES_MAX, Stamping, Trace, simulate};
use onbeat_report::grid::{grid, ruled};
use serde_json::{Value, json};

/// Errors count from here on, unless the simulation is shorter than twice that: then clocks have
/// found each other.
const SETTLED: Span = Span::from_s(20);
/// The most nodes that are shown in a table one by one; of more, those at powers of two.
const SHOWN_MAX: usize = 16;

#[derive(Debug, Args)]
pub(crate) struct SimulateArguments {
    /// Number of links between the grandmaster and the last clock
    #[arg(long, value_name = "N", default_value_t = 7,
          value_parser = clap::value_parser!(u16).range(1..NODES_MAX as i64))]
    hops: u16,
    /// Source and granularity of timestamps
    #[arg(long, alias = "stamps", default_value = "hardware")]
    timestamping: Timestamping,
    /// Simulated time, as in 100s
    #[arg(long, value_name = "TIME", default_value = "100s",
          value_parser = crate::arguments::duration)]
    duration: Span,
    /// Seed of all random numbers
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Prints JSON for machines (docs/clock.md)
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Timestamping {
    /// Interfaces, to 8 ns
    Hardware,
    /// Interfaces as coarse as 802.1AS permits, to 40 ns
    Coarse,
    /// The kernel, late by microseconds
    Software,
}

/// Simulates, and shows how far each clock was from the grandmaster's.
pub(super) fn show(arguments: &SimulateArguments) -> anyhow::Result<Exit> {
    let SimulateArguments { hops, timestamping, duration, seed, json } = arguments;
    let stamping = match timestamping {
        Timestamping::Hardware => Stamping::HARDWARE,
        Timestamping::Coarse => Stamping::COARSE,
        Timestamping::Software => Stamping::SOFTWARE,
    };
    let mut scenario = GptpScenario::chain(usize::from(*hops), stamping, *seed);
    scenario.duration = *duration;
    let trace = simulate(&scenario).map_err(|error| WrongArgument(error.to_string()))?;
    let from = NetTime::ZERO + SETTLED.min(Span::from_ns(duration.as_ns() / 2));
    terminal::print(if *json {
        document(arguments, &trace, from).to_string()
    } else {
        text(arguments, &trace, from)
    });
    Ok(Exit::Fine)
}

fn text(arguments: &SimulateArguments, trace: &Trace, from: NetTime) -> String {
    let last = usize::from(arguments.hops);
    let shown = |hop: &usize| last <= SHOWN_MAX || *hop == last || hop.is_power_of_two();
    let mut grid = grid(&["hops", "p50", "p99", "p99.99", "max", "largest step"]);
    for hop in (1..=last).filter(shown) {
        let figures = match trace.error(hop, from) {
            Some(ErrorFigures { p50, p99, p9999, max, .. }) => {
                [p50, p99, p9999, max].map(|span| span.to_string())
            }
            None => ["never set"; 4].map(str::to_owned),
        };
        let step = trace.nodes[hop].largest_step.to_string();
        let cells = [hop.to_string()].into_iter().chain(figures).chain([step]);
        grid.add_row(cells.map(|text| Cell::new(text).set_alignment(CellAlignment::Right)));
    }
    let SimulateArguments { duration, seed, .. } = arguments;
    let from = from - NetTime::ZERO;
    format!(
        "{}\nerror against the grandmaster's clock from {from} to {duration}, seed {seed}",
        ruled(&grid)
    )
}

fn document(arguments: &SimulateArguments, trace: &Trace, from: NetTime) -> Value {
    let nodes = (1..=usize::from(arguments.hops)).map(|hop| {
        let error = trace.error(hop, from).map(|figures| {
            json!({
                "count": figures.count,
                "p50": figures.p50.as_ns(),
                "p99": figures.p99.as_ns(),
                "p9999": figures.p9999.as_ns(),
                "max": figures.max.as_ns(),
            })
        });
        let step = trace.nodes[hop].largest_step.as_ns();
        json!({ "hops": hop, "error_ns": error, "largest_step_ns": step })
    });
    json!({
        "format": "onbeat-clock-simulation",
        "version": 1,
        "seed": arguments.seed,
        "duration_ns": arguments.duration.as_ns(),
        "from_ns": (from - NetTime::ZERO).as_ns(),
        "nodes": nodes.collect::<Vec<_>>(),
    })
}
