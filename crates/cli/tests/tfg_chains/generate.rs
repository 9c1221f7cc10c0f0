//! Random systems of Timed C whose chains lie side by side: what one of them does is nothing to the
//! others but a few frames on the network.

use std::fmt::Write;
use std::path::Path;

/// Random numbers that are the same everywhere (SplitMix64).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % limit
    }

    fn between(&mut self, from: u64, to: u64) -> u64 {
        from + self.below(to - from + 1)
    }

    fn one_in(&mut self, of: u64) -> bool {
        self.below(of) == 0
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }
}

/// Of each system, in microseconds: periods that are the same, harmonic, or neither, and not long
/// until all of them begin at once again.
const PERIODS: [&[u64]; 6] = [
    &[4_000, 8_000, 16_000],
    &[5_000, 10_000, 20_000],
    &[4_000, 6_000, 12_000],
    &[6_000, 9_000, 18_000],
    &[8_000, 12_000, 16_000],
    &[10_000, 15_000, 30_000],
];

/// One in four is 1: what is not known before.
const CHANCE: &str = "\
static __attribute__((unused)) int chance(unsigned *state)
{
	*state = *state * 1103515245U + 12345U;
	return (*state >> 16) % 4 == 0;
}
";

/// Capture to wake-up in class A.
const FIXED_DELAY_US: u64 = 2_000;

/// A chain of a system.
pub(crate) struct Chain {
    pub(crate) name: String,
    pub(crate) channels: Vec<String>,
    /// Of each channel, whether its reader waits for the fixed delay.
    pub(crate) waits: Vec<bool>,
    /// Whether a task in it takes the latest value at times of its own.
    pub(crate) is_sampled: bool,
    /// The program of the last reader, and its task.
    pub(crate) end: (String, String),
}

/// A system.
#[derive(Default)]
pub(crate) struct System {
    pub(crate) chains: Vec<Chain>,
    description: String,
    rows: String,
    /// By host: lvchannels and fifochannels, tasks; their names.
    programs: Vec<(String, String, Vec<String>)>,
    streams: u64,
    /// Whether its clocks differ.
    pub(crate) has_clocks: bool,
    pub(crate) has_noise: bool,
}

impl System {
    /// Writes its files.
    pub(crate) fn write(&self, directory: &Path) {
        let write = |name: &str, text: &str| {
            std::fs::write(directory.join(name), text).expect("written");
        };
        write("system.toml", &self.description);
        let manifest = format!(
            "#pragma once\n#include <timedc_avtp.h>\n\n\
             struct net_fifo net_fifo_chans[] = {{\n{}}};\n",
            self.rows
        );
        write("manifest.h", &manifest);
        for (host, (channels, tasks, names)) in self.programs.iter().enumerate() {
            let starts: String = names.iter().map(|name| format!("\t{name}();\n")).collect();
            let text = format!(
                "#include <stdint.h>\n#include <stdio.h>\n#include <cilktc.h>\n\
                 #include <timedc_avtp.h>\n#include \"manifest.h\"\n\n{CHANCE}\n\
                 {channels}\n{tasks}int main(void)\n{{\n\
                 \tsetvbuf(stdout, NULL, _IOLBF, 0);\n{starts}}}\n"
            );
            write(&format!("h{host}.c"), &text);
        }
    }
}

