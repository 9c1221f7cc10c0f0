//! What must hold in any network.

use crate::network::{Network, NoiseSpec, deliveries, trace};
use onbeat_model::port::{GateControl, GateEntry, Policing, TokenBucket};
use onbeat_model::stream::{FaultKind, Source};
use onbeat_model::system::{Bridge, ChannelId, Class, Delay, LinkId, NodeId, NodeKind};
use onbeat_model::time::{NetTime, Span};
use onbeat_model::units::{BitRate, Octets, frame};
use onbeat_net::{Engine, Output};
use proptest::prelude::*;
use std::collections::HashMap;

/// What a random network is made of; numbers are taken modulo what there is.
#[derive(Clone, Debug)]
struct Recipe {
    /// Per bridge: the bridge before it that it is plugged into, its rate, its limit of frames,
    /// whether it cuts through.
    bridges: Vec<(usize, u64, u32, bool)>,
    /// Per host: its bridge, its rate, its spread of stack delays in µs.
    hosts: Vec<(usize, u64, i64)>,
    /// Per channel: talker, the hosts that listen (bits), class.
    channels: Vec<(usize, u8, Option<Class>)>,
    /// Per port: the queues that are preemptable, and those that are open in the first half of each
    /// cycle and closed in the second.
    ports: Vec<(u8, u8)>,
    /// From, to.
    noise: Vec<(usize, usize)>,
    /// Per message: channel, octets, time in µs since the one before.
    messages: Vec<(usize, usize, i64)>,
    seed: u64,
}

/// None, all of them, or any.
fn of_queues() -> impl Strategy<Value = u8> {
    prop_oneof![Just(0), Just(u8::MAX), any::<u8>()]
}

fn recipe() -> impl Strategy<Value = Recipe> {
    let rate = prop_oneof![Just(10u64), Just(100), Just(1_000), Just(700)];
    let class = prop_oneof![
        Just(None),
        Just(Some(Class::A)),
        Just(Some(Class::B)),
        Just(Some(Class::Scheduled))
    ];
    (
        prop::collection::vec((0..9usize, rate.clone(), 1..20u32, any::<bool>()), 1..5),
        prop::collection::vec((0..9usize, rate, 0..200i64), 2..7),
        prop::collection::vec((0..9usize, 1..128u8, class), 1..6),
        prop::collection::vec((of_queues(), of_queues()), 1..9),
        prop::collection::vec((0..9usize, 0..9usize), 0..3),
        prop::collection::vec((0..9usize, 40..1_519usize, 0..400i64), 1..150),
        any::<u64>(),
    )
        .prop_map(|(bridges, hosts, channels, ports, noise, messages, seed)| Recipe {
            bridges,
            hosts,
            channels,
            ports,
            noise,
            messages,
            seed,
        })
}

/// Hosts are nodes 0.., bridges follow. `unicast`: each channel keeps its first listener only.
fn build(recipe: &Recipe, unicast: bool) -> Network {
    let mut network = Network::new();
    let hosts: Vec<NodeId> = recipe.hosts.iter().map(|_| network.host()).collect();
    let mut bridges = Vec::new();
    for (at, (before, mbps, limit, cut_through)) in recipe.bridges.iter().enumerate() {
        let bridge = network.bridge(0);
        network.limits(bridge, *limit, 20_000);
        let kind = NodeKind::Bridge(Bridge {
            forwarding: Span::from_ns(700 * (at as i64 + 1)),
            cut_through: *cut_through,
            learning: false,
            dedicated_path: None,
            shared_buffer: Some(Octets::new(30_000)),
        });
        network.system.nodes[bridge.index()].kind = kind;
        if at > 0 {
            network.link(bridges[before % at], bridge, *mbps, 33);
        }
        bridges.push(bridge);
    }
    for (host, (at, mbps, spread)) in hosts.iter().zip(&recipe.hosts) {
        network.link(*host, bridges[at % bridges.len()], *mbps, 50);
        let delay = || Delay::Interval { min: Span::ZERO, max: Span::from_us(*spread) };
        network.delays(*host, delay(), delay(), Delay::Zero);
    }
    for (talker, listeners, class) in &recipe.channels {
        let talker = hosts[talker % hosts.len()];
        let mut chosen: Vec<NodeId> = (hosts.iter().copied())
            .filter(|host| *host != talker && listeners >> host.0 & 1 == 1)
            .collect();
        if chosen.is_empty() {
            chosen.extend(hosts.iter().find(|host| **host != talker));
        }
        chosen.truncate(if unicast { 1 } else { usize::MAX });
        network.channel(talker, &chosen, *class);
    }
    network.shape_all(3, 2);
    for (port, (preemptable, open)) in
        network.plan.ports.iter_mut().zip(recipe.ports.iter().cycle())
    {
        port.settings.preemptable = *preemptable;
        // Each half is enough for a longest frame at 10 Mb/s.
        let entries = [*open, !*open].map(|open| GateEntry { open, span: Span::from_us(1_500) });
        port.settings.gates.push(GateControl {
            base: NetTime::from_ns(-500_000),
            cycle: Span::from_us(3_000),
            entries: entries.to_vec(),
            length_aware: open % 3 > 0,
        });
    }
    network
}

