//! Load-aware routes, against a search of all paths and against sums over the ports.

use crate::build::Net;
use onbeat_bounds::{KeptPlan, plan};
use onbeat_model::codes::plan as codes;
use onbeat_model::diagnostic::Diagnostic;
use onbeat_model::plan::Plan;
use onbeat_model::port::{PortSettings, Selection};
use onbeat_model::system::{Class, NodeId, NodeKind, PortId, Routing, System};
use onbeat_model::time::Span;
use onbeat_model::units::{BitRate, Octets};
use onbeat_testkit::Random;
use std::collections::{BTreeMap, BTreeSet};

fn plan_without_bounds(system: &System, protected: bool) -> Result<Plan, Vec<Diagnostic>> {
    onbeat_bounds::plan_without_bounds(system, protected, &KeptPlan::default())
}

const GIGABIT: u64 = 1_000_000_000;

fn next(system: &System, port: PortId) -> NodeId {
    system.port(system.port(port).peer).node
}

fn is_bridge(system: &System, node: NodeId) -> bool {
    matches!(system.node(node).kind, NodeKind::Bridge(_))
}

/// Bits per second that each channel reserves, of each port; whatever the paths.
fn demands(system: &System) -> Vec<u64> {
    let alone = |channel: &_| {
        let mut system = system.clone();
        system.routing = Routing::Shortest;
        system.channels = vec![Clone::clone(channel)];
        plan_without_bounds(&system, true)
            .map_or(u64::MAX, |p| p.channels[0].reserved_rate.as_bps())
    };
    system.channels.iter().map(alone).collect()
}

/// The most that is reserved of a port, in percent of what may be.
fn worst(system: &System, paths: &[Vec<Vec<PortId>>], demands: &[u64]) -> u64 {
    let mut loads = vec![0; system.ports.len()];
    for (paths, demand) in paths.iter().zip(demands) {
        let ports: BTreeSet<PortId> = paths.iter().flatten().copied().collect();
        for port in ports {
            loads[port.index()] += demand;
        }
    }
    let limit = |port| system.link_of(PortId(port)).rate.as_bps() * 75 / 100;
    let percent = loads.iter().zip(0..).map(|(load, port)| (load * 100).div_ceil(limit(port)));
    percent.max().unwrap_or(0)
}

/// Holds what the engine expects of paths: walks from the talker to the listeners, within the VLAN,
/// through bridges, which are a tree.
fn are_trees(system: &System, plan: &Plan) {
    for (channel, planned) in system.channels.iter().zip(&plan.channels) {
        let mut into: BTreeMap<NodeId, PortId> = BTreeMap::new();
        assert_eq!(planned.paths.len(), channel.listeners.len());
        for (listener, path) in channel.listeners.iter().zip(&planned.paths) {
            let mut at = channel.talker;
            for port in path {
                assert_eq!(system.port(*port).node, at);
                assert!(at == channel.talker || is_bridge(system, at));
                let vlans = &system.port(*port).settings.vlans;
                assert!(vlans.as_ref().is_none_or(|vlans| vlans.contains(&channel.vlan)));
                at = next(system, *port);
                assert_ne!(at, channel.talker);
                assert_eq!(*into.entry(at).or_insert(*port), *port, "two ways into one node");
            }
            assert_eq!(at, *listener);
        }
    }
}

/// Whether there are paths that overload nothing, by trying all, for channels with one listener.
/// None if that takes too long.
fn exist(system: &System, demands: &[u64]) -> Option<bool> {
    let ports = 0..system.ports.len() as u32;
    let free = ports.map(|port| system.link_of(PortId(port)).rate.as_bps() * 75 / 100).collect();
    let mut search = Search { system, demands, free, left: 2_000_000 };
    let found = search.channel(0);
    (search.left > 0).then_some(found)
}

struct Search<'a> {
    system: &'a System,
    demands: &'a [u64],
    free: Vec<u64>,
    left: u32,
}

