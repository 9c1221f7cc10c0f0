//! Figures that can be computed by hand, and what has none.

use crate::build::{Build, because, exactly, timer, us};
use onbeat_model::federation::{MaxWait, TagDelay, Trigger};
use onbeat_model::time::Span;
use onbeat_timing::federation::{
    Analysis, Deadline, Delivery, Environment, Unknown, WaitVerdict, Waits, analyse,
};

fn computed(built: &Build) -> Analysis {
    analyse(&built.0.federation, &built.0.environment, Waits::Computed)
}

#[test]
fn the_backlog_is_that_of_the_worst_window_of_known_tags() {
    let mut built = Build::new(1);
    // At 0: 3 + 5 ms. At 4 ms: 3 ms more, which end at 11 ms; at 8 ms, at 14 ms.
    built.reaction(0, 3_000, vec![timer(0, 4_000)]);
    built.reaction(0, 5_000, vec![timer(0, 40_000)]);
    let analysis = computed(&built);
    let ends = |at: usize| analysis.reactions[at].finish_max.clone();
    assert_eq!((ends(0), ends(1)), (Ok(us(7_000)), Ok(us(8_000))));
    assert_eq!(analysis.reactions[0].release_max, Ok(us(4_000)));
    assert_eq!(analysis.federates[0].utilisation_ppm, Ok(875_000));
    // With an offset of 2 ms the long one comes between.
    built.0.federation.reactions[1].causes = vec![timer(2_000, 40_000)];
    let analysis = computed(&built);
    assert_eq!(analysis.reactions[0].finish_max, Ok(us(7_000)));
    assert_eq!(analysis.reactions[1].finish_max, Ok(us(6_000)));
}

#[test]
fn too_much_work_has_no_bound() {
    for cause in [timer(0, 10_000), sporadic(Some(10_000))] {
        let mut built = Build::new(1);
        built.reaction(0, 6_000, vec![timer(0, 10_000)]);
        built.reaction(0, 4_001, vec![cause]);
        let analysis = computed(&built);
        let why = "`f0`: its reactions need 100.01 % of a processor";
        assert_eq!(analysis.reactions[0].finish_max, Err(Unknown(why.to_owned())));
        assert_eq!(analysis.hosts[0].is_schedulable, Ok(false));
    }
}

fn sporadic(interval: Option<i64>) -> Trigger {
    Trigger::Sporadic { action: "knock".to_owned(), interval: interval.map(us) }
}

#[test]
fn sporadic_events_may_come_at_the_worst_time() {
    let mut built = Build::new(1);
    built.reaction(0, 1_000, vec![sporadic(Some(5_000))]);
    built.reaction(0, 2_000, vec![timer(0, 10_000)]);
    let analysis = computed(&built);
    assert_eq!(analysis.reactions[0].finish_max, Ok(us(3_000)));
    assert_eq!(analysis.reactions[1].finish_max, Ok(us(3_000)));
}

#[test]
fn federates_that_wait_for_each_other_are_a_cycle_that_a_delay_breaks() {
    let mut built = Build::new(3);
    let first = built.reaction(0, 100, vec![timer(0, 10_000)]);
    let there = built.connect(first, 1, TagDelay::None, exactly(400));
    let second = built.reaction(1, 200, vec![Trigger::Message(there)]);
    let back = built.connect(second, 0, TagDelay::Time(us(50)), exactly(500));
    let third = built.reaction(0, 300, vec![Trigger::Message(back)]);
    let beyond = built.connect(third, 2, TagDelay::None, exactly(1));
    built.reaction(2, 300, vec![Trigger::Message(beyond)]);
    let analysis = computed(&built);
    let [cycle] = analysis.cycles.as_slice() else { panic!("{:?}", analysis.cycles) };
    assert!(analysis.federates.iter().all(|federate| federate.maxwait.is_err()));
    // The first sends when its own reactions of the tag are done, but at tags of the third one too.
    let excess = us(100 + 400 + 200 + 500 - 50);
    assert_eq!(cycle.excess, excess);
    assert_eq!(cycle.connections.len(), 2);
    let with = |built: &mut Build, after: Span| {
        for (id, _) in cycle.connections.iter().zip(&cycle.after).filter(|(id, _)| **id == back) {
            built.0.federation.connections[id.index()].after = TagDelay::Time(after);
        }
        computed(built).cycles.len()
    };
    let at = cycle.connections.iter().position(|id| *id == back).unwrap();
    assert_eq!(cycle.after[at], us(50) + excess);
    assert_eq!(with(&mut built, cycle.after[at] - Span::from_ns(1)), 1);
    assert_eq!(with(&mut built, cycle.after[at]), 0);
}

