//! What the report's template shows, as text.

use super::figures::{Density, Latency, Load};
use super::table::{UNKNOWN, loss_share, network_name, references, scenario_name, time_name};
use super::{accuracy, breakdown, end_to_end, time_errors};
use crate::badge::{VerdictCount, class, verdict_counts};
use crate::clocks::{ClockChart, clock_difference, clock_readings};
use crate::reservations::ProtocolReservations;
use crate::schedulers::Schedulers;
use crate::stations::StationsView;
use crate::text::{counted, grouped, per_mille, percent, us};
use crate::topology::{COLOURS, Picture, picture};
use onbeat_measure::join::{self, Joined, Message};
use onbeat_measure::{
    ChainResult, ChannelResult, Ended, NetworkName, PartResult, RelativeBasis, RunResult,
    Statistics, TcpResult, Verdict,
};
use onbeat_model::plan::{Bound, ChannelPlan, Plan};
use onbeat_model::record::RunLog;
use onbeat_model::system::{
    Backend, ChannelId, Class, NodeKind, PortId, Quantity, Reference, Subject, System, TimeMode,
    TransportKind,
};
use onbeat_model::time::Span;
use onbeat_model::units::BitRate;
use serde::Serialize;
use std::collections::BTreeMap;

/// The whole page.
#[derive(Debug, Serialize)]
pub(super) struct View {
    stages: Vec<Stage>,
    verdicts: Vec<VerdictCount>,
    runs: Vec<Run>,
    latencies: Vec<Row>,
    breakdown: Vec<Row>,
    end_to_end: Vec<Row>,
    accuracy: Vec<Row>,
    time_errors: Vec<Row>,
    notes: Vec<String>,
    wakeups: Vec<Row>,
    chains: Vec<Row>,
    picture: Option<Picture>,
    has_channels: bool,
    routes: Vec<Route>,
    reservations: Vec<Row>,
    schedulers: Option<Schedulers>,
    clocks: Vec<ClockChart>,
    by_protocol: Vec<ProtocolReservations>,
    stations: Vec<StationsView>,
}

/// One stage of the pipeline and what it made here.
#[derive(Debug, Serialize)]
struct Stage {
    name: &'static str,
    text: String,
}

