//! Programs written for the public library net_chan compile unchanged against `compat` and run
//! right over a veth pair between two network namespaces. `compat/tests` holds them.

use onbeat_testkit::{Need, not_run, object, root};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, OnceLock};

/// Where all this builds and runs.
fn place() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("compat")
}

fn checked(command: &mut Command) -> Output {
    let output = command.output().expect("it can be started");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{said}", output.status);
    output
}

/// Builds the compatibility library into a directory.
fn make(name: &str, cflags: &str) -> PathBuf {
    let build = place().join(name);
    let mut make = Command::new("make");
    make.arg("-s").arg("-C").arg(root().join("compat"));
    make.arg(format!("BUILD={}", build.display())).arg(format!("CFLAGS={cflags}"));
    checked(&mut make);
    build
}

/// The compatibility library as users have it, built once.
fn archives() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| make("lib", "-O2 -g"))
}

/// The sanitizers that the compiler has here.
fn sanitizers() -> &'static [&'static str] {
    static THERE: OnceLock<Vec<&str>> = OnceLock::new();
    THERE.get_or_init(|| {
        std::fs::create_dir_all(place()).expect("a directory");
        let mut there = Vec::new();
        for name in ["address", "thread"] {
            let empty = place().join(name);
            let mut cc = Command::new("cc");
            cc.arg(format!("-fsanitize={name}")).args(["-x", "c", "-", "-o"]).arg(&empty);
            let cc = cc.stdin(Stdio::piped()).stderr(Stdio::null()).spawn();
            let can = cc.is_ok_and(|mut cc| {
                let program = b"int main(void) { return 0; }";
                let written = cc.stdin.take().expect("a pipe").write_all(program);
                written.is_ok() && cc.wait().is_ok_and(|status| status.success())
            });
            if can && Command::new(&empty).status().is_ok_and(|status| status.success()) {
                there.push(name);
            } else {
                let said = format!("compat: no {name} sanitizer here: its faults are not found\n");
                std::io::stderr().write_all(said.as_bytes()).expect("standard error");
            }
        }
        there
    })
}

/// The same library, which finds the faults that a sanitizer is for.
fn checking(sanitizer: &str) -> PathBuf {
    static BUILDING: Mutex<()> = Mutex::new(());
    let _one = BUILDING.lock().expect("no test panicked");
    make(&format!("checking-{sanitizer}"), &format!("-O1 -g -fsanitize={sanitizer}"))
}

/// Builds one of `compat/tests` as users do: optimised, with all the usual warnings as errors.
fn program(source: &str, name: &str, archive: &str, flags: &[&str]) -> PathBuf {
    built(source, name, &archives().join(archive), flags)
}

fn built(source: &str, name: &str, archive: &Path, flags: &[&str]) -> PathBuf {
    let compat = root().join("compat");
    let cpp = source.ends_with(".cpp") || flags.contains(&"c++");
    let compiler = if cpp { "c++" } else { "cc" };
    let to = place().join("bin");
    std::fs::create_dir_all(&to).expect("a directory");
    let to = to.join(name);
    checked(
        Command::new(compiler)
            .args(["-O2", "-g", "-Wall", "-Wextra", "-Werror", "-I"])
            .arg(compat.join("include"))
            .args(flags)
            .arg(compat.join("tests").join(source))
            .args(["-x", "none", "-o"])
            .arg(&to)
            .arg(archive)
            .arg(archive.with_file_name("libmrp.a"))
            .arg(object())
            .args(["-pthread", "-ldl", "-lm"]),
    );
    to
}

/// An empty directory for a test's logs.
fn directory(name: &str) -> PathBuf {
    let directory = place().join("run").join(name);
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir_all(&directory).expect("a directory");
    directory
}

/// A network namespace. It lives as long as its process, which ends with this one: it reads a pipe.
struct Namespace(Child);

