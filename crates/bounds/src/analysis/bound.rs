//! From waits to the bound of a channel, and from those to the bound of a chain.

use super::flow::Analysis;
use super::multi_hop::{MultiHop, gap};
use super::network::{FlowNetwork, Owner, Upstream};
use super::{BILLION, div_ceil, limits, queue};
use crate::scheduled;
use onbeat_model::codes::plan as codes;
use onbeat_model::diagnostic::Diagnostic;
use onbeat_model::plan::{Bound, BoundTerm, Cause, ChannelPlan, Plan, Unbounded};
use onbeat_model::system::{
    Chain, Channel, ChannelId, Class, NodeId, NodeKind, PortId, StreamIndex, System,
};
use onbeat_model::time::{ClockError, NetTime, Span, SyncedTime};

/// What is promised of every channel and stream. Returns what prevents a bound, and where the
/// analysis ended before it had looked at everything.
pub(crate) fn fill_in(system: &System, plan: &mut Plan) -> (Vec<Diagnostic>, Vec<Diagnostic>) {
    let mut errors = Vec::new();
    let network = FlowNetwork::new(system, plan, true);
    let analysis = Analysis::new(&network);
    let multi_hop = MultiHop::new(&analysis);
    let mut channels: Vec<Vec<Bound>> = vec![Vec::new(); system.channels.len()];
    let mut streams: Vec<ListenerBounds> = vec![Vec::new(); system.streams.len()];
    for (f, flow) in network.flows.iter().enumerate() {
        match flow.owner {
            Owner::Channel(id) if plan.channel(id).launch.is_some() => {
                channels[id.index()] = scheduled::bounds(system, plan, id);
            }
            Owner::Channel(id) if plan.channel(id).protected => {
                match of_channel(&analysis, &multi_hop, f, id) {
                    Ok(bounds) => {
                        errors.extend(overtaken(&analysis, &multi_hop, f, id));
                        channels[id.index()] = bounds;
                    }
                    Err(reason) => errors.push(unbounded(system, id, &reason)),
                }
            }
            Owner::Channel(_) => {}
            Owner::Stream(id) => streams[id.index()] = of_stream(&analysis, &multi_hop, f, id),
        }
    }
    of_babblers(system, plan, &mut streams);
    let limits = limits::reached(&analysis, &multi_hop);
    let scheduled = analysis.phase_specific.clone();
    let backlogs = queue::backlogs(&analysis, &multi_hop);
    if errors.is_empty() {
        errors = queue::overflows(&analysis, &backlogs);
    }
    for (planned, bounds) in plan.channels.iter_mut().zip(channels) {
        planned.bounds = bounds;
    }
    // The flows of streams are behind those of channels.
    let flows = system.channels.len()..;
    for (f, (planned, ends)) in flows.zip(plan.streams.iter_mut().zip(streams)) {
        planned.unbounded = ends.iter().map(|end| end.clone().err()).collect();
        planned.bounds = ends.into_iter().map(Result::ok).collect();
        planned.phase_specific = scheduled.contains(&f);
    }
    plan.backlogs = backlogs;
    (errors, limits)
}

/// Per listener of a stream its bound, or why there is none.
type ListenerBounds = Vec<Result<Bound, Unbounded>>;

/// What is promised of streams that babble: by what they should send.
fn of_babblers(system: &System, plan: &Plan, streams: &mut [ListenerBounds]) {
    let babblers = (0..system.streams.len() as u32).map(StreamIndex);
    let babblers: Vec<_> = babblers.filter(|id| system.babbles(*id)).collect();
    if babblers.is_empty() {
        return;
    }
    let network = FlowNetwork::new(system, plan, false);
    let analysis = Analysis::new(&network);
    let multi_hop = MultiHop::new(&analysis);
    for id in babblers {
        let f = system.channels.len() + id.index();
        streams[id.index()] = of_stream(&analysis, &multi_hop, f, id);
    }
}

fn unbounded(system: &System, id: ChannelId, reason: &Unbounded) -> Diagnostic {
    let channel = system.channel(id);
    let why = &reason.why;
    let message = format!("protected channel `{}` has no useful bound: {why}", channel.name);
    let help = match reason.cause {
        Cause::UnlimitedTraffic => "add a shaper to the higher queue, or a limit to its traffic",
        Cause::Babbling => "add a meter (`policing`) to the babbling stream",
        Cause::Overload => "send less, or give the queue more of the link or of the cycle",
        Cause::ShortWindows => "make the windows longer, or the frames shorter",
        Cause::Preemption => "make the queue express, or remove its gates",
        Cause::Regulator => "shape at every port of the path, by clocks of the same rate",
        Cause::Circle | Cause::TooLong => {
            "lower the jitter of the talkers' `stack_tx` or `burst_messages`, use faster links, \
             give the class a greater idleSlope than it needs in a [[port]], or route so that \
             streams do not wait for each other in a circle"
        }
    };
    Diagnostic::error(codes::UNBOUNDED, message, channel.origin, "has no bound").help(help)
}

