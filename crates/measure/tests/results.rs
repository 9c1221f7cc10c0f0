//! Statistics, joins, chains and verdicts on logs small enough to check by hand.

use crate::common::small::{log_of, one_channel, only, only_on, run, two_listeners, woken};
use crate::common::{channel, got, log, plan, sent, system, us};
use onbeat_measure::{
    Mismatch, NetworkName, RelativeBasis, Results, RunResult, Statistics, Verdict, analyse,
};
use onbeat_model::diagnostic::Origin;
use onbeat_model::plan::Plan;
use onbeat_model::record::{Ending, Record, RunLog, flag};
use onbeat_model::system::{Chain, ChannelId, System, TimeMode};
use onbeat_model::time::{NetTime, Span};

#[test]
fn the_json_of_a_small_run_equals_the_sums_done_by_hand() {
    let (system, plan, log) = two_listeners();
    // All latencies: 100 102 105 110 2500 90 µs. Mean 3007/6 = 501.166… µs. Ranks ⌈6 · 0.5⌉ = 3
    // and ⌈6 · 0.99⌉ = 6 of 90 100 102 105 110 2500.
    let result = run(&system, &plan, &log);
    let latency = result.channels[0].latency_ns.unwrap();
    assert_eq!((latency.min, latency.max), (90_000, 2_500_000));
    assert_eq!((latency.avg, latency.p50, latency.p99), (501_167, 102_000, 2_500_000));
    // Deviations from 501.167 µs: −401.167² −399.167² −396.167² −391.167² 1998.833² −411.167² =
    // 160,934.96 + 159,334.29 + 156,948.29 + 153,011.62 + 3,995,333.36 + 169,058.30 =
    // 4,794,620.83; a sixth of it is 799,103.47, whose root is 893.925… µs.
    assert_eq!(latency.stddev / 1_000, 893);
    // Wake-ups of both for messages 0 and 1 at b: |3 − 1| = 2 µs and |0 − 1| = 1 µs.
    let wakeup = &result.channels[0].wakeup_error_ns;
    let relative = wakeup.relative.unwrap();
    assert_eq!((relative.min, relative.avg, relative.max), (1_000, 1_500, 2_000));
    insta::assert_snapshot!("small_run", Results::new("small", vec![result]).to_json());
}

#[test]
fn writes_that_the_rate_held_are_counted_where_the_talker_is_known() {
    let (system, plan) = one_channel();
    let mut log = log_of(&system, &[Some(100), Some(100), Some(100)]);
    for held in &mut log.ends[0].records[1..] {
        held.flags |= flag::HELD;
    }
    let result = only(&system, &plan, &log);
    assert_eq!((result.sent, result.held, result.verdict), (Some(3), Some(2), Verdict::Kept));
    let reason = &result.verdict_reason;
    assert!(reason.ends_with("; 2 of 3 writes were held by the declared rate"), "{reason}");
    let of_listener = only(&system, &plan, &only_on(1, log));
    assert_eq!((of_listener.sent, of_listener.held), (None, None));
    assert!(!of_listener.verdict_reason.contains("held"), "{}", of_listener.verdict_reason);
}

#[test]
fn the_results_read_back_from_their_json() {
    let (system, plan, log) = two_listeners();
    let results = Results::new("small", vec![run(&system, &plan, &log)]);
    let back: Results = serde_json::from_str(&results.to_json()).unwrap();
    assert_eq!(back, results);
}

#[test]
fn messages_join_by_capture_time_however_wrong_the_sequence_numbers_are() {
    let (system, plan) = one_channel();
    // 700 messages of which 300 in a row are lost: the listener's eight bits cannot tell 300 from
    // 44, so all its later numbers are 256 too low.
    let latencies: Vec<_> = (0..700).map(|n| (!(200..500).contains(&n)).then_some(100)).collect();
    let mut log = log_of(&system, &latencies);
    for record in &mut log.ends[1].records {
        record.sequence -= if record.sequence >= 500 { 256 } else { 0 };
    }
    let result = only(&system, &plan, &log);
    assert_eq!((result.sent, result.received, result.lost), (Some(700), Some(400), Some(300)));
    assert_eq!(result.latency_ns.unwrap().max, 100_000);
}

#[test]
fn a_second_record_of_one_capture_time_is_a_copy_even_without_its_flag() {
    let (system, plan) = one_channel();
    let mut log = log_of(&system, &[Some(100), Some(100)]);
    log.ends[1].records.insert(1, got(0, 0, 150));
    let result = only(&system, &plan, &log);
    assert_eq!((result.received, result.duplicated, result.lost), (Some(2), Some(1), Some(0)));
    assert_eq!(result.latency_ns.unwrap().max, 100_000, "the copy has no part in the latency");
    assert_eq!(result.verdict, Verdict::Kept);
}

