//! Timed C: what is accepted is translated into C that the compiler takes; what is not has a code
//! and a line.

use onbeat_model::diagnostic::{Severity, SourceFile};
use onbeat_program::source::{Edit, Expanded};
use onbeat_program::timedc::{Options, Target, Translation, translate};
use proptest::prelude::*;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Edits of plain text.
fn apply(text: &str, edits: &[Edit]) -> String {
    let mut all: Vec<(usize, u8, usize, &str)> = Vec::new();
    for edit in edits {
        all.push(match edit {
            Edit::After(at, new) => (*at, 0, *at, new),
            Edit::Before(at, new) => (*at, 1, *at, new),
            Edit::Replace(range, new) => (range.start, 2, range.end, new),
        });
    }
    all.sort();
    let (mut made, mut done) = (String::new(), 0);
    for (from, _, to, new) in all {
        assert!(done <= from, "edits overlap at {from}");
        made.push_str(&text[done..from]);
        made.push_str(new);
        let lines = text[from..to].matches('\n').count() - new.matches('\n').count();
        made.push_str(&"\n".repeat(lines));
        done = to;
    }
    made + &text[done..]
}

fn translated(text: &str, options: Options) -> Translation {
    let files = [SourceFile { path: "program.c".to_owned(), text: text.to_owned() }];
    translate(&Expanded::plain(text), &files, options)
}

fn whole(text: &str, made: &Translation) -> String {
    let edited = apply(text, &made.edits);
    assert_eq!(edited.lines().count(), text.lines().count(), "a line moved:\n{edited}");
    format!(
        "{}\n#line 1 \"program.c\"\n{edited}\n#line 1 \"<timed c>\"\n{}",
        made.before, made.after
    )
}

/// Codes and lines of what is wrong.
fn told(text: &str) -> Vec<String> {
    let made = translated(text, Options::default());
    let file = SourceFile { path: String::new(), text: text.to_owned() };
    let line = |d: &onbeat_model::diagnostic::Diagnostic| {
        d.at.as_ref().map_or(0, |(origin, _)| file.line(origin.start))
    };
    made.diagnostics.iter().map(|d| format!("{}:{}", d.code, line(d))).collect()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// What programs include, and what the preprocessor makes of it.
const PRELUDE: &str = "#include <stdio.h>\n#include <timedc_avtp.h>\n";

/// Lets the C compiler judge.
fn compile(name: &str, generated: &str) {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let path = directory.join(format!("{name}.c"));
    fs::write(&path, format!("{PRELUDE}{generated}")).expect("a temporary file");
    let output = Command::new("gcc")
        .args([
            "-std=gnu11",
            "-fsyntax-only",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-Wno-unused-parameter",
        ])
        .arg("-I")
        .arg(root().join("timedc/include"))
        .arg("-I")
        .arg(root().join("compat/include"))
        .arg(&path)
        .output()
        .expect("gcc");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {errors}\n{generated}");
}

#[test]
fn accepted_programs_become_c() {
    let directory = root().join("crates/program/tests/timedc");
    let mut paths: Vec<_> = fs::read_dir(&directory)
        .expect("programs")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|e| e == "c"))
        .collect();
    paths.sort();
    assert!(!paths.is_empty());
    for path in paths {
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).expect("a program");
        let made = translated(&text, Options::default());
        let errors: Vec<_> =
            made.diagnostics.iter().filter(|d| d.severity == Severity::Error).collect();
        assert!(errors.is_empty(), "{name}: {errors:#?}");
        let generated = whole(&text, &made);
        let mut settings = insta::Settings::clone_current();
        settings.set_snapshot_path(&directory);
        settings.set_prepend_module_to_snapshot(false);
        settings.bind(|| insta::assert_snapshot!(name.clone(), generated));
        compile(&name, &generated);
    }
}

