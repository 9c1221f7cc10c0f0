//! One contract in every engine: the same script gives the same statuses, values, flags and
//! counters in virtual time, in emulated real time and on the kernel's own network.
//!
//! In real time a script keeps its steps apart, but a machine that does other things may be later
//! still: so often it is tried again. What an engine does otherwise than the others it does always.

use crate::common::{ENGINES, TestSystem, channel, number, permitted, results, run, two_hosts};
use serde_json::Value;
use std::path::Path;

/// How often a script is tried in real time.
const TRIES: u32 = 6;

/// A way back beside [`two_hosts`]' channel, both slow enough that a script in real time can keep
/// its steps apart.
fn slow_channels(programs: &str) -> String {
    let slow = "class = \"A\"\nsize_octets = 8\nrate_hz = 10\nfixed_delay_us = 100000";
    let back = format!(
        "[[channel]]\nname = \"back\"\ndestination = \"01:00:5e:00:00:02\"\nstream_id = 2\n{slow}\n\
         burst_messages = 4\ntalker = \"b\"\nlisteners = [\"a\"]\n{programs}"
    );
    two_hosts(&back)
        .replacen("class = \"A\"\nsize_octets = 8\nrate_hz = 1000", slow, 1)
        .replace("duration_ms = 500\nhang_timeout_s = 2", "duration_ms = 2500\nhang_timeout_s = 9")
}

/// Two scripts as programs.
fn scripts(left: &str, right: &str) -> String {
    let script = |name: &str, host: &str, text: &str| {
        let words: Vec<_> = text.split_whitespace().map(|word| format!("\"{word}\"")).collect();
        format!(
            "[[program]]\nname = \"{name}\"\nhost = \"{host}\"\ncommand = [\"build/script\", \
             \"{name}\", {}]\n",
            words.join(", ")
        )
    };
    format!("{}{}", script("left", "a", left), script("right", "b", right))
}

fn system(description: &str) -> TestSystem {
    let system = TestSystem::new(description);
    system.program("script.c", "script");
    system
}

fn said(system: &TestSystem, name: &str) -> String {
    std::fs::read_to_string(system.path().join(name)).expect("what a program wrote")
}

/// The engines that this machine lets the test use.
fn engines() -> impl Iterator<Item = &'static [&'static str]> {
    let kernel = permitted();
    ENGINES.iter().copied().filter(move |how| kernel || !how.contains(&"netns"))
}

const LEFT: &str = "T c L back start
    sl 200000 tw 0 tw 0  sl 600000 ww 0  sl 1000000 wa 0 100000 wa 0 1200000
    sl 1500000 sel 0 tr 0 tr 0 tr 0 tr 0 tr 0 sel 0 rt 0 1000
    lim 0 1510000 r 0 rw 0 tr 0 lim 0 9000000000  sl 1650000 wm 0 3 ctr
    sl 2550000 tw 0 w 0 ww 0 wa 0 2560000 tw 0 tw 0
    sl 90000000 wm 0 2 twm 0 2 w 0 tw 0 ww 0 wa 0 5000000 r 0 tr 0 rl 0 rt 0 10
    rw 0 sel 0 sel -1 sl 0 slr 0
    work 5 rdv 0 0 ctr";
const RIGHT: &str = "T back L c start
    tr 0 rl 0 rt 0 1000 sel 1000  sl 400000 sel 0 rl 0 rl 0 tr 0 rt 0 1000
    rw 0 r 0 rt 0 900000  sl 1400000 twm 0 5
    sl 2200000 sel 0 tr 0 tr 0 ctr  sl 2550000 tw 0 tw 0 tw 0 tw 0 tw 0 tw 0 w 0
    sl 90000000 tr 0 sel 0 tr 0 r 0 rl 0 rt 0 0 rw 0 rt 0 1000 tr 0 slr -5 slr 0 tw 0 ctr";

