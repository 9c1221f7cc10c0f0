//! Listing 3 of Austad et al. 2023 as it is printed, over an abstract channel: what a description
//! binds it to, `onbeat cc`, `tfg` and `run` of it through the command.

use crate::common::{ONE_HOST, channel, number, onbeat, permitted, results, run};
use serde_json::Value;
use std::path::Path;
use tempfile::TempDir;

/// As it is printed, line for line.
const LISTING: &str = "\
task sensor() {
    int val;
    while(1) {
        val = sense();
        chan_write(val);
        fdelay(10, ms);
    }
}

task processor() {
    while(1) {
        int val = chan_read();
        process(val);
    }
}
";

/// What stands around it: declarations, and behind it functions and the start of the tasks.
const HEADER: &str = "int sense(void);\nvoid process(int val);\n";
const REST: &str = "
int sense(void)
{
	static int n;

	return ++n;
}

static int last;

void process(int val)
{
	/* Messages may be lost where a loaded machine keeps the time. */
	if (val <= last)
		__builtin_abort();
	last = val;
}

int main(void)
{
	sensor();
	processor();
}
";

/// Two hosts and the channel `speed` from the left one to the right one.
const TWO_HOSTS: &str = r#"
format = 1
name = "two-hosts"
[run]
duration_s = 1
[[host]]
name = "left"
[[host]]
name = "right"
[[bridge]]
name = "bridge"
[[link]]
ends = ["left", "bridge"]
rate_mbps = 1000
[[link]]
ends = ["bridge", "right"]
rate_mbps = 1000
[[channel]]
name = "speed"
destination = "01:00:5e:00:00:01"
stream_id = 1
class = "A"
size_octets = 4
rate_hz = 100
talker = "left"
listeners = ["right"]
"#;

/// Both halves of the program, one on each host.
const HALVES: &str = r#"
[[program]]
name = "sensor"
host = "left"
source = ["listing_3.c"]
cflags = ["-include", "around.h"]
channels = [{ name = "chan", channel = "speed" }]
starts = ["sensor"]
[[program]]
name = "processor"
host = "right"
source = ["listing_3.c"]
cflags = ["-include", "around.h"]
channels = [{ name = "chan", channel = "speed" }]
starts = ["processor"]
"#;

/// One program on one host, with a table of its abstract channels, or without.
fn one_host(channels: &str) -> String {
    format!(
        "{ONE_HOST}[[program]]\nname = \"p\"\nhost = \"host\"\nsource = [\"listing_3.c\"]\n\
         cflags = [\"-include\", \"around.h\"]\n{channels}\n"
    )
}

/// A directory with the program and a description.
fn place(description: &str) -> TempDir {
    let place = tempfile::tempdir().expect("a directory");
    let write = |name: &str, text: &str| std::fs::write(place.path().join(name), text);
    write("listing_3.c", &format!("{LISTING}{REST}")).expect("the program");
    write("around.h", HEADER).expect("its header");
    write("system.toml", description).expect("the description");
    place
}

fn fifo() -> TempDir {
    place(&one_host("channels = [{ name = \"chan\", fifo = 4 }]"))
}

fn printed(arguments: &[&str], place: &TempDir) -> String {
    let output = run(arguments, place.path(), 0);
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// What a command that finds something wrong says.
fn refused(arguments: &[&str], directory: &Path, code: i32) -> String {
    let output = run(arguments, directory, code);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!String::from_utf8_lossy(&output.stdout).contains("omposable"), "{said}");
    said
}

/// The instants of an event of a task at a place, in nanoseconds.
fn traced(directory: &Path, program: &str, task: &str, event: &str, place: &str) -> Vec<i64> {
    let path = directory.join("trace").join(format!("{program}.csv"));
    let text = std::fs::read_to_string(path).expect("a trace");
    let rows = text.lines().skip(1).map(|line| line.split(',').collect::<Vec<_>>());
    let mine = rows.filter(|row| row[1] == task && row[2] == event && row[3] == place);
    mine.map(|row| row[0].parse().expect("an instant")).collect()
}

