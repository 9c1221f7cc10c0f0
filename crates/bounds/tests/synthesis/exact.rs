//! The exact method: its schedules are held to the checker, its proofs to CP-SAT, which
//! `second.py` asks about the same problems by another model.

use super::check::check;
use super::generate::{Graph, Instance, Topology, any, hops};
use onbeat_bounds::synthesis::exact::{Answer, Contradiction, Unknown, exact};
use onbeat_bounds::synthesis::{Egress, Network, PeriodicFlow, Waiting, synthesize};
use onbeat_model::time::Span;
use onbeat_testkit::{Need, Random, not_run, root};
use serde_json::{Value, json};
use std::io::Write;
use std::process::{Command, Stdio};

/// Steps of a search.
const LIMIT: u64 = 100_000;

/// A few flows that crowd a few ports.
fn crowded(seed: u64) -> Instance {
    let mut random = Random(seed ^ 0xe8ac7);
    let random = &mut random;
    let bridges = 2 + random.index(2);
    let graph = Graph::new(random, Topology::Line, bridges);
    let (errs, ticks, varies) = (random.percent(30), random.percent(30), random.percent(30));
    let few = random.percent(60);
    let mut egress = || {
        let least = random.between(0, 2_000);
        let most = least + if varies { random.between(0, 1_500) } else { 0 };
        Egress {
            latency: [least, most].map(Span::from_ns),
            clock_error: Span::from_ns(if errs { random.between(0, 300) } else { 0 }),
            tick: Span::from_ns(if ticks { random.one_of(&[1, 8, 200]) } else { 1 }),
            queues: if few { 1 } else { 1 + random.index(2) as u8 },
            entries_max: 100_000,
        }
    };
    let ports: Vec<Egress> = (0..graph.ports()).map(|_| egress()).collect();
    let odd = random.percent(30);
    let count = 2 + random.index(5);
    let flow = |_| {
        let from = random.index(bridges);
        let to = (from + 1 + random.index(bridges - 1)) % bridges;
        let period = Span::from_us(random.one_of(if odd { &[12, 18] } else { &[10, 20] }));
        let release = Span::from_ns(random.below(period.as_ns().unsigned_abs()).cast_signed());
        PeriodicFlow {
            period,
            release: random.one_in(5).then_some(release),
            ready: [0, random.one_of(&[0, 0, 700])].map(Span::from_ns),
            deadline: Span::from_us(random.between(8, 40)),
            jitter: None,
            hops: hops(&graph.tree(from, &[to]), random.between(64, 300), |_| 8),
            joins: Vec::new(),
        }
    };
    let flows = (0..count).map(flow).collect();
    let waiting = if seed.is_multiple_of(2) { Waiting::Allowed } else { Waiting::None };
    Instance { name: format!("crowded {seed}"), network: Network { ports }, flows, waiting }
}

/// What the exact method says; panics where first fit or the checker knows better.
fn answered(instance: &Instance) -> Answer {
    let Instance { name, network, flows, waiting } = instance;
    let answer = exact(network, flows, *waiting, LIMIT);
    match &answer {
        Answer::Solved(placed) => {
            check(network, flows, placed, *waiting).unwrap_or_else(|why| panic!("{name}: {why}"));
        }
        Answer::Infeasible(_) => {
            assert!(synthesize(network, flows, *waiting).is_err(), "{name}: there is a schedule");
        }
        Answer::Unknown(_) => {}
    }
    answer
}

#[test]
fn exact_schedules_keep_the_rules_and_nothing_that_is_solved_is_infeasible() {
    let (mut solved, mut found, mut infeasible, mut unknown) = (0, 0, 0, 0);
    for instance in (0..100).map(crowded).chain((0..15).map(any)) {
        let refusal = synthesize(&instance.network, &instance.flows, instance.waiting).err();
        match answered(&instance) {
            Answer::Solved(_) => {
                solved += 1;
                found += u32::from(refusal.is_some());
            }
            Answer::Infeasible(_) => infeasible += u32::from(!refusal.expect("none").is_proven),
            Answer::Unknown(_) => unknown += 1,
        }
    }
    println!(
        "{solved} solved, {found} of them only so; {infeasible} new proofs; {unknown} unknown"
    );
    assert!(solved > 40 && infeasible > 4, "{solved}, {infeasible}");
    assert!(unknown < 20, "{unknown}");
}

