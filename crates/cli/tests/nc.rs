//! Programs in Network Code as a user has them: `onbeat nc`.

use crate::common::{onbeat, results, root, run};
use onbeat_runtime::network_code::image;
use onbeat_testkit::{Need, cable, not_run, within};
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Output, Stdio};

const SENSOR: &str = "\
station sensor
medium 100 Mbit/s tagged

output position[3]
message at = 2[3]

begin:
    sync slave, 2 ms
    branch sync_timeout, begin
    create position  # once
    send at
    goto begin
";

/// A description with a channel from the sensor to the controller.
const CELL: &str = r#"
format = 1
name = "cell"
[run]
duration_s = 1
[[host]]
name = "sensor"
[[host]]
name = "controller"
[[bridge]]
name = "bridge"
[[link]]
ends = ["sensor", "bridge"]
rate_mbps = 1000
[[link]]
ends = ["controller", "bridge"]
rate_mbps = 1000
[[channel]]
name = "position"
destination = "91:e0:f0:00:fe:01"
stream_id = 1
class = "A"
size_octets = 10
interval_ns = 1_000_000
talker = "sensor"
listeners = ["controller"]
"#;

fn directory(files: &[(&str, &str)]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    for (name, text) in files {
        std::fs::write(directory.path().join(name), text).expect("written");
    }
    directory
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("text")
}

fn read(directory: &Path, name: &str) -> Vec<u8> {
    std::fs::read(directory.join(name)).expect("a file")
}

