use super::*;
use onbeat_model::time::{Span, SyncedTime};
use onbeat_model::units::{MacAddress, Octets, StreamId};
use onbeat_runtime::channel::MessageInfo;
use onbeat_runtime::talker::ChannelParameters;

fn parameters(size: u32) -> ChannelParameters {
    ChannelParameters {
        destination: MacAddress([1, 0, 0x5e, 0, 0, 1]),
        source: MacAddress([2, 0, 0, 0, 0, 1]),
        stream_id: StreamId(7),
        vlan: 2,
        pcp: 3,
        replicated: false,
        size: Octets::new(size),
        integrity: Default::default(),
        talker_address: None,
        interval: Span::from_ms(1),
        launch: None,
        tolerance: Span::ZERO,
        catch_up: Span::ZERO,
        fixed_delay: Span::from_ms(2),
        clock_error: Span::ZERO,
        epoch: 0,
    }
}

fn info(ns: i64, sequence: u64, gap: u32) -> MessageInfo {
    let capture = SyncedTime::from_ns(ns);
    MessageInfo { capture, sequence, gap, instance: 1, ..MessageInfo::default() }
}

/// A file of two channels and three messages.
fn file() -> Vec<u8> {
    let channels = [("a", parameters(8)), ("b", parameters(3))];
    let mut writer = MessageWriter::new(Vec::new(), channels.into_iter()).expect("written");
    for (channel, ns, gap, value) in
        [(0, 1, 0, &[1; 8][..]), (1, 5_000_000_007, 2, &[2; 3]), (0, 4_999_999_999, 0, &[3; 8])]
    {
        assert!(writer.message(channel, &info(ns, 9, gap), value).expect("written"));
    }
    assert!(!writer.message(0, &info(-1, 9, 0), &[4; 8]).expect("written"), "before the start");
    writer.finish()
}

/// Channel, instant, lost messages and octets of each message; the reason if it is damaged.
type Read = (Vec<(usize, i64, u64, Vec<u8>)>, Option<String>);

fn read(octets: &[u8]) -> Read {
    let mut reader = MessageReader::new(octets);
    let mut messages = Vec::new();
    loop {
        match reader.next_message() {
            Ok(None) => return (messages, None),
            Err(why) => return (messages, Some(why.to_string())),
            Ok(Some(RecordedMessage { channel, capture, lost, value })) => {
                messages.push((channel, capture.as_ns(), lost, value.to_vec()));
            }
        }
    }
}

#[test]
fn what_is_written_is_read_to_the_nanosecond() {
    let file = file();
    let (messages, wrong) = read(&file);
    assert_eq!(wrong, None);
    let expected = vec![
        (0, 1, 0, vec![1; 8]),
        (1, 5_000_000_007, 2, vec![2; 3]),
        (0, 4_999_999_999, 0, vec![3; 8]),
    ];
    assert_eq!(messages, expected);
    let mut reader = MessageReader::new(&file[..]);
    while reader.next_message().expect("whole").is_some() {}
    let counts: Vec<_> = reader.channels().iter().map(|c| (c.name.as_str(), c.messages)).collect();
    assert_eq!(counts, [("a", 2), ("b", 1)]);
}

