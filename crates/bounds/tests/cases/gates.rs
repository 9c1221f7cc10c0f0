//! Time-aware gates, alone and with other shapers.
//!
//! A bound behind gates is 2 ns above what can be: a frame that is ready at the last instant at
//! which it would fit is sent, and its start is taken to be that of its first part (10⁻⁹ bit).

use crate::check::{Case, Shape, pair, sent, star, wire};
use onbeat_model::time::NetTime;

/// Queue 7 for 100 µs of a millisecond, all others for the rest.
const EXCLUSIVE: [(u8, i64); 2] = [(0x80, 100_000), (0x7f, 900_000)];

#[test]
fn a_frame_that_does_not_fit_any_more_waits_for_the_next_window() {
    let mut net = pair();
    net.gates("h1", "h2", &EXCLUSIVE, true);
    net.stream("h1", &["h2"], 7, 500).at(60_001);
    let case = Case::new(net);
    // It fits up to 100 − 40 µs after the window's start.
    case.has(0, &[940_000 + 1, sent(500)], 940_000 - 1 + sent(500));
}

#[test]
fn a_window_holds_as_many_frames_as_fit() {
    let mut net = pair();
    net.gates("h1", "h2", &EXCLUSIVE, true);
    net.stream("h1", &["h2"], 7, 250).at(80_001).frames(6);
    let case = Case::new(net);
    // Five of 20 µs fill a window, which is 10 Mb/s of the cycle: 5 · 2000 bits take 1 ms.
    case.has(0, &[920_000 + 1_000_000 + 1, sent(250)], 1_920_000 - 1 + sent(250)).near(0, 999);
}

#[test]
fn of_two_windows_the_smaller_one_counts_as_little_as_it_holds() {
    let mut net = pair();
    let entries = [(0x80, 100_000), (0x7f, 300_000), (0x80, 60_000), (0x7f, 540_000)];
    net.gates("h1", "h2", &entries, true);
    net.stream("h1", &["h2"], 7, 500).at(420_001);
    let case = Case::new(net);
    // Two frames of 40 µs fit and one, 120 µs of a cycle: 12 % of the time from a latency on. From
    // 60 µs on none fits for 340 µs, and but one until a cycle later: 940 − 40 / 12 % = 606.7.
    // One frame waits from 420 to 1000 µs only: 96 % of the bound.
    case.has(0, &[606_667 + 1, sent(500)], 580_000 - 1 + sent(500)).near(0, 958);
}

#[test]
fn without_a_look_at_lengths_a_lower_frame_hangs_over() {
    let mut net = pair();
    net.gates("h1", "h2", &EXCLUSIVE, false);
    net.stream("h1", &["h2"], 7, 500).at(100_000);
    net.stream("h1", &["h2"], 0, 800).at(999_999);
    let case = Case::new(net);
    // Its 64 µs are taken from each window, whose 36 µs are 3.6 Mb/s of a cycle, and 6400 bits
    // once more as what blocks: the bound is 2.8 times what can be.
    case.has(0, &[964_000 + 1_777_778, sent(500)], 964_000 - 1 + sent(500)).near(0, 360);
}

#[test]
fn best_effort_between_the_windows_is_not_in_the_way() {
    let mut net = pair();
    net.gates("h1", "h2", &EXCLUSIVE, true);
    net.stream("h1", &["h2"], 7, 500).at(60_001);
    net.stream("h1", &["h2"], 0, 800).at(936_001);
    let case = Case::new(net);
    case.has(0, &[940_000 + 1, sent(500)], 940_000 - 1 + sent(500)).near(0, 999);
    // Best effort itself waits for the window of the others, 100 µs, and 64 µs at the end of its
    // own; the frame of 4000 bits has its own window.
    case.has(1, &[164_000 + 1, sent(800)], 164_000 - 1 + sent(800)).near(1, 999);
}

#[test]
fn where_a_gate_opens_beside_an_open_one_a_lower_frame_hangs_over_into_its_window() {
    let mut net = pair();
    net.gates("h1", "h2", &[(0xff, 300_000), (0x7f, 700_000)], true);
    net.stream("h1", &["h2"], 7, 500).at(260_001);
    net.stream("h1", &["h2"], 0, 800).at(999_999);
    let case = Case::new(net);
    // 300 less 64 and 40 µs: 196 µs of a cycle, 19.6 Mb/s, and 6400 bits as what blocks.
    case.has(0, &[804_000 + 326_531, sent(500)], 804_000 - 2 + sent(500)).near(0, 720);
}