#[test]
fn one_script_gives_the_same_in_every_engine() {
    // One way is authenticated, the other has a CRC.
    let text = slow_channels(&scripts(LEFT, RIGHT));
    let text = text.replacen("class = \"A\"", "integrity = \"authenticated\"\nclass = \"A\"", 1);
    let (before, back) = text.split_once("name = \"back\"").expect("the way back");
    let system = system(&format!("{before}name = \"back\"\nintegrity = \"crc\"{back}"));
    let mut expected: Option<[String; 2]> = None;
    for how in engines() {
        let mut tries = 0;
        loop {
            run(how, system.path(), 0);
            let got = ["left.log", "right.log"].map(|name| said(&system, name));
            let wanted = expected.get_or_insert_with(|| got.clone());
            if got == *wanted {
                break;
            }
            tries += 1;
            assert!(tries < TRIES, "{how:?}\n{got:#?}\nis not\n{wanted:#?}");
        }
    }
    // What it is that is the same: after the end nothing is given any more, nor taken.
    let [left, right] = expected.expect("virtual time at least");
    let after = |text: &str| text.rsplit_once("sl STOPPED\n").map(|(_, after)| after.to_owned());
    for text in [&left, &right] {
        let after = text.find("sl STOPPED").map(|at| &text[at..]).expect("an end");
        let calls = after.lines().filter(|line| !line.starts_with("ctr"));
        assert!(calls.clone().count() > 12, "{text}");
        assert!(calls.clone().all(|line| line.contains("STOPPED")), "{text}");
    }
    assert!(after(&right).is_some());
    // Refused writes took neither credit nor a number, and no message is invented or lost.
    assert!(right.contains("4 by twm RATE\n"), "{right}");
    assert!(left.contains("3 by wm OK\n") && left.contains("0 by wm STOPPED\n"), "{left}");
    assert!(right.ends_with("T0 sent=4 rate=1\nctr L0 received=6 lost=0 late=0 duplicate=0\n"));
    assert!(right.contains("rl OK v=1 seq=0 gap=0 fl=0\nrl OK v=1 seq=0 gap=0 fl=64\n"), "{right}");
}

// Some of the messages are longer than a frame, one way with a CRC.
#[test]
fn one_script_gives_the_same_in_every_engine_for_messages_in_fragments() {
    let longer =
        |script: &str, size: u32| format!("size {size} {}", script.replace(" rdv 0 0", ""));
    let (left, right) = (longer(LEFT, 5_000), longer(RIGHT, 5_000));
    let text =
        slow_channels(&scripts(&left, &right)).replace("size_octets = 8", "size_octets = 5000");
    let text = text.replace("class = \"A\"", "class = \"B\"");
    let system = system(&text.replacen("class", "integrity = \"crc\"\nclass", 1));
    let mut expected: Option<[String; 2]> = None;
    for how in engines() {
        let mut tries = 0;
        loop {
            let output = run(&[how, &["--json"]].concat(), system.path(), 0);
            let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
            let got = ["left.log", "right.log"].map(|name| said(&system, name));
            let wanted = expected.get_or_insert_with(|| got.clone());
            if got == *wanted {
                // On the kernel's network messages that are not read are lost, as always there.
                let lost = number(channel(&json, "c"), "lost");
                assert!(lost == 0 || how.contains(&"netns"), "{how:?}: {json}");
                break;
            }
            tries += 1;
            assert!(tries < TRIES, "{how:?}\n{got:#?}\nis not\n{wanted:#?}");
        }
    }
    let [left, right] = expected.expect("virtual time at least");
    assert!(right.contains("4 by twm RATE\n"), "{right}");
    assert!(left.contains("3 by wm OK\n") && left.contains("0 by wm STOPPED\n"), "{left}");
    assert!(right.ends_with("T0 sent=4 rate=1\nctr L0 received=6 lost=0 late=0 duplicate=0\n"));
}

