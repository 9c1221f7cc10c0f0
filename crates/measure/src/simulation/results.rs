//! The JSON contract of a simulation, version 1. `docs/simulation-results.md` explains it,
//! `schema/simulation.schema.json` is made from these types.

use super::evaluate;
use crate::clocks::{self, ClockResult};
use crate::reservations::{self, ReservationsResult};
use crate::result::Verdict;
use crate::stations;
use crate::stepped::Reach;
use onbeat_model::observed::{FlowObserved, LatencyObserved, Observed, PortObserved};
use onbeat_model::plan::{Backlog, Bound, Plan};
use onbeat_model::system::{Backend, ChannelId, Class, NodeId, PortId, System};
use onbeat_model::time::Span;
use onbeat_model::units::frame;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The name of the contract that these types are.
pub const FORMAT: &str = "onbeat-simulation";
/// The version of the contract that these types are.
pub const VERSION: u32 = 1;

/// What simulations of one system under one plan saw, beside what the plan promised. All times are
/// whole nanoseconds. Under one version fields may be added; none is removed, renamed or given
/// another meaning.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Results {
    /// Always `onbeat-simulation`.
    pub format: String,
    /// Which contract this is: 1.
    pub version: u32,
    /// The system's name.
    pub system: String,
    /// Whether the plan made reservations.
    pub protected: bool,
    /// What kept channels apart; absent if bridges did.
    #[serde(default, skip_serializing_if = "is_usual")]
    pub backend: Backend,
    /// What was asked for.
    pub settings: SimulationSettings,
    /// Everything together.
    pub totals: Totals,
    /// The channels, then the streams, each in the order of the description.
    pub flows: Vec<FlowResult>,
    /// Every port, two per link, in the order of the links.
    pub ports: Vec<PortResult>,
    /// The clocks that gPTP steered, hosts first, then bridges, over all repetitions; absent if it
    /// did not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clocks: Vec<ClockResult>,
    /// Reservations that hosts and bridges made by protocol: the longest times of all repetitions,
    /// and how they stood where one was not complete; absent if they made none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reservations: Option<ReservationsResult>,
}

/// How a system was simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SimulationSettings {
    /// How long sources could release frames, in each repetition.
    pub duration_ns: i64,
    /// Where all randomness came from.
    pub seed: u64,
    /// How many simulations are put together.
    pub repetitions: u32,
    /// When sources released their first frames.
    pub phases: Phases,
}

/// When sources release their first frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Phases {
    /// When the description says.
    #[default]
    Described,
    /// At random, again in each repetition.
    Random,
    /// So that they meet one frame of one flow, another one in each repetition.
    Aligned,
}

/// Sums over all flows and ports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Totals {
    /// How long was simulated, over all repetitions.
    pub simulated_ns: i64,
    /// Events that the engine processed.
    pub events: u64,
    /// Frames that sources released.
    pub released: u64,
    /// Frames that listeners received.
    pub received: u64,
    /// Frames that ports sent: one released frame counts at each port on its way, and so does best
    /// effort.
    pub sent: u64,
    /// Flows and queues whose promise was kept.
    pub kept: u64,
    /// Flows and queues whose promise was broken.
    pub broken: u64,
}

/// What a flow is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FlowKind {
    /// A network channel.
    Channel,
    /// A modelled stream.
    Stream,
}

impl FlowKind {
    /// The kind as it is in the JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Channel => "channel",
            Self::Stream => "stream",
        }
    }
}

/// What became of the frames of one channel or stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FlowResult {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: FlowKind,
    /// A channel's class when it has a reservation; null for others and for streams.
    #[schemars(with = "Option<String>")]
    pub class: Option<Class>,
    /// The queue of every port on its way, 0 to 7.
    pub queue: u8,
    /// The host that sends.
    pub talker: String,
    /// Frames that its source released.
    pub released: u64,
    /// Frames that a filter or meter dropped on purpose (802.1Qci).
    pub policed: u64,
    /// Copies that were dropped because a queue or a buffer was full.
    pub overflowed: u64,
    /// Copies that a described fault swallowed.
    pub faulted: u64,
    /// Copies of best effort that a dedicated path aborted and lost.
    #[serde(default)]
    pub aborted: u64,
    /// Copies that were eliminated as duplicates (802.1CB): no loss.
    pub duplicates: u64,
    /// Copies that were eliminated because their sequence number is outside the history (802.1CB's
    /// rogue packets): a frame all of whose copies are is lost.
    pub rogue: u64,
    /// The description's limit from release to receipt; null if it sets none.
    pub deadline_ns: Option<i64>,
    /// The worst verdict of its listeners.
    pub verdict: Verdict,
    /// Why, for a person.
    pub verdict_reason: String,
    /// In the order of the description.
    pub listeners: Vec<ListenerResult>,
}

