//! The record file: what is written reads back, and nothing else does harm.

use crate::common;
use onbeat_measure::records::{Error, decode, encode, record_hash, recording_part, recover};
use onbeat_model::observed::{ClockObserved, ClockPhase, ClockSample};
use onbeat_model::record::{
    Carrier, ClockAhead, Ending, EndpointLog, InterfacePart, LoadSample, Record, Role, RunLog,
    TimeErrorSample,
};
use onbeat_model::reservation::{
    FailureCode, ListenerReservation, ReservationObserved, ReservationStatus, ReservationsObserved,
};
use onbeat_model::stations::{SlotErrorFigures, StationCounts, StationsObserved};
use onbeat_model::system::{ChannelId, NodeId, NoiseId, TimeMode, TransportKind};
use onbeat_model::tcp::{TcpMessage, TcpObserved};
use onbeat_model::time::{NetTime, Span, SyncedTime};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Where the file continues after its magic and its version.
const AFTER_VERSION: usize = 12;

fn any_record() -> impl Strategy<Value = Record> {
    any::<[u8; Record::SIZE]>().prop_map(|octets| Record::from_bytes(&octets))
}

prop_compose! {
    fn any_end()(
        channel in any::<u32>(),
        listener in any::<bool>(),
        node in any::<u32>(),
        records in proptest::collection::vec(any_record(), 0..5),
        unrecorded in any::<u64>(),
        malformed in any::<u64>(),
    ) -> EndpointLog {
        let role = if listener { Role::Listener } else { Role::Talker };
        let (channel, node) = (ChannelId(channel), NodeId(node));
        EndpointLog { channel, role, node, records, unrecorded, malformed }
    }
}

prop_compose! {
    fn any_sample()(source in any::<u32>(), at in any::<i64>(), bits in any::<[u64; 2]>())
        -> LoadSample
    {
        let at = NetTime::from_ns(at);
        LoadSample { noise: NoiseId(source), at, offered_bits: bits[0], delivered_bits: bits[1] }
    }
}

fn any_ending() -> impl Strategy<Value = Ending> {
    let early = (any::<i64>(), ".{0,20}")
        .prop_map(|(at, reason)| Ending::Early { at: NetTime::from_ns(at), reason });
    prop_oneof![Just(Ending::Complete), early]
}

fn any_network() -> impl Strategy<Value = Carrier> {
    let transport = prop_oneof![
        Just(TransportKind::Packet),
        Just(TransportKind::Xdp),
        Just(TransportKind::Udp4),
        Just(TransportKind::Udp6),
    ];
    let ahead = (any::<i64>(), any::<i64>()).prop_map(|(a, b)| ClockAhead {
        least: Span::from_ns(a.min(b)),
        most: Span::from_ns(a.max(b)),
    });
    let tuned = prop_oneof![3 => Just(None), 1 => "[ -~]{0,40}".prop_map(Some)];
    let span = || prop::option::of((i64::MIN + 1..=i64::MAX).prop_map(Span::from_ns));
    let sample = (any::<i64>(), span(), span()).prop_map(|(at, ptp4l, phc2sys)| TimeErrorSample {
        at: NetTime::from_ns(at),
        ptp4l,
        phc2sys,
    });
    let errors = prop::collection::vec(sample, 0..4).prop_map(|mut errors| {
        errors.sort_by_key(|sample| sample.at);
        errors
    });
    let errors = prop_oneof![3 => Just(Vec::new()), 1 => errors];
    let more = (any::<bool>(), prop::option::of(ahead), tuned, errors);
    let more = prop_oneof![Just((false, None, None, Vec::new())), more];
    let interface = (any::<u32>(), "[a-z][a-z0-9.@-]{0,14}", transport.clone(), more);
    let interfaces = prop::collection::vec(interface, 1..4);
    (0..3, transport, interfaces, any::<i64>()).prop_map(
        |(kind, transport, interfaces, epoch_ns)| match kind {
            0 => Carrier::Emulated,
            1 => Carrier::Namespaces { transport },
            _ => {
                let part = |(id, name, transport, (cut_off, ahead, tuned, time_errors))| {
                    let host = NodeId(id);
                    let part =
                        InterfacePart { host, name, transport, cut_off, ahead, tuned, time_errors };
                    (id, part)
                };
                let parts: BTreeMap<_, _> = interfaces.into_iter().map(part).collect();
                Carrier::Interfaces { parts: parts.into_values().collect(), epoch_ns }
            }
        },
    )
}

