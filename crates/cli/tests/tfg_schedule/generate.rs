//! Random hosts: programs of several tasks, some of them with locks, memory, files, sleeps, loops
//! that end, start-up phases, firm points, or readers; of every policy; on one to three processors,
//! or one for each task. And programs whose tasks may wait for each other's locks for ever.

use onbeat_hunt::reduce::Files;
use onbeat_testkit::Random;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

/// When runs end.
const END_MS: i64 = 100;
pub(crate) const END_NS: i64 = END_MS * 1_000_000;
/// Different programs of one run. Hosts have some of them, with execution times of their own.
const SOURCES: usize = 25;

/// Hosts with their programs.
#[derive(Default)]
pub(crate) struct Hosts {
    /// Hosts, links, programs, with `BUILT` before what was compiled and `SOURCE` before sources.
    description: String,
    pub(crate) sources: Vec<String>,
    /// Of programs.
    pub(crate) names: Vec<String>,
    /// Beside each program.
    times: Vec<String>,
    /// Programs with a file of execution times: segments may begin late, take longer when they are
    /// aborted, or longer the first time, and no job need take as long as all that together.
    pub(crate) inexact: BTreeSet<String>,
    /// How often each of [`FEATURES`] was drawn.
    pub(crate) drawn: BTreeMap<&'static str, u64>,
}

