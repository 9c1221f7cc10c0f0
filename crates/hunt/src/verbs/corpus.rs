//! Directories that are right: the examples, what the command has written, fake machines.

use super::{Entries, Entry};
use anyhow::{Context, Result, ensure};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The most octets of a file that is taken over.
const FILE_OCTETS: u64 = 200_000;

/// Two hosts, each with a channel to the other, and a scenario.
const TWO_HOSTS: &str = r#"format = 1
name = "two-hosts"
[run]
duration_ms = 20
[[host]]
name = "a"
[[host]]
name = "b"
[[bridge]]
name = "s"
[[link]]
ends = ["a", "s"]
rate_mbps = 100
[[link]]
ends = ["s", "b"]
rate_mbps = 100
[[channel]]
name = "c"
destination = "01:00:5e:00:00:01"
stream_id = 1
class = "A"
size_octets = 8
rate_hz = 1000
talker = "a"
listeners = ["b"]
[[channel]]
name = "d"
destination = "01:00:5e:00:00:02"
stream_id = 2
class = "B"
size_octets = 100
rate_hz = 250
talker = "b"
listeners = ["a"]
[[noise]]
name = "n"
from = "a"
to = "b"
rate_mbps = 50
size_octets = 1000
"#;

/// A program in Network Code for a host of it.
const STATION: &str = r#"station a
medium 100 Mbit/s
const ROUND = 1 ms
output sent = channel "c"
input got = channel "d"
message c = 1[2]
message d = 2[25]
begin: sync slave, 2 * ROUND # a round
  branch sync_timeout, begin
  future slot, 100 us - frame(2)
  create sent
  halt
slot:
  send c
  branch got[0] >=u 10, begin
  receive d, got
  goto begin
"#;

/// Files of a machine that `doctor` and `tune` look at.
const MACHINE: [(&str, &str); 15] = [
    ("proc/cmdline", "root=/dev/sda1 isolcpus=3\n"),
    ("proc/cpuinfo", "processor : 0\nmodel name : x\n"),
    ("proc/interrupts", "     CPU0 CPU1\n 24:  1 2 IR-PCI eth0-rx-0\n"),
    ("proc/irq/24/smp_affinity_list", "0-3\n"),
    ("proc/irq/24/eth0-rx-0/x", ""),
    ("proc/sys/kernel/osrelease", "6.1.0\n"),
    ("proc/sys/kernel/sched_rt_runtime_us", "950000\n"),
    ("proc/sys/kernel/random/boot_id", "5a0f1a0e-5a2b-4ab2-8f11-8e7d5f7c6d01\n"),
    ("proc/meminfo", "MemTotal: 1 kB\nSwapTotal: 0 kB\n"),
    ("proc/42/stat", "42 (irq/24-x) S 2 0 0 0 -1 2097152 0 0 0 0 0 0 0 0 0 0 0 0 9 0\n"),
    ("sys/devices/system/cpu/online", "0-3\n"),
    ("sys/devices/system/cpu/present", "0-3\n"),
    ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n"),
    ("etc/default/grub.d/x.cfg", "GRUB_TIMEOUT=1\n"),
    ("boot/config-6.1.0", "CONFIG_PREEMPT=y\nCONFIG_PREEMPT_RT=y\n"),
];

/// A FIFO network.
const NETWORK: &str = r#"{"network": {"name": "demo", "multiplexing": "FIFO", "time_unit": "us"},
 "flows": [{"name": "f0", "path": ["s0", "s1"], "max_packet_length": "1kB",
  "arrival_curve": {"bursts": ["2kB"], "rates": ["10Mbps"]}},
  {"name": "f1", "path": ["s1"], "arrival_curve": {"bursts": [800], "rates": ["1Mbps"]}}],
 "servers": [{"name": "s0", "capacity": "100Mbps",
  "service_curve": {"latencies": [10], "rates": ["100Mbps"]}},
  {"name": "s1", "capacity": "1Gbps", "service_curve": {"latencies": [3], "rates": ["1Gbps"]}}]}
"#;

