//! Random systems: nothing collides and nothing is lost, whatever clocks, bridges and applications
//! do, and messages keep their bounds.

use super::descriptions::{BEGIN, bridge, channel, hosts, link, noise, system};
use super::simulation::{Delivery, NS, Simulated, Temper, World, collision, settled, simulate};
use onbeat_model::codes::network_code as codes;
use onbeat_model::plan::Bound;
use onbeat_model::system::{NodeId, System};
use onbeat_model::time::Span;
use onbeat_model::units::Octets;
use onbeat_network_code::assembly::{AssemblyOptions, assemble};
use onbeat_network_code::format::format;
use onbeat_network_code::planning::{BusOptions, BusPlan, BusSlot, FrameDelays, plan_bus};
use onbeat_network_code::topology::{NetworkAssumptions, network_model};
use onbeat_network_code::verification::{NetworkProperty, ProofVerdict, verify};
use onbeat_testkit::Random;
use std::collections::BTreeSet;
use std::fmt::Write;

/// Systems of the default test.
const SYSTEMS: usize = 150;

/// A description: bridges in a tree, hosts at any of them.
pub(super) fn description(random: &mut Random) -> String {
    let mut text = BEGIN.to_owned();
    let mbps = random.one_of(&[1_000, 1_000, 1_000, 100, 100, 10]);
    let count = 2 + random.index(5);
    let names: Vec<String> = (0..count).map(|at| format!("h{at}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    hosts(&mut text, &names);
    // Two hosts may have one link and no bridge.
    let bridges = if count == 2 { random.index(4) } else { 1 + random.index(3) };
    let propagation = |random: &mut Random| random.one_of(&[0, 20, 500, 5_000]);
    for at in 0..bridges {
        bridge(&mut text, &format!("b{at}"), random.one_of(&[0, 500, 3_000, 10_000]));
        if random.one_in(4) {
            let with = format!("name = \"b{at}\"\ncut_through = true");
            text = text.replace(&format!("name = \"b{at}\""), &with);
        }
        if at > 0 {
            let other = format!("b{}", random.index(at));
            link(&mut text, [&format!("b{at}"), &other], mbps, propagation(random));
        }
    }
    match bridges {
        0 => link(&mut text, ["h0", "h1"], mbps, propagation(random)),
        _ => {
            for name in &names {
                let at = format!("b{}", random.index(bridges));
                link(&mut text, [name, &at], mbps, propagation(random));
            }
        }
    }
    channels(random, &mut text, &names, mbps);
    if random.one_in(3) {
        noise(&mut text, names[0], names[1], random.between(18, 1_472));
    }
    dedicated(random, text, bridges)
}

/// Some bridges of three links or more get a dedicated path.
fn dedicated(random: &Random, mut text: String, bridges: usize) -> String {
    // Apart from all other draws, which stay what they were.
    let mut apart = Random(random.0 ^ 0xded);
    for at in 0..bridges {
        let name = format!("\"b{at}\"");
        let links = text.lines().filter(|it| it.starts_with("ends") && it.contains(&name));
        if links.count() > 2 && apart.one_in(3) {
            let policy = apart.one_of(&["retry", "retry", "drop", "finish"]);
            let wait = apart.one_of(&[0, 0, 8, 1_000, 50_000]);
            let path = format!("{{ on_best_effort = \"{policy}\", wait_ns = {wait} }}");
            let plain = text
                .replace(&format!("name = {name}\ncut_through = true"), &format!("name = {name}"));
            text = plain.replace(
                &format!("name = {name}\n"),
                &format!("name = {name}\ndedicated_path = {path}\n"),
            );
        }
    }
    text
}

fn channels(random: &mut Random, text: &mut String, names: &[&str], mbps: i64) {
    let slower = 1_000 / mbps;
    let us = |us: i64| us * 1_000 * slower;
    let intervals = match random.below(6) {
        0 | 1 => vec![us(500)],
        2 => vec![us(500), us(1_000), us(2_000)],
        3 => vec![us(400), us(600)],
        4 => vec![us(333) + 1, us(1_000) + 7],
        _ => vec![us(250), us(5_000)],
    };
    for number in 0..1 + random.index(8) {
        let octets = match random.below(3) {
            0 => random.between(1, 1_400),
            _ => random.between(1, 64),
        };
        let talker = random.index(names.len());
        let others = (0..names.len()).filter(|at| *at != talker);
        let mut listeners: Vec<&str> =
            others.filter(|_| random.one_in(2)).map(|at| names[at]).collect();
        if listeners.is_empty() {
            listeners.push(names[(talker + 1) % names.len()]);
        }
        let interval = random.one_of(&intervals);
        let (name, octets) = (format!("c{number}"), octets as usize);
        channel(text, number, &name, octets, interval, names[talker], &listeners);
        if random.one_in(2) {
            let delay_us = random.between(interval / 4, 3 * interval) / 1_000;
            let _ = writeln!(text, "fixed_delay_us = {delay_us}");
        }
    }
}

pub(super) fn options(random: &mut Random, system: &System) -> BusOptions {
    let hosts: Vec<_> = (0..)
        .map(onbeat_model::system::NodeId)
        .take(system.nodes.len())
        .filter(|id| system.node(*id).name.starts_with('h'))
        .collect();
    // Apart from all other draws, which stay what they were.
    let mut apart = Random(random.0);
    let slot_error = if apart.one_in(4) { apart.between(1, 60_000) } else { 0 };
    BusOptions {
        slot_error: Some(Span::from_ns(slot_error)),
        master: random.one_in(3).then(|| random.one_of(&hosts)),
        drift_ppb: random.one_of(&[100_000, 100_000, 0, 10_000]),
        best_effort: Octets::new(if random.one_in(6) { 1_518 } else { 0 }),
    }
}

/// What must hold of a simulation in which no frame is lost.
fn check(plan: &BusPlan, simulated: &Simulated, rounds: u64) {
    if let Some(found) = collision(&simulated.flights) {
        panic!("frames meet: {found}");
    }
    for (station, counters) in simulated.counters.iter().enumerate() {
        let name = &plan.stations[station].program.station;
        assert_eq!(counters.traps, 0, "{name}");
        assert_eq!(counters.overruns, 0, "{name}");
        assert_eq!(counters.data_wrong_length, 0, "{name}");
        // Up to two before it began, and the one that is cut off.
        let seen = counters.rounds_begun + counters.rounds_seen;
        assert!(seen + 3 >= rounds, "{name}: {counters:?}");
    }
    assert_eq!(simulated.lost, 0, "queues have room");
    for delivery in &simulated.deliveries {
        let bound = bound(plan, delivery);
        let [best, most] = [bound.best, bound.total()].map(|span| i128::from(span.as_ns()) * NS);
        let taken = delivery.latency;
        let shown = format!("{delivery:?} of {:?}", plan.slots[delivery.slot].channel);
        assert!(taken <= most, "{taken} is above {most}: {shown}");
        assert!(taken >= best, "{taken} is below {best}: {shown}");
    }
}

fn bound<'a>(plan: &'a BusPlan, delivery: &Delivery) -> &'a Bound {
    let receipts = &plan.slots[delivery.slot].receipts;
    let receipt = receipts.iter().find(|it| it.listener == delivery.listener);
    &receipt.expect("it listens").bound
}

