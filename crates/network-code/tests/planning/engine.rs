//! Planned programs in the network engine: its stations, bridges, clocks and noise are not those
//! that plans are made with.

use super::descriptions::system;
use super::random::{description, options};
use onbeat_model::system::System;
use onbeat_model::time::Span;
use onbeat_net::network_code::{
    Application, GeneratedValues, NetworkCodeObserved, NetworkCodeSettings, StationSetup, simulate,
};
use onbeat_network_code::planning::{BusOptions, BusPlan, BusStation, plan_bus};
use onbeat_testkit::Random;

/// Nodes whose clocks are off by up to 100 ppm.
pub(super) fn with_clocks(random: &mut Random, text: &str) -> String {
    let mut result = String::new();
    for line in text.lines() {
        result.push_str(line);
        result.push('\n');
        if line == "[[host]]" || line == "[[bridge]]" {
            let drift = random.between(-100_000, 100_000);
            result += &format!("clock = {{ drift_ppb = {drift} }}\n");
        }
    }
    result
}

pub(super) fn simulated(
    system: &System,
    plan: &BusPlan,
    rounds: u64,
    seed: u64,
    application: &dyn Fn(&BusStation, Span) -> Box<dyn Application>,
) -> NetworkCodeObserved {
    // Channels are in the stations' frames only.
    let mut network = system.clone();
    network.channels.clear();
    let routes = onbeat_bounds::plan(&network, false).expect("it has paths");
    let round = Span::from_ns(i64::try_from(plan.round.0 * 8).expect("it is short"));
    let setup = |station: &BusStation| {
        let every = Span::from_ns(round.as_ns() / 2 + 1);
        StationSetup {
            program: station.program.clone(),
            application: application(station, every),
            channels: Vec::new(),
        }
    };
    let settings = NetworkCodeSettings {
        seed,
        // All see the first round.
        start_within: Span::ZERO,
        rounds: Some(rounds),
        duration: round * i64::try_from(rounds + 2).expect("few"),
        logs: false,
    };
    let stations = plan.stations.iter().map(setup).collect();
    let all = simulate(&network, &routes, stations, &settings, &mut |_| true);
    all.expect("it is a network").0
}

/// What the plan says of the way from `create` to the issue of `receive`.
pub(super) fn check(plan: &BusPlan, observed: &NetworkCodeObserved) -> u64 {
    let mut received = 0;
    assert_eq!((observed.collisions(), observed.lost(), observed.overwritten()), (0, 0, 0));
    for station in &observed.stations {
        let counters = &station.counters;
        assert_eq!((counters.traps, counters.overruns, counters.inputs_early), (0, 0, 0));
    }
    for slot in &plan.slots {
        let message = observed.messages.iter().find(|it| it.id == slot.message);
        let message = message.expect("it is sent");
        let copies = Span::from_ns((i64::from(slot.words) + 2) * 8);
        for receipt in &slot.receipts {
            let node = plan.stations[receipt.listener].node;
            let listener = message.listeners.iter().find(|it| it.node == node);
            let listener = listener.expect("it listens");
            received += listener.received;
            let Some(latency) = listener.latency else { continue };
            let bound = &receipt.bound;
            let waits = bound.terms.iter().filter(|term| {
                term.what.starts_with("wait for the slot") || term.what.ends_with("come early")
            });
            let most = waits.fold(bound.total(), |most, term| most - term.span);
            // The last word comes by a clock that is off by up to a nanosecond.
            assert!(latency.max + copies <= most, "{latency:?} of {most}: {slot:?}");
            let early = latency.min + copies + Span::from_ns(2);
            assert!(early >= bound.best, "{latency:?} of {}: {slot:?}", bound.best);
        }
    }
    received
}

#[test]
fn the_engine_finds_no_collision_and_no_loss() {
    let (mut received, mut systems) = (0, 0);
    for seed in 0..40 {
        let mut random = Random(seed);
        let text = description(&mut random);
        let system = system(&with_clocks(&mut random, &text));
        let options = options(&mut random, &system);
        // Little is left where there may be any best effort.
        let options = BusOptions { best_effort: Default::default(), ..options };
        let Ok(plan) = plan_bus(&system, &options) else { continue };
        let rounds = u64::from(plan.rounds) * 4 + 6;
        let values = |station: &BusStation, every| -> Box<dyn Application> {
            Box::new(GeneratedValues::new(seed, station.node, every))
        };
        let observed = simulated(&system, &plan, rounds, seed, &values);
        let all = std::panic::catch_unwind(|| check(&plan, &observed));
        received += all.unwrap_or_else(|_| panic!("seed {seed}\n{text}"));
        systems += 1;
    }
    assert!(systems > 30 && received > 3_000, "{systems} systems, {received} received");
}
