//! Protocols on nodes: what they are told, and that their frames are frames like others.

use crate::network::{Network, NoiseSpec};
use onbeat_model::port::{GateControl, GateEntry};
use onbeat_model::stream::{Fault, FaultKind, Source};
use onbeat_model::system::{LinkId, NodeId};
use onbeat_model::time::{ClockError, NetTime, Span, SyncedTime};
use onbeat_model::units::Octets;
use onbeat_net::{
    ClockAdjustment, Engine, FlowRef, Happened, Joining, Moment, Outgoing, Output, Participant,
    Transmission, Wants,
};
use proptest::prelude::*;

const ETHERTYPE: u16 = 0x88b5;

/// Sends its number by its first port when its timer goes off, so many times, and answers what it
/// hears by the port where it came.
#[derive(Debug)]
struct Toy {
    next: NetTime,
    every: Span,
    left: u32,
    answers: bool,
    length: usize,
    /// How many octets of a frame it is told of first.
    header: Option<u32>,
    /// What its clock is set to whenever its timer goes off.
    clock: Option<ClockError>,
    seen: Vec<(NetTime, String)>,
}

impl Toy {
    fn new(left: u32) -> Self {
        Self {
            next: NetTime::from_ns(1_000),
            every: Span::from_us(100),
            left,
            answers: false,
            length: 46,
            header: None,
            clock: None,
            seen: Vec::new(),
        }
    }
    fn silent() -> Self {
        Self { next: NetTime::MAX, ..Self::new(0) }
    }
}

fn frame(port: usize, number: u64, length: usize) -> Outgoing {
    let mut octets = vec![0; 14 + length];
    octets[..6].copy_from_slice(&[1, 0x80, 0xc2, 0, 0, 0x0e]);
    octets[12..14].copy_from_slice(&ETHERTYPE.to_be_bytes());
    octets[14] = number as u8;
    Outgoing { port, octets, after: Span::from_ns(500), token: Some(number) }
}

impl Participant for Toy {
    fn handle(&mut self, moment: &Moment, happened: Happened<'_>, wants: &mut Wants) {
        match happened {
            Happened::Timer if self.left > 0 && self.next <= moment.now => {
                wants.send(frame(0, self.left.into(), self.length));
                self.left -= 1;
                self.next = if self.left > 0 { moment.now + self.every } else { NetTime::MAX };
                if let Some(clock) = self.clock {
                    wants.adjust_clock(ClockAdjustment { clock, source: None });
                }
            }
            Happened::Timer => {}
            Happened::Header { port, octets, .. } => {
                let what = format!("{port}: {} begins", octets[14]);
                self.seen.push((moment.now, what));
            }
            Happened::Received { port, token, octets, at } => {
                assert_eq!(
                    token.map(|token| token as u8),
                    Some(octets[14]),
                    "what the sender gave"
                );
                let what = format!("{port}: {} of {} at {}", octets[14], octets.len(), at.as_ns());
                self.seen.push((moment.now, what));
                if self.answers {
                    wants.send(frame(port, u64::from(octets[14]) + 100, self.length));
                }
            }
            Happened::Sent { port, token, at } => {
                self.seen.push((moment.now, format!("{port}: sent {token} at {}", at.as_ns())));
            }
            Happened::Written { .. } => unreachable!("it carries no channel"),
        }
    }

    fn next(&self) -> NetTime {
        self.next
    }

    fn header(&self) -> Option<Octets> {
        self.header.map(Octets::new)
    }
}

fn joining(node: NodeId, traffic_class: u8, toy: Toy) -> Joining {
    let (carries, participant) = (Vec::new(), Box::new(toy));
    Joining { node, ethertype: ETHERTYPE, traffic_class, carries, participant }
}

/// Two hosts at a bridge over links of 100 Mb/s: 80 ns an octet.
fn network() -> (Network, [NodeId; 3]) {
    let mut network = Network::new();
    let nodes = [network.host(), network.host(), network.bridge(1_000)];
    for host in [nodes[0], nodes[1]] {
        network.link(host, nodes[2], 100, 200);
    }
    (network, nodes)
}