// A program that writes as often as it may, and says itself how often it had to wait.
#[test]
fn writes_that_the_rate_holds_are_counted_and_said_in_every_engine() {
    let system = system(&slow_channels(&scripts(
        "T c L back start loop 16 w 0 end ctr",
        "T back L c start sl 100000000 w 0 ctr",
    )));
    for how in engines() {
        let output = run(&[how, &["--json"]].concat(), system.path(), 0);
        let said_by_run = String::from_utf8_lossy(&output.stderr).into_owned();
        let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let c = channel(&json, "c");
        let log = said(&system, "left.log");
        let own = log.lines().find_map(|line| line.strip_prefix("ctr T0 sent=16 rate="));
        let own: i64 = own.expect("all are sent").parse().expect("a number");
        // A machine that is busy may be late by an interval.
        assert!(own > 10, "{how:?}: {log}");
        assert_eq!((number(c, "sent"), number(c, "held")), (16, own), "{how:?}: {c}");
        let reason = c["verdict_reason"].as_str().expect("a reason");
        assert!(reason.contains(&format!("{own} of 16 writes were held")), "{how:?}: {reason}");
        let note = format!("channel `c`: {own} of 16 writes on host `a` were held");
        assert!(said_by_run.contains(&note), "{how:?}: {said_by_run}");
        assert_eq!(number(channel(&json, "back"), "held"), 0, "{how:?}");
        assert!(!said_by_run.contains("`back`: "), "{how:?}: {said_by_run}");
    }
}

// Due each 100 ms from 100 on. The fourth is late by 70 ms, the seventh by 330.
const STALLS: &str = "T c L back start sl 100000 w 0 sl 200000 w 0 sl 300000 w 0
    sl 470000 w 0 sl 500000 w 0 sl 600000 w 0 sl 1030000 loop 5 w 0 end ctr";
/// When its messages are captured, in milliseconds: in phase again after each.
const IN_PHASE: [i64; 11] = [100, 200, 300, 470, 500, 600, 1030, 1100, 1200, 1300, 1400];
// The first one is late, by 40 ms; and after another start, by 30.
const LATE_FIRST: &str = "T c L back start sl 140000 w 0 sl 200000 w 0 sl 300000 w 0 sl 400000 w 0
    xT T c sl 970000 w 0 sl 1040000 w 0 sl 1140000 w 0 sl 1240000 w 0";
/// None of them is held.
const AS_WRITTEN: [i64; 8] = [140, 200, 300, 400, 970, 1040, 1140, 1240];

/// How many messages came sooner than 100 ms after one that came late, but for the rate's
/// tolerance: in real time whatever a program wakes late by does that, too.
fn sooner_than_the_rate(captures: &[i64]) -> i64 {
    let (mut count, mut due) = (0, 0);
    for capture in captures {
        let is_early = *capture < due - 125_000;
        count += i64::from(is_early);
        due = if is_early { *capture } else { due.max(*capture) } + 100_000_000;
    }
    count
}

#[test]
fn a_talker_that_stalls_is_back_in_phase_within_two_periods_in_every_engine() {
    are_captured(STALLS, &IN_PHASE, 4);
}

#[test]
fn a_first_message_that_is_late_holds_none_after_it_in_every_engine() {
    are_captured(LATE_FIRST, &AS_WRITTEN, 0);
}