/// A row of a table; published figures look different from measured ones.
#[derive(Debug, Serialize)]
struct Row {
    reference: bool,
    cells: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Run {
    name: String,
    about: String,
    trouble: Option<String>,
    /// What ran, where there are no channels to tell of.
    programs: Option<String>,
    cards: Vec<Card>,
    latencies: Vec<Figure>,
    /// Of each channel, a message and where its time went.
    messages: Vec<breakdown::DrawnMessage>,
    /// End to end over time.
    end_to_end: Vec<end_to_end::Chart>,
    /// The errors of machines' clocks over time.
    time_errors: Vec<end_to_end::Chart>,
    wakeups: Vec<WakeupFigures>,
    settings: Vec<(&'static str, String)>,
    hash: String,
    command: String,
}

/// The verdict on one channel or chain.
#[derive(Debug, Serialize)]
struct Card {
    name: String,
    kind: &'static str,
    class: &'static str,
    verdict: &'static str,
    reason: String,
    measured: String,
    promised: Option<String>,
    /// Of the promise, in per cent, at most 100: how long the bar is.
    share: i64,
    bounds: Vec<BoundView>,
}

#[derive(Debug, Serialize)]
struct BoundView {
    host: String,
    total: String,
    terms: Vec<(String, String)>,
}

#[derive(Debug, Serialize)]
struct Figure {
    id: String,
    title: String,
    summary: String,
}

#[derive(Debug, Serialize)]
struct WakeupFigures {
    title: String,
    parts: Vec<Figure>,
}

#[derive(Debug, Serialize)]
struct Route {
    name: String,
    colour: Option<usize>,
    paths: Vec<String>,
}

/// What the script draws, by the figure's id.
#[derive(Debug, Default, Serialize)]
pub(super) struct Data {
    loads: Vec<Load>,
    /// Which of these is of a run, and of these noise sources.
    #[serde(skip)]
    of_sources: BTreeMap<(usize, Vec<u32>), usize>,
    latency: BTreeMap<String, LatencyData>,
    density: BTreeMap<String, Density>,
}

#[derive(Debug, Serialize)]
struct LatencyData {
    /// Which of the loads.
    load: usize,
    #[serde(flatten)]
    points: Latency,
    bound_ns: Option<i64>,
    fixed_delay_ns: i64,
    end_us: i64,
}

impl Data {
    /// The load of the noise whose frames leave by a port of this way.
    fn load(&mut self, run: usize, log: &RunLog, plan: &Plan, way: Option<&Vec<PortId>>) -> usize {
        let meets =
            |ports: &Vec<PortId>| way.is_none_or(|way| ports.iter().any(|p| way.contains(p)));
        let sources: Vec<u32> =
            (0..).zip(&plan.noise).filter(|(_, ports)| meets(ports)).map(|(n, _)| n).collect();
        let key = (run, sources);
        if let Some(known) = self.of_sources.get(&key) {
            return *known;
        }
        self.loads.push(Load::of(log, |noise| key.1.contains(&noise.0)));
        self.of_sources.insert(key, self.loads.len() - 1);
        self.loads.len() - 1
    }
}

/// The page and what its script draws.
pub(super) fn view(
    system: &System,
    subject: &[String],
    runs: &[(Plan, RunLog, RunResult)],
) -> (View, Data) {
    let mut data = Data::default();
    let mut views = Vec::new();
    for (number, (plan, log, result)) in runs.iter().enumerate() {
        views.push(run((system, subject), plan, log, result, number, &mut data));
    }
    let results = || runs.iter().map(|(_, _, result)| result);
    let verdicts: Vec<_> = results()
        .flat_map(|r| {
            r.channels.iter().map(|c| c.verdict).chain(r.chains.iter().map(|c| c.verdict))
        })
        .collect();
    let plans = || runs.iter().map(|(plan, ..)| plan);
    let is_reserved =
        |plan: &&Plan| plan.protected && plan.channels.iter().all(|c| c.slot.is_none());
    let reserved = plans().find(is_reserved);
    let protected = reserved.or(plans().find(|plan| plan.protected));
    let any_plan = protected.or(runs.first().map(|(plan, ..)| plan));
    let view = View {
        stages: stages(system, protected, runs),
        verdicts: verdict_counts(&verdicts),
        runs: views,
        latencies: results().flat_map(|r| latency_rows(system, r)).collect(),
        breakdown: results()
            .flat_map(breakdown::rows)
            .map(|cells| Row { reference: false, cells: cells.into() })
            .collect(),
        end_to_end: end_to_end::rows(system, &results().collect::<Vec<_>>())
            .into_iter()
            .map(|row| Row { reference: row.is_published, cells: row.cells })
            .collect(),
        accuracy: accuracy::rows(system, &results().collect::<Vec<_>>())
            .into_iter()
            .map(|(reference, cells)| Row { reference, cells })
            .collect(),
        time_errors: results()
            .flat_map(|r| time_errors::rows(r, scenario_name(&r.scenario)))
            .map(|cells| Row { reference: false, cells })
            .collect(),
        notes: end_to_end::notes(system),
        wakeups: results().flat_map(|r| wakeup_rows(system, r)).collect(),
        chains: results().flat_map(chain_rows).collect(),
        picture: any_plan.map(|plan| picture(system, plan)),
        has_channels: !system.channels.is_empty(),
        routes: any_plan.map_or(Vec::new(), |plan| routes(system, plan)),
        reservations: reserved.map_or(Vec::new(), |plan| reservations(system, plan)),
        schedulers: reserved.and_then(|plan| Schedulers::of(system, plan)),
        clocks: results()
            .filter_map(|r| ClockChart::new(scenario_name(&r.scenario), &r.clocks))
            .collect(),
        by_protocol: results()
            .filter_map(|r| {
                let title = scenario_name(&r.scenario);
                Some(ProtocolReservations::new(title, r.reservations.as_ref()?))
            })
            .collect(),
        stations: runs
            .iter()
            .filter_map(|(plan, _, r)| {
                let title = scenario_name(&r.scenario);
                Some(StationsView::new(title, system, plan, r.stations.as_ref()?))
            })
            .collect(),
    };
    (view, data)
}

fn stages(system: &System, plan: Option<&Plan>, runs: &[(Plan, RunLog, RunResult)]) -> Vec<Stage> {
    let bridges = system.nodes.iter().filter(|n| matches!(n.kind, NodeKind::Bridge(_))).count();
    let hosts = system.nodes.len() - bridges;
    let description: Vec<_> = [
        (hosts, "host", "hosts"),
        (bridges, "bridge", "bridges"),
        (system.links.len(), "link", "links"),
        (system.programs.len(), "program", "programs"),
    ]
    .into_iter()
    .filter(|(count, ..)| *count > 0)
    .map(|(count, one, many)| counted(count, one, many))
    .collect();
    let protected = plan.map_or(0, |p| p.channels.iter().filter(|c| c.protected).count());
    let has_slots = plan.is_some_and(|p| p.channels.iter().any(|c| c.slot.is_some()));
    let planned = match plan {
        _ if system.channels.is_empty() => "no channels".to_owned(),
        Some(_) if has_slots => format!("{protected} of {} with slots", channels(system)),
        Some(_) => format!("{protected} of {} reserved", channels(system)),
        None => format!("{}, no reservations", channels(system)),
    };
    let records: usize =
        runs.iter().flat_map(|(_, log, _)| &log.ends).map(|e| e.records.len()).sum();
    let judged = runs.iter().flat_map(|(_, _, r)| &r.channels);
    let judged = judged.filter(|c| matches!(c.verdict, Verdict::Kept | Verdict::Broken)).count();
    vec![
        Stage { name: "Description", text: description.join(", ") },
        Stage { name: "Plan", text: planned },
        Stage { name: "Run", text: counted(runs.len(), "run", "runs") },
        Stage { name: "Record", text: format!("{} message ends", grouped(records as u64)) },
        Stage { name: "Report", text: counted(judged, "promise judged", "promises judged") },
    ]
}

fn channels(system: &System) -> String {
    counted(system.channels.len(), "channel", "channels")
}

fn run(
    (system, subject): (&System, &[String]),
    plan: &Plan,
    log: &RunLog,
    result: &RunResult,
    number: usize,
    data: &mut Data,
) -> Run {
    let mut latencies = Vec::new();
    let (mut messages, mut wakeups) = (Vec::new(), Vec::new());
    for (id, channel) in (0..).map(ChannelId).zip(&result.channels) {
        let talker = &system.node(system.channel(id).talker).name;
        messages.extend(breakdown::drawn(channel, talker));
        let joined = join::channel(log, id);
        let prefix = format!("r{number}c{}", id.0);
        latencies.extend(latency_figures(
            &prefix,
            (number, plan, log),
            (id, channel),
            &joined,
            data,
        ));
        wakeups.extend(wakeup_figures(&prefix, channel, &joined, data));
    }
    let kind = match (result.network.kind, result.time) {
        (NetworkName::Emulated, TimeMode::Virtual) => "virtual time".to_owned(),
        (NetworkName::Emulated, TimeMode::Real) => "real time".to_owned(),
        (NetworkName::Netns, _) => "network namespaces".to_owned(),
        (NetworkName::Interface | NetworkName::Interfaces, _) => network_name(result),
    };
    let reserved = match (result.stations.is_some(), result.protected) {
        _ if system.channels.is_empty() => "no channels",
        (true, _) => "stations",
        (false, true) => "reservations",
        (false, false) => "no reservations",
    };
    let chains = result.chains.iter().map(chain_card);
    let channels = result.channels.iter().zip(&plan.channels).map(|(c, p)| channel_card(c, p));
    Run {
        name: scenario_name(&result.scenario).to_owned(),
        about: format!("{} · {kind} · {reserved}", Span::from_ns(result.duration_ns)),
        trouble: match &result.ended {
            Ended::Complete => None,
            Ended::Early { at_ns, reason } => {
                Some(format!("Ended early, after {}: {reason}", Span::from_ns(*at_ns)))
            }
        },
        programs: result.channels.is_empty().then(|| programs(system, result)),
        cards: channels.chain(result.tcp.iter().map(tcp_card)).chain(chains).collect(),
        latencies,
        messages,
        end_to_end: end_to_end::charts(system, result, log),
        time_errors: time_errors::charts(result),
        wakeups,
        settings: settings(result),
        hash: result.record_hash.clone(),
        command: command(system, subject, result),
    }
}

fn settings(result: &RunResult) -> Vec<(&'static str, String)> {
    let network = match result.network.kind {
        NetworkName::Emulated => "emulated".to_owned(),
        NetworkName::Netns => format!("namespaces of this machine, {}", transport(result)),
        NetworkName::Interface => format!("{}, {}", network_name(result), transport(result)),
        NetworkName::Interfaces => {
            let part = |part: &PartResult| {
                let end = if part.cut_off { ", cut off" } else { "" };
                format!("{} on {}, {}{end}", part.host, part.interface, part.transport.as_str())
            };
            result.network.parts.iter().map(part).collect::<Vec<_>>().join("; ")
        }
    };
    let tuned = |part: &PartResult| Some(format!("{}: {}", part.host, part.tuned.as_ref()?));
    let tuned = result.network.parts.iter().filter_map(tuned).map(|line| ("Tuned", line));
    let mut settings = vec![
        ("Network", network),
        ("Time", time_name(result.time).to_owned()),
        ("Duration", Span::from_ns(result.duration_ns).to_string()),
        ("Seed", result.seed.to_string()),
        match result.stations {
            Some(_) => ("Backend", "stations of Network Code".to_owned()),
            None => ("Reservations", reservations_made(result).to_owned()),
        },
    ];
    settings.extend(tuned);
    if let Some(lag) = result.lag_max_ns {
        settings.push(("Engine behind the clock by at most", Span::from_ns(lag).to_string()));
    }
    let apart = || result.clock_differences.iter();
    let has_messages =
        |it: &&onbeat_measure::ClockDifference| it.least_ns.is_some() || it.greatest_ns.is_some();
    let by_messages = apart().filter(has_messages).map(clock_difference);
    settings.extend(by_messages.map(|text| ("Clocks, by messages", text)));
    settings.extend(apart().filter_map(clock_readings).map(|text| ("Clocks, by readings", text)));
    settings
}

fn reservations_made(result: &RunResult) -> &'static str {
    match (result.channels.is_empty(), result.protected) {
        (true, _) => "none: no channels",
        (_, true) => "made",
        (_, false) => "not made",
    }
}

/// The programs of a run without channels, and how they ended; if not well, that is told elsewhere.
fn programs(system: &System, result: &RunResult) -> String {
    let names: Vec<_> = system.programs.iter().map(|p| p.name.as_str()).collect();
    match (names.is_empty(), result.ended == Ended::Complete) {
        (true, _) => "Without channels and programs.".to_owned(),
        (_, true) => format!("Without channels. Ended well: {}.", names.join(", ")),
        (_, false) => format!("Without channels. Programs: {}.", names.join(", ")),
    }
}

/// What to type in the description's directory for the same run of `subject`.
fn command(system: &System, subject: &[String], result: &RunResult) -> String {
    let words = subject.iter().map(|word| shell_word(word));
    let mut command = format!("onbeat run {}", words.collect::<Vec<_>>().join(" "));
    if !result.scenario.is_empty() {
        command += &format!(" --scenario {}", shell_word(&result.scenario));
    }
    let duration = match result.duration_ns {
        ns if ns % 1_000_000_000 == 0 => format!("{}s", ns / 1_000_000_000),
        ns => format!("{ns}ns"),
    };
    let seed = result.seed;
    let place = |on: String| format!(" {on} --duration {duration} --seed {seed}");
    let scenario = system.scenarios.iter().find(|s| s.name == result.scenario);
    let described = scenario.map_or(system.run, |s| s.run);
    let emulated = result.network.kind == NetworkName::Emulated;
    let backend = match result.stations {
        Some(_) => Backend::NetworkCode,
        None => Backend::Bridges,
    };
    let mut more = String::new();
    if described.protected && !result.protected && (emulated || described.asks_protection) {
        more += " --unprotected";
    }
    if backend != described.backend {
        more += &format!(" --backend {}", backend.as_str());
    }
    if result.network.kind != NetworkName::Interfaces {
        return command + &place(on_network(result)) + &more;
    }
    // One for each machine.
    let of_part = |part: &PartResult| {
        let (host, name) = (Some(part.host.clone()), Some(part.interface.clone()));
        format!("{command}{}{more}", place(on_interface(&host, &name, part.transport)))
    };
    result.network.parts.iter().map(of_part).collect::<Vec<_>>().join("\n")
}

/// The flags that choose the run's network, of one machine.
fn on_network(result: &RunResult) -> String {
    let network = &result.network;
    match network.kind {
        NetworkName::Emulated => format!("--time {}", time_name(result.time)),
        NetworkName::Netns => format!("--network netns --transport {}", transport(result)),
        NetworkName::Interface | NetworkName::Interfaces => {
            let transport = network.transport.unwrap_or_default();
            on_interface(&network.host, &network.interface, transport)
        }
    }
}

fn on_interface(
    host: &Option<String>,
    interface: &Option<String>,
    transport: TransportKind,
) -> String {
    let word = |text: &Option<String>| shell_word(text.as_deref().unwrap_or(UNKNOWN));
    let (host, interface) = (word(host), word(interface));
    format!("--host {host} --interface {interface} --transport {}", transport.as_str())
}

fn transport(result: &RunResult) -> &'static str {
    result.network.transport.unwrap_or_default().as_str()
}

fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if text.chars().all(plain) { text.into() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

fn channel_card(channel: &ChannelResult, plan: &ChannelPlan) -> Card {
    let bound_view = |(bound, host): (&Bound, &String)| BoundView {
        host: host.clone(),
        total: bound.total().to_string(),
        terms: bound.terms.iter().map(|t| (t.what.clone(), t.span.to_string())).collect(),
    };
    let hosts = channel.listeners.iter().map(|l| &l.host);
    let max = channel.latency_ns.map(|figures| figures.max);
    let measured = match max {
        Some(max) => format!("max {} µs", us(max)),
        None if channel.received.is_none() => "receipts not known here".into(),
        None => "nothing received".into(),
    };
    let lost = match channel.lost {
        None => "losses not known here".to_owned(),
        Some(0) => "none lost".to_owned(),
        Some(lost) => {
            let share = loss_share(channel.lost, channel.received);
            format!("{} lost ({share})", grouped(lost))
        }
    };
    Card {
        name: channel.name.clone(),
        kind: "channel",
        class: class(channel.verdict),
        verdict: channel.verdict.as_str(),
        reason: channel.verdict_reason.clone(),
        measured: format!("{measured} · {}, {lost}", sent(channel)),
        promised: channel
            .bound_ns
            .map(|ns| format!("{} of the bound, {} µs", used(max, ns), us(ns))),
        share: share(max, channel.bound_ns),
        bounds: plan.bounds.iter().zip(hosts).map(bound_view).collect(),
    }
}

fn chain_card(chain: &ChainResult) -> Card {
    let max = chain.latency_ns.map(|figures| figures.max);
    let measured = max.map_or("nothing completed".into(), |max| format!("max {} µs", us(max)));
    let bound = chain.bound_ns.map(|ns| format!("; bound {} µs", us(ns)));
    let (used, deadline) = (used(max, chain.deadline_ns), us(chain.deadline_ns));
    Card {
        name: chain.name.clone(),
        kind: "chain",
        class: class(chain.verdict),
        verdict: chain.verdict.as_str(),
        reason: chain.verdict_reason.clone(),
        measured: format!("{measured} · {} completed", grouped(chain.completed)),
        promised: Some(format!(
            "{used} of the deadline, {deadline} µs{}",
            bound.unwrap_or_default()
        )),
        share: share(max, Some(chain.deadline_ns)),
        bounds: Vec::new(),
    }
}

fn tcp_card(flow: &TcpResult) -> Card {
    let max =
        flow.latency_ns.map_or("nothing received".into(), |f| format!("max {} µs", us(f.max)));
    let missing = match flow.lost.saturating_add(flow.unfinished) {
        0 => "none lost".to_owned(),
        missing => format!("{} not there at the end", grouped(missing)),
    };
    let again = format!(
        "{} of {} sent again, {}",
        grouped(flow.retransmitted),
        counted(flow.segments as usize, "segment", "segments"),
        counted(flow.timeouts as usize, "timeout", "timeouts"),
    );
    Card {
        name: flow.name.clone(),
        kind: "TCP",
        class: class(flow.verdict),
        verdict: flow.verdict.as_str(),
        reason: flow.verdict_reason.clone(),
        measured: format!(
            "{max} · {} sent, {missing}, {} late; {again}",
            grouped(flow.sent),
            grouped(flow.late)
        ),
        promised: None,
        share: 0,
        bounds: Vec::new(),
    }
}

/// How much of a promise was needed.
fn used(measured: Option<i64>, promised: i64) -> String {
    let [measured, promised] = [measured.unwrap_or(0), promised].map(|ns| ns.max(0) as u64);
    percent(measured, promised)
}

fn share(measured: Option<i64>, promised: Option<i64>) -> i64 {
    let (Some(measured), Some(promised)) = (measured, promised) else {
        return 0;
    };
    let share = i128::from(measured) * 100 / i128::from(promised.max(1));
    share.clamp(0, 100) as i64
}

fn latency_figures(
    prefix: &str,
    (number, plan, log): (usize, &Plan, &RunLog),
    (channel_id, channel): (ChannelId, &ChannelResult),
    joined: &Joined,
    data: &mut Data,
) -> Vec<Figure> {
    let mut figures = Vec::new();
    for (index, (listener, result)) in joined.listeners.iter().zip(&channel.listeners).enumerate() {
        // What is not known here has no figure.
        let Some(received) = result.received else { continue };
        let id = format!("{prefix}l{index}");
        let load = data.load(number, log, plan, plan.channel(channel_id).paths.get(index));
        let points = Latency::of(listener, log.duration);
        let latency = match &result.latency_ns {
            Some(figures) => format!(
                "latency {} to {} µs, {} on average",
                us(figures.min),
                us(figures.max),
                us(figures.avg)
            ),
            None => "nothing received".into(),
        };
        let mut summary = format!(
            "{}, {} received, {} lost; {latency}; {}.",
            sent(channel),
            grouped(received),
            grouped(result.lost.unwrap_or(0)),
            load_summary(&data.loads[load]),
        );
        if let Some(bound) = result.bound_ns {
            summary += &format!(" The plan's bound is {} µs.", us(bound));
        }
        if let Some(part) = points.reduced_to_us {
            summary += &format!(
                " Drawn are the fastest and the slowest message of each {}.",
                Span::from_us(part)
            );
        }
        if points.lost_count.iter().any(|count| *count > 1) {
            summary += " One mark may stand for several lost messages.";
        }
        let title = match channel.listeners.len() {
            1 => channel.name.clone(),
            _ => format!("{} at {}", channel.name, result.host),
        };
        let drawn = LatencyData {
            load,
            points,
            bound_ns: result.bound_ns,
            fixed_delay_ns: channel.fixed_delay_ns,
            end_us: log.duration.as_ns() / 1_000,
        };
        data.latency.insert(id.clone(), drawn);
        figures.push(Figure { id, title, summary });
    }
    figures
}

fn sent(channel: &ChannelResult) -> String {
    match channel.sent {
        Some(sent) => format!("{} sent", grouped(sent)),
        None => "sent by another host".into(),
    }
}

fn load_summary(load: &Load) -> String {
    let most = |rates: &[u64]| rates.iter().max().copied().unwrap_or(0) / 1_000;
    match most(&load.offered_kbps) {
        0 => "no interfering load on its way".into(),
        offered => format!(
            "interfering load on its way up to {offered} Mb/s offered, {} Mb/s delivered",
            most(&load.delivered_kbps)
        ),
    }
}

fn wakeup_figures(
    prefix: &str,
    channel: &ChannelResult,
    joined: &Joined,
    data: &mut Data,
) -> Option<WakeupFigures> {
    let errors = &channel.wakeup_error_ns;
    let network_time = errors.relative_basis == Some(RelativeBasis::NetworkTime);
    let talker = || joined.listeners.iter().take(1).flat_map(|l| &l.messages);
    let kinds: [(&str, &str, Option<Statistics>, Vec<i64>); 3] = [
        (
            "l",
            "Listener",
            errors.listener,
            joined.messages().filter_map(Message::listener_wakeup_ns).collect(),
        ),
        ("t", "Talker", errors.talker, talker().filter_map(Message::talker_wakeup_ns).collect()),
        (
            "r",
            "Relative",
            errors.relative,
            joined.messages().filter_map(|m| m.relative_wakeup_ns(network_time)).collect(),
        ),
    ];
    let mut parts = Vec::new();
    for (letter, title, figures, values) in kinds {
        let Some(figures) = figures else { continue };
        let id = format!("{prefix}w{letter}");
        data.density.insert(id.clone(), Density::of(&values, &figures));
        let summary = format!(
            "{} wake-ups; {} µs on average, σ {} µs, largest {} µs.",
            grouped(values.len() as u64),
            us(figures.signed_avg()),
            us(figures.stddev),
            us(figures.largest_deviation())
        );
        parts.push(Figure { id, title: title.into(), summary });
    }
    (!parts.is_empty()).then(|| WakeupFigures { title: channel.name.clone(), parts })
}

fn latency_rows(system: &System, run: &RunResult) -> Vec<Row> {
    let mut rows = Vec::new();
    for (id, channel) in (0..).map(ChannelId).zip(&run.channels) {
        let mut cells = vec![label(run), channel.name.clone()];
        cells.extend(six(channel.latency_ns.as_ref(), |s| s.max));
        cells.push(loss_share(channel.lost, channel.received));
        rows.push(Row { reference: false, cells });
        let of = Subject::Channel(id);
        for reference in references(system, &run.scenario, of, Quantity::Latency) {
            let mut cells = vec![reference.source.clone(), channel.name.clone()];
            cells.extend(published(reference));
            cells.push(reference.lost_per_mille.map_or("–".into(), per_mille));
            rows.push(Row { reference: true, cells });
        }
    }
    rows
}

fn wakeup_rows(system: &System, run: &RunResult) -> Vec<Row> {
    let mut rows = Vec::new();
    for (id, channel) in (0..).map(ChannelId).zip(&run.channels) {
        let errors = &channel.wakeup_error_ns;
        for (name, quantity, figures) in [
            ("listener", Quantity::ListenerWakeup, &errors.listener),
            ("talker", Quantity::TalkerWakeup, &errors.talker),
            ("relative", Quantity::RelativeWakeup, &errors.relative),
        ] {
            let Some(figures) = figures else { continue };
            let mut cells = vec![label(run), channel.name.clone(), name.to_owned()];
            cells.extend(six(Some(figures), Statistics::largest_deviation));
            rows.push(Row { reference: false, cells });
            let of = Subject::Channel(id);
            for reference in references(system, &run.scenario, of, quantity) {
                let source = reference.source.clone();
                let mut cells = vec![source, channel.name.clone(), name.to_owned()];
                cells.extend(published(reference));
                rows.push(Row { reference: true, cells });
            }
        }
        // Elsewhere the relative error says it all.
        let offsets = channel.listeners.iter().filter_map(|it| Some((it, it.wakeup_offset?)));
        for (listener, offset) in offsets.filter(|(_, offset)| offset.uncertainty_ns > 0) {
            let name =
                format!("{} after the talker, ± {}", listener.host, us(offset.uncertainty_ns));
            let mut cells = vec![label(run), channel.name.clone(), name];
            cells.extend(six(Some(&offset.ns), Statistics::largest_deviation));
            rows.push(Row { reference: false, cells });
        }
    }
    rows
}

fn chain_rows(run: &RunResult) -> Vec<Row> {
    let row = |chain: &ChainResult| {
        let mut cells = vec![label(run), chain.name.clone(), chain.channels.join(" → ")];
        cells.extend(six(chain.latency_ns.as_ref(), |s| s.max));
        cells.push(us(chain.deadline_ns));
        cells.push(chain.bound_ns.map_or("–".into(), us));
        cells.push(chain.verdict.as_str().into());
        Row { reference: false, cells }
    };
    run.chains.iter().map(row).collect()
}

fn label(run: &RunResult) -> String {
    let name = scenario_name(&run.scenario);
    match (run.network.kind, run.time) {
        (NetworkName::Emulated, TimeMode::Virtual) => name.to_owned(),
        (NetworkName::Emulated, TimeMode::Real) if name.contains("real") => name.to_owned(),
        (NetworkName::Emulated, TimeMode::Real) => format!("{name} (real time)"),
        (NetworkName::Netns | NetworkName::Interface | NetworkName::Interfaces, _) => {
            format!("{name} ({})", network_name(run))
        }
    }
}

/// Max (as `max` has it), min, avg, σ, p50 and p99 in microseconds; of errors the mean has its sign
/// too, all others are of sizes.
fn six(figures: Option<&Statistics>, max: fn(&Statistics) -> i64) -> Vec<String> {
    let Some(s) = figures else {
        return vec!["–".into(); 6];
    };
    [max(s), s.min, s.signed_avg(), s.stddev, s.p50, s.p99].map(us).to_vec()
}

/// The same columns of published figures.
fn published(reference: &Reference) -> Vec<String> {
    let figure = |span: Option<Span>| span.map_or("–".to_owned(), |s| us(s.as_ns()));
    let four = [reference.max, reference.min, reference.avg, reference.stddev].map(figure);
    four.into_iter().chain(["–".to_owned(), "–".to_owned()]).collect()
}

fn routes(system: &System, plan: &Plan) -> Vec<Route> {
    let hop = |port: &PortId| system.port_label(*port);
    let path = |ports: &[PortId], to: &str| {
        let hops: Vec<_> = ports.iter().map(hop).chain([to.to_owned()]).collect();
        hops.join(" → ")
    };
    let name = |node| system.node(node).name.as_str();
    let channels = system.channels.iter().zip(&plan.channels).enumerate();
    let channels = channels.map(|(number, (channel, planned))| Route {
        name: channel.name.clone(),
        colour: Some(number % COLOURS),
        paths: (planned.paths_to_listeners(channel.listeners.len()))
            .map(|(to, ports)| path(ports, name(channel.listeners[to])))
            .collect(),
    });
    let tcp = system.tcp.iter().zip(&plan.tcp).map(|(flow, [data, acknowledgements])| Route {
        name: format!("{} (TCP)", flow.name),
        colour: None,
        paths: vec![path(data, name(flow.listener)), path(acknowledgements, name(flow.talker))],
    });
    let noise = system.noise.iter().zip(&plan.noise).map(|(noise, ports)| Route {
        name: noise.name.clone(),
        colour: None,
        paths: vec![path(ports, name(noise.to))],
    });
    channels.chain(tcp).chain(noise).collect()
}

fn reservations(system: &System, plan: &Plan) -> Vec<Row> {
    let ports = (0..).map(PortId).zip(&plan.ports);
    let is_reserved = |p: &onbeat_model::plan::PortPlan| {
        p.class_a_streams + p.class_b_streams + p.asynchronous_streams > 0
    };
    let reserved = ports.filter(|(_, port)| is_reserved(port));
    let row = |(id, port): (PortId, &onbeat_model::plan::PortPlan)| {
        let rate = system.link_of(id).rate.as_bps();
        let slopes =
            port.idle_slope(Class::A).as_bps().saturating_add(port.idle_slope(Class::B).as_bps());
        let total = slopes.saturating_add(port.asynchronous_rate.as_bps());
        let class = |rate: BitRate, streams: u32| match streams {
            0 => "–".to_owned(),
            1 => format!("{rate}, 1 stream"),
            _ => format!("{rate}, {streams} streams"),
        };
        let cells = vec![
            system.port_label(id),
            system.link_of(id).rate.to_string(),
            class(port.idle_slope(Class::A), port.class_a_streams),
            class(port.idle_slope(Class::B), port.class_b_streams),
            percent(total, rate),
        ];
        Row { reference: false, cells }
    };
    reserved.map(row).collect()
}
