//! The checked description of one distributed real-time system.
//!
//! A [`System`] is only made by the check of `onbeat-description`, so whoever holds one may rely on
//! what the fields say: every id is in range, every name is unique, the topology is connected.

pub use crate::scheduling::{CpuBudget, SchedulingPolicy, TuneProfile};

use crate::dedicated::DedicatedPath;
use crate::device::{Device, DeviceLimits};
use crate::diagnostic::Origin;
use crate::fragment::Fragments;
use crate::graph::Graph;
use crate::integrity::Integrity;
use crate::port::PortSettings;
use crate::rate::{Rate, catch_up, rate_tolerance};
use crate::stream::{Fault, FaultKind, PathRequest, Stream};
use crate::tcp::TcpFlow;
use crate::time::{ClockError, ClockStep, NetTime, Span};
use crate::units::{BitRate, MacAddress, Octets, StreamId, frame};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);
        impl $name {
            /// The position in the table that the id points into.
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}
id! {
    /// Points into [`System::nodes`].
    NodeId
}
id! {
    /// Points into [`System::ports`].
    PortId
}
id! {
    /// Points into [`System::links`].
    LinkId
}
id! {
    /// Points into [`System::channels`].
    ChannelId
}
id! {
    /// Points into [`System::programs`].
    ProgramId
}
id! {
    /// Points into [`System::streams`].
    StreamIndex
}
id! {
    /// Points into [`System::noise`].
    NoiseId
}
id! {
    /// Points into [`System::tcp`].
    TcpId
}

/// One distributed real-time system: topology, channels, programs, traffic and run settings.
/// All tables are in the order of the description.
#[derive(Clone, Debug, PartialEq)]
pub struct System {
    /// The system's name.
    pub name: String,
    /// Hosts first, then bridges.
    pub nodes: Vec<Node>,
    /// Two per link: `links[i].ports` are `[2i, 2i + 1]`.
    pub ports: Vec<Port>,
    /// Full-duplex point-to-point links.
    pub links: Vec<Link>,
    /// What some nodes are; of all others nothing is known.
    pub devices: BTreeMap<NodeId, Device>,
    /// Network channels.
    pub channels: Vec<Channel>,
    /// Programs that a run starts.
    pub programs: Vec<Program>,
    /// Best-effort traffic sources.
    pub noise: Vec<Noise>,
    /// Messages over TCP.
    pub tcp: Vec<TcpFlow>,
    /// Which paths channels take.
    pub routing: Routing,
    /// What the plan chooses idleSlopes for.
    pub idle_slopes: IdleSlopes,
    /// Clocks that gPTP keeps together, if it does.
    pub synchronisation: Option<Synchronisation>,
    /// Modelled traffic that no program writes.
    pub streams: Vec<Stream>,
    /// What goes wrong on purpose.
    pub faults: Vec<Fault>,
    /// End-to-end deadlines over several channels.
    pub chains: Vec<Chain>,
    /// Channels that share slots of stations.
    pub alternatives: Vec<Alternatives>,
    /// How to run when nothing else is asked for.
    pub run: RunSettings,
    /// Named variations of [`System::run`].
    pub scenarios: Vec<Scenario>,
    /// Published figures to stand beside the measured ones.
    pub references: Vec<Reference>,
}

impl System {
    /// Whether a channel is one of alternatives, which share their slot.
    pub fn is_alternative(&self, channel: ChannelId) -> bool {
        let mut all = self.alternatives.iter().flat_map(|table| &table.channels);
        all.any(|one| one.channel == channel)
    }

    /// The system with the settings of a scenario, and its programs as they are scheduled there.
    #[must_use]
    pub fn in_scenario(&self, scenario: &Scenario) -> Self {
        let mut system = Self { run: scenario.run, ..self.clone() };
        for variation in &scenario.programs {
            let program = &mut system.programs[variation.program];
            program.policy = variation.policy.or(program.policy);
            program.priority = variation.priority.or(program.priority);
            program.budget = variation.budget.or(program.budget);
            if let Some(cores) = &variation.cores {
                program.cores.clone_from(cores);
            }
        }
        system
    }

