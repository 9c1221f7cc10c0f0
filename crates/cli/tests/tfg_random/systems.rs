//! Random systems: many independent groups of tasks side by side in the same four programs.

use super::tasks::{self, End, Kind, Plan};
use onbeat_testkit::Random;
use std::fmt::Write;
use std::path::Path;

/// When runs end.
pub(crate) const END_NS: i64 = 150_000_000;
/// How many hosts there are, each with a program.
pub(crate) const HOSTS: usize = 4;

/// Functions that programs have, and what `WORK` is on the platform and in logical time.
const HEAD: &str = "\
#include <stdlib.h>
#include <cilktc.h>
#include <timedc_avtp.h>
#include \"manifest.h\"

#ifdef LOGICAL
#define WORK(best, worst)
#else
#define WORK(best, worst) __attribute__((exectime(best, worst, us)))
#endif

static void late(const struct timedc_late *point) { (void)point; }
static unsigned long long coins[256];
static int coin(int task)
{
	coins[task] = coins[task] * 6364136223846793005ULL + 1442695040888963407ULL;
	return (int)(coins[task] >> 40) & 1;
}
static void begin(void)
{
	const char *seed = getenv(\"COINS\");

	for (int i = 0; i < 256; i++)
		coins[i] = (seed ? strtoull(seed, NULL, 10) : 0) * 0x9e3779b97f4a7c15ULL + i;
}
WORK(100, 200) static void work_0(void) { }
WORK(300, 300) static void work_1(void) { WORK(50, 60); }
static void work_2(void) { for (int i = 0; i < 3; i++) work_0(); }
static void work_3(void) { WORK(0, 100); work_1(); }

";

/// A system with its programs.
pub(crate) struct Batch {
    /// Hosts, links, channels; the programs are to be added.
    pub(crate) description: String,
    pub(crate) manifest: String,
    pub(crate) programs: Vec<String>,
}

struct Maker {
    random: Random,
    batch: Batch,
    /// Lines of each `main`.
    starts: Vec<String>,
    /// Tasks of each program.
    counts: Vec<usize>,
    streams: usize,
}

/// Groups of tasks, which are the same in whatever company. Their names begin with `g0_`, `g1_`, …
pub(crate) fn batch(seed: u64, groups: &[u64]) -> Batch {
    let mut random = Random(seed);
    let description = describe(&mut random);
    let batch = Batch {
        description,
        manifest: "#pragma once\n#include <timedc_avtp.h>\nstruct net_fifo net_fifo_chans[] = {\n"
            .to_owned(),
        programs: vec![HEAD.to_owned(); HOSTS],
    };
    let mut maker = Maker {
        random,
        batch,
        starts: vec![String::new(); HOSTS],
        counts: vec![0; HOSTS],
        streams: 0,
    };
    // There is always one channel: a manifest without rows is none.
    maker.channel("unused", 0, 1, true);
    for group in groups {
        maker.random = Random(seed << 32 | group << 8);
        maker.group(*group);
    }
    let Maker { mut batch, starts, .. } = maker;
    batch.manifest.push_str("};\n");
    for (program, starts) in batch.programs.iter_mut().zip(starts) {
        let _ = write!(program, "int main(void)\n{{\n\tbegin();\n{starts}\treturn 0;\n}}\n");
    }
    batch
}

fn describe(random: &mut Random) -> String {
    let mut text = String::from("format = 1\nname = \"random\"\nmanifest = \"manifest.h\"\n");
    let _ = write!(text, "[run]\nduration_ms = 150\nseed = {}\n", random.below(1_000_000));
    text.push_str("[[bridge]]\nname = \"bridge\"\nforwarding_ns = 2000\n");
    for host in 0..HOSTS {
        let _ = write!(text, "[[host]]\nname = \"h{host}\"\n");
        for key in ["stack_tx_ns", "stack_rx_ns"] {
            let min = random.between(0, 20_000);
            let max = min + random.between(0, 3) * random.between(0, 5_000);
            let _ = writeln!(text, "{key} = {{ min = {min}, max = {max} }}");
        }
        let wakeup = random.between(0, 9_000);
        let more = random.between(0, 2) * random.between(0, 5);
        let _ = writeln!(text, "WAKEUP = {{ min = {wakeup}, max = {} }}", wakeup + more);
        let _ = writeln!(text, "[[link]]\nends = [\"h{host}\", \"bridge\"]\nrate_mbps = 1000");
    }
    text
}

impl Maker {
    fn one_in(&mut self, count: u64) -> bool {
        self.random.below(count) == 0
    }

    /// A network channel in the description and the manifest.
    fn channel(&mut self, name: &str, from: usize, to: usize, is_reserved: bool) {
        self.streams += 1;
        let class = if self.one_in(4) { "CLASS_B" } else { "CLASS_A" };
        let rate = [100, 250, 500, 1_000][self.random.below(4) as usize];
        let number = self.streams;
        let _ = writeln!(
            self.batch.manifest,
            "\t{{ .dst = {{0x01, 0x00, 0x5e, 0x06, {:#04x}, {:#04x}}}, .stream_id = {number}, \
             .class = {class}, .size = 8, .freq = {rate}, .name = \"{name}\" }},",
            number / 256,
            number % 256
        );
        let delay = [1_500, 2_000, 3_000][self.random.below(3) as usize];
        let _ = write!(
            self.batch.description,
            "[[channel]]\nname = \"{name}\"\ntalker = \"h{from}\"\nlisteners = [\"h{to}\"]\n\
             fixed_delay_us = {delay}\nreserve = {is_reserved}\n"
        );
    }

    fn group(&mut self, group: u64) {
        let count = 1 + self.random.below(8) as usize;
        let hosts: Vec<usize> =
            (0..count).map(|_| self.random.below(HOSTS as u64) as usize).collect();
        let base_us = (!self.one_in(3)).then(|| 1_000 * self.random.between(2, 8));
        let mut plans: Vec<Plan> = hosts
            .iter()
            .enumerate()
            .map(|(task, host)| {
                let number = self.counts[*host];
                self.counts[*host] += 1;
                let name = format!("g{group}_t{task}");
                Plan { name, number, ends: Vec::new(), starts: None, base_us }
            })
            .collect();
        for channel in 0..self.random.below(count as u64 + 2) {
            self.join(&mut plans, &hosts, &format!("g{group}_c{channel}"));
        }
        let started = self.nested(&mut plans, &hosts);
        for (task, plan) in plans.iter().enumerate() {
            if started != Some(task) {
                let _ = writeln!(self.starts[hosts[task]], "\t{}();", plan.name);
            }
            let text = tasks::task(&mut self.random, plan);
            let program = &mut self.batch.programs[hosts[task]];
            let _ = writeln!(program, "task {}(void);", plan.name);
            program.push_str(&text);
        }
    }

    /// Now and then a task is started by another one that is written later.
    fn nested(&mut self, plans: &mut [Plan], hosts: &[usize]) -> Option<usize> {
        if !self.one_in(6) {
            return None;
        }
        let last = plans.len() - 1;
        let other = (0..last).find(|task| hosts[*task] == hosts[last])?;
        plans[last].starts = Some(plans[other].name.clone());
        Some(other)
    }

    /// A channel from one of the tasks to another one.
    fn join(&mut self, plans: &mut [Plan], hosts: &[usize], name: &str) {
        let count = plans.len() as u64;
        let (mut from, mut to) =
            (self.random.below(count) as usize, self.random.below(count) as usize);
        if from == to {
            return;
        }
        // Few go backwards.
        if from > to && !self.one_in(6) {
            (from, to) = (to, from);
        }
        let (writer, reader) = if hosts[from] == hosts[to] {
            let is_latest = self.one_in(7);
            let text = match self.random.below(8) {
                _ if is_latest => format!("int64_t lvchannel({name});\n"),
                0 => format!("int64_t fifochannel({name}, {});\n", 1 + self.random.below(3)),
                _ => format!("int64_t fifochannel({name});\n"),
            };
            self.batch.programs[hosts[from]].push_str(&text);
            let kind = if is_latest { Kind::Latest } else { Kind::Fifo };
            (kind, kind)
        } else {
            let is_reserved = !self.one_in(6);
            self.channel(name, hosts[from], hosts[to], is_reserved);
            let waits = |maker: &mut Self| Kind::Network { waits: maker.one_in(4) };
            (waits(self), waits(self))
        };
        let end = |kind, writes| End { channel: name.to_owned(), kind, writes, paces: from < to };
        plans[from].ends.push(end(writer, true));
        plans[to].ends.push(end(reader, false));
    }
}

impl Batch {
    /// Writes all into a directory: `system.toml` from sources, and `run.toml` and `logical.toml`
    /// from what was compiled.
    pub(crate) fn write(&self, directory: &Path) {
        let write = |name: &str, text: &str| {
            std::fs::write(directory.join(name), text).expect("written");
        };
        write("manifest.h", &self.manifest);
        let platform = self.description.replace("WAKEUP", "wakeup_ns");
        let logical = self.description.replace("WAKEUP", "# wakeup_ns");
        let programs = |line: &dyn Fn(usize) -> String| -> String {
            let one = |n| format!("[[program]]\nname = \"p{n}\"\nhost = \"h{n}\"\n{}\n", line(n));
            (0..HOSTS).map(one).collect()
        };
        let source = programs(&|n| format!("source = [\"p{n}.c\"]"));
        write("system.toml", &(platform.clone() + &source));
        let built = programs(&|n| format!("command = [\"build/p{n}\"]"));
        write("run.toml", &(platform + &built));
        let built = programs(&|n| format!("command = [\"build/logical{n}\"]"));
        write("logical.toml", &(logical + &built));
        for (number, program) in self.programs.iter().enumerate() {
            write(&format!("p{number}.c"), program);
        }
    }
}
