//! A system of bridges and the FIFO network that it is have the same bounds.

use crate::ethernet::{FORWARDING, HOST_RATE, QUEUE, WIRE, interval, rate, system, ways};
use crate::families::{Shape, worst};
use onbeat_bounds::fifo::{Curve, Departure, FifoNetwork, Flow, Hop, Server};
use onbeat_bounds::plan;
use onbeat_model::port::Selection;
use onbeat_model::system::System;
use onbeat_model::time::Span;
use onbeat_model::units::{BitRate, frame};

/// The same system as servers: those of the bridges, then per flow those of its hosts' links. Or
/// these as constant delays, since nothing ever waits for them: then without the last one.
fn equivalent(shape: Shape, size: usize, percent: u64, constant: bool) -> FifoNetwork {
    let ways = ways(shape, size);
    let server = |bps: u64| Server {
        rate: BitRate::from_bps(bps),
        latency: Span::ZERO,
        link_rate: Some(BitRate::from_bps(bps)),
        output: Departure::Packets,
    };
    let mut servers: Vec<Server> = (0..size).map(|s| server(rate(shape, size, s))).collect();
    servers.extend(vec![server(HOST_RATE); 2 * ways.len()]);
    let bits = i128::from(WIRE.get()) * 8 * 1_000_000_000;
    let interval = i128::from(interval(shape, size, percent).as_ns());
    let rate = BitRate::from_bps(u64::try_from((bits + interval - 1) / interval).expect("slow"));
    let flows = ways.iter().enumerate().map(|(flow, way)| {
        let (talker, listener) = (size + 2 * flow, size + 2 * flow + 1);
        let path = match constant {
            true => way.clone(),
            false => [&[talker], &way[..], &[listener]].concat(),
        };
        let first = if constant { host_link() + FORWARDING } else { Span::ZERO };
        let hops = path.iter().enumerate().map(|(at, here)| {
            // A bridge has a frame before the gap behind it is over.
            let before = at.checked_sub(1);
            let gap = before.map(|b| servers[path[b]].rate.time_for(frame::GAP));
            let after = gap.map_or(first, |gap| FORWARDING - gap);
            Hop { server: *here, upstream: before, earliest: after, latest: after, reshaped: None }
        });
        let hops = hops.collect();
        Flow { arrival: Curve::bucket(bits, rate), smallest: bits, largest: bits, hops }
    });
    FifoNetwork { flows: flows.collect(), servers }
}

/// The largest bound of any stream, if all have one.
fn largest(system: &System) -> Option<Span> {
    let plan = plan(system, true).expect("streams alone can be planned");
    let bounds = plan.streams.iter().map(|s| s.bounds[0].as_ref().map(|bound| bound.total()));
    bounds.collect::<Option<Vec<_>>>()?.into_iter().max()
}

/// From the start of a transmission on a host's link to its last octet.
fn host_link() -> Span {
    let rate = BitRate::from_bps(HOST_RATE);
    rate.time_for(WIRE) - rate.time_for(frame::GAP)
}

/// By how much they may differ: per port a gap is rounded.
const ROUNDING: Span = Span::from_ns(20);

/// No bound of a system is above that of the network; they are equal where `alike`.
fn assert_same(system: Option<Span>, network: Option<Span>, alike: bool, what: &str) {
    let (Some(a), Some(b)) = (system, network) else {
        return assert_eq!(system, network, "{what}");
    };
    assert!(a <= b + ROUNDING, "{what}: {a} of the system, {b} of the network");
    assert!(!alike || b <= a + ROUNDING, "{what}: {a} of the system, {b} of the network");
}

#[test]
fn a_system_and_the_fifo_network_that_it_is_have_the_same_bounds() {
    let families = [(Shape::Tandem, 6), (Shape::Ring, 4), (Shape::Ring, 6), (Shape::Mesh, 7)];
    let mut whole = 0;
    for (shape, size, percent) in
        families.iter().flat_map(|(shape, size)| [30, 60, 90].map(|load| (*shape, *size, load)))
    {
        let network = equivalent(shape, size, percent, false);
        let mut system = system(shape, size, percent);
        let best = largest(&system);
        // A queue with asynchronous shaping leaves all of its class to the sum over queues.
        system.ports[2 * size].settings.selection[usize::from(QUEUE)] = Selection::Asynchronous;
        let sum = largest(&system);
        let what = format!("{shape:?} of {size} at {percent} %");
        // A sum counts whole frames, and is smaller for it, but where queues wait in a cycle.
        let total = network.total_flow().expect("valid");
        let gap = BitRate::from_bps(HOST_RATE).time_for(frame::GAP);
        let total = total.as_ref().map(|bounds| worst(bounds) - gap);
        assert_same(sum, total, shape == Shape::Ring, &format!("{what}, sum"));
        let together = best < sum || sum.is_none();
        whole += u32::from(together);
        let bounds = equivalent(shape, size, percent, true).bounds().expect("valid");
        let last = rate(shape, size, size - 1);
        let after = FORWARDING - BitRate::from_bps(last).time_for(frame::GAP) + host_link();
        assert_same(best, bounds.as_ref().map(|b| worst(b) + after), together, &what);
    }
    assert!(whole > 4, "only {whole} networks profit from whole ways");
}
