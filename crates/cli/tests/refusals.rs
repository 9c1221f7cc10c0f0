//! What a channel refuses: a forked child of the process whose end it is, messages from the future
//! and messages of a second talker.

use crate::common::{
    TestSystem, channel, number, onbeat, permitted, programs, results, run, two_hosts,
};
use serde_json::Value;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

#[test]
fn a_forked_child_is_refused_its_parents_channels_and_disturbs_nothing() {
    let system = TestSystem::new(&two_hosts(&programs("talk", "listen")));
    system.program("fork.c", "left").program("fork.c", "right");
    let kernel = permitted();
    for how in [
        &["run", "."][..],
        &["run", ".", "--time", "real"],
        &["run", ".", "--network", "netns"],
        &["run", ".", "--network", "netns", "--transport", "udp4"],
    ] {
        if how.contains(&"netns") && !kernel {
            continue;
        }
        // The programs end with an error where a child is not refused or a message is missing.
        let results = results(how, system.path(), 0);
        let c = channel(&results, "c");
        assert_eq!((number(c, "lost"), number(c, "duplicated")), (0, 0), "{how:?} {c}");
        assert_eq!(number(c, "received"), number(c, "sent"), "{how:?} {c}");
        if how.len() == 2 {
            assert_eq!((&c["verdict"], number(c, "sent") >= 500), (&"kept".into(), true), "{c}");
        }
    }
}

/// The listener of the run in this directory as `onbeat stat` shows it.
fn listener(system: &TestSystem) -> Option<Value> {
    let output = run(&["stat", "--json", "--channel", "c"], Path::new("/"), 0);
    let all: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let home = system.path().canonicalize().expect("the directory");
    let of_this_run = |end: &&Value| {
        let place = std::fs::read_link(format!("/proc/{}/cwd", end["pid"]));
        end["program"] == "right" && place.is_ok_and(|place| place.starts_with(&home))
    };
    all["ends"].as_array()?.iter().find(of_this_run).cloned()
}

#[test]
#[expect(clippy::disallowed_methods, reason = "between looks at another process, not measured")]
fn messages_from_the_future_and_of_a_second_talker_are_rejected_counted_and_named() {
    if !permitted() {
        return;
    }
    let system = TestSystem::new(&two_hosts(&programs("talk", "listen")));
    system.program("forge.c", "left").program("forge.c", "right");
    let child = onbeat()
        .args(["run", ".", "--network", "netns", "--duration", "3s", "--json"])
        .current_dir(system.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("onbeat runs");
    // While the run continues, `stat` shows them.
    let mut seen = None;
    for _ in 0..200 {
        seen = listener(&system).filter(|end| number(end, "rejected.talker") > 0);
        if seen.is_some() {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let output = child.wait_with_output().expect("its end");
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!(output.status.code(), Some(0), "{said}");
    let seen = seen.unwrap_or_else(|| panic!("stat never shows the second talker: {said}"));
    assert_eq!(seen["other_talker"], "02:00:00:00:0b:ad", "{seen}");
    assert!(number(&seen, "rejected.future") > 0, "{seen}");
    // Of both kinds one was sent after every twentieth message.
    let results: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let c = channel(&results, "c");
    let forged = number(c, "sent") / 20;
    let text = std::fs::read_to_string(system.path().join("forged.log")).expect("a log");
    let counted: Vec<i64> = text.split_whitespace().map(|n| n.parse().expect("a number")).collect();
    let [future, talker, lost, longest_ns] = counted[..] else { panic!("{text}") };
    // Those at the very end may have come when nobody read any more.
    assert!(future > 10 && (forged - 1..=forged).contains(&future), "{future} of {forged}: {c}");
    assert!(talker > 10 && (forged - 1..=forged).contains(&talker), "{talker} of {forged}: {c}");
    assert_eq!((lost, number(c, "lost"), number(c, "duplicated")), (0, 0, 0), "{c}");
    assert!(longest_ns < 500_000_000, "a reader waited for {longest_ns} ns");
    for note in [
        format!(
            "channel `c` has another talker, 02:00:00:00:0b:ad: host `b` dropped {talker} of its \
             messages"
        ),
        format!(
            "host `b` dropped {future} messages of channel `c` that say they were captured later \
             than the clocks allow"
        ),
    ] {
        assert!(said.contains(&note), "{note} in {said}");
    }
}
