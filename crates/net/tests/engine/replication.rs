//! Replication and elimination (802.1CB). A frame of 100 octets takes 864 + 50 ns of each link.

use crate::network::{Network, every, trace};
use onbeat_model::observed::Observed;
use onbeat_model::stream::{FaultKind, Source};
use onbeat_model::system::{LinkId, PortId};

/// talker – b0, two ways to b3: over b1, and over b2 with a longer link; b3 – listener. Links in
/// that order: 0 to the talker; 1, 2 over b1; 3, 4 over b2; 5 to the listener.
fn diamond(source: Source, longer: i64, history: u32) -> Network {
    let mut network = Network::new();
    let (talker, listener) = (network.host(), network.host());
    let bridges = [(); 4].map(|()| network.bridge(1_000));
    network.link(talker, bridges[0], 1_000, 50);
    for (middle, propagation) in [(1, 50), (2, 50 + longer)] {
        network.link(bridges[0], bridges[middle], 1_000, 50);
        network.link(bridges[middle], bridges[3], 1_000, propagation);
    }
    network.link(bridges[3], listener, 1_000, 50);
    network.stream(talker, &[listener], [100, 100], source);
    let way = |links: [u32; 4]| links.map(|link| PortId(2 * link)).to_vec();
    network.plan.streams[0].paths = vec![vec![way([0, 1, 2, 5]), way([0, 3, 4, 5])]];
    network.system.streams[0].paths.history = history;
    network
}

/// Released, received, duplicates, faulted, reordered.
fn seen(observed: &Observed) -> [u64; 5] {
    let flow = &observed.streams[0];
    let end = &flow.listeners[0];
    [flow.released, end.frames, flow.duplicates, flow.faulted, end.reordered]
}

/// Four links, three bridges.
const SHORT: i64 = 4 * 914 + 3 * 1_000;

#[test]
fn one_copy_of_each_frame_arrives_by_the_faster_way() {
    let network = diamond(every(10_000), 2_000, 8);
    let observed = network.observed(100_000);
    assert_eq!(seen(&observed), [10, 10, 10, 0, 0]);
    let end = &observed.streams[0].listeners[0];
    assert_eq!([end.min, end.max].map(|l| l.unwrap().as_ns()), [SHORT; 2]);
    assert_eq!(observed.ports[10].queues[4].sent, 10);
}

#[test]
fn nothing_is_lost_when_one_link_fails() {
    for (link, slowest) in [(1, SHORT + 2_000), (2, SHORT + 2_000), (3, SHORT), (4, SHORT)] {
        let mut network = diamond(every(10_000), 2_000, 8);
        network.fault(FaultKind::LinkDown(LinkId(link)), 23_456, 71_000);
        let observed = network.observed(100_000);
        let [released, received, duplicates, faulted, reordered] = seen(&observed);
        assert_eq!((released, received, reordered), (10, 10, 0), "{link}");
        assert_eq!(duplicates + faulted, 10, "{link}");
        assert!((4..=5).contains(&faulted), "{link}: {faulted}");
        let end = &observed.streams[0].listeners[0];
        assert_eq!(end.max.unwrap().as_ns(), slowest, "{link}");
    }
    // Both ways down: lost.
    let mut network = diamond(every(10_000), 2_000, 8);
    network.fault(FaultKind::LinkDown(LinkId(1)), 25_000, 35_000);
    network.fault(FaultKind::LinkDown(LinkId(3)), 25_000, 35_000);
    assert_eq!(seen(&network.observed(100_000)), [10, 9, 9, 2, 0]);
}

#[test]
fn a_frame_that_only_the_slower_way_brings_comes_after_its_successors() {
    // The slower way takes 25 µs longer: frame 3 (30 µs) comes at 55 µs, after frames 4 and 5
    // (40 and 50 µs).
    let mut network = diamond(every(10_000), 25_000, 8);
    network.fault(FaultKind::LinkDown(LinkId(1)), 30_000, 35_000);
    assert_eq!(seen(&network.observed(100_000)), [10, 10, 9, 1, 1]);
    // To a history of two, what is two ahead of the newest is out of range (7.4.3.4): without
    // frame 3, frames 4 and 5 are refused, until the slower way brings 3, and then 4 and so on.
    network.system.streams[0].paths.history = 2;
    let observed = network.observed(100_000);
    assert_eq!(seen(&observed), [10, 10, 2, 1, 0]);
    assert_eq!(observed.streams[0].rogue, 7);
    let end = &observed.streams[0].listeners[0];
    assert_eq!([end.min, end.max].map(|l| l.unwrap().as_ns()), [SHORT, SHORT + 25_000]);
    assert_eq!(end.sum_ns, i128::from(3 * SHORT + 7 * (SHORT + 25_000)));
}

#[test]
fn copies_are_recognised_in_a_burst_too() {
    let network = diamond(trace(100, &[0; 20]), 9_000, 64);
    assert_eq!(seen(&network.observed(100_000)), [20, 20, 20, 0, 0]);
}

#[test]
fn ways_may_part_again_where_they_have_met() {
    // A second diamond after the first: two copies arrive at each of its bridges' ports, one
    // passes, and two copies of that continue.
    let mut network = Network::new();
    let (talker, listener) = (network.host(), network.host());
    let bridges = [(); 6].map(|()| network.bridge(1_000));
    network.link(talker, bridges[0], 1_000, 50);
    for (from, to) in [(0, 1), (1, 3), (0, 2), (2, 3), (3, 4), (4, 5), (3, 5)] {
        network.link(bridges[from], bridges[to], 1_000, 50);
    }
    network.link(bridges[5], listener, 1_000, 50);
    network.stream(talker, &[listener], [100, 100], every(10_000));
    let way = |links: &[u32]| links.iter().map(|link| PortId(2 * link)).collect::<Vec<_>>();
    network.plan.streams[0].paths =
        vec![vec![way(&[0, 1, 2, 5, 6, 8]), way(&[0, 3, 4, 7, 8]), way(&[0, 1, 2, 7, 8])]];
    network.system.streams[0].paths.history = 8;
    // Over link 1 to both 5 and 7, over link 3 to 7 only: one of two is eliminated before 7, and
    // one of the copies over 5, 6 and 7 before 8.
    assert_eq!(seen(&network.observed(50_000)), [5, 5, 10, 0, 0]);
    network.fault(FaultKind::LinkDown(LinkId(1)), 0, i64::MAX);
    assert_eq!(seen(&network.observed(50_000)), [5, 5, 0, 5, 0]);
}
