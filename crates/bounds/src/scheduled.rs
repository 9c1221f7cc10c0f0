//! Scheduled channels: the gates that they need on their trees, and what these promise.

use crate::analysis::bound::clocks_late_and_early;
use crate::analysis::windows::{ROUNDING, clock_error};
use crate::keep::KeptPlan;
#[cfg(feature = "exact")]
use crate::synthesis::exact::Contradiction;
use crate::synthesis::{
    self, Egress, FlowHop, GateList, Join, Network, Obstacle, PeriodicFlow, Placed, Refusal,
    Synthesizer, Waiting,
};
use onbeat_model::codes::plan as codes;
use onbeat_model::device::DeviceLimits;
use onbeat_model::diagnostic::Diagnostic;
use onbeat_model::limits;
use onbeat_model::plan::{Bound, BoundTerm, ChannelPlan, Launch, Plan, PortWindow, StreamPlan};
use onbeat_model::port::{GateControl, GateEntry, QUEUES, Selection};
use onbeat_model::rate::rate_tolerance;
use onbeat_model::stream::Stream;
use onbeat_model::system::{
    Channel, ChannelId, Class, Host, NodeId, NodeKind, Port, PortId, System,
};
use onbeat_model::time::{ClockError, NetTime, Span};
use onbeat_model::units::{Octets, frame};
use std::collections::HashMap;

/// How many channels a refusal names.
const NAMED_MAX: usize = 8;
/// The longest frame on the wire, with preamble and gap.
const LONGEST: Octets = frame::on_wire(frame::MAX_TAGGED);

/// By how much a protocol may move a clock that it steers, while a frame waits for its window or is
/// sent in it.
fn steering(system: &System, node: NodeId) -> Span {
    match system.synchronisation.as_ref().is_some_and(|synchronisation| synchronisation.in_run) {
        true => clock_error(system, node) * 2,
        false => Span::ZERO,
    }
}

/// What a time on the wire, or in a stack, is at most by a clock.
fn by_clock(time: Span, clock: &ClockError) -> Span {
    if clock.drift_ppb == 0 && clock.wander == Span::ZERO {
        return time;
    }
    let rate = 1_000_000_000 + i128::from(clock.drift_ppb) + i128::from(clock.wander_ppb());
    let scaled = (i128::from(time.as_ns()) * rate.max(1_000_000_000) + 999_999_999) / 1_000_000_000;
    Span::from_ns(i64::try_from(scaled).expect("a frame takes less than hours")) + ROUNDING
}

/// The host that talks or listens.
fn host(system: &System, node: NodeId) -> &Host {
    let NodeKind::Host(host) = &system.node(node).kind else {
        unreachable!("who talks or listens is a host")
    };
    host
}

/// By how much later than its phase a program writes, if the description says so and that leaves
/// no interval in which it may write twice: the rate limit lets it be early.
fn told(channel: &Channel) -> Option<Span> {
    let early = rate_tolerance(channel.interval, 1);
    channel.phase_jitter.filter(|jitter| *jitter + early < channel.interval)
}

/// When it is written to in each interval at the latest, if the description says so.
fn written(system: &System, channel: &Channel) -> Option<Span> {
    match system.has_program(channel.talker) {
        true => told(channel).map(|jitter| channel.phase + jitter),
        false => (channel.phase > Span::ZERO).then_some(channel.phase),
    }
}

/// What the talker's stack takes at most, by the talker's clock.
fn stack_tx_max(system: &System, channel: &Channel) -> Span {
    by_clock(host(system, channel.talker).stack_tx.max(), &system.node(channel.talker).clock)
}

/// How long before its launch time a message is written at the latest: as long as its stack takes,
/// and as much as the talker's clock may be moved meanwhile.
fn lead(system: &System, channel: &Channel) -> Span {
    stack_tx_max(system, channel) + steering(system, channel.talker)
}

/// How long a message may wait for its launch time beside that. A modelled talker is on time; who
/// is not told when to write may just have missed a launch time. Before it in the stack are all
/// that the rate limit lets a program write at once.
fn waits(system: &System, channel: &Channel) -> Span {
    let talker = system.node(channel.talker);
    match (system.has_program(channel.talker), told(channel)) {
        (false, _) => Span::ZERO,
        (true, Some(jitter)) => jitter + channel.tolerance() - rate_tolerance(channel.interval, 1),
        (true, None) => {
            let stack = &host(system, channel.talker).stack_tx;
            let interval = by_clock(channel.interval + channel.tolerance(), &talker.clock);
            interval + (stack.max() - stack.min())
        }
    }
}

