//! The verb `nc simulate`: the programs of a network in virtual time.

use crate::arguments::duration;
use crate::exit::Exit;
use crate::simulate::Bar;
use crate::source::{self, Source, Wrong};
use crate::trust::Trust;
use crate::{run, terminal};
use anyhow::anyhow;
use clap::Args;
use comfy_table::Cell;
use onbeat_model::codes::verification as codes;
use onbeat_model::diagnostic::{Diagnostic, Severity};
use onbeat_model::observed::{FlowObserved, LatencyObserved, Observed};
use onbeat_model::system::{Backend, NodeId, System};
use onbeat_model::time::{NetTime, Span};
use onbeat_net::network_code::{
    EgressObserved, GeneratedValues, MessageListener, MessageObserved, NetworkCodeError,
    NetworkCodeObserved, NetworkCodeSettings, SetupError, SpanExtremes, StationObserved,
    StationSetup, simulate as simulate_stations,
};
use onbeat_report::grid::{grid, right, ruled};
use onbeat_runtime::network_code::counters::StationCounters;
use onbeat_runtime::network_code::program::StationProgram;
use onbeat_runtime::network_code::trace::Outcome;
use serde_json::{Map, Value, json};
use std::path::PathBuf;
use std::sync::atomic::Ordering;

/// Which programs are simulated in which network, and how.
#[derive(Debug, Args)]
pub(crate) struct NetworkArguments {
    /// Description of the network, or directory of a system.toml
    system: PathBuf,
    /// Programs of the stations: texts, or what `onbeat nc asm` made of them
    #[arg(required = true)]
    programs: Vec<PathBuf>,
    /// Rounds after which it ends [default: those of the duration]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    rounds: Option<u64>,
    /// Time after which it ends at the latest, as in 20s or 500ms [default: the description's]
    #[arg(long, value_parser = duration)]
    duration: Option<Span>,
    /// Seed of all random numbers [default: the description's]
    #[arg(long)]
    seed: Option<u64>,
    /// Time within which each station starts, at an instant of its own
    #[arg(long, value_name = "TIME", default_value = "1ms", value_parser = duration)]
    start_within: Span,
    /// How often applications write their output buffers
    #[arg(long, value_name = "TIME", default_value = "100us", value_parser = duration)]
    write_every: Span,
    /// Plans channels without reservations
    #[arg(long)]
    unprotected: bool,
    /// Prints JSON for machines (docs/cli.md)
    #[arg(long)]
    json: bool,
    /// Trusts the description's directory, from now on: its `cflags` reach the C compiler, and it
    /// may name files elsewhere
    #[arg(long)]
    trust: bool,
}

/// What was simulated, and what came of it.
struct Simulated<'a> {
    system: &'a System,
    programs: &'a [StationProgram],
    rounds: Option<u64>,
    observed: NetworkCodeObserved,
    traffic: Observed,
    is_interrupted: bool,
}

/// Simulates, and says what was lost or collided.
pub(super) fn simulate(arguments: &NetworkArguments) -> anyhow::Result<Exit> {
    let source = Source::load(&arguments.system, arguments.json, Trust::by(arguments.trust))?;
    let programs: Vec<_> =
        arguments.programs.iter().map(|path| super::load(path)).collect::<Result<_, _>>()?;
    let mut system = source.system.clone();
    system.run.duration = arguments.duration.unwrap_or(system.run.duration);
    system.run.seed = arguments.seed.unwrap_or(system.run.seed);
    // Channels that stations carry have no reservation at bridges, which may have none for them.
    let over_bridges = system.run.backend == Backend::Bridges;
    system.run.protected &= !arguments.unprotected && over_bridges;
    let plan = source.plan_without_bounds(&system, system.run.protected)?;
    let settings = NetworkCodeSettings {
        seed: system.run.seed,
        start_within: arguments.start_within,
        rounds: arguments.rounds,
        duration: system.run.duration,
        logs: false,
    };
    let interrupted = run::interrupt()?;
    let bar = Bar::new(settings.duration, 1, format!("stations, {}", settings.duration));
    let mut before = NetTime::ZERO;
    let mut progress = |now| {
        bar.advance(before, now);
        before = now;
        !interrupted.load(Ordering::Relaxed)
    };
    let stations = stations(&system, &programs, arguments.write_every);
    let observed = simulate_stations(&system, &plan, stations, &settings, &mut progress);
    bar.finish();
    let (observed, traffic) = observed.map_err(|error| match error {
        NetworkCodeError::Setup(errors) => refused(&errors),
        NetworkCodeError::Overfull(overfull) => anyhow!(overfull.explain(&system)),
    })?;
    let is_interrupted = interrupted.load(Ordering::Relaxed);
    let (system, programs, rounds) = (&system, &programs[..], arguments.rounds);
    let simulated = Simulated { system, programs, rounds, observed, traffic, is_interrupted };
    if arguments.json {
        terminal::print_json(&simulated.document())?;
    } else {
        terminal::print(simulated.text());
    }
    Ok(simulated.exit())
}

