//! What machines with Linux are told, against the plan, and against the tools that read it.

use crate::systems;
use onbeat_configuration::{Deployment, LINUX, Linux, is_linux};
use onbeat_model::plan::Plan;
use onbeat_model::port::{GateControl, Selection};
use onbeat_model::system::{BEST_EFFORT_QUEUE, Channel, NodeId, NodeKind, PortId, System};
use onbeat_testkit::{Need, Random, cable, not_run, run, within};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::process::Command;

/// Systems of the generators.
const RANDOM: u64 = 40;

/// What holds frames until their launch times.
const ETF: [&str; 5] = ["etf", "clockid", "CLOCK_TAI", "delta", "200000"];

/// What tc is told of one interface.
#[derive(Debug, Default)]
struct Disciplines {
    root: Vec<String>,
    /// By their parents.
    shapers: BTreeMap<String, Vec<String>>,
}

/// What was compared.
#[derive(Debug, Default)]
struct Seen {
    ports: usize,
    refused: usize,
    entries: usize,
    slopes: usize,
    priorities: usize,
    launches: usize,
    vlans: usize,
}

pub(crate) fn lines(file: &Option<String>) -> Vec<Vec<String>> {
    let text = file.as_deref().unwrap_or_default();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| line.split(' ').map(str::to_owned).collect()).collect()
}

/// The word behind another.
fn after<'a>(line: &'a [String], word: &str) -> &'a str {
    let at = line.iter().position(|at| at == word).unwrap_or_else(|| panic!("{word} in {line:?}"));
    &line[at + 1]
}

fn number(line: &[String], word: &str) -> i128 {
    after(line, word).parse().unwrap_or_else(|_| panic!("{word} in {line:?}"))
}

fn disciplines(told: &Linux) -> BTreeMap<String, Disciplines> {
    let mut all: BTreeMap<String, Disciplines> = BTreeMap::new();
    for line in lines(&told.files[2]) {
        assert_eq!(line[..3], ["qdisc", "replace", "dev"]);
        let of = all.entry(line[3].clone()).or_default();
        if line[4] == "root" {
            assert!(of.root.is_empty(), "one root: {line:?}");
            of.root = line;
        } else {
            let parent = after(&line, "parent").strip_prefix("8b0:").expect("of the root");
            assert!(of.shapers.insert(parent.to_owned(), line).is_none());
        }
    }
    all
}

pub(crate) fn all_systems() -> Vec<(System, Plan)> {
    let mut all = crate::all_systems();
    all.push(systems::described(&systems::launching()));
    all.extend((0..4).map(|first| systems::described(&crate::ring(first))));
    let random = (0..RANDOM).map(|seed| systems::channels(&mut Random(seed)));
    all.extend(random.map(|text| systems::described(&text)));
    all
}

impl Seen {
    fn compare(&mut self, system: &System, plan: &Plan, id: NodeId) {
        let told = Deployment::new(system, plan).linux(id);
        for (text, extension) in told.files.iter().zip(LINUX) {
            let header = format!("# Onbeat's plan for `{}`: ", system.node(id).name);
            let is_headed = |text: &String| {
                text.starts_with(&header) && text.contains(&extension[1..]) && is_linux(text)
            };
            assert!(text.as_ref().is_none_or(is_headed), "{text:?}");
        }
        let mut of = disciplines(&told);
        let is_host = matches!(system.node(id).kind, NodeKind::Host(_));
        for port in &system.node(id).ports {
            self.ports += 1;
            let label = system.port_label(*port);
            let made = of.remove(&system.port(*port).name);
            let is_said = |what: &str| {
                told.unsaid.iter().any(|line| line.starts_with(&label) && line.contains(what))
            };
            let own = own(system, plan, *port);
            let gates = &plan.ports[port.index()].settings.gates;
            match made {
                Some(made) => self.port(system, plan, *port, &made, &is_said),
                None if is_said("its queues are not set") => self.refused += 1,
                None => assert!(is_host && own.is_empty() && gates.is_empty(), "{label}"),
            }
        }
        assert!(of.is_empty(), "interfaces that are no ports: {of:?}");
        if is_host {
            self.vlans(system, id, &told);
        }
    }