impl Search<'_> {
    fn channel(&mut self, channel: usize) -> bool {
        let Some(described) = self.system.channels.get(channel) else { return true };
        self.step(channel, described.talker, &mut vec![described.talker])
    }

    fn step(&mut self, channel: usize, at: NodeId, seen: &mut Vec<NodeId>) -> bool {
        self.left = self.left.saturating_sub(1);
        if self.left == 0 {
            return false;
        }
        let described = &self.system.channels[channel];
        if at == described.listeners[0] {
            return self.channel(channel + 1);
        }
        let demand = self.demands[channel];
        for port in self.system.node(at).ports.clone() {
            let to = next(self.system, port);
            let vlans = &self.system.port(port).settings.vlans;
            let is_member = vlans.as_ref().is_none_or(|vlans| vlans.contains(&described.vlan));
            let leads = is_bridge(self.system, to) || to == described.listeners[0];
            if !leads || !is_member || seen.contains(&to) || self.free[port.index()] < demand {
                continue;
            }
            self.free[port.index()] -= demand;
            seen.push(to);
            let found = self.step(channel, to, seen);
            seen.pop();
            self.free[port.index()] += demand;
            if found {
                return true;
            }
        }
        false
    }
}

/// A small mesh, with parallel links, whose channels take much of each link.
fn small(random: &mut Random, listeners: usize) -> Net {
    let bridges: Vec<String> = (0..random.between(2, 6)).map(|at| format!("b{at}")).collect();
    let hosts: Vec<String> = (0..random.between(3, 8)).map(|at| format!("h{at}")).collect();
    let [hosts, bridges] =
        [&hosts, &bridges].map(|names| names.iter().map(String::as_str).collect::<Vec<_>>());
    let mut net = Net::new(&hosts, &bridges);
    for at in 1..bridges.len() {
        net.link(bridges[at], bridges[random.index(at)], GIGABIT);
    }
    for _ in 0..random.between(1, 6) {
        let [a, b] = [(); 2].map(|()| random.one_of(&bridges));
        if a != b {
            net.link(a, b, GIGABIT);
        }
    }
    for host in &hosts {
        net.link(host, random.one_of(&bridges), 10 * GIGABIT);
    }
    if random.one_in(3) {
        for port in 0..net.0.ports.len() {
            let leads = [PortId(port as u32), net.0.ports[port].peer].map(|p| net.0.port(p).node);
            if random.one_in(4) && leads.iter().all(|node| is_bridge(&net.0, *node)) {
                let vlans = Some(vec![random.one_of(&[2, 3])]);
                net.0.ports[port].settings = PortSettings { vlans, ..PortSettings::default() };
            }
        }
    }
    for at in 0..random.between(4, 14) {
        let talker = random.one_of(&hosts);
        let mut to: Vec<&str> = hosts.iter().copied().filter(|host| *host != talker).collect();
        while to.len() > listeners {
            to.remove(random.index(to.len()));
        }
        let channel = net.channel(&format!("c{at}"), talker, &to);
        channel.size = Octets::new(random.between(100, 1_400) as u32);
        channel.class = random.one_of(&[Class::A, Class::B]);
        channel.interval = Span::from_us(random.one_of(&[15, 20, 25, 40, 60]));
        channel.fixed_delay = Span::from_ms(50);
        if random.one_in(4) {
            channel.vlan = 3;
        }
    }
    net
}

fn is_overloaded(errors: &[Diagnostic]) -> bool {
    errors.iter().any(|error| error.code == codes::OVERLOADED)
}

#[test]
fn where_some_paths_fit_load_aware_routes_do() {
    let mut random = Random(20);
    let (mut solved, mut relieved, mut none, mut unrouted) = (0, 0, 0, 0);
    let (mut missed, mut unknown) = (0, 0);
    for number in 0..1_000 {
        let mut net = small(&mut random, 1);
        let demands = demands(&net.0);
        let shortest = plan_without_bounds(&net.0, true);
        net.0.routing = Routing::LoadAware;
        let expected = exist(&net.0, &demands);
        match plan_without_bounds(&net.0, true) {
            Ok(plan) => {
                assert_ne!(expected, Some(false), "{number}");
                are_trees(&net.0, &plan);
                let paths: Vec<_> = plan.channels.iter().map(|c| c.paths.clone()).collect();
                assert!(worst(&net.0, &paths, &demands) <= 100, "{number}");
                solved += 1;
                match shortest {
                    // Who fits stays.
                    Ok(shortest) => assert_eq!(plan, shortest),
                    Err(_) => relieved += 1,
                }
            }
            Err(errors) if is_overloaded(&errors) => {
                missed += u32::from(expected == Some(true));
                unknown += u32::from(expected.is_none());
                none += 1;
            }
            Err(errors) => {
                assert_eq!(errors[0].code, codes::NO_WAY);
                unrouted += 1;
            }
        }
    }
    println!("{solved} solved, {relieved} of them relieved; {none} have none; {unrouted} unrouted");
    println!("{missed} missed, {unknown} unknown");
    assert!(relieved > 200 && none > 200 && unrouted > 20);
}

