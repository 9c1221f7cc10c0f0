//! Both ends with a network between them that loses, duplicates and reorders, and the rules one by
//! one.

use super::*;
use onbeat_model::time::{NetTime, Span};
use onbeat_model::units::MacAddress;
use proptest::prelude::*;

const MS: i64 = 1_000_000;

fn at(ns: i64) -> NetTime {
    NetTime::from_ns(ns)
}

/// What happens to one segment.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Lost,
    /// Arrives after so long.
    Late(i64),
    Twice(i64, i64),
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        3 => Just(Fate::Lost),
        6 => (1..30 * MS).prop_map(Fate::Late),
        1 => (1..30 * MS, 1..300 * MS).prop_map(|(a, b)| Fate::Twice(a, b)),
    ]
}

/// A connection over a network whose fates are given; when they are used up, it is perfect.
struct Link {
    now: i64,
    sender: Sender,
    receiver: Receiver,
    fates: std::vec::IntoIter<Fate>,
    /// What is in flight: when it arrives, its number, whether it has data, and it.
    flight: Vec<(i64, u64, bool, TcpSegment)>,
    number: u64,
    read: Vec<u8>,
    /// Counted here, apart from the sender.
    seen: Counts,
    highest: u64,
    initial: u32,
    /// When segments with data left, by where they start.
    sent: Vec<(i64, u64, usize)>,
    acknowledged_at: Vec<i64>,
}

const DIRECTION: Direction = Direction {
    source: MacAddress([2, 0, 0, 0, 0, 1]),
    destination: MacAddress([2, 0, 0, 0, 0, 2]),
    addresses: [[10, 0, 0, 1], [10, 0, 0, 2]],
    ports: [40_000, 20_000],
};

/// Of a perfect network.
const DELAY: i64 = 5 * MS;

impl Link {
    fn new(nagle: bool, acknowledge: Acknowledge, fates: Vec<Fate>, initial: u32) -> Self {
        Self {
            now: 0,
            sender: Sender::new(nagle, initial),
            receiver: Receiver::new(acknowledge, initial),
            fates: fates.into_iter(),
            flight: Vec::new(),
            number: 0,
            read: Vec::new(),
            seen: Counts::default(),
            highest: 0,
            initial,
            sent: Vec::new(),
            acknowledged_at: Vec::new(),
        }
    }

    fn launch(&mut self, out: Vec<TcpSegment>) {
        for segment in out {
            let has_data = !segment.data.is_empty();
            if has_data {
                let start = u64::from(segment.sequence.wrapping_sub(self.initial));
                self.seen.segments += 1;
                self.seen.retransmitted += u64::from(start < self.highest);
                self.highest = self.highest.max(start + segment.data.len() as u64);
                self.sent.push((self.now, start, segment.data.len()));
            } else {
                self.acknowledged_at.push(self.now);
            }
            let delays = match self.fates.next() {
                Some(Fate::Lost) => vec![],
                Some(Fate::Late(delay)) => vec![delay],
                Some(Fate::Twice(a, b)) => vec![a, b],
                None => vec![DELAY],
            };
            for delay in delays {
                self.number += 1;
                self.flight.push((self.now + delay, self.number, has_data, segment.clone()));
            }
        }
    }

    fn write(&mut self, octets: &[u8]) {
        let mut out = Vec::new();
        self.sender.write(at(self.now), octets, &mut out);
        self.launch(out);
    }

    /// Lets everything happen up to an instant; `None`: until nothing more does.
    fn run(&mut self, until: Option<i64>) {
        for _ in 0..100_000 {
            let arrival = self.flight.iter().map(|f| f.0).min();
            let timers = [self.sender.next(), self.receiver.next()];
            let timer = timers.into_iter().flatten().map(NetTime::as_ns).min();
            let Some(next) = arrival.into_iter().chain(timer).min() else { break };
            if until.is_some_and(|until| next > until) {
                break;
            }
            self.now = self.now.max(next);
            let mut out = Vec::new();
            let due = self.flight.iter().enumerate().filter(|(_, f)| f.0 <= self.now);
            if let Some((index, _)) = due.min_by_key(|(_, f)| (f.0, f.1)) {
                let (_, _, has_data, segment) = self.flight.remove(index);
                match has_data {
                    true => {
                        let read = &mut self.read;
                        self.receiver.receive(at(self.now), &segment, read, &mut out);
                    }
                    false => self.sender.acknowledge(at(self.now), &segment, &mut out),
                }
            } else {
                self.sender.timeout(at(self.now), &mut out);
                self.receiver.timeout(at(self.now), &mut out);
            }
            self.launch(out);
        }
        if let Some(until) = until {
            self.now = self.now.max(until);
        }
    }
}