/// How long a message takes from being written to its launch time at least. Who knows the launch
/// time writes so early that its slowest frame is there in time; where that is an interval earlier
/// than a fast one needs, this may leave at an earlier launch time.
fn least_wait(system: &System, channel: &Channel) -> Span {
    let stack = &host(system, channel.talker).stack_tx;
    let is_modelled = !system.has_program(channel.talker);
    let Some(jitter) = told(channel).or(is_modelled.then_some(Span::ZERO)) else {
        return stack.min();
    };
    let earliest = lead(system, channel) + jitter;
    match earliest - stack.min() < channel.interval {
        true => stack.max(),
        false => stack.min(),
    }
}

/// An instant within an interval.
fn within(at: i64, interval: Span) -> Span {
    Span::from_ns(at.rem_euclid(interval.as_ns()))
}

/// Whether a node's ports have no gates. At a host's port frames then leave at their launch times.
fn has_no_gates(system: &System, node: NodeId) -> bool {
    system.device_limits(node).gates == Some(false)
}

/// How long after its launch time a frame is queued at a host's port at most, as far as the plan
/// counts. A clock that errs reads the launch time a little late. Without gates the frame may find
/// one of best effort in transmission.
fn queued_late(system: &System, talker: NodeId) -> Span {
    let late = match clock_error(system, talker) {
        Span::ZERO => Span::ZERO,
        _ => ROUNDING + steering(system, talker),
    };
    match (has_no_gates(system, talker), &system.node(talker).ports[..]) {
        (true, [port]) => late + system.link_of(*port).rate.time_for(LONGEST),
        _ => late,
    }
}

/// The ports, as the synthesis sees them.
fn network(system: &System) -> Network {
    let errors: Vec<Span> =
        (0..system.nodes.len() as u32).map(|node| clock_error(system, NodeId(node))).collect();
    let egress = |id: PortId| {
        let (port, link) = (system.port(id), system.link_of(id));
        let (forwarding, cuts_through) = match &system.node(system.port(port.peer).node).kind {
            NodeKind::Bridge(bridge) => (bridge.forwarding, bridge.cut_through),
            NodeKind::Host(_) => (Span::ZERO, false),
        };
        let latency = link.propagation + forwarding;
        // Who cuts through has a frame before its last bit is there.
        let mut earlier = if cuts_through { link.rate.time_for(LONGEST) } else { Span::ZERO };
        if has_no_gates(system, port.node) {
            // Nothing holds a frame until its window opens.
            earlier += queued_late(system, port.node);
        }
        Egress {
            latency: [latency - earlier, latency],
            clock_error: errors[port.node.index()],
            tick: gate_step(system, port.node),
            queues: 1,
            entries_max: system.device_limits(port.node).entries_max(limits::GATE_ENTRIES),
        }
    };
    Network { ports: (0..system.ports.len() as u32).map(|port| egress(PortId(port))).collect() }
}

/// In what steps gates of a node open and close.
fn gate_step(system: &System, node: NodeId) -> Span {
    match has_no_gates(system, node) {
        true => Span::from_ns(1),
        false => system.device_limits(node).gate_step(),
    }
}

/// For how long the gate of a port is open for one frame.
pub(crate) fn window(system: &System, channel: &Channel, port: PortId) -> Span {
    let octets = channel.frame();
    let (rate, node) = (system.link_of(port).rate, system.port(port).node);
    let window = by_clock(rate.time_for(frame::on_wire(octets)), &system.node(node).clock);
    let (window, step) = (window + steering(system, node), gate_step(system, node).as_ns());
    Span::from_ns((window.as_ns() + step - 1) / step * step)
}

/// The ports of a channel's paths, each behind all that lead to it.
fn upstream_first(planned: &ChannelPlan) -> Vec<PortId> {
    let mut ports = planned.tree_ports();
    let mut depths: HashMap<PortId, usize> = HashMap::new();
    // Where paths part and join again, the longest way decides; no path meets itself.
    for _ in 0..ports.len() {
        let mut deeper = false;
        for pair in planned.paths.iter().flat_map(|path| path.windows(2)) {
            let least = depths.get(&pair[0]).copied().unwrap_or_default() + 1;
            let depth = depths.entry(pair[1]).or_default();
            deeper |= *depth < least;
            *depth = least.max(*depth);
        }
        if !deeper {
            break;
        }
    }
    ports.sort_by_key(|port| depths.get(port).copied().unwrap_or_default());
    ports
}

