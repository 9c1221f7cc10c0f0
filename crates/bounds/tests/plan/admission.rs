use crate::build::{Net, two_hosts};
use onbeat_bounds::plan;
use onbeat_model::codes::plan as codes;
use onbeat_model::dedicated::DedicatedPath;
use onbeat_model::diagnostic::Severity;
use onbeat_model::integrity::Integrity;
use onbeat_model::port::{GateControl, GateEntry};
use onbeat_model::system::{Bridge, Class, NodeKind, QueueLimits};
use onbeat_model::time::{NetTime, Span};
use onbeat_model::units::Octets;

/// Two hosts on one wire.
fn wire(rate_bps: u64) -> Net {
    let mut net = Net::new(&["h1", "h2"], &[]);
    net.link("h1", "h2", rate_bps);
    net
}

fn codes(net: &Net) -> Vec<&'static str> {
    plan(&net.0, true).unwrap_err().iter().map(|e| e.code.as_str()).collect()
}

#[test]
fn nothing_is_reserved_at_a_bridge_with_a_dedicated_path() {
    let mut net = Net::new(&["h1", "h2"], &["b"]);
    net.link("h1", "b", 100_000_000);
    net.link("b", "h2", 100_000_000);
    net.channel("a", "h1", &["h2"]);
    assert!(plan(&net.0, true).is_ok());
    let dedicated_path = Some(DedicatedPath::default());
    net.node("b").kind = NodeKind::Bridge(Bridge { dedicated_path, ..Bridge::default() });
    assert_eq!(codes(&net), [codes::OVER_DEDICATED.as_str()]);
    // As best effort it is planned.
    net.0.channels[0].reserve = false;
    assert!(plan(&net.0, true).is_ok());
}

#[test]
fn a_slow_stream_reserves_one_frame_in_each_measurement_interval_and_shows_its_true_rate() {
    let net = two_hosts();
    let plan = plan(&net.0, true).unwrap();
    // 88 octets each 20 ms; 88 octets each 125 µs.
    assert_eq!(plan.channels[0].true_rate.as_bps(), 35_200);
    assert_eq!(plan.channels[0].reserved_rate.as_bps(), 5_632_000);
}

#[test]
fn a_fast_stream_reserves_whole_frames_in_each_measurement_interval() {
    let mut net = wire(1_000_000_000);
    net.channel("a", "h1", &["h2"]).interval = Span::from_us(100);
    let b = net.channel("b", "h1", &["h2"]);
    (b.class, b.interval) = (Class::B, Span::from_us(100));
    let plan = plan(&net.0, true).unwrap();
    // ⌈125/100⌉ = 2 frames of 704 bits each 125 µs; ⌈250/100⌉ = 3 each 250 µs.
    assert_eq!(plan.channels[0].reserved_rate.as_bps(), 2 * 704 * 8_000);
    assert_eq!(plan.channels[1].reserved_rate.as_bps(), 3 * 704 * 4_000);
    assert_eq!(plan.channels[0].true_rate.as_bps(), 7_040_000);
    assert_eq!(plan.ports[0].idle_slope(Class::A).as_bps(), 11_264_000);
    assert_eq!(plan.ports[0].idle_slope(Class::B).as_bps(), 8_448_000);
}

#[test]
fn the_trailer_of_a_message_is_reserved_and_bounded_like_so_many_octets_of_it() {
    let planned = |size, integrity| {
        let mut net = two_hosts();
        (net.0.channels[0].size, net.0.channels[0].integrity) = (Octets::new(size), integrity);
        let channel = plan(&net.0, true).unwrap().channels[0].clone();
        (channel.reserved_rate, channel.true_rate, channel.bound())
    };
    assert_eq!(planned(100, Integrity::Crc), planned(108, Integrity::None));
    assert_eq!(planned(100, Integrity::Authenticated), planned(132, Integrity::None));
    assert_ne!(planned(100, Integrity::Authenticated), planned(100, Integrity::None));
}

#[test]
fn a_talker_with_a_fast_clock_reserves_what_it_can_really_send() {
    let mut net = wire(1_000_000_000);
    net.channel("a", "h1", &["h2"]).interval = Span::from_us(125);
    net.node("h1").clock.drift_ppb = 100_000;
    let plan = plan(&net.0, true).unwrap();
    // 5 632 000 × 1.0001 = 5 632 563.2
    assert_eq!(plan.channels[0].reserved_rate.as_bps(), 5_632_564);
    assert_eq!(plan.channels[0].true_rate.as_bps(), 5_632_000);
}

#[test]
fn three_quarters_of_a_port_are_admitted_and_one_bit_per_second_more_is_not() {
    for (rate_bps, admitted) in [(22_528_000, true), (22_527_999, false)] {
        let mut net = wire(rate_bps);
        for name in ["a", "b", "c"] {
            // 3 × 5.632 Mb/s = 16.896 Mb/s = 75 % of 22.528 Mb/s
            net.channel(name, "h1", &["h2"]);
        }
        assert_eq!(plan(&net.0, true).is_ok(), admitted, "{rate_bps} b/s");
    }
}

