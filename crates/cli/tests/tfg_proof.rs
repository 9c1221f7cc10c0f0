//! What `onbeat tfg` promises for ever is proven, and what is promised alone is promised together.

use crate::common::{self, TestSystem, number, root};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Iterations asked for: the answer may not depend on them.
const ITERATIONS: [&str; 4] = ["20", "60", "200", "1000"];

fn cases() -> PathBuf {
    root().join("crates/cli/tests/tfg_proof")
}

/// What it prints, and its exit code: the verdict's.
fn tfg(arguments: &[&str], directory: &Path) -> (String, i32) {
    let mut command = common::onbeat();
    command.arg("tfg").args(arguments).current_dir(directory);
    let output = command.output().expect("onbeat runs");
    let code = output.status.code().expect("it ends");
    assert!([0, 3, 6].contains(&code), "{}", String::from_utf8_lossy(&output.stderr));
    (String::from_utf8(output.stdout).expect("UTF-8"), code)
}

fn json(arguments: &[&str], directory: &Path) -> (Value, i32) {
    let (text, code) = tfg(&[arguments, &["--json"]].concat(), directory);
    (serde_json::from_str(&text).expect("JSON"), code)
}

fn list(value: &Value) -> &[Value] {
    value.as_array().expect("a list")
}

/// The verdicts of a case, whatever iterations are asked for, each with its exit code.
fn verdicts(case: &str) -> Vec<(String, i32)> {
    let one = |iterations: &&str| {
        let (found, code) = json(&[case, "--iterations", iterations], &cases());
        let verdict = found["verdict"].as_str().expect("a word").to_owned();
        assert_eq!(found["composable"], verdict == "composable", "{case}");
        assert_eq!(found["unproven_within"].is_null(), verdict != "unproven", "{case}");
        assert_eq!(code, if verdict == "unproven" { 6 } else { 0 }, "{case}");
        (verdict, code)
    };
    ITERATIONS.iter().map(one).collect()
}

#[test]
fn without_a_proof_it_is_said_for_how_many_iterations_a_bound_holds() {
    for case in ["t10.toml", "t20.toml"] {
        assert_eq!(verdicts(case), vec![("unproven".to_owned(), 6); 4], "{case}");
        let (text, _) = tfg(&[case, "--iterations", "20"], &cases());
        let first = text.lines().next().expect("a line");
        assert!(first.starts_with("Not proven beyond that"), "{text}");
        assert!(first.contains("for the first 20 iterations"), "{text}");
    }
    let (text, _) = tfg(&["t10.toml"], &cases());
    assert!(text.contains("the times of A are ever less certain"), "{text}");
    let (text, _) = tfg(&["t20.toml"], &cases());
    assert!(text.contains("the channel s may be full"), "{text}");
}

#[test]
fn a_check_warns_of_times_that_are_proven_for_the_first_iterations_only() {
    let system = TestSystem::new(
        r#"
        format = 1
        name = "x"
        run = { duration_s = 1 }
        host = [{ name = "a" }, { name = "b" }]
        link = [{ ends = ["a", "b"], rate_mbps = 100 }]
        [[program]]
        name = "p"
        host = "a"
        command = ["true"]
        tasks = "t20.toml"
        "#,
    );
    std::fs::copy(cases().join("t20.toml"), system.path().join("t20.toml")).expect("copied");
    let found = common::results(&["check", "."], system.path(), 0);
    let warning = list(&found["diagnostics"]).iter().find(|found| found["code"] == "OB5009");
    let warning = warning.unwrap_or_else(|| panic!("{found}"));
    assert_eq!((&warning["severity"], &warning["line"]), (&"warning".into(), &8.into()));
    let message = warning["message"].as_str().expect("a text");
    assert!(message.contains("`A`, `R`") && message.contains("s may be full"), "{message}");
    let said = common::run(&["check", "."], system.path(), 0).stderr;
    assert!(String::from_utf8_lossy(&said).contains("OB5009"));
    // A proven one gives none.
    let said = common::run(&["check", "composition"], &cases(), 0).stderr;
    assert!(!String::from_utf8_lossy(&said).contains("OB5009"));
}

