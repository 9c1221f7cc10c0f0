//! PDUs: golden octets, what strangers may send, and what is written is read back.

use crate::mmrp::{GroupService, Mmrp, MmrpAttribute};
use crate::mrp::AttributeEvent::{In, JoinIn, JoinMt, Lv, Mt, New};
use crate::mrp::pdu::{self, AttributeEvent, MrpApplication, MrpItem, PduError, PduWriter};
use crate::msrp::{
    BridgeId, DomainDeclaration, FailureCode, FailureInformation, ListenerDeclaration, Msrp,
    MsrpAttribute, Rank, TSpec, TalkerDeclaration,
};
use crate::mvrp::{Mvrp, Vid};
use MsrpAttribute::{Domain, Listener, Talker};
use onbeat_model::units::{MacAddress, StreamId};
use proptest::prelude::*;

type Item<A> = MrpItem<<A as MrpApplication>::Attribute>;

/// The octets that a text of hexadecimal digits stands for.
fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<_> = text.chars().filter_map(|c| c.to_digit(16)).collect();
    digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()
}

fn read<A: MrpApplication>(octets: &[u8]) -> (Vec<Item<A>>, Result<(), PduError>) {
    let mut items = Vec::new();
    let read = pdu::read::<A>(octets, &mut |item| items.push(item));
    (items, read)
}

fn write<A: MrpApplication>(
    leaves_all: bool,
    events: &[(AttributeEvent, A::Attribute)],
) -> Vec<u8> {
    let mut writer = PduWriter::<A>::new(1_500);
    if leaves_all {
        writer.leave_all();
    }
    for (event, attribute) in events {
        assert!(writer.push(*event, attribute), "{attribute:?} has room");
    }
    writer.finish()
}

/// Both ways.
fn is_golden<A: MrpApplication>(text: &str, events: &[(AttributeEvent, A::Attribute)]) {
    let octets = hex(text);
    let items: Vec<_> = events.iter().map(|(e, a)| MrpItem::Event(*e, *a)).collect();
    assert_eq!(read::<A>(&octets), (items, Ok(())), "{text}");
    assert_eq!(write::<A>(false, events), octets, "{text}");
}

const STREAM: u64 = 0x0200_00aa_bb01_0000;

fn talker(offset: u8, latency: u32, failure: Option<FailureInformation>) -> MsrpAttribute {
    Talker(TalkerDeclaration {
        stream: StreamId(STREAM + u64::from(offset)),
        destination: MacAddress([0x91, 0xe0, 0xf0, 0, 0x12, offset]),
        vid: 2,
        tspec: TSpec { max_frame_size: 224, max_interval_frames: 1 },
        priority: 3,
        rank: Rank::Normal,
        accumulated_latency_ns: latency,
        failure,
    })
}

fn failure() -> Option<FailureInformation> {
    let bridge = BridgeId([0x80, 0, 2, 0, 0, 0xcc, 0, 1]);
    Some(FailureInformation { bridge, code: FailureCode::BANDWIDTH })
}

fn domain(class: u8, priority: u8) -> MsrpAttribute {
    Domain(DomainDeclaration { class, priority, vid: 2 })
}

fn listener(offset: u64, declaration: ListenerDeclaration) -> MsrpAttribute {
    Listener(StreamId(STREAM + offset), declaration)
}

const S: &str = "020000AABB010000";
const D: &str = "91E0F0001200";

#[test]
fn msrp_is_written_and_read_octet_by_octet() {
    let text = "00 04 04 0009 0002 05020002 2A 0000 0000";
    // 2A is 42: JoinIn, JoinIn, and nothing.
    is_golden::<Msrp>(text, &[(JoinIn, domain(5, 2)), (JoinIn, domain(6, 3))]);
    let text = format!("00 01 19 001E 0002 {S} {D} 0002 00E0 0001 70 0001E848 12 0000 0000");
    is_golden::<Msrp>(
        &text,
        &[(New, talker(0, 125_000, None)), (JoinMt, talker(1, 125_000, None))],
    );
    let text = format!(
        "00 02 22 0027 0001 {S} {D} 0002 00E0 0001 70 0001FBD0 8000020000CC0001 01 24 0000 0000"
    );
    is_golden::<Msrp>(&text, &[(JoinIn, talker(0, 130_000, failure()))]);
}