/// Two of the messages of such a talker catch up, and so many are held.
fn are_captured(talker: &str, at_ms: &[i64], held: i64) {
    let reader = format!("T back L c start loop {} r 0 end ctr", at_ms.len());
    let system = system(&slow_channels(&scripts(talker, &reader)));
    for how in engines() {
        let is_virtual = how.len() == 2;
        // In real time a machine may be late itself.
        let tolerance_ns = if is_virtual { 0 } else { 25_000_000 };
        let is_right = |_: &u32| {
            let json = results(&[how, &["--out", "out"]].concat(), system.path(), 0);
            let c = channel(&json, "c");
            let text = said(&system, "out/1-run/messages.csv");
            let captures = text.lines().filter(|line| line.starts_with("c,"));
            let captures: Vec<i64> = captures
                .map(|line| line.split(',').nth(3).expect("a capture").parse().expect("a time"))
                .collect();
            let pairs = captures.iter().zip(at_ms);
            let off = pairs.map(|(at, ms)| (at - ms * 1_000_000).abs()).max().expect("messages");
            let counts = ["sent", "received", "held", "caught_up"].map(|key| number(c, key));
            let reason = c["verdict_reason"].as_str().expect("a reason");
            let caught_up = sooner_than_the_rate(&captures);
            assert!(caught_up == 2 || !is_virtual, "{captures:?}");
            let all = (off <= tolerance_ns, captures.len(), counts);
            let is_said = reason.contains(&format!("; {caught_up} caught up after one that was"));
            let sent = at_ms.len();
            let is_right =
                is_said && all == (true, sent, [sent as i64, sent as i64, held, caught_up]);
            let got = format!("{captures:?}, {counts:?}, {reason}");
            assert!(is_right || !is_virtual, "{got}");
            if !is_right {
                eprintln!("{how:?}: {got}");
            }
            is_right
        };
        assert!((0..TRIES).any(|attempt| is_right(&attempt)), "{how:?}");
    }
}

// A deadline of 250 ms: silent from 300 ms to 900, then started again, then silent to the end.
const TALKS: &str = "T c start sl 100000 w 0 sl 200000 w 0 sl 300000 w 0 sl 900000 w 0
    sl 1000000 w 0 xT T c sl 1100000 w 0";
const WATCHES: &str = "L c start live 0 sel -1 tr 0 live 0 live 0 sel -1 tr 0 sel -1 tr 0
    sel -1 tr 0 live 0 sel -1 tr 0 live 0 sel -1 tr 0 sel -1 tr 0 live 0
    sel 1000000 tr 0 live 0 sel 100000 dl 0 0 live 0 sel 50000 dl 0 50000 sel -1 live 0 ctr";
const WATCHED: &str = "\
L OK\nstart OK\nlive state=0 changed=0 missed=0 restarts=0 second=0 last=0
sel OK 0\ntr OK v=1 seq=0 gap=0 fl=0
live state=1 changed=1 missed=0 restarts=0 second=0 last=1
live state=1 changed=0 missed=0 restarts=0 second=0 last=1
sel OK 0\ntr OK v=2 seq=1 gap=0 fl=0\nsel OK 0\ntr OK v=3 seq=2 gap=0 fl=0
sel OK 0\ntr EMPTY\nlive state=3 changed=2 missed=1 restarts=0 second=0 last=1
sel OK 0\ntr OK v=4 seq=3 gap=0 fl=0
live state=1 changed=2 missed=1 restarts=0 second=0 last=1
sel OK 0\ntr OK v=5 seq=4 gap=0 fl=0\nsel OK 0\ntr OK v=6 seq=0 gap=0 fl=0
live state=1 changed=8 missed=1 restarts=1 second=0 last=1
sel OK 0\ntr EMPTY\nlive state=3 changed=2 missed=2 restarts=1 second=0 last=1
sel TIMED_OUT 8\ndl OK\nlive state=1 changed=2 missed=2 restarts=1 second=0 last=1
sel TIMED_OUT 8\ndl OK\nsel OK 0\nlive state=3 changed=2 missed=3 restarts=1 second=0 last=1
ctr L0 received=6 lost=0 late=0 duplicate=0
";