/// Arrivals and releases of a node in the table, in nanoseconds: from and, if bounded, to.
fn computed(study: &Value, task: &str, place: &str, key: &str) -> Vec<(i64, Option<i64>)> {
    let tasks = study["tasks"].as_array().expect("tasks");
    let index = tasks.iter().position(|t| t["name"] == task).expect("the task");
    let rows = study["platform"]["rows"].as_array().expect("rows");
    let node = |row: &&Value| {
        let node = &tasks[index]["nodes"][row["node"].as_u64().expect("a node") as usize];
        row["task"] == index && node["place"] == place
    };
    let interval =
        |row: &Value| (row[key]["lo"].as_i64().expect("a time"), row[key]["hi"].as_i64());
    rows.iter().filter(node).map(interval).collect()
}

const MS: i64 = 1_000_000;

#[test]
fn over_a_fifochannel_the_printed_program_has_table_1() {
    let place = fifo();
    let said = printed(&["tfg", "system.toml", "--iterations", "3"], &place);
    for line in [
        "Composable to its logical timing: every logical time is bounded.",
        "iteration  t_A(c5)  t_R(p6)",
        "1                0       10",
        "2               10       20",
        "3               20       30",
        "iteration  t_A(c12)  t_R(c12)",
        "1                 0         0",
        "2                 0        10",
        "3                10        20",
    ] {
        assert!(said.lines().any(|other| other == line), "no `{line}` in\n{said}");
    }
    let study = results(&["tfg", "system.toml"], place.path(), 0);
    assert_eq!(study["composable"], true);
}

#[test]
fn a_run_over_a_fifochannel_does_what_table_1_says() {
    let place = fifo();
    let arguments = ["run", "system.toml", "--duration", "35ms", "--task-trace", "trace"];
    results(&arguments, place.path(), 0);
    let at = |task, event, line| traced(place.path(), "p", task, event, line);
    assert_eq!(at("sensor", "reach", "5")[..3], [0, 10 * MS, 20 * MS]);
    assert_eq!(at("sensor", "release", "6")[..3], [10 * MS, 20 * MS, 30 * MS]);
    assert_eq!(at("processor", "reach", "12")[..3], [0, 0, 10 * MS]);
    assert_eq!(at("processor", "read", "chan")[..3], [0, 10 * MS, 20 * MS]);
}

#[test]
fn files_alone_are_bound_on_the_command_line() {
    let place = fifo();
    let text = format!("#include \"around.h\"\n{LISTING}{REST}");
    std::fs::write(place.path().join("alone.c"), text).expect("the program");
    let table = printed(&["tfg", "alone.c", "--bind", "chan=fifo", "--iterations", "3"], &place);
    assert!(table.starts_with("Composable"), "{table}");
    assert!(table.lines().any(|line| line == "3                10        20"), "{table}");
    let rest = ["--duration", "35ms", "--task-trace", "trace"];
    run(&[&["run", "alone.c", "--bind", "chan=fifo"][..], &rest].concat(), place.path(), 0);
    let reads = traced(place.path(), "alone", "processor", "read", "chan");
    assert_eq!(reads[..3], [0, 10 * MS, 20 * MS]);
    // What is generated leaves every line where it is.
    let made = printed(&["cc", "-S", "-o", "-", "--bind", "chan=fifo", "alone.c"], &place);
    let body = made.split("#line 1 \"alone.c\"\n").nth(1).expect("the program");
    let line = |n: usize| body.lines().nth(n - 1).expect("a line");
    assert!(line(6).contains("timedc_write_chan(val)"), "{made}");
    assert!(line(13).contains("timedc_read_chan()"), "{made}");
    run(&["cc", "--bind=chan=fifo", "alone.c", "-o", "alone"], place.path(), 0);
}

