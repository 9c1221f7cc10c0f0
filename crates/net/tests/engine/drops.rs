//! Full queues.

use crate::network::{Network, arrivals, deliveries, two_bridges};
use onbeat_model::system::{BEST_EFFORT_QUEUE, ChannelId, Class, NodeId, PortId};
use onbeat_model::time::{NetTime, Span};
use onbeat_net::Output;

fn pair(frames: u32, octets: u32) -> (Network, ChannelId, PortId) {
    let mut network = Network::new();
    let (talker, listener) = (network.host(), network.host());
    let port = network.link(talker, listener, 1_000, 0);
    network.limits(talker, frames, octets);
    let channel = network.channel(talker, &[listener], None);
    (network, channel, port)
}

#[test]
fn a_queue_drops_exactly_what_exceeds_its_limits_and_never_the_frame_in_transmission() {
    // Limits, whether the port is already sending a frame, and of six more how many fit.
    for (frames, octets, busy, fit) in [
        (3, 1_000_000, false, 3),
        (3, 1_000_000, true, 3),
        (6, 1_000_000, true, 6),
        (100, 4 * 68, true, 4),
        (100, 5 * 68 - 1, true, 4),
        (100, 5 * 68 - 1, false, 4),
        (0, 1_000_000, false, 0),
    ] {
        let (network, channel, port) = pair(frames, octets);
        let mut engine = network.engine(1, 0);
        if busy {
            engine.send(channel, &[0; 64]);
            deliveries(&mut engine, 0);
        }
        for _ in 0..6 {
            engine.send(channel, &[0; 64]);
        }
        let seen = deliveries(&mut engine, i64::MAX);
        assert_eq!(seen.len(), fit + usize::from(busy), "{frames} {octets} {busy}");
        let counters = engine.port_counters(port);
        assert_eq!(counters.sent[BEST_EFFORT_QUEUE], seen.len() as u64);
        assert_eq!(counters.dropped[BEST_EFFORT_QUEUE], 6 - fit as u64);
        assert_eq!(counters.deepest_frames[BEST_EFFORT_QUEUE], fit as u32);
        assert_eq!(counters.deepest_octets[BEST_EFFORT_QUEUE], fit as u32 * 68);
        assert_eq!(counters.waiting, [0; 8]);
        assert_eq!(engine.frames_under_way(), 0);
    }
}

#[test]
fn the_last_frame_of_a_full_queue_waits_for_as_many_frames_as_the_limit() {
    let limit = 50;
    let (network, channel, _) = pair(limit, u32::MAX);
    let mut engine = network.engine(1, 0);
    engine.send(channel, &[0; 1_518]);
    deliveries(&mut engine, 0);
    for _ in 0..limit + 1 {
        engine.send(channel, &[0; 1_518]);
    }
    let seen = deliveries(&mut engine, i64::MAX);
    // Ahead of it: the frame in transmission, just begun, and limit − 1 in the queue.
    let wait = i64::from(limit) * 1_542 * 8;
    assert_eq!(arrivals(&seen, channel).last(), Some(&(wait + 1_530 * 8)));
}

#[test]
fn a_full_queue_of_one_class_leaves_the_others_alone() {
    let mut network = Network::new();
    let (talker, listener) = (network.host(), network.host());
    network.link(talker, listener, 1_000, 0);
    network.limits(talker, 2, u32::MAX);
    let best_effort = network.channel(talker, &[listener], None);
    let protected = network.channel(talker, &[listener], Some(Class::A));
    network.shape_all(10, 1);
    let mut engine = network.engine(1, 0);
    for channel in [best_effort; 9].into_iter().chain([protected; 2]) {
        engine.send(channel, &[0; 64]);
    }
    let seen = deliveries(&mut engine, i64::MAX);
    assert_eq!(arrivals(&seen, best_effort).len(), 2);
    assert_eq!(arrivals(&seen, protected).len(), 2);
}

