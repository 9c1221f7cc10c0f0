//! Messages over TCP: against hand calculation, and against what ports count.

use crate::network::{Network, NoiseSpec, two_bridges};
use onbeat_model::diagnostic::Origin;
use onbeat_model::stream::FaultKind;
use onbeat_model::system::{Delay, LinkId, NodeId, PortId};
use onbeat_model::tcp::{TcpFlow, TcpObserved};
use onbeat_model::time::{ClockError, NetTime, Span, SyncedTime};
use onbeat_model::units::Octets;
use onbeat_net::{Engine, join_protocols};
use proptest::prelude::*;

const MS: i64 = 1_000_000;

/// A header and a value each 10 ms, without delays of the hosts.
fn flow(talker: NodeId, listener: NodeId) -> TcpFlow {
    TcpFlow {
        name: "flow".to_owned(),
        talker,
        listener,
        writes: [21, 8].map(Octets::new).to_vec(),
        interval: Span::from_ms(10),
        phase: Span::ZERO,
        after: Span::ZERO,
        lag: Delay::Zero,
        nagle: false,
        delayed_ack: false,
        origin: Origin::default(),
    }
}

fn add(network: &mut Network, flow: TcpFlow) {
    let both = [(flow.talker, flow.listener), (flow.listener, flow.talker)];
    network.plan.tcp.push(both.map(|(from, to)| network.path(from, to)));
    network.system.tcp.push(flow);
}

fn run(network: &Network, seed: u64, ns: i64) -> (Vec<TcpObserved>, Engine) {
    let mut engine = network.engine(seed, ns);
    let end = NetTime::from_ns(ns);
    join_protocols(&mut engine, &network.system, &network.plan, seed, end);
    while engine.advance(end).is_some() {}
    (engine.tcp_observed(), engine)
}

/// Talker – bridge – listener at 1 Gb/s.
fn one_bridge() -> (Network, NodeId, NodeId) {
    let mut network = Network::new();
    let [talker, listener] = [(); 2].map(|()| network.host());
    let bridge = network.bridge(3_000);
    network.link(talker, bridge, 1_000, 50);
    network.link(bridge, listener, 1_000, 50);
    (network, talker, listener)
}

#[test]
fn on_an_idle_network_each_message_takes_what_its_frames_do() {
    let (mut network, talker, listener) = one_bridge();
    add(&mut network, flow(talker, listener));
    let (seen, engine) = run(&network, 1, 100 * MS);
    // 54 octets of headers and 21 or 8 of data, with FCS: 79 and 66 octets. The first one is at the
    // bridge after preamble, frame and wire, 87 · 8 + 50 ns, and goes on 3 µs later. The second one
    // has come before the first has left, and follows it after the gap: 99 · 8 ns later.
    let expected = 87 * 8 + 50 + 3_000 + 99 * 8 + 74 * 8 + 50;
    let [observed] = &seen[..] else { panic!("one flow") };
    assert_eq!(observed.messages.len(), 10);
    for (number, message) in (0..).zip(&observed.messages) {
        let tag = SyncedTime::from_ns(number * 10 * MS);
        let receive = Some(tag + Span::from_ns(expected));
        assert_eq!((message.tag, message.capture), (tag, tag));
        assert_eq!((message.receive, message.handled), (receive, receive), "{number}");
    }
    assert_eq!((observed.segments, observed.retransmitted, observed.acknowledgements), (20, 0, 20));
    assert_eq!((observed.timeouts, observed.failed, observed.unrecorded), (0, false, 0));
    // Ports count for themselves.
    assert_eq!(engine.port_counters(PortId(0)).sent.iter().sum::<u64>(), 20);
    assert_eq!(engine.port_counters(PortId(3)).sent.iter().sum::<u64>(), 20);
}

