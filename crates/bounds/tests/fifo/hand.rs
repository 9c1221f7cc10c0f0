//! Sums by hand. 100 Mb/s takes 10 ns a bit; 1 kB is 8000 bit, 80 µs.

use crate::families::{BURST, RATE, flow, server};
use onbeat_bounds::fifo::{Bounds, Bucket, Curve, Departure, FifoNetwork, InvalidNetwork, Method};
use onbeat_model::time::Span;
use onbeat_model::units::BitRate;

/// Nanobits of a bit.
const BIT: i128 = 1_000_000_000;
/// 10 Mb/s.
const SLOW: u64 = RATE / 10;

fn total(network: &FifoNetwork) -> Bounds {
    network.total_flow().unwrap().expect("a bound")
}

fn best(network: &FifoNetwork) -> Bounds {
    network.bounds().unwrap().expect("a bound")
}

/// Without lines: nothing is known of how fast what comes from the server before comes.
fn unshaped(mut network: FifoNetwork) -> FifoNetwork {
    network.servers.iter_mut().for_each(|server| server.link_rate = None);
    network
}

#[test]
fn one_server_delays_all_bursts_together() {
    let flows = vec![flow(&[0], BURST, SLOW), flow(&[0], BURST, SLOW)];
    let network = FifoNetwork { servers: vec![server(RATE)], flows };
    let bounds = total(&network);
    // 10 µs + 2·80 µs.
    assert_eq!(bounds.hops[0][0].delay, Span::from_us(170));
    assert_eq!(bounds.hops[1][0].total, Span::from_us(170));
    // What came in 10 µs: 16,000 bit at once and 2·100 bit.
    assert_eq!(bounds.backlog, [16_200 * BIT]);
    assert_eq!(best(&network).hops[0][0].total, Span::from_us(170));
}

#[test]
fn a_packet_that_is_being_sent_goes_at_the_rate_of_the_line() {
    let mut flows = vec![flow(&[0, 1], BURST, SLOW), flow(&[0], BURST, SLOW)];
    flows.iter_mut().for_each(|f| (f.smallest, f.largest) = (2_000 * BIT, 4_000 * BIT));
    let mut servers = vec![server(RATE / 2), server(RATE)];
    servers[0].link_rate = Some(BitRate::from_bps(RATE));
    servers.iter_mut().for_each(|server| server.output = Departure::Packets);
    let network = FifoNetwork { servers, flows };
    let bounds = total(&network);
    // 10 µs + (16,000 − 2000) bit at 50 Mb/s; then 2000 bit at 100 Mb/s.
    assert_eq!(bounds.hops[0][0].wait, Span::from_us(290));
    assert_eq!(bounds.hops[0][0].delay, Span::from_us(310));
    // 16,200 bit, and the rest of the packet that is being sent: 4000 bit.
    assert_eq!(bounds.backlog[0], 20_200 * BIT);
    // It was there for 20 µs at least: 290 µs of jitter make 2900 bit more.
    assert_eq!(bounds.hops[0][1].arrival, Curve::bucket(10_900 * BIT, BitRate::from_bps(SLOW)));
    // Over the line never more than 4000 bit and 100 Mb/s.
    assert_eq!(bounds.hops[0][1].wait, Span::from_us(10 + 20));
    assert_eq!(bounds.hops[0][1].delay, Span::from_us(10 + 40));
    assert_eq!(bounds.hops[0][1].total, Span::from_us(310 + 50));

    let mut network = network;
    network.servers[0].output = Departure::Fragments;
    let bounds = total(&network);
    // Interrupted: 16,000 bit at 50 Mb/s.
    assert_eq!(bounds.hops[0][0].wait, Span::from_us(290));
    assert_eq!(bounds.hops[0][0].delay, Span::from_us(330));
}

#[test]
fn delays_make_bursts_at_the_next_server() {
    let flows = vec![flow(&[0, 1], BURST, SLOW), flow(&[0, 1], BURST, SLOW)];
    let network = unshaped(FifoNetwork { servers: vec![server(RATE); 2], flows });
    let bounds = total(&network);
    // 170 µs at 10 Mb/s: 1700 bit more.
    assert_eq!(bounds.hops[0][1].arrival.burst(), 9_700 * BIT);
    assert_eq!(bounds.hops[0][1].delay, Span::from_us(10 + 194));
    assert_eq!(bounds.hops[0][1].total, Span::from_us(170 + 204));
    // Together they are held up once: 2·10 µs + 16,000 bit at 100 Mb/s.
    let bounds = best(&network);
    assert!((180_000..=180_001).contains(&bounds.hops[0][1].total.as_ns()));
    assert_eq!(bounds.hops[0][1].method, Method::Linear);
}