/// What one listener of a flow received.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ListenerResult {
    /// The host.
    pub host: String,
    /// Frames received.
    pub frames: u64,
    /// Frames that came after a later one.
    pub reordered: u64,
    /// Copies on a way to it that a filter or meter dropped on purpose (802.1Qci).
    #[serde(default)]
    pub policed: u64,
    /// Copies on a way to it that were dropped because a queue or a buffer was full.
    #[serde(default)]
    pub overflowed: u64,
    /// Copies on a way to it that a described fault swallowed.
    #[serde(default)]
    pub faulted: u64,
    /// Copies on a way to it that a dedicated path aborted and lost.
    #[serde(default)]
    pub aborted: u64,
    /// Release to receipt in true network time; null when nothing was received.
    pub latency_ns: Option<Latency>,
    /// The plan's worst case; null without one.
    pub bound_ns: Option<i64>,
    /// The plan's best case; null without a bound.
    pub best_ns: Option<i64>,
    /// By how much two latencies may differ: worst less best case; null without a bound.
    pub jitter_bound_ns: Option<i64>,
    /// The bound by the longest latency that was seen, in thousandths, rounded down: 1,000 or more
    /// if the bound held. Null without a bound or without a frame.
    pub bound_by_max_per_mille: Option<u64>,
    /// The largest term of the bound; null without one.
    pub dominating: Option<Term>,
    /// Whether what was promised to this listener was kept.
    pub verdict: Verdict,
}

/// Latencies of one listener's frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Latency {
    /// The shortest.
    pub min: i64,
    /// The mean, to the nearest nanosecond.
    pub mean: i64,
    /// The longest.
    pub max: i64,
    /// When the frame with the longest was released, in network time of its repetition.
    pub max_released: i64,
}

/// One term of a bound.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Term {
    /// What delays the frame, for a person.
    pub what: String,
    /// By how much at most.
    pub span_ns: i64,
}

/// What one port sent, to the other end of its link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PortResult {
    /// As `node.port`.
    pub port: String,
    /// The node at the other end of its link.
    pub to: String,
    /// The rate of its link.
    pub rate_bps: u64,
    /// How long the wire was occupied, gaps included.
    pub busy_ns: i64,
    /// The share of the simulated time, in thousandths, rounded to the nearest.
    pub busy_per_mille: u64,
    /// The queues in which anything was, or by their bound may be; the lowest first.
    pub queues: Vec<QueueResult>,
    /// What the dedicated path did here; null if its node has none.
    #[serde(default)]
    pub dedicated: Option<DedicatedResult>,
}

/// What the dedicated path of a bridge did at one port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DedicatedResult {
    /// Frames of stations that left.
    pub sent: u64,
    /// Times that a frame of best effort was aborted.
    pub aborts: u64,
    /// Times that an aborted frame was sent again.
    pub resent: u64,
    /// Frames that were aborted and lost.
    pub lost: u64,
    /// Frames of stations that came by the port and were dropped, as that of another port was on
    /// the path.
    pub collisions: u64,
}

/// What one queue of a port held and sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QueueResult {
    /// Which, 0 to 7; 7 is the highest.
    pub queue: u8,
    /// Frames whose transmission was completed or has started.
    pub sent: u64,
    /// Octets of these frames, destination address to FCS.
    pub sent_octets: u64,
    /// Their share of the link, preamble and gap included, in thousandths, rounded to the nearest.
    pub load_per_mille: u64,
    /// Frames refused because the queue or the buffer was full.
    pub dropped: u64,
    /// The most frames that waited at once, without the one that is being sent.
    pub deepest_frames: u32,
    /// The most octets that waited at once.
    pub deepest_octets: u32,
    /// The plan's bound of `deepest_frames`; null without one.
    pub bound_frames: Option<u64>,
    /// The plan's bound of `deepest_octets`; null without one.
    pub bound_octets: Option<u64>,
    /// The longest from being queued to the start of transmission.
    pub wait_max_ns: i64,
    /// Times that a frame was interrupted by an express one.
    pub preempted: u64,
    /// Whether the bound was kept.
    pub verdict: Verdict,
}

