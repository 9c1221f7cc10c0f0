//! The machine that the tests run on: whatever it is like, looking at it works and leaves it as it
//! was.

use crate::doctor::facts::{Fact, Facts};
use crate::doctor::{State, evaluate};
use onbeat_run::machine::Machine;

/// Settings that a careless look could change.
const SETTINGS: [&str; 6] = [
    "/proc/sys/kernel/sched_rt_runtime_us",
    "/proc/self/status",
    "/proc/irq/default_smp_affinity",
    "/proc/self/cgroup",
    "/proc/self/mounts",
    "/proc/self/net/dev_mcast",
];

fn settings() -> Vec<Option<String>> {
    let machine = Machine::this();
    let of = |path: &&str| {
        let text = machine.read(path).ok()?;
        let kept = text.lines().filter(|line| !path.ends_with("status") || line.starts_with("C"));
        Some(kept.collect::<Vec<_>>().join("\n"))
    };
    SETTINGS.iter().map(of).collect()
}

#[test]
fn it_is_looked_at_without_a_change_and_written_down_and_read_again() {
    let before = settings();
    let own = std::process::id();
    let facts = Facts::collect(&Machine::this(), Some(own));
    assert_eq!(settings(), before);
    assert!(facts.kernel.release.known().is_some());
    assert!(facts.tasks.iter().any(|task| task.pid == own), "this test is a thread");
    let Some(Fact::Known(process)) = &facts.process else { panic!("{:?}", facts.process) };
    assert_eq!(process.pid, own);
    let calls = facts.calls.known().expect("this machine can be asked");
    assert!(calls.reading_ns > 0 && calls.kernel_clock.known().is_some());
    let again = Facts::from_json(&facts.to_json()).expect("what was written is read");
    assert_eq!(again, facts);
    assert!(evaluate(&facts, None).iter().all(|finding| finding.state != State::Blocks));
}

#[test]
fn other_files_are_refused_as_facts() {
    let facts = Facts::collect(&Machine::below("/nowhere"), None);
    assert!(Facts::from_json("{}").is_err());
    let other = facts.to_json().replace("\"onbeat-facts\"", "\"else\"");
    let error = Facts::from_json(&other).unwrap_err().to_string();
    assert_eq!(error, "format `else`, version 1, is not `onbeat-facts`, version 1");
}

#[test]
fn a_machine_without_any_file_is_unknown_not_wrong() {
    let facts = Facts::collect(&Machine::below("/nowhere"), Some(1));
    for finding in evaluate(&facts, None) {
        assert_ne!(finding.state, State::Blocks, "{finding:?}");
    }
}
