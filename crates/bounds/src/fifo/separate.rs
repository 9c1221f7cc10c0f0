//! Separate flow analysis: what a FIFO server leaves to one flow, along its path in a tree.

use super::curve::ceil;
use super::total::span;
use super::tree::Forest;
use super::{Bounds, FifoNetwork};
use onbeat_model::time::Span;
use std::collections::BTreeMap;

/// The longest time from entering one server to leaving another, without the constant delays
/// between, as far as this method tells. `bounds` has what each flow brings to each server.
///
/// A FIFO server of rate *R* and latency *T* whose other flows together are below *b + ρt* serves a
/// flow at *R − ρ* after *T + b/R* (Le Boudec and Thiran, *Network Calculus*, proposition 6.2.1
/// with θ chosen so): along the path the latencies add up and the smallest rate counts.
pub(crate) fn paths(
    network: &FifoNetwork,
    forest: &Forest,
    bounds: &Bounds,
) -> BTreeMap<(usize, usize), Span> {
    let mut sums = vec![(0_i128, 0_i128); network.servers.len()];
    for (flow, hops) in network.flows.iter().zip(&bounds.hops) {
        for (hop, bound) in flow.hops.iter().zip(hops) {
            let bucket = bound.arrival.sustained();
            sums[hop.server].0 += bucket.burst;
            sums[hop.server].1 += bucket.bps();
        }
    }
    let mut paths = BTreeMap::new();
    for sub_flow in &forest.sub_flows {
        let arrival = |at: usize| bounds.hops[sub_flow.flow][sub_flow.hops[at]].arrival.sustained();
        let (mut latency, mut slowest) = (0_i128, i128::MAX);
        for (at, server) in sub_flow.servers.iter().enumerate() {
            let of = &network.servers[*server];
            let rate = i128::from(of.rate.as_bps());
            let own = arrival(at);
            latency += i128::from(of.latency.as_ns()) + ceil(sums[*server].0 - own.burst, rate);
            slowest = slowest.min(rate - sums[*server].1 + own.bps());
            if slowest <= 0 {
                break;
            }
            let Some(delay) = span(latency + ceil(arrival(0).burst, slowest)) else { break };
            let best = paths.entry((sub_flow.servers[0], *server)).or_insert(delay);
            *best = delay.min(*best);
        }
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fifo::{Curve, Departure, Flow, Hop, Server};
    use onbeat_model::units::BitRate;

    #[test]
    fn the_others_bursts_delay_a_flow_and_their_rates_slow_it_down() {
        let flow = |path: &[usize], bits: i128, mbps: u64| Flow {
            arrival: Curve::bucket(bits * 1_000_000_000, BitRate::from_mbps(mbps)),
            smallest: 0,
            largest: 0,
            hops: path
                .iter()
                .enumerate()
                .map(|(at, server)| Hop {
                    server: *server,
                    upstream: at.checked_sub(1),
                    earliest: Span::ZERO,
                    latest: Span::ZERO,
                    reshaped: None,
                })
                .collect(),
        };
        let server = Server {
            rate: BitRate::from_mbps(100),
            latency: Span::from_us(10),
            link_rate: None,
            output: Departure::Bits,
        };
        let flows = vec![flow(&[0, 1], 8_000, 10), flow(&[0], 4_000, 20), flow(&[1], 2_000, 50)];
        let network = FifoNetwork { servers: vec![server; 2], flows };
        let bounds = network.total_flow().unwrap().expect("a bound");
        let paths = paths(&network, &Forest::new(&network), &bounds);
        // The second flow: 10 + 80 µs, then 4000 bit at 90 Mb/s. The first: 10 + 40 µs, then
        // 8000 bit at 80 Mb/s, which is longer.
        assert_eq!(paths[&(0, 0)], Span::from_ns(90_000 + 44_445));
        // The first again: 10 + 20 µs more, then 8000 bit at 50 Mb/s.
        assert_eq!(paths[&(0, 1)], Span::from_us(50 + 30 + 160));
    }
}
