use crate::build::Net;
use onbeat_bounds::{document, plan, warnings};
use onbeat_model::diagnostic::Origin;
use onbeat_model::plan::{Bound, BoundTerm};
use onbeat_model::port::{PortSettings, Selection};
use onbeat_model::stream::{PathRequest, Source, Stream};
use onbeat_model::system::{Class, PortId};
use onbeat_model::time::Span;
use onbeat_model::units::{BitRate, Octets};
use proptest::prelude::*;

const GIGABIT: u64 = 1_000_000_000;

#[test]
fn the_paths_of_a_multicast_channel_share_their_beginning_and_are_reserved_once() {
    // h1 ─ b1 ─ b2 ─ h2
    //       │    └── h3
    //       b3 ─ h4
    let mut net = Net::new(&["h1", "h2", "h3", "h4"], &["b1", "b2", "b3"]);
    let links =
        [("h1", "b1"), ("b1", "b2"), ("b2", "h2"), ("b2", "h3"), ("b1", "b3"), ("b3", "h4")];
    for (a, b) in links {
        net.link(a, b, GIGABIT);
    }
    net.channel("c", "h1", &["h3", "h4", "h2"]);
    net.noise("h4", "h2");
    let plan = plan(&net.0, true).unwrap();
    let paths = &plan.channels[0].paths;
    assert_eq!(net.labels(&paths[0]), ["h1.p1", "b1.p2", "b2.p3"]);
    assert_eq!(net.labels(&paths[1]), ["h1.p1", "b1.p3", "b3.p2"]);
    assert_eq!(net.labels(&paths[2]), ["h1.p1", "b1.p2", "b2.p2"]);
    let tree = plan.channels[0].tree_ports();
    assert_eq!(tree.len(), 6);
    for port in tree {
        assert_eq!(plan.ports[port.index()].idle_slope(Class::A).as_bps(), 5_632_000);
        assert_eq!(plan.ports[port.index()].class_a_streams, 1);
    }
    assert_eq!(net.labels(&plan.noise[0]), ["h4.p1", "b3.p1", "b1.p2", "b2.p2"]);
    let reserved = plan.ports.iter().filter(|p| p.class_a_streams > 0).count();
    assert_eq!(reserved, 6, "noise and the other directions reserve nothing");
}

#[test]
fn the_shortest_way_wins_and_among_equals_the_one_over_the_port_that_comes_first() {
    // A square of bridges: from b1 to b4 both ways are equally long.
    let mut net = Net::new(&["h1", "h2", "h3"], &["b1", "b2", "b3", "b4"]);
    let links = [
        ("h1", "b1"),
        ("b1", "b3"),
        ("b1", "b2"),
        ("b2", "b4"),
        ("b3", "b4"),
        ("b4", "h2"),
        ("b2", "h3"),
    ];
    for (a, b) in links {
        net.link(a, b, GIGABIT);
    }
    net.channel("c", "h1", &["h2", "h3"]);
    let plan = plan(&net.0, true).unwrap();
    let paths = &plan.channels[0].paths;
    assert_eq!(net.labels(&paths[0]), ["h1.p1", "b1.p2", "b3.p2", "b4.p3"]);
    assert_eq!(net.labels(&paths[1]), ["h1.p1", "b1.p3", "b2.p3"]);
}

/// Three bridges in a ring, with a host at each: h1 at b1, h2 at b2, h3 at b3.
fn ring() -> Net {
    let mut net = Net::new(&["h1", "h2", "h3"], &["b1", "b2", "b3"]);
    for (a, b) in
        [("h1", "b1"), ("h2", "b2"), ("h3", "b3"), ("b1", "b2"), ("b2", "b3"), ("b3", "b1")]
    {
        net.link(a, b, GIGABIT);
    }
    net
}

pub(crate) fn stream<'a>(net: &'a mut Net, name: &str, from: &str, to: &[&str]) -> &'a mut Stream {
    let stream = Stream {
        name: name.to_owned(),
        talker: net.id(from),
        listeners: to.iter().map(|name| net.id(name)).collect(),
        traffic_class: 7,
        vlan: 2,
        pcp: 7,
        frame: [Octets::new(68); 2],
        source: Source::Periodic { interval: Span::from_ms(1), jitter: Span::ZERO },
        phase: Span::ZERO,
        regulator: None,
        policing: None,
        paths: Default::default(),
        deadline: None,
        origin: Origin::default(),
    };
    net.0.streams.push(stream);
    net.0.streams.last_mut().expect("just added")
}

