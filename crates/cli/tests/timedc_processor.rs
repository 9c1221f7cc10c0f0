//! Hosts whose programs share processors in virtual time: what Timed C does there is what the
//! scheduler alone says, to the nanosecond, for random tasks; and who is bound to a core of its
//! own, or to a host that says nothing of processors, is not disturbed.

use crate::common::{self, onbeat, run};
use crate::trace;
use crate::trace::Event;
use onbeat_model::time::{NetTime, Span};
use onbeat_runtime::processor::{Processors, Rank};
use onbeat_testkit::Random;
use std::collections::{BTreeSet, BinaryHeap};
use std::fmt::Write;
use std::path::Path;

/// How long programs run.
const END_MS: i64 = 100;
const END_NS: i64 = END_MS * 1_000_000;
/// Tasks of a program: the first half has soft points, the other one a firm one.
const TASKS: usize = 4;
/// What the run time gives the task that comes first, if its program has no priority.
const TOP: u32 = 80;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Policy {
    Own,
    Edf,
    RateMonotonic,
    Priority(u32),
}

#[derive(Clone, Debug)]
struct Task {
    policy: Policy,
    separation: i64,
    offset: i64,
    periods: [i64; 2],
    /// Of the firm point.
    deadline: i64,
    work: [i64; 2],
}

#[derive(Clone, Debug)]
struct Program {
    priority: Option<u32>,
    core: Option<u16>,
    tasks: Vec<Task>,
}

#[derive(Clone, Debug)]
struct Host {
    cores: Option<u16>,
    programs: Vec<Program>,
}

fn task(random: &mut Random, load: i64) -> Task {
    let periods = [0, 1].map(|_| random.between(1_000_000, 20_000_000));
    let policy = match random.between(0, 4) {
        0 => Policy::Own,
        1 => Policy::Edf,
        2 => Policy::RateMonotonic,
        _ => Policy::Priority(random.between(1, 5) as u32),
    };
    Task {
        policy,
        separation: periods[0],
        offset: random.between(1, 5_000_000),
        periods,
        deadline: random.between(periods[0] / 2, periods[0]),
        work: periods.map(|period| random.between(1, period / load)),
    }
}

fn host(random: &mut Random) -> Host {
    let count = random.between(1, 3);
    let cores = (!random.one_in(10)).then(|| random.between(1, 2) as u16);
    let last_core = cores.map_or(1, |cores| i64::from(cores) - 1);
    let programs = (0..count).map(|_| Program {
        priority: random.one_in(2).then(|| random.between(1, 99) as u32),
        core: random.one_in(2).then(|| random.between(0, last_core) as u16),
        tasks: (0..TASKS).map(|_| task(random, 2 * count)).collect(),
    });
    Host { cores, programs: programs.collect() }
}

/// The program that all are, its tasks' figures being arguments.
fn source() -> String {
    let mut text = "#include <stdlib.h>\n#include <cilktc.h>\n\
        enum { POLICY, SEPARATION, OFFSET, FIRST, SECOND, DEADLINE, FIGURES };\n"
        .to_owned();
    let _ = writeln!(text, "static long of[{TASKS}][FIGURES];\nstatic void nothing(void) {{ }}");
    for task in 0..TASKS {
        let _ = writeln!(
            text,
            "task t{task}()\n{{\n\tif (of[{task}][POLICY] == -1)\n\t\tspolicy(EDF);\n\
             \telse if (of[{task}][POLICY] == -2)\n\t\tspolicy(FIFO_RM);\n\
             \telse if (of[{task}][POLICY] > 0)\n\t\tspriority(of[{task}][POLICY]);\n\
             \taperiodic(of[{task}][SEPARATION], ns);\n\
             \tsdelay(of[{task}][OFFSET], ns); /* begin */\n\twhile (1) {{"
        );
        if task < TASKS / 2 {
            let _ = writeln!(text, "\t\tsdelay(of[{task}][FIRST], ns); /* first */");
            let _ = writeln!(text, "\t\tsdelay(of[{task}][SECOND], ns); /* second */");
        } else {
            // A guard is for calls and loops: a segment without any is not aborted.
            let point = format!("ftp(of[{task}][FIRST], of[{task}][DEADLINE], ns);");
            let _ = writeln!(text, "\t\tnothing();\n\t\t{point} /* first */");
        }
        text.push_str("\t}\n}\n");
    }
    text.push_str(
        "int main(int count, char **text)\n{\n\
         \tfor (int i = 1; i < count; i++)\n\
         \t\tof[(i - 1) / FIGURES][(i - 1) % FIGURES] = atol(text[i]);\n",
    );
    for task in 0..TASKS {
        let _ = writeln!(text, "\tt{task}();");
    }
    text.push_str("\treturn 0;\n}\n");
    text
}

