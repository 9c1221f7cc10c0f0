//! Worst-case delay and backlog in networks of FIFO servers, by network calculus.
//!
//! Pure numbers: a [`FifoNetwork`] is servers with a rate and a latency, and flows with an arrival
//! curve that cross them. It knows no ports, classes or frames. `docs/network-calculus.md` derives
//! what is computed. Everything is an integer, rounded to the side that makes a bound larger.

mod certify;
mod curve;
mod linear;
mod program;
mod separate;
mod simplex;
mod total;
mod tree;
mod work;

pub use curve::{Bucket, Curve};
pub(crate) use work::Work;

use onbeat_model::time::Span;
use onbeat_model::units::BitRate;

/// Servers and the flows that cross them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FifoNetwork {
    /// The servers; [`Hop::server`] is a position in it.
    pub servers: Vec<Server>,
    /// The flows.
    pub flows: Vec<Flow>,
}

/// One FIFO queue and what serves it.
///
/// It serves its flows in the order of arrival, and in any time during which it is never empty,
/// of length *t*, at least `rate·(t − latency)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// The rate that it has for its flows.
    pub rate: BitRate,
    /// How long it may do nothing for them.
    pub latency: Span,
    /// The rate of the link that it feeds, which is an input link of the next server: nothing
    /// leaves faster. At least `rate`.
    pub link_rate: Option<BitRate>,
    /// How packets leave.
    pub output: Departure,
}

/// How packets leave a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Departure {
    /// Bit by bit, as in a fluid: what has left is at the next server at once. An idealisation,
    /// in which most published figures are.
    Bits,
    /// As wholes (store and forward): a packet is at the next server with its last bit, and all
    /// its bits come there at once. A transmission that has begun is not interrupted and goes at
    /// the rate of the line.
    Packets,
    /// As wholes, but a transmission may be interrupted (frame preemption, a slower shaper).
    Fragments,
}

/// Traffic from one source to one or more sinks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// What the source sends: at the first hop, before that hop's delay.
    pub arrival: Curve,
    /// The smallest packet, in nanobits on the line. Zero where all outputs are bits.
    pub smallest: i128,
    /// The largest packet, in nanobits on the line.
    pub largest: i128,
    /// The servers on its path, each after the one before it: a path, or a tree whose first hop is
    /// the root.
    pub hops: Vec<Hop>,
}

/// One server on the path of a flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hop {
    /// Which.
    pub server: usize,
    /// Position in [`Flow::hops`] of the one before; none for the first.
    pub upstream: Option<usize>,
    /// The shortest time from leaving the one before (or from the source) to entering this one.
    pub earliest: Span,
    /// The longest such time.
    pub latest: Span,
    /// The curve to which a regulator restores the flow before this server, if there is one. The
    /// regulator must be free: the flow met this curve before the server upstream as well, which
    /// serves in order (Le Boudec, *A theory of traffic regulators for deterministic networks*,
    /// 2018, theorem 5).
    pub reshaped: Option<Curve>,
}

/// What makes a network one that cannot be analysed at all.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidNetwork {
    /// A server has no rate, a negative latency, or a line slower than its rate.
    #[error("server {0}: rate, latency or line out of range")]
    Server(usize),
    /// A flow's packets or bursts are out of range.
    #[error("flow {0}: burst or packet out of range")]
    Flow(usize),
    /// A hop names no server, is not after its upstream, or has times out of order.
    #[error("flow {flow}, hop {hop}: no such server or upstream, or its times are out of order")]
    Hop {
        /// Position of the flow.
        flow: usize,
        /// Position of its hop.
        hop: usize,
    },
    /// A flow crosses a server twice.
    #[error("flow {flow} crosses server {server} twice")]
    Twice {
        /// Position of the flow.
        flow: usize,
        /// Position of the server.
        server: usize,
    },
}

/// Bursts beyond this, 10¹¹ bit, are refused.
const AMOUNT_MAX: i128 = 100_000_000_000_000_000_000;

/// Rates beyond this, 1 Tb/s, are refused.
const RATE_MAX: u64 = 1_000_000_000_000;