#[test]
fn messages_in_fragments_are_read_as_they_were_written() {
    let (long, short) = (vec![7; 5_000], vec![8; 3]);
    let channels = [("a", parameters(5_000)), ("b", parameters(3))];
    let mut writer = MessageWriter::new(Vec::new(), channels.into_iter()).expect("written");
    let mut other = long.clone();
    other[4_999] = 1;
    for (channel, ns, gap, value) in [(0, 1, 0, &long), (1, 2, 1, &short), (0, 9, 4, &other)] {
        assert!(writer.message(channel, &info(ns, 40_000, gap), value).expect("written"));
    }
    let file = writer.finish();
    let wanted = vec![(0, 1, 0, long), (1, 2, 1, short), (0, 9, 4, other)];
    assert_eq!(read(&file), (wanted.clone(), None));
    let mut reader = MessageReader::new(&file[..]);
    while reader.next_message().expect("whole").is_some() {}
    let [a, b] = reader.channels() else { panic!("two channels") };
    assert_eq!((a.messages, a.size, b.size), (2, Some(Octets::new(5_000)), Some(Octets::new(3))));
    for place in 0..file.len() {
        for octet in [0, 1, 0x7f, 0xff] {
            let mut changed = file.clone();
            changed[place] = octet;
            let _ = read(&changed);
        }
        let _ = read(&file[..place]);
    }
    // Without one of its packets a message is left out, and counted; a copy changes nothing.
    for lacks in 0..4 {
        let (some, copied) = (without(&file, lacks), copied(&file, lacks));
        assert_eq!((read(&some).0, read(&some).1), (wanted[1..].to_vec(), None), "{lacks}");
        assert_eq!((incomplete(&some), incomplete(&copied)), (1, 0), "{lacks}");
        assert_eq!(read(&copied), (wanted.clone(), None), "{lacks}");
    }
    let end = without(&file, 8);
    assert_eq!((read(&end), incomplete(&end)), ((wanted[..2].to_vec(), None), 1));
    let index = [&[0, 1, 0, 4][..], &[7; 8]].concat();
    let place = file.windows(12).position(|octets| octets == index).expect("it");
    let mut changed = file;
    changed[place + 3] = 5;
    let wrong = read(&changed).1.expect("damaged");
    assert!(wrong.contains("channel `a`: no fragment of a message"), "{wrong}");
}

/// Where the packets are.
fn packets(file: &[u8]) -> Vec<std::ops::Range<usize>> {
    let (mut at, mut packets) = (0, Vec::new());
    while at < file.len() {
        let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().expect("four"));
        let block = at..at + word(at + 4) as usize;
        at = block.end;
        packets.extend((word(block.start) == 6).then_some(block));
    }
    packets
}

fn without(file: &[u8], packet: usize) -> Vec<u8> {
    let place = packets(file)[packet].clone();
    [&file[..place.start], &file[place.end..]].concat()
}

fn copied(file: &[u8], packet: usize) -> Vec<u8> {
    let place = packets(file)[packet].clone();
    [&file[..place.end], &file[place.start..]].concat()
}

fn incomplete(file: &[u8]) -> u64 {
    let mut reader = MessageReader::new(file);
    while reader.next_message().expect("whole").is_some() {}
    reader.channels()[0].incomplete
}

#[test]
fn a_file_that_is_cut_off_or_another_one_is_damaged_at_a_place() {
    let file = file();
    let whole = read(&file).0.len();
    for length in 0..file.len() {
        let (messages, wrong) = read(&file[..length]);
        // Between two blocks nothing is missed.
        assert!(messages.len() < whole && (wrong.is_some() || length > 0), "{length}");
    }
    for (octets, why) in [
        (&b""[..], "octet 0: this is no record file"),
        (b"not a capture at all", "octet 0: this is no record file"),
        (&[file.clone(), file.clone()].concat(), "a second section"),
    ] {
        let wrong = read(octets).1.expect("damaged");
        assert!(wrong.contains(why), "{wrong}");
    }
    let mut other = file.clone();
    let place = other.windows(8).position(|octets| octets == [1; 8]).expect("the first message");
    other[place - 1 - 24] ^= 0xff; // in front of the stream header: the frame's EtherType
    let wrong = read(&other).1.expect("damaged");
    assert!(wrong.contains("no frame of a channel"), "{wrong}");
}

#[test]
fn no_changed_octet_makes_the_reader_panic() {
    let file = file();
    for place in 0..file.len() {
        for octet in [0, 1, 0x7f, 0x80, 0xff] {
            let mut changed = file.clone();
            changed[place] = octet;
            let _ = read(&changed);
        }
    }
}