#[test]
fn a_line_holds_bursts_apart() {
    let flows =
        vec![flow(&[0, 1], BURST, SLOW), flow(&[0, 1], BURST, SLOW), flow(&[1], BURST, SLOW)];
    let network = FifoNetwork { servers: vec![server(RATE); 2], flows };
    let bounds = total(&network);
    // Over the line 100 Mb/s until 19,400 bit + 20 Mb/s·t is less: t = 242.5 µs. The other flow
    // has brought 8000 + 2425 bit then, and all of it waits.
    assert_eq!(bounds.hops[2][0].delay, Span::from_ns(10_000 + 104_250));
    // Without the line: 19,400 + 8000 bit at once.
    let bounds = total(&unshaped(network));
    assert_eq!(bounds.hops[2][0].delay, Span::from_us(10 + 274));
}

#[test]
fn two_flows_that_meet_twice_delay_each_other_once() {
    // One over both servers, one over the first, one over the second. Worst for the first flow: the
    // second's burst comes with its own, 160 µs of work, and the third's meets it at the end of it.
    let flows = vec![flow(&[0, 1], BURST, SLOW), flow(&[0], BURST, SLOW), flow(&[1], BURST, SLOW)];
    let network = unshaped(FifoNetwork { servers: vec![server(RATE); 2], flows });
    let total = total(&network).hops[0][1].total;
    // 170 µs; then 8000 + 1700 bit and 8000 bit: 10 + 177 µs.
    assert_eq!(total, Span::from_us(357));
    let best = best(&network).hops[0][1].total;
    assert!(best < Span::from_us(330), "{best:?}");
    // All bursts at least once: 2·10 µs + 24,000 bit.
    assert!(best >= Span::from_us(260), "{best:?}");
}

#[test]
fn servers_that_wait_for_each_other_settle_at_the_fixed_point() {
    let flows = vec![flow(&[0, 1], BURST, SLOW), flow(&[1, 0], BURST, SLOW)];
    let network = unshaped(FifoNetwork { servers: vec![server(RATE); 2], flows });
    // d = 10 µs + (8000 + 8000 + 10 Mb/s·d) / 100 Mb/s: 0.9·d = 170 µs.
    let bounds = total(&network);
    let delay = bounds.hops[0][0].delay.as_ns();
    // One nanosecond each round: 1 / 0.9 more, rounded up twice.
    assert!((188_889 + 1..=188_889 + 4).contains(&delay), "{delay}");
    assert_eq!(bounds.hops[0][1].total.as_ns(), 2 * delay);
    let bounds = best(&network);
    assert!(bounds.hops[0][1].total < Span::from_ns(2 * delay));
}

#[test]
fn an_overloaded_server_has_no_bound() {
    let flows = vec![flow(&[0], BURST, RATE / 2), flow(&[0], BURST, RATE / 2 + 1)];
    let mut network = FifoNetwork { servers: vec![server(RATE)], flows };
    assert_eq!(network.total_flow(), Ok(None));
    assert_eq!(network.bounds(), Ok(None));
    network.flows[1].arrival = Curve::bucket(BURST, BitRate::from_bps(RATE / 2));
    assert_eq!(best(&network).hops[0][0].total, Span::from_us(170));
}

#[test]
fn a_source_that_is_held_to_a_peak_rate_delays_less() {
    let fast = Bucket { burst: 1_000 * BIT, rate: BitRate::from_bps(3 * RATE) };
    let slow = Bucket { burst: BURST, rate: BitRate::from_bps(SLOW) };
    let mut network =
        FifoNetwork { servers: vec![server(RATE)], flows: vec![flow(&[0], BURST, SLOW)] };
    network.flows[0].arrival = Curve::new(vec![slow, fast]);
    // 1000 bit + 300 Mb/s·t meets 8000 bit + 10 Mb/s·t after 7000/290 µs: 24.138 µs; then
    // 1000 bit + 200 Mb/s·24.138 µs are left: 5827.6 bit.
    assert_eq!(total(&network).hops[0][0].delay, Span::from_ns(10_000 + 58_276));
    assert!((68_276..=68_277).contains(&best(&network).hops[0][0].total.as_ns()));
    // 1000 bit + 300 Mb/s·10 µs.
    assert_eq!(total(&network).backlog, [5_827_586_206_897 + 1_000 * BIT]);
}

