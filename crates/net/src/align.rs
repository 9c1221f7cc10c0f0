//! Phases such that one chosen frame meets as many others as it can ([`crate::Phases::Aligned`]).

use crate::random::Stream;
use onbeat_model::plan::Plan;
use onbeat_model::stream::Source;
use onbeat_model::system::{
    BEST_EFFORT_QUEUE, ChannelId, NodeId, NodeKind, NoiseId, PortId, System,
};
use onbeat_model::time::{NetTime, Span, SyncedTime};
use onbeat_model::units::{Octets, frame};
use std::collections::HashMap;

/// The most frames that a source with jitter is written out for.
const MOST_FRAMES: i64 = 1 << 22;

/// Just before.
const INSTANT: Span = Span::from_ns(1);

/// A channel, stream or noise source as it meets others.
struct Flow {
    queue: usize,
    talker: NodeId,
    /// The longest frame.
    octets: Octets,
    /// Frames that it releases at once at first.
    burst: i64,
    /// Per listener, one way.
    ways: Vec<Vec<PortId>>,
    /// Per port on any way: the port before it, and the least time from release to its queue.
    meets: HashMap<PortId, (Option<PortId>, Span)>,
}

/// A frame of another flow on the way of the one that is followed.
#[derive(Clone, Copy)]
struct Other {
    at: NetTime,
    flow: usize,
}

/// Sets the phases for one repetition; sources that do not matter keep theirs.
pub(crate) fn align(
    system: &mut System,
    plan: &Plan,
    repetition: usize,
    duration: Span,
    random: &mut Stream,
) {
    to_extremes(system, duration);
    let flows = flows(system, plan);
    let mut at_port = vec![Vec::new(); system.ports.len()];
    for (at, flow) in flows.iter().enumerate() {
        for port in flow.meets.keys() {
            at_port[port.index()].push(at);
        }
    }
    let targets = targets(system, &flows, &at_port);
    let Some(target) = targets.get(repetition % targets.len().max(1)) else { return };
    let shuffle = repetition >= targets.len();
    let search = Search { system, flows: &flows, at_port: &at_port };
    let starts = search.follow(*target, shuffle.then_some(random));
    let first = starts.iter().flatten().copied().min().unwrap_or(NetTime::ZERO);
    let (channels, streams) = (system.channels.len(), system.streams.len());
    for (at, start) in starts.into_iter().enumerate() {
        let Some(start) = start else { continue };
        let start = NetTime::ZERO + (start - first);
        let reading = system.node(flows[at].talker).clock.read(start) - SyncedTime::ZERO;
        match at {
            _ if at < channels => system.channels[at].phase = reading,
            _ if at < channels + streams => {
                let stream = &mut system.streams[at - channels];
                let before = match &stream.source {
                    Source::Trace(frames) => frames.first().map_or(Span::ZERO, |f| f.0),
                    _ => Span::ZERO,
                };
                stream.phase = reading - before;
            }
            _ => system.noise[at - channels - streams].start = start,
        }
    }
}

/// Makes all frames as long, all intervals as short, and the first frame as late as they may be.
fn to_extremes(system: &mut System, duration: Span) {
    for stream in &mut system.streams {
        stream.frame[0] = stream.frame[1];
        match stream.source {
            Source::Sporadic { interval, .. } if interval > Span::ZERO => {
                stream.source = Source::Periodic { interval, jitter: Span::ZERO };
            }
            Source::Periodic { interval, jitter } if jitter > Span::ZERO => {
                let count = duration.as_ns() / interval.as_ns() + 2;
                let at = |n: i64| (interval * n - jitter).max(Span::ZERO);
                let frames = (0..count.min(MOST_FRAMES)).map(|n| (at(n), stream.frame[1]));
                stream.source = Source::Trace(frames.collect());
            }
            _ => {}
        }
    }
}

