//! The graph of a system: programs that are known, hosts that are modelled, programs of unknown
//! behaviour, and the latencies between them.
use onbeat_model::diagnostic::Diagnostic;
use onbeat_model::graph::{
    ChannelKind, Expression, Graph, Interval, NetworkChannel, NodeKind, Policy, Task,
};
use onbeat_model::system::System;
use onbeat_model::time::Span;
use onbeat_model::timing::Chain;
use onbeat_timing::tfg::system_graph;

/// Three hosts at one bridge: `left` with two programs, `right` with one, `wild` with one of
/// unknown behaviour, `plain` with none.
const SYSTEM: &str = r#"
format = 1
name = "system"
[run]
duration_s = 10

[[host]]
name = "left"
cores = 2
clock = { offset_ns = 700 }
stack_tx_ns = { min = 1000, max = 9000 }
wakeup_ns = { min = 5, max = 50 }
[[host]]
name = "right"
clock = { drift_ppb = -1000 }
stack_rx_ns = { min = 2000, max = 3000 }
[[host]]
name = "wild"
[[host]]
name = "plain"
clock = { offset_ns = 2_500_000 }
wakeup_ns = { min = 5, max = 50 }
cores = 1
[[bridge]]
name = "bridge"
forwarding_ns = 500

[[link]]
ends = ["left", "bridge"]
rate_mbps = 1000
propagation_ns = 10
[[link]]
ends = ["right", "bridge"]
rate_mbps = 1000
propagation_ns = 10
[[link]]
ends = ["wild", "bridge"]
rate_mbps = 1000
[[link]]
ends = ["plain", "bridge"]
rate_mbps = 1000

[[channel]]
name = "pose"
destination = "01:00:5e:00:00:01"
stream_id = 1
class = "A"
size_octets = 8
rate_hz = 1000
talker = "left"
listeners = ["right", "plain"]
fixed_delay_us = 700
[[channel]]
name = "beat"
destination = "01:00:5e:00:00:02"
stream_id = 2
class = "B"
size_octets = 8
interval_ns = 1_000_000
talker = "plain"
listeners = ["left"]
phase_ns = 300
reserve = false
[[channel]]
name = "gossip"
destination = "01:00:5e:00:00:03"
stream_id = 3
class = "B"
size_octets = 8
interval_ns = 2_000_000
burst_messages = 3
talker = "wild"
listeners = ["left"]

[[program]]
name = "first"
host = "left"
command = ["true"]
tasks = "first.toml"
priority = 40
cores = [1]
[[program]]
name = "second"
host = "left"
command = ["true"]
tasks = "second.toml"
[[program]]
name = "third"
host = "right"
command = ["true"]
tasks = "third.toml"
[[program]]
name = "stranger"
host = "wild"
command = ["true"]

[[chain]]
name = "round"
channels = ["beat", "pose"]
deadline_us = 900
age_us = 1000
"#;

const FIRST: &str = r#"
format = 1
name = "first"
[[channel]]
name = "own"
kind = "fifo"
[[task]]
name = "main"
steps = [{ start = "helper" }, { loop = "ever", steps = [
    { read = "beat" }, { lock = "bus", steps = [{ work_us = 5 }] }, { write = "own" }] }]
[[task]]
name = "helper"
priority = 50
cores = [0]
policy = "edf"
steps = [{ loop = "ever", steps = [{ read = "own" }, { write = "pose" }] }]
"#;

const SECOND: &str = r#"
format = 1
name = "second"
[[channel]]
name = "own"
kind = "fifo"
[[task]]
name = "main"
steps = [{ lock = "bus", steps = [{ write = "own" }] }, { read = "own" }, { read = "gossip" }]
"#;

const THIRD: &str = r#"
format = 1
name = "third"
[[task]]
name = "main"
steps = [{ loop = "ever", steps = [{ read = "pose", wait = true }] }]
"#;

fn load(text: &str, third: &str) -> System {
    let mut read = |name: &str| match name {
        "first.toml" => Ok(FIRST.to_owned()),
        "second.toml" => Ok(SECOND.to_owned()),
        "third.toml" => Ok(third.to_owned()),
        _ => Err("there is none".to_owned()),
    };
    let loaded = onbeat_description::load("system.toml", text, &mut read);
    loaded.system.unwrap_or_else(|| panic!("{:?}", loaded.diagnostics))
}

