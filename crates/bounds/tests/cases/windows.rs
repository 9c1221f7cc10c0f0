//! Scheduled frames: their instants and the windows of their queue are known.

use crate::check::{Case, Shape, pair, sent, star};
use onbeat_model::stream::Source;
use onbeat_model::system::Delay;
use onbeat_model::time::Span;

/// Queue 7 for 100 µs of a millisecond, all others for the rest.
const EXCLUSIVE: [(u8, i64); 2] = [(0x80, 100_000), (0x7f, 900_000)];

#[test]
fn a_scheduled_frame_starts_at_its_window() {
    let mut net = pair();
    net.gates("h1", "h2", &EXCLUSIVE, true);
    net.stream("h1", &["h2"], 7, 500).every(1_000_000).at(60_001);
    net.stream("h1", &["h2"], 0, 1_000).every(1_000_000);
    let whole = 939_999 + sent(500);
    Case::new(net).has(0, &[939_999, sent(500)], whole);
}

#[test]
fn a_scheduled_burst_fills_its_windows() {
    let mut net = pair();
    net.gates("h1", "h2", &EXCLUSIVE, true);
    let stream = net.stream("h1", &["h2"], 7, 250).at(80_001);
    stream.source = Source::Bursty { interval: Span::from_ms(2), frames: 6 };
    // Five of 20 µs fit into the next window, and the last one waits for another.
    Case::new(net).has(0, &[1_919_999, sent(250)], 1_919_999 + sent(250));
}

#[test]
fn jitter_of_a_scheduled_frame_counts_once() {
    let mut net = pair();
    net.gates("h1", "h2", &EXCLUSIVE, true);
    net.host("h1").stack_tx = Delay::Interval { min: Span::from_us(1), max: Span::from_us(30) };
    let stream = net.stream("h1", &["h2"], 7, 500).at(20_000);
    stream.source = Source::Periodic { interval: Span::from_ms(1), jitter: Span::from_us(10) };
    // It finds its window open, and never waits but for its own jitter.
    Case::new(net).within(0, &[30_000, 10_000, sent(500)], 860);
}

#[test]
fn a_scheduled_frame_is_late_by_the_errors_of_both_clocks() {
    let mut net = star(&["h1", "h2"]);
    net.gates("b", "h2", &EXCLUSIVE, true);
    net.node("h1").clock.offset = Span::from_us(2);
    net.node("b").clock.offset = Span::from_us(-3);
    net.stream("h1", &["h2"], 7, 500).every(1_000_000).at(900_000);
    // h1 may release 2 µs early, b open 3 µs late, with 2 ns of rounding each; and so they do, but
    // for the rounding.
    let wait = 100_000 - sent(500) + 5_000;
    let longest = wait + 2 * sent(500);
    Case::new(net).has(0, &[sent(500), wait + 4, sent(500)], longest);
}

#[test]
fn a_scheduled_frame_is_not_earlier_than_its_window_perhaps_is() {
    let mut net = star(&["h1", "h2"]);
    net.gates("h1", "b", &EXCLUSIVE, true);
    net.node("h1").clock.offset = Span::from_us(2);
    net.stream("h1", &["h2"], 7, 500).every(1_000_000).at(900_000);
    let case = Case::new(net);
    // Released at 898 µs, and the window opens at 998 by the same clock. The bound does not know
    // that it is the same: 4 µs more or less, and 2 ns of rounding for each.
    let links = 2 * sent(500);
    case.has(0, &[104_004, sent(500), sent(500)], 100_000 + links);
    let best = case.plan.streams[0].bounds[0].as_ref().unwrap().best;
    assert_eq!(best.as_ns(), 100_000 - 4_004 + links);
}

#[test]
fn frames_of_several_lengths_count_on_what_is_left_in_any_order() {
    let mut net = pair();
    net.gates("h1", "h2", &EXCLUSIVE, true);
    for (octets, at) in [(250, 99_998), (500, 99_999), (1_000, 100_000)] {
        net.stream("h1", &["h2"], 7, octets).every(5_000_000).at(at);
    }
    // 20, 40 and 80 µs, in parts of 20 of which two may start before no 80 µs are left: the longest
    // has three before it, of which one is left for the second window, and goes behind it.
    Case::new(net).has(2, &[1_920_000, sent(1_000)], 1_900_000 + sent(1_000));
}