/// A channel, as the synthesis sees it: from its launch time on.
fn flow(system: &System, channel: &Channel, planned: &ChannelPlan) -> PeriodicFlow {
    let octets = channel.frame();
    let tree = match channel.paths.is_replicated() {
        true => upstream_first(planned),
        false => planned.tree_ports(),
    };
    let places: HashMap<PortId, usize> =
        tree.iter().enumerate().map(|(at, port)| (*port, at)).collect();
    let mut before: HashMap<PortId, usize> = HashMap::new();
    let mut joins = Vec::new();
    for pair in planned.paths.iter().flat_map(|path| path.windows(2)) {
        let join = Join { hop: places[&pair[1]], before: places[&pair[0]] };
        let first = *before.entry(pair[1]).or_insert(join.before);
        if first != join.before && !joins.contains(&join) {
            joins.push(join);
        }
    }
    let hop = |port: &PortId| FlowHop {
        port: port.index(),
        after: before.get(port).copied(),
        sent: system.link_of(*port).rate.time_for(frame::PREAMBLE + octets),
        occupies: window(system, channel, *port),
    };
    let lead = lead(system, channel);
    let received = channel.listeners.iter().map(|to| host(system, *to).stack_rx.max());
    let received = received.max().unwrap_or_default();
    PeriodicFlow {
        period: channel.interval,
        release: written(system, channel)
            .map(|written| within((written + lead).as_ns(), channel.interval)),
        ready: [Span::ZERO, queued_late(system, channel.talker)],
        deadline: channel.fixed_delay - lead - received,
        jitter: None,
        hops: tree.iter().map(hop).collect(),
        joins,
    }
}

/// What scheduled channels need of the gates.
#[derive(Default)]
pub(crate) struct Schedule {
    /// The gate control list of each port that has some.
    pub(crate) gates: HashMap<PortId, GateControl>,
    /// What prevents a schedule (OB2002).
    pub(crate) errors: Vec<Diagnostic>,
    /// Who found no place, and where, if another path may have room.
    pub(crate) crowded: Option<Crowded>,
}

/// A channel that found no place at a port.
#[derive(Clone, Copy)]
pub(crate) struct Crowded {
    pub(crate) channel: ChannelId,
    pub(crate) port: PortId,
    /// Whether it is the gate control list of the port that is too long, not the windows.
    pub(crate) by_entries: bool,
}

/// Gives each scheduled channel that is protected its launch time and windows: those that are kept,
/// where that is possible.
pub(crate) fn schedule(
    system: &System,
    channels: &mut [ChannelPlan],
    streams: &[StreamPlan],
    kept: &KeptPlan,
) -> Schedule {
    let ids = protected(system, channels);
    if ids.is_empty() {
        return Schedule::default();
    }
    let hindrances = hindrances(system, channels, streams, &ids);
    if !hindrances.is_empty() {
        return Schedule { errors: hindrances, ..Schedule::default() };
    }
    let (network, flows) = problem(system, channels, &ids);
    let kept = kept_windows(system, &ids, &flows, kept);
    let placed = place(system, &network, &flows, &kept);
    let placed = match placed {
        Ok(placed) => placed,
        Err(refusal) => {
            let name = |flow: usize| system.channel(ids[flow]).name.as_str();
            let channel = system.channel(ids[refusal.flow]);
            let errors = vec![refused(system, channel, &flows[refusal.flow], &refusal, &name)];
            let crowded = refusal.why.port().map(|port| Crowded {
                channel: ids[refusal.flow],
                port: PortId(port as u32),
                by_entries: matches!(refusal.why, Obstacle::Entries { .. }),
            });
            return Schedule { errors, crowded, ..Schedule::default() };
        }
    };
    set_launches(system, channels, &ids, (&flows, &placed));
    let lists = (0..).map(PortId).zip(synthesis::gate_lists(&network, &flows, &placed));
    let gates = lists.filter_map(|(port, list)| Some((port, gates_of(system, port, &list?)?)));
    Schedule { gates: gates.collect(), ..Schedule::default() }
}

/// The scheduled channels that are protected.
fn protected(system: &System, channels: &[ChannelPlan]) -> Vec<ChannelId> {
    let all = (0..).map(ChannelId).zip(channels).zip(&system.channels);
    all.filter(|((_, planned), channel)| planned.protected && channel.class == Class::Scheduled)
        .map(|((id, _), _)| id)
        .collect()
}

/// Channels on their paths, as the synthesis sees them.
fn problem(
    system: &System,
    channels: &[ChannelPlan],
    ids: &[ChannelId],
) -> (Network, Vec<PeriodicFlow>) {
    let flow = |id: &ChannelId| flow(system, system.channel(*id), &channels[id.index()]);
    (network(system), ids.iter().map(flow).collect())
}

/// Why channels can have no windows, whatever the others.
fn hindrances(
    system: &System,
    channels: &[ChannelPlan],
    streams: &[StreamPlan],
    ids: &[ChannelId],
) -> Vec<Diagnostic> {
    let of = |id: &ChannelId| hindrance(system, &channels[id.index()], streams, *id);
    ids.iter().filter_map(of).collect()
}

