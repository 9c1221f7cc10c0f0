//! Which stations there are, and why a network cannot have them.

use super::NetworkCodeSettings;
use super::application::{Application, NoApplication};
use super::books::{Books, SharedBooks, StationObserved};
use super::carrier::Carrier;
use super::host::{StationHost, StationOnNode};
use super::ports::PortBook;
use super::relay::{DedicatedRelay, StationRelay};
use crate::learning::ActiveTopology;
use crate::links::Links;
use crate::participant::{Joining, Participant};
use crate::random::{Purpose, Stream};
use onbeat_model::plan::Plan;
use onbeat_model::port::Selection;
use onbeat_model::system::{ChannelId, NodeId, NodeKind, PortId, System};
use onbeat_model::time::{NetTime, Span};
use onbeat_model::units::BitRate;
use onbeat_runtime::network_code::counters::StationCounters;
use onbeat_runtime::network_code::instruction::{BufferId, Instruction, MessageId};
use onbeat_runtime::network_code::program::StationProgram;
use onbeat_runtime::network_code::wire::ETHERTYPE_DATA;
use onbeat_runtime::talker::ChannelParameters;
use std::collections::BTreeSet;

/// The highest: frames of stations wait for no others but those that have begun.
pub(super) const TRAFFIC_CLASS: u8 = 7;
/// The VLAN of frames without a tag, or with one that says no VLAN (802.1Q-2022 Table 9-2).
const VLAN: u16 = 1;

/// A station that is to take part.
#[derive(Debug)]
pub struct StationSetup {
    /// Its program, which names its host.
    pub program: StationProgram,
    /// Its application.
    pub application: Box<dyn Application>,
    /// The channels that it carries, each in a buffer that the application leaves alone.
    pub channels: Vec<StationChannel>,
}

impl StationSetup {
    /// A station that carries no channel.
    pub fn new(program: StationProgram, application: impl Application + 'static) -> Self {
        Self { program, application: Box::new(application), channels: Vec::new() }
    }
}

/// A host's station that carries channels of its programs, and does nothing else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CarryingStation {
    /// Its program, which names the host.
    pub program: StationProgram,
    /// Every channel of which the host has an end, and the buffer of that end.
    pub channels: Vec<(ChannelId, BufferId)>,
}

impl CarryingStation {
    /// The station in a system whose channels have these parameters.
    pub fn setup(
        &self,
        system: &System,
        parameters: &dyn Fn(ChannelId) -> ChannelParameters,
    ) -> StationSetup {
        let channel = |(channel, buffer): &(ChannelId, BufferId)| {
            let is_its = |node: &NodeId| system.node(*node).name == self.program.station;
            let end = match system.channel(*channel).listeners.iter().position(is_its) {
                Some(listener) => ChannelEnd::Listener(listener),
                None => ChannelEnd::Talker,
            };
            let parameters = parameters(*channel);
            StationChannel { channel: *channel, end, buffer: *buffer, parameters }
        };
        let channels = self.channels.iter().map(channel).collect();
        StationSetup { channels, ..StationSetup::new(self.program.clone(), NoApplication) }
    }
}

/// An end of a channel in a buffer of a station.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StationChannel {
    /// Which channel.
    pub channel: ChannelId,
    /// Which end.
    pub end: ChannelEnd,
    /// The buffer, an output at the talker and an input at a listener, of
    /// [`message_words`](onbeat_runtime::network_code::channel::message_words).
    pub buffer: BufferId,
    /// What both ends know of the channel.
    pub parameters: ChannelParameters,
}

/// Which end of a channel a station has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelEnd {
    /// Programs on its host write.
    Talker,
    /// The one at this place among the channel's listeners.
    Listener(usize),
}

