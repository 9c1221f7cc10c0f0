//! A bridge and stations on its ports, in virtual time, without loss.

use super::*;
use crate::mrp::RegistrarState;
use crate::mrp::pdu::{AttributeEvent, PduWriter};
use onbeat_model::time::{NetTime, Span};
use onbeat_model::units::{BitRate, MacAddress, StreamId};

const MS: i64 = 1_000_000;
const BRIDGE: BridgeId = BridgeId([0x80, 0, 2, 0, 0, 0xcc, 0, 1]);

fn at(ns: i64) -> NetTime {
    NetTime::from_ns(ns)
}

fn request(stream: u64, frame: u16, rank: Rank) -> StreamRequest {
    StreamRequest {
        stream: StreamId(stream),
        destination: MacAddress([0x91, 0xe0, 0xf0, 0, 0, stream as u8]),
        class: Class::A,
        tspec: TSpec { max_frame_size: frame, max_interval_frames: 1 },
        rank,
        latency: Span::from_us(125),
    }
}

/// One bridge, and a station on each of its ports that has one.
struct Star {
    bridge: MsrpBridge,
    stations: Vec<Option<MsrpStation>>,
    now: i64,
    actions: Vec<BridgeAction>,
    news: Vec<(usize, StationAction)>,
}

impl Star {
    fn with(settings: MsrpBridgeSettings, stations: &[bool]) -> Self {
        Self::at_rate(BitRate::from_mbps(100), settings, stations)
    }

    fn at_rate(rate: BitRate, settings: MsrpBridgeSettings, stations: &[bool]) -> Self {
        let port = MsrpPort::new(rate, Span::from_us(10));
        let bridge = MsrpBridge::new(settings, &vec![port; stations.len()], 1, at(0));
        let station = |(number, there): (usize, &bool)| {
            there.then(|| MsrpStation::new(StationSettings::default(), number as u64 + 9, at(0)))
        };
        let stations = stations.iter().enumerate().map(station).collect();
        let mut star = Self { bridge, stations, now: 0, actions: Vec::new(), news: Vec::new() };
        star.run(1_000 * MS);
        star
    }

    fn new(stations: usize) -> Self {
        Self::with(MsrpBridgeSettings::new(BRIDGE), &vec![true; stations])
    }

    fn tell(&mut self, input: BridgeInput<'_>) {
        let actions = self.bridge.handle(at(self.now), input);
        for action in actions {
            match action {
                BridgeAction::Send { port, octets } if self.stations[port].is_some() => {
                    self.tell_station(port, StationInput::Msrp(&octets));
                }
                BridgeAction::Send { .. } => {}
                other => self.actions.push(other),
            }
        }
    }

    fn tell_station(&mut self, port: usize, input: StationInput<'_>) {
        let Some(station) = &mut self.stations[port] else { return };
        for action in station.handle(at(self.now), input) {
            match action {
                StationAction::SendMsrp(octets) => {
                    self.tell(BridgeInput::Received { port, octets: &octets });
                }
                StationAction::SendMvrp(_) => {}
                news => self.news.push((port, news)),
            }
        }
    }

    fn run(&mut self, until: i64) {
        loop {
            let stations = self.stations.iter().map(|s| s.as_ref().map(|s| s.next().as_ns()));
            let first = stations.enumerate().filter_map(|(port, at)| Some((at?, port))).min();
            let bridge = self.bridge.next().as_ns();
            let (due, port) = first.unwrap_or((i64::MAX, 0));
            if due.min(bridge) > until {
                break;
            }
            self.now = self.now.max(due.min(bridge));
            match due < bridge {
                true => self.tell_station(port, StationInput::Timeout),
                false => self.tell(BridgeInput::Timeout),
            }
        }
        self.now = until;
    }

    /// Lets two seconds pass: more than what is joined or left takes.
    fn settle(&mut self) {
        self.run(self.now + 2_000 * MS);
    }