fn add_noise(network: &mut Network, recipe: &Recipe) {
    let count = recipe.hosts.len();
    for (from, to) in &recipe.noise {
        let (from, to) = (from % count, to % count);
        if from != to {
            let spec = NoiseSpec {
                payload: 900,
                interval: 70_000,
                jitter: true,
                start: 5,
                on: 500_000,
                off: 300_000,
            };
            network.noise(NodeId(from as u32), NodeId(to as u32), spec);
        }
    }
}

/// The latency of a frame of `octets` (handed over) in an idle network, without stack delays.
fn idle_latency(network: &Network, channel: ChannelId, listener: usize, octets: usize) -> i64 {
    let frame = Octets::new((octets as u32 + 4).max(68));
    let hop = |port: &onbeat_model::system::PortId| {
        let link = network.system.link_of(*port);
        let peer = network.system.port(network.system.port(*port).peer).node;
        let (forwarding, needed) = match &network.system.node(peer).kind {
            NodeKind::Bridge(bridge) if bridge.cut_through => (bridge.forwarding, Octets::new(18)),
            NodeKind::Bridge(bridge) => (bridge.forwarding, frame),
            NodeKind::Host(_) => (Span::ZERO, frame),
        };
        link.rate.time_for(frame::PREAMBLE + needed) + link.propagation + forwarding
    };
    network.plan.channel(channel).paths[listener].iter().map(hop).sum::<Span>().as_ns()
}

fn dropped(engine: &Engine, network: &Network) -> u64 {
    let ports = (0..network.system.ports.len() as u32).map(onbeat_model::system::PortId);
    ports.flat_map(|port| engine.port_counters(port).dropped).sum()
}

/// A message that begins with its number.
fn message(number: usize, octets: usize) -> Vec<u8> {
    let mut message = vec![0; octets];
    message[..8].copy_from_slice(&(number as u64).to_le_bytes());
    message
}

proptest! {
    #[test]
    fn what_was_sent_is_delivered_or_dropped_or_under_way(recipe in recipe()) {
        let network = build(&recipe, true);
        let mut engine = network.engine(recipe.seed, 0);
        let (mut sent, mut delivered) = (0u64, 0u64);
        let mut now = 0;
        for (number, (channel, octets, pause)) in recipe.messages.iter().enumerate() {
            now += pause * 1_000;
            delivered += deliveries(&mut engine, now).len() as u64;
            let channel = ChannelId((channel % recipe.channels.len()) as u32);
            engine.send(channel, &message(number, *octets));
            sent += 1;
            let under_way = engine.frames_under_way() as u64;
            prop_assert_eq!(sent, delivered + dropped(&engine, &network) + under_way);
        }
        delivered += deliveries(&mut engine, i64::MAX).len() as u64;
        prop_assert_eq!(sent, delivered + dropped(&engine, &network));
        prop_assert_eq!(engine.frames_under_way(), 0);
        prop_assert_eq!(engine.next_event(), None);
    }

    #[test]
    fn each_listener_gets_messages_in_order_once_and_never_before_the_idle_latency(
        recipe in recipe(),
    ) {
        let mut network = build(&recipe, false);
        add_noise(&mut network, &recipe);
        let mut engine = network.engine(recipe.seed, 30_000_000);
        let mut sent_at = Vec::new();
        let mut newest: HashMap<(u32, usize), usize> = HashMap::new();
        let mut at = NetTime::ZERO;
        let mut number = 0;
        engine.alarm(at, 0);
        while let Some(output) = engine.advance(NetTime::MAX) {
            match output {
                Output::Overfull(overfull) => panic!("{overfull:?}"),
                Output::Woke { .. } => {
                    let (channel, octets, pause) = recipe.messages[number];
                    let channel = ChannelId((channel % recipe.channels.len()) as u32);
                    let queued = engine.send(channel, &message(number, octets));
                    sent_at.push((channel, octets, queued));
                    number += 1;
                    if number < recipe.messages.len() {
                        at += Span::from_us(pause);
                        engine.alarm(at, 0);
                    }
                }
                Output::Delivered { channel, listener, arrived } => {
                    let octets = engine.delivered_frame();
                    let number = u64::from_le_bytes(octets[..8].try_into().unwrap()) as usize;
                    let (of, size, queued) = sent_at[number];
                    prop_assert_eq!((of, size), (channel, octets.len()));
                    let idle = idle_latency(&network, channel, listener, size);
                    prop_assert!((arrived - queued).as_ns() >= idle);
                    prop_assert!(arrived <= engine.now());
                    let before = newest.insert((channel.0, listener), number);
                    prop_assert!(before.is_none_or(|before| before < number));
                }
            }
        }
        prop_assert_eq!(engine.frames_under_way(), 0);
    }

    #[test]
    fn the_size_of_the_steps_changes_nothing(recipe in recipe(), step in 1..50_000i64) {
        let mut network = build(&recipe, false);
        add_noise(&mut network, &recipe);
        let outcome = |step: i64| {
            let mut engine = network.engine(recipe.seed, 5_000_000);
            let (mut seen, mut now) = (Vec::new(), 0);
            for (number, (channel, octets, pause)) in recipe.messages.iter().enumerate() {
                let next = now + pause * 1_000;
                while now < next {
                    now = next.min(now + step);
                    seen.extend(deliveries(&mut engine, now));
                }
                let channel = ChannelId((channel % recipe.channels.len()) as u32);
                engine.send(channel, &message(number, *octets));
            }
            seen.extend(deliveries(&mut engine, i64::MAX));
            let ports = (0..network.system.ports.len() as u32).map(onbeat_model::system::PortId);
            (seen, ports.map(|port| engine.port_observed(port)).collect::<Vec<_>>())
        };
        prop_assert_eq!(outcome(step), outcome(i64::MAX / 2));
    }
}