fn seen(engine: &mut Engine) -> Vec<Vec<(i64, String)>> {
    let toys = engine.participants::<Toy>();
    toys.map(|toy| toy.seen.iter().map(|(at, what)| (at.as_ns(), what.clone())).collect()).collect()
}

fn run(network: &Network, joining: Vec<Joining>, steer: &[NodeId], until: i64) -> Engine {
    let mut engine = network.engine(1, i64::MAX);
    engine.join(&network.system, joining, NetTime::from_ns(until), steer);
    assert_eq!(engine.advance(NetTime::from_ns(until)), None);
    engine
}

#[test]
fn a_frame_leaves_and_comes_with_its_stamps_and_goes_no_further_than_the_neighbour() {
    let (network, [talker, listener, bridge]) = network();
    let toys = vec![
        joining(talker, 0, Toy::new(1)),
        joining(bridge, 0, Toy { answers: true, ..Toy::silent() }),
        joining(listener, 0, Toy::silent()),
    ];
    let seen = seen(&mut run(&network, toys, &[], 1_000_000));
    // Queued at 1,500; 8 octets of preamble take 640 ns, 64 of the frame 5,120, the link 200.
    let sent = (7_260, "0: sent 1 at 2140".to_owned());
    let heard = (7_460, "0: 1 of 60 at 2340".to_owned());
    let answered = (13_720, "0: sent 101 at 8600".to_owned());
    let back = (13_920, "0: 101 of 60 at 8800".to_owned());
    assert_eq!(seen, [vec![sent, back], vec![heard, answered], vec![]]);
}

#[test]
fn a_frame_waits_for_others_and_its_stamps_are_those_of_its_departure() {
    let (mut network, [talker, listener, bridge]) = network();
    // 1,500 octets of UDP with 42 around them start 500 ns before, and take 123.2 µs with the gap.
    let spec = NoiseSpec {
        payload: 1_472,
        interval: 1 << 40,
        jitter: false,
        start: 1_000,
        on: 1 << 40,
        off: 0,
    };
    network.noise(talker, listener, spec);
    let toys = vec![joining(talker, 7, Toy::new(1)), joining(bridge, 7, Toy::silent())];
    let seen = seen(&mut run(&network, toys, &[], 1_000_000));
    let begins = 1_000 + (1_472 + 28 + 18 + 20) * 80;
    let sent = (begins + 5_760, format!("0: sent 1 at {}", begins + 640));
    let heard = (begins + 5_960, format!("0: 1 of 60 at {}", begins + 840));
    assert_eq!(seen, [vec![sent], vec![heard]]);
}

#[test]
fn a_header_is_told_when_its_octets_are_there_and_never_of_a_frame_that_is_lost() {
    let (mut network, [talker, _, bridge]) = network();
    // At 1, 101 and 201 µs: the link is down while the header of the second one is on it, and
    // while the last octets of the third one are.
    for (from, until) in [(103_000, 104_000), (207_000, 208_000)] {
        network.fault(FaultKind::LinkDown(LinkId(0)), from, until);
    }
    for (header, at) in [(14, 3_460), (18, 3_780), (64, 7_460), (1_000, 7_460)] {
        let hears = Toy { header: Some(header), ..Toy::silent() };
        let toys = vec![joining(talker, 0, Toy::new(3)), joining(bridge, 0, hears)];
        let seen = seen(&mut run(&network, toys, &[], 1_000_000));
        // The preamble is over at 2,340 at the bridge, an octet takes 80 ns; there are 64.
        let begins = (at, "0: 3 begins".to_owned());
        let heard = (7_460, "0: 3 of 60 at 2340".to_owned());
        assert_eq!(seen[1], [begins, heard]);
    }
}

