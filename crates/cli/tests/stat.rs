//! What can be seen of programs while they run: counters, and markers in the kernel's trace.

use crate::common::{TestSystem, number, onbeat, run, talker_and_listener};
use onbeat::shared_log::{Board, Identity};
use onbeat_model::record::{Record, Role, flag};
use onbeat_model::units::StreamId;
use onbeat_runtime::channel_io::{Log, Reason};
use serde_json::Value;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// How often to look for what must come on a busy machine before it counts as not coming.
const LOOKS: u32 = 600;

fn pause() {
    assert!(Command::new("sleep").arg("0.1").status().expect("sleep").success());
}

/// A child that ends with the test, however that ends.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        if let Ok(Some(_)) = self.0.try_wait() {
            return; // its number may be another's
        }
        let pid = self.0.id().to_string();
        // Not killed: it clears up after itself.
        let _ = Command::new("kill").args(["-INT", &pid]).status();
        let _ = self.0.wait();
    }
}

fn ends(arguments: &[&str]) -> Vec<Value> {
    let output = run(&[&["stat", "--json"], arguments].concat(), Path::new("/"), 0);
    let all: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((&all["format"], &all["version"]), (&"onbeat-stat".into(), &1.into()));
    all["endpoints"].as_array().expect("endpoints").clone()
}

/// The ends of the programs that run in the system's directory: other tests run too.
fn ends_of(system: &TestSystem) -> Vec<Value> {
    let home = system.path().canonicalize().expect("the directory");
    let mut ends = ends(&["--channel", "c"]);
    ends.retain(|end| {
        let place = std::fs::read_link(format!("/proc/{}/cwd", end["pid"]));
        place.is_ok_and(|place| place.starts_with(&home))
    });
    ends
}

/// Waits until both programs have counted more than this; their ends.
fn both(system: &TestSystem, more_than: i64) -> [Value; 2] {
    for _ in 0..LOOKS {
        let found = ends_of(system);
        let of = |program: &str| found.iter().find(|e| e["program"] == program).cloned();
        if let (Some(left), Some(right)) = (of("left"), of("right"))
            && number(&left, "sent") > more_than
            && number(&right, "received") > more_than
        {
            return [left, right];
        }
        pause();
    }
    panic!("no counts above {more_than}: {:?}", ends_of(system));
}

#[test]
fn the_counters_of_a_run_can_be_read_while_it_goes_on() {
    let system = talker_and_listener("", "");
    let child = onbeat()
        .args(["run", ".", "--duration", "600s", "--time", "real"])
        .current_dir(system.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let running = Running(child.expect("onbeat runs"));
    let [left, right] = both(&system, 0);
    assert_eq!((left["end"].as_str(), right["end"].as_str()), (Some("talker"), Some("listener")));
    assert_eq!((number(&left, "stream_id"), number(&right, "rejected.shape")), (1, 0));
    assert_eq!(ends_of(&system).len(), 2, "each end is there once");
    let [later, _] = both(&system, number(&left, "sent"));
    assert_eq!(later["pid"], left["pid"]);
    // One program's ends only, and for a person.
    let pid = left["pid"].to_string();
    assert_eq!(ends(&["--pid", &pid]).len(), 1);
    let output = run(&["stat", "--pid", &pid], Path::new("/"), 0);
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert_eq!(text.lines().count(), 3, "{text}");
    assert!(text.lines().nth(2).is_some_and(|line| line.starts_with("left ")), "{text}");
    drop(running);
    assert_eq!(ends_of(&system), Vec::<Value>::new(), "nothing is left of it");
}

/// An end that this test's process has on an interface, as far as can be seen from outside.
fn end_of_a_board(board: &Board, channel: &str) -> impl Log + use<> {
    let mut end = board.end().expect("an end");
    let identity =
        Identity { channel: channel.to_owned(), stream_id: StreamId(9), role: Role::Listener };
    end.introduce(&identity);
    end
}

#[test]
fn the_counters_of_a_program_on_an_interface_can_be_read_with_their_reasons() {
    let board = Board::new().expect("a board");
    let mut end = end_of_a_board(&board, "on-an-interface");
    end.push(&Record { gap: 2, flags: flag::LATE, ..Record::default() });
    end.push(&Record { flags: flag::DUPLICATE, ..Record::default() });
    end.reject(Reason::Stream, 1);
    let pid = std::process::id().to_string();
    let filters = ["--pid", &pid, "--channel", "on-an-interface"];
    let [got] = ends(&filters).try_into().expect("one end");
    for (name, count) in [
        ("received", 1),
        ("lost", 2),
        ("late", 1),
        ("duplicate", 1),
        ("rejected.stream", 1),
        ("rejected.size", 0),
        ("unrecorded", 0),
        ("breaks", 0),
    ] {
        assert_eq!(number(&got, name), count, "{name}");
    }
    drop((end, board));
    assert_eq!(ends(&filters), Vec::<Value>::new());
    let output = run(&["stat", "--channel", "on-an-interface"], Path::new("/"), 0);
    assert_eq!(
        output.stdout,
        b"No running program with channels, or none that --pid and --channel select.\n"
    );
}

#[test]
fn watching_shows_rates_from_the_second_look_on_until_it_is_interrupted() {
    let board = Board::new().expect("a board");
    let mut end = end_of_a_board(&board, "watched");
    let child = onbeat()
        .args(["stat", "--watch", "--json", "--channel", "watched"])
        .stdout(Stdio::piped())
        .spawn();
    let mut child = child.expect("onbeat runs");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let mut next = || -> Value {
        let line = lines.next().expect("a line").expect("text");
        serde_json::from_str(&line).expect("JSON")
    };
    assert_eq!(next()["endpoints"][0].get("received_per_s"), None, "nothing to compare with");
    for _ in 0..1_000 {
        end.push(&Record::default());
    }
    let seen = (0..3).map(|_| next()["endpoints"][0]["received_per_s"].as_i64());
    let most = seen.map(|rate| rate.expect("a rate")).max();
    assert!(most.is_some_and(|rate| rate > 0), "{most:?}");
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().expect("kill").success());
    assert_eq!(child.wait().expect("an end").code(), Some(0));
}

