//! Two programs that meet through two channels.

use crate::common::{TestSystem, programs, run, two_hosts};

const BACK: &str = r#"
[[channel]]
name = "back"
destination = "01:00:5e:00:00:02"
stream_id = 2
class = "A"
size_octets = 8
rate_hz = 1000
talker = "b"
listeners = ["a"]
"#;

/// Where a side was when it continued after each meeting.
fn meetings(system: &TestSystem, side: &str) -> Vec<i64> {
    let text = std::fs::read_to_string(system.path().join(side)).expect("what the program wrote");
    let meetings = text.lines().map(|line| {
        let (at, _error) = line.split_once(' ').expect("two numbers");
        at.parse().expect("a number")
    });
    meetings.collect()
}

fn meet(left: &str, right: &str, more: &str, arguments: &[&str]) -> (Vec<i64>, Vec<i64>) {
    // Short queues: what is delayed for longer than D cannot be met on time.
    let description = two_hosts(&format!("{BACK}{}{more}", programs(left, right)))
        .replace("name = \"s\"", "name = \"s\"\nqueue_frames = 6");
    let system = TestSystem::new(&description);
    system.program("meet.c", "left").program("meet.c", "right");
    run(&[&["run", "."], arguments].concat(), system.path(), 0);
    (meetings(&system, "left.txt"), meetings(&system, "right.txt"))
}

#[test]
fn both_sides_go_on_at_the_same_instant_in_every_round() {
    let (left, right) = meet("left0", "right0", "", &[]);
    assert!(left.len() > 80, "{} meetings", left.len());
    assert_eq!(left, right);
}

#[test]
fn the_side_that_is_there_first_waits_however_long_it_takes() {
    for (left, right) in [("left0", "right90000"), ("left200000", "right0"), ("left0", "right7000")]
    {
        let (left, right) = meet(left, right, "", &[]);
        assert!(left.len() > 50, "{} meetings", left.len());
        assert_eq!(left, right);
    }
}

/// Noise that overflows the bridge's queue, so that messages of both directions are lost.
const LOSSES: &str = r#"
[[host]]
name = "n"
[[host]]
name = "m"
[[link]]
ends = ["n", "s"]
rate_mbps = 1000
[[link]]
ends = ["m", "s"]
rate_mbps = 1000
[[noise]]
name = "to-b"
from = "n"
to = "b"
size_octets = 1470
frames_per_s = 12000
jitter = true
on_ms = 400
off_ms = 3000
[[noise]]
name = "to-a"
from = "m"
to = "a"
size_octets = 1470
frames_per_s = 12000
jitter = true
on_ms = 500
off_ms = 3000
"#;

#[test]
fn after_lost_messages_both_sides_meet_again() {
    let (left, right) = meet("left0", "right0", LOSSES, &["--unprotected", "--duration", "3s"]);
    let common = left.iter().filter(|at| right.contains(at)).count();
    assert!(common < left.len(), "nothing was lost");
    // The noise is over after half a second.
    let after = |side: &[i64]| -> Vec<i64> {
        side.iter().copied().filter(|at| *at > 520_000_000).collect()
    };
    assert!(after(&left).len() > 300, "{} meetings", after(&left).len());
    assert_eq!(after(&left), after(&right));
}
