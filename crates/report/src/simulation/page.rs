//! What the page on a simulation shows: as text for its template, as numbers for its script.

use super::dedicated;
use super::map::{Map, map};
use crate::badge::{VerdictCount, verdict_counts};
use crate::clocks::ClockChart;
use crate::reservations::ProtocolReservations;
use crate::text::{counted, grouped};
use onbeat_measure::Verdict;
use onbeat_measure::simulation::{
    FlowResult, ListenerResult, Phases, Results, SimulationSettings, described,
};
use onbeat_model::plan::{Bound, Plan};
use onbeat_model::system::{Backend, NodeKind, System};
use onbeat_model::time::Span;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The most broken promises that are listed above the tables.
const BROKEN_MAX: usize = 20;
/// How many parts the chart of used bounds has, up to the whole bound; one more is for the rest.
const PARTS: usize = 20;

/// The page without its tables' rows.
#[derive(Debug, Serialize)]
pub(super) struct View {
    about: Vec<(&'static str, String)>,
    verdicts: Vec<VerdictCount>,
    queue_verdicts: Vec<VerdictCount>,
    broken: Vec<String>,
    broken_more: usize,
    bars: Vec<Bar>,
    judged: usize,
    queues: Vec<u8>,
    clocks: Vec<ClockChart>,
    by_protocol: Vec<ProtocolReservations>,
    /// Ports of dedicated paths: name, frames of stations, those dropped, aborts, sent again, lost.
    dedicated: Vec<[String; 6]>,
    map: Map,
}

/// How many listeners needed which share of their bound.
#[derive(Debug, Serialize)]
struct Bar {
    label: String,
    count: usize,
    /// Of the highest bar, in per cent: so many units of the style sheet.
    height: usize,
    over: bool,
}

/// What the script fills the tables with. Lists instead of objects, and texts that come often by
/// their place in a list: there may be many thousand rows.
#[derive(Debug, Default, Serialize)]
pub(super) struct Data {
    texts: Vec<String>,
    verdicts: [&'static str; 4],
    /// Name, kind, class, queue, talker, released, policed, overflowed, faulted, duplicates,
    /// rogue, deadline, reason.
    flows: Vec<FlowRow>,
    /// Flow, host, frames, reordered, min, mean, max, release of max, bound, best, verdict, and the
    /// bound's terms: text, span, text, span, …
    ends: Vec<EndRow>,
    /// Port, other end, rate, busy, queues: queue, load, sent, dropped, frames and octets that
    /// waited, their bounds, longest wait, preempted, verdict.
    ports: Vec<(String, usize, u64, u64, Vec<QueueRow>)>,
}

type FlowRow =
    (String, &'static str, Option<&'static str>, u8, usize, [u64; 6], Option<i64>, String);
type EndRow = (usize, usize, [u64; 2], Option<[i64; 4]>, Option<[i64; 2]>, usize, Vec<i64>);
type QueueRow = (u8, u64, [u64; 2], [u32; 2], Option<[u64; 2]>, i64, u64, usize);

/// The page and what its script shows.
pub(super) fn page(system: &System, plan: &Plan, results: &Results) -> (View, Data) {
    let verdicts: Vec<_> = results.flows.iter().map(|flow| flow.verdict).collect();
    let queues = || results.ports.iter().flat_map(|port| &port.queues);
    let bounded = queues().filter(|queue| queue.bound_frames.is_some());
    let bounded: Vec<_> = bounded.map(|queue| queue.verdict).collect();
    let mut broken: Vec<_> = results.broken().collect();
    let broken_more = broken.len().saturating_sub(BROKEN_MAX);
    broken.truncate(BROKEN_MAX);
    let ends = || results.flows.iter().flat_map(|flow| &flow.listeners);
    let view = View {
        about: about(system, results),
        verdicts: verdict_counts(&verdicts),
        queue_verdicts: verdict_counts(&bounded),
        broken,
        broken_more,
        bars: bars(ends()),
        judged: ends().filter(|end| share(end).is_some()).count(),
        queues: queues().map(|q| q.queue).collect::<BTreeSet<_>>().into_iter().rev().collect(),
        clocks: ClockChart::new(&results.system, &results.clocks).into_iter().collect(),
        by_protocol: results
            .reservations
            .iter()
            .map(|reserved| ProtocolReservations::new(&results.system, reserved))
            .collect(),
        dedicated: dedicated::rows(results),
        map: map(system, results),
    };
    (view, data(system, plan, results))
}

fn about(system: &System, results: &Results) -> Vec<(&'static str, String)> {
    let SimulationSettings { duration_ns, seed, repetitions, phases } = results.settings;
    let totals = &results.totals;
    let bridges = system.nodes.iter().filter(|n| matches!(n.kind, NodeKind::Bridge(_))).count();
    let hosts = system.nodes.len() - bridges;
    let network = [
        counted(hosts, "host", "hosts"),
        counted(bridges, "bridge", "bridges"),
        counted(system.links.len(), "link", "links"),
    ];
    let phases = match phases {
        Phases::Described => "as described",
        Phases::Random => "at random",
        Phases::Aligned => "to meet one frame",
    };
    let lost: u64 = results.flows.iter().map(FlowResult::lost).sum();
    vec![
        ("Network", network.join(", ")),
        ("Flows", counted(results.flows.len(), "flow", "flows")),
        match results.backend {
            Backend::NetworkCode => ("Backend", "stations of Network Code".to_owned()),
            Backend::Bridges => {
                ("Reservations", if results.protected { "made" } else { "not made" }.to_owned())
            }
        },
        ("Simulated", Span::from_ns(duration_ns).to_string()),
        ("Repetitions", grouped(repetitions.into())),
        ("First releases", phases.to_owned()),
        ("Seed", seed.to_string()),
        ("Frames released", grouped(totals.released)),
        ("Frames received", grouped(totals.received)),
        ("Copies lost", grouped(lost)),
        ("Frames sent by ports", grouped(totals.sent)),
        ("Events", grouped(totals.events)),
    ]
}

/// Of the bound, in thousandths and rounded up, what the slowest frame took.
fn share(end: &ListenerResult) -> Option<u64> {
    let (latency, bound) = end.latency_ns.zip(end.bound_ns)?;
    let (max, bound) = (latency.max.max(0) as u128, bound.max(1) as u128);
    u64::try_from((max * 1000).div_ceil(bound)).ok()
}

fn bars<'a>(ends: impl Iterator<Item = &'a ListenerResult>) -> Vec<Bar> {
    let mut counts = [0; PARTS + 1];
    for share in ends.filter_map(share) {
        let part = 1000 / PARTS as u64;
        counts[(share.max(1).div_ceil(part) as usize - 1).min(PARTS)] += 1;
    }
    let most = counts.iter().max().copied().unwrap_or(0).max(1);
    let bar = |(part, count): (usize, usize)| Bar {
        label: match part {
            PARTS => "over".to_owned(),
            _ => format!("≤ {} %", (part + 1) * 100 / PARTS),
        },
        count,
        height: (count * 100).div_ceil(most),
        over: part == PARTS,
    };
    counts.into_iter().enumerate().map(bar).collect()
}

const VERDICTS: [Verdict; 4] =
    [Verdict::Broken, Verdict::NotJudged, Verdict::Kept, Verdict::NoPromise];

fn verdict(verdict: Verdict) -> usize {
    VERDICTS.iter().position(|other| *other == verdict).unwrap_or(0)
}

/// Texts by their place in a list.
#[derive(Default)]
struct Texts {
    list: Vec<String>,
    places: BTreeMap<String, usize>,
}

impl Texts {
    fn place(&mut self, text: &str) -> usize {
        if let Some(place) = self.places.get(text) {
            return *place;
        }
        self.places.insert(text.to_owned(), self.list.len());
        self.list.push(text.to_owned());
        self.list.len() - 1
    }
}

fn data(system: &System, plan: &Plan, results: &Results) -> Data {
    let mut texts = Texts::default();
    let mut data = Data { verdicts: VERDICTS.map(Verdict::as_str), ..Data::default() };
    let flows = results.flows.iter().zip(described(system, plan));
    for (number, (flow, described)) in flows.enumerate() {
        data.flows.push(flow_row(flow, &mut texts));
        for (end, bound) in flow.listeners.iter().zip(&described.bounds) {
            data.ends.push(end_row(number, end, *bound, &mut texts));
        }
    }
    for port in &results.ports {
        let queues = port.queues.iter().map(|q| {
            let bounds = q.bound_frames.zip(q.bound_octets).map(|(f, o)| [f, o]);
            let deepest = [q.deepest_frames, q.deepest_octets];
            let (sent, wait) = ([q.sent, q.dropped], q.wait_max_ns);
            let verdict = verdict(q.verdict);
            (q.queue, q.load_per_mille, sent, deepest, bounds, wait, q.preempted, verdict)
        });
        let (to, queues) = (texts.place(&port.to), queues.collect());
        data.ports.push((port.port.clone(), to, port.rate_bps, port.busy_per_mille, queues));
    }
    data.texts = texts.list;
    data
}

fn flow_row(flow: &FlowResult, texts: &mut Texts) -> FlowRow {
    let class = flow.class.map(|class| match class {
        onbeat_model::system::Class::A => "class A",
        onbeat_model::system::Class::B => "class B",
        onbeat_model::system::Class::Scheduled => "scheduled",
        onbeat_model::system::Class::Asynchronous => "asynchronous",
    });
    let talker = texts.place(&flow.talker);
    let lost = [flow.policed, flow.overflowed, flow.faulted];
    let counts = [flow.released, lost[0], lost[1], lost[2], flow.duplicates, flow.rogue];
    let reason = flow.verdict_reason.clone();
    (
        flow.name.clone(),
        flow.kind.as_str(),
        class,
        flow.queue,
        talker,
        counts,
        flow.deadline_ns,
        reason,
    )
}

fn end_row(flow: usize, end: &ListenerResult, bound: Option<&Bound>, texts: &mut Texts) -> EndRow {
    let terms = bound.map_or(&[][..], |bound| &bound.terms);
    (
        flow,
        texts.place(&end.host),
        [end.frames, end.reordered],
        end.latency_ns.map(|l| [l.min, l.mean, l.max, l.max_released]),
        end.bound_ns.zip(end.best_ns).map(|(bound, best)| [bound, best]),
        verdict(end.verdict),
        terms.iter().flat_map(|t| [texts.place(&t.what) as i64, t.span.as_ns()]).collect(),
    )
}