/// What programs and hosts are made of: each must be drawn.
pub(crate) const FEATURES: [&str; 41] = [
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
    "start offset",
    "offset of nothing",
    "start-up phase",
    "soft",
    "firm",
    "hard",
    "points by turns",
    "lock in a firm segment",
    "nested in a firm segment",
    "tried in a firm segment",
    "memory in a firm segment",
    "file in a firm segment",
    "held up to a firm point",
    "reader",
    "time beside the source",
    "JITTER",
    "ABORT",
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
    /// Mutexes are locked in any order.
    is_circular: bool,
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
static void late(const struct timedc_late *point) { (void)point; }
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

fn source(random: &mut Random, number: usize, is_circular: bool) -> Source {
    let is_plain = number < 7 && !is_circular;
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
    let mut writer = Writer { random, text, segments, is_plain, is_circular, load, name, drawn };
    let count = writer.random.between(if is_circular { 2 } else { 1 }, 5);
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
        let kind = match (self.is_plain, self.is_circular) {
            (true, _) => self.random.below(2),
            (_, true) if !self.one_in(4) => 2,
            _ => self.random.below(19),
        };
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
        self.line("void *volatile memory = NULL; int turn = 0;");
        self.line("(void)p0; (void)p1; (void)d; (void)memory; (void)turn; timedc_on_late(late);");
        let mut from = "start".to_owned();
        if !self.is_plain && !is_fed && self.one_in(3) {
            from = self.start_up();
        }
        if is_fed {
            self.draw("reader");
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
        if (17..=18).contains(&kind) {
            // Between points with different deadlines is chosen right behind one.
            self.line("sdelay(0, us);");
        }
        self.line("while (1) {");
        self.round(kind, is_fed, period, &from);
        self.text.push_str("\t}\n}\n");
    }

    /// A start offset, or several segments before what repeats. Gives its last
    /// point.
    fn start_up(&mut self) -> String {
        let feature =
            ["start offset", "offset of nothing", "start-up phase"][self.random.below(3) as usize];
        self.draw(feature);
        let mut from = String::new();
        for _ in 0..if feature == "start-up phase" { 2 } else { 1 } {
            let offset = match feature {
                "offset of nothing" => 0,
                _ => self.random.between(1, 3_000),
            };
            if feature == "start-up phase" {
                self.work(self.load * 1_000, 1);
            }
            from = self.here().to_string();
            self.line(&format!("sdelay({offset}, us);"));
        }
        from
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
            1 => self.firm(period, from, false),
            13..=16 => self.firm(period, from, true),
            2 | 3 | 12 => self.locks(period),
            4 => {
                self.soft(period, from);
                let next = self.period();
                self.work(next, 1);
                self.line(&format!("sdelay({next}, us);"));
            }
            8 => self.memory(period),
            17..=18 => self.by_turns(period),
            9 => {
                self.work(period, 1);
                self.line(&format!("sdelay({period}, us);"));
            }
            10 => {
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
        self.draw("soft");
        let (rounds, period) = (self.random.between(1, 5), self.period());
        self.line(&format!("for (int i = 0; i < {rounds}; i++) {{"));
        self.work(period, 1);
        self.line(&format!("sdelay({period}, us);"));
        self.line("}");
    }

    /// Memory and files are held, which no soft point minds.
    fn memory(&mut self, period: i64) {
        if self.allocate(period, 2) {
            self.draw("file");
        }
        self.draw("memory");
        self.line("free(memory);");
        self.line(&format!("sdelay({period}, us);"));
    }

    /// Memory, and perhaps a file while it is held: whether it is.
    fn allocate(&mut self, period: i64, share: i64) -> bool {
        self.line("memory = malloc(64);");
        self.work(period, share);
        let has_file = self.one_in(2);
        if has_file {
            self.line("FILE *file = fopen(\"/dev/null\", \"w\");");
            self.work(period, 2 * share);
            self.line("fputs(\"x\", file);");
            self.line("fclose(file);");
        }
        has_file
    }

    /// A mutex that is taken if it is free; with another one held, one that comes before that.
    fn tries(&mut self, period: i64) {
        self.tried(period);
        self.work(period, 8);
        self.line(&format!("sdelay({period}, us);"));
    }

    fn tried(&mut self, period: i64) {
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
        self.draw("soft");
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
        self.draw("time beside the source");
        for from in [from, here] {
            let to = format!("{}:{here}", self.name);
            self.segments.push((format!("{}:{from}", self.name), to, period));
        }
    }

    /// A firm or hard point, whose segment perhaps holds something meanwhile, or up to it.
    fn firm(&mut self, period: i64, from: &str, holds: bool) {
        let deadline = self.random.between(period / 8, period);
        let is_hard = !self.is_plain && self.one_in(4);
        self.draw(if is_hard { "hard" } else { "firm" });
        // A segment without calls is not aborted.
        self.line("nothing();");
        self.work(period, 1);
        let after = if holds { self.hold(period) } else { "" };
        if self.one_in(3) {
            self.work(2 * period, 1);
        }
        let here = self.here().to_string();
        if !self.is_plain && self.one_in(3) {
            self.beside(from, &here, period);
        }
        let point = if is_hard { "htp" } else { "ftp" };
        self.line(&format!("{point}({period}, {deadline}, us);"));
        if !after.is_empty() {
            self.line(after);
        }
    }

    /// Two points, of which one comes now and then only: jobs have one or the other deadline.
    fn by_turns(&mut self, period: i64) {
        self.draw("points by turns");
        let other = self.period();
        let deadline = self.random.between(other / 8, other);
        let rounds = self.random.between(2, 3);
        self.line(&format!("if (turn++ % {rounds} == 0) {{"));
        self.work(other, 1);
        self.line(&format!("ftp({other}, {deadline}, us);"));
        self.line("}");
        self.work(period, 1);
        match self.one_in(2) {
            true => self.line(&format!("sdelay({period}, us);")),
            false => {
                let deadline = self.random.between(period / 8, period);
                self.line(&format!("ftp({period}, {deadline}, us);"));
            }
        }
    }

    /// Something is obtained in a segment that may be aborted; what gives it back behind the point.
    fn hold(&mut self, period: i64) -> &'static str {
        let is_kept = self.one_in(3);
        let after = match self.random.below(6) {
            0..2 => {
                self.draw("memory in a firm segment");
                if self.allocate(period, 1) {
                    self.draw("file in a firm segment");
                }
                // Where control comes by an abort there may be none.
                "free(memory); memory = NULL;"
            }
            2 => {
                self.draw("tried in a firm segment");
                self.tried(period);
                return "";
            }
            _ => {
                self.draw("lock in a firm segment");
                let nested = self.drawn.get("nested").copied();
                self.section(&mut vec![], period, 1);
                if self.drawn.get("nested").copied() != nested {
                    self.draw("nested in a firm segment");
                }
                return "";
            }
        };
        if is_kept {
            self.draw("held up to a firm point");
            return after;
        }
        self.line(after);
        ""
    }

    fn locks(&mut self, period: i64) {
        self.draw("lock");
        self.work(period, 4);
        if self.one_in(6) {
            self.draw("vague");
            self.line("pthread_mutex_lock(some);");
            self.work(period, 4);
            self.line("pthread_mutex_unlock(some);");
        } else {
            self.section(&mut vec![], period, 4);
        }
        self.work(period, 4);
        self.line(&format!("sdelay({period}, us);"));
    }

    /// A critical section, perhaps with others within, of mutexes that come later, or of any.
    fn section(&mut self, held: &mut Vec<usize>, period: i64, share: i64) {
        let first = held.last().map_or(0, |last| last + 1).min(3);
        let first = if self.is_circular { 0 } else { first };
        let free: Vec<usize> = (first..3).filter(|mutex| !held.contains(mutex)).collect();
        let mutex = free[self.random.below(free.len() as u64) as usize];
        let way = self.random.below(3) as usize;
        match way {
            1 => self.draw("alias"),
            2 => self.draw("wrapped"),
            _ => {}
        }
        let (lock, unlock) = WAYS[mutex][way];
        self.line(lock);
        self.work(period, share);
        held.push(mutex);
        let is_last = if self.is_circular { held.len() == 3 } else { mutex == 2 };
        if !is_last && self.one_in(2) {
            self.draw("nested");
            self.section(held, period, 2 * share);
            self.work(period, 2 * share);
        }
        held.pop();
        self.line(unlock);
    }
}

/// Hosts of random programs.
pub(crate) fn hosts(seed: u64, count: usize) -> Hosts {
    let mut random = Random(seed);
    let sources = (0..SOURCES).map(|number| source(&mut random, number, false)).collect();
    all(random, sources, count)
}

/// A host with a program whose tasks lock mutexes in any order.
pub(crate) fn circular(seed: u64) -> Hosts {
    let mut random = Random(seed);
    let sources = vec![source(&mut random, 0, true)];
    all(random, sources, 1)
}

fn all(mut random: Random, sources: Vec<Source>, count: usize) -> Hosts {
    let seed = random.below(1 << 32);
    let description = format!(
        "format = 1\nname = \"schedules\"\n[run]\nduration_ms = {END_MS}\nseed = {seed}\n\
         [[bridge]]\nname = \"bridge\"\n"
    );
    let mut hosts = Hosts { description, ..Hosts::default() };
    for (feature, count) in sources.iter().flat_map(|source| &source.drawn) {
        *hosts.drawn.entry(feature).or_default() += count;
    }
    for host in 0..count {
        hosts.host(&mut random, &sources, host);
    }
    hosts.sources = sources.into_iter().map(|source| source.text).collect();
    hosts
}

impl Hosts {
    fn draw(&mut self, feature: &'static str) {
        *self.drawn.entry(feature).or_default() += 1;
    }

    fn host(&mut self, random: &mut Random, sources: &[Source], host: usize) {
        let cores: i64 = [1, 1, 2, 2, 3, 0][random.below(6) as usize];
        self.draw(["no cores", "cores 1", "cores 2", "cores 3"][cores as usize]);
        let mut text = format!("[[host]]\nname = \"h{host}\"\n");
        if cores > 0 {
            let _ = writeln!(text, "cores = {cores}");
        }
        if random.below(2) == 0 {
            let least = random.between(0, 20_000);
            let most = least + random.between(0, 30_000);
            let _ = writeln!(text, "wakeup_ns = {{ min = {least}, max = {most} }}");
        }
        let _ = writeln!(text, "[[link]]\nends = [\"h{host}\", \"bridge\"]\nrate_mbps = 1000");
        let programs = if sources.len() > 1 { random.between(1, 3) } else { 1 };
        for program in 0..programs {
            let name = format!("h{host}p{program}");
            // Programs of one host have other priorities if they are neighbours.
            let base = random.below(sources.len().div_ceil(5) as u64) as usize * 5;
            let number = (base + (host + program as usize) % 5) % sources.len();
            let core = match random.below(cores.cast_unsigned() + 1) {
                0 => {
                    self.draw("no core of the program");
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
            let lines = self.times(random, &name, &sources[number]);
            self.names.push(name);
            self.times.push(lines);
        }
        self.description.push_str(&text);
    }

    /// The file of execution times of a program.
    fn times(&mut self, random: &mut Random, name: &str, source: &Source) -> String {
        let mut lines = String::new();
        for (from, to, period) in &source.segments {
            self.inexact.insert(name.to_owned());
            let worst = random.between(0, period * 1_000 / 4);
            let best = random.between(0, worst);
            let (mut jitter, mut abort) = (String::new(), String::new());
            if random.below(3) == 0 {
                self.draw("JITTER");
                jitter = random.between(1, period * 1_000 / 16).to_string();
            }
            if random.below(3) == 0 {
                self.draw("ABORT");
                abort = random.between(1, period * 1_000 / 16).to_string();
            }
            let _ = writeln!(lines, "{from},{best},{worst},{jitter},{abort},{to}");
        }
        lines
    }
}

impl Hosts {
    fn of(&self, kept: &str, key: &str, left: &str) -> String {
        let lines = self.description.lines().filter(|line| !line.starts_with(left));
        lines.map(|line| line.replace(kept, key) + "\n").collect()
    }

    /// One host with its programs, from sources.
    pub(crate) fn only(&self, host: &str) -> Files {
        let text = self.of("SOURCE", "source", "BUILT");
        let tables: Vec<&str> = text.split_inclusive("\n").collect();
        let (mut description, mut is_kept) = (String::new(), true);
        for (at, line) in tables.iter().enumerate() {
            if line.starts_with('[') {
                let rest = &tables[at + 1..];
                let end = rest.iter().position(|line| line.starts_with('[')).unwrap_or(rest.len());
                let is_other = |line: &&str| {
                    let name = |key: &str| line.strip_prefix(key)?.split('"').next();
                    let names = ["name = \"h", "host = \"h", "ends = [\"h"].map(name);
                    names
                        .into_iter()
                        .flatten()
                        .any(|n| format!("h{n}").split('p').next() != Some(host))
                };
                is_kept = !rest[..end].iter().any(is_other);
            }
            description.push_str(if is_kept { line } else { "" });
        }
        let mut files = Files::from([("system.toml".to_owned(), description)]);
        let named = |name: &str| files["system.toml"].contains(&format!("\"{name}\""));
        let sources = self.sources.iter().enumerate().map(|(n, text)| (format!("s{n}.c"), text));
        let times = self.names.iter().map(|name| format!("{name}.times")).zip(&self.times);
        let mine: Vec<_> = sources.chain(times).filter(|(name, _)| named(name)).collect();
        files.extend(mine.into_iter().map(|(name, text)| (name, text.clone())));
        files
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