    /// A system with nothing in it, for whoever builds one without a description: runs take
    /// `duration` of virtual time, with seed 1 and reservations.
    pub fn empty(name: &str, duration: Span) -> Self {
        let run = RunSettings {
            duration,
            seed: 1,
            time: TimeMode::Virtual,
            protected: true,
            asks_protection: false,
            reservation: ReservationMode::Plan,
            backend: Backend::Bridges,
            slot_error: Span::ZERO,
            noise: true,
            companions: true,
            policy: SchedulingPolicy::Fifo,
            tune: TuneProfile::Off,
            hang_timeout: Span::from_s(10),
            limits: ProgramLimits::default(),
        };
        Self {
            name: name.to_owned(),
            nodes: Vec::new(),
            ports: Vec::new(),
            links: Vec::new(),
            devices: BTreeMap::new(),
            channels: Vec::new(),
            programs: Vec::new(),
            noise: Vec::new(),
            tcp: Vec::new(),
            routing: Routing::Shortest,
            idle_slopes: IdleSlopes::Rate,
            synchronisation: None,
            streams: Vec::new(),
            faults: Vec::new(),
            chains: Vec::new(),
            alternatives: Vec::new(),
            run,
            scenarios: Vec::new(),
            references: Vec::new(),
        }
    }
    /// The node that `id` points to.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }
    /// The port that `id` points to.
    pub fn port(&self, id: PortId) -> &Port {
        &self.ports[id.index()]
    }
    /// What a node's device can do at most.
    pub fn device_limits(&self, node: NodeId) -> DeviceLimits {
        self.devices.get(&node).map_or(DeviceLimits::UNKNOWN, |device| device.limits)
    }
    /// The link of a port.
    pub fn link_of(&self, id: PortId) -> &Link {
        &self.links[self.port(id).link.index()]
    }
    /// The channel that `id` points to.
    pub fn channel(&self, id: ChannelId) -> &Channel {
        &self.channels[id.index()]
    }
    /// What a node's clock reads, with the step that a fault makes it take. The node's own
    /// [`Node::clock`] is what its oscillator says, which no fault changes.
    pub fn clock_of(&self, id: NodeId) -> ClockError {
        let step = |fault: &Fault| match fault.kind {
            FaultKind::ClockStep { node, by } if node == id => {
                Some(ClockStep { by, from: fault.from, until: fault.until })
            }
            _ => None,
        };
        let step = self.faults.iter().find_map(step).unwrap_or_default();
        ClockError { step, ..self.node(id).clock }
    }
    /// By how much a node's clock may be wrong until an instant of a run, without faults, rounded
    /// up. Of one that gPTP keeps in the run it is not known when it is that wrong.
    pub fn clock_wrong(&self, id: NodeId, until: NetTime) -> Span {
        let (clock, kept) = (&self.node(id).clock, self.synchronisation.is_some_and(|s| s.in_run));
        clock.max_abs(if kept { until.max(NetTime::ZERO + clock.wander_period) } else { until })
    }
    /// Changes every place of the description that the system keeps.
    pub fn each_origin(&mut self, change: &mut dyn FnMut(&mut Origin)) {
        let users = self.programs.iter_mut().filter_map(|program| program.user.as_mut());
        users.for_each(|user| change(&mut user.origin));
        self.nodes.iter_mut().for_each(|it| change(&mut it.origin));
        self.links.iter_mut().for_each(|it| change(&mut it.origin));
        self.devices.values_mut().for_each(|it| change(&mut it.origin));
        self.channels.iter_mut().for_each(|it| change(&mut it.origin));
        self.programs.iter_mut().for_each(|it| change(&mut it.origin));
        self.noise.iter_mut().for_each(|it| change(&mut it.origin));
        self.tcp.iter_mut().for_each(|it| change(&mut it.origin));
        self.synchronisation.iter_mut().for_each(|it| change(&mut it.origin));
        self.streams.iter_mut().for_each(|it| change(&mut it.origin));
        self.faults.iter_mut().for_each(|it| change(&mut it.origin));
        self.chains.iter_mut().for_each(|it| change(&mut it.origin));
        self.alternatives.iter_mut().for_each(|it| change(&mut it.origin));
    }
    /// Whether some fault lets a stream babble.
    pub fn babbles(&self, stream: StreamIndex) -> bool {
        self.faults.iter().any(|fault| fault.kind == FaultKind::Babble(stream.0))
    }
    /// The channel of that name, or of the stream that it [names](StreamId::called).
    pub fn channel_named(&self, name: &str) -> Option<ChannelId> {
        let called = StreamId::called(name);
        let is_it = |c: &Channel| c.name == name || called == Some(c.stream_id);
        let at = self.channels.iter().position(is_it)?;
        Some(ChannelId(at as u32))
    }
    /// The C files that the system was made for, without a description.
    pub fn sources_alone(&self) -> Option<&ProgramSource> {
        // In a description every program has a place.
        let [program] = &self.programs[..] else { return None };
        program.source.as_ref().filter(|_| program.origin == Origin::default())
    }
    /// Whether any program of the run is on the host. A channel end on a host without programs is
    /// modelled.
    pub fn has_program(&self, host: NodeId) -> bool {
        self.programs.iter().any(|p| p.host == host && p.joins)
    }
    /// The programs on one host.
    pub fn programs_on(&self, host: NodeId) -> impl Iterator<Item = &Program> {
        self.programs.iter().filter(move |p| p.host == host)
    }
    /// A link that closes a loop between bridges, if there is one: such a network needs fixed
    /// routes or a spanning tree, or a flooded frame circulates for ever.
    pub fn closes_loop(&self) -> Option<LinkId> {
        let mut parent: Vec<usize> = (0..self.nodes.len()).collect();
        let closes = |link: &Link| {
            let [a, b] = link.ports.map(|port| {
                let mut at = self.port(port).node.index();
                // Halving the path keeps it short.
                while parent[at] != at {
                    parent[at] = parent[parent[at]];
                    at = parent[at];
                }
                at
            });
            parent[a] = b;
            a == b
        };
        let at = self.links.iter().position(closes)?;
        Some(LinkId(at as u32))
    }
    /// The stream of that name.
    pub fn stream_named(&self, name: &str) -> Option<StreamIndex> {
        let at = self.streams.iter().position(|s| s.name == name)?;
        Some(StreamIndex(at as u32))
    }
    /// A port's name with its node's: `cat1.p2`.
    pub fn port_label(&self, id: PortId) -> String {
        let port = self.port(id);
        format!("{}.{}", self.node(port.node).name, port.name)
    }
}

