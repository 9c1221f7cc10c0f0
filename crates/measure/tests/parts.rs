//! Parts of one run that several machines recorded.

use crate::common::small::{log_of, one_channel, only_on, run, two_listeners};
use crate::common::{channel, got, log, plan, sent, system};
use onbeat_measure::records::{decode, encode};
use onbeat_measure::{ChannelResult, ClockDifference, NetworkName, Verdict, merge};
use onbeat_model::record::{Carrier, ClockAhead, Ending, RunLog};
use onbeat_model::time::{NetTime, Span};

#[test]
fn the_parts_of_all_hosts_are_the_whole_run_in_any_order() {
    let (system, plan, log) = two_listeners();
    let whole = run(&system, &plan, &log);
    for order in [[0, 1, 2], [2, 0, 1], [1, 2, 0]] {
        let parts = order.map(|host| only_on(host, log.clone())).to_vec();
        let merged = merge(&system, parts).expect("one run");
        assert_eq!(merged.ends, log.ends);
        assert_eq!(decode(&encode(&merged)), Ok(merged.clone()));
        let joined = run(&system, &plan, &merged);
        let (found, wanted) = (&joined.channels[0], &whole.channels[0]);
        assert_eq!(
            (found.sent, found.received, found.lost, found.late, found.duplicated),
            (wanted.sent, wanted.received, wanted.lost, wanted.late, wanted.duplicated)
        );
        assert_eq!(found.latency_ns, wanted.latency_ns);
        assert_eq!(joined.network.kind, NetworkName::Interfaces);
        let hosts: Vec<_> = joined.network.parts.iter().map(|part| part.host.as_str()).collect();
        assert_eq!(hosts, ["a", "b", "c"]);
        // A bound is not held against latencies between two machines' clocks; losses count.
        assert_eq!(found.verdict, Verdict::Broken, "{}", found.verdict_reason);
        assert!(found.verdict_reason.contains("lost"), "{}", found.verdict_reason);
    }
}

#[test]
fn what_a_host_without_a_part_did_is_not_known() {
    let (system, plan, log) = two_listeners();
    let parts = [0, 1].map(|host| only_on(host, log.clone())).to_vec();
    let joined = run(&system, &plan, &merge(&system, parts).expect("one run"));
    let channel = &joined.channels[0];
    assert_eq!(channel.listeners[0].received, Some(3));
    assert_eq!(channel.listeners[1].received, None);
    assert_eq!(channel.verdict, Verdict::NotJudged);
    assert!(
        channel.verdict_reason.contains("has no whole part here"),
        "{}",
        channel.verdict_reason
    );
}

/// Messages both ways between `a` and `b`, each 100 µs, if the clock of `b` is `ahead_ns`, by one
/// more µs with each message.
fn both_ways(ahead_ns: i64, drift_ns: i64) -> Vec<ClockDifference> {
    let there = channel("there", 0, &[1]);
    let back = channel("back", 1, &[0]);
    let system =
        system(&["a", "b", "bridge"], &[("a", "bridge"), ("b", "bridge")], vec![there, back]);
    let plan = plan(&system, &[None, None]);
    let mut log = log(&system);
    for number in 0..10_u64 {
        let capture = number as i64 * 20_000;
        let ahead = Span::from_ns(ahead_ns + drift_ns * number as i64);
        log.ends[0].records.push(sent(number, capture));
        let mut record = got(number, capture, 100);
        record.receive = record.receive.map(|at| at + ahead);
        log.ends[1].records.push(record);
        let mut record = sent(number, capture);
        record.capture = record.capture.map(|at| at + ahead);
        log.ends[2].records.push(record);
        let mut record = got(number, capture, 100);
        record.capture = record.capture.map(|at| at + ahead);
        log.ends[3].records.push(record);
    }
    let parts = [0, 1].map(|host| only_on(host, log.clone())).to_vec();
    run(&system, &plan, &merge(&system, parts).expect("one run")).clock_differences
}

#[test]
fn messages_both_ways_show_how_far_two_clocks_are_apart() {
    for ahead_ns in [0, 1, -1, 70_000, -70_000, 5_000_000, -900_000_000] {
        let found = both_ways(ahead_ns, 0);
        let wanted = ClockDifference {
            host: "a".to_owned(),
            other: "b".to_owned(),
            least_ns: Some(ahead_ns - 100_000),
            greatest_ns: Some(ahead_ns + 100_000),
            read_least_ns: None,
            read_greatest_ns: None,
        };
        assert_eq!(found, [wanted], "planted {ahead_ns} ns");
    }
    // Over 9 messages of a drift the clocks went apart by 900 µs, and messages show all but 200.
    let [ClockDifference { least_ns: Some(least), greatest_ns: Some(greatest), .. }] =
        both_ways(0, 100_000)[..]
    else {
        panic!("both are known")
    };
    assert_eq!(least - greatest, 900_000 - 200_000);
}

/// The result of a channel from `a` to `b` with a bound of 200 µs and these latencies, as the two
/// hosts' machines recorded it, where readings showed how far each one's clock was ahead, in µs.
fn read(latencies_us: &[i64], ahead_us: [Option<[i64; 2]>; 2]) -> ChannelResult {
    let (system, plan) = one_channel();
    let latencies: Vec<_> = latencies_us.iter().map(|us| Some(*us)).collect();
    let log = log_of(&system, &latencies);
    let mut merged =
        merge(&system, [0, 1].map(|host| only_on(host, log.clone())).to_vec()).expect("one run");
    let Carrier::Interfaces { parts, .. } = &mut merged.network else { panic!("interfaces") };
    for (part, ahead) in parts.iter_mut().zip(ahead_us) {
        let us = |[least, most]: [i64; 2]| ClockAhead {
            least: Span::from_us(least),
            most: Span::from_us(most),
        };
        part.ahead = ahead.map(us);
    }
    assert_eq!(decode(&encode(&merged)), Ok(merged.clone()));
    run(&system, &plan, &merged).channels.remove(0)
}

