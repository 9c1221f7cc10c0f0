//! The planner and the protocol, each on its own, give the same verdict on the same system.
//!
//! `ONBEAT_RESERVATION_SYSTEMS=2000` runs as many systems.

use crate::build::Net;
use crate::routes::stream;
use onbeat_bounds::{KeptPlan, plan};
use onbeat_model::codes::plan as codes;
use onbeat_model::diagnostic::Diagnostic;
use onbeat_model::integrity::Integrity;
use onbeat_model::plan::Plan;
use onbeat_model::port::Selection;
use onbeat_model::reservation::{
    FailureCode, ListenerReservation, ReservationStatus, ReservationsObserved,
};
use onbeat_model::system::{
    Bridge, Channel, ChannelId, Class, NodeId, NodeKind, PortId, ReservationMode, System,
};
use onbeat_model::time::{ClockError, NetTime, Span};
use onbeat_model::units::{BitRate, MacAddress, Octets};
use onbeat_net::{Engine, Options, join_protocols};
use onbeat_testkit::Random;

fn plan_for_protocol(system: &System) -> Result<(Plan, Vec<Diagnostic>), Vec<Diagnostic>> {
    onbeat_bounds::plan_for_protocol(system, &KeptPlan::default())
}

/// A network of bridges, perhaps with circles, with hosts at them; or two hosts back to back.
fn draw(seed: u64) -> System {
    let mut random = Random(seed);
    let hosts: Vec<_> = (0..2 + random.below(6)).map(|n| format!("h{n}")).collect();
    let bridges: Vec<_> = (0..random.below(6)).map(|n| format!("b{n}")).collect();
    let hosts = if bridges.is_empty() { &hosts[..2] } else { &hosts };
    let names = |all: &[String]| all.iter().map(|n| n.clone().leak() as &str).collect::<Vec<_>>();
    let (hosts, bridges) = (names(hosts), names(&bridges));
    let mut net = Net::new(&hosts, &bridges);
    for (at, host) in hosts.iter().enumerate() {
        net.host(host).mac = MacAddress([2, 0, 0, 0, 0, at as u8 + 1]);
        let drift_ppb = random.one_of(&[0, 0, -100_000, 100_000, 1_000_000]);
        net.node(host).clock = ClockError { drift_ppb, ..ClockError::default() };
    }
    let rates = [30_000_000, 100_000_000, 1_000_000_000, 1_000_000_000];
    for (at, bridge) in bridges.iter().enumerate() {
        let forwarding = Span::from_ns(random.below(5_000) as i64);
        net.node(bridge).kind = NodeKind::Bridge(Bridge { forwarding, ..Bridge::default() });
        if at > 0 {
            let other = bridges[random.below(at as u64) as usize];
            net.link(bridge, other, random.one_of(&rates));
        }
    }
    for _ in 0..if bridges.len() > 2 { random.below(3) } else { 0 } {
        let (a, b) = (random.one_of(&bridges), random.one_of(&bridges));
        if a != b {
            net.link(a, b, random.one_of(&rates));
        }
    }
    match bridges.is_empty() {
        true => {
            net.link(hosts[0], hosts[1], random.one_of(&rates));
        }
        false => hosts.iter().for_each(|host| {
            net.link(host, random.one_of(&bridges), random.one_of(&rates));
        }),
    }
    for link in &mut net.0.links {
        link.propagation = Span::from_ns(random.below(2_000) as i64);
    }
    let b_pcp = random.one_of(&[2, 2, 4]);
    for number in 0..1 + random.below(9) {
        draw_channel(&mut net, &hosts, number, b_pcp, &mut random);
    }
    net.0.run.reservation = ReservationMode::Srp;
    net.0
}

/// What channels are checked by, and how many octets that takes.
const INTEGRITIES: [(Integrity, u32); 4] = [
    (Integrity::None, 0),
    (Integrity::None, 0),
    (Integrity::Crc, 8),
    (Integrity::Authenticated, 32),
];

