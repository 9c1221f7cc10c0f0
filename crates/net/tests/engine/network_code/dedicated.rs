//! Dedicated paths of bridges: by hand, and beside counts that are made otherwise.

use super::{
    addresses, generated, listener, master, network, on_wire, settings, slave, station_of, team,
};
use crate::network::{Network, NoiseSpec, every, trace};
use onbeat_model::dedicated::{BestEffortPolicy, DedicatedPath};
use onbeat_model::observed::{DedicatedObserved, Observed};
use onbeat_model::system::{NodeId, NodeKind, PortId};
use onbeat_model::time::Span;
use onbeat_net::Transmission;
use onbeat_net::network_code::{NetworkCode, NetworkCodeObserved, SpanExtremes};

/// What stations and best effort saw of a run, and what all ports sent.
struct Run {
    stations: NetworkCodeObserved,
    traffic: Observed,
    sent: Vec<Transmission>,
}

fn run(network: &Network, texts: &[String], duration: Span) -> Run {
    let settings = settings(1, duration);
    let mut engine = network.engine(1, duration.as_ns());
    engine.tap(&(0..network.system.ports.len() as u32).map(PortId).collect::<Vec<_>>());
    let setups = generated(network, texts, 1);
    let joined = NetworkCode::join(&mut engine, &network.system, &network.plan, setups, &settings);
    let joined = joined.unwrap_or_else(|errors| panic!("{errors:?}"));
    joined.run(&mut engine, &mut |_| true).expect("room");
    let stations = joined.observed(&engine);
    Run { stations, traffic: engine.observed(), sent: engine.take_transmissions() }
}

fn dedicate(network: &mut Network, node: NodeId, policy: BestEffortPolicy, wait_ns: i64) {
    let NodeKind::Bridge(bridge) = &mut network.system.nodes[node.index()].kind else { panic!() };
    let wait = Span::from_ns(wait_ns);
    bridge.dedicated_path = Some(DedicatedPath { on_best_effort: policy, wait });
}

/// Two stations and a host around a switch, which sends frames of so many octets to the slave at
/// these times, as [`turn`] gives them: it begins to send them there at once.
fn beside(policy: BestEffortPolicy, wait_ns: i64, octets: u32, begins: &[i64]) -> Network {
    let mut network = network(3, 1, 1_000);
    dedicate(&mut network, NodeId(3), policy, wait_ns);
    let before = before(octets);
    let times: Vec<i64> = begins.iter().map(|at| at - before).collect();
    network.stream(NodeId(2), &[NodeId(1)], [octets; 2], trace(octets, &times));
    network
}

/// From the release of a frame to its begin at a switch: what comes, 50 ns of link, 1 µs, and the
/// words that move.
fn before(octets: u32) -> i64 {
    i64::from(8 + octets) * 8 + 1_050 + i64::from(octets.next_multiple_of(4)) * 8
}

/// The first instant from this one on at which a frame can begin at once that comes by the third
/// port: it has moved from the third octet of four on.
fn turn(at: i64) -> i64 {
    at + (2 * 8 - at).rem_euclid(4 * 8)
}

fn pair() -> Vec<String> {
    team(1)
}

/// What the port from the switch to the slave did: the second one of its link.
const TO_SLAVE: usize = 3;

fn seen(run: &Run) -> DedicatedObserved {
    run.traffic.ports[TO_SLAVE].dedicated.expect("a dedicated path")
}

fn exactly(ns: i64) -> Option<SpanExtremes> {
    Some(SpanExtremes { min: Span::from_ns(ns), max: Span::from_ns(ns) })
}

/// Preamble out to the last octet in of 72 octets, over two links and a switch.
const OVER_ONE: i64 = 50 + 368 + 72 * 8 + 50;
/// The second round: the master's frame is 64 ns behind its begin, and 50 on the link. Ports are
/// warned after 33 octets, and it leaves 46 behind the first; the next one follows at once.
const WARNED: i64 = 200_064 + 50 + 264;
const STARTS: i64 = 200_064 + 50 + 368;
const IS_OVER: i64 = STARTS + 2 * 84 * 8;

#[test]
fn frames_of_stations_leave_each_octet_at_a_fixed_time_after_it_came() {
    for wait in [0, 8, 1_000] {
        let network = beside(BestEffortPolicy::Retry, wait, 1_522, &[]);
        let run = run(&network, &pair(), Span::from_us(1_000));
        for (id, node) in [(0, 1), (1, 0)] {
            let row = listener(&run.stations, id, node);
            assert_eq!((row.sent, row.lost(), row.wire), (5, 0, exactly(OVER_ONE + wait)));
        }
        let to_slave = &run.traffic.ports[TO_SLAVE];
        // Rounds and setpoints, each of 84 octets with preamble and gap.
        assert_eq!((to_slave.queues[7].sent, to_slave.busy.as_ns()), (10, 10 * 84 * 8));
        assert_eq!(seen(&run), DedicatedObserved { sent: 10, ..DedicatedObserved::default() });
    }
}

