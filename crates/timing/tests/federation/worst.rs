//! Constructed worst cases: what was computed is enough, and a microsecond less is not.

use crate::build::{Build, because, exactly, timer, us};
use crate::run::run;
use onbeat_model::federation::{ConnectionId, MaxWait, TagDelay, Trigger};
use onbeat_model::time::Span;
use onbeat_timing::federation::{Delivery, WaitVerdict, Waits, analyse};

/// A writer with a slow clock, a reader with a fast one and a timer at the same tags.
fn pair(delivery: Delivery, after: TagDelay) -> Build {
    let mut built = Build::new(2);
    let first = built.reaction(0, 300, vec![timer(0, 10_000)]);
    let second = built.reaction(0, 200, vec![because(first, TagDelay::None)]);
    let id = built.connect(second, 1, after, delivery);
    built.reaction(1, 100, vec![timer(0, 10_000), Trigger::Message(id)]);
    built.clock(0, us(40), us(-40));
    built.clock(1, us(7), us(7));
    built
}

fn tardy(built: &Build) -> u64 {
    run(&built.0).connections.iter().map(|seen| seen.tardy.count).sum()
}

#[test]
fn the_computed_wait_is_enough_and_a_microsecond_less_is_not() {
    let cases = [
        (exactly(1_000), TagDelay::None, 300 + 200 + 1_000 + 40 + 7),
        (exactly(1_000), TagDelay::Microstep, 300 + 200 + 1_000 + 40 + 7),
        (exactly(12_000), TagDelay::Time(us(10_000)), 300 + 200 + 12_000 + 47 - 10_000),
    ];
    for (delivery, after, expected) in cases {
        let mut built = pair(delivery, after);
        let analysis = analyse(&built.0.federation, &built.0.environment, Waits::Computed);
        let wait = analysis.federates[1].maxwait.clone().unwrap();
        assert_eq!(wait, us(expected));
        built.wait(1, wait);
        assert_eq!(tardy(&built), 0);
        // At the next microstep there is no timer: whoever comes later is not tardy.
        if after == TagDelay::Microstep {
            continue;
        }
        built.wait(1, wait - us(1));
        assert!(tardy(&built) >= 1);
        let analysis = analyse(&built.0.federation, &built.0.environment, Waits::Model);
        assert_eq!(analysis.federates[1].verdict, WaitVerdict::Unsafe { by: us(1) });
        assert!(
            analysis.reactions[2].finish_max.is_err(),
            "nothing is known behind tardy messages"
        );
    }
}

#[test]
fn a_delay_of_at_least_what_sending_and_delivery_take_needs_no_wait() {
    let delay = us(300 + 200 + 1_000 + 47);
    let mut built = pair(exactly(1_000), TagDelay::Time(delay));
    built.wait(1, Span::ZERO);
    let analysis = analyse(&built.0.federation, &built.0.environment, Waits::Model);
    assert_eq!(analysis.federates[1].verdict, WaitVerdict::Safe { spare: Span::ZERO });
    assert_eq!(tardy(&built), 0);
    // The reader's timer never meets such a tag, so it is made to.
    let late = |built: &mut Build, by: Span| {
        built.0.federation.connections[0].after = TagDelay::Time(delay - by);
        let offset = (delay - by).as_ns() / 1_000;
        built.0.federation.reactions[2].causes[0] = timer(offset, 10_000);
        tardy(built)
    };
    assert_eq!(late(&mut built, Span::ZERO), 0);
    assert!(late(&mut built, us(1)) >= 1);
}

#[test]
fn a_fixed_delay_makes_messages_come_when_it_says() {
    let mut built = pair(Delivery::Fixed(us(2_000)), TagDelay::None);
    built.clock(0, Span::ZERO, Span::ZERO);
    built.clock(1, Span::ZERO, Span::ZERO);
    let analysis = analyse(&built.0.federation, &built.0.environment, Waits::Computed);
    assert_eq!(analysis.federates[1].maxwait, Ok(us(2_500)));
    built.wait(1, us(2_500));
    assert_eq!(tardy(&built), 0);
    built.wait(1, us(2_499));
    assert!(tardy(&built) >= 1);
}

#[test]
fn absent_after_does_for_one_connection_what_maxwait_does_for_all() {
    let mut built = pair(exactly(1_000), TagDelay::None);
    built.wait(1, us(500));
    let analysis = analyse(&built.0.federation, &built.0.environment, Waits::Computed);
    let more = analysis.connections[0].absent_after.clone().unwrap().unwrap();
    assert_eq!(more, us(1_047));
    let set = |built: &mut Build, more: Span| {
        built.0.federation.connections[0].absent_after = Some(MaxWait::For(more));
    };
    set(&mut built, more);
    assert_eq!(tardy(&built), 0);
    let analysis = analyse(&built.0.federation, &built.0.environment, Waits::Model);
    assert_eq!(analysis.federates[1].verdict, WaitVerdict::Safe { spare: Span::ZERO });
    assert_eq!(analysis.reactions[2].finish_max, Ok(us(1_547 + 100 + 7)));
    set(&mut built, more - us(1));
    assert!(tardy(&built) >= 1);
    // Without a timer at each tag of the messages it is no substitute.
    built.0.federation.reactions[2].causes[0] = timer(3_000, 10_000);
    set(&mut built, more);
    let analysis = analyse(&built.0.federation, &built.0.environment, Waits::Model);
    assert!(matches!(analysis.federates[1].verdict, WaitVerdict::Unsafe { .. }));
}

#[test]
fn waits_add_up_along_a_pipeline() {
    let mut built = Build::new(3);
    let first = built.reaction(0, 100, vec![timer(0, 10_000)]);
    let to_second = built.connect(first, 1, TagDelay::None, exactly(400));
    let second = built.reaction(1, 200, vec![Trigger::Message(to_second)]);
    let to_third = built.connect(second, 2, TagDelay::None, exactly(500));
    built.reaction(2, 300, vec![timer(0, 10_000), Trigger::Message(to_third)]);
    let analysis = analyse(&built.0.federation, &built.0.environment, Waits::Computed);
    let waits: Vec<_> = analysis.federates.iter().map(|one| one.maxwait.clone()).collect();
    assert_eq!(waits, [Ok(us(0)), Ok(us(500)), Ok(us(1_200))]);
    assert_eq!(analysis.chains[0].worst, Ok(us(1_500)));
    for (federate, wait) in waits.into_iter().enumerate() {
        built.wait(federate, wait.unwrap());
    }
    assert_eq!(tardy(&built), 0);
    // The second one's wait cannot hurt: it has nothing to do but what comes.
    built.wait(2, us(1_199));
    assert!(tardy(&built) >= 1);
    assert_eq!(analysis.connections[ConnectionId(1).index()].sent_max, Ok(us(700)));
}