/// A frame of IPv4 with this TCP segment, however short, and with sound checksums. The packet's
/// header has so many words.
fn sound(words: usize, random: &[u8], segment: &[u8]) -> Vec<u8> {
    let header = 4 * words;
    let mut packet: Vec<u8> = random.iter().copied().cycle().take(header).collect();
    packet.extend(segment);
    let length = packet.len();
    packet[0] = 0x40 | words as u8;
    packet[2..4].copy_from_slice(&(length as u16).to_be_bytes());
    packet[9] = 6;
    // What is missing to a sum of 0xffff in ones' complement, as RFC 1071 has it.
    let missing = |octets: &[u8]| {
        let word = |pair: &[u8]| u64::from(pair[0]) << 8 | u64::from(*pair.get(1).unwrap_or(&0));
        let sum: u64 = octets.chunks(2).map(word).sum();
        (0xffff - sum % 0xffff) as u16
    };
    packet[10..12].fill(0);
    let own = missing(&packet[..header]);
    packet[10..12].copy_from_slice(&own.to_be_bytes());
    // Where there is no room for the checksum, the source port makes the sum right.
    let at = header + if segment.len() < 18 { 0 } else { 16 };
    if segment.len() >= 2 {
        packet[at..at + 2].fill(0);
        let length = [0, 6, 0, segment.len() as u8];
        let own = missing(&[&packet[12..20], &length, &packet[header..]].concat());
        packet[at..at + 2].copy_from_slice(&own.to_be_bytes());
    }
    [&[0; 12][..], &[8, 0], &packet].concat()
}

proptest! {
    #[test]
    fn whatever_the_network_does_all_octets_come_in_order_and_once_and_counts_agree(
        fates in proptest::collection::vec(fate(), 0..60),
        writes in proptest::collection::vec((0..150 * MS, 1..4_000usize), 1..25),
        nagle: bool,
        delayed: bool,
        initial in prop_oneof![Just(0), Just(u32::MAX - 2_000), any::<u32>()],
    ) {
        let acknowledge = if delayed { Acknowledge::Delayed } else { Acknowledge::AtOnce };
        let mut link = Link::new(nagle, acknowledge, fates, initial);
        let mut written = Vec::new();
        for (gap, size) in writes {
            let until = link.now + gap;
            link.run(Some(until));
            let message: Vec<u8> = (0..size).map(|i| (written.len() + i) as u8).collect();
            link.write(&message);
            written.extend(message);
        }
        link.run(None);
        prop_assert!(!link.sender.has_failed());
        prop_assert_eq!(&link.read, &written);
        prop_assert_eq!(link.sender.next(), None, "all is acknowledged");
        let counts = link.sender.counts();
        prop_assert_eq!(counts.segments, link.seen.segments);
        prop_assert_eq!(counts.retransmitted, link.seen.retransmitted);
    }

    #[test]
    fn no_segment_breaks_either_end(
        segments in proptest::collection::vec(
            (
                any::<u32>(),
                any::<u32>(),
                any::<u16>(),
                proptest::collection::vec(any::<u8>(), 0..9),
            ),
            0..200,
        ),
    ) {
        let mut link = Link::new(true, Acknowledge::Delayed, Vec::new(), 7);
        let mut out = Vec::new();
        for (number, (sequence, acknowledgement, window, data)) in segments.into_iter().enumerate()
        {
            let now = at(number as i64);
            link.sender.write(now, &[1, 2, 3], &mut out);
            // Half of them near what is expected.
            let near = |wild: u32| if number % 2 == 0 { wild } else { 7 + wild % 100 };
            let segment = TcpSegment {
                sequence: near(sequence),
                acknowledgement: near(acknowledgement),
                window,
                push: false,
                data,
            };
            link.receiver.receive(now, &segment, &mut link.read, &mut out);
            link.sender.acknowledge(now, &segment, &mut out);
            link.sender.timeout(at(i64::MAX / 2), &mut out);
        }
    }

    #[test]
    fn a_segment_survives_its_frame_and_no_damaged_octet_behind_the_addresses_does(
        data in proptest::collection::vec(any::<u8>(), 0..200),
        numbers: (u32, u32, u16, bool),
        damage in (14..54usize, 1..=255u8),
    ) {
        let (sequence, acknowledgement, window, push) = numbers;
        let segment = TcpSegment { sequence, acknowledgement, window, push, data };
        let mut frame = segment.encode(&DIRECTION);
        prop_assert_eq!(frame.len(), HEADERS + segment.data.len());
        let padded: Vec<u8> = frame.iter().copied().chain([0; 6]).collect();
        prop_assert_eq!(TcpSegment::decode(&padded), Some((DIRECTION.ports, segment)));
        frame[damage.0] ^= damage.1;
        prop_assert_eq!(TcpSegment::decode(&frame), None);
    }

    #[test]
    fn no_octets_break_the_reader_of_frames(
        octets in proptest::collection::vec(any::<u8>(), 0..120),
        ipv4: bool,
    ) {
        let mut octets = octets;
        if ipv4 && octets.len() > 14 {
            octets[12..15].copy_from_slice(&[8, 0, 0x45]);
        }
        let _ = TcpSegment::decode(&octets);
    }

    #[test]
    fn no_octets_with_sound_checksums_break_the_reader_of_frames(
        words in 5..9usize,
        random in proptest::collection::vec(any::<u8>(), 36),
        segment in proptest::collection::vec(any::<u8>(), 0..40),
    ) {
        if let Some((ports, segment)) = TcpSegment::decode(&sound(words, &random, &segment)) {
            let again = segment.encode(&Direction { ports, ..DIRECTION });
            prop_assert_eq!(TcpSegment::decode(&again), Some((ports, segment)));
        }
    }

    #[test]
    fn the_timeout_agrees_with_the_formulas_of_rfc_6298(
        samples in proptest::collection::vec(
            prop_oneof![1..10 * MS, 1..2_000 * MS], 1..40),
    ) {
        let mut estimator = RtoEstimator::default();
        prop_assert_eq!(estimator.rto(), Span::from_s(1));
        let (mut srtt, mut rttvar) = (0.0, 0.0);
        for (number, sample) in samples.into_iter().enumerate() {
            estimator.sample(Span::from_ns(sample));
            let r = sample as f64;
            (srtt, rttvar) = match number {
                0 => (r, r / 2.0),
                _ => (0.875 * srtt + 0.125 * r, 0.75 * rttvar + 0.25 * f64::abs(srtt - r)),
            };
            let expected = (srtt + f64::max(4.0 * rttvar, 2e8)).min(120e9);
            let found = estimator.rto().as_ns() as f64;
            prop_assert!((found - expected).abs() < 40.0, "{found} for {expected}");
            let before = estimator.rto();
            let mut backed_off = estimator;
            backed_off.back_off();
            prop_assert_eq!(backed_off.rto(), (before * 2).min(RTO_MAX));
        }
    }
}