/// Each program with an application. What has no host is found later.
fn stations(system: &System, programs: &[StationProgram], every: Span) -> Vec<StationSetup> {
    let station = |program: &StationProgram| {
        let node = system.nodes.iter().position(|node| node.name == program.station);
        let node = NodeId(node.unwrap_or_default() as u32);
        StationSetup::new(program.clone(), GeneratedValues::new(system.run.seed, node, every))
    };
    programs.iter().map(station).collect()
}

/// Says why the network cannot have these programs.
fn refused(errors: &[SetupError]) -> anyhow::Error {
    let found = errors.iter().map(|error| Diagnostic {
        severity: Severity::Error,
        code: codes::MODEL,
        message: error.to_string(),
        at: None,
        related: Vec::new(),
        help: match error {
            SetupError::NoNode(_) | SetupError::Bridge(_) | SetupError::NoLink(_) => {
                "name the station as a host of the description that has a link"
            }
            SetupError::Twice(_) => "give each station one program",
            SetupError::Limits(_) => "assemble the program again",
            SetupError::Rate { .. } | SetupError::Tags { .. } => {
                "declare the `medium` that the link is"
            }
            SetupError::Shaped(_) => "use `--unprotected`, or another class for its channels",
            SetupError::Preemptable(_) => "make traffic class 7 express there",
        }
        .to_owned(),
    });
    source::show(&[], &found.collect::<Vec<_>>());
    Wrong.into()
}

