//! The same programs on the kernel's own network: in namespaces of one machine, and as the parts of
//! a run on two machines. Where namespaces are not permitted, each test says so and checks that the
//! command says what to do.

use crate::common::{
    self, TestSystem, channel, load, number, onbeat, permitted, programs, results, run, two_hosts,
};
use onbeat::interface::{InterfaceContext, InterfaceSettings, parameters_of};
use onbeat_model::record::LoadSample;
use onbeat_model::system::{NodeId, System};
use onbeat_model::time::{Span, SyncedTime};
use onbeat_run::coordinator::{StartAt, utc_of};
use onbeat_run::netns::{INTERFACE, KernelNetwork};
use onbeat_runtime::channel_io::Timeout;
use serde_json::Value;
use std::path::Path;
use std::process::{Child, Output, Stdio};
use std::time::{Duration, UNIX_EPOCH};

/// Few enough messages that the kernel keeps them all for a reader that does not come.
const SHORT: &str = "200ms";

/// The messages of a run's only channel, a line each, as fields.
fn messages(directory: &Path) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(directory.join("1-run/messages.csv")).expect("messages");
    let fields = |line: &str| line.split(',').map(str::to_owned).collect();
    text.lines().skip(1).map(fields).collect()
}

/// All messages arrived, in order and once, but for those at the end that a slow machine's reader
/// was too late for.
fn all_arrived(results: &Value, name: &str, system: &TestSystem) {
    let c = channel(results, name);
    assert!(number(c, "received") > 0, "{c}");
    assert_eq!(number(c, "duplicated"), 0, "{c}");
    assert_eq!(number(c, "received") + number(c, "lost"), number(c, "sent"), "{c}");
    let messages = messages(&system.path().join("out"));
    let received: Vec<_> = messages.iter().map(|m| m[13] == "0").collect();
    assert!(received.is_sorted_by(|a, b| a >= b), "one is lost amid those that came: {messages:?}");
    for message in messages.iter().filter(|m| m[13] == "0") {
        let at = |field: usize| message[field].parse::<i64>().expect("an instant");
        assert!(at(3) <= at(5) && at(5) <= at(6), "capture, arrival, receipt: {message:?}");
        assert_eq!(message[4], "", "the hand-over to the kernel is not recorded");
    }
    // The kernel had each frame before its reader was awake.
    let stamped = |m: &Vec<String>| m[13] == "0" && m[5] != m[6];
    assert!(messages.iter().any(stamped), "no arrival was stamped: {messages:?}");
}

#[test]
fn the_two_hosts_example_runs_in_namespaces() {
    if !permitted() {
        return;
    }
    let system = TestSystem::example("01-two-hosts");
    let arguments = ["run", ".", "--network", "netns", "--duration", "2s"];
    let results = results(&arguments, system.path(), 0);
    // Its programs end with an error if a message is not the one that its number says.
    all_arrived(&results, "mcast42", &system);
    let run = &results["runs"][0];
    assert_eq!(
        (&run["network"]["kind"], &run["network"]["transport"]),
        (&"netns".into(), &"packet".into())
    );
    assert_eq!((&run["time"], &run["protected"]), (&"real".into(), &false.into()));
    assert_eq!((&run["lag_max_ns"], &run["ended"]), (&Value::Null, &"complete".into()));
    let c = channel(&results, "mcast42");
    assert_eq!((&c["verdict"], &c["bound_ns"]), (&"no promise".into(), &Value::Null));
    assert_eq!(c["wakeup_error_ns"]["relative_basis"], "network-time");
    // The report is made again from the records, network and all.
    let again = common::results(&["report", "."], system.path(), 0);
    assert_eq!(again, results);
}

#[test]
fn every_kind_of_reader_gets_its_messages_in_namespaces() {
    if !permitted() {
        return;
    }
    for (how, more) in [("", &[][..]), ("wait", &[]), ("atexit", &[]), ("", &["--poll-expected"])] {
        let system = TestSystem::new(&two_hosts(&programs(how, how)));
        system.program("talker.c", "left").program("listener.c", "right");
        let arguments = ["run", ".", "--network", "netns", "--duration", SHORT];
        let results = results(&[&arguments[..], more].concat(), system.path(), 0);
        all_arrived(&results, "c", &system);
    }
}

#[test]
fn ends_on_hosts_without_programs_are_played_in_namespaces() {
    if !permitted() {
        return;
    }
    let system = TestSystem::new(&two_hosts(""));
    let arguments = ["run", ".", "--network", "netns", "--duration", SHORT];
    all_arrived(&results(&arguments, system.path(), 0), "c", &system);
    let listens = "[[program]]\nname = \"right\"\nhost = \"b\"\ncommand = [\"build/right\"]\n";
    let system = TestSystem::new(&two_hosts(listens));
    system.program("listener.c", "right");
    all_arrived(&results(&arguments, system.path(), 0), "c", &system);
}

