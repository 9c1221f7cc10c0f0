//! One port with two credit-based shapers and best effort below, simulated to the nanosecond with
//! exact credits, against the waits that the plan promises. It shares no code with the analysis.

use crate::build::Net;
use onbeat_bounds::plan;
use onbeat_model::system::{Class, Delay};
use onbeat_model::time::Span;
use onbeat_model::units::Octets;
use proptest::prelude::*;

const RATE_BPS: i128 = 100_000_000;
const OCTET_NS: i64 = 80;
const JITTER_NS: i64 = 234_375;
const BEST_EFFORT: usize = 2;

#[derive(Clone, Copy, Debug)]
struct Frame {
    arrival: i64,
    /// 0: class A, 1: class B, 2: best effort.
    class: usize,
    wire_ns: i64,
    channel: usize,
}

struct Port {
    /// By arrival.
    frames: Vec<Frame>,
    /// How many of them have arrived.
    arrived: usize,
    now: i64,
    queues: [Vec<Frame>; 3],
    /// In nanobits.
    credit: [i128; 2],
    slope: [i128; 2],
}

impl Port {
    fn arrive(&mut self) {
        while self.frames.get(self.arrived).is_some_and(|f| f.arrival <= self.now) {
            let frame = self.frames[self.arrived];
            self.queues[frame.class].push(frame);
            self.arrived += 1;
        }
    }

    /// Lets time pass while `sending` is on the wire; credits see each arrival.
    fn pass(&mut self, until: i64, sending: Option<usize>) {
        while self.now < until {
            let next = self.frames.get(self.arrived).map_or(until, |f| f.arrival.min(until));
            let dt = i128::from(next - self.now);
            for class in 0..2 {
                let credit = &mut self.credit[class];
                if sending == Some(class) {
                    *credit += (self.slope[class] - RATE_BPS) * dt;
                } else if !self.queues[class].is_empty() {
                    *credit += self.slope[class] * dt;
                } else if *credit < 0 {
                    *credit = (*credit + self.slope[class] * dt).min(0);
                }
            }
            self.now = next;
            self.arrive();
        }
    }

    fn eligible(&self) -> Option<usize> {
        let may =
            |c: usize| !self.queues[c].is_empty() && (c == BEST_EFFORT || self.credit[c] >= 0);
        (0..3).find(|c| may(*c))
    }

    /// When the next thing can happen on an idle wire.
    fn next(&self) -> Option<i64> {
        let arrival = self.frames.get(self.arrived).map(|f| f.arrival);
        let credits = (0..2).filter(|c| !self.queues[*c].is_empty()).map(|c| {
            let ns = (-self.credit[c] + self.slope[c] - 1) / self.slope[c];
            self.now + ns as i64
        });
        arrival.into_iter().chain(credits).min()
    }

    /// The longest wait of each channel.
    fn run(mut self, channels: usize) -> Vec<i64> {
        let mut worst = vec![0; channels];
        self.arrive();
        loop {
            let Some(class) = self.eligible() else {
                let Some(next) = self.next() else { return worst };
                self.pass(next, None);
                continue;
            };
            let frame = self.queues[class].remove(0);
            if class != BEST_EFFORT {
                worst[frame.channel] = worst[frame.channel].max(self.now - frame.arrival);
            }
            self.pass(self.now + frame.wire_ns, Some(class));
            for class in 0..2 {
                if self.queues[class].is_empty() {
                    self.credit[class] = self.credit[class].min(0);
                }
            }
        }
    }
}

#[derive(Clone, Debug)]
struct Stream {
    class: Class,
    size: u32,
    interval_ns: i64,
    burst: u32,
    /// Per message: how long after the earliest allowed capture, and in the stack.
    messages: Vec<(i64, i64)>,
}

fn stream() -> impl Strategy<Value = Stream> {
    let class = prop_oneof![Just(Class::A), Just(Class::B)];
    let interval = prop_oneof![125_000i64..126_000, 250_000i64..3_000_000];
    let lag = prop_oneof![3 => Just(0), 1 => 0i64..500_000];
    let stack = prop_oneof![Just(0), Just(JITTER_NS), 0i64..=JITTER_NS];
    let messages = proptest::collection::vec((lag, stack), 1..40);
    let burst = prop_oneof![3 => Just(1u32), 2 => 2u32..12];
    (class, 1u32..150, interval, burst, messages).prop_map(
        |(class, size, interval_ns, burst, messages)| Stream {
            class,
            size,
            interval_ns,
            burst,
            messages,
        },
    )
}

/// The most that a talker may do: theoretical arrival times with a tolerance of the burst and an
/// eighth of the interval, 125 µs at most.
fn arrivals(stream: &Stream, channel: usize) -> Vec<Frame> {
    let early = (stream.interval_ns / 8).min(125_000);
    let tolerance = i64::from(stream.burst - 1) * stream.interval_ns + early;
    let octets = i64::from((stream.size + 46).max(68) + 20);
    let class = usize::from(stream.class == Class::B);
    let (mut due, mut capture) = (None, 0);
    let mut frames = Vec::new();
    for (lag, stack) in &stream.messages {
        capture = due.map_or(0, |due| capture.max(due - tolerance)) + lag;
        due = Some(due.unwrap_or(capture).max(capture) + stream.interval_ns);
        let arrival = capture + stack;
        frames.push(Frame { arrival, class, wire_ns: octets * OCTET_NS, channel });
    }
    frames
}

