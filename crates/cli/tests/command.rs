//! The command: bad input, files, and what it prints.

use crate::common::{self, TestSystem, onbeat, programs, root, run, two_hosts};
use onbeat_testkit::{Need, not_run};
use std::path::Path;
use std::process::Command;

fn names(directory: &Path) -> Vec<String> {
    let entries = directory.read_dir().expect("a directory").flatten();
    let mut names: Vec<_> = entries.map(|e| e.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Every bad description of crate `model` gives its codes and lines, writes nothing, runs nothing.
#[test]
fn bad_descriptions_each_give_their_own_coded_error_with_the_right_line() {
    let bad = root().join("crates/description/tests/bad");
    let mut kinds = std::collections::BTreeSet::new();
    for name in names(&bad).iter().filter(|n| n.ends_with(".toml")) {
        let directory = tempfile::tempdir().expect("a directory");
        let text = std::fs::read_to_string(bad.join(name)).expect("a description");
        std::fs::write(directory.path().join("system.toml"), &text).expect("written");
        for beside in [".h", ".csv", ".c"].map(|end| name.replace(".toml", end)) {
            if bad.join(&beside).is_file() {
                std::fs::copy(bad.join(&beside), directory.path().join(&beside)).expect("copied");
            }
        }
        let tasks = directory.path().join("tasks");
        std::fs::create_dir(&tasks).expect("a directory");
        for file in names(&bad.join("tasks")) {
            std::fs::copy(bad.join("tasks").join(&file), tasks.join(&file)).expect("copied");
        }
        let before = names(directory.path());
        for verb in ["check", "plan", "run"] {
            let output = run(&[verb, "."], directory.path(), 1);
            let said = String::from_utf8(output.stderr).expect("UTF-8");
            let first = text.lines().next().and_then(|l| l.strip_prefix("# expect: "));
            for expected in first.expect("a declaration").split(", ") {
                let mut words = expected.split(' ');
                let (code, line) = (words.next().expect("a code"), words.nth(1).expect("a line"));
                let file = words.next_back().unwrap_or("system.toml");
                let place = format!("{file}:{line}:");
                assert!(said.contains(&format!("[{code}]")), "{name}: {code} in\n{said}");
                assert!(said.contains(&place), "{name}: {place} in\n{said}");
                kinds.insert(code.to_owned());
            }
        }
        assert_eq!(names(directory.path()), before, "{name} wrote something");
    }
    assert!(kinds.len() >= 14, "{kinds:?}");
}

#[test]
fn a_reservation_above_75_percent_is_an_error_at_the_channel() {
    let crowded = two_hosts("")
        .replace("size_octets = 8", "size_octets = 1400")
        .replace("rate_hz = 1000", "interval_ns = 125000");
    let system = TestSystem::new(&crowded);
    let output = run(&["check", "."], system.path(), 1);
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(said.contains("error[OB2001]") && said.contains("system.toml:"), "{said}");
    for verb in ["check", "plan", "run"] {
        let output = run(&[verb, ".", "--json"], system.path(), 1);
        let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(json["ok"], false, "{verb}");
        assert_eq!(json["diagnostics"][0]["code"], "OB2001", "{verb}");
        assert!(json["diagnostics"][0]["line"].as_u64().is_some_and(|line| line > 20), "{verb}");
    }
}

#[test]
fn a_program_that_is_not_there_is_an_error_at_its_line_and_nothing_is_written() {
    let system = TestSystem::new(&two_hosts(&programs("", "")));
    let output = run(&["run", "."], system.path(), 1);
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(said.contains("error[OB3001]") && said.contains("build/left"), "{said}");
    assert_eq!(names(system.path()), ["system.toml"]);
}

#[test]
fn a_description_that_is_not_there_is_named() {
    let directory = tempfile::tempdir().expect("a directory");
    let output = run(&["check", "nowhere.toml"], directory.path(), 5);
    assert!(String::from_utf8_lossy(&output.stderr).contains("nowhere.toml"));
}

#[test]
fn a_directory_of_somebody_else_is_not_replaced() {
    let system = TestSystem::new(&two_hosts(""));
    let precious = system.path().join("precious");
    std::fs::create_dir(&precious).expect("a directory");
    std::fs::write(precious.join("thesis.tex"), "years of work").expect("written");
    let refused = || {
        let output = run(&["run", ".", "--out", "precious"], system.path(), 5);
        assert!(String::from_utf8_lossy(&output.stderr).contains("not replaced"));
    };
    refused();
    // Not even when it looks a little like ours, or is ours with something of theirs in it.
    std::fs::write(precious.join("results.json"), "{}").expect("written");
    refused();
    run(&["run", ".", "--out", "ours"], system.path(), 0);
    let results = system.path().join("ours/results.json");
    std::fs::copy(results, precious.join("results.json")).expect("copied");
    refused();
    assert_eq!(names(&precious), ["results.json", "thesis.tex"]);
    run(&["run", ".", "--out", "ours"], system.path(), 0);
}

#[test]
fn the_report_made_anew_is_the_report_of_the_run() {
    let system = TestSystem::new(&two_hosts(""));
    run(&["run", "."], system.path(), 0);
    let read = |name| std::fs::read(system.path().join("out").join(name)).expect("a file");
    let (report, results) = (read("report.html"), read("results.json"));
    std::fs::write(system.path().join("out/report.html"), "gone").expect("written");
    run(&["report", "."], system.path(), 0);
    assert!(read("report.html") == report);
    assert_eq!(read("results.json"), results);
    // One bit that is another one makes other figures, or none: neither replaces what is there.
    let records = system.path().join("out/1-run/records.onb");
    let octets = std::fs::read(&records).expect("records");
    for at in (octets.len() / 8..octets.len()).step_by(octets.len() / 8) {
        let mut damaged = octets.clone();
        damaged[at] ^= 0x40;
        std::fs::write(&records, &damaged).expect("written");
        let output = run(&["report", "."], system.path(), 5);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("records.onb"), "octet {at}: {said}");
        assert_eq!(read("results.json"), results, "octet {at}");
    }
}

#[test]
fn the_manifest_that_is_written_compiles_and_says_the_same() {
    let directory = root().join("examples/03-robot-arm");
    let generations = [
        (
            &["manifest", ".", "--c"][..],
            "enum stream_class { SC_TAS = 100000, SC_CLASS_A = 2000000, SC_CLASS_B = 50000000 };
             struct channel_attrs { uint8_t dst[6]; uint64_t stream_id; enum stream_class sc;
               uint16_t size; uint64_t interval_ns; char name[32]; };",
            "nc_channels[2].stream_id == 3 && nc_channels[1].interval_ns == 1000000
             && nc_channels[0].size == 48 && nc_channels[0].sc == SC_CLASS_A
             && strcmp(nc_channels[1].name, \"command\") == 0",
        ),
        (
            &["manifest", ".", "--c", "--first-generation"][..],
            "enum stream_class { CLASS_A, CLASS_B };
             struct net_fifo { uint8_t dst[6]; uint64_t stream_id; enum stream_class class;
               uint16_t size; uint64_t freq; char name[32]; };",
            "net_fifo_chans[2].stream_id == 3 && net_fifo_chans[1].freq == 1000
             && net_fifo_chans[0].size == 48 && net_fifo_chans[0].class == CLASS_A
             && strcmp(net_fifo_chans[1].name, \"command\") == 0",
        ),
    ];
    for (arguments, declarations, holds) in generations {
        let output = run(arguments, &directory, 0);
        let work = tempfile::tempdir().expect("a directory");
        std::fs::write(work.path().join("manifest.h"), &output.stdout).expect("written");
        let program = format!(
            "#include <stdint.h>\n#include <string.h>\n{declarations}\n#include \"manifest.h\"\n\
             int main(void) {{ return !({holds}); }}\n"
        );
        std::fs::write(work.path().join("main.c"), program).expect("written");
        let built = Command::new("cc")
            .args(["-std=c11", "-Wall", "-Werror", "main.c", "-o", "main"])
            .current_dir(work.path())
            .output()
            .expect("a C compiler");
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        assert!(Command::new(work.path().join("main")).status().expect("runs").success());
    }
}

#[test]
fn a_program_outside_of_a_run_says_how_to_start_it() {
    let system = TestSystem::new(&two_hosts(&programs("", "")));
    system.program("talker.c", "left");
    let output = Command::new(system.path().join("build/left"))
        .env_remove("ONBEAT_COORDINATOR")
        .output()
        .expect("runs");
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("onbeat run"));
}

#[test]
fn the_schemas_that_are_printed_are_the_ones_in_the_tree() {
    for kind in [
        "system",
        "machines",
        "tasks",
        "lf-sidecar",
        "lf-federation",
        "lf-simulation",
        "results",
        "simulation",
        "tfg",
    ] {
        let file = format!("{kind}.schema.json");
        let output = onbeat().args(["schema", kind]).output().expect("onbeat runs");
        let committed = std::fs::read(root().join("schema").join(&file)).expect("the schema");
        assert!(output.stdout == committed, "{file}");
    }
}

#[test]
fn a_link_over_which_gptp_brings_no_clock_in_sync_is_named_with_its_place() {
    let system = TestSystem::new(include_str!("found/synchronised-over-seconds/system.toml"));
    for verb in ["check", "plan", "bounds", "simulate"] {
        let found = common::results(&[verb, "."], system.path(), 1);
        let error = &found["diagnostics"][0];
        assert_eq!((&error["code"], &error["line"]), (&"OB2016".into(), &25.into()), "{found}");
        let message = error["message"].as_str().expect("a text");
        assert!(message.contains("link s.p2–b.p1") && message.contains("10 s"), "{message}");
    }
    let output = run(&["check", "."], system.path(), 1);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("error[OB2016]") && said.contains("system.toml:25:8"), "{said}");
}

/// A ring of three bridges, two of which have hosts, and so many channels from one to the other.
fn ring(routing: &str, channels: usize) -> TestSystem {
    let mut text = format!("format = 1\nname = \"ring\"\nrouting = \"{routing}\"\n[run]\n");
    text += "duration_ms = 200\n[[host]]\nname = \"a\"\n[[host]]\nname = \"b\"\n";
    for bridge in ["s", "t", "u"] {
        text += &format!("[[bridge]]\nname = \"{bridge}\"\nforwarding_ns = 2000\n");
    }
    for ends in ["a\", \"s", "b\", \"t", "s.t\", \"t.s", "s.u\", \"u.s", "t.u\", \"u.t"] {
        let rate = if ends.contains('.') { 100 } else { 1_000 };
        text += &format!("[[link]]\nends = [\"{ends}\"]\nrate_mbps = {rate}\n");
    }
    for at in 1..=channels {
        text += &format!("[[channel]]\nname = \"c{at}\"\nclass = \"A\"\nstream_id = {at}\n");
        text += &format!("destination = \"91:e0:f0:00:fe:0{at}\"\nsize_octets = 250\n");
        text += "interval_ns = 125_000\ntalker = \"a\"\nlisteners = [\"b\"]\n";
    }
    TestSystem::new(&text)
}

#[test]
fn channels_leave_a_shortest_path_that_they_overload_and_keep_their_bounds() {
    let system = ring("shortest", 6);
    let output = run(&["plan", "."], system.path(), 1);
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(said.contains("error[OB2001]: port s.t would reserve"), "{said}");
    assert!(said.contains("(`routing = \"load-aware\"`)"), "{said}");

    let system = ring("load-aware", 6);
    let plan = common::results(&["plan", "."], system.path(), 0);
    let path = |at: usize| plan["channels"][at]["listeners"][0]["path"].clone();
    let direct = serde_json::json!(["a.p1", "s.t", "t.p1"]);
    let around = serde_json::json!(["a.p1", "s.u", "u.t", "t.p1"]);
    let count = |of: &serde_json::Value| (0..6).filter(|at| path(*at) == *of).count();
    assert_eq!((count(&direct), count(&around)), (3, 3), "{plan}");
    let table = run(&["plan", "."], system.path(), 0);
    let table = String::from_utf8(table.stdout).expect("UTF-8");
    assert!(table.contains("s.u"), "{table}");
    for verb in ["simulate", "run"] {
        let results = common::results(&[verb, "."], system.path(), 0).to_string();
        assert!(results.contains(":\"kept\"") && !results.contains(":\"broken\""), "{results}");
    }

    let output = run(&["plan", "."], ring("load-aware", 7).path(), 1);
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(said.contains("error[OB2001]") && said.contains("no other paths were found"), "{said}");
    let output = run(&["check", "."], ring("shortes", 1).path(), 1);
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(
        said.contains("system.toml:3:11") && said.contains("did you mean `shortest`"),
        "{said}"
    );
}

#[test]
fn what_changes_from_one_plan_to_the_next_is_said_with_the_nodes_that_it_concerns() {
    let system = ring("load-aware", 3);
    let plan = run(&["plan", ".", "--json"], system.path(), 0);
    std::fs::write(system.path().join("old.json"), plan.stdout).expect("a plan");
    let diff = |expected| {
        let output = run(&["plan", ".", "--diff", "old.json"], system.path(), expected);
        let [shown, said] = [output.stdout, output.stderr];
        (String::from_utf8(shown).expect("UTF-8"), String::from_utf8(said).expect("UTF-8"))
    };
    assert_eq!(
        diff(0).0,
        "0 changed, 0 added, 0 removed, 13 the same\nno node has another configuration\n"
    );
    // One more, for which one has to go around; and one has another name.
    let more = std::fs::read_to_string(ring("load-aware", 4).path().join("system.toml"));
    let text = more.expect("a text").replace("name = \"c2\"", "name = \"new\"");
    std::fs::write(system.path().join("system.toml"), text).expect("written");
    let (shown, _) = diff(0);
    for line in [
        "channel new: added\n",
        "channel c4: added\n",
        "channel c2: removed\n",
        "  path to b: a.p1 s.t t.p1 → a.p1 s.u u.t t.p1\n",
        "  queue 7: strict-priority → credit-based, idleSlope ",
        "\nanother configuration: a, b, s, t, u\n",
    ] {
        assert!(shown.contains(line), "{line}\n{shown}");
    }
    let found = common::results(&["plan", ".", "--diff", "old.json"], system.path(), 0);
    assert_eq!(
        (&found["format"], &found["version"]),
        (&"onbeat-plan-difference".into(), &1.into())
    );
    assert_eq!(found["nodes"], serde_json::json!(["a", "b", "s", "t", "u"]));
    let items = found["items"].as_array().expect("items");
    let of = |name: &str| items.iter().find(|item| item["name"] == name).expect("it");
    assert_eq!((&of("c2")["change"], &of("c2")["kind"]), (&"removed".into(), &"channel".into()));
    assert_eq!(of("s.u")["fields"][0]["before"], "strict-priority");

    for (text, why) in [
        ("{}", "it is no plan: missing field `format`"),
        ("{\"format\": \"onbeat-results\", \"version\": 1}", "it is `onbeat-results`, not"),
        ("{\"format\": \"onbeat-plan\", \"version\": 2}", "a plan of version 2, and 1 is read"),
        ("{\"format\": \"onbeat-plan\", \"version\": 1}", "missing field `system`"),
        ("[", "it is no plan"),
    ] {
        std::fs::write(system.path().join("old.json"), text).expect("written");
        let (shown, said) = diff(2);
        assert!(shown.is_empty() && said.contains("old.json: ") && said.contains(why), "{said}");
    }
    std::fs::remove_file(system.path().join("old.json")).expect("removed");
    assert!(diff(5).1.contains("old.json: No such file"));
}

/// Scheduled channels `c0`, `c1`, … from `a` to `b`, with these sizes; of which `left_out` is not.
fn timetable(sizes: &[u32], left_out: Option<usize>) -> String {
    let mut text = two_hosts("");
    for (at, size) in sizes.iter().enumerate().filter(|(at, _)| Some(*at) != left_out) {
        text += &format!(
            "[[channel]]\nname = \"c{at}\"\ndestination = \"91:e0:f0:00:fd:{at:02x}\"\n\
             stream_id = {}\nclass = \"scheduled\"\nsize_octets = {size}\n\
             interval_ns = 500_000\nfixed_delay_us = 900\ntalker = \"a\"\n\
             listeners = [\"b\"]\n",
            at + 100,
        );
    }
    text
}

#[test]
fn channels_stay_where_they_were_and_only_what_has_changed_gets_a_new_place() {
    let system = TestSystem::new(&timetable(&[1_000, 200, 300], None));
    let description = system.path().join("system.toml");
    let old = run(&["plan", ".", "--json"], system.path(), 0).stdout;
    std::fs::write(system.path().join("old.json"), &old).expect("a plan");
    let plan = |more: &[&str]| {
        let output = run(&[&["plan", ".", "--json"], more].concat(), system.path(), 0);
        let said = String::from_utf8(output.stderr).expect("UTF-8");
        (serde_json::from_slice::<serde_json::Value>(&output.stdout).expect("JSON"), said)
    };
    let launch = |plan: &serde_json::Value, name: &str| {
        let channels = plan["channels"].as_array().expect("channels").iter();
        channels.clone().find(|it| it["name"] == name).expect("it")["launch"].clone()
    };
    let old: serde_json::Value = serde_json::from_slice(&old).expect("JSON");
    // The first is gone, and one more has come: without --keep the others move to its place.
    let text = timetable(&[1_000, 200, 300, 400], Some(0));
    std::fs::write(&description, text).expect("written");
    let (bare, _) = plan(&[]);
    assert_ne!(launch(&bare, "c1"), launch(&old, "c1"));
    let (kept, said) = plan(&["--keep", "old.json"]);
    assert!(said.contains("onbeat: 3 of 3 channels stay where they were"), "{said}");
    for name in ["c1", "c2"] {
        assert_eq!(launch(&kept, name), launch(&old, name));
    }
    std::fs::write(system.path().join("new.json"), kept.to_string()).expect("written");
    let diff = run(&["plan", ".", "--keep", "new.json", "--diff", "new.json"], system.path(), 0);
    assert!(String::from_utf8_lossy(&diff.stdout).starts_with("0 changed, 0 added"), "{diff:?}");
    for verb in ["simulate", "run"] {
        let results = common::results(&[verb, ".", "--keep", "new.json"], system.path(), 0);
        let results = results.to_string();
        assert!(results.contains(":\"kept\"") && !results.contains(":\"broken\""), "{results}");
    }
    let bounds = common::results(&["bounds", ".", "--keep", "new.json"], system.path(), 0);
    assert_eq!(bounds["flows"][1]["name"], "c1", "{bounds}");
    // A channel that has grown gives way; numbers from anywhere do no harm.
    let text = timetable(&[1_000, 1_200, 300], Some(0));
    std::fs::write(&description, text).expect("written");
    let (grown, said) = plan(&["--keep", "old.json"]);
    assert!(said.contains("onbeat: 2 of 3 channels stay where they were"), "{said}");
    assert_eq!(launch(&grown, "c2"), launch(&old, "c2"));
    let wild = old.to_string().replace("\"start_ns\":", "\"start_ns\":922337203685");
    std::fs::write(system.path().join("old.json"), wild).expect("written");
    assert!(plan(&["--keep", "old.json"]).1.contains("onbeat: 1 of 3"));
    // Without gates at the talker, where its launch time counts itself.
    let text =
        timetable(&[1_000], None).replace("name = \"a\"\n[", "name = \"a\"\ndevice = \"i210\"\n[");
    let text = text.replace("class = \"A\"\n", "class = \"A\"\nreserve = false\n");
    std::fs::write(&description, text).expect("written");
    let at = "\"at_ns\": 9223372036854775807";
    let wild = format!("{:#}", old).replace("\"at_ns\": 0", at);
    assert!(wild.contains(at), "{wild}");
    std::fs::write(system.path().join("old.json"), wild).expect("written");
    plan(&["--keep", "old.json"]);
    std::fs::write(system.path().join("old.json"), "{}").expect("written");
    let output = run(&["simulate", ".", "--keep", "old.json"], system.path(), 2);
    assert!(String::from_utf8_lossy(&output.stderr).contains("old.json: it is no plan"));
}

#[test]
fn channels_are_admitted_one_at_a_time_and_a_refusal_names_the_port_and_who_is_there() {
    // At 100 Mb/s 1,400 octets take 117 µs of the 500 of each port: four channels of them fit. What
    // is left of the first port is not there when the second has room, for a small one neither.
    let sizes = [1_400, 1_400, 1_400, 1_400, 1_400, 100];
    let system = TestSystem::new(&timetable(&sizes, None));
    let description = system.path().join("system.toml");
    let refused = run(&["plan", "."], system.path(), 1);
    assert!(refused.stdout.is_empty(), "{refused:?}");
    let admitted = run(&["plan", ".", "--admit", "--json"], system.path(), 1);
    let said = String::from_utf8_lossy(&admitted.stderr);
    let plan: serde_json::Value = serde_json::from_slice(&admitted.stdout).expect("JSON");
    let names = |plan: &serde_json::Value, what: &str| {
        let all = plan[what].as_array().cloned().unwrap_or_default();
        let names = all.iter().map(|it| it["name"].as_str().expect("a name").to_owned());
        names.filter(|name| name.starts_with('c') && name.len() == 2).collect::<Vec<_>>()
    };
    assert_eq!(names(&plan, "channels"), ["c0", "c1", "c2", "c3"], "{said}");
    assert_eq!(names(&plan, "refused"), ["c4", "c5"]);
    let why = "`c4` found no place: port a.p1 has no room for it beside `c0`, `c1`, `c2`, `c3`";
    assert!(said.contains(why) && said.contains(" channels are admitted"), "{said}");
    assert_eq!(plan["refused"][0]["code"], "OB2002");
    // Where there is room again, who was admitted does not move for another.
    std::fs::write(system.path().join("old.json"), &admitted.stdout).expect("written");
    std::fs::write(&description, timetable(&sizes, Some(1))).expect("written");
    let again = run(&["plan", ".", "--admit", "--keep", "old.json", "--json"], system.path(), 1);
    let again: serde_json::Value = serde_json::from_slice(&again.stdout).expect("JSON");
    assert_eq!(names(&again, "refused"), ["c5"]);
    let launch = |plan: &serde_json::Value, name: &str| {
        let channels = plan["channels"].as_array().expect("channels").clone();
        channels.iter().find(|it| it["name"] == name).expect("it")["launch"].clone()
    };
    for name in ["c0", "c2", "c3"] {
        assert_eq!(launch(&again, name), launch(&plan, name), "{name}");
    }
    // What was admitted is a plan like any other.
    std::fs::write(system.path().join("new.json"), again.to_string()).expect("written");
    std::fs::write(&description, timetable(&sizes[..5], Some(1))).expect("written");
    let whole = run(&["plan", ".", "--keep", "new.json", "--json"], system.path(), 0);
    let whole: serde_json::Value = serde_json::from_slice(&whole.stdout).expect("JSON");
    for name in ["c0", "c2", "c3", "c4"] {
        assert_eq!(launch(&again, name), launch(&whole, name), "{name}");
    }
    let all = run(&["plan", ".", "--admit"], system.path(), 0);
    assert!(String::from_utf8_lossy(&all.stderr).contains("channels are admitted"), "{all:?}");
    run(&["plan", ".", "--admit", "--unprotected"], system.path(), 2);
}

#[test]
fn the_page_of_a_plan_is_written_beside_its_table() {
    let lists = "[{ entries = [{ open = [0, 7], interval_ns = 100_000 }] }]";
    let system =
        TestSystem::new(&two_hosts(&format!("[[port]]\nname = \"s.p1\"\ngates = {lists}\n")));
    let output = run(&["plan", ".", "--json", "--html", "plan.html"], system.path(), 0);
    assert_eq!(output.stdout, run(&["plan", ".", "--json"], system.path(), 0).stdout);
    let page = std::fs::read_to_string(system.path().join("plan.html")).expect("a page");
    assert!(page.contains("<canvas") && page.contains("\"label\":\"s.p1\""), "{page}");
    run(&["plan", ".", "--html", "not/there.html"], system.path(), 5);
}

#[test]
fn a_bridge_that_cannot_be_configured_costs_no_host_its_table() {
    let lists = "[{ entries = [{ open = [0, 7], interval_ns = 100_000 }] }, \
        { base_time_ns = 1000, entries = [{ open = [0, 7], interval_ns = 100_000 }] }]";
    let port = format!("[[port]]\nname = \"s.p1\"\ngates = {lists}\n");
    let system = TestSystem::new(&two_hosts(&port));
    let output = run(&["plan", ".", "--deploy", "tables"], system.path(), 0);
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(said.contains("no configuration of `s`: s.p1 has 2 gate control lists"), "{said}");
    let managed = names(&system.path().join("tables"));
    let managed = managed.into_iter().filter(|name| name.contains("yang") || name.contains("chan"));
    let all =
        ["a.channels", "a.yang.json", "a.yang.xml", "b.channels", "b.yang.json", "b.yang.xml"];
    assert_eq!(managed.collect::<Vec<_>>(), all);
}

#[test]
fn a_program_on_an_interface_reads_the_deployed_table_of_its_host() {
    let system = TestSystem::new(&two_hosts(""));
    // Again over the same tables: the description may have changed.
    for _ in 0..2 {
        run(&["plan", ".", "--deploy", "tables"], system.path(), 0);
    }
    let tables = system.path().join("tables");
    let mut all = vec!["a.channels".to_owned(), "b.channels".to_owned()];
    for node in ["a", "b", "s", "s.filtering"] {
        all.extend(["json", "xml"].map(|kind| format!("{node}.yang.{kind}")));
    }
    all.extend(["a", "b", "s"].map(|node| format!("{node}.networkd")));
    // Host b sends nothing.
    all.extend(["a.ip", "a.tc", "b.ip", "s.bridge", "s.ip", "s.tc"].map(str::to_owned));
    all.sort();
    assert_eq!(names(&tables), all);
    let configured = std::fs::read_to_string(tables.join("a.yang.json")).expect("a configuration");
    let configured: serde_json::Value = serde_json::from_str(&configured).expect("JSON");
    let interface = &configured["ietf-interfaces:interfaces"]["interface"][0];
    assert_eq!(
        (&interface["name"], &interface["type"]),
        (&"p1".into(), &"iana-if-type:ethernetCsmacd".into())
    );
    let of_a = "\
onbeat-channels 1
# end, channel, destination, stream, VLAN, PCP, octets; ns: interval, tolerance, fixed delay
system test
host a
talker c 01:00:5e:00:00:01 0x0000000000000001 2 3 8 1000000 125000 2000000
end 1
";
    let read = |name: &str| std::fs::read_to_string(tables.join(name)).expect("a table");
    assert_eq!(read("a.channels"), of_a);
    assert_eq!(read("b.channels"), of_a.replace("host a", "host b").replace("talker", "listener"));

    if !onbeat::interface::Interface::named("lo").is_ok_and(|interface| interface.up) {
        return not_run(Need::Machine, "interface lo is down");
    }
    system.program("opens.c", "opens");
    let opens = |table: &str, end: &str| {
        let output = Command::new(system.path().join("build/opens"))
            .arg(end)
            .env_remove("ONBEAT_COORDINATOR")
            .envs([("ONBEAT_INTERFACE", "lo"), ("ONBEAT_TRANSPORT", "udp4")])
            .env("ONBEAT_SYSTEM", system.path().join(table))
            .output()
            .expect("the program runs");
        // What it says of the clock of such an interface is another matter.
        let said = String::from_utf8(output.stderr).expect("UTF-8");
        (output.status.code(), said)
    };
    let says = |table: &str, end: &str, expected: &[&str]| {
        let (code, said) = opens(table, end);
        assert_eq!(code, Some(1), "{table} {end}: {said}");
        assert!(expected.iter().all(|part| said.contains(part)), "{table} {end}: {said}");
    };
    assert_eq!(opens("tables/a.channels", "talker").0, Some(0));
    assert_eq!(opens("tables/b.channels", "listener").0, Some(0));
    says("tables/b.channels", "talker", &["host `b` is not a talker of `c`"]);
    says("tables/c.channels", "talker", &["ONBEAT_SYSTEM", "tables/c.channels", "No such file"]);
    for description in [".", "system.toml", "tables"] {
        let expected = ["is no table", "`onbeat plan SYSTEM --deploy DIRECTORY`"];
        says(description, "talker", &expected);
    }
    std::fs::write(tables.join("a.channels"), &of_a[..of_a.len() - 6]).expect("written");
    says("tables/a.channels", "talker", &["its end is missing"]);

    // What somebody else has put there is not lost: half a table is no table.
    let output = run(&["plan", ".", "--deploy", "tables"], system.path(), 5);
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(said.contains("something else than the output of a deployment"), "{said}");
    assert_eq!(names(system.path()), ["build", "system.toml", "tables"]);
}

/// What a user has written is not lost by a slip of the hand.
#[test]
fn outputs_replace_only_their_like() {
    let system = TestSystem::new(&two_hosts(""));
    let text = |name: &str| std::fs::read(system.path().join(name)).expect("it is there");
    std::fs::write(system.path().join("a.c"), "int main(void) { return 0; }\n").expect("written");
    for (arguments, file, code) in [
        (&["plan", ".", "--html", "system.toml"][..], "system.toml", 5),
        (&["import", "a.c", "--streams", "a.c", "-o", "a.c"], "a.c", 2),
        (&["cc", "a.c", "-o", "a.c"], "a.c", 2),
    ] {
        let before = text(file);
        run(arguments, system.path(), code);
        assert_eq!(text(file), before, "{arguments:?}");
    }
    // Twice: the second page replaces the first.
    for _ in 0..2 {
        run(&["plan", ".", "--html", "page.html"], system.path(), 0);
    }
    assert!(text("page.html").starts_with(b"<!"));
}