/// Every counter of a station that a simulation can have, in one order.
fn counts(counters: &StationCounters) -> [(&'static str, u64); 13] {
    [
        ("rounds_begun", counters.rounds_begun),
        ("rounds_seen", counters.rounds_seen),
        ("data_sent", counters.data_sent),
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
    ]
}

fn us(span: Span) -> String {
    let ns = span.as_ns();
    format!("{}.{:03}", ns / 1_000, ns % 1_000)
}

/// To the nearest nanosecond; none of nothing.
fn mean(had: &LatencyObserved) -> Option<Span> {
    let frames = i128::from(had.frames);
    (frames > 0).then(|| Span::from_ns(((had.sum_ns + frames / 2) / frames) as i64))
}

/// As in `1 message`.
fn plural(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

impl Simulated<'_> {
    fn name(&self, node: NodeId) -> &str {
        &self.system.node(node).name
    }

    /// Messages for a station that did not come.
    fn lost(&self, station: &StationObserved) -> u64 {
        let listeners = self.observed.messages.iter().flat_map(|message| &message.listeners);
        let its = listeners.filter(|listener| listener.node == station.node);
        its.map(MessageListener::lost).sum()
    }

    /// Rounds that the station that has begun most of them has begun.
    fn rounds(&self) -> u64 {
        let begun = self.observed.stations.iter().map(|station| station.counters.rounds_begun);
        begun.max().unwrap_or_default()
    }

    /// Why a station stopped, and where in its program.
    fn trap(&self, station: &StationObserved) -> Option<String> {
        let entry = station.trap?;
        let Outcome::Trapped(trap) = entry.outcome else { return None };
        let name = self.name(station.node);
        let program = self.programs.iter().find(|program| program.station == name)?;
        let at = match program.lines.get(entry.address.index()) {
            Some(line) => format!("{}:{line}", program.source),
            None => format!("address {}", entry.address.index()),
        };
        Some(format!("{at}: station `{name}` stopped: {trap:?}"))
    }

    fn traps(&self) -> impl Iterator<Item = String> {
        self.observed.stations.iter().filter_map(|station| self.trap(station))
    }

    fn exit(&self) -> Exit {
        let is_broken = self.observed.lost() > 0 || self.observed.collisions() > 0;
        match () {
            () if self.is_interrupted => Exit::Interrupted,
            () if is_broken || self.traps().next().is_some() => Exit::Broken,
            () => Exit::Fine,
        }
    }

    fn text(&self) -> String {
        let streams = (!self.traffic.streams.is_empty()).then(|| self.streams());
        let tables = [self.stations(), self.messages()].into_iter().chain(streams);
        let tables: Vec<String> = tables.chain([self.ports()]).map(|table| ruled(&table)).collect();
        let mut lines = vec![self.summary()];
        lines.extend(self.traps());
        format!("{}\n\n{}", tables.join("\n\n"), lines.join("\n"))
    }

    fn stations(&self) -> comfy_table::Table {
        let mut table = grid(&[
            "station",
            "rounds",
            "sent",
            "received",
            "lost",
            "overruns",
            "timeouts",
            "discarded",
            "traps",
        ]);
        for station in &self.observed.stations {
            let counters = &station.counters;
            let mut row = vec![Cell::new(self.name(station.node))];
            let figures = [
                counters.rounds_begun + counters.rounds_seen,
                counters.data_sent,
                counters.data_received,
                self.lost(station),
                counters.overruns,
                counters.sync_timeouts,
                counters.syncs_discarded,
                counters.traps,
            ];
            row.extend(figures.map(|count| right(count.to_string())));
            table.add_row(row);
        }
        table
    }

    fn messages(&self) -> comfy_table::Table {
        let mut table = grid(&[
            "message",
            "listener",
            "sent",
            "received",
            "overwritten",
            "lost",
            "min, µs",
            "max, µs",
        ]);
        for message in &self.observed.messages {
            for listener in &message.listeners {
                let mut row = vec![Cell::new(&message.name), Cell::new(self.name(listener.node))];
                let figures =
                    [listener.sent, listener.received, listener.overwritten, listener.lost()];
                row.extend(figures.map(|count| right(count.to_string())));
                let ends = listener.latency.map(|latency| [latency.min, latency.max].map(us));
                row.extend(ends.unwrap_or_else(|| ["–"; 2].map(str::to_owned)).map(right));
                table.add_row(row);
            }
        }
        table
    }

    fn ports(&self) -> comfy_table::Table {
        let is_any_dedicated = self.traffic.ports.iter().any(|port| port.dedicated.is_some());
        let mut head = vec!["port", "frames", "collisions", "waits", "longest, µs"];
        if is_any_dedicated {
            head.extend(["dropped", "aborts", "sent again", "aborted"]);
        }
        let mut table = grid(&head);
        for port in &self.observed.ports {
            let mut row = vec![
                Cell::new(self.system.port_label(port.port)),
                right(port.frames.to_string()),
                right(port.collisions.to_string()),
                right(port.waits.to_string()),
                right(us(port.wait_max)),
            ];
            if is_any_dedicated {
                let seen = self.traffic.ports[port.port.index()].dedicated;
                let seen = seen.map(|it| [port.dropped, it.aborts, it.resent, it.lost]);
                row.extend(match seen {
                    Some(figures) => figures.map(|count| right(count.to_string())),
                    None => ["–"; 4].map(|none| right(none.to_owned())),
                });
            }
            table.add_row(row);
        }
        table
    }

    fn streams(&self) -> comfy_table::Table {
        let counts = ["stream", "listener", "released", "received", "lost"];
        let mut table = grid(&[&counts[..], &["min, µs", "mean, µs", "max, µs"]].concat());
        for (stream, seen) in self.system.streams.iter().zip(&self.traffic.streams) {
            for (listener, had) in stream.listeners.iter().zip(&seen.listeners) {
                let mut row = vec![Cell::new(&stream.name), Cell::new(self.name(*listener))];
                let figures = [seen.released, had.frames, had.lost.total()];
                row.extend(figures.map(|count| right(count.to_string())));
                let latency = [had.min, mean(had), had.max];
                let latency = latency.map(|of| of.map_or_else(|| "–".to_owned(), us));
                row.extend(latency.map(right));
                table.add_row(row);
            }
        }
        table
    }

    /// Whether anything was lost or collided.
    fn summary(&self) -> String {
        let rounds = self.rounds();
        let time = format!("{} in {}", plural(rounds, "round", "rounds"), self.observed.duration);
        let mut lines = match self.rounds.filter(|wanted| *wanted > rounds) {
            Some(wanted) => vec![format!("{time}, of {wanted} that were asked for.")],
            None => vec![format!("{time}.")],
        };
        let is_sent = self.observed.messages.iter().any(|message| message.sent > 0);
        lines.push(match self.observed.lost() {
            0 if !is_sent => "No message was sent: whether any is lost is unknown.".to_owned(),
            0 => "No message was lost.".to_owned(),
            lost => format!("{} lost.", plural(lost, "message was", "messages were")),
        });
        if self.observed.overwritten() > 0 {
            let count = plural(self.observed.overwritten(), "message was", "messages were");
            lines.push(format!("{count} overwritten before they were received."));
        }
        lines.push(match self.observed.collisions() {
            0 if self.observed.ports.is_empty() => "No frame left a port.".to_owned(),
            0 => "No frames collided.".to_owned(),
            count => format!("{count} times a frame waited for one of another station."),
        });
        lines.join("\n")
    }

    fn document(&self) -> Value {
        let observed = &self.observed;
        let station = |station: &StationObserved| {
            let counters = counts(&station.counters);
            let counters = counters.map(|(name, count)| (name.to_owned(), count.into()));
            json!({
                "name": self.name(station.node),
                "start_ns": (station.start - NetTime::ZERO).as_ns(),
                "starts": station.starts,
                "lost": self.lost(station),
                "counters": Map::from_iter(counters),
                "trap": self.trap(station),
            })
        };
        let ports = observed.ports.iter().map(|port| self.port(port));
        let streams = self.traffic.streams.iter().enumerate();
        let streams = streams.map(|(at, seen)| self.stream(at, seen));
        json!({
            "format": "onbeat-network-code-simulation",
            "version": 1,
            "seed": self.system.run.seed,
            "duration_ns": observed.duration.as_ns(),
            "rounds": self.rounds(),
            "rounds_wanted": self.rounds,
            "lost": observed.lost(),
            "overwritten": observed.overwritten(),
            "collisions": observed.collisions(),
            "interrupted": self.is_interrupted,
            "stations": observed.stations.iter().map(station).collect::<Vec<_>>(),
            "messages": observed.messages.iter().map(|it| self.message(it)).collect::<Vec<_>>(),
            "streams": streams.collect::<Vec<_>>(),
            "ports": ports.collect::<Vec<_>>(),
        })
    }

    fn stream(&self, at: usize, seen: &FlowObserved) -> Value {
        let stream = &self.system.streams[at];
        let listener = |(node, had): (&NodeId, &LatencyObserved)| {
            let latency = [had.min, mean(had), had.max].map(|of| of.map(Span::as_ns));
            let [min, mean, max] = latency;
            json!({
                "host": self.name(*node),
                "received": had.frames,
                "overflowed": had.lost.overflowed,
                "aborted": had.lost.aborted,
                "lost": had.lost.total(),
                "latency_ns": min.map(|min| json!({ "min": min, "mean": mean, "max": max })),
            })
        };
        let listeners = stream.listeners.iter().zip(&seen.listeners).map(listener);
        json!({
            "name": stream.name,
            "released": seen.released,
            "listeners": listeners.collect::<Vec<_>>(),
        })
    }

    fn message(&self, message: &MessageObserved) -> Value {
        let extremes = |of: Option<SpanExtremes>| {
            of.map(|of| json!({ "min": of.min.as_ns(), "max": of.max.as_ns() }))
        };
        let listener = |listener: &MessageListener| {
            json!({
                "station": self.name(listener.node),
                "sent": listener.sent,
                "arrived": listener.arrived,
                "received": listener.received,
                "overwritten": listener.overwritten,
                "lost": listener.lost(),
                "latency_ns": extremes(listener.latency),
                "wire_latency_ns": extremes(listener.wire),
            })
        };
        json!({
            "id": message.id.0,
            "name": message.name,
            "sent": message.sent,
            "listeners": message.listeners.iter().map(listener).collect::<Vec<_>>(),
        })
    }

    fn port(&self, port: &EgressObserved) -> Value {
        json!({
            "name": self.system.port_label(port.port),
            "frames": port.frames,
            "collisions": port.collisions,
            "dropped": port.dropped,
            "waits": port.waits,
            "wait_max_ns": port.wait_max.as_ns(),
            "dedicated": self.traffic.ports[port.port.index()].dedicated.map(|seen| json!({
                "sent": seen.sent,
                "aborts": seen.aborts,
                "resent": seen.resent,
                "lost": seen.lost,
                "collisions": seen.collisions,
            })),
        })
    }
}