    fn port(
        &mut self,
        system: &System,
        plan: &Plan,
        id: PortId,
        made: &Disciplines,
        is_said: &dyn Fn(&str) -> bool,
    ) {
        let settings = &plan.ports[id.index()].settings;
        let is_bridge = matches!(system.node(system.port(id).node).kind, NodeKind::Bridge(_));
        let own = own(system, plan, id);
        let class = |queue: usize| match is_bridge {
            true => queue,
            false => own.iter().position(|at| *at == queue).unwrap_or(own.len()),
        };
        let count = if is_bridge { 8 } else { own.len() + 1 };
        assert_eq!(number(&made.root, "num_tc"), count as i128);
        let queues: Vec<String> = (0..count).map(|queue| format!("1@{queue}")).collect();
        let at = made.root.iter().position(|word| word == "queues").expect("queues");
        assert_eq!(made.root[at + 1..][..count], queues);
        // Slopes.
        let rate = i128::from(system.link_of(id).rate.as_bps());
        let (mut sum, mut shaped) = (0, 0);
        for (queue, selection) in settings.selection.iter().enumerate() {
            let Selection::CreditBased { idle_slope } = selection else { continue };
            if !is_bridge && queue <= BEST_EFFORT_QUEUE {
                assert!(is_said(&format!("queue {queue} is neither shaped nor")));
                continue;
            }
            let line = &made.shapers[&(class(queue) + 1).to_string()];
            let (slope, planned) = (number(line, "idleslope"), i128::from(idle_slope.as_bps()));
            assert!(slope * 1_000 >= planned && slope * 1_000 < planned + 1_000, "{line:?}");
            assert_eq!(number(line, "sendslope"), slope - rate / 1_000);
            assert_eq!(number(line, "offload"), i128::from(is_bridge));
            // One of the longest frames, at least, and one of the shortest.
            assert!(number(line, "hicredit") * rate >= 1_542 * planned, "{line:?}");
            assert!(-number(line, "locredit") * rate >= 88 * (rate - planned), "{line:?}");
            (sum, shaped) = (sum + slope, shaped + 1);
        }
        let etf = launches(system, plan, id, is_said);
        let is_etf = |line: &&Vec<String>| line.ends_with(&ETF.map(str::to_owned));
        assert_eq!(made.shapers.get(&(class(5) + 1).to_string()).filter(is_etf).iter().len(), etf);
        (self.launches, self.slopes) = (self.launches + etf, self.slopes + shaped);
        assert_eq!(made.shapers.len(), shaped + etf);
        assert!(sum <= rate / 1_000 || is_said("together more than its rate"), "{sum} of {rate}");
        // Priorities.
        let map = made.root.iter().position(|word| word == "map").expect("a map") + 1;
        for (planned, channel) in plan.channels.iter().zip(&system.channels) {
            if planned.paths.iter().flatten().any(|port| *port == id) {
                let queue = channel.class.queue();
                let queue = if planned.protected { queue } else { BEST_EFFORT_QUEUE };
                let found = made.root[map + usize::from(channel.pcp)] == class(queue).to_string();
                let torn = format!("priority {} are to be of more than", channel.pcp);
                assert!(found || is_said(&torn), "{}: {:?}", channel.name, made.root);
                self.priorities += 1;
            }
        }
        // Gates.
        let [list] = &settings.gates[..] else {
            assert_eq!((&*made.root[7], settings.gates.len()), ("mqprio", 0));
            return;
        };
        assert_eq!(made.root[7], "taprio");
        let (base, cycle) = (list.base.as_ns(), list.cycle.as_ns());
        // A later cycle, where the first one begins before the epoch.
        let base = if base < 0 { base.rem_euclid(cycle) } else { base };
        assert_eq!(number(&made.root, "base-time"), base.into());
        assert_eq!(number(&made.root, "cycle-time"), cycle.into());
        let clock = if is_bridge { ["flags", "0x2"] } else { ["clockid", "CLOCK_TAI"] };
        assert_eq!(made.root[made.root.len() - 2..], clock);
        let entries = made.root.windows(4).filter(|words| words[0] == "sched-entry");
        let entries = entries.map(|words| {
            assert_eq!(words[1], "S");
            let open = u32::from_str_radix(&words[2], 16).expect("a mask");
            (open, words[3].parse().expect("a time"))
        });
        let entries: Vec<(u32, i64)> = entries.collect();
        let classes: Vec<(usize, usize)> = match is_bridge {
            true => (0..8).map(|queue| (queue, queue)).collect(),
            false => own.iter().chain([&BEST_EFFORT_QUEUE]).map(|at| (*at, class(*at))).collect(),
        };
        assert_eq!(entries, planned_entries(list, &classes));
        self.entries += entries.len();
    }