#[test]
fn a_silent_and_a_restarted_talker_are_told_in_every_engine_and_in_its_results() {
    let text = slow_channels(&scripts(TALKS, WATCHES));
    let text = text.replacen("class = \"A\"", "deadline_us = 250000\nclass = \"A\"", 1);
    let system = system(&text);
    for how in engines() {
        let is_right = |_: &u32| {
            let json = results(how, system.path(), 0);
            let got = said(&system, "right.log");
            assert!(got == WATCHED || how.len() > 2, "{got}");
            if got != WATCHED {
                eprintln!("{how:?}: {got}");
                return false;
            }
            let c = channel(&json, "c");
            let silence = &c["listeners"][0]["silence"];
            assert_eq!(
                (number(silence, "deadline_ns"), number(silence, "missed")),
                (250_000_000, 2)
            );
            let [longest, from] = ["longest_ns", "longest_from_ns"].map(|key| number(silence, key));
            assert!(longest + from == 2_500_000_000 && from >= 1_100_000_000, "{how:?}: {silence}");
            let reason = c["verdict_reason"].as_str().expect("a reason");
            let told = "; `b` had no message within its deadline of 250 ms 2 times, for 1.3";
            let is_told = reason.contains(told);
            assert!(is_told || how.len() > 2, "{how:?}: {reason}");
            assert!(channel(&json, "back")["listeners"][0]["silence"].is_null());
            // A machine that was late by a tenth of a second has the last silence begin later.
            if !is_told {
                eprintln!("{how:?}: {reason}");
            }
            is_told
        };
        assert!((0..TRIES).any(|attempt| is_right(&attempt)), "{how:?}");
    }
}

// Of four messages two are 320 and 420 ms old when the reader comes, which is more than 300.
const AGES: &str = "T c start sl 100000 w 0 sl 200000 w 0 sl 300000 w 0 sl 400000 w 0";
const AGED: &str = "L c start sl 520000 tr 0 tr 0 tr 0 rl 0 sl 900000 rl 0
    lsp 0 100000 rl 0 lsp 0 0 rl 0 exp 0";
const OLD: &str = "\
L OK\nstart OK\nsl OK\ntr OK v=3 seq=2 gap=0 fl=0\ntr OK v=4 seq=3 gap=0 fl=0\ntr EMPTY
rl OK v=4 seq=3 gap=0 fl=64\nsl OK\nrl EMPTY\nlsp FAILED\nrl EMPTY\nlsp OK
rl OK v=4 seq=3 gap=0 fl=64\nexp received=4 expired=2
";

#[test]
fn messages_that_have_expired_are_not_handed_over_in_any_engine_and_are_in_its_results() {
    let text = slow_channels(&scripts(AGES, AGED));
    let given = "lifespan_us = 300000\nclass = \"A\"";
    let text = text.replacen("class = \"A\"", given, 1).replace("= 100000", "= 250000");
    let system = system(&text);
    for how in engines() {
        let is_right = |_: &u32| {
            let json = results(how, system.path(), 0);
            let got = said(&system, "right.log");
            assert!(got == OLD || how.len() > 2, "{got}");
            if got != OLD {
                eprintln!("{how:?}: {got}");
                return false;
            }
            let c = channel(&json, "c");
            let counts = ["sent", "received", "lost", "expired"].map(|key| number(c, key));
            assert_eq!(counts, [4, 4, 0, 2], "{how:?}");
            assert_eq!(number(&c["listeners"][0], "expired"), 2, "{how:?}");
            let reason = c["verdict_reason"].as_str().expect("a reason");
            let told = "; 2 messages had expired before a program came for them";
            assert!(reason.contains(told), "{how:?}: {reason}");
            assert!(channel(&json, "back")["expired"].is_null());
            true
        };
        assert!((0..TRIES).any(|attempt| is_right(&attempt)), "{how:?}");
    }
}

// Of 15 messages the link loses those of 400 to 700 ms; the clock is 5 ms ahead for those of 1,300
// to 1,500, which say that they are captured later than clocks allow.
const THROUGH_FAULTS: &str = "T c start sl 100000 w 0 sl 200000 w 0 sl 300000 loop 5 w 0 end
    sl 900000 w 0 sl 1000000 w 0 sl 1100000 w 0 sl 1300000 w 0 sl 1400000 w 0 sl 1500000 w 0
    sl 1700000 w 0 sl 1800000 w 0";
