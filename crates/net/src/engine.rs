//! The engine itself: what each event does.

mod dedicated;
mod protocols;
mod reservation;

use self::protocols::LocalTimer;
use crate::buffer::Buffer;
use crate::clocks::Clocks;
use crate::delay_line::DelayLine;
use crate::event::{Event, EventHeap, Kind, MAX_INDEX};
use crate::fault::Faults;
use crate::filter::Filter;
use crate::frame::Frame;
use crate::launch::LaunchTimes;
use crate::learning::{ActiveTopology, Learning};
use crate::load::Load;
use crate::noise::NoiseSource;
use crate::participant::{Protocols, TOKEN};
use crate::payload::{PayloadId, Payloads};
use crate::port::{Choice, EgressPort, PortCounters};
use crate::probe::Probes;
use crate::random::{Purpose, RandomDelay, Stream};
use crate::recovery::{Recovered, Recovery};
use crate::reservations::Reservations;
use crate::route::{self, NextHop, Routes};
use crate::source::{FrameSource, Release};
use crate::tap::{FlowRef, Tap, Transmission};
use onbeat_model::observed::{Loss, Observed, PortObserved};
use onbeat_model::plan::Plan;
use onbeat_model::port::Selection;
use onbeat_model::record::LoadSample;
use onbeat_model::system::{ChannelId, Class, Delay, Node, NodeId, NodeKind, PortId, System};
use onbeat_model::time::{NetTime, Span};
use onbeat_model::units::frame;
use std::collections::{BTreeMap, HashMap};

/// What a run chooses beside system and plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Where all randomness comes from.
    pub seed: u64,
    /// Whether stack and wake-up delays are drawn from the description; false when the real
    /// machine's own delays take their place.
    pub host_delays: bool,
    /// The width of a load sample.
    pub load_bin: Span,
    /// Noise sources send nothing from here on.
    pub noise_until: NetTime,
    /// Streams and modelled channels release nothing from here on.
    pub traffic_until: NetTime,
    /// Whether the engine itself plays the talker and the listeners of every channel: a message
    /// each interval from the channel's phase on, by the talker's clock. Nothing is then sent by
    /// [`Engine::send`], and nothing is [`Output::Delivered`].
    pub model_channels: bool,
}

/// What the engine has for its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// A frame has left the stack of a listener's host.
    Delivered {
        /// Which channel it is of.
        channel: ChannelId,
        /// Which of the channel's listeners has it.
        listener: usize,
        /// When its last octet was at the host's port.
        arrived: NetTime,
    },
    /// A wake or an alarm is due.
    Woke {
        /// What was given for it.
        token: u64,
    },
    /// More frames wait than an engine keeps; it can go no further. Every later call says it again.
    Overfull(Overfull),
}

/// More than [`FRAMES_MAX`] frames, or [`OCTETS_MAX`] octets of their data, wait in a network: its
/// sources send more than it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overfull {
    /// When that was noticed.
    pub at: NetTime,
    /// How many frames wait then, anywhere.
    pub frames: usize,
    /// The node where most of them wait.
    pub node: NodeId,
    /// How many wait there.
    pub frames_there: usize,
}

impl Overfull {
    /// What a user is told, with the name of the node.
    pub fn explain(&self, system: &System) -> String {
        let Self { at, frames, node, frames_there } = self;
        let after = *at - NetTime::ZERO;
        let name = &system.node(*node).name;
        format!(
            "after {after}, {frames} frames wait in the network, {frames_there} of them at \
             `{name}`: more than an engine keeps ({FRAMES_MAX} frames, {} MiB of their data). Send \
             less there: fewer frames in a burst, or longer intervals",
            OCTETS_MAX >> 20,
        )
    }
}

/// How many frames may wait in a network, about 250 MB of them.
pub const FRAMES_MAX: usize = 1 << 22;

/// How many octets those may have that a program reads.
pub const OCTETS_MAX: usize = 1 << 29;

/// How many events happen between two counts of what waits: each adds a frame or a few.
const COUNT_EVERY: u64 = 1 << 16;