#[test]
fn over_a_network_channel_times_are_intervals_up_to_its_bound() {
    let place = place(&format!("{TWO_HOSTS}{HALVES}"));
    let study = results(&["tfg", "system.toml"], place.path(), 0);
    assert_eq!(study["composable"], true, "{study}");
    let plan = results(&["check", "system.toml"], place.path(), 0);
    assert_eq!(plan["ok"], true);
    let reads = computed(&study, "processor", "12", "release_ns");
    let rest = ["--duration", "35ms", "--task-trace", "trace"];
    results(&[&["run", "system.toml"][..], &rest].concat(), place.path(), 0);
    let writes = traced(place.path(), "sensor", "sensor", "write", "speed");
    let events = traced(place.path(), "processor", "processor", "read", "speed");
    assert_eq!(writes[..3], [0, 10 * MS, 20 * MS]);
    assert!(events.len() >= 3);
    for (index, (event, (lo, hi))) in events.iter().zip(&reads).take(3).enumerate() {
        let hi = hi.expect("a bound");
        assert!((*lo..=hi).contains(event), "{event} in {lo}..{hi}");
        // Class A: 2 ms, and the frame is in flight for some time.
        let written = index as i64 * 10 * MS;
        assert!(written < *lo && *lo < hi && hi <= written + 2 * MS, "{lo}..{hi}");
    }
    // A task that does not start here is in no table.
    let names: Vec<&Value> =
        study["tasks"].as_array().expect("tasks").iter().map(|task| &task["name"]).collect();
    assert_eq!(names.iter().filter(|n| **n == "sensor" || **n == "processor").count(), 2);
}

#[test]
fn over_a_best_effort_channel_it_is_not_composable_and_the_way_is_named() {
    let text = format!("{TWO_HOSTS}reserve = false\n{HALVES}");
    let place = place(&text);
    let said = printed(&["tfg", "system.toml"], &place);
    assert!(said.starts_with("Not composable"), "{said}");
    assert!(said.contains("channel speed has no latency bound"), "{said}");
    assert!(said.contains("listing_3.c:5 → speed → listing_3.c:12"), "{said}");
    results(&["run", "system.toml", "--duration", "100ms"], place.path(), 0);
}

#[test]
fn the_printed_program_runs_in_real_time_and_in_namespaces() {
    let place = place(&format!("{TWO_HOSTS}{HALVES}"));
    let mut ways = vec![vec!["--time", "real"]];
    if permitted() {
        ways.push(vec!["--network", "netns"]);
    }
    for way in ways {
        // A loaded machine may break the bound; that is not what is looked at.
        let arguments =
            [&["run", "system.toml", "--duration", "500ms", "--json"], &way[..]].concat();
        let output = onbeat().args(&arguments).current_dir(place.path()).output().expect("onbeat");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(matches!(output.status.code(), Some(0 | 3)), "{way:?}: {said}");
        let found: Value = serde_json::from_slice(&output.stdout).expect("results");
        let speed = channel(&found, "speed");
        assert!(number(speed, "sent") >= 20 && number(speed, "received") > 0, "{speed}");
    }
    let place = fifo();
    run(&["run", "system.toml", "--duration", "100ms", "--time", "real"], place.path(), 0);
}

