//! `onbeat run --verify`: what programs take from elsewhere than the library is noticed and named.

use crate::common::{self, TestSystem, programs, results, run, two_hosts};
use onbeat_testkit::root;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

/// One program takes something, another nothing.
fn takes(what: &str) -> TestSystem {
    let system = TestSystem::new(&two_hosts(&programs(what, "read")));
    system.program("outside.c", "left").program("listener.c", "right");
    system
}

/// What was noticed of the programs of a run.
fn noticed(system: &TestSystem, expected: i32) -> Vec<Value> {
    let results = results(&["run", ".", "--verify"], system.path(), expected);
    let verification = &results["runs"][0]["verification"];
    verification["programs"].as_array().expect("programs").clone()
}

fn said(system: &TestSystem, expected: i32) -> String {
    let output = run(&["run", ".", "--verify"], system.path(), expected);
    String::from_utf8(output.stderr).expect("UTF-8")
}

#[test]
fn each_use_is_named_once_with_its_place_its_count_and_its_instant() {
    let uses = [
        ("clock", "clock", "clock_gettime", "use_clock"),
        ("wait", "wait", "nanosleep", "use_wait"),
        ("random", "randomness", "getrandom", "use_random"),
        ("device", "randomness", "open", "use_device"),
        ("thread", "thread", "pthread_create", "use_thread"),
        ("fork", "process", "fork", "use_fork"),
        ("vfork", "process", "vfork", "use_vfork"),
        ("spawn", "process", "posix_spawnp", "use_spawn"),
    ];
    for (way, kind, function, from) in uses {
        let found = noticed(&takes(way), 0);
        let left = &found[0];
        assert_eq!((&left["program"], &left["unknown"]), (&json!("left"), &Value::Null), "{left}");
        let calls = left["calls"].as_array().expect("known");
        assert_eq!(calls.len(), 1, "{left}");
        let call = &calls[0];
        assert_eq!((&call["kind"], &call["function"]), (&json!(kind), &json!(function)));
        assert_eq!((&call["object"], &call["own"]), (&json!("build/left"), &json!(true)));
        let symbol = call["symbol"].as_str().expect("the file has symbols");
        assert!(symbol.starts_with(&format!("{from}+0x")), "{call}");
        let count = (&call["calls"], &call["first_ns"], &call["thread"], &call["in_run"]);
        assert_eq!(count, (&json!(3), &json!(1_000_000), &json!(0), &json!(true)), "{call}");
        assert_eq!(found[1]["calls"], json!([]), "{}", found[1]);
    }
}

/// Own threads are not plain ones; what comes when nothing can be written any more has no effect.
#[test]
fn a_program_that_takes_all_from_the_library_has_no_notice() {
    let system = takes("none");
    assert_eq!(noticed(&system, 0)[0]["calls"], json!([]));
    let said = said(&system, 0);
    assert!(said.contains("onbeat: nothing was noticed that programs take from els"), "{said}");
}

#[test]
fn what_a_program_itself_reads_before_it_joins_is_told_as_such() {
    let system = takes("before");
    let calls = &noticed(&system, 0)[0]["calls"];
    assert_eq!(calls.as_array().map(Vec::len), Some(1), "{calls}");
    let call = &calls[0];
    assert_eq!((&call["in_run"], &call["first_ns"]), (&json!(false), &Value::Null), "{call}");
    let said = said(&system, 0);
    let line = "the machine's clock: clock_gettime once, before onbeat_open (thread 0), from use_";
    assert!(said.contains(line), "{said}");
}

#[test]
fn a_killed_program_leaves_its_notices() {
    let calls = &noticed(&takes("die"), 4)[0]["calls"];
    assert_eq!((&calls[0]["function"], &calls[0]["calls"]), (&json!("clock_gettime"), &json!(1)));
}

#[test]
fn nothing_is_preloaded_without_verify() {
    let system = takes("alone");
    run(&["run", "."], system.path(), 0);
    let said = said(&system, 4);
    assert!(said.contains("does not hold: !getenv(\"ONBEAT_NOTICES\")"), "{said}");
}

