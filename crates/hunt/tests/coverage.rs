//! The generator of descriptions is finished when it draws everything that the format can say.

use onbeat_hunt::coverage::{SITUATIONS, situations};
use onbeat_hunt::draw::description;
use onbeat_hunt::schema::Schema;
use serde_json::Value;
use std::collections::BTreeSet;

/// The seeds of one long hunt.
const SEEDS: u64 = 20_000;

#[test]
fn each_key_word_and_end_of_a_range_of_the_schema_is_drawn() {
    let schema = Schema::committed();
    let mut missing = schema.everything();
    // So many copies of anything are too many for a description that is drawn to be simulated.
    assert!(missing.remove("Group.count = 100000"));
    assert!(missing.len() > 350, "the schema was read: {}", missing.len());
    for seed in 0..SEEDS {
        let drawn = Value::Object(description(&schema, seed).tree().into_owned());
        for said in schema.said(&drawn) {
            missing.remove(&said);
        }
        if missing.is_empty() {
            return;
        }
    }
    panic!("never drawn in {SEEDS} descriptions: {missing:#?}");
}

#[test]
fn each_situation_is_drawn() {
    let schema = Schema::committed();
    let mut missing: BTreeSet<&str> = SITUATIONS.iter().copied().collect();
    for seed in 0..1_000 {
        for drawn in situations(&description(&schema, seed)) {
            missing.remove(drawn);
        }
    }
    assert!(missing.is_empty(), "never drawn: {missing:#?}");
}

#[test]
fn a_seed_always_draws_the_same() {
    let schema = Schema::committed();
    for seed in 0..50 {
        let [one, other] = [0, 1].map(|_| description(&schema, seed));
        assert_eq!(one.toml(), other.toml(), "seed {seed}");
        assert_eq!(one.files, other.files, "seed {seed}");
    }
}