/// Why a network cannot have stations. Text of stations and ports is theirs in the description.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SetupError {
    /// The program's station is no node.
    #[error("the system has no node `{0}`: a program runs on the host that its `station` names")]
    NoNode(String),
    /// The program's station is a bridge.
    #[error("`{0}` is a bridge: programs in Network Code run on hosts")]
    Bridge(String),
    /// Two programs have the same station.
    #[error("two programs are of station `{0}`: a host runs one")]
    Twice(String),
    /// The host has no link.
    #[error("host `{0}` has no link")]
    NoLink(String),
    /// A field of the program exceeds its limit.
    #[error("the program of `{0}` exceeds a limit")]
    Limits(String),
    /// The program counts octets of another length than the link's.
    #[error("the program of `{station}` is for a medium of {medium}, its link has {link}")]
    Rate {
        /// Whose program.
        station: String,
        /// The rate of its `medium`.
        medium: BitRate,
        /// That of the link.
        link: BitRate,
    },
    /// Instants behind a tag are other ones than without.
    #[error(
        "frames of `{tagged}` have a VLAN tag, those of `{untagged}` have none: all media of a \
         network are `tagged`, or none is"
    )]
    Tags {
        /// A station whose medium is tagged.
        tagged: String,
        /// One whose medium is not.
        untagged: String,
    },
    /// A port sends frames of the highest class later than it could.
    #[error(
        "port {0} shapes traffic class {TRAFFIC_CLASS}, which is that of stations: no reservation \
         of class A, or other shaping, may be there"
    )]
    Shaped(String),
    /// A port interrupts frames of the highest class.
    #[error("port {0} may interrupt frames of traffic class {TRAFFIC_CLASS}, which stations send")]
    Preemptable(String),
}

/// What a user is told of all of them.
pub fn explain(errors: &[SetupError]) -> String {
    let errors: Vec<_> = errors.iter().map(ToString::to_string).collect();
    format!("the network cannot have these stations: {}", errors.join("; "))
}

/// What takes part: hosts with programs, and all bridges.
///
/// # Errors
/// With all that is wrong.
pub(super) fn joining(
    system: &System,
    plan: &Plan,
    setups: Vec<StationSetup>,
    settings: &NetworkCodeSettings,
    shared: &SharedBooks,
) -> Result<Vec<Joining>, Vec<SetupError>> {
    let mut errors = Vec::new();
    let mut hosts: Vec<(NodeId, PortId, StationSetup)> = Vec::new();
    for setup in setups {
        match host(system, &setup.program) {
            Ok((node, _)) if hosts.iter().any(|(other, ..)| *other == node) => {
                errors.push(SetupError::Twice(setup.program.station));
            }
            Ok((node, port)) => hosts.push((node, port, setup)),
            Err(error) => errors.push(error),
        }
    }
    errors.extend(mixed_tags(hosts.iter().map(|(.., setup)| &setup.program)));
    let relays = relays(system, plan, shared);
    let bridges = relays.iter().flat_map(|relay| relay.leaves.iter().flatten());
    let ports: BTreeSet<PortId> = hosts.iter().map(|host| host.1).chain(bridges.copied()).collect();
    errors.extend(ports.iter().flat_map(|port| unfit(system, plan, *port)));
    if !errors.is_empty() {
        return Err(errors);
    }
    let mut books = shared.open();
    for port in ports {
        books.add_port(port, PortBook::new(system, port));
    }
    let mut joining = Vec::with_capacity(hosts.len() + relays.len());
    for (number, (node, port, setup)) in hosts.into_iter().enumerate() {
        let station = StationOnNode::new(system, (number, node, port), &setup.program, settings);
        let start = start(settings, node);
        enter(&mut books, &station, start);
        let links = Links::new(system, node);
        let carrier = Carrier::new(&setup.channels);
        let carries = carrier.written();
        let parts = (setup.application, carrier, links);
        let host = StationHost::new(station, parts, start, shared.clone());
        joining.push(join(node, carries, Box::new(host)));
    }
    let relays = relays.into_iter();
    joining.extend(relays.map(|relay| join(relay.node, Vec::new(), relay.participant)));
    Ok(joining)
}

fn join(node: NodeId, carries: Vec<ChannelId>, participant: Box<dyn Participant>) -> Joining {
    // One EtherType stands for both.
    let (ethertype, traffic_class) = (ETHERTYPE_DATA, TRAFFIC_CLASS);
    Joining { node, ethertype, traffic_class, carries, participant }
}

/// The host of a program, and its port.
fn host(system: &System, program: &StationProgram) -> Result<(NodeId, PortId), SetupError> {
    let station = || program.station.clone();
    let at = system.nodes.iter().position(|node| node.name == program.station);
    let at = at.ok_or_else(|| SetupError::NoNode(station()))?;
    let node = &system.nodes[at];
    if matches!(node.kind, NodeKind::Bridge(_)) {
        return Err(SetupError::Bridge(station()));
    }
    let port = *node.ports.first().ok_or_else(|| SetupError::NoLink(station()))?;
    if !program.keeps_limits() {
        return Err(SetupError::Limits(station()));
    }
    let link = system.link_of(port).rate;
    let bps = u64::from(program.medium.octet_cycles) * link.as_bps();
    if bps != 1_000_000_000 {
        let medium = BitRate::from_bps(1_000_000_000 / u64::from(program.medium.octet_cycles));
        return Err(SetupError::Rate { station: station(), medium, link });
    }
    Ok((NodeId(at as u32), port))
}

