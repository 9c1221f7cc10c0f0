//! Replicated channels: their paths, what the plan refuses, and the engine with links that fail.

use crate::build::Net;
use onbeat_bounds::{KeptPlan, difference, document, plan};
use onbeat_model::device::{Device, DeviceLimits};
use onbeat_model::diagnostic::Origin;
use onbeat_model::plan::Plan;
use onbeat_model::stream::{Fault, FaultKind, PathRequest};
use onbeat_model::system::{
    Bridge, Class, Delay, LinkId, NodeId, NodeKind, PortId, ReservationMode, Routing, System,
};
use onbeat_model::time::{NetTime, Span};
use onbeat_model::units::{BitRate, Octets};
use onbeat_net::{Engine, Options};
use onbeat_testkit::Random;
use std::collections::{BTreeSet, HashSet};

const GIGABIT: u64 = 1_000_000_000;

fn disjoint(count: u32) -> PathRequest {
    PathRequest { disjoint: count, history: PathRequest::HISTORY, ..PathRequest::default() }
}

fn codes(net: &Net) -> Vec<String> {
    let errors = plan(&net.0, true).expect_err("it is refused");
    errors.iter().map(|error| format!("{} {}", error.code.as_str(), error.message)).collect()
}

/// h1 at b1, h2 at b4, and b1 – b2 – b4, b1 – b3 – b4.
fn square() -> Net {
    let mut net = Net::new(&["h1", "h2"], &["b1", "b2", "b3", "b4"]);
    for (a, b) in
        [("h1", "b1"), ("b4", "h2"), ("b1", "b2"), ("b2", "b4"), ("b1", "b3"), ("b3", "b4")]
    {
        net.link(a, b, GIGABIT);
    }
    net.channel("c", "h1", &["h2"]).paths = disjoint(2);
    net
}

#[test]
fn a_replicated_channel_is_reserved_on_both_paths_with_its_tag_and_once_where_they_are_one() {
    let net = square();
    let plan = plan(&net.0, true).expect("a plan");
    let planned = &plan.channels[0];
    let labels: Vec<_> = planned.paths.iter().map(|path| net.labels(path)).collect();
    let upper = ["h1.p1", "b1.p2", "b2.p2", "b4.p1"];
    let lower = ["h1.p1", "b1.p3", "b3.p2", "b4.p1"];
    assert_eq!(labels, [upper, lower]);
    assert_eq!(planned.bounds.len(), 1);
    assert_eq!(planned.tree_ports().len(), 6);
    for port in planned.tree_ports() {
        assert_eq!(plan.ports[port.index()].class_a_streams, 1, "{}", net.0.port_label(port));
    }
    // 8 octets and the tag's 6 still fit into the shortest frame; 17 do not.
    assert_eq!(net.0.channels[0].frame(), Octets::new(68));
    let mut longer = square();
    longer.0.channels[0].size = Octets::new(17);
    assert_eq!(longer.0.channels[0].frame(), Octets::new(17 + 24 + 6 + 18 + 4));
    let document = document(&net.0, &plan);
    let listener = &document.channels[0].listeners[0];
    assert_eq!((&listener.path[..], listener.paths.len()), (&upper.map(str::to_owned)[..], 2));
    // A plan of it can be read back; its paths are the same without being kept.
    let kept = KeptPlan::new(&net.0, &document);
    let again = onbeat_bounds::plan_and_limits(&net.0, true, &kept).expect("a plan").0;
    assert_eq!(again.channels, plan.channels);
}

#[test]
fn what_is_kept_of_a_replicated_channel_are_its_windows() {
    let mut net = square();
    net.0.channels[0].class = Class::Scheduled;
    net.0.channels[0].interval = Span::from_ms(1);
    net.0.channels[0].fixed_delay = Span::from_us(900);
    let before = plan(&net.0, true).expect("a plan");
    let document = document(&net.0, &before);
    // One that is placed first, and would have its windows.
    let other = net.channel("a", "h1", &["h2"]);
    (other.class, other.interval) = (Class::Scheduled, Span::from_us(500));
    other.fixed_delay = Span::from_us(400);
    let alone = plan(&net.0, true).expect("a plan");
    let kept = KeptPlan::new(&net.0, &document);
    let after = onbeat_bounds::plan_and_limits(&net.0, true, &kept).expect("a plan").0;
    assert_ne!(alone.channels[0].launch, before.channels[0].launch, "it would move");
    assert_eq!(after.channels[0], before.channels[0]);
    assert_eq!(kept.held(&after), [1, 1]);
    // Windows on other paths than now are no windows of it.
    net.link("b1", "b4", GIGABIT);
    let kept = KeptPlan::new(&net.0, &document);
    let after = onbeat_bounds::plan_and_limits(&net.0, true, &kept).expect("a plan").0;
    assert_ne!(after.channels[0].paths, before.channels[0].paths);
    assert_eq!(kept.held(&after), [0, 1]);
}

