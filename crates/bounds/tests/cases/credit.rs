//! Credit-based shaping.

use crate::build::Net;
use crate::check::{Case, Shape, pair, sent, star, tandem, wire};
use onbeat_model::stream::Source;
use onbeat_model::time::Span;

#[test]
fn class_a_waits_for_its_burst_at_its_rate_and_for_a_lower_frame_last_of_all() {
    let mut net = pair();
    net.credit("h1", "h2", 7, 50);
    net.stream("h1", &["h2"], 7, 1_000).frames(3);
    // Each frame of 80 µs costs 8000 bits of credit, which 50 Mb/s regain in 160 µs. The lower one
    // starts one nanosecond before the third may.
    net.stream("h1", &["h2"], 0, 1_500).at(319_999);
    let case = Case::new(net);
    case.has(0, &[320_000 + wire(1_500), sent(1_000)], 320_000 + wire(1_500) + sent(1_000) - 1);
    case.backlog(("h1", "h2", 7), [3, 3 * 980], [3, 3 * 980]);
}

#[test]
fn class_b_waits_for_a_lower_frame_and_for_what_class_a_gathered_meanwhile() {
    let mut net = pair();
    net.credit("h1", "h2", 7, 50);
    net.credit("h1", "h2", 6, 25);
    net.stream("h1", &["h2"], 6, 600).at(1);
    net.stream("h1", &["h2"], 7, 999).at(1);
    net.stream("h1", &["h2"], 7, 1_000).at(1).frames(2);
    net.stream("h1", &["h2"], 0, 1_000);
    let case = Case::new(net);
    // Class A gathers 50 Mb/s · 80 µs = 4000 bits, sends at −50 Mb/s for 80 µs, and then one more
    // of its largest frames, if exactly the last bit of credit is there: 999 octets are the next
    // best. In all C · 80 µs / (C − 50 Mb/s) + 80 µs.
    let attained = wire(1_000) + wire(999) + wire(1_000) + sent(600) - 1;
    case.has(0, &[240_000, sent(600)], attained);
    assert_eq!((240_000 + sent(600)) - attained, wire(1) + 1);
}

#[test]
fn a_burst_of_class_b_meets_class_a_again() {
    let mut net = pair();
    net.credit("h1", "h2", 7, 50);
    net.credit("h1", "h2", 6, 25);
    net.stream("h1", &["h2"], 6, 600).frames(2);
    net.stream("h1", &["h2"], 7, 999).at(112_001);
    net.stream("h1", &["h2"], 7, 1_000).at(112_001).frames(2);
    net.stream("h1", &["h2"], 0, 1_000).at(112_000);
    let case = Case::new(net);
    // The first one's 4800 bits are regained in 192 µs, from its start; then all of the above.
    let attained = 112_000 + wire(1_000) + wire(999) + wire(1_000) + sent(600);
    case.has(0, &[192_000 + 240_000, sent(600)], attained);
}

#[test]
fn class_a_over_two_bridges_with_a_lower_frame_at_each_port() {
    let mut net = tandem(&["h2", "h1", "h6"], &["h3", "h4", "h5"]);
    for (node, peer) in [("h1", "b"), ("h2", "b"), ("b", "c"), ("c", "h3")] {
        net.credit(node, peer, 7, 40);
    }
    net.stream("h1", &["h3"], 7, 500).at(1);
    net.stream("h1", &["h2"], 0, 1_500);
    // Both of class A are queued at b at 159 040, that of h2 first. It costs 4000 bits of credit,
    // which 40 Mb/s regain 100 µs after its start: then a lower one has just started.
    let there = wire(1_500) + sent(500);
    net.stream("h2", &["h3"], 7, 500).at(wire(1_500));
    net.stream("h6", &["h4"], 0, 1_500).at(there + 100_000 - 1 - sent(1_500));
    // And again at c.
    let last = there + 100_000 - 1 + wire(1_500) + sent(500);
    net.stream("h4", &["h3"], 0, 1_500).at(last - 1 - sent(1_500));
    let case = Case::new(net);
    // At c both could come back to back if b had credit (40 Mb/s · 120 µs = 4800 bits): 4000 bits
    // more after 40 µs, which take 100 µs. But they cannot also have met at b.
    let terms = [
        wire(1_500),
        sent(500),
        wire(1_500) + 100_000,
        sent(500),
        wire(1_500) + 100_000 - 40_000,
        sent(500),
    ];
    let sum: i64 = terms.iter().sum();
    case.has(0, &terms, sum - 60_000 - 3).near(0, 905);
}