#[test]
fn hosts_of_one_name_that_are_linked_differently_are_refused_by_it() {
    let (one, other) = (with_another(None), with_another(None));
    let file = other.path().join("system.toml");
    let text = std::fs::read_to_string(&file).expect("a description");
    // The first link is that of `a`.
    std::fs::write(file, text.replacen("rate_mbps = 1000", "rate_mbps = 100", 1)).expect("written");
    let [one, other] = [&one, &other].map(|copy| copy.path().to_str().expect("UTF-8"));
    let output = common::run(&["tfg", one, other], Path::new("/"), 2);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("described differently: node `a` is a host linked to `sw`"), "{said}");
    assert!(said.contains(&format!("(100 Mb/s, 0 ns) in {other}; nodes of one name")), "{said}");
}

#[test]
fn what_goes_wrong_after_a_thousand_rounds_is_never_composable() {
    let found = verdicts("not_composable_late.c");
    assert!(found.iter().all(|(verdict, _)| verdict != "composable"), "{found:?}");
}

#[test]
fn a_channel_that_several_write_and_one_always_reads_is_never_full() {
    assert_eq!(verdicts("t01.toml"), vec![("composable".to_owned(), 0); 4]);
    for iterations in ITERATIONS {
        let (found, _) = json(&["t01.toml", "--iterations", iterations], &cases());
        assert_eq!(found["program"]["troubles"], Value::Array(Vec::new()));
        assert!(list(&found["program"]["rows"]).iter().all(is_exact));
    }
}

#[test]
fn a_read_that_may_be_aborted_leaves_no_more_than_one_message_behind() {
    for iterations in ITERATIONS {
        let (found, _) = json(&["t10c.toml", "--iterations", iterations], &cases());
        assert_eq!(found["program"]["troubles"], Value::Array(Vec::new()));
        assert_eq!(found["platform"]["troubles"], Value::Array(Vec::new()));
    }
    assert_eq!(verdicts("t10c.toml"), vec![("composable".to_owned(), 0); 4]);
}

fn is_exact(row: &Value) -> bool {
    ["arrival_ns", "release_ns"].iter().all(|of| row[of]["lo"] == row[of]["hi"])
}

#[test]
fn times_stay_exact_where_a_full_channel_loses_values() {
    for iterations in ITERATIONS {
        let (found, _) = json(&["t03.toml", "--iterations", iterations], &cases());
        assert_eq!(found["verdict"], "unproven");
        assert!(list(&found["program"]["rows"]).iter().all(is_exact));
        // It is full at 40 ms: what was written at 10 and 20 ms has been read, 20 and 30 not.
        let troubles = list(&found["program"]["troubles"]);
        assert!(troubles.iter().any(|trouble| trouble["kind"] == "overflow"), "{troubles:?}");
    }
}

/// The tasks of the only processor by name.
fn scheduled<'a>(found: &'a Value, name: &str) -> &'a Value {
    let tasks = list(&found["tasks"]);
    let task = tasks.iter().position(|task| task["name"] == name).expect("the task");
    let all = list(&found["schedules"][0]["tasks"]);
    all.iter().find(|line| line["task"] == task).expect("its line")
}

#[test]
fn a_finite_loop_has_the_rank_that_it_has_in_the_run() {
    let (found, _) = json(&["rm"], &cases());
    let of = |name: &str, key: &str| scheduled(&found, name)[key].clone();
    assert_eq!((of("A", "priority"), of("B", "priority")), (80.into(), 79.into()));
    assert_eq!((of("A", "response_ns"), of("A", "met")), (3_000_000.into(), true.into()));
    // As in the run: released at 0, it arrives at 10 ms, where it may take 6.
    assert_eq!((of("B", "response_ns"), of("B", "met")), (10_000_000.into(), false.into()));
    assert_eq!(found["schedules"][0]["utilisation_ppm"], 500_000);
}

#[test]
fn the_response_is_the_worst_of_all_jobs() {
    let (found, _) = json(&["t22.toml"], &cases());
    let of = |name: &str| number(scheduled(&found, name), "response_ns");
    assert_eq!((of("A"), of("B")), (3_000_000, 8_000_000));
    assert_eq!(number(scheduled(&found, "A"), "slack_ns"), 7_000_000);
}

#[test]
fn a_start_offset_is_no_period() {
    let (text, _) = tfg(&["z"], &cases());
    assert!(text.contains("all deadlines are met; 55.0 % used"), "{text}");
    let output = common::run(&["check", "z"], &cases(), 0);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!said.contains("OB5004") && !said.contains("OB5002"), "{said}");
}

