//! A fake machine below a root, for `onbeat tune`.

use super::{onbeat, root};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use tempfile::TempDir;

/// Many settings.
pub const CPUSET: [&str; 7] =
    ["--profile", "cpuset", "--cores", "2-3", "--interface", "eth0", "--write-boot"];
/// Where its journal is.
pub const JOURNAL: &str = "var/lib/onbeat/tune.journal";
/// What tells its boots apart.
pub const BOOT_ID: &str = "proc/sys/kernel/random/boot_id";
/// The boot line of ours.
pub const LINE: &str = "etc/default/grub.d/onbeat.cfg";

/// A fake machine below a root.
pub struct Machine(pub TempDir);

impl Machine {
    /// With the files that the tests of the host's crate have.
    pub fn new() -> Self {
        Self::below(tempfile::tempdir().expect("a directory"))
    }

    /// The same in a directory.
    pub fn below(directory: TempDir) -> Self {
        let made = Self(directory);
        let files = root().join("crates/machine/src/tune/machine.txt");
        let files = std::fs::read_to_string(files).expect("the files");
        for file in files.split("== ").skip(1) {
            let (path, text) = file.split_once('\n').expect("a path");
            made.write(path, text);
        }
        made
    }

    /// Writes a file.
    pub fn write(&self, path: &str, text: &str) {
        let path = self.0.path().join(path.trim_start_matches('/'));
        std::fs::create_dir_all(path.parent().expect("above")).expect("made");
        std::fs::write(path, text).expect("written");
    }

    /// A file's text; nothing if there is none.
    pub fn read(&self, path: &str) -> String {
        let text = std::fs::read_to_string(self.0.path().join(path)).unwrap_or_default();
        text.trim().to_owned()
    }

    /// All files but those of the journal.
    pub fn all(&self) -> BTreeMap<String, String> {
        fn walk(root: &Path, at: &Path, all: &mut BTreeMap<String, String>) {
            for entry in std::fs::read_dir(at).expect("a directory").flatten() {
                let path = entry.path();
                if path.is_dir() {
                    walk(root, &path, all);
                } else if path.is_file() && !path.starts_with(root.join("var/lib/onbeat")) {
                    let name = path.strip_prefix(root).expect("below").display().to_string();
                    all.insert(name, std::fs::read_to_string(&path).expect("text"));
                }
            }
        }
        let mut all = BTreeMap::new();
        walk(self.0.path(), self.0.path(), &mut all);
        all
    }

    /// `onbeat tune` on it.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = onbeat();
        command.arg("tune").arg("--root").arg(self.0.path()).args(arguments);
        command.env_remove("SSH_CONNECTION").current_dir(root());
        command
    }

    /// Runs that; `expected` is its exit code.
    pub fn tune(&self, arguments: &[&str], expected: i32) -> Output {
        let output = self.command(arguments).output().expect("onbeat runs");
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(expected), "{arguments:?}\n{text}");
        output
    }

    /// Runs it with `--json`.
    pub fn json(&self, arguments: &[&str], expected: i32) -> Value {
        let output = self.tune(&[arguments, &["--json"]].concat(), expected);
        serde_json::from_slice(&output.stdout).expect("JSON, and nothing else")
    }

    /// The process that undoes what is not confirmed.
    pub fn guard(&self) -> i32 {
        let notice: Value =
            serde_json::from_str(&self.read("var/lib/onbeat/tune.guard")).expect("a notice");
        let pid = notice["ready"]["identity"]["pid"].as_i64().expect("a number");
        i32::try_from(pid).expect("a process")
    }

    /// What a boot does: what was set is gone but for files on disk, and the kernel has the
    /// parameters of a boot loader's settings, if there are any.
    pub fn boot(&self, before: &BTreeMap<String, String>, settings: &str, id: &str) {
        let on_disk = |path: &&String| !path.starts_with("etc/") && !path.starts_with("boot/");
        let now = self.all();
        for path in now.keys().filter(on_disk).filter(|path| !before.contains_key(*path)) {
            std::fs::remove_file(self.0.path().join(path)).expect("removed");
        }
        for (path, text) in before.iter().filter(|(path, _)| on_disk(path)) {
            if now.get(path) != Some(text) {
                self.write(path, text);
            }
        }
        let mut lines = settings.lines();
        let line = lines.find_map(|line| line.strip_prefix("GRUB_CMDLINE_LINUX_DEFAULT="));
        let line = line.unwrap_or_default().trim_matches('"').trim_start_matches('$');
        let more = line.split_once(' ').map_or("", |(_, more)| more);
        self.write("proc/cmdline", &format!("root=/dev/sda1 quiet {more}\n"));
        self.write(BOOT_ID, &format!("{id}\n"));
    }

    /// Whether there is a journal: all is undone when there is none.
    pub fn is_tuned(&self) -> bool {
        self.0.path().join(JOURNAL).exists()
    }

    /// Whether a tune that is for a time is not taken back.
    pub fn is_tuned_for_now(&self) -> bool {
        let journal = self.read(JOURNAL);
        let is_tune = |line: &&str| line.starts_with("{\"tune\":");
        let Some(tune) = journal.lines().rfind(is_tune) else { return false };
        let is_confirmed = journal.lines().last() == Some("\"confirmed\"");
        !tune.contains("\"confirm_by_ns\":null") && !is_confirmed
    }

    /// Starts it, and continues.
    pub fn start(&self, arguments: &[&str]) -> Child {
        let mut command = self.command(arguments);
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        command.spawn().expect("onbeat runs")
    }
}

/// The words of an `apply` of many settings, and more.
pub fn apply<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["apply"], &CPUSET[..], more].concat()
}
