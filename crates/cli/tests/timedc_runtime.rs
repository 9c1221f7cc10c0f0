//! The run time of Timed C on Linux, on this machine alone and in runs: programs in Timed C
//! (`conformance/timedc/realtime`), and some as the translator makes them, by hand
//! (`timedc/tests`).

use crate::common::{TestSystem, library, onbeat, root, run};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// The archives of `timedc` and `compat`.
fn archives() -> &'static [PathBuf; 2] {
    static BUILT: OnceLock<[PathBuf; 2]> = OnceLock::new();
    BUILT.get_or_init(|| {
        [("timedc", "libtimedc.a"), ("compat", "libnetchan.a")].map(|(part, archive)| {
            let build = Path::new(env!("CARGO_TARGET_TMPDIR")).join(part);
            let made = Command::new("make")
                .args(["-s", "-C"])
                .arg(root().join(part))
                .arg(format!("BUILD={}", build.display()))
                .status()
                .expect("make");
            assert!(made.success());
            build.join(archive)
        })
    })
}

/// The functions that calls are diverted from.
fn wrapped() -> Vec<String> {
    let list = std::fs::read_to_string(root().join("timedc/wrapped.txt")).expect("wrapped.txt");
    list.lines().map(str::to_owned).collect()
}

/// Builds one of `timedc/tests` as `build/NAME`.
fn build(system: &TestSystem, name: &str, optimization: &str) {
    let mut more = vec![
        "-D_GNU_SOURCE".to_owned(),
        optimization.to_owned(),
        format!("-I{}", root().join("timedc/include").display()),
    ];
    more.extend(archives().iter().map(|archive| archive.display().to_string()));
    more.extend(wrapped().iter().map(|name| format!("-Wl,--wrap={name}")));
    let more: Vec<&str> = more.iter().map(String::as_str).collect();
    system.compile(&root().join("timedc/tests").join(format!("{name}.c")), name, &more);
}

