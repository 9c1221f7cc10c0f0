//! Time-aware gates against hand calculation, alone and with the credit-based shaper: one link of
//! 1 Gb/s without propagation; a frame of 68 octets takes 704 ns of it, one of 1522 12,336 ns.

use crate::network::{Network, Send, arrivals, deliveries, run};
use onbeat_model::port::{GateControl, GateEntry};
use onbeat_model::stream::FaultKind;
use onbeat_model::system::{ChannelId, Class, NodeId};
use onbeat_model::time::{ClockError, NetTime, Span};

/// Queue of the scheduled class, of class A and of best effort.
const SCHEDULED: u8 = 1 << 5;
const CLASS_A: u8 = 1 << 7;
const BEST_EFFORT: u8 = 1 << 1;

/// A length-aware list from `base` on.
fn list(base: i64, cycle: i64, entries: &[(u8, i64)]) -> GateControl {
    let entry = |(open, span): &(u8, i64)| GateEntry { open: *open, span: Span::from_ns(*span) };
    GateControl {
        base: NetTime::from_ns(base),
        cycle: Span::from_ns(cycle),
        entries: entries.iter().map(entry).collect(),
        length_aware: true,
    }
}

/// 100 µs: 20 for the scheduled class, 80 for all else.
fn usual(base: i64) -> GateControl {
    list(base, 100_000, &[(SCHEDULED, 20_000), (!SCHEDULED, 80_000)])
}

/// Two hosts and one link. Channels: best effort, scheduled, class A with 100 Mb/s.
fn pair(lists: &[GateControl]) -> (Network, [ChannelId; 3]) {
    let mut network = Network::new();
    let (talker, listener) = (network.host(), network.host());
    let port = network.link(talker, listener, 1_000, 0);
    let classes = [None, Some(Class::Scheduled), Some(Class::A)];
    let channels = classes.map(|class| network.channel(talker, &[listener], class));
    network.shape_all(100, 1);
    network.plan.ports[port.index()].settings.gates = lists.to_vec();
    (network, channels)
}

/// When the transmissions of one channel started, all frames being of `octets`.
fn starts(network: &Network, sends: &[Send], channel: ChannelId, octets: i64) -> Vec<i64> {
    let seen = run(network, sends);
    arrivals(&seen, channel).iter().map(|at| at - (octets + 8) * 8).collect()
}

#[test]
fn a_frame_waits_until_its_gate_opens() {
    let (network, [best_effort, scheduled, _]) = pair(&[usual(0)]);
    let sends = [(0, best_effort, 64), (30_000, scheduled, 64), (100_000, best_effort, 64)];
    assert_eq!(starts(&network, &sends, best_effort, 68), [20_000, 120_000]);
    assert_eq!(starts(&network, &sends, scheduled, 68), [100_000]);
}

#[test]
fn a_frame_starts_only_if_it_ends_with_its_gap_before_its_gate_closes() {
    let (network, [best_effort, _, _]) = pair(&[usual(0)]);
    // 100,000 − 12,336 = 87,664.
    let last = [(87_664, best_effort, 1_518)];
    assert_eq!(starts(&network, &last, best_effort, 1_522), [87_664]);
    let late = [(87_665, best_effort, 1_518)];
    assert_eq!(starts(&network, &late, best_effort, 1_522), [120_000]);
    // A shorter one behind it keeps its place.
    let behind = [(87_665, best_effort, 1_518), (87_666, best_effort, 64)];
    let seen = run(&network, &behind);
    assert_eq!(arrivals(&seen, best_effort), [120_000 + 12_240, 132_336 + 608]);
}

#[test]
fn without_length_awareness_what_has_started_goes_on_and_delays_the_next() {
    let mut gates = usual(0);
    gates.length_aware = false;
    let (network, [best_effort, scheduled, _]) = pair(&[gates]);
    let sends = [(99_999, best_effort, 1_518), (100_000, scheduled, 64)];
    assert_eq!(starts(&network, &sends, best_effort, 1_522), [99_999]);
    assert_eq!(starts(&network, &sends, scheduled, 68), [112_335]);
}

#[test]
fn entries_that_leave_a_gate_open_are_one_window_across_the_end_of_the_cycle() {
    // Open from 90 to 110 µs in two entries and two cycles.
    let entries = [(BEST_EFFORT, 10_000), (0, 70_000), (BEST_EFFORT, 10_000), (0xff, 10_000)];
    let (network, [best_effort, _, _]) = pair(&[list(0, 100_000, &entries)]);
    let sends = [(97_664, best_effort, 1_518)];
    assert_eq!(starts(&network, &sends, best_effort, 1_522), [97_664]);
    let sends = [(97_665, best_effort, 1_518)];
    assert_eq!(starts(&network, &sends, best_effort, 1_522), [180_000]);
}

