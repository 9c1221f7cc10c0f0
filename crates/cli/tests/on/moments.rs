//! What can go wrong with a run on machines, at which moment: one table. Whatever it is, all
//! machines end as they were, what was recorded until then is kept, and the cause is named with its
//! machine.

use super::faults::{RECORDED, Small};
use super::*;
use crate::common::machine::{self, JOURNAL};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::sync::atomic::{AtomicUsize, Ordering};
use {At::*, By::*, Fault::*};

/// How machines are reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    /// Each as a namespace.
    Shell,
    /// That of `a` by its own sshd.
    Ssh,
}

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum At {
    /// The fault is there before the command.
    Before,
    /// A shell is there.
    Greeted,
    /// The command's part is there.
    Part,
    /// So many lines of the journal of what is set are there.
    Line(usize),
    /// All is set, and programs are there.
    Started,
    /// What a second recorded has come.
    Recorded,
}

/// What goes wrong, with host `a` if nothing else is said.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// A signal for the command.
    Signal(i32),
    /// SIGKILL for a process of a host's machine that has these words.
    Kill(&'static str, &'static str),
    /// The same for the session of sshd, for its server, and for the ssh of the command.
    Session,
    Server,
    Client,
    /// It is stopped, as on a machine that hangs.
    Stop(&'static str),
    /// A link of the machine of a host is down.
    Down(&'static str, &'static str),
    /// The file of machines has another text.
    File(&'static str, &'static str),
    /// The machines say that they are of an architecture that no command is for.
    Foreign,
    /// Who gets to the machines there has no rights.
    NoRights,
    /// So many octets beyond the command's own fit on the machine's disk.
    Disk(i64),
    /// So many octets fit where the output is.
    OutputDisk(u64),
    /// The kernel of the machine refuses a setting.
    Refuses(&'static str),
    /// The program of `a` is another file.
    Program(&'static str),
    /// Settings of another tune are in force.
    Tuned,
}

/// A fault: how the machine is reached, what goes wrong when, with which exit code (a signal is
/// negative), and what is said.
type Row = (By, Fault, At, i32, &'static [&'static str]);

const TERM: i32 = 15;
const KILL: i32 = 9;
/// How a machine is named.
const SHELL: &str = "machine of host `a` (namespace ";
const SECURE: &str = "machine of host `a` (root@10.7.2.2): ";
/// It ends early for a machine.
const EARLY: &str = "the run ended before its time: machine of host `a` (";
/// An ELF file of an architecture that this machine is not.
const FOREIGN: &str = "\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x02\0\x6f\x6f\x01\0\0\0";

const ROWS: &[Row] = &[
    // The command.
    (Shell, Signal(KILL), Greeted, -KILL, &[]),
    (Shell, Signal(KILL), Part, -KILL, &[]),
    (Shell, Signal(KILL), Line(3), -KILL, &[]),
    (Shell, Signal(KILL), Line(20), -KILL, &[]),
    (Shell, Signal(KILL), Started, -KILL, &[]),
    (Ssh, Signal(KILL), Recorded, -KILL, &[]),
    (Shell, Signal(TERM), Greeted, 130, &["interrupted: nothing was run"]),
    (Shell, Signal(TERM), Part, 130, &["interrupted: nothing was run"]),
    // Where this machine is held up, the run may have begun by then.
    (Shell, Signal(TERM), Line(9), 130, &["interrupted"]),
    (Ssh, Signal(TERM), Started, 130, &["the run was interrupted"]),
    (Shell, Signal(TERM), Recorded, 130, &["the run was interrupted"]),
    // The runner, beside it who clears up, and the shell that started it.
    (Shell, Kill("a", "onbeat part"), Part, 5, &[SHELL]),
    (Shell, Kill("a", "onbeat part"), Line(2), 5, &[SHELL]),
    (Shell, Kill("a", "onbeat part"), Line(9), 5, &[SHELL]),
    (Shell, Kill("a", "onbeat part"), Started, 4, &[EARLY]),
    (Ssh, Kill("a", "onbeat part"), Recorded, 4, &[EARLY]),
    (Shell, Stop("onbeat part"), Recorded, 4, &[EARLY, "nothing was heard of it for 10 s"]),
    (Shell, Kill("a", "onbeat keeper"), Line(3), 4, &[EARLY, "(`onbeat keeper`) is gone"]),
    (Shell, Kill("a", "onbeat keeper"), Line(20), 4, &[EARLY, "(`onbeat keeper`) is gone"]),
    (Shell, Kill("a", "onbeat keeper"), Recorded, 0, &[]),
    (Shell, Kill("a", "sh -c"), Part, 0, &[]),
    (Shell, Kill("a", "sh -c"), Line(14), 0, &[]),
    (Shell, Kill("a", "sh -c"), Recorded, 0, &[]),
    (Shell, Kill("a", "tune --root"), Started, 0, &[]),
    // What leads to the machine.
    (Ssh, Session, Part, 5, &[SECURE]),
    (Ssh, Session, Line(5), 5, &[SECURE, "closed by remote host"]),
    (Ssh, Session, Started, 4, &[EARLY, "closed by remote host"]),
    (Ssh, Session, Recorded, 4, &[EARLY, "closed by remote host"]),
    (Ssh, Server, Before, 5, &[SECURE, "Connection refused"]),
    (Ssh, Server, Recorded, 0, &[]),
    (Ssh, Client, Recorded, 4, &[EARLY]),
    (Ssh, File("user\", \"-o", "host\", \"-o"), Before, 5, &[SECURE, "Permission denied"]),
    (Ssh, Down("a", "mgmt"), Recorded, 4, &[EARLY, "nothing was heard of it for 10 s"]),
    (Shell, Down("b", "eth0"), Before, 5, &["host `b` (namespace", "interface `eth0` is down"]),
    (Shell, File("\"eth0\"", "\"eth7\""), Before, 5, &[SHELL, "interface `eth7`"]),
    (
        Shell,
        File("namespace = \"", "namespace = \"no-"),
        Before,
        5,
        &[SHELL, "Cannot open network"],
    ),
    // Programs.
    (Shell, Kill("a", "build/left"), Started, 4, &[EARLY, "program `left`", "signal"]),
    (Shell, Kill("a", "build/left"), Recorded, 4, &[EARLY, "program `left`", "signal"]),
    (Shell, Kill("b", "build/right"), Recorded, 4, &["of host `b` (", "program `right`", "signal"]),
    (
        Shell,
        Program("#!/bin/sh\nexit 3\n"),
        Before,
        4,
        &[EARLY, "program `left`", "exit status: 3"],
    ),
    (Shell, Program(FOREIGN), Before, 5, &[SHELL, "build/left is built for another architecture"]),
    // Clocks.
    (Shell, File("us = 50_000", "us = 1"), Before, 5, &["within 1 µs of each other", "not known"]),
    (
        Shell,
        File("interface", "clock_offset_ns = 900_000_000\ninterface"),
        Before,
        5,
        &["the clocks of the machine of host `a` (", "are at least", "clock_error_us allows 50 ms"],
    ),
    // Disks.
    (Shell, Disk(-1_000_000), Before, 5, &[SHELL, "No space left on device"]),
    (Shell, Disk(20_000), Before, 5, &[SHELL, "build/left: No space left on device"]),
    (Shell, OutputDisk(100_000), Before, 5, &["out-", ".recording: No space left on device"]),
    (Shell, File("directory = \"", "directory = \"/no"), Before, 5, &[SHELL, "/no/"]),
    (Shell, File("sudo", "files = [\"data.csv\"]\nsudo"), Before, 5, &[SHELL, "names data.csv"]),
    // Architectures.
    (Shell, Foreign, Before, 5, &["machine of host", "it is riscv64", "runners/riscv64/onbeat"]),
    (Shell, File("runner = \"runner", "runner = \"foreign"), Before, 5, &[SHELL, "Exec format"]),
    // Rights.
    (Shell, File("sudo = false", "sudo = true"), Before, 5, &[SHELL, "a password is required"]),
    (
        Shell,
        NoRights,
        Before,
        5,
        &["machine of host", "Permission denied", "superuser's alone: try it with sudo"],
    ),
    // Settings of machines.
    (Shell, File("tune_cores = [2, 3]\n", ""), Before, 5, &[SHELL, "`tune_cores` is missing"]),
    (Shell, File("[2, 3]", "[7]"), Before, 5, &[SHELL, "there are no processors 7"]),
    (
        Shell,
        Refuses("/sys/devices/virtual/workqueue/cpumask"),
        Before,
        5,
        &[SHELL, "unbound kernel work elsewhere", "nothing is changed"],
    ),
    (Shell, Tuned, Before, 5, &[SHELL, "settings of an earlier tune"]),
];

/// Machines, on which one row after the other takes place.
struct World {
    machines: Machines,
    system: TestSystem,
    /// The files of which `tune` sets some.
    files: [machine::Machine; 2],
    /// Whether there is sshd.
    is_served: bool,
    /// The octets of the command that goes to machines.
    runner: i64,
    /// What is mounted for the present row.
    mounted: Option<Small>,
}

/// How all machines are: what is set, and interfaces with their addresses and groups.
type Snapshot = Vec<(BTreeMap<String, String>, Vec<String>)>;

impl World {
    fn new(name: &str, runner: &Path) -> Option<Self> {
        let mut machines = Machines::new(name)?;
        let served = machines.serve();
        let is_served = served.is_ok();
        if let Err(why) = served {
            not_run(Need::Tools, why);
        }
        let tuned = "[[scenario]]\nname = \"tuned\"\ntune = \"cpuset\"\n";
        let system = TestSystem::new(&two_hosts(&(programs("talk", "listen") + tuned)));
        system.program("counts.c", "left").program("counts.c", "right");
        std::os::unix::fs::symlink(runner, system.path().join("runner")).expect("linked");
        let octets = std::fs::metadata(runner).expect("stripped").len();
        std::fs::write(system.path().join("foreign"), FOREIGN).expect("written");
        let refuses = "#!/bin/sh\necho sudo: a password is required >&2\nexit 1\n";
        std::fs::write(system.path().join("looks"), "link\naddr\nmaddr\n").expect("written");
        std::fs::create_dir(system.path().join("bin")).expect("a directory");
        common::executable(&system.path().join("bin/sudo"), refuses);
        // A user without rights gets there, too.
        for (path, mode) in [(machines.files.path().to_owned(), 0o711)]
            .into_iter()
            .chain(["a", "b"].map(|host| (machines.files_of(host), 0o777)))
        {
            std::fs::set_permissions(path, Permissions::from_mode(mode)).expect("set");
        }
        // Not below `/tmp`, which machines with sshd have of their own.
        let root = || tempfile::tempdir_in("/var/tmp").expect("a directory");
        let files = [root(), root()].map(machine::Machine::below);
        let this =
            Self { machines, system, files, is_served, runner: octets as i64, mounted: None };
        // Addresses of interfaces are tried before they count.
        let until = MonoTime::now() + LONG;
        let is_tried = |line: &String| line.contains(" tentative ");
        while this.snapshot().iter().any(|(_, interfaces)| interfaces.iter().any(is_tried)) {
            assert!(MonoTime::now() < until, "interfaces have no addresses");
            pause(Span::from_ms(50));
        }
        Some(this)
    }

    /// Writes the file of machines; one text of it is another one.
    fn write(&self, by: By, (from, to): (&str, &str)) {
        let mut text = "clock_error_us = 50_000\n".to_owned();
        for (host, files) in ["a", "b"].into_iter().zip(&self.files) {
            text += &match (by, host) {
                (Ssh, "a") => self.machines.secure_shell(host),
                _ => self.machines.shell(host),
            };
            text += &format!(
                "runner = \"runner\"\nsudo = false\ntune_cores = [2, 3]\ntune_root = \"{}\"\n",
                files.0.path().display()
            );
        }
        assert!(text.contains(from), "{from}: {text}");
        write(&self.system, &text.replacen(from, to, 1));
    }

    fn snapshot(&self) -> Snapshot {
        let one = |(host, files): (&str, &machine::Machine)| {
            let space = self.machines.space(host);
            let looks = self.system.path().join("looks");
            let mut ip = Command::new("ip");
            let output = ip.args(["-n", &space, "-o", "-b"]).arg(looks).output().expect("ip");
            let mut set = files.all();
            set.insert("journal".to_owned(), files.read(JOURNAL));
            let interfaces = String::from_utf8(output.stdout).expect("UTF-8");
            let mut interfaces: Vec<_> = interfaces.lines().map(str::to_owned).collect();
            interfaces.sort_unstable();
            (set, interfaces)
        };
        ["a", "b"].into_iter().zip(&self.files).map(one).collect()
    }

    /// Lets something go wrong.
    fn plant(&mut self, by: By, fault: Fault, command: Option<&Child>) {
        let path = self.system.path();
        let pid = || command.expect("it runs").id();
        match fault {
            Signal(signal) => send(pid(), signal),
            Kill(host, words) => send(self.machines.process(host, words), KILL),
            Stop(words) => send(self.machines.process("a", words), 19),
            Client => send(self.machines.process("c", "-- root@10.7.2.2"), KILL),
            Session => {
                for (pid, words) in self.machines.processes("a") {
                    if words.starts_with("sshd") {
                        send(pid, KILL);
                    }
                }
            }
            Server => {
                self.machines.servers[0].kill().expect("it is a child");
                self.machines.servers[0].wait().expect("it ends");
            }
            Down(host, link) => self.machines.set(host, link, "down"),
            File(from, to) => self.write(by, (from, to)),
            Foreign => {
                self.write(by, ("runner = \"runner\"\n", ""));
                common::executable(&path.join("bin/uname"), "#!/bin/sh\necho riscv64\n");
            }
            NoRights => {
                let shell = "#!/bin/sh\nexec setpriv --reuid=65534 --clear-groups /bin/sh \"$@\"\n";
                common::executable(&path.join("bin/sh"), shell);
            }
            Disk(octets) => {
                let octets = u64::try_from(self.runner + octets).expect("more than nothing");
                self.mounted = Small::over(self.machines.files_of("a"), octets);
            }
            OutputDisk(octets) => self.mounted = Small::new(path.join("small"), octets),
            Refuses(file) => {
                let refuses = self.files[0].read("pretended/refuses");
                self.files[0].write("pretended/refuses", &format!("{refuses}\n{file}\n"));
            }
            Program(text) => {
                std::fs::rename(path.join("build/left"), path.join("left")).expect("renamed");
                common::executable(&path.join("build/left"), text);
            }
            Tuned => _ = self.files[0].tune(&machine::apply(&[]), 0),
        }
    }

    /// Puts right what went wrong, but for what the file of machines says.
    fn mend(&mut self, fault: Fault) {
        let path = self.system.path();
        match fault {
            Signal(_) | Kill(..) | Client | Session | File(..) => {}
            Stop(words) => {
                // It may have ended, with what leads to it.
                let left = self.machines.processes("a");
                let stopped = left.iter().filter(|(_, all)| all.contains(words));
                stopped.for_each(|(pid, _)| send(*pid, 18));
            }
            Server => self.machines.servers[0] = self.machines.server("a"),
            Down(host, link) => self.machines.set(host, link, "up"),
            Foreign => std::fs::remove_file(path.join("bin/uname")).expect("removed"),
            NoRights => std::fs::remove_file(path.join("bin/sh")).expect("removed"),
            Disk(_) => self.mounted = None,
            OutputDisk(_) => {
                self.mounted = None;
                std::fs::remove_dir(path.join("small")).expect("empty");
            }
            Refuses(_) => {
                self.files[0].write("pretended/refuses", "/proc/irq/26/smp_affinity_list\n");
            }
            Program(_) => std::fs::rename(path.join("left"), path.join("build/left")).expect("it"),
            Tuned => {
                assert!(self.files[0].is_tuned(), "another tune stays");
                self.files[0].tune(&["undo"], 0);
            }
        }
    }

    /// Waits until a run is so far, or has ended.
    fn wait(&self, at: At, command: &mut Child) {
        let until = MonoTime::now() + LONG;
        let is_recorded = |host: &str| {
            let below = ["small", "."].map(|it| self.system.path().join(it));
            let recording = |at: &PathBuf| at.join(format!("out-{host}.recording"));
            let octets = |path| std::fs::metadata(path).map_or(0, |of| of.len());
            below.iter().any(|at| octets(recording(at)) > RECORDED)
        };
        let is_there =
            |words: &str| self.machines.processes("a").iter().any(|(_, all)| all.contains(words));
        let is_so = || match at {
            Before => true,
            Greeted => is_there("sh -c"),
            Part => is_there("onbeat part"),
            Started => is_there("build/left"),
            Line(count) => self.files[0].read(JOURNAL).lines().count() >= count,
            Recorded => is_recorded("a") && is_recorded("b"),
        };
        while !is_so() && command.try_wait().expect("it is a child").is_none() {
            assert!(MonoTime::now() < until, "it does not come as far as {at:?}");
            // Looking for processes takes a millisecond itself.
            pause(Span::from_ms(if matches!(at, Line(_)) { 1 } else { 10 }));
        }
    }

    /// What becomes of a run to which that happens.
    fn play(&mut self, row: &Row) {
        let (by, fault, at, exit, words) = *row;
        let what = format!("{row:?}");
        self.write(by, ("", ""));
        let before = self.snapshot();
        if at == Before {
            self.plant(by, fault, None);
        }
        let duration = if exit == 0 || matches!(fault, OutputDisk(_)) { "4s" } else { "60s" };
        let out = if matches!(fault, OutputDisk(_)) { "small/out" } else { "out" };
        let options = ["--scenario", "tuned", "--json", "--out", out];
        let mut command = self.machines.command(&self.system, duration, &options);
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}", self.system.path().join("bin").display()));
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("onbeat");
        if at != Before {
            self.wait(at, &mut child);
            self.plant(by, fault, Some(&child));
        }
        let output = child.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let status = output.status;
        let code = status.code().or(status.signal().map(|signal| -signal));
        // Where this machine is held up, the run has begun by the line that says when it will.
        let has_begun = (at, exit, code) == (Line(9), 5, Some(4));
        assert!(code == Some(exit) || has_begun, "{what}: {said}");
        let is_it = |line: &str| words.iter().all(|words| line.contains(words));
        assert!(words.is_empty() || said.lines().any(is_it), "{what}: {said}");
        self.is_kept(row, &output, &what);
        if !matches!(fault, Stop(_)) {
            self.machines.are_clean(&what);
        }
        self.mend(fault);
        self.is_as(&before, &what);
    }

    /// Waits until all is as it was: processes, files, settings, interfaces.
    fn is_as(&self, before: &Snapshot, what: &str) {
        self.machines.are_clean(what);
        let until = MonoTime::now() + LONG;
        loop {
            let now = self.snapshot();
            if now == *before {
                return;
            }
            if MonoTime::now() > until {
                for ((set, interfaces), before) in now.iter().zip(before) {
                    assert_eq!(interfaces, &before.1, "{what}");
                    assert_eq!(set, &before.0, "{what}");
                }
            }
            pause(Span::from_ms(50));
        }
    }

    /// What was recorded is in the report, or in recordings that a report is made of; and there is
    /// none where nothing was run.
    fn is_kept(&self, row: &Row, output: &Output, what: &str) {
        let (_, fault, at, exit, _) = *row;
        let path = self.system.path();
        let is_reported = [0, 4].contains(&exit) || exit == 130 && at >= Started;
        let recordings = ["a", "b"].map(|host| path.join(format!("out-{host}.recording")));
        if let OutputDisk(_) = fault {
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(counted(&said, "b", "read") > 1_000, "it lasts as long as it is to: {said}");
            self.is_recovered(&["small/out-a", "small/out-b"]);
        } else if exit < 0 {
            // Where nothing came yet, they are empty.
            if at == Recorded {
                self.is_recovered(&["out-a", "out-b"]);
            }
            recordings.iter().for_each(|it| _ = std::fs::remove_file(it));
        }
        assert!(!recordings.iter().any(|it| it.exists()), "{what}: a recording is left");
        assert_eq!(path.join("out").exists(), is_reported, "{what}");
        if !is_reported {
            return;
        }
        let results: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        if at == Recorded || exit == 0 {
            self.has_records("out", what);
        }
        let is_lost =
            matches!(fault, Kill(_, "onbeat part") | Session | Client | Stop(_) | Down(_, "mgmt"));
        if is_lost && at == Recorded {
            // How many it sent after its last word is not known.
            assert_eq!(results["runs"][0]["network"]["parts"][0]["cut_off"], true, "{what}");
            assert_eq!(channel(&results, "c")["sent"], Value::Null, "{what}");
        }
        std::fs::remove_dir_all(path.join("out")).expect("removed");
    }

    /// A report can be made of recordings.
    fn is_recovered(&self, parts: &[&str]) {
        let path = self.system.path();
        let words = ["join", ".", "--recovered", parts[0], parts[1], "--out", "joined"];
        let results = common::results(&words, path, 4);
        // How many there were altogether is not known.
        assert_eq!(channel(&results, "c")["received"], Value::Null, "{results}");
        self.has_records("joined", "recovered");
        std::fs::remove_dir_all(path.join("joined")).expect("removed");
    }

    /// There are records of each end.
    fn has_records(&self, of: &str, what: &str) {
        let file = self.system.path().join(of).join("1-tuned/records.onb");
        let records = std::fs::read(&file).expect("records");
        let log = onbeat_measure::records::decode(&records).expect("a record file");
        let counts: Vec<_> = log.ends.iter().map(|end| end.records.len()).collect();
        assert!(counts.iter().all(|count| *count > 100), "{what}: {counts:?}");
    }
}

fn send(pid: u32, signal: i32) {
    let words = [format!("-{signal}"), pid.to_string()];
    // It may just have ended.
    Command::new("kill").args(words).stderr(Stdio::null()).status().expect("kill");
}

const _: () = assert!(ROWS.len() >= 40);

#[test]
fn whatever_goes_wrong_at_any_moment_machines_are_as_before_and_the_cause_is_named() {
    // Without what only a debugger reads, the command gets to machines sooner.
    let directory = tempfile::tempdir().expect("a directory");
    let runner = directory.path().join("onbeat");
    let mut strip = Command::new("strip");
    strip.arg("-o").arg(&runner).arg(onbeat().get_program());
    assert!(strip.status().expect("strip").success());
    let next = AtomicUsize::new(0);
    let work = |name: &str| {
        let Some(mut world) = World::new(name, &runner) else { return };
        while let Some(row) = ROWS.get(next.fetch_add(1, Ordering::Relaxed)) {
            if row.0 == Shell || world.is_served {
                world.play(row);
            }
        }
    };
    // Most of the time one waits for programs.
    std::thread::scope(|scope| {
        for name in ["m", "n"] {
            scope.spawn(|| work(name));
        }
    });
}