/// How many frames a source releases at its first instant.
fn burst(source: &Source) -> i64 {
    match source {
        Source::Bursty { frames, .. } => i64::from(*frames),
        Source::Trace(frames) => {
            let first = frames.first().map(|f| f.0);
            frames.iter().take_while(|f| Some(f.0) == first).count() as i64
        }
        _ => 1,
    }
}

/// Channels, then streams, then noise.
fn flows(system: &System, plan: &Plan) -> Vec<Flow> {
    let mut flows = Vec::new();
    for (at, channel) in system.channels.iter().enumerate() {
        let planned = plan.channel(ChannelId(at as u32));
        let queue = planned.queue(channel.class);
        let octets = channel.frame();
        let ways: Vec<&[PortId]> = planned.paths.iter().map(|path| &path[..]).collect();
        let burst = channel.frames().into();
        flows.push(Flow::new(system, queue, channel.talker, octets, burst, &ways));
    }
    for (stream, planned) in system.streams.iter().zip(&plan.streams) {
        let ways: Vec<&[PortId]> = planned.paths.iter().flatten().map(|way| &way[..]).collect();
        let (queue, octets) = (usize::from(stream.traffic_class), stream.frame[1]);
        let burst = burst(&stream.source);
        flows.push(Flow::new(system, queue, stream.talker, octets, burst, &ways));
    }
    for (at, noise) in system.noise.iter().enumerate() {
        let ways = [plan.noise(NoiseId(at as u32))];
        let octets = frame::of_udp(noise.payload);
        flows.push(Flow::new(system, BEST_EFFORT_QUEUE, noise.from, octets, 1, &ways));
    }
    flows
}

impl Flow {
    fn new(
        system: &System,
        queue: usize,
        talker: NodeId,
        octets: Octets,
        burst: i64,
        ways: &[&[PortId]],
    ) -> Self {
        let stack = match &system.node(talker).kind {
            NodeKind::Host(host) => host.stack_tx.min(),
            NodeKind::Bridge(_) => Span::ZERO,
        };
        let mut meets = HashMap::new();
        for way in ways {
            let (mut before, mut lead) = (None, stack);
            for port in *way {
                meets.entry(*port).or_insert((before, lead));
                lead += crossing(system, *port, octets);
                before = Some(*port);
            }
        }
        let ways = ways.iter().map(|way| way.to_vec()).collect();
        Self { queue, talker, octets, burst, ways, meets }
    }
}

/// From the start of a transmission to the frame being queued at the bridge, or being at the host,
/// at the other end.
fn crossing(system: &System, port: PortId, octets: Octets) -> Span {
    let link = system.link_of(port);
    let forwarding = match &system.node(system.port(system.port(port).peer).node).kind {
        NodeKind::Host(_) => Span::ZERO,
        NodeKind::Bridge(bridge) => bridge.forwarding,
    };
    link.rate.time_for(frame::PREAMBLE + octets) + link.propagation + forwarding
}

/// The flow and way of each listener that is to be followed, those that meet most first.
fn targets(system: &System, flows: &[Flow], at_port: &[Vec<usize>]) -> Vec<(usize, usize)> {
    let mut targets = Vec::new();
    for (at, flow) in flows[..system.channels.len() + system.streams.len()].iter().enumerate() {
        for (way, ports) in flow.ways.iter().enumerate() {
            let met: usize = ports.iter().map(|port| at_port[port.index()].len()).sum();
            targets.push((std::cmp::Reverse(met), at, way));
        }
    }
    targets.sort_unstable();
    targets.into_iter().map(|(_, at, way)| (at, way)).collect()
}

/// One frame's way through the network.
struct Search<'a> {
    system: &'a System,
    flows: &'a [Flow],
    /// Per port the flows over it.
    at_port: &'a [Vec<usize>],
}