/// The lines of each task's points: the first, and those of its loop.
fn places() -> Vec<Vec<String>> {
    let source = source();
    let mut places = vec![Vec::new(); TASKS];
    let mut task = 0;
    for (number, line) in (1..).zip(source.lines()) {
        if let Some(name) = line.strip_prefix("task t") {
            task = name.trim_end_matches("()").parse().expect("a number");
        }
        if line.contains("/*") {
            places[task].push(format!("{number}"));
        }
    }
    places
}

fn description(hosts: &[Host]) -> String {
    let mut text = format!(
        "format = 1\nname = \"processors\"\n[run]\nduration_ms = {END_MS}\n[[bridge]]\n\
         name = \"bridge\"\n"
    );
    for (number, host) in hosts.iter().enumerate() {
        let _ = writeln!(text, "[[host]]\nname = \"h{number}\"");
        if let Some(cores) = host.cores {
            let _ = writeln!(text, "cores = {cores}");
        }
        let _ = writeln!(text, "[[link]]\nends = [\"h{number}\", \"bridge\"]\nrate_mbps = 1000");
        for (at, program) in host.programs.iter().enumerate() {
            let figures = program.tasks.iter().flat_map(|t| {
                let policy = match t.policy {
                    Policy::Own => 0,
                    Policy::Edf => -1,
                    Policy::RateMonotonic => -2,
                    Policy::Priority(own) => i64::from(own),
                };
                [policy, t.separation, t.offset, t.periods[0], t.periods[1], t.deadline]
            });
            let figures: Vec<_> = figures.map(|f| format!("\"{f}\"")).collect();
            let _ = writeln!(
                text,
                "[[program]]\nname = \"h{number}p{at}\"\nhost = \"h{number}\"\n\
                 execution_times = \"h{number}p{at}.times\"\ncommand = [\"./program\", {}]",
                figures.join(", ")
            );
            if let Some(priority) = program.priority {
                let _ = writeln!(text, "priority = {priority}");
            }
            if let Some(core) = program.core {
                let _ = writeln!(text, "cores = [{core}]");
            }
        }
    }
    text
}

fn execution_times(program: &Program, places: &[Vec<String>]) -> String {
    let mut text = String::new();
    for (number, (task, at)) in program.tasks.iter().zip(places).enumerate() {
        // From the first point, and round the loop.
        let mut way: Vec<_> = at.iter().collect();
        way.push(&at[1]);
        for (step, pair) in way.windows(2).enumerate() {
            let work = task.work[step % (at.len() - 1)];
            let _ = writeln!(text, "t{number}:{},{work},{work},,,t{number}:{}", pair[0], pair[1]);
        }
    }
    text
}

/// What happens to a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum NodeKind {
    Limit,
    Release,
}

/// A task in progress.
#[derive(Clone, Copy, Debug, Default)]
struct State {
    origin: i64,
    step: usize,
    /// How many segments it has begun.
    segments: u64,
}

/// A host, simulated with nothing but its processors.
struct Simulation<'a> {
    host: &'a Host,
    places: &'a [Vec<String>],
    processors: Processors,
    states: Vec<State>,
    /// The earliest is the greatest.
    timers: BinaryHeap<std::cmp::Reverse<(i64, NodeKind, usize, u64)>>,
    traces: Vec<Vec<Event>>,
}

