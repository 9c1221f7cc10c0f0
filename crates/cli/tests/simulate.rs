//! The verbs `simulate` and `bounds`, from a description to files and exit codes.

use crate::common::{TestSystem, number, onbeat, results, root, run, two_hosts};
use onbeat_runtime::wire::Frame;
use onbeat_testkit::{Need, not_run};
use pcap_file::pcapng::{Block, PcapNgReader};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Four bridges in a ring, a host at each, streams of several kinds half way round, a channel and
/// noise.
fn ring() -> TestSystem {
    let mut text = String::from("format = 1\nname = \"ring\"\n[run]\nduration_ms = 50\nseed = 3\n");
    for at in 0..4 {
        text += &format!("[[host]]\nname = \"h{at}\"\nstack_tx_ns = {{ min = 100, max = 5000 }}\n");
    }
    for at in 0..4 {
        text += &format!("[[bridge]]\nname = \"s{at}\"\nforwarding_ns = 1000\n");
    }
    for at in 0..4 {
        let next = (at + 1) % 4;
        for ends in [format!("\"h{at}\", \"s{at}\""), format!("\"s{at}\", \"s{next}\"")] {
            text += &format!("[[link]]\nends = [{ends}]\nrate_mbps = 100\n");
        }
        let (to, over) = ((at + 2) % 4, (at + 1) % 4);
        text += &format!(
            r#"
            [[stream]]
            name = "half{at}"
            talker = "h{at}"
            listeners = ["h{to}"]
            traffic_class = 5
            vlan = 7
            frame_octets = 500
            interval_ns = 1000000
            jitter_ns = 20000
            paths = [["s{at}", "s{over}", "s{to}"]]
            "#
        );
    }
    text += r#"
        [[channel]]
        name = "c"
        destination = "01:00:5e:00:00:01"
        stream_id = 1
        class = "A"
        size_octets = 8
        rate_hz = 1000
        talker = "h0"
        listeners = ["h1", "h3"]
        [[noise]]
        name = "n"
        from = "h1"
        to = "h0"
        size_octets = 1000
        rate_mbps = 40
    "#;
    TestSystem::new(&text)
}

/// The octets of the JSON and of the capture.
fn octets(system: &TestSystem, arguments: &[&str]) -> [Vec<u8>; 2] {
    let all = [&["simulate", ".", "--capture", "c.pcapng"], arguments].concat();
    run(&all, system.path(), 0);
    let files = ["out-simulation/simulation.json", "c.pcapng"];
    files.map(|file| std::fs::read(system.path().join(file)).expect("written"))
}

#[test]
fn the_same_seed_gives_the_same_octets_and_another_seed_others() {
    let system = ring();
    let first = octets(&system, &[]);
    assert_eq!(first, octets(&system, &["--seed", "3"]));
    let other = octets(&system, &["--seed", "4"]);
    assert!(first[0] != other[0] && first[1] != other[1]);
}

#[test]
fn captures_have_the_frames_of_protocols() {
    let more = r#"
        [synchronisation]
        grandmaster = "a"
        in_run = true
        [[tcp]]
        name = "t"
        talker = "a"
        listener = "b"
        writes_octets = [21, 16]
        interval_ns = 10_000_000
    "#;
    let text = two_hosts(more).replace("[run]\n", "[run]\nreservation = \"srp\"\n");
    let system = TestSystem::new(&text);
    octets(&system, &[]);
    let mut tshark = Command::new("tshark");
    tshark.args(["-r", "c.pcapng", "-T", "fields", "-E", "separator=,"]);
    tshark.args(["-e", "_ws.col.Protocol", "-e", "_ws.malformed", "-e", "_ws.expert.message"]);
    let output = match tshark.current_dir(system.path()).output() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return not_run(Need::Tools, "tshark: what Wireshark makes of protocols' frames");
        }
        output => output.expect("tshark runs"),
    };
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let kinds: BTreeSet<&str> = text.lines().collect();
    for protocol in ["IEEE1722", "MRP-MSRP", "MRP-MVRP", "PTPv2", "TCP"] {
        assert!(kinds.contains(format!("{protocol},,").as_str()), "{protocol}: {kinds:?}");
    }
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let system = ring();
    let with = |jobs: &'static str| octets(&system, &["--repetitions", "9", "--jobs", jobs]);
    let one = with("1");
    assert_eq!(one, with("2"));
    assert_eq!(one, with("7"));
    let json: Value = serde_json::from_slice(&one[0]).expect("JSON");
    assert_eq!(number(&json, "settings.repetitions"), 9);
    assert_eq!(json["settings"]["phases"], "random");
}