const FAULTS: &str = "[[fault]]\nlink = \"a\"\nfrom_ms = 350\nuntil_ms = 850\n[[fault]]
node = \"a\"\nclock_step_ns = 5_000_000\nfrom_ms = 1200\nuntil_ms = 1600\n";
/// What `sel -1 tr 0 live 0` says 14 times, with a deadline of 350 ms.
const TOLD: [&str; 14] = [
    "OK v=1 seq=0 gap=0 fl=0|1 changed=1 missed=0",
    "OK v=2 seq=1 gap=0 fl=0|1 changed=0 missed=0",
    "OK v=3 seq=2 gap=0 fl=0|1 changed=0 missed=0",
    "EMPTY|3 changed=2 missed=1",
    "OK v=8 seq=7 gap=4 fl=0|1 changed=2 missed=1",
    "OK v=9 seq=8 gap=0 fl=0|1 changed=0 missed=1",
    "OK v=10 seq=9 gap=0 fl=0|1 changed=0 missed=1",
    "EMPTY|1 changed=0 missed=1",
    "EMPTY|1 changed=0 missed=1",
    "EMPTY|3 changed=2 missed=2",
    "EMPTY|3 changed=0 missed=2",
    "OK v=14 seq=13 gap=3 fl=0|1 changed=2 missed=2",
    "OK v=15 seq=14 gap=0 fl=0|1 changed=0 missed=2",
    "EMPTY|3 changed=2 missed=3",
];

#[test]
fn what_a_link_that_fails_and_a_clock_that_steps_do_is_told_in_emulated_engines() {
    let reader = format!("L c start {}ctr", "sel -1 tr 0 live 0 ".repeat(TOLD.len()));
    let text = slow_channels(&(FAULTS.to_owned() + &scripts(THROUGH_FAULTS, &reader)));
    let text = text.replacen("class = \"A\"", "deadline_us = 350000\nclass = \"A\"", 1);
    let system = system(&text);
    let told = TOLD.map(|line| {
        let (read, live) = line.split_once('|').expect("both");
        format!("sel OK 0\ntr {read}\nlive state={live} restarts=0 second=0 last=1\n")
    });
    let counts = "ctr L0 received=8 lost=7 late=0 duplicate=0\n";
    let wanted = format!("L OK\nstart OK\n{}{counts}", told.concat());
    // Networks of the kernel have neither faults nor clocks of their own.
    for how in engines().filter(|how| !how.contains(&"netns")) {
        let is_right = |_: &u32| {
            let json = results(how, system.path(), 0);
            let got = said(&system, "right.log");
            assert!(got == wanted || how.len() > 2, "{got}");
            if got != wanted {
                eprintln!("{how:?}: {got}");
                return false;
            }
            let c = channel(&json, "c");
            let counts = ["sent", "received", "lost"].map(|key| number(c, key));
            assert_eq!((counts, number(&c["listeners"][0]["silence"], "missed")), ([15, 8, 7], 3));
            assert_eq!(c["verdict"], "not judged");
            let reason = c["verdict_reason"].as_str().expect("a reason");
            assert!(reason.contains("the clock of host a stepped"), "{how:?}: {reason}");
            true
        };
        assert!((0..TRIES).any(|attempt| is_right(&attempt)), "{how:?}");
    }
}

/// The fields of a line of [`SAMPLES`].
fn field(line: &str, name: &str) -> i64 {
    let found = line.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    found.and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("{name} in {line}"))
}

const SAMPLES: &str = "L c start times loop 4 slr 1000000 rl 0 end ctr";

/// A reader that samples a fast channel once a second.
fn samples() -> TestSystem {
    let text = two_hosts(&scripts("", SAMPLES))
        .replacen("rate_hz = 1000", "rate_hz = 2000", 1)
        .replace("duration_ms = 500", "duration_ms = 5000");
    // The talker is modelled: its message is its number.
    let (before, right) = text.split_once("[[program]]\nname = \"left\"").expect("a program");
    let (_, right) = right.split_once("[[program]]").expect("another");
    system(&format!("{before}[[program]]{right}"))
}