impl Simulation<'_> {
    fn task(&self, id: usize) -> &Task {
        &self.host.programs[id / TASKS].tasks[id % TASKS]
    }

    fn is_firm(id: usize) -> bool {
        id % TASKS >= TASKS / 2
    }

    fn core(&self, id: usize) -> u16 {
        match self.host.cores {
            Some(_) => self.host.programs[id / TASKS].core.unwrap_or(0),
            None => id as u16,
        }
    }

    fn rank(&self, id: usize) -> Rank {
        let (program, task) = (&self.host.programs[id / TASKS], self.task(id));
        let fixed = |own: Option<u32>| own.map_or(Rank::LOWEST, Rank::Fixed);
        match task.policy {
            Policy::Own => fixed(program.priority),
            Policy::Priority(own) => Rank::Fixed(own),
            Policy::RateMonotonic => {
                let keys: BTreeSet<_> = program.tasks.iter().map(|t| t.separation).collect();
                let rank = keys.iter().filter(|key| **key < task.separation).count() as u32;
                let top = program.priority.unwrap_or(TOP);
                Rank::Fixed(top.saturating_sub(rank).max(1))
            }
            Policy::Edf => {
                let relative = if Self::is_firm(id) { task.deadline } else { task.separation };
                Rank::by_deadline(NetTime::from_ns(self.states[id].origin + relative))
            }
        }
    }

    fn note(&mut self, id: usize, (time_ns, value_ns): (i64, i64), event: &str, place: usize) {
        let place = self.places[id % TASKS][place].clone();
        let (task, event) = (format!("t{}", id % TASKS), event.to_owned());
        self.traces[id / TASKS].push(Event { time_ns, task, event, place, value_ns });
    }

    /// A segment begins.
    fn begin(&mut self, id: usize, now: i64) {
        self.states[id].segments += 1;
        let state = self.states[id];
        let amount = Span::from_ns(self.task(id).work[state.step]);
        let (core, rank) = (self.core(id), self.rank(id));
        self.processors.start(NetTime::from_ns(now), id as u64, core, rank, amount);
        if Self::is_firm(id) {
            let limit = state.origin + self.task(id).deadline;
            self.timers.push(std::cmp::Reverse((limit, NodeKind::Limit, id, state.segments)));
        }
    }

    /// It comes to its point.
    fn arrive(&mut self, id: usize, now: i64, event: &str) {
        let (task, state) = (self.task(id), self.states[id]);
        let release = state.origin + task.periods[state.step];
        let due = if Self::is_firm(id) { state.origin + task.deadline } else { release };
        let overshoot = (now - due).max(0);
        self.states[id].origin = release.max(now);
        self.note(id, (now, overshoot), event, 1 + state.step);
        match now < release {
            true => {
                // What is done then counts as of this segment no more.
                self.states[id].segments += 1;
                let due = (release, NodeKind::Release, id, overshoot as u64);
                self.timers.push(std::cmp::Reverse(due));
            }
            false => self.release(id, now, overshoot),
        }
    }

    fn release(&mut self, id: usize, now: i64, overshoot: i64) {
        let step = self.states[id].step;
        self.note(id, (now, overshoot), "release", 1 + step);
        let steps = self.places[id % TASKS].len() - 1;
        self.states[id].step = (step + 1) % steps;
        self.begin(id, now);
    }

    fn first(&mut self, id: usize) {
        let (task, event) = (format!("t{}", id % TASKS), "start".to_owned());
        let start = Event { time_ns: 0, task, event, place: String::new(), value_ns: 0 };
        self.traces[id / TASKS].push(start);
        for (event, at) in [("arrive", 0), ("release", self.task(id).offset)] {
            self.note(id, (at, 0), event, 0);
        }
        let offset = self.task(id).offset;
        self.states[id].origin = offset;
        self.timers.push(std::cmp::Reverse((offset, NodeKind::Release, id, u64::MAX)));
    }

    fn go(&mut self) {
        loop {
            let timer = self.timers.peek().map_or(i64::MAX, |timer| timer.0.0);
            let done = self.processors.next().map_or(i64::MAX, NetTime::as_ns);
            if timer.min(done) >= END_NS {
                return;
            }
            // Who is done at its deadline is on time.
            if done <= timer {
                for id in self.processors.advance(NetTime::from_ns(done)) {
                    self.arrive(id as usize, done, "arrive");
                }
                continue;
            }
            let Some(std::cmp::Reverse((now, what, id, of))) = self.timers.pop() else { return };
            match what {
                NodeKind::Release if of == u64::MAX => self.begin(id, now),
                NodeKind::Release => self.release(id, now, of as i64),
                NodeKind::Limit if self.states[id].segments == of => {
                    self.processors.cancel(NetTime::from_ns(now), id as u64);
                    self.arrive(id, now, "abort");
                }
                NodeKind::Limit => {}
            }
        }
    }
}

/// What each program of a host does.
fn simulated(host: &Host, places: &[Vec<String>]) -> Vec<Vec<Event>> {
    let tasks = TASKS * host.programs.len();
    let mut simulation = Simulation {
        host,
        places,
        processors: Processors::new(host.cores.unwrap_or(tasks as u16)),
        states: vec![State::default(); tasks],
        timers: BinaryHeap::new(),
        traces: vec![Vec::new(); host.programs.len()],
    };
    (0..tasks).for_each(|id| simulation.first(id));
    simulation.go();
    simulation.traces
}

