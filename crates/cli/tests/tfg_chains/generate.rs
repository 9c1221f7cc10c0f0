//! Random systems of Timed C, some of them side by side in one description: nothing joins them.

use onbeat_testkit::Random;
use std::fmt::Write;
use std::path::Path;

/// A number from one to another one, which is included.
fn between(random: &mut Random, from: u64, to: u64) -> u64 {
    from + random.below(to - from + 1)
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

/// Capture to wake-up in class A.
const FIXED_DELAY_US: u64 = 2_000;

/// A chain of a system.
pub(crate) struct Chain {
    pub(crate) name: String,
    pub(crate) channels: Vec<String>,
    /// Of each channel, whether its reader waits for the fixed delay.
    pub(crate) waits: Vec<bool>,
    /// The hosts of its ends: who talks on each channel, then who reads the last one.
    pub(crate) hosts: Vec<usize>,
    /// The program of the last reader, and its task.
    pub(crate) end: (String, String),
}

/// A host, in nanoseconds.
pub(crate) struct Host {
    pub(crate) name: String,
    /// From and to, of [`DELAYS`].
    pub(crate) delays: [Option<(u64, u64)>; 3],
    pub(crate) offset: i64,
    drift: i64,
    /// What it declares; its tasks; their names.
    declared: String,
    tasks: String,
    starts: Vec<String>,
}

const DELAYS: [&str; 3] = ["stack_tx_ns", "stack_rx_ns", "wakeup_ns"];

/// A system: a network of its own, and chains over it.
pub(crate) struct System {
    pub(crate) chains: Vec<Chain>,
    pub(crate) hosts: Vec<Host>,
    /// Bridges, links, channels and chains in the description.
    text: String,
    /// Of the manifest.
    rows: String,
    /// In octets of addresses and identifiers.
    number: usize,
}

/// What a run has of the systems: all of it is within what is computed.
pub(crate) struct Variant {
    pub(crate) delays: Delays,
    /// Whether frames of no reservation fill all links.
    pub(crate) is_full: bool,
    /// Of each chain how much later all its tasks begin, in nanoseconds.
    pub(crate) shifts: Vec<Vec<i64>>,
    pub(crate) seed: u64,
    pub(crate) duration_ms: u64,
}

/// Of hosts' stacks and wake-ups.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Delays {
    /// Any time within what is described.
    Described,
    /// Always the longest.
    Longest,
    /// Each always the longest or the shortest.
    Extreme,
}

impl Chain {
    fn describe(&self) -> String {
        let names: Vec<String> = self.channels.iter().map(|c| format!("\"{c}\"")).collect();
        format!(
            "\n[[chain]]\nname = \"{}\"\nchannels = [{}]\ndeadline_us = 1_000_000\n",
            self.name,
            names.join(", ")
        )
    }
}

impl Host {
    /// Its part of a description.
    fn describe(&self, delays: Delays, random: &mut Random) -> String {
        let mut text = format!("\n[[host]]\nname = \"{}\"\n", self.name);
        for (key, delay) in DELAYS.iter().zip(self.delays) {
            let Some((least, most)) = delay else { continue };
            let (least, most) = match delays {
                Delays::Described => (least, most),
                Delays::Extreme if random.one_in(2) => (least, least),
                Delays::Longest | Delays::Extreme => (most, most),
            };
            let _ = writeln!(text, "{key} = {{ min = {least}, max = {most} }}");
        }
        if (self.offset, self.drift) != (0, 0) {
            let (offset, drift) = (self.offset, self.drift);
            let _ = writeln!(text, "clock = {{ offset_ns = {offset}, drift_ppb = {drift} }}");
        }
        text
    }

    fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    fn start(&self) -> String {
        self.starts.iter().map(|name| format!("\t\t{name}();\n")).collect()
    }
}

/// What sources begin with. Whether a chance comes is not known before: in a run always, never,
/// always or never by task, or now and then.
const HEAD: &str = "\
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cilktc.h>
#include <timedc_avtp.h>
#include \"manifest.h\"

static unsigned coins;

static __attribute__((unused)) int chance(unsigned *state)
{
	if (coins < 2)
		return (int)coins;
	if (coins % 2 == 0)
		return ((*state ^ coins * 2654435761U) >> 16) % 2 == 0;
	*state = *state * 1103515245U + 12345U;
	return ((*state ^ coins * 2654435761U) >> 16) % 4 == 0;
}
";

/// In runs how much later a chain begins is an argument.
const SHIFT: &str = "
static char **arguments;

static int64_t shift(const char *chain)
{
	for (int i = 0; arguments[i]; i++)
		if (!strcmp(arguments[i], chain))
			return atoll(arguments[i + 1]);
	return 0;
}
";