#[test]
fn class_b_over_a_bridge_with_class_a_and_a_lower_frame_at_each_port() {
    let mut net = star(&["h1", "h3", "h4", "h5", "h6"]);
    for (node, peer) in [("h1", "b"), ("b", "h3")] {
        net.credit(node, peer, 7, 40);
        net.credit(node, peer, 6, 25);
    }
    net.stream("h1", &["h3"], 6, 600).at(1);
    net.stream("h1", &["h6"], 0, 1_500);
    // 40 Mb/s · 120 µs = 4800 bits: as much as 500 octets cost twice, at −60 Mb/s for 40 µs. A
    // third one could start with the last bit of credit, which the nanosecond before costs: 499.
    let class_a = |net: &mut Net, from, to, at| {
        for octets in [500, 499, 500] {
            net.stream(from, &[to], 7, octets).at(at);
        }
    };
    class_a(&mut net, "h1", "h6", 1);
    let each = wire(1_500) + wire(500) + wire(499) + wire(500);
    let there = each + sent(600);
    net.stream("h5", &["h3"], 0, 1_500).at(there - 1 - sent(1_500));
    class_a(&mut net, "h4", "h3", there - sent(500));
    let case = Case::new(net);
    // C · 120 µs / (C − 40 Mb/s) and 40 µs at each port: all but an octet and a nanosecond.
    let terms = [200_000 + wire(500), sent(600), 200_000 + wire(500), sent(600)];
    case.has(0, &terms, 2 * (each - 1) + 2 * sent(600)).near(0, 999);
}

#[test]
fn what_a_shaper_spread_comes_spread_to_the_next_port() {
    let mut net = star(&["h1", "h2", "h3"]);
    for host in ["h1", "h2"] {
        net.credit(host, "b", 7, 25);
        net.stream(host, &["h3"], 7, 1_000).frames(3);
    }
    net.credit("b", "h3", 7, 50);
    let case = Case::new(net);
    // Each frame's 8000 bits are regained in 320 µs: two hosts' pairs come at that distance, and
    // the second of each waits for 8000 bits at 50 Mb/s. The bound lets two ends of transmissions
    // be closer than their starts, by 80 µs: 8000 + 25 Mb/s · (80 µs + t) from each, from
    // t = 26.67 µs on: 12 000 bits more than the own frame take 240 µs.
    // A nanosecond more of credit is counted, as it may recover between two of them.
    let terms = [2 * 320_000, sent(1_000), 240_001, sent(1_000)];
    case.has(1, &terms, 2 * 320_000 + 2 * sent(1_000) + 160_000).near(1, 922);
}

#[test]
fn credit_that_a_shaper_gathered_comes_at_once_to_the_next_port() {
    let mut net = star(&["h1", "h2", "h3"]);
    net.credit("h1", "b", 7, 25);
    net.credit("b", "h3", 7, 25);
    net.0.links[2].propagation = Span::from_ns(300);
    net.stream("h1", &["h3"], 7, 200).frames(6).at(1);
    net.stream("h1", &["h2"], 0, 1_500);
    let case = Case::new(net);
    // The burst is paid for once: 120 µs, 6 · 1600 bits at 25 Mb/s, once more 1600 bits until a
    // frame is whole at b, and 1 ns of rounding; without the last gap (960 ns) and both links. In
    // the engine the three first frames come back to back, and the sixth leaves b 5 · 64 µs after
    // the first, whatever it waited for at h1.
    let whole = wire(1_500) + 384_000 + 64_000 + 1 - 960;
    let longest = wire(1_500) + 320_000 + 2 * sent(200) + 300 - 1;
    case.has(0, &[whole - 2 * sent(200), sent(200), sent(200) + 300], longest).near(0, 829);
}

#[test]
fn what_is_above_the_shaper_delays_it_before_its_credit_does() {
    let mut net = pair();
    net.credit("h1", "h2", 5, 50);
    net.stream("h1", &["h2"], 5, 1_000).frames(2);
    net.stream("h1", &["h2"], 6, 700).at(160_000);
    net.stream("h1", &["h2"], 0, 1_500).at(159_999);
    let case = Case::new(net);
    let wait = 160_000 + wire(1_500) + wire(700);
    case.has(0, &[wait, sent(1_000)], wait + sent(1_000) - 1);
}

#[test]
fn what_jitter_brings_together_above_the_shaper_costs_it_most_at_a_corner() {
    let mut net = pair();
    net.credit("h1", "h2", 5, 75);
    net.stream("h1", &["h2"], 5, 125).frames(16);
    let stream = net.stream("h1", &["h2"], 6, 250);
    stream.source = Source::Periodic { interval: Span::from_us(200), jitter: Span::from_us(140) };
    // What is above may have waited for a frame of 10 µs: 2000 + 40 Mb/s · t, and from 50 µs on
    // 3500 + 10 Mb/s · t. So the shaper is served from 2000 / 60 = 33.3 µs on, at 60 Mb/s until
    // 50 µs: 1000 bits, though credit would allow 75 Mb/s. The other 14 000 bits of the first 15
    // frames take 186.7 µs of credit.
    Case::new(net).within(0, &[50_000 + 186_667, sent(125)], 800);
}

