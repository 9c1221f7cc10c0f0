//! The credit-based shaper against hand calculation: frames of 88 octets on the wire, 704 bits, on
//! one link of 1 Gb/s, 704 ns each.

use crate::network::{Network, arrivals, deliveries};
use onbeat_model::system::{ChannelId, Class};

/// Two hosts and one link with no propagation; idleSlopes in Mb/s. Channels: best effort, A, B.
fn pair(a_mbps: u64, b_mbps: u64) -> (Network, [ChannelId; 3]) {
    let mut network = Network::new();
    let (talker, listener) = (network.host(), network.host());
    network.link(talker, listener, 1_000, 0);
    let classes = [None, Some(Class::A), Some(Class::B)];
    let channels = classes.map(|class| network.channel(talker, &[listener], class));
    network.shape_all(a_mbps, b_mbps);
    (network, channels)
}

/// From the start of a transmission to the arrival: 76 octets.
const FLIGHT: i64 = 76 * 8;

/// When each transmission of a channel started.
fn starts(seen: &[crate::network::Delivery], channel: ChannelId) -> Vec<i64> {
    arrivals(seen, channel).iter().map(|at| at - FLIGHT).collect()
}

#[test]
fn back_to_back_frames_leave_at_idle_slope() {
    // 10 Mb/s: falls (10 − 1000) Mb/s × 704 ns = −696.96 bit, recovers in 69,696 ns:
    // one frame per 704 + 69,696 = 70,400 ns.
    let (network, [_, class_a, _]) = pair(10, 1);
    let mut engine = network.engine(1, 0);
    for _ in 0..4 {
        engine.send(class_a, &[0; 64]);
    }
    let seen = deliveries(&mut engine, i64::MAX);
    assert_eq!(starts(&seen, class_a), [0, 70_400, 140_800, 211_200]);
}

#[test]
fn rounding_never_makes_a_queue_lose_bandwidth_over_time() {
    // 3 Mb/s: 704 bit take 234,666.67 ns. Frame k starts at k times that, rounded up each time.
    let (network, [_, class_a, _]) = pair(3, 1);
    let mut engine = network.engine(1, 0);
    for _ in 0..100 {
        engine.send(class_a, &[0; 64]);
    }
    let seen = deliveries(&mut engine, i64::MAX);
    let expected: Vec<i64> = (0..100).map(|k: i64| (k * 704_000 + 2) / 3).collect();
    assert_eq!(starts(&seen, class_a), expected);
}

#[test]
fn credit_that_was_gathered_while_waiting_is_spent_on_a_burst() {
    let (network, [best_effort, class_a, _]) = pair(100, 1);
    let mut engine = network.engine(1, 0);
    engine.send(best_effort, &[0; 1_518]);
    deliveries(&mut engine, 1);
    for _ in 0..4 {
        engine.send(class_a, &[0; 64]);
    }
    let seen = deliveries(&mut engine, i64::MAX);
    // Queued at 1, free at 1542 × 8 = 12,336: credit 0.1 × 12,335 = 1233.5 bit. Each frame
    // costs 704 − 70.4 = 633.6: 599.9 at 13,040, −33.7 at 13,744, zero 337 ns later at 14,081;
    // from then on one per 7,040 ns.
    assert_eq!(starts(&seen, class_a), [12_336, 13_040, 14_081, 14_081 + 7_040]);
}

#[test]
fn credit_that_was_left_over_is_gone_when_the_queue_is_empty() {
    let (network, [best_effort, class_a, _]) = pair(100, 1);
    let mut engine = network.engine(1, 0);
    engine.send(best_effort, &[0; 1_518]);
    deliveries(&mut engine, 1);
    engine.send(class_a, &[0; 64]);
    // It ends at 13,040 with 599.9 bit of credit left, which would allow a burst of two later.
    assert_eq!(deliveries(&mut engine, 1_000_000).len(), 2);
    engine.send(class_a, &[0; 64]);
    engine.send(class_a, &[0; 64]);
    let seen = deliveries(&mut engine, i64::MAX);
    assert_eq!(starts(&seen, class_a), [1_000_000, 1_007_040]);
}

#[test]
fn an_empty_queue_with_negative_credit_recovers_before_it_sends_again() {
    let (network, [_, class_a, _]) = pair(10, 1);
    let mut engine = network.engine(1, 0);
    engine.send(class_a, &[0; 64]);
    assert_eq!(deliveries(&mut engine, 50_000).len(), 1);
    // Credit is zero again at 70,400 (see above), with or without a frame waiting.
    engine.send(class_a, &[0; 64]);
    let seen = deliveries(&mut engine, i64::MAX);
    assert_eq!(starts(&seen, class_a), [70_400]);
}

#[test]
fn class_b_yields_to_class_a_and_both_keep_their_slopes() {
    let (network, [best_effort, class_a, class_b]) = pair(100, 50);
    let mut engine = network.engine(1, 0);
    for _ in 0..3 {
        engine.send(class_b, &[0; 64]);
        engine.send(class_a, &[0; 64]);
        engine.send(best_effort, &[0; 64]);
    }
    let seen = deliveries(&mut engine, i64::MAX);
    // A may send every 704 / 0.1 = 7,040 ns. B waits 704 ns for the first A (+35.2 bit) and may
    // send again when 0.05 t = 704, at 14,080; there A comes first, so it starts at 14,784; the
    // third when 0.05 t = 1,408, at 28,160. Best effort fills the rest.
    assert_eq!(starts(&seen, class_a), [0, 7_040, 14_080]);
    assert_eq!(starts(&seen, class_b), [704, 14_784, 28_160]);
    assert_eq!(starts(&seen, best_effort), [1_408, 2_112, 2_816]);
}

#[test]
fn best_effort_takes_what_shaped_queues_leave_and_delays_them_by_one_frame() {
    let (network, [best_effort, class_a, _]) = pair(10, 1);
    let mut engine = network.engine(1, 0);
    for _ in 0..10 {
        engine.send(best_effort, &[0; 1_518]);
    }
    for _ in 0..2 {
        engine.send(class_a, &[0; 64]);
    }
    let seen = deliveries(&mut engine, i64::MAX);
    // Best effort starts at 704 + n × 12,336. A has credit at 70,400, in its sixth frame, which
    // ends at 704 + 6 × 12,336 = 74,720.
    assert_eq!(starts(&seen, class_a), [0, 74_720]);
    let ends: Vec<i64> =
        (0..10).map(|n| 704 + n * 12_336 + if n < 6 { 0 } else { 704 } + 1_530 * 8).collect();
    assert_eq!(arrivals(&seen, best_effort), ends);
}

#[test]
#[should_panic(expected = "needs_credit")]
fn a_class_that_nothing_is_reserved_for_is_refused_at_the_start() {
    pair(0, 1).0.engine(1, 0);
}
