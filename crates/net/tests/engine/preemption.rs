//! Frame preemption against hand calculation: one link of 1 Gb/s, 8 ns per octet, best effort
//! preemptable, the scheduled class express. Times of an uninterrupted best-effort frame of 1522
//! octets from 0: last octet out at 1,530 × 8 = 12,240, port free at 1,542 × 8 = 12,336.

use crate::network::{Network, Send, arrivals, run, run_on};
use onbeat_model::port::{GateControl, GateEntry};
use onbeat_model::system::{ChannelId, Class, PortId};
use onbeat_model::time::{NetTime, Span};

/// Two hosts and one link. Channels: best effort and class A preemptable, scheduled express.
fn pair(class_a_mbps: u64) -> (Network, [ChannelId; 3]) {
    let mut network = Network::new();
    let (talker, listener) = (network.host(), network.host());
    let port = network.link(talker, listener, 1_000, 0);
    let classes = [None, Some(Class::Scheduled), Some(Class::A)];
    let channels = classes.map(|class| network.channel(talker, &[listener], class));
    network.shape_all(class_a_mbps, 1);
    network.plan.ports[port.index()].settings.preemptable = !(1 << 5);
    (network, channels)
}

/// When the only express frame, of 68 octets, started, and when the best-effort one arrived.
fn one_of_each(octets: usize, express_at: i64) -> (i64, i64) {
    let (network, [best_effort, express, _]) = pair(100);
    let seen = run(&network, &[(0, best_effort, octets - 4), (express_at, express, 64)]);
    (arrivals(&seen, express)[0] - 76 * 8, arrivals(&seen, best_effort)[0])
}

#[test]
fn an_express_frame_cuts_at_the_end_of_the_octet_and_starts_after_check_and_gap() {
    // 125 octets are out: 117 after the preamble; 1,405 are left. 16 octets later, 128 ns, the
    // express frame starts; the rest ends after 704 ns and 24 octets more.
    assert_eq!(one_of_each(1_522, 1_000), (1_128, 12_240 + 704 + 192));
    // The 126th octet ends at 1,008.
    assert_eq!(one_of_each(1_522, 1_001), (1_136, 13_136));
}

#[test]
fn a_first_fragment_has_60_octets_and_its_check() {
    // 8 + 60 + 4 + 12 octets.
    assert_eq!(one_of_each(1_522, 1), (672, 13_136));
    // 60 octets are out at 68 × 8 = 544.
    assert_eq!(one_of_each(1_522, 544), (672, 13_136));
    assert_eq!(one_of_each(1_522, 545), (680, 13_136));
}

#[test]
fn no_cut_leaves_less_than_64_octets() {
    // 1,458 octets are out at 1,466 × 8 = 11,728, and 64 are left.
    assert_eq!(one_of_each(1_522, 11_728), (11_856, 13_136));
    assert_eq!(one_of_each(1_522, 11_729), (12_336, 12_240));
    // 124 = 60 + 64 octets can be cut, 123 cannot: then the wait is just below 143 octets.
    assert_eq!(one_of_each(124, 1), (672, (8 + 124) * 8 + 704 + 192));
    assert_eq!(one_of_each(123, 1), (143 * 8, (8 + 123) * 8));
}

#[test]
fn no_express_frame_ever_waits_longer_than_143_octets() {
    for octets in (68..=1_522).step_by(97) {
        for at in (1..(octets as i64 + 20) * 8).step_by(61) {
            let (start, _) = one_of_each(octets, at);
            assert!(start - at < 143 * 8, "{octets} octets, {at}: waits {}", start - at);
        }
    }
}

