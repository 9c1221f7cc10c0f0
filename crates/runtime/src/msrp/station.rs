//! An end station's part: its talkers and listeners on one port (802.1Q-2018 35.1.2), with MVRP
//! beside, because a listener is in its stream's VLAN before it is ready.

use crate::mrp::{
    ApplicantState, Indication, MrpApplication, MrpInput, MrpParticipant, MrpSettings, MrpTimers,
};
use crate::msrp::admission::{self, CLASSES, Candidate, PortLimits};
use crate::msrp::attribute::{
    DomainDeclaration, ListenerDeclaration, Msrp, MsrpAttribute, MsrpKey, Rank, TSpec,
    TalkerDeclaration,
};
use crate::msrp::failure::{BridgeId, FailureInformation};
use crate::msrp::{SrClass, class_id, stream_rate};
use crate::mvrp::{Mvrp, Vid};
use onbeat_model::reservation;
use onbeat_model::system::Class;
use onbeat_model::time::{NetTime, Span};
use onbeat_model::units::{BitRate, MacAddress, StreamId};
use std::collections::{BTreeMap, BTreeSet};

/// The most talkers, and the most listeners, of a station.
pub const STATION_STREAMS_MAX: usize = reservation::STATION_STREAMS_MAX;

/// How a station works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StationSettings {
    /// Its classes. Priority and VLAN are those of its neighbour if that says others.
    pub classes: [SrClass; 2],
    /// How its participants work.
    pub mrp: MrpSettings,
}

impl Default for StationSettings {
    fn default() -> Self {
        Self { classes: SrClass::DEFAULT, mrp: MrpSettings::default() }
    }
}

/// A stream that a talker offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamRequest {
    /// Its identifier.
    pub stream: StreamId,
    /// Where its frames go.
    pub destination: MacAddress,
    /// Its class.
    pub class: Class,
    /// How much it sends.
    pub tspec: TSpec,
    /// Its rank.
    pub rank: Rank,
    /// From the instant at which the talker presents a frame to its receipt by the neighbour, at
    /// most: the talker's own portTcMaxLatency.
    pub latency: Span,
}

/// How a talker's stream stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TalkerStatus {
    /// Declared; no listener is known.
    Advertised,
    /// All listeners can get it.
    Ready,
    /// Some listeners can get it, some cannot.
    ReadyFailed,
    /// There are listeners, and none can get it.
    AskingFailed,
}

impl TalkerStatus {
    /// Whether bandwidth is reserved: the talker may send.
    pub const fn may_send(self) -> bool {
        matches!(self, Self::Ready | Self::ReadyFailed)
    }
}

/// How a stream stands that a station listens to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListenerStatus {
    /// No talker is known.
    NoTalker,
    /// The talker is known, and the VLAN being joined.
    Advertised(TalkerDeclaration),
    /// Ready is declared: bandwidth is reserved from the talker to here.
    Ready(TalkerDeclaration),
    /// It cannot be had: why, and which bridge says so.
    Failed(FailureInformation),
}

/// How a class stands at the port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DomainStatus {
    /// The neighbour has said nothing of it.
    Unknown,
    /// Both use it as here: the neighbour's values, if they differed.
    Agreed(DomainDeclaration),
}

/// What a station is told.
#[derive(Debug)]
pub enum StationInput<'a> {
    /// It is [`MsrpStation::next`], or later.
    Timeout,
    /// A PDU of MSRP has come, without Ethernet header.
    Msrp(&'a [u8]),
    /// A PDU of MVRP has come.
    Mvrp(&'a [u8]),
    /// The link has failed.
    LinkDown,
    /// The link works again.
    LinkUp,
}

/// What a station does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StationAction {
    /// Sends a PDU of MSRP.
    SendMsrp(Vec<u8>),
    /// Sends a PDU of MVRP.
    SendMvrp(Vec<u8>),
    /// A talker's stream stands otherwise than before.
    Talker(StreamId, TalkerStatus),
    /// A stream listened to stands otherwise than before.
    Listener(StreamId, ListenerStatus),
    /// A class stands otherwise than before.
    Domain(Class, DomainStatus),
}