#[test]
fn messages_out_of_order_are_joined_all_the_same() {
    let (system, plan) = one_channel();
    let mut log = log_of(&system, &[Some(100), Some(30_000), Some(100)]);
    log.ends[1].records.swap(1, 2);
    let result = only(&system, &plan, &log);
    assert_eq!((result.received, result.lost, result.duplicated), (Some(3), Some(0), Some(0)));
}

#[test]
fn a_message_that_reached_the_port_but_not_the_program_is_lost() {
    let (system, plan) = one_channel();
    let mut log = log_of(&system, &[Some(100), Some(100)]);
    log.ends[1].records[1].receive = None;
    let result = only(&system, &plan, &log);
    assert_eq!((result.received, result.lost), (Some(1), Some(1)));
}

#[test]
fn a_wakeup_after_its_target_is_a_negative_error() {
    let (system, plan) = one_channel();
    let mut log = log(&system);
    log.ends[0].records.push(woken(sent(0, 0), 17_400));
    log.ends[1].records.push(woken(got(0, 0, 100), -300));
    let errors = only(&system, &plan, &log).wakeup_error_ns;
    // By size, as table 8 of the paper; the sign is kept beside it.
    let talker = errors.talker.unwrap();
    assert_eq!((talker.max, talker.p99, talker.avg), (17_400, 17_400, 17_400));
    assert_eq!((talker.signed.unwrap().min, talker.largest_deviation()), (-17_400, -17_400));
    assert_eq!(errors.listener.unwrap().signed.unwrap().min, 300);
    assert_eq!(errors.relative.unwrap().max, 17_700);
    assert_eq!(errors.relative_basis, Some(RelativeBasis::ClockReadings));
}

#[test]
fn relative_errors_come_from_network_time_where_both_ends_have_it() {
    let (system, plan) = one_channel();
    let mut log = log(&system);
    let at = |us| Some(NetTime::ZERO + Span::from_us(us));
    // Both read the same, but one clock is 5 µs off.
    log.ends[0].records.push(Record { network: at(2_000), ..woken(sent(0, 0), 0) });
    log.ends[1].records.push(Record { network: at(2_005), ..woken(got(0, 0, 100), 0) });
    let errors = only(&system, &plan, &log).wakeup_error_ns;
    assert_eq!(errors.relative.unwrap().max, 5_000);
    assert_eq!(errors.relative_basis, Some(RelativeBasis::NetworkTime));
    // One pair without network time: all pairs are computed from the readings.
    log.ends[0].records.push(woken(sent(1, 20_000), 0));
    log.ends[1].records.push(woken(got(1, 20_000, 100), 0));
    let errors = only(&system, &plan, &log).wakeup_error_ns;
    assert_eq!(errors.relative.unwrap().max, 0);
    assert_eq!(errors.relative_basis, Some(RelativeBasis::ClockReadings));
}

#[test]
fn ends_without_timed_waits_have_no_wakeup_errors() {
    let (system, plan) = one_channel();
    let errors = only(&system, &plan, &log_of(&system, &[Some(100)])).wakeup_error_ns;
    assert_eq!((errors.talker, errors.listener), (None, None));
    assert_eq!((errors.relative, errors.relative_basis), (None, None));
}

/// The verdict on these latencies after `change`, and its reason.
fn verdict(latencies_us: &[Option<i64>], change: impl Fn(&mut RunLog)) -> (Verdict, String) {
    let (system, plan) = one_channel();
    let mut log = log_of(&system, latencies_us);
    change(&mut log);
    let result = only(&system, &plan, &log);
    (result.verdict, result.verdict_reason)
}

fn real(log: &mut RunLog, lag_us: i64) {
    log.time = TimeMode::Real;
    log.lag_max = Some(Span::from_us(lag_us));
}

/// The last message crosses the network within 150 µs and waits on the host.
fn waited_on_the_host(log: &mut RunLog) {
    real(log, 0);
    let last = log.ends[1].records.last_mut().unwrap();
    last.transfer = last.capture.map(|c| c + Span::from_us(160));
}

#[test]
fn a_latency_equal_to_the_bound_keeps_it_and_one_above_breaks_it() {
    let (kept, reason) = verdict(&[Some(100), Some(200)], |_| ());
    assert_eq!(
        (kept, reason.as_str()),
        (Verdict::Kept, "all of 2 arrived, the slowest after 200 µs of 200 µs",)
    );
    let (broken, reason) = verdict(&[Some(100), Some(201)], |_| ());
    assert_eq!(
        (broken, reason.as_str()),
        (
            Verdict::Broken,
            "1 message was slower than the bound, the slowest took 201 µs of 200 µs to b",
        )
    );
}

