//! Channels that come, change and go one at a time: after each change the plan is the one that the
//! planning of the whole system makes when it keeps paths and windows.

use crate::devices::with_devices;
use crate::scheduled::{CELL, description, loaded};
use onbeat_bounds::{KeptPlan, PlanChange, Planner, document, plan_and_limits};
use onbeat_model::diagnostic::Diagnostic;
use onbeat_model::plan::Plan;
use onbeat_model::system::{Channel, ChannelId, Class, NodeId, System};
use onbeat_model::time::Span;
use onbeat_model::units::{MacAddress, Octets, StreamId};
use onbeat_testkit::Random;
use std::fmt::Write;

/// A random system, with everything that decides what a change concerns.
fn text(random: &mut Random) -> String {
    let mut text = description(random);
    if random.one_in(3) {
        text = with_devices(random, &text);
    }
    if random.percent(60) {
        text = text.replacen("format = 1", "format = 1\nrouting = \"load-aware\"", 1);
        let bridges = text.matches("[[bridge]]").count();
        for _ in 0..random.below(3) * u64::from(bridges > 1) {
            let one = random.index(bridges);
            let other = (one + 1 + random.index(bridges - 1)) % bridges;
            let _ = writeln!(text, "[[link]]\nends = [\"b{one}\", \"b{other}\"]\nrate_mbps = 100");
        }
    }
    for stream in 0..random.below(4) {
        let class = random.one_of(&[0, 1, 4, 5, 6, 7]);
        let talker = random.below(3);
        let _ = writeln!(text, "[[stream]]\nname = \"s{stream}\"\ntalker = \"h{talker}\"");
        let _ = writeln!(text, "listeners = [\"h{}\"]\ntraffic_class = {class}", (talker + 1) % 3);
        let _ = writeln!(text, "frame_octets = {}", random.between(68, 900));
        let _ = writeln!(text, "interval_ns = {}", random.between(200_000, 3_000_000));
    }
    let more = [
        ("format = 1", "format = 1\nidle_slopes = \"deadline\""),
        ("[[bridge]]", "[[bridge]]\nshared_buffer_octets = 20_000"),
        ("[[bridge]]", "[[bridge]]\nlearning = true"),
        ("[run]", "[run]\nreservation = \"srp\""),
    ];
    for (what, with) in more {
        if random.one_in(8) {
            text = text.replacen(what, with, 1);
        }
    }
    if random.one_in(8) {
        text += "[[fault]]\nkind = \"link-down\"\nlink = \"h0\"\nfrom_ns = 1_000_000\n";
    }
    text
}

/// What was seen.
#[derive(Debug, Default)]
struct Seen {
    added: u32,
    changed: u32,
    removed: u32,
    refused: u32,
    /// Changes after which the whole system was analysed, though more was there than changed.
    whole: u32,
    /// Changes that concerned nothing else.
    alone: u32,
    /// Of other channels, the bounds that a change moved.
    moved: u32,
}

/// The planning of the whole, with all where it is now.
fn whole(planner: &Planner) -> Plan {
    let written = document(planner.system(), planner.plan());
    let kept = KeptPlan::new(planner.system(), &written);
    plan_and_limits(planner.system(), true, &kept).expect("it is planned").0
}

/// One change, at random; what is left of the description's channels is in `left`.
fn change(
    random: &mut Random,
    planner: &mut Planner,
    left: &mut Vec<Channel>,
    seen: &mut Seen,
) -> Result<PlanChange, Vec<Diagnostic>> {
    let count = planner.system().channels.len() as u64;
    if count == 0 || (random.percent(50) && !left.is_empty()) {
        let channel = left.remove(random.index(left.len()));
        let result = planner.add(channel.clone());
        seen.added += u32::from(result.is_ok());
        if result.is_err() {
            left.push(channel);
        }
        return result;
    }
    let id = ChannelId(random.below(count) as u32);
    let channel = planner.system().channel(id).clone();
    if random.percent(40) {
        let result = planner.remove(id);
        seen.removed += u32::from(result.is_ok());
        left.push(channel);
        return result;
    }
    let mut other = channel;
    match random.below(5) {
        0 => other.size = Octets::new(other.size.get() + random.between(0, 700) as u32),
        1 => other.interval = other.interval * random.between(1, 3),
        2 => {
            let all = [Class::A, Class::B, Class::Scheduled, Class::Asynchronous];
            other.class = random.one_of(&all);
        }
        3 => (other.talker, other.listeners[0]) = (other.listeners[0], other.talker),
        _ => other.fixed_delay += Span::from_ns(random.between(-400_000, 400_000)),
    }
    other.listeners.retain(|to| *to != other.talker);
    let result = planner.change(id, other);
    seen.changed += u32::from(result.is_ok());
    result
}