#[test]
fn the_latest_value_is_the_newest_in_every_engine_however_long_the_reader_was_away() {
    let system = samples();
    for how in engines().filter(|how| !how.contains(&"xdp")) {
        let results = results(how, system.path(), 0);
        let text = said(&system, "right.log");
        let samples: Vec<_> = text.lines().filter(|line| line.starts_with("rl")).collect();
        assert_eq!(samples.len(), 4, "{text}");
        for (second, line) in (1..).zip(&samples) {
            let (value, age) = (field(line, "v"), field(line, "age"));
            // The talker writes number n at n half milliseconds.
            // A busy machine may write them late, or hand them on late; the oldest that wait are
            // of half a second ago.
            let is_new = value >= 2_000 * second - 400 || age < 400_000_000;
            assert!(is_new, "{how:?}: {text}");
            assert!(age >= field(line, "latency") && age > 0, "{how:?}: {text}");
            if how.len() == 2 {
                assert!((value, age < 600_000) == (2_000 * second - 1, true), "{text}");
            }
        }
        counted(how, channel(&results, "c"), &text);
    }
}

/// What overflowed is lost, counted and reported.
fn counted(how: &[&str], c: &Value, text: &str) {
    assert_eq!(number(c, "received") + number(c, "lost"), number(c, "sent"), "{how:?} {c}");
    if how.contains(&"netns") {
        // The kernel holds more, and does not say what became of the rest.
        assert!(c["overflowed"].is_null() && c["verdict"] == "no promise", "{c}");
        return;
    }
    assert_eq!(c["overflowed"], c["lost"], "{how:?} {c}");
    // Of 2,000 messages a second 1,024 wait, at most.
    assert!(number(c, "lost") >= 4 * (2_000 - 1_024) - 10, "{how:?} {c} {text}");
    assert_eq!(c["verdict"], "not judged", "{c}");
    assert!(c["verdict_reason"].as_str().is_some_and(|why| why.contains("came too late")), "{c}");
    if how.len() == 2 {
        assert_eq!((number(c, "sent"), number(c, "lost")), (10_000, 4 * (2_000 - 1_024)), "{c}");
    }
}

#[test]
fn what_overflowed_is_named_in_notes_and_in_the_messages() {
    let system = samples();
    let output = run(&["run", "."], system.path(), 0);
    let notes = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(notes.contains("3904 messages of channel `c` arrived on host `b` and are lost"));
    assert!(notes.contains("2000 messages of channel `c` arrived on host `b` and were not read"));
    let text = said(&system, "out/1-run/messages.csv");
    let heading: Vec<&str> = text.lines().next().unwrap_or_default().split(',').collect();
    let column = |name: &str| heading.iter().position(|other| *other == name).expect("a column");
    let (arrive, lost) = (column("arrive_ns"), column("lost"));
    let lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let arrived = lines.filter(|line| line[lost] == "1" && !line[arrive].is_empty());
    assert_eq!(arrived.count(), 3_904);
}

#[test]
fn until_a_program_has_exited_nothing_else_goes_on() {
    let left = "start sl 1000 close pause 30000 note done exit 0";
    let description = two_hosts(&scripts(left, "start loop 30 slr 100 note x end"));
    let mut seen = Vec::new();
    for _ in 0..3 {
        let system = system(&description);
        run(&["run", "."], system.path(), 0);
        let notes = said(&system, "notes.log");
        assert_eq!(notes.lines().count(), 31, "{notes}");
        seen.push(notes.lines().position(|line| line == "left done").expect("a note"));
    }
    assert!(seen.iter().all(|at| *at == seen[0] && *at <= 10), "{seen:?}");
}

#[test]
fn how_a_program_exits_counts_as_soon_as_it_has_left_the_run() {
    let left = "start sl 1000 close pause 20000 exit 3";
    let system = system(&two_hosts(&scripts(left, "start loop 30 slr 100 note x end")));
    let output = run(&["run", "."], system.path(), 4);
    let notes = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(notes.contains("program `left` ended before the run did (exit status: 3)"), "{notes}");
    assert!(said(&system, "notes.log").lines().count() <= 10);
}