#[test]
fn repetitions_have_randomness_of_their_own() {
    let system = ring();
    let max = |repetitions| {
        let arguments = ["simulate", ".", "--phases", "random", "--repetitions", repetitions];
        let json = results(&arguments, system.path(), 0);
        json["flows"].as_array().expect("flows").iter().map(longest).collect::<Vec<_>>()
    };
    let (one, many) = (max("1"), max("20"));
    assert!(one.iter().zip(&many).all(|(one, many)| one <= many));
    assert!(one.iter().zip(&many).any(|(one, many)| one < many));
}

/// The longest latency of a flow's first listener.
fn longest(flow: &Value) -> i64 {
    number(&flow["listeners"][0], "latency_ns.max")
}

#[test]
fn a_capture_has_every_frame_that_the_ports_sent_in_order_and_with_its_octets() {
    let system = ring();
    let [json, capture] = octets(&system, &[]);
    let json: Value = serde_json::from_slice(&json).expect("JSON");
    let mut sent = BTreeMap::new();
    for port in json["ports"].as_array().expect("ports") {
        let queues = port["queues"].as_array().expect("queues");
        let frames: i64 = queues.iter().map(|queue| number(queue, "sent")).sum();
        sent.insert(port["port"].as_str().expect("a name").to_owned(), frames);
    }
    let mut names = Vec::new();
    let (mut seen, mut half, mut last) = (BTreeMap::new(), Vec::new(), Duration::ZERO);
    let mut reader = PcapNgReader::new(&capture[..]).expect("a section header");
    while let Some(block) = reader.next_block() {
        match block.expect("a block") {
            Block::InterfaceDescription(interface) => {
                names.push(format!("{:?}", interface.options[0]));
                seen.insert(names.len() - 1, 0);
            }
            Block::EnhancedPacket(packet) => {
                assert!(packet.timestamp >= last, "frames are in order of time");
                last = packet.timestamp;
                *seen.get_mut(&(packet.interface_id as usize)).expect("a known port") += 1;
                if let Ok(frame) = Frame::parse(&packet.data)
                    && frame.header.vlan == 7
                    && packet.data[0] == 0x53
                    && packet.data[5] == 2
                    && names[packet.interface_id as usize].contains("\"s3.")
                {
                    half.push((frame.header, packet.data.len()));
                }
            }
            other => panic!("{other:?}"),
        }
    }
    let seen: BTreeMap<_, _> = seen
        .into_iter()
        .map(|(at, count)| {
            let name = names[at].split('"').nth(1).expect("a name").to_owned();
            (name, count)
        })
        .collect();
    assert_eq!(seen, sent);
    // Stream half2 goes from h2 over s3 to h0: s3 sends each of its 50 frames once.
    assert_eq!(half.len(), 50);
    for (at, (header, length)) in half.iter().enumerate() {
        assert_eq!((usize::from(header.number), *length), (at, 496));
        assert_eq!(header.stream_id.0, 0x0200_0000_0003_0000);
        // By a perfect clock, at most 20 µs after its instant.
        let late = i64::from(header.timestamp) - at as i64 * 1_000_000;
        assert!((0..=20_000).contains(&late), "{late}");
    }
}

