//! `onbeat run --on`: a run over machines. Each is a network namespace here, with a shell of its
//! own or behind a real sshd, where it has files of its own, too.

use crate::common::{self, TestSystem, channel, number, onbeat, programs, run, two_hosts};
use onbeat::clock::{MonoTime, pause};
use onbeat_model::time::Span;
use onbeat_testkit::{Need, not_run};
use serde_json::Value;
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

mod faults;
mod moments;
mod time_error;
mod tuned;

const SSHD: &str = "/usr/sbin/sshd";
/// Far longer than anything takes: what comes at all comes before.
const LONG: Span = Span::from_s(120);

/// Namespaces `…c` for the command and `…a`, `…b` for the machines of hosts `a` and `b`, which are
/// on one cable, and each on another one with the command. All is gone with this.
struct Machines {
    name: String,
    /// What is copied to a machine goes below its directory here.
    files: tempfile::TempDir,
    servers: Vec<Child>,
}

impl Machines {
    /// None where this machine has no named namespaces.
    fn new(name: &str) -> Option<Self> {
        let name = format!("ob{name}{}", std::process::id());
        let files = tempfile::tempdir_in("/var/tmp").expect("a directory");
        let machines = Self { name, files, servers: Vec::new() };
        match machines.build() {
            Ok(()) => Some(machines),
            Err(why) => {
                not_run(Need::Namespaces, why);
                None
            }
        }
    }

    fn build(&self) -> Result<(), String> {
        let [c, a, b] = ["c", "a", "b"].map(|end| self.space(end));
        for space in [&c, &a, &b] {
            ip(&format!("netns add {space}"))?;
            ip(&format!("-n {space} link set lo up"))?;
        }
        ip(&format!("-n {a} link add eth0 type veth peer name eth0 netns {b}"))?;
        for (space, number) in [(&a, 2), (&b, 3)] {
            std::fs::create_dir(self.files.path().join(space)).map_err(|e| e.to_string())?;
            ip(&format!("-n {space} link set eth0 up"))?;
            ip(&format!("-n {c} link add m{number} type veth peer name mgmt netns {space}"))?;
            ip(&format!("-n {c} addr add 10.7.{number}.1/24 dev m{number}"))?;
            ip(&format!("-n {c} link set m{number} up"))?;
            ip(&format!("-n {space} addr add 10.7.{number}.2/24 dev mgmt"))?;
            ip(&format!("-n {space} link set mgmt up"))?;
        }
        Ok(())
    }

    fn space(&self, end: &str) -> String {
        format!("{}{end}", self.name)
    }

    /// Where the files of the machine of a host go.
    fn files_of(&self, host: &str) -> PathBuf {
        self.files.path().join(self.space(host))
    }

    /// What a file of machines has of one that is reached as a namespace.
    fn shell(&self, host: &str) -> String {
        format!(
            "[[machine]]\nhost = \"{host}\"\nnamespace = \"{}\"\ninterface = \"eth0\"\n\
             directory = \"{}\"\n",
            self.space(host),
            self.files_of(host).display()
        )
    }

    /// A file of machines, of which each is reached as a namespace.
    fn shells(&self, system: &TestSystem) {
        write(system, &(self.shell("a") + &self.shell("b")));
    }

    /// The same on a busy machine, where readings of clocks take long; with more of the last one.
    fn slow_shells(&self, system: &TestSystem, more: &str) {
        self.shells(system);
        set(system, "clock_error_us = 50_000");
        let file = system.path().join("machines.toml");
        let text = std::fs::read_to_string(&file).expect("the file");
        std::fs::write(&file, text + more).expect("written");
    }

    /// The same by ssh.
    fn secure_shells(&mut self, system: &TestSystem) -> Result<(), String> {
        self.serve()?;
        write(system, &(self.secure_shell("a") + &self.secure_shell("b")));
        Ok(())
    }

    /// The same of one that is reached by ssh.
    fn secure_shell(&self, host: &str) -> String {
        let key = self.files.path().join("user");
        let number = if host == "a" { 2 } else { 3 };
        format!(
            "[[machine]]\nhost = \"{host}\"\naddress = \"root@10.7.{number}.2\"\n\
             ssh = [\"-c\", \"aes128-gcm@openssh.com\", \"-i\", \"{}\", \"-o\", \
             \"StrictHostKeyChecking=no\", \"-o\", \"UserKnownHostsFile=/dev/null\"]\n\
             interface = \"eth0\"\n",
            key.display()
        )
    }