#[test]
fn a_frame_is_interrupted_as_often_as_express_frames_come_and_all_is_counted() {
    let (network, [best_effort, express, _]) = pair(100);
    let mut engine = network.engine(1, 0);
    let sends =
        [(0, best_effort, 1_518), (1_000, express, 64), (5_000, express, 64), (5_100, express, 64)];
    let seen = run_on(&mut engine, &sends);
    // The rest starts at 1,128 + 704 = 1,832. At 5,000, 396 octets of it are out: cut at
    // 1,832 + 396 × 8 = 5,000; express at 5,128 and 5,832. So 2 cuts, 3 × 704 and 2 × 192.
    let starts: Vec<i64> = arrivals(&seen, express).iter().map(|at| at - 608).collect();
    assert_eq!(starts, [1_128, 5_128, 5_832]);
    assert_eq!(arrivals(&seen, best_effort), [12_240 + 3 * 704 + 2 * 192]);
    let port = engine.port_observed(PortId(0));
    assert_eq!(port.busy, Span::from_ns(12_336 + 3 * 704 + 2 * 192));
    let queue = port.queues[1];
    assert_eq!((queue.sent, queue.sent_octets, queue.preempted), (1, 1_522, 2));
    assert_eq!(port.queues[5].sent, 3);
    assert_eq!(port.queues[5].wait_max, Span::from_ns(732));
}

#[test]
fn an_interrupted_frame_goes_on_before_any_other_preemptable_one() {
    let (network, [best_effort, express, class_a]) = pair(100);
    let sends = [(0, best_effort, 1_518), (900, class_a, 64), (1_000, express, 64)];
    let seen = run(&network, &sends);
    // Free at 13,136 + 96 = 13,232, where class A starts.
    assert_eq!(arrivals(&seen, best_effort), [13_136]);
    assert_eq!(arrivals(&seen, class_a), [13_232 + 608]);
}

#[test]
fn express_frames_go_before_preemptable_ones_that_wait_with_them() {
    let (network, [best_effort, express, class_a]) = pair(100);
    let seen = run(&network, &[(0, class_a, 64), (0, best_effort, 64), (0, express, 64)]);
    let starts = [express, class_a, best_effort].map(|c| arrivals(&seen, c)[0] - 608);
    assert_eq!(starts, [0, 704, 1_408]);
}

#[test]
fn credit_pays_for_the_overhead_of_fragments_and_accrues_during_the_interruption() {
    // Class A at 500 Mb/s: 12,336 + 24 × 8 = 12,528 bit take 25,056 ns. Without preemption: 24,672.
    let (network, [_, express, class_a]) = pair(500);
    let sends = [(0, class_a, 1_518), (0, class_a, 1_518), (1_000, express, 64)];
    assert_eq!(arrivals(&run(&network, &sends), class_a), [13_136, 25_056 + 12_240]);
    let sends = [(0, class_a, 1_518), (0, class_a, 1_518)];
    assert_eq!(arrivals(&run(&network, &sends), class_a), [12_240, 24_672 + 12_240]);
}

#[test]
fn a_queue_with_an_interrupted_frame_is_not_idle() {
    let (network, [_, express, class_a]) = pair(500);
    let mut sends = vec![(0, class_a, 1_518), (1_000, express, 1_518)];
    sends.extend([(1_000, express, 1_518), (1_000, express, 1_518)]);
    // Express from 1,128 to 1,128 + 3 × 12,336 = 38,136; the rest ends at 38,136 +
    // 1,413 × 8 = 49,440 and the port is free at 49,536. Credit there: 24,768 − 12,528 = 12,240.
    // The frames that came at 30,000, when credit was 15,000 − 12,528 > 0, cost 6,168 bit each:
    // one at 49,536 (6,072 left at its end), one at 61,872 (−96 left at 74,208), and one 192 ns
    // later.
    sends.extend([(30_000, class_a, 1_518); 3]);
    let starts: Vec<i64> =
        arrivals(&run(&network, &sends), class_a)[1..].iter().map(|at| at - 12_240).collect();
    assert_eq!(starts, [49_536, 61_872, 74_400]);
}

/// Best effort may send from 0 to 10 µs of each 50; all else always.
fn gated() -> (Network, [ChannelId; 3]) {
    let (mut network, channels) = pair(100);
    let entry = |open, ns| GateEntry { open, span: Span::from_ns(ns) };
    network.plan.ports[0].settings.gates = vec![GateControl {
        base: NetTime::ZERO,
        cycle: Span::from_us(50),
        entries: vec![entry(0xff, 10_000), entry(!2, 40_000)],
        length_aware: true,
    }];
    (network, channels)
}