#[test]
fn what_a_broken_link_loses_has_left_and_is_never_heard() {
    let (mut network, [talker, _, bridge]) = network();
    let (from, until) = (NetTime::from_ns(50_000), NetTime::from_ns(150_000));
    let kind = FaultKind::LinkDown(LinkId(0));
    let origin = onbeat_model::diagnostic::Origin::default();
    network.system.faults.push(Fault { kind, from, until, origin });
    // At 1, 101 and 201 µs.
    let toys = vec![joining(talker, 0, Toy::new(3)), joining(bridge, 0, Toy::silent())];
    let seen = seen(&mut run(&network, toys, &[], 1_000_000));
    assert_eq!([seen[0].len(), seen[1].len()], [3, 2], "{seen:?}");
    assert!(seen[1][0].1.starts_with("0: 3 ") && seen[1][1].1.starts_with("0: 1 "), "{seen:?}");
}

#[test]
fn without_the_protocol_at_the_other_end_a_frame_has_left_and_nobody_hears_it() {
    let (network, [talker, ..]) = network();
    let mut engine = run(&network, vec![joining(talker, 0, Toy::new(2))], &[], 1_000_000);
    let sent: Vec<i64> = seen(&mut engine)[0].iter().map(|(at, _)| *at).collect();
    assert_eq!(sent, [7_260, 107_260]);
    assert_eq!(engine.frames_under_way(), 0);
    assert_eq!(engine.port_counters(network.system.nodes[0].ports[0]).sent[0], 2);
}

#[test]
fn protocols_end_with_the_run_they_joined() {
    let (network, [talker, _, bridge]) = network();
    let toys = vec![joining(talker, 0, Toy::new(1_000)), joining(bridge, 0, Toy::silent())];
    let mut engine = network.engine(1, i64::MAX);
    engine.join(&network.system, toys, NetTime::from_ns(250_000), &[]);
    assert_eq!(engine.advance(NetTime::from_ns(10_000_000)), None);
    assert_eq!(engine.next_event(), None);
    assert_eq!(seen(&mut engine)[1].len(), 3);
}

#[test]
fn alarms_by_a_steered_clock_go_off_when_it_reads_enough_and_not_before() {
    let (network, [talker, ..]) = network();
    for (ppb, expected) in [(0, 1_000_000), (500_000, 999_550), (-500_000, 1_000_450)] {
        // From 101 µs on it runs otherwise, from what it then reads.
        let since = NetTime::from_ns(101_000);
        let clock = ClockError { drift_ppb: ppb, since, ..ClockError::default() };
        let toy = Toy { next: since, left: 1, clock: Some(clock), ..Toy::silent() };
        let mut engine = network.engine(1, i64::MAX);
        let until = NetTime::from_ns(10_000_000);
        engine.join(&network.system, vec![joining(talker, 0, toy)], until, &[talker]);
        engine.alarm_when(talker, SyncedTime::from_ns(1_000_000), 7);
        engine.wake_when(talker, SyncedTime::from_ns(1_000_000), 8);
        let mut woke = Vec::new();
        while let Some(output) = engine.advance(until) {
            let Output::Woke { token } = output else { panic!("{output:?}") };
            assert!(engine.clock_of(talker).read(engine.now()) >= SyncedTime::from_ns(1_000_000));
            woke.push((token, engine.now().as_ns()));
        }
        woke.sort_unstable();
        let all = woke.iter().map(|(token, _)| *token).collect::<Vec<_>>();
        assert_eq!(all, [7, 8], "{ppb}");
        for (_, at) in woke {
            assert!((at - expected).abs() <= 1, "{ppb}: {at}");
        }
    }
}

/// What the tap saw but for the frames of the protocol.
fn streams(engine: &mut Engine) -> impl Iterator<Item = Transmission> {
    engine.take_transmissions().into_iter().filter(|sent| sent.flow != FlowRef::Protocol)
}