#[test]
fn deadlines_bound_sending_where_handlers_send_nothing() {
    let mut built = Build::new(2);
    let first = built.reaction(0, 3_000, vec![timer(0, 10_000)]);
    let second = built.reaction(0, 500, vec![because(first, TagDelay::None)]);
    built.0.federation.reactions[second.index()].deadline = Some(us(1_000));
    let id = built.connect(second, 1, TagDelay::None, exactly(100));
    built.reaction(1, 10, vec![Trigger::Message(id)]);
    let analysis = computed(&built);
    assert_eq!(analysis.connections[0].sent_max, Ok(us(3_500)));
    assert_eq!(analysis.reactions[1].deadline, Some(Deadline::Missed { by: us(2_000) }));
    built.0.environment.handlers_set = false;
    let analysis = computed(&built);
    assert_eq!(analysis.connections[0].sent_max, Ok(us(1_500)));
    assert_eq!(analysis.federates[1].maxwait, Ok(us(1_600)));
    // It bounds what is sent even where nothing bounds the backlog.
    built.0.federation.reactions[0].execution = None;
    let analysis = computed(&built);
    assert_eq!(analysis.federates[1].maxwait, Ok(us(1_600)));
    assert!(analysis.reactions[1].finish_max.is_err());
}

#[test]
fn federates_that_share_a_processor_delay_each_other() {
    let mut built = Build::new(2);
    built.reaction(0, 1_000, vec![timer(0, 10_000)]);
    built.reaction(1, 2_000, vec![timer(0, 10_000)]);
    built.0.federation.federates[1].station = Some("s0".to_owned());
    let alone = computed(&built);
    assert_eq!(alone.reactions[0].finish_max, Ok(us(1_000)));
    built.0.environment.stations[0].cores = Some(1);
    let shared = computed(&built);
    assert_eq!(shared.reactions[0].finish_max, Ok(us(3_000)));
    assert_eq!(shared.reactions[1].finish_max, Ok(us(3_000)));
    assert_eq!(shared.hosts[0].utilisation_ppm, Ok(300_000));
    built.0.environment.stations[0].cores = Some(2);
    assert_eq!(computed(&built).reactions, alone.reactions);
}

#[test]
fn physical_connections_make_tags_of_arrivals() {
    let mut built = Build::new(2);
    let first = built.reaction(0, 1_000, vec![timer(0, 10_000)]);
    let id = built.connect(first, 1, TagDelay::Time(us(50)), exactly(300));
    built.0.federation.connections[0].physical = true;
    built.reaction(1, 200, vec![Trigger::Message(id)]);
    built.clock(0, us(5), Span::ZERO);
    let analysis = computed(&built);
    // Nobody waits for it, and its chain goes on from the arrival.
    assert_eq!(analysis.federates[1].verdict, WaitVerdict::NoInputs);
    assert!(analysis.connections[0].arrival_max.is_err());
    assert_eq!(analysis.reactions[1].finish_max, Ok(us(200)));
    assert_eq!(analysis.chains[0].worst, Ok(us(1_000 + 5 + 300 + 50 + 200)));
    assert_eq!(analysis.chains[0].best, Ok(us(1_000 - 5 + 300 + 50 + 200)));
}