fn graphs(system: &System) -> Vec<(usize, Graph)> {
    let programs = system.programs.iter().enumerate();
    programs.filter_map(|(at, program)| Some((at, program.tasks.clone()?))).collect()
}

fn joined(system: &System, protected: bool) -> Result<(Graph, Vec<Chain>), Vec<Diagnostic>> {
    let plan = onbeat_bounds::plan(system, protected).expect("it can be planned");
    system_graph(system, &plan, &graphs(system))
}

fn graph(system: &System, protected: bool) -> Graph {
    joined(system, protected).expect("it is right").0
}

fn task<'a>(graph: &'a Graph, program: &str, name: &str) -> &'a Task {
    let mut tasks = graph.tasks.iter().filter(|task| task.program == program && task.name == name);
    let found = tasks.next().expect("a task");
    assert!(tasks.next().is_none(), "two tasks are called {program}.{name}");
    found
}

fn network<'a>(graph: &'a Graph, name: &str) -> &'a NetworkChannel {
    let channel = graph.channels.iter().find(|channel| channel.name == name).expect("a channel");
    match &channel.kind {
        ChannelKind::Network(network) => network,
        other => panic!("{other:?}"),
    }
}

#[test]
fn programs_are_joined_by_the_channels_of_the_description() {
    let system = load(SYSTEM, THIRD);
    let graph = graph(&system, true);
    let names: Vec<_> = graph.channels.iter().map(|channel| channel.name.as_str()).collect();
    assert_eq!(names, ["pose", "beat", "gossip", "first.own", "second.own"]);
    assert_eq!(graph.resources, ["first.bus", "second.bus"]);
    let helper = task(&graph, "first", "helper");
    assert_eq!((helper.host, helper.is_first, helper.policy), (0, false, Policy::Edf));
    assert_eq!(helper.nodes[1].kind, NodeKind::Read { channel: 3, waits: false });
    assert_eq!(helper.nodes[2].kind, NodeKind::Write { channel: 0, waits: false });
    let main = task(&graph, "first", "main");
    let started = main.nodes.iter().find_map(|node| match node.kind {
        NodeKind::Run { task } => Some(graph.tasks[task].name.as_str()),
        _ => None,
    });
    assert_eq!(started, Some("helper"));
    let second = task(&graph, "second", "main");
    assert_eq!(second.nodes[1].kind, NodeKind::Lock(1));
    assert_eq!(second.nodes[2].kind, NodeKind::Write { channel: 4, waits: false });
    let third = task(&graph, "third", "main");
    assert_eq!(third.nodes[1].kind, NodeKind::Read { channel: 0, waits: true });
    assert_eq!(third.host, 1);
}

#[test]
fn a_task_that_states_no_priority_or_processor_has_the_programs() {
    let graph = graph(&load(SYSTEM, THIRD), true);
    let of = |program: &str, name: &str| {
        let task = task(&graph, program, name);
        (task.priority, task.cores.clone())
    };
    assert_eq!(of("first", "main"), (Some(40), vec![1]));
    assert_eq!(of("first", "helper"), (Some(50), vec![0]));
    // As in runs: the first processor.
    assert_eq!(of("second", "main"), (None, vec![0]));
}

#[test]
fn hosts_have_their_clocks_processors_and_delays_but_modelled_ones_are_on_time() {
    let graph = graph(&load(SYSTEM, THIRD), true);
    let hosts: Vec<_> =
        graph.hosts.iter().map(|h| (h.name.as_str(), h.start.as_ns(), h.cores)).collect();
    let expected =
        [("left", 700, Some(2)), ("right", 0, None), ("wild", 0, None), ("plain", 2_500_000, None)];
    assert_eq!(hosts, expected);
    let late = Interval::between(Span::from_ns(5), Span::from_ns(50));
    assert_eq!((graph.hosts[0].wakeup, graph.hosts[3].wakeup), (late, Interval::ZERO));
}