/// An end station or a bridge.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Unique among all nodes.
    pub name: String,
    /// What it is.
    pub kind: NodeKind,
    /// The error of its copy of the network clock.
    pub clock: ClockError,
    /// The limits of each of its ports' queues.
    pub queue: QueueLimits,
    /// Its ports, in the order in which the links name them. A host has exactly one.
    pub ports: Vec<PortId>,
    /// Where the description says so.
    pub origin: Origin,
}

/// What a node is.
#[derive(Clone, Debug, PartialEq)]
pub enum NodeKind {
    /// An end station (IEEE 802.1Q 3.81).
    Host(Host),
    /// A VLAN bridge.
    Bridge(Bridge),
}

/// What an end station adds to a node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Host {
    /// Its own address: the source of its frames. A group address never is one.
    pub mac: MacAddress,
    /// From the program's write to the frame being queued at the port.
    pub stack_tx: Delay,
    /// From the frame's last octet at the port to the reading program continuing.
    pub stack_rx: Delay,
    /// From the target of a timed sleep to the program continuing.
    pub wakeup: Delay,
    /// How many processors the tasks of its programs share, in the analysis and in virtual time;
    /// none: each task has one to itself.
    pub cores: Option<u16>,
}

/// What a bridge adds to a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bridge {
    /// From a frame's last octet in to its being queued at the port out; cut-through: from the
    /// octet that suffices.
    pub forwarding: Span,
    /// Whether a frame is forwarded as soon as its addresses, tag and EtherType are in (18 octets
    /// after the preamble), to ports of the same rate or a lower one.
    pub cut_through: bool,
    /// Whether it forwards best-effort frames by what it has learned of source addresses
    /// (802.1Q-2022 8.7), and floods what it does not know; else it knows all hosts.
    pub learning: bool,
    /// Octets that the queues of all its ports may hold together, beside each queue's limit.
    pub shared_buffer: Option<Octets>,
    /// Its path for frames of stations, beside which all else is best effort.
    pub dedicated_path: Option<DedicatedPath>,
}