/// Builds one of `conformance/timedc/realtime` as `build/NAME`.
fn translate(system: &TestSystem, name: &str, optimization: &str) {
    let output = onbeat()
        .args(["cc", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", optimization])
        .arg(root().join("conformance/timedc/realtime").join(format!("{name}.c")))
        .arg("-o")
        .arg(system.path().join("build").join(name))
        .output()
        .expect("onbeat runs");
    assert!(output.status.success(), "{}", text(&output.stderr));
}

/// A system whose host `a` has a program of `timedc/tests` with an argument.
fn system(name: &str, argument: &str, optimization: &str) -> TestSystem {
    let system = described(name, argument);
    build(&system, name, optimization);
    system
}

/// The same with a program of `conformance/timedc/realtime`.
fn translated(name: &str, argument: &str, optimization: &str) -> TestSystem {
    let system = described(name, argument);
    std::fs::create_dir_all(system.path().join("build")).expect("a directory");
    translate(&system, name, optimization);
    system
}

fn described(name: &str, argument: &str) -> TestSystem {
    TestSystem::new(&format!(
        r#"
format = 1
name = "timedc"
[run]
duration_ms = 2000
hang_timeout_s = 20
[[host]]
name = "a"
[[host]]
name = "b"
[[link]]
ends = ["a", "b"]
rate_mbps = 100
[[channel]]
name = "c"
destination = "01:00:5e:00:00:01"
stream_id = 1
class = "A"
size_octets = 8
rate_hz = 1000
talker = "a"
listeners = ["b"]
[[program]]
name = "program"
host = "a"
command = ["build/{name}", "{argument}"]
"#
    ))
}

fn text(octets: &[u8]) -> String {
    String::from_utf8_lossy(octets).into_owned()
}

/// Runs the program on this machine alone.
fn alone(system: &TestSystem, name: &str, argument: &str) -> Output {
    let program = system.path().join("build").join(name);
    let mut command = Command::new(program);
    command.arg(argument).env_remove("ONBEAT_COORDINATOR").env_remove("ONBEAT_INTERFACE");
    // What is freed shall be free, not kept for the thread.
    command.env("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0");
    command.output().expect("the program runs")
}

/// Runs it in virtual time and gives its trace.
fn traced(system: &TestSystem, more: &[(&str, &str)]) -> String {
    let trace = system.path().join("trace.csv");
    let mut command = onbeat();
    command.args(["run", "system.toml"]).current_dir(system.path()).env("ONBEAT_TRACE", &trace);
    command.envs(more.iter().copied());
    let output = command.output().expect("onbeat runs");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    std::fs::read_to_string(trace).expect("the trace")
}

#[test]
fn points_guards_and_channels_do_what_the_reference_says_in_virtual_time() {
    let expected = include_str!("../../../timedc/tests/points.csv");
    for optimization in ["-O0", "-O2"] {
        let system = system("points", "", optimization);
        assert_eq!(traced(&system, &[]), expected, "{optimization}");
    }
}

#[test]
fn two_firm_tasks_are_aborted_exactly_as_often_as_they_should() {
    let system = translated("counts", "50", "-O2");
    let expected = "slow 25 aborted 25 ended, fast 34 aborted 66 ended, 0 wrong\n";
    for time in [&[][..], &["--time", "real"]] {
        let output = run(&[&["run", "system.toml"], time].concat(), system.path(), 0);
        assert!(text(&output.stderr).contains(expected), "{}", text(&output.stderr));
    }
    // Ten seconds of this machine's time.
    let output = alone(&system, "counts", "500");
    let expected = "slow 250 aborted 250 ended, fast 334 aborted 666 ended, 0 wrong\n";
    assert_eq!(text(&output.stderr), expected);
}

#[test]
fn a_hundred_thousand_aborts_leave_no_lock_taken_and_lose_no_memory() {
    let system = translated("stress", "", "-O2");
    let output = alone(&system, "stress", "");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let expected = "100000 aborted, locks 0, descriptors +0, memory +0\n";
    assert_eq!(text(&output.stderr), expected);
}

#[test]
fn a_handler_of_the_program_ends_before_an_abort_whose_signal_it_cannot_block() {
    let system = translated("signals", "", "-O2");
    let output = alone(&system, "signals", "");
    let expected = "20 aborted, 0 handlers cut off, 0 blocked\n";
    assert_eq!(text(&output.stderr), expected);
    let output = run(&["run", "system.toml", "--time", "real"], system.path(), 0);
    assert!(text(&output.stderr).contains(expected), "{}", text(&output.stderr));
}

#[test]
fn nothing_is_allocated_between_points() {
    let system = system("allocations", "", "-O2");
    let expected = "600 aborted, 0 allocated\n";
    assert_eq!(text(&alone(&system, "allocations", "").stderr), expected);
    for time in [&[][..], &["--time", "real"]] {
        let output = run(&[&["run", "system.toml"], time].concat(), system.path(), 0);
        assert!(text(&output.stderr).contains(expected), "{}", text(&output.stderr));
    }
}

#[test]
fn values_arrive_once_in_order_and_whole_while_tasks_are_aborted() {
    let system = system("transfers", "", "-O2");
    let output = text(&alone(&system, "transfers", "").stderr);
    let expected = "50000 50000 50000 read, 0 torn, 0 in disorder, 0 backward\n";
    assert!(output.ends_with(expected), "{output}");
}

/// Compiles and runs one of the explorers.
fn explored(name: &str, flag: &str) -> Output {
    let directory = tempfile::tempdir().expect("a directory");
    let program = directory.path().join(name);
    let compiled = Command::new("cc")
        .args(["-std=gnu11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-O1"])
        .args(["-fno-strict-aliasing", flag, "-I"])
        .arg(root().join("timedc/include"))
        .arg("-I")
        .arg(root().join("crates/capi/include"))
        .arg(root().join("timedc/tests").join(format!("{name}.c")))
        .arg("-o")
        .arg(&program)
        .status()
        .expect("a C compiler");
    assert!(compiled.success());
    Command::new(program).output().expect("the explorer runs")
}

#[test]
fn channels_hold_in_every_order_of_their_steps() {
    for name in ["model_fifo", "model_latest"] {
        let output = explored(name, "-DAS_IT_IS");
        assert!(output.status.success(), "{name}: {}", text(&output.stderr));
    }
}

#[test]
fn the_explorer_finds_what_is_wrong_with_channels() {
    let asleep = explored("model_fifo", "-DWITHOUT_WAKE");
    assert!(text(&asleep.stderr).contains("a reader sleeps while a value waits"));
    assert_eq!(explored("model_latest", "-DBROKEN").status.code(), Some(1));
}

#[test]
fn a_missed_hard_deadline_ends_the_program_in_the_safe_state() {
    let system = system("ends", "run", "-O2");
    let output = alone(&system, "ends", "hard");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(70), "{said}");
    assert!(said.starts_with("safe\n") && !said.contains("it went on"), "{said}");
    assert!(said.contains("ends.c:30: task hard: hard deadline missed by "), "{said}");
}

#[test]
fn tasks_and_main_end_with_the_run() {
    let system = system("ends", "run", "-O2");
    let trace = traced(&system, &[]);
    assert_eq!(trace.matches(",end,").count(), 3, "{trace}");
    assert_eq!(trace, traced(&system, &[]));
    let _ = run(&["run", "system.toml", "--time", "real"], system.path(), 0);
}

#[test]
fn threads_that_are_no_tasks_may_call_everything() {
    let system = system("ends", "run", "-O2");
    let output = alone(&system, "ends", "threads");
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), "outside\n".to_owned()));
}

