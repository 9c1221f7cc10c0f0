//! When the links of a node fail and come back, and when the node itself does.

use onbeat_model::stream::FaultKind;
use onbeat_model::system::{NodeId, System};
use onbeat_model::time::NetTime;
use std::collections::BTreeSet;

/// Something that the description lets happen to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkEvent {
    /// A port's link carries frames from now on, or does not.
    Link(usize, bool),
    /// The node fails: it has forgotten all.
    Fails,
    /// It is back. Its links are told next, if they are not up.
    Returns,
}

/// What happens to a node, in order.
#[derive(Debug)]
pub(crate) struct Links {
    /// Backwards.
    events: Vec<(NetTime, LinkEvent)>,
}

impl Links {
    /// Of a node. Each described fault lasts from its first instant to its last, without that.
    pub(crate) fn new(system: &System, node: NodeId) -> Self {
        let mut instants = BTreeSet::new();
        for fault in &system.faults {
            if matches!(fault.kind, FaultKind::LinkDown(_) | FaultKind::NodeDown(_)) {
                instants.extend([fault.from, fault.until]);
            }
        }
        let is_down = |node: NodeId, at: NetTime| {
            let it = FaultKind::NodeDown(node);
            system.faults.iter().any(|f| f.kind == it && f.from <= at && at < f.until)
        };
        let ports = &system.node(node).ports;
        let carries = |port: usize, at: NetTime| {
            let port = system.port(ports[port]);
            let it = FaultKind::LinkDown(port.link);
            let link = system.faults.iter().any(|f| f.kind == it && f.from <= at && at < f.until);
            !link && !is_down(system.port(port.peer).node, at)
        };
        let mut events = Vec::new();
        let (mut runs, mut up) = (true, vec![true; ports.len()]);
        for at in instants {
            if runs == is_down(node, at) {
                runs = !runs;
                let event = if runs { LinkEvent::Returns } else { LinkEvent::Fails };
                events.push((at, event));
                if runs {
                    up = vec![true; ports.len()];
                }
            }
            for (port, up) in up.iter_mut().enumerate() {
                if runs && *up != carries(port, at) {
                    *up = !*up;
                    events.push((at, LinkEvent::Link(port, *up)));
                }
            }
        }
        events.reverse();
        Self { events }
    }

    /// When something happens next; the end of time: never.
    pub(crate) fn next(&self) -> NetTime {
        self.events.last().map_or(NetTime::MAX, |(at, _)| *at)
    }

    /// What has happened up to now, once each.
    pub(crate) fn take(&mut self, now: NetTime) -> Option<LinkEvent> {
        self.events.pop_if(|(at, _)| *at <= now).map(|(_, event)| event)
    }
}