/// The first difference of two plans; whole plans are long.
fn same(now: &Plan, whole: &Plan) -> Result<(), String> {
    fn first<T: PartialEq + std::fmt::Debug>(what: &str, a: &[T], b: &[T]) -> Result<(), String> {
        let differ = a.iter().zip(b).position(|(a, b)| a != b);
        match differ.or((a.len() != b.len()).then_some(a.len().min(b.len()))) {
            Some(at) => Err(format!("{what} {at}: {:?} is {:?}", a.get(at), b.get(at))),
            None => Ok(()),
        }
    }
    first("channel", &now.channels, &whole.channels)?;
    first("stream", &now.streams, &whole.streams)?;
    first("port", &now.ports, &whole.ports)?;
    first("backlog of port", &now.backlogs, &whole.backlogs)?;
    first("chain", &now.chains, &whole.chains)?;
    if now == whole { Ok(()) } else { Err("paths of noise".to_owned()) }
}

/// Whether all channels but the changed one are on their paths and in their windows.
fn stayed(before: (&System, &Plan), after: (&System, &Plan)) -> u32 {
    let moved = before.0.channels.iter().zip(&before.1.channels).filter(|(channel, was)| {
        let Some(at) = after.0.channels.iter().position(|other| other == *channel) else {
            return false;
        };
        let now = &after.1.channels[at];
        assert_eq!((&was.paths, &was.launch), (&now.paths, &now.launch), "`{}`", channel.name);
        was.bounds != now.bounds
    });
    moved.count() as u32
}

#[test]
fn a_change_leaves_the_plan_of_the_whole_system_and_moves_no_other() {
    let mut seen = Seen::default();
    for seed in 0..160 {
        let mut random = Random(seed);
        let text = text(&mut random);
        let loaded = onbeat_description::load("system.toml", &text, &mut |_| Err(String::new()));
        let Some(mut system) = loaded.system else { continue };
        let mut left = system.channels.split_off(system.channels.len() / 2);
        let Ok((mut planner, _)) = Planner::new(system, &KeptPlan::default()) else { continue };
        for step in 0..8 {
            let before = (planner.system().clone(), planner.plan().clone());
            let now = match change(&mut random, &mut planner, &mut left, &mut seen) {
                Ok(change) => {
                    let all = planner.system().channels.len() + planner.system().streams.len();
                    seen.whole += u32::from(change.analysed == all && all > 2);
                    seen.alone += u32::from(change.analysed < 2 && all > 2);
                    seen.moved +=
                        stayed((&before.0, &before.1), (planner.system(), planner.plan()));
                    whole(&planner)
                }
                Err(errors) => {
                    assert!(!errors.is_empty());
                    seen.refused += 1;
                    assert!(*planner.system() == before.0, "seed {seed}, step {step}\n{text}");
                    before.1
                }
            };
            same(planner.plan(), &now)
                .unwrap_or_else(|why| panic!("seed {seed}, step {step}: {why}\n{text}"));
        }
    }
    println!("{seen:?}");
    let counts = [seen.added, seen.changed, seen.removed, seen.refused, seen.whole, seen.alone];
    assert!(counts.iter().all(|count| *count > 30) && seen.moved > 100, "{seen:?}");
}

/// A planner for the cell, and a channel of another class, size and place that may come.
fn cell(more: &str) -> Planner {
    let system = loaded(&format!("{CELL}{more}"));
    Planner::new(system, &KeptPlan::default()).expect("it has a plan").0
}

/// Another channel like the first.
fn another(planner: &Planner, name: &str, size: u32) -> Channel {
    let number = planner.system().channels.len() as u8 + 1;
    Channel {
        name: name.to_owned(),
        stream_id: StreamId(u64::from(number)),
        destination: MacAddress([0x91, 0xe0, 0xf0, 0, 0xfe, number]),
        size: Octets::new(size),
        ..planner.system().channels[0].clone()
    }
}