#[test]
fn a_listener_that_is_ignored_fills_a_gap() {
    use ListenerDeclaration::{AskingFailed, Ready, ReadyFailed};
    let read = read::<Msrp>(&hex(&format!("00 03 08 0010 0005 {S} 3B24 B180 0000 0000")));
    let first = [(JoinIn, listener(0, Ready)), (JoinMt, listener(1, ReadyFailed))];
    let second = [(JoinIn, listener(3, AskingFailed)), (New, listener(4, Ready))];
    let all: Vec<_> = first.iter().chain(&second).map(|(e, a)| MrpItem::Event(*e, *a)).collect();
    assert_eq!(read, (all, Ok(())));
    // We begin another vector instead: 1·36 + 3·6 = 36 hexadecimal, Ready and ReadyFailed B0.
    is_golden::<Msrp>(
        &format!("00 03 08 001A 0002 {S} 36 B0 0002 020000AABB010003 24 60 0000 0000"),
        &[first, second].concat(),
    );
}

#[test]
fn leave_all_is_one_of_each_type_with_or_without_values() {
    let ready = listener(0, ListenerDeclaration::Ready);
    let zeros = "00".repeat(25);
    let more = "00".repeat(34);
    let text = format!(
        "00 01 19 001D 2000 {zeros} 0000 02 22 0026 2000 {more} 0000 \
         03 08 000E 2001 {S} 6C 80 0000 04 04 0008 2000 00000000 0000 0000"
    );
    assert_eq!(write::<Msrp>(true, &[(JoinMt, ready)]), hex(&text));
    let items = [
        MrpItem::LeaveAll(1),
        MrpItem::LeaveAll(2),
        MrpItem::LeaveAll(3),
        MrpItem::Event(JoinMt, ready),
        MrpItem::LeaveAll(4),
    ];
    assert_eq!(read::<Msrp>(&hex(&text)), (items.to_vec(), Ok(())));
}

#[test]
fn mvrp_and_mmrp_are_written_and_read_octet_by_octet() {
    let vid = |vid| Vid::new(vid).expect("a VLAN");
    let octets = hex("00 01 02 2004 0002 4100 0000 0000");
    let events = [(JoinIn, vid(2)), (Mt, vid(3)), (Lv, vid(4)), (New, vid(5))];
    assert_eq!(write::<Mvrp>(true, &events), octets);
    let (items, outcome) = read::<Mvrp>(&octets);
    assert_eq!((items[0], items.len(), outcome), (MrpItem::LeaveAll(1), 5, Ok(())));
    for (item, (event, vid)) in items[1..].iter().zip(events) {
        assert_eq!(*item, MrpItem::Event(event, vid));
    }
    let address = |last| MmrpAttribute::Address(MacAddress([0x91, 0xe0, 0xf0, 0, 0x12, last]));
    let other = MmrpAttribute::Address(MacAddress([1, 0, 0x5e, 0x0a, 0x0b, 0x0c]));
    let text = format!("00 01 01 0002 00 8A 0000 02 06 0002 {D} 06 0001 01005E0A0B0C 24 0000 0000");
    // 8A is 138 = 3·36 + 5·6: JoinMt, Lv. With the service after it the vector would have three.
    is_golden::<Mmrp>(
        &text,
        &[
            (JoinMt, MmrpAttribute::Service(GroupService::AllGroups)),
            (Lv, MmrpAttribute::Service(GroupService::AllUnregisteredGroups)),
            (New, address(0)),
            (JoinIn, address(1)),
            (JoinIn, other),
        ],
    );
}

#[test]
fn a_vector_of_any_length_is_packed_and_unpacked() {
    for count in [1, 3, 4, 4_000] {
        let events: Vec<_> = (0..count)
            .map(|n| (AttributeEvent::ALL[usize::from(n) % 6], Vid::new(n + 1).expect("a VLAN")))
            .collect();
        let mut writer = PduWriter::<Mvrp>::new(1_500);
        for (event, vid) in &events {
            assert!(writer.push(*event, vid));
        }
        let octets = writer.finish();
        // Version, type, length; header, FirstValue; events; EndMarks.
        assert_eq!(octets.len(), 1 + 2 + 2 + 2 + usize::from(count).div_ceil(3) + 4);
        let items: Vec<_> = events.iter().map(|(e, a)| MrpItem::Event(*e, *a)).collect();
        assert_eq!(read::<Mvrp>(&octets), (items, Ok(())));
    }
    // The longest count, of values that end before it does.
    let mut octets = hex("00 01 02 1FFF 0FFD");
    octets.resize(octets.len() + 8_191_usize.div_ceil(3), 0);
    let vids = [0xffd, 0xffe].map(|vid| MrpItem::Event(New, Vid::new(vid).expect("a VLAN")));
    assert_eq!(read::<Mvrp>(&octets), (vids.to_vec(), Ok(())));
    octets.pop();
    assert_eq!(read::<Mvrp>(&octets), (Vec::new(), Err(PduError::Short)));
}

