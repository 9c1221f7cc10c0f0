//! Latencies of idle and nearly idle networks, to the nanosecond.

use crate::network::{Network, arrivals, deliveries};
use onbeat_model::system::{ChannelId, Class, Delay};
use onbeat_model::time::{NetTime, Span};

/// One link per item: its rate in Mb/s and its propagation in ns. Bridges forward in 1,500 ns.
fn chain(links: &[(u64, i64)], class: Option<Class>) -> (Network, ChannelId) {
    let mut network = Network::new();
    let talker = network.host();
    let mut node = talker;
    for (at, (mbps, propagation)) in links.iter().enumerate() {
        let last = at + 1 == links.len();
        let next = if last { network.host() } else { network.bridge(1_500) };
        network.link(node, next, *mbps, *propagation);
        node = next;
    }
    let channel = network.channel(talker, &[node], class);
    network.shape_all(5, 5);
    (network, channel)
}

#[test]
fn the_latency_of_an_idle_network_is_the_sum_of_its_parts() {
    // Octets handed over, links, and the sum: (8 preamble + octets + 4 FCS) × time per octet, and
    // propagation, per link; forwarding per bridge. 80 ns per octet at 100 Mb/s, 8 ns at 1 Gb/s.
    type Links = &'static [(u64, i64)];
    let cases: [(usize, Links, i64); 9] = [
        // One link. 64 + 4 is the minimum of 68; shorter frames count as padded.
        (64, &[(100, 0)], (8 + 68) * 80),
        (50, &[(100, 500)], (8 + 68) * 80 + 500),
        (64, &[(1_000, 500)], (8 + 68) * 8 + 500),
        (1_518, &[(1_000, 50)], (8 + 1_522) * 8 + 50),
        // Two links, one bridge.
        (64, &[(100, 500), (100, 500)], 2 * (76 * 80 + 500) + 1_500),
        (64, &[(1_000, 500), (1_000, 250)], 2 * (76 * 8) + 500 + 250 + 1_500),
        (300, &[(1_000, 10), (100, 20)], 312 * 8 + 10 + 1_500 + 312 * 80 + 20),
        // Three links, two bridges.
        (64, &[(1_000, 50), (1_000, 50), (1_000, 50)], 3 * (76 * 8 + 50) + 2 * 1_500),
        (1_518, &[(100, 50), (100, 50), (100, 50)], 3 * (1_530 * 80 + 50) + 2 * 1_500),
    ];
    for class in [None, Some(Class::A), Some(Class::B), Some(Class::Scheduled)] {
        for (octets, links, latency) in cases {
            let (network, channel) = chain(links, class);
            let mut engine = network.engine(1, 0);
            let start = 1_000_000;
            assert_eq!(deliveries(&mut engine, start), []);
            assert_eq!(engine.send(channel, &vec![7; octets]), NetTime::from_ns(start));
            let seen = deliveries(&mut engine, i64::MAX);
            assert_eq!(seen.len(), 1);
            let expected = start + latency;
            assert_eq!((seen[0].arrived, seen[0].at), (expected, expected), "{octets} {links:?}");
            assert_eq!(seen[0].octets, vec![7; octets]);
        }
    }
}

#[test]
fn times_that_are_no_whole_nanoseconds_round_up_per_transmission() {
    // 700 Mb/s: 76 octets take 608 bit / 0.7 = 868.57 ns, so 869; the port is free after
    // 88 octets, 704 / 0.7 = 1005.71 ns, so 1006.
    let (network, channel) = chain(&[(700, 0)], None);
    let mut engine = network.engine(1, 0);
    for _ in 0..3 {
        engine.send(channel, &[0; 64]);
    }
    let seen = deliveries(&mut engine, i64::MAX);
    assert_eq!(arrivals(&seen, channel), [869, 1_006 + 869, 2 * 1_006 + 869]);
}

