//! Strict priority.

use crate::build::Net;
use crate::check::{Case, FAST, GIGABIT, Shape, pair, sent, star, tandem, wire};
use onbeat_model::stream::Source;
use onbeat_model::system::Delay;
use onbeat_model::time::Span;
use onbeat_model::units::Octets;

#[test]
fn a_frame_waits_for_one_of_a_lower_queue_all_higher_ones_and_its_own_queue() {
    let mut net = pair();
    net.stream("h1", &["h2"], 5, 1_000).at(1);
    net.stream("h1", &["h2"], 5, 750).at(1);
    net.stream("h1", &["h2"], 6, 500).at(1);
    net.stream("h1", &["h2"], 7, 300).at(1);
    net.stream("h1", &["h2"], 2, 1_500);
    net.stream("h1", &["h2"], 3, 1_400).at(1);
    let case = Case::new(net);
    // For the longest of the lower ones (1500), 300, 500, and each for the other one. The lower
    // one must have started before, so that at least one nanosecond is not attained.
    let ahead = wire(1_500) + wire(300) + wire(500);
    case.has(1, &[ahead + wire(1_000), sent(750)], ahead + wire(1_000) + sent(750) - 1);
    case.has(0, &[ahead + wire(750), sent(1_000)], ahead + sent(1_000) - 1);
    // Two frames of 980 and 730 octets wait meanwhile.
    case.backlog(("h1", "h2", 5), [2, 980 + 730], [2, 980 + 730]);
}

#[test]
fn higher_frames_that_come_meanwhile_go_first_too() {
    let mut net = pair();
    net.stream("h1", &["h2"], 5, 1_000).at(1);
    net.stream("h1", &["h2"], 6, 500).at(1).every(159_999);
    net.stream("h1", &["h2"], 2, 1_500);
    // 500 octets (4000 bits) each 159 999 ns are ⌈25 000 156.25⌉ bit/s, below a bucket of 4000
    // bits: 100 Mb/s · x − 25.000 157 Mb/s · x = 12 000 + 4000 bits, x = ⌈213 333.8⌉ ns. In the
    // engine the second one comes when the first is over, at 160 000 ns, and a third too late:
    // 94 % of the bound, which counts parts of the third.
    Case::new(net).has(0, &[213_334, sent(1_000)], wire(1_500) + 2 * wire(500) + sent(1_000) - 1);
}

#[test]
fn a_burst_waits_for_itself_only_where_it_comes_at_once() {
    let mut net = tandem(&["h1"], &["h2"]);
    net.bridge("b").forwarding = Span::from_ns(3_000);
    net.0.links[1].propagation = Span::from_ns(450);
    net.stream("h1", &["h2"], 4, 600).frames(5);
    let case = Case::new(net);
    // At the next ports frames come no faster than the wire carried them, so they find no other.
    let link = sent(600);
    let terms = [4 * wire(600), link, 3_000, link + 450, link];
    let whole = 4 * wire(600) + 3 * link + 3_000 + 450;
    case.has(0, &terms, whole).best(0, 3 * link + 3_000 + 450);
    case.backlog(("h1", "b", 4), [5, 5 * 580], [5, 5 * 580]);
}

#[test]
fn bursts_over_several_lines_meet_and_each_comes_no_faster_than_its_line() {
    let mut net = star(&["h1", "h2", "h3", "h4"]);
    for host in ["h1", "h2", "h3"] {
        net.stream(host, &["h4"], 4, 1_000).frames(2);
    }
    let case = Case::new(net);
    // At the bridge first frames come from all three at once, second ones 80 µs later, when one
    // of the first is gone: the last of the six waits for five less those 80 µs.
    let terms = [wire(1_000), sent(1_000), 5 * wire(1_000) - wire(1_000), sent(1_000)];
    case.has(2, &terms, wire(1_000) + 2 * sent(1_000) + 4 * wire(1_000));
    // The queue never holds more than five.
    case.backlog(("b", "h4", 4), [6, 6 * 980], [5, 5 * 980]);
}

#[test]
fn a_lower_frame_blocks_at_every_hop_and_higher_ones_where_they_cross() {
    let mut net = tandem(&["h1", "h2"], &["h3", "h4"]);
    // Its way: h1, b, c. From a start 100 µs after the epoch it is queued at b at `there`.
    let start = 100_000;
    net.stream("h1", &["h3"], 5, 1_000).at(start + 1);
    net.stream("h1", &["h4"], 2, 500).at(start);
    let there = start + wire(500) + sent(1_000);
    net.stream("h2", &["h4"], 3, 1_500).at(there - sent(1_500) - 1);
    net.stream("h2", &["h3"], 6, 400).at(there);
    let case = Case::new(net);
    // h1: 500; b: 1500 and 400; c: 400, which the bound does not know to be ahead on the one line
    // from b: 7 % below it, but for the nanosecond of each lower frame.
    let terms =
        [wire(500), sent(1_000), wire(1_500) + wire(400), sent(1_000), wire(400), sent(1_000)];
    let sum: i64 = terms.iter().sum();
    case.has(0, &terms, sum - 1 - 1 - wire(400)).near(0, 930);
}