    /// Starts a server of sshd on each machine, with its own `/tmp` and key of the host.
    fn serve(&mut self) -> Result<(), String> {
        if !Path::new(SSHD).exists() {
            return Err("openssh-server is missing".to_owned());
        }
        std::fs::create_dir_all("/run/sshd").expect("where sshd gives up its rights");
        let home = self.files.path();
        for path in ["host", "user"] {
            let mut keygen = Command::new("ssh-keygen");
            keygen.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(home.join(path));
            assert!(keygen.status().expect("ssh-keygen").success());
        }
        self.servers = ["a", "b"].map(|host| self.server(host)).into();
        Ok(())
    }

    fn server(&self, host: &str) -> Child {
        let home = self.files.path();
        let configuration = home.join(format!("sshd_{host}"));
        let lines = format!(
            "HostKey {0}/host\nAuthorizedKeysFile {0}/user.pub\nPidFile none\nStrictModes no\n\
             UsePAM no\nPasswordAuthentication no\nPermitRootLogin yes\n",
            home.display()
        );
        std::fs::write(&configuration, lines).expect("written");
        let script = format!(
            "mount --make-rprivate / && mount --bind {} /tmp && exec {SSHD} -De -f {}",
            self.files_of(host).display(),
            configuration.display()
        );
        let log = home.join(format!("{host}.log"));
        let sshd = Command::new("ip")
            .args(["netns", "exec", &self.space(host), "unshare", "-m", "sh", "-c", &script])
            .stderr(std::fs::File::create(&log).expect("a log"))
            .spawn()
            .expect("sshd");
        wait_for(&log, "Server listening on 0.0.0.0");
        sshd
    }

    /// Sets a link of a machine up or down.
    fn set(&self, host: &str, link: &str, state: &str) {
        ip(&format!("-n {} link set {link} {state}", self.space(host))).expect("set");
    }

    /// The command, in its namespace.
    fn command(&self, system: &TestSystem, duration: &str, more: &[&str]) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.space("c")]).arg(onbeat().get_program());
        command.args(["run", ".", "--on", "machines.toml", "--duration", duration]).args(more);
        command.current_dir(system.path()).stdin(Stdio::null());
        command
    }

    /// What it says.
    fn run(&self, system: &TestSystem, more: &[&str], expected: i32) -> Output {
        let output = self.command(system, "1s", more).output().expect("onbeat");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(expected), "{said}");
        output
    }

    /// Processes of the machines whose executable or working directory is among what was copied.
    fn processes(&self, host: &str) -> Vec<(u32, String)> {
        let space = format!("/run/netns/{}", self.space(host));
        let space = std::fs::metadata(space).expect("a namespace").ino();
        let mut found = Vec::new();
        for process in Path::new("/proc").read_dir().expect("/proc").flatten() {
            let Ok(pid) = process.file_name().to_string_lossy().parse::<u32>() else { continue };
            let is_there = std::fs::metadata(process.path().join("ns/net"));
            if !is_there.is_ok_and(|is_there| is_there.ino() == space) {
                continue;
            }
            let words = std::fs::read_to_string(process.path().join("cmdline"));
            let words = words.unwrap_or_default().replace('\0', " ");
            if !words.contains(SSHD) && !words.is_empty() {
                found.push((pid, words));
            }
        }
        found
    }

    /// A process of a machine with such words, once it is there.
    fn process(&self, host: &str, words: &str) -> u32 {
        let until = MonoTime::now() + LONG;
        loop {
            let found = self.processes(host);
            if let Some((pid, _)) = found.iter().find(|(_, all)| all.contains(words)) {
                return *pid;
            }
            assert!(MonoTime::now() < until, "no {words} on {host}: {found:?}");
            pause(Span::from_ms(5));
        }
    }

    /// Nothing of a run is left on a machine.
    fn are_clean(&self, what: &str) {
        let until = MonoTime::now() + LONG;
        loop {
            let mut left: Vec<String> = Vec::new();
            for host in ["a", "b"] {
                let sessions = |words: &String| !words.starts_with("sshd");
                let processes = self.processes(host).into_iter().map(|(_, words)| words);
                left.extend(processes.filter(sessions));
                let files = self.files_of(host).read_dir().expect("a directory").flatten();
                left.extend(files.map(|file| file.path().display().to_string()));
            }
            if left.is_empty() {
                return;
            }
            assert!(MonoTime::now() < until, "{what}: {left:?} is left");
            pause(Span::from_ms(10));
        }
    }
}

