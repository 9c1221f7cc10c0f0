//! `onbeat lf simulate`: its figures against sums done by hand and against the bounds, its
//! verdicts, its exit codes.

use crate::common::{onbeat, results, root, run};
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::Path;
use tempfile::TempDir;

/// A sensor at 100 Hz and a logic with a timer at the same tags, on two stations: D is 2 ms.
fn model(wait: &str, first: &str, second: &str) -> String {
    format!(
        "target C {{ coordination: decentralized, timeout: 1 sec }}
reactor Sensor {{
  output out: int
  timer t(0, 10 ms)
  // @wcet({first})
  reaction(t) {{= =}}
  // @wcet({second})
  reaction(t) -> out {{= =}}
}}
reactor Logic {{
  input in: int
  timer t(0, 10 ms)
  // @wcet(min = 20 us, max = 50 us)
  reaction(in, t) {{= =}}
}}
federated reactor {{
  s = new Sensor()
  {wait}
  l = new Logic()
  s.out -> l.in
}}
"
    )
}

const FIRST: &str = "min = 300 us, max = 300 us";
const SECOND: &str = "min = 100 us, max = 200 us";

/// Tags of the timers up to the timeout, its own too.
const TAGS: i64 = 101;

/// Two hosts and another one at a bridge; `more` is of the hosts of the federates, then anything.
fn network(rate_mbps: u32, more: [&str; 3]) -> String {
    let mut text = "format = 1\n".to_owned();
    for (host, more) in [("s", more[0]), ("l", more[1]), ("third", "")] {
        let _ = writeln!(text, "[[host]]\nname = \"{host}\"\n{more}");
    }
    text.push_str("[[bridge]]\nname = \"b\"\n");
    for host in ["s", "l", "third"] {
        let _ = writeln!(text, "[[link]]\nends = [\"{host}\", \"b\"]\nrate_mbps = {rate_mbps}");
    }
    text + more[2]
}

/// A directory with a model, and a sidecar.
fn directory(model: &str, sidecar: &str) -> TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::write(directory.path().join("model.lf"), model).expect("written");
    let sidecar = if sidecar.is_empty() { "format = 1\n" } else { sidecar };
    std::fs::write(directory.path().join("model.toml"), sidecar).expect("written");
    directory
}

const COMMAND: [&str; 5] = ["lf", "simulate", "model.lf", "--with", "model.toml"];

fn simulated(model: &str, sidecar: &str, more: &[&str], code: i32) -> Value {
    let directory = directory(model, sidecar);
    results(&[&COMMAND[..], more].concat(), directory.path(), code)
}

