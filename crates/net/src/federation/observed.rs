//! What was seen of a federation.

use onbeat_model::federation::ReactionId;
use onbeat_runtime::federate::Extent;
use std::collections::BTreeMap;

/// A reaction and the position of its cause.
pub type ChainStep = (ReactionId, usize);

/// What was seen in one run or in several.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FederationObserved {
    /// How many runs.
    pub runs: u32,
    /// Per federate.
    pub federates: Vec<FederateObserved>,
    /// Per reaction.
    pub reactions: Vec<ReactionObserved>,
    /// Per connection.
    pub connections: Vec<ConnectionObserved>,
    /// From the tag of the source to the end of the last reaction, of each part of a chain from its
    /// source on in which no reaction is twice.
    pub chains: BTreeMap<Vec<ChainStep>, Extent>,
    /// Whether there were more parts of chains than are followed.
    pub is_chain_cut: bool,
    /// Runs that ended because too much happened ([`super::RunLimits`]).
    pub cut: u32,
    /// Whether one was interrupted.
    pub is_interrupted: bool,
    /// How often something happened.
    pub events: u64,
}

/// What was seen of a federate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FederateObserved {
    /// Tags that it began.
    pub tags: u64,
    /// Runs in which its last tag was over in time.
    pub ended: u32,
    /// What it dropped because too many tags waited.
    pub overflows: u64,
}

/// What was seen of a reaction, relative to its tag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReactionObserved {
    /// When it began, or the handler of its deadline.
    pub release: Extent,
    /// When that was done.
    pub finish: Extent,
    /// How often the handler executed.
    pub misses: u64,
}

/// What was seen of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionObserved {
    /// When messages were sent, relative to the tag at which the writers executed.
    pub sent: Extent,
    /// When the reader had them, by its clock and relative to their tags.
    pub arrived: Extent,
    /// From the capture to when the message was at the reader's host, in true time; of those that
    /// have a channel.
    pub latency: Extent,
    /// Messages that the reader had when their tag, or the part of it that needs them, had begun;
    /// and by how much its clock was ahead of their tags.
    pub tardy: Extent,
    /// Messages that were at the reader's host when its clock read more than their capture time and
    /// the channel's fixed delay; and by how much.
    pub late: Extent,
    /// Messages that waited at the sender for the channel's declared rate.
    pub held: u64,
    /// Messages whose frames did not come, although the run was not cut.
    pub lost: u64,
}

impl FederationObserved {
    /// Nothing of a federation of this size.
    pub(super) fn new(federates: usize, reactions: usize, connections: usize) -> Self {
        Self {
            federates: vec![FederateObserved::default(); federates],
            reactions: vec![ReactionObserved::default(); reactions],
            connections: vec![ConnectionObserved::default(); connections],
            ..Self::default()
        }
    }

    /// Adds what was seen in other runs of the same federation.
    pub fn merge(&mut self, other: &Self) {
        if self.runs == 0 {
            *self = other.clone();
            return;
        }
        self.runs += other.runs;
        for (own, other) in self.federates.iter_mut().zip(&other.federates) {
            own.tags += other.tags;
            own.ended += other.ended;
            own.overflows += other.overflows;
        }
        for (own, other) in self.reactions.iter_mut().zip(&other.reactions) {
            own.release.merge(&other.release);
            own.finish.merge(&other.finish);
            own.misses += other.misses;
        }
        for (own, other) in self.connections.iter_mut().zip(&other.connections) {
            own.sent.merge(&other.sent);
            own.arrived.merge(&other.arrived);
            own.latency.merge(&other.latency);
            own.tardy.merge(&other.tardy);
            own.late.merge(&other.late);
            own.held += other.held;
            own.lost += other.lost;
        }
        for (links, extent) in &other.chains {
            self.chains.entry(links.clone()).or_default().merge(extent);
        }
        self.is_chain_cut |= other.is_chain_cut;
        self.cut += other.cut;
        self.is_interrupted |= other.is_interrupted;
        self.events += other.events;
    }
}