fn settings<'a>(net: &'a mut Net, label: &str) -> &'a mut PortSettings {
    let at = (0..net.0.ports.len() as u32).map(PortId).find(|id| net.0.port_label(*id) == label);
    &mut net.0.ports[at.expect("a port of the test").index()].settings
}

fn codes(net: &Net) -> Vec<&'static str> {
    plan(&net.0, true).err().unwrap_or_default().iter().map(|e| e.code.as_str()).collect()
}

#[test]
fn streams_go_the_shortest_way_round_a_ring_and_those_to_several_form_a_tree() {
    let mut net = ring();
    stream(&mut net, "s", "h1", &["h2", "h3"]);
    let plan = plan(&net.0, false).unwrap();
    let paths = &plan.streams[0].paths;
    assert_eq!(paths.iter().map(Vec::len).collect::<Vec<_>>(), [1, 1]);
    assert_eq!(net.labels(&paths[0][0]), ["h1.p1", "b1.p2", "b2.p1"]);
    assert_eq!(net.labels(&paths[1][0]), ["h1.p1", "b1.p3", "b3.p1"]);
}

#[test]
fn a_stream_takes_the_ways_that_it_asks_for() {
    let mut net = ring();
    let ways = [vec!["b1", "b2"], vec!["b1", "b3", "b2"]];
    let ways = ways.map(|way| way.into_iter().map(|b| net.id(b)).collect());
    stream(&mut net, "s", "h1", &["h2"]).paths = PathRequest::along(ways.to_vec());
    let plan = plan(&net.0, true).unwrap();
    let paths = &plan.streams[0].paths[0];
    assert_eq!(net.labels(&paths[0]), ["h1.p1", "b1.p2", "b2.p1"]);
    assert_eq!(net.labels(&paths[1]), ["h1.p1", "b1.p3", "b3.p2", "b2.p1"]);
}

#[test]
fn frames_only_leave_ports_that_send_their_vlan() {
    let mut net = ring();
    net.channel("c", "h1", &["h2"]);
    net.noise("h1", "h2");
    stream(&mut net, "s", "h1", &["h2"]).vlan = 3;
    net.0.streams[0].traffic_class = 5;
    settings(&mut net, "b1.p2").vlans = Some(vec![3]);
    let made = plan(&net.0, true).unwrap();
    let round = ["h1.p1", "b1.p3", "b3.p2", "b2.p1"];
    assert_eq!(net.labels(&made.channels[0].paths[0]), round, "VLAN 2 does not leave b1.p2");
    let direct = ["h1.p1", "b1.p2", "b2.p1"];
    assert_eq!(net.labels(&made.streams[0].paths[0][0]), direct);
    assert_eq!(net.labels(&made.noise[0]), direct, "noise has no tag");

    settings(&mut net, "b1.p3").vlans = Some(vec![3, 4]);
    let errors = plan(&net.0, true).unwrap_err();
    let [error] = &errors[..] else { panic!("{errors:?}") };
    assert_eq!(error.code.as_str(), "OB2010");
    assert_eq!(error.message, "channel `c`: no path from `h1` to `h2` within VLAN 2");
}

#[test]
fn a_way_that_leaves_the_vlan_is_refused() {
    let mut net = ring();
    let way = vec![net.id("b1"), net.id("b2")];
    stream(&mut net, "s", "h1", &["h2"]).paths = PathRequest::along(vec![way]);
    settings(&mut net, "h1.p1").vlans = Some(vec![2]);
    assert_eq!(codes(&net), [""; 0]);
    settings(&mut net, "b1.p2").vlans = Some(vec![]);
    assert_eq!(codes(&net), ["OB2010"], "though there is another way");
}

#[test]
fn a_stream_shares_a_reserved_queue_only_where_the_description_sets_the_idle_slope() {
    let mut net = ring();
    net.channel("c", "h1", &["h2"]);
    stream(&mut net, "s", "h3", &["h2"]);
    // The channel goes over b1, the stream does not: they share b2's port to h2 only.
    assert_eq!(codes(&net), ["OB2011"]);
    assert!(plan(&net.0, false).is_ok(), "nothing is reserved");
    settings(&mut net, "b2.p1").selection[7] =
        Selection::CreditBased { idle_slope: BitRate::from_mbps(20) };
    let made = plan(&net.0, true).unwrap();
    let slope = |label: &str| {
        let port = (0..).map(PortId).find(|id| net.0.port_label(*id) == label).unwrap();
        made.ports[port.index()].idle_slope(Class::A).as_bps()
    };
    assert_eq!(slope("b2.p1"), 20_000_000, "the description's");
    assert_eq!(slope("b1.p2"), 5_632_000, "what SRP reserves");
    net.0.streams[0].traffic_class = 5;
    settings(&mut net, "b2.p1").selection[7] = Selection::StrictPriority;
    assert_eq!(codes(&net), [""; 0], "queue 5 is nobody's");
}