#[test]
fn a_talkers_stream_and_what_is_read_later_follow_the_steered_clock() {
    let (mut network, [talker, listener, _]) = network();
    let source = Source::Periodic { interval: Span::from_us(200), jitter: Span::ZERO };
    network.stream(talker, &[listener], [100, 100], source);
    // From 1 ms on it is 50 µs ahead.
    let since = NetTime::from_ns(1_000_000);
    let clock = ClockError { offset: Span::from_us(50), since, ..ClockError::default() };
    let toy = Toy { next: since, left: 1, clock: Some(clock), ..Toy::silent() };
    let until = NetTime::from_ns(2_000_000);
    let mut engine = network.engine(1, i64::MAX);
    engine.tap(&network.system.nodes[talker.index()].ports.clone());
    engine.join(&network.system, vec![joining(talker, 0, toy)], until, &[talker]);
    assert_eq!(engine.advance(until), None);
    let released: Vec<i64> = streams(&mut engine).map(|sent| sent.released.as_ns()).collect();
    let expected: Vec<i64> = (0..5).map(|k| k * 200_000).chain([1_000_000]).collect();
    assert_eq!(released[..6], expected);
    assert_eq!(released[6..], [1_150_000, 1_350_000, 1_550_000, 1_750_000, 1_950_000]);
    let read = |ns| engine.read_clock(talker, NetTime::from_ns(ns)).as_ns();
    assert_eq!([read(500_000), read(999_999), read(1_500_000)], [500_000, 999_999, 1_550_000]);
    let observed = engine.clocks_observed();
    assert_eq!(observed.len(), 1);
    assert_eq!((observed[0].node, observed[0].error()), (talker, Span::from_us(50)));
}

#[test]
fn a_frame_that_waits_before_a_gate_goes_when_the_steered_clock_opens_it() {
    for (ahead, expected) in [(30, 270_000), (0, 300_000), (-30, 330_000), (65, 335_000)] {
        let (mut network, [talker, listener, _]) = network();
        let source = Source::Periodic { interval: Span::from_s(1), jitter: Span::ZERO };
        let stream = network.stream(talker, &[listener], [100, 100], source);
        network.system.streams[stream.index()].phase = Span::from_us(220);
        let port = network.system.nodes[talker.index()].ports[0];
        let entry = |open, us| GateEntry { open, span: Span::from_us(us) };
        network.plan.ports[port.index()].settings.gates.push(GateControl {
            base: NetTime::ZERO,
            cycle: Span::from_us(100),
            entries: vec![entry(!0, 10), entry(!(1 << 4), 90)],
            length_aware: false,
        });
        // At 250 us, when the frame has waited for 30. A clock that is then 65 ahead has passed the
        // window.
        let since = NetTime::from_ns(250_000);
        let offset = Span::from_us(ahead);
        let clock = ClockError { offset, since, ..ClockError::default() };
        let toy = Toy { next: since, left: 1, clock: Some(clock), ..Toy::silent() };
        let until = NetTime::from_ns(500_000);
        let mut engine = network.engine(1, i64::MAX);
        engine.tap(&[port]);
        engine.join(&network.system, vec![joining(talker, 0, toy)], until, &[talker]);
        assert_eq!(engine.advance(until), None);
        let sent: Vec<i64> = streams(&mut engine).map(|sent| sent.at.as_ns()).collect();
        assert_eq!(sent, [expected], "{ahead}");
    }
}

proptest! {
    /// What the engine asks of a clock that is steered: it reads on from where it was, and an
    /// instant that it is asked for is the first that reads enough.
    #[test]
    fn a_clock_whose_drift_counts_from_an_instant_on_reads_and_inverts(
        offset in -1_000_000i64..1_000_000,
        drift_ppb in -ClockError::MAX_DRIFT_PPB..ClockError::MAX_DRIFT_PPB,
        since in 0i64..1_000_000_000_000_000,
        after in 0i64..1_000_000_000_000,
    ) {
        let since = NetTime::from_ns(since);
        let offset = Span::from_ns(offset);
        let clock = ClockError { offset, drift_ppb, since, ..ClockError::default() };
        prop_assert_eq!(clock.read(since), SyncedTime::from_ns(since.as_ns()) + offset);
        let reading = clock.read(since) + Span::from_ns(after);
        let at = clock.when(reading);
        prop_assert!(clock.read(at) >= reading);
        prop_assert!(clock.read(at - Span::from_ns(1)) < reading);
    }
}
