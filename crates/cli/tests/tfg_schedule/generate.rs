//! Random hosts: programs of several tasks, some of them with locks, memory, files, sleeps, loops
//! that end, phases, firm points, or readers; of every policy; on one to three processors, or one
//! for each task.

use crate::random::Random;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

/// When runs end.
const END_MS: i64 = 100;
pub(crate) const END_NS: i64 = END_MS * 1_000_000;
/// Different programs of one run. Hosts have some of them, with execution times of their own.
const SOURCES: usize = 25;

/// Hosts with their programs.
pub(crate) struct Hosts {
    /// Hosts, links, programs, with `BUILT` before what was compiled and `SOURCE` before sources.
    description: String,
    pub(crate) sources: Vec<String>,
    /// Of programs.
    pub(crate) names: Vec<String>,
    /// Beside each program.
    times: Vec<String>,
    /// How often each of [`FEATURES`] was drawn.
    pub(crate) drawn: BTreeMap<&'static str, u64>,
}

/// What programs and hosts are made of: each must be drawn.
pub(crate) const FEATURES: [&str; 26] = [
    "cores 1",
    "cores 2",
    "cores 3",
    "no cores",
    "no core of the program",
    "priority",
    "no priority",
    "FIFO_RM",
    "FIFO_DM",
    "RR_RM",
    "RR_DM",
    "EDF",
    "lock",
    "nested",
    "alias",
    "wrapped",
    "vague",
    "tried",
    "tried against the order",
    "memory",
    "file",
    "sleep",
    "loop that ends",
    "task that ends",
    "phase",
    "firm",
];

/// A program, and where whole segments may get execution times.
struct Source {
    text: String,
    /// From, to, and the time between them.
    segments: Vec<(String, String, i64)>,
    drawn: BTreeMap<&'static str, u64>,
}

struct Writer<'r> {
    drawn: BTreeMap<&'static str, u64>,
    random: &'r mut Random,
    text: String,
    segments: Vec<(String, String, i64)>,
    /// No locks, phases, or readers: where theory is exact.
    is_plain: bool,
    /// How much of each period a task works.
    load: i64,
    name: String,
}

/// Priorities come in an order that is no more than random, one for each task of a host.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    Priorities,
    Rate,
    Deadline,
    Earliest,
    Mixed,
    /// Some state nothing.
    Open,
}

/// What stands before tasks. Mutexes have an order: `m0`, `m1`, `dev.lock`.
const HEAD: &str = "\
#include <stdlib.h>
#include <stdio.h>
#include <unistd.h>
#include <pthread.h>
#include <cilktc.h>
struct dev { int n; pthread_mutex_t lock; };
static pthread_mutex_t m0 = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t m1 = PTHREAD_MUTEX_INITIALIZER;
static struct dev dev = { 0, PTHREAD_MUTEX_INITIALIZER };
static pthread_mutex_t *some = &m1;
static void nothing(void) { }
static void take(pthread_mutex_t *m) { pthread_mutex_lock(m); }
static void give(pthread_mutex_t *m) { pthread_mutex_unlock(m); }
static void grab(struct dev *d) { take(&d->lock); }
static void drop(struct dev *d) { pthread_mutex_unlock(&d->lock); }
";

/// How a mutex is locked and unlocked: by name, by an alias, in a function.
const WAYS: [[(&str, &str); 3]; 3] = [
    [
        ("pthread_mutex_lock(&m0);", "pthread_mutex_unlock(&m0);"),
        ("pthread_mutex_lock(p0);", "pthread_mutex_unlock(p0);"),
        ("take(&m0);", "give(&m0);"),
    ],
    [
        ("pthread_mutex_lock(&m1);", "pthread_mutex_unlock(&m1);"),
        ("pthread_mutex_lock(p1);", "pthread_mutex_unlock(p1);"),
        ("take(p1);", "give(&m1);"),
    ],
    [
        ("pthread_mutex_lock(&dev.lock);", "pthread_mutex_unlock(&dev.lock);"),
        ("pthread_mutex_lock(&d->lock);", "pthread_mutex_unlock(&d->lock);"),
        ("grab(d);", "drop(&dev);"),
    ],
];

