//! `onbeat lf bounds --patch`: what it changes, that `patch` and `git apply` take it, and that the
//! model's waits suffice then.

use crate::common::{onbeat, root, run};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Hands a patch to a program that applies it there, without a hunk that fits somewhere else only.
fn apply(program: &[&str], patch: &[u8], directory: &Path) {
    let mut child = Command::new(program[0])
        .args(&program[1..])
        .current_dir(directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs");
    std::io::Write::write_all(&mut child.stdin.take().expect("a pipe"), patch).expect("written");
    let output = child.wait_with_output().expect("it ends");
    let told = [output.stdout, output.stderr].concat();
    let told = String::from_utf8_lossy(&told);
    let text = String::from_utf8_lossy(patch);
    assert!(output.status.success() && !told.contains("offset"), "{told}\n{text}");
    assert!(!told.contains("fuzz") && !told.contains("Stripping"), "{told}\n{text}");
}

/// Applies it by both programs: `git` says whether it could, `patch` does it.
fn apply_both(patch: &[u8], directory: &Path) {
    apply(&["git", "apply", "-p0", "--check", "-"], patch, directory);
    apply(&["patch", "-p0", "--posix"], patch, directory);
}

/// The verdicts of a model by federate, with the exit code.
fn verdicts(arguments: &[&str], directory: &Path) -> (Vec<(String, Value)>, Option<i32>) {
    let output = onbeat()
        .args(["lf", "bounds", "--json"])
        .args(arguments)
        .current_dir(directory)
        .output()
        .expect("onbeat runs");
    let found: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{arguments:?}: {}", said(&output)));
    let federates = found["federates"].as_array().expect("federates").clone();
    let name = |federate: &Value| federate["name"].as_str().expect("a name").to_owned();
    (federates.iter().map(|one| (name(one), one.clone())).collect(), output.status.code())
}

/// The patch of a model, and what is said of it.
fn patch_of(arguments: &[&str], directory: &Path, code: i32) -> (Vec<u8>, String) {
    let output = run(&[&["lf", "bounds", "--patch", "-"], arguments].concat(), directory, code);
    (output.stdout.clone(), said(&output))
}

#[test]
fn every_model_is_safe_with_its_patch_and_has_no_second_one() {
    let from = root().join("conformance/lf");
    let place = tempfile::tempdir().expect("a directory");
    let copied = Command::new("cp").arg("-r").arg(&from).arg(place.path()).status();
    assert!(copied.expect("cp runs").success());
    let directory = place.path().join("lf");
    let mut models: Vec<String> = directory
        .read_dir()
        .expect("models")
        .map(|entry| entry.expect("one").file_name().into_string().expect("UTF-8"))
        .filter(|name| Path::new(name).extension().is_some_and(|end| end == "lf"))
        .collect();
    models.sort();
    let (mut patched, mut waits) = (0, 0);
    for model in &models {
        let sidecar = with_executions(model, &directory);
        let arguments = [model.as_str(), "--with", &sidecar];
        let known: BTreeSet<String> = verdicts(&arguments, &directory)
            .0
            .into_iter()
            .filter(|(_, one)| !one["maxwait_ns"].is_null() && one["verdict"] != "no inputs")
            .map(|(name, _)| name)
            .collect();
        let file = [&arguments[..], &["--patch", "waits.patch"]].concat();
        let (_, code) = verdicts(&file, &directory);
        let text = std::fs::read(directory.join("waits.patch")).expect("written");
        if !text.is_empty() {
            apply_both(&text, &directory);
            patched += 1;
        }
        let (after, now) = verdicts(&arguments, &directory);
        for (name, federate) in after {
            let verdict = federate["verdict"].as_str().expect("a verdict");
            assert_eq!(verdict == "safe", known.contains(&name), "{model} {name}: {federate}");
            waits += usize::from(verdict == "safe");
        }
        assert_eq!(now, code, "{model}: the exit code is that of the patched model");
        let (again, _) = patch_of(&arguments, &directory, now.expect("an exit code"));
        assert_eq!(String::from_utf8_lossy(&again), "", "{model}");
    }
    assert!(patched >= 35 && waits >= 60, "{patched} of {} models, {waits}", models.len());
}

/// The sidecar of a model with execution times for all its reactions.
fn with_executions(model: &str, directory: &Path) -> String {
    let own = Path::new(model).with_extension("toml");
    let own = directory.join(&own).exists().then(|| own.to_str().expect("UTF-8").to_owned());
    let with = own.iter().flat_map(|own| ["--with", own]);
    let arguments: Vec<&str> = ["lf", "import", model, "--json"].into_iter().chain(with).collect();
    let output = run(&arguments, directory, 0);
    let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let mut text = match &own {
        Some(own) => std::fs::read_to_string(directory.join(own)).expect("a sidecar"),
        None => "format = 1\n".to_owned(),
    };
    for reaction in found["reactions"].as_array().expect("reactions") {
        let name = reaction["name"].as_str().expect("a name");
        // Messages and delays have reactions of their own, which take no time.
        if !name.ends_with(".receive") && !name.ends_with(".delay") {
            let _ = write!(text, "\n[[reaction]]\nname = \"{name}\"\nexecution_max_ns = 20_000\n");
        }
    }
    let name = format!("with-{model}.toml");
    std::fs::write(directory.join(&name), text).expect("written");
    name
}

const CLASSES: &str = "target C { coordination: decentralized, timeout: 1 sec }
reactor Sensor {
  output out: int
  timer t(0, 10 ms)
  // @wcet(100 us)
  reaction(t) -> out {= =}
}
reactor Logic {
  input in: int
  // @wcet(50 us)
  reaction(in) {= =}
}
reactor Clocked extends Logic {
  timer t(0, 10 ms)
  // @wcet(0)
  reaction(t) {= =}
}
";

/// A federation of [`CLASSES`]; W is 100 µs and D 2 ms.
fn write_model(body: &str, directory: &Path) {
    let text = format!("{CLASSES}federated reactor {{\n{body}}}\n");
    std::fs::write(directory.join("model.lf"), text).expect("written");
}

/// The body of the federation after its patch, and what was said.
fn body_after(body: &str, arguments: &[&str], directory: &Path, code: i32) -> (String, String) {
    write_model(body, directory);
    let arguments = [&["model.lf"], arguments].concat();
    let (text, told) = patch_of(&arguments, directory, code);
    if !text.is_empty() {
        apply_both(&text, directory);
    }
    let (again, _) = patch_of(&arguments, directory, code);
    assert_eq!(String::from_utf8_lossy(&again), "", "{told}");
    let text = std::fs::read_to_string(directory.join("model.lf")).expect("a model");
    let (head, body) = text.split_once("federated reactor {\n").expect("a federation");
    assert_eq!(head, CLASSES);
    (body.strip_suffix("}\n").expect("its end").to_owned(), told)
}

#[test]
fn an_attribute_is_put_before_its_statement_or_gets_another_time_in_place() {
    let place = tempfile::tempdir().expect("a directory");
    for (before, after) in [
        (
            "  s = new Sensor()\n  // It waits.\n  l = new Logic() // long\n  s.out -> l.in\n",
            "  s = new Sensor()\n  // It waits.\n  @maxwait(2100 us)\n  l = new Logic() // long\n  \
             s.out -> l.in\n",
        ),
        (
            "\ts = new Sensor(); l = new Logic(); s.out -> l.in after 1 ms\n",
            "\ts = new Sensor(); @maxwait(1100 us) l = new Logic(); s.out -> l.in after 1 ms\n",
        ),
        (
            "  s = new Sensor()\n  @label(\"x\") l = new Logic()\n  s.out -> l.in after 5 ms\n",
            "  s = new Sensor()\n  @label(\"x\") @maxwait(0) l = new Logic()\n  \
             s.out -> l.in after 5 ms\n",
        ),
        (
            "  s = new Sensor()\n  @maxwait( /* so */ value = forever ) // long\n  l = new \
             Logic()\n  s.out -> l.in\n",
            "  s = new Sensor()\n  @maxwait( /* so */ value = 2100 us ) // long\n  l = new \
             Logic()\n  s.out -> l.in\n",
        ),
        // Its own timer makes it wait for each message at its tag.
        (
            "  s = new Sensor()\n  l = new Clocked()\n  @absent_after(1 sec)\n  s.out -> l.in\n",
            "  s = new Sensor()\n  @maxwait(0)\n  l = new Clocked()\n  @absent_after(2100 us)\n  \
             s.out -> l.in\n",
        ),
        // Without one the attribute does nothing.
        (
            "  s = new Sensor()\n  l = new Logic()\n  @absent_after(0)\n  s.out -> l.in\n",
            "  s = new Sensor()\n  @maxwait(2100 us)\n  l = new Logic()\n  @absent_after(0)\n  \
             s.out -> l.in\n",
        ),
        // What is longer than it needs makes others wait, too.
        (
            "  s = new Sensor()\n  @maxwait(2 sec)\n  l = new Logic()\n  s.out -> l.in\n",
            "  s = new Sensor()\n  @maxwait(2100 us)\n  l = new Logic()\n  s.out -> l.in\n",
        ),
        ("  s = new Sensor()\n  l = new Logic()\n  s.out ~> l.in\n", ""),
    ] {
        let (found, told) = body_after(before, &[], place.path(), 0);
        assert_eq!(found, if after.is_empty() { before } else { after }, "{told}");
        assert!(!told.contains("not changed"), "{told}");
    }
}

#[test]
fn ends_of_lines_names_of_files_and_imports_are_kept() {
    let place = tempfile::tempdir().expect("a directory");
    let inner = place.path().join("my models/lib");
    std::fs::create_dir_all(&inner).expect("made");
    // The federates are another file's; neither ends in a line feed.
    let base = format!(
        "{CLASSES}reactor Base {{\n  s = new Sensor()\n\tl = new Logic()\n  s.out -> l.in\n}}"
    );
    let base = base.replace('\n', "\r\n");
    let main = "target C { coordination: decentralized }\n\
                import Base, Logic from \"lib/base.lf\"\n\
                federated reactor extends Base { m = new Logic()\n s.out -> m.in }";
    std::fs::write(inner.join("base.lf"), &base).expect("written");
    std::fs::write(place.path().join("my models/main.lf"), main).expect("written");
    let (text, _) = patch_of(&["my models/main.lf"], place.path(), 0);
    apply_both(&text, place.path());
    let read = |path: &str| std::fs::read_to_string(place.path().join(path)).expect("a file");
    let changed = base.replace("\tl = new", "\t@maxwait(2100 us)\r\n\tl = new");
    assert_eq!(read("my models/lib/base.lf"), changed);
    let changed = main.replace("{ m = new", "{ @maxwait(2100 us) m = new");
    assert_eq!(read("my models/main.lf"), changed);
    let (again, _) = patch_of(&["main.lf"], &place.path().join("my models"), 0);
    assert!(again.is_empty());
}

/// A sidecar by which messages to `l_1` or `m` take 3 ms more.
const SLOWER: &str = "format = 1
[[federate]]
name = \"s\"
station = \"s\"
[[connection]]
from = \"s.out\"
to = \"m.in\"
fixed_delay_us = 5_000
[[connection]]
from = \"s.out\"
to = \"l_1.in\"
fixed_delay_us = 5_000
";

#[test]
fn a_wait_of_several_is_the_longest_that_one_needs_and_that_is_said() {
    let place = tempfile::tempdir().expect("a directory");
    let sidecar = |without: &str| {
        let tables = SLOWER.split("[[").filter(|table| !table.contains(without));
        std::fs::write(place.path().join("with.toml"), tables.collect::<Vec<_>>().join("[["))
            .expect("written");
    };
    sidecar("\"m.in\"");
    let bank = "  s = new Sensor()\n  l = new[2] Logic()\n  (s.out)+ -> l.in\n";
    let (found, told) = body_after(bank, &["--with", "with.toml"], place.path(), 0);
    assert!(found.contains("\n  @maxwait(5100 us)\n  l = new[2]"), "{found}");
    let wanted = "one @maxwait is for `l_0`, `l_1`, which need 2100 us to 5100 us: 5100 us";
    assert!(told.contains(wanted), "{told}");

    // What a member sends is later by the longer wait, also if it needs less itself.
    sidecar("\"m.in\"");
    let body = "  s = new Sensor()\n  l = new[2] Relay()\n  k = new Logic()\n  d = new Logic()\n  \
                (s.out)+ -> l.in\n  l.out -> k.in, d.in\n";
    let relay = "reactor Relay {\n  input in: int\n  output out: int\n  // @wcet(0)\n\
                 \x20 reaction(in) -> out {= =}\n}\n";
    let text = format!("{CLASSES}{relay}federated reactor {{\n{body}}}\n");
    std::fs::write(place.path().join("chain.lf"), text).expect("written");
    let (text, _) = patch_of(&["chain.lf", "--with", "with.toml"], place.path(), 0);
    apply_both(&text, place.path());
    let text = std::fs::read_to_string(place.path().join("chain.lf")).expect("a model");
    for wait in ["@maxwait(5100 us)\n  l =", "@maxwait(7100 us)\n  k =", "@maxwait(7100 us)\n  d ="]
    {
        assert!(text.contains(wait), "{text}");
    }

    // A parameter of a class is that of all its uses.
    sidecar("\"l_1.in\"");
    let classes = CLASSES.replace("reactor Logic {", "reactor Logic(STP_offset: time(1 msec)) {");
    let body = "  s = new Sensor()\n  l = new Logic()\n  m = new Logic()\n  \
                (s.out)+ -> l.in, m.in\n";
    let old = format!("{classes}federated reactor {{\n{body}}}\n");
    std::fs::write(place.path().join("old.lf"), &old).expect("written");
    let (text, told) = patch_of(&["old.lf", "--with", "with.toml"], place.path(), 0);
    apply_both(&text, place.path());
    let text = std::fs::read_to_string(place.path().join("old.lf")).expect("a model");
    assert_eq!(text, old.replace("(1 msec)", "(5100 us)"));
    assert!(told.contains("is for `l`, `m`, which need 2100 us to 5100 us"), "{told}");
    // An argument is one federate's own.
    let own = old.replace("m = new Logic()", "m = new Logic(STP_offset = 0)");
    std::fs::write(place.path().join("own.lf"), &own).expect("written");
    let (text, _) = patch_of(&["own.lf", "--with", "with.toml"], place.path(), 0);
    apply_both(&text, place.path());
    let text = std::fs::read_to_string(place.path().join("own.lf")).expect("a model");
    let wanted =
        own.replace("(1 msec)", "(2100 us)").replace("STP_offset = 0", "STP_offset = 5100 us");
    assert_eq!(text, wanted);
}

#[test]
fn what_cannot_be_changed_stays_and_the_reason_is_said() {
    let place = tempfile::tempdir().expect("a directory");
    let write = |name: &str, text: &str| {
        std::fs::write(place.path().join(name), text).expect("written");
    };
    let body = "  s = new Sensor()\n  @maxwait(1 ms)\n  l = new Logic()\n  s.out -> l.in\n";
    let text = format!("{CLASSES}federated reactor {{\n{body}}}\n");
    write("unknown.lf", &text.replace("// @wcet(100 us)\n", ""));
    let (patch, told) = patch_of(&["unknown.lf"], place.path(), 6);
    assert!(patch.is_empty());
    let wanted = "unknown.lf:19: `l`: not changed: `s.reaction_1` has no execution time";
    assert!(told.contains(wanted), "{told}");

    // Another parameter decides, or the sidecar does.
    let old = text.replace("reactor Logic {", "reactor Logic(STP_offset: time = 1 ms) {");
    let old = old.replace("  @maxwait(1 ms)\n", "");
    let by_hand = old.replace("federated reactor {", "federated reactor(d: time = 1 ms) {");
    write("hand.lf", &by_hand.replace("new Logic()", "new Logic(STP_offset = d)"));
    let (patch, told) = patch_of(&["hand.lf"], place.path(), 3);
    assert!(patch.is_empty());
    let wanted = "hand.lf:20: `l`: write @maxwait(2100 us) by hand";
    assert!(told.contains(wanted), "{told}");
    write("given.toml", "format = 1\n[[parameter]]\nname = \"l.STP_offset\"\nvalue = \"3 ms\"\n");
    write("given.lf", &old);
    let (patch, told) = patch_of(&["given.lf", "--with", "given.toml"], place.path(), 0);
    assert!(patch.is_empty() && told.contains("by hand"), "{told}");

    let cycle = "reactor A {\n  input in: int\n  output out: int\n  timer t(0, 10 ms)\n\
                 \x20 // @wcet(10 us)\n  reaction(t) -> out {= =}\n\
                 \x20 // @wcet(10 us)\n  reaction(in) {= =}\n}\n\
                 federated reactor {\n  a = new A()\n  b = new A()\n\
                 \x20 a.out -> b.in\n  b.out -> a.in\n}\n";
    let cycle = format!("target C {{ coordination: decentralized }}\n{cycle}");
    write("cycle.lf", &cycle);
    let (patch, told) = patch_of(&["cycle.lf"], place.path(), 6);
    assert!(patch.is_empty());
    assert!(told.contains("`b`: not changed") && told.contains("breaks it"), "{told}");
    // Whoever waits at the connection sends before.
    let absent = cycle.replace("  a.out ->", "  @absent_after(0)\n  a.out ->");
    write("absent.lf", &absent.replace("  b.out ->", "  @absent_after(0)\n  b.out ->"));
    // 6, because no @maxwait alone would be long enough.
    let (text, _) = patch_of(&["absent.lf"], place.path(), 6);
    apply_both(&text, place.path());
    let text = std::fs::read_to_string(place.path().join("absent.lf")).expect("a model");
    assert_eq!(text.matches("@maxwait(0)").count(), 2, "{text}");
    assert_eq!(text.matches("@absent_after(20").count(), 2, "{text}");
    let (found, _) = verdicts(&["absent.lf"], place.path());
    assert!(found.iter().all(|(_, one)| one["verdict"] == "safe"), "{found:?}");
}