/// What makes a figure unknown, and why it says so.
type Hole = (fn(&mut Build), &'static str);

#[test]
fn what_is_not_known_says_why() {
    let holes: [Hole; 6] = [
        (|b| b.0.federation.reactions[0].execution = None, "`f0.r0` has no execution time"),
        (
            |b| b.0.federation.reactions[0].causes = vec![sporadic(None)],
            "the least interval of the action `knock` is not known",
        ),
        (|b| b.0.environment.deliveries[0] = None, "the latency of `c0` is not known"),
        (
            |b| b.0.environment.stations[0].clock_error = None,
            "the clock error of `s0` is not known",
        ),
        (|b| b.0.federation.federates[0].station = None, "`f0` has no station"),
        (
            |b| {
                let again = because(onbeat_model::federation::ReactionId(0), TagDelay::Microstep);
                b.0.federation.reactions[0].causes.push(again);
            },
            "`f0.r0` repeats at one time without end",
        ),
    ];
    for (hole, why) in holes {
        let mut built = Build::new(2);
        let first = built.reaction(0, 100, vec![timer(0, 10_000)]);
        let id = built.connect(first, 1, TagDelay::None, exactly(400));
        built.reaction(1, 100, vec![Trigger::Message(id)]);
        assert!(computed(&built).federates[1].maxwait.is_ok());
        hole(&mut built);
        let analysis = computed(&built);
        assert_eq!(analysis.federates[1].maxwait, Err(Unknown(why.to_owned())));
        assert!(analysis.chains[0].worst.is_err());
        built.wait(1, us(100_000));
        let stated = analyse(&built.0.federation, &built.0.environment, Waits::Model);
        assert_eq!(stated.federates[1].verdict, WaitVerdict::Unknown(Unknown(why.to_owned())));
        assert!(stated.reactions[1].finish_max.is_err());
    }
}

#[test]
fn microsteps_of_one_time_have_one_tag_a_delay_later() {
    let mut built = Build::new(2);
    let first = built.reaction(0, 100, vec![timer(0, 10_000)]);
    let second = built.reaction(0, 100, vec![because(first, TagDelay::Microstep)]);
    let id = built.connect(first, 1, TagDelay::Time(us(1_000)), exactly(400));
    built.reaction(1, 100, vec![Trigger::Message(id)]);
    assert!(computed(&built).federates[1].maxwait.is_ok());
    built.0.federation.connections[0].writers.push(second);
    let why = Err(Unknown("two messages of `c0` may have one tag".to_owned()));
    assert_eq!(computed(&built).federates[1].maxwait, why);
    // Microsteps and tags themselves stay apart.
    built.0.federation.connections[0].after = TagDelay::Microstep;
    assert_eq!(computed(&built).federates[1].maxwait, Ok(us(600)));
}

#[test]
fn who_waits_for_ever_is_never_tardy_and_has_no_bound() {
    let mut built = Build::new(2);
    let first = built.reaction(0, 100, vec![timer(0, 10_000)]);
    let id = built.connect(first, 1, TagDelay::None, exactly(400));
    built.reaction(1, 100, vec![Trigger::Message(id)]);
    built.0.federation.federates[1].maxwait = Some(MaxWait::Forever);
    let stated = analyse(&built.0.federation, &built.0.environment, Waits::Model);
    assert_eq!(stated.federates[1].verdict, WaitVerdict::Forever);
    assert_eq!(stated.reactions[1].finish_max, Err(Unknown("`f1` waits for ever".to_owned())));
    assert_eq!(computed(&built).federates[1].maxwait, Ok(us(500)));
}

#[test]
fn a_loop_that_schedules_itself_is_a_timer() {
    let mut built = Build::new(1);
    let first = built.reaction(0, 1_000, vec![Trigger::Startup]);
    let again = because(first, TagDelay::Time(us(4_000)));
    built.0.federation.reactions[0].causes.push(again);
    let analysis = computed(&built);
    assert_eq!(analysis.federates[0].utilisation_ppm, Ok(250_000));
    assert_eq!(analysis.reactions[0].finish_max, Ok(us(1_000)));
    // A sporadic one starts another round with each event.
    built.0.federation.reactions[0].causes[0] = sporadic(Some(4_000));
    let why = "each event of a loop through `f0.r0` starts another round";
    assert_eq!(computed(&built).reactions[0].finish_max, Err(Unknown(why.to_owned())));
}

/// Two hosts and a bridge; `c0` is reserved, `c1` is not, `c2` has a short fixed delay.
const SYSTEM: &str = r#"
format = 1
name = "system"
[run]
duration_s = 10

[[host]]
name = "s0"
cores = 2
clock = { offset_ns = -700 }
wakeup_ns = { min = 5, max = 50 }
[[host]]
name = "s1"
clock = { drift_ppb = 1000 }
[[bridge]]
name = "bridge"

[[link]]
ends = ["s0", "bridge"]
rate_mbps = 1000
[[link]]
ends = ["s1", "bridge"]
rate_mbps = 1000

[[channel]]
name = "c0"
destination = "01:00:5e:00:00:01"
stream_id = 1
class = "A"
size_octets = 30
rate_hz = 100
talker = "s0"
listeners = ["s1"]
fixed_delay_us = 2000
[[channel]]
name = "c1"
destination = "01:00:5e:00:00:02"
stream_id = 2
class = "A"
size_octets = 30
rate_hz = 100
talker = "s0"
listeners = ["s1"]
fixed_delay_us = 2000
reserve = false
[[channel]]
name = "c2"
destination = "01:00:5e:00:00:03"
stream_id = 3
class = "A"
size_octets = 30
rate_hz = 100
talker = "s0"
listeners = ["s1"]
fixed_delay_us = 1
"#;

#[test]
fn the_environment_is_what_system_and_plan_say() {
    let description = onbeat_description::load("system.toml", SYSTEM, &mut |_| Err(String::new()));
    let system = description.system.expect("a description without errors");
    let plan = onbeat_bounds::plan(&system, true).expect("a plan");
    let mut built = Build::new(2);
    built.0.federation.federates.push(built.0.federation.federates[0].clone());
    let first = built.reaction(0, 100, vec![timer(0, 10_000)]);
    for to in [1, 1, 1, 2] {
        built.connect(first, to, TagDelay::None, exactly(1));
    }
    let of = |local| Environment::of(&built.0.federation, &system, &plan, local, true);
    let found = of(None);
    let errors: Vec<_> = found.stations.iter().map(|station| station.clock_error).collect();
    assert_eq!(errors, [Some(Span::from_ns(700)), Some(us(10))]);
    assert_eq!((found.stations[0].cores, found.stations[1].cores), (Some(2), None));
    assert_eq!(found.stations[0].wakeup, Span::from_ns(50));
    let bound = &plan.channels[2].bounds[0];
    let between = Delivery::Between { min: bound.best, max: bound.total() };
    assert!(bound.total() > us(1) + Span::from_ns(700) + us(10), "held no longer than it takes");
    assert_eq!(found.deliveries, [Some(Delivery::Fixed(us(2_000))), None, Some(between), None]);
    let local = Delivery::Between { min: Span::ZERO, max: us(9) };
    assert_eq!(of(Some(us(9))).deliveries[3], Some(local));
    // What has a wake-up has its messages later.
    built.0.environment = of(Some(us(9)));
    assert_eq!(computed(&built).federates[2].maxwait, Ok(us(100 + 9) + Span::from_ns(2 * 750)));
}
