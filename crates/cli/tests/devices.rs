//! Devices through the command: each limit that a plan exceeds is refused with its code and place.

use crate::common::{TestSystem, results, run};

/// Two hosts at a bridge: a scheduled channel from `a` to `b`, or of another class. `device` has
/// the limits; `node` is that device.
fn system(limits: &str, node: &str, class: &str, more: &str) -> TestSystem {
    let mut text = format!(
        "format = 1\nname = \"test\"\nrun = {{ duration_ms = 50 }}\n\
         [[device]]\nname = \"d\"\n{limits}\n"
    );
    for (kind, name) in [("host", "a"), ("host", "b"), ("bridge", "s")] {
        text += &format!("[[{kind}]]\nname = \"{name}\"\n");
        text += if name == node { "device = \"d\"\n" } else { "" };
        text +=
            if name == "s" && more.contains("cut_through") { "cut_through = true\n" } else { "" };
    }
    for host in ["a", "b"] {
        text += &format!("[[link]]\nends = [\"{host}\", \"s.{host}\"]\nrate_mbps = 100\n");
    }
    text += &format!(
        "[[channel]]\nname = \"c\"\ndestination = \"91:e0:f0:00:fe:01\"\nstream_id = 1\n\
         class = \"{class}\"\nsize_octets = 64\ninterval_ns = 1_000_000\n\
         fixed_delay_us = 900\ntalker = \"a\"\nlisteners = [\"b\"]\n"
    );
    TestSystem::new(&format!("{text}{}\n", more.replace("cut_through", "")))
}

fn gates(entries: &[(u8, u64)], keys: &str) -> String {
    let entry = |(queue, ns): &(u8, u64)| format!("{{ open = [{queue}], interval_ns = {ns} }}");
    let entries: Vec<String> = entries.iter().map(entry).collect();
    let entries = entries.join(", ");
    format!("[[port]]\nname = \"s.a\"\ngates = [{{ {keys} entries = [{entries}] }}]")
}

#[test]
fn what_a_device_cannot_do_is_an_error_of_the_plan_that_says_what_it_can() {
    let two = [(7, 600_001), (1, 400_000)];
    let port = |keys: &str| format!("[[port]]\nname = \"s.b\"\n{keys}");
    let cases: &[(&str, &str, &str, String, &str)] = &[
        ("traffic_classes = 1", "a", "A", String::new(), "port a.p1 uses 2 traffic classes, and"),
        (
            "credit_based_shapers = 0",
            "s",
            "A",
            String::new(),
            "port s.b has 1 credit-based shapers",
        ),
        ("gates = false", "s", "A", gates(&two, ""), "port s.a has gates, and device `d` has none"),
        ("supported_list_max = 1", "s", "A", gates(&two, ""), "list of 2 entries, and device"),
        ("shared_list_max = 1", "s", "A", gates(&two, ""), "`s` has 2 entries in the gate control"),
        ("openings_max = 1", "s", "A", gates(&[(7, 9), (1, 9), (7, 9), (1, 9)], ""), "2 times in"),
        ("supported_cycle_max_ns = 1_000_000", "s", "A", gates(&two, ""), "a cycle of 1000001 ns"),
        (
            "supported_interval_max_ns = 600_000",
            "s",
            "A",
            gates(&two, ""),
            "takes at most 600000 ns",
        ),
        ("interval_min_ns = 400_001", "s", "A", gates(&two, ""), "takes at least 400001 ns"),
        ("tick_granularity_ns = 1_000", "s", "A", gates(&two, ""), "a time of 600001 ns in"),
        ("tick_granularity_ns = 3", "s", "A", gates(&[(7, 3)], "base_time_ns = 4,"), "of 4 ns in"),
        ("length_aware = true", "s", "A", gates(&two, "length_aware = false,"), "not length-aware"),
        ("length_aware = false", "a", "scheduled", String::new(), "port a.p1 has gates that are"),
        ("cut_through = false", "s", "A", "cut_through".to_owned(), "`s` cuts through, and"),
        ("preemption = false", "s", "A", port("preemptable = [1]"), "has preemptable queues"),
        ("asynchronous = false", "s", "A", port("asynchronous = [4]"), "asynchronous shaping, and"),
        ("gates = false", "s", "scheduled", String::new(), "device `d` of `s` has no gates"),
        ("base = \"i210\"", "a", "A", port("preemptable = [1]"), ""),
        ("base = \"i210\"", "s", "A", port("preemptable = [1]"), "device `d` has none"),
    ];
    for (limits, node, class, more, expected) in cases {
        let refused = system(limits, node, class, more);
        let code = i32::from(!expected.is_empty());
        let output = run(&["plan", "."], refused.path(), code);
        let said = String::from_utf8(output.stderr).expect("UTF-8");
        assert_eq!(said.contains("error[OB2018]"), !expected.is_empty(), "{limits}: {said}");
        assert!(said.contains(expected), "{limits}: {said}");
        // Also by `check`, and nothing is refused if nothing is known of the device.
        run(&["check", "."], refused.path(), code);
        run(&["plan", "."], system("", node, class, more).path(), 0);
    }
}

