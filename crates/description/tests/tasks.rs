//! Task models as their users see them: what is wrong is told, all at once, at the right place.

use onbeat_description::tasks::{self, TaskModel, limits};
use onbeat_model::codes::{description as shared, tasks as codes};
use onbeat_model::diagnostic::{Diagnostic, Origin, SourceFile};
use onbeat_model::graph::{ChannelKind, NodeKind};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn files(of: &str) -> Vec<(String, String)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tasks").join(of);
    let entries = fs::read_dir(directory).expect("it is there");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let mut files: Vec<_> = paths
        .map(|path| {
            let name = path.file_stem().expect("a file").to_string_lossy().into_owned();
            (name, fs::read_to_string(path).expect("it was listed"))
        })
        .collect();
    files.sort();
    files
}

fn good(name: &str) -> String {
    let file = files("good").into_iter().find(|(file, _)| file == name);
    file.expect("it is there").1
}

fn read(text: &str) -> TaskModel {
    tasks::read(text, "tasks.toml").unwrap_or_else(|wrong| panic!("{}", shown(text, &wrong)))
}

/// Diagnostics as text.
fn shown(text: &str, wrong: &[Diagnostic]) -> String {
    let source = SourceFile { path: "tasks.toml".to_owned(), text: text.to_owned() };
    let line = |at: &Origin| source.line(at.start);
    let mut out = String::new();
    for d in wrong {
        let (at, label) = d.at.as_ref().expect("every diagnostic of a file has a place");
        let words = &text[at.start as usize..at.end as usize];
        let words: String = words.lines().next().unwrap_or("").chars().take(40).collect();
        let _ = writeln!(out, "{} line {}: {}\n  `{words}`: {label}", d.code, line(at), d.message);
        for (at, label) in &d.related {
            let _ = writeln!(out, "  line {}: {label}", line(at));
        }
        let _ = writeln!(out, "  help: {}", d.help);
    }
    out
}

#[test]
fn each_bad_file_gives_exactly_these_diagnostics() {
    for (name, text) in files("bad") {
        let wrong = tasks::read(&text, "tasks.toml").expect_err(&name);
        assert!(wrong.iter().all(|d| !d.help.is_empty() && !d.message.is_empty()), "{name}");
        insta::assert_snapshot!(format!("bad_{name}"), shown(&text, &wrong));
    }
}

#[test]
fn every_code_has_a_bad_file() {
    let mut seen = BTreeSet::new();
    for (_, text) in files("bad") {
        seen.extend(tasks::read(&text, "t").expect_err("it is bad").iter().map(|d| d.code));
    }
    for entry in codes::ALL {
        assert!(seen.contains(&entry.code), "no bad file gives {}", entry.code);
    }
}

#[test]
fn every_key_reaches_the_graph() {
    insta::assert_debug_snapshot!("every_key", read(&good("every-key")));
}

/// A node in short: its place, what follows, and its guard.
fn drawn(file: &TaskModel) -> String {
    let mut out = String::new();
    for task in &file.graph.tasks {
        let _ = writeln!(out, "{}", task.name);
        for (at, node) in task.nodes.iter().enumerate() {
            let guard = node.guard.map_or(String::new(), |guard| format!(" until {guard}"));
            let _ = writeln!(out, "{at} {}: {:?}{guard} {:?}", node.place, node.next, node.kind);
        }
    }
    out
}

#[test]
fn the_control_flow_of_every_step_is_as_drawn() {
    insta::assert_snapshot!("flow", drawn(&read(&good("every-key"))));
}

#[test]
fn listing_3_has_the_nodes_of_the_papers_figure() {
    let file = read(&good("listing-3"));
    let [sensor, processor] = &file.graph.tasks[..] else { panic!("two tasks") };
    let places = |of: &onbeat_model::graph::Task| {
        of.nodes.iter().map(|node| node.place.clone()).collect::<Vec<_>>()
    };
    assert_eq!(places(sensor), ["start", "4", "5", "6"]);
    assert_eq!(places(processor), ["start", "12", "13"]);
    assert_eq!(sensor.nodes[3].next, [1]);
    assert_eq!(processor.nodes[2].next, [1]);
    let guards: Vec<_> = sensor.nodes.iter().map(|node| node.guard).collect();
    assert_eq!(guards, [None, Some(3), Some(3), None]);
    assert!(processor.nodes.iter().all(|node| node.guard.is_none()));
    assert_eq!(file.graph.channels[0].kind, ChannelKind::Fifo { capacity: 1024 });
    assert_eq!(file.chains[0].channels, [0]);
}