#[test]
fn two_switches_add_their_times() {
    let mut network = network(3, 2, 1_000);
    dedicate(&mut network, NodeId(3), BestEffortPolicy::Retry, 0);
    dedicate(&mut network, NodeId(4), BestEffortPolicy::Drop, 24);
    let run = run(&network, &team(2), Span::from_us(1_000));
    assert_eq!(listener(&run.stations, 0, 1).wire, exactly(OVER_ONE + 50 + 392));
    assert_eq!(listener(&run.stations, 0, 2).wire, exactly(OVER_ONE));
    // An ordinary bridge stores.
    let NodeKind::Bridge(bridge) = &mut network.system.nodes[4].kind else { panic!() };
    bridge.dedicated_path = None;
    let run = self::run(&network, &team(2), Span::from_us(1_000));
    let stored = 50 + 72 * 8 + 1_000;
    assert_eq!(listener(&run.stations, 0, 1).wire, exactly(OVER_ONE + stored));
}

#[test]
fn best_effort_in_transmission_is_aborted_and_sent_again() {
    let begins = turn(195_000);
    let network = beside(BestEffortPolicy::Retry, 0, 1_522, &[begins]);
    let run = run(&network, &pair(), Span::from_us(400));
    assert_eq!(listener(&run.stations, 0, 1).wire, exactly(OVER_ONE));
    let expected = DedicatedObserved { sent: 4, aborts: 1, resent: 1, ..Default::default() };
    assert_eq!(seen(&run), expected);
    let flow = &run.traffic.streams[0];
    let arrives = IS_OVER + (8 + 1_522) * 8 + 50;
    let released = begins - before(1_522);
    assert_eq!(flow.listeners[0].max, Some(Span::from_ns(arrives - released)));
    assert_eq!((flow.released, flow.listeners[0].frames, flow.aborted), (1, 1, 0));
    let queue = &run.traffic.ports[TO_SLAVE].queues[1];
    assert_eq!((queue.sent, queue.sent_octets, queue.preempted), (1, 1_522, 0));
    assert_eq!(queue.wait_max, Span::from_ns(IS_OVER - begins));
    // What is on the wire of what was aborted: whole octets, the one that aborts, the gap.
    let piece = (WARNED - begins) / 8 * 8 + (1 + 12) * 8;
    let busy = piece + 4 * 84 * 8 + 1_542 * 8;
    assert_eq!(run.traffic.ports[TO_SLAVE].busy, Span::from_ns(busy));
}

#[test]
fn what_is_over_in_time_is_not_aborted() {
    let begins = turn(STARTS - 1_542 * 8);
    let wait = begins + 1_542 * 8 - STARTS;
    for (begins, wait, aborts) in
        [(begins, wait, 0), (begins, wait - 1, 1), (turn(WARNED - 32), 0, 1)]
    {
        assert!(wait >= 0 && begins <= WARNED);
        let network = beside(BestEffortPolicy::Retry, wait, 1_522, &[begins]);
        let run = run(&network, &pair(), Span::from_us(400));
        assert_eq!(seen(&run).aborts, aborts, "{begins}");
        assert_eq!(run.traffic.streams[0].listeners[0].frames, 1);
        assert_eq!(listener(&run.stations, 0, 1).wire, exactly(OVER_ONE + wait));
    }
}

#[test]
fn best_effort_starts_while_a_frame_is_announced_only_if_it_is_over_in_time() {
    let begins = turn(WARNED + 700);
    let starts = |wait: i64| {
        let network = beside(BestEffortPolicy::Retry, wait, 68, &[begins]);
        let run = run(&network, &pair(), Span::from_us(400));
        assert_eq!((seen(&run).aborts, run.traffic.streams[0].listeners[0].frames), (0, 1));
        let port = PortId(TO_SLAVE as u32);
        let own = |sent: &&Transmission| sent.port == port && station_of(sent).is_none();
        run.sent.iter().find(own).expect("it was sent").at.as_ns()
    };
    let wait = begins + 88 * 8 - STARTS;
    assert_eq!(starts(wait), begins);
    assert_eq!(starts(wait - 1), IS_OVER + wait - 1);
}