#[test]
fn a_message_is_handled_at_its_tag_and_after_or_when_it_comes() {
    let (mut network, talker, listener) = one_bridge();
    let (tx, rx) = (Span::from_us(20), Span::from_us(30));
    let fixed = |span| Delay::Interval { min: span, max: span };
    network.delays(talker, fixed(tx), Delay::Zero, Delay::Zero);
    network.delays(listener, Delay::Zero, fixed(rx), fixed(Span::from_us(7)));
    // Of 100, 900 and 1,500 µs, with 56 µs on the way: in time, in time, late.
    for (lag, late) in [(100, false), (900, false), (1_500, true)] {
        let mut network = network.clone();
        let lag = Span::from_us(lag);
        let after = Span::from_us(1_000);
        add(&mut network, TcpFlow { lag: fixed(lag), after, ..flow(talker, listener) });
        let (seen, _) = run(&network, 1, 100 * MS);
        for message in &seen[0].messages {
            assert_eq!(message.capture, message.tag + lag);
            let receive = message.receive.expect("it is there");
            assert!(receive >= message.capture + tx + rx + Span::from_ns(3_000));
            let expected = if late { receive } else { message.tag + after + Span::from_us(7) };
            assert_eq!(message.handled, Some(expected));
        }
    }
}

#[test]
fn clocks_that_are_wrong_move_tags_and_waits() {
    let (mut network, talker, listener) = one_bridge();
    let ahead = |us| ClockError { offset: Span::from_us(us), ..ClockError::default() };
    network.system.nodes[talker.index()].clock = ahead(-40);
    network.system.nodes[listener.index()].clock = ahead(100);
    add(&mut network, TcpFlow { after: Span::from_ms(1), ..flow(talker, listener) });
    let (seen, _) = run(&network, 1, 100 * MS);
    let message = seen[0].messages[3];
    assert_eq!(message.capture, message.tag);
    // On the way 5,180 ns by true time, and the listener's clock is 140 µs ahead of the talker's.
    assert_eq!(message.receive, Some(message.tag + Span::from_ns(140_000 + 5_180)));
    assert_eq!(message.handled, Some(message.tag + Span::from_ms(1)));
}

#[test]
fn what_a_full_queue_drops_comes_200_ms_later_and_delays_what_is_behind() {
    // Noise twice the rate of the link fills the queue between the bridges for 16 ms of 400. One
    // message in eight is sent meanwhile, not the first, and none is near enough to show its loss
    // to the sender.
    let mut network = two_bridges(1_000, 12_300, 20, 380);
    let (talker, listener) = (NodeId(0), NodeId(1));
    let (interval, phase) = (Span::from_ms(250), Span::from_ms(265));
    add(&mut network, TcpFlow { interval, phase, ..flow(talker, listener) });
    let (seen, engine) = run(&network, 3, 10_000 * MS);
    let observed = &seen[0];
    let latency = |at: usize| {
        let message = observed.messages[at];
        message.receive.map(|receive| (receive - message.capture).as_ns())
    };
    let latencies: Vec<_> = (0..observed.messages.len()).filter_map(latency).collect();
    assert_eq!((observed.messages.len(), latencies.len()), (39, 39), "nothing is lost");
    assert!(observed.timeouts > 0 && observed.retransmitted > 0);
    let slowest = latencies.iter().copied().max().expect("messages");
    assert!(slowest > 200 * MS && slowest < 210 * MS, "{slowest}");
    // The others wait in the queue at most: 340 frames of 12.3 µs.
    let slow = latencies.iter().filter(|latency| **latency > 5 * MS).count() as u64;
    assert!(slow > 0 && slow <= observed.timeouts, "{slow} of {}", observed.timeouts);
    // All in order.
    let receipts: Vec<_> = observed.messages.iter().filter_map(|m| m.receive).collect();
    assert!(receipts.is_sorted());
    // The talker's port has sent all segments, and nothing else.
    assert_eq!(engine.port_counters(PortId(2)).sent.iter().sum::<u64>(), observed.segments);
    assert_eq!(engine.port_counters(PortId(8)).sent.iter().sum::<u64>(), observed.acknowledgements);
}

