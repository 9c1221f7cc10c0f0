//! The plan's vocabulary: what crate `plan` computes and the engines, the report and the CLI read.

use crate::port::{PortSettings, QUEUES, Selection, TokenBucket};
use crate::system::{BEST_EFFORT_QUEUE, ChannelId, Class, NoiseId, PortId, StreamIndex, System};
use crate::time::Span;
use crate::units::BitRate;
use std::collections::HashSet;

/// Routes, reservations and bounds of one system under one choice of protection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Whether reservations were made.
    pub protected: bool,
    /// One per channel, in the order of the channels.
    pub channels: Vec<ChannelPlan>,
    /// One per noise source, in the order of the sources: the egress ports on its path.
    pub noise: Vec<Vec<PortId>>,
    /// One per flow of messages over TCP, in their order: the egress ports on the path of its data
    /// and on that of its acknowledgements.
    pub tcp: Vec<[Vec<PortId>; 2]>,
    /// One per stream, in the order of the streams.
    pub streams: Vec<StreamPlan>,
    /// One per port, in the order of the ports: how it sends.
    pub ports: Vec<PortPlan>,
    /// One per port: the most that each queue may hold, where that is bounded.
    pub backlogs: Vec<[Option<Backlog>; QUEUES]>,
    /// One per chain, in the order of the chains: its worst case, if every channel has a bound.
    pub chains: Vec<Option<Span>>,
}

impl Plan {
    /// The plan of one channel.
    pub fn channel(&self, id: ChannelId) -> &ChannelPlan {
        &self.channels[id.index()]
    }
    /// When a modelled talker of a channel first writes, by its clock: as described, or just in
    /// time for the channel's launch time.
    pub fn phase(&self, system: &System, id: ChannelId) -> Span {
        let launch = self.channel(id).launch.as_ref();
        launch.map_or(system.channel(id).phase, |launch| launch.write)
    }
    /// The plan of one stream.
    pub fn stream(&self, id: StreamIndex) -> &StreamPlan {
        &self.streams[id.index()]
    }
    /// The path of one noise source.
    pub fn noise(&self, id: NoiseId) -> &[PortId] {
        &self.noise[id.index()]
    }
}

/// What the plan says of one channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelPlan {
    /// Whether it has a reservation or a slot; without one it travels as best effort and has no
    /// bound.
    pub protected: bool,
    /// One path per listener, in the order of the listeners: egress ports from the talker's on.
    /// These form a tree: where two meet the same port, they share all before it. To the talker
    /// itself it is the talker's port. Of a replicated channel, all paths to its only listener.
    pub paths: Vec<Vec<PortId>>,
    /// The bandwidth of its true rate: one frame per interval, as it is on the wire.
    pub true_rate: BitRate,
    /// The bandwidth that is reserved: at least one frame per class measurement interval; of class
    /// [`Class::Asynchronous`] the greatest rate of its schedulers.
    pub reserved_rate: BitRate,
    /// One per listener, if the channel is protected.
    pub bounds: Vec<Bound>,
    /// When its frames leave, if it is of class [`Class::Scheduled`] and protected.
    pub launch: Option<Launch>,
    /// Its ATS schedulers, upstream first, if it is of class [`Class::Asynchronous`] and protected.
    pub schedulers: Vec<AtsScheduler>,
    /// Its slot, if stations carry it: its messages are in no queue of its class then, nothing is
    /// reserved for it, and its bounds are those of the slot.
    pub slot: Option<Slot>,
}

/// The slot of a channel in the rounds of stations (docs/network-code.md).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// The identifier of its message.
    pub message: u8,
    /// The message's length, in words of 32 bits.
    pub words: u16,
    /// How long a round takes by the master's clock.
    pub round: Span,
    /// The slot is in each `every`-th round,
    pub every: u32,
    /// and the first of these is this one, from 0.
    pub first_round: u32,
    /// Where it begins and ends, from the beginning of its round.
    pub start: Span,
    /// See [`Slot::start`].
    pub end: Span,
}

/// The ATS scheduler (802.1Q-2022 8.6.5.6) of one channel for one port of a bridge. A talker has
/// none: what its channels send keeps to their rates, or is not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AtsScheduler {
    /// The egress port to whose queue it gives eligibility times.
    pub port: PortId,
    /// The reception port. Schedulers of channels that come in by the same one, for the same egress
    /// port, are a group: their frames become eligible in the order in which they came.
    pub group: PortId,
    /// CommittedInformationRate and CommittedBurstSize, by the clock of the port's node.
    pub bucket: TokenBucket,
}

/// When the frames of a scheduled channel leave each port (802.1Q-2022 8.6.8.4).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Launch {
    /// The launch time: when a frame is queued at the talker's port, by the talker's clock, in each
    /// interval of the channel. What its program writes in between waits for it in the talker's
    /// stack; at each launch time one frame leaves. Less than an interval.
    pub at: Span,
    /// When a message has to be written at the latest to leave at the launch time, by the talker's
    /// clock. Less than an interval.
    pub write: Span,
    /// At each port of the tree, the talker's first.
    pub windows: Vec<PortWindow>,
}

/// A window of a port's gates that one frame has for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortWindow {
    /// The egress port.
    pub port: PortId,
    /// When it opens, by the clock of the port's node, counted from the begin of the interval of
    /// the launch time; it may be in a later interval.
    pub start: Span,
    /// For how long it is open.
    pub span: Span,
}

