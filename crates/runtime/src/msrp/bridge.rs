//! A bridge's part: what each port registers decides what the others declare and reserve (MSRP
//! attribute propagation, 802.1Q-2018 35.2.4).
//!
//! Declarations are a function of what is registered, of the ports' states, and of how long each
//! reservation has existed. They are computed again after each change, and only differences are
//! passed to the participants. So no order of events can leave a reservation behind.

use crate::mrp::{Indication, MrpApplication, MrpInput, MrpParticipant, MrpSettings};
use crate::msrp::admission::{self, Admission, CLASSES, Candidate, PortLimits};
use crate::msrp::attribute::{
    DomainDeclaration, ListenerDeclaration, Msrp, MsrpAttribute, MsrpKey, TalkerDeclaration,
};
use crate::msrp::failure::{BridgeId, FailureCode, FailureInformation};
use crate::msrp::{SrClass, stream_rate};
use onbeat_model::reservation;
use onbeat_model::system::Class;
use onbeat_model::time::{NetTime, Span};
use onbeat_model::units::{BitRate, MacAddress, Octets, StreamId, frame};
use std::collections::{BTreeMap, BTreeSet};

/// The most streams that a bridge looks at. More are refused, and counted, until others leave.
pub const STREAMS_MAX: usize = reservation::BRIDGE_STREAMS_MAX;
/// The most ports of a bridge.
pub const PORTS_MAX: usize = reservation::BRIDGE_PORTS_MAX;
/// The longest frame of another class that a stream may have to wait for (35.2.1.4).
const LATENCY_FRAME: Octets = Octets::new(2_000);

/// How a bridge works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MsrpBridgeSettings {
    /// Its identifier, in what it refuses.
    pub bridge: BridgeId,
    /// Its classes: A, then B.
    pub classes: [SrClass; CLASSES],
    /// How its participants work.
    pub mrp: MrpSettings,
    /// The most streams with a reservation.
    pub streams_max: usize,
    /// msrpMaxFanInPorts (35.2.1.4); 0: no limit.
    pub fan_in_max: usize,
    /// talkerPruning (35.2.1.4): talkers are declared only on ports by which their destination
    /// address is registered.
    pub prunes_talkers: bool,
}

impl MsrpBridgeSettings {
    /// The defaults of the standard, for a bridge with this identifier.
    pub fn new(bridge: BridgeId) -> Self {
        Self {
            bridge,
            classes: SrClass::DEFAULT,
            mrp: MrpSettings::default(),
            streams_max: 1_024,
            fan_in_max: 0,
            prunes_talkers: false,
        }
    }
}

/// What a port of a bridge is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MsrpPort {
    /// The rate of its link.
    pub rate: BitRate,
    /// portTcMaxLatency of classes A and B: from receipt in the bridge to receipt at the other end
    /// of the port's link, at most (35.2.1.4).
    pub latency: [Span; CLASSES],
    /// The largest MaxFrameSize that it carries.
    pub max_frame_size: u16,
}

impl MsrpPort {
    /// A port whose streams wait for one frame of another class at most, and pass through a bridge
    /// and a link that take so long.
    pub fn new(rate: BitRate, through: Span) -> Self {
        let latency = rate.time_for(frame::on_wire(LATENCY_FRAME)) + through;
        Self { rate, latency: [latency; CLASSES], max_frame_size: 1_500 }
    }
}