/// The tasks of all hosts, for runs: the host that a program is on is its first argument, how
/// chances come the second, and behind that stands by how much chains are shifted.
pub(crate) fn program(systems: &[System]) -> String {
    let mut text = format!("{HEAD}{SHIFT}\n");
    let mut main = String::new();
    for host in systems.iter().flat_map(|s| &s.hosts).filter(|host| !host.is_empty()) {
        text.push_str(&host.declared);
        text.push_str(&shifted(&host.tasks, |chain| format!("shift(\"{chain}\")")));
        let (name, start) = (&host.name, host.start());
        let _ = write!(main, "\tif (!strcmp(arguments[1], \"{name}\")) {{\n{start}\t}}\n");
    }
    text + "int main(int count, char **values)\n{\n\t(void)count;\n\targuments = values;\n"
        + "\tcoins = (unsigned)atoi(values[2]);\n\tsetvbuf(stdout, NULL, _IOLBF, 0);\n"
        + &main
        + "}\n"
}

/// Puts in place of each `@chain@` what is made of the chain.
fn shifted(text: &str, shift: impl Fn(&str) -> String) -> String {
    let parts = text.split('@').enumerate();
    parts.map(|(at, part)| if at % 2 == 1 { shift(part) } else { part.to_owned() }).collect()
}

/// What channels there are, for programs.
pub(crate) fn manifest(systems: &[&System]) -> String {
    let rows: String = systems.iter().map(|system| system.rows.as_str()).collect();
    format!(
        "#pragma once\n#include <timedc_avtp.h>\n\n\
         struct net_fifo net_fifo_chans[] = {{\n{rows}}};\n"
    )
}

/// Writes a description of systems side by side. Programs are commands; or sources, each with
/// what begins how much later as it is in the variant.
pub(crate) fn describe(
    systems: &[&System],
    variant: &Variant,
    coins: Option<u64>,
    directory: &Path,
    name: &str,
) {
    let mut random = Random(variant.seed);
    let mut text = format!(
        "format = 1\nname = \"chains\"\nmanifest = \"manifest.h\"\n\n[run]\n\
         duration_ms = {}\nseed = {}\n",
        variant.duration_ms, variant.seed
    );
    for (system, shifts) in systems.iter().zip(&variant.shifts) {
        text.push_str(&system.text);
        if coins.is_none() {
            text.extend(system.chains.iter().map(Chain::describe));
        }
        let shift = |chain: &str| {
            let at = system.chains.iter().position(|c| c.name == chain).expect("a chain");
            shifts[at]
        };
        for (at, host) in system.hosts.iter().enumerate() {
            text.push_str(&host.describe(variant.delays, &mut random));
            if variant.is_full {
                let to = &system.hosts[(at + 1) % system.hosts.len()].name;
                let from = &host.name;
                let _ = writeln!(
                    text,
                    "\n[[noise]]\nname = \"fill_{from}\"\nfrom = \"{from}\"\nto = \"{to}\"\n\
                     size_octets = 1472\nrate_mbps = 990\njitter = true"
                );
            }
            if host.is_empty() {
                continue;
            }
            let name = &host.name;
            let _ = writeln!(text, "\n[[program]]\nname = \"{name}\"\nhost = \"{name}\"");
            let Some(coins) = coins else {
                let _ = writeln!(text, "source = [\"{name}.c\"]");
                let tasks = shifted(&host.tasks, |chain| shift(chain).to_string());
                let source = format!(
                    "{HEAD}\n{}{tasks}int main(int count, char **values)\n{{\n\t(void)count;\n\
                     \tcoins = (unsigned)atoi(values[2]);\n\tsetvbuf(stdout, NULL, _IOLBF, 0);\n\
                     {}}}\n",
                    host.declared,
                    host.start()
                );
                std::fs::write(directory.join(format!("{name}.c")), source).expect("written");
                continue;
            };
            let chains = system.chains.iter().zip(shifts);
            let chains = chains.map(|(c, shift)| format!(", \"{}\", \"{shift}\"", c.name));
            let chains: String = chains.collect();
            let _ = writeln!(text, "command = [\"./all\", \"{name}\", \"{coins}\"{chains}]");
        }
    }
    std::fs::write(directory.join(name), text).expect("written");
}

/// A system, with names that begin with its number among those side by side.
pub(crate) fn system(seed: u64, number: usize) -> System {
    let mut random = Random(seed);
    let hosts = between(&mut random, 2, 5) as usize;
    let mut system = head(&mut random, hosts, number);
    let periods = random.one_of(&PERIODS);
    for chain in 0..between(&mut random, 1, 4) {
        let name = format!("s{number}_k{chain}");
        let mut maker = Maker { system: &mut system, random: &mut random, hosts, periods, name };
        let chain = maker.chain();
        system.chains.push(chain);
    }
    system
}