#[test]
fn the_described_clocks_and_the_described_noise_are_there_in_namespaces() {
    if !permitted() {
        return;
    }
    let noise = "[[noise]]\nname = \"n\"\nfrom = \"a\"\nto = \"b\"\nsize_octets = 100\n\
                 frames_per_s = 1000\nstart_ms = 0\n";
    let text = two_hosts(&format!("{}{noise}", programs("", "")))
        .replace("name = \"b\"\n", "name = \"b\"\nclock = { offset_ns = 1_000_000_000 }\n");
    let system = TestSystem::new(&text);
    system.program("talker.c", "left").program("listener.c", "right");
    let results = results(&["run", ".", "--network", "netns"], system.path(), 0);
    let c = channel(&results, "c");
    assert!(
        number(c, "latency_ns.min") >= 1_000_000_000,
        "a second is the clocks' difference: {c}"
    );
    let octets = std::fs::read(system.path().join("out/1-run/records.onb")).expect("records");
    let log = onbeat_measure::records::decode(&octets).expect("a record file");
    let sum = |of: fn(&LoadSample) -> u64| log.load.iter().map(of).sum::<u64>();
    assert!(sum(|s| s.offered_bits) > 0);
    assert_eq!(sum(|s| s.delivered_bits), sum(|s| s.offered_bits));
}

#[test]
fn links_and_nodes_fail_in_namespaces_when_the_description_says_so() {
    if !permitted() {
        return;
    }
    let window = "from_ms = 200\nuntil_ms = 300\n";
    for (fault, transport) in [
        ("link = \"b\"", "packet"),
        ("node = \"s\"", "udp4"),
        ("node = \"a\"", "xdp"),
        ("link = \"a\"\nerrors_ppb = 1_000_000_000", "packet"),
    ] {
        let system = TestSystem::new(&two_hosts(&format!("[[fault]]\n{fault}\n{window}")));
        let output =
            run(&["run", ".", "--network", "netns", "--transport", transport], system.path(), 0);
        let said = String::from_utf8(output.stderr).expect("UTF-8");
        assert!(said.contains("faults of links and nodes take part"), "{said}");
        assert!(!said.contains("are left out here"), "{said}");
        let ms = |m: &[String]| m[3].parse::<i64>().expect("a capture") / 1_000_000;
        let messages = messages(&system.path().join("out"));
        let lost: Vec<_> = messages.iter().filter(|m| m[13] == "1").map(|m| ms(m)).collect();
        let in_window = messages.iter().map(|m| ms(m)).filter(|at| (200..300).contains(at)).count();
        // A busy machine may send a message later than it is captured, and read the last ones too
        // late.
        assert!(in_window > 10 && lost.len() >= in_window / 2, "{fault}: {lost:?}");
        assert!(lost.iter().all(|at| (150..300).contains(at) || *at > 450), "{fault}: {lost:?}");
    }
}

#[test]
fn a_program_that_dies_in_namespaces_is_named_and_the_run_ends() {
    if !permitted() {
        return;
    }
    let system = TestSystem::new(&two_hosts(&programs("", "dies")));
    system.program("talker.c", "left").program("listener.c", "right");
    let output = run(&["run", ".", "--network", "netns", "--duration", "60s"], system.path(), 4);
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(said.contains("program `right` ended before the run did"), "{said}");
}

#[test]
fn asking_for_what_only_the_emulated_network_has_is_an_error_that_says_so() {
    let asks = |text: &str| two_hosts("").replace("duration_ms = 500\n", text);
    let asked = "duration_ms = 500\nprotected = true\n";
    let cases: [(&str, &[&str], &str); 6] = [
        (asked, &["--network", "netns"], "[run] asks for reservations"),
        (asked, &["--interface", "lo", "--host", "a"], "[run] asks for reservations"),
        ("duration_ms = 500\n", &["--network", "netns", "--time", "virtual"], "virtual time"),
        ("duration_ms = 500\n", &["--transport", "xdp"], "--transport is for --network netns"),
        (
            "duration_ms = 500\n",
            &["--interface", "lo", "--host", "s"],
            "no host `s`; there are: a, b",
        ),
        (
            "duration_ms = 500\n",
            &["--interface", "lo", "--host", "a", "--start", "2020-01-01T00:00:00Z"],
            "--start is over",
        ),
    ];
    for (settings, arguments, expected) in cases {
        let system = TestSystem::new(&asks(settings));
        let output = run(&[&["run", "."], arguments].concat(), system.path(), 2);
        let said = String::from_utf8(output.stderr).expect("UTF-8");
        assert!(said.contains(expected), "{said}");
    }
    let system = TestSystem::new(&two_hosts(""));
    let arguments = ["run", ".", "--interface", "no-such-if", "--host", "a"];
    let said = String::from_utf8(run(&arguments, system.path(), 5).stderr).expect("UTF-8");
    assert!(said.contains("interface `no-such-if`: No such device"), "{said}");
}