/// When a port's queue refuses a frame (tail drop).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueLimits {
    /// The most frames that one queue (of the eight) of a port holds.
    pub frames: u32,
    /// The most octets of frames that one queue of a port holds. Per queue, so that best-effort
    /// traffic can never push a reserved frame out.
    pub octets: Octets,
}

/// A delay that is never negative; random ones are drawn from the run's seed.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Delay {
    /// None at all.
    #[default]
    Zero,
    /// Uniform in `[min, max]`, both included.
    Interval {
        /// The shortest.
        min: Span,
        /// The longest.
        max: Span,
    },
    /// One of the values, with a probability in proportion to its weight. Never empty; sorted by
    /// value; weights are positive.
    Histogram(Vec<(Span, u32)>),
}

impl Delay {
    /// The shortest delay.
    pub fn min(&self) -> Span {
        match self {
            Self::Zero => Span::ZERO,
            Self::Interval { min, .. } => *min,
            Self::Histogram(values) => values.first().map_or(Span::ZERO, |v| v.0),
        }
    }
    /// The longest delay.
    pub fn max(&self) -> Span {
        match self {
            Self::Zero => Span::ZERO,
            Self::Interval { max, .. } => *max,
            Self::Histogram(values) => values.last().map_or(Span::ZERO, |v| v.0),
        }
    }
}

/// One end of a link, on a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// Unique on its node.
    pub name: String,
    /// Where it is.
    pub node: NodeId,
    /// What it is plugged into.
    pub link: LinkId,
    /// The port at the link's other end.
    pub peer: PortId,
    /// How it sends, as the description sets it; a plan adds what it reserves.
    pub settings: PortSettings,
}

/// A full-duplex link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// The two ends.
    pub ports: [PortId; 2],
    /// The rate in each direction.
    pub rate: BitRate,
    /// The propagation delay in each direction.
    pub propagation: Span,
    /// Where the description says so.
    pub origin: Origin,
}

/// A traffic class for channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Class {
    /// SR class A (802.1Q 34): credit-based shaper, 125 µs class measurement interval.
    A,
    /// SR class B: credit-based shaper, 250 µs class measurement interval.
    B,
    /// Scheduled traffic behind time-aware gates (802.1Qbv).
    Scheduled,
    /// Sporadic traffic behind asynchronous traffic shaping (802.1Qcr, 802.1Q-2022 8.6.8.5).
    Asynchronous,
}

