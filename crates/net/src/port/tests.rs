//! One port alone: against hand calculation where no network can be (asynchronous shaping), and in
//! random settings against [`Oracle`], to the nanosecond.

use super::oracle::{Offer, Oracle, Regulator};
use super::*;
use crate::payload::PayloadId;
use crate::route::NONE;
use onbeat_model::diagnostic::Origin;
use onbeat_model::port::{GateControl, GateEntry, PortSettings, Selection};
use onbeat_model::stream::{Fault, FaultKind};
use onbeat_model::system::{Bridge, Host, Link, LinkId, Node, Port};
use onbeat_model::time::{ClockError, ClockStep};
use proptest::prelude::*;
use std::collections::HashMap;

#[test]
fn transmission_times_are_those_of_the_model() {
    for bps in [1, 3, 10_000_000, 100_000_000, 999_999_937, 1_000_000_000, 2_500_000_000] {
        let rate = BitRate::from_bps(bps);
        for octets in [1, 76, 88, 1_536, 1_542, u32::from(u16::MAX) + 20].map(Octets::new) {
            assert_eq!(time_for(rate, octets), rate.time_for(octets), "{octets:?} at {rate}");
        }
    }
}

/// One port of a host at 1 Gb/s, no propagation, and its node's buffer.
struct Bench {
    port: EgressPort,
    buffer: Buffer,
    /// When the last octet of each frame was out, by the order of the offers.
    ends: HashMap<usize, i64>,
    /// When the wire was occupied, gaps included.
    occupied: Vec<(i64, i64)>,
}

fn node(kind: NodeKind, clock: ClockError) -> Node {
    let queue = QueueLimits { frames: 1_000, octets: Octets::new(1_000_000) };
    Node { name: String::new(), kind, clock, queue, ports: Vec::new(), origin: Origin::default() }
}

impl Bench {
    fn new(settings: &PortSettings, clock: ClockError) -> Self {
        let port = |node, peer| Port {
            name: String::new(),
            node: NodeId(node),
            link: LinkId(0),
            peer: PortId(peer),
            settings: PortSettings::default(),
        };
        let link = Link {
            ports: [PortId(0), PortId(1)],
            rate: BitRate::from_mbps(1_000),
            propagation: Span::ZERO,
            origin: Origin::default(),
        };
        let ClockStep { by, from, until } = clock.step;
        let kind = FaultKind::ClockStep { node: NodeId(0), by };
        let system = System {
            faults: vec![Fault { kind, from, until, origin: Origin::default() }],
            nodes: vec![
                node(NodeKind::Bridge(Bridge::default()), clock.unstepped()),
                node(NodeKind::Host(Host::default()), ClockError::default()),
            ],
            ports: vec![port(0, 1), port(1, 0)],
            links: vec![link],
            ..System::empty("port", Span::from_s(1))
        };
        let plan = PortPlan { settings: settings.clone(), ..PortPlan::default() };
        Self {
            port: EgressPort::new(&system, PortId(0), &plan),
            buffer: Buffer::new(&system.nodes[0]),
            ends: HashMap::new(),
            occupied: Vec::new(),
        }
    }

    /// Lets everything happen before `until`, as the engine would.
    fn run(&mut self, offers: &[Offer], until: i64) {
        let mut offers = offers.iter().enumerate().peekable();
        loop {
            let offered = offers.peek().map_or(NetTime::MAX, |(_, o)| NetTime::from_ns(o.at));
            let now = offered.min(self.port.select_at).min(self.port.finish_at);
            if now.as_ns() >= until {
                return;
            }
            if self.port.finish_at == now {
                let (frame, _, arrives) = self.port.finish(now);
                self.ends.insert(frame.hop as usize, arrives.as_ns());
            }
            while let Some((id, offer)) = offers.next_if(|(_, o)| o.at == now.as_ns()) {
                let frame = Frame {
                    released: now,
                    hop: id as u32,
                    payload: PayloadId::NONE,
                    sequence: 0,
                    octets: offer.octets,
                };
                let bucket = offer.stream.map_or(NONE, |stream| stream as u32);
                let queue = offer.queue as u8;
                if self.port.offer(now, queue, frame, bucket, &mut self.buffer) {
                    let busy = now < self.port.free_at;
                    self.port.select_at =
                        if busy { self.port.choice_while_busy(now, queue) } else { now };
                }
            }
            if self.port.select_at == now {
                self.select(now);
            }
        }
    }