#[test]
fn a_regulator_restores_the_curve_and_breaks_a_circle() {
    let mut flows = vec![flow(&[0, 1], BURST, SLOW), flow(&[1, 0], BURST, SLOW)];
    flows.iter_mut().for_each(|f| f.hops[1].reshaped = Some(f.arrival.clone()));
    let network = FifoNetwork { servers: vec![server(RATE); 2], flows };
    for bounds in [total(&network), best(&network)] {
        // Up to the nanosecond that servers in a cycle get.
        assert!((170_000..=170_001).contains(&bounds.hops[0][1].delay.as_ns()));
        assert!((340_000..=340_002).contains(&bounds.hops[0][1].total.as_ns()));
    }
}

#[test]
fn delays_between_servers_count_and_their_differences_make_bursts() {
    let mut network = unshaped(FifoNetwork {
        servers: vec![server(RATE); 2],
        flows: vec![flow(&[0, 1], BURST, SLOW)],
    });
    let hops = &mut network.flows[0].hops;
    (hops[0].earliest, hops[0].latest) = (Span::from_us(2), Span::from_us(6));
    (hops[1].earliest, hops[1].latest) = (Span::from_us(3), Span::from_us(5));
    let bounds = total(&network);
    // 4 µs at 10 Mb/s are 40 bit: 6 + 10 + 80.4 µs.
    assert_eq!(bounds.hops[0][0].total, Span::from_ns(96_400));
    // 90.4 + 2 µs: 924 bit more. 5 + 10 + 89.64 µs.
    assert_eq!(bounds.hops[0][1].arrival.burst(), 8_964 * BIT);
    assert_eq!(bounds.hops[0][1].total, Span::from_ns(96_400 + 104_640));
    // What may have waited is what came in 10 µs, 8040 + 100 bit, and 2 µs more make 20 bit:
    // 96.4 + 5 + 10 + 81.6 µs.
    assert!((193_000..=193_001).contains(&best(&network).hops[0][1].total.as_ns()));
    // The same delay for all: the burst is held up once. 2 + 10 + 80 + 5 + 10 µs.
    let hops = &mut network.flows[0].hops;
    (hops[0].latest, hops[1].earliest) = (Span::from_us(2), Span::from_us(5));
    assert!((107_000..=107_001).contains(&best(&network).hops[0][1].total.as_ns()));
}

#[test]
fn each_branch_of_a_tree_has_its_own_bound() {
    let mut network = unshaped(FifoNetwork {
        servers: vec![server(RATE); 3],
        flows: vec![flow(&[0, 1, 2], BURST, SLOW), flow(&[2], BURST, SLOW)],
    });
    network.flows[0].hops[2].upstream = Some(0);
    let bounds = total(&network);
    // 90 µs; then 10 µs + 8900 bit, or with the other flow 16,900 bit.
    assert_eq!(bounds.hops[0][1].total, Span::from_us(90 + 99));
    assert_eq!(bounds.hops[0][2].total, Span::from_us(90 + 179));
    let bounds = best(&network);
    // On the first branch the burst is held up once.
    assert!((100_000..=100_001).contains(&bounds.hops[0][1].total.as_ns()));
    assert!(bounds.hops[0][2].total <= Span::from_us(90 + 179));
}