    fn advertise(&mut self, port: usize, request: StreamRequest) {
        let now = at(self.now);
        assert!(self.station(port).advertise(now, request));
        self.settle();
    }

    fn listen(&mut self, port: usize, stream: u64) {
        assert!(self.station(port).listen(StreamId(stream)));
        self.settle();
    }

    fn station(&mut self, port: usize) -> &mut MsrpStation {
        self.stations[port].as_mut().expect("a station")
    }

    fn talker(&mut self, port: usize, stream: u64) -> TalkerStatus {
        self.station(port).talker(StreamId(stream)).expect("a talker")
    }

    fn listener(&mut self, port: usize, stream: u64) -> ListenerStatus {
        self.station(port).listener(StreamId(stream)).expect("a listener")
    }

    fn is_ready(&mut self, port: usize, stream: u64) -> bool {
        matches!(self.listener(port, stream), ListenerStatus::Ready(_))
    }

    fn code(&mut self, port: usize, stream: u64) -> u8 {
        match self.listener(port, stream) {
            ListenerStatus::Failed(failure) => {
                assert_eq!(failure.bridge, BRIDGE);
                failure.code.0
            }
            other => panic!("{other:?}"),
        }
    }

    /// Sends the bridge a declaration, as a station that is none of ours.
    fn send(&mut self, port: usize, event: AttributeEvent, attribute: MsrpAttribute) {
        let mut writer = PduWriter::<Msrp>::new(1_500);
        assert!(writer.push(event, &attribute));
        self.tell(BridgeInput::Received { port, octets: &writer.finish() });
    }

    /// Makes a port without a station a part of the domain.
    fn join_domain(&mut self, port: usize) {
        for class in SrClass::DEFAULT {
            self.send(port, AttributeEvent::JoinIn, MsrpAttribute::Domain(class.domain()));
        }
    }
}

#[test]
fn a_listener_becomes_ready_and_the_bridge_reserves_what_the_stream_takes() {
    let mut star = Star::new(3);
    star.advertise(0, request(1, 56, Rank::Normal));
    assert_eq!(star.talker(0, 1), TalkerStatus::Advertised);
    star.listen(2, 1);
    assert!(star.talker(0, 1).may_send() && star.is_ready(2, 1));
    // 56 + 42 + 1 octets, 8,000 times a second.
    let rate = BitRate::from_bps(99 * 8 * 8_000);
    assert_eq!(star.bridge.idle_slopes(2), [rate, BitRate::default()]);
    assert_eq!(star.bridge.idle_slopes(1), [BitRate::default(); 2]);
    let destination = MacAddress([0x91, 0xe0, 0xf0, 0, 0, 1]);
    let ports = |ports| BridgeAction::SetPorts { stream: StreamId(1), destination, vid: 2, ports };
    let slope = |rate| BridgeAction::SetIdleSlope { port: 2, class: Class::A, rate };
    assert_eq!(star.actions, [slope(rate), ports(vec![2])]);
    // 2,020 octets of another class at 100 Mb/s, and 10 µs through bridge and link.
    let ListenerStatus::Ready(talker) = star.listener(2, 1) else { panic!("not ready") };
    assert_eq!(talker.accumulated_latency_ns, 125_000 + 161_600 + 10_000);
    let now = at(star.now);
    star.station(2).leave(now, StreamId(1));
    star.settle();
    assert_eq!(star.talker(0, 1), TalkerStatus::Advertised);
    assert_eq!(star.actions[2..], [slope(BitRate::default()), ports(Vec::new())]);
}

#[test]
fn a_listener_waits_for_its_talker_and_notices_when_it_goes() {
    let mut star = Star::new(2);
    star.listen(1, 1);
    assert_eq!(star.listener(1, 1), ListenerStatus::NoTalker);
    star.advertise(0, request(1, 56, Rank::Normal));
    assert!(star.is_ready(1, 1));
    let now = at(star.now);
    star.station(0).withdraw(now, StreamId(1));
    star.settle();
    assert_eq!(star.listener(1, 1), ListenerStatus::NoTalker);
    assert_eq!(star.bridge.idle_slopes(1), [BitRate::default(); 2]);
    assert_eq!([0, 1].map(|port| star.bridge.port(port).declared().count()), [2, 2], "domains");
}