/// One bound per listener, by their clocks; or why there is none at one of them.
fn of_channel(
    analysis: &Analysis<'_>,
    multi_hop: &MultiHop,
    f: usize,
    id: ChannelId,
) -> Result<Vec<Bound>, Unbounded> {
    let system = analysis.network.system;
    let channel = system.channel(id);
    let paths = &analysis.network.plan.channel(id).paths;
    let bound = |(listener, path): (&NodeId, &Vec<PortId>)| {
        let name = match channel.class {
            Class::Asynchronous => "asynchronous queue".to_owned(),
            class => format!("class {class:?} queue"),
        };
        let last = *path.last().expect("a way has ports");
        let bound = bound_or_reason(analysis, multi_hop, f, *listener, last, &name)?;
        Ok(by_clocks(system, [channel.talker, *listener], bound))
    };
    channel.listeners.iter().zip(paths).map(bound).collect()
}

/// A bound of true time, from a talker to a listener, by their clocks.
pub fn by_clocks(system: &System, ends: [NodeId; 2], mut bound: Bound) -> Bound {
    let [from, to] = ends.map(|id| system.node(id));
    let (late, early) = clocks_late_and_early(system, &from.clock, &to.clock, bound.total());
    if late != Span::ZERO {
        let what = format!("clocks of {} and {}", from.name, to.name);
        bound.terms.push(BoundTerm { what, span: late });
    }
    bound.best = bound.best - early;
    bound
}

/// The error for a replicated channel whose message may come over one path after the next one came
/// over another: listeners take messages in order, so with the first path gone it would be lost.
fn overtaken(
    analysis: &Analysis<'_>,
    multi_hop: &MultiHop,
    f: usize,
    id: ChannelId,
) -> Option<Diagnostic> {
    let FlowNetwork { system, plan, flows, .. } = analysis.network;
    let channel = system.channel(id);
    if !channel.paths.is_replicated() {
        return None;
    }
    let (listener, last) = (channel.listeners[0], *plan.channel(id).paths[0].last()?);
    let bound = at_listener(analysis, multi_hop, f, listener, last, "")?;
    let (apart, next) = (bound.total() - bound.best, flows[f].arrival.spacing());
    let message = format!(
        "replicated channel `{}`: messages may come {next} one after another, and by one path up \
         to {apart} later than by another",
        channel.name
    );
    let help = "lengthen the interval, set `burst_messages` to 1, choose paths that differ less, \
                or reduce the delays that `onbeat plan` lists";
    let error = Diagnostic::error(codes::REPLICATION, message, channel.origin, "would lose order");
    (apart >= next).then(|| error.help(help))
}

/// One bound per listener in true time, where there is one.
fn of_stream(
    analysis: &Analysis<'_>,
    multi_hop: &MultiHop,
    f: usize,
    id: StreamIndex,
) -> ListenerBounds {
    let network = analysis.network;
    let name = format!("queue {}", network.flows[f].queue);
    let listeners = &network.system.streams[id.index()].listeners;
    let paths = &network.plan.stream(id).paths;
    let bound = |(listener, paths): (&NodeId, &Vec<Vec<PortId>>)| {
        let last = paths.first().and_then(|path| path.last()).expect("a way has ports");
        bound_or_reason(analysis, multi_hop, f, *listener, *last, &name)
    };
    listeners.iter().zip(paths).map(bound).collect()
}

fn bound_or_reason(
    analysis: &Analysis<'_>,
    multi_hop: &MultiHop,
    f: usize,
    listener: NodeId,
    last: PortId,
    queue: &str,
) -> Result<Bound, Unbounded> {
    let bound = at_listener(analysis, multi_hop, f, listener, last, queue);
    bound.ok_or_else(|| analysis.reason(f, analysis.network.flows[f].hop_at(last)))
}