#[test]
fn what_is_dropped_is_lost_and_counts_as_aborted() {
    let network = beside(BestEffortPolicy::Drop, 0, 1_522, &[turn(195_000), turn(208_000)]);
    let run = run(&network, &pair(), Span::from_us(400));
    assert_eq!(listener(&run.stations, 0, 1).wire, exactly(OVER_ONE));
    let expected = DedicatedObserved { sent: 4, aborts: 1, lost: 1, ..Default::default() };
    assert_eq!(seen(&run), expected);
    let flow = &run.traffic.streams[0];
    assert_eq!((flow.released, flow.aborted, flow.faulted), (2, 1, 0));
    let end = &flow.listeners[0];
    assert_eq!((end.frames, end.lost.aborted, end.lost.total()), (1, 1, 1));
}

#[test]
fn best_effort_that_may_finish_delays_the_frame() {
    let begins = turn(195_000);
    let network = beside(BestEffortPolicy::Finish, 0, 1_522, &[begins, begins + 1]);
    let run = run(&network, &pair(), Span::from_us(400));
    let expected = DedicatedObserved { sent: 4, ..Default::default() };
    assert_eq!(seen(&run), expected);
    // The setpoint waits for best effort and the beginning of the round, not for the next frame.
    let starts = begins + 1_542 * 8 + 84 * 8;
    let longest = starts + 72 * 8 + 50 - (200_064 + 84 * 8);
    let wire = listener(&run.stations, 0, 1).wire.expect("frames");
    assert_eq!((wire.min.as_ns(), wire.max.as_ns()), (OVER_ONE, longest));
    assert_eq!(run.traffic.streams[0].listeners[0].frames, 2);
}

#[test]
fn a_frame_that_begins_while_another_is_on_the_path_is_dropped() {
    // Two masters at once; the second one's link is longer. 72 octets, and one more.
    for (further, dropped) in [(0, 5), (583, 5), (584, 0)] {
        let mut network = Network::new();
        let hosts: Vec<NodeId> = (0..3).map(|_| network.host()).collect();
        let switch = network.bridge(1_000);
        for (host, propagation) in hosts.iter().zip([50, 50 + further, 50]) {
            network.link(*host, switch, 1_000, propagation);
        }
        addresses(&mut network);
        dedicate(&mut network, switch, BestEffortPolicy::Retry, 0);
        let lone = |name: &str| {
            let text = "begin:\n future begin, 200 us\n sync master\n halt\n";
            format!("station {name}\n{text}")
        };
        let texts = ["n0", "n1"].map(lone);
        let run = run(&network, &texts, Span::from_us(1_000));
        let collisions = |port: usize| run.traffic.ports[port].dedicated.expect("one").collisions;
        assert_eq!([collisions(1), collisions(3), collisions(5)], [0, dropped, 0], "{further}");
        let to = |port: usize| run.traffic.ports[port].queues[7].sent;
        // Each has the frames of the other, the third one those of both, unless they are dropped.
        assert_eq!([to(1), to(3), to(5)], [5 - dropped, 5, 10 - dropped]);
        let books = run.stations.ports.iter().map(|port| port.dropped).sum::<u64>();
        assert_eq!(books, dropped);
        assert!(dropped == 0 || run.stations.collisions() >= dropped);
    }
}

#[test]
fn ports_that_were_warned_of_a_dropped_frame_are_released() {
    let mut network = network(4, 1, 1_000);
    let switch = NodeId(4);
    dedicate(&mut network, switch, BestEffortPolicy::Retry, 0);
    let lone = |name: &str| {
        format!("station {name}\nbegin:\n future begin, 200 us\n sync master\n halt\n")
    };
    // A long frame to the host that has no station; it comes by the fourth port.
    let begins = turn(195_000) + 8;
    network.stream(NodeId(3), &[NodeId(2)], [1_522; 2], trace(1_522, &[begins - before(1_522)]));
    let run = run(&network, &["n0", "n1"].map(lone), Span::from_us(400));
    let port = run.traffic.ports[5].dedicated.expect("one");
    assert_eq!((port.aborts, port.resent), (1, 1));
    let flow = &run.traffic.streams[0].listeners[0];
    let arrives = STARTS + 84 * 8 + (8 + 1_522) * 8 + 50;
    assert_eq!((flow.frames, flow.max), (1, Some(Span::from_ns(arrives - begins + before(1_522)))));
}

/// What dedicated ports did, from all that they sent: what was aborted is what would have been on
/// the wire when the next one began.
fn counted(network: &Network, run: &Run, port: PortId) -> [u64; 2] {
    let sent: Vec<_> = run.sent.iter().filter(|sent| sent.port == port).collect();
    let rate = network.system.link_of(port).rate;
    let end = |sent: &Transmission| sent.at + rate.time_for(on_wire(sent.octets as usize - 4));
    let is_cut =
        |pair: &[&Transmission]| station_of(pair[0]).is_none() && pair[1].at < end(pair[0]);
    let aborts = sent.windows(2).filter(|pair| is_cut(pair)).count();
    let stations = sent.iter().filter(|sent| station_of(sent).is_some()).count();
    [aborts as u64, stations as u64]
}