/// What messages that come early wait for others at most.
fn early(bound: &Bound) -> Span {
    let term = bound.terms.iter().find(|term| term.what == "messages that come early");
    term.map_or(Span::ZERO, |term| term.span)
}

/// Each message that is written comes to each listener, if there is time, once and in its order.
fn all_deliver(plan: &BusPlan, simulated: &Simulated, rounds: u64) {
    let until = i128::from(plan.round.0 * 8 * rounds) * NS;
    for (slot, written) in simulated.written.iter().enumerate() {
        assert!(written.len() > 1, "{slot}");
        for receipt in &plan.slots[slot].receipts {
            let is_it = |it: &&Delivery| (it.slot, it.listener) == (slot, receipt.listener);
            let seen: Vec<u32> =
                simulated.deliveries.iter().filter(is_it).map(|it| it.value).collect();
            let most = i128::from(receipt.bound.total().as_ns()) * NS;
            let due = written.iter().filter(|(at, _)| at + most < until).count();
            assert!(seen.len() >= due, "{seen:?} of {due} of {:?}", plan.slots[slot]);
            assert!(seen.iter().copied().eq(1..=seen.len() as u32), "{seen:?}");
        }
    }
}

/// Rounds until each channel has written some messages.
fn rounds(system: &System, plan: &BusPlan) -> u64 {
    let longest = system.channels.iter().map(|channel| channel.interval.as_ns()).max();
    let longest = longest.expect("some").cast_unsigned().div_ceil(plan.round.0 * 8);
    u64::from(settled(plan)) + (3 * longest).max(u64::from(2 * plan.rounds.max(5)))
}

