//! Asynchronous shaping.

use crate::build::Net;
use crate::check::{Case, FAST, GIGABIT, Shape, pair, sent, tandem, wire};
use onbeat_model::plan::Cause;
use onbeat_model::port::Selection;
use onbeat_model::stream::Source;
use onbeat_model::system::Class;
use onbeat_model::time::Span;
use onbeat_model::units::Octets;

#[test]
fn a_talker_that_keeps_to_its_bucket_is_not_held() {
    let mut net = pair();
    net.settings("h1", "h2").selection[5] = Selection::Asynchronous;
    net.stream("h1", &["h2"], 5, 500).bucket(10_000_000, 500).at(1);
    net.stream("h1", &["h2"], 5, 1_000).frames(3).bucket(10_000_000, 3_000).at(1);
    net.stream("h1", &["h2"], 0, 1_500);
    let case = Case::new(net);
    let before = wire(1_500) + wire(500) + 2 * wire(1_000);
    case.has(1, &[before, sent(1_000)], before + sent(1_000) - 1);
}

#[test]
fn a_talker_that_does_not_keep_to_its_bucket_is_held_until_it_has_filled() {
    let mut net = pair();
    net.settings("h1", "h2").selection[5] = Selection::Asynchronous;
    net.stream("h1", &["h2"], 5, 1_000).frames(3).bucket(10_000_000, 2_999);
    // An octet at 10 Mb/s, and 4 ns of rounding. Behind the bucket 23 992 bits and 10 Mb/s · 4 ns
    // are there at once: 15 992.04 beside the last frame. In the engine it waits for both others.
    let terms = [800 + 4, 159_921, sent(1_000)];
    Case::new(net).has(0, &terms, 2 * wire(1_000) + sent(1_000));
}

#[test]
fn a_talker_holds_each_stream_by_its_own_bucket_only() {
    let mut net = pair();
    net.settings("h1", "h2").selection[5] = Selection::Asynchronous;
    net.stream("h1", &["h2"], 5, 500).frames(3).bucket(1_000_000, 500);
    net.stream("h1", &["h2"], 5, 500).bucket(1_000_000, 500).at(1);
    let case = Case::new(net);
    // Each of the last two frames waits for 4000 bits at 1 Mb/s.
    let held = case.plan.streams[0].bounds[0].as_ref().expect("a bound").terms[0].span;
    assert_eq!(held.as_ns(), 8_000_000 + 4);
    let beside = case.plan.streams[1].bounds[0].as_ref().expect("a bound");
    assert!(beside.terms.iter().all(|term| term.span < Span::from_us(100)), "{beside:?}");
    let seen = case.seen.streams.iter().map(|flow| flow.listeners[0].max.unwrap().as_ns());
    assert_eq!(seen.collect::<Vec<_>>(), [8_000_000 + sent(500), wire(500) - 1 + sent(500)]);
}

#[test]
fn a_talker_that_sends_more_than_its_bucket_gets_has_no_bound() {
    let mut net = pair();
    net.settings("h1", "h2").selection[5] = Selection::Asynchronous;
    net.stream("h1", &["h2"], 5, 1_000).every(1_000_000).bucket(7_999_999, 1_000);
    let plan = Case::new(net).plan;
    assert_eq!(plan.streams[0].bounds, [None]);
    let reason = plan.streams[0].unbounded[0].as_ref().expect("a reason");
    assert_eq!(reason.cause, Cause::Regulator);
}

/// Two frames of stream 0, 100 µs apart, come to c back to back, because b was busy; c restores
/// their distance. There they meet stream 1, of 1000 octets, which comes the time `meet` after the
/// first, and a lower frame of 1500 that has just started then.
fn restored(meet: i64) -> Case {
    let mut net: Net = tandem(&["h1", "h2"], &["h3", "h4", "h5", "h6"]);
    for (node, peer) in [("b", "c"), ("c", "h3")] {
        net.settings(node, peer).selection[5] = Selection::Asynchronous;
    }
    let stream = net.stream("h2", &["h3"], 5, 500).frames(2).bucket(40_000_000, 500).at(200_000);
    if let Source::Trace(frames) = &mut stream.source {
        frames[1].0 = Span::from_us(100);
    }
    net.stream("h4", &["h3"], 5, 1_000).bucket(40_000_000, 1_000);
    // At b: a lower one 1 ns before the first.
    let there = 200_000 + sent(500);
    net.stream("h1", &["h6"], 0, 1_500).at(there - 1 - sent(1_500));
    let first = there - 1 + wire(1_500) + sent(500);
    net.0.streams[1].at(first + meet - sent(1_000));
    net.stream("h5", &["h3"], 0, 1_500).at(first + meet - 1 - sent(1_500));
    Case::new(net)
}

#[test]
fn what_is_reshaped_comes_no_closer_than_it_was() {
    // Without the regulator at c both of stream 0, 8000 bits, might be there at once. With it 4000
    // are, and what 40 Mb/s allow in the 4 ns by which the rounding of clocks may matter, 2 ns.
    let case = restored(0);
    let wait = wire(1_500) + wire(500);
    case.has(1, &[sent(1_000), wait + 2, sent(1_000)], sent(1_000) + wait - 1 + sent(1_000));
}

#[test]
fn reshaping_is_for_free() {
    // The second frame finds b idle and is held at c, but gets there no later than one that had
    // waited at b; then it meets both others.
    // Not attained: 4 ns for the rounding of the regulators' clocks and 2 ns for what their rates
    // make of it; that lower frames are a nanosecond before, at b and at c, where stream 1 is too.
    let case = restored(99_999);
    let wait = wire(1_500) + wire(1_000);
    let terms = [sent(500), wire(1_500), sent(500), 4, wait + 2, sent(500)];
    let sum: i64 = terms.iter().sum();
    case.has(0, &terms, sum - 4 - 2 - 1 - 2);
}

