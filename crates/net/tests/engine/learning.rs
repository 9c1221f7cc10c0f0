//! Bridges that learn where hosts are, and flood until they do.

use crate::network::{Network, NoiseSpec, star};
use onbeat_model::system::{BEST_EFFORT_QUEUE, NodeId, NodeKind, PortId};
use onbeat_model::time::NetTime;
use onbeat_net::Engine;

const SECOND: i64 = 1_000_000_000;

fn learn(network: &mut Network) {
    for node in &mut network.system.nodes {
        if let NodeKind::Bridge(bridge) = &mut node.kind {
            bridge.learning = true;
        }
    }
}

fn steady(interval: i64, start: i64) -> NoiseSpec {
    NoiseSpec { payload: 100, interval, jitter: false, start, on: i64::MAX / 4, off: 0 }
}

/// One frame only.
fn once(start: i64) -> NoiseSpec {
    NoiseSpec { on: 1, off: i64::MAX / 4, ..steady(10, start) }
}

/// Frames that each bridge sent to this host.
fn sent_to(network: &Network, engine: &Engine, host: NodeId) -> u64 {
    let port = network.system.node(host).ports[0];
    engine.port_counters(network.system.port(port).peer).sent[BEST_EFFORT_QUEUE]
}

fn run(network: &Network, until: i64) -> Engine {
    let mut engine = network.engine(1, until);
    assert_eq!(engine.advance(NetTime::MAX), None);
    engine
}

#[test]
fn a_frame_is_flooded_until_its_destination_was_heard() {
    let (mut network, hosts, _) = star(4);
    learn(&mut network);
    network.noise(hosts[0], hosts[1], steady(100_000, 0));
    let engine = run(&network, 1_000_000);
    assert_eq!([1, 2, 3].map(|h| sent_to(&network, &engine, hosts[h])), [10, 10, 10]);
    // The destination speaks at 450 µs: frames from 500 µs on go to it alone. Its own frame goes
    // to the one that the bridge has heard.
    network.noise(hosts[1], hosts[0], once(450_000));
    let engine = run(&network, 1_000_000);
    assert_eq!([0, 1, 2, 3].map(|h| sent_to(&network, &engine, hosts[h])), [1, 10, 5, 5]);
    // All of them arrive.
    let bits = [0, 1].map(|n| {
        let samples = engine.load().iter().filter(|sample| sample.noise.0 == n);
        samples.fold((0, 0), |(a, b), s| (a + s.offered_bits, b + s.delivered_bits))
    });
    assert!(bits.iter().all(|(offered, delivered)| offered == delivered && *offered > 0));
}

#[test]
fn what_was_learned_is_forgotten_after_300_seconds() {
    let (mut network, hosts, _) = star(3);
    learn(&mut network);
    network.noise(hosts[1], hosts[0], once(0));
    network.noise(hosts[0], hosts[1], steady(100 * SECOND, SECOND / 2));
    // The bridge has it until 300 s: frames at 0.5, 100.5, 200.5 s are not flooded, those at
    // 300.5 and 400.5 s are; and so was the first.
    let engine = run(&network, 450 * SECOND);
    assert_eq!(sent_to(&network, &engine, hosts[2]), 3);
}

#[test]
fn a_flood_leaves_only_at_members_of_the_vlan() {
    let (mut network, hosts, _) = star(4);
    learn(&mut network);
    network.noise(hosts[0], hosts[1], steady(100_000, 0));
    let port = |host: NodeId| network.system.port(network.system.node(host).ports[0]).peer;
    let [out, within] = [port(hosts[2]), port(hosts[3])];
    network.plan.ports[out.index()].settings.vlans = Some(vec![2]);
    network.plan.ports[within.index()].settings.vlans = Some(vec![2, 1]);
    let engine = run(&network, 1_000_000);
    assert_eq!([1, 2, 3].map(|h| sent_to(&network, &engine, hosts[h])), [10, 0, 10]);
}

#[test]
fn a_flood_does_not_go_round_in_circles() {
    // A ring of three bridges, a host at each; the tree leaves out the link between the second
    // and the third.
    let mut network = Network::new();
    let hosts = [(); 3].map(|()| network.host());
    let bridges = [(); 3].map(|()| network.bridge(1_000));
    for (host, bridge) in hosts.into_iter().zip(bridges) {
        network.link(host, bridge, 1_000, 50);
    }
    let join =
        |network: &mut Network, a: usize, b: usize| network.link(bridges[a], bridges[b], 1_000, 50);
    let direct = join(&mut network, 1, 2);
    network.noise(hosts[1], hosts[2], steady(100_000, 0));
    let ports = [join(&mut network, 0, 1), direct, join(&mut network, 2, 0)];
    learn(&mut network);
    let engine = run(&network, 1_000_000);
    assert_eq!([0, 2].map(|h| sent_to(&network, &engine, hosts[h])), [10, 10]);
    let both = |port: PortId| {
        let peer = network.system.port(port).peer;
        [port, peer].map(|port| engine.port_counters(port).sent[BEST_EFFORT_QUEUE])
    };
    assert_eq!([both(ports[0]), both(ports[1]), both(ports[2])], [[0, 10], [0, 0], [0, 10]]);
}

#[test]
fn unprotected_unicast_channels_are_flooded_and_others_are_not() {
    let (mut network, hosts, _) = star(3);
    learn(&mut network);
    let group = network.channel(hosts[0], &hosts[1..2], None);
    for (address, flooded) in [(network.system.channel(group).destination.0[0], 0), (2, 1)] {
        network.system.channels[0].destination.0[0] = address;
        let mut engine = network.engine(1, 0);
        engine.send(group, &[0; 64]);
        let seen = crate::network::deliveries(&mut engine, i64::MAX);
        assert_eq!((seen.len(), seen[0].listener), (1, 0));
        assert_eq!(sent_to(&network, &engine, hosts[2]), flooded);
        assert_eq!(engine.frames_under_way(), 0);
    }
}