#[test]
fn of_a_program_that_differs_what_it_took_is_named_as_the_probable_cause() {
    let system = TestSystem::new(&two_hosts(&programs("clock\", \"1", "read\", \"1")));
    let text = std::fs::read_to_string(system.path().join("system.toml")).expect("system.toml");
    let text = text.replace("name = \"c\"", "name = \"c0\"");
    std::fs::write(system.path().join("system.toml"), text).expect("written");
    system.program("turns.c", "left").program("turns.c", "right");
    let said = said(&system, 3);
    let differs = said.find("the second time it differs at 100 ms").expect("a difference");
    let cause = "onbeat: the probable cause: program `left` takes from elsewhere than Onbeat\n  \
                 the machine's clock: clock_gettime once, at 100 ms (thread 0), from ";
    let cause = said.find(cause).unwrap_or_else(|| panic!("{said}"));
    assert!(differs < cause, "{said}");
}

#[test]
fn of_a_static_program_it_is_unknown_with_the_reason() {
    let system = takes("clock");
    let built = Command::new("cc")
        .args(["-std=c11", "-static", "-w", "-I"])
        .arg(root().join("crates/capi/include"))
        .arg(root().join("crates/cli/tests/programs/outside.c"))
        .arg(common::library())
        .args(["-lpthread", "-ldl", "-lm", "-o"])
        .arg(system.path().join("build/left"))
        .output()
        .expect("a C compiler");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let found = noticed(&system, 0);
    assert_eq!((&found[0]["calls"], &found[1]["calls"]), (&Value::Null, &json!([])));
    let said = said(&system, 0);
    let unknown =
        "onbeat: what program `left` takes from elsewhere is unknown: it is linked static";
    assert!(said.contains(unknown), "{said}");
}

/// An interpreter reads clock and randomness when it starts, and a shell starts the program.
#[test]
fn programs_of_interpreters_and_scripts_have_none_that_are_not_theirs() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/listener.py");
    let library = common::library().with_extension("so");
    let python = format!("\"python3\", \"{}\", \"{}\"", script.display(), library.display());
    let text = two_hosts(&programs("", ""))
        .replace("\"build/right\", \"\"", &python)
        .replace("\"build/left\"", "\"sh\", \"-c\", \"exec build/left $0\"")
        .replace("hang_timeout_s = 2", "hang_timeout_s = 20");
    let system = TestSystem::new(&text);
    system.program("talker.c", "left");
    for program in noticed(&system, 0) {
        let known = (&program["unknown"], &program["calls"]);
        assert_eq!(known, (&Value::Null, &json!([])), "{program}");
    }
    // What Python does for a program is told, with whose code it is.
    let text = std::fs::read_to_string(&script).expect("the script");
    let (before, after) = ("while (status", "import time\ntime.time()\nwhile (status");
    std::fs::write(system.path().join("time.py"), text.replace(before, after)).expect("written");
    let description = system.path().join("system.toml");
    let text = std::fs::read_to_string(&description).expect("system.toml");
    let text = text.replace(&script.display().to_string(), "time.py");
    std::fs::write(description, text).expect("written");
    let calls = noticed(&system, 0)[1]["calls"].as_array().expect("known").clone();
    let reads = |call: &&Value| call["kind"] == "clock" && call["first_ns"] == 0;
    let read = calls.iter().find(reads).unwrap_or_else(|| panic!("{calls:?}"));
    assert_eq!((&read["own"], &read["thread"]), (&json!(false), &json!(1)), "{read}");
}

#[test]
fn programs_of_examples_also_in_timed_c_have_none() {
    let in_timed_c = "02-federated-timed-c";
    for name in ["01-two-hosts", in_timed_c, "03-robot-arm"] {
        let system = match name == in_timed_c {
            false => TestSystem::example(name),
            true => copy_of(name),
        };
        let arguments = ["run", ".", "--verify", "--duration", "200ms"];
        let found = results(&arguments, system.path(), 0);
        let programs = &found["runs"][0]["verification"]["programs"];
        let programs = programs.as_array().expect("programs");
        assert!(programs.len() > 1, "{name}");
        assert!(programs.iter().all(|it| it["calls"] == json!([])), "{name}: {programs:?}");
    }
}

/// An example whose programs the run compiles.
fn copy_of(name: &str) -> TestSystem {
    let from = root().join("examples").join(name);
    let system = TestSystem::new("");
    for entry in from.read_dir().expect("the example").flatten() {
        if entry.path().is_file() {
            std::fs::copy(entry.path(), system.path().join(entry.file_name())).expect("copied");
        }
    }
    system
}