#[test]
fn the_end_of_a_pdu_is_an_end_mark_and_padding_behind_one_is_not_read() {
    let whole = hex("00 01 02 0001 0002 24 0000 0000");
    let expected = read::<Mvrp>(&whole);
    assert_eq!(expected.0.len(), 1);
    for cut in [2, 4] {
        assert_eq!(read::<Mvrp>(&whole[..whole.len() - cut]), expected, "{cut} octets less");
    }
    let mut padded = whole;
    padded.resize(46, 0xaa);
    assert_eq!(read::<Mvrp>(&padded), expected);
}

/// One message of each type, with LeaveAll and two vectors.
fn full() -> Vec<u8> {
    let mut writer = PduWriter::<Msrp>::new(1_500);
    writer.leave_all();
    let all = [
        (New, talker(0, 1, None)),
        (JoinMt, talker(1, 1, None)),
        (JoinIn, talker(9, 1, None)),
        (Lv, talker(20, 7, failure())),
        (In, listener(0, ListenerDeclaration::Ready)),
        (JoinMt, listener(1, ListenerDeclaration::AskingFailed)),
        (JoinIn, domain(5, 2)),
        (JoinIn, domain(6, 3)),
    ];
    for (event, attribute) in &all {
        assert!(writer.push(*event, attribute));
    }
    writer.finish()
}

#[test]
fn each_truncation_gives_a_prefix_of_what_the_whole_gives() {
    let octets = full();
    let (all, outcome) = read::<Msrp>(&octets);
    assert_eq!((all.len(), outcome), (12, Ok(())));
    for length in 0..octets.len() {
        let (items, _) = read::<Msrp>(&octets[..length]);
        assert!(all.starts_with(&items), "{length} octets");
    }
}

#[test]
fn values_that_overflow_are_passed_over() {
    // UniqueID FFFE and two more; destination ...FE and two more, which is another octet.
    let stream = "020000AABB01FFFE";
    let text = format!("00 03 08 000F 0003 {stream} 00 A8 0000");
    let streams: Vec<_> = read::<Msrp>(&hex(&text)).0;
    assert_eq!(streams.len(), 2, "{streams:?}");
    let text = format!("00 01 19 001E 0003 {S} 91E0F00012FE 0002 00E0 0001 70 0001E848 00 0000");
    let (items, _) = read::<Msrp>(&hex(&text));
    let Some(MrpItem::Event(New, Talker(last))) = items.last() else { panic!("{items:?}") };
    assert_eq!((items.len(), last.destination.0), (3, [0x91, 0xe0, 0xf0, 0, 0x13, 0]));
    let text = format!("00 01 19 001E 0003 {S} FFFFFFFFFFFE 0002 00E0 0001 70 0001E848 00 0000");
    assert_eq!(read::<Msrp>(&hex(&text)).0.len(), 2);
    let (items, _) = read::<Msrp>(&hex("00 04 04 0009 0003 06060002 00 0000 0000"));
    assert_eq!(items, [(6, 6), (7, 7)].map(|(c, p)| MrpItem::Event(New, domain(c, p))));
    // We write no such vector.
    let crossing = [talker(255, 1, None), {
        let Talker(next) = talker(0, 1, None) else { unreachable!("a talker") };
        let destination = MacAddress([0x91, 0xe0, 0xf0, 0, 0x13, 0]);
        Talker(TalkerDeclaration { stream: StreamId(STREAM + 256), destination, ..next })
    }];
    let octets = write::<Msrp>(false, &crossing.map(|talker| (New, talker)));
    assert_eq!(octets.len(), 1 + 4 + 2 * (2 + 25 + 1) + 4);
}

#[test]
fn a_later_version_is_read_as_far_as_it_is_known() {
    let known = [domain(5, 2), domain(6, 3)].map(|domain| MrpItem::Event(JoinIn, domain));
    // Type 5 with a list of three octets, then a domain.
    let text = "01 05 07 0003 AABBCC 04 04 0009 0002 05020002 2A 0000 0000";
    assert_eq!(read::<Msrp>(&hex(text)), (known.to_vec(), Ok(())));
    // A domain that is longer than ours.
    let text = "01 04 05 000A 0002 0502000200 2A 0000 04 04 0009 0002 05020002 2A 0000 0000";
    assert_eq!(read::<Msrp>(&hex(text)), (known.to_vec(), Ok(())));
    // A LeaveAll event, and an octet of events, that are not ours: their vectors only.
    for vector in ["6001 05020002 2A", "0001 05020002 FF"] {
        let text = format!("01 04 04 0010 {vector} 0002 05020002 2A 0000 0000");
        assert_eq!(read::<Msrp>(&hex(&text)), (known.to_vec(), Ok(())), "{vector}");
    }
    // Without a list length.
    let text = "01 07 01 2004 FF 2400 0000 01 02 0001 0002 24 0000 0000";
    let vid = MrpItem::Event(JoinIn, Vid::new(2).expect("a VLAN"));
    assert_eq!(read::<Mvrp>(&hex(text)), (vec![vid], Ok(())));
}