fn names(directory: &Path) -> Vec<String> {
    let entries = directory.read_dir().expect("a directory").map(|entry| entry.expect("one"));
    let mut names: Vec<_> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn a_program_is_assembled_shown_and_assembled_to_the_same_octets() {
    let place = directory(&[("sensor.nc", SENSOR)]);
    let place = place.path();
    let said = stderr(&run(&["nc", "asm", "sensor.nc"], place, 0));
    assert_eq!(said, "onbeat: program of `sensor`: 5 instructions, 1 buffer, 1 message\n");
    assert_eq!(names(place), ["sensor.nc"], "it was only checked");

    let said = stderr(&run(&["nc", "asm", "sensor.nc", "-o", "sensor.ncb"], place, 0));
    assert!(said.ends_with("1 message: sensor.ncb\n"), "{said}");
    let shown = stdout(&run(&["nc", "dis", "sensor.ncb"], place, 0));
    let expected = SENSOR.replace("begin", "L0").replace("  # once", "");
    assert_eq!(shown, expected);
    let noted = stdout(&run(&["nc", "dis", "sensor.ncb", "--words"], place, 0));
    assert!(noted.contains("    send at                               # 003 "), "{noted}");

    for name in ["plain.nc", "noted.nc"] {
        let text = if name == "plain.nc" { &shown } else { &noted };
        std::fs::write(place.join(name), text).expect("written");
        let image = name.replace(".nc", ".ncb");
        run(&["nc", "asm", name, "-o", &image], place, 0);
        let again = stdout(&run(&["nc", "dis", &image], place, 0));
        assert_eq!(again, shown, "{name}");
    }
    run(&["nc", "dis", "sensor.ncb", "-o", "again.nc"], place, 0);
    assert_eq!(read(place, "again.nc"), shown.as_bytes());
}

#[test]
fn json_has_the_program_or_what_is_wrong() {
    let place = directory(&[
        ("sensor.nc", SENSOR),
        ("bad.nc", "station a\nbegin:\n    create b\n    send m\n    goto begin\n"),
    ]);
    let found = results(&["nc", "asm", "sensor.nc"], place.path(), 0);
    let expected = json!({
        "format": "onbeat-network-code",
        "version": 1,
        "file": "sensor.nc",
        "ok": true,
        "station": "sensor",
        "medium": { "rate_bps": 100_000_000, "tagged": true },
        "buffers": [
            { "id": 0, "name": "position", "words": 3, "role": "output", "channel": null },
        ],
        "messages": [{ "id": 2, "name": "at", "words": 3 }],
        "instructions": [
            { "address": 0, "word": "180000000003d090", "text": "sync slave, 2 ms", "line": 8,
              "issue_ns": 8 },
            { "address": 1, "word": "1c00000400000000", "text": "branch sync_timeout, L0",
              "line": 9, "issue_ns": 24 },
            { "address": 2, "word": "0400000000000000", "text": "create position", "line": 10,
              "issue_ns": 16 },
            { "address": 3, "word": "0800008000000000", "text": "send at", "line": 11,
              "issue_ns": 16 },
            { "address": 4, "word": "1c00000000000000", "text": "goto L0", "line": 12,
              "issue_ns": 24 },
        ],
        "diagnostics": [],
    });
    assert_eq!(found, expected);

    let found = results(&["nc", "asm", "bad.nc", "-o", "bad.ncb"], place.path(), 1);
    assert_eq!(found["ok"], false);
    for key in ["station", "medium", "buffers", "messages", "instructions"] {
        assert_eq!(found[key], Value::Null, "{key}");
    }
    let codes = found["diagnostics"].as_array().expect("a list").iter();
    let codes: Vec<_> = codes.map(|it| (it["code"].as_str(), it["line"].as_u64())).collect();
    assert_eq!(codes, [(Some("OB6017"), Some(3)), (Some("OB6018"), Some(4))]);
    assert_eq!(names(place.path()), ["bad.nc", "sensor.nc"], "nothing is written");
}

#[test]
fn errors_are_shown_with_their_lines() {
    let place = directory(&[("bad.nc", "station a\nx: sync slave, 1 ms\n    wait 5\n goto x\n")]);
    let said = stderr(&run(&["nc", "asm", "bad.nc"], place.path(), 1));
    for part in ["error[OB6005]", "bad.nc:3:5", "wait 5", "1 error; docs/errors.md"] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn buffers_have_the_lengths_of_the_channels_of_a_description() {
    let text = "input here = channel \"position\"\nmessage at = 2[3]\n\
                begin:\n    sync slave, 2 ms\n    receive at, here\n    goto begin\n";
    let wrong = text.replace("input", "output");
    let place = directory(&[("c.nc", text), ("wrong.nc", &wrong), ("system.toml", CELL)]);
    let place = place.path();
    let asm = ["nc", "asm", "c.nc", "--system", ".", "--station"];
    let found = results(&[&asm[..], &["controller"]].concat(), place, 0);
    assert_eq!(found["station"], "controller");
    assert_eq!(found["buffers"][0]["words"], 3);
    assert_eq!(found["buffers"][0]["channel"], "position");

    let code = |arguments: &[&str]| {
        let found = results(arguments, place, 1);
        let codes = found["diagnostics"].as_array().expect("a list").iter();
        codes.map(|it| it["code"].as_str().expect("a code").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(code(&[&asm[..], &["sensor"]].concat()), ["OB6054"], "it is the talker");
    assert_eq!(code(&[&asm[..], &["bridge"]].concat())[0], "OB6014", "it is no host");
    assert_eq!(code(&["nc", "asm", "c.nc", "--station", "controller"]), ["OB6051"]);
    let wrong = ["nc", "asm", "wrong.nc", "--system", ".", "--station", "controller"];
    assert_eq!(code(&wrong), ["OB6054", "OB6039"]);
}

#[test]
fn texts_are_laid_out_and_files_with_errors_are_left_alone() {
    let sloppy = SENSOR.replace("    ", "  ").replace(", ", " ,");
    let bad = "station a\n  nop nop\n";
    let place = directory(&[("sensor.nc", SENSOR), ("sloppy.nc", &sloppy), ("bad.nc", bad)]);
    let place = place.path();
    let said = stderr(&run(&["nc", "fmt", "--check", "sensor.nc", "sloppy.nc"], place, 1));
    assert_eq!(said, "onbeat: sloppy.nc has another layout\n");
    assert_eq!(read(place, "sloppy.nc"), sloppy.as_bytes(), "it was only looked at");

    std::os::unix::fs::symlink("sloppy.nc", place.join("link.nc")).expect("a link");
    let said = stderr(&run(&["nc", "fmt", "sensor.nc", "link.nc", "bad.nc"], place, 1));
    assert!(said.contains("link.nc is laid out") && said.contains("OB6006"), "{said}");
    assert_eq!(read(place, "sloppy.nc"), SENSOR.as_bytes());
    assert!(place.join("link.nc").is_symlink());
    assert_eq!(read(place, "bad.nc"), bad.as_bytes());
    assert_eq!(names(place), ["bad.nc", "link.nc", "sensor.nc", "sloppy.nc"], "no file is left");
    run(&["nc", "fmt", "--check", "sensor.nc", "sloppy.nc"], place, 0);
    run(&["nc", "fmt", "--check", "bad.nc"], place, 1);
}

#[test]
fn files_that_are_no_programs_are_refused_and_inputs_are_not_overwritten() {
    let place = directory(&[("sensor.nc", SENSOR)]);
    let place = place.path();
    run(&["nc", "asm", "sensor.nc", "-o", "sensor.ncb"], place, 0);
    let mut octets = read(place, "sensor.ncb");
    let last = octets.len() - 1;
    octets[last] ^= 1;
    std::fs::write(place.join("damaged.ncb"), octets).expect("written");
    for (name, why) in [("damaged.ncb", "its checksum"), ("sensor.nc", "no image")] {
        let said = stderr(&run(&["nc", "dis", name], place, 1));
        assert!(said.contains("error[OB6059]") && said.contains(why), "{said}");
    }
    // A link out of the directory is not followed.
    let outside = directory(&[("other.nc", "# secret  \n")]);
    for (link, name) in [("link.nc", "other.nc"), ("link.ncb", "other.ncb")] {
        std::os::unix::fs::symlink(outside.path().join(name), place.join(link)).expect("a link");
    }
    std::fs::copy(place.join("sensor.ncb"), outside.path().join("other.ncb")).expect("copied");
    for arguments in [["nc", "asm", "link.nc"], ["nc", "fmt", "link.nc"], ["nc", "dis", "link.ncb"]]
    {
        let said = stderr(&run(&arguments, place, 5));
        assert!(said.contains("outside") && !said.contains("secret"), "{said}");
    }
    assert_eq!(read(outside.path(), "other.nc"), b"# secret  \n");

    run(&["nc", "asm", "sensor.nc", "-o", "sensor.nc"], place, 2);
    run(&["nc", "dis", "sensor.ncb", "-o", "sensor.ncb"], place, 2);
    assert_eq!(read(place, "sensor.nc"), SENSOR.as_bytes());
    run(&["nc", "asm", "nowhere.nc"], place, 5);
    run(&["nc", "dis", "nowhere.ncb"], place, 5);
    run(&["nc", "fmt", "nowhere.nc"], place, 5);
    run(&["nc", "asm", "sensor.nc", "-o", "none/sensor.ncb"], place, 5);
    run(&["nc", "fmt"], place, 2);
    run(&["nc"], root(), 2);
}

/// Begins a round each 5 ms and sends its number.
const MASTER: &str = "\
station master

output value[2]
input answer[1]
message value = 1[2]
message answer = 2[1]

begin:
    future answers, 4 ms
    sync master
    create value
    send value
    halt
answers:
    future begin, 1 ms
    receive answer, answer
    halt
";

/// Answers in each round.
const SLAVE: &str = "\
station slave

output answer[1]
input value[2]
message value = 1[2]
message answer = 2[1]

begin:
    sync slave, 50 ms
    branch sync_timeout, begin
    future slot, 2 ms
    halt
slot:
    receive value, value
    create answer
    send answer
    goto begin
";

#[test]
fn stations_on_two_interfaces_hear_each_other_and_count_alike() {
    let hosts = match cable() {
        Ok(hosts) => hosts,
        Err(why) => return not_run(Need::Namespaces, why),
    };
    let place = directory(&[("master.nc", MASTER), ("slave.nc", SLAVE)]);
    run(&["nc", "asm", "master.nc", "-o", "master.ncb"], place.path(), 0);
    let station = |host, words: &[&str]| {
        let mut command = onbeat();
        command.args(["nc", "run", "--interface", "eth0", "--json", "--late-limit", "2ms"]);
        command.args(words).current_dir(place.path()).stdout(Stdio::piped());
        within(host, || command.spawn().expect("onbeat runs"))
    };
    let slave = station(&hosts[1], &["slave.nc"]);
    let master = station(&hosts[0], &["master.ncb", "--rounds", "200"]);
    let document = |child: std::process::Child| {
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        serde_json::from_slice::<Value>(&output.stdout).expect("JSON")
    };
    let master = document(master);
    let pid = rustix::process::Pid::from_child(&slave);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it runs");
    let slave = document(slave);
    let count = |of: &Value, what: &str| of["counters"][what].as_u64().expect(what);
    assert_eq!(master["format"], "onbeat-network-code-run");
    assert_eq!(count(&master, "rounds_begun"), 200);
    // A machine that is busy may miss slots, not most; the slave may have begun later.
    let seen = count(&slave, "rounds_seen");
    assert!((1..=201).contains(&seen) && count(&slave, "data_received") > 0, "{slave}");
    assert!(count(&slave, "data_received") <= count(&master, "data_sent"), "{master} {slave}");
    assert!(count(&master, "data_received") <= count(&slave, "data_sent"), "{master} {slave}");
    for station in [&master, &slave] {
        for none in ["traps", "damaged", "data_unknown", "data_wrong_length", "second_masters"] {
            assert_eq!(count(station, none), 0, "{none}: {station}");
        }
        let errors = &station["slot_error_ns"];
        assert!(errors["p50"].as_i64() <= errors["p99"].as_i64(), "{station}");
    }
}

#[test]
fn a_station_without_its_interface_or_with_a_trap_says_so() {
    let place = directory(&[("master.nc", MASTER)]);
    let said = stderr(&run(&["nc", "run", "master.nc", "--interface", "none0"], place.path(), 5));
    assert!(said.contains("none0"), "{said}");
    run(&["nc", "run", "master.nc"], place.path(), 2);
    run(&["nc", "run", "nowhere.nc", "--interface", "lo"], place.path(), 5);
}

/// A round of 1 ms with a slot of the sensor's.
const CONTROLLER: &str = "\
station controller

output speed[2]
input position[3]
message speed = 1[2]
message position = 2[3]

begin:
    future answers, 500 us
    sync master
    create speed
    send speed
    halt
answers:
    future begin, 500 us
    receive position, position
    halt
";

const ANSWERING: &str = "\
station sensor

output position[3]
input speed[2]
message speed = 1[2]
message position = 2[3]

begin:
    sync slave, 5 ms
    branch sync_timeout, begin
    future slot, 200 us
    halt
slot:
    receive speed, speed
    create position
    send position
    goto begin
";

fn verified(place: &Path, arguments: &[&str], expected: i32) -> Value {
    let words = [&["nc", "verify", ".", "--json"], arguments].concat();
    serde_json::from_slice(&run(&words, place, expected).stdout).expect("JSON")
}

fn verdict<'a>(document: &'a Value, property: &str) -> &'a str {
    let properties = document["properties"].as_array().expect("a list");
    let found = properties.iter().find(|it| it["property"] == property).expect(property);
    found["verdict"].as_str().expect("a word")
}

#[test]
fn nothing_contradicts_the_documented_master_and_slave_as_they_stand() {
    let document = include_str!("../../../docs/network-code.md");
    let section = document.split_once("### A master and a slave").expect("the section").1;
    let mut parts = section.split("```");
    let mut text = || parts.nth(1).and_then(|text| text.strip_prefix("text\n")).expect("a program");
    let (master, slave) = (text(), text());
    let cell = CELL.replace("\"sensor\"", "\"sensor-1\"");
    let files = [("system.toml", &*cell), ("master.nc", master), ("slave.nc", slave)];
    let place = directory(&files);
    // A frame may be overwritten unread, which the slave's application does not mind.
    let found = verified(place.path(), &["master.nc", "slave.nc"], 6);
    for one in found["properties"].as_array().expect("a list") {
        let expected = if one["property"] == "reception" { "unknown" } else { "proven" };
        assert_eq!(one["verdict"], expected, "{found}");
    }
}

#[test]
fn programs_that_keep_apart_are_proven_and_others_contradicted_by_a_timeline() {
    // Links carry both directions at once: the frames meet on the way to somebody else.
    let third = "[[host]]\nname = \"other\"\n[[link]]\nends = [\"other\", \"bridge\"]\n";
    let cell = format!("{CELL}{third}rate_mbps = 1000\n");
    let early = ANSWERING.replace("200 us", "2 us");
    let files = [("system.toml", &*cell), ("c.nc", CONTROLLER), ("s.nc", ANSWERING)];
    let place = directory(&[&files[..], &[("early.nc", &early)]].concat());
    let place = place.path();
    run(&["nc", "asm", "s.nc", "-o", "s.ncb"], place, 0);
    let proven = verified(place, &["c.nc", "s.ncb"], 0);
    let all = proven["properties"].as_array().expect("a list");
    assert!(all.len() == 9 && all.iter().all(|it| it["verdict"] == "proven"), "{proven}");
    // 100 ppm of 1 ms.
    assert_eq!(
        (&proven["round_min_ns"], &proven["round_max_ns"]),
        (&json!(999_900), &json!(1_000_100))
    );
    assert!(proven["shares"].as_array().is_some_and(|shares| shares.len() == 6), "{proven}");

    let violated = verified(place, &["c.nc", "early.nc", "--svg", "early.svg"], 1);
    assert_eq!(verdict(&violated, "collision-free"), "violated", "{violated}");
    let finding = &violated["properties"][1]["findings"][0];
    assert_eq!((&finding["code"], &finding["file"]), (&json!("OB6103"), &json!("early.nc")));
    let marks = |name: &str| {
        let rows = finding["counterexample"]["rows"].as_array().expect("rows");
        let rows = rows.iter().filter(|row| row["name"] == name);
        let one = |row: &Value| {
            let mark = &row["marks"][0];
            (mark["begin_ns"].as_i64().expect("a time"), mark["end_ns"].as_i64().expect("a time"))
        };
        rows.map(one).collect::<Vec<_>>()
    };
    // The two frames are at one link at once, by the execution that is shown.
    let place_of = finding["message"].as_str().expect("a sentence");
    let link = place_of.rsplit('`').nth(1).expect("a link");
    let [one, other] = marks(link)[..] else { panic!("{finding}") };
    assert!(one.0 < other.1 && other.0 < one.1, "{finding}");
    let svg = String::from_utf8(read(place, "early.svg")).expect("text");
    assert!(svg.starts_with("<svg") && svg.contains("OB6103") && svg.contains(link), "{svg}");
    let shown = run(&["nc", "verify", ".", "c.nc", "early.nc"], place, 1);
    let shown = String::from_utf8(shown.stdout).expect("text");
    assert!(shown.contains("violation[OB6103]: early.nc:1"), "{shown}");
}

#[test]
fn networks_that_programs_are_not_for_are_refused_with_the_reason() {
    let slow = CELL.replace("rate_mbps = 1000", "rate_mbps = 100");
    let other = ANSWERING.replace("station sensor", "station elsewhere");
    let files = [("system.toml", CELL), ("slow.toml", &slow), ("c.nc", CONTROLLER)];
    let place = directory(&[&files[..], &[("s.nc", ANSWERING), ("o.nc", &other)]].concat());
    let place = place.path();
    let refused = |words: &[&str]| stderr(&run(&[&["nc", "verify"], words].concat(), place, 1));
    let said = refused(&["slow.toml", "c.nc", "s.nc"]);
    assert!(said.contains("OB6101") && said.contains("1000 Mb/s") && said.contains("100 Mb/s"));
    let said = refused(&[".", "c.nc", "o.nc"]);
    assert!(said.contains("no host `elsewhere`"), "{said}");
    let said = refused(&[".", "c.nc", "s.nc", "s.nc"]);
    assert!(said.contains("two programs are for the station `sensor`"), "{said}");
    run(&["nc", "verify", "."], place, 2);
    run(&["nc", "verify", ".", "c.nc", "--drift-ppm", "5000"], place, 2);
}

#[test]
fn a_simulation_in_which_nothing_is_sent_claims_nothing() {
    let place = directory(&[("system.toml", CELL), ("s.nc", ANSWERING)]);
    let output =
        run(&["nc", "simulate", ".", "s.nc", "--rounds", "3", "--unprotected"], place.path(), 0);
    let said = String::from_utf8(output.stdout).expect("text");
    let expected = "0 rounds in 1 s, of 3 that were asked for.\n\
                    No message was sent: whether any is lost is unknown.\n\
                    No frame left a port.\n";
    assert!(said.ends_with(expected), "{said}");
}

/// Each command of the example's page, and what it prints.
fn commands(page: &str) -> Vec<(String, String)> {
    let mut commands: Vec<(String, String)> = Vec::new();
    let is_shown = |line: &&str| line.starts_with("    ") || line.is_empty();
    for line in page.lines().filter(is_shown).map(|line| line.get(4..).unwrap_or_default()) {
        match (line.strip_prefix("$ "), commands.last_mut()) {
            (Some(command), _) => commands.push((command.to_owned(), String::new())),
            (None, Some((_, printed))) => {
                printed.push_str(line);
                printed.push('\n');
            }
            (None, None) => {}
        }
    }
    commands
}

#[test]
fn the_example_prints_what_its_page_says() {
    let place = tempfile::tempdir().expect("a directory");
    crate::federated::copy_directory(&root().join("examples/07-network-code"), place.path());
    let page = std::fs::read_to_string(place.path().join("README.md")).expect("text");
    let programs = onbeat().get_program().to_owned();
    let programs = Path::new(&programs).parent().expect("a directory").to_owned();
    let path = std::env::var("PATH").expect("a path");
    let path = format!("{}:{path}", programs.display());
    let mut simulations = 0;
    for (command, expected) in commands(&page) {
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", &command]).env("PATH", &path).current_dir(place.path());
        let output = shell.output().expect("a shell");
        let lines = stdout(&output).lines().fold(String::new(), |mut text, line| {
            text.push_str(line.trim_end());
            text.push('\n');
            text
        });
        assert_eq!(lines.trim(), expected.trim(), "{command}: {}", stderr(&output));
        simulations += u32::from(command.contains("simulate"));
    }
    assert_eq!(simulations, 2);
}

/// A network of the stations of `MASTER` and `SLAVE`, with more of it behind.
fn pair_of_stations(more: &str) -> tempfile::TempDir {
    let network = "format = 1\nname = \"pair\"\n[run]\nduration_ms = 100\nseed = 1\n\
                   [[host]]\nname = \"master\"\n[[host]]\nname = \"slave\"\n\
                   [[bridge]]\nname = \"bridge\"\n\
                   [[link]]\nends = [\"master\", \"bridge\"]\nrate_mbps = 1000\n\
                   [[link]]\nends = [\"slave\", \"bridge\"]\nrate_mbps = 1000\n";
    let network = format!("{network}{more}");
    directory(&[("system.toml", &network), ("master.nc", MASTER), ("slave.nc", SLAVE)])
}

#[test]
fn a_simulation_of_stations_counts_rounds_and_messages() {
    let place = pair_of_stations("");
    run(&["nc", "asm", "slave.nc", "-o", "slave.ncb"], place.path(), 0);
    let words = ["nc", "simulate", ".", "master.nc", "slave.ncb", "--rounds", "7"];
    let found = results(&words, place.path(), 0);
    assert_eq!(found["format"], "onbeat-network-code-simulation");
    let figures = ["rounds", "rounds_wanted", "lost", "collisions", "overwritten", "seed"];
    assert_eq!(figures.map(|name| found[name].as_u64()), [7, 7, 0, 0, 0, 1].map(Some));
    let station = |at: usize| &found["stations"][at];
    assert_eq!(
        [station(0)["name"].as_str(), station(1)["name"].as_str()],
        [Some("master"), Some("slave")]
    );
    assert_eq!(station(0)["counters"]["rounds_begun"], 7);
    // Who starts later than the first round does not see it.
    let seen = station(1)["counters"]["rounds_seen"].as_u64().expect("a number");
    assert!((6..=7).contains(&seen), "{found}");
    let answer = &found["messages"][1];
    assert_eq!((&answer["name"], &answer["sent"]), (&json!("answer"), &json!(seen)));
    let listener = &answer["listeners"][0];
    assert_eq!((&listener["station"], &listener["received"]), (&json!("master"), &json!(seen)));
    // Two links of no length, and a bridge of no time: twice the shortest frame.
    assert_eq!(listener["wire_latency_ns"], json!({ "min": 2 * 72 * 8, "max": 2 * 72 * 8 }));
    // Equal seeds give equal octets; others are other starts.
    let text = |seed| {
        let words = ["nc", "simulate", ".", "master.nc", "slave.nc", "--seed", seed, "--json"];
        stdout(&run(&words, place.path(), 0))
    };
    assert_eq!(text("5"), text("5"));
    assert_ne!(text("5"), text("6"));
    let words = ["nc", "simulate", ".", "master.nc", "slave.nc", "--rounds", "90"];
    let shown = stdout(&run(&words, place.path(), 0));
    assert!(shown.contains("20 rounds in 100 ms, of 90 that were asked for."), "{shown}");
}

#[test]
fn a_simulation_says_what_was_lost_and_which_station_stopped() {
    let down = "[[fault]]\nlink = \"slave.p1\"\nfrom_ms = 20\nuntil_ms = 30\n";
    let place = pair_of_stations(down);
    let words = ["nc", "simulate", ".", "master.nc", "slave.nc"];
    let shown = stdout(&run(&words, place.path(), 3));
    assert!(shown.contains("2 messages were lost."), "{shown}");
    assert!(shown.contains("No frames collided."), "{shown}");
    // Without the flag, which no generated application sets, there is no countdown.
    let trap = "station master\n\nbegin:\n    branch not flag(0), skip\n    future begin, 1 ms\n\
                skip:\n    halt\n";
    std::fs::write(place.path().join("trap.nc"), trap).expect("written");
    let shown = stdout(&run(&["nc", "simulate", ".", "trap.nc"], place.path(), 3));
    assert!(shown.contains("trap.nc:7: station `master` stopped: NoFuture"), "{shown}");
}

#[test]
fn stations_that_a_network_cannot_have_are_refused_with_their_code() {
    let place = pair_of_stations("");
    let other = SLAVE.replace("station slave", "station bridge\nmedium 100 Mbit/s");
    let slow = SLAVE.replace("station slave", "station master\nmedium 100 Mbit/s");
    std::fs::write(place.path().join("other.nc"), other).expect("written");
    std::fs::write(place.path().join("slow.nc"), slow).expect("written");
    let words = ["nc", "simulate", ".", "slave.nc", "other.nc", "slow.nc", "slave.nc"];
    let said = stderr(&run(&words, place.path(), 1));
    for part in [
        "OB6101",
        "`bridge` is a bridge",
        "two programs are of station `slave`",
        "the program of `master` is for a medium of 100 Mb/s, its link has 1 Gb/s",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    run(&["nc", "simulate", "."], place.path(), 2);
    run(&["nc", "simulate", ".", "nowhere.nc"], place.path(), 5);
}

/// Two hosts, of which one answers each second round.
fn answering() -> String {
    let answer = "[[channel]]\nname = \"answer\"\ndestination = \"91:e0:f0:00:fe:02\"\n\
                  stream_id = 2\nclass = \"A\"\nsize_octets = 10\ninterval_ns = 2_000_000\n\
                  talker = \"controller\"\nlisteners = [\"sensor\"]\nfixed_delay_us = 20\n";
    format!("{CELL}{answer}")
}

#[test]
fn channels_become_programs_that_are_proven() {
    let place = directory(&[("system.toml", &answering())]);
    let place = place.path();
    let plan = ["plan", ".", "--backend", "network-code"];
    let with = |more: &[&'static str]| [&plan[..], more].concat();
    let shown = run(&with(&["--deploy", "out"]), place, 0);
    let table = String::from_utf8(shown.stdout.clone()).expect("text");
    for part in ["position", "in time", "may be late", "`sensor` begins it", "after 2 rounds"] {
        assert!(table.contains(part), "{part}: {table}");
    }
    // With best effort at two ports no slots are often enough for 20 µs.
    assert!(stderr(&shown).contains("OB2005"), "{}", stderr(&shown));
    let programs = ["out/sensor.ncb", "out/controller.nc"];
    let verified = verified(place, &programs, 0);
    assert_eq!(verified["hyper_round"], 2);
    let simulate = ["nc", "simulate", ".", "--unprotected", "--rounds", "100", "--start-within"];
    run(&[&simulate[..], &["1ns"], &programs].concat(), place, 0);
    // The image is that of the text.
    run(&["nc", "asm", "out/sensor.nc", "-o", "again.ncb"], place, 0);
    let again = read(place, "again.ncb");
    let (one, other) = (image::parse(&again), image::parse(&read(place, "out/sensor.ncb")));
    assert_eq!(one.expect("an image").words, other.expect("an image").words);

    let document = run(&with(&["--json"]), place, 0).stdout;
    let document: Value = serde_json::from_slice(&document).expect("JSON");
    assert_eq!(document["format"], "onbeat-network-code-plan");
    assert_eq!((&document["round_ns"], &document["rounds"]), (&json!(999_800), &json!(2)));
    let [position, answer] = [0, 1].map(|at| &document["channels"][at]);
    assert_eq!((&position["every"], &answer["every"]), (&json!(1), &json!(2)));
    let listener = &answer["listeners"][0];
    assert_eq!((&listener["host"], &listener["in_time"]), (&json!("sensor"), &json!(false)));
    let terms = listener["terms"].as_array().expect("a list").iter();
    let sum: i64 = terms.map(|term| term["span_ns"].as_i64().expect("a time")).sum();
    assert_eq!(listener["bound_ns"], sum);
    assert_eq!(listener["dominating"], "wait for the slot of controller");

    // The same system gives the same programs, and those take the place of others.
    let before = read(place, "out/sensor.ncb");
    let asked = ["--deploy", "out", "--master", "controller", "--best-effort", "0"];
    let other = run(&with(&asked), place, 0);
    assert!(String::from_utf8_lossy(&other.stdout).contains("`controller` begins it"));
    run(&with(&["--deploy", "out"]), place, 0);
    assert_eq!(read(place, "out/sensor.ncb"), before);
    // A program that somebody wrote is not replaced.
    std::fs::write(place.join("out/own.nc"), SENSOR).expect("written");
    let refused = run(&with(&["--deploy", "out"]), place, 5);
    assert!(stderr(&refused).contains("something else"), "{}", stderr(&refused));
}

#[test]
fn what_no_rounds_carry_is_refused_with_a_code() {
    let slow = answering().replacen("rate_mbps = 1000", "rate_mbps = 100", 1);
    let place = directory(&[("system.toml", &answering()), ("slow.toml", &slow)]);
    let place = place.path();
    let plan = ["plan", "slow.toml", "--backend", "network-code"];
    assert!(stderr(&run(&plan, place, 1)).contains("OB6064"));
    let json = run(&[&plan[..], &["--json"]].concat(), place, 1).stdout;
    let json: Value = serde_json::from_slice(&json).expect("JSON");
    assert_eq!(json["diagnostics"][0]["code"], "OB6064");
    for wrong in [
        &["--backend", "network-code", "--master", "bridge"][..],
        &["--backend", "network-code", "--unprotected"],
        &["--backend", "network-code", "--exact"],
        &["--backend", "nothing"],
        &["--master", "sensor"],
        &["--drift-ppm", "50"],
        &["--best-effort", "0"],
    ] {
        run(&[&["plan", "."], wrong].concat(), place, 2);
    }
}

/// A host with a camera beside stations at a switch of the Atacama platform, which has slots each
/// 13 µs.
const CLOSE: &str = r#"
format = 1
name = "close"
run = { duration_s = 1, backend = "network-code" }
host = [{ name = "a" }, { name = "b" }, { name = "camera" }]
bridge = [{ name = "s", dedicated_path = { on_best_effort = "retry" } }]
link = [
  { ends = ["a", "s"], rate_mbps = 1000 },
  { ends = ["b", "s"], rate_mbps = 1000 },
  { ends = ["camera", "s"], rate_mbps = 1000 },
]
noise = [{ name = "pictures", from = "camera", to = "b", size_octets = 1400, rate_mbps = 1 }]

[[channel]]
name = "x"
destination = "01:00:5e:00:00:01"
stream_id = 1
class = "A"
size_octets = 8
interval_ns = 13_000
talker = "a"
listeners = ["b"]
"#;

// A picture's frame has 1,446 octets, and 20 more with its preamble and gap: 11.73 µs. Of 13 µs two
// frames of 704 ns, their gaps among them, leave less; of 14 µs they leave enough.
#[test]
fn best_effort_that_is_never_sent_is_warned_of_and_is_not_sent() {
    let with = |policy: &str, interval: &str| {
        let text = CLOSE.replace("\"retry\"", policy).replace("13_000", interval);
        let place = directory(&[("system.toml", &text)]);
        let options = ["--best-effort", "0", "--deploy", "out"];
        let backend = ["plan", ".", "--backend", "network-code"];
        let said = stderr(&run(&[&backend[..], &options].concat(), place.path(), 0));
        let programs = ["out/a.ncb", "out/b.ncb"];
        let words = ["nc", "simulate", ".", "--duration", "50ms", "--json"];
        let output = run(&[&words[..], &programs].concat(), place.path(), 0);
        let simulated: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let ports = simulated["ports"].as_array().expect("ports");
        let of_b = ports.iter().find(|port| port["name"] == "s.p2").expect("the port to b");
        let count = |what: &str| of_b["dedicated"][what].as_u64().expect(what);
        (said, count("aborts"), count("resent"))
    };
    let (said, aborts, resent) = with("\"retry\"", "13_000");
    assert!(
        said.contains("warning[OB6072]") && said.contains("1446 octets takes 11.73 µs"),
        "{said}"
    );
    assert!(said.contains("at s.p2") && said.contains("never sent"), "{said}");
    // From the first one on in each round, as the next ones are behind it.
    assert!(aborts > 2_000 && resent == aborts, "{aborts} {resent}");

    let (said, aborts, resent) = with("\"drop\"", "13_000");
    assert!(said.contains("OB6072") && said.contains("it is lost"), "{said}");
    assert!(aborts > 0 && resent == 0, "{aborts} {resent}");

    let (said, aborts, _) = with("\"retry\"", "14_000");
    assert!(!said.contains("OB6072"), "{said}");
    assert!(aborts < 500, "{aborts}");
    let (said, aborts, _) = with("\"finish\"", "100_000");
    assert!(!said.contains("OB6072") && aborts == 0, "{said} {aborts}");
}