#[test]
fn a_listener_that_is_ready_before_the_talker_is_kept_and_not_sent() {
    let mut star = Star::with(MsrpBridgeSettings::new(BRIDGE), &[true, false]);
    star.join_domain(1);
    let ready = MsrpAttribute::Listener(StreamId(1), ListenerDeclaration::Ready);
    star.send(1, AttributeEvent::JoinIn, ready);
    star.run(star.now + 100 * MS);
    assert_eq!(star.bridge.port(0).declaration(MsrpKey::Listener(StreamId(1))), None);
    star.advertise(0, request(1, 56, Rank::Normal));
    assert_eq!(star.talker(0, 1), TalkerStatus::Ready);
}

#[test]
fn listeners_of_three_ports_are_merged_as_the_table_says() {
    use ListenerDeclaration::{AskingFailed as AF, Ready as R, ReadyFailed as RF};
    let table = [
        (R, R, R),
        (R, RF, RF),
        (R, AF, RF),
        (RF, R, RF),
        (RF, RF, RF),
        (RF, AF, RF),
        (AF, R, RF),
        (AF, RF, RF),
        (AF, AF, AF),
    ];
    for (first, second, merged) in table {
        let settings = MsrpBridgeSettings::new(BRIDGE);
        let mut star = Star::with(settings, &[true, false, false, false]);
        for port in 1..4 {
            star.join_domain(port);
        }
        star.advertise(0, request(1, 56, Rank::Normal));
        for (port, declaration) in [(1, first), (2, second)] {
            let listener = MsrpAttribute::Listener(StreamId(1), declaration);
            star.send(port, AttributeEvent::JoinIn, listener);
        }
        star.run(star.now + 100 * MS);
        let status = match merged {
            R => TalkerStatus::Ready,
            RF => TalkerStatus::ReadyFailed,
            AF => TalkerStatus::AskingFailed,
        };
        assert_eq!(star.talker(0, 1), status, "{first:?} and {second:?}");
        let reserved = [1, 2, 3].map(|port| star.bridge.idle_slopes(port)[0] > BitRate::default());
        assert_eq!(reserved, [first != AF, second != AF, false]);
    }
}

#[test]
fn three_quarters_of_a_port_are_reserved_and_one_octet_more_is_refused_with_code_1() {
    // Alone, MaxFrameSize 1,128 takes 74.944 Mb/s; with one octet more the rest is too small.
    for (frame, code) in [(1_128, None), (1_129, Some(1))] {
        let mut star = Star::new(2);
        star.advertise(0, request(1, frame, Rank::Normal));
        star.listen(1, 1);
        match code {
            None => assert!(star.is_ready(1, 1)),
            Some(code) => {
                assert_eq!(star.code(1, 1), code);
                assert_eq!(star.talker(0, 1), TalkerStatus::AskingFailed);
                assert_eq!(star.bridge.idle_slopes(1), [BitRate::default(); 2]);
            }
        }
    }
}

#[test]
fn what_is_refused_gets_the_bandwidth_when_it_is_free() {
    let mut star = Star::new(4);
    star.advertise(0, request(1, 700, Rank::Normal));
    star.advertise(1, request(2, 700, Rank::Normal));
    star.listen(2, 1);
    star.listen(2, 2);
    star.listen(3, 2);
    assert_eq!(star.code(2, 2), 1);
    assert_eq!(star.talker(1, 2), TalkerStatus::ReadyFailed, "port 3 can have it");
    let now = at(star.now);
    star.station(2).leave(now, StreamId(1));
    star.settle();
    assert!(star.is_ready(2, 2));
    assert_eq!(star.talker(1, 2), TalkerStatus::Ready);
    // The other one cannot come back: it is younger now.
    star.listen(2, 1);
    assert_eq!(star.code(2, 1), 1);
}