/// When a best-effort frame of 1000 octets that starts at 0 arrives, with these express frames.
fn gated_arrival(express: &[(i64, usize)]) -> i64 {
    let (network, [best_effort, channel, _]) = gated();
    let mut sends: Vec<Send> = vec![(0, best_effort, 996)];
    sends.extend(express.iter().map(|(at, octets)| (*at, channel, *octets)));
    arrivals(&run(&network, &sends), best_effort)[0]
}

#[test]
fn the_rest_waits_for_its_gate_and_must_fit() {
    assert_eq!(gated_arrival(&[]), 1_008 * 8);
    // Cut at 1,000 with 883 left: 903 × 8 = 7,224 ns more, so it must start by 2,776. Express from
    // 1,128 on for 206 octets on the wire ends at 2,776 exactly.
    assert_eq!(gated_arrival(&[(1_000, 182)]), 2_776 + 891 * 8);
    assert_eq!(gated_arrival(&[(1_000, 183)]), 50_000 + 891 * 8);
    // Express until 1,128 + 12,336 = 13,464: the gate is closed.
    assert_eq!(gated_arrival(&[(1_000, 1_518)]), 50_000 + 891 * 8);
}

#[test]
fn an_express_frame_cuts_when_its_gate_opens() {
    let (mut network, [best_effort, express, _]) = gated();
    let entries = &mut network.plan.ports[0].settings.gates[0].entries;
    // Express opens at 4 µs only; best effort always.
    *entries = [(!32, 4_000), (0xff, 46_000)]
        .map(|(open, ns)| GateEntry { open, span: Span::from_ns(ns) })
        .to_vec();
    let seen = run(&network, &[(0, best_effort, 1_518), (100, express, 64)]);
    // 500 octets are out at 4,000.
    assert_eq!(arrivals(&seen, express), [4_128 + 608]);
    assert_eq!(arrivals(&seen, best_effort), [13_136]);
}

#[test]
fn an_express_frame_that_would_not_fit_after_the_cut_does_not_cut() {
    let (mut network, [best_effort, express, _]) = gated();
    let entries = &mut network.plan.ports[0].settings.gates[0].entries;
    // Express until 2 µs: 704 + 128 ns before is the last cut.
    *entries = [(0xff, 2_000), (!32, 48_000)]
        .map(|(open, ns)| GateEntry { open, span: Span::from_ns(ns) })
        .to_vec();
    let seen = run(&network, &[(0, best_effort, 1_518), (1_168, express, 64)]);
    assert_eq!(arrivals(&seen, express), [1_296 + 608]);
    let seen = run(&network, &[(0, best_effort, 1_518), (1_169, express, 64)]);
    assert_eq!(
        (arrivals(&seen, best_effort), arrivals(&seen, express)),
        (vec![12_240], vec![50_608])
    );
}

#[test]
fn a_preempted_frame_is_forwarded_when_its_last_octet_is_in() {
    let mut network = Network::new();
    let (talker, listener) = (network.host(), network.host());
    let bridge = network.bridge(1_000);
    let first = network.link(talker, bridge, 1_000, 50);
    network.link(bridge, listener, 1_000, 50);
    network.plan.ports[first.index()].settings.preemptable = 1 << 1;
    let best_effort = network.channel(talker, &[listener], None);
    let express = network.channel(talker, &[listener], Some(Class::Scheduled));
    let seen = run(&network, &[(0, best_effort, 1_518), (1_000, express, 64)]);
    // Express: in at 1,128 + 608 + 50, out 1,000 later. Best effort: in at 13,186, out at 14,186.
    assert_eq!(arrivals(&seen, express), [2_786 + 658]);
    assert_eq!(arrivals(&seen, best_effort), [14_186 + 12_240 + 50]);
}