/// A system of so many chains, which runs for so long.
pub(crate) fn system(seed: u64, chains: usize, duration_ms: u64) -> System {
    let mut random = Random(seed);
    let hosts = random.between(2, 5) as usize;
    let has_clocks = random.one_in(4);
    let mut system = System { has_clocks, has_noise: random.one_in(3), ..System::default() };
    head(&mut system, &mut random, hosts, (seed, duration_ms));
    let periods = random.one_of(&PERIODS);
    system.programs = vec![(String::new(), String::new(), Vec::new()); hosts];
    for number in 0..chains {
        let mut maker = Maker { system: &mut system, random: &mut random, hosts, periods, number };
        let chain = maker.chain();
        let names: Vec<String> = chain.channels.iter().map(|c| format!("\"{c}\"")).collect();
        let _ = writeln!(
            system.description,
            "\n[[chain]]\nname = \"{}\"\nchannels = [{}]\ndeadline_us = 1_000_000",
            chain.name,
            names.join(", ")
        );
        system.chains.push(chain);
    }
    for host in 0..hosts {
        let (.., names) = &system.programs[host];
        if !names.is_empty() {
            let _ = writeln!(
                system.description,
                "\n[[program]]\nname = \"h{host}\"\nhost = \"h{host}\"\nsource = [\"h{host}.c\"]"
            );
        }
    }
    system
}

fn head(system: &mut System, random: &mut Random, hosts: usize, (seed, duration): (u64, u64)) {
    let text = &mut system.description;
    let _ = writeln!(
        text,
        "format = 1\nname = \"chains\"\nmanifest = \"manifest.h\"\n\n[run]\n\
         duration_ms = {duration}\nseed = {seed}"
    );
    let bridges = random.between(1, 2);
    for bridge in 0..bridges {
        let forwarding = random.between(500, 4_000);
        let _ = writeln!(text, "\n[[bridge]]\nname = \"b{bridge}\"\nforwarding_ns = {forwarding}");
    }
    let link = |text: &mut String, a: &str, b: &str, propagation: u64| {
        let _ = writeln!(
            text,
            "\n[[link]]\nends = [\"{a}\", \"{b}\"]\nrate_mbps = 1000\n\
             propagation_ns = {propagation}"
        );
    };
    if bridges == 2 {
        link(text, "b0", "b1", random.below(500));
    }
    let noisy = usize::from(system.has_noise);
    for host in 0..hosts + noisy {
        let name = if host == hosts { "noisy".to_owned() } else { format!("h{host}") };
        let _ = writeln!(text, "\n[[host]]\nname = \"{name}\"");
        for key in ["stack_tx_ns", "stack_rx_ns", "wakeup_ns"] {
            if random.one_in(2) {
                let least = random.below(8_000);
                let most = least + random.below(10_000);
                let _ = writeln!(text, "{key} = {{ min = {least}, max = {most} }}");
            }
        }
        if system.has_clocks {
            let (ahead, fast) = (random.below(100_000), random.below(20_000));
            let (ahead, fast) = (ahead.cast_signed() - 50_000, fast.cast_signed() - 10_000);
            let _ = writeln!(text, "clock = {{ offset_ns = {ahead}, drift_ppb = {fast} }}");
        }
        let bridge = format!("b{}", random.below(bridges));
        link(text, &name, &bridge, random.below(500));
    }
    if system.has_noise {
        let (to, rate) = (random.below(hosts as u64), random.between(50, 400));
        let _ = writeln!(
            text,
            "\n[[noise]]\nname = \"noise\"\nfrom = \"noisy\"\nto = \"h{to}\"\n\
             size_octets = 1470\nrate_mbps = {rate}\njitter = true"
        );
    }
}

/// Makes one chain.
struct Maker<'a> {
    system: &'a mut System,
    random: &'a mut Random,
    hosts: usize,
    periods: &'static [u64],
    number: usize,
}

