//! Repetitions, and the search for the worst case.

use crate::network::{Network, every, star};
use onbeat_model::observed::Observed;
use onbeat_model::stream::Source;
use onbeat_model::system::{Class, Delay, NodeId, NodeKind};
use onbeat_model::time::{ClockError, NetTime, Span};
use onbeat_model::units::Octets;
use onbeat_net::{
    Capture, FRAMES_MAX, OCTETS_MAX, Output, Phases, Simulation, simulate, simulate_one,
};

fn simulation(phases: Phases, repetitions: u32) -> Simulation {
    Simulation { duration: Span::from_ms(10), seed: 1, repetitions, phases }
}

fn run(network: &Network, phases: Phases, repetitions: u32) -> Observed {
    let simulation = simulation(phases, repetitions);
    simulate(&network.system, &network.plan, &simulation, &mut |_, _| true).expect("room")
}

/// Streams of 100 octets each millisecond from all hosts but the last to that one.
fn converging(hosts: usize) -> Network {
    let (mut network, hosts, _) = star(hosts);
    let (to, from) = hosts.split_last().unwrap();
    for (at, from) in from.iter().enumerate() {
        network.stream(*from, &[*to], [100, 100], every(1_000_000));
        network.system.streams[at].phase = Span::from_us(100 * at as i64);
    }
    network
}

fn worst(observed: &Observed) -> Vec<i64> {
    let max = |flow: &onbeat_model::observed::FlowObserved| flow.listeners[0].max;
    observed.streams.iter().map(|flow| max(flow).map_or(0, Span::as_ns)).collect()
}

/// Two links of 864 + 50 ns, 1 µs in the bridge.
const IDLE: i64 = 2 * 914 + 1_000;

#[test]
fn aligned_phases_make_every_stream_wait_for_all_others() {
    let network = converging(6);
    assert_eq!(worst(&run(&network, Phases::Described, 1)), [IDLE; 5]);
    // Four frames of 960 ns arrive one nanosecond before it.
    assert_eq!(worst(&run(&network, Phases::Aligned, 5)), [IDLE + 4 * 960 - 1; 5]);
    let random = run(&network, Phases::Random, 5);
    assert!(worst(&random).iter().all(|max| (IDLE..IDLE + 3 * 960).contains(max)));
}

#[test]
fn an_aligned_frame_waits_for_higher_queues_and_one_longest_lower_frame() {
    let mut network = converging(6);
    for (stream, class) in [(1, 5), (2, 3), (3, 3)] {
        network.system.streams[stream].traffic_class = class;
    }
    network.system.streams[2].frame = [Octets::new(68), Octets::new(1_500)];
    // One of its class and one above, each a nanosecond before it; and the longer of the lower
    // ones, another one before these.
    let observed = run(&network, Phases::Aligned, 5);
    assert_eq!(worst(&observed)[0], IDLE + 2 * 960 + 1_520 * 8 - 2);
}

#[test]
fn aligned_frames_meet_the_followed_one_when_it_is_late_already() {
    // A line of three bridges; one stream all along, one joins at the second and one at the
    // third bridge, from hosts with other clocks, all to the last host.
    let mut network = Network::new();
    let hosts: Vec<NodeId> = (0..5).map(|_| network.host()).collect();
    let bridges = [(); 3].map(|()| network.bridge(1_000));
    network.link(bridges[0], bridges[1], 1_000, 50);
    network.link(bridges[1], bridges[2], 1_000, 50);
    for (host, bridge) in [(0, 0), (1, 0), (2, 1), (3, 2), (4, 2)] {
        network.link(hosts[host], bridges[bridge], 1_000, 50);
    }
    for host in 0..4 {
        network.stream(hosts[host], &hosts[4..], [200, 200], every(1_000_000));
        let offset = Span::from_us(70 * host as i64 - 100);
        network.system.nodes[host].clock = ClockError { offset, ..ClockError::default() };
        let late = Delay::Interval { min: Span::from_us(1), max: Span::from_us(1) };
        network.delays(hosts[host], late.clone(), Delay::Zero, late);
    }
    // 1760 ns a frame. Idle: 1 µs, four links of 1664 + 50 ns and three bridges. At the first
    // bridge it waits for a frame that came 1 ns before it and then stays ahead, back to back:
    // when the followed one comes to the next bridge, that frame is just gone, and the one that
    // joins there has waited for it and begins. So at the third.
    let idle = 1_000 + 4 * 1_714 + 3 * 1_000;
    assert_eq!(worst(&run(&network, Phases::Aligned, 8))[0], idle + 3 * 1_760 - 1);
}

#[test]
fn bursts_and_jitter_come_at_their_worst() {
    let mut network = converging(4);
    network.system.streams[1].source = Source::Bursty { interval: Span::from_ms(1), frames: 4 };
    network.system.streams[2].source =
        Source::Periodic { interval: Span::from_us(100), jitter: Span::from_us(250) };
    // Four of the burst and three of the other (0, 100 and 200 µs at once), which come back to
    // back over two links: 960 ns apart, and leave alternately. The last are just in time; of
    // the four and three before, the port has by then sent for 3 · 960 ns.
    let observed = run(&network, Phases::Aligned, 3);
    assert_eq!(worst(&observed)[0], IDLE + (7 - 3) * 960 - 1);
    assert!(observed.streams[2].released > 290);
}

