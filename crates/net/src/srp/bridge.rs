//! A bridge.

use super::{Change, Network, outgoing, through};
use crate::links::{LinkEvent, Links};
use crate::participant::{Happened, Moment, Participant, Wants};
use onbeat_model::system::{ChannelId, NodeId, PortId};
use onbeat_model::time::NetTime;
use onbeat_model::units::{BitRate, MacAddress, StreamId};
use onbeat_runtime::mrp::{self, MrpInput, MrpSettings, MrpTimers, Propagation, PropagationInput};
use onbeat_runtime::msrp::bridge::STREAMS_MAX;
use onbeat_runtime::msrp::{
    BridgeAction, BridgeInput, Msrp, MsrpBridge, MsrpBridgeSettings, MsrpPort,
};
use onbeat_runtime::mvrp::Mvrp;
use std::collections::BTreeMap;

/// The protocol on a bridge.
#[derive(Debug)]
pub(super) struct Bridge {
    msrp: MsrpBridge,
    mvrp: Propagation<Mvrp>,
    start: BridgeStart,
    links: Links,
    runs: bool,
}

/// What a bridge begins with, each time.
#[derive(Debug)]
struct BridgeStart {
    settings: MsrpBridgeSettings,
    seed: u64,
    address: MacAddress,
    ids: Vec<PortId>,
    ports: Vec<MsrpPort>,
    /// Per port: whether VLANs are registered there and passed on.
    forwards: Vec<bool>,
    /// By stream: its channel, and the ports of the plan's tree of it.
    streams: BTreeMap<StreamId, (ChannelId, Vec<usize>)>,
}

impl BridgeStart {
    fn new(network: &Network<'_>, node: NodeId, seed: u64) -> Self {
        let system = network.system;
        let ids = system.node(node).ports.clone();
        let port =
            |port: &PortId| MsrpPort::new(system.link_of(*port).rate, through(system, *port));
        let mut settings = MsrpBridgeSettings::new(super::identifier(system, node));
        (settings.classes, settings.streams_max) = (network.classes, STREAMS_MAX);
        let mut streams = BTreeMap::new();
        for id in network.channels_at(node) {
            let tree = network.plan.channel(*id).tree_ports();
            let is_its =
                |own: &PortId| tree.contains(own) || tree.contains(&system.port(*own).peer);
            let numbered = ids.iter().enumerate().filter(|(_, own)| is_its(own));
            let ports = numbered.map(|(number, _)| number).collect();
            streams.insert(system.channel(*id).stream_id, (*id, ports));
        }
        Self {
            settings,
            seed,
            address: super::address(system, node),
            ports: ids.iter().map(port).collect(),
            forwards: ids.iter().map(|port| network.topology.is_active(*port)).collect(),
            ids,
            streams,
        }
    }

    fn machines(&self, now: NetTime) -> (MsrpBridge, Propagation<Mvrp>) {
        let seed = self.seed.wrapping_add(now.as_ns().unsigned_abs());
        let mut msrp = MsrpBridge::new(self.settings, &self.ports, seed, now);
        for (stream, (_, ports)) in &self.streams {
            msrp.set_context(*stream, ports.iter().copied());
        }
        let timers = MrpTimers {
            periodic: Some(onbeat_model::time::Span::from_s(1)),
            ..MrpTimers::default()
        };
        let settings = MrpSettings { timers, ..MrpSettings::default() };
        let mut mvrp = Propagation::new(settings, self.ports.len(), !seed, now);
        for (port, forwards) in self.forwards.iter().enumerate() {
            mvrp.handle(now, PropagationInput::Forwards(port, *forwards));
        }
        (msrp, mvrp)
    }
}

impl Bridge {
    pub(super) fn new(network: &Network<'_>, node: NodeId, links: Links, seed: u64) -> Self {
        let start = BridgeStart::new(network, node, seed);
        let (msrp, mvrp) = start.machines(NetTime::ZERO);
        Self { msrp, mvrp, start, links, runs: true }
    }