prop_compose! {
    fn any_clock()(
        node in any::<u32>(),
        assumed in 0..i64::MAX,
        phases in any::<[Option<(u32, u32)>; 3]>(),
        fault in any::<Option<u32>>(),
        beyond in any::<Option<(u32, u32)>>(),
        is_beyond in any::<bool>(),
        source in any::<Option<u32>>(),
        samples in proptest::collection::vec(any::<(i64, i64, Option<u32>)>(), 0..4),
    ) -> ClockObserved {
        let span = |ns: u32| Span::from_ns(ns.into());
        let at = |ns: u32| NetTime::from_ns(ns.into());
        let phase = |(error, from_source): (u32, u32)| ClockPhase {
            error: span(error),
            from_source: span(from_source),
        };
        let [before, during, after] = phases.map(|it| it.map(phase));
        let sample = |(at, error, source): (i64, i64, Option<u32>)| ClockSample {
            at: NetTime::from_ns(at),
            error: Span::from_ns(error),
            source: source.map(NodeId),
        };
        ClockObserved {
            before,
            during,
            after,
            fault: fault.map(at),
            beyond: beyond.map(|(first, last)| [at(first), at(last)]),
            is_beyond,
            source: source.map(NodeId),
            samples: samples.into_iter().map(sample).collect(),
            ..ClockObserved::new(NodeId(node), Span::from_ns(assumed))
        }
    }
}

prop_compose! {
    fn any_tcp()(
        messages in proptest::collection::vec(any::<(i64, i64, Option<i64>, Option<i64>)>(), 0..4),
        counts in any::<[u64; 6]>(),
        failed in any::<bool>(),
    ) -> TcpObserved {
        // The least instant stands for none.
        let at = |ns: Option<i64>| ns.filter(|ns| *ns != i64::MIN).map(SyncedTime::from_ns);
        let message = |(tag, capture, receive, handled)| TcpMessage {
            tag: SyncedTime::from_ns(tag),
            capture: SyncedTime::from_ns(capture),
            receive: at(receive),
            handled: at(handled),
        };
        let [unrecorded, segments, retransmitted, timeouts, fast_retransmits, acknowledgements] =
            counts;
        TcpObserved {
            messages: messages.into_iter().map(message).collect(),
            unrecorded,
            segments,
            retransmitted,
            timeouts,
            fast_retransmits,
            acknowledgements,
            failed,
        }
    }
}

prop_compose! {
    fn any_reservation()(
        channel in any::<u32>(),
        status in 0..4_usize,
        listeners in proptest::collection::vec(any::<(u8, u8, Option<u32>, Option<u32>)>(), 0..3),
        (worst_case, lost, is_complete) in any::<(Option<u32>, u32, bool)>(),
    ) -> ReservationObserved {
        let span = |ns: u32| Span::from_ns(ns.into());
        let listener = |(status, code, node, ready): (u8, u8, Option<u32>, Option<u32>)| {
            let status = match status % 4 {
                0 => ListenerReservation::NoTalker,
                1 => ListenerReservation::Advertised,
                2 => ListenerReservation::Ready,
                _ => ListenerReservation::Failed(FailureCode(code), node.map(NodeId)),
            };
            (status, ready.map(span))
        };
        ReservationObserved {
            channel: ChannelId(channel),
            status: ReservationStatus::ALL[status],
            listeners: listeners.into_iter().map(listener).collect(),
            worst_case: worst_case.map(span),
            lost,
            is_complete,
        }
    }
}

prop_compose! {
    fn any_reservations()(
        begun in any::<Option<u32>>(),
        channels in proptest::collection::vec(any_reservation(), 0..3),
    ) -> ReservationsObserved {
        ReservationsObserved { begun: begun.map(|ns| NetTime::from_ns(ns.into())), channels }
    }
}

prop_compose! {
    fn any_stations()(
        ports in any::<[Option<u64>; 2]>(),
        stations in proptest::collection::vec(
            any::<(u32, [u64; 10], bool, Option<[i64; 3]>)>(), 0..4),
    ) -> StationsObserved {
        let station = |drawn: (u32, [u64; 10], bool, Option<[i64; 3]>)| {
            let (node, counts, has_stopped, slot_error) = drawn;
            let [rounds, sent, received, unsent, timeouts, overruns, discarded, ..] = counts;
            let [.., missed, late, refused] = counts;
            let slot_error = slot_error.map(|ns| ns.map(Span::from_ns));
            StationCounts {
                node: NodeId(node),
                rounds,
                sent,
                received,
                unsent,
                timeouts,
                overruns,
                discarded,
                has_stopped,
                missed,
                late,
                refused,
                slot_error: slot_error.map(|[p50, p99, max]| SlotErrorFigures { p50, p99, max }),
            }
        };
        let [collisions, waits] = ports;
        let stations = stations.into_iter().map(station).collect();
        StationsObserved { stations, collisions, waits }
    }
}

