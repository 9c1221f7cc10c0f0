//! Rules about the text of sources.

use crate::{File, Finding, Tree};
use anyhow::Result;

const LINE_MAX: usize = 100;
const FILE_MAX: usize = 1_000;

/// Where `unsafe` may be: the crates that call the system or are called from C, and tests.
const UNSAFE: [&str; 5] =
    ["crates/onbeat/", "crates/run/", "crates/machine/", "crates/capi/", "crates/sim/src/actor/"];

/// The sources that people write: neither generated (which says so in its first ten lines with
/// `@generated`) nor somebody else's (in a directory `assets` or `vendor`).
pub(crate) fn written(tree: &Tree) -> impl Iterator<Item = &File> {
    tree.files.iter().filter(|file| {
        let foreign = ["/assets/", "/vendor/"].iter().any(|part| file.path.contains(part));
        let generated = file.text.lines().take(10).any(|line| line.contains("@generated"));
        file.is(&[".rs", ".c", ".h", ".cpp", ".hpp"]) && !foreign && !generated
    })
}

/// No line has more than 100 characters.
pub(crate) fn line_length(tree: &Tree) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for file in written(tree) {
        for (number, line) in file.lines() {
            let length = line.chars().count();
            if length > LINE_MAX {
                let message = format!("{length} characters, {LINE_MAX} at most");
                findings.push(Finding::new(&file.path, number, message));
            }
        }
    }
    Ok(findings)
}

/// No file has more than 1,000 lines.
pub(crate) fn file_length(tree: &Tree) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for file in written(tree) {
        let lines = file.text.lines().count();
        if lines > FILE_MAX {
            let message = format!("{lines} lines, {FILE_MAX} at most");
            findings.push(Finding::new(&file.path, None, message));
        }
    }
    Ok(findings)
}

/// Only the crates that must lift the workspace's ban on `unsafe`. The compiler does the rest.
pub(crate) fn unsafe_code(tree: &Tree) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for file in tree.files.iter().filter(|f| f.is(&[".rs"])) {
        let may = UNSAFE.iter().any(|crate_| file.path.starts_with(crate_))
            || file.path.contains("/tests/")
            || file.path.starts_with("crates/testkit/")
            || file.path.contains("/benches/");
        for (number, line) in file.lines().filter(|_| !may) {
            let lifts = ["allow", "expect", "warn"]
                .iter()
                .any(|level| line.contains(&format!("{level}(unsafe_code")));
            if lifts {
                let message =
                    "only crates that call the system, capi and tests may use unsafe code";
                findings.push(Finding::new(&file.path, number, message));
            }
        }
    }
    Ok(findings)
}

/// What is linked into programs, which may be set-user-ID ones, believes no environment of a caller
/// that has fewer rights: `onbeat::environment` in Rust, `secure_getenv` in C.
pub(crate) fn environment(tree: &Tree) -> Result<Vec<Finding>> {
    let library = ["capi", "description", "model", "net", "onbeat", "run", "runtime"]
        .map(|name| format!("crates/{name}/src/"));
    let mut findings = Vec::new();
    let c = ["timedc/src/", "compat/src/", "lf/src/"];
    for file in &tree.files {
        let begins = |start: &&str| file.path.starts_with(*start);
        let is_rust = library.iter().any(|start| file.path.starts_with(start))
            && !file.is(&["/environment.rs", "tests.rs"]);
        let words: &[&str] = match () {
            () if file.is(&[".rs"]) && is_rust => &["env::var", "env::var_os"],
            () if file.is(&[".c"]) && c.iter().any(begins) => &["= getenv", "(getenv", "!getenv"],
            () => &[],
        };
        for (number, line) in file.lines() {
            if words.iter().any(|word| has_word(line, word)) {
                let message = "the environment may be a stranger's: read it by secure_getenv";
                findings.push(Finding::new(&file.path, number, message));
            }
        }
    }
    Ok(findings)
}

/// The command opens and reads files in one place, which wants regular files and has limits.
pub(crate) fn reading(tree: &Tree) -> Result<Vec<Finding>> {
    let words = ["fs::read", "read_to_string", "File::open", "read(true)"];
    let mut findings = Vec::new();
    for file in &tree.files {
        let is_command = file.path.starts_with("crates/cli/src/")
            && !file.is(&["cli/src/input.rs", "/tests.rs"]);
        let product = file.lines().take_while(|(_, line)| *line != "#[cfg(test)]");
        for (number, line) in product.filter(|_| is_command) {
            if words.iter().any(|word| has_word(line, word)) {
                let message = "a file may be a pipe, a device or endless: read it by `input`";
                findings.push(Finding::new(&file.path, number, message));
            }
        }
    }
    Ok(findings)
}