#[test]
fn a_loss_on_a_protected_channel_breaks_it_in_either_time() {
    let lost = [Some(100), None];
    assert_eq!(verdict(&lost, |_| ()).0, Verdict::Broken);
    assert_eq!(verdict(&lost, |log| real(log, 1_000_000)).0, Verdict::Broken);
}

#[test]
fn in_real_time_only_what_the_machine_explains_is_not_judged() {
    let slow = [Some(100), Some(250)];
    // 235 µs from port to port, 35 µs too many: the engine's lag explains them from 35 µs on.
    assert_eq!(verdict(&slow, |log| real(log, 34)).0, Verdict::Broken);
    let (judged, reason) = verdict(&slow, |log| real(log, 35));
    assert_eq!(judged, Verdict::NotJudged);
    let explained = "none took more than 235 µs, and the engine was up to 35 µs behind";
    assert!(reason.contains(explained), "{reason}");
    // 150 µs from port to port are within the bound, whatever came before and after.
    let (judged, reason) = verdict(&slow, waited_on_the_host);
    assert_eq!(judged, Verdict::NotJudged);
    assert!(reason.contains("none took more than 150 µs"), "{reason}");
    // Virtual time has no machine to blame.
    let stalled = |log: &mut RunLog| {
        waited_on_the_host(log);
        log.time = TimeMode::Virtual;
    };
    assert_eq!(verdict(&slow, stalled).0, Verdict::Broken);
}

#[test]
fn a_run_that_proves_nothing_is_not_judged() {
    let early = |log: &mut RunLog| {
        let at = NetTime::ZERO + Span::from_ms(20);
        log.ending = Ending::Early { at, reason: "program `l` hung".into() };
    };
    let (judged, reason) = verdict(&[Some(100), None], early);
    assert_eq!(judged, Verdict::NotJudged);
    assert_eq!(reason, "the run ended early, after 20 ms: program `l` hung");
    assert_eq!(verdict(&[], |_| ()), (Verdict::NotJudged, "nothing was sent".into()));
    let full = |log: &mut RunLog| log.ends[1].unrecorded = 1;
    assert_eq!(verdict(&[Some(100), None], full).0, Verdict::NotJudged);
    let stranger = |log: &mut RunLog| log.ends[1].records.push(got(9, 990_000, 100));
    assert_eq!(verdict(&[Some(100)], stranger).0, Verdict::NotJudged);
    // A bound that was seen to be broken is broken however the run ended.
    assert_eq!(verdict(&[Some(300)], early).0, Verdict::Broken);
}

#[test]
fn an_unprotected_channel_promises_nothing() {
    let (system, _) = one_channel();
    let plan = plan(&system, &[None]);
    let result = only(&system, &plan, &log_of(&system, &[Some(9_000), None]));
    assert_eq!((result.verdict, result.bound_ns), (Verdict::NoPromise, None));
    assert_eq!((result.lost, result.protected), (Some(1), false));
}

#[test]
fn records_of_another_system_are_refused() {
    let (system, plan) = one_channel();
    let mut log = log_of(&system, &[Some(100)]);
    log.ends[1].node.0 = 7;
    assert_eq!(analyse(&system, &plan, &log), Err(Mismatch));
    let mut plan = plan;
    plan.channels[0].bounds.clear();
    assert_eq!(analyse(&system, &plan, &log_of(&system, &[Some(100)])), Err(Mismatch));
}

/// `a` → `b` → `c` over two channels, with a deadline of 500 µs for both.
fn chain() -> (System, Plan) {
    let nodes = ["a", "b", "c", "bridge"];
    let links = [("a", "bridge"), ("b", "bridge"), ("c", "bridge")];
    let channels = vec![channel("first", 0, &[1]), channel("second", 1, &[2])];
    let mut system = system(&nodes, &links, channels);
    system.chains = vec![Chain {
        name: "whole".into(),
        channels: vec![ChannelId(0), ChannelId(1)],
        deadline: Span::from_us(500),
        age: None,
        reaction: None,
        origin: Origin::default(),
    }];
    let mut plan = plan(&system, &[Some(200), Some(200)]);
    plan.chains = vec![Some(Span::from_us(450))];
    (system, plan)
}