/// Turns the channels of a recipe into streams of all kinds, with policing and faults.
fn add_streams(network: &mut Network, recipe: &Recipe) {
    let channels = std::mem::take(&mut network.system.channels);
    network.plan.channels.clear();
    let us = Span::from_us;
    for (at, channel) in channels.into_iter().enumerate() {
        let spread = recipe.messages[at % recipe.messages.len()].2;
        let source = match at % 4 {
            0 => Source::Periodic { interval: us(150), jitter: us(spread) },
            1 => Source::Sporadic { interval: us(20), mean: us(20 + spread) },
            2 => Source::Bursty { interval: us(700), frames: 9 },
            _ => trace(300, &[0, 0, 0, 5_000, 5_000, 90_000]),
        };
        let stream = network.stream(channel.talker, &channel.listeners, [68, 1_500], source);
        let meter = TokenBucket { rate: BitRate::from_mbps(9), burst: Octets::new(6_000) };
        let policing = Policing { meter: Some(meter), ..Policing::default() };
        network.system.streams[stream.index()].policing = (at % 3 > 0).then_some(policing);
        network.system.streams[stream.index()].traffic_class = (recipe.seed >> at) as u8 % 8;
    }
    let links = network.system.links.len() as u64;
    let link = |shift: u32| LinkId((recipe.seed.rotate_left(shift) % links) as u32);
    network.fault(FaultKind::LinkDown(link(5)), 200_000, 900_000);
    network.fault(FaultKind::FrameErrors { link: link(9), per_billion: 50_000_000 }, 0, i64::MAX);
    let node = NodeId((recipe.seed % network.system.nodes.len() as u64) as u32);
    network.fault(FaultKind::NodeDown(node), 1_500_000, 1_700_000);
    network.fault(FaultKind::Babble(0), 2_000_000, 2_200_000);
}

proptest! {
    #[test]
    fn what_streams_release_is_received_or_accounted_for(recipe in recipe()) {
        let mut network = build(&recipe, true);
        add_streams(&mut network, &recipe);
        add_noise(&mut network, &recipe);
        let observed = network.observed(3_000_000);
        for stream in &observed.streams {
            let lost = stream.policed + stream.overflowed + stream.faulted;
            prop_assert_eq!(stream.released, stream.listeners[0].frames + lost);
            prop_assert_eq!((stream.duplicates, stream.listeners[0].reordered), (0, 0));
        }
        let dropped = observed.ports.iter().flat_map(|port| port.queues).map(|q| q.dropped);
        let overflowed = observed.streams.iter().map(|s| s.overflowed).sum::<u64>();
        prop_assert!(dropped.sum::<u64>() >= overflowed);
        prop_assert_eq!(network.observed(3_000_000), observed);
    }
}
