//! Families of FIFO networks for tests and benchmarks: tandems, rings and meshes of equal servers
//! at a given load. 100 Mb/s, 10 µs of latency, bursts of 1 kB.

use onbeat_bounds::fifo::{Bounds, Curve, Departure, FifoNetwork, Flow, Hop, Server};
use onbeat_model::time::Span;
use onbeat_model::units::BitRate;

/// 1 kB in nanobits.
pub(crate) const BURST: i128 = 8_000 * 1_000_000_000;
/// The rate of every server and line.
pub(crate) const RATE: u64 = 100_000_000;

/// How the servers are joined and what crosses them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// A line of servers: one flow along all of them, and one over each two neighbours.
    Tandem,
    /// A circle: one flow from each server around to the one before it.
    Ring,
    /// Pairs of servers, each feeding both of the next pair, and one last server of twice the
    /// rate behind the last pair: one flow on each way through.
    Mesh,
}

/// A flow of `percent·RATE / 100 / sharing` on `path`.
pub(crate) fn flow(path: &[usize], burst: i128, rate: u64) -> Flow {
    let hop = |(at, server): (usize, &usize)| Hop {
        server: *server,
        upstream: at.checked_sub(1),
        earliest: Span::ZERO,
        latest: Span::ZERO,
        reshaped: None,
    };
    Flow {
        arrival: Curve::bucket(burst, BitRate::from_bps(rate)),
        smallest: 0,
        largest: 0,
        hops: path.iter().enumerate().map(hop).collect(),
    }
}

/// A server of [`RATE`] and `10 µs` whose line is as fast.
pub(crate) fn server(rate: u64) -> Server {
    Server {
        rate: BitRate::from_bps(rate),
        latency: Span::from_us(10),
        link_rate: Some(BitRate::from_bps(rate)),
        output: Departure::Bits,
    }
}

/// The servers that each flow crosses, in order.
pub(crate) fn paths(shape: Shape, size: usize) -> Vec<Vec<usize>> {
    match shape {
        Shape::Tandem => std::iter::once((0..size).collect())
            .chain((1..size).map(|at| vec![at - 1, at]))
            .collect(),
        Shape::Ring => (0..size).map(|s| (0..size).map(|i| (s + i) % size).collect()).collect(),
        Shape::Mesh => (0..1_usize << (size / 2))
            .map(|way| {
                let pairs =
                    (0..size / 2).map(|level| 2 * level + (way >> (size / 2 - 1 - level) & 1));
                pairs.chain([size - 1]).collect()
            })
            .collect(),
    }
}

/// The rate of each flow on these paths if the most crossed servers are loaded to `percent`.
pub(crate) fn share(paths: &[Vec<usize>], size: usize, percent: u64) -> u64 {
    let sharing =
        (0..size).map(|s| paths.iter().filter(|p| p.contains(&s)).count()).max().expect("a server");
    RATE * percent / 100 / u64::try_from(sharing).expect("few")
}

/// The network of `size` servers whose busiest ones are loaded to `percent`.
pub(crate) fn network(shape: Shape, size: usize, percent: u64) -> FifoNetwork {
    let paths = paths(shape, size);
    let rate = share(&paths, size, percent);
    let mut servers = vec![server(RATE); size];
    if shape == Shape::Mesh {
        servers[size - 1].rate = BitRate::from_bps(2 * RATE);
        servers[size - 1].link_rate = Some(BitRate::from_bps(2 * RATE));
    }
    FifoNetwork { servers, flows: paths.iter().map(|p| flow(p, BURST, rate)).collect() }
}

/// The longest time of any flow to the end of its way.
pub(crate) fn worst(bounds: &Bounds) -> Span {
    let ends = bounds.hops.iter().map(|hops| hops.last().expect("a hop").total);
    ends.max().expect("a flow")
}
