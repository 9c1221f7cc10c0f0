//! Tests that cannot run where they are: they say so, and fail where they have to run.

use std::fmt;
use std::io::Write;

/// Names a file that gets a line for each test, or part of one, that did not run.
pub const NOT_RUN: &str = "ONBEAT_NOT_RUN";
/// Says what is required, by the names of [`Need`] with spaces between them: whoever cannot run for
/// want of it fails.
pub const REQUIRE: &str = "ONBEAT_REQUIRE";

/// What a test needs that not every machine has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// A program that `make test` installs.
    Tools,
    /// The rights of the superuser.
    Superuser,
    /// Network namespaces and what joins them.
    Namespaces,
    /// A property of machine or kernel that nothing can install; never required.
    Machine,
}

impl Need {
    /// What it is called in [`REQUIRE`].
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Superuser => "superuser",
            Self::Namespaces => "namespaces",
            Self::Machine => "machine",
        }
    }
}

/// The calling test, or a part of it, does not run for want of something. Says so on standard
/// error and in the file that [`NOT_RUN`] names.
///
/// # Panics
/// Where that is required, by [`REQUIRE`].
pub fn not_run(need: Need, why: impl fmt::Display) {
    let test = std::thread::current();
    let line = line(test.name().unwrap_or("a thread of a test"), need, &why.to_string());
    eprint!("{line}");
    if let Some(path) = std::env::var_os(NOT_RUN) {
        let file = std::fs::File::options().append(true).create(true).open(&path);
        // One write: other test processes append to the file, too.
        let written = file.and_then(|mut file| file.write_all(line.as_bytes()));
        written.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
    let required = std::env::var(REQUIRE).unwrap_or_default();
    assert!(!requires(&required, need), "{REQUIRE} wants `{}`: {line}", need.name());
}

fn line(test: &str, need: Need, why: &str) -> String {
    let why: Vec<&str> = why.split_whitespace().collect();
    format!("not run: {test} ({}): {}\n", need.name(), why.join(" "))
}

fn requires(required: &str, need: Need) -> bool {
    need != Need::Machine && required.split_whitespace().any(|name| name == need.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_did_not_run_is_one_line_with_the_test_and_the_need() {
        let told = line("a_test", Need::Tools, "two\nlines  here");
        assert_eq!(told, "not run: a_test (tools): two lines here\n");
    }

    #[test]
    fn only_what_is_named_is_required_and_never_the_machine() {
        assert!(requires("superuser tools", Need::Tools));
        assert!(!requires("superuser", Need::Tools));
        assert!(!requires("", Need::Namespaces));
        assert!(!requires("machine", Need::Machine));
    }

    /// This test again, in a process of its own, where its file and what is required are named.
    #[test]
    fn it_is_written_down_and_fails_where_it_is_required() {
        const CHILD: &str = "ONBEAT_TESTKIT_CHILD";
        if std::env::var_os(CHILD).is_some() {
            not_run(Need::Superuser, "nobody is");
            return;
        }
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("not-run");
        let run = |required: &str| {
            let name = "not_run::tests::it_is_written_down_and_fails_where_it_is_required";
            std::process::Command::new(std::env::current_exe().expect("this test"))
                .args(["--exact", name])
                .env(CHILD, "1")
                .env(NOT_RUN, &file)
                .env(REQUIRE, required)
                .output()
                .expect("this test again")
        };
        assert!(run("tools namespaces").status.success());
        assert!(!run("tools superuser").status.success());
        let text = std::fs::read_to_string(&file).expect("the file");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2, "{text}");
        assert!(lines.iter().all(|line| line.ends_with("(superuser): nobody is")), "{text}");
    }
}
