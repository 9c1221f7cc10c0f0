//! Cut-through forwarding and shared buffers against hand calculation.

use crate::network::{Network, arrivals, deliveries, run};
use onbeat_model::system::{ChannelId, NodeId, NodeKind, PortId};
use onbeat_model::units::Octets;

fn bridge_of(network: &mut Network, node: NodeId) -> &mut onbeat_model::system::Bridge {
    let NodeKind::Bridge(bridge) = &mut network.system.nodes[node.index()].kind else { panic!() };
    bridge
}

/// host – bridges – host, 50 ns and 500 ns of forwarding each, links of these rates.
fn chain(mbps: &[u64]) -> (Network, ChannelId) {
    let mut network = Network::new();
    let (talker, listener) = (network.host(), network.host());
    let mut last = talker;
    for rate in &mbps[..mbps.len() - 1] {
        let bridge = network.bridge(500);
        bridge_of(&mut network, bridge).cut_through = true;
        network.link(last, bridge, *rate, 50);
        last = bridge;
    }
    network.link(last, listener, mbps[mbps.len() - 1], 50);
    let channel = network.channel(talker, &[listener], None);
    (network, channel)
}

fn arrival(mbps: &[u64], octets: usize) -> i64 {
    let (network, channel) = chain(mbps);
    arrivals(&run(&network, &[(0, channel, octets)]), channel)[0]
}

#[test]
fn each_bridge_of_a_chain_adds_26_octets_propagation_and_forwarding() {
    // 26 × 8 + 50 + 500 = 758 per bridge, then the whole frame: 1,530 × 8 + 50.
    assert_eq!(arrival(&[1_000, 1_000, 1_000], 1_518), 2 * 758 + 12_290);
    assert_eq!(arrival(&[1_000, 1_000, 1_000], 64), 2 * 758 + 76 * 8 + 50);
}

#[test]
fn a_slower_link_is_cut_through_to_and_a_faster_one_is_not() {
    // 100 Mb/s: 80 ns per octet.
    assert_eq!(arrival(&[1_000, 100], 1_518), 758 + 1_530 * 80 + 50);
    // Stored: 1,530 × 80 + 50 + 500; then 1 Gb/s.
    assert_eq!(arrival(&[100, 1_000], 1_518), 122_950 + 12_290);
}

#[test]
fn a_frame_that_is_cut_through_waits_for_a_busy_port_as_any_other() {
    let (mut network, channel) = chain(&[1_000, 1_000]);
    let (bridge, listener) = (NodeId(2), NodeId(1));
    let other = network.host();
    network.link(other, bridge, 1_000, 50);
    let crossing = network.channel(other, &[listener], None);
    let seen = run(&network, &[(0, crossing, 1_518), (100, channel, 64)]);
    // The port is busy from 758 to 758 + 12,336.
    assert_eq!(arrivals(&seen, crossing), [758 + 12_290]);
    assert_eq!(arrivals(&seen, channel), [13_094 + 658]);
}

#[test]
fn a_preemptable_frame_is_stored() {
    let (mut network, channel) = chain(&[1_000, 1_000]);
    network.plan.ports[0].settings.preemptable = 1 << 1;
    let seen = run(&network, &[(0, channel, 1_518)]);
    assert_eq!(arrivals(&seen, channel), [12_240 + 550 + 12_290]);
}

#[test]
fn a_multicast_is_stored_if_one_of_its_ports_is_faster() {
    let (mut network, _) = chain(&[1_000, 1_000]);
    let (talker, bridge, listener) = (NodeId(0), NodeId(2), NodeId(1));
    let fast = network.host();
    network.link(bridge, fast, 2_500, 50);
    let both = network.channel(talker, &[listener, fast], None);
    let seen = run(&network, &[(0, both, 1_518)]);
    // In at 12,240 + 550; 1,530 × 8 / 2.5 = 4,896.
    let stored = 12_790;
    assert_eq!(arrivals(&seen, both), [stored + 4_896 + 50, stored + 12_240 + 50]);
}

#[test]
fn the_ports_of_a_bridge_share_its_buffer() {
    // Three hosts at one bridge; frames of 1522 octets from the first to both others, whose links
    // are slow: 123,360 ns each. The buffer holds two.
    let mut network = Network::new();
    let [talker, one, two] = [(); 3].map(|()| network.host());
    let bridge = network.bridge(0);
    bridge_of(&mut network, bridge).shared_buffer = Some(Octets::new(2 * 1_522));
    network.link(talker, bridge, 1_000, 0);
    let first = network.link(bridge, one, 100, 0);
    let second = network.link(bridge, two, 100, 0);
    let to_one = network.channel(talker, &[one], None);
    let to_two = network.channel(talker, &[two], None);
    let mut engine = network.engine(1, 0);
    // One of each is in transmission, one of each waits, and a third of each has no room.
    for (at, channel) in (0..).step_by(13_000).zip([to_one, to_two].repeat(3)) {
        deliveries(&mut engine, at);
        engine.send(channel, &[0; 1_518]);
    }
    deliveries(&mut engine, 100_000);
    let seen = |engine: &onbeat_net::Engine, port: PortId| engine.port_observed(port).queues[1];
    for port in [first, second] {
        let queue = seen(&engine, port);
        assert_eq!((queue.sent, queue.dropped, queue.deepest_frames), (1, 1, 1));
    }
    // When the second ones have started, there is room again: for two at one port, too.
    deliveries(&mut engine, 200_000);
    for _ in 0..3 {
        engine.send(to_one, &[0; 1_518]);
    }
    deliveries(&mut engine, i64::MAX);
    let queue = seen(&engine, first);
    assert_eq!((queue.sent, queue.dropped, queue.deepest_frames), (4, 2, 2));
    assert_eq!(queue.deepest_octets, 2 * 1_522);
}