fn draw_channel(net: &mut Net, hosts: &[&str], number: u64, b_pcp: u8, random: &mut Random) {
    let from = random.one_of(hosts);
    let mut to: Vec<_> = hosts.iter().copied().filter(|host| *host != from).collect();
    while to.len() > 1 && random.percent(60) {
        to.remove(random.below(to.len() as u64) as usize);
    }
    let channel = net.channel(&format!("c{number}"), from, &to);
    channel.class = if random.percent(60) { Class::A } else { Class::B };
    channel.pcp = if channel.class == Class::A { 3 } else { b_pcp };
    let (integrity, trailer) = random.one_of(&INTEGRITIES);
    channel.integrity = integrity;
    let most = random.one_of(&[40, 200, 700, 1_476]) - u64::from(trailer);
    channel.size = Octets::new(1 + random.below(most) as u32);
    let interval =
        random.one_of(&[50_000, 125_000, 200_000, 250_000, 1_000_000, 1_000_000, 20_000_000]);
    channel.interval = Span::from_ns(interval);
    channel.burst = 1 + random.below(3) as u32;
    channel.reserve = random.percent(90);
}

/// What the protocol made of a system within so long.
fn by_protocol(
    system: &System,
    plan: &Plan,
    seed: u64,
    lasts: Span,
) -> (Engine, ReservationsObserved) {
    let end = NetTime::ZERO + lasts;
    let options = Options {
        seed,
        host_delays: true,
        load_bin: Span::from_s(1),
        noise_until: NetTime::ZERO,
        traffic_until: NetTime::ZERO,
        model_channels: false,
    };
    let mut engine = Engine::new(system, plan, options);
    join_protocols(&mut engine, system, plan, seed, end);
    assert_eq!(engine.advance(end), None);
    let observed = engine.reservations_observed().expect("the protocol takes part");
    (engine, observed)
}

/// What a channel takes of the wire by the protocol's arithmetic, worked out here: frames of at
/// least 68 octets, preamble, gap and an octet more, so many in each class measurement interval
/// that a talker whose clock is fast by up to the drawn rate may send them all.
fn rate(system: &System, channel: &Channel) -> u64 {
    let trailer = INTEGRITIES.iter().find(|(integrity, _)| *integrity == channel.integrity);
    let trailer = trailer.map_or(0, |(_, octets)| *octets);
    let octets = u64::from((channel.size.get() + trailer + 24 + 22).max(68) + 21);
    let (interval, per_s) = match channel.class {
        Class::A => (125_000, 8_000),
        _ => (250_000, 4_000),
    };
    let frames = (interval as u64).div_ceil(channel.interval.as_ns() as u64);
    let fast = 1_000_000_000 + i64::from(system.node(channel.talker).clock.drift_ppb).max(0) as u64;
    let real = (octets - 1) as u128 * 8 * u128::from(fast) / channel.interval.as_ns() as u128;
    let one = octets * 8 * per_s;
    frames.max((real as u64).div_ceil(one)) * one
}

fn classes(system: &System, plan: &Plan, port: PortId) -> [u64; 2] {
    let mut sums = [0; 2];
    for (channel, planned) in system.channels.iter().zip(&plan.channels) {
        if planned.protected && planned.tree_ports().contains(&port) {
            sums[usize::from(channel.class != Class::A)] += rate(system, channel);
        }
    }
    sums
}

/// A refusal is true: at a port of the node, on the path to the listener, there is not enough for
/// this channel beside those that have it.
fn is_true(
    system: &System,
    plan: &Plan,
    engine: &Engine,
    id: ChannelId,
    path: &[PortId],
    node: NodeId,
) -> bool {
    let of_node = path.iter().filter(|port| system.port(**port).node == node);
    of_node.into_iter().any(|port| {
        let taken: u64 = [7, 6].iter().map(|queue| engine.idle_slope(*port, *queue).as_bps()).sum();
        let needed = taken + rate(system, system.channel(id));
        plan.channel(id).protected && needed * 4 > system.link_of(*port).rate.as_bps() * 3
    })
}

