//! The experiment of Austad and Mathisen 2023, section 4.4, and what its runs must show.

use crate::common::{self, TestSystem, channel, number, results};
use serde_json::Value;

fn flow<'a>(results: &'a Value, name: &str) -> &'a Value {
    let flows = results["runs"][0]["tcp"].as_array().expect("messages over TCP");
    flows.iter().find(|flow| flow["name"] == name).expect("the flow")
}

/// The wake-up delays of the example's hosts are at most this.
const WAKEUP_MAX: i64 = 37_430;
/// D, and `after` of the federation.
const AFTER: i64 = 2_000_000;

#[test]
fn under_noise_a_channel_keeps_its_instants_and_the_federation_is_late_by_far() {
    let system = TestSystem::example("06-lingua-franca");
    let results = results(&["run", ".", "--scenario", "noise"], system.path(), 0);
    let sensor = channel(&results, "sensor_data");
    assert_eq!(sensor["verdict"], "kept", "{sensor}");
    assert_eq!((number(sensor, "sent"), number(sensor, "received")), (3_000, 3_000));
    for nothing in ["lost", "late", "duplicated"] {
        assert_eq!(number(sensor, nothing), 0, "{nothing}");
    }
    let end_to_end = |of: &Value, figure: &str| number(of, &format!("end_to_end_ns.{figure}"));
    assert!(end_to_end(sensor, "stddev") <= 1_000, "{sensor}");
    assert!(end_to_end(sensor, "min") >= AFTER);
    assert!(end_to_end(sensor, "max") <= AFTER + WAKEUP_MAX, "{sensor}");
    // The end-to-end time is what the wake-up leaves of D: a second way to the same number.
    assert_eq!(
        end_to_end(sensor, "max") - AFTER,
        number(sensor, "wakeup_error_ns.listener.max"),
        "{sensor}"
    );

    let federation = flow(&results, "federation");
    assert_eq!((number(federation, "sent"), number(federation, "received")), (3_000, 3_000));
    assert_eq!(federation["verdict"], "no promise");
    assert_eq!(federation["bound_ns"], Value::Null);
    assert!(number(federation, "late") > 0 && number(federation, "timeouts") > 0, "{federation}");
    assert!(end_to_end(federation, "max") >= 10 * end_to_end(sensor, "max"), "{federation}");
    // A lost segment waits for the timer: 200 ms and a round trip.
    assert!(end_to_end(federation, "max") > 200_000_000, "{federation}");
    assert!(end_to_end(federation, "stddev") > 100 * end_to_end(sensor, "stddev"));
}

#[test]
fn on_an_idle_network_both_keep_their_instants_and_nagles_algorithm_costs_40_ms() {
    let system = TestSystem::example("06-lingua-franca");
    let results = results(&["run", ".", "--scenario", "idle"], system.path(), 0);
    let sensor = channel(&results, "sensor_data");
    assert_eq!(sensor["verdict"], "kept");
    let federation = flow(&results, "federation");
    for (of, name) in [(sensor, "channel"), (federation, "federation")] {
        assert_eq!((number(of, "sent"), number(of, "received")), (3_000, 3_000), "{name}");
        assert_eq!((number(of, "lost"), number(of, "late")), (0, 0), "{name}");
        assert!(number(of, "end_to_end_ns.max") <= AFTER + WAKEUP_MAX, "{name}: {of}");
    }
    assert_eq!((number(federation, "retransmitted"), number(federation, "segments")), (0, 6_000));
    // Its lag is at most 335 µs, and its host's wake-up delay at least 11 µs.
    assert!(number(federation, "end_to_end_ns.min") >= AFTER - 335_000, "{federation}");
    // Two segments a message, of which the first 16 are acknowledged at once.
    let slow = flow(&results, "federation-nagle");
    assert_eq!((number(slow, "received"), number(slow, "late")), (3_000, 2_992));
    assert!(number(slow, "latency_ns.p50") > 40_000_000, "{slow}");
    assert!(number(slow, "latency_ns.max") < 41_000_000, "{slow}");
}

#[test]
fn the_page_shows_the_papers_tables_and_its_figure_beside_what_was_measured() {
    let system = TestSystem::example("06-lingua-franca");
    let arguments = ["run", ".", "--all-scenarios", "--duration", "20s"];
    let results = results(&arguments, system.path(), 0);
    let page = std::fs::read_to_string(system.path().join("out/report.html")).expect("the page");
    for text in [
        "Austad and Mathisen 2023, Table 2, federated LF, idle [1]",
        "Austad and Mathisen 2023, Table 2, net_chan LF, noise [2]",
        "Austad and Mathisen 2023, Table 1, PTP, net_chan LF [3]",
        "207551.63",
        "2.3 %",
        "federation: end to end over time",
        "sensor_data: end to end over time",
        "moving average of 100",
    ] {
        assert!(page.contains(text), "{text}");
    }
    // Two runs of one channel and two flows.
    assert_eq!(page.matches("<svg class=\"endtoend\"").count(), 6);
    let runs = results["runs"].as_array().expect("runs");
    assert_eq!(runs.len(), 2);
    assert!(runs.iter().all(|run| !run["clocks"].as_array().expect("clocks").is_empty()));
    // The CSV has each message of the flows, with its end-to-end time.
    let csv = std::fs::read_to_string(system.path().join("out/2-noise/messages.csv")).expect("CSV");
    assert_eq!(csv.lines().filter(|line| line.starts_with("federation,listener,")).count(), 200);
    // The page again, from the records alone.
    common::run(&["report", "."], system.path(), 0);
    let again = std::fs::read_to_string(system.path().join("out/report.html")).expect("the page");
    assert_eq!(again, page);
}

/// As the other examples' records. `ONBEAT_UPDATE=1` rewrites it.
#[test]
fn the_records_are_the_same_on_every_machine() {
    let system = TestSystem::example("06-lingua-franca");
    let results = results(&["run", ".", "--duration", "20s"], system.path(), 0);
    let found = format!("{}\n", results["runs"][0]["record_hash"].as_str().expect("a hash"));
    let path = common::root().join("examples/06-lingua-franca/expected-20s.sha256");
    if std::env::var_os("ONBEAT_UPDATE").is_some() {
        std::fs::write(&path, &found).expect("written");
    }
    assert_eq!(std::fs::read_to_string(&path).expect("a hash"), found);
}
