//! Whole networks in the engine, with talkers that send as early and as much at once as they may,
//! against the bounds that the plan promises.

use crate::build::Net;
use onbeat_bounds::plan;
use onbeat_model::system::{Bridge, ChannelId, Class, Delay, NodeKind};
use onbeat_model::time::{NetTime, Span};
use onbeat_model::units::{Octets, frame};
use onbeat_net::{Engine, Options, Output};
use proptest::prelude::*;
use proptest::sample::Index;

const HOSTS: [&str; 5] = ["h1", "h2", "h3", "h4", "h5"];
const BRIDGES: [&str; 4] = ["b1", "b2", "b3", "b4"];

#[derive(Clone, Debug)]
struct Stream {
    b: bool,
    size: u32,
    interval_ns: i64,
    burst: u32,
    talker: Index,
    listener: Index,
    /// Per message: how long after the earliest allowed capture.
    lags: Vec<i64>,
}

fn stream() -> impl Strategy<Value = Stream> {
    let interval = prop_oneof![Just(125_000i64), 125_000i64..2_000_000];
    let lag = prop_oneof![4 => Just(0), 1 => 0i64..300_000];
    let lags = proptest::collection::vec(lag, 1..60);
    let burst = prop_oneof![3 => Just(1u32), 2 => 2u32..20];
    (any::<bool>(), 1u32..300, interval, burst, any::<Index>(), any::<Index>(), lags).prop_map(
        |(b, size, interval_ns, burst, talker, listener, lags)| Stream {
            b,
            size,
            interval_ns,
            burst,
            talker,
            listener,
            lags,
        },
    )
}

#[derive(Clone, Debug)]
struct Shape {
    /// Where each host and each bridge but the first is plugged in, and the rate of that link.
    at: Vec<(Index, u64)>,
    stack_ns: Vec<i64>,
    streams: Vec<Stream>,
    noise: Vec<(Index, Index)>,
    seed: u64,
}

fn shape() -> impl Strategy<Value = Shape> {
    let rate = prop_oneof![Just(100_000_000u64), Just(1_000_000_000), Just(2_500_000_000)];
    let links = HOSTS.len() + BRIDGES.len() - 1;
    (
        proptest::collection::vec((any::<Index>(), rate), links),
        proptest::collection::vec(0i64..200_000, HOSTS.len()),
        proptest::collection::vec(stream(), 1..8),
        proptest::collection::vec((any::<Index>(), any::<Index>()), 0..5),
        any::<u64>(),
    )
        .prop_map(|(at, stack_ns, streams, noise, seed)| Shape {
            at,
            stack_ns,
            streams,
            noise,
            seed,
        })
}

/// Two different hosts.
fn pair(from: Index, to: Index) -> (&'static str, &'static str) {
    let from = from.index(HOSTS.len());
    let to = (from + 1 + to.index(HOSTS.len() - 1)) % HOSTS.len();
    (HOSTS[from], HOSTS[to])
}

fn net(shape: &Shape) -> Net {
    let mut net = Net::new(&HOSTS, &BRIDGES);
    let mut links = shape.at.iter();
    for (i, bridge) in BRIDGES.iter().enumerate() {
        net.node(bridge).kind =
            NodeKind::Bridge(Bridge { forwarding: Span::from_ns(777), ..Bridge::default() });
        if i > 0 {
            let (at, rate) = links.next().expect("a link for each");
            net.link(bridge, BRIDGES[at.index(i)], *rate);
        }
    }
    for (host, stack_ns) in HOSTS.iter().zip(&shape.stack_ns) {
        let (at, rate) = links.next().expect("a link for each");
        net.link(host, BRIDGES[at.index(BRIDGES.len())], *rate);
        let delay = Delay::Interval { min: Span::ZERO, max: Span::from_ns(*stack_ns) };
        net.host(host).stack_tx = delay.clone();
        net.host(host).stack_rx = delay;
    }
    for link in &mut net.0.links {
        link.propagation = Span::from_ns(333);
    }
    for (i, stream) in shape.streams.iter().enumerate() {
        let (from, to) = pair(stream.talker, stream.listener);
        let channel = net.channel(&format!("c{i}"), from, &[to]);
        channel.class = if stream.b { Class::B } else { Class::A };
        channel.size = Octets::new(stream.size);
        channel.interval = Span::from_ns(stream.interval_ns);
        channel.burst = stream.burst;
    }
    for (from, to) in &shape.noise {
        let (from, to) = pair(*from, *to);
        net.noise(from, to);
    }
    net
}

