//! What `onbeat tfg` says of programs in Timed C and what they do in a run of `onbeat run`, held
//! against each other through the command.

use crate::common::{ONE_HOST, onbeat, results, run};
use serde_json::Value;
use std::path::Path;

/// A directory with one program.
fn place(text: &str) -> tempfile::TempDir {
    let place = tempfile::tempdir().expect("a directory");
    std::fs::write(place.path().join("p.c"), text).expect("a program");
    place
}

/// What each of a task's points did in a run: arrivals, by aborts or not, and releases.
fn traced(directory: &Path, task: &str) -> Vec<(String, i64)> {
    let file = std::fs::read_dir(directory.join("trace")).expect("a trace").next();
    let path = file.expect("a trace").expect("a file").path();
    let text = std::fs::read_to_string(path).expect("a trace");
    let rows = text.lines().skip(1).map(|line| line.split(',').collect::<Vec<_>>());
    let mine = rows.filter(|row| row[1] == task);
    mine.filter_map(|row| {
        let what = match row[2] {
            "arrive" | "abort" => "arrive",
            "release" => "release",
            _ => return None,
        };
        Some((format!("{what} {}", row[3]), row[0].parse().expect("an instant")))
    })
    .collect()
}

/// The same as the table has it: from and to; to without a bound: the greatest number.
fn computed(study: &Value, task: &str) -> Vec<(String, i64, i64)> {
    let tasks = study["tasks"].as_array().expect("tasks");
    let index = tasks.iter().position(|t| t["name"] == task).expect("the task");
    let rows = study["platform"]["rows"].as_array().expect("rows");
    let mut found = Vec::new();
    for row in rows.iter().filter(|row| row["task"] == index) {
        let node = &tasks[index]["nodes"][row["node"].as_u64().expect("a node") as usize];
        if !["soft", "firm", "hard"].contains(&node["kind"].as_str().expect("a kind")) {
            continue;
        }
        let place = node["place"].as_str().expect("a place");
        for (what, key) in [("arrive", "arrival_ns"), ("release", "release_ns")] {
            let at = |end: &str| row[key][end].as_i64();
            let most = at("hi").unwrap_or(i64::MAX);
            found.push((format!("{what} {place}"), at("lo").expect("a time"), most));
        }
    }
    found
}

/// Every event of the run is in the table, in its interval. Gives both.
fn agree(subject: &str, task: &str, directory: &Path) -> Vec<(String, i64, i64)> {
    let study = results(&["tfg", subject, "--iterations", "4"], directory, 0);
    run(&["run", subject, "--duration", "40ms", "--task-trace", "trace"], directory, 0);
    let (table, trace) = (computed(&study, task), traced(directory, task));
    assert!(!trace.is_empty(), "nothing happened");
    for (event, (wanted, lo, hi)) in trace.iter().zip(&table) {
        assert_eq!(event.0, *wanted, "{trace:?}\n{table:?}");
        assert!((*lo..=*hi).contains(&event.1), "{event:?}: {lo}..{hi}");
    }
    table
}

/// A task that holds something over its deadline: `take`, 14 ms, `give`, 3 ms, a deadline of 10 ms.
fn holding(declare: &str, take: &str, give: &str) -> String {
    format!(
        "#include <pthread.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <cilktc.h>\n\
         {declare}\nint fifochannel(c);\n\
         task w()\n{{\n\tfor (int i = 0;; i++) {{\n\t\t{take};\n\
         \t\t__attribute__((exectime(14, ms)));\n\t\t{give};\n\
         \t\t__attribute__((exectime(3, ms)));\n\t\tcwrite(c, i);\n\t\tfdelay(10, ms);\n\t}}\n}}\n\
         task r()\n{{\n\tint v;\n\tfor (;;)\n\t\tcread(c, v);\n}}\n\
         int main(void)\n{{\n\tw();\n\tr();\n}}\n"
    )
}

#[test]
fn an_abort_waits_for_what_is_held_in_the_table_as_in_the_run() {
    let ways = [
        (
            "static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;",
            "pthread_mutex_lock(&m)",
            "pthread_mutex_unlock(&m)",
        ),
        ("", "char *p = malloc(8)", "free(p)"),
        ("", "FILE *f = fopen(\"/dev/null\", \"w\")", "fclose(f)"),
        // Something else is taken and given back meanwhile.
        (
            "static pthread_rwlock_t s = PTHREAD_RWLOCK_INITIALIZER; static char *q;",
            "q = strdup(\"\"); __attribute__((exectime(0, us))) \
             pthread_rwlock_rdlock(&s); pthread_rwlock_unlock(&s)",
            "free(q)",
        ),
        // In functions of the program.
        (
            "static void *get(void) { return malloc(8); } static void put(char *p) { free(p); }\n\
             static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;\n\
             static void enter(void) { pthread_mutex_lock(&m); }\n\
             static void leave(void) { pthread_mutex_unlock(&m); }",
            "(void)get; (void)put; enter()",
            "leave()",
        ),
    ];
    for (declare, take, give) in ways {
        let place = place(
            &holding(declare, take, give).replace("<stdio.h>", "<string.h>\n#include <stdio.h>"),
        );
        let table = agree("p.c", "w", place.path());
        let points: Vec<i64> =
            table.iter().filter(|(what, ..)| what.starts_with("release")).map(|e| e.1).collect();
        assert_eq!(points[..2], [14_000_000, 28_000_000], "{take}: {table:?}");
        assert!(table[..4].iter().all(|(_, lo, hi)| lo == hi), "{take}: {table:?}");
    }
}

