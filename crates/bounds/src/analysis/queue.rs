//! What may pile up in the queues, and whether they hold it.

use super::flow::Analysis;
use super::multi_hop::MultiHop;
use super::network::{FlowNetwork, Owner};
use onbeat_model::codes::plan as codes;
use onbeat_model::diagnostic::Diagnostic;
use onbeat_model::plan::Backlog;
use onbeat_model::port::QUEUES;
use onbeat_model::system::{NodeId, NodeKind, PortId, System};
use onbeat_model::time::Span;
use onbeat_model::units::Octets;
use std::collections::BTreeMap;

/// How many of the channels in a queue an error names.
const NAMED_MAX: usize = 8;

/// Per port and queue, the most that waits there at once.
///
/// A frame that waits came less than its longest stay ago: so no more of a flow are there than
/// arrive in such a window.
pub(crate) fn backlogs(
    analysis: &Analysis<'_>,
    multi_hop: &MultiHop,
) -> Vec<[Option<Backlog>; QUEUES]> {
    let network = analysis.network;
    let empty = network
        .unlimited
        .iter()
        .map(|ports| ports.map(|unlimited| (!unlimited).then(Backlog::default)));
    let mut backlogs: Vec<[Option<Backlog>; QUEUES]> = empty.collect();
    for (flow, states) in network.flows.iter().zip(&analysis.states) {
        let octets = u64::from(flow.arrival.octets[1].get());
        for (hop, state) in flow.hops.iter().zip(states) {
            let backlog = &mut backlogs[hop.port.index()][flow.queue];
            let frames = state.late.zip(state.wait).zip(state.arrives).and_then(|(w, arrives)| {
                let ns = |ns: i128| Span::from_ns(i64::try_from(ns).expect("an hour at most"));
                let stay = ns(w.0 + w.1 - arrives);
                flow.arrival.frames_within(stay, ns(arrives - state.early))
            });
            *backlog = backlog.zip(frames).map(|(backlog, frames)| Backlog {
                frames: backlog.frames.saturating_add(frames),
                octets: backlog.octets.saturating_add(frames.saturating_mul(octets)),
            });
        }
    }
    for (port, queues) in backlogs.iter_mut().enumerate() {
        for (queue, backlog) in queues.iter_mut().enumerate() {
            let known = multi_hop.backlog(port, queue).filter(|_| !network.unlimited[port][queue]);
            let least = |a: Backlog, b: Backlog| Backlog {
                frames: a.frames.min(b.frames),
                octets: a.octets.min(b.octets),
            };
            *backlog = [*backlog, known].into_iter().flatten().reduce(least);
        }
    }
    with_windows(network, &mut backlogs);
    backlogs
}

/// Where frames have windows of their own, there is one of them at a time.
fn with_windows(network: &FlowNetwork<'_>, backlogs: &mut [[Option<Backlog>; QUEUES]]) {
    let mut longest: BTreeMap<(usize, usize), Octets> = BTreeMap::new();
    for flow in network.flows.iter().filter(|flow| network.has_windows(flow)) {
        let [_, largest] = flow.arrival.octets;
        for hop in &flow.hops {
            let most = longest.entry((hop.port.index(), flow.queue)).or_default();
            *most = largest.max(*most);
        }
    }
    for ((port, queue), octets) in longest {
        backlogs[port][queue] = Some(Backlog { frames: 1, octets: octets.get().into() });
    }
}

/// One error for each queue, and each shared buffer, that may have to drop frames with a
/// reservation.
pub(crate) fn overflows(
    analysis: &Analysis<'_>,
    backlogs: &[[Option<Backlog>; QUEUES]],
) -> Vec<Diagnostic> {
    let system = analysis.network.system;
    let mut errors = Vec::new();
    for (port, queues) in backlogs.iter().enumerate() {
        for (queue, backlog) in queues.iter().enumerate() {
            let limit = system.node(system.ports[port].node).queue;
            let fits = |backlog: &Backlog| {
                backlog.frames <= u64::from(limit.frames)
                    && backlog.octets <= u64::from(limit.octets.get())
            };
            let Some(backlog) = backlog.as_ref().filter(|backlog| !fits(backlog)) else { continue };
            let channels = reserved_in(analysis, |p, q| (p, q) == (port, queue));
            if !channels.is_empty() {
                errors.push(overflow(system, PortId(port as u32), &channels, backlog));
            }
        }
    }
    errors.extend(shared_buffers(analysis, backlogs));
    errors
}