prop_compose! {
    fn any_log()(
        scenario in "[A-Za-z0-9_-]{0,20}",
        seed in any::<u64>(),
        network in any_network(),
        real in any::<bool>(),
        duration in any::<i64>(),
        protected in any::<bool>(),
        ends in proptest::collection::vec(any_end(), 0..4),
        load in proptest::collection::vec(any_sample(), 0..4),
        ending in any_ending(),
        lag in any::<Option<i64>>(),
        clocks in proptest::collection::vec(any_clock(), 0..3),
        tcp in proptest::collection::vec(any_tcp(), 0..3),
        reservations in proptest::option::weighted(0.4, any_reservations()),
        stations in proptest::option::weighted(0.3, any_stations()),
    ) -> RunLog {
        RunLog {
            scenario,
            seed,
            network,
            time: if real { TimeMode::Real } else { TimeMode::Virtual },
            duration: Span::from_ns(duration),
            protected,
            ends,
            load,
            ending,
            lag_max: lag.map(Span::from_ns),
            clocks,
            tcp,
            // Stations and reservations exclude each other.
            reservations: reservations.filter(|_| stations.is_none()),
            stations,
        }
    }
}

proptest! {
    #[test]
    fn every_log_reads_back_as_it_was_written(log in any_log()) {
        prop_assert_eq!(decode(&encode(&log)), Ok(log));
    }

    #[test]
    fn a_file_that_is_cut_off_anywhere_is_refused(
        log in any_log(),
        cut in any::<prop::sample::Index>(),
    ) {
        let file = encode(&log);
        let part = &file[..cut.index(file.len())];
        let error = if part.len() < 8 { Error::Magic } else { Error::Truncated };
        prop_assert_eq!(decode(part), Err(error));
    }

    #[test]
    fn arbitrary_octets_after_the_version_never_panic(
        octets in proptest::collection::vec(any::<u8>(), 0..300),
    ) {
        for version in 1..=7 {
            let mut file = b"onbeat\0\n".to_vec();
            file.extend(u32::to_le_bytes(version));
            file.extend(&octets);
            let _ = decode(&file);
        }
    }

    /// What is read is what is in the file, octet by octet: a change is refused or read, never
    /// taken for something that needs more memory than the file has octets.
    #[test]
    fn changed_octets_are_refused_or_read_for_what_they_are(
        log in any_log(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let mut file = encode(&log);
        for (at, octet) in changes {
            // Not the version: what is read as an older one is written as the newest.
            let at = AFTER_VERSION + at.index(file.len() - AFTER_VERSION);
            file[at] = octet;
        }
        if let Ok(read) = decode(&file) {
            prop_assert_eq!(encode(&read), file);
        }
    }
}

#[test]
fn a_count_that_the_file_cannot_hold_takes_no_memory() {
    let log = common::log(&common::system(&[], &[], Vec::new()));
    let mut file = encode(&log);
    let ends = file.len() - 12;
    file[ends..ends + 4].copy_from_slice(&u32::MAX.to_le_bytes());
    assert_eq!(decode(&file), Err(Error::Truncated));
    let mut file = encode(&log);
    let load = file.len() - 8;
    file[load..].copy_from_slice(&u64::MAX.to_le_bytes());
    assert_eq!(decode(&file), Err(Error::Truncated));
}

#[test]
fn other_files_versions_and_trailing_octets_are_named() {
    let log = common::log(&common::system(&[], &[], Vec::new()));
    assert_eq!(decode(b"{\"version\": 1}"), Err(Error::Magic));
    let mut newer = encode(&log);
    newer[8] = 8;
    assert_eq!(decode(&newer), Err(Error::Version(8)));
    let mut longer = encode(&log);
    longer.push(0);
    assert_eq!(decode(&longer), Err(Error::Trailing(1)));
}

#[test]
fn a_file_of_version_1_is_one_of_the_emulated_network() {
    let system = common::system(&["a", "b"], &[("a", "b")], vec![common::channel("c", 0, &[1])]);
    let mut log = common::log(&system);
    log.ends[0].records.push(common::sent(0, 0));
    let mut file = encode(&log);
    // Scenario (none), seed, time, duration, protection; then what version 1 did not have.
    let network = AFTER_VERSION + 4 + 8 + 1 + 8 + 1;
    assert_eq!(file.remove(network), 0);
    file[8] = 1;
    assert_eq!(decode(&file), Ok(log));
}

#[test]
fn a_file_of_version_6_has_stations_that_no_kernel_was_under() {
    let mut log = common::log(&common::system(&[], &[], Vec::new()));
    let mut file = encode(&log);
    file[8] = 6;
    // No clocks, no flows; collisions, waits, and one station on node 3.
    file.extend([0, 0].map(u32::to_le_bytes).concat());
    file.extend([5, 6].map(u64::to_le_bytes).concat());
    file.extend([1, 3].map(u32::to_le_bytes).concat());
    file.extend((10..17).flat_map(u64::to_le_bytes));
    file.push(1);
    let station = StationCounts {
        node: NodeId(3),
        rounds: 10,
        sent: 11,
        received: 12,
        unsent: 13,
        timeouts: 14,
        overruns: 15,
        discarded: 16,
        missed: 0,
        late: 0,
        refused: 0,
        has_stopped: true,
        slot_error: None,
    };
    let (collisions, waits) = (Some(5), Some(6));
    log.stations = Some(StationsObserved { stations: vec![station], collisions, waits });
    assert_eq!(decode(&file), Ok(log));
}

#[test]
fn the_hash_is_of_the_records_and_the_ending_and_of_nothing_else() {
    let system = common::system(&["a", "b"], &[("a", "b")], vec![common::channel("c", 0, &[1])]);
    let mut log = common::log(&system);
    log.ends[0].records.push(common::sent(0, 0));
    let hash = record_hash(&log);
    assert_eq!(hash.len(), 64);

    let mut same = log.clone();
    same.lag_max = Some(Span::from_us(1));
    same.seed = 9;
    same.scenario = "x".into();
    assert_eq!(record_hash(&same), hash);

    let mut record = log.clone();
    record.ends[0].records[0].flags = 1;
    let mut other_end = log.clone();
    other_end.ends[1].records = std::mem::take(&mut other_end.ends[0].records);
    let mut ending = log.clone();
    ending.ending = Ending::Early { at: NetTime::ZERO, reason: String::new() };
    for other in [record, other_end, ending] {
        assert_ne!(record_hash(&other), hash);
    }
}

#[test]
fn the_hash_of_an_empty_run_is_the_sha_256_of_five_zero_octets() {
    // No ends (u32) and a complete ending (u8); `printf '\0\0\0\0\0' | sha256sum` says the same.
    let log = common::log(&common::system(&[], &[], Vec::new()));
    assert_eq!(
        record_hash(&log),
        "8855508aade16ec573d21e6a485dfd0a7624085c1a14b5ecdd6485de0c6839a4"
    );
}

proptest! {
    #[test]
    fn a_recording_has_all_parts_that_are_whole(
        log in any_log(),
        more in proptest::collection::vec(proptest::collection::vec(any_record(), 0..4), 1..4),
        cut in any::<proptest::sample::Index>(),
    ) {
        let part = |records: &Vec<Record>| {
            let mut log = log.clone();
            log.ends.iter_mut().for_each(|end| end.records.clone_from(records));
            log
        };
        let parts: Vec<_> = more.iter().map(|records| recording_part(&part(records))).collect();
        let whole = parts.concat();
        prop_assert_eq!(recover(&whole), Ok(vec![part(&more.concat())]));
        // Cut off anywhere, it has what was written before.
        let cut = cut.index(whole.len());
        let ends = parts.iter().scan(0, |at, part| { *at += part.len(); Some(*at) });
        let kept = ends.take_while(|end| *end <= cut).count();
        let expected = match kept {
            0 => Err(Error::Truncated),
            _ => Ok(vec![part(&more[..kept].concat())]),
        };
        prop_assert_eq!(recover(&whole[..cut]), expected);
    }

    #[test]
    fn a_recording_has_what_all_parts_measured_of_clocks(
        log in any_log(),
        counts in proptest::collection::vec(0..3_usize, 1..6),
    ) {
        let all: Vec<_> = (0..counts.iter().sum::<usize>() as i64)
            .map(|n| TimeErrorSample {
                at: NetTime::from_ns(n * 7),
                ptp4l: (n % 3 > 0).then(|| Span::from_ns(-n)),
                phc2sys: (n % 2 > 0).then(|| Span::from_ns(n)),
            })
            .collect();
        let with = |errors: &[TimeErrorSample]| {
            let mut log = RunLog { ends: Vec::new(), ..log.clone() };
            if let Carrier::Interfaces { parts, .. } = &mut log.network {
                parts.iter_mut().for_each(|part| part.time_errors = errors.to_vec());
            }
            log
        };
        let mut left = &all[..];
        let parts = counts.iter().map(|count| left.split_off(..*count).expect("so many"));
        let whole: Vec<_> = parts.flat_map(|errors| recording_part(&with(errors))).collect();
        prop_assert_eq!(recover(&whole), Ok(vec![with(&all)]));
    }

    #[test]
    fn no_octets_make_the_reader_of_recordings_panic(
        octets in proptest::collection::vec(any::<u8>(), 0..200),
    ) {
        let _ = recover(&octets);
    }
}
