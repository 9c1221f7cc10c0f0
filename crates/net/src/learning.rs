//! What bridges learn of where hosts are (802.1Q-2022 8.7, 8.8.3), and the active topology.

use onbeat_model::system::{NodeId, NodeKind, PortId, System};
use onbeat_model::time::{NetTime, Span};
use std::collections::{HashMap, VecDeque};

/// How long an entry lives after its host was last heard (802.1Q-2022 Table 8-6).
const AGEING: Span = Span::from_s(300);

/// The ports that forward frames which follow no plan: those of a spanning tree of the bridges,
/// and all that lead to or from hosts.
#[derive(Debug)]
pub(crate) struct ActiveTopology {
    active: Vec<bool>,
}

impl ActiveTopology {
    /// The topology, if any bridge learns. The root is the bridge with the lowest index; each
    /// other bridge is joined to the tree over the fewest links, by the lowest port of the bridge
    /// that was reached first.
    pub(crate) fn of(system: &System) -> Option<Self> {
        let learns = |kind: &NodeKind| matches!(kind, NodeKind::Bridge(b) if b.learning);
        system.nodes.iter().any(|node| learns(&node.kind)).then(|| Self::spanning(system))
    }

    /// The topology, whether any bridge learns or not.
    pub(crate) fn spanning(system: &System) -> Self {
        let is_bridge = |node: NodeId| matches!(system.node(node).kind, NodeKind::Bridge(_));
        let mut active = vec![false; system.ports.len()];
        let mut reached = vec![false; system.nodes.len()];
        for node in (0..system.nodes.len() as u32).map(NodeId) {
            if !is_bridge(node) || reached[node.index()] {
                continue;
            }
            reached[node.index()] = true;
            let mut queue = VecDeque::from([node]);
            while let Some(node) = queue.pop_front() {
                for port in &system.node(node).ports {
                    let peer = system.port(*port).peer;
                    let other = system.port(peer).node;
                    if is_bridge(other) && !reached[other.index()] {
                        reached[other.index()] = true;
                        active[port.index()] = true;
                        active[peer.index()] = true;
                        queue.push_back(other);
                    }
                }
            }
        }
        for (at, port) in system.ports.iter().enumerate() {
            active[at] |= !(is_bridge(port.node) && is_bridge(system.port(port.peer).node));
        }
        Self { active }
    }

    pub(crate) fn is_active(&self, port: PortId) -> bool {
        self.active[port.index()]
    }

    /// Per node the port that leads to `host`.
    pub(crate) fn toward(&self, system: &System, host: NodeId) -> Vec<Option<PortId>> {
        let mut toward = vec![None; system.nodes.len()];
        let mut queue = VecDeque::from([host]);
        while let Some(node) = queue.pop_front() {
            for port in &system.node(node).ports {
                let peer = system.port(*port).peer;
                let other = system.port(peer).node;
                let new = other != host && toward[other.index()].is_none();
                if self.is_active(*port) && new {
                    toward[other.index()] = Some(peer);
                    queue.push_back(other);
                }
            }
        }
        toward
    }
}

/// The filtering databases of all bridges that learn. A host has one port and one place in the
/// active topology: it is enough to know whether a bridge has heard it.
#[derive(Debug)]
pub(crate) struct Learning {
    /// Per port: the bridge at the other end, if it learns from what comes this way.
    pupils: Vec<Option<NodeId>>,
    /// When a bridge last heard a host.
    heard: HashMap<(NodeId, NodeId), NetTime>,
}

impl Learning {
    pub(crate) fn new(system: &System, topology: &ActiveTopology) -> Self {
        let pupil = |at: u32| {
            let node = system.port(system.port(PortId(at)).peer).node;
            let learns = matches!(&system.node(node).kind, NodeKind::Bridge(b) if b.learning);
            (learns && topology.is_active(PortId(at))).then_some(node)
        };
        let pupils = (0..system.ports.len() as u32).map(pupil).collect();
        Self { pupils, heard: HashMap::new() }
    }

    /// The bridge at the other end of `port` has received a frame that `source` sent.
    pub(crate) fn hear(&mut self, now: NetTime, port: u32, source: NodeId) {
        if let Some(bridge) = self.pupils[port as usize] {
            self.heard.insert((bridge, source), now);
        }
    }

    /// Whether the bridge at the other end of `port` knows where `host` is.
    pub(crate) fn knows(&self, now: NetTime, port: u32, host: NodeId) -> bool {
        self.pupils[port as usize]
            .and_then(|bridge| self.heard.get(&(bridge, host)))
            .is_some_and(|heard| now - *heard < AGEING)
    }
}