/// A task model on one processor of the host `h`, each an endless loop, the first above the
/// second, and a fifochannel `c` between them.
fn one_processor(name: &str, tasks: [(&str, &str); 2]) -> String {
    let head = format!("format = 1\nname = \"{name}\"\nhost = [{{ name = \"h\", cores = 1 }}]\n");
    let channel = "channel = [{ name = \"c\", kind = \"fifo\", capacity = 4 }]\n";
    let task = |(at, (name, steps)): (usize, &(&str, &str))| {
        let priority = 20 - 10 * at;
        let steps = format!("steps = [{{ loop = \"ever\", steps = [{steps}] }}]");
        format!("[[task]]\nname = \"{name}\"\nhost = \"h\"\npriority = {priority}\n{steps}\n")
    };
    head + channel + &tasks.iter().enumerate().map(task).collect::<String>()
}

#[test]
fn more_than_fits_is_not_met_whatever_the_execution_times() {
    let place = tempfile::tempdir().expect("a directory");
    let writer = r#"{ write = "c", at = "w" }, { soft_ms = 10, at = "p" }"#;
    let reader = r#"{ read = "c", at = "r" }, { work_ms = 40, at = "f" }"#;
    let tasks = one_processor("overload", [("writer", writer), ("reader", reader)]);
    std::fs::write(place.path().join("tasks.toml"), tasks).expect("written");
    let (found, _) = json(&["tasks.toml"], place.path());
    assert_eq!(found["schedules"][0]["utilisation_ppm"], 4_000_000);
    assert_eq!(found["schedules"][0]["scaling_ppm"], 250_000);
    let (text, _) = tfg(&["tasks.toml"], place.path());
    assert!(text.contains("but there is more to do than fits"), "{text}");
}

/// A copy of the chain of three programs, with a task in the first that has nothing to do with it.
fn with_another(period_us: Option<u32>) -> tempfile::TempDir {
    let copy = tempfile::tempdir().expect("a directory");
    for entry in cases().join("composition").read_dir().expect("the case").flatten() {
        let text = std::fs::read_to_string(entry.path()).expect("a file");
        let flags = period_us.map_or("", |_| "\"-DOTHER\"");
        let text = text.replace("cflags = []", &format!("cflags = [{flags}]"));
        let period = period_us.unwrap_or(9_973).to_string();
        let text = text.replace("9973", &period);
        std::fs::write(copy.path().join(entry.file_name()), text).expect("written");
    }
    copy
}

#[test]
fn a_task_beside_a_chain_leaves_its_bound_as_it_is() {
    for period_us in [None, Some(7_000), Some(3_001), Some(9_973)] {
        let copy = with_another(period_us);
        let (found, code) = json(&["."], copy.path());
        let chain = &found["chains"][0];
        assert_eq!(
            (number(chain, "latency_ns.lo"), number(chain, "latency_ns.hi")),
            (8_432, 57_776)
        );
        assert_eq!((&found["verdict"], code), (&"composable".into(), 0), "{period_us:?}");
        let output = common::run(&["check", "."], copy.path(), 0);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!said.contains("OB5003"), "{said}");
    }
}

/// Two task models: a sensor that writes `c` for a processor, and what `%` says.
fn two(second: &str) -> tempfile::TempDir {
    let place = tempfile::tempdir().expect("a directory");
    let sensor = r#"{ write = "c", at = "w" }, { firm_ms = 10, at = "p" }"#;
    let processor = r#"{ read = "c", at = "r" }, { work_ms = 1, at = "f" }"#;
    let first = one_processor("sensing", [("sensor", sensor), ("processor", processor)]);
    std::fs::write(place.path().join("sensing.toml"), first).expect("written");
    std::fs::write(place.path().join("second.toml"), second).expect("written");
    place
}

const BOTH: [&str; 2] = ["sensing.toml", "second.toml"];

