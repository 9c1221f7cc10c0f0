//! Programs of a run as other users, as they are to be scheduled, through wrappers, within limits,
//! and none of them left behind.

use crate::common::{
    self, TestSystem, channel, executable, number, onbeat, programs, results, run, two_hosts,
};
use onbeat::clock::pause;
use onbeat_model::time::Span;
use onbeat_testkit::{Need, not_run};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// A user that has nothing.
const STRANGER: u32 = 54_321;
/// How often one looks for what another process does, and how often at most.
const LOOK_AGAIN: Span = Span::from_ms(10);
const LOOKS: u32 = 3_000;

/// Only the superuser can be another.
fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        not_run(Need::Superuser, "only the superuser can be another user");
    }
    is_root
}

/// Whether this superuser may raise limits (`CAP_SYS_RESOURCE`).
fn may_raise_limits() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").expect("it is there");
    let has = status.lines().find_map(|line| line.strip_prefix("CapEff:\t")).expect("a line");
    let may = u64::from_str_radix(has, 16).expect("hexadecimal") & (1 << 24) != 0;
    if !may {
        not_run(Need::Machine, "limits of a user's process: no CAP_SYS_RESOURCE");
    }
    may
}

/// A talker, and `runs_as.c` with these words and further lines of its table; more of `[run]`.
fn system(words: &[&str], more: &str, of_run: &str) -> TestSystem {
    let words: Vec<String> = words.iter().map(|word| format!(", \"{word}\"")).collect();
    let right = format!("[\"build/right\"{}]\n{more}", words.concat());
    let text = two_hosts(&programs("", ""))
        .replace("[\"build/right\", \"\"]", &right)
        .replace("hang_timeout_s = 2", &format!("hang_timeout_s = 5\n{of_run}"));
    let system = TestSystem::new(&text);
    system.program("talker.c", "left").program("runs_as.c", "right");
    open_to_all(system.path());
    system
}

fn open_to_all(path: &Path) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("opened");
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A run as somebody without any rights, whose directory this is then.
fn as_stranger(system: &TestSystem) -> Output {
    let home = tempfile::tempdir().expect("a directory");
    open_to_all(home.path());
    let binary = home.path().join("onbeat");
    executable(&binary, std::fs::read(env!("CARGO_BIN_EXE_onbeat")).expect("onbeat"));
    chown(system.path(), Some(STRANGER), Some(STRANGER)).expect("theirs");
    let mut command = Command::new(binary);
    command.args(["run", "."]).current_dir(system.path()).uid(STRANGER).gid(STRANGER);
    // In a file: a process that is left has it open for ever.
    let file = home.path().join("said");
    let to = std::fs::File::create(&file).expect("made");
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(to).status();
    let stderr = std::fs::read(file).expect("it is there");
    Output { status: status.expect("onbeat runs"), stdout: Vec::new(), stderr }
}

#[test]
fn a_program_runs_as_the_user_that_is_asked_for_and_can_get_no_more_rights() {
    if !is_root() {
        return;
    }
    let entry = Command::new("getent").args(["passwd", "nobody"]).output().expect("getent");
    let entry = String::from_utf8(entry.stdout).expect("text");
    let nobody: Vec<&str> = entry.trim().split(':').collect();
    let (uid, gid, home) = (nobody[2], nobody[3], nobody[5]);
    let users = [
        (
            "nobody",
            format!("uid {uid} {uid} gid {gid} {gid} groups 1 new 1 session 1 open 1"),
            home,
            "nobody",
        ),
        (
            uid,
            format!("uid {uid} {uid} gid {gid} {gid} groups 1 new 1 session 1 open 1"),
            home,
            "nobody",
        ),
        (
            "54322",
            "uid 54322 54322 gid 65534 65534 groups 0 new 1 session 1 open 1".to_owned(),
            "/",
            "54322",
        ),
    ];
    for (user, expected, home, name) in users {
        for time in ["virtual", "real"] {
            let place = tempfile::tempdir().expect("a directory");
            std::fs::set_permissions(place.path(), std::fs::Permissions::from_mode(0o777))
                .expect("open");
            let file = place.path().join("who");
            let more = format!("user = \"{user}\"\npriority = 50\n");
            let system = system(&["says", file.to_str().expect("UTF-8")], &more, "");
            let mut command = onbeat();
            // As a shell's redirection, which programs of others must not get.
            let leaks = std::fs::File::open("/etc/shadow").expect("the superuser's");
            rustix::io::fcntl_setfd(&leaks, rustix::io::FdFlags::empty()).expect("inherited");
            command.args(["run", ".", "--time", time]).env("XDG_RUNTIME_DIR", "/run/user/0");
            let output = command.current_dir(system.path()).output().expect("onbeat runs");
            assert_eq!(output.status.code(), Some(0), "{}", said(&output));
            let told = std::fs::read_to_string(file).expect("it says it");
            let lines: Vec<&str> = told.lines().collect();
            assert_eq!(lines[0], expected, "{time}");
            assert_eq!(lines[1], format!("home {home} user {name} logname {name} runtime -"));
            // The priority is granted to who may not ask for it, unless nobody here may.
            if time == "real" && !said(&output).contains("without its SCHED_FIFO priority") {
                assert!(lines[2].ends_with(" policy 1"), "{}", lines[2]);
            }
            if time == "real" && may_raise_limits() {
                assert!(lines[2].starts_with("memlock 1 rtprio 50 "), "{}", lines[2]);
            }
        }
    }
}

