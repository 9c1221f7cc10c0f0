//! The verb `cc`: as a C compiler driver, whatever it finds in the files.

use crate::common;
use crate::common::onbeat;
use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;

/// Two directories: one to work in, one for temporary files, which must be empty in the end.
struct Place {
    directory: TempDir,
    temporary: TempDir,
}

impl Place {
    fn new(files: &[(&str, &str)]) -> Self {
        let directory = || tempfile::tempdir().expect("a directory");
        let place = Self { directory: directory(), temporary: directory() };
        for (name, text) in files {
            let path = place.path().join(name);
            std::fs::create_dir_all(path.parent().expect("a directory")).expect("made");
            std::fs::write(path, text).expect("written");
        }
        place
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Runs `onbeat cc`; nothing temporary is left, whatever comes of it.
    fn cc(&self, line: &str, expected: i32) -> Output {
        self.cc_with(line, expected, &[])
    }

    fn cc_with(&self, line: &str, expected: i32, variables: &[(&str, &str)]) -> Output {
        let mut command = onbeat();
        command.arg("cc").args(line.split(' ')).current_dir(self.path());
        command.env("TMPDIR", self.temporary.path()).env("NO_COLOR", "1").env_remove("CC");
        command.envs(variables.iter().copied());
        let output = command.output().expect("onbeat runs");
        assert_eq!(output.status.code(), Some(expected), "cc {line}\n{}", said(&output));
        let left = self.temporary.path().read_dir().expect("a directory").count();
        assert_eq!(left, 0, "cc {line} leaves temporary files");
        output
    }

    fn runs(&self, program: &str) -> String {
        let output = Command::new(self.path().join(program)).output().expect("it runs");
        assert!(output.status.success(), "{}", said(&output));
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    fn files(&self) -> Vec<String> {
        let entries = self.path().read_dir().expect("a directory").flatten();
        let mut names: Vec<_> =
            entries.map(|entry| entry.file_name().into_string().expect("UTF-8")).collect();
        names.sort();
        names
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path().join(name)).expect(name)
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A Timed C program in two files, with a header beside them.
const MAIN: &str = "#include <stdio.h>\n#include \"worker.h\"\n\nint main(void)\n{\n\
                    \tif (sdelay(1, ms) >= 0) // wait\n\t\tputs(NAME \" \" __FILE__);\n\
                    \treturn helper() - __LINE__ + 8 - ANSWER;\n}\n";
const HELPER: &str = "#include \"worker.h\"\nint helper(void)\n{\n\treturn ANSWER;\n}\n";
const HEADER: &str = "#pragma once\n#define NAME \"worker\"\nint helper(void);\n";

fn two_files() -> Place {
    Place::new(&[("src/main.c", MAIN), ("src/helper.c", HELPER), ("src/worker.h", HEADER)])
}

#[test]
fn several_files_objects_and_options_make_a_program() {
    let place = two_files();
    place.cc("-c src/helper.c -DANSWER=42 -o helper.o", 0);
    place.cc("-O2 -Wall -Wextra -Werror src/main.c helper.o -lm -DANSWER=42 -o program", 0);
    assert_eq!(place.runs("program"), "worker src/main.c\n");
    assert_eq!(place.files(), ["helper.o", "program", "src"]);
    std::fs::write(place.path().join("words"), "-DANSWER=7 src/main.c\n'src/helper.c'").expect("");
    place.cc("@words", 0);
    assert_eq!(place.runs("a.out"), "worker src/main.c\n");
}

#[test]
fn the_compiler_that_cc_names_is_run_with_its_arguments() {
    let place = two_files();
    place.cc_with("src/main.c src/helper.c -o p", 0, &[("CC", "cc -DANSWER=3 '-DX=a b'")]);
    assert_eq!(place.runs("p"), "worker src/main.c\n");
    let output = place.cc_with("src/main.c", 5, &[("CC", "no-such-compiler")]);
    assert!(said(&output).contains("no-such-compiler"), "{}", said(&output));
}

#[test]
fn generated_c_is_the_users_text_with_insertions_and_compiles_by_itself() {
    let place = two_files();
    place.cc("-S src/main.c -DANSWER=1", 0);
    let generated = place.read("src/main.timed.c");
    let printed = place.cc("-S src/main.c -DANSWER=1 -o -", 0);
    assert_eq!(String::from_utf8_lossy(&printed.stdout), generated);
    let (_, text) = generated.split_once("#line 1 \"src/main.c\"\n").expect("the user's part");
    let (text, _) = text.split_once("\n#line 1 \"<timed c>\"").expect("what follows");
    assert_eq!(text.lines().count(), MAIN.lines().count());
    for (line, raw) in text.lines().zip(MAIN.lines()) {
        let (code, comment) = raw.split_once("//").unwrap_or((raw, ""));
        let is_changed = code.contains("sdelay") || code == "{" || code.contains("return");
        assert!(is_changed || line == raw, "{line} instead of {raw}");
        assert!(line.ends_with(comment), "{line} has lost its comment");
    }
    let output = place.cc("-E src/main.c -DANSWER=1", 0);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("timedc_point") && !text.contains("TIMEDC_MAIN"), "{text}");
}

#[test]
fn all_errors_of_all_files_are_shown_at_once_and_nothing_is_written() {
    let wrong = "#define WAIT(unit) fdelay(10, unit)\nint main(void)\n{\n\tWAIT(parsecs);\n\
                 \tsdelay(-1, ms);\n}\n";
    let place = Place::new(&[("a.c", wrong), ("b.c", "void f(void)\n{\n\tsdelay(1, weeks);\n}\n")]);
    for line in ["a.c b.c -o p", "-c a.c b.c", "-S a.c b.c", "a.c b.c -MD"] {
        let output = place.cc(line, 1);
        for part in ["a.c:4:", "a.c:5:", "b.c:3:", "OB4001", "OB4002", "WAIT(parsecs)", "3 errors"]
        {
            assert!(said(&output).contains(part), "{part}\n{}", said(&output));
        }
        assert_eq!(place.files(), ["a.c", "b.c"]);
    }
    let output = place.cc("a.c b.c --json", 1);
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(found["ok"], false);
    let lines = found["diagnostics"].as_array().expect("a list").iter();
    let lines: Vec<_> = lines.map(|d| (d["file"].as_str(), d["line"].as_i64())).collect();
    assert_eq!(lines, [(Some("a.c"), Some(4)), (Some("a.c"), Some(5)), (Some("b.c"), Some(3))]);
}

#[test]
fn what_the_c_compiler_finds_names_the_users_file_and_line() {
    let source = "int main(void)\n{\n\tsdelay(1, ms);\n\tint x = \"text\" * 2;\n\treturn x;\n}\n";
    let place = Place::new(&[("src/a.c", source), ("b.c", "#include \"missing.h\"\n")]);
    let output = place.cc("src/a.c", 1);
    assert!(said(&output).contains("src/a.c:4:"), "{}", said(&output));
    let output = place.cc("src/a.c --json", 1);
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(found["ok"], false, "{found}");
    assert!(!said(&output).contains("onbeat"), "{}", said(&output));
    let output = place.cc("b.c", 1);
    assert!(said(&output).contains("b.c:1:10: fatal error: missing.h"), "{}", said(&output));
    assert_eq!(place.files(), ["b.c", "src"]);
}

#[test]
fn debuggers_are_told_the_users_file_as_it_was_typed() {
    let place = two_files();
    place.cc("-g -c src/main.c -DANSWER=1 -o main.o", 0);
    let Ok(output) = Command::new("readelf")
        .args(["--debug-dump=info,decodedline", "main.o"])
        .current_dir(place.path())
        .output()
    else {
        eprintln!("readelf is missing (binutils): debug information is not looked at");
        return;
    };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let unit = text.lines().find(|line| line.contains("DW_AT_name")).unwrap_or_default();
    assert!(unit.ends_with("src/main.c"), "{unit}");
    let temporary = place.temporary.path().to_str().expect("UTF-8");
    assert!(!text.contains(temporary), "{text}");
}

#[test]
fn rules_for_make_name_the_users_files() {
    let place = two_files();
    place.cc("-c src/main.c -DANSWER=1 -MMD -o main.o", 0);
    assert_eq!(
        place.read("main.d").split_whitespace().collect::<Vec<_>>()[..3],
        ["main.o:", "src/main.c", "src/worker.h"]
    );
    place.cc("-c src/helper.c -DANSWER=1 -MMD -MP -MT x/helper.o -MF rules", 0);
    assert!(place.read("rules").starts_with("x/helper.o: src/helper.c src/worker.h\n"));
    assert_eq!(place.files(), ["helper.o", "main.d", "main.o", "rules", "src"]);
}

#[test]
fn headers_with_timing_points_are_translated_each_time_they_are_included() {
    let main = "#include <stdio.h>\n#define NAME one\n#include \"body.h\"\n#undef NAME\n\
                #define NAME two\n#include \"body.h\"\nint main(void)\n{\n\tone(); two();\n\
                \tprintf(\"%d %s\\n\", __LINE__, __FILE__);\n\treturn 0;\n}\n";
    let body = "static void NAME(void)\n{\n\tsdelay(1, ms);\n}\n";
    let place = Place::new(&[("a.c", main), ("body.h", body)]);
    place.cc("-Wall -Wextra -Werror a.c -o p", 0);
    assert_eq!(place.runs("p"), "10 a.c\n");
}

#[test]
fn files_that_are_no_c_go_to_the_c_compiler() {
    let place = Place::new(&[
        ("a.s", ".globl answer\nanswer:\n.section .note.GNU-stack,\"\",%progbits\n"),
        ("b.x", "extern char answer[];\nint main(void) { return answer == 0; }\n"),
    ]);
    place.cc("a.s -x c b.x -o p", 0);
    place.runs("p");
    assert!(!place.cc("--version", 0).stdout.is_empty());
}

#[test]
fn a_tree_that_was_not_built_is_named_with_what_to_do() {
    let place = two_files();
    let output = place.cc_with("src/main.c -DANSWER=1", 5, &[("ONBEAT_HOME", "/nonexistent")]);
    assert!(said(&output).contains("/nonexistent: set ONBEAT_HOME"), "{}", said(&output));
    let part = place.path().join("home/timedc");
    std::fs::create_dir_all(&part).expect("made");
    std::fs::write(part.join("wrapped.txt"), "").expect("written");
    std::fs::write(place.path().join("empty.c"), "int main(void) { return 0; }\n")
        .expect("written");
    let output = place.cc_with("empty.c", 5, &[("ONBEAT_HOME", "home")]);
    assert!(said(&output).contains("is missing: run `make` in home"), "{}", said(&output));
}

#[test]
fn wrong_arguments_are_refused_and_help_has_examples() {
    let place = two_files();
    for (line, part) in [("-O2", "no input files"), ("-c a.c b.c -o x", "-o names one file")] {
        let output = place.cc(line, 2);
        assert!(said(&output).contains(part), "{}", said(&output));
    }
    for line in ["--help", "a.c --help"] {
        let help = String::from_utf8(place.cc(line, 0).stdout).expect("UTF-8");
        assert!(help.contains("onbeat cc talker.c -o talker") && help.contains("--keep-phase"));
    }
}

#[test]
fn what_the_list_of_errors_calls_wrong_has_the_code_and_what_it_calls_right_has_none() {
    let list = std::fs::read_to_string(common::root().join("docs/errors.md")).expect("the list");
    let example = |section: &str, label: &str| {
        let (_, behind) = section.split_once(&format!("\n{label}:\n\n```c\n"))?;
        behind.split_once("```").map(|(text, _)| text.to_owned())
    };
    let sections: Vec<&str> = list.split("\n## ").filter(|s| s.starts_with("OB4")).collect();
    let manifest = sections.iter().find(|s| s.starts_with("OB4105")).expect("there");
    let manifest = example(manifest, "Right").expect("a manifest");
    assert!(sections.len() > 15);
    for section in sections {
        let code = &section[..6];
        let wrong = example(section, "Wrong").expect(code);
        let right = example(section, "Right").expect(code);
        let place =
            Place::new(&[("wrong.c", &wrong), ("right.c", &right), ("manifest.h", &manifest)]);
        let status = i32::from(!code.starts_with("OB41"));
        let found = said(&place.cc("-c wrong.c", status));
        assert_eq!((found.matches("OB4").count(), found.matches(code).count()), (1, 1), "{found}");
        assert_eq!(said(&place.cc("-c right.c", 0)), "", "{code}");
    }
}