/// A grid of bridges with a host each, and channels between any two of these; the largest share of
/// a port that shortest paths reserve is the one that is asked for, in percent of what may be.
fn grid(random: &mut Random, wide: usize, high: usize, channels: usize, percent: u64) -> Net {
    let names = |kind: &str| (0..wide * high).map(|at| format!("{kind}{at}")).collect::<Vec<_>>();
    let (hosts, bridges) = (names("h"), names("b"));
    let [of_hosts, of_bridges] =
        [&hosts, &bridges].map(|names| names.iter().map(String::as_str).collect::<Vec<_>>());
    let mut net = Net::new(&of_hosts, &of_bridges);
    for at in 0..wide * high {
        if at % wide > 0 {
            net.link(&bridges[at - 1], &bridges[at], GIGABIT);
        }
        if at >= wide {
            net.link(&bridges[at - wide], &bridges[at], GIGABIT);
        }
        net.link(&hosts[at], &bridges[at], 100 * GIGABIT);
    }
    for at in 0..channels {
        let talker = random.index(hosts.len());
        let listener = (talker + 1 + random.index(hosts.len() - 1)) % hosts.len();
        let channel = net.channel(&format!("c{at}"), &hosts[talker], &[&hosts[listener]]);
        channel.size = Octets::new(random.between(46, 500) as u32);
        channel.fixed_delay = Span::from_ms(50);
    }
    net.0.routing = Routing::Shortest;
    let demands = demands(&net.0);
    let fast = |net: &mut Net, rate: u64| {
        for link in &mut net.0.links {
            let joins = link.ports.map(|port| net.0.ports[port.index()].node);
            if joins
                .iter()
                .all(|node| matches!(net.0.nodes[node.index()].kind, NodeKind::Bridge(_)))
            {
                link.rate = BitRate::from_bps(rate);
            }
        }
    };
    fast(&mut net, 1_000 * GIGABIT);
    let paths: Vec<_> = plan_without_bounds(&net.0, true).expect("fast links").channels;
    let paths: Vec<_> = paths.into_iter().map(|channel| channel.paths).collect();
    fast(&mut net, GIGABIT);
    let rate = GIGABIT * worst(&net.0, &paths, &demands) / percent;
    fast(&mut net, rate);
    net
}

#[test]
fn a_set_whose_worst_link_shortest_paths_load_with_140_percent_is_relieved() {
    let mut random = Random(140);
    let mut net = grid(&mut random, 10, 8, 1_000, 140);
    let demands = demands(&net.0);
    let errors = plan_without_bounds(&net.0, true).expect_err("it is overloaded");
    assert!(is_overloaded(&errors));
    net.0.routing = Routing::LoadAware;
    let plan = plan_without_bounds(&net.0, true).expect("there are other paths");
    are_trees(&net.0, &plan);
    let paths: Vec<_> = plan.channels.iter().map(|c| c.paths.clone()).collect();
    assert!(worst(&net.0, &paths, &demands) <= 100);
    // Without protection frames take the same paths.
    let bare = plan_without_bounds(&net.0, false).expect("nothing is reserved");
    assert!(bare.channels.iter().zip(&paths).all(|(channel, paths)| channel.paths == *paths));
}

#[test]
fn trees_of_several_listeners_are_relieved_too() {
    let mut random = Random(3);
    let (mut relieved, mut refused) = (0, 0);
    for _ in 0..300 {
        let mut net = small(&mut random, 3);
        if plan_without_bounds(&net.0, true).is_ok() {
            continue;
        }
        let demands = demands(&net.0);
        net.0.routing = Routing::LoadAware;
        let Ok(plan) = plan_without_bounds(&net.0, true) else {
            refused += 1;
            continue;
        };
        are_trees(&net.0, &plan);
        let paths: Vec<_> = plan.channels.iter().map(|c| c.paths.clone()).collect();
        assert!(worst(&net.0, &paths, &demands) <= 100);
        relieved += 1;
    }
    assert!(relieved > 40 && refused > 40, "{relieved} {refused}");
}

