//! Promises of runs whose reservations were made by protocol.

use crate::common::small::{log_of, one_channel, run};
use onbeat_measure::Verdict;
use onbeat_model::record::RunLog;
use onbeat_model::reservation::{
    FailureCode, ListenerReservation, ReservationObserved, ReservationStatus, ReservationsObserved,
};
use onbeat_model::system::{ChannelId, NodeId};
use onbeat_model::time::{NetTime, Span};

/// The reservation of the only channel: ready after 3 µs, programs began after 5.
fn reserved(mut log: RunLog, change: impl FnOnce(&mut ReservationsObserved)) -> RunLog {
    let mut observed = ReservationsObserved {
        begun: Some(NetTime::from_ns(5_000)),
        channels: vec![ReservationObserved {
            channel: ChannelId(0),
            status: ReservationStatus::Ready,
            listeners: vec![(ListenerReservation::Ready, Some(Span::from_us(3)))],
            worst_case: Some(Span::from_s(2)),
            lost: 0,
            is_complete: true,
        }],
    };
    change(&mut observed);
    log.reservations = Some(observed);
    log
}

#[test]
fn a_channel_is_judged_only_if_its_reservation_was_there_from_the_beginning_to_the_end() {
    let (system, plan) = one_channel();
    for (latency, verdict) in [(100, Verdict::Kept), (300, Verdict::Broken)] {
        let judge = |change: fn(&mut ReservationsObserved)| {
            let log = reserved(log_of(&system, &[Some(latency)]), change);
            run(&system, &plan, &log).channels[0].verdict
        };
        assert_eq!(judge(|_| ()), verdict);
        let changes: [fn(&mut ReservationsObserved); 5] = [
            |seen| seen.begun = None,
            |seen| seen.begun = Some(NetTime::from_ns(2_999)),
            |seen| seen.channels[0].lost = 1,
            |seen| seen.channels[0].is_complete = false,
            |seen| seen.channels[0].listeners[0].1 = None,
        ];
        for change in changes {
            assert_eq!(judge(change), Verdict::NotJudged, "{latency}");
        }
    }
}

#[test]
fn without_a_bound_nothing_is_kept() {
    let (system, mut plan) = one_channel();
    plan.channels[0].bounds.clear();
    let log = reserved(log_of(&system, &[Some(100)]), |_| ());
    assert_eq!(run(&system, &plan, &log).channels[0].verdict, Verdict::NotJudged);
    // A plan that reserves itself has a bound for each listener.
    let log = log_of(&system, &[Some(100)]);
    assert!(onbeat_measure::analyse(&system, &plan, &log).is_err());
}

#[test]
fn a_failure_has_its_code_its_text_and_the_node_that_says_so() {
    let (system, plan) = one_channel();
    let failed = ListenerReservation::Failed(FailureCode::BANDWIDTH, Some(NodeId(2)));
    let log = reserved(log_of(&system, &[None]), |seen| {
        let channel = &mut seen.channels[0];
        (channel.status, channel.is_complete) = (ReservationStatus::AskingFailed, false);
        channel.listeners = vec![(failed, None)];
    });
    let result = run(&system, &plan, &log).reservations.expect("made by protocol");
    let channel = &result.channels[0];
    assert_eq!((channel.status.as_str(), channel.complete), ("asking-failed", false));
    assert_eq!((channel.ready_ns, channel.worst_case_ns), (None, Some(2_000_000_000)));
    let listener = &channel.listeners[0];
    assert_eq!((listener.host.as_str(), listener.status.as_str()), ("b", "failed"));
    assert_eq!(listener.failure_code, Some(1));
    assert_eq!(listener.failure.as_deref(), Some("insufficient bandwidth"));
    assert_eq!(listener.failed_at.as_deref(), Some("bridge"));
    // A node that the system does not have is of another system.
    let mut log = log;
    let other = ListenerReservation::Failed(FailureCode::BANDWIDTH, Some(NodeId(3)));
    log.reservations.as_mut().expect("made by protocol").channels[0].listeners[0].0 = other;
    assert!(onbeat_measure::analyse(&system, &plan, &log).is_err());
}
