//! The verbs `echo`, `pub`, `record` and `replay`, as programs of runs in every engine, and on
//! interfaces.

use crate::common::{ENGINES, TestSystem, onbeat, permitted, run, two_hosts};
use onbeat::Span;
use onbeat_testkit::{Need, cable, not_run, within};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

/// A channel of another size and rate beside `c`, whose frames have a trailer.
const MORE: &str = r#"
[[channel]]
name = "d"
destination = "01:00:5e:00:00:02"
stream_id = 2
class = "A"
size_octets = 24
integrity = "crc"
rate_hz = 700
talker = "a"
listeners = ["b"]
"#;

const HEADER: &str = "/* Of the channel d. */\n#include <stdint.h>\n\
    struct point { float x, y; };\n\
    typedef struct { uint64_t count; struct point at; char name[5]; int8_t level; } sample_t;\n\
    struct channel_attrs channels[] = { { .name = \"d\", .size = sizeof(sample_t) } };\n";

/// A program of a host that is the command with these words.
fn program(host: &str, words: &[&str]) -> String {
    let all = [&[env!("CARGO_BIN_EXE_onbeat")], words].concat();
    let name = words.join("-").replace(|c: char| !c.is_ascii_alphanumeric(), "");
    let name = &name[..name.len().min(40)];
    format!("[[program]]\nname = \"{name}\"\nhost = \"{host}\"\ncommand = {all:?}\n")
}

/// A system with both channels and these programs.
fn system(programs: &[(&str, &[&str])]) -> TestSystem {
    let system = TestSystem::new("");
    describe(&system, programs);
    std::fs::write(system.path().join("messages.h"), HEADER).expect("written");
    system
}

/// Gives a system other programs.
fn describe(system: &TestSystem, programs: &[(&str, &[&str])]) {
    let programs: String = programs.iter().map(|(host, words)| program(host, words)).collect();
    let text =
        two_hosts(&format!("{MORE}{programs}")).replace("duration_ms = 500", "duration_ms = 50");
    let wakes = "name = \"a\"\nwakeup_ns = { min = 2000, max = 70000 }";
    let text = text.replacen("name = \"a\"", wakes, 1);
    std::fs::write(system.path().join("system.toml"), text).expect("written");
}

/// Which message was captured when, as the run itself recorded it: channel, number, instant.
fn captures(output: &Path) -> Vec<(String, String, String)> {
    let text = std::fs::read_to_string(output.join("1-run/messages.csv")).expect("a table");
    let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let names = lines.next().expect("a header");
    let place = |name| names.iter().position(|other| *other == name).expect("a column");
    let columns = ["channel", "sequence", "capture_ns"].map(place);
    lines.map(|line| columns.map(|at| line[at].to_owned()).into()).collect()
}