#[test]
fn what_nobody_binds_is_an_error_that_says_what_to_write() {
    let place = place(&one_host(""));
    for arguments in [&["tfg", "system.toml"][..], &["run", "system.toml", "--duration", "20ms"]] {
        let said = refused(arguments, place.path(), 1);
        assert_eq!(said.matches("error[OB4016]").count(), 2, "{said}");
        assert!(said.contains("channels = [{ name = \"chan\", fifo = 1024 }]"), "{said}");
    }
    for arguments in [&["tfg", "alone.c"][..], &["cc", "alone.c"]] {
        let text = format!("#include \"around.h\"\n{LISTING}{REST}");
        std::fs::write(place.path().join("alone.c"), text).expect("the program");
        let said = refused(arguments, place.path(), 1);
        assert!(said.contains("--bind chan=fifo"), "{said}");
    }
    // Declarations make them functions of another file, which is not there.
    let text = format!("int chan_read(void);\nvoid chan_write(int);\n{HEADER}{LISTING}{REST}");
    std::fs::write(place.path().join("declared.c"), text).expect("the program");
    let output = onbeat().args(["tfg", "declared.c"]).current_dir(place.path()).output();
    let output = output.expect("onbeat");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(said.matches("warning[OB5007]").count(), 2, "{said}");
    assert!(!String::from_utf8_lossy(&output.stdout).contains("omposable"), "{said}");
    // With a binding they are the channel's all the same.
    let table = printed(&["tfg", "declared.c", "--bind", "chan=fifo"], &place);
    assert!(table.starts_with("Composable"), "{table}");
}

#[test]
fn bindings_that_cannot_be_are_refused() {
    let chan = |text: &str| format!("channels = [{{ name = \"chan\", {text} }}]");
    let cases = [
        (TWO_HOSTS, "left", chan("channel = \"sped\""), "OB1023"),
        (TWO_HOSTS, "left", chan("channel = \"speed\", type = \"double\""), "OB1067"),
        (ONE_HOST, "host", chan("fifo = 4, channel = \"speed\""), "OB1067"),
        (ONE_HOST, "host", chan("fifo = 4, type = \"struct\""), "OB1005"),
    ];
    for (system, host, channels, code) in cases {
        let place = place(&format!(
            "{system}[[program]]\nname = \"p\"\nhost = \"{host}\"\nsource = [\"listing_3.c\"]\n\
             cflags = [\"-include\", \"around.h\"]\n{channels}\n"
        ));
        let said = refused(&["tfg", "system.toml"], place.path(), 1);
        assert!(said.contains(code), "{code}: {said}");
    }
    let place = fifo();
    let file = ["-include", "around.h", "listing_3.c"];
    for (flags, words) in [
        (&["--bind", "chan=pipe"][..], "NAME=fifo"),
        (&["--bind", "chan=fifo", "--bind", "chan=fifo"], "twice"),
        (&["--bind", "chan=fifo", "--bind", "other=fifo"], "nothing calls other_write"),
        (&["--bind", "chan=fifo", "--starts", "sensr"], "no task `sensr`"),
    ] {
        let said = refused(&[&["cc"], flags, &file].concat(), place.path(), 2);
        assert!(said.contains(words), "{words}: {said}");
    }
    let said = refused(&["tfg", "system.toml", "--bind", "chan=fifo"], place.path(), 2);
    assert!(said.contains("`channels`"), "{said}");
}

#[test]
fn an_end_that_the_host_does_not_have_is_found_where_a_task_comes_to_it() {
    let text = HALVES.replace("starts = [\"sensor\"]\n", "");
    let place = place(&format!("{TWO_HOSTS}{text}"));
    let said = refused(&["tfg", "system.toml"], place.path(), 1);
    assert!(said.contains("OB5008"), "{said}");
}