#[test]
fn equal_problems_have_equal_answers_and_a_limit_is_one() {
    for instance in (0..20).map(crowded) {
        assert_eq!(answered(&instance), answered(&instance), "{}", instance.name);
        let Instance { network, flows, waiting, .. } = &instance;
        match exact(network, flows, *waiting, 0) {
            Answer::Solved(_) => panic!("{}: without a step", instance.name),
            Answer::Infeasible(_) | Answer::Unknown(Unknown::Limit) => {}
            Answer::Unknown(why) => panic!("{}: {why:?}", instance.name),
        }
    }
}

/// A problem as `second.py` reads it.
fn problem(instance: &Instance, these: &[usize]) -> Value {
    let Instance { network, flows, waiting, .. } = instance;
    let ns = |span: Span| span.as_ns();
    let port = |port: &Egress| {
        json!({
            "latency": port.latency.map(ns),
            "clock_error": ns(port.clock_error),
            "tick": ns(port.tick),
            "queues": port.queues,
        })
    };
    let flow = |flow: &usize| {
        let flow = &flows[*flow];
        let hop = |hop: &onbeat_bounds::synthesis::FlowHop| {
            json!({
                "port": hop.port,
                "after": hop.after,
                "sent": ns(hop.sent),
                "occupies": ns(hop.occupies),
            })
        };
        json!({
            "period": ns(flow.period),
            "release": flow.release.map(ns),
            "ready": flow.ready.map(ns),
            "deadline": ns(flow.deadline),
            "jitter": flow.jitter.map(ns),
            "hops": flow.hops.iter().map(hop).collect::<Vec<_>>(),
        })
    };
    json!({
        "waiting": *waiting == Waiting::Allowed,
        "ports": network.ports.iter().map(port).collect::<Vec<_>>(),
        "flows": these.iter().map(flow).collect::<Vec<_>>(),
    })
}

/// What CP-SAT says of problems; none where it is not installed.
fn judged(problems: &[Value], limit: &str) -> Option<Vec<String>> {
    let python = root().join("target/ortools/bin/python");
    if !python.exists() {
        return None;
    }
    let script = root().join("crates/bounds/tests/synthesis/second.py");
    let mut child = Command::new(python)
        .args([script.as_os_str(), limit.as_ref()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python starts");
    let mut lines: String = problems.iter().map(|problem| format!("{problem}\n")).collect();
    let mut stdin = child.stdin.take().expect("a pipe");
    let writer = std::thread::spawn(move || stdin.write_all(std::mem::take(&mut lines).as_bytes()));
    let output = child.wait_with_output().expect("it ends");
    writer.join().expect("no panic").expect("it reads all");
    assert!(output.status.success(), "second.py: {}", output.status);
    let said = String::from_utf8(output.stdout).expect("words");
    Some(said.lines().map(str::to_owned).collect())
}

/// More with ONBEAT_EXACT=4000, so many problems.
#[test]
fn another_solver_says_the_same_of_each_problem_and_each_reason() {
    let count = std::env::var("ONBEAT_EXACT").ok().and_then(|count| count.parse().ok());
    let limit = if count.is_some() { "10" } else { "0.3" };
    let (mut problems, mut wanted) = (Vec::new(), Vec::new());
    for instance in (1_000..1_000 + count.unwrap_or(30)).map(crowded) {
        let all: Vec<usize> = (0..instance.flows.len()).collect();
        let (these, answer) = match answered(&instance) {
            Answer::Solved(_) => (all, "feasible"),
            Answer::Infeasible(Contradiction { flows, .. }) => (flows, "infeasible"),
            Answer::Unknown(_) => continue,
        };
        problems.push(problem(&instance, &these));
        wanted.push((instance.name, answer));
    }
    let Some(said) = judged(&problems, limit) else {
        return not_run(Need::Tools, "ortools is missing: scripts/needs cp-sat");
    };
    assert_eq!(said.len(), wanted.len(), "one line for each");
    let mut counts = [0; 3];
    for ((name, answer), said) in wanted.iter().zip(&said) {
        assert!(said == answer || said == "unknown", "{name}: {answer}, but CP-SAT: {said}");
        counts
            [["feasible", "infeasible", "unknown"].iter().position(|a| a == said).expect("one")] +=
            1;
    }
    println!("CP-SAT: {counts:?} feasible, infeasible, unknown");
    assert!(counts[0] > 5 && counts[1] > 2 && counts[2] * 3 < counts[0] + counts[1], "{counts:?}");
}
