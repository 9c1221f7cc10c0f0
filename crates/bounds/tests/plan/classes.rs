//! The class of channels whose description leaves it open: by hand, and on random systems beside
//! every other choice.

use crate::build::{Net, two_hosts};
use onbeat_bounds::{choose_classes, plan, warnings};
use onbeat_model::codes::plan as codes;
use onbeat_model::system::{Class, ReservationMode, System};
use onbeat_model::time::Span;
use onbeat_model::units::Octets;
use onbeat_testkit::Random;

const CLASSES: [Class; 3] = [Class::B, Class::A, Class::Scheduled];

/// Opens the class of the first channel of two hosts, with a fixed delay.
fn chosen(delay: Span, edit: impl Fn(&mut System)) -> System {
    let mut system = two_hosts().0;
    let channel = &mut system.channels[0];
    (channel.class_is_open, channel.fixed_delay) = (true, delay);
    (channel.class, channel.pcp) = (Class::B, Class::B.default_pcp());
    edit(&mut system);
    choose_classes(&mut system);
    system
}

/// Its bound in a class.
fn bound(class: Class, edit: impl Fn(&mut System)) -> Span {
    let mut system = two_hosts().0;
    edit(&mut system);
    system.channels[0].class = class;
    plan(&system, true).expect("a plan").channels[0].bound().expect("a bound")
}

/// Frames that wait for the credit of those before.
fn busy(system: &mut System) {
    let channel = &mut system.channels[0];
    (channel.size, channel.interval) = (Octets::new(200), Span::from_ms(1));
    channel.burst = 4;
}

#[test]
fn the_least_urgent_class_that_keeps_the_fixed_delay_is_chosen_and_none_that_is_more_urgent() {
    let [b, a, scheduled] = CLASSES.map(|class| bound(class, busy));
    assert!(scheduled < a && a < b, "{scheduled} {a} {b}");
    let ns = Span::from_ns(1);
    for (delay, class) in [
        (b, Class::B),
        (b - ns, Class::A),
        (a, Class::A),
        (a - ns, Class::Scheduled),
        (scheduled, Class::Scheduled),
        // Late in each of them.
        (scheduled - ns, Class::A),
    ] {
        let system = chosen(delay, busy);
        let channel = &system.channels[0];
        assert_eq!((channel.class, channel.pcp), (class, class.default_pcp()), "{delay}");
        let plan = plan(&system, true).expect("a plan");
        let late = warnings(&system, &plan).iter().any(|warning| warning.code == codes::LATE);
        assert_eq!(late, delay < scheduled, "{delay}");
    }
}

#[test]
fn what_cannot_have_windows_has_class_a() {
    let delay = bound(Class::A, busy) - Span::from_ns(1);
    assert_eq!(chosen(delay, busy).channels[0].class, Class::Scheduled);
    // By protocol nothing is scheduled, whichever run that is of.
    let by_protocol = chosen(delay, |system| {
        busy(system);
        system.run.reservation = ReservationMode::Srp;
    });
    assert_eq!(by_protocol.channels[0].class, Class::A);
    // The gates of the description have the queue.
    let described = chosen(delay, |system| {
        busy(system);
        system.ports[0].settings.preemptable = 1 << Class::Scheduled.queue();
    });
    assert_eq!(described.channels[0].class, Class::A);
    // A class that is described, or needs none, stays.
    let closed = chosen(delay, |system| {
        busy(system);
        system.channels[0].class_is_open = false;
    });
    assert_eq!(closed.channels[0].class, Class::B);
    let unreserved = chosen(delay, |system| {
        busy(system);
        system.channels[0].reserve = false;
    });
    assert_eq!(unreserved.channels[0].class, Class::B);
}

