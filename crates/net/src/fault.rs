//! What goes wrong on purpose: whom it costs a frame.

use crate::random::{Purpose, Stream};
use onbeat_model::stream::FaultKind;
use onbeat_model::system::{NodeId, PortId, System};
use onbeat_model::time::{NetTime, Span};
use onbeat_model::units::{BitRate, Octets, frame};

/// From when on, until when, without it.
type Window = [NetTime; 2];

/// All faults of a system. Everything about them is known beforehand, so that the fate of a frame
/// is certain when its transmission starts.
#[derive(Debug)]
pub(crate) struct Faults {
    /// Per port, about the transmissions that it starts.
    ports: Vec<PortFaults>,
    /// Per node, when it is down.
    nodes: Vec<Vec<Window>>,
}

#[derive(Debug)]
struct PortFaults {
    /// When the link is down.
    link: Vec<Window>,
    /// When the link damages frames, and how many in 10⁹.
    errors: Vec<(Window, u32)>,
    random: Stream,
    rate: BitRate,
    propagation: Span,
    node: NodeId,
    peer: NodeId,
}

impl Faults {
    /// The faults that concern frames in flight, if there are any.
    pub(crate) fn of(system: &System, seed: u64) -> Option<Self> {
        let elsewhere =
            |kind: FaultKind| matches!(kind, FaultKind::Babble(_) | FaultKind::ClockStep { .. });
        if system.faults.iter().all(|fault| elsewhere(fault.kind)) {
            return None;
        }
        let port = |at: usize| {
            let port = &system.ports[at];
            let link = system.link_of(PortId(at as u32));
            PortFaults {
                link: Vec::new(),
                errors: Vec::new(),
                random: Stream::new(seed, Purpose::Errors, at),
                rate: link.rate,
                propagation: link.propagation,
                node: port.node,
                peer: system.port(port.peer).node,
            }
        };
        let mut faults = Self {
            ports: (0..system.ports.len()).map(port).collect(),
            nodes: vec![Vec::new(); system.nodes.len()],
        };
        for fault in &system.faults {
            let window = [fault.from, fault.until];
            match fault.kind {
                FaultKind::NodeDown(node) => faults.nodes[node.index()].push(window),
                FaultKind::LinkDown(link) => {
                    for port in system.links[link.index()].ports {
                        faults.ports[port.index()].link.push(window);
                    }
                }
                FaultKind::FrameErrors { link, per_billion } => {
                    for port in system.links[link.index()].ports {
                        faults.ports[port.index()].errors.push((window, per_billion));
                    }
                }
                FaultKind::Babble(_) | FaultKind::ClockStep { .. } => {}
            }
        }
        Some(faults)
    }

    /// When each node fails, in the order of the nodes.
    pub(crate) fn node_failures(&self) -> impl Iterator<Item = (u32, NetTime)> {
        let of_node = |(at, windows): (usize, &Vec<Window>)| {
            windows.iter().map(move |window| (at as u32, window[0])).collect::<Vec<_>>()
        };
        self.nodes.iter().enumerate().flat_map(of_node)
    }

    /// The ports of a node.
    pub(crate) fn ports_of(&self, node: NodeId) -> impl Iterator<Item = u32> {
        (0..self.ports.len() as u32).filter(move |at| self.ports[*at as usize].node == node)
    }

    /// Whether a node that holds a frame from `since` until it passes it on at `until` fails
    /// meanwhile, or is down. What is passed on at the instant of the failure is lost.
    pub(crate) fn holder_fails(&self, node: NodeId, since: NetTime, until: NetTime) -> bool {
        let fails = |[from, back]: &Window| since < *back && until >= *from;
        self.nodes[node.index()].iter().any(fails)
    }

    /// Whether the link of a port is down at an instant.
    pub(crate) fn is_cut(&self, port: u32, at: NetTime) -> bool {
        self.ports[port as usize].link.iter().any(|down| down[0] <= at && at < down[1])
    }

    /// Whether a frame whose transmission started at `start`, as is known `now`, never gets to
    /// where it would have passed the node at the other end at `passed`. One that was interrupted
    /// is on the link from its first octet to its last.
    pub(crate) fn swallows(
        &mut self,
        port: u32,
        [start, now]: [NetTime; 2],
        octets: u16,
        passed: NetTime,
    ) -> bool {
        let port = &mut self.ports[port as usize];
        let off = start + port.rate.time_for(frame::PREAMBLE + Octets::new(octets.into()));
        // An interrupted frame is certain, and known, when its last octet is out.
        let off = off.max(now);
        let there = off + port.propagation;
        let during = |end: NetTime| move |w: &Window| start < w[1] && end > w[0];
        let mut lost = port.link.iter().any(during(there));
        // Every frame in a window is drawn for, whatever else becomes of it.
        for ([from, until], per_billion) in &port.errors {
            if *from <= start && start < *until {
                lost |= port.random.below(1_000_000_000) < u64::from(*per_billion);
            }
        }
        let (node, peer, propagation) = (port.node, port.peer, port.propagation);
        lost || self.nodes[node.index()].iter().any(during(off))
            || self.holder_fails(peer, start + propagation, passed.max(there))
    }
}
