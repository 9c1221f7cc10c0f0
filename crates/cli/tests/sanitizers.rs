//! The run time of Timed C, instrumented: a program that shares all that tasks can share has no
//! data race, no use of freed memory and no undefined behaviour. (That of the compatibility
//! library is looked at by its own tests.) In virtual time tasks continue one after the other: this
//! is real time.

use crate::common::root;
use onbeat_testkit::{Need, not_run};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

fn output(command: &mut Command) -> Output {
    let output = command.env("NO_COLOR", "1").output().expect("it can be started");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{said}", output.status);
    output
}

/// Whether programs with these flags can be built here, and run.
fn works(flags: &str) -> bool {
    let place = tempfile::tempdir().expect("a directory");
    let (source, program) = (place.path().join("empty.c"), place.path().join("empty"));
    std::fs::write(&source, "int main(void) { return 0; }\n").expect("written");
    let runs = |command: &mut Command| command.output().is_ok_and(|made| made.status.success());
    runs(Command::new("cc").arg(flags).arg(&source).arg("-o").arg(&program))
        && runs(&mut Command::new(program))
}

/// The functions of a sanitizer's own library.
fn functions(library: &str) -> Vec<String> {
    let found = output(Command::new("cc").arg(format!("-print-file-name={library}")));
    let path = PathBuf::from(String::from_utf8(found.stdout).expect("a path").trim());
    let table = output(Command::new("nm").args(["-D", "--defined-only"]).arg(path));
    let table = String::from_utf8(table.stdout).expect("names");
    let names = table.lines().filter_map(|line| line.split_whitespace().last());
    let own = ["__asan_", "__tsan_", "__ubsan_", "__sanitizer_"];
    names.filter(|name| own.iter().any(|own| name.starts_with(own))).map(str::to_owned).collect()
}

/// What `onbeat cc` builds with, instrumented. Calls of the sanitizer's own functions stand in the
/// run time itself: they are not made to come back before an abort.
fn home(flags: &str, own: &[String]) -> TempDir {
    let home = tempfile::tempdir().expect("a directory");
    let link_all = |from: &Path, to: &Path, except: &[&str]| {
        for entry in from.read_dir().expect("a directory").flatten() {
            if !except.iter().any(|name| entry.file_name() == *name) {
                symlink(entry.path(), to.join(entry.file_name())).expect("a link");
            }
        }
    };
    link_all(onbeat_testkit::home(), home.path(), &["compat", "timedc"]);
    for part in ["compat", "timedc"] {
        let (from, to) = (root().join(part), home.path().join(part));
        std::fs::create_dir(&to).expect("a directory");
        link_all(&from, &to, &["build", "abortable.txt"]);
        let mut make = Command::new("make");
        make.args(["-s", "-C"]).arg(&from);
        make.arg(format!("BUILD={}", to.join("build").display())).arg(format!("CFLAGS={flags}"));
        output(&mut make);
    }
    let list = root().join("timedc/abortable.txt");
    let list = std::fs::read_to_string(list).expect("a list") + "\n" + &own.join("\n") + "\n";
    std::fs::write(home.path().join("timedc/abortable.txt"), list).expect("written");
    home
}

#[test]
fn tasks_that_share_all_they_can_have_no_fault_that_a_sanitizer_finds() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/sanitized.c");
    for (flag, libraries) in [
        ("-fsanitize=thread", &["libtsan.so"][..]),
        ("-fsanitize=address,undefined", &["libasan.so", "libubsan.so"]),
    ] {
        if !works(flag) {
            not_run(Need::Machine, format_args!("programs with {flag} do not run here"));
            continue;
        }
        let own: Vec<_> = libraries.iter().flat_map(|library| functions(library)).collect();
        let flags = ["-O1", "-g", flag, "-fno-sanitize-recover=all"];
        let home = home(&flags.join(" "), &own);
        let program = home.path().join("sanitized");
        let mut cc = Command::new(env!("CARGO_BIN_EXE_onbeat"));
        cc.arg("cc").arg(&source).args(flags).arg("-pthread").arg("-o").arg(&program);
        output(cc.env("ONBEAT_HOME", home.path()));
        let ran = output(Command::new(&program).current_dir(home.path()));
        let said = String::from_utf8_lossy(&ran.stderr);
        assert!(!said.contains("Sanitizer") && !said.contains("runtime error"), "{said}");
        let mut lines: Vec<_> = str::from_utf8(&ran.stdout).expect("text").lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, ["rounds 50", "sum 20100"], "{flag}: {said}");
    }
}
