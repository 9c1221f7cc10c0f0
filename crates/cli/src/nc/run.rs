//! The verb `nc run`: a station on an interface.

use crate::exit::Exit;
use crate::srp::interrupted;
use crate::terminal;
use anyhow::{Context, bail};
use clap::Args;
use onbeat::MonoTime;
use onbeat::interface::{
    ChannelCounters, ChannelTable, InterfaceStation, ServedEndpoint, StationEndpoint,
    StationService, WireCounters,
};
use onbeat_machine::benchmarks::{CpuPlacement, lock_memory};
use onbeat_measure::Statistics;
use onbeat_model::time::Span;
use onbeat_runtime::network_code::counters::StationCounters;
use onbeat_runtime::network_code::instruction::BufferId;
use onbeat_runtime::network_code::program::{BufferRole, StationProgram};
use onbeat_runtime::network_code::timing::{CYCLE_NS, FRAME_WORDS};
use onbeat_runtime::talker::ChannelParameters;
use serde_json::{Map, Value, json};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

/// How long one wait is at most, so that an interruption is heeded.
const LOOK_AGAIN: Span = Span::from_ms(50);
/// How late frames may be where nothing says so.
const LATE_LIMIT: Span = Span::from_us(500);
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
    /// Table of this host's channels, of the plan that the program is of: carries them, for
    /// programs with ONBEAT_INTERFACE and ONBEAT_SYSTEM
    #[arg(long, value_name = "HOST.channels")]
    table: Option<PathBuf>,
    /// User whose programs may open channels, by number, beside root and this one; may be repeated
    #[arg(long, value_name = "UID", requires = "table")]
    user: Vec<u32>,
    /// How late a frame may be handed to the kernel; a later one is not sent [default: as late as
    /// the table's plan counts with, else 500us]
    #[arg(long, value_name = "TIME", value_parser = crate::arguments::duration)]
    late_limit: Option<Span>,
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
    channels: ChannelCounters,
    errors: Option<Statistics>,
    more_errors: u64,
    interrupted: bool,
}

/// Executes the program.
pub(super) fn run(arguments: &StationArguments) -> anyhow::Result<Exit> {
    let program = super::load(&arguments.program)?;
    let table = arguments.table.as_deref().map(crate::srp::read_table).transpose()?;
    let late_limit = late_limit(arguments, table.as_ref());
    let outputs = match table {
        Some(_) => Vec::new(),
        None => outputs(&program),
    };
    let name = || format!("interface `{}`", arguments.interface);
    let station = InterfaceStation::open(&arguments.interface, program, late_limit, SLOT_ERRORS);
    let mut station = station.with_context(name)?;
    let service = table.map(|table| service(arguments, &mut station, &table)).transpose()?;
    let is_over = &AtomicBool::new(false);
    let ended = std::thread::scope(|scope| {
        // Also if this thread panics: the scope waits for the other one.
        let _at_the_end = AtTheEnd(is_over);
        // Before this thread has its priority, which others would inherit.
        if let Some(mut service) = service {
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    if let Err(error) = service.step(LOOK_AGAIN) {
                        return terminal::say(format_args!("onbeat: no more programs: {error}"));
                    }
                }
            });
        }
        placed(arguments, || execute(arguments, station, &outputs))
    })?;
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

/// Says so when it is dropped.
struct AtTheEnd<'a>(&'a AtomicBool);

impl Drop for AtTheEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// How late frames may be: no later than the plan of a table counts with, unless it counts with
/// stations that are exact. Says where slots of others may be hit.
fn late_limit(arguments: &StationArguments, table: Option<&ChannelTable>) -> Span {
    let planned = table.and_then(|table| table.slot_error);
    let late_limit = arguments.late_limit.or(planned.filter(|planned| *planned > Span::ZERO));
    let late_limit = late_limit.unwrap_or(LATE_LIMIT);
    if planned.is_some_and(|planned| planned < late_limit) {
        let planned = planned.unwrap_or_default();
        terminal::say(format_args!(
            "onbeat: frames may be {late_limit} late, and the plan counts with {planned}: they may \
             be in slots of others; plan with `--slot-error`, or give `--late-limit`"
        ));
    }
    late_limit
}