impl Results {
    /// Sets what was observed beside what the plan promised.
    ///
    /// # Panics
    /// When `plan` or `observed` are not of `system`.
    pub fn new(
        system: &System,
        plan: &Plan,
        observed: &Observed,
        settings: SimulationSettings,
    ) -> Self {
        let shape = |channels, streams, ports| (channels, streams, ports);
        let expected = shape(system.channels.len(), system.streams.len(), system.ports.len());
        let (seen, planned) = (observed, plan);
        let seen = shape(seen.channels.len(), seen.streams.len(), seen.ports.len());
        let planned = shape(planned.channels.len(), planned.streams.len(), planned.ports.len());
        assert!(seen == expected && planned == expected, "plan or probes are of another system");
        let reach = Reach::of(system, plan);
        let whole = i128::from(settings.duration_ns) * i128::from(settings.repetitions);
        let is_whole = i128::from(observed.duration.as_ns()) >= whole;
        let mut flows: Vec<_> = (described(system, plan).into_iter())
            .map(|flow| Described { is_whole, ..flow })
            .zip(observed.channels.iter().chain(&observed.streams))
            .map(|(flow, seen)| flow_result(&reach, system, &flow, seen))
            .collect();
        let mut ports: Vec<_> = (0..)
            .map(PortId)
            .zip(&observed.ports)
            .map(|(id, seen)| port_result((&reach, system, plan), id, seen, observed.duration))
            .collect();
        let reserved = observed.reservations.as_ref();
        let premise = clocks::premise_broken(system, &observed.clocks)
            .or_else(|| reservations::premise_broken(system, reserved));
        if let Some(why) = premise {
            withhold(&why, &mut flows, &mut ports);
        }
        for (id, flow) in (0..system.channels.len() as u32).map(ChannelId).zip(&mut flows) {
            if let Some(why) = stations::premise_open(system, plan, id) {
                withhold(why, std::slice::from_mut(flow), &mut []);
            }
        }
        let totals = totals(observed, &flows, &ports);
        Self {
            format: FORMAT.to_owned(),
            version: VERSION,
            system: system.name.clone(),
            protected: plan.protected,
            backend: match plan.channels.iter().any(|planned| planned.slot.is_some()) {
                true => Backend::NetworkCode,
                false => Backend::Bridges,
            },
            settings,
            totals,
            flows,
            ports,
            clocks: clocks::results(system, &observed.clocks),
            reservations: reserved.map(|seen| reservations::results(system, seen)),
        }
    }

    /// The results as indented JSON that ends with a line feed.
    pub fn to_json(&self) -> String {
        crate::contract::indented(self)
    }

    /// Every promise that was broken, one line each for a person: bounds of latency and backlog
    /// that were exceeded, deadlines that were missed, and losses of flows with a bound to full
    /// queues. Empty when all were kept.
    pub fn broken(&self) -> impl Iterator<Item = String> {
        let flows = self.flows.iter().filter(|flow| flow.verdict == Verdict::Broken);
        let flows = flows.map(|f| format!("{} {}: {}", f.kind.as_str(), f.name, f.verdict_reason));
        let queues = self.ports.iter().flat_map(|port| {
            let broken = port.queues.iter().filter(|queue| queue.verdict == Verdict::Broken);
            broken.map(|queue| {
                let limit = |bound: Option<u64>| bound.map_or("any".into(), |b| b.to_string());
                format!(
                    "port {}, queue {}: {} frames and {} octets waited, of at most {} and {}",
                    port.port,
                    queue.queue,
                    queue.deepest_frames,
                    queue.deepest_octets,
                    limit(queue.bound_frames),
                    limit(queue.bound_octets),
                )
            })
        });
        flows.chain(queues)
    }
}

impl FlowResult {
    /// Copies that did not arrive, for whatever reason.
    pub fn lost(&self) -> u64 {
        self.policed + self.overflowed + self.faulted + self.aborted
    }
}

impl ListenerResult {
    /// Copies on a way to it that did not arrive, for whatever reason.
    pub fn lost(&self) -> u64 {
        self.policed + self.overflowed + self.faulted + self.aborted
    }
}

/// The JSON Schema of [`Results`]. Ends with a line feed.
pub fn schema() -> String {
    crate::contract::schema_of::<Results>()
}

