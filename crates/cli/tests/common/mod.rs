//! What the end-to-end tests share: systems in directories of their own, programs in C, and the
//! real command.
#![allow(unreachable_pub)]

pub mod machine;
pub mod ptp4l;

use onbeat_model::system::System;
use onbeat_run::netns::{KernelNetwork, NetnsError};
use onbeat_testkit::{Need, not_run};
use serde_json::Value;
use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{LazyLock, Mutex};
use tempfile::TempDir;

pub use onbeat_testkit::{home, root};

/// The command under test, with the libraries that were built with it.
pub fn onbeat() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_onbeat"));
    command.env("ONBEAT_HOME", home());
    command
}

/// The smallest system that a program can run in; the program is to be added.
pub const ONE_HOST: &str = r#"
format = 1
name = "one-host"
[run]
duration_s = 1
[[host]]
name = "host"
[[bridge]]
name = "bridge"
[[link]]
ends = ["host", "bridge"]
rate_mbps = 1000
"#;

/// How to run in each engine. Virtual time comes first: it is what the others are compared with.
pub const ENGINES: &[&[&str]] = &[
    &["run", "."],
    &["run", ".", "--time", "real"],
    &["run", ".", "--network", "netns"],
    &["run", ".", "--network", "netns", "--transport", "udp4"],
    &["run", ".", "--network", "netns", "--transport", "xdp"],
];

/// Executable files, by their sources and how they were compiled.
type BuiltPrograms = HashMap<(PathBuf, String), Vec<u8>>;

/// Makes an executable file of these contents. Another process writes it: what this one has open
/// to write, a child of another test may hold for a moment, and then it cannot be executed
/// ("text file busy").
pub fn executable(path: &Path, contents: impl AsRef<[u8]>) {
    let mut install = Command::new("install")
        .args(["-D", "-m", "755", "/dev/stdin"])
        .arg(path)
        .stdin(Stdio::piped())
        .spawn()
        .expect("install runs");
    let mut to = install.stdin.take().expect("a pipe");
    to.write_all(contents.as_ref()).expect("written");
    drop(to);
    assert!(install.wait().expect("install ends").success(), "{}", path.display());
}

