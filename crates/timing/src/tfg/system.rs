//! The graph of a system: those of its programs, joined by its channels, and tasks for the ends of
//! channels that no program serves.

use onbeat_bounds::shortest;
use onbeat_model::codes::timing as codes;
use onbeat_model::diagnostic::Diagnostic;
use onbeat_model::graph::{
    Channel, ChannelKind, Expression, Graph, Host, Interval, NetworkChannel, NodeKind, PointKind,
    Task, TaskNode,
};
use onbeat_model::plan::{Bound, Plan};
use onbeat_model::system::{self, ChannelId, NodeId, Program, System};
use onbeat_model::time::{ClockError, NetTime, Span, SyncedTime};
use onbeat_model::timing::Chain;
use std::collections::BTreeSet;

/// Frames that wait for a program at most, as a run keeps them for it.
const INBOX: u32 = 1_024;

/// Joins the graphs of programs, each with its position in [`System::programs`], to that of the
/// system. Its first channels are the system's, in their order.
///
/// A channel's end on a host without programs has a task of its own, which is part of a "program"
/// with the host's name. A channel that is written by a program without a graph has one too: it
/// writes at unknown times.
///
/// # Errors
/// Programs that write or read channels whose talker or listener is another host (OB5008).
///
/// # Panics
/// When a program's position is beyond the system's programs, or a graph leads beyond itself.
pub fn system_graph(
    system: &System,
    plan: &Plan,
    programs: &[(usize, Graph)],
) -> Result<(Graph, Vec<Chain>), Vec<Diagnostic>> {
    let mut merged = Merged::new(system, plan);
    for (program, graph) in programs {
        merged.add_program(&system.programs[*program], graph);
    }
    if !merged.errors.is_empty() {
        return Err(merged.errors);
    }
    let analysed: BTreeSet<usize> = programs.iter().map(|(program, _)| *program).collect();
    for id in (0..system.channels.len() as u32).map(ChannelId) {
        merged.add_modelled(id);
        merged.add_unknown_writer(id, &analysed);
    }
    let chains = system.chains.iter().map(|chain| Chain {
        name: chain.name.clone(),
        channels: chain.channels.iter().map(|id| id.index()).collect(),
        deadline: Some(chain.deadline),
        age: chain.age,
        reaction: chain.reaction,
        ..Chain::default()
    });
    Ok((merged.graph, chains.collect()))
}

/// By how much a clock advances while so much true time passes. Its reading is rounded down, and a
/// fast one skips readings: a task that continues at one of them continues at the next.
fn by_clock(passed: Interval, clock: &ClockError) -> Interval {
    let drift = i64::from(clock.drift_ppb);
    if drift == 0 && clock.wander == Span::ZERO {
        return passed;
    }
    let scaled = |span: Span, ppb: i64| {
        let more = i128::from(span.as_ns()) * i128::from(ppb);
        span + Span::from_ns(more.div_euclid(1_000_000_000) as i64)
    };
    let apart = clock.wander_ppb();
    Interval {
        lo: (scaled(passed.lo, drift - apart) - Span::from_ns(1)).max(Span::ZERO),
        hi: passed.hi.map(|hi| scaled(hi, drift + apart) + Span::from_ns(2)),
    }
}

struct Merged<'a> {
    system: &'a System,
    plan: &'a Plan,
    graph: Graph,
    /// Per node its host in the graph; none for bridges.
    hosts: Vec<Option<usize>>,
    errors: Vec<Diagnostic>,
}

impl<'a> Merged<'a> {
    /// Hosts and channels, without tasks.
    fn new(system: &'a System, plan: &'a Plan) -> Self {
        let mut graph = Graph::default();
        let mut hosts = Vec::with_capacity(system.nodes.len());
        for (id, node) in (0..).map(NodeId).zip(&system.nodes) {
            let system::NodeKind::Host(host) = &node.kind else {
                hosts.push(None);
                continue;
            };
            hosts.push(Some(graph.hosts.len()));
            // The ends of a modelled host do not sleep: they are on time.
            let is_modelled = !system.has_program(id);
            let wakeup = match is_modelled {
                true => Interval::ZERO,
                false => {
                    by_clock(Interval::between(host.wakeup.min(), host.wakeup.max()), &node.clock)
                }
            };
            graph.hosts.push(Host {
                name: node.name.clone(),
                start: node.clock.read(NetTime::ZERO) - SyncedTime::ZERO,
                wakeup,
                cores: host.cores.filter(|_| !is_modelled),
            });
        }
        let latencies = latencies(system, plan);
        for (channel, latencies) in system.channels.iter().zip(latencies) {
            let listeners = channel.listeners.iter().zip(latencies);
            let place = |id: &NodeId| hosts[id.index()].expect("a listener is a host");
            let network = NetworkChannel {
                latencies: listeners.map(|(id, latency)| (place(id), latency)).collect(),
                fixed_delay: channel.fixed_delay,
                interval: channel.interval,
                tolerance: channel.tolerance(),
                catch_up: channel.catch_up(),
                // As those of the network, bounds of chains and tasks count none that catches up.
                early: channel.tolerance(),
                capacity: INBOX,
            };
            let kind = ChannelKind::Network(network);
            graph.channels.push(Channel { name: channel.name.clone(), kind });
        }
        Self { system, plan, graph, hosts, errors: Vec::new() }
    }

