//! Protocols on nodes: sans-I/O state machines that take part in a run.
//!
//! A [`Participant`] is a protocol on one node. The engine gives it the node's frames of one
//! EtherType with the instants at which they came and left, and a timer; it gets frames to send and
//! what the node's clock is from now on. What it sends goes through its port's queues and over the
//! links like any other frame, with its own length and in the traffic class of the protocol, and
//! may be lost by what the run's faults do. Frames go to the neighbour at the other end of the link
//! and no further, as those to the group addresses do that no bridge forwards (802.1Q-2022 8.6.3);
//! a protocol that passes them on sends them again. A neighbour without the protocol drops them.
//!
//! A host's frames pass no stack here: what a node takes to send is [`Outgoing::after`], and it has
//! what it receives with the last octet. All instants are of true time: what a node's own clock
//! makes of them is the participant's to say. A participant may not ask for more than it is given:
//! it has neither a clock nor randomness but what it was made with, so that a run remains a
//! function of description and seed.
//!
//! Protocols end with the traffic ([`Options::traffic_until`](crate::Options::traffic_until)):
//! nothing is sent and no timer goes off from there on, what is in flight arrives, and clocks
//! continue as they are.

use crate::delay_line::DelayLine;
use crate::engine::Engine;
use crate::{gptp, srp, tcp};
use onbeat_model::plan::Plan;
use onbeat_model::system::{ChannelId, NodeId, PortId, System};
use onbeat_model::time::{ClockError, NetTime, Span};
use onbeat_model::units::{Octets, frame};
use std::any::Any;
use std::fmt;

/// A protocol on one node.
pub trait Participant: fmt::Debug + Send + Any {
    /// Takes note of what has happened, and says what it wants in `wants`. Must be total: what
    /// comes is what a neighbour sends.
    fn handle(&mut self, moment: &Moment, happened: Happened<'_>, wants: &mut Wants);

    /// When it wants [`Happened::Timer`] at the latest; the end of time: never. Asked for after
    /// each call of [`Participant::handle`]. What is past is as good as now.
    fn next(&self) -> NetTime;

    /// Whether it wants [`Happened::Header`], and when: so many octets behind the preamble. Asked
    /// for once, when it joins.
    fn header(&self) -> Option<Octets> {
        None
    }
}

/// When something happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// True time.
    pub now: NetTime,
    /// The node's copy of the network clock, as it is now.
    pub clock: ClockError,
}

/// What a participant is told. Ports count from 0, in the order of the node's ports.
#[derive(Debug, PartialEq, Eq)]
pub enum Happened<'a> {
    /// It is [`Participant::next`], or the beginning of the run.
    Timer,
    /// The first octets of a frame of the protocol have come, as many as [`Participant::header`]
    /// says. A frame that a fault costs has no header either.
    Header {
        /// By which port.
        port: usize,
        /// As in [`Happened::Received`].
        token: Option<u64>,
        /// The whole frame, for what is behind the header is certain: see [`Happened::Received`].
        octets: &'a [u8],
    },
    /// A frame of the protocol has come.
    Received {
        /// By which port.
        port: usize,
        /// What its sender gave as [`Outgoing::token`]. No receiver could know it: it is for what
        /// counts frames, and nothing may go by it.
        token: Option<u64>,
        /// From the destination address to the end of the payload. Without padding: frames are as
        /// they were sent.
        octets: &'a [u8],
        /// When its first octet after the preamble was at the port (802.1AS-2020 8.4.3).
        at: NetTime,
    },
    /// The last octet of a frame with a token has left.
    Sent {
        /// By which port.
        port: usize,
        /// The frame's.
        token: u64,
        /// When its first octet after the preamble left.
        at: NetTime,
    },
    /// A program has written a message of a channel that the participant carries.
    Written {
        /// Which channel.
        channel: ChannelId,
        /// Its frame, from the destination address to its padding, tagged; empty if it is one that
        /// the engine models ([`Options::model_channels`](crate::Options::model_channels)).
        octets: &'a [u8],
    },
}

/// A message that a participant has for a listener of a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CarriedMessage {
    /// Which channel.
    pub channel: ChannelId,
    /// The place of its node among the channel's listeners.
    pub listener: usize,
    /// Its frame, from the destination address to its padding, tagged.
    pub octets: Vec<u8>,
    /// When it was written, as far as the participants know.
    pub written: NetTime,
    /// When the last octet of the frame that brought it was at the node's port.
    pub arrived: NetTime,
    /// How long from now until the program has it, not negative. Messages of one listener stay in
    /// order.
    pub after: Span,
}

/// A frame that a participant sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// By which port of the node, from 0.
    pub port: usize,
    /// From the destination address to the end of the payload, untagged. What is shorter than a
    /// frame may be counts as padded.
    pub octets: Vec<u8>,
    /// How long from now until it is queued, not negative. A participant's frames of one port stay
    /// in order.
    pub after: Span,
    /// Comes back when it has left, if it does, and goes with the frame to the neighbour.
    pub token: Option<u64>,
}