fn set_launches(
    system: &System,
    channels: &mut [ChannelPlan],
    ids: &[ChannelId],
    (flows, placed): (&[PeriodicFlow], &[Placed]),
) {
    for ((id, flow), placed) in ids.iter().zip(flows).zip(placed) {
        let lead = lead(system, system.channel(*id));
        channels[id.index()].launch = Some(launch(flow, placed, lead));
    }
}

/// Gives each scheduled channel that is protected windows by a search over all schedules on these
/// paths, or says why there are none.
///
/// # Errors
/// OB2002: a proof that there is no schedule, or why the search ended without an answer.
#[cfg(feature = "exact")]
pub(crate) fn search(
    system: &System,
    channels: &mut [ChannelPlan],
    streams: &[StreamPlan],
    steps: u64,
) -> Result<(), Vec<Diagnostic>> {
    use synthesis::exact::{Answer, Unknown, exact};
    let ids = protected(system, channels);
    let hindrances = hindrances(system, channels, streams, &ids);
    if !hindrances.is_empty() {
        return Err(hindrances);
    }
    let (network, flows) = problem(system, channels, &ids);
    let why = match exact(&network, &flows, Waiting::Allowed, steps) {
        Answer::Solved(placed) => {
            let mut both = flows.iter().zip(&placed);
            if !both.any(|(flow, placed)| is_held(system, flow, placed)) {
                set_launches(system, channels, &ids, (&flows, &placed));
                return Ok(());
            }
            "the schedule that was found lets frames wait at a host without gates".to_owned()
        }
        Answer::Infeasible(Contradiction { flows, ports }) => {
            let them: Vec<ChannelId> = flows.iter().map(|flow| ids[*flow]).collect();
            return Err(vec![contradiction(system, &them, &ports)]);
        }
        Answer::Unknown(Unknown::Limit) => format!("{steps} steps were not enough"),
        Answer::Unknown(Unknown::Joins) => "it leaves out replicated channels".to_owned(),
        Answer::Unknown(Unknown::Large) => {
            "there are more than 200,000 pairs of windows, or times above 268 ms".to_owned()
        }
        Answer::Unknown(Unknown::Entries) => {
            "the schedule that was found needs a gate control list that is too long".to_owned()
        }
    };
    let first = system.channel(ids[0]);
    let message =
        format!("the exact search found neither a schedule nor that there is none: {why}");
    let error = Diagnostic::error(codes::SCHEDULED, message, first.origin, "the first of them");
    let help = "use fewer scheduled channels, or intervals with a large common divisor";
    Err(vec![error.help(help)])
}

/// The error for channels of which it is proven that they have no schedule.
#[cfg(feature = "exact")]
fn contradiction(system: &System, channels: &[ChannelId], ports: &[usize]) -> Diagnostic {
    let first = system.channel(channels[0]);
    let names: Vec<String> =
        channels.iter().map(|id| format!("`{}`", system.channel(*id).name)).collect();
    let ports: Vec<String> =
        ports.iter().map(|port| system.port_label(PortId(*port as u32))).collect();
    let message = format!(
        "scheduled channels {} have no schedule on their paths, whatever becomes of others: no \
         windows at {} keep all their fixed delays",
        names.join(", "),
        ports.join(", "),
    );
    let error = Diagnostic::error(codes::SCHEDULED, message, first.origin, "the first of them");
    let others = channels[1..].iter().take(NAMED_MAX);
    let error =
        others.fold(error, |error, id| error.related(system.channel(*id).origin, "with it"));
    error.help("raise the fixed delay of one, lower its size or rate, or move it to another path")
}

