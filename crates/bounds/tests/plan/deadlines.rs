//! IdleSlopes that are raised for deadlines: by hand, and on random systems in the engine.

use crate::build::{Net, two_hosts};
use onbeat_bounds::{plan, warnings};
use onbeat_model::codes::plan as codes;
use onbeat_model::plan::Plan;
use onbeat_model::port::Selection;
use onbeat_model::system::{ChannelId, Class, IdleSlopes, PortId, System};
use onbeat_model::time::Span;
use onbeat_model::units::{BitRate, Octets};
use onbeat_net::{Phases, Simulation, simulate};
use onbeat_testkit::Random;
use std::collections::BTreeSet;

fn slope(plan: &Plan, port: usize, class: Class) -> u64 {
    match plan.ports[port].settings.selection[class.queue()] {
        Selection::CreditBased { idle_slope } => idle_slope.as_bps(),
        _ => 0,
    }
}

fn late(system: &System, plan: &Plan) -> BTreeSet<u32> {
    let late = |id: &u32| {
        plan.channel(ChannelId(*id)).bound() > Some(system.channel(ChannelId(*id)).fixed_delay)
    };
    (0..system.channels.len() as u32).filter(late).collect()
}

#[test]
fn a_burst_that_a_deadline_does_not_wait_for_raises_the_idle_slopes_by_as_little_as_is_enough() {
    let mut net = two_hosts();
    let channel = &mut net.0.channels[0];
    (channel.size, channel.burst) = (Octets::new(1_000), 10);
    let by_rate = plan(&net.0, true).expect("a plan");
    let bound = by_rate.channels[0].bound().expect("a bound");
    // Nine frames wait at the talker for the credit of those before: 1,066 octets with the gap.
    let rate = slope(&by_rate, 0, Class::A);
    assert_eq!(rate, 68_224_000);
    let waits = Span::from_ns(9 * 1_066 * 8 * 1_000_000_000 / 68_224_000);
    assert!(bound > waits && bound < waits + waits, "{bound} {waits}");
    net.0.idle_slopes = IdleSlopes::Deadline;
    assert_eq!(plan(&net.0, true).expect("a plan"), by_rate, "it is in time");

    let delay = Span::from_us(700);
    net.0.channels[0].fixed_delay = delay;
    assert!(delay < bound);
    let raised = plan(&net.0, true).expect("a plan");
    let in_time = raised.channels[0].bound().expect("a bound");
    assert!(in_time <= delay && warnings(&net.0, &raised).is_empty(), "{in_time}");
    assert!(slope(&raised, 0, Class::A) > rate && slope(&raised, 1, Class::A) == 0);
    // A little less is too little.
    net.0.idle_slopes = IdleSlopes::Rate;
    let tree = raised.channels[0].tree_ports();
    for port in &tree {
        let idle_slope = slope(&raised, port.index(), Class::A) * 98 / 100;
        let selection = &mut net.0.ports[port.index()].settings.selection;
        selection[Class::A.queue()] =
            Selection::CreditBased { idle_slope: BitRate::from_bps(idle_slope) };
    }
    let less = plan(&net.0, true).expect("a plan").channels[0].bound().expect("a bound");
    assert!(less > delay && less < bound, "{less}");
    // What the description sets stays.
    net.0.idle_slopes = IdleSlopes::Deadline;
    let set = plan(&net.0, true).expect("a plan");
    assert_eq!(set.channels[0].bound(), Some(less));
    let found = warnings(&net.0, &set);
    assert!(matches!(&found[..], [late] if late.code == codes::LATE), "{found:?}");
}

/// Hosts at a line of bridges, with channels of both classes.
fn draw(random: &mut Random) -> Net {
    let mut net = Net::new(&["h0", "h1", "h2", "h3", "h4"], &["b0", "b1", "b2"]);
    for (at, host) in ["h0", "h1", "h2", "h3", "h4"].into_iter().enumerate() {
        let rate = random.one_of(&[100_000_000, 1_000_000_000]);
        net.link(host, ["b0", "b0", "b1", "b2", "b2"][at], rate);
    }
    net.link("b0", "b1", 100_000_000).link("b1", "b2", 100_000_000);
    for number in 0..3 + random.below(7) {
        let from = random.index(5);
        let to = (from + 1 + random.index(4)) % 5;
        let names = ["h0", "h1", "h2", "h3", "h4"];
        let channel = net.channel(&format!("c{number}"), names[from], &[names[to]]);
        channel.class = random.one_of(&[Class::A, Class::B]);
        channel.pcp = if channel.class == Class::A { 3 } else { 2 };
        channel.size = Octets::new(random.between(8, 300) as u32);
        channel.interval = Span::from_us(random.one_of(&[250, 500, 1_000, 2_000]));
        channel.burst = random.one_of(&[1, 1, 2, 6]);
    }
    net
}

#[test]
fn raised_idle_slopes_let_more_be_in_time_and_their_bounds_hold() {
    let (mut helped, mut beyond, mut none_late) = (0, 0, 0);
    for seed in 0..150 {
        let mut random = Random(seed);
        let mut net = draw(&mut random);
        let Ok(before) = plan(&net.0, true) else { continue };
        for (channel, planned) in net.0.channels.iter_mut().zip(&before.channels) {
            let bound = planned.bound().expect("a bound").as_ns();
            channel.fixed_delay = Span::from_ns(bound * random.between(70, 130) / 100);
        }
        let before = plan(&net.0, true).expect("only fixed delays are others");
        net.0.idle_slopes = IdleSlopes::Deadline;
        let after = plan(&net.0, true).expect("it was admitted");
        let [were, are] = [&before, &after].map(|plan| late(&net.0, plan));
        assert!(are.is_subset(&were), "seed {seed}: {were:?} {are:?}");
        match (were.is_empty(), are.len() < were.len()) {
            (true, _) => none_late += 1,
            (_, true) => helped += 1,
            (_, false) => beyond += 1,
        }
        if are.len() == were.len() {
            assert_eq!(after, before, "seed {seed}");
        }
        for port in 0..net.0.ports.len() {
            let slopes = |plan| [Class::A, Class::B].map(|class| slope(plan, port, class));
            let (was, is) = (slopes(&before), slopes(&after));
            assert!(is[0] >= was[0] && is[1] >= was[1], "seed {seed}");
            let rate = net.0.link_of(PortId(port as u32)).rate.as_bps();
            assert!((is[0] + is[1]) * 4 <= rate * 3, "seed {seed}: {is:?}");
        }
        for phases in [Phases::Aligned, Phases::Random] {
            let duration = Span::from_ms(20);
            let wanted = Simulation { phases, repetitions: 2, seed, duration };
            let seen = simulate(&net.0, &after, &wanted, &mut |_, _| true).expect("few events");
            for (planned, flow) in after.channels.iter().zip(&seen.channels) {
                let max = flow.listeners[0].max.expect("a message came");
                assert!(Some(max) <= planned.bound(), "seed {seed}: {max} {:?}", planned.bound());
            }
        }
    }
    println!("{helped} helped, {beyond} not, {none_late} with none late");
    assert!(helped > 30 && beyond > 0 && none_late > 0, "{helped}, {beyond}, {none_late}");
}