/// What each program is told: codes and lines, in the order of the text.
const CHECKS: &[(&str, &[&str])] = &[
    // Units.
    ("task f() { sdelay(10, ms); fdelay(1, -9); hdelay(1, \"micro\"); }", &[]),
    (
        "task f() {\n fdelay(10, minutes);\n stp(1, 1);\n gettime();\n gettime(5); }",
        &["OB4001:2", "OB4001:3", "OB4001:4", "OB4001:5"],
    ),
    ("task f() { aperiodic(10); }", &["OB4001:1"]),
    ("task f() { sdelay(20); }", &["OB4101:1"]),
    // Numbers.
    ("task f() { fdelay(0, ms); }", &[]),
    (
        "enum { P = 3 - 5 }; task f() {\n sdelay(-1, ms);\n fdelay(P, ms);\n ftp(1, -1, ms); }",
        &["OB4002:2", "OB4002:3", "OB4002:4"],
    ),
    ("task f() { ftp(10, 10, ms); ftp(10, infty, ms); stp(10, 5, us); }", &[]),
    ("task f() {\n ftp(10, 11, ms);\n stp(2 * 4, 9, ms); }", &["OB4003:2", "OB4003:3"]),
    ("task f() { sdelay((uint8_t)-1, ms); sdelay((0u - 1) % 7, us); }", &[]),
    ("task f() {\n ftp((unsigned char)300, 100, ms); }", &["OB4003:2"]),
    (
        "task f() {\n sdelay(288230376, sec);\n sdelay(288230377, sec);\n ftp(-1ul, infty, ns); }",
        &["OB4002:3", "OB4002:4"],
    ),
    ("task f() {\n aperiodic(300000000, sec); }", &["OB4002:2"]),
    // Values.
    ("task f(int n) { int m; if (n) m = 1; else m = 2; sdelay(m, ms); }", &[]),
    ("int g; task f() { static int s; int m; scanf(\"%d\", &m); sdelay(m + g + s, ms); }", &[]),
    ("task f(int n) { int m; if (n) m = 1;\n sdelay(m, ms); }", &["OB4004:2"]),
    ("void w(); task f(int n) { int m; w(); m = 1;\n ftp(m, 5, ms); }", &["OB4004:2"]),
    ("void w(); task f(int n) { int m; if (n) skipdelay; m = 1;\n sdelay(m, ms); }", &["OB4004:2"]),
    ("task f() { for (int i = 1; i < 5; i++) { int k; k = i; sdelay(k, ms); } }", &[]),
    // Critical blocks.
    ("void w(); task f() { critical { w(); } w(); fdelay(1, ms); }", &[]),
    ("void w(); void helper() { critical { w(); } } task f() { helper(); fdelay(1, ms); }", &[]),
    ("void w(); task f() {\n critical { w(); } sdelay(1, ms); }", &["OB4005:2"]),
    ("void w(); task f() { while (1) { fdelay(1, ms); critical { w(); } } }", &[]),
    (
        "void w(); void helper() {\n critical { w(); } } task f() { helper(); sdelay(1, ms); }",
        &["OB4005:2"],
    ),
    (
        "void w(); task f(int n) {\n critical { w(); } if (n) fdelay(1, ms); else sdelay(1, ms); }",
        &["OB4005:2"],
    ),
    // Guards.
    (
        "void w(); task f(int n) { if (n) { w(); fdelay(1, ms); } else { w(); fdelay(2, ms); } }",
        &[],
    ),
    ("task f() { for (int i = 0;; i++) { if (i % 2) fdelay(1, ms); else fdelay(2, ms); } }", &[]),
    (
        "void w(); task f(int n) {\n w();\n if (n) fdelay(1, ms); else fdelay(2, ms); }",
        &["OB4006:2"],
    ),
    ("void w(); task f(int n) { w(); if (n) fdelay(1, ms); else fdelay(1000, us); }", &[]),
    ("void w(); task f(int n) { w(); if (n) fdelay(1, ms); else sdelay(2, ms); }", &[]),
    ("void w(); task f(int n) { w(); if (n) fdelay(n, ms); else fdelay(n, ms); }", &[]),
    (
        "task f(int n) {
 while (n);
 if (n) fdelay(1, ms); else fdelay(2, ms); }",
        &["OB4006:2"],
    ),
    // A loop of constant rounds is entered for certain.
    (
        "void w(); task f() { int i; while (1) { w(); for (i = 0; i < 3; i++) { w();
 fdelay(5, ms); } w(); ftp(10, 8, ms); } }",
        &[],
    ),
    (
        "void w(); task f(int n) { while (1) {\n w();
 for (int i = 0; i < n; i++) { fdelay(5, ms); } w(); fdelay(10, ms); } }",
        &["OB4006:2"],
    ),
    (
        "void w(); task f() { while (1) {\n w();\n for (int i = 3; i < 3; i++) { fdelay(5, ms); }
 w(); fdelay(10, ms); } }",
        &["OB4006:2"],
    ),
    // Behind its point the loop may be over.
    (
        "void w(); task f() { while (1) { for (int i = 0; i < 3; i++) { fdelay(5, ms);\n w(); }
 fdelay(10, ms); } }",
        &["OB4006:2"],
    ),
    // Writers.
    ("int lvchannel(c); task f() { cwrite(c, 1); } int main() { cinit(c, 0); f(); }", &[]),
    ("int lvchannel c; task f() { cwrite(c, 1); } task g() {\n cwrite(c, 2); }", &["OB4007:2"]),
    (
        "int lvchannel(c); void h() {\n cwrite(c, 1); } task f() { h(); } int main() { f(); f(); }",
        &["OB4007:2"],
    ),
    // Numbers of tasks.
    ("task f() { } int main() { do { f(); } while (0); f(); }", &[]),
    ("task f(); int main() { for (int i = 0; i < 3; i++)\n f(); }", &["OB4008:2"]),
    ("task f() { } int main() { again:\n f(); goto again; }", &["OB4008:2"]),
    ("task f() {\n f(); }", &["OB4008:2"]),
    ("task f() { } void h() { f(); } int main() { while (1)\n h(); }", &["OB4008:2"]),
    // Skipping.
    ("void w(); task f(int n) { while (1) { if (n) skipdelay; w(); sdelay(1, ms); } }", &[]),
    ("task f(int n) { sdelay(1, ms);\n skipdelay; }", &["OB4009:2"]),
    ("task f(int n) {\n skipdelay; if (n) sdelay(1, ms); else sdelay(2, ms); }", &["OB4009:2"]),
    ("task f(int skipdelay) { skipdelay; }", &[]),
    // Points in expressions.
    ("int w(); task f() { int x; w(); x = fdelay(1, ms) + 3; }", &[]),
    ("int w(); task f(int *p) { w();\n *p++ = fdelay(1, ms); }", &["OB4012:2"]),
    ("int w(); task f(int n) { w(); if (n &&\n fdelay(1, ms)) w(); }", &["OB4012:2"]),
    ("int w(); task f(int n) { w(); if (n && sdelay(1, ms)) w(); }", &[]),
    ("int w(); task f(int n) { if (n && fdelay(1, ms)) w(); }", &[]),
    ("int w(); task f(int n) { w(); int a[n];\n fdelay(1, ms); a[0] = 1; }", &["OB4012:2"]),
    ("int w(); task f(int n) { int a[n]; w(); fdelay(1, ms); a[0] = 1; }", &[]),
    ("int w(); task f() { w(); critical { w();\n fdelay(1, ms); } fdelay(1, ms); }", &["OB4012:2"]),
    // Points in called functions.
    ("void w(); void h() { w(); fdelay(1, ms); } task f() { while (1) h(); }", &[]),
    ("void w(); void h() { w(); fdelay(1, ms); } task f() { sdelay(1, ms); h(); w(); }", &[]),
    ("void w(); void h() { fdelay(1, ms); } task f() { w();\n h(); }", &["OB4012:2"]),
    ("void w(); void h() { sdelay(1, ms); } task f() { w(); h(); }", &[]),
    ("void w(); void h() { fdelay(1, ms); w(); } task f() { while (1)\n h(); }", &["OB4012:2"]),
    // Forms.
    (
        "task f() {\n fdelay();\n ftp(1, 2, 3, 4);\n sdelay(1.5, ms);\n spolicy(ROUND_ROBIN); }",
        &["OB4013:2", "OB4013:3", "OB4013:4", "OB4013:5"],
    ),
    ("int g(); task f() {\n fdelay(g(), ms); }", &["OB4013:2"]),
    ("task *f() { return 0; }", &["OB4013:1"]),
    ("task f(int n, ...) { }", &["OB4013:1"]),
    ("int fifochannel c;\nint lvchannel(d, 5);\nint fifochannel(e, 0);", &["OB4013:2", "OB4013:3"]),
    ("void w(); task f() {\n critical; w(); fdelay(1, ms); }", &["OB4013:2"]),
    ("void w(); task f() {\n critical w(); fdelay(1, ms); }", &["OB4013:2"]),
    // What is never aborted.
    ("task f() {\n fork(); fdelay(1, ms); }", &["OB4015:2"]),
    ("void h() {\n fork(); } task f() { h(); fdelay(1, ms); }", &["OB4015:2"]),
    ("task f() { critical { fork(); } fdelay(1, ms); fork(); }", &[]),
    // Network channels.
    (
        "struct channel_attrs nc_channels[] = {{.name = \"a\", .size = 8}};\n\
      task f() { struct channel *a_du = chan_create_standalone(\"a\", 0, nc_channels, 1);\n\
      uint64_t v; chan_read(a_du, &v); sdelay(1, ms); }",
        &[],
    ),
    (
        "struct channel_attrs nc_channels[] = {{.name = \"a\", .size = 8}};\n\
      task f() { struct channel *b_du = chan_create_standalone(\"b\", 0, nc_channels, 1);\n\
      struct channel *a_du = chan_create_standalone(\"a\", 1, nc_channels, 1);\n\
      int v;\n chan_send_now(a_du, &v);\n\
      chan_read(a_du, &v); fdelay(1, ms); }",
        &["OB4010:2", "OB4011:5", "OB4103:6", "OB4011:6"],
    ),
    ("struct net_fifo net_fifo_chans[] = {\n.name = \"a\", .size = 8};", &["OB4105:2"]),
    // Schedules.
    (
        "__attribute__((exectime(4, ms))) void w() { }\n\
      task f() { spolicy(FIFO_RM); while (1) { w(); fdelay(10, ms); } }\n\
      task g() { spolicy(FIFO_RM); while (1) { w(); w(); sdelay(20, ms); } }",
        &[],
    ),
    (
        "__attribute__((exectime(4, ms))) void w() { }\n\
      task f() { spolicy(FIFO_RM); while (1) { w(); fdelay(10, ms); } }\n\
      task g() { spolicy(FIFO_RM); while (1) { w(); w(); w(); w(); sdelay(20, ms); } }",
        &["OB4102:3"],
    ),
    (
        "task f() { spolicy(EDF); while (1) { __attribute__((exectime(5, 6, ms)));\n\
      stp(10, 5, ms); } }",
        &["OB4102:1"],
    ),
    // Names of users.
    (
        "struct task { int ms; }; int sec(int us) { struct task task = {us}; return task.ms; }\n\
      int critical = 3; long gettime(int a, int b) { return gettime(a, b); }\n\
      int f(int (*fdelay)(int)) { return fdelay(critical); }",
        &[],
    ),
    ("typedef int task; task f(task n) { return n; }", &[]),
];

