//! What the integrity of channels guarantees, against somebody who has the wire and not the key.

use onbeat_model::integrity::Integrity;
use onbeat_model::time::{Span, SyncedTime};
use onbeat_model::units::{MacAddress, Octets, StreamId};
use onbeat_runtime::channel_io::{Framing, Reason, Source};
use onbeat_runtime::integrity::{Epoch, Guard, KeyRing, Seal, StreamKeys};
use onbeat_runtime::listener::{Accepted, Dropped, Listener, Reading};
use onbeat_runtime::talker::{ChannelParameters, Talker};
use onbeat_runtime::wire::trailer::{Mark, TAG_TRAILER};
use onbeat_runtime::wire::{Frame, HEADERS, TAGGED};
use onbeat_testkit::Random;
use proptest::prelude::*;
use std::collections::HashSet;

const DESTINATION: MacAddress = MacAddress([1, 0, 0x5e, 1, 0x11, 0x42]);
const SIZE: usize = 64;
const INTERVAL: Span = Span::from_ms(1);

fn parameters(integrity: Integrity) -> ChannelParameters {
    ChannelParameters {
        destination: DESTINATION,
        source: MacAddress([2, 0, 0, 0, 0, 1]),
        stream_id: StreamId(42),
        vlan: 2,
        pcp: 3,
        size: Octets::new(SIZE as u32),
        integrity,
        replicated: false,
        launch: None,
        talker_address: None,
        interval: INTERVAL,
        tolerance: Span::from_us(125),
        catch_up: Span::ZERO,
        fixed_delay: Span::from_ms(2),
        clock_error: Span::from_us(50),
        epoch: 1_700_000_000_000_000_000,
    }
}

fn keys(octet: u8) -> StreamKeys {
    KeyRing::of_one(octet, [octet; 32]).of_stream(StreamId(42), DESTINATION)
}

fn talker(instance: u8, epoch: u64) -> Talker {
    talker_with(instance, epoch, keys(7))
}

fn talker_with(instance: u8, epoch: u64, keys: StreamKeys) -> Talker {
    let parameters = parameters(Integrity::Authenticated);
    let seal = Seal::new(parameters.integrity, Some(keys), Epoch(epoch)).expect("keys");
    Talker::of_instance(parameters, instance).sealed(seal)
}

fn listener(since: SyncedTime) -> Listener {
    listener_of(parameters(Integrity::Authenticated), since)
}

fn listener_of(parameters: ChannelParameters, since: SyncedTime) -> Listener {
    let guard = Guard::new(parameters.integrity, Some(keys(7)), since).expect("keys");
    Listener::joining(parameters).guarded(guard)
}

fn at(ns: i64) -> SyncedTime {
    SyncedTime::from_ns(ns)
}

fn ms(count: i64) -> SyncedTime {
    SyncedTime::ZERO + Span::from_ms(count)
}

fn message(talker: &mut Talker, capture: SyncedTime) -> Vec<u8> {
    talker.write(capture, &[9; SIZE], false).expect("within the rate");
    talker.frame().to_vec()
}

fn accept(listener: &mut Listener, frame: &[u8], now: SyncedTime) -> Result<Accepted, Dropped> {
    let mut value = [0; SIZE];
    let got = listener.accept(frame, Framing::Ethernet, Reading::at(now), &mut value)?;
    assert_eq!(value, [9; SIZE]);
    Ok(got)
}

fn rejected(reason: Reason) -> Result<Accepted, Dropped> {
    Err(Dropped::Rejected(reason))
}

#[test]
fn without_integrity_a_frame_is_what_it_always_was() {
    let mut plain = Talker::new(parameters(Integrity::None));
    let frame = message(&mut plain, ms(1));
    assert_eq!(frame.len(), HEADERS + SIZE);
    assert_eq!(frame[38..40], [0, 64], "stream_data_length");
}