#[test]
fn one_port_can_be_captured_alone() {
    let system = ring();
    let capture = ["--capture", "one.pcapng", "--capture-port", "h2.p1"];
    run(&[&["simulate", "."], &capture[..]].concat(), system.path(), 0);
    let file = std::fs::read(system.path().join("one.pcapng")).expect("written");
    let mut reader = PcapNgReader::new(&file[..]).expect("a section header");
    let (mut interfaces, mut packets) = (0, 0);
    while let Some(block) = reader.next_block() {
        match block.expect("a block") {
            Block::InterfaceDescription(_) => interfaces += 1,
            Block::EnhancedPacket(_) => packets += 1,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((interfaces, packets), (1, 50));
}

#[test]
fn a_missed_deadline_is_exit_code_3_with_a_line_that_says_so() {
    let text = two_hosts(
        r#"
        [[stream]]
        name = "hasty"
        talker = "a"
        listeners = ["b"]
        traffic_class = 4
        frame_octets = 1000
        interval_ns = 1000000
        deadline_us = 100
        "#,
    );
    // Two links of 100 Mb/s: 2 · 80.64 µs and more.
    let system = TestSystem::new(&text);
    let output = run(&["simulate", "."], system.path(), 3);
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(said.contains("onbeat: stream hasty") && said.contains("deadline"), "{said}");
    assert!(system.path().join("out-simulation/simulation.html").is_file());
}

#[test]
fn an_interrupt_leaves_what_was_seen_so_far_and_nothing_unfinished() {
    let system = ring();
    let child = onbeat()
        .args(["simulate", ".", "--duration", "30days", "--capture", "c.pcapng"])
        .args(["--capture-port", "h2.p1"])
        .current_dir(system.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let mut child = child.expect("onbeat runs");
    // It is in progress when the files that it begins are there.
    let begun = |name: &str| {
        let entries = system.path().read_dir().expect("the directory").flatten();
        entries.map(|e| e.file_name()).any(|n| n.to_string_lossy().starts_with(name))
    };
    while !begun("out-simulation.partial") {
        assert!(child.try_wait().expect("a child").is_none(), "it ended by itself");
        std::thread::yield_now();
    }
    let pid = Pid::from_raw(child.id() as i32).expect("a process");
    kill_process(pid, Signal::INT).expect("sent");
    assert_eq!(child.wait().expect("a child").code(), Some(130));
    assert!(!begun("out-simulation.partial") && !begun("c.pcapng.partial"));
    let json = system.path().join("out-simulation/simulation.json");
    let json: Value = serde_json::from_slice(&std::fs::read(json).expect("written")).expect("JSON");
    assert!(number(&json, "totals.simulated_ns") < 30 * 24 * 3_600 * 1_000_000_000);
    assert!(system.path().join("c.pcapng").is_file());
}

#[test]
fn wrong_arguments_are_refused_before_anything_is_written() {
    let system = ring();
    for (arguments, part) in [
        (&["--capture", "c", "--capture-port", "s1.p9"][..], "there are: s1.p1, s1.p2, s1.p3"),
        (&["--capture", "c", "--capture-port", "x"], "ports are named as in"),
        (&["--capture-port", "s1.p1"], "--capture"),
        (&["--scenario", "none"], "there is no scenario `none`; the description has none"),
        (&["--repetitions", "0"], "--repetitions"),
        (&["--phases", "shifted"], "described, random, aligned"),
    ] {
        let output = run(&[&["simulate", "."], arguments].concat(), system.path(), 2);
        let said = String::from_utf8(output.stderr).expect("UTF-8");
        assert!(said.contains(part), "{arguments:?}: {said}");
    }
    let mut names = system.path().read_dir().expect("the directory").flatten();
    assert!(names.all(|entry| entry.file_name() == "system.toml"));
}

#[test]
fn a_run_says_what_becomes_of_streams_and_faults() {
    let system = ring();
    let output = run(&["run", ".", "--duration", "20ms"], system.path(), 0);
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(said.contains("streams and faults take part"), "{said}");
    // They do: the stream of the same bridge is in the channel's way.
    let json = results(&["run", ".", "--duration", "20ms"], system.path(), 0);
    let with = number(&json["runs"][0]["channels"][0]["listeners"][0], "latency_ns.max");
    let text = std::fs::read_to_string(system.path().join("system.toml")).expect("written");
    let idle = text.replace("interval_ns = 1000000", "interval_ns = 1000000\nphase_ns = 900000000");
    let idle = TestSystem::new(&idle);
    let json = results(&["run", ".", "--duration", "20ms"], idle.path(), 0);
    let without = number(&json["runs"][0]["channels"][0]["listeners"][0], "latency_ns.max");
    assert!(with > without, "{with} {without}");
}

#[test]
fn a_reader_of_diagnostics_that_has_gone_away_is_no_error_of_its_own() {
    let system = TestSystem::new(&"wrong = 1\n".repeat(50));
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let status = onbeat().args(["check", "."]).current_dir(system.path()).stderr(writer).status();
    assert_eq!(status.expect("onbeat runs").code(), Some(1));
}

#[test]
fn what_cannot_be_printed_is_not_fine() {
    let system = TestSystem::new(&two_hosts(""));
    let full = || std::fs::File::create("/dev/full").expect("every Linux has it");
    let verb = |verb| onbeat().args([verb, "."]).current_dir(system.path()).stdout(full()).status();
    assert_eq!(verb("bounds").expect("onbeat runs").code(), Some(5));
    assert_eq!(verb("simulate").expect("onbeat runs").code(), Some(5));
    assert!(system.path().join("out-simulation/simulation.json").is_file());
}

#[test]
fn a_directory_of_something_else_is_not_replaced() {
    let system = ring();
    run(&["simulate", "."], system.path(), 0);
    run(&["simulate", "."], system.path(), 0);
    let own = system.path().join("out-simulation/notes.txt");
    std::fs::write(&own, "mine").expect("written");
    let output = run(&["simulate", "."], system.path(), 5);
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(said.contains("something else than the output of a simulation"), "{said}");
    assert!(own.is_file());
    // Neither does a capture replace a directory.
    let output = run(&["simulate", ".", "--capture", "out-simulation"], system.path(), 5);
    assert!(String::from_utf8_lossy(&output.stderr).contains("is not a file"));
    // Nor anything that is no capture, such as the description.
    let before = std::fs::read(system.path().join("system.toml")).expect("there");
    let output = run(&["simulate", ".", "--capture", "system.toml"], system.path(), 5);
    assert!(String::from_utf8_lossy(&output.stderr).contains("something else than a capture"));
    assert_eq!(std::fs::read(system.path().join("system.toml")).expect("there"), before);
}

#[test]
fn channels_of_a_system_with_programs_are_modelled_and_a_line_says_so() {
    let text = two_hosts("[[program]]\nname = \"p\"\nhost = \"a\"\ncommand = [\"nowhere/p\"]");
    let system = TestSystem::new(&text);
    let output = run(&["simulate", ".", "--json"], system.path(), 0);
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(said.contains("no program is started"), "{said}");
    let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    // 500 ms at 1 kHz.
    assert_eq!(number(&json["flows"][0], "released"), 500);
    let file = std::fs::read(Path::new(system.path()).join("out-simulation/simulation.json"));
    assert_eq!(file.expect("written"), output.stdout);
}

#[test]
fn help_has_examples_that_the_command_takes() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut examples = 0;
    for verb in ["simulate", "bounds"] {
        let output = run(&[verb, "--help"], directory.path(), 0);
        let help = String::from_utf8(output.stdout).expect("UTF-8");
        for example in help.lines().filter_map(|line| line.strip_prefix("  onbeat ")) {
            let words: Vec<_> = example.split(' ').collect();
            let output = onbeat().args(&words).current_dir(directory.path()).output();
            // There is no such file here (5), but the words are right (not 2).
            assert_eq!(output.expect("onbeat runs").status.code(), Some(5), "{example}");
            examples += 1;
        }
    }
    assert!(examples >= 5, "{examples}");
}

#[test]
fn bounds_are_those_of_the_plan_with_best_case_and_jitter() {
    let system = TestSystem::new(&two_hosts(""));
    let plan: Value = results(&["plan", "."], system.path(), 0);
    let bounds: Value = results(&["bounds", "."], system.path(), 0);
    let flow = &bounds["flows"][0];
    assert_eq!(number(flow, "bound_ns"), number(&plan["channels"][0], "bound_ns"));
    assert_eq!(number(flow, "jitter_ns"), number(flow, "bound_ns") - number(flow, "best_ns"));
    let terms = flow["terms"].as_array().expect("terms");
    let sum: i64 = terms.iter().map(|term| number(term, "span_ns")).sum();
    assert_eq!(sum, number(flow, "bound_ns"));
    let largest = terms.iter().max_by_key(|term| number(term, "span_ns")).expect("a term");
    let dominating = terms.iter().find(|t| t["what"] == flow["dominating"]).expect("a term");
    assert_eq!(number(largest, "span_ns"), number(dominating, "span_ns"));
    let table = run(&["bounds", "."], system.path(), 0).stdout;
    let table = String::from_utf8(table).expect("UTF-8");
    assert!(table.contains("largest term") && table.contains("1 of 1 bounded"), "{table}");
    // One queue at each of the two ports on the way; in no other can anything be.
    let queues: Vec<_> = bounds["queues"].as_array().expect("queues").iter().collect();
    assert_eq!(queues.len(), 2, "{queues:?}");
    assert!(queues.iter().all(|queue| number(queue, "frames") > 0), "{queues:?}");
    let other = run(&["bounds", ".", "--method", "best"], system.path(), 2);
    assert!(String::from_utf8_lossy(&other.stderr).contains("--method is for networks"));
    let unprotected = results(&["bounds", ".", "--unprotected"], system.path(), 0);
    assert!(unprotected["flows"][0]["bound_ns"].is_null());
}

/// The example has every tool of the network at once, and faults.
#[test]
fn the_ring_example_keeps_its_promises_in_all_phases() {
    let system = root().join("examples/04-tsn-ring");
    let directory = tempfile::tempdir().expect("a directory");
    let system = system.to_str().expect("UTF-8");
    for phases in ["described", "random", "aligned"] {
        let arguments = ["simulate", system, "--out", "out", "--phases", phases];
        let more = ["--repetitions", "6", "--duration", "200ms", "--capture", "c.pcapng"];
        let json = results(&[&arguments[..], &more].concat(), directory.path(), 0);
        assert_eq!(json["settings"]["phases"], phases);
        for flow in json["flows"].as_array().expect("flows") {
            assert!(number(flow, "released") > 0, "{phases}: {flow}");
            assert_ne!(flow["verdict"], "broken", "{phases}: {flow}");
        }
    }
}

/// Two servers of 100 Mb/s and 10 µs behind each other, and two flows over both.
fn tandem(rates: [&str; 2]) -> TestSystem {
    let flow = |name: &str, rate: &str| {
        format!(
            r#"{{"name": "{name}", "path": ["s0", "s1"],
                 "arrival_curve": {{"bursts": ["1kB"], "rates": ["{rate}"]}}}}"#
        )
    };
    let server = |name: &str| {
        format!(
            r#"{{"name": "{name}", "capacity": "100Mbps",
                 "service_curve": {{"latencies": ["10us"], "rates": ["100Mbps"]}}}}"#
        )
    };
    let text = format!(
        r#"{{"network": {{"name": "tandem", "packetizer": false}},
             "flows": [{}, {}], "servers": [{}, {}]}}"#,
        flow("f0", rates[0]),
        flow("f1", rates[1]),
        server("s0"),
        server("s1"),
    );
    let system = TestSystem::new("");
    std::fs::write(system.path().join("network.json"), text).expect("written");
    system
}