#[test]
fn the_cause_of_a_message_is_the_last_one_received_when_it_was_captured() {
    let (system, plan) = chain();
    let mut log = log(&system);
    // b receives at 100 what was captured at 0, and at 1100 what was captured at 1000.
    log.ends[0].records = vec![sent(0, 0), sent(1, 1_000)];
    log.ends[1].records = vec![got(0, 0, 100), got(1, 1_000, 100)];
    // Before any receipt there is no cause; at the very instant of one it is the cause.
    log.ends[2].records = vec![sent(0, 50), sent(1, 100), sent(2, 1_099), sent(3, 1_150)];
    log.ends[3].records =
        vec![got(0, 50, 80), got(1, 100, 80), got(2, 1_099, 80), got(3, 1_150, 80)];
    let result = run(&system, &plan, &log).chains.remove(0);
    assert_eq!(result.completed, 3);
    // 180 − 0, 1179 − 0 and 1230 − 1000.
    let latency = result.latency_ns.unwrap();
    assert_eq!((latency.min, latency.p50, latency.max), (180_000, 230_000, 1_179_000));
    assert_eq!(result.verdict, Verdict::Broken);
    assert_eq!(result.verdict_reason, "the slowest took 1.179 ms, more than the bound of 450 µs");
}

#[test]
fn a_chain_keeps_its_deadline_only_if_its_channels_keep_their_bounds() {
    let (system, plan) = chain();
    let mut log = log(&system);
    log.ends[0].records = vec![sent(0, 0)];
    log.ends[1].records = vec![got(0, 0, 100)];
    log.ends[2].records = vec![sent(0, 120)];
    log.ends[3].records = vec![got(0, 120, 100)];
    let of = |log: &RunLog, plan: &Plan| {
        let result = run(&system, plan, log).chains.remove(0);
        (result.verdict, result.verdict_reason)
    };
    assert_eq!(of(&log, &plan).0, Verdict::Kept);
    log.ends[1].records[0].receive = us(150);
    log.ends[2].records[0].capture = us(150);
    log.ends[3].records[0] = got(0, 150, 210);
    assert_eq!(of(&log, &plan), (Verdict::Broken, "channel second broke its promise".into()));
    let unprotected = Plan { chains: vec![None], ..plan };
    assert_eq!(of(&log, &unprotected).0, Verdict::NoPromise);
}

#[test]
fn statistics_of_one_value_are_that_value() {
    let one = Statistics { min: 7, avg: 7, p50: 7, p99: 7, max: 7, stddev: 0, signed: None };
    assert_eq!(Statistics::of(vec![7]), Some(one));
}

#[test]
fn where_only_the_talker_is_known_nothing_is_said_of_receipts_or_losses() {
    let (system, _) = one_channel();
    let unprotected = plan(&system, &[None]);
    let log = only_on(0, log_of(&system, &[Some(100), None, Some(120)]));
    let run = run(&system, &unprotected, &log);
    let result = &run.channels[0];
    assert_eq!((result.sent, result.received, result.lost), (Some(3), None, None));
    assert_eq!((result.late, result.duplicated, result.latency_ns), (None, None, None));
    assert_eq!(result.listeners[0].lost, None);
    assert_eq!(result.verdict, Verdict::NoPromise);
    assert!(result.verdict_reason.contains("only its talker's side, host a"), "{result:?}");
    assert_eq!((run.network.kind, run.network.epoch_ns), (NetworkName::Interface, Some(7)));
    assert_eq!(run.network.host.as_deref(), Some("a"));
}

#[test]
fn where_only_the_listener_is_known_losses_are_the_gaps_that_it_found() {
    let (system, protected) = one_channel();
    let unprotected = plan(&system, &[None]);
    let mut log = only_on(1, log_of(&system, &[Some(100), None, None, Some(120)]));
    log.ends[1].records[1].gap = 2;
    let result = only(&system, &unprotected, &log);
    assert_eq!((result.sent, result.received, result.lost), (None, Some(2), Some(2)));
    assert_eq!(result.latency_ns.expect("receipts").max, 120_000);
    assert!(result.verdict_reason.contains("only its listener's side, host b"), "{result:?}");
    // A promise could not be judged from one side.
    log.protected = true;
    assert_eq!(only(&system, &protected, &log).verdict, Verdict::NotJudged);
}

#[test]
fn a_network_that_the_system_cannot_have_is_a_mismatch() {
    let (system, plan) = one_channel();
    let log = only_on(99, log_of(&system, &[]));
    assert_eq!(analyse(&system, &plan, &log), Err(Mismatch));
}

#[test]
fn results_without_a_network_are_of_the_emulated_one() {
    let (system, plan) = one_channel();
    let result = run(&system, &plan, &log_of(&system, &[Some(100)]));
    let mut json = serde_json::to_value(&result).expect("JSON");
    json.as_object_mut().expect("an object").remove("network");
    assert_eq!(serde_json::from_value::<RunResult>(json).expect("a run"), result);
}