/// Two bridges with two links, over the second of which is a third bridge, and two hosts at each.
fn two_ways() -> Net {
    let mut net = Net::new(&["a", "b", "c", "d"], &["s", "t", "u"]);
    for (one, other) in [("s", "t"), ("s", "u"), ("u", "t")] {
        net.link(one, other, GIGABIT);
    }
    for (host, bridge) in [("a", "s"), ("b", "s"), ("c", "t"), ("d", "t")] {
        net.link(host, bridge, GIGABIT);
    }
    net.0.routing = Routing::LoadAware;
    net
}

fn lengths(plan: &Plan) -> Vec<usize> {
    plan.channels.iter().map(|channel| channel.paths[0].len()).collect()
}

#[test]
fn windows_for_which_a_port_has_no_room_are_on_another_path() {
    let mut net = two_ways();
    for (name, from, to) in [("x", "a", "c"), ("y", "b", "d")] {
        let channel = net.channel(name, from, &[to]);
        (channel.class, channel.interval) = (Class::Scheduled, Span::from_us(20));
        // 12.3 µs of each 20 µs.
        channel.size = Octets::new(1_400);
        channel.fixed_delay = Span::from_us(200);
    }
    let together = plan(&net.0, true).expect("each has a path of its own");
    assert_eq!(lengths(&together).iter().sum::<usize>(), 7);
    are_trees(&net.0, &together);
    // By its load each port has room for both, but not for windows in each 20 and each 30 µs.
    net.0.channels[0].size = Octets::new(700);
    net.0.channels[1].size = Octets::new(700);
    net.0.channels[1].interval = Span::from_us(30);
    let together = plan(&net.0, true).expect("each has a path of its own");
    assert_eq!(lengths(&together).iter().sum::<usize>(), 7);
    net.0.routing = Routing::Shortest;
    let errors = plan(&net.0, true).expect_err("no room");
    assert_eq!(errors[0].code, codes::SCHEDULED);
}

#[test]
fn windows_for_which_a_gate_control_list_is_too_short_are_on_another_path() {
    // 700 windows of one channel in each interval of the other.
    let mut net = two_ways();
    for (name, from, to, interval_us) in [("x", "a", "c", 100), ("y", "b", "d", 70_000)] {
        let channel = net.channel(name, from, &[to]);
        (channel.class, channel.interval) = (Class::Scheduled, Span::from_us(interval_us));
        channel.fixed_delay = Span::from_us(100);
    }
    let relieved = plan(&net.0, true).expect("each interval has a path of its own");
    assert_eq!(lengths(&relieved).iter().sum::<usize>(), 7);
    net.0.routing = Routing::Shortest;
    let errors = plan(&net.0, true).expect_err("the list is too short");
    assert!(errors[0].message.contains("1401 entries"), "{}", errors[0].message);
    // Ports of hosts have all windows, whatever the paths.
    net.0.routing = Routing::LoadAware;
    net.0.channels[1].talker = net.id("a");
    let errors = plan(&net.0, true).expect_err("a host's port");
    assert_eq!(errors[0].code, codes::SCHEDULED);
}

#[test]
fn a_path_that_is_longer_than_the_fixed_delay_is_not_taken() {
    let mut net = two_ways();
    for (name, from, to) in [("x", "a", "c"), ("y", "b", "d")] {
        let channel = net.channel(name, from, &[to]);
        (channel.interval, channel.size) = (Span::from_us(25), Octets::new(1_400));
    }
    let relieved = plan_without_bounds(&net.0, true).expect("there are two paths");
    assert_eq!(lengths(&relieved).iter().sum::<usize>(), 7);
    let NodeKind::Bridge(bridge) = &mut net.node("u").kind else { panic!("u is a bridge") };
    bridge.forwarding = Span::from_ms(3);
    let errors = plan_without_bounds(&net.0, true).expect_err("the other path takes 3 ms");
    assert!(is_overloaded(&errors));
    net.0.channels[1].fixed_delay = Span::from_ms(4);
    let relieved = plan_without_bounds(&net.0, true).expect("one of them has the time");
    assert_eq!(lengths(&relieved), [3, 4]);
}

