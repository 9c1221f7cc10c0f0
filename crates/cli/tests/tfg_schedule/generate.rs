//! Random hosts: programs of several tasks, some of them with locks, phases, firm points, or
//! readers; on one or two processors.

use crate::random::Random;
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
}

/// A program, and where whole segments may get execution times.
struct Source {
    text: String,
    /// From, to, and the time between them.
    segments: Vec<(String, String, i64)>,
}

struct Writer<'r> {
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
}

fn source(random: &mut Random, number: usize) -> Source {
    let is_plain = number < 10;
    let load = random.between(4, 12);
    let style = match random.below(8) {
        0..4 => Style::Priorities,
        4 => Style::Rate,
        5 => Style::Deadline,
        6 => Style::Earliest,
        _ => Style::Mixed,
    };
    let text = "#include <stdlib.h>\n#include <pthread.h>\n#include <cilktc.h>\n\
         static pthread_mutex_t m0 = PTHREAD_MUTEX_INITIALIZER;\n\
         static pthread_mutex_t m1 = PTHREAD_MUTEX_INITIALIZER;\n\
         static void nothing(void) { }\n"
        .to_owned();
    let mut writer =
        Writer { random, text, segments: Vec::new(), is_plain, load, name: String::new() };
    let count = writer.random.between(1, 4);
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
    Source { text: writer.text, segments: writer.segments }
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

    fn policy(&mut self, style: Style, priority: i64) {
        let style = match style {
            Style::Mixed if self.one_in(3) => Style::Earliest,
            Style::Mixed => Style::Priorities,
            style => style,
        };
        match style {
            Style::Rate => self.line("spolicy(FIFO_RM);"),
            Style::Deadline => self.line("spolicy(FIFO_DM);"),
            Style::Earliest => self.line("spolicy(EDF);"),
            Style::Priorities | Style::Mixed => self.line(&format!("spriority({priority});")),
        }
    }

    fn task(&mut self, style: Style, priority: i64, may_feed: bool) {
        let period = self.period();
        let kind = if self.is_plain { self.random.below(2) } else { self.random.below(8) };
        let is_fed = kind == 7 && may_feed;
        let name = self.name.clone();
        if is_fed {
            let _ = writeln!(self.text, "int fifochannel(c_{name});");
            self.writer_of(style, (priority - 2).max(1), &format!("c_{name}"));
        }
        let _ = writeln!(self.text, "task {name}(void)\n{{");
        let style = if is_fed { Style::Priorities } else { style };
        self.policy(style, priority);
        let mut from = "start".to_owned();
        if !self.is_plain && !is_fed && self.one_in(3) {
            let offset = self.random.between(1, 3_000);
            from = self.here().to_string();
            self.line(&format!("sdelay({offset}, us);"));
        }
        if is_fed {
            self.line("int v;");
        }
        self.line("while (1) {");
        match kind {
            _ if is_fed => {
                self.line(&format!("cread(c_{name}, v);"));
                self.work(2_000, 1);
            }
            0 | 5 => self.soft(period, &from),
            1 => self.firm(period, &from),
            2 | 3 => self.locks(period),
            4 => {
                self.soft(period, &from);
                let next = self.period();
                self.work(next, 1);
                self.line(&format!("sdelay({next}, us);"));
            }
            _ => {
                self.work(period, 2);
                self.locks(period);
            }
        }
        self.text.push_str("\t}\n}\n");
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
        let first = self.random.below(2);
        self.work(period, 4);
        self.line(&format!("pthread_mutex_lock(&m{first});"));
        self.work(period, 4);
        if first == 0 && self.one_in(2) {
            self.line("pthread_mutex_lock(&m1);");
            self.work(period, 4);
            self.line("pthread_mutex_unlock(&m1);");
            self.work(period, 8);
        }
        self.line(&format!("pthread_mutex_unlock(&m{first});"));
        self.work(period, 4);
        self.line(&format!("sdelay({period}, us);"));
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
    for host in 0..count {
        let cores = random.between(1, 2);
        let _ = writeln!(text, "[[host]]\nname = \"h{host}\"\ncores = {cores}");
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
            let core = random.below(cores.cast_unsigned());
            let _ = writeln!(
                text,
                "[[program]]\nname = \"{name}\"\nhost = \"h{host}\"\ncores = [{core}]\n\
                 execution_times = \"{name}.times\"\nBUILT = [\"./s{number}\"]\n\
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
    Hosts { description: text, sources, names, times }
}

impl Hosts {
    /// Writes all into a directory: `system.toml` from sources, and `run.toml` from what is
    /// compiled.
    pub(crate) fn write(&self, directory: &Path) {
        let write = |name: &str, text: &str| {
            std::fs::write(directory.join(name), text).expect("written");
        };
        let of = |kept: &str, key: &str, left: &str| {
            let lines = self.description.lines().filter(|line| !line.starts_with(left));
            lines.map(|line| line.replace(kept, key) + "\n").collect::<String>()
        };
        write("system.toml", &of("SOURCE", "source", "BUILT"));
        write("run.toml", &of("BUILT", "command", "SOURCE"));
        for (number, text) in self.sources.iter().enumerate() {
            write(&format!("s{number}.c"), text);
        }
        for (name, text) in self.names.iter().zip(&self.times) {
            write(&format!("{name}.times"), text);
        }
    }
}
