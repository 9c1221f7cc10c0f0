use crate::build::{Net, two_hosts};
use onbeat_bounds::{plan, warnings};
use onbeat_model::diagnostic::Severity;
use onbeat_model::system::{Class, Delay};
use onbeat_model::time::Span;
use onbeat_model::units::Octets;
use proptest::prelude::*;

fn bound_ns(net: &Net, channel: usize) -> i64 {
    plan(&net.0, true).unwrap().channels[channel].bound().unwrap().as_ns()
}

#[test]
fn the_bound_of_the_papers_channel_is_the_sum_worked_out_by_hand() {
    let net = two_hosts();
    let plan = plan(&net.0, true).unwrap();
    let terms: Vec<_> = plan.channels[0].bounds[0]
        .terms
        .iter()
        .map(|t| (t.what.as_str(), t.span.as_ns()))
        .collect();
    // Messages come every 20 ms, at most 125 µs early, and delays differ by far less: one message
    // never waits for another. The largest other frame: (8 + 1522 + 12) · 8 ns = 12 336 ns.
    // The frame to its last octet: (8 + 68) · 8 ns = 608 ns, and 50 ns on the way.
    let expected = [
        ("stack of h1", 60_000),
        ("class A queue at h1.p1", 12_336),
        ("link from h1.p1", 608 + 50),
        ("forwarding in cat1", 2_000),
        ("class A queue at cat1.p2", 12_336),
        ("link from cat1.p2", 658),
        ("forwarding in cat2", 2_000),
        ("class A queue at cat2.p2", 12_336),
        ("link from cat2.p2", 658),
        ("stack of h2", 40_000),
    ];
    assert_eq!(terms, expected);
    assert_eq!(plan.channels[0].bound(), Some(Span::from_ns(142_982)));
    assert!(warnings(&net.0, &plan).is_empty());
}

#[test]
fn a_burst_waits_for_itself_at_the_reserved_rate_at_every_port() {
    let mut net = two_hosts();
    net.0.channels[0].burst = 4;
    let plan = plan(&net.0, true).unwrap();
    // The reservation is that of the mean rate.
    assert_eq!(plan.channels[0].reserved_rate.as_bps(), 5_632_000);
    assert_eq!(plan.channels[0].true_rate.as_bps(), 35_200);
    let queues: Vec<_> = plan.channels[0].bounds[0]
        .terms
        .iter()
        .filter(|t| t.what.starts_with("class A queue"))
        .map(|t| t.span.as_ns())
        .collect();
    // h1: four messages come at once, the last one waits for three: 3 · 704 bit / 5.632 Mb/s.
    // Further on they come no faster than h1's shaper lets them: its credit is at most
    // 5.632 Mb/s · (12 336 + 1) ns, the 1 for recovering between two nanoseconds. In any window T
    // come at most that and 704 + 5.632 Mb/s · (T + 704 ns) bit; the wait behind all but the own
    // message is 12 337 + 704 ns.
    assert_eq!(queues, [12_336 + 375_000, 12_336 + 13_041, 12_336 + 13_041]);
}

/// A class A and a class B stream over one wire of 100 Mb/s.
fn both_classes() -> Net {
    let mut net = Net::new(&["h1", "h2"], &[]);
    net.link("h1", "h2", 100_000_000);
    let a = net.channel("a", "h1", &["h2"]);
    (a.size, a.interval) = (Octets::new(100), Span::from_us(125));
    let b = net.channel("b", "h1", &["h2"]);
    (b.class, b.size, b.interval) = (Class::B, Octets::new(200), Span::from_us(250));
    net
}

#[test]
fn class_b_also_waits_for_class_a() {
    let net = both_classes();
    // A: 100 + 46 + 20 = 166 octets, 1328 bits each 125 µs = 10.624 Mb/s, 13 280 ns on the wire.
    //    Up to 1/8 of an interval early: 166 bits, 15 625 ns at the idleSlope.
    //    1542 · 80 = 123 360; (8 + 146) · 80 = 12 320.
    assert_eq!(bound_ns(&net, 0), 123_360 + 15_625 + 12_320);
    // B: 266 octets, 2128 bits each 250 µs = 8.512 Mb/s; 1/8 early is 31 250 ns.
    //    ⌈123 360 · 100 / (100 − 10.624)⌉ = ⌈138 023.6⌉; then A's largest frame.
    //    (8 + 246) · 80 = 20 320.
    assert_eq!(bound_ns(&net, 1), 138_024 + 13_280 + 31_250 + 20_320);
}