#[test]
fn behind_gates_credit_grows_only_while_they_are_open() {
    let mut net = pair();
    net.gates("h1", "h2", &EXCLUSIVE, true);
    net.credit("h1", "h2", 7, 5);
    net.stream("h1", &["h2"], 7, 250).at(80_001).frames(4);
    let case = Case::new(net);
    // 5 Mb/s are 50 Mb/s in a tenth of the time (operIdleSlope, 802.1Q-2022 8.6.8.2).
    // The first one does not fit any more, but gathers 999.95 bits of credit in 19 999 ns. Each
    // costs 1000 bits: the second starts with 20 001, the third 40 000 later, the fourth does not
    // fit any more, and at the next opening misses 0.05 bits of credit, 1 ns.
    // Bound: 80 µs of a cycle can be used, 8 Mb/s from 920 µs on, and credit is 5 Mb/s from 900 µs
    // on: 6000 bits take 1200 µs. The two latencies may not come together: 64 % are attained.
    let terms = [920_000 + 900_000 + 1_200_000 + 1, sent(250)];
    case.has(0, &terms, 1_920_000 + sent(250)).near(0, 638);
}

#[test]
fn behind_gates_a_lower_frame_that_never_has_its_gate_open_too_is_not_in_the_way() {
    let mut net = pair();
    net.gates("h1", "h2", &EXCLUSIVE, true);
    net.credit("h1", "h2", 7, 5);
    net.stream("h1", &["h2"], 7, 250).at(80_001).frames(4);
    net.stream("h1", &["h2"], 0, 800).at(936_000);
    let case = Case::new(net);
    // As above: the lower one ends when the window begins.
    let terms = [920_000 + 900_000 + 1_200_000 + 1, sent(250)];
    case.has(0, &terms, 1_920_000 + sent(250)).near(0, 638);
}

#[test]
fn behind_gates_credit_rises_no_faster_than_the_wire_carries() {
    let mut net = pair();
    net.gates("h1", "h2", &EXCLUSIVE, true);
    net.credit("h1", "h2", 7, 50);
    net.stream("h1", &["h2"], 7, 250).at(80_001).frames(4);
    let case = Case::new(net);
    // 100 Mb/s, not 500: all four go back to back when the gate opens. In the bound 8 Mb/s of
    // windows from 920 µs on, and 10 Mb/s of credit from 900 µs on: 6000 bits take 750 µs.
    let terms = [920_000 + 900_000 + 750_000 + 1, sent(250)];
    case.has(0, &terms, 919_999 + 3 * wire(250) + sent(250));
}

#[test]
fn a_slow_clock_makes_closed_times_longer() {
    let mut net = pair();
    net.gates("h1", "h2", &EXCLUSIVE, true);
    net.node("h1").clock.drift_ppb = -1_000_000;
    net.stream("h1", &["h2"], 7, 500).at(60_041);
    let case = Case::new(net);
    // The clock reads 60 041 at 60 102; the gate closes at ⌈100 100.1⌉: no 40 µs are left, and it
    // opens at ⌈1 001 001.001⌉. Bound: 40 µs are 39 960 + 1 of the clock, and 10⁶ − 60 039 + 1
    // of the clock are ⌈940 902.9⌉ ns.
    case.has(0, &[940_903 + 1, sent(500)], 1_001_002 - 60_102 + sent(500));
}

#[test]
fn windows_of_two_hops_that_do_not_match_are_missed_twice() {
    let mut net = star(&["h1", "h2"]);
    net.gates("h1", "b", &EXCLUSIVE, true);
    net.gates("b", "h2", &EXCLUSIVE, true);
    // It comes to b 60 001 ns after a window's start.
    net.settings("b", "h2").gates[0].base = NetTime::from_ns(1_000_000 + sent(500) - 60_001);
    net.stream("h1", &["h2"], 7, 500).at(60_001);
    let case = Case::new(net);
    let terms = [940_001, sent(500), 940_001, sent(500)];
    case.has(0, &terms, 2 * (940_000 - 1 + sent(500)));
    case.backlog(("b", "h2", 7), [1, 480], [1, 480]);
}

#[test]
fn a_change_of_lists_may_cost_the_latency_of_both() {
    let mut net = pair();
    net.gates("h1", "h2", &EXCLUSIVE, true);
    let settings = net.settings("h1", "h2");
    let mut next = settings.gates[0].clone();
    next.entries.reverse();
    next.base = NetTime::from_ns(2_000_000);
    settings.gates.push(next);
    net.stream("h1", &["h2"], 7, 500).at(1_060_001);
    let case = Case::new(net);
    // From 1060 µs on nothing until 2000, and then nothing until 2900. In the bound the change may
    // also cut a window that the frame of 40 µs then misses; no other one may be on the wire.
    let latency = 2 * 940_000 + 40_000 + 1;
    case.has(0, &[latency, sent(500)], 940_000 - 1 + 900_000 + sent(500)).near(0, 959);
}

#[test]
fn higher_frames_in_the_same_window_go_first() {
    let mut net = pair();
    net.gates("h1", "h2", &[(0xc0, 100_000), (0x3f, 900_000)], true);
    net.stream("h1", &["h2"], 6, 500).at(60_001);
    net.stream("h1", &["h2"], 7, 250).at(80_001);
    let case = Case::new(net);
    // 60 of 100 µs can be used, 6 Mb/s of a cycle, of which the higher one takes 2000 bits.
    let terms = [940_000 + 333_334, sent(500)];
    case.has(0, &terms, 940_000 - 1 + wire(250) + sent(500)).near(0, 761);
}
