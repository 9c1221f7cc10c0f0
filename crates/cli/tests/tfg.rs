//! `onbeat tfg` on task models and descriptions.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Listing 3 of Austad et al. 2023, over the channel `c` that `%` describes.
const LISTING_3: &str = r#"
format = 1
name = "listing-3"

[[channel]]
name = "c"
%

[[task]]
name = "sensor"
steps = [
    { loop = "ever", steps = [
        { work_us = [0, 0], at = "4" },
        { write = "c", at = "5" },
        { firm_ms = 10, at = "6" },
    ] },
]

[[task]]
name = "processor"
steps = [
    { loop = "ever", steps = [{ read = "c", at = "12" }, { work_us = [0, 0], at = "13" }] },
]
"#;

/// A directory with a task model.
struct Place(tempfile::TempDir);

impl Place {
    fn with(channel: &str) -> Self {
        let place = Self(tempfile::tempdir().expect("a directory"));
        let text = LISTING_3.replace('%', channel);
        std::fs::write(place.path("listing-3.toml"), text).expect("the tasks");
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn tfg(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_onbeat"));
        command.args(["tfg", "listing-3.toml"]).args(arguments);
        command.current_dir(self.0.path()).output().expect("onbeat")
    }

    /// What it prints when nothing is wrong.
    fn prints(&self, arguments: &[&str]) -> String {
        let output = self.tfg(arguments);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        text(&output.stdout)
    }
}

fn text(octets: &[u8]) -> String {
    String::from_utf8_lossy(octets).into_owned()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn listing_3_gives_table_1_of_the_paper() {
    let printed = Place::with("kind = \"fifo\"\ncapacity = 4").prints(&["--iterations", "3"]);
    for line in [
        "Composable to its logical timing: every logical time is bounded.",
        "iteration  t_A(c5)  t_R(p6)",
        "1                0       10",
        "3               20       30",
        "iteration  t_A(c12)  t_R(c12)",
        "1                 0         0",
        "2                 0        10",
        "3                10        20",
    ] {
        assert!(printed.lines().any(|other| other == line), "no `{line}` in\n{printed}");
    }
}

#[test]
fn the_figure_of_the_documentation_is_current() {
    let place = Place::with("kind = \"fifo\"\ncapacity = 4");
    place.prints(&["--svg", "figure.svg"]);
    let drawn = std::fs::read_to_string(place.path("figure.svg")).expect("the figure");
    let figure = std::fs::read_to_string(root().join("docs/listing-3.svg")).expect("the figure");
    assert!(figure == drawn, "docs/listing-3.svg is not what `onbeat tfg --svg` draws:\n{drawn}");
}

#[test]
fn what_is_not_composable_is_no_error_and_the_way_is_named() {
    let place = Place::with("kind = \"ip\"");
    let printed = place.prints(&[]);
    assert!(printed.starts_with("Not composable"), "{printed}");
    assert!(printed.contains("the best-effort channel c has no latency bound"), "{printed}");
    let way = "listing-3.toml:5 → c → listing-3.toml:12 → listing-3.toml:13";
    assert!(printed.contains(way), "{printed}");
    let json: serde_json::Value = serde_json::from_str(&place.prints(&["--json"])).expect("JSON");
    assert_eq!((&json["format"], &json["composable"]), (&"onbeat-tfg".into(), &false.into()));
}

#[test]
fn files_are_written_all_or_none() {
    let place = Place::with("kind = \"fifo\"\ncapacity = 4");
    let files = ["--html", "a.html", "--svg", "a.svg", "--dot"];
    let failed = place.tfg(&[&files[..], &["no/such/place"]].concat());
    assert_eq!(failed.status.code(), Some(5));
    assert_eq!(std::fs::read_dir(place.0.path()).expect("the directory").count(), 1);
    place.prints(&[&files[..], &["a.dot"]].concat());
    let read = |name| std::fs::read_to_string(place.path(name)).expect(name);
    assert!(read("a.html").starts_with("<!doctype html>"));
    assert!(read("a.svg").starts_with("<svg"));
    assert_eq!(read("a.dot").trim_end(), place.prints(&["--dot", "-"]).trim_end());
}

#[test]
fn errors_in_a_file_of_tasks_are_shown_with_their_lines() {
    let place = Place::with("kind = \"pigeon\"");
    let output = place.tfg(&[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("listing-3.toml:7"), "{}", text(&output.stderr));
}

#[test]
fn a_description_is_studied_with_its_plan() {
    let output = Command::new(env!("CARGO_BIN_EXE_onbeat"))
        .env("ONBEAT_HOME", root())
        .args(["tfg", "--level", "platform", "--iterations", "2"])
        .arg(root().join("examples/05-control-loop"))
        .output()
        .expect("onbeat");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("chain"), "{}", text(&output.stdout));
}

#[test]
fn work_that_takes_longer_than_any_time_has_no_bound() {
    let long = "{ loop = \"unknown\", steps = [{ work_s = 2592000 }] }";
    let more = "{ loop = 1000000000, steps = [{ work_s = 2592000 }] }, { work_s = 5 }";
    let tasks = format!(
        "format = 1\nname = \"long\"\n[[task]]\nname = \"t\"\nsteps = [{long}, {more}, \
         {{ loop = \"ever\", steps = [{{ soft_ms = 1 }}] }}]\n"
    );
    let place = Place::with("kind = \"fifo\"\ncapacity = 4");
    std::fs::write(place.path("listing-3.toml"), tasks).expect("the tasks");
    let output = place.tfg(&["--level", "platform"]);
    assert!(matches!(output.status.code(), Some(0 | 6)), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("no bound"), "{}", text(&output.stdout));
}

/// What is printed of a program in C, and what is said of it.
fn of_program(source: &str, code: i32) -> (String, String) {
    let place = Place::with("kind = \"ip\"");
    std::fs::write(place.path("p.c"), source).expect("written");
    let output = Command::new(env!("CARGO_BIN_EXE_onbeat"))
        .env("ONBEAT_HOME", root())
        .args(["tfg", "p.c"])
        .current_dir(place.0.path())
        .output()
        .expect("onbeat");
    let (out, said) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{source}\n{out}\n{said}");
    (out, said)
}

#[test]
fn a_loop_in_which_no_time_passes_neither_ends_nor_is_composable() {
    for (source, warns) in [
        ("int main(void) { for (;;) sdelay(0, ms); }", true),
        ("int main(void) { for (;;) { stp(0, infty, ms); } }", true),
        ("int main(void) { long n = 0; for (;;) sdelay(n, ms); }", false),
        ("task a(void) { for (;;) gettime(ms); } int main(void) { a(); }", true),
        (
            "int fifochannel(q); task a() { for (;;) { cwrite(q, 1); sdelay(0, ms); } } task b() \
             { int v; for (;;) { cread(q, v); fdelay(10, ms); } } int main(void) { a(); b(); }",
            true,
        ),
    ] {
        let (out, said) = of_program(source, 6);
        assert!(out.starts_with("Not proven"), "{source}\n{out}");
        assert!(out.contains("no time passes in an endless loop of"), "{source}\n{out}");
        assert!(!out.contains("The task ends."), "{source}\n{out}");
        assert_eq!(said.contains("OB4106"), warns, "{source}\n{said}");
    }
    let ends = "int main(void) { for (int i = 0; i < 9; i++) sdelay(0, ms); sdelay(1, ms); }";
    assert!(of_program(ends, 0).0.starts_with("Composable"));
}

#[test]
fn no_time_is_stated_of_a_program_that_is_not_c() {
    let broken = "task a(void)\n{\n\tfor (;;) { rest() fdelay(10, ms); }\n}\n\
                  int main(void) { a(); }\n";
    let (out, said) = of_program(broken, 1);
    assert!(out.is_empty() && said.contains("OB5007") && said.contains("p.c:3:"), "{out}\n{said}");
}

#[test]
fn the_branch_that_c_takes_is_the_one_of_the_table() {
    let source = "task a(void)\n{\n\tsdelay(0, ms);\n\tif (3 - 5u < 10) {\n\
                  \t\tfdelay(10, ms);\n\t} else {\n\
                  \t\t__attribute__((exectime(7, 7, ms)));\n\t\tftp(20, 5, ms);\n\t}\n}\n\
                  int main(void) { a(); }\n";
    let out = of_program(source, 0).0;
    assert!(out.contains("t_R(p3)  t_R(p8)") && out.contains("late by up to 2 ms"), "{out}");
}

#[test]
fn a_delay_that_is_longer_than_any_has_no_bound() {
    let source = "int main(void) { long n = 9000000000; sdelay(n, sec); sdelay(1, ms); }";
    assert!(of_program(source, 0).0.contains("no bound: the delay"));
}

#[test]
fn a_description_without_programs_is_refused_as_a_wrong_one_is() {
    let place = Place::with("kind = \"fifo\"\ncapacity = 4");
    std::fs::write(place.path("listing-3.toml"), crate::common::two_hosts("")).expect("written");
    let output = place.tfg(&["--json"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(document["diagnostics"][0]["code"], "OB3003", "{document}");
}