/// An end of this test's process that has counted something of everything, and counts no more.
fn quiet_end(board: &Board, channel: &str) -> impl Log + use<> {
    let mut end = end_of_a_board(board, channel);
    for (flags, gap) in [(0, 0), (flag::LATE, 3), (flag::DUPLICATE, 0), (flag::DUPLICATE, 0)] {
        end.push(&Record { gap, flags, ..Record::default() });
    }
    end.reject(Reason::Stream, 1);
    end.reject(Reason::Size, 1);
    end.reject(Reason::Size, 1);
    end
}

/// Holds a document of Prometheus, which has one listener, against `stat --json`. Not whose it is:
/// what another test starts is for a moment a copy of this process, which has the same memory.
fn agrees(document: &str, end: &Value) {
    assert!(document.contains("\nonbeat_endpoints 1\n") && document.ends_with('\n'), "{document}");
    let value = |name: &str, reason: &str| -> i64 {
        let name = format!("onbeat_{name}_total{{");
        let found = document.lines().filter(|line| line.starts_with(&name));
        let mut found = found.filter(|line| line.contains(reason));
        let line = found.next().unwrap_or_else(|| panic!("{name} in {document}"));
        assert_eq!(found.next(), None, "{name} is there once");
        line.rsplit(' ').next().and_then(|n| n.parse().ok()).expect("a whole number")
    };
    for (name, path) in [
        ("messages_received", "received"),
        ("messages_lost", "lost"),
        ("messages_late", "late"),
        ("messages_duplicate", "duplicate"),
        ("messages_unrecorded", "unrecorded"),
        ("latency_breaks", "breaks"),
    ] {
        assert_eq!(value(name, ""), number(end, path), "{name}");
    }
    for (reason, count) in end["rejected"].as_object().expect("reasons") {
        let labelled = format!(",reason=\"{reason}\"}}");
        assert_eq!(Some(value("frames_rejected", &labelled)), count.as_i64(), "{reason}");
    }
    assert!(!document.contains("_sent_total"), "a listener sends nothing: {document}");
}