/// From release to receipt at the host behind the port `last`: the sum over its queues, or what is
/// known of the whole path if that is less. The talker itself has a frame from when its port begins
/// to send it until it has.
pub(super) fn at_listener(
    analysis: &Analysis<'_>,
    multi_hop: &MultiHop,
    f: usize,
    listener: NodeId,
    last: PortId,
    queue: &str,
) -> Option<Bound> {
    let network = analysis.network;
    let (system, flow) = (network.system, &network.flows[f]);
    if flow.babbles {
        return None;
    }
    let last = flow.hop_at(last);
    let path = slowest_path(analysis, f, last);
    let waits = path.iter().map(|h| {
        let state = analysis.states[f][*h];
        Some((span(state.late? - state.arrives?), span(state.wait?)))
    });
    let waits: Option<Vec<_>> = waits.collect();
    let fixed = fixed_delays(analysis, f, &path);
    let link = system.link_of(flow.hops[last].port);
    // Of the last link, `leaves` has all but the propagation, and the gap that follows.
    let together = multi_hop.leaves(f, last).map(|leaves| {
        let all: Span = fixed.iter().map(|delays| delays.iter().map(|d| d.1).sum::<Span>()).sum();
        leaves + link.propagation - gap(link.rate, flow.arrival.octets) - all
    });
    let apart = waits.as_ref().map(|waits| waits.iter().map(|(held, wait)| *held + *wait).sum());
    let joined = together.filter(|together| apart.is_none_or(|apart| *together < apart));
    let mut terms = Terms(Vec::new());
    for (at, (h, [stack, link])) in path.iter().zip(fixed).enumerate() {
        let label = system.port_label(flow.hops[*h].port);
        terms.add(stack.0, stack.1);
        match joined {
            None => {
                let (held, wait) = waits.as_ref()?[at];
                terms.add(format!("regulator at {label}"), held);
                terms.add(format!("{queue} at {label}"), wait);
            }
            Some(joined) if at == 0 => terms.add(format!("{queue} on the whole way"), joined),
            Some(_) => {}
        }
        terms.add(link.0, link.1);
    }
    let to = system.node(listener);
    let NodeKind::Host(host) = &to.kind else { unreachable!("a listener is a host") };
    terms.add(format!("stack of {}", to.name), host.stack_rx.max());
    let travel = match system.port(flow.hops[last].port).node == listener {
        true => Span::ZERO,
        false => network.travel(&flow.hops[last], flow.arrival.octets)[0],
    };
    let state = analysis.states[f][last];
    let first = span(state.early.max(state.starts));
    Some(Bound { terms: terms.0, best: first + travel + host.stack_rx.min() })
}

/// Per hop of a path, what takes its time whatever else there is: stack or forwarding, and the
/// link.
pub(super) fn fixed_delays(
    analysis: &Analysis<'_>,
    f: usize,
    path: &[usize],
) -> Vec<[(String, Span); 2]> {
    let network = analysis.network;
    let (system, flow) = (network.system, &network.flows[f]);
    let delays = path.iter().map(|h| {
        let port = flow.hops[*h].port;
        let node = system.node(system.port(port).node);
        let before = match &node.kind {
            NodeKind::Host(_) => (format!("stack of {}", node.name), flow.stack[1]),
            NodeKind::Bridge(bridge) => (format!("forwarding in {}", node.name), bridge.forwarding),
        };
        let travel = network.travel(&flow.hops[*h], flow.arrival.octets)[1];
        let peer = system.node(system.port(system.port(port).peer).node);
        let forwarding = match &peer.kind {
            NodeKind::Bridge(bridge) => bridge.forwarding,
            NodeKind::Host(_) => Span::ZERO,
        };
        [before, (format!("link from {}", system.port_label(port)), travel - forwarding)]
    });
    delays.collect()
}

/// The hops to `last`, over the slowest of paths that meet.
pub(super) fn slowest_path(analysis: &Analysis<'_>, f: usize, last: usize) -> Vec<usize> {
    let hops = &analysis.network.flows[f].hops;
    let mut path = vec![last];
    let mut at = last;
    let arrives = |from: &&Upstream| {
        let state = analysis.states[f][from.hop];
        let sent = state.late.zip(state.wait).map(|(late, wait)| late + wait);
        sent.map(|sent| sent + i128::from(from.travel[1].as_ns()))
    };
    while let Some(from) = hops[at].from.iter().max_by_key(arrives) {
        at = from.hop;
        path.push(at);
    }
    path.reverse();
    path
}

pub(super) fn span(ns: i128) -> Span {
    Span::from_ns(i64::try_from(ns).expect("an hour at most"))
}

struct Terms(Vec<BoundTerm>);

impl Terms {
    /// Adds a term unless it is zero.
    fn add(&mut self, what: String, span: Span) {
        if span != Span::ZERO {
            self.0.push(BoundTerm { what, span });
        }
    }
}