impl Drop for Machines {
    fn drop(&mut self) {
        for server in &mut self.servers {
            let _ = server.kill();
            let _ = server.wait();
        }
        for end in ["c", "a", "b"] {
            let _ = ip(&format!("netns del {}", self.space(end)));
        }
    }
}

fn ip(words: &str) -> Result<(), String> {
    onbeat_testkit::run(&format!("ip {words}"))
}

fn write(system: &TestSystem, machines: &str) {
    let text = format!("format = 1\n{machines}");
    std::fs::write(system.path().join("machines.toml"), text).expect("written");
}

fn wait_for(log: &Path, line: &str) {
    let until = MonoTime::now() + LONG;
    while !std::fs::read_to_string(log).unwrap_or_default().contains(line) {
        assert!(MonoTime::now() < until, "{}: {line} does not come", log.display());
        pause(Span::from_ms(5));
    }
}

fn kill(pid: u32) {
    let status = Command::new("kill").args(["-9", &pid.to_string()]).stderr(Stdio::null()).status();
    // It may just have ended.
    status.expect("kill");
}

fn counting() -> TestSystem {
    let system = TestSystem::new(&two_hosts(&programs("talk", "listen")));
    system.program("counts.c", "left").program("counts.c", "right");
    system
}

/// Programs that nothing else on this machine delays by much.
fn urgent() -> String {
    programs("talk", "listen").replace("[[program]]\n", "[[program]]\npriority = 50\n")
}

/// What a program of a machine has said that it counted.
fn counted(said: &str, host: &str, word: &str) -> i64 {
    let start = format!("{host}: counts: {word} ");
    let line = said.lines().find_map(|line| line.strip_prefix(&start));
    line.unwrap_or_else(|| panic!("no `{start}`: {said}")).parse().expect("a number")
}

/// A run on both machines, whose programs' counts are those of the results.
fn agrees(machines: &Machines, system: &TestSystem) {
    let output = machines.run(system, &["--json"], 0);
    let said = String::from_utf8_lossy(&output.stderr);
    for about in ["a: onbeat: eth0: ", "b: onbeat: eth0: "] {
        let lines: Vec<_> = said.lines().filter(|line| line.starts_with(about)).collect();
        let once: std::collections::BTreeSet<_> = lines.iter().collect();
        assert_eq!(once.len(), lines.len(), "each is said once: {said}");
    }
    let results: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert!(!said.contains("did not serve"), "all stay to the end: {said}");
    let c = channel(&results, "c");
    assert_eq!(number(c, "sent"), counted(&said, "a", "wrote"), "{said}");
    assert_eq!(number(c, "received"), counted(&said, "b", "read"), "{said}");
    assert_eq!(number(c, "received") + number(c, "lost"), number(c, "sent"));
    assert!(number(c, "received") > 0 && number(c, "latency_ns.min") > 0, "{c}");
    assert_eq!(c["verdict"], "no promise");
    let network = &results["runs"][0]["network"];
    let parts = network["parts"].as_array().expect("parts");
    let hosts: Vec<_> = parts.iter().map(|part| (&part["host"], &part["cut_off"])).collect();
    assert_eq!(hosts, [(&"a".into(), &false.into()), (&"b".into(), &false.into())]);
    // All machines read one clock here: the interval of the readings has the difference in it.
    let apart = &results["runs"][0]["clock_differences"][0];
    let (least, most) = (number(apart, "read_least_ns"), number(apart, "read_greatest_ns"));
    assert!(least <= 0 && 0 <= most, "{apart}");
    // The report is made again from the records, clocks and all.
    assert_eq!(common::results(&["report", "."], system.path(), 0), results);
    let page = std::fs::read_to_string(system.path().join("out/report.html")).expect("a page");
    assert!(page.contains("Clocks, by readings"), "the page says what readings show");
    let left: Vec<_> = system.path().read_dir().expect("it").flatten().collect();
    let is_recording = |name: &str| name.ends_with(".recording");
    assert!(!left.iter().any(|it| is_recording(&it.file_name().to_string_lossy())));
    machines.are_clean("a run that went well");
}

