//! Comparisons of what real runs, simulations and measurements left.

use crate::common::{TestSystem, results, run, two_hosts};
use onbeat_measure::compare::{self, Subject, Verdict};
use onbeat_measure::{Results, records};
use onbeat_model::record::{Role, RunLog};
use onbeat_model::time::Span;
use std::path::Path;

/// Runs with a seed each: 105 pairs.
const RUNS: u64 = 15;
/// 5 %, as the command has it.
const EFFECT: u32 = 50;

/// The first example with a tenth of its noise, which starts in the middle of an 8 s run.
fn example() -> TestSystem {
    let system = TestSystem::example("01-two-hosts");
    let file = system.path().join("system.toml");
    let mut text = std::fs::read_to_string(&file).expect("the description");
    for (from, to) in [
        ("frames_per_s = 67700", "frames_per_s = 6770"),
        ("frames_per_s = 14000", "frames_per_s = 1400"),
        ("frames_per_s = 53700", "frames_per_s = 5370"),
        ("start_s = 10\n", "start_s = 4\n"),
        ("start_s = 12\n", "start_s = 5\n"),
    ] {
        assert!(text.contains(from), "{from}");
        text = text.replace(from, to);
    }
    std::fs::write(file, text).expect("written");
    system
}

fn read(file: &Path) -> String {
    std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

fn subject(out: &Path, directory: &str) -> Subject {
    let results: Results = serde_json::from_str(&read(&out.join("results.json"))).expect("results");
    let messages = read(&out.join(directory).join("messages.csv"));
    let series = compare::messages(&results.runs[0].scenario, &messages).expect("messages");
    Subject::of_runs(&results, vec![series])
}

/// Every message of a run takes 10 % longer from capture to receipt.
fn slower(mut log: RunLog) -> RunLog {
    let listeners = log.ends.iter_mut().filter(|end| end.role == Role::Listener);
    for record in listeners.flat_map(|end| &mut end.records) {
        if let (Some(capture), Some(receive)) = (record.capture, record.receive) {
            let latency = receive.as_ns() - capture.as_ns();
            record.receive = Some(receive + Span::from_ns(latency / 10));
        }
    }
    log
}

/// Copies an output with slower messages; the command rebuilds all else from the records.
fn inject(system: &TestSystem, from: &str, to: &str, directory: &str) {
    let [from, target] = [from, to].map(|name| system.path().join(name));
    std::fs::create_dir_all(target.join(directory)).expect("a directory");
    let file = Path::new(directory).join("records.onb");
    let log = records::decode(&std::fs::read(from.join(&file)).expect("records")).expect("records");
    let hash = records::record_hash(&log);
    let log = slower(log);
    let results = read(&from.join("results.json")).replace(&hash, &records::record_hash(&log));
    std::fs::write(target.join("results.json"), results).expect("written");
    std::fs::write(target.join(&file), records::encode(&log)).expect("written");
    run(&["report", ".", "--out", to], system.path(), 0);
}

#[test]
fn of_a_hundred_pairs_of_runs_equal_ones_are_not_told_apart_and_slower_ones_are_worse() {
    let system = example();
    let directory = "1-protected";
    let mut runs = Vec::new();
    let mut injected = Vec::new();
    for seed in 1..=RUNS {
        let [out, shifted] = [format!("run{seed}"), format!("slow{seed}")];
        let number = seed.to_string();
        let wanted = ["run", ".", "--scenario", "protected", "--duration", "8s"];
        run(&[&wanted[..], &["--seed", &number, "--out", &out]].concat(), system.path(), 0);
        inject(&system, &out, &shifted, directory);
        runs.push(subject(&system.path().join(&out), directory));
        injected.push(subject(&system.path().join(&shifted), directory));
    }
    let verdict =
        |first, second| compare::compare(first, second, EFFECT).expect("one system").verdict;
    let (mut pairs, mut equal, mut worse, mut better) = (0, 0, 0, 0);
    for (at, first) in runs.iter().enumerate() {
        for other in at + 1..runs.len() {
            pairs += 1;
            equal += u32::from(verdict(first, &runs[other]) == Verdict::NotDistinguishable);
            worse += u32::from(verdict(first, &injected[other]) == Verdict::Worse);
        }
        better +=
            u32::from(verdict(&injected[at], &runs[(at + 1) % runs.len()]) == Verdict::Better);
    }
    println!("of {pairs} pairs {equal} not distinguishable, {worse} worse; {better} better");
    assert!(pairs >= 100 && equal * 100 >= pairs * 95, "{equal} of {pairs} not distinguishable");
    assert!(worse * 100 >= pairs * 95, "{worse} of {pairs} slower ones worse");
    assert!(better * 100 >= RUNS as u32 * 95, "{better} of {RUNS} faster ones better");
    the_command_says_the_same(&system);
}

/// Exit code, JSON and page of the command.
fn the_command_says_the_same(system: &TestSystem) {
    let output = run(&["compare", "run1", "run2"], system.path(), 0);
    let said = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(said.contains("not distinguishable from the first"), "{said}");
    let output = run(&["compare", "run1", "slow2", "--html", "page.html"], system.path(), 1);
    let said = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(said.contains("The second is worse"), "{said}");
    assert!(read(&system.path().join("page.html")).contains("mcast42 to listener, latency"));
    run(&["compare", "slow1", "run2"], system.path(), 0);
    // A change of 10 % is none of 30 %.
    run(&["compare", "run1", "slow2", "--effect", "30%"], system.path(), 0);
    let json = results(&["compare", "run1", "slow2"], system.path(), 1);
    assert_eq!((&json["verdict"], &json["kind"]), (&"worse".into(), &"run".into()));
    let mut series = json["series"].as_array().expect("series").iter();
    let latency = series.find(|s| s["quantity"] == "latency").expect("latency");
    assert_eq!(latency["verdict"], "worse");
    let again = results(&["compare", "run1", "slow2"], system.path(), 1);
    assert_eq!(json, again, "the same files gave another comparison");
}

#[test]
fn what_cannot_be_compared_is_said_and_why() {
    let system = TestSystem::new(&two_hosts(""));
    run(&["run", ".", "--out", "one"], system.path(), 0);
    let other = two_hosts("").replace("name = \"test\"", "name = \"other\"");
    std::fs::write(system.path().join("other.toml"), other).expect("written");
    run(&["run", "other.toml", "--out", "two"], system.path(), 0);
    run(&["simulate", ".", "--out", "simulated"], system.path(), 0);
    let refused = |arguments: [&str; 2], expected: i32, texts: &[&str]| {
        let output = run(&[&["compare"][..], &arguments].concat(), system.path(), expected);
        let said = String::from_utf8(output.stderr).expect("UTF-8");
        for text in texts {
            assert!(said.contains(text), "{text} in {said}");
        }
        assert!(output.stdout.is_empty());
    };
    refused(["one", "two"], 2, &["`test`", "`other`"]);
    std::fs::create_dir(system.path().join("empty")).expect("a directory");
    refused(["one", "empty"], 2, &["results.json", "onbeat run --out"]);
    // A directory of outputs, but not of one thing.
    let several = system.path().join("several");
    std::fs::create_dir(&several).expect("a directory");
    for name in ["one", "two"] {
        let target = system.path().join(name);
        std::os::unix::fs::symlink(target, several.join(name)).expect("a link");
    }
    refused(["one", "several"], 2, &["in several: ", "`test`", "`other`"]);
    refused(["one", "simulated"], 2, &["--repetitions"]);
    let messages = system.path().join("two/1-run/messages.csv");
    let text = read(&messages);
    let third: Vec<&str> = text.lines().take(3).collect();
    std::fs::write(&messages, format!("{}\nc,b,", third.join("\n"))).expect("written");
    refused(["one", "two"], 5, &["two/1-run/messages.csv", "line 4", "cut off"]);
    let output = run(&["compare", "one", "one", "--effect", "much"], system.path(), 2);
    assert!(String::from_utf8_lossy(&output.stderr).contains("per cent"));
}

#[test]
fn simulations_are_compared_by_their_repetitions() {
    let noise = "\n[[noise]]\nname = \"n\"\nfrom = \"a\"\nto = \"b\"\nsize_octets = 1470\n\
                 frames_per_s = 6000\njitter = true\n";
    let system = TestSystem::new(&two_hosts(noise));
    let simulate = |seed: &str, out: &str, more: &[&str]| {
        let wanted = ["simulate", ".", "--repetitions", "60", "--duration", "200ms"];
        let chosen = ["--seed", seed, "--out", out];
        run(&[&wanted[..], &chosen, more].concat(), system.path(), 0);
    };
    simulate("1", "one", &[]);
    simulate("2", "two", &[]);
    simulate("2", "open", &["--unprotected"]);
    assert_eq!(read(&system.path().join("one/repetitions.csv")).lines().count(), 61);
    let json = results(&["compare", "one", "two"], system.path(), 0);
    assert_eq!(
        (&json["kind"], &json["verdict"]),
        (&"simulation".into(), &"not distinguishable".into())
    );
    assert_eq!(json["series"][0]["values"], serde_json::json!([60, 60]));
    // Without reservations frames wait behind noise.
    let json = results(&["compare", "one", "open"], system.path(), 1);
    assert_eq!(json["notes"][0], "reservations: made in the first, none in the second");
    // An output with repetitions is one, and can be replaced.
    simulate("1", "one", &[]);
}

#[test]
fn measurements_are_compared_by_the_series_that_both_have() {
    let directory = tempfile::tempdir().expect("a directory");
    let write = |name: &str, series: &[(&str, i64)], kernel: &str| {
        let place = directory.path().join(name);
        std::fs::create_dir_all(place.join("samples")).expect("a directory");
        let listed: Vec<_> = series.iter().map(|(n, _)| serde_json::json!({ "name": n })).collect();
        let document = serde_json::json!({ "format": "onbeat-measurement", "version": 1,
            "machine": { "kernel": kernel }, "series": listed });
        std::fs::write(place.join("measurement.json"), document.to_string()).expect("written");
        for (series, middle) in series {
            let values = (0..1_000i64).map(|i| (middle + i * 7_919 % 101 - 50).to_string());
            let text: Vec<_> = std::iter::once("value_ns".to_owned()).chain(values).collect();
            let file = place.join("samples").join(format!("{series}.csv"));
            std::fs::write(file, text.join("\n")).expect("written");
        }
    };
    let middle = |run: i64, at: i64| at + run * at / 1_000;
    for run in 0..5 {
        let at = |at| middle(run, at);
        write(&format!("before/{run}"), &[("clock.lc", at(1_000)), ("clock.gc", at(2_000))], "6.1");
        let after = [("clock.lc", at(800)), ("latency.lc", at(9_000))];
        write(&format!("after/{run}"), &after, "6.18");
        let mixed = [("clock.lc", at(800)), ("clock.gc", at(3_000))];
        write(&format!("mixed/{run}"), &mixed, "6.1");
    }
    write("apart", &[("sync", 5)], "6.18");
    let compared =
        |first, second, code| results(&["compare", first, second], directory.path(), code);
    // One measurement of each says nothing of the next.
    let json = compared("before/0", "after/0", 0);
    assert_eq!((&json["verdict"], &json["judged"]), (&"not judged".into(), &0.into()));
    let json = compared("before", "after", 0);
    assert_eq!((&json["verdict"], &json["system"]), (&"better".into(), &"".into()));
    assert_eq!(json["runs"], serde_json::json!([5, 5]));
    assert_eq!(json["series"].as_array().map(Vec::len), Some(1));
    let notes = json["notes"].to_string();
    for text in ["machine.kernel: 6.1 in the first, 6.18", "clock.gc", "latency.lc"] {
        assert!(notes.contains(text), "{text} in {notes}");
    }
    assert_eq!(compared("after", "before", 1)["verdict"], "worse");
    assert_eq!(compared("before", "mixed", 1)["verdict"], "mixed");
    assert_eq!(compared("mixed", "before", 1)["verdict"], "mixed");
    let output = run(&["compare", "before", "apart"], directory.path(), 2);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("clock.lc; clock.gc") && said.contains("has sync"), "{said}");
    let file = directory.path().join("after/3/samples/clock.lc.csv");
    std::fs::write(file, "value_ns\n5\nfive\n").expect("written");
    let output = run(&["compare", "before", "after"], directory.path(), 5);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("samples/clock.lc.csv") && said.contains("line 3"), "{said}");
}