/// Runs the command; `expected` is its exit code.
pub fn run(arguments: &[&str], directory: &Path, expected: i32) -> Output {
    let output = onbeat().args(arguments).current_dir(directory).output().expect("onbeat runs");
    assert_eq!(
        output.status.code(),
        Some(expected),
        "onbeat {arguments:?}\n{}\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

/// What `onbeat tfg` prints of a system that need not be proven to be composable.
pub fn tfg(arguments: &[&str], directory: &Path) -> Vec<u8> {
    let mut command = onbeat();
    command.arg("tfg").args(arguments).current_dir(directory).env("NO_COLOR", "1");
    let output = command.output().expect("onbeat runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 6)), "tfg {arguments:?}\n{said}");
    output.stdout
}

/// Runs the command with `--json` and gives its results.
pub fn results(arguments: &[&str], directory: &Path, expected: i32) -> Value {
    let output = run(&[arguments, &["--json"]].concat(), directory, expected);
    serde_json::from_slice(&output.stdout).expect("JSON on standard output, and nothing else")
}

/// The channel of that name in the first run of some results.
pub fn channel<'a>(results: &'a Value, name: &str) -> &'a Value {
    let channels = results["runs"][0]["channels"].as_array().expect("channels");
    channels.iter().find(|c| c["name"] == name).expect("the channel")
}

/// The whole number at a path of keys.
pub fn number(value: &Value, path: &str) -> i64 {
    let found = path.split('.').fold(value, |value, key| &value[key]);
    found.as_i64().unwrap_or_else(|| panic!("{path} is a whole number in {value}"))
}

/// A system in a directory of its own.
pub struct TestSystem {
    directory: TempDir,
}

impl TestSystem {
    /// A system with this description and no programs yet.
    pub fn new(description: &str) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        std::fs::write(directory.path().join("system.toml"), description).expect("written");
        Self { directory }
    }

    /// A copy of an example, with its programs.
    pub fn example(name: &str) -> Self {
        let from = root().join("examples").join(name);
        let text = std::fs::read_to_string(from.join("system.toml")).expect("system.toml");
        let system = Self::new(&text);
        for entry in from.read_dir().expect("the example").flatten() {
            if entry.path().extension().is_some_and(|e| e == "h") {
                std::fs::copy(entry.path(), system.path().join(entry.file_name())).expect("copied");
            }
        }
        for entry in from.join("programs").read_dir().expect("programs").flatten() {
            if entry.path().extension().is_some_and(|e| e == "c") {
                let stem = entry.path().file_stem().expect("a name").to_owned();
                system.compile(&entry.path(), stem.to_str().expect("UTF-8"), &[]);
            }
        }
        system
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Builds one of `tests/programs` as `build/NAME`.
    pub fn program(&self, source: &str, name: &str) -> &Self {
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(source);
        self.compile(&from, name, &[]);
        self
    }

    /// Builds a C file as `build/NAME`, against the library. What is in this project is built once.
    pub fn compile(&self, source: &Path, name: &str, more: &[&str]) {
        static BUILT: LazyLock<Mutex<BuiltPrograms>> = LazyLock::new(Mutex::default);
        let directory = self.path().join("build");
        std::fs::create_dir_all(&directory).expect("build");
        let target = directory.join(name);
        if !source.starts_with(root()) {
            return Self::build(source, &target, more);
        }
        let key = (source.to_owned(), more.join(" "));
        let before = BUILT.lock().expect("no panic").get(&key).cloned();
        if let Some(built) = before {
            return executable(&target, built);
        }
        Self::build(source, &target, more);
        let built = std::fs::read(&target).expect("what was built");
        BUILT.lock().expect("no panic").insert(key, built);
    }

    fn build(source: &Path, target: &Path, more: &[&str]) {
        let output = Command::new("cc")
            .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-g", "-O1", "-I"])
            .arg(root().join("crates/capi/include"))
            .arg(source)
            .args(more)
            .arg(library())
            .args(["-lpthread", "-ldl", "-lm", "-o"])
            .arg(target)
            .output()
            .expect("a C compiler");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

/// The control groups of a run, by its process.
pub fn cgroups_of(run: u32) -> Vec<PathBuf> {
    let name = format!("onbeat-{run}-");
    let (mut found, mut todo) = (Vec::new(), vec![PathBuf::from("/sys/fs/cgroup")]);
    while let Some(directory) = todo.pop() {
        for entry in directory.read_dir().into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                let is_it = entry.file_name().to_string_lossy().starts_with(&name);
                found.extend(is_it.then(|| entry.path()));
                todo.push(entry.path());
            }
        }
    }
    found
}

/// The library that programs are linked with.
pub fn library() -> PathBuf {
    home().join("target/release/libonbeat.a")
}

/// A description of two hosts with a bridge between them and the channel `c`, 8 octets at 1 kHz,
/// for tests that add to it.
pub fn two_hosts(extra: &str) -> String {
    format!(
        r#"
format = 1
name = "test"
[run]
duration_ms = 500
hang_timeout_s = 2
[[host]]
name = "a"
[[host]]
name = "b"
[[bridge]]
name = "s"
forwarding_ns = 1000
[[link]]
ends = ["a", "s"]
rate_mbps = 100
propagation_ns = 100
[[link]]
ends = ["s", "b"]
rate_mbps = 100
propagation_ns = 100
[[channel]]
name = "c"
destination = "01:00:5e:00:00:01"
stream_id = 1
class = "A"
size_octets = 8
rate_hz = 1000
talker = "a"
listeners = ["b"]
{extra}
"#
    )
}

/// Two programs for [`two_hosts`], with an argument each.
pub fn programs(left: &str, right: &str) -> String {
    format!(
        r#"
[[program]]
name = "left"
host = "a"
command = ["build/left", "{left}"]
[[program]]
name = "right"
host = "b"
command = ["build/right", "{right}"]
"#
    )
}

/// Programs of a system that can be started once, which is in the first of two scenarios.
pub fn start_once(system: &TestSystem) {
    use std::os::unix::fs::PermissionsExt;
    let path = system.path().join("system.toml");
    let mut text = std::fs::read_to_string(&path).expect("system.toml");
    for name in ["left", "right"] {
        let (old, new) = (format!("\"build/{name}\""), format!("\"./{name}\", \"build/{name}\""));
        text = text.replace(&old, &new);
        let script = system.path().join(name);
        std::fs::write(&script, format!("#!/bin/sh\nrm {name} && exec \"$@\"\n")).expect("written");
        std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).expect("set");
    }
    text += "[[scenario]]\nname = \"first\"\n[[scenario]]\nname = \"second\"\n";
    std::fs::write(path, text).expect("written");
}

/// [`two_hosts`] with the programs `talker.c` and `listener.c`, with an argument each.
pub fn talker_and_listener(left: &str, right: &str) -> TestSystem {
    let system = TestSystem::new(&two_hosts(&programs(left, right)));
    system.program("talker.c", "left").program("listener.c", "right");
    system
}

/// The description of a test's system, loaded.
pub fn load(system: &TestSystem) -> System {
    let text = std::fs::read_to_string(system.path().join("system.toml")).expect("system.toml");
    onbeat_description::load("system.toml", &text, &mut |name| Err(name.to_owned()))
        .system
        .expect("right")
}

/// Whether this machine lets the test make namespaces. Where it does not, the command says what to
/// do.
pub fn permitted() -> bool {
    let system = TestSystem::new(&two_hosts(""));
    let Err(error) = KernelNetwork::build(&load(&system)) else { return true };
    assert!(matches!(error, NetnsError::NotPermitted { .. }), "{error}");
    not_run(Need::Namespaces, &error);
    let output = run(&["run", ".", "--network", "netns"], system.path(), 5);
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(said.contains("unshare -Ur onbeat"), "{said}");
    false
}