    fn host(&self, id: NodeId) -> usize {
        self.hosts[id.index()].expect("programs, talkers and listeners are on hosts")
    }

    fn add_program(&mut self, program: &Program, graph: &Graph) {
        let channels = self.add_channels(program, graph);
        let first_task = self.graph.tasks.len();
        let first_resource = self.graph.resources.len();
        let own = |name: &String| of_program(program, name.as_str());
        self.graph.resources.extend(graph.resources.iter().map(own));
        let moved = |resource: &usize| first_resource + resource;
        let aliases = graph.aliases.iter();
        self.graph.aliases.extend(
            aliases.map(|(vague, others)| {
                (moved(vague), others.iter().map(moved).collect::<Vec<_>>())
            }),
        );
        let host = self.host(program.host);
        let cores = self.graph.hosts[host].cores;
        let mut wrong = BTreeSet::new();
        for task in &graph.tasks {
            let mut task = Task { program: program.name.clone(), host, ..task.clone() };
            task.priority = task.priority.or(program.priority);
            if task.cores.is_empty()
                && let Some(cores) = cores
            {
                // As in runs: all threads of a program have one processor.
                let first = program.cores.first().filter(|core| **core < cores);
                task.cores = vec![first.copied().unwrap_or(0)];
            }
            let clock = self.system.node(program.host).clock;
            let worked = |execution: &mut Interval| {
                if execution.hi != Some(Span::ZERO) {
                    *execution = by_clock(*execution, &clock);
                }
            };
            for segment in &mut task.segments {
                let times = [&mut segment.execution, &mut segment.jitter, &mut segment.abort];
                times.into_iter().for_each(worked);
            }
            for node in &mut task.nodes {
                match &mut node.kind {
                    NodeKind::Fragment { execution } => worked(execution),
                    NodeKind::Write { channel, .. } => {
                        *channel = channels[*channel];
                        wrong.extend(self.is_no_end(program, *channel, true));
                    }
                    NodeKind::Read { channel, .. } => {
                        *channel = channels[*channel];
                        wrong.extend(self.is_no_end(program, *channel, false));
                    }
                    NodeKind::Run { task } => *task += first_task,
                    NodeKind::Lock(resource)
                    | NodeKind::Take(resource)
                    | NodeKind::Unlock(resource) => {
                        *resource += first_resource;
                    }
                    _ => {}
                }
            }
            self.graph.tasks.push(task);
        }
        for (channel, is_write) in wrong {
            let found = self.no_end(program, channel, is_write);
            self.errors.push(found);
        }
    }

    /// Where each of a program's channels is in the system's graph.
    fn add_channels(&mut self, program: &Program, graph: &Graph) -> Vec<usize> {
        let mut places = Vec::with_capacity(graph.channels.len());
        for channel in &graph.channels {
            let described = match channel.kind {
                ChannelKind::Named => self.system.channel_named(&channel.name),
                _ => None,
            };
            if let Some(id) = described {
                places.push(id.index());
                continue;
            }
            if channel.kind == ChannelKind::Named {
                let message = format!(
                    "program `{}` uses the channel `{}`, which the description lacks",
                    program.name, channel.name
                );
                let found =
                    Diagnostic::error(codes::NO_END, message, program.origin, "this program");
                self.errors.push(found.help("add [[channel]] with this name"));
            }
            places.push(self.graph.channels.len());
            let name = of_program(program, &channel.name);
            self.graph.channels.push(Channel { name, kind: channel.kind.clone() });
        }
        places
    }

    /// The channel and direction, if the program's host has no such end of it.
    fn is_no_end(
        &self,
        program: &Program,
        channel: usize,
        is_write: bool,
    ) -> Option<(usize, bool)> {
        let described = self.system.channels.get(channel)?;
        let is_end = match is_write {
            true => described.talker == program.host,
            false => described.listeners.contains(&program.host),
        };
        (!is_end).then_some((channel, is_write))
    }