#[test]
fn the_clocks_error_counts_in_the_verdict() {
    // Without readings one direction of messages says how far `b` is ahead at most.
    let blind = read(&[90, 100, 110], [None, None]);
    assert_eq!(blind.verdict, Verdict::NotJudged, "{}", blind.verdict_reason);
    assert!(blind.verdict_reason.contains("as far as messages show"), "{}", blind.verdict_reason);
    // `b` is ahead by -20 to 30 µs: the slowest took at most 130.
    let near = [Some([-10, 10]), Some([-10, 20])];
    let kept = read(&[90, 100, 110], near);
    assert_eq!(kept.verdict, Verdict::Kept, "{}", kept.verdict_reason);
    assert!(kept.verdict_reason.contains("after 130 µs of 200 µs"), "{}", kept.verdict_reason);
    // 190 may be 160 to 210.
    let doubt = read(&[90, 190], near);
    assert_eq!(doubt.verdict, Verdict::NotJudged, "{}", doubt.verdict_reason);
    assert!(doubt.verdict_reason.contains("took 160 µs to 210 µs"), "{}", doubt.verdict_reason);
    // 240 are at least 210; so are 210 µs from the port to the program that nobody explains.
    let broken = read(&[90, 240], near);
    assert_ne!(broken.verdict, Verdict::Kept, "{}", broken.verdict_reason);
    assert!(broken.verdict_reason.contains("took 210 µs of 200 µs"), "{}", broken.verdict_reason);
    // They exclude each other: one of the clocks was set during the run.
    let set = read(&[-500, 100], near);
    assert_eq!(set.verdict, Verdict::NotJudged, "{}", set.verdict_reason);
    assert!(set.verdict_reason.contains("took 70 µs to 600 µs"), "{}", set.verdict_reason);
}

#[test]
fn what_a_part_did_that_was_cut_off_is_not_known_and_its_records_are_kept() {
    let (system, plan, log) = two_listeners();
    for lost in [0, 1] {
        let mut parts = [0, 1, 2].map(|host| only_on(host, log.clone())).to_vec();
        let part = &mut parts[lost];
        let Carrier::Interfaces { parts: of, .. } = &mut part.network else { panic!("a part") };
        of[0].cut_off = true;
        part.ends[lost].records.truncate(2);
        let merged = merge(&system, parts).expect("one run");
        let result = run(&system, &plan, &merged);
        assert!(result.network.parts[lost].cut_off);
        let channel = &result.channels[0];
        assert_eq!(channel.verdict, Verdict::NotJudged, "{}", channel.verdict_reason);
        assert_eq!(merged.ends[lost].records.len(), 2);
        match lost {
            0 => assert_eq!((channel.sent, channel.received), (None, Some(6))),
            _ => assert_eq!(
                (channel.sent, channel.listeners[0].received, channel.listeners[1].received),
                (Some(4), None, Some(3))
            ),
        }
    }
}

#[test]
fn a_run_that_ended_early_on_one_host_has_ended_early() {
    let (system, _, log) = two_listeners();
    let mut parts: Vec<_> = [0, 1, 2].map(|host| only_on(host, log.clone())).to_vec();
    let early = |at_ms, reason: &str| Ending::Early {
        at: NetTime::ZERO + Span::from_ms(at_ms),
        reason: reason.to_owned(),
    };
    parts[1].ending = early(300, "program `x` ended with status 1");
    parts[2].ending = early(400, "interrupted");
    let merged = merge(&system, parts).expect("one run");
    assert_eq!(merged.ending, early(300, "host b: program `x` ended with status 1"));
}

#[test]
fn parts_that_are_not_of_one_run_are_named() {
    let (system, _, log) = two_listeners();
    let refused = |change: &dyn Fn(&mut RunLog)| {
        let mut parts: Vec<_> = [0, 1].map(|host| only_on(host, log.clone())).to_vec();
        change(&mut parts[1]);
        let error = merge(&system, parts).expect_err("refused");
        assert_eq!(error.part, 1);
        error.why
    };
    let said = [
        refused(&|part| part.network = Carrier::Emulated),
        refused(&|part| part.duration = Span::from_s(9)),
        refused(&|part| part.scenario = "other".to_owned()),
        refused(&|part| part.seed += 1),
        refused(&|part| part.protected = !part.protected),
        refused(&|part| *part = only_on(0, log.clone())),
        refused(&|part| drop(part.ends.pop())),
        refused(&|part| {
            let Carrier::Interfaces { epoch_ns, .. } = &mut part.network else { panic!("a part") };
            *epoch_ns += 60_000_000_000;
        }),
    ];
    let wanted = [
        "not over the interface of a host",
        "duration `9 s`",
        "scenario `other`",
        "seed `2`",
        "reservations `",
        "it is of host a, and so is a part before it",
        "do not belong to this description",
        "it started 60 s later",
    ];
    for (said, wanted) in said.iter().zip(wanted) {
        assert!(said.contains(wanted), "{said:?}, not {wanted:?}");
    }
    assert_eq!(merge(&system, Vec::new()).expect_err("nothing").why, "there are no parts");
}
