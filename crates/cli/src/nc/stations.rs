//! `onbeat plan --backend network-code`: channels as slots of rounds, and the stations' programs.

use crate::arguments::{PlanArguments, StationPlanArguments};
use crate::chosen::WrongArgument;
use crate::exit::Exit;
use crate::output::{Kind, Output};
use crate::source::Source;
use crate::terminal;
use anyhow::Context;
use comfy_table::Cell;
use onbeat::interface::{ChannelTable, MAX_CHANNELS, TABLE_EXTENSION};
use onbeat_model::plan::Plan;
use onbeat_model::system::{NodeId, NodeKind, System};
use onbeat_model::time::Span;
use onbeat_model::units::Octets;
use onbeat_network_code::planning::{
    BusOptions, BusPlan, BusReceipt, BusSlot, BusStation, FrameDelays, plan_channels,
};
use onbeat_report::grid::{grid, right, ruled};
use onbeat_report::plan::sum;
use onbeat_run::process::Reaper;
use onbeat_runtime::network_code::image;
use onbeat_runtime::network_code::timing::{CYCLE_NS, Cycles};
use onbeat_timing::tfg::Limits;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

/// Plans slots and programs, shows them, and writes the programs if that is asked for.
pub(crate) fn plan(arguments: &PlanArguments, source: &Source) -> anyhow::Result<Exit> {
    are_for_bridges(arguments)?;
    let system = &source.system;
    let options = options(system, &arguments.stations)?;
    let planned = plan_channels(system, &options).map_err(|errors| source.wrong(&errors));
    let (channels, plan) = planned?;
    let warnings = plan.warnings.clone();
    let (channels, _) = source.study(system, (channels, warnings), Limits::default())?;
    match arguments.json {
        true => terminal::print_json(&document(system, &plan, &channels.chains))?,
        false => terminal::print(text(system, &plan, &channels.chains)),
    }
    if plan.delays == FrameDelays::OfFrame {
        terminal::say(
            "onbeat: there is room only if each frame counts by its own length, by which \
             `onbeat nc verify` may not prove these programs",
        );
    }
    if let Some(directory) = &arguments.deploy {
        deploy(system, &channels, &plan, directory)?;
        let count = plan.stations.len();
        let shown = directory.display();
        terminal::say(format_args!(
            "onbeat: programs of {count} stations, tables of the channels of their hosts: {shown}"
        ));
        if plan.slot_error == Span::ZERO {
            terminal::say(
                "onbeat: these programs count with stations that are exact; `onbeat nc run` is \
                 late now and then: plan with `--slot-error`, such as 100us, for it",
            );
        }
    }
    Ok(Exit::Fine)
}

/// What plans for bridges do not take.
pub(crate) fn are_asked_for_nothing(arguments: &StationPlanArguments) -> Result<(), WrongArgument> {
    let StationPlanArguments { master, drift_ppm, best_effort, slot_error } = arguments;
    let asked = [
        (master.is_some(), "--master"),
        (drift_ppm.is_some(), "--drift-ppm"),
        (best_effort.is_some(), "--best-effort"),
        (slot_error.is_some(), "--slot-error"),
    ];
    match asked.into_iter().find(|(is_asked, _)| *is_asked) {
        Some((_, flag)) => Err(WrongArgument(format!("`{flag}` is for `--backend network-code`"))),
        None => Ok(()),
    }
}

/// What plans for stations do not take.
fn are_for_bridges(arguments: &PlanArguments) -> anyhow::Result<()> {
    let asked = [
        (arguments.unprotected, "--unprotected"),
        (arguments.html.is_some(), "--html"),
        (arguments.diff.is_some(), "--diff"),
        (arguments.keep.read()?.is_some(), "--keep"),
        (arguments.admit, "--admit"),
        (arguments.exact, "--exact"),
    ];
    match asked.into_iter().find(|(is_asked, _)| *is_asked) {
        Some((_, flag)) => {
            Err(WrongArgument(format!("`{flag}` is for `--backend bridges`")).into())
        }
        None => Ok(()),
    }
}

fn options(system: &System, arguments: &StationPlanArguments) -> anyhow::Result<BusOptions> {
    let default = BusOptions::default();
    let master = arguments.master.as_deref().map(|name| {
        let mut nodes = (0..).map(NodeId).zip(&system.nodes);
        let is_it = |node: &onbeat_model::system::Node| {
            node.name == name && matches!(node.kind, NodeKind::Host(_))
        };
        let found = nodes.find(|(_, node)| is_it(node)).map(|(id, _)| id);
        found.ok_or_else(|| WrongArgument(format!("the description has no host `{name}`")))
    });
    Ok(BusOptions {
        master: master.transpose()?,
        drift_ppb: arguments.drift_ppm.map_or(default.drift_ppb, |ppm| ppm * 1_000),
        best_effort: arguments.best_effort.map_or(default.best_effort, Octets::new),
        slot_error: arguments.slot_error,
    })
}