#[test]
fn a_modelled_host_writes_every_interval_and_reads_at_once() {
    let graph = graph(&load(SYSTEM, THIRD), true);
    let talker = task(&graph, "plain", "beat");
    let constant = |ns| Expression::Constant(ns);
    let periods: Vec<_> = talker
        .nodes
        .iter()
        .filter_map(|node| match &node.kind {
            NodeKind::Point { period, .. } => Some(period.clone()),
            _ => None,
        })
        .collect();
    // Its clock starts at 2.5 ms: the instants 0.3 µs, 1000.3 µs and 2000.3 µs have passed.
    assert_eq!(periods, [constant(500_300), constant(1_000_000)]);
    assert_eq!(talker.nodes[2].kind, NodeKind::Write { channel: 1, waits: false });
    assert_eq!(talker.nodes[3].next, [2]);
    let listener = task(&graph, "plain", "pose");
    assert_eq!(listener.nodes[1].kind, NodeKind::Read { channel: 0, waits: false });
    assert_eq!(listener.nodes[1].next, [1]);
}

#[test]
fn a_program_that_nobody_knows_writes_at_unknown_times() {
    let graph = graph(&load(SYSTEM, THIRD), true);
    let unknown = task(&graph, "stranger", "gossip");
    let NodeKind::Point { period, deadline, .. } = &unknown.nodes[1].kind else {
        panic!("a point")
    };
    assert_eq!((period, deadline), (&Expression::Unknown, &None));
    assert_eq!(unknown.nodes[2].kind, NodeKind::Write { channel: 2, waits: false });
    // What a known program writes is not written by others; what nobody writes stays silent.
    assert!(!graph.tasks.iter().any(|task| task.name == "pose" && task.program != "plain"));
    let channel = network(&graph, "gossip");
    assert_eq!(channel.interval, Span::from_ms(2));
    assert_eq!(channel.tolerance, Span::from_us(4_125));
    assert_eq!(channel.capacity, 1_024);
}

#[test]
fn a_reserved_channel_has_the_plans_bounds_and_any_other_only_a_best_case() {
    let system = load(SYSTEM, THIRD);
    let plan = onbeat_bounds::plan(&system, true).expect("it can be planned");
    let protected = graph(&system, true);
    let pose = network(&protected, "pose");
    let [right, plain] = &plan.channels[0].bounds[..] else { panic!("two listeners") };
    let bounds = [(1, right), (3, plain)];
    for ((host, latency), (listener, bound)) in pose.latencies.iter().zip(bounds) {
        assert_eq!(*host, listener);
        assert_eq!(*latency, Interval::between(bound.best, bound.total()));
    }
    // The shortest way is the same without a reservation.
    let loose = graph(&system, false);
    for (reserved, free) in pose.latencies.iter().zip(&network(&loose, "pose").latencies) {
        assert_eq!(*free, (reserved.0, Interval::from(reserved.1.lo)));
    }
    // 68 octets and preamble twice over 1 Gb/s links of 10 ns, forwarding, the shortest stacks;
    // `left` is 700 ns ahead, and `right` loses up to 10 µs and 1 ns of rounding.
    let links = 2 * (76 * 8 + 10) + 500;
    let drift = 10_000 + 1 + 1;
    let best = network(&loose, "pose").latencies[0].1.lo.as_ns();
    assert_eq!(best, 1_000 + links + 2_000 - 700 - drift);
    // One that does not ask for a reservation has none in a protected run either.
    assert_eq!(network(&protected, "beat").latencies[0].1.hi, None);
}

#[test]
fn chains_keep_what_is_asked_of_them() {
    let (_, chains) = joined(&load(SYSTEM, THIRD), true).expect("it is right");
    let [chain] = &chains[..] else { panic!("one chain") };
    assert_eq!((chain.name.as_str(), &chain.channels[..]), ("round", &[1, 0][..]));
    assert_eq!(chain.deadline, Some(Span::from_us(900)));
    assert_eq!((chain.age, chain.reaction), (Some(Span::from_ms(1)), None));
}

#[test]
fn a_program_uses_only_the_ends_that_its_host_has() {
    let third = THIRD.replace(
        "{ read = \"pose\", wait = true }",
        "{ write = \"pose\" }, { read = \"beat\" }, { read = \"beat\" }",
    );
    let wrong = joined(&load(SYSTEM, &third), true).expect_err("it is wrong");
    let told: Vec<_> = wrong.iter().map(|d| (d.code.as_str(), d.message.as_str())).collect();
    assert_eq!(
        told,
        [
            ("OB5008", "program `third` on `right` writes `pose`, but `right` is not its talker"),
            (
                "OB5008",
                "program `third` on `right` reads `beat`, but `right` is not one of its listeners"
            ),
        ]
    );
    assert!(wrong.iter().all(|d| !d.help.is_empty() && d.at.is_some()));
}