impl Class {
    /// The fixed delay D after which `write_wait` and `read_wait` continue, unless the channel
    /// asks for another (Austad et al. 2023, section 4.3; 802.1BA for A and B). No standard has one
    /// for asynchronous shaping.
    pub const fn fixed_delay(self) -> Span {
        match self {
            Self::A => Span::from_ms(2),
            Self::B => Span::from_ms(50),
            Self::Scheduled => Span::from_us(100),
            Self::Asynchronous => Span::from_ms(10),
        }
    }
    /// The class measurement interval of an SR class (802.1Q 34.3).
    pub const fn measurement_interval(self) -> Option<Span> {
        match self {
            Self::A => Some(Span::from_us(125)),
            Self::B => Some(Span::from_us(250)),
            Self::Scheduled | Self::Asynchronous => None,
        }
    }
    /// The default priority code point (802.1Q Table 6-5 for A and B).
    pub const fn default_pcp(self) -> u8 {
        match self {
            Self::A => 3,
            Self::B => 2,
            Self::Scheduled => 5,
            Self::Asynchronous => 4,
        }
    }
    /// The queue of a port, 0 (lowest) to 7, that carries the class (802.1Q Table 34-1 for A, B).
    ///
    /// Asynchronous shaping is below the others: for how long one of its frames may keep them
    /// waiting, they count for best effort already, unless that is preemptable.
    pub const fn queue(self) -> usize {
        match self {
            Self::A => 7,
            Self::B => 6,
            Self::Scheduled => 5,
            Self::Asynchronous => 4,
        }
    }
    /// What a person reads: that of the description.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::A => "A",
            Self::B => "B",
            Self::Scheduled => "scheduled",
            Self::Asynchronous => "asynchronous",
        }
    }
}

/// The queue of a port that carries best-effort traffic (priority 0, 802.1Q Table 34-1).
pub const BEST_EFFORT_QUEUE: usize = 1;

/// The queue of a port that carries network control (priority 7, 802.1Q Table 34-1): the frames of
/// the stream reservation protocol.
pub const CONTROL_QUEUE: usize = 5;

/// A network channel: one talker, one or more listeners, messages of one size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Channel {
    /// Unique, at most 31 octets (the C manifest's `name[32]`).
    pub name: String,
    /// A group address, or the address of a host.
    pub destination: MacAddress,
    /// Unique.
    pub stream_id: StreamId,
    /// How the network treats it when it is protected.
    pub class: Class,
    /// Whether the description leaves the class open: it is the plan's to choose.
    pub class_is_open: bool,
    /// The octets of each message.
    pub size: Octets,
    /// The C struct that each message is, as FILE:STRUCT, if it is known. The file's path counts
    /// from the description's directory.
    pub message_type: Option<String>,
    /// What its frames carry behind the message.
    pub integrity: Integrity,
    /// Its readers accept the frames of this station only, if there is one.
    pub talker_address: Option<MacAddress>,
    /// The least mean time between two messages; of class [`Class::Asynchronous`] the next one may
    /// come at any time after it.
    pub interval: Span,
    /// How many messages may come at once after a pause, at least 1: the size of the token bucket
    /// that fills by one message each interval.
    pub burst: u32,
    /// The host that writes.
    pub talker: NodeId,
    /// The hosts that read, at least one, none twice. If the talker is one of them, it is the last:
    /// it has each frame when its port begins to send it.
    pub listeners: Vec<NodeId>,
    /// Which paths its frames take.
    pub paths: PathRequest,
    /// Capture to wake-up of `write_wait` and `read_wait`.
    pub fixed_delay: Span,
    /// The longest time between two messages that a listener puts up with, if it says so.
    pub deadline: Option<Span>,
    /// The longest age at which a listener has a message handed over, if it says so.
    pub lifespan: Option<Span>,
    /// Whether a reservation is made for it when the run asks for protection; without one its
    /// frames travel in the best-effort queue.
    pub reserve: bool,
    /// VLAN identifier, 2 by default.
    pub vlan: u16,
    /// Priority code point.
    pub pcp: u8,
    /// When a modelled talker sends its first message; with `phase_jitter`, from when on in each
    /// interval a program writes.
    pub phase: Span,
    /// By how much later than its phase a program writes at most; none: nothing is known of when.
    pub phase_jitter: Option<Span>,
    /// Where the description says so.
    pub origin: Origin,
}

impl Channel {
    /// How its messages are divided among frames.
    pub fn fragments(&self) -> Fragments {
        Fragments::of(self.size, self.r_tag() + self.integrity.trailer())
    }

    /// How many frames carry each message.
    pub fn frames(&self) -> u32 {
        self.fragments().count
    }

    /// Octets of a message, or of a fragment with its header, and the trailer (stream_data_length,
    /// IEEE 1722-2016 4.4.4.10).
    pub fn stream_data_length(&self) -> Octets {
        self.fragments().payload() + self.integrity.trailer()
    }

