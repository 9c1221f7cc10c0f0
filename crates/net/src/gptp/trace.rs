//! What a simulation saw.

use onbeat_model::time::{NetTime, Span, SyncedTime};

/// All clocks at one instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// True time.
    pub at: NetTime,
    /// The node whose clock is the measure: the grandmaster, or the last one, while it has stopped
    /// and no other has taken over. `None` before the first.
    pub reference: Option<usize>,
    /// What each node's synchronised clock reads; `None` while it was never set, or has stopped.
    pub clocks: Vec<Option<SyncedTime>>,
    /// By node: whose time it has, by its own belief; `None` while it has none.
    pub follows: Vec<Option<u16>>,
    /// What the reference's clock reads, even if it has stopped.
    pub reference_clock: Option<SyncedTime>,
}

impl Sample {
    /// How far a node's clock is ahead of the reference's.
    pub fn error(&self, node: usize) -> Option<Span> {
        Some(self.clocks[node]? - self.reference_clock?)
    }
}

/// A node at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeSummary {
    /// The largest step of its synchronised clock after it was set, rounded up to nanoseconds.
    pub largest_step: Span,
    /// The largest and the smallest rate of its synchronised clock against its own one, in parts
    /// in 10⁹; `None` if it was never set.
    pub rates_ppb: Option<[i64; 2]>,
    /// Messages that it could not use.
    pub ignored: u64,
}

/// What a simulation saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// In order of time.
    pub samples: Vec<Sample>,
    /// By node.
    pub nodes: Vec<NodeSummary>,
    /// Messages that left.
    pub messages: u64,
}

/// Figures of errors without their signs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorFigures {
    /// How many samples they are of.
    pub count: usize,
    /// Half of all are at most this.
    pub p50: Span,
    /// 99 % are.
    pub p99: Span,
    /// 99.99 % are.
    pub p9999: Span,
    /// All are.
    pub max: Span,
}

impl Trace {
    /// The errors of a node from an instant on; `None` if there are none.
    ///
    /// # Panics
    /// When there is no such node.
    pub fn error(&self, node: usize, from: NetTime) -> Option<ErrorFigures> {
        let errors = self.samples.iter().filter(|s| s.at >= from).filter_map(|s| s.error(node));
        figures(errors.map(Span::abs).collect())
    }

    /// The largest error of all nodes in each sample from an instant on.
    pub fn worst(&self, from: NetTime) -> Option<ErrorFigures> {
        let worst =
            |s: &Sample| (0..s.clocks.len()).filter_map(|n| s.error(n)).map(Span::abs).max();
        figures(self.samples.iter().filter(|s| s.at >= from).filter_map(worst).collect())
    }
}

fn figures(mut errors: Vec<Span>) -> Option<ErrorFigures> {
    errors.sort_unstable();
    let count = errors.len();
    // The smallest that at least this part of all do not exceed.
    let at = |part: usize| errors[(count * part).div_ceil(10_000).saturating_sub(1)];
    let max = *errors.last()?;
    Some(ErrorFigures { count, p50: at(5_000), p99: at(9_900), p9999: at(9_999), max })
}