/// What programs and texts are to each other.
fn texts(plan: &BusPlan) {
    for station in &plan.stations {
        let (name, text) = (&station.program.station, &station.text);
        assert_eq!(format(text).as_ref(), Ok(text), "{name}");
        let again = assemble("x.nc", text, AssemblyOptions::default());
        assert_eq!(again.diagnostics, [], "{text}");
        assert_eq!(again.program.map(|it| it.words).as_ref(), Some(&station.program.words));
        assert_eq!(station.program.check(), Ok(()));
    }
}

/// What is counted in random systems.
#[derive(Debug, Default)]
struct Figures {
    /// Systems.
    refused: usize,
    hyper: usize,
    in_time: usize,
    /// Messages, and those that took longer than any could if none waited for another one.
    deliveries: usize,
    early: usize,
    /// Systems whose stations are late, and those with dedicated paths.
    late: usize,
    dedicated: usize,
}

/// Plans and simulates one system; none if it is refused.
fn planned(seed: u64) -> Option<Figures> {
    let mut random = Random(seed);
    let text = description(&mut random);
    let system = system(&text);
    let options = options(&mut random, &system);
    let plan = match plan_bus(&system, &options) {
        Ok(plan) => plan,
        Err(errors) => {
            let is_full = |code| [codes::ROUND, codes::LOAD, codes::PLACE].contains(&code);
            assert!(errors.iter().all(|error| is_full(error.code)), "{errors:?}\n{text}");
            return None;
        }
    };
    texts(&plan);
    let rounds = rounds(&system, &plan);
    let mut figures = Figures::default();
    for temper in [Temper::Calm, Temper::Random, Temper::Extreme, Temper::Extreme] {
        let mut world = World::new(&system, &plan, temper, Random(random.draw()));
        let simulated = simulate(&mut world, rounds);
        check(&plan, &simulated, rounds);
        all_deliver(&plan, &simulated, rounds);
        let early = simulated.deliveries.iter().filter(|delivery| {
            let bound = bound(&plan, delivery);
            let others = bound.total() - early(bound);
            delivery.latency > i128::from(others.as_ns()) * NS
        });
        figures.early += early.count();
        figures.deliveries += simulated.deliveries.len();
    }
    lossy(&system, &plan, rounds, Random(random.draw()));
    let keeps = |slot: &BusSlot| {
        let delay = system.channel(slot.channel).fixed_delay;
        slot.receipts.iter().all(|receipt| receipt.bound.total() <= delay)
    };
    figures.in_time += usize::from(plan.slots.iter().all(keeps));
    figures.hyper += usize::from(plan.rounds > 1);
    figures.late += usize::from(plan.slot_error > Span::ZERO);
    figures.dedicated += usize::from(text.contains("dedicated_path"));
    Some(figures)
}

/// Who has lost the beginning of a round sends nothing that meets anything.
fn lossy(system: &System, plan: &BusPlan, rounds: u64, mut random: Random) {
    let mut world = World::new(system, plan, Temper::Extreme, Random(random.draw()));
    world.one_lost_of = 2 + random.below(6);
    let simulated = simulate(&mut world, rounds);
    assert_eq!(collision(&simulated.flights), None, "one of {} lost", world.one_lost_of);
    for counters in &simulated.counters {
        assert_eq!((counters.traps, counters.overruns), (0, 0));
    }
}

