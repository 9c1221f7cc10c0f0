//! Parts of one run that several machines recorded.

use crate::common::small::{only_on, run, two_listeners};
use crate::common::{channel, got, log, plan, sent, system};
use onbeat_measure::records::{decode, encode};
use onbeat_measure::{ClockDifference, NetworkName, Verdict, merge};
use onbeat_model::record::{Carrier, Ending, RunLog};
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
    assert!(channel.verdict_reason.contains("has no part here"), "{}", channel.verdict_reason);
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
