//! A packet simulation of its own tries to break the bounds.
//!
//! Servers are as bad as they may be: after each idle time they sleep for their whole latency, and
//! begin a packet no sooner than their rate asks. Sources send as much as their buckets allow, at
//! once or after having saved up.

use onbeat_bounds::fifo::{Bounds, Curve, Departure, FifoNetwork, Flow, Hop, Server};
use onbeat_model::time::Span;
use onbeat_model::units::BitRate;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Nanobits of a bit.
const BIT: i128 = 1_000_000_000;

/// A small generator of numbers, so that a network is its seed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit
    }

    fn one_of<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }
}

/// A packet's time in bits at a rate that divides it.
fn time(bits: i64, bps: u64) -> i64 {
    let ns = i128::from(bits) * BIT / i128::from(bps);
    i64::try_from(ns).expect("short")
}

fn random_network(random: &mut Random, output: Departure) -> FifoNetwork {
    let count = 1 + random.below(5) as usize;
    let line = 100_000_000;
    let servers: Vec<Server> = (0..count)
        .map(|_| Server {
            rate: BitRate::from_bps(random.one_of(&[50_000_000, 80_000_000, line, line])),
            latency: Span::from_us(random.below(30) as i64),
            link_rate: (output != Departure::Bits).then_some(BitRate::from_bps(line)),
            output,
        })
        .collect();
    let flows = 1 + random.below(6);
    // At most 90 % of the slowest server.
    let share = 45_000_000 / flows;
    let flows = (0..flows)
        .map(|_| {
            let (start, length) = (random.below(count as u64), 1 + random.below(count as u64));
            let step = random.one_of(&[1, 1, 1, count as u64 - 1]);
            let mut path: Vec<usize> = Vec::new();
            for at in 0..length {
                let server = ((start + at * step) % count as u64) as usize;
                if !path.contains(&server) {
                    path.push(server);
                }
            }
            let packet =
                if output == Departure::Bits { 40 } else { random.one_of(&[400, 2_000, 8_000]) };
            let packets =
                1 + random.below(4) as i128 + if output == Departure::Bits { 20 } else { 0 };
            let rate = share * (40 + random.below(61)) / 100;
            let hops = path.iter().enumerate().map(|(at, server)| Hop {
                server: *server,
                upstream: at.checked_sub(1),
                earliest: Span::from_ns(at.min(1) as i64 * 500),
                latest: Span::from_ns(at.min(1) as i64 * 500),
                reshaped: None,
            });
            Flow {
                arrival: Curve::bucket(packets * packet * BIT, BitRate::from_bps(rate)),
                smallest: packet * BIT,
                largest: packet * BIT,
                hops: hops.collect(),
            }
        })
        .collect();
    FifoNetwork { servers, flows }
}

/// When a source sends: a bucket that is emptied at once, then trickles, and may save up again.
fn sending(random: &mut Random, flow: &Flow, until: i64) -> Vec<i64> {
    let bucket = flow.arrival.sustained();
    let (rate, packet) = (i128::from(bucket.rate.as_bps()), flow.largest);
    let mut now = random.below(150_000) as i64 * random.below(2) as i64;
    let (mut level, mut at) = (bucket.burst, now);
    let mut times = Vec::new();
    while now < until {
        level = bucket.burst.min(level + rate * i128::from(now - at));
        at = now;
        if level >= packet {
            level -= packet;
            times.push(now);
        } else {
            let missing = if random.below(12) == 0 { bucket.burst - level } else { packet - level };
            now += i64::try_from((missing + rate - 1) / rate).expect("soon");
        }
    }
    times
}

/// The worst that was seen, to compare with a bound.
#[derive(Debug)]
struct Seen {
    /// Per flow and hop: in the server, and since the source.
    hops: Vec<Vec<(i64, i64)>>,
    /// Per server, in nanobits.
    backlog: Vec<i128>,
}

fn simulate(network: &FifoNetwork, sent: &[Vec<i64>], slack: i64) -> Seen {
    #[derive(Default)]
    struct Queue {
        start: i64,
        next: i64,
        finish: i64,
        inside: Vec<(i64, i128)>,
    }
    let mut events = BinaryHeap::new();
    let mut sequence = 0_u64;
    for (flow, times) in sent.iter().enumerate() {
        for time in times {
            events.push(Reverse((*time, sequence, flow, 0_usize, *time)));
            sequence += 1;
        }
    }
    let mut queues: Vec<Queue> = network.servers.iter().map(|_| Queue::default()).collect();
    let mut seen = Seen {
        hops: network.flows.iter().map(|f| vec![(0, 0); f.hops.len()]).collect(),
        backlog: vec![0; network.servers.len()],
    };
    while let Some(Reverse((now, _, flow, hop, born))) = events.pop() {
        let of = &network.flows[flow];
        let server = of.hops[hop].server;
        let (queue, with) = (&mut queues[server], &network.servers[server]);
        let bits = i64::try_from(of.largest / BIT).expect("a packet");
        let idle = now >= queue.finish;
        queue.start = if idle { now + with.latency.as_ns() - slack } else { queue.next };
        queue.next = queue.start + time(bits, with.rate.as_bps());
        let line = with.link_rate.unwrap_or(with.rate).as_bps();
        queue.finish = queue.start + time(bits, line);
        queue.inside.retain(|(until, _)| *until > now);
        queue.inside.push((queue.finish, of.largest));
        let waiting: i128 = queue.inside.iter().map(|(_, bits)| bits).sum();
        seen.backlog[server] = seen.backlog[server].max(waiting);
        let worst = &mut seen.hops[flow][hop];
        *worst = (worst.0.max(queue.finish - now), worst.1.max(queue.finish - born));
        if let Some(next) = of.hops.get(hop + 1) {
            let there = queue.finish + next.latest.as_ns();
            events.push(Reverse((there, sequence, flow, hop + 1, born)));
            sequence += 1;
        }
    }
    seen
}