#[test]
fn a_schedule_that_no_device_takes_has_no_place_and_says_why() {
    let cases = [
        ("supported_list_max = 2", "of at most 2"),
        ("tick_granularity_ns = 7", "steps of 7 ns, of which its interval is no multiple"),
    ];
    for (limits, expected) in cases {
        let refused = system(limits, "s", "scheduled", "");
        let output = run(&["plan", "."], refused.path(), 1);
        let said = String::from_utf8(output.stderr).expect("UTF-8");
        assert!(said.contains("error[OB2002]") && said.contains(expected), "{limits}: {said}");
    }
}

#[test]
fn a_host_without_gates_is_planned_deployed_and_simulated_with_launch_times() {
    let limits = "base = \"i210\"\n";
    let launched = system(limits, "a", "scheduled", "");
    let plan = results(&["plan", "."], launched.path(), 0);
    let gates = |port: &str| {
        let ports = plan["ports"].as_array().expect("ports");
        let found = ports.iter().find(|it| it["port"] == port).expect("the port");
        found["gates"].as_array().map_or(0, Vec::len)
    };
    assert_eq!((gates("a.p1"), gates("s.b")), (0, 1), "{plan}");
    let simulated = results(&["simulate", "."], launched.path(), 0).to_string();
    assert!(simulated.contains(":\"kept\"") && !simulated.contains(":\"broken\""), "{simulated}");
    let output = run(&["plan", ".", "--deploy", "tables"], launched.path(), 0);
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(said.contains("`a` has no gates (device `d`): its programs keep the launch"), "{said}");
    let read = |file: &str| {
        std::fs::read_to_string(launched.path().join("tables").join(file)).expect("a file")
    };
    assert!(read("a.tc").contains(" etf clockid CLOCK_TAI delta "), "{}", read("a.tc"));
    let launch = &plan["channels"][0]["launch"];
    let [at, write] = ["at_ns", "write_ns"].map(|key| launch[key].as_i64().expect("a time"));
    let word = format!(" bare {at}:{}\n", (at - write).rem_euclid(1_000_000));
    assert!(read("a.channels").contains(&word), "{word}: {}", read("a.channels"));
    assert!(!read("b.channels").contains(&word) && !read("b.channels").contains("channels 3"));
    let written = |node: &str| {
        let path = launched.path().join("tables").join(format!("{node}.yang.xml"));
        std::fs::read_to_string(path).expect("a configuration")
    };
    assert!(!written("a").contains("<gate-enabled>true"), "{}", written("a"));
    assert!(written("s").contains("<gate-enabled>true"), "{}", written("s"));
}

#[test]
fn a_configuration_says_what_the_device_supports() {
    let limits = "supported_list_max = 77\nsupported_cycle_max_ns = 500_000_000\n\
                  supported_interval_max_ns = 250_000\n";
    let limited = system(limits, "s", "scheduled", "");
    run(&["plan", ".", "--deploy", "tables"], limited.path(), 0);
    let path = limited.path().join("tables/s.yang.xml");
    let written: String =
        std::fs::read_to_string(path).expect("a configuration").split_whitespace().collect();
    assert!(written.contains("<supported-list-max>77</supported-list-max>"), "{written}");
    let cycle = "<numerator>1</numerator><denominator>2</denominator></supported-cycle-max>";
    assert!(written.contains(cycle), "{written}");
    assert!(written.contains("<supported-interval-max>250000<"), "{written}");
    // A state of nearly 1 ms takes several entries.
    assert!(written.matches("<gate-control-entry>").count() >= 5, "{written}");
}