    fn select(&mut self, now: NetTime) {
        if now < self.port.free_at {
            self.port.select_at = self.port.interrupt(now);
            self.occupied.last_mut().unwrap().1 = self.port.free_at.as_ns();
            return;
        }
        let mut next = NetTime::MAX;
        match self.port.choose(now, &mut self.buffer) {
            Choice::Wait(until) => {
                self.port.select_at = until;
                return;
            }
            Choice::Send { frame, arrives } => {
                self.ends.insert(frame.hop as usize, arrives.as_ns());
                next = self.port.free_at;
            }
            Choice::Begin { .. } => next = next.min(self.port.interrupt(now)),
        }
        self.occupied.push((now.as_ns(), self.port.free_at.as_ns()));
        self.port.select_at = if self.port.any_waiting() { next } else { NetTime::MAX };
    }
}

fn bucket(mbps: u64, burst: u32) -> TokenBucket {
    TokenBucket { rate: BitRate::from_mbps(mbps), burst: Octets::new(burst) }
}

/// A frame of 88 octets on the wire: 704 ns, 608 to its last octet.
fn small(at: i64, queue: usize, stream: Option<usize>) -> Offer {
    Offer { at, queue, octets: 68, stream }
}

#[test]
fn asynchronous_frames_leave_by_eligibility_below_strict_priority_and_above_best_effort() {
    let mut settings = PortSettings::default();
    settings.selection[4] = Selection::Asynchronous;
    let mut bench = Bench::new(&settings, ClockError::default());
    // 88 Mb/s: a frame of 88 octets each 8 µs, none in advance. Two groups.
    assert_eq!(bench.port.add_bucket(bucket(88, 88), 0), 0);
    assert_eq!(bench.port.add_bucket(bucket(88, 88), 1), 1);
    let offers = [
        small(0, 4, Some(0)),
        small(0, 4, Some(0)),
        small(1_000, 4, Some(1)),
        small(7_900, 7, None),
        small(7_900, 4, None),
        small(7_950, 0, None),
    ];
    bench.run(&offers, 1_000_000);
    // Eligible at 0, 8,000, 1,000, –, 7,900, –. The strict frame takes 7,900 to 8,604; then the
    // one without a bucket (7,900), the one of 8,000, and best effort.
    let starts: Vec<i64> = (0..6).map(|id| bench.ends[&id] - 608).collect();
    assert_eq!(starts, [0, 9_308, 1_000, 7_900, 8_604, 10_012]);
}

#[test]
fn best_effort_goes_ahead_while_no_asynchronous_frame_is_eligible() {
    let mut settings = PortSettings::default();
    settings.selection[4] = Selection::Asynchronous;
    let mut bench = Bench::new(&settings, ClockError::default());
    bench.port.add_bucket(bucket(88, 88), 0);
    let offers = [small(0, 4, Some(0)), small(0, 4, Some(0)), small(0, 0, None)];
    bench.run(&offers, 1_000_000);
    assert_eq!([0, 1, 2].map(|id| bench.ends[&id] - 608), [0, 8_000, 704]);
    let seen = bench.port.observed();
    assert_eq!(seen.busy, Span::from_ns(3 * 704));
    assert_eq!((seen.queues[4].sent, seen.queues[4].sent_octets), (2, 136));
    assert_eq!(seen.queues[4].wait_max, Span::from_ns(8_000));
    assert_eq!(seen.queues[0].wait_max, Span::from_ns(704));
}

#[test]
fn a_refused_frame_takes_nothing_out_of_its_bucket() {
    let mut settings = PortSettings::default();
    settings.selection[4] = Selection::Asynchronous;
    let mut bench = Bench::new(&settings, ClockError::default());
    bench.port.limits.frames = 2;
    bench.port.add_bucket(bucket(88, 88), 0);
    // One is sent; two wait; the fourth is refused. So the fifth, queued at 16,001, is eligible
    // at 24,000 and not at 32,000.
    let mut offers = vec![small(0, 4, Some(0))];
    offers.extend([small(1, 4, Some(0)); 3]);
    offers.push(small(16_001, 4, Some(0)));
    bench.run(&offers, 1_000_000);
    assert_eq!([0, 1, 2, 4].map(|id| bench.ends[&id] - 608), [0, 8_000, 16_000, 24_000]);
    assert_eq!(bench.port.observed().queues[4].dropped, 1);
}

#[test]
fn a_list_that_heeds_no_length_sends_what_the_one_before_had_no_window_for() {
    let list = |base, cycle, entries: &[(u8, i64)], length_aware| {
        let entry =
            |(open, span): &(u8, i64)| GateEntry { open: *open, span: Span::from_ns(*span) };
        let entries = entries.iter().map(entry).collect();
        GateControl {
            base: NetTime::from_ns(base),
            cycle: Span::from_ns(cycle),
            entries,
            length_aware,
        }
    };
    // A frame of 704 ns: windows of 500, until the clock steps to where the next list begins.
    let gates = vec![
        list(0, 1_000, &[(0, 500), (1, 500)], true),
        list(10_000, 1_000, &[(0, 600), (1, 400)], false),
    ];
    let settings = PortSettings { gates, ..PortSettings::default() };
    let (by, from) = (Span::from_us(5), NetTime::from_ns(5_000));
    let step = ClockStep { by, from, until: NetTime::MAX };
    let mut bench = Bench::new(&settings, ClockError { step, ..ClockError::default() });
    bench.run(&[small(4_600, 0, None)], HORIZON);
    assert_eq!(bench.ends.get(&0), Some(&(5_600 + 608)));
}