fn times(link: &Link) -> Vec<(i64, u64)> {
    link.sent.iter().map(|(at, start, _)| (*at, *start)).collect()
}

#[test]
fn what_is_never_acknowledged_is_sent_after_1_2_4_seconds_and_given_up_after_15_times() {
    let mut link = Link::new(false, Acknowledge::AtOnce, vec![Fate::Lost; 100], 0);
    link.write(&[1]);
    link.run(None);
    let mut expected = vec![(0, 0)];
    let mut wait = 1_000 * MS;
    for _ in 0..RETRIES_MAX {
        expected.push((expected.last().expect("one").0 + wait, 0));
        wait = (2 * wait).min(120_000 * MS);
    }
    assert_eq!(times(&link), expected);
    assert!(link.sender.has_failed());
    assert_eq!((link.sender.room(), link.sender.counts().timeouts), (0, 15));
    link.write(&[2]);
    assert_eq!(link.sent.len(), 16, "it sends nothing more");
}

#[test]
fn after_a_round_trip_the_timeout_is_200_ms_beyond_it_and_karns_algorithm_keeps_it_doubled() {
    let fates = vec![
        Fate::Late(5 * MS), // data, acknowledged after 10 ms
        Fate::Late(5 * MS),
        Fate::Lost, // the second message
    ];
    let mut link = Link::new(false, Acknowledge::AtOnce, fates, 0);
    link.write(&[1]);
    link.run(Some(100 * MS));
    link.write(&[2]);
    link.run(Some(400 * MS));
    // SRTT 10 ms, and 4·RTTVAR = 20 ms is below the minimum: 210 ms.
    assert_eq!(times(&link), [(0, 0), (100 * MS, 1), (310 * MS, 1)]);
    // The retransmission is acknowledged, but gives no sample: the next timeout is the double one.
    link.fates = vec![Fate::Lost].into_iter();
    link.write(&[3]);
    link.run(None);
    assert_eq!(times(&link)[3..], [(400 * MS, 2), (820 * MS, 2)]);
    assert_eq!(link.read, [1, 2, 3]);
}

