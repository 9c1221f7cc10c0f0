//! Reservations by protocol in a run: `onbeat_runtime::msrp` and `mvrp` on hosts and bridges.
//!
//! # Model
//! Every *host* announces the protected channels that it talks on, and asks for those that it
//! listens to, when the run begins. It admits its own streams at its port as a bridge does
//! (802.1Q-2018 35.2.4.2). Every *bridge* has an `MsrpBridge` and propagates MVRP. What they decide
//! acts in the engine: a stream leaves a port only while it is reserved there, and the idleSlopes
//! of the queues of classes A and B are those that MSRP sets.
//!
//! PDUs are frames of the queue of network control, [`CONTROL_QUEUE`], and are delayed and lost as
//! others. Nodes take no time to answer. A link that fails, or whose other end fails, is told to
//! its ends. A node that fails forgets all; it begins again when it is back.
//!
//! # Topology
//! A stream's context is the plan's tree of it: the paths from its talker to the listeners
//! that the description names. A bridge accepts its talker from, and declares it on, the ports of
//! this tree only, as bridges do that have a tree for each source (802.1Q-2018 clause 27) and whose
//! talkers are pruned (35.2.1.4). VLANs are registered along one spanning tree of the bridges, and
//! over the links of hosts. Neither changes when something fails.

mod bridge;
mod host;
mod worst_case;

pub(crate) use worst_case::worst_case;

use self::bridge::Bridge;
use self::host::Host;
use crate::learning::ActiveTopology;
use crate::links::Links;
use crate::participant::{Joining, Outgoing, Participant};
use crate::random::{Purpose, Stream};
use onbeat_model::plan::Plan;
use onbeat_model::reservation::{
    ListenerReservation, MSRP_MARGIN, ReservationStatus, interval_frames,
};
use onbeat_model::system::{
    CONTROL_QUEUE, ChannelId, Class, NodeId, NodeKind, PortId, ReservationMode, System,
};
use onbeat_model::time::Span;
use onbeat_model::units::{BitRate, MacAddress, frame};
use onbeat_runtime::mrp::{self, MrpApplication};
use onbeat_runtime::msrp::{BridgeId, Msrp, SrClass, TSpec};
use std::collections::BTreeMap;

/// What a protocol that reserves decides on a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// The idleSlope of a queue of a port.
    IdleSlope {
        /// Of the node.
        port: PortId,
        /// The queue of a class.
        queue: usize,
        /// Zero: none.
        rate: BitRate,
    },
    /// A channel's frames leave the node by these ports only.
    Ports {
        /// Which.
        channel: ChannelId,
        /// Of the node.
        ports: Vec<PortId>,
    },
    /// How a channel stands at its talker.
    Talker {
        /// Which.
        channel: ChannelId,
        /// How.
        status: ReservationStatus,
    },
    /// How a channel stands at a listener.
    Listener {
        /// Which.
        channel: ChannelId,
        /// Its place among the channel's listeners.
        listener: usize,
        /// How.
        status: ListenerReservation,
    },
}

/// Whether reservations of a run are made by protocol.
pub(crate) fn is_asked_for(system: &System, plan: &Plan) -> bool {
    system.run.reservation == ReservationMode::Srp && plan.protected
}

/// The protocol on every node.
///
/// # Panics
/// When the plan reserves what the protocol cannot, or is of another system.
pub(crate) fn joining(system: &System, plan: &Plan, seed: u64) -> Vec<Joining> {
    let network = Network::new(system, plan);
    let nodes = (0..system.nodes.len() as u32).map(NodeId);
    let nodes = nodes.filter(|node| !system.node(*node).ports.is_empty());
    let join = |node| {
        let seed = Stream::new(seed, Purpose::Reservation, NodeId::index(node)).below(u64::MAX);
        let links = Links::new(system, node);
        let participant: Box<dyn Participant> = match &system.node(node).kind {
            NodeKind::Host(_) => Box::new(Host::new(&network, node, links, seed)),
            NodeKind::Bridge(_) => Box::new(Bridge::new(&network, node, links, seed)),
        };
        // MVRP's frames go with MSRP's: who speaks one speaks the other.
        let (ethertype, traffic_class) = (Msrp::ETHERTYPE, CONTROL_QUEUE as u8);
        Joining { node, ethertype, traffic_class, carries: Vec::new(), participant }
    };
    nodes.map(join).collect()
}

