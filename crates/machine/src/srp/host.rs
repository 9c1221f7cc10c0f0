//! The participant of a host's interface without I/O: programs ask, the neighbour answers.
//!
//! Where the neighbour speaks MSRP, talkers wait for its listeners. Where it says nothing for
//! [`ANSWER`], no bridge on the way reserves: then the host's own port is all that there is to
//! reserve, and a talker gets its share of it at once, or never. In both cases the talkers of the
//! host together get no more than the port's share.

use onbeat::interface::srp::{
    Answer, Neighbour, Offer, Phase, Refusal, Request, StreamStatus, Summary,
};
use onbeat_model::record::Role;
use onbeat_model::reservation::DELTA_BANDWIDTH_PERCENT;
use onbeat_model::system::Class;
use onbeat_model::time::{NetTime, Span};
use onbeat_model::units::{BitRate, MacAddress, Octets, StreamId, frame};
use onbeat_runtime::msrp::{
    BridgeId, DomainStatus, FailureCode, FailureInformation, ListenerStatus, MsrpStation, Rank,
    StationAction, StationInput, StationSettings, StreamRequest, TalkerStatus, stream_rate,
};
use std::collections::BTreeMap;

/// How long a neighbour has to speak MSRP after the link is up. One that does answers a
/// declaration within two JoinTimes of 0.2 s; a JoinTime may be a second on slow ones.
pub const ANSWER: Span = Span::from_s(3);
/// How long one that spoke it may be silent: it says LeaveAll within 15 s (10.7.5.22).
pub const SILENCE: Span = Span::from_s(31);
/// The most programs that are connected.
pub const CLIENTS_MAX: usize = 2_048;
/// The longest frame that may be on the wire already when a stream's is presented.
const LATENCY_FRAME: Octets = Octets::new(2_000);

/// A connected program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId(pub u64);

/// What a port has for the talkers of its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnPort {
    /// The interface's address.
    pub address: MacAddress,
    /// The rate of its link.
    pub rate: BitRate,
    /// What classes A and B may have of it together, by class: what A does not use is B's.
    pub share: [BitRate; 2],
}

impl OwnPort {
    /// A port whose talkers may have what the standard recommends (802.1Q 34.3.1).
    pub fn new(address: MacAddress, rate: BitRate) -> Self {
        let share = DELTA_BANDWIDTH_PERCENT.map(|percent| {
            let bps = u128::from(rate.as_bps()) * u128::from(percent) / 100;
            BitRate::from_bps(u64::try_from(bps).unwrap_or(u64::MAX))
        });
        Self { address, rate, share }
    }

    /// How it names itself where a bridge names itself.
    fn identifier(&self) -> BridgeId {
        let [a, b, c, d, e, f] = self.address.0;
        BridgeId([0, 0, a, b, c, d, e, f])
    }
}