    /// Each VLAN of a host's channels has an interface that maps their priorities.
    fn vlans(&mut self, system: &System, id: NodeId, told: &Linux) {
        let port = &system.port(system.node(id).ports[0]).name;
        let lines = lines(&told.files[0]);
        let mine = |channel: &&Channel| channel.talker == id || channel.listeners.contains(&id);
        let mut numbers = BTreeSet::new();
        for channel in system.channels.iter().filter(mine) {
            let vlan = channel.vlan.to_string();
            let add = lines.iter().filter(|line| line[1] == "add" && after(line, "id") == vlan);
            let add: Vec<_> = add.collect();
            let [add] = &add[..] else { panic!("{vlan} in {lines:?}") };
            assert_eq!((&*add[3], after(add, "type")), (&**port, "vlan"));
            let map = add.iter().position(|word| word == "egress-qos-map").expect("a map");
            assert!(add[map..].contains(&format!("{0}:{0}", channel.pcp)), "{add:?}");
            let up = ["link", "set", "dev", after(add, "name"), "up"];
            assert!(lines.iter().any(|line| *line == up));
            numbers.insert(vlan);
        }
        assert_eq!(lines.len(), 2 * numbers.len(), "{lines:?}");
        self.vlans += numbers.len();
    }
}

/// Whether the kernel is to keep launch times at a port: where neither gates nor frames of the same
/// priority without any are in the way.
fn launches(system: &System, plan: &Plan, id: PortId, is_said: &dyn Fn(&str) -> bool) -> usize {
    let launched = |at: &usize| plan.channels[*at].launch.is_some();
    let talks = |at: &usize| system.channels[*at].talker == system.port(id).node;
    let mine = (0..system.channels.len()).filter(talks);
    let (launched, others): (Vec<usize>, Vec<usize>) = mine.partition(launched);
    let pcp = |at: &usize| system.channels[*at].pcp;
    let mixed = launched.iter().any(|at| others.iter().any(|other| pcp(at) == pcp(other)));
    let launching = !launched.is_empty() && plan.ports[id.index()].settings.gates.is_empty();
    assert_eq!(launching && mixed, is_said("launch times are not kept by `etf`: channel"));
    usize::from(launching && !mixed)
}

/// The queues of a host's port that go before best effort and have something of the plan, the most
/// urgent first.
fn own(system: &System, plan: &Plan, id: PortId) -> Vec<usize> {
    let channels = system.channels.iter().zip(&plan.channels).filter(|(_, planned)| {
        planned.protected && planned.paths.iter().flatten().any(|port| *port == id)
    });
    let channels = channels.map(|(channel, _)| channel.class.queue());
    let streams =
        system.streams.iter().zip(&plan.streams).filter(|(_, planned)| {
            planned.paths.iter().flatten().flatten().any(|port| *port == id)
        });
    let streams = streams.map(|(stream, _)| usize::from(stream.traffic_class));
    let shaped = plan.ports[id.index()].settings.selection.iter().enumerate();
    let shaped = shaped.filter(|(_, how)| matches!(how, Selection::CreditBased { .. }));
    let all: BTreeSet<usize> =
        channels.chain(streams).chain(shaped.map(|(queue, _)| queue)).collect();
    all.into_iter().rev().filter(|queue| *queue > BEST_EFFORT_QUEUE).collect()
}

