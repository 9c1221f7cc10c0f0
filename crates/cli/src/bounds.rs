//! The verb `bounds`: the worst case of every channel and stream, and of every queue.

use crate::arguments::BoundsArguments;
use crate::chosen::WrongArgument;
use crate::exit::Exit;
use crate::network;
use crate::source::Source;
use crate::terminal;
use crate::trust::Trust;
use anyhow::bail;
use onbeat_bounds::ReasonDocument;
use onbeat_model::plan::{Bound, Plan};
use onbeat_model::system::{NodeId, System};
use onbeat_model::time::Span;
use onbeat_report::plan::{self, queues};
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
    let kept = arguments.keep.read()?;
    let source = Source::load(&arguments.subject, arguments.json, Trust::AsKnown)?;
    let source = source.keeping(kept.as_ref()).only_planned();
    let protected = source.system.run.protected && !arguments.unprotected;
    let (plan, cpu) = timed(|| source.plan(&source.system, protected));
    let plan = plan?;
    let ends = ends(&source.system, &plan);
    if arguments.json {
        terminal::print_json(&to_json(&source.system, &plan, &ends, cpu))?;
    } else {
        let shown: Vec<_> = ends.iter().map(EndpointBound::shown).collect();
        terminal::print(plan::bounds(&source.system, &plan, &shown, cpu));
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

/// One listener of a channel, a stream or messages over TCP, and its bound.
struct EndpointBound<'a> {
    kind: &'static str,
    flow: &'a str,
    listener: &'a str,
    bound: Option<&'a Bound>,
    no_bound: Option<ReasonDocument>,
    scheduled: bool,
}

impl EndpointBound<'_> {
    fn shown(&self) -> plan::EndpointBound<'_> {
        let Self { flow, listener, bound, .. } = *self;
        let no_bound = self.no_bound.as_ref().map(|reason| reason.why.as_str());
        plan::EndpointBound { flow, listener, bound, no_bound }
    }
}

fn ends<'a>(system: &'a System, plan: &'a Plan) -> Vec<EndpointBound<'a>> {
    let name = |id: &NodeId| system.node(*id).name.as_str();
    let channels = system.channels.iter().zip(&plan.channels).flat_map(|(channel, planned)| {
        channel.listeners.iter().enumerate().map(move |(at, listener)| EndpointBound {
            kind: "channel",
            flow: &channel.name,
            listener: name(listener),
            bound: planned.bounds.get(at),
            no_bound: planned.bounds.is_empty().then(|| ReasonDocument::of_channel(planned)),
            scheduled: false,
        })
    });
    let streams = system.streams.iter().zip(&plan.streams).flat_map(|(stream, planned)| {
        stream.listeners.iter().enumerate().map(move |(at, listener)| EndpointBound {
            kind: "stream",
            flow: &stream.name,
            listener: name(listener),
            bound: planned.bounds.get(at).and_then(Option::as_ref),
            no_bound: ReasonDocument::of_stream(system, planned, at),
            scheduled: planned.phase_specific,
        })
    });
    let tcp = system.tcp.iter().map(|flow| EndpointBound {
        kind: "tcp",
        flow: &flow.name,
        listener: name(&flow.listener),
        bound: None,
        no_bound: Some(ReasonDocument::over_tcp()),
        scheduled: false,
    });
    channels.chain(streams).chain(tcp).collect()
}

fn to_json(system: &System, plan: &Plan, ends: &[EndpointBound<'_>], cpu: Span) -> Value {
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