#[test]
fn what_cannot_be_a_network_is_refused() {
    let valid = FifoNetwork { servers: vec![server(RATE)], flows: vec![flow(&[0], BURST, SLOW)] };
    assert_eq!(valid.check(), Ok(()));
    let refused = |change: fn(&mut FifoNetwork)| {
        let mut network = valid.clone();
        change(&mut network);
        network.bounds().unwrap_err()
    };
    assert_eq!(refused(|n| n.servers[0].rate = BitRate::from_bps(0)), InvalidNetwork::Server(0));
    assert_eq!(
        refused(|n| n.servers[0].link_rate = Some(BitRate::from_bps(1))),
        InvalidNetwork::Server(0)
    );
    assert_eq!(refused(|n| n.flows[0].largest = BURST + 1), InvalidNetwork::Flow(0));
    assert_eq!(refused(|n| n.flows[0].smallest = 1), InvalidNetwork::Flow(0));
    let hop = InvalidNetwork::Hop { flow: 0, hop: 0 };
    assert_eq!(refused(|n| n.flows[0].hops[0].server = 1), hop);
    assert_eq!(refused(|n| n.flows[0].hops[0].upstream = Some(0)), hop);
    assert_eq!(refused(|n| n.flows[0].hops[0].earliest = Span::from_ns(1)), hop);
    let twice = InvalidNetwork::Twice { flow: 0, server: 0 };
    assert_eq!(refused(|n| n.flows[0] = flow(&[0, 0], BURST, SLOW)), twice);
}

#[test]
fn many_flows_alike_are_as_one_that_is_as_large() {
    let path = [0, 1, 2];
    let split = |parts: i128| {
        let part = flow(&path, 10 * BURST / parts, SLOW / u64::try_from(parts).unwrap());
        let mut flows = vec![part; usize::try_from(parts).unwrap()];
        flows.push(flow(&[1], BURST, SLOW));
        FifoNetwork { servers: vec![server(RATE); 3], flows }
    };
    let one = best(&split(1)).hops[0][2].total.as_ns();
    let many = best(&split(100)).hops[0][2].total.as_ns();
    assert!((one - 1..=one + 1).contains(&many), "{one} {many}");
}

/// Two flows through one server, each to another one: the second edge is cut.
fn fork() -> FifoNetwork {
    let flows = vec![flow(&[0, 1], BURST, SLOW), flow(&[0, 2], BURST, SLOW)];
    FifoNetwork { servers: vec![server(RATE); 3], flows }
}

#[test]
fn behind_a_cut_a_flow_brings_what_may_have_waited_of_it() {
    let bounds = best(&unshaped(fork()));
    // While the server sleeps for 10 µs and then serves the other's burst for 80 µs, 900 bit more
    // come: 8900 bit, where b + r·d would be 9700.
    let burst = bounds.hops[1][1].arrival.burst();
    assert!((8_900 * BIT..8_901 * BIT).contains(&burst), "{burst}");
    assert!((99_000..=99_001).contains(&bounds.hops[1][1].delay.as_ns()));
    // Its whole path once more, uncut: 2·10 µs + 16,000 bit.
    assert!((180_000..=180_001).contains(&bounds.hops[1][1].total.as_ns()));
}

#[test]
fn behind_a_cut_packets_are_late_by_as_much_as_their_delays_differ() {
    let mut network = fork();
    network.flows.iter_mut().for_each(|f| (f.smallest, f.largest) = (BURST, BURST));
    network.servers.iter_mut().for_each(|server| server.output = Departure::Packets);
    network.servers[2].rate = BitRate::from_bps(RATE / 2);
    let bounds = best(&network);
    // 170 µs at most, 80 µs at least: 900 bit more. 8000 bit and 100 Mb/s meet 8900 bit and 10 Mb/s
    // after 10 µs; then 8500 bit are left of 50 Mb/s: 10 + 10 µs, and 80 µs for the packet.
    assert_eq!(bounds.hops[1][1].arrival.burst(), 8_900 * BIT);
    assert_eq!(bounds.hops[1][1].wait, Span::from_us(20));
    assert_eq!(bounds.hops[1][1].total, Span::from_us(170 + 100));
}

#[test]
fn a_way_that_was_cut_counts_the_longest_delays_before_and_between() {
    let mut network = unshaped(fork());
    for flow in &mut network.flows {
        (flow.hops[0].earliest, flow.hops[0].latest) = (Span::from_us(2), Span::from_us(6));
        (flow.hops[1].earliest, flow.hops[1].latest) = (Span::from_us(5), Span::from_us(5));
    }
    // 4 µs make 40 bit more of each: 6 + 10 + 160.8 + 5 + 10 µs.
    assert!((191_800..=191_801).contains(&best(&network).hops[1][1].total.as_ns()));
}
