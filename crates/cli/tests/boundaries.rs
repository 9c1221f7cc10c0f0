//! What stands between the command and what others wrote or what fails: reads have limits and want
//! regular files, and an output can be on the disk before it has its name.

use crate::common::{TestSystem, onbeat, root, run, two_hosts};
use std::ffi::OsStr;
use std::fs::{create_dir_all, read_to_string, remove_file, write};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

/// Puts something in the place of a file that gives nothing, or has no end.
fn spoil(file: &Path, what: &str) {
    let _ = remove_file(file);
    create_dir_all(file.parent().expect("a directory")).expect("a directory");
    match what {
        "a pipe" => {
            let made = Command::new("mkfifo").arg(file).status().expect("mkfifo runs");
            assert!(made.success());
        }
        "a device" => symlink("/dev/zero", file).expect("a link"),
        _ => {
            let made = std::fs::File::create(file).expect("a file");
            made.set_len(6_000_000_000).expect("a size");
        }
    }
}

/// The command with a GiB of memory: what would read a file of six is killed.
fn limited(arguments: &[&str], directory: &Path) -> (Option<i32>, String) {
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -v 1048576; exec \"$@\"", "sh"]);
    command.arg(env!("CARGO_BIN_EXE_onbeat")).args(arguments).current_dir(directory);
    let output = command.env("ONBEAT_HOME", root()).output().expect("onbeat runs");
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn what_gives_nothing_or_has_no_end_is_read_by_no_verb() {
    let system = TestSystem::new(&two_hosts(""));
    let place = system.path();
    run(&["run", ".", "--duration", "10ms"], place, 0);
    run(&["simulate", ".", "--duration", "10ms", "--repetitions", "3"], place, 0);
    let clock = ["measure", "clock", "--samples", "50", "--out", "clock"];
    run(&clock, place, 0);
    let series = place.join("clock/samples").read_dir().expect("samples").flatten().next();
    let series = format!("clock/samples/{}", series.expect("one").file_name().display());
    std::fs::copy(place.join("out/results.json"), place.join("kept")).expect("copied");
    let all: [(&str, &[&str]); 12] = [
        ("network.json", &["bounds", "network.json"]),
        ("tasks.toml", &["tfg", "tasks.toml"]),
        ("facts.json", &["doctor", "--facts", "facts.json"]),
        (&series, &["compare", "clock", "clock"]),
        ("clock/measurement.json", &["compare", "clock", "clock"]),
        ("out-simulation/repetitions.csv", &["compare", "out-simulation", "out-simulation"]),
        ("out-simulation/simulation.json", &["compare", "out-simulation", "out-simulation"]),
        ("out/1-run/messages.csv", &["compare", "out", "out"]),
        ("out/1-run/records.onb", &["report", "."]),
        ("out.recording", &["report", ".", "--recovered"]),
        ("out/results.json", &["compare", "out", "out"]),
        ("system.toml", &["manifest", "."]),
    ];
    for (file, arguments) in all {
        for what in ["a pipe", "a device", "six gigabytes of nothing"] {
            spoil(&place.join(file), what);
            let (code, said) = limited(arguments, place);
            assert!(matches!(code, Some(1 | 2 | 5)), "{file}, {what}: {code:?} {said}");
        }
    }
}

#[test]
fn a_machine_that_is_a_directory_is_read_as_files() {
    let machine = tempfile::tempdir().expect("a directory");
    let bomb = machine.path().join("proc/config.gz");
    create_dir_all(machine.path().join("proc")).expect("a directory");
    // Two gigabytes of nothing, in nine megabytes: members that follow one another are one file.
    let packed =
        "head -c 67108864 /dev/zero | gzip -1 > part; for i in $(seq 32); do cat part; done";
    let packed = format!("cd {}; {packed} > {}", machine.path().display(), bomb.display());
    assert!(Command::new("sh").args(["-c", &packed]).status().expect("sh").success());
    let root = machine.path().display().to_string();
    for what in ["a pipe", "a device", "six gigabytes of nothing"] {
        for file in ["cmdline", "sys/kernel/sched_rt_runtime_us", "interrupts", "meminfo"] {
            spoil(&machine.path().join("proc").join(file), what);
        }
        spoil(&machine.path().join("dev/cpu_dma_latency"), what);
        spoil(&machine.path().join("sys/devices/system/cpu/online"), what);
        let (code, said) = limited(&["doctor", "--root", &root], Path::new("/"));
        assert!(matches!(code, Some(0..=2)), "{what}: {code:?} {said}");
    }
}

/// Tells of each `fsync` which file it is of, and whether `out` was there by then.
const SHIM: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int fsync(int fd)
{
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    path[length < 0 ? 0 : length] = 0;
    FILE *told = fopen(getenv("TOLD"), "a");
    fprintf(told, "%d %s\n", access(getenv("TARGET"), F_OK) == 0, path);
    fclose(told);
    return ((int (*)(int))dlsym(RTLD_NEXT, "fsync"))(fd);
}
"#;