#[test]
fn independent_systems_keep_their_times_together() {
    let place = two(r#"
format = 1
name = "logging"
[[host]]
name = "other"
cores = 1
[[task]]
name = "logger"
host = "other"
steps = [{ loop = "ever", steps = [{ work_ms = 2, at = "f" }, { soft_us = 9973, at = "p" }] }]
"#);
    let (found, code) = json(&BOTH, place.path());
    assert_eq!((&found["kept"], code), (&"kept".into(), 0), "{found}");
    assert_eq!(found["together"], "composable");
    for part in list(&found["parts"]) {
        assert_eq!((&part["kept"], &part["in_common"]), (&"kept".into(), &Value::Array(vec![])));
    }
    let (text, _) = tfg(&BOTH, place.path());
    assert!(text.contains("sensing.toml: kept"), "{text}");
}

#[test]
fn who_takes_messages_of_another_system_is_named_by_the_channel() {
    let place = two(r#"
format = 1
name = "spy"
[[host]]
name = "other"
cores = 1
[[channel]]
name = "c"
kind = "fifo"
capacity = 4
[[task]]
name = "writer"
host = "other"
steps = [{ loop = "ever", steps = [{ write = "c", at = "w" }, { soft_ms = 70, at = "p" }] }]
[[task]]
name = "spy"
host = "other"
steps = [{ loop = "ever", steps = [{ read = "c", at = "r" }] }]
"#);
    let (found, code) = json(&BOTH, place.path());
    assert_eq!((&found["kept"], code), (&"broken".into(), 3), "{found}");
    let first = &found["parts"][0];
    assert_eq!(first["kept"], "broken");
    assert_eq!(first["spoilt"][0]["task"], "processor");
    let by = &first["spoilt"][0]["by"][0];
    assert_eq!((&by["what"], &by["name"]), (&"channel".into(), &"c".into()));
    let (text, _) = tfg(&BOTH, place.path());
    assert!(text.contains("sensing.toml: broken") && text.contains(": channel c"), "{text}");
}

#[test]
fn who_shares_a_processor_spoils_the_times_of_code_and_is_named_by_it() {
    let place = two(r#"
format = 1
name = "busy"
[[host]]
name = "h"
cores = 1
[[task]]
name = "busy"
host = "h"
priority = 30
steps = [{ loop = "ever", steps = [{ work_ms = 5, at = "f" }, { soft_ms = 50, at = "p" }] }]
"#);
    let (found, code) = json(&BOTH, place.path());
    assert_eq!((&found["kept"], code), (&"broken".into(), 3), "{found}");
    let spoilt = list(&found["parts"][0]["spoilt"]);
    assert!(spoilt.iter().all(|one| one["level"] == "platform"), "{spoilt:?}");
    let by = &spoilt[0]["by"][0];
    assert_eq!((&by["what"], &by["name"]), (&"processors".into(), &"h".into()));
}

#[test]
fn what_two_systems_describe_differently_is_refused() {
    let place = two(r#"
format = 1
name = "x"
[[host]]
name = "h"
cores = 2
[[task]]
name = "t"
host = "h"
steps = [{ soft_ms = 1, at = "p" }]
"#);
    let output = common::run(&["tfg", BOTH[0], BOTH[1]], place.path(), 2);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("described differently: host `h`"), "{said}");
}

#[test]
fn programs_in_c_are_put_together_too_whatever_their_files_are_called() {
    let place = tempfile::tempdir().expect("a directory");
    std::fs::create_dir(place.path().join("other")).expect("a directory");
    for (name, period) in [("a.c", 10), ("b.c", 7), ("other/a.c", 7)] {
        let text = format!(
            "#include <cilktc.h>\nint fifochannel(c);\n\
             task w() {{ int i = 0; while (1) {{ cwrite(c, i); fdelay({period}, ms); }} }}\n\
             task r() {{ int v; while (1) {{ cread(c, v); }} }}\n\
             int main(void) {{ w(); r(); }}\n"
        );
        std::fs::write(place.path().join(name), text).expect("written");
    }
    for other in ["b.c", "other/a.c"] {
        let (found, code) = json(&["--compose", "a.c", other], place.path());
        assert_eq!((&found["kept"], code), (&"kept".into(), 0), "{found}");
    }
}

#[test]
fn messages_that_find_no_room_on_the_readers_host_are_not_composable() {
    let text = |late: u32| {
        format!(
            r#"
format = 1
name = "behind"
[[host]]
name = "a"
[[host]]
name = "b"
[[channel]]
name = "c"
kind = "network"
capacity = 16
latency_ns = {{ min = 100_000, max = 100_000 }}
[[task]]
name = "writer"
host = "a"
steps = [{{ loop = "ever", steps = [{{ write = "c", at = "w" }}, {{ soft_ms = 1, at = "p" }}] }}]
[[task]]
name = "reader"
host = "b"
steps = [
    {{ soft_ms = {late}, at = "begin" }},
    {{ loop = "ever", steps = [{{ read = "c", at = "r" }}, {{ soft_ms = 1, at = "q" }}] }},
]
"#
        )
    };
    for (late, is_composable) in [(10, true), (20, false), (200, false)] {
        let place = tempfile::tempdir().expect("a directory");
        std::fs::write(place.path().join("tasks.toml"), text(late)).expect("written");
        let (found, code) = json(&["tasks.toml"], place.path());
        assert_eq!(found["verdict"] == "composable", is_composable, "{late}: {}", found["verdict"]);
        assert_eq!(code == 6, found["verdict"] == "unproven", "{late}");
    }
}

#[test]
fn a_start_that_the_table_does_not_come_to_promises_nothing_of_the_task() {
    // As many points as the table has rows for.
    let points: String =
        (0..50_100).map(|at| format!("{{ soft_ms = 1, at = \"p{at}\" }},\n")).collect();
    let text = format!(
        "format = 1\nname = \"late\"\n[[task]]\nname = \"a\"\nsteps = [\n{points}\
         {{ start = \"b\" }},\n{{ loop = \"ever\", steps = [{{ soft_ms = 1, at = \"e\" }}] }},\n]\n\
         [[task]]\nname = \"b\"\nsteps = [\n{{ loop = \"ever\", \
         steps = [{{ soft_ms = 1, at = \"f\" }}] }}]\n"
    );
    let place = tempfile::tempdir().expect("a directory");
    std::fs::write(place.path().join("tasks.toml"), text).expect("written");
    let (found, code) = json(&["tasks.toml"], place.path());
    assert_eq!((&found["verdict"], code), (&"unproven".into(), 6));
}

/// A description of two hosts with one bridge, and a channel of this name that a program writes.
fn described(channel: &str, host: &str) -> String {
    format!(
        r#"
format = 1
name = "{channel}"
[run]
duration_s = 1
[[host]]
name = "{host}"
[[host]]
name = "{host}2"
[[bridge]]
name = "bridge"
[[link]]
ends = ["{host}", "bridge"]
rate_mbps = 1000
[[link]]
ends = ["{host}2", "bridge"]
rate_mbps = 1000
[[channel]]
name = "{channel}"
talker = "{host}"
listeners = ["{host}2"]
destination = "01:00:5e:03:00:01"
stream_id = 1
class = "A"
size_octets = 8
rate_hz = 100
[[program]]
name = "{channel}"
host = "{host}"
command = ["true"]
tasks = "{channel}.toml"
"#
    )
}

#[test]
fn systems_on_one_network_that_was_planned_for_each_alone_keep_nothing_for_certain() {
    let place = tempfile::tempdir().expect("a directory");
    for (name, channel) in [("one.toml", "c"), ("two.toml", "d")] {
        let text = described(channel, &format!("h{channel}"));
        std::fs::write(place.path().join(name), text).expect("written");
        let tasks = format!(
            "format = 1\nname = \"{channel}\"\n[[task]]\nname = \"w\"\nsteps = [\n\
             {{ loop = \"ever\", steps = [{{ write = \"{channel}\" }}, {{ soft_ms = 10 }}] }},\n]\n"
        );
        std::fs::write(place.path().join(format!("{channel}.toml")), tasks).expect("written");
    }
    let (found, code) = json(&["one.toml", "two.toml"], place.path());
    assert_eq!((&found["kept"], code), (&"unproven".into(), 6), "{found}");
    for part in list(&found["parts"]) {
        assert_eq!(part["kept"], "unproven");
        assert_eq!(part["in_common"][0]["what"], "network", "{}", part["in_common"]);
    }
    let apart = described("d", "hd").replace("\"bridge\"", "\"other\"");
    std::fs::write(place.path().join("two.toml"), apart).expect("written");
    let (found, code) = json(&["one.toml", "two.toml"], place.path());
    assert_eq!((&found["kept"], code), (&"kept".into(), 0), "{found}");
}

#[test]
fn who_writes_another_ones_channel_behind_the_table_does_not_keep_it() {
    let place = two(r#"
format = 1
name = "late"
[[host]]
name = "h"
cores = 1
[[channel]]
name = "c"
kind = "fifo"
capacity = 4
[[task]]
name = "late"
host = "h"
priority = 30
steps = [{ loop = "ever", steps = [{ soft_ms = 100_000, at = "p" }, { write = "c", at = "w" }] }]
"#);
    let (found, code) = json(&BOTH, place.path());
    assert_ne!((&found["kept"], code), (&"kept".into(), 0), "{found}");
    assert_ne!(found["parts"][0]["kept"], "kept");
}