/// Writes the programs into a directory, and the tables of their hosts' channels, all or nothing.
fn deploy(
    system: &System,
    channels: &Plan,
    plan: &BusPlan,
    directory: &Path,
) -> anyhow::Result<()> {
    let mut reaper = Reaper::start(Command::new(std::env::current_exe()?).arg("keeper"))?;
    let output = Output::begin(directory, Kind::Deployment, &mut reaper)?;
    for station in &plan.stations {
        let name = &station.program.station;
        output.write(&format!("{name}.nc"), &station.text)?;
        let image = image::emit(&station.program).map_err(|error| anyhow::anyhow!("{error}"))?;
        output.write(&format!("{name}.ncb"), image)?;
        if let Some(table) = table(system, channels, plan, station)? {
            output.write(&format!("{name}.{TABLE_EXTENSION}"), table.to_string())?;
        }
    }
    output.finish()
}

/// What programs on the host of a station read; none if it has no channel.
fn table(
    system: &System,
    channels: &Plan,
    plan: &BusPlan,
    station: &BusStation,
) -> anyhow::Result<Option<ChannelTable>> {
    let buffer_of = |name: &str| {
        let mut own = station.buffers.iter();
        own.find(|(id, _)| system.channel(*id).name == name).map(|(_, buffer)| *buffer)
    };
    let table = ChannelTable::of(system, channels, station.node);
    let table = table.and_then(|table| table.by_station(plan.slot_error, buffer_of));
    let host = &station.program.station;
    let table = table.with_context(|| {
        format!("host `{host}` has more than {MAX_CHANNELS} channels: no program may")
    })?;
    Ok(Some(table).filter(|table| !table.ends.is_empty()))
}

fn span(cycles: Cycles) -> Span {
    // Far less than a second.
    Span::from_ns(cycles.0.cast_signed() * i64::from(CYCLE_NS))
}

fn host(plan: &BusPlan, station: usize) -> &str {
    &plan.stations[station].program.station
}

/// Whether a bound keeps the fixed delay of its channel.
fn is_in_time(system: &System, slot: &BusSlot, receipt: &BusReceipt) -> bool {
    receipt.bound.total() <= system.channel(slot.channel).fixed_delay
}

fn text(system: &System, plan: &BusPlan, chains: &[Option<Span>]) -> String {
    let headings =
        ["channel", "listener", "bound", "best", "fixed delay", "verdict", "largest term"];
    let mut bounds = grid(&headings);
    let mut terms = String::new();
    for slot in &plan.slots {
        let channel = system.channel(slot.channel);
        for receipt in &slot.receipts {
            let bound = &receipt.bound;
            let to = host(plan, receipt.listener);
            let verdict = if is_in_time(system, slot, receipt) { "in time" } else { "may be late" };
            let largest = bound.dominating().map(|term| format!("{} {}", term.span, term.what));
            let times = [bound.total(), bound.best, channel.fixed_delay].map(|at| at.to_string());
            let mut cells = vec![Cell::new(&channel.name), Cell::new(to)];
            cells.extend(times.map(right));
            cells.extend([Cell::new(verdict), Cell::new(largest.unwrap_or_default())]);
            bounds.add_row(cells);
            terms += &sum(&channel.name, to, bound);
        }
    }
    let mut parts = vec![ruled(&bounds), terms.trim().to_owned()];
    if !chains.is_empty() {
        parts.push(chain_bounds(system, chains));
    }
    parts.push(format!("Slots, from the beginning of a round\n{}", slots(system, plan)));
    let repeats = match plan.rounds {
        1 => String::new(),
        rounds => format!(", and all repeats after {rounds} rounds"),
    };
    let used = plan.load_ppm.div_ceil(1_000);
    parts.push(format!(
        "A round takes {}{repeats}. `{}` begins it. The busiest link is taken for {}.{} %.",
        span(plan.round),
        host(plan, plan.master),
        used / 10,
        used % 10,
    ));
    parts.join("\n\n")
}