#[test]
fn what_is_given_back_by_then_does_not_keep_the_abort_waiting() {
    let place = place(&holding("", "char *p = malloc(8); free(p)", ""));
    let table = agree("p.c", "w", place.path());
    assert_eq!(table[1].1, 10_000_000, "{table:?}");
}

#[test]
fn where_nobody_can_say_what_is_held_both_are_possible_and_that_is_said() {
    let text = holding("static char *q;", "char *p = malloc(8); q = p", "free(q)");
    let place = place(&text);
    let output = run(&["tfg", "p.c", "--level", "platform"], place.path(), 0);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("warning[OB5015]"), "{said}");
    // The table has the abort behind `free`, and the one that waits for the point.
    let table = agree("p.c", "w", place.path());
    let first = table.iter().find(|(what, ..)| what.starts_with("arrive")).expect("a point");
    assert_eq!((first.1, first.2), (14_000_000, 17_000_000), "{table:?}");
}

#[test]
fn jitter_and_abort_of_execution_times_count_in_the_table_and_in_the_run() {
    let place = place(
        "#include <cilktc.h>\ntask w()\n{\n\twhile (1) {\n\t\tfdelay(10, ms);\n\t}\n}\n\
         int main(void) { w(); }\n",
    );
    let times = "SRC,BCET,WCET,JITTER,ABORT,DST\n\
                 w:start,1000000,2000000,500000,0,w:5\n\
                 w:5,1000000,12000000,300000,700000,w:5\n";
    std::fs::write(place.path().join("times.csv"), times).expect("times");
    let program = "[[program]]\nname = \"p\"\nhost = \"host\"\nsource = [\"p.c\"]\n\
                   execution_times = \"times.csv\"\n";
    let path = place.path().join("system.toml");
    std::fs::write(path, format!("{ONE_HOST}{program}")).expect("a system");
    let table = agree("system.toml", "w", place.path());
    let interval = |at: usize| (table[at].1, table[at].2);
    assert_eq!(interval(0), (1_000_000, 2_500_000), "{table:?}");
    assert_eq!(interval(1), (10_000_000, 10_300_000), "{table:?}");
    assert_eq!(interval(2), (11_000_000, 20_700_000), "{table:?}");
}

#[test]
fn a_loop_in_which_no_time_passes_is_found() {
    let place = place(
        "#include <cilktc.h>\nstatic int n;\nstatic void process(int v) { n += v; }\n\
         task p()\n{\n\twhile (1)\n\t\tprocess(1);\n}\n\
         task q()\n{\n\twhile (1)\n\t\tsdelay(10, ms);\n}\nint main(void) { p(); q(); }\n",
    );
    for arguments in [&["tfg", "p.c"][..], &["run", "p.c", "--duration", "20ms"]] {
        let output = run(arguments, place.path(), 0);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(said.matches("warning[OB4106]").count(), 1, "{said}");
        assert!(said.contains("exectime"), "{said}");
    }
}

#[test]
fn points_of_functions_count_from_their_calls_where_that_is_asked_for() {
    let text = "#include <cilktc.h>\nstatic void step(void)\n{\n\tfdelay(10, ms);\n}\n\
                task w()\n{\n\twhile (1) {\n\t\t__attribute__((exectime(3, ms)));\n\t\tstep();\n\
                \t}\n}\nint main(void) { w(); }\n";
    for (origin, release) in [("task", 10_000_000), ("function", 13_000_000)] {
        let place = place(text);
        let arguments = ["tfg", "p.c", "--origin", origin];
        let study = results(&arguments, place.path(), 0);
        let table = computed(&study, "w");
        assert_eq!((table[1].1, table[1].2), (release, release), "{table:?}");
        let rest = ["--origin", origin, "--duration", "40ms", "--task-trace", "trace"];
        run(&[&["run", "p.c"][..], &rest].concat(), place.path(), 0);
        let trace = traced(place.path(), "w");
        for (event, (wanted, lo, hi)) in trace.iter().zip(&table) {
            assert_eq!((&event.0, event.1, event.1), (wanted, *lo, *hi));
        }
    }
    // A caller's own point counts from before the call, which the graph cannot say.
    let place = place(&text.replace("step();", "step();\n\t\tsdelay(30, ms);"));
    let output = onbeat()
        .args(["tfg", "p.c", "--origin", "function"])
        .current_dir(place.path())
        .output()
        .expect("onbeat");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("warning[OB5007]"), "{said}");
}