/// The worst latency of each channel; panics when a frame is lost.
fn run(net: &Net, shape: &Shape, plan: &onbeat_model::plan::Plan) -> Vec<Span> {
    let end = NetTime::from_ns(500_000_000);
    let options = Options {
        seed: shape.seed,
        host_delays: true,
        load_bin: Span::from_ms(100),
        noise_until: NetTime::from_ns(100_000_000),
        traffic_until: NetTime::ZERO,
        model_channels: false,
    };
    let mut engine = Engine::new(&net.0, plan, options);
    let mut due = vec![None; shape.streams.len()];
    let mut sent = vec![0; shape.streams.len()];
    let mut worst = vec![Span::ZERO; shape.streams.len()];
    let mut received = 0;
    for (token, stream) in (0u64..).zip(&shape.streams) {
        engine.alarm(NetTime::ZERO + Span::from_ns(stream.lags[0]), token);
    }
    while let Some(output) = engine.advance(end) {
        match output {
            Output::Overfull(overfull) => panic!("{overfull:?}"),
            Output::Woke { token } => {
                let at = token as usize;
                let (channel, lags) = (&net.0.channels[at], &shape.streams[at].lags);
                let octets = channel.frame().get() - frame::FCS.get();
                let mut octets = vec![0; octets as usize];
                octets[..8].copy_from_slice(&engine.now().as_ns().to_le_bytes());
                engine.send(ChannelId(token as u32), &octets);
                sent[at] += 1;
                let next = due[at].unwrap_or(engine.now()).max(engine.now()) + channel.interval;
                due[at] = Some(next);
                if let Some(lag) = lags.get(sent[at]) {
                    let allowed = (next - channel.tolerance()).max(engine.now());
                    engine.alarm(allowed + Span::from_ns(*lag), token);
                }
            }
            Output::Delivered { channel, .. } => {
                let capture = engine.delivered_frame()[..8].try_into().expect("eight octets");
                let latency = engine.now() - NetTime::from_ns(i64::from_le_bytes(capture));
                worst[channel.index()] = worst[channel.index()].max(latency);
                received += 1;
            }
        }
    }
    let expected: usize = shape.streams.iter().map(|s| s.lags.len()).sum();
    assert_eq!(received, expected, "frames with a reservation were lost");
    worst
}

/// Limits of the queues that just hold what the plan says may be there.
fn tightest_queues(net: &mut Net, plan: &onbeat_model::plan::Plan) {
    for node in &mut net.0.nodes {
        let queues = node.ports.iter().flat_map(|port| &plan.backlogs[port.index()]);
        // What has no bound, best effort, may be lost.
        let frames = queues.filter_map(|backlog| Some(backlog.as_ref()?.frames)).max();
        node.queue.frames = frames.unwrap_or(1).max(1) as u32;
    }
}

proptest! {
    #[test]
    fn no_message_takes_longer_than_its_bound_and_none_is_lost(shape in shape()) {
        let mut net = net(&shape);
        let Ok(roomy) = plan(&net.0, true) else { return Ok(()) };
        tightest_queues(&mut net, &roomy);
        let plan = plan(&net.0, true).unwrap();
        for (at, worst) in run(&net, &shape, &plan).into_iter().enumerate() {
            let bound = plan.channels[at].bound().unwrap();
            prop_assert!(worst <= bound, "c{at} took {worst}, promised {bound}");
        }
    }
}