#[test]
fn an_idle_slope_below_the_reservation_and_another_shaper_are_refused() {
    // 88 octets of wire each 125 µs are 5.632 Mb/s.
    for (selection, fits) in [
        (Selection::CreditBased { idle_slope: BitRate::from_bps(5_632_000) }, true),
        (Selection::CreditBased { idle_slope: BitRate::from_bps(5_631_999) }, false),
        (Selection::Asynchronous, false),
    ] {
        let mut net = ring();
        net.channel("c", "h1", &["h2"]);
        settings(&mut net, "b1.p2").selection[7] = selection;
        assert_eq!(codes(&net), if fits { vec![] } else { vec!["OB2012"] }, "{selection:?}");
    }
}

#[test]
fn the_description_may_give_reservations_more_than_three_quarters_of_a_link() {
    let mut net = ring();
    net.channel("c", "h1", &["h2"]);
    let slope = |mbps| Selection::CreditBased { idle_slope: BitRate::from_mbps(mbps) };
    settings(&mut net, "b1.p2").selection[7] = slope(900);
    assert_eq!(codes(&net), [""; 0]);
    settings(&mut net, "b1.p2").selection[5] = slope(101);
    assert_eq!(codes(&net), ["OB2001"], "but all queues together no more than the link has");
}

#[test]
fn a_stream_that_may_miss_its_deadline_is_told() {
    let mut net = ring();
    stream(&mut net, "s", "h1", &["h2", "h3"]).deadline = Some(Span::from_us(10));
    let mut made = plan(&net.0, true).unwrap();
    let bound = |ns| {
        let term = BoundTerm { what: "all".to_owned(), span: Span::from_ns(ns) };
        Some(Bound { terms: vec![term], best: Span::ZERO })
    };
    for (bounds, told) in [
        (vec![], 0),
        (vec![None, bound(10_000)], 0),
        (vec![bound(10_001), None], 1),
        (vec![bound(10_001), bound(20_000)], 2),
    ] {
        made.streams[0].bounds = bounds;
        let found: Vec<_> = warnings(&net.0, &made).iter().map(|w| w.code.as_str()).collect();
        assert_eq!(found, vec!["OB2013"; told]);
    }
}

fn ring_example() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/04-tsn-ring/system.toml");
    std::fs::read_to_string(path).expect("the example")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Beside the example's streams there is a channel, so that reservations are made as well.
    #[test]
    fn what_is_right_with_other_numbers_is_planned_without_a_panic(
        changes in prop::collection::vec((0usize..350, prop_oneof![
            0i64..9, 64i64..2_000, Just(1_000_000_000), any::<i64>(),
        ]), 1..4),
    ) {
        let change = |(i, text): (usize, &str)| match text.split_once(" = ") {
            Some((key, value)) if value.starts_with(|c: char| c.is_ascii_digit()) => {
                let new = changes.iter().find(|(line, _)| *line == i).map(|(_, number)| number);
                format!("{key} = {}\n", new.map_or(value.to_owned(), i64::to_string))
            }
            _ => format!("{text}\n"),
        };
        let channel = "[[channel]]\nname = \"c\"\ndestination = \"01:00:5e:00:00:01\"\n\
            stream_id = 1\nclass = \"A\"\nsize_octets = 8\nrate_hz = 50\n\
            talker = \"scanner\"\nlisteners = [\"logger\"]\n";
        let text = format!("{}{channel}", ring_example());
        let text: String = text.lines().enumerate().map(change).collect();
        let loaded = onbeat_description::load("system.toml", &text, &mut |_| Err(String::new()));
        if let Some(system) = loaded.system
            && let Ok(made) = plan(&system, true)
        {
            let document = document(&system, &made);
            prop_assert_eq!(document.streams.len(), system.streams.len());
        }
    }
}

#[test]
fn the_example_of_a_ring_is_planned_with_both_ways_of_its_replicated_stream() {
    let loaded =
        onbeat_description::load("system.toml", &ring_example(), &mut |_| Err(String::new()));
    let system = loaded.system.expect("nothing is wrong");
    assert!(system.closes_loop().is_some());
    let net = Net(system);
    let made = plan(&net.0, true).unwrap();
    let [short, long] = &made.streams[0].paths[0][..] else { panic!("two ways") };
    assert_eq!(net.labels(short), ["plc.p1", "north.east", "east.drive"]);
    let round = ["plc.p1", "north.west", "west.south", "south.east", "east.drive"];
    assert_eq!(net.labels(long), round);
}