#[test]
fn a_port_that_is_full_to_the_last_bit_is_not_overloaded() {
    let mut net = two_ways();
    for (name, from, to) in [("x", "a", "c"), ("y", "b", "d"), ("z", "a", "d")] {
        net.channel(name, from, &[to]);
    }
    let need: u64 = demands(&net.0).iter().sum();
    for (slope, relieved) in [(need, false), (need - 1, true)] {
        let settings = &mut net.0.ports[0].settings;
        let queue = Class::A.queue();
        settings.selection[queue] = Selection::CreditBased { idle_slope: BitRate::from_bps(slope) };
        let plan = plan_without_bounds(&net.0, true).expect("there are two paths");
        assert_eq!(lengths(&plan).iter().any(|length| *length > 3), relieved, "{slope}");
    }
}

#[test]
fn a_port_where_something_else_has_the_queue_is_left() {
    let base = r#"
format = 1
name = "ring"
routing = "load-aware"
run = { duration_s = 1 }
host = [{ name = "a" }, { name = "b" }, { name = "c" }, { name = "d" }]
bridge = [{ name = "s" }, { name = "t" }, { name = "u" }]
link = [
    { ends = ["a", "s.a"], rate_mbps = 1000 },
    { ends = ["c", "s.c"], rate_mbps = 1000 },
    { ends = ["d", "t.d"], rate_mbps = 1000 },
    { ends = ["b", "t.b"], rate_mbps = 1000 },
    { ends = ["s.t", "t.s"], rate_mbps = 1000 },
    { ends = ["s.u", "u.s"], rate_mbps = 1000 },
    { ends = ["u.t", "t.u"], rate_mbps = 1000 },
]
[[channel]]
name = "x"
destination = "91:e0:f0:00:fe:01"
stream_id = 1
class = "CLASS"
size_octets = 100
interval_ns = 1_000_000
talker = "a"
listeners = ["b"]
"#;
    let stream = |class: u8, paths: &str| {
        format!(
            "[[stream]]\nname = \"y\"\ntalker = \"c\"\nlisteners = [\"d\"]\n\
             traffic_class = {class}\nframe_octets = 100\ninterval_ns = 1_000_000\n{paths}"
        )
    };
    let port = |of: &str| format!("[[port]]\nname = \"s.t\"\n{of}\n");
    let both = port("idle_slope_mbps = { 7 = 100 }") + &stream(7, "");
    let gates = port("gates = [{ entries = [{ open = [0, 5, 7], interval_ns = 100_000 }] }]");
    let of_b = "[[channel]]\nname = \"z\"\ndestination = \"91:e0:f0:00:fe:02\"\nstream_id = 2\n\
                class = \"B\"\nsize_octets = 500\ninterval_ns = 1_000_000\ntalker = \"c\"\n\
                listeners = [\"d\"]\n";
    let cases = [
        ("A", String::new(), 3),
        ("A", stream(7, ""), 4),
        ("A", stream(7, "paths = [[\"s\", \"u\", \"t\"]]\n"), 3),
        ("A", stream(6, ""), 3),
        ("B", stream(6, ""), 4),
        ("A", both, 3),
        ("A", port("asynchronous = [7]"), 4),
        // Each class by its own idleSlope, and all idleSlopes by the port's rate.
        ("A", port("idle_slope_mbps = { 6 = 20, 7 = 15 }") + of_b, 3),
        ("A", port("idle_slope_mbps = { 4 = 980 }"), 3),
        ("A", port("idle_slope_mbps = { 4 = 995 }"), 4),
        ("A", port("idle_slope_mbps = { 7 = 5 }"), 4),
        ("A", gates.clone(), 3),
        ("scheduled", String::new(), 3),
        ("scheduled", stream(5, ""), 4),
        ("scheduled", gates, 4),
        ("scheduled", port("idle_slope_mbps = { 5 = 100 }"), 4),
        ("scheduled", port("preemptable = [5]"), 4),
        ("scheduled", port("preemptable = [0]"), 3),
    ];
    for (class, more, expected) in cases {
        let text = base.replace("CLASS", class) + &more;
        let loaded = onbeat_description::load("system.toml", &text, &mut |_| Err(String::new()));
        let system = loaded.system.unwrap_or_else(|| panic!("{:?}\n{text}", loaded.diagnostics));
        let plan = plan(&system, true).unwrap_or_else(|errors| panic!("{errors:?}\n{text}"));
        assert!(lengths(&plan).iter().all(|length| *length == expected), "{class}\n{more}");
        let shortest = System { routing: Routing::Shortest, ..system };
        let is_refused = onbeat_bounds::plan(&shortest, true).is_err();
        assert_eq!(is_refused, expected == 4, "{class}\n{more}");
    }
}
