//! Preemption.

use crate::check::{Case, Shape, pair, sent, wire};

#[test]
fn an_express_frame_waits_for_what_is_too_short_to_be_cut() {
    let mut net = pair();
    net.settings("h1", "h2").preemptable = 0x7f;
    net.stream("h1", &["h2"], 7, 500).at(1);
    net.stream("h1", &["h2"], 0, 143);
    // 123 octets are no two fragments of 60 and 64.
    let case = Case::new(net);
    case.has(0, &[wire(143), sent(500)], wire(143) + sent(500) - 1);
}

#[test]
fn an_express_frame_cuts_a_long_frame_after_its_first_64_octets() {
    let mut net = pair();
    net.settings("h1", "h2").preemptable = 0x7f;
    net.stream("h1", &["h2"], 7, 500).at(1);
    net.stream("h1", &["h2"], 0, 1_500);
    // A preamble, 60 octets, a check of 4, a gap. The bound knows no lengths but the longest.
    let case = Case::new(net);
    case.has(0, &[wire(143), sent(500)], wire(8 + 60 + 4 + 12) + sent(500) - 1).near(0, 906);
}

#[test]
fn a_preemptable_frame_is_interrupted_by_each_express_frame_at_24_octets_more() {
    let mut net = pair();
    net.settings("h1", "h2").preemptable = 0x7f;
    net.stream("h1", &["h2"], 0, 1_000);
    // Before it goes one of another preemptable queue. The first cuts it after 100 octets, the
    // second after 100 of the rest.
    net.stream("h1", &["h2"], 6, 300);
    let first = wire(300) + wire(100);
    net.stream("h1", &["h2"], 7, 500).at(first);
    net.stream("h1", &["h2"], 7, 200).at(first + wire(4 + 12) + wire(500) + wire(100));
    let case = Case::new(net);
    let before = wire(300) + wire(500 + 24) + wire(200 + 24);
    case.has(0, &[before, sent(1_000)], before + sent(1_000));
}

#[test]
fn a_preemptable_frame_waits_for_a_lower_one_of_its_kind_and_all_express_ones() {
    let mut net = pair();
    // Queues 6 and 4 may be interrupted: what is express goes first, whatever its queue.
    net.settings("h1", "h2").preemptable = 0b0101_0000;
    net.stream("h1", &["h2"], 6, 1_000).at(1);
    net.stream("h1", &["h2"], 4, 1_200);
    net.stream("h1", &["h2"], 0, 400).at(wire(100));
    let case = Case::new(net);
    let before = wire(1_200) + wire(400 + 24);
    case.has(0, &[before, sent(1_000)], before + sent(1_000) - 1);
    // An express frame of the lowest queue waits for 143 octets only.
    case.has(2, &[wire(143), sent(400)], wire(4 + 12) + sent(400)).near(2, 760);
}