/// The reserved channels that are somewhere where `at` says so, of port and queue.
fn reserved_in(analysis: &Analysis<'_>, at: impl Fn(usize, usize) -> bool) -> Vec<usize> {
    let network = analysis.network;
    let there = network.flows.iter().filter_map(|flow| match flow.owner {
        Owner::Channel(id) if network.plan.channel(id).protected => {
            let passes = flow.hops.iter().any(|hop| at(hop.port.index(), flow.queue));
            passes.then_some(id.index())
        }
        _ => None,
    });
    there.collect()
}

fn overflow(system: &System, port: PortId, channels: &[usize], backlog: &Backlog) -> Diagnostic {
    let node = system.node(system.port(port).node);
    let message = format!(
        "the backlog of port {} may reach {} frames ({} octets) of class {:?}, but a queue of `{}` \
         holds {} frames and {} octets",
        system.port_label(port),
        backlog.frames,
        backlog.octets,
        system.channels[channels[0]].class,
        node.name,
        node.queue.frames,
        node.queue.octets.get(),
    );
    let error = Diagnostic::error(
        codes::QUEUE_TOO_SMALL,
        message,
        node.origin,
        "its queues are too small",
    )
    .help(
        "raise the node's queue limits, or lower the jitter, the bursts or the number of the \
             streams",
    );
    named(error, system, channels)
}

fn named(error: Diagnostic, system: &System, channels: &[usize]) -> Diagnostic {
    channels.iter().take(NAMED_MAX).fold(error, |error, channel| {
        error.related(system.channels[*channel].origin, "queued there")
    })
}

/// What the queues of a bridge may hold together, and the octets of the buffer that they share, if
/// that is smaller.
pub(crate) fn beyond_buffer(
    system: &System,
    backlogs: &[[Option<Backlog>; QUEUES]],
    id: NodeId,
) -> Option<(u64, u32)> {
    let node = system.node(id);
    let NodeKind::Bridge(bridge) = &node.kind else { return None };
    let buffer = bridge.shared_buffer?.get();
    let limit = u64::from(node.queue.octets.get());
    let queues = node.ports.iter().flat_map(|port| &backlogs[port.index()]);
    // A queue holds no more than its own limit, whatever comes.
    let all: u64 = queues.map(|b| b.map_or(limit, |b| b.octets.min(limit))).sum();
    (all > u64::from(buffer)).then_some((all, buffer))
}

/// Buffers that all queues of a bridge share must hold what all of them may, or a reserved frame
/// may find no place.
fn shared_buffers(
    analysis: &Analysis<'_>,
    backlogs: &[[Option<Backlog>; QUEUES]],
) -> Vec<Diagnostic> {
    let system = analysis.network.system;
    let mut errors = Vec::new();
    for (id, node) in (0..).map(NodeId).zip(&system.nodes) {
        let Some((all, buffer)) = beyond_buffer(system, backlogs, id) else { continue };
        let channels = reserved_in(analysis, |port, _| system.ports[port].node == id);
        if !channels.is_empty() {
            let message = format!(
                "the queues of `{}` may hold {all} octets together, but its buffer holds {buffer}",
                node.name,
            );
            let error = Diagnostic::error(
                codes::QUEUE_TOO_SMALL,
                message,
                node.origin,
                "shares its buffer",
            )
            .help("raise `shared_buffer_octets`, or lower `queue_octets` of the bridge");
            errors.push(named(error, system, &channels));
        }
    }
    errors
}
