//! Timed C's run time for FreeRTOS, over the shim: what tasks do in which tick. The shim is not
//! FreeRTOS (`docs/timed-c-freertos.md` says what that leaves open).

use crate::common::root;
use std::path::PathBuf;
use std::process::{Command, Output};

fn directory() -> PathBuf {
    root().join("timedc/freertos")
}

/// The C compiler with what the file for the driver says: its flags for programs, if it is one.
fn compiler(is_program: bool) -> Command {
    let text = std::fs::read_to_string(directory().join("sources.txt")).expect("sources.txt");
    let mut compiler = Command::new("cc");
    compiler.args(["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror"]);
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        match line.split_once(' ').expect("a keyword and a word") {
            ("include-own", path) => drop(compiler.arg("-I").arg(directory().join(path))),
            ("flag", flag) => drop(compiler.arg(flag)),
            ("program-flag", flag) if is_program => drop(compiler.arg(flag)),
            _ => {}
        }
    }
    compiler.arg("-I").arg(directory().join("shim"));
    compiler.arg("-I").arg(root().join("timedc/include"));
    compiler
}

fn run(command: &mut Command) -> Output {
    command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

fn fine(output: &Output) {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// What the program of a test prints when the kernel's tick count starts at `first_tick`, and its
/// status.
fn printed(name: &str, first_tick: u32) -> (String, Option<i32>) {
    let place = tempfile::tempdir().expect("a directory");
    let object = place.path().join("program.o");
    let source = directory().join("tests").join(name);
    let define = format!("-DFIRST_TICK={first_tick}u");
    let mut program = compiler(true);
    fine(&run(program.arg(define).arg("-c").arg(source).arg("-o").arg(&object)));
    let binary = place.path().join("program");
    let sources = ["src/timedc_freertos.c", "src/host.c", "shim/posix.c"];
    let mut linked = compiler(false);
    linked
        .args(["-Wpedantic", "-Wl,--wrap=main"])
        .args(sources.map(|s| directory().join(s)))
        .arg(object);
    fine(&run(linked.arg("-o").arg(&binary)));
    let output = run(&mut Command::new(binary));
    (String::from_utf8(output.stdout).expect("text"), output.status.code())
}

#[test]
fn firm_tasks_are_aborted_in_the_tick_of_their_deadline_and_by_rank() {
    let expected = std::fs::read_to_string(directory().join("tests/two_tasks.out"));
    let expected = (expected.expect("two_tasks.out"), Some(3));
    assert_eq!(printed("two_tasks.c", 0), expected);
    // The count of the kernel has 32 bits, and wraps.
    assert_eq!(printed("two_tasks.c", u32::MAX - 4), expected);
}

#[test]
fn a_missed_hard_point_ends_the_program_with_a_line_that_names_it() {
    let place = tempfile::tempdir().expect("a directory");
    let binary = place.path().join("program");
    let sources = ["tests/hard.c", "shim/posix.c", "src/timedc_freertos.c"];
    let mut whole = compiler(false);
    whole.args(sources.map(|s| directory().join(s)));
    fine(&run(whole.arg("-o").arg(&binary)));
    let output = run(&mut Command::new(binary));
    assert_eq!(output.status.code(), Some(70));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "safe\n");
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "onbeat: task main: the hard timing point at hard.c:7 was missed by 3000000 ns\n"
    );
}

/// What the compiler says first of a program that cannot be for FreeRTOS.
fn refusal(text: &str) -> String {
    let place = tempfile::tempdir().expect("a directory");
    let source = place.path().join("program.c");
    std::fs::write(&source, text).expect("program.c");
    let output = run(compiler(true).arg("-fsyntax-only").arg(source));
    assert!(!output.status.success(), "it is not for FreeRTOS");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    said.lines().find(|line| line.contains("error:")).unwrap_or_default().to_owned()
}

#[test]
fn what_freertos_does_not_have_is_refused_in_one_line() {
    let edf = refusal("void f(void) { timedc_spolicy(TIMEDC_EDF); }\n");
    assert!(edf.contains("FreeRTOS has fixed priorities only: EDF is not available"), "{edf}");
    for header in ["netchan.h", "timedc_avtp.h"] {
        let error = refusal(&format!("#include <{header}>\n"));
        assert!(error.contains("network channels are not available on FreeRTOS"), "{error}");
    }
    let fine = compiler(true).args(["-fsyntax-only", "-x", "c", "/dev/null"]).output();
    assert!(fine.expect("a compiler").status.success());
}

/// A directory that is laid out as the kernel's, made of the shim.
fn kernel() -> tempfile::TempDir {
    let place = tempfile::tempdir().expect("a directory");
    let text = std::fs::read_to_string(directory().join("sources.txt")).expect("sources.txt");
    for line in text.lines() {
        let (path, is_file) = match line.split_once(' ') {
            Some(("kernel", file)) => (place.path().join(file), true),
            Some(("include-kernel", directory)) => (place.path().join(directory), false),
            _ => continue,
        };
        let parent = if is_file { path.parent().expect("a parent") } else { &path };
        std::fs::create_dir_all(parent).expect("a directory");
        if is_file {
            std::fs::write(path, "").expect("a file");
        }
    }
    let shim = directory().join("shim");
    std::fs::copy(shim.join("posix.c"), place.path().join("tasks.c")).expect("posix.c");
    for header in ["FreeRTOS.h", "task.h", "queue.h", "shim.h"] {
        let target = place.path().join("include").join(header);
        std::fs::copy(shim.join(header), target).expect(header);
    }
    place
}

#[test]
fn a_program_is_built_with_a_kernels_tree_and_ends_with_status_0() {
    let kernel = kernel();
    let binary = kernel.path().join("program");
    let mut cc = Command::new(env!("CARGO_BIN_EXE_onbeat"));
    cc.env("ONBEAT_HOME", root()).args(["cc", "-O2", "--target", "freertos", "--kernel"]);
    cc.arg(kernel.path()).arg("-I").arg(directory().join("shim"));
    fine(&run(cc.arg(directory().join("tests/abort.c")).arg("-o").arg(&binary)));
    let output = run(&mut Command::new(binary));
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let expected = std::fs::read_to_string(directory().join("tests/abort.out"));
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected.expect("abort.out"));
}