fn compare(network: &FifoNetwork, bounds: &Bounds, seen: &Seen, seed: u64) -> f64 {
    let mut closest = 0.0_f64;
    for (flow, (bound, seen)) in bounds.hops.iter().zip(&seen.hops).enumerate() {
        for (hop, (bound, seen)) in bound.iter().zip(seen).enumerate() {
            let at = format!("seed {seed}, flow {flow}, hop {hop}\n{network:#?}");
            assert!(seen.0 <= bound.delay.as_ns(), "{} > {:?} in {at}", seen.0, bound);
            assert!(seen.1 <= bound.total.as_ns(), "{} > {:?} since {at}", seen.1, bound);
            closest = closest.max(seen.1 as f64 / bound.total.as_ns() as f64);
        }
    }
    for (server, (bound, seen)) in bounds.backlog.iter().zip(&seen.backlog).enumerate() {
        assert!(seen <= bound, "seed {seed}: {seen} > {bound} waiting in server {server}");
    }
    closest
}

/// Tries to break the bounds of some networks; returns how many had some, and how often a bound
/// was met to within 1 %.
fn attack(output: Departure, seeds: std::ops::Range<u64>) -> (u32, u32) {
    let (mut bounded, mut met) = (0, 0);
    for seed in seeds {
        let mut random =
            Random(0x9E37_79B9_7F4A_7C15 ^ (seed + 1).wrapping_mul(0xD134_2543_DE82_EF95));
        let mut network = random_network(&mut random, output);
        // A fluid is cells so small that what is not fluid about them is put into the latency.
        let slack = if output == Departure::Bits { 40 * 20 } else { 0 };
        network.servers.iter_mut().for_each(|s| s.latency += Span::from_ns(slack));
        let Some(bounds) = network.bounds().expect("valid") else { continue };
        let total = network.total_flow().expect("valid");
        bounded += 1;
        total.iter().for_each(|total| assert_below(&bounds, total, 0, seed));
        let mut closest = 0.0_f64;
        for _ in 0..4 {
            let sent: Vec<Vec<i64>> =
                network.flows.iter().map(|f| sending(&mut random, f, 1_500_000)).collect();
            let seen = simulate(&network, &sent, slack);
            closest = closest.max(compare(&network, &bounds, &seen, seed));
            if let Some(total) = &total {
                compare(&network, total, &seen, seed);
            }
        }
        met += u32::from(closest > 0.99);
    }
    (bounded, met)
}

/// No bound of `less` is above that of `more`, but for `millionths` of it.
fn assert_below(less: &Bounds, more: &Bounds, millionths: i64, seed: u64) {
    let more = more.hops.iter().flatten();
    for (less, more) in less.hops.iter().flatten().zip(more) {
        let above =
            |bound: Span| bound.as_ns() + bound.as_ns() * millionths / 1_000_000 + millionths;
        assert!(less.delay.as_ns() <= above(more.delay), "seed {seed}: {less:?}\n{more:?}");
        assert!(less.total.as_ns() <= above(more.total), "seed {seed}: {less:?}\n{more:?}");
    }
}

#[test]
fn a_greater_burst_or_rate_makes_no_bound_smaller() {
    for seed in 0..120_u64 {
        let mut random = Random((seed + 1).wrapping_mul(0xD134_2543_DE82_EF95));
        let output = random.one_of(&[Departure::Bits, Departure::Packets, Departure::Fragments]);
        let less = random_network(&mut random, output);
        let mut more = less.clone();
        let flow = &mut more.flows[random.below(less.flows.len() as u64) as usize];
        let bucket = flow.arrival.sustained();
        let rate = bucket.rate.as_bps() * (100 + random.below(5)) / 100;
        flow.arrival = Curve::bucket(bucket.burst * 11 / 10, BitRate::from_bps(rate));
        let total = |network: &FifoNetwork| network.total_flow().expect("valid");
        if let Some(more) = total(&more) {
            assert_below(&total(&less).expect("a bound"), &more, 0, seed);
        }
        // The programs' bounds are those of multipliers near the best ones.
        if let Some(more) = more.bounds().expect("valid") {
            assert_below(&less.bounds().expect("valid").expect("a bound"), &more, 5, seed);
        }
    }
}

#[test]
fn no_packet_is_later_than_its_bound() {
    let (bounded, met) = attack(Departure::Packets, 0..400);
    assert!(bounded > 350, "only {bounded} networks had a bound");
    assert!(met > 50, "only {met} came near it");
}

#[test]
fn no_fragment_is_later_than_its_bound() {
    let (bounded, _) = attack(Departure::Fragments, 400..600);
    assert!(bounded > 150, "only {bounded} networks had a bound");
}

#[test]
fn nothing_in_a_fluid_is_later_than_its_bound() {
    let (bounded, _) = attack(Departure::Bits, 1_000..1_150);
    assert!(bounded > 100, "only {bounded} networks had a bound");
}