/// The windows of scheduled channels, of which single ones come and go.
#[derive(Clone, Debug)]
pub(crate) struct Timetable(Synthesizer<'static>);

/// A channel that found no place among the others, where they are.
pub(crate) struct NoPlace {
    pub(crate) flow: PeriodicFlow,
    pub(crate) refusal: Refusal,
}

impl Timetable {
    /// No windows yet.
    pub(crate) fn new(system: &System) -> Self {
        Self(Synthesizer::owning(network(system), Waiting::None))
    }

    /// Puts a channel into windows; false if that is not right, and nothing has changed then.
    pub(crate) fn put_back(
        &mut self,
        system: &System,
        key: usize,
        (channel, planned): (&Channel, &ChannelPlan),
        launch: &Launch,
    ) -> bool {
        let flow = flow(system, channel, planned);
        let is_same = launch
            .windows
            .iter()
            .map(|window| (window.port.index(), window.span))
            .eq(flow.hops.iter().map(|hop| (hop.port, hop.occupies)));
        let placed = placed(launch, &flow).filter(|placed| !is_held(system, &flow, placed));
        placed.is_some_and(|placed| is_same && self.0.put_back(key, &flow, &placed))
    }

    /// Gives a channel windows where no other has its own: without waiting in bridges, if there are
    /// such.
    pub(crate) fn add(
        &mut self,
        system: &System,
        key: usize,
        channel: &Channel,
        planned: &ChannelPlan,
    ) -> Result<Launch, Box<NoPlace>> {
        let flow = flow(system, channel, planned);
        let mut refusal = None;
        for waiting in [Waiting::None, Waiting::Allowed] {
            self.0.set_waiting(waiting);
            match self.0.add(key, &flow) {
                Ok(placed) if is_held(system, &flow, &placed) => _ = self.0.remove(key),
                Ok(placed) => {
                    let Some(why) = self.0.excess_entries(key) else {
                        return Ok(launch(&flow, &placed, lead(system, channel)));
                    };
                    self.0.remove(key);
                    refusal = Some(Refusal { flow: key, why, is_proven: false });
                    break;
                }
                Err(why) => {
                    refusal.get_or_insert(why);
                }
            }
        }
        let refusal = refusal.expect("only what waits is held");
        Err(Box::new(NoPlace { flow, refusal }))
    }

    /// Takes a channel out, if it is there.
    pub(crate) fn remove(&mut self, key: usize) {
        self.0.remove(key);
    }

    /// What a port's gates are told, if they have windows.
    pub(crate) fn gates(&self, system: &System, port: PortId) -> Option<GateControl> {
        gates_of(system, port, &self.0.gate_list(port.index())?)
    }
}

/// Whether a frame waits at its talker for a window, where no gate holds it.
fn is_held(system: &System, flow: &PeriodicFlow, placed: &Placed) -> bool {
    let talker = system.port(PortId(flow.hops[0].port as u32)).node;
    has_no_gates(system, talker) && placed.starts[0] > placed.release + flow.ready[1]
}

/// Places all flows: without waiting in bridges, if that can be found.
fn place(
    system: &System,
    network: &Network,
    flows: &[PeriodicFlow],
    kept: &[(usize, Placed)],
) -> Result<Vec<Placed>, Refusal> {
    let synthesize = |waiting| synthesis::synthesize_keeping(network, flows, waiting, kept);
    let refusal = match synthesize(Waiting::None) {
        // Later windows are not fewer.
        Err(refusal) if !matches!(refusal.why, Obstacle::Entries { .. }) => refusal,
        done => return done,
    };
    let placed = synthesize(Waiting::Allowed)?;
    match flows.iter().zip(&placed).any(|(flow, placed)| is_held(system, flow, placed)) {
        true => Err(refusal),
        false => Ok(placed),
    }
}

/// A launch time that is kept, of a channel that may have to write at another time for it.
pub(crate) fn relaunched(system: &System, channel: &Channel, launch: Launch) -> Launch {
    let write = within((launch.at - lead(system, channel)).as_ns(), channel.interval);
    Launch { write, ..launch }
}

fn launch(flow: &PeriodicFlow, placed: &Placed, lead: Span) -> Launch {
    let window = |(hop, start): (&FlowHop, &Span)| PortWindow {
        port: PortId(hop.port as u32),
        start: *start,
        span: hop.occupies,
    };
    Launch {
        at: placed.release,
        write: within((placed.release - lead).as_ns(), flow.period),
        windows: flow.hops.iter().zip(&placed.starts).map(window).collect(),
    }
}

/// Where flows were, first those that have not changed: who has may interfere with them now.
fn kept_windows(
    system: &System,
    ids: &[ChannelId],
    flows: &[PeriodicFlow],
    kept: &KeptPlan,
) -> Vec<(usize, Placed)> {
    let was = |(flow, id): (usize, &ChannelId)| {
        let (launch, is_same) = kept.launch(*id)?;
        let placed = placed(launch, &flows[flow])?;
        let spans = launch.windows.iter().map(|window| (window.port.index(), window.span));
        let now = flows[flow].hops.iter().map(|hop| (hop.port, hop.occupies));
        let is_same = is_same && spans.eq(now);
        (!is_held(system, &flows[flow], &placed)).then_some((is_same, (flow, placed)))
    };
    let (same, changed): (Vec<_>, Vec<_>) =
        ids.iter().enumerate().filter_map(was).partition(|(is_same, _)| *is_same);
    same.into_iter().chain(changed).map(|(_, placed)| placed).collect()
}

/// Where a flow was that left so, if it has windows at the same ports.
fn placed(launch: &Launch, flow: &PeriodicFlow) -> Option<Placed> {
    // First what keeps the rest within 64 bits: a file may say anything.
    if !(Span::ZERO..flow.period).contains(&launch.at) {
        return None;
    }
    let start = |hop: &FlowHop| {
        let mut windows = launch.windows.iter();
        Some(windows.find(|window| window.port.index() == hop.port)?.start)
    };
    let starts = flow.hops.iter().map(start).collect::<Option<_>>()?;
    Some(Placed { release: launch.at, queue: 0, starts })
}

/// What a port's gates are told, if it has some.
fn gates_of(system: &System, port: PortId, list: &GateList) -> Option<GateControl> {
    let node = system.port(port).node;
    (!has_no_gates(system, node)).then(|| gate_control(list, &system.device_limits(node)))
}

fn gate_control(list: &GateList, limits: &DeviceLimits) -> GateControl {
    let mask = 1u8 << Class::Scheduled.queue();
    let mut entries: Vec<GateEntry> = list
        .entries
        .iter()
        .map(|entry| GateEntry {
            open: if entry.queue.is_some() { mask } else { !mask },
            span: entry.span,
        })
        .collect();
    let mut base = NetTime::ZERO;
    // A state that is cut where the cycle begins opens its gates twice.
    if let ([first, .., last], Some(_)) = (&mut entries[..], limits.openings_max)
        && first.open == last.open
    {
        last.span += first.span;
        base = base + first.span - list.cycle;
        entries.remove(0);
    }
    if let Some(most) = limits.interval_max {
        let step = limits.gate_step().as_ns();
        entries = split(entries, (most.as_ns() / step * step).max(step));
    }
    GateControl { base, cycle: list.cycle, entries, length_aware: true }
}

/// Entries of at most so many nanoseconds, unless these are too many.
fn split(entries: Vec<GateEntry>, most_ns: i64) -> Vec<GateEntry> {
    let parts = |entry: &GateEntry| (entry.span.as_ns() + most_ns - 1) / most_ns;
    if entries.iter().map(parts).fold(0, i64::saturating_add) > limits::GATE_ENTRIES as i64 {
        return entries;
    }
    let split = |entry: &GateEntry| {
        let (open, whole) = (entry.open, entry.span);
        (0..parts(entry)).map(move |part| {
            let left = whole - Span::from_ns(part * most_ns);
            GateEntry { open, span: left.min(Span::from_ns(most_ns)) }
        })
    };
    entries.iter().flat_map(split).collect()
}

/// Why the plan can give a channel no windows, whatever the others.
pub(crate) fn hindrance(
    system: &System,
    planned: &ChannelPlan,
    streams: &[StreamPlan],
    id: ChannelId,
) -> Option<Diagnostic> {
    let channel = system.channel(id);
    let refuse = |message: String, label: &str, help: &str| {
        Some(Diagnostic::error(codes::SCHEDULED, message, channel.origin, label).help(help))
    };
    let name = &channel.name;
    if crate::srp::is_used(system) {
        let message = format!("scheduled channel `{name}`: MSRP reserves no windows of gates");
        return refuse(message, "is scheduled", "use class A, or `reservation = \"plan\"`");
    }
    let has_gates = |port: &&PortId| !system.port(**port).settings.gates.is_empty();
    let tree = planned.tree_ports();
    if let Some(port) = tree.iter().find(has_gates) {
        let port = system.port_label(*port);
        let message = format!("scheduled channel `{name}`: port {port} has gates of its own");
        let help = "remove the port's `gates`: the plan then computes them";
        return refuse(message, "would need windows there", help);
    }
    if let Some(error) = without_gates(system, &tree, streams, channel) {
        return Some(error);
    }
    let queue = Class::Scheduled.queue();
    let intrudes = |(stream, planned): &(&Stream, &StreamPlan)| {
        let mut ports = planned.paths.iter().flatten().flatten();
        usize::from(stream.traffic_class) == queue && ports.any(|port| tree.contains(port))
    };
    if let Some((stream, _)) = system.streams.iter().zip(streams).find(intrudes) {
        let stream = &stream.name;
        let message = format!(
            "scheduled channel `{name}`: stream `{stream}` is in queue {queue} of its ports, too"
        );
        return refuse(message, "has queue 5 to itself", "give the stream another `traffic_class`");
    }
    let selects =
        |port: &&PortId| system.port(**port).settings.selection[queue] != Selection::StrictPriority;
    if let Some(port) = tree.iter().find(selects) {
        let port = system.port_label(*port);
        let message =
            format!("scheduled channel `{name}`: queue {queue} of port {port} has a shaper");
        let help = "remove the queue from the port's idleSlopes and from `asynchronous`";
        return refuse(message, "must leave when its window opens", help);
    }
    if let Some(port) =
        tree.iter().find(|port| system.port(**port).settings.preemptable >> queue & 1 == 1)
    {
        let port = system.port_label(*port);
        let message =
            format!("scheduled channel `{name}`: queue {queue} of port {port} is preemptable");
        return refuse(message, "must not be interrupted", "make the queue express");
    }
    None
}

/// The error for a channel whose frames would need gates that a device does not have: those of a
/// bridge, or of a host that sends what goes first.
fn without_gates(
    system: &System,
    tree: &[PortId],
    streams: &[StreamPlan],
    channel: &Channel,
) -> Option<Diagnostic> {
    let queue = Class::Scheduled.queue();
    let goes_first = |node: NodeId| {
        let is_first = |other: &Channel| other.talker == node && other.reserve;
        let mut channels = system.channels.iter().filter(|other| is_first(other));
        let mut streams = system.streams.iter().zip(streams).filter(|(stream, planned)| {
            let mut ports = planned.paths.iter().flatten().flatten();
            usize::from(stream.traffic_class) > queue
                && ports.any(|port| system.port(*port).node == node)
        });
        channels.any(|other| other.class.queue() > queue) || streams.next().is_some()
    };
    let nodes = tree.iter().map(|port| system.port(*port).node);
    let mut gateless = nodes.filter(|node| has_no_gates(system, *node));
    let is_host = |node: NodeId| matches!(system.node(node).kind, NodeKind::Host(_));
    let node = gateless.find(|node| !is_host(*node) || goes_first(*node))?;
    let device = system.devices.get(&node)?;
    let (why, help) = match is_host(node) {
        true => (
            ", and frames of higher classes may delay its",
            "send nothing of a class above queue 5 from there, or use a device with gates",
        ),
        false => ("", "use a device with gates"),
    };
    let message = format!(
        "scheduled channel `{}`: device `{}` of `{}` has no gates{why}",
        channel.name,
        device.name,
        system.node(node).name,
    );
    let error = Diagnostic::error(codes::DEVICE, message, channel.origin, "needs windows there");
    Some(error.help(help).related(device.origin, "the device"))
}

/// Whether a port's device and settings leave no room for windows; [`hindrance`] says why.
pub(crate) fn is_barred(system: &System, port: &Port) -> bool {
    let (queue, settings) = (Class::Scheduled.queue(), &port.settings);
    let is_bridge = matches!(system.node(port.node).kind, NodeKind::Bridge(_));
    (is_bridge && has_no_gates(system, port.node))
        || !settings.gates.is_empty()
        || settings.selection[queue] != Selection::StrictPriority
        || settings.preemptable >> queue & 1 == 1
}

/// The error for a channel that found no place. `name` is that of the channel of each flow that
/// the refusal names.
pub(crate) fn refused<'a>(
    system: &System,
    channel: &Channel,
    flow: &PeriodicFlow,
    refusal: &Refusal,
    name: &impl Fn(usize) -> &'a str,
) -> Diagnostic {
    let (why, help) = obstacle(system, flow, refusal, name);
    let certain = if refusal.is_proven { "has no place" } else { "found no place" };
    let message = format!("scheduled channel `{}` {certain}: {why}", channel.name);
    Diagnostic::error(codes::SCHEDULED, message, channel.origin, "cannot be scheduled").help(help)
}

