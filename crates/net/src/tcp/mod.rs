//! Messages over TCP in a run: `onbeat_runtime::tcp` on hosts, and bridges that pass its frames on.
//!
//! # Model
//! A *talker* captures a message when its clock reads the tag and its lag has passed, and writes it
//! at once; if the send buffer has no room for it, when it has. What its host sends waits for
//! `stack_tx`, in order. A *bridge* queues a frame its `forwarding` time after the last octet, in
//! the best-effort queue of the port that leads to its destination by the plan's path; it neither
//! cuts through nor floods. What a host receives waits for `stack_rx`, in order. A *reader* reads
//! what is there at once. It handles a message when its clock reads the tag and `after` and its
//! wake-up delay has passed, or when it reads its last octet, if that is later: then it is late.
//!
//! The delays of hosts are drawn from random streams of their own. A flow ends with the traffic:
//! what is not there by then stays so. A connection is open from the beginning.

mod host;
mod relay;

use self::host::{FlowEnds, Host};
use self::relay::Relay;
use crate::engine::Engine;
use crate::participant::{Joining, Participant};
use onbeat_model::plan::Plan;
use onbeat_model::system::{BEST_EFFORT_QUEUE, NodeId, NodeKind, PortId, System};
use onbeat_model::tcp::{TcpFlow, TcpMessage, TcpObserved};
use onbeat_model::units::MacAddress;
use onbeat_runtime::tcp::{Direction, ETHERTYPE};
use std::collections::BTreeMap;

/// Ports of listeners and of talkers: these and the number of the flow.
const LISTENER_PORT: u16 = 20_000;
const TALKER_PORT: u16 = 40_000;

/// The hosts and bridges that take part.
///
/// # Panics
/// When the plan is of another system.
pub(crate) fn joining(system: &System, plan: &Plan, seed: u64) -> Vec<Joining> {
    assert_eq!(system.tcp.len(), plan.tcp.len());
    let mut hosts: BTreeMap<NodeId, Host> = BTreeMap::new();
    let mut relays: BTreeMap<NodeId, Relay> = BTreeMap::new();
    for (number, (flow, paths)) in system.tcp.iter().zip(&plan.tcp).enumerate() {
        let ends = FlowEnds { number, flow, seed, data: direction(system, flow, number) };
        for node in [flow.talker, flow.listener] {
            hosts.entry(node).or_insert_with(|| Host::new(&system.node(node).kind, seed, node));
        }
        hosts.entry(flow.talker).and_modify(|host| host.add_talker(&ends));
        hosts.entry(flow.listener).and_modify(|host| host.add_listener(&ends));
        let destinations = [LISTENER_PORT, TALKER_PORT].map(|port| port + number as u16);
        for (path, destination) in paths.iter().zip(destinations) {
            // The first port is the host's.
            for port in path.iter().skip(1) {
                let node = system.port(*port).node;
                let relay =
                    relays.entry(node).or_insert_with(|| Relay::new(&system.node(node).kind));
                relay.add(destination, number_on_node(system, *port));
            }
        }
    }
    let traffic_class = BEST_EFFORT_QUEUE as u8;
    let join = |node, participant: Box<dyn Participant>| Joining {
        node,
        ethertype: ETHERTYPE,
        traffic_class,
        carries: Vec::new(),
        participant,
    };
    let hosts = hosts.into_iter().map(|(node, host)| join(node, Box::new(host) as Box<_>));
    hosts.chain(relays.into_iter().map(|(node, relay)| join(node, Box::new(relay)))).collect()
}

fn number_on_node(system: &System, port: PortId) -> usize {
    let ports = &system.node(system.port(port).node).ports;
    ports.iter().position(|own| *own == port).expect("a port is one of its node's")
}

/// From a flow's talker to its listener; addresses are those of captures, 10.0.0.1 and up.
fn direction(system: &System, flow: &TcpFlow, number: usize) -> Direction {
    let mac = |node| match &system.node(node).kind {
        NodeKind::Host(host) => host.mac,
        NodeKind::Bridge(_) => MacAddress::default(),
    };
    let address = |node: NodeId| (0x0a00_0001 + node.0).to_be_bytes();
    let ends = [flow.talker, flow.listener];
    Direction {
        source: mac(flow.talker),
        destination: mac(flow.listener),
        addresses: ends.map(address),
        ports: [TALKER_PORT, LISTENER_PORT].map(|port| port + number as u16),
    }
}

impl Engine {
    /// What was seen of the flows of messages over TCP, in the order of the system; nothing if they
    /// do not take part.
    pub fn tcp_observed(&mut self) -> Vec<TcpObserved> {
        let mut seen: BTreeMap<usize, TcpObserved> = BTreeMap::new();
        // Talkers first: listeners add to their messages.
        for talker in self.participants::<Host>().flat_map(|host| &host.talkers) {
            let observed = seen.entry(talker.number).or_default();
            let counts = talker.sender.counts();
            observed.unrecorded = talker.unrecorded;
            observed.segments = counts.segments;
            observed.retransmitted = counts.retransmitted;
            observed.timeouts = counts.timeouts;
            observed.fast_retransmits = counts.fast_retransmits;
            observed.failed = talker.sender.has_failed();
            let message =
                |(tag, capture)| TcpMessage { tag, capture, receive: None, handled: None };
            observed.messages = talker.captures.iter().copied().map(message).collect();
        }
        for listener in self.participants::<Host>().flat_map(|host| &host.listeners) {
            let observed = seen.entry(listener.number).or_default();
            observed.acknowledgements = listener.acknowledgements;
            for (message, receive) in observed.messages.iter_mut().zip(&listener.receipts) {
                message.receive = Some(*receive);
            }
            for (message, handled) in observed.messages.iter_mut().zip(&listener.handled) {
                message.handled = Some(*handled);
            }
        }
        seen.into_values().collect()
    }
}