/// One channel or stream with what the plan says of it.
pub struct Described<'a> {
    name: &'a str,
    kind: FlowKind,
    class: Option<Class>,
    queue: u8,
    pub(super) talker: NodeId,
    pub(super) listeners: &'a [NodeId],
    /// One per listener.
    pub bounds: Vec<Option<&'a Bound>>,
    pub(super) deadline: Option<Span>,
    /// Whether all that was released has had the time to come.
    pub(super) is_whole: bool,
    /// Its place among the channels, or among the streams.
    pub(super) channel: Option<u32>,
    pub(super) stream: Option<u32>,
}

fn is_usual(backend: &Backend) -> bool {
    *backend == Backend::Bridges
}

/// All flows in the order of the results.
pub fn described<'a>(system: &'a System, plan: &'a Plan) -> Vec<Described<'a>> {
    let channels = (0..).zip(system.channels.iter().zip(&plan.channels));
    let channels = channels.map(|(number, (channel, planned))| Described {
        name: &channel.name,
        kind: FlowKind::Channel,
        class: planned.is_reserved().then_some(channel.class),
        queue: planned.queue(channel.class) as u8,
        talker: channel.talker,
        listeners: &channel.listeners,
        bounds: (0..channel.listeners.len()).map(|at| planned.bounds.get(at)).collect(),
        deadline: None,
        is_whole: true,
        channel: Some(number),
        stream: None,
    });
    let streams = (0..).zip(system.streams.iter().zip(&plan.streams));
    let streams = streams.map(|(number, (stream, planned))| Described {
        name: &stream.name,
        kind: FlowKind::Stream,
        class: None,
        queue: stream.traffic_class,
        talker: stream.talker,
        listeners: &stream.listeners,
        bounds: (0..stream.listeners.len())
            .map(|at| planned.bounds.get(at).and_then(Option::as_ref))
            .collect(),
        deadline: stream.deadline,
        is_whole: true,
        channel: None,
        stream: Some(number),
    });
    channels.chain(streams).collect()
}

/// Takes back what was judged, as something was not as the plan counts with.
fn withhold(why: &str, flows: &mut [FlowResult], ports: &mut [PortResult]) {
    for flow in flows {
        clocks::withhold(Some(why), &mut flow.verdict, &mut flow.verdict_reason);
        for listener in &mut flow.listeners {
            clocks::withhold(Some(why), &mut listener.verdict, &mut String::new());
        }
    }
    for queue in ports.iter_mut().flat_map(|port| &mut port.queues) {
        clocks::withhold(Some(why), &mut queue.verdict, &mut String::new());
    }
}

fn flow_result(
    reach: &Reach<'_>,
    system: &System,
    flow: &Described<'_>,
    seen: &FlowObserved,
) -> FlowResult {
    let verdicts = evaluate::listeners(reach, system, flow, seen);
    let evaluation = evaluate::flow(reach, system, flow, seen, &verdicts);
    let listeners = (flow.listeners.iter().zip(&flow.bounds)).zip(&seen.listeners).zip(verdicts);
    FlowResult {
        name: flow.name.to_owned(),
        kind: flow.kind,
        class: flow.class,
        queue: flow.queue,
        talker: system.node(flow.talker).name.clone(),
        released: seen.released,
        policed: seen.policed,
        overflowed: seen.overflowed,
        faulted: seen.faulted,
        aborted: seen.aborted,
        duplicates: seen.duplicates,
        rogue: seen.rogue,
        deadline_ns: flow.deadline.map(Span::as_ns),
        verdict: evaluation.verdict,
        verdict_reason: evaluation.reason,
        listeners: listeners
            .map(|(((host, bound), seen), verdict)| {
                listener_result(&system.node(*host).name, *bound, seen, verdict)
            })
            .collect(),
    }
}