    fn r_tag(&self) -> Octets {
        if self.paths.is_replicated() { frame::R_TAG } else { Octets::default() }
    }

    /// The tagged frames that carry a message, all of one length: with an R-TAG (802.1CB-2017 7.8)
    /// if the channel is replicated.
    pub fn frame(&self) -> Octets {
        frame::of_channel(self.r_tag() + self.stream_data_length())
    }

    /// By how much a message may come before it would at the mean rate: [`rate_tolerance`] of the
    /// channel's interval and burst.
    pub fn tolerance(&self) -> Span {
        rate_tolerance(self.interval, self.burst)
    }

    /// By how much less than an interval may be between a message that came late and the next one:
    /// [`catch_up`] of the channel's class, interval and burst.
    pub fn catch_up(&self) -> Span {
        catch_up(self.class, self.interval, self.burst)
    }

    /// What its talker keeps to.
    pub fn rate(&self) -> Rate {
        let (tolerance, catch_up) = (self.tolerance(), self.catch_up());
        Rate { interval: self.interval, tolerance, catch_up }
    }
}

/// A program that a run starts on a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Unique.
    pub name: String,
    /// Where it runs.
    pub host: NodeId,
    /// The file to execute and its arguments. A relative path with a `/` is relative to the
    /// directory of the description. The file of a program with sources is empty until they have
    /// been compiled.
    pub command: Vec<String>,
    /// What it is compiled from, if a run compiles it.
    pub source: Option<ProgramSource>,
    /// A file with the execution times of its segments in virtual time, relative to the directory
    /// of the description.
    pub execution_times: Option<String>,
    /// What its command does, if a task model says so: its channels that are the description's
    /// are [`crate::graph::ChannelKind::Named`].
    pub tasks: Option<Graph>,
    /// Whether it joins the run. One that does not has no channels, is not waited for, and is ended
    /// with the run.
    pub joins: bool,
    /// As whom it runs, if not as who runs it.
    pub user: Option<ProgramUser>,
    /// How the system schedules it, in real-time runs, if not as the run's other programs.
    pub policy: Option<SchedulingPolicy>,
    /// Its real-time priority, 1 to 99, for real-time runs.
    pub priority: Option<u8>,
    /// The cores that it may use in real-time runs; empty: any.
    pub cores: Vec<u16>,
    /// What SCHED_DEADLINE gives it, in real-time runs of that policy.
    pub budget: Option<CpuBudget>,
    /// The most that its work between reading one message and writing the next takes; counts in
    /// the bound of a chain.
    pub work_max: Span,
    /// Where the description says so.
    pub origin: Origin,
}

/// A user as whom a program runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramUser {
    /// A name or a number.
    pub name: String,
    /// Where the description says so.
    pub origin: Origin,
}

/// What a run compiles a program from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProgramSource {
    /// C files, relative to the directory of the description.
    pub files: Vec<String>,
    /// Further arguments of the compiler, those that say what its abstract channels are and which
    /// tasks start included.
    pub flags: Vec<String>,
}

/// A source of best-effort UDP frames, from one host to another, in on/off cycles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Noise {
    /// Unique.
    pub name: String,
    /// The sending host.
    pub from: NodeId,
    /// The receiving host.
    pub to: NodeId,
    /// UDP payload of each frame.
    pub payload: Octets,
    /// The mean time between two frames while on.
    pub interval: Span,
    /// Whether the time between two frames is drawn uniformly from half to one and a half times
    /// the interval; else it is exactly the interval.
    pub jitter: bool,
    /// When the first on-period starts.
    pub start: NetTime,
    /// How long it sends in each cycle.
    pub on: Span,
    /// How long it rests in each cycle; zero: it never rests.
    pub off: Span,
    /// Where the description says so.
    pub origin: Origin,
}

