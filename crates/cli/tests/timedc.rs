//! The conformance suite of Timed C, `conformance/timedc`: every file is a case and says itself
//! what must come of it. Programs that are accepted run in virtual time; their trace, output and
//! status are compared with what the file states.

use crate::common;
use crate::trace;
mod case;
mod execute;

use case::Case;
use execute::{Diagnosed, Program, compile};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The directory of a kind of cases.
fn directory(kind: &str) -> PathBuf {
    common::root().join("conformance/timedc").join(kind)
}

/// Passes every case of a kind to `check`, on all cores, and panics with what is wrong.
/// `TIMEDC_CASE` in the environment chooses cases by a part of their names.
fn all(kind: &str, check: impl Fn(usize, &Case) -> Result<(), String> + Sync) {
    let mut paths: Vec<_> = directory(kind)
        .read_dir()
        .expect("the suite")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|end| end == "c"))
        .collect();
    paths.sort();
    assert!(!paths.is_empty(), "no cases in {}", directory(kind).display());
    let chosen = std::env::var("TIMEDC_CASE").unwrap_or_default();
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some((at, path)) = take(&next, &paths) {
                    let case = Case::read(path);
                    if !case.name.contains(&chosen) {
                        continue;
                    }
                    if let Err(reason) = check(at, &case) {
                        let line = format!("{kind}/{}.c: {}\n{reason}", case.name, case.meaning);
                        wrong.lock().expect("no check panics").push(line);
                    }
                }
            });
        }
    });
    let mut wrong = wrong.into_inner().expect("no check panics");
    wrong.sort();
    let count = wrong.len();
    assert!(wrong.is_empty(), "{count} of {} fail\n\n{}", paths.len(), wrong.join("\n\n"));
}

fn take<'a>(next: &AtomicUsize, paths: &'a [PathBuf]) -> Option<(usize, &'a PathBuf)> {
    let at = next.fetch_add(1, Ordering::Relaxed);
    paths.get(at).map(|path| (at, path))
}

/// Compiles and runs a case, and compares all that it states.
fn runs_as_stated(at: usize, case: &Case) -> Result<(), String> {
    let program = compile(case, "-O2")?;
    diagnosed_as_stated(case, &program)?;
    if case.duration.is_empty() {
        return Ok(());
    }
    let first = program.run(case)?;
    first.compare(case)?;
    // What a compiler's optimiser may change, and whether a run repeats: for a third of the cases
    // each, so that the suite stays quick.
    let (again, how) = match at % 3 {
        0 => (compile(case, "-O0")?.run(case)?, "without optimisation"),
        1 => (program.run(case)?, "in a second run"),
        _ => return Ok(()),
    };
    trace::equal(&first.trace, &again.trace).map_err(|e| format!("other {how}:\n{e}"))
}

fn diagnosed_as_stated(case: &Case, program: &Program) -> Result<(), String> {
    match program.diagnosed == case.diagnostics {
        true => Ok(()),
        false => Err(format!(
            "stated:\n{}\nsaid:\n{}\nin full:\n{}",
            show(&case.diagnostics),
            show(&program.diagnosed),
            program.said
        )),
    }
}

fn show(diagnosed: &[Diagnosed]) -> String {
    let lines: Vec<_> = diagnosed.iter().map(|d| format!("  {d}")).collect();
    lines.join("\n")
}

#[test]
fn accepted_programs_run_as_they_state() {
    all("accepted", runs_as_stated);
}

#[test]
fn programs_with_warnings_run_as_they_state() {
    all("warned", runs_as_stated);
}

#[test]
fn rejected_programs_are_rejected_for_what_they_state() {
    all("rejected", |_, case| {
        let program = compile(case, "-O0")?;
        diagnosed_as_stated(case, &program)?;
        match program.is_there() {
            true => Err("an executable was made".to_owned()),
            false => Ok(()),
        }
    });
}

#[test]
fn stated_traces_are_possible() {
    all("accepted", |_, case| match case.trace.is_empty() || case.duration.is_empty() {
        true => Err("it states no trace".to_owned()),
        false => trace::possible(&case.trace),
    });
    all("warned", |_, case| match case.diagnostics.is_empty() {
        true => Err("it states no warning".to_owned()),
        false => trace::possible(&case.trace),
    });
    all("rejected", |_, case| match case.diagnostics.iter().any(|d| d.severity == "error") {
        true => Ok(()),
        false => Err("it states no error".to_owned()),
    });
}

/// Cases with several sources, flags and labels are run through [`Program::run`]; this is how users
/// run one.
#[test]
fn a_case_runs_by_its_name_alone() {
    let case = Case::read(&directory("accepted").join("listing_2.c"));
    let out = tempfile::tempdir().expect("a directory");
    let traces = out.path().join("traces");
    std::fs::create_dir(&traces).expect("a directory");
    let output = common::onbeat()
        .args(["run", "listing_2.c", "--duration", &case.duration, "--task-trace"])
        .arg(&traces)
        .arg("--out")
        .arg(out.path().join("out"))
        .current_dir(&case.directory)
        .output()
        .expect("onbeat");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    for line in &case.output {
        assert!(said.lines().any(|l| l.ends_with(line)), "`{line}` in {said}");
    }
    let files: Vec<_> = traces.read_dir().expect("traces").flatten().collect();
    assert_eq!(files.len(), 1, "{files:?}");
    let text = std::fs::read_to_string(files[0].path()).expect("text");
    let mut trace = trace::read(&text).expect("a trace");
    trace.retain(|event| event.time_ns < trace::nanoseconds(&case.duration).expect("a span"));
    trace::equal(&case.trace, &trace).unwrap_or_else(|difference| panic!("{difference}"));
}

/// In real time, where the machine has a date that could be looked at.
#[test]
fn the_date_is_never_read_in_real_time() {
    let case = Case::read(&directory("accepted").join("date_is_never_read.c"));
    let program = compile(&case, "-O2").expect("it compiles");
    let output = program.alone().output().expect("it runs");
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(said.lines().collect::<Vec<_>>(), case.output);
}