/// What a bridge is told.
#[derive(Debug)]
pub enum BridgeInput<'a> {
    /// It is [`MsrpBridge::next`], or later.
    Timeout,
    /// A PDU has come by a port, without Ethernet header.
    Received {
        /// The port.
        port: usize,
        /// The octets.
        octets: &'a [u8],
    },
    /// A port begins or ceases to forward: the spanning tree says so. A port that does not forward
    /// registers, and passes nothing on.
    Forwards(usize, bool),
    /// A port changed from Root or Alternate to Designated.
    Flush(usize),
    /// A port changed from Designated to Root or Alternate.
    Redeclare(usize),
    /// A port's link has failed.
    LinkDown(usize),
    /// A port's link works again.
    LinkUp(usize),
    /// Whether a port can measure its link delay (802.1AS, 802.1BA 6.4); true until said otherwise.
    AsCapable(usize, bool),
    /// Whether an address is registered by a port, for talker pruning.
    Address {
        /// The port.
        port: usize,
        /// The address.
        address: MacAddress,
        /// Whether it is registered.
        is_registered: bool,
    },
}

/// What a bridge does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BridgeAction {
    /// Sends a PDU.
    Send {
        /// By which port.
        port: usize,
        /// The PDU, without Ethernet header.
        octets: Vec<u8>,
    },
    /// Reserves so much for a class at a port: its idleSlope.
    SetIdleSlope {
        /// The port.
        port: usize,
        /// The class.
        class: Class,
        /// The rate.
        rate: BitRate,
    },
    /// Sends the stream out of these ports, and of no others.
    SetPorts {
        /// The stream.
        stream: StreamId,
        /// Its destination address.
        destination: MacAddress,
        /// Its VLAN.
        vid: u16,
        /// The ports, ascending; none: the stream has no reservation.
        ports: Vec<usize>,
    },
}

/// A talker, as one port registers it.
#[derive(Clone, Copy, Debug)]
struct TalkerEntry {
    talker: TalkerDeclaration,
    /// What was registered first.
    first: TalkerDeclaration,
    /// The order of first registrations.
    order: u64,
    /// What may not change has changed since: that holds until it is withdrawn.
    is_changed: bool,
}

/// What is registered of a stream, by port.
#[derive(Clone, Debug, Default)]
struct StreamEntry {
    talkers: BTreeMap<usize, TalkerEntry>,
    listeners: BTreeMap<usize, ListenerDeclaration>,
    /// By port with a reservation: since when, in the order of all.
    reserved: BTreeMap<usize, u64>,
    is_new: bool,
}

/// A port, and what there is behind it.
#[derive(Debug)]
struct PortEntry {
    port: MsrpPort,
    participant: MrpParticipant<Msrp>,
    forwards: bool,
    is_as_capable: bool,
    domains: BTreeMap<u8, DomainDeclaration>,
    addresses: BTreeSet<MacAddress>,
    slopes: [BitRate; CLASSES],
}

/// The bridge.
#[derive(Debug)]
pub struct MsrpBridge {
    settings: MsrpBridgeSettings,
    ports: Vec<PortEntry>,
    streams: BTreeMap<StreamId, StreamEntry>,
    /// The ports of streams that not all forwarding ports are for.
    contexts: BTreeMap<StreamId, BTreeSet<usize>>,
    /// By stream with a reservation: its destination, VLAN and ports.
    sent: BTreeMap<StreamId, (MacAddress, u16, Vec<usize>)>,
    order: u64,
    /// Something changed that declarations depend on.
    is_stale: bool,
    /// Streams were refused: when others leave, there is room for them.
    has_refused: bool,
    refused: u64,
}

/// A stream's way in, as the other ports see it.
#[derive(Clone, Copy, Debug)]
struct Source {
    port: usize,
    talker: TalkerDeclaration,
    class: usize,
    rate: BitRate,
    failure: Option<FailureInformation>,
}