#[test]
fn who_asks_without_end_at_one_instant_is_named_not_who_asks_last() {
    let left = "start sl 5000 loop 1000000000 slr 0 end";
    let right = "L c start sl 5000 loop 2000 tr 0 end";
    let system = system(&two_hosts(&scripts(left, right)));
    let output = run(&["run", "."], system.path(), 4);
    let notes = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(notes.contains("program `left`") && notes.contains("without letting time"), "{notes}");
    let asked = said(&system, "left.log").lines().count();
    assert!(asked < 200_000, "named after {asked} requests");
    assert!(Path::new(&system.path().join("right.log")).is_file());
}

/// A frame has 32 bits of the time its value was captured: 4.29 s.
#[test]
fn a_message_that_waited_for_longer_than_its_capture_time_tells_is_the_one_that_was_written() {
    for forwarding_ns in [5_000_000_000_i64, 10_000_000_000] {
        let forwarding = format!("forwarding_ns = {forwarding_ns}\n");
        let text = two_hosts("").replace("forwarding_ns = 1000\n", &forwarding);
        let text = text.replace("rate_hz = 1000\n", "rate_hz = 1000\nreserve = false\n");
        let system = TestSystem::new(&text);
        let results = results(&["run", ".", "--duration", "100ms"], system.path(), 0);
        let c = channel(&results, "c");
        assert_eq!((number(c, "sent"), number(c, "received")), (100, 100), "{c}");
        assert_eq!((number(c, "lost"), number(c, "duplicated")), (0, 0), "{c}");
        let way = 2 * (76 * 80 + 100) + forwarding_ns;
        assert_eq!((number(c, "latency_ns.min"), number(c, "latency_ns.max")), (way, way));
    }
}

/// Of a listener that is opened late, or never, and selects until the end: what came before is not
/// lost, where that is known, and the end is no message.
#[test]
fn what_came_before_a_listener_was_opened_is_not_lost() {
    for how in engines() {
        let is_emulated = !how.contains(&"netns");
        for at_ms in ["0", "200", "-1"] {
            let text = two_hosts(&crate::common::programs("", at_ms));
            let system = TestSystem::new(&text);
            system.program("talker.c", "left").program("late.c", "right");
            let output = run(&[how, &["--json"]].concat(), system.path(), 0);
            let said = String::from_utf8_lossy(&output.stderr);
            let results: Value = serde_json::from_slice(&output.stdout).expect("JSON");
            let of = channel(&results, "c");
            let context = format!("{how:?} {at_ms}: {said} {of}");
            let told = said.lines().find(|line| line.contains("late: ")).expect("a line");
            assert!(told.ends_with(" 0 missing, status 1"), "{context}");
            assert!(number(of, "sent") > 0, "{context}");
            match is_emulated {
                true => assert_eq!(number(&of["listeners"][0], "lost"), 0, "{context}"),
                false if at_ms == "200" => {
                    assert!(said.contains("after the start: what was sent before"), "{context}");
                }
                false => {}
            }
            if how == ENGINES[0] {
                assert_eq!(
                    (&of["verdict"], number(of, "sent")),
                    (&"kept".into(), 500),
                    "{context}"
                );
            }
        }
    }
}

/// What keeps a program's waits short is the run's in a run: memory is locked from the start on,
/// in real time only, and idle states are left to the machine.
#[test]
fn in_a_run_memory_is_locked_in_real_time_only_and_idle_states_are_left_alone() {
    for how in engines() {
        let real = if how == ENGINES[0] { "0" } else { "1" };
        let program = "[[program]]\nname = \"right\"\nhost = \"b\"\ncommand = [\"build/right\", ";
        let text = two_hosts(&format!("{program}\"{real}\"]\n"));
        let system = TestSystem::new(&text);
        system.program("precautions.c", "right");
        let output = run(how, system.path(), 0);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!said.contains("does not hold"), "{how:?}: {said}");
    }
}