/// The station.
#[derive(Debug)]
pub struct MsrpStation {
    settings: StationSettings,
    msrp: MrpParticipant<Msrp>,
    mvrp: MrpParticipant<Mvrp>,
    offers: BTreeMap<StreamId, (StreamRequest, TalkerStatus)>,
    wanted: BTreeMap<StreamId, ListenerStatus>,
    domains: BTreeMap<Class, DomainStatus>,
    /// By stream: the VLAN that it needs, until its last declaration has left.
    vlans: BTreeMap<StreamId, Vid>,
    /// Talkers are withdrawn until then, because their priority or VLAN changed.
    pauses: Option<NetTime>,
    /// A request has not been looked at.
    is_stale: bool,
    /// Its own port, if it admits there what it offers.
    egress: Option<Egress>,
}

/// A station's port, as it admits streams there.
#[derive(Debug)]
struct Egress {
    station: BridgeId,
    rate: BitRate,
    /// By stream with a reservation: since when, in the order of all.
    reserved: BTreeMap<StreamId, u64>,
    order: u64,
    refused: BTreeMap<StreamId, FailureInformation>,
    slopes: [BitRate; CLASSES],
}

impl MsrpStation {
    /// A station that begins now. The seed is for its timers.
    pub fn new(settings: StationSettings, seed: u64, now: NetTime) -> Self {
        let mut msrp = MrpParticipant::new(settings.mrp, seed, now);
        for class in settings.classes {
            msrp.declare(now, MsrpAttribute::Domain(class.domain()), true);
        }
        let periodic = Some(Span::from_s(1));
        let timers = MrpTimers { periodic, ..settings.mrp.timers };
        let of_vlans = MrpSettings { timers, ..settings.mrp };
        Self {
            settings,
            msrp,
            mvrp: MrpParticipant::new(of_vlans, !seed, now),
            offers: BTreeMap::new(),
            wanted: BTreeMap::new(),
            domains: settings.classes.map(|own| (own.class, DomainStatus::Unknown)).into(),
            vlans: BTreeMap::new(),
            pauses: None,
            is_stale: false,
            egress: None,
        }
    }

    /// From now on the station admits its own streams at its port, whose rate this is, as a bridge
    /// does (35.2.4.2): what it cannot reserve it declares as failed, with its own identifier.
    pub fn admit(&mut self, station: BridgeId, rate: BitRate) {
        let (reserved, refused) = (BTreeMap::new(), BTreeMap::new());
        let slopes = [BitRate::default(); CLASSES];
        self.egress = Some(Egress { station, rate, reserved, order: 0, refused, slopes });
        self.is_stale = true;
    }

    /// What is reserved at its port for classes A and B; nothing without [`MsrpStation::admit`].
    pub fn idle_slopes(&self) -> [BitRate; CLASSES] {
        self.egress.as_ref().map_or_else(Default::default, |egress| egress.slopes)
    }

    /// The streams with a reservation at its port: those that it may send.
    pub fn reserved(&self) -> impl Iterator<Item = StreamId> {
        self.egress.iter().flat_map(|egress| egress.reserved.keys().copied())
    }

    /// Offers a stream. False if there are [`STATION_STREAMS_MAX`] already, or one with this
    /// identifier: what a stream is may not change before it is withdrawn (35.2.2.8.1).
    pub fn advertise(&mut self, now: NetTime, request: StreamRequest) -> bool {
        if self.offers.len() >= STATION_STREAMS_MAX || self.offers.contains_key(&request.stream) {
            return false;
        }
        self.offers.insert(request.stream, (request, TalkerStatus::Advertised));
        self.is_stale = true;
        if self.pauses.is_none() {
            self.declare_offer(now, &request, true);
        }
        true
    }

    /// Withdraws a stream.
    pub fn withdraw(&mut self, now: NetTime, stream: StreamId) {
        if self.offers.remove(&stream).is_some() {
            self.withdraw_talker(now, stream);
            self.is_stale = true;
        }
    }

    fn withdraw_talker(&mut self, now: NetTime, stream: StreamId) {
        for key in [MsrpKey::Advertise(stream), MsrpKey::Failed(stream)] {
            self.msrp.withdraw(now, key);
        }
    }