/// Nothing is left for later.
pub(crate) fn unfinished(tree: &Tree) -> Result<Vec<Finding>> {
    // In two parts, so that this file has none of them.
    let marks = [
        concat!("TO", "DO"),
        concat!("FIX", "ME"),
        concat!("unimple", "mented!"),
        concat!("to", "do!"),
    ];
    let mut findings = Vec::new();
    for file in tree.files.iter().filter(|f| !f.path.contains("/assets/")) {
        for (number, line) in file.lines() {
            for mark in marks.iter().filter(|mark| has_word(line, mark)) {
                let message = format!("`{mark}`: do it or leave it out");
                findings.push(Finding::new(&file.path, number, message));
            }
        }
    }
    Ok(findings)
}

/// Whether `line` has `word` with no letter, digit or `_` before or after it.
pub(crate) fn has_word(line: &str, word: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        !before.is_some_and(part) && !after.is_some_and(|c| part(c) && !word.ends_with('!'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree;

    #[test]
    fn long_lines_and_files_are_found_unless_generated_or_foreign() {
        let line = "é".repeat(101);
        let file = "x\n".repeat(1_001);
        let generated = format!("/* @generated */\n{line}\n{file}");
        let found = tree(&[
            ("a.c", &line),
            ("assets/b.h", &file),
            ("x/assets/b.h", &file),
            ("c.h", &generated),
            ("d.md", &line),
        ]);
        assert_eq!(line_length(&found).unwrap().len(), 1);
        assert_eq!(file_length(&found).unwrap().len(), 1);
        let kept = tree(&[("a.c", &"é".repeat(100)), ("b.h", &"x\n".repeat(1_000))]);
        assert!(line_length(&kept).unwrap().is_empty() && file_length(&kept).unwrap().is_empty());
    }

    #[test]
    fn unsafe_code_outside_crates_that_call_the_system_and_tests_is_found() {
        let lift = concat!("#![allow(", "unsafe_code)]");
        let tree = tree(&[
            ("crates/onbeat/src/a.rs", lift),
            ("crates/net/tests/a.rs", lift),
            ("crates/net/src/a.rs", lift),
        ]);
        let findings = unsafe_code(&tree).unwrap();
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].path, "crates/net/src/a.rs");
    }

    #[test]
    fn an_environment_that_is_believed_is_found_in_libraries_only() {
        let rust = concat!("let x = std::env::", "var_os(X);");
        for (path, text, found) in [
            ("crates/onbeat/src/a.rs", rust, 1),
            ("crates/onbeat/src/environment.rs", rust, 0),
            ("crates/onbeat/src/a/tests.rs", rust, 0),
            ("crates/cli/src/a.rs", rust, 0),
            ("crates/onbeat/src/a.rs", "crate::environment::var_os(X)", 0),
            ("timedc/src/a.c", "x = getenv(NAME);", 1),
            ("compat/src/a.c", "x = secure_getenv(NAME);", 0),
            ("examples/a.c", "x = getenv(NAME);", 0),
        ] {
            let findings = environment(&tree(&[(path, text)])).unwrap();
            assert_eq!(findings.len(), found, "{path}: {text}");
        }
    }

    #[test]
    fn a_file_that_the_command_reads_by_itself_is_found_but_in_tests() {
        let own = "let text = std::fs::read_to_string(path);\nfs::read_dir(path);\n";
        let text = format!("{own}#[cfg(test)]\nmod tests {{\n{own}}}");
        let tree = tree(&[
            ("crates/cli/src/run.rs", &text),
            ("crates/cli/src/input.rs", own),
            ("crates/cli/src/capture/tests.rs", own),
            ("crates/measure/src/lib.rs", own),
        ]);
        let found = reading(&tree).unwrap();
        let places: Vec<_> = found.iter().map(|f| (f.path.as_str(), f.line)).collect();
        assert_eq!(places, [("crates/cli/src/run.rs", Some(1))]);
    }

    #[test]
    fn what_is_left_for_later_is_found_as_a_word() {
        let mark = concat!("TO", "DO");
        for (text, found) in [
            (format!("// {mark}: more"), 1),
            (concat!("fn f() { unimple", "mented!() }").to_owned(), 1),
            (format!("{mark}S and NO{mark}"), 0),
        ] {
            assert_eq!(unfinished(&tree(&[("a.rs", &text)])).unwrap().len(), found, "{text}");
        }
    }
}