/// A list as it is in one cycle: the last state stays, and what is behind the cycle is cut.
fn planned_entries(list: &GateControl, classes: &[(usize, usize)]) -> Vec<(u32, i64)> {
    let (mut begin, cycle) = (0, list.cycle.as_ns());
    let mut entries = Vec::new();
    for entry in list.entries.iter().filter(|entry| entry.span.as_ns() > 0) {
        if begin < cycle {
            let open = classes.iter().filter(|(queue, _)| entry.open >> queue & 1 == 1);
            let open = open.map(|(_, class)| 1 << class).sum();
            entries.push((open, entry.span.as_ns().min(cycle - begin)));
        }
        begin += entry.span.as_ns();
    }
    entries.last_mut().expect("an entry").1 += (cycle - begin).max(0);
    entries
}

#[test]
fn queues_slopes_gates_priorities_and_vlans_are_those_of_the_plan() {
    let mut seen = Seen::default();
    for (system, plan) in all_systems() {
        for at in 0..system.nodes.len() {
            seen.compare(&system, &plan, NodeId(at as u32));
        }
    }
    let enough = seen.ports > 500 && seen.entries > 500 && seen.slopes > 300 && seen.refused > 20;
    assert!(seen.launches > 0, "{seen:?}");
    assert!(enough && seen.priorities > 200 && seen.vlans > 100, "{seen:?}");
}

/// Where a frame goes by the files of the bridges, as in `flooded` of the other instances.
fn reached(system: &System, told: &[Linux], channel: &Channel) -> Vec<u32> {
    let (mut ahead, mut reached) = (vec![system.node(channel.talker).ports[0]], Vec::new());
    let (vlan, address) = (channel.vlan.to_string(), channel.destination.to_string());
    while let Some(port) = ahead.pop() {
        let into = system.port(port).peer;
        let to = system.port(into).node;
        let NodeKind::Bridge(_) = system.node(to).kind else {
            reached.push(to.0);
            continue;
        };
        let lines = lines(&told[to.index()].files[1]);
        let own = |line: &Vec<String>| after(line, "dev") == "br0";
        let is_member = |name: &str| {
            let mut lines = lines.iter();
            lines.any(|line| {
                line[0] == "vlan" && after(line, "dev") == name && after(line, "vid") == vlan
            })
        };
        // With vlan_filtering the kernel drops what enters by a port that is no member.
        if !is_member(&system.port(into).name) {
            continue;
        }
        for port in &system.node(to).ports {
            let name = &*system.port(*port).name;
            let forwards = lines.iter().filter(|line| match &*line[0] {
                "mdb" => {
                    own(line)
                        && after(line, "port") == name
                        && (after(line, "grp"), after(line, "vid")) == (&address, &vlan)
                }
                "fdb" => {
                    (&*line[2], after(line, "dev")) == (&address, name)
                        && after(line, "vlan") == vlan
                }
                _ => false,
            });
            if is_member(name) && forwards.count() == 1 && *port != into {
                ahead.push(*port);
            }
        }
    }
    reached.sort_unstable();
    reached
}

#[test]
fn frames_go_where_the_plan_says_by_what_linux_is_told() {
    let mut channels = 0;
    for (system, plan) in all_systems() {
        let told = (0..system.nodes.len())
            .map(|at| Deployment::new(&system, &plan).linux(NodeId(at as u32)));
        let told: Vec<Linux> = told.collect();
        for channel in &system.channels {
            let mut listeners: Vec<u32> = channel.listeners.iter().map(|to| to.0).collect();
            listeners.sort_unstable();
            assert_eq!(reached(&system, &told, channel), listeners, "{}", channel.name);
            channels += 1;
        }
        for (node, told) in system.nodes.iter().zip(&told) {
            let is_said = told.unsaid.iter().any(|line| line.contains("its links make a loop"));
            let is_bridge = matches!(node.kind, NodeKind::Bridge(_));
            assert_eq!(is_said, is_bridge && system.closes_loop().is_some(), "{}", node.name);
        }
    }
    assert!(channels > 100, "{channels}");
}