    /// Asks for a stream, now or when its talker comes. False if there are
    /// [`STATION_STREAMS_MAX`] already.
    pub fn listen(&mut self, stream: StreamId) -> bool {
        let has_room = self.wanted.len() < STATION_STREAMS_MAX;
        if has_room {
            self.is_stale = true;
            self.wanted.entry(stream).or_insert(ListenerStatus::NoTalker);
        }
        has_room
    }

    /// Asks for it no longer.
    pub fn leave(&mut self, now: NetTime, stream: StreamId) {
        if self.wanted.remove(&stream).is_some() {
            self.msrp.withdraw(now, MsrpKey::Listener(stream));
            self.is_stale = true;
        }
    }

    /// Does what an input asks for. Call it with [`StationInput::Timeout`] after other calls, as
    /// soon as [`MsrpStation::next`] says.
    pub fn handle(&mut self, now: NetTime, input: StationInput<'_>) -> Vec<StationAction> {
        let mut actions = Vec::new();
        let (msrp, mvrp) = match input {
            StationInput::Timeout => (Some(MrpInput::Timeout), Some(MrpInput::Timeout)),
            StationInput::Msrp(octets) => (Some(MrpInput::Received(octets)), None),
            StationInput::Mvrp(octets) => (None, Some(MrpInput::Received(octets))),
            StationInput::LinkDown => (Some(MrpInput::LinkDown), Some(MrpInput::LinkDown)),
            StationInput::LinkUp => (Some(MrpInput::LinkUp), Some(MrpInput::LinkUp)),
        };
        if let Some(input) = mvrp {
            let out = self.mvrp.handle(now, input);
            actions.extend(out.pdus.into_iter().map(StationAction::SendMvrp));
        }
        let mut has_domains = false;
        if let Some(input) = msrp {
            let out = self.msrp.handle(now, input);
            actions.extend(out.pdus.into_iter().map(StationAction::SendMsrp));
            let is_domain = |indication: &Indication<_>| {
                let (Indication::Registered { attribute, .. } | Indication::Left(attribute)) =
                    indication;
                matches!(attribute, MsrpAttribute::Domain(_))
            };
            has_domains = out.indications.iter().any(is_domain);
        }
        if has_domains {
            self.settle_domains(now, &mut actions);
        }
        if self.pauses.is_some_and(|until| until <= now) {
            self.pauses = None;
            let offers: Vec<_> = self.offers.values().map(|(request, _)| *request).collect();
            for request in offers {
                self.declare_offer(now, &request, true);
            }
        }
        self.is_stale = false;
        self.settle(now, &mut actions);
        self.admit_offers(now);
        actions
    }

    /// Decides which offers have a reservation at the own port, and declares those that cannot.
    fn admit_offers(&mut self, now: NetTime) {
        let Some(egress) = &mut self.egress else { return };
        let candidate = |(request, status): &(StreamRequest, TalkerStatus)| Candidate {
            stream: request.stream,
            rank: request.rank,
            since: egress.reserved.get(&request.stream).copied(),
            class: usize::from(request.class != Class::A),
            rate: stream_rate(request.class, request.tspec),
            ingress: 0,
            is_wanted: status.may_send(),
        };
        let mut candidates: Vec<_> = self.offers.values().map(candidate).collect();
        let limits = PortLimits { rate: egress.rate, fan_in_max: 0 };
        let admitted = admission::admit(&mut candidates, &limits);
        let before = std::mem::take(&mut egress.refused);
        let since = std::mem::take(&mut egress.reserved);
        let mut slopes = [0_u64; CLASSES];
        for (candidate, admission) in candidates.iter().zip(admitted) {
            match admission {
                Ok(false) => {}
                Ok(true) => {
                    egress.order += 1;
                    let order = since.get(&candidate.stream).copied().unwrap_or(egress.order);
                    egress.reserved.insert(candidate.stream, order);
                    let slope = &mut slopes[candidate.class];
                    *slope = slope.saturating_add(candidate.rate.as_bps());
                }
                Err(code) => {
                    let failure = FailureInformation { bridge: egress.station, code };
                    egress.refused.insert(candidate.stream, failure);
                }
            }
        }
        egress.slopes = slopes.map(BitRate::from_bps);
        let is_changed = |stream| before.get(stream) != egress.refused.get(stream);
        let changed = self.offers.values().filter(|(request, _)| is_changed(&request.stream));
        let changed: Vec<_> = changed.map(|(request, _)| *request).collect();
        // When the pause is over all are declared.
        if self.pauses.is_none() {
            for request in changed {
                self.declare_offer(now, &request, false);
            }
        }
    }