#[test]
fn streams_of_one_class_wait_for_each_other() {
    let mut net = Net::new(&["h1", "h2"], &[]);
    net.link("h1", "h2", 1_000_000_000);
    for name in ["a", "b", "c"] {
        net.channel(name, "h1", &["h2"]);
    }
    // Two other messages at 3 · 5.632 Mb/s: 2 · 704 / 16.896 M = ⌈83 333.3⌉ ns.
    assert_eq!(bound_ns(&net, 1), 12_336 + 83_334 + 608);
}

#[test]
fn clock_offsets_and_drift_count_until_the_longest_run_is_over() {
    let mut net = two_hosts();
    let idle = bound_ns(&net, 0);
    net.node("h1").clock.offset = Span::from_ns(-500);
    net.node("h2").clock.offset = Span::from_ns(300);
    assert_eq!(bound_ns(&net, 0), idle + 800);
    // 1 ppm for 10 s and the latency of 142 982 ns: ⌈10 000.143⌉ ns.
    net.node("h2").clock.drift_ppb = 1_000;
    assert_eq!(bound_ns(&net, 0), idle + 800 + 10_001);
    net.0.run.duration = Span::from_s(20);
    assert_eq!(bound_ns(&net, 0), idle + 800 + 20_001);
}

#[test]
fn a_listener_whose_clock_is_behind_does_not_lower_the_bound() {
    let mut net = two_hosts();
    let idle = bound_ns(&net, 0);
    net.node("h2").clock.offset = Span::from_us(-100);
    assert_eq!(bound_ns(&net, 0), idle);
}

#[test]
fn two_clocks_that_drift_alike_cost_only_what_they_drift_during_the_latency() {
    let mut net = two_hosts();
    let idle = bound_ns(&net, 0);
    for host in ["h1", "h2"] {
        net.node(host).clock.drift_ppb = 100_000;
    }
    // 143 µs · 100 ppm = 14.3 ns and 1 ns of rounding; the talker's rate is 100 ppm higher too,
    // and its readings' rounding may let a message go 1 ns early.
    assert_eq!(bound_ns(&net, 0), idle + 16);
}

#[test]
fn a_chain_is_bounded_by_its_channels_and_the_work_between() {
    let mut net = Net::new(&["sensor", "controller", "actuator"], &["b"]);
    for host in ["sensor", "controller", "actuator"] {
        net.link(host, "b", 1_000_000_000);
    }
    net.channel("up", "sensor", &["actuator", "controller"]);
    net.channel("down", "controller", &["actuator"]);
    net.host("actuator").stack_rx = Delay::Interval { min: Span::ZERO, max: Span::from_us(500) };
    net.program("slow", "controller", Span::from_us(200));
    net.program("fast", "controller", Span::from_us(100));
    net.chain(&[0, 1], Span::from_ms(1));
    let plan = plan(&net.0, true).unwrap();
    let up = plan.channels[0].bounds[1].total();
    let down = plan.channels[1].bounds[0].total();
    assert!(up < plan.channels[0].bounds[0].total(), "the actuator's stack is not on the way up");
    assert_eq!(plan.chains, [Some(up + Span::from_us(200) + down)]);
    assert!(warnings(&net.0, &plan).is_empty());
}

#[test]
fn messages_of_a_burst_wait_for_the_work_on_those_before() {
    let between = |burst, work_ms| {
        let mut net = two_hosts();
        net.channel("back", "h2", &["h1"]);
        net.0.channels.iter_mut().for_each(|c| c.burst = burst);
        net.program("answer", "h2", Span::from_ms(work_ms));
        net.chain(&[0, 1], Span::from_s(1));
        let plan = plan(&net.0, true).unwrap();
        let channels: Span = plan.channels.iter().map(|c| c.bound().unwrap()).sum();
        plan.chains[0].unwrap() - channels
    };
    assert_eq!(between(1, 5), Span::from_ms(5));
    assert_eq!(between(4, 5), Span::from_ms(20));
    // Work that never ends before the next message: one that comes 125 µs and a nanosecond of
    // rounding early waits as long.
    assert_eq!(between(1, 20), Span::from_ms(20) + Span::from_ns(125_001));
    assert_eq!(between(4, 20), Span::from_ms(80) + Span::from_ns(125_001));
}