/// A bridge of which one port lets another VLAN leave only, at which a channel enters.
const ENTERS: &str = r#"
format = 1
name = "enters"
[run]
duration_ms = 10
[[bridge]]
name = "s"
[[host]]
name = "a"
[[host]]
name = "b"
[[link]]
ends = ["a", "s.in"]
rate_mbps = 100
[[link]]
ends = ["b", "s.out"]
rate_mbps = 100
[[port]]
name = "s.in"
vlans = [5]
[[channel]]
name = "x"
destination = "91:e0:f0:00:fe:01"
stream_id = 1
class = "scheduled"
vlan = 7
size_octets = 64
interval_ns = 1_000_000
fixed_delay_us = 500
talker = "a"
listeners = ["b"]
"#;

#[test]
fn a_port_by_which_a_channel_enters_is_a_member_and_control_frames_are_not_in_its_windows() {
    let loaded = onbeat_description::load("system.toml", ENTERS, &mut |_| Err(String::new()));
    let system = loaded.system.unwrap_or_else(|| panic!("{:?}", loaded.diagnostics));
    let plan = onbeat_bounds::plan(&system, true).expect("it has a plan");
    let all = Deployment::new(&system, &plan);
    let told: Vec<_> = (0..system.nodes.len()).map(|at| all.linux(NodeId(at as u32))).collect();
    let at = system.nodes.iter().position(|node| node.name == "b").expect("a host");
    assert_eq!(reached(&system, &told, &system.channels[0]), [at as u32]);
    let bridge = system.nodes.iter().position(|node| node.name == "s").expect("a bridge");
    let bridge = &told[bridge];
    assert!(bridge.unsaid.iter().any(|line| line.starts_with("s.in: frames of VLAN 7 enter")));
    // Priorities 0 to 7: that of the channel is in class 5, and no other.
    let line = lines(&bridge.files[2]).into_iter().find(|line| line[3] == "out").expect("a line");
    let map = line.iter().position(|word| word == "map").expect("a map") + 1;
    let own = usize::from(system.channels[0].pcp);
    let of_class_5 = (0..8).filter(|priority| line[map + priority] == "5");
    assert_eq!(of_class_5.collect::<Vec<_>>(), [own], "{line:?}");
}

/// What a tool of iproute2 says to lines that fail: "" for one that fails without words.
fn said(tool: &str, lines: &str) -> Vec<String> {
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(lines.as_bytes()).expect("written");
    let output = Command::new(tool).args(["-force", "-batch"]).arg(file.path()).output();
    let output = output.expect("a tool that has told its version");
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    let (failed, said): (Vec<&str>, Vec<&str>) = said
        .lines()
        .filter(|line| !line.is_empty())
        .partition(|line| line.starts_with("Command failed "));
    let silent = failed.len().saturating_sub(said.len());
    said.into_iter().chain(std::iter::repeat_n("", silent)).map(str::to_owned).collect()
}

fn has_iproute2() -> bool {
    let has = Command::new("tc").arg("-V").output().is_ok();
    if !has {
        not_run(Need::Tools, "tc is missing (iproute2)");
    }
    has
}

