//! Random Timed C: what compiled programs do, in virtual time, is what the reference says, read
//! directly; and what cannot be compiled is refused for the reason that the reference gives.

use crate::trace;
mod generate;
mod machine;

use crate::common::{ONE_HOST, onbeat};
use machine::{Program, Verdict};
use onbeat_testkit::Random;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

/// How long programs run.
const END_NS: i64 = 400_000_000;

/// What stands before the tasks.
const HEAD: &str = "\
#include <stdio.h>
#include <cilktc.h>
#pragma GCC diagnostic ignored \"-Wsign-compare\"

static void late(const struct timedc_late *point) { (void)point; }
static void note(int task, int value) { printf(\"%d %d\\n\", task, value); }
static int take_0(int x) { return x; }
__attribute__((exectime(1, ms))) static int take_1(int x) { return x; }
__attribute__((exectime(2, ms))) static int take_2(int x) { return x; }
static int take_3(int x) { __attribute__((exectime(1, ms))); return take_2(x); }
static int take_4(int x) { for (int i = 0; i < 4; i++) take_1(x); return x; }

";

/// A task model that the verdict is about, with the line in which each begins.
fn file(seed: u64, wanted: fn(&Verdict) -> bool, count: usize) -> (String, Vec<(usize, Program)>) {
    let mut random = Random(seed);
    let (mut text, mut tasks) = (HEAD.to_owned(), Vec::new());
    let mut number = 0;
    while tasks.len() < count {
        number += 1;
        let line = text.matches('\n').count() + 1;
        let (body, program) = generate::task(&mut random, number, line);
        if wanted(&program.verdict()) {
            text.push_str(&body);
            text.push('\n');
            tasks.push((line, program));
        }
    }
    text.push_str("int main(void)\n{\n");
    for (_, task) in &tasks {
        let _ = writeln!(text, "\t{}();", task.name);
    }
    text.push_str("\treturn 0;\n}\n");
    (text, tasks)
}

/// The seeds: `TIMEDC_SEED=N` for one.
fn seeds() -> Vec<u64> {
    let one = std::env::var("TIMEDC_SEED").ok().and_then(|s| s.parse().ok());
    one.map_or_else(|| vec![1, 2], |seed| vec![seed])
}

fn compile(directory: &Path, text: &str, flags: &[&str]) -> (bool, String) {
    std::fs::write(directory.join("random.c"), text).expect("written");
    let output = onbeat()
        .args(["cc", "random.c", "-pthread", "-o", "random"])
        .args(flags)
        .current_dir(directory)
        .env("NO_COLOR", "1")
        .output()
        .expect("onbeat runs");
    (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
}

const PROGRAM: &str = r#"
[[program]]
name = "random"
host = "host"
command = ["/bin/sh", "-c", "./random >output"]
"#;

#[test]
fn random_programs_do_what_the_reference_says() {
    for seed in seeds() {
        let (text, tasks) = file(seed, |v| *v == Verdict::Accepted, 40);
        let mut expected = Vec::new();
        let mut notes = BTreeMap::new();
        for (_, task) in &tasks {
            let outcome = task.run(END_NS);
            expected.extend(outcome.trace);
            notes.insert(task.name.clone(), outcome.notes);
        }
        for level in ["-O0", "-O2", "-O3"] {
            let directory = tempfile::tempdir().expect("a directory");
            let path = directory.path();
            let (is_made, said) = compile(path, &text, &[level, "-Wall", "-Wextra", "-Werror"]);
            assert!(is_made && said.is_empty(), "seed {seed} {level}: {}\n{said}", kept(&text));
            let system = format!("{ONE_HOST}{PROGRAM}");
            std::fs::write(path.join("system.toml"), system).expect("written");
            let run = onbeat()
                .args(["run", "system.toml", "--duration", "400ms"])
                .current_dir(path)
                .env("ONBEAT_TRACE", path.join("trace.csv"))
                .output()
                .expect("onbeat runs");
            assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
            let read = |name: &str| std::fs::read_to_string(path.join(name)).expect("written");
            let mut actual = trace::read(&read("trace.csv")).expect("a trace");
            actual.retain(|e| e.time_ns < END_NS && e.task != "main");
            if let Err(difference) = trace::equal(&expected, &actual) {
                panic!("seed {seed} {level}: {}\n{difference}", kept(&text));
            }
            let printed = printed(&read("output"));
            for (name, notes) in &notes {
                let came = printed.get(name).cloned().unwrap_or_default();
                // What is printed at the run's very end is no matter.
                assert!(came.starts_with(notes), "seed {seed} {level} {name}: {notes:?} {came:?}");
            }
        }
    }
}

/// Where the program of a failed test is.
fn kept(text: &str) -> String {
    let path = std::env::temp_dir().join("onbeat-random.c");
    std::fs::write(&path, text).expect("written");
    path.display().to_string()
}

/// What each task has printed.
fn printed(output: &str) -> BTreeMap<String, Vec<i64>> {
    let mut all: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    for line in output.lines() {
        let (task, value) = line.split_once(' ').expect("two numbers");
        let value = value.parse().expect("a number");
        all.entry(format!("task_{task}")).or_default().push(value);
    }
    all
}

#[test]
fn random_programs_are_refused_for_what_the_reference_says() {
    for seed in seeds() {
        let (text, tasks) = file(seed, |v| matches!(v, Verdict::Refused(_)), 40);
        let directory = tempfile::tempdir().expect("a directory");
        let (is_made, said) = compile(directory.path(), &text, &[]);
        assert!(!is_made, "seed {seed}: {}", kept(&text));
        let mut codes: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        let mut code = String::new();
        for line in said.lines() {
            if let Some(rest) = line.strip_prefix("error[") {
                rest.split(']').next().unwrap_or_default().clone_into(&mut code);
            } else if let Some((_, place)) = line.split_once("--> ")
                && let Some(number) = place.split(':').nth(1)
            {
                let number: usize = number.parse().expect("a line");
                let task = tasks.iter().rev().find(|(first, _)| *first <= number);
                let task = task.unwrap_or_else(|| panic!("{place} is in no task"));
                codes.entry(&task.1.name).or_default().insert(code.clone());
            }
        }
        for (_, task) in &tasks {
            let Verdict::Refused(expected) = task.verdict() else { unreachable!() };
            let came = codes.get(task.name.as_str()).cloned().unwrap_or_default();
            let came: BTreeSet<&str> = came.iter().map(String::as_str).collect();
            assert_eq!(came, expected, "seed {seed} {}: {}", task.name, kept(&text));
        }
    }
}