#[test]
fn frames_never_meet_and_messages_keep_their_bounds() {
    let count = std::env::var("ONBEAT_NETWORK_CODE_SYSTEMS").ok();
    let count = count.map_or(SYSTEMS, |count| count.parse().expect("a number of systems"));
    let mut all = Figures::default();
    for seed in 0..count as u64 {
        let seeded = std::panic::catch_unwind(|| planned(seed));
        match seeded.unwrap_or_else(|_| panic!("seed {seed}")) {
            Some(figures) => {
                all.hyper += figures.hyper;
                all.in_time += figures.in_time;
                all.deliveries += figures.deliveries;
                all.early += figures.early;
                all.late += figures.late;
                all.dedicated += figures.dedicated;
            }
            None => all.refused += 1,
        }
    }
    assert!(all.refused * 3 < count, "{all:?}");
    assert!(all.hyper * 5 > count && all.in_time * 2 > count, "{all:?}");
    assert!(all.deliveries > count * 100 && all.early > count, "{all:?}");
    assert!(all.late * 8 > count && all.dedicated * 8 > count, "{all:?}");
    println!("{count} systems: {all:?}");
}

/// Descriptions at their limits have programs or reasons, and never end a plan otherwise.
#[test]
fn whatever_is_described_gives_programs_or_reasons() {
    let (mut planned, mut refused) = (0, BTreeSet::new());
    for seed in 0..400 {
        let mut random = Random(seed);
        let mut text = description(&mut random);
        for (key, most) in
            [("interval_ns", 2_592_000_000_000_000), ("forwarding_ns", 10_i64.pow(10))]
        {
            let lines = text.lines().map(|line| match line.starts_with(key) && random.one_in(3) {
                true => format!("{key} = {}\n", 1 + (random.between(0, most) >> random.below(50))),
                false => format!("{line}\n"),
            });
            text = lines.collect();
        }
        text = text.replace("interval_ns = 0\n", "interval_ns = 1\n");
        let drift = random.between(-999_999, 999_999);
        let clock = format!("name = \"h0\"\nclock = {{ drift_ppb = {drift} }}");
        text = text.replacen("name = \"h0\"", &clock, 1);
        match plan_bus(&system(&text), &BusOptions::default()) {
            Ok(plan) => {
                texts(&plan);
                planned += 1;
            }
            Err(errors) => refused.extend(errors.into_iter().map(|error| error.code.as_str())),
        }
    }
    let expected = [codes::ROUND, codes::LOAD, codes::PLACE, codes::PROGRAM];
    assert_eq!(refused, expected.map(|code| code.as_str()).into());
    assert!(planned > 40, "{planned} planned");
}

#[test]
fn the_verifier_proves_what_is_planned() {
    let (mut proven, mut hyper, mut own) = (0, 0, 0);
    for seed in 0..100 {
        let mut random = Random(seed);
        let text = description(&mut random).replace("cut_through = true", "");
        let system = system(&text);
        let options = options(&mut random, &system);
        let Ok(plan) = plan_bus(&system, &options) else { continue };
        if plan.delays == FrameDelays::OfFrame {
            own += 1;
            continue;
        }
        let programs: Vec<_> = plan.stations.iter().map(|it| it.program.clone()).collect();
        let best_effort = Some(options.best_effort).filter(|octets| octets.get() > 0);
        let assumptions = NetworkAssumptions { drift_ppb_max: plan.drift_ppb, best_effort };
        let model = network_model(&system, &programs, assumptions).expect("it is a tree");
        let verification = verify(&model);
        for decided in &verification.properties {
            // How much is left for best effort is not planned.
            if decided.property != NetworkProperty::BestEffort {
                let found = &decided.findings;
                assert_eq!(decided.verdict, ProofVerdict::Proven, "{seed}: {found:?}\n{text}");
            }
        }
        assert_eq!(verification.hyper_round, Some(plan.rounds as usize), "{seed}");
        proven += 1;
        hyper += usize::from(plan.rounds > 1);
    }
    assert!(proven > 60 && hyper > 20, "{proven} proven, {hyper} of several rounds");
    assert!(own > 0, "some have no room so");
}

