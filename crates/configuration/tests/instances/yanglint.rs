//! The validator of libyang, with the published modules.

use onbeat_testkit::{Need, not_run};
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;

/// Names the folder of modules; conformance/yang/README.md says which.
const MODULES: &str = "ONBEAT_YANG";

/// The modules of bridges and of hosts; what these import is found beside them. No device has both:
/// the constraints on gates hold for every interface, whether it has any or not.
const NAMES: [&[&str]; 2] = [
    &[
        "ieee802-dot1q-types",
        "ieee802-dot1q-sched",
        "ieee802-dot1q-sched-bridge",
        "ieee802-dot1q-cbsa-bridge",
        "ieee802-dot1q-ats-bridge",
        "ieee802-dot1cb-stream-identification",
        "ieee802-dot1cb-frer",
        "iana-if-type",
    ],
    &[
        "ieee802-dot1q-types",
        "ieee802-dot1q-sched",
        "ieee802-dot1dc-gfqos",
        "ieee802-dot1dc-sched-if",
        "ieee802-dot1dc-cbsa-if",
        "iana-if-type",
    ],
];

/// Whose configuration it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Of {
    Bridge,
    Host,
}

pub(crate) struct Yanglint {
    folder: PathBuf,
    modules: [Vec<PathBuf>; 2],
}

impl Yanglint {
    /// If it is there, and modules are; else the test says so.
    pub(crate) fn found() -> Option<Self> {
        if Command::new("yanglint").arg("--version").output().is_err() {
            not_run(Need::Tools, "yanglint is missing (libyang-tools)");
            return None;
        }
        let Some(folder) = std::env::var_os(MODULES).map(PathBuf::from) else {
            // They come with the standards, and nothing installs them.
            not_run(Need::Machine, format_args!("{MODULES} names no folder of YANG modules"));
            return None;
        };
        let files = folder.read_dir().unwrap_or_else(|why| panic!("{}: {why}", folder.display()));
        let files: Vec<PathBuf> = files.flatten().map(|entry| entry.path()).collect();
        let module = |name: &&str| {
            let is_of = |path: &&PathBuf| {
                let file = path.file_name().and_then(|file| file.to_str()).unwrap_or_default();
                let rest = file.strip_prefix(*name).and_then(|rest| rest.strip_suffix(".yang"));
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('@'))
            };
            let newest = files.iter().filter(is_of).max();
            newest.unwrap_or_else(|| panic!("{name} is not in {}", folder.display())).clone()
        };
        let modules = NAMES.map(|names| names.iter().map(module).collect());
        Some(Self { folder, modules })
    }

    /// What it makes of a configuration in JSON, or why it refuses it.
    pub(crate) fn json(&self, of: Of, text: &str) -> Result<Value, String> {
        self.validated(of, text, ".json")
    }

    /// The same of one in XML.
    pub(crate) fn xml(&self, of: Of, text: &str) -> Result<Value, String> {
        self.validated(of, text, ".xml")
    }

    /// Validates many configurations of one kind at once: each has a name, which may be that of a
    /// file and ends as its encoding is called.
    pub(crate) fn all(&self, of: Of, texts: &[(String, &str)]) -> Result<(), String> {
        let folder = tempfile::tempdir().expect("a folder");
        let files = texts.iter().map(|(name, text)| {
            let file = folder.path().join(name);
            std::fs::write(&file, text).expect("the instance");
            file
        });
        let files: Vec<PathBuf> = files.collect();
        self.run("config", of, &[], &files).map(|_| ())
    }

    /// What it makes of what is to be merged into a bridge's configuration.
    pub(crate) fn edit(&self, text: &str, encoding: &str) -> Result<Value, String> {
        self.validated_as("edit", Of::Bridge, text, &format!(".{encoding}"))
    }

    fn validated(&self, of: Of, text: &str, suffix: &str) -> Result<Value, String> {
        self.validated_as("config", of, text, suffix)
    }

    fn validated_as(&self, kind: &str, of: Of, text: &str, suffix: &str) -> Result<Value, String> {
        let file = tempfile::Builder::new().suffix(suffix).tempfile().expect("a file");
        std::fs::write(file.path(), text).expect("the instance");
        let printed = self.run(kind, of, &["-f", "json"], &[file.path().to_owned()])?;
        Ok(serde_json::from_slice(&printed).expect("its own JSON"))
    }

    fn run(
        &self,
        kind: &str,
        of: Of,
        options: &[&str],
        files: &[PathBuf],
    ) -> Result<Vec<u8>, String> {
        let output = Command::new("yanglint")
            .args(["-t", kind, "-p"])
            .arg(&self.folder)
            .args(options)
            .args(&self.modules[of as usize])
            .args(files)
            .output()
            .expect("yanglint, which has just told its version");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.success() { Ok(output.stdout) } else { Err(said) }
    }
}