/// A network in virtual time. The caller says how far to go; the engine stops at whatever concerns
/// a program. *Real-time*: no call blocks; [`Engine::advance`] takes as long as there are events.
#[derive(Debug)]
pub struct Engine {
    now: NetTime,
    events: EventHeap,
    processed: u64,
    routes: Routes,
    ports: Vec<EgressPort>,
    /// One per node.
    buffers: Vec<Buffer>,
    /// One per node.
    delays: Vec<HostDelays>,
    /// How many flows are channels; streams and noise follow them.
    channels: usize,
    /// One per channel and stream: the frames in its talker's stack.
    talkers: Vec<DelayLine<Frame>>,
    /// One per receiving end: the frames in its host's stack that somebody reads, and when each
    /// arrived.
    listeners: Vec<DelayLine<(Frame, NetTime)>>,
    /// The sources of streams and modelled channels, each with the frame that is due next.
    sources: Vec<(FrameSource, Release)>,
    noise: Vec<NoiseSource>,
    /// One per flow: the number of its next frame.
    sequences: Vec<u32>,
    /// One per flow that is policed anywhere, else none at all.
    filters: Vec<Option<Filter>>,
    /// One per place where ways meet.
    recoveries: Vec<Recovery>,
    faults: Option<Faults>,
    learning: Option<Learning>,
    probes: Probes,
    tap: Tap,
    load: Load,
    payloads: Payloads,
    delivered: Vec<u8>,
    overfull: Option<Overfull>,
    clocks: Clocks,
    protocols: Option<Box<Protocols>>,
    /// Per channel: the participant that carries it, if one does.
    carriers: Vec<Option<u32>>,
    /// See [`Options::model_channels`].
    model_channels: bool,
    /// By token: what goes off by a clock that a protocol steers.
    local_timers: BTreeMap<u64, LocalTimer>,
    /// Per source: when it is looked at next; none at all without protocols.
    source_looks: Vec<NetTime>,
    /// The flows with a filter, and the node by whose clock it goes; none without protocols.
    metering: Vec<(usize, NodeId)>,
    /// Those that a protocol makes.
    reservations: Option<Box<Reservations>>,
    /// Per channel: when its frames leave the talker's stack, if it is scheduled.
    launches: Vec<Option<LaunchTimes>>,
}

/// The delays of one host; none at a bridge.
#[derive(Debug)]
struct HostDelays {
    stack_tx: RandomDelay,
    stack_rx: RandomDelay,
    wakeup: RandomDelay,
}

impl HostDelays {
    fn new(node: &Node, index: usize, options: &Options) -> Self {
        let zero = [&Delay::Zero; 3];
        let [stack_tx, stack_rx, wakeup] = match &node.kind {
            NodeKind::Host(host) if options.host_delays => {
                [&host.stack_tx, &host.stack_rx, &host.wakeup]
            }
            _ => zero,
        };
        let draw =
            |delay, purpose| RandomDelay::new(delay, Stream::new(options.seed, purpose, index));
        Self {
            stack_tx: draw(stack_tx, Purpose::StackTx),
            stack_rx: draw(stack_rx, Purpose::StackRx),
            wakeup: draw(wakeup, Purpose::Wakeup),
        }
    }
}

impl Engine {
    /// The network at time zero, with noise and streams about to start. Copies what it needs.
    ///
    /// # Panics
    /// When the plan does not fit the system: paths that are no walks, leave their VLAN or are no
    /// tree, or a class A or B channel over a port where nothing is reserved for its class.
    pub fn new(system: &System, plan: &Plan, options: Options) -> Self {
        assert!(system.ports.len().max(system.channels.len()) < MAX_INDEX);
        assert!(system.nodes.len().max(system.noise.len()) < MAX_INDEX);
        assert!(system.channels.len() + system.streams.len() < MAX_INDEX);
        assert_eq!(plan.ports.len(), system.ports.len());
        let topology = ActiveTopology::of(system);
        let mut routes = Routes::new(system, plan, topology.as_ref());
        let ports = ports(system, plan, &mut routes);
        let frames = system.channels.len() + system.streams.len();
        let mut engine = Self {
            now: NetTime::ZERO,
            events: EventHeap::default(),
            processed: 0,
            ports,
            buffers: system.nodes.iter().map(Buffer::new).collect(),
            delays: (system.nodes.iter().enumerate())
                .map(|(at, node)| HostDelays::new(node, at, &options))
                .collect(),
            channels: system.channels.len(),
            talkers: (0..frames).map(|_| DelayLine::new()).collect(),
            listeners: routes.receivers.iter().map(|_| DelayLine::new()).collect(),
            sources: Vec::new(),
            noise: Vec::with_capacity(system.noise.len()),
            sequences: vec![0; routes.flows.len()],
            filters: filters(system),
            recoveries: routes.histories.iter().map(|history| Recovery::new(*history)).collect(),
            faults: Faults::of(system, options.seed),
            learning: topology.map(|topology| Learning::new(system, &topology)),
            probes: Probes::new(&routes),
            tap: Tap::new(system.channels.len(), system.streams.len(), system.noise.len()),
            load: Load::new(&options, system.noise.len()),
            payloads: Payloads::default(),
            delivered: Vec::new(),
            overfull: None,
            clocks: Clocks::new(system),
            protocols: None,
            carriers: vec![None; system.channels.len()],
            model_channels: options.model_channels,
            local_timers: BTreeMap::new(),
            source_looks: Vec::new(),
            metering: Vec::new(),
            reservations: None,
            launches: LaunchTimes::of_channels(system, plan),
            routes,
        };
        engine.begin(system, plan, options);
        engine
    }

