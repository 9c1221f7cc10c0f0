//! Groups through the command: what they are short for has the same plan and the same run.

use crate::common::{TestSystem, onbeat, results, run};
use onbeat_hunt::Description;
use onbeat_hunt::draw::without_programs;
use onbeat_hunt::schema::Schema;
use std::path::Path;

/// The description of 1,000 hosts that the documentation has.
fn documented() -> String {
    let document = include_str!("../../../docs/description.md");
    let (_, section) = document.split_once("\n### 1,000 hosts\n").expect("the section");
    let (section, _) = section.split_once("\n## ").expect("another one follows");
    let lines = section.lines().filter_map(|line| line.strip_prefix("    "));
    lines.flat_map(|line| [line, "\n"]).collect()
}

#[test]
fn the_1000_hosts_of_the_documentation_have_a_plan_with_a_bound_for_each() {
    let system = TestSystem::new(&documented());
    let plan = results(&["plan", "."], system.path(), 0);
    let channels = plan["channels"].as_array().expect("channels");
    assert_eq!(channels.len(), 1_000);
    let names = channels.iter().map(|channel| channel["name"].as_str().expect("a name"));
    assert!(names.eq((0..1_000).map(|number| format!("input{number}"))));
    for channel in channels {
        let listeners = channel["listeners"].as_array().expect("listeners");
        let bound = listeners[0]["bound_ns"].as_i64();
        assert!(bound.is_some_and(|bound| bound > 0 && bound < 50_000_000), "{channel}");
    }
}

/// What the command prints and writes of a description, if it succeeds: plan and run.
fn outcome(description: &Description) -> Option<Vec<(String, Vec<u8>)>> {
    let directory = tempfile::tempdir().expect("a directory");
    description.write(directory.path()).expect("written");
    let plan = onbeat().args(["plan", ".", "--json"]).current_dir(directory.path()).output();
    let plan = plan.expect("onbeat runs");
    plan.status.success().then_some(())?;
    let mut all = vec![("plan".to_owned(), plan.stdout)];
    let arguments = ["run", ".", "--duration", "50ms", "--time", "virtual", "--json"];
    let output = onbeat().args(arguments).current_dir(directory.path()).output();
    all.push(("results".to_owned(), output.expect("onbeat runs").stdout));
    files(&directory.path().join("out"), "out", &mut all);
    Some(all)
}

/// All files below a directory, in the order of their names.
fn files(directory: &Path, name: &str, all: &mut Vec<(String, Vec<u8>)>) {
    let mut entries: Vec<_> = directory.read_dir().into_iter().flatten().flatten().collect();
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let (path, name) = (entry.path(), format!("{name}/{}", entry.file_name().display()));
        match path.is_dir() {
            true => files(&path, &name, all),
            false => all.push((name, std::fs::read(path).expect("a file"))),
        }
    }
}

#[test]
fn groups_have_the_plan_and_the_run_of_what_they_are_short_for() {
    let schema = Schema::committed();
    let grouped = |seed: &u64| without_programs(&schema, *seed).groups.is_some();
    let mut compared = 0;
    // As many as it takes, but no more: most are refused.
    for seed in (5_000..).filter(grouped).take(60) {
        if compared == 8 {
            break;
        }
        let one = without_programs(&schema, seed);
        let other = Description { groups: None, ..one.clone() };
        assert!(one.toml().contains("[[group]]") && !other.toml().contains("[[group]]"));
        let [one, other] = [&one, &other].map(outcome);
        let [Some(one), Some(other)] = [&one, &other] else {
            assert!(one.is_none() && other.is_none(), "seed {seed}");
            continue;
        };
        let names = |of: &[(String, Vec<u8>)]| of.iter().map(|it| it.0.clone()).collect::<Vec<_>>();
        assert_eq!(names(one), names(other), "seed {seed}");
        for ((name, one), (_, other)) in one.iter().zip(other) {
            assert!(one == other, "seed {seed}: {name} differs");
        }
        compared += u64::from(one.len() > 4);
    }
    assert!(compared >= 8, "{compared}");
}

#[test]
fn what_is_wrong_in_a_copy_is_shown_in_the_group() {
    let text = documented().replace("\"rack{rack}\"]", "\"rack{rack + io / 39}\"]");
    let system = TestSystem::new(&text);
    let output = run(&["check", "."], system.path(), 1);
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(said.contains("unknown node `rack25` (rack = 24, io = 39)"), "{said}");
    let line = text.lines().position(|line| line.contains("io / 39")).expect("the line") + 1;
    assert!(said.contains(&format!("system.toml:{line}:")), "{said}");
}