#[test]
fn a_short_list_keeps_its_last_state_and_a_long_one_is_cut() {
    let short = [(SCHEDULED, 20_000), (!SCHEDULED, 1_000)];
    let (network, [best_effort, _, _]) = pair(&[list(0, 100_000, &short)]);
    let sends = [(0, best_effort, 64), (99_296, best_effort, 64), (99_297, best_effort, 64)];
    assert_eq!(starts(&network, &sends, best_effort, 68), [20_000, 99_296, 120_000]);
    let long = [(SCHEDULED, 20_000), (!SCHEDULED, 200_000), (0, 1_000)];
    let (network, [best_effort, scheduled, _]) = pair(&[list(0, 100_000, &long)]);
    let sends = [(0, best_effort, 64), (50_000, scheduled, 64), (99_297, best_effort, 64)];
    assert_eq!(starts(&network, &sends, best_effort, 68), [20_000, 120_000]);
    assert_eq!(starts(&network, &sends, scheduled, 68), [100_000]);
}

#[test]
fn a_list_whose_base_is_past_is_in_the_midst_of_its_cycle_at_the_epoch() {
    // Phase 30 µs at 0: scheduled from 70 to 90 µs.
    let (network, [best_effort, scheduled, _]) = pair(&[usual(-430_000)]);
    let sends = [(0, best_effort, 64), (0, scheduled, 64), (69_500, best_effort, 64)];
    assert_eq!(starts(&network, &sends, best_effort, 68), [0, 90_000]);
    assert_eq!(starts(&network, &sends, scheduled, 68), [70_000]);
}

#[test]
fn before_the_first_base_all_gates_are_open() {
    let (network, [best_effort, scheduled, _]) = pair(&[usual(50_000)]);
    let sends = [
        (0, scheduled, 64),
        (10_000, best_effort, 64),
        // Would not end before the list closes its gate.
        (49_500, best_effort, 64),
        (49_600, scheduled, 64),
    ];
    assert_eq!(starts(&network, &sends, scheduled, 68), [0, 49_600]);
    assert_eq!(starts(&network, &sends, best_effort, 68), [10_000, 70_000]);
}

#[test]
fn a_list_is_replaced_at_the_base_of_the_next_one_in_the_midst_of_a_cycle() {
    // From 130 µs on: best effort first for 10 µs, then scheduled for 10, cycle 20.
    let second = list(130_000, 20_000, &[(!SCHEDULED, 10_000), (SCHEDULED, 10_000)]);
    let (network, [best_effort, scheduled, _]) = pair(&[usual(0), second]);
    let sends = [
        (125_000, scheduled, 64),
        // Open on both sides of the change, until 140 µs.
        (127_664, best_effort, 1_518),
        (128_000, best_effort, 1_518),
        (141_000, scheduled, 64),
    ];
    assert_eq!(starts(&network, &sends, scheduled, 68), [140_000, 141_000]);
    // The second never fits into 10 µs.
    assert_eq!(starts(&network, &sends, best_effort, 1_522), [127_664]);
}

#[test]
fn gates_follow_the_clock_of_their_node() {
    let (mut network, [_, scheduled, _]) = pair(&[usual(0)]);
    // 5 µs ahead: what it takes for 100 µs is 95.
    network.system.nodes[0].clock =
        ClockError { offset: Span::from_us(5), ..ClockError::default() };
    let sends = [(30_000, scheduled, 64)];
    assert_eq!(starts(&network, &sends, scheduled, 68), [95_000]);
    // 100 ppm fast: it reads 10 ms first at 9,999,001 (+ 999 = 10,000,000).
    network.system.nodes[0].clock = ClockError { drift_ppb: 100_000, ..ClockError::default() };
    let sends = [(9_950_000, scheduled, 64)];
    assert_eq!(starts(&network, &sends, scheduled, 68), [9_999_001]);
    // And 10.02 ms, when the gate closes, at 10,018,999 (+ 1,001): 704 ns before is the last.
    let sends = [(10_018_295, scheduled, 64), (10_018_296, scheduled, 64)];
    assert_eq!(starts(&network, &sends, scheduled, 68)[0], 10_018_295);
    assert!(starts(&network, &sends[1..], scheduled, 68)[0] > 10_090_000);
}