#[test]
fn both_classes_count_together() {
    let mut net = wire(10_000_000);
    net.channel("a", "h1", &["h2"]);
    assert!(plan(&net.0, true).is_ok());
    net.channel("b", "h1", &["h2"]).class = Class::B;
    // 5.632 + 2.816 = 8.448 Mb/s > 7.5 Mb/s
    assert_eq!(codes(&net), ["OB2001"]);
}

#[test]
fn an_overloaded_port_is_named_with_sum_limit_and_streams_the_largest_first() {
    let mut net = wire(10_000_000);
    net.channel("small", "h1", &["h2"]);
    net.channel("large", "h1", &["h2"]).size = Octets::new(100);
    let errors = plan(&net.0, true).unwrap_err();
    let [error] = &errors[..] else { panic!("one error, not {errors:?}") };
    assert_eq!((error.severity, error.code), (Severity::Error, codes::OVERLOADED));
    assert_eq!(
        error.message,
        "port h1.p1 would reserve 16.256 Mb/s of its 10 Mb/s, more than the limit of 7.5 Mb/s \
         (75 %): `large` 10.624 Mb/s, `small` 5.632 Mb/s"
    );
    assert_eq!(error.at.as_ref().unwrap().0, net.0.channels[1].origin);
    assert!(!error.help.is_empty());
}

#[test]
fn channels_of_a_manifest_that_ask_for_more_than_three_quarters_of_a_link_are_refused() {
    // 5.632 Mb/s each: 75 Mb/s hold 13.
    let first = |n| {
        format!(
            "{{ .dst = {{1, 0, 0x5e, 0, 0, {n}}}, .stream_id = {n}, .class = CLASS_A, .size = 8, \
             .freq = 50, .name = \"c{n}\" }},\n"
        )
    };
    let second =
        |n| first(n).replace(".class", ".sc").replace(".freq = 50", ".interval_ns = 1000000");
    let load = |manifest: String, channels: u32| {
        let mut text = "format = 1\nname = \"x\"\nmanifest = \"m.h\"\n[run]\nduration_s = 1\n\
            [[host]]\nname = \"h1\"\n[[host]]\nname = \"h2\"\n\
            [[link]]\nends = [\"h1\", \"h2\"]\nrate_mbps = 100\n"
            .to_owned();
        for n in 1..=channels {
            text +=
                &format!("[[channel]]\nname = \"c{n}\"\ntalker = \"h1\"\nlisteners = [\"h2\"]\n");
        }
        let loaded = onbeat_description::load("system.toml", &text, &mut |_| Ok(manifest.clone()));
        (loaded.system.expect("each channel by itself is right"), loaded.sources)
    };
    let array = |name: &str, entry: &dyn Fn(u32) -> String, channels: u32| {
        format!("struct {name}[] = {{\n{}}};\n", (1..=channels).map(entry).collect::<String>())
    };
    let spellings: [(&str, &dyn Fn(u32) -> String); 2] =
        [("net_fifo net_fifo_chans", &first), ("channel_attrs nc_channels", &second)];
    for (name, entry) in spellings {
        let (system, _) = load(array(name, entry, 13), 13);
        assert!(plan(&system, true).is_ok(), "{name}");
        let (system, sources) = load(array(name, entry, 14), 14);
        let errors = plan(&system, true).unwrap_err();
        let [error] = &errors[..] else { panic!("{errors:?}") };
        assert_eq!(error.code, codes::OVERLOADED);
        assert!(error.message.starts_with("port h1.p1 would reserve 78.848 Mb/s"), "{error:?}");
        assert!(error.message.contains("`c1` 5.632 Mb/s, `c2`"), "{error:?}");
        let (at, _) = error.at.as_ref().expect("a place");
        // The name of the first [[channel]] of the description.
        assert_eq!((at.file, sources[0].line(at.start)), (0, 14));
    }
}

/// All gates open, again and again.
fn open_gates() -> GateControl {
    let entries = vec![GateEntry { open: 0xff, span: Span::from_us(10) }];
    let (base, cycle) = (NetTime::ZERO, Span::from_us(10));
    GateControl { base, cycle, entries, length_aware: true }
}

#[test]
fn a_scheduled_channel_is_refused_where_the_plan_cannot_compute_gates_and_only_then() {
    let mut net = wire(1_000_000_000);
    net.channel("s", "h1", &["h2"]).class = Class::Scheduled;
    let planned = plan(&net.0, true).expect("it is alone");
    let launch = planned.channels[0].launch.as_ref().expect("a launch time");
    assert_eq!((launch.at, launch.windows.len()), (Span::ZERO, 1));
    net.0.ports[0].settings.gates.push(open_gates());
    assert_eq!(codes(&net), ["OB2002"]);
    assert!(plan(&net.0, false).is_ok());
    net.0.channels[0].reserve = false;
    assert!(!plan(&net.0, true).unwrap().channels[0].protected);
}

