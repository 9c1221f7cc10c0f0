//! The exact search behind the plan's own: what it finds is a plan, and what it proves has none.

use crate::build::Net;
use onbeat_bounds::{KeptPlan, plan, plan_and_limits, search_schedules};
use onbeat_model::codes::plan as codes;
use onbeat_model::system::{Class, System};
use onbeat_model::time::Span;
use onbeat_model::units::Octets;
use onbeat_net::{Phases, Simulation, simulate};
use onbeat_testkit::Random;

const STEPS: u64 = 20_000;

/// Scheduled channels among four hosts at a line of bridges, which fill it to the brim.
fn draw(random: &mut Random) -> System {
    let hosts = ["a", "b", "c", "d"];
    let mut net = Net::new(&hosts, &["s", "t"]);
    for (host, bridge) in hosts.into_iter().zip(["s", "s", "t", "t"]) {
        net.link(host, bridge, 100_000_000);
    }
    net.link("s", "t", 100_000_000);
    let unit = random.one_of(&[50, 100]);
    for number in 0..3 + random.below(9) {
        let from = random.index(4);
        let to = (from + 1 + random.index(3)) % 4;
        let channel = net.channel(&format!("c{number}"), hosts[from], &[hosts[to]]);
        (channel.class, channel.pcp) = (Class::Scheduled, Class::Scheduled.default_pcp());
        channel.interval = Span::from_us(unit * random.one_of(&[4, 4, 6, 6, 8, 12]));
        // About a unit on the wire, or half of one.
        let octets = unit * 100 / 8 * random.one_of(&[95, 45]) / 100;
        channel.size = Octets::new(octets as u32 - 42);
        channel.fixed_delay = Span::from_us(unit * random.one_of(&[4, 6, 6, 8]));
        channel.phase = Span::from_us(unit * random.between(0, 2) / 2);
    }
    net.0
}

#[test]
fn what_the_search_finds_is_a_plan_that_holds_and_what_it_proves_has_none() {
    let (mut found, mut proven, mut open, mut needless) = (0, 0, 0, 0);
    // Among the first 600 the plan's own search missed four schedules: these.
    for seed in (0..20).chain([208, 258, 371]) {
        let system = draw(&mut Random(seed));
        let own = plan(&system, true);
        match search_schedules(&system, &KeptPlan::default(), STEPS) {
            Ok(None) => {
                assert!(own.is_ok(), "seed {seed}: {own:?}");
                needless += 1;
            }
            Ok(Some(windows)) => {
                assert!(own.is_err(), "seed {seed}: a search for nothing");
                let (plan, _) = plan_and_limits(&system, true, &windows).expect("a plan");
                let wanted = Simulation {
                    phases: Phases::Described,
                    repetitions: 1,
                    seed,
                    duration: Span::from_ms(20),
                };
                let seen = simulate(&system, &plan, &wanted, &mut |_, _| true).expect("few events");
                for (planned, flow) in plan.channels.iter().zip(&seen.channels) {
                    let end = &flow.listeners[0];
                    assert!(end.max.expect("a message") <= planned.bound().expect("a bound"));
                }
                found += 1;
            }
            Err(errors) => {
                assert!(own.is_err(), "seed {seed}: {errors:?}");
                let [error] = &errors[..] else { panic!("seed {seed}: {errors:?}") };
                assert_eq!(error.code, codes::SCHEDULED);
                match error.message.contains("have no schedule on their paths") {
                    true => proven += 1,
                    false => open += 1,
                }
            }
        }
    }
    println!("{needless} planned, {found} found, {proven} proven, {open} open");
    assert!(needless > 2 && found > 2 && proven > 8 && open == 0);
}