/// A deadline from the capture at the first channel's talker to the receipt at the last one's
/// listener. Each channel's talker is a listener of the one before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    /// Unique.
    pub name: String,
    /// In order, at least one.
    pub channels: Vec<ChannelId>,
    /// Capture to receipt.
    pub deadline: Span,
    /// How old the data of the last receipt may be when the next ones come, if that is asked for.
    pub age: Option<Span>,
    /// From something that happens to the first receipt that can show it, if that is asked for.
    pub reaction: Option<Span>,
    /// Where the description says so.
    pub origin: Origin,
}

/// Channels that share one slot of stations of Network Code: at most one of them sends in a round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alternatives {
    /// Unique.
    pub name: String,
    /// The channel whose message decides. Talkers of alternatives are listeners of it.
    pub mode: ChannelId,
    /// Where in that message the word begins that decides, an unsigned number with its most
    /// significant octet first; a multiple of 4.
    pub offset: Octets,
    /// At least two, none twice and none in two tables, with different values.
    pub channels: Vec<AlternativeChannel>,
    /// Where the description says so.
    pub origin: Origin,
}

impl Alternatives {
    /// Whether a channel is its mode or one of its alternatives.
    pub fn is_about(&self, channel: ChannelId) -> bool {
        self.mode == channel || self.channels.iter().any(|it| it.channel == channel)
    }
}

/// One of several alternatives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AlternativeChannel {
    /// The channel.
    pub channel: ChannelId,
    /// It sends only if the word has this value.
    pub value: u32,
}

/// Clocks that gPTP (IEEE 802.1AS) keeps together: those of all nodes without a described error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Synchronisation {
    /// The node whose clock the others follow.
    pub grandmaster: NodeId,
    /// How nodes note the times of messages.
    pub stamps: StampKind,
    /// Where oscillators and jitter come from.
    pub seed: u64,
    /// Whether gPTP takes part in runs and simulations, where faults meet it and it steers the
    /// clocks. If not, clocks have the size of errors that it leaves, all the time.
    pub in_run: bool,
    /// Where it was described.
    pub origin: Origin,
}

/// How nodes note the times of messages of gPTP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum StampKind {
    /// In the network interface, to 8 ns.
    #[default]
    Hardware,
    /// As coarsely as IEEE 802.1AS permits (B.1.2): to 40 ns.
    Coarse,
    /// In the kernel, up to 20 µs late.
    Software,
}

/// In which engine a run takes place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum TimeMode {
    /// Deterministic virtual time, as fast as it goes.
    Virtual,
    /// The engine paced against the machine's clock.
    Real,
}

/// How the paths of channels are chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Routing {
    /// Each takes a path of the fewest links.
    #[default]
    Shortest,
    /// Where these overload a port, some take other paths.
    LoadAware,
}

/// What the idleSlopes of classes A and B are chosen for, where the description sets none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum IdleSlopes {
    /// What the channels send.
    #[default]
    Rate,
    /// Also that messages are in time: greater ones, where the bounds exceed fixed delays.
    Deadline,
}

/// Who makes the reservations of a protected run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ReservationMode {
    /// The plan, before the run: management configures the bridges.
    #[default]
    Plan,
    /// The stream reservation protocol, in the run: hosts and bridges agree (802.1Q clause 35).
    Srp,
}

impl ReservationMode {
    /// The name that descriptions and tables have for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Plan => "plan",
            Self::Srp => "srp",
        }
    }
}

/// What keeps the channels of a run apart on their network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Backend {
    /// Reservations, shapers and gates of bridges.
    #[default]
    Bridges,
    /// Slots in rounds that hosts keep as stations of Network Code.
    NetworkCode,
}

impl Backend {
    /// The name that the command line, descriptions and tables have for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Bridges => "bridges",
            Self::NetworkCode => "network-code",
        }
    }
}

/// How frames get from a program to a network of the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum TransportKind {
    /// AF_PACKET: frames through the kernel's network stack and its queueing disciplines.
    #[default]
    Packet,
    /// AF_XDP: frames through rings shared with the driver.
    Xdp,
    /// IEEE 1722 over UDP and IPv4 (1722-2016 Annex J), for networks without TSN.
    Udp4,
    /// The same over IPv6.
    Udp6,
}

