//! The verb `nc run`: a station on an interface.

use crate::exit::Exit;
use crate::srp::interrupted;
use crate::terminal;
use anyhow::Context;
use clap::Args;
use onbeat::MonoTime;
use onbeat::interface::{InterfaceStation, WireCounters};
use onbeat_machine::benchmarks::{CpuPlacement, lock_memory};
use onbeat_measure::Statistics;
use onbeat_model::time::Span;
use onbeat_runtime::network_code::counters::StationCounters;
use onbeat_runtime::network_code::instruction::BufferId;
use onbeat_runtime::network_code::program::{BufferRole, StationProgram};
use onbeat_runtime::network_code::timing::{CYCLE_NS, FRAME_WORDS};
use serde_json::{Map, Value, json};
use std::path::PathBuf;
use std::sync::atomic::Ordering;

/// How long one wait is at most, so that an interruption is heeded.
const LOOK_AGAIN: Span = Span::from_ms(50);
/// How many slot errors are kept at most.
const SLOT_ERRORS: usize = 4_000_000;

#[derive(Debug, Args)]
pub(crate) struct StationArguments {
    /// Program: a text, or what `onbeat nc asm` made of it
    program: PathBuf,
    /// Interface that the station is on
    #[arg(long, value_name = "NAME")]
    interface: String,
    /// Rounds that it takes part in [default: until interrupted]
    #[arg(long, value_name = "N")]
    rounds: Option<u64>,
    /// How late a frame may be handed to the kernel; a later one is not sent
    #[arg(long, value_name = "TIME", default_value = "500us",
          value_parser = crate::arguments::duration)]
    late_limit: Span,
    /// Processor for the station [default: any]
    #[arg(long, value_name = "N")]
    cpu: Option<u16>,
    /// SCHED_FIFO priority, 1 to 99 [default: none]
    #[arg(long, value_name = "N", requires = "cpu",
          value_parser = clap::value_parser!(u8).range(1..=99))]
    priority: Option<u8>,
    /// Prints JSON for machines (docs/cli.md)
    #[arg(long)]
    json: bool,
}

/// What came of it.
struct Ended {
    counters: StationCounters,
    wire: WireCounters,
    errors: Option<Statistics>,
    more_errors: u64,
    interrupted: bool,
}

/// Executes the program.
pub(super) fn run(arguments: &StationArguments) -> anyhow::Result<Exit> {
    let program = super::load(&arguments.program)?;
    let ended = match arguments.cpu {
        Some(cpu) => {
            let place = CpuPlacement { cpu, priority: arguments.priority.unwrap_or(0) };
            let name = || format!("processor {cpu}, priority {}", place.priority);
            place.run(|| execute(arguments, program)).with_context(name)??
        }
        None => execute(arguments, program)?,
    };
    if arguments.json {
        terminal::print_json(&document(&ended))?;
    } else {
        terminal::print(text(&ended));
    }
    Ok(match &ended {
        Ended { counters, .. } if counters.traps > 0 => Exit::Early,
        Ended { interrupted: true, .. } if arguments.rounds.is_some() => Exit::Interrupted,
        _ => Exit::Fine,
    })
}

fn execute(arguments: &StationArguments, program: StationProgram) -> anyhow::Result<Ended> {
    let interrupted = interrupted()?;
    let outputs: Vec<(BufferId, usize)> = program
        .buffers
        .iter()
        .enumerate()
        .filter(|(_, buffer)| buffer.role == BufferRole::Output)
        .map(|(id, buffer)| (BufferId(id as u8), usize::from(buffer.words)))
        .collect();
    let name = || format!("interface `{}`", arguments.interface);
    let (limit, interface) = (arguments.late_limit, &arguments.interface);
    let mut station =
        InterfaceStation::open(interface, program, limit, SLOT_ERRORS).with_context(name)?;
    if arguments.priority.is_some() {
        lock_memory().context("locking memory")?;
    }
    let mut words = [0; FRAME_WORDS as usize];
    let mut written = None;
    loop {
        let counters = *station.station().counters();
        let round = counters.rounds_begun + counters.rounds_seen;
        let is_over = arguments.rounds.is_some_and(|rounds| round > rounds);
        if is_over || counters.traps > 0 || interrupted.load(Ordering::Relaxed) {
            break;
        }
        // The application: each word of what it writes is the number of the round.
        if written != Some(round) {
            words.fill(round as u32);
            for (buffer, length) in &outputs {
                station.station().write(*buffer, &words[..*length])?;
            }
            written = Some(round);
        }
        station.step(MonoTime::now() + LOOK_AGAIN).with_context(name)?;
    }
    let errors = station.slot_errors();
    Ok(Ended {
        wire: station.wire_counters(),
        errors: Statistics::of(errors.kept().iter().map(|error| error.as_ns()).collect()),
        more_errors: errors.more(),
        counters: *station.station().counters(),
        interrupted: interrupted.load(Ordering::Relaxed),
    })
}

/// Every counter by its name, in one order for the table and the JSON.
fn figures(ended: &Ended) -> Vec<(&'static str, u64)> {
    let Ended { counters, wire, .. } = ended;
    vec![
        ("rounds_begun", counters.rounds_begun),
        ("rounds_seen", counters.rounds_seen),
        ("data_sent", wire.data),
        ("data_received", counters.data_received),
        ("data_unknown", counters.data_unknown),
        ("data_wrong_length", counters.data_wrong_length),
        ("data_overwritten", counters.data_overwritten),
        ("damaged", counters.damaged),
        ("syncs_discarded", counters.syncs_discarded),
        ("second_masters", counters.second_masters),
        ("sync_timeouts", counters.sync_timeouts),
        ("overruns", counters.overruns),
        ("traps", counters.traps),
        ("missed_slots", wire.missed),
        ("refused_by_kernel", wire.refused),
        ("inputs_late", counters.inputs_late),
    ]
}

fn document(ended: &Ended) -> Value {
    let figures = figures(ended).into_iter().map(|(name, value)| (name.to_owned(), value.into()));
    json!({
        "format": "onbeat-network-code-run",
        "version": 1,
        "counters": figures.collect::<Map<String, Value>>(),
        "lateness_max_ns": ended.counters.lateness_max.saturating_mul(u64::from(CYCLE_NS)),
        "slot_error_ns": ended.errors,
        "slot_errors_not_kept": ended.more_errors,
        "interrupted": ended.interrupted,
    })
}

fn text(ended: &Ended) -> String {
    let mut lines: Vec<String> = figures(ended)
        .into_iter()
        .filter(|(name, value)| *value > 0 || name.starts_with("rounds") || *name == "traps")
        .map(|(name, value)| format!("{:<20}{value:>12}", name.replace('_', " ")))
        .collect();
    let us = |ns: i64| format!("{}.{:02} µs", ns / 1_000, ns % 1_000 / 10);
    lines.push(match &ended.errors {
        Some(errors) => format!(
            "slot error: p50 {}, p99 {}, max {}",
            us(errors.p50),
            us(errors.p99),
            us(errors.max)
        ),
        None => "slot error: unknown, nothing was sent".to_owned(),
    });
    lines.join("\n")
}