/// A delay beyond this is no bound that anybody could use.
const DELAY_MAX: Span = Span::from_s(3_600);

/// What was computed, for all flows and servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Per flow and hop.
    pub hops: Vec<Vec<HopBound>>,
    /// Per server: the most that waits in it at once, in nanobits, with the packet that is being
    /// sent.
    pub backlog: Vec<i128>,
}

/// What a flow meets at one hop at most.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HopBound {
    /// What enters the server.
    pub arrival: Curve,
    /// From entering the server to the start of the transmission; for [`Departure::Bits`] as
    /// `delay`.
    pub wait: Span,
    /// From entering the server to leaving it, with the last bit.
    pub delay: Span,
    /// From the source to leaving the server: for the last hop the bound end to end.
    pub total: Span,
    /// Which method gave `total`.
    pub method: Method,
}

/// How a bound was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// Total flow analysis with line shaping: the sum of the worst delays of each server.
    TotalFlow,
    /// A linear program over the dates at which the servers on the path begin to be busy.
    Linear,
}

impl FifoNetwork {
    /// Whether it can be analysed.
    ///
    /// # Errors
    /// The first thing that prevents the analysis.
    pub fn check(&self) -> Result<(), InvalidNetwork> {
        for (at, server) in self.servers.iter().enumerate() {
            let rates = server.rate.as_bps() > 0 && server.rate.as_bps() <= RATE_MAX;
            let line = server.link_rate.is_none_or(|l| l >= server.rate && l.as_bps() <= RATE_MAX);
            if !rates || !line || server.latency < Span::ZERO || server.latency > DELAY_MAX {
                return Err(InvalidNetwork::Server(at));
            }
        }
        for (at, flow) in self.flows.iter().enumerate() {
            self.check_flow(at, flow)?;
        }
        Ok(())
    }

    fn check_flow(&self, at: usize, flow: &Flow) -> Result<(), InvalidNetwork> {
        let curve = |c: &Curve| {
            let bucket =
                |b: &Bucket| b.burst <= AMOUNT_MAX && b.rate.as_bps() <= RATE_MAX && b.burst > 0;
            c.buckets().iter().all(bucket) && c.burst() >= flow.largest
        };
        let packets = 0 <= flow.smallest && flow.smallest <= flow.largest;
        if !packets || !curve(&flow.arrival) || flow.hops.is_empty() {
            return Err(InvalidNetwork::Flow(at));
        }
        let mut crossed = std::collections::HashSet::new();
        for (index, hop) in flow.hops.iter().enumerate() {
            let after = hop.upstream.map_or(index == 0, |up| up < index);
            let times =
                Span::ZERO <= hop.earliest && hop.earliest <= hop.latest && hop.latest <= DELAY_MAX;
            let known = hop.server < self.servers.len();
            if !after || !times || !known || !hop.reshaped.as_ref().is_none_or(curve) {
                return Err(InvalidNetwork::Hop { flow: at, hop: index });
            }
            if !crossed.insert(hop.server) {
                return Err(InvalidNetwork::Twice { flow: at, server: hop.server });
            }
        }
        Ok(())
    }

    /// Bounds by total flow analysis with line shaping alone; none where there is no bound: a
    /// server is overloaded, or the delays of servers that wait for each other in a cycle grow
    /// from each other without end.
    ///
    /// # Errors
    /// What [`FifoNetwork::check`] says.
    pub fn total_flow(&self) -> Result<Option<Bounds>, InvalidNetwork> {
        self.check()?;
        Ok(total::analyse(self, &[]))
    }

    /// The best bounds of all methods: never above those of [`FifoNetwork::total_flow`], and there
    /// for many networks where that finds none.
    ///
    /// # Errors
    /// What [`FifoNetwork::check`] says.
    pub fn bounds(&self) -> Result<Option<Bounds>, InvalidNetwork> {
        self.bounds_within(&Work::default())
    }

    /// The best bounds that do not take more work than is left.
    pub(crate) fn bounds_within(&self, work: &Work) -> Result<Option<Bounds>, InvalidNetwork> {
        self.check()?;
        Ok(linear::analyse(self, total::analyse(self, &[]), work))
    }
}