impl TransportKind {
    /// The name that the command line, files and tables have for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Packet => "packet",
            Self::Xdp => "xdp",
            Self::Udp4 => "udp4",
            Self::Udp6 => "udp6",
        }
    }

    /// The transport of that name.
    pub fn named(name: &str) -> Option<Self> {
        let all = [Self::Packet, Self::Xdp, Self::Udp4, Self::Udp6];
        all.into_iter().find(|kind| kind.as_str() == name)
    }
}

/// How to run a system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunSettings {
    /// How long talkers may write.
    pub duration: Span,
    /// Where all randomness comes from.
    pub seed: u64,
    /// In which engine.
    pub time: TimeMode,
    /// Whether reservations are made.
    pub protected: bool,
    /// Whether the description says so itself: reservations are the default.
    pub asks_protection: bool,
    /// Who makes them.
    pub reservation: ReservationMode,
    /// What keeps channels apart. Stations reserve nothing, and `protected` is always true there.
    pub backend: Backend,
    /// Stations: by how much they may hand over frames, and take what has come, later than their
    /// programs say.
    pub slot_error: Span,
    /// Whether noise sources send.
    pub noise: bool,
    /// Whether programs run that do not join.
    pub companions: bool,
    /// How the system schedules programs with a priority, in real-time runs.
    pub policy: SchedulingPolicy,
    /// What is set on each machine, in runs on several machines.
    pub tune: TuneProfile,
    /// How long, on the machine's clock, a program may compute without calling Onbeat before it
    /// counts as hung.
    pub hang_timeout: Span,
    /// What the programs may use of the machine.
    pub limits: ProgramLimits,
}

/// What all programs of a run together may use of the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProgramLimits {
    /// Memory, in octets.
    pub memory: Option<u64>,
    /// Processes and threads.
    pub processes: Option<u64>,
}

/// A named variation of the run settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scenario {
    /// Unique.
    pub name: String,
    /// The settings, with what the scenario leaves out taken from [`System::run`].
    pub run: RunSettings,
    /// What is different of programs, each once.
    pub programs: Vec<ProgramVariation>,
}

/// What a scenario says of how a program is scheduled. What it leaves out is the program's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramVariation {
    /// Index into [`System::programs`].
    pub program: usize,
    /// As [`Program::policy`].
    pub policy: Option<SchedulingPolicy>,
    /// As [`Program::priority`].
    pub priority: Option<u8>,
    /// As [`Program::cores`].
    pub cores: Option<Vec<u16>>,
    /// As [`Program::budget`].
    pub budget: Option<CpuBudget>,
}

/// Published figures for one quantity of one thing, shown beside the measured ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Where they are published, as "Austad et al. 2023, Table 7".
    pub source: String,
    /// The scenario that they belong to.
    pub scenario: String,
    /// What they belong to.
    pub of: Subject,
    /// What was measured.
    pub quantity: Quantity,
    /// The largest.
    pub max: Option<Span>,
    /// The smallest.
    pub min: Option<Span>,
    /// The mean.
    pub avg: Option<Span>,
    /// The standard deviation.
    pub stddev: Option<Span>,
    /// Lost messages per thousand.
    pub lost_per_mille: Option<u32>,
    /// What is to be known of them.
    pub note: Option<String>,
}

/// What published figures are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A channel.
    Channel(ChannelId),
    /// Messages over TCP.
    Tcp(TcpId),
    /// A node's clock.
    Clock(NodeId),
}

/// What a set of figures is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Quantity {
    /// Capture to receipt.
    Latency,
    /// Capture to the reader's continuation after its timed wait.
    EndToEnd,
    /// How far a clock is from the network's time, without the sign.
    ClockError,
    /// Target minus wake-up at the talker: negative is late.
    TalkerWakeup,
    /// Target minus wake-up at the listener: negative is late.
    ListenerWakeup,
    /// How far apart talker and listener woke.
    RelativeWakeup,
}
