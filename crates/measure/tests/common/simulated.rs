//! Systems, plans and probes that look like simulations, for the tests: invented, not simulated.

use super::synthetic::Random;
use super::{plan, system};
use onbeat_measure::simulation::{Phases, Results, SimulationSettings};
use onbeat_model::diagnostic::Origin;
use onbeat_model::observed::{FlowObserved, LatencyObserved, Observed, PortObserved};
use onbeat_model::plan::{Backlog, Bound, BoundTerm, Plan, StreamPlan};
use onbeat_model::stream::{Source, Stream};
use onbeat_model::system::{NodeId, PortId, System};
use onbeat_model::time::{NetTime, Span};
use onbeat_model::units::{Octets, frame};

/// One repetition of one second.
pub(crate) const SETTINGS: SimulationSettings = SimulationSettings {
    duration_ns: 1_000_000_000,
    seed: 7,
    repetitions: 1,
    phases: Phases::Described,
};

/// A system with its plan and what its probes saw.
pub(crate) struct Simulated {
    pub(crate) system: System,
    pub(crate) plan: Plan,
    pub(crate) observed: Observed,
}

impl Simulated {
    pub(crate) fn results(&self) -> Results {
        Results::new(&self.system, &self.plan, &self.observed, SETTINGS)
    }
}

/// A stream of 1,000 octets each millisecond.
pub(crate) fn stream(name: &str, talker: u32, listeners: &[u32], queue: u8) -> Stream {
    Stream {
        name: name.into(),
        talker: NodeId(talker),
        listeners: listeners.iter().copied().map(NodeId).collect(),
        traffic_class: queue,
        vlan: 2,
        pcp: 3,
        frame: [Octets::new(1000); 2],
        source: Source::Periodic { interval: Span::from_ms(1), jitter: Span::ZERO },
        phase: Span::ZERO,
        regulator: None,
        policing: None,
        paths: Default::default(),
        deadline: None,
        origin: Origin::default(),
    }
}

/// A bound of these terms and best case.
pub(crate) fn bound(terms: &[(&str, i64)], best_ns: i64) -> Bound {
    let term =
        |(what, ns): &(&str, i64)| BoundTerm { what: (*what).into(), span: Span::from_ns(*ns) };
    Bound { terms: terms.iter().map(term).collect(), best: Span::from_ns(best_ns) }
}

/// What a listener saw whose frames took so long, released one millisecond apart.
pub(crate) fn seen(latencies_ns: &[i64]) -> LatencyObserved {
    let mut seen = LatencyObserved::default();
    for (number, ns) in (0..).zip(latencies_ns) {
        seen.count(NetTime::ZERO + Span::from_ms(number), Span::from_ns(*ns));
    }
    seen
}

/// Two hosts at one bridge and one stream between them, in queue 6, with a bound of 50 µs.
pub(crate) fn single(latencies_ns: &[i64]) -> Simulated {
    let mut system = system(&["h1", "h2", "b1"], &[("h1", "b1"), ("b1", "h2")], Vec::new());
    system.streams = vec![stream("s1", 0, &[1], 6)];
    let mut plan = plan(&system, &[]);
    let terms = [("link to b1", 9_000), ("queue 6 at b1.p2", 30_000), ("link to h2", 11_000)];
    plan.streams = vec![StreamPlan {
        paths: vec![vec![vec![PortId(0), PortId(2)]]],
        bounds: vec![Some(bound(&terms, 17_000))],
        ..StreamPlan::default()
    }];
    plan.backlogs = vec![[None; 8]; system.ports.len()];
    plan.backlogs[2][6] = Some(Backlog { frames: 2, octets: 2000 });
    let mut observed = Observed {
        duration: Span::from_s(1),
        repetitions: 1,
        streams: vec![FlowObserved {
            released: latencies_ns.len() as u64,
            listeners: vec![seen(latencies_ns)],
            ..FlowObserved::default()
        }],
        ports: vec![PortObserved::default(); system.ports.len()],
        events: 42,
        ..Observed::default()
    };
    count(&mut observed, &system, &[PortId(0), PortId(2)], 6, 1000, latencies_ns.len() as u64);
    Simulated { system, plan, observed }
}

/// `frames` frames of `octets` octets through the queue of each of these ports.
fn count(
    observed: &mut Observed,
    system: &System,
    ports: &[PortId],
    queue: usize,
    octets: u32,
    frames: u64,
) {
    for port in ports {
        let wire = frame::on_wire(Octets::new(octets));
        let each = system.link_of(*port).rate.time_for(wire);
        let seen = &mut observed.ports[port.index()];
        seen.busy += Span::from_ns(each.as_ns() * frames as i64);
        let queue = &mut seen.queues[queue];
        queue.sent += frames;
        queue.sent_octets += u64::from(octets) * frames;
        queue.deepest_frames = queue.deepest_frames.max(1);
        queue.deepest_octets = queue.deepest_octets.max(octets);
        queue.wait_max = queue.wait_max.max(each);
    }
}

