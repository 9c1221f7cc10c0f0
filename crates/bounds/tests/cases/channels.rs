//! Channels and chains: what their clocks add.

use crate::build::{Net, two_hosts};
use onbeat_bounds::plan;
use onbeat_model::time::Span;

#[test]
fn clocks_that_wander_count_in_every_phase() {
    let mut net = two_hosts();
    for (host, wander) in [("h1", 100), ("h2", 50)] {
        let clock = &mut net.node(host).clock;
        (clock.wander, clock.wander_period) = (Span::from_ns(wander), Span::from_s(1));
    }
    // Without it 142 982 ns. The listener's once, the talker's when a message is written and by
    // twice as much until it is read, and a reading that is rounded down.
    let bound = plan(&net.0, true).unwrap().channels[0].bound().unwrap();
    assert_eq!(bound, Span::from_ns(142_982 + 50 + 3 * 100 + 1));
}

/// What a chain through h2, whose program works for so long, takes beside its channels.
fn between(work_ns: i64, change: &dyn Fn(&mut Net)) -> Option<Span> {
    let mut net = two_hosts();
    net.channel("back", "h2", &["h1"]);
    net.program("answer", "h2", Span::from_ns(work_ns));
    net.chain(&[0, 1], Span::from_s(1));
    change(&mut net);
    let plan = plan(&net.0, true).unwrap();
    let channels: Span = plan.channels.iter().map(|c| c.bound().unwrap()).sum();
    plan.chains[0].map(|chain| chain - channels)
}

#[test]
fn work_by_a_fast_clock_counts_by_true_time() {
    let fast = |net: &mut Net| net.node("h2").clock.drift_ppb = 50_000;
    // 5 ms · 50 ppm.
    assert_eq!(between(5_000_000, &fast), Some(Span::from_ns(5_000_250)));
}

#[test]
fn a_program_must_be_done_before_a_fast_talker_writes_again() {
    let fast = |net: &mut Net| net.node("h1").clock.drift_ppb = 1_000;
    // 20 ms at 1 ppm more are 19 999 980 ns.
    assert!(between(19_999_980, &fast).is_some());
    assert!(between(19_999_981, &fast).is_none());
}
