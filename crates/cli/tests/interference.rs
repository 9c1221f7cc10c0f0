//! What an unprivileged user tries beside the superuser's `onbeat tune` and `onbeat stat`: nothing
//! of it changes what comes out. And a program that has more rights than who starts it.

use crate::common::machine::{Machine, apply};
use crate::common::{self, TestSystem, executable, onbeat, root};
use onbeat::clock::{MonoTime, pause};
use onbeat::shared_log::{Board, Identity};
use onbeat_model::record::Role;
use onbeat_model::time::Span;
use onbeat_model::units::StreamId;
use onbeat_testkit::{Need, not_run};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{FileExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tempfile::TempDir;

/// A user that has nothing.
const STRANGER: u32 = 54_321;
/// How often one looks for what another process does.
const LOOK_AGAIN: Span = Span::from_ms(1);

/// What `onbeat stat` shows of a user is limited for all processes of that user together: one test
/// at a time is that user.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// An unprivileged user, with programs where that user can start them.
struct Stranger(TempDir, #[expect(dead_code, reason = "held")] MutexGuard<'static, ()>);

impl Stranger {
    /// None where this is not the superuser, who alone can be another.
    fn new() -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            not_run(Need::Superuser, "only the superuser can be another user");
            return None;
        }
        let alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let this = Self(tempfile::tempdir().expect("a directory"), alone);
        open_to_all(this.0.path());
        let source = root().join("crates/cli/tests/programs/interfere.c");
        let compiler = Command::new("cc")
            .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-O1", "-o"])
            .args([&this.path("interfere"), &source])
            .status();
        assert!(compiler.expect("a C compiler").success());
        let onbeat = std::fs::read(env!("CARGO_BIN_EXE_onbeat")).expect("onbeat");
        executable(&this.path("onbeat"), onbeat);
        Some(this)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// One of the programs, as that user.
    fn command(&self, name: &str) -> Command {
        let mut command = Command::new(self.path(name));
        command.uid(STRANGER).gid(STRANGER).current_dir("/").stdin(Stdio::null());
        command
    }

    /// Every attempt at the files of a machine and at processes; how many there were.
    fn tries(&self, machine: &Machine, processes: &[i32]) -> usize {
        let mut command = self.command("interfere");
        command.arg("try").arg(machine.0.path());
        command.args(processes.iter().map(ToString::to_string));
        let output = command.output().expect("it runs");
        assert!(output.status.success(), "{}", output.status);
        let said = String::from_utf8(output.stdout).expect("text");
        let got: Vec<&str> = said.lines().filter(|line| !line.ends_with(": refused")).collect();
        assert!(got.is_empty(), "{got:?}");
        for verb in ["confirm", "undo", "status"] {
            let mut command = self.command("onbeat");
            command.args(["tune", "--root"]).arg(machine.0.path()).arg(verb);
            let output = command.output().expect("it runs");
            assert_eq!(output.status.code(), Some(5), "{verb}");
            let why = String::from_utf8_lossy(&output.stderr);
            assert!(why.contains("it is the superuser's alone"), "{verb}: {why}");
        }
        said.lines().count()
    }

    /// Names, memory and load, until it ends.
    fn squats(&self, memory: &Path, count: u32) -> Squatter {
        let mut command = self.command("interfere");
        Squatter::new(command.arg("squat").arg(memory).arg(count.to_string()))
    }
}

/// Ended with the test, and what it started with it.
struct Squatter(Child);

impl Squatter {
    /// Waits until it has what it takes.
    fn new(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("it runs");
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let last = lines.map_while(Result::ok).take_while(|line| line != "ready").last();
        assert!(last.is_some_and(|line| line.ends_with(": done")), "it has what it takes");
        Self(child)
    }
}

impl Drop for Squatter {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn open_to_all(path: &Path) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("opened");
}

/// Memory of a program that has as many ends as there can be, all of them called so.
fn memory(channel: &str) -> Vec<u8> {
    let board = Board::new().expect("a board");
    let identity =
        Identity { channel: channel.to_owned(), stream_id: StreamId(1), role: Role::Talker };
    let mut ends = Vec::new();
    while let Ok(mut end) = board.end() {
        end.introduce(&identity);
        ends.push(end);
    }
    let memory = std::fs::File::from(rustix::io::dup(board.memory()).expect("a descriptor"));
    let mut octets = vec![0; memory.metadata().expect("its length").len() as usize];
    memory.read_exact_at(&mut octets, 0).expect("read");
    octets
}

/// Whether a process has files open: it is neither gone nor only waited for.
fn has_files(pid: i32) -> bool {
    let open = Path::new("/proc").join(pid.to_string()).join("fd").read_dir();
    open.is_ok_and(|open| open.count() > 0)
}

/// A tune without confirmation, and one that the superuser does; what came of it. `meanwhile` is
/// called with the process that undoes.
fn story(meanwhile: &dyn Fn(&Machine, &[i32])) -> Vec<String> {
    let machine = Machine::new();
    open_to_all(machine.0.path());
    let before = machine.all();
    let mut told = Vec::new();
    let mut tell = |what: &str, came: String| told.push(format!("{what}: {came}"));
    let place = machine.0.path().display().to_string();
    let text = |octets: &[u8]| String::from_utf8_lossy(octets).replace(&place, "");
    let within = Span::from_s(3);
    let started = MonoTime::now();
    tell("apply", text(&machine.tune(&apply(&["--confirm-within", "3s"]), 0).stderr));
    let guard = machine.guard();
    meanwhile(&machine, &[guard]);
    // Until it ends, it is at work, and no other tune may be.
    while machine.is_tuned() || has_files(guard) {
        pause(LOOK_AGAIN);
    }
    assert!(MonoTime::now() - started >= within, "not before its time");
    tell("as before", (machine.all() == before).to_string());
    tell("status", text(&machine.tune(&["status"], 0).stdout));

    tell("apply", text(&machine.tune(&apply(&["--confirm-within", "1h"]), 0).stderr));
    meanwhile(&machine, &[machine.guard()]);
    let mut status = machine.json(&["status"], 0);
    assert!(status["unconfirmed_for_ns"].take().as_i64().expect("it waits") > 0);
    tell("status", status.to_string());
    tell("confirm", text(&machine.tune(&["confirm"], 0).stderr));
    meanwhile(&machine, &[]);
    tell("status", machine.json(&["status"], 0).to_string());
    tell("undo", text(&machine.tune(&["undo"], 0).stderr));
    tell("as before", (machine.all() == before).to_string());

    let mut watch = machine.start(&apply(&["--watch"]));
    let path = "proc/irq/24/smp_affinity_list";
    while machine.read("sys/fs/cgroup/cpuset/cpuset.sched_load_balance") != "0" {
        pause(LOOK_AGAIN);
    }
    let pid = rustix::process::Pid::from_child(&watch);
    meanwhile(&machine, &[pid.as_raw_nonzero().get()]);
    machine.write(path, "0-3\n");
    while machine.read(path) != "0-1" {
        pause(LOOK_AGAIN);
    }
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("interrupted");
    tell("watch", watch.wait().expect("ended").to_string());
    machine.tune(&["undo"], 0);
    tell("as before", (machine.all() == before).to_string());
    told
}

#[test]
fn nothing_that_an_unprivileged_user_does_changes_what_becomes_of_a_tune() {
    let Some(stranger) = Stranger::new() else { return };
    let alone = story(&|_, _| ());
    let file = stranger.path("memory");
    std::fs::write(&file, memory("a stranger's")).expect("written");
    let _squatter = stranger.squats(&file, 8);
    let tried = std::cell::Cell::new(0);
    let beside = story(&|machine, processes| {
        tried.set(tried.get() + stranger.tries(machine, processes));
    });
    assert_eq!(beside, alone);
    assert!(tried.get() > 4 * 80, "{} attempts", tried.get());
}

#[test]
fn a_state_directory_that_a_stranger_made_before_is_refused() {
    let Some(_) = Stranger::new() else { return };
    for mode in [0o755, 0o777] {
        let machine = Machine::new();
        let state = machine.0.path().join("var/lib/onbeat");
        std::fs::create_dir_all(&state).expect("made");
        chown(&state, Some(STRANGER), Some(STRANGER)).expect("theirs");
        std::fs::set_permissions(&state, std::fs::Permissions::from_mode(mode)).expect("open");
        let before = machine.all();
        for verb in [&apply(&[])[..], &["undo"], &["confirm"], &["status"]] {
            let why = machine.tune(verb, 5).stderr;
            let why = String::from_utf8_lossy(&why);
            assert!(why.contains("var/lib/onbeat: it belongs to user 54321"), "{verb:?}: {why}");
        }
        assert_eq!(machine.all(), before);
    }
}

/// What `onbeat stat` says.
fn stat(arguments: &[&str]) -> Value {
    let output = onbeat().args(["stat", "--json"]).args(arguments).output().expect("onbeat runs");
    assert_eq!(output.status.code(), Some(0));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn programs_are_seen_whatever_memory_a_stranger_has() {
    let Some(stranger) = Stranger::new() else { return };
    let theirs = stranger.path("theirs");
    std::fs::write(&theirs, memory("a stranger's")).expect("written");
    // Before the program, so that it comes first among the processes.
    let squatter = stranger.squats(&theirs, 24);
    let ours = stranger.path("ours");
    std::fs::write(&ours, &memory("ours")[..4_096]).expect("written");
    let mut victim = Command::new(stranger.path("interfere"));
    let victim = Squatter::new(victim.arg("hold").arg(&ours).arg("1"));
    let pid = victim.0.id();
    let seen = stat(&["--pid", &pid.to_string()]);
    let ends = seen["ends"].as_array().expect("ends");
    assert_eq!(ends.len(), 16, "{ends:?}");
    assert!(ends.iter().all(|end| end["channel"] == "ours" && end["uid"] == 0), "{ends:?}");
    let skipped = seen["skipped"].as_array().expect("what is missing");
    let of_stranger =
        skipped.iter().find(|one| one["uid"] == STRANGER).expect("they have too many");
    assert_eq!(of_stranger["why"], "more than 8192 ends: the rest is not shown");
    let all = stat(&["--pid", &squatter.0.id().to_string()]);
    let all = all["ends"].as_array().expect("ends");
    assert!(all.iter().all(|end| end["uid"] == STRANGER), "whose it is, though it hides");
    assert_eq!(all.len(), 8_192);
    let output = onbeat().arg("stat").output().expect("onbeat runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("onbeat: user 54321: more than 8192 ends"), "{said}");
}

#[test]
fn an_output_in_a_directory_of_everybodys_waits_for_no_stranger() {
    let Some(stranger) = Stranger::new() else { return };
    let place = tempfile::tempdir().expect("a directory");
    std::fs::set_permissions(place.path(), std::fs::Permissions::from_mode(0o1777)).expect("open");
    // As if others were writing the same output: a directory, and a pipe that nobody reads.
    let (directory, pipe) =
        (place.path().join("out.partial-1"), place.path().join("out.partial-2"));
    std::fs::create_dir(&directory).expect("made");
    let fifo = rustix::fs::FileType::Fifo;
    let mode = rustix::fs::Mode::from_raw_mode(0o666);
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, fifo, mode, 0).expect("made");
    for path in [&directory, &pipe] {
        chown(path, Some(STRANGER), Some(STRANGER)).expect("theirs");
    }
    let mut locks = stranger.command("interfere");
    let _locks = Squatter::new(locks.arg("lock").args([place.path(), &directory]));
    let mut simulate = onbeat();
    simulate
        .args(["simulate", "examples/03-robot-arm", "--duration", "10ms", "--out"])
        .arg(place.path().join("out"));
    let output = simulate.current_dir(root()).output().expect("onbeat runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(place.path().join("out/simulation.json").is_file());
}

/// What a program says of the environment that it was started in: by itself, and as a set-user-ID
/// program of the superuser's.
#[test]
fn a_program_with_more_rights_than_its_caller_believes_no_environment() {
    let Some(_) = Stranger::new() else { return };
    let system = TestSystem::new(common::ONE_HOST);
    system.program("join.c", "join");
    open_to_all(system.path());
    let program = system.path().join("build/join");
    let joined = |variables: &[(&str, &str)]| {
        let mut command = Command::new(&program);
        command.uid(STRANGER).gid(STRANGER).env_clear().envs(variables.iter().copied());
        let output = command.output().expect("it runs");
        assert!(output.status.success(), "{}", output.status);
        String::from_utf8(output.stdout).expect("text").trim().to_owned()
    };
    let nothing = joined(&[]);
    let hostile = [
        &[("ONBEAT_COORDINATOR", "x")][..],
        &[("ONBEAT_FABRIC", "x")],
        &[("ONBEAT_INTERFACE", "no-such")],
        &[("ONBEAT_COORDINATOR", "onbeat-0:00"), ("ONBEAT_TRACE", "1")],
    ];
    for variables in hostile {
        assert_ne!(joined(variables), nothing, "{variables:?}: its own environment is believed");
    }
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o4755)).expect("set");
    if joined(&[("WHO", "")]).starts_with(&format!("{STRANGER} ")) {
        not_run(Need::Machine, "the file system has no set-user-ID programs (nosuid)");
        return;
    }
    let as_root = joined(&[]);
    assert!(as_root.starts_with("0 "), "{as_root}");
    for variables in hostile {
        assert_eq!(joined(variables), as_root, "{variables:?}");
    }
}

/// Another user that has nothing, as whom a program of a run runs.
const MEMBER: &str = "54322";
/// What the program waits for before it takes part.
const GATE: &str = "while [ ! -e go ]; do sleep 0.01; done; exec build/left";

/// How the other program is started.
const RIGHT: &str = "command = [\"build/right\", \"\"]";

/// A run of the superuser's, with a program of another user's.
struct Run {
    system: TestSystem,
    child: Option<Child>,
}

impl Run {
    /// Starts it; its programs are there, and one waits.
    fn start(time: &str) -> Self {
        let text = common::two_hosts(&common::programs("", ""))
            .replace("hang_timeout_s = 2", "hang_timeout_s = 600\nprocesses_max = 64")
            .replace("[\"build/left\", \"\"]", &format!("[\"sh\", \"-c\", \"{GATE}\"]"))
            .replace(RIGHT, &format!("{RIGHT}\nuser = \"{MEMBER}\""));
        let system = TestSystem::new(&text);
        system.program("talker.c", "left").program("listener.c", "right");
        open_to_all(system.path());
        let child = onbeat()
            .args(["run", ".", "--json", "--time", time, "--duration", "2s"])
            .current_dir(system.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let this = Self { system, child: Some(child.expect("onbeat runs")) };
        let has = |processes: &[u32], name: &str| {
            let words = |pid: &u32| std::fs::read(format!("/proc/{pid}/cmdline"));
            let mut all = processes.iter().filter_map(|pid| words(pid).ok());
            all.any(|words| words.starts_with(name.as_bytes()))
        };
        let right = this.system.path().canonicalize().expect("there").join("build/right");
        let right = right.display().to_string();
        loop {
            let processes = this.processes();
            if has(&processes, "sh\0-c") && has(&processes, &right) {
                return this;
            }
            pause(LOOK_AGAIN);
        }
    }

    fn pid(&self) -> u32 {
        self.child.as_ref().expect("it runs").id()
    }

    /// It, and what it has started.
    fn processes(&self) -> Vec<u32> {
        let all = Path::new("/proc").read_dir().expect("/proc").flatten();
        let number = |one: std::fs::DirEntry| one.file_name().to_str()?.parse::<u32>().ok();
        let parent = |pid: u32| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            let (_, rest) = stat.rsplit_once(')')?;
            rest.split_whitespace().nth(1)?.parse::<u32>().ok()
        };
        let pairs: Vec<_> = all.filter_map(number).map(|pid| (pid, parent(pid))).collect();
        let mut found = vec![self.pid()];
        let mut at = 0;
        while at < found.len() {
            let of = |(_, parent): &&(u32, Option<u32>)| *parent == Some(found[at]);
            let children: Vec<u32> = pairs.iter().filter(of).map(|(pid, _)| *pid).collect();
            found.extend(children);
            at += 1;
        }
        found
    }

    /// What a stranger may try at: its processes, directories and cgroups.
    fn everything(&self) -> Vec<String> {
        let mut all: Vec<String> = self.processes().iter().map(ToString::to_string).collect();
        let directories = [self.system.path().to_owned(), self.system.path().join("build")];
        let groups = common::cgroups_of(self.pid());
        all.extend(directories.iter().chain(&groups).map(|path| path.display().to_string()));
        all
    }

    /// Lets it continue.
    fn go_on(&self) {
        std::fs::write(self.system.path().join("go"), "").expect("written");
    }

    /// What came of it, as far as it does not depend on how fast the machine is.
    fn came(mut self) -> Vec<String> {
        let pid = self.pid();
        let output = self.child.take().expect("it runs").wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&output.stderr);
        let results: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let run = &results["runs"][0];
        let c = &run["channels"][0];
        let hash = if run["time"] == "virtual" { run["record_hash"].clone() } else { Value::Null };
        let tells = ["cgroup", "could not", "reached `", "ended", "limits nothing"];
        let told = |line: &&str| tells.iter().any(|word| line.contains(word));
        let mut came: Vec<String> = said.lines().filter(told).map(str::to_owned).collect();
        // What a full queue dropped is a matter of the machine's speed.
        let lost = [&c["lost"], &c["overflowed"]].map(|count| count.as_i64().unwrap_or(0));
        came.push(format!("{} {hash} {} {}", run["ended"], lost[0] - lost[1], c["duplicated"]));
        assert!(c["received"].as_i64().is_some_and(|count| count > 0), "{said} {c}");
        assert_eq!(common::cgroups_of(pid), Vec::<PathBuf>::new());
        came
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// What comes of runs in both times, when this is done meanwhile.
fn runs(meanwhile: &dyn Fn(&Run)) -> Vec<String> {
    let mut came = Vec::new();
    for time in ["virtual", "real"] {
        let run = Run::start(time);
        meanwhile(&run);
        run.go_on();
        if time == "real" {
            meanwhile(&run);
        }
        came.extend(run.came());
    }
    came
}

#[test]
fn nothing_that_an_unprivileged_user_does_changes_what_becomes_of_a_run() {
    let Some(stranger) = Stranger::new() else { return };
    let alone = runs(&|_| ());
    let file = stranger.path("memory");
    std::fs::write(&file, memory("a stranger's")).expect("written");
    let _squatter = stranger.squats(&file, 8);
    let tried = std::cell::Cell::new(0);
    let floods = std::cell::RefCell::new(Vec::new());
    let beside = runs(&|run| {
        let mut flood = stranger.command("interfere");
        floods.borrow_mut().push(Squatter::new(flood.arg("flood").arg(run.pid().to_string())));
        let mut command = stranger.command("interfere");
        let output = command.arg("run").args(run.everything()).output().expect("it runs");
        assert!(output.status.success(), "{}", output.status);
        let said = String::from_utf8(output.stdout).expect("text");
        let may = |line: &&str| line.ends_with(": refused") || line.ends_with(": done");
        let got: Vec<&str> = said.lines().filter(|line| !may(line)).collect();
        assert!(got.is_empty(), "{got:?}");
        tried.set(tried.get() + said.lines().count());
    });
    assert_eq!(beside, alone);
    println!("{} attempts beside runs", tried.get());
    assert!(tried.get() > 3 * 200, "{} attempts", tried.get());
}

#[test]
fn the_engine_has_no_socket_that_anybody_could_connect_to() {
    let Some(_) = Stranger::new() else { return };
    for time in ["virtual", "real"] {
        let run = Run::start(time);
        let sockets = std::fs::read_to_string("/proc/net/unix").expect("/proc/net/unix");
        let inodes: Vec<String> = run.processes().iter().flat_map(|pid| inodes(*pid)).collect();
        assert!(inodes.len() >= 4, "programs and the engine have their ends: {inodes:?}");
        for line in sockets.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let theirs = words.get(6).is_some_and(|inode| inodes.iter().any(|one| one == inode));
            assert!(!theirs || words.len() == 7, "it has a name: {line}");
        }
        run.go_on();
        run.came();
    }
}

/// The sockets that a process has open.
fn inodes(pid: u32) -> Vec<String> {
    let entries = Path::new("/proc").join(pid.to_string()).join("fd").read_dir();
    let links = entries.into_iter().flatten().flatten();
    let links = links.filter_map(|entry| std::fs::read_link(entry.path()).ok());
    let inode = |link: PathBuf| {
        let link = link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?;
        Some(link.to_owned())
    };
    links.filter_map(inode).collect()
}
