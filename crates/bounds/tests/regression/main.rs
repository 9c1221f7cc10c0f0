//! Small systems made to break one step of the bounds each: what random networks hardly ever meet.

mod build;

use build::{Net, list};
use onbeat_model::stream::Source;
use onbeat_model::system::{Channel, Class, NodeKind};
use onbeat_model::time::{ClockError, Span};
use onbeat_model::units::{MacAddress, Octets, StreamId};

const GBPS: u64 = 1_000_000_000;

/// Two frames of a lower queue may be in the way: the second one starts while the change of lists
/// keeps its gate open, and is still on the wire when the new list opens the higher one's.
#[test]
fn a_change_of_lists_costs_what_hangs_over_it() {
    let mut net = Net::new();
    let (a, b, c) = (net.host(), net.bridge(), net.host());
    net.link(a, b, 10 * GBPS);
    let out = net.link(b, c, GBPS);
    // Class 7 is closed in the last 5 of 100 µs; class 0 never closes where class 7 opens.
    let entries = [(0x80, 20_000), (0x81, 75_000), (0x01, 5_000)];
    net.settings(out).gates = vec![
        list(-1_000_000, 100_000, true, &entries),
        list(1_097_000, 100_000, true, &[(0xff, 1)]),
    ];
    let low = 1_000_000 + 81_309;
    net.trace((a, c), 0, 1_480, &[low, low + 1]);
    net.trace((a, c), 7, 64, &[low + 2]);
    net.keeps();
}

#[test]
fn small_frames_on_lines_of_different_rates_come_as_fast_as_they_do() {
    let mut net = Net::new();
    let (bridge, sink) = (net.bridge(), net.host());
    net.link(bridge, sink, 10 * GBPS);
    for _ in 0..4 {
        let host = net.host();
        net.link(host, bridge, 5 * GBPS / 2);
        net.trace((host, sink), 7, 64 + 5, &[1_000_000; 200]);
    }
    net.keeps();
}

#[test]
fn a_line_may_bring_a_frame_a_rounded_nanosecond_earlier() {
    let mut worst = i64::MIN;
    for (first, second) in (68..78).flat_map(|a| (68..78).map(move |b| (a, b))) {
        let mut net = Net::new();
        let (a, b, c) = (net.host(), net.bridge(), net.host());
        net.link(a, b, 5 * GBPS / 2);
        net.link(b, c, GBPS / 100);
        net.trace((a, c), 7, first, &[1_000_000]);
        net.trace((a, c), 7, second, &[1_000_000]);
        for (max, bound) in net.run() {
            worst = worst.max(max - bound.expect("a bound"));
        }
    }
    assert!(worst <= 0, "{worst} ns beyond the bound");
}

#[test]
fn fragments_take_whole_nanoseconds_each() {
    let mut worst = i64::MIN;
    for rate in [5 * GBPS / 2, 10 * GBPS] {
        for (express, delay) in (68..78).flat_map(|e| (0..40).map(move |d| (e, 100 + 7 * d))) {
            let mut net = Net::new();
            let (a, b, c) = (net.host(), net.host(), net.bridge());
            let sink = net.host();
            net.link(a, c, rate);
            net.link(b, c, rate);
            let out = net.link(c, sink, rate);
            net.settings(out).preemptable = 0x7f;
            net.trace((a, sink), 5, 1_000, &[1_000_000]);
            let start = 1_000_000 + 1_008 * 8 * GBPS as i64 / rate as i64;
            let there = start - (express + 8) * 8 * GBPS as i64 / rate as i64;
            net.trace((b, sink), 7, express as u32, &[there + delay]);
            for (max, bound) in net.run() {
                worst = worst.max(max - bound.expect("a bound"));
            }
        }
    }
    assert!(worst <= 0, "{worst} ns beyond the bound");
}

#[test]
fn what_learning_bridges_flood_is_in_the_way_everywhere() {
    let mut net = Net::new();
    let (a, b, c) = (net.host(), net.host(), net.host());
    let d = net.host();
    let (one, two) = (net.bridge(), net.bridge());
    for (host, bridge) in [(a, one), (b, one), (c, two), (d, two)] {
        net.link(host, bridge, GBPS / 10);
    }
    net.link(one, two, GBPS / 10);
    for bridge in [one, two] {
        let NodeKind::Bridge(bridge) = &mut net.0.nodes[bridge.index()].kind else {
            unreachable!()
        };
        bridge.learning = true;
    }
    net.0.channels.push(Channel {
        name: "loose".to_owned(),
        destination: MacAddress([2, 0, 0, 0, 0, b.0 as u8 + 1]),
        stream_id: StreamId(1),
        class: Class::A,
        size: Octets::new(1_400),
        integrity: Default::default(),
        talker_address: None,
        interval: Span::from_us(500),
        burst: 1,
        talker: a,
        listeners: vec![b],
        fixed_delay: Span::from_ms(1),
        deadline: None,
        lifespan: None,
        reserve: false,
        vlan: 2,
        pcp: 0,
        paths: Default::default(),
        message_type: None,
        phase_jitter: None,
        class_is_open: false,
        phase: Span::ZERO,
        origin: Default::default(),
    });
    let interval = Span::from_ns(171_717);
    net.stream((a, d), 7, Octets::new(100), Source::Periodic { interval, jitter: Span::ZERO });
    let interval = Span::from_ns(151_717);
    net.stream((c, d), 7, Octets::new(100), Source::Periodic { interval, jitter: Span::ZERO });
    net.keeps();
}

/// Cycles of 1 ms that begin at 100 µs of true time, as the bridge's clock is behind. Until then
/// all gates are open.
fn late_clock(own: &[(u8, i64)]) -> Net {
    let mut net = Net::new();
    let (a, b, far, c) = (net.host(), net.bridge(), net.bridge(), net.host());
    let other = net.host();
    net.link(a, b, GBPS);
    net.link(other, b, 10 * GBPS);
    let out = net.link(b, far, GBPS);
    net.link(far, c, GBPS);
    net.0.nodes[b.index()].clock =
        ClockError { offset: Span::from_us(-100), ..ClockError::default() };
    net.settings(out).gates = vec![list(0, 1_000_000, true, own)];
    let interval = Span::from_ms(1);
    let periodic = Source::Periodic { interval, jitter: Span::ZERO };
    let own = net.stream((a, c), 5, Octets::new(100), periodic);
    net.0.streams[own].phase = Span::from_us(2);
    let aside = net.host();
    net.link(far, aside, GBPS);
    net.trace((other, aside), 7, 1_480, &[0; 7]);
    net
}

#[test]
fn others_may_keep_a_scheduled_frame_until_the_first_cycle_begins() {
    let net = late_clock(&[(0x20, 200_000), (0xdf, 500_000), (0x20, 300_000)]);
    let (max, bound) = net.run()[0];
    assert!(bound.is_none_or(|bound| max <= bound), "took {max} of {bound:?}");
}

#[test]
fn a_scheduled_frame_may_go_at_once_before_the_first_cycle_begins() {
    let net = late_clock(&[(0xdf, 300_000), (0x20, 400_000), (0xdf, 300_000)]);
    net.run();
}
