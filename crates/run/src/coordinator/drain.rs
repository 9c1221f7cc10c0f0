//! How long a run continues after its last message was written.

use onbeat_model::plan::Plan;
use onbeat_model::system::{NodeKind, PortId, System, TimeMode};
use onbeat_model::time::Span;
use onbeat_model::units::frame;

/// The longest that a run waits, in its own time, for full queues on a path to empty after its last
/// message.
pub(super) const fn max_drain(time: TimeMode) -> Span {
    match time {
        TimeMode::Virtual => Span::from_s(3_600),
        TimeMode::Real => Span::from_s(5),
    }
}

/// How long a message may be in flight, with full queues (in reason) on its path.
pub(super) fn drain(system: &System, plan: &Plan, most: Span) -> Span {
    let wire = frame::on_wire(frame::MAX_TAGGED);
    let queue = |port: &PortId| {
        let frames = i64::from(system.node(system.port(*port).node).queue.frames);
        let time = system.link_of(*port).rate.time_for(wire);
        Span::from_ns(time.as_ns().saturating_mul(frames)).min(most)
    };
    let way = |port: &PortId| {
        let forwarding = match &system.node(system.port(*port).node).kind {
            NodeKind::Bridge(bridge) => bridge.forwarding,
            NodeKind::Host(host) => host.stack_tx.max(),
        };
        system.link_of(*port).propagation + forwarding
    };
    let mut longest = Span::ZERO;
    for (channel, planned) in system.channels.iter().zip(&plan.channels) {
        for (listener, path) in planned.paths_to_listeners(channel.listeners.len()) {
            let queued: Span = path.iter().map(queue).sum();
            let stack = match &system.node(channel.listeners[listener]).kind {
                NodeKind::Host(host) => host.stack_rx.max(),
                NodeKind::Bridge(_) => Span::ZERO,
            };
            let way: Span = path.iter().map(way).sum();
            longest = longest.max(queued.min(most) + way + stack);
        }
    }
    longest
}