#[derive(Default)]
struct Count {
    admitted: u32,
    refused: u32,
    slowest: Span,
    failed: u32,
}

fn compare(seed: u64, count: &mut Count) {
    let system = draw(seed);
    let (plan, warnings) = plan_for_protocol(&system).unwrap_or_else(|e| panic!("{seed}: {e:?}"));
    let strict = onbeat_bounds::plan_without_bounds(&system, true, &KeptPlan::default());
    assert_eq!(strict.is_ok(), warnings.is_empty(), "seed {seed}");
    let (engine, observed) = by_protocol(&system, &plan, seed, Span::from_s(25));
    let place = |id: ChannelId| format!("seed {seed}, channel {}", system.channel(id).name);
    let mut all_ready = true;
    for reservation in &observed.channels {
        let (id, mut any_ready) = (reservation.channel, false);
        for ((status, _), path) in reservation.listeners.iter().zip(&plan.channel(id).paths) {
            match status {
                ListenerReservation::Ready => any_ready = true,
                ListenerReservation::Failed(FailureCode::BANDWIDTH, Some(node)) => {
                    all_ready = false;
                    count.failed += 1;
                    let is_true = is_true(&system, &plan, &engine, id, path, *node);
                    assert!(is_true, "{}: {}", place(id), system.node(*node).name);
                }
                other => panic!("{}: {other:?}", place(id)),
            }
        }
        let may_send = [ReservationStatus::Ready, ReservationStatus::ReadyFailed];
        assert_eq!(may_send.contains(&reservation.status), any_ready, "{}", place(id));
    }
    assert_eq!(strict.is_ok(), all_ready, "seed {seed}: the same verdict");
    for port in (0..system.ports.len() as u32).map(PortId) {
        let slopes = [7, 6].map(|queue| engine.idle_slope(port, queue).as_bps());
        assert!(slopes.iter().sum::<u64>() * 4 <= system.link_of(port).rate.as_bps() * 3);
        if all_ready {
            assert_eq!(slopes, classes(&system, &plan, port), "seed {seed}: {port:?}");
            let planned = &plan.ports[port.index()];
            let planned = [Class::A, Class::B].map(|c| planned.idle_slope(c).as_bps());
            assert_eq!(slopes, planned, "seed {seed}: {port:?}");
        }
    }
    match all_ready {
        true => count.admitted += 1,
        false => count.refused += 1,
    }
    for reservation in observed.channels.iter().filter(|_| all_ready) {
        assert!(reservation.is_complete && reservation.lost == 0, "{}", place(reservation.channel));
        assert!(reservation.status == ReservationStatus::Ready);
        let (ready, worst) = (reservation.ready().expect("ready"), reservation.worst_case);
        assert!(ready <= worst.expect("no faults"), "{}: {ready}", place(reservation.channel));
        count.slowest = count.slowest.max(ready);
    }
}

#[test]
fn what_the_plan_admits_becomes_ready_by_protocol_and_what_it_refuses_fails_with_a_true_reason() {
    let systems = std::env::var("ONBEAT_RESERVATION_SYSTEMS").ok();
    let systems = systems.and_then(|text| text.parse().ok()).unwrap_or(150);
    let mut count = Count::default();
    (1..=systems).for_each(|seed| compare(seed, &mut count));
    let Count { admitted, refused, slowest, failed } = count;
    println!("{admitted} admitted, {refused} refused ({failed} listeners); the slowest: {slowest}");
    assert!(
        u64::from(admitted.min(refused)) > systems / 5,
        "{admitted} admitted, {refused} refused"
    );
}

