//! An end station.

use super::{Change, Network, outgoing, queue};
use crate::links::{LinkEvent, Links};
use crate::participant::{Happened, Moment, Participant, Wants};
use onbeat_model::reservation::{ListenerReservation, ReservationStatus};
use onbeat_model::system::{ChannelId, NodeId, PortId};
use onbeat_model::time::NetTime;
use onbeat_model::units::{BitRate, MacAddress, StreamId};
use onbeat_runtime::mrp;
use onbeat_runtime::msrp::{
    BridgeId, ListenerStatus, Msrp, MsrpPort, MsrpStation, Rank, StationAction, StationInput,
    StationSettings, StreamRequest, TalkerStatus,
};
use onbeat_runtime::mvrp::Mvrp;
use std::collections::{BTreeMap, BTreeSet};

/// The protocol on a host.
#[derive(Debug)]
pub(super) struct Host {
    station: MsrpStation,
    start: StationStart,
    links: Links,
    runs: bool,
    /// What the engine knows.
    reserved: BTreeSet<StreamId>,
    slopes: [BitRate; 2],
}

/// What a station begins with, each time.
#[derive(Debug)]
struct StationStart {
    settings: StationSettings,
    seed: u64,
    address: MacAddress,
    identifier: BridgeId,
    port: PortId,
    rate: BitRate,
    offers: Vec<(ChannelId, StreamRequest)>,
    /// With the place among the channel's listeners.
    wanted: Vec<(ChannelId, usize, StreamId)>,
    identifiers: BTreeMap<BridgeId, NodeId>,
}

impl StationStart {
    fn new(network: &Network<'_>, node: NodeId, seed: u64) -> Self {
        let system = network.system;
        let port = system.node(node).ports[0];
        let rate = system.link_of(port).rate;
        let (mut offers, mut wanted) = (Vec::new(), Vec::new());
        for id in network.channels_at(node) {
            let channel = system.channel(*id);
            if channel.talker == node {
                let class = usize::from(channel.class != onbeat_model::system::Class::A);
                let latency = MsrpPort::new(rate, super::through(system, port)).latency[class];
                let request = StreamRequest {
                    stream: channel.stream_id,
                    destination: channel.destination,
                    class: channel.class,
                    tspec: network.tspec(*id),
                    rank: Rank::Normal,
                    latency,
                };
                offers.push((*id, request));
            }
            if channel.talker == node {
                continue;
            }
            if let Some(place) = channel.listeners.iter().position(|listener| *listener == node) {
                wanted.push((*id, place, channel.stream_id));
            }
        }
        Self {
            settings: StationSettings { classes: network.classes, ..StationSettings::default() },
            seed,
            address: super::address(system, node),
            identifier: super::identifier(system, node),
            port,
            rate,
            offers,
            wanted,
            identifiers: network.identifiers.clone(),
        }
    }

    fn station(&self, now: NetTime) -> MsrpStation {
        let seed = self.seed.wrapping_add(now.as_ns().unsigned_abs());
        let mut station = MsrpStation::new(self.settings, seed, now);
        station.admit(self.identifier, self.rate);
        for (_, request) in &self.offers {
            assert!(station.advertise(now, *request), "what the plan has checked");
        }
        for (.., stream) in &self.wanted {
            assert!(station.listen(*stream), "what the plan has checked");
        }
        station
    }

    fn offer(&self, stream: StreamId) -> Option<ChannelId> {
        let mut offers = self.offers.iter();
        offers.find(|(_, request)| request.stream == stream).map(|(channel, _)| *channel)
    }
}

impl Host {
    pub(super) fn new(network: &Network<'_>, node: NodeId, links: Links, seed: u64) -> Self {
        let start = StationStart::new(network, node, seed);
        let station = start.station(NetTime::ZERO);
        let (reserved, slopes) = (BTreeSet::new(), [BitRate::default(); 2]);
        Self { station, start, links, runs: true, reserved, slopes }
    }

    fn tell(&mut self, now: NetTime, input: StationInput<'_>, wants: &mut Wants) {
        for action in self.station.handle(now, input) {
            self.act(action, wants);
        }
        self.pass_on(wants);
    }