    fn no_end(&self, program: &Program, channel: usize, is_write: bool) -> Diagnostic {
        let channel = &self.system.channels[channel];
        let host = &self.system.node(program.host).name;
        let (does, what, key) = match is_write {
            true => ("writes", "its talker", "talker"),
            false => ("reads", "one of its listeners", "listeners"),
        };
        let message = format!(
            "program `{}` on `{host}` {does} `{}`, but `{host}` is not {what}",
            program.name, channel.name
        );
        Diagnostic::error(codes::NO_END, message, program.origin, "this program")
            .help(format!("add `{host}` to the channel's `{key}`, or run it on another host"))
            .related(channel.origin, "the channel")
    }

    /// The ends on hosts without programs: a talker that writes every interval from the phase on,
    /// as runs have it, and listeners that read each message as soon as it is there.
    fn add_modelled(&mut self, id: ChannelId) {
        let (system, channel) = (self.system, self.system.channel(id));
        if !system.has_program(channel.talker) {
            let host = self.host(channel.talker);
            // A clock that is ahead has passed the first instants before the run begins.
            let start = self.graph.hosts[host].start;
            let phase = self.plan.phase(system, id);
            let passed = (start - phase).as_ns().max(0);
            let interval = channel.interval.as_ns();
            let skipped = channel.interval * ((passed + interval - 1) / interval);
            let first = Expression::Constant((phase + skipped - start).as_ns());
            let nodes = vec![
                node(NodeKind::Start, "start", &[1]),
                node(soft(first), "phase", &[2]),
                node(NodeKind::Write { channel: id.index(), waits: false }, "write", &[3]),
                node(soft(Expression::Constant(interval)), "interval", &[2]),
            ];
            self.add_task(host, &system.node(channel.talker).name, &channel.name, nodes);
        }
        for listener in channel.listeners.iter().filter(|id| !system.has_program(**id)) {
            let read = NodeKind::Read { channel: id.index(), waits: false };
            let nodes = vec![node(NodeKind::Start, "start", &[1]), node(read, "read", &[1])];
            let host = self.host(*listener);
            self.add_task(host, &system.node(*listener).name, &channel.name, nodes);
        }
    }

    /// A channel that no program with a graph writes, while one without may: messages come at any
    /// time, no faster than the channel's rate allows.
    fn add_unknown_writer(&mut self, id: ChannelId, analysed: &BTreeSet<usize>) {
        let channel = self.system.channel(id);
        let mut all = self.graph.tasks.iter().flat_map(|task| &task.nodes);
        let writes = |node: &TaskNode| -> bool {
            matches!(node.kind, NodeKind::Write { channel, .. } if channel == id.index())
        };
        if all.any(writes) {
            return;
        }
        let mut programs = self.system.programs.iter().enumerate();
        let may_write = |p: &Program| p.host == channel.talker && p.joins;
        let unknown = programs.find(|(at, p)| may_write(p) && !analysed.contains(at));
        let Some((_, program)) = unknown else { return };
        let nodes = vec![
            node(NodeKind::Start, "start", &[1]),
            node(soft(Expression::Unknown), "unknown", &[2]),
            node(NodeKind::Write { channel: id.index(), waits: false }, "write", &[1]),
        ];
        self.add_task(self.host(channel.talker), &program.name, &channel.name, nodes);
    }

    fn add_task(&mut self, host: usize, program: &str, name: &str, nodes: Vec<TaskNode>) {
        self.graph.tasks.push(Task {
            name: name.to_owned(),
            program: program.to_owned(),
            host,
            nodes,
            is_first: true,
            ..Task::default()
        });
    }
}

/// What a program's own channel or resource is called in the system.
fn of_program(program: &Program, name: &str) -> String {
    let prefix = format!("{}.", program.name);
    if name.starts_with(&prefix) { name.to_owned() } else { prefix + name }
}

fn node(what: NodeKind, place: &str, next: &[usize]) -> TaskNode {
    TaskNode { kind: what, place: place.to_owned(), next: next.to_vec(), guard: None }
}

/// A point that nothing misses.
fn soft(period: Expression) -> NodeKind {
    NodeKind::Point { kind: PointKind::Soft, period, deadline: None }
}

/// Per channel and listener: from the shortest possible latency to the bound, if there is one.
fn latencies(system: &System, plan: &Plan) -> Vec<Vec<Interval>> {
    let best = shortest(system, plan);
    let both = plan.channels.iter().zip(best);
    let of_channel = both.map(|(planned, best)| {
        if planned.bounds.is_empty() {
            return best.into_iter().map(Interval::from).collect();
        }
        let bounded = |bound: &Bound| Interval::between(bound.best, bound.total());
        planned.bounds.iter().map(bounded).collect()
    });
    of_channel.collect()
}