    /// When it wants [`StationInput::Timeout`] at the latest. What is past is as good as now.
    pub fn next(&self) -> NetTime {
        if self.is_stale {
            return NetTime::ZERO;
        }
        let pause = self.pauses.unwrap_or(NetTime::MAX);
        self.msrp.next().min(self.mvrp.next()).min(pause)
    }

    /// How a stream stands that this station offers.
    pub fn talker(&self, stream: StreamId) -> Option<TalkerStatus> {
        self.offers.get(&stream).map(|(_, status)| *status)
    }

    /// How a stream stands that this station listens to.
    pub fn listener(&self, stream: StreamId) -> Option<ListenerStatus> {
        self.wanted.get(&stream).copied()
    }

    /// How a class stands.
    pub fn domain(&self, class: Class) -> Option<DomainStatus> {
        self.domains.get(&class).copied()
    }

    /// Its participant of MSRP.
    pub fn msrp(&self) -> &MrpParticipant<Msrp> {
        &self.msrp
    }

    /// Its participant of MVRP.
    pub fn mvrp(&self) -> &MrpParticipant<Mvrp> {
        &self.mvrp
    }

    /// What is declared of a class now.
    fn domain_of(&self, class: Class) -> DomainDeclaration {
        let own = self.settings.classes.iter().find(|own| own.class == class);
        match self.domains.get(&class) {
            Some(DomainStatus::Agreed(domain)) => *domain,
            _ => own.unwrap_or(&self.settings.classes[1]).domain(),
        }
    }

    fn declare_offer(&mut self, now: NetTime, request: &StreamRequest, is_new: bool) {
        let domain = self.domain_of(request.class);
        let talker = TalkerDeclaration {
            stream: request.stream,
            destination: request.destination,
            vid: domain.vid,
            tspec: request.tspec,
            priority: domain.priority,
            rank: request.rank,
            accumulated_latency_ns: 0,
            failure: self.egress.as_ref().and_then(|e| e.refused.get(&request.stream)).copied(),
        };
        let attribute = MsrpAttribute::Talker(talker.later_by(request.latency));
        self.msrp.declare(now, attribute, is_new);
    }

    /// Adopts the neighbour's priority and VLAN of each class. Streams with other ones are
    /// withdrawn first, for long enough that the withdrawal has reached the neighbour.
    fn settle_domains(&mut self, now: NetTime, actions: &mut Vec<StationAction>) {
        for own in self.settings.classes {
            let there = self.msrp.registered().find_map(|attribute| match attribute {
                MsrpAttribute::Domain(domain) if domain.class == class_id(own.class) => {
                    Some(*domain)
                }
                _ => None,
            });
            let before = self.domain_of(own.class);
            let status = there.map_or(DomainStatus::Unknown, DomainStatus::Agreed);
            if self.domains.insert(own.class, status) == Some(status) {
                continue;
            }
            actions.push(StationAction::Domain(own.class, status));
            let after = self.domain_of(own.class);
            if after == before {
                continue;
            }
            self.msrp.declare(now, MsrpAttribute::Domain(after), false);
            let moved = |(request, _): &&(StreamRequest, _)| request.class == own.class;
            if self.offers.values().any(|offer| moved(&offer)) {
                for stream in self.offers.keys().copied().collect::<Vec<_>>() {
                    self.withdraw_talker(now, stream);
                }
                let timers = self.settings.mrp.timers;
                self.pauses = Some(now + timers.join * 2 + timers.leave);
            }
        }
    }

