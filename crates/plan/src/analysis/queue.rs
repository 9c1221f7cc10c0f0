//! Whether the queues hold what may pile up in them.

use super::flow::{Flow, Hop};
use onbeat_model::diagnostic::{Code, Diagnostic};
use onbeat_model::system::{Class, PortId, System};
use onbeat_model::units::{Octets, frame};
use std::collections::BTreeMap;

const TOO_SMALL: Code = Code("OB2003");

/// What may be in one queue at once.
#[derive(Default)]
struct Backlog {
    frames: u64,
    octets: u64,
    flows: Vec<usize>,
}

/// One error for each queue of a port that may have to drop frames with a reservation.
///
/// A frame that is there now came less than its longest stay ago: so no more of a stream are there
/// than arrive in such a window. The one in transmission is counted.
pub(crate) fn overflows(system: &System, flows: &[Flow]) -> Vec<Diagnostic> {
    let mut queues: BTreeMap<(PortId, Class), Backlog> = BTreeMap::new();
    for (index, flow) in flows.iter().enumerate() {
        let octets = frame::of_channel(system.channel(flow.channel).size);
        for hop in &flow.hops {
            let queue = queues.entry((hop.port, flow.class)).or_default();
            let frames = frames(system, hop, octets);
            queue.frames += frames;
            queue.octets += frames * u64::from(octets.get());
            queue.flows.push(index);
        }
    }
    let mut errors = Vec::new();
    for ((port, class), backlog) in queues {
        let limit = system.node(system.port(port).node).queue;
        let fits = backlog.frames <= u64::from(limit.frames)
            && backlog.octets <= u64::from(limit.octets.get());
        if !fits {
            errors.push(overflow(system, flows, port, class, &backlog));
        }
    }
    errors
}

fn frames(system: &System, hop: &Hop, octets: Octets) -> u64 {
    let stay = hop.wait + system.link_of(hop.port).rate.time_for(frame::on_wire(octets));
    hop.arrival.frames_within(stay, hop.jitter)
}

fn overflow(
    system: &System,
    flows: &[Flow],
    port: PortId,
    class: Class,
    backlog: &Backlog,
) -> Diagnostic {
    let node = system.node(system.port(port).node);
    let message = format!(
        "port {} may have to queue {} frames ({} octets) of class {class:?}, but a queue of `{}` \
         holds {} frames and {} octets",
        system.port_label(port),
        backlog.frames,
        backlog.octets,
        node.name,
        node.queue.frames,
        node.queue.octets.get(),
    );
    let mut error = Diagnostic::error(TOO_SMALL, message, node.origin, "its queues are too small")
        .help(
            "raise the node's queue limits, or lower the jitter, the bursts or the number of the \
             streams",
        );
    for &flow in backlog.flows.iter().take(8) {
        let channel = system.channel(flows[flow].channel);
        error = error.related(channel.origin, "queued there");
    }
    error
}