/// Adds a setting to the file of machines.
fn set(system: &TestSystem, setting: &str) {
    let file = system.path().join("machines.toml");
    let text = std::fs::read_to_string(&file).expect("the file");
    let text = text.replacen("format = 1", &format!("format = 1\n{setting}"), 1);
    std::fs::write(&file, text).expect("written");
}

#[test]
fn programs_run_on_machines_by_ssh_and_by_shell_and_count_what_the_results_say() {
    let Some(mut machines) = Machines::new("w") else { return };
    let system = counting();
    // The start is later than a silent machine is waited for.
    machines.slow_shells(&system, "");
    set(&system, "start_in_s = 12");
    agrees(&machines, &system);
    match machines.secure_shells(&system) {
        Ok(()) => {
            set(&system, "clock_error_us = 50_000");
            agrees(&machines, &system);
        }
        Err(why) => not_run(Need::Tools, why),
    }
}

/// How many frames a machine has sent, or received, on its cable to the other one.
fn frames(machines: &Machines, host: &str, counter: &str) -> i64 {
    let file = format!("/sys/class/net/eth0/statistics/{counter}");
    // `ip netns exec` has /sys of the namespace.
    let output = Command::new("ip")
        .args(["netns", "exec", &machines.space(host), "cat", &file])
        .output()
        .expect("ip");
    String::from_utf8_lossy(&output.stdout).trim().parse().expect("a number")
}

#[test]
fn noise_between_machines_is_sent_as_described_and_counted_where_it_comes() {
    let Some(machines) = Machines::new("u") else { return };
    let noise = |name: &str, from: &str, to: &str| {
        format!(
            "[[noise]]\nname = \"{name}\"\nfrom = \"{from}\"\nto = \"{to}\"\n\
             size_octets = 500\nframes_per_s = 2000\nstart_ms = 200\non_ms = 300\n\
             off_ms = 300\n"
        )
    };
    let third = "[[host]]\nname = \"x\"\n[[link]]\nends = [\"x\", \"s\"]\nrate_mbps = 100\n";
    let more = programs("talk", "listen") + third;
    let more = more + &noise("there", "a", "b") + &noise("nowhere", "a", "x");
    let quiet = "[[scenario]]\nname = \"quiet\"\nnoise = false\n";
    let system = TestSystem::new(&two_hosts(&(more + quiet)));
    system.program("counts.c", "left").program("counts.c", "right");
    machines.slow_shells(&system, "");
    let count = |scenario: &[&str]| {
        let before = [frames(&machines, "a", "tx_packets"), frames(&machines, "b", "rx_packets")];
        let output = machines.run(&system, &[&["--json"], scenario].concat(), 0);
        let results: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let c = channel(&results, "c").clone();
        let said = String::from_utf8(output.stderr).expect("UTF-8");
        let sent = frames(&machines, "a", "tx_packets") - before[0] - number(&c, "sent");
        let came = frames(&machines, "b", "rx_packets") - before[1] - number(&c, "sent");
        (sent, came, said)
    };
    let (sent, came, said) = count(&[]);
    // Twice 300 ms of 1 s, of one source; a busy machine leaves some out and says so.
    let left_out = said.lines().find_map(|line| line.split_once(" frames of noise were not sent"));
    let left_out: i64 = left_out.map_or(0, |(line, _)| {
        let words = line.split_whitespace().rev().nth(2).expect("so many of all");
        words.parse().expect("a number")
    });
    let wanted = 1_000 - left_out;
    // Beside it only what the system itself sends now and then.
    assert!((wanted - 2..wanted + 40).contains(&sent), "{sent} of {wanted}: {said}");
    assert!((wanted - 2..wanted + 40).contains(&came), "{came} of {wanted}: {said}");
    assert!(
        said.contains("onbeat: noise `nowhere` is not sent: host `x` has no machine"),
        "{said}"
    );
    // Both ends' samples are one: what was offered came.
    let page = std::fs::read_to_string(system.path().join("out/report.html")).expect("a page");
    let sums = ["delivered_kbps", "offered_kbps"].map(|name| {
        let (_, list) = page.split_once(&format!("\"{name}\":[")).expect("a load");
        let list = list.split(']').next().expect("its end").split(',');
        list.map(|kbps| kbps.parse::<i64>().expect("a number")).sum::<i64>()
    });
    assert!(sums[1] > 0 && (sums[0] - sums[1]).abs() * 50 <= sums[1], "{sums:?}");
    let (sent, _, said) = count(&["--scenario", "quiet"]);
    assert!(sent < 40 && !said.contains("noise"), "{sent}: {said}");
    // A port that is not free is named, before anything is run, where noise comes to it.
    std::fs::remove_dir_all(system.path().join("out")).expect("removed");
    let space = std::fs::File::open(format!("/run/netns/{}", machines.space("b")));
    let taken = onbeat_testkit::within(&space.expect("a namespace").into(), || {
        std::net::UdpSocket::bind((std::net::Ipv6Addr::UNSPECIFIED, 20_000)).expect("free")
    });
    let output = machines.run(&system, &[], 5);
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    let words = ["machine of host `b` (", "UDP port 20000", "noise `there`", "ss -ulpn"];
    let is_it = |line: &str| words.iter().all(|words| line.contains(words));
    assert!(said.lines().any(is_it) && !system.path().join("out").exists(), "{said}");
    machines.run(&system, &["--scenario", "quiet"], 0);
    drop(taken);
}