    /// Schedules the first event of each source, and every failure of a node.
    fn begin(&mut self, system: &System, plan: &Plan, options: Options) {
        let end = options.traffic_until;
        let channels = system.channels.len();
        if options.model_channels {
            for (at, channel) in system.channels.iter().enumerate() {
                let phase = plan.phase(system, ChannelId(at as u32));
                self.add_source(FrameSource::of_channel(system, channel, phase, at as u32, end));
            }
        }
        for at in 0..system.streams.len() {
            let flow = (channels + at) as u32;
            self.add_source(FrameSource::of_stream(system, at, flow, options.seed, end));
        }
        for (at, noise) in system.noise.iter().enumerate() {
            let source = NoiseSource::new(noise, at, options.seed, options.noise_until);
            if let Some(first) = source.times.first() {
                self.events.push(first, Kind::Noise, at as u32);
            }
            self.noise.push(source);
        }
        for (node, at) in self.faults.iter().flat_map(Faults::node_failures) {
            self.events.push(at, Kind::Fail, node);
        }
    }

    fn add_source(&mut self, mut source: FrameSource) {
        if let Some(first) = source.next() {
            self.events.push(first.at, Kind::Source, self.sources.len() as u32);
            self.sources.push((source, first));
        }
    }

    /// Up to when everything has happened, except what is still to come at this very instant.
    pub fn now(&self) -> NetTime {
        self.now
    }

    /// The time of the earliest pending event.
    pub fn next_event(&self) -> Option<NetTime> {
        self.events.next()
    }

    /// How many events were processed.
    pub fn events(&self) -> u64 {
        self.processed
    }

    /// What a port sent, refused and held.
    pub fn port_counters(&self, port: PortId) -> PortCounters {
        self.ports[port.index()].counters()
    }

    /// What became of the frames of every channel and stream, and what every port counted, up to
    /// now. Frames without a reader count as received as soon as their last transmission starts,
    /// at the time at which they will be.
    pub fn observed(&self) -> Observed {
        let channels = self.channels;
        let mut flows = self.probes.observed(&self.routes);
        flows.truncate(self.talkers.len());
        self.count_carried(&mut flows);
        let streams = flows.split_off(channels);
        Observed {
            duration: self.now - NetTime::ZERO,
            repetitions: 1,
            channels: flows,
            streams,
            ports: self.ports.iter().map(EgressPort::observed).collect(),
            clocks: self.clocks_observed(),
            reservations: self.reservations_observed(),
            events: self.processed,
        }
    }

    /// What a port sent, and what its queues refused and held.
    pub fn port_observed(&self, port: PortId) -> PortObserved {
        self.ports[port.index()].observed()
    }

    /// From now on keeps every transmission that starts at one of these ports.
    pub fn tap(&mut self, ports: &[PortId]) {
        self.tap.add(self.ports.len(), ports);
    }

    /// From now on best effort that the description does not know is at its worst at each port
    /// where anything is reserved: whatever could start there on an idle wire finds its longest
    /// frame, which started a nanosecond before. That is what bounds count. It counts as sent, as
    /// best effort does, and is in no [`Engine::load`].
    pub fn meet_best_effort(&mut self) {
        self.ports.iter_mut().for_each(EgressPort::meet_best_effort);
    }

    /// The transmissions that started since the last call, in order of time, then port.
    pub fn take_transmissions(&mut self) -> Vec<Transmission> {
        self.tap.take()
    }

    /// How many channel frames are anywhere between [`Engine::send`] and their last delivery or
    /// drop; the copies of a multicast count as one.
    pub fn frames_under_way(&self) -> usize {
        self.payloads.live()
    }

