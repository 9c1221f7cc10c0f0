//! Ten thousand random networks in the engine: nothing takes longer, and no queue is fuller, than
//! its bound says. The bounds are computed without the engine.

mod random;
mod windows;

use onbeat_bounds::plan;
use onbeat_model::observed::Observed;
use onbeat_model::plan::{Cause, Plan, Unbounded};
use onbeat_model::system::{PortId, StreamIndex, System};
use onbeat_model::time::{NetTime, Span};
use onbeat_net::{Engine, Options};
use random::{Dice, Mix};

/// More with ONBEAT_NETWORKS.
const NETWORKS: u64 = 10_000;

/// Streams release frames for as long, and no more events are worth waiting for.
const EVENTS_MAX: u64 = 20_000;

/// What was promised and what was seen of it.
#[derive(Default)]
struct Seen {
    listeners: u64,
    bounded: u64,
    /// Latency of frames that met their bound to within so many per cent: at least 50, 90, 99.
    near: [u64; 3],
    /// The same of backlogs in octets.
    full: [u64; 3],
    /// What went beyond its bound.
    broken: Vec<String>,
}

fn simulate(system: &System, plan: &Plan, seed: u64) -> Observed {
    let end = NetTime::from_ns(30_000_000);
    let options = Options {
        seed,
        host_delays: true,
        load_bin: Span::from_s(1),
        noise_until: end,
        traffic_until: end,
        model_channels: true,
    };
    let mut engine = Engine::new(system, plan, options);
    let mut at = NetTime::ZERO;
    while at < end && engine.events() < EVENTS_MAX {
        at += Span::from_us(500);
        engine.advance(at);
    }
    engine.observed()
}

/// What a system has, to know where to look.
fn features(system: &System) -> String {
    use onbeat_model::port::Selection;
    use onbeat_model::system::NodeKind;
    let settings = || system.ports.iter().map(|port| &port.settings);
    let selects = |what: fn(&Selection) -> bool| settings().any(|s| s.selection.iter().any(what));
    let streams = || system.streams.iter();
    let has = [
        ("credit", selects(|s| matches!(s, Selection::CreditBased { .. }))),
        ("asynchronous", selects(|s| *s == Selection::Asynchronous)),
        ("gates", settings().any(|s| !s.gates.is_empty())),
        ("preemption", settings().any(|s| s.preemptable != 0)),
        ("clocks", system.nodes.iter().any(|n| n.clock != Default::default())),
        ("noise", !system.noise.is_empty()),
        (
            "cut-through",
            system.nodes.iter().any(|n| matches!(&n.kind, NodeKind::Bridge(b) if b.cut_through)),
        ),
        ("policing", streams().any(|s| s.policing.is_some())),
        ("ways", streams().any(|s| !s.paths.along.is_empty())),
        ("babble", !system.faults.is_empty()),
    ];
    has.iter().filter(|(_, has)| *has).map(|(name, _)| *name).collect::<Vec<_>>().join(" ")
}

fn count(near: &mut [u64; 3], seen: i128, bound: i128) {
    for (count, per_cent) in near.iter_mut().zip([50, 90, 99]) {
        *count += u64::from(seen * 100 >= bound * per_cent);
    }
}

fn check(seed: u64, system: &System, all: &mut Seen) -> Plan {
    let plan = plan(system, true).unwrap_or_else(|e| panic!("seed {seed}: {e:?}"));
    let seen = simulate(system, &plan, seed);
    let what = |what: &str| format!("seed {seed} ({}): {what}", features(system));
    for ((stream, planned), flow) in system.streams.iter().zip(&plan.streams).zip(&seen.streams) {
        let id = system.streams.iter().position(|other| other.name == stream.name).unwrap();
        if system.babbles(StreamIndex(id as u32)) {
            continue;
        }
        let ends = planned.bounds.iter().zip(&planned.unbounded).zip(&flow.listeners);
        for ((bound, reason), latency) in ends {
            assert_eq!(bound.is_none(), reason.is_some(), "{}", what(&stream.name));
            // Nothing can be promised beside noise.
            let noise = |reason: &Unbounded| reason.cause == Cause::UnlimitedTraffic;
            all.listeners += u64::from(!reason.as_ref().is_some_and(noise));
            let Some(bound) = bound else { continue };
            all.bounded += 1;
            let (Some(min), Some(max)) = (latency.min, latency.max) else { continue };
            let total = bound.total();
            let best = bound.best;
            if max > total {
                all.broken.push(format!("{} took {max} of {total}", what(&stream.name)));
            }
            if min < best {
                all.broken.push(format!("{} took {min}, best {best}", what(&stream.name)));
            }
            count(&mut all.near, max.as_ns().into(), total.as_ns().into());
        }
    }
    for (port, (queues, bounds)) in seen.ports.iter().zip(&plan.backlogs).enumerate() {
        for (queue, (seen, bound)) in queues.queues.iter().zip(bounds).enumerate() {
            let Some(bound) = bound else { continue };
            let place = || {
                format!("seed {seed}: queue {queue} of {}", system.port_label(PortId(port as u32)))
            };
            let (frames, octets) = (u64::from(seen.deepest_frames), u64::from(seen.deepest_octets));
            assert!(frames <= bound.frames, "{}: {frames} frames of {}", place(), bound.frames);
            assert!(octets <= bound.octets, "{}: {octets} octets of {}", place(), bound.octets);
            if octets > 0 {
                count(&mut all.full, octets.into(), bound.octets.into());
            }
        }
    }
    plan
}

