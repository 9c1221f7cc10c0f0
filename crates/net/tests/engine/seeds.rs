//! Same seed, same run.

use crate::network::{Delivery, Network, NoiseSpec, deliveries, two_bridges};
use onbeat_model::system::{Class, Delay, NodeId};
use onbeat_model::time::Span;
use onbeat_net::Engine;

/// The two bridges with an unprotected and a protected channel and random delays everywhere.
fn noisy() -> Network {
    let mut network = two_bridges(1_000, 14_771, 4, 1);
    let spread = || Delay::Interval { min: Span::from_us(1), max: Span::from_us(30) };
    let steps = [(1_000, 5), (2_000, 3), (60_000, 1)];
    let steps = steps.map(|(ns, weight)| (Span::from_ns(ns), weight)).to_vec();
    network.delays(NodeId(0), spread(), spread(), spread());
    network.delays(NodeId(1), spread(), Delay::Histogram(steps), spread());
    network.channel(NodeId(0), &[NodeId(1)], None);
    network.channel(NodeId(0), &[NodeId(1)], Some(Class::A));
    network.shape_all(10, 1);
    network
}

/// Twenty milliseconds with a message on each channel every 100 µs.
fn run(engine: &mut Engine, network: &Network, step: i64) -> Vec<Delivery> {
    let mut seen = Vec::new();
    for round in 0..200 {
        for channel in 0..network.system.channels.len() as u32 {
            engine.send(onbeat_model::system::ChannelId(channel), &[round as u8; 64]);
        }
        let end = (round + 1) * 100_000;
        let mut now = round * 100_000;
        while now < end {
            now = (now + step).min(end);
            seen.extend(deliveries(engine, now));
        }
    }
    seen
}

#[test]
fn one_seed_gives_one_run_and_another_seed_another() {
    let network = noisy();
    let outcome = |seed| {
        let mut engine = network.engine(seed, i64::MAX);
        let seen = run(&mut engine, &network, 100_000);
        (seen, engine.load().to_vec(), engine.events())
    };
    let first = outcome(1);
    assert!(first.0.len() > 300);
    assert_eq!(outcome(1), first);
    let second = outcome(2);
    assert_ne!(second.0, first.0);
    assert_ne!(second.1, first.1);
}

#[test]
fn the_size_of_the_steps_does_not_matter() {
    let network = noisy();
    let outcome = |step| {
        let mut engine = network.engine(1, i64::MAX);
        (run(&mut engine, &network, step), engine.load().to_vec())
    };
    assert_eq!(outcome(997), outcome(100_000));
}

#[test]
fn noise_on_a_separate_path_does_not_change_what_others_draw() {
    let network = noisy();
    let mut larger = network.clone();
    let bridge = larger.bridge(1_000);
    let [from, to] = [larger.host(), larger.host()];
    for host in [from, to] {
        larger.link(host, bridge, 1_000, 50);
    }
    let spec =
        NoiseSpec { payload: 500, interval: 5_000, jitter: true, start: 0, on: 1_000_000, off: 0 };
    larger.noise(from, to, spec);
    larger.shape_all(10, 1);
    let mut plain = network.engine(1, i64::MAX);
    let mut more = larger.engine(1, i64::MAX);
    assert_eq!(run(&mut more, &larger, 100_000), run(&mut plain, &network, 100_000));
    let shared: Vec<_> = more.load().iter().filter(|s| s.noise.0 < 2).copied().collect();
    assert_eq!(shared, plain.load());
    assert!(more.load().iter().any(|s| s.noise.0 == 2 && s.delivered_bits > 0));
}