    /// The load of each noise source in each interval that began before now, in order of time,
    /// then source: what it offered to its host's port, and what reached its destination. After
    /// [`Options::noise_until`] there are samples only as far as something was delivered.
    pub fn load(&self) -> &[LoadSample] {
        self.load.until(self.now)
    }

    /// A talker hands a whole frame (destination address to end of payload, tagged, without FCS)
    /// to its host's stack now. Frames below the minimum count as padded. Returns when it will be
    /// queued at the port. A participant that carries the channel has it at once.
    ///
    /// # Panics
    /// When the frame is longer than [`frame::MAX_TAGGED`].
    pub fn send(&mut self, channel: ChannelId, octets: &[u8]) -> NetTime {
        let size = (octets.len() as u32 + frame::FCS.get()).max(frame::MIN_TAGGED.get());
        assert!(size <= frame::MAX_TAGGED.get(), "a frame of {size} octets");
        if let Some(carrier) = self.carriers[channel.index()] {
            self.hand_over(carrier, channel, octets);
            return self.now;
        }
        let payload = self.payloads.hold(octets);
        let frame = self.release(channel.0, size as u16, payload);
        let queued = self.stack_time(channel.0);
        self.enter_stack(channel.0, frame, queued)
    }

    /// The next frame of a flow.
    fn release(&mut self, flow: u32, octets: u16, payload: PayloadId) -> Frame {
        let next = &mut self.sequences[flow as usize];
        let sequence = *next;
        *next = next.wrapping_add(1);
        self.probes.flows[flow as usize].released += 1;
        let hop = self.routes.flows[flow as usize].root;
        Frame { released: self.now, hop, payload, sequence, octets }
    }

    /// When a frame that its talker releases now will leave the stack, unless another is before it.
    fn stack_time(&mut self, flow: u32) -> NetTime {
        let talker = self.routes.flows[flow as usize].talker;
        self.now + self.delays[talker.index()].stack_tx.draw()
    }

    fn enter_stack(&mut self, flow: u32, frame: Frame, at: NetTime) -> NetTime {
        let talker = self.routes.flows[flow as usize].talker;
        let at = match self.launches.get_mut(flow as usize) {
            Some(Some(launches)) => launches.next(&self.clocks.get(talker), at),
            _ => at,
        };
        let stack = &mut self.talkers[flow as usize];
        let at = stack.leaves(at);
        if self.faults.as_ref().is_some_and(|f| f.holder_fails(talker, self.now, at)) {
            self.lose_unsent(frame, Loss::Faulted);
            return at;
        }
        let (queued, head) = stack.push(at, frame);
        if head {
            self.events.push(queued, Kind::Stack, flow);
        }
        queued
    }

    /// A frame is lost before its transmission starts.
    fn lose_unsent(&mut self, frame: Frame, loss: Loss) {
        self.probes.lose_unsent(&self.routes, frame.hop, loss);
        self.payloads.release(frame.payload);
    }

    /// A fault costs a frame on its way.
    fn swallow(&mut self, frame: Frame) {
        self.probes.lose(&self.routes, frame.hop, Loss::Faulted);
        self.payloads.release(frame.payload);
    }

    /// A program on `node` sleeps until the true time `at`, or now if that is past. It continues,
    /// with its token, after the node's wake-up delay.
    pub fn wake_at(&mut self, node: NodeId, at: NetTime, token: u64) {
        let at = at.max(self.now) + self.delays[node.index()].wakeup.draw();
        self.events.push_timer(at, Kind::Wake, node.0, token);
    }

    /// Gives the token back at `at`, or now if that is past, without any delay.
    pub fn alarm(&mut self, at: NetTime, token: u64) {
        self.events.push_timer(at.max(self.now), Kind::Alarm, 0, token);
    }

    /// Forgets the pending wakes and alarms of a token; none pending is fine. Takes time in
    /// proportion to the number of pending events: a few per port and program.
    pub fn cancel(&mut self, token: u64) {
        self.events.cancel(token);
        self.local_timers.remove(&token);
    }

    /// The octets of the frame that the last [`Output::Delivered`] named, as they were sent; until
    /// the next call of [`Engine::advance`].
    pub fn delivered_frame(&self) -> &[u8] {
        &self.delivered
    }

