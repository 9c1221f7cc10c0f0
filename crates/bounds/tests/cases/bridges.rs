//! Ways through bridges: cut-through, multicast, replication.

use crate::build::Net;
use crate::check::{Case, FAST, GIGABIT, Shape, sent, star, tandem, wire};
use onbeat_model::diagnostic::Origin;
use onbeat_model::port::Policing;
use onbeat_model::stream::{Fault, FaultKind, PathRequest, Source};
use onbeat_model::system::{Delay, LinkId};
use onbeat_model::time::{NetTime, Span};
use onbeat_model::units::Octets;

/// From the start of a frame until a bridge may cut it through.
const HEAD: i64 = 26 * 80;

#[test]
fn cut_through_bridges_wait_for_26_octets_only() {
    let mut net = tandem(&["h1", "h2"], &["h3", "h4"]);
    for bridge in ["b", "c"] {
        net.bridge(bridge).cut_through = true;
        net.bridge(bridge).forwarding = Span::from_ns(700);
    }
    net.stream("h1", &["h3"], 5, 1_000).at(1);
    net.stream("h2", &["h4"], 2, 500);
    let case = Case::new(net);
    let terms = [HEAD, 700, wire(500), HEAD, 700, sent(1_000)];
    let sum: i64 = terms.iter().sum();
    case.has(0, &terms, sum - 1);
}

#[test]
fn the_shortest_way_through_cut_through_bridges_is_a_frame_and_two_heads() {
    let mut net = tandem(&["h1"], &["h3"]);
    for bridge in ["b", "c"] {
        net.bridge(bridge).cut_through = true;
    }
    for link in &mut net.0.links {
        link.propagation = Span::from_ns(333);
    }
    net.host("h3").stack_rx = Delay::Interval { min: Span::from_us(5), max: Span::from_us(5) };
    net.stream("h1", &["h3"], 5, 1_000).every(1_000_000);
    let whole = 2 * HEAD + sent(1_000) + 3 * 333 + 5_000;
    let terms = [HEAD + 333, HEAD + 333, sent(1_000) + 333, 5_000];
    Case::new(net).has(0, &terms, whole).best(0, whole);
}

#[test]
fn a_multicast_waits_on_each_branch_for_what_is_there() {
    let mut net = tandem(&["h1", "h2"], &["h3", "h4"]);
    net.stream("h1", &["h2", "h4"], 5, 1_000).at(1);
    net.stream("h1", &["h3"], 2, 500);
    let there = wire(500) + sent(1_000);
    net.stream("h2", &["h3"], 2, 800).at(there - sent(800) - 1);
    let case = Case::new(net);
    let link = sent(1_000);
    case.has_at(0, 0, &[wire(500), link, link], wire(500) + 2 * link - 1);
    let terms = [wire(500), link, wire(800), link, link];
    case.has_at(0, 1, &terms, wire(500) + wire(800) + 3 * link - 2);
}

/// Two ways of a replicated stream, one of them through a slow bridge.
fn replicated(fails: bool) -> Case {
    let mut net = Net::new(&["h1", "h2", "h3"], &["b", "c", "d", "e"]);
    for (a, b) in [("h1", "b"), ("b", "c"), ("c", "e"), ("b", "d"), ("d", "e"), ("e", "h2")] {
        net.link(a, b, FAST);
    }
    net.link("h3", "d", FAST);
    net.bridge("d").forwarding = Span::from_ns(9_000);
    let ways = [["b", "c", "e"], ["b", "d", "e"]].map(|way| way.map(|n| net.id(n)).to_vec());
    net.stream("h1", &["h2"], 5, 1_000).paths = PathRequest::along(ways.to_vec());
    if fails {
        // In the way at d, a nanosecond before.
        net.stream("h3", &["h2"], 2, 500).at(2 * sent(1_000) - sent(500) - 1);
        net.0.faults.push(Fault {
            kind: FaultKind::LinkDown(LinkId(1)),
            from: NetTime::ZERO,
            until: NetTime::from_ns(1_000_000_000),
            origin: Origin::default(),
        });
    }
    Case::new(net)
}

#[test]
fn a_replicated_stream_is_bounded_over_its_slower_way_and_below_over_the_faster() {
    let link = sent(1_000);
    // With both ways the faster copy counts, and the slower one is eliminated.
    replicated(false).has(0, &[link, link, 9_000, link, link], 4 * link).best(0, 4 * link);
    // When the fast way fails, the slow one counts, and what is in its way. The bound does not know
    // that what it met at d is no longer there at e.
    let terms = [link, link, 9_000, wire(500), link, wire(500), link];
    replicated(true).has(0, &terms, 4 * link + 9_000 + wire(500) - 1).near(0, 901);
}