/// Sends a message every 200 µs for 120 ms through noise that is on for 30 ms and off for 30 ms;
/// returns when each was sent, and its latency if it came.
fn through_noise(class: Option<Class>) -> Vec<(i64, Option<i64>)> {
    let mut network = two_bridges(1_000, 14_771, 30, 30);
    let channel = network.channel(NodeId(0), &[NodeId(1)], class);
    network.shape_all(10, 1);
    let mut engine = network.engine(1, i64::MAX);
    let mut messages: Vec<(i64, Option<i64>)> = Vec::new();
    let period = Span::from_us(200);
    engine.alarm(NetTime::ZERO, 0);
    while let Some(output) = engine.advance(NetTime::from_ns(120_000_000)) {
        let now = engine.now();
        match output {
            Output::Overfull(overfull) => panic!("{overfull:?}"),
            Output::Woke { .. } => {
                let mut octets = [0; 64];
                octets[..8].copy_from_slice(&(messages.len() as u64).to_le_bytes());
                engine.send(channel, &octets);
                messages.push((now.as_ns(), None));
                engine.alarm(now + period, 0);
            }
            Output::Delivered { .. } => {
                let number = engine.delivered_frame()[..8].try_into().map(u64::from_le_bytes);
                let message = &mut messages[number.unwrap() as usize];
                assert_eq!(message.1.replace(now.as_ns() - message.0), None);
            }
        }
    }
    messages.truncate(550);
    messages
}

/// Three links of 1 Gb/s with 50 ns, two bridges with 1 µs.
const IDLE: i64 = 3 * (76 * 8 + 50) + 2 * 1_000;
const NOISE_WIRE: i64 = 1_536 * 8;

#[test]
fn without_protection_latency_climbs_to_the_full_queue_and_frames_are_lost_only_under_noise() {
    let messages = through_noise(None);
    let lost: Vec<i64> = messages.iter().filter(|m| m.1.is_none()).map(|m| m.0).collect();
    assert!(lost.len() > 20, "{}", lost.len());
    // 340 frames of 12,288 ns fit. Two sources of 832 Mb/s fill them in 6.3 ms, so nothing is lost
    // in the first 5 ms of noise, and nothing once the last of it has left its hosts, well before
    // the message that follows the end of the noise by 200 µs.
    for at in lost {
        let phase = at % 60_000_000;
        assert!((5_000_000..30_200_000).contains(&phase), "{at}");
    }
    let worst = messages.iter().filter_map(|m| m.1).max().unwrap() - IDLE;
    // Of the frames ahead in a full queue up to 21 may be earlier messages, 17 times shorter.
    assert!((318 * NOISE_WIRE..=340 * NOISE_WIRE).contains(&worst), "{worst}");
    let quiet = messages.iter().filter(|m| (40_000_000..60_000_000).contains(&(m.0 % 60_000_000)));
    assert!(quiet.clone().count() > 100);
    assert!(quiet.into_iter().all(|m| m.1 == Some(IDLE)));
}

#[test]
fn with_protection_nothing_is_lost_and_each_message_waits_for_one_noise_frame_at_most() {
    let messages = through_noise(Some(Class::A));
    let worst = messages.iter().map(|m| m.1.expect("no loss")).max().unwrap();
    assert!((IDLE + NOISE_WIRE / 2..=IDLE + NOISE_WIRE).contains(&worst), "{worst}");
}

#[test]
fn load_samples_show_what_was_offered_and_that_no_more_than_the_link_carries_comes_through() {
    let network = two_bridges(1_000, 14_771, 30, 30);
    let mut engine = network.engine(1, i64::MAX);
    assert_eq!(engine.advance(NetTime::from_ns(60_000_000)), None);
    let load = engine.load();
    assert_eq!(load.len(), 60 * 2);
    for (bin, pair) in load.chunks(2).enumerate() {
        assert!(pair.iter().all(|s| s.at.as_ns() == bin as i64 * 1_000_000));
        let offered: u64 = pair.iter().map(|s| s.offered_bits).sum();
        let delivered: u64 = pair.iter().map(|s| s.delivered_bits).sum();
        match bin {
            // Two sources, a frame of 12,288 bits each 14,771 ns on average: 1.664 Gb/s.
            0..30 => assert!((1_500_000..1_800_000).contains(&offered), "{bin}: {offered}"),
            _ => assert_eq!(offered, 0),
        }
        match bin {
            // One frame may lie across each boundary of a bin.
            1..=33 => assert!((987_000..=1_012_288).contains(&delivered), "{bin}: {delivered}"),
            // The first bin fills the path, the 35th empties the queue.
            0 | 34 => assert!(delivered < 1_000_000),
            _ => assert_eq!(delivered, 0),
        }
    }
}