#[test]
fn a_simulation_is_its_repetitions_in_order_and_the_same_each_time() {
    let mut network = converging(5);
    let spread = Delay::Interval { min: Span::ZERO, max: Span::from_us(3) };
    network.delays(NodeId(0), spread.clone(), spread.clone(), spread);
    network.channel(NodeId(0), &[NodeId(1)], Some(Class::A));
    network.shape_all(100, 1);
    for phases in [Phases::Described, Phases::Random, Phases::Aligned] {
        let whole = run(&network, phases, 4);
        assert_eq!(run(&network, phases, 4), whole);
        let mut parts = Observed::default();
        let simulation = simulation(phases, 4);
        for at in 0..4 {
            let (system, plan) = (&network.system, &network.plan);
            parts.merge(
                &simulate_one(system, plan, &simulation, at, None, &mut |_| true).expect("room"),
            );
        }
        assert_eq!(parts, whole, "{phases:?}");
        assert_eq!((whole.repetitions, whole.duration), (4, Span::from_ms(40)));
        let received = whole.streams.iter().map(|s| s.listeners[0].frames).sum::<u64>();
        let released = whole.streams.iter().map(|s| s.released).sum::<u64>();
        assert_eq!(received, released);
    }
}

#[test]
fn a_simulation_can_be_stopped_and_says_how_far_it_came() {
    let network = converging(3);
    let simulation = simulation(Phases::Random, 4);
    let mut told = Vec::new();
    let observed = simulate(&network.system, &network.plan, &simulation, &mut |at, now| {
        told.push(at);
        at < 1 || now.as_ns() < 5_000_000
    })
    .expect("room");
    assert_eq!(observed.repetitions, 2);
    let ns = observed.duration.as_ns();
    assert!((15_000_000..16_500_000).contains(&ns), "{ns}");
    assert!(told.is_sorted() && told.last() == Some(&1));
}

#[test]
fn a_capture_gets_every_transmission_of_its_ports_in_order() {
    let network = converging(3);
    let mut seen = Vec::new();
    let ports = network.system.nodes[3].ports.clone();
    let capture = Capture { ports: &ports, sink: &mut |sent| seen.push(sent.clone()) };
    let (simulation, plan) = (simulation(Phases::Described, 1), &network.plan);
    simulate_one(&network.system, plan, &simulation, 0, Some(capture), &mut |_| true)
        .expect("room");
    assert!(seen.is_sorted_by_key(|sent| sent.at) && seen.len() == 20);
    assert!(seen.iter().all(|sent| ports.contains(&sent.port)));
    let first = (seen[0].at.as_ns(), seen[0].released.as_ns(), seen[0].octets);
    assert_eq!(first, (914 + 1_000, 0, 100));
}

#[test]
fn an_engine_goes_no_further_when_more_frames_wait_than_it_keeps() {
    const STACK: Span = Span::from_us(50);
    let (mut network, hosts, _) = star(3);
    let flood = Source::Bursty { frames: 10_000, interval: Span::from_ns(1) };
    network.stream(hosts[0], &[hosts[2]], [1_000, 1_000], flood);
    // Queues have limits; what is in a stack has none.
    let NodeKind::Host(host) = &mut network.system.nodes[hosts[0].index()].kind else { panic!() };
    host.stack_tx = Delay::Interval { min: STACK, max: STACK };
    let simulation = simulation(Phases::Described, 1);
    let full = simulate(&network.system, &network.plan, &simulation, &mut |_, _| true)
        .expect_err("more than is kept");
    assert!(full.frames > FRAMES_MAX && full.frames < FRAMES_MAX + (1 << 17), "{full:?}");
    assert_eq!((full.node, full.at.as_ns() < 1_000), (hosts[0], true), "{full:?}");
    assert!(full.frames_there > full.frames - 10, "{full:?}");
    let text = full.explain(&network.system);
    assert!(text.contains(&network.system.node(hosts[0]).name), "{text}");

    // What a program sends is kept with its octets, and those are fewer.
    let channel = network.channel(hosts[0], &[hosts[2]], None);
    let mut engine = network.engine(1, 0);
    for _ in 0..OCTETS_MAX / 1_400 + 1 {
        engine.send(channel, &[0; 1_400]);
    }
    let mut looks = 0;
    let full = loop {
        looks += 1;
        engine.alarm(engine.now(), looks);
        match engine.advance(engine.now()) {
            Some(Output::Overfull(full)) => break full,
            Some(Output::Woke { token }) => assert_eq!(token, looks),
            other => panic!("{other:?}"),
        }
    };
    assert!(full.frames < FRAMES_MAX, "{full:?}");
    assert_eq!(engine.advance(NetTime::MAX), Some(Output::Overfull(full)), "it is said again");
}