#[test]
fn prometheus_is_told_what_json_says() {
    let board = Board::new().expect("a board");
    let name = &format!("\"Prometheus\" \\\n{}", std::process::id());
    let end = quiet_end(&board, name);
    let [got] = ends(&["--channel", name]).try_into().expect("one end");
    assert_eq!((number(&got, "lost"), number(&got, "rejected.size")), (3, 2));
    let text = |more: &[&str]| {
        let ask = [&["stat", "--prometheus", "--channel", name], more].concat();
        String::from_utf8(run(&ask, Path::new("/"), 0).stdout).expect("UTF-8")
    };
    let document = text(&[]);
    agrees(&document, &got);
    let escaped = format!(r#"{{channel="\"Prometheus\" \\\n{}",role="#, std::process::id());
    assert!(document.contains(&escaped), "{document}");
    drop((end, board));
    let document = text(&["--pid", &std::process::id().to_string()]);
    assert!(document.ends_with("\nonbeat_endpoints 0\n"), "{document}");
}

/// The command as it serves a channel's counters, and where.
fn served(channel: &str) -> (Running, SocketAddr) {
    for _ in 0..20 {
        let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let at = free.local_addr().expect("an address");
        drop(free); // somebody else may be faster
        let child = onbeat()
            .args(["stat", "--prometheus", "--channel", channel, "--listen", &at.to_string()])
            .stderr(Stdio::piped())
            .spawn();
        let mut child = Running(child.expect("onbeat runs"));
        let mut said = String::new();
        let stderr = child.0.stderr.as_mut().expect("a pipe"); // it may say more
        BufReader::new(stderr).read_line(&mut said).expect("a line");
        if said.contains(&format!("http://{at}/metrics ")) {
            return (child, at);
        }
        println!("once more: {said}");
    }
    panic!("no port is free");
}

/// What comes back until the connection is closed.
fn sent(at: SocketAddr, request: &[u8]) -> String {
    let mut connection = TcpStream::connect(at).expect("a connection");
    // Of what is too long not all is read, and that resets the connection.
    let _ = connection.write_all(request);
    let mut answer = Vec::new();
    let _ = connection.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn counters_are_served_until_it_is_interrupted_whatever_others_send() {
    let board = Board::new().expect("a board");
    let name = format!("served-{}", std::process::id());
    let _end = quiet_end(&board, &name);
    let [got] = ends(&["--channel", &name]).try_into().expect("one end");
    let (mut child, at) = served(&name);
    let scraped = || {
        let answer = sent(at, b"GET /metrics HTTP/1.1\r\nHost: onbeat\r\n\r\n");
        let (head, document) = answer.split_once("\r\n\r\n").expect("a head");
        assert!(head.starts_with("HTTP/1.0 200 "), "{head}");
        assert!(head.contains("text/plain; version=0.0.4; charset=utf-8"), "{head}");
        agrees(document, &got);
    };
    scraped();
    // They say nothing, begin to say something, and do not take what they asked for.
    let _idle: Vec<_> = ["", "GET /met", "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n"]
        .into_iter()
        .map(|begun| {
            let mut connection = TcpStream::connect(at).expect("a connection");
            connection.write_all(begun.as_bytes()).expect("sent");
            connection
        })
        .collect();
    let long = [b"GET /".as_slice(), &[b'a'; 1 << 20]].concat();
    for garbage in [&[0xff; 100][..], b"\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9\n\n", &long] {
        let mut garbage = garbage.to_vec();
        garbage.extend(b"\r\n\r\n");
        let status = sent(at, &garbage);
        assert!(status.is_empty() || status.starts_with("HTTP/1.1 400 "), "{status}");
    }
    // More of a kind that is no URI of a server than there may be connections at a time.
    for _ in 0..40 {
        let said = sent(at, b"GET x HTTP/1.1\r\nHost: a\r\n\r\n");
        assert!(said.is_empty() || said.starts_with("HTTP/1.1 400 "), "{said}");
    }
    let other = |method: &str, path: &str| {
        let request = format!("{method} {path} HTTP/1.1\r\nHost: onbeat\r\n\r\n");
        sent(at, request.as_bytes())
    };
    assert!(other("GET", "/").starts_with("HTTP/1.0 404 "));
    assert!(other("GET", "/../etc/passwd").starts_with("HTTP/1.0 404 "));
    assert!(other("DELETE", "/metrics").starts_with("HTTP/1.0 405 "));
    scraped();
    let again = ["stat", "--prometheus", "--listen", &at.to_string()];
    let said = run(&again, Path::new("/"), 5).stderr;
    assert!(String::from_utf8_lossy(&said).contains(&format!("{at}: ")), "somebody listens there");
    let pid = child.0.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().expect("kill").success());
    assert_eq!(child.0.wait().expect("an end").code(), Some(0));
}

#[test]
fn addresses_without_a_port_are_wrong_arguments() {
    for wrong in ["127.0.0.1", "9877", "127.0.0.1:0", "localhost:9877", ""] {
        run(&["stat", "--prometheus", "--listen", wrong], Path::new("/"), 2);
    }
    run(&["stat", "--listen", "127.0.0.1:9877"], Path::new("/"), 2);
    run(&["stat", "--prometheus", "--json"], Path::new("/"), 2);
    run(&["stat", "--prometheus", "--watch"], Path::new("/"), 2);
    // Nothing that is written there arrives.
    let full = File::options().write(true).open("/dev/full").expect("a full device");
    let watch = onbeat().args(["stat", "--watch", "--json"]).stdout(full).output().expect("onbeat");
    let said = String::from_utf8_lossy(&watch.stderr);
    assert_eq!(watch.status.code(), Some(5), "{said}");
    assert!(said.contains("standard output"), "{said}");
}

#[test]
fn a_filter_that_is_no_number_is_a_wrong_argument() {
    run(&["stat", "--pid", "left"], Path::new("/"), 2);
    run(&["run", ".", "--break-us", "0"], Path::new("/"), 2);
}

#[test]
fn in_virtual_time_a_trace_is_refused_its_effect_in_one_line() {
    let system = talker_and_listener("", "");
    let output = run(&["run", ".", "--trace", "--break-us", "1"], system.path(), 0);
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(said.contains("--trace and --break-us have no effect in virtual time"), "{said}");
}

/// Runs the command with an instance of the kernel's trace in the place of the trace itself, in a
/// mount namespace of its own, so that nothing outside changes. Prints that trace at the end.
const WITH_A_TRACE: &str = r#"
grep -q ' /sys/kernel/tracing tracefs ' /proc/mounts ||
	mount -t tracefs nodev /sys/kernel/tracing || exit 77
instance=/sys/kernel/tracing/instances/onbeat-stat-test-$$
mkdir "$instance" || exit 77
mount --bind "$instance" /sys/kernel/tracing
"$@"
status=$?
cat /sys/kernel/tracing/tracing_on /sys/kernel/tracing/trace
umount /sys/kernel/tracing
rmdir "$instance"
exit $status
"#;

/// What a run with these words prints, with the kernel's trace, and says; nothing where there is no
/// such trace.
fn traced(words: &[&str]) -> Option<(String, String)> {
    let system = talker_and_listener("", "");
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", WITH_A_TRACE, "sh", env!("CARGO_BIN_EXE_onbeat")])
        .args(["run", ".", "--time", "real", "--trace", "--duration", "1s"])
        .args(words)
        .current_dir(system.path())
        .output()
        .expect("unshare");
    let [text, said] =
        [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
    if !output.status.success() && !said.contains("onbeat: ") {
        println!("not tested: no mount namespace or no kernel trace here ({said})");
        return None;
    }
    Some((text, said))
}

#[test]
fn a_run_marks_its_messages_in_the_kernels_trace_and_freezes_it_at_a_long_latency() {
    let Some((text, said)) = traced(&[]) else { return };
    assert!(text.contains("\n1\n"), "the trace goes on: {text}");
    for marker in ["onbeat tx c seq=0 cap=", "onbeat rx c seq=0 cap="] {
        assert!(text.contains(marker), "{marker} in {text}\n{said}");
    }
    // The listener may freeze it before the talker comes to its mark.
    let Some((text, said)) = traced(&["--break-us", "1"]) else { return };
    assert!(text.contains("\n0\n"), "the trace is frozen: {text}");
    for marker in ["onbeat rx c seq=0 cap=", "onbeat break c seq=0 "] {
        assert!(text.contains(marker), "{marker} in {text}\n{said}");
    }
    assert!(said.contains("the kernel's trace is frozen: message 0 of channel `c` took"), "{said}");
}

#[test]
fn a_run_without_a_kernel_trace_is_refused_before_it_starts() {
    let system = talker_and_listener("", "");
    let without = "mount -t tmpfs nodev /sys/kernel/tracing && exec \"$@\"";
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", without, "sh", env!("CARGO_BIN_EXE_onbeat")])
        .args(["run", ".", "--time", "real", "--trace"])
        .current_dir(system.path())
        .output()
        .expect("unshare");
    let said = String::from_utf8_lossy(&output.stderr);
    if !said.contains("onbeat: ") {
        println!("not tested: no mount namespace here ({said})");
        return;
    }
    assert_eq!(output.status.code(), Some(5), "{said}");
    assert!(said.contains("tracing/trace_marker: ") && said.lines().count() == 1, "{said}");
    assert!(!system.path().join("out").exists());
}