fn source(random: &mut Random, number: usize) -> Source {
    let is_plain = number < 7;
    let load = random.between(4, 12);
    let style = match random.below(10) {
        0..4 => Style::Priorities,
        4 => Style::Rate,
        5 => Style::Deadline,
        6 => Style::Earliest,
        7 => Style::Open,
        _ => Style::Mixed,
    };
    let (drawn, segments, name) = (BTreeMap::new(), Vec::new(), String::new());
    let text = HEAD.to_owned();
    let mut writer = Writer { random, text, segments, is_plain, load, name, drawn };
    let count = writer.random.between(1, 5);
    let mut starts = String::new();
    let mut taken = 0;
    for task in 0..count {
        writer.name = format!("t{task}");
        // Numbers of other programs on the host are others.
        taken += writer.random.between(1, 4);
        let priority = 1 + taken * 5 + (number % 5) as i64;
        writer.task(style, priority, task > 0);
        let _ = writeln!(starts, "\tt{task}();");
        if writer.text.contains(&format!("t{task}_writer")) {
            let _ = writeln!(starts, "\tt{task}_writer();");
        }
    }
    let _ = write!(writer.text, "int main(void)\n{{\n{starts}\treturn 0;\n}}\n");
    Source { text: writer.text, segments: writer.segments, drawn: writer.drawn }
}