#[test]
fn regulators_of_clocks_that_run_apart_hold_more_and_more() {
    // c is slower than b: what b lets through is too much for the bucket at c in the long run.
    let apart = |drift| {
        let mut net = jittered();
        net.node("c").clock.drift_ppb = drift;
        net.settings("c", "h3").selection[5] = Selection::Asynchronous;
        Case::new(net).plan.streams[0].bounds[0].is_some()
    };
    assert!(apart(0));
    assert!(!apart(-1));
}

#[test]
fn a_bucket_that_a_clock_reads_late_needs_a_nanosecond_more() {
    let drifting = |burst| {
        let mut net = pair();
        net.settings("h1", "h2").selection[5] = Selection::Asynchronous;
        net.node("h1").clock.drift_ppb = 1_000;
        net.stream("h1", &["h2"], 5, 1_000).bucket(8_000_000_000, burst);
        let plan = Case::new(net).plan;
        let bound = plan.streams[0].bounds[0].as_ref().expect("a bound");
        let held = bound.terms.iter().find(|term| term.what.starts_with("regulator"));
        held.map_or(0, |term| term.span.as_ns())
    };
    // 8 Gb/s in 1 ns, by which readings are rounded down: one octet.
    assert_eq!(drifting(1_000), 1 + 4);
    assert_eq!(drifting(1_001), 0);
}

/// Two frames of stream 0, 100 µs apart, which a lower one at h1 may bring together, are reshaped
/// at b; stream 1 meets them at c.
fn jittered() -> Net {
    let mut net = Net::new(&["h1", "h2", "h3", "h4"], &["b", "c"]);
    for (a, b, rate) in [
        ("h1", "b", FAST),
        ("h2", "b", FAST),
        ("b", "c", GIGABIT),
        ("c", "h3", FAST),
        ("c", "h4", FAST),
    ] {
        net.link(a, b, rate);
    }
    net.settings("b", "c").selection[5] = Selection::Asynchronous;
    let stream = net.stream("h1", &["h3"], 5, 500).frames(2).bucket(40_000_000, 500);
    if let Source::Trace(frames) = &mut stream.source {
        frames[1].0 = Span::from_us(100);
    }
    net.stream("h1", &["h4"], 0, 1_500);
    net.stream("h4", &["h3"], 5, 1_000);
    net.stream("h2", &["h4"], 0, 1_500);
    net
}

#[test]
fn behind_a_regulator_only_delays_since_then_bring_frames_together() {
    let mut net = jittered();
    net.0.streams[0].at(200_000);
    net.0.streams[2].at(200_000 + sent(500) + 488 * 8 - sent(1_000));
    // b lets 4000 bits and 40 Mb/s · t pass, and its lower frame delays by 12 µs, and 1 ns for the
    // 0.16 bits of 4 ns of rounding: 4480.2 bits, not 8000. From b they come no faster than 4000
    // bits and 1 Gb/s, which is less for 480.2 / 960 = 500.2 ns: 45 002 − 500. In the engine one
    // frame is in the way.
    let longest = wire(500) + 2 * sent(1_000);
    Case::new(net).has(2, &[sent(1_000), 44_502, sent(1_000)], longest).near(2, 977);
}

#[test]
fn a_channel_waits_for_one_lower_frame_at_each_port_and_its_schedulers_cost_the_rounding_only() {
    let mut net: Net = tandem(&["h1", "h3"], &["h2", "h4", "h5"]);
    let channel = net.channel("c", "h1", &["h2"]);
    (channel.class, channel.interval) = (Class::Asynchronous, Span::from_ms(1));
    (channel.size, channel.phase) = (Octets::new(100 - 66), Span::from_ns(1));
    // The longest frame, 1542 octets, starts 1 ns before the channel's at h1, b and c.
    let lower = |from: &str, to: &str, at: i64| (from.to_owned(), to.to_owned(), at);
    let at_b = wire(1_542) + sent(100) - 1;
    let at_c = at_b + wire(1_542) + sent(100) - 1;
    for (from, to, at) in [
        lower("h1", "h3", 0),
        lower("h3", "h5", at_b - sent(1_542)),
        lower("h4", "h2", at_c - sent(1_542)),
    ] {
        net.stream(&from, &[&to], 1, 1_542).at(at);
    }
    let case = Case::new(net);
    let planned = &case.plan.channels[0];
    // 800 bits and an eighth of them, by which a message may be early.
    let bucket = planned.schedulers.iter().map(|at| (at.bucket.rate.as_bps(), at.bucket.burst));
    assert_eq!(bucket.collect::<Vec<_>>(), [(800_000, Octets::new(113)); 2]);
    let terms = planned.bounds[0].terms.iter().map(|term| (term.what.as_str(), term.span.as_ns()));
    let (wait, link) = (wire(1_542), sent(100));
    let by_hand = [
        ("asynchronous queue at h1.p1", wait),
        ("link from h1.p1", link),
        ("regulator at b.p3", 4),
        ("asynchronous queue at b.p3", wait),
        ("link from b.p3", link),
        ("regulator at c.p2", 4),
        ("asynchronous queue at c.p2", wait),
        ("link from c.p2", link),
    ];
    assert_eq!(terms.collect::<Vec<_>>(), by_hand);
    // Not attained: 4 ns for the rounding of each scheduler, and that lower frames are a
    // nanosecond before.
    let total = planned.bound().expect("a bound").as_ns();
    let seen = case.seen.channels[0].listeners[0].max.map(Span::as_ns);
    assert_eq!((total, seen), (391_208, Some(391_208 - 2 * 4 - 3)));
}
