//! Descriptions whose hosts and bridges reserve by protocol, through the command: what is refused,
//! and what modelled talkers do that wait for their reservations.

use crate::common::{TestSystem, channel, number, onbeat, results, two_hosts};

/// What a description with this channel says to a verb: its exit code, and its messages.
fn reserved_by_protocol(more: &str, verb: &str) -> (Option<i32>, String) {
    let text = two_hosts("").replace("hang_timeout_s = 2", "reservation = \"srp\"");
    let system = TestSystem::new(&text.replace("size_octets = 8", more));
    let output = onbeat().args([verb, "."]).current_dir(system.path()).output().expect("it runs");
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn where_hosts_and_bridges_reserve_only_too_little_bandwidth_lets_a_run_decide() {
    let large = "size_octets = 1400";
    for verb in ["check", "plan", "bounds"] {
        let (code, said) = reserved_by_protocol(large, verb);
        assert_eq!((code, said.contains("error[OB2001]")), (Some(1), true), "{verb}: {said}");
    }
    for verb in ["run", "simulate"] {
        let (code, said) = reserved_by_protocol(large, verb);
        assert_eq!((code, said.contains("warning[OB2001]")), (Some(0), true), "{verb}: {said}");
    }
    let bursts = "size_octets = 500\nburst_messages = 1000";
    for verb in ["check", "plan", "bounds", "run", "simulate"] {
        let (code, said) = reserved_by_protocol(bursts, verb);
        assert_eq!((code, said.contains("error[OB2003]")), (Some(1), true), "{verb}: {said}");
    }
}

/// Declarations are lost at the full queue before `b`, and made again by a timer: the way back is
/// ready after 300 ms.
const LATE_START: &str = r#"
format = 1
name = "x"
run = { duration_ms = 800, reservation = "srp" }
host = [{ name = "a" }, { name = "b" }, { name = "n" }]
bridge = [{ name = "s" }]
link = [
    { ends = ["a", "s"], rate_mbps = 1000 },
    { ends = ["s", "b"], rate_mbps = 100 },
    { ends = ["n", "s"], rate_mbps = 1000 },
]
noise = [{ name = "v", from = "n", to = "b", size_octets = 1472, rate_mbps = 200 }]
[[channel]]
name = "c"
destination = "01:00:5e:00:00:01"
stream_id = 1
talker = "a"
listeners = ["b"]
class = "A"
size_octets = 900
interval_ns = 1_000_000
phase_ns = 713_000
[[channel]]
name = "d"
destination = "01:00:5e:00:00:02"
stream_id = 2
talker = "b"
listeners = ["a"]
class = "A"
size_octets = 8
interval_ns = 1_000_000
"#;

#[test]
fn modelled_talkers_keep_their_phase_where_reservations_delay_the_start() {
    let system = TestSystem::new(LATE_START);
    let results = results(&["run", ".", "--out", "out"], system.path(), 0);
    let c = channel(&results, "c");
    assert_eq!((&c["verdict"], number(c, "caught_up")), (&"kept".into(), 0), "{c}");
    let messages = system.path().join("out/1-run/messages.csv");
    let messages = std::fs::read_to_string(messages).expect("the messages");
    let of_c = messages.lines().filter(|line| line.starts_with("c,"));
    let captures = of_c.map(|line| line.split(',').nth(3).expect("a time"));
    let captures: Vec<i64> = captures.map(|at| at.parse().expect("a number")).collect();
    assert!(captures.len() > 100 && captures[0] > 1_000_000, "{}", captures[0]);
    assert_eq!(captures.iter().find(|at| *at % 1_000_000 != 713_000), None);
}