#[test]
fn an_emergency_stream_displaces_with_code_6_and_the_other_recovers() {
    let mut star = Star::new(3);
    star.advertise(0, request(1, 700, Rank::Normal));
    star.listen(2, 1);
    assert!(star.is_ready(2, 1));
    star.advertise(1, request(2, 700, Rank::Emergency));
    assert!(star.is_ready(2, 1), "without a listener it displaces nothing");
    star.listen(2, 2);
    assert!(star.is_ready(2, 2));
    assert_eq!((star.code(2, 1), star.talker(0, 1)), (6, TalkerStatus::AskingFailed));
    let now = at(star.now);
    star.station(1).withdraw(now, StreamId(2));
    star.settle();
    assert!(star.is_ready(2, 1));
    assert_eq!(star.talker(0, 1), TalkerStatus::Ready);
}

#[test]
fn a_port_outside_the_domain_gets_failed_8_until_it_joins() {
    let mut star = Star::with(MsrpBridgeSettings::new(BRIDGE), &[true, true, false]);
    star.advertise(0, request(1, 56, Rank::Normal));
    let failed = |star: &Star| {
        let declared = star.bridge.port(2).declaration(MsrpKey::Failed(StreamId(1))).copied();
        declared.and_then(|attribute| match attribute {
            MsrpAttribute::Talker(talker) => talker.failure,
            _ => None,
        })
    };
    let code = FailureCode::EGRESS_NOT_CAPABLE;
    assert_eq!(failed(&star), Some(FailureInformation { bridge: BRIDGE, code }));
    assert!(!star.bridge.is_in_domain(2, Class::A) && star.bridge.is_in_domain(1, Class::A));
    // Another priority is another domain, another VLAN is not.
    let domain = SrClass::DEFAULT[0].domain();
    let other = DomainDeclaration { priority: 5, ..domain };
    star.send(2, AttributeEvent::JoinIn, MsrpAttribute::Domain(other));
    assert!(failed(&star).is_some());
    let other = DomainDeclaration { vid: 77, ..domain };
    star.send(2, AttributeEvent::JoinIn, MsrpAttribute::Domain(other));
    assert_eq!(failed(&star), None);
    star.tell(BridgeInput::AsCapable(2, false));
    assert!(failed(&star).is_some(), "a link whose delay cannot be measured");
}

#[test]
fn a_station_adopts_its_neighbours_priority_and_vlan() {
    let mut settings = MsrpBridgeSettings::new(BRIDGE);
    settings.classes[0] = SrClass { class: Class::A, priority: 5, vid: 77 };
    let mut star = Star::with(settings, &[true, true]);
    let agreed = DomainDeclaration { class: 6, priority: 5, vid: 77 };
    assert_eq!(star.station(0).domain(Class::A), Some(DomainStatus::Agreed(agreed)));
    star.advertise(0, request(1, 56, Rank::Normal));
    star.listen(1, 1);
    let ListenerStatus::Ready(talker) = star.listener(1, 1) else { panic!("not ready") };
    assert_eq!((talker.priority, talker.vid), (5, 77));
    let vlans = |star: &mut Star, port| {
        star.station(port).mvrp().declared().map(|vid| vid.get()).collect::<Vec<_>>()
    };
    assert_eq!((vlans(&mut star, 0), vlans(&mut star, 1)), (vec![77], vec![77]));
    let now = at(star.now);
    star.station(1).leave(now, StreamId(1));
    star.settle();
    assert_eq!((vlans(&mut star, 0), vlans(&mut star, 1)), (vec![77], vec![]));
}

