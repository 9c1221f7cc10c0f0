//! Modelled traffic: streams that no program writes, and what goes wrong on purpose.

use crate::diagnostic::Origin;
use crate::port::{Policing, TokenBucket};
use crate::system::{LinkId, NodeId};
use crate::time::{NetTime, Span};
use crate::units::Octets;

/// A stream of frames that the engine makes itself, with a bound where its source has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stream {
    /// Unique among streams and channels.
    pub name: String,
    /// The host that sends.
    pub talker: NodeId,
    /// The hosts that receive, at least one, none twice, never the talker.
    pub listeners: Vec<NodeId>,
    /// The queue of every port on the way, 0 to 7.
    pub traffic_class: u8,
    /// VLAN identifier.
    pub vlan: u16,
    /// Priority code point in its frames.
    pub pcp: u8,
    /// The shortest and the longest frame: destination address to FCS, tagged.
    pub frame: [Octets; 2],
    /// When its frames are released, by the talker's clock.
    pub source: Source,
    /// The first release; added to every time of the source.
    pub phase: Span,
    /// Its bucket at every queue with asynchronous shaping on its path.
    pub regulator: Option<TokenBucket>,
    /// What its first bridge drops.
    pub policing: Option<Policing>,
    /// Which paths it takes.
    pub paths: PathRequest,
    /// Release to receipt, if the description sets a limit.
    pub deadline: Option<Span>,
    /// Where the description says so.
    pub origin: Origin,
}

/// Which paths the description asks for. With two or more, each bridge where they part replicates
/// the frames, and each where they join again eliminates the duplicates (802.1CB-2017); what is
/// replicated has one listener.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathRequest {
    /// Per path, the bridges between talker and listener.
    pub along: Vec<Vec<NodeId>>,
    /// How many paths the plan finds that share no link and no bridge but those of the talker's and
    /// the listener's link; 0: none. Not with `along`. Without either: the shortest path.
    pub disjoint: u32,
    /// How many sequence numbers back a duplicate is recognised (frerSeqRcvyHistoryLength); 0 where
    /// frames are not replicated.
    pub history: u32,
}

impl PathRequest {
    /// The history where the description gives none: enough for paths that differ by some frames.
    /// 802.1CB-2017 10.4.1.6 (frerSeqRcvyHistoryLength) starts from 2.
    pub const HISTORY: u32 = 64;

    /// Given paths, with the usual history.
    pub fn along(along: Vec<Vec<NodeId>>) -> Self {
        let history = if along.len() > 1 { Self::HISTORY } else { 0 };
        Self { along, disjoint: 0, history }
    }

    /// Whether the plan may choose a path.
    pub fn is_free(&self) -> bool {
        self.along.is_empty() && self.disjoint == 0
    }

    /// Whether frames take more than one path.
    pub fn is_replicated(&self) -> bool {
        self.along.len() > 1 || self.disjoint > 1
    }
}

/// When a stream's frames are released.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// One frame each interval, each up to `jitter` later than its instant (drawn uniformly).
    Periodic {
        /// From one instant to the next.
        interval: Span,
        /// The most by which a frame is later.
        jitter: Span,
    },
    /// Frames at least `interval` apart, `mean` on average (drawn uniformly from `interval` to
    /// `2 · mean − interval`).
    Sporadic {
        /// The least time between two.
        interval: Span,
        /// The mean time; at least the least.
        mean: Span,
    },
    /// `frames` at once, then nothing until one `interval` has gone by.
    Bursty {
        /// From one burst to the next.
        interval: Span,
        /// In one burst, at least 1.
        frames: u32,
    },
    /// Exactly these frames: time after the phase, length. Sorted by time.
    Trace(Vec<(Span, Octets)>),
}

/// Something that goes wrong for a while.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What.
    pub kind: FaultKind,
    /// From when on.
    pub from: NetTime,
    /// Until when, without it; the end of time if it never ends.
    pub until: NetTime,
    /// Where the description says so.
    pub origin: Origin,
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// Frames that are on the link when it fails, or start on it while it is down, are lost.
    LinkDown(LinkId),
    /// A host or bridge sends and forwards nothing; what it holds when it fails is lost.
    NodeDown(NodeId),
    /// Frames on the link, either way, are damaged and thus lost with this probability.
    FrameErrors {
        /// Which link.
        link: LinkId,
        /// The probability in parts per 10⁹.
        per_billion: u32,
    },
    /// The stream, by its place in the system's list, ignores its source: it sends its longest
    /// frame back to back at the rate of its talker's link.
    Babble(u32),
    /// The node's clock reads so much more.
    ClockStep {
        /// Whose.
        node: NodeId,
        /// How much more; less if it is negative.
        by: Span,
    },
}
