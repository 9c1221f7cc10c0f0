//! Other tools' networks and streams as a user imports them: by the command.

use crate::common::{onbeat, results, root, run};
use onbeat_hunt::Dice;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

/// A stream as its file has it.
struct Stream {
    from: usize,
    to: Vec<usize>,
    size: i64,
    period: i64,
    deadline: i64,
}

/// A link's direction: nanoseconds per bit, processing and propagation.
type Links = BTreeMap<(usize, usize), [i64; 3]>;

/// An instance in the style of the benchmark: a ring of bridges with a host at each.
fn instance(seed: u64, bridges: usize, streams: usize) -> (Links, Vec<Stream>) {
    let mut dice = Dice::new(seed);
    let mut links = Links::new();
    for bridge in 0..bridges {
        let slow = if dice.below(4) == 0 { 10 } else { 1 };
        let other = (bridge + 1) % bridges;
        for (pair, rate) in [((bridge, other), 1), ((bridge, bridges + bridge), slow)] {
            let propagation = dice.below(500) as i64;
            links.insert(pair, [rate, 2_000, propagation]);
            links.insert((pair.1, pair.0), [rate, 2_000, propagation]);
        }
    }
    let stream = |dice: &mut Dice| {
        let from = dice.below(bridges as u64) as usize;
        let away = 1 + dice.below(bridges as u64 - 2) as usize;
        let two = [away, away + 1].map(|away| bridges + (from + away) % bridges);
        let to = two[..1 + dice.below(2) as usize].to_vec();
        let period = dice.one(&[500_000, 1_000_000, 2_000_000, 4_000_000]);
        let size = 50 + dice.below(451) as i64;
        Stream { from: bridges + from, to, size, period, deadline: period }
    };
    (links, (0..streams).map(|_| stream(&mut dice)).collect())
}

/// Writes the two files of an instance.
fn write(place: &Path, links: &Links, streams: &[Stream]) {
    let mut text = String::from("link,q_num,rate,t_proc,t_prop\n");
    for ((from, to), [rate, processing, propagation]) in links {
        let _ = writeln!(text, "\"({from}, {to})\",8,{rate},{processing},{propagation}");
    }
    std::fs::write(place.join("links.csv"), text).expect("written");
    let mut text = String::from("stream,src,dst,size,period,deadline,jitter\n");
    for (number, Stream { from, to, size, period, deadline }) in streams.iter().enumerate() {
        let _ = writeln!(text, "{number},{from},\"{to:?}\",{size},{period},{deadline},{deadline}");
    }
    std::fs::write(place.join("streams.csv"), text).expect("written");
}

/// The number of the node of a port, such as `b3.p1`.
fn node(port: &str) -> usize {
    port.split('.').next().expect("a node")[1..].parse().expect("a number")
}

/// The windows at a port: how often they repeat, when they open and how long they are.
type Windows = BTreeMap<String, Vec<[i64; 3]>>;

/// Holds one channel of a plan against the file.
fn hold(channel: &Value, stream: &Stream, links: &Links, bridges: usize, at: &mut Windows) {
    let launch = &channel["launch"];
    let whole = |value: &Value| value.as_i64().expect("a whole number");
    let begin = whole(&launch["at_ns"]);
    assert!((0..stream.period).contains(&begin));
    // The shortest tagged frame with preamble and gap has 88 octets.
    let octets = stream.size.max(88);
    let mut windows = BTreeMap::new();
    for window in launch["windows"].as_array().expect("windows") {
        let port = window["port"].as_str().expect("a port");
        let [start, span] = ["start_ns", "span_ns"].map(|key| whole(&window[key]));
        assert!(windows.insert(port, (start, span)).is_none(), "{port} has two windows");
        at.entry(port.to_owned()).or_default().push([stream.period, start, span]);
    }
    let listeners = channel["listeners"].as_array().expect("listeners");
    assert_eq!(listeners.len(), stream.to.len());
    for (listener, to) in listeners.iter().zip(&stream.to) {
        assert_eq!(listener["host"], format!("h{to}"));
        let path = listener["path"].as_array().expect("a path");
        let path: Vec<&str> = path.iter().map(|port| port.as_str().expect("a port")).collect();
        assert_eq!(node(path[0]), stream.from);
        let (from, to) = (stream.from - bridges, to - bridges);
        let apart = from.abs_diff(to);
        assert_eq!(path.len(), apart.min(bridges - apart) + 2, "not a shortest path");
        let mut here = begin;
        for (at, port) in path.iter().enumerate() {
            let next = path.get(at + 1).map_or(to + bridges, |next| node(next));
            let [rate, processing, propagation] = links[&(node(port), next)];
            let (start, span) = windows[port];
            assert_eq!(span, octets * 8 * rate, "{port}");
            assert!(start >= here, "{port} opens at {start}, the frame is there at {here}");
            here = start + (octets - 12) * 8 * rate + propagation + processing;
        }
        assert!(here - begin <= stream.deadline, "late: {}", here - begin);
        assert_eq!(whole(&listener["bound_ns"]), here - begin);
    }
}