#[test]
fn a_talker_that_was_too_early_is_declared_again_with_its_neighbours_priority() {
    let mut settings = MsrpBridgeSettings::new(BRIDGE);
    settings.classes[0] = SrClass { class: Class::A, priority: 5, vid: 77 };
    let mut star = Star::with(settings, &[true, true]);
    // A station that has not heard of the domain yet.
    let now = at(star.now);
    star.stations[0] = Some(MsrpStation::new(StationSettings::default(), 3, now));
    assert!(star.station(0).advertise(now, request(1, 56, Rank::Normal)));
    star.run(star.now + 16_000 * MS);
    star.listen(1, 1);
    assert!(star.is_ready(1, 1), "{:?}", star.listener(1, 1));
}

fn foreign(stream: u64, latency: u32) -> TalkerDeclaration {
    TalkerDeclaration {
        stream: StreamId(stream),
        destination: MacAddress([0x91, 0xe0, 0xf0, 0, 9, stream as u8]),
        vid: 2,
        tspec: TSpec { max_frame_size: 56, max_interval_frames: 1 },
        priority: 3,
        rank: Rank::Normal,
        accumulated_latency_ns: latency,
        failure: None,
    }
}

#[test]
fn what_a_talker_changes_fails_with_code_16_until_it_is_withdrawn() {
    let mut star = Star::with(MsrpBridgeSettings::new(BRIDGE), &[false, true]);
    star.listen(1, 1);
    let talker = foreign(1, 1_000);
    let declare = |star: &mut Star, talker| {
        star.send(0, AttributeEvent::JoinIn, MsrpAttribute::Talker(talker));
        star.run(star.now + 300 * MS);
    };
    declare(&mut star, talker);
    assert!(star.is_ready(1, 1));
    let tspec = TSpec { max_frame_size: 57, max_interval_frames: 1 };
    declare(&mut star, TalkerDeclaration { tspec, ..talker });
    assert_eq!(star.code(1, 1), 16);
    declare(&mut star, talker);
    assert_eq!(star.code(1, 1), 16, "what it was again is a change, too");
    star.send(0, AttributeEvent::Lv, MsrpAttribute::Talker(talker));
    star.settle();
    assert_eq!(star.listener(1, 1), ListenerStatus::NoTalker);
    declare(&mut star, TalkerDeclaration { tspec, ..talker });
    assert!(star.is_ready(1, 1));
}

#[test]
fn more_latency_than_first_reported_fails_with_code_7() {
    let mut star = Star::with(MsrpBridgeSettings::new(BRIDGE), &[false, true]);
    star.listen(1, 1);
    for (latency, code) in [(1_000, None), (1_001, Some(7)), (999, None), (u32::MAX, Some(7))] {
        let talker = MsrpAttribute::Talker(foreign(1, latency));
        star.send(0, AttributeEvent::JoinIn, talker);
        star.run(star.now + 300 * MS);
        match code {
            None => assert!(star.is_ready(1, 1), "{latency}"),
            Some(code) => assert_eq!(star.code(1, 1), code, "{latency}"),
        }
    }
}

#[test]
fn advertise_and_failed_replace_each_other_and_the_code_is_kept() {
    let mut star = Star::with(MsrpBridgeSettings::new(BRIDGE), &[false, true]);
    star.listen(1, 1);
    let failure = FailureInformation { bridge: BridgeId([7; 8]), code: FailureCode(25) };
    let failed = TalkerDeclaration { failure: Some(failure), ..foreign(1, 1_000) };
    for _ in 0..3 {
        star.send(0, AttributeEvent::JoinIn, MsrpAttribute::Talker(foreign(1, 1_000)));
        star.run(star.now + 300 * MS);
        assert!(star.is_ready(1, 1));
        star.send(0, AttributeEvent::JoinIn, MsrpAttribute::Talker(failed));
        star.run(star.now + 300 * MS);
        assert_eq!(star.listener(1, 1), ListenerStatus::Failed(failure));
        let (_, advertise) = star.bridge.port(0).states(MsrpKey::Advertise(StreamId(1)));
        assert_eq!(advertise, RegistrarState::Mt);
    }
}