#[test]
fn a_link_that_fails_delays_messages_and_loses_none() {
    let (mut network, talker, listener) = one_bridge();
    add(&mut network, flow(talker, listener));
    network.fault(FaultKind::LinkDown(LinkId(1)), 55 * MS, 95 * MS);
    let (seen, _) = run(&network, 1, 1_000 * MS);
    let observed = &seen[0];
    let received = observed.messages.iter().filter(|m| m.receive.is_some()).count();
    assert_eq!((observed.messages.len(), received), (100, 100));
    let slowest = observed.messages.iter().filter_map(|m| Some(m.receive? - m.capture)).max();
    // What is sent after the failure gives duplicate acknowledgements: the third sends again.
    let slowest = slowest.expect("messages");
    assert!(slowest > Span::from_ms(40) && slowest < Span::from_ms(61), "{slowest}");
    assert_eq!((observed.fast_retransmits, observed.timeouts), (1, 0));
}

#[test]
fn nagle_with_delayed_acknowledgements_costs_40_ms() {
    let (mut network, talker, listener) = one_bridge();
    let interval = Span::from_ms(100);
    let slow = TcpFlow { nagle: true, delayed_ack: true, interval, ..flow(talker, listener) };
    add(&mut network, slow);
    add(&mut network, TcpFlow { interval, ..flow(talker, listener) });
    let (seen, _) = run(&network, 1, 2_000 * MS);
    let latency = |flow: usize, at: usize| {
        let message = seen[flow].messages[at];
        (message.receive.expect("it is there") - message.capture).as_ns()
    };
    // The first 16 segments are acknowledged at once.
    assert!((0..8).all(|at| latency(0, at) < MS), "{}", latency(0, 7));
    assert!((8..19).all(|at| (40 * MS..41 * MS).contains(&latency(0, at))), "{}", latency(0, 9));
    assert!((0..19).all(|at| latency(1, at) < MS));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_flows_through_any_noise_keep_their_order_and_agree_with_the_ports(
        seed: u64,
        writes in proptest::collection::vec(1..4_000u32, 1..4),
        interval_us in 500..20_000i64,
        queue in 3..60u32,
        noise_interval in 8_000..40_000i64,
        switches: [bool; 2],
        lag in 0..3_000i64,
    ) {
        let mut network = two_bridges(100, 1_000_000_000, 1, 0);
        let (left, right) = (NodeId(5), NodeId(6));
        network.limits(left, queue, u32::MAX);
        network.limits(right, queue, u32::MAX);
        let spec = NoiseSpec {
            payload: 300,
            interval: noise_interval,
            jitter: true,
            start: 0,
            on: 20 * MS,
            off: 15 * MS,
        };
        network.noise(NodeId(2), NodeId(4), spec);
        let [talker, listener] = [NodeId(0), NodeId(1)];
        let lag = Delay::Interval { min: Span::ZERO, max: Span::from_us(lag) };
        let (nagle, delayed_ack) = (switches[0], switches[1]);
        let interval = Span::from_us(interval_us);
        let writes: Vec<_> = writes.into_iter().map(Octets::new).collect();
        add(&mut network, TcpFlow {
            writes, interval, lag, nagle, delayed_ack, ..flow(talker, listener)
        });
        add(&mut network, flow(listener, talker));
        let (seen, engine) = run(&network, seed, 1_000 * MS);
        for observed in &seen {
            let there: Vec<_> = observed.messages.iter().map(|m| m.receive.is_some()).collect();
            prop_assert!(there.is_sorted_by(|a, b| a >= b), "a message overtook another");
            let receipts: Vec<_> = observed.messages.iter().filter_map(|m| m.receive).collect();
            prop_assert!(receipts.is_sorted());
            for message in &observed.messages {
                prop_assert!(message.capture >= message.tag);
                prop_assert!(message.receive.is_none_or(|at| at > message.capture));
                // Nothing is waited for.
                prop_assert!(message.handled == message.receive);
            }
            prop_assert!(observed.retransmitted <= observed.segments);
        }
        // Each host's port sent the segments of one flow and the acknowledgements of the other, but
        // for what is queued there at the end.
        for (port, one, other) in [(PortId(2), 0, 1), (PortId(8), 1, 0)] {
            let sent = engine.port_counters(port).sent.iter().sum::<u64>();
            let given = seen[one].segments + seen[other].acknowledgements;
            prop_assert!(sent <= given && sent + 400 > given, "{sent} of {given}");
        }
        // The same again is the same.
        prop_assert!(run(&network, seed, 1_000 * MS).0 == seen);
    }
}