#[test]
fn the_difference_of_plans_names_the_bridges_of_all_paths() {
    let mut net = square();
    let replicated = document(&net.0, &plan(&net.0, true).expect("a plan"));
    net.0.channels[0].paths = PathRequest::default();
    // Once it has only the way by b2.
    let single = document(&net.0, &plan(&net.0, true).expect("a plan"));
    let found = difference(&single, &replicated);
    assert_eq!(found.nodes, ["b1", "b2", "b3", "b4", "h1", "h2"]);
    let field = found.items[0].fields.iter().find(|field| field.what == "path to h2");
    let after = "h1.p1 b1.p2 b2.p2 b4.p1, h1.p1 b1.p3 b3.p2 b4.p1";
    assert_eq!(field.expect("its paths").after.as_deref(), Some(after));
    // By another port into b4, which knows the channel by it.
    let mut other = replicated.clone();
    other.channels[0].listeners[0].paths[1][2] = "b3.p9".to_owned();
    assert_eq!(difference(&other, &replicated).nodes, ["b3", "b4"]);
}

#[test]
fn a_path_gives_links_back_where_the_shortest_one_is_in_the_way_of_two() {
    // The shortest path takes b2 and b3, one of each of the two others.
    let mut net = Net::new(&["h1", "h2"], &["b1", "b2", "b3", "b4", "b5", "b6"]);
    let links = [
        ("h1", "b1"),
        ("b4", "h2"),
        ("b1", "b2"),
        ("b2", "b3"),
        ("b3", "b4"),
        ("b2", "b5"),
        ("b5", "b4"),
        ("b1", "b6"),
        ("b6", "b3"),
    ];
    for (a, b) in links {
        net.link(a, b, GIGABIT);
    }
    net.channel("c", "h1", &["h2"]).paths = disjoint(2);
    let made = plan(&net.0, true).expect("a plan");
    let labels: Vec<_> = made.channels[0].paths.iter().map(|path| net.labels(path)).collect();
    let upper = ["h1.p1", "b1.p2", "b2.p3", "b5.p2", "b4.p1"];
    let lower = ["h1.p1", "b1.p3", "b6.p2", "b3.p2", "b4.p1"];
    assert_eq!(labels, [upper, lower]);
    net.0.channels[0].paths = disjoint(3);
    assert_eq!(
        codes(&net),
        ["OB2019 channel `c`: there are no 3 paths from `h1` to `h2` within VLAN 2 that share no \
          bridge in between"]
    );
}

/// Bridges in one piece with hosts at the first and the last, and parallel links.
fn mesh(random: &mut Random) -> Net {
    let bridges: Vec<String> = (0..2 + random.below(7)).map(|n| format!("b{n}")).collect();
    let names: Vec<&str> = bridges.iter().map(String::as_str).collect();
    let mut net = Net::new(&["h1", "h2"], &names);
    net.link("h1", names[0], GIGABIT);
    net.link("h2", names[names.len() - 1], GIGABIT);
    for at in 1..names.len() {
        let other = random.below(at as u64) as usize;
        net.link(names[at], names[other], GIGABIT);
    }
    for _ in 0..random.below(12) {
        let (a, b) = (random.one_of(&names), random.one_of(&names));
        if a != b {
            net.link(a, b, GIGABIT);
        }
    }
    net
}