    /// Lets everything happen up to and with `limit`, but stops at the first output, with the time
    /// at that output. `None`: nothing up to `limit` is left and the time is `limit`.
    ///
    /// # Panics
    /// When `limit` is past.
    pub fn advance(&mut self, limit: NetTime) -> Option<Output> {
        assert!(limit >= self.now, "time does not run backwards");
        if let Some(overfull) = self.overfull {
            return Some(Output::Overfull(overfull));
        }
        while let Some(event) = self.events.pop_until(limit) {
            debug_assert!(event.at() >= self.now);
            self.now = event.at();
            self.processed += 1;
            let mut output = self.happen(event);
            if self.processed.is_multiple_of(COUNT_EVERY) {
                self.overfull = self.count();
                output = self.overfull.map(Output::Overfull).or(output);
            }
            if output.is_some() {
                self.load.cover(self.now);
                return output;
            }
        }
        self.now = limit;
        self.load.cover(limit);
        None
    }

    /// Counts what waits in stacks, at ports and on links, and whether it is too much.
    fn count(&self) -> Option<Overfull> {
        let mut waiting = vec![0; self.buffers.len()];
        for (stack, flow) in self.talkers.iter().zip(&self.routes.flows) {
            waiting[flow.talker.index()] += stack.len();
        }
        for (stack, end) in self.listeners.iter().zip(&self.routes.receivers) {
            waiting[end.host.index()] += stack.len();
        }
        for port in &self.ports {
            waiting[port.node.index()] += port.waiting();
        }
        let frames = waiting.iter().sum();
        let most = (0..waiting.len()).max_by_key(|node| waiting[*node])?;
        let full = frames > FRAMES_MAX || self.payloads.octets() > OCTETS_MAX;
        let (node, frames_there) = (NodeId(most as u32), waiting[most]);
        full.then_some(Overfull { at: self.now, frames, node, frames_there })
    }

    fn happen(&mut self, event: Event) -> Option<Output> {
        let index = event.index();
        match event.kind() {
            Kind::Deliver => return Some(self.deliver(index)),
            Kind::Wake | Kind::Alarm => {
                let token = self.events.take_token(event);
                return self.go_off(token);
            }
            Kind::Stack => {
                let (frame, next) = self.talkers[index as usize].pop();
                if let Some(at) = next {
                    self.events.push(at, Kind::Stack, index);
                }
                self.queue(frame);
            }
            Kind::Source => self.release_next(index),
            Kind::Noise => self.make_noise(index),
            Kind::Fail => self.fail(index),
            Kind::Header => self.hear_header(index),
            Kind::Hear => self.hear(index),
            Kind::Sent => self.has_left(index),
            Kind::Timer => self.timer(index),
            Kind::Emit => self.emit_next(index),
            Kind::Arrive => self.forward(index),
            Kind::Finish => {
                let port = &mut self.ports[index as usize];
                if port.finish_at == self.now {
                    let (frame, begun, arrives) = port.finish(self.now);
                    self.launch(index, frame, begun, arrives);
                }
            }
            Kind::Select => {
                let port = &mut self.ports[index as usize];
                if port.select_at == self.now {
                    port.select_at = NetTime::MAX;
                    self.select(index);
                }
            }
        }
        None
    }

    /// The head of a listener's stack reaches its program.
    fn deliver(&mut self, index: u32) -> Output {
        let ((frame, arrived), next) = self.listeners[index as usize].pop();
        if let Some(at) = next {
            self.events.push(at, Kind::Deliver, index);
        }
        self.probes.receive(&self.routes, index, &frame, self.now);
        self.delivered.clear();
        self.delivered.extend_from_slice(self.payloads.get(frame.payload));
        self.payloads.release(frame.payload);
        let end = &self.routes.receivers[index as usize];
        Output::Delivered { channel: ChannelId(end.flow), listener: end.listener, arrived }
    }

    /// The source of a stream or of a modelled channel releases the frame that is due, unless its
    /// host is down.
    fn release_next(&mut self, index: u32) {
        if !self.is_source_due(index) {
            return;
        }
        let (source, due) = &mut self.sources[index as usize];
        let (flow, octets) = (source.flow, due.octets);
        if let Some(next) = source.next() {
            *due = next;
            self.push_source(index);
        } else if let Some(look) = self.source_looks.get_mut(index as usize) {
            *look = NetTime::MAX;
        }
        let talker = self.routes.flows[flow as usize].talker;
        if self.is_down(talker) || self.waits_for_reservations(flow) {
            return;
        }
        if let Some(carrier) = self.carriers.get(flow as usize).copied().flatten() {
            return self.hand_over(carrier, ChannelId(flow), &[]);
        }
        let frame = self.release(flow, octets, PayloadId::NONE);
        let queued = self.stack_time(flow);
        let is_launched = self.launches.get(flow as usize).is_some_and(Option::is_some);
        if queued == self.now && self.talkers[flow as usize].is_empty() && !is_launched {
            self.queue(frame);
        } else {
            self.enter_stack(flow, frame, queued);
        }
    }