/// The most by which two clocks' readings differ at one instant of a run.
pub(crate) fn clocks_apart(system: &System, one: &ClockError, other: &ClockError) -> Span {
    let end = NetTime::ZERO + longest_run(system);
    let apart = |at| (one.read(at) - SyncedTime::ZERO) - (other.read(at) - SyncedTime::ZERO);
    apart(NetTime::ZERO).abs().max(apart(end).abs()) + one.wander + other.wander
}

/// The longest that talkers may write.
pub fn longest_run(system: &System) -> Span {
    let scenarios = system.scenarios.iter().map(|s| s.run.duration);
    scenarios.fold(system.run.duration, Span::max)
}

/// The shortest latency that is possible of each channel at each of its listeners, by their clocks,
/// reserved or not: stacks, links and forwarding on its path, and no queue.
pub fn shortest(system: &System, plan: &Plan) -> Vec<Vec<Span>> {
    let network = FlowNetwork::new(system, plan, true);
    let learns = |kind: &NodeKind| matches!(kind, NodeKind::Bridge(b) if b.learning);
    // Who learns may send it another way: the last link is certain.
    let is_known = !system.nodes.iter().any(|node| learns(&node.kind));
    let of_listener = |id: ChannelId, listener: NodeId, path: &[PortId]| {
        let flow = &network.flows[id.index()];
        let ports = if is_known { path } else { &path[path.len() - 1..] };
        let hops = ports.iter().map(|port| &flow.hops[flow.hop_at(*port)]);
        let hops = hops.filter(|hop| system.port(hop.port).node != listener);
        let links: Span = hops.map(|hop| network.travel(hop, flow.arrival.octets)[0]).sum();
        let [from, to] = [system.channel(id).talker, listener].map(|id| system.node(id));
        let NodeKind::Host(host) = &to.kind else { unreachable!("a listener is a host") };
        let latency = flow.stack[0] + links + host.stack_rx.min();
        let run = longest_run(system);
        latency - clocks(&to.clock, &from.clock, latency, run, -to.clock.drift_ppb)
    };
    let channels = (0..).map(ChannelId).zip(&plan.channels);
    let of_channel = |(id, planned): (ChannelId, &ChannelPlan)| {
        let listeners = &system.channel(id).listeners;
        let mut shortest = vec![Span::MAX; listeners.len()];
        for (to, path) in planned.paths_to_listeners(listeners.len()) {
            shortest[to] = of_listener(id, listeners[to], path).min(shortest[to]);
        }
        shortest
    };
    channels.map(of_channel).collect()
}

/// By how much a latency of up to `latency`, by a talker's and a listener's clock, may exceed the
/// true one, and fall short of it.
pub(crate) fn clocks_late_and_early(
    system: &System,
    talker: &ClockError,
    listener: &ClockError,
    latency: Span,
) -> (Span, Span) {
    let run = longest_run(system);
    let late = clocks(talker, listener, latency, run, talker.drift_ppb);
    let early = clocks(listener, talker, latency, run, -listener.drift_ppb);
    (late, early)
}

/// By how much the receipt by the listener's clock minus the capture by the talker's may exceed a
/// true latency of up to `latency`, in a run whose last message is written at `duration`. Never
/// negative, so that the bound holds for the true latency too. With the clocks the other way round,
/// and the negative of `drift_ppb`, which is the first one's, by how much it may fall short.
fn clocks(
    talker: &ClockError,
    listener: &ClockError,
    latency: Span,
    duration: Span,
    drift_ppb: i32,
) -> Span {
    // The readings' difference at one instant is linear: greatest at one end of the run.
    let apart = |at: i128| {
        let offset = i128::from(listener.offset.as_ns()) - i128::from(talker.offset.as_ns());
        let drift = i128::from(listener.drift_ppb) - i128::from(talker.drift_ppb);
        offset * BILLION + drift * at
    };
    let latency = i128::from(latency.as_ns());
    let most = apart(0).max(apart(i128::from(duration.as_ns()) + latency));
    // Between capture and receipt the talker's clock advances.
    let on_the_way = i128::from(drift_ppb).max(0) * latency;
    // A drifting clock's reading is rounded down, the talker's by less than a nanosecond.
    let wanders = talker.wander != Span::ZERO;
    let rounding = if talker.drift_ppb == 0 && !wanders { 0 } else { BILLION };
    // Whatever the phases of both waves, and the talker's on the path.
    let wander = i128::from((listener.wander + talker.wander * 3).as_ns()) * BILLION;
    let ns = div_ceil((most + on_the_way + rounding + wander).max(0), BILLION);
    Span::from_ns(i64::try_from(ns).expect("a clock error of less than 292 years"))
}