/// A system with the program `p.c` and its file of execution times.
fn with_times(place: &Path, times: &str) {
    std::fs::write(place.join("times.csv"), times).expect("times");
    let program = "[[program]]\nname = \"p\"\nhost = \"host\"\nsource = [\"p.c\"]\n\
                   execution_times = \"times.csv\"\n";
    std::fs::write(place.join("system.toml"), format!("{ONE_HOST}{program}")).expect("a system");
}

#[test]
fn a_whole_segments_time_is_not_cut_while_something_is_held_up_to_the_point() {
    let ways = [
        ("pthread_mutex_lock(&m);", "pthread_mutex_unlock(&m);", 14_000_000),
        ("char *p = malloc(8);", "free(p);", 14_000_000),
        ("char *p = malloc(8); free(p);", "", 10_000_000),
        ("pthread_mutex_lock(&m); pthread_mutex_unlock(&m);", "", 10_000_000),
    ];
    for (take, give, arrival) in ways {
        let place = place(&format!(
            "#include <pthread.h>\n#include <stdlib.h>\n#include <cilktc.h>\n\
             static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;\n\
             task w()\n{{\n\twhile (1) {{\n\t\t{take}\n\t\tftp(20, 10, ms);\n\t\t{give}\n\
             \t}}\n}}\nint main(void) {{ (void)m; w(); }}\n"
        ));
        with_times(
            place.path(),
            "SRC,BCET,WCET,JITTER,ABORT,DST\nw:start,14000000,14000000,,,w:9\n\
             w:9,14000000,14000000,,,w:9\n",
        );
        let table = agree("system.toml", "w", place.path());
        let arrivals: Vec<i64> =
            table.iter().filter(|(what, ..)| what.starts_with("arrive")).map(|e| e.1).collect();
        assert_eq!(arrivals[..2], [arrival, 20_000_000 + arrival], "{take}: {table:?}");
        assert!(table[..4].iter().all(|(_, lo, hi)| lo == hi), "{take}: {table:?}");
    }
}

#[test]
fn where_nobody_can_say_what_is_held_up_to_the_point_both_are_possible() {
    let place = place(
        "#include <pthread.h>\n#include <cilktc.h>\n\
         static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;\n\
         task w()\n{\n\twhile (1) {\n\t\tint r = pthread_mutex_trylock(&m);\n\
         \t\tftp(20, 10, ms);\n\t\tif (!r) pthread_mutex_unlock(&m);\n\t}\n}\n\
         int main(void) { w(); }\n",
    );
    with_times(
        place.path(),
        "SRC,BCET,WCET,JITTER,ABORT,DST\nw:start,14000000,14000000,,,w:8\n\
         w:8,14000000,14000000,,,w:8\n",
    );
    let table = agree("system.toml", "w", place.path());
    assert_eq!((table[0].1, table[0].2), (10_000_000, 14_000_000), "{table:?}");
}

#[test]
fn code_before_a_loop_of_constant_rounds_has_the_deadline_of_its_point() {
    let place = place(
        "#include <cilktc.h>\nstatic void late(const struct timedc_late *at) { (void)at; }\n\
         static void work(void) { __attribute__((exectime(1, ms))); }\n\
         task w()\n{\n\tint i;\n\ttimedc_on_late(late);\n\twhile (1) {\n\t\twork();\n\
         \t\tfor (i = 0; i < 3; i++) {\n\t\t\twork();\n\t\t\thdelay(5, ms);\n\t\t}\n\
         \t\twork();\n\t\thtp(10, 8, ms);\n\t}\n}\nint main(void) { w(); }\n",
    );
    let output = onbeat().args(["cc", "p.c", "-o", "p"]).current_dir(place.path()).output();
    let said = String::from_utf8_lossy(&output.expect("onbeat").stderr).into_owned();
    assert!(!said.contains("OB4006"), "{said}");
    let table = agree("p.c", "w", place.path());
    let points: Vec<i64> =
        table.iter().filter(|(what, ..)| what.starts_with("release")).map(|e| e.1).collect();
    assert_eq!(points[..5], [5_000_000, 10_000_000, 15_000_000, 25_000_000, 30_000_000]);
    // The same in a task model.
    let tasks = "format = 1\nname = \"t\"\n[[task]]\nname = \"w\"\nsteps = [\n\
                 { loop = \"ever\", steps = [{ work_ms = 1 },\n\
                 { loop = 3, steps = [{ work_ms = 1 }, { hard_ms = 5 }] },\n\
                 { work_ms = 1 }, { hard_ms = 10, deadline_ms = 8 }] }]\n";
    std::fs::write(place.path().join("tasks.toml"), tasks).expect("written");
    run(&["tfg", "tasks.toml"], place.path(), 0);
}
