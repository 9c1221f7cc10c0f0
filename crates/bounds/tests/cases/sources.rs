//! Sources: clocks, jitter, lengths, and one that babbles.

use crate::build::Net;
use crate::check::{Case, FAST, GIGABIT, Shape, bucket, pair, sent, wire};
use onbeat_model::diagnostic::Origin;
use onbeat_model::port::Policing;
use onbeat_model::stream::{Fault, FaultKind, Source};
use onbeat_model::system::Delay;
use onbeat_model::time::{NetTime, Span};
use onbeat_model::units::Octets;

#[test]
fn a_short_frame_does_not_wait_for_what_the_longest_has_more() {
    let mut net = pair();
    net.stream("h1", &["h2"], 5, 1_000).every(1_000_000).frame[0] = Octets::new(180);
    // Over the whole path the longest counts, and a nanosecond of rounding.
    Case::new(net).within(0, &[1, sent(1_000)], 980);
}

#[test]
fn a_fast_clock_sends_more() {
    let mut net = Net::new(&["h1", "h2", "h3", "h4"], &["b"]);
    for (host, rate) in [("h1", GIGABIT), ("h2", GIGABIT), ("h3", FAST), ("h4", GIGABIT)] {
        net.link(host, "b", rate);
    }
    net.node("h2").clock.drift_ppb = 1_000_000;
    net.stream("h2", &["h3"], 6, 500).every(160_000);
    // The second one is released at ⌈160 000 / 1.001⌉.
    let there = 159_841 + 3_904;
    net.stream("h1", &["h3"], 5, 1_000).at(there - 7_904);
    net.stream("h4", &["h3"], 2, 1_500).at(there - 1 - 11_904);
    // 4000 bits each 160 000 / 1.001 ns are 25.025 Mb/s; readings are rounded down, so the next one
    // may come after ⌊159 999 / 1.001⌋ = 159 839: 25.025183 Mb/s. x = 16 000 / (100 − 25.025).
    // The third comes 159 ns before the second is over; by a clock without error it would be late.
    let longest = 7_904 + wire(1_500) + 2 * wire(500) - 1 + sent(1_000);
    Case::new(net).has(1, &[7_904, 213_405, sent(1_000)], longest).near(1, 955);
}

#[test]
fn a_clock_that_wanders_brings_frames_closer_by_twice_its_amplitude() {
    let mut net = pair();
    let wander = (Span::from_us(60), Span::from_s(1));
    let clock = &mut net.node("h1").clock;
    (clock.wander, clock.wander_period) = wander;
    net.stream("h1", &["h2"], 5, 500);
    net.stream("h1", &["h2"], 5, 1_000).every(200_000);
    // 120 001 ns closer together: 8000 bits each after 79 999, so 8000 + 100.001251 Mb/s · t and
    // 12 800.04 + 40 Mb/s · t, which is less from 80 µs on; and 4000. At 79 999 ns 20 000.00008
    // bits came; without the own frame they take ⌈120 000.0008⌉.
    Case::new(net).has(1, &[120_001 - 79_999, sent(1_000)], wire(500) + sent(1_000));
}

#[test]
fn what_may_be_late_may_come_closer() {
    let mut net = pair();
    let stream = net.stream("h1", &["h2"], 5, 1_000);
    stream.source = Source::Periodic { interval: Span::from_us(400), jitter: Span::from_us(380) };
    net.stream("h1", &["h2"], 5, 500);
    // The next one may come after 20 µs: the wire has 60 of the first's 80 µs, and 40 µs more are
    // for the other stream.
    Case::new(net).within(0, &[60_000 + wire(500), sent(1_000)], 570);
}

/// A higher stream of frames at 0, 0, 100, 300 and 300 µs, beside one frame of 1000 octets.
fn traced(lower: bool) -> Case {
    let mut net = pair();
    let start = i64::from(lower);
    net.stream("h1", &["h2"], 5, 1_000).at(start);
    let stream = net.stream("h1", &["h2"], 6, 500).at(start);
    let at = [0, 0, 100, 300, 300].map(|us| (Span::from_us(us), stream.frame[0]));
    stream.source = Source::Trace(at.to_vec());
    if lower {
        net.stream("h1", &["h2"], 2, 1_500);
    }
    Case::new(net)
}

#[test]
fn a_trace_is_bounded_by_leaky_buckets_above_its_shortest_windows() {
    // Two at once are 8000 bits. From two to four frames take 300 µs: 26.666 667 Mb/s, above all
    // five with 20 000 − 8000 bits. 12 000 / (100 − 26.666 667) = 163 636.4. In the engine it is
    // the first two: 65 % of the bound.
    traced(false).has(0, &[163_637, sent(1_000)], 2 * wire(500) + sent(1_000)).near(0, 655);
    // With a lower one before: all five, of which the engine's last two come too late.
    let terms = [wire(1_500) + 5 * wire(500), sent(1_000)];
    traced(true).has(0, &terms, wire(1_500) + 3 * wire(500) + sent(1_000) - 1).near(0, 799);
}

#[test]
fn of_a_source_that_babbles_passes_what_its_meter_lets_pass() {
    let mut net = Net::new(&["h1", "h2", "h3"], &["b"]);
    for (host, rate) in [("h1", GIGABIT), ("h2", FAST), ("h3", FAST)] {
        net.link(host, "b", rate);
    }
    let policing = Policing { meter: Some(bucket(8_000_000, 2_000)), ..Policing::default() };
    net.stream("h1", &["h3"], 5, 1_000).every(1_000_000).at(40_000_000).policing = Some(policing);
    // A bucket of two frames: the second one comes 8 µs after the first one, and so does this.
    let first = 200_000 + 7_904;
    net.stream("h2", &["h3"], 5, 1_000).at(first + 8_000 - sent(1_000));
    net.0.faults.push(Fault {
        kind: FaultKind::Babble(0),
        from: NetTime::from_ns(200_000),
        until: NetTime::from_ns(3_000_000),
        origin: Origin::default(),
    });
    let case = Case::new(net);
    // In the engine it waits for the rest of the first frame and for the second one: 72 + 80 µs.
    // In the bound 8 Mb/s pass (and 0.032 bits are for 4 ns of rounding): less than the line's
    // 8000 bits and 1 Gb/s from 8000.032 / 992 = 8064.5 ns on. 160 645.5 − 8064.5.
    let longest = 2 * sent(1_000) + 72_000 + wire(1_000);
    case.has(1, &[sent(1_000), 152_581, sent(1_000)], longest).near(1, 998);
}

#[test]
fn jitter_and_wander_bring_the_frames_of_a_trace_closer() {
    let mut net = pair();
    let node = net.node("h1");
    (node.clock.wander, node.clock.wander_period) = (Span::from_us(10), Span::from_s(1));
    net.host("h1").stack_tx = Delay::Interval { min: Span::ZERO, max: Span::from_us(30) };
    net.host("h2").stack_rx = Delay::Interval { min: Span::from_us(1), max: Span::from_us(7) };
    net.stream("h1", &["h2"], 5, 1_000);
    let stream = net.stream("h1", &["h2"], 6, 250);
    let frame = stream.frame[0];
    stream.source = Source::Trace(vec![(Span::ZERO, frame), (Span::from_us(100), frame)]);
    // 100 − 20.001 − 30 µs may be between them: 2000 bits and 2000 / 49.999 µs = 40.0008 Mb/s.
    // 2000 / 59.9992 = 33 333.8 ns.
    Case::new(net).within(0, &[30_000, 33_334, sent(1_000), 7_000], 600);
}