impl Writer<'_> {
    fn line(&mut self, text: &str) {
        let _ = writeln!(self.text, "\t{text}");
    }

    /// The next line's number.
    fn here(&self) -> usize {
        self.text.lines().count() + 1
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.random.below(count) == 0
    }

    fn period(&mut self) -> i64 {
        [2_000, 4_000, 5_000, 8_000, 10_000, 20_000][self.random.below(6) as usize]
    }

    /// Some time of a period, in microseconds.
    fn work(&mut self, period: i64, share: i64) {
        let worst = self.random.between(0, period / self.load / share);
        let best = self.random.between(0, worst);
        if worst > 0 {
            self.line(&format!("__attribute__((exectime({best}, {worst}, us)));"));
        }
    }

    fn draw(&mut self, feature: &'static str) {
        *self.drawn.entry(feature).or_default() += 1;
    }

    fn policy(&mut self, style: Style, priority: i64) {
        let style = match style {
            Style::Mixed if self.one_in(3) => Style::Earliest,
            Style::Mixed => Style::Priorities,
            Style::Open if self.one_in(4) => Style::Priorities,
            style => style,
        };
        let is_fair = self.one_in(3);
        let (feature, line) = match (style, is_fair) {
            (Style::Rate, false) => ("FIFO_RM", "spolicy(FIFO_RM);"),
            (Style::Rate, true) => ("RR_RM", "spolicy(RR_RM);"),
            (Style::Deadline, false) => ("FIFO_DM", "spolicy(FIFO_DM);"),
            (Style::Deadline, true) => ("RR_DM", "spolicy(RR_DM);"),
            (Style::Earliest, _) => ("EDF", "spolicy(EDF);"),
            (Style::Open, _) => ("no priority", "nothing();"),
            (Style::Priorities | Style::Mixed, _) => {
                self.draw("priority");
                return self.line(&format!("spriority({priority});"));
            }
        };
        self.draw(feature);
        self.line(line);
    }

    fn task(&mut self, style: Style, priority: i64, may_feed: bool) {
        let period = self.period();
        let kind = if self.is_plain { self.random.below(2) } else { self.random.below(13) };
        let is_fed = (6..8).contains(&kind) && may_feed;
        let name = self.name.clone();
        if is_fed {
            let _ = writeln!(self.text, "int fifochannel(c_{name});");
            self.writer_of(style, (priority - 2).max(1), &format!("c_{name}"));
        }
        let _ = writeln!(self.text, "task {name}(void)\n{{");
        let style = if is_fed { Style::Priorities } else { style };
        self.policy(style, priority);
        self.line("pthread_mutex_t *p0 = &m0, *p1 = &m1; struct dev *d = &dev;");
        self.line("(void)p0; (void)p1; (void)d;");
        let mut from = "start".to_owned();
        if !self.is_plain && !is_fed && self.one_in(3) {
            self.draw("phase");
            let offset = self.random.between(1, 3_000);
            from = self.here().to_string();
            self.line(&format!("sdelay({offset}, us);"));
        }
        if is_fed {
            self.line("int v;");
        }
        if kind == 9 {
            self.ending();
            if self.one_in(2) {
                self.draw("task that ends");
                self.text.push_str("}\n");
                return;
            }
            from = String::new();
        }
        self.line("while (1) {");
        self.round(kind, is_fed, period, &from);
        self.text.push_str("\t}\n}\n");
    }

    /// What a task does again and again.
    fn round(&mut self, kind: u64, is_fed: bool, period: i64, from: &str) {
        match kind {
            _ if is_fed => {
                let name = self.name.clone();
                self.line(&format!("cread(c_{name}, v);"));
                self.work(2_000, 1);
            }
            0 | 5 => self.soft(period, from),
            1 => self.firm(period, from),
            2 | 3 | 12 => self.locks(period),
            4 => {
                self.soft(period, from);
                let next = self.period();
                self.work(next, 1);
                self.line(&format!("sdelay({next}, us);"));
            }
            8 => self.memory(period),
            9 => {
                self.work(period, 1);
                self.line(&format!("sdelay({period}, us);"));
            }
            10 if self.one_in(2) => {
                self.draw("sleep");
                self.work(period, 2);
                let us = self.random.between(1, period / 8);
                self.line(&format!("usleep({us});"));
                self.line(&format!("sdelay({period}, us);"));
            }
            11 => self.tries(period),
            _ => {
                self.work(period, 2);
                self.locks(period);
            }
        }
    }

    /// A loop that ends.
    fn ending(&mut self) {
        self.draw("loop that ends");
        let (rounds, period) = (self.random.between(1, 5), self.period());
        self.line(&format!("for (int i = 0; i < {rounds}; i++) {{"));
        self.work(period, 1);
        self.line(&format!("sdelay({period}, us);"));
        self.line("}");
    }

    /// Memory and files are held, which no soft point minds.
    fn memory(&mut self, period: i64) {
        self.draw("memory");
        self.line("void *volatile memory = malloc(64);");
        self.work(period, 2);
        if self.one_in(2) {
            self.draw("file");
            self.line("FILE *file = fopen(\"/dev/null\", \"w\");");
            self.work(period, 4);
            self.line("fputs(\"x\", file);");
            self.line("fclose(file);");
        }
        self.line("free(memory);");
        self.line(&format!("sdelay({period}, us);"));
    }

    /// A mutex that is taken if it is free; with another one held, one that comes before that.
    fn tries(&mut self, period: i64) {
        self.draw("tried");
        let holds = self.one_in(2);
        if holds {
            self.draw("tried against the order");
            self.line("pthread_mutex_lock(&dev.lock);");
            self.work(period, 8);
        }
        let (before, after) = match self.random.below(3) {
            0 => ("if (pthread_mutex_trylock(&m0) == 0) {", "}"),
            1 => ("if (!pthread_mutex_trylock(&m0)) {", "}"),
            _ => ("if (pthread_mutex_trylock(&m0)) { nothing(); } else {", "}"),
        };
        self.line(before);
        self.work(period, 4);
        self.line("pthread_mutex_unlock(&m0);");
        self.line(after);
        if holds {
            self.line("pthread_mutex_unlock(&dev.lock);");
        }
        self.work(period, 8);
        self.line(&format!("sdelay({period}, us);"));
    }

    /// Who writes what another task is released by.
    fn writer_of(&mut self, style: Style, priority: i64, channel: &str) {
        let period = 2 * self.period();
        let _ = writeln!(self.text, "task {}_writer(void)\n{{", self.name);
        self.policy(style, priority);
        self.line("int v = 1;");
        self.line("while (1) {");
        self.work(period, 2);
        self.line(&format!("cwrite({channel}, v);"));
        self.work(period, 2);
        self.line(&format!("sdelay({period}, us);"));
        self.text.push_str("\t}\n}\n");
    }

    /// Its work is in the source or beside it.
    fn soft(&mut self, period: i64, from: &str) {
        let is_beside = !self.is_plain && self.one_in(2);
        if !is_beside {
            self.work(period, 1);
        }
        let here = self.here().to_string();
        if is_beside {
            self.beside(from, &here, period);
        }
        self.line(&format!("sdelay({period}, us);"));
    }

    fn beside(&mut self, from: &str, here: &str, period: i64) {
        for from in [from, here] {
            let to = format!("{}:{here}", self.name);
            self.segments.push((format!("{}:{from}", self.name), to, period));
        }
    }

    fn firm(&mut self, period: i64, from: &str) {
        let deadline = self.random.between(period / 8, period);
        self.draw("firm");
        // A segment without calls is not aborted.
        self.line("nothing();");
        self.work(period, 1);
        if self.one_in(3) {
            self.work(2 * period, 1);
        }
        let here = self.here().to_string();
        if !self.is_plain && self.one_in(3) {
            self.beside(from, &here, period);
        }
        self.line(&format!("ftp({period}, {deadline}, us);"));
    }

    fn locks(&mut self, period: i64) {
        self.draw("lock");
        self.work(period, 4);
        if self.one_in(8) {
            self.draw("vague");
            self.line("pthread_mutex_lock(some);");
            self.work(period, 4);
            self.line("pthread_mutex_unlock(some);");
        } else {
            let first = self.random.below(3) as usize;
            self.section(first, period, 4);
        }
        self.work(period, 4);
        self.line(&format!("sdelay({period}, us);"));
    }

    /// A critical section, perhaps with others within, of mutexes that come later.
    fn section(&mut self, mutex: usize, period: i64, share: i64) {
        let way = self.random.below(3) as usize;
        match way {
            1 => self.draw("alias"),
            2 => self.draw("wrapped"),
            _ => {}
        }
        let (lock, unlock) = WAYS[mutex][way];
        self.line(lock);
        self.work(period, share);
        if mutex < 2 && self.one_in(2) {
            self.draw("nested");
            let next = self.random.between(mutex as i64 + 1, 2);
            self.section(next as usize, period, 2 * share);
            self.work(period, 2 * share);
        }
        self.line(unlock);
    }
}