#[test]
fn identifiers_and_addresses_in_use_are_refused_with_codes_4_and_5() {
    let mut star = Star::with(MsrpBridgeSettings::new(BRIDGE), &[true, true, true]);
    star.advertise(0, request(1, 56, Rank::Normal));
    star.advertise(1, request(1, 100, Rank::Normal));
    let code = |star: &Star, port: usize, stream| {
        let key = MsrpKey::Failed(StreamId(stream));
        match star.bridge.port(port).declaration(key) {
            Some(MsrpAttribute::Talker(talker)) => talker.failure.map(|failure| failure.code.0),
            _ => None,
        }
    };
    assert_eq!([0, 1, 2].map(|port| code(&star, port, 1)), [None, Some(4), None]);
    star.listen(2, 1);
    assert!(star.is_ready(2, 1), "the first one's");
    assert_eq!(star.talker(1, 1), TalkerStatus::Advertised, "the second one's");
    let same = StreamRequest { stream: StreamId(9), ..request(1, 56, Rank::Normal) };
    star.advertise(0, same);
    assert_eq!([1, 2].map(|port| code(&star, port, 9)), [Some(5); 2]);
    let now = at(star.now);
    star.station(0).withdraw(now, StreamId(1));
    star.settle();
    assert_eq!(star.talker(1, 1), TalkerStatus::Ready);
}

#[test]
fn limits_of_bridge_port_and_medium_have_their_codes() {
    let settings = MsrpBridgeSettings { streams_max: 2, ..MsrpBridgeSettings::new(BRIDGE) };
    let mut star = Star::with(settings, &[true, true]);
    for stream in 1..4 {
        star.advertise(0, request(stream, 56, Rank::Normal));
        star.listen(1, stream);
    }
    assert!(star.is_ready(1, 1) && star.is_ready(1, 2));
    assert_eq!(star.code(1, 3), FailureCode::BRIDGE_RESOURCES.0);

    let settings = MsrpBridgeSettings { fan_in_max: 1, ..MsrpBridgeSettings::new(BRIDGE) };
    let mut star = Star::with(settings, &[true; 3]);
    star.advertise(0, request(1, 56, Rank::Normal));
    star.advertise(1, request(2, 56, Rank::Normal));
    star.listen(2, 1);
    star.listen(2, 2);
    assert_eq!(star.code(2, 2), FailureCode::FAN_IN.0);

    let mut star = Star::with(MsrpBridgeSettings::new(BRIDGE), &[false, true]);
    star.listen(1, 1);
    star.listen(1, 2);
    let wrong = TalkerDeclaration { priority: 7, ..foreign(1, 0) };
    star.send(0, AttributeEvent::New, MsrpAttribute::Talker(wrong));
    let tspec = TSpec { max_frame_size: 1_501, max_interval_frames: 1 };
    let long = TalkerDeclaration { tspec, ..foreign(2, 0) };
    star.send(0, AttributeEvent::New, MsrpAttribute::Talker(long));
    star.settle();
    assert_eq!(star.code(1, 1), FailureCode::NOT_AN_SR_PRIORITY.0);
    assert_eq!(star.code(1, 2), FailureCode::MAX_FRAME_SIZE.0);
}

#[test]
fn a_blocked_port_registers_and_passes_nothing_on() {
    let mut star = Star::new(3);
    star.advertise(0, request(1, 56, Rank::Normal));
    star.listen(1, 1);
    star.listen(2, 1);
    star.tell(BridgeInput::Forwards(1, false));
    star.settle();
    assert_eq!(star.listener(1, 1), ListenerStatus::NoTalker);
    assert!(star.is_ready(2, 1));
    assert_eq!(star.bridge.reserved(1).count(), 0);
    star.tell(BridgeInput::Forwards(0, false));
    star.settle();
    assert_eq!(
        (star.listener(2, 1), star.talker(0, 1)),
        (ListenerStatus::NoTalker, TalkerStatus::Advertised,)
    );
    star.tell(BridgeInput::Forwards(0, true));
    star.tell(BridgeInput::Forwards(1, true));
    star.settle();
    assert!(star.is_ready(1, 1) && star.is_ready(2, 1), "declared again");
    star.tell(BridgeInput::LinkDown(2));
    assert_eq!(star.bridge.idle_slopes(2), [BitRate::default(); 2]);
}