/// A node's clock, as a protocol keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockAdjustment {
    /// What it reads from now on, until it is steered again. Its step counts for nothing: what a
    /// description lets a clock step by is added to it.
    pub clock: ClockError,
    /// Whose time it is, as far as the protocol knows.
    pub source: Option<NodeId>,
}

/// What a participant wants.
#[derive(Debug, Default)]
pub struct Wants {
    pub(crate) frames: Vec<Outgoing>,
    pub(crate) adjustment: Option<ClockAdjustment>,
    pub(crate) reservations: Vec<srp::Change>,
    pub(crate) messages: Vec<CarriedMessage>,
    pub(crate) lost: Vec<ChannelId>,
    pub(crate) dedicated: Vec<DedicatedAction>,
}

/// What the dedicated path of a bridge does at one of its ports, from 0.
#[derive(Debug)]
pub(crate) enum DedicatedAction {
    /// A frame will begin at an instant.
    Announce { port: usize, start: NetTime },
    /// The frame that was announced for this instant begins. It was announced at `since`.
    Begin { port: usize, since: NetTime, octets: Vec<u8>, token: u64 },
    /// A frame that came by the port is dropped: another one is on the path.
    Collide { port: usize },
}

impl Wants {
    /// Sends a frame.
    ///
    /// # Panics
    /// When it is longer than a frame may be; [`crate::Engine`] does when there is no such port.
    pub fn send(&mut self, frame: Outgoing) {
        let octets = frame.octets.len() as u32 + frame::FCS.get();
        assert!(octets <= frame::MAX_TAGGED.get(), "a frame of {octets} octets");
        self.frames.push(frame);
    }

    /// Gives a message of a channel to its listener's program.
    pub fn deliver(&mut self, message: CarriedMessage) {
        self.messages.push(message);
    }

    /// A message of a channel that a program wrote will never be carried.
    pub fn lose(&mut self, channel: ChannelId) {
        self.lost.push(channel);
    }

    /// Sets the node's clock. The last one counts.
    pub fn adjust_clock(&mut self, adjustment: ClockAdjustment) {
        self.adjustment = Some(adjustment);
    }
}

/// A protocol that is about to take part.
#[derive(Debug)]
pub struct Joining {
    /// On which node. One that has no port hears nothing.
    pub node: NodeId,
    /// Of which frames it is told: those that neighbours send who joined with the same one. One per
    /// node and protocol; one whose frames have several joins with one of them.
    pub ethertype: u16,
    /// The traffic class of its frames, which is their queue.
    pub traffic_class: u8,
    /// The channels whose messages it takes from their talkers, which are on its node. What has to
    /// be done for them otherwise is not: they have no queue, path or launch time.
    pub carries: Vec<ChannelId>,
    /// The protocol.
    pub participant: Box<dyn Participant>,
}

/// Lets the protocols take part that a description asks for, up to `until`: gPTP if it is `in_run`,
/// TCP if there are messages over it, and MSRP with MVRP if they make the reservations
/// ([`ReservationMode::Srp`](onbeat_model::system::ReservationMode)). To be called before anything
/// has happened in the engine.
///
/// # Panics
/// When the system is not one for which [`synchronise`](crate::gptp::synchronise) found nothing
/// wrong, or the plan is of another system, or reserves what the protocol cannot.
pub fn join_protocols(
    engine: &mut Engine,
    system: &System,
    plan: &Plan,
    seed: u64,
    until: NetTime,
) {
    join_with(engine, system, plan, (seed, until), Vec::new());
}

/// The same, with further ones.
pub(crate) fn join_with(
    engine: &mut Engine,
    system: &System,
    plan: &Plan,
    (seed, until): (u64, NetTime),
    further: Vec<Joining>,
) {
    let (mut joining, steered) = gptp::joining(system);
    joining.extend(tcp::joining(system, plan, seed));
    joining.extend(reserving(engine, system, plan, seed));
    joining.extend(further);
    if !joining.is_empty() {
        engine.join(system, joining, until, &steered);
    }
}

/// Of the protocols of [`join_protocols`] only those that make reservations: for an engine that a
/// machine's clock paces, where programs go by that.
///
/// # Panics
/// When the plan is of another system, or reserves what the protocol cannot.
pub fn join_reservation(
    engine: &mut Engine,
    system: &System,
    plan: &Plan,
    seed: u64,
    until: NetTime,
) {
    let joining = reserving(engine, system, plan, seed);
    if !joining.is_empty() {
        engine.join(system, joining, until, &[]);
    }
}

/// The protocol that makes reservations, if one does.
fn reserving(engine: &mut Engine, system: &System, plan: &Plan, seed: u64) -> Vec<Joining> {
    if !srp::is_asked_for(system, plan) {
        return Vec::new();
    }
    engine.reserve_by_protocol(system, plan);
    srp::joining(system, plan, seed)
}

/// No participant.
pub(crate) const NOBODY: u32 = u32::MAX;

