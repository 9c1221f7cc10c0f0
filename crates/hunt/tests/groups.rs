//! What is drawn with groups is the system that is drawn without them.

use onbeat_description::{Loaded, load};
use onbeat_hunt::Description;
use onbeat_hunt::draw::description;
use onbeat_hunt::schema::Schema;
use onbeat_model::diagnostic::Origin;

fn loaded(description: &Description) -> Loaded {
    let mut read = |name: &str| description.files.get(name).cloned().ok_or_else(|| name.to_owned());
    let mut loaded = load("system.toml", &description.toml(), &mut read);
    if let Some(system) = &mut loaded.system {
        system.each_origin(&mut |origin| *origin = Origin::default());
    }
    loaded
}

/// How many systems are drawn, three of ten with groups: more by `ONBEAT_GROUP_SYSTEMS`.
fn systems() -> u64 {
    let asked = std::env::var("ONBEAT_GROUP_SYSTEMS").ok();
    asked.map_or(600, |count| count.parse().expect("a number"))
}

#[test]
fn groups_are_the_system_that_is_drawn_without_them() {
    let schema = Schema::committed();
    let mut right = 0;
    for seed in 0..systems() {
        let grouped = description(&schema, seed);
        if grouped.groups.is_none() {
            continue;
        }
        let written = Description { groups: None, ..grouped.clone() };
        let [one, other] = [&grouped, &written].map(loaded);
        right += u64::from(one.system.is_some());
        assert_eq!(one.system, other.system, "seed {seed}: {:?}", one.diagnostics);
        assert_eq!(one.diagnostics.len(), other.diagnostics.len(), "seed {seed}");
    }
    println!("{right} right");
    assert!(right >= systems() / 10, "{right}");
}