#[test]
fn gates_step_with_the_clock_of_their_node() {
    // The window is open from 0 to 20 µs of each 100 µs of the clock.
    let send = |at, by, from, until| {
        let (mut network, [_, scheduled, _]) = pair(&[usual(0)]);
        let kind = FaultKind::ClockStep { node: NodeId(0), by: Span::from_us(by) };
        network.fault(kind, from, until);
        starts(&network, &[(at, scheduled, 64)], scheduled, 68)
    };
    let never = i64::MAX;
    // It would open at 100 µs. The clock is 30 µs ahead from 50 µs on: it opens at 70.
    assert_eq!(send(30_000, 30, 50_000, never), [70_000]);
    // At 50 µs it reads 110: the gate is open at once, and 9 µs late it is closed again.
    assert_eq!(send(30_000, 60, 50_000, never), [50_000]);
    assert_eq!(send(59_900, 60, 50_000, never), [140_000]);
    // It passes over a window, from 75 to 195 µs.
    assert_eq!(send(30_000, 120, 75_000, never), [80_000]);
    // Set back by 40 µs at 110, to 70: open until then, and again from 140 on.
    assert_eq!(send(105_000, -40, 110_000, never), [105_000]);
    assert_eq!(send(111_000, -40, 110_000, never), [140_000]);
    // A frame of 704 ns starts in a window that the step cuts short: nobody knew.
    assert_eq!(send(109_800, -40, 110_000, never), [109_800]);
    // And back: from 60 µs on it reads 30 more, from 65 on what it should.
    assert_eq!(send(30_000, 30, 60_000, 65_000), [100_000]);
    assert_eq!(send(30_000, 30, 60_000, 72_000), [70_000]);
}

#[test]
fn a_gate_that_never_opens_holds_its_frames_without_an_event() {
    let (network, [best_effort, scheduled, _]) = pair(&[list(0, 100_000, &[(!SCHEDULED, 1)])]);
    let mut engine = network.engine(1, 0);
    engine.send(scheduled, &[0; 64]);
    engine.send(best_effort, &[0; 64]);
    assert_eq!(deliveries(&mut engine, 1_000_000_000).len(), 1);
    assert_eq!((engine.frames_under_way(), engine.next_event()), (1, None));
}

#[test]
fn a_frame_that_is_too_long_for_every_window_waits_and_others_go_on() {
    // 12,335 ns for 12,336; and 12,336 by a clock that is 100 ppm fast, 12,334.8 in true time.
    for (window, drift_ppb) in [(12_335, 0), (12_336, 100_000)] {
        let gates = list(0, 100_000, &[(BEST_EFFORT, window), (!BEST_EFFORT, 1)]);
        let (mut network, [best_effort, scheduled, _]) = pair(&[gates]);
        network.system.nodes[0].clock.drift_ppb = drift_ppb;
        let mut engine = network.engine(1, 0);
        engine.send(best_effort, &[0; 1_518]);
        engine.send(scheduled, &[0; 64]);
        let seen = deliveries(&mut engine, 1_000_000_000);
        assert_eq!((arrivals(&seen, scheduled).len(), engine.frames_under_way()), (1, 1));
        // One look in 64 cycles at most.
        assert!(engine.events() < 10_000 / 64 + 10, "{} events", engine.events());
        assert_eq!(engine.next_event().is_none(), drift_ppb == 0);
    }
}

#[test]
fn an_idle_port_has_no_events_for_its_gates() {
    let (network, [best_effort, _, _]) = pair(&[usual(0)]);
    let mut engine = network.engine(1, 0);
    deliveries(&mut engine, 1_000_000_000);
    assert_eq!(engine.events(), 0);
    engine.send(best_effort, &[0; 64]);
    // Out of the stack, the choice when the gate opens, the delivery.
    deliveries(&mut engine, 2_000_000_000);
    assert_eq!(engine.events(), 3);
}

#[test]
fn credit_stands_still_while_the_gate_is_closed() {
    let gates = list(0, 20_000, &[(0xff, 10_000), (!CLASS_A, 10_000)]);
    let (mut network, [_, _, class_a]) = pair(&[gates]);
    // 100 Mb/s while the gate is open, which is half of the time (802.1Q-2022 8.6.8.2).
    network.shape_all(50, 1);
    // A frame costs 704 bit, 7,040 ns of open gate: 7,040; 2,960 to the closing and 4,080 after
    // it; 5,920 and 1,120.
    let sends = [(0, class_a, 64); 4];
    assert_eq!(starts(&network, &sends, class_a, 68), [0, 7_040, 24_080, 41_120]);
}