/// Every path between two bridges, as its ports.
fn all_paths(system: &System, from: NodeId, to: NodeId) -> Vec<Vec<PortId>> {
    let mut found = Vec::new();
    let mut ahead = vec![(from, Vec::<PortId>::new(), vec![from])];
    while let Some((at, path, seen)) = ahead.pop() {
        if at == to {
            found.push(path);
            continue;
        }
        for port in &system.node(at).ports {
            let next = system.port(system.port(*port).peer).node;
            if matches!(system.node(next).kind, NodeKind::Bridge(_)) && !seen.contains(&next) {
                let path = [&path[..], &[*port]].concat();
                ahead.push((next, path, [&seen[..], &[next]].concat()));
            }
        }
    }
    found
}

#[test]
fn two_disjoint_paths_are_found_wherever_there_are_two_and_no_shorter_ones_exist() {
    let mut outcomes = [0; 2];
    for seed in 0..2_000 {
        let mut net = mesh(&mut Random(seed));
        net.channel("c", "h1", &["h2"]).paths = disjoint(2);
        let system = &net.0;
        let end = |host: NodeId| system.port(system.port(system.node(host).ports[0]).peer).node;
        let [from, to] = [net.id("h1"), net.id("h2")].map(end);
        let all = all_paths(system, from, to);
        let inner = |path: &[PortId]| -> HashSet<NodeId> {
            path.iter().skip(1).map(|port| system.port(*port).node).collect()
        };
        let mut least = None;
        for (at, one) in all.iter().enumerate() {
            for other in &all[at + 1..] {
                let apart = inner(one).is_disjoint(&inner(other))
                    && !one.iter().any(|port| other.contains(port));
                if apart && least.is_none_or(|least| one.len() + other.len() < least) {
                    least = Some(one.len() + other.len());
                }
            }
        }
        outcomes[usize::from(least.is_some())] += 1;
        match (plan(system, true), least) {
            (Ok(plan), Some(least)) => {
                let [one, other] = &plan.channels[0].paths[..] else { panic!("seed {seed}") };
                assert!(one.len() <= other.len(), "seed {seed}");
                assert_eq!(one.len() + other.len() - 4, least, "seed {seed}");
                let [one, other] = [one, other].map(|path| &path[1..path.len() - 1]);
                assert!(inner(one).is_disjoint(&inner(other)), "seed {seed}");
                let ports: BTreeSet<_> = one.iter().chain(other).collect();
                assert_eq!(ports.len(), one.len() + other.len(), "seed {seed}: a link twice");
            }
            (Err(errors), None) => assert_eq!(errors[0].code.as_str(), "OB2019", "seed {seed}"),
            (found, least) => panic!("seed {seed}: {least:?} beside {found:?}"),
        }
    }
    assert!(outcomes.iter().all(|count| *count > 300), "{outcomes:?}");
}

#[test]
fn what_cannot_be_replicated_is_refused_with_its_reason() {
    let refused = |change: &dyn Fn(&mut Net), wanted: &str| {
        let mut net = square();
        change(&mut net);
        let found = codes(&net);
        assert!(found.len() == 1 && found[0].starts_with(wanted), "{wanted}: {found:?}");
    };
    refused(
        &|net| net.0.channels[0].class = Class::Asynchronous,
        "OB2019 channel `c` of class asynchronous is replicated",
    );
    refused(
        &|net| net.0.run.reservation = ReservationMode::Srp,
        "OB2017 channel `c` is replicated: the protocol reserves one path per listener",
    );
    // Two at once come one right after the other: over the slower path the first comes later.
    refused(
        &|net| net.0.channels[0].burst = 2,
        "OB2019 replicated channel `c`: messages may come 0 ns one after another, and by one path \
         up to",
    );
    refused(
        &|net| {
            let slow = net.id("b3");
            net.0.channels[0].interval = Span::from_us(200);
            net.0.nodes[slow.index()].kind =
                NodeKind::Bridge(Bridge { forwarding: Span::from_us(180), ..Bridge::default() });
        },
        "OB2019 replicated channel `c`: messages may come 175 µs one after another",
    );
    refused(
        &|net| {
            let limits = DeviceLimits { elimination: Some(false), ..DeviceLimits::UNKNOWN };
            let device = Device { name: "plain".to_owned(), limits, origin: Origin::default() };
            let devices = ["b1", "b4"].map(|name| (net.id(name), device.clone()));
            net.0.devices.extend(devices);
        },
        "OB2018 `b4` eliminates duplicates of replicated frames, and device `plain` does not",
    );
}