/// tc reads a whole line before it looks for the interface, so its grammar needs no kernel.
#[test]
fn tc_takes_every_line() {
    if !has_iproute2() {
        return;
    }
    const NONE: &str = "Cannot find device \"onbeat-none\"";
    let mut all = String::new();
    for (system, plan) in all_systems() {
        for at in 0..system.nodes.len() {
            for mut line in
                lines(&Deployment::new(&system, &plan).linux(NodeId(at as u32)).files[2])
            {
                line[3] = "onbeat-none".to_owned();
                all += &format!("{}\n", line.join(" "));
            }
        }
    }
    assert!(all.lines().count() > 1_000 && all.contains("taprio") && all.contains("cbs"));
    assert!(all.contains("etf"));
    let comes_far = |lines: &str| said("tc", lines) == vec![NONE; lines.lines().count()];
    assert!(comes_far(&all), "{:?}", said("tc", &all));
    // Other words are not taken, and one entry more would be left out.
    let line = |from: &str| all.lines().find(|line| line.contains(from)).expect("a line");
    let wrong = |line: &str, from: &str, to: &str| {
        let line = line.replacen(from, to, 1) + "\n";
        assert!(!comes_far(&line), "{line}");
    };
    wrong(line("mqprio"), " map ", " maps ");
    wrong(line("taprio"), "sched-entry S", "sched-entry X");
    wrong(line("taprio"), "cycle-time ", "cycletime ");
    wrong(line("taprio"), "num_tc ", "num_tc x");
    wrong(line("cbs"), "hicredit ", "hicredit x");
    wrong(line("etf"), "delta ", "delta x");
    wrong(line("etf"), "CLOCK_TAI", "CLOCK_TIA");
    let entries = " sched-entry S 01 1000";
    let of = |count: usize| {
        line("taprio")
            .split(" sched-entry")
            .next()
            .map(str::to_owned)
            .map(|root| root + &entries.repeat(count) + " flags 0x2\n")
            .expect("a root")
    };
    assert!(comes_far(&of(30)));
    let more = said("tc", &of(31));
    assert!(more.iter().any(|line| line.contains("message exceeded bound")), "{more:?}");
}

/// ip and bridge look for interfaces first: there are some, in a namespace.
#[test]
fn ip_and_bridge_take_every_line() {
    if !has_iproute2() {
        return;
    }
    let hosts = match cable() {
        Ok(hosts) => hosts,
        Err(why) => return not_run(Need::Namespaces, why),
    };
    // What a kernel without VLANs, or without those of bridges, says.
    const ABSENT: [&str; 2] =
        ["RTNETLINK answers: Operation not supported", "Error: Unknown device type."];
    let (system, plan) = systems::described(systems::SCHEDULED);
    let ring = systems::described(&crate::ring(1));
    within(&hosts[0], || {
        run("ip link del eth0").expect("it was there");
        let mut absent = false;
        for (system, plan) in [(system, plan), ring] {
            for at in 0..system.nodes.len() {
                absent |= !takes(&system, &plan, NodeId(at as u32), &ABSENT);
            }
        }
        if absent {
            not_run(Need::Machine, "the kernel has no VLANs, so it makes none of those told");
        }
    });
}