/// What participants know of the network when they are made.
struct Network<'a> {
    system: &'a System,
    plan: &'a Plan,
    classes: [SrClass; 2],
    topology: ActiveTopology,
    identifiers: BTreeMap<BridgeId, NodeId>,
    /// By node: the protected channels that come through it.
    channels: BTreeMap<NodeId, Vec<ChannelId>>,
}

impl<'a> Network<'a> {
    fn new(system: &'a System, plan: &'a Plan) -> Self {
        let identify = |node: NodeId| (identifier(system, node), node);
        let nodes = (0..system.nodes.len() as u32).map(NodeId);
        let mut channels: BTreeMap<NodeId, Vec<ChannelId>> = BTreeMap::new();
        let ids = (0..system.channels.len() as u32).map(ChannelId);
        for id in ids.filter(|id| plan.channel(*id).protected) {
            for port in plan.channel(id).tree_ports() {
                for node in [port, system.port(port).peer].map(|port| system.port(port).node) {
                    let all = channels.entry(node).or_default();
                    if all.last() != Some(&id) {
                        all.push(id);
                    }
                }
            }
        }
        Self {
            system,
            plan,
            classes: classes(system, plan),
            topology: ActiveTopology::spanning(system),
            identifiers: nodes.map(identify).collect(),
            channels,
        }
    }

    fn channels_at(&self, node: NodeId) -> &[ChannelId] {
        self.channels.get(&node).map_or(&[], Vec::as_slice)
    }

    fn tspec(&self, id: ChannelId) -> TSpec {
        let channel = self.system.channel(id);
        let octets = channel.stream_data_length().get() + frame::AVTP_HEADER.get();
        TSpec {
            max_frame_size: u16::try_from(octets).expect("a message fits a frame"),
            max_interval_frames: u16::try_from(self.frames(id)).expect("what the plan has checked"),
        }
    }

    /// MaxIntervalFrames of a channel.
    fn frames(&self, id: ChannelId) -> u64 {
        let channel = self.system.channel(id);
        let frame = channel.frame();
        let interval = channel.class.measurement_interval().expect("an SR class");
        let rate = self.plan.channel(id).reserved_rate;
        interval_frames(rate, frame, interval, MSRP_MARGIN).max(1)
    }
}

/// Classes A and B with the priority and the VLAN of their channels, which the plan has found to be
/// one each.
fn classes(system: &System, plan: &Plan) -> [SrClass; 2] {
    SrClass::DEFAULT.map(|default| {
        let both = system.channels.iter().zip(&plan.channels);
        let mut own =
            both.filter(|(channel, planned)| planned.protected && channel.class == default.class);
        own.next().map_or(default, |(channel, _)| SrClass {
            priority: channel.pcp,
            vid: channel.vlan,
            ..default
        })
    })
}

/// The identifier of a node: its address behind the default priority.
fn identifier(system: &System, node: NodeId) -> BridgeId {
    let mut octets = [0x80, 0, 0, 0, 0, 0, 0, 0];
    octets[2..].copy_from_slice(&address(system, node).0);
    BridgeId(octets)
}

/// The address that a node's frames come from. Bridges have none in a description.
fn address(system: &System, node: NodeId) -> MacAddress {
    match &system.node(node).kind {
        NodeKind::Host(host) => host.mac,
        NodeKind::Bridge(_) => {
            let [.., high, low] = node.0.to_be_bytes();
            MacAddress([0x02, 0x00, 0x5e, 0xff, high, low])
        }
    }
}

/// The longest from a frame's being presented to a port to its being at the other end, without
/// what waits before it of its own class.
fn through(system: &System, port: PortId) -> Span {
    let stack = match &system.node(system.port(port).node).kind {
        NodeKind::Host(host) => host.stack_tx.max(),
        NodeKind::Bridge(bridge) => bridge.forwarding,
    };
    stack + system.link_of(port).propagation
}

/// A PDU on its way out.
fn outgoing<A: MrpApplication>(source: MacAddress, port: usize, pdu: &[u8]) -> Outgoing {
    let octets = mrp::frame::<A>(source, pdu);
    Outgoing { port, octets, after: Span::ZERO, token: None }
}

/// The queue of the class at this place of [`SrClass::DEFAULT`].
fn queue(class: usize) -> usize {
    [Class::A, Class::B][class].queue()
}