#[test]
fn a_scenario_schedules_a_program_otherwise() {
    let place = tempfile::tempdir().expect("a directory");
    let file = place.path().join("how");
    let scenarios = "policy = \"rr\"\npriority = 50\ncores = [0]\n\
                     [[scenario]]\nname = \"same\"\n\
                     [[scenario]]\nname = \"fifo\"\n\
                     program = [{ name = \"right\", policy = \"fifo\", priority = 7 }]\n\
                     [[scenario]]\nname = \"low\"\npolicy = \"other\"\n\
                     program = [{ name = \"right\", cores = [] }]\n\
                     [[scenario]]\nname = \"other\"\n\
                     program = [{ name = \"right\", policy = \"other\" }]\n";
    let system = system(&["scheduled", file.to_str().expect("UTF-8")], scenarios, "");
    let arguments = ["run", ".", "--time", "real", "--duration", "100ms", "--all-scenarios"];
    let output = run(&arguments, system.path(), 0);
    if said(&output).contains("the system did not grant it") {
        return not_run(Need::Machine, "priorities of programs: none are granted");
    }
    let told = std::fs::read_to_string(file).expect("it says it");
    let lines: Vec<&str> = told.lines().collect();
    let all = std::thread::available_parallelism().expect("some");
    let of = |policy: i32, priority: u8, cpus: usize| {
        format!("policy {policy} priority {priority} cpus {cpus}")
    };
    // As in sched.h.
    let (fifo, rr) = (1, 2);
    // The program's own policy is before that of the run.
    let low = of(rr, 50, all.get());
    assert_eq!(lines, [of(rr, 50, 1), of(fifo, 7, 1), low, of(0, 0, all.get())]);
}

#[test]
fn a_user_that_a_program_cannot_run_as_is_an_error_at_its_line() {
    if !is_root() {
        return;
    }
    let line = |system: &TestSystem| {
        let text = std::fs::read_to_string(system.path().join("system.toml")).expect("there");
        1 + text.lines().position(|line| line.starts_with("user =")).expect("a line")
    };
    let refused = |system: &TestSystem, output: &Output, why: &str| {
        let text = said(output);
        let place = format!("system.toml:{}:", line(system));
        assert_eq!(output.status.code(), Some(1), "{text}");
        for part in ["OB3004", why, &place] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!system.path().join("out").exists(), "nothing is run");
    };
    let unknown = system(&[], "user = \"no such user\"\n", "");
    refused(&unknown, &run(&["run", "."], unknown.path(), 1), "there is no such user");
    let spaces = system(&[], "user = \"54322\"\n", "");
    let output = run(&["run", ".", "--network", "netns"], spaces.path(), 1);
    refused(&spaces, &output, "network namespaces");
    let output = run(&["run", ".", "--interface", "lo", "--host", "b"], spaces.path(), 1);
    refused(&spaces, &output, "send frames on interfaces");
    let other = system(&[], "user = \"nobody\"\n", "");
    refused(&other, &as_stranger(&other), "only the superuser");
    // Oneself one may name.
    let own = system(&[], &format!("user = \"{STRANGER}\"\n"), "");
    let output = as_stranger(&own);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    // Who may not reach the program is told so, at the program.
    let far = system(&[], "user = \"54322\"\n", "");
    let closed = std::fs::Permissions::from_mode(0o700);
    std::fs::set_permissions(far.path(), closed).expect("closed");
    let text = said(&run(&["run", "."], far.path(), 1));
    assert!(text.contains("OB3001") && text.contains("let the program's `user`"), "{text}");
}

#[test]
fn a_program_may_be_started_by_others_if_they_hand_its_socket_on() {
    let wrapped = |words: &str| {
        let text = two_hosts(&programs("", "")).replace("[\"build/right\", \"\"]", words);
        let system = TestSystem::new(&text);
        system.program("talker.c", "left").program("listener.c", "right");
        system
    };
    let scripts = [
        "exec build/right",
        "build/right",
        "exec 3</dev/null 9>&2; build/right & wait $!",
        "(sh -c 'cd build && exec env -u HOME nice -n 1 ./right')",
    ];
    for script in scripts {
        for time in ["virtual", "real"] {
            let system = wrapped(&format!("[\"sh\", \"-c\", \"{script}\"]"));
            let results = results(&["run", ".", "--time", time], system.path(), 0);
            assert!(number(channel(&results, "c"), "received") > 0, "{script} {time}");
        }
    }
    let python = |more: &str| {
        let code =
            format!("import subprocess, sys; sys.exit(subprocess.call(['build/right']{more}))");
        wrapped(&format!("[\"python3\", \"-c\", \"{code}\"]"))
    };
    results(&["run", "."], python(", close_fds=False").path(), 0);
    let text = said(&run(&["run", "."], python("").path(), 4));
    assert!(text.contains("what started it did not hand the descriptor on"), "{text}");
}