fn chain_bounds(system: &System, chains: &[Option<Span>]) -> String {
    let mut table = grid(&["chain", "bound", "deadline", "verdict"]);
    for (chain, bound) in system.chains.iter().zip(chains) {
        let (bound, verdict) = match bound {
            None => ("none".to_owned(), "no bound"),
            Some(bound) if *bound <= chain.deadline => (bound.to_string(), "in time"),
            Some(bound) => (bound.to_string(), "may be late"),
        };
        let mut cells = vec![Cell::new(&chain.name)];
        cells.extend([bound, chain.deadline.to_string()].map(right));
        cells.push(Cell::new(verdict));
        table.add_row(cells);
    }
    ruled(&table)
}

fn slots(system: &System, plan: &BusPlan) -> String {
    let shares = plan.slots.iter().any(|slot| slot.shared.is_some());
    let mut headings =
        vec!["channel", "message", "words", "from", "rounds", "begins", "links free"];
    if shares {
        headings.push("one of");
    }
    let mut slots = grid(&headings);
    for slot in &plan.slots {
        let rounds = match (slot.every, slot.first_round) {
            (1, _) => "all".to_owned(),
            (every, first) => format!("{first}, {}, …", first + every),
        };
        let mut cells = vec![Cell::new(&system.channel(slot.channel).name)];
        cells.extend([slot.message.0.to_string(), slot.words.to_string()].map(right));
        cells.extend([Cell::new(host(plan, slot.sender)), Cell::new(rounds)]);
        cells.extend([slot.start, slot.end].map(|at| right(span(at).to_string())));
        let table = slot.shared.map(|table| Cell::new(&system.alternatives[table].name));
        cells.extend(table);
        slots.add_row(cells);
    }
    ruled(&slots)
}

/// docs/cli.md says what is in it.
fn document(system: &System, plan: &BusPlan, chains: &[Option<Span>]) -> Value {
    let ns = |cycles: Cycles| span(cycles).as_ns();
    let listener = |slot: &BusSlot, receipt: &BusReceipt| {
        let terms = receipt.bound.terms.iter();
        let terms = terms.map(|term| json!({ "what": term.what, "span_ns": term.span.as_ns() }));
        json!({
            "host": host(plan, receipt.listener),
            "bound_ns": receipt.bound.total().as_ns(),
            "best_ns": receipt.bound.best.as_ns(),
            "in_time": is_in_time(system, slot, receipt),
            "dominating": receipt.bound.dominating().map(|term| &term.what),
            "receive_min_ns": ns(receipt.receive[0]),
            "receive_max_ns": ns(receipt.receive[1]),
            "terms": terms.collect::<Vec<_>>(),
        })
    };
    let channel = |slot: &BusSlot| {
        let channel = system.channel(slot.channel);
        let listeners = slot.receipts.iter().map(|receipt| listener(slot, receipt));
        json!({
            "name": channel.name,
            "talker": host(plan, slot.sender),
            "message": slot.message.0,
            "words": slot.words,
            "interval_ns": channel.interval.as_ns(),
            "fixed_delay_ns": channel.fixed_delay.as_ns(),
            "every": slot.every,
            "first_round": slot.first_round,
            "start_ns": ns(slot.start),
            "end_ns": ns(slot.end),
            "create_ns": ns(slot.create),
            "alternatives": slot.shared.map(|table| &system.alternatives[table].name),
            "listeners": listeners.collect::<Vec<_>>(),
        })
    };
    let station = |station: &BusStation| {
        let buffers = station
            .buffers
            .iter()
            .map(|(of, id)| json!({ "channel": system.channel(*of).name, "buffer": id.0 }));
        json!({
            "host": station.program.station,
            "instructions": station.program.words.len(),
            "buffers": buffers.collect::<Vec<_>>(),
        })
    };
    let chains = system.chains.iter().zip(chains).map(|(chain, bound)| {
        let (bound, deadline) = (bound.map(Span::as_ns), chain.deadline.as_ns());
        json!({ "name": chain.name, "bound_ns": bound, "deadline_ns": deadline })
    });
    json!({
        "format": "onbeat-network-code-plan",
        "version": 1,
        "system": system.name,
        "master": host(plan, plan.master),
        "drift_ppb": plan.drift_ppb,
        "slot_error_ns": plan.slot_error.as_ns(),
        "round_ns": ns(plan.round),
        "rounds": plan.rounds,
        "beginning_ns": ns(plan.beginning),
        "ending_ns": ns(plan.ending),
        "load_ppm": plan.load_ppm,
        "delays": match plan.delays {
            FrameDelays::OfSender => "of-sender",
            FrameDelays::OfFrame => "of-frame",
        },
        "channels": plan.slots.iter().map(channel).collect::<Vec<_>>(),
        "chains": chains.collect::<Vec<_>>(),
        "stations": plan.stations.iter().map(station).collect::<Vec<_>>(),
    })
}