#[test]
fn what_a_queueing_discipline_holds_is_in_the_part_of_the_queue() {
    let Some(machines) = Machines::new("q") else { return };
    let system = TestSystem::new(&two_hosts(&urgent()));
    system.program("counts.c", "left").program("counts.c", "right");
    machines.slow_shells(&system, "");
    let parts = || {
        let output = machines.run(&system, &["--json", "--stamps"], 0);
        let said = String::from_utf8(output.stderr).expect("UTF-8");
        // Where clocks do not count as synchronised, stamps of two machines are not compared well.
        let is_free = said.contains("onbeat: eth0: messages are marked uncertain");
        assert_eq!(
            said.contains("--stamps: not synchronised by its own account"),
            is_free,
            "{said}"
        );
        let results: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let listener = channel(&results, "c")["listeners"][0].clone();
        let without = number(&listener, "received") - number(&listener, "breakdown.messages");
        let parts = &listener["breakdown"]["parts"];
        ([0, 1, 2].map(|at| number(&parts[at], "ns.p50")), without)
    };
    let ([_, free, _], without) = parts();
    // Of the last message nothing may be noted yet; of those in the queue nothing is.
    assert!(without <= 1, "{without}");
    // 500 frames a second are more than that: each waits for longer than the one before it.
    let tbf = "add dev eth0 root tbf rate 200kbit burst 1600 limit 100000";
    let a = machines.space("a");
    if let Err(why) = onbeat_testkit::run(&format!("ip netns exec {a} tc qdisc {tbf}")) {
        return not_run(Need::Tools, why);
    }
    let ([call, held, network], _) = parts();
    assert!(held > 10_000_000 && held > 10 * free, "{held}, not {free}");
    assert!(held > 4 * network && held > 4 * call, "{call} {held} {network}");
}

/// When a program of a machine continued, by its own account: message, instant.
fn acts(said: &str, host: &str) -> BTreeMap<i64, i64> {
    let start = format!("{host}: acts: ");
    let acts = said.lines().filter_map(|line| line.strip_prefix(&start)?.split_once(' '));
    acts.map(|(n, at)| (n.parse().expect("a number"), at.parse().expect("a time"))).collect()
}

