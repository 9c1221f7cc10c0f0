//! The engine itself: what each event does.

use crate::buffer::Buffer;
use crate::event::{Event, EventHeap, Kind, MAX_INDEX};
use crate::lane::Lane;
use crate::load::Load;
use crate::noise::NoiseSource;
use crate::payload::{PayloadId, Payloads};
use crate::port::{Choice, EgressPort, Frame, PortCounters};
use crate::random::{Purpose, RandomDelay, Stream};
use crate::route::{Routes, Then};
use crate::shaper::NO_BUCKET;
use onbeat_model::observed::PortObserved;
use onbeat_model::plan::Plan;
use onbeat_model::record::LoadSample;
use onbeat_model::system::{ChannelId, Class, Delay, Node, NodeId, NodeKind, PortId, System};
use onbeat_model::time::{NetTime, Span};
use onbeat_model::units::frame;

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
}

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
    /// One per channel: its talker's host, and the frames in that host's stack.
    talkers: Vec<(NodeId, Lane<Frame>)>,
    /// One per channel end: the frames in its host's stack, and when each arrived.
    listeners: Vec<Lane<(PayloadId, NetTime)>>,
    noise: Vec<NoiseSource>,
    load: Load,
    payloads: Payloads,
    delivered: Vec<u8>,
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
    /// The network at time zero, with noise about to start. Copies what it needs.
    ///
    /// # Panics
    /// When the plan does not fit the system: paths that are no walks, no tree, or a class A or B
    /// channel over a port where nothing is reserved for its class.
    pub fn new(system: &System, plan: &Plan, options: Options) -> Self {
        assert!(system.ports.len().max(system.channels.len()) < MAX_INDEX);
        assert!(system.nodes.len().max(system.noise.len()) < MAX_INDEX);
        assert_eq!(plan.ports.len(), system.ports.len());
        let routes = Routes::new(system, plan);
        let port = |(at, planned)| EgressPort::new(system, PortId(at as u32), planned);
        let ports: Vec<_> = plan.ports.iter().enumerate().map(port).collect();
        for hop in &routes.hops {
            let queue = usize::from(hop.queue);
            let needs_credit = [Class::A.queue(), Class::B.queue()].contains(&queue);
            assert!(!needs_credit || ports[hop.port as usize].is_shaped(queue));
        }
        let mut engine = Self {
            now: NetTime::ZERO,
            events: EventHeap::default(),
            processed: 0,
            ports,
            buffers: system.nodes.iter().map(Buffer::new).collect(),
            delays: (system.nodes.iter().enumerate())
                .map(|(at, node)| HostDelays::new(node, at, &options))
                .collect(),
            talkers: system.channels.iter().map(|c| (c.talker, Lane::new())).collect(),
            listeners: routes.ends.iter().map(|_| Lane::new()).collect(),
            noise: Vec::with_capacity(system.noise.len()),
            load: Load::new(&options, system.noise.len()),
            payloads: Payloads::default(),
            delivered: Vec::new(),
            routes,
        };
        for (at, noise) in system.noise.iter().enumerate() {
            let hop = engine.routes.noise[at];
            let source = NoiseSource::new(noise, at, hop, options.seed, options.noise_until);
            if let Some(first) = source.times.first() {
                engine.events.push(first, Kind::Noise, at as u32);
            }
            engine.noise.push(source);
        }
        engine
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

    /// What a port sent, and what its queues refused and held.
    pub fn port_observed(&self, port: PortId) -> PortObserved {
        self.ports[port.index()].observed()
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
    /// queued at the port.
    ///
    /// # Panics
    /// When the frame is longer than [`frame::MAX_TAGGED`].
    pub fn send(&mut self, channel: ChannelId, octets: &[u8]) -> NetTime {
        let size = (octets.len() as u32 + frame::FCS.get()).max(frame::MIN_TAGGED.get());
        assert!(size <= frame::MAX_TAGGED.get(), "a frame of {size} octets");
        let frame = Frame {
            hop: self.routes.channels[channel.index()],
            payload: self.payloads.hold(octets),
            octets: size as u16,
        };
        let (host, stack) = &mut self.talkers[channel.index()];
        let delay = self.delays[host.index()].stack_tx.draw();
        let (queued, head) = stack.push(self.now + delay, frame);
        if head {
            self.events.push(queued, Kind::Stack, channel.0);
        }
        queued
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
        while let Some(event) = self.events.pop_until(limit) {
            debug_assert!(event.at() >= self.now);
            self.now = event.at();
            self.processed += 1;
            if let Some(output) = self.happen(event) {
                self.load.cover(self.now);
                return Some(output);
            }
        }
        self.now = limit;
        self.load.cover(limit);
        None
    }

    fn happen(&mut self, event: Event) -> Option<Output> {
        let index = event.index();
        match event.kind() {
            Kind::Deliver => return Some(self.deliver(index)),
            Kind::Wake | Kind::Alarm => return Some(Output::Woke { token: event.token() }),
            Kind::Stack => {
                let (frame, next) = self.talkers[index as usize].1.pop();
                if let Some(at) = next {
                    self.events.push(at, Kind::Stack, index);
                }
                self.queue(frame);
            }
            Kind::Noise => self.make_noise(index),
            Kind::Arrive => self.forward(index),
            Kind::Finish => {
                let port = &mut self.ports[index as usize];
                if port.finish_at == self.now {
                    let (frame, arrives) = port.finish(self.now);
                    self.launch(index, frame, arrives);
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
    fn deliver(&mut self, end: u32) -> Output {
        let ((payload, arrived), next) = self.listeners[end as usize].pop();
        if let Some(at) = next {
            self.events.push(at, Kind::Deliver, end);
        }
        self.delivered.clear();
        self.delivered.extend_from_slice(self.payloads.get(payload));
        self.payloads.release(payload);
        let end = &self.routes.ends[end as usize];
        Output::Delivered { channel: end.channel, listener: end.listener, arrived }
    }

    /// A noise source queues a frame.
    fn make_noise(&mut self, index: u32) {
        let source = &mut self.noise[index as usize];
        let frame = Frame { hop: source.hop, payload: PayloadId::NONE, octets: source.octets };
        self.load.offered(index, self.now, source.wire_bits);
        if let Some(next) = source.times.next_after(self.now) {
            self.events.push(next, Kind::Noise, index);
        }
        self.queue(frame);
    }

    /// A bridge has received and looked up the frame that is first on the wire of `from`, and
    /// queues a copy at each port of its tree.
    fn forward(&mut self, from: u32) {
        let (frame, next) = self.ports[from as usize].wire.pop();
        if let Some(at) = next {
            self.events.push(at, Kind::Arrive, from);
        }
        let Then::Forward { first, count } = self.routes.hops[frame.hop as usize].then else {
            unreachable!("only frames for bridges are on a wire's lane");
        };
        self.payloads.share(frame.payload, count - 1);
        for hop in first..first + count {
            self.queue(Frame { hop, ..frame });
        }
    }

    /// Queues a frame at the port of its hop, which sends it at once if it is free.
    fn queue(&mut self, frame: Frame) {
        let hop = self.routes.hops[frame.hop as usize];
        let port = &mut self.ports[hop.port as usize];
        let buffer = &mut self.buffers[port.node.index()];
        if !port.offer(self.now, hop.queue, frame, NO_BUCKET, buffer) {
            self.payloads.release(frame.payload);
        } else if self.now < port.free_at {
            let at = port.choice_while_busy(self.now, hop.queue);
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
                self.launch(index, frame, arrives);
            }
            Choice::Begin => {
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
        let Then::Forward { first, count } = self.routes.hops[frame.hop as usize].then else {
            return None;
        };
        let hops = &self.routes.hops[first as usize..][..count as usize];
        let fits = hops.iter().all(|hop| self.ports[hop.port as usize].rate <= sender.rate);
        fits.then(|| sender.cut_through(self.now))
    }

    /// The transmission of a frame has started; it arrives at `arrives`, at a bridge with the
    /// forwarding time.
    fn launch(&mut self, from: u32, frame: Frame, arrives: NetTime) {
        match self.routes.hops[frame.hop as usize].then {
            Then::Forward { .. } => {
                let (at, head) = self.ports[from as usize].wire.push(arrives, frame);
                if head {
                    self.events.push(at, Kind::Arrive, from);
                }
            }
            Then::Listener(end) => {
                let host = self.routes.ends[end as usize].host;
                let delay = self.delays[host.index()].stack_rx.draw();
                let stack = &mut self.listeners[end as usize];
                let (at, head) = stack.push(arrives + delay, (frame.payload, arrives));
                if head {
                    self.events.push(at, Kind::Deliver, end);
                }
            }
            Then::Sink(source) => {
                let bits = self.noise[source as usize].wire_bits;
                self.load.delivered(source, arrives, bits);
            }
        }
    }
}