/// The lines of JSON that programs of a run printed.
fn printed(output: &Output) -> Vec<Value> {
    let text = String::from_utf8(output.stderr.clone()).expect("UTF-8");
    let lines = text.lines().filter(|line| line.starts_with('{'));
    lines.map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Numbers of `c` by a program in C that is often late, and two samples in turn as `d`.
const FIELDS: [&str; 4] = [
    r#"{"count":1,"at":{"x":0.1,"y":-2.5},"name":"one","level":-7}"#,
    r#"{"count":18446744073709551615,"name":"two"}"#,
    "--type",
    "messages.h:sample_t",
];

/// A run whose messages are in `first.pcapng`, and what it printed.
fn recorded(how: &[&str]) -> (TestSystem, Output) {
    let publish = [&["pub", "d"], &FIELDS[..]].concat();
    let system = system(&[("a", &publish), ("b", &["record", "c", "d", "-o", "first.pcapng"])]);
    let left = "[[program]]\nname = \"left\"\nhost = \"a\"\ncommand = [\"build/left\"]\n";
    let path = system.path().join("system.toml");
    let text = std::fs::read_to_string(&path).expect("a description");
    std::fs::write(&path, text + left).expect("written");
    system.program("talker.c", "left");
    let output = run(how, system.path(), 0);
    (system, output)
}

#[test]
fn what_is_recorded_of_a_run_is_replayed_to_the_nanosecond() {
    let (system, output) = recorded(&["run", ".", "--out", "one"]);
    let counts = said(&output);
    assert!(counts.contains("onbeat: first.pcapng: 86 messages"), "{counts}");
    describe(
        &system,
        &[("a", &["replay", "first.pcapng"]), ("b", &["record", "c", "d", "-o", "second.pcapng"])],
    );
    // Other wake-ups: instants do not depend on them.
    let output = run(&["run", ".", "--out", "two", "--seed", "77"], system.path(), 0);
    let replayed = said(&output);
    for line in ["`c`: 50 messages replayed\n", "`d`: 36 messages replayed\n"] {
        assert!(replayed.contains(line), "{replayed}");
    }
    let [one, two] = ["one", "two"].map(|output| captures(&system.path().join(output)));
    assert_eq!(one.len(), 86);
    assert!(one.iter().any(|(channel, _, at)| channel == "c" && !at.ends_with("000")), "late ones");
    assert_eq!(one, two);
    let read = |name: &str| std::fs::read(system.path().join(name)).expect("a file");
    let [first, second] = ["first.pcapng", "second.pcapng"].map(read);
    assert!(first == second, "octets and times are those of the first run");

    // One of the channels, and what a reader sees of its fields.
    let echo = ["echo", "d", "--json", "--type", "messages.h:sample_t"];
    describe(&system, &[("a", &["replay", "first.pcapng", "d"]), ("b", &echo)]);
    let lines = printed(&run(&["run", ".", "--out", "three"], system.path(), 0));
    assert_eq!(lines.len(), 36);
    let of_d = one.iter().filter(|(channel, ..)| channel == "d");
    for (line, (_, number, at)) in lines.iter().zip(of_d) {
        assert_eq!(line["sequence"].to_string(), *number);
        assert_eq!(line["capture_ns"].to_string(), *at);
    }
    let expected: Value = serde_json::from_str(FIELDS[0]).expect("JSON");
    assert_eq!(lines[34]["value"], expected);
    assert_eq!(lines[35]["value"]["count"], u64::MAX);
    assert_eq!(lines[35]["value"]["at"]["x"], 0.0, "what is not named is 0");
}

#[test]
fn messages_are_the_same_in_every_engine() {
    let kernel = permitted();
    // Two talkers of a host are two processes here, of which AF_XDP takes one.
    let engines = ENGINES.iter().filter(|how| !how.contains(&"xdp"));
    for how in engines.filter(|how| kernel || !how.contains(&"netns")) {
        let (system, output) = recorded(how);
        assert!(said(&output).contains("onbeat: first.pcapng: "), "{how:?}: {}", said(&output));
        // Virtual time shows what the file has, in order.
        let echo = ["echo", "c", "--json"];
        describe(&system, &[("a", &["replay", "first.pcapng", "c"]), ("b", &echo)]);
        let lines = printed(&run(&["run", ".", "--out", "again"], system.path(), 0));
        assert!(!lines.is_empty(), "{how:?}");
        let mut before = None;
        for line in &lines {
            let octets = line["octets"].as_str().expect("octets");
            let octets = u64::from_str_radix(octets, 16).expect("digits").swap_bytes();
            let now = (line["capture_ns"].as_i64().expect("an instant"), octets);
            assert!(before.is_none_or(|(at, n)| at < now.0 && n < now.1), "{how:?}: {line}");
            before = Some(now);
        }
    }
}

#[test]
fn readers_print_text_csv_and_octets_and_end_after_a_count() {
    let publish = [&["pub", "d", "--every", "2ms", "--count", "3"], &FIELDS[..]].concat();
    let csv = ["echo", "d", "--csv", "--type", "messages.h"];
    let system = system(&[("a", &publish), ("b", &csv)]);
    let text = said(&run(&["run", "."], system.path(), 0));
    let lines: Vec<_> = text.lines().skip_while(|line| !line.starts_with("capture_ns")).collect();
    assert_eq!(
        lines[0],
        "capture_ns,sequence,lost,latency_ns,late,value.count,value.at.x,value.at.y,value.name,\
         value.level"
    );
    for (line, start, end) in [
        (1, "0,0,0,", ",0,1,0.1,-2.5,one,-7"),
        (2, "2000000,1,0,", ",0,18446744073709551615,0.0,0.0,two,0"),
        (3, "4000000,2,0,", ",0,1,0.1,-2.5,one,-7"),
    ] {
        assert!(lines[line].starts_with(start) && lines[line].ends_with(end), "{}", lines[line]);
    }
    describe(
        &system,
        &[
            ("a", &["pub", "c", "0a00000000000000", "00 ff 00 00 00 00 00 01"]),
            ("b", &["echo", "c", "--count", "2"]),
        ],
    );
    let text = said(&run(&["run", "."], system.path(), 0));
    let expected = "0.000000000  0  0a00000000000000\n0.001000000  1  00ff000000000001\n";
    assert!(text.contains(expected) && !text.contains("0.002"), "{text}");
}

/// Gives a system other programs, and `d` its struct instead of a size.
fn typed(system: &TestSystem, programs: &[(&str, &[&str])]) -> String {
    describe(system, programs);
    let path = system.path().join("system.toml");
    let text = std::fs::read_to_string(&path).expect("a description");
    let text = text.replace("size_octets = 24", "type = \"messages.h:sample_t\"");
    std::fs::write(&path, &text).expect("written");
    text
}

#[test]
fn programs_of_a_run_know_the_structs_of_its_channels() {
    let publish = ["pub", "d", FIELDS[0], FIELDS[1], "--count", "2"];
    let system = system(&[]);
    let text = typed(&system, &[("a", &publish), ("b", &["echo", "d", "--json"])]);
    let lines = printed(&run(&["run", "."], system.path(), 0));
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[0]["value"], serde_json::from_str::<Value>(FIELDS[0]).expect("JSON"));
    assert_eq!(lines[1]["value"]["count"], u64::MAX);

    // A manifest that gives the size says it, too.
    let entry = "{ .name = \"d\", .dst = {1, 0, 94, 0, 0, 2}, .stream_id = 2, .sc = SC_CLASS_A, \
                 .interval_ns = 1500000,";
    let manifest = HEADER.replace("{ .name = \"d\",", entry);
    std::fs::write(system.path().join("manifest.h"), manifest).expect("written");
    let given = MORE.replace("size_octets = 24", "type = \"messages.h:sample_t\"");
    let bare = "\n[[channel]]\nname = \"d\"\ntalker = \"a\"\nlisteners = [\"b\"]\n";
    let text = text.replace(&given, bare).replacen("[run]", "manifest = \"manifest.h\"\n[run]", 1);
    assert!(!text.contains("type = "), "{text}");
    std::fs::write(system.path().join("system.toml"), text).expect("written");
    let lines = printed(&run(&["run", "."], system.path(), 0));
    assert_eq!(lines[1]["value"]["name"], "two");
}