/// The protocols of a run, and their frames where these are in no queue.
#[derive(Debug)]
pub(crate) struct Protocols {
    pub(crate) members: Vec<Member>,
    /// Per port of the system.
    pub(crate) ports: Vec<PortLanes>,
    /// What waits to be queued: of each port of the system, for the first protocol of its node;
    /// then the same for the second, and so on.
    pub(crate) held: Vec<DelayLine<HeldFrame>>,
    /// Nothing is sent and no timer goes off from here on.
    pub(crate) until: NetTime,
    /// Per port: the one at the other end.
    pub(crate) peers: Vec<PortId>,
    /// Per port: how long its wire is.
    pub(crate) wires: Vec<Span>,
    /// Wires have no rate: frames take no time beside the wire's, and are stamped when their
    /// preamble starts.
    pub(crate) ideal: bool,
    pub(crate) wants: Wants,
    /// The frame that is being heard.
    pub(crate) heard: Vec<u8>,
}

/// A frame of a protocol that waits to be queued: its hop, octets and token.
pub(crate) type HeldFrame = (u32, Vec<u8>, Option<u64>);

/// A protocol on its node.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) node: NodeId,
    pub(crate) ethertype: u16,
    /// How many protocols joined on its node before it.
    pub(crate) place: usize,
    /// Its node's.
    pub(crate) ports: Vec<PortId>,
    /// Per port: the hop of its frames there.
    pub(crate) hops: Vec<u32>,
    /// When its timer is to go off. An event for another time is out of date.
    pub(crate) due: NetTime,
    /// When it is told of a frame that comes, if before its end.
    pub(crate) header: Option<Octets>,
    pub(crate) participant: Box<dyn Participant>,
}

/// The frames of protocols that are at a port, or on its wire, in no queue.
#[derive(Debug)]
pub(crate) struct PortLanes {
    /// What leaves: its hop, token and stamp.
    pub(crate) sent: DelayLine<(u32, u64, NetTime)>,
    /// What arrives at the other end: the frame and its stamp there.
    pub(crate) heard: DelayLine<(crate::frame::Frame, NetTime)>,
    /// The same, when its header is there; of those only whose receiver wants it.
    pub(crate) headers: DelayLine<crate::frame::Frame>,
}

impl Protocols {
    pub(crate) fn new(system: &System, until: NetTime) -> Self {
        let lanes = |_| PortLanes {
            sent: DelayLine::new(),
            heard: DelayLine::new(),
            headers: DelayLine::new(),
        };
        let ports = 0..system.ports.len();
        let wire = |port| system.link_of(PortId(port as u32)).propagation;
        Self {
            members: Vec::new(),
            ports: ports.clone().map(lanes).collect(),
            held: Vec::new(),
            until,
            peers: system.ports.iter().map(|port| port.peer).collect(),
            wires: ports.map(wire).collect(),
            ideal: false,
            wants: Wants::default(),
            heard: Vec::new(),
        }
    }

    /// Lets a protocol take part on its node.
    pub(crate) fn add(&mut self, system: &System, joining: Joining) {
        let place = self.members.iter().filter(|member| member.node == joining.node).count();
        let lanes = (place + 1) * self.ports.len();
        if self.held.len() < lanes {
            self.held.resize_with(lanes, DelayLine::new);
        }
        self.members.push(Member::new(system, joining, place));
    }

    /// Which of the lanes of what waits to be queued is a member's for a port.
    pub(crate) fn lane(&self, member: usize, port: PortId) -> u32 {
        (self.members[member].place * self.ports.len() + port.index()) as u32
    }

    /// Who on a node hears frames of this kind.
    pub(crate) fn member(&self, node: NodeId, ethertype: u16) -> Option<usize> {
        self.members.iter().position(|m| m.node == node && m.ethertype == ethertype)
    }
}

impl Member {
    pub(crate) fn new(system: &System, joining: Joining, place: usize) -> Self {
        let Joining { node, ethertype, participant, .. } = joining;
        let ports = system.node(node).ports.clone();
        let hops = Vec::with_capacity(ports.len());
        let (due, header) = (NetTime::MAX, participant.header());
        Self { node, ethertype, place, ports, hops, due, header, participant }
    }

    /// The number of a port of the system among the node's.
    pub(crate) fn port(&self, port: PortId) -> usize {
        self.ports.iter().position(|own| *own == port).expect("a port of the node")
    }
}

/// Octets that stand before a frame's own while it is in flight: its token, if it has one.
pub(crate) const TOKEN: usize = 9;

/// A frame with its token before it.
pub(crate) fn with_token(octets: &[u8], token: Option<u64>) -> Vec<u8> {
    let mut all = Vec::with_capacity(TOKEN + octets.len());
    all.push(u8::from(token.is_some()));
    all.extend_from_slice(&token.unwrap_or_default().to_le_bytes());
    all.extend_from_slice(octets);
    all
}

/// The token before a frame, if it has one.
pub(crate) fn token_of(octets: &[u8]) -> Option<u64> {
    let (first, rest) = octets.split_first()?;
    let number = rest.first_chunk().copied().map(u64::from_le_bytes)?;
    (*first == 1).then_some(number)
}