/// Hosts and the network between them.
fn head(random: &mut Random, hosts: usize, number: usize) -> System {
    let has_clocks = random.one_in(4);
    let mut text = String::new();
    let bridges = between(random, 1, 2);
    for bridge in 0..bridges {
        let forwarding = between(random, 500, 4_000);
        let _ = writeln!(
            text,
            "\n[[bridge]]\nname = \"s{number}_b{bridge}\"\nforwarding_ns = {forwarding}"
        );
    }
    let link = |text: &mut String, a: &str, b: &str, propagation: u64| {
        let _ = writeln!(
            text,
            "\n[[link]]\nends = [\"s{number}_{a}\", \"s{number}_{b}\"]\nrate_mbps = 1000\n\
             propagation_ns = {propagation}"
        );
    };
    if bridges == 2 {
        link(&mut text, "b0", "b1", random.below(500));
    }
    let mut all = Vec::new();
    for host in 0..hosts {
        let delay = |random: &mut Random| {
            let least = random.below(8_000);
            random.one_in(2).then(|| (least, least + random.below(10_000)))
        };
        let delays = [(); 3].map(|()| delay(random));
        let (mut offset, mut drift) = (0, 0);
        if has_clocks {
            offset = random.below(100_000).cast_signed() - 50_000;
            drift = random.below(20_000).cast_signed() - 10_000;
        }
        let name = format!("s{number}_h{host}");
        let (declared, tasks) = (String::new(), String::new());
        all.push(Host { name, delays, offset, drift, declared, tasks, starts: Vec::new() });
        link(&mut text, &format!("h{host}"), &format!("b{}", random.below(bridges)), {
            random.below(500)
        });
    }
    System { chains: Vec::new(), hosts: all, text, rows: String::new(), number }
}

/// Makes one chain.
struct Maker<'a> {
    system: &'a mut System,
    random: &'a mut Random,
    hosts: usize,
    periods: &'static [u64],
    name: String,
}

impl Maker<'_> {
    fn chain(&mut self) -> Chain {
        let name = self.name.clone();
        let count = between(self.random, 1, 4) as usize;
        let mut period = self.random.one_of(self.periods);
        let mut host = self.random.below(self.hosts as u64) as usize;
        let mut chain = Chain {
            name: name.clone(),
            channels: (0..count).map(|c| format!("{name}_c{c}")).collect(),
            waits: Vec::new(),
            hosts: vec![host],
            end: Default::default(),
        };
        self.source(&chain, host, period);
        for at in 0..count {
            let talker = host;
            while host == talker {
                host = self.random.below(self.hosts as u64) as usize;
            }
            self.channel(&chain.channels[at], (talker, host), period);
            chain.hosts.push(host);
            if at + 1 == count {
                self.end(&mut chain, host, period);
            } else {
                period = self.middle(&mut chain, (at, host), period);
            }
        }
        chain
    }

    fn channel(&mut self, name: &str, (talker, listener): (usize, usize), period: u64) {
        let System { number, rows, text, .. } = &mut *self.system;
        let stream = *number * 16 + rows.lines().count() + 1;
        let rate = 1_000_000_u64.div_ceil(period);
        let rate = rate * self.random.one_of(&[100, 130, 200]) / 100;
        let _ = writeln!(
            rows,
            "\t{{ .dst = {{0x01, 0x00, 0x5E, 0x05, {:#04x}, {:#04x}}}, .stream_id = {stream}, \
             .class = CLASS_A, .size = 8, .freq = {rate}, .name = \"{name}\" }},",
            stream / 256,
            stream % 256
        );
        let _ = writeln!(
            text,
            "\n[[channel]]\nname = \"{name}\"\ntalker = \"s{number}_h{talker}\"\n\
             listeners = [\"s{number}_h{listener}\"]"
        );
    }

    /// Code that takes a part of a period, always as long or not.
    fn work(&mut self, period: u64) -> String {
        let worst = between(self.random, period / 20, period * 3 / 10);
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
            // Who woke for the shift of its chain is late for a delay of 0, and begins there: what
            // is computed is not shifted.
            _ => format!("\tsdelay({}, us);\n", self.random.below(period / 50).max(1) * 50),
        }
    }

    fn point(&mut self, period: u64) -> String {
        let kind = self.random.one_of(&["sdelay", "fdelay", "hdelay"]);
        format!("{kind}({period}, us);")
    }

    fn task(&mut self, host: usize, name: String, body: &str) {
        let state = self.random.below(1 << 31);
        let (chain, host) = (&self.name, &mut self.system.hosts[host]);
        let state = match body.contains("&state") {
            true => format!("\tunsigned state = {state};\n"),
            false => String::new(),
        };
        // Ends are opened at once.
        let ends = body.lines().take_while(|line| line.starts_with("\tNETFIFO"));
        let (ends, body) = body.split_at(ends.map(|line| line.len() + 1).sum());
        let _ = writeln!(
            host.tasks,
            "task {name}(void)\n{{\n{ends}\tsdelay(@{chain}@, ns);\n{state}{body}}}\n"
        );
        host.starts.push(name);
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
                self.system.hosts[host].declared.push_str(&declared);
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
                let own = self.random.one_of(self.periods);
                let (first, second) = (self.work(period), self.work(own));
                let (phase, write) = (self.phase(own), self.write(own));
                let point = self.point(own);
                let declared = format!("int64_t lvchannel({name}_l);\n");
                self.system.hosts[host].declared.push_str(&declared);
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
        chain.end = (self.system.hosts[host].name.clone(), task);
    }
}