#[test]
fn declared_times_pass_on_arrival_and_the_best_case_on_demand() {
    let system = system("ends", "run", "-O2");
    let times = system.path().join("times.csv");
    std::fs::write(
        &times,
        "SRC,BCET,WCET,JITTER,ABORT,DST\n# measured\n\n\
         writes:start, 1000000.5, 1999999.5, , ,writes:39\r\nwrites:39,0,3000000,0,0,writes:39\n",
    )
    .expect("written");
    let times = times.to_str().expect("UTF-8");
    let arrivals = |case| {
        let trace =
            traced(&system, &[("ONBEAT_EXECUTION_TIMES", times), ("ONBEAT_EXECUTION", case)]);
        let lines = trace.lines().filter(|line| line.contains(",arrive,")).take(2);
        lines.map(|line| line.split(',').next().expect("a time").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(arrivals("worst"), ["2000000", "13000000"]);
    assert_eq!(arrivals("best"), ["1000000", "10000000"]);
}

#[test]
fn execution_times_of_what_the_program_does_not_have_are_an_error() {
    let system = system("ends", "run", "-O2");
    let times = system.path().join("times.csv");
    let said = |row: &str| {
        std::fs::write(&times, format!("SRC,BCET,WCET,JITTER,ABORT,DST\n{row}\n"))
            .expect("written");
        let program = Command::new(system.path().join("build/ends"))
            .env("ONBEAT_EXECUTION_TIMES", &times)
            .output()
            .expect("the program runs");
        assert_eq!(program.status.code(), Some(1));
        text(&program.stderr)
    };
    assert!(said("writes:39,0,1,0,0,writes:40").contains(":2: the program has no writes:40\n"));
    assert!(said("nobody:start,0,1,0,0,nobody:39").contains("the program has no nobody:start\n"));
    assert!(said("2,0,1,0,0,3").contains(":2: the program has not so many timing points: 3\n"));
}

#[test]
fn measurements_have_a_row_for_every_segment() {
    let system = translated("counts", "5", "-O2");
    let rows = system.path().join("rows.csv");
    let output = Command::new(system.path().join("build/counts"))
        .arg("5")
        .env("ONBEAT_MEASURE", &rows)
        .output()
        .expect("the program runs");
    assert!(output.status.success());
    let rows = std::fs::read_to_string(rows).expect("rows");
    let count = |begin: &str| rows.lines().filter(|row| row.starts_with(begin)).count();
    assert_eq!(rows.lines().next(), Some("src,dst,cpu_ns,elapsed_ns,release_jitter_ns,abort_ns"));
    let slow = [count("slow:start,slow:37,"), count("slow:37,slow:37,"), count("slow:37,slow:end")];
    assert_eq!(slow, [1, 4, 1], "{rows}");
    let aborted = |row: &&str| row.starts_with("slow:") && !row.ends_with(',');
    assert_eq!(rows.lines().filter(aborted).count(), 3, "{rows}");
}

/// The tasks get priorities in the order of their rates, or one line says that they did not.
#[test]
fn policies_are_applied_or_refused_once() {
    let system = system("policies", "", "-O2");
    let output = alone(&system, "policies", "");
    let said = text(&output.stderr);
    assert!(output.status.success(), "{said}");
    let lines: BTreeSet<String> = text(&output.stdout).lines().map(str::to_owned).collect();
    if said.is_empty() {
        let expected =
            ["deadline_8 1 79", "rate_20 2 78", "rate_5 1 80", "separate_10 1 79", "stated 1 7"];
        assert!(lines.iter().eq(expected.iter()), "{lines:?}");
    } else {
        assert_eq!(said.matches("refused").count(), 1, "{said}");
    }
}

#[test]
fn the_list_of_diverted_functions_is_that_of_the_archive() {
    let symbols = Command::new("nm").arg(&archives()[0]).output().expect("nm");
    let symbols = text(&symbols.stdout);
    let has: BTreeSet<&str> =
        symbols.lines().filter_map(|line| line.split(" T __wrap_").nth(1)).collect();
    let listed = wrapped();
    let listed: BTreeSet<&str> = listed.iter().map(String::as_str).collect();
    assert!(library().is_file());
    assert_eq!(has.difference(&listed).collect::<Vec<_>>(), Vec::<&&str>::new());
    // Those of a C library later than this one's.
    let later: Vec<_> = listed.difference(&has).filter(|n| !n.starts_with("__isoc23_")).collect();
    assert_eq!(later, Vec::<&&str>::new());
}