impl Search<'_> {
    /// When each flow is to release its first frame, if it matters; the followed one's is at the
    /// epoch, others' may be before.
    fn follow(
        &self,
        (flow, way): (usize, usize),
        mut random: Option<&mut Stream>,
    ) -> Vec<Option<NetTime>> {
        let followed = &self.flows[flow];
        let mut starts = vec![None; self.flows.len()];
        starts[flow] = Some(NetTime::ZERO);
        let way = &followed.ways[way];
        let mut at = NetTime::ZERO + followed.meets[&way[0]].1;
        let own = Other { at, flow };
        // Its last frame is followed.
        let mut others = vec![own; followed.burst as usize - 1];
        for (step, port) in way.iter().enumerate() {
            let joining = self.joining(*port, followed.queue, &starts);
            let mut placed = self.place(*port, at, joining, random.as_deref_mut());
            for other in &placed {
                let lead = self.flows[other.flow].meets[port].1;
                let start = starts[other.flow].get_or_insert(other.at - lead);
                *start = (*start).min(other.at - lead);
            }
            others.append(&mut placed);
            others.sort_by_key(|other| other.at);
            let first = others.first().map_or(at, |other| other.at.min(at));
            let mut free = first;
            if let Some(blocker) = self.blocker(*port, followed.queue, &starts) {
                let lead = self.flows[blocker].meets[port].1;
                starts[blocker] = Some(first - INSTANT - lead);
                free = first - INSTANT + self.wire(*port, blocker);
            }
            let next = way.get(step + 1);
            let mut going_on = Vec::new();
            for other in others {
                let start = free.max(other.at);
                free = start + self.wire(*port, other.flow);
                let across = crossing(self.system, *port, self.flows[other.flow].octets);
                // It stays with the followed frame only if it comes to the next port from here.
                let meets = next.and_then(|next| self.flows[other.flow].meets.get(next));
                if meets.is_some_and(|(before, _)| *before == Some(*port)) {
                    going_on.push(Other { at: start + across, ..other });
                }
            }
            at = free.max(at) + crossing(self.system, *port, followed.octets);
            others = going_on;
        }
        starts
    }

    /// Flows of the same or a higher queue that come to `port` and have no start yet.
    fn joining(&self, port: PortId, queue: usize, starts: &[Option<NetTime>]) -> Vec<usize> {
        let mut joining = self.at_port[port.index()].clone();
        joining.retain(|at| starts[*at].is_none() && self.flows[*at].queue >= queue);
        joining
    }

    /// The longest frame of a lower queue that has no start yet.
    fn blocker(&self, port: PortId, queue: usize, starts: &[Option<NetTime>]) -> Option<usize> {
        let lower = self.at_port[port.index()].iter().copied();
        lower
            .filter(|at| starts[*at].is_none() && self.flows[*at].queue < queue)
            .max_by_key(|at| (self.flows[*at].octets, std::cmp::Reverse(*at)))
    }

    /// The frames of joining flows, such that the last from each link comes just before `at`.
    fn place(
        &self,
        port: PortId,
        at: NetTime,
        mut joining: Vec<usize>,
        random: Option<&mut Stream>,
    ) -> Vec<Other> {
        if let Some(random) = random {
            for last in (1..joining.len()).rev() {
                joining.swap(last, random.below(last as u64 + 1) as usize);
            }
        }
        // Per link that leads here: when the frame that was placed last begins to arrive.
        let mut taken: HashMap<PortId, NetTime> = HashMap::new();
        let mut placed = Vec::new();
        for flow in joining {
            let Some(before) = self.flows[flow].meets[&port].0 else {
                let other = Other { at: at - INSTANT, flow };
                placed.extend(std::iter::repeat_n(other, self.flows[flow].burst as usize));
                continue;
            };
            let gap = self.wire(before, flow);
            let last = taken.entry(before).or_insert(at - INSTANT);
            for _ in 0..self.flows[flow].burst {
                placed.push(Other { at: *last, flow });
                *last = *last - gap;
            }
        }
        placed
    }

    /// How long a frame of a flow occupies a port.
    fn wire(&self, port: PortId, flow: usize) -> Span {
        let octets = frame::on_wire(self.flows[flow].octets);
        self.system.link_of(port).rate.time_for(octets)
    }
}
