//! Timed C: what is accepted is translated into C that the compiler takes; what is not has a code
//! and a line.

use onbeat_model::diagnostic::{Severity, SourceFile};
use onbeat_program::source::{Edit, Expanded};
use onbeat_program::timedc::{Options, Target, Translation, translate};
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
    format!("{}\n#line 1 \"program.c\"\n{edited}\n#line 1 \"<timed c>\"\n{}", made.before, made.after)
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
const PRELUDE: &str = "#include <stdio.h>\n#include <stdint.h>\n#include <stdlib.h>\n";

/// Lets the C compiler judge.
fn compile(name: &str, generated: &str) {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let path = directory.join(format!("{name}.c"));
    fs::write(&path, format!("{PRELUDE}{generated}")).expect("a temporary file");
    let output = Command::new("gcc")
        .args(["-std=gnu11", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter"])
        .arg("-I")
        .arg(root().join("timedc/include"))
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