#[test]
fn the_models_of_the_examples_are_right() {
    let path = root().join("examples/05-control-loop/listing-3/network.toml");
    let file = read(&fs::read_to_string(path).expect("it is there"));
    let ChannelKind::Network(network) = &file.graph.channels[0].kind else { panic!("a network") };
    assert_eq!(network.latencies.len(), 1);
    assert_eq!(network.interval.as_ns(), 10_000_000);
}

#[test]
fn a_place_that_is_not_stated_is_the_line_and_a_number_for_the_second_of_a_kind() {
    let text = "format = 1\nname = \"x\"\n[[task]]\nname = \"t\"\nsteps = [\n{ soft_ms = 1 }, \
                { work_us = 1 }, { soft_ms = 2 },\n{ soft_ms = 3, at = \"6\" }, { work_us = 2 }]";
    let file = read(text);
    let places: Vec<_> = file.graph.tasks[0].nodes.iter().map(|n| n.place.as_str()).collect();
    assert_eq!(places, ["start", "6", "6", "6.2", "6.3", "7", "end"]);
}

#[test]
fn a_programs_tasks_name_the_channels_of_its_description() {
    let text = "format = 1\nname = \"x\"\n[[channel]]\nname = \"declared\"\n[[channel]]\n\
                name = \"own\"\nkind = \"fifo\"\n[[task]]\nname = \"t\"\nsteps = [\n\
                { read = \"declared\" }, { write = \"own\" }, { read = \"own\" },\n\
                { write = \"undeclared\", wait = true }]";
    let file = tasks::read_program(text, "t.toml", &["undeclared", "declared", "unused"]);
    let graph = file.expect("it is right").graph;
    let named: Vec<_> = graph.channels.iter().map(|c| (c.name.as_str(), &c.kind)).collect();
    assert_eq!(named[0], ("declared", &ChannelKind::Named));
    assert_eq!(named[1], ("own", &ChannelKind::Fifo { capacity: 1024 }));
    assert_eq!(named[2], ("undeclared", &ChannelKind::Named));
    let wrong = tasks::read(text, "t.toml").expect_err("a file by itself has no description");
    let codes: Vec<_> = wrong.iter().map(|d| d.code).collect();
    assert_eq!(codes, [shared::MISSING_KEY, shared::UNKNOWN_CHANNEL]);
}

#[test]
fn what_the_description_says_is_refused_in_a_programs_tasks() {
    let text = "format = 1\nname = \"x\"\n[[host]]\nname = \"h\"\n[[channel]]\nname = \"c\"\n\
                kind = \"ip\"\n[[channel]]\nname = \"d\"\nkind = \"network\"\n[[task]]\n\
                name = \"t\"\nsteps = [{ write = \"c\" }]\n[[chain]]\nname = \"k\"\n\
                channels = [\"c\"]\ndeadline_us = 5";
    let wrong = tasks::read_program(text, "t.toml", &["c"]).expect_err("it is wrong");
    insta::assert_snapshot!("of_program", shown(text, &wrong));
}

#[test]
fn limits_are_enforced() {
    let codes = |text: &str| -> Vec<_> {
        tasks::read(text, "t").expect_err("too much").iter().map(|d| d.code).collect()
    };
    assert_eq!(codes(&"#".repeat(limits::FILE_OCTETS + 1)), [shared::FILE_TOO_LARGE]);
    let steps = "{ gettime = true },".repeat(limits::STEPS);
    let head = "format = 1\nname = \"x\"\n[[task]]\nname = \"t\"\nsteps = [";
    assert!(tasks::read(&format!("{head}{steps}]"), "t").is_ok());
    assert_eq!(codes(&format!("{head}{steps} {{ skip = true }}]")), [shared::TOO_MANY]);
    let deep = format!("{head}{}{}]", "{ critical = [".repeat(5_000), "] }".repeat(5_000));
    assert!(codes(&deep).contains(&shared::SYNTAX));
}

#[test]
fn many_points_that_may_be_next_take_no_time_to_tell() {
    let head = "format = 1\nname = \"x\"\n[[task]]\nname = \"t\"\nsteps = [";
    let work = "{ work_us = 1 },".repeat(30_000);
    let ways: String = (0..30_000).map(|way| format!("[{{ firm_us = {way} }}],")).collect();
    let wrong = tasks::read(&format!("{head}{work} {{ either = [{ways}] }}]"), "t");
    let wrong = wrong.expect_err("which deadline holds?");
    assert_eq!(wrong.iter().map(|d| d.code).collect::<Vec<_>>(), [codes::TWO_DEADLINES]);
    let ways = "[{ soft_us = 5 }],[{ firm_us = 5 }],".repeat(15_000);
    let file = read(&format!("{head}{work} {{ either = [{ways}] }}]"));
    // Way 2 of the fork at 30,001 is the first firm point.
    assert_eq!(file.graph.tasks[0].nodes[1].guard, Some(30_003));
}