    fn is_down(&self, node: NodeId) -> bool {
        self.faults.as_ref().is_some_and(|faults| faults.holder_fails(node, self.now, self.now))
    }

    /// A noise source queues a frame, unless its host is down.
    fn make_noise(&mut self, index: u32) {
        let flow = self.talkers.len() as u32 + index;
        let source = &mut self.noise[index as usize];
        let (octets, wire_bits) = (source.octets, source.wire_bits);
        if let Some(next) = source.times.next_after(self.now) {
            self.events.push(next, Kind::Noise, index);
        }
        if self.is_down(self.routes.flows[flow as usize].talker) {
            return;
        }
        self.load.offered(index, self.now, wire_bits);
        let frame = self.release(flow, octets, PayloadId::NONE);
        self.queue(frame);
    }

    /// A node fails, with what waits in it.
    fn fail(&mut self, node: u32) {
        let Some(faults) = &self.faults else { return };
        let mut lost = Vec::new();
        for port in faults.ports_of(NodeId(node)) {
            let port = &mut self.ports[port as usize];
            port.flush(&mut self.buffers[node as usize], &mut |frame| lost.push(frame));
            port.select_at = NetTime::MAX;
        }
        lost.into_iter().for_each(|frame| self.lose_unsent(frame, Loss::Faulted));
    }

    /// A bridge has received and looked up the frame that is first on the wire of `from`, and
    /// queues a copy at each port of its tree.
    fn forward(&mut self, from: u32) {
        let (frame, next) = self.ports[from as usize].wire.pop();
        if let Some(at) = next {
            self.events.push(at, Kind::Arrive, from);
        }
        let hop = self.routes.hops[frame.hop as usize];
        let flow = self.routes.flows[hop.flow as usize];
        if let Some(learning) = &mut self.learning {
            learning.hear(self.now, from, flow.talker);
        }
        let (first, count) = match hop.next {
            NextHop::Forward { first, count } => (first, count),
            NextHop::Filter { first, count } => {
                let filter = &mut self.filters[hop.flow as usize];
                let passes = |filter: &mut Filter| filter.passes(self.now, frame.octets);
                if !filter.as_mut().is_none_or(passes) {
                    self.probes.lose(&self.routes, frame.hop, Loss::Policed);
                    return self.payloads.release(frame.payload);
                }
                (first, count)
            }
            NextHop::Flood { first, count, way } => {
                let knows = |l: &Learning| l.knows(self.now, from, flow.destination);
                let known = self.learning.as_ref().is_some_and(knows);
                (first, if known { u32::from(way) } else { count })
            }
            NextHop::Listener(_) | NextHop::Sink(_) | NextHop::Neighbour(_) | NextHop::Nowhere => {
                unreachable!("only frames for bridges are on a wire's delay line")
            }
        };
        self.payloads.share(frame.payload, count);
        for hop in first..first + count {
            self.queue(Frame { hop, ..frame });
        }
        self.payloads.release(frame.payload);
    }

    /// Queues a frame at the port of its hop, which sends it at once if it is free.
    fn queue(&mut self, frame: Frame) {
        let hop = self.routes.hops[frame.hop as usize];
        if hop.is_closed {
            return self.refuse(frame);
        }
        if hop.recovery != route::NONE {
            let recovery = &mut self.recoveries[hop.recovery as usize];
            let flow = &mut self.probes.flows[hop.flow as usize];
            let eliminated = match recovery.judge(self.now, frame.sequence) {
                Recovered::New => None,
                Recovered::Duplicate => Some(&mut flow.duplicates),
                Recovered::Rogue => Some(&mut flow.rogue),
            };
            if let Some(count) = eliminated {
                *count += 1;
                return self.payloads.release(frame.payload);
            }
        }
        let port = &mut self.ports[hop.port as usize];
        let buffer = &mut self.buffers[port.node.index()];
        let queue = port.queue_of(hop.queue);
        if !port.offer(self.now, queue, frame, hop.bucket, buffer) {
            self.lose_unsent(frame, Loss::Overflowed);
        } else if self.now < port.free_at {
            let at = port.choice_while_busy(self.now, queue);
            self.select_at(hop.port, at);
        } else if self.events.any_before_select(self.now) {
            // More may be queued at this instant: the choice waits for it.
            self.select_at(hop.port, self.now);
        } else {
            self.select(hop.port);
        }
    }