#[test]
fn delays_of_a_stack_bring_frames_together() {
    // Released a millisecond apart, the first one is late by as much: two at once.
    let mut net = Net::new(&["h1", "h2", "h3"], &["b"]);
    for (host, rate) in [("h1", GIGABIT), ("h2", GIGABIT), ("h3", FAST)] {
        net.link(host, "b", rate);
    }
    let late = |ms| (Span::from_ms(ms), 1);
    net.host("h1").stack_tx = Delay::Histogram(vec![late(0), late(1)]);
    net.host("h3").stack_rx = Delay::Histogram(vec![(Span::from_us(7), 1)]);
    net.host("h2").stack_tx = Delay::Histogram(vec![(Span::from_us(20), 1)]);
    net.stream("h1", &["h3"], 5, 1_000).every(1_000_000);
    net.stream("h2", &["h3"], 5, 1_000).every(1_000_000).at(1_000_000 - 20_000 + 8_000);
    let case = Case::new(net);
    // Two frames on the wire of 1 Gb/s, 8 µs each; when the second is at b, 72 µs of the first are
    // left, and this one comes. In the bound they come 1008 µs closer, as one waits 8 µs for the
    // other: 16 000 bits at once, a third 992 µs later, so 8.064517 Mb/s. The line's 8000 bits and
    // 1 Gb/s are less for ⌈8000 / 991.935⌉ = 8066 ns: at 8065, 16 065 bits, and
    // 64.52 of this stream's next frame, take 161 296 ns. 0.4 % of it are the parts of frames.
    let terms = [20_000, 7_904, 161_296 - 8_065, sent(1_000), 7_000];
    case.has(1, &terms, 20_000 + 7_904 + 72_000 + 80_000 + sent(1_000) + 7_000).near(1, 995);
}

#[test]
fn where_an_octet_takes_no_whole_nanoseconds_each_frame_is_rounded_up() {
    let mut net = Net::new(&["h1", "h2", "h3"], &["b"]);
    for host in ["h1", "h2", "h3"] {
        net.link(host, "b", 2_500_000_000);
    }
    for host in ["h1", "h2"] {
        net.stream(host, &["h3"], 5, 88).frames(5);
    }
    let case = Case::new(net);
    // 88 octets take ⌈281.6⌉ = 282 ns, 76 take ⌈243.2⌉ = 244. At b two times five frames of 282 ns
    // come within four of them: the last one waits for nine, less four. The bound takes the lines
    // to be faster by 705 / 704, as much as 282 ns are more than 704 bits: 4 · 705 bits come in
    // 1126.4 ns, one less as last octets may be closer than starts, and
    // (2 · 5 − 1) · 282 − 1125.4 = 1412.6.
    case.has(1, &[4 * 282, 244, 1_413, 244], 4 * 282 + 244 + 5 * 282 + 244);
}

#[test]
fn noise_and_frames_of_any_length_block_with_their_longest() {
    let mut net = pair();
    net.noise("h1", "h2");
    net.stream("h1", &["h2"], 5, 1_000).at(1);
    // 1470 octets of UDP are 1536 of the wire.
    Case::new(net).has(0, &[wire(1_536), sent(1_000)], wire(1_536) + sent(1_000) - 1);
    let mut net = pair();
    net.stream("h1", &["h2"], 5, 1_000);
    net.stream("h1", &["h2"], 0, 1_500).every(1_000_000).frame[0] = Octets::new(100);
    Case::new(net).within(0, &[wire(1_500), sent(1_000)], 350);
}

#[test]
fn a_queue_holds_what_may_come_while_its_last_frame_waits() {
    let mut net = pair();
    // 200 µs of jitter and 40 µs of waiting make 240: a closed window with the frame 240 µs later.
    net.host("h1").stack_tx = Delay::Interval { min: Span::ZERO, max: Span::from_us(200) };
    net.stream("h1", &["h2"], 5, 100).every(240_000);
    net.stream("h1", &["h2"], 2, 500);
    let case = Case::new(net);
    case.backlog(("h1", "h2", 5), [2, 160], [1, 80]);
}

#[test]
fn a_queue_holds_both_frames_of_a_trace_that_come_as_far_apart_as_one_waits() {
    let mut net = pair();
    let stream = net.stream("h1", &["h2"], 5, 100).at(1);
    let frame = stream.frame[0];
    stream.source = Source::Trace(vec![(Span::ZERO, frame), (Span::from_ns(40_000), frame)]);
    net.stream("h1", &["h2"], 2, 500);
    // In the engine the second one comes a nanosecond after the start of the first.
    Case::new(net).backlog(("h1", "h2", 5), [2, 160], [1, 80]);
}

#[test]
fn rounding_of_many_short_frames_adds_up() {
    let mut net = Net::new(&["h1", "h2", "h3", "h4", "h5"], &["b", "c"]);
    for host in ["h1", "h2", "h3"] {
        net.link(host, "b", 10 * GIGABIT);
    }
    // Elsewhere a frame of the same queue is cut through: so ports are looked at one by one.
    for host in ["h4", "h5"] {
        net.link(host, "c", GIGABIT);
    }
    net.bridge("c").cut_through = true;
    for host in ["h1", "h2"] {
        net.stream(host, &["h3"], 5, 88).frames(500);
    }
    net.stream("h4", &["h5"], 5, 100);
    // 88 octets take ⌈70.4⌉ = 71 ns, 76 take 61. Lines are taken to be faster by 710 / 704, at
    // 10.08522728 Gb/s: 499 frames of 710 bits come in 35 129.6 ns, and twice 500 less the own one
    // take 70 929; last octets may be a nanosecond closer. In the engine they come in 499 · 71.
    let longest = 499 * 71 + 61 + 500 * 71 + 61;
    Case::new(net).has(1, &[499 * 71, 61, 35_800, 61], longest).near(1, 995);
}