/// One host's part of a run, on the interface of that host's namespace.
fn part(
    network: &KernelNetwork,
    system: &TestSystem,
    host: NodeId,
    name: &str,
    start: &str,
) -> Child {
    let arguments =
        ["run", ".", "--json", "--interface", INTERFACE, "--host", name, "--start", start];
    let spawn = || {
        onbeat()
            .args(arguments)
            .args(["--duration", SHORT, "--out", name])
            .current_dir(system.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
    };
    // A process is born into the namespace of the thread that makes it.
    network.inside(host, spawn).expect("onbeat runs")
}

/// The first message that comes to `host` after `epoch`, read by a program of its own whose zero
/// is the network clock's: its capture time.
fn overhear(network: &KernelNetwork, system: &System, host: NodeId) -> SyncedTime {
    let described = &system.channels[0];
    let listen = || {
        let settings = InterfaceSettings { name: INTERFACE.to_owned(), ..Default::default() };
        let context = InterfaceContext::open(settings).map_err(std::io::Error::other)?;
        let open = || {
            context.declare("c", parameters_of(described))?;
            context.open_listener("c", described.size)
        };
        let mut end = open().map_err(std::io::Error::other)?;
        let mut value = [0; 8];
        let until = context.base().now().expect("a clock") + Span::from_s(120);
        let got = end.read(&mut value, Timeout::Until(until)).expect("an interface");
        Ok(got.expect("a message").capture)
    };
    network.inside(host, listen).expect("it can listen")
}

/// Both parts of a run that starts `notice` from now, and what was overheard at the listener; none
/// if the machine was too slow for so short a notice.
fn both_parts(system: &TestSystem, notice: i64) -> Option<(Output, Output, SyncedTime, i64)> {
    let described = load(system);
    let network = KernelNetwork::build(&described).expect("a network");
    let epoch = StartAt::In(Span::from_s(notice)).network_ns();
    let utc = UNIX_EPOCH + Duration::from_nanos(utc_of(epoch) as u64);
    let start = humantime::format_rfc3339_nanos(utc).to_string();
    let [a, b] = [(NodeId(0), "a"), (NodeId(1), "b")]
        .map(|(host, name)| part(&network, system, host, name, &start));
    std::thread::scope(|scope| {
        let heard = scope.spawn(|| overhear(&network, &described, NodeId(1)));
        let [a, b] = [a, b].map(|child| child.wait_with_output().expect("its end"));
        let late = |part: &Output| {
            let said = String::from_utf8_lossy(&part.stderr);
            said.contains("after the start that was chosen") || said.contains("--start is over")
        };
        if late(&a) || late(&b) {
            return None; // the next attempt has a network of its own, and so has who overhears
        }
        Some((a, b, heard.join().expect("no panic"), epoch))
    })
}

#[test]
fn two_parts_of_a_run_on_interfaces_start_together_and_know_their_own_side() {
    if !permitted() {
        return;
    }
    let system = TestSystem::new(&two_hosts(&programs("", "")));
    system.program("talker.c", "left").program("listener.c", "right");
    let mut attempts = [3, 30, 60].into_iter();
    let (a, b, heard, epoch) =
        attempts.find_map(|notice| both_parts(&system, notice)).expect("a start that can be met");
    let [a, b] = [a, b].map(|part| {
        let said = String::from_utf8_lossy(&part.stderr);
        assert_eq!(part.status.code(), Some(0), "{said}");
        assert!(said.contains("the run starts at"), "{said}");
        serde_json::from_slice::<Value>(&part.stdout).expect("JSON")
    });
    let [talker, listener] = [channel(&a, "c"), channel(&b, "c")];
    for unknown in ["received", "lost", "late", "duplicated", "latency_ns"] {
        assert_eq!(talker[unknown], Value::Null, "{talker}");
    }
    assert_eq!(listener["sent"], Value::Null);
    assert_eq!(number(listener, "lost"), 0, "{listener}");
    assert!(number(listener, "received") > 0, "{listener}");
    assert!(number(listener, "received") <= number(talker, "sent"), "{talker} {listener}");
    assert!(number(listener, "latency_ns.min") > 0, "both read one clock here: {listener}");
    for (side, c, host) in
        [("talker's side, host a", talker, "a"), ("listener's side, host b", listener, "b")]
    {
        let reason = c["verdict_reason"].as_str().expect("a reason");
        assert!(reason.contains(side), "{reason}");
        assert_eq!(c["verdict"], "no promise");
        let network = &[&a, &b][usize::from(host == "b")]["runs"][0]["network"];
        assert_eq!((&network["host"], &network["interface"]), (&host.into(), &INTERFACE.into()));
        assert_eq!(number(network, "epoch_ns"), epoch);
    }
    // Both sides mean the same instants, and the wire says them in true network time.
    let captures = |name: &str| -> Vec<String> {
        messages(&system.path().join(name)).into_iter().map(|mut m| m.swap_remove(3)).collect()
    };
    let (written, read) = (captures("a"), captures("b"));
    assert!(written.starts_with(&read), "{written:?} {read:?}");
    let since = (heard - Span::from_ns(epoch)).as_ns().to_string();
    assert!(written.contains(&since), "{since} is none of {written:?}");
    joined(&system, talker, listener);
}

/// The two parts as one run: what each end recorded, and the messages of both.
fn joined(system: &TestSystem, talker: &Value, listener: &Value) {
    let how = ["join", ".", "a", "b", "--perfetto", "trace.json", "--json"];
    let output = run(&how, system.path(), 0);
    let results: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let c = channel(&results, "c");
    assert_eq!((&c["sent"], &c["received"]), (&talker["sent"], &listener["received"]));
    assert_eq!(number(c, "lost"), number(c, "sent") - number(c, "received"));
    assert_eq!((&c["latency_ns"], &c["late"]), (&listener["latency_ns"], &listener["late"]));
    assert_eq!(c["verdict"], "no promise");
    let run_of = &results["runs"][0];
    assert_eq!(run_of["network"]["kind"], "interfaces");
    assert_eq!(run_of["network"]["parts"].as_array().map(Vec::len), Some(2));
    // Both ends read one clock, and no message comes before it was written.
    let apart = &run_of["clock_differences"][0];
    assert_eq!((&apart["host"], &apart["other"]), (&"a".into(), &"b".into()));
    assert_eq!(number(apart, "greatest_ns"), number(c, "latency_ns.min"));
    assert_eq!(apart["least_ns"], Value::Null);
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(said.contains("clocks, as messages show: b at most "), "{said}");
    let both = messages(&system.path().join("joined"));
    let ends = |message: &Vec<String>| !message[3].is_empty() && !message[6].is_empty();
    assert_eq!(both.iter().filter(|m| ends(m)).count() as i64, number(c, "received"));
    assert_eq!(both.len() as i64, number(c, "sent"));
    let page = std::fs::read_to_string(system.path().join("joined/report.html")).expect("a page");
    assert!(page.contains("parts of a, b"), "the page says whose parts it is of");
    let trace = std::fs::read_to_string(system.path().join("trace.json")).expect("a trace");
    let arrows = trace.lines().filter(|line| line.contains("\"ph\":\"f\"")).count() as i64;
    assert_eq!(arrows, number(c, "received"), "from the one part to the other");
    // The report of it is made again from its records.
    let again = results_of(&["report", ".", "--out", "joined", "--json"], system);
    assert_eq!(again, results);
    refused_parts(system);
}

fn results_of(arguments: &[&str], system: &TestSystem) -> Value {
    serde_json::from_slice(&run(arguments, system.path(), 0).stdout).expect("JSON")
}

fn refused_parts(system: &TestSystem) {
    run(&["run", ".", "--duration", "10ms", "--out", "emulated"], system.path(), 0);
    for (parts, code, wanted) in [
        (&["a", "a"][..], 2, "a: it is of host a, and so is a part before it"),
        (&["a", "emulated"], 2, "emulated: its run was not over the interface of a host"),
        (&["a", "nowhere"], 5, "nowhere/results.json: there is no run yet"),
        (&["a", "b", "--out", "b"], 2, "b: a part is not written over"),
    ] {
        let output = run(&[&["join", "."], parts].concat(), system.path(), code);
        let said = String::from_utf8(output.stderr).expect("UTF-8");
        assert!(said.contains(wanted), "{said}");
    }
    let output = run(&["join", ".", "b", "--out", "half"], system.path(), 0);
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(said.contains("no part is of a: what their ends did is not known"), "{said}");
}

#[test]
fn messages_that_a_program_never_came_for_are_named_in_namespaces() {
    if !permitted() {
        return;
    }
    let system = TestSystem::new(&two_hosts(&programs("", "early")));
    system.program("talker.c", "left").program("listener.c", "right");
    let arguments = ["run", ".", "--network", "netns", "--duration", "2s"];
    let said = String::from_utf8(run(&arguments, system.path(), 0).stderr).expect("UTF-8");
    assert!(
        said.contains("messages of channel `c` were written after the last one that"),
        "{said}"
    );
}