/// Run with `ONBEAT_UPDATE=1` to rewrite the schema.
#[test]
fn the_committed_schema_is_the_one_that_the_types_give() {
    let path = root().join("schema/tasks.schema.json");
    if std::env::var_os("ONBEAT_UPDATE").is_some() {
        fs::write(&path, tasks::schema()).expect("the schema can be written");
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == tasks::schema(), "it drifted: run with ONBEAT_UPDATE=1");
}

#[test]
fn every_key_of_the_schema_is_documented_and_in_the_file_with_every_key() {
    let schema: serde_json::Value = serde_json::from_str(&tasks::schema()).expect("JSON");
    let documented = fs::read_to_string(root().join("docs/tasks.md")).expect("it is there");
    let used = format!("\n{}", good("every-key"));
    let tables = schema["$defs"].as_object().expect("definitions").values().chain([&schema]);
    for table in tables {
        for key in table["properties"].as_object().into_iter().flat_map(|p| p.keys()) {
            assert!(documented.contains(&format!("`{key}`")), "{key} is not documented");
            let is_used = ["[[", "{ ", ", ", "\n"].iter().any(|before| {
                used.contains(&format!("{before}{key} =")) || used.contains(&format!("[[{key}]]"))
            });
            let other_unit = ["_s", "_ms", "_us", "_ns"].iter().any(|unit| key.ends_with(unit));
            assert!(is_used || other_unit, "{key} is not in every-key.toml");
        }
    }
}

/// What the steps in the documentation stand in.
const AROUND: &str = r#"
format = 1
name = "x"
[[channel]]
name = "samples"
kind = "ip"
fixed_delay_us = 5
[[task]]
name = "writer"
steps = [{ write = "samples" }]
[[task]]
name = "reader"
steps = [
"#;

#[test]
fn the_examples_of_the_documentation_are_right() {
    let document = fs::read_to_string(root().join("docs/tasks.md")).expect("it is there");
    let examples: Vec<_> = document.split("```toml\n").skip(1).collect();
    assert!(examples.len() > 1);
    for example in examples {
        let text = example.split("```").next().expect("its end");
        if text.starts_with("format") {
            read(text);
        } else {
            read(&format!("{AROUND}{text}]"));
        }
    }
}

proptest! {
    #[test]
    fn any_text_is_read_without_a_panic(text in ".{0,400}") {
        let _ = tasks::read(&text, "t");
    }

    #[test]
    fn a_damaged_file_is_read_without_a_panic_and_what_is_right_is_a_graph(
        cuts in prop::collection::vec((0usize..2_600, 0usize..40, "[\\PC]{0,6}"), 0..4),
        numbers in prop::collection::vec((0usize..100, -2i64..20), 0..3),
    ) {
        let mut text: Vec<char> = good("every-key").chars().collect();
        for (at, length, insert) in cuts {
            let start = at.min(text.len());
            let end = (start + length).min(text.len());
            text.splice(start..end, insert.chars());
        }
        let mut lines: Vec<String> =
            text.into_iter().collect::<String>().lines().map(str::to_owned).collect();
        for (at, number) in numbers {
            if let Some(line) = lines.get_mut(at) {
                *line = line.replacen(|c: char| c.is_ascii_digit(), &number.to_string(), 1);
            }
        }
        if let Ok(file) = tasks::read(&lines.join("\n"), "t") {
            is_whole(&file);
        }
    }
}

/// Every index in a graph leads to something, and branches have both ways.
fn is_whole(file: &TaskModel) {
    let graph = &file.graph;
    for task in &graph.tasks {
        assert!(task.host < graph.hosts.len());
        assert_eq!(task.nodes[0].kind, NodeKind::Start);
        for node in &task.nodes {
            assert!(node.next.iter().all(|next| *next < task.nodes.len()));
            let ways = match &node.kind {
                NodeKind::End => 0..=0,
                NodeKind::Any => 1..=task.nodes.len(),
                NodeKind::Branch(_) => 2..=2,
                _ => 1..=1,
            };
            assert!(ways.contains(&node.next.len()), "{node:?}");
            match &node.kind {
                NodeKind::Read { channel, .. } | NodeKind::Write { channel, .. } => {
                    assert!(*channel < graph.channels.len());
                }
                NodeKind::Run { task } => assert!(*task < graph.tasks.len()),
                NodeKind::Lock(resource)
                | NodeKind::Take(resource)
                | NodeKind::Unlock(resource) => {
                    assert!(*resource < graph.resources.len());
                }
                NodeKind::Set { register, .. } => assert!(*register < task.registers),
                _ => {}
            }
        }
    }
}