impl MsrpBridge {
    /// A bridge that begins now; its ports forward. The seed is for its timers.
    ///
    /// # Panics
    /// When there are no ports or more than [`PORTS_MAX`], or more streams may be reserved than are
    /// looked at.
    pub fn new(settings: MsrpBridgeSettings, ports: &[MsrpPort], seed: u64, now: NetTime) -> Self {
        assert!((1..=PORTS_MAX).contains(&ports.len()), "{} ports", ports.len());
        assert!(settings.streams_max <= STREAMS_MAX, "{settings:?}");
        let port = |(number, port): (u64, &MsrpPort)| {
            let seed = seed.wrapping_add(number << 32);
            let mut participant = MrpParticipant::new(settings.mrp, seed, now);
            for class in settings.classes {
                participant.declare(now, MsrpAttribute::Domain(class.domain()), true);
            }
            PortEntry {
                port: *port,
                participant,
                forwards: true,
                is_as_capable: true,
                domains: BTreeMap::new(),
                addresses: BTreeSet::new(),
                slopes: [BitRate::default(); CLASSES],
            }
        };
        Self {
            settings,
            ports: (0..).zip(ports).map(port).collect(),
            streams: BTreeMap::new(),
            contexts: BTreeMap::new(),
            sent: BTreeMap::new(),
            order: 0,
            is_stale: false,
            has_refused: false,
            refused: 0,
        }
    }

    /// A stream's talker is accepted from these ports only, and declared on these only: they are
    /// what its VLAN, or the tree of its talker (802.1Q clause 27), has of this bridge. Without
    /// this, all forwarding ports are.
    pub fn set_context(&mut self, stream: StreamId, ports: impl IntoIterator<Item = usize>) {
        self.contexts.insert(stream, ports.into_iter().collect());
        self.is_stale = true;
    }

    fn is_in_context(&self, stream: StreamId, port: usize) -> bool {
        self.contexts.get(&stream).is_none_or(|ports| ports.contains(&port))
    }

    /// Does what an input asks for. Allocates; takes time linear in streams and ports.
    ///
    /// # Panics
    /// When the input names a port that there is not.
    pub fn handle(&mut self, now: NetTime, input: BridgeInput<'_>) -> Vec<BridgeAction> {
        let mut actions = Vec::new();
        match input {
            BridgeInput::Timeout => {
                for port in 0..self.ports.len() {
                    if self.ports[port].participant.next() <= now {
                        self.pass(now, port, MrpInput::Timeout, &mut actions);
                    }
                }
            }
            BridgeInput::Received { port, octets } => {
                self.pass(now, port, MrpInput::Received(octets), &mut actions);
            }
            BridgeInput::Flush(port) => self.pass(now, port, MrpInput::Flush, &mut actions),
            BridgeInput::Redeclare(port) => {
                self.pass(now, port, MrpInput::Redeclare, &mut actions);
            }
            BridgeInput::LinkDown(port) => {
                self.pass(now, port, MrpInput::LinkDown, &mut actions);
                self.is_stale = true;
            }
            BridgeInput::LinkUp(port) => {
                self.pass(now, port, MrpInput::LinkUp, &mut actions);
                self.is_stale = true;
            }
            BridgeInput::Forwards(port, forwards) => {
                self.is_stale |= self.ports[port].forwards != forwards;
                self.ports[port].forwards = forwards;
            }
            BridgeInput::AsCapable(port, is_capable) => {
                self.is_stale |= self.ports[port].is_as_capable != is_capable;
                self.ports[port].is_as_capable = is_capable;
            }
            BridgeInput::Address { port, address, is_registered } => {
                let addresses = &mut self.ports[port].addresses;
                self.is_stale |= match is_registered {
                    true => addresses.len() < STREAMS_MAX && addresses.insert(address),
                    false => addresses.remove(&address),
                };
            }
        }
        if self.is_stale {
            self.is_stale = false;
            self.update(now, &mut actions);
        }
        actions
    }

    /// When it wants [`BridgeInput::Timeout`] at the latest.
    pub fn next(&self) -> NetTime {
        let due = self.ports.iter().map(|port| port.participant.next());
        due.min().unwrap_or(NetTime::MAX)
    }

    /// The participant of a port.
    ///
    /// # Panics
    /// When there is no such port; so the next ones.
    pub fn port(&self, port: usize) -> &MrpParticipant<Msrp> {
        &self.ports[port].participant
    }