#[test]
fn stack_delays_add_before_the_port_and_after_the_arrival() {
    let fixed = |us| Delay::Interval { min: Span::from_us(us), max: Span::from_us(us) };
    let (mut network, channel) = chain(&[(1_000, 50)], Some(Class::A));
    let hosts = network.plan.channels[0].paths[0].clone();
    assert_eq!(hosts.len(), 1);
    let [talker, listener] = [0, 1].map(onbeat_model::system::NodeId);
    network.delays(talker, fixed(7), fixed(1_000), fixed(1_000));
    network.delays(listener, fixed(1_000), fixed(9), fixed(1_000));
    let mut engine = network.engine(1, 0);
    assert_eq!(engine.send(channel, &[0; 64]), NetTime::from_ns(7_000));
    let seen = deliveries(&mut engine, i64::MAX);
    let arrived = 7_000 + 76 * 8 + 50;
    assert_eq!((seen[0].arrived, seen[0].at), (arrived, arrived + 9_000));
}

#[test]
fn frames_of_one_channel_never_overtake_each_other_in_a_stack() {
    let spread = || Delay::Interval { min: Span::ZERO, max: Span::from_us(50) };
    let (mut network, channel) = chain(&[(1_000, 50)], None);
    for host in [0, 1].map(onbeat_model::system::NodeId) {
        network.delays(host, spread(), spread(), Delay::Zero);
    }
    let mut engine = network.engine(3, 0);
    let mut queued = Vec::new();
    for number in 0..100 {
        queued.push(engine.send(channel, &[number; 64]));
    }
    assert!(queued.is_sorted());
    assert!(queued.windows(2).any(|w| w[0] < w[1]));
    let seen = deliveries(&mut engine, i64::MAX);
    let numbers: Vec<u8> = seen.iter().map(|d| d.octets[0]).collect();
    assert_eq!(numbers, (0..100).collect::<Vec<u8>>());
    assert!(seen.is_sorted_by_key(|d| d.at));
    assert!(seen.iter().all(|d| d.at - d.arrived >= 0));
}

#[test]
fn a_frame_just_after_a_longest_best_effort_frame_waits_exactly_for_it_and_its_gap() {
    for (mbps, octet_ns) in [(100, 80), (1_000, 8)] {
        let (mut network, protected) = chain(&[(mbps, 50)], Some(Class::A));
        let [talker, listener] = [0, 1].map(onbeat_model::system::NodeId);
        let best_effort = network.channel(talker, &[listener], None);
        let mut engine = network.engine(1, 0);
        engine.send(best_effort, &[0; 1_518]);
        assert_eq!(deliveries(&mut engine, 1), []);
        engine.send(protected, &[0; 64]);
        let seen = deliveries(&mut engine, i64::MAX);
        // It is queued at 1 ns and starts when 8 + 1522 + 12 octets are over.
        let start = (8 + 1_522 + 12) * octet_ns;
        assert_eq!(arrivals(&seen, protected), [start + 76 * octet_ns + 50], "{mbps} Mb/s");
    }
}

#[test]
fn of_frames_that_are_queued_at_one_instant_the_highest_queue_goes_first() {
    let (mut network, scheduled) = chain(&[(1_000, 0)], Some(Class::Scheduled));
    let [talker, listener] = [0, 1].map(onbeat_model::system::NodeId);
    let best_effort = network.channel(talker, &[listener], None);
    let class_b = network.channel(talker, &[listener], Some(Class::B));
    let class_a = network.channel(talker, &[listener], Some(Class::A));
    let mut engine = network.engine(1, 0);
    for channel in [best_effort, scheduled, class_b, class_a] {
        engine.send(channel, &[0; 64]);
    }
    let order: Vec<_> = deliveries(&mut engine, i64::MAX).iter().map(|d| d.channel).collect();
    assert_eq!(order, [class_a, class_b, scheduled, best_effort]);
}