/// What a command syncs: whether its target was there by then, and the names of the files, in which
/// `out` stands for what the target is called meanwhile.
fn synced(arguments: &[&str], place: &Path, target: &str) -> Vec<(bool, String)> {
    write(place.join("shim.c"), SHIM).expect("written");
    let shim = place.join("shim.so");
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-o"]).arg(&shim).arg(place.join("shim.c")).arg("-ldl");
    assert!(cc.status().expect("cc runs").success());
    let told = place.join("told");
    let _ = remove_file(&told);
    let mut command = onbeat();
    command.args(arguments).current_dir(place).env("LD_PRELOAD", &shim).env("TOLD", &told);
    let output = command.env("TARGET", place.join(target)).output().expect("onbeat runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let place = place.canonicalize().expect("a path");
    let short = |path: &str| {
        let path = Path::new(path).strip_prefix(&place).expect("below");
        let words = path.iter().map(|word| match word.to_string_lossy().contains(".partial-") {
            true => OsStr::new("out"),
            false => word,
        });
        words.collect::<std::path::PathBuf>().display().to_string()
    };
    let lines = read_to_string(&told).unwrap_or_default();
    let line = |line: &str| (line.starts_with('1'), short(&line[2..]));
    lines.lines().map(line).collect()
}

#[test]
fn an_output_is_on_the_disk_before_it_has_its_name_and_then_the_name() {
    let system = TestSystem::new(&two_hosts(""));
    let place = system.path();
    let first = |name: &str| (false, name.to_owned());
    let run = ["run", ".", "--duration", "10ms"];
    assert_eq!(synced(&run, place, "out"), []);
    std::fs::remove_dir_all(place.join("out")).expect("removed");
    let expected = [
        "out/1-run/records.onb",
        "out/1-run/messages.csv",
        "out/results.json",
        "out/report.html",
        "out/1-run",
        "out",
    ];
    let mut expected: Vec<_> = expected.map(first).to_vec();
    expected.push((true, String::new())); // the directory that it is in
    assert_eq!(synced(&[&run[..], &["--sync"]].concat(), place, "out"), expected);
    // What was there before is there until the new name is on the disk.
    let again = synced(&["report", ".", "--sync"], place, "out");
    let again: Vec<_> = again.into_iter().map(|(_, name)| name).collect();
    let mut names: Vec<_> = expected.into_iter().map(|(_, name)| name).collect();
    names.push(String::new()); // and once the old one is gone
    assert_eq!(again, names);
    let simulate = ["simulate", ".", "--duration", "10ms", "--sync", "--capture", "x.pcapng"];
    let names = synced(&simulate, place, "x.pcapng");
    // The capture, the directory, and each time the names beside them.
    let expected = [
        (false, "out/simulation.json"),
        (false, "out/simulation.html"),
        (false, "out"),
        (true, ""),
        (true, "out"),
        (true, ""),
    ];
    assert_eq!(names, expected.map(|(there, name)| (there, name.to_owned())));
}

/// Hosts at bridges in a line, and channels of each to so many others.
fn crowd(hosts: usize, bridges: usize, channels: usize, listeners: usize) -> String {
    use std::fmt::Write;
    let mut text = "format = 1\nname = \"crowd\"\n[run]\nduration_s = 1\n".to_owned();
    let limits = "queue_octets = 100_000_000\nqueue_frames = 100_000\n";
    let link = |text: &mut String, a: &str, b: &str| {
        let _ = write!(text, "[[link]]\nends = [\"{a}\", \"{b}\"]\nrate_mbps = 10_000\n");
    };
    for n in 0..bridges {
        let _ = write!(text, "[[bridge]]\nname = \"s{n}\"\n{limits}");
        if n > 0 {
            link(&mut text, &format!("s{}", n - 1), &format!("s{n}"));
        }
    }
    for n in 0..hosts {
        let _ = write!(text, "[[host]]\nname = \"h{n}\"\n{limits}");
        link(&mut text, &format!("h{n}"), &format!("s{}", n % bridges));
    }
    for n in 0..channels {
        let to = (1..=listeners).map(|by| format!("\"h{}\"", (n + by) % hosts));
        let to = to.collect::<Vec<_>>().join(", ");
        let _ = write!(
            text,
            "[[channel]]\nname = \"c{n}\"\ndestination = \"91:e0:f0:00:{:02x}:{:02x}\"\n\
             stream_id = {}\nclass = \"B\"\nsize_octets = 8\nrate_hz = 50\ntalker = \"h{}\"\n\
             listeners = [{to}]\n",
            n / 256,
            n % 256,
            n + 1,
            n % hosts
        );
    }
    text
}

#[test]
fn many_listeners_are_checked_within_a_budget_of_work() {
    // It took the square of the listeners: every port was looked for among all others.
    let system = TestSystem::new(&crowd(100, 4, 2_000, 99));
    let mut command = Command::new("prlimit");
    command.args(["--cpu=12", env!("CARGO_BIN_EXE_onbeat"), "check", ".", "--json"]);
    let output = command.current_dir(system.path()).output().expect("prlimit runs");
    assert_eq!(output.status.code(), Some(0), "{:?}", output.status);
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    // What is not looked at is said.
    let mut codes = found["diagnostics"].as_array().expect("a list").iter().map(|d| &d["code"]);
    assert!(codes.any(|code| code == "OB2015"), "{found}");
}