/// Two hosts and a bridge with a channel of each class.
fn small() -> Net {
    let mut net = Net::new(&["a", "b"], &["s"]);
    net.link("a", "s", 100_000_000).link("b", "s", 100_000_000);
    net.channel("x", "a", &["b"]);
    let y = net.channel("y", "a", &["b"]);
    (y.class, y.pcp) = (Class::B, 2);
    net.0.run.reservation = ReservationMode::Srp;
    net
}

/// Where the plan says that the protocol cannot do something, by the channels' positions.
fn hindrances(net: &Net) -> Vec<u32> {
    let errors = plan(&net.0, true).err().unwrap_or_default();
    let of_one = |error: &onbeat_model::diagnostic::Diagnostic| {
        assert_eq!(error.code, codes::NOT_BY_PROTOCOL, "{error:?}");
        error.at.as_ref().map_or(u32::MAX, |(origin, _)| origin.start)
    };
    errors.iter().map(of_one).collect()
}

#[test]
fn what_the_protocol_cannot_say_is_an_error_of_the_channel_that_asks_for_it() {
    assert!(hindrances(&small()).is_empty());
    let mut net = small();
    net.channel("z", "b", &["a"]).vlan = 3;
    assert_eq!(hindrances(&net), [2], "another VLAN in the class");
    let mut net = small();
    net.channel("z", "b", &["a"]).pcp = 5;
    assert_eq!(hindrances(&net), [2], "another priority in the class");
    let mut net = small();
    net.0.channels[1].pcp = 3;
    assert_eq!(hindrances(&net), [1], "one priority for both classes");
    let mut net = small();
    net.0.channels[1].interval = Span::from_ns(3);
    assert_eq!(hindrances(&net), [1], "83,334 frames in 250 us");
    let mut net = small();
    let slope = Selection::CreditBased { idle_slope: BitRate::from_mbps(50) };
    net.0.ports[1].settings.selection[7] = slope;
    assert!(hindrances(&net).is_empty(), "no channel leaves by that port");
    net.0.ports[3].settings.selection[7] = slope;
    assert_eq!(hindrances(&net), [0], "the bridge's port to b");
    net.0.run.reservation = ReservationMode::Plan;
    assert!(hindrances(&net).is_empty(), "the plan can");
}

#[test]
fn a_host_that_talks_on_more_channels_than_a_station_has_streams_is_an_error() {
    let mut net = small();
    net.0.channels.iter_mut().for_each(|channel| channel.interval = Span::from_ms(20));
    for _ in 0..1_023 {
        net.channel("z", "b", &["a"]).reserve = true;
    }
    assert!(plan_for_protocol(&net.0).is_ok(), "1,023 talkers");
    net.channel("z", "b", &["a"]);
    net.channel("z", "b", &["a"]);
    let errors = plan_for_protocol(&net.0).expect_err("1,025 talkers and listeners");
    assert_eq!(errors.len(), 2, "a listens to as many: {errors:?}");
}

#[test]
fn a_stream_below_network_control_has_a_bound_only_if_no_protocol_reserves() {
    for (mode, traffic_class, bounded) in [
        (ReservationMode::Plan, 5, true),
        (ReservationMode::Srp, 5, false),
        (ReservationMode::Plan, 4, true),
        (ReservationMode::Srp, 4, false),
    ] {
        let mut net = small();
        net.0.run.reservation = mode;
        let stream = stream(&mut net, "s", "a", &["b"]);
        (stream.traffic_class, stream.pcp) = (traffic_class, traffic_class);
        stream.frame = [Octets::new(100); 2];
        let plan = plan(&net.0, true).expect("admitted");
        assert_eq!(plan.streams[0].bounds[0].is_some(), bounded, "{mode:?} {traffic_class}");
        let why = plan.streams[0].unbounded[0].as_ref().map(|reason| reason.why.clone());
        let says = why.is_some_and(|why| why.contains("frames of the reservation protocol"));
        assert_eq!(says, !bounded, "{mode:?} {traffic_class}");
    }
}