    /// What a port reserves for classes A and B.
    pub fn idle_slopes(&self, port: usize) -> [BitRate; CLASSES] {
        self.ports[port].slopes
    }

    /// The streams with a reservation at a port.
    pub fn reserved(&self, port: usize) -> impl Iterator<Item = StreamId> {
        let is_here = move |(_, entry): &(_, &StreamEntry)| entry.reserved.contains_key(&port);
        self.streams.iter().filter(is_here).map(|(stream, _)| *stream)
    }

    /// Whether a port is within the SRP domain of a class (35.1.4): the neighbour uses the same
    /// priority for it. Another VLAN does no harm.
    pub fn is_in_domain(&self, port: usize, class: Class) -> bool {
        let own = self.settings.classes.iter().find(|own| own.class == class);
        own.is_some_and(|own| self.ports[port].is_in_domain(own))
    }

    /// Streams of which a talker or a listener is registered.
    pub fn streams(&self) -> usize {
        self.streams.len()
    }

    /// Talkers and listeners that found the table of streams full.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    fn pass(
        &mut self,
        now: NetTime,
        port: usize,
        input: MrpInput<'_, Msrp>,
        actions: &mut Vec<BridgeAction>,
    ) {
        let out = self.ports[port].participant.handle(now, input);
        actions.extend(out.pdus.into_iter().map(|octets| BridgeAction::Send { port, octets }));
        for indication in out.indications {
            self.is_stale = true;
            match indication {
                Indication::Registered { attribute, is_new } => {
                    self.register(port, attribute, is_new);
                }
                Indication::Left(attribute) => self.unregister(port, &attribute),
            }
        }
    }

    /// The entry of a stream, if there is room.
    fn entry(&mut self, stream: StreamId) -> Option<&mut StreamEntry> {
        if !self.streams.contains_key(&stream) && self.streams.len() >= STREAMS_MAX {
            self.refused += 1;
            self.has_refused = true;
            return None;
        }
        Some(self.streams.entry(stream).or_default())
    }

    fn register(&mut self, port: usize, attribute: MsrpAttribute, is_new: bool) {
        self.order += 1;
        let order = self.order;
        match attribute {
            MsrpAttribute::Talker(talker) => {
                let Some(entry) = self.entry(talker.stream) else { return };
                entry.is_new |= is_new;
                let known = entry.talkers.entry(port).or_insert(TalkerEntry {
                    talker,
                    first: talker,
                    order,
                    is_changed: false,
                });
                known.talker = talker;
                known.is_changed |= !talker.is_same_stream(&known.first);
            }
            MsrpAttribute::Listener(stream, declaration) => {
                let Some(entry) = self.entry(stream) else { return };
                entry.is_new |= is_new;
                entry.listeners.insert(port, declaration);
            }
            MsrpAttribute::Domain(domain) => {
                self.ports[port].domains.insert(domain.class, domain);
            }
        }
    }

    fn unregister(&mut self, port: usize, attribute: &MsrpAttribute) {
        match attribute {
            MsrpAttribute::Talker(talker) => {
                if let Some(entry) = self.streams.get_mut(&talker.stream) {
                    entry.talkers.remove(&port);
                }
            }
            MsrpAttribute::Listener(stream, _) => {
                if let Some(entry) = self.streams.get_mut(stream) {
                    entry.listeners.remove(&port);
                }
            }
            MsrpAttribute::Domain(domain) => {
                self.ports[port].domains.remove(&domain.class);
            }
        }
    }

    /// Looks again at what found no room, once there is some.
    fn readmit(&mut self) {
        self.streams.retain(|_, entry| !entry.talkers.is_empty() || !entry.listeners.is_empty());
        if !self.has_refused || self.streams.len() >= STREAMS_MAX {
            return;
        }
        self.has_refused = false;
        for port in 0..self.ports.len() {
            let all: Vec<_> = self.ports[port].participant.registered().copied().collect();
            for attribute in all {
                let is_known = match attribute {
                    MsrpAttribute::Talker(talker) => {
                        let entry = self.streams.get(&talker.stream);
                        entry.is_some_and(|entry| entry.talkers.contains_key(&port))
                    }
                    MsrpAttribute::Listener(stream, _) => {
                        let entry = self.streams.get(&stream);
                        entry.is_some_and(|entry| entry.listeners.contains_key(&port))
                    }
                    MsrpAttribute::Domain(_) => true,
                };
                if !is_known {
                    self.register(port, attribute, false);
                }
            }
        }
    }

    /// Computes declarations and reservations again, and passes on what is different.
    fn update(&mut self, now: NetTime, actions: &mut Vec<BridgeAction>) {
        self.readmit();
        let sources = self.sources();
        let mut merged: BTreeMap<StreamId, ListenerDeclaration> = BTreeMap::new();
        for port in 0..self.ports.len() {
            let egress = self.egress(port, &sources);
            let mut talkers = BTreeMap::new();
            for (stream, talker, admission) in egress {
                let listener = self.streams[&stream].listeners.get(&port).copied();
                if let Some(declaration) = listener {
                    // Who is behind a port that cannot have the stream asks in vain.
                    let declaration = match admission {
                        Ok(_) => declaration,
                        Err(_) => ListenerDeclaration::AskingFailed,
                    };
                    let all = merged.entry(stream).or_insert(declaration);
                    *all = all.merge(declaration);
                }
                self.reserve(stream, port, admission == Ok(true));
                talkers.insert(stream, talker);
            }
            self.declare_talkers(now, port, &talkers);
        }
        self.declare_listeners(now, &sources, &merged);
        for entry in self.streams.values_mut() {
            entry.is_new = false;
        }
        self.apply(&sources, actions);
    }

    /// Each stream's talker: the first one that a forwarding port registered, with what is wrong
    /// with it whatever the egress.
    fn sources(&self) -> BTreeMap<StreamId, Source> {
        let mut first: Vec<(u64, usize, &TalkerEntry)> = Vec::new();
        for (stream, entry) in &self.streams {
            let passes =
                |port: usize| self.ports[port].passes() && self.is_in_context(*stream, port);
            let there = entry.talkers.iter().filter(|(port, _)| passes(**port));
            let least = there.min_by_key(|(_, talker)| talker.order);
            first.extend(least.map(|(port, talker)| (talker.order, *port, talker)));
        }
        first.sort_unstable_by_key(|(order, ..)| *order);
        let mut destinations = BTreeSet::new();
        let mut sources = BTreeMap::new();
        for (count, (_, port, entry)) in first.into_iter().enumerate() {
            let talker = entry.talker;
            let class =
                self.settings.classes.iter().position(|own| own.priority == talker.priority);
            let is_taken = !destinations.insert((talker.destination, talker.vid));
            let code = match () {
                () if entry.is_changed => Some(FailureCode::FIRST_VALUE_CHANGED),
                () if talker.accumulated_latency_ns > entry.first.accumulated_latency_ns => {
                    Some(FailureCode::LATENCY_CHANGED)
                }
                () if class.is_none() => Some(FailureCode::NOT_AN_SR_PRIORITY),
                () if is_taken => Some(FailureCode::DESTINATION_IN_USE),
                () if count >= self.settings.streams_max => Some(FailureCode::BRIDGE_RESOURCES),
                () => None,
            };
            // What a bridge before this one said remains (35.2.4.3).
            let failure = talker.failure.or(code.map(|code| self.failure(code)));
            let class = class.unwrap_or_default();
            let rate = stream_rate(self.settings.classes[class].class, talker.tspec);
            sources.insert(talker.stream, Source { port, talker, class, rate, failure });
        }
        sources
    }

    fn failure(&self, code: FailureCode) -> FailureInformation {
        FailureInformation { bridge: self.settings.bridge, code }
    }

    /// What a port declares of the talkers behind the others, and what it reserves for them.
    fn egress(
        &self,
        number: usize,
        sources: &BTreeMap<StreamId, Source>,
    ) -> Vec<(StreamId, TalkerDeclaration, Admission)> {
        let port = &self.ports[number];
        if !port.passes() {
            return Vec::new();
        }
        let mut refused = Vec::new();
        let mut candidates = Vec::new();
        for (stream, source) in sources.iter().filter(|(_, source)| source.port != number) {
            if !self.is_in_context(*stream, number) {
                continue;
            }
            if self.settings.prunes_talkers && !port.addresses.contains(&source.talker.destination)
            {
                continue;
            }
            let entry = &self.streams[stream];
            let own = &self.settings.classes[source.class];
            let code = match () {
                () if entry.talkers.contains_key(&number) => Some(FailureCode::STREAM_ID_IN_USE),
                () if !port.is_in_domain(own) => Some(FailureCode::EGRESS_NOT_CAPABLE),
                () if source.talker.tspec.max_frame_size > port.port.max_frame_size => {
                    Some(FailureCode::MAX_FRAME_SIZE)
                }
                () => None,
            };
            if let Some(failure) = source.failure.or(code.map(|code| self.failure(code))) {
                refused.push((*stream, source, failure));
                continue;
            }
            let listener = entry.listeners.get(&number);
            candidates.push(Candidate {
                stream: *stream,
                rank: source.talker.rank,
                since: entry.reserved.get(&number).copied(),
                class: source.class,
                rate: source.rate,
                ingress: source.port,
                is_wanted: listener.is_some_and(|listener| listener.is_ready()),
            });
        }
        let limits = PortLimits { rate: port.port.rate, fan_in_max: self.settings.fan_in_max };
        let admitted = admission::admit(&mut candidates, &limits);
        let declared = |source: &Source, failure| {
            let talker = source.talker.later_by(port.port.latency[source.class]);
            TalkerDeclaration { failure, ..talker }
        };
        let refused = refused.into_iter().map(|(stream, source, failure)| {
            (stream, declared(source, Some(failure)), Err(failure.code))
        });
        let admitted = candidates.iter().zip(admitted).map(|(candidate, admission)| {
            let failure = admission.err().map(|code| self.failure(code));
            (candidate.stream, declared(&sources[&candidate.stream], failure), admission)
        });
        refused.chain(admitted).collect()
    }

    /// Notes since when a stream has a reservation at a port, or that it has none.
    fn reserve(&mut self, stream: StreamId, port: usize, is_reserved: bool) {
        self.order += 1;
        let order = self.order;
        if let Some(entry) = self.streams.get_mut(&stream) {
            match is_reserved {
                true => {
                    entry.reserved.entry(port).or_insert(order);
                }
                false => {
                    entry.reserved.remove(&port);
                }
            }
        }
    }

    fn declare_talkers(
        &mut self,
        now: NetTime,
        port: usize,
        talkers: &BTreeMap<StreamId, TalkerDeclaration>,
    ) {
        for (stream, entry) in &mut self.streams {
            if !talkers.contains_key(stream) {
                entry.reserved.remove(&port);
            }
        }
        let participant = &mut self.ports[port].participant;
        for talker in talkers.values() {
            let attribute = MsrpAttribute::Talker(*talker);
            let known = participant.declaration(Msrp::key(&attribute));
            if known != Some(&attribute) {
                let is_new = self.streams[&talker.stream].is_new;
                participant.declare(now, attribute, is_new);
            }
        }
        let is_gone = |attribute: &&MsrpAttribute| match attribute {
            MsrpAttribute::Talker(talker) => !talkers.contains_key(&talker.stream),
            _ => false,
        };
        let gone: Vec<_> = participant.declared().filter(is_gone).copied().collect();
        for attribute in gone {
            participant.withdraw(now, Msrp::key(&attribute));
        }
    }

    /// Listeners are declared towards the talker only. Those of a stream without one are kept.
    fn declare_listeners(
        &mut self,
        now: NetTime,
        sources: &BTreeMap<StreamId, Source>,
        merged: &BTreeMap<StreamId, ListenerDeclaration>,
    ) {
        for (number, port) in self.ports.iter_mut().enumerate() {
            let wanted = |stream: &StreamId| {
                let is_here = sources.get(stream).is_some_and(|source| source.port == number);
                merged.get(stream).copied().filter(|_| is_here)
            };
            let is_gone = |attribute: &&MsrpAttribute| match attribute {
                MsrpAttribute::Listener(stream, _) => wanted(stream).is_none(),
                _ => false,
            };
            let gone: Vec<_> = port.participant.declared().filter(is_gone).copied().collect();
            for attribute in gone {
                let key = Msrp::key(&attribute);
                port.participant.withdraw(now, key);
            }
            for stream in merged.keys() {
                let Some(declaration) = wanted(stream) else { continue };
                let attribute = MsrpAttribute::Listener(*stream, declaration);
                let known = port.participant.declaration(MsrpKey::Listener(*stream));
                if known != Some(&attribute) {
                    let is_new = self.streams[stream].is_new;
                    port.participant.declare(now, attribute, is_new);
                }
            }
        }
    }

    /// Tells what is reserved now, where it is not what it was.
    fn apply(&mut self, sources: &BTreeMap<StreamId, Source>, actions: &mut Vec<BridgeAction>) {
        let mut slopes = vec![[0_u64; CLASSES]; self.ports.len()];
        let mut sent = BTreeMap::new();
        for (stream, source) in sources {
            let reserved = &self.streams[stream].reserved;
            for port in reserved.keys() {
                let slope = &mut slopes[*port][source.class];
                *slope = slope.saturating_add(source.rate.as_bps());
            }
            if !reserved.is_empty() {
                let ports: Vec<_> = reserved.keys().copied().collect();
                sent.insert(*stream, (source.talker.destination, source.talker.vid, ports));
            }
        }
        for (number, (port, slopes)) in self.ports.iter_mut().zip(slopes).enumerate() {
            for (at, bps) in slopes.into_iter().enumerate() {
                let rate = BitRate::from_bps(bps);
                if port.slopes[at] != rate {
                    port.slopes[at] = rate;
                    let class = self.settings.classes[at].class;
                    actions.push(BridgeAction::SetIdleSlope { port: number, class, rate });
                }
            }
        }
        let old = std::mem::replace(&mut self.sent, sent);
        for (stream, (destination, vid, _)) in &old {
            if self.sent.get(stream).is_none_or(|now| (now.0, now.1) != (*destination, *vid)) {
                let (stream, destination, vid) = (*stream, *destination, *vid);
                actions.push(BridgeAction::SetPorts {
                    stream,
                    destination,
                    vid,
                    ports: Vec::new(),
                });
            }
        }
        for (stream, now) in &self.sent {
            if old.get(stream) != Some(now) {
                let (destination, vid, ports) = now.clone();
                actions.push(BridgeAction::SetPorts { stream: *stream, destination, vid, ports });
            }
        }
    }
}

impl PortEntry {
    /// Whether it passes declarations on: it is in the set of forwarding ports.
    fn passes(&self) -> bool {
        self.forwards && self.participant.is_up()
    }

    fn is_in_domain(&self, own: &SrClass) -> bool {
        let DomainDeclaration { class, priority, .. } = own.domain();
        let neighbour = self.domains.get(&class);
        self.is_as_capable && neighbour.is_some_and(|there| there.priority == priority)
    }
}