/// Whether a process is there, and is no zombie.
fn is_there(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with(" Z"))
}

/// What a file has in it, once it has.
fn number_in(file: &Path) -> u32 {
    for _ in 0..LOOKS {
        if let Ok(text) = std::fs::read_to_string(file)
            && let Some(number) = text.strip_suffix('\n')
        {
            return number.parse().expect("a number");
        }
        pause(LOOK_AGAIN);
    }
    panic!("{} has nothing in it", file.display());
}

/// Waits for the end of a process.
fn ends(pid: u32) -> bool {
    for _ in 0..LOOKS {
        if !is_there(pid) {
            return true;
        }
        pause(LOOK_AGAIN);
    }
    false
}

#[test]
fn a_process_that_hides_from_its_group_ends_with_the_run_even_if_that_is_killed() {
    if !is_root() {
        return;
    }
    for user in ["", "user = \"54322\"\n"] {
        let place = tempfile::tempdir().expect("a directory");
        std::fs::set_permissions(place.path(), std::fs::Permissions::from_mode(0o777))
            .expect("open");
        let file = place.path().join("hidden");
        let system = system(&["hides", file.to_str().expect("UTF-8")], user, "");
        run(&["run", "."], system.path(), 0);
        assert!(!is_there(number_in(&file)), "a run that ends by itself leaves none");
        std::fs::remove_file(&file).expect("removed");
        let mut child = onbeat()
            .args(["run", ".", "--time", "real", "--duration", "60s"])
            .current_dir(system.path())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("onbeat runs");
        let hidden = number_in(&file);
        assert!(is_there(hidden));
        child.kill().expect("killed");
        let pid = child.id();
        let output = child.wait_with_output().expect("gone");
        if said(&output).contains("without a cgroup") {
            not_run(Need::Machine, said(&output));
            assert!(Command::new("kill").arg(hidden.to_string()).status().expect("kill").success());
            continue;
        }
        assert!(ends(hidden), "process {hidden} is left");
        for _ in 0..LOOKS {
            if common::cgroups_of(pid).is_empty() {
                break;
            }
            pause(LOOK_AGAIN);
        }
        assert_eq!(common::cgroups_of(pid), Vec::<std::path::PathBuf>::new());
    }
}

#[test]
fn programs_have_no_more_processes_and_no_more_memory_than_they_may() {
    if !is_root() {
        return;
    }
    let many = system(&["many"], "user = \"54322\"\n", "processes_max = 20");
    let output = run(&["run", "."], many.path(), 0);
    let text = said(&output);
    if text.contains("limits nothing") {
        not_run(Need::Machine, text);
        return;
    }
    let count = text.split("started ").nth(1).and_then(|rest| rest.split(',').next());
    let count: u32 = count.and_then(|count| count.parse().ok()).expect("so many");
    // The talker and the program itself are there too.
    assert!((1..=18).contains(&count), "{text}");
    assert!(text.contains("the programs reached `processes_max`: "), "{text}");
    // They have left their program's group, and yet none of them is left.
    let own = std::fs::canonicalize(many.path()).expect("there");
    let processes = Path::new("/proc").read_dir().expect("/proc").flatten();
    let left = processes.filter(|one| {
        std::fs::read_link(one.path().join("cwd")).is_ok_and(|place| place.starts_with(&own))
    });
    assert_eq!(left.count(), 0);

    let much = system(&["much"], "user = \"54322\"\n", "memory_max_octets = 67_108_864");
    let text = said(&run(&["run", "."], much.path(), 4));
    assert!(text.contains("program `right` ended (signal: 9 (SIGKILL)) before"), "{text}");
    assert!(text.contains("the programs reached `memory_max_octets`: 1 "), "{text}");
}

#[test]
fn a_run_ends_beside_a_process_that_it_may_not_kill_and_names_it() {
    if !is_root() {
        return;
    }
    let system = system(&["root"], "", "processes_max = 20");
    let program = system.path().join("build/right");
    chown(&program, Some(0), Some(0)).expect("the superuser's");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o4755)).expect("set");
    let output = as_stranger(&system);
    let text = said(&output);
    assert_eq!(output.status.code(), Some(4), "{text}");
    if text.contains("status 1") || text.contains("exit status: 1") {
        not_run(Need::Machine, "the file system has no set-user-ID programs (nosuid)");
        return;
    }
    assert!(text.contains("program `right` hangs"), "{text}");
    let ours = "the programs run without a cgroup (/sys/fs/cgroup";
    if !text.contains(ours) {
        not_run(Need::Machine, format_args!("the stranger's cgroup is the stranger's: {text}"));
        return;
    }
    assert!(text.contains("`processes_max` limits nothing: there is no cgroup"), "{text}");
    let number = text.split("program `right` could not be ended: process ").nth(1);
    let number = number.and_then(|rest| rest.split_whitespace().next()).expect("it is named");
    assert!(is_there(number.parse().expect("a number")), "{text}");
    assert!(Command::new("kill").args(["-KILL", number]).status().expect("kill").success());
}