/// What the participant is told.
#[derive(Debug)]
pub enum HostInput<'a> {
    /// It is [`SrpHost::next`], or later.
    Timeout,
    /// A PDU of MSRP has come, without Ethernet header.
    Msrp(&'a [u8]),
    /// A PDU of MVRP has come.
    Mvrp(&'a [u8]),
    /// The link has failed.
    LinkDown,
    /// The link works.
    LinkUp,
    /// A program says something. The process is what it is known by.
    Request(ClientId, u32, &'a [u8]),
    /// A program is gone.
    Gone(ClientId),
}

/// What it does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostAction {
    /// Sends a PDU of MSRP.
    SendMsrp(Vec<u8>),
    /// Sends a PDU of MVRP.
    SendMvrp(Vec<u8>),
    /// Tells a program something.
    Say(ClientId, Answer),
    /// Ends the connection of a program.
    Close(ClientId),
}

/// What a program asked for.
#[derive(Clone, Copy, Debug)]
enum Wanted {
    Talker(Offer),
    Listener(StreamId),
}

#[derive(Clone, Copy, Debug)]
struct Client {
    process: u32,
    wanted: Wanted,
    /// A talker: there is room for it at the port.
    is_admitted: bool,
    /// A talker: it waits until what its stream was before is forgotten.
    is_held: bool,
    /// What it was told last.
    told: Option<StreamStatus>,
}

/// The participant.
#[derive(Debug)]
pub struct SrpHost {
    port: OwnPort,
    station: MsrpStation,
    neighbour: Neighbour,
    /// When the neighbour is taken for one that does not speak MSRP.
    silent_at: NetTime,
    /// In the order in which they came: identifiers ascend.
    clients: BTreeMap<ClientId, Client>,
    /// What streams were that were withdrawn of late, and until when neighbours may remember it.
    withdrawn: BTreeMap<StreamId, (Offer, NetTime)>,
    /// For how long they may.
    memory: Span,
}

impl SrpHost {
    /// A participant that begins now, on a link that is up. The seed is for its timers.
    pub fn new(port: OwnPort, settings: StationSettings, seed: u64, now: NetTime) -> Self {
        Self {
            port,
            station: MsrpStation::new(settings, seed, now),
            neighbour: Neighbour::Asking,
            silent_at: now + ANSWER,
            clients: BTreeMap::new(),
            withdrawn: BTreeMap::new(),
            memory: settings.mrp.timers.join * 2 + settings.mrp.timers.leave,
        }
    }

    /// Does what an input asks for.
    pub fn handle(&mut self, now: NetTime, input: HostInput<'_>) -> Vec<HostAction> {
        let mut actions = Vec::new();
        match input {
            HostInput::Timeout => self.drive(now, StationInput::Timeout, &mut actions),
            HostInput::Msrp(octets) => {
                let before = self.station.msrp().counts();
                self.drive(now, StationInput::Msrp(octets), &mut actions);
                let after = self.station.msrp().counts();
                // What cannot be read at all is nobody's MSRP.
                let is_read = after.discarded == before.discarded;
                if is_read && self.neighbour != Neighbour::LinkDown {
                    self.neighbour = Neighbour::Msrp;
                    self.silent_at = now + SILENCE;
                }
            }
            HostInput::Mvrp(octets) => self.drive(now, StationInput::Mvrp(octets), &mut actions),
            HostInput::LinkDown => {
                self.neighbour = Neighbour::LinkDown;
                self.drive(now, StationInput::LinkDown, &mut actions);
            }
            HostInput::LinkUp => {
                self.neighbour = Neighbour::Asking;
                self.silent_at = now + ANSWER;
                self.drive(now, StationInput::LinkUp, &mut actions);
            }
            HostInput::Request(client, process, octets) => {
                self.request(client, process, octets, &mut actions);
            }
            HostInput::Gone(client) => self.remove(now, client),
        }
        let may_speak = matches!(self.neighbour, Neighbour::Asking | Neighbour::Msrp);
        if may_speak && self.silent_at <= now {
            self.neighbour = Neighbour::Silent;
        }
        self.admit(now);
        self.tell(&mut actions);
        actions
    }

    /// When it wants [`HostInput::Timeout`] at the latest. What is past is as good as now.
    pub fn next(&self) -> NetTime {
        let silent = match self.neighbour {
            Neighbour::Asking | Neighbour::Msrp => self.silent_at,
            Neighbour::LinkDown | Neighbour::Silent => NetTime::MAX,
        };
        let forgotten = self.withdrawn.values().map(|(_, until)| *until).min();
        self.station.next().min(silent).min(forgotten.unwrap_or(NetTime::MAX))
    }

    /// What is at the other end of the link.
    pub fn neighbour(&self) -> Neighbour {
        self.neighbour
    }

    /// The participant of MSRP and MVRP inside.
    pub fn station(&self) -> &MsrpStation {
        &self.station
    }

    /// Programs that are connected for a stream.
    pub fn clients(&self) -> usize {
        self.clients.len()
    }

    fn drive(&mut self, now: NetTime, input: StationInput<'_>, actions: &mut Vec<HostAction>) {
        for action in self.station.handle(now, input) {
            match action {
                StationAction::SendMsrp(pdu) => actions.push(HostAction::SendMsrp(pdu)),
                StationAction::SendMvrp(pdu) => actions.push(HostAction::SendMvrp(pdu)),
                // Statuses are computed from the station's state, for all programs alike.
                StationAction::Talker(..)
                | StationAction::Listener(..)
                | StationAction::Domain(..) => {}
            }
        }
    }

    fn request(
        &mut self,
        id: ClientId,
        process: u32,
        octets: &[u8],
        actions: &mut Vec<HostAction>,
    ) {
        let mut refuse = |why| {
            actions.push(HostAction::Say(id, Answer::Refused(why)));
            actions.push(HostAction::Close(id));
        };
        let wanted = match Request::parse(octets) {
            Ok(Request::Show) => return self.show(id, actions),
            Ok(Request::Advertise(offer)) => Wanted::Talker(offer),
            Ok(Request::Listen(stream)) => Wanted::Listener(stream),
            Err(_) => return refuse(Refusal::Request),
        };
        if self.clients.contains_key(&id) {
            // A connection is one end.
            return refuse(Refusal::Request);
        }
        if self.clients.len() >= CLIENTS_MAX {
            return refuse(Refusal::Full);
        }
        match wanted {
            Wanted::Talker(offer) if self.talker_of(offer.stream).is_some() => {
                return refuse(Refusal::StreamInUse);
            }
            Wanted::Listener(stream) if !self.station.listen(stream) => {
                return refuse(Refusal::Full);
            }
            Wanted::Talker(_) | Wanted::Listener(_) => {}
        }
        let client = Client { process, wanted, is_admitted: false, is_held: false, told: None };
        self.clients.insert(id, client);
    }

    fn talker_of(&self, stream: StreamId) -> Option<&Client> {
        self.clients.values().find(|client| match client.wanted {
            Wanted::Talker(offer) => offer.stream == stream,
            Wanted::Listener(_) => false,
        })
    }

    /// Whether a program of this host listens to a stream.
    fn listens(&self, stream: StreamId) -> bool {
        let is_it = |client: &Client| matches!(client.wanted, Wanted::Listener(s) if s == stream);
        self.clients.values().any(is_it)
    }

    fn remove(&mut self, now: NetTime, id: ClientId) {
        let Some(client) = self.clients.remove(&id) else { return };
        match client.wanted {
            Wanted::Talker(offer) => {
                self.station.withdraw(now, offer.stream);
                self.withdrawn.insert(offer.stream, (offer, now + self.memory));
            }
            Wanted::Listener(stream) => {
                if !self.listens(stream) {
                    self.station.leave(now, stream);
                }
            }
        }
    }

    /// Gives talkers their shares of the port, those first that came first, and declares them. What
    /// a stream is may not change before it is withdrawn (35.2.2.8.1): a program that comes back
    /// with another stream of the same name waits until the old one is forgotten.
    fn admit(&mut self, now: NetTime) {
        self.withdrawn.retain(|_, (_, until)| now < *until);
        let mut reserved = [0_u64; 2];
        for client in self.clients.values_mut() {
            let Wanted::Talker(offer) = client.wanted else { continue };
            let mut with = reserved;
            let own = &mut with[usize::from(offer.class != Class::A)];
            *own = own.saturating_add(stream_rate(offer.class, offer.tspec).as_bps());
            let [a, b] = self.port.share.map(BitRate::as_bps);
            let is_admitted =
                with[0] <= a && with[0].saturating_add(with[1]) <= a.saturating_add(b);
            if is_admitted {
                reserved = with;
            }
            let before = self.withdrawn.get(&offer.stream);
            client.is_held = before.is_some_and(|(before, _)| *before != offer);
            let is_admitted = is_admitted && !client.is_held;
            if is_admitted == client.is_admitted {
                continue;
            }
            client.is_admitted = match is_admitted {
                true => self.station.advertise(now, request_of(&offer, self.port.rate)),
                false => {
                    self.station.withdraw(now, offer.stream);
                    false
                }
            };
        }
    }

    /// What the talkers with a share of the port have, by class.
    fn reserved(&self) -> [BitRate; 2] {
        let mut reserved = [0_u64; 2];
        for client in self.clients.values().filter(|client| client.is_admitted) {
            if let Wanted::Talker(offer) = client.wanted {
                let own = &mut reserved[usize::from(offer.class != Class::A)];
                *own = own.saturating_add(stream_rate(offer.class, offer.tspec).as_bps());
            }
        }
        reserved.map(BitRate::from_bps)
    }

    /// Tells each program what has changed for it.
    fn tell(&mut self, actions: &mut Vec<HostAction>) {
        let ids: Vec<_> = self.clients.keys().copied().collect();
        for id in ids {
            let status = self.status(&self.clients[&id]);
            if let Some(client) = self.clients.get_mut(&id)
                && client.told.replace(status) != Some(status)
            {
                actions.push(HostAction::Say(id, Answer::State(status)));
            }
        }
    }

    fn show(&self, id: ClientId, actions: &mut Vec<HostAction>) {
        let say = |answer| HostAction::Say(id, answer);
        actions.extend(self.clients.values().map(|row| say(Answer::State(self.status(row)))));
        let domain = |class| match self.station.domain(class) {
            Some(DomainStatus::Agreed(domain)) => Some((domain.priority, domain.vid)),
            _ => None,
        };
        actions.push(say(Answer::Summary(Summary {
            neighbour: self.neighbour,
            rate: self.port.rate,
            share: self.port.share,
            reserved: self.reserved(),
            domains: [Class::A, Class::B].map(domain),
        })));
    }

    fn status(&self, client: &Client) -> StreamStatus {
        let status = match client.wanted {
            Wanted::Talker(offer) => self.talker_status(&offer, client),
            Wanted::Listener(stream) => self.listener_status(stream),
        };
        StreamStatus { process: client.process, ..status }
    }

    /// Whether the neighbour declares classes, and none is this.
    fn is_foreign(&self, class: Class) -> bool {
        let is_agreed = |class| matches!(self.station.domain(class), Some(DomainStatus::Agreed(_)));
        !is_agreed(class) && [Class::A, Class::B].into_iter().any(is_agreed)
    }

    fn talker_status(&self, offer: &Offer, client: &Client) -> StreamStatus {
        let mut status = StreamStatus::new(Role::Talker, offer.stream);
        status.destination = Some(offer.destination);
        status.tspec = Some(offer.tspec);
        (status.vid, status.priority) = (Some(offer.vid), Some(offer.priority));
        status.is_static = self.neighbour == Neighbour::Silent;
        if let Some(DomainStatus::Agreed(domain)) = self.station.domain(offer.class) {
            (status.vid, status.priority) = (Some(domain.vid), Some(domain.priority));
        }
        let is_heard = self.listens(offer.stream);
        let no_room =
            FailureInformation { bridge: self.port.identifier(), code: FailureCode::BANDWIDTH };
        status.phase = match (self.neighbour, self.station.talker(offer.stream)) {
            _ if client.is_held => Phase::Asking,
            _ if !client.is_admitted => Phase::Failed(no_room),
            (Neighbour::Silent, _) => Phase::Ready,
            (Neighbour::LinkDown | Neighbour::Asking, _) => Phase::Asking,
            (Neighbour::Msrp, Some(TalkerStatus::Ready)) => Phase::Ready,
            (Neighbour::Msrp, Some(TalkerStatus::ReadyFailed)) => Phase::ReadyFailed,
            (Neighbour::Msrp, _) if self.is_foreign(offer.class) => Phase::DomainMismatch,
            // Whoever listens on this host needs nothing of the network.
            (Neighbour::Msrp, Some(TalkerStatus::AskingFailed)) if is_heard => Phase::ReadyFailed,
            (Neighbour::Msrp, _) if is_heard => Phase::Ready,
            (Neighbour::Msrp, Some(TalkerStatus::AskingFailed)) => Phase::AskingFailed,
            (Neighbour::Msrp, Some(TalkerStatus::Advertised) | None) => Phase::Advertised,
        };
        status
    }

    fn listener_status(&self, stream: StreamId) -> StreamStatus {
        let mut status = StreamStatus::new(Role::Listener, stream);
        status.is_static = self.neighbour == Neighbour::Silent;
        let listener = self.station.listener(stream).unwrap_or(ListenerStatus::NoTalker);
        if let ListenerStatus::Advertised(talker) | ListenerStatus::Ready(talker) = listener {
            status.destination = Some(talker.destination);
            (status.vid, status.priority) = (Some(talker.vid), Some(talker.priority));
            status.tspec = Some(talker.tspec);
            status.latency = Some(Span::from_ns(talker.accumulated_latency_ns.into()));
        }
        let talks_here = self.talker_of(stream).is_some_and(|talker| talker.is_admitted);
        status.phase = match (self.neighbour, listener) {
            // What is sent comes; nobody says what is.
            (Neighbour::Silent, _) => Phase::Ready,
            (Neighbour::LinkDown | Neighbour::Asking, _) => Phase::Asking,
            (Neighbour::Msrp, _) if talks_here => Phase::Ready,
            (Neighbour::Msrp, ListenerStatus::NoTalker) => Phase::NoTalker,
            (Neighbour::Msrp, ListenerStatus::Advertised(_)) => Phase::Advertised,
            (Neighbour::Msrp, ListenerStatus::Ready(_)) => Phase::Ready,
            (Neighbour::Msrp, ListenerStatus::Failed(failure)) => Phase::Failed(failure),
        };
        status
    }
}

/// What the station declares. A frame waits for one of another class that has begun, and is then
/// itself sent.
fn request_of(offer: &Offer, rate: BitRate) -> StreamRequest {
    let Offer { stream, destination, class, tspec, .. } = *offer;
    let own = onbeat_model::reservation::tagged_frame(tspec.max_frame_size);
    let wait = rate.time_for(frame::on_wire(LATENCY_FRAME));
    let latency = wait + rate.time_for(frame::on_wire(own));
    StreamRequest { stream, destination, class, tspec, rank: Rank::Normal, latency }
}