#[test]
fn without_the_file_of_a_struct_messages_are_octets_and_the_run_lives() {
    let system = system(&[]);
    let hexadecimal = "07".repeat(24);
    let publish = ["pub", "d", &hexadecimal, "--count", "1"];
    let octets = format!("0.000000000  0  {hexadecimal}\n");
    typed(&system, &[("a", &publish), ("b", &["echo", "d", "--octets"])]);
    let text = said(&run(&["run", "."], system.path(), 0));
    assert!(text.contains(&octets) && !text.contains("not fields"), "{text}");

    let command = env!("CARGO_BIN_EXE_onbeat");
    for (script, why) in [
        ("echo 'struct sample_t { int a; };' > messages.h", "has 4 octets, messages have 24"),
        ("rm messages.h", "messages.h: No such file or directory"),
    ] {
        std::fs::write(system.path().join("messages.h"), HEADER).expect("written");
        let text = format!(
            "{}[[program]]\nname = \"changes\"\nhost = \"b\"\n\
             command = [\"sh\", \"-c\", \"{script} && exec {command} echo d\"]\n",
            typed(&system, &[("a", &publish)])
        );
        std::fs::write(system.path().join("system.toml"), text).expect("written");
        let text = said(&run(&["run", "."], system.path(), 0));
        let told = text.contains("onbeat: channel `d`: octets, not fields: ");
        assert!(told && text.contains(why) && text.contains(&octets), "{script}: {text}");
    }
}

#[test]
fn a_header_that_disagrees_with_the_description_is_found_by_check() {
    let system = TestSystem::new(&two_hosts(&format!("{MORE}type = \"messages.h:sample_t\"\n")));
    std::fs::write(system.path().join("messages.h"), HEADER).expect("written");
    run(&["check", "."], system.path(), 0);
    let shorter = HEADER.replace("struct point at; ", "");
    std::fs::write(system.path().join("messages.h"), shorter).expect("written");
    let text = said(&run(&["check", "."], system.path(), 1));
    let why = "channel `d`: messages have 24 octets, messages.h:sample_t has 16";
    assert!(text.contains("OB1080") && text.contains(why), "{text}");
}

