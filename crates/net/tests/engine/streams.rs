//! Modelled streams and channels, and policing. A frame of 100 octets takes 864 ns of a link of
//! 1 Gb/s with its preamble, and 960 ns with its gap.

use crate::network::{Network, every, star, trace};
use onbeat_model::observed::LatencyObserved;
use onbeat_model::port::{Policing, TokenBucket};
use onbeat_model::stream::{FaultKind, Source};
use onbeat_model::system::{Class, Delay, NodeId, PortId, StreamIndex};
use onbeat_model::time::{ClockError, NetTime, Span};
use onbeat_model::units::{BitRate, Octets};
use onbeat_net::{Engine, FlowRef, Options, Transmission};

/// Two links of 864 + 50 ns, 1 µs in the bridge.
const IDLE: i64 = 2 * 914 + 1_000;

fn latency(end: &LatencyObserved) -> (u64, i64, i64, i128) {
    let ns = |span: Option<Span>| span.unwrap().as_ns();
    (end.frames, ns(end.min), ns(end.max), end.sum_ns)
}

/// What leaves the first port within `ns`.
fn sent(network: &Network, ns: i64) -> Vec<Transmission> {
    let options = Options {
        seed: 3,
        host_delays: true,
        load_bin: Span::from_ms(1),
        noise_until: NetTime::ZERO,
        traffic_until: NetTime::from_ns(ns),
        model_channels: true,
    };
    let mut engine = Engine::new(&network.system, &network.plan, options);
    engine.tap(&[PortId(0)]);
    assert_eq!(engine.advance(NetTime::MAX), None);
    engine.take_transmissions()
}

fn released(network: &Network, ns: i64) -> Vec<i64> {
    sent(network, ns).iter().map(|t| t.released.as_ns()).collect()
}

#[test]
fn a_periodic_stream_takes_the_hand_computed_time_to_each_listener() {
    let (mut network, hosts, _) = star(4);
    let fixed = |ns| Delay::Interval { min: Span::from_ns(ns), max: Span::from_ns(ns) };
    network.delays(hosts[0], fixed(300), Delay::Zero, Delay::Zero);
    network.delays(hosts[2], Delay::Zero, fixed(70), Delay::Zero);
    network.stream(hosts[0], &hosts[1..3], [100, 100], every(10_000));
    network.system.streams[0].phase = Span::from_ns(5_000);
    let observed = network.observed(35_000);
    // At 5, 15 and 25 µs; 35 µs is no more.
    let stream = &observed.streams[0];
    assert_eq!(stream.released, 3);
    let [near, far] = [IDLE + 300, IDLE + 370];
    assert_eq!(latency(&stream.listeners[0]), (3, near, near, 3 * i128::from(near)));
    assert_eq!(latency(&stream.listeners[1]), (3, far, far, 3 * i128::from(far)));
    assert_eq!(observed.ports.iter().map(|p| p.queues[4].sent).sum::<u64>(), 9);
    assert_eq!(observed.duration, Span::from_ns(35_000));
}

#[test]
fn sources_go_by_their_talkers_clock() {
    let (mut network, hosts, _) = star(2);
    network.stream(hosts[0], &hosts[1..], [100, 100], every(10_000));
    let clock = |offset, drift_ppb| ClockError {
        offset: Span::from_ns(offset),
        drift_ppb,
        ..ClockError::default()
    };
    // 12 µs ahead: 0 and 10 µs are past at the epoch, 20 µs comes at 8 µs.
    network.system.nodes[0].clock = clock(12_000, 0);
    assert_eq!(released(&network, 30_000), [8_000, 18_000, 28_000]);
    network.system.nodes[0].clock = clock(-12_000, 0);
    assert_eq!(released(&network, 30_000), [12_000, 22_000]);
    // 1000 ppm fast: 10,000 are read at 9990.01, so at 9991; 20,000 at 19,980.02.
    network.system.nodes[0].clock = clock(0, 1_000_000);
    assert_eq!(released(&network, 25_000), [0, 9_991, 19_981]);
}

