//! How fast the engine is under the load of the first example: two noise sources that together
//! offer 1.66 times the rate of the link between two bridges, and one protected channel.
//!
//! - *strict*: the noise is best effort in a strict-priority queue;
//! - *CBS*: its queue has a credit-based shaper at every port;
//! - *gates and CBS*: and every port has length-aware gates, with a window for scheduled traffic.
//!
//! `cargo bench -p onbeat-net --bench engine [-- SECONDS]` simulates each for that many seconds.

#[path = "../tests/engine/network.rs"]
#[allow(dead_code, reason = "shared with the tests, which use all of it")]
mod network;

use network::Network;
use onbeat_model::port::{GateControl, GateEntry, PortSettings, Selection};
use onbeat_model::system::{BEST_EFFORT_QUEUE, ChannelId, Class, NodeId, PortId};
use onbeat_model::time::{NetTime, Span};
use onbeat_model::units::BitRate;
use onbeat_net::{Engine, Output, QUEUED_FRAME_SIZE};
use std::time::Instant;

/// Walks a 50 Hz talker and its listener through the run; returns the messages delivered.
fn run(engine: &mut Engine, channel: ChannelId, end: NetTime) -> u64 {
    let mut delivered = 0;
    let mut next = NetTime::ZERO;
    engine.alarm(next, 0);
    while let Some(output) = engine.advance(end) {
        match output {
            Output::Overfull(overfull) => panic!("{overfull:?}"),
            Output::Woke { .. } => {
                engine.send(channel, &[0; 64]);
                next += Span::from_ms(20);
                engine.alarm(next, 0);
            }
            Output::Delivered { .. } => delivered += 1,
        }
    }
    delivered
}

/// What a scenario adds to every port of the one before.
type Step = fn(&mut PortSettings);

fn shape(settings: &mut PortSettings) {
    let idle_slope = BitRate::from_mbps(950);
    settings.selection[BEST_EFFORT_QUEUE] = Selection::CreditBased { idle_slope };
}

/// 10 of 250 µs for queue 5.
fn gate(settings: &mut PortSettings) {
    let entry = |open, us| GateEntry { open, span: Span::from_us(us) };
    settings.gates.push(GateControl {
        base: NetTime::ZERO,
        cycle: Span::from_us(250),
        entries: vec![entry(1 << 5, 10), entry(!(1 << 5), 240)],
        length_aware: true,
    });
}

fn main() {
    let seconds = std::env::args().find_map(|arg| arg.parse().ok()).unwrap_or(20);
    let steps: [(&str, Step); 3] = [("strict", |_| ()), ("CBS", shape), ("gates and CBS", gate)];
    let mut network = network::two_bridges(1_000, 14_771, 30_000, 0);
    let channel = network.channel(NodeId(0), &[NodeId(1)], Some(Class::A));
    network.shape_all(6, 0);
    for (name, step) in steps {
        network.plan.ports.iter_mut().for_each(|port| step(&mut port.settings));
        println!("{name}");
        measure(&network, channel, seconds);
    }
    println!("memory               {QUEUED_FRAME_SIZE} octets per queued frame, without payload");
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures time")]
fn measure(network: &Network, channel: ChannelId, seconds: i64) {
    let mut engine = network.engine(1, i64::MAX);
    let start = Instant::now();
    let delivered = run(&mut engine, channel, NetTime::from_ns(seconds * 1_000_000_000));
    let elapsed = start.elapsed().as_secs_f64();

    let ports = (0..network.system.ports.len() as u32).map(PortId);
    let counters: Vec<_> = ports.map(|port| engine.port_counters(port)).collect();
    let hops: u64 = counters.iter().flat_map(|c| c.sent).sum();
    let dropped: u64 = counters.iter().flat_map(|c| c.dropped).sum();
    assert_eq!(delivered, seconds as u64 * 50, "a protected message was lost");
    println!("  simulated          {seconds} s in {elapsed:.3} s");
    println!("  events             {} = {:.2e} /s", engine.events(), per(engine.events(), elapsed));
    println!(
        "  frame-hops         {hops} = {:.2e} /s ({dropped} frames dropped)",
        per(hops, elapsed)
    );
}

fn per(count: u64, seconds: f64) -> f64 {
    count as f64 / seconds
}