    /// Schedules the choice of a port; the end of time: until a frame is queued there is none.
    fn select_at(&mut self, port: u32, at: NetTime) {
        let scheduled = &mut self.ports[port as usize].select_at;
        if *scheduled != at {
            *scheduled = at;
            if at != NetTime::MAX {
                self.events.push(at, Kind::Select, port);
            }
        }
    }

    /// A free port with waiting frames chooses one to send; one that is sending a preemptable frame
    /// may interrupt it.
    fn select(&mut self, index: u32) {
        let port = &mut self.ports[index as usize];
        if self.now < port.free_at {
            let next = port.interrupt(self.now);
            return self.select_at(index, next);
        }
        let buffer = &mut self.buffers[port.node.index()];
        match port.choose(self.now, buffer) {
            Choice::Wait(until) => self.select_at(index, until),
            Choice::Send { frame, arrives } => {
                if port.any_waiting() {
                    let free_at = port.free_at;
                    self.select_at(index, free_at);
                } else {
                    port.select_at = NetTime::MAX;
                }
                let early = self.cuts_through(index, frame);
                let arrives = early.unwrap_or(arrives);
                self.see(index, &frame);
                self.launch(index, frame, self.now, arrives);
            }
            Choice::Begin { first } => {
                first.iter().for_each(|frame| self.see(index, frame));
                let port = &mut self.ports[index as usize];
                self.events.push(port.finish_at, Kind::Finish, index);
                let waiting = port.any_waiting();
                let next = if waiting { port.interrupt(self.now) } else { NetTime::MAX };
                self.select_at(index, next);
            }
        }
    }

    /// When a cut-through bridge forwards an express frame that starts now; `None` if it stores it
    /// before, as for any port that is faster than the one that sends.
    fn cuts_through(&self, from: u32, frame: Frame) -> Option<NetTime> {
        let sender = &self.ports[from as usize];
        if !sender.feeds_cut_through {
            return None;
        }
        let NextHop::Forward { first, count } = self.routes.hops[frame.hop as usize].next else {
            return None;
        };
        let hops = &self.routes.hops[first as usize..][..count as usize];
        let fits = hops.iter().all(|hop| self.ports[hop.port as usize].rate <= sender.rate);
        fits.then(|| sender.cut_through(self.now))
    }

    /// The transmission of a frame starts.
    fn see(&mut self, from: u32, frame: &Frame) {
        let flow = self.routes.hops[frame.hop as usize].flow;
        if let Some(end) = self.routes.own_end(frame.hop) {
            self.hear_own(from, end, *frame);
        }
        if self.tap.is_on(from) {
            let talker = self.routes.flows[flow as usize].talker;
            let captured = self.clocks.read(talker, frame.released);
            let flow = self.tap.flow(flow);
            let data = match flow {
                FlowRef::Protocol => self.payloads.get(frame.payload)[TOKEN..].to_vec(),
                _ => Vec::new(),
            };
            self.tap.see(self.now, from, (flow, data), frame, captured);
        }
    }

    /// When the transmission of a frame ends is certain. It started at `begun` and arrives at
    /// `arrives`, at a bridge with the forwarding time.
    fn launch(&mut self, from: u32, frame: Frame, begun: NetTime, arrives: NetTime) {
        let hop = self.routes.hops[frame.hop as usize];
        match hop.next {
            NextHop::Forward { .. } | NextHop::Filter { .. } | NextHop::Flood { .. } => {
                let arrives = self.ports[from as usize].queued_behind(arrives, &frame);
                if self.loses(from, &frame, begun, arrives) {
                    return self.swallow(frame);
                }
                let (at, head) = self.ports[from as usize].wire.push(arrives, frame);
                if head {
                    self.events.push(at, Kind::Arrive, from);
                }
            }
            NextHop::Listener(end) => self.receive(from, end, frame, begun, arrives),
            NextHop::Sink(source) => {
                if self.loses(from, &frame, begun, arrives) {
                    return self.swallow(frame);
                }
                let bits = self.noise[source as usize].wire_bits;
                self.load.delivered(source, arrives, bits);
            }
            NextHop::Neighbour(_) => self.launch_to_neighbour(from, frame, begun),
            NextHop::Nowhere => self.payloads.release(frame.payload),
        }
    }