    /// Declares what follows from what is registered.
    fn settle(&mut self, now: NetTime, actions: &mut Vec<StationAction>) {
        let mut talkers = BTreeMap::new();
        let mut listeners = BTreeMap::new();
        for attribute in self.msrp.registered() {
            match attribute {
                MsrpAttribute::Talker(talker) => {
                    talkers.insert(talker.stream, *talker);
                }
                MsrpAttribute::Listener(stream, declaration) => {
                    listeners.insert(*stream, *declaration);
                }
                MsrpAttribute::Domain(_) => {}
            }
        }
        self.settle_vlans(now, &talkers);
        for (stream, (_, status)) in &mut self.offers {
            let now = match listeners.get(stream) {
                None => TalkerStatus::Advertised,
                Some(ListenerDeclaration::Ready) => TalkerStatus::Ready,
                Some(ListenerDeclaration::ReadyFailed) => TalkerStatus::ReadyFailed,
                Some(ListenerDeclaration::AskingFailed) => TalkerStatus::AskingFailed,
            };
            if *status != now {
                *status = now;
                actions.push(StationAction::Talker(*stream, now));
            }
        }
        for (stream, status) in &mut self.wanted {
            let key = MsrpKey::Listener(*stream);
            let ready = MsrpAttribute::Listener(*stream, ListenerDeclaration::Ready);
            // Once ready, it stays so while the VLAN is declared again.
            let has_vlan = |talker: &TalkerDeclaration| {
                self.msrp.declaration(key) == Some(&ready)
                    || Vid::new(talker.vid).is_some_and(|vid| self.mvrp.has_sent(vid))
            };
            let (is, declaration) = match talkers.get(stream) {
                None => (ListenerStatus::NoTalker, None),
                Some(talker) => match talker.failure {
                    Some(failure) => {
                        (ListenerStatus::Failed(failure), Some(ListenerDeclaration::AskingFailed))
                    }
                    None if has_vlan(talker) => {
                        (ListenerStatus::Ready(*talker), Some(ListenerDeclaration::Ready))
                    }
                    None => (ListenerStatus::Advertised(*talker), None),
                },
            };
            let wanted = declaration.map(|d| MsrpAttribute::Listener(*stream, d));
            match (wanted, self.msrp.declaration(key)) {
                (Some(wanted), known) if known != Some(&wanted) => {
                    self.msrp.declare(now, wanted, known.is_none());
                }
                (None, Some(_)) => self.msrp.withdraw(now, key),
                _ => {}
            }
            if *status != is {
                *status = is;
                actions.push(StationAction::Listener(*stream, is));
            }
        }
    }

    /// Joins the VLANs of talkers and of listeners whose talker is there, before these declare
    /// anything, and leaves them after their last word.
    fn settle_vlans(&mut self, now: NetTime, talkers: &BTreeMap<StreamId, TalkerDeclaration>) {
        let says_nothing_more = |key: MsrpKey| {
            self.msrp.declaration(key).is_none()
                && self.msrp.states(key).0 != ApplicantState::LeavingActive
        };
        let mut vlans = std::mem::take(&mut self.vlans);
        let before: BTreeSet<_> = vlans.values().copied().collect();
        vlans.retain(|stream, _| {
            let talks = [MsrpKey::Advertise(*stream), MsrpKey::Failed(*stream)];
            let keys = [talks[0], talks[1], MsrpKey::Listener(*stream)];
            !keys.into_iter().all(says_nothing_more)
        });
        for (stream, (request, _)) in &self.offers {
            vlans.extend(Vid::new(self.domain_of(request.class).vid).map(|vid| (*stream, vid)));
        }
        for stream in self.wanted.keys() {
            let talker = talkers.get(stream).filter(|talker| talker.failure.is_none());
            let vid = talker.and_then(|talker| Vid::new(talker.vid));
            vlans.extend(vid.map(|vid| (*stream, vid)));
        }
        let after: BTreeSet<_> = vlans.values().copied().collect();
        for vid in before.difference(&after) {
            self.mvrp.withdraw(now, Mvrp::key(vid));
        }
        for vid in after.difference(&before) {
            self.mvrp.declare(now, *vid, true);
        }
        self.vlans = vlans;
    }
}