#[test]
fn a_network_in_json_is_bounded_by_each_method() {
    let system = tandem(["10Mbps", "20Mbps"]);
    let json = results(&["bounds", "network.json"], system.path(), 0);
    assert_eq!(json["network"], "tandem");
    // s0: 10 µs and 16,000 bits at 100 Mb/s; s1: its latency alone, since the line brings no more
    // than it serves.
    for flow in json["flows"].as_array().expect("flows") {
        assert_eq!(number(flow, "bound_ns.total-flow"), 10_000 + 160_000 + 10_000);
        assert!(number(flow, "bound_ns.best") <= 180_000);
        assert_eq!(flow["bound_ns"]["tight"], flow["bound_ns"]["best"], "the old name");
    }
    // The bursts and 10 µs of 30 Mb/s: 16,300 bits; 10 µs of the line: 1,000 bits.
    let backlogs = json["servers"].as_array().expect("servers").iter();
    let backlogs: Vec<_> = backlogs.map(|s| number(s, "backlog_octets.total-flow")).collect();
    assert_eq!(backlogs, [2_038, 125]);
    assert!(number(&json, "cpu_ns.total-flow") >= 0 && number(&json, "cpu_ns.best") >= 0);
    let one = ["bounds", "network.json", "--method", "total-flow"];
    let output = String::from_utf8(run(&one, system.path(), 0).stdout).expect("UTF-8");
    assert!(output.contains("total-flow: 180 µs at most") && !output.contains("best"), "{output}");
    let other = run(&["bounds", "network.json", "--unprotected"], system.path(), 2);
    assert!(String::from_utf8_lossy(&other.stderr).contains("--unprotected is for descriptions"));
}