#[test]
fn where_more_is_wanted_than_may_be_reserved_the_hastiest_get_windows() {
    let mut net = Net::new(&["a", "b"], &["s"]);
    net.link("a", "s", 100_000_000).link("b", "s", 100_000_000);
    // A frame in each 250 µs of class B: each reserves a fifth of the links, and three may.
    for (name, delay) in [("c0", 40), ("c1", 20), ("c2", 30), ("c3", 50), ("c4", 45), ("c5", 48)] {
        let channel = net.channel(name, "a", &["b"]);
        (channel.size, channel.interval) = (Octets::new(600), Span::from_us(500));
        (channel.class_is_open, channel.fixed_delay) = (true, Span::from_ms(delay));
    }
    choose_classes(&mut net.0);
    let classes: Vec<Class> = net.0.channels.iter().map(|channel| channel.class).collect();
    let (b, windows) = (Class::B, Class::Scheduled);
    assert_eq!(classes, [windows, windows, windows, b, b, b]);
    assert!(plan(&net.0, true).is_ok());
}

/// Hosts at two bridges, and channels of all kinds.
fn draw(random: &mut Random) -> System {
    let hosts = ["h0", "h1", "h2", "h3"];
    let mut net = Net::new(&hosts, &["b0", "b1"]);
    for (at, host) in hosts.into_iter().enumerate() {
        net.link(host, ["b0", "b0", "b1", "b1"][at], random.one_of(&[100_000_000, 1_000_000_000]));
    }
    net.link("b0", "b1", 100_000_000);
    for number in 0..3 + random.below(3) {
        let from = random.index(4);
        let to = (from + 1 + random.index(3)) % 4;
        let channel = net.channel(&format!("c{number}"), hosts[from], &[hosts[to]]);
        channel.interval = Span::from_us(random.one_of(&[250, 500, 1_000, 2_000]));
        channel.size = Octets::new(random.between(40, 1_000) as u32);
        channel.burst = random.one_of(&[1, 1, 2]);
        channel.class = random.one_of(&[Class::A, Class::B]);
        channel.class_is_open = random.percent(80);
        channel.fixed_delay = Span::from_us(random.one_of(&[100, 200, 400, 800, 2_000]));
    }
    net.0
}

/// Whether a plan keeps all fixed delays.
fn keeps(system: &System) -> Option<bool> {
    let plan = plan(system, true).ok()?;
    Some(warnings(system, &plan).iter().all(|warning| warning.code != codes::LATE))
}

/// Whether any choice of classes keeps all.
fn any_keeps(system: &System) -> bool {
    let open: Vec<usize> =
        (0..system.channels.len()).filter(|at| system.channels[*at].class_is_open).collect();
    (0..3usize.pow(open.len() as u32)).any(|number| {
        let mut trial = system.clone();
        for (place, at) in open.iter().enumerate() {
            let class = CLASSES[number / 3usize.pow(place as u32) % 3];
            (trial.channels[*at].class, trial.channels[*at].pcp) = (class, class.default_pcp());
        }
        keeps(&trial) == Some(true)
    })
}

#[test]
fn on_random_systems_fixed_delays_are_kept_wherever_some_choice_of_classes_keeps_them() {
    let (mut kept, mut late, mut missed, mut classes) = (0, 0, Vec::new(), [0; 3]);
    for seed in 0..200 {
        let system = draw(&mut Random(seed));
        let mut chosen = system.clone();
        choose_classes(&mut chosen);
        let mut again = chosen.clone();
        choose_classes(&mut again);
        assert_eq!(again, chosen, "{seed}: another choice from another class");
        for (before, after) in system.channels.iter().zip(&chosen.channels) {
            assert!(before.class_is_open || before == after, "{seed}: {}", before.name);
            if after.class_is_open {
                classes[CLASSES.iter().position(|class| *class == after.class).expect("one")] += 1;
            }
        }
        match keeps(&chosen) {
            Some(true) => kept += 1,
            _ if any_keeps(&system) => missed.push(seed),
            _ => late += 1,
        }
    }
    println!("{kept} kept, {late} late whatever is chosen, missed {missed:?}; classes {classes:?}");
    assert!(kept > 50 && late > 50 && classes.iter().all(|count| *count > 50));
    assert!(missed.is_empty(), "{missed:?}");
}