#[test]
fn what_does_not_fit_a_channel_is_refused_with_the_reason() {
    for (host, words, why) in [
        ("b", &["echo", "x"][..], "the description has no channel `x`; it has: c, d"),
        ("a", &["echo", "c"], "host `a`, where `echoc` runs, is not a listener of `c`"),
        ("a", &["pub", "c", "0a0b"], "channel `c` carries messages of 8 octets"),
        ("a", &["pub", "c", "0a0"], "`0a0`: expected two hexadecimal digits for each octet"),
        ("a", &["pub", "d", "{}"], "name their struct with --type FILE:STRUCT"),
        (
            "a",
            &["pub", "d", "{\"level\":200}", "--type", "messages.h:sample_t"],
            "level: expected a whole number from -128 to 127, not 200",
        ),
        (
            "b",
            &["echo", "c", "--type", "messages.h:sample_t"],
            "channel `c` carries messages of 8 octets, program `echoctypemessageshsamplet` opens \
             it for 24",
        ),
        ("b", &["echo", "c", "--type", "messages.h:other"], "messages.h: it declares no struct"),
        ("b", &["echo", "c", "--type", "none.h:other"], "none.h: No such file"),
        ("a", &["replay", "none.pcapng"], "none.pcapng: No such file"),
        ("a", &["replay", "messages.h"], "messages.h: octet 0: this is no record file"),
        ("b", &["record", "c", "-o", "messages.h"], "messages.h holds something else"),
    ] {
        let system = system(&[(host, words)]);
        let output = run(&["run", "."], system.path(), 4);
        assert!(said(&output).contains(why), "{words:?}: {}", said(&output));
    }
    let output = onbeat().args(["echo", "c"]).env_remove("ONBEAT_INTERFACE").output();
    let output = output.expect("onbeat runs");
    assert_eq!(output.status.code(), Some(5));
    assert!(said(&output).contains("use --interface and --table"), "{}", said(&output));
}

#[test]
fn no_size_of_a_program_in_c_means_any() {
    let left = "[[program]]\nname = \"left\"\nhost = \"a\"\ncommand = [\"build/left\"]\n";
    let system = TestSystem::new(&two_hosts(left));
    for size in ["0", "UINT32_MAX", "SIZE_MAX"] {
        let source = system.path().join("left.c");
        let text = format!(
            "#include <stdint.h>\n#include <onbeat.h>\nint main(void)\n{{\n\tonbeat *run;\n\t\
             onbeat_talker *out;\n\tif (onbeat_open(&run))\n\t\treturn 2;\n\t\
             return onbeat_talker_open(run, \"c\", {size}, &out) ? 3 : 0;\n}}\n"
        );
        std::fs::write(&source, text).expect("written");
        system.compile(&source, "left", &[]);
        let output = run(&["run", "."], system.path(), 4);
        let why = "channel `c` carries messages of 8 octets, program `left` opens it for";
        assert!(said(&output).contains(why), "{size}: {}", said(&output));
    }
}

#[test]
fn a_damaged_record_file_writes_no_message() {
    let (system, _) = recorded(&["run", "."]);
    let file = std::fs::read(system.path().join("first.pcapng")).expect("a file");
    std::fs::write(system.path().join("first.pcapng"), &file[..file.len() - 7]).expect("written");
    describe(&system, &[("a", &["replay", "first.pcapng"]), ("b", &["echo", "c"])]);
    let output = run(&["run", "."], system.path(), 4);
    let why = "first.pcapng: octet ";
    assert!(said(&output).contains(why), "{}", said(&output));
    assert!(said(&output).contains("the file ends within a block"), "{}", said(&output));
    assert!(!said(&output).contains("0.000000000  0"), "{}", said(&output));
    describe(&system, &[("a", &["replay", "first.pcapng", "e"])]);
    std::fs::write(system.path().join("first.pcapng"), file).expect("written");
    let output = run(&["run", "."], system.path(), 4);
    let why = "first.pcapng: there is no channel `e`; there are: c, d";
    assert!(said(&output).contains(why), "{}", said(&output));
}