    fn act(&self, action: StationAction, wants: &mut Wants) {
        let start = &self.start;
        match action {
            StationAction::SendMsrp(pdu) => wants.send(outgoing::<Msrp>(start.address, 0, &pdu)),
            StationAction::SendMvrp(pdu) => wants.send(outgoing::<Mvrp>(start.address, 0, &pdu)),
            StationAction::Talker(stream, status) => {
                let status = match status {
                    TalkerStatus::Advertised => ReservationStatus::Advertised,
                    TalkerStatus::Ready => ReservationStatus::Ready,
                    TalkerStatus::ReadyFailed => ReservationStatus::ReadyFailed,
                    TalkerStatus::AskingFailed => ReservationStatus::AskingFailed,
                };
                if let Some(channel) = start.offer(stream) {
                    wants.reservations.push(Change::Talker { channel, status });
                }
            }
            StationAction::Listener(stream, status) => {
                let status = self.listener(&status);
                let own = start.wanted.iter().filter(|(.., wanted)| *wanted == stream);
                wants.reservations.extend(own.map(|(channel, listener, _)| Change::Listener {
                    channel: *channel,
                    listener: *listener,
                    status,
                }));
            }
            StationAction::Domain(..) => {}
        }
    }

    fn listener(&self, status: &ListenerStatus) -> ListenerReservation {
        match status {
            ListenerStatus::NoTalker => ListenerReservation::NoTalker,
            ListenerStatus::Advertised(_) => ListenerReservation::Advertised,
            ListenerStatus::Ready(_) => ListenerReservation::Ready,
            ListenerStatus::Failed(failure) => {
                let node = self.start.identifiers.get(&failure.bridge);
                ListenerReservation::Failed(failure.code, node.copied())
            }
        }
    }

    /// Lets the engine know what is reserved at the port, where it is not what it was.
    fn pass_on(&mut self, wants: &mut Wants) {
        let port = self.start.port;
        let slopes = self.station.idle_slopes();
        for (class, rate) in slopes.into_iter().enumerate() {
            if self.slopes[class] != rate {
                wants.reservations.push(Change::IdleSlope { port, queue: queue(class), rate });
            }
        }
        self.slopes = slopes;
        let reserved: BTreeSet<_> = self.station.reserved().collect();
        for stream in self.reserved.symmetric_difference(&reserved) {
            let ports = if reserved.contains(stream) { vec![port] } else { Vec::new() };
            if let Some(channel) = self.start.offer(*stream) {
                wants.reservations.push(Change::Ports { channel, ports });
            }
        }
        self.reserved = reserved;
    }

    /// Begins again, with nothing.
    fn restart(&mut self, now: NetTime, wants: &mut Wants) {
        self.station = self.start.station(now);
        for (channel, _) in &self.start.offers {
            let (channel, status) = (*channel, ReservationStatus::Advertised);
            wants.reservations.push(Change::Talker { channel, status });
        }
        for (channel, listener, _) in &self.start.wanted {
            let (channel, listener, status) = (*channel, *listener, ListenerReservation::NoTalker);
            wants.reservations.push(Change::Listener { channel, listener, status });
        }
        self.pass_on(wants);
    }

    fn happen(&mut self, now: NetTime, event: LinkEvent, wants: &mut Wants) {
        match event {
            LinkEvent::Link(_, true) => self.tell(now, StationInput::LinkUp, wants),
            LinkEvent::Link(_, false) => self.tell(now, StationInput::LinkDown, wants),
            LinkEvent::Fails | LinkEvent::Returns => {
                self.runs = event == LinkEvent::Returns;
                self.restart(now, wants);
            }
        }
    }
}

impl Participant for Host {
    fn handle(&mut self, moment: &Moment, happened: Happened<'_>, wants: &mut Wants) {
        let now = moment.now;
        while let Some(event) = self.links.take(now) {
            self.happen(now, event, wants);
        }
        if !self.runs {
            return;
        }
        match happened {
            Happened::Timer if self.station.next() <= now => {
                self.tell(now, StationInput::Timeout, wants);
            }
            Happened::Timer
            | Happened::Header { .. }
            | Happened::Sent { .. }
            | Happened::Written { .. } => {}
            Happened::Received { octets, .. } => {
                if let Some(pdu) = mrp::pdu_of::<Msrp>(octets) {
                    self.tell(now, StationInput::Msrp(pdu), wants);
                } else if let Some(pdu) = mrp::pdu_of::<Mvrp>(octets) {
                    self.tell(now, StationInput::Mvrp(pdu), wants);
                }
            }
        }
    }

    fn next(&self) -> NetTime {
        let station = if self.runs { self.station.next() } else { NetTime::MAX };
        station.min(self.links.next())
    }
}