fn compile(directory: &Path, text: &str) {
    std::fs::write(directory.join("program.c"), text).expect("written");
    let output = onbeat()
        .args(["cc", "program.c", "-O1", "-w", "-pthread", "-o", "program"])
        .current_dir(directory)
        .output()
        .expect("onbeat");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// What the tasks of a program did before the end.
fn traced(directory: &Path, program: &str, end_ns: i64) -> Vec<Event> {
    let path = directory.join("traces").join(format!("{program}.csv"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path:?}: {e}"));
    let mut events = trace::read(&text).expect("a trace");
    events.retain(|event| event.time_ns < end_ns && event.task != "main");
    events
}

fn run_traced(directory: &Path) {
    std::fs::create_dir_all(directory.join("traces")).expect("a directory");
    run(&["run", "system.toml", "--task-trace", "traces", "--out", "out"], directory, 0);
}

#[test]
fn tasks_on_shared_processors_respond_when_the_scheduler_says() {
    let mut random = Random(20_261_121);
    let hosts: Vec<_> = (0..120).map(|_| host(&mut random)).collect();
    let directory = tempfile::tempdir().expect("a directory");
    let (path, places) = (directory.path(), places());
    compile(path, &source());
    std::fs::write(path.join("system.toml"), description(&hosts)).expect("written");
    for (number, host) in hosts.iter().enumerate() {
        for (at, program) in host.programs.iter().enumerate() {
            let name = format!("h{number}p{at}.times");
            std::fs::write(path.join(name), execution_times(program, &places)).expect("written");
        }
    }
    run_traced(path);
    let (mut aborts, mut late) = (0, 0);
    for (number, host) in hosts.iter().enumerate() {
        for (at, mut expected) in simulated(host, &places).into_iter().enumerate() {
            expected.retain(|event| event.time_ns < END_NS);
            let came = traced(path, &format!("h{number}p{at}"), END_NS);
            trace::equal(&expected, &came)
                .unwrap_or_else(|e| panic!("h{number}p{at} of {host:#?}\n{e}"));
            aborts += came.iter().filter(|event| event.event == "abort").count();
            let is_late = |e: &&Event| e.event == "arrive" && e.value_ns > 0;
            late += came.iter().filter(is_late).count();
        }
    }
    assert!(aborts > 100 && late > 100, "the tasks disturb each other: {aborts}, {late}");
}

/// Two programs on two cores, and what a third one on a core of theirs does.
fn two_cores(host: &str) -> Vec<Vec<(i64, String)>> {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path();
    compile(
        path,
        "#include <cilktc.h>\n\
         __attribute__((exectime(3, ms))) static void three(void) { }\n\
         task t()\n{\n\twhile (1) {\n\t\tthree();\n\t\tsdelay(10, ms);\n\t}\n}\n\
         int main(void)\n{\n\tt();\n}\n",
    );
    let mut text =
        common::ONE_HOST.replace("name = \"host\"\n", &format!("name = \"host\"\n{host}"));
    for (name, core, priority) in [("a", 0, 1), ("b", 1, 1), ("c", 1, 2)] {
        let _ = writeln!(
            text,
            "[[program]]\nname = \"{name}\"\nhost = \"host\"\ncommand = [\"./program\"]\n\
             cores = [{core}]\npriority = {priority}"
        );
    }
    std::fs::write(path.join("system.toml"), text).expect("written");
    run_traced(path);
    let arrivals = |name: &&str| {
        let events = traced(path, name, 20_000_000).into_iter();
        let arrivals = events.filter(|event| event.event == "arrive");
        arrivals.map(|event| (event.time_ns / 1_000_000, event.event)).collect()
    };
    ["a", "b", "c"].iter().map(arrivals).collect()
}

#[test]
fn programs_on_cores_of_their_own_do_not_disturb_each_other() {
    let at = |ms: [i64; 2]| ms.map(|ms| (ms, "arrive".to_owned())).to_vec();
    assert_eq!(two_cores("cores = 2\n"), [at([3, 13]), at([6, 16]), at([3, 13])]);
}

#[test]
fn programs_on_a_host_that_says_nothing_of_processors_do_not_disturb_each_other() {
    let at = |ms: [i64; 2]| ms.map(|ms| (ms, "arrive".to_owned())).to_vec();
    assert_eq!(two_cores(""), [at([3, 13]), at([3, 13]), at([3, 13])]);
}

#[test]
fn code_that_begins_at_the_deadline_is_cut_short_like_code_that_began_before() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path();
    compile(
        path,
        "#include <cilktc.h>\n\
         __attribute__((exectime(5, ms))) static void five(void) { }\n\
         task t()\n{\n\tfive();\n\tfive();\n\tfive();\n\tfdelay(10, ms);\n\
         \tfive();\n\tsdelay(1, ms);\n\tfive();\n\tfive();\n\tfdelay(8, ms);\n}\n\
         int main(void)\n{\n\tt();\n}\n",
    );
    for cores in ["", "cores = 1\n"] {
        let host = format!("name = \"host\"\nwakeup_ns = {{ min = 700, max = 700 }}\n{cores}");
        let text = common::ONE_HOST.replace("name = \"host\"\n", &host)
            + "[[program]]\nname = \"p\"\nhost = \"host\"\ncommand = [\"./program\"]\n";
        std::fs::write(path.join("system.toml"), text).expect("written");
        run_traced(path);
        let events = traced(path, "p", 90_000_000);
        let aborts = events.iter().filter(|event| event.event == "abort");
        let aborts: Vec<_> = aborts.map(|event| event.time_ns).collect();
        assert_eq!(aborts, [10_000_700, 23_001_400], "{cores}");
    }
}