#[test]
fn all_errors_come_at_once() {
    let mut net = Net::new(&["h1", "h2", "h3"], &["b"]);
    for host in ["h1", "h2", "h3"] {
        net.link(host, "b", 10_000_000);
    }
    for (name, from) in [("a", "h1"), ("b", "h1"), ("c", "h2"), ("d", "h2")] {
        net.channel(name, from, &["h3"]);
    }
    net.channel("s", "h1", &["h2"]).class = Class::Scheduled;
    net.0.ports[0].settings.gates.push(open_gates());
    // The scheduled channel, and the ports h1.p1, h2.p1 and b.p3.
    assert_eq!(codes(&net), ["OB2002", "OB2001", "OB2001", "OB2001"]);
}

#[test]
fn without_protection_nothing_is_reserved_and_nothing_is_bounded() {
    let mut net = two_hosts();
    net.chain(&[0], Span::from_ms(1));
    let unprotected = plan(&net.0, false).unwrap();
    net.0.channels[0].reserve = false;
    for plan in [unprotected, plan(&net.0, true).unwrap()] {
        assert!(!plan.channels[0].protected);
        assert_eq!(plan.channels[0].reserved_rate.as_bps(), 0);
        assert_eq!(plan.channels[0].bound(), None);
        assert_eq!(plan.chains, [None]);
        assert!(
            plan.ports
                .iter()
                .all(|p| p.idle_slope(Class::A).as_bps() == 0 && p.class_a_streams == 0)
        );
    }
}

#[test]
fn a_queue_that_may_have_to_drop_a_reserved_frame_is_refused() {
    let mut net = wire(1_000_000_000);
    for name in ["a", "b", "c"] {
        net.channel(name, "h1", &["h2"]);
    }
    // Three frames of 68 octets may be there at once.
    let limits = |frames, octets| QueueLimits { frames, octets: Octets::new(octets) };
    for (queue, fits) in
        [(limits(3, 204), true), (limits(2, 10_000), false), (limits(100, 203), false)]
    {
        net.node("h1").queue = queue;
        match plan(&net.0, true) {
            Ok(_) => assert!(fits, "{queue:?}"),
            Err(errors) => {
                assert!(!fits, "{queue:?}");
                assert_eq!(errors.len(), 1);
                assert_eq!(errors[0].code, codes::QUEUE_TOO_SMALL);
                assert_eq!(errors[0].related.len(), 3);
            }
        }
    }
}

#[test]
fn clocks_that_come_more_than_a_second_apart_in_the_longest_run_are_refused() {
    // 100 ppm for 10,000 s are 1 s; the other clock's offset decides.
    for (offset_ns, refused) in [(0, false), (-1, true)] {
        let mut net = wire(1_000_000_000);
        net.channel("a", "h1", &["h2"]);
        net.0.run.duration = Span::from_s(10_000);
        net.node("h1").clock.drift_ppb = 100_000;
        net.node("h2").clock.offset = Span::from_ns(offset_ns);
        for protected in [false, true] {
            let found = plan(&net.0, protected).err().unwrap_or_default();
            let codes: Vec<_> = found.iter().map(|e| e.code.as_str()).collect();
            assert_eq!(codes, if refused { vec!["OB2007"] } else { vec![] });
        }
    }
}

#[test]
fn a_bounded_stream_whose_queue_may_overflow_is_warned_of() {
    let mut net = two_hosts();
    net.0.streams.push(onbeat_model::stream::Stream {
        name: "burst".to_owned(),
        talker: net.id("h1"),
        listeners: vec![net.id("h2")],
        traffic_class: 4,
        vlan: 2,
        pcp: 4,
        frame: [Octets::new(100); 2],
        source: onbeat_model::stream::Source::Bursty { interval: Span::from_ms(10), frames: 5 },
        phase: Span::ZERO,
        regulator: None,
        policing: None,
        paths: Default::default(),
        deadline: None,
        origin: Default::default(),
    });
    let codes = |net: &Net| -> Vec<_> {
        onbeat_bounds::warnings(&net.0, &plan(&net.0, true).unwrap())
            .iter()
            .map(|w| w.code.as_str())
            .collect()
    };
    // Five frames come at once: four wait behind the first, five behind a frame before them.
    net.node("h1").queue = QueueLimits { frames: 5, octets: Octets::new(1_000_000) };
    assert!(codes(&net).is_empty());
    net.node("h1").queue.frames = 4;
    assert_eq!(codes(&net), ["OB2014"]);
}
