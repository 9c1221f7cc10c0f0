//! Channels of programs of Lingua Franca: what is in `lf/`, compiled against a stand-in for the
//! runtime (reactor-c), which executes it in runs. Where `lfc` is there, the tutorial's models are
//! compiled with the real one too.

use crate::common::{TestSystem, channel, number, results, root, two_hosts};
use onbeat_testkit::{Need, not_run};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// What a federation is linked with.
pub(crate) const WRAPS: [&str; 3] = [
    "-Wl,--wrap=lf_connect_to_rti",
    "-Wl,--wrap=lf_send_tagged_message",
    "-Wl,--wrap=read_from_net_close_on_error",
];
/// Time is that of the run, also if it is virtual; the thread of the reactions takes part in it.
pub(crate) const INLINE: &str = "-DONBEAT_LF_INLINE";
/// Between two readings of the sensor.
const PERIOD_NS: i64 = 10_000_000;
/// The fixed delay.
pub(crate) const DELAY_NS: i64 = 2_000_000;

pub(crate) fn lf(path: &str) -> PathBuf {
    root().join("lf").join(path)
}

/// Writes the bodies of the reactions of Onbeat.lf, each into a file by its reactor and number.
fn cut_out_bodies(into: &Path) {
    let text = std::fs::read_to_string(lf("Onbeat.lf")).expect("Onbeat.lf");
    let mut count = 0;
    for reactor in text.split("\nreactor ").skip(1) {
        let (name, _) = reactor.split_once('<').expect("a generic reactor");
        let (reactor, _) = reactor.split_once("\n}\n").expect("its end");
        for (at, reaction) in reactor.split("\n  reaction(").skip(1).enumerate() {
            let (_, body) = reaction.split_once("{=").expect("a body");
            let (body, _) = body.split_once("=}").expect("its end");
            std::fs::write(into.join(format!("{name}_{at}.inc")), body).expect("written");
            count += 1;
        }
    }
    assert_eq!(count, 8, "all reactions of both reactors");
}

/// Compiles a program of `lf/test` with sources of `lf/src`, as strictly as a compiler can.
pub(crate) fn compile(
    system: &TestSystem,
    name: &str,
    test: &str,
    sources: &[&str],
    flags: &[&str],
) {
    let include = system.path().join("bodies");
    if !include.exists() {
        std::fs::create_dir(&include).expect("a directory");
        cut_out_bodies(&include);
    }
    let mut more: Vec<String> = ["-D_GNU_SOURCE", "-Wpedantic"].map(str::to_owned).into();
    let stub = if test == "uc.c" { "test/stub_uc" } else { "test/stub" };
    for directory in [lf(stub), lf("include"), include] {
        more.push(format!("-I{}", directory.display()));
    }
    more.extend(sources.iter().map(|source| lf(source).display().to_string()));
    more.extend(flags.iter().map(|flag| (*flag).to_owned()));
    let more: Vec<&str> = more.iter().map(String::as_str).collect();
    system.compile(&lf(&format!("test/{test}")), name, &more);
}

const REACTORS: [&str; 3] = ["src/member.c", "src/reactors.c", "test/stub/runtime.c"];
pub(crate) const FEDERATION: [&str; 8] = [
    "src/member.c",
    "src/federated.c",
    "src/peer.c",
    "src/table.c",
    "src/wire.c",
    "test/stub/runtime.c",
    "test/stub/federate.c",
    "test/stub/socket.c",
];

/// Two programs on two hosts, with these commands.
fn description(octets: u32, left: &str, right: &str) -> String {
    let programs = format!(
        "[[program]]\nname = \"left\"\nhost = \"a\"\ncommand = [{left}]\n\
         [[program]]\nname = \"right\"\nhost = \"b\"\ncommand = [{right}]\n"
    );
    two_hosts(&programs)
        .replace("name = \"c\"", "name = \"reading\"")
        .replace("size_octets = 8", &format!("size_octets = {octets}"))
        .replace("rate_hz = 1000", "rate_hz = 100")
        .replace("hang_timeout_s = 2", "hang_timeout_s = 20")
}