#[test]
fn a_network_without_bounds_says_so_and_one_that_is_wrong_is_refused() {
    let overloaded = tandem(["60Mbps", "50Mbps"]);
    let output = run(&["bounds", "network.json"], overloaded.path(), 0);
    let said = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(said.contains("total-flow: no bound"), "{said}");
    let json = results(&["bounds", "network.json"], overloaded.path(), 0);
    assert!(json["flows"][0]["bound_ns"]["best"].is_null());
    let wrong = tandem(["10Mbps", "fast"]);
    let output = run(&["bounds", "network.json"], wrong.path(), 1);
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(said.contains("network.json: f1: rates"), "{said}");
    run(&["bounds", "nowhere.json"], wrong.path(), 5);
}

#[test]
fn a_link_that_names_an_output_stays_and_the_file_behind_it_is_written() {
    let system = ring();
    let at = |name: &str| system.path().join(name);
    let link = |to: &str, name: &str| std::os::unix::fs::symlink(to, at(name)).expect("a link");
    std::fs::create_dir(at("kept")).expect("a directory");
    std::fs::write(at("kept/c.pcapng"), []).expect("an empty file");
    link("kept/c.pcapng", "c.pcapng");
    run(&["simulate", ".", "--capture", "c.pcapng"], system.path(), 0);
    assert!(at("c.pcapng").is_symlink() && !at("kept/c.pcapng").is_symlink());
    assert!(std::fs::read(at("kept/c.pcapng")).expect("the capture").len() > 1_000);
    std::fs::write(at("kept/page.html"), []).expect("an empty file");
    link("kept/page.html", "page.html");
    run(&["plan", ".", "--html", "page.html"], system.path(), 0);
    assert!(at("page.html").is_symlink());
    assert!(std::fs::read(at("kept/page.html")).expect("the page").starts_with(b"<!"));
    link("nowhere/c.pcapng", "dangling.pcapng");
    let refused = run(&["simulate", ".", "--capture", "dangling.pcapng"], system.path(), 5);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("dangling.pcapng is a link that leads nowhere"), "{said}");
    assert!(at("dangling.pcapng").is_symlink() && !at("nowhere").exists());
}
