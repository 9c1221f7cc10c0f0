//! The families of FIFO networks as Ethernet systems: each server is an egress port of a bridge.
//!
//! Every flow has a talker and a listener of its own on links of 10 Gb/s, and a VLAN that leaves
//! it one way only. Its frames occupy 1,000 octets of the wire, one burst of the families, and are
//! no closer to each other than its rate allows.

use crate::families::{RATE, Shape, paths, share};
use onbeat_model::diagnostic::Origin;
use onbeat_model::port::PortSettings;
use onbeat_model::stream::{Source, Stream};
use onbeat_model::system::{
    Bridge, Host, Link, LinkId, Node, NodeId, NodeKind, Port, PortId, QueueLimits, System,
};
use onbeat_model::time::{ClockError, Span};
use onbeat_model::units::{BitRate, MacAddress, Octets, frame};

/// The queue of all frames.
pub(crate) const QUEUE: u8 = 7;
/// Every frame, destination address to FCS.
const FRAME: Octets = Octets::new(980);
/// What it occupies of the wire.
pub(crate) const WIRE: Octets = frame::on_wire(FRAME);
/// The latency of the families' servers.
pub(crate) const FORWARDING: Span = Span::from_us(10);
/// Links of hosts.
pub(crate) const HOST_RATE: u64 = 100 * RATE;

/// The servers that each flow crosses. No way passes a bridge twice: around a ring that is one
/// server less than in the family.
pub(crate) fn ways(shape: Shape, size: usize) -> Vec<Vec<usize>> {
    let mut ways = paths(shape, size);
    if shape == Shape::Ring {
        ways.iter_mut().for_each(|way| way.truncate(size - 1));
    }
    ways
}

/// The rate of a server and its link.
pub(crate) fn rate(shape: Shape, size: usize, server: usize) -> u64 {
    if shape == Shape::Mesh && server == size - 1 { 2 * RATE } else { RATE }
}

/// The least time between two frames of a flow.
pub(crate) fn interval(shape: Shape, size: usize, percent: u64) -> Span {
    let rate = share(&ways(shape, size), size, percent);
    let nanobits = u64::from(WIRE.get()) * 8 * 1_000_000_000;
    Span::from_ns(i64::try_from(nanobits.div_ceil(rate)).expect("short"))
}

/// The bridge of a server, and the one that its link leads to. The two servers of a pair in a mesh
/// are on one bridge and lead to the same one.
fn ends(shape: Shape, size: usize, server: usize) -> (usize, usize) {
    match shape {
        Shape::Tandem => (server, server + 1),
        Shape::Ring => (server, (server + 1) % size),
        Shape::Mesh => (server / 2, server / 2 + 1),
    }
}

fn bridges(shape: Shape, size: usize) -> usize {
    match shape {
        Shape::Tandem => size + 1,
        Shape::Ring => size,
        Shape::Mesh => size / 2 + 2,
    }
}

fn add_node(system: &mut System, name: String, kind: NodeKind) {
    let (clock, ports, origin) = (ClockError::default(), Vec::new(), Origin::default());
    let queue = QueueLimits { frames: 10_000, octets: Octets::new(1 << 24) };
    system.nodes.push(Node { name, kind, clock, queue, ports, origin });
}

/// A link by whose first port only the frames of some VLANs leave, and none by the other one.
fn add_link(system: &mut System, ends: [NodeId; 2], bps: u64, vlans: Vec<u16>) {
    let link = LinkId(system.links.len() as u32);
    let ports = [PortId(2 * link.0), PortId(2 * link.0 + 1)];
    for ((end, node), vlans) in ends.into_iter().enumerate().zip([vlans, Vec::new()]) {
        let name = format!("p{}", system.node(node).ports.len() + 1);
        let settings = PortSettings { vlans: Some(vlans), ..PortSettings::default() };
        system.ports.push(Port { name, node, link, peer: ports[1 - end], settings });
        system.nodes[node.index()].ports.push(ports[end]);
    }
    let (rate, propagation) = (BitRate::from_bps(bps), Span::ZERO);
    system.links.push(Link { ports, rate, propagation, origin: Origin::default() });
}

/// The system: the first link is that of the first server, and so on; then come the talker's and
/// the listener's of each flow.
pub(crate) fn system(shape: Shape, size: usize, percent: u64) -> System {
    let ways = ways(shape, size);
    let mut system = System::empty("family", Span::from_ms(100));
    for host in 0..2 * ways.len() {
        let mac = MacAddress([2, 0, 0, 0, 0, u8::try_from(host + 1).expect("few hosts")]);
        add_node(&mut system, format!("h{host}"), NodeKind::Host(Host { mac, ..Host::default() }));
    }
    for bridge in 0..bridges(shape, size) {
        let kind = NodeKind::Bridge(Bridge { forwarding: FORWARDING, ..Bridge::default() });
        add_node(&mut system, format!("b{bridge}"), kind);
    }
    let host = |at: usize| NodeId(at as u32);
    let bridge = |at: usize| NodeId((2 * ways.len() + at) as u32);
    let vlan = |flow: usize| 2 + flow as u16;
    for server in 0..size {
        let (from, to) = ends(shape, size, server);
        let crossing = (0..ways.len()).filter(|flow| ways[*flow].contains(&server));
        let vlans = crossing.map(vlan).collect();
        let bps = rate(shape, size, server);
        add_link(&mut system, [bridge(from), bridge(to)], bps, vlans);
    }
    let interval = interval(shape, size, percent);
    let mean = interval + Span::from_ns(interval.as_ns() / 4);
    for (flow, way) in ways.iter().enumerate() {
        let (first, last) = (way[0], way[way.len() - 1]);
        let (talker, listener) = (host(2 * flow), host(2 * flow + 1));
        let (from, to) = (ends(shape, size, first).0, ends(shape, size, last).1);
        add_link(&mut system, [talker, bridge(from)], HOST_RATE, vec![vlan(flow)]);
        add_link(&mut system, [bridge(to), listener], HOST_RATE, vec![vlan(flow)]);
        system.streams.push(Stream {
            name: format!("s{flow}"),
            talker,
            listeners: vec![listener],
            traffic_class: QUEUE,
            vlan: vlan(flow),
            pcp: 3,
            frame: [FRAME; 2],
            source: Source::Sporadic { interval, mean },
            phase: Span::ZERO,
            regulator: None,
            policing: None,
            paths: Default::default(),
            deadline: None,
            origin: Origin::default(),
        });
    }
    system
}