impl Namespace {
    fn new() -> Self {
        let mut holder = Command::new("unshare")
            .args(["-n", "sh", "-c", "ip link set lo up && echo ready && exec cat"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("unshare");
        await_ready(&mut holder);
        Self(holder)
    }

    fn command(&self, program: impl AsRef<std::ffi::OsStr>, arguments: &[&str]) -> Command {
        let mut command = Command::new("nsenter");
        let pid = self.0.id().to_string();
        // A program that hangs fails its test instead of holding it up for ever.
        command.args(["-t", &pid, "-n", "--", "timeout", "-k", "1", "300"]);
        command.arg(program).args(arguments);
        command
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Reads standard output up to the line `ready`.
fn await_ready(child: &mut Child) {
    let out = child.stdout.as_mut().expect("a pipe");
    let mut line = Vec::new();
    let mut octet = [0];
    while out.read(&mut octet).expect("its output") == 1 {
        line.push(octet[0]);
        if line.ends_with(b"ready\n") {
            return;
        }
    }
    let mut said = String::new();
    if let Some(err) = &mut child.stderr {
        let _ = err.read_to_string(&mut said);
    }
    panic!("it is not ready: {}\n{said}", String::from_utf8_lossy(&line));
}

/// Two namespaces whose interfaces `eth0` are joined, or a line that says that it cannot be.
fn network() -> Option<(Namespace, Namespace)> {
    let permitted = Command::new("unshare").args(["-n", "true"]).stderr(Stdio::null()).status();
    if !permitted.is_ok_and(|status| status.success()) {
        not_run(Need::Namespaces, "network namespaces are not permitted here");
        return None;
    }
    let (left, right) = (Namespace::new(), Namespace::new());
    let peer = right.0.id().to_string();
    let link = ["link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", &peer];
    checked(&mut left.command("ip", &link));
    for side in [&left, &right] {
        checked(&mut side.command("ip", &["link", "set", "eth0", "up"]));
    }
    // The kernel drops frames until it has noticed, by and by, that both ends are up.
    for side in [&left, &right] {
        let mut look = side.command("ip", &["-oneline", "link", "show", "eth0"]);
        while !text(&checked(&mut look).stdout).contains("state UP") {}
    }
    Some((left, right))
}

/// What a talker and a listener said.
struct Said {
    talker: Output,
    listener: Output,
}

/// Runs a listener and, when it is ready, a talker.
fn pair(directory: &Path, listener: (&Path, &[&str]), talker: (&Path, &[&str])) -> Option<Said> {
    let (left, right) = network()?;
    let mut listening = right
        .command(listener.0, listener.1)
        .current_dir(directory)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the listener");
    await_ready(&mut listening);
    let mut command = left.command(talker.0, talker.1);
    let talker = checked(command.current_dir(directory));
    let listener = listening.wait_with_output().expect("the listener's end");
    let said = String::from_utf8_lossy(&listener.stderr);
    assert!(listener.status.success(), "the listener: {}\n{said}", listener.status);
    Some(Said { talker, listener })
}

fn text(octets: &[u8]) -> String {
    String::from_utf8(octets.to_vec()).expect("UTF-8")
}

/// The rows of a CSV log below its header, which must be this one.
fn rows(file: &Path, header: &str) -> Vec<Vec<u64>> {
    let log = BufReader::new(std::fs::File::open(file).expect("the log"));
    let mut lines = log.lines().map(|line| line.expect("a line"));
    assert_eq!(lines.next().as_deref(), Some(header), "{}", file.display());
    let numbers = |line: String| line.split(',').map(|n| n.parse().expect("a number")).collect();
    lines.map(numbers).collect()
}

const MESSAGES: &str = "stream_id,sz,seqnr,avtp_ns,cap_ptp_ns,send_ptp_ns,tx_ns,rx_ns,recv_ptp_ns";
const WAKEUPS: &str = "ptp_target,cpu_target,cpu_actual";

/// A minute: far more than anything here takes, far less than any two clocks' epochs are apart.
const MINUTE_NS: u64 = 60_000_000_000;

/// Both ends' logs join by the truncated capture time, and all their times are of one clock.
fn assert_logs_join(directory: &Path, stem: &str, count: usize) {
    let sent = rows(&directory.join(format!("{stem}_talker.csv")), MESSAGES);
    let read = rows(&directory.join(format!("{stem}_listener.csv")), MESSAGES);
    assert_eq!((sent.len(), read.len()), (count, count));
    for s in &sent {
        let (capture, send) = (s[4], s[5]);
        assert_eq!(capture & 0xffff_ffff, s[3], "avtp_ns is the lower part of cap_ptp_ns");
        assert!(send >= capture && send - capture < MINUTE_NS, "{s:?}");
        let same = |r: &&Vec<u64>| r[..4] == s[..4];
        let r = read.iter().find(same).unwrap_or_else(|| panic!("{s:?} was not read"));
        assert!(r[8] >= capture && r[8] - capture < MINUTE_NS, "{s:?} {r:?}");
        // The kernel's stamp is of CLOCK_REALTIME, brought to the network clock; 0 is "unknown".
        assert!(r[7] == 0 || r[7].abs_diff(capture) < MINUTE_NS, "{s:?} {r:?}");
    }
}

/// Wake-ups: after their target, on the same clock.
fn assert_wakeups(file: &Path, count: usize) {
    let wakeups = rows(file, WAKEUPS);
    assert_eq!(wakeups.len(), count);
    for w in wakeups {
        assert!(w[0] == w[1] && w[2] >= w[1] && w[2] - w[1] < MINUTE_NS, "{w:?}");
    }
}

#[test]
fn every_name_of_the_interface_compiles_and_links_in_c_and_in_cpp() {
    for archive in ["libnetchan.a", "libtimedc_avtp.a"] {
        program("every_name.c", "every_name", archive, &[]);
        program("every_name.c", "every_name_cpp", archive, &["-x", "c++"]);
    }
    program("every_name.c", "every_name_c99", "libnetchan.a", &["-std=gnu99"]);
}

#[test]
fn cpp_programs_may_use_both_interfaces_in_either_order() {
    let capi = Path::new(env!("CARGO_MANIFEST_DIR")).join("include");
    let capi = format!("-I{}", capi.display());
    let orders = [["netchan.hpp", "onbeat.hpp"], ["onbeat.hpp", "netchan.hpp"]];
    for [first, second] in orders {
        for standard in ["-std=c++17", "-std=c++20"] {
            let flags = ["-x", "c++", standard, &capi, "-include", first, "-include", second];
            program("every_name.c", "both_interfaces", "libnetchan.a", &flags);
            program("both.cpp", "both", "libnetchan.a", &flags[2..]);
        }
    }
}

#[test]
fn the_papers_talker_and_listener_run_and_log() {
    let talker = program("first_talker.c", "first_talker", "libtimedc_avtp.a", &[]);
    let listener = program("first_listener.c", "first_listener", "libtimedc_avtp.a", &[]);
    let directory = directory("first");
    let Some(said) = pair(&directory, (&listener, &[]), (&talker, &[])) else { return };
    assert_eq!(text(&said.listener.stdout), "received 200 sum 19900\n");
    assert_logs_join(&directory, "first", 201);
    for log in ["first_talker.csv_d", "first_listener.csv_d"] {
        assert_wakeups(&directory.join(log), 201);
    }
    // No PTP clock: they run all the same, and say so once.
    for output in [&said.talker, &said.listener] {
        assert_eq!(text(&output.stderr).matches("has no PTP clock").count(), 1);
    }
}

#[test]
fn without_a_reservation_service_one_line_says_how_to_start_it_and_the_program_ends() {
    let Some((left, _right)) = network() else { return };
    for name in ["first_talker", "first_listener"] {
        let source = format!("{name}.c");
        let built = program(&source, &format!("{name}_srp"), "libtimedc_avtp.a", &["-DSRP"]);
        let directory = directory(&format!("srp-{name}"));
        let output = checked(left.command(built, &[]).current_dir(directory));
        let said = text(&output.stderr);
        let how = "start it with `onbeat srp serve --interface ";
        assert_eq!(said.matches(how).count(), 1, "{said}");
    }
}

#[test]
fn macros_and_argument_parser_of_the_later_versions_work() {
    let talker = program("talker.c", "talker", "libnetchan.a", &[]);
    let listener = program("listener.c", "listener", "libnetchan.a", &[]);
    let directory = directory("macros");
    let of_talker = ["-i", "eth0", "-v", "--log_ts", "pair_talker.csv", "-L", "-p", "3", "-P", "5"];
    let of_listener = ["--nic=eth0", "-s", "17", "-l", "pair_listener.csv"];
    let ends = ((listener.as_path(), &of_listener[..]), (talker.as_path(), &of_talker[..]));
    let Some(said) = pair(&directory, ends.0, ends.1) else { return };
    assert_eq!(text(&said.listener.stdout), "received 200\n");
    assert_wakeups(&directory.join("pair_talker.csv_d"), 102);
    let sent = rows(&directory.join("pair_talker.csv"), MESSAGES);
    assert_eq!(sent.len(), 202);
    assert!(sent.iter().all(|s| s[0] == 42 && s[1] == 16));
    let usage = Command::new(&talker).arg("--usage").output().expect("it runs");
    for option in ["--nic", "--srp", "--break", "--txprio_tas"] {
        assert!(text(&usage.stdout).contains(option), "{option}");
    }
}

#[test]
fn a_handler_serves_callbacks_timers_and_launch_times() {
    let talker = program("handler_talker.c", "handler_talker", "libnetchan.a", &[]);
    let listener = program("handler_listener.c", "handler_listener", "libnetchan.a", &[]);
    let directory = directory("handler");
    let ends = ((listener.as_path(), &["eth0"][..]), (talker.as_path(), &["eth0"][..]));
    let Some(said) = pair(&directory, ends.0, ends.1) else { return };
    assert_eq!(text(&said.listener.stdout), "called 50 sum 1275 read 1275\n");
    assert_logs_join(&directory, "handler", 101);
}

#[test]
fn the_cpp_classes_echo_and_stop() {
    for standard in ["-std=c++17", "-std=c++20"] {
        let talker = program("talker.cpp", "talker_cpp", "libnetchan.a", &[standard]);
        let listener = program("listener.cpp", "listener_cpp", "libnetchan.a", &[standard]);
        let directory = directory("cpp");
        let ends = ((listener.as_path(), &["eth0"][..]), (talker.as_path(), &["eth0"][..]));
        let Some(said) = pair(&directory, ends.0, ends.1) else { return };
        assert_eq!(text(&said.talker.stdout), "echoed\n");
        assert_eq!(rows(&directory.join("talker_cpp.csv"), MESSAGES).len(), 41);
    }
}

#[test]
fn first_generation_descriptors_carry_whole_messages() {
    let talker = program("pipe_talker.c", "pipe_talker", "libtimedc_avtp.a", &[]);
    let listener = program("pipe_listener.c", "pipe_listener", "libtimedc_avtp.a", &[]);
    let nic = &["-i", "eth0"][..];
    let Some(said) = pair(&directory("pipe"), (&listener, nic), (&talker, nic)) else { return };
    assert_eq!(text(&said.listener.stdout), "sum 1275\n");
}

#[test]
fn under_load_no_payload_is_torn_and_an_unread_channel_stops_no_other() {
    let talker = program("load_talker.c", "load_talker", "libnetchan.a", &[]);
    let listener = program("load_listener.c", "load_listener", "libnetchan.a", &[]);
    let nic = &["-i", "eth0"][..];
    let Some(said) = pair(&directory("load"), (&listener, nic), (&talker, nic)) else { return };
    let said = text(&said.listener.stdout);
    let words: Vec<_> = said.split_whitespace().collect();
    let ["received", received, "torn", torn] = words[..] else { panic!("{said}") };
    assert_eq!(torn, "0");
    // How many the machine lost is its affair; more came than the unread socket could hold.
    assert!(received.parse::<u32>().expect("a number") > 500, "{said}");
}

#[test]
fn truncated_foreign_mistyped_and_repeated_frames_are_never_read() {
    let hostile = program("hostile.c", "hostile", "libnetchan.a", &["-D_GNU_SOURCE"]);
    let listener = program("listener.c", "hostile_listener", "libnetchan.a", &[]);
    let ends = ((listener.as_path(), &["-i", "eth0"][..]), (hostile.as_path(), &["eth0"][..]));
    let Some(said) = pair(&directory("hostile"), ends.0, ends.1) else { return };
    assert_eq!(text(&said.listener.stdout), "received 100\n");
}

/// Runs one test of `local.c` in a namespace; what it said.
fn local(name: &str) -> Option<(PathBuf, Output)> {
    let (left, _right) = network()?;
    let built = program("local.c", &format!("local_{name}"), "libnetchan.a", &[]);
    let directory = directory(&format!("local-{name}"));
    let output = checked(left.command(built, &[name]).current_dir(&directory));
    assert!(text(&output.stdout).ends_with("done\n"));
    Some((directory, output))
}

#[test]
fn an_interface_that_is_not_there_is_named_and_nothing_crashes() {
    let Some((_, output)) = local("interfaces") else { return };
    let said = text(&output.stderr);
    assert!(said.contains("there is no network interface \"nosuch0\""), "{said}");
    assert!(said.contains("/nosuchdirectory/log.csv"), "{said}");
}

#[test]
fn each_channel_that_cannot_be_reserved_says_so() {
    let Some((_, output)) = local("reservation") else { return };
    let said = text(&output.stderr);
    assert_eq!(said.matches("has no reservation service").count(), 2, "{said}");
}

#[test]
fn each_wrong_row_of_a_manifest_is_named() {
    let Some((_, output)) = local("manifests") else { return };
    let said = text(&output.stderr);
    for expected in [
        "nc_channels[1] \"mcast17\" (stream 0): the stream id is 0",
        "nc_channels[2] \"mcast18\" (stream 18): the destination address is zero",
        "nc_channels[3] \"mcast42\" (stream 42): row 0 has the same stream id",
        "nc_channels[3] \"mcast42\" (stream 42): row 0 has the same name",
        "nc_channels[4] \"load\" (stream 50): the class 7 is none of",
        "(stream 51): the size 1477 is not between 1 and 1476 octets",
        "(stream 51): the interval (or frequency) is 0",
        "(stream 51): the name has more than 31 characters",
        "stream 42 is open already for sending",
        "stream 42 is open already, with other attributes",
        "nc_channels has no channel \"missing\"",
    ] {
        assert!(said.contains(expected), "{expected}\nnot in\n{said}");
    }
}

#[test]
fn channels_that_together_exceed_the_links_share_are_refused() {
    let Some((_, output)) = local("admission") else { return };
    let said = text(&output.stderr);
    assert!(said.contains("are more than 75 % of the"), "{said}");
}

#[test]
fn stopping_a_channel_or_a_handler_ends_a_wait() {
    local("stopping");
}

#[test]
fn messages_can_be_given_by_hand() {
    local("feeding");
}

#[test]
fn both_ends_may_be_in_one_program_on_the_loopback() {
    local("loopback");
}

#[test]
fn first_generation_data_units_become_ends_when_they_are_added() {
    local("data_units");
}

#[test]
fn memory_is_locked_and_idle_states_are_held_off_while_a_channel_is_open_unless_kept() {
    let Some((_, output)) = local("idle_states") else { return };
    if text(&output.stdout).starts_with("not there") {
        not_run(Need::Machine, "there is no /dev/cpu_dma_latency that may be written");
    }
}

#[test]
fn timespecs_and_timers_are_right() {
    local("time_helpers");
}

#[test]
fn a_log_of_more_than_a_million_lines_is_complete() {
    let Some((directory, output)) = local("log_lines") else { return };
    let mut lines = 0;
    let mut wakeups = 0;
    for entry in directory.read_dir().expect("the directory").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with("lines.csv_d") {
            wakeups += rows(&entry.path(), WAKEUPS).len();
        } else {
            lines += rows(&entry.path(), MESSAGES).len();
        }
    }
    assert_eq!((lines, wakeups), (1_200_000, 1), "{}", text(&output.stderr));
}

/// Runs one test of `threads.c` on a loopback, as it is and with each sanitizer; what it said on
/// standard error must hold.
fn threads(name: &str, holds: impl Fn(&str)) {
    let Some((left, _right)) = network() else { return };
    for sanitizer in sanitizers().iter().copied().map(Some).chain([None]) {
        let (library, flag) = match sanitizer {
            Some(name) => (checking(name), format!("-fsanitize={name}")),
            None => (archives().to_owned(), "-g".into()),
        };
        let library = library.join("libnetchan.a");
        let one = format!("{name}-{}", sanitizer.unwrap_or("plain"));
        let built = built("threads.c", &one, &library, &[&flag, "-D_GNU_SOURCE"]);
        let mut command = left.command(built, &[name]);
        let suppressions = root().join("compat/tests/tsan.supp").display().to_string();
        // Some of these tests leave memory that a thread may still use, or the thread.
        command
            .env("ASAN_OPTIONS", "detect_leaks=0")
            .env("TSAN_OPTIONS", format!("report_thread_leaks=0 suppressions={suppressions}"))
            .current_dir(directory(&format!("threads-{one}")));
        let output = checked(&mut command);
        assert!(text(&output.stdout).ends_with("done\n"));
        holds(&text(&output.stderr));
    }
}

#[test]
fn a_pipe_that_nobody_reads_does_not_hold_up_the_end() {
    threads("unread_pipe", |_| ());
}

#[test]
fn what_is_queued_in_a_descriptor_is_sent_for_a_second_only() {
    threads("slow_descriptor", |said| {
        assert_eq!(said.matches("the rest is lost").count(), 1, "{said}")
    });
}

#[test]
fn a_descriptor_and_a_channel_of_one_stream_end_together() {
    threads("shared_descriptor", |_| ());
}

#[test]
fn a_callback_may_destroy_its_own_channel() {
    threads("own_channel", |said| assert!(said.contains("freed with the handler"), "{said}"));
}

#[test]
fn a_callback_may_destroy_its_own_handler() {
    threads("own_handler", |said| {
        assert_eq!(said.matches("a callback destroys its own handler").count(), 1, "{said}")
    });
}

#[test]
fn each_message_of_two_senders_in_one_channel_is_sent_once() {
    threads("two_senders", |_| ());
}

#[test]
fn two_readers_share_a_channel_are_both_stopped_and_keep_callbacks_out() {
    threads("two_readers", |_| ());
}

#[test]
fn what_a_thread_is_still_in_is_not_freed() {
    threads("thread_inside", |said| {
        assert_eq!(said.matches("neither it nor its handler is freed").count(), 2, "{said}")
    });
}

#[test]
fn ends_are_removed_and_added_while_others_use_them() {
    threads("removing", |_| ());
}

#[test]
fn callbacks_are_registered_while_ends_come_and_go() {
    threads("registering", |_| ());
}

/// A text without its layout.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What a manual page says, without its markup.
fn said_by(page: &Path) -> String {
    let page = std::fs::read_to_string(page).expect("a manual page");
    let shown = page.lines().filter(|line| !line.starts_with('.') || line.starts_with(".SS"));
    let shown: Vec<_> = shown.map(|line| line.replace("\\&", "").replace("\\-", "-")).collect();
    words(&shown.join(" ").replace("\\(aq", "'").replace("\\e", "\\"))
}

/// Each program sends to both and reads from both: a channel without a name from itself, too.
#[test]
fn programs_that_send_to_all_and_themselves_read_every_message_once() {
    let mesh = program("mesh.c", "mesh", "libnetchan.a", &["-std=gnu11"]);
    let directory = directory("mesh");
    let Some((left, right)) = network() else { return };
    let start = |side: &Namespace, index: &str| {
        let log = format!("mesh-{index}.csv");
        let arguments = ["-n", "eth0", "-s", "2", "-I", index, "-i", "50", "-L", &log];
        let mut command = side.command(&mesh, &arguments);
        command.current_dir(&directory).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("a program")
    };
    for running in [start(&left, "0"), start(&right, "1")] {
        let output = running.wait_with_output().expect("its end");
        let said = text(&output.stdout) + &text(&output.stderr);
        assert!(output.status.success(), "{said}");
        let expected = "from 0: 50 messages\nfrom 1: 50 messages\nerrors 0\n";
        assert!(text(&output.stdout).ends_with(expected), "{said}");
    }
    // Of the own channel the log has both ends, and the kernel's stamps.
    let log = rows(&directory.join("mesh-0.csv"), MESSAGES);
    let of =
        |stream, sent: bool| log.iter().filter(move |row| row[0] == stream && (row[5] > 0) == sent);
    assert!(of(42, true).count() >= 51 && of(42, false).count() >= 51);
    let mut pairs = of(42, false).filter_map(|read| {
        of(42, true).find(|sent| sent[3] == read[3]).map(|sent| (read[7], sent[4]))
    });
    assert!(pairs.all(|(arrived, capture)| arrived >= capture), "{log:?}");
}

#[test]
fn a_reader_that_was_created_before_its_own_talker_is_named() {
    let built = program("order.c", "order", "libnetchan.a", &[]);
    let Some((left, _right)) = network() else { return };
    for (order, lines) in [("tx-rx", 0), ("rx-tx", 1)] {
        let output = checked(&mut left.command(&built, &[order]));
        let said = text(&output.stderr);
        let named = said.matches("stream 43: its reader in this program was created before");
        assert_eq!(named.count(), lines, "{said}");
    }
}

/// The declarations of a header's functions, and what its comments between declarations say.
fn sayings(header: &str) -> Vec<String> {
    let mut sayings = Vec::new();
    let mut lines = header.lines().skip_while(|line| !line.starts_with("#pragma"));
    while let Some(first) = lines.next() {
        let comment = first.starts_with("/*") && !first.starts_with("/* ---");
        let function = first.contains('(')
            && first.starts_with(|c: char| c.is_ascii_lowercase())
            && !first.starts_with("static");
        let end = if comment { "*/" } else { ";" };
        if !comment && !function {
            continue;
        }
        let mut text = first.to_owned();
        while !text.ends_with(end) {
            text += "\n";
            let line = lines.next().expect("it ends");
            text += line.strip_prefix(" * ").unwrap_or(line);
        }
        let text = text.trim_start_matches("/*").trim_end_matches("*/").replace('`', "");
        sayings.push(words(&text));
    }
    sayings
}

#[test]
fn the_manual_pages_say_what_the_headers_say() {
    let compat = root().join("compat");
    let mut found = 0;
    for (page, headers) in [
        ("netchan.h.3", &["netchan.h", "netchan_standalone.h", "netchan_utils.h"][..]),
        ("netchan.h.3", &["ptp_getclock.h", "logger.h"]),
        ("timedc_avtp.h.3", &["timedc_avtp.h"]),
    ] {
        let page = said_by(&compat.join("man").join(page));
        for header in headers {
            let text = std::fs::read_to_string(compat.join("include").join(header));
            for saying in sayings(&text.expect("a header")) {
                assert!(page.contains(&saying), "{header}: not in its page: {saying}");
                found += 1;
            }
        }
    }
    assert!(found > 100, "only {found} declarations and comments were found");
}

#[test]
fn the_manual_pages_render_without_a_warning() {
    if Command::new("groff").arg("--version").output().is_err() {
        let said = b"compat: groff is not there: the manual pages are not rendered\n";
        std::io::stderr().write_all(said).expect("standard error");
        return;
    }
    for page in ["netchan.h.3", "netchan.hpp.3", "timedc_avtp.h.3"] {
        let mut groff = Command::new("groff");
        groff.args(["-man", "-Tascii", "-ww", "-rLL=200n", "-P-cbou"]);
        let output = checked(groff.arg(root().join("compat/man").join(page)));
        assert_eq!(text(&output.stderr), "", "{page}");
    }
}