#[test]
fn when_machines_act_is_known_as_exactly_as_is_said_though_their_clocks_are_apart() {
    let Some(machines) = Machines::new("o") else { return };
    let delay = "size_octets = 8\nfixed_delay_us = 10000";
    let text = two_hosts(&urgent()).replacen("size_octets = 8", delay, 1);
    let system = TestSystem::new(&text);
    system.program("acts.c", "left").program("acts.c", "right");
    for planted in [0, 1_500_000, -1_500_000] {
        machines.slow_shells(&system, &format!("clock_offset_ns = {planted}\n"));
        let output = machines.run(&system, &["--json", "--stamps"], 0);
        let said = String::from_utf8_lossy(&output.stderr);
        let results: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let (a, b) = (acts(&said, "a"), acts(&said, "b"));
        let mut own: Vec<_> = a.iter().filter_map(|(n, at)| Some(b.get(n)? - at)).collect();
        own.sort_unstable();
        assert!(own.len() > 20, "{said}");
        // If B's clock is ahead, it continues sooner by as much. If it is behind, messages come
        // from its future, and it takes them as captured when they come.
        let median = own[own.len() / 2];
        assert!((median + planted.max(0)).abs() < 1_000_000, "{planted}: {own:?}");
        let listener = &channel(&results, "c")["listeners"][0];
        let offset = &listener["wakeup_offset"];
        let uncertainty = number(offset, "uncertainty_ns");
        let apart = &results["runs"][0]["clock_differences"][0];
        let (least, most) = (number(apart, "read_least_ns"), number(apart, "read_greatest_ns"));
        assert!(least <= planted && planted <= most, "{planted}: {apart}");
        assert!(uncertainty <= most - least && uncertainty > 0, "{offset} {apart}");
        // Its own look at the clock is some microseconds later.
        let mean = number(offset, "ns.signed.avg");
        let own_mean = own.iter().sum::<i64>() / own.len() as i64;
        let slack = uncertainty + 200_000;
        assert!((mean - own_mean).abs() <= slack, "{planted}: {offset}, not {own_mean}");
        assert!(said.contains("onbeat: `c`: b woke "), "{said}");
        // The parts add up whatever the clocks are.
        let parts = &listener["breakdown"]["parts"];
        let names: Vec<_> = parts.as_array().expect("parts").iter().map(|p| &p["part"]).collect();
        assert_eq!(names, ["call", "queue", "network", "receive"], "{listener}");
        let network = number(&parts[2], "ns.min");
        assert!((network - planted).abs() < 1_000_000, "{planted}: {parts}");
    }
}

#[test]
fn what_stations_on_machines_carry_is_what_the_programs_count() {
    let Some(machines) = Machines::new("s") else { return };
    let system = counting();
    let file = system.path().join("system.toml");
    let text = std::fs::read_to_string(&file).expect("the description");
    // A round takes more than a millisecond.
    std::fs::write(&file, text.replace("rate_hz = 1000", "rate_hz = 500")).expect("written");
    machines.shells(&system);
    let output = machines.run(&system, &["--json", "--backend", "network-code"], 0);
    let said = String::from_utf8_lossy(&output.stderr);
    let results: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let c = channel(&results, "c");
    // What came and was not read counts, too; each by the name that its talker gave it.
    assert!(number(c, "received") >= counted(&said, "b", "read"), "{said}");
    let records = std::fs::read(system.path().join("out/1-run/records.onb")).expect("records");
    let log = onbeat_measure::records::decode(&records).expect("a record file");
    let written: Vec<_> = log.ends[0].records.iter().map(|record| record.capture).collect();
    for read in &log.ends[1].records {
        assert!(written.contains(&read.capture), "{read:?} was never written");
    }
    assert_eq!(number(c, "received") + number(c, "lost"), number(c, "sent"), "{c}");
    assert!(number(c, "received") > 0 && number(c, "bound_ns") > 0, "{c}");
    // A verdict between two machines counts with their clocks, or says why there is none.
    let verdict = c["verdict"].as_str().expect("a verdict");
    assert!(["kept", "not judged", "broken"].contains(&verdict), "{c}");
    machines.are_clean("stations");
}