/// The tags are those of Python's hashlib: `blake2s(key=system key, b"onbeat channel v1" + stream)`
/// derives the stream's key; `blake2s(key=…, destination + capture + data unit, 16)` is the tag.
#[test]
fn an_authenticated_frame_has_these_octets() {
    let frame = message(&mut talker(5, 0x0102_0304_0506_0708), at(3));
    let trailer = &frame[HEADERS + SIZE..];
    assert_eq!((trailer.len(), &frame[38..40]), (TAG_TRAILER, &[0, 96][..]));
    assert_eq!(trailer[..16], [7, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(trailer[16..], TAG);
}

const TAG: [u8; 16] = [
    0x07, 0x67, 0x1a, 0x4b, 0xa9, 0xe2, 0x42, 0x8b, 0x5d, 0x80, 0x83, 0xd2, 0x3c, 0x4c, 0x5e, 0x8e,
];

#[test]
fn a_frame_with_a_crc_has_the_one_of_e2e_profile_4() {
    let frame = message(&mut Talker::new(parameters(Integrity::Crc)), at(3));
    let (counter, sum) = frame[HEADERS + SIZE..].split_at(4);
    assert_eq!((counter, &frame[38..40]), (&[0; 4][..], &[0, 72][..]));
    // Bit by bit: polynomial 0xF4ACFB13 reflected, all ones at the start and inverted at the end.
    let bits = frame[TAGGED..HEADERS + SIZE + 4].iter().fold(u32::MAX, |crc, octet| {
        (0..8).fold(crc ^ u32::from(*octet), |crc, _| {
            if crc & 1 == 1 { crc >> 1 ^ 0xf4ac_fb13u32.reverse_bits() } else { crc >> 1 }
        })
    });
    assert_eq!(sum, (!bits).to_be_bytes());
}

#[test]
fn no_bit_of_a_checked_data_unit_can_be_changed() {
    for integrity in [Integrity::Crc, Integrity::Authenticated] {
        let parameters = parameters(integrity);
        let mut talker = match integrity {
            Integrity::Authenticated => talker(1, 1),
            _ => Talker::new(parameters),
        };
        let frame = message(&mut talker, ms(1));
        for bit in 0..8 * (frame.len() - TAGGED) {
            let mut changed = frame.clone();
            changed[TAGGED + bit / 8] ^= 1 << (bit % 8);
            let mut listener = listener_of(parameters, SyncedTime::ZERO);
            let got = accept(&mut listener, &changed, ms(2));
            // What the header's parser does not look at is covered as well.
            assert!(matches!(got, Err(Dropped::Rejected(_))), "{integrity:?}, bit {bit}: {got:?}");
            assert!(accept(&mut listener, &frame, ms(2)).is_ok());
        }
    }
}

#[test]
fn each_forgery_is_counted_for_its_reason() {
    let mut listener = listener(ms(10));
    let mut live = talker(1, 1);
    let early = message(&mut live, ms(9));
    let first = message(&mut live, ms(10));
    assert_eq!(accept(&mut listener, &early, ms(10)), rejected(Reason::Stale));
    assert!(accept(&mut listener, &first, ms(10)).is_ok());
    assert_eq!(accept(&mut listener, &first, ms(10)), rejected(Reason::Replayed));
    let other = message(&mut talker_with(2, 2, keys(8)), ms(11));
    assert_eq!(accept(&mut listener, &other, ms(11)), rejected(Reason::UnknownKey));
    let same_number = KeyRing::of_one(7, [1; 32]).of_stream(StreamId(42), DESTINATION);
    let forged = message(&mut talker_with(2, 2, same_number), ms(11));
    assert_eq!(accept(&mut listener, &forged, ms(11)), rejected(Reason::NotAuthentic));
    // The lower half of the capture time is the same again after 4.29 s.
    let fresh = message(&mut live, ms(12));
    let wrapped = ms(12) + Span::from_ns(1 << 32);
    assert_eq!(accept(&mut listener, &fresh, wrapped), rejected(Reason::NotAuthentic));
    assert_eq!(accept(&mut listener, &fresh[..TAGGED + 10], ms(12)), rejected(Reason::Shape));
    assert!(accept(&mut listener, &fresh, ms(12)).is_ok());
    let mut plain = Talker::new(parameters(Integrity::None));
    let unchecked = message(&mut plain, ms(13));
    assert_eq!(accept(&mut listener, &unchecked, ms(13)), rejected(Reason::Size));
    let mut crc = Listener::new(parameters(Integrity::Crc));
    let mut damaged = message(&mut Talker::new(parameters(Integrity::Crc)), ms(1));
    damaged[HEADERS] ^= 0x10;
    assert_eq!(accept(&mut crc, &damaged, ms(1)), rejected(Reason::Damaged));
}

#[test]
fn a_talker_that_starts_again_is_read_and_its_earlier_start_no_more() {
    let mut listener = listener(SyncedTime::ZERO);
    let (mut before, mut after) = (talker(1, 0xffff), talker(2, 3));
    assert!(accept(&mut listener, &message(&mut before, ms(1)), ms(1)).is_ok());
    let [withheld, kept] = [ms(2), ms(30)].map(|when| message(&mut before, when));
    assert!(accept(&mut listener, &message(&mut after, ms(20)), ms(20)).is_ok());
    assert_eq!(accept(&mut listener, &withheld, ms(21)), rejected(Reason::Stale));
    assert!(accept(&mut listener, &message(&mut after, ms(29)), ms(29)).is_ok());
    // Both run: the one that is not read is told, and takes nothing from the other.
    assert_eq!(accept(&mut listener, &kept, ms(30)), rejected(Reason::Talker));
    assert!(accept(&mut listener, &message(&mut after, ms(31)), ms(31)).is_ok());
}

#[test]
fn in_a_run_a_talker_that_starts_again_is_read_though_its_clock_was_set_back() {
    let parameters = parameters(Integrity::Authenticated);
    let mut listener = Listener::new(parameters);
    let mut before = Talker::of_instance(parameters, 1);
    assert!(accept(&mut listener, &message(&mut before, ms(500)), ms(500)).is_ok());
    let mut after = Talker::of_instance(parameters, 2);
    // The first one seems old, as without integrity.
    let first = accept(&mut listener, &message(&mut after, ms(1)), ms(1));
    assert!(matches!(first, Err(Dropped::Duplicate { .. })), "{first:?}");
    assert!(accept(&mut listener, &message(&mut after, ms(2)), ms(2)).is_ok());
}

#[test]
fn frames_that_overtake_each_other_are_no_repetitions_until_they_come_twice() {
    let mut listener = listener(SyncedTime::ZERO);
    let mut live = talker(1, 1);
    let frames: Vec<_> = (1..70).map(|k| message(&mut live, ms(k))).collect();
    assert!(accept(&mut listener, &frames[0], ms(70)).is_ok());
    assert!(accept(&mut listener, &frames[66], ms(70)).is_ok());
    // As without integrity: too late to be read, and recorded.
    let overtaken = accept(&mut listener, &frames[40], ms(70));
    assert!(matches!(overtaken, Err(Dropped::Duplicate { sequence: 40, .. })), "{overtaken:?}");
    assert_eq!(accept(&mut listener, &frames[40], ms(70)), rejected(Reason::Replayed));
    // Beyond the window nothing is known.
    assert_eq!(accept(&mut listener, &frames[2], ms(70)), rejected(Reason::Replayed));
    assert!(accept(&mut listener, &frames[67], ms(70)).is_ok());
}

#[test]
fn a_copy_from_another_station_that_comes_first_takes_no_message() {
    let mut listener = listener(SyncedTime::ZERO);
    let mut live = talker(1, 1);
    for k in 1..20 {
        let frame = message(&mut live, ms(k));
        let mut copy = frame.clone();
        copy[11] = 0x66;
        let got = [accept(&mut listener, &copy, ms(k)), accept(&mut listener, &frame, ms(k))];
        assert!(got[0].is_ok() && got[1] == rejected(Reason::Replayed), "{got:?}");
    }
}

#[test]
fn a_listener_that_names_its_talker_reads_no_other_station_and_says_which_it_was() {
    let talker_address = Some(MacAddress([2, 0, 0, 0, 0, 1]));
    let named = ChannelParameters { talker_address, ..parameters(Integrity::None) };
    let mut listener = Listener::new(named);
    let source = MacAddress([2, 0, 0, 0, 0, 9]);
    let mut other = Talker::new(ChannelParameters { source, ..named });
    assert_eq!(accept(&mut listener, &message(&mut other, ms(1)), ms(1)), rejected(Reason::Talker));
    assert_eq!(listener.other_talker(), Some(&Source::Station(source)));
    assert!(accept(&mut listener, &message(&mut Talker::new(named), ms(2)), ms(2)).is_ok());
}

#[test]
fn keys_are_rotated_without_losing_a_message() {
    let line = |number: u8| format!("{number} {}\n", format!("{number:02x}").repeat(32));
    let ring = |numbers: &[u8]| {
        let text: String = numbers.iter().map(|number| line(*number)).collect();
        text.parse::<KeyRing>().expect("keys").of_stream(StreamId(42), DESTINATION)
    };
    let mut live = talker_with(1, 1, ring(&[7]));
    let mut listener = listener(SyncedTime::ZERO);
    listener.set_keys(ring(&[7]));
    let send = |live: &mut Talker, listener: &mut Listener, k: i64| {
        let got = accept(listener, &message(live, ms(k)), ms(k)).expect("a message");
        assert_eq!((got.sequence, got.gap), (k as u64 - 1, 0));
    };
    for k in 1..100 {
        match k {
            // The new key everywhere, behind the old one; then first; then alone.
            20 => listener.set_keys(ring(&[7, 8])),
            25 => live.set_keys(ring(&[7, 8])),
            40 => live.set_keys(ring(&[8, 7])),
            45 => listener.set_keys(ring(&[8, 7])),
            60 => listener.set_keys(ring(&[8])),
            65 => live.set_keys(ring(&[8])),
            _ => {}
        }
        send(&mut live, &mut listener, k);
    }
    let old = message(&mut talker_with(2, 2, ring(&[7])), ms(200));
    assert_eq!(accept(&mut listener, &old, ms(200)), rejected(Reason::UnknownKey));
}

fn campaign(variable: &str, least: usize) -> usize {
    std::env::var(variable).map_or(least, |count| count.parse().expect("a number"))
}

/// Forged, changed, repeated and cut frames between those of a live channel: none of them is
/// accepted, and none of the channel's is lost. `ONBEAT_FORGED` says how many.
#[test]
fn no_forged_frame_is_accepted_and_none_of_the_channel_is_lost() {
    let attacks = campaign("ONBEAT_FORGED", 20_000);
    let (mut random, mut tried, mut sent) = (Random(1), 0, 0i64);
    let (mut live, mut listener) = (talker(1, 77), listener(SyncedTime::ZERO));
    let mut former = talker(9, 76);
    let mut heard: Vec<Vec<u8>> = (0..50).map(|k| message(&mut former, ms(k - 100))).collect();
    let mut reasons = [0usize; Reason::COUNT];
    while tried < attacks {
        sent += 1;
        let frame = message(&mut live, ms(sent));
        let next = frame.clone();
        for _ in 0..random.below(20) {
            let mut forged = heard[random.below(heard.len() as u64) as usize].clone();
            match random.below(5) {
                0 => {}
                1 => forged.truncate(random.below(forged.len() as u64) as usize),
                kind => {
                    // The message that comes now, or an older one, with another value or word.
                    forged = if kind == 2 { next.clone() } else { forged };
                    let at = TAGGED + random.below((forged.len() - TAGGED) as u64) as usize;
                    forged[at] ^= 1 << random.below(8);
                }
            }
            tried += 1;
            let now = ms(sent) + Span::from_us(random.below(900) as i64);
            match accept(&mut listener, &forged, now) {
                Err(Dropped::Rejected(reason)) => reasons[reason as usize] += 1,
                other => panic!("{other:?} after {tried} attacks"),
            }
        }
        let got = accept(&mut listener, &frame, ms(sent)).expect("the live channel's message");
        assert_eq!((got.sequence, got.gap), (sent as u64 - 1, 0));
        heard.push(frame);
        if heard.len() > 6_000 {
            heard.drain(..1_000);
        }
    }
    eprintln!("{tried} attacks, {sent} messages; by reason: {reasons:?}");
    for reason in [Reason::Shape, Reason::NotAuthentic, Reason::Replayed, Reason::UnknownKey] {
        assert!(reasons[reason as usize] > 0, "{reason:?}: {reasons:?}");
    }
}

/// Epoch and counter of all messages of a talker that is started again and again, while its clock
/// is set back and forth.
fn nonces(count: usize, mut draw: impl FnMut(&mut Random, SyncedTime) -> Epoch) -> Vec<u128> {
    let mut random = Random(2);
    let (mut all, mut clock) = (Vec::with_capacity(count), SyncedTime::ZERO);
    while all.len() < count {
        let epoch = draw(&mut random, clock);
        let mut talker = talker(random.below(255) as u8 + 1, epoch.0);
        for _ in 0..random.below(2_000) + 1 {
            if let Ok(_sent) = talker.write(clock, &[9; SIZE], false) {
                let frame = Frame::parse(talker.frame()).expect("a frame");
                let mark = Mark::parse(&frame.payload[SIZE..]).expect("a mark");
                all.push(u128::from(mark.epoch) << 64 | u128::from(mark.counter));
            }
            clock += INTERVAL;
        }
        // Set to a time that was there before, or set forward; or the host was started anew.
        clock += match random.below(3) {
            0 => Span::from_ms(-(random.below(5_000) as i64)),
            1 => Span::from_ms(random.below(5_000) as i64),
            _ => SyncedTime::ZERO - clock,
        };
    }
    all
}

fn repetitions(mut nonces: Vec<u128>) -> usize {
    nonces.sort_unstable();
    nonces.windows(2).filter(|pair| pair[0] == pair[1]).count()
}

/// `ONBEAT_NONCES` says how many.
#[test]
fn no_nonce_is_used_twice_over_the_starts_of_a_talker_whose_clock_is_set() {
    let count = campaign("ONBEAT_NONCES", 100_000);
    assert_eq!(repetitions(nonces(count, |random, _| Epoch(random.draw()))), 0);
}

#[test]
fn an_epoch_by_the_clock_alone_would_use_nonces_twice() {
    let by_clock = |_: &mut Random, clock: SyncedTime| Epoch(clock.as_ns() as u64);
    assert!(repetitions(nonces(50_000, by_clock)) > 0, "the test above could not see it");
}

proptest! {
    /// Whatever the clocks do, and in whatever order what was ever sent is repeated.
    #[test]
    fn a_message_is_accepted_once_at_most(
        steps in proptest::collection::vec((0usize..3, -3_000i64..3_000, any::<u16>()), 1..120),
    ) {
        let mut listener = listener(at(i64::MIN / 2));
        let (mut sent, mut accepted) = (Vec::new(), HashSet::new());
        let (mut clock, mut start) = (ms(10_000), 1u8);
        let mut live = talker(1, 1);
        for (kind, by, which) in steps {
            match kind {
                0 => {
                    clock += Span::from_ms(by);
                    start = start.wrapping_add(1).max(1);
                    live = talker(start, u64::from(which));
                }
                1 => clock += Span::from_ms(by),
                _ => {}
            }
            if live.write(clock, &[9; SIZE], false).is_ok() {
                sent.push(live.frame().to_vec());
            }
            clock += INTERVAL;
            for back in [0, 1, usize::from(which)] {
                let Some(at) = sent.len().checked_sub(1 + back) else { continue };
                if accept(&mut listener, &sent[at], clock).is_ok() {
                    prop_assert!(accepted.insert(at), "message {} twice", at);
                }
            }
        }
    }
}