impl ChannelPlan {
    /// Whether bridges reserve for it: it is protected, and no slot of stations carries it.
    pub fn is_reserved(&self) -> bool {
        self.protected && self.slot.is_none()
    }
    /// The queue that the frames of a channel of this class wait in; those of stations go first.
    pub fn queue(&self, class: Class) -> usize {
        match (self.slot.is_some(), self.protected) {
            (true, _) => QUEUES - 1,
            (false, true) => class.queue(),
            (false, false) => BEST_EFFORT_QUEUE,
        }
    }
    /// The parameters of its ATS scheduler for a port; none where it has none.
    pub fn scheduler(&self, port: PortId) -> Option<&AtsScheduler> {
        self.schedulers.iter().find(|scheduler| scheduler.port == port)
    }
    /// The worst bound over all listeners.
    pub fn bound(&self) -> Option<Span> {
        self.bounds.iter().map(Bound::total).max()
    }
    /// Each path, with the place of its listener among those of its channel.
    pub fn paths_to_listeners(&self, listeners: usize) -> impl Iterator<Item = (usize, &[PortId])> {
        let paths = self.paths.iter().enumerate();
        paths.map(move |(at, path)| (if listeners == 1 { 0 } else { at }, &path[..]))
    }
    /// Every egress port of the tree once, the talker's first.
    pub fn tree_ports(&self) -> Vec<PortId> {
        let mut seen = HashSet::new();
        self.paths.iter().flatten().copied().filter(|port| seen.insert(*port)).collect()
    }
}

/// The worst-case latency of a channel at one listener, as the sum of its terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    /// In the order in which a message meets them.
    pub terms: Vec<BoundTerm>,
    /// The shortest latency that is possible: jitter is at most the total minus this.
    pub best: Span,
}

impl Bound {
    /// Capture to receipt at most.
    pub fn total(&self) -> Span {
        self.terms.iter().map(|t| t.span).sum()
    }
    /// The largest term; the first of those that are equal.
    pub fn dominating(&self) -> Option<&BoundTerm> {
        self.terms.iter().rev().max_by_key(|term| term.span)
    }
}

/// One term of a bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoundTerm {
    /// What delays the message here, for a person: "class A queue and link at cat1.p2".
    pub what: String,
    /// By how much at most.
    pub span: Span,
}

/// Why a flow has no bound at a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unbounded {
    /// What is wrong.
    pub cause: Cause,
    /// The port where it is.
    pub port: PortId,
    /// The queue of that port.
    pub queue: u8,
    /// For a person: names queue, port and what is wrong there.
    pub why: String,
}

/// What leaves a flow without a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The queue, or one that goes first, holds traffic that nothing limits: noise, or best effort
    /// that no description knows.
    UnlimitedTraffic,
    /// A stream babbles there, and no meter holds it.
    Babbling,
    /// More may come than the queue is certain to be served.
    Overload,
    /// The queue's gate has no window in which its frames surely fit.
    ShortWindows,
    /// No bound is computed for preemptable queues with credit or gates.
    Preemption,
    /// Regulators may hold frames without end.
    Regulator,
    /// Queues wait for each other around a circle, and their delays do not settle.
    Circle,
    /// A frame may take longer than an hour.
    TooLong,
}

impl Cause {
    /// The cause as it is in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::UnlimitedTraffic => "unlimited-traffic",
            Self::Babbling => "babbling",
            Self::Overload => "overload",
            Self::ShortWindows => "short-windows",
            Self::Preemption => "preemption",
            Self::Regulator => "regulator",
            Self::Circle => "circle",
            Self::TooLong => "too-long",
        }
    }
}

/// How one port sends, and how much of that is for reserved channels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortPlan {
    /// The description's settings, with a credit-based shaper for each class that is reserved, and
    /// asynchronous shaping where channels of that class pass a bridge.
    pub settings: PortSettings,
    /// Class A streams that leave here.
    pub class_a_streams: u32,
    /// Class B streams that leave here.
    pub class_b_streams: u32,
    /// Channels of class [`Class::Asynchronous`] that leave here.
    pub asynchronous_streams: u32,
    /// The sum of what they reserve here.
    pub asynchronous_rate: BitRate,
}

impl PortPlan {
    /// The idleSlope of a class's queue (802.1Q-2022 34.3); zero when it is not shaped so.
    pub fn idle_slope(&self, class: Class) -> BitRate {
        match self.settings.selection[class.queue()] {
            Selection::CreditBased { idle_slope } => idle_slope,
            _ => BitRate::default(),
        }
    }

    /// Gives a class's queue a credit-based shaper; zero takes it away.
    pub fn set_idle_slope(&mut self, class: Class, idle_slope: BitRate) {
        self.settings.selection[class.queue()] = match idle_slope.as_bps() {
            0 => Selection::StrictPriority,
            _ => Selection::CreditBased { idle_slope },
        };
    }
}

/// What the plan says of one modelled stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamPlan {
    /// Per listener its paths, each the egress ports from the talker's on. A listener of a stream
    /// that is replicated has several; all others have one each, and form a tree.
    pub paths: Vec<Vec<Vec<PortId>>>,
    /// Per listener, if it has a bound; empty before the analysis.
    pub bounds: Vec<Option<Bound>>,
    /// Per listener, why it has none; empty before the analysis.
    pub unbounded: Vec<Option<Unbounded>>,
    /// Whether the bounds hold for its phase, and those of the streams that it shares a gate with,
    /// as described only: it was followed through its windows.
    pub phase_specific: bool,
}

/// The most that may wait in one queue of a port at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Frames, without the one that is being sent.
    pub frames: u64,
    /// Octets of these frames.
    pub octets: u64,
}
