//! Programs that a run compiles: of a description, and by themselves.

use crate::common::{self, TestSystem, onbeat, run, two_hosts};
use std::path::Path;

/// Sleeps to each tenth of a second and prints its arguments and the time.
const SLEEPER: &str = r#"
#include <onbeat.h>
#include <stdio.h>
#include <stdlib.h>

int helper(void);

int main(int count, char **arguments)
{
	onbeat *run;
	int64_t now;
	const char *times = getenv("ONBEAT_EXECUTION_TIMES"), *trace = getenv("ONBEAT_TRACE");

	if (onbeat_open(&run) != ONBEAT_OK || onbeat_start(run) != ONBEAT_OK)
		return 1;
	printf("%d %s %s %s\n", helper(), count > 1 ? arguments[1] : "", times ? times : "-",
	       trace ? trace : "-");
	for (int i = 1; onbeat_sleep_until(run, i * 100000000ll, &now) == ONBEAT_OK; i++)
		printf("at %lld\n", (long long)now);
	onbeat_close(run);
	return 0;
}
"#;

const HELPER: &str = "int helper(void)\n{\n\treturn ANSWER;\n}\n";

fn write(directory: &Path, name: &str, text: &str) {
    std::fs::write(directory.join(name), text).expect("written");
}

#[test]
fn a_description_names_sources_flags_arguments_and_execution_times() {
    let program = r#"
[[program]]
name = "left"
host = "a"
source = ["sleeper.c", "helper.c"]
cflags = ["-DANSWER=42", "-O2"]
arguments = ["hello"]
execution_times = "times.csv"
"#;
    let system = TestSystem::new(&two_hosts(program));
    let at = system.path();
    write(at, "sleeper.c", SLEEPER);
    write(at, "helper.c", HELPER);
    write(at, "times.csv", "task:start,1,2,0,0,task:16\n");
    run(&["check", "."], at, 0);
    let output = run(&["run", ".", "--task-trace", "trace"], at, 0);
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    let at = at.canonicalize().expect("a directory");
    let (times, trace) = (at.join("times.csv"), at.join("trace/left.csv"));
    let first = format!("42 hello {} {}\n", times.display(), trace.display());
    assert!(said.contains(&first), "{said}");
    assert!(said.contains("at 500000000\n"), "{said}");
    assert!(at.join("out-build/left").is_file());
}

#[test]
fn sources_that_do_not_compile_end_it_before_anything_is_run() {
    let program = "[[program]]\nname = \"left\"\nhost = \"a\"\nsource = [\"wrong.c\"]\n";
    let system = TestSystem::new(&two_hosts(program));
    write(system.path(), "wrong.c", "int main(void)\n{\n\treturn nothing;\n}\n");
    let output = run(&["run", "."], system.path(), 1);
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(said.contains("wrong.c:3") && said.contains("OB3002"), "{said}");
    assert!(!system.path().join("out").exists());
}

#[test]
fn c_files_run_by_themselves_in_either_time() {
    let directory = tempfile::tempdir().expect("a directory");
    let at = directory.path();
    write(at, "sleeper.c", SLEEPER);
    write(at, "helper.c", &HELPER.replace("ANSWER", "7"));
    for time in ["virtual", "real"] {
        let arguments = ["run", "sleeper.c", "helper.c", "--time", time, "--duration", "300ms"];
        let output = run(&arguments, at, 0);
        let said = String::from_utf8(output.stderr).expect("UTF-8");
        assert!(said.contains("7  - -\n"), "{said}");
        assert!(time == "real" || said.ends_with("at 300000000\n"), "{said}");
        let shown = String::from_utf8(output.stdout).expect("UTF-8");
        let expected = format!("`sleeper`: 300 ms of {time} time, to the end, all ended well\n");
        assert!(shown.starts_with(&expected), "{shown}");
        let report = std::fs::read_to_string(at.join("out/report.html")).expect("a report");
        assert!(report.contains("Ended well: sleeper."), "the report tells of the program");
        assert!(report.contains("onbeat run sleeper.c helper.c --time"), "and how to run it");
    }
}

#[test]
fn a_program_that_fails_ends_the_run_and_is_named() {
    let directory = tempfile::tempdir().expect("a directory");
    write(directory.path(), "fails.c", "int main(void)\n{\n\treturn 3;\n}\n");
    let output = run(&["run", "fails.c"], directory.path(), 4);
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(said.contains("program `fails` ended (exit status: 3)"), "{said}");
}

#[test]
fn a_run_is_of_one_description_or_of_c_files() {
    let output = onbeat().args(["run", "one", "two"]).output().expect("onbeat runs");
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("one description, or of C files"), "{said}");
}

#[test]
fn a_companion_that_never_joins_is_ended_with_the_run() {
    let directory = tempfile::tempdir().expect("a directory");
    let place = directory.path();
    let text = "#include <cilktc.h>\ntask t()\n{\n\twhile (1)\n\t\tsdelay(10, ms);\n}\n\
                int main(void) { t(); }\n";
    std::fs::write(place.join("p.c"), text).expect("a program");
    // It would continue for much longer than the run, and says who it is.
    let load = "echo $$ > pid; exec sleep 3600";
    let programs = format!(
        "[[program]]\nname = \"p\"\nhost = \"host\"\nsource = [\"p.c\"]\n\
         [[program]]\nname = \"load\"\nhost = \"host\"\njoins = false\n\
         command = [\"sh\", \"-c\", \"{load}\"]\n"
    );
    std::fs::write(place.join("system.toml"), format!("{}{programs}", common::ONE_HOST))
        .expect("a description");
    for time in ["virtual", "real"] {
        let arguments = ["run", "system.toml", "--time", time, "--duration", "300ms"];
        common::run(&arguments, place, 0);
        if time == "real" {
            let pid = std::fs::read_to_string(place.join("pid")).expect("it was started");
            assert!(!std::path::Path::new("/proc").join(pid.trim()).exists(), "it still runs");
        }
    }
    // One that fails is no load.
    let failing = programs.replace(load, "exit 3");
    std::fs::write(place.join("system.toml"), format!("{}{failing}", common::ONE_HOST))
        .expect("a description");
    let output =
        common::run(&["run", "system.toml", "--time", "real", "--duration", "300ms"], place, 4);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("program `load` ended"), "{said}");
}
