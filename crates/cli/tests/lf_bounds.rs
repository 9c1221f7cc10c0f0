//! `onbeat lf bounds`: its figures against sums done by hand, its verdicts, its exit codes.

use crate::common::run;
use serde_json::Value;

/// A sensor at 100 Hz and a logic on two stations, class A: D is 2 ms, clocks are exact.
fn model(wait: &str, after: &str, wcet: &str) -> String {
    format!(
        "target C {{ coordination: decentralized, timeout: 1 sec }}
reactor Sensor {{
  output out: int
  timer t(0, 10 ms)
  {wcet}
  reaction(t) -> out {{= =}}
}}
reactor Logic {{
  input in: int
  // @wcet(min = 20 us, max = 50 us)
  reaction(in) {{= =}}
}}
federated reactor {{
  s = new Sensor() at left
  {wait}
  l = new Logic() at right
  s.out -> l.in {after}
}}
"
    )
}

const WCET: &str = "// @wcet(min = 10 us, max = 100 us)";

fn bounds(model: &str, code: i32) -> Value {
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::write(directory.path().join("model.lf"), model).expect("written");
    let output = run(&["lf", "bounds", "model.lf", "--json"], directory.path(), code);
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn a_wait_is_the_sum_of_execution_delay_and_clock_error_less_after() {
    let found = bounds(&model("", "", WCET), 0);
    let [sensor, logic] = [0, 1].map(|at| &found["federates"][at]);
    assert_eq!(
        (&sensor["verdict"], &logic["verdict"]),
        (&"no inputs".into(), &"not in the model".into())
    );
    // W is 100 µs, L is D.
    assert_eq!(logic["maxwait_ns"], 2_100_000);
    let chain = &found["chains"][0];
    assert_eq!(chain["reactions"], serde_json::json!(["s.reaction_1", "l.reaction_1"]));
    assert_eq!(chain["worst_ns"], 2_150_000);
    let after = bounds(&model("", "after 2 ms", WCET), 0);
    assert_eq!(after["federates"][1]["maxwait_ns"], 100_000);
    assert_eq!(bounds(&model("", "after 3 ms", WCET), 0)["federates"][1]["maxwait_ns"], 0);
}

#[test]
fn a_wait_of_the_model_is_judged_to_the_nanosecond() {
    for (wait, verdict, margin, code) in [
        ("@maxwait(2100 us)", "safe", 0, 0),
        ("@maxwait(2099999 ns)", "unsafe", -1, 3),
        ("@maxwait(1 ms)", "unsafe", -1_100_000, 3),
        ("@maxwait(3 ms)", "safe", 900_000, 0),
    ] {
        let found = bounds(&model(wait, "", WCET), code);
        let logic = &found["federates"][1];
        assert_eq!(
            (&logic["verdict"], &logic["margin_ns"]),
            (&verdict.into(), &margin.into()),
            "{wait}"
        );
    }
    let found = bounds(&model("@maxwait(forever)", "", WCET), 0);
    assert_eq!(found["federates"][1]["verdict"], "forever");
    // The program does not have what a comment says.
    let found = bounds(&model("// @maxwait(3 ms)", "", WCET), 0);
    assert_eq!(found["federates"][1]["verdict"], "not in the model");
    let found = bounds(&model("@maxwait(1 ms) // @maxwait(3 ms)", "", WCET), 3);
    assert_eq!(found["federates"][1]["margin_ns"], -1_100_000);
}

#[test]
fn what_is_not_known_is_null_with_its_reason_and_never_safe() {
    let found = bounds(&model("@maxwait(5 ms)", "", ""), 6);
    let logic = &found["federates"][1];
    assert_eq!(logic["verdict"], "unknown");
    assert!(logic["maxwait_ns"].is_null());
    let reason = logic["unknown"]["maxwait_ns"].as_str().expect("a reason");
    assert!(reason.contains("s.reaction_1") && reason.contains("execution time"), "{reason}");
    assert!(found["chains"][0]["worst_ns"].is_null());
}

#[test]
fn the_table_says_the_attribute_to_write_and_what_is_too_short() {
    let directory = tempfile::tempdir().expect("a directory");
    let text = model("@maxwait(1 ms)", "", WCET);
    std::fs::write(directory.path().join("model.lf"), text).expect("written");
    let output = run(&["lf", "bounds", "model.lf"], directory.path(), 3);
    let said = String::from_utf8(output.stdout).expect("UTF-8");
    for wanted in ["@maxwait(2100 us)", "@maxwait(1 ms)", "UNSAFE", "s.reaction_1 → l.reaction_1"]
    {
        assert!(said.contains(wanted), "{wanted}: {said}");
    }
    run(&["lf", "bounds", "nowhere.lf"], directory.path(), 5);
}

#[test]
fn federates_that_wait_for_each_other_are_named_with_the_after_that_breaks_it() {
    let text = "target C { coordination: decentralized, timeout: 1 sec }
reactor A {
  input in: int
  output out: int
  timer t(0, 10 ms)
  // @wcet(min = 10 us, max = 10 us)
  reaction(t) -> out {= =}
  // @wcet(min = 10 us, max = 10 us)
  reaction(in) {= =}
}
federated reactor {
  a = new A() at left
  b = new A() at right
  a.out -> b.in
  b.out -> a.in
}
";
    let found = bounds(text, 6);
    let cycle = &found["cycles"][0];
    assert_eq!(cycle["connections"].as_array().expect("names").len(), 2);
    let after = cycle["after_ns"][0].as_i64().expect("a time");
    let broken = text.replace("a.out -> b.in", &format!("a.out -> b.in after {after} ns"));
    assert_eq!(bounds(&broken, 0)["cycles"], serde_json::json!([]));
    let short = text.replace("a.out -> b.in", &format!("a.out -> b.in after {} ns", after - 1));
    assert_ne!(bounds(&short, 6)["cycles"], serde_json::json!([]));
}

/// A logic that may wait for `wait` and must start by `deadline`.
fn with_deadline(wait: &str, deadline: &str) -> String {
    let logic = format!("reaction(in) {{= =}} deadline({deadline}) {{= =}}");
    let text = model(wait, "", WCET).replace("reaction(in) {= =}", &logic);
    // Without a message the wait passes.
    text.replace("  input in: int\n", "  input in: int\n  timer t(0, 10 ms)\n")
        .replace("reaction(in)", "reaction(in, t)")
}

#[test]
fn a_deadline_that_the_models_own_wait_misses_is_never_reported_as_met() {
    let directory = tempfile::tempdir().expect("a directory");
    let check = |wait: &str, deadline: &str, flags: &[&str], code: i32| {
        std::fs::write(directory.path().join("model.lf"), with_deadline(wait, deadline))
            .expect("written");
        let arguments = [&["lf", "bounds", "model.lf"][..], flags].concat();
        let output = run(&arguments, directory.path(), code);
        [output.stdout, output.stderr].map(|text| String::from_utf8(text).expect("UTF-8"))
    };
    // The message comes 2.1 ms after the tag; with a longer wait, a missing one delays more.
    let [table, _] = check("@maxwait(2100 us)", "2100 us", &[], 0);
    assert!(table.contains("met, 0 ns to spare"), "{table}");
    let [table, said] = check("@maxwait(5 ms)", "3 ms", &[], 3);
    assert!(table.contains("met, 900 µs to spare"), "{table}");
    assert!(said.contains("with the model's waits, l.reaction_1 may start 2 ms after"), "{said}");
    let [table, _] = check("@maxwait(5 ms)", "3 ms", &["--maxwait", "model"], 3);
    assert!(table.contains("MISSED by up to 2 ms"), "{table}");
    assert!(table.contains("5.05 ms"), "{table}");
    check("@maxwait(5 ms)", "5 ms", &[], 0);
}

#[test]
fn a_declared_rate_below_what_the_timers_send_is_reported() {
    let directory = tempfile::tempdir().expect("a directory");
    for (note, is_slow) in [
        ("interval = 10 ms", false),
        ("interval = 5 ms", false),
        ("interval = 10000001 ns", true),
        ("interval = 20 ms, burst = 2", true),
    ] {
        let text = model("", "", WCET)
            .replace("  s.out ->", &format!("  // @channel({note})\n  s.out ->"));
        std::fs::write(directory.path().join("model.lf"), text).expect("written");
        let output = run(&["lf", "bounds", "model.lf"], directory.path(), 0);
        let said = String::from_utf8(output.stderr).expect("UTF-8");
        assert_eq!(said.contains("OB1521"), is_slow, "{note}: {said}");
    }
}