#[test]
fn a_slower_clock_holds_back_what_a_faster_one_triggers() {
    let chain = |drift_1, drift_2| {
        let mut net = two_hosts();
        net.channel("back", "h2", &["h1"]);
        net.program("answer", "h2", Span::ZERO);
        net.chain(&[0, 1], Span::from_s(1));
        net.node("h1").clock.drift_ppb = drift_1;
        net.node("h2").clock.drift_ppb = drift_2;
        let plan = plan(&net.0, true).unwrap();
        let channels: Span = plan.channels.iter().map(|c| c.bound().unwrap()).sum();
        (plan.chains[0].unwrap() - channels).as_ns()
    };
    assert_eq!(chain(0, 0), 0);
    assert_eq!(chain(0, 50_000), 0);
    // 10 s at 100 ppm is 1 ms, by a clock that is 50 ppm slow ⌈1 000 050.003⌉ ns; 1 ns of rounding.
    assert_eq!(chain(50_000, -50_000), 1_000_052);
}

#[test]
fn promises_below_the_worst_case_are_warned_of() {
    let mut net = two_hosts();
    net.0.channels[0].fixed_delay = Span::from_ns(142_981);
    net.chain(&[0], Span::from_ns(142_981));
    let tight = plan(&net.0, true).unwrap();
    let found = warnings(&net.0, &tight);
    let codes: Vec<_> = found.iter().map(|w| (w.severity, w.code.as_str())).collect();
    assert_eq!(codes, [(Severity::Warning, "OB2005"), (Severity::Warning, "OB2006")]);
    net.0.channels[0].fixed_delay = Span::from_ns(142_982);
    net.0.chains[0].deadline = Span::from_ns(142_982);
    assert!(warnings(&net.0, &plan(&net.0, true).unwrap()).is_empty());
}

/// `size` bridges in a ring with a host each; each host talks to the one `hops` further on.
fn circle(size: usize, hops: usize) -> Net {
    let hosts: Vec<_> = (0..size).map(|i| format!("h{i}")).collect();
    let bridges: Vec<_> = (0..size).map(|i| format!("b{i}")).collect();
    let names = |list: &[String]| list.to_vec();
    let (host_names, bridge_names) = (names(&hosts), names(&bridges));
    let hosts: Vec<_> = host_names.iter().map(String::as_str).collect();
    let bridges: Vec<_> = bridge_names.iter().map(String::as_str).collect();
    let mut net = Net::new(&hosts, &bridges);
    for i in 0..size {
        net.link(hosts[i], bridges[i], 1_000_000_000);
        net.link(bridges[i], bridges[(i + 1) % size], 1_000_000_000);
    }
    for i in 0..size {
        let channel = net.channel(hosts[i], hosts[i], &[hosts[(i + hops) % size]]);
        channel.interval = Span::from_us(125);
    }
    net
}

#[test]
fn ports_that_wait_for_each_other_in_a_circle_are_bounded_where_the_bound_settles() {
    let net = circle(5, 2);
    let plan = plan(&net.0, true).unwrap();
    let bounds: Vec<_> = plan.channels.iter().map(|c| c.bound()).collect();
    assert!(bounds[0].is_some());
    assert!(bounds.iter().all(|b| *b == bounds[0]), "a circle looks the same from everywhere");
}

#[test]
fn ports_that_wait_for_each_other_without_end_are_an_error_for_each_stream() {
    // Over four links of the circle, waits grow by half in each round.
    let net = circle(9, 4);
    let errors = plan(&net.0, true).unwrap_err();
    assert!(!errors.is_empty());
    assert!(errors.iter().all(|e| e.code.as_str() == "OB2004"), "{errors:?}");
}

fn line(streams: u32, size: u32, interval_us: i64, propagation_ns: i64) -> Net {
    let mut net = two_hosts();
    net.0.channels.clear();
    for link in &mut net.0.links {
        link.propagation = Span::from_ns(propagation_ns);
    }
    for i in 0..streams {
        let channel = net.channel(&format!("c{i}"), "h1", &["h2"]);
        channel.size = Octets::new(size);
        channel.interval = Span::from_us(interval_us);
    }
    net
}