#[test]
fn talker_pruning_declares_only_where_the_address_is_registered() {
    let settings = MsrpBridgeSettings { prunes_talkers: true, ..MsrpBridgeSettings::new(BRIDGE) };
    let mut star = Star::with(settings, &[true; 3]);
    star.advertise(0, request(1, 56, Rank::Normal));
    star.listen(1, 1);
    star.listen(2, 1);
    assert_eq!(star.listener(1, 1), ListenerStatus::NoTalker);
    let address = MacAddress([0x91, 0xe0, 0xf0, 0, 0, 1]);
    star.tell(BridgeInput::Address { port: 1, address, is_registered: true });
    star.settle();
    assert!(star.is_ready(1, 1) && !star.is_ready(2, 1));
    star.tell(BridgeInput::Address { port: 1, address, is_registered: false });
    star.settle();
    assert_eq!(star.listener(1, 1), ListenerStatus::NoTalker);
}

#[test]
fn a_stream_with_a_context_is_declared_on_its_ports_and_taken_from_them_only() {
    let mut star = Star::new(4);
    star.bridge.set_context(StreamId(1), [0, 2]);
    star.advertise(0, request(1, 100, Rank::Normal));
    for (port, there) in [(1, false), (2, true), (3, false)] {
        star.listen(port, 1);
        assert_eq!(star.is_ready(port, 1), there, "port {port}");
        assert_eq!(star.bridge.reserved(port).count(), usize::from(there), "port {port}");
    }
    star.bridge.set_context(StreamId(2), [0, 2]);
    star.advertise(1, request(2, 100, Rank::Normal));
    star.listen(2, 2);
    assert_eq!(star.listener(2, 2), ListenerStatus::NoTalker);
}

#[test]
fn a_station_that_admits_its_streams_fails_what_its_port_cannot_carry_until_there_is_room() {
    // The bridge's ports are fast: only the talker's own is too slow for both.
    let settings = MsrpBridgeSettings::new(BRIDGE);
    let mut star = Star::at_rate(BitRate::from_mbps(1_000), settings, &[true; 3]);
    let own = BridgeId([0x80, 0, 2, 0, 0, 0, 0, 1]);
    star.station(0).admit(own, BitRate::from_mbps(100));
    // (560 + 22 + 21) · 64 kb/s: two are more than 75 Mb/s.
    star.advertise(0, request(1, 560, Rank::Normal));
    star.advertise(0, request(2, 560, Rank::Normal));
    for (port, stream) in [(1, 1), (2, 2)] {
        star.listen(port, stream);
    }
    let rate = BitRate::from_bps(603 * 64_000);
    assert!(star.is_ready(1, 1));
    let failure = FailureInformation { bridge: own, code: FailureCode::BANDWIDTH };
    assert_eq!(star.listener(2, 2), ListenerStatus::Failed(failure));
    assert_eq!(star.talker(0, 2), TalkerStatus::AskingFailed);
    assert_eq!(star.station(0).reserved().collect::<Vec<_>>(), [StreamId(1)]);
    assert_eq!(star.station(0).idle_slopes(), [rate, BitRate::default()]);
    let now = at(star.now);
    star.station(0).withdraw(now, StreamId(1));
    star.settle();
    assert!(star.is_ready(2, 2));
    assert_eq!(star.station(0).reserved().collect::<Vec<_>>(), [StreamId(2)]);
    assert_eq!(star.station(0).idle_slopes(), [rate, BitRate::default()]);
    let now = at(star.now);
    star.station(0).withdraw(now, StreamId(2));
    star.settle();
    assert_eq!(star.listener(2, 2), ListenerStatus::NoTalker);
    assert_eq!(star.station(0).idle_slopes(), [BitRate::default(); 2]);
}

