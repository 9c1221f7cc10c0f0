//! What programs see: multicast, wakes, alarms, steps.

use crate::network::{Network, deliveries};
use onbeat_model::system::{BEST_EFFORT_QUEUE, Class, Delay, NodeId};
use onbeat_model::time::{NetTime, Span};
use onbeat_net::{Engine, Options, Output};

/// Three bridges in a line, a talker at the first, listeners at the first, second and third (two).
fn multicast(class: Option<Class>) -> (Network, onbeat_model::system::ChannelId) {
    let mut network = Network::new();
    let hosts = [(); 5].map(|()| network.host());
    let bridges = [(); 3].map(|()| network.bridge(1_000));
    network.link(bridges[0], bridges[1], 1_000, 0);
    network.link(bridges[1], bridges[2], 1_000, 0);
    for (host, bridge) in hosts.into_iter().zip([0, 0, 1, 2, 2]) {
        network.link(host, bridges[bridge], 1_000, 0);
    }
    let [talker, listeners @ ..] = hosts;
    let channel = network.channel(talker, &listeners, class);
    network.shape_all(10, 10);
    (network, channel)
}

#[test]
fn a_multicast_reaches_every_listener_once_over_each_port_once() {
    for class in [None, Some(Class::A)] {
        let (network, channel) = multicast(class);
        let mut engine = network.engine(1, 0);
        engine.send(channel, b"a message of 64 octets or less, it counts as padded");
        assert_eq!(engine.frames_under_way(), 1);
        let seen = deliveries(&mut engine, i64::MAX);
        // 76 octets of 8 ns per link, 1 µs per bridge.
        let latency = |bridges: i64| (bridges + 1) * 608 + bridges * 1_000;
        let got: Vec<_> = seen.iter().map(|d| (d.listener, d.at)).collect();
        assert_eq!(got, [(0, latency(1)), (1, latency(2)), (2, latency(3)), (3, latency(3))]);
        assert!(seen.iter().all(|d| d.octets.starts_with(b"a message of 64")));
        assert_eq!(engine.frames_under_way(), 0);
        let ports = network.plan.channels[0].tree_ports();
        assert_eq!(ports.len(), 7);
        let sent = |port| engine.port_counters(port).sent.iter().sum::<u64>();
        assert!(ports.into_iter().all(|port| sent(port) == 1));
    }
}

#[test]
fn a_drop_on_one_branch_of_a_multicast_leaves_the_other_branches_alone() {
    let (mut network, channel) = multicast(None);
    // The second bridge lets nothing through; the listener at the first still gets its copy.
    network.limits(NodeId(6), 0, u32::MAX);
    let mut engine = network.engine(1, 0);
    engine.send(channel, &[0; 64]);
    let seen = deliveries(&mut engine, i64::MAX);
    assert_eq!(seen.iter().map(|d| d.listener).collect::<Vec<_>>(), [0]);
    assert_eq!(engine.frames_under_way(), 0);
    let bridge = &network.system.nodes[6];
    let drops = bridge.ports.iter().map(|p| engine.port_counters(*p).dropped[BEST_EFFORT_QUEUE]);
    assert_eq!(drops.sum::<u64>(), 2);
}

fn woken(engine: &mut Engine) -> Vec<(i64, u64)> {
    let mut seen = Vec::new();
    while let Some(output) = engine.advance(NetTime::MAX) {
        let Output::Woke { token } = output else { panic!("{output:?}") };
        seen.push((engine.now().as_ns(), token));
    }
    seen
}

#[test]
fn wakes_and_alarms_come_in_order_of_time_then_node_then_call() {
    let mut network = Network::new();
    let hosts = [network.host(), network.host()];
    let at = NetTime::from_ns;
    let mut engine = network.engine(1, 0);
    assert_eq!(engine.next_event(), None);
    engine.alarm(at(10), 1);
    engine.wake_at(hosts[1], at(10), 2);
    engine.wake_at(hosts[0], at(10), 3);
    engine.wake_at(hosts[0], at(10), 4);
    engine.wake_at(hosts[1], at(5), 5);
    engine.alarm(at(7), 6);
    engine.alarm(at(8), 6);
    engine.cancel(6);
    engine.cancel(99);
    assert_eq!(engine.next_event(), Some(at(5)));
    assert_eq!(engine.advance(at(4)), None);
    assert_eq!(engine.now(), at(4));
    assert_eq!(woken(&mut engine), [(5, 5), (10, 3), (10, 4), (10, 2), (10, 1)]);
    assert_eq!(engine.events(), 5);
}

#[test]
fn a_time_in_the_past_means_now() {
    let mut network = Network::new();
    let host = network.host();
    let mut engine = network.engine(1, 0);
    assert_eq!(engine.advance(NetTime::from_ns(100)), None);
    engine.wake_at(host, NetTime::from_ns(50), 1);
    engine.alarm(NetTime::from_ns(60), 2);
    assert_eq!(engine.next_event(), Some(NetTime::from_ns(100)));
    assert_eq!(woken(&mut engine), [(100, 1), (100, 2)]);
}

#[test]
fn wake_up_delays_are_drawn_unless_the_machine_has_its_own_and_alarms_have_none() {
    let mut network = Network::new();
    let host = network.host();
    let late = Delay::Interval { min: Span::from_ns(300), max: Span::from_ns(400) };
    network.delays(host, Delay::Zero, Delay::Zero, late);
    for (host_delays, range) in [(true, 1_300..=1_400), (false, 1_000..=1_000)] {
        let options = Options {
            seed: 1,
            host_delays,
            load_bin: Span::from_ms(1),
            noise_until: NetTime::ZERO,
            traffic_until: NetTime::ZERO,
            model_channels: false,
        };
        let mut engine = Engine::new(&network.system, &network.plan, options);
        for token in 0..50 {
            engine.wake_at(host, NetTime::from_ns(1_000), token);
        }
        engine.alarm(NetTime::from_ns(1_000), 50);
        let seen = woken(&mut engine);
        assert!(seen.contains(&(1_000, 50)));
        assert_eq!(seen.len(), 51);
        assert!(seen.iter().all(|(at, token)| *token == 50 || range.contains(at)));
    }
}

#[test]
fn what_arrives_at_the_instant_of_a_timeout_is_delivered_before_it() {
    let mut network = Network::new();
    let (talker, listener) = (network.host(), network.host());
    network.link(talker, listener, 1_000, 0);
    let channel = network.channel(talker, &[listener], None);
    let mut engine = network.engine(1, 0);
    engine.alarm(NetTime::from_ns(608), 1);
    engine.send(channel, &[0; 64]);
    let outputs = [engine.advance(NetTime::MAX), engine.advance(NetTime::MAX)];
    let arrived = NetTime::from_ns(608);
    let delivered = Output::Delivered { channel, listener: 0, arrived };
    assert_eq!(outputs, [Some(delivered), Some(Output::Woke { token: 1 })]);
}