#[test]
fn sources_leave_out_what_their_clock_steps_over() {
    let steps = |by, from, until| {
        let (mut network, hosts, _) = star(2);
        network.stream(hosts[0], &hosts[1..], [100, 100], every(10_000));
        let kind = FaultKind::ClockStep { node: NodeId(0), by: Span::from_ns(by) };
        network.fault(kind, from, until);
        released(&network, 60_000)
    };
    // At 15 µs it reads 40: 20 and 30 are never read, 40 is.
    let never = i64::MAX;
    let all = [0, 10_000, 15_000, 25_000, 35_000, 45_000, 55_000];
    assert_eq!(steps(25_000, 15_000, never), all);
    assert_eq!(steps(27_000, 15_000, never), [0, 10_000, 23_000, 33_000, 43_000, 53_000]);
    // Set back at 15 µs to 2: 10 has been, 20 comes at 33.
    assert_eq!(steps(-13_000, 15_000, never), [0, 10_000, 33_000, 43_000, 53_000]);
    // And forth again at 40 µs, from 27 to 40: 30 is never read.
    assert_eq!(steps(-13_000, 15_000, 40_000), [0, 10_000, 33_000, 40_000, 50_000]);
    // By a whole second, at the epoch: none is late.
    assert_eq!(steps(1_000_000_000, 0, 1_000), [0]);
    assert_eq!(steps(-1_000_000_000, 0, 1_000), [10_000, 20_000, 30_000, 40_000, 50_000]);
}

#[test]
fn a_burst_leaves_back_to_back() {
    let (mut network, hosts, _) = star(2);
    let source = Source::Bursty { interval: Span::from_us(100), frames: 3 };
    network.stream(hosts[0], &hosts[1..], [100, 100], source);
    let observed = network.observed(200_000);
    let end = latency(&observed.streams[0].listeners[0]);
    // Each waits 960 ns for the one before at its host's port, and nowhere else.
    assert_eq!(end, (6, IDLE, IDLE + 1_920, i128::from(6 * IDLE + 2 * 2_880)));
    assert_eq!(observed.ports[0].queues[4].deepest_frames, 3);
}

#[test]
fn a_trace_is_released_as_it_is_written() {
    let (mut network, hosts, _) = star(2);
    let frames = [(0, 68), (3_000, 1_522), (3_000, 68), (90_000, 100)];
    let source = frames.map(|(at, octets)| (Span::from_ns(at), Octets::new(octets)));
    network.stream(hosts[0], &hosts[1..], [68, 1_522], Source::Trace(source.to_vec()));
    network.system.streams[0].phase = Span::from_us(1);
    let seen = sent(&network, 80_000);
    let facts: Vec<_> =
        seen.iter().map(|t| (t.released.as_ns(), t.at.as_ns(), t.octets, t.sequence)).collect();
    let after = 4_000 + (1_522 + 20) * 8;
    assert_eq!(facts, [(1_000, 1_000, 68, 0), (4_000, 4_000, 1_522, 1), (4_000, after, 68, 2)]);
    assert!(seen.iter().all(|t| t.flow == FlowRef::Stream(StreamIndex(0)) && t.port == PortId(0)));
}

#[test]
fn what_is_drawn_stays_within_its_limits_and_reaches_them() {
    let (mut network, hosts, _) = star(2);
    let ns = Span::from_ns;
    let source = Source::Periodic { interval: ns(10_000), jitter: ns(9) };
    network.stream(hosts[0], &hosts[1..], [90, 99], source);
    let seen = sent(&network, 5_000_000);
    assert_eq!(seen.len(), 500);
    let range = |of: &dyn Fn(&Transmission) -> i64| {
        (seen.iter().map(of).min().unwrap(), seen.iter().map(of).max().unwrap())
    };
    assert_eq!(range(&|t| t.released.as_ns() % 10_000), (0, 9));
    assert_eq!(range(&|t| t.octets.into()), (90, 99));
    network.system.streams[0].source = Source::Sporadic { interval: ns(2_000), mean: ns(2_005) };
    let times = released(&network, 2_005_000);
    let gaps: Vec<i64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!((gaps.iter().min(), gaps.iter().max()), (Some(&2_000), Some(&2_010)));
    assert!((990..=1_010).contains(&times.len()), "{}", times.len());
}

