//! The generator of whole systems is finished when it draws everything that a program can do, every
//! fault and every mechanism of the format.

use onbeat_hunt::schema::Schema;
use onbeat_sim::coverage::{drawn, everything};
use onbeat_sim::{DrawnSystem, script};

/// The seeds of a short hunt.
const SEEDS: u64 = 6_000;

#[test]
fn each_behaviour_fault_and_mechanism_is_drawn() {
    let schema = Schema::committed();
    let mut missing = everything();
    assert!(missing.len() > 100, "{}", missing.len());
    for seed in 0..SEEDS {
        let system = DrawnSystem::draw(&schema, seed);
        let found = drawn(&system);
        missing.retain(|name| !found.contains(name));
        if missing.is_empty() {
            return;
        }
    }
    panic!("never drawn in {SEEDS} systems: {missing:#?}");
}

#[test]
fn nothing_is_drawn_that_no_list_names() {
    let (schema, all) = (Schema::committed(), everything());
    for seed in 0..300 {
        let strange: Vec<_> =
            drawn(&DrawnSystem::draw(&schema, seed)).difference(&all).cloned().collect();
        assert!(strange.is_empty(), "seed {seed}: {strange:?}");
    }
}

#[test]
fn a_seed_always_draws_the_same_and_scripts_are_read_as_they_were_written() {
    let schema = Schema::committed();
    for seed in 0..100 {
        let [one, other] = [0, 1].map(|_| DrawnSystem::draw(&schema, seed));
        assert_eq!(one.text(), other.text(), "seed {seed}");
        let kept = DrawnSystem::from_json(&one.to_json("a test")).expect("it is one");
        assert_eq!(kept.text(), one.text(), "seed {seed}");
        for actor in &one.actors {
            let read = script::read(&script::text(&actor.scripts)).expect("scripts are JSON");
            assert_eq!(read, actor.scripts, "seed {seed}");
        }
    }
}