#[test]
fn checks_tell_what_is_wrong_and_where() {
    let wrong: Vec<String> = CHECKS
        .iter()
        .map(|(text, wanted)| (text, *wanted, told(text)))
        .filter(|(_, wanted, told)| told != wanted)
        .map(|(text, wanted, told)| format!("{text}\n  expected {wanted:?}\n  told {told:?}\n"))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn on_freertos_every_statement_and_round_looks_for_an_abort() {
    let text = "void w(void);\nstatic void h(int n) { while (n--) w(); for (;;); }\n\
                task f(void) { h(1); fdelay(1, ms); }\n";
    let options = Options { target: Target::FreeRtos, ..Options::default() };
    let edited = apply(text, &translated(text, options).edits);
    assert_eq!(
        edited,
        "void w(void);\nstatic void h(int n) { while (n--) { timedc_poll(); w(); timedc_poll(); } \
         for (;;){ timedc_poll(); ; } }\n\
         void timedc_start_f(void); void * f(void) { TIMEDC_FRAME; \
         TIMEDC_GUARD(&timedc_points[0], timedc_span(1, 1000000), timedc_0); h(1); timedc_poll(); \
         timedc_0:; timedc_point(&timedc_points[0], timedc_span(1, 1000000), TIMEDC_SAME); \
         timedc_poll(); return 0; }\n"
    );
}

#[test]
fn points_are_named_by_task_and_line() {
    let text =
        "void h() {\n fdelay(5, ms); }\ntask f(int n) { h();\n stp(n, 3, ms); sdelay(1, us); }";
    let made = translated(text, Options::default());
    let names: Vec<_> = made.tasks[0].points.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(names, ["f:2", "f:4", "f:4.2"]);
    assert_eq!(made.tasks[0].points[1].period, None);
    assert_eq!(made.tasks[0].points[1].deadline.map(|d| d.as_ns()), Some(3_000_000));
}

/// Programs that hold every construct.
fn programs() -> Vec<String> {
    let directory = root().join("crates/program/tests/timedc");
    let paths = fs::read_dir(directory).expect("programs").map(|e| e.expect("an entry").path());
    paths
        .filter(|path| path.extension().is_some_and(|e| e == "c"))
        .map(|path| fs::read_to_string(path).expect("a program"))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]
    #[test]
    fn broken_programs_are_read_without_panic(
        program in 0_usize..4,
        changes in prop::collection::vec(
            (any::<prop::sample::Index>(), 0..6_usize, 0..12_usize),
            1..12,
        ),
        on_freertos in any::<bool>(),
    ) {
        let words = [
            "critical", "{", "}", "(", ")", ";", "fdelay(3, ms)", "skipdelay;", "task", ",",
            "\"", "int fifochannel(",
        ];
        let mut text = programs()[program].clone();
        for (at, length, word) in changes {
            let places: Vec<usize> = text.char_indices().map(|(i, _)| i).collect();
            let from = places[at.index(places.len())];
            let to = (from + length).min(text.len());
            if text.is_char_boundary(to) {
                text.replace_range(from..to, words[word]);
            }
        }
        let target = if on_freertos { Target::FreeRtos } else { Target::Posix };
        let made = translated(&text, Options { target, ..Options::default() });
        onbeat_program::graph::link(&[made.graph], "broken");
    }
}

/// The first segment of a task that starts late is aborted at once: at the point the end is there.
#[test]
fn no_guard_begins_before_the_network_channels_of_its_function_are_there() {
    let open = "struct channel *c_du = chan_create_standalone(\"c\", 1, rows, 1);";
    let text = format!(
        "struct channel;\nstruct row {{ int x; }} rows[1];\nvoid prepare(void);\n\
         struct channel *chan_create_standalone(const char *, int, struct row *, int);\n\
         void chan_send_now(struct channel *, int *);\n\
         task sender()\n{{\n\tint value = 0;\n\tprepare();\n\t{open}\n\
         \twhile (1) {{\n\t\tchan_send_now(c_du, &value);\n\t\tfdelay(1, ms);\n\t}}\n}}\n"
    );
    let made = whole(&text, &translated(&text, Options::default()));
    let guard = made.find("TIMEDC_GUARD").expect("a guard");
    assert!(guard > made.find(open).expect("the end"), "{made}");
}
