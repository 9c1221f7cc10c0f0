//! Timed C with the flags that users give their C compiler, and under a debugger.

use crate::common::onbeat;
use onbeat_testkit::{Need, not_run};
use std::path::Path;
use std::process::{Command, Output};

/// Segments that only an abort ends, wherever it comes.
const PROGRAM: &str = "\
#include <stdio.h>
#include <string.h>
#include <cilktc.h>

static volatile int turns;

static int deep(int depth)
{
	char own[200];

	memset(own, depth, sizeof(own));
	while (depth == 0)
		turns++;
	return deep(depth - 1) + own[3];
}

static int wide(int depth)
{
	char own[777];

	memset(own, 1, sizeof(own));
	return own[depth] + (depth ? wide(depth - 1) : 0);
}

task aborted(int rounds)
{
	int sum = 0, lost = 0, count = 0;

	while (count < rounds) {
		critical {
			sum = wide(40);
		}
		deep(30); /* a comment
		             of two lines */
		lost = 1;
		fdelay(50, ms); int done = timedc_aborted();
		count += done;
	}
	printf(\"%d %d %d\\n\", count, sum, lost);
}

int main(void)
{
	aborted(3);
	return 0;
}
";

fn compile(directory: &Path, flags: &[&str]) {
    std::fs::write(directory.join("flags.c"), PROGRAM).expect("written");
    let mut command = onbeat();
    command.args(["cc", "flags.c", "-pthread", "-o", "flags"]).args(flags);
    let output = command.current_dir(directory).env("NO_COLOR", "1").output().expect("runs");
    assert!(output.status.success(), "{flags:?}: {}", text(&output.stderr));
}

fn text(octets: &[u8]) -> String {
    String::from_utf8_lossy(octets).into_owned()
}

fn run(command: &mut Command, directory: &Path) -> Output {
    command.current_dir(directory).env("NO_COLOR", "1").output().expect("it runs")
}

#[test]
fn aborts_go_on_at_their_points_whatever_the_flags() {
    let mut all = vec![
        vec!["-O0", "-std=c99", "-Wall", "-Wextra", "-Werror", "-Wno-infinite-recursion"],
        vec!["-O3", "-flto"],
        vec!["-O2", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"],
        vec!["-O1", "-std=c2x", "-fstack-protector-all"],
    ];
    if cfg!(target_arch = "x86_64") {
        all.push(vec!["-O2", "-fcf-protection=full"]);
        all.push(vec!["-O2", "-fcf-protection=none"]);
    }
    for flags in all {
        let directory = tempfile::tempdir().expect("a directory");
        compile(directory.path(), &flags);
        let output = run(&mut Command::new("./flags"), directory.path());
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "{flags:?}: {err}");
        assert_eq!(out, "3 41 0\n", "{flags:?}: {err}");
    }
}

#[test]
fn breakpoints_are_lines_of_the_users_file() {
    if Command::new("gdb").arg("--version").output().is_err() {
        not_run(Need::Tools, "gdb is not installed");
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    compile(directory.path(), &["-g", "-O0", "-w"]);
    let line = PROGRAM.lines().position(|l| l.contains("count += done")).expect("there") + 1;
    let at = format!("break flags.c:{line}");
    let mut gdb = Command::new("gdb");
    gdb.args(["-batch", "-nx", "-ex", "handle SIG61 nostop noprint pass"]);
    gdb.args(["-ex", &at, "-ex", "run", "-ex", "print done", "-ex", "list"]);
    gdb.args(["-ex", "clear", "-ex", "continue", "./flags"]);
    let output = run(&mut gdb, directory.path());
    let said = text(&output.stdout);
    let stop = format!(", aborted (rounds=3) at flags.c:{line}");
    assert!(said.contains(&stop), "{said}\n{}", text(&output.stderr));
    assert!(said.contains("$1 = 1"), "{said}");
    assert!(said.contains(&format!("{line}\t\t\tcount += done;")), "{said}");
    assert!(said.contains("3 41 0\n"), "{said}");
}