#[test]
fn a_bridge_does_not_cut_through_to_a_faster_port() {
    let mut net = Net::new(&["h1", "h2"], &["b"]);
    net.link("h1", "b", FAST);
    net.link("b", "h2", GIGABIT);
    net.bridge("b").cut_through = true;
    net.stream("h1", &["h2"], 5, 1_000);
    let whole = sent(1_000) + 988 * 8;
    Case::new(net).has(0, &[sent(1_000), 988 * 8], whole).best(0, whole);
}

#[test]
fn one_that_is_cut_through_comes_close_to_a_stored_one_before_it() {
    let mut net = star(&["h1", "h2", "h3"]);
    net.bridge("b").cut_through = true;
    // What is policed is stored.
    let policing = Policing { max_frame: Some(Octets::new(1_500)), ..Policing::default() };
    net.stream("h1", &["h3"], 5, 1_000).policing = Some(policing);
    net.stream("h1", &["h3"], 5, 1_000).frames(2);
    net.stream("h2", &["h3"], 5, 500).at(wire(1_000));
    // h1's first one is stored, the second and third are cut through: the second is at b only 38
    // octets after the first, but the bound takes it to come with it. So 24 000 and 4000 bits, less
    // the own 8000, when 80 µs of the first two are gone.
    let terms = [2 * wire(1_000), HEAD, 200_000 - 80_000, sent(1_000)];
    let sum: i64 = terms.iter().sum();
    Case::new(net).has(1, &terms, sum - wire(38)).near(1, 991);
}

#[test]
fn copies_over_a_slower_way_come_with_later_ones_over_the_faster() {
    let mut net = Net::new(&["h1", "h2", "h4"], &["b", "c", "d", "e"]);
    for (a, b) in [("h1", "b"), ("b", "c"), ("c", "e"), ("b", "d"), ("d", "e"), ("e", "h2")] {
        net.link(a, b, FAST);
    }
    net.link("h4", "e", FAST);
    net.bridge("d").forwarding = Span::from_us(20);
    let ways = [["b", "c", "e"], ["b", "d", "e"]].map(|way| way.map(|n| net.id(n)).to_vec());
    let stream = net.stream("h1", &["h2"], 5, 100);
    let frame = stream.frame[0];
    stream.paths = PathRequest::along(ways.to_vec());
    stream.source = Source::Trace(vec![(Span::ZERO, frame), (Span::from_us(20), frame)]);
    // The first one is lost on the fast way.
    net.0.faults.push(Fault {
        kind: FaultKind::LinkDown(LinkId(1)),
        from: NetTime::ZERO,
        until: NetTime::from_ns(15_000),
        origin: Origin::default(),
    });
    let both = 20_000 + 3 * sent(100);
    net.stream("h4", &["h2"], 2, 300).at(both - sent(300));
    let longest = 2 * wire(100) + 2 * sent(300);
    Case::new(net).has(1, &[sent(300), 2 * wire(100), sent(300)], longest);
}

#[test]
fn where_ports_wait_for_each_other_in_a_circle_a_nanosecond_more_settles() {
    let mut net = Net::new(&["h0", "h1", "h2", "h3"], &["b0", "b1", "b2"]);
    for (a, b) in [("b0", "b1"), ("b1", "b2"), ("b2", "b0")] {
        net.link(a, b, FAST);
    }
    for (host, bridge) in [("h0", "b0"), ("h1", "b1"), ("h2", "b2"), ("h3", "b0")] {
        net.link(host, bridge, FAST);
    }
    // Each over two links of the circle; what may be cut through is looked at port by port.
    for i in 0..3 {
        let name = |node: &str, at: usize| format!("{node}{}", at % 3);
        let way = (i..i + 3).map(|at| net.id(&name("b", at))).collect();
        net.stream(&name("h", i), &[&name("h", i + 2)], 5, 1_000).paths =
            PathRequest::along(vec![way]);
        net.bridge(&name("b", i)).cut_through = true;
    }
    let terms = [HEAD, wire(1_000) + 1, HEAD, wire(1_000) + 1, HEAD, 1, sent(1_000)];
    Case::new(net).within(0, &terms, 300);
}