#[test]
fn paths_that_cross_at_a_bridge_are_refused() {
    // Both through b5, which cannot tell the one's frames from the other's.
    let mut net = Net::new(&["h1", "h2"], &["b1", "b2", "b3", "b4", "b5", "b6", "b7"]);
    let links = [
        ("h1", "b1"),
        ("b4", "h2"),
        ("b1", "b2"),
        ("b1", "b3"),
        ("b2", "b5"),
        ("b3", "b5"),
        ("b5", "b6"),
        ("b5", "b7"),
        ("b6", "b4"),
        ("b7", "b4"),
    ];
    for (a, b) in links {
        net.link(a, b, GIGABIT);
    }
    let along = |net: &Net, ways: &[&[&str]]| {
        let ids = |way: &&[&str]| way.iter().map(|name| net.id(name)).collect();
        PathRequest::along(ways.iter().map(ids).collect())
    };
    let crossing = along(&net, &[&["b1", "b2", "b5", "b6", "b4"], &["b1", "b3", "b5", "b7", "b4"]]);
    net.channel("c", "h1", &["h2"]).paths = crossing;
    assert_eq!(
        codes(&net),
        ["OB2019 channel `c`: paths come to `b5` by different ports and leave it by different \
             ports"]
    );
    // All four ways through it: what comes by either port leaves by both.
    let all: Vec<[&str; 5]> = ["b2", "b3"]
        .into_iter()
        .flat_map(|before| ["b6", "b7"].map(|after| ["b1", before, "b5", after, "b4"]))
        .collect();
    let all: Vec<&[&str]> = all.iter().map(|way| &way[..]).collect();
    net.0.channels[0].paths = along(&net, &all);
    plan(&net.0, true).expect("a plan");
}

#[test]
fn load_aware_routing_leaves_given_paths_and_counts_them() {
    let mut net = square();
    net.0.routing = Routing::LoadAware;
    // The hosts' own links carry all.
    net.0.links.iter_mut().skip(2).for_each(|link| link.rate = BitRate::from_mbps(100));
    let upper = vec![net.id("b1"), net.id("b2"), net.id("b4")];
    let big = |net: &mut Net, name: &str| {
        let channel = net.channel(name, "h1", &["h2"]);
        channel.interval = Span::from_us(250);
        channel.size = Octets::new(1_150);
        channel.class = Class::B;
    };
    big(&mut net, "given");
    net.0.channels[1].paths = PathRequest::along(vec![upper]);
    big(&mut net, "free");
    let plan = plan(&net.0, true).expect("the free one goes below");
    let second = |channel: usize| net.labels(&plan.channels[channel].paths[0])[1].clone();
    assert_eq!([second(0), second(1), second(2)], ["b1.p2", "b1.p2", "b1.p3"]);
}

/// A mesh with stacks, forwarding times and rates of its own, with replicated channels and others
/// in both directions.
fn busy(random: &mut Random) -> Net {
    let mut net = mesh(random);
    for node in 0..net.0.nodes.len() {
        let delay =
            Delay::Interval { min: Span::ZERO, max: Span::from_ns(random.below(20_000) as i64) };
        match &mut net.0.nodes[node].kind {
            NodeKind::Host(host) => {
                (host.stack_tx, host.stack_rx) = (delay.clone(), delay);
            }
            NodeKind::Bridge(bridge) => {
                bridge.forwarding = Span::from_ns(random.below(5_000) as i64);
                bridge.cut_through = random.below(4) == 0;
            }
        }
    }
    for link in &mut net.0.links {
        link.rate = BitRate::from_mbps(random.one_of(&[100, 1_000, 1_000]));
        link.propagation = Span::from_ns(random.below(2_000) as i64);
    }
    for number in 0..1 + random.below(5) {
        let (from, to) = random.one_of(&[("h1", "h2"), ("h1", "h2"), ("h2", "h1")]);
        let channel = net.channel(&format!("c{number}"), from, &[to]);
        channel.class = random.one_of(&[Class::A, Class::B, Class::Scheduled]);
        channel.size = Octets::new(1 + random.below(300) as u32);
        channel.interval = Span::from_us(1_000 + random.below(2_000) as i64);
        channel.phase = Span::from_ns(random.below(500_000) as i64);
        if channel.class == Class::Scheduled {
            channel.interval = Span::from_us(random.one_of(&[1_000, 2_000, 4_000]));
            channel.fixed_delay = channel.interval;
        }
        if random.below(3) > 0 {
            channel.paths = disjoint(2);
        }
    }
    if random.below(2) == 0 {
        net.noise("h1", "h2");
    }
    net
}