#[test]
fn a_frame_of_class_b_lets_class_a_gather_credit_too() {
    let mut net = pair();
    net.credit("h1", "h2", 7, 50);
    net.credit("h1", "h2", 6, 25);
    net.stream("h1", &["h2"], 6, 1_000).frames(2);
    net.stream("h1", &["h2"], 7, 500).at(319_999);
    // 80 µs · 50 Mb/s = 4000 bits, sent at (100 − 50) Mb/s, and half of a frame of 4000 bits: 6000
    // bits at 50 Mb/s take 120 µs. The first frame of 8000 bits takes 320 µs of credit. In the
    // engine class A's frame of 40 µs comes when that is over: what it gathered was lost. 84 %.
    let longest = 319_999 + wire(500) + sent(1_000);
    Case::new(net).has(0, &[120_000 + 320_000, sent(1_000)], longest).near(0, 845);
}

#[test]
fn where_an_octet_takes_no_whole_nanoseconds_class_a_takes_more_than_it_pays_for() {
    let mut net = Net::new(&["h1", "h2"], &[]);
    net.link("h1", "h2", 2_500_000_000);
    net.credit("h1", "h2", 7, 1_000);
    net.credit("h1", "h2", 6, 500);
    net.stream("h1", &["h2"], 6, 88).at(1);
    net.stream("h1", &["h2"], 7, 88).at(1).frames(2);
    net.stream("h1", &["h2"], 0, 88);
    // The shortest frame, 84 octets (672 bits), takes 268.8 ns: up to 2.5 Gb/s / 672 bits · 1 ns =
    // 0.372 % more, 1003.720239 Mb/s. 88 octets take 282 ns, 705 bits: 705 + 705 · 0.598512 bits at
    // 1496.279761 Mb/s are 753.16 ns. In the engine the first frame of class A costs all of its
    // 281 ns of credit and more, and class B is next: 3/4 of it.
    let longest = 282 + 282 - 1 + 244;
    Case::new(net).has(0, &[754, 244], longest);
}

#[test]
fn what_is_above_class_a_lets_it_gather_credit_too() {
    let mut net = pair();
    net.credit("h1", "h2", 6, 50);
    net.stream("h1", &["h2"], 5, 100).at(1);
    for octets in [500, 499, 500, 500, 500] {
        net.stream("h1", &["h2"], 6, octets).at(1);
    }
    net.stream("h1", &["h2"], 7, 1_500).at(1);
    net.stream("h1", &["h2"], 0, 500);
    // Class A gathers 50 Mb/s for 40 + 120 µs, 8000 bits, and sends for 160 µs and a frame of 40
    // more; an octet less, as above. The bound counts 8000 bits for 4000 of the lower frame, as
    // for some frame of 500 octets and what is above it class A has so much credit:
    // (8000 + 2000 + 12 000) / 50 Mb/s.
    let longest = wire(500) + wire(1_500) + wire(2_499) + sent(100) - 1;
    Case::new(net).has(0, &[440_000, sent(100)], longest).near(0, 820);
}

#[test]
fn port_by_port_gathered_credit_is_a_burst_at_the_next_port() {
    let mut net = Net::new(&["h1", "h2", "h3", "h4", "h5"], &["b", "c"]);
    for (host, bridge) in [("h1", "b"), ("h2", "b"), ("h3", "b"), ("h4", "c"), ("h5", "c")] {
        net.link(host, bridge, 100_000_000);
    }
    net.credit("h1", "b", 7, 25);
    net.credit("b", "h3", 7, 25);
    net.stream("h1", &["h3"], 7, 200).frames(6).at(1);
    net.stream("h1", &["h2"], 0, 1_500);
    // Elsewhere a frame of the same queue is cut through: so ports are looked at one by one.
    net.stream("h4", &["h5"], 7, 100);
    net.bridge("c").cut_through = true;
    // h1: 120 µs and 5 · 1600 bits at 25 Mb/s; meanwhile 3000 bits of credit. b: no more than
    // 3000 + 1600 + 25 Mb/s · (16 µs + t), nor than the line: from t = 45.33 µs on 4533 bits
    // beside the own frame, which take 181.33 µs,
    // and the credit of one nanosecond.
    let terms = [wire(1_500) + 320_000, sent(200), 136_001, sent(200)];
    let longest = wire(1_500) + 320_000 + 2 * sent(200) - 1;
    Case::new(net).has(0, &terms, longest).near(0, 775);
}