fn listener_result(
    host: &str,
    bound: Option<&Bound>,
    seen: &LatencyObserved,
    verdict: Verdict,
) -> ListenerResult {
    let latency = seen.min.zip(seen.max).map(|(min, max)| Latency {
        min: min.as_ns(),
        mean: mean(seen),
        max: max.as_ns(),
        max_released: seen.max_released.as_ns(),
    });
    let worst = bound.map(|b| b.total().as_ns());
    let ratio = worst.zip(latency).filter(|(_, latency)| latency.max > 0);
    ListenerResult {
        host: host.to_owned(),
        frames: seen.frames,
        reordered: seen.reordered,
        policed: seen.lost.policed,
        overflowed: seen.lost.overflowed,
        faulted: seen.lost.faulted,
        aborted: seen.lost.aborted,
        latency_ns: latency,
        bound_ns: worst,
        best_ns: bound.map(|b| b.best.as_ns()),
        jitter_bound_ns: bound.map(|b| (b.total() - b.best).as_ns()),
        bound_by_max_per_mille: ratio.map(|(bound, latency)| {
            u64::try_from(i128::from(bound) * 1000 / i128::from(latency.max)).unwrap_or(0)
        }),
        dominating: bound.and_then(dominating),
        verdict,
    }
}

/// The largest term; of equal ones the first that a frame meets.
fn dominating(bound: &Bound) -> Option<Term> {
    let term = bound.dominating()?;
    Some(Term { what: term.what.clone(), span_ns: term.span.as_ns() })
}

fn mean(seen: &LatencyObserved) -> i64 {
    let count = i128::from(seen.frames.max(1));
    i64::try_from((seen.sum_ns + count / 2).div_euclid(count)).unwrap_or(i64::MAX)
}

fn port_result(
    (reach, system, plan): (&Reach<'_>, &System, &Plan),
    id: PortId,
    seen: &PortObserved,
    duration: Span,
) -> PortResult {
    let port = system.port(id);
    let rate = system.link_of(id).rate.as_bps();
    let bounds = plan.backlogs.get(id.index()).copied().unwrap_or_default();
    let queues = (0..).zip(seen.queues.iter().zip(bounds)).map(|(queue, (seen, bound))| {
        let on_wire = u128::from(seen.sent_octets)
            + u128::from(seen.sent) * u128::from((frame::PREAMBLE + frame::GAP).get());
        QueueResult {
            queue,
            sent: seen.sent,
            sent_octets: seen.sent_octets,
            load_per_mille: per_mille(on_wire * 8 * 1_000_000_000, rate, duration),
            dropped: seen.dropped,
            deepest_frames: seen.deepest_frames,
            deepest_octets: seen.deepest_octets,
            bound_frames: bound.map(|b: Backlog| b.frames),
            bound_octets: bound.map(|b| b.octets),
            wait_max_ns: seen.wait_max.as_ns(),
            preempted: seen.preempted,
            verdict: evaluate::queue(seen, bound, reach.port(id)),
        }
    });
    let used = |q: &QueueResult| {
        let may_wait = q.bound_frames.is_some_and(|frames| frames > 0);
        q.sent > 0 || q.dropped > 0 || q.deepest_frames > 0 || may_wait
    };
    PortResult {
        port: system.port_label(id),
        to: system.node(system.port(port.peer).node).name.clone(),
        rate_bps: rate,
        busy_ns: seen.busy.as_ns(),
        busy_per_mille: per_mille(seen.busy.as_ns().max(0) as u128, 1, duration),
        queues: queues.filter(used).collect(),
        dedicated: seen.dedicated.map(|seen| DedicatedResult {
            sent: seen.sent,
            aborts: seen.aborts,
            resent: seen.resent,
            lost: seen.lost,
            collisions: seen.collisions,
        }),
    }
}

/// What share `part` is of `rate` times `duration`.
fn per_mille(part: u128, rate: u64, duration: Span) -> u64 {
    let whole = u128::from(rate) * duration.as_ns().max(1) as u128;
    u64::try_from((part * 1000 + whole / 2) / whole.max(1)).unwrap_or(u64::MAX)
}

fn totals(observed: &Observed, flows: &[FlowResult], ports: &[PortResult]) -> Totals {
    let queues = || ports.iter().flat_map(|port| &port.queues);
    let count = |verdict| {
        let flows = flows.iter().filter(|flow| flow.verdict == verdict).count();
        (flows + queues().filter(|queue| queue.verdict == verdict).count()) as u64
    };
    Totals {
        simulated_ns: observed.duration.as_ns(),
        events: observed.events,
        released: flows.iter().map(|flow| flow.released).sum(),
        received: flows.iter().flat_map(|flow| &flow.listeners).map(|l| l.frames).sum(),
        sent: queues().map(|queue| queue.sent).sum(),
        kept: count(Verdict::Kept),
        broken: count(Verdict::Broken),
    }
}