impl Maker<'_> {
    fn chain(&mut self) -> Chain {
        let name = format!("k{}", self.number);
        let count = self.random.between(1, 4) as usize;
        let mut period = self.random.one_of(self.periods);
        let mut host = self.random.below(self.hosts as u64) as usize;
        let mut chain = Chain {
            name: name.clone(),
            channels: (0..count).map(|c| format!("{name}_c{c}")).collect(),
            waits: Vec::new(),
            is_sampled: false,
            end: Default::default(),
        };
        self.source(&chain, host, period);
        for at in 0..count {
            let talker = host;
            while host == talker {
                host = self.random.below(self.hosts as u64) as usize;
            }
            self.channel(&chain.channels[at], (talker, host), period);
            if at + 1 == count {
                self.end(&mut chain, host, period);
            } else {
                period = self.middle(&mut chain, (at, host), period);
            }
        }
        chain
    }

    fn channel(&mut self, name: &str, (talker, listener): (usize, usize), period: u64) {
        self.system.streams += 1;
        let stream = self.system.streams;
        let rate = 1_000_000_u64.div_ceil(period);
        let rate = rate * self.random.one_of(&[100, 130, 200]) / 100;
        let _ = writeln!(
            self.system.rows,
            "\t{{ .dst = {{0x01, 0x00, 0x5E, 0x05, {:#04x}, {:#04x}}}, .stream_id = {stream}, \
             .class = CLASS_A, .size = 8, .freq = {rate}, .name = \"{name}\" }},",
            stream / 256,
            stream % 256
        );
        let _ = writeln!(
            self.system.description,
            "\n[[channel]]\nname = \"{name}\"\ntalker = \"h{talker}\"\n\
             listeners = [\"h{listener}\"]"
        );
    }

    /// Code that takes a part of a period, always as long or not.
    fn work(&mut self, period: u64) -> String {
        let worst = self.random.between(period / 20, period * 3 / 10);
        let best = match self.random.below(4) {
            0 => worst / 2,
            1 => worst - self.random.below(worst.min(100)),
            _ => worst,
        };
        if best == worst {
            return format!("__attribute__((exectime({worst}, us)));");
        }
        format!(
            "if (chance(&state)) {{\n\t\t\t__attribute__((exectime({best}, us)));\n\t\t}} else {{\n\
             \t\t\t__attribute__((exectime({worst}, us)));\n\t\t}}"
        )
    }

    fn write(&mut self, period: u64) -> &'static str {
        let has_time = period * 6 / 10 > FIXED_DELAY_US;
        if has_time && self.random.one_in(5) { "WRITE_WAIT" } else { "WRITE" }
    }

    fn read(&mut self, chain: &mut Chain) -> &'static str {
        let waits = self.random.one_in(4);
        chain.waits.push(waits);
        if waits { "READ_WAIT" } else { "READ" }
    }

    fn phase(&mut self, period: u64) -> String {
        match self.random.below(3) {
            0 => String::new(),
            _ => format!("\tsdelay({}, us);\n", self.random.below(period / 50) * 50),
        }
    }

    fn point(&mut self, period: u64) -> String {
        let kind = self.random.one_of(&["sdelay", "fdelay", "hdelay"]);
        format!("{kind}({period}, us);")
    }

    fn task(&mut self, host: usize, name: String, body: &str) {
        let state = self.random.below(1 << 31);
        let (_, tasks, names) = &mut self.system.programs[host];
        let state = match body.contains("&state") {
            true => format!("\tunsigned state = {state};\n"),
            false => String::new(),
        };
        let _ = writeln!(tasks, "task {name}(void)\n{{\n{state}{body}}}\n");
        names.push(name);
    }

    fn source(&mut self, chain: &Chain, host: usize, period: u64) {
        let (phase, work, write) = (self.phase(period), self.work(period), self.write(period));
        let (point, channel) = (self.point(period), &chain.channels[0]);
        let body = format!(
            "\tNETFIFO_TX({channel});\n\tint64_t number = 0;\n{phase}\twhile (1) {{\n\t\t{work}\n\
             \t\tnumber++;\n\t\t{write}({channel}, &number);\n\t\t{point}\n\t}}\n"
        );
        self.task(host, format!("{}_source", chain.name), &body);
    }

    /// Tasks that read a channel and write the next one; with which period it is written.
    fn middle(&mut self, chain: &mut Chain, (at, host): (usize, usize), period: u64) -> u64 {
        let name = format!("{}_{at}", chain.name);
        let (from, to) = (chain.channels[at].clone(), chain.channels[at + 1].clone());
        let read = self.read(chain);
        let head = format!("\tNETFIFO_RX({from});\n");
        let ends = format!("{head}\tNETFIFO_TX({to});\n");
        let value = "\tint64_t value = 0;\n";
        match self.random.below(6) {
            // As soon as it has come.
            0 | 1 => {
                let (work, write) = (self.work(period), self.write(period));
                let body = format!(
                    "{ends}{value}\twhile (1) {{\n\t\t{read}({from}, &value);\n\t\t{work}\n\
                     \t\t{write}({to}, &value);\n\t}}\n"
                );
                self.task(host, format!("{name}_on"), &body);
                period
            }
            // In its own time, as often as it comes.
            2 => {
                let (phase, work) = (self.phase(period), self.work(period));
                let body = format!(
                    "{ends}{value}{phase}\twhile (1) {{\n\t\t{read}({from}, &value);\n\t\t{work}\n\
                     \t\tWRITE({to}, &value);\n\t\tsdelay({period}, us);\n\t}}\n"
                );
                self.task(host, format!("{name}_in_time"), &body);
                period
            }
            // In two tasks.
            3 => {
                let [first, second] = [(); 2].map(|()| self.work(period));
                let declared = format!("int64_t fifochannel({name}_f, 8);\n");
                self.system.programs[host].0.push_str(&declared);
                let body = format!(
                    "{head}{value}\twhile (1) {{\n\t\t{read}({from}, &value);\n\t\t{first}\n\
                     \t\tcwrite({name}_f, value);\n\t}}\n"
                );
                self.task(host, format!("{name}_in"), &body);
                let body = format!(
                    "\tNETFIFO_TX({to});\n{value}\twhile (1) {{\n\t\tcread({name}_f, value);\n\
                     \t\t{second}\n\t\tWRITE({to}, &value);\n\t}}\n"
                );
                self.task(host, format!("{name}_out"), &body);
                period
            }
            // What is the latest, with another period.
            _ => {
                chain.is_sampled = true;
                let own = self.random.one_of(self.periods);
                let (first, second) = (self.work(period), self.work(own));
                let (phase, write) = (self.phase(own), self.write(own));
                let point = self.point(own);
                let declared = format!("int64_t lvchannel({name}_l);\n");
                self.system.programs[host].0.push_str(&declared);
                let body = format!(
                    "{head}{value}\twhile (1) {{\n\t\t{read}({from}, &value);\n\t\t{first}\n\
                     \t\tcwrite({name}_l, value);\n\t}}\n"
                );
                self.task(host, format!("{name}_in"), &body);
                let body = format!(
                    "\tNETFIFO_TX({to});\n{value}{phase}\twhile (1) {{\n\
                     \t\tcread({name}_l, value);\n\
                     \t\t{second}\n\t\t{write}({to}, &value);\n\t\t{point}\n\t}}\n"
                );
                self.task(host, format!("{name}_out"), &body);
                own
            }
        }
    }

    /// The last reader: which captures come, in order; as soon as they come or in its own time.
    fn end(&mut self, chain: &mut Chain, host: usize, period: u64) {
        let (task, channel) = (format!("{}_end", chain.name), chain.channels.last().expect("one"));
        let head = format!("\tNETFIFO_RX({channel});\n\tint64_t value = 0;\n");
        let channel = channel.clone();
        let read = self.read(chain);
        let (phase, point) = match self.random.below(3) {
            0 => (self.phase(period), format!("\t\tsdelay({period}, us);\n")),
            _ => (String::new(), String::new()),
        };
        let body = format!(
            "{head}{phase}\twhile (1) {{\n\t\t{read}({channel}, &value);\n\
             \t\tprintf(\"{} %lld\\n\", (long long)value);\n{point}\t}}\n",
            chain.name
        );
        self.task(host, task.clone(), &body);
        chain.end = (format!("h{host}"), task);
    }
}
