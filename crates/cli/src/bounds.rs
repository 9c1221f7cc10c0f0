//! The verb `bounds`: the worst case of every channel and stream, and of every queue.

use crate::arguments::BoundsArguments;
use crate::chosen::WrongArgument;
use crate::exit::Exit;
use crate::network;
use crate::source::Source;
use crate::terminal;
use crate::trust::Trust;
use anyhow::bail;
use comfy_table::{Cell, CellAlignment};
use onbeat_bounds::ReasonDocument;
use onbeat_measure::grid::{grid, ruled};
use onbeat_model::plan::{Bound, Plan};
use onbeat_model::system::{NodeId, PortId, System};
use onbeat_model::time::Span;
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

/// Bounds a description or a network.
pub(crate) fn bounds(arguments: &BoundsArguments) -> anyhow::Result<Exit> {
    if arguments.subject.extension().is_some_and(|extension| extension == "json") {
        return network::bounds(arguments);
    }
    if arguments.method.is_some() {
        bail!(WrongArgument(
            "--method is for networks: a description is bounded in one way".into()
        ));
    }
    let source = Source::load(&arguments.subject, arguments.json, Trust::AsKnown)?;
    let protected = source.system.run.protected && !arguments.unprotected;
    let (plan, cpu) = timed(|| source.plan(&source.system, protected));
    let plan = plan?;
    let ends = ends(&source.system, &plan);
    if arguments.json {
        terminal::print(format_args!("{:#}", to_json(&source.system, &plan, &ends, cpu)));
    } else {
        terminal::print(table(&source.system, &plan, &ends, cpu));
    }
    Ok(Exit::Fine)
}

/// Does something, and says how much of the processor's time it took.
pub(crate) fn timed<T>(work: impl FnOnce() -> T) -> (T, Span) {
    let now = || {
        let time = clock_gettime(ClockId::ProcessCPUTime);
        Span::from_s(time.tv_sec) + Span::from_ns(time.tv_nsec)
    };
    let before = now();
    (work(), now() - before)
}

/// One listener of a channel or a stream, and what it is promised.
struct End<'a> {
    kind: &'static str,
    flow: &'a str,
    listener: &'a str,
    bound: Option<&'a Bound>,
    no_bound: Option<ReasonDocument>,
    scheduled: bool,
}

fn ends<'a>(system: &'a System, plan: &'a Plan) -> Vec<End<'a>> {
    let name = |id: &NodeId| system.node(*id).name.as_str();
    let channels = system.channels.iter().zip(&plan.channels).flat_map(|(channel, planned)| {
        channel.listeners.iter().enumerate().map(move |(at, listener)| End {
            kind: "channel",
            flow: &channel.name,
            listener: name(listener),
            bound: planned.bounds.get(at),
            no_bound: planned.bounds.is_empty().then(ReasonDocument::not_reserved),
            scheduled: false,
        })
    });
    let streams = system.streams.iter().zip(&plan.streams).flat_map(|(stream, planned)| {
        stream.listeners.iter().enumerate().map(move |(at, listener)| End {
            kind: "stream",
            flow: &stream.name,
            listener: name(listener),
            bound: planned.bounds.get(at).and_then(Option::as_ref),
            no_bound: ReasonDocument::of_stream(system, planned, at),
            scheduled: planned.scheduled,
        })
    });
    channels.chain(streams).collect()
}

/// The queues of all ports that have a bound and in which anything may wait: port, queue, frames,
/// octets.
fn queues<'a>(
    system: &'a System,
    plan: &'a Plan,
) -> impl Iterator<Item = (String, usize, u64, u64)> + 'a {
    (0..).map(PortId).zip(&plan.backlogs).flat_map(move |(id, port)| {
        let bounded = port.iter().enumerate().filter_map(|(queue, b)| b.map(|b| (queue, b)));
        let bounded = bounded.filter(|(_, b)| b.frames > 0);
        bounded.map(move |(queue, b)| (system.port_label(id), queue, b.frames, b.octets))
    })
}

fn table(system: &System, plan: &Plan, ends: &[End<'_>], cpu: Span) -> String {
    let mut flows = grid(&["flow", "listener", "bound", "best", "jitter", "largest term"]);
    for end in ends {
        let numbers = match end.bound {
            None => ["no bound".to_owned(), "-".to_owned(), "-".to_owned()],
            Some(bound) => {
                [bound.total(), bound.best, bound.total() - bound.best].map(|s| s.to_string())
            }
        };
        let term = end.bound.and_then(Bound::dominating).map(|t| format!("{} {}", t.span, t.what));
        let mut cells = vec![Cell::new(end.flow), Cell::new(end.listener)];
        cells.extend(numbers.map(right));
        cells.push(Cell::new(term.unwrap_or_else(|| "-".to_owned())));
        flows.add_row(cells);
    }
    let mut text = ruled(&flows);
    let reasons =
        ends.iter().filter_map(|end| Some((end.flow, end.listener, end.no_bound.as_ref()?)));
    text += &terminal::reasons(reasons.map(|(flow, to, reason)| (flow, to, reason.why.as_str())));
    if let Some(scheduled) = terminal::scheduled(system, plan) {
        text += &format!("\n\n{scheduled}");
    }
    let mut waiting = grid(&["port", "queue", "frames", "octets"]);
    for (port, queue, frames, octets) in queues(system, plan) {
        let numbers = [queue.to_string(), frames.to_string(), octets.to_string()];
        waiting.add_row([Cell::new(port)].into_iter().chain(numbers.map(right)));
    }
    if waiting.row_count() > 0 {
        text += &format!("\n\nWhat may wait at once\n{}", ruled(&waiting));
    }
    let count = ends.iter().filter(|end| end.bound.is_some()).count();
    text + &format!("\n\n{count} of {} bounded in {cpu} of processor time.", ends.len())
}

/// A cell with a number.
pub(crate) fn right(text: String) -> Cell {
    Cell::new(text).set_alignment(CellAlignment::Right)
}

fn to_json(system: &System, plan: &Plan, ends: &[End<'_>], cpu: Span) -> Value {
    let flows = ends.iter().map(|end| {
        let of = |value: fn(&Bound) -> Span| end.bound.map(|bound| value(bound).as_ns());
        let terms = end.bound.iter().flat_map(|bound| &bound.terms);
        let terms: Vec<_> =
            terms.map(|t| json!({ "what": t.what, "span_ns": t.span.as_ns() })).collect();
        json!({
            "kind": end.kind,
            "name": end.flow,
            "listener": end.listener,
            "scheduled": end.scheduled,
            "bound_ns": of(Bound::total),
            "best_ns": of(|bound| bound.best),
            "jitter_ns": of(|bound| bound.total() - bound.best),
            "dominating": end.bound.and_then(Bound::dominating).map(|term| &term.what),
            "terms": terms,
            "no_bound": end.no_bound,
        })
    });
    let queues = queues(system, plan).map(|(port, queue, frames, octets)| {
        json!({ "port": port, "queue": queue, "frames": frames, "octets": octets })
    });
    json!({
        "format": "onbeat-bounds",
        "version": 1,
        "system": system.name,
        "protected": plan.protected,
        "cpu_ns": cpu.as_ns(),
        "flows": flows.collect::<Vec<_>>(),
        "queues": queues.collect::<Vec<_>>(),
    })
}