/// Random shares of everything.
fn mix(seed: u64) -> Mix {
    let mut dice = Dice::new(!seed);
    let mut share = |of: u64| dice.below(of + 1);
    Mix {
        credit: share(100),
        asynchronous: share(80),
        gates: share(60),
        preemption: share(60),
        clocks: share(60),
        noise: share(80),
        cut_through: share(50),
        policing: share(20),
        replication: share(30),
        scheduled: share(100),
    }
}

fn run(seeds: std::ops::Range<u64>) -> Seen {
    let mut all = Seen::default();
    for seed in seeds {
        check(seed, &random::system(seed, &mix(seed)), &mut all);
    }
    all
}

#[test]
fn nothing_that_a_random_network_does_is_beyond_its_bound() {
    let networks = std::env::var("ONBEAT_NETWORKS").ok().and_then(|count| count.parse().ok());
    let networks = networks.unwrap_or(NETWORKS);
    let half = networks / 2;
    let [a, b] = std::thread::scope(|scope| {
        let halves = [0..half, half..networks].map(|seeds| scope.spawn(move || run(seeds)));
        halves.map(|half| half.join().unwrap_or_else(|e| std::panic::resume_unwind(e)))
    });
    let near: Vec<_> = a.near.iter().zip(&b.near).map(|(a, b)| a + b).collect();
    let full: Vec<_> = a.full.iter().zip(&b.full).map(|(a, b)| a + b).collect();
    let (listeners, bounded) = (a.listeners + b.listeners, a.bounded + b.bounded);
    println!("{bounded} of {listeners} have a bound; 50, 90, 99 % of it: {near:?}; {full:?}");
    let broken = [a.broken, b.broken].concat();
    assert!(broken.is_empty(), "{} beyond bounds:\n{}", broken.len(), broken.join("\n"));
    // If few had a bound, or none came near it, this test would say little.
    assert!(bounded * 3 > listeners * 2, "{bounded} of {listeners} have a bound");
    assert!(near[1] > 1_000 && near[2] > 200, "{near:?}");
}

#[test]
fn windows_that_carry_less_than_comes_give_no_bound_and_all_others_hold() {
    let networks = std::env::var("ONBEAT_NETWORKS").ok().and_then(|count| count.parse().ok());
    let networks: u64 = networks.unwrap_or(NETWORKS) / 2;
    let mut all = Seen::default();
    let (mut overloaded, mut tight) = (0_u64, 0_u64);
    for seed in 0..networks {
        let system = windows::system(seed);
        let before = (all.bounded, all.near[2]);
        let plan = check(seed, &system, &mut all);
        for id in windows::overloaded(&system, &plan) {
            overloaded += 1;
            let bounds = &plan.streams[id].bounds;
            let name = &system.streams[id].name;
            assert!(bounds.iter().all(Option::is_none), "seed {seed}, {name}: {bounds:?}");
        }
        tight += u64::from(all.bounded > before.0 && all.near[2] > before.1);
    }
    let Seen { listeners, bounded, near, broken, .. } = all;
    println!("{bounded} of {listeners} bounded, {overloaded} overloaded; {near:?}, {tight} tight");
    assert!(broken.is_empty(), "{} beyond bounds:\n{}", broken.len(), broken.join("\n"));
    // If few were overloaded, had a bound, or came near it, this test would say little.
    assert!(overloaded * 10 > networks && bounded * 3 > listeners, "{overloaded}, {bounded}");
    assert!(tight * 10 > networks, "{tight} of {networks}");
}