/// The two programs with the reactors of Onbeat.lf; `right` are the listener's arguments.
fn talker_and_listener(octets: u32, right: &str, flags: &[&str]) -> TestSystem {
    let left = r#""build/talker", "reading", "300""#;
    let right = format!("\"build/listener\", {right}");
    let system = TestSystem::new(&description(octets, left, &right));
    for name in ["talker", "listener"] {
        compile(&system, name, &format!("{name}.c"), &REACTORS, flags);
    }
    system
}

/// `onbeat run` there; its exit code is `expected`.
pub(crate) fn run(system: &TestSystem, arguments: &[&str], expected: i32) -> Output {
    let output = crate::common::onbeat()
        .arg("run")
        .arg(".")
        .args(arguments)
        .current_dir(system.path())
        .env("ONBEAT_LF_TABLE", system.path().join("table"))
        .env("NO_COLOR", "1")
        .output()
        .expect("onbeat runs");
    assert_eq!(output.status.code(), Some(expected), "{}", said(&output));
    output
}

pub(crate) fn said(output: &Output) -> String {
    let text = String::from_utf8_lossy;
    format!("{}{}", text(&output.stdout), text(&output.stderr))
}

/// The lines that a program has printed: those whose second word is a number.
fn lines(output: &Output) -> Vec<Vec<String>> {
    let text = said(output);
    let rows = text.lines().map(|line| line.split(' ').map(str::to_owned).collect::<Vec<_>>());
    rows.filter(|words| words.len() >= 4 && words[1].parse::<i64>().is_ok()).collect()
}

pub(crate) fn whole(word: &str) -> i64 {
    word.parse().unwrap_or_else(|_| panic!("`{word}` is a whole number"))
}

