//! Replicated channels through the command: a link fails in a run, captures as Wireshark reads
//! them, what a host's table and the plan say.

use crate::common::{TestSystem, channel, number, results, run};
use onbeat_testkit::{Need, not_run};
use serde_json::Value;
use std::process::Command;

/// Hosts `a` and `b` at a ring of four bridges; `twice` by both ways, `once` by the upper one.
/// The upper one fails for a while.
const RING: &str = r#"
format = 1
name = "ring"
[run]
duration_ms = 200
[[host]]
name = "a"
[[host]]
name = "b"
[[bridge]]
name = "west"
[[bridge]]
name = "upper"
[[bridge]]
name = "lower"
[[bridge]]
name = "east"
[[link]]
ends = ["a", "west.a"]
rate_mbps = 1000
[[link]]
ends = ["b", "east.b"]
rate_mbps = 1000
[[link]]
ends = ["west.upper", "upper.west"]
rate_mbps = 1000
[[link]]
ends = ["upper.east", "east.upper"]
rate_mbps = 1000
[[link]]
ends = ["west.lower", "lower.west"]
rate_mbps = 100
[[link]]
ends = ["lower.east", "east.lower"]
rate_mbps = 100
[[channel]]
name = "twice"
destination = "91:e0:f0:00:fe:01"
stream_id = 1
class = "A"
size_octets = 64
rate_hz = 1000
talker = "a"
listeners = ["b"]
disjoint_paths = 2
[[channel]]
name = "once"
destination = "91:e0:f0:00:fe:02"
stream_id = 2
class = "A"
size_octets = 64
rate_hz = 1000
talker = "a"
listeners = ["b"]
paths = [["west", "upper", "east"]]
[[fault]]
link = "upper.east"
from_ms = 50
until_ms = 100
"#;

#[test]
fn a_link_that_fails_costs_a_replicated_channel_no_message() {
    let system = TestSystem::new(RING);
    let results = results(&["run", "."], system.path(), 3);
    let [twice, once] = ["twice", "once"].map(|name| channel(&results, name));
    let counts =
        |channel| ["sent", "received", "lost", "duplicated"].map(|key| number(channel, key));
    assert_eq!([counts(twice), counts(once)], [[200, 200, 0, 0], [200, 150, 50, 0]]);
    assert_eq!((&twice["verdict"], &once["verdict"]), (&"kept".into(), &"broken".into()));
    // By the slower path for a while.
    let slowest = number(twice, "latency_ns.max");
    assert!(slowest > 5 * number(twice, "latency_ns.min"), "{twice}");
    assert!(slowest <= number(twice, "bound_ns"), "{twice}");
}

#[test]
fn the_plan_the_report_and_a_hosts_table_say_what_is_replicated() {
    let system = TestSystem::new(RING);
    // Twice: a deployment replaces one.
    let plan = || results(&["plan", ".", "--deploy", "out"], system.path(), 0);
    assert_eq!(plan(), plan());
    let plan = plan();
    let listener = &plan["channels"][0]["listeners"][0];
    let upper = ["a.p1", "west.upper", "upper.east", "east.b"];
    let lower = ["a.p1", "west.lower", "lower.east", "east.b"];
    assert_eq!(listener["path"], serde_json::json!(upper));
    assert_eq!(listener["paths"], serde_json::json!([upper, lower]));
    assert_eq!(plan["channels"][1]["listeners"][0]["paths"], Value::Null);
    let table = std::fs::read_to_string(system.path().join("out/a.channels")).expect("a table");
    assert!(table.starts_with("onbeat-channels 3\n"), "{table}");
    let end = |name: &str| {
        let mut lines = table.lines().filter(|line| line.contains(&format!(" {name} ")));
        lines.next().expect("a line").rsplit(' ').nth(1).map(str::to_owned)
    };
    assert_eq!([end("twice"), end("once")], ["r-tag", "bare"].map(|word| Some(word.to_owned())));
    // Bridges on the paths are told of them; the last one eliminates. `once` is not numbered.
    let eliminates = ["west", "upper", "lower", "east"].map(|name| {
        let file = system.path().join(format!("out/{name}.streams.yang.json"));
        let told = std::fs::read_to_string(file).expect("its streams");
        assert_eq!(told.matches("null-stream-identification").count(), 1, "{told}");
        told.contains("sequence-recovery")
    });
    assert_eq!(eliminates, [false, false, false, true]);
    let text = String::from_utf8(run(&["plan", "."], system.path(), 0).stdout).expect("UTF-8");
    // A line of its own for the second path.
    let second = "west.lower → lower.east → east.b";
    let routes: Vec<&str> = text.lines().filter(|line| line.contains(second)).collect();
    assert_eq!(routes.len(), 1, "a line for the second path: {text}");
}

#[test]
fn a_simulation_counts_the_copies_and_wireshark_reads_their_numbers() {
    let system = TestSystem::new(RING);
    let arguments = ["simulate", ".", "--capture", "c.pcapng", "--capture-port", "east.b"];
    let results = results(&arguments, system.path(), 0);
    let flow = |name: &str| {
        let flows = results["flows"].as_array().expect("flows");
        flows.iter().find(|flow| flow["name"] == name).expect("the flow").clone()
    };
    let (twice, once) = (flow("twice"), flow("once"));
    let released = number(&twice, "released");
    assert_eq!(number(&twice["listeners"][0], "frames"), released);
    assert_eq!(number(&twice, "duplicates") + number(&twice, "faulted"), released);
    assert_eq!((number(&twice, "rogue"), number(&twice, "faulted") > 0), (0, true));
    assert_eq!((number(&once, "duplicates"), number(&once, "faulted") > 0), (0, true));
    let mut tshark = Command::new("tshark");
    tshark.args(["-r", "c.pcapng", "-Y", "eth.dst == 91:e0:f0:00:fe:01", "-T", "fields"]);
    tshark.args(["-E", "separator=,", "-e", "ieee8021cb.seq", "-e", "_ws.col.Protocol"]);
    tshark.args(["-e", "_ws.malformed", "-e", "frame.len"]);
    let output = match tshark.current_dir(system.path()).output() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return not_run(Need::Tools, "tshark: what Wireshark makes of redundancy tags");
        }
        output => output.expect("tshark runs"),
    };
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    // 18 of addresses and tag, 6 of the redundancy tag, 24 of the stream header, the message.
    let expected: Vec<String> = (0..released).map(|n| format!("{n:#06x},IEEE1722,,112")).collect();
    assert_eq!(text.lines().collect::<Vec<_>>(), expected);
}
