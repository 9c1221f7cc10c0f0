//! Links and nodes that fail, and senders that babble. A frame of 100 octets is 864 ns long with
//! its preamble, 960 ns with its gap.

use crate::network::{Network, NoiseSpec, every, star, trace};
use onbeat_model::observed::FlowObserved;
use onbeat_model::stream::FaultKind;
use onbeat_model::system::{LinkId, NodeId};

/// Frames of 100 octets at these times over two links of 50 ns and a bridge of 1 µs.
fn traced(times: &[i64]) -> Network {
    let (mut network, hosts, _) = star(2);
    network.stream(hosts[0], &hosts[1..], [100, 100], trace(100, times));
    network
}

fn seen(network: &Network) -> (u64, u64, u64) {
    let observed = network.observed(1_000_000);
    let FlowObserved { released, faulted, ref listeners, .. } = observed.streams[0];
    (released, listeners[0].frames, faulted)
}

#[test]
fn a_link_swallows_what_is_on_it_when_it_fails_and_what_starts_before_it_is_back() {
    // A frame is on the first link for 864 + 50 ns.
    for (times, received, faulted) in [
        ([9_086, 19_000, 20_000], 2, 1),
        ([9_087, 18_000, 20_000], 1, 2),
        ([10_000, 18_000, 19_999], 0, 3),
    ] {
        let mut network = traced(&times);
        network.fault(FaultKind::LinkDown(LinkId(0)), 10_000, 20_000);
        assert_eq!(seen(&network), (3, received, faulted), "{times:?}");
    }
}

#[test]
fn a_link_that_never_comes_back_swallows_all() {
    let mut network = traced(&[0, 10_000, 20_000]);
    network.fault(FaultKind::LinkDown(LinkId(1)), 5_000, i64::MAX);
    assert_eq!(seen(&network), (3, 1, 2));
}

#[test]
fn a_bridge_that_fails_loses_what_it_receives_holds_and_sends() {
    // In at the bridge from s + 50 on, queued at s + 1914, sent until s + 2778.
    for (time, received) in
        [(7_222, 1), (7_223, 0), (8_086, 0), (9_950, 0), (10_949, 0), (10_950, 1)]
    {
        let mut network = traced(&[time]);
        network.fault(FaultKind::NodeDown(NodeId(2)), 10_000, 11_000);
        assert_eq!(seen(&network), (1, received, 1 - received), "{time}");
    }
}

#[test]
fn a_bridge_that_fails_loses_its_queues_even_if_it_is_back_at_once() {
    // 10 Mb/s out: 86.4 µs for each frame on the wire. Five come in; at 100 µs one is out, one is
    // being sent, three wait.
    let mut network = Network::new();
    let (talker, listener) = (network.host(), network.host());
    let bridge = network.bridge(1_000);
    network.link(talker, bridge, 1_000, 50);
    network.link(bridge, listener, 10, 50);
    network.stream(talker, &[listener], [100, 100], trace(100, &[0, 0, 0, 0, 0, 200_000]));
    network.fault(FaultKind::NodeDown(bridge), 100_000, 100_001);
    assert_eq!(seen(&network), (6, 2, 4));
    let mut kept = network.clone();
    kept.system.faults.clear();
    assert_eq!(seen(&kept), (6, 6, 0));
}

#[test]
fn a_host_that_is_down_releases_nothing_and_receives_nothing() {
    let (mut network, hosts, _) = star(2);
    network.stream(hosts[0], &hosts[1..], [100, 100], every(10_000));
    network.fault(FaultKind::NodeDown(hosts[0]), 20_000, 50_000);
    network.fault(FaultKind::NodeDown(hosts[1]), 70_000, 80_000);
    // 100 instants, those at 20, 30 and 40 µs without a frame; the one of 70 µs (69,999 and
    // before would arrive in time to be lost, too: 2828 ns) is lost.
    assert_eq!(seen(&network), (97, 96, 1));
}

#[test]
fn noise_of_a_host_that_is_down_is_not_offered() {
    let (mut network, hosts, _) = star(2);
    let spec =
        NoiseSpec { payload: 100, interval: 10_000, jitter: false, start: 0, on: 1, off: 9_999 };
    network.noise(hosts[0], hosts[1], NoiseSpec { on: 1_000_000, off: 0, ..spec });
    network.fault(FaultKind::NodeDown(hosts[0]), 20_000, 50_000);
    let mut engine = network.engine(1, 100_000);
    assert_eq!(engine.advance(onbeat_model::time::NetTime::MAX), None);
    let bits: u64 = engine.load().iter().map(|sample| sample.offered_bits).sum();
    assert_eq!(bits, 7 * (100 + 28 + 18 + 20) * 8);
}

#[test]
fn a_link_damages_frames_with_its_probability_in_its_time() {
    let with = |per_billion, seed| {
        let (mut network, hosts, _) = star(2);
        network.stream(hosts[0], &hosts[1..], [100, 100], every(1_000));
        let kind = FaultKind::FrameErrors { link: LinkId(0), per_billion };
        network.fault(kind, 100_000, 900_000);
        network.system.run.seed = seed;
        seen(&network)
    };
    assert_eq!(with(0, 1), (1_000, 1_000, 0));
    assert_eq!(with(1_000_000_000, 1), (1_000, 200, 800));
    let (_, received, faulted) = with(250_000_000, 1);
    assert!((150..250).contains(&faulted), "{faulted}");
    assert_eq!(received + faulted, 1_000);
}

#[test]
fn a_babbling_stream_fills_its_link_and_then_goes_on_as_before() {
    let (mut network, hosts, _) = star(2);
    network.stream(hosts[0], &hosts[1..], [68, 100], every(10_000));
    network.fault(FaultKind::Babble(0), 25_000, 45_000);
    // 0, 10, 20 µs; 25 µs and each 960 ns up to 44.2 µs: 21 frames; 50 to 990 µs: 95 frames.
    assert_eq!(seen(&network), (3 + 21 + 95, 3 + 21 + 95, 0));
    let observed = network.observed(46_000);
    // Frames of 100 octets one after the other: nobody waits.
    let max = observed.streams[0].listeners[0].max.unwrap().as_ns();
    assert_eq!(max, 2 * 914 + 1_000);
    assert_eq!(observed.ports[0].queues[4].deepest_frames, 1);
}