#[test]
fn every_message_is_present_at_its_tag_and_delay_in_virtual_time() {
    for early in ["", r#", "early""#] {
        let right = format!(r#""reading", "{DELAY_NS}", "400"{early}"#);
        let system = talker_and_listener(24, &right, &[INLINE]);
        let output = run(&system, &[], 0);
        let lines = lines(&output);
        assert_eq!(lines.len(), 31, "{}", said(&output));
        for (count, line) in (0..).zip(&lines) {
            let expected = [count, count * PERIOD_NS + DELAY_NS, 0, 0].map(|n| n.to_string());
            assert_eq!(*line, expected);
        }
        let said = said(&output);
        assert!(said.contains("onbeat_lf: reading: sent 31, failed 0"), "{said}");
        let counts = "onbeat_lf: reading: received 31, late 0, latest 0 ns, lost 0";
        assert!(said.contains(counts), "{said}");
    }
    println!("the reactors ran with the stand-in for reactor-c");
}

#[test]
fn what_comes_later_than_the_delay_says_by_how_much() {
    // The network alone takes 13.68 µs: nothing keeps 10.
    let system = talker_and_listener(24, r#""reading", "10000", "400""#, &[INLINE]);
    let results = results(&["run", "."], system.path(), 0);
    let latency = number(channel(&results, "reading"), "latency_ns.max");
    let output = run(&system, &[], 0);
    let lines = lines(&output);
    assert_eq!(lines.len(), 31, "{}", said(&output));
    for (count, line) in (0..).zip(&lines) {
        // No tag between has passed: it is kept.
        let expected = [count, count * PERIOD_NS + 10_000, 0, latency - 10_000];
        assert_eq!(*line, expected.map(|n| n.to_string()));
    }
    assert!(said(&output).contains("received 31, late 31,"), "{}", said(&output));
}

#[test]
fn threads_of_the_runtime_that_are_not_of_the_run_send_and_receive_in_real_time() {
    let right = format!(r#""reading", "{DELAY_NS}", "2000", "early""#);
    let system = talker_and_listener(24, &right, &[]);
    let output = run(&system, &["--time", "real", "--duration", "3s"], 0);
    let lines = lines(&output);
    assert_eq!(lines.len(), 31, "{}", said(&output));
    let mut before = (0, 0);
    for (count, line) in (0..).zip(&lines) {
        assert_eq!(whole(&line[0]), count, "in order");
        let tag = (whole(&line[1]), whole(&line[2]));
        assert!(tag > before, "{tag:?} after {before:?}");
        before = tag;
    }
}

#[test]
fn a_runtime_with_threads_of_its_own_is_told_that_it_needs_real_time() {
    let right = format!(r#""reading", "{DELAY_NS}", "400""#);
    let system = talker_and_listener(24, &right, &[]);
    assert!(
        said(&run(&system, &[], 4)).contains("run it in real time, with `onbeat run --time real`")
    );
    let system = federation(["port", "port"], [300, 400], &[]);
    assert!(
        said(&run(&system, &[], 4)).contains("run it in real time, with `onbeat run --time real`")
    );
}

#[test]
fn a_payload_of_another_size_and_an_unknown_channel_are_refused_before_the_start() {
    let right = format!(r#""reading", "{DELAY_NS}", "400""#);
    let system = talker_and_listener(32, &right, &[INLINE]);
    let refusal = "onbeat_lf: reading, 24 octets: channel `reading` carries messages of 32 octets";
    assert!(said(&run(&system, &[], 4)).contains(refusal));

    let system = talker_and_listener(24, r#""nonsense", "2000000", "400""#, &[INLINE]);
    let refusal = "onbeat_lf: nonsense, 24 octets: the description has no channel `nonsense`";
    assert!(said(&run(&system, &[], 4)).contains(refusal));

    let system = talker_and_listener(24, r#""reading", "0", "400""#, &[INLINE]);
    let refusal = "onbeat_lf: reading: the parameter `delay` is the channel's fixed delay, above 0";
    assert!(said(&run(&system, &[], 4)).contains(refusal));

    let long = "x".repeat(32);
    let right = format!(r#""{long}", "{DELAY_NS}", "400""#);
    let system = talker_and_listener(24, &right, &[INLINE]);
    assert!(
        said(&run(&system, &[], 4)).contains("the parameter `channel` is no name of a channel")
    );
}

/// A federation of [`FEDERATION`], whose third argument is `other`.
fn federation(other: [&str; 2], milliseconds: [u32; 2], flags: &[&str]) -> TestSystem {
    let command = |federate: usize| {
        let (milliseconds, other) = (milliseconds[federate], other[federate]);
        format!(r#""build/federate", "{federate}", "{milliseconds}", "{other}""#)
    };
    // 700 µs a link: what comes over a socket could overtake.
    let text = description(31, &command(0), &command(1));
    let text = text.replace("propagation_ns = 100\n", "propagation_ns = 700000\n");
    let system = TestSystem::new(&text);
    compile(&system, "federate", "federation.c", &FEDERATION, &[&WRAPS[..], flags].concat());
    table(&system, "onbeat-lf-channels 1\n0 s.reading 1 0 reading 10 2000000\n");
    system
}

fn table(system: &TestSystem, text: &str) {
    std::fs::write(system.path().join("table"), text).expect("written");
}

/// What the logic prints of the federation of `lf/test/federation.c`, but for the times.
pub(crate) fn expected(values: std::ops::Range<i64>) -> Vec<[String; 3]> {
    let line = |name: &str, value: i64, length| [name.into(), value.to_string(), length];
    let mut lines = Vec::new();
    for value in values {
        if value % 4 != 3 {
            lines.push(line("reading", value, (8 + value % 3).to_string()));
        }
        lines.push(line("status", value, "1".to_owned()));
    }
    lines
}

/// Where the lines of the logic are of its two inputs with tags.
pub(crate) fn tagged(output: &Output) -> Vec<Vec<String>> {
    lines(output).into_iter().filter(|line| line[0] != "alarm").collect()
}

#[test]
fn a_federations_messages_keep_their_tags_over_channels_and_nothing_overtakes_them() {
    let other = ["octets:sent", "octets:given"];
    let system = federation(other, [300, 400], &[INLINE]);
    // The first run makes what the socket carries; the second one has that, at its times.
    std::fs::write(system.path().join("given"), []).expect("written");
    let first = run(&system, &[], 0);
    assert!(lines(&first).is_empty(), "a federate waits for inputs that are not known");
    std::fs::rename(system.path().join("sent"), system.path().join("given")).expect("renamed");
    let output = run(&system, &[], 0);
    let found = tagged(&output);
    let (expected, found_parts): (Vec<_>, Vec<_>) = (
        expected(0..30),
        found.iter().map(|line| [line[0].clone(), line[1].clone(), line[2].clone()]).collect(),
    );
    assert_eq!(found_parts, expected, "{}", said(&output));
    for line in &found {
        let tag = whole(&line[1]) * PERIOD_NS + 2_000_000;
        assert_eq!(line[3..], [tag.to_string(), "0".into(), "in-time".into()], "{line:?}");
    }
    let said = said(&output);
    assert!(!said.contains("overtaken"), "{said}");
    assert!(said.contains("federate 0: reading: sent 23, refused 0"), "{said}");
    let counts = "federate 1: reading: received 23, late 0, latest 0 ns, rejected 0, lost 0";
    assert!(said.contains(counts), "{said}");
    // All else is on the socket: 30 states, an alarm at each eighth reading, 31 absences.
    assert!(said.contains("over the socket: 30 tagged, 4 physical, 31 absent"), "{said}");
}

#[test]
fn a_federations_messages_go_over_channels_beside_sockets_in_real_time() {
    let system = federation(["port", "port"], [300, 2000], &[]);
    let output = run(&system, &["--time", "real", "--duration", "4s"], 0);
    let found = tagged(&output);
    assert_eq!(found.len(), expected(0..30).len(), "{}", said(&output));
    for name in ["reading", "status"] {
        let of_port = |lines: &mut dyn Iterator<Item = [String; 3]>| -> Vec<[String; 3]> {
            lines.filter(|line| line[0] == name).collect()
        };
        let parts = |line: &Vec<String>| [line[0].clone(), line[1].clone(), line[2].clone()];
        let got = of_port(&mut found.iter().map(parts));
        assert_eq!(got, of_port(&mut expected(0..30).into_iter()), "{}", said(&output));
    }
    // Intended tags are the sender's, 10 ms apart, however slow this machine is.
    let base = whole(&found[0][3]);
    for line in &found {
        assert_eq!(whole(&line[3]) - base, whole(&line[1]) * PERIOD_NS, "{line:?}");
    }
    let said = said(&output);
    assert!(said.contains("federate 0: reading: sent 23, refused 0"), "{said}");
    assert!(said.contains("over the socket: 30 tagged, 4 physical, 31 absent"), "{said}");
}

#[test]
fn a_payload_that_is_too_long_for_its_channel_is_refused_and_not_sent_by_the_socket() {
    let system = federation(["long", "long"], [300, 300], &[INLINE]);
    let output = run(&system, &["--duration", "400ms"], 0);
    let said = said(&output);
    let refusal = "reading: a message is refused: its payload is longer than the channel's";
    assert!(said.contains(refusal), "{said}");
    assert!(said.contains("federate 0: reading: sent 0, refused 23"), "{said}");
    assert!(said.contains("federate 1: reading: received 0,"), "{said}");
}

#[test]
fn an_unknown_runtime_and_a_wrong_table_are_refused_before_the_start() {
    let system = federation(["long", "long"], [300, 300], &[INLINE, "-DSTUB_BIG_ENDIAN"]);
    let refusal = "unknown reactor-c: its header of tagged messages is another one";
    assert!(said(&run(&system, &[], 4)).contains(refusal));

    let system = federation(["long", "long"], [300, 300], &[INLINE]);
    for (text, refusal) in [
        ("", "its first line is not `onbeat-lf-channels 1`"),
        ("onbeat-lf-channels 1\n0 a 1 0 reading 10\n", "line 2: a row has seven fields"),
        (
            "onbeat-lf-channels 1\n0 a 9 0 reading 10 2000000\n",
            "the channel reading is of federate 0 to 9, but there are 2",
        ),
        (
            "onbeat-lf-channels 1\n0 a 1 3 reading 10 2000000\n",
            "the channel reading is of input 3 of federate 1, which has 3",
        ),
        (
            "onbeat-lf-channels 1\n0 a 1 0 reading 9 2000000\n",
            "reading, 30 octets: channel `reading` carries messages of 31 octets",
        ),
    ] {
        table(&system, text);
        assert!(said(&run(&system, &[], 4)).contains(refusal), "{refusal}");
    }
    std::fs::remove_file(system.path().join("table")).expect("removed");
    assert!(said(&run(&system, &[], 4)).contains("No such file or directory"));
}

#[test]
fn a_runtime_of_another_interface_does_not_compile_and_the_message_says_why() {
    let place = tempfile::tempdir().expect("a directory");
    let stub = place.path().join("stub");
    std::fs::create_dir(&stub).expect("a directory");
    let why = |source: &str, flags: &[&str]| {
        let output = Command::new("cc")
            .args(["-std=c11", "-D_GNU_SOURCE", "-fsyntax-only"])
            .args(flags)
            .arg(format!("-I{}", stub.display()))
            .arg(format!("-I{}", lf("include").display()))
            .arg(format!("-I{}", root().join("crates/capi/include").display()))
            .arg(lf(source))
            .output()
            .expect("a C compiler");
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let copy = |edit: &dyn Fn(&str, String) -> Option<String>| {
        for entry in lf("test/stub").read_dir().expect("the stub").flatten() {
            let name = entry.file_name().into_string().expect("UTF-8");
            let text = std::fs::read_to_string(entry.path()).expect("text");
            let to = stub.join(&name);
            let _ = std::fs::remove_file(&to);
            if let Some(text) = edit(&name, text) {
                std::fs::write(to, text).expect("written");
            }
        }
    };
    copy(&|_, text| Some(text));
    for source in ["src/reactors.c", "src/federated.c"] {
        assert!(why(source, &[]).0, "{}", why(source, &[]).1);
    }
    // In older versions a tagged message has the number 17.
    let (compiles, told) = why("src/federated.c", &["-DSTUB_TAGGED=17"]);
    assert!(!compiles && told.contains("unknown reactor-c"), "{told}");
    // Older versions read from sockets.
    copy(&|name, text| (name != "net_abstraction.h").then_some(text));
    let (compiles, told) = why("src/federated.c", &[]);
    assert!(!compiles && told.contains("unknown reactor-c"), "{told}");
    // A function of other arguments.
    copy(&|_, text| Some(text.replace("trigger_t *trigger, tag_t tag,", "trigger_t *trigger,")));
    let (compiles, told) = why("src/reactors.c", &[]);
    assert!(!compiles && told.contains("unknown reactor-c"), "{told}");
    let (compiles, told) = why("src/reactors.c", &["-DLF_SINGLE_THREADED"]);
    assert!(!compiles && told.contains("single-threaded"), "{told}");
}

/// `lf/test/fuzz.c`, with the sanitizers that are here.
pub(crate) fn fuzz(place: &Path) -> PathBuf {
    let program = place.join("fuzz");
    for sanitizers in [&["-fsanitize=address,undefined", "-fno-sanitize-recover=all"][..], &[]] {
        let output = Command::new("cc")
            .args(["-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Wpedantic", "-Werror"])
            .args(["-g", "-O1"])
            .args(sanitizers)
            .arg(format!("-I{}", root().join("crates/capi/include").display()))
            .args(["test/fuzz.c", "src/peer.c", "src/table.c", "src/wire.c"].map(lf))
            .arg("-o")
            .arg(&program)
            .output()
            .expect("a C compiler");
        let runs = Command::new(&program).args(["0", "0"]).output();
        if output.status.success() && runs.is_ok_and(|output| output.status.code() == Some(1)) {
            return program;
        }
        assert!(!sanitizers.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
        not_run(Need::Machine, "programs with sanitizers do not run here");
    }
    unreachable!("the last one has been built")
}

#[test]
fn programs_in_virtual_time_have_no_fault_that_a_sanitizer_finds() {
    let sanitizers = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
    let place = tempfile::tempdir().expect("a directory");
    let (source, program) = (place.path().join("empty.c"), place.path().join("empty"));
    std::fs::write(&source, "int main(void) { return 0; }\n").expect("written");
    let mut cc = Command::new("cc");
    cc.args(sanitizers).arg(source).arg("-o").arg(&program);
    let built = cc.output().expect("a C compiler").status.success();
    if !built || !Command::new(&program).output().is_ok_and(|output| output.status.success()) {
        not_run(Need::Machine, "programs with sanitizers do not run here");
        return;
    }
    let flags = [&sanitizers[..], &[INLINE]].concat();
    let right = format!(r#""reading", "{DELAY_NS}", "400""#);
    let output = run(&talker_and_listener(24, &right, &flags), &[], 0);
    assert_eq!(lines(&output).len(), 31, "{}", said(&output));
    let system = federation(["octets:sent", "octets:given"], [300, 400], &flags);
    std::fs::write(system.path().join("given"), []).expect("written");
    run(&system, &[], 0);
    std::fs::rename(system.path().join("sent"), system.path().join("given")).expect("renamed");
    let output = run(&system, &[], 0);
    assert_eq!(tagged(&output).len(), expected(0..30).len(), "{}", said(&output));
}

#[test]
fn random_tables_headers_and_federates_break_nothing_and_lose_nothing() {
    let place = tempfile::tempdir().expect("a directory");
    let output = Command::new(fuzz(place.path())).args(["1", "200"]).output().expect("it runs");
    assert!(output.status.success(), "{}", said(&output));
}

#[test]
fn a_table_has_limits_and_says_which_line_breaks_them() {
    let place = tempfile::tempdir().expect("a directory");
    let program = fuzz(place.path());
    let told = |text: &str| {
        let mut child = Command::new(&program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it runs");
        // It may have said why before it has read all.
        let _ = child.stdin.take().expect("a pipe").write_all(text.as_bytes());
        let output = child.wait_with_output().expect("it ends");
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    let head = "# a comment\n\nonbeat-lf-channels 1\r\n";
    let name = "c".repeat(31);
    let row = format!("0 p 1 2 {name} 1455 600000000000 # the most\n");
    let row = row.replace("0 p", "65535\tp");
    assert_eq!(told(&format!("{head}{row}")), format!("65535 1 2 {name} 1455 600000000000\n"));
    for (row, why) in [
        ("65536 p 1 2 c 1 1", "line 4: the sending federate is a number up to 65535"),
        ("-1 p 1 2 c 1 1", "line 4: the sending federate is a number up to 65535"),
        ("0 p x 2 c 1 1", "line 4: the receiving federate is a number up to 65535"),
        ("0 p 1 65536 c 1 1", "line 4: the receiving port is a number up to 65535"),
        ("0 p 1 2 c\u{e9} 1 1", "line 4: a channel's name has 1 to 31 printing characters"),
        ("0 p 1 2 c 1456 1", "line 4: a payload has up to 1455 octets"),
        ("0 p 1 2 c 1 0", "line 4: the delay is a number of nanoseconds from 1 to 10 minutes"),
        (
            "0 p 1 2 c 1 600000000001",
            "line 4: the delay is a number of nanoseconds from 1 to 10 minutes",
        ),
        ("1 p 1 2 c 1 1", "line 4: a connection has two federates"),
        ("0 p 1 2 c 1", "line 4: a row has seven fields"),
        ("0 p 1 2 c 1 1 1", "line 4: a row has seven fields"),
        ("0 p 1 2 c 1 1\n0 p 1 3 c 1 1", "two rows have the channel c"),
        ("0 p 1 2 c 1 1\n2 p 1 2 d 1 1", "two rows have the port 2 of federate 1"),
    ] {
        assert_eq!(told(&format!("{head}{row}\n")), format!("{why}\n"), "{row}");
    }
    let long = format!("0 p 1 2 {} 1 1\n", "c".repeat(32));
    let why = "line 4: a channel's name has 1 to 31 printing characters\n";
    assert_eq!(told(&format!("{head}{long}")), why);
    let row = |at: usize| format!("0 p 1 {at} c{at} 1 1\n");
    let most: String = (0..4096).map(row).collect();
    assert_eq!(told(&format!("{head}{most}")).lines().count(), 4096);
    let more: String = (0..4097).map(row).collect();
    assert_eq!(told(&format!("{head}{more}")), "line 4100: more than 4096 rows\n");
    let huge = "#".repeat((1 << 20) + 1);
    assert_eq!(told(&huge), "it has more than 1048576 octets\n");
}

#[test]
fn federates_of_micro_lf_talk_in_both_directions() {
    let left = r#""build/federate", "0""#;
    let right = r#""build/federate", "1""#;
    let back = "[[channel]]\nname = \"back\"\ndestination = \"01:00:5e:00:00:02\"\n\
                stream_id = 2\nclass = \"A\"\nsize_octets = 131\nrate_hz = 100\n\
                talker = \"b\"\nlisteners = [\"a\"]\n";
    let text = description(131, left, right).replace("name = \"reading\"", "name = \"there\"");
    let text = text.replace("duration_ms = 500", "duration_ms = 800");
    let system = TestSystem::new(&format!("{text}{back}"));
    compile(&system, "federate", "uc.c", &["src/uc.c", "src/member.c"], &[INLINE]);
    let output = run(&system, &[], 0);
    let text = String::from_utf8_lossy(&output.stderr);
    let found: Vec<&str> =
        text.lines().filter(|l| l.starts_with(|c: char| c.is_ascii_digit())).collect();
    let mut expected = vec!["0 ".to_owned()];
    for length in 1..9_usize {
        expected.push(format!("{length} {}{}", "a".repeat(length - 1), length + 1));
    }
    expected.push(format!("128 {}:", "a".repeat(127)));
    assert_eq!(found, expected, "{text}");
    assert!(text.contains("there: a message of 129 octets is refused"), "{text}");
}

/// The listings of the tutorial that begin with this line.
fn listings(begin: &str) -> Vec<String> {
    let page = std::fs::read_to_string(root().join("docs/lingua-franca.md")).expect("the page");
    let mut found: Vec<String> = Vec::new();
    let mut is_within = false;
    for line in page.lines() {
        let code = line.strip_prefix("    ");
        if code == Some(begin) {
            found.push(String::new());
            is_within = true;
        }
        is_within &= code.is_some() || line.is_empty();
        if let Some(listing) = found.last_mut().filter(|_| is_within) {
            *listing += code.unwrap_or_default();
            listing.push('\n');
        }
    }
    found
}

#[test]
fn the_tutorials_description_is_right() {
    let found = listings("format = 1");
    assert_eq!(found.len(), 1);
    let system = TestSystem::new(&found[0]);
    let checked = crate::common::run(&["check", "."], system.path(), 0);
    assert!(said(&checked).contains("sensor-logic: fine."), "{}", said(&checked));
    // The type has the channel's size, and is found by what Onbeat.lf includes.
    let types = &listings("#pragma once")[0];
    let program = "#include \"onbeat_lf.h\"\n_Static_assert(sizeof(reading_t) == 24, \"\");\n";
    std::fs::write(system.path().join("onbeat_types.h"), types).expect("written");
    std::fs::write(system.path().join("types.c"), program).expect("written");
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-fsyntax-only", "-I."]).current_dir(system.path()).arg("types.c");
    let output = cc.arg(format!("-I{}", lf("include").display())).output().expect("a C compiler");
    assert!(output.status.success(), "{}", said(&output));
}

#[test]
fn the_models_compile_with_the_real_compiler_where_it_is() {
    let tutorial = listings("target C {");
    assert_eq!(tutorial.len(), 3, "sensor, logic, and an outline of a federation");
    if Command::new("lfc").arg("--version").output().is_err() {
        not_run(Need::Machine, "lfc is not there: models are not compiled with the real runtime");
        return;
    }
    let place = tempfile::tempdir().expect("a directory");
    let prefix = place.path().join("prefix");
    let mut make = Command::new("make");
    make.current_dir(onbeat_testkit::tree()).args(["-s", "install"]);
    make.arg(format!("PREFIX={}", prefix.display()));
    make.env_remove("MAKEFLAGS").env_remove("MAKELEVEL").env_remove("MFLAGS");
    assert!(make.status().expect("make").success());
    let src = place.path().join("src");
    std::fs::create_dir(&src).expect("a directory");
    std::os::unix::fs::symlink(prefix.join("share/onbeat/lf"), src.join("onbeat")).expect("a link");
    std::fs::write(src.join("onbeat_types.h"), &listings("#pragma once")[0]).expect("written");
    let federation = std::fs::read_to_string(lf("test/Federation.lf")).expect("a model");
    for (model, text) in
        [("Sensor", &tutorial[0]), ("Logic", &tutorial[1]), ("Federation", &federation)]
    {
        let name = format!("{model}.lf");
        std::fs::write(src.join(&name), text).expect("written");
        let mut lfc = Command::new("lfc");
        lfc.arg(src.join(&name)).env("CMAKE_PREFIX_PATH", &prefix);
        let output = lfc.output().expect("lfc runs");
        assert!(output.status.success(), "{model}: {}", said(&output));
    }
    println!("the models were compiled by the lfc on the PATH");
}