    fn reserve(&mut self, now: NetTime, input: BridgeInput<'_>, wants: &mut Wants) {
        let start = &self.start;
        for action in self.msrp.handle(now, input) {
            match action {
                BridgeAction::Send { port, octets } => {
                    wants.send(outgoing::<Msrp>(start.address, port, &octets));
                }
                BridgeAction::SetIdleSlope { port, class, rate } => {
                    let (port, queue) = (start.ids[port], class.queue());
                    wants.reservations.push(Change::IdleSlope { port, queue, rate });
                }
                BridgeAction::SetPorts { stream, ports, .. } => {
                    if let Some((channel, _)) = start.streams.get(&stream) {
                        let ports = ports.into_iter().map(|port| start.ids[port]).collect();
                        wants.reservations.push(Change::Ports { channel: *channel, ports });
                    }
                }
            }
        }
    }

    fn register(&mut self, now: NetTime, input: PropagationInput<'_, Mvrp>, wants: &mut Wants) {
        for (port, pdu) in self.mvrp.handle(now, input) {
            wants.send(outgoing::<Mvrp>(self.start.address, port, &pdu));
        }
    }

    /// Begins again, with nothing.
    fn restart(&mut self, now: NetTime, wants: &mut Wants) {
        for (number, port) in self.start.ids.iter().enumerate() {
            let slopes = self.msrp.idle_slopes(number).into_iter().enumerate();
            let rate = BitRate::default();
            wants.reservations.extend(slopes.filter(|(_, slope)| *slope != rate).map(
                |(class, _)| Change::IdleSlope { port: *port, queue: super::queue(class), rate },
            ));
        }
        for (channel, _) in self.start.streams.values() {
            let (channel, ports) = (*channel, Vec::new());
            wants.reservations.push(Change::Ports { channel, ports });
        }
        (self.msrp, self.mvrp) = self.start.machines(now);
    }

    fn happen(&mut self, now: NetTime, event: LinkEvent, wants: &mut Wants) {
        let (port, input, of_vlans) = match event {
            LinkEvent::Link(port, true) => (port, BridgeInput::LinkUp(port), MrpInput::LinkUp),
            LinkEvent::Link(port, false) => (port, BridgeInput::LinkDown(port), MrpInput::LinkDown),
            LinkEvent::Fails | LinkEvent::Returns => {
                self.runs = event == LinkEvent::Returns;
                return self.restart(now, wants);
            }
        };
        self.reserve(now, input, wants);
        self.register(now, PropagationInput::Port(port, of_vlans), wants);
    }
}

impl Participant for Bridge {
    fn handle(&mut self, moment: &Moment, happened: Happened<'_>, wants: &mut Wants) {
        let now = moment.now;
        while let Some(event) = self.links.take(now) {
            self.happen(now, event, wants);
        }
        if !self.runs {
            return;
        }
        match happened {
            Happened::Timer => {
                if self.msrp.next() <= now {
                    self.reserve(now, BridgeInput::Timeout, wants);
                }
                if self.mvrp.next() <= now {
                    self.register(now, PropagationInput::Timeout, wants);
                }
            }
            Happened::Header { .. } | Happened::Sent { .. } | Happened::Written { .. } => {}
            Happened::Received { port, octets, .. } => {
                if let Some(octets) = mrp::pdu_of::<Msrp>(octets) {
                    self.reserve(now, BridgeInput::Received { port, octets }, wants);
                } else if let Some(pdu) = mrp::pdu_of::<Mvrp>(octets) {
                    let input = MrpInput::Received(pdu);
                    self.register(now, PropagationInput::Port(port, input), wants);
                }
            }
        }
    }

    fn next(&self) -> NetTime {
        let own = if self.runs { self.msrp.next().min(self.mvrp.next()) } else { NetTime::MAX };
        own.min(self.links.next())
    }
}