#[test]
fn a_refusal_says_where_there_is_no_room_and_who_is_there() {
    let mut planner = cell("");
    // Each takes 8 * (1400 + 66) octets at 100 Mb/s: 117.28 us, and its way 365 us of 500.
    let mut refused = None;
    for number in 0..12 {
        let channel = another(&planner, &format!("x{number}"), 1_400);
        let before = planner.plan().clone();
        if let Err(errors) = planner.add(channel) {
            assert_eq!(*planner.plan(), before);
            refused.get_or_insert((number, errors));
        }
    }
    let (number, errors) = refused.expect("a link is full some time");
    assert!((5..9).contains(&number), "{number}");
    let message = &errors[0].message;
    assert!(message.starts_with(&format!("scheduled channel `x{number}` found no place: port ")));
    assert!(message.contains("has no room for it beside") && message.contains("`x0`"), "{message}");
    let class_a = |size| Channel { class: Class::A, ..another(&planner, "a", size) };
    let small = planner.clone().add(class_a(64)).expect("8.5 Mb/s are left");
    assert!(small.analysed > 1);
    let errors = planner.clone().add(class_a(1_200)).expect_err("81 Mb/s of 75 are not");
    assert_eq!(errors[0].code.as_str(), "OB2001", "{errors:?}");
}

#[test]
fn a_channel_goes_around_a_full_link_if_paths_may_avoid_load_and_others_stay() {
    let more = "[[bridge]]\nname = \"u\"\n[[link]]\nends = [\"s.u\", \"u.s\"]\nrate_mbps = 100\n\
                [[link]]\nends = [\"u.t\", \"t.u\"]\nrate_mbps = 100\n";
    let full = |routing: &str| {
        let text = CELL.replace("format = 1", &format!("format = 1\nrouting = \"{routing}\""));
        let system = loaded(&format!("{text}{more}"));
        let (mut planner, _) = Planner::new(system, &KeptPlan::default()).expect("a plan");
        for (name, [from, to]) in [("y", ["a", "c"]), ("z", ["b", "d"])] {
            let id = |name: &str| planner.system().nodes.iter().position(|n| n.name == name);
            let [talker, listener] = [from, to].map(|n| NodeId(id(n).expect("a host") as u32));
            let (class, listeners) = (Class::A, vec![listener]);
            let channel = Channel { class, talker, listeners, ..another(&planner, name, 650) };
            if let Err(errors) = planner.add(channel) {
                return Err(errors[0].code.as_str().to_owned());
            }
        }
        Ok(planner.plan().channels.iter().map(|c| c.paths[0].len()).collect::<Vec<_>>())
    };
    // Each reserves 46 Mb/s of the 75 of a link.
    assert_eq!(full("shortest"), Err("OB2001".to_owned()));
    assert_eq!(full("load-aware"), Ok(vec![3, 3, 4]));
}

#[test]
fn who_comes_must_not_go_before_frames_that_a_host_without_gates_launches() {
    let more = "[[device]]\nname = \"simple\"\ngates = false\n";
    let text = CELL.replace("name = \"a\"\n", "name = \"a\"\ndevice = \"simple\"\n");
    let system = loaded(&format!("{text}{more}"));
    let (mut planner, _) = Planner::new(system, &KeptPlan::default()).expect("it has a plan");
    let class_a = Channel { class: Class::A, ..another(&planner, "y", 64) };
    let errors = planner.add(class_a).expect_err("it goes first");
    assert!(errors[0].message.contains("frames of higher classes"), "{errors:?}");
    let best_effort = Channel { reserve: false, ..another(&planner, "y", 64) };
    assert_eq!(planner.add(best_effort).expect("the other goes first").analysed, 2);
}

#[test]
fn a_channel_that_something_is_about_is_not_taken_away() {
    let mut planner = cell("[[chain]]\nname = \"way\"\nchannels = [\"x\"]\ndeadline_us = 400\n");
    let bound = planner.plan().chains[0];
    let errors = planner.remove(ChannelId(0)).expect_err("a chain needs it");
    assert_eq!(errors[0].message, "channel `x` cannot be removed: chain `way` is about it");
    let slower = Channel { size: Octets::new(164), ..planner.system().channels[0].clone() };
    let change = planner.change(ChannelId(0), slower).expect("there is room");
    assert_eq!((change.analysed, change.warnings), (1, Vec::new()));
    assert!(planner.plan().chains[0] > bound && bound.is_some());
    let other = another(&planner, "other", 64);
    planner.add(other).expect("there is room");
    let change = planner.remove(ChannelId(1)).expect("nothing needs it");
    assert_eq!(change.analysed, 1, "`x` shares its ports");
}
