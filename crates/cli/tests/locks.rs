//! Locks of tasks that share a processor, through the command: what `onbeat tfg` promises, its runs
//! keep; both name the tasks that may wait for each other for ever; and what is unknown is not
//! guaranteed.

use crate::trace;

use crate::common::{onbeat, run};
use onbeat_testkit::Random;
use serde_json::Value;
use std::fmt::Write;
use std::path::Path;
use std::process::Output;

const HEAD: &str = "\
#include <pthread.h>
#include <unistd.h>
#include <cilktc.h>
#define W(us_) __attribute__((exectime(us_, us)))
";

/// A description of the host `h` with one processor, on which the program `n` runs.
const SYSTEM: &str = r#"
format = 1
name = "locks"
[run]
duration_s = 1
[[host]]
name = "h"
cores = 1
[[host]]
name = "g"
[[link]]
ends = ["h", "g"]
rate_mbps = 1000
[[program]]
name = "n"
host = "h"
source = ["n.c"]
"#;

/// The program and its description in a directory.
struct Case(tempfile::TempDir);

impl Case {
    fn new(program: &str) -> Self {
        let case = Self(tempfile::tempdir().expect("a directory"));
        std::fs::write(case.path().join("n.c"), format!("{HEAD}{program}")).expect("written");
        std::fs::write(case.path().join("system.toml"), SYSTEM).expect("written");
        case
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn tfg(&self) -> Value {
        let output = run(&["tfg", "system.toml", "--json"], self.path(), 0);
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    fn check(&self) -> String {
        let output = onbeat().args(["check", "system.toml"]).current_dir(self.path()).output();
        said(&output.expect("onbeat runs"))
    }

    /// From release to arrival at most, of a task with one timing point of this period.
    fn worst(&self, task: &str, period: i64) -> i64 {
        run(&["run", "system.toml", "--task-trace", "traces"], self.path(), 0);
        let text = std::fs::read_to_string(self.path().join("traces/n.csv")).expect("a trace");
        let (mut origin, mut worst) = (0, 0);
        for event in trace::read(&text).expect("a trace") {
            if event.task == task && event.event == "arrive" {
                worst = worst.max(event.time_ns - origin);
                origin = event.time_ns.max(origin + period);
            }
        }
        worst
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A task's line in the schedule.
fn line<'a>(document: &'a Value, task: &str) -> &'a Value {
    let tasks = document["tasks"].as_array().expect("tasks");
    let number = tasks.iter().position(|t| t["name"] == task).expect("the task");
    let schedules = document["schedules"].as_array().expect("schedules");
    let mut lines = schedules.iter().flat_map(|s| s["tasks"].as_array().expect("tasks"));
    lines.find(|l| l["task"] == number).expect("its line")
}

const MS: i64 = 1_000_000;

/// H waits for L, which waits for M: what M holds counts for H, which does not use it.
const NEST: &str = "
pthread_mutex_t r1 = PTHREAD_MUTEX_INITIALIZER, r2 = PTHREAD_MUTEX_INITIALIZER;
task H(){ spriority(80); while(1){ W(3000); pthread_mutex_lock(&r1); W(1000);
	pthread_mutex_unlock(&r1); stp(20, 11, ms); } }
task M(){ spriority(79); while(1){ W(8900); pthread_mutex_lock(&r2); W(2000);
	pthread_mutex_unlock(&r2); stp(51, 51, ms); } }
task L(){ spriority(78); while(1){ W(28000); pthread_mutex_lock(&r1); W(2000);
	pthread_mutex_lock(&r2); W(3000); pthread_mutex_unlock(&r2); W(1000);
	pthread_mutex_unlock(&r1); sdelay(100, ms); } }
int main(void){ H(); M(); L(); }
";

#[test]
fn blocking_goes_over_locks_within_each_other() {
    let case = Case::new(NEST);
    let document = case.tfg();
    let found = line(&document, "H");
    // Its own 4 ms, the whole outer section of L, and what M holds of what L wants in it.
    assert_eq!((&found["response_ns"], &found["met"]), (&(12 * MS).into(), &false.into()));
    assert!(document["lock_cycles"].as_array().expect("a list").is_empty());
    assert_eq!(case.worst("H", 20 * MS), 11_800_000);
}

const DEADLOCK: &str = "
pthread_mutex_t r1 = PTHREAD_MUTEX_INITIALIZER, r2 = PTHREAD_MUTEX_INITIALIZER;
task M(){ spriority(79); sdelay(1,ms); while(1){ pthread_mutex_lock(&r2); W(2000);
	pthread_mutex_lock(&r1); W(100); pthread_mutex_unlock(&r1); pthread_mutex_unlock(&r2);
	sdelay(50, ms); } }
task L(){ spriority(78); while(1){ pthread_mutex_lock(&r1); W(2000); pthread_mutex_lock(&r2);
	W(3000); pthread_mutex_unlock(&r2); W(1000); pthread_mutex_unlock(&r1); sdelay(100, ms); } }
task Free(){ spriority(90); while(1){ W(100); stp(10, 10, ms); } }
int main(void){ M(); L(); Free(); }
";

#[test]
fn who_waits_for_whom_for_ever_is_named_by_the_analysis_and_by_the_run() {
    let case = Case::new(DEADLOCK);
    let document = case.tfg();
    assert_eq!(document["lock_cycles"][0]["cycle"], "M → r1 → L → r2 → M");
    assert_eq!(document["composable"], false);
    for (task, is_known) in [("M", false), ("L", false), ("Free", true)] {
        assert_eq!(line(&document, task)["response_ns"].is_i64(), is_known, "{task}");
    }
    let said_by_check = case.check();
    assert!(said_by_check.contains("OB5020"), "{said_by_check}");
    assert!(said_by_check.contains("M → r1 → L → r2 → M, at n.c:"), "{said_by_check}");
    let output = onbeat().args(["run", "system.toml"]).current_dir(case.path()).output();
    let output = output.expect("onbeat runs");
    assert_ne!(output.status.code(), Some(0));
    // L found what it wants taken last: it tells.
    let text = said(&output);
    let ways = ["L → r2 (in L) → M → r1 (in M) → L", "M → r1 (in M) → L → r2 (in L) → M"];
    assert!(ways.iter().any(|way| text.contains(way)), "{text}");
    assert!(text.contains("deadlock on each other's locks"), "{text}");
}

#[test]
fn locks_within_one_outer_lock_and_in_one_order_are_no_danger() {
    let both = |first: &str, second: &str| {
        format!(
            "pthread_mutex_lock(&{first}); pthread_mutex_lock(&{second}); W(100); \
             pthread_mutex_unlock(&{second}); pthread_mutex_unlock(&{first});"
        )
    };
    let mutexes = "pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER, \
                   g = PTHREAD_MUTEX_INITIALIZER;\n";
    let program = |mine: &str, other: &str| {
        format!(
            "{mutexes}task H(){{ spriority(9); while(1){{ {mine} sdelay(10, ms); }} }}\n\
             task L(){{ spriority(8); while(1){{ {other} sdelay(20, ms); }} }}\n\
             int main(void){{ H(); L(); }}\n"
        )
    };
    let count = |text: &str| Case::new(text).tfg()["lock_cycles"].as_array().expect("a list").len();
    let guarded =
        |inner: String| format!("pthread_mutex_lock(&g); {inner} pthread_mutex_unlock(&g);");
    assert_eq!(count(&program(&both("a", "b"), &both("b", "a"))), 1);
    assert_eq!(count(&program(&both("a", "b"), &both("a", "b"))), 0);
    assert_eq!(count(&program(&guarded(both("a", "b")), &guarded(both("b", "a")))), 0);
    let tried = "pthread_mutex_lock(&b); if (pthread_mutex_trylock(&a) == 0) { W(100); \
                 pthread_mutex_unlock(&a); } pthread_mutex_unlock(&b);";
    assert_eq!(count(&program(&both("a", "b"), tried)), 0);
}

/// Two tasks, with one's ways to lock and unlock in `%1`, `%2` and the other one's in `%3`, `%4`.
const PAIR: &str = "
struct dev { pthread_mutex_t lock; } dev = { PTHREAD_MUTEX_INITIALIZER };
pthread_mutex_t other = PTHREAD_MUTEX_INITIALIZER;
struct dev *some = &dev;
static void take(pthread_mutex_t *m) { pthread_mutex_lock(m); }
static void give(pthread_mutex_t *m) { pthread_mutex_unlock(m); }
static void grab(struct dev *d) { take(&d->lock); }
static void drop(struct dev *d) { give(&d->lock); }
task H(){ struct dev *d = &dev; spriority(80); (void)d; while(1){ W(3000); %1 W(1000); %2
	stp(20, 6, ms); } }
task L(){ struct dev *x = &dev; spriority(78); (void)x; while(1){ W(14000); %3 W(5000); %4
	sdelay(100, ms); } }
int main(void){ H(); L(); }
";

fn pair(high: (&str, &str), low: (&str, &str)) -> Case {
    let text = PAIR.replace("%1", high.0).replace("%2", high.1);
    Case::new(&text.replace("%3", low.0).replace("%4", low.1))
}

#[test]
fn a_mutex_is_the_same_by_whatever_name() {
    let names = [
        ("pthread_mutex_lock(&dev.lock);", "pthread_mutex_unlock(&dev.lock);"),
        ("pthread_mutex_lock(&d->lock);", "pthread_mutex_unlock(&d->lock);"),
        ("take(&dev.lock);", "give(&d->lock);"),
        ("grab(d);", "drop(&dev);"),
        ("pthread_mutex_lock(&some->lock);", "pthread_mutex_unlock(&some->lock);"),
    ];
    for (at, high) in names.into_iter().enumerate() {
        for low in names {
            let low = (low.0.replace("d->", "x->"), low.1.replace("d->", "x->"));
            let low = (low.0.replace("grab(d)", "grab(x)"), low.1);
            let case = pair(high, (&low.0, &low.1));
            let found = line(&case.tfg(), "H").clone();
            let stated = found["response_ns"].as_i64().expect("a bound");
            assert_eq!((stated, &found["met"]), (9 * MS, &false.into()), "{high:?} {low:?}");
            let is_vague = high.0.contains("some") || low.0.contains("some");
            let said = case.check();
            assert_eq!(said.contains("OB5021"), is_vague, "{said}");
            if at == 0 {
                assert_eq!(case.worst("H", 20 * MS), 7 * MS);
            }
        }
    }
    let other = ("pthread_mutex_lock(&other);", "pthread_mutex_unlock(&other);");
    let found = line(&pair(names[1], other).tfg(), "H").clone();
    assert_eq!((&found["response_ns"], &found["met"]), (&(4 * MS).into(), &true.into()));
}

#[test]
fn a_mutex_that_is_tried_is_held_where_it_was_free() {
    let high = ("pthread_mutex_lock(&dev.lock);", "pthread_mutex_unlock(&dev.lock);");
    let tried =
        ("if (pthread_mutex_trylock(&x->lock) == 0) {", "pthread_mutex_unlock(&x->lock); }");
    let case = pair(high, tried);
    let document = case.tfg();
    assert_eq!(line(&document, "H")["response_ns"], 9 * MS);
    assert_eq!(case.worst("H", 20 * MS), 7 * MS);
    assert!(!case.check().contains("OB5021"));
    // Whether it was, is not followed through a variable.
    let kept = (
        "int r = pthread_mutex_trylock(&x->lock); if (r == 0) {",
        "pthread_mutex_unlock(&x->lock); }",
    );
    let case = pair(high, kept);
    assert!(line(&case.tfg(), "H")["response_ns"].is_null());
    let said = case.check();
    assert!(said.contains("OB5021") && said.contains("pthread_mutex_trylock"), "{said}");
}

#[test]
fn what_sleeps_or_waits_has_no_bound_and_its_line_is_named() {
    let text = |call: &str| {
        format!(
            "#include <time.h>\n#include <poll.h>\n#include <threads.h>\nmtx_t m;\n\
             struct timespec t = {{0, 3000000}}; pthread_rwlock_t r; pthread_spinlock_t s;\n\
             task high(){{ spriority(9); while(1){{ W(10); stp(10, 10, ms); }} }}\n\
             task w(){{ spriority(8); while(1){{ {call}\n W(10); stp(10, 10, ms); }} }}\n\
             task low(){{ spriority(7); while(1){{ W(10); stp(10, 10, ms); }} }}\n\
             int main(void){{ high(); w(); low(); }}\n"
        )
    };
    let calls = [
        "usleep(3000);",
        "sleep(1);",
        "nanosleep(&t, NULL);",
        "clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);",
        "poll(NULL, 0, 3);",
        "pthread_rwlock_wrlock(&r); pthread_rwlock_unlock(&r);",
        "pthread_spin_lock(&s); pthread_spin_unlock(&s);",
        "mtx_lock(&m); mtx_unlock(&m);",
        "system(\"true\");",
    ];
    for call in calls {
        let case = Case::new(&text(call));
        let document = case.tfg();
        let known = ["high", "w", "low"].map(|t| line(&document, t)["response_ns"].is_i64());
        assert_eq!(known, [true, false, false], "{call}");
        assert_eq!(document["composable"], false, "{call}");
        let said = case.check();
        let name = call.split('(').next().expect("a name");
        assert!(said.contains("OB5021") && said.contains("n.c:11:"), "{said}");
        assert!(said.contains(&format!("the time of `{name}` has no bound")), "{said}");
    }
    // Whoever says what it takes knows.
    let document = Case::new(&text("W(3000) usleep(3000);")).tfg();
    assert_eq!(line(&document, "w")["response_ns"], 3_020_000);
    // A function of the program's own is no such call.
    let own = text("usleep(3000);")
        .replace("task high", "#define usleep own\nvoid own(int n){ (void)n; }\ntask high");
    assert!(!Case::new(&own).check().contains("OB5021"));
}

/// Two tasks, of which the more urgent does something first.
fn urgent(globals: &str, first: &str) -> Case {
    Case::new(&format!(
        "#include <stdatomic.h>\n#include <sched.h>\nvolatile int flag, other; {globals}\n\
         task high(){{ spriority(9); while(1){{ {first} W(10); stp(10, 5, ms); }} }}\n\
         task low(){{ spriority(8); while(1){{ W(900); flag = 1; stp(10, 10, ms); }} }}\n\
         int main(void){{ high(); low(); }}\n"
    ))
}

#[test]
fn a_loop_that_waits_for_somebody_else_has_no_bound() {
    let waiting = [
        "while (!flag) ;",
        "while (!flag) sched_yield();",
        "do { } while (flag == 0);",
        "for (;;) { if (flag) break; }",
        "for (int n = 0; !flag; n++) other = n;",
        "int seen; do { seen = flag; } while (!seen);",
        "while (atomic_flag_test_and_set(&f)) ; atomic_flag_clear(&f);",
        "while (__atomic_load_n(&flag, __ATOMIC_ACQUIRE) == 0) { }",
    ];
    for first in waiting {
        let case = urgent("atomic_flag f = ATOMIC_FLAG_INIT;", first);
        let said = case.check();
        assert!(said.contains("OB4106") && said.contains("n.c:8:"), "{first}: {said}");
        let arguments = ["tfg", "system.toml", "--json"];
        let output = onbeat().args(arguments).current_dir(case.path()).output().expect("it runs");
        let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let known = ["high", "low"].map(|task| line(&document, task)["response_ns"].is_i64());
        assert_eq!(known, [false, false], "{first}");
        assert_ne!(document["composable"], true, "{first}");
        assert!(document["schedules"][0]["utilisation_ppm"].is_null(), "{first}");
    }
    let ending = [
        "for (int n = 0; n < 3; n++) other = n;",
        "int n = other; while (n) n /= 2;",
        "int n = other; while (n) n = 0;",
        "flag = 1; while (flag) flag = 0;",
        "int n = 0; for (;;) { n++; if (n > 9) break; }",
        "const char *s = \"text\"; while (*s) s++;",
        "while (next()) ;",
    ];
    for first in ending {
        let case = urgent("int next(void){ return --other > 0; }", first);
        assert!(!case.check().contains("OB4106"), "{first}: {}", case.check());
        assert_eq!(line(&case.tfg(), "high")["response_ns"], 10_000, "{first}");
    }
}

#[test]
fn an_execution_time_inside_of_an_expression_counts() {
    for first in ["flag && ({ W(3000); 1; });", "int n = ({ W(3000); flag; }); other = n;"] {
        let document = urgent("", first).tfg();
        assert_eq!(line(&document, "high")["response_ns"], 3_010_000, "{first}");
        assert_eq!(line(&document, "low")["response_ns"], 3_910_000, "{first}");
    }
}

#[test]
fn whoever_locks_through_a_pointer_gets_no_verdict() {
    let globals = "pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;\n\
                   int (*lock)(pthread_mutex_t *) = pthread_mutex_lock;";
    let case = urgent(globals, "lock(&m);");
    let said = said(&run(&["tfg", "system.toml"], case.path(), 1));
    assert!(
        said.contains("OB5007") && said.contains("`pthread_mutex_lock` is timed code"),
        "{said}"
    );
}

#[test]
fn every_verdict_says_what_it_rests_on() {
    let case = Case::new(NEST);
    let document = case.tfg();
    let all = document["assumptions"].as_array().expect("a list");
    let has = |text: &str| all.iter().any(|one| one.as_str().is_some_and(|it| it.contains(text)));
    assert!(has("code takes no longer than is declared"), "{all:?}");
    assert!(has("PTHREAD_PRIO_INHERIT") && has("the most urgent task"), "{all:?}");
    let printed = run(&["tfg", "system.toml"], case.path(), 0).stdout;
    let printed = String::from_utf8(printed).expect("text");
    for one in all {
        assert!(printed.contains(&format!("assumed: {}", one.as_str().expect("a text"))));
    }
}

/// Without priorities: in the order of the text the long one would come first.
const OPEN: &str = "
task Long(){ while(1){ W(6000); stp(20, 20, ms); } }
task Short(){ while(1){ W(1000); stp(5, 3, ms); } }
int main(void){ Long(); Short(); }
";

#[test]
fn priorities_that_are_proposed_are_those_of_the_run() {
    let case = Case::new(OPEN);
    let document = case.tfg();
    for (task, response, period) in [("Short", MS, 5 * MS), ("Long", 8 * MS, 20 * MS)] {
        let found = line(&document, task);
        assert_eq!((&found["proposed"], &found["met"]), (&true.into(), &true.into()), "{found}");
        assert_eq!(found["response_ns"], response, "{found}");
        assert_eq!(case.worst(task, period), response, "{task}");
    }
}

/// Tasks that lock two of three mutexes, or all, one within the other, in random orders; whether
/// there is a circle of different tasks.
fn ring(random: &mut Random) -> (String, bool) {
    let count = 2 + random.below(2) as usize;
    let mut text = String::new();
    for mutex in 0..3 {
        let _ = writeln!(text, "pthread_mutex_t m{mutex} = PTHREAD_MUTEX_INITIALIZER;");
    }
    let mut edges: Vec<Vec<(usize, usize)>> = Vec::new();
    for task in 0..count {
        let first = random.below(3) as usize;
        let second = (first + 1 + random.below(2) as usize) % 3;
        let (phase, period) = (random.between(1, 9), random.between(20, 40));
        let (a, b, c) = (random.between(1, 5), random.between(1, 5), random.between(1, 5));
        let _ = writeln!(
            text,
            "task T{task}(){{ spriority({}); sdelay({phase}, ms); while(1){{ W({a}000); \
             pthread_mutex_lock(&m{first}); W({b}000); pthread_mutex_lock(&m{second}); \
             W({c}000); pthread_mutex_unlock(&m{second}); pthread_mutex_unlock(&m{first}); \
             sdelay({period}, ms); }} }}",
            10 + task
        );
        edges.push(vec![(first, second)]);
    }
    text.push_str("int main(void){ ");
    (0..count).for_each(|task| text.push_str(&format!("T{task}(); ")));
    text.push_str("}\n");
    // With one pair each, a circle is of two tasks with opposite pairs, or of three in a ring.
    let pairs: Vec<(usize, usize)> = edges.into_iter().flatten().collect();
    let has = |a: (usize, usize)| pairs.contains(&a);
    let opposite = pairs.iter().any(|(a, b)| has((*b, *a)));
    let is_ring = |d: usize| (0..3).all(|m| has((m, (m + d) % 3)));
    (text, opposite || is_ring(1) || is_ring(2))
}

#[test]
fn only_what_is_named_waits_for_ever() {
    let mut random = Random(15);
    let (mut named, mut stuck) = (0, 0);
    for _ in 0..12 {
        let (text, has_circle) = ring(&mut random);
        let case = Case::new(&text);
        let document = case.tfg();
        let is_named = !document["lock_cycles"].as_array().expect("a list").is_empty();
        assert_eq!(is_named, has_circle, "{text}");
        let output = onbeat().args(["run", "system.toml"]).current_dir(case.path()).output();
        let output = output.expect("onbeat runs");
        let is_stuck = output.status.code() != Some(0);
        assert_eq!(is_stuck, said(&output).contains("deadlock on each other's locks"));
        assert!(has_circle || !is_stuck, "{text}\n{}", said(&output));
        named += u32::from(is_named);
        stuck += u32::from(is_stuck);
    }
    assert!(named >= 3 && stuck >= 1 && named < 12, "{named} named, {stuck} stuck");
}
