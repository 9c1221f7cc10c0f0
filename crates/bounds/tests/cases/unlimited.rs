//! Queues that hold what nothing limits: whatever shares them, or is below them, has no bound, and
//! the plan says so and why.

use crate::build::{Net, two_hosts};
use crate::check::{Case, Shape, pair, sent, star, wire};
use onbeat_model::plan::Cause;
use onbeat_model::time::Span;

/// Why a stream has no bound: the cause, the port and its queue.
#[track_caller]
fn reason(case: &Case, stream: usize) -> (Cause, String, u8) {
    let planned = &case.plan.streams[stream];
    assert_eq!(planned.bounds, [None]);
    let reason = planned.unbounded[0].as_ref().expect("a reason");
    (reason.cause, case.net.0.port_label(reason.port), reason.queue)
}

/// Noise from h2 to h3 at 100 Mb/s, and a stream from h1 to h3 in a class.
fn beside_noise(class: u8) -> Net {
    let mut net = star(&["h1", "h2", "h3"]);
    net.noise("h2", "h3");
    net.stream("h1", &["h3"], class, 500).at(1_000_000);
    net
}

#[test]
fn a_stream_in_the_queue_of_noise_or_below_has_no_bound() {
    for class in [0, 1] {
        let case = Case::new(beside_noise(class));
        assert_eq!(reason(&case, 0), (Cause::UnlimitedTraffic, "b.p3".to_owned(), 1));
        let port = case.net.port("b", "h3").index();
        assert_eq!(case.plan.backlogs[port][1], None);
    }
    // Above it only one frame of noise is in the way: 1518 octets, which have begun.
    let case = Case::new(beside_noise(2));
    let bound = case.plan.streams[0].bounds[0].as_ref().expect("a bound").total();
    assert!(bound <= Span::from_ns(sent(500) + wire(1_540) + sent(500)), "{bound}");
}

#[test]
fn nothing_has_a_bound_beside_a_dedicated_path() {
    let mut net = star(&["h1", "h2", "h3"]);
    net.stream("h1", &["h3"], 7, 500).at(1_000_000);
    let has = Case::new(net);
    assert!(has.plan.streams[0].bounds[0].is_some());
    let mut net = star(&["h1", "h2", "h3"]);
    net.stream("h1", &["h3"], 7, 500).at(1_000_000);
    net.bridge("b").dedicated_path = Some(Default::default());
    let case = Case::new(net);
    assert_eq!(reason(&case, 0), (Cause::UnlimitedTraffic, "b.p3".to_owned(), 7));
    let port = case.net.port("b", "h3").index();
    assert!(case.plan.backlogs[port].iter().all(Option::is_none));
}

#[test]
fn noise_in_its_own_windows_takes_the_bound_of_what_is_scheduled_there() {
    let mut net = beside_noise(1);
    net.0.streams[0].every(1_000_000);
    net.gates("b", "h3", &[(0x02, 500_000), (0xfd, 500_000)], true);
    let case = Case::new(net);
    assert_eq!(reason(&case, 0), (Cause::UnlimitedTraffic, "b.p3".to_owned(), 1));
}

#[test]
fn a_stream_that_waits_for_one_without_a_bound_has_none_for_the_same_reason() {
    let mut net = star(&["h1", "h2", "h3", "h4"]);
    net.noise("h2", "h3");
    net.settings("b", "h3").preemptable = 0x04;
    // Express noise goes before the preemptable queue 2, though its class is lower.
    net.stream("h1", &["h3"], 2, 500).at(1_000_000);
    let case = Case::new(net);
    assert_eq!(reason(&case, 0), (Cause::UnlimitedTraffic, "b.p3".to_owned(), 1));
}

#[test]
fn where_channels_are_reserved_best_effort_of_unknown_origin_shares_queue_1() {
    let mut net = two_hosts();
    for class in [0, 1, 2] {
        net.stream("h1", &["h2"], class, 500);
    }
    let case = Case::new(net);
    for stream in [0, 1] {
        assert_eq!(reason(&case, stream), (Cause::UnlimitedTraffic, "h1.p1".to_owned(), 1));
    }
    assert!(case.plan.streams[2].bounds[0].is_some());
}

#[test]
fn overload_is_said_with_the_queue() {
    let mut net = star(&["h1", "h2", "h3"]);
    for host in ["h1", "h2"] {
        net.stream(host, &["h3"], 4, 1_000).every(100_000);
    }
    let case = Case::new(net);
    assert_eq!(reason(&case, 0), (Cause::Overload, "b.p3".to_owned(), 4));
    let why = &case.plan.streams[0].unbounded[0].as_ref().expect("a reason").why;
    assert!(why.contains("queue 4 of b.p3 may get 160 Mb/s"), "{why}");
}

#[test]
fn a_window_that_is_too_short_is_said_with_the_frame() {
    let mut net = pair();
    net.gates("h1", "h2", &[(0x80, 10_000), (0x7f, 990_000)], true);
    net.stream("h1", &["h2"], 7, 500);
    let case = Case::new(net);
    assert_eq!(reason(&case, 0), (Cause::ShortWindows, "h1.p1".to_owned(), 7));
}