proptest! {
    #[test]
    fn one_more_stream_of_the_same_kind_never_lowers_a_bound(
        streams in 1u32..10, size in 1u32..200, interval_us in 125i64..50_000,
    ) {
        let fewer = bound_ns(&line(streams, size, interval_us, 50), 0);
        let more = bound_ns(&line(streams + 1, size, interval_us, 50), 0);
        prop_assert!(fewer <= more);
    }

    #[test]
    fn a_longer_way_adds_exactly_its_propagation(
        streams in 1u32..10, interval_us in 125i64..50_000, extra_ns in 0i64..1_000_000,
    ) {
        let short = bound_ns(&line(streams, 8, interval_us, 50), 0);
        let long = bound_ns(&line(streams, 8, interval_us, 50 + extra_ns), 0);
        prop_assert_eq!(long, short + 3 * extra_ns);
    }

    #[test]
    fn the_bound_is_never_below_the_latency_of_the_idle_network(
        streams in 1u32..10, size in 1u32..200, interval_us in 125i64..50_000,
    ) {
        let frame_ns = i64::from(8 + (size + 46).max(68)) * 8;
        let idle = 60_000 + 3 * (frame_ns + 50) + 2 * 2_000 + 40_000;
        prop_assert!(bound_ns(&line(streams, size, interval_us, 50), 0) >= idle);
    }
}

#[test]
fn at_rates_where_an_octet_takes_no_whole_nanoseconds_the_bound_covers_the_rounding() {
    let mut net = both_classes();
    net.0.links[0].rate = onbeat_model::units::BitRate::from_mbps(10_000);
    // A: 1542 · 0.8 = ⌈1233.6⌉; 166 octets take ⌈132.8⌉ = 133 ns, as 1330 bits would: an eighth is
    // 166.25 bits, ⌈166.25 / 10.64 Mb/s⌉ with 1330 bits each 125 µs reserved; (8 + 146) · 0.8.
    let plan = plan(&net.0, true).unwrap();
    assert_eq!(plan.channels[0].reserved_rate.as_bps(), 10_640_000);
    assert_eq!(bound_ns(&net, 0), 1_234 + 15_625 + 124);
    // B: frames of 88 octets would take 71 ns, not 70.4: class A's 10.64 Mb/s count as 10.791137.
    // Its frame occupies 1330 bits, less what its credit regains meanwhile.
    // (12 340 + 1330 − 1.415) / (10 000 − 10.791137) = 1368.3 ns
    assert_eq!(bound_ns(&net, 1), 1_369 + 31_250 + 204);
}

#[test]
fn a_chain_through_a_host_that_is_not_triggered_by_what_it_reads_has_no_bound() {
    let whole = |change: &dyn Fn(&mut Net)| {
        let mut net = two_hosts();
        net.channel("back", "h2", &["h1"]);
        net.program("answer", "h2", Span::from_us(200));
        net.chain(&[0, 1], Span::from_ms(1));
        change(&mut net);
        let plan = plan(&net.0, true).unwrap();
        let codes: Vec<_> = warnings(&net.0, &plan).iter().map(|d| d.code.as_str()).collect();
        (plan.chains[0].is_some(), codes)
    };
    assert_eq!(whole(&|_| ()), (true, vec![]));
    assert_eq!(whole(&|net| net.0.programs.clear()), (false, vec!["OB2008"]));
    let slower = |net: &mut Net| net.0.channels[1].interval = Span::from_ms(40);
    assert_eq!(whole(&slower), (false, vec!["OB2008"]));
    let swamped = |net: &mut Net| net.0.programs[0].work_max = Span::from_us(20_001);
    assert_eq!(whole(&swamped), (false, vec!["OB2008"]));
    // A burst that the answers' rate does not allow would wait for it.
    let bursts = |to, back| {
        move |net: &mut Net| {
            (net.0.channels[0].burst, net.0.channels[1].burst) = (to, back);
            net.0.chains[0].deadline = Span::from_ms(10);
            net.0.channels[0].fixed_delay = Span::from_ms(10);
            net.0.channels[1].fixed_delay = Span::from_ms(10);
        }
    };
    assert_eq!(whole(&bursts(3, 2)), (false, vec!["OB2008"]));
    assert_eq!(whole(&bursts(3, 3)), (true, vec![]));
}

#[test]
fn a_message_older_than_a_frame_can_tell_is_refused() {
    for (stack_ms, refused) in [(3_200, false), (3_300, true)] {
        let mut net = two_hosts();
        net.host("h1").stack_tx =
            Delay::Interval { min: Span::from_ms(stack_ms), max: Span::from_ms(stack_ms) };
        let codes: Vec<_> =
            plan(&net.0, true).err().unwrap_or_default().iter().map(|e| e.code.as_str()).collect();
        assert_eq!(codes, if refused { vec!["OB2009"] } else { vec![] });
    }
}