/// Why a channel found no place, and what to do.
fn obstacle<'a>(
    system: &System,
    flow: &PeriodicFlow,
    refusal: &Refusal,
    name: &impl Fn(usize) -> &'a str,
) -> (String, &'static str) {
    let label = |port: usize| system.port_label(PortId(port as u32));
    let at = |hop: usize| label(flow.hops[hop].port);
    let names = |of: &[usize]| {
        let shown: Vec<String> =
            of.iter().take(NAMED_MAX).map(|flow| format!("`{}`", name(*flow))).collect();
        let more = match of.len().saturating_sub(NAMED_MAX) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        shown.join(", ") + &more
    };
    match &refusal.why {
        Obstacle::Path { hop, takes } => (
            format!(
                "alone it takes {takes} from its launch time behind port {}, and its stacks leave \
                 {} of its fixed delay",
                at(*hop),
                flow.deadline.max(Span::ZERO),
            ),
            "raise `fixed_delay_us`, or shorten the path or the stacks",
        ),
        Obstacle::Jitter { hop, varies } => {
            (format!("receipts behind port {} vary by {varies}", at(*hop)), "use better clocks")
        }
        Obstacle::Overload { port, flows } => (
            format!(
                "the windows at port {} take more than all of its time: {}",
                label(*port),
                names(flows)
            ),
            "send less, or use a faster link",
        ),
        Obstacle::Tick { hop } => {
            let node = system.port(PortId(flow.hops[*hop].port as u32)).node;
            (
                format!(
                    "at port {} gates open and close in steps of {}, of which its interval is no \
                     multiple",
                    at(*hop),
                    gate_step(system, node),
                ),
                "use an interval that is a multiple, or another device",
            )
        }
        Obstacle::Period { hop } => (
            format!("its window at port {} is as long as its interval", at(*hop)),
            "raise its interval, or use better clocks",
        ),
        Obstacle::Pair { port, other } => (
            format!(
                "at port {} its window and that of {} overlap in every phase: they take more than \
                 the greatest common divisor of the intervals",
                label(*port),
                names(&[*other]),
            ),
            "use intervals that divide one another",
        ),
        Obstacle::Occupied { port, flows } => (
            format!("port {} has no room for it beside {}", label(*port), names(flows)),
            "raise its fixed delay or its interval, or send less there",
        ),
        Obstacle::Entries { port, entries } => too_long(system, PortId(*port as u32), *entries),
    }
}