/// A program of one file, bound to a fifochannel of a type.
fn check(text: &str, binding: &str) -> String {
    let place = fifo();
    std::fs::write(place.path().join("p.c"), text).expect("the program");
    let arguments = ["cc", "--bind", binding, "-Wall", "-Werror", "p.c", "-o", "p"];
    let output = onbeat().args(arguments).current_dir(place.path()).output().expect("onbeat");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn values_that_would_lose_something_are_refused() {
    let program = |before: &str, write: &str, read: &str| {
        format!(
            "#include <stdint.h>\n#include <cilktc.h>\n{before}\n\
             task w(void)\n{{\n\twhile (1) {{\n\t\t{write};\n\t\tsdelay(10, ms);\n\t}}\n}}\n\
             task r(void)\n{{\n\twhile (1) {{\n\t\t{read};\n\t\t(void)v;\n\t}}\n}}\n\
             int main(void)\n{{\n\tw();\n\tr();\n}}\n"
        )
    };
    let cases = [
        ("", "double d = 0.5; chan_write(d)", "int v = chan_read()", "int", Some("OB4011")),
        ("static int64_t d;", "chan_write(d)", "int v = chan_read()", "int", Some("OB4011")),
        ("", "int d = 1; chan_write(&d)", "int v = chan_read()", "int", None),
        ("", "int *d = 0; chan_write(d)", "int v = chan_read()", "int", Some("OB4011")),
        ("", "chan_write(1, 2)", "int v = chan_read()", "int", Some("OB4013")),
        ("", "chan_write(1)", "int v = chan_read()", "double", Some("OB4011")),
        ("", "chan_write(1)", "int8_t v; v = chan_read()", "int", Some("OB4011")),
        ("", "float d = 1; chan_write(d)", "double v = chan_read()", "double", Some("")),
        ("", "int8_t d = 1; chan_write(d)", "long v = chan_read()", "int16_t", Some("")),
        ("", "chan_write(1 + 2)", "uint64_t v = chan_read()", "uint64_t", Some("")),
    ];
    for (before, write, read, kind, code) in cases {
        let said = check(&program(before, write, read), &format!("chan=fifo:4,{kind}"));
        match code {
            Some("") => assert_eq!(said, "", "{write}; {read}"),
            Some(code) => assert!(said.contains(&format!("error[{code}]")), "{write}: {said}"),
            // The C compiler's own.
            None => assert!(said.contains("error"), "{write}: {said}"),
        }
    }
}

#[test]
fn an_abstract_channel_has_one_writer_and_one_reader() {
    for (second, who) in [("chan_write(2)", "writer"), ("(void)chan_read()", "reader")] {
        let text = format!(
            "#include <cilktc.h>\n\
             task w(void)\n{{\n\twhile (1) {{\n\t\tchan_write(1);\n\t\tsdelay(10, ms);\n\t}}\n}}\n\
             task r(void)\n{{\n\twhile (1)\n\t\t(void)chan_read();\n}}\n\
             task x(void)\n{{\n\twhile (1) {{\n\t\t{second};\n\t\tsdelay(10, ms);\n\t}}\n}}\n\
             int main(void)\n{{\n\tw();\n\tr();\n\tx();\n}}\n"
        );
        let said = check(&text, "chan=fifo");
        assert!(said.contains("error[OB4007]"), "{said}");
        assert!(said.contains(&format!("`chan` has a second {who}")), "{said}");
    }
}

#[test]
fn units_of_a_program_mean_the_same_channel() {
    let place = fifo();
    let write = |name: &str, text: &str| std::fs::write(place.path().join(name), text);
    let (sensor, processor) = LISTING.split_once("\n\n").expect("two tasks");
    let ends = REST.replace("int sense", "static int sense").replace("void pro", "static void pro");
    let (functions, main) = ends.split_once("int main").expect("a main");
    let (sense, process) = functions.split_once("static int last").expect("two functions");
    write("s.c", &format!("{sense}{sensor}\n")).expect("a file");
    write("r.c", &format!("static int last{process}{processor}")).expect("a file");
    let text = format!("task sensor();\ntask processor();\nint main{main}");
    write("m.c", &text).expect("a file");
    let files = ["s.c", "r.c", "m.c", "--bind", "chan=fifo"];
    let table = printed(&[&["tfg"], &files[..]].concat(), &place);
    assert!(table.starts_with("Composable"), "{table}");
    let rest = ["--duration", "35ms", "--task-trace", "trace"];
    run(&[&["run"], &files[..], &rest].concat(), place.path(), 0);
    let reads = traced(place.path(), "s", "processor", "read", "chan");
    assert_eq!(reads[..3], [0, 10 * MS, 20 * MS]);
}