#[test]
fn jitter_beyond_the_interval_keeps_the_frames_in_order_and_none_is_too_late() {
    let (mut network, hosts, _) = star(2);
    let ns = Span::from_ns;
    let source = Source::Periodic { interval: ns(2_000), jitter: ns(7_000) };
    network.stream(hosts[0], &hosts[1..], [100, 100], source);
    let times = released(&network, 1_000_000);
    assert!(times.is_sorted());
    let late = |(n, at): (usize, &i64)| (0..=7_000).contains(&(at - n as i64 * 2_000));
    assert!(times.iter().enumerate().all(late));
}

#[test]
fn a_modelled_channel_sends_a_message_each_interval_from_its_phase_on() {
    let (mut network, hosts, _) = star(3);
    let channel = network.channel(hosts[0], &hosts[1..], Some(Class::A));
    network.shape_all(100, 1);
    network.system.channels[0].phase = Span::from_us(250);
    let observed = network.observed(3_000_000);
    let seen = &observed.channels[channel.index()];
    assert_eq!(seen.released, 3);
    // 8 octets of payload make a frame of 68: 76 octets take 608 ns.
    let idle = 2 * (608 + 50) + 1_000;
    for end in &seen.listeners {
        assert_eq!(latency(end), (3, idle, idle, 3 * i128::from(idle)));
    }
}

/// Frames of 100 octets (120 on the wire) at these times, through a filter; which came.
fn policed(policing: Policing, times: &[i64]) -> (u64, u64) {
    let (mut network, hosts, _) = star(2);
    network.stream(hosts[0], &hosts[1..], [100, 100], trace(100, times));
    network.system.streams[0].policing = Some(policing);
    let seen = network.observed(1_000_000);
    let stream = &seen.streams[0];
    assert_eq!(stream.released, times.len() as u64);
    (stream.policed, stream.listeners[0].frames)
}

#[test]
fn the_first_bridge_drops_what_exceeds_the_meter_or_the_longest_frame() {
    // 96 Mb/s: a frame of 960 bits each 10 µs; room for two.
    let meter = Some(TokenBucket { rate: BitRate::from_mbps(96), burst: Octets::new(240) });
    let free = Policing { meter, ..Policing::default() };
    assert_eq!(policed(free, &[0, 960, 10_000, 19_999]), (1, 3));
    assert_eq!(policed(free, &[0, 960, 10_000, 20_000]), (0, 4));
    // Whether a blocked stream passes again.
    assert_eq!(policed(free, &[0, 960, 1_920, 500_000]), (1, 3));
    assert_eq!(policed(Policing { block: true, ..free }, &[0, 960, 1_920, 500_000]), (2, 2));
    let short = Policing { max_frame: Some(Octets::new(99)), ..Policing::default() };
    assert_eq!(policed(short, &[0]), (1, 0));
    let long = Policing { max_frame: Some(Octets::new(100)), ..Policing::default() };
    assert_eq!(policed(long, &[0]), (0, 1));
}

#[test]
#[should_panic(expected = "is not in VLAN 2")]
fn a_path_out_of_its_vlan_is_refused() {
    let (mut network, hosts, _) = star(2);
    network.stream(hosts[0], &hosts[1..], [100, 100], every(10_000));
    network.plan.ports[3].settings.vlans = Some(vec![1, 3]);
    network.engine(1, 0);
}