fn net(streams: &[Stream]) -> Net {
    let mut net = Net::new(&["h1", "h2"], &[]);
    net.link("h1", "h2", RATE_BPS as u64);
    net.host("h1").stack_tx = Delay::Interval { min: Span::ZERO, max: Span::from_ns(JITTER_NS) };
    for (i, stream) in streams.iter().enumerate() {
        let channel = net.channel(&format!("c{i}"), "h1", &["h2"]);
        channel.class = stream.class;
        channel.size = Octets::new(stream.size);
        channel.interval = Span::from_ns(stream.interval_ns);
        channel.burst = stream.burst;
    }
    net
}

/// What the plan promises and what the simulation sees, per channel.
fn waits(streams: &[Stream], best_effort: &[(i64, i64)]) -> Vec<(i64, i64)> {
    let net = net(streams);
    let plan = plan(&net.0, true).unwrap();
    let mut frames: Vec<_> =
        streams.iter().enumerate().flat_map(|(i, stream)| arrivals(stream, i)).collect();
    let mut at = 0;
    for (gap, octets) in best_effort {
        at += gap;
        let wire_ns = octets * OCTET_NS;
        frames.push(Frame { arrival: at, class: BEST_EFFORT, wire_ns, channel: 0 });
    }
    frames.sort_by_key(|f| f.arrival);
    let slope = [Class::A, Class::B].map(|c| i128::from(plan.ports[0].idle_slope(c).as_bps()));
    let port = Port {
        frames,
        arrived: 0,
        now: 0,
        queues: [const { Vec::new() }; 3],
        credit: [0; 2],
        slope,
    };
    let seen = port.run(streams.len());
    let promised = plan.channels.iter().map(|channel| {
        let queue = channel.bounds[0].terms.iter().find(|t| t.what.starts_with("class"));
        queue.expect("a term for the queue").span.as_ns()
    });
    promised.zip(seen).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]
    #[test]
    fn no_frame_waits_longer_than_its_bound(
        streams in proptest::collection::vec(stream(), 1..5),
        best_effort in proptest::collection::vec(
            (prop_oneof![Just(0i64), 0i64..400_000], prop_oneof![Just(1542i64), 88i64..=1542]),
            0..150,
        ),
    ) {
        for (promised, seen) in waits(&streams, &best_effort) {
            prop_assert!(seen <= promised, "waited {seen} ns, promised {promised} ns");
        }
    }
}

#[test]
fn the_class_a_bound_is_reached_to_the_nanosecond() {
    // Captured at 0, 125 000 − 15 625 and 250 000 − 15 625 ns, all at the port at 234 375 ns. The
    // third may go 250 000 ns later; one nanosecond before that, a frame of 123 360 ns comes.
    let stream = Stream {
        class: Class::A,
        size: 100,
        interval_ns: 125_000,
        burst: 1,
        messages: vec![(0, 234_375), (0, 125_000), (0, 0)],
    };
    let (promised, seen) = waits(&[stream], &[(484_374, 1542)])[0];
    assert_eq!(promised, 250_000 + 123_360);
    assert_eq!(seen, promised - 1);
}

#[test]
fn the_bound_of_a_burst_is_reached_to_the_nanosecond() {
    // As above with a burst of four: all four captured at 0, and two more before the first has
    // left the stack. The sixth may go five intervals after them.
    let all_at_once = (0, 234_375);
    let stream = Stream {
        class: Class::A,
        size: 100,
        interval_ns: 125_000,
        burst: 4,
        messages: [&[all_at_once; 4][..], &[(0, 125_000), (0, 0)]].concat(),
    };
    let (promised, seen) = waits(&[stream], &[(234_375 + 5 * 125_000 - 1, 1542)])[0];
    assert_eq!(promised, 5 * 125_000 + 123_360);
    assert_eq!(seen, promised - 1);
}

#[test]
fn the_class_b_bound_is_nearly_reached_behind_best_effort_and_a_burst_of_class_a() {
    // Four streams of 13 680 ns: 4 · 171 · 8 bit / 125 µs = 43.776 Mb/s. While the
    // frame of 123 360 ns is sent, class A gains credit for 7.02 frames, so that eight are sent:
    // class B waits 123 360 + 8 · 13 680 ns, less the nanosecond by which it came later.
    let a = Stream {
        class: Class::A,
        size: 105,
        interval_ns: 125_000,
        burst: 1,
        messages: vec![(0, 234_375), (0, 125_000), (0, 0)],
    };
    let b = Stream {
        class: Class::B,
        size: 1,
        interval_ns: 50_000_000,
        burst: 1,
        messages: vec![(0, JITTER_NS)],
    };
    let streams = [a.clone(), a.clone(), a.clone(), a, b];
    let (promised, seen) = waits(&streams, &[(234_374, 1542)])[4];
    assert_eq!(seen, 123_360 + 8 * 13_680 - 1);
    // ⌈123 360 · 100 / (100 − 43.776)⌉ + 13 680; one message comes at a time.
    assert_eq!(promised, 219_409 + 13_680);
}