#[test]
fn what_is_wrong_with_a_file_of_machines_is_shown_with_its_line() {
    let system = TestSystem::new(&two_hosts(""));
    for (text, code, line) in [
        ("[[machine]]\nhost = \"a\"\n", "OB1006", 2),
        ("[[machine]]\nhost = \"s\"\nlocal = true\ninterface = \"x\"\n", "OB1022", 3),
        ("[[machine]]\nhost = \"aa\"\nlocal = true\ninterface = \"x\"\n", "OB1021", 3),
        (
            "[[machine]]\nhost = \"a\"\naddress = \"-oProxyCommand=x\"\ninterface = \"x\"\n",
            "OB1015",
            4,
        ),
        (
            "[[machine]]\nhost = \"a\"\naddress = \"x\"\nlocal = true\ninterface = \"x\"\n",
            "OB1009",
            5,
        ),
        ("[[machine]]\nhost = \"a\"\nlocal = true\ninterface = \"x y\"\n", "OB1015", 5),
        (
            "[[machine]]\nhost = \"a\"\nlocal = true\ninterface = \"x\"\ndirectory = \"/a b\"\n",
            "OB1015",
            6,
        ),
        (
            "[[machine]]\nhost = \"a\"\nlocal = true\ninterface = \"x\"\nfiles = [\"../x\"]\n",
            "OB1015",
            6,
        ),
        ("[[machine]]\nhost = \"a\"\nlocal = true\ninterface = \"x\"\n", "OB1006", 1),
        (
            "[[machine]]\nhost = \"a\"\nlocal = true\ninterface = \"x\"\n\
             clock_offset_ns = 1_000_000_001\n",
            "OB1010",
            6,
        ),
        (
            "[[machine]]\nhost = \"a\"\nlocal = true\ninterface = \"x\"\ntune_cores = [2, 1024]\n",
            "OB1010",
            6,
        ),
        (
            "[[machine]]\nhost = \"a\"\nlocal = true\ninterface = \"x\"\ntune_root = \"x\"\n",
            "OB1015",
            6,
        ),
        ("clock_error_us = 0\n", "OB1010", 2),
        ("frob = 1\n", "OB1003", 2),
    ] {
        write(&system, text);
        let output = run(&["run", ".", "--on", "machines.toml", "--json"], system.path(), 1);
        let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let found = &found["diagnostics"][0];
        assert_eq!((&found["code"], &found["line"]), (&code.into(), &line.into()), "{text}{found}");
        assert_eq!(found["file"], "machines.toml");
        assert!(found["help"].as_str().is_some_and(|help| !help.is_empty()), "{found}");
    }
}

#[test]
fn a_program_that_leaves_well_before_the_end_of_a_run_is_named() {
    let text = two_hosts(&programs("talk\", \"100", "listen"));
    let system = TestSystem::new(&text);
    system.program("counts.c", "left").program("counts.c", "right");
    let wanted = |said: &[u8], host: &str| {
        let said = String::from_utf8_lossy(said);
        let start = format!("{host}: program `left` ended after ");
        let line = said.lines().find(|line| line.starts_with(&start));
        assert!(line.is_some_and(|line| line.ends_with(" did not serve channel `c`")), "{said}");
        assert!(!said.contains("`right` ended"), "{said}");
    };
    wanted(&run(&["run", ".", "--duration", "1s"], system.path(), 0).stderr, "onbeat");
    let Some(machines) = Machines::new("v") else { return };
    machines.slow_shells(&system, "");
    wanted(&machines.run(&system, &[], 0).stderr, "a");
}

#[test]
fn what_keeps_a_machine_from_a_promise_is_looked_for_in_the_scenarios_that_are_run() {
    let Some(machines) = Machines::new("c") else { return };
    let scenario =
        "[[scenario]]\nname = \"many\"\nprogram = [{ name = \"left\", cores = [900] }]\n";
    let system = TestSystem::new(&two_hosts(&(programs("talk", "listen") + scenario)));
    system.program("counts.c", "left").program("counts.c", "right");
    machines.slow_shells(&system, "");
    let found = |scenario: &[&str]| {
        let output = machines.command(&system, "1s", scenario).output().expect("onbeat");
        let said = String::from_utf8(output.stderr).expect("UTF-8");
        let line = said.lines().find(|line| line.starts_with("a: `onbeat doctor` finds"));
        (line.is_some_and(|line| line.contains("isolation.online")), said)
    };
    let (base, said) = found(&[]);
    assert!(!base, "{said}");
    let (many, said) = found(&["--scenario", "many"]);
    assert!(many, "{said}");
}