#[test]
fn of_our_version_what_is_wrong_ends_the_reading() {
    let first = "04 04 0009 0002 05020002 2A 0000";
    for (rest, error) in [
        ("05 04 0009 0002 05020002 2A 0000", PduError::AttributeType(5)),
        ("04 05 000A 0002 0502000200 2A 0000", PduError::AttributeLength(4, 5)),
        ("04 04 0009 4002 05020002 2A 0000", PduError::LeaveAllEvent(2)),
        ("04 04 0009 0002 05020002 D8 0000", PduError::Events(216)),
        ("04 04 000A 0002 05020002 2A 0000", PduError::ListLength),
        ("04 04 FFFF 0002 05020002 2A 0000", PduError::ListLength),
        ("04 04 0008 0002 05020002 2A 0000", PduError::Short),
        ("04 04 0009 0004 05020002 2A 0000", PduError::Events(0)),
        ("00 01 0002", PduError::AttributeType(0)),
    ] {
        let (items, outcome) = read::<Msrp>(&hex(&format!("00 {first} {rest} 0000")));
        assert!(items.len() >= 2, "{rest}: the first message counts");
        match error {
            // Four values want two octets of events: the EndMark's first is one.
            PduError::Events(0) => assert_eq!(outcome, Err(PduError::Short), "{rest}"),
            error => assert_eq!(outcome, Err(error), "{rest}"),
        }
    }
    assert_eq!(read::<Msrp>(&[]), (Vec::new(), Err(PduError::Empty)));
}

fn attributes() -> impl Strategy<Value = MsrpAttribute> {
    let code = prop_oneof![3 => Just(None), 1 => (1_u8..=25).prop_map(Some)];
    let latency = prop_oneof![Just(5_u32), Just(u32::MAX)];
    let talkers = (0_u8..40, latency, code).prop_map(|(offset, latency, code)| {
        let bridge = BridgeId([0x80, 0, 2, 0, 0, 0xcc, 0, 1]);
        let code = code.map(FailureCode);
        talker(offset, latency, code.map(|code| FailureInformation { bridge, code }))
    });
    let of = |n| {
        use ListenerDeclaration::{AskingFailed, Ready, ReadyFailed};
        [AskingFailed, Ready, ReadyFailed][n]
    };
    let listeners = (0_u64..70_000, 0_usize..3).prop_map(move |(n, d)| listener(n, of(d)));
    let domains = (0_u8..8, 0_u8..8).prop_map(|(class, priority)| domain(class, priority));
    prop_oneof![talkers, listeners, domains]
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(
        leaves_all: bool,
        events in prop::collection::vec((0_usize..6, attributes()), 0..200),
    ) {
        let mut writer = PduWriter::<Msrp>::new(1_500);
        if leaves_all {
            writer.leave_all();
        }
        let mut pushed = Vec::new();
        let mut has_room = true;
        for (event, attribute) in events {
            let event = AttributeEvent::ALL[event];
            if writer.push(event, &attribute) {
                pushed.push((event, attribute));
            } else {
                has_room = false;
            }
        }
        let octets = writer.finish();
        prop_assert!(octets.len() <= 1_500 && (has_room || octets.len() > 1_400));
        let (items, outcome) = read::<Msrp>(&octets);
        prop_assert_eq!(outcome, Ok(()));
        let left = items.iter().filter(|item| matches!(item, MrpItem::LeaveAll(_))).count();
        prop_assert_eq!(left, if leaves_all { 4 } else { 0 });
        // Messages are in the order of their first values, values within them as pushed.
        for number in 1..=4 {
            let of_type = |attribute: &MsrpAttribute| Msrp::type_of(Msrp::key(attribute)) == number;
            let events = items.iter().filter_map(|item| match item {
                MrpItem::Event(event, attribute) => Some((*event, *attribute)),
                _ => None,
            });
            let mut there = events.filter(|(_, attribute)| of_type(attribute));
            let mut put = pushed.iter().filter(|(_, attribute)| of_type(attribute)).copied();
            prop_assert!(put.by_ref().eq(there.by_ref()), "type {}", number);
        }
    }

    #[test]
    fn no_octets_make_the_reader_panic_or_give_more_than_they_can_hold(
        octets in prop::collection::vec(any::<u8>(), 0..200),
        // Octets that are nearly right.
        at in 0_usize..200, value: u8,
    ) {
        let mut near = full();
        let at = at % near.len();
        near[at] = value;
        for octets in [octets, near] {
            prop_assert!(read::<Msrp>(&octets).0.len() <= 3 * octets.len());
            prop_assert!(read::<Mvrp>(&octets).0.len() <= 3 * octets.len());
            prop_assert!(read::<Mmrp>(&octets).0.len() <= 3 * octets.len());
        }
    }
}