/// Tests see what they are to exclude: clocks that are worse than a plan counts with make frames
/// meet.
#[test]
fn clocks_beyond_the_limit_make_frames_meet() {
    let mut met = 0;
    for seed in 0..100 {
        let mut random = Random(seed);
        let system = system(&description(&mut random));
        let options =
            BusOptions { drift_ppb: 0, best_effort: Octets::new(0), ..BusOptions::default() };
        let Ok(plan) = plan_bus(&system, &options) else { continue };
        let mut world = World::new(&system, &plan, Temper::Extreme, Random(seed));
        for drift in &mut world.drift_ppb {
            *drift = random.one_of(&[-1_000_000, 1_000_000]);
        }
        let simulated = simulate(&mut world, rounds(&system, &plan));
        met += usize::from(collision(&simulated.flights).is_some());
    }
    assert!(met > 5, "{met} of 100");
}

/// What writers write as early as they may, by fast clocks, rounds of a slow master carry for as
/// long as one likes; and no slots that come only as often as messages by clocks that are exact.
#[test]
fn slow_rounds_carry_what_fast_clocks_write() {
    const DRIFT: u32 = 900_000;
    let options = BusOptions {
        drift_ppb: DRIFT,
        best_effort: Octets::new(0),
        master: Some(NodeId(0)),
        ..BusOptions::default()
    };
    let (mut planned, mut messages, mut lost) = (0, 0, 0);
    for seed in 0..10 {
        // No slots but those that messages need.
        let mut text = BEGIN.to_owned();
        let names = ["h0", "h1", "h2"];
        hosts(&mut text, &names);
        bridge(&mut text, "b", 1_000);
        names.iter().for_each(|name| link(&mut text, [name, "b"], 1_000, 100));
        channels(&mut Random(seed), &mut text, &names, 1_000);
        text = text.lines().filter(|line| !line.starts_with("fixed_delay")).fold(
            String::new(),
            |text, line| match line.starts_with("listeners") {
                true => text + line + "\nfixed_delay_us = 20000\n",
                false => text + line + "\n",
            },
        );
        let system = system(&text);
        let Ok(plan) = plan_bus(&system, &options) else { continue };
        let simulated = long(&system, &plan, DRIFT, seed);
        assert_eq!(simulated.lost, 0, "seed {seed}");
        // A slow master begins fewer rounds.
        check(&plan, &simulated, ROUNDS - 5);
        all_deliver(&plan, &simulated, ROUNDS);
        messages += simulated.written.iter().map(Vec::len).sum::<usize>();
        planned += 1;
        // Longer intervals have slots as other planners would give them to these.
        let longer = longer(&text, DRIFT);
        let Ok(plan) = plan_bus(&super::descriptions::system(&longer), &options) else { continue };
        lost += usize::from(long(&system, &plan, DRIFT, seed).lost > 0);
    }
    assert!(planned > 7 && messages > 7 * 2_000, "{planned} planned, {messages} messages");
    assert!(lost > 5, "{lost} of {planned}");
}

/// Rounds of long simulations.
const ROUNDS: u64 = 3_000;

/// The first host's clock, the master's, is slow; all others are fast.
fn long(system: &System, plan: &BusPlan, drift: u32, seed: u64) -> Simulated {
    let mut world = World::new(system, plan, Temper::Extreme, Random(seed));
    world.drift_ppb.fill(-i64::from(drift));
    world.drift_ppb[0] = i64::from(drift);
    world.one_pause_of = 0;
    simulate(&mut world, ROUNDS)
}

/// A description whose intervals are longer by the drift of two clocks.
fn longer(text: &str, drift: u32) -> String {
    let lines = text.lines().map(|line| match line.strip_prefix("interval_ns = ") {
        Some(interval) => {
            let interval: i64 = interval.parse().expect("a number");
            let drift = i64::from(drift);
            let longer = interval * (1_000_000_000 + drift) / (1_000_000_000 - drift);
            format!("interval_ns = {}\n", longer + 8)
        }
        None => format!("{line}\n"),
    });
    lines.collect()
}