/// Why a chain has no bound though its channels may have theirs: a host in it that does not write
/// because it has read.
pub(crate) fn untriggered(system: &System, chain: &Chain) -> Option<String> {
    chain.channels.windows(2).find_map(|pair| {
        let [cause, effect] = [pair[0], pair[1]].map(|id| system.channel(id));
        let host = &system.node(effect.talker).name;
        if !system.has_program(effect.talker) {
            return Some(format!(
                "`{host}` has no program: its modelled end writes on its own time"
            ));
        }
        if cause.interval != effect.interval {
            return Some(format!(
                "`{host}` reads `{}` every {} and writes `{}` every {}",
                cause.name, cause.interval, effect.name, effect.interval
            ));
        }
        if cause.burst > effect.burst {
            return Some(format!(
                "`{host}` may read {} messages of `{}` at once and write {} of `{}`",
                cause.burst, cause.name, effect.burst, effect.name
            ));
        }
        let work = work(system, effect.talker);
        (work > shortest_interval(system, cause)).then(|| {
            format!(
                "`{host}` may work {work} on a message of `{}`, which has one every {}",
                cause.name, cause.interval
            )
        })
    })
}

/// The sum of its channels' bounds, each to the host that continues the chain (the last to its
/// worst listener), and of the work between; none if a channel has no bound, or if a host between
/// does not write because, and as soon as, it has read.
pub(crate) fn of_chain(system: &System, plan: &Plan, chain: &Chain) -> Option<Span> {
    if untriggered(system, chain).is_some() {
        return None;
    }
    let mut total = Span::ZERO;
    for (at, &id) in chain.channels.iter().enumerate() {
        let planned = plan.channel(id);
        let Some(next) = chain.channels.get(at + 1) else {
            return Some(total + planned.bound()?);
        };
        let (cause, effect) = (system.channel(id), system.channel(*next));
        let host = effect.talker;
        let listener = cause.listeners.iter().position(|l| *l == host)?;
        total += planned.bounds.get(listener)?.total();
        total += worked_on(system, cause, work(system, host)) + held_back(system, cause, effect);
    }
    None
}

/// How long the rate of `effect` may hold back messages that come at the rate of `cause`, of the
/// same interval: nothing but for a clock that is slower than the one that they were written by.
fn held_back(system: &System, cause: &Channel, effect: &Channel) -> Span {
    let [fast, slow] =
        [cause, effect].map(|c| system.node(c.talker).clock.drift_ppb).map(i128::from);
    let apart = i128::from(longest_run(system).as_ns()) * (fast - slow).max(0);
    // A drifting clock's reading is rounded down.
    let ns = div_ceil(apart, BILLION + slow) + i128::from(fast != 0);
    Span::from_ns(i64::try_from(ns).expect("a thousandth of a run"))
}

/// From the last instant at which a message of `cause` may come to when a program that works for
/// up to `work` on each, no longer than the interval, is done with it: messages that came in a
/// burst wait for each other. Of those before, m are in the way at most if m intervals less what
/// may come early have passed meanwhile.
fn worked_on(system: &System, cause: &Channel, work: Span) -> Span {
    let interval = shortest_interval(system, cause);
    // A drifting clock's reading is rounded down.
    let early = cause.tolerance() + Span::from_ns(1);
    let before = early.as_ns() / interval.as_ns();
    let more = work * (before + 1) - (interval * (before + 1) - early);
    work + (work * before).max(more)
}

/// The true time between two messages at the declared rate, if the talker's clock is fast.
fn shortest_interval(system: &System, channel: &Channel) -> Span {
    let drift = i128::from(system.node(channel.talker).clock.drift_ppb).max(0);
    let ns = i128::from(channel.interval.as_ns()) * BILLION / (BILLION + drift);
    Span::from_ns(i64::try_from(ns).expect("no longer than by the clock").max(1))
}

/// The most that a program on `host` works between reading and writing, by the host's clock.
fn work(system: &System, host: NodeId) -> Span {
    let work = system.programs_on(host).map(|p| p.work_max).max().unwrap_or_default();
    let drift = i128::from(system.node(host).clock.drift_ppb).max(0);
    let extra = div_ceil(i128::from(work.as_ns()) * drift, BILLION);
    work + Span::from_ns(i64::try_from(extra).expect("a thousandth of the work at most"))
}