#[test]
fn the_vlan_is_joined_before_ready_is_said() {
    let mut station = MsrpStation::new(StationSettings::default(), 1, at(0));
    let mut writer = PduWriter::<Msrp>::new(1_500);
    assert!(writer.push(AttributeEvent::New, &MsrpAttribute::Talker(foreign(1, 0))));
    let talker = writer.finish();
    assert!(station.listen(StreamId(1)));
    let mut order = Vec::new();
    station.handle(at(5), StationInput::Msrp(&talker));
    let mut now = at(5);
    for _ in 0..20 {
        now = now.max(station.next());
        for action in station.handle(now, StationInput::Timeout) {
            match action {
                StationAction::SendMvrp(_) => order.push("VLAN"),
                StationAction::Listener(_, ListenerStatus::Ready(_)) => order.push("ready"),
                _ => {}
            }
        }
    }
    assert_eq!(order.first(), Some(&"VLAN"));
    assert!(order.contains(&"ready"), "{order:?}");
}

#[test]
fn five_hundred_streams_come_and_go_over_a_port_that_is_blocked_for_a_while() {
    let rate = BitRate::from_mbps(10_000);
    let mut star = Star::at_rate(rate, MsrpBridgeSettings::new(BRIDGE), &[true; 2]);
    let now = at(star.now);
    for stream in 0..500 {
        // Every other identifier, so that no vector has two of them.
        let mut request = request(stream * 2, 1, Rank::Normal);
        request.destination = MacAddress([0x91, 0xe0, 0xf0, 1, (stream >> 8) as u8, stream as u8]);
        request.class = Class::B;
        assert!(star.station(0).advertise(now, request));
        assert!(star.station(1).listen(StreamId(stream * 2)));
    }
    star.settle();
    let ready = |star: &mut Star| (0..500).filter(|n| star.is_ready(1, n * 2)).count();
    assert_eq!(ready(&mut star), 500);
    let before = star.news.len();
    star.run(star.now + 60_000 * MS);
    assert_eq!(star.news.len(), before, "no LeaveAll lets one flap");
    star.tell(BridgeInput::Forwards(0, false));
    star.settle();
    assert_eq!(ready(&mut star), 0);
    star.tell(BridgeInput::Forwards(0, true));
    star.settle();
    assert_eq!(ready(&mut star), 500);
}

#[test]
fn more_streams_than_a_bridge_looks_at_are_refused_until_others_leave() {
    let settings = MsrpBridgeSettings::new(BRIDGE);
    let port = MsrpPort::new(BitRate::from_mbps(100), Span::from_us(10));
    let mut bridge = MsrpBridge::new(settings, &[port; 2], 1, at(0));
    let send = |bridge: &mut MsrpBridge, port: usize, event, from: u64, count: u64| {
        let mut streams = from..from + count;
        while !streams.is_empty() {
            let mut writer = PduWriter::<Msrp>::new(1_500);
            while let Some(stream) = streams.next() {
                let ready = ListenerDeclaration::Ready;
                if !writer.push(event, &MsrpAttribute::Listener(StreamId(stream), ready)) {
                    streams.start -= 1;
                    break;
                }
            }
            bridge.handle(at(0), BridgeInput::Received { port, octets: &writer.finish() });
        }
    };
    let most = bridge::STREAMS_MAX as u64;
    send(&mut bridge, 0, AttributeEvent::JoinIn, 0, most - 100);
    send(&mut bridge, 1, AttributeEvent::JoinIn, most - 100, 103);
    assert_eq!((bridge.streams() as u64, bridge.refused()), (most, 3));
    // One port's streams end: those of the other are looked at again.
    bridge.handle(at(0), BridgeInput::LinkDown(0));
    assert_eq!(bridge.streams(), 103);
}
