//! A day of virtual time: the 32 bits of a capture time that a frame carries wrap every 4.29 s, and
//! every capture time must come out right, whoever the ends are and however their clocks differ.

use crate::common::{TestSystem, channel, number, results, two_hosts};
use std::fs::File;
use std::io::{BufRead, BufReader};

const DAY_NS: i64 = 24 * 3_600 * 1_000_000_000;
const WRAP_NS: i64 = 1 << 32;

/// Two hosts for a day, a message each `interval_ns`.
fn description(interval_ns: i64, extra: &str) -> String {
    two_hosts(extra)
        .replace("duration_ms = 500\nhang_timeout_s = 2", "duration_s = 86400")
        .replace("rate_hz = 1000", &format!("interval_ns = {interval_ns}"))
}

/// Runs for a day and looks at every record of either end; how many messages there were.
fn a_day_of_messages(system: &TestSystem, interval_ns: i64) -> i64 {
    let results = results(&["run", "."], system.path(), 0);
    let c = channel(&results, "c");
    let messages = DAY_NS / interval_ns + 1;
    assert_eq!((number(c, "sent"), number(c, "received")), (messages, messages));
    for nothing in ["lost", "late", "duplicated", "unrecorded"] {
        assert_eq!(number(c, nothing), 0, "{nothing}");
    }

    // A line joins the records of both ends whose capture times are the same.
    let file = File::open(system.path().join("out/1-run/messages.csv")).expect("messages.csv");
    let mut lines = BufReader::new(file).lines().map(|line| line.expect("a line"));
    let heading = lines.next().expect("a heading");
    let column = |name| heading.split(',').position(|c| c == name).expect("the column");
    let (capture, receive) = (column("capture_ns"), column("receive_ns"));
    let mut wraps = vec![false; (DAY_NS / WRAP_NS) as usize];
    let mut next = 0;
    for line in lines {
        let cells: Vec<&str> = line.split(',').collect();
        let at: i64 = cells[capture].parse().expect("a capture time");
        assert_eq!(at, next * interval_ns);
        assert!(cells[receive].parse::<i64>().is_ok(), "message {next} was not received");
        if let Some(wrap) = wraps.get_mut((at / WRAP_NS) as usize) {
            *wrap = true;
        }
        next += 1;
    }
    assert_eq!(next, messages);
    assert_eq!(wraps.len(), 20_116);
    assert!(wraps.iter().all(|wrap| *wrap), "a message between any two wraps");
    messages
}

#[test]
fn modelled_ends_keep_their_capture_times_across_every_wrap_of_a_day() {
    // Ten a second, at instants that move slowly over the wraps.
    let interval_ns = 99_999_989;
    let system = TestSystem::new(&description(interval_ns, ""));
    assert_eq!(a_day_of_messages(&system, interval_ns), 864_001);
}

#[test]
fn programs_keep_their_capture_times_across_every_wrap_of_a_day_with_clocks_apart() {
    // The listener's clock starts half a second behind, so that messages come from its future,
    // and is half a second ahead after the day.
    let interval_ns = 1_999_999_973;
    let command = |name: &str, host: &str, role: &str| {
        format!(
            "[[program]]\nname = \"{name}\"\nhost = \"{host}\"\n\
             command = [\"build/day\", \"{role}\", \"{interval_ns}\"]\n"
        )
    };
    let programs = command("left", "a", "talk") + &command("right", "b", "listen");
    let text = description(interval_ns, &programs)
        .replace(
            "name = \"b\"\n[[bridge]]",
            "name = \"b\"\nclock = { offset_ns = -500_000_000, drift_ppb = 11_574 }\n[[bridge]]",
        )
        .replace("class = \"A\"", "class = \"A\"\nfixed_delay_us = 600_000");
    assert!(text.contains("drift_ppb") && text.contains("fixed_delay_us"));
    let system = TestSystem::new(&text);
    system.program("day.c", "day");
    assert_eq!(a_day_of_messages(&system, interval_ns), 43_201);
}