/// A ring of so many bridges with so many hosts each, and so many streams to so many listeners.
pub(crate) fn ring(bridges: u32, hosts: u32, streams: u32, listeners: u32) -> Simulated {
    let host_names: Vec<_> = (0..bridges * hosts).map(|h| format!("h{h}")).collect();
    let bridge_names: Vec<_> = (0..bridges).map(|b| format!("b{b}")).collect();
    let name = |names: &[String], at: u32| names[at as usize].clone();
    let trunk =
        (0..bridges).map(|b| (name(&bridge_names, b), name(&bridge_names, (b + 1) % bridges)));
    let to_host = |h: u32| (name(&host_names, h), name(&bridge_names, h / hosts));
    let links: Vec<_> = trunk.chain((0..bridges * hosts).map(to_host)).collect();
    let links: Vec<_> = links.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    let nodes: Vec<_> = host_names.iter().chain(&bridge_names).map(String::as_str).collect();
    let mut system = system(&nodes, &links, Vec::new());
    system.name = format!("ring of {bridges}");
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let all = bridges * hosts;
    system.streams = (0..streams)
        .map(|number| {
            let talker = number % all;
            let to = (1..=listeners).map(|n| (talker + n * (all / 5).max(1)) % all);
            let to: Vec<_> = to.filter(|to| *to != talker).collect();
            stream(&format!("s{number}"), talker, &to, 5 + (number % 3) as u8)
        })
        .collect();
    let mut plan = plan(&system, &[]);
    plan.backlogs = vec![[None; 8]; system.ports.len()];
    let mut observed = Observed {
        duration: Span::from_s(1),
        repetitions: 1,
        ports: vec![PortObserved::default(); system.ports.len()],
        events: 12_345_678,
        ..Observed::default()
    };
    for stream in system.streams.clone() {
        let (planned, flow) = around(&system, bridges, hosts, &stream, &mut random, &mut observed);
        plan.streams.push(planned);
        observed.streams.push(flow);
    }
    for (seen, bounds) in observed.ports.iter_mut().zip(&mut plan.backlogs) {
        for (queue, bound) in seen.queues.iter_mut().zip(bounds).filter(|(q, _)| q.sent > 0) {
            queue.deepest_frames = 1 + random.below(20) as u32;
            queue.deepest_octets = queue.deepest_frames * 1000;
            let frames = u64::from(queue.deepest_frames) + random.below(8) as u64;
            *bound = Some(Backlog { frames, octets: frames * 1000 });
        }
    }
    Simulated { system, plan, observed }
}

/// A stream that goes around a ring to each of its listeners, and what became of its frames.
fn around(
    system: &System,
    bridges: u32,
    hosts: u32,
    stream: &Stream,
    random: &mut Random,
    observed: &mut Observed,
) -> (StreamPlan, FlowObserved) {
    let mut planned = StreamPlan::default();
    let mut flow = FlowObserved { released: 1000, ..FlowObserved::default() };
    let access = |host: NodeId| PortId(2 * (bridges + host.0));
    for listener in &stream.listeners {
        let (from, to) = (stream.talker.0 / hosts, listener.0 / hosts);
        let hops = (0..(to + bridges - from) % bridges).map(|hop| (from + hop) % bridges);
        let mut path = vec![access(stream.talker)];
        path.extend(hops.map(|bridge| PortId(2 * bridge)));
        path.push(system.port(access(*listener)).peer);
        let fastest = 8_160 * path.len() as i64;
        let slowest = fastest + random.below(40_000 * path.len() as i64);
        let slack = 1 + random.below(slowest);
        let labels: Vec<_> = path
            .iter()
            .map(|port| format!("queue {} at {}", stream.traffic_class, system.port_label(*port)))
            .collect();
        let share = (slowest + slack) / path.len() as i64;
        let terms: Vec<_> = (0..).zip(&labels).map(|(n, l)| (l.as_str(), share + n)).collect();
        planned.bounds.push(Some(bound(&terms, fastest)));
        flow.listeners.push(seen(&[fastest, (fastest + slowest) / 2, slowest]));
        planned.paths.push(vec![path]);
    }
    let mut ports: Vec<_> = planned.paths.iter().flatten().flatten().copied().collect();
    ports.sort_unstable();
    ports.dedup();
    count(observed, system, &ports, stream.traffic_class.into(), 1000, 200);
    (planned, flow)
}

/// A system of this topology in which nothing was sent.
pub(crate) fn silent(nodes: &[String], links: &[(String, String)]) -> Simulated {
    let nodes: Vec<_> = nodes.iter().map(String::as_str).collect();
    let links: Vec<_> = links.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    let system = system(&nodes, &links, Vec::new());
    let plan = plan(&system, &[]);
    let ports = vec![PortObserved::default(); system.ports.len()];
    let observed =
        Observed { duration: Span::from_s(1), repetitions: 1, ports, ..Observed::default() };
    Simulated { system, plan, observed }
}
