//! Hosts and bridges that reserve by protocol beside traffic and noise, when things fail.

use crate::network::{Network, two_bridges};
use onbeat_model::observed::Observed;
use onbeat_model::reservation::{
    ListenerReservation, MSRP_MARGIN, RESERVATION_WAIT, ReservationStatus, tspec_rate,
};
use onbeat_model::stream::FaultKind;
use onbeat_model::system::{
    Channel, ChannelId, Class, LinkId, NodeId, NodeKind, PortId, ReservationMode,
};
use onbeat_model::time::{NetTime, Span};
use onbeat_model::units::{BitRate, MacAddress, Octets, frame};
use onbeat_net::{Engine, Options, Phases, Simulation, join_protocols, simulate};

const S: i64 = 1_000_000_000;

/// What a channel takes at a port: one frame in each class measurement interval.
fn rate(channel: &Channel) -> u64 {
    let interval = channel.class.measurement_interval().expect("an SR class");
    tspec_rate(frame::of_channel(channel.size), 1, interval, MSRP_MARGIN).as_bps()
}

/// Reserves by protocol what the channels need.
fn by_protocol(mut network: Network) -> Network {
    network.system.run.reservation = ReservationMode::Srp;
    for (at, node) in network.system.nodes.iter_mut().enumerate() {
        if let NodeKind::Host(host) = &mut node.kind {
            host.mac = MacAddress([2, 0, 0, 0, 0, at as u8 + 1]);
        }
    }
    for (channel, planned) in network.system.channels.iter_mut().zip(&mut network.plan.channels) {
        channel.pcp = channel.class.default_pcp();
        planned.reserved_rate = BitRate::from_bps(rate(channel));
        for port in planned.tree_ports() {
            let port = &mut network.plan.ports[port.index()];
            let slope = port.idle_slope(channel.class).as_bps() + rate(channel);
            port.set_idle_slope(channel.class, BitRate::from_bps(slope));
            *match channel.class {
                Class::A => &mut port.class_a_streams,
                _ => &mut port.class_b_streams,
            } += 1;
        }
    }
    network
}

/// Three channels over two bridges, under noise that is more than their link carries: there, back,
/// and to two listeners.
fn three_channels() -> Network {
    let mut network = two_bridges(100, 60_000, 500, 500);
    let [talker, listener, sink] = [0, 1, 4].map(NodeId);
    network.channel(talker, &[listener], Some(Class::A));
    network.channel(listener, &[talker], Some(Class::B));
    network.channel(talker, &[listener, sink], Some(Class::A));
    by_protocol(network)
}

fn engine(network: &Network, seed: u64, until: i64) -> Engine {
    let until = NetTime::from_ns(until);
    let options = Options {
        seed,
        host_delays: true,
        load_bin: Span::from_s(100),
        noise_until: until,
        traffic_until: until,
        model_channels: true,
    };
    let mut engine = Engine::new(&network.system, &network.plan, options);
    join_protocols(&mut engine, &network.system, &network.plan, seed, until);
    engine
}

fn slopes(engine: &Engine, port: PortId) -> [u64; 2] {
    [Class::A, Class::B].map(|class| engine.idle_slope(port, class.queue()).as_bps())
}

/// What the channels that are complete take at a port, by class.
fn needed(network: &Network, port: PortId, complete: &[ChannelId]) -> [u64; 2] {
    let mut sums = [0; 2];
    for id in complete {
        if network.plan.channel(*id).tree_ports().contains(&port) {
            let channel = network.system.channel(*id);
            sums[usize::from(channel.class != Class::A)] += rate(channel);
        }
    }
    sums
}

/// At no port more than three quarters are reserved.
fn is_within_limits(network: &Network, engine: &Engine) {
    for port in (0..network.system.ports.len() as u32).map(PortId) {
        let sum: u64 = slopes(engine, port).iter().sum();
        assert!(sum * 4 <= network.system.link_of(port).rate.as_bps() * 3, "{port:?}: {sum}");
    }
}

#[test]
fn reservations_outlive_faults_under_noise_and_no_bandwidth_leaks() {
    for seed in 1..=5 {
        let mut network = three_channels();
        let between = LinkId(0);
        network.fault(FaultKind::LinkDown(between), 7 * S, 9 * S);
        network.fault(FaultKind::NodeDown(NodeId(6)), 14 * S, 16 * S);
        network.fault(FaultKind::NodeDown(NodeId(0)), 19 * S, 20 * S);
        let per_billion = 200_000_000;
        network.fault(FaultKind::FrameErrors { link: between, per_billion }, 22 * S, 26 * S);
        let mut engine = engine(&network, seed, 60 * S);
        for at in 1..6_000 {
            assert_eq!(engine.advance(NetTime::from_ns(at * S / 100)), None);
            is_within_limits(&network, &engine);
        }
        let observed = engine.reservations_observed().expect("the protocol takes part");
        for reservation in &observed.channels {
            assert!(reservation.is_complete, "seed {seed}: {reservation:?}");
            assert_eq!(reservation.status, ReservationStatus::Ready, "seed {seed}");
            assert!(reservation.lost >= 2, "seed {seed}: a link and nodes have failed");
        }
        let all: Vec<_> = observed.channels.iter().map(|channel| channel.channel).collect();
        for port in (0..network.system.ports.len() as u32).map(PortId) {
            let needed = needed(&network, port, &all);
            assert_eq!(slopes(&engine, port), needed, "seed {seed}: {port:?}");
        }
    }
}