fn mixed_tags<'a>(programs: impl Iterator<Item = &'a StationProgram>) -> Option<SetupError> {
    let (tagged, untagged): (Vec<_>, Vec<_>) = programs.partition(|program| program.medium.tagged);
    let (tagged, untagged) = (tagged.first()?.station.clone(), untagged.first()?.station.clone());
    Some(SetupError::Tags { tagged, untagged })
}

/// What a port does to frames of stations that may not be.
fn unfit(system: &System, plan: &Plan, port: PortId) -> Vec<SetupError> {
    let settings = &plan.ports[port.index()].settings;
    let queue = usize::from(TRAFFIC_CLASS);
    let mut errors = Vec::new();
    if settings.selection[queue] != Selection::StrictPriority {
        errors.push(SetupError::Shaped(system.port_label(port)));
    }
    if settings.preemptable >> queue & 1 == 1 {
        errors.push(SetupError::Preemptable(system.port_label(port)));
    }
    errors
}

/// All bridges. Frames leave by the ports of the tree that are in the VLAN.
fn relays(system: &System, plan: &Plan, books: &SharedBooks) -> Vec<Relay> {
    let topology = ActiveTopology::spanning(system);
    let leaves = |port: PortId| {
        let vlans = &plan.ports[port.index()].settings.vlans;
        topology.is_active(port) && vlans.as_ref().is_none_or(|vlans| vlans.contains(&VLAN))
    };
    let relay = |(at, node): (usize, &onbeat_model::system::Node)| {
        let NodeKind::Bridge(bridge) = &node.kind else { return None };
        let ports = node.ports.iter().map(|port| Some(*port).filter(|port| leaves(*port)));
        let ports: Vec<Option<PortId>> = ports.collect();
        let (books, leaves) = (books.clone(), ports.clone());
        let participant: Box<dyn Participant> = match (bridge.dedicated_path, node.ports.first()) {
            (Some(path), Some(port)) => {
                let rate = system.link_of(*port).rate;
                Box::new(DedicatedRelay::new(path, rate, ports, books))
            }
            _ => Box::new(StationRelay { forwarding: bridge.forwarding, ports, books }),
        };
        Some(Relay { node: NodeId(at as u32), leaves, participant })
    };
    system.nodes.iter().enumerate().filter_map(relay).collect()
}

/// What passes frames on at a bridge.
struct Relay {
    node: NodeId,
    /// The ports by which they leave, of those of the node.
    leaves: Vec<Option<PortId>>,
    participant: Box<dyn Participant>,
}

/// When the station of a node starts first.
fn start(settings: &NetworkCodeSettings, node: NodeId) -> NetTime {
    let count = settings.start_within.as_ns().max(0) as u64 + 1;
    let mut random = Stream::new(settings.seed, Purpose::NetworkCodeStart, node.index());
    NetTime::ZERO + Span::from_ns(random.below(count) as i64)
}

/// Has a station in the books, with its messages.
fn enter(books: &mut Books, station: &StationOnNode, start: NetTime) {
    let (node, counters) = (station.node, StationCounters::default());
    books.add_station(StationObserved { node, start, starts: 0, counters, unsent: 0, trap: None });
    let words = station.program.words.iter().map(|word| Instruction::decode(*word));
    let uses: BTreeSet<(MessageId, bool)> = words
        .filter_map(|instruction| match instruction {
            Ok(Instruction::Send { message }) => Some((message, false)),
            Ok(Instruction::Receive { message, .. }) => Some((message, true)),
            _ => None,
        })
        .collect();
    for (id, is_listener) in uses {
        if let Some(format) = station.program.message(id) {
            books.add_message(id, &format.name, is_listener.then_some((node, start)));
        }
    }
}

impl StationOnNode {
    fn new(
        system: &System,
        (number, node, port): (usize, NodeId, PortId),
        program: &StationProgram,
        settings: &NetworkCodeSettings,
    ) -> Self {
        let mac = match &system.node(node).kind {
            NodeKind::Host(host) => host.mac,
            NodeKind::Bridge(_) => unreachable!("programs are on hosts"),
        };
        Self {
            number,
            node,
            port,
            program: program.clone(),
            mac,
            clock: system.node(node).clock,
            rounds: settings.rounds,
            logs: settings.logs,
        }
    }
}