/// Directories by their kind.
#[derive(Debug, Default)]
pub struct Corpus(BTreeMap<&'static str, Vec<Entries>>);

impl Corpus {
    /// Those of a kind.
    ///
    /// # Panics
    /// If there is none of this kind.
    pub fn of(&self, kind: &str) -> &[Entries] {
        &self.0[kind]
    }

    /// All entries of all directories.
    pub(super) fn all(&self) -> impl Iterator<Item = (&String, &Entry)> {
        self.0.values().flatten().flatten()
    }

    /// Makes them with the command.
    ///
    /// # Errors
    /// If the machine fails, or the command with what is right.
    pub fn make(onbeat: &Path, repository: &Path) -> Result<Self> {
        let place = tempfile::tempdir()?;
        let maker = Maker { onbeat: onbeat.to_owned(), place: place.path().to_owned() };
        let mut corpus = Self::default();
        corpus.descriptions(repository)?;
        corpus.models(repository)?;
        corpus.outputs(&maker)?;
        corpus.stations(&maker)?;
        corpus.machines(&maker)?;
        Ok(corpus)
    }

    fn add(&mut self, kind: &'static str, entries: Entries) {
        self.0.entry(kind).or_default().push(entries);
    }

    fn descriptions(&mut self, repository: &Path) -> Result<()> {
        for below in ["examples", "crates/cli/tests/found"] {
            let mut places: Vec<_> =
                repository.join(below).read_dir()?.flatten().map(|entry| entry.path()).collect();
            places.sort();
            for place in places.iter().filter(|place| place.join("system.toml").is_file()) {
                let mut entries = read(place)?;
                // Nothing else is read.
                entries
                    .retain(|name, _| [".toml", ".c", ".h"].iter().any(|end| name.ends_with(end)));
                self.add("description", entries);
            }
        }
        self.add("description", [("system.toml".to_owned(), file(TWO_HOSTS))].into());
        let page = std::fs::read_to_string(repository.join("docs/tasks.md"))?;
        let system = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next());
        let system = system.context("docs/tasks.md shows a system")?;
        self.add("tasks", [("tasks.toml".to_owned(), file(system))].into());
        let tests = repository.join("crates/description/tests/import");
        let mut network: Entries = [("network.json".to_owned(), file(NETWORK))].into();
        for name in ["links.csv", "streams.csv", "graph.graphml"] {
            network.insert(name.to_owned(), file(&std::fs::read_to_string(tests.join(name))?));
        }
        self.add("network", network);
        Ok(())
    }

    /// Models in Lingua Franca: each as `model.lf`, with the library and a sidecar.
    fn models(&mut self, repository: &Path) -> Result<()> {
        let place = repository.join("conformance/lf");
        let all = read(&place)?;
        let library: Entries =
            all.iter().filter(|(path, _)| path.starts_with("lib/")).map(both).collect();
        for (path, model) in &all {
            let Some(name) = path.strip_suffix(".lf").filter(|name| !name.contains('/')) else {
                continue;
            };
            let sidecar = all.get(&format!("{name}.toml")).cloned();
            let sidecar = sidecar.unwrap_or_else(|| file("format = 1\n"));
            let mut entries = library.clone();
            entries.insert("model.lf".to_owned(), model.clone());
            entries.insert("model.toml".to_owned(), sidecar);
            self.add("model", entries);
        }
        Ok(())
    }

    fn outputs(&mut self, maker: &Maker) -> Result<()> {
        std::fs::write(maker.place.join("system.toml"), TWO_HOSTS)?;
        maker.run(&["run", "."])?;
        let mut run = read(&maker.place)?;
        if let Some(Entry::File(records)) = run.get("out/1-run/records.onb") {
            let length = (records.len() as u64).to_le_bytes();
            let recording = [&length[..], records, &length[..], records].concat();
            run.insert("out.recording".to_owned(), Entry::File(recording));
        }
        self.add("run", run.clone());
        maker.run(&["simulate", ".", "--duration", "5ms", "--repetitions", "4", "--out", "sim"])?;
        maker.run(&["measure", "clock", "--samples", "40", "--out", "measured"])?;
        for from in ["out", "sim", "measured"] {
            let found = read(&maker.place.join(from))?;
            let both = ["first", "second"].map(|to| {
                found.iter().map(move |(path, entry)| (format!("{to}/{path}"), entry.clone()))
            });
            self.add("outputs", both.into_iter().flatten().collect());
        }
        Ok(())
    }

    /// Programs in Network Code with their description, which is there.
    fn stations(&mut self, maker: &Maker) -> Result<()> {
        std::fs::write(maker.place.join("program.nc"), STATION)?;
        maker.run(&["nc", "asm", "program.nc", "--system", ".", "-o", "program.ncb"])?;
        let image = Entry::File(std::fs::read(maker.place.join("program.ncb"))?);
        let files = [
            ("system.toml", file(TWO_HOSTS)),
            ("program.nc", file(STATION)),
            ("program.ncb", image),
        ];
        self.add("station", files.map(|(name, entry)| (name.to_owned(), entry)).into());
        Ok(())
    }

    fn machines(&mut self, maker: &Maker) -> Result<()> {
        let place = maker.place.join("machine");
        for (path, text) in MACHINE {
            let at = place.join(path);
            std::fs::create_dir_all(at.parent().context("a directory")?)?;
            std::fs::write(&at, text)?;
        }
        maker.run(&["doctor", "--root", "machine", "--save", "facts.json"])?;
        maker.run(&[
            "tune",
            "--root",
            "machine",
            "apply",
            "--profile",
            "tuned-like",
            "--cores",
            "2-3",
            "--write-boot",
        ])?;
        let mut machine: Entries = read(&place)?
            .into_iter()
            .map(|(path, entry)| (format!("machine/{path}"), entry))
            .collect();
        let facts = std::fs::read(maker.place.join("facts.json"))?;
        machine.insert("facts.json".to_owned(), Entry::File(facts));
        self.add("machine", machine);
        Ok(())
    }
}

fn both((path, entry): (&String, &Entry)) -> (String, Entry) {
    (path.clone(), entry.clone())
}

fn file(text: &str) -> Entry {
    Entry::File(text.as_bytes().to_vec())
}

/// What runs the command where the corpus is made.
struct Maker {
    onbeat: PathBuf,
    place: PathBuf,
}

impl Maker {
    fn run(&self, arguments: &[&str]) -> Result<()> {
        let mut command = Command::new(&self.onbeat);
        let output = command.args(arguments).current_dir(&self.place).output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        // A doctor has advice for such a machine.
        let is_fine = output.status.success() || arguments[0] == "doctor";
        ensure!(is_fine, "{arguments:?}: {said}");
        Ok(())
    }
}

/// The files below a directory that are not too large.
fn read(directory: &Path) -> Result<Entries> {
    let mut entries = Entries::new();
    let mut ahead = vec![directory.to_owned()];
    while let Some(at) = ahead.pop() {
        for entry in at.read_dir().with_context(|| at.display().to_string())? {
            let entry = entry?;
            let (kind, path) = (entry.file_type()?, entry.path());
            if kind.is_dir() {
                ahead.push(path);
            } else if kind.is_file() && entry.metadata()?.len() <= FILE_OCTETS {
                let name = path.strip_prefix(directory)?.to_string_lossy().into_owned();
                entries.insert(name, Entry::File(std::fs::read(&path)?));
            }
        }
    }
    Ok(entries)
}