/// Why a gate control list of so many entries, or of too many to count, is none for a port.
fn too_long(system: &System, port: PortId, entries: Option<usize>) -> (String, &'static str) {
    let entries = entries.map_or_else(|| "too many".to_owned(), |entries| entries.to_string());
    let device = system.device_limits(system.port(port).node);
    let (port, most) = (system.port_label(port), device.entries_max(limits::GATE_ENTRIES));
    match device.openings_max.filter(|most| *most < limits::GATE_ENTRIES) {
        Some(openings) => (
            format!(
                "a gate of port {port} would open more than {openings} times in a cycle, of \
                 {entries} entries, and its device cannot"
            ),
            "let windows follow one another, with equal intervals and without `phase_ns`, or use \
             another device",
        ),
        None => (
            format!(
                "the gate control list of port {port} would have {entries} entries, of at most \
                 {most}"
            ),
            "use intervals that divide one another",
        ),
    }
}

/// What the windows promise: one bound per listener, by their clocks.
pub(crate) fn bounds(system: &System, plan: &Plan, id: ChannelId) -> Vec<Bound> {
    let (channel, planned) = (system.channel(id), plan.channel(id));
    let Some(launch) = &planned.launch else { return Vec::new() };
    let listeners = channel.listeners.iter().zip(&planned.paths);
    listeners.map(|(to, path)| bound(system, channel, launch, *to, path)).collect()
}