fn simulate(system: &System, plan: &Plan, seed: u64) -> onbeat_model::observed::Observed {
    let options = Options {
        seed,
        host_delays: true,
        load_bin: Span::from_ms(100),
        noise_until: NetTime::from_ns(30_000_000),
        traffic_until: NetTime::from_ns(30_000_000),
        model_channels: true,
    };
    let mut engine = Engine::new(system, plan, options);
    while engine.advance(NetTime::from_ns(60_000_000)).is_some() {}
    engine.observed()
}

#[test]
fn with_one_path_down_no_message_is_lost_late_or_out_of_order() {
    let (mut systems, mut checked, mut faulted, mut eliminated) = (0, [0; 3], 0, 0);
    for seed in 0.. {
        if systems == 1_000 {
            break;
        }
        assert!(seed < 10_000, "too few can be planned");
        let mut random = Random(seed);
        let mut net = busy(&mut random);
        let Ok(made) = plan(&net.0, true) else { continue };
        let replicated: Vec<usize> =
            (0..net.0.channels.len()).filter(|c| net.0.channels[*c].paths.disjoint > 0).collect();
        if replicated.is_empty() {
            continue;
        }
        systems += 1;
        // A link that not all paths of any of them share fails, now and then.
        let between = |link: LinkId| {
            let ends = net.0.links[link.index()].ports.map(|port| net.0.port(port).node);
            ends.iter().all(|node| matches!(net.0.node(*node).kind, NodeKind::Bridge(_)))
        };
        let links: Vec<LinkId> =
            (0..net.0.links.len() as u32).map(LinkId).filter(|link| between(*link)).collect();
        let link = random.one_of(&links);
        let mut at = 0;
        while at < 30_000_000 && random.below(8) > 0 {
            let from = at + random.below(8_000_000) as i64;
            let until = from + 1 + random.below(6_000_000) as i64;
            net.0.faults.push(Fault {
                kind: FaultKind::LinkDown(link),
                from: NetTime::from_ns(from),
                until: NetTime::from_ns(until),
                origin: Origin::default(),
            });
            at = until;
        }
        let seen = simulate(&net.0, &made, seed);
        for channel in replicated {
            let (flow, bound) = (&seen.channels[channel], &made.channels[channel].bounds[0]);
            let end = &flow.listeners[0];
            let name = format!("seed {seed}: {}", net.0.channels[channel].name);
            assert_eq!((end.frames, end.reordered), (flow.released, 0), "{name}: {flow:?}");
            assert!(end.max <= Some(bound.total()), "{name}: {:?} of {}", end.max, bound.total());
            assert!(end.min >= Some(bound.best), "{name}: {:?} of {}", end.min, bound.best);
            assert_eq!(flow.duplicates + flow.faulted, flow.released, "{name}: {flow:?}");
            assert_eq!((flow.rogue, flow.overflowed), (0, 0), "{name}");
            let class = net.0.channels[channel].class;
            let classes = [Class::A, Class::B, Class::Scheduled];
            checked[classes.iter().position(|of| *of == class).expect("one of them")] += 1;
            if class == Class::Scheduled {
                // Whichever copy comes: its window is the same.
                let varies = made.channels[channel].bounds[0].total() - bound.best;
                let seen = end.max.zip(end.min).map(|(max, min)| max - min);
                assert!(seen <= Some(varies), "{name}: {seen:?} of {varies}");
            }
            faulted += u64::from(flow.faulted > 0);
            eliminated += flow.duplicates;
        }
    }
    let seen = format!("{checked:?} {faulted} {eliminated}");
    assert!(checked.iter().all(|of| *of > 200) && faulted > 300 && eliminated > 10_000, "{seen}");
}