#[test]
fn what_a_failed_link_cuts_off_gives_its_bandwidth_back_and_the_rest_keeps_its_own() {
    let mut network = two_bridges(100, 60_000, 500, 500);
    let [talker, listener, first, sink] = [0, 1, 2, 4].map(NodeId);
    network.channel(talker, &[listener], Some(Class::A));
    network.channel(talker, &[first], Some(Class::A));
    network.channel(sink, &[listener], Some(Class::B));
    let mut network = by_protocol(network);
    network.fault(FaultKind::LinkDown(LinkId(0)), 7 * S, 100 * S);
    let mut engine = engine(&network, 3, 12 * S);
    assert_eq!(engine.advance(NetTime::from_ns(7 * S - 1)), None);
    let before = engine.reservations_observed().expect("the protocol takes part");
    assert!(before.are_complete());
    assert_eq!(engine.advance(NetTime::from_ns(12 * S - 1)), None);
    let after = engine.reservations_observed().expect("the protocol takes part");
    let complete: Vec<_> = after.channels.iter().filter(|c| c.is_complete).collect();
    let complete: Vec<_> = complete.iter().map(|channel| channel.channel).collect();
    assert_eq!(complete, [ChannelId(1), ChannelId(2)]);
    assert!(!after.are_complete() && after.channels[0].lost == 1);
    assert_eq!(after.channels[0].status, ReservationStatus::Advertised);
    assert_eq!(after.channels[0].listeners[0].0, ListenerReservation::NoTalker);
    for port in (0..network.system.ports.len() as u32).map(PortId) {
        assert_eq!(slopes(&engine, port), needed(&network, port, &complete), "{port:?}");
    }
}

fn simulated(network: &Network, seed: u64) -> Observed {
    let (repetitions, phases) = (1, Phases::Described);
    let simulation = Simulation { duration: Span::from_s(2), seed, repetitions, phases };
    simulate(&network.system, &network.plan, &simulation, &mut |_, _| true).expect("room")
}

#[test]
fn channels_are_sent_from_the_instant_at_which_all_is_decided_and_equal_seeds_are_equal() {
    let network = three_channels();
    let first = simulated(&network, 1);
    assert_eq!(first, simulated(&network, 1));
    let reservations = first.reservations.as_ref().expect("the protocol takes part");
    let begun = reservations.begun.expect("all is decided") - NetTime::ZERO;
    assert!(begun < RESERVATION_WAIT && reservations.are_complete());
    for (flow, reservation) in first.channels.iter().zip(&reservations.channels) {
        let (ready, worst) = (reservation.ready(), reservation.worst_case);
        assert!(ready.is_some_and(|ready| Some(ready) <= worst && ready <= begun));
        // A message each millisecond from then on.
        let count = (Span::from_s(2).as_ns() - 1) / 1_000_000 - (begun.as_ns() - 1) / 1_000_000;
        assert_eq!((flow.released, flow.policed), (count as u64, 0));
        assert!(flow.listeners.iter().all(|end| end.frames == flow.released));
    }
}

#[test]
fn a_channel_without_room_fails_at_the_host_that_would_send_it_and_loses_all_messages() {
    let mut network = Network::new();
    let [a, b] = [(); 2].map(|()| network.host());
    network.link(a, b, 100, 50);
    for _ in 0..2 {
        network.channel(a, &[b], Some(Class::A));
    }
    // 40 Mb/s each.
    network.system.channels.iter_mut().for_each(|channel| channel.size = Octets::new(560));
    let network = by_protocol(network);
    let observed = simulated(&network, 1);
    let reservations = observed.reservations.as_ref().expect("the protocol takes part");
    let [first, second] = &reservations.channels[..] else { panic!("two channels") };
    assert!(first.is_complete && !second.is_complete);
    // Where something failed, talkers wait whether that is the last word.
    let begun = reservations.begun.expect("all is decided") - NetTime::ZERO;
    assert!(Span::from_s(1) < begun && begun < Span::from_s(2), "{begun}");
    let (status, ready) = second.listeners[0];
    assert!(matches!(status, ListenerReservation::Failed(code, Some(NodeId(0))) if code.0 == 1));
    assert_eq!((second.status, ready), (ReservationStatus::AskingFailed, None));
    assert_eq!(observed.channels[0].policed, 0);
    let refused = &observed.channels[1];
    assert!(refused.released > 0 && refused.policed == refused.released);
}