fn bound(
    system: &System,
    channel: &Channel,
    launch: &Launch,
    listener: NodeId,
    path: &[PortId],
) -> Bound {
    let octets = channel.frame();
    let [from, to] = [channel.talker, listener].map(|id| system.node(id));
    let receives = host(system, listener);
    let mut terms = Vec::new();
    let mut add = |what: String, span: Span| {
        if span != Span::ZERO {
            terms.push(BoundTerm { what, span });
        }
    };
    add(format!("stack of {}", from.name), stack_tx_max(system, channel));
    add(format!("steering of the clock of {}", from.name), steering(system, channel.talker));
    let waits = waits(system, channel);
    add(format!("launch time at {}", from.name), waits);
    let mut at = launch.at;
    for port in path {
        let window = launch.windows.iter().find(|window| window.port == *port);
        let window = window.expect("each port of the tree has a window");
        add(format!("window at {}", system.port_label(*port)), window.start - at);
        let link = system.link_of(*port);
        // Its own host has a frame at the latest when that has left.
        let travel = link.rate.time_for(frame::PREAMBLE + octets) + link.propagation;
        add(format!("link from {}", system.port_label(*port)), travel);
        at = window.start + travel;
    }
    let last = system.port(*path.last().expect("a way has ports")).node;
    let errors = match last == channel.talker {
        true => Span::ZERO,
        false => clock_error(system, channel.talker) + clock_error(system, last),
    };
    add("clocks of the gates".to_owned(), errors);
    add(format!("stack of {}", to.name), receives.stack_rx.max());
    let total: Span = terms.iter().map(|term| term.span).sum();
    let (late, early) = clocks_late_and_early(system, &from.clock, &to.clock, total);
    if late != Span::ZERO {
        terms.push(BoundTerm {
            what: format!("clocks of {} and {}", from.name, to.name),
            span: late,
        });
    }
    // Only gates hold a frame that is early.
    let early_start = match last == channel.talker && has_no_gates(system, last) {
        true => queued_late(system, last),
        false => Span::ZERO,
    };
    let left = if listener == channel.talker { launch.windows[0].start } else { at };
    let on_the_way = left - launch.at - errors - early_start + receives.stack_rx.min();
    let best = least_wait(system, channel) + on_the_way - early;
    Bound { terms, best: best.max(Span::ZERO) }
}

const _: () = assert!(Class::Scheduled.queue() < QUEUES);