/// Windows of one port never overlap: those of one period, moved by it until all periods end.
fn disjoint(port: &str, windows: &[[i64; 3]]) {
    let all = windows.iter().map(|[period, ..]| *period).max().expect("one");
    let mut times: Vec<(i64, i64)> = Vec::new();
    for [period, start, span] in windows {
        assert_eq!(all % period, 0);
        let first = start.rem_euclid(*period);
        times.extend((0..all / period).map(|turn| (first + turn * period, *span)));
    }
    times.sort_unstable();
    let next = times.iter().cycle().skip(1);
    for (turn, ((start, span), (next, _))) in times.iter().zip(next).enumerate() {
        let next = if turn + 1 == times.len() { next + all } else { *next };
        assert!(start + span <= next, "{port}: {start} + {span}, then {next}");
    }
}

#[test]
fn a_plan_of_imported_files_keeps_every_rate_and_deadline_of_these() {
    for (seed, bridges, streams) in [(1, 4, 10), (2, 6, 24), (3, 12, 40)] {
        let place = tempfile::tempdir().expect("a directory");
        let (links, streams) = instance(seed, bridges, streams);
        write(place.path(), &links, &streams);
        let arguments = ["import", "links.csv", "--streams", "streams.csv", "-o", "system.toml"];
        run(&arguments, place.path(), 0);
        run(&["check", "system.toml"], place.path(), 0);
        let plan = results(&["plan", "system.toml"], place.path(), 0);
        let channels = plan["channels"].as_array().expect("channels");
        assert_eq!(channels.len(), streams.len());
        let mut windows = Windows::new();
        for (number, (channel, stream)) in channels.iter().zip(&streams).enumerate() {
            assert_eq!(channel["name"], format!("s{number}"));
            hold(channel, stream, &links, bridges, &mut windows);
        }
        windows.iter().for_each(|(port, windows)| disjoint(port, windows));
        let ports = plan["ports"].as_array().expect("ports");
        assert_eq!(ports.len(), links.len());
        let rates: i64 = ports.iter().map(|port| port["rate_bps"].as_i64().expect("a rate")).sum();
        assert_eq!(rates, links.values().map(|[rate, ..]| 1_000_000_000 / rate).sum::<i64>());
    }
}

/// What is wrong: the network, the streams, further arguments; the exit code and what is said.
const WRONG: &[(&str, &str, &[&str], i32, &str)] = &[
    (" ", "", &[], 1, "error[OB1601]: the file is empty"),
    ("link,rate\n", "", &[], 1, "error[OB1602]: the column `t_proc` is missing"),
    ("LINKS\"(0, 4)\",8,1,0\n", "", &[], 1, "error[OB1601]: the line has 4 cells, the head 5"),
    ("LINKS\"(0, 4\",8,1,0,0\n", "", &[], 1, "error[OB1603]: `link` is `(0, 4`"),
    ("LINKS\"(0, 4)\",8,7,0,0\n", "", &[], 1, "error[OB1603]: `rate` is `7`"),
    ("PAIR\"(0, 4)\",8,1,0,0\n", "", &[], 1, "error[OB1604]: the link (0, 4) is there twice"),
    ("PAIR", "0,4,[5],x,9,9,9\n", &[], 1, "error[OB1603]: stream `0`: `size` is `x`"),
    ("PAIR", "0,4,[0],99,9,5000,9\n", &["--size", "none"], 2, "invalid value 'none' for"),
    ("PAIR", "0,4,[5],99,9,5000,9\n", &[], 1, "error[OB1021]: stream `0`: unknown node `5`"),
    ("PAIR", "0,4,[4],99,9,5000,9\n", &[], 1, "error[OB1046]: stream `0`: node `4` is source"),
    ("PAIR", "0,4,[0],2000,9,5000,9\n", &[], 1, "error[OB1011]: stream `0`: `size` 2000 does"),
    ("PAIR", "0,4,[0],99,9,999,9\n", &[], 1, "error[OB1603]: stream `0`: `deadline` is `999`"),
    ("PAIR", "", &["--rate-mbps", "10"], 2, "--rate-mbps is for graphs"),
    ("PAIR", "", &["--json"], 2, "--out"),
    ("PAIR", "", &["-o", "network"], 2, "network would be overwritten"),
    ("<graphml>", "", &[], 1, "error[OB1601]: the text is not GraphML: an element does not end"),
    ("GRAPH&a;</label>", "", &[], 1, "error[OB1601]: the text is not GraphML: the entity `a`"),
    ("GRAPH</label><graph/>", "", &[], 1, "there is a second or a nested `graph`"),
];