/// Whether the kernel has what a node is told; whatever it has, the tools take it.
fn takes(system: &System, plan: &Plan, id: NodeId, absent: &[&str]) -> bool {
    let told = Deployment::new(system, plan).linux(id);
    let [ip, bridge, _] = &told.files;
    for port in &system.node(id).ports {
        let name = &system.port(*port).name;
        run(&format!("ip link add {name} type veth peer name {name}-far")).expect("a veth");
    }
    let (ip, bridge) = (ip.clone().unwrap_or_default(), bridge.clone().unwrap_or_default());
    // What is not made is not found either.
    let later = |line: &&String| line.contains("\"br0\"") || line.contains(".2\"");
    let has_all = [("ip", &ip), ("bridge", &bridge)].map(|(tool, text)| {
        let all = said(tool, text);
        let others = all.iter().filter(|line| !absent.contains(&&***line) && !later(line));
        assert_eq!(others.collect::<Vec<_>>(), [""; 0], "{tool}: {text}");
        all.is_empty()
    });
    if matches!(system.node(id).kind, NodeKind::Bridge(_)) {
        // The same without VLANs, which every kernel with bridges takes and does.
        let _ = run("ip link del br0");
        let ip = ip.replace(" vlan_filtering 1", "");
        assert_eq!(said("ip", &ip), [""; 0]);
        let kept = bridge.lines().filter(|line| !line.starts_with("vlan"));
        let end = |line: &str| [" vid ", " vlan "].iter().find_map(|at| line.find(at));
        let kept = kept.map(|line| &line[..end(line).unwrap_or(line.len())]);
        let kept: Vec<&str> = kept.collect();
        assert_eq!(said("bridge", &(kept.join("\n") + "\n")), [""; 0]);
        let shown = Command::new("bridge").args(["mdb", "show"]).output().expect("bridge");
        let shown = String::from_utf8(shown.stdout).expect("UTF-8");
        for line in bridge.lines().filter(|line| line.starts_with("mdb")) {
            let line: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let (port, group) = (after(&line, "port"), after(&line, "grp"));
            let entry = format!("dev br0 port {port} grp {group} permanent");
            assert!(shown.contains(&entry), "{entry} in {shown}");
        }
        run("ip link del br0").expect("it was made");
    }
    for port in &system.node(id).ports {
        run(&format!("ip link del {}", system.port(*port).name)).expect("a veth");
    }
    has_all.iter().all(|has| *has)
}

#[test]
fn what_linux_cannot_be_told_is_said() {
    let lists = |more: &str| {
        let text = systems::SCHEDULED.replace("length_aware = false, ", "");
        let (system, plan) = systems::described(&text.replace("interval_ns = 233_333", more));
        let at = system.nodes.iter().position(|node| node.name == "second").expect("the bridge");
        let told = Deployment::new(&system, &plan).linux(NodeId(at as u32));
        let interfaces = disciplines(&told);
        (told.unsaid, interfaces.contains_key("spare"))
    };
    assert!(lists("interval_ns = 480").1);
    let cases = [
        ("interval_ns = 479", "takes 479 ns, and `taprio` takes none shorter than 480 ns"),
        ("interval_ns = 2_147_383_648", "cycles of up to 2147483647 ns, not of 2147483648"),
    ];
    for (more, why) in cases {
        let (unsaid, is_told) = lists(more);
        let says =
            |line: &String| line.starts_with("second.spare: its queues") && line.contains(why);
        assert!(!is_told && unsaid.iter().any(says), "{unsaid:#?}");
    }
    let entry = "interval_ns = 1_000 }, { open = [4], ".repeat(29);
    let many = |last: &str| lists(&format!("{entry}{last}"));
    assert!(!many("interval_ns = 1_000").1);
    assert!(many("interval_ns = 1_000").0.iter().any(|line| line.contains("has 31 entries")));
    let several = systems::SCHEDULED.replace("# several: ", "");
    let (system, plan) = systems::described(&several);
    let told = (0..system.nodes.len())
        .flat_map(|at| Deployment::new(&system, &plan).linux(NodeId(at as u32)).unsaid);
    let told: Vec<String> = told.collect();
    assert!(told.iter().any(|line| line.contains("several gate control lists")), "{told:#?}");
    // A frame of the same priority without a launch time would be dropped.
    let unreserved = systems::launching().replace(
        "stream_id = 2\nclass = \"A\"",
        "stream_id = 2\n\
        class = \"scheduled\"\nreserve = false",
    );
    let back = "talker = \"arm\"\nlisteners = [\"controller\"]";
    let forth = "talker = \"controller\"\nlisteners = [\"arm\"]";
    let unreserved = unreserved.replacen(back, forth, 1);
    let (system, plan) = systems::described(&unreserved);
    let told = Deployment::new(&system, &plan).linux(NodeId(0));
    let launch = "controller.p1: launch times are not kept by `etf`: channel `position` has the";
    assert!(told.unsaid.iter().any(|line| line.starts_with(launch)), "{told:#?}");
    assert!(!told.files[2].as_ref().is_some_and(|text| text.contains("etf")), "{told:#?}");
}