#[test]
fn three_duplicate_acknowledgements_send_again_before_the_timer_does() {
    let fates = [Fate::Lost].into_iter().chain([Fate::Late(DELAY); 20]).collect();
    let mut link = Link::new(false, Acknowledge::AtOnce, fates, 0);
    for message in 0..4 {
        link.write(&[message; MSS]);
    }
    link.run(None);
    let counts = link.sender.counts();
    assert_eq!((counts.fast_retransmits, counts.timeouts, counts.retransmitted), (1, 0, 1));
    // The fourth segment's acknowledgement is the third duplicate, one round trip later.
    assert_eq!(link.sent.last(), Some(&(2 * DELAY, 0, MSS)));
    assert_eq!(link.read.len(), 4 * MSS);
}

#[test]
fn nagle_holds_the_second_write_until_the_delayed_acknowledgement_of_the_first() {
    let mut link = Link::new(true, Acknowledge::Delayed, Vec::new(), 0);
    let mut latencies = Vec::new();
    for _ in 0..20 {
        let begin = link.now;
        let before = link.read.len();
        link.write(&[1; 21]);
        link.write(&[2; 8]);
        while link.read.len() < before + 29 {
            let step = link.now + MS;
            link.run(Some(step));
        }
        latencies.push((link.now - begin) / MS);
        link.run(Some(begin + 100 * MS));
    }
    // Two segments a message: the first 16 are acknowledged at once, 15 ms for both writes. Then
    // the first write waits 40 ms to be acknowledged.
    assert_eq!(latencies[..8], [15; 8]);
    assert_eq!(latencies[8..], [55; 12]);
    // Without Nagle's algorithm, or where acknowledgements are not delayed, nothing waits so long.
    for (nagle, acknowledge, expected) in
        [(false, Acknowledge::Delayed, 5), (true, Acknowledge::AtOnce, 15)]
    {
        let mut link = Link::new(nagle, acknowledge, Vec::new(), 0);
        for _ in 0..20 {
            let (begin, before) = (link.now, link.read.len());
            link.write(&[1; 21]);
            link.write(&[2; 8]);
            link.run(Some(begin + expected * MS));
            assert_eq!(link.read.len(), before + 29);
            link.run(Some(begin + 100 * MS));
        }
    }
}

#[test]
fn a_delayed_acknowledgement_comes_after_40_ms_or_with_more_than_a_full_segment() {
    let mut link = Link::new(false, Acknowledge::Delayed, Vec::new(), 0);
    for _ in 0..QUICK_ACKS {
        link.write(&[1]);
    }
    link.run(None);
    assert_eq!(link.acknowledged_at, [DELAY; QUICK_ACKS as usize]);
    link.acknowledged_at.clear();
    let begin = link.now;
    link.write(&[1]);
    link.run(None);
    assert_eq!(link.acknowledged_at, [begin + DELAY + DELAYED_ACK.as_ns()]);
    link.acknowledged_at.clear();
    let begin = link.now;
    link.write(&[1; 2 * MSS]);
    link.run(None);
    // The second of two full segments.
    assert_eq!(link.acknowledged_at, [begin + DELAY]);
}

#[test]
fn the_congestion_window_starts_with_ten_segments_and_doubles_in_slow_start() {
    let mut link = Link::new(false, Acknowledge::AtOnce, Vec::new(), 0);
    link.write(&vec![0; 100 * MSS]);
    link.run(None);
    let in_round =
        |round: i64| link.sent.iter().filter(|(at, ..)| *at == round * 2 * DELAY).count();
    // The third round is limited by the window of the other end: 44 segments of it are whole.
    assert_eq!([in_round(0), in_round(1), in_round(2)], [10, 20, 40]);
    assert_eq!(link.sender.counts().retransmitted, 0);
}

#[test]
fn an_expired_timer_halves_the_threshold_and_starts_with_one_segment() {
    let fates = vec![Fate::Lost; 10];
    let mut link = Link::new(false, Acknowledge::AtOnce, fates, 0);
    link.write(&vec![0; 30 * MSS]);
    link.run(None);
    let second = 1_000 * MS;
    let in_round =
        |round: i64| link.sent.iter().filter(|(at, ..)| *at == second + round * 2 * DELAY).count();
    // Slow start to half of the ten in flight, then one more per round trip.
    assert_eq!([0, 1, 2, 3].map(in_round), [1, 2, 4, 5]);
    assert_eq!(link.read.len(), 30 * MSS);
}