/// A row of bridges, each with a station and a host that sends streams and noise; of which kinds
/// bridges are, digits of `kinds` say.
fn row(kinds: &[usize], seed: i64, has_traffic: bool) -> (Network, Vec<String>) {
    let bridges = kinds.len();
    let mut network = Network::new();
    let stations: Vec<NodeId> = (0..bridges).map(|_| network.host()).collect();
    let hosts: Vec<NodeId> = (0..bridges).map(|_| network.host()).collect();
    let switches: Vec<NodeId> = (0..bridges).map(|_| network.bridge(700)).collect();
    for at in 0..bridges {
        network.link(stations[at], switches[at], 1_000, 50 + at as i64);
        network.link(hosts[at], switches[at], 1_000, 30);
    }
    for pair in switches.windows(2) {
        network.link(pair[0], pair[1], 1_000, 120);
    }
    addresses(&mut network);
    let policies = [BestEffortPolicy::Retry, BestEffortPolicy::Drop, BestEffortPolicy::Finish];
    for (switch, kind) in switches.iter().zip(kinds) {
        if let Some(policy) = policies.get(*kind) {
            dedicate(&mut network, *switch, *policy, seed % 3 * 8);
        }
    }
    if has_traffic {
        for at in 0..bridges {
            let (from, to) = (hosts[at], stations[(at + 1) % bridges]);
            let octets = 68 + (seed as u32 * 331 + at as u32 * 577) % 1_454;
            network.stream(from, &[to], [octets; 2], every(23_000 + seed * 111));
            let (payload, interval) = (1_472 - octets / 2, 31_000 + seed * 77);
            let far = hosts[(at + bridges - 1) % bridges];
            let spec =
                NoiseSpec { payload, interval, jitter: true, start: 0, on: 1_000_000, off: 0 };
            network.noise(from, far, spec);
        }
    }
    let slaves = bridges - 1;
    let slots = (1..=slaves).map(|at| slave(at, "1 Gbit/s", 30 * at as u64));
    let texts = [master(slaves, "1 Gbit/s", 200)].into_iter().chain(slots).collect();
    (network, texts)
}

#[test]
fn whatever_best_effort_there_is_frames_of_stations_take_the_same_time() {
    let mut aborts = 0;
    for seed in 0..12 {
        let kinds: Vec<usize> =
            (0..2 + seed as usize % 3).map(|at| (at + seed as usize) % 2).collect();
        let runs = [false, true].map(|has_traffic| {
            let (network, texts) = row(&kinds, seed, has_traffic);
            run(&network, &texts, Span::from_ms(4))
        });
        assert_eq!(runs[0].stations.messages, runs[1].stations.messages, "{kinds:?}");
        assert_eq!(runs[1].stations.lost(), 0);
        assert!(runs[1].stations.ports.iter().all(|port| port.waits == 0));
        let dedicated = runs[1].traffic.ports.iter().filter_map(|port| port.dedicated);
        aborts += dedicated.map(|seen| seen.aborts).sum::<u64>();
    }
    assert!(aborts > 500, "{aborts}");
}

#[test]
fn in_mixed_networks_no_frame_is_lost_that_is_not_counted() {
    let (mut aborts, mut lost) = (0, 0);
    for seed in 0..24 {
        let kinds: Vec<usize> = (0..3).map(|at| (seed as usize / 4_usize.pow(at)) % 4).collect();
        let (network, texts) = row(&kinds, seed, true);
        let run = run(&network, &texts, Span::from_ms(4));
        assert_eq!((run.stations.lost(), run.stations.collisions()), (0, 0), "{kinds:?}");
        let mut dropped = 0;
        for flow in &run.traffic.streams {
            let gone = flow.listeners[0].lost;
            assert_eq!(flow.released, flow.listeners[0].frames + gone.total(), "{kinds:?}");
            assert_eq!((gone.aborted, gone.total()), (flow.aborted, flow.aborted));
            dropped += flow.aborted;
        }
        for port in (0..network.system.ports.len() as u32).map(PortId) {
            let Some(seen) = run.traffic.ports[port.index()].dedicated else { continue };
            assert_eq!([seen.aborts, seen.sent], counted(&network, &run, port), "{kinds:?}");
            assert_eq!(seen.aborts, seen.resent + seen.lost, "all were sent again");
            aborts += seen.aborts;
            lost += seen.lost;
        }
        assert!(dropped <= lost);
    }
    assert!(aborts > 500 && lost > 100, "{aborts} {lost}");
}
