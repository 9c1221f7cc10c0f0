//! Channels whose class is open, through the command: every verb does what it does for a
//! description with the class that the plan chooses.

use crate::common::{TestSystem, programs, results, run, two_hosts};

/// Two hosts whose channel has a class and a fixed delay.
fn with(class: &str, delay_us: u32, more: &str) -> TestSystem {
    let text = two_hosts(more)
        .replace("class = \"A\"", &format!("class = \"{class}\"\nfixed_delay_us = {delay_us}"));
    TestSystem::new(&text)
}

#[test]
fn every_verb_does_what_it_does_for_the_class_that_is_chosen() {
    for (delay_us, class) in [(300, "B"), (200, "scheduled")] {
        let [open, written] = ["any", class].map(|class| with(class, delay_us, ""));
        let say = |system: &TestSystem, arguments: &[&str]| {
            let output = run(arguments, system.path(), 0);
            String::from_utf8(output.stdout).expect("UTF-8")
        };
        let verbs: [&[&str]; 4] = [
            &["plan", ".", "--json"],
            &["plan", "."],
            &["check", ".", "--json"],
            &["simulate", ".", "--json"],
        ];
        for verb in verbs {
            assert!(say(&open, verb) == say(&written, verb), "{verb:?}, {delay_us} µs");
        }
        let plan = results(&["plan", "."], open.path(), 0);
        let chosen = plan["channels"][0]["class"].as_str().expect("a class");
        assert_eq!(chosen.to_lowercase(), class.to_lowercase(), "{delay_us} µs");
    }
}

#[test]
fn a_run_has_the_records_of_the_class_that_is_chosen() {
    let hash = |class| {
        let system = with(class, 300, &programs("", ""));
        system.program("talker.c", "left").program("listener.c", "right");
        let results = results(&["run", "."], system.path(), 0);
        results["runs"][0]["record_hash"].as_str().expect("a hash").to_owned()
    };
    assert_eq!(hash("any"), hash("B"));
}