#[test]
fn on_interfaces_messages_are_written_recorded_and_replayed_until_a_signal() {
    let hosts = match cable() {
        Ok(hosts) => hosts,
        Err(why) => return not_run(Need::Namespaces, why),
    };
    let system = TestSystem::new(&two_hosts(""));
    run(&["plan", ".", "--deploy", "tables"], system.path(), 0);
    let on = |host: usize, words: &[&str]| -> Command {
        let table = ["tables/a.channels", "tables/b.channels"][host];
        let mut command = onbeat();
        command.args(words).args(["--interface", "eth0", "--table", table]);
        command.current_dir(system.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    };
    let start = |host: usize, words: &[&str]| {
        within(&hosts[host], || on(host, words).spawn().expect("onbeat runs"))
    };
    let end = |child: Child| {
        let _ = kill_process(Pid::from_child(&child), Signal::TERM);
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        output
    };
    let wait = |child: Child| {
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        output
    };
    let talker = start(0, &["pub", "c", "0100000000000000", "0200000000000000", "--every", "20ms"]);
    let lines = wait(start(1, &["echo", "c", "--count", "3", "--json"]));
    assert_eq!(lines.stdout.iter().filter(|octet| **octet == b'\n').count(), 3);
    wait(start(1, &["record", "c", "-o", "some.pcapng", "--count", "20"]));
    // One that a signal ends has all that came.
    let record = start(1, &["record", "c", "-o", "more.pcapng"]);
    wait(start(1, &["echo", "c", "--count", "3"]));
    let counted = said(&end(record));
    assert!(counted.contains("onbeat: more.pcapng: "), "{counted}");
    end(talker);
    // Lines of standard input, of which there are no more, and for which a signal does not wait.
    let mut lines = within(&hosts[0], || {
        on(0, &["pub", "c"]).stdin(Stdio::piped()).spawn().expect("onbeat runs")
    });
    let mut input = lines.stdin.take().expect("a pipe");
    let mut echo = start(1, &["echo", "c", "--count", "1"]);
    while echo.try_wait().expect("it can be asked").is_none() {
        // One that comes before the reader has begun is none of its messages.
        std::io::Write::write_all(&mut input, b"0300000000000000\n").expect("written");
        onbeat::clock::pause(Span::from_ms(20));
    }
    let shown = wait(echo).stdout;
    assert!(
        String::from_utf8_lossy(&shown).contains("  0300000000000000"),
        "{}",
        String::from_utf8_lossy(&shown)
    );
    end(lines);
    // What is replayed comes as it was, to a reader that has begun.
    let mut echo = start(1, &["echo", "c", "--count", "1", "--json"]);
    while echo.try_wait().expect("it can be asked").is_none() {
        let replayed = said(&wait(start(0, &["replay", "some.pcapng"])));
        assert!(replayed.contains("channel `c`: 20 messages replayed"), "{replayed}");
    }
    let line: Value = serde_json::from_slice(&wait(echo).stdout).expect("JSON");
    let octets = line["octets"].as_str().expect("octets");
    assert!(["0100000000000000", "0200000000000000"].contains(&octets), "{line}");
    let refused = within(&hosts[0], || on(0, &["echo", "c"]).output().expect("onbeat runs"));
    assert_eq!(refused.status.code(), Some(5));
    assert!(said(&refused).contains("host `a` is not a listener of `c`"), "{}", said(&refused));
    let left = std::fs::read_dir(system.path()).expect("the directory").flatten();
    let names: Vec<_> = left.map(|entry| entry.file_name().into_string().expect("UTF-8")).collect();
    assert!(names.iter().all(|name| !name.starts_with('.')), "{names:?}");
}

#[test]
fn the_longest_message_is_written_by_hand_and_read_on_interfaces() {
    let hosts = match cable() {
        Ok(hosts) => hosts,
        Err(why) => return not_run(Need::Namespaces, why),
    };
    let long = "[[channel]]\nname = \"long\"\ndestination = \"01:00:5e:00:00:09\"\nstream_id = 9\n\
                class = \"B\"\nsize_octets = 65536\nrate_hz = 20\ntalker = \"a\"\n\
                listeners = [\"b\"]";
    let system = TestSystem::new(&two_hosts(long));
    run(&["plan", ".", "--deploy", "tables"], system.path(), 0);
    let start = |host: usize, words: &[&str]| {
        let table = ["tables/a.channels", "tables/b.channels"][host];
        let mut command = onbeat();
        command.args(words).args(["--interface", "eth0", "--table", table]);
        command.current_dir(system.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
        within(&hosts[host], || command.spawn().expect("onbeat runs"))
    };
    let octets: Vec<u8> = (0..65_536_u32).map(|at| (at * 7 + at / 251) as u8).collect();
    let digits: String = octets.iter().map(|octet| format!("{octet:02x}")).collect();
    for transport in ["packet", "xdp"] {
        let mut talker = start(0, &["pub", "long", "--transport", transport]);
        let mut input = talker.stdin.take().expect("a pipe");
        let echo = ["echo", "long", "--count", "2", "--json", "--transport", transport];
        let echo = start(1, &echo);
        let reader = std::thread::spawn(move || echo.wait_with_output().expect("it ends"));
        while !reader.is_finished() {
            let line = format!("{digits}\n");
            std::io::Write::write_all(&mut input, line.as_bytes()).expect("written");
        }
        let shown = reader.join().expect("it is read").stdout;
        for line in String::from_utf8(shown).expect("UTF-8").lines() {
            let line: Value = serde_json::from_str(line).expect("JSON");
            assert!(line["octets"] == digits.as_str(), "{transport}");
            assert_eq!(line["lost"], 0, "{transport}");
        }
        drop(input);
        assert!(talker.wait().expect("it ends").success(), "{transport}");
    }
}