#[test]
fn credit_is_gathered_in_a_guard_band_and_not_behind_a_closed_gate() {
    let gates = list(0, 20_000, &[(0xff, 10_000), (!CLASS_A, 10_000)]);
    let (mut network, [_, _, class_a]) = pair(&[gates]);
    // 100 Mb/s while the gate is open, which is half of the time (802.1Q-2022 8.6.8.2).
    network.shape_all(50, 1);
    // Does not fit at 9,500: 500 ns × 0.1 = 50 bit until the gate closes, and nothing until it
    // opens at 20,000. The next may follow 704 − 50 = 654 bit, 6,540 ns, later.
    let sends = [(9_500, class_a, 64), (9_500, class_a, 64)];
    assert_eq!(starts(&network, &sends, class_a, 68), [20_000, 26_540]);
}

#[test]
fn positive_credit_of_an_empty_queue_is_lost_behind_a_closed_gate() {
    let gates = list(0, 20_000, &[(0xff, 15_000), (!CLASS_A, 5_000)]);
    let (mut network, [best_effort, _, class_a]) = pair(&[gates]);
    // 100 Mb/s while the gate is open, which is three quarters of the time.
    network.shape_all(75, 1);
    // Waits from 1 to 12,336: 1,233.5 bit; spends 704 − 70.4 and has 599.9 left at 13,040. At
    // 16,000 nothing is left, so that of two that wait then the second is 7,040 ns later.
    let sends =
        [(0, best_effort, 1_518), (1, class_a, 64), (16_000, class_a, 64), (16_000, class_a, 64)];
    assert_eq!(starts(&network, &sends, class_a, 68), [12_336, 20_000, 27_040]);
}

#[test]
fn a_shaped_frame_that_goes_on_beyond_the_closing_gets_no_credit_for_that_time() {
    let mut gates = list(0, 20_000, &[(0xff, 10_000), (!CLASS_A, 10_000)]);
    gates.length_aware = false;
    let (mut network, [_, _, class_a]) = pair(&[gates]);
    // 100 Mb/s while the gate is open, which is half of the time (802.1Q-2022 8.6.8.2).
    network.shape_all(50, 1);
    // 12,336 bit from 5,000 on: +500 until 10,000, 11,836 short at 20,000: 118,360 ns of open gate
    // are eleven windows and 8,360 ns of the one at 20,000 + 11 × 20,000 = 240,000.
    let sends = [(5_000, class_a, 1_518), (5_000, class_a, 1_518)];
    assert_eq!(starts(&network, &sends, class_a, 1_522), [5_000, 248_360]);
}

#[test]
fn each_list_raises_idle_slope_by_its_own_share_and_never_above_the_link() {
    let half = list(0, 20_000, &[(0xff, 10_000), (!CLASS_A, 10_000)]);
    let fifth = list(10_000, 20_000, &[(0xff, 4_000), (!CLASS_A, 16_000)]);
    let (mut network, [_, _, class_a]) = pair(&[half, fifth]);
    network.shape_all(300, 1);
    // 600 Mb/s, then 1,000 Mb/s and not 1,500. A frame costs 704 bit, 1,173⅓ ns of the first: the
    // tenth has got 0.2 + 613 × 0.6 = 368 bit since 9,387 when the second list begins, at once
    // with an open gate, and 336 ns later the rest; from then on frames are back to back.
    let sends = [(0, class_a, 64); 11];
    let expected = [0, 1_174, 2_347, 3_520, 4_694, 5_867, 7_040, 8_214, 9_387, 10_336, 11_040];
    assert_eq!(starts(&network, &sends, class_a, 68), expected);
}

#[test]
fn two_gated_hops_add_up() {
    // host – bridge – host, 1 Gb/s, 50 ns, forwarding 1 µs; the bridge's window is 10 µs later.
    let mut network = Network::new();
    let (talker, listener) = (network.host(), network.host());
    let bridge = network.bridge(1_000);
    let first = network.link(talker, bridge, 1_000, 50);
    let second = network.link(bridge, listener, 1_000, 50);
    network.plan.ports[first.index()].settings.gates = vec![usual(0)];
    network.plan.ports[second.index()].settings.gates = vec![usual(10_000)];
    let scheduled = network.channel(talker, &[listener], Some(Class::Scheduled));
    network.system.nodes[NodeId(2).index()].clock.offset = Span::from_ns(300);
    let seen = run(&network, &[(150_000, scheduled, 64)]);
    // Starts at 200,000, is queued at 200,000 + 608 + 50 + 1,000 = 201,658, starts at 209,700 (the
    // bridge's clock is 300 ns ahead) and arrives 658 ns later.
    assert_eq!(arrivals(&seen, scheduled), [210_358]);
}