/// What `lf bounds` says of the same.
fn bounds(model: &str, sidecar: &str) -> Value {
    let directory = directory(model, sidecar);
    let output = onbeat()
        .args(["lf", "bounds", "model.lf", "--with", "model.toml", "--json"])
        .current_dir(directory.path())
        .output()
        .expect("onbeat runs");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn the_worst_run_of_an_idle_chain_is_at_its_bounds_to_the_nanosecond() {
    let model = model("", FIRST, SECOND);
    let found = simulated(&model, "", &["--runs", "1"], 0);
    assert_eq!((&found["verdict"], &found["settings"]["runs"]), (&"within".into(), &1.into()));
    let logic = &found["federates"][1];
    // Execution, D; no message is absent.
    let wait = 300_000 + 200_000 + 2_000_000;
    assert_eq!(logic["maxwait"], wait);
    assert_eq!(logic["maxwait_from"], "computed");
    assert_eq!((&logic["received"], &logic["tardy"]), (&TAGS.into(), &0.into()));
    let chain = &found["chains"][1];
    assert_eq!(chain["reactions"], json!(["s.reaction_2", "l.reaction_1"]));
    assert_eq!(chain["count"], TAGS);
    assert_eq!((&chain["min_ns"], &chain["max_ns"]), (&(wait + 50_000).into(), &chain["worst_ns"]));
    assert_eq!(chain["worst_ns"], wait + 50_000);
    // The best time does not count with what executes before it by its order alone.
    assert_eq!(chain["best_ns"], 100_000 + 2_000_000 + 20_000);
    let connection = &found["connections"][0];
    for key in ["messages", "received"] {
        assert_eq!(connection[key], TAGS, "{key}");
    }
    for key in ["lost", "late", "held", "tardy"] {
        assert_eq!(connection[key], 0, "{key}");
    }
    assert_eq!(connection["sent"]["max_ns"], 500_000);
    assert_eq!(connection["arrival"]["max_ns"], wait);
    let latency = &connection["latency"];
    assert!(latency["max_ns"].as_i64() <= latency["worst_ns"].as_i64(), "{latency}");
    assert!(latency["min_ns"].as_i64() >= latency["best_ns"].as_i64(), "{latency}");
}

#[test]
fn bounds_beside_measurements_are_those_of_lf_bounds() {
    let model = model("@maxwait(9 ms)", FIRST, SECOND);
    let found = simulated(&model, "", &["--maxwait", "computed"], 0);
    let bounds = bounds(&model, "");
    for (at, chain) in bounds["chains"].as_array().expect("chains").iter().enumerate() {
        for key in ["best_ns", "worst_ns", "reactions"] {
            assert_eq!(found["chains"][at][key], chain[key], "{key}");
        }
    }
    for (at, reaction) in bounds["reactions"].as_array().expect("reactions").iter().enumerate() {
        assert_eq!(found["reactions"][at]["finish"]["worst_ns"], reaction["finish_max_ns"]);
        assert_eq!(found["reactions"][at]["release"]["best_ns"], reaction["release_min_ns"]);
    }
    let needs = bounds["federates"][1]["maxwait_ns"].clone();
    assert_eq!(found["federates"][1]["maxwait"], needs);
    assert_eq!(found["connections"][0]["arrival"]["worst_ns"], needs);
    // The model's wait is longer: who waits for what is absent waits that long.
    let stated = simulated(&model, "", &[], 0);
    assert_eq!(stated["federates"][1]["maxwait"], 9_000_000);
    let finish = &stated["reactions"][2]["finish"];
    assert_eq!(finish["max_ns"].as_i64().max(finish["worst_ns"].as_i64()), Some(9_050_000));
}

#[test]
fn a_wait_that_is_too_short_makes_messages_tardy_and_is_named_with_what_is_missing() {
    let directory = directory(&model("@maxwait(1 ms)", FIRST, SECOND), "");
    let arguments = [&COMMAND[..], &["--runs", "2"]].concat();
    let found = results(&arguments, directory.path(), 3);
    let logic = &found["federates"][1];
    assert_eq!((&logic["verdict"], &logic["short_ns"]), (&"too short".into(), &1_500_000.into()));
    assert_eq!(logic["maxwait_from"], "model");
    assert_eq!(logic["tardy"], logic["received"]);
    assert!(logic["tardy"].as_i64() > Some(TAGS), "{logic}");
    // What follows tardy messages has no bound, and is measured all the same.
    let chain = &found["chains"][1];
    assert_eq!((&chain["verdict"], &chain["worst_ns"]), (&"unknown".into(), &Value::Null));
    assert!(chain["max_ns"].is_i64() && chain["unknown"].is_string(), "{chain}");
    let output = run(&arguments, directory.path(), 3);
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(said.contains("were tardy: its @maxwait is too short by 1.5 ms"), "{said}");
    let table = String::from_utf8(output.stdout).expect("UTF-8");
    for wanted in ["TOO SHORT by 1.5 ms", "unknown: messages to `l` may be tardy"] {
        assert!(table.contains(wanted), "{wanted}: {table}");
    }
}

#[test]
fn the_computed_wait_has_no_tardy_message_and_a_microsecond_less_has() {
    // The sensor wakes up 9 µs late at most; a fast one is in time for the shorter wait.
    let sidecar = network(1_000, ["wakeup_ns = { min = 0, max = 9_000 }", "", ""]);
    let of = |wait: &str| model(&format!("@maxwait({wait})"), FIRST, SECOND);
    let needs = 300_000 + 200_000 + 9_000 + 2_000_000;
    let found = bounds(&of("0"), &sidecar);
    assert_eq!(found["federates"][1]["maxwait_ns"], needs);
    let enough = simulated(&of("2509 us"), &sidecar, &[], 0);
    assert_eq!(
        (&enough["verdict"], &enough["federates"][1]["tardy"]),
        (&"within".into(), &0.into())
    );
    let computed = simulated(&of("0"), &sidecar, &["--maxwait", "computed"], 0);
    assert_eq!(computed["federates"][1]["maxwait"], needs);
    assert_eq!(computed["connections"][0]["arrival"]["max_ns"], needs);
    let less = simulated(&of("2508 us"), &sidecar, &[], 3);
    let logic = &less["federates"][1];
    assert_eq!((&logic["verdict"], &logic["short_ns"]), (&"too short".into(), &1_000.into()));
    assert!(logic["tardy"].as_i64() >= Some(1), "{logic}");
    let (tardy, received) = (logic["tardy"].as_i64(), logic["received"].as_i64());
    assert!(tardy < received, "drawn executions are in time: {logic}");
}

#[test]
fn a_reader_whose_clock_is_far_ahead_reads_on_arrival_within_its_bound() {
    // The reader's clock reads the fixed delay before the message is there.
    let ahead = "clock = { offset_ns = 100_000 }";
    let delay = "[[connection]]\nfrom = \"s.out\"\nfixed_delay_us = 100\n";
    let found = simulated(&model("", FIRST, SECOND), &network(1_000, ["", ahead, delay]), &[], 0);
    let connection = &found["connections"][0];
    assert!(connection["late"].as_i64() > Some(0), "{connection}");
    assert_eq!(
        (&connection["punctual"], &connection["verdict"]),
        (&false.into(), &"within".into())
    );
    let arrival = connection["arrival"]["max_ns"].as_i64();
    assert!(arrival > Some(500_000 + 100_000), "the fixed delay alone is no bound");
}

#[test]
fn noise_harms_no_reserved_message_and_loses_others_which_are_counted() {
    let noise = |from: &str, rate: u32| {
        format!(
            "[[noise]]\nname = \"{from}\"\nfrom = \"{from}\"\nto = \"l\"\nrate_mbps = {rate}\n\
             size_octets = 1000\n"
        )
    };
    let noise = noise("third", 95) + &noise("s", 60);
    let model = model("", FIRST, SECOND);
    let found = simulated(&model, &network(100, ["", "", &noise]), &[], 0);
    assert_eq!(found["connections"][0]["lost"], 0);
    let open = noise + "[[connection]]\nfrom = \"s.out\"\nreserve = false\n";
    let found = simulated(&model, &network(100, ["", "", &open]), &[], 6);
    let connection = &found["connections"][0];
    let count = |key: &str| connection[key].as_i64().expect("a count");
    assert!(count("lost") > 10 && count("late") > 10, "{connection}");
    assert_eq!(count("messages"), count("received") + count("lost"));
    assert_eq!(connection["latency"]["worst_ns"], Value::Null);
    assert_eq!(found["federates"][1]["maxwait"], "forever");
    assert_eq!(found["federates"][1]["maxwait_from"], "runtime");
}

#[test]
fn what_a_channels_declared_rate_does_not_allow_waits_and_is_beyond_its_bound() {
    let rate = "format = 1\n[[connection]]\nfrom = \"s.out\"\nrate_hz = 50\n";
    let directory = directory(&model("", FIRST, SECOND), rate);
    let found = results(&[&COMMAND[..], &["--runs", "1"]].concat(), directory.path(), 3);
    let connection = &found["connections"][0];
    // All but the first wait, each an interval of the model longer than the one before.
    assert_eq!((&connection["held"], &connection["lost"]), (&(TAGS - 1).into(), &0.into()));
    assert_eq!(connection["verdict"], "exceeded");
    assert_eq!(found["federates"][1]["verdict"], "broken");
    let output = run(&[&COMMAND[..], &["--runs", "1"]].concat(), directory.path(), 3);
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(
        said.contains("100 messages on s_out_l_in waited for the channel's declared"),
        "{said}"
    );
}

#[test]
fn deadlines_are_missed_where_the_bounds_say_so() {
    let of = |deadline: &str| {
        model("", FIRST, SECOND).replace(
            "reaction(t) -> out {= =}",
            &format!("reaction(t) -> out {{= =}} deadline({deadline}) {{= =}}"),
        )
    };
    // The second reaction starts after the first.
    let met = simulated(&of("300 us"), "", &["--runs", "2"], 0);
    let reaction = &met["reactions"][1];
    assert_eq!((&reaction["deadline"], &reaction["missed"]), (&"met".into(), &0.into()));
    let missed = simulated(&of("299 us"), "", &["--runs", "1"], 3);
    let reaction = &missed["reactions"][1];
    assert_eq!((&reaction["deadline"], &reaction["missed"]), (&"missed".into(), &TAGS.into()));
    assert_eq!(missed["federates"][0]["missed_deadlines"], TAGS);
    // Handlers set nothing, unless it is said that they do.
    assert_eq!(missed["connections"][0]["messages"], 0);
    let set = simulated(&of("299 us"), "", &["--runs", "1", "--handlers-set"], 3);
    assert_eq!(set["connections"][0]["messages"], TAGS);
}

#[test]
fn messages_within_a_station_take_what_is_said_or_are_not_known() {
    let text = model("", FIRST, SECOND);
    let text = text.replace("new Sensor()", "new Sensor() at one");
    let text = text.replace("new Logic()", "new Logic() at one");
    let known = simulated(&text, "", &["--runs", "1", "--local", "70us"], 0);
    let connection = &known["connections"][0];
    assert_eq!((&connection["channel"], &connection["latency"]), (&false.into(), &Value::Null));
    assert_eq!(connection["arrival"]["max_ns"], 500_000 + 70_000);
    assert_eq!(connection["arrival"]["worst_ns"], 500_000 + 70_000);
    let unknown = simulated(&text, "", &["--runs", "1"], 6);
    let arrival = &unknown["connections"][0]["arrival"];
    assert_eq!((&arrival["max_ns"], &arrival["worst_ns"]), (&500_000.into(), &Value::Null));
}

#[test]
fn a_reaction_without_an_execution_time_takes_none_and_its_bounds_are_unknown() {
    let text = model("", FIRST, SECOND).replace(&format!("// @wcet({SECOND})\n"), "\n");
    let found = simulated(&text, "", &["--runs", "1"], 6);
    let reaction = &found["reactions"][1];
    assert_eq!(reaction["has_execution_time"], false);
    assert_eq!(reaction["finish"]["max_ns"], 300_000);
    let reason = reaction["finish"]["unknown"].as_str().expect("a reason");
    assert!(reason.contains("s.reaction_2") && reason.contains("execution time"), "{reason}");
}

#[test]
fn clocks_that_a_protocol_steers_execute_and_have_no_bounds() {
    let steered = "[synchronisation]\ngrandmaster = \"third\"\nin_run = true\n";
    let model = model("@maxwait(5 ms)", FIRST, SECOND);
    let found = simulated(&model, &network(1_000, ["", "", steered]), &["--runs", "2"], 6);
    let logic = &found["federates"][1];
    assert_eq!((&logic["tardy"], &logic["verdict"]), (&0.into(), &"unknown".into()));
    assert!(logic["received"].as_i64() > Some(TAGS), "{logic}");
}

#[test]
fn equal_seeds_give_equal_octets_and_other_seeds_others() {
    let sidecar = network(1_000, ["wakeup_ns = { min = 0, max = 9_000 }", "", ""]);
    let directory = directory(&model("", FIRST, SECOND), &sidecar);
    let octets = |out: &str, seed: &str| -> Vec<Vec<u8>> {
        let more = ["--seed", seed, "--runs", "4", "--json", "--out", out];
        let printed = run(&[&COMMAND[..], &more].concat(), directory.path(), 0).stdout;
        let files = ["federation.json", "federation.html", "federation.csv"];
        let files = files.map(|name| {
            std::fs::read(directory.path().join(out).join(name)).expect("it was written")
        });
        std::iter::once(printed).chain(files).collect()
    };
    let first = octets("first", "8");
    assert_eq!(first, octets("second", "8"));
    assert_eq!(first[0], first[1], "what is printed is what is written");
    let other = octets("first", "9");
    assert!((0..4).all(|at| first[at] != other[at]), "another seed");
}

#[test]
fn the_page_and_the_csv_have_a_line_for_each_chain() {
    let directory = directory(&model("", FIRST, SECOND), "");
    let found = results(&[&COMMAND[..], &["--out", "out"]].concat(), directory.path(), 0);
    let read = |name: &str| {
        std::fs::read_to_string(directory.path().join("out").join(name)).expect("written")
    };
    let page = read("federation.html");
    let chains = found["chains"].as_array().expect("chains");
    assert_eq!(page.matches("<svg class=\"range\"").count(), chains.len());
    assert_eq!(page.matches("<rect class=\"span\"").count(), chains.len());
    let csv = read("federation.csv");
    for chain in chains {
        let names: Vec<_> = chain["reactions"].as_array().expect("names").iter().collect();
        let names: Vec<_> = names.iter().map(|name| name.as_str().expect("a name")).collect();
        let figures = ["count", "min_ns", "max_ns", "best_ns", "worst_ns"];
        let figures = figures.map(|key| chain[key].to_string()).join(",");
        let line = format!("chain,{},{figures},within", names.join(" → "));
        assert!(csv.lines().any(|found| found == line), "{line}: {csv}");
    }
    // Nothing else is replaced.
    std::fs::write(directory.path().join("out/mine.txt"), "mine").expect("written");
    let output = run(&[&COMMAND[..], &["--out", "out"]].concat(), directory.path(), 5);
    assert!(String::from_utf8_lossy(&output.stderr).contains("onbeat lf simulate"));
}

#[test]
fn what_cannot_be_executed_is_refused_with_its_reason() {
    let good = model("", FIRST, SECOND);
    let refused = |model: &str, sidecar: &str, more: &[&str], code: i32| -> String {
        let directory = directory(model, sidecar);
        let output = run(&[&COMMAND[..], more].concat(), directory.path(), code);
        String::from_utf8(output.stderr).expect("UTF-8")
    };
    for more in [["--runs", "0"], ["--duration", "31days"], ["--duration", "0"]] {
        refused(&good, "", &more, 2);
    }
    refused(&good, "", &["--maxwait", "best"], 2);
    refused(&good, "", &["--local", "soon"], 2);
    let main = good.replace("federated reactor", "main reactor");
    assert!(refused(&main, "", &[], 1).contains("OB1505"));
    let empty = "target C\nreactor Nothing { }\nfederated reactor { a = new Nothing() }\n";
    let said = refused(empty, "", &[], 1);
    assert!(said.contains("OB1519") && said.contains("model.lf:3"), "{said}");
    // Hosts that no link joins.
    let apart = "format = 1\n[[host]]\nname = \"s\"\n[[host]]\nname = \"l\"\n";
    assert!(refused(&good, apart, &[], 1).contains("error[OB"));
    let unplaced = apart.replace("\"l\"", "\"elsewhere\"");
    assert!(refused(&good, &unplaced, &[], 1).contains("OB1514"));
    let central = good.replace("decentralized", "centralized");
    assert!(refused(&central, "", &[], 0).contains("without the RTI"));
    let place = tempfile::tempdir().expect("a directory");
    run(&["lf", "simulate", "nowhere.lf"], place.path(), 5);
}

#[test]
fn what_repeats_at_one_time_without_end_is_cut_and_said() {
    let text = "target C { coordination: decentralized, timeout: 1 sec }
reactor A {
  output out: int
  logical action again
  timer t(0, 10 ms)
  reaction(t, again) -> again, out {= =}
}
reactor B { input in: int  reaction(in) {= =} }
federated reactor { a = new A()  b = new B()  a.out -> b.in }
";
    let rate = "format = 1\n[[connection]]\nfrom = \"a.out\"\ninterval_ns = 1_000_000\n";
    let found = simulated(text, rate, &["--runs", "1"], 6);
    assert_eq!((&found["cut_runs"], &found["verdict"]), (&1.into(), &"unknown".into()));
    assert_eq!(found["federates"][0]["ended_runs"], 0);
}

/// Models of the conformance suite that cannot be executed, and why.
const NOT_EXECUTED: &[(&str, &str)] = &[];

#[test]
fn every_model_of_the_conformance_suite_is_executed_within_its_bounds() {
    let place = root().join("conformance/lf");
    let entries = place.read_dir().expect("models").map(|entry| entry.expect("one").path());
    let mut models: Vec<_> = entries.filter(|p| p.extension().is_some_and(|e| e == "lf")).collect();
    models.sort();
    assert!(models.len() >= 40, "{}", models.len());
    let name = |path: &Path| path.file_name().expect("a name").to_string_lossy().into_owned();
    let (mut wrong, mut messages) = (Vec::new(), 0);
    for model in &models {
        let mut arguments = vec!["lf".to_owned(), "simulate".to_owned(), name(model)];
        let sidecar = model.with_extension("toml");
        if sidecar.exists() {
            arguments.extend(["--with".to_owned(), name(&sidecar)]);
        }
        let more = ["--duration", "300ms", "--runs", "2", "--local", "20us", "--json"];
        arguments.extend(more.map(str::to_owned));
        let output = onbeat().args(&arguments).current_dir(&place).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if let Some((_, why)) = NOT_EXECUTED.iter().find(|(not, _)| *not == name(model)) {
            if !said.contains(why) || output.status.code() != Some(1) {
                wrong.push(format!("{}: it is not refused with {why}: {said}", name(model)));
            }
            continue;
        }
        let Ok(found) = serde_json::from_slice::<Value>(&output.stdout) else {
            wrong.push(format!("{}: {said}", name(model)));
            continue;
        };
        let lists = ["chains", "connections", "reactions", "federates"];
        let all = lists.iter().flat_map(|key| found[*key].as_array().into_iter().flatten());
        let text = all.map(Value::to_string).collect::<String>();
        let is_broken = text.contains("\"exceeded\"") || text.contains("\"broken\"");
        let code = output.status.code();
        if is_broken || found["cut_runs"] != 0 || !matches!(code, Some(0 | 3 | 6)) {
            wrong.push(format!("{}: {code:?} {said} {found:#}", name(model)));
        }
        let connections = found["connections"].as_array().expect("connections").iter();
        messages += connections.map(|one| one["received"].as_i64().unwrap_or(0)).sum::<i64>();
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(messages > 500, "{messages}");
}

/// The lines of a page between a line that begins so and the next line that ends the block.
fn block<'a>(page: &'a str, begin: &str, is_end: impl Fn(&str) -> bool) -> (String, &'a str) {
    let from = page.find(begin).unwrap_or_else(|| panic!("the page has {begin}"));
    let mut length = 0;
    let lines = page[from..].lines().take_while(|line| !is_end(line));
    let text = lines.inspect(|line| length += line.len() + 1).collect::<Vec<_>>().join("\n");
    (text, &page[from + length..])
}

#[test]
fn the_page_shows_what_the_command_prints() {
    let page = std::fs::read_to_string(root().join("docs/lingua-franca.md")).expect("the page");
    let begin = "    target C { coordination: decentralized, timeout: 1 s }";
    let (model, rest) = block(&page, begin, |line| !line.starts_with("    "));
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::write(directory.path().join("model.lf"), model.replace("\n    ", "\n").trim_start())
        .expect("written");
    let simulate = |more: &[&str], code: i32| {
        let arguments = [&["lf", "simulate", "model.lf"], more].concat();
        let output = run(&arguments, directory.path(), code);
        String::from_utf8(output.stdout).expect("text")
    };
    let (shown, rest) = block(rest, "chain ", |line| line == "```");
    assert_eq!(format!("{shown}\n"), simulate(&[], 3));
    let (shown, _) = block(rest, "chain ", |line| line == "```");
    assert_eq!(format!("{shown}\n"), simulate(&["--maxwait", "computed"], 0));
}