/// A random port: times in ns.
#[derive(Clone, Debug)]
struct Recipe {
    settings: PortSettings,
    clock: ClockError,
    regulators: Vec<Regulator>,
    offers: Vec<Offer>,
}

const HORIZON: i64 = 150_000;

fn gates() -> impl Strategy<Value = Vec<GateControl>> {
    let entry = (any::<u8>(), 1..12_000i64)
        .prop_map(|(open, span)| GateEntry { open, span: Span::from_ns(span) });
    let list = (prop::collection::vec(entry, 1..5), 2_000..40_000i64, any::<bool>(), 1..60_000i64);
    (prop::collection::vec(list, 0..4), -50_000..30_000i64).prop_map(|(lists, mut base)| {
        let list = |(entries, cycle, length_aware, pause)| {
            base += pause;
            let (base, cycle) = (NetTime::from_ns(base), Span::from_ns(cycle));
            GateControl { base, cycle, entries, length_aware }
        };
        lists.into_iter().map(list).collect()
    })
}

fn recipe() -> impl Strategy<Value = Recipe> {
    let selection = prop_oneof![
        Just(Selection::StrictPriority),
        (1..900u64)
            .prop_map(|mbps| Selection::CreditBased { idle_slope: BitRate::from_mbps(mbps) }),
        Just(Selection::Asynchronous),
    ];
    let mask = prop_oneof![Just(0), any::<u8>()];
    let regulator = (1..1_000u64, 1_542..4_000u32, 0..3u32)
        .prop_map(|(mbps, burst, group)| (bucket(mbps, burst), group));
    let clock = (-20_000..20_000i64, -1_000_000..1_000_000i32).prop_map(|(offset, drift_ppb)| {
        ClockError { offset: Span::from_ns(offset), drift_ppb, ..ClockError::default() }
    });
    let until = prop_oneof![Just(i64::MAX), 1..60_000i64];
    let step = (-60_000..60_000i64, 0..120_000i64, until).prop_map(|(by, from, until)| {
        let until = NetTime::from_ns(until.saturating_add(from));
        ClockStep { by: Span::from_ns(by), from: NetTime::from_ns(from), until }
    });
    let step = prop_oneof![Just(ClockStep::default()), step];
    let octets = prop_oneof![64..130u16, 64..1_523u16];
    let offer = (0..4_000i64, 0..QUEUES, octets, 0..8usize);
    (
        prop::array::uniform8(selection),
        gates(),
        mask,
        (prop_oneof![Just(ClockError::default()), clock], step)
            .prop_map(|(clock, step)| ClockError { step, ..clock }),
        prop::collection::vec(regulator, 1..5),
        prop::collection::vec(offer, 1..60),
    )
        .prop_map(|(selection, gates, preemptable, clock, regulators, offers)| {
            let mut at = 0;
            let offers = offers.into_iter().map(|(pause, queue, octets, stream)| {
                at += pause;
                // Streams of a group come by one queue.
                let stream = Some(stream).filter(|stream| *stream < regulators.len());
                let queue = stream.map_or(queue, |stream| regulators[stream].1 as usize * 2 + 1);
                Offer { at, queue, octets, stream }
            });
            let offers = offers.collect();
            let settings = PortSettings { selection, gates, preemptable, vlans: None };
            Recipe { settings, clock, regulators, offers }
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn any_port_sends_as_the_state_variables_of_the_standards_say(recipe in recipe()) {
        let Recipe { settings, clock, regulators, offers } = &recipe;
        let oracle = Oracle::run(settings, *clock, regulators, offers, HORIZON);
        let mut bench = Bench::new(settings, *clock);
        for (bucket, group) in regulators {
            bench.port.add_bucket(*bucket, *group);
        }
        bench.run(offers, HORIZON);
        // The port knows the end of an express frame at its start.
        bench.ends.retain(|_, end| *end < HORIZON);
        prop_assert_eq!(&bench.ends, &oracle.ends);
        for pair in bench.occupied.windows(2) {
            prop_assert!(pair[0].1 <= pair[1].0, "{:?} overlap", pair);
        }
        let seen = bench.port.observed();
        let busy: i64 = bench.occupied.iter().map(|(start, end)| end - start).sum();
        prop_assert_eq!(seen.busy.as_ns(), busy);
        prop_assert_eq!(seen.queues.iter().map(|q| q.preempted).sum::<u64>(), oracle.cuts);
    }
}