/// Hosts of random programs.
pub(crate) fn hosts(seed: u64, count: usize) -> Hosts {
    let mut random = Random(seed);
    let sources: Vec<Source> = (0..SOURCES).map(|number| source(&mut random, number)).collect();
    let mut text = format!(
        "format = 1\nname = \"schedules\"\n[run]\nduration_ms = {END_MS}\nseed = {seed}\n\
         [[bridge]]\nname = \"bridge\"\n"
    );
    let (mut names, mut times) = (Vec::new(), Vec::new());
    let mut drawn: BTreeMap<&'static str, u64> = BTreeMap::new();
    for (feature, count) in sources.iter().flat_map(|source| &source.drawn) {
        *drawn.entry(feature).or_default() += count;
    }
    for host in 0..count {
        let cores: i64 = [1, 1, 2, 2, 3, 0][random.below(6) as usize];
        let feature = ["no cores", "cores 1", "cores 2", "cores 3"][cores as usize];
        *drawn.entry(feature).or_default() += 1;
        let _ = writeln!(text, "[[host]]\nname = \"h{host}\"");
        if cores > 0 {
            let _ = writeln!(text, "cores = {cores}");
        }
        if random.below(2) == 0 {
            let least = random.between(0, 20_000);
            let most = least + random.between(0, 30_000);
            let _ = writeln!(text, "wakeup_ns = {{ min = {least}, max = {most} }}");
        }
        let _ = writeln!(text, "[[link]]\nends = [\"h{host}\", \"bridge\"]\nrate_mbps = 1000");
        for program in 0..random.between(1, 3) {
            let name = format!("h{host}p{program}");
            // Programs of one host have other priorities if they are neighbours.
            let base = random.below(SOURCES as u64 / 5) as usize * 5;
            let number = (base + (host + program as usize) % 5) % SOURCES;
            let core = match random.below(cores.cast_unsigned() + 1) {
                0 => {
                    *drawn.entry("no core of the program").or_default() += 1;
                    String::new()
                }
                core => format!("cores = [{}]\n", core - 1),
            };
            let _ = writeln!(
                text,
                "[[program]]\nname = \"{name}\"\nhost = \"h{host}\"\n{core}\
                 execution_times = \"{name}.times\"\n\
                 BUILT = [\"/usr/bin/env\", \"ONBEAT_PRIORITIES={name}\", \
                 \"./s{number}\"]\n\
                 SOURCE = [\"s{number}.c\"]"
            );
            let mut lines = String::new();
            for (from, to, period) in &sources[number].segments {
                let worst = random.between(0, period * 1_000 / 4);
                let best = random.between(0, worst);
                let _ = writeln!(lines, "{from},{best},{worst},,,{to}");
            }
            names.push(name);
            times.push(lines);
        }
    }
    let sources = sources.into_iter().map(|source| source.text).collect();
    Hosts { description: text, sources, names, times, drawn }
}

impl Hosts {
    fn of(&self, kept: &str, key: &str, left: &str) -> String {
        let lines = self.description.lines().filter(|line| !line.starts_with(left));
        lines.map(|line| line.replace(kept, key) + "\n").collect()
    }

    /// Writes all into a directory: `system.toml` from sources.
    pub(crate) fn write(&self, directory: &Path) {
        let write = |name: &str, text: &str| {
            std::fs::write(directory.join(name), text).expect("written");
        };
        write("system.toml", &self.of("SOURCE", "source", "BUILT"));
        for (number, text) in self.sources.iter().enumerate() {
            write(&format!("s{number}.c"), text);
        }
        for (name, text) in self.names.iter().zip(&self.times) {
            write(&format!("{name}.times"), text);
        }
    }

    /// Writes `run.toml` from what is compiled, whose tasks get the priorities that are proposed,
    /// by program.
    pub(crate) fn write_run(&self, directory: &Path, proposed: &BTreeMap<String, String>) {
        let mut text = self.of("BUILT", "command", "SOURCE");
        for name in &self.names {
            let own = proposed.get(name).map_or("", String::as_str);
            let (key, value) = (format!("PRIORITIES={name}\""), format!("PRIORITIES={own}\""));
            text = text.replace(&key, &value);
        }
        std::fs::write(directory.join("run.toml"), text).expect("written");
    }
}