#[test]
fn each_wrong_input_is_refused_with_its_file_line_and_remedy() {
    for (network, streams, more, code, expected) in WRONG {
        let place = tempfile::tempdir().expect("a directory");
        let head = "link,q_num,rate,t_proc,t_prop\n";
        let pair = format!("{head}\"(0, 4)\",8,1,0,0\n\"(4, 0)\",8,1,0,0\n");
        let network = network.replace("LINKS", head).replace("PAIR", &pair);
        let network = network.replace("GRAPH", "<graphml><graph><label>");
        std::fs::write(place.path().join("network"), &network).expect("written");
        let mut arguments = vec!["import", "network"];
        if !streams.is_empty() {
            let head = "stream,src,dst,size,period,deadline,jitter\n";
            std::fs::write(place.path().join("s.csv"), [head, streams].concat()).expect("written");
            arguments.extend(["--streams", "s.csv"]);
        }
        arguments.extend(*more);
        let output = run(&arguments, place.path(), *code);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.stdout.is_empty(), "{expected}");
        assert!(said.contains(expected), "{expected}\n{said}");
        if *code == 1 {
            let file = if streams.is_empty() { "--> network:" } else { "--> s.csv:2:" };
            assert!(said.contains(file) && said.contains("help: "), "{said}");
        }
    }
}

#[test]
fn warnings_are_shown_and_with_json_listed() {
    let tests = root().join("crates/description/tests/import");
    let place = tempfile::tempdir().expect("a directory");
    for name in ["links.csv", "streams.csv", "graph.graphml"] {
        std::fs::copy(tests.join(name), place.path().join(name)).expect("copied");
    }
    let arguments = ["import", "links.csv", "--streams", "streams.csv", "-o", "system.toml"];
    let found = results(&arguments, place.path(), 0);
    let codes: Vec<&str> = found["diagnostics"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|diagnostic| diagnostic["code"].as_str().expect("a code"))
        .collect();
    assert_eq!(codes, ["OB1607", "OB1607", "OB1606"]);
    assert_eq!(found["ok"], true);
    run(&["plan", "system.toml"], place.path(), 0);
    // The same on standard output.
    let output = run(&arguments[..4], place.path(), 0);
    let written = std::fs::read(place.path().join("system.toml")).expect("written");
    assert_eq!(output.stdout, written);
    // A graph without streams.
    let output = run(&["import", "graph.graphml", "-o", "graph.toml"], place.path(), 0);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("hosts: 2, bridges: 3, links: 6, channels: 0: graph.toml"), "{said}");
    run(&["plan", "graph.toml"], place.path(), 0);
}

#[test]
fn a_link_out_of_the_directory_is_not_read() {
    let outside = tempfile::tempdir().expect("a directory");
    std::fs::write(outside.path().join("secret"), "s3cr3t,x").expect("written");
    let place = tempfile::tempdir().expect("a directory");
    std::os::unix::fs::symlink(outside.path().join("secret"), place.path().join("links.csv"))
        .expect("a link");
    let home = place.path().join("home");
    let mut command = onbeat();
    command.args(["import", "links.csv"]).current_dir(place.path()).env("XDG_STATE_HOME", home);
    let output = command.output().expect("onbeat runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(5), "{said}");
    assert!(!said.contains("s3cr3t") && said.contains("not trusted"), "{said}");
}