    /// A frame will arrive at a listener's host and pass its stack.
    fn receive(&mut self, from: u32, end: u32, frame: Frame, begun: NetTime, arrives: NetTime) {
        let host = self.routes.receivers[end as usize].host;
        let delay = self.delays[host.index()].stack_rx.draw();
        let at = self.listeners[end as usize].leaves(arrives + delay);
        if self.loses(from, &frame, begun, at) {
            return self.swallow(frame);
        }
        let stack = &mut self.listeners[end as usize];
        if frame.payload == PayloadId::NONE {
            stack.pass(at);
            self.probes.receive(&self.routes, end, &frame, at);
        } else if stack.push(at, (frame, arrives)).1 {
            self.events.push(at, Kind::Deliver, end);
        }
    }

    /// The talker's own host has a frame whose transmission starts, unless its link is down.
    fn hear_own(&mut self, from: u32, end: u32, frame: Frame) {
        let host = self.routes.receivers[end as usize].host;
        let delay = self.delays[host.index()].stack_rx.draw();
        let at = self.listeners[end as usize].leaves(self.now + delay);
        let fails = |faults: &Faults| {
            faults.is_cut(from, self.now) || faults.holder_fails(host, self.now, at)
        };
        if self.faults.as_ref().is_some_and(fails) {
            return self.probes.lose_own(&self.routes, end, Loss::Faulted);
        }
        let stack = &mut self.listeners[end as usize];
        if frame.payload == PayloadId::NONE {
            stack.pass(at);
            return self.probes.receive(&self.routes, end, &frame, at);
        }
        self.payloads.share(frame.payload, 1);
        if stack.push(at, (frame, self.now)).1 {
            self.events.push(at, Kind::Deliver, end);
        }
    }

    /// Whether a fault costs the frame whose transmission started at `begun` and that will have
    /// passed the node at the other end at `passed`.
    fn loses(&mut self, from: u32, frame: &Frame, begun: NetTime, passed: NetTime) -> bool {
        let Some(faults) = &mut self.faults else { return false };
        faults.swallows(from, [begun, self.now], frame.octets, passed)
    }
}

/// All ports, with the buckets of the channels and streams that are shaped there one by one.
fn ports(system: &System, plan: &Plan, routes: &mut Routes) -> Vec<EgressPort> {
    let port = |(at, planned)| EgressPort::new(system, PortId(at as u32), planned);
    let mut ports: Vec<_> = plan.ports.iter().enumerate().map(port).collect();
    for hop in &routes.hops {
        let queue = usize::from(hop.queue);
        let is_channel = (hop.flow as usize) < system.channels.len();
        let needs_credit = [Class::A.queue(), Class::B.queue()].contains(&queue) && is_channel;
        assert!(!needs_credit || ports[hop.port as usize].is_shaped(queue));
    }
    // Each port counts its groups from 0.
    let mut groups: HashMap<u32, Vec<u32>> = HashMap::new();
    for (at, group) in &routes.regulated {
        let hop = &mut routes.hops[*at as usize];
        let settings = &plan.ports[hop.port as usize].settings;
        let regulator = match (hop.flow as usize).checked_sub(system.channels.len()) {
            Some(stream) => system.streams[stream].regulator,
            None => {
                let planned = plan.channel(ChannelId(hop.flow));
                planned.scheduler(PortId(hop.port)).map(|scheduler| scheduler.bucket)
            }
        };
        let asynchronous = settings.selection[usize::from(hop.queue)] == Selection::Asynchronous;
        if let Some(bucket) = regulator.filter(|_| asynchronous) {
            let groups = groups.entry(hop.port).or_default();
            let known = groups.iter().position(|known| known == group);
            let place = known.unwrap_or_else(|| {
                groups.push(*group);
                groups.len() - 1
            });
            hop.bucket = ports[hop.port as usize].add_bucket(bucket, place as u32);
        }
    }
    ports
}

/// One filter per flow, if any stream has one; it counts by the clock of the stream's first bridge.
fn filters(system: &System) -> Vec<Option<Filter>> {
    if system.streams.iter().all(|stream| stream.policing.is_none()) {
        return Vec::new();
    }
    let of_stream = |stream: &onbeat_model::stream::Stream| {
        let port = system.node(stream.talker).ports[0];
        let bridge = system.port(system.port(port).peer).node;
        Some(Filter::new(stream.policing?, system.node(bridge).clock))
    };
    let of_channels = system.channels.iter().map(|_| None);
    of_channels.chain(system.streams.iter().map(of_stream)).collect()
}