/// Does it where and as urgently as is asked for.
fn placed(
    arguments: &StationArguments,
    work: impl FnOnce() -> anyhow::Result<Ended> + Send,
) -> anyhow::Result<Ended> {
    let Some(cpu) = arguments.cpu else { return work() };
    let place = CpuPlacement { cpu, priority: arguments.priority.unwrap_or(0) };
    place.run(work).with_context(|| format!("processor {cpu}, priority {}", place.priority))?
}

/// The buffers that the application writes, and their words.
fn outputs(program: &StationProgram) -> Vec<(BufferId, usize)> {
    let buffers = program.buffers.iter().enumerate();
    let outputs = buffers.filter(|(_, buffer)| buffer.role == BufferRole::Output);
    outputs.map(|(id, buffer)| (BufferId(id as u8), usize::from(buffer.words))).collect()
}

/// Lets the station carry the channels of a table, and serves the programs that write and read
/// them.
fn service(
    arguments: &StationArguments,
    station: &mut InterfaceStation,
    table: &ChannelTable,
) -> anyhow::Result<StationService> {
    let StationArguments { program, table: path, interface, user, .. } = arguments;
    let shown = || path.as_deref().unwrap_or(program).display();
    let host = &station.station().program().station;
    if *host != table.host {
        bail!("{}: the table of host `{}`, the program is of `{host}`", shown(), table.host);
    }
    let mut ends = Vec::new();
    for end in &table.ends {
        let buffer = end.buffer.with_context(|| {
            let plan = "`onbeat plan SYSTEM --backend network-code --deploy DIRECTORY` writes both";
            format!("{}: the table of a host without a station: {plan}", shown())
        })?;
        ends.push(StationEndpoint { buffer, role: end.role, parameters: end.parameters });
    }
    let doors = station.carry(&ends, 0).map_err(|(at, error)| {
        anyhow::anyhow!("{}: channel `{}`: {error}", shown(), table.ends[at].name)
    })?;
    let served = ends.iter().zip(doors).map(|(end, door)| {
        let ChannelParameters { stream_id: stream, size, .. } = end.parameters;
        ServedEndpoint { role: end.role, stream, size, door }
    });
    StationService::open(interface, served.collect(), user.clone()).map_err(|error| {
        let is_taken = error.kind() == std::io::ErrorKind::AddrInUse;
        let why = if is_taken { "another station runs on it".into() } else { error.to_string() };
        anyhow::anyhow!("interface `{interface}`: {why}")
    })
}

/// `outputs` are what the command writes as the application.
fn execute(
    arguments: &StationArguments,
    mut station: InterfaceStation,
    outputs: &[(BufferId, usize)],
) -> anyhow::Result<Ended> {
    let interrupted = interrupted()?;
    let name = || format!("interface `{}`", arguments.interface);
    if arguments.priority.is_some() {
        lock_memory().context("locking memory")?;
    }
    let mut words = [0; FRAME_WORDS as usize];
    let mut written = None;
    station.end_after(arguments.rounds.unwrap_or(u64::MAX));
    station.begin().with_context(name)?;
    loop {
        let counters = *station.station().counters();
        let round = counters.rounds_begun + counters.rounds_seen;
        if station.is_over() || counters.traps > 0 || interrupted.load(Ordering::Relaxed) {
            break;
        }
        // The application: each word of what it writes is the number of the round.
        if written != Some(round) {
            words.fill(round as u32);
            for (buffer, length) in outputs {
                station.station().write(*buffer, &words[..*length])?;
            }
            written = Some(round);
        }
        station.step(MonoTime::now() + LOOK_AGAIN).with_context(name)?;
    }
    let mut counters = *station.station().counters();
    let errors = station.slot_errors();
    // The next one was not begun on the wire.
    counters.rounds_begun = counters.rounds_begun.min(arguments.rounds.unwrap_or(u64::MAX));
    Ok(Ended {
        wire: station.wire_counters(),
        channels: station.channel_counters(),
        errors: Statistics::of(errors.kept().iter().map(|error| error.as_ns()).collect()),
        more_errors: errors.more(),
        counters,
        interrupted: interrupted.load(Ordering::Relaxed),
    })
}

/// Every counter by its name, in one order for the table and the JSON.
fn figures(ended: &Ended) -> Vec<(&'static str, u64)> {
    let Ended { counters, wire, channels, .. } = ended;
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
        ("late_frames", wire.late),
        ("messages_replaced", channels.replaced),
        ("messages_malformed", channels.malformed),
        ("messages_overflowed", channels.overflowed),
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
